"""The trials in a run's logs, as reports need them: read leniently, for a report must come out of any log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATTERN = "trials*.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """One finished trial: its conversation, what became of it and the groups that it stands for."""

    key: str
    status: str
    groups: Mapping[str, str]
    name: str
    template: str
    repetition: int
    messages: tuple[tuple[str, str], ...] = ()
    replies: tuple[str, ...] = ()
    endpoint: str = ""
    cost: float | None = None
    source: str = ""
    arm: str = ""


def each_trial(run_dir: Path) -> Iterator[TrialView]:
    """Every trial of the run's logs. Lines of other types, torn or foreign ones are passed over.

    Judging and verifying a log is the store's business; a report shows what can be shown.
    """
    for path in sorted(run_dir.glob(PATTERN)):
        with path.open("rb") as file:
            for line in file:
                # Most lines are requests and attempts: not worth parsing.
                if b'"trial"' in line and (view := _view(line)) is not None:
                    yield view


def _view(line: bytes) -> TrialView | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("type", "trial") != "trial" or "status" not in record:
        return None
    cell = _mapping(record.get("cell"))
    endpoint = record.get("endpoint")
    cost = record.get("cost")
    return TrialView(
        key=_text(record.get("key")),
        status=_text(record.get("status")),
        groups={_text(key): _text(value) for key, value in _mapping(cell.get("groups", record.get("groups"))).items()},
        name=_text(cell.get("name", record.get("name")) or cell.get("persona")),
        template=_text(cell.get("template", record.get("template"))),
        repetition=record["repetition"] if isinstance(record.get("repetition"), int) else 0,
        messages=tuple(
            (_text(message.get("role")), _text(message.get("content")))
            for message in _sequence(record.get("messages"))
            if isinstance(message, dict)
        ),
        replies=tuple(reply for reply in _sequence(record.get("replies")) if isinstance(reply, str)),
        endpoint=_text(endpoint.get("name") if isinstance(endpoint, dict) else endpoint),
        cost=float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None,
        source=_text(record.get("source")),
        arm=_text(cell.get("arm")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
