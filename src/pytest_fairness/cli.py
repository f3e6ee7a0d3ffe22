"""``pytest-fairness``: what can be done without a test session. The subcommands are in
``commands/``.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from pytest_fairness import __version__
from pytest_fairness.errors import FairnessError, did_you_mean

#: Command → the module in ``commands/`` that declares it, by purpose, in the order of ``--help``.
COMMANDS = {
    "before a run": {
        "demo": "demo",
        "init": "init",
        "plan": "plan",
    },
    "decisions that exist already": {
        "assess": "assess",
        "counts": "counts",
    },
    "the results of runs": {
        "list": "runs",
        "show": "runs",
        "compare": "compare",
        "report": "report",
        "trend": "trend",
        "ll144": "ll144",
        "label": "label",
    },
    "the folder of a run": {
        "audit": "audit",
        "verify": "audit",
        "publish": "publish",
        "export": "run_folders",
        "merge": "run_folders",
        "salvage": "run_folders",
    },
    "approved baselines": {
        "baseline": "baselines",
    },
    "source data": {
        "lint": "lint",
        "names": "source_data",
        "personas": "source_data",
    },
}
_EXAMPLES = {
    "pytest-fairness init": "a first test",
    "pytest -m fairness --fairness-endpoint NAME": "ask a system of endpoints.yaml",
    "pytest-fairness show last": "what was found",
    "pytest-fairness compare last~1 last": "which of two runs is fairer on what",
    "pytest-fairness COMMAND --help": "one command, with its options",
}
_RUNS = (
    "RUN is the folder of a run, its id or the beginning of one (2026-02-28-001), 'last', or "
    "'last~1' for the run "
    "before it. Ids are those of the project around the working directory."
)
_CODES = "exit codes: 0 all is well, 1 there are problems, 2 it could not be done"


class CommandParser(argparse.ArgumentParser):
    """The parser of one command. *example* is a command line that shows what it is for."""

    def __init__(self, *, example: str = "", **given: Any) -> None:
        given.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        given.setdefault("allow_abbrev", False)
        super().__init__(**given)
        self.example = example

    def format_help(self) -> str:
        """Also the example, where there is one, what a RUN is, where one is wanted, and the exit
        codes.
        """
        runs = []
        if any("RUN" in str(action.metavar) for action in self._actions):
            runs = [_filled(_RUNS)]
        example = []
        if self.example:
            example = [f"example:\n  {self.example}"]
        self.description = _filled(self.description or "")
        self.epilog = "\n\n".join([*example, *runs, _CODES])
        return super().format_help()

    def error(self, message: str) -> Any:
        """End with exit code 2, naming the command that was meant, where it is one of these."""
        if self.prog == "pytest-fairness" and (
            wrong := re.search("invalid choice: '(.*?)'", message)
        ):
            message += did_you_mean(
                wrong[1], [name for commands in COMMANDS.values() for name in commands]
            )
        return super().error(message)


def parser() -> CommandParser:
    """The whole command line."""
    whole = CommandParser(
        prog="pytest-fairness",
        usage="%(prog)s COMMAND ...",
        description="Fairness tests of systems that contain a language model: what is done before and after them. The "
        "tests themselves are run by pytest.",
        example="\n  ".join(f"{command:<44} {what}" for command, what in _EXAMPLES.items()),
    )
    whole.add_argument("--version", action="version", version=f"pytest-fairness {__version__}")
    subparsers = whole.add_subparsers(
        dest="command",
        required=True,
        metavar="COMMAND",
        prog=whole.prog,
        parser_class=CommandParser,
        help=argparse.SUPPRESS,
    )
    modules = dict.fromkeys(
        module for commands in COMMANDS.values() for module in commands.values()
    )
    for module in modules:
        import_module(f"pytest_fairness.commands.{module}").add(subparsers)
    # argparse has no groups of commands, and keeps their help to itself.
    about = {action.dest: action.help for action in subparsers._choices_actions}
    for purpose, commands in COMMANDS.items():
        group = whole.add_argument_group(purpose)
        group.description = "\n".join(f"{name:<11} {about[name]}" for name in commands)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit code 0: all is well; 1: it found problems; 2: it could not do what was
    asked.
    """
    try:
        whole = parser()
        if "_ARGCOMPLETE" in os.environ:  # a shell asks what can follow; it answers and ends
            import argcomplete

            argcomplete.autocomplete(whole)
        parsed = whole.parse_args(arguments)
        text, code = parsed.run(parsed)
    except (FairnessError, OSError) as error:
        from pytest_fairness.reports.escaping import terminal

        why = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            why = (
                f"{error.filename} cannot be read or written ({error.strerror}): give another path"
            )
        sys.stderr.write(terminal(f"pytest-fairness: {why}\n"))
        return 2
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(
            text.encode(encoding, "replace").decode(encoding)
        )  # "−" is not in every code page
        sys.stdout.flush()
    except (
        BrokenPipeError
    ):  # the reader, as `head`, has seen enough; Python would write the rest again as it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(code)


def _filled(text: str) -> str:
    import textwrap

    return "\n\n".join(textwrap.fill(paragraph, 100) for paragraph in text.split("\n\n"))


if __name__ == "__main__":
    sys.exit(main())
