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
from pytest_fairness.scorers.reading_turn import Meaning, ReadingTask

Score: TypeAlias = Meaning
#: Tokens of a usual reply that is asked for a name, a number or a yes: it, and often a sentence
#: around it.
SHORT_REPLY = 60
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
    ``reads_english``: a reply in another language is left unread. ``reply_tokens`` is how long a
    usual reply is, which prices a session beforehand; None is as long as a letter. Raise
    ``version`` whenever the same text would score otherwise.

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
    reads_english: bool = False
    reading: ReadingTask | None = None
    readers: tuple[str, ...] = ()
    version: str = "1"

    def __post_init__(self) -> None:
        if self.kind is not None:
            self._settle_kind(self.kind)
        low, high = self._ends
        infinite = {self.low, self.high} & {-math.inf, math.inf}
        if infinite or not low < high:
            raise UsageError(
                f"scorer {self.name!r}: low={self.low!r}, high={self.high!r} are not the ends of a "
                "scale"
            )

    def _settle_kind(self, kind: str) -> None:
        """Take *kind* by its name; a yes is 1, a no is 0. Raises UsageError for an unknown one."""
        if kind not in list(OutcomeKind):
            raise UsageError(
                f"scorer {self.name!r}: kind={kind!r} is none of {', '.join(OutcomeKind)}"
            )
        object.__setattr__(self, "kind", OutcomeKind(kind))
        if kind not in (OutcomeKind.BINARY, OutcomeKind.REFUSAL):
            return
        if self.low is None:
            object.__setattr__(self, "low", 0.0)
        if self.high is None:
            object.__setattr__(self, "high", 1.0)

    def has_on_scale(self, score: float) -> bool:
        """Return whether *score* is not beyond the ends of the scale."""
        low, high = self._ends
        return low <= score <= high

    @property
    def _ends(self) -> tuple[float, float]:
        """The ends of the scale, infinite where it has none."""
        low = -math.inf
        high = math.inf
        if self.low is not None:
            low = self.low
        if self.high is not None:
            high = self.high
        return low, high

    @property
    def scale(self) -> str:
        """The ends of the scale in words: "from 1 to 10"."""
        ends = []
        if self.low is not None:
            ends.append(f"from {self.low:g}")
        if self.high is not None:
            ends.append(f"to {self.high:g}")
        return " ".join(ends)

    def __call__(self, reply: str, **given: Any) -> Score:
        """The score of *reply*: a decorated function can still be called as one."""
        return self.score(reply, **given)

    @property
    def fingerprint(self) -> str:
        """16 hex digits that change with the name, the version, the function's ``digest`` where it
        has one and, for a custom function, its source.
        """
        parts = [self.name, self.version, ""]
        if not self.built_in:
            parts[-1] = _source(self.score)
            if self.reading is not None:
                parts.append(self.reading.digest)
        digest = getattr(self.score, "digest", "")  # of the data that the function reads by
        if digest:
            parts.append(digest)
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
        given = map(repr, (*function.args, *sorted(function.keywords.items())))
        # An address changes with every session, and identifies nothing.
        return "\0".join(
            [_source(function.func), *(text for text in given if " at 0x" not in text)]
        )
    if not callable(function) or not hasattr(function, "__qualname__"):
        function = type(function)
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return f"{function.__module__}.{function.__qualname__}"


class Declared(TypedDict, total=False):
    """The declaration of a function as a scorer: the fields of :class:`Scorer` with a default."""

    kind: OutcomeKind | str | None
    unit: str
    low: float | None
    high: float | None
    lower_is_worse: bool
    masks_names: bool
    masks_signals: bool
    columns: tuple[str, ...]
    reply_tokens: int | None
    reading: ReadingTask | None
    readers: tuple[str, ...]
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
