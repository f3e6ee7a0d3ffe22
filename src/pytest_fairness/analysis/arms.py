"""Does one way of running the cells (scrubbed, say) show less disparity than another?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.arm_data import ArmData, arms_of_choices, arms_of_scores
from pytest_fairness.analysis.assembling import finding_of
from pytest_fairness.analysis.judging_choices import check_options
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import JSON, Finding, GroupResult, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arms import ArmContrast, Estimate
from pytest_fairness.statistics.choices import block_columns, read_choices
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.frames import code, require_frame
from pytest_fairness.statistics.one_sample import t_quantile
from pytest_fairness.verdict import MAX_RAGGED, MINIMUM_N, TRIVIAL, Decision, deciding_pair, verdict_by
from pytest_fairness.wording import amount, effect_words, p_words, percent

if TYPE_CHECKING:
    import pandas as pd


_RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)
_IDLE = "nothing to reduce: in both arms the whole 90 % interval lies inside ±.2 SD"


@dataclass(frozen=True, slots=True)
class _Tested:
    a: int
    b: int
    contrast: ArmContrast | None
    corrected: float
    n: int


def analyze_arms(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any] | None = None,
    *,
    treated: str,
    control: str,
    by: str = "group",
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

    Per pair of groups: PASS where the disparity shrinks significantly, or where there is nothing to reduce (the 90 %
    intervals of both arms inside ±.2 SD); FAIL where it grows or turns round significantly; INCONCLUSIVE otherwise.
    The finding is about the class, the pairs are its detail: FAIL where any pair grows, PASS where the disparity of at
    least one pair shrinks and none grows, INCONCLUSIVE otherwise, also where no pair has anything to reduce.

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
        data = arms_of_choices(arms.codes, arms.labels, choices)
    else:
        if isinstance(cluster, tuple):
            raise UsageError("cluster=(…, …) is for pairwise choices; an outcome has one cluster a row")
        data = arms_of_scores(labelled, arms.codes, arms.labels, outcome, by, cluster, blocks, kind, scorers)
    at_treated, at_control = arms.labels.index(treated), arms.labels.index(control)
    tested = _family(data, at_treated, at_control, correction)
    pairs = tuple(_pair(data, test, alpha) for test in tested)
    idle = bool(pairs) and all(_IDLE in pair.notes for pair in pairs)
    decider = _decider(pairs)
    verdict, reason = (Verdict.INCONCLUSIVE, Reason.PRECISION) if idle else verdict_by(decider)
    details: dict[str, JSON] = {"treated": treated, "control": control, "placebo": placebo}
    details["disparity"] = {
        data.arms[at]: {
            _name(data, test): _told(test.contrast.treated if at == at_treated else test.contrast.control)
            for test in tested
            if test.contrast is not None
        }
        for at in (at_control, at_treated)
    }
    notes: tuple[str, ...] = ()
    if placebo is not None:
        details["against_placebo"], notes = _against(data, arms.labels.index(placebo), treated, alpha)
    groups = _groups(data, at_treated, at_control)
    return finding_of(
        frame,
        assertion="arm_reduces_disparity",
        verdict=verdict,
        reason=reason,
        sentence=_sentence(verdict, decider, data, treated, control, idle) + _others(pairs, decider, verdict),
        by=by,
        groups=groups,
        decider=decider,
        test_statistic="" if decider is None else f"t = {float(str(decider.statistics.get('t', 0.0))):.4f}",
        effect_size="" if decider is None else f"Δ/SD = {effect_words(decider.effect)}",
        notes=notes,
        pairs=pairs,
        outcome=data.outcome,
        kind=data.kind,
        unit=data.unit,
        cluster=cluster if isinstance(cluster, str) else None if cluster is None else " and ".join(cluster),
        block=" × ".join(blocks) or None,
        family={"size": len(pairs), "method": correction, "alpha": alpha, "metrics": [data.outcome]},
        details=details,
    )


def _family(data: ArmData, treated: int, control: int, correction: str) -> list[_Tested]:
    found = [data.contrast(treated, control, a, b) for a, b in data.met]

    corrected = correct([1.0 if c is None else c.change.p for c in found], correction).tolist()
    return [
        _Tested(a, b, c, q, min(data.count(treated, a, b), data.count(control, a, b)))
        for (a, b), c, q in zip(data.met, found, corrected, strict=True)
    ]


def _pair(data: ArmData, test: _Tested, alpha: float) -> PairResult:
    contrast = test.contrast
    names = (data.labels[test.a], data.labels[test.b])
    if contrast is None:
        return PairResult(
            group_1=names[0],
            group_2=names[1],
            metric=data.outcome,
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.N,
            needs="at least two names or blocks that stand in both arms, with both groups",
            statistics={"n": test.n},
        )
    decision = _judge(data, test, contrast, alpha)
    change = contrast.change
    effect, low, high = (_on_sd(value, contrast.sd) for value in (change.mean, *_interval(change, 0.90)))
    shown = math.isfinite(high - low) and low < effect < high
    return PairResult(
        group_1=names[0],
        group_2=names[1],
        metric=data.outcome,
        verdict=decision.verdict,
        reason=decision.reason,
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
        },
        notes=decision.notes,
    )


def _judge(data: ArmData, test: _Tested, contrast: ArmContrast, alpha: float) -> Decision:
    """First match; see :func:`analyze_arms`."""
    if contrast.lost > MAX_RAGGED:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.RAGGED,
            needs=f"the same cells in both arms: {percent(contrast.lost)} of the rows have no counterpart",
        )
    significant = test.corrected < alpha
    shrinks = abs(contrast.treated.mean) < abs(contrast.control.mean)
    minimum = MINIMUM_N[data.kind]
    if test.n < minimum:
        worse = significant and not shrinks
        return Decision(
            verdict=Verdict.FLAG if worse else Verdict.INCONCLUSIVE,
            reason=None if worse else Reason.N,
            needs=f"at least {minimum} trials a group and arm (now {test.n})",
        )
    if significant and shrinks:
        return Decision(verdict=Verdict.PASS)
    if significant:
        capped = data.one_cluster
        note = ("a single name a group: the result is about those, so FAIL is capped at FLAG",) if capped else ()
        return Decision(verdict=Verdict.FLAG if capped else Verdict.FAIL, notes=note)
    if all(_trivial(arm, contrast.sd) for arm in (contrast.control, contrast.treated)):
        return Decision(verdict=Verdict.PASS, notes=(_IDLE,))
    return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.PRECISION, needs=_needs(contrast, alpha, test))


def _trivial(arm: Estimate, sd: float) -> bool:
    """Whether the whole 90 % interval of a disparity is trivial."""
    return max(abs(_on_sd(end, sd)) for end in _interval(arm, 0.90)) < TRIVIAL


def _needs(contrast: ArmContrast, alpha: float, test: _Tested) -> str | None:
    p = contrast.change.p
    if not 0 < p < 1:
        return None
    normal = NormalDist()
    share = alpha * p / max(test.corrected, p)
    ratio = normal.inv_cdf(1 - share / 2) / normal.inv_cdf(1 - p / 2)
    units = contrast.change.units * ratio**2
    return f"about {int(units) + 1} {contrast.unit}s if the change stays as it is" if units < 1e6 else None


def _interval(estimate: Estimate, confidence: float) -> tuple[float, float]:
    reach = t_quantile((1 + confidence) / 2, estimate.df) * estimate.error if estimate.error else 0.0
    return estimate.mean - reach, estimate.mean + reach


def _on_sd(value: float, sd: float) -> float:
    if sd > 0:
        return value / sd
    return 0.0 if value == 0 else float(np.copysign(np.inf, value))


def _name(data: ArmData, test: _Tested) -> str:
    return f"{data.labels[test.a]} / {data.labels[test.b]}"


def _told(estimate: Estimate) -> dict[str, JSON]:
    return {"difference": estimate.mean, "low": estimate.low, "high": estimate.high, "p_value": estimate.p}


def _decider(pairs: tuple[PairResult, ...]) -> PairResult | None:
    """The pair that decides: one whose disparity grows; else one whose disparity shrinks; else the least settled."""
    for verdict in (Verdict.FAIL, Verdict.FLAG, Verdict.PASS):
        found = [pair for pair in pairs if pair.verdict is verdict and _IDLE not in pair.notes]
        if found:
            return min(found, key=lambda pair: (pair.corrected_p_value, -abs(pair.effect)))
    return deciding_pair(pairs)


def _others(pairs: tuple[PairResult, ...], decider: PairResult | None, verdict: Verdict) -> str:
    """How many of the other pairs are settled, where the finding rests on one of several."""
    if decider is None or len(pairs) < 2 or verdict is not Verdict.PASS:
        return ""
    shrink = sum(pair.verdict is Verdict.PASS and _IDLE not in pair.notes for pair in pairs)
    idle = sum(_IDLE in pair.notes for pair in pairs)
    left = len(pairs) - shrink - idle
    parts = [f"{shrink} of {len(pairs)} pairs shrink significantly"]
    parts += [f"{idle} had nothing to reduce"] if idle else []
    parts += [f"{left} are not settled"] if left else []
    return f" Of the class, {', '.join(parts)}."


def _against(data: ArmData, placebo: int, treated: str, alpha: float) -> tuple[dict[str, JSON], tuple[str, ...]]:
    others = [at for at in range(len(data.arms)) if at != placebo]
    found = [(at, a, b, data.contrast(at, placebo, a, b)) for at in others for a, b in data.met]
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


def _groups(data: ArmData, treated: int, control: int) -> tuple[GroupResult, ...]:
    """Trials of each group in both arms together."""
    results = []
    for at, label in enumerate(data.labels):
        partner = next((pair for pair in data.met if at in pair), None)
        n = 0 if partner is None else sum(data.count(one, *partner) for one in (treated, control))
        results.append(GroupResult(group=label, n=n, clusters=0))
    return tuple(results)


def _sentence(verdict: Verdict, pair: PairResult | None, data: ArmData, treated: str, control: str, idle: bool) -> str:
    if pair is None:
        return f"{verdict}: there are no two groups to compare."
    s = pair.statistics
    if "control" not in s or pair.reason is Reason.RAGGED:
        return (
            f"{verdict}: {pair.group_1} and {pair.group_2} cannot be compared between {treated} and {control}; "
            f"it takes {pair.needs}."
        )
    before, after, low, high = (float(str(s[name])) for name in ("control", "treated", "change_low", "change_high"))

    def told(value: float) -> str:
        rate = data.kind in _RATES
        return f"{100 * value:+.1f} points".replace("-", "−") if rate else amount(value, data.kind, data.unit)

    units = data.noun if s["unit"] == "cluster" else "contexts" if data.choices else f"{s['unit']}s"
    sure = (
        f"change {told(pair.difference or 0.0)}, 95 % interval {told(low)} to {told(high)}, corrected "
        f"{p_words(pair.corrected_p_value)}; {s['units']} {units}"
    )
    between = f"{pair.group_1} and {pair.group_2}"
    what = "preference" if data.choices else f"disparity on {data.outcome}"
    gap = f"the preference between {between}" if data.choices else f"the difference between {between} on {data.outcome}"
    moved = f"from {told(before)} in {control} to {told(after)} in {treated}"
    if idle:
        return f"INCONCLUSIVE: there is no {what} to reduce: in {control} and in {treated} it is trivial ({sure})."
    if verdict is Verdict.PASS:
        return f"PASS: {gap} shrinks {moved} ({sure})."
    if verdict in (Verdict.FAIL, Verdict.FLAG):
        return f"{verdict}: {gap} does not shrink but goes {moved} ({sure})."
    needs = f"; it would take {pair.needs}" if pair.needs else ""
    return f"INCONCLUSIVE: {gap} goes {moved}, which may be chance ({sure}){needs}."
