"""Among equally qualified candidates, does the choice follow the group? Choices of two, of several,
and rankings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pytest_fairness import model
from pytest_fairness.analysis.counts import as_rows
from pytest_fairness.analysis.family import Family, LostTrials, Member, keep_green
from pytest_fairness.analysis.looks import Look
from pytest_fairness.analysis.policy import Conclusion, Rule, conclude_pairs, judge_choices
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import check_level, several
from pytest_fairness.analysis.sentences import among_pairs, sure, would_take
from pytest_fairness.errors import UsageError
from pytest_fairness.statistics.arrays import Bools, Ints, require_frame
from pytest_fairness.statistics.bradley_terry import (
    Among,
    LikelihoodRatio,
    Strengths,
    bradley_terry,
    choose_among,
    interaction,
)
from pytest_fairness.statistics.choices import (
    FIRST,
    NEITHER,
    REFUSED,
    SECOND,
    UNSCORED,
    Choices,
    Slates,
    block_columns,
    read_choices,
    read_slates,
)
from pytest_fairness.statistics.clusters import CONFIDENCE, all_pairs, t_quantile
from pytest_fairness.statistics.effects import LOGIT_TO_D
from pytest_fairness.statistics.pair_table import PairTable
from pytest_fairness.statistics.win_rates import (
    ChiSquare,
    Interval,
    Preference,
    compare_pair,
    friedman,
    goodness_of_fit,
    no_choice_by_pair,
    round_robin,
    share_interval,
)
from pytest_fairness.words import effect_size, p_equals, percent

if TYPE_CHECKING:
    import pandas as pd

METRIC = "chosen"


def analyze_preference(
    frame: pd.DataFrame,
    by: str = "group",
    *,
    first: str = "first",
    second: str = "second",
    chosen: str = "chosen",
    neither: str = "neither",
    cluster: str | tuple[str, str] | None = "name",
    block: str | Sequence[str] | None = "template",
    trial: str | None = None,
    rank: str | None = None,
    position: str | None = None,
    alpha: float = 0.05,
    correction: str = "bonferroni",
    _look: Look | None = None,
) -> model.Finding:
    """Compare how often the groups are chosen over each other, as one family of all pairs.

    **Pairwise choices** (``trial`` is None): one row a trial. ``first`` and ``second`` are the
    columns of the two candidates' groups in the order listed, ``chosen`` that of the group chosen:
    one of the two,
    *neither*, or missing where no choice could be read. List every pair in both orders. ``by``
    names the protected class in the report.

    **Choice among k, rankings** (``trial`` given): one row a candidate of a trial, each group once
    in each trial. ``by`` is the column of the group; ``chosen`` a yes/no column, or instead
    ``rank`` the column of ranks (1 best); ``position`` the column of the listed position, if known.

    Args:
        cluster: the column of the name or résumé pair, the unit of evidence; for pairwise choices
            also a pair of columns with the first and the second candidate's name, where names meet
            several others; ``None`` if every row stands for itself.
        block: the column or columns of the context (template, criteria, role). Orders are compared
            within it, and each column's interaction with the group is tested and reported.
        alpha, correction: the level, and ``bonferroni``, ``holm`` or ``fdr_bh`` over all pairs.

    ``refused``, ``undetermined`` and ``repetition`` columns are read if present.

    Raises:
        FrameError: a column is missing, a choice is not one of the candidates, a trial is
            duplicated or incomplete; the message names column and row.
        UsageError: an argument is out of range, or ``rank`` or ``position`` is given without
            ``trial``.
    """
    check_level(alpha, correction)
    rule = Rule.at(_look, alpha, correction)
    frame = require_frame(as_rows(frame))
    blocks = block_columns(frame, block)
    notes: tuple[str, ...] = ()
    if trial is None:
        if rank is not None or position is not None:
            raise UsageError(
                "rank=… and position=… need trial=…, the column that says which rows are one trial"
            )
        choices = read_choices(
            frame,
            first=first,
            second=second,
            chosen=chosen,
            neither=neither,
            cluster=cluster,
            block=blocks,
        )
        cluster_name = choices.cluster_name
        noun = cluster_noun(choices.cluster_name)
        compared = compare_all(choices, rule.confidence)
        groups = _groups(choices)
        details, notes = _pairwise_details(choices, rule.alpha)
    elif isinstance(cluster, tuple):
        raise UsageError(
            "cluster=(…, …) is for pairwise choices; a choice among k has one cluster a trial"
        )
    else:
        column = None
        if rank is None:
            column = chosen
        slates = read_slates(
            frame,
            by=by,
            trial=trial,
            chosen=column,
            rank=rank,
            position=position,
            cluster=cluster,
            block=blocks,
        )
        cluster_name = cluster
        noun = cluster_noun(cluster).replace("name pairs", "names")
        groups = _groups(slates)
        compared, details = _among_several(slates, rule.confidence)
    if "refused" not in frame.columns:
        groups = [replace(group, refusal_rate=None) for group in groups]
    pairs = judge(compared, alpha=rule.alpha, correction=correction, noun=noun, look=_look)
    conclusion = conclude_pairs(pairs)
    return finding_of(
        frame,
        assertion="no_preference",
        conclusion=conclusion,
        sentence=preference_sentence(conclusion, by=by, pairs=len(pairs), noun=noun),
        by=by,
        groups=groups,
        tested=lambda pair: (
            f"z = {pair.statistics['z']:.4f}",
            f"{pair.effect_name} = {effect_size(pair.effect)}",
        ),
        notes=notes,
        pairs=pairs,
        outcome=METRIC,
        kind=model.OutcomeKind.BINARY,
        cluster=cluster_name,
        block=" × ".join(blocks) or None,
        family={"size": len(pairs), "method": correction, "alpha": rule.alpha, "metrics": [METRIC]},
        details=details,
    )


def cluster_noun(cluster: str | None) -> str:
    """Return what the unit of evidence is called in a sentence."""
    if cluster is None:
        return "rows"
    # Where both candidates have a column, the names on either side are the units.
    if " and " in cluster:
        return "names"
    if cluster == "name":
        return "name pairs"
    return several(cluster)


# ---------------------------------------------------------------- every two groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two groups (``a`` is the first label) and how often one was preferred; what the policy needs
    beside it.

    ``counts`` are the trials without a choice, by what they came to. ``imputed`` compares the
    groups again with all that could not be read won by A (True) or by B; None where that cannot be
    done.
    """

    a: str
    b: str
    preference: Preference
    counts: Mapping[str, int]
    trials: int
    test: str
    imputed: Callable[[bool], Preference] | None


