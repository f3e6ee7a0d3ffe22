"""Could a test that passed have failed? Each assertion tried on its own data, and what is said beside its PASS."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pytest_fairness import (
    analyze_disparity,
    analyze_four_fifths,
    assert_arm_reduces_disparity,
    assert_equivalent,
    assert_four_fifths,
    assert_no_disparity,
    assert_no_preference,
)
from pytest_fairness.analysis import trying
from pytest_fairness.analysis.sensitivity import Sensitivity, sensitivity
from pytest_fairness.context import Policy, TestContext, running_test
from pytest_fairness.errors import FairnessFailure
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.reports.formatting import could_fail, marks, sensitivity_line

from .test_confirming import chosen, decided, table


def tried(caught: float, false_alarms: float | None = 0.0) -> Sensitivity:
    return Sensitivity(
        caught={0.5: caught / 2, 0.8: caught},
        missed={0.5: (), 0.8: ()},
        copies=10,
        false_alarms=false_alarms,
        splits=20,
    )


def in_test(policy: Policy) -> TestContext:
    return TestContext(test_id="t", test_module="m", description="d", emit=lambda _: None, policy=policy)


TRYING = Policy(sensitivity=True)


def test_the_share_caught_stands_beside_the_verdict_and_changes_nothing_else() -> None:
    finding = analyze_disparity(table(0, 0), "score", "group")
    beside = trying.beside(finding, tried(1.0, 0.05))
    assert (beside.verdict, beside.sentence, beside.p_value) == (finding.verdict, finding.sentence, finding.p_value)
    assert beside.details["sensitivity"]["could_fail"] is True
    assert beside.notes[-1].startswith("With a planted disparity this test raises the alarm for d = 0.5 in 50 %")
    assert sensitivity_line(beside) == "planted d 0.5 in 50 %, d 0.8 in 100 % of copies caught; placebo alarms in 5 %"
    assert "copies of its own data" in beside.explain()
    assert Finding.from_dict(beside.to_dict()).details == beside.details


@pytest.mark.parametrize(("caught", "seen"), [(0.49, True), (0.5, False)])
def test_under_half_of_the_large_ones_caught_is_a_test_that_could_not_have_failed(caught: float, seen: bool) -> None:
    beside = trying.beside(analyze_disparity(table(0, 0), "score", "group"), tried(caught))
    assert any(note.startswith("this test could not have failed") for note in beside.notes) is seen
    assert ("could not have failed" in marks(beside)) is seen
    assert could_fail(beside) is not seen


@pytest.mark.parametrize(("share", "said"), [(0.3, True), (0.05, False), (None, False)])
def test_a_placebo_that_alarms_is_said(share: float | None, said: bool) -> None:
    beside = trying.beside(analyze_disparity(table(0, 0), "score", "group"), tried(1.0, share))
    assert any("the placebo raises the alarm" in note for note in beside.notes) is said


def test_four_fifths_lose_favourable_decisions() -> None:
    """Enough decisions see it, twelve do not; the options of the test hold for the copies too."""
    many = trying.four_fifths(decided(100, 100), "hired", "group", {"cluster": None})
    few = trying.four_fifths(decided(6, 6, 12), "hired", "group", {"cluster": None})
    assert many.caught[0.8] == 1.0
    assert few.caught[0.8] < 0.5
    labels = decided(100, 100).assign(hired=lambda f: np.where(f.hired, "yes", "no"))
    same = trying.four_fifths(labels, "hired", "group", {"cluster": None, "favourable": "yes", "reference": "a"})
    assert same.caught[0.8] == 1.0
    assert same.false_alarms is not None


def test_equivalence_is_tried_within_its_own_margin() -> None:
    """With a margin of three standard deviations no planted .8 can be seen."""
    narrow = trying.equivalence(table(0, 0), "score", "group", {"margin": 0.5})
    wide = trying.equivalence(table(0, 0), "score", "group", {"margin": 3.0})
    assert narrow.caught[0.8] == 1.0
    assert wide.caught[0.8] == 0.0


def test_each_group_loses_choices_in_turn() -> None:
    many = trying.preference(chosen(75), "group", {"cluster": None, "block": None})
    few = trying.preference(chosen(3, 6), "group", {"cluster": None, "block": None})
    assert many is not None
    assert few is not None
    assert (many.caught[0.8], many.copies, many.false_alarms) == (1.0, 10, None)
    assert few.caught[0.8] < many.caught[0.8]
    assert set(few.missed[0.5]) <= {"A", "B"}


def test_nothing_is_random_from_run_to_run() -> None:
    frame = decided(60, 60, 100)
    assert trying.four_fifths(frame, "hired", "group", {"cluster": None}) == trying.four_fifths(
        frame, "hired", "group", {"cluster": None}
    )
    options = {"cluster": None, "block": None}
    assert trying.preference(chosen(50), "group", options) == trying.preference(chosen(50), "group", options)


def test_every_passing_assertion_is_tried_and_only_passing_ones() -> None:
    """Those to which no disparity can be planted say so."""
    with running_test(in_test(TRYING)):
        found = [
            assert_no_disparity(table(0, 0), "score", "group"),
            assert_four_fifths(decided(100, 100), "hired", "group", cluster=None),
            assert_equivalent(table(0, 0), "score", "group", margin=0.5),
            assert_no_preference(chosen(75), cluster=None, block=None),
        ]
        with pytest.warns(UserWarning, match="INCONCLUSIVE"):
            unsure = assert_no_disparity(table(0, 0.2, people=8), "score", "group", alpha=0.001)
    assert [finding.verdict for finding in found] == [Verdict.PASS] * 4
    assert all("sensitivity" in finding.details for finding in found)
    assert "sensitivity" not in unsure.details


@pytest.mark.parametrize("wild", [30.0, 1e3, 1e6])
def test_one_outlying_reply_turns_no_fail_into_a_pass_that_is_praised(wild: float) -> None:
    """The disparity (p = 6e-7) fails; one reply of the lower group at *wild* shrinks the mean's effect to a trifle, not
    the rank's. So there is no PASS to try, and the plant that the data hold is found by the same policy."""
    frame = table(0, 0.8, seed=3)
    plain = analyze_disparity(frame, "score", "group")
    assert (plain.verdict, plain.p_value < 1e-6) == (Verdict.FAIL, True)
    spoilt = frame.assign(score=frame["score"].where(frame.index != frame.index[-1], wild))
    finding = analyze_disparity(spoilt, "score", "group")
    (pair,) = finding.pairs
    assert abs(pair.statistics["hedges_g"]) < 0.5 < abs(pair.statistics["d_from_cliffs_delta"])
    assert finding.verdict in (Verdict.FLAG, Verdict.FAIL)
    with running_test(in_test(TRYING)), pytest.raises(FairnessFailure) as raised:
        assert_no_disparity(spoilt, "score", "group")
    assert "planted" not in str(raised.value)


