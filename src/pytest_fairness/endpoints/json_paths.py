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
def _environment() -> JSONPathEnvironment:
    from jsonpath import JSONPathEnvironment

    environment = JSONPathEnvironment(strict=True)
    for name in ("match", "search"):
        environment.function_extensions.pop(name, None)
    return environment


class JSONPath:
    """A path such as ``$.choices[0].text``. Raises UsageError for what is none."""

    def __init__(self, text: str) -> None:
        from jsonpath import JSONPathError

        self.text = text
        if len(text) > _LONGEST:
            raise UsageError(f"a JSON path has {_LONGEST} characters at the most")
        try:
            self._path = _environment().compile(text)
        except (JSONPathError, ValueError, RecursionError) as error:
            why = str(error).partition("\n")[0]
            raise UsageError(f"{text!r} is no JSON path such as $.reply.text ({why})") from None

    def all(self, data: Any) -> list[Any]:
        """Everything at the path, in order; nothing where *data* is nested too deeply to look."""
        from jsonpath import JSONPathError

        try:
            return list(self._path.findall(data))
        except (JSONPathError, RecursionError, TypeError):
            return []

    def first(self, data: Any) -> Any:
        """The first thing at the path; None where there is nothing."""
        return next(iter(self.all(data)), None)

    def __str__(self) -> str:
        return self.text
