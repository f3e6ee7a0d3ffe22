"""One plain sentence for a finding: words for people who read no statistics.

Standard library only. Numbers are given in the outcome's own unit first, on the d scale second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_fairness.analysis.false_alarms import ALPHA
from pytest_fairness.model import ALARMS, GroupResult, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.words import (
    agreeing,
    bracketed,
    confidence,
    count,
    effect_size,
    enumerated,
    first_few,
    led,
    p_equals,
    percent,
    points,
    signed,
)

RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)
REFUSAL = "refusal"
FIRST_REFUSAL = "refusal at first"
NO_ANSWER = "no answer"
#: How the rate of a group is called that was refused when it was first asked.
FIRST_ASK = "{}, first ask"
ABOUT = "about "
"""Begins a note on whose names a result is about."""
WORST_RANK = ", refusals ranked worst"
"""Ends the name of an effect in which a refusal is worse than any answer."""


# ---------------------------------------------------------------- numbers


def amount(value: float | None, kind: OutcomeKind | None, unit: str = "") -> str:
    """A mean or rate as a reader expects it: ``62.5 %``, ``7.25 points``; ``nothing`` where there
    is none.
    """
    if value is None:
        return "nothing"
    if kind in RATES:
        return signed(f"{percent(value)}")
    size = abs(value)
    if size >= 1000:
        digits = 0
    elif size >= 100:
        digits = 1
    elif size >= 1:
        digits = 2
    else:
        digits = 3
    if size == 0 or size >= 0.001:
        text = f"{value:.{digits}f}"
    else:
        text = f"{value:.2g}"
    return f"{signed(text)} {unit}".strip()


def interval_words(pair: PairResult, *, of: str | None = None) -> str:
    """``d = 0.61, 90 % interval 0.22 to 1.00``: of the pair's first group against the second, or of
    the group *of*.
    """
    effect, low, high = effect_of(pair, of)
    if math.isinf(effect):
        return "no overlap between the two"
    return effect_with_interval("d", effect, low, high, pair.confidence)


def effect_of(pair: PairResult, group: str | None) -> tuple[float, float | None, float | None]:
    """Return the effect of *group* against the other of *pair*, with the ends of its interval: as
    they stand, turned round for the second group.
    """
    if group == pair.group_2:
        return -pair.effect, _negative(pair.effect_high), _negative(pair.effect_low)
    return pair.effect, pair.effect_low, pair.effect_high


def _negative(value: float | None) -> float | None:
    if value is None:
        return None
    return -value


def corrected_p(pair: PairResult) -> str:
    """``corrected p = .003``."""
    return f"corrected {p_equals(pair.corrected_p_value)}"


def sure(pair: PairResult, *, of: str | None) -> str:
    """The effect of the group *of* with its interval, and p after correction."""
    return f"{interval_words(pair, of=of)}, {corrected_p(pair)}"


def would_take(pair: PairResult | None, lead: str = "; it would take ") -> str:
    """Return what would decide *pair*, after *lead*; empty where nothing is known to."""
    if pair is None:
        return ""
    return led(lead, pair.needs)


def among_pairs(pairs: int) -> str:
    """Return what stands for so many *pairs* of groups: ``between the two groups``."""
    if pairs == 1:
        return "between the two groups"
    return f"among {pairs} pairs of groups"


def effect_with_interval(
    name: str,
    effect: float,
    low: float | None = None,
    high: float | None = None,
    level: float = 0.9,
) -> str:
    """An effect with its interval of confidence *level*, where that has ends."""
    text = f"{name} = {effect_size(effect)}"
    if low is None or high is None:
        return text
    return f"{text}, {confidence(level)} interval {effect_size(low)} to {effect_size(high)}"


def lost_words(lost: int, cases: str, noun: str, missing: Mapping[str, str]) -> str:
    """Return how many have no outcome, and why."""
    why = "; ".join(f"{group}: {words}" for group, words in list(missing.items())[:4])
    return bracketed(f"{lost} {cases} have no {noun}", why)


def left_without(pair: PairResult, what: str, cases: str, missing: Mapping[str, str]) -> str:
    """Return which group of *pair* has no outcome more often, how often, why, and how sure."""
    worse = _worse(pair)
    share = pair.statistics.get("rate_2")
    if worse == pair.group_1:
        share = pair.statistics.get("rate_1")
    rate = "many"
    if isinstance(share, float):
        rate = amount(share, OutcomeKind.BINARY)
    why = led(": ", missing.get(worse))
    return f"{worse} is left without {what} in {rate} of {cases}{why} ({sure(pair, of=worse)})"


# ---------------------------------------------------------------- disparity


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of a disparity: the outcome and its kind, the class, and what clusters, cases and
    blocks are called.

    ``groups`` are the results of the decider's own grouping by metric and group, ``pairs`` how many
    pairs of the outcome were judged, ``raised`` those of them that raise the alarm. ``answers`` are
    the two labels of a yes/no outcome, the favourable one last. ``missing`` says of each group
    without some outcomes why: status and first reason. ``turning`` names the rows that turn a mean,
    ``in_block`` the effect of the decider in the one block that raises the alarm by itself.
    ``still``: in how many blocks no answer varied, of how many. ``signals`` are those that the
    decider is judged over, ``of_class`` what they convey, and ``alarming`` the signals that raise
    the alarm by themselves.
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
    still: tuple[int, int] = (0, 0)
    signals: tuple[str, ...] = ()
    of_class: str = ""
    alarming: tuple[str, ...] = ()

    def sentence(
        self,
        verdict: Verdict,
        reason: Reason | None,
        decider: PairResult | None,
        alarms: Sequence[PairResult],
    ) -> str:
        """Return who is worse off, on what, by how much, how sure; for PASS and INCONCLUSIVE what
        was and was not seen.

        *alarms* are the pairs of refusals and missing answers that raise the alarm, worst first;
        they stand after the outcome asked for.
        """
        if decider is None:
            return f"{verdict}: there are no two groups of {self.by} to compare."
        also = "; ".join(map(self._alarm, _by_worse(alarms)[:2]))
        empty = self._without_outcome(alarms)
        if empty:
            return f"{verdict}: {enumerated(empty)} cannot be compared on {self.outcome}: {also}."
        if decider.metric != self.outcome:
            return f"{verdict}: {self._lead()}no alarm on {self.outcome} itself, but {also}."
        if verdict in ALARMS:
            text = self._difference(decider)
        elif verdict is Verdict.PASS:
            text = self._no_difference(decider) + self._room()
        else:
            text = self._open(reason, decider)
        text = f"{self._lead()}{text}{self._alarming_too()}"
        return f"{verdict}: {text}{led('; also, ', also)}."

    def _lead(self) -> str:
        """Return what conveys the groups of the decider; empty where the table does not say."""
        if not self.signals:
            return ""
        if len(self.signals) == 1:
            return f"where {_in_words(self.signals)} tells the {self.of_class}, "
        return f"over {count(len(self.signals), 'signal')} of {self.of_class}, "

    def _alarming_too(self) -> str:
        """Return which further signals raise the alarm by themselves; empty where none does."""
        if not self.alarming:
            return ""
        verb = agreeing(len(self.alarming), "raises", "raise")
        return f"; by itself {_in_words(self.alarming)} {verb} the alarm, too"

    def _without_outcome(self, pairs: Sequence[PairResult]) -> list[str]:
        """Return the groups of *pairs* that have no outcome at all."""
        empty: dict[str, None] = {}
        for pair in pairs:
            for side in self._sides(self.outcome, pair.group_1, pair.group_2):
                if side.n == 0:
                    empty[side.group] = None
        return list(empty)

    # ------------------------------------------------------------ one verdict each

    def _difference(self, pair: PairResult) -> str:
        if self.turning and pair.worse_off is not None:
            worse, better, low, high = self._ordered(pair)
            means = f"{self._amount(low)} against {self._amount(high)}; {self.turning}"
            ranks = f"{worse} ranks lower than {better} on {self.outcome} ({self._sure(pair)})"
            return f"{ranks}, but its mean does not: {means}"
        if pair.effect_name.endswith(WORST_RANK):
            return self._with_refusals(pair)
        if self.in_block and pair.corrected_p_value >= ALPHA:
            return f"{self.in_block}; over all {self.block}s {self._gap(pair)} ({self._sure(pair)})"
        return f"{self._gap(pair)} ({self._sure(pair)}){self._likewise(pair)}"

    def _with_refusals(self, pair: PairResult) -> str:
        """Return the difference with refusals ranked worst, beside that among those answered."""
        effect = sure(pair, of=pair.worse_off)
        if pair.effect * (pair.difference or 0.0) < 0:
            worse, better, low, high = self._ordered(pair)
            answered = f"{self._amount(low)} against {self._amount(high)} ({self._basis(pair)})"
            ranked = (
                f"{worse} is worse off than {better} on {self.outcome} with refusals ranked worst "
                f"({effect})"
            )
            return f"{ranked}, although not among those answered: {answered}"
        more = f"and by more with refusals ranked worst ({effect})"
        return f"{self._gap(pair)} among those answered ({self._basis(pair)}), {more}"

    def _likewise(self, decider: PairResult) -> str:
        """Return who else is worse off than whom: ``; also a against b, and c against d and e``."""
        others = [pair for pair in self.raised if pair is not decider]
        named = []
        for pairs in _by_worse([pair for pair in others if pair.worse_off is not None]):
            named.append(f"{pairs[0].worse_off} against {_others(pairs)}")
        if named:
            return f"; also {first_few(named)}"
        if others:
            return f"; {count(len(others), 'other pair')} too"
        return ""

    def _no_difference(self, pair: PairResult) -> str:
        among = among_pairs(self.pairs)
        same = _note(pair, "saturated: ")
        if same:
            always = f"always {self._always(pair)} ({self._basis(pair)})"
            bound = same.removeprefix("saturated: every outcome is the same; ")
            return f"no difference {among} of {self.by} on {self.outcome}: {always}; {bound}"
        size = "larger than small"
        interval = interval_words(pair, of=pair.worse_off)
        in_points = self._in_points(pair)
        if in_points:
            # The d scale is blind here, so the interval is given in the unit that decided.
            size = "larger than 5 points"
            interval = in_points
        elif any("the one declared" in note for note in pair.notes):
            size = "larger than declared"
        widest = self._gap(pair)
        if self.kind is not OutcomeKind.CATEGORICAL:
            worse, better, first, two = self._ordered(pair)
            widest = f"{worse} {self._value(first)}, {better} {self._amount(two)}"
        none = f"no difference {size} on {self.outcome} {among} of {self.by}"
        return f"{none}; the widest: {widest} ({interval}; {self._basis(pair)})"

    def _in_points(self, pair: PairResult) -> str:
        """Return the interval of the difference of two rates, where that passed *pair*."""
        low = pair.statistics.get("clustered_risk_difference_low")
        high = pair.statistics.get("clustered_risk_difference_high")
        near = any("less than 5 points" in note for note in pair.notes)
        if not near or not isinstance(low, float) or not isinstance(high, float):
            return ""
        if pair.worse_off == pair.group_2:
            low, high = -high, -low
        level = confidence(pair.confidence)
        ends = f"{points(low, plus=False)} to {points(high, plus=False)}"
        return signed(f"{level} interval of the difference {ends} points")

    def _room(self) -> str:
        """In which share of the texts nothing but a large bias could have shown; empty where all
        left room.
        """
        still, live = self.still
        if not still:
            return ""
        noun = "text"
        if self.block != "template":
            noun = self.block
        return (
            f"; in {still} of {count(live, noun)} no answer varied: only a bias that turns a clear "
            "case could have shown"
        )

    def _open(self, reason: Reason | None, pair: PairResult) -> str:
        about = _note(pair, ABOUT)
        text = f"{self._gap(pair)}, too uncertain to tell"
        if about and reason is Reason.N:
            text = f"{self._gap(pair)} ({self._sure(pair)}), which is {about}"
        elif reason is Reason.NO_ROOM:
            text = f"no difference on {self.outcome} {among_pairs(self.pairs)}{self._room()}"
        elif reason in _OPEN:
            text = _OPEN[reason].format(
                outcome=self.outcome,
                by=self.by,
                block=self.block,
                cases=self.cases,
                two=f"{pair.group_1} and {pair.group_2}",
                because=self._because(pair),
                refused=self._mostly_refused(pair),
            )
        if reason not in (Reason.N, Reason.UNSCORED, Reason.RAGGED, Reason.NO_ROOM):
            text = f"{text} ({self._sure(pair)})"
        if reason is Reason.DIFFERENTIAL_REFUSAL:
            return text
        return f"{text}{would_take(pair)}"

    # ------------------------------------------------------------ parts

    def _because(self, pair: PairResult) -> str:
        """Return why the groups of *pair* lack outcomes, in brackets."""
        groups = (pair.group_1, pair.group_2)
        why = [f"{group}: {self.missing[group]}" for group in groups if group in self.missing]
        return bracketed("", "; ".join(why))

    def _mostly_refused(self, pair: PairResult) -> str:
        refused = []
        for side in self._sides(pair.metric, pair.group_1, pair.group_2):
            if side.refused > side.n:
                refused.append(f"{side.refused:,} of {side.group}")
        if refused:
            return f", as most were refused ({enumerated(refused)})"
        return ""

    def _alarm(self, pairs: Sequence[PairResult]) -> str:
        """Return who is refused, or left without an answer, more often than whom: *pairs* have the
        same worse-off group.
        """
        worse, _, rate, other = self._ordered(pairs[0])
        group = self.groups[pairs[0].metric].get(worse)
        rates = ""
        if group is not None and other is not None:
            of = f"({round((rate or 0.0) * group.n)} of {group.n})"
            rates = (
                f"{amount(rate, OutcomeKind.BINARY)} {of} against "
                f"{amount(other, OutcomeKind.BINARY)}"
            )
        what = _ALARMS.get(pairs[0].metric, "is refused")
        why = ""
        if pairs[0].metric == NO_ANSWER:
            why = led(": ", self.missing.get(worse))
        sureness = sure(pairs[0], of=worse)
        return f"{worse} {what} in {rates} for {_others(pairs)}{why} ({sureness})"

    def _sure(self, pair: PairResult) -> str:
        return f"{sure(pair, of=pair.worse_off)}; {self._basis(pair)}"

    def _ordered(self, pair: PairResult) -> tuple[str, str, float | None, float | None]:
        """The worse-off group and the other, and what each has."""
        worse = _worse(pair)
        better = _other(pair)
        return worse, better, self._value_of(pair, worse), self._value_of(pair, better)

    def _value_of(self, pair: PairResult, name: str) -> float | None:
        """Return the mean or rate of a group on the metric of *pair*, None where it has none."""
        group = self.groups[pair.metric].get(name)
        if group is None:
            return None
        return group.value

    def _sides(self, metric: str, *names: str) -> list[GroupResult]:
        """Return what there is of the groups of these *names* on *metric*."""
        groups = self.groups[metric]
        return [groups[name] for name in names if name in groups]

    def _amount(self, value: float | None) -> str:
        return amount(value, self.kind, self.unit)

    def _value(self, value: float | None) -> str:
        """A mean or a rate; of an outcome with labels, the favourable one and its rate."""
        if self.answers:
            return f"{self.answers[1]!r} in {self._amount(value)}"
        return self._amount(value)

    def _always(self, pair: PairResult) -> str:
        """The one outcome that there is."""
        group = self.groups[pair.metric].get(pair.group_1)
        if group is None:
            return "the same"
        if group.shares:
            return repr(max(group.shares, key=lambda label: group.shares[label]))
        if self.answers and group.value in (0.0, 1.0):
            return repr(self.answers[int(group.value or 0.0)])
        return self._amount(group.value)

    def _gap(self, pair: PairResult) -> str:
        """By how much which of the two is worse off; without a favourable answer, how the two
        differ.
        """
        if self.kind is OutcomeKind.CATEGORICAL:
            return self._gap_of_labels(pair)
        worse, better, low, high = self._ordered(pair)
        if low is None:
            return f"{worse} has no {self.outcome} to compare"
        if high is None:
            return f"{better} has no {self.outcome} to compare"
        if pair.worse_off is None:
            return self._apart(worse, better, low, high)
        return self._worse_off(worse, better, low, high)

    def _worse_off(self, worse: str, better: str, low: float, high: float) -> str:
        """Say by how much the first of two groups is worse off."""
        on = f"on {self.outcome}"
        if low == high:
            return f"{worse} ranks below {better} {on}, with the same mean of {self._value(low)}"
        much = self._amount(abs(low - high))
        if self.kind in RATES:
            much = f"{points(abs(low - high), plus=False)} percentage points"
        if self.kind is OutcomeKind.REFUSAL:
            against = f"{self._amount(low)} against {self._amount(high)}"
            return f"{worse} is refused more often than {better}: {against}, {much}"
        side = "higher"
        if low < high:
            side = "lower"
        values = f"{self._value(low)} against {self._amount(high)}, {much} {side}"
        return f"{worse} is worse off than {better} {on}: {values}"

    def _apart(self, first: str, second: str, value: float, second_value: float) -> str:
        """Say how two groups differ of which neither is worse off."""
        two = f"{first} and {second}"
        on = f"on {self.outcome}"
        if value == second_value:
            return f"{two} are alike {on}, both {self._value(value)}"
        gap = f"{self._amount(value)} against {self._amount(second_value)}"
        if len(self.answers) == 2:
            other, this = self.answers
            often = f"{this!r} rather than {other!r} in {self._amount(value)} of {self.cases}"
            gap = f"{often} against {self._amount(second_value)}"
        return f"{two} differ {on}: {gap}"

    def _gap_of_labels(self, pair: PairResult) -> str:
        """The label whose share differs most between the two."""
        two = f"{pair.group_1} and {pair.group_2}"
        sides = self._sides(pair.metric, pair.group_1, pair.group_2)
        shares = [side.shares for side in sides if side.shares]
        if len(shares) < 2:
            return f"{two} cannot both be compared on {pair.metric}"
        first, second = shares
        label = max(first, key=lambda name: abs(first[name] - second.get(name, 0.0)))
        often = f"{percent(first[label])} of {self.cases} against {percent(second.get(label, 0.0))}"
        return f"{two} differ most in how often {pair.metric} is {label!r}: {often}"

    def _basis(self, pair: PairResult) -> str:
        """``200 trials from 20 names a group``; where the two differ, the worse-off one first."""
        sides = self._sides(pair.metric, _worse(pair), _other(pair))
        counts = list(dict.fromkeys(f"{group.n:,}" for group in sides))
        trials = f"{' and '.join(counts)} {self.cases}"
        if self.clusters == "rows" and len(counts) == 1:
            return f"{trials} a group"
        if self.clusters == "rows":
            return trials
        units = [self._units(group.clusters) for group in sides]
        if len(set(units)) == 1:
            return f"{trials} from {units[0]} a group"
        each = zip(sides, units, strict=True)
        return " and ".join(f"{group.n:,} {self.cases} from {unit}" for group, unit in each)

    def _units(self, clusters: int) -> str:
        if clusters == 1:
            return f"1 {self.clusters.removesuffix('s')}"
        return f"{clusters} {self.clusters}"


_OPEN = {
    Reason.N: "too few {cases} to judge {outcome} by {by}{refused}",
    Reason.UNSCORED: "too many {cases} have no {outcome} to compare the groups of {by}{because}",
    Reason.RAGGED: "the groups of {by} do not stand in the same {block}s, so {outcome} cannot be compared",
    Reason.TEMPLATE: "the groups of {by} agree on {outcome} on the whole, but {two} may not in every {block}",
    Reason.SIGNAL: (
        "the groups agree on {outcome} on the whole, but {two} may not where one of the signals "
        "conveys them"
    ),
    Reason.DIFFERENTIAL_REFUSAL: (
        "on {outcome} the answers agree, but {two} are not refused equally often, so the answers "
        "do not settle it"
    ),
    Reason.READER: (
        "no difference on {outcome} shows between {two}, but a model read the {cases} and no "
        "labels show how well"
    ),
}


#: What a pair other than of refusals says of the group that is worse off, by its metric.
_ALARMS = {
    FIRST_REFUSAL: "is refused when first asked",
    NO_ANSWER: "is left without a usable answer",
}


def of_one_signal(pair: PairResult, protected_class: str) -> bool:
    """Return whether *pair* is there to raise the alarm for one of several signals of a class."""
    return "signals" in pair.statistics and pair.statistics.get("by") != protected_class


def _in_words(signals: Sequence[str]) -> str:
    """Enumerate *signals* as words: ``stated age and graduation year``."""
    return enumerated([label.replace("_", " ") for label in signals])


def _note(pair: PairResult, beginning: str) -> str:
    """Return the first note of *pair* with this *beginning*; empty where it has none."""
    for note in pair.notes:
        if note.startswith(beginning):
            return note
    return ""


def _worse(pair: PairResult) -> str:
    """Return the worse-off group of *pair*; the first where neither is."""
    return pair.worse_off or pair.group_1


def _by_worse(pairs: Sequence[PairResult]) -> list[list[PairResult]]:
    """*pairs* in their order, those with the same worse-off group together."""
    by_worse: dict[tuple[str, str], list[PairResult]] = {}
    for pair in pairs:
        by_worse.setdefault((pair.metric, _worse(pair)), []).append(pair)
    return list(by_worse.values())


def _others(pairs: Sequence[PairResult]) -> str:
    """Enumerate whom the worse-off group of *pairs* stands against."""
    return enumerated(list(map(_other, pairs)))


def _other(pair: PairResult) -> str:
    if _worse(pair) == pair.group_1:
        return pair.group_2
    return pair.group_1
