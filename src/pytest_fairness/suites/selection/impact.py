"""The four-fifths rule on how often each group is selected over all the pairs that it stood in."""

from __future__ import annotations

from dataclasses import replace

from pytest_fairness.analysis.four_fifths import decide, four_fifths_sentence
from pytest_fairness.analysis.policy import MAX_UNSCORED, Decision, assertion_verdict, deciding_pair
from pytest_fairness.model import PairResult, Reason, Verdict
from pytest_fairness.statistics.choices import NEITHER, Choices
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.proportions import ImpactRatio, deviations, impact_ratio, reference_group
from pytest_fairness.statistics.selection_rates import Difference, Units, equal_selection
from pytest_fairness.suites.selection.results import FourFifths, ImpactPair

SELECTION = "selection"


def four_fifths_of(choices: Choices, units: Units, *, by: str, alpha: float, correction: str) -> FourFifths:
    """Every group against the one selected most often; the data choose that, so all pairs are the family.

    Counts and ratio are those of the rule; the p beside them knows that one group's win is another's loss, which the
    2×2 table does not. With one name a group a FAIL is capped at FLAG.
    """
    wins, shown = (array.astype(int).tolist() for array in choices.wins())
    labels = choices.labels
    reference = reference_group(wins, shown)
    if reference is None or sum(size > 0 for size in shown) < 2:
        needs = PairResult(group_1="", group_2="", metric=SELECTION, verdict=Verdict.INCONCLUSIVE, needs="choices")
        sentence = four_fifths_sentence(Verdict.INCONCLUSIVE, Reason.N, needs, by=by, clusters="names")
        return FourFifths(reference=None, pairs=(), verdict=Verdict.INCONCLUSIVE, reason=Reason.N, sentence=sentence)
    every = all_pairs(len(labels))
    pairs = list(zip(every.first.tolist(), every.second.tolist(), strict=True))
    differences = [equal_selection(choices, units, a, b) for a, b in pairs]
    p_values = [one.p_value for one in differences]
    corrected = correct(p_values, correction).tolist()
    rows: list[PairResult] = []
    told: list[ImpactPair] = []
    for (a, b), difference, q in zip(pairs, differences, corrected, strict=True):
        group = b if a == reference else a
        if reference not in (a, b) or not shown[group]:
            continue
        p = difference.p_value
        ratio = impact_ratio(
            wins[group], shown[group], wins[reference], shown[reference], design_effect=_inflation(difference)
        )
        decision = _decision(choices, units, ratio, group, q, alpha)
        below = ratio.x_low == wins[group] and ratio.n_low == shown[group]
        z = ratio.z if below else -ratio.z
        told.append(
            ImpactPair(
                group=labels[group],
                reference=labels[reference],
                ratio=ratio.ratio,
                low=ratio.ratio_low,
                high=ratio.ratio_high,
                z=z,
                fisher_p=ratio.fisher,
                p_value=p,
                corrected_p_value=q,
                shortfall=ratio.shortfall,
                flip_flop=ratio.flip_flop,
                below=ratio.below,
                verdict=decision.verdict,
                reason=decision.reason,
            )
        )
        rows.append(_pair(told[-1], decision, ratio, (wins[group], shown[group]), (wins[reference], shown[reference])))
    verdict, reason = assertion_verdict(rows)
    sentence = four_fifths_sentence(verdict, reason, deciding_pair(rows), by=by, clusters="names")
    return FourFifths(reference=labels[reference], pairs=tuple(told), verdict=verdict, reason=reason, sentence=sentence)


def _inflation(difference: Difference) -> float:
    """How much more the rates spread than independent trials would: what turns the trials' p into that of the names."""
    wide, narrow = abs(difference.z), deviations(difference.p_value)
    return max(1.0, (wide / narrow) ** 2) if narrow > 0 else 1.0


def _decision(choices: Choices, units: Units, ratio: ImpactRatio, group: int, q: float, alpha: float) -> Decision:
    here = (choices.first == group) | (choices.second == group)
    asked = choices.outcome[here]
    unread = float(((asked < 0) & (asked != NEITHER)).mean())
    if unread > MAX_UNSCORED:
        needs = f"read more replies: {unread:.0%} of a group's trials have no choice, at most 5 % may"
        return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.UNSCORED, needs=needs)
    decision = decide(ratio, q, alpha=alpha, bare=False)
    if decision.verdict is Verdict.FAIL and units.count < 2:
        note = "a single name a group: the result is about those, so FAIL is capped at FLAG"
        return replace(decision, verdict=Verdict.FLAG, notes=(*decision.notes, note))
    return decision


def _pair(
    told: ImpactPair, decision: Decision, ratio: ImpactRatio, group: tuple[int, int], reference: tuple[int, int]
) -> PairResult:
    """What the sentence is made from."""
    low_90, high_90 = ratio.low_90, ratio.high_90
    rates = (group[0] / group[1], reference[0] / reference[1])
    return PairResult(
        group_1=told.group,
        group_2=told.reference,
        metric=SELECTION,
        verdict=told.verdict,
        reason=told.reason,
        p_value=told.p_value,
        corrected_p_value=told.corrected_p_value,
        difference=rates[0] - rates[1],
        worse_off=told.group if rates[0] <= rates[1] else told.reference,
        needs=decision.needs,
        statistics={
            "impact_ratio": told.ratio,
            "impact_ratio_low": told.low,
            "impact_ratio_high": told.high,
            "impact_ratio_90_low": low_90,
            "impact_ratio_90_high": high_90,
            "favourable_1": group[0],
            "n_1": group[1],
            "rate_1": rates[0],
            "favourable_2": reference[0],
            "n_2": reference[1],
            "rate_2": rates[1],
            "shortfall": told.shortfall,
            "below_four_fifths": told.below,
        },
        notes=decision.notes,
    )
