"""Looks: the same assertion judged at growing samples, at levels that are fixed before the first
call.

A look judges all data so far. Red takes the assertion's two-sided level of that look, green the
one-sided level of a pair; what a look finds green stays green, and an alarm outranks it. See
``docs/looks.md`` and ``docs/decisions/0204-looks.md``.

Standard library only: the controller of a session, which announces the looks, loads no numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_fairness.design.stages import BASE
from pytest_fairness.model import ALARMS, JSON, Finding, PairResult, Reason, Verdict
from pytest_fairness.statistics.spending import nominal_levels

FEWEST_GREEN = 10
"""No look at fewer names a group finds a pair green before the last."""
GREEN = 0.05
"""Budget of a pair for green although its true effect is at the margin."""
MOST_RED = 0.015
"""Budget of an assertion for red about a fair system, where the session leaves it as much."""
MANY_UNANSWERED = 0.20
NOTHING_TO_REDUCE = "nothing to reduce"
"""Begins the note on a pair of an arm that had no disparity: what did not shrink is not settled."""
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
        """Return what is settled once this look has come to *finding*."""
        green = {
            key_of(pair)
            for pair in finding.pairs
            if pair.verdict is Verdict.PASS and not pair.alarm_only and not _idle(pair)
        }
        return self.settled | green

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
    """What is fixed before the first call: the looks, in names a group, and the budget ``red``."""

    names: tuple[int, ...]
    red: float

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

    def look(self, number: int, settled: Settled = frozenset()) -> Look:
        """Return look *number*, from 1."""
        red, green = self.levels[number - 1]
        names = self.names[number - 1]
        return Look(
            number=number, of=len(self.names), names=names, red=red, green=green, settled=settled
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


# ---------------------------------------------------------------- what the finding says


def with_looks(
    finding: Finding, plan: LookPlan, made: Sequence[Look], way: Sequence[JSON]
) -> Finding:
    """Return *finding* with the looks that its *plan* had and that were *made*, and the *way* of
    the deciding pair over them.
    """
    last = made[-1]
    looks: dict[str, JSON] = {
        "planned": list(plan.names),
        "made": [look.to_dict() for look in made],
        "red_budget": plan.red,
        "green_budget": GREEN,
        "way": list(way),
        "stopped_early": finding.verdict in ALARMS and not last.last,
    }
    notes = finding.notes
    if looks["stopped_early"]:
        notes = (*notes, "stopped early: the estimate is a little too large")
    words = f"decided at look {last.number} of {last.of} ({last.names} names a group)"
    if finding.verdict is Verdict.INCONCLUSIVE:
        words = f"open after look {last.number} of {last.of} ({last.names} names a group)"
    return replace(
        finding,
        sentence=f"{finding.sentence.removesuffix('.')}; {words}.",
        notes=notes,
        details={**finding.details, "looks": looks},
    )


def looks_of(finding: Finding) -> dict[str, Any] | None:
    """Return what *finding* says of its looks; None where it was judged once, as a table is."""
    looks: Any = finding.details.get("looks")
    if isinstance(looks, dict):
        return looks
    return None
