"""A function that reads an outcome off a reply, with what a comparison has to know about that
outcome.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, TypeAlias, TypedDict, Unpack

from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind

Score: TypeAlias = "float | int | bool | str | None"
SHORT_REPLY = 60
"""Tokens of a usual reply that is asked for a name, a number or a yes: it, and often a sentence around it."""
_OURS = __name__.rpartition(".")[0] + "."


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """``score`` reads one reply; ``None`` means that there is nothing to read, and is counted as
    unscored.

    ``kind`` is one of :class:`OutcomeKind`, or its name (``"numeric"``); where a scorer declares
    none, its values decide, and the finding says so. ``unit`` is what a difference is stated in
    ("words"). ``low`` and ``high`` are the ends of its scale, where it has any: a score beyond them
    is an error, and a reply that is missing is no further from the others than they are.
    ``lower_is_worse`` says which way harm lies. ``masks_names`` takes the person's names out of the
    reply before it is read, ``masks_signals`` the words by which the prompts conveyed the groups.
    ``reply_tokens`` is how long a usual reply is, which prices a session beforehand; None is as
    long as a letter. Raise ``version`` whenever the same text would score otherwise.

    Raises UsageError for an unknown kind, and for ends that are no scale.
    """

    name: str
    score: Callable[..., Score]
    kind: OutcomeKind | str | None = None
    unit: str = ""
    low: float | None = None
    high: float | None = None
    lower_is_worse: bool = True
    masks_names: bool = False
    masks_signals: bool = False
    columns: tuple[str, ...] = ()
    reply_tokens: int | None = None
    version: str = "1"

    def __post_init__(self) -> None:
        if self.kind is not None:
            if self.kind not in list(OutcomeKind):
                raise UsageError(
                    f"scorer {self.name!r}: kind={self.kind!r} is none of {', '.join(OutcomeKind)}"
                )
            object.__setattr__(self, "kind", OutcomeKind(self.kind))
        if self.kind in (OutcomeKind.BINARY, OutcomeKind.REFUSAL):
            for end, value in (("low", 0.0), ("high", 1.0)):  # a yes is 1, a no is 0
                object.__setattr__(
                    self, end, value if getattr(self, end) is None else getattr(self, end)
                )
        ends = [end for end in (self.low, self.high) if end is not None]
        if not all(math.isfinite(end) for end in ends) or (len(ends) == 2 and ends[0] >= ends[1]):
            raise UsageError(
                f"scorer {self.name!r}: low={self.low!r}, high={self.high!r} are not the ends of a "
                "scale"
            )

    def __call__(self, reply: str, **given: Any) -> Score:
        """The score of *reply*: a decorated function can still be called as one."""
        return self.score(reply, **given)

    @property
    def fingerprint(self) -> str:
        """16 hex digits that change with the name, the version, the function's ``digest`` where it
        has one and, for a custom function, its source.
        """
        digest = getattr(self.score, "digest", "")  # of the data that the function reads by
        parts = [
            self.name,
            self.version,
            "" if self.built_in else _source(self.score),
            *filter(None, [digest]),
        ]
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def built_in(self) -> bool:
        """Return whether the function is one of ours: a pure function of the text, known by its
        name and version.
        """
        return str(getattr(self.score, "__module__", "")).startswith(_OURS)


def _source(function: Any) -> str:
    """Return what identifies a custom function across sessions: its source, or its full name
    without one.
    """
    if isinstance(function, partial):
        plain = [repr(value) for value in (*function.args, *sorted(function.keywords.items()))]
        return "\0".join(
            [_source(function.func), *(text for text in plain if " at 0x" not in text)]
        )
    if not callable(function) or not hasattr(function, "__qualname__"):
        function = type(function)
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return f"{function.__module__}.{function.__qualname__}"


class Declared(TypedDict, total=False):
    """What a function is declared to be: the fields of :class:`Scorer` with a default."""

    kind: OutcomeKind | str | None
    unit: str
    low: float | None
    high: float | None
    lower_is_worse: bool
    masks_names: bool
    masks_signals: bool
    columns: tuple[str, ...]
    reply_tokens: int | None
    version: str


def scorer(
    score: Callable[..., Score] | None = None,
    /,
    *,
    name: str | None = None,
    **declared: Unpack[Declared],
) -> Any:
    """Make a function of the reply a :class:`Scorer` of its name, with what a comparison has to
    know about it::

        @scorer(kind="numeric", unit="words")
        def long_words(reply):
            return sum(len(word) > 12 for word in reply.split())

    It goes wherever a scorer goes: ``outcome=long_words``, or into the list of
    ``pytest_fairness_scorers``.
    """

    def made(function: Callable[..., Score]) -> Scorer:
        return Scorer(name=name or name_of(function), score=function, **declared)

    if score is None:
        return made
    return made(score)


def name_of(function: Callable[..., Any]) -> str:
    """Return what a function is called where it has no other name."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    if name == "<lambda>":
        return "custom score"
    return name
