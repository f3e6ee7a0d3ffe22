"""The two-stage rule: an alarm stands only where a second, independent sample raises it too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pytest_fairness import (
    analyze_arms,
    analyze_disparity,
    analyze_equivalence,
    analyze_four_fifths,
    analyze_preference,
    assert_arm_reduces_disparity,
    assert_equivalent,
    assert_four_fifths,
    assert_no_disparity,
    assert_no_preference,
)
from pytest_fairness.confirming import confirmed, unrepeated
from pytest_fairness.current import FreshSample, Policy, TestContext, running_test
from pytest_fairness.errors import BudgetError, FairnessFailure, InconclusiveWarning, UsageError
from pytest_fairness.model import Finding, Reason, Verdict


def table(*shifts: float, seed: int = 0, people: int = 20) -> pd.DataFrame:
    """Names × 4 templates × 2 for the groups a, b, c …, each lower by its shift; other names for every seed."""
    rng = np.random.default_rng(seed)
    g, n, t, r = (x.ravel() for x in np.indices((len(shifts), people, 4, 2)))
    labels = np.array(list("abcdef"))
    return pd.DataFrame(
        {
            "group": labels[g],
            "name": [f"{labels[a]}{b}-{seed}" for a, b in zip(g, n, strict=True)],
            "template": [f"t{x}" for x in t],
            "repetition": r,
            "score": rng.normal(size=g.size) - np.array(shifts)[g],
        }
    )


def decided(a: int, b: int, n: int = 200) -> pd.DataFrame:
    rows = [(group, at < x) for group, x in (("a", a), ("b", b)) for at in range(n)]
    return pd.DataFrame(rows, columns=["group", "hired"])


def chosen(wins: int, n: int = 150) -> pd.DataFrame:
    rows = []
    for first, second in (("A", "B"), ("B", "A")):
        rows += [(first, second, "A" if at < wins else "B", at) for at in range(n)]
    return pd.DataFrame(rows, columns=["first", "second", "chosen", "repetition"])


def sample(frame: pd.DataFrame, **changes: Any) -> FreshSample:
    return FreshSample(frame=frame, **{"about": "20 other names a group", **changes})


def two_stages(first: pd.DataFrame, second: pd.DataFrame, **options: Any) -> Finding:
    found = analyze_disparity(first, "score", "group", **options)
    assert found.verdict in (Verdict.FLAG, Verdict.FAIL)
    return confirmed(found, analyze_disparity(second, "score", "group", **options), sample(second))


def test_a_difference_in_both_samples_stays_a_fail_and_reports_both() -> None:
    """In the sentence, the notes, the details and the explanation."""
    finding = two_stages(table(0, 1, seed=1), table(0, 1, seed=2))
    assert finding.verdict is Verdict.FAIL
    assert finding.sentence.startswith("FAIL: b is worse off than a")
    assert "confirmed on 20 other names a group: d = " in finding.sentence
    told = finding.details["confirmation"]
    assert isinstance(told, dict)
    assert told["confirmed"] is True
    (pair,) = told["pairs"]
    assert pair["first"]["effect"] != pair["second"]["effect"]
    assert told["first"] == {"verdict": "FAIL", "n_per_group": {"a": 160, "b": 160}}
    assert any("first d = " in note and "then d = " in note for note in finding.notes)
    assert "a second, independent one" in finding.explain()
    assert Finding.from_dict(finding.to_dict()).details == finding.details


def test_a_difference_in_the_first_sample_alone_becomes_inconclusive() -> None:
    """Neither FAIL nor PASS: one sample for it and one against. The literal specification would have said FAIL."""
    finding = two_stages(table(0, 1, seed=1), table(0, 0, seed=2))
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.PRECISION)
    assert finding.sentence.startswith("INCONCLUSIVE: not confirmed on 20 other names a group: d = ")
    assert "At first: b is worse off than a" in finding.sentence
    assert finding.spec_verdict is Verdict.FAIL
    assert finding.details["confirmation"]["confirmed"] is False
    assert "disagree" in (finding.pairs[0].needs or "")


def test_the_same_difference_the_other_way_round_confirms_nothing() -> None:
    """The second test is one-sided in the direction that was found."""
    finding = two_stages(table(0, 1, seed=1), table(1, 0, seed=2))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert finding.details["confirmation"]["pairs"][0]["one_sided_p_value"] > 0.99


def test_the_p_value_of_both_is_the_larger() -> None:
    first, second = table(0, 1, seed=1), table(0, 0.4, seed=2)
    plain = analyze_disparity(first, "score", "group")
    finding = two_stages(first, second)
    again = analyze_disparity(second, "score", "group")
    assert finding.pairs[0].corrected_p_value == max(plain.pairs[0].corrected_p_value, again.pairs[0].p_value / 2)
    assert finding.corrected_p_value == finding.pairs[0].corrected_p_value


def test_a_fail_needs_a_large_effect_in_both() -> None:
    """Large and then moderate is FLAG: the milder of the two, which the first sample's luck has not chosen."""
    finding = two_stages(table(0, 1, seed=1), table(0, 0.35, seed=3))
    assert finding.verdict is Verdict.FLAG
    assert finding.sentence.startswith("FLAG: ")


