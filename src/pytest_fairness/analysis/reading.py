"""What an analysis is asked to compare, read off the table: the outcome as numbers and who stands
where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import OutcomeKind, Status
from pytest_fairness.statistics.arrays import (
    Bools,
    Coded,
    Ints,
    Membership,
    Values,
    read_design,
    read_outcome,
    require_frame,
)
from pytest_fairness.statistics.compare import Metric, impute, measure
from pytest_fairness.statistics.corrections import METHODS
from pytest_fairness.statistics.pair_table import PairTable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An outcome by its name: its values, its unit, and whether a lower value is the worse one.

    ``favourable`` is the value that is the favourable answer of a yes/no outcome, None where that
    is not known; ``low`` and ``high`` are the ends of the scale, None where it has none that are
    known.
    """

    name: str
    values: Values
    unit: str
    lower_is_worse: bool
    favourable: float | None = None
    low: float | None = None
    high: float | None = None


def read(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any],
    kind: str | None,
    lower_is_worse: bool | None,
    scorers: Mapping[str, Any] | None = None,
    favourable: object = None,
) -> Reading:
    """The column, scorer or callable *outcome* as numbers; see
    :func:`pytest_fairness.scorers.outcome_of`.

    A given *kind* or direction wins over the scorer's; a column named ``refused`` is a refusal
    outcome. *favourable* is the favourable one of two answers, and gives the direction too.
    """
    from pytest_fairness.scorers import outcome_of

    outcome_read = outcome_of(require_frame(frame), outcome, scorers)
    if kind in (None, "auto"):
        refusal = None
        if outcome_read.scorer is None and outcome_read.name == "refused":
            refusal = OutcomeKind.REFUSAL
        kind = outcome_read.kind or refusal
    values = read_outcome(frame, outcome_read.name, outcome_read.values, kind, favourable)
    worse_low = outcome_read.lower_is_worse if lower_is_worse is None else lower_is_worse
    if lower_is_worse is None and values.kind is OutcomeKind.REFUSAL:
        worse_low = False
    good = values.favourable
    if values.kind is OutcomeKind.BINARY:
        if favourable is not None or values.categories:
            worse_low = good != 0.0
        else:
            good = 1.0 if worse_low else 0.0
    yes_no = values.kind in (OutcomeKind.BINARY, OutcomeKind.REFUSAL)
    return Reading(
        name=outcome_read.name,
        values=values,
        unit=outcome_read.unit,
        lower_is_worse=worse_low,
        favourable=good,
        low=0.0 if yes_no else outcome_read.low,
        high=1.0 if yes_no else outcome_read.high,
    )


def as_columns(by: str | Sequence[str]) -> tuple[str, ...]:
    """*by* as a tuple of columns. Raises UsageError for none, for one named twice, and for what is
    no name.
    """
    columns = (by,) if isinstance(by, str) else tuple(by)
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
    seed: int = 0

    @classmethod
    def of(cls, design: Membership, reading: Reading, by: str = "", seed: int = 0) -> ScoredRows:
        unanswered = design.undetermined
        if reading.values.kind is not OutcomeKind.REFUSAL:
            unanswered = unanswered | design.refused
        used = reading.values.present & ~unanswered
        missing = ~used
        if reading.values.kind is not OutcomeKind.REFUSAL:
            missing = ~used & ~design.refused
        return cls(by=by, reading=reading, design=design, used=used, missing=missing, seed=seed)

    @property
    def facts(self) -> dict[str, Any]:
        """Return what a finding says of its outcome and of where that was compared."""
        reading = self.reading
        design = self.design
        of_reading = {"outcome": reading.name, "kind": reading.values.kind, "unit": reading.unit}
        return {**of_reading, "cluster": design.cluster_name, "block": design.block_name}

    def measure(self) -> Metric:
        """The outcome compared between all pairs of groups."""
        values = self.reading.values
        return measure(
            self.design,
            values.values,
            self.used,
            values.kind,
            categories=len(values.categories),
            seed=self.seed,
        )

    def imputed(
        self, table: PairTable, at: int, first_high: bool, *, at_random: bool = False
    ) -> ScoredRows:
        """The two groups of the pair at a place alone, with what is missing of the first at the
        high end and of the second at the low one, or turned; see :func:`impute`."""
        outcome_values = self.reading.values
        codes = self.design.group.codes
        pair = int(table.first[at]), int(table.second[at])
        values = impute(
            outcome_values.values,
            outcome_values.kind,
            codes,
            pair,
            used=self.used,
            missing=self.missing,
            first_high=first_high,
            scale=(self.reading.low, self.reading.high),
            at_random=self.design.cluster * self.design.blocks + self.design.block
            if at_random
            else None,
        )
        two = Coded(
            (codes == pair[1]).astype(np.intp),
            tuple(self.design.group.labels[side] for side in pair),
        )
        return replace(
            self,
            reading=replace(self.reading, values=replace(outcome_values, values=values)),
            design=replace(self.design, group=two),
            used=np.isin(codes, pair) & (self.used | self.missing),
        )

    def refusals(self) -> Metric | None:
        """Refusals beside an outcome; None where there are none."""
        design = self.design
        if self.reading.values.kind is OutcomeKind.REFUSAL or not bool(np.any(design.refused)):
            return None
        return measure(
            design, design.refused.astype(np.float64), ~design.undetermined, OutcomeKind.REFUSAL
        )

    def unanswered(self, table: PairTable) -> tuple[Ints, Ints]:
        """The trials of both groups of each pair (P × 2) that miss an outcome, and all of them."""
        lost = self.design.count(self.missing)
        pairs = np.stack([table.first, table.second], axis=1)
        return lost[pairs], (lost + self.design.count(self.used))[pairs]


def nouns(frame: pd.DataFrame, design: Membership) -> dict[str, Any]:
    """Return what a sentence calls the units of evidence, the rows (trials were asked for, other
    tables hold cases), and the blocks."""
    of_trials = {"cell", "repetition"} & set(map(str, frame.columns))
    return {
        "cluster_noun": "rows" if design.cluster_name is None else several(design.cluster_name),
        "case_noun": "trials" if of_trials else "cases",
        "block_noun": "block" if design.block_name is None else design.block_name.replace("_", " "),
    }


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
    for size in range(1, len(columns) + 1):
        for chosen in combinations(columns, size):
            yield " × ".join(chosen), read_design(frame, chosen, cluster=cluster, block=block)


def several(column: str) -> str:
    """Return what a column is called where there are several of it."""
    noun = column.replace("_", " ")
    if noun.endswith("y"):
        return f"{noun[:-1]}ies"
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
    rows = np.flatnonzero(missing)
    groups = [design.group.labels[code] for code in design.group.codes[rows].tolist()]
    statuses, errors = (
        frame[name].iloc[rows].tolist() if name in frame.columns else [""] * rows.size
        for name in ("status", "error")
    )
    reasons: dict[str, str] = {}
    for label in (label for label in design.group.labels if label in groups):
        places = [at for at, group in enumerate(groups) if group == label]
        ended = Counter(_ENDED.get(str(statuses[at]), str(statuses[at])) for at in places)
        why = " ".join(
            next(
                (errors[at] for at in places if isinstance(errors[at], str) and errors[at]), ""
            ).split()
        )
        if len(why) <= LONGEST:
            short = why
        else:
            short = why[: LONGEST - 1] + "…"
        text = ", ".join(f"{count} {words}" for words, count in ended.most_common())
        reasons[label] = text + (f", first: {short}" if why else "")
    return reasons
