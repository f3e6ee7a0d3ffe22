"""Two endpoints, or two runs, on the same cells: on which is the disparity between two groups
smaller?

The contrast is that of two arms (:mod:`.arm_contrast`), but neither side is meant to win: both are
judged by one rule, and turning them round turns the answer. See
``docs/decisions/0122-which-of-two-is-fairer.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.arm_trials import ArmTrials, choice_trials, score_trials
from pytest_fairness.analysis.favourable import read_decisions
from pytest_fairness.analysis.looks import EARLY
from pytest_fairness.analysis.policy import (
    MARGIN,
    MAX_RAGGED,
    MAX_UNSCORED,
    MINIMUM_N,
    TRIVIAL,
    Rule,
    until_significant,
)
from pytest_fairness.analysis.reading import Reading, as_columns, intersections, read
from pytest_fairness.analysis.sentences import RATES, amount
from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, OutcomeKind, Reason, to_json
from pytest_fairness.statistics.arrays import Coded, Ints, flags, means_of
from pytest_fairness.statistics.choices import block_columns
from pytest_fairness.statistics.clusters import one_sample_t
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.gaps import ArmContrast
from pytest_fairness.words import enumerated, led, p_equals, percent, points

if TYPE_CHECKING:
    import pandas as pd

#: What became of a disparity from the first side to the second.
SMALLER, LARGER, TURNED, ALIKE, OPEN = "smaller", "larger", "turned", "alike", "open"
#: The analyses whose disparity two sides can be compared on.
COMPARABLE = ("disparity", "equivalence", "four_fifths", "preference")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCells:
    """One comparison that both sides made, on the trials they share: *analysis* by its *arguments*.

    ``frame`` has the rows of the first side and then, in the same order, their counterparts of the
    second; ``outcome`` is that of all rows (:class:`~pytest_fairness.scorers.outcome.Outcome`),
    None for choices. ``early`` are the sides on which an alarm ended the asking before its plan did.
    """

    sides: tuple[str, str]
    test: str
    analysis: str
    arguments: Mapping[str, Any]
    frame: pd.DataFrame
    outcome: Any = None
    early: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SideChange:
    """The disparity between two groups on two *sides*, and its change from the first to the second.

    ``before`` and ``after`` are ``group_1 − group_2`` in the outcome's own unit (rates as shares),
    turned so that the larger of them is positive; ``change`` is their difference with its 90 %
    interval ``low`` to ``high`` and its 95 % interval, ``effect`` the change in SD within group and
    side. ``became`` is what became of the disparity; ``p_value`` is that neither disparity is the
    larger (``turned``: that there is no change), corrected over all that was compared.
    ``size_change`` is that of the size of the gap, whichever group is ahead (|after| − |before|),
    with what the 90 % intervals of the change and of the total leave open, ``size_low`` to
    ``size_high``. ``mean_before`` and ``mean_after`` are the mean outcomes over all groups,
    ``mean_low`` to ``mean_high`` the 95 % interval of their change; it bears on no verdict.
    ``units`` (of the smaller group) are what the intervals generalise over. ``early`` are the sides
    on which an alarm ended the asking early, so that the gap there is a little too large.
    """

    sides: tuple[str, str]
    test: str
    outcome: str
    kind: OutcomeKind
    unit: str
    by: str
    group_1: str
    group_2: str
    n: int
    became: str
    reason: Reason | None = None
    needs: str | None = None
    before: float | None = None
    after: float | None = None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    low_95: float | None = None
    high_95: float | None = None
    size_change: float | None = None
    size_low: float | None = None
    size_high: float | None = None
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None
    p_value: float | None = None
    corrected_p_value: float | None = None
    units: int = 0
    unit_of_evidence: str = ""
    mean_before: float | None = None
    mean_after: float | None = None
    mean_low: float | None = None
    mean_high: float | None = None
    early: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def fairer(self) -> str | None:
        """The side with the smaller disparity, where that is settled."""
        return {SMALLER: self.sides[1], LARGER: self.sides[0]}.get(self.became)

    @property
    def verdict(self) -> str:
        """In a word or two: who is fairer, ``alike``, ``turned round``, or ``not settled``."""
        if self.fairer is not None:
            return f"{self.fairer} is fairer"
        return {ALIKE: "alike", TURNED: "turned round"}.get(self.became, "not settled")

    @property
    def is_by_size(self) -> bool:
        """Return whether it is open which gap is larger although they differ beyond chance."""
        if self.became != OPEN or self.low is None or self.high is None:
            return False
        return self.low > 0 or self.high < 0

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Return the 90 % interval that decides: of the change, or, where only the size is open, of
        the size.
        """
        if self.is_by_size:
            return self.size_low, self.size_high
        return self.low, self.high

    @property
    def sentence(self) -> str:
        """Return who is fairer on what, by how much, how sure."""
        on = f"on {self.outcome} by {self.by}"
        two = f"{self.group_1} and {self.group_2}"
        if self.change is None:
            why = led(": it takes ", self.needs)
            return f"INCONCLUSIVE({self.reason}): {two} cannot be compared {on}{why}."
        if self.unit:
            unit = f" {self.unit}"
        elif self.kind in RATES:
            unit = " points"
        else:
            unit = ""
        gap = (
            f"{self.group_1}–{self.group_2} gap {self.amount(self.before)} → "
            f"{self.amount(self.after)}{unit}"
        )
        change, low, high = (
            self.amount(value, signed=True) for value in (self.change, self.low, self.high)
        )
        sure = (
            f"change {change}{unit} (90 % {low} to {high}), corrected "
            f"{p_equals(self.corrected_p_value or 0.0)}"
        )
        if self.is_by_size:
            size, low, high = (
                self.amount(value, signed=True)
                for value in (self.size_change, self.size_low, self.size_high)
            )
            sure += f"; they differ beyond chance, but which is larger is open: size {size}{unit}"
            sure += f" (90 % {low} to {high})"
        sure += f", {self.units} {self.unit_of_evidence}"
        if self.mean_before is not None:
            sure += (
                f"; mean {amount(self.mean_before, self.kind)} → "
                f"{amount(self.mean_after, self.kind)}"
            )
        first, second = self.sides
        other = second
        if self.fairer == second:
            other = first
        heads = {
            ALIKE: f"{first} and {second} are alike {on}, no change of half an SD or more",
            TURNED: f"{first} and {second} disadvantage different groups {on}, neither is shown to be fairer",
            OPEN: f"INCONCLUSIVE({self.reason}): which of {first} and {second} is fairer {on} is not settled",
        }
        head = heads.get(self.became, f"{self.fairer} is fairer than {other} {on}")
        sure += led("; it takes ", self.needs)
        if self.early:
            sure += f"; on {enumerated(self.early)} {EARLY}"
        return f"{head}: {gap}, {sure}."

    def amount(self, value: float | None, *, signed: bool = False) -> str:
        """A gap or a change in the outcome's own unit, which is not named; of rates, percentage
        points.
        """
        if value is None:
            return "–"
        value += 0.0  # a zero has no sign
        if self.kind in RATES:
            text = points(value, plus=False)
        else:
            text = amount(value, self.kind)
        if signed and value > 0:
            return f"+{text}"
        return text

    def to_dict(self) -> dict[str, JSON]:
        """The change as plain JSON, with ``fairer``, ``verdict`` and ``sentence``."""
        data = to_json(self)
        assert isinstance(data, dict)  # noqa: S101 - a dataclass is a dict; for the type checker
        return {"verdict": self.verdict, "fairer": self.fairer, "sentence": self.sentence, **data}


