"""The same groups compared in each of many firms, as one family."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from pytest_fairness import (
    Finding,
    PairResult,
    Reason,
    Verdict,
    analyze_disparity,
    analyze_equivalence,
    analyze_four_fifths,
    analyze_within,
    counts_of,
)
from pytest_fairness.cli import main
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import ALARMS
from pytest_fairness.reports.plain_text import finding_text
from pytest_fairness.statistics.corrections import correct_parts

GIVEN: dict[str, Any] = {"cluster": None, "each": "firm", "correction": "fdr_bh"}


def firms(
    biased: int, fair: int, *, seed: int = 1, rows: int = 300, gap: float = 0.25
) -> pd.DataFrame:
    """So many firms that take *gap* off the rate of one group, and so many that do not."""
    rng = np.random.default_rng(seed)
    firm = np.repeat(np.arange(biased + fair), rows)
    black = rng.integers(0, 2, firm.size)
    hired = rng.random(firm.size) < 0.5 - gap * black * (firm < biased)
    return pd.DataFrame(
        {
            "firm": [f"F{place:03d}" for place in firm],
            "race": np.array(["white", "black"])[black],
            "hired": hired,
        }
    )


def small(firm: str, white: int, black: int) -> pd.DataFrame:
    """A firm with so many rows a group, half of them hired."""
    race = ["white"] * white + ["black"] * black
    hired = [place % 2 == 0 for place in range(white + black)]
    return pd.DataFrame({"firm": firm, "race": race, "hired": hired})


def corrected_over_firms(
    finding: Finding, table: pd.DataFrame, analyze: Callable[..., Finding]
) -> list[PairResult]:
    """Check that *finding* has the p of each firm alone, corrected as statsmodels does over firms;
    give the pair of each firm alone.
    """
    alone = []
    for _, part in table.groupby("firm"):
        alone.append(analyze(part, "hired", "race", cluster=None).pairs[0])
    assert [pair.p_value for pair in finding.pairs] == [pair.p_value for pair in alone]
    expected = multipletests([pair.p_value for pair in alone], method="fdr_bh")[1]
    corrected = [pair.corrected_p_value for pair in finding.pairs]
    assert corrected == pytest.approx(list(expected), rel=1e-12)
    return alone


def test_the_correction_is_that_of_statsmodels_over_firms() -> None:
    """By hand: each firm's p as by an assertion of its own, then Benjamini–Hochberg over firms."""
    table = firms(3, 9, gap=0.12)
    finding = analyze_disparity(table, "hired", "race", **GIVEN)
    alone = corrected_over_firms(finding, table, analyze_disparity)
    assert [pair.effect for pair in finding.pairs] == [pair.effect for pair in alone]
    assert finding.family["size"] == 12


