"""What passes between the engine and a provider's batch API: many requests in one file, their results hours later.

A batch API is a way of asking an endpoint, not another endpoint: the requests are those that would go out one by one.
Every method is one exchange or a few that may be repeated freely, but for :meth:`BatchApi.submit`, which is paid for.
The engine decides what is repeated, and logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pytest_fairness.endpoints.protocol import AttemptError, Endpoint, Evidence, Price, Reply, Request, Wire
from pytest_fairness.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """How batches are made and waited for.

    ``poll_seconds`` lie between two looks at a batch. ``max_requests`` and ``max_bytes`` bound one batch;
    ``max_wait_hours`` after its submission nobody waits for it any more (it can be gone on with). ``price_share`` of
    the price of a single call is what a call in a batch costs.
    """

    poll_seconds: float = 60.0
    max_requests: int = 10_000
    max_wait_hours: float = 26.0
    price_share: float = 0.5
    max_bytes: int = 90_000_000

    def price(self, price: Price | None) -> Price | None:
        """What a call in a batch costs, where a single one costs *price*."""
        if price is None:
            return None
        share = self.price_share
        return Price(
            input_per_million=price.input_per_million * share,
            output_per_million=price.output_per_million * share,
            per_call=price.per_call * share,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request of a batch: the identifier that its result will bear, and the body that would be sent alone."""

    custom_id: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LineError:
    """What the provider holds against one line of the input; ``line`` counts from 0."""

    line: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchState:
    """How a batch stands at the provider.

    ``status`` is the provider's own word. ``ended``: nothing more will come of it. ``failed`` says why it was not
    begun at all, ``full`` that only too much was waiting there, ``lines`` which lines of the input were at fault.
    ``results`` are the addresses of its results. ``wire`` is the exchange in which it was said.
    """

    id: str
    status: str
    ended: bool
    done: int = 0
    total: int = 0
    results: tuple[str, ...] = ()
    failed: str | None = None
    full: bool = False
    lines: tuple[LineError, ...] = ()
    wire: Wire | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One line of results. ``custom_id`` is None where the line names none, so that nobody knows whose it is.

    Either ``reply`` or ``error`` is there. ``free`` says that the provider bills nothing for it. ``flag`` names what
    became of a request that was never asked: expired, or canceled. ``status_code`` is the one of its response, where
    the line tells it.
    """

    custom_id: str | None
    line: str
    status_code: int | None = None
    reply: Reply | None = None
    error: AttemptError | None = None
    free: bool = False
    flag: str | None = None


class NotSettledError(Exception):
    """Whether a batch was made cannot be told yet: one that may be it is still in progress."""


@runtime_checkable
class BatchApi(Protocol):
    """A provider's batch API, for one endpoint. Failures are AttemptErrors, with their evidence."""

    @property
    def options(self) -> BatchOptions: ...

    async def body(self, request: Request) -> bytes:
        """The body of *request* as it is sent outside of batches."""

    def encode(self, asked: Sequence[Asked]) -> list[bytes]:
        """One line for each request, as it stands in what is submitted, without line end."""

    async def upload(self, lines: Sequence[bytes], tag: str) -> str | None:
        """Where the API wants the input as a file first: put it there, and return the file's name. Free."""

    async def submit(self, lines: Sequence[bytes], tag: str, file: str | None) -> BatchState:
        """Have the provider begin. This alone is paid for."""

    async def find(self, tag: str, *, file: str | None, requests: int, since: float) -> BatchState | None:
        """The batch that was submitted under *tag* after *since* (Unix time), None if there is none.

        Raises NotSettledError, to be asked again, and AttemptError where the provider cannot tell.
        """

    async def state(self, batch: str) -> BatchState:
        """How the batch stands."""

    async def results(self, state: BatchState) -> list[Result]:
        """All results of a batch that has ended."""

    def how_to_cancel(self, batch: str) -> str:
        """What to send in order to cancel it: one line for the user, without a key."""

    async def aclose(self) -> None:
        """Close the connections."""


def refuse_one_by_one(endpoint: Endpoint) -> None:
    """Raise AttemptError(AUTH) where *endpoint* has the price of calls in batches: alone, a call costs more."""
    if batches_of(endpoint) is not None:
        raise AttemptError(
            f"endpoint {endpoint.name!r} is asked in batches alone, and so cannot be a step, or be asked one by one: "
            "give it a second entry without `batch:`",
            evidence=Evidence.AUTH,
        )


def batches_of(endpoint: object) -> BatchApi | None:
    """The ``batches`` of *endpoint*, an attribute that it may have or not: how it is asked many things at once.

    Raises UsageError for one that is no BatchApi.
    """
    batches = getattr(endpoint, "batches", None)
    if batches is None or isinstance(batches, BatchApi):
        return batches
    raise UsageError(f"the endpoint's batches are {type(batches).__name__}, which has not the methods of a BatchApi")
