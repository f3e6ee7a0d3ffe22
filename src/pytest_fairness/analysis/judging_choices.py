"""From preferences between two groups to judged pairs and groups: shared by pairwise choices, slates,
rankings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pytest_fairness.analysis.policy import MAX_UNSCORED, MINIMUM_N, Decision, PairTable, milder, spec_verdict
from pytest_fairness.analysis.policy import judge as judge_table
from pytest_fairness.analysis.sentences import interval_words, p_words, percent
from pytest_fairness.errors import UsageError
from pytest_fairness.model import ALARMS, JSON, GroupResult, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.comparison import Estimate
from pytest_fairness.statistics.corrections import METHODS, correct
from pytest_fairness.statistics.effects import LOGIT_TO_D
from pytest_fairness.statistics.preference import Preference

METRIC = "chosen"
LEAST_RATIO = 0.8
"""Win rates whose ratio is below this are no trifle: a significant difference is at least a FLAG."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two groups (``a`` is the first label) and how often one was preferred; what the policy needs beside it.

    ``unscored`` is the share of their trials from which no choice could be read; ``imputed`` compares them again with
    all of those won by A (True) or by B.
    """

    a: str
    b: str
    preference: Preference
    unscored: float
    test: str
    beside: Mapping[str, JSON]
    imputed: Callable[[bool], Preference] | None = None


def check_options(alpha: float, correction: str) -> None:
    """Raise UsageError for a level or a correction that there is not."""
    if not 0 < alpha < 1:
        raise UsageError(f"alpha={alpha!r}: give a level between 0 and 1, as .05")
    if correction not in METHODS:
        raise UsageError(f"correction={correction!r}: it is one of {', '.join(METHODS)}")


def judge(compared: Sequence[Compared], *, alpha: float, correction: str, noun: str) -> tuple[PairResult, ...]:
    """One family: every pair of groups on which of the two was chosen."""
    if not compared:
        return ()
    family = _Choices(compared, alpha, correction, noun)
    p_values = [pair.preference.p_value for pair in compared]
    corrected = correct(p_values, correction).tolist()
    preferences = [pair.preference for pair in compared]
    decisions = judge_table(family.table(preferences, p_values, corrected))
    return tuple(
        _result(pair, family.settled(at, decision, p_values), q, alpha=alpha, family=len(compared))
        for at, (pair, decision, q) in enumerate(zip(compared, decisions, corrected, strict=True))
    )


@dataclass(frozen=True, slots=True)
class _Choices:
    compared: Sequence[Compared]
    alpha: float
    correction: str
    noun: str

    def table(
        self, preferences: Sequence[Preference], p_values: Sequence[float], corrected: Sequence[float]
    ) -> PairTable:
        """What the policy reads of *preferences*, one a pair."""
        count = len(preferences)
        no = np.zeros(count, dtype=np.bool_)
        clusters = np.array([one.clusters for one in preferences], dtype=np.float64)
        n = np.array([one.n for one in preferences], dtype=np.float64)
        effects = [
            Estimate(
                name="d from win rate",
                value=np.array([one.effect for one in preferences]),
                low=np.array([one.low for one in preferences]),
                high=np.array([one.high for one in preferences]),
            )
        ]
        if any(one.within is not None for one in preferences):
            effects.append(
                Estimate(
                    name="d within order",
                    value=np.array([one.effect if one.within is None else one.within for one in preferences]),
                    low=np.array([one.low if one.within_low is None else one.within_low for one in preferences]),
                    high=np.array([one.high if one.within_high is None else one.within_high for one in preferences]),
                )
            )
        return PairTable(
            labels=tuple(label for pair in self.compared for label in (pair.a, pair.b)),
            first=2 * np.arange(count),
            second=2 * np.arange(count) + 1,
            effects=tuple(effects),
            p_value=np.array(p_values),
            corrected=np.array(corrected),
            trials=np.stack([n, n], axis=1),
            clusters=clusters,
            ragged=np.array([one.lost for one in preferences]),
            trivial=no,
            inside=no,
            near=no,
            close=no,
            constant=no,
            single=np.array([one.one_cluster for one in preferences], dtype=np.bool_),
            one_part=no,
            own_rows=self.noun == "rows",
            minimum=MINIMUM_N[OutcomeKind.BINARY],
            alpha=self.alpha,
            family_size=count,
            cluster_noun=self.noun,
        )

    def settled(self, at: int, decision: Decision, p_values: Sequence[float]) -> Decision:
        """*decision* after what the ratio of the win rates and what is unread have to say."""
        pair = self.compared[at]
        p = pair.preference
        if decision.reason is Reason.RAGGED:
            return replace(
                decision,
                needs=f"each two candidates in both orders: {percent(p.lost)} of their trials come in one order only",
            )
        corrected = correct(list(p_values), self.correction).tolist()[at]
        decision = self._by_ratio(decision, p, corrected)
        decision = self._with_unread(at, decision, p_values)
        if p.first_share in {0.0, 1.0}:
            decision = replace(decision, notes=(*decision.notes, "the position decided every choice"))
        return decision

    def _by_ratio(self, decision: Decision, p: Preference, corrected: float) -> Decision:
        if decision.verdict in ALARMS or decision.reason is Reason.N or corrected >= self.alpha:
            return decision
        if min(p.rate, 1 - p.rate) >= LEAST_RATIO * max(p.rate, 1 - p.rate):
            return decision
        return Decision(verdict=Verdict.FLAG, notes=("the ratio of the two win rates is below .8, beyond chance",))

    def _with_unread(self, at: int, decision: Decision, p_values: Sequence[float]) -> Decision:
        """Bounds first, UNSCORED where they leave it open: as for a disparity."""
        pair = self.compared[at]
        if not pair.unscored:
            return decision
        over = pair.unscored > MAX_UNSCORED
        lost = Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.UNSCORED,
            needs=f"a choice for more trials: {percent(pair.unscored)} have none that could be read, and what is "
            "missing could turn the verdict",
        )
        if decision.verdict is Verdict.INCONCLUSIVE or pair.imputed is None:
            return lost if over else decision
        if decision.verdict is Verdict.PASS:
            if all(self._imputed(at, won, p_values)[0].verdict is Verdict.PASS for won in (True, False)):
                return decision
            needs = "a choice for the trials without one: at their worst they would turn the PASS"
            return lost if over else Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION, needs=needs)
        if not over:
            return decision
        ahead = pair.preference.rate > 0.5
        least, rate, significant = self._imputed(at, not ahead, p_values)
        if significant and (rate > 0.5) == ahead and least.verdict in ALARMS:
            return milder(decision, least)
        return lost

    def _imputed(self, at: int, won: bool, p_values: Sequence[float]) -> tuple[Decision, float, bool]:
        pair = self.compared[at]
        assert pair.imputed is not None  # noqa: S101 - the caller looks
        found = pair.imputed(won)
        preferences = [found if place == at else one.preference for place, one in enumerate(self.compared)]
        p = [found.p_value if place == at else value for place, value in enumerate(p_values)]
        corrected = correct(p, self.correction).tolist()
        decision = judge_table(self.table(preferences, p, corrected))[at]
        return self._by_ratio(decision, found, corrected[at]), found.rate, corrected[at] < self.alpha


def _result(pair: Compared, decision: Decision, corrected: float, *, alpha: float, family: int) -> PairResult:
    p = pair.preference
    reach = float(t_quantile(p.df, 1 - alpha / (2 * family)) + t_quantile(p.df, 0.8))
    mde = reach * 4 * p.error * LOGIT_TO_D  # near a rate of one half, d = 4·(rate − ½)·√3/π
    within = p.within is not None and abs(p.within) >= abs(p.effect)
    effect, low, high = (p.within or 0.0, p.within_low, p.within_high) if within else (p.effect, p.low, p.high)
    shown = low is not None and high is not None and math.isfinite(high - low) and low < effect < high
    return PairResult(
        group_1=pair.a,
        group_2=pair.b,
        metric=METRIC,
        verdict=decision.verdict,
        reason=decision.reason,
        spec_verdict=spec_verdict(p.binomial_p, family, p.effect, p.n, MINIMUM_N[OutcomeKind.BINARY]),
        p_row=p.p_row,
        p_cluster=p.p_cluster,
        p_value=p.p_value,
        corrected_p_value=corrected,
        effect=effect,
        effect_name="d within order" if within else "d from win rate",
        effect_low=low if shown else None,
        effect_high=high if shown else None,
        difference=2 * p.rate - 1,
        worse_off=None if p.rate == 0.5 else pair.a if p.rate < 0.5 else pair.b,
        test=pair.test,
        scope="labels" if p.one_cluster else "names",
        mde=mde if math.isfinite(mde) else None,
        needs=decision.needs,
        statistics={
            "n": p.n,
            "wins_1": p.wins,
            "wins_2": p.n - p.wins,
            "win_rate_1": p.rate,
            "z": p.z,
            **({} if p.t is None else {"t": p.t, "df": p.df}),
            "binomial_p_value": p.binomial_p,
            "clusters_1": p.clusters[0],
            "clusters_2": p.clusters[1],
            "rows_lost_to_one_order": p.lost,
            "d_from_win_rate": p.effect,
            "d_from_win_rate_low": _finite(p.low),
            "d_from_win_rate_high": _finite(p.high),
            "d_within_order": p.effect if p.within is None else p.within,
            "d_within_order_low": _finite(p.within_low),
            "d_within_order_high": _finite(p.within_high),
            **({} if p.first_share is None else {"first_listed_share": p.first_share}),
            **pair.beside,
        },
        notes=decision.notes,
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


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


def describe(stood: Stood, has_refusals: bool) -> GroupResult:
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
            reach = float(t_quantile(clusters - 1, 0.975)) * float(shares.std(ddof=1)) / math.sqrt(clusters)
            low, high = max(0.0, float(shares.mean()) - reach), min(1.0, float(shares.mean()) + reach)
    if n and low is None:
        bounds = wilson(np.array([stood.won.sum()], dtype=float), np.array([float(n)]), 1.959963984540054)
        low, high = float(bounds[0][0]), float(bounds[1][0])
    total = n + stood.neither + stood.unscored + stood.refused
    return GroupResult(
        group=stood.group,
        n=n,
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
    if reason in (Reason.RAGGED, Reason.UNSCORED, Reason.N):
        return f"{verdict}: {decider.group_1} and {decider.group_2} cannot be compared; it would take {decider.needs}."
    rate = float(str(s["win_rate_1"]))
    winner, loser = decider.group_1, decider.group_2
    if rate < 0.5:
        winner, loser, rate = loser, winner, 1 - rate
    sure = f"{interval_words(decider, of=loser)}, corrected {p_words(decider.corrected_p_value)}"
    gap = f"of two equal candidates {winner} is chosen over {loser} in {100 * rate:.1f} % of {trials:,} trials"
    if rate == 0.5:
        gap = f"{winner} and {loser} are chosen equally often in {trials:,} trials"
    clusters = f"{s['clusters_1']} and {s['clusters_2']}" if s["clusters_1"] != s["clusters_2"] else s["clusters_1"]
    basis = "" if noun == "rows" else f"; {clusters} {noun[:-1] if clusters == 1 else noun}"
    room = _room(s.get("first_listed_share"))
    if verdict in ALARMS:
        return f"{verdict}: {gap}, where 50 % would be even ({sure}{basis}){room}."
    if verdict is Verdict.PASS:
        among = "between the two groups" if pairs == 1 else f"among {pairs} pairs of groups"
        return f"PASS: no preference larger than small {among} of {by}; the widest: {gap} ({sure}{basis}){room}."
    needs = f"; it would take {decider.needs}" if decider.needs else ""
    return f"INCONCLUSIVE: {gap}, too uncertain to tell ({sure}{basis}){room}{needs}."


def _room(first_share: JSON) -> str:
    """What the position leaves of the choice, where that is little."""
    if not isinstance(first_share, (int, float)) or 0.2 < first_share < 0.8:
        return ""
    where, share = ("first", first_share) if first_share > 0.5 else ("second", 1 - first_share)
    return f"; the one listed {where} is chosen in {100 * share:.0f} %, which leaves little room for a preference"
