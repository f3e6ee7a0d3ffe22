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
from typing import TYPE_CHECKING, Any, TypeGuard

from pytest_fairness.design.grid import Grid
from pytest_fairness.errors import did_you_mean, of_trials
from pytest_fairness.model import Cell, OutcomeKind, Status, Trial
from pytest_fairness.pytest_layer import marks
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
_OF_TABLES = frozenset({"each", "within"})
#: Analyses whose ``by`` names a class and no column.
_OF_CHOICES = frozenset(
    {"assert_no_preference", "analyze_preference", "assert_arm_reduces_disparity", "analyze_arms"}
)
#: Analyses that take a list of outcomes as one family.
_OF_SEVERAL = frozenset({"assert_no_disparity", "analyze_disparity"})
_NOT_JUDGED = frozenset({"skip", "skipif", "xfail"})
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
    function = getattr(item, "function", None)
    if (
        planned is None
        or function is None
        or any(item.get_closest_marker(name) for name in _NOT_JUDGED)
    ):
        return []
    design = _Design(planned, tier, scorers)
    lines = []
    for call in _calls(item, function):
        why = _misfit(call)
        if why is None and call.frame is not None:
            why = design.problem(call)
        if why is not None:
            lines.append(f"{item.location[0]}:{call.line}: {call.name}: {why}")
    return lines


