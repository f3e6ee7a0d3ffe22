"""Error rates and predictive values where a column says what was right."""

from __future__ import annotations

import contextvars
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import StratifiedTable
from statsmodels.stats.proportion import proportion_confint

from pytest_fairness import (
    FairnessFailure,
    Finding,
    Verdict,
    analyze_disparity,
    analyze_error_rates,
    assert_equal_error_rates,
    counts_of,
)
from pytest_fairness.analysis.error_rates import analyze_error_rate, findings_by_rate
from pytest_fairness.analysis.sensitivity import sensitivity_of
from pytest_fairness.analysis.strata import analyze_strata
from pytest_fairness.cli import main
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import ALARMS, Reason
from pytest_fairness.statistics.arrays import ROWS
from tests.support.sessions import findings_of_test

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


# ---------------------------------------------------------------- calibration

#: The same people by the decile of their score; high or medium is a decile above four.
DECILES = {
    ("black", 0): (307, 274, 201, 208, 189, 169, 163, 114, 111, 59),
    ("black", 1): (91, 119, 145, 177, 176, 215, 237, 245, 269, 227),
    ("white", 0): (539, 248, 180, 172, 130, 83, 55, 32, 30, 19),
    ("white", 1): (142, 113, 93, 113, 111, 111, 88, 82, 68, 45),
}


def deciles() -> pd.DataFrame:
    rows = []
    for (race, charged), numbers in DECILES.items():
        for decile, number in enumerate(numbers, 1):
            rows.append((race, charged, decile, int(decile > 4), number))
    return pd.DataFrame(rows, columns=["race", "charged", "decile", "risk", ROWS])


def scored(seed: int, *, apart: float = 1.0, bias: float = 0.0, rows: int = 3_000) -> pd.DataFrame:
    """A score that is the chance of being charged; that of b is so many logits lower than it says,
    and their scores are *apart* by so many SD.
    """
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, rows)
    logit = rng.normal(apart * group - 0.5, 1)
    came = rng.random(rows) < 1 / (1 + np.exp(-(logit - bias * group)))
    score = 1 / (1 + np.exp(-logit))
    return pd.DataFrame(
        {"race": np.array(["a", "b"])[group], "score": score, "charged": came.astype(int)}
    )


def outside(*arguments: Any, **given: Any) -> Finding:
    """Assert as outside of this session, whose findings those are not."""
    return contextvars.Context().run(lambda: assert_equal_error_rates(*arguments, **given))


def test_calibration_by_hand() -> None:
    """COMPAS by decile: Cochran–Mantel–Haenszel and the common odds ratio of statsmodels; who was
    observed and expected, from the published counts.
    """
    *rates, finding = analyze_error_rates(
        deciles(), "risk", "race", score="decile", lower_is_worse=False, **GIVEN
    )
    assert tuple(rate.verdict for rate in rates) == VERDICTS
    assert finding.verdict is Verdict.PASS
    assert {made.family["alpha"] for made in (*rates, finding)} == {0.01}
    (pair,) = finding.pairs
    tables = [
        np.array(
            [[DECILES[race, charged][place] for charged in (1, 0)] for race in ("black", "white")]
        )
        for place in range(10)
    ]
    by_statsmodels = StratifiedTable(tables)
    assert pair.p_row == pytest.approx(by_statsmodels.test_null_odds().pvalue, rel=1e-9)
    assert pair.statistics["odds_ratio"] == pytest.approx(by_statsmodels.oddsratio_pooled, rel=1e-9)
    calibration: Any = finding.details["calibration"]
    rows = {(row["group"], row["bin"]): row for row in calibration["rows"]}
    assert [row["bin"] for row in calibration["rows"]][:10] == [
        str(place) for place in range(1, 11)
    ]
    expected = {"black": 0.0, "white": 0.0}
    for place, table in enumerate(tables):
        for group, (yes, no) in zip(("black", "white"), table.tolist(), strict=True):
            row = rows[group, str(place + 1)]
            assert (row["n"], row["score"]) == (yes + no, place + 1)
            assert row["observed"] == pytest.approx(yes / (yes + no))
            assert row["expected"] == pytest.approx(table[:, 0].sum() / table.sum())
            interval = proportion_confint(yes, yes + no, method="wilson")
            assert (row["low"], row["high"]) == pytest.approx(interval)
            expected[group] += row["n"] * row["expected"]
    shares = expected["black"] / 3696, expected["white"] / 2454
    assert shares == pytest.approx((0.5070, 0.4047), abs=5e-5)
    assert "50.7 % of black and 40.5 % of white were to be expected." in finding.sentence


