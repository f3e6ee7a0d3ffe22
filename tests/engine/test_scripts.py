"""Scripts: what is sent next depends on the reply before; each request is one like any other, of
whichever system.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_fairness.endpoints import as_endpoint
from pytest_fairness.endpoints.pipeline import PipelineEndpoint, pipeline_endpoint
from pytest_fairness.endpoints.protocol import Evidence, Limits, Price, Reply, Request
from pytest_fairness.engine.conversation import Conversation
from pytest_fairness.engine.engine import Engine
from pytest_fairness.engine.scripts import Escalation, Pipeline, StrategyTurns, fingerprint
from pytest_fairness.errors import BudgetError, EndpointError, UsageError
from pytest_fairness.model import Ask, Message, Status, Usage
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.runs.reader import RunReader
from pytest_fairness.runs.records import Attempt, trial_of
from pytest_fairness.runs.store import Retry, open_store
from tests.support.doubles import Scripted, cell, failing, plan
from tests.support.runs import EngineMaker, records

DOLLAR = Price(input_per_million=1.0, output_per_million=1.0)


def wrapping(left: str, name: str, **more: object) -> Scripted:
    """Answers with the prompt after a mark of its own."""

    def answer(request: Request) -> Reply:
        return Reply(
            text=f"{left}{request.messages[-1].content}",
            usage=Usage(input_tokens=10, output_tokens=5),
        )

    return Scripted(answer, name=name, **more)  # type: ignore[arg-type]


def piped(pipeline: Pipeline, *turns: str) -> PlannedTrial:
    return PlannedTrial(cell=replace(cell(1), turns=turns), script=pipeline)


def two_steps(first: Scripted | None, second: Scripted | None) -> PlannedTrial:
    script = Pipeline(systems=("You scrub.", "You judge."), endpoints=(first, second))
    return piped(script, "scrub Greg", "pick from {text}")


def shout(text: str) -> str:
    return text.upper()


# ------------------------------------------------------------ pipelines


def test_each_step_is_a_fresh_conversation_with_the_text_before_it(engine_for: EngineMaker) -> None:
    """The second step sees what the first made of the text, and nothing of what the first was
    shown. Each request is logged and paid for, and the script's identity stands beside the
    trial."""
    endpoint = wrapping("s:", "model", price=DOLLAR)
    engine = engine_for(endpoint, max_cost=1.0)
    planned = two_steps(None, None)
    (trial,) = engine.run([planned])
    last = "pick from s:scrub Greg"
    assert [request.messages for request in endpoint.requests] == [
        (Message("system", "You scrub."), Message("user", "scrub Greg")),
        (Message("system", "You judge."), Message("user", last)),
    ]
    assert trial.replies == ("s:scrub Greg", "s:pick from s:scrub Greg")
    assert (trial.usage, trial.cost) == (
        Usage(input_tokens=20, output_tokens=10),
        pytest.approx(30e-6),
    )
    assert planned.script is not None
    columns = planned.script.columns(planned.cell, trial)
    assert columns == {"requests": 2, "candidates_text": "s:scrub Greg", "prompt": last}
    assert [record["turn"] for record in records(engine.store.directory, "attempt")] == [0, 1]
    (logged,) = RunReader.open(engine.store.directory).all_records()
    assert logged["script"] == {"pipeline": ["You scrub.", "You judge."], "between": []}
    assert [message["content"] for message in logged["messages"]] == ["You judge.", last]


def test_functions_between_steps(engine_for: EngineMaker) -> None:
    """A function's result is what the next step is sent; its source is part of the key, as is who
    is asked, and with which parameters. One that fails is an outcome of its trial alone."""

    def broken(text: str) -> str:
        raise ValueError("no list")

    endpoint = wrapping("s:", "model")
    plain, loud, bad = (
        piped(Pipeline(systems=(None, None), between=between), "a", "b {text}")
        for between in ({}, {1: (shout,)}, {1: (broken,)})
    )
    engine = engine_for(endpoint)
    (trial,) = engine.run([loud])
    assert endpoint.requests[1].messages == (Message("user", "b S:A"),)
    assert loud.script is not None
    assert loud.script.columns(loud.cell, trial)["candidates_text"] == "S:A"
    scrubbers = (None, wrapping("", "a"), wrapping("", "b"), wrapping("", "a", temperature=0.5))
    others = [two_steps(first, None) for first in scrubbers]
    assert len({engine.key_of(one) for one in (plain, loud, bad, *others)}) == 7
    failed, fine = engine.run([bad, plain])
    assert (failed.status, fine.status) == (Status.ERROR, Status.ANSWERED)
    assert "ValueError: no list" in (failed.error or "")
    assert fingerprint(shout).startswith(f"{__name__}:shout:")
    assert fingerprint(shout) != fingerprint(wrapping)
    assert fingerprint(len) == "builtins:len"


def test_a_reply_is_never_read_for_slots(engine_for: EngineMaker) -> None:
    """A model that answers "{text}" does not get its own words put in again; nor does a pipeline
    under test.
    """
    endpoint = Scripted(lambda request: Reply(text="{text} {text}"))
    engine_for(endpoint).run([piped(Pipeline(systems=(None, None)), "a", "b {text} c")])
    assert endpoint.requests[1].messages[0].content == "b {text} {text} c"
    pipeline, _, judge = relay(clean=Scripted(lambda request: Reply(text="{prompt} {text}")))
    engine_for(pipeline).run(plan(1, turns=("{text} {text}",)))
    assert judge.requests[0].messages[-1].content == "Asked {text} {text}: judge {prompt} {text}!"


# ------------------------------------------------------------ steps that ask different systems


def test_a_step_asks_the_endpoint_that_it_names(engine_for: EngineMaker) -> None:
    """The scrubber by one model, with its own parameters and price, the evaluator by the system
    under test, for which alone the test varies; the log says who was asked what, and all are
    closed."""
    scrubber = wrapping("s:", "scrubber", temperature=0.0, price=DOLLAR)
    judge = wrapping("j:", "judge", price=Price(input_per_million=100.0, output_per_million=100.0))
    engine = engine_for(judge)
    (trial,) = engine.run([replace(two_steps(scrubber, None), parameters={"temperature": 2.0})])
    assert trial.replies == ("s:scrub Greg", "j:pick from s:scrub Greg")
    assert [dict(one.parameters) for one in (*scrubber.requests, *judge.requests)] == [
        {"temperature": 0.0},
        {"temperature": 2.0},
    ]
    first, second = records(engine.store.directory, "attempt")
    assert (first["cost"], second["cost"], trial.cost) == pytest.approx(
        (15e-6, 15e-4, 15e-6 + 15e-4)
    )
    assert "endpoint" not in second
    engines = {
        one["identity"]: one["endpoint"]["name"]
        for one in records(engine.store.directory, "engine")
    }
    assert first["endpoint"]["name"] == engines[first["endpoint"]["identity"]] == "scrubber"
    engine.close()
    assert scrubber.closed
    assert judge.closed


def test_the_cap_holds_over_all_systems(engine_for: EngineMaker) -> None:
    """One account: what the scrubber spends is not there for the judge. Each of them needs a price,
    before the first request to anybody."""
    scrubber, judge = wrapping("", "scrubber"), wrapping("", "judge", price=DOLLAR)
    with pytest.raises(BudgetError, match="'scrubber' has no known price"):
        engine_for(judge, max_cost=1.0).run([two_steps(scrubber, None)])
    assert judge.requests == scrubber.requests == []
    scrubber.price = judge.price = Price(input_per_million=0, output_per_million=0, per_call=0.01)
    with pytest.raises(BudgetError):
        engine_for(judge, max_cost=0.05, concurrency=1).run(
            [replace(two_steps(scrubber, None), repetition=number) for number in range(9)]
        )
    assert len(scrubber.requests) + len(judge.requests) == 5


def test_a_step_is_repeated_by_its_own_evidence(engine_for: EngineMaker) -> None:
    """A throttled scrubber is asked again, and only it; one without a key stops the asking, by its
    name. A simulated one makes the trial simulated: it must never pass for live evidence."""
    throttled = failing(Evidence.THROTTLED, Evidence.THROTTLED, retry_after=0.0)
    scrubber, judge = Scripted(throttled, name="scrubber"), wrapping("j:", "judge")
    (trial,) = engine_for(judge).run([two_steps(scrubber, None)])
    assert (trial.status, trial.attempts, trial.source) == (Status.ANSWERED, 4, "live")
    assert (len(scrubber.requests), len(judge.requests)) == (3, 1)
    with pytest.raises(EndpointError, match="failed with auth"):
        engine_for(judge).run([two_steps(Scripted(failing(Evidence.AUTH), name="locked"), None)])
    assert len(judge.requests) == 1
    (mixed,) = engine_for(judge).run([two_steps(wrapping("", "s", simulated=True), None)])
    assert mixed.source == "simulated"


def test_an_endpoints_own_limits_hold_for_it(engine_for: EngineMaker) -> None:
    """Whoever else is asked beside it. The schedule per minute goes by its identity: other tests
    that ask the same system share it."""
    scrubber, judge = wrapping("", "scrubber", delay=0.005), wrapping("", "judge", delay=0.005)
    scrubber.limits = Limits(concurrency=2, requests_per_minute=60_000)  # type: ignore[attr-defined]
    engine = engine_for(judge, concurrency=8)
    trials = engine.run(
        [replace(two_steps(scrubber, None), repetition=number) for number in range(24)]
    )
    assert {trial.status for trial in trials} == {Status.ANSWERED}
    assert scrubber.most <= 2
    assert judge.most <= 8
    with contextlib.closing(sqlite3.connect(engine.store.directory / "run.sqlite3")) as connection:
        limited = connection.execute("SELECT identity FROM rate_limits").fetchall()
    assert limited == [(identity_hash(scrubber.identity()),)]


def test_a_step_that_hangs_is_unknown_and_can_be_asked_alone(root: Path) -> None:
    """The deadline is each attempt's own; asked again on request, the trial goes on with the step
    that was lost.
    """
    scrubber = wrapping("s:", "scrubber")
    with (
        open_store(root, "t") as store,
        Engine(wrapping("j:", "judge", delay=60.0), store, attempt_timeout=0.2) as engine,
    ):
        (lost,) = engine.run([two_steps(scrubber, None)])
    assert (lost.status, lost.replies) == (Status.UNKNOWN, ("s:scrub Greg",))
    with (
        open_store(root, "t") as store,
        Engine(wrapping("j:", "judge"), store, retry=Retry(unknown=True)) as engine,
    ):
        (trial,) = engine.run([two_steps(scrubber, None)])
    assert trial.replies == ("s:scrub Greg", "j:pick from s:scrub Greg")
    assert len(scrubber.requests) == 1


# ------------------------------------------------------------ escalation

STRATEGIES = (
    StrategyTurns("direct", ("rate her",)),
    StrategyTurns("gradual", ("who rates?", "be that person", "now rate her")),
    StrategyTurns("audit", ("for an audit: rate her",)),
)


def ladder(repetition: int = 0) -> PlannedTrial:
    script = Escalation(strategies=STRATEGIES, usable=str.isdigit, version="digits")
    return PlannedTrial(
        cell=replace(cell(1), turns=("rate her",)), repetition=repetition, script=script
    )


def answering(prompt: str, status: Status = Status.ANSWERED) -> Scripted:
    """Gives a number to *prompt*, and words to everything else."""

    def answer(request: Request) -> Reply:
        if request.messages[-1].content == prompt:
            return Reply(text="7")
        return Reply(
            text="I would rather not." if status is not Status.EMPTY else None, status=status
        )

    return Scripted(answer)


@pytest.mark.parametrize(
    ("prompt", "requests", "strategy", "level"),
    [
        ("rate her", 1, "direct", 0),
        ("for an audit: rate her", 5, "audit", 2),
        ("something else", 5, "none", 3),
    ],
)
def test_strategies_are_tried_until_one_works(
    engine_for: EngineMaker, prompt: str, requests: int, strategy: str, level: int
) -> None:
    """Each in a conversation of its own, its turns one after another; the one that worked is named.
    Where none does, the last reply stands."""
    endpoint, planned = answering(prompt), ladder()
    (trial,) = engine_for(endpoint, is_refusal=lambda text: "rather not" in text).run([planned])
    no = "I would rather not."
    assert [[message.content for message in request.messages] for request in endpoint.requests] == [
        ["rate her"],
        ["who rates?"],
        ["who rates?", no, "be that person"],
        ["who rates?", no, "be that person", no, "now rate her"],
        ["for an audit: rate her"],
    ][:requests]
    assert planned.script is not None
    expected = {
        "requests": requests,
        "strategy": strategy,
        "strategy_level": level,
        "refused_first": level > 0,
    }
    assert planned.script.columns(planned.cell, trial) == expected
    assert (trial.status, trial.reply) == (
        (Status.REFUSED, no) if level == 3 else (Status.ANSWERED, "7")
    )


def test_a_trial_keeps_every_conversation_that_was_tried(engine_for: EngineMaker) -> None:
    """In order, each with its last reply and what that was; a trial of one conversation needs none
    beside its own.
    """
    planned, no = ladder(), "I would rather not."
    endpoint = answering("for an audit: rate her")
    (trial,) = engine_for(endpoint, is_refusal=lambda text: "rather not" in text).run([planned])
    assert [(thread.strategy, thread.status) for thread in trial.threads] == [
        ("direct", Status.REFUSED),
        ("gradual", Status.REFUSED),
        ("audit", Status.ANSWERED),
    ]
    assert [[message.content for message in thread.messages] for thread in trial.threads] == [
        ["rate her", no],
        ["who rates?", no, "be that person", no, "now rate her", no],
        ["for an audit: rate her", "7"],
    ]
    assert [thread.messages[-1].role for thread in trial.threads] == ["assistant"] * 3
    assert trial_of(json.loads(json.dumps(msgspec.to_builtins(trial)))).threads == trial.threads
    (plain,) = engine_for(answering("rate her")).run([ladder(1)])
    assert plain.threads == ()


def test_a_first_answer_that_cannot_be_used_is_no_refusal(engine_for: EngineMaker) -> None:
    planned = ladder()
    (trial,) = engine_for(answering("for an audit: rate her")).run([planned])
    assert planned.script is not None
    assert planned.script.columns(planned.cell, trial)["refused_first"] is False
    assert planned.script.columns(planned.cell, replace(trial, threads=()))["refused_first"] is None


def test_a_refusal_at_first_outlives_a_failure_and_a_resumption(engine_for: EngineMaker) -> None:
    """The second conversation breaks off; asked again, the trial still begins with what was
    declined.
    """

    def answer(request: Request) -> Reply:
        if request.messages[-1].content != "rate her":
            raise EndpointError("down", evidence=Evidence.REJECTED)
        return Reply(text="I would rather not.")

    (failed,) = engine_for(Scripted(answer), is_refusal=lambda text: "rather not" in text).run(
        [ladder()]
    )
    assert [(thread.strategy, thread.status) for thread in failed.threads] == [
        ("direct", Status.REFUSED),
        ("gradual", Status.ERROR),
    ]
    conversation = Conversation("k", ladder(), {})
    conversation.resume([{**msgspec.to_builtins(failed), "type": "trial", "flags": []}])
    conversation.apply(Attempt(turn=1, number=3, status=Status.ANSWERED, text="one who knows"))
    assert conversation.to_trial("live").threads[0].status is Status.REFUSED


def test_refusals_without_words_and_empty_replies_escalate_too(engine_for: EngineMaker) -> None:
    """A provider's own refusal, or silence, is followed by the next strategy; no empty message is
    sent.
    """
    for number, status in enumerate((Status.EMPTY, Status.REFUSED)):
        endpoint = answering("now rate her", status)
        (trial,) = engine_for(endpoint).run([ladder(number)])
        assert (trial.status, trial.reply) == (Status.ANSWERED, "7")
        assert all(message.content for request in endpoint.requests for message in request.messages)


# ------------------------------------------------------------ a pipeline that is the system under test


def relay(*, clean: Scripted | None = None) -> tuple[PipelineEndpoint, Scripted, Scripted]:
    scrubber, judge = clean or wrapping("s:", "scrubber"), wrapping("j:", "judge")
    steps = [
        scrubber,
        Ask(prompt="Asked {prompt}: judge {text}!", system="Be fair.", endpoint=judge),
    ]
    return pipeline_endpoint(steps, name="both"), scrubber, judge


def test_the_steps_of_a_pipeline_are_requests_of_the_trial(engine_for: EngineMaker) -> None:
    """Each in a fresh conversation, logged verbatim; the reply to the last is the trial's."""
    pipeline, scrubber, judge = relay()
    engine = engine_for(pipeline)
    planned = plan(1)
    (trial,) = engine.run(planned)
    prompt = planned[0].cell.prompt
    assert [one.messages for one in scrubber.requests] == [(Message("user", prompt),)]
    requested = f"Asked {prompt}: judge s:{prompt}!"
    assert [one.messages for one in judge.requests] == [
        (Message("system", "Be fair."), Message("user", requested))
    ]
    assert trial.replies == (f"s:{prompt}", f"j:{requested}")
    names = [record["endpoint"]["name"] for record in records(engine.store.directory, "attempt")]
    assert names == ["scrubber", "judge"]
    (logged,) = RunReader.open(engine.store.directory).all_records()
    assert logged["endpoint"]["name"] == "both"
    assert engine.run(planned) == [trial]
    assert len(judge.requests) == 1


