"""Does one way of running the cells (scrubbed, say) show less disparity than another?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pytest_fairness.analysis.arm_data import ArmData, Missing, arms_of_choices, arms_of_scores, pooled_choices
from pytest_fairness.analysis.assembling import finding_of
from pytest_fairness.analysis.judging_choices import check_options
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import ALARMS, JSON, Finding, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arms import ArmContrast, Estimate
from pytest_fairness.statistics.choices import block_columns, read_choices
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.frames import code, require_frame
from pytest_fairness.statistics.one_sample import t_quantile
from pytest_fairness.verdict import (
    MARGIN,
    MAX_RAGGED,
    MAX_UNSCORED,
    MINIMUM_N,
    TRIVIAL,
    Decision,
    deciding_pair,
    milder,
    verdict_by,
)
from pytest_fairness.wording import amount, effect_words, p_words, percent

if TYPE_CHECKING:
    import pandas as pd


_RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)
_IDLE = "nothing to reduce: in both arms the whole 90 % interval lies inside ±.2 SD"


@dataclass(frozen=True, slots=True)
class _Tested:
    """Two groups contrasted; ``n`` is the fewest trials of either in either arm."""

    a: int
    b: int
    contrast: ArmContrast | None
    corrected: float
    n: int


@dataclass(frozen=True, slots=True)
class _Judged:
    """A pair with what became of its disparity, and whether it can have grown by more than the margin.

    ``grown``: by itself, without the correction over pairs, it grew beyond chance.
    """

    pair: PairResult
    became: Literal["smaller", "larger", "idle", "open"]
    bounded: bool = False
    grown: bool = False
    idle_control: bool = False


def analyze_arms(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any] | None = None,
    *,
    treated: str,
    control: str,
    by: str = "group",
    classes: Mapping[str, str] | None = None,
    group: str = "group",
    arm: str = "arm",
    placebo: str | None = None,
    cluster: str | tuple[str, str] | None = "name",
    block: str | Sequence[str] | None = "template",
    kind: str = "auto",
    first: str = "first",
    second: str = "second",
    chosen: str = "chosen",
    neither: str = "neither",
    alpha: float = 0.05,
    correction: str = "bonferroni",
    scorers: Mapping[str, Any] | None = None,
) -> Finding:
    """Compare the disparity between groups in arm *treated* with that in arm *control*, fixed beforehand.

    With an *outcome* (numbers or yes/no) the disparity of two groups is the difference of their means;
    without one the frame holds pairwise choices (columns ``first``, ``second``, ``chosen``; see
    ``analyze_preference``) and it is the win rate less one half. Its change, treated − control, is tested
    by a paired t over what both arms share: clusters (names, personas, name pairs) where there are at least
    two, blocks otherwise.

    ``classes`` says of each group which class of *by* it is of (``by="gender", classes={"white_female": "female", …}``;
    with an outcome the groups stand in column *group*). Then the classes are contrasted, and the pairs of groups that
    differ in it are their detail: they raise the alarm, and never have to pass.

    Per pair: PASS where the disparity shrinks significantly and what is left is smaller, or where there is nothing to
    reduce (the 90 % intervals of both arms inside ±.2 SD); FAIL where it grows or turns round significantly, by .2 SD
    or more; INCONCLUSIVE otherwise. The finding is about *by*: FAIL where any pair grows; PASS where at least one
    shrinks, no other can have grown by .5 SD (90 % intervals), and no pair of groups grows significantly by itself,
    uncorrected; INCONCLUSIVE otherwise, also where there is nothing to reduce. Trials without an outcome are set to
    the extremes that speak against the verdict.

    ``placebo`` names an arm whose change should do nothing: every other arm is contrasted with it (Holm),
    and the finding says which of them differ.

    Raises FrameError for a missing column or arm or a table of the wrong shape, UsageError for an argument
    out of range.
    """
    check_options(alpha, correction)
    frame = require_frame(frame)
    arms = code(frame, arm, "arm")
    for name in (treated, control, *([placebo] if placebo is not None else [])):
        if name not in arms.labels:
            raise FrameError(f"column {arm!r}: there is no arm {name!r}; it has {', '.join(arms.labels)}")
    if treated == control:
        raise UsageError(f"treated and control are both {treated!r}: a contrast needs two arms")
    blocks = block_columns(frame, block)
    # Every arm repeats the others' cells: a column of this name keeps them from looking like duplicates.
    labelled = frame.assign(arm=frame[arm])
    if outcome is None:
        choices = read_choices(
            labelled, first=first, second=second, chosen=chosen, neither=neither, cluster=cluster, block=blocks
        )
        whole = arms_of_choices(arms, choices)
        data = whole if classes is None else arms_of_choices(*pooled_choices(arms, choices, classes))
    else:
        if isinstance(cluster, tuple):
            raise UsageError("cluster=(…, …) is for pairwise choices; an outcome has one cluster a row")
        column = by if classes is None else group
        whole, data = arms_of_scores(labelled, arms, outcome, column, cluster, blocks, kind, scorers, classes)
    rule = _Rule(treated, control, arms.labels.index(treated), arms.labels.index(control), alpha, correction)
    judged = rule.judge(data)
    detail = [] if classes is None else rule.judge(_differing(whole, classes), detail=True)
    verdict, reason, decider = _conclude(judged, detail)
    details: dict[str, JSON] = {"treated": treated, "control": control, "placebo": placebo}
    details["disparity"] = {name: _disparities([*judged, *detail], name, rule) for name in (control, treated)}
    notes: tuple[str, ...] = ()
    if placebo is not None:
        details["against_placebo"], notes = _against(data, arms.labels.index(placebo), treated, alpha)
    return finding_of(
        frame,
        assertion="arm_reduces_disparity",
        verdict=verdict,
        reason=reason,
        sentence=_sentence(verdict, decider, judged, data, rule) + _others(judged, detail, by),
        by=by,
        groups=tuple(data.group(at, (rule.treated_at, rule.control_at)) for at in range(len(data.labels))),
        decider=decider,
        test_statistic="" if decider is None else f"t = {float(str(decider.statistics.get('t', 0.0))):.4f}",
        effect_size="" if decider is None else f"Δ/SD = {effect_words(decider.effect)}",
        notes=notes,
        pairs=[one.pair for one in (*judged, *detail)],
        outcome=data.outcome,
        kind=data.kind,
        unit=data.unit,
        cluster=cluster if isinstance(cluster, str) else None if cluster is None else " and ".join(cluster),
        block=" × ".join(blocks) or None,
        family={"size": len(judged), "method": correction, "alpha": alpha, "metrics": [data.outcome]},
        details=details,
    )


def _differing(data: ArmData, classes: Mapping[str, str]) -> ArmData:
    """Of the pairs of groups those that differ in their class."""
    met = tuple((a, b) for a, b in data.met if classes[data.labels[a]] != classes[data.labels[b]])
    return replace(data, met=met)


@dataclass(frozen=True, slots=True)
class _Rule:
    """The contrast, fixed beforehand, and how each of its pairs is judged."""

    treated: str
    control: str
    treated_at: int
    control_at: int
    alpha: float
    correction: str

    def judge(self, data: ArmData, *, detail: bool = False) -> list[_Judged]:
        """All pairs of *data* as one family; as a *detail* they only raise the alarm."""
        found = [self._contrast(data, a, b, "left out") for a, b in data.met]
        corrected = correct([1.0 if c is None else c.change.p for c in found], self.correction).tolist()
        return [
            self._judged(data, _Tested(a, b, c, q, self._fewest(data, a, b)), detail)
            for (a, b), c, q in zip(data.met, found, corrected, strict=True)
        ]

    def _contrast(self, data: ArmData, a: int, b: int, missing: Missing) -> ArmContrast | None:
        return data.contrast(self.treated_at, self.control_at, a, b, missing)

    def _fewest(self, data: ArmData, a: int, b: int) -> int:
        return min(data.count(self.treated_at, a, b), data.count(self.control_at, a, b))

    def _judged(self, data: ArmData, test: _Tested, detail: bool) -> _Judged:
        names = (data.labels[test.a], data.labels[test.b])
        contrast = test.contrast
        share = max(data.missing(at, test.a, test.b) for at in (self.treated_at, self.control_at))
        if contrast is None:
            unread = share > MAX_UNSCORED
            pair = PairResult(
                group_1=names[0],
                group_2=names[1],
                metric=data.outcome,
                verdict=Verdict.INCONCLUSIVE,
                reason=Reason.UNSCORED if unread else Reason.N,
                alarm_only=detail,
                needs=_lost(share).needs
                if unread
                else "at least two names or blocks that stand in both arms, with both groups",
                statistics={"n": test.n, "without_outcome": share},
            )
            return _Judged(pair, "open")
        decision, became = self._decide(data, test, contrast)
        if share:
            decision = self._with_missing(data, test, contrast, decision, share)
        pair = _result(data, test, contrast, decision, share, names, detail)
        settled = became if decision.verdict is not Verdict.INCONCLUSIVE else "open"
        usable = decision.reason is None or not decision.reason.unusable
        grown = usable and contrast.change.p < self.alpha and _larger(contrast) and not _small(contrast)
        return _Judged(pair, settled, _bounded(contrast), grown, _trivial(contrast.control, contrast.sd))

    def _decide(
        self, data: ArmData, test: _Tested, contrast: ArmContrast
    ) -> tuple[Decision, Literal["smaller", "larger", "idle", "open"]]:
        """First match; see :func:`analyze_arms`."""
        if contrast.lost > MAX_RAGGED:
            needs = f"the same cells in both arms: {percent(contrast.lost)} of the rows have no counterpart"
            return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.RAGGED, needs=needs), "open"
        significant = test.corrected < self.alpha
        larger = _larger(contrast)
        small = _small(contrast)
        minimum = MINIMUM_N[data.kind]
        if test.n < minimum:
            needs = f"at least {minimum} trials a group and arm (now {test.n})"
            if significant and larger and not small:
                return Decision(verdict=Verdict.FLAG, needs=needs), "larger"
            return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.N, needs=needs), "open"
        if significant and _smaller(contrast):
            return Decision(verdict=Verdict.PASS), "smaller"
        if all(_trivial(one, contrast.sd) for one in (contrast.control, contrast.treated)):
            return Decision(verdict=Verdict.PASS, notes=(_IDLE,)), "idle"
        if significant and larger and not small:
            if data.one_cluster:
                note = "a single name a group: the result is about those, so FAIL is capped at FLAG"
                return Decision(verdict=Verdict.FLAG, notes=(note,)), "larger"
            return Decision(verdict=Verdict.FAIL), "larger"
        notes: tuple[str, ...] = ()
        if significant and larger:
            notes = ("the disparity grows beyond chance, but by less than .2 SD",)
        elif significant:
            notes = ("the change is beyond chance, but not whether less is left than there was",)
        needs_more = _needs(contrast, self.alpha, test, data.noun)
        return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION, needs=needs_more, notes=notes), "open"

    def _with_missing(
        self, data: ArmData, test: _Tested, contrast: ArmContrast, decision: Decision, share: float
    ) -> Decision:
        """Bounds first, UNSCORED where they leave it open: as for a disparity."""
        over = share > MAX_UNSCORED
        lost = _lost(share)
        if decision.reason in (Reason.RAGGED, Reason.N):
            return decision
        if decision.verdict is Verdict.INCONCLUSIVE:
            return lost if over else decision
        if decision.verdict is Verdict.PASS:
            worst = [self._imputed(data, test, contrast, to) for to in ("raises the change", "lowers the change")]
            if all(one.verdict is Verdict.PASS for one in worst):
                return decision
            needs = "an outcome for the trials without one: at their worst they would turn the PASS"
            return lost if over else Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION, needs=needs)
        if not over:
            return decision
        least = self._imputed(
            data, test, contrast, "lowers the change" if contrast.change.mean > 0 else "raises the change"
        )
        return milder(decision, least) if least.verdict in ALARMS else lost

    def _imputed(self, data: ArmData, test: _Tested, contrast: ArmContrast, missing: Missing) -> Decision:
        found = self._contrast(data, test.a, test.b, missing)
        if found is None:
            return _lost(1.0)
        p = contrast.change.p
        factor = test.corrected / p if p > 0 else float(len(data.met))
        return self._decide(data, replace(test, corrected=min(1.0, found.change.p * factor)), found)[0]


def _lost(share: float) -> Decision:
    return Decision(
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.UNSCORED,
        needs=f"an outcome for more trials: {percent(share)} of an arm's have none, which could turn the verdict",
    )


def _result(
    data: ArmData,
    test: _Tested,
    contrast: ArmContrast,
    decision: Decision,
    share: float,
    names: tuple[str, str],
    detail: bool,
) -> PairResult:
    change = contrast.change
    effect, low, high = (_on_sd(value, contrast.sd) for value in (change.mean, *_interval(change)))
    shown = math.isfinite(high - low) and low < effect < high
    return PairResult(
        group_1=names[0],
        group_2=names[1],
        metric=data.outcome,
        verdict=decision.verdict,
        reason=decision.reason,
        alarm_only=detail,
        p_row=change.p,
        p_cluster=change.p if contrast.unit == "cluster" else None,
        p_value=change.p,
        corrected_p_value=test.corrected,
        effect=effect,
        effect_name="change / SD within groups",
        effect_low=low if shown else None,
        effect_high=high if shown else None,
        difference=change.mean,
        test=f"paired t over {contrast.unit}s of treated − control",
        scope="labels" if data.one_cluster else "names",
        needs=decision.needs,
        statistics={
            "n": test.n,
            "units": change.units,
            "unit": contrast.unit,
            "t": change.mean / change.error if change.error else 0.0,
            "df": change.df,
            "change_low": change.low,
            "change_high": change.high,
            "control": contrast.control.mean,
            "control_low": contrast.control.low,
            "control_high": contrast.control.high,
            "control_p_value": contrast.control.p,
            "treated": contrast.treated.mean,
            "treated_low": contrast.treated.low,
            "treated_high": contrast.treated.high,
            "treated_p_value": contrast.treated.p,
            "rows_lost_to_ragged_units": contrast.lost,
            "without_outcome": share,
        },
        notes=decision.notes,
    )


def _smaller(contrast: ArmContrast) -> bool:
    """Whether the disparity moved towards zero and what is left is smaller; the p-value of the change stands apart.

    A change beyond chance may also turn a disparity round. Where the treated arm lies beyond zero on the other side
    (90 % interval), that it is smaller in size has to be shown: the total of both arms keeps the control's sign.
    """
    side = math.copysign(1.0, contrast.control.mean)
    if contrast.change.mean * side >= 0 or abs(contrast.treated.mean) >= abs(contrast.control.mean):
        return False
    (_, left), (total, _) = (_facing(one, side) for one in (contrast.treated, contrast.total))
    return left >= 0 or total > 0


def _larger(contrast: ArmContrast) -> bool:
    """Whether the disparity grew or turned round as far: it is not smaller by estimate, and lies where the change led.

    What names do in both arms is no part of the change's error, but moves both estimates: hence the 90 % interval.
    """
    side = math.copysign(1.0, contrast.change.mean)
    return abs(contrast.treated.mean) >= abs(contrast.control.mean) and _facing(contrast.treated, side)[0] > 0


def _facing(estimate: Estimate, side: float) -> tuple[float, float]:
    """The 90 % interval, turned so that *side* points up."""
    low, high = _interval(estimate)
    return (low, high) if side > 0 else (-high, -low)


def _bounded(contrast: ArmContrast) -> bool:
    """Whether the disparity cannot have grown by the margin, neither on its own side nor on the other (90 %)."""
    side = math.copysign(1.0, contrast.control.mean)
    (_, own), (other, _) = (_facing(one, side) for one in (contrast.change, contrast.total))
    return max(_on_sd(own, contrast.sd), _on_sd(-other, contrast.sd)) < MARGIN


def _small(contrast: ArmContrast) -> bool:
    return abs(_on_sd(contrast.change.mean, contrast.sd)) < TRIVIAL


def _trivial(arm: Estimate, sd: float) -> bool:
    """Whether the whole 90 % interval of a disparity is trivial."""
    return max(abs(_on_sd(end, sd)) for end in _interval(arm)) < TRIVIAL


def _needs(contrast: ArmContrast, alpha: float, test: _Tested, noun: str) -> str | None:
    p = contrast.change.p
    if not 1e-15 < p < 1:
        return None
    normal = NormalDist()
    share = alpha * p / max(test.corrected, p)
    ratio = normal.inv_cdf(1 - share / 2) / normal.inv_cdf(1 - p / 2)
    units = contrast.change.units * ratio**2
    what = noun if contrast.unit == "cluster" else "blocks"
    return f"about {int(units) + 1:,} {what} if the change stays as it is" if ratio > 1 and units < 1e6 else None


def _interval(estimate: Estimate) -> tuple[float, float]:
    """The 90 % interval."""
    reach = t_quantile(0.95, estimate.df) * estimate.error if estimate.error else 0.0
    return estimate.mean - reach, estimate.mean + reach


def _on_sd(value: float, sd: float) -> float:
    if sd > 0:
        return value / sd
    return 0.0 if value == 0 else float(np.copysign(np.inf, value))


# ---------------------------------------------------------------- the finding


def _conclude(judged: Sequence[_Judged], detail: Sequence[_Judged]) -> tuple[Verdict, Reason | None, PairResult | None]:
    """The verdict on the class, and the pair that the sentence is about."""
    pairs = [one.pair for one in judged]
    decider = deciding_pair([*pairs, *(one.pair for one in detail)])
    if decider is None or decider.verdict in ALARMS:
        return *verdict_by(decider), decider
    unusable = [pair for pair in pairs if pair.reason is not None and pair.reason.unusable]
    smaller = [one.pair for one in judged if one.became == "smaller"]
    # Of several the pair with most to reduce: the one that a reader asks about first.
    if unusable or not smaller:
        decider = max(unusable or pairs, key=_in_control)
        return Verdict.INCONCLUSIVE, decider.reason or Reason.PRECISION, decider
    loose = [one.pair for one in judged if one.became == "open" and not one.bounded]
    # A class may shrink as a whole while one pair of its groups grows; the correction over pairs would hide it.
    if loose := loose or [one.pair for one in detail if one.grown]:
        return Verdict.INCONCLUSIVE, Reason.PRECISION, max(loose, key=_in_control)
    return Verdict.PASS, None, min(smaller, key=lambda pair: (pair.corrected_p_value, -abs(pair.effect)))


def _in_control(pair: PairResult) -> float:
    """The size of the disparity in the control arm; rounded, as the order of rows must not choose among equals."""
    return round(abs(float(str(pair.statistics.get("control", 0.0)))), 9)


def _disparities(judged: Sequence[_Judged], arm: str, rule: _Rule) -> dict[str, JSON]:
    which = "treated" if arm == rule.treated else "control"
    return {
        f"{one.pair.group_1} / {one.pair.group_2}": {
            "difference": one.pair.statistics[which],
            **{end: one.pair.statistics[f"{which}_{end}"] for end in ("low", "high", "p_value")},
        }
        for one in judged
        if which in one.pair.statistics
    }


def _others(judged: Sequence[_Judged], detail: Sequence[_Judged], by: str) -> str:
    """What became of all the pairs, where there are several."""
    told = [(judged, "groups" if by == "group" else by), (detail, "groups")]
    return "".join(f" Of {len(some)} pairs of {what}, {_became(some)}." for some, what in told if len(some) > 1)


def _became(some: Sequence[_Judged]) -> str:
    words = {"smaller": "shrink", "idle": "had nothing to reduce", "larger": "grow", "open": "not settled"}
    counts = {became: sum(one.became == became for one in some) for became in words}
    told = []
    for became, count in counts.items():
        if count:
            verb = {"smaller": "s", "larger": "s"}.get(became, "") if count == 1 else ""
            be = ("is " if count == 1 else "are ") if became == "open" else ""
            told.append(f"{count} {be}{words[became]}{verb}")
    return ", ".join(told)


def _against(data: ArmData, placebo: int, treated: str, alpha: float) -> tuple[dict[str, JSON], tuple[str, ...]]:
    others = [at for at in range(len(data.arms)) if at != placebo]
    found = [(at, a, b, data.contrast(at, placebo, a, b, "left out")) for at in others for a, b in data.met]
    corrected = correct([1.0 if c is None else c.change.p for *_, c in found], "holm").tolist()
    told: dict[str, JSON] = {}
    differ: dict[str, list[str]] = {data.arms[at]: [] for at in others}
    for (at, a, b, contrast), q in zip(found, corrected, strict=True):
        pair = f"{data.labels[a]} / {data.labels[b]}"
        table = told.setdefault(data.arms[at], {})
        if contrast is not None and isinstance(table, dict):
            table[pair] = {**_told(contrast.change), "corrected_p_value": q}
            if q < alpha:
                differ[data.arms[at]].append(pair)
    notes = []
    for name, where in differ.items():
        what = f"differs from the placebo arm ({', '.join(where)})" if where else "does not differ from the placebo arm"
        notes.append(f"{'the treated arm ' if name == treated else ''}{name} {what}")
    return told, tuple(notes)


def _told(estimate: Estimate) -> dict[str, JSON]:
    return {"difference": estimate.mean, "low": estimate.low, "high": estimate.high, "p_value": estimate.p}


def _sentence(verdict: Verdict, pair: PairResult | None, judged: Sequence[_Judged], data: ArmData, rule: _Rule) -> str:
    if pair is None:
        return f"{verdict}: there are no two groups to compare."
    s = pair.statistics
    if "control" not in s or (pair.reason is not None and pair.reason.unusable):
        return (
            f"{verdict}: {pair.group_1} and {pair.group_2} cannot be compared between {rule.treated} and "
            f"{rule.control}; it takes {pair.needs}."
        )
    gap, sure, turned = _gap(pair, data, rule)
    what = "preference" if data.choices else "difference"
    if verdict is Verdict.PASS:
        return f"PASS: the {what} shrinks: {gap} ({sure})."
    if verdict in ALARMS:
        how = "turns round" if turned else "grows"
        return f"{verdict}: the {what} {how} instead of shrinking: {gap} ({sure})."
    if all(one.idle_control for one in judged):
        where = "" if len(judged) == 1 else f" between any two of {len(data.labels)} groups"
        return f"INCONCLUSIVE: there is no {what} to reduce{where} in {rule.control}: {gap} ({sure})."
    needs = f"; it would take {pair.needs}" if pair.needs else ""
    if pair.alarm_only:
        return f"INCONCLUSIVE: by itself the {what} grows here, although it shrinks as a whole: {gap} ({sure})."
    if any(one.became == "smaller" for one in judged):
        return (
            f"INCONCLUSIVE: {gap}; it cannot be told that this {what} has not grown by more than half a standard "
            f"deviation, although others shrink ({sure}){needs}."
        )
    note = f"; {pair.notes[0]}" if pair.notes and pair.notes[0] != _IDLE else ", which may be chance"
    return f"INCONCLUSIVE: {gap}{note} ({sure}){needs}."


def _gap(pair: PairResult, data: ArmData, rule: _Rule) -> tuple[str, str, bool]:
    """The disparity in both arms and its change, from the side that the control arm prefers, and how sure; whether it
    turns round."""
    s = pair.statistics
    before, after, low, high = (float(str(s[name])) for name in ("control", "treated", "change_low", "change_high"))
    change, names = pair.difference or 0.0, (pair.group_1, pair.group_2)
    if before < 0:
        before, after, change, low, high = -before, -after, -change, -high, -low
        names = names[1], names[0]

    def signed(value: float) -> str:
        if data.kind not in _RATES:
            return ("+" if value > 0 else "") + amount(value, data.kind, data.unit)
        return f"{100 * value:+.1f} points".replace("-", "−")

    if data.choices:
        gap = (
            f"{names[0]} is chosen over {names[1]} in {50 + 100 * before:.1f} % in {rule.control} and in "
            f"{50 + 100 * after:.1f} % in {rule.treated}, where 50 % would be even"
        )
    else:
        gap = (
            f"{names[0]} is ahead of {names[1]} on {data.outcome} by {signed(before)} in {rule.control} and by "
            f"{signed(after)} in {rule.treated}"
        )
    units = data.noun if s["unit"] == "cluster" else "contexts" if data.choices else f"{s['unit']}s"
    sure = (
        f"change {signed(change)}, 95 % interval {signed(low)} to {signed(high)}, corrected "
        f"{p_words(pair.corrected_p_value)}; {s['units']} {units}"
    )
    return gap, sure, after < 0
