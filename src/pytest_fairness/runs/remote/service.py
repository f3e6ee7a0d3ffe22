"""The controller's end of the connection to one worker elsewhere: keeps the book in that worker's name."""

from __future__ import annotations

import contextlib
import importlib.metadata
import queue
import re
import threading
import time
from collections.abc import Callable
from typing import Any

from pytest_fairness.endpoints.protocol import Limits
from pytest_fairness.errors import FairnessError, StoreError
from pytest_fairness.model import Usage
from pytest_fairness.runs.money import Budget
from pytest_fairness.runs.rate_limits import Limiter
from pytest_fairness.runs.remote.messages import LONGEST, BadMessageError, Channel, decode, described, encode
from pytest_fairness.runs.shared_progress import Told
from pytest_fairness.runs.store import Retry, RunStore

_KEY = re.compile(r"[0-9a-f]{64}")
#: Records that a worker writes; those of a trial begin with its key, by which they are found again.
_KEYED = frozenset({"sent", "attempt", "trial", "use"})
_KINDS = _KEYED | {"design", "engine", "batch"}
_RESERVED = frozenset({"prev", "hash"})


class Service:
    """Answers one worker. *open_store* makes the store in its name, *greet* says what the worker must know before
    it needs one, *cap* is the session's (US dollars).

    All is done in one thread, in the order in which it arrived. Whatever ends the connection closes the store: the
    claims of a worker that died are free from then on, its reservations stand.
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
        self._budget: Budget | None = None
        self._limiters: dict[str, Limiter] = {}
        self._closed = False
        #: Trials whose request has left and whose answer is not here yet.
        self._under_way: set[str] = set()
        self._inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=f"pytest-fairness-{worker}", daemon=True)
        self._thread.start()

    def take(self, item: object) -> None:
        """What arrived: a message, or None when the connection has ended. Returns at once."""
        self._inbox.put(item)

    def halt(self) -> None:
        """Ask the worker to send nothing more; one that has closed its store has nothing to send."""
        if self._store is not None:
            self._send(encode({"halt": "the session that this worker belongs to has ended; nothing more is sent"}))

    def stop(self, grace: float) -> None:
        """Halt the worker, give it *grace* seconds to log what is under way, and close its store.

        It has no effect on a worker that has closed its store already.
        """
        until = time.monotonic() + grace
        self.halt()
        if self._store is not None:
            while self._under_way and time.monotonic() < until:
                self._thread.join(0.05)
        self._inbox.put(None)
        self._thread.join(5.0)

    # ------------------------------------------------------------ the thread

    def _serve(self) -> None:
        try:
            while not self._closed and (item := self._inbox.get()) is not None:
                self._answer(item)
        except BadMessageError as error:
            self._refuse(f"worker {self.worker} is served no more: {error}")
        finally:
            try:
                self._do_close()
            except FairnessError as error:
                self.trouble = str(error)

    def _refuse(self, why: str) -> None:
        self.trouble = why
        self._send(encode({"id": None, "error": described(StoreError(why))}))
        with contextlib.suppress(OSError):
            self._channel.close()

    def _answer(self, item: object) -> None:
        message = decode(item)
        number, do, arguments = message.get("id"), message.get("do"), message.get("with")
        method = getattr(self, f"_do_{do}", None) if isinstance(do, str) and do.isidentifier() else None
        if method is None or not isinstance(arguments, dict) or not (number is None or type(number) is int):
            raise BadMessageError(f"nobody asks {str(do)[:40]!r} in this version")
        try:
            answer = encode({"id": number, "value": method(**arguments)})
        except (FairnessError, OSError) as error:
            answer = encode({"id": number, "error": described(error)})
        except BadMessageError:
            raise
        except Exception as error:
            raise BadMessageError(f"{do} cannot be done so: {type(error).__name__}: {error}") from error
        else:
            if number is None:
                return
        self._send(answer)

    def _send(self, text: str) -> None:
        with contextlib.suppress(OSError):  # it has gone: that arrives here too, in its turn
            self._channel.send(text)

    @property
    def _opened(self) -> RunStore:
        if self._store is None:
            raise BadMessageError("there is no open store")
        return self._store

    # ------------------------------------------------------------ what a worker may ask

    def _do_hello(self, version: str) -> dict[str, Any]:
        ours = importlib.metadata.version("pytest-fairness")
        if version != ours:
            raise StoreError(
                f"worker {self.worker} has pytest-fairness {str(version)[:40]}, the controller {ours}: install the same"
            )
        return self._greet()

    def _do_open(self, host: str, pid: int) -> dict[str, Any]:
        if self._store is not None:
            raise BadMessageError("the store is open")
        store = self._store = self._open_store()
        self._budget = store.budget(self._cap)
        who = {"host": str(host)[:200], "pid": int(pid)}
        store.amend_manifest(lambda manifest: manifest.setdefault("elsewhere", {}).update({store.writer: who}))
        return {"directory": str(store.directory), "writer": store.writer, "notes": store.notes}

    def _do_records(self, keys: list[str]) -> list[dict[str, Any] | None]:
        """As many of them as fit into an answer, one at least."""
        found: list[dict[str, Any] | None] = []
        size = 0
        for record in self._opened.records(_keys(keys)):
            size += 8 if record is None else len(encode(record))
            if found and size > LONGEST // 8:
                break
            found.append(record)
        return found

    def _do_changed(self) -> bool:
        return self._opened.changed()

    def _do_count(self) -> int:
        return len(self._opened)

    def _do_claim(self, keys: list[str], unknown: bool, errors: bool) -> dict[str, Any]:
        claimed = self._opened.claim(_keys(keys), retry=Retry(unknown=unknown is True, errors=errors is True))
        return {"mine": claimed.mine, "busy": claimed.busy}

    def _do_release(self, keys: list[str]) -> None:
        self._opened.release(_keys(keys))

    def _do_designs(self) -> list[dict[str, Any]]:
        return [design.to_record() for design in self._opened.designs()]

    def _do_batch_records(self) -> list[dict[str, Any]]:
        return self._opened.batch_records()

    def _do_append(self, record: dict[str, Any]) -> None:
        kind = record["type"]
        if next(iter(record)) != "type" or kind not in _KINDS or record.keys() & _RESERVED:
            raise BadMessageError("a worker writes no such record")
        if kind in _KEYED and (list(record)[1] != "key" or not _KEY.fullmatch(record["key"])):
            raise BadMessageError("a record of a trial begins with its key")
        self._opened.append(record)
        if kind == "sent":
            self._under_way.add(record["key"])
        elif kind == "attempt":
            self._under_way.discard(record["key"])

    def _do_flush(self) -> None:
        self._opened.flush()

    def _do_cap(self) -> int | None:
        return self._money.cap

    def _do_reserve(self, amount: int) -> bool:
        return self._money.reserve(_count(amount))

    def _do_settle(self, reserved: int, cost: int) -> None:
        if _count(reserved) > self._money.reserved:
            raise BadMessageError("more is settled than was reserved")
        self._money.settle(reserved, _count(cost))

    def _do_leave(self, amount: int) -> None:
        if _count(amount) > self._money.reserved:
            raise BadMessageError("more is left than was reserved")
        self._money.leave(amount)

    def _do_adopt(self, amount: int) -> int:
        return self._money.adopt(_count(amount))

    def _do_account(self) -> dict[str, int]:
        account = self._money.account()
        return {"settled": account.settled, "reserved": account.reserved}

    @property
    def _money(self) -> Budget:
        if self._budget is None:
            raise BadMessageError("there is no open store")
        return self._budget

    def _do_limiter(self, identity: str, limits: dict[str, Any]) -> None:
        (identity,) = _keys([identity])
        if identity not in self._limiters:
            self._limiters[identity] = self._opened.limiter(identity, Limits(**limits))

    def _do_take(self, identity: str, tokens: int) -> float:
        return self._limiters[identity].take(_count(tokens))

    def _do_settle_turn(self, identity: str, tokens: int, usage: dict[str, int | None]) -> None:
        self._limiters[identity].settle(_count(tokens), Usage(**usage))

    def _do_progress(self, told: dict[str, Any]) -> None:
        with contextlib.suppress(StoreError):  # telling is no reason to fail
            self._opened.progress().leave(Told(**told))

    def _do_manifest(self) -> dict[str, Any]:
        return self._opened.manifest()

    def _do_replace_manifest(self, before: dict[str, Any], after: dict[str, Any]) -> bool:
        replaced = []
        if before.get("logs") != after.get("logs"):
            raise BadMessageError("the heads of the logs are the controller's to write")

        def change(manifest: dict[str, Any]) -> None:
            if manifest == before:
                manifest.clear()
                manifest.update(after)
                replaced.append(True)

        self._opened.amend_manifest(change)
        return bool(replaced)

    def _do_close(self) -> None:
        self._closed = True
        store, self._store = self._store, None
        for limiter in self._limiters.values():
            limiter.close()
        if self._budget is not None:
            self._budget.close()
        if store is not None:
            store.close()


def _keys(keys: list[str]) -> list[str]:
    if not isinstance(keys, list) or not all(isinstance(key, str) and _KEY.fullmatch(key) for key in keys):
        raise BadMessageError("a key is 64 hexadecimal digits")
    return keys


def _count(amount: int) -> int:
    if type(amount) is not int or amount < 0:
        raise BadMessageError(f"{str(amount)[:40]} is no amount")
    return amount
