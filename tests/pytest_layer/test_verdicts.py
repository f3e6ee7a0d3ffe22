"""What each verdict does to a test, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import GRID, Run

Findings = Callable[[], list[dict[str, Any]]]


def test_a_small_sample_fails_unless_it_is_a_smoke_test(pytester: pytest.Pytester, run_in_mode: Run) -> None:
    """INCONCLUSIVE(N) fails; ``--fairness-smoke`` skips it with the reason."""
    pytester.makepyfile(GRID.replace("repetitions=2", "names=4, repetitions=1"))
    run_in_mode().assert_outcomes(failed=1)
    smoke = run_in_mode("--fairness-smoke", "-rs")
    smoke.assert_outcomes(skipped=1)
    smoke.stdout.fnmatch_lines(["*smoke:*"])


TABLE = """
import pandas as pd, pytest
from pytest_fairness import assert_no_disparity

def table(share_a, share_b, n=400):
    rows = [("a", i < share_a * n) for i in range(n)] + [("b", i < share_b * n) for i in range(n)]
    return pd.DataFrame(rows, columns=["race", "hired"])

MARK
def test_hired():
    assert_no_disparity(table(.60, .48), outcome="hired", by="race", cluster=None)
"""


def test_a_justified_flag_passes_and_is_listed(pytester: pytest.Pytester, run: Run, findings: Findings) -> None:
    reason = '{"reason": "one site", "approver": "Jane", "date": "2026-01-01", "expiry": "2999-01-01"}'
    pytester.makepyfile(TABLE.replace("MARK", f"@pytest.mark.fairness(justification={reason})"))
    result = run()
    result.assert_outcomes(passed=1)
    assert findings()[0]["justification"]["reason"] == "one site"
    assert "one site" in result.stdout.str()


def test_an_expired_justification_does_not_count(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(TABLE.replace("MARK", "@pytest.mark.fairness"))
    pytester.path.joinpath("justifications.yaml").write_text(
        "- test: test_an_expired_justification_does_not_count.py::test_hired\n"
        '  reason: "one site"\n  approver: "Jane"\n  date: "2020-01-01"\n  expiry: "2020-06-30"\n',
        encoding="utf-8",
    )
    run().assert_outcomes(failed=1)


def test_an_unclear_result_warns_and_fails_when_asked(pytester: pytest.Pytester, run: Run) -> None:
    """INCONCLUSIVE(PRECISION) warns; ``--fairness-require-conclusive`` makes it fail."""
    pytester.makepyfile(TABLE.replace("MARK", "@pytest.mark.fairness").replace(".60, .48", ".60, .50, 60"))
    result = run()
    result.assert_outcomes(passed=1, warnings=1)
    run("--fairness-require-conclusive").assert_outcomes(failed=1)
