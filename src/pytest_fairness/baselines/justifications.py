"""Documented reasons for a FLAG: from the test's marker or from ``justifications.yaml``.

A justification has a ``reason``, an ``approver``, a ``date`` and an ``expiry`` (ISO dates), three
years later at most. In the file each entry also names its ``test`` (a node id) and, optionally, the
``outcome`` it is about::

    - test: tests/test_letters.py::test_tone
      outcome: sentiment
      reason: Difference traced to one template, rewritten in the next release
      approver: Jane Smith
      date: 2026-01-31
      expiry: 2026-07-31
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from pytest_fairness.documents import Document, Misplaced, Text, open_document
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Finding, Verdict

NAME = "justifications.yaml"
#: How long one may hold.
LONGEST = datetime.timedelta(days=3 * 365 + 1)


def latest_today() -> datetime.date:
    """Today where the day begins first."""
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=14)).date()


class Justification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason for which a FLAG is accepted, by whom, since when, and until when.

    From today at the latest, for three years at most: raises Misplaced for other dates.
    """

    reason: Text
    approver: Text
    date: datetime.date
    expiry: datetime.date
    test: str | None = None
    outcome: str | None = None

    def __post_init__(self) -> None:
        if self.date > latest_today():
            why = "which is in the future: give the day on which it was approved"
            raise Misplaced(f"date is {self.date}, {why}", "date")
        if self.expiry < self.date:
            raise Misplaced(f"expiry is {self.expiry}, before its own date ({self.date})", "expiry")
        if self.expiry - self.date > LONGEST:
            why = f"more than three years after its date ({self.date})"
            mend = "so that nobody would look again: give an earlier day"
            raise Misplaced(f"expiry is {self.expiry}, {why}, {mend}", "expiry")

    def is_about(self, finding: Finding, nodeid: str) -> bool:
        """Return whether this is about *finding* of the test *nodeid*."""
        test = self.test in (None, nodeid, nodeid.split("[", maxsplit=1)[0], finding.test_id)
        return test and self.outcome in (None, finding.outcome)

    def covers(self, finding: Finding, nodeid: str, today: datetime.date) -> bool:
        """Return whether this is about *finding* of the test *nodeid* and has not expired."""
        return self.is_about(finding, nodeid) and today <= self.expiry

    def to_dict(self) -> dict[str, JSON]:
        fields: dict[str, JSON] = msgspec.to_builtins(self)
        return {key: value for key, value in fields.items() if value is not None}


def parse(entry: object, source: str) -> Justification:
    """Read one entry of a marker. Raises UsageError naming *source* and the key that is missing,
    unknown or wrong.
    """
    given = entry
    if isinstance(entry, Mapping):
        given = {key: str(value) for key, value in entry.items()}
    justification = Document(source, given).convert(Justification)  # type: ignore[arg-type]
    if justification.test is not None:
        raise UsageError(f"{source}: unknown key 'test': the marker stands at its test")
    return justification


def read_file(path: Path) -> tuple[Justification, ...]:
    """The entries of *path*; none if there is no such file, or nothing in it. Raises UsageError for
    anything unreadable.
    """
    if not path.exists():
        return ()
    document = open_document(path)
    if document.data is None:
        return ()
    entries = document.convert(tuple[Justification, ...])
    for number, entry in enumerate(entries):
        if not (entry.test or "").strip():
            raise document.wrong(
                "missing key `test`: the node id of the test that it is about", number
            )
    return entries


#: How the note on a FLAG begins whose justification has expired.
EXPIRED = "its justification expired"


def find(
    justifications: Iterable[Justification], finding: Finding, nodeid: str
) -> Mapping[str, JSON] | None:
    """The first justification that covers *finding* today, or None."""
    today = datetime.datetime.now(datetime.UTC).date()
    return next((j.to_dict() for j in justifications if j.covers(finding, nodeid, today)), None)


def expired_notes(
    justifications: Iterable[Justification], finding: Finding, nodeid: str
) -> list[str]:
    """Return what is to be noted on a FLAG that nothing covers, and that something did cover."""
    if finding.verdict is not Verdict.FLAG or finding.justification is not None:
        return []
    last = max(
        (j for j in justifications if j.is_about(finding, nodeid)),
        key=lambda j: j.expiry,
        default=None,
    )
    if last is None:
        return []
    return [f"{EXPIRED} on {last.expiry}: {last.reason} ({last.approver}, {last.date})"]
