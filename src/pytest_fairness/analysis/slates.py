"""One of k candidates chosen, or all of them ranked, as a finding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.analysis.judging_choices import Compared, Stood, describe, judge
from pytest_fairness.analysis.preference import (
    as_json,
    cluster_noun,
    compare_all,
    conclude_preference,
)
from pytest_fairness.model import JSON, Finding
from pytest_fairness.statistics.chi_squares import friedman, goodness_of_fit
from pytest_fairness.statistics.choice_among import (
    Among,
    Contrast,
    Slates,
    as_pairs,
    choose_among,
    read_slates,
)
from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.effects import LOGIT_TO_D

if TYPE_CHECKING:
    import pandas as pd


def analyze_slates(
    frame: pd.DataFrame,
    by: str,
    *,
    trial: str,
    chosen: str | None,
    rank: str | None,
    position: str | None,
    cluster: str | None,
    block: Sequence[str],
    alpha: float,
    correction: str,
) -> Finding:
    """See :func:`pytest_fairness.analyze_preference`, with ``trial`` given."""
    slates = read_slates(
        frame, by=by, trial=trial, chosen=chosen, rank=rank, position=position, cluster=cluster, block=block
    )
    noun = "rows" if cluster is None else cluster_noun(cluster).replace("name pairs", "names")
    compared = compare_all(as_pairs(slates))
    details: dict[str, JSON] = {}
    done = slates.decided
    if slates.rank is None:
        wins = np.bincount(slates.won[done], minlength=len(slates.labels)).astype(float)
        fit = goodness_of_fit(wins)
        details["goodness_of_fit"] = {"chi_square": fit.statistic, "df": fit.df, "p_value": fit.p}
        if done.any():
            among = choose_among(slates)
            compared = _by_logit(compared, among)
            details.update(_among(slates, among))
    else:
        test = friedman(slates.rank[done])
        details["friedman"] = {"chi_square": test.statistic, "df": test.df, "p_value": test.p}
        if done.any():
            means = slates.rank[done].mean(axis=0)
            details["mean_rank"] = dict(zip(slates.labels, means.tolist(), strict=True))
    pairs = judge(compared, alpha=alpha, correction=correction, noun=noun)
    has_refusals = "refused" in frame.columns
    stood = [_stood(slates, at) for at in range(len(slates.labels))]
    groups = tuple(describe(group, has_refusals) for group in stood)
    return conclude_preference(
        frame, pairs, groups, by=by, noun=noun, alpha=alpha, correction=correction, details=details, notes=(),
        cluster=cluster, block=block,
    )  # fmt: skip


def _by_logit(compared: list[Compared], among: Among) -> list[Compared]:
    """The conditional logit's verdict on each pair, where it has a maximum and the rows are evidence at all.

    Where a group always or never won, and where one cluster's replies are mere copies, the plain comparison
    of the two groups' wins stands.
    """
    if not among.fit.proper:
        return compared
    return [
        pair if pair.preference.copies else _with_contrast(pair, contrast, among.clusters)
        for pair, contrast in zip(compared, among.contrasts, strict=True)
    ]


def _with_contrast(pair: Compared, contrast: Contrast, clusters: int | None) -> Compared:
    p = pair.preference
    error = max(contrast.row_error, contrast.cluster_error or 0.0)
    df = math.inf if contrast.cluster_error is None or clusters is None else float(clusters - 1)
    reach = float(t_quantile(df if math.isfinite(df) else 1e9, 0.95)) * error
    d = contrast.difference
    return replace(
        pair,
        test="conditional logit" if contrast.p_cluster is None else "conditional logit, errors from clusters",
        preference=replace(
            p,
            rate=1 / (1 + math.exp(-d)),
            error=error / 4,
            df=df if math.isfinite(df) else 1e9,
            z=d / contrast.row_error if contrast.row_error else 0.0,
            t=None if not contrast.cluster_error else d / contrast.cluster_error,
            p_row=contrast.p_row,
            p_cluster=contrast.p_cluster,
            effect=d * LOGIT_TO_D,
            low=(d - reach) * LOGIT_TO_D,
            high=(d + reach) * LOGIT_TO_D,
            # The logit has taken the position out already.
            within=None,
            within_low=None,
            within_high=None,
        ),
        imputed=None,
    )


def _among(slates: Slates, among: Among) -> dict[str, JSON]:
    told: dict[str, JSON] = {
        "conditional_logit": {
            "strength": dict(zip(slates.labels, among.strength.tolist(), strict=True)),
            "ridge": not among.fit.proper,
            **as_json(among.groups),
        }
    }
    if among.order is not None and among.positions is not None:
        told["order_effect"] = {"log_odds_by_position": among.positions.tolist(), **as_json(among.order)}
    return told


def _stood(slates: Slates, group: int) -> Stood:
    done = slates.decided
    if slates.rank is None:
        won = slates.won[done] == group
    else:
        won = slates.rank[done, group] == slates.rank[done].min(axis=1)
    lost = ~done & ~slates.refused
    return Stood(
        group=slates.labels[group],
        won=won,
        cluster=None if slates.cluster is None else slates.cluster[done],
        neither=0,
        unscored=int(lost.sum()),
        refused=int(slates.refused.sum()),
    )
