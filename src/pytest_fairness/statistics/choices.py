"""Pairwise choices read off a table: who was listed first, who second, and which of the two was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pytest_fairness.errors import FrameError
from pytest_fairness.statistics.arrays import (
    DEFAULT_BLOCK,
    DEFAULT_CLUSTER,
    Bools,
    Coded,
    Floats,
    Ints,
    code,
    flags,
    require_column,
    require_frame,
    row_name,
)

FIRST, SECOND, NEITHER, UNSCORED, REFUSED = 1, 0, -1, -2, -3


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Pairwise choices, one entry a trial.

    ``first`` and ``second`` are codes into ``labels``; ``outcome`` is FIRST or SECOND (the one chosen),
    NEITHER, UNSCORED (no choice could be read) or REFUSED. ``listed`` says whether the order of listing is
    known. ``clusters`` has one column of codes (the name pair), two (the first and the second candidate's
    name, of one numbering), or none where each row stands for itself. ``block`` are codes of the crossed
    block columns, and ``levels`` each block column by itself.
    """

    labels: tuple[str, ...]
    first: Ints
    second: Ints
    outcome: Ints
    listed: bool
    clusters: tuple[Ints, ...]
    cluster_name: str | None
    block: Ints
    levels: dict[str, Coded]

    @property
    def decided(self) -> Bools:
        return self.outcome >= 0

    def take(self, rows: Bools) -> Choices:
        """The choices of *rows* only."""
        return Choices(
            labels=self.labels,
            first=self.first[rows],
            second=self.second[rows],
            outcome=self.outcome[rows],
            listed=self.listed,
            clusters=tuple(codes[rows] for codes in self.clusters),
            cluster_name=self.cluster_name,
            block=self.block[rows],
            levels={name: Coded(level.codes[rows], level.labels) for name, level in self.levels.items()},
        )

    def wins(self) -> tuple[Floats, Floats]:
        """Times each group was chosen, and decided trials it stood in (length G)."""
        done = self.decided
        size = len(self.labels)
        won = np.where(self.outcome == FIRST, self.first, self.second)[done]
        shown = np.bincount(self.first[done], minlength=size) + np.bincount(self.second[done], minlength=size)
        return np.bincount(won, minlength=size).astype(np.float64), shown.astype(np.float64)


def read_choices(
    frame: pd.DataFrame,
    *,
    first: str,
    second: str,
    chosen: str,
    neither: str,
    cluster: str | tuple[str, str] | None,
    block: Sequence[str],
) -> Choices:
    """Read pairwise choices; see :func:`pytest_fairness.analyze_preference` for the columns.

    Raises FrameError, naming column and row, for a missing column, a pair of one group with itself, a
    choice that is neither of the two candidates nor *neither* nor missing, duplicate trials, or fewer than
    two groups.
    """
    frame = require_frame(frame)
    listed_first, listed_second = (
        code(frame, first, "first candidate"),
        code(frame, second, "second candidate"),
    )
    labels = tuple(sorted({*listed_first.labels, *listed_second.labels}))
    one = _recode(listed_first, labels)
    two = _recode(listed_second, labels)
    if np.any(one == two):
        where = row_name(frame, int(np.argmax(one == two)))
        raise FrameError(
            f"columns {first!r} and {second!r}, {where}: both candidates are of the same group "
            f"({labels[int(one[np.argmax(one == two)])]!r}); a choice between them says nothing about groups"
        )
    levels = {column: code(frame, column, "block") for column in block}
    choices = Choices(
        labels=labels,
        first=one,
        second=two,
        outcome=_outcomes(frame, chosen, neither, labels, (one, two)),
        listed=True,
        clusters=_clusters(frame, cluster),
        cluster_name=" and ".join(cluster) if isinstance(cluster, tuple) else cluster,
        block=cross([level.codes for level in levels.values()], len(frame)),
        levels=levels,
    )
    _require_distinct(frame, choices)
    return choices


