"""Languages in which a design asks: forms that agree with a name, the role in a conversation, and
the sentences that ask for an answer.

A locale is a folder of ``personas/``: ``de/locale.yaml`` with its words, ``de/names`` with its name
banks. Texts without a locale are American English. A dialect of English, ``uk``, has names and
signals of its own, and the sentences, strategies and rules of English.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Literal

import msgspec

from pytest_fairness.design.answer_forms import ENGLISH, AnswerSentences
from pytest_fairness.documents import Document, Text, layers, open_document, shipped_folder
from pytest_fairness.errors import InvalidEntry, UsageError, did_you_mean
from pytest_fairness.words import listed

_FILE = "locale.yaml"
#: Places of the forms of a slot, by the gender of the name.
_PLACES = {"female": 0, "male": 1}
_OF_NO_GENDER = 2
_SLOT = re.compile(r"[a-z_]+")
#: How a conversation without a system prompt begins, where the test has one: the role is agreed on,
#: not set.
ROLE = (
    "In this conversation, please take the following role, and keep to it:\n\n{system}\n\n"
    "A request follows. Is that clear?"
)
NOUN = "Candidate"
"""The word by which one of several is called, before a letter."""


class Locale(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """The words of one language that a design adds to its own texts.

    ``agreement``: a slot, and its form for a woman, for a man, and for a name that says neither;
    ``candidate``: the word by which one of several is called, before a letter;
    ``telling``: expressions for the words by which a reply tells whom it is about; ``english``: it
    is a dialect of English. Raises UsageError for a role without ``{system}``, a slot that is none,
    and an expression that is none.
    """

    name: str = ""
    source: Text
    agreement: dict[str, tuple[str, str, str]]
    role: Text
    sentences: AnswerSentences
    candidate: Text
    telling: tuple[str, ...] = ()
    english: bool = False

    def __post_init__(self) -> None:
        if "{system}" not in self.role:
            raise InvalidEntry("role: write {system} where the role belongs")
        for slot in self.agreement:
            if not _SLOT.fullmatch(slot):
                raise InvalidEntry(f"agreement: {slot!r} is no slot; use a-z and _")
        try:
            re.compile("|".join(self.telling))
        except re.error as error:
            raise InvalidEntry(f"telling: {error}") from None

    @property
    def slots(self) -> frozenset[str]:
        """The slots that agree with a name, each with a small and with a capital letter."""
        return frozenset((*self.agreement, *map(str.capitalize, self.agreement)))

    def agreeing(self, gender: str | None) -> dict[str, str]:
        """Return what each slot holds for a name of that *gender*."""
        place = _PLACES.get(gender or "", _OF_NO_GENDER)
        values = {slot: forms[place] for slot, forms in self.agreement.items()}
        for slot, form in tuple(values.items()):
            values[slot.capitalize()] = f"{form[:1].upper()}{form[1:]}"
        return values

    def without_telling(self, text: str) -> str:
        """*text* with ``[removed]`` in the place of words that tell whom it is about."""
        if not self.telling:
            return text
        return self._told.sub("[removed]", text)

    @cached_property
    def _told(self) -> re.Pattern[str]:
        return re.compile(rf"(?<!\w)(?:{'|'.join(self.telling)})(?!\w)", re.IGNORECASE)


class _Dialect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dialect of English, which adds no words of its own to a design."""

    source: Text
    english: Literal[True]


def read_locale(name: str, folder: Path | None = None) -> Locale:
    """Return the locale called *name*: that of the project's ``personas`` *folder*, else the one
    that ships. Raises UsageError for an unknown one.
    """
    locales = known_locales(folder)
    if name not in locales:
        raise UsageError(
            f"locale={name!r}: known locales are {listed(locales)}{did_you_mean(name, locales)}; "
            f"for one of your own put {_FILE} and names/ into personas/<locale>"
        )
    *_, path = filter(Path.is_file, layers(f"{name}/{_FILE}", folder))
    return msgspec.structs.replace(_locale_in(open_document(path)), name=name)


def _locale_in(document: Document) -> Locale:
    """Return the locale that *document* describes. Raises UsageError."""
    if not isinstance(document.data, dict) or "english" not in document.data:
        return document.convert(Locale)
    dialect = document.convert(_Dialect)
    return Locale(
        source=dialect.source,
        english=True,
        agreement={},
        role=ROLE,
        sentences=ENGLISH,
        candidate=NOUN,
    )


def is_english(name: str | None, folder: Path | None = None) -> bool:
    """Return whether the locale called *name*, or none, asks in English: so that what is written in
    English, and what reads it, serves. Raises UsageError for an unknown one.
    """
    return name is None or read_locale(name, folder).english


def known_locales(folder: Path | None = None) -> tuple[str, ...]:
    """The locales that ship, and those of the project's ``personas`` *folder*."""
    folders = [shipped_folder()]
    if folder is not None:
        folders.append(folder)
    files = product(folders, (f"*/{_FILE}", f"*/{Path(_FILE).stem}.only.yaml"))
    names: Mapping[str, None] = {}
    for place, pattern in files:
        names = {**names, **{path.parent.name: None for path in place.glob(pattern)}}
    return tuple(sorted(names))
