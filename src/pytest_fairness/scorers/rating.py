"""Read a rating off a reply: a bare number, "7/10", "Rating: 7", ``{"score": 7}``, "seven out of
ten".

The ways of saying a rating are tried from the plainest to the loosest. The first way that says
anything decides: one value on the scale is the rating; two different ones, a range ("7-8"), a
percentage or another scale is no rating. A wrong number would be evidence that nobody gave, a
missing one is counted and reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pytest_fairness.scorers.text import (
    Patterns,
    after_correction,
    agreed,
    field_of,
    is_foreign,
    json_fields,
    own_words,
    plain,
    settled,
    squeezed,
)

_READ = Patterns("rating")
_WORDS, _KEYS = map(_READ.words, ("named", "keys"))
_NOTHING = (
    "nothing"  # this way of saying it does not occur; None means that it occurs and is no rating
)


def rating_scorer(low: float = 1, high: float = 10) -> Callable[[str], float | None]:
    """A function that reads a rating from *low* to *high* off a text, ``None`` where there is none
    or no single one.
    """

    def read(text: str) -> float | None:
        values = field_of(text, _KEYS)
        if values is None and (fields := json_fields(text)) is not None:
            values = [value for several in fields.values() for value in several]
        if values is not None:
            return agreed(_from_json(value, low, high) for value in values)
        text = settled(plain(text.replace("½", ".5")))
        if is_foreign(text):
            return None
        if corrected := after_correction(text):
            reading = _in_prose(corrected, low, high)
            if reading is not None and not isinstance(reading, str):
                return reading
        reading = _in_prose(text, low, high) if text else _NOTHING
        if isinstance(reading, str):
            return None
        return reading

    return read


rating = rating_scorer()


def _in_prose(text: str, low: float, high: float) -> float | str | None:
    """The first way of saying a rating that *text* uses; what others gave, or it would be
    otherwise, left out.
    """
    for drawn in _READ.stars.finditer(text):
        scale = len(drawn["full"]) + len(drawn["empty"])
        if scale == high and drawn["empty"]:
            return float(len(drawn["full"]))
        return None
    spoken = squeezed(own_words(_READ.other_number.sub(" ", text))).strip()
    without_scale = squeezed(_READ.scale_phrase.sub(" ", spoken)).strip()
    for pattern, texts in (
        (_READ.bare, [text]),
        (_READ.bare, [without_scale]),
        (_READ.answer, [without_scale]),
        (_READ.overall, [without_scale]),
        (_READ.summed, [without_scale]),
        (_READ.labelled, [spoken]),
        (_READ.named_score, [spoken]),
        (_READ.opened, [without_scale]),
        (_READ.bare, spoken.splitlines()),
        (_READ.given, [without_scale]),
        (_READ.spoken, [without_scale]),
        (_READ.fraction, [spoken]),
        (_READ.ending, [without_scale]),
    ):
        reading = _search(pattern, texts, low, high)
        if not isinstance(reading, str):
            return reading
    return _NOTHING


def _search(
    pattern: re.Pattern[str], texts: list[str], low: float, high: float
) -> float | str | None:
    """Return what *pattern* finds in *texts*: ``_NOTHING`` without a match, ``None`` if that is no
    rating.
    """
    matches = [match for text in texts for match in pattern.finditer(text)]
    # "9/10, with 5/6 of the skills": a fraction on another scale is no second rating beside one on
    # ours.
    ours = [
        match for match in matches if match["scale"] is not None and _number(match["scale"]) == high
    ]
    chosen = ours or matches
    if chosen:
        return agreed(_value(match, low, high) for match in chosen)
    return _NOTHING


def _value(match: re.Match[str], low: float, high: float) -> float | None:
    stated = match.groupdict().get("verb") is not None
    if match["more"] or (
        stated and _READ.negation.search(match.string[max(0, match.start() - 40) : match.start()])
    ):
        return None
    if match["scale"] is not None and _number(match["scale"]) != high:
        return None
    value = _number(match["number"].split()[0]) + (0.5 if match["half"] else 0.0)
    if low <= value <= high:
        return value
    return None


def _number(text: str) -> float:
    """A number in digits or as a word."""
    if text.lower() in _WORDS:
        return float(_WORDS.index(text.lower()))
    return float(text.replace(",", "."))


def _from_json(value: Any, low: float, high: float) -> float | None:
    if isinstance(value, str):
        reading = _search(_READ.bare, [plain(value)], low, high)
        if isinstance(reading, str):
            return None
        return reading
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if low <= value <= high:
        return float(value)
    return None
