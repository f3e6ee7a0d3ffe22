"""``fairness_session_alpha``: what a session of many findings makes of each, in every mode."""

from __future__ import annotations

import pytest

from tests.conftest import MODES
from tests.support.justifications import IN_FORCE

from .conftest import Project, shown

SUITE = """
import pandas as pd, pytest
from pytest_fairness import assert_no_disparity

def table(share_a, share_b, n=400):
    rows = [("a", i < share_a * n) for i in range(n)] + [("b", i < share_b * n) for i in range(n)]
    return pd.DataFrame(rows, columns=["race", "hired"])

JUSTIFIED = @IN_FORCE@

@pytest.mark.fairness(justification=JUSTIFIED)
@pytest.mark.parametrize(("share", "n"), [(FLAGGED)])
def test_hired(share, n):
    assert_no_disparity(table(.60, share, n), outcome="hired", by="race", cluster=None)

@pytest.mark.fairness
@pytest.mark.parametrize("share", [.60, .61, .62])
def test_even(share):
    assert_no_disparity(table(.60, share), outcome="hired", by="race", cluster=None)
""".replace("@IN_FORCE@", repr(IN_FORCE))


def test_a_strong_justified_flag_fails_the_session_and_no_test(project: Project) -> None:
    """p = .0007, .003 across four findings: the tests are green, the session is not, and says for
    which test. Off unless the ini file says so; every finding has its p across the session all the
    same."""
    project.write(SUITE.replace("FLAGGED", ".48, 400"))
    result = project.run("-o", "fairness_session_alpha=.05", mode=MODES["n2"])
    result.assert_outcomes(passed=4)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*session fails at fairness_session_alpha 0.05: 1 finding*", "*test_hired?0.48-400?*"]
    )
    found = {finding["verdict"]: finding["details"]["session"] for finding in project.findings}
    assert found["FLAG"]["findings"] == 4
    assert found["FLAG"]["corrected_p_value"] == pytest.approx(4 * found["FLAG"]["p_value"])
    assert found["PASS"]["corrected_p_value"] == 1.0
    assert project.run("-o", "fairness_session_alpha=.05").ret == pytest.ExitCode.TESTS_FAILED
    result = project.run()
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*FLAG [[]justified[]]*"])


def test_a_weak_one_is_shown_to_be_within_chance_and_fails_nothing(project: Project) -> None:
    """p = .02 by itself, .08 across four findings."""
    project.write(SUITE.replace("FLAGGED", ".49, 220"))
    result = project.run("-o", "fairness_session_alpha=.05")
    result.assert_outcomes(passed=4)
    assert result.ret == pytest.ExitCode.OK
    assert (
        "beyond chance by itself, but not across the findings of this session (Holm p .0"
        in shown(result)
    )


def test_a_level_out_of_range_is_refused(project: Project) -> None:
    refused = project.run("-o", "fairness_session_alpha=5")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*fairness_session_alpha='5': must be a level between 0 and 1*"])
