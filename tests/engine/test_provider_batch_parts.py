"""The parts of asking in batches by themselves: the choice of a lot under a cap, and what the log says of batches."""

from __future__ import annotations

import asyncio
import io
import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_fairness.endpoints.batch_protocol import BatchApi, BatchOptions, Result
from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Price, Reply, Request, Wire
from pytest_fairness.engine.attempt import Asker
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.engine.progress import Progress
from pytest_fairness.engine.provider_batch_choice import provider_batches
from pytest_fairness.engine.provider_batch_money import Lot, take_lot
from pytest_fairness.engine.provider_batch_records import batch_record, still_open, submissions
from pytest_fairness.engine.provider_batch_results import by_request, ended
from pytest_fairness.errors import BudgetError, UsageError
from pytest_fairness.model import Status
from pytest_fairness.runs.money import Budget
from pytest_fairness.runs.shared_progress import WorkerProgress, together
from pytest_fairness.runs.store import RunStore
from tests.support.doubles import Scripted, plan

#: Nano-dollars that each call of these trials may cost: nothing but the price per call.
EACH = 1_000_000
PRICE = Price(input_per_million=0.0, output_per_million=0.0, per_call=0.001)

#: What a choice is given besides.
NEEDED = ("begin", "asker", "budget", "policy", "finish", "progress", "of")


class Bodies:
    """As much of a BatchApi as choosing a lot needs; requests of which *bad* is the prompt cannot be sent."""

    def __init__(self, bad: Sequence[str] = (), *, size: int = 10, max_bytes: int = 1000) -> None:
        self.options = BatchOptions(max_bytes=max_bytes)
        self._bad, self._size = bad, size

    async def body(self, request: Request) -> bytes:
        if request.messages[-1].content in self._bad:
            raise AttemptError("no such parameter", evidence=Evidence.REJECTED)
        return b"x" * self._size


class Batches(Bodies):
    """A BatchApi as far as one can see without asking."""

    encode = upload = submit = find = state = results = how_to_cancel = aclose = Bodies.body


class Choice:
    """Takes lots from *count* conversations, under a cap of *cap* calls."""

    def __init__(self, tmp_path: Path, store: RunStore, count: int, cap: float | None) -> None:
        self.path = tmp_path / "budget"
        self.budget = Budget(self.path, None if cap is None else cap * EACH / 1e9)
        endpoint = Scripted(price=PRICE)
        self.asker = Asker(endpoint, store, self.budget, 1.0)
        self.ready = deque(Conversation(str(n), one, {}) for n, one in enumerate(plan(count)))
        self.rejected: list[str] = []
        self.waited = 0

    def take(self, api: Bodies | None = None, *, most: int = 100, patience: float = 5.0, alone: bool = True) -> Lot:
        async def wait() -> bool:
            self.waited += 1
            self.while_waiting()
            await asyncio.sleep(0.01)
            return self.waited < 50

        return asyncio.run(
            take_lot(
                self.ready,
                api=cast("BatchApi", api or Bodies()),
                asker=self.asker,
                budget=self.budget,
                most=most,
                reject=lambda conversation, _error: self.rejected.append(conversation.key),
                wait=wait if alone else None,
                patience=lambda: patience,
            )
        )

    def while_waiting(self) -> None:
        """What other processes do meanwhile."""

    @property
    def left(self) -> list[str]:
        return [conversation.key for conversation in self.ready]


def keys(lot: Lot) -> list[str]:
    return [conversation.key for conversation, _, _ in lot]


def test_all_go_out_together_where_nothing_limits_them(tmp_path: Path, store: RunStore) -> None:
    """In their order, each with its worst case, all of it reserved."""
    choice = Choice(tmp_path, store, 70, None)
    lot = choice.take()
    assert keys(lot) == [str(number) for number in range(70)]
    assert {reserved for _, _, reserved in lot} == {EACH}
    assert choice.budget.account().reserved == 70 * EACH


def test_the_number_and_the_bytes_of_a_batch_are_bounded(tmp_path: Path, store: RunStore) -> None:
    """The rest stays where it was, in its order; one that is too large alone goes alone."""
    choice = Choice(tmp_path, store, 10, None)
    assert keys(choice.take(most=3)) == ["0", "1", "2"]
    assert keys(choice.take(Bodies(size=300))) == ["3", "4", "5"]
    assert keys(choice.take(Bodies(size=3000))) == ["6"]
    assert choice.left == ["7", "8", "9"]


