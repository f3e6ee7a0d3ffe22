"""A run whose folder is on the disk of another machine: the worker asks, the controller keeps the
record.

The two talk over the connection that pytest-xdist has opened between them anyway: the operations of
the store are the messages, JSON and limited in size. The worker's :class:`Line` sends them; the
controller's :class:`Service` has them done by a store of the ordinary kind, opened in the worker's
name.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.metadata
import itertools
import os
import queue
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from pytest_fairness.errors import BudgetError, EndpointError, FairnessError, StoreError, UsageError
from pytest_fairness.runs.database import Append, Flush, Operation, Read
from pytest_fairness.runs.lines import decode_line
from pytest_fairness.runs.money import Reserve, Settle
from pytest_fairness.runs.rate_limits import Take
from pytest_fairness.runs.reader import Find
from pytest_fairness.runs.store import Claim, ExchangeManifest, Release, RunStore

#: Characters of one message. A record holds the bytes of one reply, which endpoints cut at 10 MB.
LONGEST = 64 * 2**20
#: Errors that keep their class on the way; any other arrives as a StoreError.
_CLASSES: dict[str, type[FairnessError]] = {
    kind.__name__: kind for kind in (StoreError, BudgetError, UsageError, EndpointError)
}
#: How records begin that a worker writes; those of a trial with its key, by which they are found
#: again.
_WRITTEN = re.compile(
    r'\{"type":"(?:(sent|attempt|trial|use)","key":"([0-9a-f]{64})"|(?:design|endpoint|engine|batch|judgement)")'
)
#: Seconds without a word after which a halted worker is taken to have logged what it had to.
_QUIET = 0.5
_LOST = (
    "the connection to pytest-xdist's controller is lost, and with it the run's log: nothing more "
    "is asked here; "
    "what the controller has logged is kept"
)
_HALT = "the session that this worker belongs to has ended; nothing more is sent"


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
    Append | Claim | CloseStore | ExchangeManifest | Find | Flush | Hello | OpenStore | Read | Release
    | Reserve | Settle | Take
)  # fmt: skip


class StoreMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a worker sends; without a number nobody waits for the answer."""

    number: int | None
    operation: AnyOperation


class StoreResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the controller sends: a *value*, an *error* (its class, and what it says), or *halt*:
    send nothing more.
    """

    number: int | None = None
    value: Any = None
    error: tuple[str, str] | None = None
    halt: str | None = None


class BadMessageError(ValueError):
    """What arrived is no message of this protocol; the text says why."""


def encode(message: StoreMessage | StoreResponse) -> str:
    """*message* as it is sent. Raises StoreError for one that is too long."""
    text = msgspec.json.encode(message).decode()
    if len(text) > LONGEST:
        raise StoreError(
            f"a message of {len(text)} characters is longer than {LONGEST}, and is not sent: log "
            "less"
        )
    return text


def decode(item: object, kind: Any) -> Any:
    """The message that *item* holds, a *kind*. Raises BadMessageError."""
    if not isinstance(item, str) or len(item) > LONGEST:
        size = ""
        if isinstance(item, str):
            size = f" of {len(item)} characters; the longest allowed is {LONGEST}"
        raise BadMessageError(f"not a message: {type(item).__name__}{size}")
    try:
        return msgspec.json.decode(item, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadMessageError(f"not a message of this version: {error}") from error


def _described(error: BaseException) -> tuple[str, str]:
    text = ""
    if isinstance(error, FairnessError):
        text = type(error).__name__
    return text, str(error) if text else f"{type(error).__name__}: {error}"


def _raised(described: tuple[str, str]) -> FairnessError:
    name, text = described
    return _CLASSES.get(name, StoreError)(text)


# ---------------------------------------------------------------- the worker's side


def open_remote(line: Line) -> RunStore:
    """The run of the controller at the other end of *line*, written in this worker's name."""
    opened = line.submit(OpenStore(host=socket.gethostname(), pid=os.getpid())).result()
    return RunStore(
        line, Path(opened["directory"]), opened["writer"], opened["notes"], introduced=True
    )


