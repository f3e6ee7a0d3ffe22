"""The tests of the programme that have texts in another language, or another dialect of English, as
``texts_<locale>.yaml`` holds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pytest_fairness.suites.authoring import Text, open_document
from pytest_fairness.suites.bias.programme import (
    Conveyance,
    Texts,
    Unasked,
    asking,
    at_strengths,
    by_strength,
    signal_design,
)

#: Where a text of a series has what speaks for the person.
_SLOT = "strength"


class ProgrammeQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The *question* of a test, and its *answer*, the sentence that asks for that in *prose*, where
    the question says ``{answer}``, and its *scorer* where they are not those of the American text;
    at some *strengths* alone, each a text of its own, where a pilot chooses none.
    """

    question: str = ""
    answer: dict[str, Any] | None = None
    prose: str = ""
    scorer: str | None = None
    strengths: tuple[str, ...] = ()


class Setting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The texts that some tests share: the role, the turns, each *series* with ``{strength}`` in
    it, where it has *strengths*, the *context* that fills its other slots, and what each test
    *asks*. A dialect leaves out what is the same in American English, and *keeps* texts of it.
    """

    system: str = ""
    turns: tuple[Text, ...] = ()
    series: dict[str, Text]
    keeps: tuple[str, ...] = ()
    strengths: dict[str, Text] = {}
    context: dict[str, dict[str, Text]] = {}
    asks: dict[str, ProgrammeQuestion]

    def template(self, test: str) -> Texts:
        """Return the texts of *test* in this language, as its design takes them."""
        ask = self.asks[test]
        if not self.strengths:
            return {key: f"{text} {ask.question}".rstrip() for key, text in self.series.items()}
        texts = asking(ask.question, by_strength(self.series, _SLOT, self.strengths))
        if ask.strengths:
            return at_strengths(texts, ask.strengths)
        return texts

    def arguments(self, test: str) -> dict[str, Any]:
        """Return the arguments of the design of *test* that are other ones in this language."""
        ask = self.asks[test]
        given = {
            "system": self.system,
            "turns": list(self.turns),
            "answer": ask.answer,
            "answer_in_prose": ask.prose,
            "scorer": ask.scorer,
            "context": self.context,
        }
        return {name: value for name, value in given.items() if value}


class ProgrammeTexts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The texts of the programme in one language, and the *signals* that it has the words or names
    of, by class and kind; texts that are *unasked* with some of them; ``english``: it is a dialect,
    so that the rules read it, and the strategies ask in it.
    """

    signals: dict[str, Conveyance]
    unasked: tuple[Unasked, ...] = ()
    english: bool = False
    texts: tuple[Setting, ...]

    def translated(
        self, locale: str, test: str, design: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return the *design* of *test* in this language: about the groups of its signals, and
        without strategies where it is no English. None where it has no texts of it.
        """
        settings = [setting for setting in self.texts if test in setting.asks]
        if not settings:
            return None
        (setting,) = settings
        kept = {key: design["template"][key] for key in setting.keeps}
        template = {**setting.template(test), **kept}
        arguments = setting.arguments(test)
        if not self.english:
            arguments["strategies"] = None
            if "pilot" not in design:  # else it only says which replies strategies escalate
                arguments["scorer"] = None
        return {
            **design,
            **arguments,
            "template": template,
            "each": self._each(design["each"], template),
            "locale": locale,
        }

    def _each(self, each: Mapping[str, Any], template: Texts) -> dict[str, Any]:
        """Return the entries of *each* class, with the signals that this language has."""
        entries = {}
        for protected_class, entry in each.items():
            signals = {}
            for kind in entry["signals"]:
                label = f"{protected_class}-{kind}"
                if label in self.signals:
                    signals[kind] = signal_design(
                        entry["id"], label, self.signals[label], template, self.unasked
                    )
            if signals:
                entries[protected_class] = {**entry, "signals": signals}
        return entries


def programme_texts(locale: str) -> ProgrammeTexts:
    """Return the texts of the programme in *locale*. Raises UsageError."""
    path = Path(__file__).with_name(f"texts_{locale}.yaml")
    return open_document(path).convert(ProgrammeTexts)
