"""``selection.json``: it is what the dataclasses say, key by key, and the documentation says the
same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from pytest_fairness.model import to_json
from pytest_fairness.suites.selection.page import write_results
from pytest_fairness.suites.selection.results import SelectionResults

from ..reports.factories import HOSTILE
from .choices_of import clean, hostile, results_of, scrubbed, tiny

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "selection.md"
#: Objects whose keys are names of the project, or kinds of replies.
NAMED_BY_OTHERS = ("run.classes", "counts")


def without_a_choice() -> pd.DataFrame:
    """Every trial is refused: no order effect, no strengths, no shares."""
    frame = tiny(arms={"raw_naive": 1.0, "scrubbed": 0.0})
    return frame.assign(choice="refused", refused=True, chosen=None)


def that_share_nothing() -> pd.DataFrame:
    """Two arms with names of their own: there is no change to tell."""
    frame = tiny(arms={"control": 1.0, "treated": 0.0})
    for column in ("first_name", "second_name", "name"):
        frame[column] = np.where(frame["arm"] == "treated", "other " + frame[column], frame[column])
    return frame


@pytest.fixture(scope="module")
def results() -> SelectionResults:
    """Results with every part: two arms, a scrubber, and guesses by a classifier and the endpoint."""
    frame = scrubbed(clean, sets=4).assign(reply="1")
    rows = frame[frame["arm"] == "scrubbed"]
    guesses = rows.assign(
        arm="reidentified", choice="unparsed", chosen=None, reply="1. male, White\n2. male, Black"
    )
    return results_of(pd.concat([frame, guesses], ignore_index=True))


def read(path: Path) -> SelectionResults:
    """The results in a file; raises for a type that is not that of the dataclass. An infinite end
    of an interval stands as a text, which only a reader that is not strict takes.
    """
    return msgspec.convert(json.loads(path.read_text("ascii")), SelectionResults, strict=False)


class TestTheFile:
    def test_it_is_read_back_as_it_was_written(self, results, tmp_path):
        """Every key is a field, of the field's type, and nothing is lost."""
        write_results(results, tmp_path / "selection.jsonl")
        written = read(tmp_path / "selection.json")
        assert written == results
        assert to_json(written) == json.loads((tmp_path / "selection.json").read_text("ascii"))

    @pytest.mark.parametrize("table", [without_a_choice, that_share_nothing])
    def test_what_there_is_not_is_null(self, table, tmp_path):
        """Without a choice, or without anything in common, the same keys stand there."""
        found = results_of(table())
        write_results(found, tmp_path / "selection.jsonl")
        assert read(tmp_path / "selection.json") == found

    def test_a_surrogate_or_a_line_break_in_a_name_is_ascii(self, results, tmp_path):
        spoilt = hostile(replace(results, scrubbers=()), HOSTILE + "\ud83d\n")
        write_results(spoilt, tmp_path / "selection.jsonl")
        assert read(tmp_path / "selection.json") == spoilt

    def test_its_page_stands_beside_it(self, results, tmp_path):
        """Under the name of the records, as those of a second temperature have another."""
        write_results(results, tmp_path / "selection-t-0.jsonl")
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"selection-t-0.json", "selection-t-0.page.json"}


def objects(value: Any, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """Every object of a document, with the path to it, as the documentation writes it, and its
    keys.
    """
    if isinstance(value, list):
        for item in value:
            yield from objects(item, f"{path}[]")
    elif isinstance(value, dict) and not path.endswith(NAMED_BY_OTHERS):
        yield path or "selection.json", list(value)
        for key, item in value.items():
            yield from objects(item, f"{path}.{key}".lstrip("."))


def documented() -> dict[str, list[str]]:
    """The keys of each object, by what the documentation calls it."""
    text = DOCUMENTATION.read_text("utf-8").split("### What `selection.json` holds")[1]
    text = text.split("\n## ")[0]
    keys = {}
    for line in text.splitlines():
        cells = line.strip("| ").split(" | ")
        if line.startswith("| `"):
            for name in re.findall("`([^`]+)`", cells[0]):
                keys[name] = re.findall("`([^`]+)`", cells[2])
    return keys


class TestTheDocumentation:
    def test_every_object_is_documented_with_its_keys(self, results):
        """In their order; an object is called by the end of its path."""
        keys = documented()
        for path, names in objects(to_json(results)):
            ends = [end for end in keys if path == end or path.endswith(f".{end}")]
            assert ends, path
            assert keys[max(ends, key=len)] == names, path

    def test_nothing_is_documented_that_is_not_there(self, results):
        paths = {path for path, _ in objects(to_json(results))}
        for end in documented():
            assert any(path == end or path.endswith(f".{end}") for path in paths), end
