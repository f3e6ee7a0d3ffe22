"""Store, account and limits of a run at the other end of a connection: as good as the local ones,
as hard to fool.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.endpoints.protocol import Price, Reply
from pytest_fairness.engine.engine import Engine
from pytest_fairness.errors import BudgetError, EndpointError, FairnessError, StoreError, UsageError
from pytest_fairness.model import Usage
from pytest_fairness.runs import remote
from pytest_fairness.runs.database import Database, Flush
from pytest_fairness.runs.folder import reserve_run
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.runs.money import Settle
from pytest_fairness.runs.reader import RunReader, read_trials
from pytest_fairness.runs.remote import (
    BadMessageError,
    Hello,
    Line,
    Service,
    StoreResponse,
    open_remote,
)
from pytest_fairness.runs.store import Retry, RunStore, open_store
from tests.support.doubles import Scripted, plan

TOKEN = "a session"
KEYS = ["a" * 64, "b" * 64, "c" * 64]
PRICE = Price(input_per_million=1.0, output_per_million=1.0)
END = object()


class End:
    """One end of a channel as execnet has them: whole items, in order, handed over in a thread of
    the connection.
    """

    other: End

    def __init__(self) -> None:
        self._arrived: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._closed = False

    @classmethod
    def pair(cls) -> tuple[End, End]:
        one, other = cls(), cls()
        one.other, other.other = other, one
        return one, other

    def send(self, item: object) -> None:
        if self._closed:
            raise OSError("cannot send (already closed?)")
        self.other._arrived.put(item)

    def setcallback(self, callback: Callable[[object], None], endmarker: object) -> None:
        def hand_over() -> None:
            while (item := self._arrived.get()) is not END:
                callback(item)
            self._closed = True
            callback(endmarker)

        threading.Thread(target=hand_over, daemon=True).start()

    def close(self) -> None:
        """As if either process had ended."""
        for end in (self, self.other):
            end._closed = True
            end._arrived.put(END)


class RemoteWorker:
    """A worker on another machine: its end of the connection, and the service at the controller's."""

    def __init__(self, root: Path, worker: str, *, cap: float | None = None) -> None:
        ours, self.theirs = End.pair()
        self.service = Service(
            ours,
            worker=worker,
            open_store=lambda: open_store(root, TOKEN, writer=worker),
            greet=lambda: {"hello": "worker"},
            cap=cap,
        )
        ours.setcallback(self.service.take, endmarker=None)
        self.line = Line(self.theirs)

    def store(self) -> RunStore:
        return open_remote(self.line)

    def ended(self) -> str:
        """Why the worker is served no more."""
        self.service._thread.join(10)
        assert not self.service._thread.is_alive()
        return str(self.service.trouble)


Worker = Callable[..., RemoteWorker]


@pytest.fixture
def worker(root: Path) -> Iterator[Worker]:
    made: list[RemoteWorker] = []

    def make(name: str = "gw0", **options: Any) -> RemoteWorker:
        made.append(RemoteWorker(root, name, **options))
        return made[-1]

    yield make
    for one in made:
        one.theirs.close()
        one.service.stop(0.0)


# ------------------------------------------------------------ as good as the local store


def test_trials_reach_the_controllers_log(root: Path, worker: Worker) -> None:
    """What a worker elsewhere asks is in the controller's folder, in a log of its own, as it would
    be if it had written that itself; texts that no encoding knows included. Closed, its head is in
    the manifest, where it stands beside what the controller writes there."""
    strange = "lone \ud800, NUL \x00, \u2028, e\u0301 and 𝔽"
    endpoint = Scripted(lambda _: Reply(text=strange, usage=Usage(input_tokens=1, output_tokens=1)))
    with worker("gw3").store() as store, Engine(endpoint, store) as engine:
        trials = engine.run(plan(12))
        with open_store(root, TOKEN) as local:
            local.update_manifest(seed=7)
            store.update_manifest(planned=["test_a"])
            manifest = local.manifest()
        assert read_trials(reserve_run(root, TOKEN)) == {trial.key: trial for trial in trials}
        assert store.designs() == []
    assert [trial.reply for trial in trials] == [strange] * 12
    assert (manifest["seed"], manifest["planned"]) == (7, ["test_a"])
    assert manifest["remote"]["gw3"]["host"] == socket.gethostname()
    with open_store(root, TOKEN, writer="gw3") as again:
        assert list(again.manifest()["logs"]) == ["trials-gw3.jsonl"]
        assert len(again) == 12
    with pytest.raises(StoreError, match="closed"):
        store.flush()
    store.close()


