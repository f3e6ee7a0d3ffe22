"""Could a test that passed have failed? One that can see catches planted disparities, a blind one
misses them.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pytest_fairness import (
    FairnessFailure,
    analyze_disparity,
    assert_arm_reduces_disparity,
    assert_equivalent,
    assert_four_fifths,
    assert_no_disparity,
    assert_no_preference,
)
from pytest_fairness.analysis.sensitivity import (
    Sensitivity,
    plant,
    sensitivity,
    sensitivity_of,
    with_sensitivity,
)
from pytest_fairness.model import Finding, OutcomeKind, Verdict
from pytest_fairness.reports.formatting import marks, sensitivity_line
from pytest_fairness.running_test import Policy, TestContext, running_test
from pytest_fairness.testing import choices_frame, decisions_frame, scores_frame

from ..support.choice_tables import slates


def table(*shifts: float, seed: int = 0, people: int = 20) -> pd.DataFrame:
    """Names × 4 templates × 2 for the groups a, b, c …, each lower by its shift; other names for
    every seed.
    """
    lower = {label: -shift for label, shift in zip("abcdef", shifts, strict=False)}
    return scores_frame(lower, names=people, seed=seed)


def decided(a: int, b: int, n: int = 200) -> pd.DataFrame:
    return decisions_frame({"a": a, "b": b}, of=n)


def chosen(wins: int, n: int = 150) -> pd.DataFrame:
    return choices_frame(wins, of=n, groups=("A", "B"))


def running(emitted: list[Finding], **changes: Any) -> TestContext:
    fields = {"test_id": "t", "test_module": "m", "description": "d", **changes}
    return TestContext(emit=emitted.append, **fields)


def frame(seed, names=20, groups=("A", "B", "C"), name_sd=0.2, templates=5, repetitions=2):
    """The default design without any disparity: numbers, levels, decisions, labels and refusals."""
    rng = np.random.default_rng(seed)
    index = [
        (g, f"{g}{n}", t, r)
        for g in groups
        for n in range(names)
        for t in range(templates)
        for r in range(repetitions)
    ]
    found = pd.DataFrame(index, columns=["group", "name", "template", "repetition"])
    level = dict(
        zip(found["name"].unique(), rng.normal(0, name_sd, len(groups) * names), strict=True)
    )
    latent = found["name"].map(level) + rng.normal(0, 1, len(found))
    return found.assign(
        score=latent * 10 + 60,
        stars=np.clip(np.round(latent + 3), 1, 5).astype(int),
        hired=latent > 0.2,
        tone=np.select([latent < -0.5, latent < 0.7], ["cold", "plain"], "warm"),
        refused=rng.random(len(found)) < 0.3,
        constant=80.0,
        reply=["x" * int(n) for n in rng.integers(20, 60, len(found))],
    )


# ---------------------------------------------------------------- what is caught


@pytest.mark.parametrize(
    ("outcome", "at_half", "at_most"),
    [("score", 0.6, 1.0), ("stars", 0.5, 1.0), ("hired", 0.3, 0.95), ("tone", 0.1, 0.6)],
)
def test_a_good_test_catches_most(outcome, at_half, at_most):
    """With 20 names a group a disparity of .8 is caught (almost) always, one of .5 often."""
    found = sensitivity(frame(3).assign(refused=False), outcome, "group", splits=2, copies=3)
    assert found.caught[0.8] >= at_most
    assert found.caught[0.5] >= at_half
    assert set(found.missed[0.8]) <= {"A", "B", "C"}


def test_a_blind_test_catches_nothing():
    """An outcome that never varies, or a sample far too small; three names are not split into
    halves.
    """
    constant = sensitivity(frame(4).assign(refused=False), "constant", "group", splits=2)
    assert constant.caught == {0.5: 0.0, 0.8: 0.0}
    for same in (True, "warm"):
        few = frame(4, names=2).assign(refused=False, hired=same)
        assert sensitivity(few, "hired", "group", splits=0, copies=2).copies == 6
    small = sensitivity(frame(5, names=3, templates=1).assign(refused=False), "score", "group")
    assert max(small.caught.values()) <= 0.5
    assert small.missed[0.5] != ()
    assert small.false_alarms is None


def test_halves_of_a_group_do_not_alarm():
    """Random halves of one group's names differ by nothing but chance; several classes have theirs
    in turn.
    """
    two = frame(8, name_sd=0.4).assign(
        refused=False, gender=lambda f: np.where(f["name"].str[-1].isin([*"13579"]), "f", "m")
    )
    found = sensitivity(two, "score", ["group", "gender"], effects=(0.8,), splits=6)
    assert (found.copies, found.splits, found.caught[0.8]) == (5, 30, 1)
    assert found.false_alarms <= 0.15
    assert "random halves" in found.sentence


def test_refusals_and_a_callable_outcome_are_planted_too_and_nothing_is_random():
    """The outcome may be refusals, or computed from the reply; the data are not touched, and only
    the seed matters.
    """
    two = frame(9, groups=("A", "B"))
    before = two.copy()
    first = sensitivity(two, "refused", "group", splits=2, copies=2, seed=5)
    assert first.caught[0.8] >= 0.5
    assert first == sensitivity(two, "refused", "group", splits=2, copies=2, seed=5)
    assert sensitivity(two.assign(refused=False), len, "group", splits=0).caught[0.8] >= 0.5
    pd.testing.assert_frame_equal(two, before)


def test_every_assertion_loses_what_is_its_own():
    """Favourable decisions, choices won, and equality within its own margin: enough data see it,
    few do not.
    """
    small = {"copies": 1, "splits": 1}
    plain = {"cluster": None, "block": None, "copies": 1}
    labels = decided(100, 100).assign(hired=lambda f: np.where(f.hired, "yes", "no"))
    sure = [
        sensitivity_of("four_fifths", decided(100, 100), "hired", "group", cluster=None, **small),
        sensitivity_of(
            "four_fifths",
            labels,
            "hired",
            "group",
            cluster=None,
            favourable="yes",
            reference="a",
            **small,
        ),
        sensitivity_of("equivalence", table(0, 0), "score", "group", margin=0.5, **small),
        sensitivity_of("preference", chosen(75), "group", **plain),
    ]
    blind = [
        sensitivity_of("four_fifths", decided(6, 6, 12), "hired", "group", cluster=None),
        sensitivity_of("equivalence", table(0, 0), "score", "group", margin=3.0, **small),
        sensitivity_of("preference", chosen(3, 6), "group", **{**plain, "copies": 5}),
    ]
    assert [found.caught[0.8] for found in sure] == [1.0] * 4
    assert max(found.caught[0.8] for found in blind) < 0.5
    assert sure[1].false_alarms is not None
    assert (sure[3].copies, sure[3].false_alarms) == (2, None)
    assert set(blind[2].missed[0.5]) <= {"A", "B"}
    assert sure[3] == sensitivity_of("preference", chosen(75), "group", **plain)


# ---------------------------------------------------------------- beside a PASS


def found_that(caught, false_alarms=0.0):
    shares, missed = {0.5: caught / 2, 0.8: caught}, {0.5: (), 0.8: ()}
    return Sensitivity(
        caught=shares, missed=missed, copies=10, false_alarms=false_alarms, splits=20
    )


def test_the_share_caught_stands_beside_the_verdict_and_changes_nothing_else():
    finding = analyze_disparity(table(0, 0), "score", "group")
    beside = with_sensitivity(finding, found_that(1.0, 0.05))
    assert (beside.verdict, beside.sentence, beside.p_value) == (
        finding.verdict,
        finding.sentence,
        finding.p_value,
    )
    assert beside.details["sensitivity"]["could_fail"] is True
    assert beside.notes[-1].startswith(
        "With a planted disparity this test raises the alarm for d = 0.5 in 50 %"
    )
    assert (
        sensitivity_line(beside)
        == "planted d 0.5 in 50 %, d 0.8 in 100 % of copies caught; placebo alarms in 5 %"
    )
    assert "copies of its own data" in beside.explain()
    assert Finding.from_dict(beside.to_dict()).details == beside.details


@pytest.mark.parametrize(
    ("found", "blind", "alarming"),
    [
        (found_that(0.49), True, False),
        (found_that(0.5), False, False),
        (found_that(1.0, 0.3), False, True),
        (found_that(1.0, 0.05), False, False),
        (found_that(1.0, None), False, False),
    ],
    ids=range(5),
)
def test_a_blind_test_and_an_alarming_placebo_are_noted(found, blind, alarming):
    beside = with_sensitivity(analyze_disparity(table(0, 0), "score", "group"), found)
    assert any(note.startswith("this test could not have failed") for note in beside.notes) is blind
    assert ("could not have failed" in marks(beside)) is blind
    assert any("the placebo raises the alarm" in note for note in beside.notes) is alarming


def in_test(policy=Policy(sensitivity=True)):  # noqa: B008 - a frozen value
    return running([], policy=policy)


def test_every_passing_assertion_is_tried_and_only_passing_ones(monkeypatch):
    small = functools.partial(sensitivity_of, copies=1)
    monkeypatch.setattr("pytest_fairness.analysis.sensitivity.sensitivity_of", small)
    with running_test(in_test()):
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
    with running_test(in_test(Policy())):
        assert "sensitivity" not in assert_no_disparity(table(0, 0), "score", "group").details


def test_choices_among_several_and_arms_say_that_they_were_not_tried():
    trials = slates(np.random.default_rng(1), [0, 0, 0], trials=300)
    raw, mended = (
        table(0, 1.0, seed=1).assign(arm="raw"),
        table(0, 0, seed=2).assign(arm="scrubbed"),
    )
    arms = pd.concat([raw, mended.assign(name=raw["name"])], ignore_index=True)
    with running_test(in_test()):
        among = assert_no_preference(trials, trial="trial", cluster=None, block=None)
        reduced = assert_arm_reduces_disparity(arms, "score", treated="scrubbed", control="raw")
    for finding in (among, reduced):
        assert finding.verdict is Verdict.PASS
        assert "sensitivity not tried: no disparity can be planted here" in finding.notes


@pytest.mark.parametrize("wild", [30.0, 1e6])
def test_one_outlying_reply_turns_no_fail_into_a_pass_that_is_praised(wild):
    """The disparity (p = 6e-7) fails; one reply of the lower group at *wild* shrinks the mean's
    effect to a trifle, not the rank's. So there is no PASS to try, and the plant that the data hold
    is found by the same policy."""
    data = table(0, 0.8, seed=3)
    plain = analyze_disparity(data, "score", "group")
    assert (plain.verdict, plain.p_value < 1e-6) == (Verdict.FAIL, True)
    spoilt = data.assign(score=data["score"].where(data.index != data.index[-1], wild))
    finding = analyze_disparity(spoilt, "score", "group")
    (pair,) = finding.pairs
    assert abs(pair.statistics["hedges_g"]) < 0.5 < abs(pair.statistics["d_from_cliffs_delta"])
    assert finding.verdict in (Verdict.FLAG, Verdict.FAIL)
    with running_test(in_test()), pytest.raises(FairnessFailure) as raised:
        assert_no_disparity(spoilt, "score", "group")
    assert "planted" not in str(raised.value)


def test_what_is_caught_beside_an_outlying_reply_is_what_is_caught_without_it():
    """Fair data: a planted d is measured in the spread of the bulk, or any test would catch it."""
    caught = []
    for wild in (None, 1e6):
        frames = [table(0, 0, people=5, seed=seed) for seed in range(8)]
        spoilt = [
            one.assign(score=one["score"].where((one.index != 5) | (wild is None), wild))
            for one in frames
        ]
        found = [sensitivity(one, "score", "group", effects=(0.5,), splits=0) for one in spoilt]
        caught.append(np.mean([one.caught[0.5] for one in found]))
    assert caught[0] < 0.6
    assert caught[1] == pytest.approx(caught[0], abs=0.15)


# ---------------------------------------------------------------- planting


@pytest.mark.parametrize("down", [True, False])
@pytest.mark.parametrize("d", [0.5, 0.8])
def test_planted_numbers_and_rates_have_the_size_they_say(d, down):
    """d within-group SDs of a number; log odds of d·π/√3 for a decision; in the direction of harm."""
    rng = np.random.default_rng(10)
    rows = np.repeat([True, False], 20_000)
    y = rng.normal(5, 2, rows.size)
    moved = plant(y, OutcomeKind.NUMERIC, rows, sd=2.0, d=d, lower_is_worse=down, rng=rng)
    assert moved[rows] - y[rows] == pytest.approx(-2 * d if down else 2 * d)
    assert np.array_equal(moved[~rows], y[~rows])
    yes = (rng.random(rows.size) < 0.4).astype(float)
    turned = plant(yes, OutcomeKind.BINARY, rows, sd=0, d=d, lower_is_worse=down, rng=rng)
    p, q = turned[rows].mean(), yes[rows].mean()
    change = np.log(p / (1 - p)) - np.log(q / (1 - q))
    assert change == pytest.approx((-d if down else d) * np.pi / np.sqrt(3), abs=0.08)
