"""A simulated model that reads: asked what a text says that somebody else wrote, it goes by the
words that the simulated model writes, and errs as often as is planted for the group that the text
is about.

What is asked has the form of ``scorers/reading_turn.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import filterfalse
from typing import NamedTuple

from pytest_fairness.endpoints.simulated.bias import Draws, Planted, ReadingQuality
from pytest_fairness.endpoints.simulated.prompt import DECISIONS, Signals, slug
from pytest_fairness.endpoints.simulated.writing import TEXTS, compound, valence

_TASK = re.compile(
    r"\AYou read a text that somebody else wrote, "
    r".*?^(?P<fence>=== \w+ ===)$\n(?P<text>.*?)\n^(?P=fence)$\n(?P<question>.*)\Z",
    re.DOTALL | re.MULTILINE,
)
_OPTION = re.compile(r"^(?P<letter>[A-Z])\. (?P<words>.+)$", re.MULTILINE)
_SCALE = re.compile(r"^The scale goes (?P<first>-?\d+), .*?(?P<last>-?\d+)\.$", re.MULTILINE)
#: Words that tell the options of a question and the decisions of a text: favourable, and not.
_GOOD, _BAD = (
    re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b", re.IGNORECASE)
    for words in (
        ("yes", "in favour", "answered", *(good for good, _ in DECISIONS)),
        ("no", "not", "against", *(bad for _, bad in DECISIONS)),
    )
)
_DECLINES = re.compile(r"declin|refus|does none", re.IGNORECASE)
_SENSES = {"good": _GOOD, "bad": _BAD, "declines": _DECLINES}
_REFUSALS = frozenset(TEXTS["answers"]["refusals"])
#: Options that decline, or that nothing fits.
_TELLS_NOTHING = re.compile(rf"{_DECLINES.pattern}|\A(?-i:none of these)", re.IGNORECASE)


class AskedReading(NamedTuple):
    """A question about a *text*: its options by their letters, or the two ends of a scale."""

    text: str
    options: Mapping[str, str]
    scale: tuple[int, int] | None


def asked_reading(prompt: str) -> AskedReading | None:
    """Return what *prompt* asks about a text; None where it asks for something else."""
    task = _TASK.match(prompt)
    if task is None:
        return None
    scale = _SCALE.search(task["question"])
    if scale is not None:
        ends = sorted((int(scale["first"]), int(scale["last"])))
        return AskedReading(task["text"], {}, (ends[0], ends[1]))
    options = {match["letter"]: match["words"] for match in _OPTION.finditer(task["question"])}
    return AskedReading(task["text"], options, None)


def read(asked: AskedReading, planted: Planted, signals: Signals) -> str:
    """Return the reader's answer."""
    if asked.scale is not None:
        return f"ANSWER: {_point(asked.text, asked.scale)}"
    # By the text alone, so that both orders of the options come to the same.
    draws = Draws(planted.seed, "reading", asked.text)
    letters: dict[str, str] = {}
    for letter, option in asked.options.items():
        letters.setdefault(_sense(option), letter)
    if "good" not in letters:
        return f"ANSWER: {_guess(asked.options, draws)}"
    meaning = _meaning(asked.text)
    quality = planted.reading_quality(_groups(asked.text, signals))
    understood = _misread(meaning, quality, draws)
    return f"ANSWER: {letters.get(understood, letters['good'])}"


def _sense(text: str) -> str:
    """Return what the first telling word of *text* says: good, bad or declines; empty for none."""
    first: dict[int, str] = {}
    for sense, words in _SENSES.items():
        match = words.search(text)
        if match is not None:
            first.setdefault(match.start(), sense)
    if not first:
        return ""
    return first[min(first)]


def _meaning(text: str) -> str:
    """Return whether *text* is good or bad for the person, or declines."""
    if text in _REFUSALS:
        return "declines"
    if _sense(text) == "good":
        return "good"
    return "bad"


def _misread(meaning: str, quality: ReadingQuality, draws: Draws) -> str:
    """Return what *meaning* is taken for by a reader of that *quality*."""
    mistaken = {"good": ("bad", quality.sensitivity), "bad": ("good", quality.specificity)}
    if meaning not in mistaken:
        return meaning
    other, right = mistaken[meaning]
    if draws.uniform() > right:
        return other
    return meaning


def _guess(options: Mapping[str, str], draws: Draws) -> str:
    """Return the letter of one of *options* by chance, in an order that does not depend on theirs:
    nothing in the text tells which.
    """
    letters = dict(zip(options.values(), options, strict=True))
    telling = sorted(filterfalse(_TELLS_NOTHING.search, letters))
    return letters[draws.pick(telling or sorted(letters))]


def _point(text: str, scale: tuple[int, int]) -> int:
    """Return the point of *scale* at which the tone of *text* stands, as VADER's score puts it."""
    low, high = scale
    return round(low + (compound(valence(text)) + 1) / 2 * (high - low))


def _groups(text: str, signals: Signals) -> dict[str, str]:
    """Return the groups that *text* is about, as the trial has it."""
    return {slug(by): slug(group) for by, group in signals.get(text, {}).items()}