def test_of_several_groups_a_firm_counts_by_its_smallest_p() -> None:
    """Over firms as by statsmodels, Bonferroni within; a further test as a firm with its p would."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        p = rng.random(24) ** 3
        parts = np.repeat(np.arange(8), 3)
        corrected = correct_parts(p, parts, 10)
        within = np.minimum(3 * p.reshape(8, 3), 1)
        over = multipletests([*within.min(axis=1), 1.0, 1.0], method="fdr_bh")[1][:8]
        assert corrected.reshape(8, 3).min(axis=1) == pytest.approx(over, rel=1e-12)
        for place in range(24):
            swapped = within.min(axis=1).copy()
            swapped[place // 3] = within.ravel()[place]
            others = [*swapped, 1.0, 1.0]
            as_a_firm = multipletests(others, method="fdr_bh")[1][place // 3]
            assert corrected[place] <= as_a_firm + 1e-12
            assert corrected[place] >= over[place // 3] - 1e-12
    assert correct_parts(np.array([np.nan, 0.01]), np.array([0, 1]), 2).tolist() == [1.0, 0.02]


def test_the_sentence_names_how_many_of_how_many_and_which() -> None:
    table = pd.concat([firms(2, 9), small("S", 20, 20)], ignore_index=True)
    finding = analyze_disparity(table, "hired", "race", **GIVEN)
    assert finding.sentence.startswith(
        "FAIL: 2 of 12 firms differ on hired by race (F000 and F001); "
    )
    assert "9 show no difference larger than small; 1 is too small to judge" in finding.sentence
    assert "F000: black is worse off than F000: white on hired" in finding.sentence
    assert any("Benjamini–Hochberg over 12 firms" in note for note in finding.notes)


def test_a_row_a_firm() -> None:
    table = pd.concat([firms(2, 4), small("S", 20, 20), small("W", 80, 0)], ignore_index=True)
    finding = analyze_disparity(table, "hired", "race", **GIVEN)
    parts: Any = finding.details["each"]
    assert parts["column"] == "firm"
    verdicts = {row["label"]: (row["verdict"], row["reason"]) for row in parts["rows"]}
    assert len(verdicts) == 8
    assert verdicts["F000"][0] == "FAIL"
    assert verdicts["S"] == ("INCONCLUSIVE", "N")
    assert verdicts["W"] == ("INCONCLUSIVE", "N")
    assert len(finding.to_frame("pairs")) == 8
    text = finding_text(finding)
    assert "white – nobody else" in text
    assert next(line.split()[0] for line in text.splitlines() if "black – white" in line) in (
        "F000",
        "F001",
    )


def test_firms_too_small_never_pass() -> None:
    """Whatever the others are: the assertion is open, and says what it would take."""
    table = pd.concat([firms(0, 3), small("W", 80, 0)], ignore_index=True)
    finding = analyze_disparity(table, "hired", "race", **GIVEN)
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.N)
    assert "none of 4 firms is seen to differ on hired by race" in finding.sentence
    assert (
        "W: white has nobody to be compared with; it would take a second group" in finding.sentence
    )
    assert finding.pairs[-1].verdict is Verdict.INCONCLUSIVE
    for rows in range(2, 50, 4):
        equal = pd.concat([firms(0, 2), small("S", rows, rows)], ignore_index=True)
        made = analyze_disparity(equal, "hired", "race", **GIVEN)
        assert made.pairs[-1].verdict is Verdict.INCONCLUSIVE
    passing = analyze_disparity(firms(0, 3, rows=600), "hired", "race", **GIVEN)
    assert passing.verdict is Verdict.PASS
    assert passing.sentence.startswith("PASS: none of 3 firms is seen to differ")


def test_a_firm_with_one_group_counts_in_the_family() -> None:
    """Its p is 1: the others are corrected for it, by each method."""
    table = firms(1, 3, gap=0.2)
    more = pd.concat([table, small("W", 80, 0)], ignore_index=True)
    for correction in ("bonferroni", "holm", "fdr_bh"):
        given = {**GIVEN, "correction": correction}
        without = analyze_disparity(table, "hired", "race", **given)
        finding = analyze_disparity(more, "hired", "race", **given)
        assert finding.family["size"] == without.family["size"] + 1 == 5
        first, alone = finding.pairs[0], without.pairs[0]
        assert first.corrected_p_value == pytest.approx(alone.corrected_p_value * 5 / 4)


def test_counts_and_engines_give_the_same() -> None:
    """Rows of pandas and of polars, and their counts; a count of 0 is no firm."""
    table = firms(2, 4)
    rows = analyze_disparity(table, "hired", "race", **GIVEN)
    reduced = counts_of(table, "hired", ["race", "firm"]).table
    none = reduced.assign(firm="nobody", number_of_rows=0)
    for other in (pl.from_pandas(table), reduced, pd.concat([reduced, none], ignore_index=True)):
        finding = analyze_disparity(other, "hired", "race", **GIVEN)
        assert finding.sentence == rows.sentence
        for pair, expected in zip(finding.pairs, rows.pairs, strict=True):
            assert pair.corrected_p_value == pytest.approx(expected.corrected_p_value, rel=1e-9)
            assert pair.effect == pytest.approx(expected.effect, rel=1e-9)


def test_scores_of_several_classes_and_names() -> None:
    """Numbers, crossed classes, and names as the unit in each firm."""
    rng = np.random.default_rng(3)
    rows = []
    for firm in "AB":
        for race in ("black", "white"):
            for gender in ("f", "m"):
                for name in range(12):
                    called = f"{race}{gender}{name}"
                    shift = -1.5 * (firm == "B" and race == "black")
                    for template in range(5):
                        score = rng.normal(shift, 1)
                        rows.append((firm, race, gender, called, f"t{template}", score))
    columns = ["firm", "race", "gender", "name", "template", "score"]
    table = pd.DataFrame(rows, columns=columns)
    finding = analyze_disparity(
        table, "score", ["race", "gender"], each="firm", correction="fdr_bh"
    )
    assert finding.verdict is Verdict.FAIL
    assert finding.sentence.startswith("FAIL: 1 of 2 firms differs on score by race, gender (B); ")
    assert {pair.statistics["by"] for pair in finding.pairs} == {
        f"{by} in firm {firm}" for firm in "AB" for by in ("race", "gender", "race × gender")
    }
    labels = {group.group for group in finding.group_results}
    assert {"A: black", "B: black × f"} <= labels


def test_a_block_alone_has_its_share_of_the_level() -> None:
    """A year that would turn a firm red, were it asked about that firm alone, turns none of 20 red."""
    table = firms(0, 20, rows=400).assign(year=lambda rows: np.arange(len(rows)) % 4)
    firm = (table["firm"] == "F003") & (table["year"] == 2)
    turned = table.index[firm & (table["race"] == "black") & table["hired"]]
    raised = None
    for number in range(len(turned)):
        table.loc[turned[: number + 1], "hired"] = False
        alone = analyze_disparity(
            table[table["firm"] == "F003"], "hired", "race", cluster=None, block="year"
        )
        raised = next((block for block in alone.details["by_block"] if block["alarm"]), None)
        if raised is not None:
            break
    assert raised is not None
    assert 0.01 / 20 < raised["p_value"] * 4 < 0.01
    finding = analyze_disparity(table, "hired", "race", block="year", **GIVEN)
    blocks: Any = finding.details["by_block"]
    assert not any(block["alarm"] for block in blocks)
    same = [block for block in blocks if block["p_value"] == raised["p_value"]]
    assert [block["by"] for block in same] == ["race in firm F003"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"each": "race"}, "each='race' is compared"),
        ({"each": "hired"}, "each='hired' is compared"),
        ({"each": "firms"}, "no column 'firms' for the part; did you mean 'firm'?"),
        ({"each": ["firm"]}, "each=['firm']: name the column"),
        ({"each": {"gender": {}}}, "name the column"),
        ({"each": "alone"}, "no alone holds two groups of race"),
        ({"each": "gap"}, "column 'gap', row 0: the part is missing"),
    ],
)
def test_a_mistake_is_named(given: dict[str, Any], message: str) -> None:
    table = firms(0, 2).assign(alone=lambda rows: rows["race"], gap=None)
    with pytest.raises((FrameError, UsageError)) as error:
        analyze_disparity(table, "hired", "race", cluster=None, **given)
    assert message in str(error.value)


def test_within_strata_of_each_firm() -> None:
    table = firms(1, 2).assign(branch=lambda rows: np.arange(len(rows)) % 3)
    plain, within = analyze_within(table, "hired", "race", within="branch", **GIVEN)
    assert plain.sentence.startswith("FAIL: 1 of 3 firms differs on hired by race (F000)")
    assert within.sentence.startswith("Within strata of branch: FAIL: 1 of 3 firms differs")


@pytest.mark.parametrize(("biased", "fair"), [(5, 5), (0, 10)])
def test_false_discoveries_by_simulation(biased: int, fair: int) -> None:
    """Of those that are said to differ at most 5 % do so by chance; where none differs, an alarm in
    at most 5 % of tables. Decision 0219 has the figures of more of them.
    """
    shares = []
    for seed in range(20):
        table = firms(biased, fair, seed=seed, rows=200, gap=0.3)
        finding = analyze_disparity(table, "hired", "race", **GIVEN)
        alarms = [pair.verdict in ALARMS for pair in finding.pairs]
        false = sum(alarms[biased:])
        shares.append(false / max(sum(alarms), 1))
    if not biased:
        assert sum(shares) <= stats.binom.ppf(0.999, 20, 0.05)
    assert np.mean(shares) <= 0.05 + 3 * np.std(shares) / np.sqrt(20)


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The finding of the analysis; the test that it writes says the same; what does not go with it."""
    monkeypatch.chdir(tmp_path)
    table = firms(2, 4)
    table.to_csv("hired.csv", index=False)
    options = ["assess", "hired.csv", "--outcome", "hired", "--by", "race"]
    assert main([*options, "--each", "firm", "--json", "--as-test", "test_hired.py"]) == 1
    (shown,) = json.loads(capsys.readouterr().out)
    expected = analyze_disparity(pd.read_csv("hired.csv"), "hired", "race", block=None, **GIVEN)
    assert shown["sentence"] == expected.sentence
    written = Path("test_hired.py").read_text("utf-8")
    assert "each='firm', correction='fdr_bh'" in written
    assert main([*options, "--each", "firm", "--four-fifths", "--json"]) == 1
    (shown,) = json.loads(capsys.readouterr().out)
    of_ratios = analyze_four_fifths(pd.read_csv("hired.csv"), "hired", "race", block=None, **GIVEN)
    assert shown["sentence"] == of_ratios.sentence
    for wrong, message in (
        (["--each", "firms"], "--each: hired.csv has no column 'firms'"),
        (["--each", "firm", "--truth", "hired"], "truth='hired' is the outcome itself"),
    ):
        assert main([*options, *wrong]) == 2
        assert message in capsys.readouterr().err


