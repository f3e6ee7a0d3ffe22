"""Sentiment: the compound score of VADER (Hutto & Gilbert 2014), from −1 to 1, several times
faster.

VADER's reference code lowers the whole word list again for every word and every check, and walks
the text one character at a time for emoji. Here only the words that the lexicon knows are visited,
and VADER's own rules are applied to the few words around each, and only where one of them changes
it. The scores are equal to the last digit; the tests compare them on a large varied sample. Of a
text of over 200,000 characters the beginning is read.
"""

from __future__ import annotations

import heapq
import math
import string
import warnings
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace

#: A reply longer than this is no prose. Emoji count as the words that stand for them: a megabyte of
#: them is 14.
LONGEST = 200_000


@cache
def _vader() -> SimpleNamespace:
    """VADER's module and analyser, the words that have a score of their own, what it says for an
    emoji, and the words that change the score of one near them.

    Read once a process (8 ms) and only when sentiment is asked for.
    """
    with warnings.catch_warnings():
        # It reads its lexicon through codecs.open, deprecated since Python 3.14: no business of the
        # user's -W error.
        warnings.simplefilter("ignore", DeprecationWarning)
        from vaderSentiment import vaderSentiment as source  # noqa: N813 - the name of its module

        analyser = source.SentimentIntensityAnalyzer()
    # Of a phrase its longest word: without that one there is no phrase.
    phrases = set()
    for phrase in (*source.BOOSTER_DICT, *source.SPECIAL_CASES):
        phrases.add(max(phrase.split(), key=len))
    return SimpleNamespace(
        source=source,
        analyser=analyser,
        lexicon=analyser.lexicon,
        scored=analyser.lexicon.keys() - source.BOOSTER_DICT.keys(),
        emoji={sign: words for sign, words in analyser.emojis.items() if len(sign) == 1},
        changing=frozenset({*phrases, *source.NEGATE, "no", "so", "this", "least"}),
    )


def sentiment(text: str) -> float:
    """VADER's compound score of *text*: −1 most negative, 1 most positive, to 4 places as VADER
    gives it.
    """
    vader = _vader()
    text = _beginning(_name_emoji(_beginning(text), vader.emoji)).strip()
    words = list(map(_strip, text.split()))
    lowered = list(map(str.lower, words))
    some_capitals = 0 < sum(map(str.isupper, words)) < len(words)
    valences: dict[int, float] = {}
    for place in _places_of_known_words(lowered, vader):
        around = slice(max(0, place - 3), place + 3)  # no rule looks farther
        if _holds_changing(lowered[around], vader):
            near = SimpleNamespace(words_and_emoticons=words[around], is_cap_diff=some_capitals)
            (valences[place],) = vader.analyser.sentiment_valence(
                0, near, words[place], place - around.start, []
            )
            continue
        valence = vader.lexicon[lowered[place]]
        if some_capitals and words[place].isupper():
            valence += math.copysign(vader.source.C_INCR, valence)
        valences[place] = valence
    if "but" in lowered:
        _weigh_around_but(valences, lowered.index("but"))
    return float(vader.analyser.score_valence([float(sum(valences.values()))], text)["compound"])


def _places_of_known_words(lowered: list[str], vader: SimpleNamespace) -> Iterator[int]:
    """Yield where the words stand that have a score of their own: "kind" in "kind of" has none."""
    for place, word in enumerate(lowered):
        if word not in vader.scored:
            continue
        if lowered[place : place + 2] == ["kind", "of"]:
            continue
        yield place


def _holds_changing(words: list[str], vader: SimpleNamespace) -> bool:
    """Return whether one of *words* may change the score of another."""
    return not vader.changing.isdisjoint(words) or "n't" in " ".join(words)


def _beginning(text: str) -> str:
    """As much of *text* as is read, up to the end of a word."""
    if len(text) <= LONGEST:
        return text
    text = text[:LONGEST]
    return text.rpartition(" ")[0] or text


def _name_emoji(text: str, emoji: dict[str, str]) -> str:
    """*text* with each emoji replaced by its name, set apart by a space on the left only, as VADER
    does.
    """
    if text.isascii() or emoji.keys().isdisjoint(text):
        return text
    parts: list[str] = []
    after_space = True
    for character in text:
        name = emoji.get(character)
        if name is not None and not after_space:
            parts.append(" ")
        parts.append(name or character)
        after_space = character == " "
    return "".join(parts)


def _strip(token: str) -> str:
    """*token* without punctuation around it, or whole where two characters or fewer would be left:
    ``:)``.
    """
    stripped = token.strip(string.punctuation)
    if len(stripped) <= 2:
        return token
    return stripped


def _weigh_around_but(valences: dict[int, float], but: int) -> None:
    """Halve what stands before the first "but" and raise by half what follows it, in place.

    VADER looks each value up by equality while it changes the list, so the *first* equal value is
    the one that changes. Scores can only be equal to its own if that is kept; a heap of positions a
    value keeps it fast.
    """
    positions: dict[float, list[int]] = {}
    for place, valence in valences.items():
        positions.setdefault(valence, []).append(place)
    for place in list(valences):
        valence = valences[place]  # as it is now: a step before may have changed it
        if valence == 0 or positions[valence][0] == but:
            continue
        first = heapq.heappop(positions[valence])
        weighed = valence * 1.5
        if first < but:
            weighed = valence * 0.5
        valences[first] = weighed
        heapq.heappush(positions.setdefault(weighed, []), first)
