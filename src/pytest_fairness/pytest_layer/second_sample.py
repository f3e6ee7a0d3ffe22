"""A second sample for a test: its design with other names, and of that what corresponds to the
table it asserted on.

Rows picked by the design are picked again. Whatever else the test made of its trials (columns added
or changed, rows picked by their replies, tables merged) is made again by running the test function
on the fresh sample, up to the assertion that is looked at again. See
``docs/decisions/0173-a-table-is-made-again.md``.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.pytest_layer.plans import Planned
from pytest_fairness.running_test import (
    Assertion,
    FreshSample,
    Rehearsal,
    RehearsalEnd,
    current_test,
    running_test,
)
from pytest_fairness.trials_frame import UNFINISHED, design_of
from pytest_fairness.words import count, percent

if TYPE_CHECKING:
    import pandas as pd

#: More trials than this without an answer, and the second sample says nothing about the first.
MOST_UNFINISHED = 0.05

#: What tells one row of trials from another.
_ROW = ("key", "cell", "position")
#: What gives a second sample like the table that it is handed: in the stash of a test with a
#: design.
OFFERED = pytest.StashKey["Repeatable"]()
#: Makes the table of an assertion again, of a fresh table of trials. Raises UsageError where it
#: cannot.
Remake = Callable[[Assertion, "pd.DataFrame"], Any]


def offer(
    item: pytest.Item, table: pd.DataFrame, planned: Planned, ask: Callable[[Planned], pd.DataFrame]
) -> None:
    """Let the assertions of *item*, which got *table*, ask for a second sample: an equal one on
    other names.
    """

    def second() -> FreshSample:
        other = planned.on_other_names
        if other is None:
            raise UsageError(
                "there are no fresh names to ask about: personas, words and given names are used up"
            )
        return FreshSample(frame=ask(other), about=_other_names(other.grid.fewest_names))

    # A copy: the test may add columns to its own, which another sample would not have.
    item.stash[OFFERED] = Repeatable(
        table.copy(),
        planned.cell(0).context,
        second,
        possible=lambda: planned.on_other_names is not None,
        remake=_remake_in(item),
    )


def _other_names(number: int) -> str:
    return f"{count(number, 'other name')} a group"


class Repeatable:
    """A table of trials as a test got it, and how to ask for another like it: once, whoever wants
    it.

    *context* are the columns of the design's context axes; *possible* says beforehand whether there
    is another;
    *remake*, where the test can be run again, makes the table of an assertion of another table of
    trials.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        context: Iterable[str],
        ask: Callable[[], FreshSample],
        *,
        possible: Callable[[], bool] = lambda: True,
        remake: Remake | None = None,
    ) -> None:
        design = (
            "template",
            "arm",
            "tier",
            "signal",
            *design_of(table).protected_classes,
            *context,
        )
        self._columns = [column for column in dict.fromkeys(design) if column in table.columns]
        self._table = table
        self._ask = ask
        self.possible = possible
        self._remake = remake
        self._sample: FreshSample | None = None

    def like(self, assertion: Assertion) -> FreshSample:
        """The second sample of the table of *assertion*.

        Raises UsageError, saying why, where that is none that can be asked again, and EndpointError
        where too much of the second sample was not answered.
        """
        part: pd.DataFrame = assertion.arguments["frame"]
        why, kept = self._as_handed_out(assertion, part)
        if why and self._remake is None:
            raise UsageError(f"{why}, and the test cannot be run again")
        if why:
            self._refuse_without_trial(part)
        sample = self._fresh()
        if why:
            return self._made_again(assertion, sample, why)
        if kept is None:
            return sample
        rows = [key in kept for key in self._keys(sample.frame)]
        return replace(sample, frame=sample.frame[rows])

    def changed(self, part: pd.DataFrame) -> tuple[str, ...]:
        """The columns of the trials that hold other values in *part* than were handed out, in rows
        that still say which trial they are.
        """
        import pandas as pd

        table = self._table
        shared = [column for column in table.columns if column in part.columns]
        if part.index.equals(table.index) and all(
            part[column].equals(table[column]) for column in shared
        ):
            return ()  # as it was handed out, which is usual and soon seen
        row = [column for column in _ROW if column in table.columns]
        if not row or not set(row) <= set(part.columns) or not part.columns.is_unique:
            return ()
        handed_out = self._handed_out()
        handed_out = handed_out[~handed_out.duplicated(row)]
        places = pd.MultiIndex.from_frame(handed_out[row]).get_indexer(
            pd.MultiIndex.from_frame(part[row].astype(object))
        )
        rows = part[places >= 0]
        theirs = handed_out.iloc[places[places >= 0]]
        changed = []
        for column in shared:
            if column not in row and _differ(rows[column], theirs[column]):
                changed.append(column)
        return tuple(changed)

    def _handed_out(self) -> pd.DataFrame:
        """Return the trials that the test got, those of a second sample included."""
        import pandas as pd

        samples = [self._table.astype(object)]
        if self._sample is not None:
            samples.append(self._sample.frame.astype(object))
        return pd.concat(samples, ignore_index=True)

    def _fresh(self) -> FreshSample:
        if self._sample is None:
            self._sample = self._ask()
        lost = float(self._sample.frame["status"].isin(UNFINISHED).mean())
        if lost > MOST_UNFINISHED:
            raise EndpointError(
                f"{percent(lost, 0)} of the trials of the second sample were never answered"
            )
        return self._sample

    def _as_handed_out(
        self, assertion: Assertion, part: pd.DataFrame
    ) -> tuple[str, set[tuple[str, ...]] | None]:
        """Why *part* is not rows of the table picked by its design, if it is not; and else the
        combinations of the design that it consists of, None where it is the whole table.
        """
        table = self._table
        if not part.index.is_unique or not part.index.isin(table.index).all():
            return "the table was put together in the test", None
        for column in part.columns:
            if column not in table.columns and _is_named(column, assertion):
                return f"the test made the column {column!r} itself", None
        theirs = table.loc[part.index]
        for column in table.columns:
            if column in part.columns and not part[column].equals(theirs[column]):
                return f"the column {column!r} was changed in the test", None
        if len(part) == len(table):
            return "", None
        kept = set(self._keys(theirs))
        if sum(key in kept for key in self._keys(table)) != len(part):
            return (
                "the test picked rows by something other than the design (template, group, "
                "context, arm)",
                None,
            )
        return "", kept

    def _refuse_without_trial(self, part: pd.DataFrame) -> None:
        """Raise UsageError, before anything is asked, where nothing in *part* would show which
        sample a row is of.
        """
        if not {"key", "name"} & set(part.columns):
            raise UsageError(
                "the rows of the table say of no trial and no name that they are about it (columns "
                "key and name), so "
                "nothing would show that they are of a second sample"
            )

    def _made_again(self, assertion: Assertion, sample: FreshSample, why: str) -> FreshSample:
        """The table of *assertion* as the test makes it of *sample*. Raises UsageError where it
        does not.
        """
        assert self._remake is not None  # noqa: S101 - for the type checker
        part = assertion.arguments["frame"]
        try:
            made = self._remake(assertion, sample.frame.copy())
        except UsageError as error:
            raise UsageError(
                f"{why}, and when the test was run again on a second sample {error}"
            ) from error
        lacks = ""
        absent = set(part.columns) - set(getattr(made, "columns", ()))
        if absent:
            columns = [str(column) for column in part.columns if column in absent]
            lacks = f"lacks the columns {', '.join(columns)}"
        elif not len(made):
            lacks = "has no rows"
        if lacks:
            raise UsageError(f"{why}, and the table that it makes of a second sample {lacks}")
        column = "name"
        if "key" in part.columns:
            column = "key"
        fresh = set(sample.frame[column]) - set(self._table[column])
        if not set(made[column]) <= fresh:
            raise UsageError(
                f"{why}, and the table that it makes of a second sample has rows of other trials"
            )
        by = assertion.arguments.get("by")
        if "name" not in made.columns or not isinstance(by, str) or by not in made.columns:
            return replace(sample, frame=made)
        return FreshSample(
            frame=made, about=_other_names(int(made.groupby(by)["name"].nunique().min()))
        )

    def _keys(self, frame: pd.DataFrame) -> list[tuple[str, ...]]:
        """Template, groups, context, arm … of each row: what the rows of another sample have too."""
        return list(zip(*(frame[column].map(repr) for column in self._columns), strict=True))


