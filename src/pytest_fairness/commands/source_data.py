"""``pytest-fairness names check`` and ``personas check``: is the source data fit to be drawn from?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.words import count

if TYPE_CHECKING:
    from pytest_fairness.design.data_checks import Problem


def add(subparsers: Any) -> None:
    """Declare ``names`` and ``personas``."""
    for name, what, checked, run in (
        (
            "names",
            "the name banks",
            "weak, ambiguous, rare, undocumented and unbalanced names",
            names,
        ),
        (
            "personas",
            "the persona matrix and the other source data",
            "personas, signals, arms, strategies, the lexicon",
            personas,
        ),
    ):
        example = f"pytest-fairness {name} check personas/"
        parser = subparsers.add_parser(name, help=what, example=example)
        check = parser.add_subparsers(dest="action", required=True).add_parser(
            "check",
            help=f"{checked}: problems with reasons",
            example=example,
        )
        check.add_argument(
            "folder",
            nargs="?",
            type=Path,
            metavar="FOLDER",
            help="a personas folder that extends or replaces what ships; what ships, if not given",
        )
        if name == "names":
            check.add_argument(
                "-n",
                type=int,
                default=20,
                metavar="N",
                help="names a group that the banks give (20)",
            )
        check.set_defaults(run=run)


def names(arguments: argparse.Namespace) -> tuple[str, int]:
    """Check the shipped banks, or those that a project's folder makes of them."""
    from pytest_fairness.design.data_checks import check_names
    from pytest_fairness.design.names import NameBanks
    from pytest_fairness.documents import refuse_foreign

    if arguments.folder is not None:
        refuse_foreign(arguments.folder)
    banks = NameBanks.load(arguments.folder)
    what = f"{len(banks.first_names)} first names and {len(banks.surnames)} surnames"
    return _listed(check_names(banks, arguments.n), what, arguments.folder)


def personas(arguments: argparse.Namespace) -> tuple[str, int]:
    """Check a personas folder but for its names; of sets, arms, strategies and lexicon, the first
    problem.
    """
    from pytest_fairness.design.arms import ready_arms
    from pytest_fairness.design.candidates import CandidateSet
    from pytest_fairness.design.data_checks import Problem, check_personas, check_signals
    from pytest_fairness.design.personas import PersonaMatrix
    from pytest_fairness.design.signals import Signals
    from pytest_fairness.design.strategies import Strategy
    from pytest_fairness.documents import entries, refuse_foreign
    from pytest_fairness.errors import UsageError
    from pytest_fairness.scorers.lexicon import Lexicon

    folder: Path | None = arguments.folder
    if folder is not None:
        refuse_foreign(folder)
    matrix = PersonaMatrix.load(folder)
    signals = Signals.load(folder)
    problems = [*check_personas(matrix), *check_signals(signals)]
    for name, kind in (("candidates", CandidateSet), ("arms", None), ("strategies", Strategy)):
        try:
            ready_arms(folder) if kind is None else entries(f"{name}.yaml", folder, kind)
        except UsageError as error:
            problems.append(Problem(f"{name}.yaml", str(error)))
    try:
        Lexicon.load(folder)
    except UsageError as error:
        problems.append(Problem("lexicon", str(error)))
    return _listed(
        problems, f"{len(matrix)} personas and {len(signals.kinds)} kinds of signal", folder
    )


def _listed(problems: Sequence[Problem], what: str, folder: Path | None) -> tuple[str, int]:
    """A line a problem, each with its reason, and how many there are."""
    where = "as shipped"
    if folder is not None:
        where = f"with {folder}"
    if not problems:
        return f"{what}, {where}: no problems\n", 0
    lines = list(map(str, problems))
    total = count(len(lines), "problem")
    return "\n".join([*lines, f"{what}, {where}: {total}", ""]), 1
