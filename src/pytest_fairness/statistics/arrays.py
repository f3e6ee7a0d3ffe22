"""From a DataFrame of trials to compact arrays; whatever is wrong is named by column and row.

This is the only module of the statistical core that sees pandas: everything after it works on
integer codes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pytest_fairness.errors import FrameError, UsageError, did_you_mean
from pytest_fairness.model import OutcomeKind
from pytest_fairness.words import bracketed

Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.intp]"
Bools: TypeAlias = "NDArray[np.bool_]"

DEFAULT_CLUSTER = "name"
DEFAULT_BLOCK = "template"
ROWS = "number_of_rows"
"""The column of a table of counts that says how many rows alike each of its rows stands for."""
ALIKE = "number_of_clusters"
"""The column of a table of counts that says of how many clusters alike each of its rows holds the
rows, where those are counted together.
"""
OFFSET, WITHIN = "offset_in_bin", "squares_in_bin"
"""Columns of a table of counts whose outcome stands in bins: how much higher than the bin's outcome
the mean is of the rows that are counted, and the sum of their squares about that mean.
"""
_WHAT_IT_COUNTS = "how many rows of the table that was counted each row stands for"
NAME_PARTS = ("first_name", "last_name")
_CELL_COLUMNS = ("cell", "arm", "endpoint", DEFAULT_BLOCK)
"""Columns that, where present, tell apart trials of the same name and template that are not
repetitions.
"""


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as integer codes into ``labels``, which are sorted: the order of rows never matters."""

    codes: Ints
    labels: tuple[str, ...]


class Bins(NamedTuple):
    """Of each row of a table of counts whose values stand in bins: how much higher the ``mean`` of
    the rows that it stands for is than the value of the bin, and the sum of their ``squares`` about
    that mean.
    """

    mean: Floats
    squares: Floats

    def take(self, which: Any) -> Bins:
        """Return those of some rows."""
        return Bins(self.mean[which], self.squares[which])


Column = TypeVar("Column", Floats, Bools)
Name = TypeVar("Name")


