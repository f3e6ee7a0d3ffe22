"""A Python callable as the system under test: sync, async or a generator; one text, or the whole conversation.

A parameter called ``messages`` gets the conversation as a list of ``{"role": …, "content": …}``; otherwise
the only required parameter gets the last user message. A sync function runs in a thread, with the context
variables of the caller, so that it may block. Whatever it raises is an outcome of the trial, never a crash of
the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import importlib
import inspect
import re
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextvars import copy_context
from typing import Any

from pytest_fairness.endpoints.ambient import answering
from pytest_fairness.endpoints.daemon_threads import DaemonThreads
from pytest_fairness.endpoints.protocol import Price, Reply, Request
from pytest_fairness.endpoints.redaction import redact
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Status

# Threads cannot be stopped; beyond this many calls at once the rest wait for one to end.
_THREADS = 64
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_IMPORT_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class CallableEndpoint:
    """Asks a function. See :func:`callable_endpoint`."""

    type = "callable"
    simulated = False

    def __init__(self, function: Callable[..., Any], *, name: str | None = None) -> None:
        self._function = function
        self._whole = _takes_conversation(function)
        self._asynchronous = _is_async(function)
        self._identity: dict[str, JSON] = {
            "type": self.type,
            "function": _qualified_name(function),
            "source": _fingerprint(function),
        }
        self._pool: DaemonThreads | None = None
        self.name = name or _qualified_name(function).rpartition(":")[2]
        # A function of one text never sees a system prompt, nor the turns before, so it cannot be tested with them.
        self.supports_system_prompt = self.supports_conversation = self._whole
        self.default_parameters: Mapping[str, JSON] = {}
        self.price: Price | None = Price(input_per_million=0.0, output_per_million=0.0)

    def identity(self) -> dict[str, JSON]:
        return dict(self._identity)

    async def ask(self, request: Request) -> Reply:
        argument: Any = request.messages[-1].content
        if self._whole:
            # Fresh dictionaries each time: what the function does to them is its own affair.
            argument = [{"role": message.role, "content": message.content} for message in request.messages]
        try:
            with answering(request) as here:
                answer = await self._call(argument)
        except asyncio.CancelledError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - sys.exit() in the application must not end the run
            said = redact(f"{type(error).__name__}: {error}")
            return Reply(text=None, status=Status.ERROR, error=f"{self.name} raised {said}")
        if not isinstance(answer, str):
            return Reply(
                text=None,
                status=Status.MALFORMED,
                error=f"{self.name} returned {type(answer).__name__}, not a str: return the text of the reply",
            )
        if not answer.strip():
            return Reply(text=None, status=Status.EMPTY, error=f"{self.name} returned an empty text")
        return Reply(text=answer, simulated=here.simulated)

    async def aclose(self) -> None:
        """Let go of the threads, without waiting for calls that never return."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    async def _call(self, argument: Any) -> Any:
        call = functools.partial(self._function, messages=argument) if self._whole else None
        bound = call if call is not None else functools.partial(self._function, argument)
        answer = bound() if self._asynchronous else await self._in_thread(bound)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, AsyncIterator):
            return _joined([part async for part in answer])
        return answer

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        if self._pool is None:
            self._pool = DaemonThreads(_THREADS, name="fairness-callable")
        context = copy_context()
        return await asyncio.wrap_future(self._pool.submit(lambda: context.run(_finish, call)))


def callable_endpoint(function: Callable[..., Any] | str, *, name: str | None = None) -> CallableEndpoint:
    """*function* as an endpoint; a text is the import path of one, ``"my_app.letters:write"``, imported now.

    Raises UsageError if there is no such function, or it cannot be called with one text or with ``messages``.
    """
    if isinstance(function, str):
        function = imported(function)
    if not callable(function):
        raise UsageError(f"{function!r} is not callable: give a function that takes a text and returns the reply")
    return CallableEndpoint(function, name=name)


def is_import_path(text: str) -> bool:
    """Whether *text* looks like ``package.module:function``."""
    return _IMPORT_PATH.fullmatch(text) is not None


