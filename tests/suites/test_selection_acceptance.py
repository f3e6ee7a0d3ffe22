"""The whole benchmark, 6,480 trials, on a model in which preference, position bias and scrubbing are planted.

The short form of ``benchmarks/selection.py``, whose truth it is held against; that one counts over 50 seeds.
"""

from __future__ import annotations

from typing import Any

import pytest

from pytest_fairness.suites.selection.choice_table import Record
from tests.support.benchmarks import benchmark as load_benchmark

from .choices_of import arm_of, results_of

benchmark = load_benchmark("selection")

#: How far an interval is drawn out, so that the one seed of this test cannot fail by chance.
WIDE = 3.0


@pytest.fixture(scope="module")
def whole() -> Record:
    """The published design, asked of the planted model."""
    trials = benchmark.ask(benchmark.planned(), benchmark.endpoint(2))
    assert len(trials) == 6480
    assert set(trials["choice"]) == {"chosen"}
    return results_of(trials)


@pytest.fixture(scope="module")
def truth() -> Any:
    return benchmark.truth()


def within(value: float, low: float, high: float, true: float) -> bool:
    """Whether *true* lies in the interval, drawn out to three times its reach."""
    return value - WIDE * (value - low) <= true <= value + WIDE * (high - value)


@pytest.mark.parametrize("arm", ["raw_naive", "raw_matched", "scrubbed"])
def test_preferences_and_the_position_bias_are_recovered(whole: Record, truth: Any, arm: str) -> None:
    """d of each pair of groups; most of the 90 % intervals hold it. Scrubbing does nothing about the position."""
    held = 0
    for pair in arm_of(whole, arm).pairs:
        true = truth.effect(arm, pair.group_1, pair.group_2)
        assert within(pair.effect, pair.effect_low, pair.effect_high, true), (pair.group_1, pair.group_2, true)
        held += pair.effect_low <= true <= pair.effect_high
    assert held >= 4
    order = arm_of(whole, arm).order
    assert abs(order.log_odds - truth.position[arm]) < 4 * order.error
    assert order.p_value < 0.001


def test_what_scrubbing_removes_is_recovered(whole: Record, truth: Any) -> None:
    """The change of each win rate; between races it is significant and as large as planted."""
    for contrast in (one for one in whole.contrasts if one.by == "group"):
        for pair in contrast.pairs:
            true = truth.change(contrast.treated, contrast.control, pair.group_1, pair.group_2)
            assert within(pair.change.value, pair.change.low, pair.change.high, true)
    by_race = {(one.treated, one.control): one.verdict for one in whole.contrasts if one.by == "race_ethnicity"}
    assert by_race["scrubbed", "raw_naive"] == by_race["scrubbed", "raw_matched"] == "PASS"
    # The simulated model heeds no prompt, so that the prompt alone changes nothing.
    assert by_race["raw_matched", "raw_naive"] == "INCONCLUSIVE"


def test_the_truth_is_that_of_a_large_sample(truth: Any) -> None:
    """The integrals agree with what the model does: 40 times the trials of a pair, in both orders, with other names."""
    plan = benchmark.planned()
    indices = [
        at for at, cell in enumerate(plan.grid)
        if cell.arm == "scrubbed" and cell.attributes["pair"] == "white_male / black_female"
    ][:40]  # fmt: skip
    assert truth.rates["raw_naive", "white_male", "black_male"] == pytest.approx(0.807, abs=0.001)
    wins = 0
    entries = plan.entries(1, indices)
    for seed in range(25):
        model = benchmark.endpoint(1000 + seed)
        for entry in entries:
            reply = benchmark._trial(entry, entry.first, model).replies[-1]
            wins += (reply == "Candidate A") == (entry.cell.attributes["group_1"] == "white_male")
    rate = truth.rate("scrubbed", "white_male", "black_female")
    listed = [entry.cell.attributes["group_1"] == "white_male" for entry in entries]
    if all(listed):
        rate = truth.rates["scrubbed", "white_male", "black_female"]
    assert wins / (25 * len(entries)) == pytest.approx(rate, abs=0.06)


def test_the_suite_makes_the_same_of_it(pytester: pytest.Pytester) -> None:
    """The whole suite as a user runs it: the raw arms fail, the scrubbed arm does not, and scrubbing is what helps."""
    pytester.makefile(
        ".yaml",
        endpoints="""
endpoints:
  - name: "planted"
    type: "simulated"
    bias: {race_ethnicity: {black: -0.6}}
    position_bias: 0.6
    scrub_recall: 0.97
    channels: [choice]
""",
    )
    result = pytester.runpytest_inprocess(
        "-W", "default", "-p", "no:cacheprovider", "--pyargs", "pytest_fairness.suites.selection",
        "--fairness-endpoint", "planted", "-k", "preference or scrubbed-vs-raw_naive",
    )  # fmt: skip
    result.assert_outcomes(passed=3, failed=2, deselected=8)
    result.stdout.fnmatch_lines(["*up to 6,480 trials*"])
