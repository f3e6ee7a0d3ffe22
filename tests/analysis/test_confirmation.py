"""The two-stage rule: an alarm stands only where this sample and a fresh one together raise it too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from pytest_fairness import (
    FairnessFailure,
    analyze_disparity,
    analyze_four_fifths,
    assert_arm_reduces_disparity,
    assert_equivalent,
    assert_four_fifths,
    assert_no_disparity,
    assert_no_preference,
)
from pytest_fairness.analysis.confirmation import confirmed, together, unconfirmed
from pytest_fairness.errors import BudgetError, UsageError
from pytest_fairness.model import ALARMS, Finding, Verdict
from pytest_fairness.reports.formatting import marks
from pytest_fairness.running_test import FreshSample, Policy, TestContext, running_test
from pytest_fairness.testing import choices_frame, decisions_frame, scores_frame


def table(*shifts: float, seed: int = 0, people: int = 20) -> pd.DataFrame:
    """Names × 4 templates × 2 for the groups a, b, c …, each lower by its shift; other names for every seed."""
    lower = {label: -shift for label, shift in zip("abcdef", shifts, strict=False)}
    return scores_frame(lower, names=people, seed=seed)


def decided(a: int, b: int, n: int = 200) -> pd.DataFrame:
    return decisions_frame({"a": a, "b": b}, of=n)


def chosen(wins: int, n: int = 150) -> pd.DataFrame:
    return choices_frame(wins, of=n, groups=("A", "B"))


def sample(frame: pd.DataFrame, **changes: Any) -> FreshSample:
    return FreshSample(frame=frame, **{"about": "20 other names a group", **changes})


def two_stages(
    first: pd.DataFrame, second: pd.DataFrame, analyze: Callable[..., Finding] = analyze_disparity, **options: Any
) -> Finding:
    """What ``examine`` does, without a test."""
    options = {"outcome": "score", "by": "group", **options}
    found = analyze(first, **options)
    assert found.verdict in ALARMS
    both = analyze(together(first, sample(second)), **{**options, "alpha": options.get("alpha", 0.05) / 2})
    return confirmed(found, both, sample(second))


def test_a_difference_in_both_samples_stays_a_fail_and_reports_both() -> None:
    """In the sentence, the notes, the details and the explanation; the figures are those of both together."""
    first, second = table(0, 1, seed=1), table(0, 1, seed=2)
    finding = two_stages(first, second)
    assert finding.verdict is Verdict.FAIL
    assert finding.sentence.startswith("FAIL: b is worse off than a")
    assert finding.sentence.endswith("; confirmed with 20 other names a group.")
    assert finding.n_per_group == {"a": 320, "b": 320}
    alone = analyze_disparity(pd.concat([first, second]), "score", "group", alpha=0.025)
    assert finding.pairs == alone.pairs
    details = finding.details["confirmation"]
    assert isinstance(details, dict)
    assert details["confirmed"] is True
    assert details["first"]["verdict"] == "FAIL"
    assert details["first"]["n_per_group"] == {"a": 160, "b": 160}
    assert details["both"] == {"verdict": "FAIL", "n_per_group": {"a": 320, "b": 320}, "alpha": 0.025}
    assert details["first"]["pairs"][0]["effect"] != finding.pairs[0].effect
    assert any("at first: FAIL, b against a on score (d = " in note for note in finding.notes)
    assert "an equal one on other names was drawn" in finding.explain()
    assert Finding.from_dict(finding.to_dict()).details == finding.details


def test_a_difference_in_the_first_sample_alone_is_judged_by_both_together() -> None:
    """Half a difference in twice the data, or none: whatever both come to, with what was raised at first."""
    finding = two_stages(table(0, 0.6, seed=4), table(0.6, 0, seed=2))
    assert finding.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
    assert "The first sample alone raised an alarm that 20 other names a group did not bear out: " in finding.sentence
    assert finding.details["confirmation"]["confirmed"] is False


def test_every_pair_is_judged_again_not_only_those_that_alarmed() -> None:
    """A pair that the second sample alone shows counts as well."""
    finding = two_stages(table(0, 1, 0, seed=1), table(0, 1, 1.2, seed=2))
    verdicts = {(pair.group_1, pair.group_2): pair.verdict for pair in finding.pairs}
    assert verdicts["a", "b"] is Verdict.FAIL
    assert verdicts["a", "c"] is Verdict.FAIL
    assert len(finding.details["confirmation"]["first"]["pairs"]) == 2


def test_a_table_of_both_samples_has_the_columns_and_the_design_of_the_first() -> None:
    first, second = table(0, 1, seed=1), table(0, 1, seed=2)
    first["note"], second["note"] = "said", None
    first.attrs["pytest_fairness"] = {"template": "kept"}
    both = together(first, sample(second))
    assert list(both.columns) == list(first.columns)
    assert len(both) == len(first) + len(second)
    assert both.index.is_unique
    assert both.attrs == first.attrs
    assert {column: both[column].dtype for column in ("score", "group", "repetition")} == {
        column: first[column].dtype for column in ("score", "group", "repetition")
    }


FALSE_ALARMS = (60, 61, 119, 151, 179, 216)
BARE = {"bare_ratio": True, "reference": "a"}


@pytest.mark.parametrize(
    ("first", "second", "options", "verdict"),
    [
        ((120, 60, 200), (120, 65, 200), {}, Verdict.FAIL),
        ((120, 60, 200), (60, 120, 200), {}, Verdict.PASS),
        ((50, 30, 100), (50, 38, 100), BARE, Verdict.FAIL),
        ((50, 30, 100), (50, 55, 100), BARE, Verdict.PASS),
    ],
)
def test_four_fifths_are_confirmed_by_the_ratio_of_both(
    first: tuple[int, int, int], second: tuple[int, int, int], options: dict[str, Any], verdict: Verdict
) -> None:
    """And the bare ratio by the bare ratio."""
    options = {"outcome": "hired", "cluster": None, **options}
    finding = two_stages(decided(*first), decided(*second), analyze_four_fifths, **options)
    assert finding.verdict is verdict
    assert finding.pairs[0].statistics["n_1"] == 2 * first[2]


def test_a_fair_system_is_cleared() -> None:
    """Of 400 audits of three groups without a difference 12 alarm; a second look clears all but one of these six."""
    looks = [two_stages(*(table(0, 0, 0, seed=2 * at + k, people=6) for k in (0, 1))) for at in FALSE_ALARMS]
    assert sum(finding.verdict in ALARMS for finding in looks) == 1


# ---------------------------------------------------------------- in a running test


def running(fresh: Callable[[Any], FreshSample] | None, emitted: list[Finding], **changes: Any) -> TestContext:
    fields = {"test_id": "t", "test_module": "m", "description": "d", "policy": Policy(confirm=True), **changes}
    return TestContext(emit=emitted.append, fresh_sample=fresh, **fields)


def test_an_alarm_that_both_do_not_raise_passes_or_warns_and_a_confirmed_one_fails() -> None:
    first, emitted = table(0, 0.6, seed=4), []
    unlike, alike = (running(lambda _, b=b: sample(table(0, b, seed=2)), emitted) for b in (-0.5, 0.6))
    with running_test(unlike):
        finding = assert_no_disparity(first, "score", "group")
    assert finding.details["confirmation"]["confirmed"] is False
    with running_test(alike), pytest.raises(FairnessFailure):
        assert_no_disparity(first, "score", "group")
    assert [one.verdict in ALARMS for one in emitted] == [False, True]


def raises(error: Exception) -> Callable[[Any], FreshSample]:
    def fresh(_: Any) -> FreshSample:
        raise error

    return fresh


@pytest.mark.parametrize(
    ("fresh", "why"),
    [
        (raises(UsageError("no such rows")), "no such rows"),
        (raises(BudgetError("the cap is reached")), "the cap is reached"),
        (None, "unconfirmed, so it stands as it is"),
    ],
    ids=["unlike", "no money", "no grid"],
)
def test_an_alarm_that_cannot_be_repeated_stands_and_says_why(
    fresh: Callable[[Any], FreshSample] | None, why: str
) -> None:
    with running_test(running(fresh, [])), pytest.raises(FairnessFailure, match=why):
        assert_no_disparity(table(0, 1, seed=1), "score", "group")


def test_nothing_is_asked_again_for_a_pass_or_a_justified_flag_or_where_it_is_turned_off() -> None:
    """Second samples cost money: only what would fail the test is worth it."""
    never = raises(AssertionError("asked"))
    reason = {"reason": "known", "approver": "J", "date": "2026-01-01", "expiry": "2999-01-01"}
    with running_test(running(never, [], justification=lambda _: reason)):
        assert_no_disparity(table(0, 0, seed=1), "score", "group")
        flag = assert_no_disparity(table(0, 0.35, seed=5, people=60), "score", "group")
    assert flag.verdict is Verdict.FLAG
    with running_test(running(never, [], policy=Policy(confirm=False))), pytest.raises(FairnessFailure):
        assert_no_disparity(table(0, 1, seed=1), "score", "group")


def test_the_other_assertions_are_looked_at_again_as_well() -> None:
    fair = running(lambda frame: sample(frame.iloc[::-1].reset_index(drop=True)), [])
    with running_test(fair), pytest.raises(FairnessFailure, match="confirmed with"):
        assert_four_fifths(decided(120, 60), "hired", "group", cluster=None)
    with running_test(running(lambda _: sample(table(1.5, 0, seed=2)), [])):
        alike = assert_equivalent(table(0, 1.5, seed=1), "score", "group", margin=0.5)
    assert alike.details["confirmation"]["confirmed"] is False
    with running_test(running(lambda _: sample(chosen(40)), [])):
        found = assert_no_preference(chosen(110), cluster=None, block=None)
    assert found.verdict is Verdict.PASS
    raw = table(0, 0, seed=1).assign(arm="raw")
    grown = table(0, 1.2, seed=2).assign(arm="scrubbed", name=raw["name"])
    both = pd.concat([raw, grown], ignore_index=True)
    other = both.assign(name=lambda f: f.name + "x")
    with running_test(running(lambda _: sample(other), [])), pytest.raises(FairnessFailure, match="confirmed with"):
        assert_arm_reduces_disparity(both, "score", treated="scrubbed", control="raw")


def test_a_note_and_a_mark_are_all_that_change_where_nothing_was_asked_again() -> None:
    finding = analyze_disparity(table(0, 1, seed=1), "score", "group")
    noted = unconfirmed(finding, "why not")
    assert noted.notes == (*finding.notes, "unconfirmed, so it stands as it is: why not")
    assert (noted.verdict, noted.sentence) == (finding.verdict, finding.sentence)
    assert marks(noted) == ["unconfirmed"]
