"""What a choice depends on beside the groups: the position and the context are flagged, and never
passed.
"""

from __future__ import annotations

import pandas as pd
import pytest

from pytest_fairness.analysis.choice_effects import (
    ContextInteraction,
    ContextLevel,
    GroupShare,
    OrderEffect,
    context_interaction,
    interaction_finding,
    order_effect,
    order_finding,
)
from pytest_fairness.model import OutcomeKind, Verdict
from pytest_fairness.statistics.arrays import code
from pytest_fairness.statistics.bradley_terry import bradley_terry
from pytest_fairness.statistics.selection_rates import Rate, units_of
from tests.support.choice_tables import choices_of

TRIALS = pd.DataFrame({"name": ["a", "b", "a", "c"]})


def order(first: float | None, n: int = 200) -> OrderEffect:
    """The first-listed is chosen in a share of *first*."""
    return OrderEffect(
        share=Rate(n, 0, first, 0.1, 0.2),
        log_odds=2.197,
        error=0.1,
        likelihood_ratio=12.34567,
        df=1,
        p_value=0.004,
    )


def interaction(
    p_value: float | None, nurse: float | None, cook: float | None, axis: str = "role"
) -> ContextInteraction:
    """The older are chosen in a share of *nurse* and of *cook*, the younger in one half."""
    levels = []
    for level, older in (("nurse", nurse), ("cook", cook)):
        shares = (
            GroupShare(group="younger", share=Rate(10, 5, 0.5)),
            GroupShare(group="older", share=Rate(10, 5, older)),
        )
        levels.append(ContextLevel(level=level, shares=shares))
    return ContextInteraction(
        axis=axis,
        by="age",
        levels=tuple(levels),
        likelihood_ratio=9.87654,
        df=3,
        row_p=p_value,
        clustered_p=None,
        p_value=p_value,
    )


def choices(rows):
    """The choices of *rows*: first, second, chosen, role."""
    frame = pd.DataFrame(rows, columns=["first", "second", "chosen", "role"])
    read = choices_of(frame, block=("role",))
    return read, units_of(read), code(frame, "role", "axis")


class TestThePosition:
    def test_nine_choices_in_ten_are_flagged(self):
        finding = order_finding(order(0.9), TRIALS, "raw_naive")
        assert finding.verdict is Verdict.FLAG
        assert finding.sentence == (
            "FLAG: in arm raw_naive the candidate listed first is chosen in 90.0 % of 200 trials, "
            "whoever it is, so that little is left to see a preference by."
        )
        assert (finding.assertion, finding.kind) == ("order_effect", OutcomeKind.BINARY)
        assert finding.test_statistic == "likelihood ratio = 12.3457, df = 1"
        assert finding.effect_size == "log odds of standing first = 2.20"
        assert (finding.p_value, finding.corrected_p_value) == (0.004, 0.004)
        assert finding.details["order_effect"]["share"]["n"] == 200

    def test_so_are_nine_in_ten_for_the_second(self):
        finding = order_finding(order(0.05), TRIALS, "raw_naive")
        assert "the candidate listed second is chosen in 95.0 % of 200 trials" in finding.sentence

    @pytest.mark.parametrize("first", [0.899, 0.5, 0.101, None])
    def test_less_is_no_finding_and_never_a_pass(self, first):
        assert order_finding(order(first), TRIALS, "raw_naive") is None

    def test_nor_is_an_arm_without_a_choice(self):
        assert order_finding(None, TRIALS, "raw_naive") is None

    def test_its_group_has_the_names_of_the_trials(self):
        finding = order_finding(order(0.95), TRIALS, "raw_naive")
        (group,) = finding.group_results
        assert (group.group, group.n, group.clusters) == ("listed first", 200, 3)
        assert finding.n_per_group == {"listed first": 200}

    def test_it_is_read_off_choices(self):
        """Three of four: the share is that of all decided trials."""
        rows = [("A", "B", winner, "nurse") for winner in "AAAB"]
        rows += [("B", "A", winner, "nurse") for winner in "BBBA"]
        read, units, _ = choices(rows * 5)
        effect = order_effect(read, units, bradley_terry(read))
        assert (effect.share.n, effect.share.count, effect.share.value) == (40, 30, 0.75)
        assert effect.log_odds == pytest.approx(1.0986, abs=0.001)  # log 3

    def test_no_choice_has_no_position(self):
        read, units, _ = choices([("A", "B", None, "nurse"), ("B", "A", None, "nurse")])
        assert order_effect(read, units, bradley_terry(read)) is None


