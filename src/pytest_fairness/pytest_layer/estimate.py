"""Estimate of requests, cost and time of a session, before the first call is paid for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_fairness.analysis.expected_looks import FEWEST_TRIALS, LookedDesign, expectation
from pytest_fairness.analysis.false_alarms import ALPHA
from pytest_fairness.analysis.looks import LookPlan, budget
from pytest_fairness.context import EVERY_STAGE, RunContext, Settings
from pytest_fairness.design.answer_forms import without_sentence
from pytest_fairness.design.grid import Grid
from pytest_fairness.design.pairs import PairGrid
from pytest_fairness.design.series import PILOT
from pytest_fairness.design.stages import Stages
from pytest_fairness.endpoints.protocol import Endpoint, Price
from pytest_fairness.engine.scripts import Escalation, Pipeline
from pytest_fairness.model import Cell, Elicitation, OutcomeKind
from pytest_fairness.pytest_layer import collection, item_marks
from pytest_fairness.pytest_layer.assertion_calls import (
    only_analyzes,
    outcome_kinds,
    parameters_by_name,
)
from pytest_fairness.pytest_layer.plans import (
    Planned,
    PlannedCell,
    elicitation_of,
    parameters_of,
)
from pytest_fairness.runs.designs import Script
from pytest_fairness.runs.money import UNLIMITED_OUTPUT, output_limit
from pytest_fairness.scorers.reading_turn import ORDERS
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
_READING_TOKENS, _READ_TOKENS = 300, 20
"""Tokens of a reading turn beside the reply that is read, and of its answer, about."""
_PRICED_NAMES = 2
"""Names a group whose cells stand for those of all names, where a design is asked in stages."""


class Requests(NamedTuple):
    """Requests to an endpoint: how many, messages and UTF-8 bytes in them, and earlier replies sent
    along; ``form`` are those bytes of the text that ask for an answer by form or by line.
    """

    requests: float = 0
    messages: float = 0
    text: float = 0
    replies: float = 0
    form: float = 0

    def plus(self, other: Requests, factor: float = 1) -> Requests:
        """Return these requests and *factor* times the *other* ones."""
        return Requests(
            self.requests + factor * other.requests,
            self.messages + factor * other.messages,
            self.text + factor * other.text,
            self.replies + factor * other.replies,
            self.form + factor * other.form,
        )

    def with_form(self, plain: Requests, schema: int) -> Requests:
        """Return these requests, of which those that are *plain* do not ask for a form, with a
        schema of so many bytes.
        """
        asking = self.text - plain.text + schema
        return self._replace(text=self.text + schema, form=asking)

    @property
    def form_tokens(self) -> int:
        """Tokens that ask for an answer by form or by line, about."""
        return int(self.form / _BYTES_A_TOKEN)

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
        """Return the dollars of so many tokens *sent*, and *reply* tokens a request."""
        tokens = sent * price.input_per_million + self.requests * reply * price.output_per_million
        return tokens / 1_000_000 + self.requests * price.per_call


def duration(seconds: float) -> str:
    """Return *seconds* in the largest unit that leaves a number worth reading."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60):,} min"
    return f"{seconds / 3600:,.1f} h"


def requests_of(entry: PlannedCell) -> tuple[Requests, Requests]:
    """The fewest and the most requests that one trial of *entry* makes.

    A conversation sends its earlier turns and their replies again with each turn. A pipeline gives
    each step the reply to the one before. Of strategies, the first may do, or all may be tried. A
    form is asked for in words, and by a schema that goes with one request.
    """
    few, most = _requests_of(entry.cell, entry.cell.turns, entry.script)
    if entry.unasked is None or entry.elicitation is Elicitation.PLAIN:
        return few, most
    turns = tuple(map(without_sentence, entry.unasked.turns))
    few_plain, most_plain = _requests_of(entry.unasked, turns, entry.script)
    schema = 0
    if entry.structured:
        schema = len(json.dumps(entry.structured))
    return few.with_form(few_plain, schema), most.with_form(most_plain, schema)


