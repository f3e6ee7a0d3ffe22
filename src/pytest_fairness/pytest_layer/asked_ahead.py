"""The tests whose first stage is asked ahead of time: while a stage of another test ends, or is
judged, its places in flight would be empty.

Money is never spent on a guess: a test is among them only where it will ask that stage whatever the
tests before it find, as far as can be known before it runs. See
``docs/decisions/0238-asking-ahead.md``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence, Set
from functools import partial

import pytest

from pytest_fairness.context import Settings
from pytest_fairness.pytest_layer import item_marks
from pytest_fairness.pytest_layer.estimate import brings_its_own

#: Options, of pytest and its plugins, that end a session at a failure.
_END_EARLY = ("maxfail", "stepwise")


class Upcoming:
    """Those of the *items* of a session that may be asked ahead of time, as *is_certain* says, in
    their order.
    """

    def __init__(
        self,
        items: Sequence[pytest.Item] = (),
        is_certain: Callable[[pytest.Item], bool] = lambda _: True,
    ) -> None:
        self._places = {item: place for place, item in enumerate(items)}
        self._left = deque(filter(is_certain, items))

    def after(self, item: pytest.Item) -> pytest.Item | None:
        """Return the first that comes after *item* and was not taken; None where none is left."""
        place = self._places.get(item, -1)
        while self._left and self._places[self._left[0]] <= place:
            self._left.popleft()
        if place < 0 or not self._left:
            return None
        return self._left[0]

    def take(self) -> None:
        """Leave out the first from now on."""
        self._left.popleft()


def upcoming(
    items: Sequence[pytest.Item], settings: Settings, config: pytest.Config, *, alone: bool
) -> Upcoming:
    """Return those of *items* that may be asked ahead of time in a session with these *settings*
    and pytest's *config*; none under a cap, which is to be spent in the order of the tests, in a
    session that a failure may end, where the project has a say in each test's setup, on replay and
    on a shard. *alone*: one process runs the tests; several fill each other's pauses.
    """
    bounds = (settings.replay, settings.merged, settings.shard, settings.max_cost)
    may_end = any(getattr(config.option, name, None) for name in _END_EARLY)
    if not alone or bounds != (None, None, "", None) or may_end:
        return Upcoming()
    neutral = {"_pytest"}
    for plugin, _ in config.pluginmanager.list_plugin_distinfo():
        neutral.add(_package(getattr(plugin, "__name__", type(plugin).__module__)))
    for setup in config.hook.pytest_runtest_setup.get_hookimpls():
        if _package(setup.function.__module__) not in neutral:
            return Upcoming()
    return Upcoming(items, partial(_is_certain_to_ask, neutral))


def _is_certain_to_ask(neutral: Set[str], item: pytest.Item) -> bool:
    """Return whether *item* asks for its trials whatever happens before, of the endpoint that the
    session names. *neutral* are the packages of pytest and its installed plugins, whose fixtures
    are taken to skip no test and to change no system under test.
    """
    if not item_marks.asks_for_trials(item) or brings_its_own(item) or item_marks.may_not_run(item):
        return False
    return set(map(_package, item_marks.fixture_modules(item))) <= neutral


def _package(module: str) -> str:
    return module.partition(".")[0]
