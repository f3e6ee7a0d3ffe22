"""Where in a JSON body something stands: JSONPath as RFC 9535 has it, read by python-jsonpath.

The functions that match regular expressions are left out: what they would be matched against is somebody else's text,
and a pattern can take for ever on the wrong one. For the same reason no more than so many values of a body are looked
at: a wildcard takes some 20 µs for each, a filter looks at them again and again, and a body has room for millions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import UsageError

if TYPE_CHECKING:
    from jsonpath import JSONPathEnvironment

_LONGEST = 500
#: Values of one body that its paths look at, all together and counted each time. A reply takes some tens.
MOST_VALUES = 50_000


class TooManyValuesError(Exception):
    """The paths lead to more values than a reply has."""


@cache
def _library() -> tuple[JSONPathEnvironment, type[Exception]]:
    """What reads paths, and what it raises. Raises UsageError where it is not installed."""
    try:
        from jsonpath import JSONPathEnvironment, JSONPathError
    except ImportError:
        raise UsageError("JSON paths need a package that is missing: pip install python-jsonpath") from None

    environment = JSONPathEnvironment(strict=True)
    for name in ("match", "search"):
        environment.function_extensions.pop(name, None)
    return environment, JSONPathError


class JSONPath:
    """A path such as ``$.choices[0].text``. Raises UsageError for what is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > _LONGEST:
            raise UsageError(f"a JSON path has {_LONGEST} characters at the most")
        environment, self._error = _library()
        try:
            self._path = environment.compile(text)
        except (self._error, ValueError, RecursionError) as error:
            why = str(error).partition("\n")[0]
            raise UsageError(f"{text!r} is no JSON path such as $.reply.text ({why})") from None

    def all(self, data: Any) -> list[Any]:
        """Everything at the path, in order; nothing where *data* is nested too deeply to look.

        Raises TooManyValuesError where *data* is :func:`counted`, and the path leads too far.
        """
        try:
            return [plain(found) for found in self._path.findall(data)]
        except (self._error, RecursionError, TypeError):
            return []

    def first(self, data: Any) -> Any:
        """The first thing at the path; None where there is nothing."""
        return next(iter(self.all(data)), None)

    def __str__(self) -> str:
        return self.text


# ---------------------------------------------------------------- a body whose values are counted


@dataclass(slots=True)
class _Left:
    """How many values may still be looked at."""

    values: int

    def take(self, count: int) -> None:
        self.values -= count
        if self.values < 0:
            raise TooManyValuesError(f"its JSON paths lead to more than {MOST_VALUES:,} values of the body")


def counted(data: Any) -> Any:
    """*data* for the paths that are read off one body: they look at :data:`MOST_VALUES` all together."""
    return _counted(data, _Left(MOST_VALUES))


def plain(value: Any) -> Any:
    """*value* as it was before it was :func:`counted`."""
    return value.data if isinstance(value, (_Object, _Array)) else value


def _counted(data: Any, left: _Left) -> Any:
    if isinstance(data, dict):
        return _Object(data, left)
    return _Array(data, left) if isinstance(data, list) else data


class _Object(Mapping[str, Any]):
    __slots__ = ("data", "left")

    def __init__(self, data: dict[str, Any], left: _Left) -> None:
        self.data, self.left = data, left

    def __getitem__(self, key: str) -> Any:
        self.left.take(1)
        return _counted(self.data[key], self.left)

    def __iter__(self) -> Iterator[str]:
        self.left.take(len(self.data))
        return iter(self.data)

    def items(self) -> Any:
        self.left.take(len(self.data))
        return ((key, _counted(value, self.left)) for key, value in self.data.items())

    def __len__(self) -> int:
        return len(self.data)

    def __eq__(self, other: object) -> bool:
        return bool(self.data == plain(other))

    __hash__ = None  # type: ignore[assignment]  # as of a dict


class _Array(Sequence[Any]):
    __slots__ = ("data", "left")

    def __init__(self, data: list[Any], left: _Left) -> None:
        self.data, self.left = data, left

    def __getitem__(self, index: Any) -> Any:
        found = self.data[index]
        if isinstance(index, slice):
            self.left.take(len(found))
            return [_counted(value, self.left) for value in found]
        self.left.take(1)
        return _counted(found, self.left)

    def __iter__(self) -> Iterator[Any]:
        self.left.take(len(self.data))
        return (_counted(value, self.left) for value in self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __eq__(self, other: object) -> bool:
        return bool(self.data == plain(other))

    __hash__ = None  # type: ignore[assignment]  # as of a list