def taken(column: Column | None, places: Bools | Ints) -> Column | None:
    """Return what *column* holds at *places*; None where there is no such column."""
    if column is None:
        return None
    return column[places]


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Group, cluster and block of each row of the frame.

    ``cluster_name`` and ``block_name`` are the columns, ``None`` where each row is its own cluster,
    or all rows are one block, ``cluster_labels`` what the clusters are called. ``parts`` are first
    and last name of each cluster (one code a label of the clusters), where names have both;
    ``copy`` marks rows whose reply is that of a previous repetition of the same cell, None where
    the replies are not known. ``weight`` says how many rows alike each row of a table of counts
    stands for, None in a table of rows; ``bins`` is None unless its values stand in bins, and
    ``alike``, of how many clusters alike a row holds the rows, unless such are counted together.
    ``compared`` says which pairs of groups are compared (groups × groups, the first the row), None
    where that is every pair.
    """

    group: Coded
    cluster: Ints
    block: Ints
    block_labels: tuple[str, ...]
    refused: Bools
    undetermined: Bools
    has_refusals: bool
    cluster_name: str | None
    block_name: str | None
    cluster_labels: tuple[str, ...] = ()
    parts: tuple[Coded, ...] = ()
    copy: Bools | None = None
    weight: Floats | None = None
    bins: Bins | None = None
    alike: Floats | None = None
    compared: Bools | None = None

    @property
    def blocks(self) -> int:
        return len(self.block_labels)

    def take(self, places: Ints, weight: Floats) -> Membership:
        """Return the membership of the rows at some *places*, which stand for as many as their
        *weight*.
        """
        return replace(
            self,
            group=Coded(self.group.codes[places], self.group.labels),
            cluster=self.cluster[places],
            block=self.block[places],
            refused=self.refused[places],
            undetermined=self.undetermined[places],
            copy=taken(self.copy, places),
            weight=weight,
            alike=taken(self.alike, places),
        )

    def count(self, rows: Bools) -> Ints:
        """Return how many of *rows* each group has."""
        weight = taken(self.weight, rows)
        counts = sums(self.group.codes[rows], weight, len(self.group.labels))
        return counts.astype(np.intp)


def row_name(frame: pd.DataFrame, position: int) -> str:
    """Return how a message names a row: its position from 0, and its index label where that is
    something else.
    """
    if ROWS in frame.columns:
        return f"row {position} of the counts"
    (label,) = frame.index[[position]].tolist()
    same = isinstance(label, int) and label == position
    if same:
        return f"row {position}"
    return f"row {position} (index {label!r})"


def refuse(frame: pd.DataFrame, column: str, wrong: Bools, why: Callable[[int], str]) -> None:
    """Raise FrameError for the first of the *wrong* rows, if there is any; *why* says what is wrong
    with that one.
    """
    if wrong.any():
        at = int(np.argmax(wrong))
        error = FrameError(f"column {column!r}, {row_name(frame, at)}: {why(at)}")
        if ROWS in frame.columns and column in frame.columns:
            error.refused = column, frame[column].iloc[at]
        raise error


def require_frame(frame: object) -> pd.DataFrame:
    """*frame* itself, if it is a DataFrame with rows and unique column names; FrameError otherwise."""
    if not isinstance(frame, pd.DataFrame):
        raise FrameError(
            f"expected a pandas DataFrame with one row a trial, got {type(frame).__name__}"
        )
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise FrameError(f"column {twice!r} stands twice in the frame: rename or drop one")
    if len(frame) == 0:
        raise FrameError("the frame has no rows: there is nothing to compare")
    return frame


def require_column(frame: pd.DataFrame, column: str, what: str) -> pd.Series[Any]:
    """The column, or FrameError listing those that there are."""
    if column not in frame.columns:
        columns = ", ".join(repr(str(name)) for name in frame.columns[:30])
        mend = did_you_mean(str(column), map(str, frame.columns)) or f"; it has {columns}"
        raise FrameError(f"the frame has no column {column!r} for the {what}{mend}")
    return frame[column]


def column_names(columns: str | Sequence[Name] | None) -> tuple[str | Name, ...]:
    """Return *columns*, of which there may be one, several or none, as several."""
    if columns is None:
        return ()
    if isinstance(columns, str):
        return (columns,)
    return tuple(columns)


def code(frame: pd.DataFrame, column: str, what: str) -> Coded:
    """The labels of a column as codes; a missing or repeated label raises FrameError naming column
    and row.
    """
    codes, values = _factorize(require_column(frame, column, what))
    refuse(frame, column, codes < 0, lambda _: f"the {what} is missing; fill it in or drop the row")
    names = list(map(str, values))
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise FrameError(
            f"column {column!r}: two different values both read {twice!r}; make them one type"
        )
    order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.intp)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return Coded(codes=place[codes], labels=tuple(map(names.__getitem__, order.tolist())))


def _factorize(series: pd.Series[Any]) -> tuple[Ints, list[Any]]:
    """Codes in order of appearance, −1 for missing, and the values they stand for."""
    if isinstance(series.dtype, pd.StringDtype) and series.dtype.storage == "python":
        # Handed over as Python strings, which it holds: pandas would look through it twice more.
        codes, texts = pd.factorize(series.to_numpy(dtype=object))
        return codes, list(texts)
    codes, values = pd.factorize(series)
    return codes, values.tolist()


def flags(frame: pd.DataFrame, column: str) -> Bools:
    """A column of yes and no (missing counts as no); all False without the column."""
    if column not in frame.columns:
        return np.zeros(len(frame), dtype=np.bool_)
    series = frame[column]
    if series.dtype == np.bool_:
        return series.to_numpy()
    values = series.astype(object).where(series.notna(), other=False).to_numpy()
    is_flag = [
        isinstance(value, (bool, int, float, np.generic)) and value in (0, 1) for value in values
    ]
    refuse(
        frame,
        column,
        ~np.array(is_flag, dtype=np.bool_),
        lambda at: f"{values[at]!r} is neither True nor False",
    )
    return values.astype(np.bool_)


def finite_numbers(values: pd.Series[Any] | Sequence[object]) -> tuple[Floats, Bools]:
    """The *values* as numbers, NaN where one is missing, and which of them are something else, or
    infinite.
    """
    series = pd.Series(values, dtype=object).reset_index(drop=True)
    numbers = pd.to_numeric(series, errors="coerce").to_numpy(
        dtype=np.float64, na_value=np.nan, copy=True
    )
    return numbers, (np.isnan(numbers) & series.notna().to_numpy()) | np.isinf(numbers)


def cross(columns: Sequence[Ints], rows: int) -> Ints:
    """One code a combination of *columns* (each of length *rows*)."""
    codes = np.zeros(rows, dtype=np.intp)
    for column in columns:
        codes = np.unique(codes * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[
            1
        ].astype(np.intp)
    return codes


def sums(at: Ints, values: NDArray[Any] | None, size: int) -> Floats:
    """Sums of *values* by their codes *at*, one a code 0 … size−1; without values how often each
    occurs.
    """
    return np.bincount(at, values, size).astype(np.float64, copy=False)


def means_of(values: NDArray[Any], codes: Ints, size: int = 0) -> tuple[Floats, Floats]:
    """The mean of *values* at each code, 0 where there is none, and how many there are."""
    counts = sums(codes, None, size)
    return sums(codes, values, size) / np.maximum(counts, 1), counts


def first_repeat(columns: Sequence[Ints]) -> tuple[int, int] | None:
    """Two rows alike in all *columns* (codes, −1 where missing), the one above first; None where
    all differ.
    """
    key = np.zeros(columns[0].size, dtype=np.intp)
    width = 1
    for codes in columns:
        size = int(codes.max(initial=0)) + 2
        if width * size >= 2**62:
            key, width = np.unique(key, return_inverse=True)[1], key.size
        key = key * size + codes + 1
        width = width * size
    ordered = np.sort(key)
    if not np.any(ordered[1:] == ordered[:-1]):
        return None
    second = int(pd.Series(key).duplicated().to_numpy().argmax())
    return int(np.argmax(key == key[second])), second


def _groups(frame: pd.DataFrame, by: Sequence[str]) -> Coded:
    """Return the groups of the columns *by*, of several their intersection."""
    group = code(frame, by[0], "group")
    for column in by[1:]:
        other = code(frame, column, "group")
        width = len(other.labels)
        occurring, codes = np.unique(group.codes * width + other.codes, return_inverse=True)
        labels = tuple(
            f"{group.labels[at // width]} × {other.labels[at % width]}" for at in occurring.tolist()
        )
        group = Coded(codes=codes.astype(np.intp), labels=labels)
    if len(group.labels) < 2:
        only = bracketed("", ", ".join(map(repr, group.labels)))
        names = " × ".join(map(repr, by))
        raise FrameError(f"column {names} holds one group only{only}: a comparison needs two")
    return group


def _refuse_repeated_trials(
    frame: pd.DataFrame,
    group: Coded,
    clusters: Coded,
    block_codes: Ints,
    columns: tuple[str | None, str | None],
) -> None:
    """Raise FrameError for two rows of one trial, which would count its evidence twice; *columns*
    are those of clusters and blocks.
    """
    others = [name for name in _CELL_COLUMNS if name in frame.columns and name not in columns]
    more = [_factorize(frame[name])[0] for name in ("repetition", *others)]
    same = first_repeat([group.codes, clusters.codes, block_codes, *more])
    if not same:
        return
    shown = [name for name in (*columns, "repetition") if name in frame.columns]
    what = ", ".join(f"{name} {frame[name].iloc[same[1]]}" for name in shown)
    raise FrameError(
        f"column 'repetition', {row_name(frame, same[1])} repeats {row_name(frame, same[0])} "
        f"({what}, group {group.labels[int(group.codes[same[1]])]!r}): the same trial stands "
        "twice; drop one, or name what tells them apart with block=…"
    )


def read_design(
    frame: pd.DataFrame,
    by: Sequence[str],
    *,
    cluster: str | None = DEFAULT_CLUSTER,
    block: str | None = DEFAULT_BLOCK,
) -> Membership:
    """Read the groups of *by* (several columns: their intersection), clusters, blocks, refusals.

    Raises FrameError for a missing column, a missing label, duplicate trials, or fewer than two
    groups. The default block ``template`` may be missing: then all rows are one block.
    """
    group = _groups(frame, by)
    if block == DEFAULT_BLOCK and block not in frame.columns:
        block = None
    blocks = Coded(np.zeros(len(frame), dtype=np.intp), ("",))
    if block is not None:
        blocks = code(frame, block, "block")
    clusters = _clusters(frame, cluster, group)
    if clusters is not None and "repetition" in frame.columns:
        _refuse_repeated_trials(frame, group, clusters, blocks.codes, (cluster, block))
    design = Membership(
        group=group,
        cluster=np.arange(len(frame)),
        block=blocks.codes,
        block_labels=blocks.labels,
        refused=flags(frame, "refused"),
        undetermined=flags(frame, "undetermined"),
        has_refusals="refused" in frame.columns,
        cluster_name=None,
        block_name=block,
        weight=counted_rows(frame),
        bins=_bins(frame),
    )
    if clusters is None:
        return design
    parts: tuple[Coded, ...] = ()
    if cluster == DEFAULT_CLUSTER:
        parts = _parts(frame, clusters)
    return replace(
        design,
        cluster=clusters.codes,
        cluster_name=cluster,
        cluster_labels=clusters.labels,
        parts=parts,
        copy=_copies(frame, group, clusters, blocks.codes),
        alike=_clusters_alike(frame, clusters),
    )


def row_weights(frame: pd.DataFrame) -> Floats:
    """Return how many rows each row of *frame* stands for: one, unless it is a table of counts.
    Raises FrameError for what is no count.
    """
    weight = counted_rows(frame)
    if weight is None:
        return np.ones(len(frame))
    return weight


def counted_rows(frame: pd.DataFrame) -> Floats | None:
    """Return how many rows each row of a table of counts stands for; None for a table of rows.
    Raises FrameError for what is no count.
    """
    if ROWS not in frame.columns:
        return None
    try:
        counts = np.asarray(frame[ROWS].to_numpy(dtype=np.float64), dtype=np.float64)
    except (TypeError, ValueError):
        raise FrameError(f"column {ROWS!r} holds no numbers: it says {_WHAT_IT_COUNTS}") from None
    wrong = ~np.isfinite(counts) | (counts < 0) | (counts != np.floor(counts))
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise FrameError(
            f"column {ROWS!r} is {counts[place]:g} in row {place}: it says {_WHAT_IT_COUNTS}, a "
            "whole number from 0"
        )
    if not counts.any():
        raise FrameError(f"column {ROWS!r} is 0 in every row: there is nothing to compare")
    return counts


def _clusters_alike(frame: pd.DataFrame, clusters: Coded) -> Floats | None:
    """Return of how many clusters alike each row of a table of counts holds the rows; None where
    each cluster is counted by itself. Raises FrameError for what is no number of clusters.
    """
    if ROWS not in frame.columns or ALIKE not in frame.columns:
        return None
    alike = pd.to_numeric(frame[ALIKE], errors="coerce").to_numpy(dtype=np.float64)
    of_cluster = np.zeros(len(clusters.labels))
    of_cluster[clusters.codes] = alike
    wrong = ~(alike >= 1) | (alike != np.floor(alike)) | (alike != of_cluster[clusters.codes])
    refuse(
        frame,
        ALIKE,
        wrong,
        lambda _: "it says how many clusters alike this one stands for, the same in all its rows",
    )
    return alike


def _bins(frame: pd.DataFrame) -> Bins | None:
    """Return what is known of the numbers in bins of a table of counts; None for another table."""
    if ROWS not in frame.columns or OFFSET not in frame.columns:
        return None
    columns = require_column(frame, OFFSET, "offset"), require_column(frame, WITHIN, "squares")
    return Bins(*(column.to_numpy(dtype=np.float64) for column in columns))


def every_row(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table of counts as the rows that it stands for; a table of rows as it is."""
    weight = counted_rows(frame)
    if weight is None:
        return frame
    if ALIKE in frame.columns:
        raise FrameError(
            f"column {ALIKE!r}: clusters alike are counted together, and here each is needed: give "
            "the table that was counted"
        )
    return frame.drop(columns=ROWS).iloc[repeated_places(weight)].reset_index(drop=True)


