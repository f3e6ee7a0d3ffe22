"""Suites that are run by name from a folder of somebody's own: nothing of this repository's tests
is part of that.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.sessions import run_pytest

SUITE = ("--pyargs", "pytest_fairness.suites.letters", "-k", "test_baseline")
APPROVE = ("--fairness-approve", "--fairness-justification", "reviewed 20 letters")

#: A fifth of the letters.
FEW = "letters: [rejection]\nposts: [payroll]\nrepetitions: 1\n"


def by_name(folder: Path, *arguments: str, **environment: str) -> pytest.RunResult:
    """The suite in a process of its own, whose plugins are those that are installed, all of them."""
    given = {**os.environ, "PYTEST_ADDOPTS": "", **environment}
    session: pytest.RunResult = run_pytest(
        folder, "-p", "no:cacheprovider", *SUITE, *arguments, environment=given
    )
    return session


def test_no_conftest_stands_above_the_package() -> None:
    """Under an editable install pytest would load it for every suite that is run by name."""
    assert not Path(__file__).parents[2].joinpath("conftest.py").exists()


@pytest.mark.parametrize(
    ("workers", "options"),
    [(["-p", "no:xdist"], ""), (["-n0"], FEW), (["-n2"], FEW)],
    ids=["plain", "n0", "n2"],
)
def test_an_approval_in_ci_is_refused(tmp_path: Path, workers: Sequence[str], options: str) -> None:
    """With nothing but ``CI=true``, plain from an empty folder: no baseline is written."""
    if options:
        tmp_path.joinpath("letters.yaml").write_text(options, encoding="utf-8")
    session = by_name(tmp_path, *workers, *APPROVE, CI="true")
    assert session.ret == 1, session.stdout.str()
    assert "Approval refused: this runs under CI (CI='true')" in session.stdout.str()
    assert not tmp_path.joinpath("baselines").exists()


def test_a_variable_that_approves_nothing_is_refused_with_what_to_type(tmp_path: Path) -> None:
    session = by_name(tmp_path, "-p", "no:xdist", FAIRNESS_APPROVE="true")
    shown = f"{session.stderr}{session.stdout}"
    assert session.ret in (2, 4), shown
    assert "FAIRNESS_APPROVE='true' is set and approves nothing" in shown
    assert not tmp_path.joinpath(".fairness").exists()


def test_the_summary_of_a_step_is_written(tmp_path: Path) -> None:
    tmp_path.joinpath("letters.yaml").write_text(FEW, encoding="utf-8")
    summary = tmp_path / "summary.md"
    summary.touch()
    by_name(tmp_path, "-p", "no:xdist", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert "<!-- pytest-fairness -->" in summary.read_text(encoding="utf-8")
