"""Plans that markers come to: the cells of a grid or of a pairwise experiment, with the script that
each is asked by.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from pytest_fairness.analysis.choice_columns import choice_columns
from pytest_fairness.design.answer_forms import AnswerForm
from pytest_fairness.design.arms import Arm
from pytest_fairness.design.grid import Grid
from pytest_fairness.design.pairs import PairGrid, Prepared, Steps
from pytest_fairness.design.pooled_grid import others_beside
from pytest_fairness.design.series import most_asked, series_of
from pytest_fairness.design.strategies import DIRECT, Ladder
from pytest_fairness.design.templates import REQUEST, Template
from pytest_fairness.endpoints.protocol import (
    Endpoint,
    takes_conversation,
    takes_structured_output,
)
from pytest_fairness.engine.scripts import Escalation, Pipeline, StrategyTurns
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Cell, Elicitation
from pytest_fairness.runs.designs import Script
from pytest_fairness.scorers import is_refusal
from pytest_fairness.trials_frame import DISCLAIMS, REFUSED_FIRST

if TYPE_CHECKING:
    import pandas as pd

#: Tells whether a reply is what was asked for, and what tells this judge from another.
Usable: TypeAlias = tuple[Callable[[str], bool], str]
#: Makes an endpoint of whatever a project names as a system.
Resolve: TypeAlias = Callable[[Any], Endpoint]
T = TypeVar("T")
G = TypeVar("G", Grid, PairGrid)
_KEPT = 10_000
"""Cells of a design that a session keeps: those of a million would fill the memory."""


class MadeOnce(Generic[T]):
    """A cache of what is made of the cells of a design, each once; of a design with more cells than
    a session keeps, those that it was asked for first.
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, T] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made for *key*, else what *make* makes now."""
        made = self._made.get(key)
        if made is None:
            made = make()
            if len(self._made) < _KEPT:
                self._made[key] = made
        return made


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """A cell to ask: by a script, if it has one, and of a system of its own, if its arm brings one.

    ``first`` is the number of its first repetition: cells whose texts may turn out the same, as
    scrubbed ones do, are trials of their own all the same, and would share one reply under one
    number. ``role`` is what is established before the ``request``; with ``one_message``, both are
    sent as one. ``form`` is that of the answer, ``elicitation`` how it is asked for, ``structured``
    the schema that is sent along; ``unasked`` is the cell before anything asked for the form.
    """

    cell: Cell
    script: Script | None = None
    system: Any = None
    first: int = 0
    role: str | None = None
    request: str = ""
    one_message: bool = False
    form: AnswerForm | None = None
    elicitation: Elicitation = Elicitation.PLAIN
    structured: Mapping[str, JSON] = field(default_factory=dict)
    unasked: Cell | None = None
    _asked: dict[Elicitation, PlannedCell] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def asked_by(self, elicitation: Elicitation) -> PlannedCell:
        """Return the entry as it asks for its answer by that *elicitation*, made once: each test of
        a design and each look asks anew.
        """
        if self.form is None:
            return self
        if elicitation not in self._asked:
            self._asked[elicitation] = self.asking_by(elicitation)
        return self._asked[elicitation]

    def asking_by(self, elicitation: Elicitation) -> PlannedCell:
        """Make the entry as it asks for its answer by that *elicitation*; by a line where the
        answer comes from the system of a step, of which nobody knows whether it takes a schema.
        """
        form = self.form
        if form is None:
            return self
        if self._is_answered_by_a_step and elicitation is Elicitation.FORM:
            elicitation = Elicitation.LINE
        structured: Mapping[str, JSON] = {}
        if elicitation is Elicitation.FORM:
            structured = form.response_format
        cell = replace(self.cell, turns=form.asked_in(self.cell.turns, elicitation))
        script = self.script
        if isinstance(script, Escalation):
            script = script.filled(lambda turns: form.asked_in(turns, elicitation))
        return replace(
            self,
            cell=cell,
            script=script,
            structured=structured,
            elicitation=elicitation,
            unasked=self.cell,
        )

    @property
    def _is_answered_by_a_step(self) -> bool:
        """Return whether the last request of a trial asks another system than the test's."""
        return isinstance(self.script, Pipeline) and self.script.endpoints[-1] is not None

    @property
    def step_systems(self) -> list[Endpoint]:
        """The systems that single requests of a trial ask instead of the test's."""
        if self.script is None:
            return []
        return [system for system in self.script.endpoints if system is not None]

    @property
    def asks_others(self) -> bool:
        """Return whether a trial asks, in one of its requests at least, another system than the
        test's.
        """
        return self.system is not None or bool(self.step_systems)


