"""Where in a JSON body something stands: JSONPath as RFC 9535 has it, read by python-jsonpath.

The functions that match regular expressions are left out: what they would be matched against is somebody else's text,
and a pattern can take for ever on the wrong one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import UsageError

if TYPE_CHECKING:
    from jsonpath import JSONPathEnvironment

_LONGEST = 500


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
        """Everything at the path, in order; nothing where *data* is nested too deeply to look."""
        try:
            return list(self._path.findall(data))
        except (self._error, RecursionError, TypeError):
            return []

    def first(self, data: Any) -> Any:
        """The first thing at the path; None where there is nothing."""
        return next(iter(self.all(data)), None)

    def __str__(self) -> str:
        return self.text
