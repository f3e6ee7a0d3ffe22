"""A second sample for a test: its design with other names, and of that what corresponds to the table it asserted on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_fairness.analysis.sentences import percent
from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.pytest_layer.plans import Planned
from pytest_fairness.running_test import FreshSample
from pytest_fairness.trials_frame import UNFINISHED, design_of

if TYPE_CHECKING:
    import pandas as pd

#: More trials than this without an answer, and the second sample says nothing about the first.
MOST_UNFINISHED = 0.05

_OFFERED = pytest.StashKey["Repeatable"]()


def offer(item: pytest.Item, table: pd.DataFrame, planned: Planned, ask: Callable[[Planned], pd.DataFrame]) -> None:
    """Let the assertions of *item*, which got *table*, ask for a second sample: an equal one on other names."""

    def second() -> FreshSample:
        other = planned.on_other_names
        if other is None:
            raise UsageError("there are no fresh names to ask about: personas, words and given names are used up")
        names = other.grid.fewest_names
        return FreshSample(frame=ask(other), about=f"{names} other name{'s' * (names != 1)} a group")

    # A copy: the test may add columns to its own, which another sample would not have.
    item.stash[_OFFERED] = Repeatable(
        table.copy(), planned.grid[0].context, second, possible=lambda: planned.on_other_names is not None
    )


def of(item: pytest.Item) -> Repeatable | None:
    """What gives a second sample like the table that it is handed; None for a test without a design."""
    return item.stash.get(_OFFERED, None)


class Repeatable:
    """A table of trials as a test got it, and how to ask for another like it: once, whoever wants it.

    *context* are the columns of the design's context axes; *possible* says beforehand whether there is another.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        context: Iterable[str],
        ask: Callable[[], FreshSample],
        *,
        possible: Callable[[], bool] = lambda: True,
    ) -> None:
        design = ("template", "arm", "tier", "signal", *design_of(table).protected_classes, *context)
        self._columns = [column for column in dict.fromkeys(design) if column in table.columns]
        self._table, self._ask, self.possible = table, ask, possible
        self._sample: FreshSample | None = None

    def like(self, part: pd.DataFrame) -> FreshSample:
        """The second sample of *part*.

        Raises UsageError, saying why, where *part* is none that can be asked again, and EndpointError where too much
        of the second sample was not answered.
        """
        kept = self._kept(part)
        if self._sample is None:
            self._sample = self._ask()
        frame = self._sample.frame
        lost = float(frame["status"].isin(UNFINISHED).mean())
        if lost > MOST_UNFINISHED:
            raise EndpointError(f"{percent(lost)} of the trials of the second sample were never answered")
        if kept is None:
            return self._sample
        rows = [key in kept for key in self._keys(frame)]
        return replace(self._sample, frame=frame[rows])

    def _kept(self, part: pd.DataFrame) -> set[tuple[str, ...]] | None:
        """The combinations of the design that *part* consists of; None where it is the whole table."""
        table = self._table
        if not part.index.is_unique or not part.index.isin(table.index).all():
            raise UsageError("the table was put together in the test; assert on trials, or on rows of it, as they are")
        own = table.loc[part.index]
        for column in table.columns:
            if column in part.columns and not part[column].equals(own[column]):
                raise UsageError(f"the column {column!r} was changed in the test, which cannot be done again here")
        if len(part) == len(table):
            return None
        kept = set(self._keys(own))
        if sum(key in kept for key in self._keys(table)) != len(part):
            raise UsageError(
                "the test picked rows by something other than the design (template, group, context, arm), and another "
                "sample has no such rows"
            )
        return kept

    def _keys(self, frame: pd.DataFrame) -> list[tuple[str, ...]]:
        """Template, groups, context, arm … of each row: what the rows of another sample have too."""
        return list(zip(*(frame[column].map(repr) for column in self._columns), strict=True))
