"""Estimate of requests, cost and time of a session, before the first call is paid for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_fairness.analysis.false_alarms import ALPHA
from pytest_fairness.context import RunContext, Settings
from pytest_fairness.design.grid import Grid
from pytest_fairness.design.pairs import PairGrid
from pytest_fairness.endpoints.protocol import Endpoint, Price
from pytest_fairness.engine.scripts import Escalation, Pipeline
from pytest_fairness.pytest_layer import collection, marks
from pytest_fairness.pytest_layer.assertion_calls import outcome_kinds
from pytest_fairness.pytest_layer.plans import Planned, PlannedCell, parameters_of
from pytest_fairness.runs.money import UNLIMITED_OUTPUT, output_limit
from pytest_fairness.scorers.scorer import SHORT_REPLY

if TYPE_CHECKING:
    from pytest_fairness.analysis.planning import DesignPower

LATENCY = 2.0
"""Seconds a request takes, about."""
_BYTES_A_TOKEN = 4
"""A rule of thumb for English text; other scripts take more tokens a byte."""
_TOKENS_A_MESSAGE = 4
"""A message's role and separators, about; at the most 16."""
_REPLY_TOKENS = 200
"""Tokens of a usual reply, where neither a scorer nor a parameter says fewer."""


class Requests(NamedTuple):
    """Requests to an endpoint: how many, messages and UTF-8 bytes in them, and earlier replies sent
    along.
    """

    requests: float = 0
    messages: float = 0
    text: float = 0
    replies: float = 0

    def plus(self, other: Requests, factor: float = 1) -> Requests:
        return Requests(
            self.requests + factor * other.requests,
            self.messages + factor * other.messages,
            self.text + factor * other.text,
            self.replies + factor * other.replies,
        )

    def input_tokens(self, reply_tokens: int) -> int:
        """Tokens sent, about: texts, what separates messages, and earlier replies."""
        return int(
            self.text / _BYTES_A_TOKEN
            + _TOKENS_A_MESSAGE * self.messages
            + reply_tokens * self.replies
        )

    def usual_cost(self, price: Price, reply_tokens: int) -> float:
        """Dollars, with replies of *reply_tokens*."""
        return self._cost(price, self.input_tokens(reply_tokens), reply_tokens)

    def most_cost(self, price: Price, longest: int) -> float:
        """Dollars at the most: replies of *longest* tokens, and a byte a token, as the account has
        it.
        """
        return self._cost(price, self.text + 16 * self.messages + self.replies * longest, longest)

    def _cost(self, price: Price, sent: float, reply: int) -> float:
        tokens = sent * price.input_per_million + self.requests * reply * price.output_per_million
        return tokens / 1_000_000 + self.requests * price.per_call


def dollars(amount: float) -> str:
    if amount >= 0.01 or not amount:
        return f"${amount:,.2f}"
    return f"${amount:.4f}"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60):,} min"
    return f"{seconds / 3600:,.1f} h"


def requests_of(entry: PlannedCell) -> tuple[Requests, Requests]:
    """The fewest and the most requests that one trial of *entry* makes.

    A conversation sends its earlier turns and their replies again with each turn. A pipeline gives
    each step the reply to the one before. Of strategies, the first may do, or all may be tried.
    """
    cell = entry.cell
    script = entry.script
    if isinstance(script, Pipeline):
        steps = _steps(script, cell.turns)
        return steps, steps
    ladder = [cell.turns]
    if isinstance(script, Escalation):
        ladder = [strategy.turns for strategy in script.strategies]
    tries = [_conversation(cell.system, turns) for turns in ladder]
    most = Requests()
    for requests in tries:
        most = most.plus(requests)
    return tries[0], most


def _steps(script: Pipeline, turns: Sequence[str]) -> Requests:
    """Return the requests of the steps of *script*."""
    requests = Requests()
    for number, (system, turn) in enumerate(zip(script.systems, turns, strict=False)):
        messages = 1
        if system is not None:
            messages = 2
        earlier = min(number, 1)
        requests = requests.plus(Requests(1, messages, _size(turn) + _size(system), earlier))
    return requests


