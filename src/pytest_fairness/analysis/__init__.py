"""Comparing: each function takes a table of trials and gives a
:class:`~pytest_fairness.model.Finding`.

They raise for tables of the wrong shape, never for a verdict; the assertions of the same names do
that.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_fairness.analysis.arm_contrast import analyze_arms
    from pytest_fairness.analysis.disparity import analyze_disparity
    from pytest_fairness.analysis.equivalence import analyze_equivalence
    from pytest_fairness.analysis.error_rates import analyze_error_rates
    from pytest_fairness.analysis.four_fifths import analyze_four_fifths
    from pytest_fairness.analysis.preference import analyze_preference

__all__ = [
    "analysis_called",
    "analyze_arms",
    "analyze_disparity",
    "analyze_equivalence",
    "analyze_error_rates",
    "analyze_four_fifths",
    "analyze_preference",
]

#: Each analysis that has an assertion, by its module; imported when an assertion judges, not when a
#: test module is collected.
_ANALYSES = {
    "disparity": "analyze_disparity",
    "strata": "analyze_strata",
    "error_rates": "analyze_error_rate",
    "four_fifths": "analyze_four_fifths",
    "preference": "analyze_preference",
    "equivalence": "analyze_equivalence",
    "arm_contrast": "analyze_arms",
}
#: The analysis that gives several findings, each of which the run's judgements make by itself.
_OF_SEVERAL_FINDINGS = ("error_rates", "analyze_error_rates")


def analysis_called(name: str) -> Callable[..., Any]:
    """The analysis that the run's judgements call *name*. Raises KeyError where there is none."""
    analyze: Callable[..., Any] = getattr(
        import_module(f"pytest_fairness.analysis.{name}"), _ANALYSES[name]
    )
    return analyze


def __getattr__(name: str) -> Any:
    for module, function in (*_ANALYSES.items(), _OF_SEVERAL_FINDINGS):
        if function == name:
            return getattr(import_module(f"pytest_fairness.analysis.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
