"""Tables that Dask, Ibis and Spark hold: each engine reduces its own, to the finding of the rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

from pytest_fairness import (
    analyze_disparity,
    analyze_error_rates,
    analyze_four_fifths,
    analyze_within,
    counts_of,
)
from pytest_fairness.analysis import counts
from pytest_fairness.analysis.binned_numbers import FINE
from pytest_fairness.cli import main
from tests.support.findings import unlike

SIZE = 100_000
INSTALL = "pip install 'pytest-fairness[engines]'"
#: What Spark and Dask say of their own code.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def decisions() -> pd.DataFrame:
    chance = np.random.default_rng(1)
    race = chance.choice(list("abcd"), SIZE)
    hired = (chance.random(SIZE) < np.where(race == "b", 0.36, 0.4)).astype(float)
    hired[chance.random(SIZE) < 0.01] = np.nan
    person = chance.integers(0, 2000, SIZE)
    return pd.DataFrame(
        {
            "race": race,
            "year": chance.choice([1, 2, 3], SIZE),
            "person": person,
            "owner": [f"{number} of {group}" for number, group in zip(person, race, strict=True)],
            "branch": chance.choice(["north", "south"], SIZE),
            "right": chance.random(SIZE) < 0.5,
            "hired": hired,
            "score": chance.normal(size=SIZE) - 0.1 * (race == "b"),
            "essay": "so long that nobody wants to read it here " * 3,
        }
    )


@pytest.fixture(scope="module")
def parquet(decisions: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engines") / "decisions.parquet"
    decisions.to_parquet(path)
    return path


def of_dask(path: Path) -> Iterator[Any]:
    dask = pytest.importorskip("dask.dataframe", reason=INSTALL)
    yield dask.read_parquet(path).repartition(npartitions=4)


def of_ibis(path: Path) -> Iterator[Any]:
    ibis = pytest.importorskip("ibis", reason=INSTALL)
    yield ibis.duckdb.connect().read_parquet(path)


def of_spark(path: Path) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason=INSTALL)
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java: apt-get install openjdk-17-jre-headless")
    builder = sql.SparkSession.builder.master("local[2]").appName("pytest-fairness")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    spark = builder.getOrCreate()
    yield spark.read.parquet(str(path))
    spark.stop()


ENGINES = {"dask": of_dask, "ibis": of_ibis, "spark": of_spark}


@pytest.fixture(scope="module", params=ENGINES)
def table(request: pytest.FixtureRequest, parquet: Path) -> Iterator[Any]:
    yield from ENGINES[request.param](parquet)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[pd.DataFrame]:
    """What left the engine, each time that anything did."""
    tables: list[pd.DataFrame] = []
    as_pandas = counts.as_pandas

    def noted(frame: Any) -> pd.DataFrame:
        tables.append(as_pandas(frame))
        return tables[-1]

    monkeypatch.setattr(counts, "as_pandas", noted)
    return tables


@pytest.mark.parametrize("analyze", [analyze_disparity, analyze_four_fifths])
@pytest.mark.parametrize("cluster", [None, "person"])
@pytest.mark.parametrize("block", [None, "year"])
def test_an_engine_gives_the_finding_of_the_rows(
    analyze: Callable[..., Any],
    cluster: str | None,
    block: str | None,
    decisions: pd.DataFrame,
    table: Any,
    fetched: list[pd.DataFrame],
) -> None:
    given = {"outcome": "hired", "by": "race", "cluster": cluster, "block": block}
    expected = analyze(decisions, **given)
    assert unlike(expected, analyze(table, **given)) == []
    keys = [name for name in ("race", "hired", cluster, block) if name is not None]
    combinations = len(decisions.drop_duplicates(keys))
    assert list(map(len, fetched)) == [
        counts._FIRST,
        combinations,
    ]  # the first outcomes, then the counts


def test_clusters_alike_are_counted_where_they_are(
    decisions: pd.DataFrame, table: Any, fetched: list[pd.DataFrame]
) -> None:
    given: dict[str, Any] = {"outcome": "right", "by": "race", "cluster": "owner", "block": None}
    assert unlike(analyze_disparity(decisions, **given), analyze_disparity(table, **given)) == []
    assert len(fetched) == 2
    assert fetched[-1]["number_of_clusters"].sum() == decisions["owner"].nunique()


def test_strata_and_error_rates_are_those_of_the_rows(
    decisions: pd.DataFrame, table: Any, fetched: list[pd.DataFrame]
) -> None:
    given: dict[str, Any] = {"outcome": "hired", "by": "race", "cluster": None, "block": None}
    for analyze, column in ((analyze_within, "within"), (analyze_error_rates, "truth")):
        name = {"within": "branch", "truth": "right"}[column]
        expected = analyze(decisions, **given, **{column: name})
        for finding, judged in zip(
            expected, analyze(table, **given, **{column: name}), strict=True
        ):
            assert unlike(finding, judged) == []
    assert max(map(len, fetched)) <= counts._FIRST


@pytest.mark.parametrize("cluster", [None, "person"])
@pytest.mark.parametrize("block", [None, "year"])
def test_numbers_are_judged_as_those_of_the_rows(
    cluster: str | None,
    block: str | None,
    decisions: pd.DataFrame,
    table: Any,
    fetched: list[pd.DataFrame],
) -> None:
    given = {"outcome": "score", "by": "race", "cluster": cluster, "block": block}
    assert unlike(analyze_disparity(decisions, **given), analyze_disparity(table, **given)) == []
    assert set(fetched[-1]) == {"race", "score", cluster, block} - {None}


def test_numbers_in_bins_are_those_of_another_engine(
    decisions: pd.DataFrame,
    table: Any,
    monkeypatch: pytest.MonkeyPatch,
    fetched: list[pd.DataFrame],
) -> None:
    """Counted and added up where they are: what is fetched is no larger than the fine bins."""
    monkeypatch.setattr(counts, "MOST_ROWS", 1_000)
    given = {"outcome": "score", "by": "race", "cluster": None, "block": None}
    finding = analyze_disparity(table, **given)
    groups = decisions["race"].nunique()
    assert max(map(len, fetched)) <= max(counts._FIRST, groups * FINE)
    by_polars = analyze_disparity(polars.from_pandas(decisions.drop(columns="essay")), **given)
    assert unlike(by_polars, finding) == []


def test_a_reduction_is_that_of_the_rows(decisions: pd.DataFrame, table: Any) -> None:
    given: dict[str, Any] = {"cluster": "person", "within": "branch", "truth": "right"}
    expected, reduced = (counts_of(rows, "hired", "race", **given) for rows in (decisions, table))
    keys = ["race", "hired", "person", "branch", "right"]
    first, other = (
        counted.table.astype({"person": int}).sort_values(keys, ignore_index=True)
        for counted in (expected, reduced)
    )
    assert reduced.rows == SIZE
    assert first.astype(object).where(first.notna(), None).to_dict() == (
        other[first.columns].astype(object).where(other.notna(), None).to_dict()
    )


def test_the_sql_counts_in_spark(decisions: pd.DataFrame, parquet: Path, capsys: Any) -> None:
    for table in of_spark(parquet):
        named = {"race": "group", "hired": "hired `now`", "year": "fiscal year"}
        table.withColumnsRenamed(named).createOrReplaceTempView("decided")
        given = ["--outcome", named["hired"], "--by", named["race"], "--block", named["year"]]
        assert main(["counts", "decided", *given, "--sql", "--dialect", "spark"]) == 0
        made = table.sparkSession.sql(capsys.readouterr().out).collect()
        reduced = counts_of(decisions, "hired", "race", block="year").table
        rows = {tuple(str(value) for value in row) for row in made}
        keys = ["race", "hired", "year", "number_of_rows"]
        plain = reduced[keys].astype(object).where(reduced[keys].notna(), None)
        assert rows == {tuple(map(str, row)) for row in plain.itertuples(index=False)}
