"""``pytest-fairness personas check | generate``: the persona matrix, signals, candidates, arms and strategies."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.commands import Told
from pytest_fairness.commands.problems import folder_argument, told

if TYPE_CHECKING:
    from pytest_fairness.design.data_checks import Problem


def add(subparsers: Any) -> None:
    """Declare ``personas`` and what it can do."""
    parser = subparsers.add_parser("personas", help="the persona matrix and the other source data")
    actions = parser.add_subparsers(dest="action", required=True)
    checking = actions.add_parser(
        "check", help="quotas, job scores, signals, candidates, arms and strategies; problems with reasons"
    )
    folder_argument(checking)
    checking.set_defaults(run=check)
    making = actions.add_parser("generate", help="make the matrix of 100 personas from a seed, byte for byte")
    making.add_argument("--seed", type=int, default=None, metavar="N", help="the shipped matrix has seed 1")
    making.add_argument(
        "--output", type=Path, default=None, metavar="FILE", help="write to FILE instead of the terminal"
    )
    making.add_argument("--force", action="store_true", help="replace FILE if it exists")
    making.add_argument(
        "--check", type=Path, default=None, metavar="FILE", help="only say whether FILE comes out the same"
    )
    making.set_defaults(run=generate)


def check(arguments: argparse.Namespace) -> Told:
    """Check everything in a personas folder but the names."""
    from pytest_fairness.design.data_checks import check_personas, check_signals
    from pytest_fairness.design.personas import PersonaMatrix
    from pytest_fairness.design.signals import Signals

    folder: Path | None = arguments.folder
    matrix, signals = PersonaMatrix.load(folder), Signals.load(folder)
    problems = [*check_personas(matrix), *check_signals(signals), *_designs(folder)]
    return told(problems, f"{len(matrix)} personas and {len(signals.kinds)} kinds of signal", folder)


def _designs(folder: Path | None) -> list[Problem]:
    """What is wrong with sets of candidates, arms and strategies: the first thing in each file."""
    from pytest_fairness.design.arms import ready_arms
    from pytest_fairness.design.candidates import check_sets
    from pytest_fairness.design.data_checks import Problem
    from pytest_fairness.design.strategies import load_strategies
    from pytest_fairness.errors import UsageError

    problems = []
    for name, read in (
        ("candidates.yaml", check_sets),
        ("arms.yaml", ready_arms),
        ("strategies.yaml", load_strategies),
    ):
        try:
            read(folder)
        except UsageError as error:
            problems.append(Problem(name, str(error)))
    return problems


def generate(arguments: argparse.Namespace) -> Told:
    """Make the matrix of a seed, or compare a file with it."""
    from pytest_fairness.design.matrix_generator import SEED, check_regenerates, to_yaml
    from pytest_fairness.design.matrix_generator import generate as made
    from pytest_fairness.errors import UsageError

    seed = SEED if arguments.seed is None else arguments.seed
    if arguments.check is not None:
        if not arguments.check.is_file():
            raise UsageError(f"{arguments.check} is not a file: give the matrix to compare")
        problems = check_regenerates(arguments.check, seed)
        same = f"{arguments.check}: as seed {seed} makes it\n"
        return Told("".join(f"{problem}\n" for problem in problems) or same, 1 if problems else 0)
    text = to_yaml(made(seed), seed)
    target: Path | None = arguments.output
    if target is None:
        return Told(text)
    if target.exists() and not arguments.force:
        raise UsageError(f"{target} exists; give another --output, or --force to replace it")
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{target}: cannot be written ({error.strerror or error})") from error
    return Told(f"{target}: 100 personas of seed {seed}\n")