class Line:
    """Has operations done by the controller over *channel*; thread safe.

    The channel is execnet's: what is sent arrives whole, in order, or not at all; OSError says that
    it is closed.

    Once it is closed, or a record is refused, nothing more is sent: every later question raises
    that error, as nothing must be paid for that cannot be recorded.
    """

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._numbers = itertools.count(1)
        self._waiting: dict[int | None, Future[Any]] = {}
        self._broken: FairnessError | None = None
        self._closed = False
        #: Why nothing more is to be asked.
        self._over: Future[str] = Future()
        channel.setcallback(self._received, endmarker=None)

    def append(self, body: str) -> None:
        self._send(StoreMessage(None, Append(body)))

    def submit(self, operation: Any) -> Future[Any]:
        number = next(self._numbers)
        future = Future[Any]()
        self._waiting[number] = future
        self._send(StoreMessage(number, operation))
        return future

    def done(self, operation: Operation) -> asyncio.Future[Any]:
        return asyncio.wrap_future(self.submit(operation))

    def when_over(self, listener: Callable[[str], None]) -> None:
        """Have *listener* called, with the reason, when nothing more is to be asked: because the
        controller says so, or cannot be reached. It is called at once if that was before.
        """

        def hand_on(over: Future[str]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop of an engine that is closing
                listener(over.result())

        self._over.add_done_callback(hand_on)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self.submit(CloseStore()).result()
        finally:
            self._broken = self._broken or StoreError("the store is closed")
            with contextlib.suppress(OSError):
                self._channel.close()

    def _send(self, message: StoreMessage) -> None:
        if (
            self._broken is not None
        ):  # one of its own for each asker, as each raises it with its own traceback
            raise type(self._broken)(str(self._broken))
        text = encode(message)
        try:
            self._channel.send(text)
        except OSError:
            raise self._break(StoreError(_LOST)) from None

    def _received(self, item: object) -> None:
        try:
            response: StoreResponse = (
                StoreResponse(error=("", _LOST)) if item is None else decode(item, StoreResponse)
            )
        except BadMessageError as error:
            response = StoreResponse(
                error=("", f"pytest-xdist's controller sent no answer of this version: {error}")
            )
        future = self._waiting.pop(response.number, None)
        if response.halt is not None:
            self._end(response.halt)
        elif response.error is None:
            if future is not None:
                future.set_result(response.value)
        elif future is not None:
            future.set_exception(_raised(response.error))
        else:
            self._break(_raised(response.error))

    def _break(self, error: FairnessError) -> FairnessError:
        """Ask nothing more, because of *error*, of which all who wait get one of their own."""
        self._broken = self._broken or error
        waiting = self._waiting
        self._waiting = {}
        for future in waiting.values():
            with contextlib.suppress(Exception):  # its asker has just given up
                future.set_exception(type(error)(str(error)))
        self._end(str(error))
        return type(error)(str(error))

    def _end(self, why: str) -> None:
        with contextlib.suppress(InvalidStateError):  # it was over before
            self._over.set_result(why)


# ---------------------------------------------------------------- the controller's side


class Service:
    """Serves one worker. *open_store* makes the store in its name, *greet* says what the worker
    must know before it needs one, *cap* is the session's (US dollars).

    All is done in the order in which it arrived. Whatever ends the connection closes the store: the
    claims of a worker that died are free from then on, its reservations stand.
    """

    def __init__(
        self,
        channel: Any,
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
        #: Trials whose request has left and whose answer is not here yet.
        self._under_way: set[str] = set()
        self._received = 0.0
        self._inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._serve, name=f"pytest-fairness-{worker}", daemon=True
        )
        self._thread.start()

    def take(self, item: object) -> None:
        """What arrived: a message, or None when the connection has ended. Returns at once."""
        self._received = time.monotonic()
        self._inbox.put(item)

    def halt(self) -> None:
        """Ask the worker to send nothing more; one that has closed its store has nothing to send."""
        if self._store is not None:
            self._send(StoreResponse(halt=_HALT))

    def stop(self, grace: float) -> None:
        """Halt the worker, give it *grace* seconds to log what is under way, and close its store."""
        until = time.monotonic() + grace
        self.halt()
        while self._store is not None and (now := time.monotonic()) < until:
            if not self._under_way and now - self._received > _QUIET:
                break
            self._thread.join(0.05)
        self._inbox.put(None)
        self._thread.join(5.0)

    def _serve(self) -> None:
        try:
            while (item := self._inbox.get()) is not None:
                message = decode(item, StoreMessage)
                if type(message.operation) is Append:
                    self._append(message.operation.body)
                    continue
                self._result(message.operation).add_done_callback(
                    functools.partial(self._reply, message.number)
                )
                if type(message.operation) is CloseStore:
                    return
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

    def _result(self, operation: AnyOperation) -> Future[Any]:
        result: Future[Any] = Future()
        encoders: dict[type, Callable[[Any], Any]] = {
            Hello: self._hello,
            OpenStore: self._open,
            CloseStore: self._close,
        }
        try:
            if type(operation) in encoders:
                result.set_result(encoders[type(operation)](operation))
            else:
                if isinstance(
                    operation, Reserve
                ):  # what a worker believes the cap to be is of no interest
                    operation = msgspec.structs.replace(
                        operation, cap=self._opened.budget(self._cap).cap
                    )
                return self._opened.database.submit(operation)
        except (FairnessError, OSError) as error:
            result.set_exception(error)
        return result

    def _reply(self, number: int | None, result: Future[Any]) -> None:
        try:
            self._send(StoreResponse(number, result.result()))
        except Exception as error:  # noqa: BLE001 - raised where it was asked for, too long an answer included
            self._send(StoreResponse(number, error=_described(error)))

    def _send(self, answer: StoreResponse) -> None:
        text = encode(answer)
        with contextlib.suppress(OSError):  # it is closed: that arrives here too, in its turn
            self._channel.send(text)

    @property
    def _opened(self) -> RunStore:
        if self._store is None:
            raise BadMessageError("there is no open store")
        return self._store

    def _hello(self, hello: Hello) -> dict[str, Any]:
        ours = importlib.metadata.version("pytest-fairness")
        its = hello.version[:40]
        if its != ours:
            raise StoreError(
                f"worker {self.worker} has pytest-fairness {its}, the controller {ours}: install "
                "the same"
            )
        return self._greet()

    def _open(self, opening: OpenStore) -> dict[str, Any]:
        if self._store is not None:
            raise BadMessageError("the store is open")
        store = self._store = self._open_store()
        who = {"host": opening.host[:200], "pid": opening.pid}
        store.amend_manifest(
            lambda manifest: manifest.setdefault("remote", {}).update({store.writer: who})
        )
        return {"directory": str(store.directory), "writer": store.writer, "notes": store.notes}

    def _append(self, body: str) -> None:
        begins = _WRITTEN.match(body)
        try:
            record = decode_line(body)
            if begins is None or record.keys() & {"prev", "hash"}:
                raise BadMessageError("a worker writes no such record")
            self._opened.append(record)
        except ValueError as error:  # also a number that JSON does not know
            raise BadMessageError(f"no record: {error}") from error
        if begins[1] == "sent":
            self._under_way.add(begins[2])
        elif begins[1] == "attempt":
            self._under_way.discard(begins[2])

    def _close(self, _: CloseStore | None = None) -> None:
        store = self._store
        self._store = None
        if store is not None:
            store.close()
