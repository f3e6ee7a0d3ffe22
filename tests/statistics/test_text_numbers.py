"""Columns that are not what they look like: numbers in letters, ratings by name, free text, a label
spelled twice.
"""

import fractions

import numpy as np
import pandas as pd
import pytest

from pytest_fairness import (
    Verdict,
    analyze_arms,
    analyze_disparity,
    analyze_equivalence,
    analyze_four_fifths,
    analyze_preference,
)
from pytest_fairness.analysis.baseline import summarise_scores
from pytest_fairness.analysis.ll144 import ll144_tables
from pytest_fairness.errors import FrameError

RNG = np.random.default_rng(3)
NUMBERS = RNG.normal(0.5, 0.1, 80).round(3)
GROUPS = ["a", "b"] * 40


def frame(values, **columns) -> pd.DataFrame:
    return pd.DataFrame({"group": GROUPS[: len(values)], "outcome": values, **columns})


WRITTEN = {
    "0.176": [f"{x:.3f}" for x in NUMBERS],
    "51,9": [f"{100 * x:.1f}".replace(".", ",") for x in NUMBERS],
    "66 %": [f"{100 * x:.1f} %" for x in NUMBERS],
    "4/5": [f"{round(100 * x)}/100" for x in NUMBERS],
    "$120,000": [f"${round(100_000 * x):,}" for x in NUMBERS],
    "1.234,5": [
        f"{100_000 * x:,.1f}".replace(",", "_").replace(".", ",").replace("_", ".") for x in NUMBERS
    ],
    "7": [str(round(10 * x)) for x in NUMBERS],
}


@pytest.mark.parametrize("spelling", WRITTEN)
def test_numbers_written_as_text_are_an_error_whose_mend_works(spelling):
    table = frame(WRITTEN[spelling])
    with pytest.raises(
        FrameError, match="column 'outcome' holds numbers written as text"
    ) as caught:
        analyze_disparity(table, "outcome", "group", cluster=None)
    mend = (
        str(caught.value).split("frame['outcome'] = ")[1].split("; or pass kind='categorical'")[0]
    )
    mended = table.assign(outcome=eval(mend, {"frame": table, "pd": pd, "fractions": fractions}))
    unit = {"0.176": 1, "4/5": 1, "51,9": 100, "66 %": 100, "7": 10}.get(spelling, 100_000)
    assert mended["outcome"].to_numpy(float) / unit == pytest.approx(NUMBERS, abs=0.06)
    assert analyze_disparity(mended, "outcome", "group", cluster=None).kind in (
        "numeric",
        "ordinal",
    )
    labels = table[table.outcome.isin(table.outcome.iloc[:3])]
    assert (
        analyze_disparity(labels, "outcome", "group", cluster=None, kind="categorical").kind
        == "categorical"
    )


def test_every_analysis_names_the_mend():
    text = frame(WRITTEN["51,9"], name=[f"n{at}" for at in range(80)])
    match = "holds numbers written as text"
    with pytest.raises(FrameError, match=match):
        analyze_equivalence(text, "outcome", "group", margin=0.5)
    with pytest.raises(FrameError, match=match):
        analyze_four_fifths(text, "outcome", "group")
    with pytest.raises(FrameError, match=match):
        analyze_arms(
            text.assign(arm=["x", "y"] * 40),
            outcome="outcome",
            by="group",
            treated="x",
            control="y",
        )
    with pytest.raises(FrameError, match=match):
        ll144_tables(text.assign(gender=text["group"]), "outcome", race=None)
    with pytest.raises(FrameError, match=match):
        summarise_scores(text, text["outcome"])
    with pytest.raises(FrameError, match=match):
        summarise_scores(text, [f"{x}" for x in NUMBERS])
    ranked = pd.DataFrame(
        {"trial": [0, 0, 1, 1], "group": ["a", "b"] * 2, "rank": ["1", "2", "2", "1"]}
    )
    with pytest.raises(FrameError, match=match):
        analyze_preference(ranked, trial="trial", rank="rank", cluster=None)


def test_what_is_no_number_is_no_mistake():
    """0 and 1 are a spelling of no and yes, and labels may begin with a digit."""
    assert (
        analyze_disparity(frame(["0", "1"] * 40), "outcome", "group", cluster=None).kind == "binary"
    )
    for labels in (
        ["18-25", "26-40", "41+"],
        ["1st", "2nd", "3rd"],
        ["A1", "B2", "4"],
        ["2026-01-31", "n/a", "soon"],
    ):
        values = [labels[at % 3] for at in range(80)]
        assert (
            analyze_disparity(frame(values), "outcome", "group", cluster=None).kind == "categorical"
        )
    mostly = [*WRITTEN["51,9"][:78], "n/a", "n/a"]
    with pytest.raises(FrameError, match="'n/a' is none, so make it a missing value"):
        analyze_disparity(frame(mostly), "outcome", "group", cluster=None)


