"""Findings about a baseline that is approved: there was none before, or its FAIL is permitted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_fairness.model import Finding, OutcomeKind, Verdict

if TYPE_CHECKING:
    from pytest_fairness.baselines.approval import Approval
    from pytest_fairness.baselines.document import BaselineDocument


def newly_approved(document: BaselineDocument, approval: Approval, *, replaces: bool) -> Finding:
    """Return the finding that *document* is approved, where there was nothing to compare it with:
    PASS. It *replaces* a simulated baseline, or is the first.
    """
    replaced = "there was no baseline before:"
    if replaces:
        replaced = "the simulated baseline was replaced and"
    return Finding(
        assertion="baseline",
        verdict=Verdict.PASS,
        sentence=(
            f"PASS: the baseline of {document.score} is approved at "
            f"{document.summary.overall:.6g} overall, over {len(document.summary.personas)} "
            f"personas; {replaced} nothing was compared."
        ),
        test_id=document.test_id,
        outcome=document.score,
        kind=OutcomeKind.NUMERIC,
        simulated=approval.simulated,
        replayed=approval.replayed,
    )


def approved_all_the_same(finding: Finding, approval: Approval) -> Finding:
    """Return *finding* after an *approval*: a FAIL that was approved by permission is a FLAG, which
    the approval justifies; any other stays.
    """
    if finding.verdict is not Verdict.FAIL:
        return finding
    clause = finding.sentence.removeprefix(f"{finding.verdict}: ").rstrip(". ")
    return replace(
        finding,
        verdict=Verdict.FLAG,
        sentence=f"FLAG: {clause}. Approved all the same by {approval.approved_by}.",
        justification={
            "reason": approval.justification,
            "approver": approval.approved_by,
            "date": approval.approved_at,
        },
    )