def test_what_a_score_means_is_red_no_more_often_than_its_level() -> None:
    """By simulation: of 20 tables with calibrated scores of groups an SD apart as few as chance has
    it, and each of 8 with one that says 1.5 logits too much of a group.
    """
    red = {0.0: 0, 1.5: 0}
    for bias, tables in ((0.0, 20), (1.5, 8)):
        for seed in range(tables):
            (finding,) = analyze_error_rates(
                scored(seed, bias=bias), "score", "race", lower_is_worse=False, **GIVEN
            )
            red[bias] += finding.verdict in ALARMS
            assert "score (" in " ".join(finding.notes)  # in ten bins
    assert red[0.0] <= stats.binom.ppf(0.999, 20, 0.05)
    assert red[1.5] == 8


@pytest.mark.parametrize(("lower_is_worse", "worse_off"), [(False, "b"), (True, "a")])
def test_who_deserves_the_score_least_is_worse_off(lower_is_worse: bool, worse_off: str) -> None:
    """At an equal score b is charged more seldom: worse off where the score speaks against people,
    better off where it speaks for them.
    """
    (finding,) = analyze_error_rates(
        scored(1, bias=1.5), "score", "race", lower_is_worse=lower_is_worse, **GIVEN
    )
    assert finding.pairs[0].worse_off == worse_off


def test_calibration_is_the_disparity_of_truth_within_the_score() -> None:
    """By another way: strata of the score in ten bins, made by pandas."""
    table = scored(2, bias=0.7)
    (finding,) = analyze_error_rates(table, "score", "race", lower_is_worse=False, **GIVEN)
    made = table.assign(tenth=pd.qcut(table["score"], 10).astype(str))
    alone = analyze_disparity(
        made, "charged", "race", cluster=None, block="tenth", kind="binary", lower_is_worse=True
    )
    assert finding.pairs[0].effect == pytest.approx(alone.pairs[0].effect, rel=1e-12)
    assert finding.pairs[0].p_value == pytest.approx(alone.pairs[0].p_value, rel=1e-12)
    assert finding.verdict is alone.verdict
    rows: Any = finding.details["calibration"]
    table["bin"] = pd.qcut(table["score"], 10, labels=False)
    observed = table.groupby(["race", "bin"])[["charged", "score"]].mean()
    assert [row["observed"] for row in rows["rows"]] == pytest.approx(observed["charged"].tolist())
    assert [row["score"] for row in rows["rows"]] == pytest.approx(observed["score"].tolist())


def test_labels_are_scores_too() -> None:
    """Low, medium, high: in their own order there is none, by their letters."""
    table = deciles()
    table["level"] = np.where(
        table["decile"] > 7, "high", np.where(table["decile"] > 4, "mid", "low")
    )
    finding = analyze_error_rates(table, "risk", "race", score="level", **GIVEN)[-1]
    rows: Any = finding.details["calibration"]
    assert [row["bin"] for row in rows["rows"]] == ["high", "low", "mid"] * 2
    assert "score" not in rows["rows"][0]


def test_what_would_be_were_two_of_them_equal() -> None:
    """By hand: of 1,000 and 300 who are yes 80 % are found, and of those found 80 % are right; so 200
    of 1,000 and 60 of 900 others are taken for yes, 20.0 and 6.7 %.
    """
    numbers = [
        *(("a", 1, 1, 800), ("a", 1, 0, 200), ("a", 0, 1, 200), ("a", 0, 0, 800)),
        *(("b", 1, 1, 240), ("b", 1, 0, 60), ("b", 0, 1, 60), ("b", 0, 0, 840)),
    ]
    table = pd.DataFrame(numbers, columns=["race", "charged", "risk", ROWS])
    findings = analyze_error_rates(table, "risk", "race", lower_is_worse=False, **GIVEN)
    assert findings[1].verdict in ALARMS
    told = (
        "were true-positive rates and positive predictive values equal, 80.0 % and 80.0 % as over "
        "all, the false-positive rate would be 20.0 % in a and 6.7 % in b, where 50.0 % and 25.0 % "
        "are yes"
    )
    for finding in findings:
        assert told in finding.notes
    values = {group.group: group.value for group in findings[1].group_results}
    assert values == {"a": pytest.approx(0.2), "b": pytest.approx(60 / 900)}


# ---------------------------------------------------------------- each and within


