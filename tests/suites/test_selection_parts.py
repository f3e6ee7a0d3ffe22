"""The parts that the benchmark's numbers are put together from, each by itself."""

import numpy as np
import pandas as pd
import pytest

from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import Reason, Verdict
from pytest_fairness.statistics.choices import FIRST, NEITHER, REFUSED, SECOND, UNSCORED, read_choices
from pytest_fairness.statistics.selection_rates import units_of
from pytest_fairness.suites.selection.choice_table import (
    axes_of,
    by_class,
    classes_of,
    context_columns,
    crossed_classes,
    groups_of,
    require_choices,
    units_column,
)
from pytest_fairness.suites.selection.metrics import four_fifths_of, selection_results

from .choices_of import CLASSES, CRITERIA, GROUPS, experiment

ALPHA = {"alpha": 0.05, "correction": "bonferroni"}


def small(seed=0, **options):
    return experiment(seed, **{"repetitions": 6, "sets": 6, "roles": ("nurse",), **options})


class TestReading:
    def test_both_names_are_the_unit_where_both_are_known(self):
        frame = small()
        assert units_column(frame) == ("first_name", "second_name")
        assert units_column(frame.assign(first_name=None)) == "name"
        assert units_column(frame.drop(columns=["first_name", "name"])) is None

    def test_conditions_are_blocks_where_there_are_several(self):
        frame = small()
        assert context_columns(frame) == ("template",)
        both = pd.concat([frame, frame.assign(signal="name")])
        assert context_columns(both) == ("template", "signal")
        assert context_columns(frame.drop(columns="template")) == ()

    def test_axes_have_two_levels_at_least(self):
        frame = small().assign(qualifications="2 years")
        assert axes_of(frame) == ("criteria",)
        assert axes_of(frame, axes=("role", "seniority")) == ()

    def test_groups_keep_their_order(self):
        assert groups_of(small()) == GROUPS

    def test_classes_of_the_shipped_sets(self):
        assert classes_of(GROUPS, None) == CLASSES
        assert classes_of(("asian_female", "white_male"), None)["asian_female"] == {
            "gender": "female", "race_ethnicity": "asian",
        }  # fmt: skip
        assert classes_of(("north", "south"), None) == {}

    def test_a_group_of_unknown_classes_is_named(self):
        with pytest.raises(UsageError, match="nothing is said of 'black_female'"):
            classes_of(GROUPS, {group: CLASSES[group] for group in GROUPS[:3]})

    def test_margins_need_classes_that_are_crossed(self):
        assert set(crossed_classes(CLASSES)) == {"gender", "race_ethnicity"}
        assert crossed_classes({group: CLASSES[group] for group in GROUPS[:2]}) == ()  # both White: gender is the group
        assert crossed_classes({"older": {"age": "older"}, "younger": {"age": "younger"}}) == ()
        assert crossed_classes({}) == ()

    def test_by_class_keeps_the_pairs_that_differ(self):
        frame = small()
        found = by_class(frame, "gender", CLASSES)
        assert set(found["first"]) == set(found["second"]) == {"male", "female"}
        assert (found["first"] != found["second"]).all()
        assert len(found) == len(frame) * 8 / 12
        at = found.index[0]
        assert found.loc[at, "chosen"] == CLASSES[frame.loc[at, "chosen"]]["gender"]

    def test_by_class_keeps_what_is_no_choice(self):
        frame = small()
        frame["chosen"] = np.where(np.arange(len(frame)) % 2, "neither", None)
        found = by_class(frame, "race_ethnicity", CLASSES)["chosen"]
        assert set(found.dropna()) == {"neither"}
        assert found.isna().sum() == (found == "neither").sum()

    def test_columns_that_a_choice_needs(self):
        with pytest.raises(FrameError, match=r"no column 'second'.*first, second, chosen"):
            require_choices(small().drop(columns="second"))
        assert set(require_choices(small().assign(arm=None))["arm"]) == {"all"}


class TestFacts:
    def test_requests_and_cost_of_all_steps(self):
        frame = small(arms={"raw_naive": 1, "scrubbed": 0})
        frame["requests"] = np.where(frame["arm"] == "scrubbed", 2.0, np.nan)
        results = selection_results(frame)
        half = len(frame) // 2
        assert results.run.requests == half + 2 * half
        assert [arm.requests for arm in results.arms] == [half, 2 * half]
        assert results.run.cost == pytest.approx(0.001 * len(frame))

    def test_what_is_not_in_the_table_is_left_empty(self):
        bare = small()[["first", "second", "chosen"]]
        run = selection_results(bare).run
        assert (run.endpoint, run.models, run.cost, run.signals, run.criteria) == ("", (), None, (), ())
        assert not run.simulated
        assert run.repetitions == len(bare) // 12

    def test_a_label_for_the_names_can_be_given(self):
        assert selection_results(small(), names_design="the published four").run.names_design == "the published four"

    def test_several_models_are_all_named(self):
        frame = small()
        frame.loc[::2, "model"] = "m2"
        assert set(selection_results(frame).run.models) == {"m1", "m2"}

    def test_a_mixed_table_is_simulated_if_any_row_is(self):
        frame = small()
        frame["simulated"] = np.arange(len(frame)) == 3
        assert selection_results(frame).run.simulated


