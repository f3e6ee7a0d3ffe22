"""Each column of the selection page shows the figure that its title says, of results made by hand
in which no two figures are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pytest_fairness.analysis.choice_effects import (
    ContextInteraction,
    ContextLevel,
    GroupShare,
    OrderEffect,
)
from pytest_fairness.analysis.selection_ratios import SelectionRatio, SelectionRatios
from pytest_fairness.model import Reason, Verdict
from pytest_fairness.reports.sections import Entry
from pytest_fairness.statistics.selection_rates import Rate
from pytest_fairness.suites.selection import (
    explanation_sections,
    page,
    preference_sections,
    reading_sections,
    results,
    scrubber_sections,
)

PASS, FLAG, FAIL, OPEN = Verdict.PASS, Verdict.FLAG, Verdict.FAIL, Verdict.INCONCLUSIVE

PAIR = results.PairPreference(
    group_1="older",
    group_2="younger",
    share=Rate(1200, 900, 0.31, 0.21, 0.41),
    listings=(
        results.ListedShare(first="older", second="younger", share=Rate(600, 240, 0.4)),
        results.ListedShare(first="younger", second="older", share=Rate(600, 450, 0.75)),
    ),
    binomial_p=0.011,
    stratified_p=0.012,
    clustered_p=0.013,
    effect=-0.44,
    effect_low=-0.66,
    effect_high=-0.22,
    within_order=-0.5,
    name_pairs=30,
    p_value=0.013,
    corrected_p_value=0.078,
    scope="names",
    verdict=FLAG,
    reason=None,
    needs=None,
)
SHARES = (
    GroupShare(group="older", share=Rate(1200, 372, 0.31, 0.21, 0.41)),
    GroupShare(group="younger", share=Rate(1200, 828, 0.69, 0.59, 0.79)),
)
PREFERENCE = results.GroupPreference(
    by="group",
    rates=SHARES,
    pairs=(PAIR,),
    verdict=FLAG,
    reason=None,
    sentence="FLAG: younger is chosen over older.",
)
IMPACT = SelectionRatio(
    group="older",
    reference="younger",
    ratio=0.449,
    low=0.4,
    high=0.5,
    z=-5.0,
    fisher_p=0.021,
    shortfall=12.0,
    flip_flop=False,
    below=True,
    p_value=0.022,
    corrected_p_value=0.023,
    verdict=FAIL,
    reason=None,
)
ORDER = OrderEffect(
    share=Rate(1200, 720, 0.6, 0.55, 0.65),
    log_odds=0.41,
    error=0.1,
    likelihood_ratio=16.44,
    df=1,
    p_value=0.031,
)
INTERACTION = ContextInteraction(
    axis="role",
    by="age",
    levels=(ContextLevel(level="nurse", shares=SHARES), ContextLevel(level="cook", shares=SHARES)),
    likelihood_ratio=7.26,
    df=3,
    row_p=0.041,
    clustered_p=0.042,
    p_value=0.043,
)
STRENGTHS = results.FittedStrengths(
    groups=(
        results.GroupStrength(group="older", value=0.0, error=None),
        results.GroupStrength(group="younger", value=0.8, error=0.1),
    ),
    position=0.5,
    position_error=0.2,
    likelihood_ratio=9.87,
    df=1,
    p_value=0.051,
    ridge=False,
)
ARM = results.ArmResults(
    arm="raw_naive",
    trials=1500,
    requests=3000,
    cost=1.5,
    decided=1200,
    preference=PREFERENCE,
    margins=(),
    order=ORDER,
    interactions=(INTERACTION,),
    equal_shares=results.EqualShares(
        plain=40.0, plain_p=0.001, corrected=20.0, df=1, p_value=0.002
    ),
    four_fifths=SelectionRatios(
        reference="younger", pairs=(IMPACT,), verdict=FAIL, reason=None, sentence="FAIL: below."
    ),
    strengths=STRENGTHS,
    outcomes=(
        results.PairOutcomes(
            group_1="older",
            group_2="younger",
            trials=1500,
            counts={
                "chosen": 1200,
                "neither": 300,
                "both": 0,
                "refused": 0,
                "unlisted": 0,
                "unparsed": 0,
            },
        ),
    ),
    no_choice_p=0.061,
    notes=("a note", "another"),
)
CHANGE = results.PreferenceChange(
    group_1="older",
    group_2="younger",
    control=results.Leaning(value=-0.2, low=-0.3, high=-0.1, p_value=0.01),
    treated=results.Leaning(value=-0.05, low=-0.15, high=0.05, p_value=0.2),
    change=results.Leaning(value=0.15, low=0.08, high=0.22, p_value=0.03),
    reduction=0.16,
    reduction_low=0.09,
    reduction_high=0.23,
    units=30,
    unit="name pair",
    corrected_p_value=0.071,
    verdict=PASS,
    reason=None,
)
CONTRAST = results.ContrastResults(
    treated="scrubbed",
    control="raw_naive",
    isolates="both",
    by="group",
    pairs=(CHANGE,),
    verdict=PASS,
    reason=None,
    sentence="PASS: it fell.",
)
REMOVED = results.TextShare(
    what="name",
    by="group",
    shares=SHARES,
    overall=Rate(2400, 1200, 0.5, 0.45, 0.55),
    p_value=0.08,
    corrected_p_value=0.081,
    test_statistic="t = 2",
    effect_size="d = 0.33",
    effect=0.33,
    verdict=OPEN,
    reason=Reason.PRECISION,
    sentence="INCONCLUSIVE: too few names.",
)
GUESS = results.GuessedShare(
    by="age",
    text="raw",
    reader="classifier",
    accuracy=Rate(60, 45, 0.75, 0.64, 0.86),
    chance=0.51,
    p_value=0.091,
    per_group=SHARES,
    unread=7,
)
RUN = results.RunFacts(
    endpoint="mine",
    models=("m1", "m2"),
    simulated=False,
    replayed=False,
    groups=("older", "younger"),
    classes={"older": {"age": "older"}},
    criteria=("punctual",),
    roles=("nurse", "cook"),
    qualifications=(),
    arms=("raw_naive",),
    signals=("name",),
    names=30,
    names_design="30 sets",
    repetitions=1500,
    trials=1500,
    requests=3000,
    cost=None,
)
RESULTS = results.SelectionResults(
    schema=1,
    alpha=0.05,
    correction="holm",
    run=RUN,
    arms=(ARM,),
    contrasts=(CONTRAST,),
    scrubbers=(),
)


def shown(columns: Mapping[str, Any], row: object) -> dict[str, Any]:
    """What stands under each title."""
    return {title: cell(row) for title, cell in columns.items()}


def limits(**changes: Any) -> str:
    """What a run with *changes* cannot say."""
    run = replace(RUN, **changes)
    _, section = reading_sections.reading_parts(replace(RESULTS, run=run))
    (notes,) = section.parts
    return "\n".join(notes.items)


class TestPreferences:
    def test_a_pair(self):
        row = preference_sections.LabelledPair("older – younger", PAIR)
        assert shown(preference_sections.PAIR_COLUMNS, row) == {
            "pair": "older – younger",
            "verdict": Entry(verdict=FLAG),
            "first chosen": "31.0 %",
            "95 % interval": "21.0 % to 41.0 %",
            "corrected p": ".0780",
            "effect d": "−0.44",
            "90 % interval of d": "−0.66 to −0.22",
            "choices": "1,200",
            "first chosen when listed first": "40.0 %",
            "when listed second": "25.0 %",
            "binomial p": ".0110",
            "p within orders": ".0120",
            "p by names": ".0130",
        }

    def test_a_pair_without_a_choice(self):
        unread = replace(
            PAIR,
            share=Rate(0, 0),
            listings=tuple(replace(listing, share=Rate(0, 0)) for listing in PAIR.listings),
            clustered_p=None,
            verdict=OPEN,
            reason=Reason.N,
        )
        cells = shown(
            preference_sections.PAIR_COLUMNS, preference_sections.LabelledPair("p", unread)
        )
        assert cells["verdict"] == Entry(verdict=OPEN, reason=Reason.N)
        for title in ("first chosen", "95 % interval", "when listed second", "p by names"):
            assert cells[title] == "–"

    def test_the_matrix_is_mirrored(self):
        """The row over the column: 31 % one way, 69 % the other; nobody meets themselves."""
        section = preference_sections.pair_section(ARM, ("older", "younger", "other"))
        matrix = section.parts[1]
        assert matrix.head == ("over …", "older", "younger", "other")
        assert matrix.rows[0] == (
            "older",
            Entry(),
            Entry(words="31 %", verdict=FLAG, tint=-2),
            Entry(words="–"),
        )
        assert matrix.rows[1][1] == Entry(words="69 %", verdict=FLAG, tint=2)

    def test_a_rate_below_the_highest(self):
        row = preference_sections.GroupRate(SHARES[0], IMPACT)
        assert shown(preference_sections.RATE_COLUMNS, row) == {
            "group": "older",
            "verdict": Entry(verdict=FAIL),
            "rate": "31.0 %",
            "95 % interval": "21.0 % to 41.0 %",
            "ratio to the highest": "0.449",
            "95 % interval of it": "0.400 to 0.500",
            "corrected p": ".0230",
            "chosen": "372",
            "choices": "1,200",
            "p": ".0220",
            "Fisher p of the 2×2 table": ".0210",
        }

    def test_the_highest_rate_has_no_ratio(self):
        cells = shown(
            preference_sections.RATE_COLUMNS, preference_sections.GroupRate(SHARES[1], None)
        )
        assert cells["verdict"] == "highest"
        assert cells["rate"] == "69.0 %"
        for title in ("ratio to the highest", "95 % interval of it", "corrected p", "p"):
            assert cells[title] == "–"

    def test_four_fifths_of_the_reference_are_drawn(self):
        """Of the highest where there is no reference, and nothing where nobody was chosen."""
        picture = preference_sections.rate_section(ARM).parts[2]
        assert [line.value for line in picture.lines] == [pytest.approx(0.8 * 0.69)]
        nobody = tuple(replace(rate, share=Rate(0, 0)) for rate in SHARES)
        empty = replace(
            ARM,
            preference=replace(PREFERENCE, rates=nobody),
            four_fifths=replace(ARM.four_fifths, reference=None, pairs=()),
        )
        assert preference_sections.rate_section(empty).parts[2].lines == ()

    def test_chi_square_as_corrected_and_by_the_plain_recipe(self):
        assert preference_sections.rate_section(ARM).parts[1] == (
            "All groups together: χ² 20.0 on 1 df, p .0020; by the plain recipe χ² 40.0, p .0010."
        )


class TestChanges:
    def columns(self, contrast: results.ContrastResults) -> dict[str, Any]:
        (section,) = preference_sections.change_sections([contrast])
        _, _, figures = section.parts
        return dict(zip(figures.head, figures.rows[0], strict=True))

    def test_two_groups_in_two_arms(self):
        assert self.columns(CONTRAST) == {
            "pair": "older – younger",
            "verdict": Entry(verdict=PASS),
            "less preference by": "+16.0",
            "95 % interval": "+9.0 to +23.0",
            "corrected p": ".0710",
            "in raw_naive": "−20.0",
            "95 % interval of it": "−30.0 to −10.0",
            "in scrubbed": "−5.0",
            "95 % interval of that": "−15.0 to +5.0",
            "change": "+15.0",
            "from": "30 name pairs",
        }

    def test_arms_that_share_nothing(self):
        """No figure, and none is made up."""
        nothing = results.PreferenceChange(
            group_1="older",
            group_2="younger",
            corrected_p_value=1.0,
            verdict=OPEN,
            reason=Reason.N,
        )
        cells = self.columns(replace(CONTRAST, pairs=(nothing,)))
        assert cells["corrected p"] == "1"
        for title in ("less preference by", "in raw_naive", "95 % interval of that", "from"):
            assert cells[title] == "–"

    def test_all_figures_stand_after_the_last_class(self):
        """By class where the groups share one; the classes say which they are."""
        contrasts = [CONTRAST, replace(CONTRAST, by="race"), replace(CONTRAST, by="birth_year")]
        first, last = preference_sections.change_sections(contrasts)
        assert first.heading == "both: scrubbed against raw_naive, by race"
        assert last.heading == "both: scrubbed against raw_naive, by birth year"
        assert first.parts == ("It fell.",)
        picture, figures = last.parts[-2:]
        assert [row.part for row in picture.rows] == ["by group", "by race", "by birth_year"]
        assert [row[0] for row in figures.rows] == [
            "older – younger",
            "race: older – younger",
            "birth_year: older – younger",
        ]


class TestExplanations:
    def test_the_order(self):
        row = explanation_sections.ArmOrder("raw_naive", ORDER)
        assert shown(explanation_sections.ORDER_COLUMNS, row) == {
            "arm": "raw_naive",
            "choices": "1,200",
            "first-listed chosen": "60.0 %",
            "95 % interval": "55.0 % to 65.0 %",
            "log odds of standing first": "+0.41",
            "χ²": "16.4",
            "df": "1",
            "p": ".0310",
        }

    def test_no_order_without_a_choice(self):
        (words,) = explanation_sections.order_parts([replace(ARM, order=None)])
        assert words.startswith("No choice could be read")

    def test_an_interaction(self):
        row = explanation_sections.ArmInteraction("raw_naive", INTERACTION)
        assert shown(explanation_sections.INTERACTION_COLUMNS, row) == {
            "arm": "raw_naive",
            "χ²": "7.3",
            "df": "3",
            "p of trials": ".0410",
            "p by names": ".0420",
            "p": ".0430",
        }

    def test_levels_stand_beside_each_other(self):
        """A column a level, a row a group of an arm; what an arm was not asked is a dash."""
        other = replace(
            INTERACTION,
            levels=(*INTERACTION.levels[:1], ContextLevel(level="smith", shares=SHARES[:1])),
        )
        arms = [ARM, replace(ARM, arm="scrubbed", interactions=(other,))]
        (section,) = explanation_sections.interaction_sections(arms)
        assert section.heading == "role × age"
        rates = section.parts[1]
        assert rates.head == ("arm and group", "nurse", "cook", "smith")
        older = "31.0 % (21.0 % to 41.0 %)"
        assert rates.rows[0] == ("raw_naive: older", older, older, "–")
        assert rates.rows[2] == ("scrubbed: older", older, "–", older)

    def test_a_single_level_is_no_interaction(self):
        single = replace(INTERACTION, levels=INTERACTION.levels[:1])
        assert not list(
            explanation_sections.interaction_sections([replace(ARM, interactions=(single,))])
        )

    def test_strengths(self):
        picture, figures, tests = explanation_sections.strength_parts([ARM])
        assert figures.rows == (
            ("raw_naive: older", "+0.00", "–"),
            ("raw_naive: younger", "+0.80", "+0.60 to +1.00"),
            ("raw_naive: standing first", "+0.50", "+0.11 to +0.89"),
        )
        assert [row.words for row in picture.rows] == ["the reference", "+0.80"]
        assert tests.rows == (("raw_naive", "9.9", "1", ".0510", "a note; another"),)

    def test_a_ridge_fit_is_for_orientation(self):
        arm = replace(ARM, strengths=replace(STRENGTHS, ridge=True, p_value=None), notes=())
        picture, _, tests = explanation_sections.strength_parts([arm])
        assert {row.part for row in picture.rows} == {"raw_naive (ridge: for orientation)"}
        assert tests.rows[0][3:] == ("–", "–")

    def test_what_the_replies_came_to(self):
        """Kinds of which there is none have no column."""
        words, bars, figures = explanation_sections.outcome_parts([ARM])
        assert words == "raw_naive: 1,200 of 1,500 trials name a candidate."
        assert bars.bars == {"raw_naive": {"chosen": 0.8, "neither": 0.2}}
        assert figures.head == ("arm and pair", "asked", "chosen", "neither", "p")
        assert figures.rows == (
            ("raw_naive: all pairs", "1,500", "1,200 (80.0 %)", "300 (20.0 %)", ".0610"),
            ("raw_naive: older – younger", "1,500", "1,200 (80.0 %)", "300 (20.0 %)", ""),
        )


class TestScrubbers:
    def quality(self, **changes: Any) -> results.ScrubberQuality:
        plain: dict[str, Any] = {
            "arm": "scrubbed",
            "texts": 12,
            "recall": (REMOVED,),
            "content": (),
            "lines": Rate(40, 30, 0.75, 0.7, 0.8),
            "reidentified": (),
            "notes": (),
        }
        return results.ScrubberQuality(**plain | changes)

    def test_shares_of_the_groups_and_what_compares_them(self):
        _, removed = scrubber_sections.scrubber_sections([self.quality()])
        sentence, picture, figures = removed.parts
        assert sentence == "name by group: Too few names. (INCONCLUSIVE)"
        assert [row.label for row in picture.rows] == ["older", "younger"]
        assert dict(zip(figures.head, figures.rows[-1], strict=True)) == {
            "what and group": "name: all, by group",
            "verdict": Entry(verdict=OPEN, reason=Reason.PRECISION),
            "share": "50.0 %",
            "95 % interval": "45.0 % to 55.0 %",
            "of": "2,400",
            "effect d between groups": "+0.33",
            "corrected p": ".0810",
        }
        assert figures.rows[0] == (
            "name: older", "", "31.0 %", "21.0 % to 41.0 %", "1,200", "", "",
        )  # fmt: skip

    def test_one_group_is_not_compared(self):
        alone = results.TextShare(
            what="name", by="group", shares=SHARES[:1], overall=SHARES[0].share
        )
        _, removed = scrubber_sections.scrubber_sections([self.quality(recall=(alone,))])
        picture, figures = removed.parts
        assert len(picture.rows) == 1
        assert figures.rows[-1][1] == figures.rows[-1][-1] == "–"

    def test_passes_are_one_sentence(self):
        passed = replace(REMOVED, verdict=PASS, reason=None)
        quality = self.quality(content=(passed, replace(passed, by="age")))
        *_, kept = scrubber_sections.scrubber_sections([quality])
        assert kept.heading == "scrubbed: content kept"
        assert kept.parts[0] == "2 comparisons between groups: no difference larger than small."
        # Classes say the same again: they stand in the table alone.
        assert len(kept.parts[1].rows) == 2
        assert len(kept.parts[2].rows) == 6

    def test_the_texts_and_the_notes(self):
        first, *_ = scrubber_sections.scrubber_sections([self.quality(notes=("a note",))])
        assert first.parts == (
            "In 75.0 % of 40 texts the candidates can still be told apart, in order.",
            "a note",
        )

    def test_a_guess(self):
        assert shown(scrubber_sections.GUESS_COLUMNS, GUESS) == {
            "text and reader": "raw, classifier",
            "texts": "60",
            "right": "75.0 %",
            "95 % interval": "64.0 % to 86.0 %",
            "chance": "51.0 %",
            "p": ".0910",
            "not read": "7",
            "right by group": "older 31.0 %; younger 69.0 %",
        }

    def test_each_level_of_chance_is_drawn_once(self):
        guesses = (GUESS, replace(GUESS, text="scrubbed", chance=0.5), GUESS)
        *_, section = scrubber_sections.scrubber_sections([self.quality(reidentified=guesses)])
        lines = section.parts[0].lines
        assert [(line.value, line.words) for line in lines] == [(0.5, "chance"), (0.51, "")]
        assert section.heading == "scrubbed: can age still be guessed?"


class TestConclusionAndDesign:
    def test_an_arm_at_a_glance(self):
        """The second of the pair is preferred, so it is named first, with the interval turned."""
        assert shown(page.CONCLUSION_COLUMNS, ARM) == {
            "arm": "raw_naive",
            "verdict": Entry(verdict=FLAG),
            "strongest preference": "younger over older: 69.0 % (59.0 % to 79.0 %)",
            "lowest ratio of rates": "0.449",
            "first-listed chosen": "60.0 %",
            "choices read": "80.0 %",
        }

    def test_an_arm_of_which_nothing_was_read(self):
        unread = replace(PAIR, share=Rate(0, 0))
        arm = replace(
            ARM,
            decided=0,
            order=None,
            preference=replace(PREFERENCE, pairs=(unread,)),
            four_fifths=replace(ARM.four_fifths, pairs=()),
        )
        cells = shown(page.CONCLUSION_COLUMNS, arm)
        assert list(cells.values())[2:] == ["–", "–", "–", "0.0 %"]

    def test_an_arm_of_the_design(self):
        assert shown(page.DESIGN_COLUMNS, ARM) == {
            "arm": "raw_naive",
            "what is done": "the candidates as they are, no system prompt",
            "trials": "1,500",
            "requests": "3,000",
            "cost": "$ 1.5000",
        }
        ours = shown(page.DESIGN_COLUMNS, replace(ARM, arm="mine", cost=None))
        assert ours["what is done"] == "an arm of this project's own"
        assert ours["cost"] == "not known"

    def test_the_facts_of_the_run(self, tmp_path):
        """What is empty is left out."""
        sections = {
            section.id: section
            for section in page.selection_page(RESULTS, tmp_path / "none.jsonl").sections
        }
        rows = dict(sections["design"].parts[0].rows)
        assert rows == {
            "System under test": "mine (m1, m2)",
            "Groups": "older (older), younger",
            "Conveyed by": "name",
            "Names": "30 names a group",
            "What the names allow": "30 sets",
            "Roles": "nurse, cook",
            "Criteria": "punctual",
            "Repetitions": "1,500 of each configuration, in both orders",
            "Asked": "1,500 trials, 3,000 requests",
            "Cost": "not known",
            "Tests": "two-sided at 0.05, corrected over the pairs of an arm (holm)",
        }
        assert "examples" not in sections
        assert "scrubber" not in sections

    def test_the_question_is_whether_the_mitigation_helps_where_there_is_one(self, tmp_path):
        whole = page.selection_page(RESULTS, tmp_path / "none.jsonl")
        assert whole.lead.endswith("whom does mine choose, and does the mitigation change it?")
        alone = page.selection_page(replace(RESULTS, contrasts=()), tmp_path / "none.jsonl")
        assert alone.lead.endswith("and does it matter which group they are of?")


class TestLimits:
    def test_what_every_run_cannot_say(self):
        notes = limits()
        assert "It is about mine as it was on this day" in notes
        assert "claimed from 30 names a group (30 sets)" in notes
        assert "reaches 10.0 percentage points to each side" in notes
        for words in ("made up by a program", "stereotypes", "stated in words", "Undecided"):
            assert words not in notes

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"simulated": True}, "made up by a program"),
            ({"names": 1}, "There is one name a group."),
            ({"signals": ("name", "name+label")}, "Groups are stated in words."),
            (
                {"criteria": ("kind", "tough and logical")},
                "stereotypes on purpose (tough and logical)",
            ),
        ],
        ids=["simulated", "one name", "labels", "stereotypes"],
    )
    def test_what_this_run_cannot_say(self, changes, words):
        assert words in limits(**changes)

    def test_what_an_undecided_arm_cannot_say(self):
        undecided = replace(ARM, arm="scrubbed", preference=replace(PREFERENCE, verdict=OPEN))
        _, section = reading_sections.reading_parts(replace(RESULTS, arms=(ARM, undecided)))
        notes = "\n".join(section.parts[0].items)
        assert "Undecided: scrubbed. An arm" in notes
        assert "The model that scrubs is the model that judges" in notes
