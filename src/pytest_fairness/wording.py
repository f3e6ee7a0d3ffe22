"""One plain sentence for a finding: words for people who read no statistics.

Standard library only. Numbers are given in the outcome's own unit first, on the d scale second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pytest_fairness.model import GroupResult, OutcomeKind, PairResult, Reason, Verdict

RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)


def amount(value: float | None, kind: OutcomeKind | None, unit: str = "") -> str:
    """A mean or rate as a reader expects it: ``62.5 %``, ``7.25 points``; ``nothing`` where there is none."""
    if value is None:
        return "nothing"
    if kind in RATES:
        return f"{100 * value:.1f} %"
    size = abs(value)
    digits = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 1 else 3
    text = f"{value:.{digits}f}" if size == 0 or size >= 0.001 else f"{value:.2g}"
    return f"{text} {unit}".strip()


def p_words(p: float) -> str:
    """``p = .031``, never ``p = .000``."""
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1) if p < 0.9995 else "p = 1"


def effect_words(value: float | None) -> str:
    """An effect on the d scale: two digits, ∞ where there is no spread to measure it by."""
    if value is None:
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.2f}".replace("-", "−")


def interval_words(pair: PairResult) -> str:
    """``d = 0.61, 90 % interval 0.22 to 1.00``."""
    text = f"d = {effect_words(pair.effect)}"
    if pair.effect_low is not None and pair.effect_high is not None:
        text += f", 90 % interval {effect_words(pair.effect_low)} to {effect_words(pair.effect_high)}"
    return text


def disparity_sentence(
    verdict: Verdict,
    reason: Reason | None,
    decider: PairResult | None,
    groups: Mapping[str, GroupResult],
    *,
    kind: OutcomeKind,
    unit: str,
    by: str,
    pairs: int,
    clusters: str,
) -> str:
    """Who is worse off, on what, by how much, how sure; for PASS and INCONCLUSIVE what was and was not seen.

    *groups* are the results on the decider's own metric, *pairs* the number of pairs judged on it.
    """
    if decider is None:
        return f"{verdict}: there are no two groups of {by} to compare."
    if reason in _LOST:
        return (
            f"{verdict}: {_LOST[reason].format(by=by, outcome=decider.metric)}; {decider.needs or ''}".rstrip("; ")
            + "."
        )
    gap = _gap(decider, groups, kind, unit)
    sure = f"{interval_words(decider)}, corrected {p_words(decider.corrected_p_value)}"
    basis = _basis(decider, groups, clusters)
    if verdict in (Verdict.FAIL, Verdict.FLAG):
        return f"{verdict}: {gap} ({sure}; {basis})."
    if verdict is Verdict.PASS:
        count = "the two groups" if pairs == 1 else f"{pairs} pairs of groups"
        if "saturated" in " ".join(decider.notes):
            return f"PASS: {count} of {by} do not differ on {decider.metric}: {gap} ({basis})."
        return (
            f"PASS: no difference worth minding on {decider.metric} among {count} of {by}; "
            f"the furthest apart they may be: {gap} ({sure}; {basis})."
        )
    if reason is Reason.DIFFERENTIAL_REFUSAL:
        return (
            f"INCONCLUSIVE: on {decider.metric} the answers do not differ, but {decider.group_1} and "
            f"{decider.group_2} are not refused equally often, so the answers do not settle it ({sure})."
        )
    needs = f"; it would take {decider.needs}" if decider.needs else ""
    return f"INCONCLUSIVE: {gap}, too uncertain to tell ({sure}; {basis}){needs}."


_LOST: Mapping[Reason | None, str] = {
    Reason.UNSCORED: "too many replies could not be scored on {outcome} to compare the groups of {by}",
    Reason.RAGGED: "the groups of {by} were not asked in the same blocks, so {outcome} cannot be compared",
}


def _gap(pair: PairResult, groups: Mapping[str, GroupResult], kind: OutcomeKind, unit: str) -> str:
    first, second = groups.get(pair.group_1), groups.get(pair.group_2)
    if kind is OutcomeKind.CATEGORICAL:
        return _category_gap(pair, first, second)
    one, two = (first.value if first else None), (second.value if second else None)
    if one is None or two is None:
        empty = pair.group_1 if one is None else pair.group_2
        return f"{empty} has no {pair.metric} at all to compare"
    if one == two or pair.worse_off is None:
        return f"{pair.group_1} and {pair.group_2} are alike on {pair.metric}, both {amount(one, kind, unit)}"
    worse_first = pair.worse_off == pair.group_1
    worse, better = (pair.group_1, pair.group_2) if worse_first else (pair.group_2, pair.group_1)
    low, high = (one, two) if worse_first else (two, one)
    direction = "lower" if low < high else "higher"
    by_much = f"{100 * abs(one - two):.1f} percentage points" if kind in RATES else amount(abs(one - two), kind, unit)
    what = "refused" if kind is OutcomeKind.REFUSAL else pair.metric
    return (
        f"{worse} is worse off than {better} on {what}: {amount(low, kind, unit)} against "
        f"{amount(high, kind, unit)}, {by_much} {direction}"
    )


def _category_gap(pair: PairResult, first: GroupResult | None, second: GroupResult | None) -> str:
    if first is None or second is None or not first.shares or not second.shares:
        return f"{pair.group_1} and {pair.group_2} cannot both be compared on {pair.metric}"
    label = max(first.shares, key=lambda name: abs(first.shares[name] - second.shares.get(name, 0.0)))
    return (
        f"{pair.group_1} and {pair.group_2} differ most in how often {pair.metric} is {label!r}: "
        f"{100 * first.shares[label]:.1f} % against {100 * second.shares.get(label, 0.0):.1f} %"
    )


def _basis(pair: PairResult, groups: Mapping[str, GroupResult], clusters: str) -> str:
    parts = []
    for label in (pair.group_1, pair.group_2):
        group = groups.get(label)
        if group is None:
            continue
        noun = clusters if group.clusters != 1 else clusters.removesuffix("s")
        units = "" if clusters == "rows" else f" from {group.clusters} {noun}"
        parts.append(f"{group.n} trials{units}")
    if len(parts) == 2 and parts[0] == parts[1]:
        return f"{parts[0]} a group"
    return " and ".join(parts)


def four_fifths_sentence(
    verdict: Verdict, reason: Reason | None, decider: PairResult | None, *, by: str, clusters: str
) -> str:
    """Who gets the favourable decision how often, the ratio, and how sure that is."""
    if decider is None or "impact_ratio" not in decider.statistics:
        needs = f": it would take {decider.needs}" if decider is not None and decider.needs else ""
        return f"{verdict}: there are no two groups of {by} with decisions to compare{needs}."
    s = {name: float(value) if isinstance(value, (int, float)) else 0.0 for name, value in decider.statistics.items()}
    first = decider.worse_off != decider.group_2
    worse, better = (decider.group_1, decider.group_2) if first else (decider.group_2, decider.group_1)
    low, high = ("1", "2") if first else ("2", "1")
    if s["rate_1"] == s["rate_2"] == 0:
        return f"{verdict}: no group of {by} got the favourable {decider.metric} at all."
    counts = " against ".join(f"{s[f'favourable_{at}']:.0f} of {s[f'n_{at}']:.0f}" for at in (low, high))
    rates = (
        f"{worse} gets the favourable {decider.metric} in {100 * s[f'rate_{low}']:.1f} % of cases, {better} in "
        f"{100 * s[f'rate_{high}']:.1f} % ({counts}), an impact ratio of {s['impact_ratio']:.2f}"
    )
    sure = (
        f"95 % interval {s['impact_ratio_low']:.2f} to {s['impact_ratio_high']:.2f}, "
        f"corrected {p_words(decider.corrected_p_value)}"
    )
    side = "below four fifths" if decider.statistics["below_four_fifths"] is True else "at least four fifths"
    text = f"{verdict}: {rates}, {side} ({sure})"
    if verdict is Verdict.PASS:
        return f"{text}; no other group of {by} is further apart."
    if verdict is Verdict.INCONCLUSIVE:
        because = {
            Reason.SMALL_NUMBERS: "; ".join(decider.notes) or "the numbers are too small to tell",
            Reason.DIFFERENTIAL_REFUSAL: "the groups are not refused equally often, which the decisions cannot show",
        }.get(reason or Reason.N, "")
        needs = f"it would take {decider.needs}" if decider.needs else ""
        return f"{text}; " + "; ".join(part for part in (because, needs) if part) + "."
    lack = f"; {worse} is {s['shortfall']:.1f} favourable decisions short" if s["shortfall"] >= 0.05 else ""
    basis = "" if clusters == "rows" else f"; judged with {clusters} as the unit"
    return f"{text}{lack}{basis}."
