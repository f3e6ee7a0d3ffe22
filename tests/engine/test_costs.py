"""What a call is charged where the system says so itself, or where no tokens are counted."""

from __future__ import annotations

import pytest

from pytest_fairness.endpoints.protocol import Price, Reply, Request
from pytest_fairness.errors import BudgetError
from pytest_fairness.model import Usage
from tests.support.doubles import Scripted, plan
from tests.support.runs import EngineMaker, records

PER_CALL = Price(input_per_million=0.0, output_per_million=0.0, per_call=0.01)
PER_TOKEN = Price(input_per_million=100.0, output_per_million=100.0)


def telling(cost: float | None, usage: Usage | None = None) -> Scripted:
    def answer(request: Request) -> Reply:
        return Reply(text="Dear Ann", cost=cost, usage=usage)

    return Scripted(answer)


USED = Usage(input_tokens=50, output_tokens=50)  # 1 cent at PER_TOKEN


@pytest.mark.parametrize(
    ("price", "told", "usage", "charged", "flags"),
    [
        (None, 0.02, None, 0.02, []),
        (None, None, None, None, ["unpriced"]),
        (PER_CALL, None, None, 0.01, []),
        (PER_CALL, None, Usage(input_tokens=-1), 0.01, []),
        (PER_CALL, 0.02, None, 0.02, []),
        (PER_CALL, 0.001, None, 0.01, []),
        (PER_TOKEN, 0.02, None, 0.02, []),
        (PER_TOKEN, 0.02, USED, 0.02, []),
        (PER_TOKEN, 0.001, USED, 0.01, []),
    ],
)
def test_the_dearer_of_what_was_agreed_and_what_was_told(
    engine_for: EngineMaker,
    price: Price | None,
    told: float | None,
    usage: Usage | None,
    charged: float | None,
    flags: list[str],
) -> None:
    """A price per call needs no tokens counted; a cost that the system tells counts, but never makes a call cheaper."""
    endpoint = telling(told, usage)
    endpoint.price = price
    engine = engine_for(endpoint)
    (trial,) = engine.run(plan(1))
    assert trial.cost == (None if charged is None else pytest.approx(charged))
    (attempt,) = records(engine.store.directory, "attempt")
    assert attempt["flags"] == flags


def test_a_cap_still_needs_a_price(engine_for: EngineMaker) -> None:
    """What a call will cost is told after it was made: too late for a cap."""
    with pytest.raises(BudgetError, match="no known price"):
        engine_for(telling(0.02), max_cost=1.0).run(plan(1))


def test_a_cap_holds_at_a_price_per_call(engine_for: EngineMaker) -> None:
    """Ten calls of a cent fit under ten cents, and no more."""
    endpoint = telling(None)
    endpoint.price = PER_CALL
    with pytest.raises(BudgetError):
        engine_for(endpoint, max_cost=0.1).run(plan(20))
    assert len(endpoint.asked) == 10
