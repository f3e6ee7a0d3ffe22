"""The content key: the same for the same question, on any machine; another for anything that is asked
otherwise."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.errors import UsageError
from pytest_fairness.model import Cell
from pytest_fairness.runs.keys import canonical_json, content_key, identity_hash
from tests.support.doubles import cell

IDENTITY = {"type": "openai", "model": "m-1", "base_url": "http://localhost/v1"}
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)  # lone surrogates included


def test_the_key_never_changes_between_versions() -> None:
    """A key written down once: runs of an older version must still be found, by any Python on any machine."""
    asked = Cell(id="x", template="t", turns=("Grüße, \ud800 Lakisha",), groups={"race": "black"}, system="Be brief.")
    key = content_key(IDENTITY, {"temperature": 1.0, "max_tokens": 5}, asked, 2)
    assert key == "0aebc0df00fc32f87a4c05a1e6c14bdc51aea8ff9109faa6a8ab988b210d75b8"


def test_the_key_does_not_depend_on_the_process() -> None:
    """Neither hash randomisation nor the order of dictionaries enters the key."""
    script = (
        "from pytest_fairness.runs.keys import content_key\n"
        "from pytest_fairness.model import Cell\n"
        "cell = Cell(id='x', template='t', turns=('\\u00e9\\ud800',), groups={})\n"
        "print(content_key({'b': 1, 'a': {'d': None, 'c': True}}, {'z': 0.1, 'a': 2}, cell, 0))"
    )
    keys = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C", "PYTHONUTF8": "0"}
        keys.add(
            subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True).stdout
        )
    asked = Cell(id="x", template="t", turns=("é\ud800",), groups={})
    here = content_key({"a": {"c": True, "d": None}, "b": 1}, {"a": 2, "z": 0.1}, asked, 0)
    assert {key.decode().strip() for key in keys} == {here}


@pytest.mark.parametrize(
    "change",
    [
        {"turns": ("Write about candidate 0!",)},
        {"turns": ("Write about candidate 0.", "")},
        {"system": ""},
        {"arm": "scrubbed"},
    ],
)
def test_what_is_asked_is_in_the_key(change: dict[str, object]) -> None:
    """Turns, system prompt (an empty one is not none) and arm each make another trial."""
    changed = dataclasses.replace(cell(), **change)  # type: ignore[arg-type]
    assert content_key(IDENTITY, {}, changed, 0) != content_key(IDENTITY, {}, cell(), 0)


def test_endpoint_parameters_and_repetition_are_in_the_key() -> None:
    """Another model, temperature (1 is not 1.0 to every provider) or repetition makes another trial."""
    keys = {
        content_key(IDENTITY, {"temperature": 1}, cell(), 0),
        content_key(IDENTITY, {"temperature": 1.0}, cell(), 0),
        content_key({**IDENTITY, "model": "m-2"}, {"temperature": 1}, cell(), 0),
        content_key(IDENTITY, {"temperature": 1}, cell(), 1),
    }
    assert len(keys) == 4


def test_what_is_not_asked_is_not_in_the_key() -> None:
    """Tests that ask the same text under other names share the reply."""
    other = dataclasses.replace(cell(), id="elsewhere", name="N", groups={"gender": "female"}, context={"role": "x"})
    assert content_key(IDENTITY, {}, other, 0) == content_key(IDENTITY, {}, cell(), 0)


@given(ANY_TEXT, ANY_TEXT)
def test_different_texts_have_different_keys(one: str, other: str) -> None:
    """No two texts meet in one key, whatever characters they are made of."""
    keys = [content_key(IDENTITY, {}, cell(turns=(text,)), 0) for text in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


@given(st.recursive(st.none() | st.booleans() | st.integers() | ANY_TEXT, lambda x: st.lists(x, max_size=3)))
def test_canonical_json_reads_back(value: object) -> None:
    """Canonical JSON is JSON, in ASCII, and loses nothing."""
    assert json.loads(canonical_json(value).decode("ascii")) == value


@pytest.mark.parametrize(
    "bad",
    [float("nan"), float("inf"), object(), b"bytes", {1, 2}, 10**5000],
    ids=["nan", "infinity", "object", "bytes", "set", "5000 digits"],
)
def test_what_is_not_json_is_refused_by_name(bad: object) -> None:
    """A parameter that has no form in JSON is a usage error that names the cell."""
    with pytest.raises(UsageError, match="'t-0' cannot be keyed"):
        content_key(IDENTITY, {"x": bad}, cell(), 0)  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="identity is not plain JSON"):
        identity_hash({"x": bad})  # type: ignore[dict-item]