def test_what_cannot_be_sent_is_left_out(tmp_path: Path, store: RunStore) -> None:
    """And told, so that it becomes an outcome of its own."""
    choice = Choice(tmp_path, store, 4, None)
    bad = [one.cell.prompt for one in plan(2)]
    assert keys(choice.take(Bodies(bad))) == ["2", "3"]
    assert choice.rejected == ["0", "1"]
    assert choice.take(Bodies(bad)) == []


def test_a_cap_takes_the_front(tmp_path: Path, store: RunStore) -> None:
    """As many as fit; the next ones wait while batches of this process are under way."""
    choice = Choice(tmp_path, store, 5, 3.5)
    assert keys(choice.take(alone=False)) == ["0", "1", "2"]
    assert choice.take(alone=False) == []
    assert choice.left == ["3", "4"]
    choice.budget.settle(3 * EACH, EACH)  # they cost less than was set aside
    assert keys(choice.take(alone=False)) == ["3", "4"]


def test_reservations_of_others_are_waited_for(tmp_path: Path, store: RunStore) -> None:
    """Another process holds the money: it may give it back."""
    choice = Choice(tmp_path, store, 3, 3)
    other = Budget(choice.path, 3 * EACH / 1e9)
    assert other.reserve(2 * EACH + 1)

    def gives_back() -> None:
        if choice.waited == 3:
            other.settle(2 * EACH + 1, EACH)

    choice.while_waiting = gives_back  # type: ignore[method-assign]
    assert keys(choice.take()) == ["0", "1"]
    assert choice.waited == 3
    other.close()


def test_reservations_that_stay_for_ever_are_told(tmp_path: Path, store: RunStore) -> None:
    """A process that died holds the money: after a while that is an error, not a wait."""
    choice = Choice(tmp_path, store, 3, 3)
    other = Budget(choice.path, 3 * EACH / 1e9)
    assert other.reserve(3 * EACH)
    with pytest.raises(BudgetError, match="is held for calls without an account"):
        choice.take(patience=0.1)
    other.close()


def test_waiting_ends_with_the_session(tmp_path: Path, store: RunStore) -> None:
    """Whoever stops the session gets its conversations back, and nothing reserved."""
    choice = Choice(tmp_path, store, 2, 2)
    other = Budget(choice.path, 2 * EACH / 1e9)
    assert other.reserve(2 * EACH)
    choice.waited = 48
    assert choice.take() == []
    assert choice.left == ["0", "1"]
    assert choice.budget.reserved == 0
    other.close()


def test_money_that_is_spent_is_not_waited_for(tmp_path: Path, store: RunStore) -> None:
    choice = Choice(tmp_path, store, 2, 2)
    choice.budget.reserve(2 * EACH)
    choice.budget.settle(2 * EACH, 2 * EACH)
    with pytest.raises(BudgetError, match="leaves no room"):
        choice.take()
    assert choice.waited == 0


# ------------------------------------------------------------ the account across processes


def test_what_a_dead_process_set_aside_is_taken_over(tmp_path: Path) -> None:
    """Left, adopted, settled: the account ends with the cost alone; never more is adopted than stands there."""
    first, second = (Budget(tmp_path / "budget", 1.0) for _ in range(2))
    assert first.reserve(500)
    first.leave(500)
    assert (first.reserved, first.account().reserved) == (0, 500)
    assert second.adopt(300) == 300
    second.settle(300, 120)
    assert second.adopt(300) == 200
    second.settle(200, 0)
    assert (second.account().settled, second.account().reserved, second.reserved) == (120, 0, 0)
    assert second.adopt(10) == 0
    assert second.room() == 1_000_000_000 - 120
    assert Budget(tmp_path / "other", None).room() is None
    first.close()
    second.close()


# ------------------------------------------------------------ records


def intent(tag: str) -> dict[str, Any]:
    return batch_record(tag, "intent", endpoint="model", requests=3, sha256="0" * 64, bytes=9, reserved=5)


def made(tag: str) -> dict[str, Any]:
    return batch_record(
        tag, "submitted", batch=f"batch_{tag}", status="validating", cancel=f"POST http://h/{tag}/cancel"
    )


