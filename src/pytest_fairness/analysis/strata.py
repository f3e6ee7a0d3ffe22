"""Comparison within strata: where columns say what may legitimately differ, an outcome is compared
as it is and, beside that, between people who are alike in these columns.

See ``docs/decisions/0251-strata-beside-the-plain-figure.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.counts import as_rows, countable
from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.equivalence import analyze_equivalence
from pytest_fairness.analysis.four_fifths import analyze_four_fifths
from pytest_fairness.analysis.parts import BINS
from pytest_fairness.analysis.reading import as_columns, column_of
from pytest_fairness.errors import FrameError, UsageError, refuse_twice
from pytest_fairness.model import Finding
from pytest_fairness.statistics.arrays import (
    DEFAULT_BLOCK,
    column_names,
    require_frame,
    row_weights,
)
from pytest_fairness.words import count, listed, percent

if TYPE_CHECKING:
    import pandas as pd

_MOST_BINS = 100
DISPARITY = "disparity"
#: Analyses whose comparison has strata.
_ANALYSES: Mapping[str, Callable[..., Finding]] = {
    DISPARITY: analyze_disparity,
    "four_fifths": analyze_four_fifths,
    "equivalence": analyze_equivalence,
}


def analyze_within(
    table: Any,
    outcome: str | Callable[..., Any],
    by: str | Sequence[str],
    *,
    within: str | Sequence[str],
    bins: int = BINS,
    cluster: str | None = "name",
    block: str | None = None,
    alpha: float = 0.05,
    analysis: str = DISPARITY,
    **arguments: Any,
) -> tuple[Finding, Finding]:
    """Compare *outcome* between all pairs of groups of *by*, as it is and within strata of
    *within*, the two as one family at *alpha*.

    Each is judged at alpha / 2 by :func:`pytest_fairness.analyze_disparity`, or as *analysis* says;
    the strata are its blocks (Cochran–Mantel–Haenszel for yes and no, van Elteren for numbers,
    Mantel and Haenszel's ratio of rates for four fifths). The second stands
    beside the first, never in its place. What the columns of *within* hold may itself be the result
    of unequal treatment, which no figure shows.

    Args:
        table: one row a decision, of pandas or another engine, the path of files, or
            :class:`~pytest_fairness.RowCounts` that hold the columns of *within*.
        outcome, by, cluster: as for ``analyze_disparity``.
        within: the columns in which people have to be alike to be compared: labels as they are,
            numbers in quantile *bins* where they have more than twice as many values.
        block: a further column within which both are compared.
        analysis: ``disparity``, ``four_fifths`` or ``equivalence``; error rates have *within* of
            their own (``analyze_error_rates``).
        arguments: further ones of that analysis, shared by both.

    Returns:
        The finding on the plain outcome, and that within strata.

    Raises:
        FrameError: a column is missing, or has a row without a value; or no stratum holds two
            groups.
        UsageError: an argument is out of range, or *within* names what is compared.
    """
    columns = column_names(within)
    each = arguments.get("each")
    frame = table_of_strata(table, outcome, by, columns, cluster, block, each)
    given = {**arguments, "cluster": cluster, "block": block, "alpha": alpha / 2}
    analyze = _analysis_of(analysis)
    plain = analyze(frame, outcome, by, **given)
    strata: dict[str, Any] = {"within": columns, "bins": bins, "analysis": analysis}
    stratified = analyze_strata(frame, outcome, by, **strata, **given)
    return in_one_family(plain, stratified, columns)


def analyze_strata(
    frame: Any,
    outcome: str | Callable[..., Any],
    by: str | Sequence[str],
    *,
    within: str | Sequence[str],
    bins: int = BINS,
    cluster: str | None = "name",
    block: str | None = None,
    analysis: str = DISPARITY,
    **arguments: Any,
) -> Finding:
    """Return the second of the two findings of :func:`analyze_within` by itself, at the level that
    is among the *arguments*. Raises as that does.
    """
    analyze = _analysis_of(analysis)
    columns = column_names(within)
    classes = as_columns(by)
    each = arguments.get("each")
    table = table_of_strata(frame, outcome, by, columns, cluster, block, each)
    if not 2 <= bins <= _MOST_BINS:
        raise UsageError(f"bins={bins!r}: give a number from 2 to {_MOST_BINS}")
    strata = {column: stratum_labels(table, column, bins) for column in columns}
    if block in table.columns or block not in (None, DEFAULT_BLOCK):
        strata[str(block)] = column_of(table, str(block), "block")
    name = " × ".join(strata)
    stratified = table.assign(**{name: _joined(strata)})
    alone = _share_alone(stratified, name, classes)
    if alone == 1:
        raise FrameError(
            f"no stratum of {listed(columns)} holds two groups of {', '.join(classes)}: nobody "
            "there can be compared"
        )
    if analyze is analyze_four_fifths:
        arguments["_in_strata"] = True
    finding = analyze(stratified, outcome, by, cluster=cluster, block=name, **arguments)
    return replace(
        finding,
        sentence=f"Within strata of {listed(columns)}: {finding.sentence}",
        notes=(*finding.notes, *notes_on_bins(table, columns, bins), *_of_alone(alone)),
    )


def _analysis_of(name: str) -> Callable[..., Finding]:
    """Return the analysis called *name*. Raises UsageError where it compares no strata."""
    if name not in _ANALYSES:
        raise UsageError(f"analysis={name!r}: it is one of {listed(_ANALYSES)}")
    return _ANALYSES[name]


def in_one_family(
    plain: Finding, stratified: Finding, within: Sequence[str]
) -> tuple[Finding, Finding]:
    """Return the *plain* finding and that within strata, each with what is to be known of the
    other.
    """
    level = plain.family["alpha"]
    shared = f"one of two comparisons that share their level as one family: at {level:g} each"
    plain, stratified = (
        replace(finding, notes=(*finding.notes, shared)) for finding in (plain, stratified)
    )
    return with_each_other(plain, stratified, within)


def with_each_other(
    plain: Finding, stratified: Finding, within: Sequence[str]
) -> tuple[Finding, Finding]:
    """Return the *plain* finding and that within strata, each with the verdict of the other."""
    other = f"within strata of {listed(within)} it is {stratified.verdict}"
    plain_verdict = f"without strata it is {plain.verdict}"
    return (
        replace(plain, notes=(*plain.notes, other)),
        replace(stratified, notes=(*stratified.notes, plain_verdict)),
    )


def table_of_strata(
    table: Any,
    outcome: str | Callable[..., Any],
    by: str | Sequence[str],
    columns: Sequence[str],
    cluster: str | None,
    block: str | None,
    each: str | None,
) -> pd.DataFrame:
    """Return *table* as pandas has it, as counts where it is reduced, with the *columns* of its
    strata. Raises UsageError for strata that cannot be, FrameError where a row has none.
    """
    classes = as_columns(by)
    compared = (*classes, getattr(outcome, "name", outcome), cluster, block, each)
    check_strata(columns, compared)
    counted = countable(table, outcome, classes, cluster, block, within=(*columns, each))
    frame = _with_columns(counted, table, columns)
    for column in columns:
        refuse_missing(frame, column, "stratum")
    return frame


def check_strata(columns: Sequence[str], compared: Sequence[object]) -> None:
    """Raise UsageError for strata that cannot be."""
    if not columns:
        raise UsageError("within= is empty: name the columns in which people have to be alike")
    refuse_twice("within: the column", columns)
    for column in columns:
        if column in compared:
            raise UsageError(
                f"within={column!r} is compared, or compared within, already: strata are of other "
                "columns"
            )


def _with_columns(counted: Any, table: Any, columns: Sequence[str]) -> pd.DataFrame:
    """Return *table* as it is *counted*; as rows where that lacks one of the *columns*."""
    frame = require_frame(counted)
    for column in columns:
        if column not in frame.columns:  # counts that were made without the strata
            frame = require_frame(as_rows(table))
        column_of(frame, column, "stratum")
    return frame.reset_index(drop=True)


def refuse_missing(frame: pd.DataFrame, column: str, noun: str) -> None:
    """Raise FrameError where a row has no stratum, or what its *noun* is."""
    missing = frame[column].isna()
    if missing.any():
        number = int(row_weights(frame)[missing.to_numpy()].sum())
        raise FrameError(
            f"column {column!r} is missing in {count(number, 'row')}, which belong to no {noun}: "
            "fill it in, as with 'not known', or leave these rows out and say so"
        )


def _is_binned(frame: pd.DataFrame, column: str, bins: int) -> bool:
    """Return whether *column* is of numbers with so many values that they are binned."""
    import pandas as pd

    values = frame[column]
    if pd.api.types.is_bool_dtype(values.dtype) or not pd.api.types.is_numeric_dtype(values.dtype):
        return False
    return bool(values.nunique() > 2 * bins)


def stratum_labels(frame: pd.DataFrame, column: str, bins: int) -> pd.Series[Any]:
    """Return the stratum of each row in *column*: its value, or the bin of a number, as text."""
    if _is_binned(frame, column, bins):
        return _edges(frame, column, bins).astype(str)
    return frame[column]


def _joined(strata: Mapping[str, pd.Series[Any]]) -> pd.Series[Any]:
    """Return what each row is called by all *strata*: ``income=high, branch=north``; by a single
    one, its value.
    """
    if len(strata) == 1:
        return next(iter(strata.values()))
    named = [f"{column}=" + labels.astype(str) for column, labels in strata.items()]
    joined, *further = named
    for labels in further:
        joined = joined + ", " + labels
    return joined


def _edges(frame: pd.DataFrame, column: str, bins: int) -> pd.Series[Any]:
    """Return the quantile bin of each row; the quantiles are those of the rows that a count stands
    for.
    """
    import numpy as np
    import pandas as pd

    values = frame[column].to_numpy(dtype=np.float64)
    weight = row_weights(frame)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    # As np.quantile of all rows: between the two whose ranks are next to the share.
    rank = np.linspace(0, 1, bins + 1) * (reached[-1] - 1)
    below, above = (
        values[order][np.searchsorted(reached, edge, side="right")]
        for edge in (np.floor(rank), np.ceil(rank))
    )
    part = rank - np.floor(rank)
    between = np.where(part < 0.5, below, above)
    edges = between + (above - below) * (part - (part >= 0.5))
    cut = list(map(float, np.unique(edges)))
    return pd.cut(frame[column].astype(float), cut, include_lowest=True, precision=6)


def _share_alone(frame: pd.DataFrame, stratum: str, classes: Sequence[str]) -> float:
    """Return the share of rows whose stratum holds one group alone."""
    import pandas as pd

    weight = pd.Series(row_weights(frame), index=frame.index)
    groups = frame.groupby(list(classes), dropna=False, sort=False).ngroup()
    alone = groups.groupby(frame[stratum]).transform("nunique") == 1
    return float(weight[alone].sum() / weight.sum())


def notes_on_bins(frame: pd.DataFrame, columns: Sequence[str], bins: int) -> list[str]:
    """Return the note on numbers that stand in bins."""
    notes = []
    for column in columns:
        if _is_binned(frame, column, bins):
            span = f"{frame[column].min():g} to {frame[column].max():g}"
            notes.append(f"{column} ({span}) stands in {bins} bins of equally many rows")
    return notes


def _of_alone(share: float) -> list[str]:
    """Return the note on rows that have nobody beside them to be compared with."""
    if not share:
        return []
    return [f"{percent(share)} of the rows stand in a stratum of one group alone: they say nothing"]
