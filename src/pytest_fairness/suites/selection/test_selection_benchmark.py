"""Does scrubbing what is said of the candidates reduce a model's preference between equal ones?

Every item pulls the same trials (every pair of groups in both orders, in every context and arm),
which are asked once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fairness import assert_arm_reduces_disparity, assert_no_preference

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd

    from pytest_fairness.suites.selection.configuration import Configuration
    from pytest_fairness.suites.selection.design import PlannedContrast
    from pytest_fairness.suites.selection.results import SelectionResults


def test_preference(trials: pd.DataFrame, arm: str, signal: str, suite: Configuration) -> None:
    """Of two equal candidates neither group is chosen more often than the other."""
    chosen = trials[(trials["arm"] == arm) & (trials["signal"] == signal)]
    assert_no_preference(chosen, by="group", cluster=suite.cluster, block=suite.blocks(chosen))


def test_arms(
    trials: pd.DataFrame, contrast: PlannedContrast, signal: str, suite: Configuration
) -> None:
    """The treated arm shows less preference than the control: the prompt alone, scrubbing beyond
    it, both.
    """
    both = trials[trials["signal"] == signal]
    placebo = None
    if "placebo" in suite.arm_names:
        placebo = "placebo"
    assert_arm_reduces_disparity(
        both,
        treated=contrast.treated,
        control=contrast.control,
        by=contrast.by,
        classes=contrast.classes,
        cluster=suite.cluster,
        block=suite.blocks(both),
        placebo=placebo,
    )


@pytest.mark.fairness(finding=False)  # it draws one only where there is an effect
def test_order(trials: pd.DataFrame, results: SelectionResults) -> None:
    """The position does not decide nearly every choice; a smaller order effect is reported, and
    favours no group.
    """
    from pytest_fairness.suites.selection.findings import conclude_worst, order_findings

    conclude_worst(order_findings(results, trials))


@pytest.mark.fairness(finding=False)  # as above
def test_context(trials: pd.DataFrame, results: SelectionResults) -> None:
    """The preference does not depend on criteria, role or qualifications: opposite ones would even
    out.
    """
    from pytest_fairness.suites.selection.findings import conclude_worst, interaction_findings

    conclude_worst(interaction_findings(results, trials))


def test_scrubber(trials: pd.DataFrame, results: SelectionResults, scrubber: str) -> None:
    """What scrubbing removes, and what it leaves of the qualifications, does not depend on the
    group.
    """
    from pytest_fairness.suites.selection.findings import conclude_worst, scrubber_findings

    (quality,) = (quality for quality in results.scrubbers if quality.arm == scrubber)
    conclude_worst(scrubber_findings(quality, trials[trials["arm"] == scrubber]))


@pytest.mark.fairness(finding=False)
def test_records(
    trials: pd.DataFrame,
    results: SelectionResults,
    write_records: Callable[[str, pd.DataFrame], Path],
) -> None:
    """Every trial is on record: ``selection.jsonl``, ``selection.json`` and the page stand in the
    run's folder.
    """
    from pytest_fairness.suites.selection.page import write_results

    write_results(results, write_records("selection", trials))
