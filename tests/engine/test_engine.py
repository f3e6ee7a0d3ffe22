"""The engine: every planned trial asked once, in a fresh conversation, and logged before anybody
reads it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import selectors
import signal
import threading
import time
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from pytest_fairness.endpoints.protocol import Price, Reply, Request
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.engine.engine import Engine, ParentWatch, ended_as_by_ctrl_c
from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.model import Message, Status, Usage
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.keys import content_key
from pytest_fairness.runs.reader import RunReader, read_trials
from pytest_fairness.runs.records import Attempt, attempt_record, cell_of
from pytest_fairness.runs.store import RunStore
from tests.support.doubles import Scripted, cell, plan, polite
from tests.support.runs import EngineMaker, records, unanswered

# ------------------------------------------------------------ what comes back


def test_each_trial_is_asked_once_and_stands_beside_its_question(engine_for: EngineMaker) -> None:
    """Not again in the same call, in a later one, or by another engine on the same endpoint."""
    endpoint = Scripted()
    engine = engine_for(endpoint)
    planned = plan(20)
    trials = engine.run([*planned, *planned])
    assert trials[:20] == trials[20:]
    assert [trial.reply for trial in trials[:20]] == [
        f"Answer to: {one.cell.prompt}" for one in planned
    ]
    assert {(trial.status, trial.attempts, trial.source, trial.model) for trial in trials} == {
        (Status.ANSWERED, 1, "live", "scripted-1")
    }
    assert engine.run(planned) == engine_for(endpoint).run(planned) == trials[:20]
    assert len(endpoint.requests) == 20


def test_parameters_signals_and_repetitions(engine_for: EngineMaker) -> None:
    """The test's parameters lie over the defaults: what was sent is in the key. Signals reach the
    endpoint beside the messages. A repetition is asked, not copied, at temperature 0 too."""
    endpoint = Scripted(temperature=1.0, max_tokens=9)
    engine = engine_for(endpoint)
    signals = {"Lakisha": {"race_ethnicity": "black"}}
    planned = [
        PlannedTrial(cell=cell(signals=signals), repetition=number, parameters={"temperature": 0.0})
        for number in range(3)
    ]
    trials = engine.run(planned)
    assert [trial.repetition for trial in trials] == [0, 1, 2]
    sent = {"temperature": 0.0, "max_tokens": 9}
    assert [(request.parameters, request.signals) for request in endpoint.requests] == [
        (sent, signals)
    ] * 3
    record = records(engine.store.directory, "trial")[0]
    assert record["parameters"] == {"requested": {"temperature": 0.0}, "sent": sent}
    assert trials[0].key == engine.key_of(planned[0])
    assert trials[0].key == content_key(endpoint.identity(), sent, planned[0].cell, 0)


def test_every_trial_is_a_fresh_conversation_with_its_own_turns(engine_for: EngineMaker) -> None:
    """Turn by turn: the system prompt, then each turn with the replies to those before; nothing of
    other trials."""
    endpoint = Scripted(
        lambda request: Reply(
            text=f"reply {len(request.messages) // 2}", usage=Usage(output_tokens=2)
        )
    )
    requested = cell(turns=("one", "two", "three"), system="Be fair.")
    trial = engine_for(endpoint).run([PlannedTrial(cell=requested)])[0]
    assert trial.replies == ("reply 1", "reply 2", "reply 3")
    assert trial.reply == "reply 3"
    assert (trial.attempts, trial.usage) == (3, Usage(input_tokens=None, output_tokens=6))
    assert endpoint.requests[2].messages == (
        Message("system", "Be fair."),
        Message("user", "one"),
        Message("assistant", "reply 1"),
        Message("user", "two"),
        Message("assistant", "reply 2"),
        Message("user", "three"),
    )
    assert [len(request.messages) for request in endpoint.requests] == [2, 4, 6]


REPLIES = [
    (Reply(text="I cannot help.", status=Status.REFUSED), Status.REFUSED, "I cannot help."),
    (Reply(text=None, status=Status.REFUSED, finish_reason="content_filter"), Status.REFUSED, None),
    (Reply(text=None, status=Status.EMPTY, error="no choices"), Status.EMPTY, None),
    (Reply(text=None, status=Status.MALFORMED, error="not JSON"), Status.MALFORMED, None),
    (Reply(text=None, status=Status.ERROR, error="error in a 200"), Status.ERROR, None),
    (Reply(text=3, status=Status.ANSWERED), Status.MALFORMED, None),  # type: ignore[arg-type]
    (Reply(text="", status=Status.ANSWERED), Status.ANSWERED, ""),
    (Reply(text="Sorry, no."), Status.REFUSED, "Sorry, no."),
]


def number_of(request: Request) -> int:
    """Which trial of ``plan()`` asks."""
    return int(request.messages[-1].content.rstrip(".").split()[-1])


def test_a_complete_reply_is_an_outcome_whatever_it_is(engine_for: EngineMaker) -> None:
    """It was paid for: asked once, but for the empty one, its class and the provider's own word
    kept, and no text made up for it. A refusal in words is marked; its attempt keeps the provider's view."""
    endpoint = Scripted(lambda request: REPLIES[number_of(request)][0])
    engine = engine_for(endpoint, is_refusal=lambda text: text.startswith("Sorry"))
    trials = engine.run(plan(len(REPLIES)))
    for trial, (reply, status, text) in zip(trials, REPLIES, strict=True):
        assert (trial.status, trial.reply, trial.finish_reason) == (
            status,
            text,
            reply.finish_reason,
        )
    assert len(endpoint.requests) == len(REPLIES) + 1
    attempts = {record["key"]: record for record in records(engine.store.directory, "attempt")}
    assert attempts[trials[-1].key]["status"] == "answered"