def one_text(role: str | None, request: str) -> str:
    """*role* and *request* in one message."""
    if role is None:
        return request
    return f"{role}\n\n{request}"


def takes_one_text(endpoint: Endpoint) -> bool:
    """Return whether *endpoint* is sent one text a request: neither turns before it nor a system
    prompt.
    """
    return not takes_conversation(endpoint) and not endpoint.supports_system_prompt


def _one_text_a_request(endpoint: Endpoint, what: str) -> UsageError:
    """Says that *endpoint* cannot be asked *what* the test has, and the mend."""
    return UsageError(
        f"endpoint {endpoint.name!r} is sent one text a request, and the test has {what}. In an "
        "entry of type http, "
        'put "{messages}" where the conversation belongs; give a function a parameter called messages; or ask single '
        "prompts"
    )


def _refuse_turns_after_the_request(turns: Sequence[Template], endpoint: Endpoint) -> None:
    """Raise UsageError where *endpoint* would lose turns that come after the request."""
    if turns and REQUEST not in turns[-1].slots:
        raise _one_text_a_request(endpoint, "turns after its request, which would be lost")


def needs_one_message(entry: PlannedCell, endpoint: Endpoint) -> bool:
    """Return whether *entry* holds what can be said in one message alone to *endpoint*, or to the
    system of a step: a role beside the request, or strategies of several turns.
    """
    cell = entry.cell
    script = entry.script
    if isinstance(script, Pipeline):
        return any(
            prompt is not None and takes_one_text(system)
            for prompt, system in step_systems(script, endpoint)
        )
    if cell.system is not None:
        return takes_one_text(endpoint)
    several = len(cell.turns) > 1
    if isinstance(script, Escalation):
        several = any(len(strategy.turns) > 1 for strategy in script.strategies)
    return several and not takes_conversation(endpoint)


def step_systems(script: Pipeline, endpoint: Endpoint) -> list[tuple[str | None, Endpoint]]:
    """The system prompt of each step of *script*, and whom it asks: *endpoint*, where it brings no
    other.
    """
    systems = []
    for prompt, system in itertools.zip_longest(script.systems, script.endpoints):
        asked = system
        if asked is None:
            asked = endpoint
        systems.append((prompt, asked))
    return systems


def _key_of_answer(form: AnswerForm | None, ladder: Ladder) -> str:
    """Return what a strategy calls the answer: as the *form* of the test does, if it has one."""
    if form is None:
        return ladder.key
    return form.key


def _strategies_of_one_turn(entry: PlannedCell, ladder: Ladder) -> list[StrategyTurns]:
    """Return the strategies of *ladder* that ask in one turn, in one message with the role."""
    strategies_of_one_turn = []
    for strategy in ladder.strategies:
        turns = strategy.fill(entry.request, _key_of_answer(entry.form, ladder))
        if len(turns) > 1:
            continue
        role = entry.role
        if strategy.own_role:
            role = None
        strategies_of_one_turn.append(
            StrategyTurns(strategy.name, (one_text(role, turns[0]),), strategy.objections)
        )
    return strategies_of_one_turn


