"""Judges: outcomes without a closed answer, read by a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.scorers.reading_turn import Meaning, ReadingTask
from pytest_fairness.scorers.scorer import Score, Scorer

_NO_LETTERS = re.compile(r"[\W_]+")
_LONGEST_NAME = 40
#: Types of what all labels stand for, the narrowest first, and the kind of outcome that they make.
_KINDS: tuple[tuple[type | tuple[type, ...], OutcomeKind], ...] = (
    (bool, OutcomeKind.BINARY),
    ((int, float), OutcomeKind.ORDINAL),
    (str, OutcomeKind.CATEGORICAL),
)


class AsksAModel:
    """The function of a judge: a text alone cannot be judged, since a model has to be asked.
    ``digest`` changes with what it is asked.
    """

    needs = (
        "a judge asks a model, which a fairness test alone can do: use it as outcome= in a test, "
        "and name the reader with fairness_reader in the ini file, or with judge(…, reader=…)"
    )

    def __init__(self, digest: str) -> None:
        self.digest = digest

    def __call__(self, reply: str) -> Score:  # noqa: ARG002
        raise UsageError(self.needs)


def judge(
    question: str,
    *,
    scale: tuple[int, int] | None = None,
    labels: Sequence[str] | Mapping[str, Meaning] = (),
    rubric: str = "",
    name: str | None = None,
    unit: str = "points",
    reader: str | None = None,
    second_reader: str | None = None,
    shows_prompt: bool = False,
    lower_is_worse: bool = True,
) -> Scorer:
    """Make a scorer by which a model answers *question* about each reply, blinded: names, pronouns
    and the words that convey a group are masked, and nothing tells whom it is about::

        warmth = judge("How warm is this letter to the person it is about?", scale=(1, 5))
        assert_no_disparity(trials, outcome=warmth, by="race_ethnicity")

    Give *scale*, the lowest and the highest whole number, or *labels*: two or more texts, or a
    mapping of them to numbers or to True and False. *rubric* says what they mean. *reader* is the
    endpoint that is asked, by default the project's ``fairness_reader``; *second_reader* reads too,
    and their agreement is reported. *shows_prompt* shows the prompt beside the reply, masked
    likewise. Question, rubric, options and reader are its version: another version is another
    outcome, and no baseline is compared over two.

    Raises UsageError for options that are none.
    """
    task = ReadingTask(
        question=question,
        labels=_scores(labels),
        scale=scale,
        rubric=rubric,
        shows_prompt=shows_prompt,
    )
    if second_reader is not None and reader is None:
        raise UsageError("second_reader= is compared with reader=: name both")
    kind, low, high = _kind(task)
    return Scorer(
        name=name or _NO_LETTERS.sub("_", question.lower()).strip("_")[:_LONGEST_NAME],
        score=AsksAModel(task.digest),
        kind=kind,
        unit=unit,
        low=low,
        high=high,
        lower_is_worse=lower_is_worse,
        masks_names=True,
        masks_signals=True,
        reading=task,
        readers=tuple(filter(None, (reader, second_reader))),
    )


def _scores(labels: Sequence[str] | Mapping[str, Meaning]) -> Mapping[str, Meaning]:
    """Return what each of *labels* stands for: itself, where nothing else is said."""
    if isinstance(labels, Mapping):
        return dict(labels)
    return dict(zip(labels, labels, strict=True))


def _kind(task: ReadingTask) -> tuple[OutcomeKind, float | None, float | None]:
    """Return the kind of the outcome of *task*, and the ends of its scale."""
    scores: Sequence[Any] = task.scale or tuple(task.labels.values())
    for types, kind in _KINDS:
        if all(isinstance(score, types) for score in scores):
            return kind, *_ends(kind, scores)
    raise UsageError(
        f"labels={dict(task.labels)!r:.200}: let all stand for numbers, or for yes and no"
    )


def _ends(kind: OutcomeKind, scores: Sequence[Any]) -> tuple[float, float] | tuple[None, None]:
    """Return the least and the most of *scores* on a scale; None for those of another *kind*."""
    if kind is not OutcomeKind.ORDINAL:
        return None, None
    return float(min(scores)), float(max(scores))
