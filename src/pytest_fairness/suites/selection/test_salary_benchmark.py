"""Is a candidate offered less for their group, and does scrubbing what is said of them reduce the
difference?

One candidate at a time, with the groups, roles, qualifications and arms of the selection benchmark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_fairness import assert_arm_reduces_disparity, assert_no_disparity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd

    from pytest_fairness.suites.selection.configuration import Configuration
    from pytest_fairness.suites.selection.design import PlannedContrast


def test_salary(
    trials: pd.DataFrame, pay: Any, arm: str, signal: str, suite: Configuration
) -> None:
    """Equal candidates are offered the same, whatever their group."""
    offered = trials[(trials["arm"] == arm) & (trials["signal"] == signal)]
    assert_no_disparity(offered, outcome=pay, by="group", block=suite.block_of_scores)


def test_salary_arms(
    trials: pd.DataFrame, pay: Any, contrast: PlannedContrast, signal: str, suite: Configuration
) -> None:
    """The treated arm shows less difference between the groups than the control."""
    assert_arm_reduces_disparity(
        trials[trials["signal"] == signal],
        outcome=pay,
        treated=contrast.treated,
        control=contrast.control,
        by=contrast.by,
        classes=contrast.classes,
        block=suite.block_of_scores,
    )


def test_salary_records(
    trials: pd.DataFrame, suite: Configuration, write_records: Callable[[str, pd.DataFrame], Path]
) -> None:
    """Every trial is on record: ``salary.jsonl`` is written into the run's folder, with the salary
    that was read.
    """
    from pytest_fairness.suites.selection.trial_lines import with_salaries

    write_records("salary", with_salaries(trials, suite.hours_per_year))
