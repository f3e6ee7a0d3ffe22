"""The tables of New York City's rule as a page, which each sink renders, and as CSV: the same words
and figures in each.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pytest_fairness import words
from pytest_fairness.analysis.ll144 import HISTORICAL, SELECTION, SYNTHETIC, ImpactTables
from pytest_fairness.reports.escaping import csv_cell
from pytest_fairness.reports.sections import (
    Columns,
    Facts,
    Notes,
    Page,
    Section,
    Table,
    facts,
    table,
)
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
_CLOSING = (
    "the rule sets no threshold for an impact ratio and asks no statistical test",
    "a bias audit is made by an independent auditor (§ 5-300), which this program is not; this is "
    "no legal opinion",
)


def impact_page(tables: ImpactTables, *, replayed: bool = False) -> Page:
    """Return *tables* as a page: what the data are, the tables, and what has to be read with them."""
    return Page(
        name="LL144",
        title=tables.title,
        lead=f"{words.count(tables.assessed, 'row')}, by the rule 6 RCNY §§ 5-300 to 5-304.",
        sections=(
            Section(heading="The data", id="data", parts=(_facts(tables),)),
            Section(heading="The tables", id="tables", parts=tuple(_tables(tables))),
            Section(heading="Notes", id="notes", parts=(Notes(items=tuple(_notes(tables))),)),
        ),
        simulated=tables.simulated,
        replayed=replayed,
    )


def csv_text(tables: ImpactTables) -> str:
    """*impact* as one table; each row says what the data are. ``selected`` counts scores above the
    median, too.
    """
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(_CSV)
    title = tables.title
    if tables.simulated:
        title += ", simulated endpoint"
    for what, rows in tables.tables.items():
        for row in _rows(rows):
            cells = [row[name] for name in _CSV[2:]]
            writer.writerow([csv_cell(_known(value)) for value in (title, what, *cells)])
    left_out = {"unknown category": tables.unknown, "without outcome": tables.without_outcome}
    for what, count in left_out.items():
        cells = [title, "in no calculation", what, count]
        writer.writerow([*map(csv_cell, cells), *[""] * (len(_CSV) - len(cells))])
    return written.getvalue()


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def _facts(tables: ImpactTables) -> Facts:
    used = tables.assessed - tables.unknown - tables.without_outcome
    kind = "share above the median of all scores"
    if tables.rate == SELECTION:
        kind = _selection(tables)
    left_out = f"{tables.unknown:,} of an unknown category"
    if tables.without_outcome:
        left_out += f", {tables.without_outcome:,} without an outcome"
    median = ""
    if tables.median is not None:
        median = f"{tables.median:g}"
    return facts(
        {
            "Data": _DATA.get(tables.data, "test data, as stated"),
            "Source": tables.source,
            "Date of the bias audit": tables.audit_date,
            "Distribution date of the tool": tables.distribution_date,
            "System under test": ", ".join(tables.endpoints),
            "Outcome": tables.outcome,
            f"{tables.rate.capitalize()} rate": kind,
            "Median score": median,
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
    labels = list(map(repr, tables.unfavourable[:_MOST_LABELS]))
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
    columns: Columns = {
        "Category": lambda row: row["category"],
        "Applicants": lambda row: f"{row['applicants']:,}",
        chosen: lambda row: f"{row['selected']:,}",
        f"{impact.rate.capitalize()} rate": lambda row: words.percent(row["rate"]),
        "Impact ratio": _impact_ratio,
    }
    return [table(f"By {what}", _rows(rows), columns) for what, rows in impact.tables.items()]


def _impact_ratio(row: Mapping[str, Any]) -> str:
    if row["excluded"]:
        return "excluded"
    return words.ratio(_known(row["impact_ratio"]))


def _known(value: Any) -> Any:
    """None for NaN."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def _notes(impact: ImpactTables) -> Iterator[str]:
    for what, rows in impact.tables.items():
        for row in _rows(rows):
            if row["excluded"]:
                share = words.percent(row["share"])
                yield (
                    f"excluded by {what}: {row['category']}, {share} of the data (§ 5-301(d)): "
                    f"{row['excluded']}"
                )
    yield from impact.notes
    yield from _CLOSING