def test_ordered_categories_are_a_rating():
    """By their codes; what the codes stand for is noted."""
    labels = ["poor", "fair", "good", "excellent"]
    codes = RNG.integers(0, 4, 80)
    codes[0], codes[2] = 3, 0
    ordered = pd.Categorical([labels[code] for code in codes], categories=labels, ordered=True)
    found = analyze_disparity(frame(ordered), "outcome", "group", cluster=None)
    plain = analyze_disparity(frame(codes), "outcome", "group", cluster=None, kind="ordinal")
    assert found.kind == "ordinal"
    assert found.pairs == plain.pairs
    assert any("poor = 0, fair = 1, good = 2, excellent = 3" in note for note in found.notes)
    declared = analyze_disparity(frame(ordered), "outcome", "group", cluster=None, kind="ordinal")
    assert declared.pairs == plain.pairs
    as_labels = analyze_disparity(
        frame(ordered), "outcome", "group", cluster=None, kind="categorical"
    )
    assert as_labels.kind == "categorical"
    unordered = frame(pd.Categorical(list(ordered)))
    assert analyze_disparity(unordered, "outcome", "group", cluster=None).kind == "categorical"
    with pytest.raises(
        FrameError, match="holds labels in an order: its kind is ordinal, not numeric"
    ):
        analyze_disparity(frame(ordered), "outcome", "group", cluster=None, kind="numeric")


def test_ordered_categories_with_missing_and_unused_ones():
    labels = ["low", "middle", "high", "never used"]
    ordered = pd.Categorical(["low", None, "high", "middle"] * 20, categories=labels, ordered=True)
    found = analyze_disparity(frame(ordered), "outcome", "group", cluster=None)
    assert found.group_results[1].unscored == 20
    assert found.kind == "ordinal"
    decided = pd.Categorical(["no", "yes"] * 40, categories=["no", "yes"], ordered=True)
    assert analyze_disparity(frame(decided), "outcome", "group", cluster=None).kind == "binary"
    two = pd.Categorical(["mild", "severe"] * 40, categories=["mild", "severe"], ordered=True)
    found = analyze_disparity(frame(two), "outcome", "group", cluster=None)
    assert found.kind == "ordinal"
    assert found.pairs[0].worse_off == "a"


def test_free_text_is_no_label():
    texts = [f"Dear {at}" for at in range(21)]
    values = [texts[at % 21] for at in range(80)]
    with pytest.raises(
        FrameError, match=r"has 21 different texts .* more than 20 .*kind='categorical'"
    ):
        analyze_disparity(frame(values), "outcome", "group", cluster=None)
    declared = analyze_disparity(
        frame(values), "outcome", "group", cluster=None, kind="categorical"
    )
    assert declared.kind == "categorical"
    fewer = frame([texts[at % 20] for at in range(80)])
    assert analyze_disparity(fewer, "outcome", "group", cluster=None).kind == "categorical"


def test_labels_that_differ_by_case_or_blanks_alone_are_noted():
    table = pd.DataFrame({
        "group": ["A", "A ", "b"] * 60, "outcome": ["Yes", "yes", "no", "maybe\xa0so", "Maybe  so", "no"] * 30
    })  # fmt: skip
    notes = analyze_disparity(table, "outcome", "group", cluster=None).notes
    assert any(
        "'A' and 'A ' differ by case or blanks alone and count as different groups" in note
        for note in notes
    )
    assert any(
        "'Yes' and 'yes' differ by case or blanks" in note and "outcomes" in note for note in notes
    )
    assert any("maybe" in note and "outcomes" in note for note in notes)
    hired = table.assign(outcome=["hired", "Hired", "rejected"] * 60)
    rates = analyze_four_fifths(hired, "outcome", "group", cluster=None, favourable="hired")
    assert any("'hired' and 'Hired' differ" in note for note in rates.notes)
    clean = table.assign(group=["a", "c", "b"] * 60, outcome=["x", "y", "z"] * 60)
    assert not any(
        "differ by case" in note
        for note in analyze_disparity(clean, "outcome", "group", cluster=None).notes
    )


@pytest.mark.parametrize("value", [1e-151, -1e-200, 5e-324])
def test_values_whose_square_underflows_are_refused(value):
    with pytest.raises(
        FrameError, match=r"column 'outcome', row 2: the value is nearer to 0 than 1e-150"
    ):
        analyze_disparity(frame([1.0, 2.0, value, 3.5]), "outcome", "group", cluster=None)


@pytest.mark.parametrize("unit", [1e99, 1e80, 1e-80, 1e-149])
def test_a_unit_changes_no_verdict(unit):
    """Unequal numbers of names, whose degrees of freedom square a squared error."""
    rows = [(g, f"{g}{n}", r) for g, k in (("a", 7), ("b", 12)) for n in range(k) for r in range(6)]
    table = pd.DataFrame(rows, columns=["group", "name", "repetition"])
    y = np.random.default_rng(0).normal(3, 1, len(table))
    (plain,) = analyze_disparity(table.assign(y=y), "y", "group", kind="numeric").pairs
    (scaled,) = analyze_disparity(table.assign(y=y * unit), "y", "group", kind="numeric").pairs
    assert scaled.verdict is plain.verdict is not Verdict.FAIL
    for name in ("p_value", "effect", "effect_low", "effect_high"):
        assert getattr(scaled, name) == pytest.approx(getattr(plain, name), rel=1e-9)
    for name in ("hedges_g_low", "spread_p_value"):
        assert scaled.statistics[name] == pytest.approx(plain.statistics[name], rel=1e-9)