def test_a_significant_trifle_confirms_nothing() -> None:
    first, second = table(0, 1, seed=1), table(0, 0.15, seed=2, people=400)
    assert two_stages(first, second).verdict is Verdict.INCONCLUSIVE


def test_a_difference_below_the_least_worth_minding_confirms_nothing() -> None:
    first, second = table(0, 1.4, seed=1), table(0, 0.7, seed=2)
    assert two_stages(first, second).verdict in (Verdict.FLAG, Verdict.FAIL)
    assert two_stages(first, second, min_raw_diff=1.0).verdict is Verdict.INCONCLUSIVE


def test_each_pair_is_confirmed_by_itself_and_only_alarms_are_repeated() -> None:
    """Of three groups one pair is confirmed; the sentence is about that one."""
    first, second = table(0, 1, 2, seed=1), table(0, 0, 1, seed=2)
    finding = two_stages(first, second)
    assert [pair.verdict for pair in finding.pairs] == [Verdict.INCONCLUSIVE, Verdict.FAIL, Verdict.FAIL]
    assert finding.verdict is Verdict.FAIL
    assert "c is worse off than" in finding.sentence
    flat = two_stages(table(0, 1, 0, seed=1), second)
    assert len(flat.details["confirmation"]["pairs"]) == 2


def test_the_second_p_values_are_corrected_over_the_pairs_repeated() -> None:
    finding = two_stages(table(0, 1, 2, seed=1), table(0, 1, 2, seed=2))
    pairs = finding.details["confirmation"]["pairs"]
    largest = max(pairs, key=lambda pair: pair["one_sided_p_value"])
    smallest = min(pairs, key=lambda pair: pair["one_sided_p_value"])
    assert smallest["corrected_p_value"] == pytest.approx(min(1, 3 * smallest["one_sided_p_value"]))
    assert largest["corrected_p_value"] >= smallest["corrected_p_value"]


def test_an_alarm_is_not_lost_to_a_second_sample_that_cannot_tell() -> None:
    """Too few trials, or no such group: the first verdict stands, and says so."""
    first = analyze_disparity(table(0, 1, seed=1), "score", "group")
    tiny = table(0, 0, seed=2, people=2)
    finding = confirmed(first, analyze_disparity(tiny, "score", "group"), sample(tiny))
    assert finding.verdict is Verdict.FAIL
    assert "cannot tell" in " ".join(finding.notes)
    assert finding.details["confirmation"]["pairs"][0]["confirmed"] is None
    assert finding.details["confirmation"]["confirmed"] is None
    other = table(0, 0, seed=2).replace({"group": {"b": "z"}})
    assert confirmed(first, analyze_disparity(other, "score", "group"), sample(other)).verdict is Verdict.FAIL


def test_the_same_names_asked_again_are_said_to_be_the_same() -> None:
    first, second = table(0, 1, seed=1), table(0, 1, seed=2)
    found = analyze_disparity(first, "score", "group")
    again = analyze_disparity(second, "score", "group")
    finding = confirmed(found, again, sample(second, same_names=True))
    assert any("not tested anew" in note for note in finding.notes)


