"""Error rates and predictive values where a column says what was right."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pytest_fairness import Verdict, analyze_disparity, analyze_error_rates, counts_of
from pytest_fairness.cli import main
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.statistics.arrays import ROWS

#: COMPAS in Broward County by Larson et al. (ProPublica, 2016, "How we analyzed the COMPAS recidivism
#: algorithm"): people by race, whether they were charged again within two years, and whether
#: their score was medium or high. Of 1,795 black people who were not charged again 805 had been.
COMPAS = pd.DataFrame(
    [
        ("black", 0, 0, 990),
        ("black", 0, 1, 805),
        ("black", 1, 0, 532),
        ("black", 1, 1, 1369),
        ("white", 0, 0, 1139),
        ("white", 0, 1, 349),
        ("white", 1, 0, 461),
        ("white", 1, 1, 505),
    ],
    columns=["race", "charged", "risk", ROWS],
)
GIVEN: dict[str, Any] = {"truth": "charged", "cluster": None, "block": None}
PUBLISHED = {  # per cent, as ProPublica has them: black, white
    "true-positive rate": (100 - 27.99, 100 - 47.72),
    "false-positive rate": (44.85, 23.45),
    "positive predictive value": (62.97, 59.13),
    "negative predictive value": (65.05, 71.19),
}
VERDICTS = (Verdict.FLAG, Verdict.FAIL, Verdict.PASS, Verdict.PASS)


def rows_of(counts: pd.DataFrame) -> pd.DataFrame:
    repeated = counts.loc[counts.index.repeat(counts[ROWS])]
    return repeated.drop(columns=ROWS).reset_index(drop=True)


def test_compas_has_the_published_rates_and_two_verdicts() -> None:
    """Errors fall on one group, predictive values hardly differ: both are true of one table."""
    findings = analyze_error_rates(COMPAS, "risk", "race", lower_is_worse=False, **GIVEN)
    for finding, (name, rates) in zip(findings, PUBLISHED.items(), strict=True):
        assert finding.outcome.startswith(name)
        values = {group.group: 100 * group.value for group in finding.group_results}
        assert values == {
            "black": pytest.approx(rates[0], abs=0.006),
            "white": pytest.approx(rates[1], abs=0.006),
        }
        assert "Chouldechova 2017" in " ".join(finding.notes)
        assert finding.family["alpha"] == 0.0125
    assert tuple(finding.verdict for finding in findings) == VERDICTS
    assert "black is worse off than white on false-positive rate" in findings[1].sentence


def test_each_rate_is_the_disparity_of_the_rows_that_it_is_about() -> None:
    rows = rows_of(COMPAS)
    findings = analyze_error_rates(rows, "risk", "race", **GIVEN)
    subsets = (
        rows[rows.charged == 1].risk,
        rows[rows.charged == 0].risk,
        rows[rows.risk == 1].charged,
        1 - rows[rows.risk == 0].charged,
    )
    for finding, values in zip(findings, subsets, strict=True):
        table = pd.DataFrame({"race": rows.race[values.index], "value": values})
        alone = analyze_disparity(
            table, "value", "race", cluster=None, block=None, kind="binary", alpha=0.0125
        )
        assert finding.pairs[0].effect == pytest.approx(alone.pairs[0].effect, rel=1e-12)
        assert finding.pairs[0].p_value == pytest.approx(alone.pairs[0].p_value, rel=1e-12)
        assert finding.verdict is alone.verdict


@pytest.mark.parametrize(
    "engine", [pl.from_pandas, lambda rows: counts_of(rows, "risk", "race", truth="charged")]
)
def test_every_engine_gives_the_same(engine: Any) -> None:
    rows = rows_of(COMPAS)
    expected = analyze_error_rates(rows, "risk", "race", **GIVEN)
    found = analyze_error_rates(engine(rows), "risk", "race", **GIVEN)
    assert [finding.sentence for finding in found] == [finding.sentence for finding in expected]


def test_a_path_has_no_template_and_needs_none(tmp_path: Path) -> None:
    COMPAS.to_csv(tmp_path / "compas.csv", index=False)
    findings = analyze_error_rates(
        str(tmp_path / "compas.csv"), "risk", "race", truth="charged", cluster=None
    )
    expected = analyze_error_rates(COMPAS, "risk", "race", **GIVEN)
    assert [finding.sentence for finding in findings] == [one.sentence for one in expected]


def test_words_have_to_say_which_is_their_yes() -> None:
    table = COMPAS.assign(risk=COMPAS.risk.map({0: "low", 1: "high"}))
    with pytest.raises(UsageError, match="'risk' is high and low: say with positive= which"):
        analyze_error_rates(table, "risk", "race", **GIVEN)
    findings = analyze_error_rates(
        table, "risk", "race", positive="high", favourable="low", **GIVEN
    )
    assert tuple(finding.verdict for finding in findings) == VERDICTS
    assert findings[1].outcome == "false-positive rate (risk where charged is no)"
    assert findings[2].outcome == "positive predictive value (charged where risk is high)"
    values = {group.group: group.value for group in findings[1].group_results}
    assert values["black"] == pytest.approx(805 / 1795)


def test_a_yes_may_be_the_zero() -> None:
    turned = COMPAS.assign(risk=1 - COMPAS.risk, charged=1 - COMPAS.charged)
    findings = analyze_error_rates(
        turned, "risk", "race", positive=0, positive_truth=0, lower_is_worse=False, **GIVEN
    )
    assert tuple(finding.verdict for finding in findings) == VERDICTS
    assert findings[1].outcome == "false-positive rate (risk where charged is 1)"
    values = {group.group: group.value for group in findings[1].group_results}
    assert values["black"] == pytest.approx(805 / 1795)


def test_without_a_truth_a_row_is_left_out() -> None:
    rows = rows_of(COMPAS).astype({"charged": float})
    unknown = rows.head(30).assign(charged=math.nan)
    findings = analyze_error_rates(pd.concat([rows, unknown]), "risk", "race", **GIVEN)
    expected = analyze_error_rates(rows, "risk", "race", **GIVEN)
    assert [finding.sentence for finding in findings] == [one.sentence for one in expected]
    assert "30 rows without 'charged' left out: nobody knows what was right" in findings[0].notes


def test_equal_shares_need_no_note() -> None:
    chance = np.random.default_rng(1)
    rows = pd.DataFrame({"race": ["a", "b"] * 2000, "charged": chance.integers(0, 2, 4000)})
    rows["risk"] = np.where(chance.random(4000) < 0.8, rows.charged, 1 - rows.charged)
    findings = analyze_error_rates(rows, "risk", "race", **GIVEN)
    assert "Chouldechova" not in " ".join(findings[0].notes)
    assert {finding.verdict for finding in findings} == {Verdict.PASS}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"truth": "risk"}, UsageError, "is the outcome itself"),
        ({"truth": "chargd"}, FrameError, "truth='chargd' is no column of the table"),
        ({"favourable": 7}, UsageError, "no value of 'risk' is that"),
    ],
)
def test_what_cannot_be_compared_is_said(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        analyze_error_rates(COMPAS, "risk", "race", **{**GIVEN, **change})


def test_nobody_knows_what_was_right() -> None:
    table = COMPAS.assign(charged=math.nan)
    with pytest.raises(FrameError, match="nobody knows what was right"):
        analyze_error_rates(table, "risk", "race", **GIVEN)


def test_the_command_tells_the_four_rates(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "compas.csv"
    COMPAS.assign(risk=COMPAS.risk.map({0: "low", 1: "high"})).to_csv(file, index=False)
    given = ["assess", str(file), "--outcome", "risk", "--by", "race", "--truth", "charged"]
    assert main([*given, "--positive", "high", "--favourable", "low"]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "false-positive rate (risk where charged is no): 44.8 % against 23.5 %" in text
    assert "PASS: no difference larger than small on positive predictive value" in text
    assert main(given) == 2
    assert "say with positive=" in " ".join(capsys.readouterr().err.split())
    assert main([*given, "--four-fifths"]) == 2
    assert "--four-fifths and --truth do not go together" in capsys.readouterr().err
    assert main([*given[:-2], "--positive", "high"]) == 2
    assert "--positive goes with --truth" in capsys.readouterr().err
