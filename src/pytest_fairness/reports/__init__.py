"""The findings of a run as documents, and as files: builders make pages of parts, sinks render them.

Every report is made from the run's files, never from memory, and whatever a model or a test wrote
passes through the one escaping function of its sink. A suite hands in sections, or a page of its
own; the names below are what those are made of, and are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pytest_fairness.model import Presenter, present_with

if TYPE_CHECKING:
    from pytest_fairness.reports.changes import FindingChange
    from pytest_fairness.reports.charts import Bars, Forest, ForestRow, OverTime, Reference
    from pytest_fairness.reports.escaping import shortened
    from pytest_fairness.reports.findings_json import RunResults
    from pytest_fairness.reports.formatting import regressions, without_verdict
    from pytest_fairness.reports.sections import (
        Columns,
        Details,
        Dialogue,
        Entry,
        Facts,
        Notes,
        Page,
        Part,
        Printed,
        ScoredReply,
        Section,
        SideBySide,
        Statements,
        Table,
        facts,
        table,
        write_json,
        write_page,
        write_sections,
    )

__all__ = [
    "Bars", "Columns", "Details", "Dialogue", "Entry", "Facts", "FindingChange", "Forest", "ForestRow", "Notes",
    "OverTime", "Page", "Part", "Printed", "Reference", "RunResults", "ScoredReply", "Section", "SideBySide",
    "Statements", "Table", "facts", "regressions", "shortened", "table", "without_verdict", "write_json",
    "write_page", "write_sections",
]  # fmt: skip
#: The modules of those names that are not in ``sections``.
_HOME = {
    "Bars": "charts",
    "FindingChange": "changes",
    "Forest": "charts",
    "ForestRow": "charts",
    "OverTime": "charts",
    "Reference": "charts",
    "RunResults": "findings_json",
    "regressions": "formatting",
    "shortened": "escaping",
    "without_verdict": "formatting",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME.get(name, 'sections')}"), name)


def _notebook() -> Presenter:
    from pytest_fairness.reports import notebook

    return notebook


# A finding shows itself, and lies below: what it is shown with is imported when one is.
present_with(_notebook)