def test_an_empty_answer_is_asked_once_more(engine_for: EngineMaker) -> None:
    """As a numbered attempt of the same trial, which says so; a reply that ended at the limit on
    its length, or called a tool, would do so again."""
    silence = Reply(text=None, status=Status.EMPTY, error="no text")
    at_the_limit = replace(silence, finish_reason="length")
    tool = replace(silence, finish_reason="tool_calls")
    scripts = [
        [silence, Reply(text="Yes.")],
        [silence, silence, Reply(text="Too late.")],
        [at_the_limit, Reply(text="Never sent.")],
        [tool, Reply(text="Never sent.")],
    ]
    replies = [iter(script) for script in scripts]
    endpoint = Scripted(lambda request: next(replies[number_of(request)]))
    engine = engine_for(endpoint)
    trials = engine.run(plan(len(scripts)))
    assert [(trial.status, trial.attempts, trial.empty_first) for trial in trials] == [
        (Status.ANSWERED, 2, True),
        (Status.EMPTY, 2, True),
        (Status.EMPTY, 1, False),
        (Status.EMPTY, 1, False),
    ]
    assert trials[0].error is None
    logged = records(engine.store.directory, "trial")
    again = [record["key"] for record in logged if "asked_again_after_empty" in record["flags"]]
    assert sorted(again) == sorted(trial.key for trial in trials[:2])


def test_a_killed_session_does_not_ask_an_empty_answer_a_third_time() -> None:
    """What previous processes logged counts: the second empty answer ends the trial."""
    (planned,) = plan(1)
    resumed = Conversation("k", planned, {})
    resumed.resume([attempt_record("k", Attempt(number=1, status=Status.EMPTY))])
    assert not resumed.over()
    resumed.apply(Attempt(number=2, status=Status.EMPTY))
    assert resumed.over()
    assert resumed.to_trial("live").empty_first


def test_what_a_turn_comes_to_decides_on_the_next(engine_for: EngineMaker) -> None:
    """A refusal is answered by the next turn; a turn without a text ends the trial, and the replies
    before are kept.
    """
    replies = iter([Reply(text="I cannot.", status=Status.REFUSED), Reply(text="Well then.")])
    trial = engine_for(Scripted(lambda _: next(replies))).run(
        [PlannedTrial(cell=cell(turns=("a", "b")))]
    )[0]
    assert (trial.status, trial.replies) == (Status.ANSWERED, ("I cannot.", "Well then."))
    silence = Reply(text=None, status=Status.EMPTY)
    replies = iter([Reply(text="Yes."), silence, silence])
    endpoint = Scripted(lambda _: next(replies), name="silent")
    trial = engine_for(endpoint).run([PlannedTrial(cell=cell(turns=("a", "b", "c")))])[0]
    assert (trial.status, trial.replies, trial.reply) == (Status.EMPTY, ("Yes.",), None)


