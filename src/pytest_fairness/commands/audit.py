"""``pytest-fairness audit`` and ``verify``: what an auditor keeps of a run, and whether it holds."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pytest_fairness.commands import add_run


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
    add_run(parser, "folder", nargs="?", default="last", help="the run (last)")
    parser.add_argument(
        "--into", type=Path, metavar="PATH", help="the ZIP to write (audit-RUN.zip)"
    )
    parser.add_argument(
        "--pdf",
        type=Path,
        metavar="PATH",
        help="write its summary, one to three pages to be signed, to PATH as well",
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
    parser.add_argument(
        "--records-only",
        action="store_true",
        help="compare no index, report or table of a bundle: for one that another version made",
    )
    parser.set_defaults(run=verify)


def audit(arguments: argparse.Namespace) -> tuple[str, int]:
    """Write the bundle; say where it is, and what to keep elsewhere."""
    from pytest_fairness.engine.progress import Progress
    from pytest_fairness.reports.bundle import sha256_of, write_bundle

    run: Path = arguments.folder
    bundle = write_bundle(
        run, arguments.into or Path(f"audit-{run.name}.zip"), Progress(sys.stderr).each
    )
    summary = ""
    if (
        arguments.pdf is not None
    ):  # after the bundle, which verifies: nobody signs a page of a run that does not
        from pytest_fairness.reports.pdf import write_summary

        summary = f"{write_summary(run, arguments.pdf)}: its summary\n"
    return (
        f"{bundle}: all that the verdicts of run {run.name} rest on, replies included\n{summary}"
        f"SHA-256 {sha256_of(bundle)}\n"
        "keep that number where nobody who can replace the file can change it\n"
        f"verify it anywhere: pytest-fairness verify {bundle}\n"
    ), 0


def verify(arguments: argparse.Namespace) -> tuple[str, int]:
    """Verify; say what holds, what does not, and which verdicts were derived again."""
    from pytest_fairness.engine.progress import Progress
    from pytest_fairness.reports.bundle import is_bundle, sha256_of, verify
    from pytest_fairness.reports.escaping import terminal
    from pytest_fairness.runs.project import chosen_run
    from pytest_fairness.words import count

    path = Path(arguments.path)
    if not is_bundle(path):
        path = chosen_run(arguments.path)
    verification = verify(path, Progress(sys.stderr).each, records_only=arguments.records_only)
    derived = [figure for figure in verification.derived if figure.same is not None]
    lines = [f"holds: {line}" for line in verification.checked]
    if verification.derived:
        same = sum(figure.same is True for figure in derived)
        lines.append(
            f"verdicts: {same} of {len(verification.derived)} derived again from the logs, the same"
        )
    for judgement in verification.derived:
        word = {True: "same", False: "DIFFERS", None: "not derivable"}[judgement.same]
        lines.append(
            f"  {word}: {judgement.verdict} {judgement.number} {judgement.test} {judgement.outcome}: {judgement.about}"
        )
    lines += [f"PROBLEM: {line}" for line in verification.problems]
    if verification.left_out:
        lines.append(f"NOT compared, as --records-only asks: {', '.join(verification.left_out)}")
    if path.is_file():
        lines.append(
            f"SHA-256 {sha256_of(path)}: compare it with the one that was kept when the bundle was "
            "made,"
        )
        lines.append("  for whoever can replace this file could have made all of it anew")
    held = "verified"
    if verification.left_out:
        held = "records verified, pages NOT compared"
    if verification.problems:
        held = f"NOT verified, {count(len(verification.problems), 'problem')}"
    lines.append(f"{path}: {held}")
    return "".join(
        f"{terminal(' '.join(line.split()) if not line.startswith('  ') else line)}\n"
        for line in lines
    ), bool(verification.problems)