def _requests_of(
    cell: Cell, turns: tuple[str, ...], script: Script | None
) -> tuple[Requests, Requests]:
    """Return the fewest and the most requests of *cell*, asked in *turns* by *script*, without a
    schema.
    """
    if isinstance(script, Pipeline):
        steps = _steps(script, turns)
        return steps, steps
    ladder = [turns]
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
    """Return the requests of a conversation of *turns*, each of which sends all before it again."""
    messages = replies = sent = 0
    text = _size(system)
    for earlier, turn in enumerate(turns):
        text += _size(turn)
        sent += text
        messages += 2 * earlier + 1 + (system is not None)
        replies += earlier
    return Requests(len(turns), messages, sent, replies)


def _size(text: str | None) -> int:
    """Return the UTF-8 bytes of *text*; 0 without one."""
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
    places: dict[str, dict[str, list[int]]] = {}
    for at, unit in enumerate(grid.units):
        groups = unit.groups
        if swapped:
            groups = unit.swapped
        for by, group in groups.items():
            places.setdefault(by, {}).setdefault(group, []).append(at)
    return {by: _shape(grid, list(groups.values())) for by, groups in places.items()}


def _shape(grid: Grid, groups: Sequence[Sequence[int]]) -> Shape:
    """Return the shape of a class of *grid* whose *groups* have the units in these places."""
    names = []
    trials = []
    for places in groups:
        names.append(len({grid.units[at].cluster for at in places} - {None}))
        trials.append(sum(map(grid.asked_of, places)) * grid.repetitions)
    return Shape(groups=len(groups), names=min(names), trials=max(1, int(min(trials))))


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
        """Measure *entry*: two cells that send the same are one, whoever plans them."""
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

    def added_to(self, requests: AskedRequests, trials: AskedTrials) -> AskedRequests:
        """Return *requests* with those of so many *trials* of this cell."""
        if not any(trials):
            return requests
        return AskedRequests(
            fair=requests.fair.plus(self.few, trials.fair),
            biased=requests.biased.plus(self.few, trials.biased),
            all_looks=requests.all_looks.plus(self.few, trials.most),
            most=requests.most.plus(self.most, trials.most),
        )


def _measured(
    planned: Planned, elicitations: Mapping[int, Elicitation], indices: Sequence[int]
) -> dict[int, list[_MeasuredCell]]:
    """The cells at *indices* as each tier sends them, which asks for answers by its own of
    *elicitations*.
    """
    measured = {}
    for tier, elicitation in elicitations.items():
        entries = planned.entries(tier, indices)
        measured[tier] = [_MeasuredCell.of(entry.asking_by(elicitation)) for entry in entries]
    return measured


class AskedNames(NamedTuple):
    """Names a group that the looks of a test ask: expected of a fair system, expected of one that
    treats a group worse by d = .5, and at most; ``size`` are those of the whole design.
    """

    fair: float
    biased: float
    most: float
    size: int
    looks: tuple[int, ...] = ()


_ALL = AskedNames(1, 1, 1, 1)
_NONE = AskedNames(0, 0, 0, 1)


class AskedRequests(NamedTuple):
    """The requests to be expected of a fair system, and of one that is not; those of all looks, and
    the most, if every strategy is tried there.
    """

    fair: Requests = Requests()
    biased: Requests = Requests()
    all_looks: Requests = Requests()
    most: Requests = Requests()


