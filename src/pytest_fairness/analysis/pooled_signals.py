"""A class judged over its signals: each pair of groups pooled over the signals that ask about both,
and each signal by itself as an alarm.

See ``docs/decisions/0213-a-class-is-judged-over-its-signals.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.family import Judged
from pytest_fairness.analysis.parts import Part, Parts
from pytest_fairness.analysis.policy import MARGIN, doubted_by_signal
from pytest_fairness.analysis.reading import Reading
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import ALARMS, JSON, PairResult
from pytest_fairness.statistics.arrays import code

if TYPE_CHECKING:
    import pandas as pd

#: A pair of groups, in the order of their labels.
Groups = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledSignals:
    """The signals of one class, ``by``, in a table: ``asked`` says which groups each conveys, and
    ``column`` is where they stand. ``frame`` is the table with a block for each text of a signal.
    Of a table that is judged without signals there are none.
    """

    by: str
    column: str
    frame: pd.DataFrame
    reading: Reading
    asked: Mapping[str, frozenset[str]]

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        reading: Reading,
        column: str | None,
        by: Sequence[str],
        block: str | None,
    ) -> PooledSignals:
        """Return the signals of *frame*; none without a *column*. Raises UsageError for several
        classes, FrameError where a row has no signal, or no signal conveys two groups.
        """
        if column is None:
            return cls(by="", column="", frame=frame, reading=reading, asked={})
        if len(by) > 1:
            raise UsageError(
                f"signals={column!r} pools the signals of one class, and by= names {len(by)}: give "
                "one, or leave signals= out"
            )
        (protected_class,) = by
        labels = code(frame, column, "signal")
        groups = code(frame, protected_class, "group")
        asked = {}
        for place, label in enumerate(labels.labels):
            conveyed = np.unique(groups.codes[labels.codes == place]).tolist()
            asked[label] = frozenset(groups.labels[at] for at in conveyed)
        if all(len(conveyed) < 2 for conveyed in asked.values()):
            raise FrameError(
                f"no {column} conveys two groups of {protected_class}: nobody can be compared"
            )
        return cls(
            by=protected_class,
            column=column,
            frame=_with_texts_apart(frame, column, block),
            reading=reading,
            asked=asked,
        )

    @property
    def pairs(self) -> dict[Groups, tuple[str, ...]]:
        """Return the pairs that a signal asks about together, with those signals."""
        every = sorted(set().union(*self.asked.values()))
        pairs = {}
        for pair in combinations(every, 2):
            signals = tuple(label for label, groups in self.asked.items() if {*pair} <= groups)
            if signals:
                pairs[pair] = signals
        return pairs

    @property
    def whole(self) -> Part[Reading]:
        """Return the table as a whole, of which no pair is compared: what each group has."""
        return Part(frame=self.frame, reading=self.reading, compared=frozenset())

    @property
    def parts(self) -> list[Part[Reading]]:
        """Return what is compared: the pairs with the same signals, pooled over these; then each
        signal by itself, of the pairs that are pooled over more.
        """
        alike: dict[tuple[str, ...], set[Groups]] = {}
        by_signal: dict[str, set[Groups]] = {}
        for pair, signals in self.pairs.items():
            alike.setdefault(signals, set()).add(pair)
            if len(signals) > 1:
                for label in signals:
                    by_signal.setdefault(label, set()).add(pair)
        parts = [self._part(signals, pairs) for signals, pairs in alike.items()]
        for label in self.asked:
            if label in by_signal:
                parts.append(replace(self._part((label,), by_signal[label]), alarm_only=True))
        return parts

    def of_table(self, table: Parts[Reading]) -> Parts[Reading]:
        """Return *table* in the parts that are compared; as it is where there are no signals."""
        if not self.asked:
            return table
        return replace(table, every=self.parts)

    def _part(self, signals: tuple[str, ...], pairs: set[Groups]) -> Part[Reading]:
        """Return the rows of *signals* in which *pairs* are compared."""
        groups = set(chain.from_iterable(pairs))
        kept = self.frame[self.column].astype(str).isin(signals)
        kept &= self.frame[self.by].astype(str).isin(groups)
        rows = np.flatnonzero(kept)
        return Part(
            frame=self.frame.iloc[rows],
            reading=self.reading.take(rows),
            signals=signals,
            compared=frozenset(pairs),
        )

    def facts(self, pairs: Sequence[PairResult], outcome: str) -> dict[str, JSON]:
        """Return what the details of a finding hold of its *pairs* on *outcome*: a row for each
        pair and signal; nothing without signals.
        """
        if not self.asked:
            return {}
        rows: list[JSON] = []
        of_signals: dict[tuple[str, str, str], PairResult] = {}
        for pair in pairs:
            signals = signals_of(pair)
            if pair.metric == outcome and len(signals) == 1:
                of_signals[signals[0], pair.group_1, pair.group_2] = pair
        for groups, labels in self.pairs.items():
            for label in labels:
                rows.append(_row(label, of_signals[label, *groups]))
        return {"signals": {"column": self.column, "rows": rows}}


def _row(label: str, pair: PairResult) -> dict[str, JSON]:
    """Return what a finding says of *pair* where the signal *label* conveys its groups."""
    alarm = None
    if pair.verdict in ALARMS:
        alarm = pair.verdict.value
    return {
        "signal": label,
        "group_1": pair.group_1,
        "group_2": pair.group_2,
        "n_1": pair.statistics["trials_1"],
        "n_2": pair.statistics["trials_2"],
        "effect": pair.effect,
        "effect_low": pair.effect_low,
        "effect_high": pair.effect_high,
        "difference": pair.difference,
        "p_value": pair.p_value,
        "corrected_p_value": pair.corrected_p_value,
        "alarm": alarm,
    }


def signals_of(pair: PairResult) -> tuple[str, ...]:
    """Return the signals that *pair* is judged over; none of a table that is judged without."""
    signals: Any = pair.statistics.get("signals", ())
    return tuple(signals)


def bounded(outcomes: Sequence[tuple[Part[Reading], Judged]]) -> None:
    """Let no pair pass in which the effect of a signal by itself is over the margin; *outcomes* are
    the parts with what is judged of their outcome.

    Rates that differ by less than 5 points, with a ratio of .8 or more, are within it, and so is a
    difference below what the caller declared.
    """
    doubts: dict[Groups, tuple[float, str]] = {}
    for part, judged in outcomes:
        if part.alarm_only:
            for groups, doubt in _over_margin(part, judged):
                doubts[groups] = max(doubt, doubts.get(groups, doubt))
    for part, judged in outcomes:
        if part.alarm_only:
            continue
        for at, decision in enumerate(judged.decisions):
            groups = _groups(judged, at)
            if groups in doubts:
                judged.decisions[at] = doubted_by_signal(decision, doubts[groups][1])


def _over_margin(part: Part[Reading], judged: Judged) -> Iterator[tuple[Groups, tuple[float, str]]]:
    """Yield each pair whose effect is over the margin where the signal of *part* conveys the
    groups, with its size and the signal.
    """
    table = judged.table
    for at in np.flatnonzero((table.size > MARGIN) & ~table.close & ~table.trivial).tolist():
        yield _groups(judged, at), (float(table.size[at]), part.signals[0])


def _groups(judged: Judged, at: int) -> Groups:
    """Return the two groups of a pair in the place *at*."""
    table = judged.table
    return table.labels[table.first[at]], table.labels[table.second[at]]


def _with_texts_apart(frame: pd.DataFrame, column: str, block: str | None) -> pd.DataFrame:
    """Return *frame* in which no block stands in two signals: a text of two is two blocks."""
    if block is None or block not in frame.columns:
        return frame
    if frame.groupby(block, observed=True, sort=False)[column].nunique().max() == 1:
        return frame
    apart = frame[column].astype(str) + ": " + frame[block].astype(str)
    return frame.assign(**{block: apart})
