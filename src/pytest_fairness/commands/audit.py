"""``pytest-fairness audit`` and ``verify``: what an auditor keeps of a run, and whether it holds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.commands import add_path, add_records_only, add_run_or_last, complete

if TYPE_CHECKING:
    from pytest_fairness.reports.verification import Verification


def add(subparsers: Any) -> None:
    """Declare the two."""
    parser = subparsers.add_parser(
        "audit",
        help="pack all that a run's verdicts rest on into one ZIP",
        description="The ZIP holds the run's logs, findings, statistics, reports, justifications, mitigations and "
        "baselines with their history, how each verdict is reached, and the SHA-256 of every file. "
        "It is made only of "
        "a run that verifies. It holds prompts and replies verbatim.",
        example="pytest-fairness audit last --into evidence.zip",
    )
    add_run_or_last(parser)
    add_path(parser, "--into", "the ZIP to write (audit-RUN.zip)")
    pdf = "write its summary, one to three pages to be signed, to PATH as well"
    add_path(parser, "--pdf", pdf)
    complete(
        parser.add_argument(
            "--framework",
            metavar="NAME",
            help="print which artefact of the run answers which clause of a law or a standard, and what "
            "the run lacks; write nothing",
        ),
        _names_of_frameworks,
    )
    parser.set_defaults(run=audit)
    parser = subparsers.add_parser(
        "verify",
        help="check a bundle or a run for changes, and derive every verdict again from its logs",
        description="Finds a file that was changed, added, removed or cut short, also inside the chain of the logs, "
        "and derives each finding again from the replies, without the project's tests.",
        example="pytest-fairness verify evidence.zip",
    )
    parser.add_argument(
        "path", metavar="RUN|PATH", help="a bundle, the folder it was unpacked to, or a run"
    )
    add_records_only(parser, "index, report or table of a bundle")
    parser.set_defaults(run=verify)


def audit(arguments: argparse.Namespace) -> tuple[str, int]:
    """Write the bundle; say where it is, and what to keep elsewhere."""
    if arguments.framework is not None:
        return _framework(arguments)
    from pytest_fairness.engine.progress import Progress
    from pytest_fairness.reports.bundle import sha256_of, write_bundle

    run: Path = arguments.folder
    bundle = write_bundle(
        run, arguments.into or Path(f"audit-{run.name}.zip"), Progress(sys.stderr).each
    )
    summary = ""
    # After the bundle, which verifies: nobody signs a page of a run that does not.
    if arguments.pdf is not None:
        from pytest_fairness.reports.pdf import write_summary

        summary = f"{write_summary(run, arguments.pdf)}: its summary\n"
    return (
        f"{bundle}: all that the verdicts of run {run.name} rest on, replies included\n{summary}"
        f"SHA-256 {sha256_of(bundle)}\n"
        "keep that number where nobody who can replace the file can change it\n"
        f"verify it anywhere: pytest-fairness verify {bundle}\n"
    ), 0


def _framework(arguments: argparse.Namespace) -> tuple[str, int]:
    """Return what the run has for each clause of a framework, and what it lacks."""
    import datetime

    from pytest_fairness.analysis.frameworks import framework_called
    from pytest_fairness.errors import UsageError
    from pytest_fairness.reports.findings_json import read_results
    from pytest_fairness.reports.framework_page import framework_page
    from pytest_fairness.reports.plain_text import page_text

    framework = framework_called(arguments.framework)
    if arguments.into is not None or arguments.pdf is not None:
        raise UsageError("--framework writes nothing: give --into and --pdf without it")
    run: Path = arguments.folder
    today = datetime.datetime.now(datetime.UTC).date()
    text = page_text(framework_page(framework, read_results(run), run, today))
    return f"{text}\nnot verified here: pytest-fairness verify {run.name}\n", 0


def _names_of_frameworks(**_: object) -> list[str]:
    from pytest_fairness.analysis.frameworks import frameworks

    return sorted(frameworks())


def verify(arguments: argparse.Namespace) -> tuple[str, int]:
    """Verify; say what holds, what does not, and which verdicts were derived again."""
    from pytest_fairness.engine.progress import Progress
    from pytest_fairness.reports.bundle import is_bundle, sha256_of, verify
    from pytest_fairness.reports.escaping import terminal
    from pytest_fairness.runs.project import chosen_run

    path = Path(arguments.path)
    if not is_bundle(path):
        path = chosen_run(arguments.path)
    verification = verify(path, Progress(sys.stderr).each, records_only=arguments.records_only)
    lines = [f"holds: {line}" for line in verification.checked]
    lines += _verdicts(verification)
    lines += [f"PROBLEM: {line}" for line in verification.problems]
    if verification.left_out:
        lines.append(f"NOT compared, as --records-only asks: {', '.join(verification.left_out)}")
    if path.is_file():
        lines.append(
            f"SHA-256 {sha256_of(path)}: compare it with the one that was kept when the bundle was "
            "made,"
        )
        lines.append("  for whoever can replace this file could have made all of it anew")
    lines.append(f"{path}: {_conclusion(verification)}")
    text = "".join(f"{terminal(_in_one_line(line))}\n" for line in lines)
    return text, int(bool(verification.problems))


def _verdicts(verification: Verification) -> Iterator[str]:
    """Yield how many verdicts were derived again, and each with what came of it."""
    if not verification.derived:
        return
    same = [figure for figure in verification.derived if figure.same]
    yield (
        f"verdicts: {len(same)} of {len(verification.derived)} derived again from the logs, the same"
    )
    for figure in verification.derived:
        word = {True: "same", False: "DIFFERS", None: "not derivable"}[figure.same]
        verdict = f"{figure.verdict} {figure.number} {figure.test} {figure.outcome}"
        yield f"  {word}: {verdict}: {figure.about}"


def _conclusion(verification: Verification) -> str:
    from pytest_fairness.words import count

    if verification.problems:
        return f"NOT verified, {count(len(verification.problems), 'problem')}"
    if verification.left_out:
        return "records verified, pages NOT compared"
    return "verified"


def _in_one_line(line: str) -> str:
    """Return *line* without breaks; one that is indented as it is."""
    if line.startswith("  "):
        return line
    return " ".join(line.split())
