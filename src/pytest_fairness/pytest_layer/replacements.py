"""What a project puts in the place of what was named or ships: a fixture for ``--fairness-endpoint``, a scorer for a
built-in one. Both are allowed, and neither is done silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.pytest_layer import collection
from pytest_fairness.pytest_layer.command_line import recorded_path
from pytest_fairness.pytest_layer.estimate import brings_its_own, endpoint_fixtures
from pytest_fairness.reports.escaping import line
from pytest_fairness.runs.manifest import read_manifest

if TYPE_CHECKING:
    import pytest

    from pytest_fairness.model import Finding
    from pytest_fairness.pytest_layer.session import FairnessSession

_NAMED = 3


def asks_the_settings_endpoint(session: FairnessSession, items: Sequence[pytest.Item]) -> bool:
    """Whether any of *items* asks the endpoint that the settings name; also where none asks anything."""
    asking = [item for item in items if collection.grid_key(item) in session.grids]
    return not asking or not all(map(brings_its_own, asking))


def replacements(session: FairnessSession, items: Sequence[pytest.Item]) -> list[str]:
    """A line for each thing that is replaced."""
    root = session.config.rootpath
    lines = [
        f"fairness: the scorer {name!r} is the project's own ({_place(scorer.score, root)}), not the built-in one"
        for name, scorer in _own_scorers(session).items()
    ]
    named = _named_endpoint(session)
    if named is not None:
        by_fixture: dict[str, list[str]] = {}
        for item in items:
            if brings_its_own(item):
                by_fixture.setdefault(_fixture(item, root), []).append(collection.name_of(item))
        for fixture, tests in by_fixture.items():
            lines.append(f"fairness: {_listed(tests)}: {fixture} replaces --fairness-endpoint {named}")
    return list(map(line, lines))


def notes_on(session: FairnessSession, item: pytest.Item, finding: Finding, scored_by: set[str]) -> list[str]:
    """What of *finding*, made in the test *item* with the scorers *scored_by*, rests on a replacement."""
    root, notes = session.config.rootpath, []
    own = _own_scorers(session).get(finding.outcome)
    if own is not None and finding.outcome in scored_by:
        notes.append(f"the scorer {own.name!r} is the project's own ({_place(own.score, root)}), not the built-in one")
    named = _named_endpoint(session)
    if named is not None and finding.model_endpoint is not None and brings_its_own(item):
        notes.append(f"{_fixture(item, root)} was asked instead of --fairness-endpoint {named}")
    return notes


def _own_scorers(session: FairnessSession) -> dict[str, Any]:
    """Those scorers that have the name of a built-in one and are another."""
    from pytest_fairness.scorers import BUILT_IN

    return {name: scorer for name, scorer in session.scorers.items() if scorer is not BUILT_IN.get(name, scorer)}


def _named_endpoint(session: FairnessSession) -> str | None:
    """What the command line names as the endpoint, on replay the recorded one; a name in the ini file is a default, and
    meant to be replaced.
    """
    replayed = session.settings.replay
    command: Sequence[str] = session.command if replayed is None else read_manifest(replayed).get("command") or ()
    for argument, following in zip(command, [*command[1:], None], strict=True):
        name, between, value = str(argument).partition("=")
        if name == "--fairness-endpoint":
            return value if between else following
    return None


def _fixture(item: pytest.Item, root: Path) -> str:
    return f"the fixture 'endpoint' of {_place(endpoint_fixtures(item)[-1].func, root)}"


def _place(function: Any, root: Path) -> str:
    """The file that *function* stands in; its module where that is not known."""
    while isinstance(function, partial):
        function = function.func
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None) or getattr(getattr(function, "__call__", None), "__code__", None)  # noqa: B004
    return (
        str(getattr(type(function), "__module__", "")) if code is None else recorded_path(Path(code.co_filename), root)
    )


def _listed(tests: Sequence[str]) -> str:
    names = list(dict.fromkeys(tests))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
