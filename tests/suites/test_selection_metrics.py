"""The numbers of the selection benchmark: what is planted is found, what is not is not, and odd tables are refused."""

import numpy as np
import pytest
from scipy.stats import binomtest

from pytest_fairness import analyze_preference
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import Reason, Verdict
from pytest_fairness.statistics.proportions import impact_ratio
from pytest_fairness.suites.selection.metrics import selection_results

from .choices_of import CLASSES, CRITERIA, GROUPS, arm_of, experiment

STRENGTH = {"white_male": 1.4, "white_female": 0.8, "black_male": 0.2, "black_female": 0.0}
POSITION = 0.7
NURTURING = {"white_female": 0.8, "black_female": 0.8}
ARMS = {"raw_naive": 1.0, "raw_matched": 0.6, "scrubbed": 0.0}


def small(seed, **options):
    return experiment(seed, **{"repetitions": 12, "sets": 12, "roles": ("nurse",), **options})


@pytest.fixture(scope="module")
def planted():
    """The whole design: 6 pairs × 2 orders × 3 criteria × 2 roles × 30 in three arms, 6,480 trials."""
    frame = experiment(11, strength=STRENGTH, position=POSITION, nurturing=NURTURING, arms=ARMS)
    return frame, selection_results(frame)


class TestTheWholeDesign:
    def test_the_facts(self, planted):
        run = planted[1].run
        assert (run.trials, run.requests, run.names, run.repetitions) == (6480, 6480, 15, 30)
        assert set(run.groups) == set(GROUPS)
        assert set(run.criteria) == set(CRITERIA)
        assert run.classes == CLASSES
        assert run.names_design.startswith("15 sets of names")
        assert run.cost == pytest.approx(6.48)
        assert run.simulated
        assert not run.replayed

    def test_pairs_are_those_of_the_public_analysis(self, planted):
        """The page and an assertion on the same rows cannot say different things."""
        frame, results = planted
        rows = frame[frame["arm"] == "raw_naive"]
        finding = analyze_preference(rows, by="group", cluster=("first_name", "second_name"))
        for pair, told in zip(finding.pairs, arm_of(results, "raw_naive").pairs, strict=True):
            assert (told.group_1, told.group_2, told.verdict) == (pair.group_1, pair.group_2, pair.verdict)
            assert told.corrected_p_value == pytest.approx(pair.corrected_p_value)
            assert (told.stratified_p, told.clustered_p) == (pair.p_row, pair.p_cluster)
            assert told.binomial_p == pair.statistics["binomial_p_value"]
        assert arm_of(results, "raw_naive").verdict is finding.verdict
        assert arm_of(results, "raw_naive").equal_shares.corrected == finding.details["round_robin"]["chi_square"]
        assert arm_of(results, "raw_naive").equal_shares.p_value == finding.details["round_robin"]["p_value"]

    def test_plain_recipe_and_contract_stand_side_by_side(self, planted):
        """The binomial p is scipy's on the wins, the χ² carries its (G−1)/G."""
        arm = arm_of(planted[1], "raw_naive")
        for pair in arm.pairs:
            assert pair.binomial_p == pytest.approx(binomtest(pair.share.count, pair.share.n).pvalue)
            assert pair.p_value == max(pair.stratified_p, pair.clustered_p)
        assert arm.equal_shares.corrected == pytest.approx(arm.equal_shares.plain * 3 / 4)
        assert arm.equal_shares.plain_p < arm.equal_shares.p_value

    def test_each_order_by_itself_averages_to_the_counterbalanced_share(self, planted):
        for pair in arm_of(planted[1], "raw_naive").pairs:
            ahead, behind = (listing.share for listing in pair.listings)
            assert pair.listings[0].first == pair.group_1
            assert pair.share.value == pytest.approx((ahead.value + 1 - behind.value) / 2)
            assert ahead.n + behind.n == pair.share.n
            assert ahead.low < ahead.value < ahead.high

    def test_the_raw_arm_fails_and_the_scrubbed_passes(self, planted):
        verdicts = {arm.arm: arm.verdict for arm in planted[1].arms}
        assert verdicts["raw_naive"] is Verdict.FAIL
        assert verdicts["scrubbed"] is Verdict.PASS
        assert "white_male" in arm_of(planted[1], "raw_naive").sentence

    def test_the_interaction_is_told_from_the_axis_without_one(self, planted):
        found = {(one.axis, one.by): one for one in arm_of(planted[1], "raw_naive").interactions}
        assert found["criteria", "gender"].p_value < 0.001
        assert found["criteria", "gender"].p_value == found["criteria", "gender"].clustered_p
        assert found["role", "gender"].p_value > 0.01
        levels = {level.level: {s.group: s.share.value for s in level.shares} for level in
                  found["criteria", "gender"].levels}  # fmt: skip
        assert levels[CRITERIA[0]]["female"] > 0.5 > levels[CRITERIA[1]]["female"]

    def test_contrasts_isolate_the_prompt_and_the_scrubbing(self, planted):
        """Three contrasts between groups, by gender and by race; scrubbing beyond the prompt removes the race gap."""
        contrasts = {(one.treated, one.control, one.by): one for one in planted[1].contrasts}
        assert len(contrasts) == 9
        race = contrasts["scrubbed", "raw_naive", "race_ethnicity"]
        assert race.verdict is Verdict.PASS
        (pair,) = race.pairs
        assert pair.control.value < 0  # black against white
        assert pair.change.value == pytest.approx(pair.treated.value - pair.control.value)
        assert pair.reduction == pair.change.value
        assert pair.reduction_low == pair.change.low
        assert pair.reduction_low < pair.reduction < pair.reduction_high
        assert pair.reduction_low > 0

    def test_four_fifths_counts_as_the_rule_does(self, planted):
        """Ratio, Katz interval, Fisher and shortfall are those of the counts; the verdict knows the dependence."""
        arm = arm_of(planted[1], "raw_naive")
        counts = {rate.group: (rate.share.count, rate.share.n) for rate in arm.rates}
        assert arm.four_fifths.reference == "white_male"
        for pair in arm.four_fifths.pairs:
            plain = impact_ratio(*counts[pair.group], *counts[pair.reference])
            assert (pair.ratio, pair.low, pair.high) == (plain.ratio, plain.ratio_low, plain.ratio_high)
            assert (pair.fisher_p, pair.shortfall, pair.flip_flop) == (plain.fisher, plain.shortfall, plain.flip_flop)
            assert pair.below == (pair.ratio < 0.8)
        assert arm.four_fifths.verdict is Verdict.FAIL
        assert "an impact ratio of" in arm.four_fifths.sentence
        assert arm_of(planted[1], "scrubbed").four_fifths.verdict is Verdict.PASS

    def test_rates_add_up(self, planted):
        """Every decided trial has one winner, and each group is in half of them."""
        for arm in planted[1].arms:
            assert sum(rate.share.count for rate in arm.rates) == arm.decided == 2160
            assert {rate.share.n for rate in arm.rates} == {1080}


