"""From a DataFrame of trials to compact arrays; whatever is wrong is named by column and row.

This is the only module of the statistical core that sees pandas: everything after it works on integer codes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import OutcomeKind

Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.intp]"
Bools: TypeAlias = "NDArray[np.bool_]"

DEFAULT_CLUSTER = "name"
DEFAULT_BLOCK = "template"
NAME_PARTS = ("first_name", "last_name")
_CELL_COLUMNS = ("cell", "arm", "endpoint", DEFAULT_BLOCK)
"""Columns that, where present, tell apart trials of the same name and template that are not repetitions."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as integer codes into ``labels``, which are sorted: the order of rows never matters."""

    codes: Ints
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Who stands where: one entry a row of the frame.

    ``clusters`` counts the labels of its codes, ``block_labels`` are those of the blocks;
    ``cluster_name``/``block_name`` are the columns, or ``None`` where each row is its own cluster, or all rows are one
    block. ``refused`` and ``undetermined`` are all False where the frame has no such column; ``has_refusals`` says
    whether it has.
    """

    group: Coded
    cluster: Ints
    clusters: int
    block: Ints
    block_labels: tuple[str, ...]
    refused: Bools
    undetermined: Bools
    has_refusals: bool
    cluster_name: str | None
    block_name: str | None
    parts: tuple[Coded, ...] = ()
    """First and last name of each cluster (one code a label of the clusters), where names have both."""
    copy: Bools | None = None
    """Rows whose reply is that of an earlier repetition of the same cell; None where the replies are not known."""

    @property
    def rows(self) -> int:
        return self.group.codes.size

    @property
    def blocks(self) -> int:
        return len(self.block_labels)

    def count(self, rows: Bools) -> Ints:
        """How many of *rows* each group has."""
        return np.bincount(self.group.codes[rows], minlength=len(self.group.labels)).astype(np.intp)


def row_name(frame: pd.DataFrame, position: int) -> str:
    """How a message names a row: its position from 0, and its index label where that is something else."""
    label = frame.index[position]
    label = label.item() if isinstance(label, np.generic) else label
    same = isinstance(label, int) and label == position
    return f"row {position}" if same else f"row {position} (index {label!r})"


def require_frame(frame: object) -> pd.DataFrame:
    """*frame* itself, if it is a DataFrame with rows and unique column names; FrameError otherwise."""
    if not isinstance(frame, pd.DataFrame):
        raise FrameError(f"expected a pandas DataFrame with one row a trial, got {type(frame).__name__}")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise FrameError(f"column {twice!r} stands twice in the frame: rename or drop one")
    if len(frame) == 0:
        raise FrameError("the frame has no rows: there is nothing to compare")
    return frame


def require_column(frame: pd.DataFrame, column: str, what: str) -> pd.Series[Any]:
    """The column, or FrameError listing those that there are."""
    if column not in frame.columns:
        known = ", ".join(repr(str(name)) for name in frame.columns[:30])
        raise FrameError(f"the frame has no column {column!r} for the {what}; it has {known}")
    return frame[column]


def code(frame: pd.DataFrame, column: str, what: str) -> Coded:
    """The labels of a column as codes; a missing or repeated label raises FrameError naming column and row."""
    series = require_column(frame, column, what)
    codes, uniques = _factorize(series)
    if codes.size and codes.min() < 0:
        where = row_name(frame, int(np.argmin(codes)))
        raise FrameError(f"column {column!r}, {where}: the {what} is missing; fill it in or drop the row")
    names = [str(value) for value in uniques]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FrameError(f"column {column!r}: two different values both read {twice!r}; make them one type")
    order = sorted(range(len(names)), key=names.__getitem__)
    return Coded(codes=np.argsort(order).astype(np.intp)[codes], labels=tuple(names[at] for at in order))


def _factorize(series: pd.Series[Any]) -> tuple[Ints, list[Any]]:
    """Codes in order of appearance, −1 for missing, and the values they stand for.

    Text that pandas keeps as Python strings is handed over as such: pandas would look through it twice more.
    """
    dtype = series.dtype
    if isinstance(dtype, pd.StringDtype) and dtype.storage == "python":
        codes, uniques = pd.factorize(series.to_numpy(dtype=object))
        return codes, list(uniques)
    codes, index = pd.factorize(series)
    return codes, list(index)


def flags(frame: pd.DataFrame, column: str) -> Bools:
    """A column of yes and no (missing counts as no); all False without the column."""
    if column not in frame.columns:
        return np.zeros(len(frame), dtype=np.bool_)
    series = frame[column]
    if series.dtype == np.bool_:
        return series.to_numpy()
    values = series.astype(object).where(series.notna(), other=False)
    for position, value in enumerate(values):
        if not isinstance(value, (bool, int, float, np.generic)) or value not in (0, 1):
            where = row_name(frame, position)
            raise FrameError(f"column {column!r}, {where}: {value!r} is neither True nor False")
    return values.to_numpy().astype(np.bool_)


def finite_numbers(values: pd.Series[Any] | Sequence[object]) -> tuple[Floats, Bools]:
    """The *values* as numbers, NaN where one is missing, and which of them are something else, or infinite."""
    series = pd.Series(values, dtype=object).reset_index(drop=True)
    numbers = pd.to_numeric(series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    return numbers, (np.isnan(numbers) & series.notna().to_numpy()) | np.isinf(numbers)


def read_design(
    frame: pd.DataFrame,
    by: Sequence[str],
    *,
    cluster: str | None = DEFAULT_CLUSTER,
    block: str | None = DEFAULT_BLOCK,
) -> Membership:
    """Read the groups of *by* (several columns: their intersection), clusters, blocks, refusals.

    Raises FrameError for a missing column, a missing label, duplicate trials, or fewer than two groups. The
    default block ``template`` may be missing: then all rows are one block.
    """
    group = code(frame, by[0], "group")
    for column in by[1:]:
        other = code(frame, column, "group")
        width = len(other.labels)
        occurring, codes = np.unique(group.codes * width + other.codes, return_inverse=True)
        labels = tuple(f"{group.labels[at // width]} × {other.labels[at % width]}" for at in occurring.tolist())
        group = Coded(codes=codes.astype(np.intp), labels=labels)
    if len(group.labels) < 2:
        only = f" ({group.labels[0]!r})" if group.labels else ""
        names = " × ".join(repr(name) for name in by)
        raise FrameError(f"column {names} holds one group only{only}: a comparison needs two")
    if block is not None and block == DEFAULT_BLOCK and block not in frame.columns:
        block = None
    blocks = None if block is None else code(frame, block, "block")
    clusters = _clusters(frame, cluster, group)
    design = Membership(
        group=group,
        cluster=np.arange(len(frame)) if clusters is None else clusters.codes,
        clusters=len(frame) if clusters is None else len(clusters.labels),
        block=np.zeros(len(frame), dtype=np.intp) if blocks is None else blocks.codes,
        block_labels=("",) if blocks is None else blocks.labels or ("",),
        refused=flags(frame, "refused"),
        undetermined=flags(frame, "undetermined"),
        has_refusals="refused" in frame.columns,
        cluster_name=None if clusters is None else cluster,
        block_name=block,
        parts=() if clusters is None or cluster != DEFAULT_CLUSTER else _parts(frame, clusters),
        copy=_copies(frame, group, clusters, blocks) if clusters is not None else None,
    )
    if clusters is not None:
        _require_distinct(frame, design)
    return design


def _clusters(frame: pd.DataFrame, cluster: str | None, group: Coded) -> Coded | None:
    if cluster is None:
        return None
    if cluster not in frame.columns:
        raise FrameError(
            f"the frame has no column {cluster!r} for the cluster (the name, persona or résumé that several rows "
            "share): name that column with cluster=…, or pass cluster=None if every row stands for itself"
        )
    if cluster == DEFAULT_CLUSTER and frame[cluster].isna().all():
        if "persona" in frame.columns and not frame["persona"].isna().any():
            return code(frame, "persona", "cluster")
        # A design without names conveys the group by one label: that label is the one cluster of its group.
        return group
    return code(frame, cluster, "cluster")


def _parts(frame: pd.DataFrame, clusters: Coded) -> tuple[Coded, ...]:
    """First and last name of each cluster: of the columns that hold them, else the first and last word of its name.

    Nothing where a name has one word only, or holds a digit: "candidate 3" is a label, not a name of two parts.
    """
    if all(column in frame.columns for column in NAME_PARTS):
        first_row = pd.Series(clusters.codes).drop_duplicates().sort_values().index.to_numpy()
        found = [frame[column].to_numpy(dtype=object)[first_row].tolist() for column in NAME_PARTS]
        if not all(isinstance(value, str) and value for column in found for value in column):
            return ()
    else:
        words = [label.split() for label in clusters.labels]
        if any(len(name) < 2 or any(character.isdigit() for word in name for character in word) for name in words):
            return ()
        found = [[name[0] for name in words], [name[-1] for name in words]]
    return tuple(
        Coded(codes, tuple(labels)) for codes, labels in (pd.factorize(np.array(part, object)) for part in found)
    )


def _copies(frame: pd.DataFrame, group: Coded, clusters: Coded, blocks: Coded | None) -> Bools | None:
    """Rows with the reply of an earlier row of the same group, cluster and block; asked for only where a group has one
    cluster: elsewhere the clusters see to copies."""
    if "reply" not in frame.columns:
        return None
    key = group.codes * len(clusters.labels) + clusters.codes
    if np.bincount(np.unique(key) // len(clusters.labels), minlength=len(group.labels)).min() > 1:
        return None
    if blocks is not None:
        key = key * len(blocks.labels) + blocks.codes
    reply = _factorize(frame["reply"])[0]
    table = pd.DataFrame({"cell": key, "reply": reply})
    return np.asarray(table.duplicated().to_numpy() & (reply >= 0))


def _require_distinct(frame: pd.DataFrame, design: Membership) -> None:
    """Two rows for one trial would count its evidence twice."""
    if "repetition" not in frame.columns:
        return
    apart = {design.cluster_name, design.block_name}
    named = ("repetition", *(name for name in _CELL_COLUMNS if name in frame.columns and name not in apart))
    same = first_repeat([design.group.codes, design.cluster, design.block, *(_factorize(frame[c])[0] for c in named)])
    if same is None:
        return
    first, second = same
    columns = [design.cluster_name, design.block_name, "repetition"]
    what = ", ".join(f"{c} {frame[c].iloc[second]}" for c in columns if c is not None and c in frame.columns)
    raise FrameError(
        f"column 'repetition', {row_name(frame, second)} repeats {row_name(frame, first)} "
        f"({what}, group {design.group.labels[int(design.group.codes[second])]!r}): the same trial stands "
        "twice; drop one, or name what tells them apart with block=…"
    )


def first_repeat(columns: Sequence[Ints]) -> tuple[int, int] | None:
    """Two rows alike in all *columns* (codes, −1 where missing), the earlier first; None where all differ."""
    key, width = np.zeros(columns[0].size, dtype=np.intp), 1
    for codes in columns:
        size = int(codes.max(initial=0)) + 2
        if width * size >= 2**62:
            key, width = np.unique(key, return_inverse=True)[1], key.size
        key, width = key * size + codes + 1, width * size
    ordered = np.sort(key)
    if not np.any(ordered[1:] == ordered[:-1]):
        return None
    order = np.argsort(key, kind="stable")
    place = np.flatnonzero(ordered[1:] == ordered[:-1])
    place = place[np.argmin(order[place + 1])]
    return int(order[place]), int(order[place + 1])


# ---------------------------------------------------------------- outcomes

LARGEST = 1e100
"""Larger values have squares that a float cannot hold."""
ORDINAL_LEVELS = 11
"""Whole numbers with at most this many distinct values are ranks of a scale, not quantities."""


_NUMBERS = (bool, int, float, Decimal, np.bool_, np.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """An outcome as numbers: ``values`` (NaN = no outcome), its ``kind`` and, if inferred, ``why``.

    A categorical outcome holds codes into ``categories``. A yes/no outcome of two labels holds 0 and 1 for the two
    ``categories``, the favourable one last; ``favourable`` is the value that is the favourable answer, None where that
    is not known.
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
    frame: pd.DataFrame, column: str, series: pd.Series[Any], kind: str | None, favourable: object = None
) -> Values:
    """The values of *series* (named *column* in messages) as numbers of *kind*; ``None`` or ``auto`` infers it.

    Two labels, of whatever spelling, are yes and no. *favourable* is the label that is the favourable answer; without
    it, it is known from words such as yes, approved, hired, pass.

    Raises FrameError for an unknown kind, for values that are neither numbers, yes/no nor labels, for
    numbers that are infinite or beyond ±1e100, and for values that contradict the kind; UsageError for a *favourable*
    that is none of two labels.
    """
    try:
        wanted = None if kind in (None, "auto") else OutcomeKind(kind)
    except ValueError:
        known = ", ".join(member.value for member in OutcomeKind)
        raise FrameError(f"unknown outcome kind {kind!r}; it is one of {known}, or 'auto'") from None
    if wanted is OutcomeKind.CATEGORICAL:
        return _two_or_more(column, _labels(series), favourable)
    # A pandas category holds labels, unless it is declared to hold numbers.
    named = wanted is not None and isinstance(series.dtype, pd.CategoricalDtype)
    numbers = _as_numbers(series.astype(object) if named else series)
    if numbers is None:
        if wanted not in (None, OutcomeKind.BINARY):
            _raise_not_a_number(frame, column, series, wanted)
        labels = replace(_labels(_only_labels(frame, column, series)), why="its values are labels")
        found = _two_or_more(column, labels, favourable)
        if wanted is OutcomeKind.BINARY and found.kind is not OutcomeKind.BINARY:
            raise FrameError(
                f"column {column!r} has {len(labels.categories)} labels ({_listed(labels.categories)}): a yes/no "
                "outcome has two"
            )
        return found
    if np.any(outside := np.abs(numbers) > LARGEST):
        _raise_too_large(frame, column, series, int(outside.argmax()))
    why = None
    if wanted is None:
        wanted, why = _infer(series, numbers[~np.isnan(numbers)])
    if favourable is not None and wanted is not OutcomeKind.BINARY:
        raise UsageError(f"favourable={favourable!r}: {column!r} is no yes/no outcome, but {wanted.value}")
    odd = ~np.isnan(numbers) & (numbers != 0) & (numbers != 1)
    if wanted in (OutcomeKind.BINARY, OutcomeKind.REFUSAL) and odd.any():
        where = int(odd.argmax())
        raise FrameError(
            f"column {column!r}, {row_name(frame, where)}: {series.iloc[where]!r} is not yes or no; "
            f"a {wanted.value} outcome is True, False, 1, 0 or missing"
        )
    good = 0.0 if wanted is OutcomeKind.REFUSAL else None
    if wanted is OutcomeKind.BINARY:
        if favourable not in (None, 0, 1):
            raise UsageError(
                f"favourable={favourable!r} is no value of {column!r}, which holds yes and no: give True or False"
            )
        good = 1.0 if favourable is None else float(bool(favourable))
    return Values(values=numbers, kind=wanted, why=why, favourable=good)


