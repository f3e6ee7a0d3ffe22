"""Whether a system can be sent what a test has to say: system prompts, and conversations of several turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_fairness.errors import UsageError

if TYPE_CHECKING:
    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.pytest_layer.plans import Entry


def lacks_system_prompt(endpoint: Endpoint, entries: Sequence[Entry]) -> Endpoint | None:
    """The first system that *entries*, asked of *endpoint*, would send a system prompt that it does not take."""
    for entry in entries:
        for asked, has_one in _prompted(endpoint, entry):
            if has_one and not asked.supports_system_prompt:
                return asked
    return None


def _prompted(endpoint: Endpoint, entry: Entry) -> Iterator[tuple[Endpoint, bool]]:
    """Each system that a trial of *entry* asks, and whether it is sent a system prompt."""
    from pytest_fairness.engine.scripts import Pipeline

    cell, script = entry.cell, entry.script
    if not isinstance(script, Pipeline):
        yield endpoint, cell.system is not None or cell.tier == 1
        return
    for number, system in enumerate(script.systems):
        own = script.endpoints[number] if number < len(script.endpoints) else None
        yield endpoint if own is None else own, system is not None


def named_by_steps(entries: Sequence[Entry]) -> list[Endpoint]:
    """The systems that steps of *entries* ask beside the test's, each once."""
    found = {
        id(system): system
        for entry in entries
        if entry.script is not None
        for system in entry.script.endpoints
        if system is not None
    }
    return list(found.values())


def refuse_what_cannot_be_sent(endpoint: Endpoint, entries: Sequence[Entry]) -> None:
    """Raise UsageError where *entries* hold conversations and *endpoint* can only be sent their last turn: before
    anything is paid for.
    """
    from pytest_fairness.endpoints.protocol import takes_conversations
    from pytest_fairness.engine.scripts import Escalation, Pipeline

    if takes_conversations(endpoint):
        return
    for entry in entries:
        cell, script = entry.cell, entry.script
        if isinstance(script, Pipeline):
            continue
        turns = max(len(rung.turns) for rung in script.rungs) if isinstance(script, Escalation) else len(cell.turns)
        if turns > 1:
            what = "strategies of several turns" if script is not None else f"a conversation of {turns} turns"
            raise UsageError(
                f"endpoint {endpoint.name!r} is sent one text a request, and cell {cell.id!r} asks {what}: its earlier "
                'turns would be lost. In an entry of type http, put "{messages}" where the conversation belongs; give '
                "a function a parameter called messages; or ask single prompts"
            )
