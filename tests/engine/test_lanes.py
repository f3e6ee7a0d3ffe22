"""Steps that ask different systems: each request of a trial has its own endpoint, price, limits and log record."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_fairness.endpoints.pipeline import PipelineEndpoint, pipeline_endpoint
from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Limits, Price, Reply, Request
from pytest_fairness.engine.engine import Engine
from pytest_fairness.engine.scripts import Pipeline
from pytest_fairness.errors import BudgetError, EndpointError, UsageError
from pytest_fairness.model import Ask, Message, Status, Usage
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.runs.reader import RunReader
from pytest_fairness.runs.store import Retry, open_run
from tests.support.doubles import Scripted, cell, plan
from tests.support.runs import EngineMaker, records

DOLLAR = Price(input_per_million=1.0, output_per_million=1.0)


def wrapping(left: str, name: str, **more: object) -> Scripted:
    """Answers with the prompt in brackets of its own."""

    def answer(request: Request) -> Reply:
        return Reply(text=f"{left}{request.messages[-1].content}", usage=Usage(input_tokens=10, output_tokens=5))

    return Scripted(answer, name=name, **more)  # type: ignore[arg-type]


def two_steps(first: Scripted | None, second: Scripted | None) -> PlannedTrial:
    script = Pipeline(systems=("You scrub.", "You judge."), endpoints=(first, second))
    return PlannedTrial(cell=replace(cell(1), turns=("scrub Greg", "pick from {text}")), script=script)


# ------------------------------------------------------------ a script whose steps name endpoints


def test_a_step_asks_the_endpoint_that_it_names(engine_for: EngineMaker) -> None:
    """The scrubber by one model, the evaluator by the system under test; the log says who was asked what."""
    scrubber, judge = wrapping("s:", "scrubber", temperature=0.0), wrapping("j:", "judge", temperature=1.0)
    engine = engine_for(judge)
    (trial,) = engine.run([two_steps(scrubber, None)])
    assert trial.replies == ("s:scrub Greg", "j:pick from s:scrub Greg")
    assert [one.messages[-1].content for one in scrubber.asked] == ["scrub Greg"]
    assert [one.messages[0] for one in judge.asked] == [Message("system", "You judge.")]
    first, second = records(engine.store.directory, "attempt")
    assert first["endpoint"]["name"] == "scrubber"
    assert "endpoint" not in second
    engines = {one["identity"]: one["endpoint"]["name"] for one in records(engine.store.directory, "engine")}
    assert engines[first["endpoint"]["identity"]] == "scrubber"


def test_a_named_endpoint_is_asked_with_its_own_parameters(engine_for: EngineMaker) -> None:
    """What the test varies is varied for the system under test alone."""
    scrubber, judge = wrapping("s:", "scrubber", temperature=0.0), wrapping("j:", "judge")
    engine_for(judge).run([replace(two_steps(scrubber, None), parameters={"temperature": 2.0})])
    assert [dict(one.parameters) for one in (*scrubber.asked, *judge.asked)] == [
        {"temperature": 0.0},
        {"temperature": 2.0},
    ]


def test_who_is_asked_is_part_of_the_key(engine_for: EngineMaker) -> None:
    """Another scrubber, or one with other parameters, makes another trial; steps without one keep their key."""
    engine = engine_for(Scripted())
    keys = {
        engine.key_of(two_steps(first, None))
        for first in (None, wrapping("", "a"), wrapping("", "b"), wrapping("", "a", temperature=0.5))
    }
    assert len(keys) == 4
    plain = two_steps(None, None)
    assert plain.script is not None
    assert plain.script.identity() == {"pipeline": ["You scrub.", "You judge."], "between": []}


def test_each_system_is_priced_by_itself(engine_for: EngineMaker) -> None:
    scrubber, judge = wrapping("", "scrubber", price=DOLLAR), wrapping("", "judge")
    judge.price = Price(input_per_million=100.0, output_per_million=100.0)
    engine = engine_for(judge)
    (trial,) = engine.run([two_steps(scrubber, None)])
    assert trial.cost == pytest.approx(15e-6 + 15e-4)
    assert [record["cost"] for record in records(engine.store.directory, "attempt")] == pytest.approx([15e-6, 15e-4])


def test_under_a_cap_every_system_needs_a_price(engine_for: EngineMaker) -> None:
    """Before the first request to anybody."""
    scrubber, judge = wrapping("", "scrubber"), wrapping("", "judge", price=DOLLAR)
    with pytest.raises(BudgetError, match="'scrubber' has no known price"):
        engine_for(judge, max_cost=1.0).run([two_steps(scrubber, None)])
    assert not judge.asked
    assert not scrubber.asked


def test_the_cap_holds_over_all_systems(engine_for: EngineMaker) -> None:
    """One account: what the scrubber spends is not there for the judge."""
    free = Price(input_per_million=0, output_per_million=0, per_call=0.01)
    scrubber, judge = wrapping("", "scrubber", price=free), wrapping("", "judge", price=free)
    with pytest.raises(BudgetError):
        engine_for(judge, max_cost=0.05, concurrency=1).run(
            [replace(two_steps(scrubber, None), repetition=number) for number in range(9)]
        )
    assert len(scrubber.asked) + len(judge.asked) == 5


def test_a_step_is_repeated_by_its_own_evidence(engine_for: EngineMaker) -> None:
    """A throttled scrubber is asked again, and only it; the judge is not made to wait."""
    left = [1, 1]

    def sometimes(request: Request) -> Reply:
        if left:
            left.pop()
            raise AttemptError("slow down", evidence=Evidence.THROTTLED, retry_after=0.0)
        return Reply(text="clean")

    scrubber, judge = Scripted(sometimes, name="scrubber"), wrapping("j:", "judge")
    (trial,) = engine_for(judge).run([two_steps(scrubber, None)])
    assert (trial.reply, trial.attempts) == ("j:pick from clean", 4)
    assert (len(scrubber.asked), len(judge.asked)) == (3, 1)


def test_a_key_that_a_step_lacks_stops_the_asking(engine_for: EngineMaker) -> None:
    """Its error names the step's endpoint; nothing more is sent to anybody."""

    def locked(request: Request) -> Reply:
        raise AttemptError("endpoint 'scrubber': no key", evidence=Evidence.AUTH)

    judge = wrapping("", "judge")
    with pytest.raises(EndpointError, match="'scrubber': no key"):
        engine_for(judge).run([two_steps(Scripted(locked, name="scrubber"), None)])
    assert not judge.asked


