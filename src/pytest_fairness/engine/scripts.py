"""Conversations that are decided between turns: a pipeline of steps, or strategies tried until one
is answered.

Without a script a trial sends the turns of its cell one after the other. With one, the script says
after each reply what to send next. It decides from the replies alone, so that a trial resumed from
the log continues where it stood, and every request is logged, paid for and repeated by itself.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from pytest_fairness.endpoints.pipeline import PipelineEndpoint, PipelineStep
from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.model import JSON, Cell, Message, Status, Thread, Trial
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.records import conversation
from pytest_fairness.trials_frame import REFUSED_FIRST

#: Where a later step of a pipeline takes the text of the one before it.
PREVIOUS = "{text}"
#: What stands for a turn that was answered with nothing: providers take no empty message.
_SILENCE = "(no reply)"
#: Characters of a reply in which an objection is looked for.
_LONGEST_OBJECTION = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The turns of the cell as steps, each a fresh conversation: step n + 1 is given the reply to
    step n.

    ``systems`` has the system prompt of each step. ``between[n]`` are the functions that a text
    passes through before step n. ``endpoints`` has the system of each step that does not ask the
    one under test. A reply that declines, as ``refused`` says, or holds nothing that can be handed
    on, ends the pipeline. ``first`` is the text that step 0 was given; it stands in its turn
    already.
    """

    systems: tuple[str | None, ...]
    between: Mapping[int, tuple[Callable[[str], str], ...]] = field(default_factory=dict)
    refused: Callable[[str], bool] = lambda _text: False
    first: str = ""
    endpoints: tuple[Endpoint | None, ...] = ()

    def identity(self) -> JSON:
        """Return the system prompts, the functions between the steps, and whom other steps ask."""
        between: list[JSON] = []
        for number, functions in self.between.items():
            between.append([number, list(map(fingerprint, functions))])
        identity: dict[str, JSON] = {"pipeline": list(self.systems), "between": between}
        if any(endpoint is not None for endpoint in self.endpoints):
            identity["endpoints"] = list(map(_step_identity, self.endpoints))
        return identity

    def next(
        self, cell: Cell, replies: Sequence[str], status: Status
    ) -> tuple[Message, ...] | None:
        """Return the request of the next step, which is given the reply before; None after the
        last, and after a refusal.
        """
        step = len(replies)
        if step == len(self.systems):
            return None
        if replies and (status is not Status.ANSWERED or self.refused(replies[-1])):
            return None
        return conversation(self.systems[step], [self._prompt(cell, replies)], ())

    def _prompt(self, cell: Cell, replies: Sequence[str]) -> str:
        """Return what the next step is asked."""
        prompt = cell.turns[len(replies)]
        if not replies:
            return prompt
        return prompt.replace(PREVIOUS, self._text(replies), 1)

    def _text(self, replies: Sequence[str]) -> str:
        """Return what the next step is given: the last reply, as the functions between make it."""
        text = self.first
        if replies:
            text = replies[-1]
        for function in self.between.get(len(replies), ()):
            text = function(text)
            if not isinstance(text, str):
                raise EndpointError(
                    f"a step of the pipeline returned {type(text).__name__}, not a str"
                )
        return text

    def threads(
        self,
        cell: Cell,  # noqa: ARG002 - as the protocol has it
        replies: Sequence[str],  # noqa: ARG002
        statuses: Mapping[int, Status],  # noqa: ARG002
        ended: Status,  # noqa: ARG002
    ) -> tuple[Thread, ...]:
        """Steps are requests of one trial, which stand in its attempts."""
        return ()

    def columns(self, cell: Cell, trial: Trial) -> Mapping[str, JSON]:
        """Return how many requests there were, and the text of the candidates that the last one
        saw.
        """
        steps = len(cell.turns)
        replies = trial.replies
        if steps == 1:
            return {"requests": len(replies), "candidates_text": self.first}
        seen = None
        prompt = cell.prompt
        if len(replies) == steps:
            seen = self._text(replies[: steps - 1])
            prompt = prompt.replace(PREVIOUS, seen, 1)
        return {"requests": len(replies), "candidates_text": seen, "prompt": prompt}


