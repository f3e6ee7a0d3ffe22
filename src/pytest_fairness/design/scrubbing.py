"""A scrubber by rule: what the name banks and signals know is taken out of a text, and nothing else
is changed.

Full names become "Candidate A", "Candidate B" … in the order in which they appear; pronouns become
*they*; stated ages, graduation years and the words of labels and signals become neutral
placeholders, or go where they stand in a list by themselves. It is a baseline to compare others
with: what it does not know (a club, a college, a dialect) it leaves in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.signals import CONTROL, Signals

_WORD = r"[A-Z][\w'’-]+"
_PRONOUNS = {
    "he": "they",
    "she": "they",
    "him": "them",
    "hers": "theirs",
    "himself": "themself",
    "herself": "themself",
}
_PRONOUN = re.compile(r"\b(?:s?he|him|hers|himself|herself)\b", re.IGNORECASE)
# "Her notes" and "his notes" are theirs; "I met her" and "it is his" stand alone.
_BEFORE = re.compile(r"\b(?P<word>her|his)\b(?=(?P<next>\s+\w)?)", re.IGNORECASE)
_ALONE = {"her": "them", "his": "theirs"}
_HONORIFIC = re.compile(r"\b(?:Mr|Mrs|Ms|Miss|Mx)\.?\s+(?=[A-Z])")
_AGE = re.compile(
    r"\b(?:aged?:?\s*\d{2}|\d{2}[- ]years?[- ]old|\d{2}\s+years\s+of\s+age|in\s+(?:her|his|their)\s+\w+ies)\b",
    re.IGNORECASE,
)
_YEAR = re.compile(
    r"(?P<lead>\b(?:born|graduat\w+|class\s+of|finished\s+(?:high\s+)?school|degree)\b[^.;\n]{0,40}?)\b(?:19|20)\d{2}\b",
    re.IGNORECASE,
)
# Words that say something of a person only where they stand by themselves.
_ORDINARY = frozenset({"short", "tall", "single", "Short", "Tall", "Single"})
_EMPTY_PART = re.compile(r"(?:,\s*|\s*\()\[removed\](?=\s*(?:[,.;)\n]|$))\)?")


@dataclass(frozen=True)
class RuleScrubber:
    """A function from text to text; *names* are full names that it has to know beside those of the
    banks.
    """

    banks: NameBanks
    signals: Signals
    names: tuple[str, ...] = ()

    def __call__(self, text: str) -> str:
        """*text* without what the rules know. Raises nothing; what has no letters comes back as it
        is.
        """
        text = self._without_names(text)
        text = _HONORIFIC.sub("", text)
        text = self._phrases.sub("[removed]", text)
        text = _YEAR.sub(lambda match: f"{match['lead']}[year]", text)
        text = _AGE.sub("[age]", text)
        text = _EMPTY_PART.sub("", text)
        text = _PRONOUN.sub(lambda match: _cased(_PRONOUNS[match[0].lower()], match[0]), text)
        return _BEFORE.sub(_possessive, text)

    def _without_names(self, text: str) -> str:
        """*text* with a letter for each person: "Candidate A" for the first one named."""
        labels: dict[str, str] = {}

        def label(match: re.Match[str]) -> str:
            name = re.sub(r"\s+", " ", match[0])
            return labels.setdefault(name.casefold(), f"Candidate {chr(65 + len(labels) % 26)}")

        text = self._full_names.sub(label, text)
        # Later mentions by one part of the name, as in "Greg has" or "Ms. Walsh".
        for name, candidate in labels.items():
            for part in name.split():
                if len(part.strip(".")) > 1:
                    mention = rf"\b{re.escape(part)}\b(?!\s+[a-z]*\d)"
                    text = re.sub(mention, candidate, text, flags=re.IGNORECASE)
        return text

    @cached_property
    def _full_names(self) -> re.Pattern[str]:
        """The names of the test, and whatever looks like a whole name of the banks."""
        firsts = {entry.name for entry in self.banks.first_names.values()}
        lasts = {entry.name for entry in self.banks.surnames.values()}
        pattern = r"(?!)"
        if self.names:
            pattern = _any(self.names)
        # A first name of the banks with any capitalised word behind it, or an initial or any first
        # name with a surname of the banks: either half is enough.
        return re.compile(
            rf"\b(?:{pattern}|(?:{_any(firsts)})\s+{_WORD}|(?:[A-Z]\.|{_WORD})\s+(?:{_any(lasts)}))(?!\w)"
        )

    @cached_property
    def _phrases(self) -> re.Pattern[str]:
        """The phrases that state a group, those of control groups excepted."""
        stated: set[str] = set()
        for kind in self.signals.kinds.values():
            for group in kind.words.keys() - {CONTROL}:
                phrases = kind.phrases(group)
                # As written, or with a capital: "White" states an ethnicity, "a white paper" does
                # not.
                stated.update(phrases)
                stated.update(phrase[:1].upper() + phrase[1:] for phrase in phrases)
        alone = rf"(?<=[,(]\s)(?:{_any(_ORDINARY)})(?=\s*(?:[,.;)\n]|$))"
        return re.compile(rf"(?<!\w)(?:{_any(stated - _ORDINARY)})(?!\w)|{alone}")


def _any(texts: Iterable[str]) -> str:
    """Any of *texts*, the longest first, with any white space where they have some."""
    ordered = sorted(set(texts), key=lambda text: (-len(text), text))
    return "|".join(r"\s+".join(map(re.escape, text.split())) for text in ordered)


def _possessive(match: re.Match[str]) -> str:
    """Return ``their`` before a word, else the form that stands alone, in the case of *match*."""
    if match["next"]:
        return _cased("their", match[0])
    return _cased(_ALONE[match["word"].lower()], match[0])


def _cased(word: str, like: str) -> str:
    """*word* with a capital where *like* has one."""
    if like[:1].isupper():
        return word.capitalize()
    return word
