"""Real pytest sessions, plain and with two workers: from a missing baseline to a justified approval."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .project import APPROVE, FALLEN, PARALLEL, PLAIN, Project


def test_from_missing_to_justified(project: Project) -> None:
    """Missing fails; approved passes; fallen fails; its approval is refused, then allowed; then it passes."""
    missing = project.run(*PLAIN)
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(["*No baseline is approved for the score 'letter_score'*"])
    assert project.files == {}

    project.run(*PLAIN, *APPROVE).assert_outcomes(passed=1)
    first = project.files
    assert len(first) == 1
    assert project.approval()["approved_by"] == "Jane Smith"
    project.run(*PLAIN).assert_outcomes(passed=1)

    project.score(FALLEN)
    fallen = project.run(*PLAIN)
    fallen.assert_outcomes(failed=1)
    fallen.stdout.fnmatch_lines(["*Worse: 85.0 to 82.3*"])
    refused = project.run(*PLAIN, *APPROVE)
    refused.assert_outcomes(failed=1)
    refused.stdout.fnmatch_lines(["*Approval refused: this is a regression*--fairness-approve-regression*"])
    assert project.files == first

    project.run(*PLAIN, *APPROVE, "--fairness-approve-regression").assert_outcomes(passed=1)
    assert project.approval()["regression"] is True
    project.run(*PLAIN).assert_outcomes(passed=1)


def test_parallel_workers_approve_different_baselines(project: Project) -> None:
    """Ids that differ in a slash and a colon, two scores, two workers: a whole file each, each judged."""
    project.pytester.makepyfile(
        test_letters="""
        import pytest

        @pytest.mark.parametrize("of", ["a/b", "a:b", "a b", "A/B", "ab", "a?b"])
        def test_kept(held, of):
            held("tone")
            held("tone/2")
        """
    )
    project.run(*PARALLEL, *APPROVE).assert_outcomes(passed=6)
    approved = project.files
    assert len(approved) == 12
    project.score(FALLEN)
    project.run(*PARALLEL, *APPROVE).assert_outcomes(failed=6)
    assert project.files == approved


def test_approving_in_ci_is_refused_unless_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that every CI service sets is enough; so is the option against it."""
    monkeypatch.setenv("CI", "true")
    refused = project.run(*PLAIN, *APPROVE)
    refused.assert_outcomes(failed=1)
    refused.stdout.fnmatch_lines(["*under CI (CI='true')*--fairness-approve-in-ci*"])
    assert project.files == {}
    project.run(*PLAIN, *APPROVE, "--fairness-approve-in-ci").assert_outcomes(passed=1)
    assert len(project.files) == 1


def test_files_that_cannot_be_trusted_fail_the_test(project: Project) -> None:
    """Edited by hand, or a link: the session says what is wrong, and changes nothing."""
    project.run(*PLAIN, *APPROVE).assert_outcomes(passed=1)
    (file,) = project.folder.iterdir()
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"mean": 78.0', '"mean": 50.0'), encoding="utf-8")
    edited = project.run(*PLAIN, *APPROVE, "--fairness-approve-regression")
    edited.assert_outcomes(failed=1)
    edited.stdout.fnmatch_lines(["*changed after it was approved*"])
    target = project.pytester.path / "precious.json"
    file.rename(target)
    file.symlink_to(target)
    project.run(*PLAIN, *APPROVE).assert_outcomes(failed=1)
    assert file.is_symlink()
    assert '"mean": 50.0' in target.read_text(encoding="utf-8")


def test_syrupy_is_imported_only_when_a_baseline_is_used() -> None:
    """The store can be built in every fairness session without paying for syrupy, pandas or scipy."""
    code = (
        "import sys, pytest_fairness.baselines\n"
        "print(sorted({'syrupy', 'pandas', 'scipy', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
