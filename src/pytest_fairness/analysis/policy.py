"""The policy: from effects, their intervals and a corrected p-value to PASS, FLAG, FAIL or
INCONCLUSIVE.

Written once, for a whole table of pairs. A verdict is never read off a p-value alone: absence of
significance is not evidence of fairness, so PASS needs the 90 % interval of every effect inside the
margin (two one-sided tests at 5 %; Schuirmann 1987). See ``docs/verdicts.md``.

Each rule is a table of conditions and decisions, of which the first that holds decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

import numpy as np

from pytest_fairness.analysis.false_alarms import ALPHA
from pytest_fairness.analysis.looks import LEAST_RATIO, NOTHING_TO_REDUCE, Look
from pytest_fairness.analysis.sentences import ABOUT
from pytest_fairness.model import (
    ALARMS,
    Finding,
    OutcomeKind,
    PairResult,
    Reason,
    Verdict,
    deciding_pair,
)
from pytest_fairness.statistics.arrays import Bools
from pytest_fairness.statistics.clusters import CONFIDENCE
from pytest_fairness.statistics.effects import LOGIT_TO_D
from pytest_fairness.statistics.gaps import ArmContrast
from pytest_fairness.statistics.pair_table import PairTable
from pytest_fairness.statistics.proportions import ImpactRatio
from pytest_fairness.words import confidence, percent

MINIMUM_N = dict.fromkeys(OutcomeKind, 30) | {OutcomeKind.BINARY: 50, OutcomeKind.CATEGORICAL: 50}
"""Fewest trials a group that may carry a verdict, by kind of outcome."""
RECOMMENDED_N = dict.fromkeys(OutcomeKind, 100) | {
    OutcomeKind.NARRATIVE: 50,
    OutcomeKind.REFUSAL: 50,
}
"""Trials a group that the minimum detectable effect of the default design was worked out for."""

TRIVIAL = 0.2
"""Effects below this are trivial (Cohen 1988: small)."""
NO_SPREAD = 1e-12
"""A p-value below this comes of units that all changed alike: t has nothing to go by, signs do."""
MARGIN = 0.5
"""Effects above this FAIL, and PASS needs the 90 % interval inside ± this (Cohen 1988: medium)."""
MAX_UNSCORED = 0.05
LOST_ALIKE = 0.2
"""p of equal shares without an outcome over which nothing says that what is missing differs between
two groups.
"""
MAX_RAGGED = 0.20
MAX_REFUSAL_DIFFERENCE = 0.05
LIKELY_REFUSAL_DIFFERENCE = 0.2
"""p × pairs under which a difference in refusals of over 5 points bears on the scores."""
RECOMMENDED_CLUSTERS = 10
CONTRARY = (
    "the rows and the clusters contradict each other about who is higher, so neither is evidence: "
    "p = 1"
)
UNLIKE = 0.01
"""p of equal spreads below which a PASS says that the groups are spread unlike."""
PRACTICAL = 0.9
"""A ratio from here on does not matter in practice, unless nearly everybody is favoured."""
TOO_LITTLE = "apart by more than chance, too little to matter"
LEAST_WIN_RATIO = 0.8
"""Win rates with a ratio below this are no trifle: a significant difference is at least a FLAG."""
SETTLED = "PASS at an earlier look, which stands"
"""Says that a pair stays green."""
IDLE = NOTHING_TO_REDUCE + ": in both arms the whole {} interval lies inside ±.2 SD"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict with its reason, what would decide it, and remarks for the reader."""

    verdict: Verdict
    reason: Reason | None = None
    needs: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def unusable(self) -> bool:
        """Return whether the data cannot be used."""
        return self.reason is not None and self.reason.unusable


def milder(first: Decision, second: Decision) -> Decision:
    """The less severe of two decisions on the same pair; the first if they are equally severe."""
    if second.verdict.severity < first.verdict.severity:
        return second
    return first


def worse(first: Decision, second: Decision) -> Decision:
    """The more severe of two decisions on the same pair; the first if they are equally severe."""
    if second.verdict.severity > first.verdict.severity:
        return second
    return first


