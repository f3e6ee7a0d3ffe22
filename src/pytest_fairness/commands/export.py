"""``pytest-fairness export RUN``: the records of a run as files that can be verified without its database."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_fairness.commands import CommandResult


def add(subparsers: Any) -> None:
    """Declare ``export``."""
    parser = subparsers.add_parser(
        "export", help="write the records of a run, checked, to trials*.jsonl, as the end of a session does"
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="the folder of the run")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> CommandResult:
    """Export; say which files were written, and how many records each holds."""
    from pytest_fairness.runs.manifest import LOGS
    from pytest_fairness.runs.store import RunStore

    folder: Path = arguments.folder
    with RunStore.open(folder, writer="export") as store:
        store.finish()
        heads = store.manifest()["logs"]
    written = [f"{path}: {heads[path.name]['records']:,} records\n" for path in sorted(folder.glob(LOGS))]
    return CommandResult("".join(written))