@dataclass(frozen=True)
class _PlannedDesign(Generic[G]):
    """The cells that one test asks, at the temperatures that its marker asks for. ``arguments`` are
    what the *grid* is made of.
    """

    grid: G
    temperatures: tuple[float | None, ...] = ()
    arguments: Mapping[str, Any] | None = None
    _entries: MadeOnce[PlannedCell] = field(
        default_factory=MadeOnce, init=False, compare=False, repr=False
    )


@dataclass(frozen=True, slots=True)
class Pilot:
    """A look at neutral names before the groups are asked: what is asked, and the *scorer* that
    says whether an answer is favourable.
    """

    planned: PlannedGrid
    scorer: Any

    @property
    def series(self) -> dict[str, tuple[str, ...]]:
        """Return the ids of the texts of each series, from weakest to strongest."""
        return series_of(self.planned.grid.templates)


@dataclass(frozen=True)
class PlannedGrid(_PlannedDesign[Grid]):
    """One test's grid as the tiers send it, with the strategies that its marker asks for.
    ``pilot``: what is asked first, where it chooses which texts the groups are asked.
    """

    tiers_by_arm: ClassVar[bool] = False
    unit: ClassVar[str] = "names a group"

    ladder: Ladder | None = None
    usable: Usable = (lambda _text: True), ""
    pilot: Pilot | None = None
    _cells: MadeOnce[Cell] = field(default_factory=MadeOnce, init=False, compare=False, repr=False)
    _other_prompts: MadeOnce[str] = field(
        default_factory=MadeOnce, init=False, compare=False, repr=False
    )

    @property
    def has_system_prompt(self) -> bool:
        return self.grid.system is not None

    def cell(self, index: int) -> Cell:
        """The cell at *index* as its design makes it, made once."""
        return self._cells.get(index, lambda: self.grid[index])

    @cached_property
    def as_priced(self) -> PlannedGrid:
        """Return the plan with the most texts that its pilot may choose: nobody knows yet which."""
        if self.pilot is None:
            return self
        texts = most_asked(self.grid.templates)
        stages = self.grid.stages
        if stages is not None:
            stages = stages.of_texts(len(texts), len(self.grid.templates))
        return replace(self, grid=replace(self.grid, templates=texts, stages=stages))

    @property
    def script_columns(self) -> tuple[str, ...]:
        """Columns that the table has in every tier: strategies belong to one of them."""
        if self.ladder is None:
            return ()
        return ("strategy", "strategy_level", REFUSED_FIRST, DISCLAIMS)

    def entries(self, tier: int, indices: Sequence[int] | None = None) -> list[PlannedCell]:
        """The cells (those at *indices*, if given) as *tier* sends them, each made once: tier 2
        agrees on the role in conversation, has strategies and no system prompt.
        """
        if indices is None:
            indices = range(len(self.grid))
        entries = []
        for index in indices:
            make = partial(self._entry, tier, index)
            entries.append(self._entries.get((tier, index), make))
        return entries

    def _entry(self, tier: int, index: int) -> PlannedCell:
        """The cell at *index*, as *tier* sends it."""
        cell = self.cell(index)
        turns = self.grid.conversation_at(index, cell)
        script = None
        role = cell.system
        request = cell.prompt
        if role is None:  # the turns of the test establish it
            role = "\n\n".join(turns[: self.grid.asked_at]) or None
            request = turns[self.grid.asked_at]
        if tier == 1:
            # Where the grid has a system prompt, its cells are of this tier already.
            if cell.tier != 1:
                cell = replace(cell, tier=1)
        else:
            if self.ladder is not None:
                script = self._escalation(
                    cell.prompt, turns, self.ladder, self._other_prompt(index)
                )
            cell = replace(cell, tier=2, system=None, turns=turns)
        return PlannedCell(cell, script, role=role, request=request, form=self.grid.answer)

    def in_one_message(self, entry: PlannedCell, endpoint: Endpoint) -> PlannedCell:
        """*entry* as it is asked of a system that is sent one text a request: role and request in
        one message, and of the strategies those of one turn. Raises UsageError where there are none
        of those, or turns after the request.
        """
        cell = entry.cell
        script = entry.script
        if len(cell.turns) > 1:
            _refuse_turns_after_the_request(self.grid.turns, endpoint)
        if isinstance(script, Escalation) and self.ladder is not None:
            strategies = _strategies_of_one_turn(entry, self.ladder)
            if not strategies:
                raise _one_text_a_request(
                    endpoint, "strategies of several turns, the first of which would be lost"
                )
            direct = StrategyTurns(DIRECT, (one_text(entry.role, entry.request),))
            script = replace(script, strategies=(direct, *strategies))
        cell = replace(cell, system=None, turns=(one_text(entry.role, entry.request),))
        return replace(entry, cell=cell, script=script, one_message=True)

    @cached_property
    def _others(self) -> Mapping[str, Grid]:
        """Return whom strategies that compare two people show beside each person, by signal: one
        and the same for all.
        """
        if self.ladder is None or self.arguments is None:
            return {}
        if not any(strategy.compares for strategy in self.ladder.strategies):
            return {}
        return others_beside(self.grid, self.arguments)

    def _other_prompt(self, index: int) -> str | None:
        """The prompt of the cell at *index*, about somebody else."""
        others = self._others
        signal, block = self.grid.place(index)
        if signal not in others:
            return None
        place = (signal, block)
        return self._other_prompts.get(place, lambda: others[signal].cell_at(block).prompt)

    def _escalation(
        self, prompt: str, turns: tuple[str, ...], ladder: Ladder, other: str | None
    ) -> Escalation:
        """*turns* first; each strategy begins with what they establish before the request."""
        established = turns[: self.grid.asked_at]
        key = _key_of_answer(self.grid.answer, ladder)
        strategies = [StrategyTurns(DIRECT, turns)]
        for strategy in ladder.strategies:
            before = established
            if strategy.own_role:
                before = ()
            strategies.append(
                StrategyTurns(
                    strategy.name,
                    (*before, *strategy.fill(prompt, key, other)),
                    strategy.objections,
                )
            )
        return Escalation(
            strategies=tuple(strategies), usable=self.usable[0], version=self.usable[1]
        )

    def table(self, frame: pd.DataFrame) -> pd.DataFrame:
        """*frame* of the trials as the test gets it."""
        return frame