class TestTheContext:
    def test_a_preference_that_depends_on_it_is_flagged(self):
        finding = interaction_finding([interaction(0.01, 0.7, 0.4)], TRIALS, "scrubbed")
        assert finding.verdict is Verdict.FLAG
        assert finding.sentence == (
            "FLAG: in arm scrubbed who is chosen depends on role: older is chosen in 40.0 % of its "
            "trials for 'cook' and in 70.0 % for 'nurse' (30.0 points, corrected p = .010)."
        )
        assert finding.protected_class == "age"
        assert finding.test_statistic == "likelihood ratio = 9.8765, df = 3"
        assert finding.effect_size == "widest difference of shares = 0.300 (older)"
        assert set(finding.n_per_group) == {
            "younger, nurse", "older, nurse", "younger, cook", "older, cook",
        }  # fmt: skip

    def test_the_pair_names_both_levels(self):
        finding = interaction_finding([interaction(0.01, 0.7, 0.4)], TRIALS, "scrubbed")
        (pair,) = finding.pairs
        assert (pair.group_1, pair.group_2) == ("older, cook", "older, nurse")
        assert (pair.metric, pair.verdict) == ("chosen by role", Verdict.FLAG)
        assert pair.difference == pytest.approx(-0.3)
        assert pair.statistics["df"] == 3

    @pytest.mark.parametrize(
        ("p_value", "nurse", "cook"),
        [(0.05, 0.9, 0.1), (0.0001, 0.52, 0.48), (None, 1.0, 0.0)],
        ids=["within chance", "trivial", "a group always won"],
    )
    def test_what_is_no_finding(self, p_value, nurse, cook):
        """Nothing is claimed: a ratio that is not significant is no evidence of evenness."""
        assert interaction_finding([interaction(p_value, nurse, cook)], TRIALS, "scrubbed") is None

    def test_all_interactions_of_an_arm_are_one_family(self):
        """Holm: .03 is significant alone, and as the second of two where the first is; not beside
        one that is not.
        """
        strong, weak = interaction(0.03, 0.7, 0.4), interaction(0.6, 0.5, 0.5, "criteria")
        assert interaction_finding([strong], TRIALS, "scrubbed") is not None
        assert interaction_finding([strong, weak], TRIALS, "scrubbed") is None
        stronger = interaction(0.001, 0.8, 0.3, "criteria")
        finding = interaction_finding([strong, stronger], TRIALS, "scrubbed")
        assert [pair.corrected_p_value for pair in finding.pairs] == [
            pytest.approx(0.03),
            pytest.approx(0.002),
        ]
        assert "depends on criteria" in finding.sentence
        assert finding.family == {
            "size": 2, "method": "holm", "alpha": 0.05, "metrics": ["chosen"],
        }  # fmt: skip

    def test_a_test_among_many_has_less_of_the_level(self):
        given = [interaction(0.01, 0.7, 0.4)]
        assert interaction_finding(given, TRIALS, "scrubbed", alpha=0.01) is None
        finding = interaction_finding(given, TRIALS, "scrubbed", alpha=0.011)
        assert finding.family["alpha"] == 0.011

    def test_one_that_has_no_p_is_not_in_the_family(self):
        finding = interaction_finding(
            [interaction(None, 1.0, 0.0), interaction(0.03, 0.7, 0.4)], TRIALS, "scrubbed"
        )
        assert finding.family["size"] == 1
        assert len(finding.details["interactions"]) == 2

    def test_a_level_without_a_choice_is_no_level_of_the_widest(self):
        three = interaction(0.01, 0.7, None)
        assert interaction_finding([three], TRIALS, "scrubbed") is None

    def test_it_is_read_off_choices(self):
        """A is chosen for nurse, B for cook, in four of five: shares, and a ratio that shows it."""
        rows = []
        for role, winner, loser in (("nurse", "A", "B"), ("cook", "B", "A")):
            for first, second in (("A", "B"), ("B", "A")):
                rows += [(first, second, winner, role)] * 4 + [(first, second, loser, role)]
        read, units, level = choices(rows * 4)
        found = context_interaction(read, units, level, axis="role", by="group")
        shares = {
            (part.level, share.group): share.share.value
            for part in found.levels
            for share in part.shares
        }
        assert shares == {
            ("cook", "A"): pytest.approx(0.2),
            ("cook", "B"): pytest.approx(0.8),
            ("nurse", "A"): pytest.approx(0.8),
            ("nurse", "B"): pytest.approx(0.2),
        }
        assert (found.axis, found.by, found.df) == ("role", "group", 1)
        assert found.row_p < 0.001
        assert found.p_value in (found.row_p, found.clustered_p)

    def test_without_any_choice_there_is_nothing_to_test(self):
        rows = [("A", "B", None, "nurse"), ("B", "A", None, "cook")]
        read, units, level = choices(rows)
        found = context_interaction(read, units, level, axis="role", by="group")
        assert (found.p_value, found.df, len(found.levels)) == (None, 0, 2)
