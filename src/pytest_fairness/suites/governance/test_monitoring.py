"""Do scores and verdicts drift from run to run? From the findings of past runs; nobody is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fairness.reports import write_sections
from pytest_fairness.suites.governance.monitoring import drift_findings, drift_section
from pytest_fairness.suites.governance.past_results import conclude_each

if TYPE_CHECKING:
    from pytest_fairness import RunContext
    from pytest_fairness.suites.governance.conftest import GovernanceOptions
    from pytest_fairness.suites.governance.past_results import PastRuns

MODULE = "iso42001-monitoring"
CONTROLS = {"A.6.2.6": "direct", "A.6.2.8": "supporting"}


def _monitor(
    what: str, past: PastRuns, governance: GovernanceOptions, fairness_run: RunContext
) -> None:
    __tracebackhide__ = True
    findings, drifts = drift_findings(past, governance.monitoring, what)
    if (section := drift_section(what, drifts)) is not None:
        write_sections(fairness_run.store.directory, f"drift_{what}", section)
    conclude_each(findings)


@pytest.mark.usefixtures("judged_runs")
@pytest.mark.fairness(id="MON-GAP-001", module=MODULE, controls=CONTROLS)
def test_gaps_stay_as_they_are(
    past: PastRuns, governance: GovernanceOptions, fairness_run: RunContext
) -> None:
    """No group's distance from the others drifts."""
    _monitor("gap", past, governance, fairness_run)


@pytest.mark.usefixtures("judged_runs")
@pytest.mark.fairness(id="MON-LEVEL-001", module=MODULE, controls=CONTROLS)
def test_levels_stay_as_they_are(
    past: PastRuns, governance: GovernanceOptions, fairness_run: RunContext
) -> None:
    """No outcome's mean over all groups drifts."""
    _monitor("level", past, governance, fairness_run)


@pytest.mark.usefixtures("judged_runs")
@pytest.mark.fairness(id="MON-VERD-001", module=MODULE, controls=CONTROLS)
def test_alarms_become_no_more(
    past: PastRuns, governance: GovernanceOptions, fairness_run: RunContext
) -> None:
    """No endpoint raises more alarms than it did."""
    _monitor("alarms", past, governance, fairness_run)
