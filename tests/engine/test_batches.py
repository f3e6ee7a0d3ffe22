"""Asking in a provider's batches: the same trials as one by one, at half the price, whatever
becomes of a request.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_fairness.endpoints import Price, create_endpoint
from pytest_fairness.endpoints.config import BatchOptions
from pytest_fairness.endpoints.openai import ChatEndpoint
from pytest_fairness.endpoints.protocol import AttemptError, Endpoint, Evidence, Limits, Request
from pytest_fairness.engine.batches import batch_record, still_open
from pytest_fairness.engine.engine import Engine
from pytest_fairness.engine.scripts import Escalation, Pipeline, StrategyTurns
from pytest_fairness.errors import BudgetError, EndpointError, UsageError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.money import Budget
from pytest_fairness.runs.reader import RunReader
from pytest_fairness.runs.store import Retry, RunStore, open_store
from tests.support.batch_server import BatchServer, Fate
from tests.support.doubles import cell, plan
from tests.support.runs import records, unanswered

PRICE = Price(input_per_million=1.0, output_per_million=10.0)
#: What one request of ``plan()`` costs at worst, in dollars.
WORST = 0.5 * PRICE.cost(input_tokens=len(plan(1)[0].cell.prompt) + 16, output_tokens=200)
QUICK = BatchOptions(poll_seconds=0.02)
Go = Callable[..., list[Trial]]


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer() as running:
        yield running


def endpoint_at(server: BatchServer, batch: BatchOptions | None = QUICK, **more: Any) -> Endpoint:
    entry = {
        "name": "model",
        "type": "openai",
        "model": "m",
        "base_url": server.openai_url,
        "price": PRICE,
        "default_parameters": {"max_tokens": 200},
        "batch": batch,
    }
    return create_endpoint({**entry, **more})


@pytest.fixture
def ask(server: BatchServer, store: RunStore) -> Go:
    """Ask for planned trials of a new endpoint in the run's store, in an engine of its own."""

    def go(
        planned: list[PlannedTrial], batch: BatchOptions | None = QUICK, **options: Any
    ) -> list[Trial]:
        with Engine(
            endpoint_at(server, batch), store, **{"attempt_timeout": 10.0, **options}
        ) as engine:
            return engine.run(planned)

    return go


def asked_again(
    server: BatchServer, store: RunStore, planned: list[PlannedTrial], retry: Retry
) -> list[Trial]:
    """The trials *planned*, in the next session of the run."""
    store.close()
    with (
        RunStore.open(store.directory) as again,
        Engine(endpoint_at(server), again, retry=retry) as engine,
    ):
        return engine.run(planned)


def statuses(trials: list[Trial]) -> Counter[str]:
    return Counter(str(trial.status) for trial in trials)


def sizes(server: BatchServer) -> list[int]:
    return [len(batch.requests) for batch in server.batches.values()]


# ------------------------------------------------------------ the same as one by one


def test_the_trials_are_those_of_one_by_one(server: BatchServer, root: Path) -> None:
    """Replies, statuses, usage and keys are the same; the cost is half; each was asked once, and is
    not asked again. A second call that shares some asks the others alone."""

    def go(session: str, batch: BatchOptions | None) -> list[Trial]:
        with (
            open_store(root, session) as store,
            Engine(endpoint_at(server, batch), store, concurrency=1) as engine,
        ):
            trials = engine.run([*plan(12), PlannedTrial(cell=cell(3), repetition=1)])
            assert engine.run(plan(12)) == trials[:12]
            engine.run(plan(15))
            return trials

    singly = go("singly", None)
    server.forget()
    batched = go("batched", QUICK)
    for one, other in zip(singly, batched, strict=True):
        assert other.cost == pytest.approx((one.cost or 0) / 2, abs=1e-8)
        assert other == replace(one, cost=other.cost, seconds=None)
    assert sizes(server) == [13, 3]
    assert len(server.ledger) == server.billed == 16  # in batches, and one by one