def imported(path: str) -> Callable[..., Any]:
    """What *path* names. An error within the module is raised as it is; UsageError for all else."""
    if not is_import_path(path):
        raise UsageError(f"{path!r} is no import path: write package.module:function")
    module, _, names = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # something that the module itself imports
        raise UsageError(
            f"{path!r}: there is no module {error.name!r} to import; is its folder on the path (pythonpath = in "
            "pytest's settings), or the package installed?"
        ) from None
    for name in names.split("."):
        if not hasattr(found, name):
            raise UsageError(f"{path!r}: {module} has no {names}")
        found = getattr(found, name)
    if not callable(found):
        raise UsageError(f"{path!r} is {type(found).__name__}, which cannot be called")
    function: Callable[..., Any] = found
    return function


def _finish(call: Callable[[], Any]) -> Any:
    """Call, and join a generator's parts here in the thread, where it may block."""
    try:
        answer = call()
        return _joined(list(answer)) if isinstance(answer, Iterator) else answer
    except StopIteration as error:
        # A future cannot carry StopIteration.
        raise RuntimeError(f"StopIteration: {error}") from error


def _joined(parts: list[Any]) -> Any:
    """The text that the parts make together; the first part that is no text, so that it gets reported."""
    for part in parts:
        if not isinstance(part, str):
            return part
    return "".join(parts)


def _is_async(function: Callable[..., Any]) -> bool:
    plain = inspect.unwrap(_innermost(function))
    call = plain if inspect.isroutine(plain) else getattr(plain, "__call__", plain)  # noqa: B004 - not a test
    return inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _takes_conversation(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some built-ins have no signature; they get the text
        return False
    if "messages" in parameters:
        required = [p.name for p in parameters.values() if _required(p) and p.name != "messages"]
    else:
        positional = [p for p in parameters.values() if p.kind in (*_POSITIONAL, inspect.Parameter.VAR_POSITIONAL)]
        if not positional:
            raise UsageError(f"{_qualified_name(function)} takes no text: give it one parameter for the prompt")
        required = [p.name for p in parameters.values() if _required(p) and p is not positional[0]]
    if required:
        raise UsageError(
            f"{_qualified_name(function)} needs {', '.join(required)} as well: give them defaults, or wrap it in "
            "a function of one text"
        )
    return "messages" in parameters


def _required(parameter: inspect.Parameter) -> bool:
    named = parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return named and parameter.default is inspect.Parameter.empty


def _qualified_name(function: Any) -> str:
    plain = _innermost(function)
    owner = plain if hasattr(plain, "__qualname__") else type(plain)
    return f"{getattr(owner, '__module__', None) or 'builtins'}:{owner.__qualname__}"


def _fingerprint(function: Any) -> str | None:
    """SHA-256 of the source and of what it was set up with, so that an edited application is another system.

    Set up with: the arguments of a partial, what a closure holds, the attributes of the instance whose method
    it is. What cannot be told apart by its text (an object that shows itself by its address) counts as its
    type. ``None`` where there is no source.
    """
    plain = inspect.unwrap(_innermost(function))
    owner = plain if inspect.isroutine(plain) else type(plain)
    try:
        source = textwrap.dedent(inspect.getsource(owner))
    except (OSError, TypeError):
        return None
    parts = [source, *map(_told, _setup(function))]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _setup(function: Any) -> Iterator[Any]:
    while isinstance(function, functools.partial):
        yield function.args
        yield sorted(function.keywords.items())
        function = function.func
    function = inspect.unwrap(function)
    instance = getattr(function, "__self__", None if inspect.isroutine(function) else function)
    if instance is not None and not inspect.ismodule(instance):
        yield sorted(getattr(instance, "__dict__", {}).items())
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # a variable that is not bound yet
            yield cell.cell_contents
    yield getattr(function, "__defaults__", None)


def _told(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - somebody's __repr__ must not keep a run from starting
        return type(value).__qualname__
    return _ADDRESS.sub("", text)
