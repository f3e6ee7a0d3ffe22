"""Sentiment: the compound score of VADER (Hutto & Gilbert 2014), from −1 to 1, several times faster.

VADER's reference code lowers the whole word list again for every word and every check, and walks the text
one character at a time for emoji. Here the lowered list is made once and only the words that the lexicon
knows are visited. Lexicon, constants and the order of every floating-point operation are VADER's own, so
that the scores are equal to the last digit; the tests compare them on a large varied sample. Of a text
of over 200,000 characters the beginning is read.
"""

from __future__ import annotations

import heapq
import math
import string
import warnings
from functools import cache
from typing import NamedTuple

# A reply longer than this is no prose. Emoji count as the words that stand for them: a megabyte of them is 14.
LONGEST = 200_000


class _Vader(NamedTuple):
    """VADER's tables, and the sets derived from them once."""

    lexicon: dict[str, float]
    emoji: dict[str, str]
    boosters: dict[str, float]
    special: dict[str, float]
    negations: frozenset[str]
    capitals: float
    negation: float


@cache
def _vader() -> _Vader:
    """VADER's own analyser and constants, read once a process (8 ms) and only when sentiment is asked for."""
    with warnings.catch_warnings():
        # It reads its lexicon through codecs.open, deprecated since Python 3.14: no business of the user's
        # -W error.
        warnings.simplefilter("ignore", DeprecationWarning)
        from vaderSentiment import vaderSentiment as source  # noqa: N813 - the name of its module

        analyser = source.SentimentIntensityAnalyzer()
    return _Vader(
        lexicon=analyser.lexicon,
        emoji={sign: words for sign, words in analyser.emojis.items() if len(sign) == 1},
        boosters=source.BOOSTER_DICT,
        special=source.SPECIAL_CASES,
        negations=frozenset(source.NEGATE),
        capitals=source.C_INCR,
        negation=source.N_SCALAR,
    )


def sentiment(text: str) -> float:
    """VADER's compound score of *text*: −1 most negative, 1 most positive, to 4 places as VADER gives it."""
    vader = _vader()
    text = _beginning(_name_emoji(_beginning(text), vader.emoji)).strip()
    words = [_strip(token) for token in text.split()]
    lowered = [word.lower() for word in words]
    some_capitals = 0 < sum(map(str.isupper, words)) < len(words)
    valences: dict[int, float] = {}
    for i, word in enumerate(lowered):
        if word not in vader.lexicon or word in vader.boosters:
            continue
        if word == "kind" and lowered[i + 1 : i + 2] == ["of"]:
            continue
        valences[i] = _valence(vader, words, lowered, i, some_capitals)
    if "but" in lowered:
        _weigh_around_but(valences, lowered.index("but"))
    return _compound(float(sum(valences.values())), text)


def _beginning(text: str) -> str:
    """As much of *text* as is read, up to the end of a word."""
    if len(text) <= LONGEST:
        return text
    text = text[:LONGEST]
    return text.rpartition(" ")[0] or text


def _name_emoji(text: str, emoji: dict[str, str]) -> str:
    """*text* with each emoji replaced by its name, set apart by a space on the left only, as VADER does."""
    if text.isascii() or emoji.keys().isdisjoint(text):
        return text
    parts: list[str] = []
    after_space = True
    for character in text:
        name = emoji.get(character)
        if name is None:
            parts.append(character)
            after_space = character == " "
        else:
            parts.append(name if after_space else " " + name)
            after_space = False
    return "".join(parts)


def _strip(token: str) -> str:
    """*token* without punctuation around it, or whole where two characters or fewer would be left: ``:)``."""
    stripped = token.strip(string.punctuation)
    return token if len(stripped) <= 2 else stripped


