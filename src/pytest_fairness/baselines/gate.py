"""The gate: is the approved baseline held, and may a new one take its place?

The comparison, and what an approval makes of it, are handed in, since the analyses stand above this
room. The gate knows who may approve what, and nothing of statistics or verdicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
    """What an approval makes of a comparison: :mod:`pytest_fairness.analysis.approvals`."""

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
    approved: BaselineDocument | None = None
    finding: Finding | None = None
    changes: tuple[str, ...] = ()

    def recalled(self, content: bytes) -> None:
        """Take the approved text; BaselineError if it cannot be trusted or is another test's."""
        self.approved = BaselineDocument.from_bytes(content, where=self.file)
        (test, score), (document, mine) = (
            (side.test_id, side.score) for side in (self.approved, self.proposed)
        )
        if (test, score) != (document, mine):
            raise BaselineError(
                f"{self.file}: this is the baseline of the score {score!r} of {test}, and not of "
                f"{mine!r} of {document}. A "
                "baseline cannot be copied from test to test: remove the file and approve anew "
                f"with {APPROVE}."
            )

    def proposal(self) -> str:
        """Judge, then give the text of this run's document. Raises ApprovalRefusedError and
        BaselineError.
        """
        worse = self._judge()
        if approval := self.proposed.approval:
            summary = self.proposed.summary
            finding = self.finding
            why = None
            if not summary.personas:
                why = "no persona has a score in this run, so there is none to approve"
            elif summary.unscored > _MAX_UNSCORED * summary.trials:
                why = (
                    f"{summary.unscored} of {summary.trials} trials have no score (more than 5 %). "
                    "Mend the scorer, or "
                    "find out what was answered, and run again"
                )
            elif finding is not None and finding.reason in _UNFIT:
                why = (
                    f"this run is {finding.verdict} ({finding.reason}) and no yardstick: "
                    f"{_clause(finding)}"
                )
            if why:
                raise ApprovalRefusedError(f"Approval refused: {why}.")
            if worse and not self.policy.approve_regression:
                raise ApprovalRefusedError(
                    f"Approval refused: {worse}. Mend what got worse; or, if that is meant and "
                    "reviewed, "
                    f"approve it with {ALLOW_REGRESSION} as well."
                )
            previous = None
            if self.approved:
                previous = self.approved.digest
            approval = replace(approval, regression=bool(worse), previous_digest=previous)
            if self.approved:
                version = self.approved.next_version()
            else:
                version = self.proposed.version
            self.proposed = replace(self.proposed, approval=approval, version=version)
        return self.proposed.to_text()

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
            # A live run may replace a simulated baseline; nothing else crosses between the two.
            if self.proposed.approval is None:
                mine, theirs = ("simulated", "live") if self.simulated else ("live", "simulated")
                raise BaselineError(
                    f"The approved baseline of {self.proposed.score!r} comes from a {theirs} "
                    "endpoint and this run is "
                    f"{mine}: one says nothing about the other. Run against a {theirs} endpoint, "
                    "or approve a baseline "
                    f"from a {mine} run with {APPROVE}."
                    + (
                        " That replaces no live baseline: remove its file first."
                        if self.simulated
                        else ""
                    )
                )
            if self.simulated:
                raise ApprovalRefusedError(
                    f"Approval refused: the approved baseline of {self.proposed.score!r} comes "
                    "from a live "
                    "endpoint and this run is simulated. Choose the live endpoint with "
                    "--fairness-endpoint; "
                    "or, if the live baseline is really to go, remove its file first."
                )
            return None
        self.finding = self.compare(self.approved.summary)
        old = self.approved.summary
        new = self.proposed.summary
        if self.finding.verdict is Verdict.FAIL:
            return "this is a regression"
        if lost := sorted(set(old.personas) - set(new.personas)):
            # A smaller run would otherwise quietly approve a weaker yardstick.
            named = ", ".join(map(repr, lost[:5])) + (", …" if len(lost) > 5 else "")
            return (
                f"{len(lost)} of the {len(old.personas)} approved personas have no score here "
                f"({named})"
            )
        if fresh := [pattern for pattern in new.patterns if pattern not in old.patterns]:
            named = ", ".join(fresh[:5]) + (", …" if len(fresh) > 5 else "")
            return (
                f"there are {len(fresh)} warnings of kinds that the baseline has none of ({named})"
            )
        if self.finding.reason is Reason.DIFFERENTIAL_REFUSAL:
            return f"refusals rose ({_clause(self.finding)})"
        if self.proposed.lower_is_worse:
            worsened = new.overall < old.overall
        else:
            worsened = new.overall > old.overall
        if self.finding.verdict is not Verdict.PASS and worsened:
            return (
                f"the comparison is {self.finding.verdict} and the overall score is worse "
                f"({new.overall:.6g} against {old.overall:.6g}), so that a regression is not "
                "excluded"
            )
        return None

    def compared(self) -> Finding:
        """The comparison with the approved baseline; nothing was written."""
        unwritten = "Nothing was written: these scores and fingerprints are the approved ones."
        return self._found(
            self.finding, self.approved, *([unwritten] if self.proposed.approval else [])
        )

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
        if (
            self.changes
            and self.approved is not None
            and (old := self.approved.approval) is not None
        ):
            since = (
                f"Since the approval by {old.approved_by} at {old.approved_at}, "
                f"{'; '.join(self.changes)}."
            )
            notes = (since, *notes)
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


def _clause(finding: Finding) -> str:
    """The finding's sentence without the verdict that it begins with and the full stop that it ends
    with.
    """
    return finding.sentence.removeprefix(f"{finding.verdict}: ").rstrip(". ")
