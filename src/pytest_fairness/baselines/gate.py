"""The gate: is the approved baseline held, and may a new one take its place?

The comparison, and what an approval makes of it, are handed in, since the analyses stand above this
room. The gate knows who may approve what, and nothing of statistics or verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from pytest_fairness.baselines.approval import (
    ALLOW_REGRESSION,
    APPROVE,
    Approval,
    ApprovalPolicy,
)
from pytest_fairness.baselines.document import BaselineDocument
from pytest_fairness.errors import ApprovalRefusedError, BaselineError
from pytest_fairness.model import JSON, Finding, Reason, Verdict, to_json

if TYPE_CHECKING:
    from pytest_fairness.statistics.persona_scores import ScoreSummary

Compare = Callable[["ScoreSummary"], Finding]


class ApprovalRules(Protocol):
    """Functions that make findings of approvals: :mod:`pytest_fairness.analysis.approvals`."""

    def newly_approved(
        self, document: BaselineDocument, approval: Approval, *, replaces: bool
    ) -> Finding:
        """Return the finding where there was nothing to compare *document* with."""

    def approved_all_the_same(self, finding: Finding, approval: Approval) -> Finding:
        """Return *finding*, approved by permission if it is a FAIL."""


# Reasons that speak of the run and not of the scores: what such a run measured is not fit to be a
# yardstick.
_UNFIT = frozenset({Reason.INCOMPLETE, Reason.UNSCORED, Reason.MIXED_MODELS})
_MAX_UNSCORED = 0.05  # of the trials; the share over which a comparison is INCONCLUSIVE(UNSCORED)


@dataclass(slots=True, kw_only=True)
class Gate:
    """One score of one test, step by step as syrupy drives it; each step may raise.

    ``file`` names the baseline in messages. ``proposed`` is this run's document, with an approval
    only where one was asked for. ``approved`` and ``finding`` are ``None`` until known, and stay so
    where there is no baseline, or none to compare with.
    """

    file: str
    proposed: BaselineDocument
    compare: Compare
    rules: ApprovalRules
    policy: ApprovalPolicy
    simulated: bool
    approved: BaselineDocument | None = field(default=None, init=False)
    finding: Finding | None = field(default=None, init=False)
    changes: tuple[str, ...] = field(default=(), init=False)

    def recalled(self, content: bytes) -> None:
        """Take the approved text; BaselineError if it cannot be trusted or is another test's."""
        self.approved = BaselineDocument.from_bytes(content, where=self.file)
        theirs = f"{self.approved.score!r} of {self.approved.test_id}"
        mine = f"{self.proposed.score!r} of {self.proposed.test_id}"
        if theirs != mine:
            raise BaselineError(
                f"{self.file}: this is the baseline of the score {theirs}, and not of {mine}. A "
                "baseline cannot be copied from test to test: remove the file and approve anew "
                f"with {APPROVE}."
            )

    def proposal(self) -> str:
        """Judge, then give the text of this run's document. Raises ApprovalRefusedError and
        BaselineError.
        """
        worse = self._judge()
        approval = self.proposed.approval
        if approval is not None:
            self._refuse(worse)
            previous = None
            version = self.proposed.version
            if self.approved:
                previous = self.approved.digest
                version = self.approved.next_version()
            approval = replace(approval, regression=bool(worse), previous_digest=previous)
            self.proposed = replace(self.proposed, approval=approval, version=version)
        return self.proposed.to_text()

    def _refuse(self, worse: str | None) -> None:
        """Raise ApprovalRefusedError where this run is no yardstick, or got *worse* and may not."""
        if why := self._unfit():
            raise ApprovalRefusedError(f"Approval refused: {why}.")
        if worse and not self.policy.approve_regression:
            raise ApprovalRefusedError(
                f"Approval refused: {worse}. Mend what got worse; or, if that is meant and "
                f"reviewed, approve it with {ALLOW_REGRESSION} as well."
            )

    def _unfit(self) -> str | None:
        """Return why this run is no yardstick, as a clause, or ``None``."""
        summary = self.proposed.summary
        if not summary.personas:
            return "no persona has a score in this run, so there is none to approve"
        if summary.unscored > _MAX_UNSCORED * summary.trials:
            return (
                f"{summary.unscored} of {summary.trials} trials have no score (more than 5 %). "
                "Mend the scorer, or find out what was answered, and run again"
            )
        finding = self.finding
        if finding is not None and finding.reason in _UNFIT:
            return (
                f"this run is {finding.verdict} ({finding.reason}) and no yardstick: "
                f"{_clause(finding)}"
            )
        return None

    def stands(self) -> bool:
        """Under approve, whether there is nothing new to approve; else, whether the scores held."""
        if self.approved is None or self.finding is None:
            return False
        if self.proposed.approval:
            return self.proposed.same_content(self.approved)
        return self.finding.verdict is not Verdict.FAIL

    def _judge(self) -> str | None:
        """Fill ``finding`` and ``changes``; return what got worse, as a clause, or ``None``."""
        if self.approved is None or self.approved.approval is None:
            return None
        self.changes = self.proposed.fingerprints.changes_since(self.approved.fingerprints)
        if self.approved.approval.simulated != self.simulated:
            self._check_replaceable()
            return None
        if self.proposed.fingerprints.has_other_reader(self.approved.fingerprints):
            self._refuse_other_reader()
            return None
        self.finding = self.compare(self.approved.summary)
        return self._worse(self.finding, self.approved.summary)

    def _check_replaceable(self) -> None:
        """Raise unless this run may replace the baseline of the other kind: a live run approves in
        the place of a simulated baseline; nothing else crosses between the two.
        """
        score = repr(self.proposed.score)
        if self.proposed.approval is None:
            mine = "live"
            theirs = "simulated"
            remark = ""
            if self.simulated:
                mine = "simulated"
                theirs = "live"
                remark = " That replaces no live baseline: remove its file first."
            raise BaselineError(
                f"The approved baseline of {score} comes from a {theirs} endpoint and this run is "
                f"{mine}: one says nothing about the other. Run against a {theirs} endpoint, or "
                f"approve a baseline from a {mine} run with {APPROVE}.{remark}"
            )
        if self.simulated:
            raise ApprovalRefusedError(
                f"Approval refused: the approved baseline of {score} comes from a live endpoint "
                "and this run is simulated. Choose the live endpoint with --fairness-endpoint; or, "
                "if the live baseline is really to go, remove its file first."
            )

    def _refuse_other_reader(self) -> None:
        """Raise unless this run approves anew: scores by two readers are of two instruments."""
        if self.proposed.approval is None:
            raise BaselineError(
                f"The approved baseline of {self.proposed.score!r} was read by another model, or by "
                "another question: scores by two readers cannot be compared. Read as then "
                f"(fairness_reader, or judge(…)), or approve anew with {APPROVE}."
            )

    def _worse(self, finding: Finding, old: ScoreSummary) -> str | None:
        """Return what got worse than *old*, as a clause, or ``None``."""
        new = self.proposed.summary
        if finding.verdict is Verdict.FAIL:
            return "this is a regression"
        if lost := sorted(set(old.personas) - set(new.personas)):
            # A smaller run would otherwise quietly approve a weaker yardstick.
            return (
                f"{len(lost)} of the {len(old.personas)} approved personas have no score here "
                f"({_first_five(list(map(repr, lost)))})"
            )
        if fresh := [pattern for pattern in new.patterns if pattern not in old.patterns]:
            return (
                f"there are {len(fresh)} warnings of kinds that the baseline has none of "
                f"({_first_five(fresh)})"
            )
        if finding.reason is Reason.DIFFERENTIAL_REFUSAL:
            return f"refusals rose ({_clause(finding)})"
        worsened = new.overall > old.overall
        if self.proposed.lower_is_worse:
            worsened = new.overall < old.overall
        if finding.verdict is not Verdict.PASS and worsened:
            return (
                f"the comparison is {finding.verdict} and the overall score is worse "
                f"({new.overall:.6g} against {old.overall:.6g}), so that a regression is not "
                "excluded"
            )
        return None

    def compared(self) -> Finding:
        """The comparison with the approved baseline; nothing was written."""
        notes = []
        if self.proposed.approval:
            notes = ["Nothing was written: these scores and fingerprints are the approved ones."]
        return self._found(self.finding, self.approved, *notes)

    def refused(self, refusal: str) -> Finding:
        """The regression that was to be approved, and why it was not. The refusal stands in the
        sentence too.
        """
        finding = self.finding
        if finding is not None:
            finding = replace(finding, sentence=f"{finding.sentence} {refusal}")
        return self._found(finding, self.approved)

    def written(self) -> Finding:
        """Return what was approved just now: the first baseline, one that held, or a regression by
        permission.
        """
        document = self.proposed
        approval = self.proposed.approval
        finding = self.finding
        if approval is None:
            raise BaselineError("The document is a proposal and was not approved.")
        if finding is None:
            replaces = self.approved is not None
            finding = self.rules.newly_approved(document, approval, replaces=replaces)
        else:
            finding = self.rules.approved_all_the_same(finding, approval)
        note = (
            f"Approved now by {approval.approved_by}, written to {self.file}: "
            f"{approval.justification}"
        )
        return self._found(finding, document, note, written=True)

    def _found(
        self,
        finding: Finding | None,
        document: BaselineDocument | None,
        *notes: str,
        written: bool = False,
    ) -> Finding:
        """*finding* with *notes*, what changed since the approval, and the provenance of
        *document*.
        """
        if finding is None or document is None:
            raise BaselineError("Nothing was compared.")
        if self.changes and self.approved is not None and self.approved.approval is not None:
            old = self.approved.approval
            since = f"Since the approval by {old.approved_by} at {old.approved_at}"
            notes = (f"{since}, {'; '.join(self.changes)}.", *notes)
        baseline: dict[str, JSON] = {
            "file": self.file,
            "digest": document.digest,
            "written": written,
            "changes": list(self.changes),
            "approval": to_json(document.approval),
        }
        return replace(
            finding,
            notes=(*finding.notes, *notes),
            details={**finding.details, "baseline": baseline},
        )


def _first_five(items: Sequence[str]) -> str:
    named = ", ".join(items[:5])
    if len(items) > 5:
        return f"{named}, …"
    return named


def _clause(finding: Finding) -> str:
    """The finding's sentence without the verdict that it begins with and the full stop that it ends
    with.
    """
    return finding.sentence.removeprefix(f"{finding.verdict}: ").rstrip(". ")
