"""Case-marked pronouns, the verbs that agree with them, and the articles a and an.

In a template, write the sentence with *they*, as slots: ``{They} {have} six years of experience, and
{their} manager says that {they} {work|s}`` is not a slot, but ``work{s}`` is: for *she* it becomes "She has
six years of experience, and her manager says that she works". The slots:

=============  ================  =======================  =========================
slot           he                she                      they
=============  ================  =======================  =========================
``{they}``     he                she                      they
``{them}``     him               her                      them
``{their}``    his               her                      their
``{theirs}``   his               hers                     theirs
``{themself}`` himself           herself                  themself
``{are}``      is                is                       are
``{were}``     was               was                      were
``{have}``     has               has                      have
``{do}``       does              does                     do
``{s}``        s (work\\ **s**)   s                        nothing
``{es}``       es (teach\\ **es**) es                      nothing
=============  ================  =======================  =========================

With a capital (``{They}``, ``{Their}``, ``{Are}``) the word is capitalised. Any other slot has an article
form: ``{a_role}`` is "a nurse" or "an IT engineer", ``{A_role}`` begins a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_fairness.errors import UsageError

CASES = ("they", "them", "their", "theirs", "themself")
_VERBS = {"are": ("is", "are"), "were": ("was", "were"), "have": ("has", "have"), "do": ("does", "do"),
          "s": ("s", ""), "es": ("es", "")}  # fmt: skip
SLOTS = frozenset(form for word in (*CASES, *_VERBS) for form in (word, word.capitalize()))

_KNOWN = {
    "she": ("she", "her", "her", "hers", "herself"),
    "he": ("he", "him", "his", "his", "himself"),
    "they": ("they", "them", "their", "theirs", "themself"),
    # Neopronouns in use; any other set can be given by its five forms.
    "xe": ("xe", "xem", "xyr", "xyrs", "xemself"),
    "ze": ("ze", "hir", "hir", "hirs", "hirself"),
    "ey": ("ey", "em", "eir", "eirs", "emself"),
    "fae": ("fae", "faer", "faer", "faers", "faerself"),
}
BY_GENDER = {"female": "she", "male": "he", "non_binary": "they", "nonbinary": "they", "unisex": "they"}


@dataclass(frozen=True, slots=True)
class Pronouns:
    """One set of pronouns in five cases; ``plural`` verbs agree with *they* alone."""

    forms: tuple[str, str, str, str, str]
    plural: bool = False

    @property
    def label(self) -> str:
        """``she/her``: how the set is written after a name."""
        return f"{self.forms[0]}/{self.forms[1]}"

    def values(self) -> Mapping[str, str]:
        """The text of every pronoun and agreement slot."""
        lower = dict(zip(CASES, self.forms, strict=True))
        lower.update({slot: forms[self.plural] for slot, forms in _VERBS.items()})
        return lower | {slot.capitalize(): text[:1].upper() + text[1:] for slot, text in lower.items()}


def pronouns(text: str) -> Pronouns:
    """The set that *text* names: ``she``, ``she/her``, ``ze/hir``, or all five forms,
    ``ae/aer/aer/aers/aerself``.

    Raises UsageError for anything else.
    """
    parts = tuple(part.strip().lower() for part in text.split("/"))
    if len(parts) == 5 and all(parts):
        return Pronouns((parts[0], parts[1], parts[2], parts[3], parts[4]), plural=parts[0] == "they")
    known = _KNOWN.get(parts[0])
    if known is not None and all(part in known for part in parts):
        return Pronouns(known, plural=parts[0] == "they")
    raise UsageError(
        f"unknown pronouns {text!r}: give one of {', '.join(_KNOWN)} (or she/her and so on), "
        "or all five forms, as in 'ae/aer/aer/aers/aerself'"
    )


# Words that sound otherwise than they are spelled; enough for job titles, groups and ages.
_VOWEL_SOUND = re.compile(r"(?:hour|honest|honou?r|heir)|8|11(?:[^0-9]|$)|18(?:[^0-9]|$)", re.IGNORECASE)
_CONSONANT_SOUND = re.compile(r"(?:uni(?!n)|us[ei]|eu|one|once|ut[ei]|ubiq|ukr)", re.IGNORECASE)
_ACRONYM = re.compile(r"[A-Z]{2,}(?![a-z])")


def article(text: str) -> str:
    """``a`` or ``an``, as English has it before *text*: an IT engineer, a university, an 18-year-old."""
    word = text.lstrip(" \"'“‘(")
    if not word:
        return "a"
    if _ACRONYM.match(word) and word[:4] not in ("NASA", "NATO"):
        return "an" if word[0] in "AEFHILMNORSX" else "a"
    if _VOWEL_SOUND.match(word):
        return "an"
    if _CONSONANT_SOUND.match(word):
        return "a"
    return "an" if word[0].lower() in "aeiouáéíóúâêîôûäëïöü" else "a"


def with_article(text: str, *, capital: bool = False) -> str:
    """*text* behind its article; nothing before nothing."""
    if not text:
        return ""
    chosen = article(text)
    return f"{chosen.capitalize() if capital else chosen} {text}"
