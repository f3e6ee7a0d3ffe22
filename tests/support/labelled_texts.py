"""The labelled texts that the lexicon is measured on: a half that it is tuned on, and a half that
is held back.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from pytest_fairness.documents import open_document

DATA = Path(__file__).parents[1] / "data"
HALVES = ("development", "held_back")


class LabelledText(NamedTuple):
    """A text, and the categories that a reviewer wants flagged."""

    text: str
    expect: frozenset[str]

    @property
    def gender(self) -> str | None:
        """That of the person, as the pronouns have it; None where a pronoun, or a gender, is what
        is flagged.
        """
        if "gender" in self.expect:
            return None
        words = set(re.findall(r"[a-z]+", self.text.lower()))
        return (
            "female" if words & {"she", "her"} else "male" if words & {"he", "his", "him"} else None
        )


def labelled_texts(half: str) -> list[LabelledText]:
    """The texts of one of :data:`HALVES`."""
    data = open_document(DATA / f"lexicon_{half}.yaml").convert(dict[str, list[str]])
    return [
        LabelledText(text, frozenset() if labels == "none" else frozenset(labels.split(", ")))
        for labels, texts in data.items()
        for text in texts
    ]
