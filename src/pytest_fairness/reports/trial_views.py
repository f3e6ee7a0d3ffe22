"""The trials in a run's logs, as reports need them: read leniently, for a report must come out of any log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_fairness.model import Status
from pytest_fairness.runs.reader import trial_lines

#: Finish reasons that say no more than that the model had come to its end.
_WHOLE = ("", "stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete")
_SIDE = re.compile(r"group_\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """One finished trial: its conversation, what became of it and the groups that it stands for.

    A choice stands for none of the groups by itself: ``listed`` has, for each protected class, those that it shows.
    ``finish_reason`` is the provider's own word, ``model`` who said that it answered, ``flags`` what was odd.
    ``steps`` are the requests before the last of a pipeline, each with its reply; ``retried`` says that some request
    was made more than once.
    """

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
    listed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    steps: tuple[tuple[str, str], ...] = ()
    retried: bool = False
    finish_reason: str = ""
    model: str = ""
    flags: frozenset[str] = frozenset()

    @property
    def ending(self) -> str:
        """How it ended, if not with a whole answer: its status, and the provider's own word where that says more."""
        reason = "provider_error" if "provider_error" in self.flags else self.finish_reason
        detail = "" if reason.lower() in _WHOLE else f" ({reason})"
        return "" if self.status == Status.ANSWERED and not detail else f"{self.status}{detail}"

    def stands_for(self, protected_class: str) -> frozenset[str]:
        """The groups of *protected_class* that the trial is evidence of: its own, or all that it lists."""
        own = self.groups.get(protected_class)
        return self.listed.get(protected_class, frozenset()) if own is None else frozenset({own})


def each_trial(run_dir: Path) -> Iterator[TrialView]:
    """Every trial of the run. Records of other types, torn or foreign ones are passed over.

    Judging and verifying a run is the store's business; a report shows what can be shown.
    """
    for line in trial_lines(run_dir):
        if (view := _view(line)) is not None:
            yield view


def _view(line: bytes | str) -> TrialView | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("type", "trial") != "trial" or "status" not in record:
        return None
    cell = _mapping(record.get("cell"))
    endpoint = record.get("endpoint")
    cost = record.get("cost")
    turns = [_text(turn) for turn in _sequence(cell.get("turns"))]
    replies = tuple(reply for reply in _sequence(record.get("replies")) if isinstance(reply, str))
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
        replies=replies,
        endpoint=_text(endpoint.get("name") if isinstance(endpoint, dict) else endpoint),
        cost=float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None,
        source=_text(record.get("source")),
        arm=_text(cell.get("arm")),
        listed=_listed(cell),
        steps=tuple(zip(turns[:-1], replies, strict=False)) if "pipeline" in _mapping(record.get("script")) else (),
        retried=_retried(record, len(turns), len(replies)),
        finish_reason=_text(record.get("finish_reason")),
        model=_text(record.get("model")),
        flags=frozenset(map(_text, _sequence(record.get("flags")))),
    )


def _listed(cell: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """The groups of the candidates that a choice lists: by the class that makes them up, and by each of theirs."""
    found: dict[str, set[str]] = {}
    sides = {_text(value) for key, value in _mapping(cell.get("attributes")).items() if _SIDE.fullmatch(key)}
    if not sides:
        return {}
    for conveyed in _mapping(cell.get("signals")).values():
        for key, value in _mapping(conveyed).items():
            found.setdefault(key, set()).add(_text(value))
    return {key: frozenset(values) for key, values in found.items()} | {"group": frozenset(sides)}


def _retried(record: Mapping[str, Any], turns: int, replies: int) -> bool:
    """Whether there were more attempts than requests; the one that was not answered is a request, too."""
    attempts = record.get("attempts")
    requests = min(max(turns, 1), replies + (record["status"] not in (Status.ANSWERED, Status.REFUSED)))
    return isinstance(attempts, int) and attempts > max(requests, 1)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
