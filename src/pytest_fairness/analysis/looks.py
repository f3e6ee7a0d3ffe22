"""Looks: the same assertion judged at growing samples, at levels that are fixed before the first
call.

A look judges all data so far. Red takes the assertion's two-sided level of that look, green the
one-sided level of a pair; what a look finds green stays green, and an alarm outranks it. See
``docs/looks.md`` and ``docs/decisions/0204-looks.md``.

Standard library only: the controller of a session, which announces the looks, loads no numpy.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from pytest_fairness.analysis.explanations import explain
from pytest_fairness.design.stages import BASE, CLOSE, DRAW, base_of
from pytest_fairness.model import (
    ALARMS,
    JSON,
    Finding,
    PairResult,
    Reason,
    Verdict,
    deciding_pair,
    to_json,
)
from pytest_fairness.statistics.spending import nominal_level, nominal_levels
from pytest_fairness.words import dollars

FEWEST_GREEN = 10
"""No look at fewer names a group finds a pair green before the last."""
GREEN = 0.05
"""Budget of a pair for green although its true effect is at the margin."""
MOST_RED = 0.015
"""Budget of an assertion for red about a fair system, where the session leaves it as much."""
MANY_UNANSWERED = 0.20
LEAST_RATIO = 2 / 3
"""A PASS by four fifths needs the lower end of the ratio's interval to reach this: four fifths of
four fifths is .64."""
NOTHING_TO_REDUCE = "nothing to reduce"
"""Begins the note on a pair of an arm that had no disparity: what did not shrink is not settled."""
RED_OF_BUDGET = 1.26
"""A fair audit is red in up to so many times its budget: templates add a fifth, t at 10 names 5 %.
"""
EFFECT = "effect d"
RATIO = "impact ratio"
DIFFERENCE = "difference"
EARLY = "stopped early: the estimate is a little too large"
TABLE_OF_A_LOOK = "look_table"
"""Type of the record of a table that a later look's cannot be cut down to."""
NAMES = "names a group"
"""What looks count where nothing else is said."""
_HALVINGS = 20
#: What a pair says of the names that would decide it.
_NEEDED = re.compile(r"about ([\d,]+) names a group if")
_DOUBTS = (Reason.TEMPLATE, Reason.SIGNAL)
DROPPING = ("disparity",)
"""Analyses of which a group is asked no more once all its pairs are settled."""
#: A pair that an earlier look found green: class, metric and the two groups.
Settled = frozenset[tuple[str, str, str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Look *number* of *of*, at *names* a group: ``red`` is the two-sided level of the assertion,
    ``green`` the one-sided level of a pair, ``settled`` what earlier looks found green.
    """

    number: int
    of: int
    names: int
    red: float
    green: float
    settled: Settled = frozenset()

    @property
    def confidence(self) -> float:
        """Return the confidence of the intervals that this look reads."""
        return 1 - 2 * self.green

    @property
    def last(self) -> bool:
        """Return whether no look follows."""
        return self.number == self.of

    @property
    def early(self) -> bool:
        """Return whether the look is too small to find a pair green by saturation or by points."""
        return not self.last and self.names < BASE

    @property
    def tiny(self) -> bool:
        """Return whether the look is too small to find any pair green."""
        return not self.last and self.names < FEWEST_GREEN

    def after(self, finding: Finding) -> Settled:
        """Return what is settled once this look has come to *finding*: what it found green, and what
        was before and no template or signal puts in doubt.
        """
        doubtful = {key_of(pair) for pair in finding.pairs if pair.reason in _DOUBTS}
        green = {
            key_of(pair)
            for pair in finding.pairs
            if pair.verdict is Verdict.PASS and not pair.alarm_only and not _idle(pair)
        }
        return (self.settled | green) - doubtful

    def to_dict(self) -> dict[str, JSON]:
        """Return what a finding says of the look."""
        return {
            "number": self.number,
            "of": self.of,
            "names": self.names,
            "red": self.red,
            "green": self.green,
        }


def key_of(pair: PairResult) -> tuple[str, str, str, str]:
    """Return what tells *pair* from the others of its assertion."""
    return str(pair.statistics.get("by", "")), pair.metric, pair.group_1, pair.group_2


def _idle(pair: PairResult) -> bool:
    return any(note.startswith(NOTHING_TO_REDUCE) for note in pair.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookPlan:
    """The plan that is fixed before the first call: the looks, in names a group (``unit`` says of
    what), and the budget ``red``.
    """

    names: tuple[int, ...]
    red: float
    unit: str = NAMES

    @property
    def information(self) -> tuple[float, ...]:
        """Return the share of all data at each look."""
        return tuple(names / self.names[-1] for names in self.names)

    @property
    def levels(self) -> tuple[tuple[float, float], ...]:
        """Return the levels of each look, for red and for green."""
        red = nominal_levels(self.information, self.red, sides=2)
        green = nominal_levels(self.information, GREEN, sides=1)
        return tuple(zip(red, green, strict=True))

    def to_dict(self) -> dict[str, JSON]:
        """Return what the log keeps of the plan."""
        return {"names": list(self.names), "red": self.red, "unit": self.unit}

    def look(self, number: int, settled: Settled = frozenset()) -> Look:
        """Return look *number*, from 1."""
        red, green = self.levels[number - 1]
        names = self.names[number - 1]
        return Look(
            number=number, of=len(self.names), names=names, red=red, green=green, settled=settled
        )


def plan_from(record: Mapping[str, Any]) -> LookPlan:
    """Return the plan that :meth:`LookPlan.to_dict` wrote."""
    return LookPlan(
        names=tuple(map(int, record["names"])), red=float(record["red"]), unit=str(record["unit"])
    )


def budget(session_alpha: float, tests: int, place: int, alpha: float) -> float:
    """Return what the assertion in *place* (from 0) of a test may spend on red about a fair system.

    A = min(.015, session alpha / (1.9 m)) for the first of the *tests* that ask, A/2^k for the k-th
    assertion of a test from the second on; *alpha*, the assertion's own, where that is smaller. 1.9
    = 1.5 · 1.2 · 1.05: the assertions of a test, its templates, and t at 10 names.
    """
    whole = min(MOST_RED, session_alpha / (1.9 * max(tests, 1)))
    if place:
        whole /= 2 ** (place + 1)
    return min(whole, alpha)


def budget_in_run(looks: Mapping[str, Any], place: int, alpha: float) -> float:
    """Return the :func:`budget` of an assertion in a run whose manifest says *looks* of them."""
    return budget(looks["session_alpha"], looks["tests"], place, alpha)


def is_final(finding: Finding, look: Look) -> bool:
    """Return whether nothing more is asked after *look* came to *finding*."""
    if look.last or finding.verdict in ALARMS or finding.verdict is Verdict.PASS:
        return True
    if finding.reason is Reason.MIXED_MODELS or unanswered_share(finding) > MANY_UNANSWERED:
        return True
    reasons = {pair.reason for pair in finding.pairs}
    return look.names >= BASE and Reason.NO_ROOM in reasons


def unanswered_share(finding: Finding) -> float:
    """Return the largest share of a group's trials that have no outcome."""
    shares = [0.0]
    for group in finding.group_results:
        lost = group.unscored + group.undetermined
        if lost:
            shares.append(lost / (lost + group.n + group.refused))
    return max(shares)


class Looking:
    """The looks of one assertion by its *plan*: those ``made``, what they came to, and which groups
    are asked ``fewer`` names, because all their pairs are settled (*drops_groups*).
    """

    def __init__(self, plan: LookPlan, *, drops_groups: bool = False) -> None:
        self.plan = plan
        self.made: list[Look] = []
        self.ended = False
        self.fewer: dict[tuple[str, str], int] = {}
        self._drops_groups = drops_groups
        self._findings: list[Finding] = []
        self._trials: list[int | None] = []
        self._settled: Settled = frozenset()

    def next_look(self) -> Look:
        """Return the look to make."""
        return self.plan.look(len(self.made) + 1, self._settled)

    @property
    def following(self) -> str:
        """Return how large the next look is: ``40 names``; empty where nothing more is asked."""
        if self.ended:
            return ""
        return f"{self.next_look().names} {self.plan.unit}"

    def take(self, look: Look, finding: Finding, trials: int | None = None) -> None:
        """Take what *look* came to on so many *trials*: it ends the looks, or settles some of the
        pairs.
        """
        widened = bool(self._findings) and finding.kind is not self._findings[-1].kind
        self.made.append(look)
        self._findings.append(finding)
        self._trials.append(trials)
        self.ended = is_final(finding, look)
        self._settled = look.after(finding)
        if widened:  # what an earlier look found green was another outcome
            self._settled = frozenset()
            self.fewer = {}
        if self._drops_groups:
            for group in settled_groups(finding, self._settled):
                self.fewer.setdefault(group, look.names)

    def conclusion(self, stopped: str = "", cost: float = 0.0) -> Finding:
        """Return the finding of the last look, with what it says of the looks; *stopped* is what
        kept the next from being made, *cost* what the trials of the last look cost.
        """
        finding = self._findings[-1]
        concluded = with_looks(
            finding,
            self.plan,
            self.made,
            self._course(finding),
            stopped,
            trials=self._trials,
            base=self._base(),
        )
        further = continuation(finding, self.plan, cost)
        if stopped or not further:
            return concluded
        return replace(concluded, notes=(*concluded.notes, further))

    def _base(self) -> list[dict[str, JSON]]:
        """Return the figures of each pair at the look of the base design, which comparisons over
        time read; none where that is the last look made.
        """
        most = base_of(self.plan.names)
        places = [place for place, look in enumerate(self.made) if look.names <= most]
        place = max(places, default=0)
        if place == len(self.made) - 1:
            return []
        base: list[dict[str, JSON]] = []
        for pair in self._findings[place].pairs:
            figures: dict[str, JSON] = {
                "metric": pair.metric,
                **_figures(self.made[place], pair, by_margin=False),
            }
            if pair.alarm_only and "signals" in pair.statistics:
                figures["signals"] = pair.statistics["signals"]
            base.append(figures)
        return base

    def _course(self, finding: Finding) -> list[dict[str, JSON]]:
        """Return the effect of the deciding pair with its interval at each look."""
        decider = deciding_pair(finding.pairs)
        steps: list[dict[str, JSON]] = []
        if decider is None:
            return steps
        for look, earlier in zip(self.made, self._findings, strict=True):
            steps += [
                _step(look, pair) for pair in earlier.pairs if key_of(pair) == key_of(decider)
            ]
        return steps


def _step(look: Look, pair: PairResult) -> dict[str, JSON]:
    return {
        **_figures(look, pair),
        "corrected_p_value": red_p_value(pair),
        "red": look.red,
        "green": look.green,
        "verdict": pair.verdict.value,
    }


def _figures(look: Look, pair: PairResult, *, by_margin: bool = True) -> dict[str, JSON]:
    """Return the figure of *pair* that a verdict is decided by at *look*, with its interval;
    without *by_margin* the effect of what is held against a margin.
    """
    measure, value, low, high = _decided_by(pair)
    if measure == DIFFERENCE and not by_margin:
        measure, value, low, high = EFFECT, pair.effect, pair.effect_low, pair.effect_high
    return {
        "names": look.names,
        "group_1": pair.group_1,
        "group_2": pair.group_2,
        "measure": measure,
        "effect": to_json(value),
        "low": to_json(low),
        "high": to_json(high),
        "confidence": pair.confidence,
    }


def _decided_by(pair: PairResult) -> tuple[str, JSON, JSON, JSON]:
    """Return what decides on *pair*, its value and the ends of its interval: the impact ratio, the
    difference that a margin is given for, or else the effect.
    """
    statistics = pair.statistics
    if "impact_ratio" in statistics:
        ends = (
            statistics.get("clustered_impact_ratio_low"),
            statistics.get("clustered_impact_ratio_high"),
        )
        return RATIO, statistics["impact_ratio"], *ends
    if "margin" in statistics:
        return (
            DIFFERENCE,
            pair.difference,
            statistics.get("interval_low"),
            statistics.get("interval_high"),
        )
    return EFFECT, pair.effect, pair.effect_low, pair.effect_high


def red_p_value(pair: PairResult) -> float:
    """Return the corrected p-value of *pair* that is held against the level for red: of an
    equivalence that of a difference.
    """
    p = pair.statistics.get("difference_corrected_p_value")
    if isinstance(p, float):
        return p
    return pair.corrected_p_value


def trials_in(frame: Any) -> int | None:
    """Return how many trials *frame* holds, a choice once; None where it does not say."""
    if "key" in frame.columns:
        return int(frame["key"].nunique())
    return None


def cost_of(frame: Any) -> float:
    """Return what the trials of *frame* cost in dollars, as far as that is known."""
    if not {"key", "cost"} <= set(frame.columns):
        return 0.0
    return float(frame.drop_duplicates("key")["cost"].astype(float).sum())


def rows_at(look: Look, frame: Any, fewer: Mapping[tuple[str, str], int]) -> Any:
    """Return the rows of *frame*, a table of pandas, that *look* read: those of its names; of a
    group among *fewer*, of so many.
    """
    if DRAW not in frame.columns:
        return frame
    kept = frame[DRAW] <= look.names
    for (by, group), names in fewer.items():
        if by in frame.columns:
            kept &= (frame[by] != group) | (frame[DRAW] <= names)
    rows = frame[kept]
    rows.attrs = dict(frame.attrs)
    return rows


def look_record(
    look: Look, finding: Finding, frame: Any, *, place: int, following: str
) -> dict[str, JSON]:
    """Return the log's record of one look: its number and size, a digest of the cells read, p and
    the ends of the interval of each pair, and what was decided. *following* names the size of the
    next look; empty where nothing more is asked.
    """
    cells = ""
    if "key" in frame.columns:
        keys = "\n".join(sorted(map(str, frame["key"])))
        cells = hashlib.sha256(keys.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    pairs: list[JSON] = []
    for pair in finding.pairs:
        ends: list[JSON] = [pair.effect_low, pair.effect_high]
        groups: list[JSON] = [pair.group_1, pair.group_2]
        pairs.append([pair.metric, *groups, pair.corrected_p_value, *ends, pair.verdict.value])
    return {
        "type": "look",
        "place": place,
        **look.to_dict(),
        "cells": cells,
        "rows": len(frame),
        "pairs": pairs,
        "verdict": finding.verdict.value,
        "decision": "go on" if following else "stop",
        "next": following,
    }


def settled_groups(finding: Finding, settled: Settled) -> list[tuple[str, str]]:
    """Return the groups, with their class, all of whose pairs on the outcome are *settled*."""
    open_groups: set[tuple[str, str]] = set()
    groups: dict[tuple[str, str], None] = {}
    for pair in finding.pairs:
        if pair.alarm_only:
            continue
        by = str(pair.statistics.get("by", ""))
        sides = [(by, pair.group_1), (by, pair.group_2)]
        groups |= dict.fromkeys(sides)
        if key_of(pair) not in settled:
            open_groups.update(sides)
    return [group for group in groups if group not in open_groups]


# ---------------------------------------------------------------- what the finding says


def with_looks(
    finding: Finding,
    plan: LookPlan,
    made: Sequence[Look],
    course: Sequence[Mapping[str, JSON]],
    stopped: str = "",
    *,
    trials: Sequence[int | None] = (),
    base: Sequence[Mapping[str, JSON]] = (),
) -> Finding:
    """Return *finding* with the looks that its *plan* had and that were *made*, the *trials* read
    at each, the *course* of the deciding pair over them, the figures of all pairs at the *base*
    design, and what *stopped* the asking before it was decided.
    """
    last = made[-1]
    early = finding.verdict in ALARMS and not last.last
    looks: dict[str, JSON] = {
        "planned": list(plan.names),
        "unit": plan.unit,
        "made": [
            {**look.to_dict(), "trials": number} for look, number in zip_longest(made, trials)
        ],
        "red_budget": plan.red,
        "green_budget": GREEN,
        "smallest_budget": smallest_budget(finding, plan, len(made)),
        "way": list(map(dict, course)),
        "base": list(map(dict, base)),
        "stopped_early": early,
        "stopped": stopped,
    }
    family = {**finding.family, "false_alarm": RED_OF_BUDGET * plan.red}
    notes = finding.notes
    sentence = finding.sentence
    if stopped:
        notes = (*notes, stopped)
        sentence = _with_clause(
            sentence,
            f"{stopped.partition(':')[0]} at look {last.number} of {last.of} ({last.names} "
            f"{plan.unit})",
        )
    elif last.of > 1:
        decided = "decided"
        if finding.verdict is Verdict.INCONCLUSIVE:
            decided = "open"
        sentence = _with_clause(
            sentence,
            f"{decided} at look {last.number} of {last.of} ({last.names} {plan.unit})",
        )
    if early:
        notes = (*notes, EARLY)
    changed = replace(
        finding,
        sentence=sentence,
        notes=notes,
        family=family,
        details={**finding.details, "looks": looks},
    )
    return replace(changed, explanation=explain(changed))


def continuation(finding: Finding, plan: LookPlan, cost: float) -> str:
    """Return which looks would have decided *finding*, open at the last look of its *plan* for want
    of names, and what they cost by the *cost* of its own; empty where nobody knows.
    """
    if finding.reason is not Reason.PRECISION or plan.unit != NAMES:
        return ""
    decider = deciding_pair(finding.pairs)
    if decider is None:
        return ""
    needed = _NEEDED.match(decider.needs or "")
    if needed is None:
        return ""
    names = int(needed[1].replace(",", ""))
    looks = list(plan.names)
    while 2 * looks[-1] < names:
        looks.append(2 * looks[-1])
    declared = (*(look for look in looks if look <= CLOSE * names), names)
    price = ""
    if cost:
        price = f", which cost about {dollars(cost * names / plan.names[-1])} in all"
    return (
        f"looks to {names:,} names a group would have decided it, if the difference stays{price}; "
        "what a finished run asked can be continued only as a new, declared design: "
        f"names={declared}"
    )


def _with_clause(sentence: str, clause: str) -> str:
    return f"{sentence.removesuffix('.')}; {clause}."


def smallest_budget(finding: Finding, plan: LookPlan, made: int) -> float | None:
    """Return the smallest budget for red at which *finding*, of so many looks *made*, would have
    been red at its last look; None where no p-value is known, or none is small enough.

    Templates by themselves, which have a fifth of the level, are not part of it.
    """
    p_values = [red_p_value(pair) for pair in finding.pairs if pair.verdict in ALARMS]
    if not p_values or finding.verdict not in ALARMS:
        return None
    low, high = 0.0, plan.red
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if min(p_values) < nominal_level(plan.information, middle, made, sides=2):
            high = middle
        else:
            low = middle
    return high


def looks_of(finding: Finding) -> dict[str, Any] | None:
    """Return what *finding* says of its looks; None where it was judged once, as a table is."""
    looks: Any = finding.details.get("looks")
    if isinstance(looks, dict):
        return looks
    return None


def stopped_early(looks: Mapping[str, Any] | None) -> bool:
    """Return whether an alarm ended these *looks* before the last, at one within the base design: a
    figure of that design is a little too large. False without looks.
    """
    if not looks or not looks["stopped_early"]:
        return False
    return bool(looks["made"][-1]["names"] <= base_of(tuple(looks["planned"])))