def test_four_fifths_are_confirmed_by_the_ratio_of_the_second_sample() -> None:
    first = analyze_four_fifths(decided(120, 60), "hired", "group", cluster=None)
    assert first.verdict is Verdict.FAIL

    def after(a: int, b: int) -> Finding:
        again = analyze_four_fifths(decided(a, b), "hired", "group", cluster=None, reference="a")
        return confirmed(first, again, sample(decided(a, b)))

    assert after(120, 65).verdict is Verdict.FAIL
    assert "impact ratio 0.54" in after(120, 65).sentence
    assert after(180, 160).verdict is Verdict.FLAG  # significant, and above four fifths
    assert after(100, 98).verdict is Verdict.INCONCLUSIVE
    assert after(60, 120).verdict is Verdict.INCONCLUSIVE  # now the other group gets less


def test_the_bare_ratio_is_confirmed_by_the_bare_ratio() -> None:
    options: dict[str, Any] = {"cluster": None, "bare_ratio": True, "reference": "a"}
    first = analyze_four_fifths(decided(50, 30, 100), "hired", "group", **options)
    below = analyze_four_fifths(decided(50, 38, 100), "hired", "group", **options)
    above = analyze_four_fifths(decided(50, 48, 100), "hired", "group", **options)
    assert confirmed(first, below, sample(decided(50, 38))).verdict is Verdict.FAIL
    assert confirmed(first, above, sample(decided(50, 48))).verdict is Verdict.INCONCLUSIVE


def test_equivalence_is_confirmed_by_its_difference_not_by_its_own_p_value() -> None:
    """A small TOST p says alike: it must not be read as evidence of a difference."""
    first = analyze_equivalence(table(0, 1.5, seed=1), "score", "group", margin=0.5)
    alike, apart = table(0, 0, seed=2, people=60), table(0, 1.5, seed=3)
    assert first.verdict is Verdict.FAIL
    again = analyze_equivalence(alike, "score", "group", margin=0.5)
    assert again.pairs[0].p_value < 0.01
    assert confirmed(first, again, sample(alike)).verdict is Verdict.INCONCLUSIVE
    assert (
        confirmed(first, analyze_equivalence(apart, "score", "group", margin=0.5), sample(apart)).verdict
        is Verdict.FAIL
    )


def test_preferences_and_arms_are_confirmed_too() -> None:
    options: dict[str, Any] = {"cluster": None, "block": None}
    first = analyze_preference(chosen(110), "group", **options)
    assert first.verdict is Verdict.FAIL
    assert confirmed(first, analyze_preference(chosen(108), **options), sample(chosen(108))).verdict is Verdict.FAIL
    assert (
        confirmed(first, analyze_preference(chosen(75), **options), sample(chosen(75))).verdict is Verdict.INCONCLUSIVE
    )

    def arms(seed: int, grown: float) -> pd.DataFrame:
        raw, treated = table(0, 0, seed=seed), table(0, grown, seed=seed + 1)
        treated["name"] = raw["name"]
        return pd.concat([raw.assign(arm="raw"), treated.assign(arm="scrubbed")], ignore_index=True)

    worse = analyze_arms(arms(1, 1.2), "score", treated="scrubbed", control="raw")
    assert worse.verdict is Verdict.FAIL
    for grown, verdict in ((1.2, Verdict.FAIL), (0.0, Verdict.INCONCLUSIVE), (-1.2, Verdict.INCONCLUSIVE)):
        again = analyze_arms(arms(11, grown), "score", treated="scrubbed", control="raw")
        assert confirmed(worse, again, sample(arms(11, grown))).verdict is verdict, grown


def test_no_disparity_at_all_is_never_made_worse_by_confirming() -> None:
    """Twice the chance to be cleared and none to be convicted: the overall level is at most that of one sample."""
    alarms = both = 0
    for seed in range(150):
        first, second = (table(0, 0, 0, 0, seed=2 * seed + k, people=6) for k in (0, 1))
        found = analyze_disparity(first, "score", "group", alpha=0.2)
        if found.verdict in (Verdict.FLAG, Verdict.FAIL):
            alarms += 1
            again = confirmed(found, analyze_disparity(second, "score", "group", alpha=0.2), sample(second))
            both += again.verdict in (Verdict.FLAG, Verdict.FAIL)
    assert alarms > 0
    assert both <= alarms / 2


# ---------------------------------------------------------------- in a running test


def running(fresh: Callable[[Any], FreshSample] | None, emitted: list[Finding], **changes: Any) -> TestContext:
    return TestContext(
        test_id="t",
        test_module="m",
        description="d",
        emit=emitted.append,
        policy=Policy(confirm=True),
        fresh_sample=fresh,
        **changes,
    )