_ANSWERS = {
    True: "yes true y t 1 approve approved approval accept accepted acceptance hire hired offer offered pass passed "
    "passes grant granted favourable favorable positive select selected invite invited interview advance advanced "
    "admit admitted recommend recommended eligible qualified success successful shortlist shortlisted keep kept allow "
    "allowed",
    False: "no false n f 0 deny denied denial reject rejected rejection refuse refused decline declined fail failed "
    "fails unfavourable unfavorable negative exclude excluded skip skipped ineligible unqualified failure unsuccessful "
    "withhold withheld dismiss dismissed disallow disallowed waitlist waitlisted remove removed forbid forbidden",
}
_GOOD = {word: good for good, words in _ANSWERS.items() for word in words.split()}


def _good(label: str) -> bool | None:
    """Whether *label* is a favourable answer by its words; None where they do not say."""
    words = label.strip().casefold().replace("_", " ").replace("-", " ")
    for prefix in ("not ", "no ", "non ", "un"):
        if words.startswith(prefix) and _GOOD.get(words.removeprefix(prefix).strip()):
            return False
    return _GOOD.get(words)


def _two_or_more(column: str, labels: Values, favourable: object) -> Values:
    """Two labels as yes and no, the favourable one as yes; other numbers of labels as they are."""
    names = labels.categories
    if len(names) != 2:
        if favourable is not None:
            raise UsageError(
                f"favourable={favourable!r}: {column!r} has {len(names)} labels ({_listed(names)}); name the "
                "favourable one where there are two"
            )
        return labels
    if favourable is not None:
        if str(favourable) not in names:
            raise UsageError(f"favourable={favourable!r} is no label of {column!r}, which has {_listed(names)}")
        good: str | None = str(favourable)
    else:
        first, second = (_good(name) for name in names)
        known = first is not second and None not in (first, second)
        good = None if not known else names[0] if first else names[1]
    turned = good == names[0]
    return Values(
        values=1 - labels.values if turned else labels.values,
        kind=OutcomeKind.BINARY,
        categories=names[::-1] if turned else names,
        why=f"it has two labels, {_listed(names)}",
        favourable=None if good is None else 1.0,
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names[:8])) + (" …" if len(names) > 8 else "")


