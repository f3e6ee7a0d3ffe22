"""The texts around a scrubber: which part is about which candidate, what conveys a group in it,
what is job-related.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

import pandas as pd

from pytest_fairness import FrameError
from pytest_fairness.design.signals import CONTROL, LABEL, Signals
from pytest_fairness.suites.selection.choice_table import GROUP, Classes, crossed_classes, values_of

RAW_TEXT = "raw_text"
SEEN = "candidates_text"
NAME, PRONOUN = "name", "pronoun"
_MARK = re.compile(
    r"^[ \t*#>\-\"'(\[]*"
    r"(?:(?P<number>\d{1,2})[.):]\s+"
    r"|(?:candidate|applicant|option)[ \t]+(?P<letter>[A-Z]|\d{1,2})\b)",
    re.MULTILINE | re.IGNORECASE,
)
_LABEL = re.compile(
    r"^\W*(?:\d{1,2}[.):]\s+)?(?:\W*(?:candidate|applicant|option)\s+(?:[A-Z]|\d{1,2})\b)?\W*",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(?:he|she|him|his|her|hers|himself|herself)\b", re.IGNORECASE)
_TOKEN = re.compile(r"[^\W\d_]{2,}|\d+(?:[.,]\d+)*")
_KEY = ("template", "signal", "first", "second", "first_name", "second_name")
#: Words that carry no qualification of anybody; what is left of a line counts as job-related.
_EMPTY = frozenset({
    "a", "age", "an", "and", "applicant", "are", "as", "at", "be", "been", "by", "candidate", "for",
    "from", "had", "has", "have", "he", "her", "hers", "him", "his", "i", "in", "is", "it", "its",
    "my", "name", "of", "on", "or", "removed", "she", "that", "the", "their", "theirs", "them",
    "they", "this", "to", "was", "were", "who", "with", "year",
})  # fmt: skip


def candidate_texts(frame: pd.DataFrame, arm: str, classes: Classes) -> pd.DataFrame:
    """The candidates of *arm*'s texts, two a trial in the order of the rows; without trials that
    have no scrubbed text.

    ``raw`` is what the text said of a candidate before: from the prompt that another arm sent for
    the same candidates, or the column ``raw_text``. ``left`` is what is left of it, None where it
    cannot be told from the other's; ``whole`` is the whole text that was left. Beside them:
    ``group`` and crossed classes, ``name``, ``unit``, ``context``.

    Raises FrameError where nothing says what the text was before.
    """
    rows = frame[(frame["arm"] == arm) & frame[SEEN].notna()]
    seats = [rows[name] for name in ("template", "first", "first_name", "second", "second_name")]
    texts: list[CandidateText] = []
    for whole, raw, context, group, name, other, other_name in zip(
        rows[SEEN].astype(str), _raw(frame, rows), *seats, strict=True
    ):
        left = split(whole) or (None, None)
        before = split(raw) or (None, None)
        texts.append(_text(group, name, raw, before[0], left[0], whole, context))
        texts.append(_text(other, other_name, raw, before[1], left[1], whole, context))
    table = pd.DataFrame(texts, columns=list(CandidateText._fields), dtype=object)
    for name in crossed_classes(classes):
        table[name] = table[GROUP].map(values_of(classes, name))
    return table


class CandidateText(NamedTuple):
    """The words about one candidate: ``raw``, and what is ``left`` of them in the ``whole`` text after
    scrubbing; None where it cannot be told from the other's.
    """

    group: str
    name: str | None
    raw: str
    left: str | None
    whole: str
    context: str
    unit: str


def _text(
    group: str,
    name: object,
    raw: str,
    before: str | None,
    left: str | None,
    whole: str,
    context: str,
) -> CandidateText:
    """Return the text about one candidate; where the parts of *raw* cannot be told apart, the lines
    with the name are what it said before.
    """
    shown_name = None
    if isinstance(name, str):
        shown_name = name
    if before is None:
        lines = [line for line in raw.splitlines() if shown_name and shown_name in line]
        before = "\n".join(lines)
    return CandidateText(group, shown_name, before, left, whole, context, shown_name or group)


def _raw(frame: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    if RAW_TEXT in rows.columns and rows[RAW_TEXT].notna().all():
        return list(map(str, rows[RAW_TEXT]))
    key = [name for name in _KEY if name in frame.columns]
    others = frame[frame[SEEN].isna() & ~frame["arm"].astype(str).str.startswith("placebo")]
    others_raw = others[[*key, "prompt"]].drop_duplicates(key).rename(columns={"prompt": RAW_TEXT})
    texts = rows[key].merge(others_raw, how="left", on=key)[RAW_TEXT]
    if texts.isna().any():
        raise FrameError(
            "what the candidates' texts were before scrubbing is not in the frame: give it as "
            "column 'raw_text', or "
            "run an arm that sends it unscrubbed (raw_naive) beside the arm that scrubs"
        )
    return texts.tolist()


@lru_cache(maxsize=16384)
def split(text: str) -> tuple[str, str] | None:
    """The texts about the first and the second candidate, if both can be told, in this order;
    markers included.
    """
    marks = list(_MARK.finditer(text))
    lettered = [match for match in marks if match["letter"]]
    # A résumé has numbered lines of its own: where candidates are called by letters, those are the
    # markers.
    if list(map(_number, lettered[:2])) == [1, 2]:
        marks = lettered
    if list(map(_number, marks)) != [1, 2]:
        return None
    start = marks[0].start()
    middle = marks[1].start()
    first = text[start:middle].strip()
    second = text[middle:].strip()
    if "\n" not in first:
        # One line a candidate: what follows is the prompt's.
        second = second.split("\n")[0].strip()
    return first, second


def _number(match: re.Match[str]) -> int:
    """Return which candidate a marker stands before: ``2.`` and ``Candidate B`` are the second."""
    mark: str = match["number"] or match["letter"]
    if mark.isdigit():
        return int(mark)
    return ord(mark.upper()) - 64


def body(part: str) -> str:
    """*part* without its number and label."""
    return _LABEL.sub("", part, count=1)


# ---------------------------------------------------------------- signals and content

Conveyed: TypeAlias = tuple[tuple[str, str], ...]
"""The classes of one group, each with its value."""


@cache
def _signals() -> Signals:
    return Signals.load()


@cache
def _phrases(classes: Conveyed) -> tuple[str, ...]:
    """The words of the groups in *classes*, the longest first."""
    phrases: set[str] = set()
    for (name, _), kind in _signals().kinds.items():
        for protected_class, group in classes:
            if name == protected_class and group in kind.words and group != CONTROL:
                phrases.update(kind.phrases(group))
    return tuple(sorted(phrases, key=lambda phrase: (-len(phrase), phrase)))


@cache
def _word(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)", re.IGNORECASE)


@lru_cache(maxsize=16384)
def conveyed(raw: str, name: str | None, classes: Conveyed) -> dict[str, tuple[str, ...]]:
    """Return what in *raw* conveys the candidate's groups, by kind: the name's parts, words of each
    class, a pronoun.
    """
    signals = {}
    if words := _standing(_name_parts(name or ""), raw):
        signals[NAME] = words
    for class_and_group in classes:
        if words := _standing(_phrases((class_and_group,)), raw):
            signals[f"words of {class_and_group[0]}"] = words
    if _PRONOUN.search(raw):
        signals[PRONOUN] = ("pronoun",)
    return signals


def _name_parts(name: str) -> Iterator[str]:
    """Yield the parts of *name* that are no initials."""
    for part in name.split():
        if len(part.strip(".")) > 1:
            yield part


def _standing(words: Iterable[str], text: str) -> tuple[str, ...]:
    """Return those of *words* that stand in *text*."""
    return tuple(word for word in words if _word(word).search(text))


@lru_cache(maxsize=16384)
def is_removed(kind: str, signals: tuple[str, ...], left: str) -> bool:
    """Return whether nothing of a signal is left: no part of the name, none of the words, no
    gendered pronoun.
    """
    if kind == PRONOUN:
        return _PRONOUN.search(left) is None
    return not _standing(signals, left)


@lru_cache(maxsize=16384)
def content(raw: str, name: str | None, classes: Conveyed) -> frozenset[str]:
    """The job-related words and numbers of *raw*: all but the name, the words of the classes, and
    empty words.
    """
    text = body(raw)
    for phrase in _phrases(classes):
        text = _word(phrase).sub(" ", text)
    return frozenset(tokens(text) - tokens(name or "") - _EMPTY)


@lru_cache(maxsize=16384)
def tokens(text: str) -> frozenset[str]:
    """The words and numbers of *text*, in lower case."""
    return frozenset(word.casefold() for word in _TOKEN.findall(text))


# ---------------------------------------------------------------- guesses of the groups

_ALSO_CALLED = {
    "female": ("woman", "women", "f"),
    "male": ("man", "men", "m"),
    "black": ("african american", "african-american"),
    "white": ("caucasian", "european american"),
    "hispanic": ("latino", "latina", "latinx"),
    "asian": ("asian american",),
}
_START = re.compile(
    r"(?:^|[\n;]|(?<=[.,)])[ \t])[ \t*#>\-\"']*"
    r"(?:(?P<number>\d{1,2})[.):][ \t]*|(?:candidate|applicant)[ \t]+(?P<letter>[A-Z]|\d{1,2})\b)",
    re.IGNORECASE,
)


def read_guesses(reply: str, classes: Mapping[str, Sequence[str]]) -> list[dict[str, str | None]]:
    """For each of the two candidates the value guessed of each class in *classes* (class → its
    values).

    None where nothing, or more than one value, is said of a class, and for all where the reply does
    not go through the candidates in order: what cannot be told is no guess.
    """
    starts: dict[int, re.Match[str]] = {}
    for match in _START.finditer(reply):
        starts.setdefault(_number(match), match)
    first = starts.get(1)
    second = starts.get(2)
    if first is None or second is None or first.start() > second.start():
        return [dict.fromkeys(classes), dict.fromkeys(classes)]
    return [
        _guess(reply[first.end() : second.start()], classes),
        _guess(reply[second.end() :], classes),
    ]


def _guess(text: str, classes: Mapping[str, Sequence[str]]) -> dict[str, str | None]:
    """Return the value that *text* says of each class, None where it says none or several."""
    guess: dict[str, str | None] = {}
    for name, values in classes.items():
        guessed = [value for value in values if _form(name, value).search(text)]
        guess[name] = None
        if len(guessed) == 1:
            guess[name] = guessed[0]
    return guess


@cache
def _form(name: str, value: str) -> re.Pattern[str]:
    """Return what a *value* of the class *name* is called."""
    signals = _signals()
    forms = [value, value.replace("_", " "), value.replace("_", "-"), *_ALSO_CALLED.get(value, ())]
    if name in signals.protected_classes and value in signals.groups(name):
        forms += signals.phrases(name, value, LABEL)
    any_of = "|".join(map(re.escape, dict.fromkeys(forms)))
    return re.compile(rf"(?<![\w-])(?:{any_of})(?![\w-])", re.IGNORECASE)
