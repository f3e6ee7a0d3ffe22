"""Labels of persons in the project's folder ``labels/``, as a running test reads them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON
from pytest_fairness.runs.labels import (
    PersonLabel,
    agreement_of,
    first_labels,
    labels_file,
    read_labels,
)
from pytest_fairness.scorers.labelling import NONE, GivenLabels, Label, LabellingTask
from pytest_fairness.scorers.reading_turn import digest_of
from pytest_fairness.scorers.scorer import Scorer
from pytest_fairness.statistics.agreement import kappa

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class ProjectLabels:
    """The labels in a *folder*, which need not exist."""

    folder: Path

    def __call__(self, scorer: Scorer, frame: pd.DataFrame) -> GivenLabels | None:
        """Return the labels of the rows of *frame* for *scorer*, by their places; None where there
        are none. Raises UsageError for a file that cannot be read.
        """
        file = labels_file(self.folder, scorer.name)
        if not file.is_file() or "key" not in frame.columns:
            return None
        questions = _questions(scorer)
        labels = [label for label in read_labels(file) if label.question in questions]
        first = first_labels(labels)
        of_row: dict[int, Label] = {}
        for place, (key, reply) in enumerate(zip(frame["key"], frame["reply"], strict=True)):
            if isinstance(reply, str):
                label = first.get((key, digest_of(reply)))
                if label is not None:
                    of_row[place] = label.label
        if not of_row:
            return None
        return GivenLabels(of_row, _facts(labels, list(of_row.values())))


def _questions(scorer: Scorer) -> set[str]:
    """Return the digests of the questions whose answers are labels of *scorer*."""
    digests = set()
    try:
        if scorer.reading is not None:
            digests.add(LabellingTask.of_reading(scorer.reading, scorer.kind).digest)
        of_kind = LabellingTask.of_kind(scorer.name, scorer.kind, scorer.low, scorer.high)
        digests.add(of_kind.digest)
    except UsageError:
        pass  # answered by labels, which nothing corrects
    return digests


def _facts(labels: Sequence[PersonLabel], of_rows: Sequence[Label]) -> dict[str, JSON]:
    """Return who gave the *labels*, how many there are *of_rows*, in how many a person finds no
    outcome, and how far two persons agree.
    """
    pairs = agreement_of(labels)
    first = [str(pair[0]) for pair in pairs]
    others = [str(pair[1]) for pair in pairs]
    return {
        "who": sorted({label.who for label in labels}),
        "labels": len(of_rows),
        "none": sum(label == NONE for label in of_rows),
        "both": len(pairs),
        "agree": sum(map(operator.eq, first, others)),
        "kappa": kappa(first, others, ordered=False),
    }
