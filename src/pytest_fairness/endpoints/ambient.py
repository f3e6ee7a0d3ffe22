"""Which trial an application is being asked for, for a simulated model inside that application.

A model behind an API sees only the prompt, and so does the simulated one; but where it stands in for the
model inside somebody's own function, the repetition and what the names signal would be lost on the way
through that function. They travel beside it, and the way back tells that a simulated model had a part in the
answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from pytest_fairness.endpoints.protocol import Request


@dataclass(slots=True)
class Ambient:
    """The request that an application is answering; ``simulated`` once a simulated model was asked in doing so.

    ``asked`` counts what that model was asked, so that two equal questions of one trial get two answers.
    """

    request: Request
    simulated: bool = False
    asked: int = 0


_ambient: ContextVar[Ambient | None] = ContextVar("pytest_fairness_ambient", default=None)


def ambient() -> Ambient | None:
    """What is being answered here, if an application is answering anything."""
    return _ambient.get()


@contextmanager
def answering(request: Request) -> Iterator[Ambient]:
    """Let everything called in the block, in threads that copy its context too, know of *request*."""
    here = Ambient(request)
    token = _ambient.set(here)
    try:
        yield here
    finally:
        _ambient.reset(token)
