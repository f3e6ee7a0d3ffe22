"""Checklists: duties to do, declare or record something, and the verdict on how they were met."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from pytest_fairness.analysis.policy import Decision
from pytest_fairness.model import Reason, Verdict

__all__ = ["RecordState", "Step", "judge_checklist", "judge_record"]


class RecordState(Enum):
    """The state of one step of a checklist, as the records show it."""

    # As it has to be.
    JUSTIFIED = auto()  # a FLAG, by a justification in force
    MENDED = auto()  # a mitigation, whose finding passes since
    OPEN = auto()  # a mitigation that is still to be done, in time
    APPROVED = auto()  # by somebody else than the author of the change
    IN_FORCE = auto()  # an excuse that ends, and has not
    AS_DECLARED = auto()  # who answers is whom the project names, or who answered before
    ARRIVED = auto()  # every parameter, in every request
    # To be looked at by a person.
    ENDLESS = auto()  # an excuse that lasts longer than anybody can foresee
    CHANGED = auto()  # what answers is another than before, and nobody has declared it
    # Not as it has to be.
    UNJUSTIFIED = auto()  # a FLAG that nothing in force covers
    UNANSWERED = auto()  # a FAIL that no mitigation is about
    OVERDUE = auto()  # what was to be done, or to be tested again, by a day that is past
    NOT_MENDED = auto()  # done, tested again, and no PASS
    EXPIRED = auto()  # an excuse after its end
    OWN_CHANGE = auto()  # approved by its author
    UNREADABLE = auto()  # a baseline that was edited by hand or is damaged
    UNDECLARED = auto()  # another answers than the project names
    REFUSED = auto()  # a parameter, by the provider
    DROPPED = auto()  # a parameter, on the way
    # Not known.
    NOT_TESTED = auto()  # since it was done, or since it raised an alarm
    UNPROVEN = auto()  # an approval that no commit bears out
    UNRECORDED = auto()  # nothing that was kept shows it
    UNCOMPARED = auto()  # nothing earlier to compare it with


_WORTH = {
    RecordState.JUSTIFIED: Decision(Verdict.PASS),
    RecordState.MENDED: Decision(Verdict.PASS),
    RecordState.OPEN: Decision(Verdict.PASS),
    RecordState.APPROVED: Decision(Verdict.PASS),
    RecordState.IN_FORCE: Decision(Verdict.PASS),
    RecordState.AS_DECLARED: Decision(Verdict.PASS),
    RecordState.ARRIVED: Decision(Verdict.PASS),
    RecordState.ENDLESS: Decision(Verdict.FLAG),
    RecordState.CHANGED: Decision(Verdict.FLAG),
    RecordState.UNJUSTIFIED: Decision(Verdict.FAIL),
    RecordState.UNANSWERED: Decision(Verdict.FAIL),
    RecordState.OVERDUE: Decision(Verdict.FAIL),
    RecordState.NOT_MENDED: Decision(Verdict.FAIL),
    RecordState.EXPIRED: Decision(Verdict.FAIL),
    RecordState.OWN_CHANGE: Decision(Verdict.FAIL),
    RecordState.UNREADABLE: Decision(Verdict.FAIL),
    RecordState.UNDECLARED: Decision(Verdict.FAIL),
    RecordState.REFUSED: Decision(Verdict.FAIL),
    RecordState.DROPPED: Decision(Verdict.FAIL),
    RecordState.NOT_TESTED: Decision(Verdict.INCONCLUSIVE, Reason.INCOMPLETE),
    RecordState.UNPROVEN: Decision(Verdict.INCONCLUSIVE, Reason.UNRECORDED),
    RecordState.UNRECORDED: Decision(Verdict.INCONCLUSIVE, Reason.UNRECORDED),
    RecordState.UNCOMPARED: Decision(Verdict.INCONCLUSIVE, Reason.PRECISION),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing of a checklist: *what* it is, what became of it in words, and its *state*."""

    what: str
    remark: str
    state: RecordState

    @property
    def verdict(self) -> Verdict:
        return judge_record(self.state).verdict

    @property
    def words(self) -> str:
        """The name of the step, with what became of it where that is said."""
        if self.remark:
            return f"{self.what}: {self.remark}"
        return self.what


def judge_record(state: RecordState) -> Decision:
    """Return what a record in *state* is worth."""
    return _WORTH[state]


def judge_checklist(steps: Iterable[Step]) -> Decision:
    """Return the worst of *steps*, each of which had to be done; PASS where there is none."""
    decisions = [judge_record(step.state) for step in steps]
    return max(
        decisions,
        key=lambda decision: decision.verdict.severity,
        default=Decision(Verdict.PASS),
    )