def test_the_log_holds_as_much_as_of_one_by_one(
    server: BatchServer, store: RunStore, ask: Go
) -> None:
    """The line that was sent and the line that came back, verbatim; the batch's own steps; a reader
    that checks it all finds every trial, and nothing unanswered."""
    trials = ask(plan(5))
    attempts = {record["key"]: record for record in records(store.directory, "attempt")}
    assert set(attempts) == {trial.key for trial in trials}
    wires = [record["wire"] for record in attempts.values()]
    for part, file in (("request_body", "file-in-0"), ("response_body", "batch_0-out")):
        assert sorted(wire[part] for wire in wires) == sorted(
            server.files[file].decode().splitlines()
        )
    for record, wire in zip(attempts.values(), wires, strict=True):
        assert (record["attempt"], record["flags"], wire["status_code"]) == (1, ["batched"], 200)
        assert record["seconds"] is None  # how long the model took is not known
        assert (
            len({json.loads(wire[part])["custom_id"] for part in ("request_body", "response_body")})
            == 1
        )
    steps = [record["event"] for record in records(store.directory, "batch")]
    assert [step for step in steps if step != "status"] == [
        "intent",
        "uploaded",
        "submitted",
        "ended",
        "collected",
    ]
    kinds = [record["type"] for record in records(store.directory)]
    assert kinds.index("batch") < kinds.index("sent")
    assert kinds.count("sent") == 5
    (engine,) = records(store.directory, "engine")
    assert engine["batch"] == {**engine["batch"], "poll_seconds": 0.02, "price_share": 0.5}
    assert (len(RunReader.open(store.directory)), unanswered(store.directory)) == (5, set())
    assert not still_open(store.of_type("batch"))


