"""One attempt as it ended: the model that answered, the cost, and what is kept of it."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from pytest_fairness.endpoints.prices import price_table
from pytest_fairness.endpoints.protocol import CutOff, Endpoint, Evidence, Price, Reply
from pytest_fairness.endpoints.redaction import redact, redact_values
from pytest_fairness.engine.conversation import REPEATABLE
from pytest_fairness.model import Status, Usage
from pytest_fairness.runs.money import absurd, used, worst_case
from pytest_fairness.runs.records import SIMULATED, Attempt

#: The flag of an attempt with token counts that no model reaches.
USAGE_ABSURD = "usage_absurd"
CANCELLED = "cancelled"
_LONGEST_COUNT = 1 << 62
_LONGEST_ERROR = 2000

_SNAPSHOT = re.compile(r"[-@:](?:latest|v?\d{3,8}(?:-\d{2}){0,2})")


def same_model(requested: str, answered: str) -> bool:
    """Return whether *answered* is *requested*, or a dated snapshot of it
    (``gpt-4o-mini-2024-07-18``, ``llama3:latest``).

    Providers' prefixes (``openai/``) and case do not matter.
    """
    model = requested.rpartition("/")[2].lower().removesuffix("-latest")
    snapshot = answered.rpartition("/")[2].lower()
    if snapshot == model:
        return True
    return snapshot.startswith(model) and _SNAPSHOT.fullmatch(snapshot, len(model)) is not None


class Tariff:
    """The price of one endpoint's attempts: the dearer of that agreed on and that of whichever
    model answers.

    ``price`` is None where it is unknown; it never falls.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        model = endpoint.identity().get("model")
        self._model: str | None = None
        # On Azure the name is that of a deployment, which says nothing of the model in it.
        if isinstance(model, str) and endpoint.type != "azure":
            self._model = model
        self._provider = endpoint.type
        if endpoint.type == "litellm" and self._model:
            self._provider = self._model.partition("/")[0]
        self._differs: dict[str, bool] = {}
        self.free = endpoint.simulated or endpoint.price == Price(
            input_per_million=0.0, output_per_million=0.0
        )
        self.price = self._agreed = endpoint.price

    def answered_by(self, model: str | None) -> bool:
        """Take note of *model*, which answered; return whether it is another than the requested
        one. From then on, its listed price counts if it is the dearer.
        """
        if model is None or self._model is None:
            return False
        if model not in self._differs:
            self._differs[model] = not same_model(self._model, model)
            # Snapshots have prices of their own in the list; a price that was agreed on covers
            # them.
            by_list = self._agreed == self._listed(self._model)
            if self._differs[model] or by_list:
                self._raise_price(model)
        return self._differs[model]

    def _raise_price(self, model: str) -> None:
        """Raise the price to that listed for *model*, where that is the dearer."""
        if self.price is None or self.free:
            return
        listed = self._listed(model) or self.price
        self.price = Price(
            input_per_million=max(self.price.input_per_million, listed.input_per_million),
            output_per_million=max(self.price.output_per_million, listed.output_per_million),
            per_call=max(self.price.per_call, listed.per_call),
        )

    def _listed(self, model: str) -> Price | None:
        """Return what the price list has for *model*, or for a snapshot of it."""
        name = model.rpartition("/")[2]
        table = price_table()
        price = table.find(self._provider, name)
        if price is not None:
            return price
        for listed in table.prices.get(self._provider, {}):
            if same_model(listed, name):
                return table.find(self._provider, listed)
        return None

    def cost(self, ending: Attempt, reserved: int) -> tuple[int | None, bool]:
        """Return what an attempt costs, in nano-dollars (None: unknown), and whether its usage can
        be believed.
        """
        if self._is_free(ending):
            return 0, not absurd(ending.usage)
        stated: int | None = None
        if ending.cost is not None:
            stated = _per_call(ending.cost)
        if self.price is None:
            return stated, True
        if ending.status is None:
            return reserved, True
        counted = _counted(self.price, ending)
        if counted is not None:
            return max(counted, stated or 0), True
        if stated is not None:
            return stated, True
        return reserved, False

    def _is_free(self, ending: Attempt) -> bool:
        """Return whether nothing is billed for the attempt."""
        unbilled = (*REPEATABLE, Evidence.AUTH, Evidence.REJECTED)
        return self.free or ending.free or ending.evidence in unbilled


