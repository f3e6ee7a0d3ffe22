"""The subcommands of ``pytest-fairness``.

A module has ``add(subparsers)``, which declares its parsers and sets ``run`` on each: a function
from the parsed arguments to what is printed, and the exit code: 0 all is well, 1 there are
problems. What cannot be done is raised as a FairnessError, for exit code 2. Adding a command is a
module here and a row in :mod:`pytest_fairness.cli`; a parser is given its ``help``, ``description``
and ``example``, and its runs by :func:`add_run`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from pytest_fairness.errors import UsageError
from pytest_fairness.runs import folder
from pytest_fairness.runs.project import LAST, chosen_run, runs_root


def add_run(
    parser: argparse.ArgumentParser,
    name: str = "run",
    *,
    several: bool = False,
    judged: bool = True,
    **given: Any,
) -> None:
    """Add an argument that names a run, and is parsed to its folder; *given* as for
    ``add_argument``.

    Where it may name *several*, by a pattern (``2026-02-*``), it is parsed to a list of folders.
    ``last`` is the newest that *judged* something, or else the newest of all.
    """
    kind: Callable[..., Any] = chosen_run
    if several:
        kind = chosen_runs
    given = {"type": partial(kind, judged=judged), "metavar": "RUN", "help": "the run", **given}
    complete(parser.add_argument(name, **given), _names_of_runs)


def add_run_or_last(parser: argparse.ArgumentParser, name: str = "folder") -> None:
    """Add an argument that names a run, by default the last."""
    add_run(parser, name, nargs="?", default=LAST, help="the run (last)")


def _names_of_runs(**_: object) -> list[str]:
    return [*(path.name for path in folder.run_folders(runs_root())), LAST]


def add_path(
    parser: argparse.ArgumentParser, option: str, about: str, *, metavar: str = "PATH"
) -> None:
    """Add an *option* that names a file or a folder."""
    parser.add_argument(option, type=Path, metavar=metavar, help=about)


def add_flag(parser: argparse.ArgumentParser, option: str, about: str) -> None:
    """Add an *option* that is given or not, and takes no value."""
    parser.add_argument(option, action="store_true", help=about)


def add_records_only(parser: argparse.ArgumentParser, pages: str) -> None:
    """Add the option that compares none of the *pages* of a bundle."""
    about = f"compare no {pages}: for one that another version made"
    add_flag(parser, "--records-only", about)


def add_column(parser: argparse.ArgumentParser, option: str, about: str) -> None:
    """Add an *option* that names a column of a table."""
    parser.add_argument(option, metavar="COLUMN", help=about)


def add_cluster_and_block(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the columns of what decisions share."""
    add_column(parser, "--cluster", "what rows share, as a person")
    add_column(parser, "--block", "compare within each of these, as a year")


def add_several(parser: argparse.ArgumentParser, option: str, about: str, *, metavar: str) -> None:
    """Add an *option* that may be given several times, and is parsed to a list."""
    parser.add_argument(option, action="append", default=[], metavar=metavar, help=about)


def complete(action: argparse.Action, words: Callable[..., Iterable[str]]) -> None:
    """Let a shell complete the argument with *words*, which argcomplete calls with what is typed
    (``parsed_args``).
    """
    action.completer = words  # type: ignore[attr-defined]


def chosen_runs(name: str, *, judged: bool = True) -> list[Path]:
    """The run that *name* means, or those whose ids fit a pattern, the oldest first. Raises
    UsageError for none.
    """
    if not re.search(r"[*?\[]", name) or Path(name).exists():
        return [chosen_run(name, judged=judged)]
    root = runs_root()
    folders = [path for path in folder.run_folders(root) if fnmatchcase(path.name, name)]
    if not folders:
        raise UsageError(f"{root} holds no run that fits {name!r}")
    return folders
