"""How a disparity changes between two arms: smaller, larger, nothing to reduce, or open."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from pytest_fairness.analysis.arm_data import ArmData, Missing
from pytest_fairness.analysis.policy import (
    MARGIN,
    MAX_RAGGED,
    MAX_UNSCORED,
    MINIMUM_N,
    TRIVIAL,
    Decision,
    milder,
)
from pytest_fairness.analysis.sentences import percent
from pytest_fairness.model import ALARMS, PairResult, Reason, Verdict
from pytest_fairness.statistics.arms import ArmContrast, Estimate
from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.corrections import correct

IDLE = "nothing to reduce: in both arms the whole 90 % interval lies inside ±.2 SD"


@dataclass(frozen=True, slots=True)
class _Tested:
    """Two groups contrasted; ``n`` is the fewest trials of either in either arm."""

    a: int
    b: int
    contrast: ArmContrast | None
    corrected: float
    n: int


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair with what became of its disparity, and whether it can have grown by more than the margin.

    ``grown``: by itself, without the correction over pairs, it grew beyond chance.
    """

    pair: PairResult
    became: Literal["smaller", "larger", "idle", "open"]
    bounded: bool = False
    grown: bool = False
    idle_control: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """The contrast, fixed beforehand, and how each of its pairs is judged."""

    treated: str
    control: str
    treated_at: int
    control_at: int
    alpha: float
    correction: str

    def judge(self, data: ArmData, *, detail: bool = False) -> list[Judged]:
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

    def _judged(self, data: ArmData, test: _Tested, detail: bool) -> Judged:
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
            return Judged(pair, "open")
        decision, became = self._decide(data, test, contrast)
        if share:
            decision = self._with_missing(data, test, contrast, decision, share)
        pair = _result(data, test, contrast, decision, share, names, detail)
        settled = became if decision.verdict is not Verdict.INCONCLUSIVE else "open"
        usable = decision.reason is None or not decision.reason.unusable
        grown = usable and contrast.change.p < self.alpha and _larger(contrast) and not _small(contrast)
        return Judged(pair, settled, _bounded(contrast), grown, _trivial(contrast.control, contrast.sd))

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
            return Decision(verdict=Verdict.PASS, notes=(IDLE,)), "idle"
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
    reach = float(t_quantile(estimate.df, 0.95)) * estimate.error if estimate.error else 0.0
    return estimate.mean - reach, estimate.mean + reach


def _on_sd(value: float, sd: float) -> float:
    if sd > 0:
        return value / sd
    return 0.0 if value == 0 else float(np.copysign(np.inf, value))
