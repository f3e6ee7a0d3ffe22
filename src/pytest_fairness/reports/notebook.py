"""Views of a finding in a notebook, which calls these: a card, a picture, a page, tables."""

from __future__ import annotations

import base64
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import UsageError
from pytest_fairness.model import Finding, GroupResult, PairResult, Verdict
from pytest_fairness.reports import charts, formatting
from pytest_fairness.reports.charts import Chart
from pytest_fairness.reports.escaping import html
from pytest_fairness.reports.finding_sections import (
    baseline_chart,
    effect_chart,
    finding_section,
    group_chart,
    group_table,
    share_chart,
)
from pytest_fairness.reports.html import render
from pytest_fairness.reports.judged_tables import JudgedTable
from pytest_fairness.reports.sections import Page
from pytest_fairness.trials_frame import any_text
from pytest_fairness.words import led

if TYPE_CHECKING:
    import pandas as pd

MOST_GROUPS = 24
#: White letters on these are legible on a page of any colour.
_COLOURS = {
    Verdict.FAIL: "#b3261e",
    Verdict.FLAG: "#9a5b00",
    Verdict.INCONCLUSIVE: "#5a5f73",
    Verdict.PASS: "#1f7a4d",
}
_SMALL = "font-size:.85em;opacity:.75"
_MARKS = {
    "simulated": "simulated endpoint: no model was asked",
    "replayed": "replayed: no model was asked now",
}


@dataclass(frozen=True)
class Picture:
    """A picture as a notebook shows it: ``svg`` is the text of a file."""

    svg: str
    title: str = ""

    def __repr__(self) -> str:
        return f"<Picture {self.title!r}>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write it to the file *path*, which is replaced; the path."""
        Path(path).write_text(self.svg, encoding="utf-8", newline="\n")
        return Path(path)


def finding_html(finding: Finding) -> str:
    """The card: nothing in it runs, loads or changes the look of anything else.

    Letters are as in the notebook around it, light or dark. The picture is an image, so that also
    those who show no drawing of a stranger (JupyterLab before a notebook is trusted, a forge) show
    it, or else its title.
    """
    style = (
        f"background:{_COLOURS[finding.verdict]};color:#fff;padding:.1em "
        ".5em;border-radius:.3em;font-weight:700"
    )
    marks = formatting.marks(finding)
    about = [f"{html(_title(finding))}", *(html(_MARKS.get(mark, mark)) for mark in marks)]
    parts = [
        f'<p style="margin:.3em 0;overflow-wrap:anywhere"><span style="{style}">{finding.verdict}</span> '
        f"{html(formatting.without_verdict(finding.sentence, finding.verdict))}</p>",
        f'<p style="margin:.3em 0;overflow-wrap:anywhere;{_SMALL}">{" · ".join(about)}</p>',
    ]
    if finding.group_results:
        groups = group_table(finding, most_labels=5)
        parts.append(table(groups.head, groups.rows[:MOST_GROUPS], len(groups.rows), range(1, 99)))
    if (drawn := _drawn(_chart(finding, None))) is not None:
        chart, svg = drawn
        data = base64.b64encode(svg.encode("utf-8", "backslashreplace")).decode("ascii")
        source = f"data:image/svg+xml;base64,{data}"
        parts.append(
            f'<img src="{source}" alt="{html(chart.title)}" style="max-width:44rem;width:100%">'
        )
    return f'<div style="max-width:52rem">{"".join(parts)}</div>'


def _title(finding: Finding) -> str:
    on = led(" on ", finding.outcome)
    by = led(" by ", finding.protected_class)
    endpoint = led(", endpoint ", finding.model_endpoint)
    return f"{finding.assertion.replace('_', ' ')}{on}{by}{endpoint}"


