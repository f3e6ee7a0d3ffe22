"""Messages between the engine and an endpoint: one request, one attempt, one reply or one
classified failure.

An endpoint makes exactly one attempt a call. It never retries, never sleeps on its own and never
raises anything but :class:`AttemptError`: deadlines, retries, budgets and the log belong to the
engine, which decides by the *evidence* of what went over the wire, because that is what decides
whether money may have been spent.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.model import JSON, Message, Status, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One conversation to be continued by one reply.

    ``key`` is the content key of the trial, for logs; ``signals`` are the surface strings that
    convey groups, for the simulated endpoint alone. Neither is ever sent. ``leaving`` is for
    endpoints that announce when a request leaves.
    """

    messages: tuple[Message, ...]
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    repetition: int = 0
    key: str = ""
    signals: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    leaving: Callable[[], Awaitable[None]] | None = field(default=None, compare=False, repr=False)


def joined(parts: Sequence[Any]) -> Any:
    """Return the text that *parts* make together, or the first of them that is none, so that it
    gets reported.
    """
    for part in parts:
        if not isinstance(part, str):
            return part
    return "".join(parts)


def plain_messages(messages: Sequence[Message]) -> list[JSON]:
    """Role and content of each, as most formats want them."""
    return [{"role": message.role, "content": message.content} for message in messages]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The exchange over the wire, verbatim but for secrets: headers by allow-list, user and query
    cut from the URL.

    ``response_body`` holds the bytes as UTF-8 with ``surrogateescape``, so that they can be had
    back exactly; ``truncated`` says that the body was longer than the cap, or that the connection
    broke while it came.
    """

    url: str
    request_body: str
    request_headers: Mapping[str, str]
    status_code: int | None
    response_headers: Mapping[str, str]
    response_body: str
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A complete answer, usable or not.

    ``cost`` is in US dollars, if the system itself says what a call cost.

    ``text`` is present for ANSWERED and, where the provider gave its refusal as text, for REFUSED;
    for every other status it is ``None`` and ``error`` says in one redacted sentence what was
    wrong. ``finish_reason`` and ``model`` are the provider's own words. ``wire`` is ``None`` where
    nothing went over a wire.
    """

    text: str | None
    status: Status = Status.ANSWERED
    finish_reason: str | None = None
    model: str | None = None
    usage: Usage | None = None
    wire: Wire | None = None
    error: str | None = None
    simulated: bool = False
    cost: float | None = None


class Evidence(StrEnum):
    """Evidence of a failed attempt: what it may have cost and whether it may be repeated."""

    NOT_SENT = "not_sent"  # no connection: free, may be repeated
    THROTTLED = (
        "throttled"  # a complete 429, 503 or 529: normally free, may be repeated after a wait
    )
    SERVER = "server"  # a complete 5xx otherwise: cost unknown
    NO_RESPONSE = "no_response"  # sent, and nothing came back: perhaps paid for
    PARTIAL = "partial"  # a success that broke off: paid for
    AUTH = "auth"  # 401, 403, quota, unknown model: free, and so will every other attempt be
    REJECTED = (
        "rejected"  # the request itself was refused (400, 422, redirects …): free, an outcome
    )


class AttemptError(EndpointError):
    """One attempt failed. The message is redacted; ``retry_after`` is in seconds, as the server
    asked.
    """

    def __init__(
        self,
        message: str,
        *,
        evidence: Evidence,
        retry_after: float | None = None,
        wire: Wire | None = None,
    ) -> None:
        super().__init__(message)
        self.evidence = evidence
        self.retry_after = retry_after
        self.wire = wire


class CutOff(asyncio.CancelledError):
    """An attempt was cancelled, and this is as far as it had come: a CancelledError that loses
    nothing.

    An endpoint that raises plain CancelledError says nothing of how far it was; the request then
    counts as sent.
    """

    def __init__(self, *, evidence: Evidence, wire: Wire | None = None) -> None:
        super().__init__(f"cut off: {evidence}")
        self.evidence = evidence
        self.wire = wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars: per million tokens each way, and per call."""

    input_per_million: float
    output_per_million: float
    per_call: float = 0.0

    def cost(self, *, input_tokens: int, output_tokens: int) -> float:
        """Dollars for one call with this many tokens."""
        tokens = input_tokens * self.input_per_million + output_tokens * self.output_per_million
        return tokens / 1_000_000 + self.per_call


FREE = Price(input_per_million=0.0, output_per_million=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on asking an endpoint: in a minute by all processes of a run together, and
    ``concurrency`` at once by each, instead of what the session says. None: no limit of its own.

    ``server_error_attempts`` is how often one turn may be asked where the server fails (500, 502,
    504); each of those attempts is charged at its worst case, because it may have been billed.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int | None = None
    server_error_attempts: int = 1

    @property
    def by_the_minute(self) -> bool:
        """Return whether anything is limited per minute."""
        return self.requests_per_minute is not None or self.tokens_per_minute is not None

    def of_a_shard(self, shards: int) -> Limits:
        """Return what each of *shards* may ask in a minute: an N-th, whole requests and tokens, so
        that all of them together keep these limits.

        Raises UsageError where nothing is left for each.
        """
        parts = {}
        for name in ("requests_per_minute", "tokens_per_minute"):
            limit = getattr(self, name)
            if limit is None:
                continue
            if limit < shards:
                raise UsageError(
                    f"{name}: {limit} cannot be shared by {shards} shards: use {limit} shards at "
                    "the most"
                )
            parts[name] = limit // shards
        return dataclasses.replace(self, **parts)


def limits_of(endpoint: object) -> Limits:
    """Return how fast *endpoint* may be asked: ``limits``, an attribute that it may have or not."""
    limits = getattr(endpoint, "limits", None)
    if isinstance(limits, Limits):
        return limits
    return Limits()


def takes_conversation(endpoint: Endpoint) -> bool:
    """Return whether turns before the last can be sent to *endpoint*."""
    return bool(getattr(endpoint, "supports_conversation", True))


def takes_structured_output(endpoint: Endpoint) -> bool:
    """Return whether *endpoint* declares that it answers by a JSON schema."""
    return getattr(endpoint, "supports_structured_output", False) is True


@runtime_checkable
class Endpoint(Protocol):
    """A system under test. Implementations are adapters: one module, one class, one row in the
    registry.

    ``price`` is ``None`` if unknown. ``identity`` is JSON-able and free of secrets; it goes into
    content keys and the manifest, so whatever changes the answers belongs in it, and nothing else
    does.

    It may also have ``limits``; ``supports_conversation = False``, where the turns before the last
    cannot be sent; ``supports_structured_output = True``, where the parameter ``response_format``
    may hold a JSON schema; ``announces_leaving = True``, if it awaits ``Request.leaving`` before
    the first byte of the request (what that raises keeps the request from leaving); and a coroutine
    method ``prepare``, which is awaited once before the first question, while no attempt's time
    counts, and raises AttemptError.
    """

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def simulated(self) -> bool: ...
    @property
    def supports_system_prompt(self) -> bool: ...
    @property
    def default_parameters(self) -> Mapping[str, JSON]: ...
    @property
    def price(self) -> Price | None: ...

    def identity(self) -> dict[str, JSON]: ...

    async def ask(self, request: Request) -> Reply: ...

    async def aclose(self) -> None: ...