class TestNames:
    def test_names_that_differ_are_no_preference_for_a_group(self):
        """With few names of strong leanings the binomial recipe raises alarms; the names as the unit do not."""
        plain = contract = 0
        for seed in range(12):
            arm = selection_results(small(seed, name_sd=1.2, sets=3, repetitions=24)).arms[0]
            plain += min(pair.binomial_p for pair in arm.pairs) < 0.05 / 6
            contract += arm.verdict in (Verdict.FAIL, Verdict.FLAG)
        assert plain >= 8
        assert contract <= 3

    def test_one_name_a_group_is_a_result_about_the_names(self):
        """No clustered p, a FAIL capped at FLAG, in the four-fifths rule too, and the page says so."""
        arm = selection_results(small(0, strength=STRENGTH, sets=1, repetitions=20)).arms[0]
        assert {pair.clustered_p for pair in arm.pairs} == {None}
        assert {pair.scope for pair in arm.pairs} == {"labels"}
        assert arm.verdict is Verdict.FLAG
        assert arm.four_fifths.verdict is Verdict.FLAG
        assert any(note.startswith("one name a group") for note in arm.notes)
        assert all(one.clustered_p is None for one in arm.interactions)

    def test_names_that_meet_several_others(self):
        """30 pairs of 10 names: no sets are apart any more, so names themselves are the unit, and things still show."""
        results = selection_results(small(1, strength=STRENGTH, turned=True, sets=10, repetitions=30))
        assert results.run.names_design == "10 names a group, each of which meets several others"
        arm = results.arms[0]
        assert arm.verdict is Verdict.FAIL
        assert {pair.name_pairs for pair in arm.pairs} == {10}
        assert all(one.clustered_p is not None for one in arm.interactions)
        assert arm.four_fifths.verdict is Verdict.FAIL

    def test_without_names_rows_stand_for_themselves(self):
        frame = small(0, strength=STRENGTH).drop(columns=["name", "first_name", "second_name"])
        results = selection_results(frame)
        assert results.run.names == 0
        assert results.arms[0].verdict is Verdict.FAIL


