"""Does one way of running the cells (scrubbed, say) show less disparity than another?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.arm_data import ArmData, arms_of_choices, arms_of_scores, pooled_choices
from pytest_fairness.analysis.arm_rule import IDLE, Judged, Rule
from pytest_fairness.analysis.policy import (
    deciding_pair,
    verdict_by,
)
from pytest_fairness.analysis.preference import check_options
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.sentences import amount, effect_words, p_words
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import ALARMS, JSON, Finding, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arms import Estimate
from pytest_fairness.statistics.arrays import code, require_frame
from pytest_fairness.statistics.choices import block_columns, read_choices
from pytest_fairness.statistics.corrections import correct

if TYPE_CHECKING:
    import pandas as pd


_RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)


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
    rule = Rule(treated, control, arms.labels.index(treated), arms.labels.index(control), alpha, correction)
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


# ---------------------------------------------------------------- the finding


def _conclude(judged: Sequence[Judged], detail: Sequence[Judged]) -> tuple[Verdict, Reason | None, PairResult | None]:
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


def _disparities(judged: Sequence[Judged], arm: str, rule: Rule) -> dict[str, JSON]:
    which = "treated" if arm == rule.treated else "control"
    return {
        f"{one.pair.group_1} / {one.pair.group_2}": {
            "difference": one.pair.statistics[which],
            **{end: one.pair.statistics[f"{which}_{end}"] for end in ("low", "high", "p_value")},
        }
        for one in judged
        if which in one.pair.statistics
    }


def _others(judged: Sequence[Judged], detail: Sequence[Judged], by: str) -> str:
    """What became of all the pairs, where there are several."""
    told = [(judged, "groups" if by == "group" else by), (detail, "groups")]
    return "".join(f" Of {len(some)} pairs of {what}, {_became(some)}." for some, what in told if len(some) > 1)


def _became(some: Sequence[Judged]) -> str:
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


def _sentence(verdict: Verdict, pair: PairResult | None, judged: Sequence[Judged], data: ArmData, rule: Rule) -> str:
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
    note = f"; {pair.notes[0]}" if pair.notes and pair.notes[0] != IDLE else ", which may be chance"
    return f"INCONCLUSIVE: {gap}{note} ({sure}){needs}."


def _gap(pair: PairResult, data: ArmData, rule: Rule) -> tuple[str, str, bool]:
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
