"""Endpoints that do as they are told, and count what they are asked in a ledger file that outlives
them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Reply, Request
from pytest_fairness.model import Cell, Usage
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.testing import ScriptedEndpoint

Answer = Callable[[Request], Reply]


def polite(request: Request) -> Reply:
    """An ordinary answer that repeats the prompt."""
    return Reply(
        text=f"Answer to: {request.messages[-1].content}",
        usage=Usage(input_tokens=10, output_tokens=5),
        finish_reason="stop",
        model="scripted-1",
    )


class Scripted(ScriptedEndpoint):
    """A scripted endpoint that writes each request as a line in *ledger*."""

    type = "openai"

    def __init__(
        self, answer: Answer = polite, *, ledger: Path | None = None, **given: Any
    ) -> None:
        super().__init__(answer, **given)
        self._ledger = ledger

    async def ask(self, request: Request) -> Reply:
        if self._ledger is not None:
            descriptor = os.open(self._ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(descriptor, f"{request.key} {len(request.messages)}\n".encode())
            os.close(descriptor)
        return await super().ask(request)


def billed(ledger: Path) -> Counter[str]:
    """How often each request (key and number of messages) was billed."""
    return Counter(ledger.read_text().splitlines()) if ledger.exists() else Counter()


def failing(*evidences: Evidence | None, retry_after: float | None = None) -> Answer:
    """Fail each trial with these evidences in turn, and answer where there is None, or when they
    are used up."""
    seen: Counter[str] = Counter()

    def answer(request: Request) -> Reply:
        number = seen[request.key]
        seen[request.key] += 1
        evidence = evidences[number] if number < len(evidences) else None
        if evidence is not None:
            raise AttemptError(
                f"failed with {evidence}", evidence=evidence, retry_after=retry_after
            )
        return polite(request)

    return answer


def cell(number: int = 0, **more: Any) -> Cell:
    """A cell of four groups in rotation, with a text of its own."""
    defaults = {
        "id": f"t-{number}",
        "template": "t",
        "turns": (f"Write about candidate {number}.",),
        "groups": {"race_ethnicity": ("white", "black", "hispanic", "asian")[number % 4]},
        "name": f"name {number % 7}",
    }
    return Cell(**{**defaults, **more})


def plan(count: int, **more: Any) -> list[PlannedTrial]:
    """*count* planned trials of different cells."""
    return [PlannedTrial(cell=cell(number, **more)) for number in range(count)]


def groups_of(planned: Sequence[PlannedTrial]) -> list[str]:
    return [one.cell.groups["race_ethnicity"] for one in planned]
