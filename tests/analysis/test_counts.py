"""Tables of any engine, reduced to counts: the finding of the rows, to 1e-9."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pytest_fairness import (
    analyze_disparity,
    analyze_error_rates,
    analyze_four_fifths,
    analyze_preference,
    analyze_within,
    assert_no_disparity,
    counts_of,
)
from pytest_fairness.analysis import counts as counting
from pytest_fairness.analysis import disparity
from pytest_fairness.cli import main
from pytest_fairness.errors import FrameError
from pytest_fairness.statistics.arrays import ROWS
from tests.support.findings import unlike

SIZE = 16_000


@pytest.fixture(scope="module")
def decisions() -> pd.DataFrame:
    chance = np.random.default_rng(1)
    race = chance.choice(list("abcd"), SIZE)
    hired = chance.random(SIZE) < np.where(race == "b", 0.36, 0.4)
    return pd.DataFrame(
        {
            "race": race,
            "year": chance.choice([1, 2, 3], SIZE),
            "person": chance.integers(0, 800, SIZE),
            "hired": hired,
        }
    )


@pytest.fixture(scope="module")
def tables(decisions: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tables")
    decisions.to_parquet(folder / "decisions.parquet")
    decisions.to_csv(folder / "decisions.csv", index=False)
    return {
        "polars": pl.from_pandas(decisions),
        "lazy polars": pl.from_pandas(decisions).lazy(),
        "pyarrow": pa.Table.from_pandas(decisions),
        "DuckDB": duckdb.connect().read_parquet(str(folder / "decisions.parquet")),
        "parquet": str(folder / "decisions.parquet"),
        "several files": str(folder / "*.parquet"),
        "CSV": folder / "decisions.csv",
    }


@pytest.mark.parametrize(
    ("analyze", "cluster", "block"),
    [
        (analyze_disparity, None, None),
        (analyze_disparity, None, "year"),
        (analyze_disparity, "person", None),
        (analyze_disparity, "person", "year"),
        (analyze_four_fifths, None, "year"),
        (analyze_four_fifths, "person", None),
    ],
)
def test_every_engine_gives_the_finding_of_the_rows(
    analyze: Callable[..., Any],
    cluster: str | None,
    block: str | None,
    decisions: pd.DataFrame,
    tables: dict[str, Any],
) -> None:
    given = {"outcome": "hired", "by": "race", "cluster": cluster, "block": block}
    expected = analyze(decisions, **given)
    for name, table in tables.items():
        assert unlike(expected, analyze(table, **given)) == [], name
    reduced = counts_of(decisions, "hired", "race", cluster=cluster, block=block)
    assert reduced.rows == SIZE
    assert unlike(expected, analyze(reduced, **given)) == []
    assert unlike(expected, analyze(reduced.table, **given)) == []


def test_an_assertion_takes_a_path(tables: dict[str, Any]) -> None:
    finding = assert_no_disparity(tables["parquet"], "hired", "race", cluster=None, block=None)
    assert sum(finding.n_per_group.values()) == SIZE


def test_missing_outcomes_are_judged_as_in_rows(decisions: pd.DataFrame) -> None:
    """NaN and null are both missing."""
    frame = decisions.head(5000).copy()
    frame["hired"] = frame["hired"].astype(float)
    frame.loc[frame.index[:40], "hired"] = np.nan
    given = {"outcome": "hired", "by": "race", "cluster": None, "block": None}
    expected = analyze_disparity(frame, **given)
    assert expected.group_results[0].unscored
    with_null = pl.from_pandas(frame)
    with_nan = with_null.with_columns(pl.col("hired").fill_null(float("nan")))
    for table in (with_null, with_nan):
        assert analyze_disparity(table, **given).sentence == expected.sentence


#: Clusters and blocks: none or both, and one of the two.
BOTH = [(None, None), ("person", "year")]
EITHER = [("person", None), (None, "year")]
#: By how much the rate of b is lower, which shares of b's decisions and of the others' are missing,
#: what the verdict is one of, and with which clusters and blocks.
GAPS: dict[str, tuple[float, float, float, str, list[Any]]] = {
    "equal": (0.0, 0.02, 0.02, "PASS", BOTH),
    "at random": (0.0, 0.045, 0.045, "PASS", EITHER),
    "unequal": (0.3, 0.02, 0.02, "FAIL", EITHER),
    "found in spite of many": (0.3, 0.08, 0.08, "FAIL", [*BOTH, *EITHER]),
    "too many": (0.0, 0.25, 0.25, "INCONCLUSIVE", BOTH),
    "missing of one group": (0.0, 0.048, 0.004, "FLAG or FAIL", BOTH),
}


@pytest.mark.parametrize("called", GAPS)
@pytest.mark.parametrize("analyze", [analyze_disparity, analyze_four_fifths])
def test_missing_outcomes_are_judged_by_counts(
    analyze: Callable[..., Any],
    called: str,
    decisions: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every figure and text, with clusters and blocks, and of rows in another order; nothing is
    laid out as rows. The first on 12,000 of them, which polars and DuckDB count too.
    """
    gap, lost_of_b, lost, verdict, designs = GAPS[called]
    decisions = decisions[decisions["race"] != "d"]
    if called != "equal":
        decisions = decisions.head(9_000)
    chance = np.random.default_rng(2)
    is_b = (decisions["race"] == "b").to_numpy()
    hired = (chance.random(is_b.size) < 0.4 - gap * is_b).astype(object)
    hired[chance.random(is_b.size) < np.where(is_b, lost_of_b, lost)] = None
    rows = decisions.assign(hired=hired)
    shuffled = rows.sample(frac=1, random_state=3).reset_index(drop=True)
    tables = {"shuffled": shuffled}
    if called == "equal":
        engine = duckdb.connect()
        engine.register("decided", pl.from_pandas(rows).to_arrow())
        tables |= {"polars": pl.from_pandas(rows), "DuckDB": engine.sql("SELECT * FROM decided")}
    monkeypatch.setattr(disparity, "by_rows", None)
    monkeypatch.setattr(counting, "by_rows", None)
    for cluster, block in designs:
        given = {"outcome": "hired", "by": "race", "cluster": cluster, "block": block}
        expected = analyze(rows, **given)
        assert expected.verdict.value in verdict
        assert sum(group.unscored for group in expected.group_results) > 150
        counts = counts_of(rows, "hired", "race", cluster=cluster, block=block)
        for name, table in {**tables, "counts": counts}.items():
            assert unlike(expected, analyze(table, **given)) == [], name


