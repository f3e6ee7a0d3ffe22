"""Any Python function as the system under test."""

from __future__ import annotations

import asyncio
import functools
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from pytest_fairness import testing
from pytest_fairness.endpoints import Endpoint, Request, as_endpoint, callable_endpoint
from pytest_fairness.endpoints.function import DaemonThreads
from pytest_fairness.endpoints.protocol import Reply
from pytest_fairness.endpoints.redaction import remember
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Message, Status

where: ContextVar[str] = ContextVar("where", default="nowhere")


def ask(function: Any) -> Reply:
    return testing.ask(callable_endpoint(function))


def shout(prompt: str) -> str:
    return prompt.upper()


async def whisper(prompt: str) -> str:
    await asyncio.sleep(0)
    return prompt.lower()


def in_parts(prompt: str) -> Iterator[str]:
    yield from (prompt, "!", "?")


async def in_parts_later(prompt: str) -> AsyncIterator[str]:
    for part in (prompt, "…"):
        await asyncio.sleep(0)
        yield part


class App:
    """An application with state."""

    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    def answer(self, prompt: str) -> str:
        return f"{self.greeting} {prompt}"

    async def __call__(self, prompt: str) -> str:
        return self.answer(prompt)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        pytest.param(shout, "HELLO", id="sync"),
        pytest.param(whisper, "hello", id="async"),
        pytest.param(in_parts, "Hello!?", id="generator"),
        pytest.param(in_parts_later, "Hello…", id="async-generator"),
        pytest.param(App("Dear").answer, "Dear Hello", id="method"),
        pytest.param(App("Dear"), "Dear Hello", id="async-object"),
        pytest.param(functools.partial(App("Dear").answer), "Dear Hello", id="partial"),
        pytest.param(lambda text, suffix="!": text + suffix, "Hello!", id="lambda-with-default"),
        pytest.param(str.upper, "HELLO", id="builtin-method"),
        pytest.param(lambda *texts: texts[0], "Hello", id="any-number"),
        pytest.param(lambda prompt: whisper(prompt + ""), "hello", id="sync-returning-awaitable"),
    ],
)
def test_every_kind_of_callable_answers(function: Any, text: str) -> None:
    """Sync, async, generators, methods and objects give their text."""
    reply = ask(function)
    assert (reply.text, reply.status) == (text, Status.ANSWERED)


def test_a_parameter_called_messages_gets_the_whole_conversation() -> None:
    """As dictionaries of role and content, fresh each time."""

    def app(*, messages: list[dict[str, str]]) -> str:
        why = json.dumps(messages)
        messages[0]["content"] = "changed"
        return why

    endpoint = callable_endpoint(app)
    request = Request(messages=(Message("system", "Be kind."), Message("user", "Hello")))
    sent = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]
    for _ in range(2):
        assert json.loads(asyncio.run(endpoint.ask(request)).text or "") == sent
    assert asyncio.run(callable_endpoint(shout).ask(request)).text == "HELLO"
    assert endpoint.supports_system_prompt
    assert not callable_endpoint(shout).supports_system_prompt


def raises(_: str) -> str:
    raise ValueError("no such applicant: hunter2-hunter2")


def exits(_: str) -> str:
    raise SystemExit(3)


def stops(_: str) -> str:
    raise StopIteration


@pytest.mark.parametrize(
    ("function", "status", "why"),
    [
        pytest.param(raises, Status.ERROR, "raised ValueError: no such applicant", id="raises"),
        pytest.param(exits, Status.ERROR, "raised SystemExit: 3", id="sys.exit"),
        pytest.param(stops, Status.ERROR, "StopIteration", id="StopIteration"),
        pytest.param(lambda _: 7, Status.MALFORMED, "returned int, not a str", id="number"),
        pytest.param(lambda _: None, Status.MALFORMED, "returned NoneType", id="None"),
        pytest.param(lambda _: iter(["a", 1]), Status.MALFORMED, "returned int", id="generator-of-others"),
        pytest.param(lambda _: "  ", Status.EMPTY, "empty text", id="blank"),
    ],
)
def test_whatever_a_function_does_is_an_outcome(function: Any, status: Status, why: str) -> None:
    """Nothing that the application does ends the run; it is told in the reply, which has no text."""
    remember("hunter2-hunter2")
    reply = ask(function)
    assert (reply.text, reply.status) == (None, status)
    assert "hunter2" not in (reply.error or "")
    assert why in (reply.error or "")


