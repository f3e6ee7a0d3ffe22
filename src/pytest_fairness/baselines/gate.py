"""The gate: is the approved baseline held, and may a new one take its place?

The comparison itself is handed in, since the analyses stand on the same floor as this room. The gate knows
who may approve what, and nothing of statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_fairness.baselines.approval import ALLOW_REGRESSION, ApprovalPolicy
from pytest_fairness.baselines.document import BaselineDocument
from pytest_fairness.baselines.errors import ApprovalRefusedError, BaselineError
from pytest_fairness.model import Finding, Reason, Verdict

if TYPE_CHECKING:
    from pytest_fairness.statistics.persona_scores import ScoreSummary

Compare = Callable[["ScoreSummary"], Finding]

# Reasons that speak of the run and not of the scores: what such a run measured is not fit to be a yardstick.
_UNFIT = frozenset({Reason.INCOMPLETE, Reason.UNSCORED, Reason.MIXED_MODELS})
_MAX_UNSCORED = 0.05  # of the trials; the share over which a comparison is INCONCLUSIVE(UNSCORED)


def clause(finding: Finding) -> str:
    """The finding's sentence without the verdict that it begins with and the full stop that it ends with."""
    return finding.sentence.removeprefix(f"{finding.verdict}: ").rstrip(". ")


@dataclass(slots=True, kw_only=True)
class Gate:
    """One score of one test, step by step as syrupy drives it (see ``extension.Exchange``).

    ``file`` names the baseline in messages. ``proposed`` is this run's document, with an approval only where
    one was asked for. ``approved`` and ``finding`` are ``None`` until known, and stay so where there is no
    baseline, or none to compare with.
    """

    file: str
    proposed: BaselineDocument
    compare: Compare
    policy: ApprovalPolicy
    simulated: bool
    approved: BaselineDocument | None = None
    finding: Finding | None = None
    changes: tuple[str, ...] = ()

    def recalled(self, content: bytes) -> None:
        """Take the approved text; BaselineError if it cannot be trusted or belongs elsewhere."""
        self.approved = BaselineDocument.for_test(
            content, where=self.file, test_id=self.proposed.test_id, score=self.proposed.score
        )

    def proposal(self) -> str:
        """Judge, then give the text of this run's document. Raises ApprovalRefusedError and BaselineError."""
        worse = self._judge()
        if approval := self.proposed.approval:
            self._check_fit()
            if worse and not self.policy.allow_regression:
                raise ApprovalRefusedError(
                    f"Approval refused: {worse}. Mend what got worse; or, if that is meant and reviewed, "
                    f"approve it with {ALLOW_REGRESSION} as well."
                )
            previous = self.approved.digest if self.approved else None
            self.proposed = replace(
                self.proposed, approval=replace(approval, regression=bool(worse), previous_digest=previous)
            )
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
            self._other_kind()
            return None
        self.finding = self.compare(self.approved.summary)
        old, new = self.approved.summary, self.proposed.summary
        if self.finding.verdict is Verdict.FAIL:
            return "this is a regression"
        if lost := sorted(set(old.personas) - set(new.personas)):
            # A smaller run would otherwise quietly approve a weaker yardstick.
            named = ", ".join(map(repr, lost[:5])) + (", …" if len(lost) > 5 else "")
            return f"{len(lost)} of the {len(old.personas)} approved personas have no score here ({named})"
        if self.finding.reason is Reason.DIFFERENTIAL_REFUSAL:
            return f"refusals rose ({clause(self.finding)})"
        worsened = new.overall < old.overall if self.proposed.lower_is_worse else new.overall > old.overall
        if self.finding.verdict is not Verdict.PASS and worsened:
            return (
                f"the comparison is {self.finding.verdict} and the overall score is worse "
                f"({new.overall:.6g} against {old.overall:.6g}), so that a regression is not excluded"
            )
        return None

    def _other_kind(self) -> None:
        """A live run may replace a simulated baseline; nothing else crosses between the two."""
        if self.proposed.approval is None:
            mine, theirs = ("simulated", "live") if self.simulated else ("live", "simulated")
            raise BaselineError(
                f"The approved baseline of {self.proposed.score!r} comes from a {theirs} endpoint and this "
                f"run is {mine}: one says nothing about the other. Run against a {theirs} endpoint, or "
                f"approve a baseline from a {mine} run with --fairness-approve."
                + (" That replaces no live baseline: remove its file first." if self.simulated else "")
            )
        if self.simulated:
            raise ApprovalRefusedError(
                f"Approval refused: the approved baseline of {self.proposed.score!r} comes from a live "
                "endpoint and this run is simulated. Choose the live endpoint with --fairness-endpoint; "
                "or, if the live baseline is really to go, remove its file first."
            )

    def _check_fit(self) -> None:
        summary = self.proposed.summary
        if not summary.personas:
            raise ApprovalRefusedError(
                "Approval refused: no persona has a score in this run, so there is none to approve."
            )
        if summary.unscored > _MAX_UNSCORED * summary.trials:
            raise ApprovalRefusedError(
                f"Approval refused: {summary.unscored} of {summary.trials} trials have no score (more than "
                "5 %). Mend the scorer, or find out what was answered, and run again."
            )
        if self.finding is not None and self.finding.reason in _UNFIT:
            raise ApprovalRefusedError(
                f"Approval refused: this run is {self.finding.verdict} ({self.finding.reason}) and no "
                f"yardstick: {clause(self.finding)}."
            )