def withheld(finding: Finding, *, not_run: int, models: Sequence[str]) -> Finding:
    """Return *finding*, which is no PASS where *not_run* planned trials were never run
    (INCOMPLETE), or where several *models* answered (MIXED_MODELS): it is INCONCLUSIVE then.
    """
    if finding.verdict is not Verdict.PASS:
        return finding
    if not_run:
        reason, why = Reason.INCOMPLETE, f"{not_run} planned trials were never run"
    elif len(models) > 1:
        reason = Reason.MIXED_MODELS
        why = f"{len(models)} model versions answered: {', '.join(models)}"
    else:
        return finding
    passed = finding.sentence.removeprefix("PASS: ").rstrip(".")
    return replace(
        finding,
        verdict=Verdict.INCONCLUSIVE,
        reason=reason,
        sentence=f"INCONCLUSIVE: {why}, so this is no PASS yet ({passed}).",
    )


class Conclusion(NamedTuple):
    """The verdict of an assertion, the reason where it is INCONCLUSIVE, and the pair that decides
    it, which the sentence is about.
    """

    verdict: Verdict
    reason: Reason | None
    decider: PairResult | None


def conclude_pairs(pairs: Iterable[PairResult]) -> Conclusion:
    """Return the worst verdict of *pairs*, and the pair that decides it."""
    decider = deciding_pair(list(pairs))
    if decider is None:
        return Conclusion(Verdict.INCONCLUSIVE, None, None)
    if decider.verdict is Verdict.INCONCLUSIVE:
        return Conclusion(decider.verdict, decider.reason, decider)
    return Conclusion(decider.verdict, None, decider)


def spec_verdict(p_value: float, tests: int, effect: float, n: int, minimum: int) -> Verdict | None:
    """The literal specification's verdict on one pair: Bonferroni over *tests*, then the size of
    its own *effect*.

    PASS if the corrected p is .05 or more or the effect under .2, FLAG to .5, FAIL above; None
    under its minimum N.
    """
    if n < minimum:
        return None
    if min(1.0, p_value * tests) >= ALPHA or abs(effect) < TRIVIAL:
        return Verdict.PASS
    if abs(effect) > MARGIN:
        return Verdict.FAIL
    return Verdict.FLAG