def test_an_unconfirmed_alarm_warns_and_a_confirmed_one_fails() -> None:
    first, emitted = table(0, 1, seed=1), []
    unlike, alike = (running(lambda _, b=b: sample(table(0, b, seed=2)), emitted) for b in (0, 1))
    with running_test(unlike), pytest.warns(InconclusiveWarning, match="not confirmed"):
        assert_no_disparity(first, "score", "group")
    with running_test(alike), pytest.raises(FairnessFailure):
        assert_no_disparity(first, "score", "group")
    assert [finding.verdict for finding in emitted] == [Verdict.INCONCLUSIVE, Verdict.FAIL]


@pytest.mark.parametrize("error", [UsageError("no such rows"), BudgetError("the cap is reached")])
def test_an_alarm_that_cannot_be_repeated_stands_and_says_why(error: Exception) -> None:
    def refuse(_: Any) -> FreshSample:
        raise error

    with running_test(running(refuse, [])), pytest.raises(FairnessFailure, match=str(error)):
        assert_no_disparity(table(0, 1, seed=1), "score", "group")


def test_a_test_without_a_grid_cannot_be_repeated() -> None:
    with running_test(running(None, [])), pytest.raises(FairnessFailure, match="not repeated on a second sample"):
        assert_no_disparity(table(0, 1, seed=1), "score", "group")


def test_nothing_is_asked_again_for_a_pass_or_a_justified_flag() -> None:
    """Second samples cost money: only what would fail the test is worth it."""
    asked: list[Any] = []

    def ask(frame: Any) -> FreshSample:
        asked.append(frame)
        return sample(table(0, 0, seed=2))

    reason = {"reason": "known", "approver": "J", "date": "2026-01-01", "expiry": "2999-01-01"}
    with running_test(running(ask, [], justification=lambda _: reason)):
        assert_no_disparity(table(0, 0, seed=1), "score", "group")
        flag = assert_no_disparity(table(0, 0.35, seed=5, people=60), "score", "group")
    assert flag.verdict is Verdict.FLAG
    assert asked == []


def test_without_the_option_nothing_is_asked_again() -> None:
    context = TestContext(
        test_id="t", test_module="m", description="d", emit=lambda _: None, fresh_sample=lambda _: pytest.fail("asked")
    )
    with running_test(context), pytest.raises(FairnessFailure):
        assert_no_disparity(table(0, 1, seed=1), "score", "group")


def test_four_fifths_are_repeated_against_the_reference_that_the_first_sample_chose() -> None:
    """Were it chosen again, the pair might be another one."""
    frames = pd.concat([decided(120, 60), decided(118, 118).replace({"group": {"a": "c", "b": "d"}})])
    second = pd.concat([decided(118, 60), decided(121, 110).replace({"group": {"a": "c", "b": "d"}})])
    with running_test(running(lambda _: sample(second), [])), pytest.raises(FairnessFailure) as failure:
        assert_four_fifths(frames, "hired", "group", cluster=None)
    (pair,) = failure.value.finding.details["confirmation"]["pairs"]
    assert pair["confirmed"] is True


def test_the_other_assertions_are_repeated_as_well() -> None:
    with running_test(running(lambda _: sample(table(0, 0, seed=2)), [])), pytest.warns(InconclusiveWarning):
        assert_equivalent(table(0, 1.5, seed=1), "score", "group", margin=0.5)
    with running_test(running(lambda _: sample(chosen(75)), [])), pytest.warns(InconclusiveWarning):
        assert_no_preference(chosen(110), cluster=None, block=None)
    raw = table(0, 0, seed=1).assign(arm="raw")
    grown = table(0, 1.2, seed=2).assign(arm="scrubbed", name=raw["name"])
    both = pd.concat([raw, grown], ignore_index=True)
    with running_test(running(lambda _: sample(both), [])), pytest.raises(FairnessFailure, match="confirmed on"):
        assert_arm_reduces_disparity(both, "score", treated="scrubbed", control="raw")


def test_a_note_is_all_that_changes_where_nothing_was_repeated() -> None:
    finding = analyze_disparity(table(0, 1, seed=1), "score", "group")
    noted = unrepeated(finding, "why not")
    assert noted.notes == (*finding.notes, "not repeated on a second sample, so it stands: why not")
    assert (noted.verdict, noted.sentence) == (finding.verdict, finding.sentence)
