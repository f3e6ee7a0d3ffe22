"""All numbers of the selection benchmark from its table of trials: each arm, the arms against each other, the scrubber.

They are assembled from the package's own analyses, and stand beside the plain recipe's (binomial, χ²), so that both can
be read: a verdict comes from the tests within orders, with the names as the unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.analysis.choice_columns import NEITHER
from pytest_fairness.analysis.policy import assertion_verdict, deciding_pair
from pytest_fairness.analysis.preference import Compared, check_options, compare_all, judge, preference_sentence
from pytest_fairness.errors import FrameError
from pytest_fairness.model import PairResult
from pytest_fairness.scorers.choice import ChoiceStatus
from pytest_fairness.statistics.arrays import code
from pytest_fairness.statistics.bradley_terry import Strengths as Fitted
from pytest_fairness.statistics.bradley_terry import bradley_terry, interaction
from pytest_fairness.statistics.choices import Choices
from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.selection_rates import (
    Rate,
    Units,
    clustered_interaction,
    first_listed_rate,
    selection_rates,
    units_of,
)
from pytest_fairness.statistics.win_rates import no_choice_by_pair, round_robin
from pytest_fairness.suites.selection.configuration import GUESSING
from pytest_fairness.suites.selection.contrasts import Contrast, contrasts_of
from pytest_fairness.suites.selection.design import GROUP, margins_of
from pytest_fairness.suites.selection.design import contrasts as planned_contrasts
from pytest_fairness.suites.selection.facts import cost_of, facts_of, requests_of
from pytest_fairness.suites.selection.impact import four_fifths_of
from pytest_fairness.suites.selection.reading import (
    AXES,
    Classes,
    axes_of,
    by_class,
    classes_of,
    groups_of,
    read,
    require_choices,
)
from pytest_fairness.suites.selection.results import (
    ArmResult,
    EqualShares,
    GroupShare,
    Interaction,
    Level,
    Listing,
    Margin,
    Matchup,
    OrderEffect,
    Outcomes,
    SelectionResults,
    Share,
    Strength,
    Strengths,
)
from pytest_fairness.suites.selection.scrubber_quality import scrubber_qualities

if TYPE_CHECKING:
    import pandas as pd


def selection_results(
    trials: pd.DataFrame,
    *,
    classes: Classes | None = None,
    contrasts: Sequence[Contrast] | None = None,
    axes: Sequence[str] = AXES,
    names_design: str | None = None,
    alpha: float = 0.05,
    correction: str = "bonferroni",
    permutations: int = 199,
    seed: int = 0,
) -> SelectionResults:
    """Everything that the benchmark's page tells.

    Args:
        trials: one row a trial, as ``@pytest.mark.fairness_pairs`` gives them: ``first``, ``second``, ``chosen``,
            and, as far as they are there, ``arm``, ``template``, ``first_name``, ``second_name``, ``name``,
            ``repetition``, ``choice``, ``candidates_text``, the *axes*, and what was paid.
        classes: the protected classes of each group, ``{"white_male": {"gender": "male", …}}``; by default those of
            the shipped sets where the groups are called as there. Classes that are crossed are compared too.
        contrasts: (treated, control, what it isolates), fixed beforehand; by default those of the three-arm design.
        names_design: a label for what the names allow to be claimed; by default told from the table.
        permutations, seed: of the re-identification tests.

    Raises FrameError for a table of the wrong shape, UsageError for an argument out of range.
    """
    check_options(alpha, correction)
    frame = require_choices(trials)
    if frame.empty:
        raise FrameError("the frame has no rows: there is no trial to tell anything from")
    arms = tuple(map(str, dict.fromkeys(frame["arm"])))
    choosing = frame[~frame["arm"].astype(str).str.startswith(GUESSING)]
    if choosing.empty:
        raise FrameError(f"column 'arm': all arms are called {GUESSING}…, which ask for no choice")
    groups = groups_of(frame)
    known = classes_of(groups, classes)
    told = tuple(map(str, dict.fromkeys(choosing["arm"])))
    results = tuple(
        _arm(choosing[choosing["arm"] == arm], arm, known, axes, alpha=alpha, correction=correction) for arm in told
    )
    planned = [(one.treated, one.control, one.isolates) for one in planned_contrasts(told)]
    return SelectionResults(
        run=facts_of(frame, choosing, groups, known, arms, names_design),
        arms=results,
        contrasts=contrasts_of(
            choosing, planned if contrasts is None else contrasts, known, alpha=alpha, correction=correction
        ),
        scrubbers=scrubber_qualities(
            frame, known, alpha=alpha, correction=correction, permutations=permutations, seed=seed
        ),
        alpha=alpha,
        correction=correction,
    )


def _arm(
    frame: pd.DataFrame, arm: str, classes: Classes, axes: Sequence[str], *, alpha: float, correction: str
) -> ArmResult:
    choices = read(frame)
    units = units_of(choices)
    compared = compare_all(choices)
    pairs = judge(compared, alpha=alpha, correction=correction, noun="names")
    verdict, reason = assertion_verdict(pairs)
    strengths = bradley_terry(choices)
    plain, robin = round_robin(choices)
    tables = {GROUP: frame, **{by: by_class(frame, by, classes) for by in margins_of(classes)}}
    reads = {by: choices if by == GROUP else read(table) for by, table in tables.items() if len(table)}
    interactions = tuple(_interaction(reads[by], tables[by], axis, by) for axis in axes_of(frame, axes) for by in reads)
    notes = []
    if strengths is not None and not strengths.proper:
        notes.append("a group always or never won, or not all met: strengths are a ridge fit, without p")
    if units.count < 2:
        notes.append("one name a group: what is found is about these names as much as about the groups")
    return ArmResult(
        arm=arm,
        trials=len(frame),
        requests=requests_of(frame),
        decided=int(choices.decided.sum()),
        cost=cost_of(frame),
        rates=_shares(choices, selection_rates(choices, units)),
        pairs=tuple(_matchup(c, p, choices, units) for c, p in zip(compared, pairs, strict=True)),
        margins=tuple(_margin(reads[by], by, alpha, correction) for by in reads if by != GROUP),
        order=_order(choices, units, strengths),
        interactions=interactions,
        equal_shares=EqualShares(
            plain=plain.statistic,
            plain_p=plain.p,
            corrected=robin.statistic,
            df=robin.df,
            p_value=robin.p,
        ),
        four_fifths=four_fifths_of(choices, units, by=GROUP, alpha=alpha, correction=correction),
        strengths=None if strengths is None else _strengths(strengths),
        outcomes=_outcomes(frame),
        no_choice_p=no_choice_by_pair(choices).p,
        verdict=verdict,
        reason=reason,
        sentence=preference_sentence(
            verdict, reason, deciding_pair(pairs), by=GROUP, pairs=len(pairs), noun="names"
        ),
        notes=tuple(notes),
    )  # fmt: skip


def _shares(choices: Choices, rates: Sequence[Rate]) -> tuple[GroupShare, ...]:
    return tuple(
        GroupShare(group=label, share=share_of(rate)) for label, rate in zip(choices.labels, rates, strict=True)
    )


def share_of(rate: Rate) -> Share:
    """A rate for the report."""
    return Share(n=rate.n, count=rate.won, value=rate.value, low=rate.low, high=rate.high)


def _matchup(compared: Compared, pair: PairResult, choices: Choices, units: Units) -> Matchup:
    p = compared.preference
    reach = float(t_quantile(p.df, 0.975)) * p.error if np.isfinite(p.error) else 1.0
    listings = []
    for first, second in ((compared.a, compared.b), (compared.b, compared.a)):
        here = (choices.first == choices.labels.index(first)) & (choices.second == choices.labels.index(second))
        share = share_of(first_listed_rate(choices.take(here), units.take(here)))
        listings.append(Listing(first=first, second=second, share=share))
    return Matchup(
        group_1=compared.a,
        group_2=compared.b,
        share=Share(
            n=p.n,
            count=p.wins,
            value=p.rate if p.n else None,
            low=max(0.0, p.rate - reach) if p.n else None,
            high=min(1.0, p.rate + reach) if p.n else None,
        ),
        listings=tuple(listings),
        binomial_p=p.binomial_p,
        stratified_p=p.p_row,
        clustered_p=p.p_cluster,
        p_value=pair.p_value,
        corrected_p_value=pair.corrected_p_value,
        effect=p.effect.value,
        effect_low=p.effect.low,
        effect_high=p.effect.high,
        within_order=(p.within or p.effect).value,
        name_pairs=min(p.clusters),
        scope=pair.scope,
        verdict=pair.verdict,
        reason=pair.reason,
        needs=pair.needs,
    )


def _margin(choices: Choices, by: str, alpha: float, correction: str) -> Margin:
    units = units_of(choices)
    compared = compare_all(choices)
    pairs = judge(compared, alpha=alpha, correction=correction, noun="names")
    verdict, reason = assertion_verdict(pairs)
    return Margin(
        by=by,
        rates=_shares(choices, selection_rates(choices, units)),
        pairs=tuple(_matchup(c, p, choices, units) for c, p in zip(compared, pairs, strict=True)),
        verdict=verdict,
        reason=reason,
        sentence=preference_sentence(verdict, reason, deciding_pair(pairs), by=by, pairs=len(pairs), noun="names"),
    )


def _order(choices: Choices, units: Units, strengths: Fitted | None) -> OrderEffect | None:
    if strengths is None or strengths.order is None:
        return None
    return OrderEffect(
        share=share_of(first_listed_rate(choices, units)),
        log_odds=strengths.position,
        error=strengths.position_error,
        likelihood_ratio=strengths.order.statistic,
        df=strengths.order.df,
        p_value=strengths.order.p,
    )


def _interaction(choices: Choices, frame: pd.DataFrame, axis: str, by: str) -> Interaction:
    level = code(frame, axis, "axis")
    units = units_of(choices)
    levels = []
    for at, label in enumerate(level.labels):
        here = level.codes == at
        some = choices.take(here)
        levels.append(Level(level=label, shares=_shares(some, selection_rates(some, units.take(here)))))
    if not choices.decided.any():
        return Interaction(axis=axis, by=by, levels=tuple(levels), likelihood_ratio=0.0, df=0)
    ratio = interaction(choices, level)
    clustered = clustered_interaction(choices, level, units)
    return Interaction(
        axis=axis,
        by=by,
        levels=tuple(levels),
        likelihood_ratio=ratio.statistic,
        df=ratio.df,
        row_p=ratio.p,
        clustered_p=clustered,
        p_value=ratio.p if ratio.p is None or clustered is None else clustered,
    )


def _strengths(fitted: Fitted) -> Strengths:
    return Strengths(
        groups=tuple(
            Strength(group=group, value=value, error=None if fitted.error is None else fitted.error[group])
            for group, value in fitted.strength.items()
        ),
        position=fitted.position,
        position_error=fitted.position_error,
        likelihood_ratio=fitted.groups.statistic,
        df=fitted.groups.df,
        p_value=fitted.groups.p,
        ridge=not fitted.proper,
    )


def _outcomes(frame: pd.DataFrame) -> tuple[Outcomes, ...]:
    said = _said(frame)
    pairs = ["\0".join(sorted(map(str, pair))) for pair in zip(frame["first"], frame["second"], strict=True)]
    table = said.groupby([np.asarray(pairs, dtype=object), said.to_numpy()]).size()
    found = []
    for pair in dict.fromkeys(sorted(pairs)):
        counts = {word.value: int(table.get((pair, word.value), 0)) for word in ChoiceStatus}
        group_1, group_2 = pair.split("\0")
        found.append(Outcomes(group_1=group_1, group_2=group_2, asked=sum(counts.values()), counts=counts))
    return tuple(found)


def _said(frame: pd.DataFrame) -> pd.Series:
    """What each reply came to: the column ``choice``, else as much of it as the other columns tell."""
    import pandas as pd

    if "choice" in frame.columns:
        said = frame["choice"].astype(object)
        unknown = sorted({str(value) for value in said.dropna()} - set(ChoiceStatus))
        if unknown:
            raise FrameError(f"column 'choice': {unknown[0]!r} is none of {', '.join(ChoiceStatus)}")
        return said.where(said.notna(), ChoiceStatus.UNPARSED.value).map(str)
    chosen = frame["chosen"]
    refused = frame["refused"].fillna(False).astype(bool) if "refused" in frame.columns else chosen.isna() & False
    told = np.where(
        chosen.isna(), ChoiceStatus.UNPARSED.value, np.where(chosen == NEITHER, NEITHER, ChoiceStatus.CHOSEN.value)
    )
    return pd.Series(np.where(refused, ChoiceStatus.REFUSED.value, told), index=frame.index, dtype=object)
