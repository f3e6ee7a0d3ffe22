"""Every output of a run, from its folder alone: a session writes them by this path, and ``pytest-fairness report`` too.

The same run, options and surroundings give the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pytest_fairness.errors import StoreError, UsageError
from pytest_fairness.reports.changes import FindingChange, changes_between
from pytest_fairness.reports.findings_json import NAME, read_results
from pytest_fairness.reports.html import write_html
from pytest_fairness.reports.markdown import markdown_report
from pytest_fairness.runs.files import shown
from pytest_fairness.runs.folder import locate_run


def write_outputs(
    run: Path,
    *,
    html: Path | None = None,
    markdown: Path | None = None,
    against: Path | None = None,
    root: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Path]:
    """Write ``report.html`` and the pages of suites into the folder *run*, a copy of them to *html*, and what else has
    a path; where each output is, by its name.

    *against*: the folder of an earlier run, or a copy of its findings.json, whose findings these are compared with.
    *root*: the folder of the project (the working directory), from which paths are shown. *environment*: that of the
    process, from which the address of a CI job is taken. Raises FairnessError where there are no findings, and
    StoreError where an output cannot be written.
    """
    root = Path.cwd() if root is None else root
    results = read_results(run)
    compared = None if against is None else read_results(against)
    done = {"report": write_html(run)}
    if html is not None:
        for page in run.glob("*.html"):
            _write(html if page == done["report"] else html.with_name(page.name), page.read_bytes())
        done["html"] = html
    if markdown is not None:
        job = job_address(os.environ if environment is None else environment)
        text = markdown_report(results, compared=compared, report=shown(done["report"], root), job=job)
        _write(markdown, text.encode())
        done["markdown"] = markdown
    return done


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror}): choose another path") from error


def compared_runs(run: Path, against: Path | None) -> tuple[FindingChange, ...]:
    """What has changed in *run* since *against*; nothing where there is none to compare with. Raises FairnessError."""
    return () if against is None else changes_between(read_results(against), read_results(run))


def earlier_results(run_dir: Path, here: Path, name: str) -> Path | None:
    """Where the findings lie that *name* means: a file or a run's folder, seen from *here*, a run of *run_dir*, or
    ``last``: the newest of them that has findings, None where none has. Raises UsageError for what is none of these.
    """
    place = here / name
    if place.is_file() or (place / NAME).is_file():
        return place.resolve()
    judged = [path for path in run_dir.glob(f"*/{NAME}") if path.is_file()]
    if name == "last" and not judged:
        return None
    run = locate_run(run_dir, name, is_meant=lambda run: (run / NAME).is_file())
    if not (run / NAME).is_file():
        raise UsageError(f"run {run.name} was never judged: it has no {NAME} to compare with")
    return run


def job_address(environment: Mapping[str, str]) -> str:
    """Where this job of GitHub or GitLab shows its logs and artefacts; empty elsewhere."""
    if environment.get("GITHUB_RUN_ID"):
        server, repository = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_REPOSITORY", "")
        return f"{server}/{repository}/actions/runs/{environment['GITHUB_RUN_ID']}"
    return environment.get("CI_JOB_URL", "")
