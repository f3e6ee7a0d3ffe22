"""Questions that a person is asked about a reply: those that a model would be asked, or for an
outcome without any the plain one of its kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple, Self, TypeAlias

from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, OutcomeKind
from pytest_fairness.scorers.reading_turn import Meaning, Other, ReadingTask

#: What a person read: a number, yes or no, or :data:`NONE`.
Label: TypeAlias = "float | bool | str"
NONE = "none"
"""The answer of a person about a reply that has no such outcome."""
_YES_NO = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)


class GivenLabels(NamedTuple):
    """Labels by the places of their rows in a table, and facts about the persons who gave them."""

    of_row: Mapping[int, Label]
    facts: Mapping[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabellingTask:
    """A *question* about a reply: the *options* of its answer, each with the score that it stands
    for, or any number from *low* to *high*.

    ``shows_prompt``: the prompt is shown beside the reply.
    """

    question: str
    options: Mapping[str, Meaning] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    rubric: str = ""
    shows_prompt: bool = False

    @classmethod
    def of_reading(cls, task: ReadingTask, kind: str | None) -> Self:
        """Return the question of *task*, which a model may be asked. Raises UsageError where the
        outcome is a label, which labels do not correct.
        """
        if task.scale is not None:
            low, high = map(float, task.scale)
            return cls(
                question=task.question,
                low=low,
                high=high,
                rubric=task.rubric,
                shows_prompt=task.shows_prompt,
            )
        options = dict(task.labels)
        if any(isinstance(score, str) for score in options.values()):
            raise _uncorrected(task.question)
        if kind == OutcomeKind.REFUSAL and True not in options.values():
            options[Other.DECLINES.value] = True
        return cls(
            question=task.question,
            options=options,
            rubric=task.rubric,
            shows_prompt=task.shows_prompt,
        )

    @classmethod
    def of_kind(cls, name: str, kind: str | None, low: float | None, high: float | None) -> Self:
        """Return the plain question about the outcome *name* of that *kind*. Raises UsageError for
        labels.
        """
        if kind == OutcomeKind.CATEGORICAL:
            raise _uncorrected(name)
        if kind in _YES_NO:
            return cls(
                question=f"Is it so, by this reply: {name.replace('_', ' ')}?",
                options={"yes": True, "no": False},
                shows_prompt=kind == OutcomeKind.REFUSAL,
            )
        return cls(
            question=f"Which number does this reply come to: {name.replace('_', ' ')}?",
            low=low,
            high=high,
        )

    @property
    def digest(self) -> str:
        """16 hex digits that change with the question and its answers."""
        options = [[option, repr(score)] for option, score in self.options.items()]
        parts = (self.question, options, self.low, self.high, self.rubric)
        return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _uncorrected(what: str) -> UsageError:
    return UsageError(
        f"{what!r} is answered by labels: a person's readings correct yes/no answers and numbers"
    )
