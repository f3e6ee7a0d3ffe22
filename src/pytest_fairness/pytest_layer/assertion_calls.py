"""Mistakes in a test's calls of our assertions, found in its source before anything is asked.

Only a call that runs whatever happens is looked at, on ``trials`` as the fixture gave them, and
only what stands there in letters, or in the parameters of the item. All else is left to the
assertion.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from pytest_fairness.design.grid import Grid
from pytest_fairness.errors import did_you_mean, of_trials
from pytest_fairness.model import Cell, OutcomeKind, Status, Trial
from pytest_fairness.pytest_layer import item_marks
from pytest_fairness.pytest_layer.plans import Planned, PlannedPairs
from pytest_fairness.scorers import Scorer
from pytest_fairness.scorers.outcome import unknown_outcome
from pytest_fairness.trials_frame import (
    DISCLAIMS,
    ELICITED_BY,
    EMPTY_FIRST,
    ONE_MESSAGE,
    REFUSED_FIRST,
    EndpointFacts,
    columns_named,
    trials_frame,
)
from pytest_fairness.words import listed

if TYPE_CHECKING:
    import pytest

FRAME = "trials"
#: Arguments of the calls that are looked at, by what they name.
_OUTCOMES = frozenset({"outcome", "score"})
_COLUMNS = frozenset({"by", "cluster", "block", "persona", "categories", "warnings"})
#: Arguments that are about tables of decisions.
_OF_TABLES = frozenset({"each", "within", "truth"})
#: Analyses whose ``by`` names a class and no column.
_OF_CHOICES = frozenset(
    {"assert_no_preference", "analyze_preference", "assert_arm_reduces_disparity", "analyze_arms"}
)
#: Analyses that take a list of outcomes as one family.
_OF_SEVERAL = frozenset({"assert_no_disparity", "analyze_disparity"})
_READERS = frozenset({"len", "print", "list", "set", "sorted"})
#: Attributes of a table by which something may be put into it.
_PLACES = frozenset({"loc", "iloc", "at", "iat"})
#: Cells whose columns are made before a column is said to be unknown; in a larger grid none is.
_MOST_CELLS = 20_000


def problems(
    item: pytest.Item, planned: Planned | None, tier: int, scorers: Callable[[], Mapping[str, Any]]
) -> list[str]:
    """Return what is wrong with the calls of *item*, whose design is *planned*: each with its file
    and line.
    """
    if planned is None or item_marks.may_not_run(item):
        return []
    design = _Design(planned, tier, scorers)
    lines = []
    for call in _calls(item):
        for why in islice(design.problems(call), 1):
            lines.append(f"{item.location[0]}:{call.line}: {call.name}: {why}")
    return lines


def outcome_kinds(item: pytest.Item, scorers: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of outcome that *item* judges, each once, as far as its calls say them or name a
    scorer.
    """
    kinds = dict.fromkeys(_kind(call, scorers) for call in _calls(item))
    return tuple(filter(None, kinds))


def only_analyzes(item: pytest.Item) -> bool:
    """Return whether the source of *item* calls analyses of ours, and none of our assertions."""
    source = _source_of(item)
    verbs = set()
    for node in ast.walk(source.definition):
        if isinstance(node, ast.Call):
            called = _ours(node.func, source.names)
            if called is not None:
                verbs.add(called.__name__.partition("_")[0])
    return verbs == {"analyze"}


def _kind(call: _Call, scorers: Mapping[str, Any]) -> str | None:
    """Return the kind of outcome that *call* judges; None where neither it nor a scorer says."""
    if _misfit(call):
        arguments = call.keywords
    else:
        arguments = call.arguments
    if "four_fifths" in call.name:
        return str(OutcomeKind.BINARY)
    if arguments.get("kind", "auto") in tuple(OutcomeKind):
        return str(arguments["kind"])
    outcome = arguments.get("outcome", arguments.get("score"))
    if isinstance(outcome, str):
        outcome = scorers.get(outcome)
    kind = getattr(outcome, "kind", None)
    if kind is None:
        return None
    return str(OutcomeKind(kind))


# ---------------------------------------------------------------- reading the source


class _Unknown:
    """An argument whose value the source does not say."""


