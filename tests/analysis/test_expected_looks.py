"""Names that looks are expected to ask, against audits that were simulated look by look."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fairness.analysis import policy
from pytest_fairness.analysis.expected_looks import (
    FEWEST_TRIALS,
    MARGIN,
    NEAR,
    LookedDesign,
    expectation,
    looks_to_pass,
)
from pytest_fairness.analysis.looks import LookPlan
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics import proportions

SCORES, RATES = (10, 20, 40), (10, 20, 40, 80)
#: Calls in units of 20 names, of a fair system and of one with d = .5, and the share of fair systems
#: that pass, where all groups are asked to the last look (simulated audits of 5 templates × 2).
SIMULATED = [
    ("numeric", 0.5, 2, 0.04, SCORES, 0.74, 0.84, 0.99),
    ("numeric", 0.5, 2, 0.04, RATES, 0.87, 0.94, 0.99),
    ("numeric", 0.5, 4, 0.04, SCORES, 1.07, 0.85, 0.99),
    ("numeric", 0.5, 4, 0.04, RATES, 1.21, 0.94, 0.99),
    ("numeric", 0.5, 4, 0.2, SCORES, 1.83, 1.40, 0.89),
    ("binary", 0.5, 4, 0.04, SCORES, 1.22, 1.01, 0.99),
    ("binary", 0.9, 4, 0.04, SCORES, 1.96, 1.45, 0.70),
    ("binary", 0.9, 4, 0.04, RATES, 2.79, 1.70, 0.99),
    ("binary", 0.95, 4, 0.04, SCORES, 2.00, 1.78, 0.29),
    ("binary", 0.95, 4, 0.04, RATES, 3.67, 2.53, 0.92),
    ("binary", 0.98, 4, 0.04, SCORES, 1.90, None, 0.92),
]


def design(
    kind: str, names: tuple[int, ...], *, red: float = 0.015, groups: int = 4, **outcome: float
) -> LookedDesign:
    return LookedDesign(
        plan=LookPlan(names=names, red=red),
        kind=OutcomeKind(kind),
        groups=groups,
        rows=10,
        **outcome,
    )


@pytest.mark.parametrize(
    ("kind", "rate", "groups", "icc", "names", "fair", "biased", "passes"), SIMULATED
)
def test_what_looks_are_expected_to_ask_is_what_simulated_audits_ask(
    kind: str,
    rate: float,
    groups: int,
    icc: float,
    names: tuple[int, ...],
    fair: float,
    biased: float | None,
    passes: float,
) -> None:
    """Within .1 of a unit of 20 names, and within .06 of the PASS rate."""
    looked = design(kind, names, groups=groups, rate=rate, icc=icc)
    expected = expectation(replace(looked, drops=False))
    assert expected.fair / 20 == pytest.approx(fair, abs=0.1)
    assert expected.passes == pytest.approx(passes, abs=0.06)
    assert expected.most == names[-1]
    if biased is not None:
        assert expected.biased / 20 == pytest.approx(biased, abs=0.1)
    # Groups that are settled are asked no more; of two groups both are, at once.
    dropping = expectation(looked).fair
    assert names[0] <= dropping <= expected.fair + 1e-9
    if groups == 2:
        assert dropping == pytest.approx(expected.fair)


def test_what_takes_more_names() -> None:
    """More groups, names that differ, rates near 1, fewer trials a name, a smaller budget for red."""
    base = design("binary", RATES, rate=0.8)
    for harder in (
        replace(base, groups=6),
        replace(base, icc=0.3),
        replace(base, rate=0.95),
        replace(base, rows=3),
    ):
        assert expectation(harder).fair > expectation(base).fair
    careful = replace(base, plan=LookPlan(names=RATES, red=0.0005))
    assert expectation(careful).biased > expectation(base).biased
    assert expectation(careful).fair == pytest.approx(expectation(base).fair)
    single = replace(base, plan=LookPlan(names=(20,), red=0.015))
    assert (expectation(single).fair, expectation(single).biased) == (20, 20)


def test_the_shortest_looks_that_pass() -> None:
    """More names where a rate is near 1; the looks before are those of the ladder; one step less
    does not pass as often.
    """
    often = looks_to_pass(design("binary", (20,), rate=0.95), 0.8)
    assert often is not None
    assert often.design.plan.names == RATES
    shorter = replace(often.design, plan=LookPlan(names=SCORES, red=0.015))
    assert expectation(shorter).passes < 0.8 <= often.passes
    assert looks_to_pass(design("binary", (20,), rate=0.95), 0.999999) is None


def test_limits_are_those_of_the_policy() -> None:
    """They stand here again, because the policy loads numpy."""
    assert FEWEST_TRIALS == policy.MINIMUM_N
    assert MARGIN == policy.MARGIN
    assert NEAR == proportions.NEAR
