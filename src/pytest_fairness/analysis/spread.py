"""Spread within groups: whether one of them gets the lottery; a table to look at, never a verdict.

See ``docs/decisions/0242-ratios-and-margins-in-firms-and-strata.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_fairness.analysis.counts import as_rows
from pytest_fairness.analysis.reading import as_columns, groupings, read
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.arrays import Bools, Floats, Membership
from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.proportions import wilson

if TYPE_CHECKING:
    import pandas as pd

_GRADED = (OutcomeKind.NUMERIC, OutcomeKind.ORDINAL, OutcomeKind.NARRATIVE)


def analyze_spread(
    frame: Any,
    outcome: str | Callable[..., Any],
    by: str | Sequence[str],
    *,
    cluster: str | None = "name",
    block: str | None = "template",
    repeated: str | None = None,
    kind: str = "auto",
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Return how far *outcome* spreads within each group of *by*: nobody is judged by it.

    Two groups may be alike on average while one of them is treated at random. Of numbers the table
    has the standard deviation of each group, its blocks' means taken off, and as ``ratio`` how many
    times that of the other groups it is; of any outcome, where rows name the same cell
    (*repeated*, by default the column ``cell``), the share of cells asked more than once whose
    answers differ. Their intervals are, on ln, the jackknife over clusters with Student's t, and
    Wilson's of the cells.

    Args:
        frame, outcome, by, cluster, block, kind: as for ``analyze_disparity``.
        repeated: the column of what rows are repeated asks of.
        confidence: of the intervals.

    Returns:
        A row a group: ``by``, ``group``, ``n`` rows with an outcome, ``clusters``, ``sd``,
        ``ratio``, ``ratio_low``, ``ratio_high``, ``cells`` asked more than once, ``differ`` (a
        share), ``differ_low``, ``differ_high``; NaN where there is nothing to tell it from.

    Raises:
        FrameError: as for ``analyze_disparity``.
        UsageError: the outcome holds labels or yes and no, and no cell is asked more than once.
    """
    import pandas as pd

    table = as_rows(frame)
    reading = read(table, outcome, kind, None)
    if repeated is None and "cell" in table.columns:
        repeated = "cell"
    values = reading.values.values
    graded = reading.values.kind in _GRADED
    if not graded and repeated is None:
        raise UsageError(
            f"{reading.name!r} holds no numbers: its spread is how often repeated asks of the same "
            "cell differ; say with repeated= which column names the cell"
        )
    rows: list[dict[str, Any]] = []
    for called, design in groupings(table, as_columns(by), cluster, block):
        used = ~np.isnan(values) & ~design.refused & ~design.undetermined
        for place, group in enumerate(design.group.labels):
            here = used & (design.group.codes == place)
            row: dict[str, Any] = {"by": called, "group": group, "n": int(here.sum())}
            row["clusters"] = int(np.unique(design.cluster[here]).size)
            if graded:
                others = used & ~here
                row |= _relative_sd(values, design, (here, others), confidence)
            if repeated is not None:
                row |= _differing(values[here], table[repeated].to_numpy()[here], confidence)
            rows.append(row)
    return pd.DataFrame(rows)


class _LogSd(NamedTuple):
    """The log of a standard deviation, its variance by the jackknife, and how many clusters."""

    value: float
    variance: float
    clusters: int


def _relative_sd(
    values: Floats, design: Membership, rows: tuple[Bools, Bools], confidence: float
) -> dict[str, Any]:
    """Return the standard deviation of the first of *rows*, and its ratio to that of the others."""
    sds = [_log_sd(values[chosen], design, chosen) for chosen in rows]
    first, others = sds
    ratio = first.value - others.value
    df = max(first.clusters + others.clusters - 2, 0)
    t = float(t_quantile(np.array([df], dtype=np.float64), (1 + confidence) / 2)[0])
    half = t * np.sqrt(first.variance + others.variance)
    return {
        "sd": float(np.exp(first.value)),
        "ratio": float(np.exp(ratio)),
        "ratio_low": float(np.exp(ratio - half)),
        "ratio_high": float(np.exp(ratio + half)),
    }


def _log_sd(values: Floats, design: Membership, chosen: Bools) -> _LogSd:
    """Return the log of the standard deviation of *values* within group and block, and its variance,
    one cluster left out at a time; NaN of fewer than two clusters, and where nothing varies.
    """
    cells = design.group.codes[chosen] * design.blocks + design.block[chosen]
    _, cell = np.unique(cells, return_inverse=True)
    if not cell.size:
        return _LogSd(np.nan, np.nan, 0)
    size = np.bincount(cell)
    residuals = values - (np.bincount(cell, values) / size)[cell]
    _, cluster = np.unique(design.cluster[chosen], return_inverse=True)
    squares = np.bincount(cluster, residuals**2)
    rows = np.bincount(cluster)
    clusters = rows.size
    df = values.size - size.size
    left = df - rows
    if clusters < 2 or left.min() < 1 or not squares.sum():
        return _LogSd(np.nan, np.nan, clusters)
    with np.errstate(divide="ignore"):
        without = 0.5 * np.log((squares.sum() - squares) / left)
    variance = (clusters - 1) / clusters * float(np.square(without - without.mean()).sum())
    return _LogSd(0.5 * float(np.log(squares.sum() / df)), variance, clusters)


def _differing(values: Floats, cells: Any, confidence: float) -> dict[str, Any]:
    """Return how many *cells* were asked more than once, and the share whose *values* differ."""
    import pandas as pd

    asked = pd.Series(values).groupby(cells).agg(["size", "nunique"])
    again = asked[asked["size"] > 1]
    number = float(len(again))
    differ = float((again["nunique"] > 1).sum())
    z = t_quantile(np.array([np.inf]), (1 + confidence) / 2)
    low, high = wilson(np.array([differ]), np.array([number]), z)
    share = np.nan
    if number:
        share = differ / number
    return {
        "cells": int(number),
        "differ": share,
        "differ_low": float(low[0]),
        "differ_high": float(high[0]),
    }
