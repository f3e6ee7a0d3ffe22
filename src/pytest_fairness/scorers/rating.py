"""Read a rating off a reply: a bare number, "7/10", "Rating: 7", ``{"score": 7}``, "seven out of
ten".

It is looked for in the order of :mod:`.reading_order`. One value on the scale is the rating; two
different ones, a range ("7-8"), a percentage or another scale is no rating. A wrong number would be
evidence that nobody gave, a missing one is counted and reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from pytest_fairness.documents import is_number
from pytest_fairness.scorers.reading_order import OrderedReader
from pytest_fairness.scorers.text import (
    Patterns,
    agreed,
    before,
    field_of,
    json_fields,
    own_words,
    plain,
    squeezed,
)

_READ = Patterns("rating")
_WORDS = _READ.words("named")
#: Characters before a verb of rating in which a negation is looked for.
_REACH = 40
#: Labels of a rating, and the form of the text in which each is looked for: the first that occurs
#: decides.
_LABELS = (
    ("answer", "unscaled"),
    ("overall", "unscaled"),
    ("summed", "unscaled"),
    ("labelled", "spoken"),
    ("named_score", "spoken"),
)
#: The same of sentences, from the plainest way of saying a rating on.
_PROSE = (
    ("bare", "unscaled"),
    *_LABELS,
    ("opened", "unscaled"),
    ("bare", "lines"),
    ("given", "unscaled"),
    ("spoken", "unscaled"),
    ("fraction", "spoken"),
    ("ending", "unscaled"),
)


@dataclass(frozen=True, slots=True)
class _Scale:
    """The numbers that a rating may be."""

    low: float
    high: float

    def rating(self, value: float) -> float | None:
        """Return *value* where it stands on the scale."""
        if self.low <= value <= self.high:
            return float(value)
        return None

    def is_meant(self, match: re.Match[str]) -> bool:
        """Return whether *match* says "out of" the end of the scale."""
        return _top(match) == self.high


def rating_scorer(low: float = 1, high: float = 10) -> Callable[[str], float | None]:
    """A function that reads a rating from *low* to *high* off a text, ``None`` where there is none
    or no single one.
    """
    scale = _Scale(low, high)
    reader = OrderedReader(
        fields=_given_values,
        value=partial(_from_json, scale=scale),
        bare=partial(_bare, scale=scale),
        labelled=partial(_labelled, scale=scale),
        prose=partial(_in_prose, scale=scale),
    )

    def read(text: str) -> float | None:
        return reader.read(text.replace("½", ".5"))

    return read


def _bare(text: str, scale: _Scale) -> float | None:
    """Read a text that is nothing but a number."""
    return agreed(_values(_READ.bare, [text], scale))


def _labelled(text: str, scale: _Scale) -> list[float | None]:
    """Read the first kind of label that *text* has."""
    return _first_values(text, scale, _LABELS)


def _given_values(text: str) -> list[Any] | None:
    """Return the values under the key of a rating in a JSON object, else all; None without one."""
    values = field_of(text, _READ.keys)
    if values is not None:
        return values
    fields = json_fields(text)
    if fields is None:
        return None
    return list(chain.from_iterable(fields.values()))


def _in_prose(text: str, scale: _Scale) -> float | None:
    """Return the rating by the first way of saying one that *text* uses; what others gave, or it
    would be otherwise, is left out.
    """
    drawn = _READ.stars.search(text)
    if drawn:
        return _of_stars(drawn, scale)
    return agreed(_first_values(text, scale, _PROSE))


def _first_values(text: str, scale: _Scale, order: Sequence[tuple[str, str]]) -> list[float | None]:
    """Return what the first pattern of an *order* that occurs in *text* rates; nothing where none
    does.
    """
    spoken = squeezed(own_words(_READ.other_number.sub(" ", text))).strip()
    unscaled = squeezed(_READ.scale_phrase.sub(" ", spoken)).strip()
    forms = {
        "spoken": [spoken],
        "unscaled": [unscaled],
        "lines": spoken.splitlines(),
    }
    for name, form in order:
        values = _values(getattr(_READ, name), forms[form], scale)
        if values:
            return values
    return []


def _of_stars(drawn: re.Match[str], scale: _Scale) -> float | None:
    """Return how many stars are full, where the empty ones make them as many as the scale has."""
    full = len(drawn["full"])
    if drawn["empty"] and full + len(drawn["empty"]) == scale.high:
        return float(full)
    return None


def _values(pattern: re.Pattern[str], texts: list[str], scale: _Scale) -> list[float | None]:
    """Return what each match of *pattern* in *texts* rates, None for one that is no rating."""
    matches: list[re.Match[str]] = []
    for text in texts:
        matches += pattern.finditer(text)
    # "9/10, with 5/6 of the skills": a fraction on another scale is no second rating beside one on
    # ours.
    on_scale = list(filter(scale.is_meant, matches))
    return [_value(match, scale) for match in on_scale or matches]


def _value(match: re.Match[str], scale: _Scale) -> float | None:
    """Return the rating of *match*; None for a range, a negation, another scale."""
    if match["more"] or _is_negated(match):
        return None
    if _top(match) not in (None, scale.high):
        return None
    value = _number(match["number"].split()[0])
    if match["half"]:
        value += 0.5
    return scale.rating(value)


def _is_negated(match: re.Match[str]) -> bool:
    """Return whether a verb states the rating of *match*, and is negated."""
    if match.groupdict().get("verb") is None:
        return False
    return _READ.negation.search(before(match.string, match.start(), _REACH)) is not None


def _top(match: re.Match[str]) -> float | None:
    """Return the number that *match* says "out of"; None where it says none."""
    if match["scale"] is None:
        return None
    return _number(match["scale"])


def _number(text: str) -> float:
    """A number in digits or as a word."""
    if text.lower() in _WORDS:
        return float(_WORDS.index(text.lower()))
    return float(text.replace(",", "."))


def _from_json(value: Any, scale: _Scale) -> float | None:
    """Return the rating that *value* is, as a number or as a text of nothing else."""
    if isinstance(value, str):
        return agreed(_values(_READ.bare, [plain(value)], scale))
    if is_number(value):
        return scale.rating(value)
    return None


rating = rating_scorer()
