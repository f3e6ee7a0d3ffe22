"""Fairness assertions for systems that contain a language model.

The names below are the public interface. They are imported when first used: the plugin
loads in every pytest session of everyone who installed it, and those sessions must not pay for
pandas and scipy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_fairness.analysis.arm_contrast import analyze_arms
    from pytest_fairness.analysis.baseline import compare_baseline
    from pytest_fairness.analysis.disparity import analyze_disparity
    from pytest_fairness.analysis.equivalence import analyze_equivalence
    from pytest_fairness.analysis.four_fifths import analyze_four_fifths
    from pytest_fairness.analysis.ll144 import ll144_tables
    from pytest_fairness.analysis.other_logs import trials_from
    from pytest_fairness.analysis.planning import plan_sample
    from pytest_fairness.analysis.preference import analyze_preference
    from pytest_fairness.analysis.several_outcomes import analyze_outcomes, fairness_verdict
    from pytest_fairness.analysis.template_lint import lint_file, lint_text
    from pytest_fairness.analysis.word_use import analyze_words
    from pytest_fairness.asserts import (
        FairnessFailure,
        assert_arm_reduces_disparity,
        assert_baseline,
        assert_equivalent,
        assert_four_fifths,
        assert_no_disparity,
        assert_no_preference,
    )
    from pytest_fairness.design.arms import Arm
    from pytest_fairness.design.strategies import Strategy
    from pytest_fairness.errors import FairnessError, InconclusiveWarning, UsageError
    from pytest_fairness.model import Ask, Finding, Verdict
    from pytest_fairness.pytest_layer.markers import fairness, fairness_grid, fairness_pairs
    from pytest_fairness.reports.run_comparison import compare_runs
    from pytest_fairness.reports.run_tables import open_run
    from pytest_fairness.scorers import Scorer
    from pytest_fairness.scorers.scorer import scorer

__version__: str

__all__ = [
    "Arm", "Ask", "FairnessError", "FairnessFailure", "Finding", "InconclusiveWarning", "Scorer", "Strategy",
    "UsageError", "Verdict", "analyze_arms", "analyze_disparity", "analyze_equivalence", "analyze_four_fifths",
    "analyze_outcomes", "analyze_preference", "analyze_words", "assert_arm_reduces_disparity", "assert_baseline",
    "assert_equivalent", "assert_four_fifths", "assert_no_disparity", "assert_no_preference", "compare_baseline",
    "compare_runs", "fairness", "fairness_grid", "fairness_pairs", "fairness_verdict",
    "lint_file", "lint_text", "ll144_tables", "open_run", "plan_sample", "scorer",
    "trials_from",
]  # fmt: skip
#: The modules of all names but the assertions.
_HOME = {
    "analyze_arms": "analysis.arm_contrast", "analyze_disparity": "analysis.disparity",
    "analyze_equivalence": "analysis.equivalence", "analyze_four_fifths": "analysis.four_fifths",
    "analyze_outcomes": "analysis.several_outcomes", "fairness_verdict": "analysis.several_outcomes",
    "analyze_preference": "analysis.preference", "analyze_words": "analysis.word_use",
    "compare_baseline": "analysis.baseline", "compare_runs": "reports.run_comparison",
    "ll144_tables": "analysis.ll144", "plan_sample": "analysis.planning", "open_run": "reports.run_tables",
    "trials_from": "analysis.other_logs", "lint_file": "analysis.template_lint", "lint_text": "analysis.template_lint",
    "Arm": "design.arms", "Strategy": "design.strategies", "Scorer": "scorers", "scorer": "scorers.scorer",
    "FairnessError": "errors", "InconclusiveWarning": "errors", "UsageError": "errors",
    "Ask": "model", "Finding": "model", "Verdict": "model",
    "fairness": "pytest_layer.markers", "fairness_grid": "pytest_layer.markers",
    "fairness_pairs": "pytest_layer.markers",
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("pytest-fairness")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module(f"{__name__}.reports")  # hands findings what they are shown with
    return getattr(import_module(f"{__name__}.{_HOME.get(name, 'asserts')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