def changes_of(
    contrasts: Sequence[SideContrast], *, alpha: float = 0.05, correction: str = "holm"
) -> list[SideChange]:
    """The change of each disparity from the first side to the second; all that is compared is one
    family.

    ``smaller`` and ``larger`` (which side is fairer) take a change of .2 SD or more and a disparity
    that is smaller in size, both beyond chance after the *correction*. ``turned``: the change is,
    and each side puts another group ahead. ``alike``: the 90 % interval of the change lies inside
    ±.5 SD. Else it is ``open``, also with fewer trials a group than a verdict takes (30, of yes/no
    50), and where trials without an outcome, set to either extreme, would turn the answer.
    """
    family = _Family([_p_value(contrast.measured) for contrast in contrasts], alpha, correction)
    return [_change(contrast, at, family) for at, contrast in enumerate(contrasts)]


# ---------------------------------------------------------------- what is compared


@dataclass(frozen=True, slots=True, kw_only=True)
class SideContrast:
    """Two groups of *data*, contrasted: None where the sides share too little."""

    cells: SharedCells
    data: ArmTrials
    by: str
    pair: tuple[int, int]
    measured: ArmContrast | None


def contrasts_of(cells: SharedCells) -> list[SideContrast]:
    """Each two groups of each class of *cells*, on the outcome and, where there are any, on
    refusals.

    Raises UsageError for an outcome that has no disparity between two groups (categories),
    FrameError for a table of the wrong shape.
    """
    half = len(cells.frame) // 2
    arguments = cells.arguments
    frame = cells.frame
    arms = Coded(
        np.repeat([1, 0], half), cells.sides[::-1]
    )  # as of an experiment: treated, control
    # Both sides repeat each other's cells: an arm of its own keeps them from looking like
    # duplicates.
    sides = np.repeat(["first ", "second "], half)
    if "arm" in frame:
        sides = sides + frame["arm"].map(str)
    frame = frame.assign(arm=sides)
    cluster = arguments.get("cluster", "name")
    blocks = block_columns(frame, arguments.get("block", "template"))
    if cells.analysis == "preference":
        columns = {name: arguments[name] for name in ("first", "second", "chosen", "neither")}
        two = cluster
        if isinstance(cluster, list):
            two = tuple(cluster)
        trials = choice_trials(frame, arms, columns=columns, cluster=two, blocks=blocks)
        return _pairs(cells, trials, arguments["by"])
    contrasts: list[SideContrast] = []
    for table, reading in _read(cells, frame):
        for chosen in intersections(as_columns(arguments["by"])):
            trials = score_trials(
                table, arms, reading=reading, by=chosen, cluster=cluster, blocks=blocks
            )
            contrasts += _pairs(cells, trials, " × ".join(chosen))
    return contrasts


