"""A function that reads an outcome off a reply, with what a comparison has to know about that outcome."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from pytest_fairness.model import OutcomeKind
from pytest_fairness.scorers.cache import Score

_OURS = __name__.rpartition(".")[0] + "."


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """``score`` reads one reply; ``None`` means that there is nothing to read, and is counted as unscored.

    ``kind`` is ``None`` where the values decide it. ``unit`` is what a difference is told in ("words");
    ``lower_is_worse`` says which way harm lies; ``masks_names`` takes the person's names out of the reply before it
    is read (:mod:`pytest_fairness.scorers.masking`). Raise ``version`` whenever the same text would score
    otherwise.
    """

    name: str
    score: Callable[[str], Score]
    kind: OutcomeKind | None = None
    unit: str = ""
    lower_is_worse: bool = True
    masks_names: bool = False
    version: str = "1"

    @property
    def fingerprint(self) -> str:
        """16 hex digits that change with the name, the version or, for a custom function, its source."""
        parts = [self.name, self.version, "" if self.built_in else _source(self.score)]
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def built_in(self) -> bool:
        """Whether the function is one of ours: a pure function of the text, known by its name and version."""
        return str(getattr(self.score, "__module__", "")).startswith(_OURS)


def _source(function: Any) -> str:
    """What identifies a custom function across sessions: its source, or its full name without one."""
    if isinstance(function, partial):
        plain = [repr(value) for value in (*function.args, *sorted(function.keywords.items()))]
        return "\0".join([_source(function.func), *(text for text in plain if " at 0x" not in text)])
    if not callable(function) or not hasattr(function, "__qualname__"):
        function = type(function)
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return f"{function.__module__}.{function.__qualname__}"
