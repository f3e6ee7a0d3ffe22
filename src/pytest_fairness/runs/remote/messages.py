"""What worker and controller say to each other: one JSON object a message, ASCII, limited in size, never pickle."""

from __future__ import annotations

import json
from typing import Any, NoReturn, Protocol

from pytest_fairness import errors
from pytest_fairness.errors import FairnessError, StoreError

#: Characters of one message. A record holds the bytes of one reply, which endpoints cut at 10 MB.
LONGEST = 64 * 2**20
#: Errors that keep their class on the way; any other arrives as a StoreError.
_CLASSES = ("StoreError", "BudgetError", "UsageError", "EndpointError")

_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


class Channel(Protocol):
    """The part of execnet's channel that is used. What is sent arrives whole, in order, or not at all."""

    def send(self, item: str, /) -> None:
        """Send, from any thread. Raises OSError where the connection is closed."""

    def setcallback(self, callback: Any, /, endmarker: object) -> None:
        """Hand all that arrives to *callback*, in a thread of the connection; *endmarker* when it has closed."""

    def close(self) -> None:
        """Close it, for both sides."""


class BadMessageError(ValueError):
    """What arrived is no message of this protocol; the text says why."""


def encode(message: dict[str, Any]) -> str:
    """*message* as it is sent. Raises StoreError for one that is too long, ValueError or TypeError for no JSON."""
    text = _encode(message)
    if len(text) > LONGEST:
        raise StoreError(
            f"a message of {len(text)} characters is longer than {LONGEST}, and is not sent: log less of it"
        )
    return text


def decode(item: object) -> dict[str, Any]:
    """The message that *item* holds. Raises BadMessageError."""
    if not isinstance(item, str):
        raise BadMessageError(f"a message is text, not {type(item).__name__}")
    if len(item) > LONGEST:
        raise BadMessageError(f"a message of {len(item)} characters; the longest allowed is {LONGEST}")
    try:
        message = json.loads(item, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadMessageError(f"a message is JSON: {error}") from error
    if not isinstance(message, dict):
        raise BadMessageError("a message is a JSON object")
    return message


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def described(error: BaseException) -> list[str]:
    """*error* as it travels: its class and what it says."""
    known = type(error).__name__ if isinstance(error, FairnessError) else ""
    return [known, str(error) if known else f"{type(error).__name__}: {error}"]


def raised(described: list[str]) -> FairnessError:
    """The error that travelled."""
    name, text = described
    kind: type[FairnessError] = getattr(errors, name) if name in _CLASSES else StoreError
    return kind(text)
