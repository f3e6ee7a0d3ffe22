"""What the gate's decisions say in a finding. Standard library only."""

from __future__ import annotations

from dataclasses import replace

from pytest_fairness.baselines.approval import Approval
from pytest_fairness.baselines.document import BaselineDocument
from pytest_fairness.baselines.errors import BaselineError
from pytest_fairness.baselines.gate import Gate, clause
from pytest_fairness.model import JSON, Finding, OutcomeKind, Verdict, to_json


def compared_finding(gate: Gate) -> Finding:
    """The comparison with the approved baseline; nothing was written."""
    finding, document = _finding(gate), _approved(gate)
    notes = _changes(gate)
    if gate.proposed.approval:
        notes += ("Nothing was written: these scores and fingerprints are the approved ones.",)
    return _with_baseline(finding, document, gate, notes, written=False)


def refused_finding(gate: Gate, refusal: str) -> Finding:
    """The regression that was to be approved, and why it was not. The refusal stands in the sentence too."""
    finding = _finding(gate)
    told = replace(finding, sentence=f"{finding.sentence} {refusal}")
    return _with_baseline(told, _approved(gate), gate, _changes(gate), written=False)


def approved_finding(gate: Gate) -> Finding:
    """What was approved just now: the first baseline, one that held, or a regression by permission."""
    document = gate.proposed
    approval = _approval(document)
    notes = (
        *_changes(gate),
        f"Approved now by {approval.approved_by}, written to {gate.file}: {approval.justification}",
    )
    if gate.finding is None:
        replaced = "the simulated baseline was replaced and" if gate.approved else "there was no baseline before:"
        finding = Finding(
            assertion="baseline",
            verdict=Verdict.PASS,
            sentence=(
                f"PASS: the baseline of {document.score} is approved at {document.summary.overall:.6g} "
                f"overall, over {len(document.summary.personas)} personas; {replaced} nothing was compared."
            ),
            test_id=document.test_id,
            outcome=document.score,
            kind=OutcomeKind.NUMERIC,
            simulated=approval.simulated,
            replayed=approval.replayed,
        )
    elif gate.finding.verdict is Verdict.FAIL:
        finding = replace(
            gate.finding,
            verdict=Verdict.FLAG,
            sentence=f"FLAG: {clause(gate.finding)}. Approved all the same by {approval.approved_by}.",
            justification={
                "reason": approval.justification,
                "approver": approval.approved_by,
                "date": approval.approved_at,
            },
        )
    else:
        finding = gate.finding
    return _with_baseline(finding, document, gate, notes, written=True)


def _changes(gate: Gate) -> tuple[str, ...]:
    if not gate.changes or gate.approved is None:
        return ()
    approval = _approval(gate.approved)
    return (f"Since the approval by {approval.approved_by} at {approval.approved_at}, {'; '.join(gate.changes)}.",)


def _with_baseline(
    finding: Finding,
    document: BaselineDocument,
    gate: Gate,
    notes: tuple[str, ...],
    *,
    written: bool,
) -> Finding:
    baseline: dict[str, JSON] = {
        "file": gate.file,
        "digest": document.digest,
        "written": written,
        "changes": list(gate.changes),
        "approval": to_json(document.approval),
    }
    return replace(finding, notes=(*finding.notes, *notes), details={**finding.details, "baseline": baseline})


def _finding(gate: Gate) -> Finding:
    if gate.finding is None:
        raise BaselineError("Nothing was compared.")
    return gate.finding


def _approved(gate: Gate) -> BaselineDocument:
    if gate.approved is None:
        raise BaselineError("There is no approved baseline.")
    return gate.approved


def _approval(document: BaselineDocument) -> Approval:
    if document.approval is None:
        raise BaselineError("The document is a proposal and was not approved.")
    return document.approval
