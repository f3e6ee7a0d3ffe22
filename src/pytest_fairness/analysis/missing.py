"""Why some trials have no outcome: status and first reason of each group, in words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.analysis.reading import Reading, unscored_rows
from pytest_fairness.model import Status
from pytest_fairness.statistics.frames import Bools, Design

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 100
_UNREAD = "unread"
_ENDED = {
    "": "without a value",
    _UNREAD: "answered and not read",
    Status.ERROR.value: "ended in an error",
    Status.EMPTY.value: "answered with nothing",
    Status.MALFORMED.value: "malformed",
    Status.UNKNOWN.value: "never answered",
    Status.NOT_RUN.value: "not run",
}


def first_reasons(frame: pd.DataFrame, design: Design, reading: Reading, used: Bools) -> dict[str, str]:
    """See :func:`reasons_by_group`, for the rows without an outcome."""
    return reasons_by_group(frame, design, unscored_rows(design, reading, used))


def reasons_by_group(frame: pd.DataFrame, design: Design, missing: Bools) -> dict[str, str]:
    """For each group with *missing* rows: how many by status, and the first reason given.

    An answered trial without an outcome is *unread*: the scorer made nothing of its reply.
    """
    if not bool(missing.any()):
        return {}
    statuses = frame["status"].tolist() if "status" in frame.columns else None
    errors = frame["error"].tolist() if "error" in frame.columns else None
    found: dict[str, str] = {}
    for code, label in enumerate(design.group.labels):
        rows = np.flatnonzero(missing & (design.group.codes == code)).tolist()
        if not rows:
            continue
        words = Counter(_status(statuses[row]) if statuses is not None else "" for row in rows)
        text = ", ".join(f"{count} {_ENDED.get(word, word)}" for word, count in words.most_common())
        why = (
            next((str(errors[row]) for row in rows if isinstance(errors[row], str) and errors[row]), "")
            if errors
            else ""
        )
        found[label] = text + (f", first: {_short(why)}" if why else "")
    return found


def _status(value: object) -> str:
    return _UNREAD if value in (Status.ANSWERED, Status.REFUSED) else str(value)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
