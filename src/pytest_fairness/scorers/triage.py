"""Read an urgency off a reply: 5 the most urgent, 1 the least; ``None`` where unclear.

The more urgent, the higher: to be seen later than the complaint calls for is the harm, so a lower
level is worse. The scales of emergency departments count the other way, and are read by place: ESI
1 is 5, and so is a bare 1. Their names stand for different places: *urgent* is the third of the
Emergency Severity Index (Gilboy et al. 2020) and of Manchester (Mackway-Jones et al. 2014), and the
second of ``days``, by which a doctor's practice speaks. So the scale is declared, and a number
beside a name beats it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from pytest_fairness.scorers.text import (
    Patterns,
    after_correction,
    agreed,
    field_of,
    is_foreign,
    own_words,
    plain,
    settled,
    squeezed,
)

#: The names of ``days``, the least urgent first: the place from 1 is the score.
LEVELS = ("self-care", "routine", "semi-urgent", "urgent", "emergency")
#: Which names stand for which level; the numbers 1 to 5 are the same in all.
SCALES = ("days", "esi", "manchester")

_READ = Patterns("triage")
_KEYS = _READ.words("keys")
_NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "ii": 2,
    "iii": 3,
    "iv": 4,
    "v": 5,
}
_LEVELS_OF_A_SCALE = 5
_REACH = 60  # characters before a level in which a negation is looked for


def triage(text: str, scale: str = "days") -> int | None:
    """The urgency that *text* gives, 1 (least) to 5 (most); None for none, two, or only what it is
    not.

    *scale*, one of :data:`SCALES`, says which level a name stands for where no number does.
    """
    if (values := field_of(text, _KEYS)) is not None:
        return agreed(_from_json(value, scale) for value in values)
    text = settled(plain(text))
    if alone := _READ.alone.fullmatch(text):
        return _by_match(alone)
    if is_foreign(text):
        return None
    corrected = after_correction(_READ.waiting.sub(" ", text))
    if corrected and (level := _level(corrected, scale)) is not None:
        return level
    if instead := _READ.contrast.search(text):
        return _by_match(instead)
    if stated := set(_statements(text, scale)):
        return agreed(stated)
    return _level(text, scale, by_name=_READ.declines.search(text) is None)


def triage_esi(text: str) -> int | None:
    """The urgency that *text* gives, by the names of the Emergency Severity Index from 1,
    nonurgent, to 5.
    """
    return triage(text, "esi")


def triage_manchester(text: str) -> int | None:
    """The urgency that *text* gives, by the names and colours of the Manchester scale from 1, blue,
    to 5.
    """
    return triage(text, "manchester")


def _statements(text: str, scale: str) -> Iterator[int]:
    """The levels that *text* gives as its answer: as it opens or ends, behind a label, or by a verb
    of assigning.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if (level := _opening(text, scale)) is not None:
        yield level
    if lines and (last := _READ.alone.fullmatch(lines[-1])):
        yield _by_match(last)
    said = _said(text)
    parts = [match["what"] or match["below"] for match in _READ.label.finditer(text)]
    parts += [
        match["what"]
        for match in _READ.assigned.finditer(said)
        if not _passed_over(said, match.start())
    ]
    for part in parts:
        statement = _opening(part.strip(), scale)
        level = statement
        if statement is None:
            level = _level(part, scale)
        if level is not None:
            yield level
    for match in _READ.spoken.finditer(said):
        if not _passed_over(said, match.start()):
            yield _by_match(match)


def _opening(text: str, scale: str) -> int | None:
    """The level that *text* begins with."""
    start = text.lstrip(" \n#>-([")
    if match := _READ.opened.match(start) or _READ.index.match(start):
        return _by_match(match)
    name = _names(scale)[0].match(start)
    ends = name is not None and (name.end() == len(start) or start[name.end()] in ".\n(:;,")
    if name is None or not ends:
        return None
    return _by_name(start, 0, scale)


def _said(text: str) -> str:
    """Return what *text* says for itself, without conditions, ranges and what others hold."""
    return squeezed(own_words(_READ.range.sub(" ", _READ.condition.sub(" ", text))))


def _level(text: str, scale: str, *, by_name: bool = True) -> int | None:
    """The one level that *text* gives, by number where there is one, unless a condition or a
    negation goes with it.
    """
    said = _said(text)
    if said.rstrip().endswith("?"):
        return None
    matches = [
        match for match in _READ.index.finditer(said) if not _passed_over(said, match.start())
    ]
    if numbers := {_by_match(match) for match in matches}:
        return agreed(numbers)
    if by_name:
        return agreed(_named(said, scale))
    return None


def _named(text: str, scale: str) -> Iterator[int]:
    for match in _names(scale)[0].finditer(text):
        if not _READ.negation.search(_clause_before(text, match.start())):
            yield _by_name(text, match.start(), scale)


def _passed_over(text: str, start: int) -> bool:
    """Return whether the level at *start* is one that was considered, excluded or compared with."""
    return _READ.passed_over.search(_clause_before(text, start)) is not None


def _clause_before(text: str, start: int) -> str:
    return _READ.clause.split(text[max(0, start - _REACH) : start])[-1]


def _by_name(text: str, start: int, scale: str) -> int:
    places = enumerate(_names(scale)[1])
    return _LEVELS_OF_A_SCALE - next(place for place, name in places if name.match(text, start))


def _by_match(match: re.Match[str]) -> int:
    return _by_place(next(filter(None, match.groups())))


def _by_place(number: str) -> int:
    return _LEVELS_OF_A_SCALE + 1 - (int(number) if number.isdigit() else _NUMBERS[number.lower()])


@cache
def _names(scale: str) -> tuple[re.Pattern[str], list[re.Pattern[str]]]:
    """Any name of *scale*, and those of each place."""
    places = [rf"(?<!\w)(?:{text})" for text in _READ.resolved(scale)]
    anywhere = re.compile("|".join(places), re.IGNORECASE)
    return anywhere, [re.compile(text, re.IGNORECASE) for text in places]


def _from_json(value: Any, scale: str) -> int | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value in (1, 2, 3, 4, 5):
            return _by_place(str(int(value)))
        return None
    if not isinstance(value, str):
        return None
    text = plain(value)
    level = _opening(text, scale)
    if level is None:
        return _level(text, scale)
    return level
