"""``report.html``, and a page for each that a suite handed in: self-contained, made from a run's files alone.

A page runs no script and loads nothing: its content security policy forbids both. Jinja2 escapes every value, after
:func:`~pytest_fairness.reports.escaping.visible` has spelt out what cannot be seen.
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

from pytest_fairness.analysis import false_alarms
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.reports import charts, formatting
from pytest_fairness.reports.audit_sections import counts_section, mitigations_section
from pytest_fairness.reports.escaping import shortened, visible
from pytest_fairness.reports.examples import collect_examples
from pytest_fairness.reports.finding_sections import finding_section
from pytest_fairness.reports.findings_json import RunResults, read_results
from pytest_fairness.reports.sections import (
    Columns,
    Counts,
    Entry,
    Facts,
    Page,
    Part,
    Section,
    Table,
    facts,
    read_pages,
    table,
)
from pytest_fairness.runs.files import write_atomically

NAME = "report.html"


def write_html(run_dir: Path) -> Path:
    """Write ``report.html`` beside ``findings.json`` in *run_dir*, and each page that a suite handed in; the path of
    the report.

    Raises FairnessError if there are no findings to read, StoreError if a page cannot be written.
    """
    results = read_results(run_dir)
    run = run_section(results, run_dir)
    pages = {"report": report_page(results, run_dir)}
    for stem, page in read_pages(run_dir).items():
        pages[stem] = msgspec.structs.replace(page, sections=(*page.sections, run))
    for stem, page in pages.items():
        others = [(other.name, f"{name}.html") for name, other in pages.items() if name != stem]
        text = render(page, results.run, others, banners(results))
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
        finalize=lambda value: visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )
    made.globals.update(kind_of=lambda part: "paragraph" if isinstance(part, str) else part.__struct_config__.tag)
    # A figure and its per-cent sign stay on one line.
    made.filters.update(tight=lambda text: text.replace(" %", "\u00a0%"))
    return made


# ---------------------------------------------------------------- the report


Builder: TypeAlias = Callable[[RunResults, Path], Section | None]
"""Makes a section of the report from the run's results and folder; None where there is nothing to show."""


def report_page(results: RunResults, run_dir: Path) -> Page:
    """The whole run: what :data:`BEFORE` has to say, a card for each finding, the worst first, and :data:`AFTER`."""
    cards = finding_cards(results, run_dir)
    lead = "This run made no finding."
    if cards:
        attention = len(cards) - results.counts[Verdict.PASS]
        lead = f"{formatting.count(len(cards), 'finding')}, {attention or 'none'} to look at."
        endpoints = ", ".join(map(str, results.run.get("endpoints") or ()))
        lead += f" System under test: {endpoints}." if endpoints else ""
    before, after = ([build(results, run_dir) for build in builders] for builders in (BEFORE, AFTER))
    return Page(
        name="all findings of the run",
        title="Fairness report",
        lead=lead,
        sections=tuple(section for section in (*before, *cards, *after) if section is not None),
        simulated=results.simulated,
        replayed=results.replayed,
    )


def finding_cards(results: RunResults, run_dir: Path) -> list[Section]:
    """A card for each finding, the worst first. Examples stand under the first that is about their groups, and the
    others lead there.
    """
    examples = collect_examples(run_dir, results.findings)
    first: dict[tuple[str, str], int] = {}
    cards = []
    for at in results.order:
        finding, maker = results.findings[at], results.maker_of(at)
        key = (finding.protected_class, finding.model_endpoint or "")
        card = finding_section(
            finding,
            results.ids[at],
            nodeid=maker.nodeid or finding.test_id,
            outcome=maker.outcome,
            examples=examples.get(key),
            examples_at=results.ids[first.setdefault(key, at)],
        )
        cards.append(card)
    return cards


def banners(results: RunResults) -> list[tuple[str, str, str]]:
    """What has to be read before anything else: kind, what it is about, and the words."""
    found = []
    if notes := results.run.get("notes"):
        found.append(("note", "About this run.", " ".join(f"{note}." for note in notes)))
    if alarms := results.session.get("alarms"):
        which = ", ".join(f"finding {at + 1}" for at in alarms)
        whose = "1 whose test did not fail is" if len(alarms) == 1 else f"{len(alarms)} whose tests did not fail are"
        why = f"Across all findings {whose} significant at {results.session.get('alpha')} (Holm): {which}."
        found.append(("missing", "The session fails.", why))
    if results.missing:
        named = ", ".join(results.missing[:20]) + (" …" if len(results.missing) > 20 else "")
        unfinished = f"{formatting.count(len(results.missing), 'collected test')} never finished: {named}."
        found.append(("missing", "Incomplete.", f"{unfinished} What they would have found is not below."))
    return found


