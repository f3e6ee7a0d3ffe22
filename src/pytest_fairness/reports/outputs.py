"""Every output of a run, from its folder alone: a session writes them by this path, and
``pytest-fairness report`` too.

The same run, options and surroundings give the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_fairness.errors import FairnessError, StoreError, UsageError
from pytest_fairness.reports import ci_formats
from pytest_fairness.reports.changes import FindingChange, changes_between
from pytest_fairness.reports.findings_json import NAME, read_results
from pytest_fairness.reports.html import NAME as REPORT
from pytest_fairness.reports.html import write_html
from pytest_fairness.reports.markdown import markdown_report
from pytest_fairness.reports.sections import printed_lines, read_sections
from pytest_fairness.runs.files import shown
from pytest_fairness.runs.folder import has_begun, locate_run, run_folders
from pytest_fairness.runs.manifest import read_manifest

#: What GitHub takes as the summary of a step, in bytes.
MOST_SUMMARY = 1024 * 1024


def write_outputs(
    run: Path,
    *,
    html: Path | None = None,
    markdown: Path | None = None,
    junit: Path | None = None,
    sarif: Path | None = None,
    code_quality: Path | None = None,
    against: Path | None = None,
    root: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Path]:
    """Write ``report.html`` and the pages of suites into the folder *run*, a copy of them to
    *html*, and what else has a path; where each output is, by its name.

    *against*: the folder of an earlier run, or a copy of its findings.json, whose findings these
    are compared with.
    *root*: the folder of the project (the working directory), from which paths are shown.
    *environment*: that of the process, which says of which CI job this is. Raises FairnessError
    where there are no findings, and StoreError where an output cannot be written.
    """
    if root is None:
        root = Path.cwd()
    if environment is None:
        environment = os.environ
    results = read_results(run)
    folder = repository_folder(root, environment)
    done = {"report": write_html(run)}
    if html is not None:
        for page in run.glob("*.html"):
            into = html.with_name(page.name)
            if page == done["report"]:
                into = html
            _write(into, page.read_bytes())
        done["html"] = html
    texts: dict[str, tuple[Path | None, Callable[[], str]]] = {
        "markdown": (
            markdown,
            lambda: markdown_text(run, against=against, root=root, environment=environment),
        ),
        "junit": (junit, lambda: ci_formats.junit(results)),
        "sarif": (sarif, lambda: ci_formats.sarif(results, folder)),
        "code quality": (code_quality, lambda: ci_formats.code_quality(results, folder)),
    }
    for name, (path, text) in texts.items():
        if path is not None:
            _write(path, text().encode())
            done[name] = path
    return done


def markdown_text(
    run: Path, *, against: Path | None, root: Path, environment: Mapping[str, str]
) -> str:
    """The report for a pull request, as :func:`write_outputs` writes it."""
    compared = None
    if against is not None:
        compared = read_results(against)
    report = shown(run / REPORT, root)
    job = job_address(environment)
    printed = printed_lines(read_sections(run))
    return markdown_report(
        read_results(run), compared=compared, report=report, job=job, printed=printed
    )


def append_summary(path: Path, text: str) -> bool:
    """Append *text* to the summary of a job of GitHub's at *path*, which holds what earlier
    commands of the step have written; False where it would be too long: GitHub would show none of
    it. Raises StoreError.
    """
    try:
        room = MOST_SUMMARY
        if path.exists():
            room -= path.stat().st_size
        if len(text.encode()) > room:
            return False
        with path.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror})") from error
    return True


_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_FLAGS |= sum(getattr(os, name, 0) for name in ("O_BINARY", "O_NOFOLLOW"))


def refuse_link(path: Path) -> None:
    """Raise StoreError where *path* is a link: whoever put it there has another file written over."""
    if path.is_symlink():
        mend = "name the file itself, or remove the link"
        raise StoreError(f"{path} is a symbolic link, which is not followed: {mend}")


def _write(path: Path, data: bytes) -> None:
    refuse_link(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A link that has come since then is not followed, either.
        with open(os.open(path, _FLAGS, 0o666), "wb") as stream:  # noqa: PTH123
            stream.write(data)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written ({error.strerror}): choose another path"
        ) from error


def compared_runs(run: Path, against: Path | None) -> tuple[FindingChange, ...]:
    """Return what has changed in *run* since *against*; nothing where there is none to compare
    with. Raises FairnessError.
    """
    if against is None:
        return ()
    return changes_between(read_results(against), read_results(run))


def earlier_results(
    run_dir: Path, here: Path, name: str, *, but: Path | None = None
) -> Path | None:
    """Return where the findings lie that *name* means: a file or a run's folder, seen from *here*,
    a run of *run_dir*, or ``last``: the newest of them with findings that can be read, None where
    there is none.

    Raises FairnessError for what is none of these, and for the run *but*, which is compared.
    """
    place = here / name
    if name == "last":
        past = (run for run in reversed(run_folders(run_dir)) if run != but and has_begun(run))
        return next(filter(_is_judged, past), None)
    if place.is_file() or (place / NAME).is_file():
        run = place.resolve()
    else:
        run = locate_run(run_dir, name)
    if run == but:
        raise UsageError(f"run {run.name} cannot be compared with itself: name an earlier one")
    read_results(run)
    return run


def _is_judged(run: Path) -> bool:
    try:
        return bool(read_results(run))
    except FairnessError:
        return False


def recorded_comparison(run: Path) -> Path | None:
    """Return what the session of *run* compared its findings with, None where it did not, or
    resumed that very run. Raises UsageError where that is gone.
    """
    manifest = read_manifest(run)
    settings = (manifest.get("resumed") or [manifest])[-1].get("settings", {})
    if not settings.get("against"):
        return None
    # Paths are recorded as seen from the project, in which runs lie where this one does.
    place: Path = run.parent.resolve() / os.path.relpath(settings["against"], settings["run_dir"])
    if not place.exists():
        raise UsageError(
            f"run {run.name} was compared with {settings['against']}, which is gone: name a run to "
            "compare"
        )
    if place.resolve() == run.resolve():
        return None
    return place.resolve()


def repository_folder(root: Path, environment: Mapping[str, str]) -> str:
    """Return where the project's folder *root* lies in the repository that a job of GitHub or
    GitLab has checked out; empty where it is the repository, or none is known.
    """
    checkout = environment.get("GITHUB_WORKSPACE") or environment.get("CI_PROJECT_DIR") or ""
    if not checkout or not root.resolve().is_relative_to(Path(checkout).resolve()):
        return ""
    return root.resolve().relative_to(Path(checkout).resolve()).as_posix().removeprefix(".")


def job_address(environment: Mapping[str, str]) -> str:
    """Return where this job of GitHub or GitLab shows its logs and artefacts; empty elsewhere."""
    if environment.get("GITHUB_RUN_ID"):
        server = environment.get("GITHUB_SERVER_URL", "")
        repository = environment.get("GITHUB_REPOSITORY", "")
        return f"{server}/{repository}/actions/runs/{environment['GITHUB_RUN_ID']}"
    return environment.get("CI_JOB_URL", "")