_UNKNOWN = _Unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A call of *function*: its arguments, those that the source says by value. ``frame`` is
    ``"whole"`` or ``"part"`` of the table of trials as it came, None where that is not known.
    """

    function: Callable[..., Any]
    line: int
    positional: Sequence[Any]
    keywords: Mapping[str, Any]
    frame: str | None

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def arguments(self) -> dict[str, Any]:
        return inspect.signature(self.function).bind(*self.positional, **self.keywords).arguments


class _Source(NamedTuple):
    """The source of a test: its *definition*, which begins at the line *start* of its file, and the
    *names* of its module, but those that it assigns itself (*local*).
    """

    definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
    start: int
    names: Mapping[str, Any]
    local: Collection[str]


def _source_of(item: pytest.Item) -> _Source:
    """Return the source of *item*; an empty one where a program made it, or another language."""
    function: Any = inspect.unwrap(getattr(item, "function", None))  # type: ignore[arg-type]
    definition, start = _definition(function)
    local = _assigned_names(definition)
    names = dict(getattr(function, "__globals__", {}))
    for name in local:
        names.pop(name, None)
    return _Source(definition, start, names, local)


def _calls(item: pytest.Item) -> Iterator[_Call]:
    """The calls of our assertions that the function of *item* makes whatever happens."""
    source = _source_of(item)
    constants = _constants(item, source)
    untouched = _is_ours(item) and not _is_touched(source)
    for node, loops in _unconditional(source.definition.body):
        called = _ours(node.func, source.names)
        if called is None or _unpacks(node):
            continue
        frame = None
        if untouched:
            frame = _frame(node)
        line = source.start + node.lineno - 1
        for variables in _rounds(loops):
            positional, keywords = _given(node, {**constants, **variables})
            yield _Call(
                function=called,
                line=line,
                positional=positional,
                keywords=keywords,
                frame=frame,
            )


def _constants(item: pytest.Item, source: _Source) -> dict[str, Any]:
    """Return what names in the *source* of *item* stand for: its parameters, and scorers of its
    module.
    """
    constants = parameters_by_name(item)
    for name in source.local:
        constants.pop(name, None)
    for name, value in source.names.items():
        if isinstance(value, Scorer):
            constants.setdefault(name, value)
    return constants


def _given(call: ast.Call, names: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return what *call* is given, by position and by name, where *names* have these values."""
    positional = [_value(argument, names) for argument in call.args]
    keywords = {}
    for keyword in call.keywords:
        keywords[str(keyword.arg)] = _value(keyword.value, names)
    return positional, keywords


def _unpacks(call: ast.Call) -> bool:
    """Return whether *call* is given arguments by ``*`` or ``**``."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return True
    return any(keyword.arg is None for keyword in call.keywords)


def _assigned_names(definition: ast.AST) -> set[str]:
    """Return the names that the body of *definition* assigns."""
    names = set()
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
    return names


@lru_cache(maxsize=1024)
def _definition(
    function: Callable[..., Any],
) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.Module, int]:
    """The syntax of *function* and its first line; an empty module where a program made it, or
    another language.
    """
    nothing = ast.Module(body=[], type_ignores=[])
    try:
        lines, start = inspect.getsourcelines(function)
        (definition,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return nothing, 0
    if isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return definition, start
    return nothing, 0


def parameters_by_name(item: pytest.Item) -> dict[str, Any]:
    """Return the parameters that *item* gets as they stand in its ``parametrize``, by no fixture."""
    parameters = {}
    for name, value in getattr(getattr(item, "callspec", None), "params", {}).items():
        fixtures = item_marks.fixtures_of(item, name)
        if fixtures and fixtures[-1].func.__module__.startswith("_pytest."):
            parameters[name] = value
    return parameters


def _is_ours(item: pytest.Item) -> bool:
    """Return whether *item* gets the table as our own fixture makes it, and no other fixture has it
    in its hands.
    """
    ours = item_marks.fixtures_of(item, FRAME)
    if not ours or ours[-1].func.__module__ != item_marks.FIXTURES:
        return False
    fixtures = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    for definitions in fixtures.values():
        if any(FRAME in definition.argnames for definition in definitions):
            return False
    return True


def _unconditional(
    body: Sequence[ast.stmt], loops: Mapping[str, Sequence[Any]] = MappingProxyType({})
) -> Iterator[tuple[ast.Call, Mapping[str, Sequence[Any]]]]:
    """The calls that are statements of *body*, or all of what a statement assigns, returns or
    asserts; those in loops over constants with the variables of their *loops*, and their values.
    """
    for statement in body:
        if (
            isinstance(statement, ast.For)
            and _is_constant(statement.iter)
            and isinstance(statement.target, ast.Name)
        ):
            variable = {statement.target.id: ast.literal_eval(statement.iter)}
            yield from _unconditional(statement.body, {**loops, **variable})
        evaluated = "value"
        if isinstance(statement, ast.Assert):
            evaluated = "test"
        value = getattr(statement, evaluated, None)
        if isinstance(value, ast.Call) and not isinstance(statement, ast.AugAssign):
            yield value, loops
        if isinstance(statement, (ast.Return, ast.Raise)):
            return


def _is_constant(node: ast.expr) -> bool:
    """Return whether *node* is a list of constants."""
    if not isinstance(node, (ast.Tuple, ast.List)):
        return False
    return all(isinstance(element, ast.Constant) for element in node.elts)


def _rounds(loops: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield what the variables of *loops* are, round by round; one round without any."""
    for values in product(*loops.values()):
        yield dict(zip(loops, values, strict=True))


