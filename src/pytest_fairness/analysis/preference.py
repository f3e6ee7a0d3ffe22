"""Among equally qualified candidates, does the choice follow the group?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.analysis.judging_choices import (
    METRIC,
    Compared,
    Stood,
    check_options,
    describe,
    judge,
    preference_sentence,
)
from pytest_fairness.analysis.policy import assertion_verdict, deciding_pair
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import several
from pytest_fairness.analysis.sentences import effect_words, p_words
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Finding, GroupResult, OutcomeKind, PairResult
from pytest_fairness.statistics.arrays import require_frame
from pytest_fairness.statistics.bradley_terry import bradley_terry, interaction
from pytest_fairness.statistics.chi_squares import no_choice_by_pair, round_robin
from pytest_fairness.statistics.choices import (
    FIRST,
    NEITHER,
    REFUSED,
    SECOND,
    UNSCORED,
    Choices,
    block_columns,
    read_choices,
)
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.logit import LikelihoodRatio
from pytest_fairness.statistics.preference import Preference, compare_pair

if TYPE_CHECKING:
    import pandas as pd


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
) -> Finding:
    """Compare how often the groups are chosen over each other, as one family of all pairs.

    **Pairwise choices** (``trial`` is None): one row a trial. ``first`` and ``second`` are the columns of
    the two candidates' groups in the order listed, ``chosen`` that of the group chosen: one of the two,
    *neither*, or missing where no choice could be read. List every pair in both orders. ``by`` names the
    protected class in the report.

    **Choice among k, rankings** (``trial`` given): one row a candidate of a trial, each group once in each
    trial. ``by`` is the column of the group; ``chosen`` a yes/no column, or instead ``rank`` the column of
    ranks (1 best); ``position`` the column of the listed position, if known.

    Args:
        cluster: the column of the name or résumé pair, the unit of evidence; for pairwise choices also a
        pair of
            columns with the first and the second candidate's name, where names meet several others;
            ``None`` if every row stands for itself.
        block: the column or columns of the context (template, criteria, role). Orders are compared within
        it, and
            each column's interaction with the group is tested and reported.
        alpha, correction: the level, and ``bonferroni``, ``holm`` or ``fdr_bh`` over all pairs.

    ``refused``, ``undetermined`` and ``repetition`` columns are read if present.

    Raises:
        FrameError: a column is missing, a choice is not one of the candidates, a trial is duplicated or
        incomplete;
            the message names column and row.
        UsageError: an argument is out of range, or ``rank`` or ``position`` is given without ``trial``.
    """
    check_options(alpha, correction)
    blocks = block_columns(require_frame(frame), block)
    if trial is not None:
        from pytest_fairness.analysis.slates import analyze_slates

        if isinstance(cluster, tuple):
            raise UsageError("cluster=(…, …) is for pairwise choices; a choice among k has one cluster a trial")
        return analyze_slates(
            frame,
            by,
            trial=trial,
            chosen=None if rank is not None else chosen,
            rank=rank,
            position=position,
            cluster=cluster,
            block=blocks,
            alpha=alpha,
            correction=correction,
        )
    if rank is not None or position is not None:
        raise UsageError("rank=… and position=… need trial=…, the column that says which rows are one trial")
    choices = read_choices(
        frame, first=first, second=second, chosen=chosen, neither=neither, cluster=cluster, block=blocks
    )
    noun = cluster_noun(choices.cluster_name)
    compared = compare_all(choices)
    pairs = judge(compared, alpha=alpha, correction=correction, noun=noun)
    has_refusals = "refused" in frame.columns
    groups = tuple(describe(_stood(choices, at), has_refusals) for at in range(len(choices.labels)))
    details, notes = _whole(choices, alpha)
    return conclude_preference(
        frame,
        pairs,
        groups,
        by=by,
        noun=noun,
        alpha=alpha,
        correction=correction,
        details=details,
        notes=notes,
        cluster=choices.cluster_name,
        block=blocks,
    )


def cluster_noun(cluster: str | None) -> str:
    """What the unit of evidence is called in a sentence."""
    if cluster is None:
        return "rows"
    # Where both candidates have a column, the names on either side are the units.
    return "names" if " and " in cluster else "name pairs" if cluster == "name" else several(cluster)


def compare_all(choices: Choices) -> list[Compared]:
    """Every two groups that met at least once."""
    compared = []
    pairs = all_pairs(len(choices.labels))
    for a, b in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True):
        met = ((choices.first == a) & (choices.second == b)) | ((choices.first == b) & (choices.second == a))
        outcomes = choices.outcome[met]
        asked = int(np.sum(outcomes != REFUSED))
        if not outcomes.size:
            continue
        preference = compare_pair(choices, a, b)
        unscored = int(np.sum(outcomes == UNSCORED))
        test = "order-stratified z" if choices.listed else "z against one half"
        compared.append(
            Compared(
                a=choices.labels[a],
                b=choices.labels[b],
                preference=preference,
                unscored=unscored / asked if asked else 0.0,
                test=test if preference.p_cluster is None else f"{test}, and t on clusters",
                beside={
                    "neither": int(np.sum(outcomes == NEITHER)),
                    "unscored": unscored,
                    "refused": int(np.sum(outcomes == REFUSED)),
                },
                imputed=partial(_imputed, choices, a, b) if unscored else None,
            )
        )
    return compared


def _imputed(choices: Choices, a: int, b: int, won: bool) -> Preference:
    """A against B with every trial whose choice could not be read won by A (*won*), or by B."""
    between = ((choices.first == a) & (choices.second == b)) | ((choices.first == b) & (choices.second == a))
    unread = between & (choices.outcome == UNSCORED)
    first_wins = (choices.first == a) == won
    outcome = np.where(unread, np.where(first_wins, FIRST, SECOND), choices.outcome)
    return compare_pair(replace(choices, outcome=outcome), a, b)


def _stood(choices: Choices, group: int) -> Stood:
    here = (choices.first == group) | (choices.second == group)
    rows = choices.take(here)
    done = rows.decided
    won = np.where(rows.outcome == FIRST, rows.first, rows.second)[done] == group
    cluster = None
    if choices.clusters:
        own = choices.clusters if len(choices.clusters) == 1 else None
        codes = own[0][here] if own is not None else np.where(rows.first == group, rows.clusters[0], rows.clusters[1])
        cluster = codes[done]
    return Stood(
        group=choices.labels[group],
        won=won,
        cluster=cluster,
        neither=int(np.sum(rows.outcome == NEITHER)),
        unscored=int(np.sum(rows.outcome == UNSCORED)),
        refused=int(np.sum(rows.outcome == REFUSED)),
    )


def _whole(choices: Choices, alpha: float) -> tuple[dict[str, JSON], tuple[str, ...]]:
    """What is said of all groups together, trials taken as independent: it informs and decides nothing."""
    details: dict[str, JSON] = {}
    notes: list[str] = []
    plain, robin = round_robin(choices)
    details["round_robin"] = {
        "chi_square": robin.statistic,
        "chi_square_uncorrected": plain,
        "df": robin.df,
        "p_value": robin.p,
    }
    wins, shown = choices.wins()
    rates = {label: float(w / n) for label, w, n in zip(choices.labels, wins, shown, strict=True) if n}
    best = max(rates.values(), default=0.0)
    details["selection_rate"] = dict(rates)
    details["impact_ratio"] = min(rates.values()) / best if best else None
    done = choices.decided
    details["first_listed_share"] = float(np.mean(choices.outcome[done] == FIRST)) if done.any() else None
    strengths = bradley_terry(choices)
    if strengths is not None:
        details["bradley_terry"] = {
            "strength": dict(strengths.strength),
            "error": None if strengths.error is None else dict(strengths.error),
            "deviance": strengths.deviance,
            "ridge": not strengths.proper,
            **as_json(strengths.groups),
        }
        if strengths.order is not None:
            details["order_effect"] = {
                "log_odds": strengths.position,
                "error": strengths.position_error,
                **as_json(strengths.order),
            }
        if not strengths.proper:
            notes.append("a group always or never won, or not all met: strengths are a ridge fit, without p")
    refused = no_choice_by_pair(choices)
    details["no_choice"] = {"chi_square": refused.statistic, "df": refused.df, "p_value": refused.p}
    if refused.p < 0.005:
        notes.append("some pairs of groups are left without a choice more often than others")
    interactions: dict[str, JSON] = {}
    for name, level in choices.levels.items():
        if len(level.labels) > 1 and strengths is not None:
            ratio = interaction(choices, level)
            interactions[name] = {**as_json(ratio), "selection_rate": _by_level(choices, name)}
            if ratio.p is not None and ratio.p < alpha:
                notes.append(f"the preference depends on {name} ({p_words(ratio.p)}): judge each {name} by itself too")
    if interactions:
        details["interaction"] = interactions
    return details, tuple(notes)


def as_json(ratio: LikelihoodRatio) -> dict[str, JSON]:
    """A likelihood ratio for the report."""
    return {"likelihood_ratio": ratio.statistic, "df": ratio.df, "p_value": ratio.p}


def _by_level(choices: Choices, name: str) -> dict[str, JSON]:
    level = choices.levels[name]
    table: dict[str, JSON] = {}
    for at, label in enumerate(level.labels):
        wins, shown = choices.take(level.codes == at).wins()
        table[label] = {group: float(w / n) for group, w, n in zip(choices.labels, wins, shown, strict=True) if n}
    return table


def conclude_preference(
    frame: pd.DataFrame,
    pairs: tuple[PairResult, ...],
    groups: tuple[GroupResult, ...],
    *,
    by: str,
    noun: str,
    alpha: float,
    correction: str,
    details: dict[str, JSON],
    notes: tuple[str, ...],
    cluster: str | None,
    block: Sequence[str],
) -> Finding:
    """The finding of judged pairs of a choice."""
    verdict, reason = assertion_verdict(pairs)
    decider = deciding_pair(pairs)
    return finding_of(
        frame,
        assertion="no_preference",
        verdict=verdict,
        reason=reason,
        sentence=preference_sentence(verdict, reason, decider, by=by, pairs=len(pairs), noun=noun),
        by=by,
        groups=groups,
        decider=decider,
        test_statistic="" if decider is None else f"z = {float(str(decider.statistics['z'])):.4f}",
        effect_size="" if decider is None else f"{decider.effect_name} = {effect_words(decider.effect)}",
        notes=notes,
        pairs=pairs,
        outcome=METRIC,
        kind=OutcomeKind.BINARY,
        cluster=cluster,
        block=" × ".join(block) or None,
        family={"size": len(pairs), "method": correction, "alpha": alpha, "metrics": [METRIC]},
        details=details,
    )
