"""What a report of a fairness test may hold: text that crosses to xdist's controller and is shown in a terminal.

A model's reply in an assertion message is enough to lose a failing test: execnet cannot send a lone surrogate, the
worker's reporting ends, and pytest exits 0 (pytest-xdist#843). Control codes would cross, and be obeyed by the
terminal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from pytest_fairness.reports.escaping import terminal

if TYPE_CHECKING:
    import warnings

    import pytest

_PLAIN = (bool, int, float, type(None))
# Colours of captured log records, which pytest itself puts there.
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


def make_safe(report: pytest.TestReport) -> None:
    """Write out, in *report*, whatever could not cross or would be obeyed; nothing is cut."""
    if hasattr(report.longrepr, "toterminal") and not is_dataclass(report.longrepr):
        text = str(report.longrepr)  # pytest's own text for a missing fixture, and whatever an item made of its failure
        report.longrepr = report.longrepr if terminal(text) == text else terminal(text)
    else:
        report.longrepr = _safe(report.longrepr)
    report.sections = [(terminal(title), _coloured(text)) for title, text in report.sections]
    report.user_properties = [(terminal(str(name)), _safe(value)) for name, value in report.user_properties]
    if hasattr(report, "wasxfail"):
        report.wasxfail = terminal(str(report.wasxfail))


def make_warning_safe(message: warnings.WarningMessage) -> None:
    """Write out, in a warning's text, whatever could not cross or would be obeyed."""
    text = str(message.message)
    if isinstance(message.message, Warning) and terminal(text) != text:
        message.message.args = tuple(
            terminal(value) if isinstance(value, str) else value for value in message.message.args
        )


def _safe(value: Any) -> Any:
    """*value* with every text in it escaped: the parts of pytest's tracebacks in place, containers anew."""
    if isinstance(value, str):
        return terminal(str(value))
    if type(value) in _PLAIN:
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(_safe(item) for item in value) if type(value) in (list, tuple) else _safe(list(value))
    if isinstance(value, Mapping):
        return {_safe(key): _safe(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            object.__setattr__(value, part.name, _safe(getattr(value, part.name)))
        return value
    return terminal(str(value))  # a numpy number, a path, an enum: what JUnit would make of it


def _coloured(text: str) -> str:
    return "".join(part if _COLOUR.fullmatch(part) else terminal(part) for part in _COLOUR.split(text))