def _is_named(column: object, assertion: Assertion) -> bool:
    """Return whether an argument of *assertion* names *column*."""
    for name, value in assertion.arguments.items():
        names = value
        if not isinstance(value, (list, tuple)):
            names = [value]
        if name != "frame" and column in names:
            return True
    return False


def _differ(mine: pd.Series[Any], theirs: pd.Series[Any]) -> bool:
    """Return whether two columns of equal length differ in any row; nothing is like nothing."""
    absent = mine.isna().to_numpy()
    also = theirs.isna().to_numpy()
    if (absent != also).any():
        return True
    values, others = (column.to_numpy(object)[~absent].tolist() for column in (mine, theirs))
    return bool(values != others)


def _remake_in(item: pytest.Item) -> Remake | None:
    """Return what runs the function of *item* again on another table of trials; None where it
    cannot be: the table comes from a fixture of the project's, or the function waits.
    """
    function: Any = getattr(item, "obj", None)
    names = getattr(getattr(item, "_fixtureinfo", None), "argnames", ())
    if function is None or "trials" not in names or inspect.iscoroutinefunction(function):
        return None

    def remake(assertion: Assertion, trials: pd.DataFrame) -> Any:
        test = current_test()
        rehearsal = Rehearsal(assertion)
        assert test is not None  # noqa: S101 - an assertion of it is under way
        given = {name: item.funcargs[name] for name in names}  # type: ignore[attr-defined]
        with running_test(replace(test, rehearsal=rehearsal)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were given when the test ran
            try:
                function(**{**given, "trials": trials})
            except RehearsalEnd:
                pass
            except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001 - of the test
                if rehearsal.table is None:
                    words = str(error).strip().partition("\n")[0]
                    raise UsageError(f"it raised {type(error).__name__}: {words}"[:300]) from None
        if rehearsal.table is None:
            raise UsageError("it did not come to this assertion")
        return rehearsal.table

    return remake
