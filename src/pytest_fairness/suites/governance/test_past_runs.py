"""Are there past runs to judge? One finding says what is missing, for all tests that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fairness import conclude
from pytest_fairness.suites.governance.past_results import PAST_RUNS, runs_there

if TYPE_CHECKING:
    from pytest_fairness.suites.governance.conftest import GovernanceOptions
    from pytest_fairness.suites.governance.past_results import PastRuns


@pytest.mark.fairness(id=PAST_RUNS, module="iso42001-oversight", controls={"A.9.3": "supporting"})
def test_there_are_past_runs(past: PastRuns, governance: GovernanceOptions) -> None:
    """The processes have runs to be judged by; else the tests of them are skipped."""
    conclude(runs_there(past, governance.monitoring.least_runs))
