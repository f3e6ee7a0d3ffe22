"""Write a text of a chosen length and tone from a bank of phrases.

The number of words and VADER's score are what the caller chose, to the word and to a few hundredths, whatever
name and role the text has to hold: a name of four words leaves four words less for the rest, and a name that
VADER takes for a word is made up for. So a difference between groups is one that was planted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_fairness.endpoints.simulated.bank import Bank, Phrase
from pytest_fairness.endpoints.simulated.chance import Draws
from pytest_fairness.endpoints.simulated.tone import LADDER, needed_for, valence

_PRONOUNS = {
    "she": {"they": "she", "their": "her", "them": "her"},
    "he": {"they": "he", "their": "his", "them": "him"},
    "they": {"they": "they", "their": "their", "them": "them"},
}
_FORMS = {
    key: {**forms, **{word.capitalize(): form.capitalize() for word, form in forms.items()}}
    for key, forms in _PRONOUNS.items()
}
_VALUES = [value for _, value in LADDER]
_LOOSE = 0.8  # how far from an even share the first two qualities may stray
_NEAR = 0.15  # how far from the ordered strength is near enough …
_TRIES = 5  # … and how often to try for it
_SHORTEST = 6  # words of the shortest filler that every bank can give at any point


@dataclass(frozen=True, slots=True)
class Order:
    """What to write.

    ``length`` and ``tone`` are standard normal, so 0 is the bank's mean; ``words`` overrides it, ``most`` limits it.
    """

    name: str | None
    pronoun: str
    role: str | None
    length: float
    tone: float
    words: int | None = None
    most: int | None = None


def write(bank: Bank, order: Order, draws: Draws) -> str:
    """A text as *order* says, each phrase drawn by *draws*."""
    name = order.name or "the applicant"
    role = order.role or bank.default_role
    mean, sd = bank.words if order.words is None else (order.words, 0.1 * order.words)
    target = round(mean + sd * order.length)
    if order.most is not None:
        target = min(target, order.most)
    tone_mean, tone_sd = bank.tone
    strength = needed_for(min(max(tone_mean + tone_sd * order.tone, -0.2), 0.95))

    greeting = draws.pick(bank.ready_greetings) if bank.greetings else None
    opening = draws.pick(bank.ready_openings)
    assessment = draws.pick(bank.ready_assessments)
    closing = draws.pick(bank.ready_closings)
    signature = draws.pick(bank.ready_signatures) if bank.signatures else None
    qualities = _three(bank.qualities, draws)

    fixed = [phrase for phrase in (greeting, opening, assessment, closing, signature) if phrase is not None]
    name_words, role_words = len(name.split()), len(role.split())
    # Each of the three slots is one word in the count already: the adjective.
    words = sum(_length(phrase, name_words, role_words) for phrase in fixed)
    words += sum(len(quality.split()) for quality in qualities)
    fillers = _fillers(bank, target - words, draws)

    every = [*fixed, *fillers]
    given = sum(phrase.tone for phrase in every)
    given += valence(name) * sum(phrase.names for phrase in every)
    given += valence(role) * sum(phrase.roles for phrase in every)
    adjectives = _adjectives(strength - given, draws)

    slots = {"name": name, "role": role, **_FORMS[order.pronoun]}
    for number, (adjective, quality) in enumerate(zip(adjectives, qualities, strict=True), start=1):
        slots[str(number)] = f"{adjective} {quality}"
    body = [assessment, *fillers]
    if len(body) > 1:
        first = draws.index(len(body))
        body[0], body[first] = body[first], body[0]
    text = " ".join(_fill(phrase, slots) for phrase in (opening, *body, closing))
    if greeting is not None:
        text = f"{_fill(greeting, slots)}\n\n{text}"
    if signature is not None:
        text = f"{text}\n\n{_fill(signature, slots)}"
    return text


def _length(phrase: Phrase, name_words: int, role_words: int) -> int:
    return phrase.words + phrase.names * (name_words - 1) + phrase.roles * (role_words - 1)


def _fill(phrase: Phrase, slots: dict[str, str]) -> str:
    # Not str.format: a name is somebody else's text and may hold braces.
    text = phrase.text
    if "{" not in text:
        return text
    head, *pieces = text.split("{")
    filled = [head]
    for piece in pieces:
        slot, rest = piece.split("}", 1)
        value = slots[slot]
        if len(filled) == 1 and not head:
            value = value[:1].upper() + value[1:]
        filled += (value, rest)
    return "".join(filled)


def _three(options: Sequence[str], draws: Draws) -> list[str]:
    mixed = list(options)
    return [mixed.pop(draws.index(len(mixed))) for _ in range(3)]


def _fillers(bank: Bank, words: int, draws: Draws) -> list[Phrase]:
    """Sentences of exactly *words* words together; none where there is no room for one."""
    patterns = draws.shuffled(bank.ready_fillers)
    chosen: list[Phrase] = []
    while words >= _SHORTEST:
        if not patterns:
            patterns = draws.shuffled(bank.ready_fillers)
        exact = [pattern for pattern in patterns if words in pattern]
        # Two sentences may fit where one does: chance decides, so that short and long sentences mix.
        if exact and (words < 2 * _SHORTEST or draws.uniform() < 0.5):
            chosen.append(draws.pick(draws.pick(exact)[words]))
            return chosen
        pattern = patterns.pop()
        lengths = [n for n in pattern if words - n >= _SHORTEST]
        if not lengths:
            if exact:
                chosen.append(draws.pick(draws.pick(exact)[words]))
                return chosen
            continue
        length = draws.pick(lengths)
        chosen.append(draws.pick(pattern[length]))
        words -= length
    return chosen


def _adjectives(strength: float, draws: Draws) -> list[str]:
    """Three different adjectives whose valences add up to *strength* as nearly as may be."""
    best, least = _three_near(strength, draws)
    for _ in range(_TRIES - 1):
        if least <= _NEAR:
            break
        other, missed = _three_near(strength, draws)
        if missed < least:
            best, least = other, missed
    return [LADDER[i][0] for i in draws.shuffled(best)]


def _three_near(strength: float, draws: Draws) -> tuple[list[int], float]:
    """Places on the ladder, the first two by chance, and by how much their sum misses *strength*."""
    left = list(range(len(LADDER)))
    chosen: list[int] = []
    for remaining in (3, 2):
        share = strength / remaining
        near = [i for i in left if abs(_VALUES[i] - share) <= _LOOSE] or [_nearest(left, share)]
        pick = draws.pick(near)
        chosen.append(pick)
        left.remove(pick)
        strength -= _VALUES[pick]
    last = _nearest(left, strength)
    return [*chosen, last], abs(strength - _VALUES[last])


def _nearest(left: list[int], value: float) -> int:
    at = bisect_left(left, value, key=lambda i: _VALUES[i])
    return min(left[max(0, at - 1) : at + 1] or left[-1:], key=lambda i: abs(_VALUES[i] - value))
