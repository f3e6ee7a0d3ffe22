"""Marks that make a test a fairness test, and the fixtures that it sees. Every session asks, so it
costs next to nothing.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GRID, PAIRS = DESIGNS = "fairness_grid", "fairness_pairs"
PULLS = frozenset({"trials", "cell"})
#: The module of our own fixtures, by which those of a project are known.
FIXTURES = "pytest_fairness.pytest_layer.fixtures"
#: The names of our own plugins: one that every session has, one of xdist's controller.
RECORDER, CONTROLLER = "fairness-recorder", "fairness-xdist"
#: Marks by which a test may not run, or not to its end.
_MAY_NOT_RUN = ("skip", "skipif", "xfail")


class SkipReason(str):
    """Why the plugin, or a suite of ours, skips a test: no decision of its author."""

    __slots__ = ()


def is_fairness_item(item: pytest.Item) -> bool:
    """Return whether *item* is marked as a fairness test, by itself or by a design."""
    return item.get_closest_marker("fairness") is not None


def asks_for_trials(item: pytest.Item) -> bool:
    """Return whether a test asks for the trials of a design as one table."""
    return has_design(item) and "trials" in getattr(item, "fixturenames", ())


def has_design(node: pytest.Item) -> bool:
    """Return whether a test, or its definition, is marked with a grid."""
    return any(map(node.get_closest_marker, DESIGNS))


def may_not_run(item: pytest.Item) -> bool:
    """Return whether a mark says that *item* is skipped, or expected to fail."""
    return any(map(item.get_closest_marker, _MAY_NOT_RUN))


def class_in(label: str) -> str:
    """The protected class of an entry of ``each=``: what stands before a hyphen, ``age`` of
    ``age-stated_age``.
    """
    return str(label).partition("-")[0]


def concerns(item: pytest.Item) -> bool:
    """A fairness test; or any test, once somebody has imported an assertion."""
    return is_fairness_item(item) or "pytest_fairness.asserts" in sys.modules


def gets_named_endpoint(node: pytest.Item) -> bool:
    """Return whether a test, or its definition, gets our own fixture ``endpoint``, as it is or
    wrapped by the project's.
    """
    for fixture in reversed(fixtures_of(node, "endpoint")):
        if fixture.func.__module__ == FIXTURES:
            return True
        if "endpoint" not in fixture.argnames:
            break
    return False


def fixtures_on(item: pytest.Item, name: str) -> list[str]:
    """Return the fixtures that the project makes of our fixture *name* for *item*: one of the same
    name, and those that ask for it.
    """
    made = []
    for other, fixtures in _fixtures(item).items():
        fixture = fixtures[-1]
        theirs = fixture.func.__module__ != FIXTURES
        if theirs and (other == name or name in fixture.argnames):
            made.append(other)
    return made


def fixtures_of(item: pytest.Item, name: str) -> Sequence[Any]:
    """The definitions of the fixture *name* that *item* sees, the one that it gets last."""
    return _fixtures(item).get(name, ())


def fixture_modules(item: pytest.Item) -> set[str]:
    """Return the modules of all fixtures that *item* gets, also of those that it does not ask for."""
    modules = set()
    for fixtures in _fixtures(item).values():
        modules |= {fixture.func.__module__ for fixture in fixtures}
    return modules


def _fixtures(item: pytest.Item) -> Mapping[str, Sequence[Any]]:
    """Return the definitions of each fixture that *item* sees, by its name.

    pytest has no public way to ask before the fixture is made; a test holds this one against the
    newest pytest.
    """
    fixtures: Mapping[str, Sequence[Any]] = getattr(
        getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}
    )
    return fixtures
