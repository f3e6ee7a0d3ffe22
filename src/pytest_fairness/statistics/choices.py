"""Choices read off a table: who was listed where, and who was chosen, of two candidates or of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
from pytest_fairness.statistics.clusters import all_pairs

FIRST, SECOND, NEITHER, UNSCORED, REFUSED = 1, 0, -1, -2, -3
_WRONG = -4


def cross(columns: Sequence[Ints], rows: int) -> Ints:
    """One code a combination of *columns* (each of length *rows*)."""
    codes = np.zeros(rows, dtype=np.intp)
    for column in columns:
        codes = np.unique(codes * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1].astype(np.intp)
    return codes


def recode(coded: Coded, labels: Sequence[str], among: Sequence[str]) -> Coded:
    """*coded*, whose labels are now called *labels*, as codes into the sorted *among*."""
    places = tuple(sorted(set(among)))
    return Coded(np.array([places.index(label) for label in labels], dtype=np.intp)[coded.codes], places)


def block_columns(frame: pd.DataFrame, block: str | Sequence[str] | None) -> tuple[str, ...]:
    """The columns of *block*; the default one, ``template``, may be missing."""
    if block is None or (block == DEFAULT_BLOCK and block not in frame.columns):
        return ()
    return (block,) if isinstance(block, str) else tuple(block)


# ---------------------------------------------------------------- one of two


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
        return replace(
            self,
            first=self.first[rows],
            second=self.second[rows],
            outcome=self.outcome[rows],
            clusters=tuple(codes[rows] for codes in self.clusters),
            block=self.block[rows],
            levels={name: Coded(level.codes[rows], level.labels) for name, level in self.levels.items()},
        )

    def names_of(self, group: int) -> Ints | None:
        """The cluster that stood for *group*, of the trials it stood in; None where each row stands for itself."""
        here = self.stood(group)
        if not self.clusters:
            return None
        return np.where(self.first == group, self.clusters[0], self.clusters[-1])[here]

    def wins(self) -> tuple[Floats, Floats]:
        """Times each group was chosen, and decided trials it stood in (length G)."""
        done, size = self.decided, len(self.labels)
        shown = np.bincount(self.first[done], minlength=size) + np.bincount(self.second[done], minlength=size)
        return np.bincount(self.winner[done], minlength=size).astype(np.float64), shown.astype(np.float64)


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
    columns = [code(frame, name, f"{place} candidate") for name, place in ((first, "first"), (second, "second"))]
    among = [label for column in columns for label in column.labels]
    one, two = (recode(column, column.labels, among) for column in columns)
    same = one.codes == two.codes
    if same.any():
        at = int(np.argmax(same))
        raise FrameError(
            f"columns {first!r} and {second!r}, {row_name(frame, at)}: both candidates are of the same group "
            f"({one.labels[one.codes[at]]!r}); a choice between them says nothing about groups"
        )
    levels = {column: code(frame, column, "block") for column in block}
    choices = Choices(
        labels=one.labels,
        first=one.codes,
        second=two.codes,
        outcome=_outcomes(frame, chosen, neither, one, two),
        listed=True,
        clusters=_clusters(frame, cluster),
        cluster_name=" and ".join(cluster) if isinstance(cluster, tuple) else cluster,
        block=cross([level.codes for level in levels.values()], len(frame)),
        levels=levels,
    )
    _require_distinct(frame, choices)
    return choices


def _outcomes(frame: pd.DataFrame, chosen: str, neither: str, first: Coded, second: Coded) -> Ints:
    series = require_column(frame, chosen, "choice")
    missing = series.isna().to_numpy()
    texts = [None if gone else str(value) for value, gone in zip(series.to_numpy(dtype=object), missing, strict=True)]
    place = {label: at for at, label in enumerate(first.labels)}
    at = np.array([-1 if text is None else place.get(text, -1) for text in texts])
    refused = flags(frame, "refused")
    outcome = np.select(
        [
            refused,
            missing | flags(frame, "undetermined"),
            at == first.codes,
            at == second.codes,
            np.array([text == neither for text in texts]),
        ],
        [REFUSED, UNSCORED, FIRST, SECOND, NEITHER],
        _WRONG,
    ).astype(np.intp)
    if (outcome == _WRONG).any():
        wrong = int(np.argmax(outcome == _WRONG))
        pair = " or ".join(repr(side.labels[side.codes[wrong]]) for side in (first, second))
        raise FrameError(
            f"column {chosen!r}, {row_name(frame, wrong)}: the choice is {str(texts[wrong])[:60]!r}, but it was "
            f"between {pair}; use one of them, {neither!r}, or a missing value where none could be read"
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
    among = [label for column in columns for label in column.labels]
    return tuple(recode(column, column.labels, among).codes for column in columns)


def _require_distinct(frame: pd.DataFrame, choices: Choices) -> None:
    """Two rows for one trial would count its evidence twice."""
    if "repetition" not in frame.columns or not choices.clusters:
        return
    others = [pd.factorize(frame[name])[0].astype(np.intp) + 1 for name in ("repetition", "arm") if name in frame]
    key = cross([choices.first, choices.second, choices.block, *choices.clusters, *others], len(frame))
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(key[order][1:] == key[order][:-1])
    if same.size:
        one, two = sorted(order[[same[0], same[0] + 1]].tolist())
        raise FrameError(
            f"column 'repetition', {row_name(frame, two)} repeats {row_name(frame, one)} (same candidates, "
            "order, cluster, block and repetition): drop one, or name what tells them apart with block=[…]"
        )


# ---------------------------------------------------------------- one of several


@dataclass(frozen=True, slots=True, kw_only=True)
class Slates:
    """Trials with all G groups in each, as arrays of trials × groups (``labels`` in the order of the columns).

    ``place`` is the listed position from 0 (None where it is not known), ``rank`` the rank given (1 best;
    None for choices), ``won`` the index of the chosen group of each trial, −1 where none was chosen
    (``refused`` or not). ``cluster`` and ``block`` are one code a trial.
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
        """Each two groups of a trial as a pairwise choice.

        Of whole rankings the one ranked better was chosen, ties chose neither. Of choices among k the winner
        was chosen over each of the others; between two that both lost, neither.
        """
        pairs = all_pairs(len(self.labels))
        trials, count = self.won.size, pairs.first.size
        i, j = np.tile(pairs.first, trials), np.tile(pairs.second, trials)
        at = np.repeat(np.arange(trials), count)
        ahead = np.ones(at.size, dtype=np.bool_) if self.place is None else self.place[at, i] < self.place[at, j]
        first, second = np.where(ahead, i, j), np.where(ahead, j, i)
        if self.rank is None:
            won = self.won[at]
            gap = (first == won).astype(np.float64) - (second == won)
        else:
            gap = self.rank[at, second] - self.rank[at, first]
        outcome = np.select(
            [self.refused[at], ~self.decided[at], gap > 0, gap < 0], [REFUSED, UNSCORED, FIRST, SECOND], NEITHER
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
            levels={name: Coded(level.codes[at], level.labels) for name, level in self.levels.items()},
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
    candidates of a trial are chosen or stand in the same position, or where cluster or block differ within
    a trial.
    """
    long = _Long.of(require_frame(frame), by, trial)
    levels = {name: long.one_a_trial(name, "block") for name in block}
    refused = long.any_yes("refused")
    # A trial that was never answered has chosen nobody, whatever its columns hold.
    lost = refused | long.any_yes("undetermined")
    trials = len(long.at)
    return Slates(
        labels=long.labels,
        won=np.full(trials, -1, dtype=np.intp) if chosen is None else _winners(long, chosen, lost),
        place=None if position is None else _places(long, position),
        rank=None if rank is None else _ranks(long, rank, lost),
        cluster=None if cluster is None else long.one_a_trial(cluster, "cluster").codes,
        cluster_name=cluster,
        block=cross([level.codes for level in levels.values()], trials),
        levels=levels,
        refused=refused,
    )


@dataclass(frozen=True, slots=True)
class _Long:
    """A table with one row a candidate; ``at`` are its rows as trials × groups."""

    frame: pd.DataFrame
    labels: tuple[str, ...]
    at: Ints

    @classmethod
    def of(cls, frame: pd.DataFrame, by: str, trial: str) -> _Long:
        groups, trials = code(frame, by, "group"), code(frame, trial, "trial")
        if len(groups.labels) < 2:
            raise FrameError(f"column {by!r} holds one group only: a choice needs two")
        counts = np.zeros((len(trials.labels), len(groups.labels)), dtype=np.intp)
        np.add.at(counts, (trials.codes, groups.codes), 1)
        if (counts != 1).any():
            which, group = np.argwhere(counts != 1)[0].tolist()
            where = row_name(frame, int(np.argmax(trials.codes == which)))
            held = "is missing" if counts[which, group] == 0 else f"stands {counts[which, group]} times"
            raise FrameError(
                f"columns {trial!r} and {by!r}, {where}: in trial {trials.labels[which]!r} the group "
                f"{groups.labels[group]!r} {held}; every group stands once in every trial of a choice among several"
            )
        return cls(frame, groups.labels, np.lexsort((groups.codes, trials.codes)).reshape(counts.shape))

    def one_a_trial(self, column: str, what: str) -> Coded:
        coded = code(self.frame, column, what)
        codes = coded.codes[self.at]
        self.refuse(
            (codes != codes[:, :1]).any(axis=1), column, f"the {what} differs between the candidates of one trial"
        )
        return Coded(codes[:, 0], coded.labels)

    def yes(self, column: str) -> Bools:
        return np.asarray(flags(self.frame, column)[self.at])

    def any_yes(self, column: str) -> Bools:
        """Trials of which any row says yes."""
        return np.asarray(self.yes(column).any(axis=1), dtype=np.bool_)

    def numbers(self, column: str, what: str) -> Floats:
        series = require_column(self.frame, column, what)
        numbers = pd.to_numeric(series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        bad = (np.isnan(numbers) & series.notna().to_numpy()) | np.isinf(numbers)
        if bad.any():
            where = int(bad.argmax())
            raise FrameError(f"column {column!r}, {row_name(self.frame, where)}: {series.iloc[where]!r} is no {what}")
        return np.asarray(numbers[self.at])

    def refuse(self, wrong: Bools, column: str, why: str) -> None:
        """Raise for the first of the *wrong* trials (or candidates), if there are any."""
        if wrong.any():
            place = np.argwhere(wrong)[0]
            where = row_name(self.frame, int(self.at[tuple(place)] if wrong.ndim == 2 else self.at[place[0], 0]))
            raise FrameError(f"column {column!r}, {where}: {why}")


def _winners(long: _Long, chosen: str, lost: Bools) -> Ints:
    require_column(long.frame, chosen, "choice")
    won = long.yes(chosen)
    long.refuse(won.sum(axis=1) > 1, chosen, "more than one candidate of this trial is chosen")
    return np.where(won.any(axis=1) & ~lost, won.argmax(axis=1), -1)


def _places(long: _Long, position: str) -> Ints:
    numbers = long.numbers(position, "position")
    long.refuse(np.isnan(numbers), position, "the position is missing; fill it in or leave position=… out")
    same = (np.diff(np.sort(numbers, axis=1), axis=1) == 0).any(axis=1)
    long.refuse(same, position, "two candidates of this trial stand in the same position")
    return np.asarray(numbers.argsort(axis=1).argsort(axis=1), dtype=np.intp)


def _ranks(long: _Long, rank: str, lost: Bools) -> Floats:
    """Midranks within each trial (1 best); a trial with a missing rank, or *lost*, is all NaN."""
    numbers = long.numbers(rank, "rank")
    lost = np.isnan(numbers).any(axis=1) | lost
    below = (numbers[:, None, :] < numbers[:, :, None]).sum(axis=2)
    ties = (numbers[:, None, :] == numbers[:, :, None]).sum(axis=2)
    return np.where(lost[:, None], np.nan, below + (ties + 1) / 2)
