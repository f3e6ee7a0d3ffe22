"""``pytest-fairness``: what can be done without a test session. The subcommands are in ``commands/``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from pytest_fairness.errors import FairnessError

#: The modules that declare subcommands, in the order of ``--help``.
COMMANDS = ("source_data", "plan", "run_folders", "report")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    whole = argparse.ArgumentParser(
        prog="pytest-fairness", description="Fairness tests of systems that contain a language model: data and runs."
    )
    subparsers = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        import_module(f"pytest_fairness.commands.{name}").add(subparsers)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit code 0: all is well; 1: it found problems; 2: it could not do what was asked."""
    parsed = parser().parse_args(arguments)
    try:
        text, code = parsed.run(parsed)
    except FairnessError as error:
        sys.stderr.write(f"pytest-fairness: {error}\n")
        return 2
    sys.stdout.write(text)
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
