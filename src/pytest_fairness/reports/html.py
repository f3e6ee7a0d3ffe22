"""``report.html``, and a page for each that a suite handed in: self-contained, made from a run's
files alone.

A page runs no script and loads nothing: its content security policy forbids both. Jinja2 escapes
every value, after :func:`~pytest_fairness.reports.escaping.visible` has spelt out what cannot be
seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pytest_fairness import words
from pytest_fairness.reports import charts, formatting
from pytest_fairness.reports.escaping import visible
from pytest_fairness.reports.findings_json import read_results
from pytest_fairness.reports.overview import banners
from pytest_fairness.reports.report_page import report_page, unreadable
from pytest_fairness.reports.run_sections import run_section
from pytest_fairness.reports.sections import Entry, Page, read_pages
from pytest_fairness.runs.files import write_atomically

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
        first = (*banners(results, outcome=stem != "report"), *damage)
        text = render(msgspec.structs.replace(page, banners=first), results.run, others)
        write_atomically(run_dir / f"{stem}.html", text.encode("utf-8", "backslashreplace"))
    return run_dir / NAME


def render(page: Page, run: Mapping[str, Any], others: Sequence[tuple[str, str]] = ()) -> str:
    """Return *page* as HTML, with links to *others* (words, file)."""
    numbers = itertools.count(1)
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            run=run,
            others=others,
            contents=[section for section in page.sections[1:] if section.verdict is None],
            drawn=lambda chart: charts.draw(chart, f"picture-{next(numbers)}"),
        )
    )


@cache
def environment() -> Environment:
    """Return what renders the templates of pages, in which every value is escaped."""
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
