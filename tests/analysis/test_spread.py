"""Spread within groups: who gets the lottery."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from pytest_fairness import analyze_spread
from pytest_fairness.errors import UsageError


def scores(seed: int, *, wide: float = 1.0, names: int = 40, each: int = 1) -> pd.DataFrame:
    """Two groups of the same mean, the scores of b so many times as *wide*."""
    rng = np.random.default_rng(seed)
    name = np.repeat(np.arange(2 * names), each)
    group = np.where(name < names, "a", "b")
    score = rng.normal(0, np.where(group == "a", 1.0, wide))
    return pd.DataFrame({"group": group, "name": name, "score": score})


def test_the_ratio_by_hand() -> None:
    """Standard deviations as of numpy; one of two is the inverse of the other."""
    table = scores(1, wide=2.0)
    spread = analyze_spread(table, "score", "group", block=None).set_index("group")
    sds = table.groupby("group")["score"].std()
    assert spread["sd"].to_dict() == pytest.approx(sds.to_dict(), rel=1e-12)
    assert spread.loc["b", "ratio"] == pytest.approx(sds["b"] / sds["a"], rel=1e-12)
    assert spread.loc["a", "ratio"] == pytest.approx(sds["a"] / sds["b"], rel=1e-12)
    assert spread.loc["a", "ratio_low"] == pytest.approx(1 / spread.loc["b", "ratio_high"])
    assert spread["n"].tolist() == spread["clusters"].tolist() == [40, 40]


def test_what_blocks_differ_by_is_no_spread() -> None:
    table = scores(2).assign(template=lambda rows: np.arange(len(rows)) % 2)
    moved = table.assign(score=table["score"] + 100 * table["template"])
    spread, expected = (analyze_spread(rows, "score", "group") for rows in (moved, table))
    assert spread["sd"].tolist() == pytest.approx(expected["sd"].tolist())


@pytest.mark.parametrize(("wide", "each"), [(1.0, 1), (3.0, 1), (1.0, 5)])
def test_the_interval_holds_the_ratio(wide: float, each: int) -> None:
    """By simulation of 200 tables, with single and with repeated rows: in about 95 % of them."""
    held = 0
    for seed in range(200):
        spread = analyze_spread(scores(seed, wide=wide, each=each), "score", "group", block=None)
        held += spread["ratio_low"][1] <= wide <= spread["ratio_high"][1]
    assert 180 <= held <= 199


def test_repeated_asks_that_differ() -> None:
    """Of 10 cells a group asked three times: 2 and 7 whose answers differ; one asked once is none."""
    rows = []
    for group, differing in (("a", 2), ("b", 7)):
        for cell in range(10):
            answers = ["yes", "yes", "no" if cell < differing else "yes"]
            rows += [(group, f"{group}{cell}", answer) for answer in answers]
        rows.append((group, f"{group} once", "no"))
    table = pd.DataFrame(rows, columns=["group", "cell", "answer"])
    spread = analyze_spread(table, "answer", "group", cluster=None, block=None)
    assert spread["cells"].tolist() == [10, 10]
    assert spread["differ"].tolist() == [0.2, 0.7]
    for place, differing in enumerate((2, 7)):
        interval = proportion_confint(differing, 10, method="wilson")
        low, high = spread["differ_low"][place], spread["differ_high"][place]
        assert (low, high) == pytest.approx(interval)
    assert "ratio" not in spread
    with pytest.raises(UsageError, match="say with repeated= which column"):
        analyze_spread(table.drop(columns="cell"), "answer", "group", cluster=None, block=None)


def test_where_nothing_varies_there_is_no_ratio() -> None:
    table = scores(3).assign(score=lambda rows: np.where(rows["group"] == "a", 1.0, rows["score"]))
    spread = analyze_spread(table, "score", "group", block=None)
    assert spread["ratio"].isna().all()
    assert spread["sd"].isna().tolist() == [True, False]
