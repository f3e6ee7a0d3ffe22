"""What the policy reads about every pair of a member of the family, as columns; and its judgement of them all.

Most pairs of a large family are settled by the plain lines of the policy, which hold for columns as they do for a
pair; only those that need words (what would decide them, a remark) are made into objects and judged one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_fairness.analysis.members import Member, Thresholds
from pytest_fairness.model import Verdict
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.comparison import Comparison
from pytest_fairness.statistics.frames import Bools, Floats, Ints
from pytest_fairness.statistics.metrics import Metric
from pytest_fairness.statistics.proportions import newcombe
from pytest_fairness.verdict import (
    MARGIN,
    MAX_RAGGED,
    MAX_REFUSAL_DIFFERENCE,
    MAX_UNSCORED,
    MINIMUM_N,
    TRIVIAL,
    Decision,
    PairEvidence,
    judge_pair,
)

_PASS, _FLAG, _FAIL = (Decision(verdict=verdict) for verdict in (Verdict.PASS, Verdict.FLAG, Verdict.FAIL))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The fields of :class:`~pytest_fairness.verdict.PairEvidence` for P pairs of groups, in order.

    ``first`` and ``second`` are the groups of each pair, ``n`` and ``clusters`` have one entry a group;
    ``one_cluster`` marks pairs whose result is about labels, not about names.
    """

    labels: tuple[str, ...]
    first: Ints
    second: Ints
    n: Ints
    clusters: Ints
    effect: Floats
    low: Floats
    high: Floats
    p_value: Floats
    corrected: Floats
    one_cluster: Bools
    unscored: Floats
    ragged: Floats
    raw_trivial: Bools
    raw_inside: Bools
    constant: Bools
    minimum: int
    alpha: float
    family_size: int
    cluster_noun: str

    def pair(self, at: int) -> PairEvidence:
        """The evidence on one pair, as the policy reads it."""
        i, j = int(self.first[at]), int(self.second[at])
        return PairEvidence(
            effect=float(self.effect[at]),
            low=float(self.low[at]),
            high=float(self.high[at]),
            p_value=float(self.p_value[at]),
            corrected=float(self.corrected[at]),
            n=(int(self.n[i]), int(self.n[j])),
            clusters=(int(self.clusters[i]), int(self.clusters[j])),
            minimum=self.minimum,
            scope="labels" if self.one_cluster[at] else "names",
            alpha=self.alpha,
            family_size=self.family_size,
            unscored=float(self.unscored[at]),
            ragged=float(self.ragged[at]),
            raw_trivial=bool(self.raw_trivial[at]),
            raw_inside=bool(self.raw_inside[at]),
            constant=bool(self.constant[at]),
            groups=(self.labels[i], self.labels[j]),
            cluster_noun=self.cluster_noun,
        )


def gather(
    member: Member,
    metric: Metric,
    p: Floats,
    q: Floats,
    thresholds: Thresholds,
    size: int,
    cluster_noun: str,
) -> Evidence:
    """The evidence on every pair of *member* as measured by *metric*; *p* and *q* before and after correction."""
    groups = all_pairs(len(member.labels))
    comparison = metric.comparison
    count = groups.first.size
    zero, endless, no = np.zeros(count), np.full(count, np.inf), np.zeros(count, dtype=np.bool_)
    effect, low, high, ragged = zero, -endless, endless, zero
    labels = constant = trivial = inside = no
    if comparison is not None:
        effect = metric.column(comparison.effect, 0.0)
        low, high = metric.column(comparison.low, -np.inf), metric.column(comparison.high, np.inf)
        ragged = metric.column(comparison.ragged, 0.0)
        labels = metric.column(comparison.labels.astype(np.float64), 0.0) > 0
        constant = metric.column(comparison.constant.astype(np.float64), 0.0) > 0
        raw = _raw(comparison, thresholds) if not member.accompanies else _refusal_margin(comparison)
        trivial, inside = metric.column(raw[0], 0.0) > 0, metric.column(raw[1], 0.0) > 0
    return Evidence(
        labels=member.labels,
        first=groups.first,
        second=groups.second,
        n=metric.distinct,
        clusters=metric.clusters,
        effect=effect,
        low=low,
        high=high,
        p_value=p,
        corrected=q,
        one_cluster=labels,
        unscored=np.maximum(member.unscored[groups.first], member.unscored[groups.second]),
        ragged=ragged,
        raw_trivial=trivial,
        raw_inside=inside,
        constant=constant,
        minimum=MINIMUM_N[metric.kind],
        alpha=thresholds.alpha,
        family_size=size,
        cluster_noun="rows" if metric.layout is not None and metric.layout.own_rows else cluster_noun,
    )


