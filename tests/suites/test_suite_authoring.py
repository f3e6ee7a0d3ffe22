"""The plumbing of suites: a file read once, a module with its design, an item of each value."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pandas as pd
import pytest

from pytest_fairness.suites.authoring import (
    once_a_session,
    once_a_table,
    options_document,
)

SUITE = """
import pytest

def test_of_both(by, outcome):
    assert outcome in ("score", "length") and by in ("age", "gender")

def test_of_one(by):
    assert by in ("age", "gender")

def test_of_none():
    pass
"""
CONFTEST = """
import msgspec
import pytest
from pytest_fairness.suites.authoring import (
    make_items, marked_module, once_a_session, options_document,
)

class OwnOptions(msgspec.Struct, forbid_unknown_fields=True):
    classes: tuple[str, ...] = ("age", "gender")

@once_a_session
def options_of(config):
    with open("reads.txt", "a") as file:
        file.write("read\\n")
    return options_document(config, "own.yaml").convert(OwnOptions)

def pytest_pycollect_makemodule(module_path, parent):
    options_of(parent.config)
    return marked_module(module_path, parent, pytest.mark.one, pytest.mark.other)

def pytest_generate_tests(metafunc):
    classes = options_of(metafunc.config).classes
    make_items(metafunc, "own", {"outcome": ("score", "length"), "by": classes})

def pytest_collection_modifyitems(items):
    for item in items:
        marker = item.get_closest_marker("fairness")
        marks = {mark.name for mark in item.iter_markers()} & {"one", "other"}
        print(item.name, marker and marker.kwargs["id"], sorted(marks))
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A suite of somebody's own."""
    pytester.makepyfile(test_own=SUITE)
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\nmarkers =\n    one\n    other\n")
    return pytester


def test_an_item_of_each_combination_that_a_test_asks_for(suite: pytest.Pytester) -> None:
    """In the order of what is given, each with the id that it has in reports."""
    shown = suite.runpytest_inprocess("-q", "-s", "--collect-only", "-p", "no:xdist").stdout.str()
    assert [line for line in shown.splitlines() if line.startswith("test_of")] == [
        "test_of_both[score-age] own.of_both[score-age] ['one', 'other']",
        "test_of_both[score-gender] own.of_both[score-gender] ['one', 'other']",
        "test_of_both[length-age] own.of_both[length-age] ['one', 'other']",
        "test_of_both[length-gender] own.of_both[length-gender] ['one', 'other']",
        "test_of_one[age] own.of_one[age] ['one', 'other']",
        "test_of_one[gender] own.of_one[gender] ['one', 'other']",
        "test_of_none None ['one', 'other']",
    ]


def test_the_file_is_read_once(suite: pytest.Pytester) -> None:
    (suite.path / "own.yaml").write_text("classes: [age]\n", "utf-8")
    suite.runpytest_inprocess("-q", "--collect-only", "-p", "no:xdist").assert_outcomes()
    assert (suite.path / "reads.txt").read_text() == "read\n"


def test_a_wrong_file_ends_the_collection_with_its_message(suite: pytest.Pytester) -> None:
    (suite.path / "own.yaml").write_text("clases: [age]\n", "utf-8")
    result = suite.runpytest_inprocess("-q", "-p", "no:xdist")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    shown = result.stdout.str()
    assert "own.yaml:1: unknown key 'clases'; did you mean 'classes'" in shown
    assert "Traceback" not in shown


class Flat(msgspec.Struct, forbid_unknown_fields=True):
    names: int = 20


def test_without_a_file_the_options_are_the_usual_ones(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(type(pytestconfig), "rootpath", tmp_path)
    assert options_document(pytestconfig, "own.yaml").convert(Flat) == Flat()
    (tmp_path / "own.yaml").write_text("names: 3\n", "utf-8")
    assert options_document(pytestconfig, "own.yaml").convert(Flat) == Flat(names=3)


def test_what_is_made_once_is_kept_by_function(pytestconfig: pytest.Config) -> None:
    made = []

    @once_a_session
    def first(config: pytest.Config) -> str:
        made.append(config)
        return "first"

    @once_a_session
    def second(config: pytest.Config) -> None:
        made.append(config)

    assert (first(pytestconfig), first(pytestconfig)) == ("first", "first")
    assert (second(pytestconfig), second(pytestconfig)) == (None, None)
    assert made == [pytestconfig, pytestconfig]


def trials(*statuses: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "key": [f"k{number}" for number in range(len(statuses))],
            "repetition": 0,
            "status": statuses,
        }
    )


def test_a_table_is_read_once_until_its_trials_change(pytestconfig: pytest.Config) -> None:
    made = []

    @once_a_table
    def counted(_config: pytest.Config, frame: pd.DataFrame) -> int:
        made.append(len(frame))
        return len(frame)

    assert [counted(pytestconfig, trials("answered", "failed")) for _ in range(3)] == [2, 2, 2]
    assert made == [2]
    assert counted(pytestconfig, trials("answered", "answered")) == 2
    assert counted(pytestconfig, trials("answered")) == 1
    assert made == [2, 2, 1]
