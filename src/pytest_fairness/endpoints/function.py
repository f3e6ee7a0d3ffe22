"""A Python callable as the system under test: sync, async or a generator; one text, or the whole
conversation.

A parameter called ``messages`` gets the conversation as a list of ``{"role": …, "content": …}``;
otherwise the only required parameter gets the last user message. A sync function runs in a thread,
with the context variables of the caller, so that it may block. Whatever it raises is an outcome of
the trial, never a crash of the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib
import inspect
import re
import textwrap
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import Any

from pytest_fairness.endpoints.protocol import FREE, Price, Reply, Request, joined, plain_messages
from pytest_fairness.endpoints.redaction import redact
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Status

# Threads cannot be stopped; beyond this many calls at once the rest wait for one to end.
_THREADS = 64
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_IMPORT_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


@dataclass(slots=True)
class Ambient:
    """The request that an application is answering; ``simulated`` once a simulated model has a part
    in the answer.

    A simulated model stands in for the one inside somebody's own function, through which neither
    the repetition nor what the names signal would find its way. ``count`` numbers what it is asked,
    so that two equal questions of one trial get two answers.
    """

    request: Request
    simulated: bool = False
    count: int = 0


#: What is being answered here, also in threads that copy the context; None where no application is
#: asked.
AMBIENT: ContextVar[Ambient | None] = ContextVar("pytest_fairness_ambient", default=None)


class FunctionEndpoint:
    """Asks a function. See :func:`callable_endpoint`."""

    type = "callable"
    simulated = False
    price: Price | None = FREE

    def __init__(self, function: Callable[..., Any], *, name: str | None = None) -> None:
        self._function = function
        plain = function
        while isinstance(plain, partial):
            plain = plain.func
        owner: Any = plain
        if not hasattr(plain, "__qualname__"):
            owner = type(plain)
        qualified = f"{getattr(owner, '__module__', None) or 'builtins'}:{owner.__qualname__}"
        routine = inspect.unwrap(plain)
        call = routine
        if not inspect.isroutine(routine):
            call = getattr(routine, "__call__", routine)  # noqa: B004 - taken, not tested for
        self._asynchronous = inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)
        self._identity: dict[str, JSON] = {
            "type": self.type,
            "function": qualified,
            "source": _fingerprint(function),
        }
        self._threads = DaemonThreads(_THREADS)
        self.name = name or qualified.rpartition(":")[2]
        # A function of one text never sees a system prompt, nor the turns before: it is told all in
        # one message.
        self.supports_system_prompt = self.supports_conversation = _takes_conversation(
            function, qualified
        )
        self.default_parameters: Mapping[str, JSON] = {}

    def identity(self) -> dict[str, JSON]:
        return dict(self._identity)

    async def ask(self, request: Request) -> Reply:
        if self.supports_conversation:
            call = partial(self._function, messages=plain_messages(request.messages))
        else:
            call = partial(self._function, request.messages[-1].content)
        here = Ambient(request)
        token = AMBIENT.set(here)
        try:
            if self._asynchronous:
                answer = call()
            else:
                answer = await self._threads.call(call)
            if inspect.isawaitable(answer):
                answer = await answer
            if isinstance(answer, AsyncIterator):
                answer = joined([part async for part in answer])
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - sys.exit() must not end the run
            message = redact(f"{self.name} raised {type(error).__name__}: {error}")
            return Reply(text=None, status=Status.ERROR, error=message)
        finally:
            AMBIENT.reset(token)
        if not isinstance(answer, str):
            why = (
                f"{self.name} returned {type(answer).__name__}, not a str: return the text of the "
                "reply"
            )
            return Reply(text=None, status=Status.MALFORMED, error=why)
        if not answer.strip():
            return Reply(
                text=None, status=Status.EMPTY, error=f"{self.name} returned an empty text"
            )
        return Reply(text=answer, simulated=here.simulated)

    async def aclose(self) -> None:
        """Let go of the threads, without waiting for calls that never return."""
        self._threads.close()
        self._threads = DaemonThreads(_THREADS)


def callable_endpoint(
    function: Callable[..., Any] | str, *, name: str | None = None
) -> FunctionEndpoint:
    """*function* as an endpoint; a text is the import path of one, ``"my_app.letters:write"``,
    imported now.

    Raises UsageError if there is no such function, or it cannot be called with one text or with
    ``messages``; an error within its module is raised as it is.
    """
    if isinstance(function, str):
        function = _imported(function)
    if not callable(function):
        raise UsageError(
            f"{function!r} is not callable: give a function that takes a text and returns the reply"
        )
    return FunctionEndpoint(function, name=name)


def is_import_path(text: str) -> bool:
    """Return whether *text* looks like ``package.module:function``."""
    return _IMPORT_PATH.fullmatch(text) is not None


def _imported(path: str) -> Any:
    """Return what ``package.module:function`` names. Raises UsageError."""
    if not is_import_path(path):
        raise UsageError(f"{path!r} is no import path: write package.module:function")
    module, _, names = path.partition(":")
    try:
        target: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # something that the module itself imports
        raise UsageError(
            f"{path!r}: there is no module {error.name!r} to import; is its folder on the path "
            "(pythonpath = in "
            "pytest's settings), or the package installed?"
        ) from None
    try:
        target = attrgetter(names)(target)
    except AttributeError:
        raise UsageError(f"{path!r}: {module} has no {names}") from None
    if not callable(target):
        raise UsageError(f"{path!r} is {type(target).__name__}, which cannot be called")
    return target


def _answer(call: Callable[[], Any]) -> Any:
    """Call, and join a generator's parts here in the thread, where it may block."""
    answer = call()
    if isinstance(answer, Iterator):
        return joined(list(answer))
    return answer


