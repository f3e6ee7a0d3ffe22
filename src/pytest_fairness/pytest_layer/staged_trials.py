"""The trials of a test, asked stage by stage: what an assertion reads at each of its looks.

A stage is the beginning of the design's order of names. Rows that a test picked by the design are
picked again of a larger stage. Whatever else it made of its trials (columns added or changed, rows
picked by their replies, tables merged) is made again by running the test function on the larger
table, up to the assertion that looks again. See
``docs/decisions/0173-a-table-is-made-again.md``.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_fairness.design.stages import DRAW, Stages
from pytest_fairness.errors import FairnessError, StageUnfinished, UsageError
from pytest_fairness.model import OutcomeKind, Status
from pytest_fairness.pytest_layer import item_marks
from pytest_fairness.running_test import (
    Assertion,
    Rehearsal,
    RehearsalEnd,
    TestContext,
    current_test,
    running_test,
)
from pytest_fairness.trials_frame import columns_named, design_of
from pytest_fairness.words import count

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.design.axes import Pair

#: What tells one row of trials from another.
_ROW = ("key", "cell", "position")
#: The trials of a test with a design, in its stash.
STAGED = pytest.StashKey["StagedTrials"]()
#: Makes the table of an assertion again, of another table of trials. Raises UsageError where it
#: cannot.
Remake = Callable[[Assertion, "pd.DataFrame"], Any]


class StageAsker(Protocol):
    """Asks a stage: the first *names* of each group, of a group among *fewer* so many."""

    def __call__(self, names: int, fewer: Mapping[Pair, int]) -> pd.DataFrame: ...


class StagedTrials:
    """The trials of one test: the stage that it was handed, and those that its assertions ask.

    *handed_out* is the number of names of the stage that the test is handed. *remake*, where the
    test can be run again, makes the table of an assertion of another table of trials. *context* are
    the columns of the design's context axes. *unit* is what the stages count, in words.
    """

    def __init__(
        self,
        stages: Stages,
        ask: StageAsker,
        *,
        handed_out: int,
        context: Iterable[str] = (),
        remake: Remake | None = None,
        unit: str = "names a group",
    ) -> None:
        self.stages = stages
        self.unit = unit
        self._ask = ask
        self._remake = remake
        self._asked: dict[tuple[int, frozenset[tuple[Pair, int]]], pd.DataFrame] = {}
        self.names = handed_out
        self.handed_out = self._stage(self.names, {})
        design = (
            "template",
            "arm",
            "tier",
            "signal",
            *design_of(self.handed_out).protected_classes,
            *context,
        )
        columns = self.handed_out.columns
        self._columns = [column for column in dict.fromkeys(design) if column in columns]

    def looks(self, assertion: Assertion, kind: OutcomeKind, fewest_trials: int) -> tuple[int, ...]:
        """Return the looks of *assertion* on an outcome of *kind*, whose verdict needs
        *fewest_trials* a group: one, at the base design, where its table cannot be made of more
        names.
        """
        if self._remake is None or not self._can_look(assertion):
            return (self.stages.base,)
        return self.stages.looks(kind, fewest_trials)

    def _can_look(self, assertion: Assertion) -> bool:
        """Return whether the table of *assertion* can be made of more names, or says where each
        name was drawn.
        """
        part = assertion.arguments["frame"]
        why, _ = self._as_handed_out(assertion, part)
        return not why or DRAW in part.columns or "name" in part.columns

    def table(self, assertion: Assertion, names: int, fewer: Mapping[Pair, int]) -> pd.DataFrame:
        """Return the table of *assertion* at the first *names* of each group.

        Raises UsageError, saying why, where it cannot be made again, and StageUnfinished where
        the stage was not asked to its end.
        """
        part: pd.DataFrame = assertion.arguments["frame"]
        if names == self.names and not fewer:
            return self._with_draw(part, self.handed_out)
        stage = self._stage(names, fewer)
        unfinished = int((stage["status"] == Status.NOT_RUN.value).sum())
        if unfinished:
            raise StageUnfinished(f"{count(unfinished, 'trial')} of the stage were not run")
        why, kept = self._as_handed_out(assertion, part)
        if why:
            return self._with_draw(self._made_again(assertion, stage, why), stage)
        if kept is not None:
            stage = stage[[key in kept for key in self._keys(stage)]]
        return stage

    def of_base(self, assertion: Assertion) -> pd.DataFrame:
        """Return the table of *assertion* at the base design, which a baseline reads."""
        try:
            return self.table(assertion, self.stages.base, {})
        except UsageError:
            return self.base_table(assertion)

    def base_table(self, assertion: Assertion) -> pd.DataFrame:
        """Return the table that the test makes of its base design for *assertion*, whatever it is.
        Raises UsageError where it makes none.
        """
        stage = self._stage(self.stages.base, {})
        if self._remake is None:  # the base design is what was handed out
            part: pd.DataFrame = assertion.arguments["frame"]
            return part
        made = self._made_again(assertion, stage, "the table cannot be made of every stage")
        return self._with_draw(made, stage)

    def _stage(self, names: int, fewer: Mapping[Pair, int]) -> pd.DataFrame:
        """Return the trials of a stage, asked once."""
        stage = names, frozenset(fewer.items())
        if stage not in self._asked:
            self._asked[stage] = self._ask(names, fewer)
        return self._asked[stage]

    def _with_draw(self, part: pd.DataFrame, stage: pd.DataFrame) -> pd.DataFrame:
        """Return *part* with the column that says in which place each name was drawn, where it can
        be known by the name.
        """
        if DRAW in part.columns or DRAW not in stage.columns or "name" not in part.columns:
            return part
        draws = stage.drop_duplicates(["name", DRAW])
        if draws["name"].duplicated().any():
            return part
        return part.assign(**{DRAW: part["name"].map(draws.set_index("name")[DRAW])})

    def changed(self, part: pd.DataFrame) -> tuple[str, ...]:
        """The columns of the trials that hold other values in *part* than were handed out, in rows
        that still say which trial they are.
        """
        import pandas as pd

        table = self.handed_out
        shared = [column for column in table.columns if column in part.columns]
        if part.index.equals(table.index) and _is_equal(part, table, shared):
            return ()  # as it was handed out, which is usual and soon seen
        row = [column for column in _ROW if column in table.columns]
        if not row or not set(row) <= set(part.columns) or not part.columns.is_unique:
            return ()
        handed_out = self._of_all_stages()
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

    def _of_all_stages(self) -> pd.DataFrame:
        """Return the trials of the largest stage that was asked, where the test got no more."""
        tables = [self.handed_out, *self._asked.values()]
        return max(tables, key=len).astype(object)

    def _as_handed_out(
        self, assertion: Assertion, part: pd.DataFrame
    ) -> tuple[str, set[tuple[str, ...]] | None]:
        """Why *part* is not rows of the table picked by its design, if it is not; and else the
        combinations of the design that it consists of, None where it is the whole table.
        """
        table = self.handed_out
        if not part.index.is_unique or not part.index.isin(table.index).all():
            return "the table was put together in the test", None
        for column in part.columns:
            if column not in table.columns and _is_named(column, assertion):
                return f"the test made the column {column!r} itself", None
        theirs = table
        if not part.index.equals(table.index):
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

    def _made_again(self, assertion: Assertion, stage: pd.DataFrame, why: str) -> pd.DataFrame:
        """Return the table of *assertion* as the test makes it of *stage*. Raises UsageError where
        it does not.
        """
        part = assertion.arguments["frame"]
        if self._remake is None:
            raise UsageError(f"{why}, and the test cannot be run again")
        try:
            made: pd.DataFrame = self._remake(assertion, stage.copy())
        except UsageError as error:
            raise UsageError(f"{why}, and when the test was run again {error}") from error
        lacks = ""
        absent = set(part.columns) - {DRAW} - set(getattr(made, "columns", ()))
        if absent:
            columns = [str(column) for column in part.columns if column in absent]
            lacks = f"lacks the columns {', '.join(columns)}"
        elif not len(made):
            lacks = "has no rows"
        if lacks:
            raise UsageError(f"{why}, and the table that it makes of a larger stage {lacks}")
        column = "name"
        if "key" in part.columns:
            column = "key"
        if column in made.columns:
            rows = set(made[column])
            if not rows <= set(stage[column]):
                raise UsageError(f"{why}, and the table that it makes has rows of other trials")
            if rows <= set(self.handed_out[column]):
                raise UsageError(f"{why}, and the table that it makes has no row of a new name")
        return made

    def _keys(self, frame: pd.DataFrame) -> list[tuple[str, ...]]:
        """Template, groups, context, arm … of each row: what the rows of a larger stage have too."""
        return list(zip(*(frame[column].map(repr) for column in self._columns), strict=True))


def _is_equal(part: pd.DataFrame, table: pd.DataFrame, columns: Iterable[str]) -> bool:
    """Return whether *part* has in each of *columns* what *table* has there."""
    for column in columns:
        if not part[column].equals(table[column]):
            return False
    return True


def _is_named(column: object, assertion: Assertion) -> bool:
    """Return whether an argument of *assertion* names *column*."""
    for name, value in assertion.arguments.items():
        if name != "frame" and column in columns_named(value):
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


def names_handed_out(stages: Stages, remake: Remake | None, *, only_analyzes: bool = False) -> int:
    """Return the names of the stage that a test is handed: the first of several; its base design,
    which is judged once, where none of its tables can be made again by *remake*, or it
    *only_analyzes*.
    """
    if stages.single or remake is None or only_analyzes:
        return stages.base
    return stages.first


def remake_in(item: pytest.Item) -> Remake | None:
    """Return what runs the function of *item* again on another table of trials; None where it
    cannot be: a fixture of the project's makes a table of the trials, or the function waits.
    """
    function: Any = getattr(item, "obj", None)
    names = getattr(getattr(item, "_fixtureinfo", None), "argnames", ())
    if function is None or "trials" not in names or inspect.iscoroutinefunction(function):
        return None
    if item_marks.fixtures_on(item, "trials"):
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


# ---------------------------------------------------------------- on a shard


def unheard(test: TestContext) -> TestContext:
    """Return *test*, of which nothing is logged or reported: its assertions find the next stage."""

    def nothing(_: Any) -> None: ...

    return replace(test, emit=nothing, keep=nothing, log_look=nothing)


@contextlib.contextmanager
def unjudged_on(shard: str) -> Iterator[None]:
    """Skip the test that runs in the block, whatever it says of the trials that are there: it is
    judged once the shards are merged. What keeps it from asking is raised.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except FairnessError:
        raise
    except (Exception, pytest.fail.Exception):  # noqa: BLE001, S110 - of the test
        pass
    pytest.skip(f"shard {shard}: nothing more to ask; judged once the shards are merged")
