"""Comparing: each function takes a table of trials and gives a
:class:`~pytest_fairness.model.Finding`.

They raise for tables of the wrong shape, never for a verdict; the assertions of the same names do
that.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

#: Where each analysis lives; imported when an assertion judges, not when a test module is
#: collected.
_ANALYSES = {
    "disparity": "analyze_disparity",
    "four_fifths": "analyze_four_fifths",
    "preference": "analyze_preference",
    "equivalence": "analyze_equivalence",
    "arm_contrast": "analyze_arms",
}


def analysis_called(name: str) -> Callable[..., Any]:
    """The analysis that the run's judgements call *name*. Raises KeyError where there is none."""
    analyze: Callable[..., Any] = getattr(
        import_module(f"pytest_fairness.analysis.{name}"), _ANALYSES[name]
    )
    return analyze
