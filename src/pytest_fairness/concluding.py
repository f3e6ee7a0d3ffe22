"""What becomes of a finding inside a test: looked at again, tried for sensitivity, justified, handed on, acted upon."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from pytest_fairness.confirming import ALARMS, confirmed, unrepeated
from pytest_fairness.current import Policy, TestContext, current_test
from pytest_fairness.errors import BudgetError, EndpointError, FairnessFailure, InconclusiveWarning, UsageError
from pytest_fairness.model import Finding, Reason, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.analysis.sensitivity import Sensitivity


def examine(
    frame: pd.DataFrame,
    analyze: Callable[[pd.DataFrame], Finding],
    *,
    again: Callable[[pd.DataFrame, Finding], Finding] | None = None,
    sensitivity: Callable[[], Sensitivity | None] | None = None,
) -> Finding:
    """The finding of *analyze* on *frame*, after what the running test's policy asks for.

    Under ``confirm`` a FLAG or FAIL that nothing justifies is repeated on a second sample, with *again* (given the
    second table and the first finding) where plain *analyze* would not compare the same pairs. Under ``sensitivity`` a
    PASS is tried with planted disparities.
    """
    test = current_test()
    finding = analyze(frame)
    if test is None:
        return finding
    if test.policy.confirm and finding.verdict in ALARMS:
        finding = _repeated(finding, frame, again or (lambda table, _first: analyze(table)), test)
    if test.policy.sensitivity and finding.verdict is Verdict.PASS and sensitivity is not None:
        from pytest_fairness.analysis.trying import beside

        finding = beside(finding, sensitivity())
    return finding


def _repeated(
    finding: Finding, frame: pd.DataFrame, again: Callable[[pd.DataFrame, Finding], Finding], test: TestContext
) -> Finding:
    if finding.verdict is Verdict.FLAG and test.justification(finding) is not None:
        return finding  # it will not fail the test, so there is nothing to pay for
    if test.fresh_sample is None:
        return unrepeated(finding, "only a test that asks for the trials of a grid can be")
    try:
        sample = test.fresh_sample(frame)
        return confirmed(finding, again(sample.frame, finding), sample)
    except (UsageError, EndpointError, BudgetError) as error:
        return unrepeated(finding, str(error))


def conclude(finding: Finding) -> Finding:
    """Do with *finding* what its verdict asks for, under the policy of the running test.

    PASS returns. FAIL raises. FLAG raises unless a documented justification stands behind it. INCONCLUSIVE(N)
    raises, or under ``--fairness-smoke`` leaves it to the plugin to skip the test; any other INCONCLUSIVE warns,
    and raises under ``--fairness-require-conclusive``.
    """
    __tracebackhide__ = True
    test = current_test()
    policy = test.policy if test is not None else Policy()
    if test is not None:
        if finding.verdict is Verdict.FLAG and finding.justification is None:
            finding = dataclasses.replace(finding, justification=test.justification(finding))
        finding = dataclasses.replace(finding, notes=(*finding.notes, *test.notes(finding)))
        test.emit(finding)
    if _fails(finding, policy):
        raise FairnessFailure(_message(finding), finding)
    if finding.verdict is Verdict.INCONCLUSIVE and finding.reason is not Reason.N:
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
            if finding.reason is Reason.N:
                return not policy.smoke
            return policy.require_conclusive


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
