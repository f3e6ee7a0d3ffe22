"""Write a text of a chosen length and tone from a bank of phrases, which stand in ``texts.yaml``.

The number of words and VADER's score are what the caller chose, to the word and to a few hundredths, whatever
name and role the text has to hold: a name of four words leaves four words less for the rest, and a name that
VADER takes for a word is made up for. So a difference between groups is one that was planted.

VADER's compound score is S/√(S² + 15) where S is the sum of the valences of the words (Hutto & Gilbert 2014). Its
further rules (negation, intensifiers, "but", capitals, exclamation marks) are kept out of play by the phrases.
"""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from msgspec import Struct

from pytest_fairness import documents
from pytest_fairness.endpoints.simulated.bias import Draws

_ALPHA = 15.0
_LOOSE = 0.8  # how far from an even share the first two qualities may stray
_NEAR = 0.15  # how far from the ordered strength is near enough …
_TRIES = 5  # … and how often to try for it
_PHRASES = frozenset(("greetings", "openings", "assessments", "closings", "signatures"))
_SHORTEST = 6  # words of the shortest filler that every bank can give at any point
_OPTIONAL = re.compile(r"\[([^\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_PRONOUNS = {"she": ("she", "her", "her"), "he": ("he", "his", "him"), "they": ("they", "their", "them")}
_FORMS = {
    pronoun: {
        slot: form
        for name, own in zip(("they", "their", "them"), forms, strict=True)
        for slot, form in ((name, own), (name.capitalize(), own.capitalize()))
    }
    for pronoun, forms in _PRONOUNS.items()
}


class _Texts(Struct, frozen=True, forbid_unknown_fields=True):
    """``texts.yaml``."""

    shared: dict[str, tuple[str, ...]]
    answers: dict[str, tuple[str, ...]]
    texts: dict[str, dict[str, Any]]
    ladder: dict[str, float]
    valence: dict[str, dict[str, float]]


_DATA = documents.parse(files(__package__).joinpath("texts.yaml").read_bytes(), "texts.yaml").convert(_Texts)
#: Adjectives that fit any quality ("… judgement"), from worst to best.
LADDER = tuple(_DATA.ladder.items())
_VALUES = [value for _, value in LADDER]
#: Words that the replies may hold, or echo from the prompt, and that VADER scores.
VALENCE = {word: value for words in _DATA.valence.values() for word, value in words.items()}
#: Short answers that need no bank.
PHRASES: Mapping[str, Sequence[str]] = _DATA.answers


def valence(text: str) -> float:
    """S of *text*: the sum of the valences of those of its words that are known here."""
    return sum(VALENCE.get(word, 0.0) for word in _WORD.findall(text.lower()))


def needed_for(compound: float) -> float:
    """The S that gives a compound score between −1 and 1, both excluded: the inverse of S/√(S² + 15)."""
    return compound * math.sqrt(_ALPHA / (1.0 - compound * compound))


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence with slots, its tone, and its number of words, of which names and roles are still missing."""

    text: str
    words: int
    names: int
    roles: int
    tone: float

    @classmethod
    def of(cls, text: str) -> Phrase:
        slots = _SLOT.findall(text)
        return cls(text, len(text.split()), slots.count("name"), slots.count("role"), valence(_SLOT.sub(" ", text)))

    def length(self, name_words: int, role_words: int) -> int:
        """The number of words with the name and the role in it."""
        return self.words + self.names * (name_words - 1) + self.roles * (role_words - 1)


def expand(pattern: str) -> list[str]:
    """Every sentence that a pattern with ``[optional parts]`` stands for."""
    pieces = _OPTIONAL.split(pattern)
    options = [("", piece) if number % 2 else (piece,) for number, piece in enumerate(pieces)]
    return ["".join(parts) for parts in itertools.product(*options)]


@dataclass(frozen=True, kw_only=True)
class Bank:
    """The phrases of one kind of text. ``words`` and ``tone`` are mean and SD of length and compound score."""

    openings: Sequence[Phrase]
    assessments: Sequence[Phrase]
    qualities: Sequence[str]
    #: For each pattern, its sentences by their number of words.
    fillers: Sequence[Mapping[int, Sequence[Phrase]]]
    closings: Sequence[Phrase]
    greetings: Sequence[Phrase] = ()
    signatures: Sequence[Phrase] = ()
    words: Sequence[float] = field(default=(90.0, 14.0))
    tone: Sequence[float] = field(default=(0.62, 0.13))
    default_role: str = "advertised"

    @classmethod
    def of(cls, given: Mapping[str, Any], shared: Mapping[str, Sequence[str]]) -> Bank:
        """The bank that ``texts.yaml`` describes; an item that names a list in *shared* stands for all of it."""
        lists = {
            key: [text for item in items for text in shared.get(item, (item,))]
            for key, items in given.items()
            if isinstance(items, list) and key not in ("words", "tone")
        }
        ready: dict[str, Any] = {
            key: [Phrase.of(text) for text in texts]
            for key, texts in lists.items()
            if key not in ("qualities", "fillers")
        }
        fillers: list[dict[int, list[Phrase]]] = []
        for pattern in lists["fillers"]:
            fillers.append({})
            for phrase in map(Phrase.of, expand(pattern)):
                fillers[-1].setdefault(phrase.words, []).append(phrase)
        return cls(**{**given, **lists, **ready, "fillers": fillers})


#: Kind of text → its bank.
BANKS: Mapping[str, Bank] = {kind: Bank.of(given, _DATA.shared) for kind, given in _DATA.texts.items()}


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

    greeting = draws.pick(bank.greetings) if bank.greetings else None
    opening, assessment, closing = (draws.pick(of) for of in (bank.openings, bank.assessments, bank.closings))
    signature = draws.pick(bank.signatures) if bank.signatures else None
    left = list(bank.qualities)
    qualities = [left.pop(draws.index(len(left))) for _ in range(3)]

    fixed = [phrase for phrase in (greeting, opening, assessment, closing, signature) if phrase is not None]
    name_words, role_words = len(name.split()), len(role.split())
    # Each of the three slots is one word in the count already: the adjective.
    words = sum(phrase.length(name_words, role_words) for phrase in fixed)
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


def _fill(phrase: Phrase, slots: Mapping[str, str]) -> str:
    # Not str.format: a name is somebody else's text and may hold braces.
    def value(match: re.Match[str]) -> str:
        found = slots[match[1]]
        return found[:1].upper() + found[1:] if match.start() == 0 else found

    return _SLOT.sub(value, phrase.text)


def _fillers(bank: Bank, words: int, draws: Draws) -> list[Phrase]:
    """Sentences of exactly *words* words together; none where there is no room for one."""
    patterns = draws.shuffled(bank.fillers)
    chosen: list[Phrase] = []
    while words >= _SHORTEST:
        if not patterns:
            patterns = draws.shuffled(bank.fillers)
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
