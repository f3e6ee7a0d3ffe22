"""Does scrubbing what is said of the candidates reduce a model's preference between equal ones?

Every item pulls the same trials: every pair of groups in both orders, in every context and arm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fairness import assert_arm_reduces_disparity, assert_no_preference

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.suites.selection.configuration import Configuration
    from pytest_fairness.suites.selection.design import Contrast


def test_preference(trials: pd.DataFrame, arm: str, signal: str, suite: Configuration) -> None:
    """Of two equal candidates neither group is chosen more often than the other."""
    chosen = trials[(trials["arm"] == arm) & (trials["signal"] == signal)]
    assert_no_preference(chosen, by="group", cluster=suite.cluster, block=suite.blocks(chosen))


def test_arms(trials: pd.DataFrame, contrast: Contrast, signal: str, suite: Configuration) -> None:
    """The treated arm shows less preference than the control."""
    both = trials[trials["signal"] == signal]
    assert_arm_reduces_disparity(
        both,
        treated=contrast.treated,
        control=contrast.control,
        by="group",
        cluster=suite.cluster,
        block=suite.blocks(both),
        placebo="placebo" if "placebo" in suite.arm_names else None,
    )