def _conversation(system: str | None, turns: tuple[str, ...]) -> Requests:
    messages = replies = sent = 0
    text = _size(system)
    for earlier, turn in enumerate(turns):
        text += _size(turn)
        sent += text
        messages += 2 * earlier + 1 + (system is not None)
        replies += earlier
    return Requests(len(turns), messages, sent, replies)


def _size(text: str | None) -> int:
    if text is None:
        return 0
    if text.isascii():
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))


class Shape(NamedTuple):
    """Of a protected class: its groups, and the names (or personas) and trials of the group that
    has the fewest.
    """

    groups: int
    names: int
    trials: int


def shapes(grid: Grid | PairGrid, *, swapped: bool) -> dict[str, Shape]:
    """The classes of a grid; *swapped*: those alone that it swaps, while everything else stays.
    None of pairs.
    """
    if not isinstance(grid, Grid):
        return {}
    clusters: dict[str, dict[str, list[str | None]]] = {}
    for unit in grid.units:
        groups = unit.groups
        if swapped:
            groups = unit.swapped
        for by, group in groups.items():
            clusters.setdefault(by, {}).setdefault(group, []).append(unit.cluster)
    return {by: _shape(grid, list(groups.values())) for by, groups in clusters.items()}


def _shape(grid: Grid, groups: Sequence[Sequence[str | None]]) -> Shape:
    """Return the shape of a class of *grid* whose *groups* have these clusters, one a unit."""
    fewest_units = min(len(clusters) for clusters in groups)
    return Shape(
        groups=len(groups),
        names=min(len(set(clusters) - {None}) for clusters in groups),
        trials=max(1, int(fewest_units * grid.calls / len(grid.units))),
    )


def power_of(
    grid: Grid | PairGrid, shape: Shape, temperature: object, **assumed: Any
) -> DesignPower:
    """Return what *grid* can find out about the class of that *shape*; *assumed* of its outcome."""
    from pytest_fairness.analysis.planning import assess_design

    templates = len(grid.templates)
    repeats = temperature == 0
    return assess_design(
        **shape._asdict(),
        templates=templates,
        repetitions=grid.repetitions,
        repeats=repeats,
        **assumed,
    )


class _MeasuredCell(NamedTuple):
    """A cell by what is sent for it, and in how many requests."""

    sent: int
    is_of_the_test: bool
    asks_others: bool
    few: Requests
    most: Requests

    @classmethod
    def of(cls, entry: PlannedCell) -> _MeasuredCell:
        cell = entry.cell
        script = entry.script
        how: Any = None
        if isinstance(script, Escalation):
            how = script.strategies, script.version
        elif script is not None:
            how = repr(script.identity())
        # Not the texts themselves: those of a large suite would fill the memory.
        sent = hash((cell.system, cell.turns, cell.arm, entry.first, id(entry.system), how))
        return cls(sent, entry.system is None, entry.asks_others, *requests_of(entry))

    def added_to(
        self, requests: tuple[Requests, Requests], factor: float
    ) -> tuple[Requests, Requests]:
        """Return the fewest and the most *requests*, with those of this cell times *factor*."""
        if not factor:
            return requests
        few, most = requests
        return few.plus(self.few, factor), most.plus(self.most, factor)


def _measured(
    planned: Planned, tiers: Iterable[int], indices: Sequence[int]
) -> dict[int, list[_MeasuredCell]]:
    """The cells at *indices* as each of *tiers* sends them."""
    return {tier: list(map(_MeasuredCell.of, planned.entries(tier, indices))) for tier in tiers}


@dataclass(frozen=True, slots=True, kw_only=True)
class TestEstimate:
    """Estimate of the requests of one test, at one tier and temperature, to one endpoint.

    ``endpoint`` is the name of that of the settings which it asks, unless it brings a system of its
    own. ``shared`` of its ``trials`` are those of tests before it: a run asks each once, and they
    are in no requests. ``configured`` are the fewest requests to the endpoint of the settings, and
    the most, if every strategy is tried; ``brought`` those to a system of the test's own, whose price
    only the test knows. ``reply_tokens`` are those of a
    usual reply, ``longest_reply`` the most. ``kinds`` are those of the outcomes that it is known to
    judge.
    """

    __test__ = False  # not a test class, whatever its name says to pytest

    test: str
    endpoint: str
    tier: int
    temperature: float | None
    items: int
    cells: int
    trials: int
    shared: int
    configured: tuple[Requests, Requests]
    brought: tuple[Requests, Requests]
    reply_tokens: int
    longest_reply: int
    planned: Planned
    alpha: float = ALPHA
    kinds: tuple[str, ...] = ()

    @property
    def new(self) -> int:
        """Trials that no test before it asks."""
        return self.trials - self.shared

    def requests(self, *, replaced: bool) -> tuple[Requests, Requests]:
        """Return the requests to be expected, and the most."""
        few, most = (
            configured.plus(other, replaced)
            for configured, other in zip(self.configured, self.brought, strict=True)
        )
        return few, most


