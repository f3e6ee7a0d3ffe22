"""A plugin (``-p tests.faults.killing``) that kills its session at a named point, as the system would.

``KILL_AT=point:nth`` names it: ``before-send`` (the intent is stored), ``after-send`` (the request has left),
``before-append``, ``mid-append`` (the transaction that holds the answer is not committed), ``after-append``,
``mid-rename`` (the manifest that says *finished* is written beside the old one, and not in its place). With
``KILL_ONCE=file`` the first process that gets there dies, and the others live.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from pytest_fairness.endpoints.protocol import Request
from pytest_fairness.engine.attempt import Asker
from tests.support.killing import Suicide, die

POINTS = ("before-send", "after-send", "before-append", "mid-append", "after-append", "mid-rename")


def _another_died() -> bool:
    once = os.environ.get("KILL_ONCE")
    try:
        if once is not None:
            Path(once).touch(exist_ok=False)
    except FileExistsError:
        return True
    return False


_point, _, _nth = os.environ.get("KILL_AT", ":0").partition(":")
_suicide = Suicide(_point, int(_nth), _another_died)
_suicide.install()
_ask = Asker._ask


async def _dying_ask(self: Asker, request: Request, limit: float) -> Any:
    if not _suicide.passing("after-send"):
        return await _ask(self, request, limit)
    asking = asyncio.ensure_future(_ask(self, request, limit))
    await asyncio.wait([asking], timeout=0.2)
    die()
    return await asking


Asker._ask = _dying_ask  # type: ignore[method-assign]