@dataclass(frozen=True)
class PlannedPairs(_PlannedDesign[PairGrid]):
    """One test's choices between candidates. Tiers belong to its arms: one with a system prompt is
    of tier 1.
    """

    tiers_by_arm: ClassVar[bool] = True
    unit: ClassVar[str] = "sets of candidates"
    script_columns: ClassVar[tuple[str, ...]] = ()
    ladder: ClassVar[None] = None
    pilot: ClassVar[None] = None

    resolve: Resolve | None = None
    _resolved: dict[int, Endpoint] = field(default_factory=dict, compare=False, repr=False)
    _made: MadeOnce[Prepared] = field(
        default_factory=MadeOnce, init=False, compare=False, repr=False
    )

    @property
    def as_priced(self) -> PlannedPairs:
        """Return the plan as it stands: it has no pilot."""
        return self

    @property
    def has_system_prompt(self) -> bool:
        return self.grid.needs_system_prompt

    def cell(self, index: int) -> Cell:
        """The cell at *index* as its design makes it, made once."""
        return self._prepared(index).cell

    def _prepared(self, index: int) -> Prepared:
        return self._made.get(index, lambda: self.grid.prepared(index))

    def entries(self, tier: int, indices: Sequence[int] | None = None) -> list[PlannedCell]:  # noqa: ARG002
        """The cells, those of arms with steps as pipelines, each made once."""
        if indices is None:
            indices = range(len(self.grid))
        return [self._entries.get(index, partial(self._entry, index)) for index in indices]

    def _entry(self, index: int) -> PlannedCell:
        """The cell at *index*, as it is asked."""
        prepared = self._prepared(index)
        arm = self._arms.get(prepared.cell.arm or "")
        first = 0
        # Stand-ins of one group come to the same texts for different groups.
        if prepared.steps is not None or (arm is not None and arm.placebo):
            first += prepared.number * self.grid.repetitions
        script = None
        if prepared.steps is not None:
            script = self._pipeline(prepared.steps)
        system = None
        if arm is not None:
            system = arm.endpoint
        return PlannedCell(prepared.cell, script, system, first, form=prepared.form)

    @cached_property
    def _arms(self) -> Mapping[str, Arm]:
        return {arm.name: arm for arm in self.grid.arms}

    def _pipeline(self, steps: Steps) -> Pipeline:
        """Return the script that asks *steps* one after the other."""
        endpoints: list[Endpoint | None] = []
        for system in steps.endpoints:
            endpoint = None
            if system is not None:
                endpoint = self._endpoint(system)
            endpoints.append(endpoint)
        return Pipeline(
            systems=steps.systems,
            between=steps.between,
            first=steps.first,
            refused=is_refusal,
            endpoints=tuple(endpoints),
        )

    def in_one_message(self, entry: PlannedCell, endpoint: Endpoint) -> PlannedCell:
        """*entry* as it is asked of *endpoint*, which is sent one text a request: of a pipeline,
        each step that asks such a system.
        """
        cell = entry.cell
        script = entry.script
        if len(cell.turns) > 1 and not isinstance(script, Pipeline):
            _refuse_turns_after_the_request(self.grid.turns, endpoint)
        if not isinstance(script, Pipeline):
            cell = replace(
                cell, system=None, turns=(one_text(cell.system, "\n\n".join(cell.turns)),)
            )
            return replace(entry, cell=cell, one_message=True)
        systems = list(script.systems)
        turns = list(cell.turns)
        for step, (prompt, system) in enumerate(step_systems(script, endpoint)):
            if takes_one_text(system):
                turns[step] = one_text(prompt, turns[step])
                systems[step] = None
        cell = replace(cell, system=None, turns=tuple(turns))
        return replace(
            entry, cell=cell, script=replace(script, systems=tuple(systems)), one_message=True
        )

    def _endpoint(self, system: Any) -> Endpoint:
        """Return what an arm's step names; made once, so that all cells ask the same."""
        if self.resolve is None:
            raise UsageError(
                f"a step names the endpoint {system!r}, which a fairness test alone can ask"
            )
        if id(system) not in self._resolved:
            self._resolved[id(system)] = self.resolve(system)
        return self._resolved[id(system)]

    def table(self, frame: pd.DataFrame) -> pd.DataFrame:
        """*frame* of the trials with the candidates listed and the one chosen."""
        return choice_columns(frame, self.grid.choice_size, ranking=self.grid.ranking)


Planned: TypeAlias = PlannedGrid | PlannedPairs


def elicitation_of(planned: Planned, tier: int, endpoint: Endpoint | None) -> Elicitation:
    """Return the way by which *endpoint*, None for one that is not known, is asked for the answers
    of *planned* at *tier*, unless it refuses: tier 2 is conversation only, and has the sentence
    alone, or strategies with forms of their own.
    """
    grid = planned.grid
    if grid.answer is None or not grid.asks_for_form:
        return Elicitation.PLAIN
    if tier == 1 and endpoint is not None and takes_structured_output(endpoint):
        return Elicitation.FORM
    if tier != 1 and planned.ladder is not None:
        return Elicitation.PLAIN
    return Elicitation.LINE


def parameters_of(planned: Planned, temperature: float | None) -> dict[str, JSON]:
    """Return what is laid over the endpoint's defaults, at *temperature* if that is one of the
    marker's.
    """
    parameters = dict(planned.grid.parameters)
    if temperature is not None:
        parameters["temperature"] = temperature
    return parameters
