"""Tables as an analysis reads them: the outcome as numbers, and the group of each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import OutcomeKind, Status
from pytest_fairness.statistics.arrays import (
    Bools,
    Coded,
    Floats,
    Ints,
    Membership,
    Values,
    column_names,
    read_design,
    read_outcome,
    require_frame,
)
from pytest_fairness.statistics.clusters import USUAL, Terms
from pytest_fairness.statistics.compare import RATES, Metric, impute, measure, measure_share
from pytest_fairness.statistics.corrections import METHODS
from pytest_fairness.statistics.pair_table import PairTable

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.scorers.outcome import Outcome


class Ends(NamedTuple):
    """The ends of the scale of an outcome, None where they are not known."""

    low: float | None = None
    high: float | None = None


_UNKNOWN_ENDS = Ends()
#: The scale of what is yes or no.
_SHARE = Ends(0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReaders:
    """The readers of the rows of an outcome: ``labels`` are a person's readings of some (NaN
    elsewhere), None where there are none; ``by_model`` the rows that a model read.
    """

    labels: Floats | None = None
    by_model: Bools | None = None

    def take(self, rows: Ints) -> RowReaders:
        """Return the readers of some *rows*, by their places."""
        return RowReaders(
            labels=_of_rows(self.labels, rows), by_model=_of_rows(self.by_model, rows)
        )


_NOBODY = RowReaders()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An outcome by its name: its values, its unit, and whether a lower value is the worse one.

    ``favourable`` is the value that is the favourable answer of a yes/no outcome, None where that
    is not known; ``certain`` are the rows of whose outcome no reader can be in doubt: a decision
    that a refusal takes away, an outcome that is imputed.
    """

    name: str
    values: Values
    unit: str
    lower_is_worse: bool
    favourable: float | None = None
    scale: Ends = _UNKNOWN_ENDS
    readers: RowReaders = _NOBODY
    certain: Bools | None = None

    @classmethod
    def of_decisions(
        cls, name: str, yes: Floats, readers: RowReaders = _NOBODY, certain: Bools | None = None
    ) -> Reading:
        """Return the reading of decisions, of which *yes* are the favourable ones."""
        return cls(
            name=name,
            values=Values(values=yes, kind=OutcomeKind.BINARY),
            unit="",
            lower_is_worse=True,
            favourable=1.0,
            scale=_SHARE,
            readers=readers,
            certain=certain,
        )

    def take(self, rows: Ints) -> Reading:
        """Return the outcome on some *rows* of its table, by their places."""
        return replace(
            self,
            values=replace(self.values, values=self.values.values[rows]),
            readers=self.readers.take(rows),
            certain=_of_rows(self.certain, rows),
        )


def _of_rows(facts: Any, rows: Ints) -> Any:
    """Return the *facts* of some *rows* by their places; None where there are none."""
    if facts is None:
        return None
    return facts[rows]


def read(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any],
    kind: str | None,
    lower_is_worse: bool | None,
    scorers: Mapping[str, Any] | None = None,
    favourable: object = None,
    labels: str | None = None,
) -> Reading:
    """The column, scorer or callable *outcome* as numbers; see
    :func:`pytest_fairness.scorers.outcome_of`.

    A given *kind* or direction wins over the scorer's; a column named ``refused`` is a refusal
    outcome. *favourable* is the favourable one of two answers, and gives the direction too.
    *labels* is the column of a person's readings.
    """
    from pytest_fairness.scorers import outcome_of

    outcome_read = outcome_of(require_frame(frame), outcome, scorers)
    if kind in (None, "auto"):
        kind = outcome_read.kind
        if kind is None and outcome_read.scorer is None and outcome_read.name == "refused":
            kind = OutcomeKind.REFUSAL
    values = read_outcome(frame, outcome_read.name, outcome_read.values, kind, favourable)
    if lower_is_worse is None:
        lower_is_worse = outcome_read.lower_is_worse and values.kind is not OutcomeKind.REFUSAL
    scale = Ends(outcome_read.low, outcome_read.high)
    if values.kind in (OutcomeKind.BINARY, OutcomeKind.REFUSAL):
        scale = _SHARE
    good, lower_is_worse = _direction(values, lower_is_worse, declared=favourable is not None)
    given = given_labels(frame, outcome_read, labels)
    return Reading(
        name=outcome_read.name,
        values=values,
        unit=outcome_read.unit,
        lower_is_worse=lower_is_worse,
        favourable=good,
        scale=scale,
        readers=RowReaders(
            labels=_labels(frame, given, values), by_model=read_by_model(outcome_read)
        ),
    )


