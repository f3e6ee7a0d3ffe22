"""Documented reasons for a FLAG: from the test's marker or from ``justifications.yaml``.

A justification has a ``reason``, an ``approver``, a ``date`` and an ``expiry`` (ISO dates). In the file each entry
also names its ``test`` (a node id) and, optionally, the ``outcome`` it is about::

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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_fairness.documents import load
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Finding

_KEYS = ("reason", "approver", "date", "expiry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Justification:
    """Why a FLAG is accepted, by whom, since when, and until when."""

    reason: str
    approver: str
    date: str
    expiry: str
    test: str | None = None
    outcome: str | None = None

    def covers(self, finding: Finding, nodeid: str, today: datetime.date) -> bool:
        """Whether this is about *finding* of the test *nodeid* and has not expired."""
        about = self.test in (None, nodeid, nodeid.split("[", maxsplit=1)[0], finding.test_id)
        return about and self.outcome in (None, finding.outcome) and today.isoformat() <= self.expiry

    def to_dict(self) -> dict[str, JSON]:
        return {key: value for key, value in asdict(self).items() if value is not None}


def parse(entry: object, source: str, *, of_file: bool = False) -> Justification:
    """Read one entry. Raises UsageError naming *source* and the key that is missing, unknown or not a date."""
    if not isinstance(entry, Mapping):
        raise UsageError(f"{source}: a justification is a mapping with the keys {', '.join(_KEYS)}")
    allowed = {*_KEYS, "outcome", *(["test"] if of_file else [])}
    needed = {*_KEYS, *(["test"] if of_file else [])}
    for key in entry:
        if key not in allowed:
            raise UsageError(f"{source}: unknown key {key!r}; a justification has {', '.join(sorted(allowed))}")
    for key in sorted(needed):
        if not str(entry.get(key) or "").strip():
            raise UsageError(f"{source}: {key!r} is missing; a FLAG passes only with a documented justification")
    values: dict[str, Any] = {key: str(value) for key, value in entry.items()}
    for key in ("date", "expiry"):
        try:
            values[key] = datetime.date.fromisoformat(values[key]).isoformat()
        except ValueError:
            raise UsageError(f"{source}: {key}: {values[key]!r} is not a date like 2026-01-31") from None
    return Justification(**values)


def read_file(path: Path) -> tuple[Justification, ...]:
    """The entries of *path*; none if there is no such file. Raises UsageError for anything unreadable."""
    if not path.exists():
        return ()
    entries = load(path.read_text(encoding="utf-8"), str(path))
    if not isinstance(entries, list):
        raise UsageError(f"{path}: expected a list of justifications")
    return tuple(parse(entry, f"{path}, entry {index}", of_file=True) for index, entry in enumerate(entries, 1))


def find(justifications: Iterable[Justification], finding: Finding, nodeid: str) -> Mapping[str, JSON] | None:
    """The first justification that covers *finding* today, or None."""
    today = datetime.datetime.now(datetime.UTC).date()
    return next((j.to_dict() for j in justifications if j.covers(finding, nodeid, today)), None)