# ---------------------------------------------------------------- ratios and margins


def test_each_ratio_is_that_of_its_firm_alone() -> None:
    """p, ratio and interval as by an assertion of its own; Benjamini–Hochberg over firms."""
    table = firms(3, 9, gap=0.12)
    finding = analyze_four_fifths(table, "hired", "race", **GIVEN)
    alone = corrected_over_firms(finding, table, analyze_four_fifths)
    for pair, expected in zip(finding.pairs, alone, strict=True):
        ours = {**pair.statistics, "by": "race"}
        assert ours == expected.statistics
        assert pair.group_1.partition(": ")[2] == expected.group_1
    parts: Any = finding.details["each"]
    ratios = [row["impact_ratio"] for row in parts["rows"]]
    assert ratios == [pair.statistics["impact_ratio"] for pair in alone]
    assert "firm  pair           ratio  effect d" in finding_text(finding)


@pytest.mark.parametrize("correction", ["fdr_bh", "bonferroni", "holm"])
def test_pairs_that_are_not_shown_count_in_their_firm(correction: str) -> None:
    """Where the data choose the reference, all three pairs of three groups are the family: of each
    firm by Bonferroni, then over firms.
    """
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "firm": rng.choice(list("ABCD"), 4_000),
            "race": rng.choice(["asian", "black", "white"], 4_000),
        }
    )
    biased = (table["firm"] == "A") & (table["race"] == "black")
    table["hired"] = rng.random(4_000) < 0.6 - 0.3 * biased
    given = {**GIVEN, "correction": correction}
    finding = analyze_four_fifths(table, "hired", "race", **given)
    assert finding.family["size"] == 12
    every = []
    for _, part in table.groupby("firm"):
        pairs = []
        for reference in ("asian", "black", "white"):
            made = analyze_four_fifths(part, "hired", "race", cluster=None, reference=reference)
            pairs += [pair.p_value for pair in made.pairs]
        every.append(sorted(pairs)[::2])  # each pair stands twice
    if correction == "fdr_bh":
        smallest = [min(3 * min(pairs), 1) for pairs in every]
        expected = multipletests(smallest, method="fdr_bh")[1][0]
    else:
        expected = multipletests(np.ravel(every), method=correction)[1].min()
    least = min(pair.corrected_p_value for pair in finding.pairs)
    assert least == pytest.approx(expected, rel=1e-9)
    assert finding.sentence.startswith("FAIL: 1 of 4 firms differs on hired by race (A); ")