def test_at_most_so_many_at_once_of_each(engine_for: EngineMaker) -> None:
    """An endpoint's own limit holds for it, whoever else is asked beside it."""
    scrubber, judge = wrapping("", "scrubber", delay=0.005), wrapping("", "judge", delay=0.005)
    scrubber.limits = Limits(concurrency=2)  # type: ignore[attr-defined]
    planned = [replace(two_steps(scrubber, None), repetition=number) for number in range(24)]
    trials = engine_for(judge, concurrency=8).run(planned)
    assert {trial.status for trial in trials} == {Status.ANSWERED}
    assert scrubber.most <= 2
    assert judge.most <= 8


def test_a_simulated_step_makes_the_trial_simulated(engine_for: EngineMaker) -> None:
    """It must never pass for live evidence."""
    (mixed,) = engine_for(wrapping("", "judge")).run([two_steps(wrapping("", "s", simulated=True), None)])
    (live,) = engine_for(wrapping("", "other")).run([two_steps(wrapping("", "t"), None)])
    assert (mixed.source, live.source) == ("simulated", "live")


def test_every_system_is_closed(engine_for: EngineMaker) -> None:
    scrubber, judge = wrapping("", "scrubber"), wrapping("", "judge")
    engine = engine_for(judge)
    engine.run([two_steps(scrubber, None)])
    engine.close()
    assert scrubber.closed
    assert judge.closed


def test_what_was_answered_is_not_asked_again(root: Path) -> None:
    """A run that ended between two steps goes on with the second: the scrubber is not paid for twice."""
    scrubber = wrapping("s:", "scrubber")

    def locked(request: Request) -> Reply:
        raise AttemptError("endpoint 'judge': no key", evidence=Evidence.AUTH)

    with (
        open_run(root, "t") as store,
        Engine(Scripted(locked, name="judge"), store) as engine,
        pytest.raises(EndpointError),
    ):
        engine.run([two_steps(scrubber, None)])
    judge = wrapping("j:", "judge")
    with open_run(root, "t") as store, Engine(judge, store) as engine:
        (trial,) = engine.run([two_steps(scrubber, None)])
    assert trial.replies == ("s:scrub Greg", "j:pick from s:scrub Greg")
    assert (len(scrubber.asked), len(judge.asked)) == (1, 1)


