"""``pytest-fairness list`` and ``show``: which runs there are, and what one found."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.commands import add_flag, add_run, add_run_or_last, complete
from pytest_fairness.commands.columns import (
    Column,
    add_options,
    as_json,
    chosen_columns,
    sorted_rows,
    tables,
)
from pytest_fairness.errors import FairnessError, UsageError
from pytest_fairness.model import JSON, Verdict
from pytest_fairness.runs.project import runs_root

if TYPE_CHECKING:
    from pytest_fairness.reports.findings_json import RunResults

UNFINISHED, UNREADABLE = "unfinished", "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """A run as a line of the list says it; None for what is not known, because it did not finish or
    is damaged.
    """

    path: Path
    started: str | None = None
    endpoints: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    tests: int | None = None
    counts: Mapping[Verdict, int]
    trials: int | None = None
    cost: float | None = None
    unpriced: int = 0
    marks: tuple[str, ...] = ()
    problem: str = ""

    @property
    def verdicts(self) -> str:
        """``1 FAIL, 2 PASS``."""
        return ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items() if count)

    def to_dict(self) -> dict[str, JSON]:
        return {
            "id": self.path.name,
            "path": str(self.path),
            "started": self.started,
            "endpoints": list(self.endpoints),
            "models": list(self.models),
            "tests": self.tests,
            "verdicts": {str(verdict): count for verdict, count in self.counts.items()},
            "trials": self.trials,
            "cost": self.cost,
            "unpriced": self.unpriced,
            "marks": list(self.marks),
            "problem": self.problem,
        }


def _started(run: ListedRun) -> str:
    return (run.started or "–")[:16].replace("T", " ")


def _trials(run: ListedRun) -> str:
    if run.trials is None:
        return "–"
    return f"{run.trials:,}"


def _cost(run: ListedRun) -> str:
    """Return what is known to have been paid; more where the price of some trials is unknown."""
    if run.cost is None:
        return "–"
    if run.unpriced:
        return f"over ${run.cost:,.4f}"
    return f"${run.cost:,.4f}"


COLUMNS = {
    "run": Column(value=lambda run: run.path.name, figure=False),
    "started": Column(value=lambda run: run.started, words=_started, figure=False),
    "endpoint": Column(value=lambda run: ", ".join(run.endpoints), figure=False),
    "model": Column(value=lambda run: ", ".join(run.models), figure=False),
    "tests": Column(value=lambda run: run.tests),
    "verdicts": Column(value=lambda run: run.verdicts, figure=False),
    **{
        str(verdict): Column(value=lambda run, verdict=verdict: run.counts.get(verdict, 0))  # type: ignore[misc]
        for verdict in Verdict
    },
    "trials": Column(value=lambda run: run.trials, words=_trials),
    "cost": Column(value=lambda run: run.cost, words=_cost),
    "marks": Column(value=lambda run: ", ".join(run.marks), figure=False),
    "problem": Column(value=lambda run: run.problem, figure=False),
}
_SHOWN = ("run", "started", "endpoint", "model", "tests", "verdicts", "trials", "cost", "marks")


def add(subparsers: Any) -> None:
    """Declare both."""
    parser = subparsers.add_parser(
        "list",
        help="the runs of the project, the newest last",
        description="Lists the runs of the project, the newest last: when, whom they asked, what they concluded and "
        "cost. A run is marked simulated or replayed where anything in it is, unfinished where its "
        "session did not "
        "come to its end, unreadable where its files are damaged (exit code 1).",
        example="pytest-fairness list '2026-02-*' --sort=-cost",
    )
    these = "these alone; also a pattern of ids, as '2026-02-*'"
    add_run(parser, "runs", nargs="*", several=True, judged=False, help=these)
    add_options(parser, COLUMNS, _SHOWN)
    parser.set_defaults(run=list_runs)
    parser = subparsers.add_parser(
        "show",
        help="what a run found, or one finding or test of it with its tables",
        description="Shows what the session printed at its end and the id of each finding; or, of the finding or test "
        "that is named, the sentence and the tables of groups and pairs. A finding is named by its "
        "id or a beginning "
        "of it, a test by its name or a pattern of it.",
        example="pytest-fairness show last f-3a9c\n  pytest-fairness show last '*test_letters*'",
    )
    add_run_or_last(parser, "run_folder")
    what = parser.add_argument(
        "what",
        nargs="?",
        metavar="FINDING|TEST",
        help="the findings to show in full (all, in short)",
    )
    complete(what, _findings_and_tests)
    add_flag(parser, "--json", "print the findings as JSON")
    parser.set_defaults(run=show)


# ---------------------------------------------------------------- list


def list_runs(arguments: argparse.Namespace) -> tuple[str, int]:
    """List the runs."""
    from pytest_fairness.runs.folder import run_folders

    chosen_columns(arguments)
    root = runs_root()
    folders = list(itertools.chain.from_iterable(arguments.runs)) or run_folders(root)
    runs = list(map(listed_run, folders))
    code = int(any(UNREADABLE in run.marks for run in runs))
    table = f"{root} holds no runs: run the fairness tests first"
    if runs:
        table = tables(arguments, runs)
    if arguments.json:
        return as_json([run.to_dict() for run in sorted_rows(arguments, runs)]), code
    return f"{table}\n", code


def listed_run(folder: Path) -> ListedRun:
    """Return what is known of the run in *folder*, from its results, or without these from its
    manifest.
    """
    from pytest_fairness.reports.findings_json import NAME, read_results
    from pytest_fairness.runs.manifest import FINISHED, read_manifest
    from pytest_fairness.runs.reader import record_lines, refuse_unreadable

    try:
        manifest = read_manifest(folder)
        refuse_unreadable(folder)
        if (folder / NAME).exists():
            return _of_results(folder, read_results(folder), finished=FINISHED in manifest)
        return _of_manifest(folder, manifest, trials=sum(1 for _ in record_lines(folder)))
    except (FairnessError, OSError) as error:
        return ListedRun(path=folder, counts={}, marks=(UNREADABLE,), problem=str(error))


def _of_manifest(folder: Path, manifest: Mapping[str, Any], *, trials: int) -> ListedRun:
    """Return what is known of a run without results: a merged one waits for a judgement, and is no
    broken session.
    """
    endpoints = []
    simulated = False
    for entry in manifest.get("endpoints", ()):
        if isinstance(entry, Mapping):
            endpoints.append(str(entry.get("name", "")))
            simulated = simulated or bool(entry.get("simulated"))
    marks = []
    if simulated:
        marks.append("simulated")
    if "replay_of" in manifest:
        marks.append("replayed")
    if "merged_from" in manifest:
        marks.append("merged")
    else:
        marks.append(UNFINISHED)
    return ListedRun(
        path=folder,
        started=manifest.get("started"),
        endpoints=tuple(endpoints),
        counts={},
        trials=trials,
        marks=tuple(marks),
    )


def _of_results(folder: Path, results: RunResults, *, finished: bool) -> ListedRun:
    run = results.run
    answered: dict[str, None] = {}
    models: Any = run.get("models") or ()
    for entry in models:
        answered |= dict.fromkeys(entry.get("answered", ()))
    marks = []
    if results.simulated:
        marks.append("simulated")
    if results.replayed:
        marks.append("replayed")
    if results.missing or not finished:
        marks.append(UNFINISHED)
    return ListedRun(
        path=folder,
        started=run.get("started"),
        endpoints=tuple(map(str, run.get("endpoints") or ())),
        models=tuple(answered),
        tests=len(results.items),
        counts=results.counts,
        trials=(run.get("trials") or {}).get("total"),
        cost=run.get("cost"),
        unpriced=run.get("unpriced") or 0,
        marks=tuple(marks),
    )


# ---------------------------------------------------------------- show


def show(arguments: argparse.Namespace) -> tuple[str, int]:
    """Show the run, or some of its findings. Raises UsageError where it has none that are meant."""
    from pytest_fairness.reports.findings_json import read_results

    folder: Path = arguments.run_folder
    results = read_results(folder)
    if arguments.what is None:
        if arguments.json:
            return as_json(results.to_dict()), 0
        return "\n".join([*_whole(folder, results), ""]), 0
    chosen = list(_meant(results, arguments.what))
    if arguments.json:
        findings: Any = results.to_dict()["findings"]
        return as_json([findings[number] for number in chosen]), 0
    texts = "\n\n".join(_texts(results, chosen, arguments.what)).rstrip("\n")
    return f"{texts}\n", 0


def _findings_and_tests(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    from pytest_fairness.reports.findings_json import read_results

    results = read_results(parsed_args.run_folder)
    return [*results.ids, *(_name(item.nodeid) for item in results.items)]


def _meant(results: RunResults, what: str) -> Iterator[int]:
    """The places of the findings that *what* means. Raises UsageError."""
    from pytest_fairness.errors import unknown

    by_id = []
    if what.startswith("f-"):
        by_id = [number for number, name in enumerate(results.ids) if name.startswith(what)]
    tests = [item.nodeid for item in results.items]
    fitting = set()
    for test in tests:
        if what in (*_names(test), test) or fnmatchcase(test, what):
            fitting.add(test)
    if not by_id and not fitting:
        names = [*results.ids, *tests, *map(_name, tests)]
        raise UsageError(unknown("finding or test", what, names))
    yield from by_id
    if by_id:
        return
    for number in range(len(results.findings)):
        if results.maker_of(number).nodeid in fitting:
            yield number


def _names(nodeid: str) -> tuple[str, str]:
    """The name of a test, and that without its parameters: all that is made of one test function."""
    name = _name(nodeid)
    return name, name.partition("[")[0]


def _name(nodeid: str) -> str:
    """The name of a test, with its parameters, which may hold anything."""
    path, bracket, parameters = nodeid.partition("[")
    return f"{path.rpartition('::')[2]}{bracket}{parameters}"


def _whole(folder: Path, results: RunResults) -> list[str]:
    from pytest_fairness.reports.escaping import line
    from pytest_fairness.reports.plain_text import summary_lines, table_text
    from pytest_fairness.reports.sections import Table, printed_lines, read_sections

    run = listed_run(folder)
    about = (
        f"run {run.path.name}, started {_started(run)}, {', '.join(run.endpoints) or 'no endpoint'}"
    )
    if run.models:
        about += f", answered by {', '.join(run.models)}"
    if run.trials is not None:
        about += f", {run.trials:,} trials"
    report = folder / "report.html"
    printed = printed_lines(read_sections(folder))
    lines = [line(about), *summary_lines(results, report if report.exists() else None, printed)]
    if not results.findings:
        return lines
    head = ("finding", "verdict", "outcome", "class", "test")
    table = Table(caption="", head=head, rows=tuple(_by_severity(results)), words=head)
    return [*lines, "", table_text(table, 160)]


def _by_severity(results: RunResults) -> Iterator[tuple[str, ...]]:
    """Yield a row for each finding, the worst first."""
    findings = sorted(enumerate(results.findings), key=lambda entry: -entry[1].verdict.severity)
    for number, finding in findings:
        yield (
            results.ids[number],
            str(finding.verdict),
            finding.outcome or finding.assertion,
            finding.protected_class or "–",
            results.maker_of(number).nodeid,
        )


def _texts(results: RunResults, chosen: list[int], what: str) -> Iterator[str]:
    from pytest_fairness.reports.escaping import line, terminal
    from pytest_fairness.reports.plain_text import finding_text

    for number in chosen:
        yield f"{results.ids[number]}  {line(results.maker_of(number).nodeid)}"
        yield finding_text(results.findings[number])
    if chosen:
        return
    for item in results.items:
        if what in (item.nodeid, _name(item.nodeid)) or fnmatchcase(item.nodeid, what):
            text = f"{item.nodeid}: {item.outcome}, without a finding\n{item.message}"
            yield terminal(text.rstrip())