def overview_section(results: RunResults, _: Path) -> Section:
    """The verdicts counted, and a row a finding."""
    parts: list[Part] = [Counts(rows=tuple(results.counts.items()))]
    across = any(map(formatting.session_p, results.findings))
    if results.findings:
        columns: Columns = {
            "Verdict": lambda at: Entry(verdict=results.findings[at].verdict, reason=results.findings[at].reason),
            "What was found": lambda at: Entry(
                words=shortened(
                    formatting.without_verdict(results.findings[at].sentence, results.findings[at].verdict), 320
                ),
                link=results.ids[at],
                small=(results.maker_of(at).nodeid or results.findings[at].test_id,),
            ),
            "On": lambda at: shortened(results.findings[at].outcome, 60),
            "By": lambda at: shortened(results.findings[at].protected_class or formatting.NOTHING, 60),
            "Endpoint": lambda at: Entry(
                words=shortened(results.findings[at].model_endpoint or formatting.NOTHING, 80),
                marks=tuple(formatting.marks(results.findings[at], results.maker_of(at).outcome)),
            ),
            "Corrected p": lambda at: formatting.p_value(results.findings[at].corrected_p_value),
        }
        columns |= {"Session p": lambda at: formatting.session_p(results.findings[at])} if across else {}
        parts.append(table("Every finding, the worst first", results.order, columns, kind="findings"))
        share = results.session.get("false_alarm")
        if isinstance(share, (int, float)):
            chance = false_alarms.words(share)
            parts.append(f"A fair system would have turned this session red with a chance of at most {chance}.")
        if across:
            parts.append(
                f"Session p: the smallest corrected p of a finding, adjusted over the {len(results.findings)} findings "
                "of this session (Holm 1979). It changes no verdict."
            )
    heat = heat_map(results.findings)
    parts += [heat] if heat else []
    failed = [item for item in results.items if not item.findings and item.outcome in ("failed", "error")]
    if failed:
        columns = {
            "Test": lambda item: item.nodeid,
            "Outcome": lambda item: item.outcome,
            "Message": lambda item: shortened(item.message, 500),
        }
        parts.append(table("Tests that failed without a finding", failed, columns, words=("Outcome", "Message")))
    return Section(heading="Overview", id="overview", parts=tuple(parts))


def heat_map(findings: Sequence[Finding]) -> Table | None:
    """The worst verdict of each model on each protected class; None where there is only one of each."""
    cells: dict[tuple[str, str], list[Verdict]] = {}
    for finding in findings:
        key = (finding.model_endpoint or "no model", finding.protected_class or finding.assertion)
        cells.setdefault(key, []).append(finding.verdict)
    models, classes = (list(dict.fromkeys(key[at] for key in cells)) for at in (0, 1))
    if len(models) * len(classes) < 2:
        return None

    def cell(model: str, name: str) -> Entry:
        found = cells.get((model, name))
        if found is None:
            return Entry(words="not tested")
        return Entry(verdict=Verdict.worst(found), small=(formatting.count(len(found), "finding"),))

    return Table(
        caption="The worst verdict of each model on each protected class",
        head=("Model", *(shortened(name, 60) for name in classes)),
        rows=tuple((shortened(model, 80), *(cell(model, name) for name in classes)) for model in models),
        kind="heat",
    )


# ---------------------------------------------------------------- the run


def run_section(results: RunResults, _: Path) -> Section:
    """What a reader needs to repeat the run, and to read what it says."""
    run = results.run
    command, trials = run.get("command"), run.get("trials") or {}
    models = []
    for entry in run.get("models") or []:
        who = ", ".join(f"{model} ({count:,} trials)" for model, count in entry["answered"].items())
        requested = f"asked for {entry['asked']}, " if entry["asked"] else ""
        models.append(f"{entry['endpoint']}: {requested}{f'answered by {who}' if who else 'no answer names its model'}")
    known = facts(
        {
            "Run": run.get("id"),
            "Started": run.get("started"),
            "Finished": run.get("finished"),
            "Endpoints": ", ".join(map(str, run.get("endpoints") or [])),
            "Models": "; ".join(models),
            "Trials": ", ".join(
                f"{n:,} {kind.replace('_', ' ')}" for kind, n in trials.items() if n and kind != "total"
            ),
            "Cost": formatting.cost_line(run),
            "Seed": run.get("seed"),
            "Git commit": run.get("git_commit"),
            "Command": " ".join(map(str, command)) if isinstance(command, list) else command,
            "Versions": _listed(run.get("versions") or {}),
            "Settings": _listed(run.get("parameters") or {}),
        }
    )
    return Section(heading="The run", id="run", parts=(known, Section(heading="Verdicts", parts=(_VERDICTS, _SCOPE))))


_VERDICTS = Facts(
    rows=(
        ("PASS", "The 90 % interval of every effect lies inside ±0.5, so a medium difference is excluded."),
        ("FLAG", "A significant difference of 0.2 to 0.5; it needs a documented justification."),
        ("FAIL", "A significant difference above 0.5; it needs a change and a new run."),
        ("INCONCLUSIVE", "The data do not decide; the finding says what would."),
    )
)
_SCOPE = "A verdict is about this system, these prompts and this run. It is no legal opinion."


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items() if value not in (None, "", [], {}))


#: The sections of the report before the findings' cards, and after them.
BEFORE: tuple[Builder, ...] = (overview_section,)
AFTER: tuple[Builder, ...] = (counts_section, mitigations_section, run_section)
