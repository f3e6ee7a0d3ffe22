"""Remedies for findings that turned a test red: ``mitigations.yaml`` in the project's folder.

An entry says which finding it answers, by the id that every report gives it or by the test that
made it, what is done,
who does it, and since when::

    - finding: f-3a9c41d07e
      action: Reword the second template, which asked for "warmth"
      owner: Jane Smith
      date: 2026-02-01
      due: 2026-04-01
    - test: tests/test_letters.py::test_tone
      outcome: sentiment
      class: race_ethnicity
      action: Move to the next version of the model
      owner: Sam Lee
      date: 2026-02-03
      done: 2026-03-20

A mitigation turns no verdict. Whether it has helped is for the next run to say.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pytest_fairness.documents import Misplaced, Text, open_document
from pytest_fairness.model import ALARMS, JSON, Finding, Verdict

NAME = "mitigations.yaml"
#: What became of a mitigation: its finding passes; alarms still, though the action is done; or is
#: still to be acted on, in time or late; or nothing in the run is what it is about.
FIXED, RETESTED, OPEN, OVERDUE, NOT_TESTED = "fixed", "re-tested", "open", "overdue", "not tested"
STATUSES = (OVERDUE, RETESTED, OPEN, NOT_TESTED, FIXED)


class Mitigation(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """An answer to a finding. ``date`` is when it was entered, ``due`` until when it is to be done,
    ``done`` when it was.
    """

    finding: Text | None = None
    test: Text | None = None
    outcome: Text | None = None
    protected_class: Text | None = msgspec.field(name="class", default=None)
    action: Text
    owner: Text
    date: datetime.date
    due: datetime.date | None = None
    done: datetime.date | None = None

    def __post_init__(self) -> None:
        if (self.finding is None) == (self.test is None):
            raise Misplaced(
                "give one of `finding` (its id in the report) and `test` (a node id): what this "
                "answers"
            )
        if self.finding is not None and (self.outcome or self.protected_class):
            raise Misplaced(
                "`outcome` and `class` go with `test`: `finding` names one finding already"
            )
        for name in ("due", "done"):
            if (day := getattr(self, name)) is not None and day < self.date:
                raise Misplaced(f"{name} is {day}, before the entry itself ({self.date})", name)

    def covers(self, finding: Finding, nodeid: str, number: str) -> bool:
        """Return whether this is about *finding* of the test *nodeid*, whose id is *number*."""
        if self.finding is not None:
            return self.finding == number
        about = self.test in (nodeid, nodeid.split("[", maxsplit=1)[0], finding.test_id)
        same_class = self.protected_class in (None, finding.protected_class)
        return about and same_class and self.outcome in (None, finding.outcome)

    def is_done(self, day: datetime.date) -> bool:
        """Return whether the action was done by *day*, so that a run of that day is a re-test."""
        return self.done is not None and self.done <= day

    def status(self, verdict: Verdict | None, day: datetime.date) -> str:
        """Return what became of it, by the worst *verdict* that a run of *day* has on what it is
        about, if it has any.
        """
        if verdict is None:
            return NOT_TESTED
        if verdict is Verdict.PASS:
            return FIXED
        if self.is_done(day):
            return RETESTED
        if self.due is not None and self.due < day:
            return OVERDUE
        return OPEN


def read_file(path: Path) -> tuple[Mitigation, ...]:
    """The entries of *path*; none if there is no such file, or nothing in it. Raises UsageError,
    with the line, for what does not fit.
    """
    if not path.exists():
        return ()
    document = open_document(path)
    if document.data is None:
        return ()
    return document.convert(tuple[Mitigation, ...])


def followed_up(
    entries: Iterable[Mitigation],
    findings: Sequence[tuple[Finding, str, str]],
    day: datetime.date,
) -> list[dict[str, JSON]]:
    """Each of *entries* with what a run of *day* says of it: its ``status``, the worst ``verdict``
    and the ids of the ``findings`` that it covers, whether these are ``simulated``, and the day on
    which they were ``retested`` after the action was done, which is *day* or None. *findings*: each
    with its test and its id.
    """
    return [_followed_up(entry, findings, day) for entry in entries]


def _followed_up(
    entry: Mitigation, findings: Sequence[tuple[Finding, str, str]], day: datetime.date
) -> dict[str, JSON]:
    numbers = []
    verdicts = []
    simulated = False
    for finding, nodeid, number in findings:
        if entry.covers(finding, nodeid, number):
            numbers.append(number)
            verdicts.append(finding.verdict)
            simulated = simulated or finding.simulated
    worst = None
    retested = None
    if verdicts:
        worst = Verdict.worst(verdicts)
        if entry.is_done(day):
            retested = day.isoformat()
    fields: dict[str, Any] = msgspec.to_builtins(entry)
    return {
        **fields,
        "status": entry.status(worst, day),
        "verdict": worst and worst.value,
        "findings": numbers,
        "retested": retested,
        "simulated": simulated,
    }


def unanswered(
    findings: Sequence[tuple[Finding, str, str]], mitigations: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The ids of those *findings* that failed, or were flagged without a justification, and that no
    entry is about.
    """
    answered = answered_by(mitigations)
    without = []
    for finding, _, number in findings:
        alarm = finding.verdict in ALARMS and finding.justification is None
        if alarm and number not in answered:
            without.append(number)
    return without


def answered_by(mitigations: Sequence[Mapping[str, Any]]) -> set[str]:
    """The ids of the findings that *mitigations* are about."""
    answered: set[str] = set()
    for mitigation in mitigations:
        answered.update(mitigation.get("findings", ()))
    return answered


def counted(mitigations: Sequence[Mapping[str, Any]]) -> str:
    """``1 overdue, 2 open``: what became of *mitigations*, the worst first."""
    statuses = Counter(str(mitigation.get("status")) for mitigation in mitigations)
    return ", ".join(f"{statuses[status]} {status}" for status in STATUSES if statuses[status])
