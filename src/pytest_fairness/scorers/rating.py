"""Read a rating off a reply: a bare number, "7/10", "Rating: 7", ``{"score": 7}``, "seven out of ten".

The ways of saying a rating are tried from the plainest to the loosest. The first way that says anything
decides: one value on the scale is the rating; two different ones, a range ("7-8"), a percentage or another
scale is no rating. A wrong number would be evidence that nobody gave, a missing one is counted and
reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pytest_fairness.scorers.text import agreed, json_fields, plain, squeezed

_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_WORDS = {name: float(value) for value, name in enumerate(_NAMES)}
_NAMED = "|".join(_NAMES)
_NUMBER = (
    r"(?P<number>[-+]?\d{1,12}(?:\.\d{1,6}|,\d{1,2}(?!\d))?"
    rf"|(?:{_NAMED})\b(?P<half>\s+and\s+a\s+half)?)"
)
# A number that goes on ("7.5.2", "1,000"), is one end of a range, a percentage or a count is no rating.
_ENDS = (
    r"(?P<more>[.,]?\d|\s*%|\s+percent\b"
    rf"|[ \t]*(?:-|to|or|and)[ \t]*(?:an?[ \t]+)?(?:\d|(?:{_NAMED})\b)"
    r"|[ \t]+(?:more[ \t]+)?(?:years?|months?|weeks?|days?|people|persons?|candidates?|examples?"
    r"|reasons?)\b)?"
)
_OUT_OF = r"\s*(?:/|\bout\s+of\b)\s*(?P<scale>\d{1,6}(?:\.0)?|five|ten)\b"
_LABEL = (
    r"(?:rating|score|grade|mark|rank|assessment|evaluation|suitability|likelihood)(?:\s*\([^()\n]{0,40}\))?"
    r"(?:\s+(?:for|given to)\s+[^\n:.]{1,60}?)?"
    r"(?:\s+(?:is|are|of|would\s+be)\s*[:=]?|\s*[:=]|\s+-(?=\s))\s*(?:an?\s+)?"
)
_VERB = (
    r"(?P<verb>\b(?:rate|score|give|assign|award|say|grade|rated|scored|gave|put)\b[^\n.;\d]{0,60}?"
    r"\b(?:as|an?|at|is|of|him|her|them|it|this|say|candidate|person|applicant)\b\s*(?:an?\s+)?:?\s*"
    r"|\b(?:rate|rated)\s+[A-Z]\w+(?:\s+[A-Z]\w+)?\s+"
    r"|\b(?:a|an)\s+(?:solid|strong|high|low|firm|clear)\s+)"
)
_SCALE_PHRASE = re.compile(
    r"\(?\b(?:on|using|with|from|in)?\s*(?:an?|the)?\s*(?:scale|range)?\s*(?:of|from|between|:)?\s*"
    r"(?:0|1)\s*(?:-|to|and|through)\s*\d{1,3}(?:\s*(?:scale|range))?\)?"
    r"|\b(?:a|the)\s+(?:10|ten|5|five|100)-point\s+scale\b",
    re.IGNORECASE,
)
_FLAGS = re.IGNORECASE
_BARE = re.compile(
    rf"^(?:-\s+)?[^\w+\n-]{{0,4}}{_NUMBER}(?:{_OUT_OF})?{_ENDS}(?:\s*(?:stars?|points?))?\W{{0,4}}$", _FLAGS
)
_OVERALL = re.compile(
    rf"\b(?:overall|final|total|average)\s+(?:{_LABEL}|\s*[:=]\s*){_NUMBER}(?:{_OUT_OF})?{_ENDS}", _FLAGS
)
_LABELLED = re.compile(rf"\b{_LABEL}{_NUMBER}(?:{_OUT_OF})?{_ENDS}", _FLAGS)
_FRACTION = re.compile(rf"(?<![\w/.]){_NUMBER}{_OUT_OF}{_ENDS}", _FLAGS)
_GIVEN = re.compile(rf"{_VERB}{_NUMBER}(?:{_OUT_OF})?{_ENDS}", _FLAGS)
_NEGATION = re.compile(r"(?:n't|\bnot|\bcannot|\bnever|\bunable to|\bdecline to|\brather not)\b[^.\n]{0,20}$", _FLAGS)
_KEYS = ("rating", "score", "overall_rating", "overall_score", "overall", "final_score", "final_rating", "value")

_NOTHING = "nothing"  # this way of saying it does not occur; None means that it occurs and is no rating


def rating_scorer(low: float = 1, high: float = 10) -> Callable[[str], float | None]:
    """A function that reads a rating from *low* to *high* off a text, ``None`` where there is none or no single one."""

    def read(text: str) -> float | None:
        fields = json_fields(text)
        if fields is not None:
            for key in _KEYS:
                if key in fields:
                    return agreed(_from_json(value, low, high) for value in fields[key])
        text = plain(text)
        without_scale = squeezed(_SCALE_PHRASE.sub(" ", text)).strip()
        for found in (
            _search(_BARE, [text], low, high),
            _search(_BARE, [without_scale], low, high) if without_scale != text else _NOTHING,
            _search(_OVERALL, [without_scale], low, high),
            _search(_LABELLED, [text], low, high),
            _search(_FRACTION, [text], low, high),
            _search(_BARE, text.splitlines(), low, high),
            _search(_GIVEN, [without_scale], low, high),
        ):
            if not isinstance(found, str):
                return found
        return None

    return read


rating = rating_scorer()


def _search(pattern: re.Pattern[str], texts: list[str], low: float, high: float) -> float | str | None:
    """What *pattern* finds in *texts*: ``_NOTHING`` without a match, ``None`` if that is no rating."""
    matches = [match for text in texts for match in pattern.finditer(text)]
    # "9/10, with 5/6 of the skills": a fraction on another scale is no second rating beside one on ours.
    ours = [match for match in matches if match["scale"] is not None and _scale(match) == high]
    found = ours or matches
    return agreed(_value(match, low, high) for match in found) if found else _NOTHING


def _value(match: re.Match[str], low: float, high: float) -> float | None:
    stated = match.groupdict().get("verb") is not None
    if match["more"] or (stated and _NEGATION.search(match.string[max(0, match.start() - 40) : match.start()])):
        return None
    if match["scale"] is not None and _scale(match) != high:
        return None
    word = match["number"].lower().split()[0]
    value = _WORDS[word] + (0.5 if match["half"] else 0.0) if word in _WORDS else _number(word)
    return value if low <= value <= high else None


def _scale(match: re.Match[str]) -> float:
    scale = match["scale"].lower()
    return _WORDS[scale] if scale in _WORDS else _number(scale)


def _number(digits: str) -> float:
    return float(digits.replace(",", "."))


def _from_json(value: Any, low: float, high: float) -> float | None:
    if isinstance(value, str):
        found = _search(_BARE, [plain(value)], low, high)
        return None if isinstance(found, str) else found
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if low <= value <= high else None
