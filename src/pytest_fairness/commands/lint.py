"""``pytest-fairness lint``: what templates and prompts get wrong, before any model is asked."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.commands import add_flag, add_several
from pytest_fairness.words import count

if TYPE_CHECKING:
    from pytest_fairness.analysis.template_lint import LintProblem

_READ = (".txt", ".md", ".html", ".prompt", ".yaml", ".yml")


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "lint",
        help="check templates and prompts: names, pronouns, promises, idioms, slots, length",
        description="Reads templates and prompts and names each problem with file, line and column, its rule, and what "
        f"to write instead. Of a folder it reads {', '.join(_READ)}; of YAML every text of several "
        "words. A line that "
        "holds 'lint: ignore' is left out. Exit code 1: there are problems.",
        example="pytest-fairness lint templates/ --letter --ignore idiom",
    )
    parser.add_argument("paths", nargs="*", type=Path, metavar="FILE|FOLDER", help="what to read")
    add_flag(parser, "--letter", "these are letters as they are sent")
    add_several(parser, "--ignore", "leave a rule out; again for more", metavar="RULE")
    add_flag(parser, "--rules", "list the rules, and read nothing")
    add_flag(parser, "--json", "print the problems as JSON")
    parser.set_defaults(run=lint)


def lint(arguments: argparse.Namespace) -> tuple[str, int]:
    """A line a problem, and how many there are."""
    from pytest_fairness.analysis.template_lint import lint_file, rules_of
    from pytest_fairness.documents import project_folder
    from pytest_fairness.errors import UsageError
    from pytest_fairness.reports.escaping import line

    folder = project_folder(Path.cwd())
    if arguments.rules:
        return "".join(f"{name}: {what}\n" for name, what in rules_of(folder).items()), 0
    if not arguments.paths:
        raise UsageError("name a file or a folder to read; --rules lists the rules")
    files = list(_files(arguments.paths))
    problems: list[LintProblem] = []
    for path in files:
        problems += lint_file(path, letter=arguments.letter, ignore=arguments.ignore, folder=folder)
    code = int(bool(problems))
    if arguments.json:
        return json.dumps(list(map(dataclasses.asdict, problems)), indent=1) + "\n", code
    total = "no problems"
    if problems:
        total = count(len(problems), "problem")
    lines = [line(str(problem)) for problem in problems]
    lines.append(f"{count(len(files), 'file')}: {total}")
    return "\n".join([*lines, ""]), code


def _is_read(file: Path) -> bool:
    return file.suffix in _READ and file.stem != "README" and file.is_file()


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    from pytest_fairness.errors import UsageError

    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: there is no such file or folder")
        files = [path]
        if path.is_dir():
            files = list(filter(_is_read, sorted(path.rglob("*"))))
        if not files:
            raise UsageError(f"{path} holds none of what is read: {', '.join(_READ)}")
        yield from files
