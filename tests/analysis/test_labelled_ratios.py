"""A person's labels in the four-fifths rule and in equivalence: corrected rates, their ratio and their
difference, and what no ratio can be made of.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pytest_fairness import analyze_disparity, analyze_equivalence, analyze_four_fifths
from pytest_fairness.analysis.looks import Look
from pytest_fairness.errors import FrameError
from pytest_fairness.model import Reason, Verdict
from pytest_fairness.statistics.labelled import LabelledRate, labelled_means, ratio_by_labels

from .test_reader_errors import by_model

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from reader_errors import EDGE, EQUIVALENT, FAIR, FOUR_FIFTHS, GAP, audit, shares

NAN = np.nan


def seeded(seed: int, rates: tuple[float, float] = FAIR, labels: int = 100, names_sd: float = 0.0):
    return audit(np.random.default_rng(seed), rates, labels, names_sd)


# ---------------------------------------------------------------- the ratio


def test_a_worked_ratio() -> None:
    """.2 (SE .04, df 9) against .5 (SE .05, df 9), of 100 rows each: relative variances .04 and .01,
    SE √.05, df .05²/(.04²/9 + .01²/9) = 225/17.
    """
    higher = LabelledRate(0.5, 0.05**2, 9.0, 100)
    lower = LabelledRate(0.2, 0.04**2, 9.0, 100)
    ratio = ratio_by_labels(higher, lower, 0.90)
    assert ratio.ratio == pytest.approx(0.4)
    for level, low, high in (
        (0.90, ratio.low, ratio.high),
        (0.95, ratio.ratio_low, ratio.ratio_high),
    ):
        reach = np.exp(stats.t.ppf((1 + level) / 2, 225 / 17) * np.sqrt(0.05))
        assert low == pytest.approx(0.4 / reach, rel=1e-9)
        assert high == pytest.approx(0.4 * reach, rel=1e-9)
    assert ratio.z == pytest.approx(-0.3 / np.sqrt(0.0041))
    # At the pooled rate of .35 the lower group would have 35 of 100.
    assert ratio.shortfall == pytest.approx(15)
    assert ratio.below
    assert not ratio.flip_flop


def plain_ppi(reader: np.ndarray, label: np.ndarray) -> float:
    """PPI++ as the paper has it, written anew."""
    labelled = ~np.isnan(label)
    read, alone = reader[labelled], reader[~labelled]
    share = len(read) / len(alone)
    slope = np.cov(label[labelled], read)[0, 1] / reader.var(ddof=1) / (1 + share)
    return label[labelled].mean() + np.clip(slope, 0, 1) * (alone.mean() - read.mean())


def log_ratio(table: pd.DataFrame) -> float:
    rates = [
        plain_ppi(rows["read"].to_numpy(), rows["label"].to_numpy())
        for _, rows in table.groupby("group")
    ]
    return float(np.log(rates[0] / rates[1]))


@pytest.mark.parametrize("names_sd", [0.0, 0.8])
def test_the_interval_is_that_of_a_bootstrap_over_names(names_sd: float) -> None:
    """Names are drawn anew, 800 times; with names that differ the interval is much wider."""
    table = seeded(11, GAP, 200, names_sd)
    (pair,) = analyze_four_fifths(table, "read", "group", labels="label").pairs
    assert np.log(pair.statistics["impact_ratio"]) == pytest.approx(-abs(log_ratio(table)))
    low, high = (pair.statistics[f"clustered_impact_ratio_{end}"] for end in ("low", "high"))
    random = np.random.default_rng(5)
    names = {group: sorted(rows["name"].unique()) for group, rows in table.groupby("group")}
    rows_of = table.groupby("name").indices
    read, label = table["read"].to_numpy(), table["label"].to_numpy()
    ratios = []
    for _ in range(800):
        rates = []
        for group in "ab":
            drawn = np.concatenate([rows_of[name] for name in random.choice(names[group], 40)])
            rates.append(plain_ppi(read[drawn], label[drawn]))
        ratios.append(float(np.log(rates[0] / rates[1])))
    error = np.log(high / low) / 2 / stats.t.ppf(0.95, 60)
    assert error == pytest.approx(np.std(ratios), rel=0.12)


def test_who_is_refused_is_not_selected_whatever_the_labels_say() -> None:
    """Half of the rows are refused: half the rate of the others, and no label of theirs counts."""
    table = seeded(3, GAP)
    refused = table.assign(refused=True, label=1.0, template="refused")
    both = pd.concat([table.assign(refused=False), refused], ignore_index=True)
    statistics = [
        analyze_four_fifths(rows, "read", "group", labels="label").pairs[0].statistics
        for rows in (table, both)
    ]
    for place in "12":
        alone, joined = (of_pair[f"rate_{place}"] for of_pair in statistics)
        assert joined == pytest.approx(alone / 2)
        assert statistics[1][f"labels_{place}"] == 100
    assert statistics[1]["impact_ratio"] == pytest.approx(statistics[0]["impact_ratio"])


def test_a_group_that_is_refused_whole_needs_no_label() -> None:
    """Nobody has to read what all of a got; b has labels. Both refused: nobody is favoured."""
    table = seeded(3, GAP)
    of_a = table["group"] == "a"
    whole = table.assign(refused=of_a, label=table["label"].where(~of_a))
    finding = analyze_four_fifths(whole, "read", "group", labels="label")
    assert finding.verdict is Verdict.FAIL, finding.sentence
    assert finding.pairs[0].statistics["impact_ratio"] == 0
    assert finding.pairs[0].worse_off == "a"
    part = whole.assign(refused=of_a | (table["name"] < "b2"))
    assert analyze_four_fifths(part, "read", "group", labels="label").verdict is Verdict.FAIL
    nobody = whole.assign(refused=True, label=table["label"])
    finding = analyze_four_fifths(nobody, "read", "group", labels="label")
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "favoured on read at all" in finding.sentence


def test_certain_rows_join_the_mean_as_they_are() -> None:
    """Eight rows with labels of four and two rows of 0, each its own cluster. By hand: the mean of
    the eight is 26/45 (see the reader's errors), that of all 8/10 of it; to the influence of each row
    comes how far it is from the mean of all.
    """
    reader = np.array([1, 0, 0, 0, 1, 1, 0, 0, 0, 0], float)
    labels = np.array([1, 1, 0, 0] + [NAN] * 6)
    certain = np.arange(10) >= 8
    means = labelled_means(
        reader, labels, np.zeros(10, int), np.arange(10), groups=1, certain=certain
    )
    mean = 0.8 * 26 / 45
    assert means.mean[0] == pytest.approx(mean)
    residuals = np.array([31 / 45, 1, 0, 0]) - 19 / 45
    labelled = residuals * [2, 12 / 11, 12 / 11, 12 / 11] / np.sqrt(12)
    alone = np.array([0.5, 0.5, -0.5, -0.5]) * 14 / 45 / 4
    of_answered = 0.8 * np.concatenate([labelled, alone]) + (26 / 45 - mean) / 10
    expected = ((of_answered**2).sum() + 2 * (mean / 10) ** 2) * 10 / 9
    assert means.variance[0] == pytest.approx(expected, rel=1e-9)


def test_labels_turn_a_verdict_that_a_reader_made() -> None:
    """The reader misses .3 of one group's approvals: red without labels, green with them."""
    table = seeded(7)
    by_reader = analyze_four_fifths(table, "read", "group")
    by_labels = analyze_four_fifths(table, "read", "group", labels="label")
    assert by_reader.verdict is Verdict.FAIL
    assert by_labels.verdict is Verdict.PASS
    assert "27.6 % (by labels of 100 of 400)" in by_labels.sentence
    assert by_labels.details["labels"]["group"]["b"]["recall"]["share"] < 0.8
    assert any(note.startswith("corrected by a person's labels") for note in by_labels.notes)


def test_the_reference_has_the_highest_corrected_rate() -> None:
    """The reader gives a the higher rate, the labels b."""
    table = seeded(2, (0.30, 0.36), 200)
    by_reader = analyze_four_fifths(table, "read", "group")
    by_labels = analyze_four_fifths(table, "read", "group", labels="label")
    assert by_reader.details["reference"] == {"group": "a"}
    assert by_labels.details["reference"] == {"group": "b"}


def test_labels_may_be_words() -> None:
    """A label is favourable as the outcome is: by a value, several, or a function."""
    table = seeded(5)
    numbers = analyze_four_fifths(table, "read", "group", labels="label").pairs[0].statistics
    words = {1.0: "hired", 0.0: "rejected"}
    text = table.assign(read=table["read"].map(words), label=table["label"].map(words))
    for favourable in ("hired", ["hired", "invited"], lambda word: word == "hired"):
        (pair,) = analyze_four_fifths(
            text, "read", "group", favourable=favourable, labels="label"
        ).pairs
        assert pair.statistics == numbers
    text.loc[text.index[text["label"] == "rejected"][0], "label"] = "perhaps"
    with pytest.raises(FrameError, match="labels hold"):
        analyze_four_fifths(text, "read", "group", favourable="hired", labels="label")
    with pytest.raises(FrameError, match="is no column"):
        analyze_four_fifths(table, "read", "group", labels="lable")


# ---------------------------------------------------------------- no ratio


def test_a_rate_below_half_a_label_makes_no_ratio() -> None:
    """Both approvals of a stand among its labels: what the other rows say takes them off again."""
    table = seeded(4, GAP)
    of_a = table["group"] == "a"
    first = table.index[of_a & table["label"].notna()][:2]
    table.loc[of_a, "read"] = 0.0
    table.loc[of_a & table["label"].notna(), "label"] = 0.0
    table.loc[first, ["read", "label"]] = 1.0
    finding = analyze_four_fifths(table, "read", "group", labels="label")
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.READER)
    assert "by its 100 labels a has a favourable rate of" in finding.sentence
    assert "less than half a label: that makes no ratio" in finding.sentence
    assert "it would take more labels a group" in finding.sentence
    assert "impact_ratio" not in finding.pairs[0].statistics


