"""The engine: every planned trial asked once, in a fresh conversation, and logged before anybody reads it."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import resource
import sys
import threading
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Price, Reply, Request, Wire
from pytest_fairness.engine.engine import Engine
from pytest_fairness.errors import EndpointError, StoreError, UsageError
from pytest_fairness.model import Message, Status, Usage
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.keys import content_key
from pytest_fairness.runs.reader import RunReader, read_trials
from pytest_fairness.runs.records import cell_of, trial_of
from pytest_fairness.runs.store import RunStore, open_run
from tests.support.doubles import Scripted, cell, failing, groups_of, plan, polite
from tests.support.runs import EngineMaker, records, unanswered

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


# ------------------------------------------------------------ what comes back


def test_trials_come_back_in_the_order_of_the_plan(engine_for: EngineMaker) -> None:
    """However they were asked, the answers stand beside their questions."""
    endpoint = Scripted()
    planned = plan(40)
    trials = engine_for(endpoint).run(planned)
    assert [trial.reply for trial in trials] == [f"Answer to: {one.cell.prompt}" for one in planned]
    assert {(trial.status, trial.attempts, trial.source, trial.model) for trial in trials} == {
        (Status.ANSWERED, 1, "live", "scripted-1")
    }
    assert len(endpoint.asked) == 40


def test_what_was_asked_is_not_asked_again(engine_for: EngineMaker) -> None:
    """Neither in the same call, nor in a later one, nor by another engine on the same endpoint."""
    endpoint = Scripted()
    engine = engine_for(endpoint)
    first = engine.run([*plan(8), *plan(8)])
    assert first[:8] == first[8:]
    assert engine.run(plan(8)) == first[:8]
    assert engine_for(endpoint).run(plan(8)) == first[:8]
    assert len(endpoint.asked) == 8


def test_repetitions_are_trials_of_their_own(engine_for: EngineMaker) -> None:
    """Also at temperature 0, a repetition is asked, not copied."""
    endpoint = Scripted(temperature=0.0)
    trials = engine_for(endpoint).run([PlannedTrial(cell=cell(), repetition=number) for number in range(3)])
    assert [trial.repetition for trial in trials] == [0, 1, 2]
    assert len(endpoint.asked) == 3


def test_the_tests_parameters_lie_over_the_defaults(engine_for: EngineMaker) -> None:
    """Both what was asked for and what was sent are on record, and what was sent is in the key."""
    endpoint = Scripted(temperature=1.0, max_tokens=9)
    engine = engine_for(endpoint)
    planned = PlannedTrial(cell=cell(), parameters={"temperature": 0.0})
    trial = engine.run([planned])[0]
    assert endpoint.asked[0].parameters == {"temperature": 0.0, "max_tokens": 9}
    assert records(engine.store.directory, "trial")[0]["parameters"] == {
        "asked": {"temperature": 0.0},
        "sent": {"temperature": 0.0, "max_tokens": 9},
    }
    assert trial.key == engine.key_of(planned)
    assert trial.key == content_key(endpoint.identity(), {"temperature": 0.0, "max_tokens": 9}, cell(), 0)


def test_every_trial_is_a_fresh_conversation_with_its_own_turns(engine_for: EngineMaker) -> None:
    """Turn by turn: the system prompt, then each turn with the replies to those before; nothing of other
    trials."""
    endpoint = Scripted(lambda request: Reply(text=f"reply {len(request.messages) // 2}", usage=Usage(output_tokens=2)))
    asked = cell(turns=("one", "two", "three"), system="Be fair.")
    trial = engine_for(endpoint).run([PlannedTrial(cell=asked)])[0]
    assert trial.replies == ("reply 1", "reply 2", "reply 3")
    assert trial.reply == "reply 3"
    assert (trial.attempts, trial.usage) == (3, Usage(input_tokens=None, output_tokens=6))
    assert endpoint.asked[2].messages == (
        Message("system", "Be fair."),
        Message("user", "one"),
        Message("assistant", "reply 1"),
        Message("user", "two"),
        Message("assistant", "reply 2"),
        Message("user", "three"),
    )
    assert [len(request.messages) for request in endpoint.asked] == [2, 4, 6]


def test_signals_reach_the_endpoint_beside_the_messages(engine_for: EngineMaker) -> None:
    """The simulated endpoint reads them; they are no part of what is sent."""
    endpoint = Scripted()
    signals = {"Lakisha": {"race_ethnicity": "black"}}
    engine_for(endpoint).run([PlannedTrial(cell=cell(signals=signals))])
    assert endpoint.asked[0].signals == signals


# ------------------------------------------------------------ refusals and other outcomes


@pytest.mark.parametrize(
    ("reply", "status", "text"),
    [
        (Reply(text="I cannot help.", status=Status.REFUSED), Status.REFUSED, "I cannot help."),
        (Reply(text=None, status=Status.REFUSED, finish_reason="content_filter"), Status.REFUSED, None),
        (Reply(text=None, status=Status.EMPTY, error="no choices"), Status.EMPTY, None),
        (Reply(text=None, status=Status.MALFORMED, error="not JSON"), Status.MALFORMED, None),
        (Reply(text=None, status=Status.ERROR, error="error in a 200"), Status.ERROR, None),
        (Reply(text=3, status=Status.ANSWERED), Status.MALFORMED, None),  # type: ignore[arg-type]
        (Reply(text="", status=Status.ANSWERED), Status.ANSWERED, ""),
    ],
)
def test_a_complete_reply_is_an_outcome_whatever_it_is(
    engine_for: EngineMaker, reply: Reply, status: Status, text: str | None
) -> None:
    """It was paid for: asked once, its class and the provider's own word kept, and no text made up for it."""
    endpoint = Scripted(lambda request: reply)
    trial = engine_for(endpoint).run(plan(1))[0]
    assert (trial.status, trial.reply, trial.finish_reason) == (status, text, reply.finish_reason)
    assert len(endpoint.asked) == 1