def where_in_parts(_: str) -> Iterator[str]:
    yield where.get()


@pytest.mark.parametrize("function", [lambda _: where.get(), where_in_parts], ids=["plain", "generator"])
def test_context_variables_reach_the_thread(function: Any) -> None:
    """What was set around the question is there in the function, also while a generator is read."""
    token = where.set("here")
    try:
        assert ask(function).text == "here"
    finally:
        where.reset(token)


def test_a_function_that_cannot_be_called_with_one_text_is_refused() -> None:
    """Before the first question, with the mend."""
    for function, why in (
        (lambda: "x", "takes no text"),
        (lambda prompt, style: prompt + style, "needs style as well"),
        (lambda prompt, *, style: prompt + style, "needs style as well"),
    ):
        with pytest.raises(UsageError, match=why):
            callable_endpoint(function)
    with pytest.raises(UsageError, match="not callable"):
        callable_endpoint(3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="give an endpoint, or a function"):
        as_endpoint(3)


def test_the_identity_is_the_place_and_the_source() -> None:
    """An edited function is another system; a renamed object of the same class is not."""
    endpoint = as_endpoint(shout)
    assert isinstance(endpoint, Endpoint)
    assert (endpoint.name, endpoint.simulated, as_endpoint(endpoint)) == ("shout", False, endpoint)
    identity = endpoint.identity()
    assert identity["function"] == f"{__name__}:shout"
    assert isinstance(identity["source"], str)
    assert identity["source"] != callable_endpoint(whisper).identity()["source"]
    assert callable_endpoint(App("a")).identity() == callable_endpoint(App("a")).identity()
    assert json.loads(json.dumps(identity)) == identity


def test_cancelling_a_question_cancels_it() -> None:
    """A deadline of the engine's is no outcome of the application."""

    async def forever(_: str) -> str:
        await asyncio.sleep(3600)
        return "never"

    async def once() -> None:
        await asyncio.wait_for(callable_endpoint(forever).ask(Request(messages=(Message("user", "x"),))), 0.05)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(once())


# ---------------------------------------------------------------- threads


def test_calls_share_a_limited_number_of_threads() -> None:
    """No more run at once than allowed, idle threads are taken again, and every call gets its own answer."""
    names: Counter[str] = Counter()

    def call(number: int) -> int:
        names[threading.current_thread().name] += 1
        time.sleep(0.002)
        return number

    async def main() -> list[Any]:
        threads = DaemonThreads(4)
        calls = (threads.call(functools.partial(call, number)) for number in range(200))
        found = await asyncio.gather(*calls)
        threads.close()
        return found

    assert asyncio.run(main()) == list(range(200))
    assert len(names) == 4


def test_closing_cancels_what_has_not_begun_and_ends_the_threads() -> None:
    """Calls under way end as they do; those behind them never start."""
    begun, gate = threading.Event(), threading.Event()

    async def main() -> list[Any]:
        threads = DaemonThreads(1)
        calls = [asyncio.ensure_future(threads.call(call)) for call in (lambda: begun.set() or gate.wait(10), dict)]
        await asyncio.to_thread(begun.wait, 5)
        threads.close()
        gate.set()
        return await asyncio.gather(*calls, return_exceptions=True)

    before = threading.active_count()
    first, behind = asyncio.run(main())
    assert first is True
    assert isinstance(behind, asyncio.CancelledError)
    assert threading.active_count() <= before


def test_a_call_that_hangs_keeps_no_process_alive() -> None:
    """The interpreter ends although a call never will."""
    code = (
        "import asyncio, threading\n"
        "from pytest_fairness.endpoints import callable_endpoint\n"
        "from pytest_fairness.testing import ask\n"
        "begun = threading.Event()\n"
        "hung = callable_endpoint(lambda prompt: begun.set() or threading.Event().wait())\n"
        "threading.Thread(target=ask, args=(hung,), daemon=True).start()\n"
        "begun.wait(5)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)
