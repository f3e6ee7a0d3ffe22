"""The subcommands of ``pytest-fairness``, one module each.

A module has ``add(subparsers)``, which declares its parser and sets ``run`` on it: a function from the parsed
arguments to a :class:`Told`. Adding a command is a module here and a row in :mod:`pytest_fairness.cli`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Told:
    """What a command has to say, and the code that the process exits with: 0 all is well, 1 there are problems."""

    text: str
    code: int = 0
