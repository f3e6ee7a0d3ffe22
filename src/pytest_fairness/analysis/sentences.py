"""One plain sentence for a finding: words for people who read no statistics.

Standard library only. Numbers are given in the outcome's own unit first, on the d scale second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_fairness.analysis.false_alarms import ALPHA
from pytest_fairness.model import ALARMS, GroupResult, OutcomeKind, PairResult, Reason, Verdict

RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)
REFUSAL = "refusal"
NO_ANSWER = "no answer"


# ---------------------------------------------------------------- numbers


def signed(text: str) -> str:
    """*text* with a minus sign where it has a hyphen for one."""
    return text.replace("-", "−")


def amount(value: float | None, kind: OutcomeKind | None, unit: str = "") -> str:
    """A mean or rate as a reader expects it: ``62.5 %``, ``7.25 points``; ``nothing`` where there is none."""
    if value is None:
        return "nothing"
    if kind in RATES:
        return signed(f"{100 * value:.1f} %")
    size = abs(value)
    digits = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 1 else 3
    text = f"{value:.{digits}f}" if size == 0 or size >= 0.001 else f"{value:.2g}"
    return f"{signed(text)} {unit}".strip()


def percent(share: float) -> str:
    """``43 %``."""
    return f"{100 * share:.0f} %"


def p_words(p: float) -> str:
    """``p = .031``, never ``p = .000``."""
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1) if p < 0.9995 else "p = 1"


def effect_words(value: float | None) -> str:
    """An effect on the d scale: two digits, ∞ where there is no spread to measure it by."""
    if value is None:
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    # A zero has no sign.
    return signed(f"{value:.2f}").replace("−0.00", "0.00")


def interval_words(pair: PairResult, *, of: str | None = None) -> str:
    """``d = 0.61, 90 % interval 0.22 to 1.00``: of the pair's first group against the second, or of the group *of*."""
    effect, low, high = pair.effect, pair.effect_low, pair.effect_high
    if of is not None and of == pair.group_2:
        effect, low, high = -effect, None if high is None else -high, None if low is None else -low
    return "no overlap between the two" if math.isinf(effect) else effect_with_interval("d", effect, low, high)


def effect_with_interval(name: str, effect: float, low: float | None = None, high: float | None = None) -> str:
    """An effect with its interval, where that has ends."""
    text = f"{name} = {effect_words(effect)}"
    return text if low is None or high is None else f"{text}, 90 % interval {effect_words(low)} to {effect_words(high)}"


def lost_words(lost: int, cases: str, noun: str, missing: Mapping[str, str]) -> str:
    """How many have no outcome, and why."""
    why = "; ".join(f"{group}: {words}" for group, words in list(missing.items())[:4])
    return f"{lost} {cases} have no {noun}{f' ({why})' if why else ''}"


def left_without(pair: PairResult, what: str, cases: str, missing: Mapping[str, str]) -> str:
    """Which group of *pair* has no outcome more often, how often, why, and how sure."""
    worse = pair.worse_off or pair.group_1
    share = pair.statistics.get("rate_1" if worse == pair.group_1 else "rate_2")
    rate = amount(share, OutcomeKind.BINARY) if isinstance(share, float) else "many"
    why = f": {missing[worse]}" if worse in missing else ""
    sure = f"{interval_words(pair, of=worse)}, corrected {p_words(pair.corrected_p_value)}"
    return f"{worse} is left without {what} in {rate} of {cases}{why} ({sure})"


def listed(names: Sequence[str], most: int = 3) -> str:
    """``a, b and c``, or the first few and how many more."""
    shown = list(names[:most])
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