def repeated_places(weight: Floats) -> Ints:
    """Return the place of each row of a table of counts, as often as its *weight* says."""
    return np.repeat(np.arange(weight.size), weight.astype(np.intp))


def _clusters(frame: pd.DataFrame, cluster: str | None, group: Coded) -> Coded | None:
    if cluster is None:
        return None
    if cluster not in frame.columns:
        raise FrameError(
            f"the frame has no column {cluster!r} for the cluster (the name, persona or résumé "
            "that several rows "
            "share): name that column with cluster=…, or pass cluster=None if every row stands for "
            "itself"
        )
    if cluster == DEFAULT_CLUSTER and frame[cluster].isna().all():
        if "persona" in frame.columns and not frame["persona"].isna().any():
            return code(frame, "persona", "cluster")
        # A design without names conveys the group by one label: that label is the one cluster of
        # its group.
        return group
    return code(frame, cluster, "cluster")


def _parts(frame: pd.DataFrame, clusters: Coded) -> tuple[Coded, ...]:
    """First and last name of each cluster: of the columns that hold them, else the first and last
    word of its name.

    Nothing where a name has one word only, or holds a digit: "candidate 3" is a label, not a name
    of two parts.
    """
    if set(NAME_PARTS) <= set(frame.columns):
        parts = _parts_in_columns(frame, clusters)
    else:
        parts = _parts_of_words(clusters.labels)
    factorized = [pd.factorize(np.array(part, object)) for part in parts]
    return tuple(Coded(codes, tuple(labels)) for codes, labels in factorized)