def table(
    head: Sequence[str], rows: Sequence[Sequence[Any]], total: int, figures: Container[int] = ()
) -> str:
    """*rows* of *total* under *head*. The columns of those numbers are *figures*: on one line, at
    the right.
    """
    cell = "padding:.15em .6em;border-bottom:1px solid rgba(128,128,128,.35);"
    words = "min-width:4em;overflow-wrap:anywhere;text-align:left"
    figure = "white-space:nowrap;text-align:"

    styles = []
    for place in range(len(head)):
        if place not in figures:
            styles.append(words)
        elif place == 0:
            styles.append(f"{figure}left")
        else:
            styles.append(f"{figure}right")

    def line(kind: str, texts: Iterable[Any]) -> str:
        cells = (
            f'<{kind} style="{cell}{style}">{html(str(text))}</{kind}>'
            for style, text in zip(styles, texts, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(line("td", row) for row in rows)
    more = ""
    if len(rows) < total:
        more = f'<p style="{_SMALL}">and {total - len(rows)} more</p>'
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5em 0"
    shown = f'<table style="{style}"><thead>{line("th", head)}</thead><tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto">{shown}</div>{more}'


# ---------------------------------------------------------------- pictures


def finding_picture(finding: Finding, of: str | None, judged: JudgedTable | None = None) -> Picture:
    """The picture of *of* ``groups`` or ``pairs``, of the first there is where it is None. Raises
    UsageError.

    With the table from which it was *judged*, groups have a dot a name.
    """
    drawn = _drawn(_chart(finding, of, judged))
    if drawn is None:
        which = led(" of the ", of)
        raise UsageError(f"nothing to draw{which}: {finding!r} has the figures in to_frame()")
    return Picture(drawn[1], drawn[0].title)


def _chart(finding: Finding, of: str | None, judged: JudgedTable | None = None) -> Chart | None:
    _refuse_unknown(of or "groups")
    drawn: Chart | None = None
    if of != "pairs":
        drawn = group_chart(finding, judged) or share_chart(finding)
    if drawn is None and of != "groups":
        drawn = baseline_chart(finding) or effect_chart(finding)
    return drawn


def _drawn(chart: Chart | None) -> tuple[Chart, str] | None:
    if chart is None:
        return None
    svg = charts.standalone(chart)
    if svg is None:
        return None
    return chart, svg


# ---------------------------------------------------------------- a page


def finding_page(finding: Finding) -> str:
    """The card of the report on a page by itself."""
    section = finding_section(finding, "finding", nodeid=finding.test_id)
    page = Page(
        name="finding",
        title="Finding",
        lead=_title(finding),
        sections=(section,),
        simulated=finding.simulated,
        replayed=finding.replayed,
    )
    return render(page, {"id": "", "versions": {}})


# ---------------------------------------------------------------- tables


def finding_frame(finding: Finding, of: str) -> pd.DataFrame:
    """The ``groups`` or ``pairs`` of *finding*; figures are numbers, missing ones NaN. Raises
    UsageError.
    """
    _refuse_unknown(of)
    if of == "groups":
        rows = [
            ({f"share_{label}": share for label, share in group.shares.items()}, group)
            for group in finding.group_results
        ]
        return _frame(GroupResult, rows, "shares")
    return _frame(
        PairResult, [(dict(pair.statistics), pair) for pair in finding.pairs], "statistics"
    )


def _refuse_unknown(of: str) -> None:
    if of not in ("groups", "pairs"):
        raise UsageError(f"a finding has 'groups' and 'pairs', no {of!r}")


def _frame(noun: type, rows: Sequence[tuple[Mapping[str, Any], Any]], mapping: str) -> pd.DataFrame:
    """A row each of *rows*: the fields of the *noun* but *mapping*, and what that holds beside
    them.
    """
    import pandas as pd

    columns_ = [field for field in fields(noun) if field.name != mapping]
    columns: dict[str, list[Any]] = {
        field.name: [_cell(getattr(row, field.name)) for _, row in rows] for field in columns_
    }
    for key in dict.fromkeys(key for more, _ in rows for key in more):
        columns.setdefault(key, [more.get(key) for more, _ in rows])
    with any_text():
        frame = pd.DataFrame(columns)
    numbers = [field.name for field in columns_ if str(field.type).startswith("float")]
    return frame.astype(dict.fromkeys(numbers, float))


def _cell(value: Any) -> Any:
    """Verdicts and reasons as text, notes as one text."""
    if isinstance(value, tuple):
        return "; ".join(value)
    if isinstance(value, str):
        return str(value)
    return value
