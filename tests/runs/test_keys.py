"""The content key: the same for the same question, on any machine; another for anything that is
asked otherwise.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Cell
from pytest_fairness.runs.keys import content_key, identity_hash
from tests.support.doubles import cell

IDENTITY: dict[str, JSON] = {"type": "openai", "model": "m-1", "base_url": "http://localhost/v1"}
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)  # lone surrogates included


def test_the_key_never_changes() -> None:
    """A key written down once: runs of an older version must still be found, by any Python on any
    machine, whatever its locale and hash seed."""
    question = Cell(
        id="x",
        template="t",
        turns=("Grüße, \ud800 Lakisha",),
        groups={"race": "black"},
        system="Be brief.",
    )
    script = (
        "from pytest_fairness.runs.keys import content_key\n"
        "from pytest_fairness.model import Cell\n"
        f"print(content_key({IDENTITY!a}, {{'max_tokens': 5, 'temperature': 1.0}}, {question!a}, "
        "2))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "2", "LC_ALL": "C", "PYTHONUTF8": "0"}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, check=True, text=True
    )
    here = content_key(IDENTITY, {"temperature": 1.0, "max_tokens": 5}, question, 2)
    assert (
        here
        == ran.stdout.strip()
        == "0aebc0df00fc32f87a4c05a1e6c14bdc51aea8ff9109faa6a8ab988b210d75b8"
    )


def test_what_is_asked_is_in_the_key_and_nothing_else() -> None:
    """Turns, system prompt (an empty one is not none), arm, model, temperature (1 is not 1.0 to
    every provider) and repetition each make another trial; what else a cell says does not: such
    tests share the reply."""
    changes = [
        {},
        {"turns": ("Write about candidate 0!",)},
        {"turns": ("Write about candidate 0.", "")},
        {"system": ""},
        {"arm": "scrubbed"},
    ]
    keys = [content_key(IDENTITY, {}, cell(**change), 0) for change in changes]
    keys += [content_key(IDENTITY, {"temperature": degrees}, cell(), 0) for degrees in (1, 1.0)]
    keys += [
        content_key({**IDENTITY, "model": "m-2"}, {}, cell(), 0),
        content_key(IDENTITY, {}, cell(), 1),
    ]
    assert len(set(keys)) == len(keys)
    other = dataclasses.replace(
        cell(), id="another", name="N", groups={"gender": "female"}, context={"role": "x"}
    )
    assert content_key(IDENTITY, {}, other, 0) == keys[0]


@settings(max_examples=40)
@given(ANY_TEXT, ANY_TEXT)
def test_different_texts_have_different_keys(one: str, other: str) -> None:
    """No two texts meet in one key, whatever characters they are made of."""
    keys = [content_key(IDENTITY, {}, cell(turns=(text,)), 0) for text in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)


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