def test_a_step_that_hangs_is_unknown_and_can_be_asked_alone(root: Path) -> None:
    """The deadline is each attempt's own; asked again on request, the trial goes on with the step that was lost."""
    scrubber = wrapping("s:", "scrubber")
    with (
        open_run(root, "t") as store,
        Engine(wrapping("j:", "judge", delay=60.0), store, attempt_timeout=0.2) as engine,
    ):
        (lost,) = engine.run([two_steps(scrubber, None)])
    assert (lost.status, lost.replies) == (Status.UNKNOWN, ("s:scrub Greg",))
    with open_run(root, "t") as store, Engine(wrapping("j:", "judge"), store, retry=Retry(unknown=True)) as engine:
        (trial,) = engine.run([two_steps(scrubber, None)])
    assert trial.replies == ("s:scrub Greg", "j:pick from s:scrub Greg")
    assert len(scrubber.asked) == 1


def test_limits_per_minute_belong_to_the_system(engine_for: EngineMaker) -> None:
    """The schedule of whoever is limited, by its identity: other tests that ask the same system share it."""
    scrubber, judge = wrapping("", "scrubber"), wrapping("", "judge")
    scrubber.limits = Limits(requests_per_minute=60_000)  # type: ignore[attr-defined]
    engine = engine_for(judge)
    engine.run([two_steps(scrubber, None)])
    with contextlib.closing(sqlite3.connect(engine.store.directory / "run.sqlite3")) as connection:
        assert connection.execute("SELECT identity FROM rate_limits").fetchall() == [(_hash(scrubber),)]


def _hash(endpoint: Scripted) -> str:
    return identity_hash(endpoint.identity())


# ------------------------------------------------------------ a pipeline that is the system under test


def relay(*, clean: Scripted | None = None, **more: object) -> tuple[PipelineEndpoint, Scripted, Scripted]:
    scrubber, judge = clean or wrapping("s:", "scrubber"), wrapping("j:", "judge")
    steps = [scrubber, Ask(prompt="Asked {prompt}: judge {text}!", system="Be fair.", endpoint=judge)]
    return pipeline_endpoint(steps, name="both"), scrubber, judge


def test_the_steps_of_a_pipeline_are_requests_of_the_trial(engine_for: EngineMaker) -> None:
    """Each in a fresh conversation, logged verbatim; the reply to the last is the trial's."""
    pipeline, scrubber, judge = relay()
    engine = engine_for(pipeline)
    planned = plan(1)
    (trial,) = engine.run(planned)
    prompt = planned[0].cell.prompt
    assert [one.messages for one in scrubber.asked] == [(Message("user", prompt),)]
    asked = f"Asked {prompt}: judge s:{prompt}!"
    assert [one.messages for one in judge.asked] == [(Message("system", "Be fair."), Message("user", asked))]
    assert trial.replies == (f"s:{prompt}", f"j:{asked}")
    names = [record["endpoint"]["name"] for record in records(engine.store.directory, "attempt")]
    assert names == ["scrubber", "judge"]
    (logged,) = RunReader.open(engine.store.directory).all_records()
    assert logged["endpoint"]["name"] == "both"
    assert engine.run(planned) == [trial]
    assert len(judge.asked) == 1


def test_replies_and_prompts_are_never_read_for_slots(engine_for: EngineMaker) -> None:
    pipeline, _, judge = relay(clean=Scripted(lambda request: Reply(text="{prompt} {text}")))
    engine_for(pipeline).run(plan(1, turns=("{text} {text}",)))
    assert judge.asked[0].messages[-1].content == "Asked {text} {text}: judge {prompt} {text}!"


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Reply(text="I cannot help."), Status.REFUSED),
        (Reply(text=None, status=Status.REFUSED), Status.REFUSED),
        (Reply(text=None, status=Status.EMPTY), Status.EMPTY),
        (Reply(text=None, status=Status.MALFORMED, error="no"), Status.MALFORMED),
        (Reply(text=None, status=Status.ERROR, error="no"), Status.ERROR),
    ],
)
def test_a_step_without_a_text_ends_the_trial(engine_for: EngineMaker, reply: Reply, status: Status) -> None:
    """What it comes to is what the trial comes to; nothing is handed on in its place."""
    pipeline, _, judge = relay(clean=Scripted(lambda request: reply))
    (trial,) = engine_for(pipeline, is_refusal=lambda text: "cannot" in text).run(plan(1))
    assert trial.status is status
    assert not judge.asked


