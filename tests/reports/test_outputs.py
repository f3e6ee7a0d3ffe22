"""The one path that writes every output: from a run's folder, again and again the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_fairness.cli import main
from pytest_fairness.errors import FairnessError
from pytest_fairness.reports.outputs import (
    earlier_results,
    job_address,
    recorded_comparison,
    write_outputs,
)

from .factories import disparity, passing, results, run_folder, trial


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two judged runs and one that was killed."""
    folder = tmp_path / ".fairness" / "runs"
    run_folder(folder / "2026-02-28-001", results(passing()), [trial()])
    run_folder(folder / "2026-02-28-002", results(disparity(), passing()), [trial()])
    (folder / "2026-02-28-003").mkdir()
    (folder / "2026-02-28-003" / "manifest.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    return folder


def test_the_command_writes_what_the_function_does(runs: Path, tmp_path: Path, capsys) -> None:
    """Twice the same bytes; the copy of the page is the page; what is new since the earlier run is
    said.
    """
    run = runs / "2026-02-28-002"
    (run / "extra.html").write_text("a page of a suite")
    done = write_outputs(
        run, html=Path("out/a.html"), markdown=Path("out/a.md"), against=runs / "2026-02-28-001"
    )
    page = (run / "report.html").read_bytes()
    assert done == {
        "report": run / "report.html",
        "html": Path("out/a.html"),
        "markdown": Path("out/a.md"),
    }
    arguments = ["--html", "b/b.html", "--markdown", "b/b.md", "--against", "2026-02-28-001"]
    assert main(["report", "2026-02-28-002", *arguments]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "report: .fairness/runs/2026-02-28-002/report.html",
        "html: b/b.html",
        "markdown: b/b.md",
        "since 2026-02-28-001: 1 new, 1 unchanged",
    ]
    assert Path("b/b.html").read_bytes() == Path("out/a.html").read_bytes() == page
    assert Path("b/extra.html").exists()
    assert Path("b/b.md").read_bytes() == Path("out/a.md").read_bytes()


def test_what_has_no_findings_says_what_to_do(runs: Path, capsys) -> None:
    """A run whose session was killed, a folder that is no run, a run that is compared with itself."""
    assert main(["report", "2026-02-28-003"]) == 2
    error = capsys.readouterr().err
    assert "its session ended before it had judged" in error
    for way in ("--fairness-resume=2026-02-28-003", "--fairness-replay=", "pytest-fairness export"):
        assert way in error
    with pytest.raises(FairnessError, match=r"it is no run's folder"):
        write_outputs(runs)
    assert main(["report", "2026-02-28-002", "--against", "2026-02-28-002"]) == 2
    assert "cannot be compared with itself" in capsys.readouterr().err


def test_which_run_is_compared_with(runs: Path, tmp_path: Path) -> None:
    """A file, a folder, an id, the newest with findings; None where there is none yet, an error for
    anything else.
    """
    first, last = runs / "2026-02-28-001", runs / "2026-02-28-002"
    copied = tmp_path / "main.json"
    copied.write_bytes((first / "findings.json").read_bytes())
    assert earlier_results(runs, tmp_path, "main.json") == copied
    assert earlier_results(runs, tmp_path, ".fairness/runs/2026-02-28-001") == first
    assert earlier_results(runs, tmp_path, "2026-02-28-001") == first
    assert earlier_results(runs, tmp_path, "last") == last
    assert earlier_results(tmp_path / "nowhere", tmp_path, "last") is None
    assert earlier_results(runs, tmp_path, "last", but=last) == first
    for name in ("2026-02-28-003", "2026-02-28-004", "nothing.json", "2026-02-28-002"):
        with pytest.raises(FairnessError, match=r"had judged|holds no run|with itself"):
            earlier_results(runs, tmp_path, name, but=last)
    (last / "findings.json").write_text('{"schema": 99}')  # of another version: passed over
    assert earlier_results(runs, tmp_path, "last") == first


def test_what_a_session_compared_with_is_compared_again(runs: Path, tmp_path: Path, capsys) -> None:
    """The manifest says it, as seen from the project; a session that resumed the run may have been
    given another. Where it is gone nothing is compared, and another run can be named instead.
    """
    run = runs / "2026-02-28-002"
    settings = {"run_dir": ".fairness/runs", "against": "nowhere"}
    resumed = {"settings": {**settings, "against": ".fairness/runs/2026-02-28-001"}}
    (run / "manifest.json").write_text(json.dumps({"settings": settings, "resumed": [resumed]}))
    assert recorded_comparison(run) == runs / "2026-02-28-001"
    assert main(["report", "last"]) == 0
    assert "since 2026-02-28-001: 1 new, 1 unchanged" in capsys.readouterr().out
    (run / "manifest.json").write_text(json.dumps({"settings": settings}))
    assert main(["report", "last"]) == 0
    assert (
        "nothing is compared: run 2026-02-28-002 was compared with nowhere, which is gone"
        in capsys.readouterr().out
    )
    assert main(["report", "last", "--against", "last"]) == 0


def test_the_address_of_a_job() -> None:
    """GitHub's and GitLab's own variables; nothing elsewhere."""
    github = {
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_RUN_ID": "7",
    }
    assert job_address(github) == "https://github.com/a/b/actions/runs/7"
    assert (
        job_address({"CI_JOB_URL": "https://gitlab.com/a/b/-/jobs/7"})
        == "https://gitlab.com/a/b/-/jobs/7"
    )
    assert job_address({}) == ""
