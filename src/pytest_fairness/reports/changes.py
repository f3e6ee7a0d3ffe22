"""Changes from one run to another, finding by finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from pytest_fairness.analysis.looks import EARLY, looks_of
from pytest_fairness.model import ALARMS, Finding, PairResult, Verdict
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.words import listed


class Change(StrEnum):
    """Kinds of change of a finding since another run, the worst first. An alarm is a FLAG or a
    FAIL.
    """

    NEW = "new"  # an alarm that the earlier run did not raise
    WORSE = (
        "worse"  # an alarm in both: more severe, or larger beyond chance, or justified no longer
    )
    UNDECIDED = "undecided"  # the earlier run decided, this one is INCONCLUSIVE
    GONE = "gone"  # the earlier run made it, this one does not
    BETTER = "better"  # less severe, or decided at last, but no alarm that has ended
    FIXED = "fixed"  # an alarm that is a PASS now
    ADDED = "added"  # made for the first time, and no alarm
    SAME = "unchanged"


REGRESSIONS = (Change.NEW, Change.WORSE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingChange:
    """One finding in two runs: ``before`` and ``after`` are None where that run did not make it.

    ``id`` and ``nodeid`` are those of :class:`RunResults`; ``at`` is its place in the later run;
    ``why`` says what made an alarm worse.
    """

    change: Change
    id: str
    nodeid: str
    before: Finding | None = None
    after: Finding | None = None
    at: int | None = None
    why: str = ""

    @property
    def _made(self) -> list[Finding]:
        """The finding as each of the two runs made it, the earlier first."""
        return [finding for finding in (self.before, self.after) if finding is not None]

    @property
    def finding(self) -> Finding:
        """The finding as it stands now, or as it stood last."""
        return self._made[-1]

    @property
    def verdicts(self) -> str:
        """``FLAG → FAIL``, or the one verdict that there is."""
        return " → ".join(dict.fromkeys(finding.verdict for finding in self._made))


def changes_between(before: RunResults, after: RunResults) -> tuple[FindingChange, ...]:
    """Every finding of the two runs, matched by their ids, the worst change first."""
    earlier = dict(zip(before.ids, before.findings, strict=True))
    changes = []
    for at, id_ in enumerate(after.ids):
        now = after.findings[at]
        old = earlier.pop(id_, None)
        change, why = _change(old, now)
        nodeid = after.test_of(at)
        changes.append(
            FindingChange(
                change=change, id=id_, nodeid=nodeid, before=old, after=now, at=at, why=why
            )
        )
    for id_, old in earlier.items():
        nodeid = before.test_of(before.places[id_])
        changes.append(FindingChange(change=Change.GONE, id=id_, nodeid=nodeid, before=old))
    return tuple(sorted(changes, key=_urgency))


def _urgency(change: FindingChange) -> tuple[int, int]:
    return list(Change).index(change.change), -change.finding.verdict.severity


def counted(changes: Iterable[FindingChange]) -> str:
    """``1 new, 2 fixed, 5 unchanged``; ``nothing to compare`` where there is no finding."""
    counts = Counter(change.change for change in changes)
    shown = [f"{counts[change]} {change}" for change in Change if counts[change]]
    return listed(shown, none="nothing to compare")


def _change(before: Finding | None, after: Finding) -> tuple[Change, str]:
    """Return what became of a finding, and what made an alarm worse."""
    alarm = after.verdict in ALARMS
    if before is None and alarm:
        return Change.NEW, ""
    if before is None:
        return Change.ADDED, ""
    if before.verdict is not after.verdict:
        return _OF_VERDICTS[before.verdict][after.verdict], ""
    if alarm and (why := _worse_alarm(before, after)):
        return Change.WORSE, why
    return Change.SAME, ""


#: What another verdict than before comes to: of a finding that was no alarm and is one, of one that
#: was and is none, and by both verdicts.
_RAISED = {Verdict.FLAG: Change.NEW, Verdict.FAIL: Change.NEW}
_ENDED = {Verdict.PASS: Change.FIXED, Verdict.INCONCLUSIVE: Change.UNDECIDED}
_OF_VERDICTS = {
    Verdict.PASS: {**_RAISED, Verdict.INCONCLUSIVE: Change.UNDECIDED},
    Verdict.INCONCLUSIVE: {**_RAISED, Verdict.PASS: Change.BETTER},
    Verdict.FLAG: {**_ENDED, Verdict.FAIL: Change.WORSE},
    Verdict.FAIL: {**_ENDED, Verdict.FLAG: Change.BETTER},
}


def _worse_alarm(before: Finding, after: Finding) -> str:
    """Return why an alarm is worse than before at the same verdict; empty where it is not."""
    if before.justification and not after.justification:
        return "justified no longer"
    larger = []
    for pair in after.pairs:
        if any(_has_grown(old, pair) for old in before.pairs):
            larger.append(pair)
    if not larger:
        return ""
    widest = max(larger, key=lambda pair: abs(pair.effect))
    why = f"larger between {widest.group_1} and {widest.group_2}"
    looks = looks_of(after)
    if looks is not None and looks["stopped_early"]:
        return f"{why} ({EARLY})"
    return why


def _has_grown(before: PairResult, after: PairResult) -> bool:
    """Return whether the effect on a pair that is no PASS has moved away from zero, so far that the
    two intervals have no value in common.
    """
    if after.verdict is Verdict.PASS or before.metric != after.metric:
        return False
    side = -1
    if after.effect > 0:
        side = 1
    sides = {(after.group_1, after.group_2): side, (after.group_2, after.group_1): -side}
    then = _ends(before, sides.get((before.group_1, before.group_2), 0))
    now = _ends(after, side)
    if not then or not now:
        return False
    return min(now) > max(then)


def _ends(pair: PairResult, side: int) -> list[float]:
    """Return the ends of the interval of a pair's effect, times *side*; none where it is open, or
    *side* is 0.
    """
    ends = []
    for end in (pair.effect_low, pair.effect_high):
        if not side or end is None or not isfinite(end):
            return []
        ends.append(side * end)
    return ends
