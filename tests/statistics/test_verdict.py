"""The policy table, row by row, and what would decide an undecided pair."""

import math
from dataclasses import replace

import pytest

from pytest_fairness.model import PairResult, Reason, Verdict
from pytest_fairness.verdict import (
    Decision,
    PairEvidence,
    after_refusals,
    as_spec,
    assertion_verdict,
    deciding_pair,
    judge_pair,
    needed_size,
    worse,
)

CLEAR = PairEvidence(
    effect=0.8, low=0.5, high=1.1, p_value=1e-4, corrected=6e-4, n=(200, 200), clusters=(20, 20), minimum=30
)


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        ({}, Verdict.FAIL, None),
        ({"effect": -0.8, "low": -1.1, "high": -0.5}, Verdict.FAIL, None),
        ({"effect": 0.5, "low": 0.2}, Verdict.FLAG, None),  # above .5 fails, .5 itself flags
        ({"effect": 0.2, "low": 0.05, "high": 0.35}, Verdict.FLAG, None),
        ({"effect": 0.19, "low": 0.05, "high": 0.35}, Verdict.PASS, None),  # significant, trivial, and precise
        ({"effect": 0.19, "low": -0.2, "high": 0.58}, Verdict.INCONCLUSIVE, Reason.PRECISION),
        ({"corrected": 0.05}, Verdict.INCONCLUSIVE, Reason.PRECISION),
        ({"corrected": 0.9, "effect": 0.1, "low": -0.2, "high": 0.4}, Verdict.PASS, None),
        ({"corrected": 0.9, "effect": 0.1, "low": -0.3, "high": 0.5}, Verdict.INCONCLUSIVE, Reason.PRECISION),
        ({"n": (200, 29)}, Verdict.FLAG, None),
        ({"n": (200, 29), "corrected": 0.3}, Verdict.INCONCLUSIVE, Reason.N),
        ({"n": (200, 0), "corrected": 1.0, "effect": 0.0}, Verdict.INCONCLUSIVE, Reason.N),
        ({"scope": "labels"}, Verdict.FLAG, None),
        ({"unscored": 0.06}, Verdict.INCONCLUSIVE, Reason.UNSCORED),
        ({"unscored": 0.05}, Verdict.FAIL, None),
        ({"ragged": 0.21}, Verdict.INCONCLUSIVE, Reason.RAGGED),
        ({"ragged": 0.20}, Verdict.FAIL, None),
        ({"effect": math.inf, "low": math.inf, "high": math.inf, "constant": True}, Verdict.FAIL, None),
        ({"effect": 0.0, "low": 0.0, "high": 0.0, "constant": True, "corrected": 1.0}, Verdict.PASS, None),
        ({"raw_trivial": True}, Verdict.INCONCLUSIVE, Reason.PRECISION),
        ({"raw_trivial": True, "raw_inside": True}, Verdict.PASS, None),
    ],
)
def test_first_match_wins(changes, verdict, reason):
    """Every row of the table, and the values on its borders."""
    decision = judge_pair(replace(CLEAR, **changes))
    assert (decision.verdict, decision.reason) == (verdict, reason)


def test_absence_of_significance_is_no_pass():
    """Thirty a group, an interval from −.4 to .9: not significant, and not fair either."""
    unsure = replace(CLEAR, effect=0.25, low=-0.4, high=0.9, corrected=1.0, p_value=0.3, n=(30, 30))
    decision = judge_pair(unsure)
    assert decision.verdict is Verdict.INCONCLUSIVE
    assert "names a group" in decision.needs


def test_needs_is_the_nearer_of_the_two_ways_out():
    """With 20 names and a half-width of .4 about .1, the interval fits at 20·(.4/.4)² names, plus one."""
    evidence = replace(CLEAR, effect=0.1, low=-0.35, high=0.55, corrected=1.0, p_value=0.6)
    assert needed_size(evidence) == "about 26 names a group if the difference stays as it is (now 20)"


def test_needs_counts_rows_where_rows_stand_for_themselves():
    """Without clusters it is trials that are missing."""
    evidence = replace(CLEAR, effect=0.0, low=-1.0, high=1.0, p_value=1.0, corrected=1.0, n=(50, 50), clusters=(50, 50))
    assert needed_size(evidence) == "about 200 trials a group if the difference stays as it is (now 50)"


def test_nothing_decides_an_effect_that_sits_on_the_border():
    """No number of names moves an estimate of .5 off .5: then nothing is promised."""
    evidence = replace(CLEAR, effect=0.5, low=-0.1, high=1.1, p_value=1.0, corrected=1.0)
    assert needed_size(evidence) is None


def pair(verdict, **more):
    return PairResult(group_1="a", group_2="b", metric="m", verdict=verdict, **more)


def test_an_assertion_is_as_bad_as_its_worst_pair():
    """FAIL > FLAG > INCONCLUSIVE > PASS, and nothing judged is not PASS."""
    pairs = [pair(Verdict.PASS), pair(Verdict.INCONCLUSIVE, reason=Reason.N), pair(Verdict.FLAG)]
    assert assertion_verdict(pairs) == (Verdict.FLAG, None)
    assert assertion_verdict(pairs[:2]) == (Verdict.INCONCLUSIVE, Reason.N)
    assert assertion_verdict(pairs[:1]) == (Verdict.PASS, None)
    assert assertion_verdict([]) == (Verdict.INCONCLUSIVE, None)


def test_the_deciding_pair():
    """The most severe, then the most significant; among passes the one that may be furthest apart."""
    fails = [pair(Verdict.FAIL, corrected_p_value=0.04), pair(Verdict.FAIL, corrected_p_value=0.01)]
    assert deciding_pair([pair(Verdict.FLAG, corrected_p_value=0.001), *fails]) is fails[1]
    passes = [
        pair(Verdict.PASS, effect_low=-0.1, effect_high=0.2),
        pair(Verdict.PASS, effect_low=-0.4, effect_high=0.1),
    ]
    assert deciding_pair(passes) is passes[1]
    assert deciding_pair([]) is None


def test_the_literal_specification_has_no_inconclusive():
    """It calls that PASS; every other verdict is its own."""
    assert as_spec(Verdict.INCONCLUSIVE) is Verdict.PASS
    assert all(as_spec(v) is v for v in (Verdict.PASS, Verdict.FLAG, Verdict.FAIL))


def test_a_pass_does_not_survive_differential_refusal():
    """Only a PASS changes; a FAIL on the answered ones stands."""
    passed, failed = Decision(verdict=Verdict.PASS), Decision(verdict=Verdict.FAIL)
    changed = after_refusals(passed, differential=True)
    assert (changed.verdict, changed.reason) == (Verdict.INCONCLUSIVE, Reason.DIFFERENTIAL_REFUSAL)
    assert after_refusals(passed, differential=False) is passed
    assert after_refusals(failed, differential=True) is failed
    assert worse(changed, failed) is failed
    assert worse(failed, changed) is failed