def _valence(vader: _Vader, words: list[str], lowered: list[str], i: int, some_capitals: bool) -> float:
    """The valence of the lexicon word at *i*, given up to three words before it."""
    lexicon = vader.lexicon
    word = lowered[i]
    valence = lexicon[word]
    if word == "no" and i != len(lowered) - 1 and lowered[i + 1] in lexicon:
        valence = 0.0  # it negates the next word and says nothing itself
    if (
        (i > 0 and lowered[i - 1] == "no")
        or (i > 1 and lowered[i - 2] == "no")
        or (i > 2 and lowered[i - 3] == "no" and lowered[i - 1] in ("or", "nor"))
    ):
        valence = lexicon[word] * vader.negation
    if some_capitals and words[i].isupper():
        valence += vader.capitals if valence > 0 else -vader.capitals
    for distance in range(1, min(i, 3) + 1):
        if lowered[i - distance] in lexicon:
            continue
        scalar = _boost(vader, words[i - distance], lowered[i - distance], valence, some_capitals)
        if distance == 2 and scalar != 0:
            scalar *= 0.95
        elif distance == 3 and scalar != 0:
            scalar *= 0.9
        valence = valence + scalar
        valence = _negate(vader, valence, lowered, i, distance)
        if distance == 3:
            valence = _idioms(vader, valence, lowered, i)
    if i > 0 and lowered[i - 1] == "least" and "least" not in lexicon:
        negates = i == 1 or lowered[i - 2] not in ("at", "very")
        valence = valence * vader.negation if negates else valence
    return valence


def _boost(vader: _Vader, word: str, lowered: str, valence: float, some_capitals: bool) -> float:
    """What a degree word ("very", "slightly") before a lexicon word adds to its *valence*."""
    scalar = vader.boosters.get(lowered)
    if scalar is None:
        return 0.0
    if valence < 0:
        scalar *= -1
    if some_capitals and word.isupper():
        scalar += vader.capitals if valence > 0 else -vader.capitals
    return scalar


def _negate(vader: _Vader, valence: float, lowered: list[str], i: int, distance: int) -> float:
    """*valence* after a negation *distance* words before *i*."""
    before = lowered[i - distance]
    if distance == 2:
        if before == "never" and lowered[i - 1] in ("so", "this"):
            return valence * 1.25
        if before == "without" and lowered[i - 1] == "doubt":
            return valence
    elif distance == 3:
        # "so" or "this" right before the word counts without any "never": VADER's precedence of and over or.
        if (before == "never" and lowered[i - 2] in ("so", "this")) or lowered[i - 1] in ("so", "this"):
            return valence * 1.25
        if before == "without" and "doubt" in (lowered[i - 2], lowered[i - 1]):
            return valence
    return valence * vader.negation if before in vader.negations or "n't" in before else valence


def _idioms(vader: _Vader, valence: float, lowered: list[str], i: int) -> float:
    """*valence* replaced where the words around *i* make an idiom ("to die for"), then degrees added."""
    three, two, one, zero = lowered[i - 3 : i + 1]
    special = vader.special
    before_last, before_all, before_first = f"{two} {one}", f"{three} {two} {one}", f"{three} {two}"
    for phrase in (f"{one} {zero}", f"{two} {one} {zero}", before_last, before_all, before_first):
        if phrase in special:
            valence = special[phrase]
            break
    if i + 1 < len(lowered):
        valence = special.get(f"{zero} {lowered[i + 1]}", valence)
    if i + 2 < len(lowered):
        valence = special.get(f"{zero} {lowered[i + 1]} {lowered[i + 2]}", valence)
    for phrase in (before_all, before_first, before_last):
        valence += vader.boosters.get(phrase, 0.0)
    return valence


def _weigh_around_but(valences: dict[int, float], but: int) -> None:
    """Halve what stands before the first "but" and raise by half what follows it, in place.

    VADER looks each value up by equality while it changes the list, so the *first* equal value is the one
    that changes. Scores can only be equal to its own if that is kept; a heap of positions a value keeps it
    fast.
    """
    positions: dict[float, list[int]] = {}
    for i, valence in valences.items():
        positions.setdefault(valence, []).append(i)
    for i in list(valences):
        valence = valences[i]  # as it is now: an earlier step may have changed it
        if valence == 0:
            continue
        first = positions[valence][0]
        if first == but:
            continue
        heapq.heappop(positions[valence])
        weighed = valence * (0.5 if first < but else 1.5)
        valences[first] = weighed
        heapq.heappush(positions.setdefault(weighed, []), first)


def _compound(total: float, text: str) -> float:
    """The sum of valences with the emphasis of ``!`` and ``?``, normalised to −1…1."""
    exclamations = min(text.count("!"), 4) * 0.292
    marks = text.count("?")
    questions = 0.0 if marks <= 1 else marks * 0.18 if marks <= 3 else 0.96
    if total > 0:
        total += exclamations + questions
    elif total < 0:
        total -= exclamations + questions
    return round(max(-1.0, min(1.0, total / math.sqrt(total * total + 15))), 4)