def test_a_firm_without_the_reference_has_nothing_to_compare_with() -> None:
    table = pd.concat(
        [firms(1, 2), small("X", 0, 80).assign(race=["black", "asian"] * 40)], ignore_index=True
    )
    finding = analyze_four_fifths(table, "hired", "race", reference="white", **GIVEN)
    parts: Any = finding.details["each"]
    rows = {row["label"]: row for row in parts["rows"]}
    assert (rows["X"]["verdict"], rows["X"]["reason"]) == ("INCONCLUSIVE", "N")
    assert rows["X"]["needs"] == "the reference group white"
    assert finding.family["size"] == 4
    assert finding.details["reference"]["race in firm F000"] == "F000: white"
    assert {row["group_2"] for row in parts["rows"]} == {"white"}


def test_each_ratio_from_counts_and_rows() -> None:
    table = firms(2, 4)
    expected = analyze_four_fifths(table, "hired", "race", **GIVEN)
    counts = counts_of(table, "hired", ["race", "firm"])
    for given in (counts, pl.from_pandas(table), table.sample(frac=1, random_state=1)):
        made = analyze_four_fifths(given, "hired", "race", **GIVEN)
        assert made.sentence == expected.sentence
        assert made.details["each"] == expected.details["each"]


def test_each_margin_is_that_of_its_firm_alone() -> None:
    """Every firm has to show it; the differences are corrected over firms."""
    table = pd.concat([firms(2, 6), small("W", 80, 0)], ignore_index=True)
    finding = analyze_equivalence(table, "hired", "race", margin=0.2, **GIVEN)
    alone = []
    for _, part in firms(2, 6).groupby("firm"):
        made = analyze_equivalence(part, "hired", "race", margin=0.2, cluster=None)
        alone.append(made.pairs[0])
    assert [pair.p_value for pair in finding.pairs[:-1]] == [pair.p_value for pair in alone]
    differences = [pair.statistics["difference_p_value"] for pair in alone]
    expected = multipletests([*differences, 1.0], method="fdr_bh")[1][:-1]
    corrected = [pair.statistics["difference_corrected_p_value"] for pair in finding.pairs[:-1]]
    assert corrected == pytest.approx(list(expected), rel=1e-12)
    assert finding.sentence.startswith(
        "FAIL: 3 of 9 firms differ on hired by race (F000, F001 and F005); 5 are shown to be "
        "equivalent; 1 is too small to judge. The clearest: F00"
    )
    passing = analyze_equivalence(firms(0, 3), "hired", "race", margin=0.3, **GIVEN)
    assert passing.verdict is Verdict.PASS
    assert "The nearest to a difference: all 3 pairs of groups are equivalent" in passing.sentence