def estimates(
    context: RunContext,
    items: Sequence[pytest.Item],
    grids: Mapping[collection.Key, Planned],
    endpoints: Mapping[str, Endpoint],
    *,
    sample: int | None = None,
    reply_tokens: int | None = None,
) -> Iterator[TestEstimate]:
    """Yield what each fairness test among *items* is going to ask; *endpoints* are those of the
    settings that are known.

    Requests are counted on about *sample* cells of each design, if given, so that a grid of a
    million cells is not expanded to be announced. *reply_tokens* are those of a usual reply, where
    somebody knows better.
    """
    count = _Count(grids, collection.selected_cells(items), sample)
    selections = collection.active_items(items, grids)
    for selection, members in selections.items():
        item = members[0]
        planned = grids[selection.key]
        asked = selection.endpoint or context.settings.endpoints[0]
        parameters: dict[str, Any] = parameters_of(planned, selection.temperature)
        tiers = {other.tier for other in selections if other.key == selection.key}
        counted = count.requests(selection, item, parameters, tiers)
        longest = _longest_reply(endpoints.get(asked), parameters)
        usual = reply_tokens or _usual_reply(item, planned, context.scorers)
        yield TestEstimate(
            test="::".join(selection.key),
            endpoint=asked,
            tier=selection.tier,
            temperature=parameters.get("temperature"),
            items=len(members),
            cells=counted.cells,
            trials=counted.cells * planned.grid.repetitions,
            shared=counted.shared,
            configured=counted.configured,
            brought=counted.brought,
            reply_tokens=min(usual, longest),
            longest_reply=longest,
            planned=planned,
            alpha=collection.level_of(item) or ALPHA,
            kinds=_kinds(item, planned, context.scorers),
        )


def _longest_reply(endpoint: Endpoint | None, parameters: Mapping[str, Any]) -> int:
    """Return the most tokens that a reply of *endpoint* may have."""
    defaults: Mapping[str, Any] = {}
    if endpoint is not None:
        defaults = endpoint.default_parameters
    limit = output_limit({**defaults, **parameters})
    if limit is None:
        return UNLIMITED_OUTPUT
    return limit


class _RequestsOfTest(NamedTuple):
    """The requests of one test: fewest and most, to the endpoint of the settings and to a system of
    its own; ``whole``: it asks all cells of its design.
    """

    cells: int
    whole: bool
    shared: int
    configured: tuple[Requests, Requests]
    brought: tuple[Requests, Requests]


