"""The default endpoint: a simulated model, seeded, offline, with a bias that you can plant and find
again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_fairness import documents
from pytest_fairness.endpoints.function import AMBIENT
from pytest_fairness.endpoints.protocol import FREE, Price, Reply, Request
from pytest_fairness.endpoints.simulated.answers import Question, answer, explained
from pytest_fairness.endpoints.simulated.bias import Draws, Planted
from pytest_fairness.endpoints.simulated.misreading import asked_reading, read
from pytest_fairness.endpoints.simulated.prompt import (
    Task,
    asks_for_facts,
    asks_for_line,
    read_person,
    read_task,
    without_form,
)
from pytest_fairness.model import JSON, Message, Status, Usage, to_json

__all__ = ["Planted", "SimulatedEndpoint", "simulated_endpoint"]

#: Goes into the identity: raised whenever the same request would get another reply than before.
VERSION = "1"

#: The share of a prompt that invites a refusal (a joke about a group) that is refused without any
#: bias.
_SENSITIVE_REFUSED = 0.5


class SimulatedEndpoint:
    """Deterministic in seed, messages and repetition; standard library only; never fails."""

    type = "simulated"
    simulated = True
    supports_system_prompt = True
    price: Price | None = FREE

    def __init__(self, planted: Planted | None = None) -> None:
        self.planted = planted or Planted()
        self.name = self.planted.name
        self.default_parameters: Mapping[str, JSON] = dict(self.planted.default_parameters)
        self.supports_structured_output = self.planted.supports_structured_output

    def identity(self) -> dict[str, JSON]:
        parameters = {}
        if self.default_parameters:
            parameters = {"parameters": dict(self.default_parameters)}
        return {"type": self.type, "version": VERSION, **self.planted.identity(), **parameters}

    async def ask(self, request: Request) -> Reply:
        if self.planted.latency > 0:
            await asyncio.sleep(self.planted.latency)
        return self.reply(request)

    async def aclose(self) -> None:
        """Nothing is held open."""

    def complete(self, prompt: str) -> str:
        """The text for *prompt*, for an application under test in which this stands in for the
        model.

        Asked for a trial, it answers each repetition anew and knows what the trial's names signal,
        and the trial is marked as simulated.
        """
        request = Request(messages=(Message("user", prompt),))
        here = AMBIENT.get()
        if here is not None:
            here.simulated = True
            # A digit of its own for what one trial asks: the second question is not the first of
            # the next one.
            number = here.request.repetition * 1000 + here.count
            request = replace(request, repetition=number, signals=here.request.signals)
            here.count += 1
        if self.planted.latency > 0:
            time.sleep(self.planted.latency)
        return self.reply(request).text or ""

    def reply(self, request: Request) -> Reply:
        """The answer to *request*, without the wait."""
        asked = asked_reading(request.messages[-1].content)
        if asked is not None:
            return _reply(request, read(asked, self.planted, request.signals))
        messages = tuple(
            Message(message.role, without_form(message.content)) for message in request.messages
        )
        draws = self._draws(replace(request, messages=messages))
        given = [message.content for message in messages if message.role != "assistant"]
        task = _task_of(given)
        keys = _keys_of(request.parameters.get("response_format"))
        if keys:
            task = task._replace(form="json", keys=keys)
        reading = read_person("\n".join(given), request.signals)
        question = Question(reading, task, self.planted, draws, draws.normal(), request.signals)
        if self._refuses(question):
            return _reply(request, question.pick("refusals"), Status.REFUSED)
        prompt = request.messages[-1].content
        if asks_for_facts(prompt):
            return _reply(request, explained(question))
        return _reply(request, answer(question, on_line=asks_for_line(prompt)))

    def _draws(self, request: Request) -> Draws:
        """Return the chance of *request*; at temperature 0 all repetitions share one."""
        default = self.default_parameters.get("temperature")
        trial = -1
        if request.parameters.get("temperature", default) != 0:
            trial = request.repetition
        parts: list[str] = []
        for message in request.messages:
            parts += (message.role, message.content)
        return Draws(self.planted.seed, *parts, trial)

    def _refuses(self, question: Question) -> bool:
        """Return whether chance, and the bias that is planted, refuse the request."""
        kind = question.task.kind
        if kind == "acknowledge":
            return False
        base = None
        if kind == "sensitive":
            base = _SENSITIVE_REFUSED
        logit = self.planted.refusal_logit(question.reading, base)
        return logit + question.draws.logistic() > 0


def _reply(request: Request, text: str, status: Status = Status.ANSWERED) -> Reply:
    """Return *text* as the reply to *request*, with what it took."""
    reason = "stop"
    if status is Status.REFUSED:
        reason = "refusal"
    tokens = sum(len(message.content) for message in request.messages)
    return Reply(
        text=text,
        status=status,
        finish_reason=reason,
        model=f"simulated-{VERSION}",
        usage=Usage(input_tokens=tokens // 4 + 3, output_tokens=len(text) // 4 + 1),
        simulated=True,
    )


def _task_of(given: Sequence[str]) -> Task:
    """Return what the last of the messages *given* asks for; where it only says "go on", one before
    it.
    """
    for text in reversed(given):
        task = read_task(text)
        if task.kind != "acknowledge":
            return task
    return read_task("")


def _keys_of(response_format: JSON) -> tuple[str, ...]:
    """The keys of the JSON object that is asked for by a schema; none without one."""
    schema: JSON = response_format
    for step in ("json_schema", "schema", "properties"):
        if not isinstance(schema, dict):
            return ()
        schema = schema.get(step)
    if isinstance(schema, dict):
        return tuple(schema)
    return ()


def simulated_endpoint(*, name: str = "simulated", **options: object) -> SimulatedEndpoint:
    """A simulated endpoint, as in ``simulated_endpoint(bias={"gender": {"female": -0.5}},
    seed=3)``.

    The options are those of :class:`Planted`. Raises UsageError for an unknown one or a value out
    of range.
    """
    given = documents.Document("simulated endpoint", to_json({"name": name, **options}))
    return SimulatedEndpoint(given.convert(Planted))