def compare_all(choices: Choices, confidence: float = CONFIDENCE) -> list[Compared]:
    """Every two groups that met at least once, with intervals of *confidence*."""
    compared = []
    pairs = all_pairs(len(choices.labels))
    kinds = {"neither": NEITHER, "unscored": UNSCORED, "refused": REFUSED}
    test = "z against one half"
    if choices.listed:
        test = "order-stratified z"
    for a, b in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True):
        met = choices.take(choices.between(a, b))
        if not met.outcome.size:
            continue
        preference = compare_pair(met, a, b, confidence)
        tests = test
        if preference.p_cluster is not None:
            tests = f"{test}, and t on clusters"
        counts = {what: int(np.sum(met.outcome == outcome)) for what, outcome in kinds.items()}
        compared.append(
            Compared(
                a=choices.labels[a],
                b=choices.labels[b],
                preference=preference,
                counts=counts,
                trials=met.outcome.size,
                test=tests,
                imputed=partial(_imputed, met, a, b, confidence),
            )
        )
    return compared


def _imputed(met: Choices, a: int, b: int, confidence: float, won: bool) -> Preference:
    """A against B with every trial whose choice could not be read won by A (*won*), or by B."""
    winner = np.where((met.first == a) == won, FIRST, SECOND)
    return compare_pair(
        replace(met, outcome=np.where(met.outcome == UNSCORED, winner, met.outcome)),
        a,
        b,
        confidence,
    )