def test_labels_that_are_all_alike_make_no_ratio_and_no_equivalence() -> None:
    table = seeded(2, labels=60)
    alike = table.assign(label=table["label"].where(table["group"] == "a", table["label"] * 0))
    ratio = analyze_four_fifths(alike, "read", "group", labels="label")
    assert (ratio.verdict, ratio.reason) == (Verdict.INCONCLUSIVE, Reason.READER)
    assert "the labels of b are too few, or all alike" in ratio.sentence
    bare = analyze_four_fifths(alike, "read", "group", labels="label", bare_ratio=True)
    assert (bare.verdict, bare.reason) == (Verdict.INCONCLUSIVE, Reason.READER)
    alike_within = analyze_equivalence(
        alike, "read", "group", margin=0.9, kind="binary", labels="label"
    )
    assert (alike_within.verdict, alike_within.reason) == (Verdict.INCONCLUSIVE, Reason.READER)
    assert "cannot be compared on read; it takes labels of both kinds" in alike_within.sentence
    assert alike_within.pairs[0].difference is None


# ---------------------------------------------------------------- nobody labelled


def test_an_unvalidated_reader_does_not_pass_what_its_error_could_hide() -> None:
    """The ratio is .85 as it was read: had the model missed a tenth of the higher group, below .8."""
    random = np.random.default_rng(1)
    parts = []
    for group, yes in (("a", 1360), ("b", 1600)):
        read = random.permutation(np.arange(4000) < yes).astype(float)
        names = [f"{group}{place % 40}" for place in range(4000)]
        parts.append(pd.DataFrame({"group": group, "name": names, "read": read}))
    table = pd.concat(parts, ignore_index=True)
    given = {"practical_ratio": 0.8}
    assert analyze_four_fifths(table, "read", "group", **given).verdict is Verdict.PASS
    finding = analyze_four_fifths(table, by_model(table), "group", **given)
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.READER)
    assert "but a model read the cases and no labels show how well" in finding.sentence
    assert "labels a group by a person" in finding.sentence
    unvalidated = "unvalidated reader: a model read replies, and no person has labelled any"
    assert unvalidated in finding.notes
    bare = analyze_four_fifths(table, by_model(table), "group", bare_ratio=True)
    assert bare.verdict is Verdict.PASS
    assert unvalidated in bare.notes
    # The gap is 6 points; a tenth of the higher rate is 4.
    wide, narrow = (
        analyze_equivalence(table, by_model(table), "group", margin=margin)
        for margin in (0.13, 0.09)
    )
    assert wide.verdict is Verdict.PASS
    assert (narrow.verdict, narrow.reason) == (Verdict.INCONCLUSIVE, Reason.READER)
    assert "within ±9.0 %, but a model read the trials" in narrow.sentence


