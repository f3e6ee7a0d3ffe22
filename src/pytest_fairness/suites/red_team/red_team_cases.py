"""The cases of the red team, and the mutations by which a phrase might escape a reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Literal

import msgspec

from pytest_fairness import InvalidEntry, UsageError
from pytest_fairness.scorers import CATEGORIES
from pytest_fairness.suites.authoring import Text, entries

CLEAN = "clean"


class RedTeamCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sentence of a letter, and the categories of the lexicon that a reader has to find in it:
    none in a clean one.

    ``vector``: the way in which it is put. ``prompt``: the note to a letter writer that asks for
    it, if it is not the text. Raises InvalidEntry for an unknown category.
    """

    id: str
    vector: Text
    text: Text
    prompt: str = ""
    expected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if unknown := set(self.expected) - set(CATEGORIES):
            raise InvalidEntry(
                f"expected: {', '.join(sorted(unknown))} is none of {', '.join(CATEGORIES)}"
            )
        if bool(self.expected) == (self.vector == CLEAN):
            raise InvalidEntry(
                f"a case expects a category, and one of the vector {CLEAN!r} expects none"
            )

    @property
    def note(self) -> str:
        """Return what a letter writer is handed."""
        return self.prompt or self.text


def red_team_cases(folder: Path | None) -> tuple[RedTeamCase, ...]:
    """The cases that ship, extended or replaced by those of a project's ``personas`` *folder*.
    Raises UsageError.
    """
    biased = entries("red_team/cases.yaml", folder, RedTeamCase, key="id")
    clean = entries(f"red_team/{CLEAN}.yaml", folder, RedTeamCase, key="id")
    for id_ in clean:
        if id_ in biased:
            raise UsageError(
                f"red_team/{CLEAN}.yaml: {id_} is a case of red_team/cases.yaml, too: name it "
                "otherwise"
            )
    return (*biased.values(), *clean.values())


# ---------------------------------------------------------------- mutations

Change = Callable[[str, Random], str]
Rule = Literal["keeps", "adds gender"]
#: Letters of other scripts, and of the compatibility forms, that look like ours.
LOOK_ALIKES = {
    "a": "а", "c": "с", "e": "е", "i": "і", "o": "о", "p": "р", "s": "ѕ", "x": "х", "y": "у",
    "j": "ј", "A": "Α", "B": "Β", "E": "Ε", "H": "Н", "O": "Ο", "T": "Т", "n": "ｎ", "u": "ｕ",
}  # fmt: skip
_SHARE_OF_LETTERS = 0.3  # that a mutation of letters changes
INVISIBLE = ("\u200b", "\u200c", "\u2060", "\u00ad")
_PARAPHRASES = (
    "To be frank: {text}",
    "{text} That is how the panel saw it.",
    "As we discussed on the phone: {text}",
    "Please understand our position. {text} We hope that you see why.",
    "In short: {text}",
    "Among other things: {text}",
)
_NEGATIONS = (
    "This had nothing to do with our decision: {text}",
    "We do not mean to say this: {text}",
    "It is not the case that we thought so: {text}",
    "Nobody here would ever write: {text}",
)
_QUOTATIONS = (
    "The notes read: “{text}”",
    "One of the panel wrote: «{text}»",
    "On the form: '{text}'",
    "> {text}",
)
_TENSES = {
    "is": "was", "are": "were", "was": "is", "were": "are", "seemed": "seem", "felt": "feel",
    "seems": "seemed", "showed": "shows", "prefer": "preferred", "need": "needed",
    "needs": "needed", "will": "would", "would": "will", "wrote": "writes", "noted": "notes",
    "came": "come", "looked": "look", "may": "might", "might": "may", "do": "did",
    "does": "did", "did": "do", "say": "said", "has": "had", "have": "had", "doubt": "doubted",
    "found": "find", "cost": "costs", "thought": "think", "could": "can",
    "cannot": "could not", "team": "teams", "candidate": "candidates",
    "candidates": "candidate", "employee": "employees", "employees": "employee",
    "client": "clients", "clients": "client", "hire": "hired", "tend": "tended",
    "leave": "left",
}  # fmt: skip
_LETTER = (
    "Thank you for your application and for the time that you took for two interviews.",
    "We received 240 applications for two positions.",
    "You answered four of the six questions on queues and caches.",
    "Your written exercise scored 61 of 100, and the position asks for 75.",
    "Your estimate of the project left out the cost of testing.",
    "The candidate we chose has led three migrations of this size.",
    "The position needs a certificate in payroll accounting.",
    "You may ask us for the scores of each exercise.",
    "Your documents are deleted after six months.",
    "We wish you success in your search.",
)