def judge(
    compared: Sequence[Compared],
    *,
    alpha: float,
    correction: str,
    noun: str,
    look: Look | None = None,
) -> tuple[model.PairResult, ...]:
    """One family: every pair of groups on which of the two was chosen; *alpha* is that of the
    *look*, where there is one.
    """
    rule = Rule(alpha=alpha, correction=correction, cluster_noun=noun, look=look)
    if not compared:
        return ()

    def imputed(at: int, won: bool, _: bool) -> PairTable | None:
        again = compared[at].imputed
        if again is None:
            return None
        return _table([replace(compared[at], preference=again(won))], table.effect_names, noun)

    effects: tuple[str, ...] = ("d from win rate",)
    if any(comparison.preference.within for comparison in compared):
        effects = ("d within order", "d from win rate")
    table = _table(compared, effects, noun)
    df = np.array([comparison.preference.df for comparison in compared])
    error = np.array([comparison.preference.error for comparison in compared])
    # Near a rate of one half, d = 4·(rate − ½)·√3/π.
    reach = t_quantile(df, 1 - rule.alpha / (2 * len(compared))) + t_quantile(df, 0.8)
    mde = reach * 4 * error * LOGIT_TO_D
    member = Member(
        name=METRIC,
        table=table,
        kind=model.OutcomeKind.BINARY,
        decide=judge_choices,
        lost=LostTrials(
            lost=np.array([[comparison.counts["unscored"]] for comparison in compared]),
            total=np.array(
                [[comparison.trials - comparison.counts["refused"]] for comparison in compared]
            ),
            imputed=imputed,
        ),
        noun="choice",
        lower_is_worse=True,
        favourable=1.0,
        alarm_only=False,
        report=lambda _: list(map(_statistics, compared)),
        mde=np.where(np.isfinite(mde), mde, np.nan),
    )
    family = Family([member], rule)
    judged = family.judge()
    for at, comparison in enumerate(compared):
        decision = judged[0].decisions[at]
        if (
            comparison.preference.first_share in {0.0, 1.0}
            and decision.reason is not model.Reason.RAGGED
        ):
            notes = (*decision.notes, "the position decided every choice")
            judged[0].decisions[at] = replace(decision, notes=notes)
    keep_green(judged[0], rule.look)
    return tuple(family.results(judged))


def _table(compared: Sequence[Compared], effect_names: tuple[str, ...], noun: str) -> PairTable:
    preferences = [comparison.preference for comparison in compared]
    # The effect within orders stands first, as the one that counts of two equal ones.
    effects = [
        [preference.within or preference.effect, preference.effect][-len(effect_names) :]
        for preference in preferences
    ]
    low, value, high = np.moveaxis(np.array(effects, dtype=np.float64), 2, 0)
    # Two that only rounding tells apart are equal: which one counts must not depend on the order of
    # the groups.
    value[:, -1] = np.where(
        np.isclose(value[:, -1], value[:, 0], rtol=0, atol=1e-12), value[:, 0], value[:, -1]
    )
    names = ("p_row", "p_cluster", "p_value", "lost", "rate", "binomial_p")
    columns = {
        name: np.array([getattr(preference, name) for preference in preferences], dtype=np.float64)
        for name in names
    }
    return PairTable(
        labels=tuple(label for pair in compared for label in (pair.a, pair.b)),
        first=2 * np.arange(len(preferences)),
        second=2 * np.arange(len(preferences)) + 1,
        effect_names=effect_names,
        own_rows=noun == "rows",
        effect=value,
        low=low,
        high=high,
        test=np.array([comparison.test for comparison in compared], dtype=object),
        p_row=columns["p_row"],
        p_cluster=columns["p_cluster"],
        p_value=columns["p_value"],
        difference=2 * columns["rate"] - 1,
        trials=np.array(
            [[preference.n, preference.n] for preference in preferences], dtype=np.float64
        ),
        clusters=np.array([preference.clusters for preference in preferences], dtype=np.float64),
        ragged=columns["lost"],
        alone=np.array([preference.one_cluster for preference in preferences], dtype=np.bool_),
        figures={
            "rate": columns["rate"],
            "spec_p_value": columns["binomial_p"],
            "spec_effect": np.array([preference.effect.value for preference in preferences]),
        },
    )


