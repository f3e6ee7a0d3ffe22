"""Labels: what persons read in a sample of a run's replies. They lie in the project's folder
``labels/``, a CSV file a scorer, and hold keys of trials and digests of replies, never a reply.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_fairness.design.slugs import digest, slug
from pytest_fairness.errors import UsageError
from pytest_fairness.scorers.labelling import NONE, Label

FOLDER = "labels"
_COLUMNS = ("key", "reply", "question", "label", "who", "when", "run")
_YES_NO = {"true": True, "false": False}
_LONGEST_NAME = 80
#: A spreadsheet takes a cell that begins so for a formula.
_FORMULA = ("=", "+", "-", "@")


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonLabel:
    """A *label* of the reply of a trial: the trial's ``key``, the digests of its ``reply`` and of
    the ``question`` that was asked about it, ``who`` read it and ``when`` (ISO 8601), and the id of
    the ``run``.
    """

    key: str
    reply: str
    question: str
    label: Label
    who: str
    when: str
    run: str


def labels_file(folder: Path, scorer: str) -> Path:
    """Return the file of the labels of *scorer* in the *folder* of labels."""
    name = slug(scorer)
    if name != scorer:  # no other scorer's name comes to the same
        name = f"{name}-{digest(scorer)}"
    return folder / f"{name}.csv"


def checked_name(who: str) -> str:
    """Return the name of a person as it is written down. Raises UsageError for none."""
    name = who.strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise UsageError(
            f"who={who!r:.100}: give the name or the initials of who labels, in a line"
        )
    if name.startswith(_FORMULA):
        raise UsageError(f"who={who!r}: begin it with a letter")
    return name


def label_in_words(label: Label) -> str:
    """Return *label* as it is written into a file."""
    if isinstance(label, bool):
        return str(label).lower()
    if isinstance(label, str):
        return label
    return f"{label:g}"


def label_of(words: str) -> Label:
    """The inverse of :func:`label_in_words`. Raises ValueError for anything else."""
    if words in _YES_NO:
        return _YES_NO[words]
    if words == NONE:
        return NONE
    number = float(words)
    if number - number != 0:
        raise ValueError(f"{words} is no finite number")
    return number


def append_labels(file: Path, labels: Iterable[PersonLabel]) -> None:
    """Write *labels* to the end of *file*, all at once. Raises UsageError where that cannot be."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for label in labels:
        words = label_in_words(label.label)
        writer.writerow(
            [label.key, label.reply, label.question, words, label.who, label.when, label.run]
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as stream:
            head = b""
            if stream.tell() == 0:
                head = f"{','.join(_COLUMNS)}\n".encode()
            stream.write(head + text.getvalue().encode("utf-8", "backslashreplace"))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise UsageError(f"{file}: the labels cannot be written ({error.strerror})") from None


def read_labels(file: Path) -> list[PersonLabel]:
    """Return the labels of *file*, in the order in which they were given; none where there is no
    such file. Raises UsageError, naming the line, where one cannot be read.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: the labels cannot be read ({error})") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    return list(_labels(reader, file))


def _labels(rows: Iterator[list[str]], file: Path) -> Iterator[PersonLabel]:
    """Yield the label of each row of *file*. Raises UsageError naming the line."""
    line = 0
    try:
        for line, row in enumerate(rows, 1):
            if line == 1:
                if tuple(row) != _COLUMNS:
                    raise ValueError(f"the columns are {','.join(row)}")
                continue
            key, reply, question, words, who, when, run = row
            yield PersonLabel(
                key=key,
                reply=reply,
                question=question,
                label=label_of(words),
                who=who,
                when=when,
                run=run,
            )
    except (ValueError, csv.Error) as error:
        raise UsageError(
            f"{file}, line {max(line, 1)}: this is no label ({error}); the columns are "
            f"{','.join(_COLUMNS)}, and a label is true, false, a number or {NONE}"
        ) from None


def first_labels(labels: Iterable[PersonLabel]) -> Mapping[tuple[str, str], PersonLabel]:
    """Return the label of each trial and reply: the first that a person gave, and of that person
    the last, so that a slip can be mended; what others say measures their agreement.
    """
    first: dict[tuple[str, str], PersonLabel] = {}
    for label in labels:
        place = label.key, label.reply
        if place not in first or first[place].who == label.who:
            first[place] = label
    return first


def agreement_of(labels: Iterable[PersonLabel]) -> list[tuple[Label, Label]]:
    """Return the labels of replies that two persons read: the first one's, and each other's."""
    labels = list(labels)
    first = first_labels(labels)
    others: dict[tuple[str, str, str], PersonLabel] = {}
    for label in labels:
        if first[label.key, label.reply].who != label.who:
            others[label.key, label.reply, label.who] = label
    return [(first[key, reply].label, other.label) for (key, reply, _), other in others.items()]