# ---------------------------------------------------------------- equivalence


def test_equivalence_is_two_one_sided_tests_on_the_corrected_difference() -> None:
    """By the means of each group and Welch's degrees of freedom, written out."""
    table = seeded(8, FAIR, 150, 0.4)
    margin = 0.12
    finding = analyze_equivalence(
        table, "read", "group", margin=margin, kind="binary", labels="label"
    )
    (pair,) = finding.pairs
    codes = (table["group"] == "b").to_numpy().astype(int)
    means = labelled_means(
        table["read"].to_numpy(),
        table["label"].to_numpy(),
        codes,
        pd.factorize(table["name"])[0],
        groups=2,
    )
    difference = means.mean[0] - means.mean[1]
    error = np.sqrt(means.variance.sum())
    df = means.variance.sum() ** 2 / (means.variance**2 / means.df).sum()
    worst = max(
        stats.t.sf((difference + margin) / error, df), stats.t.sf((margin - difference) / error, df)
    )
    assert pair.p_value == pytest.approx(worst, rel=1e-6)
    assert pair.difference == pytest.approx(difference)
    half = stats.t.ppf(0.95, df) * error
    assert pair.statistics["interval_low"] == pytest.approx(difference - half)
    assert pair.test == "two one-sided t, PPI++"
    assert finding.details["labels"]["group"]["a"]["labels"] == 150


