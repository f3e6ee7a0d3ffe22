"""Fairness assertions for systems that contain a language model.

The names below are public, as are those of the modules that ``docs/public.md`` lists. They are
imported when first used: the plugin loads in every pytest session of everyone who installed it, and
those sessions must not pay for pandas and scipy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_fairness.analysis.arm_contrast import analyze_arms
    from pytest_fairness.analysis.baseline import compare_baseline
    from pytest_fairness.analysis.counts import RowCounts, counts_of
    from pytest_fairness.analysis.disparity import analyze_disparity
    from pytest_fairness.analysis.equivalence import analyze_equivalence
    from pytest_fairness.analysis.error_rates import analyze_error_rates
    from pytest_fairness.analysis.four_fifths import analyze_four_fifths
    from pytest_fairness.analysis.ll144 import ll144_tables
    from pytest_fairness.analysis.other_logs import trials_from
    from pytest_fairness.analysis.planning import plan_sample
    from pytest_fairness.analysis.preference import analyze_preference
    from pytest_fairness.analysis.several_outcomes import analyze_outcomes, fairness_verdict
    from pytest_fairness.analysis.spread import analyze_spread
    from pytest_fairness.analysis.strata import analyze_within
    from pytest_fairness.analysis.template_lint import lint_file, lint_text
    from pytest_fairness.analysis.word_use import analyze_words
    from pytest_fairness.asserts import (
        FairnessFailure,
        assert_arm_reduces_disparity,
        assert_baseline,
        assert_equal_error_rates,
        assert_equivalent,
        assert_four_fifths,
        assert_no_disparity,
        assert_no_preference,
        conclude,
    )
    from pytest_fairness.context import RunContext
    from pytest_fairness.design.arms import Arm
    from pytest_fairness.design.names import NameBanks
    from pytest_fairness.design.persona_classes import persona_classes
    from pytest_fairness.design.personas import PersonaMatrix
    from pytest_fairness.design.strategies import Strategy
    from pytest_fairness.errors import (
        FairnessError,
        FrameError,
        InconclusiveWarning,
        InvalidEntry,
        MissingBaselineError,
        UsageError,
    )
    from pytest_fairness.model import (
        Ask,
        Finding,
        GroupResult,
        OutcomeKind,
        PairResult,
        Reason,
        Verdict,
    )
    from pytest_fairness.pytest_layer.markers import fairness, fairness_grid, fairness_pairs
    from pytest_fairness.reports.run_comparison import compare_runs
    from pytest_fairness.reports.run_tables import open_run
    from pytest_fairness.scorers import Scorer
    from pytest_fairness.scorers.judge import judge
    from pytest_fairness.scorers.scorer import scorer
    from pytest_fairness.trials_frame import AnsweredCell

__version__: str

__all__ = [
    "AnsweredCell",
    "Arm",
    "Ask",
    "FairnessError",
    "FairnessFailure",
    "Finding",
    "FrameError",
    "GroupResult",
    "InconclusiveWarning",
    "InvalidEntry",
    "MissingBaselineError",
    "NameBanks",
    "OutcomeKind",
    "PairResult",
    "PersonaMatrix",
    "Reason",
    "RowCounts",
    "RunContext",
    "Scorer",
    "Strategy",
    "UsageError",
    "Verdict",
    "analyze_arms",
    "analyze_disparity",
    "analyze_equivalence",
    "analyze_error_rates",
    "analyze_four_fifths",
    "analyze_outcomes",
    "analyze_preference",
    "analyze_spread",
    "analyze_within",
    "analyze_words",
    "assert_arm_reduces_disparity",
    "assert_baseline",
    "assert_equal_error_rates",
    "assert_equivalent",
    "assert_four_fifths",
    "assert_no_disparity",
    "assert_no_preference",
    "compare_baseline",
    "compare_runs",
    "conclude",
    "counts_of",
    "fairness",
    "fairness_grid",
    "fairness_pairs",
    "fairness_verdict",
    "judge",
    "lint_file",
    "lint_text",
    "ll144_tables",
    "open_run",
    "persona_classes",
    "plan_sample",
    "scorer",
    "trials_from",
]
#: The modules of those names that are not in ``asserts``.
_HOME = {
    "AnsweredCell": "trials_frame",
    "Arm": "design.arms",
    "Ask": "model",
    "FairnessError": "errors",
    "Finding": "model",
    "FrameError": "errors",
    "GroupResult": "model",
    "InconclusiveWarning": "errors",
    "InvalidEntry": "errors",
    "MissingBaselineError": "errors",
    "NameBanks": "design.names",
    "OutcomeKind": "model",
    "PairResult": "model",
    "PersonaMatrix": "design.personas",
    "Reason": "model",
    "RowCounts": "analysis.counts",
    "RunContext": "context",
    "Scorer": "scorers",
    "Strategy": "design.strategies",
    "UsageError": "errors",
    "Verdict": "model",
    "analyze_arms": "analysis.arm_contrast",
    "analyze_disparity": "analysis.disparity",
    "analyze_equivalence": "analysis.equivalence",
    "analyze_error_rates": "analysis.error_rates",
    "analyze_four_fifths": "analysis.four_fifths",
    "analyze_outcomes": "analysis.several_outcomes",
    "analyze_preference": "analysis.preference",
    "analyze_spread": "analysis.spread",
    "analyze_within": "analysis.strata",
    "analyze_words": "analysis.word_use",
    "compare_baseline": "analysis.baseline",
    "compare_runs": "reports.run_comparison",
    "counts_of": "analysis.counts",
    "fairness": "pytest_layer.markers",
    "fairness_grid": "pytest_layer.markers",
    "fairness_pairs": "pytest_layer.markers",
    "fairness_verdict": "analysis.several_outcomes",
    "judge": "scorers.judge",
    "lint_file": "analysis.template_lint",
    "lint_text": "analysis.template_lint",
    "ll144_tables": "analysis.ll144",
    "open_run": "reports.run_tables",
    "persona_classes": "design.persona_classes",
    "plan_sample": "analysis.planning",
    "scorer": "scorers.scorer",
    "trials_from": "analysis.other_logs",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("pytest-fairness")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module(f"{__name__}.reports")  # hands findings what they are shown with
    return getattr(import_module(f"{__name__}.{_HOME.get(name, 'asserts')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