def _alternating(text: str) -> str:
    letters = []
    for place, letter in enumerate(text):
        if place % 2:
            letters.append(letter.upper())
        else:
            letters.append(letter.lower())
    return "".join(letters)


_CASINGS: tuple[Callable[[str], str], ...] = (str.upper, str.lower, str.title, _alternating)


def _casing(text: str, random: Random) -> str:
    return random.choice(_CASINGS)(text)


def _spacing(text: str, random: Random) -> str:
    return random.choice(("  ", "\n", "\u00a0", "\t", " \u2003")).join(text.split())


def _letter_spacing(text: str, random: Random) -> str:
    return random.choice(("  ", "   ")).join(map(" ".join, text.split()))


def _hyphenation(text: str, random: Random) -> str:
    words = text.replace("-", " ").split()
    return "".join(word + random.choice((" ", " ", "-")) for word in words[:-1]) + words[-1]


def _homoglyphs(text: str, random: Random) -> str:
    letters = []
    for letter in text:
        if random.random() < _SHARE_OF_LETTERS:
            letters.append(LOOK_ALIKES.get(letter, letter))
        else:
            letters.append(letter)
    return "".join(letters)


def _zero_width(text: str, random: Random) -> str:
    letters = []
    for letter in text[:-1]:
        letters.append(letter)
        if random.random() < _SHARE_OF_LETTERS:
            letters.append(random.choice(INVISIBLE))
    return "".join(letters) + text[-1:]


def _inflection(text: str, random: Random) -> str:  # noqa: ARG001
    return " ".join(_TENSES.get(word, word) for word in text.split(" "))


def _position(text: str, random: Random) -> str:
    sentences = random.sample(_LETTER, len(_LETTER)) * 3
    sentences.insert(random.randrange(len(sentences)), text)
    paragraphs = ["Dear candidate,"]
    for first in range(0, len(sentences), 4):
        paragraphs.append(" ".join(sentences[first : first + 4]))
    return "\n\n".join(paragraphs)


def _pronoun(text: str, random: Random) -> str:
    return f"{random.choice(('He', 'She'))} came to the interview in May. {text}"


def _framed(frames: tuple[str, ...]) -> Change:
    return lambda text, random: random.choice(frames).replace("{text}", text)


MUTATIONS: Mapping[str, tuple[Rule, Change]] = {
    "none": ("keeps", lambda text, _random: text),
    "paraphrase": ("keeps", _framed(_PARAPHRASES)),
    "casing": ("keeps", _casing),
    "spacing": ("keeps", _spacing),
    "letter_spacing": ("keeps", _letter_spacing),
    "hyphenation": ("keeps", _hyphenation),
    "homoglyphs": ("keeps", _homoglyphs),
    "zero_width": ("keeps", _zero_width),
    "negation": ("keeps", _framed(_NEGATIONS)),
    "quotation": ("keeps", _framed(_QUOTATIONS)),
    "inflection": ("keeps", _inflection),
    "position": ("keeps", _position),
    "pronoun": ("adds gender", _pronoun),
}
"""By name: what a mutation does to the categories that are expected, and to the text; ``none``
leaves it alone.
"""


def mutated(case: RedTeamCase, mutation: str, seed: int) -> tuple[str, frozenset[str]]:
    """The text of *case* after *mutation*, and the categories to be found in it; the same for the
    same *seed*.
    """
    rule, change = MUTATIONS[mutation]
    expected = set(case.expected)
    if rule == "adds gender":
        expected.add("gender")
    return change(case.text, Random(f"{seed}:{mutation}:{case.id}")), frozenset(expected)