def test_missing_outcomes_of_parts_strata_and_error_rates(decisions: pd.DataFrame) -> None:
    """Each firm, strata, and decisions that are missing where it is known what was right."""
    chance = np.random.default_rng(5)
    some = decisions.head(12_000)
    lost = chance.random(len(some)) < 0.02
    hired = some["hired"].astype(object).mask(lost, None)
    right = chance.random(len(some)) < 0.5
    rows = some.assign(hired=hired, right=right).drop(columns="person")
    counts = counts_of(rows, "hired", "race", within="year", truth="right")
    given: dict[str, Any] = {"cluster": None, "block": None}
    firms = {**given, "each": "year", "correction": "fdr_bh"}
    for analyze in (
        lambda table: [analyze_disparity(table, "hired", "race", **firms)],
        lambda table: analyze_within(table, "hired", "race", within="year", **given),
        lambda table: analyze_error_rates(table, "hired", "race", truth="right", **given),
    ):
        for expected, judged in zip(analyze(rows), analyze(counts), strict=True):
            assert unlike(expected, judged) == []


def test_what_became_of_the_missing_is_counted_in_rows() -> None:
    """By status, and of a plan that did not end, from counts as from rows."""
    counts = pd.DataFrame(
        [
            ("a", "answered", 1.0, 150),
            ("a", "answered", 0.0, 150),
            ("a", "error", None, 20),
            ("a", "not_run", None, 7),
            ("b", "answered", 1.0, 150),
            ("b", "answered", 0.0, 150),
            ("b", "empty", None, 31),
        ],
        columns=["race", "status", "hired", ROWS],
    )
    rows = counts.loc[counts.index.repeat(counts[ROWS])].drop(columns=ROWS).reset_index(drop=True)
    given = {"outcome": "hired", "by": "race", "cluster": None, "block": None}
    for analyze in (analyze_disparity, analyze_four_fifths):
        expected = analyze(rows, **given)
        assert "20 ended in an error, 7 not run" in " ".join(expected.notes)
        for table in (counts, pl.from_pandas(rows)):
            assert unlike(expected, analyze(table, **given)) == []


