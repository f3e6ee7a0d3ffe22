"""Numbers of more rows than fit are judged in bins: means and spreads as of the rows, the rest nearly."""

from __future__ import annotations

import math
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from pytest_fairness import analyze_disparity, analyze_within
from pytest_fairness.analysis import counts
from pytest_fairness.analysis.binned_numbers import MOST_BINS, binned_numbers
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.runs.judgements import Judgement
from pytest_fairness.statistics.arrays import OFFSET, ROWS, WITHIN
from tests.support.findings import unlike

SIZE = 12_000
GIVEN: dict[str, Any] = {"outcome": "score", "by": "race", "cluster": None, "block": None}


def numbers(shape: str) -> np.ndarray[Any, Any]:
    chance = np.random.default_rng(11)
    shapes = {
        "normal": lambda: chance.normal(size=SIZE),
        "far from 0": lambda: 1e6 + chance.normal(size=SIZE),
        "lognormal": lambda: np.exp(3 * chance.normal(size=SIZE)),
        "Pareto": lambda: chance.pareto(2, size=SIZE),
        "half of them 0": lambda: np.where(chance.random(SIZE) < 0.5, 0, chance.normal(size=SIZE)),
        "whole": lambda: chance.integers(0, 5000, SIZE).astype(float),
    }
    return np.asarray(shapes[shape]())


@pytest.fixture
def decided(request: pytest.FixtureRequest) -> pd.DataFrame:
    chance = np.random.default_rng(12)
    values = numbers(getattr(request, "param", "normal"))
    race = chance.choice(list("abc"), SIZE, p=[0.5, 0.3, 0.2])
    worse = (race == "b") * 0.4 * (np.quantile(values, 0.8) - np.quantile(values, 0.2))
    score = np.where(chance.random(SIZE) < 0.01, np.nan, values - worse)
    year = chance.choice([1, 2], SIZE)
    return pd.DataFrame({"race": race, "year": year, "score": score})


SHAPES = ["normal", "far from 0", "lognormal", "Pareto", "half of them 0", "whole"]


@pytest.mark.parametrize(
    ("decided", "block"),
    [*((shape, None) for shape in SHAPES), ("normal", "year"), ("Pareto", "year")],
    indirect=["decided"],
)
def test_bins_give_the_finding_of_the_rows(
    decided: pd.DataFrame, block: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = GIVEN | {"block": block}
    expected = analyze_disparity(decided, **given)
    monkeypatch.setattr(counts, "MOST_ROWS", 1_000)
    finding = analyze_disparity(pl.from_pandas(decided), **given)
    assert finding.verdict is expected.verdict
    assert "at most 1,000 quantile bins" in finding.notes[-1]
    for group, other in zip(expected.group_results, finding.group_results, strict=True):
        assert (group.n, group.unscored) == (other.n, other.unscored)
        for name in ("value", "sd", "low", "high"):
            assert math.isclose(getattr(group, name), getattr(other, name), rel_tol=1e-9), name
    for pair, other_pair in zip(expected.pairs, finding.pairs, strict=True):
        for name, most in (("effect", 1e-3), ("effect_low", 1e-3), ("p_value", 5e-3)):
            values = getattr(pair, name), getattr(other_pair, name)
            assert abs(values[0] - values[1]) < most, name
        for name in ("mean_1", "mean_2", "cohens_d", "standardiser_sd"):
            if name in pair.statistics:
                first, second = (float(str(one.statistics[name])) for one in (pair, other_pair))
                assert math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12), name


@pytest.mark.parametrize("decided", SHAPES, indirect=True)
def test_bins_are_few_and_lose_no_row(decided: pd.DataFrame) -> None:
    """Sums and squares of each group are those of its rows, to rounding."""
    frame = nw.from_native(pl.from_pandas(decided)).lazy()
    table = binned_numbers(nw, frame, "score", ["race", "score"], counts.as_pandas)
    assert table is not None
    assert table["score"].nunique() <= MOST_BINS
    for race, rows in decided.groupby("race"):
        group = table[table["race"] == race]
        scored = group[group["score"].notna()]
        values = rows["score"].dropna()
        number = scored[ROWS].to_numpy(dtype=float)
        middle = (scored["score"] + scored[OFFSET]).to_numpy()
        assert group[ROWS].sum() == len(rows)
        assert math.isclose(float(number @ middle), values.sum(), rel_tol=1e-9)
        squares = scored[WITHIN].sum() + float(number @ (middle - values.mean()) ** 2)
        assert math.isclose(squares, ((values - values.mean()) ** 2).sum(), rel_tol=1e-9)


def test_the_order_of_rows_does_not_matter(
    decided: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "MOST_ROWS", 1_000)
    tables = (decided, decided.sort_values("score"), decided.sample(frac=1, random_state=1))
    findings = [analyze_disparity(pl.from_pandas(table).lazy(), **GIVEN) for table in tables]
    assert len({finding.sentence for finding in findings}) == 1


def test_strata_of_numbers_in_bins(decided: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = analyze_within(decided, **GIVEN, within="year")
    monkeypatch.setattr(counts, "MOST_ROWS", 1_000)
    judged = analyze_within(pl.from_pandas(decided), **GIVEN, within="year")
    verdicts = [finding.verdict for finding in expected]
    assert [finding.verdict for finding in judged] == verdicts


def test_the_log_keeps_what_is_known_of_bins(
    decided: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "MOST_ROWS", 1_000)
    table = counts.countable(pl.from_pandas(decided), "score", "race", None, None)
    kept = Judgement.of("disparity", GIVEN, table, None)
    logged = kept.frame().assign(score=table["score"])
    assert not unlike(analyze_disparity(logged, **GIVEN), analyze_disparity(table, **GIVEN))


def test_an_infinite_number_is_named(
    decided: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "MOST_ROWS", 1_000)
    decided.loc[17, "score"] = math.inf
    with pytest.raises(FrameError, match="'score', row 17: an outcome cannot be infinite"):
        analyze_disparity(pl.from_pandas(decided), **GIVEN)


def test_labels_are_not_taken_for_bins(
    decided: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "MOST_ROWS", 1_000)
    with pytest.raises(UsageError, match="make them labels first"):
        analyze_disparity(pl.from_pandas(decided), **GIVEN, kind="categorical")
