"""Letters over several runs: scores, warnings, what was accepted, and the appeals and complaints
that came in.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from pytest_fairness.documents import rows
from pytest_fairness.errors import FairnessError
from pytest_fairness.reports import formatting
from pytest_fairness.reports.charts import ForestRow, OverTime
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.sections import Columns, Section, Table, table

NAME = "letters.json"
_Count = Annotated[int, msgspec.Meta(ge=0)]


class LettersOfRun(msgspec.Struct, frozen=True, kw_only=True):
    """What ``letters.json`` says of one run, as far as it is followed; ``run`` is the id of the
    run.
    """

    endpoint: str
    model: str
    simulated: bool
    letters: _Count
    overall_score: float
    category_scores: dict[str, float]
    warnings: list[Any]
    timestamp: str = ""
    false_positive_rate: float | None = None
    run: str = ""

    @property
    def warnings_a_hundred(self) -> float | None:
        """Warnings per 100 letters, accepted ones included."""
        if self.letters:
            return 100 * len(self.warnings) / self.letters
        return None


class Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the complaints file: when, what kind, and which category or class it cites.
    ``letters`` is how many were sent in its month, as far as that is known.
    """

    date: datetime.date
    kind: Literal["appeal", "complaint", "legal"]
    citing: str = ""
    letters: _Count | None = None
    outcome: str = ""


def read_letters(folder: Path) -> LettersOfRun | None:
    """The letters of the run in *folder*; None where it has none. Raises FairnessError for a file
    that is none.
    """
    path = folder / NAME
    if not path.exists():
        return None
    try:
        return msgspec.structs.replace(
            msgspec.json.decode(path.read_bytes(), type=LettersOfRun), run=folder.name
        )
    except (OSError, msgspec.DecodeError) as error:
        raise FairnessError(f"{path} cannot be read: {error}") from error


def read_complaints(path: Path) -> list[Complaint]:
    """The lines of the CSV file *path*, the oldest first. Raises UsageError with file and line."""
    known = Complaint.__struct_fields__
    found = [line.convert(Complaint, strict=False) for line in rows(path, {"date", "kind"}, known)]
    return sorted(found, key=lambda one: one.date)


def letter_sections(
    letters: Sequence[LettersOfRun], complaints: Sequence[Complaint]
) -> list[Section]:
    """The scores over the runs, the oldest first, and the complaints by month; nothing where there
    are neither.
    """
    found = []
    if letters:
        parts = (_chart(letters), letters_table(letters), categories_table(letters))
        found.append(Section(id="letters", heading="Letters", parts=parts))
    if complaints:
        parts_of = (complaints_table(complaints), citing_table(complaints))
        found.append(Section(id="complaints", heading="Appeals and complaints", parts=parts_of))
    return found


def _chart(letters: Sequence[LettersOfRun]) -> OverTime:
    points = tuple(
        ForestRow(
            label=one.run,
            value=one.overall_score,
            words=f"{one.overall_score:.1f}",
            part=_asked(one),
        )
        for one in letters
    )
    return OverTime(title="Letters: overall score", axis="overall score, of 100", rows=points)


def _asked(one: LettersOfRun) -> str:
    model = ""
    if one.model and one.model != one.endpoint:
        model = f" ({one.model})"
    return shortened(f"{one.endpoint}{model}{', simulated' if one.simulated else ''}", 60)


def _number(value: float | None, form: str) -> str:
    if value is None:
        return formatting.NOTHING
    return form.format(value)


def letters_table(letters: Sequence[LettersOfRun]) -> Table:
    """A row a run: score, warnings per 100 letters, false-positive rate."""
    columns: Columns = {
        "run": lambda one: one.run,
        "endpoint": _asked,
        "letters": lambda one: f"{one.letters:,}",
        "score": lambda one: f"{one.overall_score:.1f}",
        "warnings per 100 letters": lambda one: _number(one.warnings_a_hundred, "{:.1f}"),
        "false-positive rate": lambda one: _number(one.false_positive_rate, "{:.1%}"),
    }
    return table("Letters by run, the oldest first", letters, columns, words=("endpoint",))


def categories_table(letters: Sequence[LettersOfRun]) -> Table:
    """A row a category of warnings, a column a run."""
    names = list(dict.fromkeys(name for one in letters for name in one.category_scores))
    shown = letters[-6:]  # what fits a page and a terminal; the others stand in their runs
    columns: Columns = {"category": lambda name: name.replace("_", " ")}

    def score(one: LettersOfRun) -> Any:
        return lambda name: _number(one.category_scores.get(name), "{:.1f}")

    columns |= {one.run: score(one) for one in shown}
    return table("Score by category of warnings, the newest runs", names, columns)


def complaints_table(complaints: Sequence[Complaint]) -> Table:
    """A row a month: appeals, complaints, legal ones, and all of them per 100 letters sent."""
    months = list(dict.fromkeys(f"{one.date:%Y-%m}" for one in complaints))
    by = {month: [one for one in complaints if f"{one.date:%Y-%m}" == month] for month in months}

    def rate(month: str) -> str:
        sent = max((one.letters or 0 for one in by[month]), default=0)
        return _number(100 * len(by[month]) / sent if sent else None, "{:.2f}")

    def kinds(kind: str) -> Any:
        return lambda month: str(sum(one.kind == kind for one in by[month]))

    columns: Columns = {"month": lambda month: month}
    columns |= {
        words: kinds(kind)
        for words, kind in (("appeals", "appeal"), ("complaints", "complaint"), ("legal", "legal"))
    }
    columns["per 100 letters"] = rate
    return table("Appeals and complaints by month", months, columns)


def citing_table(complaints: Sequence[Complaint]) -> Table:
    """What they cite, the most often first."""
    counted = Counter(one.citing or "nothing" for one in complaints).most_common()
    columns: Columns = {
        "citing": lambda one: shortened(one[0], 60),
        "how many": lambda one: f"{one[1]:,}",
    }
    return table("What they cite", counted, columns)