def test_a_margin_in_standard_deviations_is_one_of_the_labels() -> None:
    table = seeded(8, FAIR, 150)
    (pair,) = analyze_equivalence(
        table, "read", "group", margin=0.3, unit="d", kind="binary", labels="label"
    ).pairs
    variances = [table.loc[table["group"] == group, "label"].var() for group in "ab"]
    smaller = 1 - 3 / (4 * 298 - 1)
    assert pair.statistics["margin"] == pytest.approx(0.3 * np.sqrt(np.mean(variances)) / smaller)


def test_equivalence_of_ratings() -> None:
    """A reader that is a point too strict with one group: not equivalent as read, equivalent by the
    labels.
    """
    random = np.random.default_rng(6)
    parts = []
    for group, strict in (("a", 0), ("b", 1)):
        truth = random.normal(6, 1, 800)
        label = np.full(800, NAN)
        chosen = random.choice(800, 120, replace=False)
        label[chosen] = truth[chosen]
        read = truth - strict + random.normal(0, 0.3, 800)
        names = [f"{group}{place % 40}" for place in range(800)]
        parts.append(pd.DataFrame({"group": group, "name": names, "read": read, "label": label}))
    table = pd.concat(parts, ignore_index=True)
    by_reader, by_labels = (
        analyze_equivalence(table, "read", "group", margin=0.4, labels=labels)
        for labels in (None, "label")
    )
    assert by_reader.verdict is Verdict.FAIL
    assert by_labels.verdict is Verdict.PASS


def test_a_look_judges_by_its_own_levels() -> None:
    """Red at its level, the intervals of both at 1 − 2b."""
    table = seeded(7, GAP, 150)
    look = Look(number=2, of=3, names=40, red=0.004990, green=0.018914)
    given = {"outcome": "read", "by": "group", "labels": "label"}
    for analyze, keywords, ends in (
        (analyze_four_fifths, {}, "clustered_impact_ratio"),
        (analyze_equivalence, {"margin": 0.1, "kind": "binary"}, "interval"),
    ):
        intervals = []
        for at_look in ({}, {"_look": look}):
            finding = analyze(table, **given, **keywords, **at_look)
            statistics = finding.pairs[0].statistics
            low, high = (statistics[f"{ends}_{end}"] for end in ("low", "high"))
            intervals.append(np.log(high / low) if "ratio" in ends else high - low)
        wider = stats.norm.ppf(1 - look.green) / stats.norm.ppf(0.95)
        assert intervals[1] / intervals[0] == pytest.approx(wider, rel=0.02)
    # p of the difference is .013: red at .05, and not at the look.
    close = seeded(4, (0.30, 0.42), 100)
    at_once, at_look = (
        analyze_four_fifths(close, **given, **keywords) for keywords in ({}, {"_look": look})
    )
    assert at_look.family["alpha"] == look.red
    assert look.red < at_look.pairs[0].corrected_p_value < 0.05
    assert at_once.verdict is Verdict.FAIL
    assert at_look.reason is Reason.SMALL_NUMBERS