def _ours(node: ast.expr, names: Mapping[str, Any]) -> Callable[..., Any] | None:
    """The assertion or analysis of ours that *node* names among the globals *names*."""
    function = None
    if isinstance(node, ast.Name):
        function = names.get(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module = names.get(node.value.id)
        if getattr(module, "__name__", "") == "pytest_fairness":
            function = getattr(module, node.attr, None)
    if _is_public_analysis(function):
        return function
    return None


def _is_public_analysis(function: object) -> TypeGuard[Callable[..., Any]]:
    """Return whether *function* is one of our assertions or analyses."""
    if not inspect.isfunction(function):
        return False
    if not function.__name__.startswith(("assert_", "analyze_")):
        return False
    module = function.__module__ or ""
    return module.startswith(("pytest_fairness.asserts", "pytest_fairness.analysis."))


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return what *node* stands for: one of *names*, or a literal; unknown for anything else."""
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _UNKNOWN


def _frame(call: ast.Call) -> str | None:
    """Return how much of the trials *call* is given: all, or those that a comparison chooses."""
    candidates = call.args[:1]
    for keyword in call.keywords:
        if keyword.arg == "frame":
            candidates.append(keyword.value)
    if not candidates:
        return None
    node = candidates[0]
    if _is_table(node):
        return "whole"
    if not isinstance(node, ast.Subscript) or not _is_table(node.value):
        return None
    if isinstance(node.slice, (ast.Compare, ast.BinOp)):
        return "part"
    return None


def _is_touched(source: _Source) -> bool:
    """Return whether anything but our own functions could change the table: it is handed on, or
    something is put into it.
    """
    uses = set[int]()
    harmless = set[int]()
    methods = set[int]()
    for node in ast.walk(source.definition):  # a call comes before what it calls
        if isinstance(node, ast.Call):
            methods.add(id(node.func))
            if _only_reads(node, source.names):
                harmless.update(map(id, _arguments(node)))
        elif _is_table(node):
            uses.add(id(node))
        elif id(node) not in methods and _is_looked_up(node):
            harmless.add(id(node.value))
    return not uses <= harmless


def _is_table(node: ast.AST) -> bool:
    """Return whether *node* is the name of the table."""
    return isinstance(node, ast.Name) and node.id == FRAME


def _only_reads(call: ast.Call, names: Mapping[str, Any]) -> bool:
    """Return whether *call* changes nothing that it is given."""
    if isinstance(call.func, ast.Name) and call.func.id in _READERS:
        return True
    return _ours(call.func, names) is not None


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _is_looked_up(node: ast.AST) -> TypeGuard[ast.Attribute | ast.Subscript]:
    """Return whether *node* reads an attribute or an entry by which nothing is put into a table."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Load) and node.attr not in _PLACES
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)


# ---------------------------------------------------------------- holding it against the design


def _misfit(call: _Call) -> str | None:
    """Why *call* does not fit the signature of what it calls."""
    parameters = inspect.signature(call.function).parameters
    for name in call.keywords:
        if name not in parameters:
            return f"there is no argument {name!r}{_instead(name, parameters)}"
    try:
        _ = call.arguments
    except TypeError as error:
        return str(error)
    return None


def _instead(name: str, names: Collection[str]) -> str:
    """Return which of *names* is meant by *name*, or all of them."""
    return did_you_mean(name, names) or f" (there are: {listed(names)})"


