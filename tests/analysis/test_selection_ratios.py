"""The four-fifths rule among candidates of whom one is chosen."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact

from pytest_fairness.analysis.selection_ratios import selection_ratios
from pytest_fairness.model import Reason, Verdict
from pytest_fairness.statistics.selection_rates import units_of
from tests.support.choice_tables import choices_of


def judged(frame, cluster=None):
    """The ratios of a table of choices."""
    choices = choices_of(frame, cluster=cluster)
    return selection_ratios(
        choices, units_of(choices), by="group", alpha=0.05, correction="bonferroni"
    )


def two_groups(a_first, b_first, n=100, names=20, **columns):
    """A and B, *n* trials in each order: A wins *a_first* of those in which it is listed first, B
    *b_first* of its own.
    """
    rows = []
    for trial in range(n):
        name = f"pair {trial % names}"
        rows.append(("A", "B", "A" if trial < a_first else "B", name))
        rows.append(("B", "A", "B" if trial < b_first else "A", name))
    frame = pd.DataFrame(rows, columns=["first", "second", "chosen", "name"])
    return judged(frame.assign(**columns), "name")


class TestTheRule:
    def test_below_and_sure(self):
        """60 of 200 against 140: a FAIL, with the rule's own figures beside it."""
        found = two_groups(30, 70)
        (pair,) = found.pairs
        assert (found.reference, found.verdict) == ("B", Verdict.FAIL)
        assert (pair.group, pair.reference) == ("A", "B")
        assert (pair.ratio, pair.shortfall) == (pytest.approx(60 / 140), pytest.approx(40))
        assert (pair.below, pair.flip_flop) == (True, False)
        assert pair.z < 0
        assert pair.fisher_p == pytest.approx(fisher_exact([[60, 140], [140, 60]]).pvalue)

    def test_fishers_table_counts_every_choice_twice(self):
        """88 against 112 of 200: the table says .02, the choices themselves .09."""
        (pair,) = two_groups(44, 56).pairs
        assert pair.fisher_p < 0.03
        assert pair.p_value > 0.05
        assert (pair.verdict, pair.reason) == (Verdict.INCONCLUSIVE, Reason.SMALL_NUMBERS)

    def test_exactly_four_fifths_is_not_below(self):
        """80 against 100 of 180, which a division would put below it."""
        found = two_groups(40, 50, n=90)
        assert found.pairs[0].ratio == pytest.approx(0.8)
        assert (found.pairs[0].below, found.verdict) == (False, Verdict.PASS)

    def test_a_position_that_decides_much_hides_nothing(self):
        """99 of 100 listed first against 81."""
        found = two_groups(81, 99)
        assert found.pairs[0].ratio == pytest.approx(82 / 118)
        assert found.pairs[0].p_value < 0.01

    def test_the_sentence_is_about_the_worst_pair(self):
        found = two_groups(30, 70)
        assert found.sentence.startswith("FAIL: the favourable rate of A on selection is 30.0 %")
        assert "an impact ratio of 0.43, below four fifths" in found.sentence


class TestWhatIsNotJudged:
    def test_one_name_a_group_is_about_that_name(self):
        """The same choices as those of a FAIL; a single name caps it at FLAG."""
        found = two_groups(30, 70, names=1)
        assert (found.verdict, found.pairs[0].below) == (Verdict.FLAG, True)

    def test_unread_replies_come_before_a_ratio_is_judged(self):
        """One in ten refused: open, whatever the ratio is."""
        found = two_groups(30, 70, refused=np.arange(200) % 20 < 2)
        assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.UNSCORED)
        assert found.pairs[0].below

    def test_neither_is_a_reply_that_was_read(self):
        frame = pd.DataFrame({"first": ["A", "B"] * 60, "second": ["B", "A"] * 60})
        found = judged(frame.assign(chosen=["A"] * 60 + ["neither"] * 60))
        assert found.pairs[0].reason is not Reason.UNSCORED

    def test_nobody_was_chosen(self):
        frame = pd.DataFrame({"first": ["A", "B"] * 60, "second": ["B", "A"] * 60, "chosen": None})
        found = judged(frame)
        assert (found.reference, found.pairs) == (None, ())
        assert (found.verdict, found.reason) == (Verdict.INCONCLUSIVE, Reason.N)
        assert "no two groups of group" in found.sentence


class TestTheFamily:
    def test_all_pairs_are_corrected_for(self):
        """The data choose the reference: of three groups, two pairs are shown and three tested."""
        rows = []
        for trial in range(60):
            for first, second in (("A", "B"), ("B", "C"), ("C", "A")):
                winner = first if trial % 3 else second
                rows.append((first, second, winner, f"pair {trial % 20}"))
                rows.append((second, first, winner, f"pair {trial % 20}"))
        rows += [("A", "B", "A", f"pair {trial}") for trial in range(20)]
        frame = pd.DataFrame(rows, columns=["first", "second", "chosen", "name"])
        found = judged(frame, "name")
        assert found.reference == "A"
        assert [pair.group for pair in found.pairs] == ["B", "C"]
        for pair in found.pairs:
            assert pair.corrected_p_value == pytest.approx(min(1.0, 3 * pair.p_value))