def test_functions_are_steps_too(engine_for: EngineMaker) -> None:
    """Sync or async, in a thread, under the deadline; their replies are logged as any other's."""

    def shout(text: str) -> str:
        return text.upper()

    async def twice(text: str) -> str:
        return text + text

    engine = engine_for(pipeline_endpoint([shout, twice]).resolved(_as_endpoint))
    (trial,) = engine.run(plan(1, turns=("ab",)))
    assert trial.replies == ("AB", "ABAB")
    assert trial.cost == 0


def _as_endpoint(system: object) -> object:
    from pytest_fairness.endpoints import as_endpoint

    return as_endpoint(system)


def test_a_function_that_raises_is_an_outcome(engine_for: EngineMaker) -> None:
    def broken(text: str) -> str:
        raise SystemExit(text)

    engine = engine_for(pipeline_endpoint([broken, Scripted()]).resolved(_as_endpoint))
    (trial,) = engine.run(plan(1))
    assert trial.status is Status.ERROR
    assert "SystemExit" in (trial.error or "")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"turns": ("a", "b")}, "several turns"),
        ({"system": "Be kind."}, "a system prompt"),
    ],
)
def test_a_pipeline_is_given_one_text(engine_for: EngineMaker, more: dict[str, object], told: str) -> None:
    """What it cannot be given is an error before anything is sent, and is not left out."""
    pipeline, scrubber, _ = relay()
    with pytest.raises(UsageError, match=told):
        engine_for(pipeline).run(plan(1, **more))
    assert not scrubber.asked


def test_a_pipeline_takes_neither_scripts_nor_parameters(engine_for: EngineMaker) -> None:
    pipeline, scrubber, _ = relay()
    with pytest.raises(UsageError, match="strategies, or an arm with steps"):
        engine_for(pipeline).run([two_steps(None, None)])
    with pytest.raises(UsageError, match=r"parameters \(temperature\)"):
        engine_for(pipeline).run([replace(plan(1)[0], parameters={"temperature": 0.0})])
    assert not scrubber.asked


def test_identity_and_price_are_those_of_the_steps() -> None:
    pipeline, scrubber, judge = relay()
    assert pipeline.price is None
    scrubber.price, judge.price = DOLLAR, Price(input_per_million=2.0, output_per_million=4.0, per_call=0.5)
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


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([], "at least one step"),
        ("gpt", "takes a list of steps"),
        ([3], "step 1 of the pipeline is 3"),
        ([Ask(prompt="{text}")], "step 1 of the pipeline asks nobody"),
        ([Ask(prompt="no slot", endpoint="a")], r"the prompt has no slot"),
        ([Ask(prompt="{txt}", endpoint="a")], r"nothing fills the slot \{txt\}"),
        ([pipeline_endpoint(["a"])], "step 1 is a pipeline itself"),
        ([Ask(prompt="{text}", system="s", endpoint=pipeline_endpoint(["a"]))], "is a pipeline itself"),
    ],
)
def test_steps_that_make_no_sense(steps: object, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        pipeline_endpoint(steps)  # type: ignore[arg-type]


def test_a_system_prompt_for_a_step_that_takes_none() -> None:
    deaf = Scripted(name="deaf")
    deaf.supports_system_prompt = False  # type: ignore[misc]
    with pytest.raises(UsageError, match="'deaf' does not take"):
        pipeline_endpoint([Ask(prompt="{text}", system="s", endpoint=deaf)])


def test_names_are_known_to_the_tests_alone() -> None:
    """A pipeline of names has no identity until a session says who they are."""
    pipeline = pipeline_endpoint(["scrubber", "judge"])
    with pytest.raises(UsageError, match="'scrubber' of a pipeline is asked by a fairness test"):
        pipeline.identity()
    known = {"scrubber": Scripted(name="scrubber"), "judge": Scripted(name="judge")}
    assert pipeline.resolved(known.__getitem__).identity()["type"] == "pipeline"