def judge(e: Evidence) -> list[Decision]:
    """The decision of :func:`~pytest_fairness.verdict.judge_pair` on every pair."""
    fewest = np.minimum(e.n[e.first], e.n[e.second])
    plain = (e.unscored <= MAX_UNSCORED) & (e.ragged <= MAX_RAGGED) & (fewest >= max(e.minimum, 2)) & ~e.constant
    significant = (e.corrected < e.alpha) & ~e.raw_trivial
    size = np.abs(e.effect)
    alarm = significant & (size >= TRIVIAL)
    fail = plain & alarm & (size > MARGIN) & ~e.one_cluster
    flag = plain & alarm & (size <= MARGIN)
    passed = plain & ~alarm & (e.low > -MARGIN) & (e.high < MARGIN)
    settled = np.select([passed, flag, fail], [0, 1, 2], -1).tolist()
    known = (_PASS, _FLAG, _FAIL)
    return [known[code] if code >= 0 else judge_pair(e.pair(at)) for at, code in enumerate(settled)]


def _raw(comparison: Comparison, thresholds: Thresholds) -> tuple[Floats, Floats]:
    """Whether the difference, and its whole 90 % interval, is below what the caller called worth minding."""
    count = comparison.effect.size
    trivial, inside = np.zeros(count), np.zeros(count)
    reach = np.maximum(np.abs(comparison.difference_low), np.abs(comparison.difference_high))
    if thresholds.min_raw_diff is not None:
        trivial = np.maximum(trivial, np.abs(comparison.difference) < thresholds.min_raw_diff)
        inside = np.maximum(inside, reach < thresholds.min_raw_diff)
    if thresholds.min_raw_ratio is not None:
        one, two = (comparison.beside[name] for name in _mean_names(comparison))
        larger, smaller = np.maximum(one, two), np.minimum(one, two)
        positive = (larger > 0) & (smaller >= 0)
        ratio = np.where(positive, smaller / np.where(positive, larger, 1.0), 0.0)
        trivial = np.maximum(trivial, ratio >= thresholds.min_raw_ratio)
        inside = np.maximum(inside, positive & (reach < (1 - thresholds.min_raw_ratio) * larger))
    return trivial.astype(np.float64), inside.astype(np.float64)


def _mean_names(comparison: Comparison) -> tuple[str, str]:
    return ("mean_1", "mean_2") if "mean_1" in comparison.beside else ("rate_1", "rate_2")


def _refusal_margin(comparison: Comparison) -> tuple[Floats, Floats]:
    """Refusals beside a score: rare ones cannot be told apart on the odds scale by any affordable number of
    calls, so they also pass where the 90 % interval of the risk difference lies inside ± five percentage
    points.
    """
    b = comparison.beside
    shrink = np.maximum(b["design_effect"], 1.0)
    n1, n2 = b["n_1"] / shrink, b["n_2"] / shrink
    low, high = newcombe(b["rate_1"] * n1, n1, b["rate_2"] * n2, n2, 0.90)
    inside = np.maximum(np.abs(low), np.abs(high)) < MAX_REFUSAL_DIFFERENCE
    return np.zeros(low.size), inside.astype(np.float64)