def test_a_refusal_in_words_is_marked(engine_for: EngineMaker) -> None:
    """What the given function calls a refusal is REFUSED, with its text; the attempt keeps the provider's
    view."""
    endpoint = Scripted(lambda request: Reply(text="Sorry, no." if "0" in request.messages[-1].content else "Yes."))
    engine = engine_for(endpoint, is_refusal=lambda text: text.startswith("Sorry"))
    trials = engine.run(plan(2))
    assert [(trial.status, trial.reply) for trial in trials] == [
        (Status.REFUSED, "Sorry, no."),
        (Status.ANSWERED, "Yes."),
    ]
    assert {record["status"] for record in records(engine.store.directory, "attempt")} == {"answered"}


def test_a_refusal_in_the_middle_is_answered_by_the_next_turn(engine_for: EngineMaker) -> None:
    """Escalation goes on after a refusal; the last turn decides what the trial is."""
    replies = iter([Reply(text="I cannot.", status=Status.REFUSED), Reply(text="Well then.")])
    trial = engine_for(Scripted(lambda _: next(replies))).run([PlannedTrial(cell=cell(turns=("a", "b")))])[0]
    assert (trial.status, trial.replies) == (Status.ANSWERED, ("I cannot.", "Well then."))


def test_a_turn_without_text_ends_the_conversation(engine_for: EngineMaker) -> None:
    """No reply is made up so that the conversation could go on; the replies before it are kept."""
    replies = iter([Reply(text="Yes."), Reply(text=None, status=Status.EMPTY)])
    trial = engine_for(Scripted(lambda _: next(replies))).run([PlannedTrial(cell=cell(turns=("a", "b", "c")))])[0]
    assert (trial.status, trial.replies, trial.reply) == (Status.EMPTY, ("Yes.",), None)


# ------------------------------------------------------------ retries


