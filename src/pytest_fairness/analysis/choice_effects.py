"""Effects on a choice between two candidates beside their groups: the position, and the context.
Both are flagged, and never passed: that neither is found claims nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_fairness.analysis.checks import checked
from pytest_fairness.model import Finding, GroupResult, OutcomeKind, PairResult, Verdict, to_json
from pytest_fairness.statistics.arrays import Coded
from pytest_fairness.statistics.bradley_terry import Strengths
from pytest_fairness.statistics.bradley_terry import interaction as interaction_ratio
from pytest_fairness.statistics.choices import Choices
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.selection_rates import (
    Rate,
    Units,
    clustered_interaction,
    first_listed_rate,
    selection_rates,
)
from pytest_fairness.words import p_equals, percent, points

if TYPE_CHECKING:
    import pandas as pd

#: From this share of choices on, for the first or for the second, the position leaves little to see
#: a preference by.
DECIDED_BY_POSITION = 0.9
ALPHA = 0.05
#: Shares of one group that differ by less between two levels are trivial, however sure.
SPREAD = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShare:
    """A share of one group: of the choices that it stood in those that it won, or of its texts."""

    group: str
    share: Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEffect:
    """The share of the first-listed, whoever it is.

    ``log_odds`` of standing first with its standard ``error``, and the likelihood ratio of leaving
    the position out, take trials as independent. None where a fit has no maximum.
    """

    share: Rate
    log_odds: float | None
    error: float | None
    likelihood_ratio: float
    df: int
    p_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLevel:
    """The share of each group at one level of the context."""

    level: str
    shares: tuple[GroupShare, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextInteraction:
    """The dependence of the preference between the groups of class *by* on *axis* of the context.

    ``likelihood_ratio`` (χ² with *df*, ``row_p``) takes trials as independent; ``clustered_p`` has
    the names as its unit, and is the ``p_value`` where there are enough of them. None where a group
    always or never won at some level; nothing is tested where nobody was chosen.
    """

    axis: str
    by: str
    levels: tuple[ContextLevel, ...]
    likelihood_ratio: float = 0.0
    df: int = 0
    row_p: float | None = None
    clustered_p: float | None = None
    p_value: float | None = None


def group_shares(choices: Choices, units: Units) -> tuple[GroupShare, ...]:
    """Return how often each group is chosen."""
    rates = selection_rates(choices, units)
    return tuple(
        GroupShare(group=group, share=rate)
        for group, rate in zip(choices.labels, rates, strict=True)
    )


def order_effect(choices: Choices, units: Units, strengths: Strengths | None) -> OrderEffect | None:
    """Return the effect of the position beside the *strengths* of the groups; None where no choice
    could be read.
    """
    if strengths is None or strengths.order is None:
        return None
    return OrderEffect(
        share=first_listed_rate(choices, units),
        log_odds=strengths.position,
        error=strengths.position_error,
        likelihood_ratio=strengths.order.statistic,
        df=strengths.order.df,
        p_value=strengths.order.p,
    )


def context_interaction(
    choices: Choices, units: Units, level: Coded, *, axis: str, by: str
) -> ContextInteraction:
    """Return whether the preference depends on the *level* of *axis*, which has one a choice."""
    levels = []
    for place, label in enumerate(level.labels):
        here = level.codes == place
        shares = group_shares(choices.take(here), units.take(here))
        levels.append(ContextLevel(level=label, shares=shares))
    untested = ContextInteraction(axis=axis, by=by, levels=tuple(levels))
    if not choices.decided.any():
        return untested
    ratio = interaction_ratio(choices, level)
    clustered_p = clustered_interaction(choices, level, units)
    p_value = ratio.p
    if p_value is not None and clustered_p is not None:
        p_value = clustered_p
    return replace(
        untested,
        likelihood_ratio=ratio.statistic,
        df=ratio.df,
        row_p=ratio.p,
        clustered_p=clustered_p,
        p_value=p_value,
    )


# ---------------------------------------------------------------- findings


def order_finding(effect: OrderEffect | None, trials: pd.DataFrame, arm: str) -> Finding | None:
    """Return a FLAG where the position decides nearly every choice among the *trials* of *arm*,
    else nothing: an order effect by itself is no bias.

    Every pair meets in both orders, so the position favours no group; it can only hide a
    preference.
    """
    if effect is None or effect.share.value is None:
        return None
    first = effect.share.value
    decided = max(first, 1 - first)
    if decided < DECIDED_BY_POSITION:
        return None
    place = "second"
    if first > 0.5:
        place = "first"
    return _flagged(
        trials,
        effect,
        [("listed first", effect.share)],
        assertion="order_effect",
        words=(
            f"in arm {arm} the candidate listed {place} is chosen in {percent(decided)} of "
            f"{effect.share.n} trials, whoever it is, so that little is left to see a preference by"
        ),
        effect_size=f"log odds of standing first = {effect.log_odds:.2f}",
        p_value=effect.p_value,
        corrected_p_value=effect.p_value,
        details={"order_effect": to_json(effect)},
    )


class _LevelShare(NamedTuple):
    """The share of one group at one level."""

    value: float
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shift:
    """The group whose share varies most between the levels of an interaction, with its lowest and
    its highest share.
    """

    interaction: ContextInteraction
    p_value: float
    corrected_p_value: float
    group: str
    low: _LevelShare
    high: _LevelShare

    @property
    def spread(self) -> float:
        return self.high.value - self.low.value


def interaction_finding(
    interactions: Sequence[ContextInteraction],
    trials: pd.DataFrame,
    arm: str,
    *,
    alpha: float = ALPHA,
) -> Finding | None:
    """Return a FLAG where the preference among the *trials* of *arm* depends on the context, else
    nothing.

    The *interactions* are one family at level *alpha*: every axis, between all groups and by each
    of their classes (Holm). A pass on the whole is then not the last word: preferences that turn
    round between two criteria even out.
    """
    tested = [
        (interaction, interaction.p_value)
        for interaction in interactions
        if interaction.p_value is not None
    ]
    shifts = [shift for shift in _shifts(tested, alpha) if shift.spread >= SPREAD]
    if not shifts:
        return None
    surest = min(shifts, key=lambda shift: shift.corrected_p_value)
    interaction = surest.interaction
    return _flagged(
        trials,
        interaction,
        _shares_by_level(interaction),
        assertion="interaction",
        words=(
            f"in arm {arm} who is chosen depends on {interaction.axis}: {surest.group} is chosen "
            f"in {percent(surest.low.value)} of its trials for {surest.low.level!r} and in "
            f"{percent(surest.high.value)} for {surest.high.level!r} "
            f"({points(surest.spread, plus=False)} points, corrected {p_equals(surest.corrected_p_value)})"
        ),
        protected_class=interaction.by,
        effect_size=f"widest difference of shares = {surest.spread:.3f} ({surest.group})",
        p_value=surest.p_value,
        corrected_p_value=surest.corrected_p_value,
        pairs=tuple(map(_pair_result, shifts)),
        family={"size": len(tested), "method": "holm", "alpha": alpha, "metrics": ["chosen"]},
        details={"interactions": to_json(interactions)},
    )


def _shifts(tested: Sequence[tuple[ContextInteraction, float]], alpha: float) -> Iterator[_Shift]:
    """Yield the widest shift of each interaction that is significant at *alpha* after correction."""
    if not tested:
        return
    corrected = correct([p_value for _, p_value in tested], "holm").tolist()
    for (interaction, p_value), q in zip(tested, corrected, strict=True):
        if q < alpha:
            yield _widest(interaction, p_value, q)


def _widest(interaction: ContextInteraction, p_value: float, corrected: float) -> _Shift:
    shares: dict[str, list[_LevelShare]] = {}
    for level in interaction.levels:
        for chosen in level.shares:
            if chosen.share.value is not None:
                share = _LevelShare(chosen.share.value, level.level)
                shares.setdefault(chosen.group, []).append(share)
    shifts = [
        _Shift(
            interaction=interaction,
            p_value=p_value,
            corrected_p_value=corrected,
            group=group,
            low=min(levels),
            high=max(levels),
        )
        for group, levels in shares.items()
    ]
    return max(shifts, key=lambda shift: shift.spread)


def _shares_by_level(interaction: ContextInteraction) -> Iterator[tuple[str, Rate]]:
    for level in interaction.levels:
        for share in level.shares:
            yield f"{share.group}, {level.level}", share.share


def _pair_result(shift: _Shift) -> PairResult:
    interaction = shift.interaction
    return PairResult(
        group_1=f"{shift.group}, {shift.low.level}",
        group_2=f"{shift.group}, {shift.high.level}",
        metric=f"chosen by {interaction.axis}",
        verdict=Verdict.FLAG,
        p_value=shift.p_value,
        corrected_p_value=shift.corrected_p_value,
        difference=-shift.spread,
        test="likelihood ratio of the interaction, and F on clusters",
        statistics={
            "likelihood_ratio": interaction.likelihood_ratio,
            "df": interaction.df,
            "clustered_p": interaction.clustered_p,
        },
    )


def group_results(
    shares: Iterable[tuple[str, Rate]], trials: pd.DataFrame
) -> tuple[GroupResult, ...]:
    """Return each share of *trials* as that of a group, with the pairs of names in them."""
    names = int(trials["name"].nunique())
    return tuple(
        GroupResult(
            group=group, n=rate.n, clusters=names, value=rate.value, low=rate.low, high=rate.high
        )
        for group, rate in shares
    )


def _flagged(
    trials: pd.DataFrame,
    tested: OrderEffect | ContextInteraction,
    shares: Iterable[tuple[str, Rate]],
    **fields: Any,
) -> Finding:
    """Return the FLAG on who is chosen in *trials* by what was *tested*, with the *shares* that
    show it; other *fields* are those of :func:`checked`.
    """
    groups = group_results(shares, trials)
    return checked(
        trials,
        verdict=Verdict.FLAG,
        outcome="chosen",
        kind=OutcomeKind.BINARY,
        n_per_group={group.group: group.n for group in groups},
        group_results=groups,
        test_statistic=f"likelihood ratio = {tested.likelihood_ratio:.4f}, df = {tested.df}",
        **fields,
    )
