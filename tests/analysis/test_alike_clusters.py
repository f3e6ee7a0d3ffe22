"""Clusters alike are counted together by the engine, to the finding of their rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from pytest_fairness import FrameError, analyze_disparity, analyze_four_fifths
from pytest_fairness.analysis.counts import as_rows, countable
from pytest_fairness.cli import main
from pytest_fairness.reports.bundle import verify, write_bundle
from pytest_fairness.statistics.arrays import ALIKE, ROWS
from tests.support.findings import unlike

SIZE, PEOPLE = 12_000, 2_400
ONE_CLASS = {"cluster": "person", "block": None}


def made(people: int = PEOPLE) -> pd.DataFrame:
    """Return decisions on some *people*, of whom each belongs to one group."""
    chance = np.random.default_rng(3)
    person = chance.integers(0, people, SIZE)
    luck = chance.normal(size=people)[person]
    hired = chance.normal(size=SIZE) + luck + 0.15 * (person % 4 == 1) < -0.4
    return pd.DataFrame(
        {
            "race": np.array(list("abcd"))[person % 4],
            "age": np.where(person % 3, "old", "young"),
            "person": [f"person {number}" for number in person],
            "hired": hired,
            "said": np.where(hired, "yes", "no"),
            "points": hired.astype(int),
        }
    )


@pytest.fixture(scope="module")
def decisions() -> pd.DataFrame:
    return made()


def parquet(rows: pd.DataFrame, folder: Path) -> str:
    """Return the path of a file of *rows*."""
    path = folder / "decisions.parquet"
    rows.to_parquet(path)
    return str(path)


HIRED = partial(analyze_disparity, outcome="hired")
RATIO = partial(analyze_four_fifths, outcome="said", favourable="yes")


@pytest.mark.parametrize(
    ("analyze", "by"),
    [
        (HIRED, "race"),
        (partial(analyze_disparity, outcome="said"), "race"),
        (partial(analyze_disparity, outcome="points", kind="numeric"), "race"),
        (partial(analyze_disparity, outcome="points", kind="ordinal"), "race"),
        (RATIO, "race"),
        (HIRED, ["race", "age"]),
        (RATIO, ["race", "age"]),
    ],
)
def test_clusters_alike_give_the_finding_of_the_rows(
    decisions: pd.DataFrame, analyze: Callable[..., Any], by: Any, tmp_path: Path
) -> None:
    path = parquet(decisions, tmp_path)
    of_rows = analyze(frame=decisions, by=by, **ONE_CLASS)
    for table in (path, duckdb.connect().read_parquet(path), pl.scan_parquet(path)):
        assert not unlike(analyze(frame=table, by=by, **ONE_CLASS), of_rows)


def test_few_rows_stand_for_many_clusters(decisions: pd.DataFrame, tmp_path: Path) -> None:
    counts = countable(parquet(decisions, tmp_path), "hired", "race", "person", None, alike=True)
    assert len(counts) < 600
    assert counts[ROWS].sum() == SIZE
    assert counts.drop_duplicates("person")[ALIKE].sum() == decisions["person"].nunique()
    with pytest.raises(FrameError, match="give the table that was counted"):
        as_rows(counts)


def at_the_end(decisions: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """Return *decisions* with other *values* in a row behind those that are looked at first."""
    changed = decisions.copy()
    for column, value in values.items():
        changed[column] = changed[column].astype(object)
        changed.loc[SIZE - 1, column] = value
    return changed


#: Tables whose clusters are counted one by one, as before.
ONE_BY_ONE: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "few clusters": lambda rows: made(people=900),
    "in several groups": lambda rows: rows.assign(race=rows["race"].sample(frac=1, random_state=1).to_numpy()),
    "one in two groups": lambda rows: at_the_end(rows, person=rows["person"][0], race="e"),
    "a group of one": lambda rows: at_the_end(rows, person="person of none", race="e"),
    "a third answer": lambda rows: at_the_end(rows, said="perhaps"),
    "a missing answer": lambda rows: at_the_end(rows, said=None),
    "a missing person": lambda rows: at_the_end(rows, person=None),
    "a missing group": lambda rows: at_the_end(rows, race=None),
    "a status": lambda rows: rows.assign(status="answered"),
    "names of two parts": lambda rows: rows.assign(
        person=rows["person"].str.translate(str.maketrans("0123456789", "abcdefghij"))
    ),
}  # fmt: skip


@pytest.mark.parametrize("called", ONE_BY_ONE)
def test_clusters_that_are_not_put_together(
    decisions: pd.DataFrame, called: str, tmp_path: Path
) -> None:
    rows = ONE_BY_ONE[called](decisions).rename(columns={"person": "name"})
    path = parquet(rows, tmp_path)
    counts = countable(path, "said", "race", "name", None, alike=True)
    assert ALIKE not in counts.columns
    assert counts[ROWS].sum() == SIZE


@pytest.mark.parametrize("number", [0, 1.5, "many", None])
def test_what_is_no_number_of_clusters_is_refused(
    decisions: pd.DataFrame, number: Any, tmp_path: Path
) -> None:
    counts = countable(parquet(decisions, tmp_path), "hired", "race", "person", None, alike=True)
    counts[ALIKE] = counts[ALIKE].astype(object)
    counts.loc[3, ALIKE] = number
    with pytest.raises(FrameError, match="number_of_clusters', row 3 of the counts: it says how"):
        analyze_disparity(counts, "hired", "race", **ONE_CLASS)


def test_the_command_line_says_of_clusters_alike_what_it_says_of_each(
    decisions: pd.DataFrame, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parquet(decisions, tmp_path)
    decisions.to_csv("decisions.csv", index=False)
    texts = []
    for file in ("decisions.parquet", "decisions.csv"):
        given = ("--outcome", "said", "--by", "race", "--cluster", "person")
        assert main(["assess", file, *given]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


SOURCE = """
from pytest_fairness import assert_no_disparity

def test_hiring():
    assert_no_disparity("decisions.parquet", "hired", "race", cluster="person", block=None)
"""


@pytest.mark.parametrize("workers", [[], ["-n0"], ["-n2"]])
def test_the_log_holds_what_verify_derives_again(
    pytester: pytest.Pytester, decisions: pd.DataFrame, workers: list[str]
) -> None:
    pytester.makepyfile(test_hiring=SOURCE)
    parquet(decisions, pytester.path)
    result = pytester.runpytest(*workers)
    result.assert_outcomes(passed=1)
    (run,) = (pytester.path / ".fairness" / "runs").glob("2*")
    bundle = write_bundle(run, pytester.path / "evidence.zip")
    assert verify(bundle).problems == []
