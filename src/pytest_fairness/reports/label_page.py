"""The page on which a person labels a sample of replies, and the sheet that does the same: one file
each, which tells no group. Unlike a report, the page runs a script; it loads nothing.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from pytest_fairness.errors import UsageError
from pytest_fairness.reports.escaping import csv_cell, visible
from pytest_fairness.reports.html import environment
from pytest_fairness.reports.label_samples import LabelSample, SampledText
from pytest_fairness.runs.labels import checked_name, label_in_words, label_of
from pytest_fairness.scorers.labelling import NONE, Label

_SHEET = ("id", "sample", "label", "who", "when", "text", "prompt")
_NEEDED = ("id", "sample", "label")


class SheetLabel(NamedTuple):
    """A label as a file gives it: of the text of that ``id`` in a sample of so many replies."""

    id: str
    sample: int
    label: Label
    who: str
    when: str


def label_page(sample: LabelSample, size: int) -> str:
    """Return the page that asks for the labels of *sample*, which has *size* replies a group."""
    options = []
    for words, score in sample.task.options.items():
        options.append({"words": words, "label": _written(score)})
    texts = []
    for text in sample.texts:
        prompt = text.prompt
        if prompt is not None:
            prompt = visible(prompt)
        texts.append({"id": text.id, "text": visible(text.text), "prompt": prompt})
    data = {
        "id": f"{sample.run} {sample.scorer} {sample.task.digest}",
        "file": f"labels-{sample.run}.csv",
        "question": sample.task.question,
        "rubric": sample.task.rubric,
        "options": options,
        "low": sample.task.low,
        "high": sample.task.high,
        "sample": size,
        "texts": texts,
    }
    template = environment().get_template("label.html.j2")
    return template.render(run=sample.run, scorer=sample.scorer, data=_script_data(data))


def _script_data(data: object) -> Markup:
    """Return *data* as JSON that cannot end the element that it stands in."""
    text = json.dumps(data)  # ASCII
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - escaped for this place, where entities are not read


def label_sheet(sample: LabelSample, size: int) -> str:
    """Return a CSV sheet of *sample*, of *size* replies a group, whose label column is to be filled
    in.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_SHEET)
    for sampled in sample.texts:
        shown = [csv_cell(sampled.text), csv_cell(sampled.prompt or "")]
        writer.writerow([sampled.id, size, "", "", "", *shown])
    return text.getvalue()


def read_sheet(file: Path, who: str, options: Mapping[str, object]) -> list[SheetLabel]:
    """Return the labels that the page or a sheet in *file* gives, by *who* where it does not say; a
    row without a label is left out. A label is one of *options*, or what that stands for. Raises
    UsageError, naming the line.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read ({error})") from None
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    absent = [name for name in _NEEDED if name not in (rows.fieldnames or ())]
    if absent:
        raise UsageError(f"{file} has no column {absent[0]!r}: it is no sheet of labels")
    return list(_sheet_labels(rows, file, who, options))


def _sheet_labels(
    rows: csv.DictReader[str], file: Path, who: str, options: Mapping[str, object]
) -> Iterator[SheetLabel]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    by_words = {words.casefold(): _written(score) for words, score in options.items()}
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows, None)
            if row is None:
                return
            words = (row["label"] or "").strip().casefold()
            if words:
                yield SheetLabel(
                    id=row["id"],
                    sample=int(row["sample"]),
                    label=label_of(by_words.get(words, words)),
                    who=checked_name(row.get("who") or who),
                    when=row.get("when") or now,
                )
        except (ValueError, csv.Error) as error:
            allowed = ", ".join([*by_words, *dict.fromkeys(by_words.values())]) or "a number"
            raise UsageError(
                f"{file}, line {line}: no label of the sample ({error}); give {allowed}, or {NONE}"
            ) from None


def text_of(sample: LabelSample, id: str, file: Path) -> SampledText:  # noqa: A002 - the sheet's word
    """Return the text of *sample* that a *file* calls *id*. Raises UsageError where it has none."""
    for text in sample.texts:
        if text.id == id:
            return text
    raise UsageError(
        f"{file}: {id[:40]!r} is no text of this sample; was it made from another run?"
    )


def _written(score: object) -> str:
    """Return a *score* as a file of labels has it."""
    if not isinstance(score, (bool, int, float)):
        return NONE
    return label_in_words(score)
