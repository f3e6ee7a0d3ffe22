"""``pytest-fairness names check [FOLDER]``: are the name banks fit to be drawn from?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_fairness.commands import Told
from pytest_fairness.commands.problems import folder_argument, told


def add(subparsers: Any) -> None:
    """Declare ``names`` and what it can do."""
    parser = subparsers.add_parser("names", help="the name banks")
    actions = parser.add_subparsers(dest="action", required=True)
    check = actions.add_parser("check", help="weak, ambiguous, rare, undocumented and unbalanced names, with reasons")
    folder_argument(check)
    check.add_argument("-n", type=int, default=20, metavar="N", help="names a group that the banks should give (20)")
    check.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> Told:
    """Check the shipped banks, or those that a project's folder makes of them."""
    from pytest_fairness.design.data_checks import check_names
    from pytest_fairness.design.name_banks import NameBanks

    folder: Path | None = arguments.folder
    banks = NameBanks.load(folder)
    first, last = len(banks.first_names), len(banks.surnames)
    return told(check_names(banks, arguments.n), f"{first} first names and {last} surnames", folder)
