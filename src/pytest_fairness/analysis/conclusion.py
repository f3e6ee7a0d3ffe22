"""What becomes of a finding inside a test: looked at again, tried for sensitivity, justified, handed on, acted upon."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_fairness.analysis.confirmation import confirmed, together, unconfirmed
from pytest_fairness.analysis.false_alarms import chance
from pytest_fairness.analysis.verdicts import CONFIRMED
from pytest_fairness.context import Policy, TestContext, current_test
from pytest_fairness.errors import (
    BudgetError,
    EndpointError,
    FairnessFailure,
    InconclusiveWarning,
    StoreError,
    UsageError,
)
from pytest_fairness.model import ALARMS, Finding, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.analysis.sensitivity import Sensitivity


def examine(
    frame: pd.DataFrame,
    analyze: Callable[[pd.DataFrame, float], Finding],
    *,
    sensitivity: Callable[[], Sensitivity | None] | None = None,
) -> Finding:
    """The finding of *analyze* on *frame*, after what the running test's policy asks for.

    *analyze* is given a table and the share of the assertion's alpha at which it is to raise the alarm. Under
    ``confirm`` a FLAG or FAIL that nothing justifies is looked at again on this sample and a fresh one together. Under
    ``sensitivity`` a PASS is tried with planted disparities.
    """
    test = current_test()
    finding = analyze(frame, 1.0)
    if test is None:
        return finding
    false_alarm = _false_alarm(finding, test)
    if test.policy.confirm and finding.verdict in ALARMS:
        finding = _looked_at_again(finding, frame, analyze, test)
    if test.policy.sensitivity and finding.verdict is Verdict.PASS and sensitivity is not None:
        from pytest_fairness.analysis.trying import beside

        finding = beside(finding, sensitivity())
    return finding if false_alarm is None else replace(finding, family={**finding.family, "false_alarm": false_alarm})


def _false_alarm(finding: Finding, test: TestContext) -> float | None:
    """How likely a fair system fails this assertion, at most; None for a bare ratio, which has no bound."""
    alpha = finding.family.get("alpha")
    if not isinstance(alpha, float):
        return None
    return chance(alpha, confirmed=test.policy.confirm and test.confirmable())


def _looked_at_again(
    finding: Finding, frame: pd.DataFrame, analyze: Callable[[pd.DataFrame, float], Finding], test: TestContext
) -> Finding:
    if finding.verdict is Verdict.FLAG and test.justification(finding) is not None:
        return finding  # it will not fail the test, so there is nothing to pay for
    if test.fresh_sample is None:
        return unconfirmed(
            finding, "a table is judged as it is; only a test that asks for the trials of a grid can ask more"
        )
    try:
        sample = test.fresh_sample(frame)
        both = analyze(together(frame, sample), CONFIRMED)
    except (UsageError, EndpointError, BudgetError, StoreError) as error:
        return unconfirmed(finding, str(error))
    return confirmed(finding, both, sample)


def conclude(finding: Finding) -> Finding:
    """Do with *finding* what its verdict asks for, under the policy of the running test.

    PASS returns. FAIL raises. FLAG raises unless a documented justification stands behind it. INCONCLUSIVE because the
    data cannot be used (too few, unscored, ragged, incomplete) raises, or under ``--fairness-smoke`` leaves it to the
    plugin to skip the test; any other INCONCLUSIVE warns, and raises under ``--fairness-require-conclusive``.
    """
    __tracebackhide__ = True
    test = current_test()
    policy = test.policy if test is not None else Policy()
    if test is not None:
        if finding.verdict is Verdict.FLAG and finding.justification is None:
            finding = replace(finding, justification=test.justification(finding))
        finding = replace(finding, notes=(*finding.notes, *test.notes(finding)))
        test.emit(finding)
    if _fails(finding, policy):
        raise FairnessFailure(_message(finding), finding)
    if finding.verdict is Verdict.INCONCLUSIVE and not _unusable(finding):
        warnings.warn(finding.sentence, InconclusiveWarning, stacklevel=3)
    return finding


def _fails(finding: Finding, policy: Policy) -> bool:
    match finding.verdict:
        case Verdict.PASS:
            return False
        case Verdict.FAIL:
            return True
        case Verdict.FLAG:
            return finding.justification is None
        case Verdict.INCONCLUSIVE:
            return not policy.smoke if _unusable(finding) else policy.require_conclusive


def _unusable(finding: Finding) -> bool:
    """Whether the data cannot be used, or there was nothing to compare."""
    return finding.reason is None or finding.reason.unusable


def _message(finding: Finding) -> str:
    from pytest_fairness.reports.text import finding_text

    message = finding_text(finding)
    if finding.verdict is Verdict.FLAG:
        message += (
            "\n\nA FLAG needs a documented justification. Give one where it will be read:\n"
            '  @pytest.mark.fairness(justification={"reason": "…", "approver": "…", "date": "2026-01-31", '
            '"expiry": "2026-07-31"})\n'
            "or an entry for this test in justifications.yaml with the same keys."
        )
    return message
