"""An outcome compared as it is and, beside that, among people who are alike in some columns."""

from __future__ import annotations

import contextvars
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import StratifiedTable

from pytest_fairness import (
    FairnessFailure,
    Finding,
    Reason,
    Verdict,
    analyze_disparity,
    analyze_equivalence,
    analyze_four_fifths,
    analyze_within,
    assert_equivalent,
    assert_four_fifths,
    assert_no_disparity,
    counts_of,
)
from pytest_fairness.analysis.strata import _edges
from pytest_fairness.cli import main
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.statistics.arrays import ROWS, every_row
from tests.support.sessions import findings_of_test

#: Admissions to six departments of Berkeley in 1973 (Bickel, Hammel and O'Connell 1975): men
#: admitted and rejected, women admitted and rejected.
BERKELEY = {
    "A": (512, 313, 89, 19),
    "B": (353, 207, 17, 8),
    "C": (120, 205, 202, 391),
    "D": (138, 279, 131, 244),
    "E": (53, 138, 94, 299),
    "F": (22, 351, 24, 317),
}
WITHIN: dict[str, Any] = {"within": "department", "cluster": None}
RATIOS: dict[str, Any] = {**WITHIN, "analysis": "four_fifths", "favourable": "yes"}


def admissions() -> pd.DataFrame:
    """The published counts."""
    rows = []
    for department, numbers in BERKELEY.items():
        for place, number in enumerate(numbers):
            gender = ("male", "female")[place // 2]
            rows.append((gender, department, ("yes", "no")[place % 2], number))
    return pd.DataFrame(rows, columns=["gender", "department", "admitted", "number_of_rows"])


def people(seed: int, *, direct: float = 0.0, rows: int = 1_500) -> pd.DataFrame:
    """Group b has the lower income, which decides; *direct*: what being of b takes off besides, in
    logits.
    """
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, rows)
    income = rng.normal(50 - 8 * group, 10)
    chance = 1 / (1 + np.exp(-((income - 46) / 6 - direct * group)))
    granted = rng.random(rows) < chance
    return pd.DataFrame(
        {"group": np.array(["a", "b"])[group], "income": income, "granted": granted}
    )


def outside(*arguments: Any, **given: Any) -> Finding:
    """Assert as outside of this session, whose findings those are not."""
    return contextvars.Context().run(lambda: assert_no_disparity(*arguments, **given))


def test_berkeley_by_hand() -> None:
    """The plain figure and that within departments, by the published counts and by R: the common
    odds ratio .9047 of men to women (``mantelhaen.test(UCBAdmissions)``).
    """
    plain, within = analyze_within(admissions(), "admitted", "gender", **WITHIN)
    assert plain.verdict is Verdict.FLAG
    assert "30.4 % against 44.5 %" in plain.sentence
    (pair,) = within.pairs
    assert 1 / pair.statistics["odds_ratio"] == pytest.approx(0.9046968, abs=1e-6)
    tables = [np.reshape(numbers, (2, 2)) for numbers in BERKELEY.values()]
    by_statsmodels = StratifiedTable(tables).test_null_odds(correction=False)
    assert pair.p_row == pytest.approx(by_statsmodels.pvalue, rel=1e-9)
    # The one department in which they differ admits more women.
    assert within.sentence.startswith("Within strata of department: FLAG: in department 'A'")
    assert "explained" not in within.sentence


def test_each_says_how_the_other_is() -> None:
    plain, within = analyze_within(admissions(), "admitted", "gender", **WITHIN)
    assert "within strata of department it is FLAG" in plain.notes
    assert "without strata it is FLAG" in within.notes
    for finding in (plain, within):
        assert finding.family["alpha"] == pytest.approx(0.025)
        assert any("share their level as one family" in note for note in finding.notes)


def test_counts_rows_and_a_reduction_give_the_same() -> None:
    counts = admissions()
    rows = every_row(counts)
    reduced = counts_of(rows, "admitted", ["gender", "department"])
    findings = [
        analyze_within(table, "admitted", "gender", **WITHIN) for table in (counts, rows, reduced)
    ]
    for finding in zip(*findings, strict=True):
        effects = {round(made.pairs[0].effect, 9) for made in finding}
        assert len(effects) == 1
        assert len({made.sentence for made in finding}) == 1


