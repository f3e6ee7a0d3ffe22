"""Letters over several runs: scores, warnings, what was accepted, and the appeals and complaints
that came in.
"""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from pytest_fairness import words
from pytest_fairness.documents import rows
from pytest_fairness.errors import FairnessError
from pytest_fairness.reports.charts import ForestRow, OverTime
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.sections import Columns, Section, Table, table

NAME = "letters.json"
_Count = Annotated[int, msgspec.Meta(ge=0)]


class LettersOfRun(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run in ``letters.json``, as far as they are followed; ``run`` is the id of
    the run.
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
    fields = Complaint.__struct_fields__
    complaints = []
    for line in rows(path, {"date", "kind"}, fields):
        complaints.append(line.convert(Complaint, strict=False))
    return sorted(complaints, key=lambda complaint: complaint.date)


def letter_sections(
    letters: Sequence[LettersOfRun], complaints: Sequence[Complaint]
) -> list[Section]:
    """The scores over the runs, the oldest first, and the complaints by month; nothing where there
    are neither.
    """
    sections = []
    if letters:
        parts = (_chart(letters), letters_table(letters), categories_table(letters))
        sections.append(Section(id="letters", heading="Letters", parts=parts))
    if complaints:
        parts_of = (complaints_table(complaints), citing_table(complaints))
        sections.append(Section(id="complaints", heading="Appeals and complaints", parts=parts_of))
    return sections


def _chart(letters: Sequence[LettersOfRun]) -> OverTime:
    points = []
    for letter in letters:
        score = letter.overall_score
        point = ForestRow(label=letter.run, value=score, words=f"{score:.1f}", part=_asked(letter))
        points.append(point)
    return OverTime(
        title="Letters: overall score", axis="overall score, of 100", rows=tuple(points)
    )


def _asked(run: LettersOfRun) -> str:
    asked = run.endpoint
    if run.model not in ("", run.endpoint):
        asked += f" ({run.model})"
    if run.simulated:
        asked += ", simulated"
    return shortened(asked, 60)


def _number(value: float | None, form: str) -> str:
    if value is None:
        return words.NOTHING
    return form.format(value)


def letters_table(letters: Sequence[LettersOfRun]) -> Table:
    """A row a run: score, warnings per 100 letters, false-positive rate."""
    columns: Columns = {
        "run": lambda run: run.run,
        "endpoint": _asked,
        "letters": lambda run: f"{run.letters:,}",
        "score": lambda run: f"{run.overall_score:.1f}",
        "warnings per 100 letters": lambda run: _number(run.warnings_a_hundred, "{:.1f}"),
        "false-positive rate": lambda run: _number(run.false_positive_rate, "{:.1%}"),
    }
    return table("Letters by run, the oldest first", letters, columns, words=("endpoint",))


def categories_table(letters: Sequence[LettersOfRun]) -> Table:
    """A row a category of warnings, a column a run."""
    names = list(dict.fromkeys(name for letter in letters for name in letter.category_scores))
    shown = letters[-6:]  # what fits a page and a terminal; the others stand in their runs
    columns: Columns = {"category": lambda name: name.replace("_", " ")}

    def score(run: LettersOfRun) -> Any:
        return lambda name: _number(run.category_scores.get(name), "{:.1f}")

    columns |= {run.run: score(run) for run in shown}
    return table("Score by category of warnings, the newest runs", names, columns)


def complaints_table(complaints: Sequence[Complaint]) -> Table:
    """A row a month: appeals, complaints, legal ones, and all of them per 100 letters sent."""
    by: dict[str, list[Complaint]] = defaultdict(list)
    for complaint in complaints:
        by[f"{complaint.date:%Y-%m}"].append(complaint)

    def rate(month: str) -> str:
        sent = max(complaint.letters or 0 for complaint in by[month])
        if not sent:
            return words.NOTHING
        a_hundred = 100 * len(by[month]) / sent
        return f"{a_hundred:.2f}"

    def kinds(kind: str) -> Any:
        return lambda month: str(sum(complaint.kind == kind for complaint in by[month]))

    columns: Columns = {
        "month": str,
        "appeals": kinds("appeal"),
        "complaints": kinds("complaint"),
        "legal": kinds("legal"),
        "per 100 letters": rate,
    }
    return table("Appeals and complaints by month", list(by), columns)


def citing_table(complaints: Sequence[Complaint]) -> Table:
    """Return what they cite, the most often first."""
    counted = Counter(complaint.citing or "nothing" for complaint in complaints).most_common()
    columns: Columns = {
        "citing": lambda item: shortened(item[0], 60),
        "how many": lambda item: f"{item[1]:,}",
    }
    return table("What they cite", counted, columns)