def _read(cells: SharedCells, frame: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, Reading]]:
    """The outcome as the analysis takes it; and refusals, where there are any beside it. Raises
    UsageError.
    """
    outcome = cells.outcome
    arguments = cells.arguments
    if cells.analysis == "four_fifths":
        decisions = read_decisions(frame, outcome, arguments["favourable"], None)
        refused = flags(frame, "refused") & ~flags(frame, "undetermined")
        # Who is refused gets no favourable decision.
        values = np.where(refused, 0.0, np.where(decisions.present, decisions.yes, np.nan))
        reading = Reading.of_decisions(decisions.name, values)
        yield frame.drop(columns="refused", errors="ignore"), reading
        return
    reading = read(frame, outcome, arguments.get("kind"), arguments.get("lower_is_worse"), None)
    if reading.values.kind is OutcomeKind.CATEGORICAL:
        raise UsageError(
            f"{reading.name} is categorical: a disparity that two sides share takes numbers or "
            "yes/no"
        )
    yield frame, reading
    if reading.values.kind is not OutcomeKind.REFUSAL and flags(frame, "refused").any():
        yield frame, read(frame, "refused", None, None)


def _pairs(cells: SharedCells, data: ArmTrials, by: str) -> list[SideContrast]:
    contrasts = []
    for pair in data.met:
        measured = data.contrast((0, 1), *pair)
        contrasts.append(SideContrast(cells=cells, data=data, by=by, pair=pair, measured=measured))
    return contrasts


# ---------------------------------------------------------------- what became of it