class TestContrasts:
    def frame(self, treated, seed=0, lean=1.2):
        return small(seed, strength={"white_male": lean, "white_female": lean}, repetitions=12, sets=12,
                     arms={"control": 1.0, "treated": treated})  # fmt: skip

    def race(self, treated):
        wanted = [("treated", "control", "what we did")]
        found = selection_results(self.frame(treated), contrasts=wanted, classes=CLASSES).contrasts
        (contrast,) = (one for one in found if one.by == "race_ethnicity")
        return contrast, contrast.pairs[0]

    def test_a_reduction_points_up(self):
        """Black is the first group, and loses in the control: the change is positive, and so is the reduction."""
        contrast, pair = self.race(0.0)
        assert contrast.isolates == "what we did"
        assert pair.control.value < 0 < pair.reduction_low
        assert pair.reduction == pair.change.value
        assert contrast.verdict is Verdict.PASS

    def test_a_preference_that_turns_round_is_more_than_removed(self):
        """The reduction is larger than what there was: the page can see it, and the verdict is no PASS."""
        contrast, pair = self.race(-1.5)
        assert pair.reduction > abs(pair.control.value)
        assert pair.treated.value > 0 > pair.control.value
        assert contrast.verdict is Verdict.FAIL

    def test_a_preference_that_grows_is_a_negative_reduction(self):
        contrast, pair = self.race(3.0)
        assert pair.reduction_high < 0
        assert contrast.verdict is Verdict.FAIL

    def test_turned_the_other_way_the_interval_turns_too(self):
        """Where the first group wins in the control the change is negative and the reduction still points up."""
        frame = small(1, strength={"black_male": 1.2, "black_female": 1.2}, repetitions=12, sets=12,
                      arms={"control": 1.0, "treated": 0.0})  # fmt: skip
        found = selection_results(frame, contrasts=[("treated", "control", "x")], classes=CLASSES).contrasts
        pair = next(one for one in found if one.by == "race_ethnicity").pairs[0]
        assert pair.change.value < 0
        assert (pair.reduction, pair.reduction_low) == (-pair.change.value, -pair.change.high)
        assert pair.reduction_high == -pair.change.low

    def test_arms_that_share_nothing(self):
        """Other names and other contexts in each arm: nothing is paired, and nothing is claimed."""
        frame = self.frame(0.0)
        treated = frame["arm"] == "treated"
        for column in ("first_name", "second_name", "name", "template"):
            frame[column] = np.where(treated, "other " + frame[column], frame[column])
        (contrast,) = selection_results(
            frame, contrasts=[("treated", "control", "x")], classes={group: {} for group in GROUPS}
        ).contrasts
        assert contrast.verdict is Verdict.INCONCLUSIVE
        assert {(pair.change, pair.units) for pair in contrast.pairs} == {(None, 0)}

    def test_arms_called_otherwise_are_set_against_the_first(self):
        found = selection_results(self.frame(0.0)).contrasts
        assert {(one.treated, one.control) for one in found} == {("treated", "control")}


