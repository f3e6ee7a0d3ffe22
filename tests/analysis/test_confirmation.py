"""The two-stage rule: an alarm stands only where this sample and a fresh one together raise it too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pandas as pd
import pytest

from pytest_fairness import (
    FairnessFailure,
    InconclusiveWarning,
    analyze_disparity,
    assert_arm_reduces_disparity,
    assert_equivalent,
    assert_four_fifths,
    assert_no_disparity,
    assert_no_preference,
)
from pytest_fairness.analysis.confirmation import together
from pytest_fairness.errors import BudgetError, UsageError
from pytest_fairness.model import ALARMS, Finding, Verdict
from pytest_fairness.reports.formatting import marks
from pytest_fairness.running_test import Assertion, FreshSample, Policy, TestContext, running_test
from pytest_fairness.testing import choices_frame, decisions_frame, scores_frame

PASS, FAIL = Verdict.PASS, Verdict.FAIL


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


def running(
    fresh: Callable[[Assertion], FreshSample] | None, emitted: list[Finding], **changes: Any
) -> TestContext:
    fields = {
        "test_id": "t",
        "test_module": "m",
        "description": "d",
        "policy": Policy(confirm=True),
        **changes,
    }
    return TestContext(emit=emitted.append, fresh_sample=fresh, **fields)


def second_look(
    first: pd.DataFrame,
    second: pd.DataFrame,
    assertion: Callable[..., Finding] = assert_no_disparity,
    **options: Any,
) -> Finding:
    """What the assertion says of *first* where the fresh sample is *second*."""
    sample, emitted = FreshSample(frame=second, about="20 other names a group"), []
    columns = {"outcome": "score", "by": "group"} if assertion is assert_no_disparity else {}
    with (
        running_test(running(lambda _: sample, emitted)),
        suppress(FairnessFailure),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", InconclusiveWarning)
        assertion(first, **{**columns, **options})
    return emitted[0]


def test_a_difference_in_both_samples_stays_a_fail_and_reports_both() -> None:
    """In the sentence, the notes, the details and the explanation; the figures are those of both
    together.
    """
    first, second = table(0, 1, seed=1), table(0, 1, seed=2)
    finding = second_look(first, second)
    assert finding.verdict is FAIL
    assert finding.sentence.startswith("FAIL: b is worse off than a")
    assert finding.sentence.endswith("; confirmed with 20 other names a group.")
    assert (
        finding.pairs
        == analyze_disparity(pd.concat([first, second]), "score", "group", alpha=0.025).pairs
    )
    details = finding.details["confirmation"]
    assert details["confirmed"] is True
    assert (details["first"]["verdict"], details["first"]["n_per_group"]) == (
        "FAIL",
        {"a": 160, "b": 160},
    )
    assert details["both"] == {
        "verdict": "FAIL",
        "n_per_group": {"a": 320, "b": 320},
        "alpha": 0.025,
    }
    assert details["first"]["pairs"][0]["effect"] != finding.pairs[0].effect
    assert any("at first: FAIL, b against a on score (d = " in note for note in finding.notes)
    assert "an equal one on other names was drawn" in finding.explain()
    assert Finding.from_dict(finding.to_dict()).details == finding.details


def test_a_difference_in_the_first_sample_alone_is_judged_by_both_together() -> None:
    """Half a difference in twice the data, or none: whatever both come to, with what was raised at
    first.
    """
    finding = second_look(table(0, 0.6, seed=4), table(0.6, 0, seed=2))
    assert finding.verdict not in ALARMS
    assert (
        "The first sample alone raised an alarm that 20 other names a group did not bear out: "
        in finding.sentence
    )
    assert finding.details["confirmation"]["confirmed"] is False


def test_every_pair_is_judged_again_not_only_those_that_alarmed() -> None:
    """A pair that the second sample alone shows counts as well."""
    finding = second_look(table(0, 1, 0, seed=1), table(0, 1, 1.2, seed=2))
    verdicts = {(pair.group_1, pair.group_2): pair.verdict for pair in finding.pairs}
    assert (verdicts["a", "b"], verdicts["a", "c"]) == (FAIL, FAIL)
    assert len(finding.details["confirmation"]["first"]["pairs"]) == 2


def test_a_table_of_both_samples_has_the_columns_and_the_design_of_the_first() -> None:
    first, second = table(0, 1, seed=1).assign(note="text"), table(0, 1, seed=2).assign(note=None)
    first.attrs["pytest_fairness"] = {"template": "kept"}
    both = together(first, FreshSample(frame=second, about="more"))
    assert (list(both.columns), both.attrs) == (list(first.columns), first.attrs)
    assert (len(both), both.index.is_unique) == (len(first) + len(second), True)
    assert both.dtypes[["score", "group", "repetition"]].equals(
        first.dtypes[["score", "group", "repetition"]]
    )


FALSE_ALARMS = (60, 61, 119, 151, 179, 216)
BARE = {"bare_ratio": True, "reference": "a"}
MARGIN = {"outcome": "score", "by": "group", "margin": 0.5}
RAW = table(0, 0, seed=1).assign(arm="raw")
ARMS = pd.concat(
    [RAW, table(0, 1.2, seed=2).assign(arm="scrubbed", name=RAW["name"])], ignore_index=True
)
REDUCED = {"outcome": "score", "treated": "scrubbed", "control": "raw"}


@pytest.mark.parametrize(
    ("assertion", "first", "second", "options", "verdict"),
    [
        (assert_four_fifths, decided(120, 60), decided(120, 65), {}, FAIL),
        (assert_four_fifths, decided(120, 60), decided(60, 120), {}, PASS),
        (assert_four_fifths, decided(50, 30, 100), decided(50, 38, 100), BARE, FAIL),
        (assert_four_fifths, decided(50, 30, 100), decided(50, 55, 100), BARE, PASS),
        (assert_equivalent, table(0, 1.5, seed=1), table(1.5, 0, seed=2), MARGIN, PASS),
        (assert_no_preference, chosen(110), chosen(40), {"cluster": None, "block": None}, PASS),
        (assert_arm_reduces_disparity, ARMS, ARMS.assign(name=ARMS.name + "x"), REDUCED, FAIL),
    ],
    ids=range(7),
)
def test_every_assertion_is_judged_by_both_samples(
    assertion: Callable[..., Finding],
    first: pd.DataFrame,
    second: pd.DataFrame,
    options: dict[str, Any],
    verdict: Verdict,
) -> None:
    """And the bare ratio by the bare ratio."""
    if assertion is assert_four_fifths:
        options = {"outcome": "hired", "by": "group", "cluster": None, **options}
    finding = second_look(first, second, assertion, **options)
    assert finding.verdict is verdict
    assert finding.details["confirmation"]["confirmed"] is (verdict is FAIL)
    once = finding.details["confirmation"]["first"]["n_per_group"]
    assert finding.n_per_group == {group: 2 * n for group, n in once.items()}


def test_a_fair_system_is_cleared() -> None:
    """Of 400 audits of three groups without a difference 12 alarm; a second look clears all but one
    of these six.
    """
    looks = [
        second_look(*(table(0, 0, 0, seed=2 * at + k, people=6) for k in (0, 1)))
        for at in FALSE_ALARMS
    ]
    assert all("confirmation" in finding.details for finding in looks)
    assert sum(finding.verdict in ALARMS for finding in looks) == 1


def raises(error: Exception) -> Callable[[Any], FreshSample]:
    def fresh(_: Any) -> FreshSample:
        raise error

    return fresh


@pytest.mark.parametrize(
    ("fresh", "why"),
    [
        (raises(UsageError("no such rows")), "no such rows"),
        (raises(BudgetError("the cap is reached")), "the cap is reached"),
        (None, "a table is judged as it is"),
    ],
    ids=["unlike", "no money", "no grid"],
)
def test_an_alarm_that_cannot_be_repeated_stands_and_says_why(
    fresh: Callable[[Any], FreshSample] | None, why: str
) -> None:
    """A note and a mark are all that changes."""
    plain, emitted = analyze_disparity(table(0, 1, seed=1), "score", "group"), []
    with running_test(running(fresh, emitted)), pytest.raises(FairnessFailure, match=why):
        assert_no_disparity(table(0, 1, seed=1), "score", "group")
    (noted,) = emitted
    assert noted.notes[: len(plain.notes)] == plain.notes
    assert noted.notes[-1].startswith(f"unconfirmed, so it stands as it is: {why}")
    assert (noted.verdict, noted.sentence, marks(noted)) == (
        plain.verdict,
        plain.sentence,
        ["unconfirmed"],
    )


def test_nothing_is_requested_again_for_a_pass_or_a_justified_flag_or_where_it_is_turned_off() -> (
    None
):
    """Second samples cost money: only what would fail the test is worth it."""
    never = raises(AssertionError("a second sample"))
    reason = {"reason": "known", "approver": "J", "date": "2026-01-01", "expiry": "2999-01-01"}
    with running_test(running(never, [], justification=lambda _: reason)):
        assert_no_disparity(table(0, 0, seed=1), "score", "group")
        flag = assert_no_disparity(table(0, 0.35, seed=5, people=60), "score", "group")
    assert flag.verdict is Verdict.FLAG
    with (
        running_test(running(never, [], policy=Policy(confirm=False))),
        pytest.raises(FairnessFailure),
    ):
        assert_no_disparity(table(0, 1, seed=1), "score", "group")