def _statistics(pair: Compared) -> dict[str, model.JSON]:
    p = pair.preference
    statistics: dict[str, model.JSON] = {
        "n": p.n,
        "wins_1": p.wins,
        "wins_2": p.n - p.wins,
        "win_rate_1": p.rate,
        "z": p.z,
    }
    if p.t is not None:
        statistics |= {"t": p.t, "df": p.df}
    statistics |= {
        "binomial_p_value": p.binomial_p,
        "clusters_1": p.clusters[0],
        "clusters_2": p.clusters[1],
        "rows_lost_to_one_order": p.lost,
    }
    if p.first_share is not None:
        statistics["first_listed_share"] = p.first_share
    statistics |= pair.counts
    within = p.within or Interval(-math.inf, p.effect.value, math.inf)
    for name, effect in (("d_from_win_rate", p.effect), ("d_within_order", within)):
        statistics[name] = effect.value
        for end, value in (("low", effect.low), ("high", effect.high)):
            statistics[f"{name}_{end}"] = None
            if math.isfinite(value):
                statistics[f"{name}_{end}"] = value
    return statistics


# ---------------------------------------------------------------- each group


def _groups(read: Choices | Slates) -> list[model.GroupResult]:
    """Each group's share of wins among the decided trials that it stood in, with its 95 % interval."""
    stood: Callable[[int], _Stood]
    if isinstance(read, Choices):
        stood = partial(_trials_of, read)
    else:
        stood = partial(_slates_of, read)
    return [stood(group).result(label) for group, label in enumerate(read.labels)]


class _Stood(NamedTuple):
    """The trials that a group stood in: which are decided, which it won, the names that they are
    about, and how many chose neither or were refused."""

    decided: Bools
    won: Bools
    names: Ints | None
    neither: int
    refused: int

    def result(self, label: str) -> model.GroupResult:
        n = int(self.decided.sum())
        size = self.decided.size
        group = model.GroupResult(
            group=label,
            n=n,
            clusters=0,
            refused=self.refused,
            undetermined=self.neither,
            unscored=size - n - self.neither - self.refused,
        )
        if size:
            shares = {"neither": self.neither / size}
            group = replace(group, refusal_rate=self.refused / size, shares=shares)
        if n:
            won = self.won[self.decided]
            names = self.names
            if names is not None:
                names = names[self.decided]
            low, high, clusters = share_interval(won, names)
            group = replace(group, value=float(won.mean()), low=low, high=high, clusters=clusters)
        return group


def _trials_of(choices: Choices, group: int) -> _Stood:
    rows = choices.take(choices.stood(group))
    return _Stood(
        decided=rows.decided,
        won=rows.winner == group,
        names=choices.names_of(group),
        neither=int(np.sum(rows.outcome == NEITHER)),
        refused=int(np.sum(rows.outcome == REFUSED)),
    )


def _slates_of(slates: Slates, group: int) -> _Stood:
    won = slates.won == group
    if slates.rank is not None:
        won = slates.rank[:, group] == slates.rank.min(axis=1)
    refused = int((~slates.decided & slates.refused).sum())
    return _Stood(decided=slates.decided, won=won, names=slates.cluster, neither=0, refused=refused)


# ---------------------------------------------------------------- all groups together: it informs and decides nothing


def _ratio(ratio: LikelihoodRatio) -> dict[str, model.JSON]:
    return {"likelihood_ratio": ratio.statistic, "df": ratio.df, "p_value": ratio.p}


def _chi_square(test: ChiSquare) -> dict[str, model.JSON]:
    return {"chi_square": test.statistic, "df": test.df, "p_value": test.p}


def _rates(choices: Choices) -> dict[str, float]:
    rates = {}
    for label, wins, shown in zip(choices.labels, *choices.wins(), strict=True):
        if shown:
            rates[label] = float(wins / shown)
    return rates