def worst_spec(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    """The most severe of what the literal specification says of each pair; None where it says
    nothing of one.
    """
    order = list(verdicts)
    if alarms := [verdict for verdict in order if verdict in ALARMS]:
        return Verdict.worst(alarms)
    if None in order or not order:
        return None
    return Verdict.PASS


# ---------------------------------------------------------------- a table of pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The rule that a table is judged by: the level and its correction over *family_size* tests,
    what the caller declared too small to matter, the minimum of trials a group, and what clusters,
    cases and blocks are called. At a ``look`` the levels are those of the look; ``parts`` is in how
    many parts of the table the groups are compared, 0 where it is compared as a whole.
    """

    alpha: float = ALPHA
    correction: str = "bonferroni"
    min_raw_diff: float | None = None
    min_raw_ratio: float | None = None
    minimum: int = 30
    family_size: int = 1
    cluster_noun: str = "names"
    case_noun: str = "trials"
    block_noun: str = "block"
    look: Look | None = None
    parts: int = 0

    @classmethod
    def at(cls, look: Look | None, alpha: float, correction: str) -> Rule:
        """Return the rule of a table at level *alpha*, or of a *look* at its own level."""
        if look is None:
            return cls(alpha=alpha, correction=correction)
        return cls(alpha=look.red, correction=correction, look=look)

    @property
    def confidence(self) -> float:
        """Return the confidence of the intervals that a verdict reads."""
        if self.look is None:
            return CONFIDENCE
        return self.look.confidence


#: A condition on pairs, and the decision where it holds.
Row: TypeAlias = "tuple[Bools | bool, Decision | Callable[[PairTable, int, Rule], Decision]]"


def significant(table: PairTable, rule: Rule) -> Bools:
    """Pairs that differ by more than chance, and by no less than the caller declared."""
    return np.asarray((table.corrected < rule.alpha) & ~table.trivial)


def first_match(table: PairTable, rule: Rule, *rows: Row) -> list[Decision]:
    """The decision on every pair: that of the first of the *rows* whose condition holds. The last
    holds of all.
    """
    fits = np.stack([np.broadcast_to(holds, table.first.size) for holds, _ in rows])
    decided = [rows[at][1] for at in np.argmax(fits, axis=0).tolist()]
    decisions = []
    for at, decision in enumerate(decided):
        if callable(decision):
            decisions.append(decision(table, at, rule))
        else:
            decisions.append(decision)
    return decisions


def judge(table: PairTable, rule: Rule) -> list[Decision]:
    """The policy."""
    beyond = significant(table, rule)
    alarm = beyond & (table.size >= TRIVIAL)
    signs = np.sign(np.nan_to_num(table.effect))
    firm = table.firm(MARGIN).any(axis=1)
    apart = "each group always has the same outcome, and the two differ"
    turned = (
        "the means and the ranks differ in opposite directions: a few extreme values turn the mean"
    )
    close = "beyond chance, but under 5 points and with a ratio of .8 or more, so FAIL is FLAG"
    unsure = "the interval of the difference holds 0, so FAIL is FLAG"
    near = (
        "the rates differ by less than 5 points, and their ratio is between .8 and 1.25 "
        f"({confidence(rule.confidence)} intervals)"
    )
    inside = (
        f"the whole {confidence(rule.confidence)} interval of the difference is below the one "
        "declared"
    )
    decisions = first_match(
        table,
        rule,
        *too_little(table, rule, alarm),
        (table.constant & (table.size == 0), _alike),
        (
            table.constant & (table.clusters.min(axis=1) < 2),
            undecided(Reason.N, f"at least 2 {rule.cluster_noun} a group", apart),
        ),
        (table.constant & beyond, Decision(Verdict.FAIL, notes=(apart,))),
        (
            table.constant & table.trivial,
            Decision(Verdict.PASS, notes=(apart, "by less than the difference declared")),
        ),
        (table.constant, partial(_imprecise, notes=(apart,))),
        (
            alarm & (signs.min(axis=1) * signs.max(axis=1) < 0),
            Decision(Verdict.FLAG, notes=(turned,)),
        ),
        (alarm & (table.size <= MARGIN), Decision(Verdict.FLAG)),
        (alarm & table.close, Decision(Verdict.FLAG, notes=(close,))),
        (alarm & (table.single | table.one_part), capped),
        (alarm & ~firm, Decision(Verdict.FLAG, notes=(unsure,))),
        (alarm, Decision(Verdict.FAIL)),
        (np.all((table.low > -MARGIN) & (table.high < MARGIN), axis=1), Decision(Verdict.PASS)),
        (table.near, Decision(Verdict.PASS, notes=(near,))),
        (table.inside, Decision(Verdict.PASS, notes=(inside,))),
        (True, _imprecise),
    )
    decisions = about_names(table, rule, at_look(table, rule, decisions))
    for at in np.flatnonzero(table.contrary).tolist():
        decisions[at] = replace(decisions[at], notes=(*decisions[at].notes, CONTRARY))
    return decisions


def at_look(table: PairTable, rule: Rule, decisions: list[Decision]) -> list[Decision]:
    """The *decisions*, without a PASS that a look has too few names for: any under 10 a group, one
    by saturation or by points under 20; the last look has all there are.
    """
    by_margin = np.all((table.low > -MARGIN) & (table.high < MARGIN), axis=1) | table.inside
    return not_yet_green(rule, decisions, table.constant | ~by_margin)


def not_yet_green(rule: Rule, decisions: list[Decision], weak: Bools) -> list[Decision]:
    """The *decisions*, without a PASS where *weak* evidence would give it at an early look, and
    without any at a tiny one.
    """
    look = rule.look
    if look is None or not look.early:
        return decisions
    settled = list(decisions)
    for at in np.flatnonzero(weak | look.tiny).tolist():
        if settled[at].verdict is Verdict.PASS:
            needs = f"more {rule.cluster_noun} a group (now {look.names})"
            settled[at] = undecided(Reason.PRECISION, needs, *settled[at].notes)
    return settled


def kept_green(decision: Decision, key: tuple[str, str, str, str], look: Look | None) -> Decision:
    """*decision* on the pair of *key*, which stays green where an earlier look found it so and only
    precision is in doubt now.
    """
    if look is None or key not in look.settled or decision.reason is not Reason.PRECISION:
        return decision
    return Decision(Verdict.PASS, notes=(*decision.notes, SETTLED))


def about_names(table: PairTable, rule: Rule, decisions: list[Decision]) -> list[Decision]:
    """The *decisions*, without a PASS on a group of one name: nothing tells that name from its
    group.
    """
    named = table.named
    settled = list(decisions)
    for at in np.flatnonzero(named.any(axis=1)).tolist():
        if settled[at].verdict is Verdict.PASS:
            groups = np.array([table.first[at], table.second[at]])
            names = sorted(table.only[group] for group in groups[named[at]].tolist())
            whole = "the group"
            if len(names) > 1:
                whole = "their groups"
            about = f"{ABOUT}{' and '.join(names)}, not about {whole}"
            needs = f"at least 2 {rule.cluster_noun} a group, better 20"
            settled[at] = undecided(Reason.N, needs, *settled[at].notes, about)
    return settled


def undecided(reason: Reason, needs: str | None, *notes: str) -> Decision:
    """INCONCLUSIVE for a *reason*, and what it would take."""
    return Decision(Verdict.INCONCLUSIVE, reason, needs, notes)


def ragged(table: PairTable, at: int, _: Rule) -> Decision:
    lost = percent(table.ragged[at], 0)
    return undecided(
        Reason.RAGGED,
        f"every group in every block: {lost} of the rows are in blocks that lack a group",
    )


def few(table: PairTable, at: int, rule: Rule, verdict: Verdict = Verdict.INCONCLUSIVE) -> Decision:
    side = int(np.argmin(table.trials[at]))
    has = (
        f"{table.labels[int((table.first, table.second)[side][at])]} has "
        f"{table.trials[at, side]:.0f}"
    )
    least = f"at least {max(rule.minimum, 2)} {rule.case_noun}"
    if verdict is Verdict.INCONCLUSIVE:
        return undecided(Reason.N, f"{least} a group ({has})")
    return Decision(
        verdict, needs=f"{least} a group ({has})", notes=(f"significant, but {has} of {least}",)
    )


def too_little(table: PairTable, rule: Rule, alarm: Bools) -> list[Row]:
    """The rows of pairs whose blocks lack a group, or that have too few trials; of those an *alarm*
    is a FLAG.
    """
    least = table.trials.min(axis=1)
    too_few = least < max(rule.minimum, 2)
    few_but_significant = partial(few, verdict=Verdict.FLAG)
    return [
        (table.ragged > MAX_RAGGED, ragged),
        (too_few & alarm & (least >= 2), few_but_significant),
        (too_few, few),
    ]


def _imprecise(table: PairTable, at: int, rule: Rule, notes: tuple[str, ...] = ()) -> Decision:
    return undecided(Reason.PRECISION, needed_size(table, at, rule), *notes)


def _alike(table: PairTable, at: int, rule: Rule) -> Decision:
    now, noun = units(table, at, rule)
    if table.single[at]:
        noun = "replies that differ"
    if now < RECOMMENDED_CLUSTERS:
        needs = f"at least {RECOMMENDED_CLUSTERS} {noun} a group (now {now})"
        return undecided(
            Reason.PRECISION, needs, "every outcome is the same, which so few cannot make more of"
        )
    return Decision(Verdict.PASS, notes=(saturated(now, noun),))


def saturated(clusters: float, noun: str) -> str:
    """Return what equal constants support: a gap of 1 − .05^(1/K) of the names would show in 95 %
    of audits (Jovanovic & Levy 1997)."""
    bound = 100 * (1 - 0.05 ** (1 / max(clusters, 1.0)))
    if bound >= 1:
        points = f"{bound:.0f}"
    else:
        points = f"{bound:.1g}"
    return (
        f"saturated: every outcome is the same; with {clusters:.0f} {noun} a group, exceptions in "
        f"up to {points} % of them could have gone unseen"
    )


def capped(table: PairTable, at: int, rule: Rule) -> Decision:
    """A group of one name, or of names with one part: the result is about that one, not about the
    group.
    """
    noun = rule.cluster_noun
    about = f"all {noun} of a group share a first or a last name"
    needs = f"{noun} that share no part"
    if table.single[at]:
        about = f"one of the groups has a single one of its {noun}"
        needs = f"at least 2 {noun} a group, better 20"
    note = f"{about}: the result is about that one, not about the group, so FAIL is capped at FLAG"
    return Decision(Verdict.FLAG, needs=needs, notes=(note,))


def units(table: PairTable, at: int, rule: Rule) -> tuple[int, str]:
    """Return how many clusters, or cases where rows are the unit, the smaller group has, and what
    they are called.
    """
    if bool(table.single[at]) or table.own_rows:
        return int(table.trials[at].min()), rule.case_noun
    return int(table.clusters[at].min()), rule.cluster_noun


def needed_size(table: PairTable, at: int, rule: Rule) -> str | None:
    """The clusters (or cases, where rows are the unit) a group that would decide, if the estimate
    stays.

    The half-width of the interval and the standard error both shrink with 1/√K. The nearer of two
    ways out counts: the intervals fit inside the margin (PASS), or the difference becomes
    significant (FLAG, FAIL).
    """
    now, noun = units(table, at, rule)
    low = table.low[at]
    high = table.high[at]
    room = MARGIN - np.abs(table.effect[at])
    sizes = []
    if np.isfinite([low, high]).all() and bool(np.all(room > 0)):
        sizes.append(now * float(np.max(((high - low) / 2 / room) ** 2)))
    if table.size[at] >= TRIVIAL and not table.trivial[at]:
        sizes += until_significant(now, float(table.p_value[at]), rule)
    return needed(sizes, now, noun)


def until_significant(now: float, p: float, rule: Rule) -> list[float]:
    """The units that would make a difference with *p* from *now* units significant; none where p is
    0 or 1.
    """
    if not 0 < p < 1:
        return []
    wanted, seen = (
        NormalDist().inv_cdf(1 - max(level, 1e-15) / 2)
        for level in (rule.alpha / max(rule.family_size, 1), p)
    )
    if seen > 0:
        return [now * (wanted / seen) ** 2]
    return []


def needed(sizes: Sequence[float], now: int, noun: str) -> str | None:
    """The fewest units a group of several *sizes* that decide, in words; None where none is within
    reach.
    """
    finite = [size for size in sizes if math.isfinite(size) and size < 1e7]
    if not finite:
        return None
    more = f"about {max(math.ceil(min(finite)), now + 1):,} {noun} a group"
    return f"{more} if the difference stays as it is (now {now:,})"


# ---------------------------------------------------------------- what else a PASS takes


def no_pass(decision: Decision, reason: Reason, needs: str, *notes: str) -> Decision:
    """Return *decision*; in place of a PASS INCONCLUSIVE for a *reason*, which *needs* more."""
    if decision.verdict is not Verdict.PASS:
        return decision
    return undecided(reason, needs, *notes)


def unless_refused(answered: Decision) -> Decision:
    """A PASS on the scores of those who got an answer says nothing where one group is refused more
    often.
    """
    needs = (
        "find out why one group is refused more often; scores of answered trials cannot settle it"
    )
    return no_pass(answered, Reason.DIFFERENTIAL_REFUSAL, needs)


class ReaderDoubt(NamedTuple):
    """A doubt about the readings of a pair: what would settle it, and whether it leaves every verdict
    ``open``, or a PASS alone.
    """

    needs: str
    open: bool


def judge_read(
    table: PairTable,
    rule: Rule,
    policy: Callable[[PairTable, Rule], list[Decision]],
    doubts: Mapping[tuple[str, str], ReaderDoubt],
) -> list[Decision]:
    """The decisions of a *policy*, where a reader errs: a pair of groups of which there are *doubts*
    is not decided.
    """
    decisions = policy(table, rule)
    for at, decision in enumerate(decisions):
        # By name: with missing outcomes imputed, a pair stands in a table of its own.
        doubt = doubts.get((table.labels[table.first[at]], table.labels[table.second[at]]))
        if doubt is not None and (doubt.open or decision.verdict is Verdict.PASS):
            decisions[at] = undecided(Reason.READER, doubt.needs, *decision.notes)
    return decisions


def without_room(decision: Decision, still: int, live: int, rule: Rule) -> Decision:
    """No PASS where hardly an answer could have shown a bias: none varied in *still* of *live*
    blocks."""
    needs = (
        f"{rule.block_noun}s in which answers vary, a third of them at least: none did in {still} "
        f"of {live}"
    )
    return no_pass(decision, Reason.NO_ROOM, needs, *decision.notes)


def raised_by_block(decision: Decision, block: str, noun: str) -> Decision:
    """*decision* on a pair about which *block* by itself raises the alarm."""
    if decision.reason in (Reason.RAGGED, Reason.UNSCORED):
        return decision
    note = f"{noun} {block!r} by itself raises the alarm: the groups differ there"
    if decision.verdict in ALARMS:
        return replace(decision, notes=(*decision.notes, note))
    return Decision(Verdict.FLAG, notes=(note,))


def in_doubt(decision: Decision, block: str, noun: str) -> Decision:
    """*decision* on a pair about which *block* by itself leaves a doubt: no PASS."""
    needs = f"more names in {noun} {block!r}, where the groups may differ"
    return no_pass(decision, Reason.TEMPLATE, needs)


def doubted_by_signal(decision: Decision, signal: str) -> Decision:
    """*decision* on a pair whose difference is over the margin where *signal* conveys the groups:
    no PASS.
    """
    needs = (
        f"more names where {signal.replace('_', ' ')} conveys the groups, which may differ there"
    )
    return no_pass(decision, Reason.SIGNAL, needs, *decision.notes)


# ---------------------------------------------------------------- outcomes that are missing


class Imputed(NamedTuple):
    """The decision on a pair with what is missing imputed, and whether its difference remains."""

    decision: Decision
    stands: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The *cases* of a pair that lack an outcome (a *noun*): so many *lost*, up to a *share* of a
    group's; ``alike`` where nothing says that they differ between the two groups.
    """

    noun: str
    cases: str
    lost: int
    share: float
    alike: bool

    @property
    def many(self) -> bool:
        """Return whether so many are missing that they could turn any verdict."""
        return self.share > MAX_UNSCORED

    @property
    def unscored(self) -> Decision:
        """Return that too many outcomes are missing to judge."""
        needs = (
            f"{_with_article(self.noun)} for more {self.cases}: {percent(self.share, 0)} of a "
            "group's have none, and what is missing could turn the verdict"
        )
        return undecided(Reason.UNSCORED, needs)

    def settle_pass(self, decision: Decision, imputed: Sequence[Imputed | None]) -> Decision:
        """Return a PASS if it passes *imputed* both ways (Horowitz & Manski 2000); where that
        cannot be compared (None), if not many are missing.
        """
        comparable = [again.decision.verdict for again in imputed if again is not None]
        stands = not self.many
        if len(comparable) == len(imputed):
            stands = all(verdict is Verdict.PASS for verdict in comparable)
        if stands:
            return decision
        if self.many:
            return self.unscored
        could = "at their worst they would"
        if self.alike:
            could = "they could"
        noun = _with_article(self.noun)
        needs = f"{noun} for the {self.lost} {self.cases} without one: {could} turn the PASS"
        return undecided(Reason.PRECISION, needs)

    def settle_alarm(self, decision: Decision, least: Imputed | None) -> Decision:
        """Return an alarm, by the milder of the two verdicts, if it remains with what is missing
        where that is *least* favourable to it.
        """
        if least is None or not least.stands or least.decision.verdict not in ALARMS:
            return self.unscored
        note = (
            f"stands although {percent(self.share, 0)} of a group's {self.cases} have no "
            f"{self.noun}: at their worst for it the difference remains"
        )
        return replace(milder(decision, least.decision), notes=(*decision.notes, note))


def _with_article(noun: str) -> str:
    if noun[0] in "aeiou":
        return f"an {noun}"
    return f"a {noun}"


# ---------------------------------------------------------------- four fifths


def judge_ratio(
    ratio: ImpactRatio,
    q: float,
    *,
    alpha: float,
    practical: float = PRACTICAL,
    bare: bool = False,
    cases: str = "cases",
) -> Decision:
    """The four-fifths rule: the ratio, significance after correction, whether one decision more
    would turn it, and whether what is significant matters in practice."""
    if bare:
        return first_of((ratio.below, Decision(Verdict.FAIL)), (True, Decision(Verdict.PASS)))
    beyond = q < alpha
    none = "favourable decisions in some group: without any there is no ratio"
    more = f"more {cases} in the smaller group"
    chance = "below four fifths, but the difference is within chance"
    turns = "below four fifths, but one decision more would turn it round"
    apart = "at least four fifths, but the rates differ by more than chance"
    least = MINIMUM_N[OutcomeKind.BINARY]
    fewest = min(ratio.counts.n_low, ratio.counts.n_high)
    sure = ratio.low >= LEAST_RATIO
    until = f"more {cases}, until the interval of the ratio stays above two thirds"
    return first_of(
        (ratio.counts.x_high == 0, undecided(Reason.PRECISION, none)),
        (ratio.below and beyond and not ratio.flip_flop, Decision(Verdict.FAIL)),
        (ratio.below and ratio.flip_flop, undecided(Reason.SMALL_NUMBERS, more, turns)),
        (ratio.below, undecided(Reason.SMALL_NUMBERS, more, chance)),
        (beyond and matters(ratio, practical), Decision(Verdict.FLAG, notes=(apart,))),
        (
            fewest < least,
            undecided(Reason.PRECISION, f"at least {least} {cases} a group (now {fewest})"),
        ),
        (sure and beyond, Decision(Verdict.PASS, notes=(TOO_LITTLE,))),
        (sure, Decision(Verdict.PASS)),
        (True, undecided(Reason.PRECISION, until, "the interval reaches below two thirds")),
    )


def first_of(*rows: tuple[bool, Decision]) -> Decision:
    """The decision of the first of *rows* that holds; the last does."""
    return next(decision for holds, decision in rows if holds)


def matters(ratio: ImpactRatio, practical: float) -> bool:
    """Return whether the two rates differ by what matters in practice: their ratio is below
    *practical*, or nearly everybody is favoured in one group, and the odds of being rejected in the
    other are not nearly the same.

    Near 1 a ratio of rates is blind: the ratio of those rejected is what an applicant meets.
    """
    under = ratio.under(Fraction(practical).limit_denominator(10**6))
    nearly_all = 10 * ratio.counts.x_high > 9 * ratio.counts.n_high
    return under or (nearly_all and ratio.log_odds * LOGIT_TO_D >= TRIVIAL)


# ---------------------------------------------------------------- equivalence


def judge_equivalence(table: PairTable, rule: Rule, alpha: float) -> list[Decision]:
    """Decide on pairs by two one-sided tests at *alpha*, and by the difference at the rule's
    level; see :func:`~pytest_fairness.analyze_equivalence`.
    """
    margin = table.figures["margin"]
    apart = np.abs(table.difference)
    significant = table.corrected < rule.alpha
    alarm = significant & (apart > margin)
    differ = "the groups differ, perhaps by more than the margin"

    def until_inside(table: PairTable, at: int, rule: Rule) -> Decision:
        half = float(table.difference_high[at] - table.difference_low[at]) / 2
        now, noun = units(table, at, rule)
        room = float(margin[at] - apart[at])
        sizes = []
        if math.isfinite(half) and room > 0:
            sizes = [now * (half / room) ** 2]
        return undecided(Reason.PRECISION, needed(sizes, now, noun))

    decisions = first_match(
        table,
        rule,
        *too_little(table, rule, alarm),
        (table.figures["tost"] < alpha, Decision(Verdict.PASS)),
        (alarm & table.single, capped),
        (alarm, Decision(Verdict.FAIL)),
        (significant, Decision(Verdict.FLAG, notes=(differ,))),
        (True, until_inside),
    )
    return about_names(table, rule, not_yet_green(rule, decisions, table.constant))


# ---------------------------------------------------------------- choices


def judge_choices(table: PairTable, rule: Rule) -> list[Decision]:
    """The policy; and a ratio of win rates below .8, beyond chance, is at least a FLAG."""
    lower = np.minimum(table.figures["rate"], 1 - table.figures["rate"])
    below = (table.corrected < rule.alpha) & (lower < LEAST_WIN_RATIO * (1 - lower))
    no_trifle = "the ratio of the two win rates is below .8, beyond chance"
    decisions = judge(table, rule)
    for at, decision in enumerate(decisions):
        if decision.reason is Reason.RAGGED:
            lost = percent(table.ragged[at], 0)
            needs = (
                f"each two candidates in both orders: {lost} of their trials come in one order only"
            )
            decisions[at] = replace(decision, needs=needs)
        elif below[at] and decision.verdict not in ALARMS and decision.reason is not Reason.N:
            decisions[at] = Decision(Verdict.FLAG, notes=(no_trifle,))
    return decisions


# ---------------------------------------------------------------- arms


def judge_changes(table: PairTable, rule: Rule) -> list[Decision]:
    """Decide on what became of the disparity of each pair; see
    :func:`~pytest_fairness.analyze_arms`.
    """
    shrinks, grows, extent, units = (
        table.figures[key] for key in ("shrinks", "grows", "extent", "units")
    )
    # So many units that all changed by the same come out alike by their signs alone this often,
    # which is too often for an alarm.
    by_signs = np.where(table.p_value < NO_SPREAD, np.exp2(1 - units), 0.0)
    significant = table.corrected < rule.alpha
    shrunk = significant
    if rule.look is not None:
        shrunk = table.corrected < rule.look.green
    n = table.trials[:, 0]
    alarm = significant & (by_signs < rule.alpha) & (grows == 1) & (table.size >= TRIVIAL)
    single = "a single name a group: the result is about those, so FAIL is capped at FLAG"
    level = confidence(rule.confidence)

    def few(_table: PairTable, at: int, rule: Rule) -> Decision:
        needs = f"at least {rule.minimum} trials a group and arm (now {n[at]:.0f})"
        if alarm[at]:
            return Decision(Verdict.FLAG, needs=needs)
        return undecided(Reason.N, needs)

    def uneven(table: PairTable, at: int, _rule: Rule) -> Decision:
        needs = (
            f"the same cells in both arms: {percent(table.ragged[at], 0)} of the rows have no "
            "counterpart"
        )
        return undecided(Reason.RAGGED, needs)

    def unsettled(table: PairTable, at: int, rule: Rule) -> Decision:
        notes = []
        if significant[at] and grows[at]:
            notes = ["the disparity grows beyond chance, but by less than .2 SD"]
        elif significant[at]:
            notes = ["the change is beyond chance, but not whether less is left than there was"]
        noun = "blocks"
        if not np.isnan(table.p_cluster[at]):
            noun = rule.cluster_noun
        needs = None
        for size in until_significant(units[at], table.p_value[at], rule):
            if units[at] < size < 1e6:
                needs = f"about {int(size) + 1:,} {noun} if the change stays as it is"
        return undecided(Reason.PRECISION, needs, *notes)

    nothing = undecided(
        Reason.N, "at least two names or blocks that stand in both arms, with both groups"
    )
    return first_match(
        table,
        rule,
        (np.isnan(units), nothing),
        (table.ragged > MAX_RAGGED, uneven),
        (n < rule.minimum, few),
        (shrunk & (shrinks == 1), Decision(Verdict.PASS)),
        (extent < TRIVIAL, Decision(Verdict.PASS, notes=(IDLE.format(level),))),
        (alarm & table.alone, Decision(Verdict.FLAG, notes=(single,))),
        (alarm, Decision(Verdict.FAIL)),
        (True, unsettled),
    )


class JudgedPair(NamedTuple):
    """A pair in two arms with its contrast (None where the arms share too little), and whether by
    itself, without the correction over pairs, it grew beyond chance."""

    pair: PairResult
    contrast: ArmContrast | None
    grown: bool

    @property
    def became(self) -> str:
        """Return what became of the disparity: smaller, larger, idle or open."""
        if self.pair.verdict is Verdict.PASS:
            if any(note.startswith(NOTHING_TO_REDUCE) for note in self.pair.notes):
                return "idle"
            return "smaller"
        if self.pair.verdict is Verdict.INCONCLUSIVE:
            return "open"
        return "larger"

    @property
    def unusable(self) -> bool:
        """Return whether the data on the pair cannot be used."""
        return self.pair.reason is not None and self.pair.reason.unusable

    @property
    def idle_in_control(self) -> bool:
        """Return whether the control arm has nothing to reduce."""
        contrast = self.contrast
        return contrast is not None and contrast.extent(contrast.control) < TRIVIAL

    @property
    def loose(self) -> bool:
        """Return whether it is open that the disparity grew by half an SD."""
        if self.became != "open":
            return False
        return self.contrast is None or self.contrast.possible_growth >= MARGIN

    @property
    def in_control(self) -> float:
        """The size of the disparity in the control arm; rounded, as the order of rows must not
        choose among equals.
        """
        return round(abs(float(str(self.pair.statistics.get("control", 0.0)))), 9)


def conclude_arms(judged: Sequence[JudgedPair], detail: Sequence[JudgedPair]) -> Conclusion:
    """The verdict on the class, and the pair that the sentence is about.

    *judged* are the pairs of classes, *detail* those of groups, which raise the alarm and never
    have to pass. Of several open ones the pair with most to reduce is named: a reader asks about
    it first.
    """
    conclusion = conclude_pairs(compared.pair for compared in (*judged, *detail))
    if conclusion.decider is None or conclusion.verdict in ALARMS:
        return conclusion
    unusable = [compared for compared in judged if compared.unusable]
    smaller = [compared.pair for compared in judged if compared.became == "smaller"]
    if unusable or not smaller:
        widest = max(unusable or judged, key=lambda compared: compared.in_control).pair
        return Conclusion(Verdict.INCONCLUSIVE, widest.reason or Reason.PRECISION, widest)
    # A class may shrink as a whole while one pair of its groups grows; the correction over pairs
    # would hide it.
    loose = [compared for compared in judged if compared.loose]
    loose = loose or [compared for compared in detail if compared.grown]
    if loose:
        widest = max(loose, key=lambda compared: compared.in_control).pair
        return Conclusion(Verdict.INCONCLUSIVE, Reason.PRECISION, widest)
    surest = min(smaller, key=lambda pair: (pair.corrected_p_value, -abs(pair.effect)))
    return Conclusion(Verdict.PASS, None, surest)