#: Half of the designs are looked at where no answer is missing but those refused, the other half
#: where many are missing, and all of them where some are, and some refused.
HALF = [(None, None), ("person", "year"), ("own", None)]
OTHER_HALF = [(None, "year"), ("person", None), ("own", "year")]
DESIGNS = {0.0: HALF, 0.03: [*HALF, *OTHER_HALF], 0.09: OTHER_HALF}


#: Of 80 persons each stands in every group, so that they are compared with themselves; of 150 some
#: do not.
PERSONS = {"rating": 80, "length": 150, "turned": 150}


@pytest.mark.parametrize("score", PERSONS)
@pytest.mark.parametrize("lost", DESIGNS)
def test_ratings_and_numbers_are_judged_by_counts(
    score: str, lost: float, decisions: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With clusters and blocks, with names in one group or all, missing and refused; the last score
    has a mean that a few rows turn. Nothing is laid out as rows.
    """
    chance = np.random.default_rng(7)
    decisions = decisions[decisions["race"] != "d"]
    rows = decisions.head(2_000).drop(columns="hired").reset_index(drop=True)
    size = len(rows)
    is_b = (rows["race"] == "b").to_numpy()
    scores = {
        "rating": chance.integers(1, 6, size) - is_b * chance.integers(0, 2, size),
        "length": chance.integers(0, 90, size) / 7 + is_b * 1.5,
        "turned": chance.integers(0, 6, size)
        - ~is_b * np.where(chance.random(size) < 0.005, -400, 1),
    }
    rows["person"] %= PERSONS[score]
    rows["own"] = rows["race"] + (rows["person"] % 40).astype(str)
    values = scores[score].astype(float)
    # What b is refused more would decide before the rows that turn a mean.
    refused = chance.random(size) < 0.02 + 0.1 * is_b * (score != "turned")
    rows[score] = np.where((chance.random(size) < lost) | refused, np.nan, values)
    monkeypatch.setattr(disparity, "by_rows", None)
    monkeypatch.setattr(counting, "by_rows", None)
    frames = []
    if lost < 0.05:
        frames.append(rows.assign(refused=refused))
    if lost:
        frames.append(rows)
    turned = 0
    for frame in frames:
        for cluster, block in DESIGNS[lost]:
            given = {"outcome": score, "by": "race", "cluster": cluster, "block": block}
            expected = analyze_disparity(frame, **given)
            counts = counts_of(frame, score, "race", cluster=cluster, block=block)
            judged = analyze_disparity(counts, **given)
            different = unlike(expected, judged)
            # Only counts have no number of a row.
            turns = "turns the mean" in expected.sentence or "turn the mean" in expected.sentence
            assert [place for place, *_ in different] == ["/sentence", "/explanation"] * turns
            assert without_rows(judged.sentence) == without_rows(expected.sentence)
            turned += turns
    assert (turned > 0) == (score == "turned")


def without_rows(sentence: str) -> str:
    """Return *sentence* without the numbers of rows."""
    return re.sub(r"row \d+( of the counts)?:", "row:", sentence)


def test_scores_are_judged_by_rows(decisions: pd.DataFrame) -> None:
    frame = decisions.head(2000).assign(score=np.arange(2000) % 37 / 3)
    given = {"outcome": "score", "by": "race", "cluster": None, "block": None}
    table = pl.from_pandas(frame)
    assert analyze_disparity(table, **given).sentence == analyze_disparity(frame, **given).sentence


def test_a_column_that_is_not_there_is_named(tables: dict[str, Any]) -> None:
    with pytest.raises(FrameError, match="no column 'raze'; did you mean 'race'"):
        counts_of(tables["parquet"], "hired", "raze")


def test_a_file_of_counts_is_judged_as_its_rows(
    decisions: pd.DataFrame, tables: dict[str, Any], tmp_path: Path, capsys: Any
) -> None:
    """As a warehouse makes it, by the SQL that the command prints."""
    written = tmp_path / "counts.csv"
    given = ("--outcome", "hired", "--by", "race")
    assert main(["counts", tables["parquet"], *given, "--to", str(written)]) == 0
    assert f"{SIZE:,} rows in 8 combinations" in capsys.readouterr().out
    assert list(pd.read_csv(written).columns) == ["race", "hired", ROWS]
    expected = analyze_disparity(decisions, "hired", "race", cluster=None, block=None)
    found = analyze_disparity(str(written), "hired", "race", cluster=None, block=None)
    assert unlike(expected, found) == []


def test_the_sql_counts_in_a_database(decisions: pd.DataFrame, capsys: Any) -> None:
    """As DuckDB runs it, names with blanks, quotes and of keywords included; Spark: test_engines.py."""
    named = {"race": "group", "hired": 'hired "now"', "year": "fiscal year"}
    engine = duckdb.connect()
    engine.register("decided", decisions.rename(columns=named))
    given = ["--outcome", named["hired"], "--by", named["race"], "--cluster", "person"]
    given += ["--within", named["year"], "--truth", named["hired"]]
    assert main(["counts", "decided", *given, "--sql"]) == 0
    made = engine.sql(capsys.readouterr().out).df()
    reduced = counts_of(
        decisions.rename(columns=named),
        named["hired"],
        named["race"],
        cluster="person",
        within=named["year"],
    )
    columns = list(reduced.table)
    assert set(made) == set(columns)
    first, other = (
        counts[columns].sort_values(columns, ignore_index=True).astype(object)
        for counts in (made, reduced.table)
    )
    assert first.to_dict() == other.to_dict()


def test_an_outcome_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, capsys: Any) -> None:
    lines = ["hired,race", *(f"{number % 2},{'ab'[number % 2]}" for number in range(400))]
    lines[250] = "maybe,a"
    file = tmp_path / "decisions.csv"
    file.write_text("\n".join(lines))
    assert main(["assess", str(file), "--outcome", "hired", "--by", "race"]) == 2
    message = capsys.readouterr().err
    assert f"{file}, line 251" in message
    assert "'maybe'" in message


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([5, -3, 7, 9], "column 'number_of_rows' is -3 in row 1"),
        ([5, 3, 2.5, 9], "column 'number_of_rows' is 2.5 in row 2"),
        ([math.nan, 3, 4, 5], "column 'number_of_rows' is nan in row 0"),
        (["some", 3, 4, 5], "column 'number_of_rows' holds no numbers"),
        ([0, 0, 0, 0], "column 'number_of_rows' is 0 in every row"),
    ],
)
def test_what_is_no_count_is_refused(counts: list[Any], message: str) -> None:
    table = pd.DataFrame({"race": list("aabb"), "hired": [1, 0, 1, 0], ROWS: counts})
    with pytest.raises(FrameError, match=message):
        analyze_disparity(table, "hired", "race", cluster=None)


@pytest.mark.parametrize("table", [None, [1, 2], {"hired": [1]}, 3])
def test_what_is_no_table_is_refused(table: Any) -> None:
    with pytest.raises(FrameError, match=f"got {type(table).__name__}"):
        analyze_disparity(table, "hired", "race")


def test_counts_of_choices_are_judged_as_their_rows() -> None:
    choices = pd.DataFrame(
        {
            "first": ["a", "a", "b", "b"],
            "second": ["b", "b", "a", "a"],
            "chosen": ["a", "b", "a", "b"],
            ROWS: [40, 20, 35, 25],
        }
    )
    rows = choices.loc[choices.index.repeat(choices[ROWS])].drop(columns=ROWS)
    rows = rows.reset_index(drop=True)
    given = {"cluster": None, "block": None}
    assert (
        analyze_preference(choices, **given).sentence == analyze_preference(rows, **given).sentence
    )
