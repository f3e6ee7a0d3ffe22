"""Calls of the assertions as a type checker sees them; mypy checks this file with the source.

Each has the parameters of its analysis: a call that is wrong needs its ``type: ignore``, and one
that is not needed is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_fairness

if TYPE_CHECKING:
    from typing import assert_type

    import pandas as pd

    def right_calls(frame: pd.DataFrame) -> None:
        assert_type(
            pytest_fairness.assert_no_disparity(frame, outcome="sentiment", by="gender"),
            pytest_fairness.Finding,
        )
        pytest_fairness.assert_no_disparity(frame, ["sentiment", len], ["gender", "race"])
        pytest_fairness.assert_four_fifths(frame, "hired", "race", cluster=None, favourable="yes")
        pytest_fairness.assert_no_preference(frame, cluster=("first_name", "second_name"))
        pytest_fairness.assert_equivalent(frame, len, "race", margin=0.1)
        pytest_fairness.assert_equal_error_rates(frame, "risk", "race", truth="charged")
        pytest_fairness.assert_arm_reduces_disparity(frame, treated="scrubbed", control="raw")
        pytest_fairness.assert_baseline(frame, "letter_score", threshold=80)

    def wrong_calls(frame: pd.DataFrame) -> None:
        pytest_fairness.assert_no_disparity(frame, outcom="a", by="b")  # type: ignore[call-arg]
        pytest_fairness.assert_four_fifths(frame, "a", "b", alpha="5 %")  # type: ignore[arg-type]
        pytest_fairness.assert_no_preference(frame, "a", "b")  # type: ignore[call-arg]
        pytest_fairness.assert_equal_error_rates(frame, "a", "b")  # type: ignore[call-arg]
        pytest_fairness.assert_equivalent(frame, "a", "b")  # type: ignore[call-arg]
        pytest_fairness.assert_arm_reduces_disparity(frame)  # type: ignore[call-arg]
        pytest_fairness.assert_baseline(frame, score=3)  # type: ignore[arg-type]
