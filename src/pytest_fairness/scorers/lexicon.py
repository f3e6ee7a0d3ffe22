"""Find what a letter should not say of a person: phrases that stand in for what is not job-related.

The phrases are data, a file a category in ``personas/lexicon/``; a project's own folder of that name adds terms, and
takes the place of ours by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal, Self

import msgspec

from pytest_fairness.documents import Text, entries

Severity = Literal["critical", "high", "medium", "low"]
CATEGORIES = (
    "age", "gender", "race_ethnicity", "disability", "religion", "pregnancy_family", "appearance", "health",
    "accent_language", "marital_status", "cultural_fit",
)  # fmt: skip


class LexiconTerm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One term of a category: the phrases it is written as, and what to say of it."""

    name: str
    match: tuple[Text, ...]
    severity: Severity
    suggestion: Text
    source: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class LexiconWarning:
    """A phrase in a text. ``text`` stands from ``start`` to ``end`` of it, in characters; ``term`` names the entry of
    the lexicon, ``source`` where that is from. ``accepted`` says who has reviewed and accepted it, empty where nobody.
    """

    category: str
    severity: str
    text: str
    start: int
    end: int
    term: str
    suggestion: str
    source: str
    accepted: str = ""


@dataclass(frozen=True)
class Lexicon:
    """Terms by category. ``digest`` changes with anything that changes what is found."""

    terms: dict[str, dict[str, LexiconTerm]] = field(repr=False)

    @classmethod
    def load(cls, folder: Path | None = None) -> Self:
        """The lexicon that ships, extended or replaced by a project's ``personas`` *folder*. Raises UsageError."""
        return cls({one: entries(f"lexicon/{one}.yaml", folder, LexiconTerm) for one in CATEGORIES})

    @property
    def digest(self) -> str:
        return sha256(msgspec.json.encode(self.terms, order="deterministic")).hexdigest()[:16]

    def warnings(self, text: str, *, gender: str | None = None) -> tuple[LexiconWarning, ...]:  # noqa: ARG002
        """What *text* says that it should not, in the order of the text. *gender* is that of the person it is about
        (``female``, ``male``, ``non_binary``), None where unknown.
        """
        return tuple(sorted(self._found(text), key=lambda one: (one.start, one.end, one.category)))

    def _found(self, text: str) -> Iterator[LexiconWarning]:
        for category, terms in self.terms.items():
            for term in terms.values():
                pattern = r"(?<!\w)(?:" + "|".join(map(re.escape, term.match)) + r")(?!\w)"
                for found in re.finditer(pattern, text, re.IGNORECASE):
                    yield LexiconWarning(
                        category=category,
                        severity=term.severity,
                        text=found[0],
                        start=found.start(),
                        end=found.end(),
                        term=term.name,
                        suggestion=term.suggestion,
                        source=term.source,
                    )


@cache
def shipped_lexicon() -> Lexicon:
    """The lexicon as it ships."""
    return Lexicon.load()
