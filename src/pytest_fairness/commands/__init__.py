"""The subcommands of ``pytest-fairness``.

A module has ``add(subparsers)``, which declares its parsers and sets ``run`` on each: a function from the parsed
arguments to what is printed, and the exit code: 0 all is well, 1 there are problems. Adding a command is a module here
and a row in :mod:`pytest_fairness.cli`.
"""
