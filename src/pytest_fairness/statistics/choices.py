"""Choices read off a table: who was listed where, and who was chosen, of two candidates or of
several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

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
    column_names,
    cross,
    finite_numbers,
    first_repeat,
    flags,
    refuse,
    refuse_text_numbers,
    require_column,
    require_frame,
    row_name,
)
from pytest_fairness.statistics.clusters import all_pairs

FIRST, SECOND, NEITHER, UNSCORED, REFUSED = 1, 0, -1, -2, -3


def _coded_alike(frame: pd.DataFrame, columns: Sequence[str], what: str) -> list[Coded]:
    """The columns as codes of one numbering."""
    coded = [code(frame, column, what) for column in columns]
    labels = tuple(sorted({label for column in coded for label in column.labels}))
    places = {label: place for place, label in enumerate(labels)}
    return [
        Coded(
            np.array([places[label] for label in column.labels], dtype=np.intp)[column.codes],
            labels,
        )
        for column in coded
    ]


def block_columns(frame: pd.DataFrame, block: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns of *block*; the default one, ``template``, may be missing."""
    if block == DEFAULT_BLOCK and block not in frame.columns:
        return ()
    return column_names(block)


# ---------------------------------------------------------------- one of two


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Pairwise choices, one entry a trial.

    ``first`` and ``second`` are codes into ``labels``; ``outcome`` is FIRST or SECOND (the one
    chosen), NEITHER, UNSCORED (no choice could be read) or REFUSED; ``listed``: the order of
    listing is known. ``clusters`` has one column of codes (the name pair), two (either candidate's
    name, of one numbering), or none where each row stands for itself. ``block`` are codes of the
    crossed block columns, ``levels`` each of them by itself.
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

    @property
    def winner(self) -> Ints:
        """The group chosen, of each decided trial."""
        return np.where(self.outcome == FIRST, self.first, self.second)

    @property
    def listing(self) -> Ints:
        """One code an ordered pair of groups."""
        return cross([self.first, self.second], self.first.size)

    def stood(self, group: int) -> Bools:
        """Trials in which *group* was one of the candidates."""
        return np.asarray((self.first == group) | (self.second == group))

    def between(self, a: int, b: int) -> Bools:
        """Trials of *a* against *b*, in either order."""
        return np.asarray(self.stood(a) & self.stood(b))

    def take(self, rows: Bools) -> Choices:
        """The choices of *rows* only."""
        columns: dict[str, Any] = {
            name: getattr(self, name)[rows] for name in ("first", "second", "outcome", "block")
        }
        columns["levels"] = {
            name: Coded(level.codes[rows], level.labels) for name, level in self.levels.items()
        }
        return replace(self, **columns, clusters=tuple(codes[rows] for codes in self.clusters))

    def names_of(self, group: int) -> Ints | None:
        """The cluster that stood for *group*, of the trials it stood in; None where each row stands
        for itself.
        """
        if not self.clusters:
            return None
        return np.where(self.first == group, self.clusters[0], self.clusters[-1])[self.stood(group)]

    def wins(self) -> tuple[Floats, Floats]:
        """Times each group was chosen, and decided trials it stood in (length G)."""
        done = self.decided
        size = len(self.labels)
        shown = np.bincount(self.first[done], minlength=size) + np.bincount(
            self.second[done], minlength=size
        )
        return np.bincount(self.winner[done], minlength=size).astype(np.float64), shown.astype(
            np.float64
        )


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

    Raises FrameError, naming column and row, for a missing column, a pair of one group with itself,
    a choice that is neither of the two candidates nor *neither* nor missing, duplicate trials, or
    fewer than two groups.
    """
    frame = require_frame(frame)
    first_codes, two = _coded_alike(frame, [first, second], "candidate")
    same = first_codes.codes == two.codes
    if same.any():
        at = int(np.argmax(same))
        raise FrameError(
            f"columns {first!r} and {second!r}, {row_name(frame, at)}: both candidates are of the "
            "same group "
            f"({first_codes.labels[first_codes.codes[at]]!r}); a choice between them says nothing about groups"
        )
    series = require_column(frame, chosen, "choice")
    texts = series.astype(object).map(str).to_numpy(dtype=object)
    names = [np.array(side.labels, dtype=object)[side.codes] for side in (first_codes, two)]
    unread = series.isna().to_numpy() | flags(frame, "undetermined")
    kinds = [
        flags(frame, "refused"),
        unread,
        texts == names[0],
        texts == names[1],
        texts == neither,
    ]
    refuse(
        frame,
        chosen,
        ~np.logical_or.reduce(kinds),
        lambda at: (
            f"the choice is {texts[at][:60]!r}, but it was between {names[0][at]!r} or "
            f"{names[1][at]!r}; use one "
            f"of them, {neither!r}, or a missing value where none could be read"
        ),
    )
    levels = {column: code(frame, column, "block") for column in block}
    choices = Choices(
        labels=first_codes.labels,
        first=first_codes.codes,
        second=two.codes,
        outcome=np.select(kinds, [REFUSED, UNSCORED, FIRST, SECOND, NEITHER]).astype(np.intp),
        listed=True,
        clusters=_clusters(frame, cluster),
        cluster_name=" and ".join(cluster) if isinstance(cluster, tuple) else cluster,
        block=cross([level.codes for level in levels.values()], len(frame)),
        levels=levels,
    )
    if "repetition" in frame.columns and choices.clusters:
        others = [
            pd.factorize(frame[name])[0].astype(np.intp)
            for name in ("repetition", "arm")
            if name in frame
        ]
        twice = first_repeat(
            [first_codes.codes, two.codes, choices.block, *choices.clusters, *others]
        )
        if twice is not None:
            raise FrameError(
                f"column 'repetition', {row_name(frame, twice[1])} repeats "
                f"{row_name(frame, twice[0])} (same "
                "candidates, order, cluster, block and repetition): drop one, or name what tells "
                "them apart with "
                "block=[…]"
            )
    return choices


def _clusters(frame: pd.DataFrame, cluster: str | tuple[str, str] | None) -> tuple[Ints, ...]:
    if cluster is None:
        return ()
    if cluster == DEFAULT_CLUSTER and cluster in frame.columns and frame[cluster].isna().all():
        return (
            np.zeros(len(frame), dtype=np.intp),
        )  # labels without names: one unit, whatever it is called
    names = column_names(cluster)
    for name in names:
        if name not in frame.columns:
            raise FrameError(
                f"the frame has no column {name!r} for the cluster (the pair of names or résumés "
                "that was "
                "compared): name that column with cluster=…, both names' columns as cluster=(…, "
                "…), or pass "
                "cluster=None if every row stands for itself"
            )
    return tuple(column.codes for column in _coded_alike(frame, names, "cluster"))


# ---------------------------------------------------------------- one of several


@dataclass(frozen=True, slots=True, kw_only=True)
class Slates:
    """Trials with all G groups in each, as arrays of trials × groups (``labels`` in the order of
    the columns).

    ``place`` is the listed position from 0 (None where it is not known), ``rank`` the rank given (1
    best; None for choices), ``won`` the index of the chosen group of each trial, −1 where none was
    chosen.
    """

    labels: tuple[str, ...]
    won: Ints
    place: Ints | None
    rank: Floats | None
    cluster: Ints | None
    cluster_name: str | None
    block: Ints
    levels: dict[str, Coded]
    refused: Bools

    @property
    def decided(self) -> Bools:
        """Trials with a winner, or a whole ranking."""
        if self.rank is None:
            return self.won >= 0
        return np.asarray(~np.isnan(self.rank).any(axis=1), dtype=np.bool_)

    def as_pairs(self) -> Choices:
        """Each two groups of a trial as a pairwise choice: the one ranked better, or the winner
        over each of the others; neither where they tie, or both lost."""
        pairs = all_pairs(len(self.labels))
        trials = self.won.size
        count = pairs.first.size
        i = np.tile(pairs.first, trials)
        j = np.tile(pairs.second, trials)
        at = np.repeat(np.arange(trials), count)
        if self.place is None:
            ahead = np.ones(at.size, dtype=np.bool_)
        else:
            ahead = self.place[at, i] < self.place[at, j]
        first = np.where(ahead, i, j)
        second = np.where(ahead, j, i)
        if self.rank is None:
            won = self.won[at]
            gap = (first == won).astype(np.float64) - (second == won)
        else:
            gap = self.rank[at, second] - self.rank[at, first]
        outcome = np.select(
            [self.refused[at], ~self.decided[at], gap > 0, gap < 0],
            [REFUSED, UNSCORED, FIRST, SECOND],
            NEITHER,
        )
        return Choices(
            labels=self.labels,
            first=first,
            second=second,
            outcome=outcome.astype(np.intp),
            listed=self.place is not None,
            clusters=() if self.cluster is None else (self.cluster[at],),
            cluster_name=self.cluster_name,
            block=self.block[at],
            levels={
                name: Coded(level.codes[at], level.labels) for name, level in self.levels.items()
            },
        )


def read_slates(
    frame: pd.DataFrame,
    *,
    by: str,
    trial: str,
    chosen: str | None,
    rank: str | None,
    position: str | None,
    cluster: str | None,
    block: Sequence[str],
) -> Slates:
    """Read the long format: one row a candidate of a trial.

    Raises FrameError, naming column and row, where a trial lacks a group or has it twice, where two
    candidates of a trial are chosen or stand in the same position, or where cluster or block differ
    within a trial.
    """
    frame = require_frame(frame)
    groups = code(frame, by, "group")
    trials = code(frame, trial, "trial")
    if len(groups.labels) < 2:
        raise FrameError(f"column {by!r} holds one group only: a choice needs two")
    counts = np.zeros((len(trials.labels), len(groups.labels)), dtype=np.intp)
    np.add.at(counts, (trials.codes, groups.codes), 1)
    if (counts != 1).any():
        which, group = np.argwhere(counts != 1)[0].tolist()
        where = row_name(frame, int(np.argmax(trials.codes == which)))
        held = "is missing"
        if counts[which, group] != 0:
            held = f"stands {counts[which, group]} times"
        raise FrameError(
            f"columns {trial!r} and {by!r}, {where}: in trial {trials.labels[which]!r} the group "
            f"{groups.labels[group]!r} {held}; every group stands once in every trial of a choice "
            "among several"
        )
    at = np.lexsort((groups.codes, trials.codes)).reshape(
        counts.shape
    )  # the rows as trials × groups

    def reject(wrong: Bools, column: str, why: str) -> None:
        """Raise for the first of the *wrong* trials (or candidates), if there are any."""
        if wrong.any():
            place = np.argwhere(np.atleast_2d(wrong.T).T)[0]
            raise FrameError(f"column {column!r}, {row_name(frame, int(at[tuple(place)]))}: {why}")

    def one_a_trial(column: str, what: str) -> Coded:
        coded = code(frame, column, what)
        codes = coded.codes[at]
        reject(
            (codes != codes[:, :1]).any(axis=1),
            column,
            f"the {what} differs between the candidates of one trial",
        )
        return Coded(codes[:, 0], coded.labels)

    def numbers(column: str, what: str) -> Floats:
        series = require_column(frame, column, what)
        refuse_text_numbers(column, series, labels=False)
        numbers_, bad = finite_numbers(series)
        refuse(frame, column, bad, lambda at: f"{series.iloc[at]!r} is no {what}")
        return np.asarray(numbers_[at])

    refused = np.asarray(flags(frame, "refused")[at].any(axis=1), dtype=np.bool_)
    # A trial that was never answered has chosen nobody, whatever its columns hold.
    lost = refused | flags(frame, "undetermined")[at].any(axis=1)
    won = np.full(lost.size, -1, dtype=np.intp)
    place = None
    midrank = None
    if chosen is not None:
        require_column(frame, chosen, "choice")
        wins = flags(frame, chosen)[at]
        reject(wins.sum(axis=1) > 1, chosen, "more than one candidate of this trial is chosen")
        won = np.where(wins.any(axis=1) & ~lost, wins.argmax(axis=1), -1)
    if position is not None:
        listed = numbers(position, "position")
        reject(
            np.isnan(listed),
            position,
            "the position is missing; fill it in or leave position=… out",
        )
        same = (np.diff(np.sort(listed, axis=1), axis=1) == 0).any(axis=1)
        reject(same, position, "two candidates of this trial stand in the same position")
        place = listed.argsort(axis=1).argsort(axis=1)
    if rank is not None:
        given = numbers(rank, "rank")
        below = (given[:, None, :] < given[:, :, None]).sum(axis=2)
        ties = (given[:, None, :] == given[:, :, None]).sum(axis=2)
        unknown = np.isnan(given).any(axis=1) | lost
        midrank = np.where(unknown[:, None], np.nan, below + (ties + 1) / 2)
    levels = {name: one_a_trial(name, "block") for name in block}
    return Slates(
        labels=groups.labels,
        won=won,
        place=place,
        rank=midrank,
        cluster=None if cluster is None else one_a_trial(cluster, "cluster").codes,
        cluster_name=cluster,
        block=cross([level.codes for level in levels.values()], lost.size),
        levels=levels,
        refused=refused,
    )
