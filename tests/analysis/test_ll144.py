"""The tables of 6 RCNY § 5-301: its worked examples come out as published, and its edges as it
words them.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

import pandas as pd
import pytest

from pytest_fairness import ll144_tables
from pytest_fairness.analysis.ll144 import BOTH, RACE, SEX
from pytest_fairness.errors import FrameError, UsageError

HISPANIC, WHITE, BLACK, PACIFIC, ASIAN, NATIVE, SEVERAL = RACES = (
    "Hispanic or Latino", "White", "Black or African American", "Native Hawaiian or Pacific Islander", "Asian",
    "Native American or Alaska Native", "Two or More Races",
)  # fmt: skip

#: 6 RCNY § 5-301, example of subdivision (b): applicants and selected of each intersectional
#: category, and the
#: published selection rate and impact ratio of each category of each table.
SELECTED = {
    "Male": ((205, 90), (412, 215), (226, 95), (87, 37), (321, 167), (24, 11), (115, 52)),
    "Female": ((190, 82), (385, 197), (164, 75), (32, 15), (295, 135), (17, 7), (98, 44)),
}
SELECTION_BOTH = {
    "Male": (
        "43.9 0.841",
        "52.2 1.000",
        "42.0 0.806",
        "42.5 0.815",
        "52.0 0.997",
        "45.8 0.878",
        "45.2 0.866",
    ),
    "Female": (
        "43.2 0.827",
        "51.2 0.981",
        "45.7 0.876",
        "46.9 0.898",
        "45.8 0.877",
        "41.2 0.789",
        "44.9 0.860",
    ),
}
SELECTION_SEX = {"Male": (1390, 667, "48 1.00"), "Female": (1181, 555, "47 0.979")}
SELECTION_RACE = {
    HISPANIC: (408, 204, "50 0.97"),
    WHITE: (797, 412, "52 1.00"),
    BLACK: (390, 170, "44 0.84"),
    PACIFIC: (119, 52, "44 0.85"),
    ASIAN: (616, 302, "49 0.95"),
    NATIVE: (41, 18, "44 0.85"),
    SEVERAL: (213, 96, "45 0.87"),
}

#: The example of subdivisions (c) and (d): applicants, and those above the median, which the
#: published rates imply.
ABOVE = {
    "Male": ((16, 12), (20, 7), (20, 10), (4, 3), (12, 7), (8, 5), (12, 6)),
    "Female": ((12, 6), (20, 8), (12, 6), (4, 2), (12, 3), (8, 5), (8, 4)),
}
SCORING_BOTH = {
    "Male": ("75 1.00", "35 0.47", "50 0.67", "75 1.00", "58.3 0.78", "62.5 0.83", "50 0.67"),
    "Female": ("50 0.67", "40 0.53", "50 0.67", "50 0.67", "25 0.33", "62.5 0.83", "50 0.67"),
}
SCORING_SEX = {"Male": (92, "54.3 1.00"), "Female": (76, "44.7 0.82")}
SCORING_RACE = {
    HISPANIC: (28, "64.3 1.00"),  # published as 64.2 %: 18 of 28 is 64.286 %
    WHITE: (40, "37.5 0.58"),
    BLACK: (32, "50.0 0.78"),
    PACIFIC: (8, "62.5 0.97"),
    ASIAN: (24, "41.7 0.65"),
    NATIVE: (16, "62.5 0.97"),
    SEVERAL: (20, "50.0 0.78"),
}


def people(
    counts: dict[str, tuple[tuple[int, int], ...]], unknown: int, yes=True, no=False
) -> pd.DataFrame:
    """One row an applicant; the unknown ones lack the sex, the race or both, in turn."""
    rows = [
        (sex, race, yes if at < hits else no)
        for sex, row in counts.items()
        for race, (applicants, hits) in zip(RACES, row, strict=True)
        for at in range(applicants)
    ]
    lacking = ((None, WHITE), ("Male", "unknown"), (math.nan, ""))
    rows += [(*lacking[at % 3], yes) for at in range(unknown)]
    return pd.DataFrame(rows, columns=["sex", "race", "outcome"])


def shown(row: pd.Series, like: str) -> str:
    """Rate in per cent and impact ratio, each with as many decimals as in *like*, halves away from
    zero.
    """
    figures = (100 * row["rate"], row["impact_ratio"])
    published = (Decimal(text) for text in like.split())
    return " ".join(
        str(Decimal(n).quantize(p, ROUND_HALF_UP)) for n, p in zip(figures, published, strict=True)
    )


def agree(table: pd.DataFrame, published: dict[str, tuple]) -> None:
    """Every row of the table has the published counts and figures, to the published digits."""
    rows = table.set_index("category")
    assert list(rows.index) == list(published)
    for category, (*counts, figures) in published.items():
        assert rows.loc[category, ["applicants", "selected"][: len(counts)]].tolist() == counts
        assert shown(rows.loc[category], figures) == figures, category


def crossed(counts, figures) -> dict[str, tuple]:
    return {
        f"{sex} × {race}": (*counts[sex][at], figures[sex][at])
        for sex in counts
        for at, race in enumerate(RACES)
    }


def test_the_example_of_selection_rates_comes_out_as_published():
    """Every figure, with one exception that no data could give: by race/ethnicity the rule counts
    408 Hispanic or Latino applicants, 204 selected; by both 205 + 190 and 90 + 82. With those of
    its own, that table comes out, too.
    """
    found = ll144_tables(people(SELECTED, unknown=250), "outcome", sex="sex", race="race")
    assert (found.rate, found.assessed, found.unknown, found.without_outcome) == (
        "selection",
        2821,
        250,
        0,
    )
    agree(found.tables[SEX], SELECTION_SEX)
    agree(found.tables[BOTH], crossed(SELECTED, SELECTION_BOTH))
    agree(found.tables[RACE], {**SELECTION_RACE, HISPANIC: (395, 172, "44 0.84")})
    own = pd.DataFrame(
        [(race, at < k) for race, (n, k, _) in SELECTION_RACE.items() for at in range(n)],
        columns=["race", "outcome"],
    )
    agree(ll144_tables(own, "outcome", sex=None, race="race").tables[RACE], SELECTION_RACE)


def test_the_example_of_scoring_rates_comes_out_as_published():
    """The median is that of the 168 whose categories are known; half of them are above it."""
    found = ll144_tables(
        people(ABOVE, unknown=15, yes=80, no=20), "outcome", sex="sex", race="race"
    )
    assert (found.rate, found.unknown, found.median) == ("scoring", 15, 50.0)
    agree(found.tables[SEX], SCORING_SEX)
    agree(found.tables[RACE], SCORING_RACE)
    agree(found.tables[BOTH], crossed(ABOVE, SCORING_BOTH))
    assert "with the rows of unknown categories the median would be 80" in found.notes


def table(*rows: tuple, columns=("sex", "race", "outcome")) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(columns))


def by_sex(frame: pd.DataFrame, **options) -> tuple[pd.DataFrame, tuple[str, ...]]:
    found = ll144_tables(frame, "outcome", sex="sex", race=None, **options)
    return found.tables[SEX].set_index("category"), found.notes


def test_a_score_at_the_median_is_not_above_it():
    """Which leaves fewer than half above, and none where most are tied at the top: then there is no
    impact ratio.
    """
    rows, notes = by_sex(
        table(*(("m", "", s) for s in (1, 5, 5)), *(("f", "", s) for s in (5, 5, 9)))
    )
    assert rows["rate"].tolist() == [0, pytest.approx(1 / 3)]
    assert rows["impact_ratio"].tolist() == [0, 1]
    assert "4 of 6 scores equal the median, 5, and are not above it" in notes
    rows, notes = by_sex(
        table(*(("m", "", s) for s in (9, 9, 1)), *(("f", "", s) for s in (9, 9, 9)))
    )
    assert rows["impact_ratio"].isna().all()
    assert any("every rate is 0, so that there is no impact ratio" in note for note in notes)


def test_nobody_selected_and_a_category_alone():
    rows, notes = by_sex(table(*[("m", "", False)] * 3, *[("f", "", False)] * 3))
    assert (rows["selected"].tolist(), rows["impact_ratio"].isna().all()) == ([0, 0], True)
    rows, notes = by_sex(table(*[("m", "", True)] * 3))
    assert rows["impact_ratio"].tolist() == [1]
    assert "by sex there is one category only, m: its impact ratio compares nothing" in notes
    assert any(note.startswith("no table by race/ethnicity and none by both") for note in notes)


def test_a_refusal_selects_nobody_and_scores_nothing():
    """What was never answered is neither; both are counted apart from unknown categories."""
    frame = table(
        ("m", "", True), ("m", "", None), ("f", "", None), ("f", "", True), ("f", "", None)
    )
    frame["refused"] = [False, True, False, False, False]
    frame["undetermined"] = [False, False, True, False, False]
    found = ll144_tables(frame, "outcome", sex="sex", race=None)
    assert found.tables[SEX]["rate"].tolist() == [0.5, 1]
    assert (found.without_outcome, found.unknown) == (2, 0)
    scored = ll144_tables(
        frame.assign(outcome=[3.0, 9.0, None, 4.0, 5.0]), "outcome", sex="sex", race=None
    )
    assert (scored.median, scored.without_outcome) == (4.0, 2)


def test_a_small_category_is_excluded_with_its_justification_alone():
    """Its numbers still stand there; the highest rate is that of the others."""
    frame = table(
        *[("m", "", at < 30) for at in range(60)],
        *[("f", "", at < 15) for at in range(60)],
        ("x", "", True),
    )
    rows, notes = by_sex(frame)
    assert rows["impact_ratio"].tolist() == [0.5, 0.25, 1]
    assert "under 2 % of the data and not excluded, by sex: x" in notes
    rows, notes = by_sex(frame, exclude={"x": "one applicant"})
    assert rows.loc[["m", "f"], "impact_ratio"].tolist() == [1, 0.5]
    assert math.isnan(rows.loc["x", "impact_ratio"])
    assert rows.loc["x", ["applicants", "rate", "excluded"]].tolist() == [1, 1, "one applicant"]
    assert not any("not excluded" in note for note in notes)
    for wrong, why in (({"m": "too many"}, "49.6 % of the data"), ({"y": "who?"}, "unknown category 'y'"),
                       ({"x": " "}, "needs the justification")):  # fmt: skip
        with pytest.raises(UsageError, match=why):
            by_sex(frame, exclude=wrong)


TRIALS = table(("m", "", True), ("f", "", False)).assign(
    cell=["a", "b"], repetition=0, simulated=False
)


@pytest.mark.parametrize(
    ("frame", "options", "why"),
    [
        (table(("m", "", True)), {"data": "historical"}, "needs source=: their origin"),
        (
            table(("m", "", True)),
            {"data": "test"},
            "why no historical data are used, and how these were made",
        ),
        (table(("m", "", True)), {"data": "real"}, "it is one of synthetic, historical, test"),
        (TRIALS, {"data": "historical", "source": "ours"}, "trials that a test asked for"),
        (TRIALS.assign(simulated=True), {"data": "test", "source": "ours"}, "no tool of anybody's"),
        (table(("m", "", "yes")), {}, "holds 'yes': scores are numbers"),
        (table(("m", "", True)), {"rate": "both"}, "it is one of auto, selection, scoring"),
        (table((None, "", True)), {}, "no row has both an outcome and known categories"),
        (table(("m", "", True)), {"sex": None}, "neither sex= nor race= names a column"),
        (table(("m", "", True)), {"sex": "gender"}, "no column 'gender' for the sex"),
    ],
)
def test_what_cannot_be_said_is_an_error(frame, options, why):
    with pytest.raises(UsageError, match=why):
        ll144_tables(frame, "outcome", **{"sex": "sex", "race": None, **options})


def test_what_the_data_are_is_in_the_title():
    """Nothing is called a bias audit; a statement is shown with its source; of trials the unit is
    named.
    """
    found = ll144_tables(TRIALS, "outcome", sex="sex", race=None)
    assert found.title == "LL144-format tables (synthetic personas; not a bias audit)"
    assert any("the rule counts applicants" in note for note in found.notes)
    stated = ll144_tables(TRIALS, "outcome", sex="sex", race=None, data="test", source=" made up ")
    assert (stated.title, stated.source) == (
        "LL144-format tables (test data, by the statement below)",
        "made up",
    )
    with pytest.raises(FrameError):
        ll144_tables(TRIALS[:0], "outcome", sex="sex")
