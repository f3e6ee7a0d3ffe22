"""The tests of the programme that have texts in another language, as ``texts_<locale>.yaml`` holds
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pytest_fairness.suites.authoring import Text, open_document
from pytest_fairness.suites.bias.programme import asking, at_strengths, by_strength

#: Where a text of a series has what speaks for the person.
_SLOT = "strength"


class ProgrammeQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The *question* and the *answer* of a test, and the sentence that asks for that in *prose*,
    where the question says ``{answer}``; at some *strengths* alone, each a text of its own, where a
    pilot chooses none.
    """

    question: Text
    answer: dict[str, Any]
    prose: str = ""
    strengths: tuple[str, ...] = ()


class Setting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The texts that some tests share: the role, the turns, each *series* with ``{strength}`` in
    it, where it has *strengths*, the *context* that fills its other slots, and what each test
    *asks*.
    """

    system: Text
    turns: tuple[Text, ...]
    series: dict[str, Text]
    strengths: dict[str, Text] = {}
    context: dict[str, dict[str, Text]] = {}
    asks: dict[str, ProgrammeQuestion]

    def template(self, test: str) -> Mapping[str, object]:
        """Return the texts of *test*, as its design takes them."""
        ask = self.asks[test]
        if not self.strengths:
            return {key: f"{text} {ask.question}" for key, text in self.series.items()}
        texts = asking(ask.question, by_strength(self.series, _SLOT, self.strengths))
        if ask.strengths:
            return at_strengths(texts, ask.strengths)
        return texts


class ProgrammeTexts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The texts of the programme in one language, and the *groups* whose names it has."""

    groups: dict[str, tuple[str, ...]]
    texts: tuple[Setting, ...]

    def translated(
        self, locale: str, test: str, design: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return the *design* of *test* in this language: about the groups that names convey, and
        without strategies, which are written in English. None where it has no texts of it.
        """
        settings = [setting for setting in self.texts if test in setting.asks]
        if not settings:
            return None
        (setting,) = settings
        ask = setting.asks[test]
        each = {}
        for protected_class, groups in self.groups.items():
            by_name = {
                "template": setting.template(test),
                "groups": {protected_class: list(groups)},
                "signal": "name",
            }
            each[protected_class] = {
                **design["each"][protected_class],
                "signals": {"name": by_name},
            }
        scorer = None
        if "pilot" in design:  # else it only says which replies strategies escalate
            scorer = design["scorer"]
        return {
            **design,
            "scorer": scorer,
            "each": each,
            "locale": locale,
            "system": setting.system,
            "turns": list(setting.turns),
            "answer": ask.answer,
            "answer_in_prose": ask.prose,
            "strategies": None,
            **_context_of(setting),
        }


def _context_of(setting: Setting) -> dict[str, Any]:
    """Return the argument with the context of *setting*; none where it has no other slots."""
    if setting.context:
        return {"context": setting.context}
    return {}


def programme_texts(locale: str) -> ProgrammeTexts:
    """Return the texts of the programme in *locale*. Raises UsageError."""
    path = Path(__file__).with_name(f"texts_{locale}.yaml")
    return open_document(path).convert(ProgrammeTexts)
