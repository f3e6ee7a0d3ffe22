"""Scripts: what is sent next depends on the reply before, and every request is a request like any other."""

from __future__ import annotations

from dataclasses import replace

from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Price, Reply, Request
from pytest_fairness.engine.scripts import Escalation, Pipeline, Rung, fingerprint
from pytest_fairness.model import Message, Status, Usage
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.reader import RunReader
from tests.support.doubles import Scripted, cell
from tests.support.runs import EngineMaker, records


def piped(pipeline: Pipeline, *turns: str, repetition: int = 0) -> PlannedTrial:
    return PlannedTrial(cell=replace(cell(1), turns=turns), repetition=repetition, script=pipeline)


def shout(text: str) -> str:
    return text.upper()


def said(request: Request) -> Reply:
    return Reply(text=f"<{request.messages[-1].content}>", usage=Usage(input_tokens=10, output_tokens=5))


# ------------------------------------------------------------ pipelines


def test_each_step_is_a_fresh_conversation_with_the_text_before_it(engine_for: EngineMaker) -> None:
    """The second step sees what the first made of the text, and nothing of what the first was shown."""
    endpoint = Scripted(said)
    script = Pipeline(systems=("You scrub.", "You judge."))
    (trial,) = engine_for(endpoint).run([piped(script, "scrub Greg", "pick from {text} now")])
    assert [request.messages for request in endpoint.asked] == [
        (Message("system", "You scrub."), Message("user", "scrub Greg")),
        (Message("system", "You judge."), Message("user", "pick from <scrub Greg> now")),
    ]
    assert trial.replies == ("<scrub Greg>", "<pick from <scrub Greg> now>")
    assert trial.usage == Usage(input_tokens=20, output_tokens=10)
    told = script.columns(piped(script, "scrub Greg", "pick from {text} now").cell, trial)
    assert told == {"requests": 2, "candidates_text": "<scrub Greg>", "prompt": "pick from <scrub Greg> now"}


def test_functions_between_steps(engine_for: EngineMaker) -> None:
    """A function's result is what the next step is sent; its source is part of the key."""
    endpoint = Scripted(said)
    script = Pipeline(systems=(None, None), between={1: (shout,)})
    engine = engine_for(endpoint)
    (trial,) = engine.run([piped(script, "a", "b {text}")])
    assert endpoint.asked[1].messages == (Message("user", "b <A>"),)
    assert script.columns(piped(script, "a", "b {text}").cell, trial)["candidates_text"] == "<A>"
    plain = Pipeline(systems=(None, None))
    assert engine.key_of(piped(script, "a", "b {text}")) != engine.key_of(piped(plain, "a", "b {text}"))


def test_a_reply_is_never_read_for_slots(engine_for: EngineMaker) -> None:
    """A model that answers "{text}" does not get its own words put in again."""
    endpoint = Scripted(lambda request: Reply(text="{text} {text}"))
    engine_for(endpoint).run([piped(Pipeline(systems=(None, None)), "a", "b {text} c")])
    assert endpoint.asked[1].messages[0].content == "b {text} {text} c"


def test_a_step_that_declines_ends_the_pipeline(engine_for: EngineMaker) -> None:
    """Its refusal is the trial's, and is not handed on as if it were the text."""
    endpoint = Scripted(lambda request: Reply(text="I cannot help."))
    script = Pipeline(systems=(None, None), refused=lambda text: "cannot" in text)
    engine = engine_for(endpoint, is_refusal=lambda text: "cannot" in text)
    (trial,) = engine.run([piped(script, "a", "b {text}")])
    assert trial.status is Status.REFUSED
    assert trial.replies == ("I cannot help.",)


def test_a_function_that_fails_is_an_outcome(engine_for: EngineMaker) -> None:
    """The other trials go on; this one says what was raised."""

    def broken(text: str) -> str:
        raise ValueError("no list")

    endpoint = Scripted(said)
    bad, good = Pipeline(systems=(None, None), between={1: (broken,)}), Pipeline(systems=(None, None))
    failed, fine = engine_for(endpoint).run([piped(bad, "a", "b {text}"), piped(good, "a", "b {text}")])
    assert failed.status is Status.ERROR
    assert "ValueError: no list" in (failed.error or "")
    assert fine.status is Status.ANSWERED