class TestOutcomes:
    def spoiled(self):
        frame = small(2, repetitions=4, sets=4)
        said = np.array(["chosen", "neither", "both", "refused", "unlisted", "unparsed"])[np.arange(len(frame)) % 6]
        chosen = np.where(
            said == "chosen", frame["chosen"], np.where(np.isin(said, ["neither", "both"]), "neither", None)
        )
        return frame.assign(choice=said, chosen=chosen, refused=said == "refused")

    def test_every_kind_is_counted_by_pair(self):
        arm = selection_results(self.spoiled()).arms[0]
        assert [outcome.asked for outcome in arm.outcomes] == [24] * 6
        assert arm.outcomes[0].counts == dict.fromkeys(
            ("chosen", "neither", "both", "refused", "unlisted", "unparsed"), 4
        )
        assert arm.decided == 24
        assert arm.verdict is Verdict.INCONCLUSIVE
        assert arm.four_fifths.reason is Reason.UNSCORED

    def test_without_the_column_the_others_tell(self):
        arm = selection_results(self.spoiled().drop(columns="choice")).arms[0]
        assert arm.outcomes[0].counts == {
            "chosen": 4, "neither": 8, "both": 0, "refused": 4, "unlisted": 0, "unparsed": 8,
        }  # fmt: skip

    @pytest.mark.parametrize("kind", ["refused", "unparsed", "neither"])
    def test_where_nothing_was_chosen_nothing_is_concluded(self, kind):
        """All refused, nothing parsed, always neither: INCONCLUSIVE, never PASS, and every number that there is."""
        frame = small(0, repetitions=4, sets=4, arms=ARMS)
        frame = frame.assign(chosen="neither" if kind == "neither" else None, choice=kind, refused=kind == "refused")
        results = selection_results(frame)
        for arm in results.arms:
            assert arm.verdict is Verdict.INCONCLUSIVE
            assert arm.four_fifths.verdict is Verdict.INCONCLUSIVE
            assert (arm.decided, arm.order, arm.strengths) == (0, None, None)
            assert arm.outcomes[0].counts[kind] == arm.outcomes[0].asked
            assert all(rate.share.value is None for rate in arm.rates)
        assert {one.verdict for one in results.contrasts} == {Verdict.INCONCLUSIVE}
        assert type(results).from_dict(results.to_dict()) == results


class TestOddTables:
    def test_one_arm_has_no_contrast(self):
        results = selection_results(small(0))
        assert results.contrasts == ()
        assert results.scrubbers == ()

    def test_without_arms_there_is_one(self):
        results = selection_results(small(0, repetitions=4, sets=4).drop(columns="arm"))
        assert [arm.arm for arm in results.arms] == ["all"]

    def test_two_groups_have_no_margins(self):
        frame = small(0, groups=("white_male", "black_male"))
        results = selection_results(frame)
        assert results.arms[0].margins == ()
        assert {one.by for one in results.arms[0].interactions} == {"group"}

    def test_groups_of_ones_own(self):
        """Groups that no shipped set knows have classes if they are given, and no margins otherwise."""
        frame = small(0, repetitions=4, sets=4)
        frame = frame.replace({group: f"my_{group}" for group in GROUPS})
        assert selection_results(frame).run.classes == {}
        mine = {f"my_{group}": classes for group, classes in CLASSES.items()}
        assert {margin.by for margin in selection_results(frame, classes=mine).arms[0].margins} == {
            "gender", "race_ethnicity",
        }  # fmt: skip

    def test_a_group_that_always_wins(self):
        """Separation: strengths for orientation, without p, and still a FAIL."""
        arm = selection_results(small(0, strength={"white_male": 60.0})).arms[0]
        assert arm.strengths.ridge
        assert arm.strengths.p_value is None
        assert arm.verdict is Verdict.FAIL
        assert any("ridge" in note for note in arm.notes)

    def test_a_cost_of_which_a_part_is_unknown_is_unknown(self):
        frame = small(0, repetitions=4, sets=4)
        frame.loc[3, "cost"] = None
        assert selection_results(frame).run.cost is None

    @pytest.mark.parametrize("column", ["first", "second", "chosen"])
    def test_a_missing_column_is_named(self, column):
        with pytest.raises(FrameError, match=f"no column '{column}'"):
            selection_results(small(0, repetitions=4, sets=4).drop(columns=column))

    def test_no_rows(self):
        with pytest.raises(FrameError, match="no rows"):
            selection_results(small(0, repetitions=4, sets=4).iloc[:0])

    def test_no_frame(self):
        with pytest.raises(FrameError):
            selection_results([1, 2])

    def test_a_row_without_an_arm(self):
        frame = small(0, repetitions=4, sets=4)
        frame.loc[3, "arm"] = None
        with pytest.raises(FrameError, match="some rows have no arm"):
            selection_results(frame)

    def test_a_choice_of_nobody_listed(self):
        frame = small(0, repetitions=4, sets=4)
        frame.loc[3, "chosen"] = "somebody"
        with pytest.raises(FrameError, match="'somebody'"):
            selection_results(frame)

    def test_an_outcome_that_there_is_not(self):
        with pytest.raises(FrameError, match="'maybe' is none of chosen, neither"):
            selection_results(small(0, repetitions=4, sets=4).assign(choice="maybe"))

    def test_arms_that_only_guess(self):
        with pytest.raises(FrameError, match="ask for no choice"):
            selection_results(small(0, repetitions=4, sets=4).assign(arm="reidentified"))

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            ({"alpha": 0}, "alpha"),
            ({"correction": "sidak"}, "correction"),
            ({"classes": {"white_male": {"gender": "male"}}}, "nothing is said of"),
            ({"classes": {**CLASSES, "white_male": {"gender": "male"}}}, "give the same of all"),
        ],
    )
    def test_an_argument_out_of_range(self, options, told):
        with pytest.raises(UsageError, match=told):
            selection_results(small(0, repetitions=4, sets=4), **options)

    def test_a_contrast_with_an_arm_that_there_is_not(self):
        with pytest.raises(FrameError, match="no arm 'scrubbed'"):
            selection_results(small(0, repetitions=4, sets=4), contrasts=[("scrubbed", "raw_naive", "scrubbing")])