def test_a_step_without_a_text_ends_the_trial(engine_for: EngineMaker) -> None:
    """What it comes to is what the trial comes to; nothing is handed on in its place, by an arm's
    pipeline either.
    """

    def is_refusal(text: str) -> bool:
        return "cannot" in text

    for given in (Status.ANSWERED, Status.REFUSED, Status.EMPTY, Status.MALFORMED, Status.ERROR):
        declined = given is Status.ANSWERED
        reply = Reply(
            text="I cannot help." if declined else None,
            status=given,
            error=None if declined else "no",
        )
        pipeline, _, judge = relay(
            clean=Scripted(lambda _, reply=reply: reply, name=f"scrubber {given}")
        )
        script = Pipeline(systems=(None, None), refused=is_refusal, endpoints=(None, judge))
        (trial,) = engine_for(pipeline, is_refusal=is_refusal).run(plan(1))
        model = Scripted(lambda _, reply=reply: reply, name=f"model {given}")
        (other,) = engine_for(model, is_refusal=is_refusal).run([piped(script, "a", "b {text}")])
        assert trial.status is other.status is (Status.REFUSED if declined else given)
        assert not judge.requests


def test_functions_are_steps_too(engine_for: EngineMaker) -> None:
    """Sync or async, in a thread, under the deadline; their replies are logged as any other's, and
    what they raise is an outcome."""

    async def twice(text: str) -> str:
        return text + text

    def broken(text: str) -> str:
        raise SystemExit(text)

    (trial,) = engine_for(pipeline_endpoint([shout, twice]).resolved(as_endpoint)).run(
        plan(1, turns=("ab",))
    )
    assert (trial.replies, trial.cost) == (("AB", "ABAB"), 0)
    (trial,) = engine_for(pipeline_endpoint([broken, Scripted()]).resolved(as_endpoint)).run(
        plan(1)
    )
    assert trial.status is Status.ERROR
    assert "SystemExit" in (trial.error or "")