@dataclass(frozen=True, slots=True)
class _Family:
    """The p-values of all contrasts, corrected together."""

    p_values: Sequence[float]
    alpha: float
    correction: str

    def corrected(self, at: int, p: float) -> float:
        """*p* in the place of the p-value *at*."""
        changed = list(self.p_values)
        changed[at] = p
        return float(correct(changed, self.correction)[at])


def _p_value(contrast: ArmContrast | None) -> float:
    """The p-value for neither disparity being the larger. |a| < |b| where b − a and a + b have the
    same sign: both have to be shown, each at the level (an intersection-union test; Berger 1982).
    """
    if contrast is None:
        return 1.0
    return max(contrast.change.p, contrast.total.p)


def _became(contrast: ArmContrast, family: _Family, at: int) -> str:
    change, low, high = map(contrast.on_sd, (contrast.change.mean, *contrast.change.interval(0.9)))
    if abs(change) >= TRIVIAL and family.corrected(at, _p_value(contrast)) < family.alpha:
        if change * contrast.total.mean < 0:
            return SMALLER
        return LARGER
    apart = all(
        arm.interval(0.9, side)[0] > 0
        for arm, side in ((contrast.control, -change), (contrast.treated, change))
    )
    if apart and family.corrected(at, contrast.change.p) < family.alpha:
        return TURNED
    if low > -MARGIN and high < MARGIN:
        return ALIKE
    return OPEN


def _change(contrast: SideContrast, at: int, family: _Family) -> SideChange:
    data = contrast.data
    measured = contrast.measured
    a, b = contrast.pair
    kind = data.reading.values.kind
    cells = np.array(data.cells((0, 1), a, b))  # side and group × rows
    used = (cells & data.used).sum(axis=1)
    total = cells.sum(axis=1)
    facts: dict[str, Any] = {
        "sides": contrast.cells.sides,
        "early": contrast.cells.early,
        "test": contrast.cells.test,
        "outcome": data.reading.name,
        "kind": kind,
        "unit": data.reading.unit,
        "by": contrast.by,
        "group_1": data.first.labels[a],
        "group_2": data.first.labels[b],
        "n": int(used.min()),
        **_means(data),
    }
    if measured is None:
        shared = "at least two names or blocks that stand on both sides, with both groups"
        return SideChange(became=OPEN, reason=Reason.N, needs=shared, **facts)
    change = measured.change
    of_names = measured.unit == "cluster"
    if of_names:
        units = min(data.group(group, (0, 1)).clusters for group in (a, b))
    else:
        units = change.units
    if of_names and data.second is None:
        noun = f"{data.noun} a group"
    elif of_names:
        noun = data.noun
    else:
        noun = "blocks"
    became = _became(measured, family, at)
    left_open = _left_open(contrast, at, family, became, used, total)
    reason: Reason | None = None
    needs = None
    if left_open is not None:
        became = OPEN
        reason, needs = left_open
    elif became == OPEN:
        reason = Reason.PRECISION
        needs = _needs(measured, family, units, noun)
    p_value = _p_value(measured)
    if became == TURNED:
        p_value = change.p
    turn = 1.0
    if max(measured.control.mean, measured.treated.mean, key=abs) < 0:
        turn = -1.0
        facts |= {"group_1": data.first.labels[b], "group_2": data.first.labels[a]}
    low, high = change.interval(0.9, turn)
    low_95, high_95 = change.interval(0.95, turn)
    notes: tuple[str, ...] = ()
    if data.one_cluster:
        notes = ("one name a group: this is about those names",)
    size_low, size_high = _size_interval(measured)
    return SideChange(
        became=became,
        reason=reason,
        needs=needs,
        before=turn * measured.control.mean,
        after=turn * measured.treated.mean,
        change=turn * change.mean,
        low=low,
        high=high,
        low_95=low_95,
        size_change=abs(measured.treated.mean) - abs(measured.control.mean),
        size_low=size_low,
        size_high=size_high,
        high_95=high_95,
        effect=turn * measured.on_sd(change.mean),
        effect_low=measured.on_sd(low),
        effect_high=measured.on_sd(high),
        p_value=p_value,
        corrected_p_value=family.corrected(at, p_value),
        units=units,
        unit_of_evidence=noun,
        notes=notes,
        **facts,
    )