class AskedTrials(NamedTuple):
    """Trials that no test before asks: to be expected of a fair system, of one that is not, and at
    most.
    """

    fair: float
    biased: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TestEstimate:
    """Estimate of the requests of one test, at one tier and temperature, to one endpoint.

    ``endpoint`` is the name of that of the settings which it asks, unless it brings a system of its
    own. ``cells`` and ``trials`` are those of its last look. ``shared`` of its ``trials`` are those
    of tests before it: a run asks each once, and they are in no requests and none of the ``new``.
    ``configured`` are the requests to the endpoint of the settings, ``brought`` those to a system
    of the test's own, whose price only the test knows. ``asked`` are the names that its looks ask.
    ``reply_tokens`` are those of a usual reply, ``longest_reply`` the most. ``kinds`` are those of
    the outcomes that it is known to judge. ``elicitation`` is how it asks for answers, ``readable``
    says whether a model may read what rules leave of them.
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
    configured: AskedRequests
    brought: AskedRequests
    reply_tokens: int
    longest_reply: int
    planned: Planned
    asked: AskedNames
    new: AskedTrials
    alpha: float = ALPHA
    kinds: tuple[str, ...] = ()
    elicitation: Elicitation = Elicitation.PLAIN
    readable: bool = False

    @property
    def readings(self) -> AskedTrials:
        """Return the requests to a model that reads its replies: none are expected of answers that
        are asked for by form or by line; of all others every one may take a reading turn.
        """
        if not self.readable:
            return AskedTrials(0, 0, 0)
        orders = len(ORDERS)
        most = orders * self.new.most
        if self.elicitation is not Elicitation.PLAIN:
            return AskedTrials(0, 0, most)
        return AskedTrials(orders * self.new.fair, orders * self.new.biased, most)

    def reading_cost(self, price: Price, readings: float) -> float:
        """Return the dollars of so many *readings* of its replies."""
        sent = _READING_TOKENS + self.reply_tokens
        return readings * price.cost(input_tokens=sent, output_tokens=_READ_TOKENS)

    def requests(self, *, replaced: bool) -> AskedRequests:
        """Return the requests, with those to a system of the test's own where it is *replaced*."""
        return AskedRequests(
            *(
                configured.plus(other, replaced)
                for configured, other in zip(self.configured, self.brought, strict=True)
            )
        )


def estimates(
    context: RunContext,
    items: Sequence[pytest.Item],
    grids: Mapping[collection.Key, Planned],
    endpoints: Mapping[str, Endpoint],
    *,
    asking: int,
    sample: int | None = None,
    reply_tokens: int | None = None,
    outcome: AssumedOutcome | None = None,
) -> Iterator[TestEstimate]:
    """Yield what each fairness test among *items* is going to ask, of which so many, *asking*,
    share the level of the session; *endpoints* are those of the settings that are known.

    Requests are counted on about *sample* cells of each design, if given, so that a grid of a
    million cells is not expanded to be announced; else on the first names of each group.
    *reply_tokens* are those of a usual reply, and *outcome* what is assumed of outcomes, where
    somebody knows better.
    """
    cellwise = collection.selected_cells(items)
    count = _Count(grids, cellwise, sample, context.settings, endpoints)
    kinds = _KindsOfTests(context.scorers)
    tests = context.settings.session_tests or max(1, asking)
    asked_names: dict[Any, AskedNames] = {}
    selections = collection.active_items(items, grids)
    for selection, members in selections.items():
        item = members[0]
        planned = _as_asked(grids[selection.key], context.settings)
        asked = selection.endpoint or context.settings.endpoints[0]
        parameters: dict[str, Any] = parameters_of(planned, selection.temperature)
        tiers = {other.tier for other in selections if other.key == selection.key}
        alpha = collection.level_of(item) or ALPHA
        judged = kinds.of(item, planned)
        red = budget(context.settings.session_alpha, tests, 0, alpha)
        repeats = parameters.get("temperature") == 0
        design = selection.key, judged, red, repeats
        if design not in asked_names and only_analyzes(item):
            asked_names[design] = _base_names(planned, context.settings)
        if design not in asked_names:
            asked_names[design] = _asked_names(
                planned,
                context.settings,
                judged,
                red,
                (outcome or AssumedOutcome())._replace(repeats=repeats),
            )
        counted = count.requests(selection, item, parameters, tiers, asked_names[design])
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
            shared=counted.cells * planned.grid.repetitions - round(counted.new.most),
            configured=counted.configured,
            brought=counted.brought,
            reply_tokens=min(usual, longest),
            longest_reply=longest,
            planned=planned,
            asked=counted.asked,
            new=counted.new,
            alpha=alpha,
            kinds=judged,
            elicitation=counted.elicitation,
            readable=any(
                scorer.reading is not None
                for scorer in _named_scorers(item, planned, context.scorers)
            ),
        )