# ---------------------------------------------------------------- what kind of function it is


def _takes_conversation(function: Callable[..., Any], name: str) -> bool:
    """Return whether *function* has a parameter ``messages``. Raises UsageError where it cannot be
    called with one text.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-ins have no signature; they get the text
        return False
    taken = parameters.get("messages")
    if taken is None:
        taken = next(filter(_is_positional, parameters.values()), None)
    if taken is None:
        raise UsageError(f"{name} takes no text: give it one parameter for the prompt")
    required = [
        parameter.name
        for parameter in parameters.values()
        if parameter is not taken and _is_required(parameter)
    ]
    if required:
        raise UsageError(
            f"{name} needs {', '.join(required)} as well: give them defaults, or wrap it in a "
            "function of one text"
        )
    return "messages" in parameters


def _is_positional(parameter: inspect.Parameter) -> bool:
    """Return whether *parameter* can be given by its place."""
    return parameter.kind in (
        parameter.POSITIONAL_ONLY,
        parameter.POSITIONAL_OR_KEYWORD,
        parameter.VAR_POSITIONAL,
    )


def _is_required(parameter: inspect.Parameter) -> bool:
    """Return whether no call goes without *parameter*."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return False
    return parameter.default is parameter.empty


def _fingerprint(function: Any) -> str | None:
    """SHA-256 of the source and of what it was set up with, so that an edited application is
    another system.

    Set up with: the arguments of a partial, what a closure holds, the attributes of the instance
    whose method it is. What cannot be told apart by its text (an object that shows itself by its
    address) counts as its type. ``None`` where there is no source.
    """
    setup: list[Any] = []
    while isinstance(function, partial):
        setup += (function.args, sorted(function.keywords.items()))
        function = function.func
    function = inspect.unwrap(function)
    source = _source(function)
    if source is None:
        return None
    setup += (*_held_by(function), getattr(function, "__defaults__", None))
    parts = [source, *map(_shown, setup)]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _source(function: Any) -> str | None:
    """Return the source of *function*, or of the class of an instance; None without one."""
    if not inspect.isroutine(function):
        function = type(function)
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return None


def _held_by(function: Any) -> Iterator[Any]:
    """Yield the attributes of the instance that *function* is, or is a method of, and what its
    closure holds.
    """
    instance = getattr(function, "__self__", None)
    if instance is None and not inspect.isroutine(function):
        instance = function
    if instance is not None and not inspect.ismodule(instance):
        yield sorted(getattr(instance, "__dict__", {}).items())
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # a variable that is not bound yet
            yield cell.cell_contents


def _shown(value: Any) -> str:
    """Return the text by which *value* is told from others, without its address; else its type."""
    try:
        return _ADDRESS.sub("", repr(value))
    except Exception:  # noqa: BLE001 - somebody's __repr__ must not keep a run from starting
        return type(value).__qualname__


# ---------------------------------------------------------------- threads


class DaemonThreads:
    """Calls functions in up to *most* threads, which are started when needed and kept for the next
    call.

    The standard library's pool waits for all its threads when the interpreter ends, and one call
    that hangs would hold up the end of the session for ever.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads = 0
        self._idle = threading.Semaphore(0)
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()

    async def call(self, call: Callable[[], Any]) -> Any:
        """Return what *call* returns, in a thread with the caller's context. Cancelled before it
        began, it never is called.
        """
        future: Future[Any] = Future()
        self._calls.put((future, partial(copy_context().run, _answer, call)))
        if not self._idle.acquire(blocking=False) and self._threads < self._most:
            self._threads += 1
            threading.Thread(
                target=self._work, name=f"fairness-callable-{self._threads}", daemon=True
            ).start()
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        """Do calls until there is a None in the place of one."""
        while (task := self._calls.get()) is not None:
            future, call = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except StopIteration as error:  # which no future can carry
                    future.set_exception(RuntimeError(f"StopIteration: {error}"))
                except BaseException as error:  # noqa: BLE001 - it is the caller's, whatever it is
                    future.set_exception(error)
            self._idle.release()

    def close(self) -> None:
        """Cancel calls that have not begun; the threads end as theirs do, and nothing waits for
        them.
        """
        with contextlib.suppress(Empty):
            while (task := self._calls.get_nowait()) is not None:
                task[0].cancel()
        for _ in range(self._threads):
            self._calls.put(None)