def given_labels(
    frame: pd.DataFrame, outcome: Outcome, labels: str | None
) -> pd.Series[Any] | None:
    """Return a person's readings: the column *labels* of *frame* or, where that is None, those of
    the *outcome*; None where nobody has read a row.
    """
    given = outcome.labels
    if labels is not None:
        given = column_of(frame, labels, "labels")
    if given is None or not bool(given.notna().any()):
        return None
    return given


def read_by_model(outcome: Outcome) -> Bools | None:
    """Return the rows of *outcome* that a model read; None for a column of the table."""
    from pytest_fairness.scorers.outcome import ReadBy

    if outcome.read_by is None:
        return None
    return np.asarray((outcome.read_by == ReadBy.MODEL).to_numpy(), dtype=np.bool_)


def column_of(frame: pd.DataFrame, name: str, argument: str) -> pd.Series[Any]:
    """Return the column *name* of *frame*. Raises FrameError where there is none."""
    if name not in frame.columns:
        columns = ", ".join(map(repr, frame.columns))
        raise FrameError(f"{argument}={name!r} is no column of the table; it has {columns}")
    return frame[name]


def _labels(frame: pd.DataFrame, given: pd.Series[Any] | None, values: Values) -> Floats | None:
    """Return the labels *given* as numbers like *values*, NaN where there is none; None without
    any. Raises FrameError for labels of another kind.
    """
    if given is None:
        return None
    if values.kind is OutcomeKind.CATEGORICAL:
        raise FrameError("labels correct yes/no answers and numbers; this outcome holds labels")
    if values.categories:
        codes = {category: float(code) for code, category in enumerate(values.categories)}
        unlike = set(given.dropna().astype(str)) - codes.keys()
        if unlike:
            raise FrameError(
                f"labels hold {sorted(unlike)[:3]}, and the outcome is one of "
                f"{' and '.join(values.categories)}"
            )
        numbers = given.map(codes, na_action="ignore")
        return np.asarray(numbers.to_numpy(dtype=float), dtype=np.float64)
    return read_outcome(frame, "labels", given, values.kind, None).values


def _direction(
    values: Values, lower_is_worse: bool, *, declared: bool
) -> tuple[float | None, bool]:
    """Return the value of the favourable answer, and whether a lower value is the worse one: of yes
    and no each follows from the other.
    """
    if values.kind is not OutcomeKind.BINARY:
        return values.favourable, lower_is_worse
    if declared or values.categories:
        return values.favourable, values.favourable != 0.0
    return float(lower_is_worse), lower_is_worse


def as_columns(by: str | Sequence[str]) -> tuple[str, ...]:
    """*by* as a tuple of columns. Raises UsageError for none, for one named twice, and for what is
    no name.
    """
    columns = column_names(by)
    if not columns or not all(isinstance(column, str) for column in columns):
        raise UsageError(
            f"by={by!r}: give the column of the protected class, or a list of such columns"
        )
    if len(set(columns)) < len(columns):
        raise UsageError(f"by={by!r}: the same column stands twice")
    return columns


