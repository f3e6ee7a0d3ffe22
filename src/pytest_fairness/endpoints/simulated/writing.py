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
from collections import ChainMap
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
VALENCE: dict[str, float] = dict(ChainMap(*reversed(TEXTS["valence"].values())))


def valence(text: str) -> float:
    """S of *text*."""
    return sum(VALENCE.get(word, 0.0) for word in _WORD.findall(text.lower()))


def compound(strength: float) -> float:
    """Return VADER's compound score, −1 to 1, of a text whose S is *strength*."""
    return strength / math.sqrt(strength**2 + _ALPHA)


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
        self.tone = valence(_SLOT.sub(" ", text))

    def length(self, name: str, role: str) -> int:
        """Return the number of words with *name* and *role* in their slots."""
        extra = self.names * (len(name.split()) - 1) + self.roles * (len(role.split()) - 1)
        return self.words + extra

    def strength(self, name: float, role: float) -> float:
        """Return S of the sentence; *name* and *role* are S of what is put into its slots."""
        return self.tone + name * self.names + role * self.roles


def expand(pattern: str) -> list[str]:
    """Every sentence that a pattern with ``[optional parts]`` stands for."""
    pieces = _OPTIONAL.split(pattern)
    options: list[tuple[str, ...]] = [(piece,) for piece in pieces]
    options[1::2] = [("", piece) for piece in pieces[1::2]]
    return list(map("".join, itertools.product(*options)))


class Bank:
    """The phrases of one kind of text, as ``texts.yaml`` describes it; an item that names a shared
    list stands for all of it. ``words`` and ``tone`` are mean and SD of length and compound score;
    ``fillers`` are, for each pattern, its sentences by their number of words.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        kinds = ("greetings", "openings", "assessments", "closings", "signatures")
        self.phrases = {kind: list(map(Phrase, _texts(given, kind))) for kind in kinds}
        self.qualities = _texts(given, "qualities")
        self.fillers: list[dict[int, list[Phrase]]] = []
        for pattern in _texts(given, "fillers"):
            by_length: dict[int, list[Phrase]] = {}
            for phrase in map(Phrase, expand(pattern)):
                by_length.setdefault(phrase.words, []).append(phrase)
            self.fillers.append(by_length)
        self.words: tuple[float, float] = given["words"]
        self.tone: tuple[float, float] = given["tone"]
        self.default_role: str = given["default_role"]


def _texts(given: Mapping[str, Any], key: str) -> list[str]:
    """Return the texts of a bank's *key*, with those of shared lists in place of their names."""
    texts: list[str] = []
    for item in given.get(key, ()):
        texts += TEXTS["shared"].get(item, (item,))
    return texts


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
    wanted = _words_wanted(bank, length, words=words, most=most)
    phrases = {kind: draws.pick(kind_) for kind, kind_ in bank.phrases.items() if kind_}
    left = list(bank.qualities)
    qualities = [left.pop(draws.index(len(left))) for _ in range(3)]
    # Each of the three slots is one word in the count already: the adjective.
    fixed_words = len(" ".join(qualities).split())
    for phrase in phrases.values():
        fixed_words += phrase.length(name, role)
    fillers = _fillers(bank, wanted - fixed_words, draws)

    tones = valence(name), valence(role)
    given = sum(phrase.strength(*tones) for phrase in (*phrases.values(), *fillers))
    slots = _slots(name, role, pronoun)
    for number, adjective in enumerate(_adjectives(_strength(bank, tone) - given, draws)):
        slots[str(number + 1)] = f"{adjective} {qualities[number]}"
    body = [phrases["assessments"], *fillers]
    if len(body) > 1:
        first = draws.index(len(body))
        body[0], body[first] = body[first], body[0]
    sentences = [_fill(phrase, slots) for phrase in (phrases["openings"], *body)]
    paragraphs = [" ".join([*sentences, _fill(phrases["closings"], slots)])]
    if "greetings" in phrases:
        paragraphs.insert(0, _fill(phrases["greetings"], slots))
    if "signatures" in phrases:
        paragraphs.append(_fill(phrases["signatures"], slots))
    return "\n\n".join(paragraphs)


def _words_wanted(bank: Bank, length: float, *, words: int | None, most: int | None) -> int:
    """Return how many words a text is to have; *length* is standard normal."""
    mean, sd = bank.words
    if words is not None:
        mean = words
        sd = 0.1 * words
    wanted = round(mean + sd * length)
    if most is None:
        return wanted
    return min(wanted, most)


def _strength(bank: Bank, tone: float) -> float:
    """Return S of a text whose compound score is that of *tone*, which is standard normal."""
    mean, sd = bank.tone
    score = min(max(mean + sd * tone, -0.2), 0.95)
    return score * math.sqrt(_ALPHA / (1.0 - score * score))  # the inverse of compound


def _slots(name: str, role: str, pronoun: str) -> dict[str, str]:
    """Return what stands for the person: the pronouns also as a sentence begins with them."""
    slots = {"name": name, "role": role}
    for slot, form in zip(("they", "their", "them"), TEXTS["pronouns"][pronoun], strict=True):
        slots[slot] = form
        slots[slot.capitalize()] = form.capitalize()
    return slots


def _fill(phrase: Phrase, slots: Mapping[str, str]) -> str:
    """Return the sentence of *phrase* with what stands for its *slots*."""

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
    fillers: list[Phrase] = []
    while words >= _SHORTEST:
        patterns = patterns or draws.shuffled(bank.fillers)
        exact = [pattern for pattern in patterns if words in pattern]
        lengths: list[int] = []
        if not exact or _takes_two(words, draws):
            pattern = patterns.pop()
            lengths = [length for length in pattern if words - length >= _SHORTEST]
        if lengths:
            length = draws.pick(lengths)
            fillers.append(draws.pick(pattern[length]))
            words -= length
        elif exact:
            fillers.append(draws.pick(draws.pick(exact)[words]))
            break
    return fillers


def _takes_two(words: int, draws: Draws) -> bool:
    """Return whether two sentences are to stand where one would fit, so that short and long mix."""
    return words >= 2 * _SHORTEST and draws.uniform() >= 0.5


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
    return [LADDER[place][0] for place in draws.shuffled(best)]


def _three_near(strength: float, draws: Draws) -> tuple[list[int], float]:
    """Places on the ladder, two by chance, and by how much their sum misses *strength*."""
    left = list(range(len(LADDER)))
    chosen: list[int] = []
    for remaining in (3, 2):
        share = strength / remaining
        near = [place for place in left if abs(_VALUES[place] - share) <= _LOOSE]
        pick = draws.pick(near or [_nearest(left, share)])
        chosen.append(pick)
        left.remove(pick)
        strength -= _VALUES[pick]
    last = _nearest(left, strength)
    return [*chosen, last], abs(strength - _VALUES[last])


def _nearest(left: list[int], value: float) -> int:
    """Return which of the places *left* on the ladder has the valence next to *value*."""
    first = bisect_left(left, value, key=_VALUES.__getitem__)
    around = left[max(0, first - 1) : first + 1] or left[-1:]
    return min(around, key=lambda place: abs(_VALUES[place] - value))
