"""Yes or no about a person does not depend on who that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_fairness import assert_no_disparity

if TYPE_CHECKING:
    import pandas as pd


def test_decision(decided: pd.DataFrame, by: str, alpha: float) -> None:
    """One group is told yes as often as another. The scenario is the unit, which is asked about
    everybody.
    """
    assert_no_disparity(
        decided, outcome="decision", by=by, cluster="scenario", block=None, alpha=alpha
    )
