"""A plugin (``-p tests.faults.killing``) that kills its session at a named point, as the system would.

``KILL_AT=point:nth`` names it: ``before-send`` (the intent is logged), ``after-send`` (the request has left),
``before-append``, ``mid-append`` (half of the answer's record is written), ``after-append``, ``mid-rename`` (the
manifest that says *finished* is written beside the old one, and not in its place). With ``KILL_ONCE=file`` the first
process that gets there dies, and the others live.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from pytest_fairness.endpoints.protocol import Request
from pytest_fairness.engine.attempt import Asker
from pytest_fairness.runs import files
from pytest_fairness.runs.store import RunStore

POINTS = ("before-send", "after-send", "before-append", "mid-append", "after-append", "mid-rename")
_point, _, _nth = os.environ.get("KILL_AT", ":0").partition(":")
_left = int(_nth)


def _passing(point: str) -> bool:
    global _left  # noqa: PLW0603 - one process, one count
    if point == _point:
        _left -= 1
    return point == _point and _left == 0 and _first()


def _first() -> bool:
    once = os.environ.get("KILL_ONCE")
    try:
        return once is None or not Path(once).touch(exist_ok=False)
    except FileExistsError:
        return False


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _here(point: str) -> None:
    if _passing(point):
        _die()


_append, _write_all, _replace, _ask = RunStore.append, files.write_all, Path.replace, Asker._ask


async def _dying_ask(self: Asker, request: Request, limit: float) -> Any:
    if not _passing("after-send"):
        return await _ask(self, request, limit)
    asking = asyncio.ensure_future(_ask(self, request, limit))
    await asyncio.wait([asking], timeout=0.2)
    _die()
    return await asking


def _dying_append(self: RunStore, record: dict[str, Any]) -> None:
    if record["type"] == "attempt":
        _here("before-append")
    _append(self, record)
    if record["type"] == "sent":
        _here("before-send")
    if record["type"] == "attempt":
        _here("after-append")


def _dying_write(descriptor: int, data: bytes, path: Path) -> None:
    if data.startswith(b'{"type":"attempt"') and _passing("mid-append"):
        os.write(descriptor, data[: len(data) // 2])
        _die()
    _write_all(descriptor, data, path)


def _dying_replace(self: Path, target: Any) -> Path:
    if Path(target).name == "manifest.json" and b'"finished"' in self.read_bytes():
        _here("mid-rename")
    return _replace(self, target)


Asker._ask = _dying_ask  # type: ignore[method-assign]
RunStore.append = _dying_append  # type: ignore[method-assign]
files.write_all = _dying_write
Path.replace = _dying_replace  # type: ignore[assignment, method-assign]
