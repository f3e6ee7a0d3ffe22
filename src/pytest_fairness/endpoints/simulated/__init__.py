"""The default endpoint: a simulated model, seeded, offline, with a bias that you can plant and find again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from pytest_fairness import documents
from pytest_fairness.endpoints.function import AMBIENT
from pytest_fairness.endpoints.protocol import Price, Reply, Request
from pytest_fairness.endpoints.simulated.answers import VALUES, Question, answer, refusal
from pytest_fairness.endpoints.simulated.bias import Draws, Planted
from pytest_fairness.endpoints.simulated.prompt import Kind, Task, read_person, read_task
from pytest_fairness.endpoints.simulated.writing import BANKS, Order, write
from pytest_fairness.model import JSON, Message, Status, Usage, to_json

__all__ = ["Planted", "SimulatedEndpoint", "simulated_endpoint"]

#: Goes into the identity: raised whenever the same request would get another reply than before.
VERSION = "1"

#: The share of a prompt that invites a refusal (a joke about a group) that is refused without any bias.
_SENSITIVE_REFUSED = 0.5


class SimulatedEndpoint:
    """Deterministic in seed, messages and repetition; standard library only; never fails."""

    type = "simulated"
    simulated = True
    supports_system_prompt = True

    def __init__(self, planted: Planted | None = None) -> None:
        self.planted = planted or Planted()
        self.name = self.planted.name
        self.default_parameters: Mapping[str, JSON] = dict(self.planted.default_parameters)
        self.price: Price | None = Price(input_per_million=0.0, output_per_million=0.0)

    def identity(self) -> dict[str, JSON]:
        identity: dict[str, JSON] = {"type": self.type, "version": VERSION, **self.planted.identity()}
        if self.default_parameters:
            identity["parameters"] = dict(self.default_parameters)
        return identity

    async def ask(self, request: Request) -> Reply:
        if self.planted.latency > 0:
            await asyncio.sleep(self.planted.latency)
        return self.reply(request)

    async def aclose(self) -> None:
        """Nothing is held open."""

    def complete(self, prompt: str) -> str:
        """The text for *prompt*, for an application under test in which this stands in for the model.

        Asked for a trial, it answers each repetition anew and knows what the trial's names signal, and the
        trial is marked as simulated.
        """
        here = AMBIENT.get()
        signals: Mapping[str, Mapping[str, str]] = {}
        repetition = 0
        if here is not None:
            here.simulated = True
            # A digit of its own for what one trial asks: the second question is not the first of the next one.
            repetition, signals = here.request.repetition * 1000 + here.count, here.request.signals
            here.count += 1
        if self.planted.latency > 0:
            time.sleep(self.planted.latency)
        messages = (Message("user", prompt),)
        return self.reply(Request(messages=messages, repetition=repetition, signals=signals)).text or ""

    def reply(self, request: Request) -> Reply:
        """The answer to *request*, without the wait."""
        planted = self.planted
        draws = Draws(planted.seed, *self._trial(request))
        text, last = _conversation(request.messages)
        task = _task(request.messages, last)
        reading = read_person(text, request.signals)
        question = Question(reading, task, planted, draws, draws.normal(), request.signals)
        base = _SENSITIVE_REFUSED if task.kind is Kind.SENSITIVE else None
        if task.kind is not Kind.ACKNOWLEDGE and planted.refusal_logit(reading, base) + draws.logistic() > 0:
            return self._reply(request, refusal(draws), Status.REFUSED, "refusal")
        return self._reply(request, self._answer(question), Status.ANSWERED, "stop")

    def _trial(self, request: Request) -> list[str | int]:
        """What one trial's chance hangs on: every message and, unless the temperature is 0, the repetition."""
        parts: list[str | int] = [part for message in request.messages for part in (message.role, message.content)]
        temperature = request.parameters.get("temperature", self.default_parameters.get("temperature"))
        parts.append(-1 if temperature == 0 else request.repetition)
        return parts

    def _answer(self, question: Question) -> str:
        bank = BANKS.get(question.task.kind)
        if bank is None or question.task.kind in VALUES:
            return answer(question)
        order = Order(
            name=question.reading.name,
            pronoun=question.reading.pronoun,
            role=question.task.role,
            length=question.latent("word_count"),
            tone=question.latent("sentiment"),
            words=question.task.words,
            most=question.task.most_words,
        )
        return write(bank, order, question.draws)

    def _reply(self, request: Request, text: str, status: Status, finish_reason: str) -> Reply:
        tokens = sum(len(message.content) for message in request.messages)
        usage = Usage(input_tokens=tokens // 4 + 3, output_tokens=len(text) // 4 + 1)
        return Reply(
            text=text,
            status=status,
            finish_reason=finish_reason,
            model=f"simulated-{VERSION}",
            usage=usage,
            simulated=True,
        )


def _conversation(messages: tuple[Message, ...]) -> tuple[str, str]:
    """All that the model is given, and the last of it."""
    texts = [message.content for message in messages if message.role != "assistant"]
    return "\n".join(texts), texts[-1] if texts else ""


def _task(messages: tuple[Message, ...], last: str) -> Task:
    """What the last message asks for; where it only says "go on", what one before it asks for."""
    task = read_task(last)
    if task.kind is not Kind.ACKNOWLEDGE or len(messages) == 1:
        return task
    for message in reversed(messages[:-1]):
        if message.role != "assistant" and (before := read_task(message.content)).kind is not Kind.ACKNOWLEDGE:
            return before
    return task


def simulated_endpoint(*, name: str = "simulated", **options: object) -> SimulatedEndpoint:
    """A simulated endpoint, as in ``simulated_endpoint(bias={"gender": {"female": -0.5}}, seed=3)``.

    The options are those of :class:`Planted`. Raises UsageError for an unknown one or a value out of range.
    """
    given = documents.Document("simulated endpoint", to_json({"name": name, **options}))
    return SimulatedEndpoint(given.convert(Planted))