class _Design:
    """The columns and classes that the table of trials is going to have."""

    def __init__(
        self, planned: Planned, tier: int, scorers: Callable[[], Mapping[str, Any]]
    ) -> None:
        self._planned = planned
        self._tier = tier
        self._scorers = scorers

    def problems(self, call: _Call) -> Iterator[str]:
        """Yield why *call* cannot be right: as it is written, and on such a table."""
        misfit = _misfit(call)
        if misfit is not None:
            yield misfit
        elif call.frame is not None:
            for name, value in call.arguments.items():
                yield from self._of_argument(call, name, value)

    def _of_argument(self, call: _Call, name: str, value: Any) -> Iterator[str]:
        """Yield why *value* cannot be right as the argument *name* of *call*."""
        arguments = call.arguments
        if name in _OUTCOMES and arguments.get("scorers") is None:
            outcomes: Sequence[Any] = [value]
            if call.name in _OF_SEVERAL:
                outcomes = columns_named(value)
            for outcome in outcomes:
                yield from self._of_outcome(name, outcome)
        elif name in _COLUMNS and call.name not in _OF_CHOICES:
            yield from self._of_columns(name, columns_named(value), whole=call.frame == "whole")
        elif name == "reference":
            yield from self._of_reference(value, arguments.get("by"))
        elif name in _OF_TABLES and value is not None:
            yield of_trials(name, value)

    def _of_outcome(self, argument: str, value: Any) -> Iterator[str]:
        """Yield why *value* is no outcome."""
        if isinstance(value, (list, tuple, dict, set, int, float)):
            yield (
                f"{argument}={value!r}: give one column, the name of a scorer, or a function of "
                "the reply"
            )
        elif isinstance(value, str) and value not in self._scorers() and not self.has(value):
            yield unknown_outcome(value, self.columns, self._scorers(), argument)

    def _of_columns(self, argument: str, columns: Sequence[Any], *, whole: bool) -> Iterator[str]:
        """Yield why some of the *columns* cannot be compared."""
        for column in columns:
            if isinstance(column, str) and not self.has(column):
                yield self._unknown_column(argument, column)
        if argument == "by" and whole and len(columns) == 1:
            yield from self._of_class(str(columns[0]))

    def _unknown_column(self, argument: str, column: str) -> str:
        """Say that *column* is none of the table, and which may be meant."""
        if argument == "by" and column in self._scorers():
            return (
                f"{argument}={column!r} names a scorer and is no column of the trials; outcome and "
                "by are swapped"
            )
        there = _instead(column, self.columns)
        return f"{argument}={column!r} is no column of the trials{there}"

    def _of_class(self, protected: str) -> Iterator[str]:
        """Yield why the groups of *protected* cannot be compared."""
        groups = self._groups(protected)
        if len(groups) == 1 and None not in groups:
            yield f"{protected!r} has one group only ({groups[0]!r}): a comparison needs two"

    def _of_reference(self, value: Any, by: Any) -> Iterator[str]:
        """Yield why *value* is no group of *by*, as far as the groups are there."""
        if isinstance(by, str) and isinstance(value, str):
            groups = list(filter(None, self._groups(by)))
            if groups and value not in groups:
                yield f"reference={value!r} is no group of {by!r}{_instead(value, groups)}"

    def _groups(self, protected: str) -> list[str | None]:
        """Return the groups of *protected*, None where somebody has none; of pairs nothing."""
        grid = self._planned.grid
        if not isinstance(grid, Grid):
            return []
        return list(dict.fromkeys(unit.groups.get(protected) for unit in grid.units))

    def has(self, column: str) -> bool:
        """Return whether the table has *column*, as far as anybody can know before it is there."""
        return (
            column in self._first or len(self._planned.grid) > _MOST_CELLS or column in self.columns
        )

    @cached_property
    def _first(self) -> frozenset[str]:
        """Some of the columns that are known without making a table."""
        cell: Cell = self._planned.cell(0)
        return frozenset((*cell.groups, *cell.context, *cell.attributes, "template", "name"))

    @cached_property
    def columns(self) -> list[str]:
        """All columns, made of trials that were never run."""
        planned = self._planned
        trial = Trial(key="", repetition=0, status=Status.NOT_RUN)
        # Choices have the same columns throughout, and a table of them is large.
        cells = 1
        if not isinstance(planned, PlannedPairs):
            cells = len(planned.grid)
        entries = planned.entries(self._tier, range(cells))
        frame = trials_frame(
            [(entry.cell, trial) for entry in entries], EndpointFacts(name="", simulated=False)
        )
        columns = [*map(str, planned.table(frame).columns), "requests", *planned.script_columns]
        for entry in entries:
            if entry.script is not None:
                columns += entry.script.columns(entry.cell, trial)
        if planned.temperatures:
            columns.append("temperature")
        columns += [REFUSED_FIRST, DISCLAIMS, ONE_MESSAGE, EMPTY_FIRST, ELICITED_BY]
        return list(dict.fromkeys(columns))
