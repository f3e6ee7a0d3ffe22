"""What an auditor asks beside the findings: what was done about them, who accepted what, and since when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_fairness.baselines.mitigations import counted, unanswered
from pytest_fairness.reports import formatting
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.sections import Columns, Entry, Notes, Part, Section, Table, table


def mitigations_section(results: RunResults, _run_dir: Path) -> Section | None:
    """What ``mitigations.yaml`` says of the findings, and what this run says of that; None where there is no such
    entry."""
    entries = results.mitigations
    if not entries:
        return None
    columns: Columns = {
        "Status": lambda one: one["status"] + (" (simulated)" if one["simulated"] else ""),
        "Finding": lambda one: Entry(
            words=one.get("finding") or one["test"],
            link=one["findings"][0] if one["findings"] else "",
            small=tuple(str(one[key]) for key in ("outcome", "class") if key in one),
        ),
        "Now": lambda one: one["verdict"] or formatting.NOTHING,
        "Action": lambda one: one["action"],
        "Owner": lambda one: one["owner"],
        "Entered": lambda one: one["date"],
        "Due": lambda one: one.get("due", formatting.NOTHING),
        "Done": lambda one: one.get("done", formatting.NOTHING),
    }
    parts: list[Part] = [table("Each mitigation, and what this run says of it", entries, columns, words=tuple(columns))]
    if without := unanswered(results.named, entries):
        about = formatting.count(len(without), "finding")
        parts.append(f"Without a mitigation or a justification: {about} ({', '.join(without)}).")
    return Section(
        heading="Mitigations",
        id="mitigations",
        about=f"{counted(entries)}. A mitigation changes no verdict.",
        parts=(*parts, Notes(items=_STATUSES)),
    )


_STATUSES = (
    "fixed: what the entry is about passes in this run",
    "re-tested: it does not pass, though the action is done",
    "open: it does not pass, and the action is still to be done; overdue: and its date is past",
    "not tested: no finding of this run is what the entry is about",
)


# ---------------------------------------------------------------- counts

_BY = {
    "test_module": "Module",
    "protected_class": "Protected class",
    "tier": "Tier",
    "model_endpoint": "Endpoint",
}


def counts_section(results: RunResults, _run_dir: Path) -> Section | None:
    """How many findings of each verdict there are by module, protected class, tier and endpoint; None for fewer than
    two findings.
    """
    if len(results.findings) < 2:
        return None
    by: Any = results.summary["by"]
    tables = (
        Table(
            caption=f"Findings by {title.lower()}",
            head=(title, "Findings", *results.counts),
            rows=tuple(
                (
                    shortened(key, 80),
                    str(sum(counts.values())),
                    *(str(n or formatting.NOTHING) for n in counts.values()),
                )
                for key, counts in by[name].items()
            ),
        )
        for name, title in _BY.items()
    )
    return Section(heading="Counts", id="counts", parts=tuple(tables))
