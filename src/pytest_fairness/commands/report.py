"""``pytest-fairness report``: the reports of a run again, from its folder, as its session wrote
them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_fairness.commands import add_path, add_run_or_last


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "report",
        help="write the reports of a run, from its folder",
        description="Writes the page report.html into the folder of the run, and each other report that has a path, "
        "with the bytes that a session writes. Nothing is judged again.",
        example="pytest-fairness report last --markdown fairness.md --against last~1",
    )
    add_run_or_last(parser)
    add_path(parser, "--html", "a copy of the page")
    add_path(parser, "--markdown", "the report for a pull request")
    add_path(parser, "--junit", "JUnit's XML: a case for each test")
    add_path(parser, "--sarif", "SARIF 2.1.0, for GitHub's code scanning")
    add_path(parser, "--code-quality", "GitLab's code quality report")
    parser.add_argument(
        "--against",
        metavar="RUN",
        help="compare with this run's findings, or this findings.json, not with what the session was given",
    )
    parser.set_defaults(run=report)


def report(arguments: argparse.Namespace) -> tuple[str, int]:
    """Write the reports; say where each is."""
    from pytest_fairness.errors import StoreError, UsageError
    from pytest_fairness.reports.changes import counted
    from pytest_fairness.reports.escaping import terminal
    from pytest_fairness.reports.outputs import (
        compared_runs,
        earlier_results,
        recorded_comparison,
        write_outputs,
    )
    from pytest_fairness.runs.files import shown
    from pytest_fairness.runs.project import runs_root
    from pytest_fairness.runs.reader import refuse_unreadable

    here = Path.cwd()
    run = arguments.folder.resolve()
    name = arguments.against
    lines = []
    against = None
    if name is not None:
        against = earlier_results(runs_root(), here, name, but=run)
    else:
        try:
            against = recorded_comparison(run)
        except UsageError as error:  # as where the run was downloaded, and the earlier one was not
            lines.append(f"nothing is compared: {error}")
    places = {
        name: getattr(arguments, name)
        for name in ("html", "markdown", "junit", "sarif", "code_quality")
    }
    done = write_outputs(run, **places, against=against)
    lines += [f"{name}: {shown(path.absolute(), here)}" for name, path in done.items()]
    if against is not None:
        lines += [f"since {against.stem}: {counted(compared_runs(run, against))}"]
    try:
        refuse_unreadable(run)
    except StoreError as error:
        return terminal(
            "\n".join([*lines, f"PROBLEM what is made of the records is missing: {error}", ""])
        ), 1
    return terminal("\n".join([*lines, ""])), 0
