"""The whole run as one page of parts: the builders of its sections, and a card for each finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from pytest_fairness.errors import StoreError
from pytest_fairness.reports.audit_sections import counts_section, mitigations_section
from pytest_fairness.reports.examples import collect_examples
from pytest_fairness.reports.finding_sections import NO_REPLIES, CardReplies, finding_section
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.heat_maps import class_section, heat_section
from pytest_fairness.reports.judged_tables import JudgedTables
from pytest_fairness.reports.overview import (
    MOST_CARDS,
    counted_findings,
    decision_section,
    findings_section,
    messages_section,
    outcome_section,
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
from pytest_fairness.reports.sections import Banner, Page, Section, read_sections
from pytest_fairness.runs.reader import refuse_unreadable

Builder: TypeAlias = Callable[[RunResults, Path], Section | None]
"""Makes a section of the report from the run's results and folder; None where there is nothing to
show.
"""


def report_page(results: RunResults, run_dir: Path) -> Page:
    """The whole run: what :data:`BEFORE` has to say, a card for each finding, the worst first, and
    :data:`AFTER`.
    """
    lead = "This run made no finding."
    if results.findings:
        lead = f"{counted_findings(results)}."
    endpoints = ", ".join(results.endpoints)
    if endpoints:
        lead += f" System under test: {endpoints}."
    cards = finding_cards(results, run_dir)
    before = [build(results, run_dir) for build in BEFORE]
    after = [build(results, run_dir) for build in AFTER]
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
        key = (finding.protected_class, finding.model_endpoint or "")
        replies = CardReplies(
            examples=examples.get(key),
            examples_at=results.ids[first.setdefault(key, at)],
            judged=judged.of(results, at),
            replies=judged.replies,
        )
        cards.append(_card(results, at, replies))
    return cards


def cards_without_replies(results: RunResults) -> list[Section]:
    """Cards of the findings as :func:`finding_cards` makes them, without a word of a reply."""
    shown = results.order[:MOST_CARDS]
    return [_card(results, at) for at in shown]


def _card(results: RunResults, at: int, replies: CardReplies = NO_REPLIES) -> Section:
    return finding_section(
        results.findings[at],
        results.ids[at],
        nodeid=results.test_of(at),
        outcome=results.maker_of(at).outcome,
        shown=replies,
    )


def unreadable(run_dir: Path) -> tuple[Banner, ...]:
    """Return the banner of a page whose records cannot be read: much of it is missing."""
    try:
        refuse_unreadable(run_dir)
    except StoreError:
        why = (
            "The records of this run cannot be read, so examples, prompts and each name are "
            "missing here. pytest-fairness verify says what is wrong."
        )
        return (Banner(kind="missing", about="Not whole.", words=why),)
    return ()


#: The sections of the report before the findings' cards, and after them.
BEFORE: tuple[Builder, ...] = (
    outcome_section,
    class_section,
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