@pytest.mark.parametrize("evidence", [Evidence.NOT_SENT, Evidence.THROTTLED])
def test_what_cost_nothing_is_tried_again(engine_for: EngineMaker, evidence: Evidence) -> None:
    """Each attempt has its number and its record, and the wait is at least what the server asked for."""
    endpoint = Scripted(failing(evidence, evidence, retry_after=0.1))
    engine = engine_for(endpoint)
    started = time.monotonic()
    trial = engine.run(plan(1))[0]
    assert time.monotonic() - started >= 0.2
    assert (trial.status, trial.attempts) == (Status.ANSWERED, 3)
    attempts = records(engine.store.directory, "attempt")
    assert [(record["attempt"], record["evidence"]) for record in attempts] == [
        (1, evidence),
        (2, evidence),
        (3, None),
    ]
    assert [record["attempt"] for record in records(engine.store.directory, "sent")] == [1, 2, 3]


def test_after_enough_attempts_it_is_an_error(engine_for: EngineMaker) -> None:
    """The number of attempts is the caller's, and a trial that never got through says why."""
    endpoint = Scripted(failing(*[Evidence.NOT_SENT] * 9, retry_after=0))
    trial = engine_for(endpoint, max_attempts=2).run(plan(1))[0]
    assert (trial.status, trial.error) == (Status.ERROR, "failed with not_sent (after 2 attempts)")
    assert len(endpoint.asked) == 2


@pytest.mark.parametrize(
    ("evidence", "status"),
    [
        (Evidence.SERVER, Status.ERROR),
        (Evidence.NO_RESPONSE, Status.UNKNOWN),
        (Evidence.PARTIAL, Status.MALFORMED),
        (Evidence.REJECTED, Status.ERROR),
    ],
)
def test_what_may_have_cost_something_is_not_tried_again(
    engine_for: EngineMaker, evidence: Evidence, status: Status
) -> None:
    """One request, one outcome: trying again could pay twice, and would shift the sample."""
    endpoint = Scripted(failing(evidence))
    engine = engine_for(endpoint)
    trials = engine.run(plan(1))
    assert (trials[0].status, trials[0].reply) == (status, None)
    assert engine.run(plan(1)) == trials
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("wish", [float("nan"), -1, float("inf"), "soon", None], ids=str)
def test_a_pause_that_makes_no_sense_is_ignored(engine_for: EngineMaker, wish: Any) -> None:
    """A server cannot make us wait for ever, nor crash us, with what it puts into Retry-After."""
    trial = engine_for(Scripted(failing(Evidence.THROTTLED, retry_after=wish))).run(plan(1))[0]
    assert (trial.status, trial.attempts) == (Status.ANSWERED, 2)


def test_a_pause_that_is_too_long_is_not_waited_for(engine_for: EngineMaker) -> None:
    """An hour is more than any test should sleep: the trial ends with an error that tells of the wish."""
    trial = engine_for(Scripted(failing(Evidence.THROTTLED, retry_after=3600))).run(plan(1))[0]
    assert trial.status is Status.ERROR
    assert "asks for a pause of 3600 s; the longest allowed is 60 s" in (trial.error or "")


def test_one_throttled_trial_slows_all(engine_for: EngineMaker) -> None:
    """While the server has asked for a pause, nobody sends: one trial is refused, not the 19 behind it."""
    times: list[float] = []
    answer = failing(Evidence.THROTTLED, retry_after=0.3)

    def first_only(request: Request) -> Reply:
        times.append(time.monotonic())
        return answer(request) if len(times) == 1 else polite(request)

    engine_for(Scripted(first_only), concurrency=4).run(plan(20))
    assert times[4] - times[0] >= 0.3  # four were under way


def test_a_refused_key_stops_the_endpoint(engine_for: EngineMaker) -> None:
    """After the first 401 nothing more is sent, now or later in the session; nothing is recorded as an
    outcome."""

    def refuse(request: Request) -> Reply:
        raise AttemptError("401 Unauthorized: key [redacted]", evidence=Evidence.AUTH)

    endpoint = Scripted(refuse, delay=0.001)
    engine = engine_for(endpoint, concurrency=1)
    for _ in range(2):
        with pytest.raises(EndpointError, match=r"401 Unauthorized.*mend its address, key, quota or model name"):
            engine.run(plan(20))
    assert len(endpoint.asked) == 1
    assert not records(engine.store.directory, "trial")