def _pairwise_details(
    choices: Choices, alpha: float
) -> tuple[dict[str, model.JSON], tuple[str, ...]]:
    """Strengths, position and interactions, with trials taken as independent."""
    plain, robin = round_robin(choices)
    refused = no_choice_by_pair(choices)
    strengths = bradley_terry(choices)
    rates = _rates(choices)
    impact_ratio = None
    if any(rates.values()):
        impact_ratio = min(rates.values()) / max(rates.values())
    first = choices.outcome[choices.decided] == FIRST
    first_share = None
    if first.size:
        first_share = float(np.mean(first))
    details: dict[str, model.JSON] = {
        "round_robin": {**_chi_square(robin), "chi_square_uncorrected": plain.statistic},
        "selection_rate": dict(rates),
        "impact_ratio": impact_ratio,
        "first_listed_share": first_share,
        "no_choice": _chi_square(refused),
    }
    notes = []
    if refused.p < 0.005:
        notes.append("some pairs of groups are left without a choice more often than others")
    if strengths is None:
        return details, tuple(notes)
    if not strengths.proper:
        notes.append(
            "a group always or never won, or not all met: strengths are a ridge fit, without p"
        )
    details |= _strengths(strengths)
    interactions: dict[str, model.JSON] = {}
    for name, level in choices.levels.items():
        if len(level.labels) < 2:
            continue
        ratio = interaction(choices, level)
        by_level: dict[str, model.JSON] = {}
        for at, label in enumerate(level.labels):
            by_level[label] = dict(_rates(choices.take(level.codes == at)))
        interactions[name] = {**_ratio(ratio), "selection_rate": by_level}
        if ratio.p is not None and ratio.p < alpha:
            notes.append(
                f"the preference depends on {name} ({p_equals(ratio.p)}): judge each {name} by "
                "itself too"
            )
    if interactions:
        details["interaction"] = interactions
    return details, tuple(notes)


def _strengths(strengths: Strengths) -> dict[str, model.JSON]:
    """Return the strengths of the groups and, where the order is known, what the position adds."""
    error: model.JSON = None
    if strengths.error is not None:
        error = dict(strengths.error)
    details: dict[str, model.JSON] = {
        "bradley_terry": {
            "strength": dict(strengths.strength),
            "error": error,
            "deviance": strengths.deviance,
            "ridge": not strengths.proper,
            **_ratio(strengths.groups),
        }
    }
    if strengths.order is not None:
        position = {"log_odds": strengths.position, "error": strengths.position_error}
        details["order_effect"] = {**position, **_ratio(strengths.order)}
    return details


def _among_several(
    slates: Slates, confidence: float
) -> tuple[list[Compared], dict[str, model.JSON]]:
    """The pairs of rankings as they are; those of choices by the conditional logit, where it has a
    maximum and the rows are evidence at all.

    Where a group always or never won, and where one cluster's replies are mere copies, the plain
    comparison of the two groups' wins stands.
    """
    compared = compare_all(slates.as_pairs(), confidence)
    done = slates.decided
    if slates.rank is not None:
        ranks = slates.rank[done]
        details: dict[str, model.JSON] = {"friedman": _chi_square(friedman(ranks))}
        if len(ranks):
            means = ranks.mean(axis=0).tolist()
            details["mean_rank"] = dict(zip(slates.labels, means, strict=True))
        return compared, details
    wins = np.bincount(slates.won[done], minlength=len(slates.labels)).astype(float)
    details = {"goodness_of_fit": _chi_square(goodness_of_fit(wins))}
    if not done.any():
        return compared, details
    among = choose_among(slates)
    details["conditional_logit"] = {
        "strength": dict(zip(slates.labels, among.strength.tolist(), strict=True)),
        "ridge": not among.fit.proper,
        **_ratio(among.groups),
    }
    if among.order is not None and among.positions is not None:
        details["order_effect"] = {
            "log_odds_by_position": among.positions.tolist(),
            **_ratio(among.order),
        }
    if among.fit.proper:
        for at, pair in enumerate(compared):
            if not pair.preference.copies:
                compared[at] = _by_logit(pair, among, at, confidence)
    return compared, details


