"""The planner: its limits, and whether the planned sample finds and passes what it says."""

import pytest

from pytest_fairness.analysis.planning import assess_design, plan_sample
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind

from ..support.benchmarks import benchmark


def test_the_plan_is_the_smallest():
    """One name fewer does not find the effect, or does not pass equal pairs as often, unless a
    minimum stands in the way, which is then said."""
    for settings in (
        {"groups": 4, "effect": 0.4},
        {"groups": 2, "kind": "categorical", "levels": 4},
    ):
        plan = plan_sample(**settings)
        fewer = assess_design(
            **settings, names=plan.names - 1, trials=10 * plan.names - 10, templates=5
        )
        assert (
            min(plan.power, plan.pass_probability)
            >= 0.8
            > min(fewer.power, fewer.pass_probability) - 0.01
        )
        assert (
            plan.calls
            == settings["groups"] * plan.calls_per_group
            == settings["groups"] * plan.names * 10
        )
    assert "names would find the effect, and pass" in plan.notes[0]
    easy = plan_sample(groups=2, effect=2.0, icc=0.0)
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
    """Smaller effects, more power, unlike names, more tests and rare outcomes take more calls a
    group.
    """
    base = {"groups": 4, "effect": 0.4}
    assert (
        plan_sample(**{**base, **harder}).calls_per_group
        > plan_sample(**{**base, **easier}).calls_per_group
    )


def test_a_name_bank_of_fixed_size():
    """With ten names templates make up for it, as few as will do; with three names nothing does.
    One name is a label, which is said."""
    plan = plan_sample(groups=4, effect=0.5, names=10)
    assert (plan.names, plan.power >= 0.8) == (10, True)
    with pytest.raises(UsageError, match=r"5000 templates find d = 0\.3 in \d+ % of pairs only"):
        plan_sample(groups=4, effect=0.3, names=3)
    assert "capped at FLAG" in plan_sample(names=1).notes[0]


def test_minimum_sample_sizes_hold():
    """A yes/no outcome is planned with at least 50 trials a group and ten names, whatever the
    effect.
    """
    plan = plan_sample("binary", effect=3.0, templates=1, repetitions=2)
    assert (plan.calls_per_group >= 50, plan.names >= 10, plan.kind) == (
        True,
        True,
        OutcomeKind.BINARY,
    )


def test_a_design_that_cannot_pass_says_what_would():
    """More of what it has, each by itself; where repetitions repeat a reply, they are not among it."""
    design = assess_design(groups=2, names=8, trials=40, templates=5)
    assert design.needs.startswith("1")
    assert "templates (now 5)" in design.needs
    assert "repetitions" in design.needs
    assert (
        "repetitions"
        not in assess_design(groups=2, names=8, trials=40, templates=5, repeats=True).needs
    )


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
        {"names": 0},
        {"effect": 0.001},
        {"rate": 0.5},
        {"kind": "ordinal", "levels": 2},
    ],
    ids=lambda options: next(iter(options)) + str(next(iter(options.values()))),
)
def test_options_out_of_range(options):
    """What cannot be planned is said, not guessed."""
    with pytest.raises(UsageError):
        plan_sample(**options)


def test_the_planned_sample_does_what_it_says(monkeypatch):
    """Shares of pairs found and passed come out as promised; the benchmark's table has every kind
    of design.
    """
    destruction = benchmark("destruction")
    short = (
        ("numeric", 0.04, {"names": 12}),
        ("numeric", 0.3, {}),
        ("binary", 0.04, {"rate": 0.8}),
        ("categorical", 0.04, {"levels": 4}),
    )
    assert all(plan in destruction.PLANS for plan in short)
    monkeypatch.setattr(destruction, "PLANS", short)
    rows = destruction.plans(20)
    assert len(rows) == 8
    assert all(row.met for row in rows)
