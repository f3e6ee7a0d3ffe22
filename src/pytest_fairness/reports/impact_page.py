"""The tables of New York City's rule as text, Markdown, CSV and a page: the same words and figures
in each.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pytest_fairness import words
from pytest_fairness.analysis.ll144 import HISTORICAL, SELECTION, SYNTHETIC, ImpactTables
from pytest_fairness.reports.escaping import commandless, csv_cell, line, markdown, wrapped
from pytest_fairness.reports.html import render
from pytest_fairness.reports.plain_text import WIDTH, table_text
from pytest_fairness.reports.sections import Facts, Notes, Page, Section, Table, facts
from pytest_fairness.words import listed

if TYPE_CHECKING:
    import pandas as pd

_CSV = (
    "data",
    "table",
    "category",
    "applicants",
    "selected",
    "rate",
    "impact_ratio",
    "share",
    "excluded",
)
_DATA = {SYNTHETIC: "synthetic personas", HISTORICAL: "historical data of a tool, as stated"}
_MOST_LABELS = 8
_SIMULATED = "simulated: the figures come from the simulated endpoint: no model was asked"
_CLOSING = (
    "the rule sets no threshold for an impact ratio and asks no statistical test",
    "a bias audit is made by an independent auditor (§ 5-300), which this program is not; this is "
    "no legal opinion",
)


def page_text(tables: ImpactTables, run: Mapping[str, Any]) -> str:
    """*tables* as a page; *run* are the facts of the run that they were made from, empty for none."""
    sections = (
        Section(
            heading="The data",
            id="data",
            parts=(_facts(tables), Notes(items=tuple(_notes(tables)))),
        ),
        Section(heading="The tables", id="tables", parts=tuple(_tables(tables))),
    )
    page = Page(
        name="LL144",
        title=tables.title,
        lead=f"{words.count(tables.assessed, 'row')}, by the rule 6 RCNY §§ 5-300 to 5-304.",
        sections=sections,
        simulated=tables.simulated,
        replayed=bool(run.get("replayed")),
    )
    return render(page, run)


def plain_text(tables: ImpactTables) -> str:
    """*tables* for a terminal."""
    if tables.simulated:
        lines = [tables.title, *wrapped(_SIMULATED, WIDTH)]
    else:
        lines = [tables.title]
    for name, value in _facts(tables).rows:
        lines += wrapped(f"{name}: {line(value)}", WIDTH, "  ", "    ")
    for table in _tables(tables):
        lines += ["", line(table.caption), table_text(table)]
    lines.append("")
    for note in _notes(tables):
        lines += wrapped(f"note: {line(note)}", WIDTH, "  ", "    ")
    return commandless("\n".join([*lines, ""]))


def markdown_text(tables: ImpactTables) -> str:
    """*tables* in GitHub's and GitLab's Markdown."""
    parts = [f"## {markdown(tables.title)}"]
    if tables.simulated:
        parts += [f"> {_SIMULATED}"]
    parts.append(
        "\n".join(f"- {markdown(name)}: {markdown(value)}" for name, value in _facts(tables).rows)
    )
    for table in _tables(tables):
        rows = [table.head, ["---", *["---:"] * (len(table.head) - 1)], *table.rows]
        cells = (
            [str(value) if at == 1 else markdown(str(value)) for value in row]
            for at, row in enumerate(rows)
        )
        parts += [
            f"### {markdown(table.caption)}",
            "\n".join(f"| {' | '.join(row)} |" for row in cells),
        ]
    parts.append("\n".join(f"- {markdown(note)}" for note in _notes(tables)))
    return "\n\n".join(parts) + "\n"


def csv_text(tables: ImpactTables) -> str:
    """*impact* as one table; each row says what the data are. ``selected`` counts scores above the
    median, too.
    """
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(_CSV)
    title = tables.title + (", simulated endpoint" if tables.simulated else "")
    for what, table in tables.tables.items():
        for row in _rows(table):
            cells = [row[name] for name in _CSV[2:]]
            writer.writerow([csv_cell(_known(value)) for value in (title, what, *cells)])
    for what, count in (
        ("unknown category", tables.unknown),
        ("without outcome", tables.without_outcome),
    ):
        writer.writerow(
            [csv_cell(value) for value in (title, "in no calculation", what, count)] + [""] * 5
        )
    return written.getvalue()


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _facts(tables: ImpactTables) -> Facts:
    used = tables.assessed - tables.unknown - tables.without_outcome
    kind = "share above the median of all scores"
    if tables.rate == SELECTION:
        kind = _selection(tables)
    left_out = f"{tables.unknown:,} of an unknown category" + (
        f", {tables.without_outcome:,} without an outcome" if tables.without_outcome else ""
    )
    return facts(
        {
            "Data": _DATA.get(tables.data, "test data, as stated"),
            "Source": tables.source,
            "Date of the bias audit": tables.audit_date,
            "Distribution date of the tool": tables.distribution_date,
            "System under test": ", ".join(tables.endpoints),
            "Outcome": tables.outcome,
            f"{tables.rate.capitalize()} rate": kind,
            "Median score": None if tables.median is None else f"{tables.median:g}",
            "In the calculations": f"{used:,} of {tables.assessed:,}",
            "In no calculation": left_out,
        }
    )


def _selection(tables: ImpactTables) -> str:
    """Return what counts as selected, by the labels of the decisions, and what does not."""
    text = f"share whose {tables.outcome} is {' or '.join(map(repr, tables.favourable))}"
    if not tables.favourable:
        text = "share with the favourable decision, which nobody got"
    if not tables.unfavourable:
        return text
    labels = [repr(label) for label in tables.unfavourable[:_MOST_LABELS]]
    if more := len(tables.unfavourable) - len(labels):
        labels.append(f"{more} more")
    verb = "count"
    if len(labels) == 1:
        verb = "counts"
    return f"{text}; {listed(labels)} {verb} as not selected"


def _tables(impact: ImpactTables) -> list[Table]:
    chosen = "Above median"
    if impact.rate == SELECTION:
        chosen = "Selected"
    head = ("Category", "Applicants", chosen, f"{impact.rate.capitalize()} rate", "Impact ratio")
    return [
        Table(
            caption=f"By {what}",
            head=head,
            rows=tuple(
                (
                    row["category"],
                    f"{row['applicants']:,}",
                    f"{row['selected']:,}",
                    words.percent(row["rate"]),
                    "excluded" if row["excluded"] else words.ratio(_known(row["impact_ratio"])),
                )
                for row in _rows(table)
            ),
        )
        for what, table in impact.tables.items()
    ]


def _known(value: Any) -> Any:
    """None for NaN."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def _notes(impact: ImpactTables) -> Iterator[str]:
    for what, table in impact.tables.items():
        for row in _rows(table):
            if row["excluded"]:
                share = words.percent(row["share"])
                yield (
                    f"excluded by {what}: {row['category']}, {share} of the data (§ 5-301(d)): "
                    f"{row['excluded']}"
                )
    yield from impact.notes
    yield from _CLOSING
