"""Sections for an auditor beside the findings: what was done about them, who accepted what, and
since when.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from pytest_fairness import words
from pytest_fairness.analysis.controls import CONTROLS, EVIDENCE_IS
from pytest_fairness.baselines.mitigations import counted, unanswered
from pytest_fairness.model import Finding
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.overview import banners
from pytest_fairness.reports.run_sections import chosen_facts
from pytest_fairness.reports.sections import (
    Columns,
    Counts,
    Entry,
    Notes,
    Page,
    Part,
    Section,
    Table,
    table,
)


def mitigations_section(results: RunResults, _run_dir: Path, *, report: str = "") -> Section | None:
    """Return what ``mitigations.yaml`` says of the findings, and what this run says of that; None
    where there is no such entry. *report*: the file that has the findings, if that is another than
    this page.
    """
    entries = results.mitigations
    if not entries:
        return None
    columns: Columns = {
        "Status": _status,
        "Finding": lambda entry: _answered_finding(entry, report),
        "Now": lambda entry: entry["verdict"] or words.NOTHING,
        "Action": lambda entry: entry["action"],
        "Owner": lambda entry: entry["owner"],
        "Entered": lambda entry: entry["date"],
        "Due": lambda entry: entry.get("due", words.NOTHING),
        "Done": lambda entry: entry.get("done", words.NOTHING),
        "Re-tested": lambda entry: entry.get("retested") or words.NOTHING,
    }
    parts: list[Part] = [
        table(
            "Each mitigation, and what this run says of it", entries, columns, words=tuple(columns)
        )
    ]
    if without := unanswered(results.named, entries):
        about = words.count(len(without), "finding")
        parts.append(f"Without a mitigation or a justification: {about} ({', '.join(without)}).")
    return Section(
        heading="Mitigations",
        id="mitigations",
        about=f"{counted(entries)}. A mitigation changes no verdict.",
        parts=(*parts, Notes(items=_STATUSES)),
    )


def _status(entry: Mapping[str, Any]) -> str:
    if entry["simulated"]:
        return f"{entry['status']} (simulated)"
    return str(entry["status"])


def _answered_finding(entry: Mapping[str, Any], report: str) -> Entry:
    """Return what a mitigation is about, with a link to it on this page or in the *report*."""
    shown = Entry(
        words=entry.get("finding") or entry["test"],
        small=tuple(str(entry[key]) for key in ("outcome", "class") if key in entry),
    )
    if not entry["findings"]:
        return shown
    place = entry["findings"][0]
    if report:
        return msgspec.structs.replace(shown, file=f"{report}#{place}")
    return msgspec.structs.replace(shown, link=place)


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
    """Return how many findings of each verdict there are by module, protected class, tier and
    endpoint; None for fewer than two findings.
    """
    if len(results.findings) < 2:
        return None
    by: Any = results.summary["by"]
    tables = []
    for name, title in _BY.items():
        rows = []
        for key, counts in by[name].items():
            numbers = (str(number or words.NOTHING) for number in counts.values())
            rows.append((shortened(key, 80), str(sum(counts.values())), *numbers))
        caption = f"Findings by {title.lower()}"
        head = (title, "Findings", *results.counts)
        tables.append(Table(caption=caption, head=head, rows=tuple(rows)))
    return Section(heading="Counts", id="counts", parts=tuple(tables))


# ---------------------------------------------------------------- the index of a bundle


def bundle_page(results: RunResults, folder: Path, contents: Mapping[str, str]) -> Page:
    """The index of the bundle in *folder*: what was asked and concluded, where what is (*contents*:
    file → what it holds), who accepted what, and how to verify it.
    """
    run = results.run
    there = {}
    links = {}
    for name, what in contents.items():
        if any(folder.glob(name.rstrip("/"))) or name == "SHA256SUMS":
            there[name] = what
            links[name] = name
        if set(name) & set("*/"):
            links[name] = ""
    run_facts = chosen_facts(
        results,
        "Run",
        "Finished",
        "Endpoints",
        "Models that answered",
        "Trials",
        "Git commit",
        "Keep until",
        "Versions",
    )
    listed: Columns = {
        "File": lambda row: Entry(words=row[0], file=links[row[0]]),
        "What it holds": lambda row: row[1],
    }
    holds = table("What this bundle holds", there.items(), listed, kind="findings")
    answers = (
        mitigations_section(results, folder, report="report.html"),
        justifications_section(results),
    )
    sections = [
        Section(
            heading="What was concluded",
            id="concluded",
            parts=(Counts(rows=tuple(results.counts.items())), conclusions(results), run_facts),
        ),
        Section(heading="What is in this bundle", id="contents", parts=(holds, *_HOW_TO_VERIFY)),
        recorded_section(),
        *filter(None, answers),
        controls_section(),
    ]
    return Page(
        name="index",
        title="Audit bundle",
        lead=f"The evidence of run {run.get('id')}: what was asked, what was answered, and what follows from it.",
        sections=tuple(sections),
        simulated=results.simulated,
        replayed=results.replayed,
        banners=banners(results),
    )


def recorded_section() -> Section:
    """Return what a verification takes as recorded, since nothing else says what it should be."""
    parts = (_AS_RECORDED, Notes(items=_NOT_DERIVED))
    return Section(heading="What it takes as recorded", id="recorded", parts=parts)


def conclusions(results: RunResults, page: str = "report.html") -> Table:
    """Return every finding with its verdict and sentence, the worst first, each with a link to its
    card on *page*.
    """
    columns: Columns = {
        "Finding": lambda row: Entry(words=row[2], file=f"{page}#{row[2]}"),
        "Verdict": lambda row: Entry(verdict=row[0].verdict, reason=row[0].reason),
        "What was found": lambda row: Entry(words=row[0].sentence, small=(row[1],)),
    }
    rows = sorted(results.named, key=lambda row: -row[0].verdict.severity)
    return table("Every finding, the worst first", rows, columns, kind="findings")


def justifications_section(results: RunResults) -> Section | None:
    """Why each FLAG that did not fail its test was accepted, by whom, and until when; None where
    there is none.
    """
    rows = [row for row in results.named if row[0].justification is not None]
    columns: Columns = {"Finding": lambda row: Entry(words=row[2], small=(row[1],))}
    columns |= {
        name.title(): partial(_justified, name) for name in ("reason", "approver", "date", "expiry")
    }
    listed = table("Each FLAG that was accepted", rows, columns, kind="findings")
    if rows:
        return Section(heading="Justifications", id="justifications", parts=(listed,))
    return None


def _justified(name: str, named: tuple[Finding, str, str]) -> str:
    return str((named[0].justification or {}).get(name, words.NOTHING))


_HOW_TO_VERIFY = (
    "To verify it: pytest-fairness verify on the ZIP or on the folder it was unpacked to. That "
    "compares every file "
    "with SHA256SUMS, follows the chain of every log, reads the replies again, and derives every "
    "verdict again from "
    "them; no file of the project is needed. Without it: sha256sum -c SHA256SUMS.",
    "Whoever owns all of these files could make all of them anew, sums included. Keep the SHA-256 "
    "of the ZIP, which is "
    "printed when it is made, where they cannot change it.",
)


_AS_RECORDED = (
    "Verification derives verdicts, figures and pages, and compares outcomes of tests, exit "
    "status, command, settings, "
    "versions, times, endpoints and justifications with the log. These follow from nothing else in "
    "the bundle:"
)
_NOT_DERIVED = (
    "scores of the project's own scorers, columns that a test itself added, and tables that came "
    "from no grid",
    "findings of a suite's own analysis, and those that another run judged (marked so): as the log "
    "has them",
    "retests.csv: what the findings of other runs say, whose logs are not here",
    "baselines/history.csv: who approved a baseline and when, as git and the approved files tell "
    "it",
    "in manifest.json: announced, asked, unasked and salvaged_from, which only later sessions read",
    "that a justification or a mitigation is true, and that who is named in it has agreed",
)


# ---------------------------------------------------------------- controls

#: Number in Annex A of ISO/IEC 42001:2023, strength of the evidence, and what of the bundle it is.
_OF_A_BUNDLE = (
    ("A.5.4", "direct", "findings.json, report.html, statistics/"),
    ("A.5.5", "supporting", "findings.json, report.html"),
    ("A.6.2.4", "direct", "findings.json, methodology/, baselines/, retests.csv"),
    ("A.6.2.6", "supporting", "retests.csv, baselines/history.csv"),
    ("A.6.2.8", "supporting", "trials*.jsonl, manifest.json, SHA256SUMS"),
    ("A.7.2", "context", "the names and personas in trials*.jsonl"),
    ("A.7.4", "context", "the names and personas in trials*.jsonl"),
    ("A.8.2", "context", "report.html, methodology/"),
    ("A.9.2", "supporting", "justifications.csv, mitigations.csv, baselines/history.csv"),
    ("A.9.3", "context", "mitigations.csv"),
    ("A.10", "context", "the models that answered, in manifest.json and report.html"),
)


def controls_section() -> Section:
    """Return which control each part of a bundle is evidence of: the programme's labels beside the
    standard's numbers.
    """
    columns: Columns = {
        "ISO/IEC 42001:2023, Annex A": lambda row: f"{row[0]} {CONTROLS[row[0]].title}",
        "The programme's label": lambda row: CONTROLS[row[0]].label or "–",
        "Evidence": lambda row: row[1],
        "In this bundle": lambda row: row[2],
    }
    listed = table(
        "What of this bundle is evidence of which control",
        _OF_A_BUNDLE,
        columns,
        words=tuple(columns),
    )
    return Section(heading="Controls", id="controls", parts=(EVIDENCE_IS, listed))