def test_a_large_design_is_several_batches_at_once(
    server: BatchServer, ask: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No batch is larger than it may be, in requests or bytes, and none waits for another."""
    server.polls = 3
    assert len(ask(plan(25), BatchOptions(poll_seconds=0.02, max_requests=10))) == 25
    assert sizes(server) == [10, 10, 5]
    calls = [method for method, path, _, _ in server.calls if path.startswith("/v1/batches")]
    assert calls[:4] == ["POST", "POST", "POST", "GET"]
    monkeypatch.setattr("pytest_fairness.engine.batches.MAX_BYTES", 600)
    ask(plan(6, template="u", turns=("x" * 400,)) + plan(30)[25:])
    assert max(sizes(server)[3:]) <= 4


def test_trials_of_several_requests_go_in_rounds(server: BatchServer, ask: Go) -> None:
    """Each turn of all conversations is a batch; later turns hold the replies before them. A
    pipeline gives each reply to its next step; an escalation asks again only where it must."""
    piped = PlannedTrial(
        cell=cell(0, turns=("Write of Ann.", "Shorten: {text}")),
        script=Pipeline(systems=(None, "Be brief.")),
    )
    strategies = (
        StrategyTurns("plain", ("Pick one.",)),
        StrategyTurns("urge", ("Please do pick one.",)),
    )
    ladder = Escalation(strategies=strategies, usable=lambda text: "!!" in text, version="1")
    escalated = PlannedTrial(cell=cell(1, turns=("Pick one.",)), script=ladder)
    trials = ask(
        [PlannedTrial(cell=cell(2, turns=("Name?", "And then?", "Why?"))), piped, escalated]
    )
    assert [len(trial.replies) for trial in trials] == [3, 2, 2]
    assert sizes(server) == [3, 3, 1]
    prompts = [body["messages"][-1]["content"] for _, _, body in server.ledger]
    assert f"Shorten: {trials[1].replies[0]}" in prompts
    (_, last), *_ = list(server.batches.values())[-1].requests
    assert [message["content"] for message in last["messages"][1::2]] == list(trials[0].replies[:2])


def test_what_cannot_be_asked_in_batches_is_refused(
    server: BatchServer, store: RunStore, ask: Go
) -> None:
    """Before anything is sent: a batch has one endpoint, and a batched endpoint cannot be a step
    either.
    """
    for own, step, error in (
        (
            QUICK,
            endpoint_at(server, None, name="other"),
            r"a step asks endpoint .other.: one trial cannot do both",
        ),
        (None, endpoint_at(server, name="batched"), "is asked in batches alone"),
    ):
        script = Pipeline(systems=(None, None), endpoints=(None, step))
        with pytest.raises((UsageError, EndpointError), match=error):
            ask([PlannedTrial(cell=cell(0, turns=("A", "B {text}")), script=script)], own)
    assert not server.ledger


# ------------------------------------------------------------ endings of requests


def test_requests_that_fail_have_their_own_endings(server: BatchServer, store: RunStore) -> None:
    """Refused and failed ones are errors that cost nothing; what was throttled, or failed at a
    server that may be asked again (``server_error_attempts``), is asked once more, and given up as
    often as one by one."""
    server.then_batch(
        Fate(statuses={0: 400, 1: 429, 2: 500, 3: 429, 4: 500}), Fate(statuses={0: 429, 1: 500})
    )
    endpoint = endpoint_at(server)
    endpoint.limits = Limits(server_error_attempts=2)  # type: ignore[attr-defined]
    with Engine(endpoint, store, max_attempts=2) as engine:
        trials = engine.run(plan(8))
    assert statuses(trials) == {"answered": 5, "error": 3}
    assert {trial.cost for trial in trials if trial.status is Status.ERROR} == {0.0}
    assert sorted(trial.attempts for trial in trials) == [1, 1, 1, 1, 2, 2, 2, 2]
    assert sum("after 2 attempts" in str(trial.error) for trial in trials) == 1
    assert sorted(server.answered.values()) == [1] * 5


def test_what_was_not_come_to_waits_for_a_decision(
    server: BatchServer, store: RunStore, ask: Go
) -> None:
    """The provider did not get to half of them: these cost nothing and are not sent again by
    themselves; the next session asks them on request, and nothing else."""
    server.then_batch(Fate(status="expired"), Fate(status="cancelled"))
    trials = ask(plan(8), BatchOptions(poll_seconds=0.02, max_requests=4))
    assert statuses(trials) == {"answered": 4, "error": 4}
    flags = Counter(
        flag for record in records(store.directory, "trial") for flag in record["flags"]
    )
    assert flags == {"batched": 8, "batch_expired": 2, "batch_cancelled": 2}
    assert sum(trial.cost or 0 for trial in trials if trial.status is Status.ERROR) == 0
    assert statuses(asked_again(server, store, plan(8), Retry(errors=True))) == {"answered": 8}
    assert set(server.answered.values()) == {1}
    assert len(server.ledger) == 8


def test_results_that_cannot_be_used_are_charged_in_full(
    server: BatchServer, store: RunStore, ask: Go
) -> None:
    """Perhaps paid for, and never asked again by itself; lines that belong to nobody are kept in
    the log.
    """

    def rewrite(number: int, line: dict[str, Any]) -> Any:
        other = json.loads(json.dumps(line))
        other["response"]["body"]["choices"][0]["message"]["content"] = "another"
        return (
            None,
            json.dumps(line).encode()[:-3],
            {**line, "custom_id": "somebody-else"},
            (line, other),
            {**line, "response": {"status_code": 200, "body": {"choices": 7}}},
        )[number]

    server.then_batch(Fate(rewrite=rewrite))
    trials = ask(plan(5))
    assert statuses(trials) == {"unknown": 3, "malformed": 2}
    errors = " ".join(str(trial.error) for trial in trials)
    assert errors.count("say nothing of this request") == 3
    assert errors.count("2 different results") == errors.count("choices is a number") == 1
    assert [trial.cost for trial in trials] == pytest.approx([WORST] * 5)
    assert [record["event"] for record in records(store.directory, "batch")].count("stray") == 2
    assert ask(plan(5)) == trials
    assert len(server.ledger) == 5


def test_results_out_of_order_find_their_trials(server: BatchServer, ask: Go) -> None:
    """Nothing promises an order: the identifier alone says whose a line is. The same line twice is
    one answer.
    """
    lines: list[Any] = []

    def gather(number: int, line: dict[str, Any]) -> Any:
        lines.append(line)
        return (*reversed(lines), *lines) if number == 5 else None

    server.then_batch(Fate(rewrite=gather))
    trials = ask(plan(6))
    prompts = {custom_id: body["messages"][-1]["content"] for _, custom_id, body in server.ledger}
    answers = {
        prompts[line["custom_id"]]: line["response"]["body"]["choices"][0]["message"]["content"]
        for line in lines
    }
    assert [trial.reply for trial in trials] == [answers[one.cell.prompt] for one in plan(6)]


def _of_no_model(_number: int, line: dict[str, Any]) -> dict[str, Any]:
    missing = {"error": {"message": "The model does not exist", "code": "model_not_found"}}
    return {**line, "response": {"status_code": 404, "body": missing}}


def _absurd(_number: int, line: dict[str, Any]) -> dict[str, Any]:
    line["response"]["body"]["usage"] = {"prompt_tokens": 10**12, "completion_tokens": 10**12}
    return line


ENDS = {
    "no such model": (Fate(rewrite=_of_no_model), "The model does not exist; nothing more is sent to this endpoint", 0),
    "counts beyond reason": (Fate(rewrite=_absurd), "1000000000000", 3),
    "not begun": (
        Fate(status="failed", code="model_not_found"), "scripted: model_not_found; nothing was spent", 0,
    ),
    "refused key": (Fate(refuse=401), "scripted 401; the batch was not made, and nothing was spent", 0),
    "refused batch": (Fate(refuse=400), "scripted 400; the batch was not made, and nothing was spent", 0),
}  # fmt: skip


@pytest.mark.parametrize(("fate", "error", "kept"), ENDS.values(), ids=ENDS)
def test_what_ends_the_asking(
    server: BatchServer, store: RunStore, ask: Go, fate: Fate, error: str, kept: int
) -> None:
    """With the provider's reason, and no second batch; answers are kept, and all else is as free as
    before.
    """
    server.then_batch(fate)
    with pytest.raises(EndpointError, match=error):
        ask(plan(3))
    assert server.called("POST", "/batches") == 1
    assert len(store) == kept
    assert store.budget(None).account().reserved == 0
    assert statuses(ask(plan(3))) == {"answered": 3}


def test_a_request_that_cannot_be_sent_is_an_outcome_of_its_own(
    server: BatchServer, ask: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error that costs nothing; the others go out together."""
    body = ChatEndpoint.body

    async def picky(self: ChatEndpoint, request: Request) -> bytes:
        if "candidate 1" in request.messages[-1].content:
            raise AttemptError("no such parameter", evidence=Evidence.REJECTED)
        return await body(self, request)

    monkeypatch.setattr(ChatEndpoint, "body", picky)
    trials = ask(plan(4))
    assert statuses(trials) == {"error": 1, "answered": 3}
    assert (trials[1].error, trials[1].cost, trials[1].attempts) == ("no such parameter", 0.0, 1)
    assert sizes(server) == [3]


# ------------------------------------------------------------ endings of batches


def test_lines_at_fault_end_and_the_others_go_out_again(server: BatchServer, ask: Go) -> None:
    """A provider that begins nothing because of one line: that trial is an error, the rest is
    asked, once.
    """
    server.then_batch(Fate(status="failed", lines=(2,)))
    trials = ask(plan(5))
    assert statuses(trials) == {"answered": 4, "error": 1}
    assert [trial.cost for trial in trials if trial.status is Status.ERROR] == [0.0]
    assert sizes(server) == [5, 4]


def test_too_much_waiting_means_less_at_a_time(server: BatchServer, ask: Go) -> None:
    """A queue that is full is waited for, with smaller batches; nothing is lost or asked twice."""
    server.then_batch(*(Fate(status="failed", code="token_limit_exceeded") for _ in range(2)))
    assert statuses(ask(plan(8))) == {"answered": 8}
    assert sizes(server) == [8, 4, 2, 2, 2, 2]
    assert set(server.answered.values()) == {1}


@pytest.mark.parametrize(
    ("fate", "made"),
    [(Fate(refuse=429), 2), (Fate(refuse=503), 2), (Fate(refuse=500), 2), (Fate(reset=True), 1)],
)
def test_a_batch_that_may_have_been_made_is_looked_up_first(
    server: BatchServer, ask: Go, fate: Fate, made: int
) -> None:
    """What surely was not made is tried again; where the connection broke, or the server failed,
    the list says whether there is one, and only if not, it is made. Nothing is uploaded twice."""
    server.then_batch(fate)
    assert statuses(ask(plan(3))) == {"answered": 3}
    assert (server.called("POST", "/files"), server.called("POST", "/batches")) == (1, made)
    assert set(server.answered.values()) == {1}


def test_where_nothing_can_be_looked_up_it_is_unknown(
    server: BatchServer, store: RunStore, ask: Go
) -> None:
    """No list, no answer: charged at the worst case, not sent again unless somebody says so."""
    server.then_batch(Fate(reset=True))
    server.lists = False
    with pytest.raises(EndpointError, match="no such path"):
        ask(plan(3))
    trials = ask(plan(3))
    assert statuses(trials) == {"unknown": 3}
    assert all(
        "--fairness-retry-unknown" in str(trial.error) and (trial.cost or 0) > 0 for trial in trials
    )
    assert len(server.batches) == 1
    assert statuses(asked_again(server, store, plan(3), Retry(unknown=True))) == {"answered": 3}
    assert len(server.batches) == 2


# ------------------------------------------------------------ money


@contextmanager
def held_batches(server: BatchServer) -> Iterator[None]:
    """No batch of *server* ends; afterwards all do, so that a test that fails waits for none."""
    server.hold = True
    try:
        yield
    finally:
        server.hold = False
        server.polls = 2


def test_the_cap_holds_for_the_whole_batch_before_it_leaves(
    server: BatchServer, store: RunStore, ask: Go
) -> None:
    """What the cap bears goes out, in smaller batches as the money comes back; the spend is within
    it.
    """
    assert statuses(ask(plan(12), max_cost=8.5 * WORST)) == {"answered": 12}
    assert (sizes(server)[0], sum(sizes(server))) == (8, 12)
    assert store.budget(None).account().settled <= 8.5 * WORST * 1e9


def test_a_cap_without_room_stops_before_anything_is_sent(
    server: BatchServer, store: RunStore, ask: Go
) -> None:
    """The usual error, and no request, also where no price is known; what was asked by then is
    kept.
    """
    with (
        Engine(endpoint_at(server, price=None), store, max_cost=1.0) as engine,
        pytest.raises(BudgetError, match="no known price"),
    ):
        engine.run(plan(2))
    with pytest.raises(BudgetError, match=r"the cost cap of \$0.00 leaves no room"):
        ask(plan(3), max_cost=1e-6)
    assert not server.calls
    with pytest.raises(BudgetError, match="leaves no room"):
        ask(plan(40), max_cost=2.5 * WORST)
    assert 2 <= len(server.ledger) < 40
    assert len(ask(plan(40))) == 40
    assert set(server.answered.values()) == {1}


@contextmanager
def money_elsewhere(
    server: BatchServer, root: Path, *, attempt_timeout: float
) -> Iterator[tuple[Future[list[Trial]], Future[list[Trial]]]]:
    """Two workers under a cap that the batch of the first has used up: the five trials that it asks
    for, and the three of the second, which waits for the money. The batch is on hold.
    """
    with (
        open_store(root, "a session", writer="gw0") as one,
        open_store(root, "a session", writer="gw1") as other,
        Engine(endpoint_at(server), one, max_cost=5.5 * WORST) as first,
        Engine(
            endpoint_at(server), other, max_cost=5.5 * WORST, attempt_timeout=attempt_timeout
        ) as second,
        ThreadPoolExecutor(2) as pool,
        held_batches(server),
    ):
        has_it = pool.submit(first.run, plan(5))
        while not server.batches:
            time.sleep(0.01)
        yield has_it, pool.submit(second.run, plan(8)[5:])


def test_money_in_the_batch_of_another_worker_is_waited_for(
    server: BatchServer, root: Path
) -> None:
    """For as long as that batch is in progress, however long a single call might take."""
    with money_elsewhere(server, root, attempt_timeout=0.4) as (has_it, waits):
        time.sleep(0.7)
        assert not waits.done()
        server.hold = False
        assert statuses([*has_it.result(60), *waits.result(60)]) == {"answered": 8}
    assert (sizes(server)[0], sum(sizes(server))) == (5, 8)


def test_money_given_back_while_the_account_answers_is_seen(
    server: BatchServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch ends between the account's answer and the next look at the batches, after a wait
    that is longer than a single call may take."""
    reserve = Budget.reserve
    last_answer, batch_has_ended = threading.Event(), threading.Event()

    async def reserve_late(budget: Budget, amount: int) -> bool:
        fits = await reserve(budget, amount)
        if not fits and not server.hold:
            last_answer.set()
            await asyncio.to_thread(batch_has_ended.wait, 60)
        return fits

    monkeypatch.setattr(Budget, "reserve", reserve_late)
    monkeypatch.setattr(server, "polls", 10_000)
    with money_elsewhere(server, root, attempt_timeout=0.1) as (has_it, waits):
        time.sleep(0.3)
        server.hold = False
        assert last_answer.wait(60)
        server.polls = 2
        assert statuses(has_it.result(60)) == {"answered": 5}
        time.sleep(0.2)
        batch_has_ended.set()
        assert statuses(waits.result(60)) == {"answered": 3}


def test_a_batch_is_expected_to_give_money_back_until_it_is_collected_or_too_old(
    server: BatchServer, store: RunStore
) -> None:
    """After that the time of a single call is waited for. So is what this process holds itself, for
    as long as it holds it."""
    held = store.budget(0.01)
    assert asyncio.run(held.reserve(9_999_000))

    def log(tag: str, event: str, hours: float) -> None:
        store.append(batch_record(tag, event) | {"unix": time.time() - 3600 * hours})

    for end in ("collected", "void", "lost"):
        log(end, "intent", 1)
        log(end, end, 1)
    log("too old", "intent", 27)
    given: dict[str, Any] = {"max_cost": 0.01, "attempt_timeout": 0.1}
    with (
        Engine(endpoint_at(server), store, deadline=10, **given) as engine,
        pytest.raises(BudgetError, match="is held for calls without an account"),
    ):
        engine.run(plan(3))
    with Engine(endpoint_at(server), store, deadline=0.5, **given) as engine:
        engine.budget.reserved = 1
        assert statuses(engine.run(plan(3))) == {"not_run": 3}
    log("in progress", "intent", 25)
    with Engine(endpoint_at(server), store, deadline=0.5, **given) as engine:
        assert statuses(engine.run(plan(3))) == {"not_run": 3}
    assert not server.calls


def test_after_a_batch_the_time_of_a_call_is_waited_for_anew(
    server: BatchServer, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the batch was in progress: what it gave back may be held for a call by now."""
    held = store.budget(0.01)
    assert asyncio.run(held.reserve(9_999_000))
    store.append(batch_record("another", "intent"))
    reserve = Budget.reserve
    looks: list[int] = []
    later = [0.0]

    async def reserving(budget: Budget, amount: int) -> bool:
        looks.append(amount)
        return await reserve(budget, amount)

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + later[0])
    monkeypatch.setattr(Budget, "reserve", reserving)
    monkeypatch.setattr("pytest_fairness.engine.queue.time", clock)
    with (
        Engine(endpoint_at(server), store, max_cost=0.01, attempt_timeout=30.0) as engine,
        ThreadPoolExecutor(1) as pool,
    ):
        waits = pool.submit(engine.run, plan(3))

        def until_it_has_looked() -> None:
            enough = len(looks) + 3
            while len(looks) < enough and not waits.done():
                time.sleep(0.01)

        until_it_has_looked()
        later[0] = 60.0
        until_it_has_looked()
        store.append(batch_record("another", "collected"))
        until_it_has_looked()
        held.settle(9_999_000, 0)
        assert statuses(waits.result(60)) == {"answered": 3}


def test_waiting_for_money_ends_with_the_session(server: BatchServer, store: RunStore) -> None:
    """What a dead process holds is waited for as long as a call may take; then that is an error.
    Whoever is halted meanwhile has sent nothing, and holds nothing."""
    held = store.budget(0.01)
    assert asyncio.run(held.reserve(9_999_000))
    with (
        Engine(endpoint_at(server), store, max_cost=0.01, attempt_timeout=0.2) as engine,
        pytest.raises(BudgetError, match="is held for calls without an account"),
    ):
        engine.run(plan(3))
    with Engine(endpoint_at(server), store, max_cost=0.01) as engine, ThreadPoolExecutor(1) as pool:
        waits = pool.submit(engine.run, plan(3))
        time.sleep(0.1)
        engine.halt("the session has ended")
        with pytest.raises(EndpointError, match="the session has ended"):
            waits.result(10)
    assert held.account().reserved == 9_999_000
    assert not server.calls


# ------------------------------------------------------------ time


def test_a_deadline_leaves_the_batch_and_a_resumed_session_collects_it(
    server: BatchServer, store: RunStore, ask: Go
) -> None:
    """What is in progress when the time is over is not run, in so many words; how to resume and how
    to cancel it is shown; an entry that lost its ``batch:`` neither asks nor gives up what is in
    progress; another session polls that batch and submits none."""
    server.hold = True
    trials = ask(plan(4), deadline=0.8)
    assert statuses(trials) == {"not_run": 4}
    assert all(
        "batch batch_0 is in progress at the provider" in str(trial.error) for trial in trials
    )
    (sentence,) = still_open(store.of_type("batch"))
    assert (
        "batch batch_0 of 'model' (4 requests) goes on at the provider and will be billed"
        in sentence
    )
    assert sentence.endswith(f"to cancel it: POST {server.openai_url}/batches/batch_0/cancel")
    with pytest.raises(EndpointError, match="put `batch: true` back"):
        ask(plan(4), None)
    assert not server.requests
    reserved = store.budget(None).account().reserved
    server.hold = False
    assert statuses(ask(plan(4))) == {"answered": 4}
    assert len(server.batches) == 1
    account = store.budget(None).account()
    assert account.reserved == 0 < account.settled < reserved
    assert not still_open(store.of_type("batch"))


def test_a_batch_is_given_up_by_those_who_say_so_alone(server: BatchServer, ask: Go) -> None:
    """``max_wait_hours`` after submission the session goes on without it. One that the provider no
    longer knows may be in the wrong key's project: nothing is given up, unless somebody says so."""
    server.hold = True
    trials = ask(plan(2), BatchOptions(poll_seconds=0.02, max_wait_hours=0.00005))
    assert statuses(trials) == {"not_run": 2}
    assert all("awaited for 5e-05 hours" in str(trial.error) for trial in trials)
    server.batches.clear()
    server.hold = False
    with pytest.raises(
        EndpointError, match=r"batch batch_0 is not lost: .*--fairness-retry-unknown gives it up"
    ):
        ask(plan(2))
    assert statuses(ask(plan(2), retry=Retry(unknown=True))) == {"answered": 2}
    assert len(server.ledger) == 2


def test_looks_in_vain_are_survived_for_a_while(
    server: BatchServer, ask: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that fails now and then is asked again; one that fails for long ends the session,
    not the batch.
    """
    server.failing = 3
    assert statuses(ask(plan(2))) == {"answered": 2}
    monkeypatch.setattr("pytest_fairness.engine.batches.PATIENCE", 4)
    server.failing = 100
    with pytest.raises(
        EndpointError, match=r"scripted look; batch batch_1 is not lost: .*--fairness-resume"
    ):
        ask(plan(4))
    assert server.failing == 96
    server.failing = 0
    assert statuses(ask(plan(4))) == {"answered": 4}
    assert sizes(server) == [2, 2]


def test_a_provider_that_says_nothing_is_not_waited_for_for_ever(
    server: BatchServer, ask: Go
) -> None:
    """Each exchange has its deadline; nothing was made, so nothing was spent."""
    server.latency = 30.0
    with pytest.raises(
        EndpointError, match=r"no answer of the batch API within .* s; the batch was not made"
    ):
        ask(plan(2), attempt_timeout=0.05, max_attempts=1)
    server.latency = 0.0
    assert statuses(ask(plan(2))) == {"answered": 2}
    assert len(server.batches) == 1


# ------------------------------------------------------------ what is shown of them


def test_progress_shows_the_batches(server: BatchServer, store: RunStore) -> None:
    """Trials as they are collected, and meanwhile how the batches stand."""
    notes: list[str] = []
    done: list[str] = []

    class Sink:
        note = notes.append

        def begin(self, planned: int, label: str) -> None:
            done.append(f"{planned} of {label}")

        def advance(self, trial: Trial) -> None:
            done.append(trial.status)

        def end(self) -> None:
            done.append("end")

    with Engine(endpoint_at(server), store, progress=Sink()) as engine:  # type: ignore[arg-type]
        engine.run(plan(3))
    assert done == ["3 of model", "answered", "answered", "answered", "end"]
    assert notes == [
        f"batch batch_0 {how}" for how in ("validating 0/3", "in progress 0/3", "completed 3/3")
    ] + [""]


def test_batches_that_go_on_are_named_and_others_not() -> None:
    """One whose name is known and of which something is still expected; its names are made safe for
    a terminal.
    """
    intent = batch_record("a", "intent", endpoint="model", requests=3, reserved=5)
    made = batch_record(
        "a", "submitted", batch="batch\x1b[2J\n", status="validating", cancel="POST \u202e"
    )
    assert still_open([intent]) == []
    (sentence,) = still_open([made, intent])
    assert sentence.startswith(
        "batch batch?[2J? of 'model' (3 requests) goes on at the provider and will be billed; "
    )
    assert sentence.endswith("POST ?")
    for end in ("collected", "void", "lost"):
        assert still_open([intent, made, batch_record("a", end)]) == []