def test_with_a_mended_key_the_trials_are_asked(root: Path) -> None:
    """Another session on the same run asks what the refused key left unasked."""
    answer = failing(Evidence.AUTH)
    with (
        open_run(root, "t") as store,
        Engine(Scripted(answer), store) as engine,
        pytest.raises(EndpointError),
    ):
        engine.run(plan(1))
    with RunStore.open(store.directory) as again, Engine(Scripted(), again) as engine:
        assert engine.run(plan(1))[0].status is Status.ANSWERED


# ------------------------------------------------------------ endpoints that misbehave


@pytest.mark.parametrize(
    "error", [ValueError("broken"), SystemExit(3), KeyboardInterrupt(), TimeoutError("own")], ids=repr
)
def test_an_application_that_breaks_is_an_outcome(engine_for: EngineMaker, error: BaseException) -> None:
    """Whatever it raises, also sys.exit(): the trial is an error, and the others are asked."""

    def breaks(request: Request) -> Reply:
        if "candidate 1" in request.messages[-1].content:
            raise error
        return polite(request)

    trials = engine_for(Scripted(breaks)).run(plan(4))
    assert [trial.status for trial in trials] == [
        Status.ANSWERED,
        Status.ERROR,
        Status.ANSWERED,
        Status.ANSWERED,
    ]
    assert type(error).__name__ in (trials[1].error or "")


def test_an_attempt_has_a_deadline(engine_for: EngineMaker) -> None:
    """An endpoint that never answers costs its deadline and no more; what was sent is unknown, and told
    so."""
    started = time.monotonic()
    trials = engine_for(Scripted(delay=30), attempt_timeout=0.2, concurrency=4).run(plan(4))
    assert time.monotonic() - started < 2
    assert {trial.status for trial in trials} == {Status.UNKNOWN}
    assert "no answer within 0.2 s" in (trials[0].error or "")


def test_a_run_has_a_deadline(engine_for: EngineMaker) -> None:
    """After it nothing is sent: what was not asked is NOT_RUN, is not logged, and may be asked another
    time."""
    endpoint = Scripted(delay=0.1)
    engine = engine_for(endpoint, deadline=0.35, concurrency=2)
    started = time.monotonic()
    trials = engine.run(plan(40))
    assert time.monotonic() - started < 1.5
    statuses = [trial.status for trial in trials]
    assert statuses.count(Status.NOT_RUN) >= 30
    assert statuses.count(Status.ANSWERED) >= 4
    assert len(endpoint.asked) == len(records(engine.store.directory, "trial")) <= 10
    assert "deadline" in next(trial.error or "" for trial in trials if trial.status is Status.NOT_RUN)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(prompt=ANY_TEXT.filter(bool), reply=ANY_TEXT)
def test_any_text_survives_the_whole_way(engine_for: EngineMaker, prompt: str, reply: str) -> None:
    """Prompt and reply, whatever characters they are made of, are in the log as they were."""
    endpoint = Scripted(lambda request: Reply(text=reply), name=f"{prompt}|{reply}")
    engine = engine_for(endpoint)
    trial = engine.run([PlannedTrial(cell=cell(turns=(prompt,)))])[0]
    engine.close()
    assert trial.reply == reply
    record = next(r for r in RunReader.open(engine.store.directory).all_records() if r["key"] == trial.key)
    assert (trial_of(record), record["messages"]) == (trial, [{"role": "user", "content": prompt}])


# ------------------------------------------------------------ how they are asked


def test_groups_are_asked_interleaved_and_the_order_is_logged(engine_for: EngineMaker) -> None:
    """A plan that lists group after group is not asked group after group."""
    planned = sorted(plan(80), key=lambda one: one.cell.groups["race_ethnicity"])
    endpoint = Scripted()
    engine = engine_for(endpoint, concurrency=1, seed=5)
    engine.run(planned)
    by_prompt = {one.cell.prompt: one.cell.groups["race_ethnicity"] for one in planned}
    asked = [by_prompt[request.messages[-1].content] for request in endpoint.asked]
    assert max(len(list(group)) for _, group in itertools.groupby(asked)) <= 2
    logged = records(engine.store.directory, "trial")
    assert [record["order"] for record in logged] == list(range(80))
    assert {record["seed"] for record in logged} == {5}
    assert groups_of(planned) != asked