def test_an_application_that_breaks_is_an_outcome(engine_for: EngineMaker) -> None:
    """Whatever it raises, also sys.exit(): the trial is an error, and the others are asked."""
    errors = [ValueError("broken"), SystemExit(3), KeyboardInterrupt(), TimeoutError("own")]

    def breaks(request: Request) -> Reply:
        if number_of(request) < len(errors):
            raise errors[number_of(request)]
        return polite(request)

    trials = engine_for(Scripted(breaks)).run(plan(6))
    assert [trial.status.value for trial in trials] == ["error"] * 4 + ["answered"] * 2
    assert all(
        type(error).__name__ in str(trial.error)
        for error, trial in zip(errors, trials, strict=False)
    )


def test_a_run_has_a_deadline(engine_for: EngineMaker) -> None:
    """After it nothing is sent: what was not asked is NOT_RUN, is not logged, and may be asked
    another time."""
    endpoint = Scripted(delay=0.1)
    engine = engine_for(endpoint, deadline=1.0, concurrency=2)
    trials = engine.run(plan(400))  # which would take twenty seconds
    statuses = [trial.status for trial in trials]
    assert statuses.count(Status.NOT_RUN) >= 350
    assert statuses.count(Status.ANSWERED) >= 1
    assert len(endpoint.requests) == len(records(engine.store.directory, "trial")) <= 50
    assert "deadline" in next(
        trial.error or "" for trial in trials if trial.status is Status.NOT_RUN
    )


# ------------------------------------------------------------ the engine's thread


def test_waiting_costs_no_processor_time(
    engine_for: EngineMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While an endpoint thinks, nothing spins: the loop looks for what has come some times a call,
    not all the time.
    """
    looks = 0

    class Counting(selectors.DefaultSelector):
        def select(self, timeout: float | None = None) -> Any:
            nonlocal looks
            looks += 1
            return super().select(timeout)

    monkeypatch.setattr(selectors, "DefaultSelector", Counting)
    engine_for(Scripted(delay=0.4)).run(plan(8))
    assert 8 < looks < 800


def test_closing_ends_endpoint_and_thread(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left behind, and closing twice does no harm. An endpoint that does not close is
    named, holds nobody up, and the engine's thread ends all the same."""

    class Clinging(Scripted):
        async def aclose(self) -> None:
            await asyncio.sleep(60)

    before = threading.active_count()
    endpoint = Scripted()
    engine = Engine(endpoint, store)
    engine.run(plan(2))
    engine.close()
    engine.close()
    assert endpoint.closed
    monkeypatch.setattr("pytest_fairness.engine.engine._CLOSING", 0.1)
    engine = Engine(Clinging(), store)
    engine.run(plan(3))
    with pytest.raises(EndpointError, match="'scripted' did not close"):
        engine.close()
    engine.close()
    assert threading.active_count() == before


def test_numbers_out_of_range_are_refused(store: RunStore) -> None:
    """A usage error that names the number, before anything starts."""
    for option, value in (
        ("concurrency", 0),
        ("max_attempts", 0),
        ("attempt_timeout", 0),
        ("deadline", -1),
    ):
        with pytest.raises(UsageError, match=option):
            Engine(Scripted(), store, **{option: value})  # type: ignore[arg-type]


# ------------------------------------------------------------ what is on disk


def test_the_log_alone_gives_the_results(engine_for: EngineMaker) -> None:
    """Everything that came back, and the cells it belongs to, can be read from the folder."""
    engine = engine_for(Scripted(system="x"), seed=3)
    planned = plan(
        12, context={"role": "nurse"}, attributes={"years": 4}, system="S", arm="raw", signal="name"
    )
    trials = engine.run(planned)
    engine.close()
    engine.store.close()
    assert read_trials(engine.store.directory) == {trial.key: trial for trial in trials}
    reader = RunReader.open(engine.store.directory)
    read = {record["key"]: record for record in reader.all_records()}
    assert [cell_of(read[trial.key]["cell"]) for trial in trials] == [one.cell for one in planned]
    (about,) = {record["endpoint"]["identity"] for record in read.values()}
    assert reader.engines[about]["endpoint"]["identity"] == engine.endpoint.identity()
    assert not unanswered(engine.store.directory)


def test_cells_that_share_a_trial_are_each_on_record(engine_for: EngineMaker) -> None:
    """Two cells with one text are asked once, and the log tells of both."""
    endpoint = Scripted()
    engine = engine_for(endpoint)
    twin = cell(id="twin", groups={"race_ethnicity": "black"})
    engine.run([PlannedTrial(cell=cell()), PlannedTrial(cell=twin)])
    engine.run([PlannedTrial(cell=twin)])
    assert len(endpoint.requests) == 1
    found = RunReader.open(engine.store.directory).all_records()
    assert [cell_of(record["cell"]) for record in found] == [cell(), twin]


def test_the_log_names_the_price_table(engine_for: EngineMaker) -> None:
    """What a run was charged can be recomputed from its log, for which the table has to be known,
    if it counts. Trials of a simulated endpoint are marked, cost nothing, and need no price under a
    cap."""
    engine = engine_for(Scripted(price=Price(input_per_million=1.0, output_per_million=2.0)))
    engine.run(plan(1))
    (introduced,) = records(engine.store.directory, "engine")
    table = files("pytest_fairness.endpoints").joinpath("prices.yaml").read_bytes()
    assert introduced["price_table"]["sha256"] == hashlib.sha256(table).hexdigest()
    assert introduced["endpoint"]["price"]["output_per_million"] == 2.0
    (trial,) = engine_for(Scripted(simulated=True, name="free"), max_cost=0.0).run(plan(1))
    assert (trial.source, trial.cost) == ("simulated", 0.0)
    assert records(engine.store.directory, "engine")[1]["price_table"] is None


# ------------------------------------------------------------ signals, and the end of the process that one works for

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@posix
def test_a_signal_interrupts_the_asking(engine_for: EngineMaker) -> None:
    """As Ctrl-C does: calls under way end with their answers, the rest is not asked, and the log is
    whole.
    """
    endpoint = Scripted(delay=0.2)
    engine = engine_for(endpoint, concurrency=4)

    def hang_up_once_four_are_asked() -> None:
        while len(endpoint.requests) < 4:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGHUP)

    # Under nohup our own process ignores hang-ups, and so, rightly, would the engine.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        threading.Thread(target=hang_up_once_four_are_asked).start()
        with pytest.raises(KeyboardInterrupt, match="SIGHUP"):
            engine.run(plan(200))
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)
    assert 4 <= len(endpoint.requests) <= 12
    assert len(records(engine.store.directory, "trial")) == len(endpoint.requests)


