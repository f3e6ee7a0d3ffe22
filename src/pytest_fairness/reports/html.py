"""``report.html``, and a page for each that a suite handed in: self-contained, made from a run's
files alone.

A page runs no script and loads nothing: its content security policy forbids both. Jinja2 escapes
every value, after :func:`~pytest_fairness.reports.escaping.visible` has spelt out what cannot be
seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pytest_fairness import words
from pytest_fairness.errors import StoreError
from pytest_fairness.reports import charts, formatting
from pytest_fairness.reports.audit_sections import counts_section, mitigations_section
from pytest_fairness.reports.escaping import visible
from pytest_fairness.reports.examples import collect_examples
from pytest_fairness.reports.finding_sections import finding_section
from pytest_fairness.reports.findings_json import RunResults, read_results
from pytest_fairness.reports.heat_maps import heat_section
from pytest_fairness.reports.judged_tables import JudgedTables
from pytest_fairness.reports.overview import (
    MOST_CARDS,
    decision_section,
    findings_section,
    messages_section,
    outcome_section,
    verdict_on_session,
)
from pytest_fairness.reports.run_sections import (
    approvals_section,
    method_section,
    prompts_section,
    records_section,
    run_section,
    sign_off_section,
    systems_section,
)
from pytest_fairness.reports.sections import (
    Entry,
    Page,
    Section,
    read_pages,
    read_sections,
)
from pytest_fairness.runs.files import write_atomically
from pytest_fairness.runs.reader import refuse_unreadable

NAME = "report.html"


def write_html(run_dir: Path) -> Path:
    """Write ``report.html`` beside ``findings.json`` in *run_dir*, and each page that a suite
    handed in; the path of the report.

    Raises FairnessError if there are no findings to read, StoreError if a page cannot be written.
    """
    results = read_results(run_dir)
    run = run_section(results, run_dir)
    damage = unreadable(run_dir)
    pages = {"report": report_page(results, run_dir)}
    for stem, page in read_pages(run_dir).items():
        pages[stem] = msgspec.structs.replace(page, sections=(*page.sections, run))
    for stem, page in pages.items():
        others = [(other.name, f"{name}.html") for name, other in pages.items() if name != stem]
        first = [*banners(results, outcome=stem != "report"), *damage]
        text = render(page, results.run, others, first)
        write_atomically(run_dir / f"{stem}.html", text.encode("utf-8", "backslashreplace"))
    return run_dir / NAME


def render(
    page: Page,
    run: Mapping[str, Any],
    others: Sequence[tuple[str, str]] = (),
    banners: Sequence[tuple[str, str, str]] = (),
) -> str:
    """The *page* as text, with links to *others* (words, file) and *banners* (kind, about, words)."""
    numbers = itertools.count(1)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            run=run,
            others=others,
            banners=banners,
            contents=[section for section in page.sections[1:] if section.verdict is None],
            drawn=lambda chart: charts.draw(chart, f"picture-{next(numbers)}"),
        )
    )


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("pytest_fairness.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: (
            visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
    )
    made.globals.update(
        kind_of=lambda part: "paragraph" if isinstance(part, str) else part.__struct_config__.tag,
        nothing=(words.NOTHING, Entry(words=words.NOTHING)),
    )
    # A figure and its per-cent sign stay on one line.
    made.filters.update(
        tight=lambda text: text.replace(" %", "\u00a0%"), why=formatting.reason_words
    )
    return made


# ---------------------------------------------------------------- the report


Builder: TypeAlias = Callable[[RunResults, Path], Section | None]
"""Makes a section of the report from the run's results and folder; None where there is nothing to show."""


def report_page(results: RunResults, run_dir: Path) -> Page:
    """The whole run: what :data:`BEFORE` has to say, a card for each finding, the worst first, and
    :data:`AFTER`.
    """
    counted = ", ".join(
        f"{count:,} {verdict}" for verdict, count in results.counts.items() if count
    )
    made = words.count(len(results.findings), "finding")
    lead = "This run made no finding."
    if counted:
        lead = f"{made}: {counted}."
    endpoints = ", ".join(map(str, results.run.get("endpoints") or ()))
    if endpoints:
        lead += f" System under test: {endpoints}."
    cards = finding_cards(results, run_dir)
    before, after = (
        [build(results, run_dir) for build in builders] for builders in (BEFORE, AFTER)
    )
    return Page(
        name="all findings of the run",
        title="Fairness report",
        lead=lead,
        sections=tuple(
            part for part in (*before, *read_sections(run_dir), *cards, *after) if part is not None
        ),
        simulated=results.simulated,
        replayed=results.replayed,
    )


def finding_cards(results: RunResults, run_dir: Path) -> list[Section]:
    """Cards of the findings, the worst first, of a great many the worst alone. Examples stand under
    the first that is about their groups, and the others lead there.
    """
    shown = results.order[:MOST_CARDS]
    examples = collect_examples(run_dir, results.findings)
    judged = JudgedTables(run_dir, {results.place_of(at) for at in shown})
    first: dict[tuple[str, str], int] = {}
    cards = []
    for at in shown:
        finding = results.findings[at]
        maker = results.maker_of(at)
        key = (finding.protected_class, finding.model_endpoint or "")
        card = finding_section(
            finding,
            results.ids[at],
            nodeid=maker.nodeid or finding.test_id,
            outcome=maker.outcome,
            examples=examples.get(key),
            examples_at=results.ids[first.setdefault(key, at)],
            judged=judged.of(results, at),
            replies=judged.replies,
        )
        cards.append(card)
    return cards


def banners(results: RunResults, *, outcome: bool = True) -> list[tuple[str, str, str]]:
    """Return what has to be read before anything else: kind, what it is about, and the words.
    *outcome*: also that the session failed.
    """
    notes = results.run.get("notes")
    verdict = verdict_on_session(results)
    failed = verdict.tone == "failed" and outcome
    banners_ = []
    if failed:
        banners_ = [("missing", "The session failed.", verdict.words)]
    return [
        *banners_,
        *([("note", "About this run.", " ".join(f"{note}." for note in notes))] if notes else []),
    ]


def unreadable(run_dir: Path) -> list[tuple[str, str, str]]:
    """The banner of a page whose records cannot be read: much of it is missing."""
    try:
        refuse_unreadable(run_dir)
    except StoreError:
        why = (
            "The records of this run cannot be read, so examples, prompts and each name are "
            "missing here."
        )
        return [("missing", "Not whole.", f"{why} pytest-fairness verify says what is wrong.")]
    return []


#: The sections of the report before the findings' cards, and after them.
BEFORE: tuple[Builder, ...] = (
    outcome_section,
    decision_section,
    mitigations_section,
    findings_section,
    heat_section,
)
AFTER: tuple[Builder, ...] = (
    messages_section,
    counts_section,
    run_section,
    systems_section,
    prompts_section,
    approvals_section,
    method_section,
    records_section,
    sign_off_section,
)