def test_no_more_than_the_allowed_number_is_under_way(engine_for: EngineMaker) -> None:
    """Concurrency is used to the full, and not beyond."""
    endpoint = Scripted(delay=0.01)
    engine_for(endpoint, concurrency=5).run(plan(60))
    assert endpoint.most == 5


def test_waiting_costs_no_processor_time(engine_for: EngineMaker) -> None:
    """While an endpoint thinks, nothing spins."""
    engine = engine_for(Scripted(delay=0.6))
    before = time.process_time()
    engine.run(plan(8))
    assert time.process_time() - before < 0.2


def test_the_engine_works_inside_a_running_event_loop(engine_for: EngineMaker) -> None:
    """An async test that asks does not disturb its own loop, nor is the engine disturbed by it."""
    engine = engine_for(Scripted(delay=0.001))

    async def a_test() -> list[Status]:
        return [trial.status for trial in engine.run(plan(3))]

    assert asyncio.run(a_test()) == [Status.ANSWERED] * 3


def test_closing_ends_endpoint_and_thread(store: RunStore) -> None:
    """Nothing is left behind, and closing twice does no harm."""
    before = threading.active_count()
    endpoint = Scripted()
    engine = Engine(endpoint, store)
    engine.run(plan(2))
    engine.close()
    engine.close()
    assert endpoint.closed
    assert threading.active_count() == before


