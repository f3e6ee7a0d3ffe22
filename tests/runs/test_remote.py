"""Store, account and limits of a run at the other end of a connection: as good as the local ones, as hard to fool."""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.endpoints.protocol import Limits, Price, Reply
from pytest_fairness.engine.engine import Engine
from pytest_fairness.errors import BudgetError, EndpointError, FairnessError, StoreError, UsageError
from pytest_fairness.model import Usage
from pytest_fairness.runs import remote
from pytest_fairness.runs.database import Append, Database, Flush
from pytest_fairness.runs.folder import reserve_run
from pytest_fairness.runs.lines import encode_record
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.runs.money import Account, Reserve, Settle
from pytest_fairness.runs.rate_limits import Take
from pytest_fairness.runs.reader import RunReader, read_trials
from pytest_fairness.runs.remote import (
    BadMessageError,
    Hello,
    Line,
    OpenStore,
    Service,
    StoreMessage,
    StoreResponse,
    open_remote,
)
from pytest_fairness.runs.shared_progress import WorkerProgress
from pytest_fairness.runs.store import Retry, RunStore, open_run
from tests.support.doubles import Scripted, plan
from tests.support.runs import records

TOKEN = "a session"
KEYS = ["a" * 64, "b" * 64, "c" * 64]


class End:
    """One end of a channel as execnet has them: whole items, in order, handed over in a thread of the connection."""

    def __init__(self) -> None:
        self.other: End | None = None
        self._arrived: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._closed = False

    def send(self, item: object) -> None:
        if self._closed:
            raise OSError("cannot send (already closed?)")
        assert self.other is not None
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
        assert self.other is not None
        for end in (self, self.other):
            end._closed = True
            end._arrived.put(END)


END = object()


class Elsewhere:
    """A worker elsewhere: its end of the connection, and the service at the controller's."""

    def __init__(self, root: Path, worker: str, *, cap: float | None = None, patience: float = 20.0) -> None:
        ours, self.theirs = End(), End()
        ours.other, self.theirs.other = self.theirs, ours
        self.service = Service(
            ours,
            worker=worker,
            open_store=lambda: open_run(root, TOKEN, writer=worker),
            greet=lambda: {"hello": "worker"},
            cap=cap,
        )
        ours.setcallback(self.service.take, endmarker=None)
        self.line = Line(self.theirs, patience=patience)

    def store(self) -> RunStore:
        return open_remote(self.line)

    def die(self) -> None:
        """The worker's process ends, without a word."""
        self.theirs.close()
        self.service._thread.join(10)


Worker = Callable[..., Elsewhere]


@pytest.fixture
def worker(root: Path) -> Iterator[Worker]:
    made: list[Elsewhere] = []

    def make(name: str = "gw0", **options: Any) -> Elsewhere:
        made.append(Elsewhere(root, name, **options))
        return made[-1]

    yield make
    for one in made:
        one.theirs.close()
        one.service.stop(0.0)


def account(root: Path) -> Account:
    """The run's account."""
    with open_run(root, TOKEN, writer="reader") as store:
        return store.budget(None).account()


def ended(service: Service) -> bool:
    service._thread.join(10)
    return not service._thread.is_alive()