def _step_identity(endpoint: Endpoint | None) -> JSON:
    """Return what tells the system of a step from another; None for the system under test."""
    if endpoint is None:
        return None
    return {"identity": endpoint.identity(), "parameters": dict(endpoint.default_parameters)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay(Pipeline):
    """A pipeline that is the system under test: *steps* are given its prompt, and say whom they ask
    what.
    """

    steps: tuple[PipelineStep, ...]

    def identity(self) -> JSON:
        """Return its length alone: the identity of the pipeline has the rest."""
        return {"relay": len(self.steps)}

    def _prompt(self, cell: Cell, replies: Sequence[str]) -> str:
        """Return the prompt of the next step with the text that it is given."""
        text = cell.prompt
        if replies:
            text = replies[-1]
        return self.steps[len(replies)].filled(text=text, prompt=cell.prompt)


@dataclass(frozen=True, slots=True)
class StrategyTurns:
    """The turns of one conversation, by the name of its strategy, and the objections (a regular
    expression) that it answers.
    """

    name: str
    turns: tuple[str, ...]
    objections: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """The plain request first; after a reply that is refused or cannot be used, a strategy, and so
    on.

    Each strategy is a fresh conversation, so that it does not inherit the refusals before it. Those
    that answer what the model objected to when it was first asked come first, the others in the
    order they stand in. ``usable`` says whether the last reply of a strategy is what was asked for;
    ``version`` names what it goes by. They hold the texts as they are sent for this cell.
    """

    strategies: tuple[StrategyTurns, ...]
    usable: Callable[[str], bool]
    version: str
    endpoints: tuple[Endpoint | None, ...] = ()

    def filled(self, fill: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Escalation:
        """Return it with the turns of each strategy as *fill* makes them."""
        strategies = [replace(strategy, turns=fill(strategy.turns)) for strategy in self.strategies]
        return replace(self, strategies=tuple(strategies))

    def identity(self) -> JSON:
        """Return all turns of the strategies, and by what a reply can be used."""
        strategies: list[JSON] = []
        objections: dict[str, JSON] = {}
        for strategy in self.strategies:
            strategies.append([strategy.name, *strategy.turns])
            if strategy.objections:
                objections[strategy.name] = strategy.objections
        identity: dict[str, JSON] = {"rungs": strategies, "usable": self.version}
        if objections:
            identity["objections"] = objections
        return identity

    def _in_order(self, replies: Sequence[str]) -> list[StrategyTurns]:
        """Return the strategies as they are tried after the first *replies*."""
        first, *others = self.strategies
        if len(replies) < len(first.turns):
            return [first, *others]
        objection = replies[len(first.turns) - 1][:_LONGEST_OBJECTION]

        def unanswered(strategy: StrategyTurns) -> bool:
            return not (
                strategy.objections and re.search(strategy.objections, objection, re.IGNORECASE)
            )

        return [first, *sorted(others, key=unanswered)]

    def next(
        self, cell: Cell, replies: Sequence[str], status: Status
    ) -> tuple[Message, ...] | None:
        """Return the next turn of the strategy in progress, or the first of the next one; None
        where a reply can be used, or no strategy is left.
        """
        start = 0
        for strategy in self._in_order(replies):
            turn = len(replies) - start
            if turn < len(strategy.turns):
                return conversation(cell.system, strategy.turns, _spoken(replies[start:]))
            # Only the reply that was last has a status; the ones before it were not what was asked
            # for.
            if (
                turn == len(strategy.turns)
                and status is Status.ANSWERED
                and self.usable(replies[-1])
            ):
                return None
            start += len(strategy.turns)
        return None

    def columns(self, cell: Cell, trial: Trial) -> Mapping[str, JSON]:  # noqa: ARG002
        """Return which strategy brought the answer, at which level, and whether the plain request
        was refused.
        """
        replies = trial.replies
        strategies = self._in_order(trial.replies)
        level = len(strategies)
        name = "none"
        if trial.status is Status.ANSWERED and self.usable(replies[-1]):
            ends = accumulate(len(strategy.turns) for strategy in strategies)
            level = sum(end < len(replies) for end in ends)
            name = strategies[level].name
        return {
            "requests": len(replies),
            "strategy": name,
            "strategy_level": level,
            REFUSED_FIRST: self._refused_first(trial),
        }

    def _refused_first(self, trial: Trial) -> bool | None:
        """Return whether the plain request was declined; None where nobody knows."""
        if trial.threads:
            return trial.threads[0].status is Status.REFUSED
        if len(trial.replies) > len(self.strategies[0].turns):
            return None
        if trial.status not in (Status.ANSWERED, Status.REFUSED):
            return None
        return trial.status is Status.REFUSED

    def threads(
        self, cell: Cell, replies: Sequence[str], statuses: Mapping[int, Status], ended: Status
    ) -> tuple[Thread, ...]:
        """Return the conversation of each strategy that was tried; none where the plain request was
        enough.
        """
        threads: list[Thread] = []
        start = 0
        for strategy in self._in_order(replies):
            answers = _spoken(replies[start : start + len(strategy.turns)])
            if start > len(replies):
                break
            if not answers and ended in (Status.ANSWERED, Status.REFUSED):
                break
            messages = conversation(cell.system, (*strategy.turns, ""), answers)
            status = ended
            if len(answers) == len(strategy.turns):
                status = statuses.get(start + len(answers) - 1, Status.ANSWERED)
                messages = messages[:-1]
            threads.append(Thread(strategy=strategy.name, status=status, messages=messages))
            start += len(strategy.turns)
        if len(threads) == 1:  # the trial itself has it
            return ()
        return tuple(threads)


def _spoken(replies: Sequence[str]) -> list[str]:
    """Return *replies* as a later turn quotes them."""
    return [reply or _SILENCE for reply in replies]


def staged(
    planned: PlannedTrial, endpoint: Endpoint, is_refusal: Callable[[str], bool] | None = None
) -> PlannedTrial:
    """Return *planned* as it is asked: of a pipeline, step by step.

    Raises UsageError where a pipeline cannot be asked it: a conversation, a system prompt,
    strategies, parameters.
    """
    if not isinstance(endpoint, PipelineEndpoint):
        return planned
    cell = planned.cell
    cannot = {
        "strategies, or an arm with steps": planned.script,
        "several turns": cell.turns[1:],
        "a system prompt": cell.system is not None,
        f"parameters ({', '.join(planned.parameters)})": planned.parameters,
    }
    for what, given in cannot.items():
        if given:
            raise UsageError(
                f"endpoint {endpoint.name!r} is a pipeline, which is given one text: the test has "
                f"{what}; say it in the steps of the pipeline, or in their entries"
            )
    script = Relay(
        steps=endpoint.steps,
        systems=tuple(step.system for step in endpoint.steps),
        endpoints=tuple(step.ready for step in endpoint.steps),
        refused=is_refusal or (lambda _text: False),
    )
    return replace(planned, script=script)


def fingerprint(function: Callable[..., object]) -> str:
    """Return what tells one function from another across sessions: its name and a hash of its
    source, if there is one.
    """
    owner: Any = inspect.unwrap(function)
    if not inspect.isroutine(owner):
        owner = type(owner)
    name = f"{owner.__module__}:{owner.__qualname__}"
    try:
        source = inspect.getsource(owner)
    except (OSError, TypeError):
        return name
    return f"{name}:{hashlib.sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
