"""A run whose folder is on the disk of another machine: the worker asks, the controller keeps the record.

The two talk over the connection that pytest-xdist has opened between them anyway: the operations of the store are the
messages, JSON and limited in size. The worker's :class:`RemoteStore` sends them; the controller's :class:`Service` has
them done by a store of the ordinary kind, opened in the worker's name.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import itertools
import json
import os
import queue
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeAlias

import msgspec

from pytest_fairness import errors
from pytest_fairness.errors import FairnessError, StoreError
from pytest_fairness.runs.database import Append, Flush, Operation
from pytest_fairness.runs.money import ReadAccount, Reserve, Settle
from pytest_fairness.runs.rate_limits import Correct, Take
from pytest_fairness.runs.shared_progress import Report
from pytest_fairness.runs.store import (
    Claim,
    Count,
    Find,
    FindType,
    Look,
    ReadManifest,
    Release,
    ReplaceManifest,
    RunStore,
)

#: Characters of one message. A record holds the bytes of one reply, which endpoints cut at 10 MB.
LONGEST = 64 * 2**20
#: Errors that keep their class on the way; any other arrives as a StoreError.
_CLASSES = ("StoreError", "BudgetError", "UsageError", "EndpointError")
_KEY = re.compile(r"[0-9a-f]{64}")
#: Records that a worker writes; those of a trial begin with its key, by which they are found again.
_KEYED = frozenset({"sent", "attempt", "trial", "use"})
_KINDS = _KEYED | {"design", "engine", "batch"}
#: Seconds without a word after which a halted worker is taken to have logged what it had to.
_QUIET = 0.5
_LOST = (
    "the connection to pytest-xdist's controller is lost, and with it the run's log: nothing more is asked here; "
    "what the controller has logged is kept"
)


class Hello(Operation):
    """What the worker must know before it needs a store."""

    version: str


class OpenStore(Operation):
    """Open the store in the worker's name."""

    host: str
    pid: int


class CloseStore(Operation):
    """Close it."""


AnyOperation: TypeAlias = (
    Append | Claim | CloseStore | Correct | Count | Find | FindType | Flush | Hello | Look | OpenStore | ReadAccount
    | ReadManifest | Release | ReplaceManifest | Report | Reserve | Settle | Take
)  # fmt: skip


class StoreMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a worker sends; without a number nobody waits for the answer."""

    number: int | None
    operation: AnyOperation


class StoreResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the controller sends: a *value*, an *error* (its class, and what it says), or *halt*: send nothing more."""

    number: int | None = None
    value: Any = None
    error: tuple[str, str] | None = None
    halt: str | None = None


class BadMessageError(ValueError):
    """What arrived is no message of this protocol; the text says why."""


class Channel(Protocol):
    """The part of execnet's channel that is used. What is sent arrives whole, in order, or not at all."""

    def send(self, item: str, /) -> None:
        """Send, from any thread. Raises OSError where the connection is closed."""

    def setcallback(self, callback: Any, /, endmarker: object) -> None:
        """Hand all that arrives to *callback*, in a thread of the connection; *endmarker* when it has closed."""

    def close(self) -> None:
        """Close it, for both sides."""


def encode(message: StoreMessage | StoreResponse) -> str:
    """*message* as it is sent. Raises StoreError for one that is too long."""
    text = msgspec.json.encode(message).decode()
    if len(text) > LONGEST:
        raise StoreError(
            f"a message of {len(text)} characters is longer than {LONGEST}, and is not sent: log less of it"
        )
    return text


