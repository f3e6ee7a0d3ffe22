"""A pytest plugin for ``pytest-fairness plan --suite``: after collection, write down what each test would ask.

Loaded with ``-p`` into a ``pytest --collect-only`` of its own. It asks nothing and opens no run; the facts go as JSON
to the file that the environment variable names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_fairness.model import JSON, to_json
from pytest_fairness.pytest_layer import collection, guest
from pytest_fairness.pytest_layer.estimate import (
    Requests,
    brings_its_own,
    chance_of_red,
    looks_again,
    requests_of,
    system_of,
    usual_reply,
)
from pytest_fairness.runs.money import output_limit

if TYPE_CHECKING:
    from pytest_fairness.model import Cell
    from pytest_fairness.pytest_layer.plans import Planned, PlannedCell
    from pytest_fairness.pytest_layer.session import FairnessSession

FACTS_FILE = "PYTEST_FAIRNESS_PLAN"


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    path = os.environ.get(FACTS_FILE)
    if path is None or hasattr(session.config, "workerinput"):
        return
    fairness = guest.session_if_any(session.config)
    chosen = collection.selected_cells(session.items)
    tests: list[JSON] = [] if fairness is None else list(_tests(fairness, session.items, chosen))
    facts: dict[str, JSON] = {"tests": tests, "items": len(session.items), "failed": session.testsfailed}
    if fairness is not None:
        facts |= {
            "endpoint": _endpoint(fairness),
            "concurrency": fairness.settings.concurrency,
            "max_cost": fairness.settings.max_cost,
            "false_alarm": chance_of_red(fairness.settings, session.items, fairness.grids, chosen),
        }
    Path(path).write_text(json.dumps(facts), encoding="utf-8")


def _endpoint(fairness: FairnessSession) -> dict[str, JSON]:
    from pytest_fairness.errors import FairnessError

    try:
        endpoint = fairness.systems.configured()
    except FairnessError as error:
        return {"name": fairness.settings.endpoint, "price": None, "problem": str(error)}
    price = endpoint.price
    return {
        "name": endpoint.name,
        "simulated": endpoint.simulated,
        "parameters": dict(endpoint.default_parameters),
        "price": None
        if price is None
        else {
            "input_per_million": price.input_per_million,
            "output_per_million": price.output_per_million,
            "per_call": price.per_call,
        },
    }


def _tests(
    fairness: FairnessSession, items: list[pytest.Item], chosen: Mapping[collection.Selection, tuple[int, ...]]
) -> Iterator[dict[str, JSON]]:
    """One entry a test, tier and temperature; of per-cell items, the cells that are selected."""
    counted: set[str] = set()
    for key, members in collection.asking_items(items, fairness.grids).items():
        function, tier, temperature = key
        planned, cells = fairness.grids[function], chosen.get(key)
        yield {
            **_facts(members, planned, tier, temperature, cells, counted),
            "reply_tokens": usual_reply(members[0], planned, fairness.context.scorers),
            "again": cells is None and looks_again(fairness.settings, planned),
        }


def _facts(
    items: list[pytest.Item],
    planned: Planned,
    tier: int,
    temperature: float | None,
    cells: tuple[int, ...] | None,
    counted: set[str],
) -> dict[str, JSON]:
    """*counted* holds the trials of the tests before, by what they send: a run asks each once."""
    from pytest_fairness.runs.keys import content_key

    entries = planned.entries(tier, (lambda _text: True, ""), cells)
    first, fewest, most, again = items[0], Requests(), Requests(), 0
    parameters = {**planned.grid.parameters, **({} if temperature is None else {"temperature": temperature})}
    system = system_of(first)
    for entry in entries:
        low, high = requests_of(entry)
        script = None if entry.script is None else entry.script.identity()
        for repetition in range(entry.first, entry.first + planned.grid.repetitions):
            sent = content_key({"system": system, "own": id(entry.system)}, parameters, entry.cell, repetition, script)
            if sent in counted:
                again += 1
                continue
            counted.add(sent)
            fewest, most = fewest + low, most + high
    name = f"{first.parent.nodeid}::{collection.name_of(first)}" if first.parent else first.nodeid
    return {
        "test": name,
        "tier": tier,
        "temperature": parameters.get("temperature"),
        "items": len(items),
        "cells": len(entries),
        "repetitions": planned.grid.repetitions,
        "trials": len(entries) * planned.grid.repetitions,
        "asked_before": again,
        "fewest": to_json(fewest),
        "most": to_json(most),
        "longest": max((requests_of(entry)[1].requests for entry in entries), default=0),
        "output_limit": output_limit(parameters),
        "own_endpoint": brings_its_own(first) or any(entry.asks_others for entry in entries),
        "choices": planned.tiers_by_arm,
        "classes": {} if planned.tiers_by_arm else _classes(entries, planned.grid.repetitions),
    }


def _classes(entries: list[PlannedCell], repetitions: int) -> dict[str, JSON]:
    """For each protected class and group: cells, trials, templates and names (or personas; 0 where there are none)."""
    cells: dict[str, dict[str, list[Cell]]] = {}
    for entry in entries:
        for protected, group in entry.cell.groups.items():
            cells.setdefault(protected, {}).setdefault(group, []).append(entry.cell)
    return {
        protected: {group: _group(own, repetitions) for group, own in groups.items()}
        for protected, groups in cells.items()
    }


def _group(cells: list[Cell], repetitions: int) -> dict[str, JSON]:
    names = {cell.name if cell.name is not None else cell.persona for cell in cells} - {None}
    return {
        "cells": len(cells),
        "trials": len(cells) * repetitions,
        "templates": len({cell.template for cell in cells}),
        "names": len(names),
    }
