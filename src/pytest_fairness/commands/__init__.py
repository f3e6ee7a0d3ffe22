"""The subcommands of ``pytest-fairness``.

A module has ``add(subparsers)``, which declares its parsers and sets ``run`` on each: a function from the parsed
arguments to what is printed, and the exit code: 0 all is well, 1 there are problems. What cannot be done is raised as a
FairnessError, for exit code 2. Adding a command is a module here and a row in :mod:`pytest_fairness.cli`; a parser is
given its ``help``, ``description`` and ``example``, and its runs by :func:`add_run`.
"""

from __future__ import annotations

import argparse
from typing import Any

from pytest_fairness.runs.project import chosen_run


def add_run(parser: argparse.ArgumentParser, name: str = "run", **given: Any) -> None:
    """Add an argument that names a run, or several, and is parsed to folders; *given* as for ``add_argument``."""
    parser.add_argument(name, **{"type": chosen_run, "metavar": "RUN", "help": "the run", **given})
