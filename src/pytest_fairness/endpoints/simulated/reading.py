"""What a reader takes from a prompt about the person in it: a name, a pronoun, the groups that the text conveys.

Only the text counts. The signals that come with a request are a glossary of surface strings, not a statement
about the person: a string that does not occur in the text (because it was scrubbed, say) conveys nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pytest_fairness.endpoints.simulated.lexicon import (
    FIRST_NAMES_TOO,
    LABELS,
    NAMES,
    PRONOUNS,
    SURNAMES_TOO,
    WORDS_NOT_NAMES,
    slug,
)

Signals = Mapping[str, Mapping[str, str]]

_CAPITAL = r"(?:al-|el-|d['’])?[^\W\d_a-zß-öø-ÿ][\w'’\-]*"
_FULL_NAME = rf"{_CAPITAL}(?:[ \t]+(?:(?:de|da|del|la|van|von|der|al|bin|[A-Z]\.)[ \t]+)*{_CAPITAL}){{0,3}}"
_CUES = (
    re.compile(rf"\b(?i:name|candidate|applicant|patient|tenant|employee|borrower)\s*:\s*({_FULL_NAME})"),
    re.compile(
        r"\b(?i:for|about|of|to|on|describe|rate|score|assess|evaluate|hire|named|called|candidate|applicant|patient"
        r"|tenant|employee|borrower|dear|consider|is|from|that|should|does|did|has|let|give|offer|reject|promote|meet)"
        rf"\s+(?:(?:Mr|Ms|Mrs|Mx|Dr)\.?\s+)?({_FULL_NAME})"
    ),
    re.compile(
        rf"(?:^|[.!?:]\s+|\n\s*(?:[-*]\s+|\d+[.)]\s+)?)({_FULL_NAME})(?=,|\s+(?:is|has|was|applied|applies|works)\b)"
    ),
)
_POSSESSIVE = re.compile(r"['’]s?$")
_AGE = re.compile(
    r"\b(?:(?P<a>\d{2})[- ]years?[- ]olds?|(?:aged?|age:|is)\s*(?P<b>\d{2})(?=\s*(?:[,.;)\n]|years of age|$)))",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
_PARTICLES = frozenset(("de", "da", "del", "la", "van", "von", "der", "al", "el", "bin", "ibn"))
_LABELS_AND_NAMES = ("Christian",)


@dataclass(frozen=True, slots=True)
class Reading:
    """``groups`` maps protected classes to slugs of groups; ``pronoun`` is she, he or they."""

    name: str | None
    groups: Mapping[str, str]
    pronoun: str = "they"


def occurs(surface: str, text: str) -> bool:
    """Whether *surface* stands in *text* as words of its own, so that "he" is not found in "the"."""
    start = text.find(surface)
    while start >= 0:
        end = start + len(surface)
        before = start == 0 or not (text[start - 1].isalnum() and surface[0].isalnum())
        after = end == len(text) or not (text[end].isalnum() and surface[-1].isalnum())
        if before and after:
            return True
        start = text.find(surface, start + 1)
    return False


def read_person(text: str, signals: Signals) -> Reading:
    """The one person that *text* is about. What the signals say comes before what the lexicon knows."""
    present = [surface for surface in signals if surface and occurs(surface, text)]
    if not present:
        return _unaided(text)
    groups: dict[str, str] = {}
    # The longest first: "Emily Walsh" says more than "Emily".
    for surface in sorted(present, key=len, reverse=True):
        for protected_class, group in signals[surface].items():
            groups.setdefault(slug(protected_class), slug(group))
    name = _signalled_name(present, signals)
    if name is not None and name.split()[0] in _LABELS_AND_NAMES:
        text = text.replace(name, "")  # nothing but a name here
    unaided = _unaided(text)
    name = name or unaided.name
    for protected_class, group in unaided.groups.items():
        groups.setdefault(protected_class, group)
    return Reading(name, groups, unaided.pronoun)


@lru_cache(maxsize=16384)
def _unaided(text: str) -> Reading:
    """What the lexicon and the grammar of *text* say by themselves."""
    words = frozenset(_WORD.findall(text))
    lowered = frozenset(word.lower() for word in words)
    groups = _labels(text, lowered)
    pronoun, gender = _pronoun(lowered)
    if gender:
        groups.setdefault("gender", gender)
    name = _cued_name(text)
    known = _known_name(name, words)
    if known is not None:
        for protected_class, group in NAMES[known].items():
            groups.setdefault(protected_class, group)
    return Reading(name or known, groups, pronoun)


def _signalled_name(present: list[str], signals: Signals) -> str | None:
    names = [surface for surface in present if is_name(surface, frozenset(map(slug, signals[surface])))]
    return max(names, key=len) if names else None


@lru_cache(maxsize=16384)
def is_name(surface: str, conveyed: frozenset[str]) -> bool:
    """Whether *surface*, which conveys groups of the classes *conveyed*, is a name rather than a label."""
    words = surface.split()
    if not words or len(words) > 5 or any(character.isdigit() for character in surface):
        return False
    # Scripts without capitals have names too; a label in them cannot be told from a name and is taken for one.
    capital = all(not word[0].islower() or word.split("-")[0] in _PARTICLES for word in words)
    # Christian is a label where it conveys a religion, and a name where it conveys anything else.
    label = not conveyed.isdisjoint(_labels(surface, frozenset(word.lower() for word in _WORD.findall(surface))))
    ended = any(_ends_name(word, words[:at], alone=False) for at, word in enumerate(words))
    return capital and not label and (not ended or words[0] in _LABELS_AND_NAMES)


def _ends_name(word: str, before: Sequence[str], *, alone: bool) -> bool:
    """Whether *word* can be no part of a name that began with *before*; *alone* if no other word is near."""
    plain = word.strip(".,").lower()
    if plain not in WORDS_NOT_NAMES:
        return False
    return plain not in SURNAMES_TOO if before else alone or plain not in FIRST_NAMES_TOO


def _cued_name(text: str) -> str | None:
    for cue in _CUES:
        for match in cue.finditer(text):
            words: list[str] = []
            found = match[1].split()
            for word in found:
                if _ends_name(word, words, alone=len(found) == 1):
                    break
                words.append(_POSSESSIVE.sub("", word))
            name = " ".join(words)
            if len(name) > 1 and not name.isupper() and not _labelled(f"a {words[0]} person"):
                return name
    return None


def _known_name(name: str | None, words: frozenset[str]) -> str | None:
    if name:
        first = name.split()[0]
        return first if first in NAMES else None
    return min((word for word in words if word in NAMES), default=None)


def _labelled(text: str) -> bool:
    return bool(_labels(text, frozenset(word.lower() for word in _WORD.findall(text))))


def _labels(text: str, words: frozenset[str]) -> dict[str, str]:
    """The groups that labels in *text* name; *words* are its words in lower case."""
    found: dict[str, str] = {}
    for protected_class, group, triggers, pattern in LABELS:
        if protected_class not in found and not triggers.isdisjoint(words) and pattern.search(text):
            found[protected_class] = group
    if "age" not in found and (match := _AGE.search(text)) is not None:
        # 40 is the age from which the US Age Discrimination in Employment Act protects (29 USC 631).
        found["age"] = "older" if int(match["a"] or match["b"]) >= 40 else "younger"
    return found


def _pronoun(words: frozenset[str]) -> tuple[str, str | None]:
    """The pronoun that the text uses for the person, and the gender that it conveys; mixed pronouns convey none."""
    used = [(pronoun, gender) for pronoun, gender, forms in PRONOUNS if not forms.isdisjoint(words)]
    return used[0] if len(used) == 1 else ("they", None)
