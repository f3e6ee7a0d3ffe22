"""Favourable decisions, read off a table: who got the loan, the interview, the job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_fairness.analysis.reading import RowReaders, given_labels, read_by_model
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.statistics.arrays import Bools, Floats, Ints, refuse_text_numbers, row_name

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.scorers.outcome import Outcome


class Decisions(NamedTuple):
    """Decisions of a table by the *name* of their outcome: 1 in ``yes`` where it is favourable, and
    where there is one (``present``).
    """

    name: str
    yes: Floats
    present: Bools
    readers: RowReaders

    def take(self, rows: Ints, /) -> Decisions:
        """Return the decisions on some *rows* of the table, by their places."""
        return Decisions(self.name, self.yes[rows], self.present[rows], self.readers.take(rows))


def read_decisions(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any] | Outcome,
    favourable: object,
    scorers: Mapping[str, Any] | None,
    labels: str | None = None,
) -> Decisions:
    """Return the decisions of *outcome*, and those by the column of *labels*.

    Raises UsageError if *favourable* never occurs and the outcome is not yes or no, and FrameError
    for a value among yes and no that is neither: it would silently count as unfavourable; so would
    a label that is no answer of the outcome.
    """
    from pytest_fairness.scorers import outcome_of

    outcome_read = outcome_of(frame, outcome, scorers)
    series = outcome_read.values
    yes, present = _chosen(series, favourable)
    if not callable(favourable):
        _refuse_unlike(frame, outcome_read.name, series, favourable, (yes, present))
    given = given_labels(frame, outcome_read, labels)
    of_person = None
    if given is not None:
        label, labelled = _chosen(given, favourable)
        if not callable(favourable):
            _refuse_unknown(given[labelled & ~label], series[present])
        of_person = np.where(labelled, label, np.nan)
    readers = RowReaders(labels=of_person, by_model=read_by_model(outcome_read))
    return Decisions(outcome_read.name, yes.astype(np.float64), present, readers)


def _chosen(series: pd.Series[Any], favourable: object) -> tuple[Bools, Bools]:
    """Return which values are *favourable*, and which are there."""
    present = ~series.isna().to_numpy()
    if callable(favourable):
        chosen = [
            held and bool(favourable(value)) for value, held in zip(series, present, strict=True)
        ]
        return np.array(chosen, dtype=np.bool_), present
    wanted = [favourable]
    if isinstance(favourable, Collection) and not isinstance(favourable, str):
        wanted = list(favourable)
    return series.isin(wanted).to_numpy(dtype=np.bool_, na_value=False) & present, present


def _refuse_unlike(
    frame: pd.DataFrame,
    name: str,
    series: pd.Series[Any],
    favourable: object,
    chosen: tuple[Bools, Bools],
) -> None:
    """Raise an error for decisions of which *favourable* is no answer, or that are neither."""
    yes, present = chosen
    if not yes.any():
        if favourable is True:
            refuse_text_numbers(name, series)
        _refuse_absent(favourable, name, series[present])
    elif favourable is True:
        _refuse_neither(frame, name, series, present)


def _refuse_unknown(labels: pd.Series[Any], answers: pd.Series[Any]) -> None:
    """Raise FrameError for *labels* against a decision that are no answer of the outcome."""
    unknown = labels[~labels.isin([*answers.drop_duplicates().tolist(), False])]
    if len(unknown):
        raise FrameError(
            f"labels hold {unknown.drop_duplicates().tolist()[:3]}, which the outcome never is: "
            "correct them, or make them missing"
        )


def _refuse_neither(frame: pd.DataFrame, name: str, series: pd.Series[Any], present: Bools) -> None:
    """Raise FrameError for the first value that is neither true nor false."""
    values = series.to_numpy(dtype=object)
    for row in np.flatnonzero(present).tolist():
        value = values[row]
        is_number = isinstance(value, (bool, np.bool_, int, float, np.number))
        if not is_number or value not in (0, 1):
            raise FrameError(
                f"column {name!r}, {row_name(frame, row)}: {value!r} is neither True nor False; "
                "correct it, make it a missing value, or name the favourable decision with "
                "favourable=…"
            )


def _refuse_absent(favourable: object, name: str, answers: pd.Series[Any]) -> None:
    """Raise UsageError where no answer is *favourable* and the answers are not yes and no."""
    labels = answers.drop_duplicates().tolist()
    if any(label not in (0, 1) for label in labels):
        seen = ", ".join(map(repr, labels[:8]))
        raise UsageError(
            f"favourable={favourable!r} never occurs in {name!r}, which holds {seen}: name the "
            "value that is the favourable decision"
        )
