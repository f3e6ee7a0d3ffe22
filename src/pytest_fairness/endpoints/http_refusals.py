"""By what an application says no: rules over the status, a place in the body, and words. No regular expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytest_fairness.endpoints.json_paths import JSONPath
from pytest_fairness.model import JSON

_NOTHING: tuple[Any, ...] = (None, False, "", [], {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One rule; all that it says must hold.

    ``status``: one of these; a success where none is given. ``path``: something stands there that is not null, false or
    empty; with ``equals``, one of those values. ``contains``: one of these texts, in any case, in the reply, or in the
    text at ``path``.
    """

    status: tuple[int, ...] = ()
    path: JSONPath | None = None
    equals: tuple[JSON, ...] = ()
    contains: tuple[str, ...] = ()

    def holds(self, status: int, data: Any, text: str | None) -> bool:
        """Whether a response with this status, this JSON *data* (None: no JSON) and this reply refuses."""
        if status not in self.status if self.status else not 200 <= status < 300:
            return False
        found = [] if self.path is None else self.path.all(data)
        if self.contains:
            said = [text] if self.path is None else found
            return any(_contains(one, self.contains) for one in said)
        if self.path is None:
            return True
        if self.equals:
            return any(_same(one, value) for one in found for value in self.equals)
        return any(all(not _same(one, nothing) for nothing in _NOTHING) for one in found)

    def __str__(self) -> str:
        parts = [f"status {', '.join(map(str, self.status))}"] if self.status else []
        parts += [] if self.path is None else [str(self.path)]
        parts += [f"contains {word!r}" for word in self.contains]
        return "; ".join(parts)


def refusing(rules: Sequence[Refusal], status: int, data: Any, text: str | None) -> Refusal | None:
    """The first of *rules* that holds."""
    return next((rule for rule in rules if rule.holds(status, data, text)), None)


def _contains(text: Any, words: Sequence[str]) -> bool:
    return isinstance(text, str) and any(word.casefold() in text.casefold() for word in words)


def _same(one: Any, other: Any) -> bool:
    # In Python True is 1; in JSON it is not.
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