def _as_asked(planned: Planned, settings: Settings) -> Planned:
    """Return *planned* with the texts that its pilot leaves at most: on a shard all of them, since
    no shard knows what the others are answered.
    """
    if settings.shard:
        return planned
    return planned.as_priced


class AssumedOutcome(NamedTuple):
    """Assumed of all outcomes: their kind, where each test's own does not hold, the rate of yes/no
    outcomes, and the share of the variance between names; ``repeats``: each repetition gives the
    same reply, as at temperature 0.
    """

    kind: str | None = None
    rate: float = 0.5
    icc: float = 0.04
    repeats: bool = False


def _asked_names(
    planned: Planned, settings: Settings, kinds: Sequence[str], red: float, outcome: AssumedOutcome
) -> AskedNames:
    """Return the names that the looks at *planned* ask, by the *kinds* of its outcomes and the
    budget for *red*.

    A test whose kind nobody knows is expected to judge numbers, and may judge yes or no.
    """
    stages = planned.grid.stages
    if stages is None:
        return _ALL
    if settings.shard:
        names = stages.first
        if settings.looks == EVERY_STAGE:
            names = stages.size
        return AskedNames(names, names, names, stages.size, (names,))
    if outcome.kind:
        kinds = [outcome.kind]
    judged = list(map(OutcomeKind, kinds))
    possible = judged or [OutcomeKind.NUMERIC, OutcomeKind.BINARY]
    looks = max(map(partial(_looks, stages), possible), key=itemgetter(-1))
    expectations = []
    for kind in judged or possible[:1]:
        for design in looked_designs(planned, stages, kind, red, outcome):
            expectations.append(expectation(design))
    return AskedNames(
        fair=max(expected.fair for expected in expectations),
        biased=max(expected.biased for expected in expectations),
        most=looks[-1],
        size=stages.size,
        looks=looks,
    )


def _base_names(planned: Planned, settings: Settings) -> AskedNames:
    """Return the names that a test of *planned* asks which only analyzes: those of the base design;
    all of them where a shard asks every stage.
    """
    stages = planned.grid.stages
    if stages is None:
        return _ALL
    names = stages.base
    if settings.shard and settings.looks == EVERY_STAGE:
        names = stages.size
    return AskedNames(names, names, names, stages.size, (names,))


def _looks(stages: Stages, kind: OutcomeKind) -> tuple[int, ...]:
    """Return the looks of an outcome of *kind*, by the fewest trials that its verdict needs."""
    return stages.looks(kind, FEWEST_TRIALS[kind])


def looked_designs(
    planned: Planned, stages: Stages, kind: OutcomeKind, red: float, outcome: AssumedOutcome
) -> list[LookedDesign]:
    """Return what the looks at each class of *planned* depend on, for an outcome of *kind*."""
    plan = LookPlan(names=_looks(stages, kind), red=red)
    copies = 1
    if outcome.repeats:
        copies = planned.grid.repetitions
    designs = []
    for shape in shapes(planned.grid, swapped=True).values():
        if shape.groups > 1 and shape.names:
            designs.append(
                LookedDesign(
                    plan=plan,
                    kind=kind,
                    groups=shape.groups,
                    rows=max(1.0, shape.trials / shape.names / copies),
                    rate=outcome.rate,
                    icc=outcome.icc,
                    names_of_each=shape.names / stages.size,
                )
            )
    # Of choices the sets of candidates are the names, and two win rates are compared.
    of_choices = LookedDesign(
        plan=plan,
        kind=kind,
        groups=2,
        rows=max(1.0, stages.per_name / copies),
        rate=outcome.rate,
        icc=outcome.icc,
        drops=False,
    )
    return designs or [of_choices]


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
    """The requests of one test, to the endpoint of the settings and to a system of its own, for so
    many cells at its last look, and the trials that no test before it asks; ``asked`` are its
    names, ``elicitation`` is how it asks for answers.
    """

    cells: int
    new: AskedTrials
    configured: AskedRequests
    brought: AskedRequests
    asked: AskedNames
    elicitation: Elicitation


