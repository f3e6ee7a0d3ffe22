"""Each template by itself: a disparity in one of several raises the alarm, or keeps a pair from passing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pytest_fairness.analysis.members import Member, Thresholds
from pytest_fairness.analysis.pair_results import shown
from pytest_fairness.analysis.policy import PairTable
from pytest_fairness.analysis.verdicts import MARGIN, TEMPLATE_ALPHA, Decision
from pytest_fairness.model import ALARMS, JSON, Reason, Verdict
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.frames import Bools, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEffect:
    """Two groups within one block: rows of both, p, the effect with its 90 % interval (None where it has none), and
    whether that block by itself raises the alarm."""

    by: str
    group_1: str
    group_2: str
    block: str
    n_1: int
    n_2: int
    p_value: float
    effect: float
    effect_low: float | None
    effect_high: float | None
    alarm: bool

    def to_json(self) -> dict[str, JSON]:
        """The fields; all of them are plain."""
        return {name: getattr(self, name) for name in self.__slots__}


def judge_templates(
    member: Member, table: PairTable, thresholds: Thresholds
) -> tuple[list[BlockEffect], dict[int, str], dict[int, str]]:
    """Each block by itself: its effects; the pairs that one raises the alarm about, and those that one leaves open.

    p within the block, Holm over blocks × pairs at a fifth of alpha, and an effect above the margin: alarm. The same
    without the correction over pairs: doubt, which turns a PASS into INCONCLUSIVE(TEMPLATE).
    """
    metric = member.metric
    comparison = metric.comparison
    if comparison is None or comparison.strata is None or metric.layout is None:
        return [], {}, {}
    strata = comparison.strata
    level = thresholds.alpha * TEMPLATE_ALPHA
    places = np.full(comparison.p_value.size, -1)
    known = np.flatnonzero(metric.index >= 0)
    places[metric.index[known]] = known
    pair = places[strata.pair]
    value = strata.effects[0].value.copy()
    low, high = strata.effects[0].low.copy(), strata.effects[0].high.copy()
    for other in strata.effects[1:]:
        larger = np.abs(np.nan_to_num(other.value)) > np.abs(np.nan_to_num(value))
        value, low, high = (
            np.where(larger, new, old) for new, old in ((other.value, value), (other.low, low), (other.high, high))
        )
    # Blocks too small to raise the alarm are tests too: each counts with p = 1.
    count = metric.layout.count
    live = (np.minimum(count[comparison.pairs.first], count[comparison.pairs.second]) > 0).sum(axis=1)
    over_all = correct(strata.p_value, "holm", int(live.sum()))
    within = np.ones(strata.p_value.size)
    for one in np.unique(strata.pair).tolist():
        own = strata.pair == one
        within[own] = correct(strata.p_value[own], "holm", int(live[one]))
    large = (np.abs(np.nan_to_num(value)) > MARGIN) & ~_too_small(strata.means, thresholds)
    alarm, doubt = large & (over_all < level), large & (within < level)
    alarms: dict[int, str] = {}
    doubts: dict[int, str] = {}
    for at in np.argsort(strata.p_value, kind="stable").tolist():
        block = member.blocks[int(strata.block[at])]
        if alarm[at]:
            alarms.setdefault(int(pair[at]), block)
        if doubt[at]:
            doubts.setdefault(int(pair[at]), block)
    labels = member.labels
    effects = [
        BlockEffect(
            by=member.by,
            group_1=labels[int(table.first[place])],
            group_2=labels[int(table.second[place])],
            block=member.blocks[block],
            n_1=int(rows[0]),
            n_2=int(rows[1]),
            p_value=p,
            effect=effect,
            effect_low=lowest,
            effect_high=highest,
            alarm=bool(flag),
        )
        for place, block, rows, p, effect, lowest, highest, flag in zip(
            pair.tolist(),
            strata.block.tolist(),
            strata.rows.tolist(),
            strata.p_value.tolist(),
            value.tolist(),
            *shown(value, low, high),
            alarm.tolist(),
            strict=True,
        )
    ]
    return effects, alarms, doubts


def _too_small(means: Floats, thresholds: Thresholds) -> Bools:
    """Whether two means are less apart than the caller declared (T)."""
    small = np.zeros(len(means), dtype=np.bool_)
    if thresholds.min_raw_diff is not None:
        small |= np.abs(means[:, 0] - means[:, 1]) < thresholds.min_raw_diff
    if thresholds.min_raw_ratio is not None:
        smaller, larger = means.min(axis=1), means.max(axis=1)
        positive = (larger > 0) & (smaller >= 0)
        small |= positive & (smaller >= thresholds.min_raw_ratio * larger)
    return small


def with_templates(decision: Decision, alarm: str | None, doubt: str | None, noun: str) -> Decision:
    if alarm is not None and decision.reason not in (Reason.RAGGED, Reason.UNSCORED):
        note = f"{noun} {alarm!r} by itself raises the alarm: the groups differ there"
        if decision.verdict in ALARMS:
            return replace(decision, notes=(*decision.notes, note))
        return Decision(verdict=Verdict.FLAG, notes=(note,))
    if doubt is not None and decision.verdict is Verdict.PASS:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.TEMPLATE,
            needs=f"more names in {noun} {doubt!r}, where the groups may differ",
        )
    return decision