# ---------------------------------------------------------------- disparity


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a disparity is about: the outcome and its kind, the class, and what clusters, cases and blocks are called.

    ``groups`` are the results of the decider's own grouping by metric and group, ``pairs`` how many pairs of the
    outcome were judged, ``raised`` those of them that raise the alarm. ``answers`` are the two labels of a yes/no
    outcome, the favourable one last. ``missing`` says of each group without some outcomes why: status and first reason.
    ``turning`` names the rows that turn a mean, ``in_block`` the effect of the decider in the one block that raises the
    alarm by itself.
    """

    outcome: str
    kind: OutcomeKind
    unit: str
    by: str
    pairs: int
    clusters: str
    cases: str
    block: str
    groups: Mapping[str, Mapping[str, GroupResult]]
    raised: Sequence[PairResult] = ()
    answers: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    turning: str = ""
    in_block: str = ""


def disparity_sentence(
    verdict: Verdict, reason: Reason | None, decider: PairResult | None, alarms: Sequence[PairResult], subject: Subject
) -> str:
    """Who is worse off, on what, by how much, how sure; for PASS and INCONCLUSIVE what was and was not seen.

    *alarms* are the pairs of refusals and missing answers that raise the alarm, worst first; they stand after the
    outcome asked for.
    """
    if decider is None:
        return f"{verdict}: there are no two groups of {subject.by} to compare."
    also = [_alarm(pairs, subject) for pairs in _by_worse(alarms)[:2]]
    empty = _empty(alarms, subject)
    if decider.alarm_only or empty:
        beside = (
            f"{listed(empty)} cannot be compared on {subject.outcome}" if empty else f"no alarm on {subject.outcome}"
        )
        return f"{verdict}: {beside}{': ' if empty else ' itself, but '}{_join(also)}."
    text = _outcome(verdict, reason, decider, subject)
    return f"{verdict}: {text}" + (f"; also, {_join(also)}" if also else "") + "."


def _join(parts: Sequence[str]) -> str:
    return "; ".join(parts)


def _outcome(verdict: Verdict, reason: Reason | None, pair: PairResult, subject: Subject) -> str:
    if verdict in ALARMS:
        return _difference(pair, subject)
    if verdict is Verdict.PASS:
        return _no_difference(pair, subject)
    return _open(reason, pair, subject)


def _difference(pair: PairResult, subject: Subject) -> str:
    sure = f"{_sure(pair)}, corrected {p_words(pair.corrected_p_value)}; {_basis(pair, subject)}"
    if subject.turning and pair.worse_off is not None:
        worse, better, low, high = _ordered(pair, subject)
        return (
            f"{worse} ranks lower than {better} on {subject.outcome} ({sure}), but its mean does not: "
            f"{amount(low, subject.kind, subject.unit)} against {amount(high, subject.kind, subject.unit)}; "
            f"{subject.turning}"
        )
    worst, answered = (pair.statistics.get(f"{which}_p_value") for which in ("worst_rank", "complete_case"))
    if isinstance(worst, float) and isinstance(answered, float) and worst < answered:
        # The p-value is that of the worst ranks, the effect that of the answers: each stands with its own.
        return (
            f"{_gap(pair, subject)} among those answered ({_sure(pair)}; {_basis(pair, subject)}), and by more with "
            f"refusals ranked worst (corrected {p_words(pair.corrected_p_value)})"
        )
    if subject.in_block and pair.corrected_p_value >= ALPHA:
        return f"{subject.in_block}; over all {subject.block}s {_gap(pair, subject)} ({sure})"
    return f"{_gap(pair, subject)} ({sure}){_likewise(pair, subject)}"


def _likewise(decider: PairResult, subject: Subject) -> str:
    """Who else is worse off than whom: ``; also a against b, and c against d and e``."""
    others = [pair for pair in subject.raised if pair is not decider and pair.worse_off is not None]
    if not others:
        more = len(subject.raised) - 1
        return f"; {more} other pair{'s' * (more != 1)} too" if more > 0 else ""
    named = [f"{pairs[0].worse_off} against {listed([_other(pair) for pair in pairs])}" for pairs in _by_worse(others)]
    return f"; also {'; '.join(named[:3])}" + (f"; and {len(named) - 3} more" if len(named) > 3 else "")


def _by_worse(pairs: Sequence[PairResult]) -> list[list[PairResult]]:
    """*pairs* in their order, those with the same worse-off group together."""
    found: dict[str, list[PairResult]] = {}
    for pair in pairs:
        found.setdefault(f"{pair.metric}\0{pair.worse_off or pair.group_1}", []).append(pair)
    return list(found.values())


def _other(pair: PairResult) -> str:
    return pair.group_2 if (pair.worse_off or pair.group_1) == pair.group_1 else pair.group_1


def _empty(alarms: Sequence[PairResult], subject: Subject) -> list[str]:
    """Groups of *alarms* that have no outcome at all."""
    named = dict.fromkeys(group for pair in alarms for group in (pair.group_1, pair.group_2))
    groups = subject.groups[subject.outcome]
    return [group for group in named if group in groups and groups[group].n == 0]


def _no_difference(pair: PairResult, subject: Subject) -> str:
    among = "between the two groups" if subject.pairs == 1 else f"among {subject.pairs} pairs of groups"
    same = next((note for note in pair.notes if note.startswith("saturated: ")), "")
    if same:
        first = subject.groups[pair.metric].get(pair.group_1)
        always = _value_words(first, subject) if first is not None else "the same"
        return (
            f"no difference {among} of {subject.by} on {subject.outcome}: always {always} ({_basis(pair, subject)}); "
            f"{same.removeprefix('saturated: every outcome is the same; ')}"
        )
    size, sure = "larger than small", _sure(pair)
    low, high = pair.statistics.get("risk_difference_90_low"), pair.statistics.get("risk_difference_90_high")
    if any("less than 5 points" in note for note in pair.notes) and isinstance(low, float) and isinstance(high, float):
        # The d scale is blind here, so the interval is given in the unit that decided.
        low, high = (-high, -low) if pair.worse_off == pair.group_2 else (low, high)
        size = "larger than 5 points"
        sure = f"90 % interval of the difference {_points(low)} to {_points(high)} points"
    elif any("the one declared" in note for note in pair.notes):
        size = "larger than declared"
    return (
        f"no difference {size} on {subject.outcome} {among} of {subject.by}; the widest: {_both(pair, subject)} "
        f"({sure}; {_basis(pair, subject)})"
    )


def _points(share: float) -> str:
    return signed(f"{100 * share:.1f}")


def _open(reason: Reason | None, pair: PairResult, subject: Subject) -> str:
    needs = f"; it would take {pair.needs}" if pair.needs else ""
    if reason is Reason.N:
        return f"too few {subject.cases} to judge {subject.outcome} by {subject.by}{needs}"
    if reason is Reason.UNSCORED:
        why = [f"{group}: {words}" for group, words in subject.missing.items() if group in (pair.group_1, pair.group_2)]
        because = f" ({'; '.join(why)})" if why else ""
        return (
            f"too many {subject.cases} have no {subject.outcome} to compare the groups of {subject.by}{because}{needs}"
        )
    if reason is Reason.RAGGED:
        blocks = f"the groups of {subject.by} do not stand in the same {subject.block}s"
        return f"{blocks}, so {subject.outcome} cannot be compared{needs}"
    sure = f"{_sure(pair)}, corrected {p_words(pair.corrected_p_value)}; {_basis(pair, subject)}"
    if reason is Reason.TEMPLATE:
        return (
            f"the groups of {subject.by} agree on {subject.outcome} on the whole, but {pair.group_1} and "
            f"{pair.group_2} may not in every {subject.block} ({sure}){needs}"
        )
    if reason is Reason.DIFFERENTIAL_REFUSAL:
        return (
            f"on {subject.outcome} the answers agree, but {pair.group_1} and {pair.group_2} are not refused equally "
            f"often, so the answers do not settle it ({sure})"
        )
    return f"{_gap(pair, subject)}, too uncertain to tell ({sure}){needs}"


def _alarm(pairs: Sequence[PairResult], subject: Subject) -> str:
    """Who is refused, or left without an answer, more often than whom: *pairs* have the same worse-off group."""
    first = pairs[0]
    worse = first.worse_off or first.group_1
    groups = subject.groups[first.metric]
    one, other = groups.get(worse), groups.get(_other(first))
    better = listed([_other(pair) for pair in pairs])
    rates = "" if one is None or other is None else f"{_share(one)} against {amount(other.value, OutcomeKind.BINARY)}"
    sure = f"{interval_words(first, of=worse)}, corrected {p_words(first.corrected_p_value)}"
    if first.metric == NO_ANSWER:
        why = subject.missing.get(worse, "")
        return f"{worse} is left without a usable answer in {rates} for {better}{f': {why}' if why else ''} ({sure})"
    return f"{worse} is refused in {rates} for {better} ({sure})"


def _share(group: GroupResult) -> str:
    count = round((group.value or 0.0) * group.n)
    return f"{amount(group.value, OutcomeKind.BINARY)} ({count} of {group.n})"


def _sure(pair: PairResult) -> str:
    return interval_words(pair, of=pair.worse_off)


def _ordered(pair: PairResult, subject: Subject) -> tuple[str, str, float | None, float | None]:
    groups = subject.groups[pair.metric]
    worse = pair.worse_off or pair.group_1
    better = pair.group_2 if worse == pair.group_1 else pair.group_1
    one, two = groups.get(worse), groups.get(better)
    return worse, better, one.value if one else None, two.value if two else None


def _gap(pair: PairResult, subject: Subject) -> str:
    """By how much which of the two is worse off; without a favourable answer, how the two differ."""
    groups = subject.groups[pair.metric]
    if subject.kind is OutcomeKind.CATEGORICAL:
        return _category_gap(pair, groups.get(pair.group_1), groups.get(pair.group_2), subject.cases)
    worse, better, one, two = _ordered(pair, subject)
    if one is None or two is None:
        return f"{worse if one is None else better} has no {subject.outcome} to compare"
    if pair.worse_off is None and one != two:
        return _neutral_gap(worse, better, one, two, subject)
    if pair.worse_off is None:
        return f"{worse} and {better} are alike on {subject.outcome}, both {_value(one, subject)}"
    if one == two:
        return f"{worse} ranks below {better} on {subject.outcome}, with the same mean of {_value(one, subject)}"
    direction = "lower" if one < two else "higher"
    rate = subject.kind in RATES
    much = (
        f"{100 * abs(one - two):.1f} percentage points" if rate else amount(abs(one - two), subject.kind, subject.unit)
    )
    if subject.kind is OutcomeKind.REFUSAL:
        rates = f"{amount(one, subject.kind)} against {amount(two, subject.kind)}"
        return f"{worse} is refused more often than {better}: {rates}, {much}"
    return (
        f"{worse} is worse off than {better} on {subject.outcome}: {_value(one, subject)} against "
        f"{amount(two, subject.kind, subject.unit)}, {much} {direction}"
    )


def _neutral_gap(first: str, second: str, one: float, two: float, subject: Subject) -> str:
    if len(subject.answers) == 2:
        other, this = subject.answers
        return (
            f"{first} and {second} differ on {subject.outcome}: {this!r} rather than {other!r} in "
            f"{amount(one, subject.kind)} of {subject.cases} against {amount(two, subject.kind)}"
        )
    return (
        f"{first} and {second} differ on {subject.outcome}: {_value(one, subject)} against "
        f"{amount(two, subject.kind, subject.unit)}"
    )


def _value(value: float | None, subject: Subject) -> str:
    """A mean or a rate; of an outcome with labels, the favourable one and its rate."""
    text = amount(value, subject.kind, subject.unit)
    return f"{subject.answers[1]!r} in {text}" if subject.answers else text


def _value_words(group: GroupResult, subject: Subject) -> str:
    if group.shares:
        return repr(max(group.shares, key=lambda label: group.shares[label]))
    if subject.answers and group.value in (0.0, 1.0):
        return repr(subject.answers[int(group.value or 0.0)])
    return amount(group.value, subject.kind, subject.unit)


def _both(pair: PairResult, subject: Subject) -> str:
    groups = subject.groups[pair.metric]
    if subject.kind is OutcomeKind.CATEGORICAL:
        return _category_gap(pair, groups.get(pair.group_1), groups.get(pair.group_2), subject.cases)
    worse, better, one, two = _ordered(pair, subject)
    return f"{worse} {_value(one, subject)}, {better} {amount(two, subject.kind, subject.unit)}"


def _category_gap(pair: PairResult, first: GroupResult | None, second: GroupResult | None, cases: str) -> str:
    if first is None or second is None or not first.shares or not second.shares:
        return f"{pair.group_1} and {pair.group_2} cannot both be compared on {pair.metric}"
    label = max(first.shares, key=lambda name: abs(first.shares[name] - second.shares.get(name, 0.0)))
    return (
        f"{pair.group_1} and {pair.group_2} differ most in how often {pair.metric} is {label!r}: "
        f"{100 * first.shares[label]:.1f} % of {cases} against {100 * second.shares.get(label, 0.0):.1f} %"
    )


def _basis(pair: PairResult, subject: Subject) -> str:
    """``200 trials from 20 names a group``; where the two differ, the worse-off one first."""
    worse = pair.worse_off or pair.group_1
    found = [group for label in (worse, _other(pair)) if (group := subject.groups[pair.metric].get(label)) is not None]
    counts = list(dict.fromkeys(f"{group.n:,}" for group in found))
    if subject.clusters == "rows":
        return f"{' and '.join(counts)} {subject.cases}" + (" a group" if len(counts) == 1 else "")
    units = list(dict.fromkeys(_units(group.clusters, subject.clusters) for group in found))
    if len(units) == 1:
        return f"{' and '.join(counts)} {subject.cases} from {units[0]} a group"
    return " and ".join(
        f"{group.n:,} {subject.cases} from {_units(group.clusters, subject.clusters)}" for group in found
    )


def _units(count: int, noun: str) -> str:
    return f"{count} {noun if count != 1 else noun.removesuffix('s')}"
