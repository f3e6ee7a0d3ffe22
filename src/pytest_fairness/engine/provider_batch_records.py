"""What the log says of batches at a provider: each step before and after it is taken, under a tag of our own."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_fairness.endpoints.protocol import Wire
from pytest_fairness.runs.records import utc_now, wire_record

#: The steps, in their order; after one of the last three nothing more is expected of the batch.
INTENT, UPLOADED, SUBMITTED, STATUS, ENDED, STRAY = "intent", "uploaded", "submitted", "status", "ended", "stray"
COLLECTED, VOID, LOST = "collected", "void", "lost"


@dataclass(slots=True, kw_only=True)
class Submission:
    """One batch as far as the log knows it.

    ``tag`` is ours and stands in every request's identifier; ``batch`` is the provider's, None until it has answered;
    ``file`` the provider's name of the input, where it wants one. ``since`` and ``submitted`` are Unix time. ``over``:
    nothing more is expected of it.
    """

    tag: str
    endpoint: str
    requests: int
    since: float
    sha256: str
    file: str | None = None
    batch: str | None = None
    submitted: float | None = None
    status: str = ""
    cancel: str = ""
    over: bool = False

    def apply(self, record: Mapping[str, Any]) -> None:
        """Take in a further record of the same tag."""
        event = record["event"]
        if event == UPLOADED:
            self.file = record["file"]
        elif event == SUBMITTED:
            self.batch, self.submitted, self.cancel = record["batch"], record["unix"], record["cancel"]
            self.status = record["status"]
        elif event in (STATUS, ENDED):
            self.status = record["status"]
        elif event in (COLLECTED, VOID, LOST):
            self.over = True


def batch_record(tag: str, event: str, *, wire: Wire | None = None, **facts: Any) -> dict[str, Any]:
    """The record of one step of the batch *tag*."""
    return {
        "type": "batch",
        "tag": tag,
        "event": event,
        **facts,
        **({} if wire is None else {"wire": wire_record(wire)}),
        "time": utc_now(),
        "unix": time.time(),
        "monotonic": time.monotonic(),
    }


def submissions(records: Iterable[Mapping[str, Any]]) -> dict[str, Submission]:
    """The batches that *records* tell of, by their tags."""
    found: dict[str, Submission] = {}
    # The records of one batch may stand in the logs of two writers: of one that made it and one that took it over.
    for record in sorted(records, key=lambda one: bool(one["event"] != INTENT)):
        if record["event"] == INTENT:
            found[record["tag"]] = Submission(
                tag=record["tag"],
                endpoint=record["endpoint"],
                requests=record["requests"],
                since=record["unix"],
                sha256=record["sha256"],
            )
        elif record["tag"] in found:
            found[record["tag"]].apply(record)
    return found


def still_open(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence for each batch that goes on at its provider though nobody waits for it any more."""
    return [
        f"batch {_printable(one.batch)} of {one.endpoint!r} ({one.requests} requests) goes on at the provider and will "
        f"be billed; --fairness-resume collects it; to cancel it: {_printable(one.cancel)}"
        for one in submissions(records).values()
        if one.batch is not None and not one.over
    ]


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)[:300]