@pytest.mark.parametrize("analyze", [analyze_four_fifths, partial(analyze_equivalence, margin=0.2)])
def test_a_mistake_with_ratios_and_margins_is_named(analyze: Any) -> None:
    table = firms(0, 2).assign(alone=lambda rows: rows["race"])
    for given, message in (
        ({"each": "race"}, "each='race' is compared"),
        ({"each": "alone"}, "no alone holds two groups of race"),
        ({"within": "firm"}, "analyze_within gives both findings with analysis='"),
        ({"bins": 3}, "bins=3 is about the strata of within="),
    ):
        with pytest.raises((FrameError, UsageError)) as error:
            analyze(table, "hired", "race", cluster=None, **given)
        assert message in str(error.value)


def test_over_firms_and_not_over_all_of_their_pairs() -> None:
    """Of three groups a firm: its least q is that of its least p times three, by Benjamini–Hochberg
    over firms; over all twelve pairs it is another one.
    """
    rng = np.random.default_rng(6)
    firm = rng.choice(list("ABCD"), 4_000)
    race = rng.choice(["asian", "black", "white"], 4_000)
    gap = 0.14 * (race == "black") * np.isin(firm, ["A", "B"])
    table = pd.DataFrame({"firm": firm, "race": race, "hired": rng.random(4_000) < 0.5 - gap})
    finding = analyze_disparity(table, "hired", "race", **GIVEN)
    p = np.reshape([pair.p_value for pair in finding.pairs], (4, 3))
    corrected = np.reshape([pair.corrected_p_value for pair in finding.pairs], (4, 3)).min(axis=1)
    expected = multipletests(np.minimum(3 * p.min(axis=1), 1), method="fdr_bh")[1]
    assert corrected == pytest.approx(expected, rel=1e-9)
    over_all = np.reshape(multipletests(p.ravel(), method="fdr_bh")[1], (4, 3)).min(axis=1)
    assert corrected != pytest.approx(over_all, rel=0.01)