def _parts_in_columns(frame: pd.DataFrame, clusters: Coded) -> list[list[str]]:
    """The first and the last names of the clusters' first rows; nothing where one is missing."""
    first_row = np.unique(clusters.codes, return_index=True)[1]
    parts = [frame[column].to_numpy(dtype=object)[first_row].tolist() for column in NAME_PARTS]
    if all(isinstance(name, str) and name for name in chain(*parts)):
        return parts
    return []


def _parts_of_words(labels: Sequence[str]) -> list[list[str]]:
    """The first and the last words of *labels*; nothing where one has no two words, or a digit."""
    words = [label.split() for label in labels]
    if min(map(len, words), default=0) < 2 or any(map(str.isdigit, "".join(labels))):
        return []
    return [[name[0] for name in words], [name[-1] for name in words]]


def _copies(frame: pd.DataFrame, group: Coded, clusters: Coded, block: Ints) -> Bools | None:
    """Rows with the reply of a previous row of the same group, cluster and block; None where all
    groups have several clusters, which see to copies."""
    if "reply" not in frame.columns:
        return None
    key = group.codes * len(clusters.labels) + clusters.codes
    if np.bincount(np.unique(key) // len(clusters.labels), minlength=len(group.labels)).min() > 1:
        return None
    reply = _factorize(frame["reply"])[0]
    return pd.DataFrame({"cell": key, "block": block, "reply": reply}).duplicated().to_numpy() & (
        reply >= 0
    )


# ---------------------------------------------------------------- outcomes

LARGEST, SMALLEST = 1e100, 1e-150
"""Larger values, and smaller ones than 0, have squares that a float cannot hold."""
MOST_LABELS = 20
"""More different texts than this are labels only where that is said."""
ORDINAL_LEVELS = 11
"""Whole numbers with at most this many distinct values are ranks of a scale, not quantities."""
_NUMBERS = (bool, int, float, Decimal, np.bool_, np.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """An outcome as numbers: ``values`` (NaN = no outcome), its ``kind`` and, if inferred, ``why``.

    A categorical outcome holds codes into ``categories``. A yes/no outcome of two labels holds 0
    and 1 for the two ``categories``, the favourable one last; ``favourable`` is the value that is
    the favourable answer, None where that is not known.
    """

    values: Floats
    kind: OutcomeKind
    categories: tuple[str, ...] = ()
    why: str | None = None
    favourable: float | None = None

    @property
    def present(self) -> Bools:
        return ~np.isnan(self.values)


def read_outcome(
    frame: pd.DataFrame,
    column: str,
    series: pd.Series[Any],
    kind: str | None,
    favourable: object = None,
) -> Values:
    """The values of *series* (named *column* in messages) as numbers of *kind*; ``None`` or
    ``auto`` infers it.

    Two labels, of whatever spelling, are yes and no. *favourable* is the label that is the
    favourable answer; without it, it is known from words such as yes, approved, hired, pass.

    Raises FrameError for an unknown kind, for values that are neither numbers, yes/no nor labels,
    for numbers that are infinite or beyond ±1e100, and for values that contradict the kind;
    UsageError for a *favourable* that is none of two labels.
    """
    wanted = _kind(kind)
    if wanted is OutcomeKind.CATEGORICAL:
        return _labelled(column, series, wanted, favourable)
    labels = isinstance(series.dtype, pd.CategoricalDtype)
    if labels and series.dtype.ordered and favourable is None:  # type: ignore[union-attr]
        ordered = _in_order(column, series, wanted)
        if ordered is not None:
            return ordered
    # A pandas category holds labels, unless it is declared to hold numbers.
    if labels and wanted is not None:
        numbers = _as_numbers(series.astype(object))
    else:
        numbers = _as_numbers(series)
    if numbers is None:
        if wanted not in (None, OutcomeKind.BINARY):
            raise _no_numbers(frame, column, series, wanted)
        _require_text(frame, column, series)
        refuse_text_numbers(column, series)
        return _labelled(column, series, wanted, favourable)
    refuse(frame, column, np.abs(numbers) > LARGEST, lambda at: _too_large(series.iloc[at]))
    tiny = (numbers != 0) & (np.abs(numbers) < SMALLEST)
    refuse(frame, column, tiny, lambda _: _TOO_SMALL)
    why = None
    if wanted is None:
        wanted, why = _infer(series, numbers[~np.isnan(numbers)])
    if favourable is not None and wanted is not OutcomeKind.BINARY:
        raise UsageError(
            f"favourable={favourable!r}: {column!r} is no yes/no outcome, but {wanted.value}"
        )
    if wanted not in (OutcomeKind.BINARY, OutcomeKind.REFUSAL):
        return Values(values=numbers, kind=wanted, why=why)
    good = _favourable_number(frame, column, series, numbers, wanted, favourable)
    return Values(values=numbers, kind=wanted, why=why, favourable=good)


def _kind(kind: str | None) -> OutcomeKind | None:
    """Return the kind that is declared; None where it is to be inferred. Raises FrameError."""
    if kind in (None, "auto"):
        return None
    try:
        return OutcomeKind(kind)
    except ValueError:
        raise FrameError(
            f"unknown outcome kind {kind!r}; it is one of {', '.join(OutcomeKind)}, or 'auto'"
        ) from None


def _no_numbers(
    frame: pd.DataFrame, column: str, series: pd.Series[Any], wanted: OutcomeKind | None
) -> FrameError:
    """Return that *series* holds no numbers; raises FrameError for the first row without one."""
    refuse(
        frame,
        column,
        ~_are(_NUMBERS, series),
        lambda at: f"{series.iloc[at]!r} is not a number, but the kind is {wanted}",
    )
    return FrameError(f"column {column!r}: values of type {series.dtype} are not numbers")


def _favourable_number(
    frame: pd.DataFrame,
    column: str,
    series: pd.Series[Any],
    numbers: Floats,
    kind: OutcomeKind,
    favourable: object,
) -> float:
    """Return the favourable one of yes (1) and no (0). Raises FrameError for another value among
    *numbers*, UsageError for a *favourable* that is neither.
    """
    refuse(
        frame,
        column,
        ~np.isnan(numbers) & (numbers != 0) & (numbers != 1),
        lambda at: (
            f"{series.iloc[at]!r} is not yes or no; a {kind} outcome is True, False, 1, 0 or "
            "missing"
        ),
    )
    if favourable not in (None, 0, 1):
        raise UsageError(
            f"favourable={favourable!r} is no value of {column!r}, which holds yes and no: give "
            "True or False"
        )
    if favourable is None:
        return float(kind is OutcomeKind.BINARY)
    return float(bool(favourable))


_ANSWERS = {
    True: "yes true y t 1 approve approved approval accept accepted acceptance hire hired offer offered pass passed "
    "passes grant granted favourable favorable positive select selected invite invited interview "
    "advance advanced "
    "admit admitted recommend recommended eligible qualified success successful shortlist "
    "shortlisted keep kept allow "
    "allowed",
    False: "no false n f 0 deny denied denial reject rejected rejection refuse refused decline declined fail failed "
    "fails unfavourable unfavorable negative exclude excluded skip skipped ineligible unqualified "
    "failure unsuccessful "
    "withhold withheld dismiss dismissed disallow disallowed waitlist waitlisted remove removed "
    "forbid forbidden",
}
_GOOD = {word: good for good, words in _ANSWERS.items() for word in words.split()}


def _good(label: str) -> bool | None:
    """Return whether *label* is a favourable answer by its words; None where they do not say."""
    words = label.strip().casefold().replace("_", " ").replace("-", " ")
    for prefix in ("not ", "no ", "non ", "un"):
        if words.startswith(prefix) and _GOOD.get(words.removeprefix(prefix).strip()):
            return False
    return _GOOD.get(words)


def _labelled(
    column: str, series: pd.Series[Any], wanted: OutcomeKind | None, favourable: object
) -> Values:
    """Two labels as yes and no, the favourable one as yes; other numbers of labels as codes."""
    codes, labels = pd.factorize(series.map(str, na_action="ignore"), sort=True)
    values = np.where(codes < 0, np.nan, codes)
    names = tuple(map(str, labels))
    listed = ", ".join(map(repr, names[:8]))
    if len(names) > 8:
        listed = f"{listed} …"
    if len(names) == 2:
        return _two_labels(column, values, (names[0], names[1]), listed, favourable)
    if favourable is not None:
        raise UsageError(
            f"favourable={favourable!r}: {column!r} has {len(names)} labels ({listed}); name the "
            "favourable one where there are two"
        )
    if wanted is OutcomeKind.BINARY:
        raise FrameError(
            f"column {column!r} has {len(names)} labels ({listed}): a yes/no outcome has two"
        )
    if wanted is None and len(names) > MOST_LABELS:
        raise FrameError(
            f"column {column!r} has {len(names):,} different texts ({listed}): more than "
            f"{MOST_LABELS} are hardly labels. Score the texts, or pass kind='categorical' if "
            "labels is what they are"
        )
    why = None
    if wanted is None:
        why = "its values are labels"
    return Values(values=values, kind=OutcomeKind.CATEGORICAL, categories=names, why=why)


def _two_labels(
    column: str, values: Floats, names: tuple[str, str], listed: str, favourable: object
) -> Values:
    """Two labels as yes and no, the favourable one as yes where it is known."""
    goods = list(map(_good, names))
    if favourable is not None:
        goods = [name == str(favourable) for name in names]
        if not any(goods):
            raise UsageError(
                f"favourable={favourable!r} is no label of {column!r}, which has {listed}"
            )
    read = Values(
        values=values,
        kind=OutcomeKind.BINARY,
        categories=names,
        why=f"it has two labels, {listed}",
    )
    if set(goods) != {True, False}:
        return read
    if goods[0]:
        read = replace(read, values=1 - values, categories=names[::-1])
    return replace(read, favourable=1.0)


def _in_order(column: str, series: pd.Series[Any], wanted: OutcomeKind | None) -> Values | None:
    """An ordered category as its codes, a rating; None for two labels that mean yes and no, whose
    order says less.
    """
    labels = list(map(str, series.dtype.categories))  # type: ignore[union-attr]
    codes = series.cat.codes.to_numpy()
    held = [labels[code] for code in np.unique(codes[codes >= 0])]
    if wanted not in (None, OutcomeKind.ORDINAL, OutcomeKind.BINARY):
        raise FrameError(
            f"column {column!r} holds labels in an order: its kind is ordinal, not {wanted}"
        )
    if wanted is OutcomeKind.BINARY or (len(held) == 2 and None not in map(_good, held)):
        return None
    shown = [f"{label} = {code}" for code, label in enumerate(labels)]
    if len(shown) > 8:
        shown = [*shown[:4], "…", shown[-1]]
    listed = ", ".join(shown)
    why = None
    if wanted is None:
        why = f"its labels have an order, {listed}"
    values = np.where(codes < 0, np.nan, codes.astype(np.float64))
    return Values(values=values, kind=OutcomeKind.ORDINAL, why=why)


_CURRENCY = "$€£¥₹"
_NUMBER = re.compile(
    rf"\s*[{_CURRENCY}]?\s*[-+−]?\s*[{_CURRENCY}]?\s*"
    r"(?P<number>\d[\d'’   ]*(?:[.,]\d+)*|[.,]\d+)(?P<power>e[-+]?\d+)?"
    rf"\s*(?P<rest>%|‰|[{_CURRENCY}]|/\s*\d+)?\s*",
    re.IGNORECASE,
)
"""A number as people write it: 0.176, 51,9, 66 %, 4/5, $120,000."""


def texts_of(series: pd.Series[Any]) -> list[str]:
    """The different texts of *series*, in order of appearance."""
    if _is_of_numbers(series):
        return []
    return [text for text in pd.unique(series.dropna()).tolist() if isinstance(text, str)]


def refuse_text_numbers(column: str, series: pd.Series[Any], *, labels: bool = True) -> None:
    """Raise FrameError where most texts of *series* are numbers: labels cannot be more or less.
    Where *labels* will do, 0 and 1 alone are yes and no."""
    texts = texts_of(series)
    numbers = []
    others = []
    for text in texts:
        if _NUMBER.fullmatch(text):
            numbers.append(text)
        else:
            others.append(text)
    if 2 * len(numbers) <= len(texts) or (labels and set(map(str.strip, texts)) <= {"0", "1"}):
        return
    example = next((text for text in numbers if not _is_float(text)), numbers[0])
    where = f"frame[{column!r}]"
    mend = f"convert it first, {where} = {_conversion(example, where)}"
    if others:
        mend += f"; {others[0]!r} is none, so make it a missing value"
    if labels:
        mend += "; or pass kind='categorical' if labels is what they are"
    raise FrameError(
        f"column {column!r} holds numbers written as text ({example!r}): labels cannot be more or "
        f"less; {mend}"
    )


def _conversion(example: str, where: str) -> str:
    """The expression that makes numbers of texts like *example*."""
    match = _NUMBER.fullmatch(example)
    if match is None or _is_float(example):
        return f"pd.to_numeric({where})"
    if (match["rest"] or "").startswith("/"):
        return f"{where}.map(lambda text: float(fractions.Fraction(text.replace(' ', ''))))"
    text = where
    if "," in match["number"] and not re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", match["number"]):
        text += ".str.replace('.', '').str.replace(',', '.')"
    return f"pd.to_numeric({text}.str.replace('[^0-9.eE+-]', '', regex=True))"


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def spelled_alike(labels: Iterable[str]) -> list[list[str]]:
    """The *labels* that differ by case or blanks alone, together."""
    spellings: dict[str, list[str]] = {}
    for label in labels:
        spellings.setdefault(" ".join(label.split()).casefold(), []).append(label)
    return [same for same in spellings.values() if len(same) > 1]


def _infer(series: pd.Series[Any], present: Floats) -> tuple[OutcomeKind, str]:
    boolean = series.dtype == np.bool_ or str(series.dtype) == "boolean"
    if boolean or bool(np.all((present == 0) | (present == 1))):
        return OutcomeKind.BINARY, "its values are yes and no"
    if present.size <= 10_000 or bool(np.all(present[:1000] == np.round(present[:1000]))):
        levels = np.unique(present)
        if levels.size <= ORDINAL_LEVELS and bool(np.all(levels == np.round(levels))):
            return (
                OutcomeKind.ORDINAL,
                f"it has {levels.size} distinct whole numbers, at most {ORDINAL_LEVELS}",
            )
    return OutcomeKind.NUMERIC, "its values are numbers"


def _are(types: type | tuple[type, ...], series: pd.Series[Any]) -> Bools:
    """Return which values are of these *types*, or missing."""
    held = [isinstance(value, types) for value in series.to_numpy(dtype=object)]
    return np.array(held, dtype=np.bool_) | series.isna().to_numpy()


def _as_numbers(series: pd.Series[Any]) -> Floats | None:
    """The values as floats with NaN for missing ones, or ``None`` if they are not numbers."""
    if series.dtype != object:
        if not _is_of_numbers(series):
            return None
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    if not _are(_NUMBERS, series).all():
        return None
    held = series[series.notna().to_numpy()]
    numbers = np.full(len(series), np.nan)
    try:
        numbers[series.notna().to_numpy()] = held.to_numpy(dtype=np.float64)
    except OverflowError:  # a whole number beyond any float
        numbers[series.notna().to_numpy()] = list(map(_as_float, held))
    return numbers


def _is_of_numbers(series: pd.Series[Any]) -> bool:
    """Return whether the type of *series* is one of numbers, or of yes and no."""
    types = pd.api.types
    return types.is_numeric_dtype(series.dtype) or types.is_bool_dtype(series.dtype)


def _as_float(value: Any) -> float:
    """Return a number as a float, infinite where it is too large to compute with."""
    if abs(value) <= LARGEST:
        return float(value)
    return math.inf


_TOO_SMALL = (
    f"the value is nearer to 0 than {SMALLEST:g}, too small to compute with; use another unit, or "
    "round it to 0"
)


def _too_large(value: Any) -> str:
    if isinstance(value, (float, np.floating, Decimal)) and math.isinf(value):
        return "an outcome cannot be infinite; use a missing value"
    size = "under minus"
    if value > 0:
        size = "over"
    return f"the value is {size} {LARGEST:g}, too large to compute with; use another unit"


def _require_text(frame: pd.DataFrame, column: str, series: pd.Series[Any]) -> None:
    """Raise FrameError if not all values are text; numbers among labels are a mistake that a guess
    would hide.
    """
    if series.dtype == object:
        other = ~_are(str, series)
        missing = series.isna().to_numpy()
        # The odd one out is what a reader has to look at, be it a number among labels or a text
        # among numbers.
        texts = ~other & ~missing
        odd = other
        among = "labels"
        if 2 * other.sum() > (~missing).sum() and texts.any():
            odd = texts
            among = "numbers"
        refuse(
            frame,
            column,
            odd & other.any(),
            lambda at: (
                f"{series.iloc[at]!r} is of type {type(series.iloc[at]).__name__} among {among}; "
                "make the "
                "column one type, or pass kind='categorical'"
            ),
        )
    elif not (
        pd.api.types.is_string_dtype(series.dtype) or isinstance(series.dtype, pd.CategoricalDtype)
    ):
        raise FrameError(f"column {column!r}: values of type {series.dtype} are not an outcome")