def test_each_rate_in_each_firm() -> None:
    """As the disparity of the rows that it is about; a firm that has none is not judged, and no
    PASS: it counts as one of which all people are of one group.
    """
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {"race": rng.choice(["a", "b"], 3000), "firm": rng.choice(list("XYZ"), 3000)}
    )
    table["charged"] = np.where(table["firm"] == "Z", 1, rng.integers(0, 2, 3000))
    table["risk"] = rng.integers(0, 2, 3000)
    given = {**GIVEN, "each": "firm", "correction": "fdr_bh"}
    findings = analyze_error_rates(table, "risk", "race", **given)
    known = table[table["charged"] == 0]
    alone = analyze_disparity(
        known,
        "risk",
        "race",
        cluster=None,
        block=None,
        each="firm",
        correction="fdr_bh",
        alpha=0.0125,
        _parts=("X", "Y", "Z"),
    )
    assert [pair.corrected_p_value for pair in findings[1].pairs] == [
        pair.corrected_p_value for pair in alone.pairs
    ]
    parts: Any = findings[1].details["each"]
    assert [row["label"] for row in parts["rows"]] == ["X", "Y", "Z"]
    (of_z,) = (row for row in parts["rows"] if row["label"] == "Z")
    assert (of_z["verdict"], of_z["reason"]) == ("INCONCLUSIVE", "N")
    assert of_z["needs"] == "a row that the false-positive rate (risk where charged is no) is about"
    assert "too small to judge" in findings[1].sentence
    assert findings[1].verdict is not Verdict.PASS
    of_all: Any = findings[0].details["each"]
    assert all(row["reason"] != "N" for row in of_all["rows"])


@pytest.mark.parametrize("within", [None, "year"])
def test_a_disparity_is_planted_in_what_a_rate_counts(within: str | None) -> None:
    """As in the disparity of the rows that it is about, at its share of the level; never elsewhere."""
    rng = np.random.default_rng(4)
    columns = {name: rng.integers(0, 2, 4_000) for name in ("charged", "risk", "year")}
    table = pd.DataFrame({"race": rng.choice(["a", "b"], 4_000), **columns})
    plain = dict.fromkeys(("score", "each", "positive", "positive_truth", "favourable"))
    small = {"copies": 1, "splits": 2, "bins": 5, "alpha": 0.05, "correction": "bonferroni"}
    given = {**GIVEN, **plain, **small, "within": within, "lower_is_worse": None}
    rate = {"rate": "false_positive", "stratified": within is not None}
    tried = sensitivity_of("error_rates", table, "risk", "race", **rate, **given)
    assert tried is not None
    assert tried.caught == {0.5: 1.0, 0.8: 1.0}
    one_sided = table[(table["charged"] == 1) | (table["race"] == "a")]
    with pytest.raises(FrameError, match="holds one group only"):
        sensitivity_of("error_rates", one_sided, "risk", "race", **rate, **given)


def test_a_firm_that_no_rate_is_about_keeps_all_from_passing() -> None:
    """Where the other firms are alike, its finding says whom nobody is compared with."""
    size = 4_000
    turns = np.arange(3 * size)
    table = pd.DataFrame(
        {
            "race": np.where(turns % 2, "a", "b"),
            "firm": np.array(list("XYZ"))[turns // size],
            "charged": np.where(turns // size == 2, 1, turns // 2 % 2),
            "risk": turns // 4 % 2,
        }
    )
    false_positive = analyze_error_rates(table, "risk", "race", **GIVEN, each="firm")[1]
    assert (false_positive.verdict, false_positive.reason) == (Verdict.INCONCLUSIVE, Reason.N)
    assert "nobody of Z is compared" in false_positive.sentence


def test_within_strata_each_rate_is_compared_twice() -> None:
    """One family of eight; each stratified finding is that of ``analyze_strata``."""
    table = pd.concat([rows_of(COMPAS)] * 2, ignore_index=True)
    table["age"] = np.where(np.arange(len(table)) % 3, "young", "old")
    findings = analyze_error_rates(
        table, "risk", "race", within="age", lower_is_worse=False, **GIVEN
    )
    assert [finding.block for finding in findings] == [None, "age"] * 4
    assert {finding.family["alpha"] for finding in findings} == {0.05 / 8}
    assert "within strata of age it is FAIL" in findings[2].notes
    assert "without strata it is FAIL" in findings[3].notes
    about = table[table["charged"] == 0]
    alone = analyze_strata(
        about, "risk", "race", within="age", cluster=None, alpha=0.05 / 8, lower_is_worse=False
    )
    assert findings[3].pairs[0].p_value == pytest.approx(alone.pairs[0].p_value, rel=1e-12)
    assert findings[3].sentence.startswith("Within strata of age: FAIL: black is worse off")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": "race"}, "score='race' stands for something else already"),
        ({"score": "charged"}, "score='charged' stands for something else already"),
        ({"within": "decile", "score": "decile"}, "within='decile' is compared"),
        ({"within": []}, "within= is empty"),
        ({"outcome": "decile", "score": "risk"}, "holds many values, and is the score itself"),
        ({"outcome": "decile", "positive": 1}, "holds many values, and is the score itself"),
        ({"score": "decil"}, "no column"),
    ],
)
def test_what_no_score_can_be_is_said(change: dict[str, Any], message: str) -> None:
    given = {"outcome": "risk", "by": "race", **GIVEN, **change}
    with pytest.raises((FrameError, UsageError), match=message):
        analyze_error_rates(deciles(), **given)


