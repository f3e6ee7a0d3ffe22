"""A plugin for sessions that ask many simulated endpoints: the trials are asked in memory, and no log and
no report is written. What is asked, read and judged is what any session asks, reads and judges.

    FINDINGS=findings.jsonl pytest -p asked_in_memory --pyargs pytest_fairness.suites.bias \
        --fairness-endpoint=all

Each finding is appended to the file FINDINGS as it is made, a line of JSON. A test asks all endpoints
before the next test does, so that a prompt is taken apart once; the process ends with its last
test. Names of endpoints are letters and a number: ``seed12``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pytest_fairness
from pytest_fairness.endpoints import simulated
from pytest_fairness.endpoints.protocol import Request
from pytest_fairness.engine.engine import Engine
from pytest_fairness.model import Elicitation, Finding, Message, Status, Trial
from pytest_fairness.pytest_layer.item_context import ItemContexts
from pytest_fairness.pytest_layer.plans import PlannedCell
from pytest_fairness.pytest_layer.trials import TrialSource
from pytest_fairness.running_test import TestContext
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.records import SIMULATED, conversation
from pytest_fairness.statistics import categories

#: Texts whose reading is kept: those of one test, which one endpoint after another is asked.
MOST_TEXTS = 50_000
_ENDPOINT = re.compile(r"(?<=[-\[])[a-z]+\d+(?=-)")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have each test ask all endpoints before the next test does."""
    places: dict[tuple[str, str], int] = {}
    for item in items:
        places.setdefault(test_of(item), len(places))
    items.sort(key=lambda item: places[test_of(item)])


def test_of(item: pytest.Item) -> tuple[str, str]:
    """Return the test of *item*, whatever endpoint it asks."""
    return str(item.path), _ENDPOINT.sub("", item.name)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Iterator[None]:
    """End the process with its last test: there is nothing to report."""
    yield
    os._exit(0)


def pytest_configure() -> None:
    """Put what asks in memory in the place of what asks and logs."""

    def nothing(*_: Any, **__: Any) -> None: ...

    patched: Any = TrialSource
    patched._asked = asked
    patched._logged_design = patched._name_look = nothing
    patched = ItemContexts
    patched.of = context
    patched = PlannedCell
    patched.asked_by = asked_by
    patched = simulated
    for name in ("without_form", "asks_for_line", "asks_for_facts", "asked_reading"):
        setattr(patched, name, lru_cache(MOST_TEXTS)(getattr(simulated, name)))
    patched.read_task = lru_cache(MOST_TEXTS)(patched.read_task.__wrapped__)
    patched.read_person = person
    # A p over .1 decides nothing: of such a table the first 999 permutations are enough.
    patched = categories
    patched._compare = partial(patched._compare, first=999)
    # The words of the report, which is not written.
    patched = pytest_fairness
    patched.analyze_words = lambda *_: pd.DataFrame({"word": [], "q_value": []})


# ---------------------------------------------------------------- asking


def asked(
    _source: TrialSource, engine: Engine, plan: Sequence[PlannedTrial], _meanwhile: Any = None
) -> list[Trial]:
    """Return the answers of the simulated endpoint of *engine* to *plan*."""
    return [trial_of(planned, engine.endpoint) for planned in plan]


def trial_of(planned: PlannedTrial, endpoint: Any) -> Trial:
    """Return the answer of a simulated *endpoint* to one cell, as an engine comes to it."""
    cell = planned.cell
    parameters = planned.sent_parameters(endpoint)
    replies: list[str] = []
    status = Status.NOT_RUN
    while messages := next_messages(planned, replies, status):
        request = Request(
            messages=messages,
            parameters=planned.parameters_at(len(replies), parameters),
            repetition=planned.repetition,
            signals=cell.signals,
        )
        reply = endpoint.reply(request)
        status = reply.status
        replies.append(reply.text or "")
    return Trial(
        key=f"{cell.id} {planned.repetition} {planned.parameters}",
        repetition=planned.repetition,
        status=status,
        replies=tuple(replies),
        source=SIMULATED,
    )


def next_messages(
    planned: PlannedTrial, replies: Sequence[str], status: Status
) -> tuple[Message, ...] | None:
    """Return what is sent after *replies*, the last of which had *status*; None at the end."""
    cell = planned.cell
    if planned.script is not None:
        return planned.script.next(cell, replies, status)
    if len(replies) < len(cell.turns):
        return conversation(cell.system, cell.turns, replies)
    return None


_read_person = simulated.read_person
_people: dict[tuple[str, ...], Any] = {}


def person(text: str, signals: Mapping[str, Mapping[str, str]]) -> Any:
    """Return the person of a prompt, read once for all endpoints."""
    key = (text, *signals)
    if key not in _people:
        if len(_people) > MOST_TEXTS:
            _people.clear()
        _people[key] = _read_person(text, signals)
    return _people[key]


_asked_by = PlannedCell.asked_by
_entries: dict[tuple[int, Elicitation], tuple[PlannedCell, PlannedCell]] = {}


def asked_by(entry: PlannedCell, elicitation: Elicitation) -> PlannedCell:
    """Return *entry* as it asks for its answer, made once for all endpoints."""
    key = id(entry), elicitation
    kept = _entries.get(key)
    if kept is None or kept[0] is not entry:
        if len(_entries) > MOST_TEXTS:
            _entries.clear()
        kept = _entries[key] = entry, _asked_by(entry, elicitation)
    return kept[1]


# ---------------------------------------------------------------- findings

_context = ItemContexts.of


def context(contexts: ItemContexts, item: pytest.Item, findings: list[Finding]) -> TestContext:
    """Return the context of *item*, whose findings are written to the file alone."""

    def emit(finding: Finding) -> None:
        findings.append(finding)
        with Path(os.environ["FINDINGS"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line_of(finding)) + "\n")

    unlogged: dict[str, Any] = {
        "keep": lambda _judgement: None,
        "log_look": lambda _record: None,
        "changed": lambda _table: (),
        "notes": lambda _finding: (),
    }
    return replace(_context(contexts, item, findings), emit=emit, **unlogged)


def line_of(finding: Finding) -> dict[str, Any]:
    """Return what a count of findings reads of *finding*."""
    return {
        "endpoint": finding.model_endpoint,
        "test": finding.test_id,
        "class": finding.protected_class,
        "outcome": finding.outcome,
        "verdict": finding.verdict.value,
        "reason": finding.reason and finding.reason.value,
        "effect": finding.effect_size,
        "n": dict(finding.n_per_group),
        "sentence": finding.sentence,
    }
