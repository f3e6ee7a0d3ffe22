"""A few trials of each arm as they stand on record: what was asked, what a scrubber made of it, what was replied."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_fairness.model import Status

EACH = 2
_CONTEXT = ("role", "criteria", "qualifications", "signal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request of a trial; empty where there was no system prompt, or no response came."""

    system: str
    prompt: str
    response: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One trial: ``scrubbed`` is the text that the choice was made from, empty where nothing was scrubbed."""

    names: str
    context: str
    status: str
    said: str
    requests: tuple[Asked, ...]
    scrubbed: str
    simulated: bool


def examples_of(records: Path, arms: Sequence[str]) -> dict[str, list[Example]]:
    """The first answered choice of each arm in its first *EACH* contexts, and the first refused one.

    *records* (``selection.jsonl``) stand in the order of the design, so they are the same candidates in every arm.
    Read leniently, for a page must come out of any file; none where there is no such file.
    """
    found: dict[str, list[Example]] = {arm: [] for arm in arms}
    seen: set[tuple[str, str]] = set()
    for record in _records(records):
        arm, status = _text(record.get("arm")), _text(record.get("status"))
        if arm not in found or status not in (Status.ANSWERED, Status.REFUSED):
            continue
        context = ", ".join(_text(record[key]) for key in _CONTEXT if record.get(key))
        kind = (arm, context if status == Status.ANSWERED else status)
        answered = sum(one.status == Status.ANSWERED for one in found[arm])
        if kind not in seen and (status == Status.REFUSED or answered < EACH):
            seen.add(kind)
            found[arm].append(_example(record, context, status))
    return {arm: sorted(some, key=lambda one: one.status != Status.ANSWERED) for arm, some in found.items() if some}


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def _example(record: Mapping[str, Any], context: str, status: str) -> Example:
    choice, chosen = _text(record.get("choice")), _text(record.get("chosen"))
    requests = record.get("requests")
    return Example(
        names=" / ".join(_text(record.get(key)) for key in ("first_name", "second_name") if record.get(key)),
        context=context,
        status=status,
        said=f"{choice}: {chosen}" if choice and chosen and choice != chosen else choice,
        requests=tuple(
            Asked(**{key: _text(one.get(key)) for key in ("system", "prompt", "response")})
            for one in (requests if isinstance(requests, list) else [])
            if isinstance(one, dict)
        ),
        scrubbed=_text(record.get("scrubbed_text")),
        simulated=record.get("simulated") is True,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
