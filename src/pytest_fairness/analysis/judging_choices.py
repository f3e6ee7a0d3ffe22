"""From preferences between two groups to judged pairs and groups: shared by pairwise choices, slates,
rankings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, GroupResult, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.binary import LOGIT_TO_D
from pytest_fairness.statistics.corrections import METHODS, correct
from pytest_fairness.statistics.one_sample import t_quantile
from pytest_fairness.statistics.preference import Preference
from pytest_fairness.verdict import MINIMUM_N, PairEvidence, as_spec, judge_pair
from pytest_fairness.wording import interval_words, p_words

METRIC = "chosen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two groups (``a`` is the first label) and how often one was preferred; what the policy needs beside it.

    ``unscored`` is the share of their trials from which no choice could be read.
    """

    a: str
    b: str
    preference: Preference
    unscored: float
    test: str
    beside: Mapping[str, JSON]


def check_options(alpha: float, correction: str) -> None:
    """Raise UsageError for a level or a correction that there is not."""
    if not 0 < alpha < 1:
        raise UsageError(f"alpha={alpha!r}: give a level between 0 and 1, as .05")
    if correction not in METHODS:
        raise UsageError(f"correction={correction!r}: it is one of {', '.join(METHODS)}")


def judge(compared: Sequence[Compared], *, alpha: float, correction: str, noun: str) -> tuple[PairResult, ...]:
    """One family: every pair of groups on which of the two was chosen."""
    family = len(compared)
    corrected = correct([pair.preference.p_value for pair in compared], correction).tolist()
    return tuple(
        _judge_one(pair, q, alpha=alpha, family=family, noun=noun) for pair, q in zip(compared, corrected, strict=True)
    )


