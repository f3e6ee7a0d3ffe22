"""``pytest-fairness merge RUN…``: the shards of a run, asked on several machines, as one run to be judged."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_fairness.commands import CommandResult


def add(subparsers: Any) -> None:
    """Declare ``merge``."""
    parser = subparsers.add_parser(
        "merge", help="put the shards of a run (--fairness-shard K/N) together, to be judged with --fairness-replay"
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the run's folder of each shard")
    parser.add_argument(
        "--into",
        type=Path,
        default=Path(".fairness", "runs"),
        metavar="DIR",
        help="the folder of runs in which the merged run is made (.fairness/runs)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> CommandResult:
    """Merge; say where the run is and how it is judged."""
    from pytest_fairness.runs.merge import merge
    from pytest_fairness.runs.reader import RunReader

    merged = merge(arguments.runs, arguments.into)
    trials = len(RunReader.open(merged))
    count = len(arguments.runs)
    return CommandResult(
        f"merged {count} shard{'s' * (count != 1)}, {trials:,} trials: {merged}\n"
        f"judge them with the same tests: pytest --fairness-replay={merged}\n"
    )