def test_numbers_stand_in_bins_of_equally_many_rows() -> None:
    """The same as with the bins made before; the note says so; few values stay as they are."""
    table = people(1)
    _, within = analyze_within(table, "granted", "group", within="income", cluster=None)
    made = table.assign(income=pd.qcut(table["income"], 5).astype(str))
    by_hand = analyze_disparity(made, "granted", "group", cluster=None, block="income", alpha=0.025)
    assert within.pairs[0].effect == pytest.approx(by_hand.pairs[0].effect, rel=1e-12)
    assert any("in 5 bins of equally many rows" in note for note in within.notes)
    few = table.assign(income=(table["income"] // 20).astype(int))
    _, within = analyze_within(few, "granted", "group", within="income", cluster=None)
    assert not any("bins" in note for note in within.notes)
    assert not any(
        "bins" in note
        for note in analyze_within(admissions(), "admitted", "gender", **WITHIN)[1].notes
    )


@pytest.mark.parametrize("bins", [2, 3, 5, 7])
def test_edges_are_the_quantiles_of_the_rows(bins: int) -> None:
    """Exactly those of numpy, from rows and from counts of them."""
    rng = np.random.default_rng(bins)
    for size in (11, 50, 1_001):
        values = rng.normal(size=size).round(1)
        expected = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)))
        rows = pd.DataFrame({"income": values})
        counts = rows.value_counts().rename(ROWS).reset_index()
        for table in (rows, counts):
            made = _edges(table, "income", bins)
            assert made.cat.categories.right.tolist() == pytest.approx(expected[1:], abs=1e-6)
            by_numpy = pd.cut(table["income"], list(expected), include_lowest=True, precision=6)
            assert made.cat.codes.tolist() == by_numpy.cat.codes.tolist()


def test_bins_of_counts_are_those_of_their_rows() -> None:
    rows = people(2, rows=600).assign(income=lambda table: table["income"].round())
    counts = rows.groupby(["group", "income", "granted"]).size().rename("number_of_rows")
    by_rows, by_counts = (
        analyze_within(table, "granted", "group", within="income", bins=4, cluster=None)[1]
        for table in (rows, counts.reset_index())
    )
    assert by_counts.pairs[0].effect == pytest.approx(by_rows.pairs[0].effect, rel=1e-9)


def test_strata_of_several_columns_and_a_block() -> None:
    """They are crossed, and each is named."""
    table = people(3).assign(year=lambda table: np.where(np.arange(len(table)) % 2, "2024", "2025"))
    table["branch"] = np.where(np.arange(len(table)) % 3, "north", "south")
    plain, within = analyze_within(
        table, "granted", "group", within=["income", "branch"], block="year", cluster=None
    )
    assert plain.block == "year"
    assert within.block == "income × branch × year"
    assert within.sentence.startswith("Within strata of income, branch: ")


def test_labels_with_commas_are_no_other_stratum() -> None:
    """``a, b`` with ``c`` is not ``a`` with ``b, c``: nobody there is compared with the others."""
    table = people(4)
    first = table["group"] == "a"
    table["grade"] = np.where(first, "a, b", "a")
    table["branch"] = np.where(first, "c", "b, c")
    with pytest.raises(FrameError, match="no stratum of grade, branch holds two groups"):
        analyze_within(table, "granted", "group", within=["grade", "branch"], cluster=None)


def test_rows_with_nobody_to_be_compared_with_are_told() -> None:
    table = admissions()
    alone = (table["department"] == "F") & (table["gender"] == "female")
    notes = analyze_within(table[~alone], "admitted", "gender", **WITHIN)[1].notes
    assert any("8.9 % of the rows stand in a stratum of one group alone" in note for note in notes)


@pytest.mark.parametrize(
    ("changed", "given", "message"),
    [
        ({}, {"within": []}, "within= is empty"),
        ({}, {"within": ["department", "department"]}, "within: the column"),
        ({}, {"within": "gender"}, "within='gender' is compared"),
        ({}, {"within": "admitted"}, "within='admitted' is compared"),
        ({}, {"within": "department", "bins": 1}, "bins=1: give a number from 2 to 100"),
        ({}, {"within": "income"}, "no column of the table"),
        (
            {"department": ["A", None] * 12},
            {"within": "department"},
            "column 'department' is missing in",
        ),
        (
            {"department": ["m"] * 2 + ["f"] * 2},
            {"within": "department"},
            "no stratum of department holds two groups of gender",
        ),
    ],
)
def test_a_mistake_is_named(
    changed: dict[str, list[str | None]], given: dict[str, Any], message: str
) -> None:
    table = admissions()
    for column, values in changed.items():
        table[column] = (values * 24)[: len(table)]
    with pytest.raises((FrameError, UsageError)) as error:
        analyze_within(table, "admitted", "gender", cluster=None, **given)
    assert message in str(error.value)


