"""What the checking commands share: the folder to check, and how problems are told."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness.commands import Told

if TYPE_CHECKING:
    from pytest_fairness.design.data_checks import Problem


def folder_argument(parser: argparse.ArgumentParser) -> None:
    """Let *parser* take a project's own ``personas/`` folder."""
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="FOLDER",
        help="a personas folder that extends or replaces what ships; what ships, if not given",
    )


def told(problems: Sequence[Problem], what: str, folder: Path | None) -> Told:
    """A line a problem, each with its reason, and how many there are."""
    where = "as shipped" if folder is None else f"with {folder}"
    if not problems:
        return Told(f"{what}, {where}: no problems\n")
    lines = [str(problem) for problem in problems]
    count = f"{len(lines)} problem{'s' * (len(lines) != 1)}"
    return Told("\n".join([*lines, f"{what}, {where}: {count}", ""]), 1)