class TestFourFifths:
    def judge(self, first_wins, n=100, **columns):
        """One pair of groups, *n* in each order; *first_wins* of A's and of B's trials as the first."""
        rows = [("A", "B", "A" if at < first_wins[0] else "B", f"pair {at % 20}") for at in range(n)]
        rows += [("B", "A", "B" if at < first_wins[1] else "A", f"pair {at % 20}") for at in range(n)]
        frame = pd.DataFrame(rows, columns=["first", "second", "chosen", "name"]).assign(**columns)
        choices = read_choices(
            frame, first="first", second="second", chosen="chosen", neither="neither", cluster="name", block=()
        )
        return four_fifths_of(choices, units_of(choices), by="group", **ALPHA)

    def test_below_and_sure(self):
        found = self.judge((30, 70))
        assert (found.reference, found.verdict) == ("B", Verdict.FAIL)
        (pair,) = found.pairs
        assert pair.ratio == pytest.approx(60 / 140)
        assert pair.below
        assert not pair.flip_flop
        assert pair.shortfall == pytest.approx(40)

    def test_two_groups_are_no_independent_samples(self):
        """88 against 112 of 200: Fisher's table says .02, the choices themselves .09: no alarm."""
        (pair,) = self.judge((44, 56)).pairs
        assert pair.fisher_p < 0.03
        assert pair.p_value > 0.05
        assert pair.verdict is Verdict.INCONCLUSIVE
        assert pair.reason is Reason.SMALL_NUMBERS

    def test_exactly_four_fifths_passes(self):
        """80 against 100 of 180 is exactly .8, which a division would put below it."""
        found = self.judge((40, 50), n=90)
        assert found.pairs[0].ratio == pytest.approx(0.8)
        assert not found.pairs[0].below
        assert found.verdict is Verdict.PASS

    def test_a_position_that_decides_much_hides_nothing(self):
        """The first wins 90 % of the time; within the orders A wins more often, by as much as it can: 99 against 81."""
        found = self.judge((99, 81))
        assert found.pairs[0].ratio == pytest.approx(82 / 118)
        assert found.pairs[0].p_value < 0.01

    def test_unread_replies_are_told_before_a_ratio_is_judged(self):
        frame_share = np.where(np.arange(200) % 10 == 0, True, False)
        found = self.judge((30, 70), refused=frame_share)
        assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.UNSCORED)

    def test_neither_is_no_unread_reply(self):
        chosen = ["A"] * 60 + ["neither"] * 60
        choices = read_choices(
            pd.DataFrame({"first": ["A", "B"] * 60, "second": ["B", "A"] * 60, "chosen": chosen}),
            first="first", second="second", chosen="chosen", neither="neither", cluster=None, block=(),
        )  # fmt: skip
        found = four_fifths_of(choices, units_of(choices), by="group", **ALPHA)
        assert found.pairs[0].reason is not Reason.UNSCORED

    def test_nobody_was_chosen(self):
        frame = pd.DataFrame({"first": ["A", "B"], "second": ["B", "A"], "chosen": [None, None]})
        choices = read_choices(
            frame, first="first", second="second", chosen="chosen", neither="neither", cluster=None, block=()
        )
        found = four_fifths_of(choices, units_of(choices), by="group", **ALPHA)
        assert (found.reference, found.pairs, found.reason) == (None, (), Reason.N)
        assert "no two groups of group" in found.sentence


class TestAxes:
    def test_qualifications_are_an_axis_like_the_others(self):
        frame = pd.concat(
            [small(at, strength={"white_male": lean}).assign(qualifications=q)
             for at, (q, lean) in enumerate([("borderline", 2.0), ("strong", 0.0)])],
            ignore_index=True,
        )  # fmt: skip
        frame["template"] += "-" + frame["qualifications"]
        results = selection_results(frame)
        assert results.run.qualifications == ("borderline", "strong")
        found = {(one.axis, one.by): one for one in results.arms[0].interactions}
        assert found["qualifications", "group"].p_value < 0.05
        levels = {level.level: level.shares for level in found["qualifications", "group"].levels}
        share = {
            level: next(s.share.value for s in shares if s.group == "white_male") for level, shares in levels.items()
        }
        assert share["borderline"] > share["strong"] + 0.1

    def test_another_axis_by_name(self):
        frame = small().assign(tone=lambda f: np.where(np.arange(len(f)) % 2, "kind", "curt"))
        found = selection_results(frame, axes=("tone",)).arms[0].interactions
        assert {(one.axis, one.by) for one in found} == {
            ("tone", "group"), ("tone", "gender"), ("tone", "race_ethnicity"),
        }  # fmt: skip

    def test_a_level_where_one_group_always_wins(self):
        """Separation at one level only: no p is made up for it."""
        frame = small(repetitions=6)
        always = (frame["criteria"] == CRITERIA[0]) & ((frame["first"] == GROUPS[0]) | (frame["second"] == GROUPS[0]))
        frame.loc[always, "chosen"] = GROUPS[0]
        (one,) = (i for i in selection_results(frame).arms[0].interactions if (i.axis, i.by) == ("criteria", "group"))
        assert (one.row_p, one.p_value) == (None, None)
        level = next(level for level in one.levels if level.level == CRITERIA[0])
        assert next(s.share.value for s in level.shares if s.group == GROUPS[0]) == 1.0


class TestOrder:
    def test_always_the_first(self):
        """The share is 1 with an interval, strengths are even, and nobody is preferred."""
        frame = small().assign(chosen=lambda f: f["first"])
        arm = selection_results(frame).arms[0]
        assert arm.order.share.value == 1.0
        assert arm.order.share.low < 1.0
        assert arm.strengths.ridge
        assert {rate.share.value for rate in arm.rates} == {0.5}
        assert arm.equal_shares.p_value == 1.0

    def test_no_order_effect_is_not_found(self):
        order = selection_results(small(5, repetitions=12, sets=12)).arms[0].order
        assert order.share.low < 0.5 < order.share.high
        assert order.p_value > 0.05
        assert order.df == 1

    def test_an_effect_of_the_second_place(self):
        order = selection_results(small(4, position=-1.0, repetitions=12, sets=12)).arms[0].order
        assert order.share.high < 0.5
        assert order.log_odds + 1.96 * order.error < 0


def test_outcome_codes_are_told_apart():
    """What the statistics call the outcomes of a choice; the four-fifths rule counts on NEITHER being an answer."""
    assert len({FIRST, SECOND, NEITHER, UNSCORED, REFUSED}) == 5
    assert min(FIRST, SECOND) >= 0 > max(NEITHER, UNSCORED, REFUSED)
