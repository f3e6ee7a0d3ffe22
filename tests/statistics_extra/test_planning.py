"""The planner: its formula, its limits, and whether the planned sample finds what it was planned for."""

import numpy as np
import pandas as pd
import pytest

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.planning import plan_sample
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind, Verdict
from pytest_fairness.statistics.planning import Shape, detectable, pass_probability, smallest


@pytest.mark.parametrize(
    ("names", "per_name", "family", "mde"),
    [(10, 20, 6, 0.507415), (20, 10, 6, 0.423870), (5, 20, 6, 0.819466), (10, 20, 1, 0.393082)],
)
def test_worked_numbers(names, per_name, family, mde):
    """The detectable effects of the statistics contract to six decimals."""
    shape = Shape(groups=4, names=names, templates=per_name, repetitions=1)
    found = detectable(shape, icc=0.04, inflation=1, family=family, alpha=0.05, power=0.8)
    assert round(found, 6) == mde


def test_the_plan_is_the_smallest():
    """One name fewer does not find the effect, unless a minimum stands in the way, which is then said."""
    plan = plan_sample(groups=4, effect=0.4)
    fewer = Shape(groups=4, names=plan.names - 1, templates=5, repetitions=2)
    assert plan.mde <= 0.4
    assert detectable(fewer, icc=0.04, inflation=1, family=6, alpha=0.05, power=0.8) > 0.4
    assert plan.calls == 4 * plan.calls_per_group == 4 * plan.names * 10
    easy = plan_sample(groups=2, effect=2.0)
    assert easy.names == 10
    assert "names speak for a group" in easy.notes[0]


@pytest.mark.parametrize(
    ("harder", "easier"),
    [
        ({"effect": 0.3}, {"effect": 0.5}),
        ({"power": 0.95}, {"power": 0.8}),
        ({"icc": 0.3}, {"icc": 0.04}),
        ({"groups": 6}, {"groups": 3}),
        ({"metrics": 4}, {"metrics": 1}),
        ({"kind": "binary", "rate": 0.05}, {"kind": "binary", "rate": 0.5}),
    ],
    ids=["effect", "power", "icc", "groups", "metrics", "rate"],
)
def test_what_takes_more(harder, easier):
    """Smaller effects, more power, unlike names, more tests and rare outcomes take more calls a group."""
    base = {"groups": 4, "effect": 0.4}
    assert plan_sample(**{**base, **harder}).calls_per_group > plan_sample(**{**base, **easier}).calls_per_group


def test_a_name_bank_of_fixed_size():
    """With ten names templates make up for it, as few as will do; with three names nothing does."""
    plan = plan_sample(groups=4, effect=0.5, names=10)
    fewer = Shape(groups=4, names=10, templates=plan.templates - 1, repetitions=2)
    assert plan.mde <= 0.5 < detectable(fewer, icc=0.04, inflation=1, family=6, alpha=0.05, power=0.8)
    with pytest.raises(UsageError, match=r"so few names; the least that could be found is d = \d"):
        plan_sample(groups=4, effect=0.3, names=3)


def test_minimum_sample_sizes_hold():
    """A yes/no outcome is planned with at least 50 distinct cells a group, whatever the effect."""
    plan = plan_sample("binary", effect=3.0, templates=1, repetitions=10)
    assert plan.names * plan.templates >= 50
    assert plan.kind is OutcomeKind.BINARY


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "colour"},
        {"groups": 1},
        {"effect": 0},
        {"power": 1},
        {"icc": 1},
        {"alpha": 0},
        {"rate": 0},
        {"templates": 0},
        {"names": 1},
        {"effect": 0.001},
    ],
    ids=lambda options: next(iter(options)) + str(next(iter(options.values()))),
)
def test_options_out_of_range(options):
    """What cannot be planned is said, not guessed."""
    with pytest.raises(UsageError):
        plan_sample(**options)


def test_smallest():
    """Doubling and halving finds the first number that is enough."""
    for answer in (1, 2, 3, 17, 100):
        assert smallest(lambda n, answer=answer: n >= answer, 1, 100) == answer
    assert smallest(lambda n: False, 1, 100) is None


def simulated(rng, plan, shift, icc):
    """One audit of the planned shape; the first group lower by *shift* (d)."""
    rows = []
    for group in range(plan.groups):
        for name in range(plan.names):
            level = rng.normal(0, np.sqrt(icc)) - (shift if group == 0 else 0)
            noise = rng.normal(0, np.sqrt(1 - icc), (plan.templates, plan.repetitions))
            rows += [
                (f"g{group}", f"g{group}n{name}", t, r, level + noise[t, r])
                for t in range(plan.templates)
                for r in range(plan.repetitions)
            ]
    return pd.DataFrame(rows, columns=["group", "name", "template", "repetition", "y"])


def test_the_planned_sample_does_what_it_says():
    """About 80 % of audits find the effect in a pair, and a pair without any passes about as often as said."""
    rng = np.random.default_rng(1)
    plan = plan_sample(groups=3, effect=0.6, icc=0.1)
    found = passed = clean = total = 0
    for _ in range(60):
        finding = analyze_disparity(simulated(rng, plan, 0.6, 0.1), "y", "group")
        for pair in finding.pairs:
            if "g0" in (pair.group_1, pair.group_2):
                total += 1
                found += pair.verdict in (Verdict.FLAG, Verdict.FAIL)
            else:
                clean += 1
                passed += pair.verdict is Verdict.PASS
    assert 0.68 <= found / total <= 0.95
    assert abs(passed / clean - plan.pass_probability) < 0.15


def test_pass_probability_of_one_name():
    """One name says nothing about the spread between names: no PASS can be promised."""
    assert (
        pass_probability(Shape(groups=2, names=1, templates=50, repetitions=2), icc=0.04, inflation=1, margin=0.5) == 0
    )
