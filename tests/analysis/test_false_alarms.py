"""Across a session: Holm over its findings on tables, and the chance of a false alarm."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from pytest_fairness.analysis.false_alarms import (
    adjusted,
    chance,
    finding_p_value,
    holm,
    of_session,
    only_by_itself,
    session_p_value,
)
from pytest_fairness.model import Finding, PairResult, Verdict
from pytest_fairness.reports.findings_json import conclude, read_results, save_results
from pytest_fairness.reports.html import write_html
from pytest_fairness.reports.plain_text import summary_lines
from pytest_fairness.statistics.corrections import correct

from ..reports.factories import disparity, passing, results


def finding(
    *corrected: float, verdict: Verdict = Verdict.FLAG, assertion: str = "no_disparity", **found
) -> Finding:
    """A finding whose pairs have the *corrected* p-values, and *found* as their statistics."""
    pairs = tuple(
        PairResult(
            group_1="a",
            group_2=f"b{at}",
            metric="m",
            verdict=verdict,
            corrected_p_value=p,
            statistics=found,
        )
        for at, p in enumerate(corrected)
    )
    return Finding(
        assertion=assertion,
        verdict=verdict,
        sentence=f"{verdict}: x.",
        pairs=pairs,
        family={"alpha": 0.05},
    )


def test_the_controller_of_a_session_loads_no_numpy() -> None:
    """What is concluded of a session is written where nothing is judged; the pictures alone need
    the tables.
    """
    code = "import sys, pytest_fairness.reports.plain_text; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_holm_is_that_of_the_statistics() -> None:
    """It stands here once more because the controller of a session loads no numpy."""
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 7, 40):
        p = rng.random(size).round(2).tolist()
        assert holm(p) == pytest.approx(correct(p, "holm").tolist())


@pytest.mark.parametrize(
    ("found", "p"),
    [
        (finding(0.3, 0.02, 0.7), 0.02),  # corrected within the finding already
        (finding(), 1.0),
        # its own p-value is small where the groups are alike
        (finding(0.001, assertion="equivalent", difference_corrected_p_value=0.6), 0.6),
        (finding(0.001, assertion="equivalent"), 1.0),
        # a disparity that shrinks is no alarm
        (finding(0.001, assertion="arm_reduces_disparity", control=0.5, treated=0.1), 1.0),
        (finding(0.001, assertion="arm_reduces_disparity", control=0.1, treated=-0.5), 0.001),
    ],
    ids=range(6),
)
def test_a_finding_counts_by_its_evidence_for_an_alarm(found: Finding, p: float) -> None:
    """The hypothesis is that no pair differs."""
    assert finding_p_value(found) == p


def test_every_finding_carries_its_session_p() -> None:
    """Beside its own, which stays, as does the verdict; one alarm may be so by itself only. A
    finding alone has nothing to be adjusted for."""
    found = adjusted([finding(0.001), finding(0.04), finding(0.9, verdict=Verdict.PASS)])
    assert [session_p_value(one) for one in found] == pytest.approx([0.003, 0.08, 0.9])
    beside = {
        "p_value": 0.04,
        "corrected_p_value": pytest.approx(0.08),
        "findings": 3,
        "method": "holm",
    }
    assert found[1].details["session"] == beside
    assert found[1].pairs[0].corrected_p_value == 0.04
    assert [one.verdict for one in found] == [Verdict.FLAG, Verdict.FLAG, Verdict.PASS]
    (alone,) = adjusted([finding(0.01)])
    assert [only_by_itself(one) for one in (*found, alone)] == [False, True, False, False]
    assert session_p_value(alone) is session_p_value(finding(0.01)) is None


def test_findings_that_look_stand_apart() -> None:
    """Their p is that of a stopped sample: Holm is over the tables alone."""
    looks = {"looks": {"planned": [10, 20, 40]}}
    of_grid = replace(finding(0.001), details=looks)
    changed = adjusted([finding(0.02), of_grid, finding(0.9, verdict=Verdict.PASS)])
    assert [session_p_value(one) for one in changed] == [pytest.approx(0.04), None, 0.9]
    assert changed[1].details == looks


def test_the_chance_of_a_table_follows_its_level() -> None:
    """Measured at .05; and of several: that at least one is red."""
    assert chance(0.05) == 0.046
    assert chance(0.01) == pytest.approx(0.0092)
    assert of_session([0.046, 0.046]) == pytest.approx(1 - 0.954**2)


def test_the_file_the_terminal_and_the_page_tell_it(tmp_path) -> None:
    """findings.json has it for each finding; the summary marks it and names the tests; the page has
    a column.
    """
    weak = disparity(
        verdict=Verdict.FLAG,
        sentence="FLAG: a difference.",
        justification={"reason": "known", "approver": "J"},
        pairs=(
            PairResult(
                group_1="a", group_2="b", metric="m", verdict=Verdict.FLAG, corrected_p_value=0.03
            ),
        ),
    )
    strong = disparity(justification=None, test_id="tests/test_names.py::test_strong")
    ledger = results(weak, strong, passing())
    manifest = {"id": "r", "settings": {"session_alpha": 0.05}, "endpoints": []}
    written = conclude(tmp_path, manifest, ledger.to_dict())
    save_results(written, tmp_path)
    read = read_results(tmp_path)
    known = {"method": "holm", "findings": 3, "alpha": 0.05, "looks": 0, "judged_once": 0}
    assert read.session == {**known, "false_alarm": None, "false_alarm_of_looks": None}
    assert [f.details["session"]["corrected_p_value"] for f in read.findings] == pytest.approx(
        [0.06, 0.0072, 0.62]
    )
    lines = "\n".join(summary_lines(written))
    assert "not across the findings of this session (Holm p .0600)" in " ".join(lines.split())
    page = write_html(tmp_path).read_text(encoding="utf-8")
    assert "Session p" in page
    assert page.count(".0600") >= 2