def test_what_is_caught_beside_an_outlying_reply_is_what_is_caught_without_it() -> None:
    """Fair data: a planted d is measured in the spread of the bulk, or any test would catch it."""
    caught = []
    for wild in (None, 1e6):
        frames = [table(0, 0, people=5, seed=seed) for seed in range(8)]
        spoilt = [one.assign(score=one["score"].where((one.index != 5) | (wild is None), wild)) for one in frames]
        tried_on = [sensitivity(one, "score", "group", effects=(0.5,), splits=0) for one in spoilt]
        caught.append(np.mean([one.caught[0.5] for one in tried_on]))
    assert caught[0] < 0.6
    assert caught[1] == pytest.approx(caught[0], abs=0.15)


def test_choices_among_several_and_arms_say_that_they_were_not_tried() -> None:
    rng = np.random.default_rng(1)
    won = rng.integers(0, 3, 300)
    slates = pd.DataFrame(
        {
            "trial": np.repeat(range(300), 3),
            "group": list("abc") * 300,
            "chosen": [at == pick for pick in won for at in range(3)],
        }
    )
    raw, mended = table(0, 1.0, seed=1).assign(arm="raw"), table(0, 0, seed=2).assign(arm="scrubbed")
    arms = pd.concat([raw, mended.assign(name=raw["name"])], ignore_index=True)
    with running_test(in_test(TRYING)):
        among = assert_no_preference(slates, trial="trial", cluster=None, block=None)
        reduced = assert_arm_reduces_disparity(arms, "score", treated="scrubbed", control="raw")
    for finding in (among, reduced):
        assert finding.verdict is Verdict.PASS
        assert "sensitivity not tried: no disparity can be planted here" in finding.notes


def test_without_the_option_nothing_is_planted() -> None:
    with running_test(in_test(Policy())):
        assert "sensitivity" not in assert_no_disparity(table(0, 0), "score", "group").details
        assert "sensitivity" not in assert_four_fifths(decided(100, 100), "hired", "group", cluster=None).details
    assert analyze_four_fifths(decided(100, 100), "hired", "group", cluster=None).verdict is Verdict.PASS
