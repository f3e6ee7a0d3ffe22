"""``pytest-fairness trend``: each finding over several runs."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from pytest_fairness.commands import add_path, add_run


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "trend",
        help="show each finding over several runs",
        description="Follows each finding from run to run: its effect with the interval, its verdict, and the model "
        "that answered; where runs wrote letters, their scores and warnings, too. Without RUN it "
        "reads all runs of the "
        "project. Exit code 1: a run cannot be read, which is "
        "named.",
        example="pytest-fairness trend --html trend.html",
    )
    add_run(parser, "folders", nargs="*", help="the runs (all of the project), in any order")
    add_path(parser, "--html", "write a page with pictures as well")
    complaints = "appeals and complaints, to stand beside the scores of letters"
    add_path(parser, "--complaints", complaints, metavar="CSV")
    parser.set_defaults(run=trend)


def trend(arguments: argparse.Namespace) -> tuple[str, int]:
    """Follow the findings over the runs; say where the page is."""
    from pytest_fairness.errors import UsageError
    from pytest_fairness.reports.letter_trend import read_complaints
    from pytest_fairness.reports.trend import read_runs, trend_page, trend_text
    from pytest_fairness.runs.files import shown, write_atomically
    from pytest_fairness.runs.folder import run_folders
    from pytest_fairness.runs.project import runs_root

    folders = arguments.folders or run_folders(runs_root())
    if not folders:
        raise UsageError(
            f"{runs_root()} holds no run: run pytest with a fairness test first, or name runs"
        )
    read = read_runs(folders).followed()
    if arguments.complaints is not None:
        read = dataclasses.replace(read, complaints=tuple(read_complaints(arguments.complaints)))
    text = trend_text(read)
    if arguments.html is not None:
        path = arguments.html.absolute()
        write_atomically(path, trend_page(read).encode("utf-8", "backslashreplace"))
        text += f"page: {shown(path, Path.cwd())}\n"
    return text, int(bool(read.unreadable))