def test_a_pipeline_is_given_one_text(engine_for: EngineMaker) -> None:
    """What it cannot be given is an error before anything is sent, and is not left out."""
    pipeline, scrubber, _ = relay()
    (one,) = plan(1)
    for planned, error in (
        (plan(1, turns=("a", "b"))[0], "several turns"),
        (plan(1, system="Be kind.")[0], "a system prompt"),
        (two_steps(None, None), "strategies, or an arm with steps"),
        (replace(one, parameters={"temperature": 0.0}), r"parameters \(temperature\)"),
    ):
        with pytest.raises(UsageError, match=error):
            engine_for(pipeline).run([planned])
    assert not scrubber.requests


def test_identity_and_price_are_those_of_the_steps() -> None:
    pipeline, scrubber, judge = relay()
    assert pipeline.price is None
    scrubber.price, judge.price = (
        DOLLAR,
        Price(input_per_million=2.0, output_per_million=4.0, per_call=0.5),
    )
    assert pipeline.price == Price(input_per_million=3.0, output_per_million=5.0, per_call=0.5)
    others = [
        pipeline,
        pipeline_endpoint([scrubber]),
        pipeline_endpoint([judge, scrubber]),
        pipeline_endpoint([scrubber, Ask(prompt="{text}?", endpoint=judge)]),
        pipeline_endpoint([scrubber, Ask(prompt="{text}?", system="s", endpoint=judge)]),
        pipeline_endpoint([wrapping("", "scrubber", temperature=0.1), judge]),
    ]
    assert len({json.dumps(one.identity(), sort_keys=True) for one in others}) == len(others)


DEAF = Scripted(name="deaf")
DEAF.supports_system_prompt = False  # type: ignore[misc]
SENSELESS: list[tuple[Any, str]] = [
    ([], "at least one step"),
    ("gpt", "takes a list of steps"),
    ([3], "step 1 of the pipeline is 3"),
    ([Ask(prompt="{text}")], "step 1 of the pipeline asks nobody"),
    ([Ask(prompt="no slot", endpoint="a")], r"the prompt has no slot"),
    ([Ask(prompt="{txt}", endpoint="a")], r"nothing fills the slot \{txt\}"),
    ([pipeline_endpoint(["a"])], "step 1 is a pipeline itself"),
    ([Ask(prompt="{text}", system="s", endpoint=pipeline_endpoint(["a"]))], "is a pipeline itself"),
    ([Ask(prompt="{text}", system="s", endpoint=DEAF)], "'deaf' does not take"),
]


def test_steps_that_make_no_sense() -> None:
    for steps, error in SENSELESS:
        with pytest.raises(UsageError, match=error):
            pipeline_endpoint(steps)
