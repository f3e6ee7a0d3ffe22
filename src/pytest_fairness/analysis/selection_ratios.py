"""Among candidates of whom one is chosen: is a group selected at less than four fifths of the
highest rate?
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

from pytest_fairness.analysis.four_fifths import four_fifths_sentence
from pytest_fairness.analysis.policy import (
    MAX_UNSCORED,
    Decision,
    conclude_pairs,
    judge_ratio,
    undecided,
)
from pytest_fairness.model import PairResult, Reason, Verdict
from pytest_fairness.statistics.choices import NEITHER, Choices
from pytest_fairness.statistics.clusters import TwoUnits
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.proportions import (
    ImpactRatio,
    deviations,
    impact_ratio,
    reference_group,
)
from pytest_fairness.statistics.selection_rates import Units, equal_selection


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRatio:
    """The rate of *group* against that of the *reference*, which is selected most often.

    ``ratio`` with its 95 % interval, ``z`` (negative where the reference has the higher rate),
    ``fisher_p``, ``shortfall`` and ``flip_flop`` are those of the rule, whose 2×2 table counts
    every choice twice; ``below``: under four fifths. The ``p_value`` knows that what the one group
    wins the other loses, and has the names as its unit.
    """

    group: str
    reference: str
    ratio: float
    low: float
    high: float
    z: float
    fisher_p: float
    shortfall: float
    flip_flop: bool
    below: bool
    p_value: float
    corrected_p_value: float
    verdict: Verdict
    reason: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRatios:
    """Every group against the *reference* (None where nobody was chosen), and what follows."""

    reference: str | None
    pairs: tuple[SelectionRatio, ...]
    verdict: Verdict
    reason: Reason | None
    sentence: str


class _Test(NamedTuple):
    """A group that is compared with the reference."""

    group: int
    difference: TwoUnits
    corrected_p_value: float


class _Selected(NamedTuple):
    """The choices that a group won, of those that it stood in."""

    wins: int
    choices: int

    @property
    def rate(self) -> float:
        return self.wins / self.choices


def selection_ratios(
    choices: Choices, units: Units, *, by: str, alpha: float, correction: str
) -> SelectionRatios:
    """Compare every group with the one selected most often; the data choose that, so all pairs are
    the family. With one name a group a FAIL is capped at FLAG.
    """
    wins, stood = (counts.astype(int).tolist() for counts in choices.wins())
    selected = [_Selected(*counts) for counts in zip(wins, stood, strict=True)]
    reference = reference_group(wins, stood)
    if reference is None:
        return _concluded(None, [], [], by)
    ratios: list[SelectionRatio] = []
    pairs: list[PairResult] = []
    for test in _tests(choices, units, reference, correction):
        lower, higher = selected[test.group], selected[reference]
        if not lower.choices:
            continue
        ratio = impact_ratio(*lower, *higher, design_effect=_inflation(test.difference))
        decision = _decide(choices, units, ratio, test, alpha)
        names = (choices.labels[test.group], choices.labels[reference])
        pairs.append(_pair(names, lower, higher, ratio, test, decision))
        ratios.append(_ratio(names, lower, ratio, test, decision))
    return _concluded(choices.labels[reference], ratios, pairs, by)


def _tests(choices: Choices, units: Units, reference: int, correction: str) -> Iterator[_Test]:
    """Yield the test of each group against the *reference*, corrected over all pairs of groups."""
    every = list(combinations(range(len(choices.labels)), 2))
    differences = [equal_selection(choices, units, a, b) for a, b in every]
    corrected = correct([difference.p_value for difference in differences], correction).tolist()
    for (a, b), difference, p_value in zip(every, differences, corrected, strict=True):
        if a == reference:
            yield _Test(b, difference, p_value)
        elif b == reference:
            yield _Test(a, difference, p_value)


def _inflation(difference: TwoUnits) -> float:
    """Return how much more the rates spread than independent trials would: what turns the trials' p
    into that of the names.
    """
    by_trials = abs(difference.z)
    by_names = deviations(difference.p_value)
    if by_names <= 0:
        return 1.0
    return max(1.0, (by_trials / by_names) ** 2)


def _decide(
    choices: Choices, units: Units, ratio: ImpactRatio, test: _Test, alpha: float
) -> Decision:
    outcomes = choices.outcome[choices.stood(test.group)]
    unread = float(((outcomes < 0) & (outcomes != NEITHER)).mean())
    if unread > MAX_UNSCORED:
        needs = (
            f"read more replies: {unread:.0%} of a group's trials have no choice, at most 5 % may"
        )
        return undecided(Reason.UNSCORED, needs)
    decision = judge_ratio(ratio, test.corrected_p_value, alpha=alpha)
    if decision.verdict is Verdict.FAIL and units.count < 2:
        note = "a single name a group: the result is about those, so FAIL is capped at FLAG"
        return replace(decision, verdict=Verdict.FLAG, notes=(*decision.notes, note))
    return decision


def _pair(
    names: tuple[str, str],
    lower: _Selected,
    higher: _Selected,
    ratio: ImpactRatio,
    test: _Test,
    decision: Decision,
) -> PairResult:
    worse_off = names[0]
    if lower.rate > higher.rate:
        worse_off = names[1]
    return PairResult(
        group_1=names[0],
        group_2=names[1],
        metric="selection",
        difference=lower.rate - higher.rate,
        worse_off=worse_off,
        statistics={
            "impact_ratio": ratio.ratio,
            "shortfall": ratio.shortfall,
            "below_four_fifths": ratio.below,
            "clustered_impact_ratio_low": ratio.low,
            "clustered_impact_ratio_high": ratio.high,
            "favourable_1": lower.wins,
            "n_1": lower.choices,
            "rate_1": lower.rate,
            "favourable_2": higher.wins,
            "n_2": higher.choices,
            "rate_2": higher.rate,
        },
        p_value=test.difference.p_value,
        corrected_p_value=test.corrected_p_value,
        verdict=decision.verdict,
        reason=decision.reason,
        needs=decision.needs,
        notes=decision.notes,
    )


def _ratio(
    names: tuple[str, str], lower: _Selected, ratio: ImpactRatio, test: _Test, decision: Decision
) -> SelectionRatio:
    z = -ratio.z
    if ratio.counts[:2] == (lower.wins, lower.choices):
        z = ratio.z
    return SelectionRatio(
        group=names[0],
        reference=names[1],
        ratio=ratio.ratio,
        low=ratio.ratio_low,
        high=ratio.ratio_high,
        z=z,
        fisher_p=ratio.fisher,
        shortfall=ratio.shortfall,
        flip_flop=ratio.flip_flop,
        below=ratio.below,
        p_value=test.difference.p_value,
        corrected_p_value=test.corrected_p_value,
        verdict=decision.verdict,
        reason=decision.reason,
    )


def _concluded(
    reference: str | None, ratios: list[SelectionRatio], pairs: list[PairResult], by: str
) -> SelectionRatios:
    if not pairs:
        nothing = PairResult(
            group_1="",
            group_2="",
            metric="selection",
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.N,
            needs="choices",
        )
        pairs = [nothing]
    conclusion = conclude_pairs(pairs)
    return SelectionRatios(
        reference=reference,
        pairs=tuple(ratios),
        verdict=conclusion.verdict,
        reason=conclusion.reason,
        sentence=four_fifths_sentence(conclusion, by=by, clusters="names"),
    )
