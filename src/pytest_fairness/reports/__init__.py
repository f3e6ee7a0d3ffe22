"""Telling: the findings of a run as text, as findings.json and as a self-contained HTML page.

Every report is made from the run's files, never from memory, and whatever a model or a test wrote
passes through the one escaping function of its sink.
"""

from __future__ import annotations

from pytest_fairness.model import Presenter, present_with


def _notebook() -> Presenter:
    from pytest_fairness.reports import notebook

    return notebook


# A finding shows itself, and lies below: what it is shown with is imported when one is.
present_with(_notebook)
