"""Were the findings of past runs decided, by whom, and in time? From the project's own files;
nobody is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fairness import Reason, conclude
from pytest_fairness.reports import write_sections
from pytest_fairness.suites.governance import oversight

if TYPE_CHECKING:
    from pytest_fairness import Finding, RunContext
    from pytest_fairness.suites.governance.oversight import OversightRecord

pytestmark = pytest.mark.fairness(
    module="iso42001-oversight", controls={"A.9.2": "supporting", "A.9.3": "supporting"}
)


def _conclude(finding: Finding, fairness_run: RunContext) -> None:
    __tracebackhide__ = True
    section = oversight.oversight_section(finding)
    if section.parts:
        write_sections(fairness_run.store.directory, section.id.replace("-", "_"), section)
    conclude(finding)


@pytest.mark.usefixtures("judged_runs")
@pytest.mark.fairness(id="OVER-JUST-001")
def test_every_flag_is_justified(decided: OversightRecord, fairness_run: RunContext) -> None:
    """Each FLAG of the newest run has a justification in force."""
    _conclude(oversight.justified(decided), fairness_run)


@pytest.mark.usefixtures("judged_runs")
@pytest.mark.fairness(id="OVER-MITI-001")
def test_every_fail_is_mitigated(decided: OversightRecord, fairness_run: RunContext) -> None:
    """Each FAIL has a mitigation; none is overdue, and what is done was tested again and passed."""
    _conclude(oversight.mitigated(decided), fairness_run)


@pytest.mark.fairness(id="OVER-APPR-001")
def test_baselines_are_approved_by_somebody_else(
    decided: OversightRecord, fairness_run: RunContext
) -> None:
    """Nobody approved a baseline for a change of their own."""
    _conclude(oversight.approved(decided), fairness_run)


@pytest.mark.fairness(id="OVER-EXPI-001")
def test_expiries_are_kept(
    decided: OversightRecord, fairness_run: RunContext, request: pytest.FixtureRequest
) -> None:
    """No justification and no accepted warning has expired, or has no end."""
    finding = oversight.unexpired(decided)
    if finding.reason is Reason.N:
        # Excuses may lie there before any run does.
        request.getfixturevalue("judged_runs")
    _conclude(finding, fairness_run)