class _Count:
    """Counts what tests ask one after another: a trial that an earlier one asks is asked once.

    *cellwise* are the cells that are asked one by one, *sample* and *endpoints* as for
    :func:`estimates`.
    """

    def __init__(
        self,
        grids: Mapping[collection.Key, Planned],
        cellwise: Mapping[collection.Selection, tuple[int, ...]],
        sample: int | None,
        settings: Settings,
        endpoints: Mapping[str, Endpoint],
    ) -> None:
        self._endpoints = endpoints
        self._settings = settings
        self._grids = {key: _as_asked(planned, settings) for key, planned in grids.items()}
        self._cellwise = cellwise
        self._sample = sample
        self._asked: dict[Any, tuple[int, AskedNames]] = {}
        self._measured: dict[Any, list[_MeasuredCell]] = {}

    def requests(
        self,
        selection: collection.Selection,
        item: pytest.Item,
        parameters: Mapping[str, Any],
        tiers: Iterable[int],
        asked: AskedNames,
    ) -> _RequestsOfTest:
        """Count the requests of *item*, by its *selection*, whose looks ask so many names, *asked*;
        its design is asked at *tiers*.
        """
        planned = self._grids[selection.key]
        chosen = self._cellwise.get(selection)
        cells = len(planned.grid)
        if chosen is not None:
            asked = _ALL
            cells = len(chosen)
        brings = brings_its_own(item)
        system = None
        if not brings:
            system = self._endpoints.get(selection.endpoint or self._settings.endpoints[0])
        elicitations = {
            tier: elicitation_of(planned, tier, system) for tier in {selection.tier, *tiers}
        }
        measured = self._cells(selection, elicitations)
        each = cells / max(1, len(measured)) / asked.size
        of_groups = planned.grid.repetitions, asked
        counted = [(cell, of_groups, each) for cell in measured]
        of_pilot = self._cells_of_pilot(selection, elicitations)
        counted += [(cell, (1, _ALL), 1.0) for cell in of_pilot]
        whose = _system_of(item)
        settings = repr(sorted(parameters.items()))
        configured = brought = AskedRequests()
        new = [0.0, 0.0, 0.0]
        for cell, asks, stands_for in counted:
            place = whose, cell.is_of_the_test and selection.endpoint, settings, cell.sent
            before = self._asked.get(place, (0, _NONE))
            self._asked[place] = _together(before, asks)
            trials = _added(asks, before, stands_for)
            new = list(map(sum, zip(new, trials, strict=True)))
            if brings or cell.asks_others:
                brought = cell.added_to(brought, trials)
            else:
                configured = cell.added_to(configured, trials)
        at_last_look = round(cells * asked.most / asked.size) + len(of_pilot)
        return _RequestsOfTest(
            at_last_look,
            AskedTrials(*new),
            configured,
            brought,
            asked,
            elicitations[selection.tier],
        )

    def _cells(
        self, selection: collection.Selection, elicitations: Mapping[int, Elicitation]
    ) -> list[_MeasuredCell]:
        """Return cells of *selection* that stand for all that it asks, for answers by each tier's
        of *elicitations*; every temperature is asked the same texts, and so is every endpoint that
        is asked for answers alike.
        """
        key = selection.key
        cells = self._cellwise.get(selection)
        place = key, selection.tier, cells, elicitations[selection.tier]
        if place not in self._measured:
            measured = _measured(self._grids[key], elicitations, self._counted(key, cells))
            for tier, of_tier in measured.items():
                self._measured[key, tier, cells, elicitations[tier]] = of_tier
        return self._measured[place]

    def _cells_of_pilot(
        self, selection: collection.Selection, elicitations: Mapping[int, Elicitation]
    ) -> list[_MeasuredCell]:
        """Return the cells that the pilot of *selection* asks; none without a pilot."""
        pilot = self._grids[selection.key].pilot
        if pilot is None:
            return []
        key = selection.key, selection.tier, PILOT, elicitations[selection.tier]
        if key not in self._measured:
            asked = range(len(pilot.planned.grid))
            for tier, of_tier in _measured(pilot.planned, elicitations, asked).items():
                self._measured[selection.key, tier, PILOT, elicitations[tier]] = of_tier
        return self._measured[key]

    def _counted(self, key: collection.Key, cells: tuple[int, ...] | None) -> Sequence[int]:
        """Return the places of the cells that are measured: *cells*, or those of the design at
        *key*.
        """
        grid = self._grids[key].grid
        counted: Sequence[int] = range(len(grid))
        if cells is not None:
            counted = cells
        if self._sample is not None:
            return counted[:: max(1, len(counted) // self._sample)]
        if cells is None and grid.stages is not None:
            return grid.stage(_PRICED_NAMES, {})
        return counted


def _added(
    asks: tuple[int, AskedNames], before: tuple[int, AskedNames], each: float
) -> AskedTrials:
    """Return the trials that a test adds to a cell, where it *asks* so many repetitions and names,
    and tests *before* it did; *each* name that is expected stands for so many cells.
    """
    repetitions, names = asks
    done = min(before[0], repetitions)
    added = []
    for mine, theirs in zip(names[:3], before[1][:3], strict=True):
        again = done * min(mine, theirs)
        added.append(each * (repetitions * mine - again))
    return AskedTrials(*added)


def _together(
    before: tuple[int, AskedNames], asks: tuple[int, AskedNames]
) -> tuple[int, AskedNames]:
    """Return what tests *before* and one that *asks* more have asked of a cell."""
    fair, biased, most = map(max, zip(before[1][:3], asks[1][:3], strict=True))
    names = AskedNames(fair=fair, biased=biased, most=most, size=asks[1].size)
    return max(before[0], asks[0]), names


def brings_its_own(item: pytest.Item) -> bool:
    """Return whether the project overrides the ``endpoint`` fixture: then only the test knows what
    is asked.
    """
    return any(
        fixture.func.__module__ != item_marks.FIXTURES
        for fixture in item_marks.fixtures_of(item, "endpoint")[-1:]
    )


def _system_of(item: pytest.Item) -> str:
    """Return what tells the system under test of one test from that of another: the ``endpoint``
    fixture that it gets.
    """
    return " ".join(
        f"{fixture.baseid} {fixture.func.__module__}"
        for fixture in item_marks.fixtures_of(item, "endpoint")
    )


def chance_of_red(
    settings: Settings, items: Sequence[pytest.Item], grids: Mapping[collection.Key, Planned]
) -> float:
    """Return how often alarms of *items* turn a session of a fair system red, at most: of those
    that ask for the trials of a design; 0 without any.
    """
    asks = any(
        collection.grid_key(item) in grids and item_marks.asks_for_trials(item) for item in items
    )
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


class _KindsOfTests:
    """The kinds of outcome that tests judge, read once a function and its parameters."""

    def __init__(self, scorers: Mapping[str, Any]) -> None:
        self._scorers = scorers
        self._read: dict[Any, tuple[str, ...]] = {}

    def of(self, item: pytest.Item, planned: Planned) -> tuple[str, ...]:
        """The kinds that *item* judges, by its calls, else by the scorers that it names; of choices
        none.
        """
        if planned.tiers_by_arm:
            return ()
        ladder = planned.ladder and planned.ladder.scorer
        key = getattr(item, "function", None), repr(parameters_by_name(item)), ladder
        if key not in self._read:
            self._read[key] = self._kinds(item, planned)
        return self._read[key]

    def _kinds(self, item: pytest.Item, planned: Planned) -> tuple[str, ...]:
        """Return the kinds that the calls of *item* say, else those of the scorers that it names."""
        named = []
        for scorer in _named_scorers(item, planned, self._scorers):
            if scorer.kind is not None:
                named.append(str(scorer.kind))
        return outcome_kinds(item, self._scorers) or tuple(dict.fromkeys(named))


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
    parts = getattr(value, "co_consts", ())
    if isinstance(value, (tuple, frozenset)):
        parts = value
    for part in parts:
        yield from _strings(part)
