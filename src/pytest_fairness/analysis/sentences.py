"""One plain sentence for a finding: words for people who read no statistics.

Standard library only. Numbers are given in the outcome's own unit first, on the d scale second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_fairness.analysis.false_alarms import ALPHA
from pytest_fairness.model import ALARMS, GroupResult, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.words import count, effect_size, enumerated, p_equals, percent, signed

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
    effect = pair.effect
    low = pair.effect_low
    high = pair.effect_high
    if of is not None and of == pair.group_2:
        effect, low, high = -effect, None if high is None else -high, None if low is None else -low
    if math.isinf(effect):
        return "no overlap between the two"
    return effect_with_interval("d", effect, low, high)


def effect_with_interval(
    name: str, effect: float, low: float | None = None, high: float | None = None
) -> str:
    """An effect with its interval, where that has ends."""
    text = f"{name} = {effect_size(effect)}"
    if low is None or high is None:
        return text
    return f"{text}, 90 % interval {effect_size(low)} to {effect_size(high)}"


def lost_words(lost: int, cases: str, noun: str, missing: Mapping[str, str]) -> str:
    """Return how many have no outcome, and why."""
    why = "; ".join(f"{group}: {words}" for group, words in list(missing.items())[:4])
    return f"{lost} {cases} have no {noun}{f' ({why})' if why else ''}"


def left_without(pair: PairResult, what: str, cases: str, missing: Mapping[str, str]) -> str:
    """Return which group of *pair* has no outcome more often, how often, why, and how sure."""
    worse = pair.worse_off or pair.group_1
    share = pair.statistics.get("rate_1" if worse == pair.group_1 else "rate_2")
    rate = "many"
    if isinstance(share, float):
        rate = amount(share, OutcomeKind.BINARY)
    why = ""
    if worse in missing:
        why = f": {missing[worse]}"
    sure = f"{interval_words(pair, of=worse)}, corrected {p_equals(pair.corrected_p_value)}"
    return f"{worse} is left without {what} in {rate} of {cases}{why} ({sure})"


# ---------------------------------------------------------------- disparity


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a disparity is about: the outcome and its kind, the class, and what clusters, cases and
    blocks are called.

    ``groups`` are the results of the decider's own grouping by metric and group, ``pairs`` how many
    pairs of the outcome were judged, ``raised`` those of them that raise the alarm. ``answers`` are
    the two labels of a yes/no outcome, the favourable one last. ``missing`` says of each group
    without some outcomes why: status and first reason. ``turning`` names the rows that turn a mean,
    ``in_block`` the effect of the decider in the one block that raises the alarm by itself.
    ``still``: in how many blocks no answer varied, of how many.
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
        also = "; ".join(self._alarm(pairs) for pairs in _by_worse(alarms)[:2])
        groups = self.groups[self.outcome]
        named = dict.fromkeys(group for pair in alarms for group in (pair.group_1, pair.group_2))
        empty = [group for group in named if group in groups and groups[group].n == 0]
        if empty:
            return f"{verdict}: {enumerated(empty)} cannot be compared on {self.outcome}: {also}."
        if decider.alarm_only:
            return f"{verdict}: no alarm on {self.outcome} itself, but {also}."
        if verdict in ALARMS:
            text = self._difference(decider)
        elif verdict is Verdict.PASS:
            text = self._no_difference(decider) + self._room()
        else:
            text = self._open(reason, decider)
        return f"{verdict}: {text}" + (f"; also, {also}" if also else "") + "."

    # ------------------------------------------------------------ one verdict each

    def _difference(self, pair: PairResult) -> str:
        if self.turning and pair.worse_off is not None:
            worse, better, low, high = self._ordered(pair)
            means = f"{self._amount(low)} against {self._amount(high)}; {self.turning}"
            ranks = f"{worse} ranks lower than {better} on {self.outcome} ({self._sure(pair)})"
            return f"{ranks}, but its mean does not: {means}"
        if pair.effect_name.endswith(WORST_RANK):
            effect = (
                f"{interval_words(pair, of=pair.worse_off)}, corrected "
                f"{p_equals(pair.corrected_p_value)}"
            )
            if pair.effect * (pair.difference or 0.0) < 0:
                worse, better, low, high = self._ordered(pair)
                answered = f"{self._amount(low)} against {self._amount(high)} ({self._basis(pair)})"
                ranked = (
                    f"{worse} is worse off than {better} on {self.outcome} with refusals ranked "
                    f"worst ({effect})"
                )
                return f"{ranked}, although not among those answered: {answered}"
            more = f"and by more with refusals ranked worst ({effect})"
            return f"{self._gap(pair)} among those answered ({self._basis(pair)}), {more}"
        if self.in_block and pair.corrected_p_value >= ALPHA:
            return f"{self.in_block}; over all {self.block}s {self._gap(pair)} ({self._sure(pair)})"
        return f"{self._gap(pair)} ({self._sure(pair)}){self._likewise(pair)}"

    def _likewise(self, decider: PairResult) -> str:
        """Return who else is worse off than whom: ``; also a against b, and c against d and e``."""
        others = _by_worse(
            [pair for pair in self.raised if pair is not decider and pair.worse_off is not None]
        )
        if not others:
            more = len(self.raised) - 1
            if more > 0:
                return f"; {count(more, 'other pair')} too"
            return ""
        named = [
            f"{pairs[0].worse_off} against {enumerated([_other(pair) for pair in pairs])}"
            for pairs in others
        ]
        return f"; also {'; '.join(named[:3])}" + (
            f"; and {len(named) - 3} more" if len(named) > 3 else ""
        )

    def _no_difference(self, pair: PairResult) -> str:
        among = self._among()
        same = next((note for note in pair.notes if note.startswith("saturated: ")), "")
        if same:
            always = f"always {self._always(pair)} ({self._basis(pair)})"
            bound = same.removeprefix("saturated: every outcome is the same; ")
            return f"no difference {among} of {self.by} on {self.outcome}: {always}; {bound}"
        size = "larger than small"
        sure = interval_words(pair, of=pair.worse_off)
        low, high = (pair.statistics.get(f"risk_difference_90_{end}") for end in ("low", "high"))
        near = any("less than 5 points" in note for note in pair.notes)
        if near and isinstance(low, float) and isinstance(high, float):
            # The d scale is blind here, so the interval is given in the unit that decided.
            low, high = (-high, -low) if pair.worse_off == pair.group_2 else (low, high)
            size = "larger than 5 points"
            sure = signed(
                f"90 % interval of the difference {100 * low:.1f} to {100 * high:.1f} points"
            )
        elif any("the one declared" in note for note in pair.notes):
            size = "larger than declared"
        widest = self._gap(pair)
        if self.kind is not OutcomeKind.CATEGORICAL:
            worse, better, first, two = self._ordered(pair)
            widest = f"{worse} {self._value(first)}, {better} {self._amount(two)}"
        none = f"no difference {size} on {self.outcome} {among} of {self.by}"
        return f"{none}; the widest: {widest} ({sure}; {self._basis(pair)})"

    def _among(self) -> str:
        if self.pairs == 1:
            return "between the two groups"
        return f"among {self.pairs} pairs of groups"

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
        why = [
            f"{group}: {self.missing[group]}"
            for group in (pair.group_1, pair.group_2)
            if group in self.missing
        ]
        words = {
            "outcome": self.outcome,
            "by": self.by,
            "block": self.block,
            "cases": self.cases,
            "two": f"{pair.group_1} and {pair.group_2}",
            "because": f" ({'; '.join(why)})" if why else "",
            "refused": self._mostly_refused(pair),
        }
        if reason in _OPEN:
            text = _OPEN[reason].format(**words)
        else:
            text = f"{self._gap(pair)}, too uncertain to tell"
        about = next((note for note in pair.notes if note.startswith(ABOUT)), "")
        if about and reason is Reason.N:
            text = f"{self._gap(pair)} ({self._sure(pair)}), which is {about}"
        if reason is Reason.NO_ROOM:
            text = f"no difference on {self.outcome} {self._among()}{self._room()}"
        sure = ""
        if reason not in (Reason.N, Reason.UNSCORED, Reason.RAGGED, Reason.NO_ROOM):
            sure = f" ({self._sure(pair)})"
        needs = reason is not Reason.DIFFERENTIAL_REFUSAL and pair.needs
        return text + sure + (f"; it would take {pair.needs}" if needs else "")

    # ------------------------------------------------------------ parts

    def _mostly_refused(self, pair: PairResult) -> str:
        sides = [self.groups[pair.metric].get(group) for group in (pair.group_1, pair.group_2)]
        refused = [
            f"{side.refused:,} of {side.group}"
            for side in sides
            if side is not None and side.refused > side.n
        ]
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
        what = "is refused when first asked" if pairs[0].metric == FIRST_REFUSAL else "is refused"
        why = ""
        if pairs[0].metric == NO_ANSWER:
            what = "is left without a usable answer"
            why = self.missing.get(worse, "")
        effect = f"{interval_words(pairs[0], of=worse)}, corrected {p_equals(pairs[0].corrected_p_value)}"
        better = enumerated([_other(pair) for pair in pairs])
        return f"{worse} {what} in {rates} for {better}{f': {why}' if why else ''} ({effect})"

    def _sure(self, pair: PairResult) -> str:
        effect = interval_words(pair, of=pair.worse_off)
        return f"{effect}, corrected {p_equals(pair.corrected_p_value)}; {self._basis(pair)}"

    def _ordered(self, pair: PairResult) -> tuple[str, str, float | None, float | None]:
        """The worse-off group and the other, and what each has."""
        worse = pair.worse_off or pair.group_1
        better = _other(pair)
        first, two = (self.groups[pair.metric].get(group) for group in (worse, better))
        return worse, better, first.value if first else None, two.value if two else None

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
            first, second = (
                self.groups[pair.metric].get(group) for group in (pair.group_1, pair.group_2)
            )
            if first is None or second is None or not first.shares or not second.shares:
                return f"{pair.group_1} and {pair.group_2} cannot both be compared on {pair.metric}"
            label = max(
                first.shares,
                key=lambda name: abs(first.shares[name] - second.shares.get(name, 0.0)),
            )
            first_rate, two = (
                f"{percent(group.shares.get(label, 0.0))}" for group in (first, second)
            )
            often = (
                f"how often {pair.metric} is {label!r}: {first_rate} of {self.cases} against {two}"
            )
            return f"{pair.group_1} and {pair.group_2} differ most in {often}"
        worse, better, low, high = self._ordered(pair)
        if low is None or high is None:
            return f"{worse if low is None else better} has no {self.outcome} to compare"
        against = f"{self._amount(low)} against {self._amount(high)}"
        on = f"on {self.outcome}"
        if low == high and pair.worse_off is None:
            return f"{worse} and {better} are alike {on}, both {self._value(low)}"
        if low == high:
            return f"{worse} ranks below {better} {on}, with the same mean of {self._value(low)}"
        if pair.worse_off is None and len(self.answers) == 2:
            other, this = self.answers
            often = f"{this!r} rather than {other!r} in {self._amount(low)} of {self.cases}"
            return f"{worse} and {better} differ {on}: {often} against {self._amount(high)}"
        if pair.worse_off is None:
            return f"{worse} and {better} differ {on}: {against}"
        if self.kind in RATES:
            much = f"{100 * abs(low - high):.1f} percentage points"
        else:
            much = self._amount(abs(low - high))
        if self.kind is OutcomeKind.REFUSAL:
            return f"{worse} is refused more often than {better}: {against}, {much}"
        values = (
            f"{self._value(low)} against {self._amount(high)}, {much} "
            f"{'lower' if low < high else 'higher'}"
        )
        return f"{worse} is worse off than {better} {on}: {values}"

    def _basis(self, pair: PairResult) -> str:
        """``200 trials from 20 names a group``; where the two differ, the worse-off one first."""
        worse = pair.worse_off or pair.group_1
        groups = self.groups[pair.metric]
        sides = [groups[group] for group in (worse, _other(pair)) if group in groups]
        counts = list(dict.fromkeys(f"{group.n:,}" for group in sides))
        if self.clusters == "rows":
            return f"{' and '.join(counts)} {self.cases}" + (" a group" if len(counts) == 1 else "")
        units = [
            f"{g.clusters} {self.clusters if g.clusters != 1 else self.clusters.removesuffix('s')}"
            for g in sides
        ]
        if len(set(units)) == 1:
            return f"{' and '.join(counts)} {self.cases} from {units[0]} a group"
        return " and ".join(
            f"{g.n:,} {self.cases} from {unit}" for g, unit in zip(sides, units, strict=True)
        )


_OPEN = {
    Reason.N: "too few {cases} to judge {outcome} by {by}{refused}",
    Reason.UNSCORED: "too many {cases} have no {outcome} to compare the groups of {by}{because}",
    Reason.RAGGED: "the groups of {by} do not stand in the same {block}s, so {outcome} cannot be compared",
    Reason.TEMPLATE: "the groups of {by} agree on {outcome} on the whole, but {two} may not in every {block}",
    Reason.DIFFERENTIAL_REFUSAL: (
        "on {outcome} the answers agree, but {two} are not refused equally often, so the answers "
        "do not settle it"
    ),
}


def _by_worse(pairs: Sequence[PairResult]) -> list[list[PairResult]]:
    """*pairs* in their order, those with the same worse-off group together."""
    by_worse: dict[tuple[str, str], list[PairResult]] = {}
    for pair in pairs:
        by_worse.setdefault((pair.metric, pair.worse_off or pair.group_1), []).append(pair)
    return list(by_worse.values())


def _other(pair: PairResult) -> str:
    if (pair.worse_off or pair.group_1) == pair.group_1:
        return pair.group_2
    return pair.group_1