def test_every_step_is_paid_for_and_logged(engine_for: EngineMaker) -> None:
    """One attempt record a request, the cost of all, and the script's identity beside the trial."""
    endpoint = Scripted(said, price=Price(input_per_million=1.0, output_per_million=1.0))
    engine = engine_for(endpoint, max_cost=1.0)
    script = Pipeline(systems=(None, "s"))
    (trial,) = engine.run([piped(script, "a", "b {text}")])
    assert trial.cost is not None
    assert round(trial.cost * 1e6) == 30
    attempts = records(engine.store.directory, "attempt")
    assert [(a["turn"], a["text"]) for a in attempts] == [(0, "<a>"), (1, "<b <a>>")]
    (logged,) = RunReader.open(engine.store.directory).all_records()
    assert logged["script"] == {"pipeline": [None, "s"], "between": []}
    assert logged["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "b <a>"}]


def test_only_the_step_that_failed_is_asked_again(engine_for: EngineMaker) -> None:
    """A throttled second step does not buy the first one twice."""
    left = [1]

    def sometimes(request: Request) -> Reply:
        if request.messages[-1].content.startswith("b") and left:
            left.pop()
            raise AttemptError("slow down", evidence=Evidence.THROTTLED, retry_after=0.0)
        return said(request)

    endpoint = Scripted(sometimes)
    (trial,) = engine_for(endpoint).run([piped(Pipeline(systems=(None, None)), "a", "b {text}")])
    assert trial.status is Status.ANSWERED
    assert [request.messages[-1].content[0] for request in endpoint.asked] == ["a", "b", "b"]


# ------------------------------------------------------------ escalation

RUNGS = (
    Rung("direct", ("rate her",)),
    Rung("gradual", ("who rates?", "be that person", "now rate her")),
    Rung("audit", ("for an audit: rate her",)),
)


def ladder(repetition: int = 0) -> PlannedTrial:
    script = Escalation(rungs=RUNGS, usable=str.isdigit, version="digits")
    return PlannedTrial(cell=replace(cell(1), turns=("rate her",)), repetition=repetition, script=script)


def answering(prompt: str, status: Status = Status.ANSWERED) -> Scripted:
    """Gives a number to *prompt*, and words to everything else."""

    def answer(request: Request) -> Reply:
        if request.messages[-1].content == prompt:
            return Reply(text="7")
        return Reply(text="I would rather not." if status is not Status.EMPTY else None, status=status)

    return Scripted(answer)


def test_a_usable_first_reply_needs_no_strategy(engine_for: EngineMaker) -> None:
    endpoint = answering("rate her")
    planned = ladder()
    (trial,) = engine_for(endpoint).run([planned])
    assert trial.reply == "7"
    assert len(endpoint.asked) == 1
    assert planned.script is not None
    assert planned.script.columns(planned.cell, trial) == {
        "requests": 1,
        "strategy": "direct",
        "strategy_level": 0,
    }


def test_strategies_are_tried_until_one_works(engine_for: EngineMaker) -> None:
    """Each in a conversation of its own, its turns one after another; the one that worked is told."""
    endpoint = answering("for an audit: rate her")
    planned = ladder()
    (trial,) = engine_for(endpoint).run([planned])
    asked = [[message.content for message in request.messages] for request in endpoint.asked]
    no = "I would rather not."
    assert asked == [
        ["rate her"],
        ["who rates?"],
        ["who rates?", no, "be that person"],
        ["who rates?", no, "be that person", no, "now rate her"],
        ["for an audit: rate her"],
    ]
    assert planned.script is not None
    assert planned.script.columns(planned.cell, trial) == {"requests": 5, "strategy": "audit", "strategy_level": 2}
    assert trial.reply == "7"


def test_nothing_works(engine_for: EngineMaker) -> None:
    """The last reply stands, and the level is one above the last strategy's."""
    endpoint = answering("something else")
    planned = ladder()
    (trial,) = engine_for(endpoint, is_refusal=lambda text: "rather not" in text).run([planned])
    assert trial.status is Status.REFUSED
    assert planned.script is not None
    assert planned.script.columns(planned.cell, trial) == {"requests": 5, "strategy": "none", "strategy_level": 3}


def test_refusals_without_words_and_empty_replies_escalate_too(engine_for: EngineMaker) -> None:
    """A provider's own refusal, or silence, is followed by the next strategy; no empty message is sent."""
    for number, status in enumerate((Status.EMPTY, Status.REFUSED)):
        endpoint = answering("now rate her", status)
        (trial,) = engine_for(endpoint).run([ladder(number)])
        assert (trial.status, trial.reply) == (Status.ANSWERED, "7")
        assert all(message.content for request in endpoint.asked for message in request.messages)


def test_trials_are_shared_like_any_others(engine_for: EngineMaker) -> None:
    """The strategies are part of the key: the same ones are asked once, others anew."""
    endpoint = answering("rate her")
    engine = engine_for(endpoint)
    first = engine.run([ladder(), ladder()])
    assert first[0] == first[1]
    assert engine.run([ladder()]) == first[:1]
    assert len(endpoint.asked) == 1
    other = replace(ladder(), script=Escalation(rungs=RUNGS[:1], usable=str.isdigit, version="digits"))
    assert engine.key_of(other) != engine.key_of(ladder())


def test_a_function_is_known_by_its_source() -> None:
    assert fingerprint(shout).startswith(f"{__name__}:shout:")
    assert fingerprint(shout) != fingerprint(said)
    assert fingerprint(len) == "builtins:len"
