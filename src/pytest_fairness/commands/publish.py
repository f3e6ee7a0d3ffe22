"""``pytest-fairness publish``: a run's verdicts as a static site with a badge."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pytest_fairness.commands import add_flag, add_path, add_records_only


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "publish",
        help="write the verdicts of a verified run as a static site with a badge",
        description="The site says what was tested, when, with which verdicts, and how to verify that. It shows no "
        "reply unless --replies. It is made of the bundle of the run alone (see audit), which is written, too; "
        "whoever has the bundle makes the same site again.",
        example="pytest-fairness publish last site",
    )
    parser.add_argument("path", metavar="RUN|BUNDLE", help="a run, or the ZIP that audit wrote")
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder to write the site to")
    add_flag(
        parser, "--replies", "publish replies as well: the whole report, and the bundle itself"
    )
    add_path(parser, "--into", "of a run: the bundle to write (audit-RUN.zip)")
    add_records_only(parser, "page of the bundle, as verify does")
    parser.set_defaults(run=publish)


def publish(arguments: argparse.Namespace) -> tuple[str, int]:
    """Write the site, and the bundle that it is made of; say how to show and to verify it."""
    from pytest_fairness.engine.progress import Progress
    from pytest_fairness.errors import UsageError
    from pytest_fairness.reports.bundle import sha256_of, write_bundle
    from pytest_fairness.reports.escaping import terminal
    from pytest_fairness.reports.overview import counted_findings
    from pytest_fairness.reports.site import BADGE, INDEX, write_site
    from pytest_fairness.runs.project import chosen_run

    watch = Progress(sys.stderr).each
    bundle = Path(arguments.path)
    if not bundle.is_file():
        run = chosen_run(arguments.path)
        bundle = write_bundle(run, arguments.into or Path(f"audit-{run.name}.zip"), watch)
    elif arguments.into is not None:
        raise UsageError("--into is for a run; this bundle is there already")
    results = write_site(
        bundle,
        arguments.folder,
        replies=arguments.replies,
        records_only=arguments.records_only,
        watch=watch,
    )
    shown = "without replies"
    if arguments.replies:
        shown = "replies and bundle included"
    lines = [
        f"{arguments.folder / INDEX}: {counted_findings(results)}, {shown}",
        f"made of {bundle}, SHA-256 {sha256_of(bundle)}",
        "keep that number where nobody who can replace the bundle can change it",
        f"for a README, with the address of the site: [![fairness]({BADGE})]({INDEX}#verify)",
        "",
    ]
    return terminal("\n".join(lines)), 0