# ---------------------------------------------------------------- what is missing


@pytest.mark.parametrize(
    "analyze",
    [
        lambda table: analyze_disparity(table, "read", "group", kind="binary", labels="label"),
        lambda table: analyze_four_fifths(table, "read", "group", labels="label"),
        lambda table: analyze_equivalence(
            table, "read", "group", margin=0.15, kind="binary", labels="label"
        ),
    ],
    ids=["disparity", "four_fifths", "equivalence"],
)
def test_what_is_missing_is_imputed_beside_the_labels(analyze) -> None:
    """Of 300 rows without a label twelve a group have no outcome: the PASS that the labels give has
    to stand the extremes of those alone, not those of the reader.
    """
    table = seeded(9, (0.5, 0.5), 200)
    assert analyze(table).verdict is Verdict.PASS
    unlabelled = table.index[table["label"].isna()]
    table.loc[unlabelled[::40], "read"] = NAN
    finding = analyze(table)
    assert finding.verdict is Verdict.PASS, finding.sentence


def test_a_doubt_about_one_pair_of_several_with_missing_answers() -> None:
    """Groups a, b and c, of which c has few names: what is imputed for a and b is settled by itself."""
    c = seeded(3, (0.6, 0.5), 0).query("group == 'a'")
    c = c.assign(group="c", name=c["name"].str.replace("a", "c"))
    few = c[c["name"].str[1:].astype(int) < 14]
    table = pd.concat([seeded(2, (0.5, 0.7), 0), few], ignore_index=True).drop(columns="label")
    table.loc[table.index[::101], "read"] = NAN
    finding = analyze_disparity(table, by_model(table), "group")
    reasons = {
        (pair.group_1, pair.group_2): pair.reason for pair in finding.pairs if pair.metric == "read"
    }
    assert reasons == {("a", "b"): None, ("a", "c"): Reason.READER, ("b", "c"): None}


# ---------------------------------------------------------------- simulated audits


AUDITS = 50
#: The shares that .05, .88 and .9 of so many audits do not exceed, or fall short of, but once in a
#: thousand times.
AT_MOST = stats.binom.ppf(0.999, AUDITS, 0.05) / AUDITS
FOUND, COVERED = stats.binom.ppf(0.001, AUDITS, [0.88, 0.9]) / AUDITS


def test_g34_of_four_fifths_in_short() -> None:
    """Without labels fair audits are red as often as not; with 100 a group as seldom as chance has it,
    15 points are found, and 90 % intervals hold the true ratio.
    """
    assert shares(20, FAIR, 0, 0.0, assertion=FOUR_FIFTHS).red > 0.2
    fair = shares(AUDITS, FAIR, 100, 0.0, assertion=FOUR_FIFTHS)
    assert fair.red <= AT_MOST
    assert fair.covered >= COVERED
    gap = shares(AUDITS, GAP, 100, 0.0, assertion=FOUR_FIFTHS)
    assert gap.red >= FOUND
    assert gap.covered >= COVERED


def test_g34_of_equivalence_in_short() -> None:
    """At the margin itself equivalence is claimed in one of twenty; without labels the reader's error
    claims it half of the time.
    """
    assert shares(20, EDGE, 0, 0.0, assertion=EQUIVALENT).passed > 0.3
    edge = shares(AUDITS, EDGE, 100, 0.0, assertion=EQUIVALENT)
    assert edge.passed <= AT_MOST


@pytest.mark.parametrize("analyze", [analyze_disparity, analyze_four_fifths])
def test_labels_are_found_in_a_table_of_any_engine(analyze: Any, tmp_path: Path) -> None:
    """Counts have no labels: a table with a column of them is judged by its rows."""
    polars = pytest.importorskip("polars")
    table = seeded(7)
    by_rows = analyze(table, "read", "group", labels="label").to_dict()
    path = tmp_path / "table.parquet"
    table.to_parquet(path)
    for other in (polars.from_pandas(table), str(path)):
        assert analyze(other, "read", "group", labels="label").to_dict() == by_rows
