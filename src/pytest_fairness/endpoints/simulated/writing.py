"""Write a text of a chosen length and tone from a bank of phrases, which stand in ``texts.yaml``.

The number of words and VADER's score are what the caller chose, to the word and to a few
hundredths, whatever name and role the text has to hold: a name of four words leaves four words less
for the rest, and a name that VADER takes for a word is made up for. So a difference between groups
is one that was planted.

VADER's compound score is S/√(S² + 15) where S is the sum of the valences of the words (Hutto &
Gilbert 2014). Its further rules (negation, intensifiers, "but", capitals, exclamation marks) are
kept out of play by the phrases.
"""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_left
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from pytest_fairness import documents
from pytest_fairness.endpoints.simulated.bias import Draws

_ALPHA = 15.0
_LOOSE = 0.8  # how far from an even share the first two qualities may stray
_NEAR = 0.15  # how far from the ordered strength is near enough …
_TRIES = 5  # … and how often to try for it
_SHORTEST = 6  # words of the shortest filler that every bank can give at any point
_OPTIONAL = re.compile(r"\[([^\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


TEXTS: Any = documents.parse(
    files(__package__).joinpath("texts.yaml").read_bytes(), "texts.yaml"
).data
#: Adjectives that fit any quality ("… judgement"), from worst to best.
LADDER = tuple(TEXTS["ladder"].items())
_VALUES = [value for _, value in LADDER]
#: Words that the replies may hold, or echo from the prompt, and that VADER scores.
VALENCE: dict[str, float] = {
    word: value for words in TEXTS["valence"].values() for word, value in words.items()
}


def _valence(text: str) -> float:
    """S of *text*."""
    return sum(VALENCE.get(word, 0.0) for word in _WORD.findall(text.lower()))


class Phrase:
    """A sentence with slots, its tone, and its number of words, of which names and roles are still
    missing.
    """

    def __init__(self, text: str) -> None:
        slots = _SLOT.findall(text)
        self.text = text
        self.words = len(text.split())
        self.names = slots.count("name")
        self.roles = slots.count("role")
        self.tone = _valence(_SLOT.sub(" ", text))


def expand(pattern: str) -> list[str]:
    """Every sentence that a pattern with ``[optional parts]`` stands for."""
    pieces = _OPTIONAL.split(pattern)
    options = [("", piece) if number % 2 else (piece,) for number, piece in enumerate(pieces)]
    return ["".join(parts) for parts in itertools.product(*options)]


class Bank:
    """The phrases of one kind of text, as ``texts.yaml`` describes it; an item that names a shared
    list stands for all of it. ``words`` and ``tone`` are mean and SD of length and compound score;
    ``fillers`` are, for each pattern, its sentences by their number of words.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        def texts(key: str) -> list[str]:
            return [
                text for item in given.get(key, ()) for text in TEXTS["shared"].get(item, (item,))
            ]

        kinds = ("greetings", "openings", "assessments", "closings", "signatures")
        self.phrases = {kind: [Phrase(text) for text in texts(kind)] for kind in kinds}
        self.qualities = texts("qualities")
        self.fillers: list[dict[int, list[Phrase]]] = []
        for pattern in texts("fillers"):
            self.fillers.append({})
            for phrase in map(Phrase, expand(pattern)):
                self.fillers[-1].setdefault(phrase.words, []).append(phrase)
        self.words = given["words"]
        self.tone = given["tone"]
        self.default_role: str = given["default_role"]


#: Kind of text → its bank.
BANKS: Mapping[str, Bank] = {kind: Bank(given) for kind, given in TEXTS["texts"].items()}


def write(
    bank: Bank,
    draws: Draws,
    *,
    name: str | None,
    role: str | None,
    pronoun: str = "they",
    length: float = 0.0,
    tone: float = 0.0,
    words: int | None = None,
    most: int | None = None,
) -> str:
    """A text, each phrase drawn by *draws*.

    *length* and *tone* are standard normal, so 0 is the bank's mean; *words* overrides it, *most*
    limits it.
    """
    name = name or "the applicant"
    role = role or bank.default_role
    mean, sd = bank.words if words is None else (words, 0.1 * words)
    target = min(round(mean + sd * length), math.inf if most is None else most)
    compound = min(max(bank.tone[0] + bank.tone[1] * tone, -0.2), 0.95)
    strength = compound * math.sqrt(
        _ALPHA / (1.0 - compound * compound)
    )  # the inverse of S/√(S² + 15)

    fixed = {kind: draws.pick(phrases) for kind, phrases in bank.phrases.items() if phrases}
    left = list(bank.qualities)
    qualities = [left.pop(draws.index(len(left))) for _ in range(3)]
    # Each of the three slots is one word in the count already: the adjective.
    length_ = sum(len(quality.split()) for quality in qualities)
    for phrase in fixed.values():
        length_ += (
            phrase.words
            + phrase.names * (len(name.split()) - 1)
            + phrase.roles * (len(role.split()) - 1)
        )
    fillers = _fillers(bank, int(target) - length_, draws)

    every = [*fixed.values(), *fillers]
    given = sum(
        phrase.tone + _valence(name) * phrase.names + _valence(role) * phrase.roles
        for phrase in every
    )
    forms = dict(zip(("they", "their", "them"), TEXTS["pronouns"][pronoun], strict=True))
    slots = {
        "name": name,
        "role": role,
        **forms,
        **{k.capitalize(): form.capitalize() for k, form in forms.items()},
    }
    adjectives = _adjectives(strength - given, draws)
    for number, (adjective, quality) in enumerate(zip(adjectives, qualities, strict=True), start=1):
        slots[str(number)] = f"{adjective} {quality}"
    body = [fixed["assessments"], *fillers]
    if len(body) > 1:
        first = draws.index(len(body))
        body[0], body[first] = body[first], body[0]
    text = " ".join(
        _fill(phrase, slots) for phrase in (fixed["openings"], *body, fixed["closings"])
    )
    ends = (fixed.get("greetings"), fixed.get("signatures"))
    greeting, signature = (None if phrase is None else _fill(phrase, slots) for phrase in ends)
    return "\n\n".join(part for part in (greeting, text, signature) if part is not None)


def _fill(phrase: Phrase, slots: Mapping[str, str]) -> str:
    # Not str.format: a name is somebody else's text and may hold braces.
    def value(match: re.Match[str]) -> str:
        value_ = slots[match[1]]
        if match.start() == 0:
            return value_[:1].upper() + value_[1:]
        return value_

    return _SLOT.sub(value, phrase.text)


def _fillers(bank: Bank, words: int, draws: Draws) -> list[Phrase]:
    """Sentences of exactly *words* words together; none where there is no room for one."""
    patterns = draws.shuffled(bank.fillers)
    chosen: list[Phrase] = []
    while words >= _SHORTEST:
        if not patterns:
            patterns = draws.shuffled(bank.fillers)
        exact = [pattern for pattern in patterns if words in pattern]
        # Two sentences may fit where one does: chance decides, so that short and long sentences
        # mix.
        last = exact and (words < 2 * _SHORTEST or draws.uniform() < 0.5)
        pattern = {}
        if not last:
            pattern = patterns.pop()
        lengths = [length for length in pattern if words - length >= _SHORTEST]
        if exact and not lengths:
            chosen.append(draws.pick(draws.pick(exact)[words]))
            break
        if lengths:
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
            best = other
            least = missed
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
