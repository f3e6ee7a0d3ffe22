"""Replies as somebody may read them who must not know whom they are about: without names, pronouns
and the words that convey a group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_fairness.design.locales import is_english, read_locale
from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.scrubbing import RuleScrubber
from pytest_fairness.design.signals import Signals
from pytest_fairness.scorers.reading_turn import digest_of
from pytest_fairness.scorers.text import signal_mask, signals_of
from pytest_fairness.trials_frame import design_of

if TYPE_CHECKING:
    import pandas as pd


class MaskedReply(NamedTuple):
    """A reply as the reader is shown it, with the prompt that it replies to, and the ``digest`` of
    both as they were; the ``groups`` that it is about are for the simulated endpoint alone.
    """

    text: str
    prompt: str | None
    digest: str
    groups: Mapping[str, str]


def blinded(
    frame: pd.DataFrame, personas: Path | None, *, shows_prompt: bool
) -> dict[int, MaskedReply]:
    """Return each reply of *frame* as a reader is shown it, by its place; *personas* is the
    project's folder of names. With *shows_prompt* the prompt is shown beside it, masked likewise.
    """
    mask = _mask(frame, personas)
    prompts: list[str | None] = [None] * len(frame)
    if shows_prompt and "prompt" in frame:
        prompts = [text if _is_text(text) else None for text in frame["prompt"].tolist()]
    classes = [by for by in design_of(frame).protected_classes if by in frame]
    masked = {}
    rows = zip(frame["reply"].tolist(), prompts, _rows(frame, classes), strict=True)
    for place, (reply, prompt, groups) in enumerate(rows):
        if isinstance(reply, str):
            shown = prompt and mask(prompt)
            digest = digest_of(reply, prompt)
            group_of = dict(zip(classes, groups, strict=True))
            masked[place] = MaskedReply(mask(reply), shown, digest, group_of)
    return masked


def _mask(frame: pd.DataFrame, personas: Path | None) -> Callable[[str], str]:
    """Return what takes names, pronouns and the words of groups out of the texts of *frame*."""
    names: dict[str, None] = {}
    for column in ("name", "first_name", "last_name"):
        if column in frame:
            names |= dict.fromkeys(filter(_is_text, frame[column].tolist()))
    language = design_of(frame).locale
    banks = NameBanks.load(personas, language)
    scrub = RuleScrubber(banks, _english_signals(language, personas), tuple(names))
    signals = signal_mask(signals_of(frame))
    without_telling: Callable[[str], str] = str
    if language is not None:
        without_telling = read_locale(language, personas).without_telling
    made: dict[str, str] = {}

    def mask(text: str) -> str:
        if text not in made:
            made[text] = without_telling(signals(scrub(text)))
        return made[text]

    return mask


def _english_signals(language: str | None, personas: Path | None) -> Signals:
    """Return the signals of *language* where it is English, whose rules scrub them; else those of
    English itself.
    """
    if is_english(language, personas):
        return Signals.load(personas, language)
    return Signals.load(personas)


def _rows(frame: pd.DataFrame, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the values of *columns* by row."""
    if not columns:
        return [()] * len(frame)
    return list(zip(*(frame[column].tolist() for column in columns), strict=True))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
