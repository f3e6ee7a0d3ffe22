"""Do scores and verdicts drift from run to run? From the findings of past runs; nobody is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fairness.reports import write_sections
from pytest_fairness.suites.governance.monitoring import drift_findings, drift_section
from pytest_fairness.suites.governance.past_results import conclude_each

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_fairness import RunContext
    from pytest_fairness.suites.governance.conftest import GovernanceOptions
    from pytest_fairness.suites.governance.past_results import PastRuns

pytestmark = [
    pytest.mark.usefixtures("judged_runs"),
    pytest.mark.fairness(
        module="iso42001-monitoring", controls={"A.6.2.6": "direct", "A.6.2.8": "supporting"}
    ),
]


@pytest.fixture
def monitor(
    past: PastRuns, governance: GovernanceOptions, fairness_run: RunContext
) -> Callable[[str], None]:
    """Return a function that judges what drifts, and puts its chart into the report."""

    def judge(what: str) -> None:
        __tracebackhide__ = True
        findings, drifts = drift_findings(past, governance.monitoring, what)
        section = drift_section(what, drifts)
        if section is not None:
            write_sections(fairness_run.store.directory, f"drift_{what}", section)
        conclude_each(findings)

    return judge


@pytest.mark.fairness(id="MON-GAP-001")
def test_gaps_stay_as_they_are(monitor: Callable[[str], None]) -> None:
    """No group's distance from the others drifts."""
    monitor("gap")


@pytest.mark.fairness(id="MON-LEVEL-001")
def test_levels_stay_as_they_are(monitor: Callable[[str], None]) -> None:
    """No outcome's mean over all groups drifts."""
    monitor("level")


@pytest.mark.fairness(id="MON-VERD-001")
def test_alarms_become_no_more(monitor: Callable[[str], None]) -> None:
    """No endpoint raises more alarms than it did."""
    monitor("alarms")