def test_asks_nothing_that_is_finished(
    root: Path, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials of others are read over the connection, in pieces where they are many or long: no
    answer grows beyond what a message may hold; one record is always sent."""
    with open_store(root, TOKEN) as local, Engine(Scripted(), local) as engine:
        expected = engine.run(plan(520))
    endpoint = Scripted()
    with worker().store() as store, Engine(endpoint, store) as engine:
        assert engine.run(plan(520)) == expected
        assert store.trial("f" * 64) is None
        monkeypatch.setattr("pytest_fairness.runs.reader.LONGEST_ANSWER", 10)
        assert [store.trial(trial.key) for trial in expected[:5]] == expected[:5]
    assert endpoint.requests == []


def test_asks_again_what_is_wished(root: Path, worker: Worker) -> None:
    """``--fairness-retry-unknown`` reaches the controller: a lost trial is asked again, and once."""
    with open_store(root, TOKEN) as local, Engine(Scripted(), local) as engine:
        key = engine.key_of(plan(1)[0])
        local.append(
            {"type": "sent", "key": key, "turn": 0, "attempt": 1, "order": 0, "monotonic": 0.0}
        )
    endpoint = Scripted()
    for name, retry, status in (
        ("gw0", Retry(), "unknown"),
        ("gw1", Retry(unknown=True), "answered"),
    ):
        with worker(name).store() as store, Engine(endpoint, store, retry=retry) as engine:
            assert [trial.status.value for trial in engine.run(plan(1))] == [status]
    assert len(endpoint.requests) == 1


def test_the_cap_is_the_controllers(worker: Worker) -> None:
    """What a worker believes its cap to be is of no interest. Without a cap nothing waits for the
    controller, and nothing is forgotten."""
    store = worker(cap=1e-6).store()
    budget = store.budget(1e6)
    with pytest.raises(BudgetError):
        asyncio.run(budget.reserve(2000))
    assert asyncio.run(budget.reserve(900))
    assert not asyncio.run(budget.reserve(900))
    budget.settle(900, 100)
    assert asyncio.run(budget.reserve(900))
    budget.leave(900)  # for a later session to go on from
    assert budget.reserved == 0
    assert budget.adopt(2000) == budget.reserved == 900
    assert budget.account() == (100, 900)
    with pytest.raises(StoreError, match="more is settled than was reserved"):
        store.ask(Settle(reserved=10**9, cost=0))
    free = worker("gw1").store().budget(None)
    assert asyncio.run(free.reserve(10**15))
    free.settle(10**15, 5)
    assert free.account() == (105, 900)


# ------------------------------------------------------------ when one side is absent


def test_a_dead_workers_claims_are_free(root: Path, worker: Worker) -> None:
    """Others take over what it had claimed; what it had sent is unknown and stays paid for, not
    sent again.
    """
    lost = worker("gw0", cap=1.0)
    store = lost.store()
    endpoint = Scripted(price=PRICE)
    with Engine(endpoint, store) as engine:
        keys = [engine.key_of(one) for one in plan(3)]
    assert list(store.claim(keys).mine) == keys
    assert asyncio.run(store.budget(1.0).reserve(500))
    store.append(
        {"type": "sent", "key": keys[0], "turn": 0, "attempt": 1, "order": 0, "monotonic": 0.0}
    )
    local = open_store(root, TOKEN, writer="gw1")
    assert local.claim(keys).busy == keys
    lost.theirs.close()
    lost.ended()
    with local, Engine(endpoint, local, max_cost=1.0) as engine:
        assert [trial.status.value for trial in engine.run(plan(3))] == [
            "unknown",
            "answered",
            "answered",
        ]
        assert local.budget(None).account().reserved == 500
    assert len(endpoint.requests) == 2
    assert "trials-gw0.jsonl" in read_manifest(local.directory)["logs"]


def test_without_the_controller_nothing_is_asked(worker: Worker) -> None:
    """The connection goes while calls are under way: nothing more is sent, and the error says what
    happened.
    """
    one = worker()
    endpoint = Scripted(delay=0.02)
    with Engine(endpoint, one.store(), concurrency=2) as engine:
        one.line.when_over(engine.halt)
        threading.Timer(0.2, one.theirs.close).start()
        with pytest.raises(FairnessError, match=r"connection to pytest-xdist's controller is lost"):
            engine.run(plan(400))
        sent = len(endpoint.requests)
        assert 0 < sent < 100
        with pytest.raises(FairnessError, match="connection"):
            engine.run(plan(400))
        assert len(endpoint.requests) == sent


def test_a_full_disk_at_the_controller_stops_the_worker(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused although nobody waited for it is raised by the next call: nothing is paid for
    that cannot be recorded."""
    store = worker().store()
    endpoint = Scripted()
    append = RunStore.append

    def full(self: RunStore, record: dict[str, Any]) -> None:
        if record["type"] == "attempt" and isinstance(self.database, Database):
            raise StoreError("run.sqlite3 cannot be written (No space left on device)")
        append(self, record)

    monkeypatch.setattr(RunStore, "append", full)
    with Engine(endpoint, store, concurrency=1) as engine:
        with pytest.raises(StoreError, match="No space left"):
            engine.run(plan(50))
        assert len(endpoint.requests) <= 2


def test_no_answer() -> None:
    """A controller that says what is no answer ends the asking; it is not asked twice."""
    ours, theirs = End.pair()
    line = Line(theirs)
    over: queue.SimpleQueue[str] = queue.SimpleQueue()
    line.when_over(over.put)
    ours.send("{]")
    for ask in (lambda: open_remote(line), lambda: line.append("{}")):
        with pytest.raises(StoreError, match="no answer of this version"):
            ask()
    assert over.get(timeout=10) in str(line._broken)


# ------------------------------------------------------------ hostile messages


def record(text: str) -> dict[str, Any]:
    return {"type": "Append", "body": text}


def a_record(**fields: Any) -> dict[str, Any]:
    return record(json.dumps(fields))


CLAIM = {"type": "Claim", "retry": {"unknown": False, "errors": False}, "before": 0}
TAKE = {"type": "Take", "requests_per_minute": 1, "tokens_per_minute": None}
HOSTILE = {
    "pickle": b"\x80\x04N.",
    "no JSON": "{",
    "deep": "[" * 100_000,
    "NaN": '{"number": NaN}',
    "inside": {"type": "_Finish", "fields": "{}"},
    "key": {**CLAIM, "keys": ["../x"]},
    "arguments unknown": {"type": "Flush", "more": 1},
    "opened twice": {"type": "OpenStore", "host": "h", "pid": 1},
    "another query": {"type": "Read", "query": "DROP TABLE records"},
    "negative": {"type": "Reserve", "amount": -5, "cap": None},
    "no number": {"type": "Reserve", "amount": True, "cap": None},
    "limits of a path": {**TAKE, "identity": "../../x", "tokens": 1},
    "record that is no JSON": record("{]"),
    "record with NaN": record('{"type":"design","n":NaN}'),
    "kind of record": a_record(type="head", key="a" * 64),
    "another writer's introduction": a_record(type="log"),
    "key not first": a_record(type="trial", status="answered", key="a" * 64),
    "no key": a_record(type="trial", key="x" * 64),
    "chain": a_record(type="design", prev="0" * 64),
}


def test_whoever_sends_anything_else_is_served_no_more(root: Path, worker: Worker) -> None:
    """It is told why; log and account are as they were, for everybody else."""
    for number, (what, sent) in enumerate(HOSTILE.items()):
        one = worker(f"gw{number}")
        store = one.store()
        store.claim(KEYS)
        one.theirs.send(
            json.dumps({"number": None, "operation": sent}) if isinstance(sent, dict) else sent
        )
        assert f"worker gw{number} is served no more" in one.ended(), what
        with pytest.raises(StoreError, match=r"served no more|connection"):
            store.flush()
    with open_store(root, TOKEN) as local:
        assert list(local.claim(KEYS).mine) == KEYS
        RunReader.open(local.directory)


def test_what_is_not_its_own_to_change(worker: Worker) -> None:
    """The heads of logs: the question is refused, and nothing written. Nor is it served with
    another version, which would log another way, or before it has opened its store."""
    one = worker()
    with pytest.raises(
        StoreError,
        match=r"worker gw0 has pytest-fairness 0\.0\.0, the controller .*install the same",
    ):
        one.line.submit(Hello(version="0.0.0")).result()
    with pytest.raises(StoreError, match="heads of the logs"):
        one.store().update_manifest(logs={})
    early = worker("gw1")
    early.line.submit(Flush())
    assert "no open store" in early.ended()


def test_too_long(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message beyond the limit is not read, and an honest worker does not send one."""
    one = worker()
    store = one.store()
    monkeypatch.setattr(remote, "LONGEST", 10_000)
    with pytest.raises(StoreError, match="longer than 10000"):
        store.append({"type": "engine", "identity": "x" * 10_001})
    one.theirs.send('{"number": "' + "x" * 10_000)
    assert "the longest allowed is 10000" in one.ended()


# ------------------------------------------------------------ messages


@given(st.binary() | st.text() | st.integers() | st.none())
def test_any_noise_is_refused(noise: object) -> None:
    """Never anything but a message, or BadMessageError."""
    with contextlib.suppress(BadMessageError):
        assert isinstance(remote.decode(noise, StoreResponse), StoreResponse)


@pytest.mark.parametrize(
    "error", [BudgetError("b"), StoreError("s"), UsageError("u"), EndpointError("e")]
)
def test_errors_keep_their_class(error: FairnessError) -> None:
    """Who can mend it is said by the class; any other error says what it was."""
    again = remote._raised(remote._described(error))
    assert (type(again), str(again)) == (type(error), str(error))
    foreign = remote._raised(remote._described(PermissionError("no")))
    assert (type(foreign), str(foreign)) == (StoreError, "PermissionError: no")
