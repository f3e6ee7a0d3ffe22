"""``pytest-fairness salvage RUN``: what still verifies of a damaged run, in a new one; the old one stays as it is."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_fairness.commands import CommandResult


def add(subparsers: Any) -> None:
    """Declare ``salvage``."""
    parser = subparsers.add_parser(
        "salvage", help="put what still verifies of a damaged run into a new one, and list what is lost"
    )
    parser.add_argument("damaged", type=Path, metavar="RUN", help="the folder of the damaged run, which is only read")
    parser.add_argument(
        "--into", type=Path, metavar="DIR", help="the folder of runs in which the new run is made (where RUN lies)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> CommandResult:
    """Salvage; say what was kept, what was lost, and how the new run is used."""
    from pytest_fairness.reports.escaping import terminal
    from pytest_fairness.runs.salvage import salvage

    damaged: Path = arguments.damaged
    done = salvage(damaged, arguments.into or damaged.resolve().parent)
    lines = [f"salvaged {done.records:,} records, {done.trials:,} trials: {done.directory}"]
    lines += [terminal(f"lost: {lost}") for lost in done.lost] or ["nothing was lost"]
    lines += [terminal(f"mended: {mended}") for mended in done.mended]
    lines += [
        f"{damaged} is as it was",
        f"ask what is missing: the same command with --fairness-resume {done.directory.name}",
        f"judge what is there: pytest --fairness-replay={done.directory}",
    ]
    return CommandResult("\n".join([*lines, ""]))
