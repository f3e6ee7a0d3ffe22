"""``--fairness-against`` and ``--fairness-markdown``: what a session says of the run before, once,
in every mode.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness.cli import main
from tests.conftest import MODES

from .conftest import BIASED, GRID, Project, shown


def test_a_session_says_once_what_has_changed(
    project: Project,
    mode: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the terminal, the file, the summary of GitHub's job and an annotation; the command writes
    the same bytes.
    """
    project.write(endpoints=BIASED)
    name = ["--fairness-endpoint=planted", "--fairness-against=last"]
    # A system of that name that is fair, for a first run, which finds none before it.
    (project.path / "endpoints.yaml").write_text(BIASED.replace("-0.8", "0.0"), encoding="utf-8")
    first = project.run(*name, mode=MODES["plain"])
    first.assert_outcomes(passed=1)
    assert "since last: there is no earlier run with findings to compare with" in shown(first)
    before = project.last.name

    (project.path / "endpoints.yaml").write_text(BIASED, encoding="utf-8")
    summary = project.path / "summary.md"
    summary.write_text("# Before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path.parent))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    result = project.run(*name, "--fairness-markdown=out/fairness.md", mode=mode, apart=True)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["markdown: out/fairness.md", f"since {before}: 1 new"])
    annotated = [line for line in result.outlines if line.startswith("::")]
    (place,) = (line.partition("title=")[0] for line in annotated if line.startswith("::error"))
    assert place == f"::error file={project.path.name}/test_suite.py,line=4,"
    text = (project.path / "out" / "fairness.md").read_text(encoding="utf-8")
    assert f"### Since run {before}: 1 new" in text
    assert summary.read_text(encoding="utf-8") == f"# Before\n{text}"

    monkeypatch.chdir(project.path)
    page = project.page
    assert main(["report", "last", "--markdown", "again.md"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"since {before}: 1 new"
    assert Path("again.md").read_text(encoding="utf-8") == text
    assert project.page == page


@pytest.mark.parametrize("name", ["2026-02-28-001", "test_suite.py"])
def test_what_cannot_be_compared_with_ends_the_session_first(project: Project, name: str) -> None:
    """Before anything is asked, with exit status 4."""
    project.write()
    result = project.run(f"--fairness-against={name}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not (project.path / ".fairness").exists()


def test_an_ini_value_leaves_github_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No annotation and no summary; nor outside of GitHub, whatever is set."""
    project.write(
        GRID.replace('by="race_ethnicity")', 'by="race_ethnicity")\n    raise ValueError')
    )
    summary = project.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    project.run().assert_outcomes(failed=1)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = project.run("-o", "fairness_github=off")
    assert not [line for line in result.outlines if line.startswith("::")]
    assert not summary.exists()