def _by_logit(pair: Compared, among: Among, at: int, confidence: float) -> Compared:
    """*pair* in place *at* by the conditional logit *among* all groups."""
    d = float(among.difference[at])
    row_error = float(among.row_error[at])
    cluster_error = 0.0
    df = 1e9
    test = "conditional logit"
    t = None
    if among.cluster_error is not None and among.clusters is not None:
        cluster_error = float(among.cluster_error[at])
        df = float(among.clusters - 1)
        test = "conditional logit, errors from clusters"
    z = 0.0
    if row_error:
        z = d / row_error
    if cluster_error:
        t = d / cluster_error
    p_cluster = None
    if among.p_cluster is not None:
        p_cluster = float(among.p_cluster[at])
    error = max(row_error, cluster_error)
    reach = float(t_quantile(df, (1 + confidence) / 2)) * error
    preference = replace(
        pair.preference,
        rate=1 / (1 + math.exp(-d)),
        error=error / 4,
        df=df,
        z=z,
        t=t,
        p_row=float(among.p_row[at]),
        p_cluster=p_cluster,
        effect=Interval((d - reach) * LOGIT_TO_D, d * LOGIT_TO_D, (d + reach) * LOGIT_TO_D),
        within=None,  # the logit has taken the position out already
    )
    return replace(pair, test=test, preference=preference, imputed=None)


# ---------------------------------------------------------------- the sentence


def preference_sentence(conclusion: Conclusion, *, by: str, pairs: int, noun: str) -> str:
    """Return who is chosen over whom, how often, how sure."""
    verdict, reason, decider = conclusion
    if decider is None:
        return f"{verdict}: there are no two groups of {by} to choose between."
    winner = decider.group_1
    loser = decider.group_2
    s = decider.statistics
    if reason in (model.Reason.RAGGED, model.Reason.UNSCORED, model.Reason.N):
        return f"{verdict}: {winner} and {loser} cannot be compared; it would take {decider.needs}."
    trials = s["n"]
    rate = float(str(s["win_rate_1"]))
    if rate < 0.5:
        winner, loser, rate = loser, winner, 1 - rate
    gap = (
        f"of two equal candidates {winner} is chosen over {loser} in {percent(rate)} of "
        f"{trials:,} trials"
    )
    if rate == 0.5:
        gap = f"{winner} and {loser} are chosen equally often in {trials:,} trials"
    certainty = f"{sure(decider, of=loser)}{_units(decider, noun)}"
    remark = f"({certainty}){_room(s.get('first_listed_share'))}"
    if verdict in model.ALARMS:
        return f"{verdict}: {gap}, where 50 % would be even {remark}."
    if verdict is model.Verdict.PASS:
        wide = f"no preference larger than small {among_pairs(pairs)} of {by}"
        return f"PASS: {wide}; the widest: {gap} {remark}."
    return f"INCONCLUSIVE: {gap}, too uncertain to tell {remark}{would_take(decider)}."


def _units(pair: model.PairResult, noun: str) -> str:
    """Return from how many clusters a result comes; nothing where rows are the unit."""
    first = pair.statistics["clusters_1"]
    second = pair.statistics["clusters_2"]
    if noun == "rows":
        return ""
    if first != second:
        return f"; {first} and {second} {noun}"
    if first == 1:
        return f"; 1 {noun[:-1]}"
    return f"; {first} {noun}"


def _room(first_share: model.JSON) -> str:
    """Return what the position leaves of the choice, where that is little."""
    if not isinstance(first_share, (int, float)) or 0.2 < first_share < 0.8:
        return ""
    where = "first"
    share = first_share
    if first_share <= 0.5:
        where = "second"
        share = 1 - first_share
    return (
        f"; the one listed {where} is chosen in {percent(share, 0)}, which leaves little room for "
        "a preference"
    )
