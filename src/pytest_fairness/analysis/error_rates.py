"""Error-rate parity: where a column says what was right, the rates at which a yes/no decision errs
and those at which it can be trusted, each compared between the groups.

See ``docs/decisions/0228-error-rates-as-one-family.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.counts import countable
from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.reading import Reading, as_columns, column_of, read
from pytest_fairness.analysis.several_outcomes import shared_by
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import ALARMS, Finding, OutcomeKind
from pytest_fairness.statistics.arrays import Floats, counted_rows, require_frame
from pytest_fairness.words import count

if TYPE_CHECKING:
    import pandas as pd

_BOTH = (
    "the share for whom it was right differs between the groups, so that error rates and "
    "predictive values cannot all be equal, whoever decides, unless nobody errs (Chouldechova "
    "2017): which of them have to be is for people to say"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ErrorRate:
    """A rate by its ``name``: how often ``counted`` is yes among the rows where ``given`` has the
    value ``where``.
    """

    name: str
    given: Floats
    where: float
    counted: Floats
    lower_is_worse: bool


def analyze_error_rates(
    table: Any,
    outcome: str,
    by: str | Sequence[str],
    *,
    truth: str,
    cluster: str | None = "name",
    block: str | None = "template",
    alpha: float = 0.05,
    correction: str = "bonferroni",
    positive: object = None,
    positive_truth: object = None,
    lower_is_worse: bool | None = None,
    favourable: object = None,
) -> tuple[Finding, ...]:
    """Compare true- and false-positive rates and both predictive values between all pairs of groups
    of *by*, the four as one family at *alpha*.

    Each is a yes/no outcome on the rows that it is about (those where *truth* is no, for the
    false-positive rate), judged at alpha / 4 by :func:`pytest_fairness.analyze_disparity`. A lower
    predictive value is the worse one; of the two others it is as *lower_is_worse* has it for the
    outcome. Where the share for whom *truth* is yes differs between the groups, a note says that
    the four cannot all be equal.

    Args:
        table: one row a decision, of pandas or another engine, the path of files, or
            :class:`~pytest_fairness.RowCounts` that hold *truth*.
        outcome: the column of the decision, yes or no.
        by, cluster, block, correction: as for ``analyze_disparity``.
        truth: the column of what turned out to be right, yes or no; rows without are left out, and
            counted in a note.
        positive, positive_truth: the value of each column that is its yes; known for 0 and 1,
            yes and no, and words such as granted.
        lower_is_worse: whether a lower share of *positive* is the worse one; True by default, or as
            *favourable* says, the favourable value of the outcome.

    Raises:
        FrameError: a column is missing, holds more than two values, or nobody knows what was right.
        UsageError: an argument is out of range.
    """
    frame = countable(table, outcome, as_columns(by), cluster, block, truth)
    frame = require_frame(frame).reset_index(drop=True)
    if outcome == truth:
        raise UsageError(
            f"truth={truth!r} is the outcome itself: name the column of what was right"
        )
    if column_of(frame, truth, "truth").isna().all():
        raise FrameError(f"column {truth!r} is missing in every row: nobody knows what was right")
    decided = _yes_or_no(frame, outcome, "positive", positive)
    right = _yes_or_no(frame, truth, "positive_truth", positive_truth)
    if lower_is_worse is None:
        lower_is_worse = favourable is None or _is_yes(frame, decided, favourable)
    decided = replace(decided, lower_is_worse=lower_is_worse)
    has_truth = ~np.isnan(right.values.values)
    given: dict[str, Any] = {"cluster": cluster, "block": block, "correction": correction}
    notes = _left_out(frame, has_truth, truth)
    if analyze_disparity(frame[has_truth], truth, by, alpha=alpha, **given).verdict in ALARMS:
        notes = (*notes, _BOTH)
    rates = _error_rates(decided, right)
    names = [rate.name for rate in rates]
    findings = []
    for rate in rates:
        about = has_truth & (rate.given == rate.where)
        if not about.any():
            raise FrameError(f"no row has what the {rate.name} is about")
        finding = analyze_disparity(
            frame[about].assign(**{rate.name: rate.counted[about]}),
            rate.name,
            by,
            kind=OutcomeKind.BINARY,
            alpha=alpha / len(rates),
            lower_is_worse=rate.lower_is_worse,
            **given,
        )
        finding = shared_by(finding, names)
        findings.append(replace(finding, notes=(*finding.notes, *notes)))
    return tuple(findings)


def _yes_or_no(frame: pd.DataFrame, column: str, argument: str, positive: object) -> Reading:
    """Return *column* as 1 where it is *positive*, and 0 where it is the other value."""
    reading = read(frame, column, OutcomeKind.BINARY, None, favourable=positive)
    if reading.favourable is None:
        values = " and ".join(reading.values.categories)
        raise UsageError(f"{column!r} is {values}: say with {argument}= which of them is its yes")
    if reading.favourable == 1:
        return reading
    turned = replace(reading.values, values=1.0 - reading.values.values)
    return replace(reading, values=turned)


def _is_yes(frame: pd.DataFrame, decided: Reading, favourable: object) -> bool:
    """Return whether the *favourable* value of the outcome is its yes."""
    rows = (frame[decided.name] == favourable).to_numpy()
    if not rows.any():
        raise UsageError(f"favourable={favourable!r}: no value of {decided.name!r} is that")
    return bool(decided.values.values[rows][0] == 1)


def _error_rates(decided: Reading, right: Reading) -> tuple[_ErrorRate, ...]:
    """Return the four rates of a decision, in the order in which they are told."""
    outcome = decided.values.values
    truth = right.values.values
    names = [f"{decided.name} where {right.name} is {_answer(right, value)}" for value in (1, 0)]
    values = [f"{right.name} where {decided.name} is {_answer(decided, value)}" for value in (1, 0)]
    of_outcome = decided.lower_is_worse
    return (
        _ErrorRate(
            name=f"true-positive rate ({names[0]})",
            given=truth,
            where=1.0,
            counted=outcome,
            lower_is_worse=of_outcome,
        ),
        _ErrorRate(
            name=f"false-positive rate ({names[1]})",
            given=truth,
            where=0.0,
            counted=outcome,
            lower_is_worse=of_outcome,
        ),
        _ErrorRate(
            name=f"positive predictive value ({values[0]})",
            given=outcome,
            where=1.0,
            counted=truth,
            lower_is_worse=True,
        ),
        _ErrorRate(
            name=f"negative predictive value (not {values[1]})",
            given=outcome,
            where=0.0,
            counted=1.0 - truth,
            lower_is_worse=True,
        ),
    )


def _answer(reading: Reading, value: int) -> str:
    """Return how the table writes the *value* of a yes/no column."""
    if len(reading.values.categories) == 2:
        return str(reading.values.categories[value])
    if reading.favourable == 0:
        return ("1", "0")[value]
    return ("no", "yes")[value]


def _left_out(frame: pd.DataFrame, has_truth: Any, truth: str) -> tuple[str, ...]:
    """Return the note on rows of which nobody knows what was right."""
    weight = counted_rows(frame)
    number = int((~has_truth).sum())
    if weight is not None:
        number = int(weight[~has_truth].sum())
    if not number:
        return ()
    return (f"{count(number, 'row')} without {truth!r} left out: nobody knows what was right",)
