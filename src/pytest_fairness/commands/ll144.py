"""``pytest-fairness ll144``: the tables of New York City's rule on hiring tools, of a run or of a
CSV file.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_fairness.commands import add_column, add_path

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.errors import UsageError
    from pytest_fairness.runs.judgements import Judgement
    from pytest_fairness.scorers.outcome import Outcome

_SEX, _RACE = ("sex", "gender"), ("race_ethnicity", "race", "ethnicity")
_STATED = ("data", "source", "audit_date", "distribution_date")


def add(subparsers: Any) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "ll144",
        help="selection or scoring rates and impact ratios, as NYC Local Law 144 has them",
        description="Tables by sex, by race/ethnicity and by both, in the form of 6 RCNY § 5-301, of the trials that a "
        "finding of RUN was judged from, or of a CSV file with one applicant a row. They are no "
        "bias audit.",
        example="pytest-fairness ll144 decisions.csv --outcome hired --data historical --source 'ATS export, 2025'",
    )
    parser.add_argument("table", metavar="RUN|CSV", help="a run, or the path of a CSV file")
    parser.add_argument(
        "--finding", metavar="ID", help="of RUN: the finding whose trials are meant"
    )
    add_column(parser, "--outcome", "of a CSV file: the column of decisions or scores")
    add_column(parser, "--sex", f"the column of the sex ({' or '.join(_SEX)})")
    add_column(parser, "--race", f"the column of the race/ethnicity ({' or '.join(_RACE)})")
    parser.add_argument(
        "--favourable", metavar="VALUE", help="the decision that means selected (true)"
    )
    parser.add_argument(
        "--rate",
        choices=("auto", "selection", "scoring"),
        default="auto",
        help="auto: selection for yes and no",
    )
    parser.add_argument(
        "--unknown", metavar="LABEL", action="append", help="a category that is unknown (unknown)"
    )
    parser.add_argument(
        "--exclude",
        metavar="CATEGORY=WHY",
        action="append",
        help="leave a category under 2 %% out of the impact ratios",
    )
    choices = ("synthetic", "historical", "test")
    parser.add_argument(
        "--data", choices=choices, default=choices[0], help="your statement of what the rows are"
    )
    parser.add_argument(
        "--source", default="", help="your statement of their origin, which is shown"
    )
    parser.add_argument(
        "--audit-date",
        default="",
        metavar="DATE",
        help="the date of the bias audit, which is shown",
    )
    parser.add_argument(
        "--distribution-date", default="", metavar="DATE", help="since when the tool is in use"
    )
    for name, what in (("html", "a page"), ("markdown", "Markdown"), ("csv", "one CSV table")):
        add_path(parser, f"--{name}", f"write the tables as {what}, too")
    parser.set_defaults(run=ll144)


def ll144(arguments: argparse.Namespace) -> tuple[str, int]:
    """Print the tables; write them to the files that are named."""
    from pytest_fairness.analysis.ll144 import ll144_tables
    from pytest_fairness.reports.html import render
    from pytest_fairness.reports.impact_page import csv_text, impact_page
    from pytest_fairness.reports.markdown import page_markdown
    from pytest_fairness.reports.plain_text import page_text
    from pytest_fairness.runs.files import write_atomically

    frame: pd.DataFrame
    outcome: str | Outcome
    run: dict[str, Any] = {"id": "", "versions": None}
    if Path(arguments.table).suffix.lower() == ".csv":
        frame, outcome, favourable = _of_file(Path(arguments.table), arguments)
    else:
        frame, outcome, favourable, run = _of_run(arguments)
    sex = arguments.sex or _first(_SEX, frame)
    race = arguments.race or _first(_RACE, frame)
    if sex is None and race is None:
        raise _without_category(frame)
    stated: dict[str, Any] = {name: getattr(arguments, name) for name in _STATED}
    tables = ll144_tables(
        frame,
        outcome,
        sex=sex,
        race=race,
        rate=arguments.rate,
        favourable=favourable,
        unknown=tuple(arguments.unknown or ("unknown",)),
        exclude=dict(map(_exclusion, arguments.exclude or ())),
        **stated,
    )
    page = impact_page(tables, replayed=bool(run.get("replayed")))
    text = page_text(page)
    made = {
        "html": partial(render, page, run),
        "markdown": partial(page_markdown, page),
        "csv": partial(csv_text, tables),
    }
    for name, make in made.items():
        if (path := getattr(arguments, name)) is not None:
            write_atomically(path, make().encode("utf-8", "backslashreplace"))
            text += f"{name}: {path}\n"
    return text, 0


def _exclusion(given: str) -> tuple[str, str]:
    from pytest_fairness.errors import UsageError

    category, _, why = given.partition("=")
    if not why:
        raise UsageError(
            f"--exclude {given!r}: say CATEGORY=WHY, as 'female × asian=four applicants'"
        )
    return category.strip(), why.strip()


def _first(names: tuple[str, ...], frame: pd.DataFrame) -> str | None:
    """Return the column of *frame* that is called one of *names*, in whatever case of letters."""
    columns = {str(column).strip().lower(): column for column in reversed(frame.columns)}
    return next((columns[name] for name in names if name in columns), None)


def _without_category(frame: pd.DataFrame) -> UsageError:
    from pytest_fairness.errors import UsageError
    from pytest_fairness.words import listed

    return UsageError(
        "no column names the sex or the race/ethnicity: name one with --sex COLUMN or --race "
        "COLUMN; "
        f"the columns are {listed(map(str, frame.columns))}"
    )


def _of_file(path: Path, arguments: argparse.Namespace) -> tuple[pd.DataFrame, str, object]:
    """The table in a CSV file, its outcome, and the decision that is favourable."""
    import pandas as pd

    from pytest_fairness.errors import UsageError, did_you_mean
    from pytest_fairness.words import listed

    try:
        frame = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as CSV: {' '.join(str(error).split())}") from error
    columns = list(map(str, frame.columns))
    outcome = arguments.outcome
    if outcome not in columns:
        why = "name the column"
        if outcome:
            why = f"{path} has no column {outcome!r}{did_you_mean(outcome, columns)}"
        raise UsageError(f"--outcome: {why}; the columns are {listed(columns)}")
    return frame, outcome, _value(frame[outcome], arguments.favourable)


def _of_run(arguments: argparse.Namespace) -> tuple[pd.DataFrame, Outcome, object, dict[str, Any]]:
    """The trials that a finding was judged from, the outcome as it was judged, the decision that
    was favourable, and the facts of the run."""
    from pytest_fairness.errors import UsageError, unknown
    from pytest_fairness.reports.findings_json import read_results
    from pytest_fairness.runs.judgements import judgements
    from pytest_fairness.runs.project import chosen_run
    from pytest_fairness.runs.reader import reading

    if arguments.outcome:
        raise UsageError("--outcome is for CSV files; of a run, name the finding with --finding")
    folder = chosen_run(arguments.table)
    results = read_results(folder)
    if arguments.finding not in (None, *results.ids):
        raise UsageError(f"--finding: {unknown('finding', arguments.finding, results.ids)}")
    with reading(folder) as reader:
        judged = judgements(reader)
    columns = set(filter(None, (arguments.sex, arguments.race))) or {*_SEX, *_RACE}
    decisions: dict[tuple[str, str], _Decisions] = {}
    for number, finding in enumerate(results.ids):
        if arguments.finding not in (None, finding):
            continue
        trials = _Decisions.of(finding, judged.get(results.place_of(number)), columns)
        if trials is not None:
            decisions.setdefault((trials.test, trials.outcome.name), trials)
    if not decisions:
        which = "finding"
        if arguments.finding:
            which = "such finding"
        raise UsageError(
            f"run {folder.name}: no {which} was judged on trials that have a column "
            f"{' or '.join(sorted(columns))}"
        )
    meant, *others = decisions.values()
    if others:
        lines = ["the trials of which finding? Name one of these with --finding:"]
        for trials in decisions.values():
            lines.append(f"  {trials.finding}  {trials.outcome.name} in {trials.test}")
        raise UsageError("\n".join(lines))
    favourable = meant.favourable
    if arguments.favourable is not None:
        favourable = _value(meant.outcome.values, arguments.favourable)
    return meant.frame, meant.outcome, favourable, dict(results.run)


class _Decisions(NamedTuple):
    """The trials that *finding* of *test* was judged from."""

    finding: str
    test: str
    frame: pd.DataFrame
    outcome: Outcome
    favourable: object

    @classmethod
    def of(
        cls, finding: str, judgement: Judgement | None, columns: Collection[str]
    ) -> _Decisions | None:
        """Return the trials of *judgement*; None where they have none of *columns*, or no outcome."""
        if judgement is None or judgement.outcome is None:
            return None
        frame = judgement.frame()
        outcome = judgement.outcome_in(frame)
        if outcome is None or not set(columns) & set(frame.columns):
            return None
        return cls(finding, judgement.test, frame, outcome, judgement.arguments.get("favourable"))


def _value(column: pd.Series[Any], text: str | None) -> object:
    """The value of *column* that is written *text*."""
    return next((value for value in column.dropna().unique().tolist() if str(value) == text), text)
