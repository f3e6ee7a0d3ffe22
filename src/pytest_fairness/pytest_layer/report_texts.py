"""Texts in pytest's report of a fairness test: an error of ours where the test made it, the
sentence of a finding first, and nothing that a terminal would obey.

A model's reply in an assertion message is enough to lose a failing test: execnet cannot send a lone
surrogate to xdist's controller, the worker stops reporting, and pytest exits 0 (pytest-xdist#843).
Control codes would cross, and be obeyed by the terminal. All are written out; nothing is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.errors import BaselineError, FairnessError, UsageError, did_you_mean
from pytest_fairness.model import Finding
from pytest_fairness.reports.escaping import terminal

if TYPE_CHECKING:
    import warnings

_PACKAGE = Path(__file__).parents[1]
_SUITES = _PACKAGE / "suites"
_PROPERTY = "fairness "
#: What the message of a failed assertion begins with, and the attribute of a report that keeps it.
_FAILURE = "pytest_fairness.FairnessFailure: "
MESSAGE = "fairness_message"
# Colours of captured log records, which pytest itself puts there.
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
_STRAY = re.compile(r"(assert_\w+)\(\) got an unexpected keyword argument '(\w+)'")
KEPT = "the replies are kept: mend the test, then run it with --fairness-replay last"


def show_error(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport, *, asked: bool
) -> None:
    """Shorten *report* of *item*, where *call* ended in an error of ours; *asked*: replies for it
    are in the run.
    """
    if call.excinfo is None or report.outcome != "failed":
        return
    error = call.excinfo.value
    if hasattr(error, "finding"):
        _leave_out_arguments(report)
    hint = _hint(error)
    if hint:
        error.add_note(hint)
    usage = isinstance(error, UsageError) and not isinstance(error, BaselineError)
    if asked and (hint or usage):
        error.add_note(KEPT)
    is_ours = isinstance(error, FairnessError)
    if item.config.getoption("tbstyle") == "auto" and (is_ours or hint):
        report.longrepr = call.excinfo.getrepr(
            style="short",
            funcargs=False,
            chain=False,
            tbfilter=lambda excinfo: _of_the_test(item, excinfo),
        )


def _leave_out_arguments(report: pytest.TestReport) -> None:
    """Take the table of trials, eight lines of it, from what pytest shows before the test."""
    traceback = getattr(report.longrepr, "reprtraceback", None)
    for entry in getattr(traceback, "reprentries", ()):
        entry.reprfuncargs = None


def _hint(error: BaseException) -> str:
    """The argument that is meant, where an assertion of ours was given one that it does not have."""
    if not isinstance(error, TypeError):
        return ""

    import inspect

    from pytest_fairness import asserts

    for name, argument in _STRAY.findall(str(error)):
        if hasattr(asserts, name):
            parameters = inspect.signature(getattr(asserts, name)).parameters
            return did_you_mean(argument, parameters).removeprefix("; ")
    return ""


def _of_the_test(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
    """The traceback from the test on, without what is ours; all of it where nothing would be left."""
    whole = excinfo.traceback
    entries = whole.cut(path=item.path).filter(lambda entry: not _is_inside(Path(entry.path)))
    return entries or whole


def _is_inside(path: Path) -> bool:
    """Return whether *path* is a file of ours that no reader of a test has to see."""
    return path.is_relative_to(_PACKAGE) and not path.is_relative_to(_SUITES)


# ---------------------------------------------------------------- the sentence of a finding


def lead_with_sentence(
    report: pytest.TestReport, call: pytest.CallInfo[None], findings: Sequence[Finding]
) -> None:
    """Let the sentence of the finding that *call* raised alone stand for its failure, in the short
    summary: of several, which an assertion reports one by one, that of the worst.

    The whole message stands above it, under the test's name; in CI pytest does not cut it in the
    summary, where all its tables would stand again.
    """
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None or not findings or not crash.message.startswith(_FAILURE):
        return
    raised = getattr(call.excinfo, "value", None)
    finding: Finding = getattr(raised, "finding", findings[-1])
    setattr(report, MESSAGE, terminal(crash.message))
    crash.message = finding.sentence


def note_properties(item: pytest.Item, findings: Iterable[Finding]) -> None:
    """Let JUnit know each finding: the comparison, its verdict and its sentence. A rerun's replace
    those before.

    They are on the item: JUnit reads them off the report of the teardown, which is still to come.
    """
    properties = []
    for entry in item.user_properties:
        if not str(entry[0]).startswith(_PROPERTY):
            properties.append(entry)
    for finding in findings:
        name = f"{finding.assertion}: {finding.outcome} by {finding.protected_class}"
        properties.append((_PROPERTY + terminal(name), terminal(finding.sentence)))
    item.user_properties[:] = properties


# ---------------------------------------------------------------- what may cross, and be shown


def make_safe(report: pytest.TestReport) -> None:
    """Write out, in *report*, whatever could not cross or would be obeyed; nothing is cut."""
    report.longrepr = _safe_failure(report.longrepr)
    report.sections = [(terminal(title), _coloured(text)) for title, text in report.sections]
    report.user_properties = [
        (terminal(str(name)), _safe(value)) for name, value in report.user_properties
    ]
    if hasattr(report, "wasxfail"):
        report.wasxfail = terminal(str(report.wasxfail))


def _safe_failure(failure: Any) -> Any:
    """Return what a report says of a *failure*, with every text in it escaped."""
    if not hasattr(failure, "toterminal") or is_dataclass(failure):
        return _safe(failure)
    # pytest's own text for a missing fixture, and whatever an item made of its failure.
    text = str(failure)
    if terminal(text) == text:
        return failure
    return terminal(text)


def make_warning_safe(message: warnings.WarningMessage) -> None:
    """Write out, in a warning's text, whatever could not cross or would be obeyed."""
    warning = message.message
    text = str(message.message)
    if isinstance(warning, Warning) and terminal(text) != text:
        shown = list(warning.args)
        for place, value in enumerate(shown):
            if isinstance(value, str):
                shown[place] = terminal(value)
        warning.args = tuple(shown)


def _safe(value: Any) -> Any:
    """Return *value* with every text in it escaped: the parts of pytest's tracebacks in place,
    containers anew.
    """
    if isinstance(value, str):
        return terminal(str(value))
    if type(value) in (bool, int, float, type(None)):
        return value
    if type(value) is tuple:
        return tuple(map(_safe, value))
    if isinstance(value, (list, tuple)):
        return list(map(_safe, value))
    if isinstance(value, Mapping):
        return {_safe(key): _safe(entry) for key, entry in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            object.__setattr__(value, part.name, _safe(getattr(value, part.name)))
        return value
    return terminal(str(value))  # a numpy number, a path, an enum: what JUnit would make of it


def _coloured(text: str) -> str:
    """Return *text* escaped, with the colours that pytest gave it."""
    parts = _COLOUR.split(text)  # texts, and the colours between them
    parts[::2] = map(terminal, parts[::2])
    return "".join(parts)