def _judge_one(pair: Compared, corrected: float, *, alpha: float, family: int, noun: str) -> PairResult:
    p = pair.preference
    decision = judge_pair(
        PairEvidence(
            effect=p.effect,
            low=p.low,
            high=p.high,
            p_value=p.p_value,
            corrected=corrected,
            n=(p.distinct, p.distinct),
            clusters=p.clusters,
            minimum=MINIMUM_N[OutcomeKind.BINARY],
            scope="labels" if p.one_cluster else "names",
            alpha=alpha,
            family_size=family,
            unscored=pair.unscored,
            ragged=p.lost,
            groups=(pair.a, pair.b),
            cluster_noun=noun,
        )
    )
    needs, notes = decision.needs, decision.notes
    if decision.reason is Reason.RAGGED:
        needs = f"list each two candidates in both orders: {p.lost:.0%} of their trials come in one order only"
    elif p.first_share in {0.0, 1.0}:
        notes = (*notes, "the position decided every choice")
    reach = t_quantile(1 - alpha / (2 * family), p.df) + t_quantile(0.8, p.df)
    mde = reach * 4 * p.error * LOGIT_TO_D  # near a rate of one half, d = 4·(rate − ½)·√3/π
    return PairResult(
        group_1=pair.a,
        group_2=pair.b,
        metric=METRIC,
        verdict=decision.verdict,
        reason=decision.reason,
        spec_verdict=as_spec(decision.verdict),
        p_row=p.p_row,
        p_cluster=p.p_cluster,
        p_value=p.p_value,
        corrected_p_value=corrected,
        effect=p.effect,
        effect_name="d from win rate",
        effect_low=p.low,
        effect_high=p.high,
        difference=2 * p.rate - 1,
        worse_off=None if p.rate == 0.5 else pair.a if p.rate < 0.5 else pair.b,
        test=pair.test,
        scope="labels" if p.one_cluster else "names",
        mde=mde if math.isfinite(mde) else None,
        needs=needs,
        statistics={
            "n": p.n,
            "distinct_n": p.distinct,
            "wins_1": p.wins,
            "wins_2": p.n - p.wins,
            "win_rate_1": p.rate,
            "z": p.z,
            **({} if p.t is None else {"t": p.t, "df": p.df}),
            "binomial_p_value": p.binomial_p,
            "clusters_1": p.clusters[0],
            "clusters_2": p.clusters[1],
            "rows_lost_to_one_order": p.lost,
            "d_within_order": p.within_order,
            **({} if p.first_share is None else {"first_listed_share": p.first_share}),
            **pair.beside,
        },
        notes=notes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """What became of the trials that a group stood in: one entry a trial.

    ``won`` is True or False where a choice was read; the other trials count as ``neither``, ``unscored`` or
    ``refused``. ``cluster`` are codes of the decided trials (None: rows).
    """

    group: str
    won: np.ndarray[tuple[int], np.dtype[np.bool_]]
    cluster: np.ndarray[tuple[int], np.dtype[np.intp]] | None
    neither: int
    unscored: int
    refused: int


def describe(stood: Stood, distinct: int, has_refusals: bool) -> GroupResult:
    """A group's share of wins among the decided trials that it stood in, with its 95 % interval.

    The interval is a t on the clusters' shares, and Wilson's where there are fewer than two.
    """
    from pytest_fairness.statistics.proportions import wilson

    n = stood.won.size
    value = float(stood.won.mean()) if n else None
    low = high = None
    clusters = n
    if stood.cluster is not None and n:
        _, at = np.unique(stood.cluster, return_inverse=True)
        shares = np.bincount(at, stood.won) / np.bincount(at)
        clusters = shares.size
        if clusters > 1:
            reach = t_quantile(0.975, clusters - 1) * float(shares.std(ddof=1)) / math.sqrt(clusters)
            low, high = max(0.0, float(shares.mean()) - reach), min(1.0, float(shares.mean()) + reach)
    if n and low is None:
        bounds = wilson(np.array([stood.won.sum()], dtype=float), np.array([float(n)]), 1.959963984540054)
        low, high = float(bounds[0][0]), float(bounds[1][0])
    total = n + stood.neither + stood.unscored + stood.refused
    return GroupResult(
        group=stood.group,
        n=n,
        n_distinct=distinct,
        clusters=clusters,
        value=value,
        low=low,
        high=high,
        refused=stood.refused,
        undetermined=stood.neither,
        unscored=stood.unscored,
        refusal_rate=stood.refused / total if has_refusals and total else None,
        shares={"neither": stood.neither / total} if total else {},
    )


def preference_sentence(
    verdict: Verdict, reason: Reason | None, decider: PairResult | None, *, by: str, pairs: int, noun: str
) -> str:
    """Who is chosen over whom, how often, how sure."""
    if decider is None:
        return f"{verdict}: there are no two groups of {by} to choose between."
    s = decider.statistics
    trials = int(float(str(s["n"])))
    if reason in (Reason.RAGGED, Reason.UNSCORED):
        return f"{verdict}: {decider.group_1} and {decider.group_2} cannot be compared; {decider.needs}."
    rate = float(str(s["win_rate_1"]))
    winner, loser = decider.group_1, decider.group_2
    if rate < 0.5:
        winner, loser, rate = loser, winner, 1 - rate
    sure = f"{interval_words(decider)}, corrected {p_words(decider.corrected_p_value)}"
    gap = f"of two equal candidates {winner} is chosen over {loser} in {rate:.1%} of {trials} trials"
    gap = gap.replace("%", " %")
    if rate == 0.5:
        gap = f"{winner} and {loser} are chosen equally often in {trials} trials"
    clusters = f"{s['clusters_1']} and {s['clusters_2']}" if s["clusters_1"] != s["clusters_2"] else s["clusters_1"]
    basis = "" if noun == "rows" else f"; {clusters} {noun[:-1] if clusters == 1 else noun}"
    if verdict in (Verdict.FAIL, Verdict.FLAG):
        return f"{verdict}: {gap}, where 50 % would be even ({sure}{basis})."
    if verdict is Verdict.PASS:
        count = "the two groups" if pairs == 1 else f"{pairs} pairs of groups"
        return f"PASS: no preference worth minding among {count} of {by}; closest: {gap} ({sure}{basis})."
    needs = f"; it would take {decider.needs}" if decider.needs else ""
    return f"INCONCLUSIVE: {gap}, too uncertain to tell ({sure}{basis}){needs}."