class _Count:
    """Counts what tests ask one after another: a trial that an earlier one asks is asked once.

    *cellwise* are the cells that are asked one by one, *sample* as for :func:`estimates`.
    """

    def __init__(
        self,
        grids: Mapping[collection.Key, Planned],
        cellwise: Mapping[collection.Selection, tuple[int, ...]],
        sample: int | None,
    ) -> None:
        self._grids = grids
        self._cellwise = cellwise
        self._sample = sample
        self._asked: dict[Any, int] = {}
        self._measured: dict[Any, list[_MeasuredCell]] = {}

    def requests(
        self,
        selection: collection.Selection,
        item: pytest.Item,
        parameters: Mapping[str, Any],
        tiers: Iterable[int],
    ) -> _RequestsOfTest:
        """Count the requests of *item*, by its *selection*; its design is asked at *tiers*."""
        planned = self._grids[selection.key]
        cells = self._cellwise.get(selection)
        chosen: Sequence[int] = range(len(planned.grid))
        if cells is not None:
            chosen = cells
        measured = self._cells(selection, chosen, {selection.tier, *tiers})
        repetitions = planned.grid.repetitions
        share = len(chosen) / max(1, len(measured))
        brings = brings_its_own(item)
        system = _system_of(item)
        settings = repr(sorted(parameters.items()))
        configured = brought = (Requests(), Requests())
        before = 0
        for cell in measured:
            place = system, cell.is_of_the_test and selection.endpoint, settings, cell.sent
            done = min(self._asked.get(place, 0), repetitions)
            self._asked[place] = max(self._asked.get(place, 0), repetitions)
            before += done
            factor = share * (repetitions - done)
            if brings or cell.asks_others:
                brought = cell.added_to(brought, factor)
            else:
                configured = cell.added_to(configured, factor)
        return _RequestsOfTest(
            len(chosen), cells is None, round(share * before), configured, brought
        )

    def _cells(
        self, selection: collection.Selection, chosen: Sequence[int], tiers: Iterable[int]
    ) -> list[_MeasuredCell]:
        """Return the *chosen* cells of *selection*, or a sample of them; every temperature and
        every endpoint is asked the same texts.
        """
        key = selection.key
        cells = self._cellwise.get(selection)
        if (key, selection.tier, cells) not in self._measured:
            step = 1
            if self._sample is not None:
                step = max(1, len(chosen) // self._sample)
            measured = _measured(self._grids[key], tiers, chosen[::step])
            for tier, of_tier in measured.items():
                self._measured[key, tier, cells] = of_tier
        return self._measured[key, selection.tier, cells]


def brings_its_own(item: pytest.Item) -> bool:
    """Return whether the project overrides the ``endpoint`` fixture: then only the test knows what
    is asked.
    """
    return any(
        fixture.func.__module__ != marks.FIXTURES
        for fixture in marks.fixtures_of(item, "endpoint")[-1:]
    )


def _system_of(item: pytest.Item) -> str:
    """Return what tells the system under test of one test from that of another: the ``endpoint``
    fixture that it gets.
    """
    return " ".join(
        f"{fixture.baseid} {fixture.func.__module__}"
        for fixture in marks.fixtures_of(item, "endpoint")
    )


def chance_of_red(
    settings: Settings, items: Sequence[pytest.Item], grids: Mapping[collection.Key, Planned]
) -> float:
    """Return how often alarms of *items* turn a session of a fair system red, at most: of those that
    ask for the trials of a design; 0 without any.
    """
    asks = any(collection.grid_key(item) in grids and marks.asks_for_trials(item) for item in items)
    if asks:
        return settings.session_alpha
    return 0.0


def _usual_reply(item: pytest.Item, planned: Planned, scorers: Mapping[str, Any]) -> int:
    """Tokens of a usual reply: the most that a scorer asks for which the design or the code of the
    test names.

    A choice between candidates is a name. Nobody knows beforehand which scorers a test calls by
    other means, such as a fixture; without any the reply is taken to be a letter.
    """
    if planned.tiers_by_arm:
        return SHORT_REPLY
    lengths = (
        scorer.reply_tokens or _REPLY_TOKENS for scorer in _named_scorers(item, planned, scorers)
    )
    return max(lengths, default=_REPLY_TOKENS)


def _kinds(item: pytest.Item, planned: Planned, scorers: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of outcome that *item* judges, by its calls, else by the scorers that it names; of
    choices none.
    """
    if planned.tiers_by_arm:
        return ()
    named = (
        scorer.kind for scorer in _named_scorers(item, planned, scorers) if scorer.kind is not None
    )
    return outcome_kinds(item, scorers) or tuple(dict.fromkeys(map(str, named)))


def _named_scorers(item: pytest.Item, planned: Planned, scorers: Mapping[str, Any]) -> list[Any]:
    """The scorers that the design or the code of the test names."""
    function = getattr(item, "function", None)
    names = list(_strings(getattr(function, "__code__", None)))
    if planned.ladder is not None and isinstance(planned.ladder.scorer, str):
        names.insert(0, planned.ladder.scorer)
    return [scorers[name] for name in names if name in scorers]


def _strings(value: Any) -> Iterator[str]:
    """The strings among the constants of code, those of functions within it included."""
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, (tuple, frozenset)) else getattr(value, "co_consts", ()):
        yield from _strings(part)