@posix
def test_handlers_of_others_are_left_alone() -> None:
    """A project that handles SIGTERM itself goes on doing so; other threads cannot set handlers,
    and need not.
    """
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: seen.append(number))
    try:
        with ended_as_by_ctrl_c():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]

    def in_a_thread() -> None:
        with ended_as_by_ctrl_c():
            seen.append(0)

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    assert seen == [signal.SIGTERM, 0]


def test_a_halted_engine_sends_nothing_more(engine_for: EngineMaker) -> None:
    """From another thread, while it asks: what is under way is logged, the caller gets the reason,
    now and later.
    """
    endpoint = Scripted(delay=0.1)
    engine = engine_for(endpoint, concurrency=4)
    threading.Timer(0.15, engine.halt, ("nobody is left",)).start()
    with pytest.raises(EndpointError, match="nobody is left"):
        engine.run(plan(200))
    requested = len(endpoint.requests)
    assert requested <= 12
    assert len(records(engine.store.directory, "trial")) == requested
    with pytest.raises(EndpointError, match="nobody is left"):
        engine.run(plan(200))
    assert len(endpoint.requests) == requested


def test_a_watch_calls_when_its_session_has_ended_and_no_more_when_it_is_stopped() -> None:
    """Though the parent lives; and where the parent is another process than it was."""
    ended, calls = threading.Event(), threading.Semaphore(0)
    watch = ParentWatch(os.getppid(), calls.release, ended=ended.is_set, every=0.01)
    assert not calls.acquire(timeout=0.1)
    ended.set()
    assert calls.acquire(timeout=5)
    watch.stop()
    watch.stop()
    while calls.acquire(blocking=False):
        pass
    assert not calls.acquire(timeout=0.05)
    orphaned = ParentWatch(-1, calls.release, every=0.01)
    assert calls.acquire(timeout=5)
    orphaned.stop()