def block_columns(frame: pd.DataFrame, block: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns of *block*; the default one, ``template``, may be missing."""
    if block is None or (block == DEFAULT_BLOCK and block not in frame.columns):
        return ()
    return (block,) if isinstance(block, str) else tuple(block)


def cross(columns: Sequence[Ints], rows: int) -> Ints:
    """One code a combination of *columns* (each of length *rows*)."""
    codes = np.zeros(rows, dtype=np.intp)
    for column in columns:
        codes = np.unique(codes * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1].astype(np.intp)
    return codes


def _recode(coded: Coded, labels: tuple[str, ...]) -> Ints:
    place = np.array([labels.index(label) for label in coded.labels], dtype=np.intp)
    return np.asarray(place[coded.codes], dtype=np.intp)


def _outcomes(
    frame: pd.DataFrame, chosen: str, neither: str, labels: tuple[str, ...], candidates: tuple[Ints, Ints]
) -> Ints:
    first, second = candidates
    series = require_column(frame, chosen, "choice")
    missing = series.isna().to_numpy()
    refused = flags(frame, "refused")
    undetermined = flags(frame, "undetermined")
    codes = {label: at for at, label in enumerate(labels)}
    outcome = np.full(len(frame), UNSCORED, dtype=np.intp)
    for position, value in enumerate(series.to_numpy(dtype=object)):
        if refused[position]:
            outcome[position] = REFUSED
        elif not missing[position] and not undetermined[position]:
            text = str(value)
            at = codes.get(text, -1)
            if at >= 0 and at in (first[position], second[position]):
                outcome[position] = FIRST if at == first[position] else SECOND
            elif text == neither:
                outcome[position] = NEITHER
            else:
                pair = f"{labels[first[position]]!r} or {labels[second[position]]!r}"
                raise FrameError(
                    f"column {chosen!r}, {row_name(frame, position)}: the choice is {text[:60]!r}, but it "
                    f"was between {pair}; use one of them, {neither!r}, or a missing value where none could "
                    "be read"
                )
    return outcome


def _clusters(frame: pd.DataFrame, cluster: str | tuple[str, str] | None) -> tuple[Ints, ...]:
    if cluster is None:
        return ()
    if cluster == DEFAULT_CLUSTER and cluster in frame.columns and frame[cluster].isna().all():
        return (np.zeros(len(frame), dtype=np.intp),)  # labels without names: one unit, whatever it is called
    names = (cluster,) if isinstance(cluster, str) else cluster
    for name in names:
        if name not in frame.columns:
            raise FrameError(
                f"the frame has no column {name!r} for the cluster (the pair of names or résumés that was "
                "compared): name that column with cluster=…, both names' columns as cluster=(…, …), or pass "
                "cluster=None if every row stands for itself"
            )
    columns = [code(frame, name, "cluster") for name in names]
    if len(columns) == 1:
        return (columns[0].codes,)
    labels = tuple(sorted({*columns[0].labels, *columns[1].labels}))
    return tuple(_recode(column, labels) for column in columns)


def _require_distinct(frame: pd.DataFrame, choices: Choices) -> None:
    """Two rows for one trial would count its evidence twice."""
    if "repetition" not in frame.columns or not choices.clusters:
        return
    repetition = pd.factorize(frame["repetition"])[0].astype(np.intp) + 1
    key = cross([choices.first, choices.second, choices.block, *choices.clusters, repetition], len(frame))
    if "arm" in frame.columns:
        key = cross([key, pd.factorize(frame["arm"])[0].astype(np.intp) + 1], len(frame))
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(key[order][1:] == key[order][:-1])
    if same.size:
        one, two = sorted(order[[same[0], same[0] + 1]].tolist())
        raise FrameError(
            f"column 'repetition', {row_name(frame, two)} repeats {row_name(frame, one)} (same candidates, "
            "order, cluster, block and repetition): drop one, or name what tells them apart with block=[…]"
        )