def test_a_missing_score_is_no_score() -> None:
    table = deciles().astype({"decile": float})
    table.loc[0, "decile"] = math.nan
    with pytest.raises(
        FrameError, match="'decile' is missing in 307 rows, which belong to no score"
    ):
        analyze_error_rates(table, "risk", "race", score="decile", **GIVEN)


# ---------------------------------------------------------------- the assertion


def test_one_finding_is_made_by_itself() -> None:
    """As ``verify`` makes it: the same in every field, but for what it says of another."""
    given = {
        **GIVEN,
        "score": "decile",
        "within": "age",
        "each": None,
        "bins": 5,
        "alpha": 0.05,
        "correction": "bonferroni",
        "lower_is_worse": False,
        **dict.fromkeys(("positive", "positive_truth", "favourable")),
    }
    table = deciles().assign(age=lambda table: np.where(np.arange(len(table)) % 2, "old", "young"))
    findings = findings_by_rate(table, "risk", "race", **given)
    assert len(findings) == 10
    for which, finding in findings:
        alone = analyze_error_rate(table, "risk", "race", **which, **given)
        assert alone.to_dict() | {"notes": []} == finding.to_dict() | {"notes": []}
        assert set(alone.notes) < set(finding.notes)
    for wrong in (
        {"rate": "recall", "stratified": False},
        {"rate": "calibration", "stratified": True},
    ):
        with pytest.raises(UsageError, match=r"it is one of true_positive|no strata are given"):
            analyze_error_rate(table, "risk", "race", **wrong, **{**given, "within": None})


@pytest.mark.parametrize("engine", [lambda table: table, pl.from_pandas, rows_of])
def test_the_assertion_raises_the_worst_with_all_messages(engine: Any) -> None:
    given = {"score": "decile", "lower_is_worse": False, **GIVEN}
    expected = analyze_error_rates(deciles(), "risk", "race", **given)
    with pytest.raises(FairnessFailure) as caught:
        outside(engine(deciles()), "risk", "race", **given)
    assert caught.value.finding.sentence == expected[1].sentence
    message = " ".join(str(caught.value).split())
    assert message.index(expected[0].sentence) < message.index(expected[1].sentence)
    assert expected[2].sentence not in message


def test_equal_rates_pass() -> None:
    chance = np.random.default_rng(1)
    rows = pd.DataFrame({"race": ["a", "b"] * 2000, "charged": chance.integers(0, 2, 4000)})
    rows["risk"] = np.where(chance.random(4000) < 0.8, rows.charged, 1 - rows.charged)
    assert outside(rows, "risk", "race", **GIVEN).verdict is Verdict.PASS
    with pytest.raises(UsageError, match="is the outcome itself"):
        outside(rows, "risk", "race", truth="risk")


def test_the_test_that_assess_writes_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table = rows_of(deciles())
    table["risk"] = table["risk"].map({0: "low", 1: "high"})
    table.to_csv("compas.csv", index=False)
    options = ["--outcome", "risk", "--by", "race", "--truth", "charged", "--score", "decile"]
    options += ["--positive", "high", "--favourable", "low", "--json"]
    assert main(["assess", "compas.csv", *options, "--as-test", "test_compas.py"]) == 1
    shown = json.loads(capsys.readouterr().out)
    judged = findings_of_test(tmp_path, "test_compas.py")
    assert [finding["sentence"] for finding in judged] == [made["sentence"] for made in shown]
    assert len(judged) == 6
    assert main(["assess", "compas.csv", *options[:4], "--score", "decile"]) == 2
    assert "--score goes with --truth" in capsys.readouterr().err