def _counted(price: Price, ending: Attempt) -> int | None:
    """Return the cost by the tokens of *ending*, in nano-dollars; None if nobody counted."""
    if price.input_per_million == price.output_per_million == 0:
        return _per_call(price.per_call)  # tokens do not matter, whoever counts them
    return used(price, ending.usage, replied=bool(ending.text))


def _per_call(amount: float) -> int:
    """Return *amount*, in dollars a call, in nano-dollars."""
    return worst_case(Price(input_per_million=0.0, output_per_million=0.0, per_call=amount), (), {})


def failed(
    evidence: Evidence, error: str, *, retry_after: float | None = None, **more: Any
) -> Attempt:
    """Return the end of an attempt without an answer."""
    sensible = isinstance(retry_after, (int, float)) and 0 <= retry_after < math.inf
    if not sensible:
        retry_after = None
    # Without secrets before it is cut: half a key is no longer known as one.
    reason = redact(error)[:_LONGEST_ERROR]
    return Attempt(evidence=evidence, error=reason, retry_after=retry_after, **more)


def cut_off(error: BaseException, when: str, flag: str) -> Attempt:
    """Return the end of an attempt that was given up: bytes that had come are kept, and were paid
    for.
    """
    evidence = Evidence.NO_RESPONSE
    wire = None
    if isinstance(error, CutOff):
        evidence = error.evidence
        wire = error.wire
    texts = {
        Evidence.NOT_SENT: f"nothing could be sent {when}",
        Evidence.NO_RESPONSE: f"no answer {when} (the request was sent)",
    }
    text = texts.get(evidence, f"the answer began, and did not end {when}")
    return failed(evidence, text, wire=wire, flags=(flag,))


def replied(reply: Reply) -> Attempt:
    """Return the end of an attempt with a complete answer, of whatever kind."""
    status = reply.status
    text = reply.text
    error = reply.error
    usage = reply.usage
    if status is Status.ANSWERED and not isinstance(text, str):
        status = Status.MALFORMED
        text = None
        error = f"the reply is {type(reply.text).__name__}, not text"
    if usage is not None:
        usage = _loggable(usage)
    flags = []
    if reply.simulated:
        flags.append(SIMULATED)
    if absurd(reply.usage):
        flags.append(USAGE_ABSURD)
    # An error that came as a success; one without a wire is what an application raised.
    if status is Status.ERROR and reply.wire is not None:
        flags.append("provider_error")
    return Attempt(
        status=status,
        text=text,
        finish_reason=reply.finish_reason,
        model=reply.model,
        usage=usage,
        flags=tuple(flags),
        error=error,
        wire=reply.wire,
        cost=reply.cost,
    )


def cut_secrets(attempt: Attempt) -> None:
    """Take out of *attempt* what is known to be secret, before anybody reads it.

    Of whatever endpoint it is: the texts, and the bytes with the same result.
    """
    for name in ("text", "finish_reason", "model"):
        value = getattr(attempt, name)
        if value is not None:
            setattr(attempt, name, redact_values(value))
    if attempt.error is not None:
        attempt.error = redact(attempt.error)
    wire = attempt.wire
    if wire is None:
        return
    sent = redact_values(wire.request_body)
    received = redact_values(wire.response_body)
    if (sent, received) != (wire.request_body, wire.response_body):
        attempt.wire = replace(wire, request_body=sent, response_body=received)


def _loggable(usage: Usage) -> Usage:
    """Return *usage* without what no counter can show."""
    return Usage(
        input_tokens=_plausible(usage.input_tokens), output_tokens=_plausible(usage.output_tokens)
    )


def _plausible(tokens: object) -> int | None:
    """Return *tokens* where a counter can show them."""
    if type(tokens) is int and abs(tokens) < _LONGEST_COUNT:
        return tokens
    return None
