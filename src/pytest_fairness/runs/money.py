"""The cost cap: every call is reserved at its worst case before it leaves, and settled by what it
used.

The account is in the run's database, so that the cap holds for all its processes together. A
process that dies leaves its reservations standing: what was sent and never accounted for counts as
spent in full. Amounts are whole nano-dollars, rounded up, so that sums are exact.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_fairness.endpoints.protocol import Price
from pytest_fairness.errors import BudgetError, StoreError
from pytest_fairness.model import JSON, Message, Usage
from pytest_fairness.runs.database import Database, Operation, Read

#: More tokens than this in one call is no measurement: the longest contexts on offer hold a few
#: million.
ABSURD_TOKENS = 50_000_000
#: Reserved for a reply where no parameter limits its length.
UNLIMITED_OUTPUT = 16_384
#: A message's role and separators, in tokens, at the most.
_PER_MESSAGE = 16
_LIMITS = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens_to_sample",
    "num_predict",
)
_NANO = 1_000_000_000


def worst_case(price: Price, messages: Sequence[Message], parameters: Mapping[str, JSON]) -> int:
    """The most that one call can cost, in nano-dollars.

    A token is at least one byte in every tokenizer in use, so the UTF-8 length bounds the input;
    the output is bounded by the parameter that limits it, else taken as ``UNLIMITED_OUTPUT``
    tokens.
    """
    size = sum(
        len(message.content.encode("utf-8", "surrogatepass")) + _PER_MESSAGE for message in messages
    )
    return _nano(
        price.cost(input_tokens=size, output_tokens=output_limit(parameters, UNLIMITED_OUTPUT) or 0)
    )


def output_limit(parameters: Mapping[str, JSON], default: int | None = None) -> int | None:
    """The most tokens that *parameters* let a call write, all its *n* replies together; *default*
    is that of one reply where they set no limit.
    """
    limits = []
    for name in _LIMITS:
        limit = _count(parameters.get(name))
        if limit is not None:
            limits.append(limit)
    most = max(limits, default=default)
    if most is None:
        return None
    replies = _count(parameters.get("n")) or 1
    return most * replies


def used(price: Price, usage: Usage | None, *, replied: bool) -> int | None:
    """Return what *usage* comes to, in nano-dollars; None where it cannot be believed: missing,
    negative, absurd, or nothing counted for a call that *replied*.
    """
    if usage is None or absurd(usage):
        return None
    fewest = int(replied)
    tokens_in = _count(usage.input_tokens, fewest)
    tokens_out = _count(usage.output_tokens, fewest)
    if tokens_in is None or tokens_out is None:
        return None
    return _nano(price.cost(input_tokens=tokens_in, output_tokens=tokens_out))


def absurd(usage: Usage | None) -> bool:
    """Return whether a provider counts more tokens than any call can have."""
    if usage is None:
        return False
    tokens_in = _count(usage.input_tokens) or 0
    tokens_out = _count(usage.output_tokens) or 0
    return max(tokens_in, tokens_out) > ABSURD_TOKENS


def _count(value: object, fewest: int = 0) -> int | None:
    """Return *value* where it is a number of tokens, *fewest* or more."""
    # type(): True is an int, and no number of tokens.
    if type(value) is int and value >= fewest:
        return value
    return None


def _nano(dollars: float) -> int:
    """Return *dollars* in nano-dollars, rounded up."""
    # A millionth of a nano-dollar is rounding in the sum of products, not a cost.
    return math.ceil(dollars * _NANO - 1e-6)


def dollars(nano: int) -> float:
    return nano / _NANO


def unpriced(endpoint: str, cap: float) -> str:
    """Why an endpoint without a price is not asked under a cap, in US dollars."""
    return (
        f"endpoint {endpoint!r} has no known price, so a cost cap of ${cap:.2f} "
        "cannot be kept; declare it in endpoints.yaml, in US dollars per million tokens, for "
        "example "
        "price: {input_per_million: 3.0, output_per_million: 15.0}; "
        "or run without a cap (--fairness-max-cost; of a ready-made suite, max_cost: none in its "
        "file)"
    )


class Account(NamedTuple):
    """The account of a run: what its processes have spent, and have reserved for calls under way,
    in nano-dollars.
    """

    settled: int = 0
    reserved: int = 0

    def exhausted(self, amount: int, cap: int) -> BudgetError:
        """The error for an *amount* that does not fit under *cap*."""
        held = ""
        if self.reserved:
            held = f" and ${dollars(self.reserved):.4f} is held for calls without an account"
        return BudgetError(
            f"the cost cap of ${dollars(cap):.2f} leaves no room: "
            f"${dollars(self.settled):.4f} is spent{held}, the next call may cost "
            f"${dollars(amount):.4f}; "
            "raise --fairness-max-cost, or lower max_tokens (it bounds the worst case). "
            "What was paid for is kept in the run's folder"
        )


class Reserve(Operation):
    """Set *amount* aside; False if it does not fit now but may once calls under way have settled.
    Raises BudgetError if it cannot fit any more.
    """

    early = True
    queries = False
    amount: int
    cap: int | None

    def run(self, database: Database) -> bool:
        account = Account(*database.account)
        if self.cap is not None and sum(account) + self.amount > self.cap:
            if account.settled + self.amount > self.cap:
                raise account.exhausted(self.amount, self.cap)
            return False
        database.account = (account.settled, account.reserved + self.amount)
        return True


class Settle(Operation):
    """Put *cost* in the place of *reserved*."""

    queries = False
    reserved: int
    cost: int

    def run(self, database: Database) -> None:
        settled, reserved = database.account
        if self.reserved > reserved:
            raise StoreError(
                "more is settled than was reserved: the account of this run cannot be trusted"
            )
        database.account = (settled + self.cost, reserved - self.reserved)


class Budget:
    """The run's account under *cap* US dollars (None: no cap, the account is kept all the same).

    ``reserved`` is what this process has reserved now.
    """

    def __init__(self, database: Database, cap: float | None) -> None:
        if cap is not None and not 0 <= cap < math.inf:
            raise BudgetError(
                f"a cost cap is a number of US dollars, 0 or more, not {cap!r}: mend "
                "--fairness-max-cost"
            )
        if cap is None:
            self.cap = None
        else:
            self.cap = math.floor(cap * _NANO + 1e-6)
        self.reserved = 0
        self._database = database

    def check_price(self, endpoint: str, price: Price | None) -> None:
        """Raise BudgetError where a cap is set and nobody knows what a call costs."""
        if self.cap is not None and price is None:
            raise BudgetError(unpriced(endpoint, dollars(self.cap)))

    async def reserve(self, amount: int) -> bool:
        """Set *amount* aside, as :class:`Reserve` does."""
        operation = Reserve(amount=amount, cap=self.cap)
        if self.cap is None:
            self._database.post(operation)  # there is nothing that it could fail to fit
        else:
            reserved = self._database.done(operation)
            try:
                if not await asyncio.shield(reserved):
                    return False
            except asyncio.CancelledError:  # nothing is sent for it, however the account answers
                reserved.add_done_callback(lambda done: self._give_back(done, amount))
                raise
        self.reserved += amount
        return True

    def _give_back(self, reserved: asyncio.Future[Any], amount: int) -> None:
        """Give *amount* back, where it was *reserved* for a call that is not made any more."""
        if reserved.cancelled() or reserved.exception() is not None:
            return
        if reserved.result():
            self._database.post(Settle(reserved=amount, cost=0))

    def settle(self, reserved: int, cost: int) -> None:
        """Put *cost* in the place of *reserved*."""
        self._database.post(Settle(reserved=reserved, cost=cost))
        self.reserved -= reserved

    def leave(self, amount: int) -> None:
        """Let *amount* stand reserved, for a later session to :meth:`adopt`."""
        self.reserved -= amount

    def adopt(self, amount: int) -> int:
        """Take over up to *amount* that an earlier process left reserved; how much of it there was."""
        taken = min(amount, self.account().reserved)
        self.reserved += taken
        return taken

    def account(self) -> Account:
        """The account as it stands, of all processes."""
        return Account(*self._database.submit(Read("account")).result()[0])

    def blocked(self, amount: int) -> BudgetError:
        """The error for an *amount* that reservations of processes which do not settle keep from
        fitting.
        """
        return self.account().exhausted(amount, self.cap or 0)
