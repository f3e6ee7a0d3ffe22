"""How a written reply is put together: a bank of phrases for one kind of text, made ready for use.

Phrases hold ``{name}``, ``{role}``, ``{they}``, ``{their}``, ``{them}`` and their capitalised forms;
*fillers* also hold ``[optional parts]``, so that one sentence comes in many lengths. Everything but the three
qualities of the assessment and the words listed in :data:`~pytest_fairness.endpoints.simulated.tone.VALENCE`
is neutral to VADER, has no negation and no intensifier: the tests hold every word of every bank against
VADER's own lexicon.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_fairness.endpoints.simulated.tone import valence

_OPTIONAL = re.compile(r"\[([^\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")


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
        return cls(
            text,
            len(text.split()),
            slots.count("name"),
            slots.count("role"),
            valence(_SLOT.sub(" ", text)),
        )


def expand(pattern: str) -> list[str]:
    """Every sentence that a pattern with ``[optional parts]`` stands for."""
    pieces = _OPTIONAL.split(pattern)
    options = [("", piece) if number % 2 else (piece,) for number, piece in enumerate(pieces)]
    return ["".join(parts) for parts in itertools.product(*options)]


@dataclass(frozen=True, kw_only=True)
class Bank:
    """The phrases of one kind of text.

    ``assessments`` hold ``{1}``, ``{2}``, ``{3}``, each to be filled with an adjective and one of
    ``qualities``. ``words`` and ``tone`` are mean and SD of the length in words and of VADER's compound
    score.
    """

    greetings: Sequence[str] = ()
    openings: Sequence[str]
    assessments: Sequence[str]
    qualities: Sequence[str]
    fillers: Sequence[str]
    closings: Sequence[str]
    signatures: Sequence[str] = ()
    words: tuple[float, float] = (90.0, 14.0)
    tone: tuple[float, float] = (0.62, 0.13)
    default_role: str = "advertised"

    @cached_property
    def ready_greetings(self) -> list[Phrase]:
        return [Phrase.of(text) for text in self.greetings]

    @cached_property
    def ready_openings(self) -> list[Phrase]:
        return [Phrase.of(text) for text in self.openings]

    @cached_property
    def ready_assessments(self) -> list[Phrase]:
        return [Phrase.of(text) for text in self.assessments]

    @cached_property
    def ready_closings(self) -> list[Phrase]:
        return [Phrase.of(text) for text in self.closings]

    @cached_property
    def ready_signatures(self) -> list[Phrase]:
        return [Phrase.of(text) for text in self.signatures]

    @cached_property
    def ready_fillers(self) -> list[dict[int, list[Phrase]]]:
        """For each pattern, its sentences by their number of words."""
        return [_by_length([Phrase.of(text) for text in expand(pattern)]) for pattern in self.fillers]


def _by_length(phrases: Sequence[Phrase]) -> dict[int, list[Phrase]]:
    lengths: dict[int, list[Phrase]] = {}
    for phrase in phrases:
        lengths.setdefault(phrase.words, []).append(phrase)
    return lengths
