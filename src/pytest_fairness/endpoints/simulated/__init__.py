"""The default endpoint: a simulated model, seeded, offline, with a bias that you can plant and find
again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace

from pytest_fairness import documents
from pytest_fairness.endpoints.function import AMBIENT
from pytest_fairness.endpoints.protocol import FREE, Price, Reply, Request
from pytest_fairness.endpoints.simulated.answers import Question, answer
from pytest_fairness.endpoints.simulated.bias import Draws, Planted
from pytest_fairness.endpoints.simulated.prompt import read_person, read_task
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
        if (here := AMBIENT.get()) is not None:
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
        planted = self.planted
        messages = request.messages
        temperature = request.parameters.get(
            "temperature", self.default_parameters.get("temperature")
        )
        trial = -1
        if temperature != 0:
            trial = request.repetition
        draws = Draws(
            planted.seed, *(part for m in messages for part in (m.role, m.content)), trial
        )
        given = [message.content for message in messages if message.role != "assistant"]
        # Where the last message only says "go on", one before it says what is asked for.
        tasks = (read_task(text) for text in reversed(given or [""]))
        task = next((task for task in tasks if task.kind != "acknowledge"), None) or read_task("")
        if keys := _keys_of(request.parameters.get("response_format")):
            task = task._replace(form="json", keys=keys)
        reading = read_person("\n".join(given), request.signals)
        question = Question(reading, task, planted, draws, draws.normal(), request.signals)
        base = None
        if task.kind == "sensitive":
            base = _SENSITIVE_REFUSED
        refused = (
            task.kind != "acknowledge"
            and planted.refusal_logit(reading, base) + draws.logistic() > 0
        )
        if refused:
            text = question.pick("refusals")
        else:
            text = answer(question)
        tokens = sum(len(message.content) for message in messages)
        return Reply(
            text=text,
            status=Status.REFUSED if refused else Status.ANSWERED,
            finish_reason="refusal" if refused else "stop",
            model=f"simulated-{VERSION}",
            usage=Usage(input_tokens=tokens // 4 + 3, output_tokens=len(text) // 4 + 1),
            simulated=True,
        )


def _keys_of(response_format: JSON) -> tuple[str, ...]:
    """The keys of the JSON object that is asked for by a schema; none without one."""
    schema: JSON = response_format
    for step in ("json_schema", "schema", "properties"):
        if isinstance(schema, dict):
            schema = schema.get(step)
        else:
            schema = None
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
