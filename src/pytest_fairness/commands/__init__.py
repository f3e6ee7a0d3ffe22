"""The subcommands of ``pytest-fairness``.

A module has ``add(subparsers)``, which declares its parsers and sets ``run`` on each: a function from the parsed
arguments to a :class:`CommandResult`. Adding a command is a module here and a row in :mod:`pytest_fairness.cli`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command prints, and the code that the process exits with: 0 all is well, 1 there are problems."""

    text: str
    code: int = 0