def test_the_log_tells_how_far_each_batch_is() -> None:
    """Steps of several batches, in the logs of several writers, in any order of these logs."""
    records = [
        batch_record("a", "status", status="in_progress"),
        batch_record("b", "uploaded", file="file-1"),
        made("a"),
        intent("a"),
        intent("b"),
        batch_record("stranger", "ended", status="completed"),
    ]
    found = submissions([*records[2:], *records[:2]])
    assert set(found) == {"a", "b"}
    assert (found["a"].batch, found["a"].status, found["a"].over) == ("batch_a", "in_progress", False)
    assert (found["b"].batch, found["b"].file, found["b"].requests) == (None, "file-1", 3)
    assert found["a"].submitted is not None


@pytest.mark.parametrize("end", ["collected", "void", "lost"])
def test_batches_that_go_on_are_told_of_and_others_not(end: str) -> None:
    """One whose name is known and of which something is still expected; its names are made safe for a terminal."""
    assert still_open([intent("a")]) == []
    (told,) = still_open([intent("a"), made("a")])
    assert told.startswith("batch batch_a of 'model' (3 requests) goes on at the provider and will be billed; ")
    assert still_open([intent("a"), made("a"), batch_record("a", end)]) == []
    evil = {**made("a"), "batch": "batch\x1b[2J\n", "cancel": "POST \u202e"}
    (told,) = still_open([intent("a"), evil])
    assert "\x1b" not in told
    assert "\n" not in told
    assert "\u202e" not in told


# ------------------------------------------------------------ results


def result(custom_id: str | None, line: str, **more: Any) -> Result:
    return Result(custom_id=custom_id, line=line, reply=Reply(text="yes"), **more)


def test_results_are_dealt_to_their_requests() -> None:
    """By the identifier; what is said twice alike counts once; the others belong to nobody."""
    found, strays = by_request(
        [result("a", "1"), result("b", "2"), result("a", "1"), result("b", "3"), result(None, "4"), result("z", "5")],
        ["a", "b", "c"],
    )
    assert {key: [one.line for one in some] for key, some in found.items()} == {"a": ["1"], "b": ["2", "3"], "c": []}
    assert [stray.line for stray in strays] == ["4", "5"]


def test_the_end_of_an_attempt_keeps_both_lines() -> None:
    """What was sent and what came back, also bytes that are no text."""
    how = ended([result("a", "caf\udce9", status_code=200)], request=b"sent", url="http://h/v1", status="completed")
    wire = how.wire
    assert isinstance(wire, Wire)
    assert (wire.request_body, wire.response_body, wire.status_code) == ("sent", "caf\udce9", 200)
    assert (how.status, how.text, how.flags, how.free) == (Status.ANSWERED, "yes", ("batched",), False)
    nothing = Result(custom_id="a", line="{}")
    how = ended([nothing], request=b"sent", url="", status="completed")
    assert (how.status, how.evidence, how.error) == (None, Evidence.NO_RESPONSE, "the result holds nothing")


# ------------------------------------------------------------ telling, and where it is not possible


def test_all_workers_tell_of_their_batches(tmp_path: Path) -> None:
    """One line for all: what each waits for, said once, and safe for a terminal."""
    for worker, text in (("gw0", "batch a in progress 1/2"), ("gw1", "batch b validating 0/3"), ("gw2", "")):
        progress = WorkerProgress(tmp_path, worker, clock=itertools.count().__next__)
        progress.begin(3, "model")
        progress.note(text)
    standing = together(tmp_path)
    assert standing.note == "batch a in progress 1/2; batch b validating 0/3"
    stream = io.StringIO()
    shown = Progress(stream, "terminal", clock=lambda: 100.0)
    shown.show(replace(standing, note="batch \x1b[2J"))
    assert shown.line().endswith(", batch ?[2J")


def test_a_worker_without_the_runs_folder_says_so() -> None:
    """What is sent lies in the run's folder first: where there is none, no batch is made."""

    class Batched(Scripted):
        batches = Batches()

    with pytest.raises(UsageError, match="is asked in batches, which a worker on another machine cannot do"):
        provider_batches(Batched(), [], store=object(), **{name: cast("Any", None) for name in NEEDED})
    assert provider_batches(Scripted(), [], store=object(), **{name: cast("Any", None) for name in NEEDED}) is None