def _infer(series: pd.Series[Any], present: Floats) -> tuple[OutcomeKind, str]:
    boolean = series.dtype == np.bool_ or str(series.dtype) == "boolean"
    if boolean or bool(np.all((present == 0) | (present == 1))):
        return OutcomeKind.BINARY, "its values are yes and no"
    if present.size <= 10_000 or bool(np.all(present[:1000] == np.round(present[:1000]))):
        levels = np.unique(present)
        if levels.size <= ORDINAL_LEVELS and bool(np.all(levels == np.round(levels))):
            return OutcomeKind.ORDINAL, f"it has {levels.size} distinct whole numbers, at most {ORDINAL_LEVELS}"
    return OutcomeKind.NUMERIC, "its values are numbers"


def _as_numbers(series: pd.Series[Any]) -> Floats | None:
    """The values as floats with NaN for missing ones, or ``None`` if they are not numbers."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return np.asarray(series.to_numpy(), dtype=np.float64)
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        values = series.to_numpy(dtype=object)
        missing = series.isna().to_numpy()
        if not all(isinstance(value, _NUMBERS) for value in values[~missing]):
            return None
        numbers = np.full(values.size, np.nan)
        try:
            numbers[~missing] = values[~missing].astype(np.float64)
        except OverflowError:  # a whole number beyond any float
            numbers[~missing] = [float(value) if abs(value) <= LARGEST else np.inf for value in values[~missing]]
        return numbers
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    return None


def _raise_too_large(frame: pd.DataFrame, column: str, series: pd.Series[Any], at: int) -> NoReturn:
    where, value = f"column {column!r}, {row_name(frame, at)}", series.iloc[at]
    if isinstance(value, (float, np.floating, Decimal)) and math.isinf(value):
        raise FrameError(f"{where}: an outcome cannot be infinite; use a missing value")
    size = "over" if value > 0 else "under minus"
    raise FrameError(f"{where}: the value is {size} {LARGEST:g}, too large to compute with; use another unit")


def _only_labels(frame: pd.DataFrame, column: str, series: pd.Series[Any]) -> pd.Series[Any]:
    """*series*, if all its values are text; numbers among labels are a mistake that a guess would hide."""
    if series.dtype == object:
        values, missing = series.to_numpy(dtype=object), series.isna().to_numpy()
        other = np.array([not isinstance(value, str) for value in values], dtype=np.bool_) & ~missing
        if other.any():
            # The odd one out is what a reader has to look at, be it a number among labels or a text among numbers.
            strays = other if 2 * other.sum() <= (~missing).sum() else ~other & ~missing
            position = int(np.argmax(strays if strays.any() else other))
            among = "labels" if other[position] else "numbers"
            raise FrameError(
                f"column {column!r}, {row_name(frame, position)}: {values[position]!r} is of type "
                f"{type(values[position]).__name__} among {among}; make the column one type, or pass kind='categorical'"
            )
    elif not (pd.api.types.is_string_dtype(series.dtype) or isinstance(series.dtype, pd.CategoricalDtype)):
        raise FrameError(f"column {column!r}: values of type {series.dtype} are not an outcome")
    return series


def _labels(series: pd.Series[Any]) -> Values:
    codes, names = pd.factorize(series.map(str, na_action="ignore"), sort=True)
    values = np.where(codes < 0, np.nan, codes)
    return Values(values=values, kind=OutcomeKind.CATEGORICAL, categories=tuple(map(str, names)))


def _raise_not_a_number(frame: pd.DataFrame, column: str, series: pd.Series[Any], kind: OutcomeKind) -> None:
    for position, value in enumerate(series.astype(object).where(series.notna(), other=0)):
        if not isinstance(value, _NUMBERS):
            where = row_name(frame, position)
            raise FrameError(f"column {column!r}, {where}: {value!r} is not a number, but the kind is {kind.value}")
    raise FrameError(f"column {column!r}: values of type {series.dtype} are not numbers")