def decode(item: object, kind: Any) -> Any:
    """The message that *item* holds, a *kind*. Raises BadMessageError."""
    if not isinstance(item, str):
        raise BadMessageError(f"a message is text, not {type(item).__name__}")
    if len(item) > LONGEST:
        raise BadMessageError(f"a message of {len(item)} characters; the longest allowed is {LONGEST}")
    try:
        return msgspec.json.decode(item, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadMessageError(f"not a message of this version: {error}") from error


def _described(error: BaseException) -> tuple[str, str]:
    known = type(error).__name__ if isinstance(error, FairnessError) else ""
    return known, str(error) if known else f"{type(error).__name__}: {error}"


def _raised(described: tuple[str, str]) -> FairnessError:
    name, text = described
    kind: type[FairnessError] = getattr(errors, name) if name in _CLASSES else StoreError
    return kind(text)


# ---------------------------------------------------------------- the worker's side


class Line:
    """Sends operations to the controller over *channel*; thread safe. *patience*: seconds to wait for an answer.

    Once an answer is missing, or a record is refused, nothing more is sent: every later question raises that error, as
    nothing must be paid for that cannot be recorded.
    """

    def __init__(self, channel: Channel, *, patience: float = 120.0) -> None:
        self.patience = patience
        self._channel = channel
        self._numbers = itertools.count(1)
        self._mutex = threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self._broken: FairnessError | None = None
        self._over: str | None = None
        self._listeners: list[Callable[[str], None]] = []
        channel.setcallback(self._received, endmarker=None)

    def send(self, operation: Any) -> Future[Any]:
        """Have the controller do *operation*; what it answers. Raises StoreError where it cannot be reached."""
        number, future = next(self._numbers), Future[Any]()
        with self._mutex:
            self._refuse_if_broken()
            self._waiting[number] = future
        self._send(StoreMessage(number, operation))
        return future

    def post(self, operation: Any) -> None:
        """Have *operation* done without an answer; an error of it ends the line."""
        self._refuse_if_broken()
        self._send(StoreMessage(None, operation))

    def ask(self, operation: Any) -> Any:
        """What the controller answers. Raises what it raised, or StoreError where no answer comes."""
        try:
            return self.send(operation).result(self.patience)
        except FutureTimeout:
            raise self.too_late(operation) from None

    def too_late(self, operation: Any) -> StoreError:
        """The error of an answer that has not come: nothing more is asked."""
        name = type(operation).__name__
        why = (
            f"pytest-xdist's controller did not answer ({name}) within {self.patience:g} s: nothing more is asked here"
        )
        self._break(StoreError(why))
        return StoreError(why)

    def when_over(self, listener: Callable[[str], None]) -> None:
        """Have *listener* called, with the reason, when nothing more is to be asked: because the controller says so,
        or cannot be reached. It is called at once if that was before.
        """
        with self._mutex:
            self._listeners.append(listener)
            over = self._over
        if over is not None:
            listener(over)

    def close(self) -> None:
        """Nothing more is sent. May be called twice."""
        with self._mutex:
            self._listeners.clear()
            self._broken = self._broken or StoreError("the store is closed")
        with contextlib.suppress(OSError):
            self._channel.close()

    def _refuse_if_broken(self) -> None:
        if self._broken is not None:  # one of its own for each asker, as each raises it with its own traceback
            raise type(self._broken)(str(self._broken))

    def _send(self, question: StoreMessage) -> None:
        text = encode(question)
        try:
            self._channel.send(text)
        except OSError:
            self._break(StoreError(_LOST))
            raise StoreError(_LOST) from None

    def _received(self, item: object) -> None:
        if item is None:
            self._break(StoreError(_LOST))
            return
        try:
            answer: StoreResponse = decode(item, StoreResponse)
        except BadMessageError as error:
            self._break(StoreError(f"pytest-xdist's controller sent no answer of this version: {error}"))
            return
        if answer.halt is not None:
            self._end(answer.halt)
            return
        future = self._waiting.pop(answer.number or 0, None)
        if answer.error is not None and future is None:
            self._break(_raised(answer.error))
        elif answer.error is not None and future is not None:
            future.set_exception(_raised(answer.error))
        elif future is not None:
            future.set_result(answer.value)

    def _break(self, error: FairnessError) -> None:
        with self._mutex:
            self._broken = self._broken or error
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for future in waiting:
            with contextlib.suppress(Exception):  # its asker has just given up
                future.set_exception(type(error)(str(error)))
        self._end(str(error))

    def _end(self, why: str) -> None:
        with self._mutex:
            listeners = [] if self._over is not None else list(self._listeners)
            self._over = self._over or why
        for listener in listeners:
            with contextlib.suppress(RuntimeError):  # the loop of an engine that is closing
                listener(why)


class RemoteStore(RunStore):
    """The run of the controller at the other end of *line*, written in this worker's name.

    What must be known before a request leaves is answered by the controller when it is on its disk: claims, money, and
    that the request is about to leave.
    """

    def __init__(self, line: Line) -> None:  # nothing of a store's own: there is no folder here
        self._line = line
        opened = line.ask(OpenStore(host=socket.gethostname(), pid=os.getpid()))
        self.directory = Path(opened["directory"])
        self.writer = opened["writer"]
        self.notes = list(opened["notes"])
        self._closed = False
        self._begin()
        self._introduced = True  # the controller's store introduces itself
        self._look()

    def submit(self, operation: Operation) -> Future[Any]:
        return self._line.send(operation)

    def ask(self, operation: Operation) -> Any:
        return self._line.ask(operation)

    def done(self, operation: Operation) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future = asyncio.wrap_future(self._line.send(operation))
        too_late = loop.call_later(self._line.patience, self._line.too_late, operation)
        future.add_done_callback(lambda _: too_late.cancel())
        return future

    def _append(self, body: str) -> None:
        self._line.post(Append(body))

    def finish(self, **fields: Any) -> None:  # noqa: ARG002 - as every store has it
        raise StoreError(f"run {self.directory.name} is ended by the controller alone")

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            try:
                self._line.ask(CloseStore())
            finally:
                self._line.close()


# ---------------------------------------------------------------- the controller's side


class Service:
    """Serves one worker. *open_store* makes the store in its name, *greet* says what the worker must know before
    it needs one, *cap* is the session's (US dollars).

    All is done in the order in which it arrived. Whatever ends the connection closes the store: the claims of a worker
    that died are free from then on, its reservations stand.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        worker: str,
        open_store: Callable[[], RunStore],
        greet: Callable[[], dict[str, Any]],
        cap: float | None,
    ) -> None:
        self.worker = worker
        #: Why the store could not be closed, or the worker not be served.
        self.trouble: str | None = None
        self._channel = channel
        self._open_store = open_store
        self._greet = greet
        self._cap = cap
        self._store: RunStore | None = None
        self._closed = False
        #: Trials whose request has left and whose answer is not here yet.
        self._under_way: set[str] = set()
        self._heard = 0.0
        self._inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=f"pytest-fairness-{worker}", daemon=True)
        self._thread.start()

    def take(self, item: object) -> None:
        """What arrived: a message, or None when the connection has ended. Returns at once."""
        self._heard = time.monotonic()
        self._inbox.put(item)

    def halt(self) -> None:
        """Ask the worker to send nothing more; one that has closed its store has nothing to send."""
        if self._store is not None:
            self._send(StoreResponse(halt="the session that this worker belongs to has ended; nothing more is sent"))

    def stop(self, grace: float) -> None:
        """Halt the worker, give it *grace* seconds to log what is under way, and close its store."""
        until = time.monotonic() + grace
        self.halt()
        while self._store is not None and time.monotonic() < until and (self._under_way or not self._quiet()):
            self._thread.join(0.05)
        self._inbox.put(None)
        self._thread.join(5.0)

    def _quiet(self) -> bool:
        """Whether the worker has said all that it had to say of what was under way."""
        return time.monotonic() - self._heard > _QUIET

    def _serve(self) -> None:
        try:
            while not self._closed and (item := self._inbox.get()) is not None:
                self._answer(decode(item, StoreMessage))
        except (BadMessageError, FairnessError) as error:
            self.trouble = f"worker {self.worker} is served no more: {error}"
            self._send(StoreResponse(error=("StoreError", self.trouble)))
            with contextlib.suppress(OSError):
                self._channel.close()
        finally:
            try:
                self._close()
            except FairnessError as error:
                self.trouble = str(error)

    def _answer(self, question: StoreMessage) -> None:
        operation = question.operation
        local: dict[type, Callable[[Any], Any]] = {Hello: self._hello, OpenStore: self._open, CloseStore: self._close}
        if type(operation) is Append:
            self._append(operation.body)
        elif type(operation) in local:
            result: Future[Any] = Future()
            try:
                result.set_result(local[type(operation)](operation))
            except (FairnessError, OSError) as error:
                result.set_exception(error)
            self._reply(question.number, result)
        else:
            if isinstance(operation, Reserve):  # what a worker believes the cap to be is of no interest
                operation = msgspec.structs.replace(operation, cap=self._opened.budget(self._cap).cap)
            done = self._opened.submit(operation)
            done.add_done_callback(lambda future: self._reply(question.number, future))

    def _reply(self, number: int | None, future: Future[Any]) -> None:
        error = future.exception()
        try:
            self._send(
                StoreResponse(number, future.result())
                if error is None
                else StoreResponse(number, error=_described(error))
            )
        except StoreError as long:
            self._send(StoreResponse(number, error=_described(long)))

    def _send(self, answer: StoreResponse) -> None:
        text = encode(answer)
        with contextlib.suppress(OSError):  # it has gone: that arrives here too, in its turn
            self._channel.send(text)

    @property
    def _opened(self) -> RunStore:
        if self._store is None:
            raise BadMessageError("there is no open store")
        return self._store

    def _hello(self, hello: Hello) -> dict[str, Any]:
        ours = importlib.metadata.version("pytest-fairness")
        if hello.version != ours:
            raise StoreError(
                f"worker {self.worker} has pytest-fairness {hello.version[:40]}, the controller {ours}: install the "
                "same"
            )
        return self._greet()

    def _open(self, opening: OpenStore) -> dict[str, Any]:
        if self._store is not None:
            raise BadMessageError("the store is open")
        store = self._store = self._open_store()
        who = {"host": opening.host[:200], "pid": opening.pid}
        store.amend_manifest(lambda manifest: manifest.setdefault("elsewhere", {}).update({store.writer: who}))
        return {"directory": str(store.directory), "writer": store.writer, "notes": store.notes}

    def _append(self, body: str) -> None:
        try:
            record = json.loads(body, parse_constant=_no_constant)
            kind, key = record["type"], record.get("key")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadMessageError(f"no record: {error}") from error
        if next(iter(record)) != "type" or kind not in _KINDS or record.keys() & {"prev", "hash"}:
            raise BadMessageError("a worker writes no such record")
        if kind in _KEYED and (list(record)[1] != "key" or not isinstance(key, str) or not _KEY.fullmatch(key)):
            raise BadMessageError("a record of a trial begins with its key")
        self._opened.append(record)
        if kind == "sent":
            self._under_way.add(str(key))
        elif kind == "attempt":
            self._under_way.discard(str(key))

    def _close(self, _: CloseStore | None = None) -> None:
        self._closed = True
        store, self._store = self._store, None
        if store is not None:
            store.close()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
