"""How a test shows an error of ours: where the test made it, and the message with its mend; nothing
of our inside.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.errors import BaselineError, FairnessError, UsageError, did_you_mean

_PACKAGE = Path(__file__).parents[1]
_SUITES = _PACKAGE / "suites"
_STRAY = re.compile(r"(assert_\w+)\(\) got an unexpected keyword argument '(\w+)'")
KEPT = "the replies are kept: mend the test, then run it with --fairness-replay last"


def show_plainly(
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
    notes = []
    if isinstance(error, TypeError):
        notes = [_hint(error)]
    is_ours = isinstance(error, FairnessError)
    if asked and (
        any(notes) or (isinstance(error, UsageError) and not isinstance(error, BaselineError))
    ):
        notes.append(KEPT)
    for note in filter(None, notes):
        error.add_note(note)
    if item.config.getoption("tbstyle") == "auto" and (is_ours or any(notes)):
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


def _hint(error: TypeError) -> str:
    """The argument that is meant, where an assertion of ours was given one that it does not have."""
    import inspect

    from pytest_fairness import asserts

    match = _STRAY.search(str(error))
    function = None
    if match is not None:
        function = getattr(asserts, match[1], None)
    if match is None or function is None:
        return ""
    return did_you_mean(match[2], inspect.signature(function).parameters).removeprefix("; ")


def _of_the_test(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
    """The traceback from the test on, without what is ours; all of it where nothing would be left."""
    whole = excinfo.traceback
    entries = whole.cut(path=item.path).filter(lambda entry: not _is_inside(Path(entry.path)))
    return entries or whole


def _is_inside(path: Path) -> bool:
    return path.is_relative_to(_PACKAGE) and not path.is_relative_to(_SUITES)