def test_who_decides_by_income_alone_passes_within_strata() -> None:
    """By simulation, of 25 tables: the plain figure differs in all; within strata a fair decision
    is red no more often than its level, and a direct difference of .36 d is found.
    """
    red = {0.0: 0, 1.1: 0}
    for direct in red:
        for seed in range(25):
            table = people(seed, direct=direct)
            plain, within = analyze_within(table, "granted", "group", within="income", cluster=None)
            assert plain.verdict in (Verdict.FLAG, Verdict.FAIL)
            red[direct] += within.verdict in (Verdict.FLAG, Verdict.FAIL)
    assert red[0.0] <= stats.binom.ppf(0.999, 25, 0.05)
    assert red[1.1] >= 23


def test_the_assertion_gives_the_figures_of_the_analysis() -> None:
    """By rows, counts and another engine; the worse of the two is raised, with both messages."""
    table = people(5)
    expected = analyze_within(table, "granted", "group", within="income", cluster=None)
    counts = table.groupby(["group", "income", "granted"]).size().rename(ROWS).reset_index()
    for given in (table, pl.from_pandas(table), counts):
        with pytest.raises(FairnessFailure) as caught:
            outside(given, "granted", "group", within="income", cluster=None)
        assert caught.value.finding.verdict is expected[0].verdict
        assert caught.value.finding.sentence == expected[0].sentence
    with pytest.raises(FairnessFailure) as caught:
        outside(people(5, direct=1.8), "granted", "group", within=["income"], cluster=None)
    first, second = str(caught.value).split("Within strata of income: ")
    assert first.startswith("FAIL: b is worse off than a on granted")
    assert second.startswith("FAIL: b is worse off than a on granted")


def test_the_worse_of_two_that_hold_is_returned() -> None:
    fair = people(6).assign(granted=lambda table: np.arange(len(table)) % 2 == 0)
    finding = outside(fair, "granted", "group", within="income", cluster=None)
    assert finding.verdict is Verdict.PASS
    assert any("share their level as one family" in note for note in finding.notes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"outcome": ["granted", "income"], "within": "group"}, "assert each outcome by itself"),
        ({"within": "group"}, "within='group' is compared"),
        ({"within": "incme"}, "no column of the table"),
        ({"within": []}, "within= is empty"),
        ({"within": "income", "bins": 1}, "bins=1: give a number from 2 to 100"),
        ({"bins": 4}, "bins=4 is about the strata of within="),
    ],
)
def test_a_mistake_of_the_assertion_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises((FrameError, UsageError)) as error:
        outside(people(1), **{"outcome": "granted", "by": "group", "cluster": None, **given})
    assert message in str(error.value)
    with pytest.raises(UsageError, match="analyze_within gives both"):
        analyze_disparity(people(1), "granted", "group", within="income", cluster=None)