def check_level(alpha: float, correction: str, *, below: float = 1) -> None:
    """Raise UsageError for a level or a correction that there is not."""
    if not 0 < alpha < below:
        raise UsageError(
            f"alpha={alpha!r}: give a level between 0 and {f'{below:g}'.lstrip('0')}, as .05"
        )
    if correction not in METHODS:
        raise UsageError(f"correction={correction!r}: it is one of {', '.join(METHODS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRows:
    """An outcome over one grouping, *by* name: which rows are ``used``, and which should have an
    outcome and are ``missing`` it.

    A refusal is an outcome of its own, so what is refused is neither, unless refusing is the
    outcome.
    """

    by: str
    reading: Reading
    design: Membership
    used: Bools
    missing: Bools
    terms: Terms = USUAL

    @classmethod
    def of(
        cls, design: Membership, reading: Reading, by: str = "", terms: Terms = USUAL
    ) -> ScoredRows:
        beside = design.refused
        if reading.values.kind is OutcomeKind.REFUSAL:
            beside = np.zeros_like(design.refused)
        used = reading.values.present & ~(design.undetermined | beside)
        missing = ~used & ~beside
        return cls(by=by, reading=reading, design=design, used=used, missing=missing, terms=terms)

    @property
    def facts(self) -> dict[str, Any]:
        """Return what a finding says of its outcome and of where that was compared."""
        reading = self.reading
        design = self.design
        of_reading = {"outcome": reading.name, "kind": reading.values.kind, "unit": reading.unit}
        return {**of_reading, "cluster": design.cluster_name, "block": design.block_name}

    def measure(self, *, by_block: bool = True) -> Metric:
        """The outcome compared between all pairs of groups, *by_block* each block by itself too."""
        terms = replace(self.terms, by_block=by_block)
        return measure(self.design, self.reading.values, self.used, terms)

    def imputed(
        self, table: PairTable, at: int, first_high: bool, *, at_random: bool = False
    ) -> ScoredRows:
        """The two groups of the pair at a place alone, with what is missing of the first at the
        high end and of the second at the low one, or turned; see :func:`impute`."""
        outcome_values = self.reading.values
        codes = self.design.group.codes
        pair = int(table.first[at]), int(table.second[at])
        cell = None
        if at_random:
            cell = self._cells()
        values = impute(
            outcome_values.values,
            outcome_values.kind,
            codes,
            pair,
            used=self.used,
            missing=self.missing,
            first_high=first_high,
            scale=self.reading.scale,
            at_random=cell,
            weight=self.design.weight,
        )
        two = Coded(
            (codes == pair[1]).astype(np.intp),
            tuple(self.design.group.labels[side] for side in pair),
        )
        certain = self.missing
        if self.reading.certain is not None:
            certain = certain | self.reading.certain
        imputed = replace(outcome_values, values=values)
        filled = replace(
            self,
            reading=replace(self.reading, values=imputed, certain=certain),
            design=replace(self.design, group=two, compared=None),
            used=np.isin(codes, pair) & (self.used | self.missing),
        )
        return filled._split()

    def _cells(self) -> Ints:
        """Return a code for each cell of cluster and block, or of the block where each row is its
        own cluster: rows of one cell are alike, in whatever order they stand.
        """
        if self.design.cluster_name is None:
            return self.design.block
        return self.design.cluster * self.design.blocks + self.design.block

    def _split(self) -> ScoredRows:
        """Return these rows, of which those that stand for a share of yes are two: of yes and of
        no.
        """
        values = self.reading.values.values
        weight = self.design.weight
        if weight is None:
            return self
        if self.reading.values.kind not in RATES:
            return self
        shared = np.flatnonzero((values > 0) & (values < 1))
        places = np.append(np.arange(values.size), shared)
        yes = np.rint(weight[shared] * values[shared])
        weight = np.append(weight, yes)
        weight[shared] -= yes
        answers = np.append(values, np.ones(shared.size))
        answers[shared] = 0.0
        reading = self.reading.take(places)
        return replace(
            self,
            reading=replace(reading, values=replace(reading.values, values=answers)),
            design=self.design.take(places, weight),
            used=self.used[places],
            missing=self.missing[places],
        )

    def refusals(self) -> Metric | None:
        """Refusals beside an outcome; None where there are none."""
        design = self.design
        if self.reading.values.kind is OutcomeKind.REFUSAL or not bool(np.any(design.refused)):
            return None
        confidence = self.terms.confidence
        return measure_share(design, design.refused, ~design.undetermined, confidence)

    def unanswered(self, table: PairTable) -> tuple[Ints, Ints]:
        """The trials of both groups of each pair (P × 2) that miss an outcome, and all of them."""
        lost = self.design.count(self.missing)
        pairs = np.stack([table.first, table.second], axis=1)
        return lost[pairs], (lost + self.design.count(self.used))[pairs]


def nouns(frame: pd.DataFrame, design: Membership) -> dict[str, Any]:
    """Return what a sentence calls the units of evidence, the rows (trials were asked for, other
    tables hold cases), and the blocks."""
    words = {"cluster_noun": "rows", "case_noun": "cases", "block_noun": "block"}
    if design.cluster_name is not None:
        words["cluster_noun"] = several(design.cluster_name)
    if {"cell", "repetition"} & set(map(str, frame.columns)):
        words["case_noun"] = "trials"
    if design.block_name is not None:
        words["block_noun"] = design.block_name.replace("_", " ")
    return words


def groupings(
    frame: pd.DataFrame, columns: tuple[str, ...], cluster: str | None, block: str | None
) -> Iterator[tuple[str, Membership]]:
    """Each class by itself, then every intersection of two or more: what it is called, and who
    stands where.

    Raises FrameError where a class is no column of the table, or names a scorer.
    """
    from pytest_fairness.scorers import BUILT_IN

    for column in columns:
        if column in BUILT_IN and column not in frame.columns:
            raise FrameError(
                f"by={column!r} names a scorer and is no column of the table; outcome and by are "
                "swapped"
            )
    for chosen in intersections(columns):
        yield " × ".join(chosen), read_design(frame, chosen, cluster=cluster, block=block)


def intersections(columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield each of *columns* by itself, then every two or more of them."""
    for size in range(1, len(columns) + 1):
        yield from combinations(columns, size)


def several(column: str) -> str:
    """Return what a column is called where there are several of it."""
    noun = column.replace("_", " ")
    if noun.endswith("y"):
        return f"{noun[:-1]}ies"
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    return f"{noun}s"


# ---------------------------------------------------------------- missing

LONGEST = 100
_ENDED = {
    "": "without a value",
    Status.ANSWERED.value: "answered and not read",
    Status.REFUSED.value: "answered and not read",
    Status.ERROR.value: "ended in an error",
    Status.EMPTY.value: "answered with nothing",
    Status.MALFORMED.value: "malformed",
    Status.UNKNOWN.value: "never answered",
    Status.NOT_RUN.value: "not run",
}


def reasons_by_group(frame: pd.DataFrame, design: Membership, missing: Bools) -> dict[str, str]:
    """For each group with *missing* rows: how many by status, and the first reason given.

    An answered trial without an outcome is not read: the scorer made nothing of its reply.
    """
    reasons: dict[str, str] = {}
    weight = design.weight
    if weight is None:
        weight = np.ones(missing.size)
    for code, label in enumerate(design.group.labels):
        rows = np.flatnonzero(missing & (design.group.codes == code))
        if not rows.size:
            continue
        ended: Counter[str] = Counter()
        for status, number in zip(_held(frame, "status", rows), weight[rows], strict=True):
            ended[_ENDED.get(str(status), str(status))] += int(number)
        reasons[label] = ", ".join(f"{count} {words}" for words, count in ended.most_common())
        why = _first_text(_held(frame, "error", rows))
        if why:
            reasons[label] += f", first: {why}"
    return reasons


def _held(frame: pd.DataFrame, column: str, rows: Ints) -> list[Any]:
    """Return what a column holds in *rows*; nothing where there is no such column."""
    if column not in frame.columns:
        return [""] * rows.size
    return frame[column].iloc[rows].tolist()


def _first_text(values: Sequence[object]) -> str:
    """Return the first text among *values* on one line, cut where it is long."""
    text = next((value for value in values if isinstance(value, str) and value), "")
    line = " ".join(text.split())
    if len(line) > LONGEST:
        return f"{line[: LONGEST - 1]}…"
    return line
