"""Any Python function as the system under test, itself or by its import path."""

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
from pathlib import Path
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


KINDS: dict[str, tuple[Any, str]] = {
    "sync": (shout, "HELLO"),
    "async": (whisper, "hello"),
    "generator": (in_parts, "Hello!?"),
    "async generator": (in_parts_later, "Hello…"),
    "method": (App("Dear").answer, "Dear Hello"),
    "async object": (App("Dear"), "Dear Hello"),
    "partial": (functools.partial(App("Dear").answer), "Dear Hello"),
    "lambda with a default": (lambda text, suffix="!": text + suffix, "Hello!"),
    "method of a built-in": (str.upper, "HELLO"),
    "any number of texts": (lambda *texts: texts[0], "Hello"),
    "sync, returning an awaitable": (lambda prompt: whisper(prompt + ""), "hello"),
}


@pytest.mark.parametrize(("function", "text"), KINDS.values(), ids=KINDS)
def test_every_kind_of_callable_answers(function: Any, text: str) -> None:
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


def raises(error: BaseException) -> Any:
    def function(_: str) -> str:
        raise error

    return function


@pytest.mark.parametrize(
    ("function", "status", "why"),
    [
        (
            raises(ValueError("no such applicant: hunter2-hunter2")),
            "error",
            "raised ValueError: no such applicant",
        ),
        (raises(SystemExit(3)), "error", "raised SystemExit: 3"),
        (raises(StopIteration()), "error", "StopIteration"),
        (lambda _: 7, "malformed", "returned int, not a str"),
        (lambda _: None, "malformed", "returned NoneType"),
        (lambda _: iter(["a", 1]), "malformed", "returned int"),
        (lambda _: "  ", "empty", "empty text"),
    ],
)
def test_whatever_a_function_does_is_an_outcome(function: Any, status: str, why: str) -> None:
    """Nothing that the application does ends the run; the reply, which has no text, says what it
    was.
    """
    remember("hunter2-hunter2")
    reply = ask(function)
    assert (reply.text, reply.status) == (None, status)
    assert "hunter2" not in (reply.error or "")
    assert why in (reply.error or "")


def where_in_parts(_: str) -> Iterator[str]:
    yield where.get()


def test_context_variables_reach_the_thread() -> None:
    """What was set around the question is there in the function, also while a generator is read."""
    token = where.set("here")
    try:
        assert [ask(function).text for function in (lambda _: where.get(), where_in_parts)] == [
            "here"
        ] * 2
    finally:
        where.reset(token)


def test_a_function_that_cannot_be_called_with_one_text_is_refused() -> None:
    """Before the first question, with the mend."""
    refused: list[tuple[Any, str]] = [
        (lambda: "x", "takes no text"),
        (lambda prompt, style: prompt + style, "needs style as well"),
        (lambda prompt, *, style: prompt + style, "needs style as well"),
        (3, "give an endpoint, or a function"),
    ]
    for function, why in refused:
        with pytest.raises(UsageError, match=why):
            as_endpoint(function)


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
    assert callable_endpoint(App("a")).identity() != callable_endpoint(App("b")).identity()
    assert json.loads(json.dumps(identity)) == identity


def test_cancelling_a_question_cancels_it() -> None:
    """A deadline of the engine's is no outcome of the application."""

    async def once() -> None:
        endless = callable_endpoint(lambda _: asyncio.Event().wait())
        await asyncio.wait_for(endless.ask(Request(messages=(Message("user", "x"),))), 0.05)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(once())


# ---------------------------------------------------------------- threads


def test_calls_share_a_limited_number_of_threads() -> None:
    """No more run at once than allowed, idle threads are taken again, and every call gets its own
    answer.
    """
    names: Counter[str] = Counter()

    def call(number: int) -> int:
        names[threading.current_thread().name] += 1
        time.sleep(0.002)
        return number

    async def main() -> list[Any]:
        threads = DaemonThreads(4)
        found = await asyncio.gather(
            *(threads.call(functools.partial(call, number)) for number in range(60))
        )
        threads.close()
        return found

    assert asyncio.run(main()) == list(range(60))
    assert len(names) == 4


def test_closing_cancels_what_has_not_begun_and_ends_the_threads() -> None:
    """Calls under way end as they do; those behind them never start."""
    begun, gate = threading.Event(), threading.Event()

    async def main() -> list[Any]:
        threads = DaemonThreads(1)
        calls = [
            asyncio.ensure_future(threads.call(call))
            for call in (lambda: begun.set() or gate.wait(10), dict)
        ]
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
        "import threading\n"
        "from pytest_fairness.endpoints import callable_endpoint\n"
        "from pytest_fairness.testing import ask\n"
        "begun = threading.Event()\n"
        "hung = callable_endpoint(lambda prompt: begun.set() or threading.Event().wait())\n"
        "threading.Thread(target=ask, args=(hung,), daemon=True).start()\n"
        "begun.wait(5)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)


# ------------------------------------------------------------ import paths

MODULE = """
class Writer:
    def write(self, prompt):
        return prompt + "!"

writer = Writer()
number = 3
"""


@pytest.fixture
def letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module called as no other on the path."""
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "letters_for_a_test.py"
    path.write_text(MODULE, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "letters_for_a_test", raising=False)
    return path


def test_a_function_by_its_import_path(letters: Path) -> None:
    """The same endpoint as of the function itself."""
    endpoint = callable_endpoint("letters_for_a_test:writer.write")
    assert (
        endpoint.identity()
        == callable_endpoint(sys.modules["letters_for_a_test"].writer.write).identity()
    )
    assert testing.ask(endpoint, "Dear Ann").text == "Dear Ann!"


def test_paths_that_name_nothing(letters: Path) -> None:
    """What the module itself lacks is raised as it is: the traceback into the application is what
    helps then.
    """
    for path, why in {
        "letters_for_a_test": "is no import path: write package.module:function",
        "letters_for_a_test:": "is no import path",
        "../letters:write": "is no import path",
        "letters_for_a_test:writer.wrote": "letters_for_a_test has no writer.wrote",
        "letters_for_a_test:number": "is int, which cannot be called",
        "letters_for_a_test.more:write": "there is no module 'letters_for_a_test.more'",
        "no_such_module_at_all:write": "there is no module 'no_such_module_at_all' to import; is its folder",
    }.items():
        with pytest.raises(UsageError, match=why):
            callable_endpoint(path)
    sys.modules.pop("letters_for_a_test")
    letters.write_text("import something_that_is_not_installed\n", encoding="utf-8")
    with pytest.raises(ModuleNotFoundError, match="something_that_is_not_installed"):
        callable_endpoint("letters_for_a_test:write")