def outcome_kinds(item: pytest.Item, scorers: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of outcome that *item* judges, each once, as far as its calls say them or name a
    scorer.
    """
    function = getattr(item, "function", None)
    if function is None:
        return ()
    kinds: dict[str, None] = {}
    for call in _calls(item, function):
        kind = _kind(call, scorers)
        if kind is not None:
            kinds[kind] = None
    return tuple(kinds)


def only_analyzes(item: pytest.Item) -> bool:
    """Return whether the source of *item* calls analyses of ours, and none of our assertions."""
    function = getattr(item, "function", None)
    if function is None:
        return False
    function = inspect.unwrap(function)
    definition, _ = _definition(function)
    if definition is None:
        return False
    local = _assigned_names(definition)
    names = set()
    for node in ast.walk(definition):
        if isinstance(node, ast.Call):
            called = _ours(node.func, function.__globals__, local)
            if called is not None:
                names.add(called.__name__)
    return bool(names) and not any(name.startswith("assert_") for name in names)


def _kind(call: _Call, scorers: Mapping[str, Any]) -> str | None:
    if _misfit(call):
        arguments = call.keywords
    else:
        arguments = call.arguments
    if "four_fifths" in call.name:
        return str(OutcomeKind.BINARY)
    if arguments.get("kind", "auto") in tuple(OutcomeKind):
        return str(arguments["kind"])
    outcome = next((arguments[name] for name in _OUTCOMES if name in arguments), None)
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


def _calls(item: pytest.Item, function: Callable[..., Any]) -> Iterator[_Call]:
    """The calls of our assertions that the body of *function* makes whatever happens."""
    function = inspect.unwrap(function)
    definition, start = _definition(function)
    if definition is None:
        return
    names = function.__globals__
    local = _assigned_names(definition)
    given = {name: value for name, value in names.items() if isinstance(value, Scorer)}
    given |= parameters_by_name(item)
    constants = {name: value for name, value in given.items() if name not in local}
    untouched = _is_ours(item) and not _is_touched(definition, names)
    for node, loops in _unconditional(definition.body):
        called = _ours(node.func, names, local)
        if called is None or _unpacks(node):
            continue
        frame = None
        if untouched:
            frame = _frame(node)
        line = start + node.lineno - 1
        for variables in _rounds(loops):
            positional, keywords = _given(node, {**constants, **variables})
            yield _Call(
                function=called,
                line=line,
                positional=positional,
                keywords=keywords,
                frame=frame,
            )


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
) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef | None, int]:
    """The syntax of *function* and its first line; None where a program made it, or another
    language.
    """
    try:
        lines, start = inspect.getsourcelines(function)
        (definition,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None, 0
    if isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return definition, start
    return None, 0


def parameters_by_name(item: pytest.Item) -> dict[str, Any]:
    """Return the parameters that *item* gets as they stand in its ``parametrize``, by no fixture."""
    parameters = {}
    for name, value in getattr(getattr(item, "callspec", None), "params", {}).items():
        fixtures = marks.fixtures_of(item, name)
        if fixtures and fixtures[-1].func.__module__.startswith("_pytest."):
            parameters[name] = value
    return parameters


def _is_ours(item: pytest.Item) -> bool:
    """Return whether *item* gets the table as our own fixture makes it, and no other fixture has it
    in its hands.
    """
    ours = marks.fixtures_of(item, FRAME)
    if not ours or ours[-1].func.__module__ != marks.FIXTURES:
        return False
    fixtures = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    for definitions in fixtures.values():
        if any(FRAME in definition.argnames for definition in definitions):
            return False
    return True


def _unconditional(
    body: Sequence[ast.stmt], loops: tuple[ast.For, ...] = ()
) -> Iterator[tuple[ast.Call, tuple[ast.For, ...]]]:
    """The calls that are statements of *body*, or all of what a statement assigns, returns or
    asserts; those in loops over constants with their *loops*.
    """
    for statement in body:
        if (
            isinstance(statement, ast.For)
            and _is_constant(statement.iter)
            and isinstance(statement.target, ast.Name)
        ):
            yield from _unconditional(statement.body, (*loops, statement))
        value = getattr(statement, "test" if isinstance(statement, ast.Assert) else "value", None)
        if isinstance(value, ast.Call) and not isinstance(statement, ast.AugAssign):
            yield value, loops
        if isinstance(statement, (ast.Return, ast.Raise)):
            return


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, (ast.Tuple, ast.List)) and all(
        isinstance(element, ast.Constant) for element in node.elts
    )


def _rounds(loops: Sequence[ast.For]) -> Iterator[dict[str, Any]]:
    """Yield what the variables of *loops* are, round by round; one round without any."""
    if not loops:
        yield {}
        return
    first, *rest = loops
    for value in ast.literal_eval(first.iter):
        for inner in _rounds(rest):
            yield {getattr(first.target, "id", ""): value, **inner}


def _ours(
    node: ast.expr, names: Mapping[str, Any], local: Collection[str]
) -> Callable[..., Any] | None:
    """The assertion or analysis of ours that *node* names among the globals *names*."""
    function = None
    if isinstance(node, ast.Name) and node.id not in local:
        function = names.get(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module = names.get(node.value.id)
        if node.value.id not in local and getattr(module, "__name__", "") == "pytest_fairness":
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


def _is_touched(definition: ast.AST, names: Mapping[str, Any]) -> bool:
    """Return whether anything but our own functions could change the table: it is handed on, or
    something is put into it.
    """
    uses = set[int]()
    harmless = set[int]()
    methods = set[int]()
    for node in ast.walk(definition):  # a call comes before what it calls
        if isinstance(node, ast.Call):
            methods.add(id(node.func))
            if _only_reads(node, names):
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
    return _ours(call.func, names, ()) is not None


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

    def problem(self, call: _Call) -> str | None:
        """Why *call* cannot be right on such a table."""
        arguments = call.arguments
        scorers = arguments.get("scorers")
        for name, value in arguments.items():
            why = None
            if name in _OUTCOMES and scorers is None:
                why = self._of_outcome(name, value, several=call.name in _OF_SEVERAL)
            elif name in _COLUMNS and call.name not in _OF_CHOICES:
                why = self._of_columns(name, value, whole=call.frame == "whole")
            elif name == "reference" and value is not None:
                why = self._of_reference(value, arguments.get("by"))
            elif name in _OF_TABLES and value is not None:
                why = of_trials(name, value)
            if why is not None:
                return why
        return None

    def _of_outcome(self, argument: str, value: Any, *, several: bool) -> str | None:
        """Why *value* is no outcome; a list of outcomes is one where *several* make a family."""
        if isinstance(value, (list, tuple)) and several:
            for outcome in value:
                why = self._of_outcome(argument, outcome, several=False)
                if why is not None:
                    return why
            return None
        if isinstance(value, (list, tuple, dict, set, int, float)):
            return (
                f"{argument}={value!r}: give one column, the name of a scorer, or a function of "
                "the reply"
            )
        readable = not isinstance(value, str) or value in self._scorers() or self.has(value)
        if readable:
            return None
        return unknown_outcome(value, self.columns, self._scorers(), argument)

    def _of_columns(self, argument: str, value: Any, *, whole: bool) -> str | None:
        """Why one of the columns *value* cannot be compared."""
        columns = [value]
        if isinstance(value, (list, tuple)):
            columns = list(value)
        for column in columns:
            if isinstance(column, str) and not self.has(column):
                return self._unknown_column(argument, column)
        if argument == "by" and whole and len(columns) == 1:
            return self._of_class(str(columns[0]))
        return None

    def _unknown_column(self, argument: str, column: str) -> str:
        if argument == "by" and column in self._scorers():
            return (
                f"{argument}={column!r} names a scorer and is no column of the trials; outcome and "
                "by are swapped"
            )
        there = _instead(column, self.columns)
        return f"{argument}={column!r} is no column of the trials{there}"

    def _of_class(self, protected: str) -> str | None:
        """Why the groups of *protected* cannot be compared."""
        groups = self._groups(protected)
        if len(groups) != 1 or None in groups:
            return None
        return f"{protected!r} has one group only ({groups[0]!r}): a comparison needs two"

    def _of_reference(self, value: Any, by: Any) -> str | None:
        if not isinstance(by, str) or not isinstance(value, str):
            return None
        groups = list(filter(None, self._groups(by)))
        if not groups or value in groups:
            return None
        return f"reference={value!r} is no group of {by!r}{_instead(value, groups)}"

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