def _left_open(
    contrast: SideContrast, at: int, family: _Family, became: str, used: Ints, total: Ints
) -> tuple[Reason, str] | None:
    """Return why the trials do not allow an answer, and what would; None where they do.

    *used* and *total* count the trials of each group with an outcome, and all.
    """
    measured = contrast.measured
    minimum = MINIMUM_N[contrast.data.reading.values.kind]
    if measured is not None and measured.lost > MAX_RAGGED:
        lacking = percent(measured.lost, 0)
        return (
            Reason.RAGGED,
            f"every group in every block: {lacking} of the rows are in blocks that lack one",
        )
    if used.min() < minimum:
        return Reason.N, f"at least {minimum} shared trials a group (now {used.min()})"
    lost = float(np.max((total - used) / np.maximum(total, 1)))
    if became == OPEN or not lost:
        return None
    if all(_imputed(contrast, at, family, raised) == became for raised in (True, False)):
        return None
    reason = Reason.PRECISION
    if lost > MAX_UNSCORED:
        reason = Reason.UNSCORED
    return (
        reason,
        f"an outcome for more trials: {percent(lost, 0)} of a group's have none, which could turn "
        "the answer",
    )


def _size_interval(contrast: ArmContrast) -> tuple[float, float]:
    """Return the range of |b| − |a| over the 90 % intervals of the change b − a and the total b +
    a.

    |b| − |a| is the smaller of |b − a| and |b + a|, positive where both have the same sign. It
    rises or falls with each of them in every quadrant, so that its extremes lie at corners.
    """
    sizes = []
    for change, total in product(contrast.change.interval(0.9), contrast.total.interval(0.9)):
        sizes.append(math.copysign(min(abs(change), abs(total)), change * total))
    return min(sizes), max(sizes)


def _imputed(contrast: SideContrast, at: int, family: _Family, raised: bool) -> str:
    """Return what became of the disparity with the outcomes that are missing at the extremes that
    raise the change, or lower it.
    """
    measured = contrast.data.contrast((0, 1), *contrast.pair, raised)
    if measured is None:
        return OPEN
    return _became(measured, family, at)


def _needs(contrast: ArmContrast, family: _Family, units: int, noun: str) -> str | None:
    """The units that would settle it, if the change stays as it is: beyond chance, or inside the
    margin.
    """
    change = contrast.change
    effect = abs(contrast.on_sd(contrast.change.mean))
    rule = Rule(alpha=family.alpha, family_size=len(family.p_values))
    sizes = []
    if effect >= TRIVIAL:
        sizes += until_significant(units, _p_value(contrast), rule)
    if effect < MARGIN:
        half = contrast.on_sd((change.interval(0.9)[1] - change.interval(0.9)[0]) / 2)
        sizes.append(units * (half / (MARGIN - effect)) ** 2)
    enough = [math.ceil(size) for size in sizes if size < 1e6]
    if enough:
        return f"about {max(min(enough), units + 1):,} {noun} if the change stays as it is"
    return None


def _means(data: ArmTrials) -> dict[str, float]:
    """The mean outcome of both sides over the trials that have one on both, each cluster counted
    alike, and the 95 % interval of its change, with the cluster as the unit; none for choices.
    """
    if data.second is not None:
        return {}
    half = data.first.codes.size // 2
    both = data.used[:half] & data.used[half:]
    if not both.any():
        return {}
    values = data.reading.values.values
    if data.clusters:
        cluster = data.clusters[0][:half][both]
    else:
        cluster = np.arange(int(both.sum()))
    codes = np.unique(cluster, return_inverse=True)[1]
    before = means_of(values[:half][both], codes)[0]
    after = means_of(values[half:][both], codes)[0]
    low, high = one_sample_t(after - before).interval(0.95)
    return {
        "mean_before": float(before.mean()),
        "mean_after": float(after.mean()),
        "mean_low": float(low),
        "mean_high": float(high),
    }
