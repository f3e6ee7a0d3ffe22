"""A project with past runs that were built by hand, for the tests of its governance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_fairness.model import Finding, GroupResult, OutcomeKind, Verdict
from pytest_fairness.reports.findings_json import RunResults, save_results
from pytest_fairness.runs.manifest import write_manifest
from pytest_fairness.suites.governance.past_results import PastRuns

from ..reports.factories import disparity, results

SUITE = ("--pyargs", "pytest_fairness.suites.governance")


def scored(values: Mapping[str, float], verdict: Verdict = Verdict.PASS, **changes: Any) -> Finding:
    """A comparison of ratings of these groups, whose standard deviation is 1."""
    groups = tuple(
        GroupResult(
            group=name, n=100, clusters=20, value=value, low=value - 0.2, high=value + 0.2, sd=1.0
        )
        for name, value in values.items()
    )
    data: dict[str, Any] = {
        "verdict": verdict, "outcome": "rating", "kind": OutcomeKind.NUMERIC, "group_results": groups, "pairs": (),
        "sentence": f"{verdict}: as it is.",
    }  # fmt: skip
    return disparity(**{**data, **changes})


def past_run(day: str, *findings: Finding, **run: Any) -> RunResults:
    """The run of *day* (``2026-03-01``)."""
    return results(
        *findings, run={"id": f"{day}-001", "started": f"{day}T09:00:00+00:00", "models": [], **run}
    )


def past_of(runs: Sequence[RunResults], unreadable: tuple[str, ...] = ()) -> PastRuns:
    return PastRuns(tuple(runs), unreadable)


def save(root: Path, run: RunResults, endpoints: Sequence[Mapping[str, Any]] = ()) -> Path:
    """Write *run* as a folder of the project in *root*."""
    folder = root / ".fairness" / "runs" / str(run.run["id"])
    folder.mkdir(parents=True)
    save_results(run, folder)
    write_manifest(folder, {"id": folder.name, "settings": {}, "endpoints": list(endpoints)})
    return folder


def flagged(**changes: Any) -> Finding:
    """A FLAG that nobody has justified."""
    return scored({"white": 5.0, "black": 4.7}, Verdict.FLAG, **changes)


def with_justification(finding: Finding, expiry: str) -> Finding:
    """*finding* as a run records it whose marker justifies it."""
    given = {"reason": "traced", "approver": "Jane Smith", "date": "2026-01-31", "expiry": expiry}
    return replace(finding, justification=given)
