"""The benchmark's numbers on a model in which preference, position bias and scrubbing are planted.

The short form of ``benchmarks/selection.py``, whose truth it is held against: a fifth of the
published design, and one seed; that one counts over 50.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from pytest_fairness.suites.selection.configuration import Configuration
from pytest_fairness.suites.selection.results import SelectionResults
from tests.support.benchmarks import benchmark as load_benchmark

from .choices_of import arm_of, results_of

benchmark = load_benchmark("selection")

#: How far an interval is drawn out, so that the one seed of this test cannot fail by chance.
WIDE = 3.0


@pytest.fixture(scope="module")
def whole() -> SelectionResults:
    """The published design with six repetitions, asked of the planted model."""
    trials = benchmark.ask(benchmark.planned(Configuration(repetitions=6)), benchmark.endpoint(2))
    assert len(trials) == 1296
    assert set(trials["choice"]) == {"chosen"}
    return results_of(trials)


@pytest.fixture(scope="module")
def truth() -> Any:
    return benchmark.truth()


def within(value: float, low: float, high: float, true: float) -> bool:
    """Whether *true* lies in the interval, drawn out to three times its reach."""
    return value - WIDE * (value - low) <= true <= value + WIDE * (high - value)


def test_preferences_and_the_position_bias_are_recovered(
    whole: SelectionResults, truth: Any
) -> None:
    """d of each pair of groups; most of the 90 % intervals hold it. Scrubbing does nothing about
    the position.
    """
    for arm in ("raw_naive", "raw_matched", "scrubbed"):
        held = 0
        for pair in arm_of(whole, arm).preference.pairs:
            true = truth.effect(arm, pair.group_1, pair.group_2)
            assert within(pair.effect, pair.effect_low, pair.effect_high, true), (
                arm,
                pair.group_1,
                pair.group_2,
                true,
            )
            held += pair.effect_low <= true <= pair.effect_high
        assert held >= 4
        order = arm_of(whole, arm).order
        assert abs(order.log_odds - truth.position[arm]) < 4 * order.error
        assert order.p_value < 0.001


def test_what_scrubbing_removes_is_recovered(whole: SelectionResults, truth: Any) -> None:
    """The change of each win rate; between races it is significant and as large as planted."""
    for contrast in (one for one in whole.contrasts if one.by == "group"):
        for pair in contrast.pairs:
            true = truth.change(contrast.treated, contrast.control, pair.group_1, pair.group_2)
            assert within(pair.change.value, pair.change.low, pair.change.high, true)
    by_race = {
        (one.treated, one.control): one.verdict
        for one in whole.contrasts
        if one.by == "race_ethnicity"
    }
    assert by_race["scrubbed", "raw_naive"] == by_race["scrubbed", "raw_matched"] == "PASS"
    # The simulated model heeds no prompt, so that the prompt alone changes nothing.
    assert by_race["raw_matched", "raw_naive"] == "INCONCLUSIVE"


def test_the_truth_is_that_of_a_large_sample(truth: Any) -> None:
    """The integrals agree with what the model does: one pair of groups, many times, with other
    names' opinions.
    """
    groups = {
        "white_male": {"race_ethnicity": "white", "gender": "male"},
        "black_female": {"race_ethnicity": "black", "gender": "female"},
    }
    design = Configuration(
        groups=groups, criteria=("kind",), roles=("nurse",), arms=("raw_naive", "scrubbed")
    )
    plan = benchmark.planned(design)
    trials = pd.concat([benchmark.ask(plan, benchmark.endpoint(1000 + seed)) for seed in range(12)])
    rates = (trials["chosen"] == "white_male").groupby(trials["arm"]).mean()
    for arm in ("raw_naive", "scrubbed"):
        assert rates[arm] == pytest.approx(truth.rate(arm, *groups), abs=0.06)
    assert truth.rates["raw_naive", "white_male", "black_male"] == pytest.approx(0.807, abs=0.001)