class TestAsGoodAsTheLocalStore:
    def test_trials_reach_the_controllers_log(self, root: Path, worker: Worker) -> None:
        """What a worker elsewhere asks is in the controller's folder, in a log of its own, as it would be if it had
        written that itself; texts that no encoding knows included."""
        strange = "lone \ud800, NUL \x00, \u2028, e\u0301 and 𝔽"
        endpoint = Scripted(lambda _: Reply(text=strange, usage=Usage(input_tokens=1, output_tokens=1)))
        with worker("gw3").store() as store, Engine(endpoint, store) as engine:
            trials = engine.run(plan(12))
            logged = read_trials(reserve_run(root, TOKEN))
        assert [trial.reply for trial in trials] == [strange] * 12
        assert logged == {trial.key: trial for trial in trials}
        assert set(RunReader.open(root / store.directory.name).logs) == {"trials-gw3.jsonl"}

    def test_all_writers_share_the_trials(self, root: Path, worker: Worker) -> None:
        """Two workers elsewhere and a local one ask the same design at once: each trial is asked once."""
        endpoints = [Scripted(delay=0.01) for _ in range(3)]
        stores = [worker("gw0").store(), worker("gw1").store(), open_run(root, TOKEN, writer="gw2")]
        answers: dict[int, list[str]] = {}

        def ask(number: int) -> None:
            with Engine(endpoints[number], stores[number], concurrency=4) as engine:
                answers[number] = [trial.reply or "" for trial in engine.run(plan(60))]

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert answers[0] == answers[1] == answers[2]
        assert sum(len(endpoint.asked) for endpoint in endpoints) == 60
        assert len(stores[0]) == len(stores[2]) == 60
        for store in stores:
            store.close()
        assert len(read_trials(stores[2].directory)) == 60

    def test_asks_nothing_that_is_finished(self, root: Path, worker: Worker) -> None:
        """Trials of others are read over the connection, in pieces where they are many or long."""
        with open_run(root, TOKEN) as local, Engine(Scripted(), local) as engine:
            expected = engine.run(plan(700))
        endpoint = Scripted()
        with worker().store() as store, Engine(endpoint, store) as engine:
            assert engine.run(plan(700)) == expected
            assert store.trial(expected[3].key) == expected[3]
            assert store.trial("f" * 64) is None
        assert endpoint.asked == []

    def test_long_records_come_in_pieces(self, root: Path, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
        """No answer grows beyond what a message may hold; one record is always sent."""
        with open_run(root, TOKEN) as local, Engine(Scripted(), local) as engine:
            expected = engine.run(plan(5))
        store = worker().store()
        monkeypatch.setattr("pytest_fairness.runs.reader.LONGEST_ANSWER", 10)
        found = list(store.records([trial.key for trial in expected]))
        assert [record["replies"][0] for record in found if record] == [trial.reply for trial in expected]

    def test_designs_and_manifest(self, root: Path, worker: Worker) -> None:
        """Both sides write into one manifest, and neither loses what the other wrote; the worker's place is told."""
        store = worker().store()
        with open_run(root, TOKEN) as local:
            local.update_manifest(seed=7)

            def add(manifest: dict[str, Any]) -> None:
                if "between" not in manifest:  # somebody writes between reading and writing
                    local.update_manifest(between=True)
                manifest.setdefault("endpoints", []).append("one")

            store.amend_manifest(add)
            store.update_manifest(planned=["test_a", "test_b"])
            manifest = local.manifest()
        assert manifest["seed"] == 7
        assert manifest["between"] is True
        assert manifest["endpoints"] == ["one"]
        assert manifest["planned"] == ["test_a", "test_b"]
        assert manifest["remote"]["gw0"]["host"] == socket.gethostname()
        assert store.designs() == []

    def test_closing_seals_the_log(self, root: Path, worker: Worker) -> None:
        """The head of the worker's log is in the manifest, and the worker can be opened anew under its name."""
        with worker().store() as store, Engine(Scripted(), store) as engine:
            engine.run(plan(3))
        with open_run(root, TOKEN, writer="gw0") as again:
            assert again.manifest()["logs"]["trials-gw0.jsonl"]["records"] > 3
            assert len(again) == 3
        with pytest.raises(StoreError, match="closed"):
            store.flush()
        store.close()

    def test_asks_again_what_is_wished(self, root: Path, worker: Worker) -> None:
        """``--fairness-retry-unknown`` reaches the controller: a lost trial is asked again, and once."""
        with open_run(root, TOKEN) as local:
            with Engine(Scripted(), local) as engine:
                key = engine.key_of(plan(1)[0])
            local.append({"type": "sent", "key": key, "turn": 0, "attempt": 1, "order": 0, "monotonic": 0.0})
        with worker("gw0").store() as store, Engine(Scripted(), store) as engine:
            assert [trial.status.value for trial in engine.run(plan(1))] == ["unknown"]
        endpoint = Scripted()
        retry = Retry(unknown=True)
        with worker("gw1").store() as store, Engine(endpoint, store, retry=retry) as engine:
            assert [trial.status.value for trial in engine.run(plan(1))] == ["answered"]
        assert len(endpoint.asked) == 1

    def test_says_how_far_it_is(self, root: Path, worker: Worker) -> None:
        """The controller's line of progress counts a worker elsewhere like any other."""
        store = worker().store()
        progress = store.progress()
        assert isinstance(progress, WorkerProgress)
        progress.begin(10, "model", "these")
        store.flush()
        with open_run(root, TOKEN) as local:
            standing = local.standing()
        assert (standing.planned, standing.label) == (10, "model (1 worker)")


class TestMoneyAndLimits:
    PRICE = Price(input_per_million=1.0, output_per_million=1.0)

    def test_one_cap_for_all(self, root: Path, worker: Worker) -> None:
        """Workers here and elsewhere spend from one account, and stop together before the cap is passed."""
        spent = 0
        for store in (worker("gw0", cap=2e-4).store(), open_run(root, TOKEN, writer="gw1")):
            endpoint = Scripted(price=self.PRICE, max_tokens=10)
            refused = pytest.raises(BudgetError, match=r"the cost cap of \$0.00 leaves no room")
            with store, Engine(endpoint, store, max_cost=2e-4, concurrency=2) as engine, refused:
                engine.run(plan(40))
            spent += 15 * len(endpoint.asked)
        assert 0 < spent <= 200
        assert account(root).settled == spent * 1000

    def test_the_cap_is_the_controllers(self, worker: Worker) -> None:
        """What a worker believes its cap to be is of no interest."""
        budget = worker(cap=1e-6).store().budget(1e6)
        with pytest.raises(BudgetError):
            asyncio.run(budget.reserve(2000))
        assert asyncio.run(budget.reserve(900))
        assert not asyncio.run(budget.reserve(900))
        assert (budget.account().settled, budget.account().reserved) == (0, 900)
        budget.settle(900, 100)
        assert asyncio.run(budget.reserve(900))
        budget.leave(900)  # for a later session to go on from
        assert budget.reserved == 0
        assert budget.adopt(2000) == 900
        assert budget.reserved == 900

    def test_without_a_cap_the_account_is_kept(self, worker: Worker) -> None:
        """Nothing waits for the controller then, and nothing is forgotten."""
        budget = worker().store().budget(None)
        assert asyncio.run(budget.reserve(10**15))
        budget.settle(10**15, 5)
        assert (budget.account().settled, budget.account().reserved) == (5, 0)

    def test_one_schedule_for_all(self, root: Path, worker: Worker) -> None:
        """Of limits per minute, a worker elsewhere takes its share of the controller's schedule."""
        limits = Limits(requests_per_minute=6, tokens_per_minute=6000)
        store = worker().store()
        there = store.limiter("a" * 64, limits)
        with open_run(root, TOKEN) as local:
            here = local.limiter("a" * 64, limits)
            assert asyncio.run(there.take(1)) == 0
            assert 5 < asyncio.run(here.take(1)) < 11
            assert 5 < asyncio.run(there.take(1)) < 11
            there.settle(1, Usage(input_tokens=5000, output_tokens=1000))
            store.flush()
            assert asyncio.run(here.take(1)) > 30
        there.settle(1, None)
        assert there.estimate((), {}) > 500  # replies took more than was guessed at first


class TestWhenOneSideIsGone:
    def test_a_dead_workers_claims_are_free(self, root: Path, worker: Worker) -> None:
        """Others take over what it had claimed; what it had sent is unknown and stays paid for, not sent again."""
        lost = worker("gw0", cap=1.0)
        store = lost.store()
        endpoint = Scripted(price=TestMoneyAndLimits.PRICE)
        with Engine(endpoint, store) as engine:
            keys = [engine.key_of(one) for one in plan(3)]
        assert list(store.claim(keys).mine) == keys
        budget = store.budget(1.0)
        assert asyncio.run(budget.reserve(500))
        store.append({"type": "sent", "key": keys[0], "turn": 0, "attempt": 1, "order": 0, "monotonic": 0.0})
        local = open_run(root, TOKEN, writer="gw1")
        assert local.claim(keys).busy == keys
        lost.die()
        with local, Engine(endpoint, local, max_cost=1.0) as engine:
            assert [trial.status.value for trial in engine.run(plan(3))] == ["unknown", "answered", "answered"]
        assert len(endpoint.asked) == 2
        assert account(root).reserved == 500
        assert "trials-gw0.jsonl" in read_manifest(local.directory)["logs"]

    def test_without_the_controller_nothing_is_asked(self, worker: Worker) -> None:
        """The connection goes while calls are under way: nothing more is sent, and the error says what happened."""
        one = worker()
        store = one.store()
        endpoint = Scripted(delay=0.1)
        with Engine(endpoint, store, concurrency=2) as engine:
            one.line.when_over(engine.halt)
            threading.Timer(0.35, one.theirs.close).start()
            with pytest.raises(FairnessError, match=r"connection to pytest-xdist's controller is lost"):
                engine.run(plan(400))
            asked = len(endpoint.asked)
            assert 0 < asked < 100
            with pytest.raises(FairnessError, match="connection"):
                engine.run(plan(400))
            assert len(endpoint.asked) == asked

    def test_a_controller_that_ends_lets_calls_under_way_be_logged(self, root: Path, worker: Worker) -> None:
        """An interrupt of the controller: what was sent is logged with its answer, and nothing is sent after it."""
        one = worker()
        store = one.store()
        endpoint = Scripted(delay=0.4)
        errors: list[Exception] = []

        def ask() -> None:
            with Engine(endpoint, store, concurrency=3) as engine:
                one.line.when_over(engine.halt)
                try:
                    engine.run(plan(300))
                except FairnessError as error:
                    errors.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        until = time.monotonic() + 20
        while len(endpoint.asked) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        one.service.stop(10.0)
        thread.join(20)
        asked = len(endpoint.asked)
        assert 3 <= asked < 30
        with open_run(root, TOKEN) as local:
            sent = {record["key"] for record in records(local.directory, "sent")}
            answered = {record["key"] for record in records(local.directory, "attempt")}
        assert len(sent) == asked
        assert sent == answered
        assert isinstance(errors[0], EndpointError)
        assert "has ended" in str(errors[0])

    def test_a_full_disk_at_the_controller_stops_the_worker(
        self, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is refused although nobody waited for it is raised by the next call: nothing is paid for that cannot
        be recorded."""
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
            assert len(endpoint.asked) <= 2

    def test_no_answer(self, root: Path) -> None:
        """A controller that does not answer is told of, and not asked twice."""
        ours, theirs = End(), End()
        ours.other, theirs.other = theirs, ours
        line = Line(theirs, patience=0.2)
        with pytest.raises(StoreError, match=r"did not answer \(OpenStore\) within 0.2 s"):
            open_remote(line)
        with pytest.raises(StoreError, match="did not answer"):
            line.append("{}")
        told: list[str] = []
        line.when_over(told.append)
        assert "did not answer" in told[0]

    def test_a_garbled_answer(self) -> None:
        """Whatever the other side says that is no answer, ends the asking."""
        ours, theirs = End(), End()
        ours.other, theirs.other = theirs, ours
        line = Line(theirs)
        told: queue.SimpleQueue[str] = queue.SimpleQueue()
        line.when_over(told.put)
        ours.send("{]")
        assert "no answer of this version" in told.get(timeout=10)
        with pytest.raises(StoreError, match="no answer of this version"):
            line.append("{}")


def record(text: str) -> dict[str, Any]:
    return {"type": "Append", "body": text}


def a_record(**fields: Any) -> dict[str, Any]:
    return record(json.dumps(fields))


CLAIM = {"type": "Claim", "retry": {"unknown": False, "errors": False}, "before": 0}
TAKE = {"type": "Take", "requests_per_minute": 1, "tokens_per_minute": None}


class TestHostileMessages:
    @pytest.mark.parametrize(
        "sent",
        [
            pytest.param(b"\x80\x04N.", id="pickle"),
            pytest.param("{", id="no JSON"),
            pytest.param("[" * 100_000, id="deep"),
            pytest.param("[]", id="no object"),
            pytest.param('{"number": NaN}', id="NaN"),
            pytest.param({"type": "_Finish", "fields": "{}"}, id="inside"),
            pytest.param({"type": "../../open"}, id="a path"),
            pytest.param({**CLAIM, "keys": ["../x"]}, id="key"),
            pytest.param({**CLAIM, "keys": "a" * 64}, id="no list"),
            pytest.param({"type": "Claim", "keys": []}, id="arguments missing"),
            pytest.param({"type": "Flush", "more": 1}, id="arguments unknown"),
            pytest.param({"type": "OpenStore", "host": "h", "pid": 1}, id="opened twice"),
            pytest.param({"type": "Reserve", "amount": -5, "cap": None}, id="negative"),
            pytest.param({"type": "Reserve", "amount": True, "cap": None}, id="no number"),
            pytest.param({**TAKE, "identity": "../../x", "tokens": 1}, id="limits elsewhere"),
            pytest.param({"type": "Report", "report": {"label": 1}}, id="progress"),
            pytest.param(record("{]"), id="record that is no JSON"),
            pytest.param(record('{"type":"design","n":NaN}'), id="record with NaN"),
            pytest.param(record("[]"), id="record that is no object"),
            pytest.param(a_record(type="head", key="a" * 64), id="kind of record"),
            pytest.param(a_record(type="log"), id="another writer's introduction"),
            pytest.param(a_record(type="trial", status="answered", key="a" * 64), id="key not first"),
            pytest.param(a_record(type="trial", key="x" * 64), id="no key"),
            pytest.param(a_record(type="design", prev="0" * 64), id="chain"),
        ],
    )
    def test_ends_the_service(self, root: Path, worker: Worker, sent: Any) -> None:
        """The worker is served no more, and told why; log and account are as they were, for everybody else."""
        one = worker()
        store = one.store()
        store.claim(KEYS)
        if isinstance(sent, dict):
            sent = json.dumps({"number": None, "operation": sent})
        one.theirs.send(sent)
        assert ended(one.service)
        assert one.service.trouble is not None
        assert "worker gw0 is served no more" in one.service.trouble
        with pytest.raises(StoreError, match=r"served no more|connection"):
            store.flush()
        with open_run(root, TOKEN) as local:
            assert list(local.claim(KEYS).mine) == KEYS
            RunReader.open(local.directory)

    def test_what_is_not_its_own_to_change(self, root: Path, worker: Worker) -> None:
        """Neither the heads of logs, nor more money than was reserved: the question is refused, and nothing written."""
        one = worker()
        store = one.store()
        with pytest.raises(StoreError, match="heads of the logs"):
            store.amend_manifest(lambda manifest: manifest.update(logs={}))
        with pytest.raises(StoreError, match="more is settled than was reserved"):
            store.ask(Settle(reserved=10**9, cost=0))
        with open_run(root, TOKEN) as local:
            assert local.budget(None).account() == (0, 0)

    def test_too_long(self, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
        """A message beyond the limit is not read, and an honest worker does not send one."""
        one = worker()
        store = one.store()
        monkeypatch.setattr(remote, "LONGEST", 10_000)
        with pytest.raises(StoreError, match="longer than 10000"):
            store.append({"type": "engine", "identity": "x" * 10_001})
        one.theirs.send('{"number": "' + "x" * 10_000)
        assert ended(one.service)
        assert "the longest allowed is 10000" in str(one.service.trouble)

    def test_before_it_is_open(self, worker: Worker) -> None:
        """There is nothing to write to, and no folder is made."""
        one = worker()
        one.line.submit(Flush())
        assert ended(one.service)
        assert "no open store" in str(one.service.trouble)

    def test_another_version(self, worker: Worker) -> None:
        """A worker with another version of the package would log another way: it is told to install the same."""
        one = worker()
        with pytest.raises(
            StoreError, match=r"worker gw0 has pytest-fairness 0\.0\.0, the controller .*install the same"
        ):
            one.line.ask(Hello(version="0.0.0"))


class TestMessages:
    @given(st.text(st.characters(exclude_categories=())))
    def test_any_text_arrives(self, text: str) -> None:
        """Whatever a record can hold, lone surrogates included, is the same on the other side."""
        sent = remote.encode(StoreMessage(None, Append(encode_record({"type": "note", "text": text}))))
        assert json.loads(remote.decode(sent, StoreMessage).operation.body)["text"] == text

    @given(st.binary() | st.text() | st.integers() | st.none())
    def test_any_noise_is_refused(self, noise: object) -> None:
        """Never anything but a message, or BadMessageError."""
        with contextlib.suppress(BadMessageError):
            assert isinstance(remote.decode(noise, StoreResponse), StoreResponse)

    @pytest.mark.parametrize("operation", [Reserve(1, None), Take("a" * 64, 1, None, None), OpenStore("h", 1)])
    def test_operations_are_messages(self, operation: Any) -> None:
        """What is read is what was sent."""
        assert remote.decode(remote.encode(StoreMessage(3, operation)), StoreMessage) == StoreMessage(3, operation)

    @pytest.mark.parametrize("error", [BudgetError("b"), StoreError("s"), UsageError("u"), EndpointError("e")])
    def test_errors_keep_their_class(self, error: FairnessError) -> None:
        """Who can mend it is said by the class; any other error says what it was."""
        again = remote._raised(remote._described(error))
        assert (type(again), str(again)) == (type(error), str(error))
        foreign = remote._raised(remote._described(PermissionError("no")))
        assert (type(foreign), str(foreign)) == (StoreError, "PermissionError: no")
