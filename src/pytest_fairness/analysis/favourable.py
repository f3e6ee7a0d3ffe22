"""Favourable decisions, read off a table: who got the loan, the interview, the job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.statistics.arrays import Bools, Floats, refuse_text_numbers, row_name

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.scorers.outcome import Outcome


def read_decisions(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any] | Outcome,
    favourable: object,
    scorers: Mapping[str, Any] | None,
) -> tuple[str, Floats, Bools]:
    """The outcome's name, 1 where it is favourable, and where there is an outcome.

    Raises UsageError if *favourable* never occurs and the outcome is not yes or no, and FrameError
    for a value among yes and no that is neither: it would silently count as unfavourable.
    """
    from pytest_fairness.scorers import outcome_of

    outcome_read = outcome_of(frame, outcome, scorers)
    series = outcome_read.values
    present = ~series.isna().to_numpy()
    if callable(favourable):
        chosen = [
            held and bool(favourable(value)) for value, held in zip(series, present, strict=True)
        ]
        return outcome_read.name, np.array(chosen, dtype=np.float64), present
    wanted = [favourable]
    if isinstance(favourable, Collection) and not isinstance(favourable, str):
        wanted = list(favourable)
    yes = series.isin(wanted).to_numpy(dtype=np.bool_, na_value=False) & present
    if yes.any():
        if favourable is True:
            _refuse_neither(frame, outcome_read.name, series, present)
    else:
        if favourable is True:
            refuse_text_numbers(outcome_read.name, series)
        _refuse_absent(favourable, outcome_read.name, series[present])
    return outcome_read.name, yes.astype(np.float64), present


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
        seen = ", ".join(repr(label) for label in labels[:8])
        raise UsageError(
            f"favourable={favourable!r} never occurs in {name!r}, which holds {seen}: name the "
            "value that is the favourable decision"
        )
