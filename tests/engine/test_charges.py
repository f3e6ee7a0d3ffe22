"""By which price attempts go, who is the same model as whom, and which counts are beyond reason."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Limits, Price, Reply, Request
from pytest_fairness.engine.attempt import Tariff, same_model
from pytest_fairness.model import Status, Usage
from pytest_fairness.runs.money import absurd
from tests.support.doubles import Scripted, failing, plan
from tests.support.runs import EngineMaker, records

LISTED = Price(input_per_million=0.15, output_per_million=0.6)


class Asked(Scripted):
    """An endpoint that says which model it asks."""

    def __init__(self, model: str, *, type: str = "openai", **more: Any) -> None:  # noqa: A002 - the protocol's name
        super().__init__(**more)
        self.model, self.type = model, type  # type: ignore[misc]

    def identity(self) -> dict[str, Any]:
        return {"type": self.type, "model": self.model}


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("gpt-4o-mini", "gpt-4o-mini", True),
        ("gpt-4o-mini", "gpt-4o-mini-2024-07-18", True),
        ("gpt-4", "gpt-4-0613", True),
        ("openai/gpt-4o", "gpt-4o", True),
        ("llama3", "llama3:latest", True),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", True),
        ("gemini/gemini-1.5-pro", "gemini-1.5-pro-002", True),
        ("GPT-4o", "gpt-4o", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4", "gpt-4.1", False),
        ("gpt-4", "gpt-4-32k", False),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20", False),
        ("gpt-4o-2024-08-06", "gpt-4o", False),
        ("llama-3", "llama-3-8", False),
    ],
)
def test_a_dated_snapshot_is_the_same_model(asked: str, answered: str, same: bool) -> None:
    """What providers answer with who were asked for the name without a date; nothing else is."""
    assert same_model(asked, answered) is same


def test_the_price_is_the_dearer_and_never_falls() -> None:
    """Another model's listed price counts where it is higher, each way for itself, and stays."""
    tariff = Tariff(Asked("gpt-4o-mini", price=LISTED))
    assert not tariff.answered_by(None)
    assert not tariff.answered_by("gpt-4o-mini-2024-07-18")
    assert tariff.price == LISTED
    assert tariff.answered_by("gpt-4-0613")
    assert tariff.price == Price(input_per_million=30.0, output_per_million=60.0)
    assert tariff.answered_by("gpt-3.5-turbo")
    assert not tariff.answered_by("gpt-4o-mini")
    assert tariff.price == Price(input_per_million=30.0, output_per_million=60.0)


def test_a_price_agreed_on_holds_for_snapshots() -> None:
    """A discount is not overruled by the list, unless another model answers; the list's own price is, by the
    snapshot's."""
    agreed = Tariff(Asked("gpt-4o", price=Price(input_per_million=1.0, output_per_million=2.0)))
    assert not agreed.answered_by("gpt-4o-2024-05-13")
    assert agreed.price == Price(input_per_million=1.0, output_per_million=2.0)
    listed = Tariff(Asked("gpt-4o", price=Price(input_per_million=2.5, output_per_million=10.0)))
    assert not listed.answered_by("gpt-4o-2024-05-13")
    assert listed.price == Price(input_per_million=5.0, output_per_million=15.0)


@pytest.mark.parametrize("free", [{"simulated": True}, {"price": Price(input_per_million=0, output_per_million=0)}])
def test_what_is_free_stays_free(free: dict[str, Any]) -> None:
    """A model on one's own machine may call itself what it likes; that another answered is told all the same."""
    tariff = Tariff(Asked("gpt-4o-mini", **free))
    assert tariff.answered_by("gpt-4")
    assert tariff.free
    assert tariff.price == free.get("price")


def test_a_deployment_on_azure_is_no_model() -> None:
    """Its name says nothing of the model in it, so no answer differs from it."""
    assert not Tariff(Asked("our-deployment", type="azure", price=LISTED)).answered_by("gpt-4")


@pytest.mark.parametrize(
    ("usage", "beyond"),
    [
        (None, False),
        (Usage(), False),
        (Usage(input_tokens=2_000_000, output_tokens=100_000), False),
        (Usage(input_tokens=5, output_tokens=10**12), True),
        (Usage(input_tokens=10**30), True),
        (Usage(input_tokens=-(10**12)), False),
    ],
    ids=str,
)
def test_counts_beyond_reason(usage: Usage | None, beyond: bool) -> None:
    """More than any model takes or writes; what is merely wrong is not beyond reason."""
    assert absurd(usage) is beyond


def test_a_free_endpoint_may_count_as_it_likes(engine_for: EngineMaker) -> None:
    """No money is at stake: the count is flagged, and the run goes on."""
    answer = Reply(text="yes", usage=Usage(input_tokens=1, output_tokens=10**12))
    endpoint = Scripted(lambda _: answer, price=Price(input_per_million=0, output_per_million=0))
    engine = engine_for(endpoint)
    assert [trial.cost for trial in engine.run(plan(3))] == [0.0] * 3
    assert records(engine.store.directory, "trial")[0]["flags"] == ["usage_absurd", "usage_invalid"]


# ---------------------------------------------------------------- a server that fails, asked again on request


def test_a_failing_server_is_asked_again_where_the_endpoint_says_so(engine_for: EngineMaker) -> None:
    """Each attempt is numbered, reserved and charged at its worst case; then the answer counts."""
    endpoint = Scripted(failing(Evidence.SERVER, Evidence.SERVER), price=LISTED, max_tokens=100)
    endpoint.limits = Limits(server_error_attempts=3)  # type: ignore[attr-defined]
    engine = engine_for(endpoint, max_cost=1.0)
    trial = engine.run(plan(1))[0]
    assert (trial.status, trial.attempts, trial.error) == (Status.ANSWERED, 3, None)
    costs = [record["cost"] for record in records(engine.store.directory, "attempt")]
    assert costs[0] == costs[1] > 100 * 0.6e-6 > costs[2]
    assert trial.cost == pytest.approx(sum(costs))


def test_no_more_often_than_that(engine_for: EngineMaker) -> None:
    """The number is of attempts in all, at one turn."""
    endpoint = Scripted(failing(*[Evidence.SERVER] * 9))
    endpoint.limits = Limits(server_error_attempts=2)  # type: ignore[attr-defined]
    trial = engine_for(endpoint).run(plan(1))[0]
    assert (trial.status, trial.attempts) == (Status.ERROR, 2)
    assert len(endpoint.asked) == 2


def test_what_was_sent_and_never_answered_is_not_asked_again_by_it(engine_for: EngineMaker) -> None:
    """The policy is for servers that said that they failed."""

    def silent(request: Request) -> Reply:
        raise AttemptError("nothing came", evidence=Evidence.NO_RESPONSE)

    endpoint = Scripted(silent)
    endpoint.limits = Limits(server_error_attempts=3)  # type: ignore[attr-defined]
    assert engine_for(endpoint).run(plan(1))[0].status is Status.UNKNOWN
    assert len(endpoint.asked) == 1