def test_an_endpoint_that_does_not_close_is_told_of(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds nobody up, and the engine's thread ends all the same."""

    class Clinging(Scripted):
        async def aclose(self) -> None:
            await asyncio.sleep(60)

    monkeypatch.setattr("pytest_fairness.engine.engine._CLOSING", 0.1)
    engine = Engine(Clinging(), store)
    engine.run(plan(1))
    with pytest.raises(EndpointError, match="'scripted' did not close"):
        engine.close()
    engine.close()
    assert "pytest-fairness-asking" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize(
    "options", [{"concurrency": 0}, {"max_attempts": 0}, {"attempt_timeout": 0}, {"deadline": -1}], ids=str
)
def test_numbers_out_of_range_are_refused(store: RunStore, options: dict[str, Any]) -> None:
    """A usage error that names the number, before anything starts."""
    with pytest.raises(UsageError, match=next(iter(options))):
        Engine(Scripted(), store, **options)


# ------------------------------------------------------------ what is on disk


def test_the_log_alone_gives_the_results(engine_for: EngineMaker) -> None:
    """Everything that came back, and the cells it belongs to, can be read from the folder."""
    engine = engine_for(Scripted(system="x"), seed=3)
    planned = plan(12, context={"role": "nurse"}, attributes={"years": 4}, system="S", arm="raw", signal="name")
    trials = engine.run(planned)
    engine.close()
    engine.store.close()
    assert read_trials(engine.store.directory) == {trial.key: trial for trial in trials}
    read = {record["key"]: record for record in RunReader.open(engine.store.directory).all_records()}
    assert [cell_of(read[trial.key]["cell"]) for trial in trials] == [one.cell for one in planned]
    reader = RunReader.open(engine.store.directory)
    assert (
        reader.engines[next(iter(read.values()))["endpoint"]["identity"]]["endpoint"]["identity"]
        == engine.endpoint.identity()
    )
    assert not unanswered(engine.store.directory)


def test_cells_that_share_a_trial_are_each_on_record(engine_for: EngineMaker) -> None:
    """Two cells with one text are asked once, and the log tells of both."""
    endpoint = Scripted()
    engine = engine_for(endpoint)
    twin = cell(id="twin", groups={"race_ethnicity": "black"})
    engine.run([PlannedTrial(cell=cell()), PlannedTrial(cell=twin)])
    engine.run([PlannedTrial(cell=twin)])
    assert len(endpoint.asked) == 1
    assert [cell_of(record["cell"]) for record in RunReader.open(engine.store.directory).all_records()] == [
        cell(),
        twin,
    ]


def test_the_request_is_on_record_before_it_leaves(engine_for: EngineMaker) -> None:
    """At the moment of asking, the log has the intent; that is what keeps a crash from paying twice."""
    seen: list[bool] = []

    def look(request: Request) -> Reply:
        sent = records(engine.store.directory, "sent")
        seen.append(request.key in [record["key"] for record in sent])
        return polite(request)

    engine = engine_for(Scripted(look))
    engine.run(plan(4))
    assert seen == [True] * 4


def test_the_bytes_of_the_wire_are_on_record(engine_for: EngineMaker) -> None:
    """Of failures too; bytes that are no UTF-8 come back exactly."""
    body = b'{"caf\xe9": "\xff"}'.decode("utf-8", "surrogateescape")
    wire = Wire(
        url="http://localhost/v1",
        request_body="{}",
        request_headers={"content-type": "application/json"},
        status_code=500,
        response_headers={"x-request-id": "7"},
        response_body=body,
        truncated=False,
    )

    def fail(request: Request) -> Reply:
        raise AttemptError("500", evidence=Evidence.SERVER, wire=wire)

    engine = engine_for(Scripted(fail))
    engine.run(plan(1))
    logged = records(engine.store.directory, "attempt")[0]["wire"]
    assert logged["response_body"].encode("utf-8", "surrogateescape") == b'{"caf\xe9": "\xff"}'
    assert Wire(**logged) == wire


def test_times_do_not_depend_on_the_wall_clock(engine_for: EngineMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that jumps back a day in the middle gives no negative duration."""
    clock = itertools.count(10**6, -86400)
    monkeypatch.setattr(time, "time", lambda: next(clock))
    trials = engine_for(Scripted(delay=0.01)).run(plan(4))
    assert all(0.01 <= (trial.seconds or 0) < 5 for trial in trials)


def test_a_simulated_endpoint_says_so(engine_for: EngineMaker) -> None:
    """Its trials are marked, cost nothing, and need no price under a cap."""
    trial = engine_for(Scripted(simulated=True), max_cost=0.0).run(plan(1))[0]
    assert (trial.source, trial.cost) == ("simulated", 0.0)


def test_when_the_log_fails_nothing_more_is_sent(engine_for: EngineMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be recorded must not be paid for; and the error says what to mend."""
    endpoint = Scripted(delay=0.01)
    engine = engine_for(endpoint, concurrency=4)
    append = RunStore.append
    count = itertools.count()

    def full(self: RunStore, record: dict[str, Any]) -> None:
        if next(count) > 30:
            raise StoreError("the disk is full: free some space")
        append(self, record)

    monkeypatch.setattr(RunStore, "append", full)
    with pytest.raises(StoreError, match="free some space"):
        engine.run(plan(400))
    assert len(endpoint.asked) < 20


def test_memory_does_not_grow_with_what_was_asked(root: Path) -> None:
    """Long replies are on the disk, not in the engine: 1,000 replies of 40 kB leave far less than their 40 MB."""
    endpoint = Scripted(lambda request: Reply(text="x" * 40_000), simulated=True)
    endpoint.asked = type("Nothing", (list,), {"append": lambda self, item: None})()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open_run(root, "t") as store, Engine(endpoint, store) as engine:
        for start in range(0, 1000, 50):
            planned = [PlannedTrial(cell=cell(number)) for number in range(start, start + 50)]
            assert len(engine.run(planned)) == 50
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown / (1024 if sys.platform == "linux" else 1024**2) < 20


# ------------------------------------------------------------ what the log says of prices


def test_the_log_names_the_price_table(engine_for: EngineMaker) -> None:
    """What a run was charged can be recomputed from its log, for which the table has to be known, if it counts."""
    engine = engine_for(Scripted(price=Price(input_per_million=1.0, output_per_million=2.0)))
    engine.run(plan(1))
    (introduced,) = records(engine.store.directory, "engine")
    table = files("pytest_fairness.endpoints").joinpath("prices.yaml").read_bytes()
    assert introduced["price_table"]["sha256"] == hashlib.sha256(table).hexdigest()
    assert introduced["endpoint"]["price"]["output_per_million"] == 2.0
    engine = engine_for(Scripted(simulated=True, name="free"))
    engine.run(plan(1))
    assert records(engine.store.directory, "engine")[1]["price_table"] is None
