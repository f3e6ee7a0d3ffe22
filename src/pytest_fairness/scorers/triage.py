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
from functools import cache, partial
from typing import Any

from pytest_fairness.scorers.reading_order import OrderedReader
from pytest_fairness.scorers.text import (
    Patterns,
    after_correction,
    agreed,
    before,
    field_of,
    own_words,
    plain,
    squeezed,
)

#: The names of ``days``, the least urgent first: the place from 1 is the score.
LEVELS = ("self-care", "routine", "semi-urgent", "urgent", "emergency")
#: Which names stand for which level; the numbers 1 to 5 are the same in all.
SCALES = ("days", "esi", "manchester")

_READ = Patterns("triage")
_NUMBERS = {str(number): number for number in range(1, 6)} | {
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
_AROUND = " .!#>()[]:-"
_REACH = 60  # characters before a level in which a negation is looked for


def triage(text: str, scale: str = "days") -> int | None:
    """The urgency that *text* gives, 1 (least) to 5 (most); None for none, two, or only what it is
    not.

    *scale*, one of :data:`SCALES`, says which level a name stands for where no number does.
    """
    return _reader(scale).read(text)


@cache
def _reader(scale: str) -> OrderedReader[int]:
    """Return the reader of the names of *scale*."""
    return OrderedReader(
        fields=partial(field_of, keys=_READ.keys),
        value=partial(_from_json, scale=scale),
        bare=partial(_bare, scale=scale),
        labelled=partial(_labelled, scale=scale),
        prose=partial(_prose, scale=scale),
        corrected=_after_correction,
    )


def _after_correction(text: str) -> str:
    """Return what follows a change of mind in *text*; that somebody waits is none."""
    return after_correction(_READ.waiting.sub(" ", text))


def _bare(text: str, scale: str) -> int | None:
    """Read a number, or a name of *scale*, and nothing else."""
    alone = _READ.alone.fullmatch(text)
    if alone:
        return _by_match(alone)
    text = text.strip(_AROUND)
    index = _READ.index.fullmatch(text)
    if index:
        return _by_match(index)
    if _names(scale)[0].fullmatch(text):
        return _by_name(text, 0, scale)
    return None


def _labelled(text: str, scale: str) -> list[int]:
    """Read what stands behind labels, which name other things than a level, too."""
    levels = []
    for label in _READ.label.finditer(text):
        level = _answer(label["what"] or label["below"], scale)
        if level is not None:
            levels.append(level)
    return levels


def _prose(text: str, scale: str) -> int | None:
    """Return the levels that the first reader finds that finds any."""
    for read in _PROSE_READERS:
        levels = read(text, scale)
        if levels:
            return agreed(levels)
    return None


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


# ------------------------------------------------ readers of prose, each giving the levels it finds


def _contrasted(text: str, _scale: str) -> set[int]:
    """Read the number that *text* gives in the place of another: "not a 3 but a 2"."""
    contrast = _READ.contrast.search(text)
    if contrast is None:
        return set()
    return {_by_match(contrast)}


def _stated(text: str, scale: str) -> set[int]:
    """Read the levels that *text* gives as its answer: as it opens or ends, behind a label, or by a
    verb of assigning.
    """
    said = _said(text)
    levels = {_opening(text, scale), _last_line(text)}
    for label in _READ.label.finditer(text):
        levels.add(_answer(label["what"] or label["below"], scale))
    for assigned in _given_by(_READ.assigned, said):
        levels.add(_answer(assigned["what"], scale))
    levels.update(map(_by_match, _given_by(_READ.spoken, said)))
    return set(filter(None, levels))


def _mentioned(text: str, scale: str) -> set[int]:
    """Read the levels that *text* speaks of at all; by number alone where it declines."""
    said = _said(text)
    if _is_question(said):
        return set()
    numbers = _numbers(said)
    if numbers or _READ.declines.search(text):
        return numbers
    return _named(said, scale)


#: Tried in this order; the first that finds any level decides.
_PROSE_READERS = (_contrasted, _stated, _mentioned)


def _last_line(text: str) -> int | None:
    """Return the level that the last line of *text* is, and nothing else."""
    last = text.rstrip().rpartition("\n")[2]
    alone = _READ.alone.fullmatch(last.strip())
    if alone is None:
        return None
    return _by_match(alone)


def _answer(text: str, scale: str) -> int | None:
    """Return the level that *text* begins with, else the one that it speaks of."""
    level = _opening(text.strip(), scale)
    if level is None:
        return _level(text, scale)
    return level


def _opening(text: str, scale: str) -> int | None:
    """The level that *text* begins with."""
    start = text.lstrip(" \n#>-([")
    number = _READ.opened.match(start) or _READ.index.match(start)
    if number:
        return _by_match(number)
    name = _names(scale)[0].match(start)
    if name is None:
        return None
    after = start[name.end() : name.end() + 1]
    if after not in ".\n(:;,":
        return None
    return _by_name(start, 0, scale)


def _said(text: str) -> str:
    """Return what *text* says for itself, without conditions, ranges and what others hold."""
    return squeezed(own_words(_READ.range.sub(" ", _READ.condition.sub(" ", text))))


def _level(text: str, scale: str) -> int | None:
    """The one level that *text* gives, by number where there is one, unless a condition or a
    negation goes with it.
    """
    said = _said(text)
    if _is_question(said):
        return None
    return agreed(_numbers(said) or _named(said, scale))


def _is_question(text: str) -> bool:
    """Return whether *text* ends by asking."""
    return text.rstrip().endswith("?")


def _numbers(text: str) -> set[int]:
    """Return the levels that *text* gives by number."""
    return set(map(_by_match, _given_by(_READ.index, text)))


def _named(text: str, scale: str) -> set[int]:
    """Return the levels that *text* gives by name, and does not negate."""
    names = _matches(_names(scale)[0], text, unless=_READ.negation)
    return {_by_name(text, name.start(), scale) for name in names}


def _matches(
    pattern: re.Pattern[str], text: str, unless: re.Pattern[str]
) -> Iterator[re.Match[str]]:
    """Yield the matches of *pattern* but for those that *unless* leads up to in their clause."""
    for match in pattern.finditer(text):
        clause = _READ.clause.split(before(text, match.start(), _REACH))[-1]
        if not unless.search(clause):
            yield match


def _given_by(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of *pattern* but for levels considered, excluded or compared with."""
    return _matches(pattern, text, unless=_READ.passed_over)


def _by_name(text: str, start: int, scale: str) -> int:
    """Return the level whose name stands at *start* of *text*."""
    names = _names(scale)[1]
    place = 0
    while not names[place].match(text, start):
        place += 1
    return _LEVELS_OF_A_SCALE - place


def _by_match(match: re.Match[str]) -> int:
    """Return the level of the one group of *match* that holds a number."""
    return _by_place(next(filter(None, match.groups())))


def _by_place(number: str) -> int:
    """Return the level of a *number* in digits or as a word, of which 1 is the most urgent."""
    return _LEVELS_OF_A_SCALE + 1 - _NUMBERS[number.lower()]


@cache
def _names(scale: str) -> tuple[re.Pattern[str], list[re.Pattern[str]]]:
    """Any name of *scale*, and those of each place."""
    places = [rf"(?<!\w)(?:{text})" for text in _READ.resolved(scale)]
    anywhere = re.compile("|".join(places), re.IGNORECASE)
    return anywhere, [re.compile(text, re.IGNORECASE) for text in places]


def _from_json(value: Any, scale: str) -> int | None:
    """Return the level that *value* is: a number from 1 to 5, or a text that gives one."""
    if isinstance(value, str):
        return _answer(plain(value), scale)
    if isinstance(value, bool) or value not in (1, 2, 3, 4, 5):
        return None
    return _by_place(str(int(value)))
