"""Real pytest sessions, plain and with two workers: whose file is whose, and syrupy's options leave
baselines alone.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SUITE = """
import json
from pathlib import Path
import pandas as pd
import pytest
from pytest_fairness import assert_baseline

MEANS = json.loads(Path(__file__).with_name("scores.json").read_text())

def held(score="letter_score"):
    rows = [(f"p{at}", mean + repetition) for at, mean in enumerate(MEANS) for repetition in range(3)]
    assert_baseline(pd.DataFrame(rows, columns=["persona", score]), score=score)

@pytest.mark.fairness
def test_letters():
    held()
"""
OTHER = "\n@pytest.mark.fairness\ndef test_other():\n    held('other')\n"
MANY = SUITE.replace(
    "def test_letters():\n    held()",
    '@pytest.mark.parametrize("of", ["a/b", "a:b", "a b", "A/B", "ab", "a?b"])\n'
    'def test_kept(of):\n    held("tone")\n    held("tone/2")',
)
SCORES = [92.0, 85.0, 78.0, 88.0, 95.0, 70.0, 81.0, 90.0, 66.0, 84.0]
APPROVE = ("--fairness-approve", "--fairness-justification", "reviewed 20 letters")


class Project:
    """A project whose scores are in a file."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.folder = pytester.path / "baselines"
        self.score(SCORES)

    def score(self, scores: list[float]) -> None:
        (self.pytester.path / "scores.json").write_text(json.dumps(scores))

    def run(self, *arguments: str) -> pytest.RunResult:
        return self.pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)

    @property
    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.glob("*.json")}


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """See :class:`Project`; the machine's own CI and login do not show."""
    monkeypatch.setenv("FAIRNESS_APPROVER", "Jane Smith")
    return Project(pytester)


def test_syrupy_owns_no_baseline(project: Project) -> None:
    """Two approved baselines beside an ordinary snapshot: syrupy's options write, find and delete
    that one alone.

    Those of tests that did not run are not unused, and syrupy's folder may not be ours.
    """
    project.pytester.makepyfile(
        test_letters=SUITE + OTHER,
        test_plain="def test_plain(snapshot):\n    assert 1 == snapshot\n",
    )
    snapshots = project.pytester.path / "__snapshots__"
    # All three are run: approving baselines writes no snapshots, so that the plain one still fails.
    project.run(*APPROVE).assert_outcomes(passed=2, failed=1)
    before = project.files
    assert len(before) == 2
    assert not snapshots.exists()

    selected = project.run("-k", "test_other")
    assert selected.ret == 0
    selected.stdout.no_fnmatch_line("*snapshot* unused*")
    result = project.run("--snapshot-dirname", "baselines", "test_letters.py")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*lies in a folder of syrupy's snapshots*"])

    project.score([score - 3 for score in SCORES])
    project.run("-n2", "--snapshot-update").assert_outcomes(failed=2, passed=1)
    assert list(snapshots.glob("*"))
    project.pytester.makepyfile(test_letters="def test_nothing():\n    pass\n")
    project.run("--snapshot-update").assert_outcomes(passed=2)
    assert project.files == before

    project.pytester.makepyfile(test_letters=SUITE + OTHER)
    for path in project.folder.glob("*.json"):
        path.unlink()
    for option in ("--snapshot-update", "--snapshot-update-new-only"):
        project.run(option, "test_letters.py").assert_outcomes(failed=2)
        assert project.files == {}


def test_parallel_workers_approve_different_baselines(project: Project) -> None:
    """Ids that differ in a slash and a colon, two scores, two workers: a whole file each, each
    judged.
    """
    project.pytester.makepyfile(test_letters=MANY)
    project.run("-n2", *APPROVE).assert_outcomes(passed=6)
    approved = project.files
    assert len(approved) == 12
    project.score([score - 3 for score in SCORES])
    project.run(*APPROVE).assert_outcomes(failed=6)
    assert project.files == approved


def test_what_no_test_claims_is_named_and_never_touched(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renamed test leaves its baseline behind; one that fails may have done so before it looked
    for it.
    """
    project.pytester.makepyfile(test_letters=SUITE)
    project.run(*APPROVE).assert_outcomes(passed=1)
    (baseline,) = project.files
    project.pytester.makepyfile(test_letters=SUITE.replace("test_letters", "test_renamed"))
    # Workers collect for themselves: only a session in one process knows that it has seen
    # everything.
    for mode, names in (("-n2", 0), ("-n0", 1)):
        result = project.run(mode, *APPROVE)
        result.assert_outcomes(passed=1)
        assert baseline in project.files
        named = [line for line in result.outlines if "unclaimed baseline" in line]
        assert len(named) == names
        assert all(baseline in line for line in named)
    (project.folder / baseline).unlink()
    monkeypatch.setenv("CI", "true")
    refused = project.run(*APPROVE)
    refused.assert_outcomes(failed=1)
    refused.stdout.fnmatch_lines(["*Approval refused: this runs under CI*"])
    assert "unclaimed" not in refused.stdout.str()


def test_syrupy_is_imported_only_when_a_baseline_is_used() -> None:
    """A fairness session pays neither for syrupy nor for pandas or scipy before it judges."""
    code = (
        "import sys, pytest_fairness.context, pytest_fairness.baselines.snapshot_files\n"
        "print(sorted({'syrupy', 'pandas', 'scipy', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_variable_approves_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAIRNESS_APPROVE=true, as another tool has it, is answered with what to type; 0 approves
    nothing by itself.
    """
    project.pytester.makepyfile(
        test_it="import pytest\n@pytest.mark.fairness\ndef test_it():\n    pass\n"
    )
    monkeypatch.setenv("FAIRNESS_APPROVE", "true")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*FAIRNESS_APPROVE='true' is set and approves nothing*--fairness-approve*"]
    )
    monkeypatch.setenv("FAIRNESS_APPROVE", "0")
    project.run().assert_outcomes(passed=1)