def test_the_test_that_assess_writes_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    people(7).to_csv("people.csv", index=False)
    options = ["--outcome", "granted", "--by", "group", "--within", "income", "--json"]
    assert main(["assess", "people.csv", *options, "--as-test", "test_granted.py"]) == 1
    shown = json.loads(capsys.readouterr().out)
    judged = findings_of_test(tmp_path, "test_granted.py")
    assert [finding["sentence"] for finding in judged] == [made["sentence"] for made in shown]


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both findings, as the analysis has them; and what does not go with it."""
    monkeypatch.chdir(tmp_path)
    admissions().to_csv("admissions.csv", index=False)
    options = ["assess", "admissions.csv", "--outcome", "admitted", "--by", "gender"]
    assert main([*options, "--within", "department", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    expected = analyze_within(admissions(), "admitted", "gender", **WITHIN)
    assert [finding["sentence"] for finding in shown] == [made.sentence for made in expected]
    ratios = ["--within", "department", "--four-fifths", "--favourable", "yes", "--json"]
    assert main([*options, *ratios]) == 1
    shown = json.loads(capsys.readouterr().out)
    expected = analyze_within(admissions(), "admitted", "gender", **RATIOS)
    assert [finding["sentence"] for finding in shown] == [made.sentence for made in expected]
    for wrong, message in (
        (["--within", "departments"], "--within: admissions.csv has no column 'departments'"),
        (["--within", "gender"], "within='gender' is compared"),
    ):
        assert main([*options, *wrong]) == 2
        assert message in capsys.readouterr().err


# ---------------------------------------------------------------- ratios and margins


def test_the_ratio_within_departments_by_hand() -> None:
    """Mantel and Haenszel's by statsmodels; its variance as Greenland and Robins (1985) have it,
    department by department.
    """
    plain, within = analyze_within(admissions(), "admitted", "gender", **RATIOS)
    assert (plain.verdict, within.verdict) == (Verdict.FAIL, Verdict.PASS)
    (pair,) = within.pairs
    tables = [np.reshape(numbers, (2, 2)) for numbers in BERKELEY.values()]
    men = StratifiedTable(tables).riskratio_pooled
    assert pair.statistics["impact_ratio"] == pytest.approx(men, rel=1e-12)
    top = men_sum = women_sum = 0.0
    for a, b, c, d in BERKELEY.values():
        n1, n2, total = a + b, c + d, a + b + c + d
        top += (n1 * n2 * (a + c) - a * c * total) / total**2
        men_sum += a * n2 / total
        women_sum += c * n1 / total
    error = np.sqrt(top / (men_sum * women_sum))
    low, high = men * np.exp(-1.959964 * error), men * np.exp(1.959964 * error)
    assert pair.statistics["impact_ratio_low"] == pytest.approx(low, rel=1e-6)
    assert pair.statistics["impact_ratio_high"] == pytest.approx(high, rel=1e-6)
    p = StratifiedTable(tables).test_null_odds(correction=False).pvalue
    assert pair.p_row == pytest.approx(p, rel=1e-9)
    assert pair.worse_off == "male"
    assert "that of female 33.4 % at equal strata (30.4 % of 1,835)" in within.sentence
    assert "without strata it is FAIL" in within.notes


def test_ratios_of_counts_and_rows_are_the_same() -> None:
    counts = admissions()
    expected = analyze_within(counts, "admitted", "gender", **RATIOS)
    for table in (every_row(counts), counts_of(counts, "admitted", ["gender", "department"])):
        made = analyze_within(table, "admitted", "gender", **RATIOS)
        assert [finding.sentence for finding in made] == [finding.sentence for finding in expected]


def test_one_stratum_is_none() -> None:
    """A ratio within a single stratum is the plain one; of the same rates in each, too."""
    table = people(8).assign(same="all")
    plain = analyze_four_fifths(table, "granted", "group", cluster=None).pairs[0]
    within = analyze_within(
        table, "granted", "group", within="same", cluster=None, analysis="four_fifths", alpha=0.1
    )[1].pairs[0]
    for name in ("impact_ratio", "impact_ratio_low", "impact_ratio_high", "shortfall"):
        assert within.statistics[name] == pytest.approx(plain.statistics[name], rel=1e-9)
    assert within.p_value == pytest.approx(plain.p_value, rel=1e-3)  # with N - 1 in place of N
    assert within.statistics["flip_flop"] is plain.statistics["flip_flop"]


def test_exactly_four_fifths_in_each_stratum_is_not_below() -> None:
    """Of 30 and 70 a stratum .4 and .5, or .24 and .3; by floating point that is below."""
    rows = []
    for stratum, favoured, against in (("x", 0.4, 0.5), ("y", 0.24, 0.3)):
        for group, rate, size in (("a", favoured, 350), ("b", against, 170)):
            rows += [(stratum, group, True, round(rate * size)), (stratum, group, False, 0)]
            rows[-1] = (stratum, group, False, size - round(rate * size))
    table = pd.DataFrame(rows, columns=["stratum", "group", "hired", ROWS])
    within = analyze_within(
        table, "hired", "group", within="stratum", cluster=None, analysis="four_fifths"
    )[1]
    assert within.pairs[0].statistics["impact_ratio"] == pytest.approx(0.8, rel=1e-12)
    assert within.pairs[0].statistics["below_four_fifths"] is False


def test_who_is_favoured_nowhere_has_a_ratio_of_nothing() -> None:
    table = admissions()
    table.loc[(table["gender"] == "female") & (table["admitted"] == "yes"), ROWS] = 0
    within = analyze_within(table, "admitted", "gender", **RATIOS)[1]
    assert within.verdict is Verdict.FAIL
    assert within.pairs[0].statistics["impact_ratio"] == 0
    assert within.pairs[0].statistics["clustered_impact_ratio_high"] < 0.1


def test_a_count_of_none_is_no_row() -> None:
    """The same figures with and without rows that stand for nobody."""
    table = admissions()
    table.loc[(table["department"] == "C") & (table["admitted"] == "yes"), ROWS] = 0
    for given in (WITHIN, RATIOS):
        expected = analyze_within(table[table[ROWS] > 0], "admitted", "gender", **given)
        made = analyze_within(table, "admitted", "gender", **given)
        assert [finding.sentence for finding in made] == [finding.sentence for finding in expected]


def test_groups_that_share_no_stratum_have_no_ratio() -> None:
    """Of three, two share one; the third meets the reference in none."""
    table = people(9)
    table["group"] = np.where(np.arange(len(table)) % 3 == 0, "c", table["group"])
    table["branch"] = np.where(table["group"] == "c", "south", "north")
    within = analyze_within(
        table, "granted", "group", within="branch", cluster=None, analysis="four_fifths"
    )[1]
    pairs = {pair.group_1: pair for pair in within.pairs}
    assert pairs["c"].reason is Reason.RAGGED
    assert pairs["b"].reason is not Reason.RAGGED


def test_a_ratio_within_strata_of_who_decides_by_income_alone() -> None:
    """By simulation, of 20 tables each: the plain ratio fails; within strata of income a fair
    decision is red no more often than its level, and one that takes two logits off is found.
    """
    given: dict[str, Any] = {"within": "income", "cluster": None, "analysis": "four_fifths"}
    red = {0.0: 0, 2.0: 0}
    for direct in red:
        for seed in range(20):
            table = people(seed, direct=direct)
            plain, within = analyze_within(table, "granted", "group", bins=10, **given)
            assert plain.verdict is Verdict.FAIL
            red[direct] += within.verdict in (Verdict.FLAG, Verdict.FAIL)
    assert red[0.0] <= stats.binom.ppf(0.999, 20, 0.05)
    assert red[2.0] == 20


def test_a_margin_within_strata_is_that_of_their_blocks() -> None:
    table = people(1)
    given: dict[str, Any] = {"cluster": None, "margin": 3.0}
    plain, within = analyze_within(
        table, "income", "group", within="granted", analysis="equivalence", **given
    )
    alone = analyze_equivalence(table, "income", "group", block="granted", alpha=0.025, **given)
    assert within.pairs[0].p_value == pytest.approx(alone.pairs[0].p_value, rel=1e-12)
    assert within.pairs[0].difference == pytest.approx(alone.pairs[0].difference, rel=1e-12)
    as_it_is = analyze_equivalence(table, "income", "group", block=None, alpha=0.025, **given)
    assert plain.pairs[0].p_value == as_it_is.pairs[0].p_value


@pytest.mark.parametrize("engine", [lambda table: table, pl.from_pandas])
@pytest.mark.parametrize(
    ("assertion", "given"),
    [
        (assert_four_fifths, {"analysis": "four_fifths"}),
        (assert_equivalent, {"analysis": "equivalence", "margin": 0.05}),
    ],
)
def test_the_other_assertions_have_strata_too(
    engine: Any, assertion: Any, given: dict[str, Any]
) -> None:
    """Both figures in the message, the worse one raised, as the analysis has them."""
    table = people(5, direct=2.0)
    expected = analyze_within(table, "granted", "group", within="income", cluster=None, **given)
    asked = {name: value for name, value in given.items() if name != "analysis"}
    with pytest.raises(FairnessFailure) as caught:
        contextvars.Context().run(
            lambda: assertion(
                engine(table), "granted", "group", within="income", cluster=None, **asked
            )
        )
    message = " ".join(str(caught.value).split())
    for finding in expected:
        assert finding.sentence in message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"analysis": "error_rates"}, "it is one of disparity, four_fifths, equivalence"),
        ({"analysis": "four_fifths", "bare_ratio": True}, "leave one of them out"),
        ({"analysis": "four_fifths", "labels": "granted"}, "leave one of them out"),
    ],
)
def test_what_no_strata_can_be_compared_by_is_said(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        analyze_within(people(1), "granted", "group", within="income", cluster=None, **given)
