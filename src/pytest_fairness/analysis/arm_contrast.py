"""Does one way of running the cells (scrubbed, say) show less disparity than another?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.arm_trials import ArmTrials, choice_trials, score_trials
from pytest_fairness.analysis.counts import as_rows
from pytest_fairness.analysis.family import Family, LostTrials, Member, keep_green
from pytest_fairness.analysis.looks import Look
from pytest_fairness.analysis.policy import (
    IDLE,
    TRIVIAL,
    Conclusion,
    JudgedPair,
    Rule,
    conclude_arms,
    judge_changes,
)
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import Reading, check_level, read
from pytest_fairness.analysis.sentences import RATES, amount, would_take
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import ALARMS, JSON, Finding, OutcomeKind, PairResult, Verdict
from pytest_fairness.statistics.arrays import Coded, Ints, code, require_frame
from pytest_fairness.statistics.choices import block_columns
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.gaps import ArmContrast
from pytest_fairness.statistics.pair_table import PairTable
from pytest_fairness.words import effect_size, p_equals, points

if TYPE_CHECKING:
    import pandas as pd


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
    _look: Look | None = None,
) -> Finding:
    """Compare the disparity between groups in arm *treated* with that in arm *control*, fixed
    beforehand.

    With an *outcome* (numbers or yes/no) the disparity of two groups is the difference of their
    means; without one the frame holds pairwise choices (columns ``first``, ``second``, ``chosen``;
    see ``analyze_preference``) and it is the win rate less one half. Its change, treated − control,
    is tested by a paired t over what both arms share: clusters (names, personas, name pairs) where
    there are at least two, blocks otherwise.

    ``classes`` says of each group which class of *by* it is of (``by="gender",
    classes={"white_female": "female", …}``; with an outcome the groups stand in column *group*).
    Then the classes are contrasted, and the pairs of groups that differ in it are their detail:
    they raise the alarm, and never have to pass.

    Per pair: PASS where the disparity shrinks significantly and what is left is smaller, or where
    there is nothing to reduce (the 90 % intervals of both arms inside ±.2 SD); FAIL where it grows
    or turns round significantly, by .2 SD or more; INCONCLUSIVE otherwise. The finding is about
    *by*: FAIL where any pair grows; PASS where at least one shrinks, no other can have grown by .5
    SD (90 % intervals), and no pair of groups grows significantly by itself, uncorrected;
    INCONCLUSIVE otherwise, also where there is nothing to reduce. Trials without an outcome are set
    to the extremes that speak against the verdict.

    ``placebo`` names an arm whose change should do nothing: every other arm is contrasted with it
    (Holm), and the finding says which of them differ.

    Raises FrameError for a missing column or arm or a table of the wrong shape, UsageError for an
    argument out of range.
    """
    check_level(alpha, correction)
    frame = require_frame(as_rows(frame))
    arms = code(frame, arm, "arm")
    _check_arms(arm, arms.labels, treated, control, placebo)
    blocks = block_columns(frame, block)
    # Every arm repeats the others' cells: a column of this name keeps them from looking like
    # duplicates.
    labelled = frame.assign(arm=frame[arm])
    seats: tuple[str, ...] = (by,)
    if classes is not None:
        seats = (group,)
    if outcome is None:
        seats = first, second
        columns = {"first": first, "second": second, "chosen": chosen, "neither": neither}
        trials = partial(choice_trials, columns=columns, cluster=cluster, blocks=blocks)
    elif isinstance(cluster, tuple):
        raise UsageError("cluster=(…, …) is for pairwise choices; an outcome has one cluster a row")
    else:
        reading = read(labelled, outcome, kind, None, scorers)
        _refuse_labels(reading)
        trials = partial(score_trials, reading=reading, by=seats, cluster=cluster, blocks=blocks)
    whole = data = trials(labelled, arms)
    detail: list[JudgedPair] = []
    names = (treated, control)
    at = (arms.labels.index(treated), arms.labels.index(control))
    rule = replace(Rule.at(_look, alpha, correction), cluster_noun=whole.noun)
    if classes is not None:
        _check_classes(classes, whole.first.labels)
        pooled = _pooled(labelled, classes, seats)
        if outcome is None:
            pooled[chosen] = labelled[chosen].map(lambda label: classes.get(str(label), label))
        kept = (pooled[seats[0]] != pooled[seats[-1]]).to_numpy() | (len(seats) == 1)
        data = trials(pooled[kept], Coded(arms.codes[kept], arms.labels))
        class_of = [classes[label] for label in whole.first.labels]
        apart = [(a, b) for a, b in whole.met if class_of[a] != class_of[b]]
        detail = _judge(whole, apart, at, rule, detail=True)
    judged = _judge(data, data.met, at, rule)
    conclusion = conclude_arms(judged, detail)
    every = (*judged, *detail)
    details: dict[str, JSON] = {"treated": treated, "control": control, "placebo": placebo}
    details["disparity"] = {
        treated: _disparities(every, "treated"),
        control: _disparities(every, "control"),
    }
    notes: tuple[str, ...] = ()
    if placebo is not None:
        place = arms.labels.index(placebo)
        details["against_placebo"], notes = _against(data, place, treated, rule.alpha)
    sentence = f"{conclusion.verdict}: {_sentence(conclusion, judged, data, names)}."
    if isinstance(cluster, tuple):
        cluster = " and ".join(cluster)
    return finding_of(
        frame,
        assertion="arm_reduces_disparity",
        conclusion=conclusion,
        sentence=f"{sentence}{_others(judged, detail, by)}",
        by=by,
        groups=[data.group(place, at) for place in range(len(data.first.labels))],
        tested=_in_words,
        notes=notes,
        pairs=[compared.pair for compared in every],
        outcome=data.reading.name,
        kind=data.reading.values.kind,
        unit=data.reading.unit,
        cluster=cluster,
        block=" × ".join(blocks) or None,
        family={
            "size": len(judged),
            "method": correction,
            "alpha": rule.alpha,
            "metrics": [data.reading.name],
        },
        details=details,
    )


def _check_arms(
    column: str, labels: Sequence[str], treated: str, control: str, placebo: str | None
) -> None:
    """Raise FrameError for an arm that the column does not have, UsageError for one arm twice."""
    named = [treated, control]
    if placebo is not None:
        named.append(placebo)
    for name in named:
        if name not in labels:
            raise FrameError(
                f"column {column!r}: there is no arm {name!r}; it has {', '.join(labels)}"
            )
    if treated == control:
        raise UsageError(f"treated and control are both {treated!r}: a contrast needs two arms")


def _refuse_labels(reading: Reading) -> None:
    """Raise UsageError where *reading* is of labels."""
    if reading.values.kind is OutcomeKind.CATEGORICAL:
        what = f"outcome {reading.name!r} is categorical"
        raise UsageError(f"{what}: a difference between arms needs numbers or yes/no")


def _check_classes(classes: Mapping[str, str], labels: Sequence[str]) -> None:
    for label in labels:
        if label not in classes:
            raise FrameError(
                f"classes={dict(classes)!r} do not say which class the group {label!r} is of"
            )


def _pooled(frame: pd.DataFrame, classes: Mapping[str, str], seats: Sequence[str]) -> pd.DataFrame:
    """Return *frame* with the class of each group in its *seats*; repetitions of several groups are
    repeated within a class, so that they go.
    """
    pooled = frame.drop(columns="repetition", errors="ignore")
    for seat in seats:
        pooled[seat] = frame[seat].map(str).map(classes)
    return pooled


def _in_words(pair: PairResult) -> tuple[str, str]:
    return f"t = {pair.statistics['t']:.4f}", f"Δ/SD = {effect_size(pair.effect)}"


def _disparities(judged: Sequence[JudgedPair], key: str) -> dict[str, JSON]:
    """Return each pair's disparity in the treated or control arm, where it is known."""
    disparities: dict[str, JSON] = {}
    for compared in judged:
        statistics = compared.pair.statistics
        if key in statistics:
            disparities[f"{compared.pair.group_1} / {compared.pair.group_2}"] = {
                "difference": statistics[key],
                "low": statistics[f"{key}_low"],
                "high": statistics[f"{key}_high"],
                "p_value": statistics[f"{key}_p_value"],
            }
    return disparities


# ---------------------------------------------------------------- each pair


def _judge(
    data: ArmTrials,
    pairs: Sequence[tuple[int, int]],
    arms: tuple[int, int],
    rule: Rule,
    *,
    detail: bool = False,
) -> list[JudgedPair]:
    """*pairs* of groups as one family; as a *detail* they only raise the alarm."""
    if not pairs:
        return []
    contrasts = [_read(data.contrast(arms, a, b), rule) for a, b in pairs]
    cells = np.array([data.cells(arms, a, b) for a, b in pairs])  # pairs × cells × rows
    used = (cells & data.used).sum(axis=2)
    total = cells.sum(axis=2)
    table = _table(data, pairs, contrasts, used.min(axis=1))

    def imputed(at: int, raised: bool, _: bool) -> PairTable | None:
        again = _read(data.contrast(arms, *pairs[at], raised), rule)
        if again is None:
            return None
        return _table(data, [pairs[at]], [again], used[at].min(keepdims=True))

    shares = ((total - used) / np.maximum(total, 1)).max(axis=1).tolist()
    trials = table.trials[:, 0].astype(int).tolist()
    statistics = list(map(_statistics, contrasts, trials, shares))
    member = Member(
        name=data.reading.name,
        table=table,
        kind=data.reading.values.kind,
        decide=judge_changes,
        lost=LostTrials(lost=total - used, total=total, imputed=imputed),
        lower_is_worse=None,
        alarm_only=detail,
        report=lambda _: statistics,
    )
    family = Family([member], rule)
    judged = family.judge()
    keep_green(judged[0], rule.look)
    grown = (table.figures["grows"] == 1) & (table.p_value < rule.alpha) & (table.size >= TRIVIAL)
    usable = np.array([not decision.unusable for decision in judged[0].decisions])
    rows = zip(family.results(judged), contrasts, (grown & usable).tolist(), strict=True)
    return [JudgedPair(*row) for row in rows]


def _read(contrast: ArmContrast | None, rule: Rule) -> ArmContrast | None:
    """Return *contrast* with the intervals that the *rule* reads."""
    if contrast is None:
        return None
    return replace(contrast, confidence=rule.confidence)


def _table(
    data: ArmTrials,
    pairs: Sequence[tuple[int, int]],
    contrasts: Sequence[ArmContrast | None],
    n: Ints,
) -> PairTable:
    """``beside``: what the policy reads of each contrast; NaN where there is none."""
    rows = np.full((len(pairs), 10), np.nan)
    over = np.full(len(pairs), "", dtype=object)
    for at, contrast in enumerate(contrasts):
        if contrast is not None:
            rows[at] = _row(contrast)
            over[at] = contrast.unit
    effect, low, high, p, difference, lost, shrinks, grows, extent, units = rows.T
    p_value = np.nan_to_num(p, nan=1.0)
    return PairTable(
        labels=data.first.labels,
        first=np.array([a for a, _ in pairs]),
        second=np.array([b for _, b in pairs]),
        effect_names=("change / SD within groups",),
        effect=np.where(over != "", effect, 0.0)[:, None],
        low=low[:, None],
        high=high[:, None],
        test=np.where(over != "", "paired t over " + over + "s of treated − control", ""),
        p_row=p_value,
        p_cluster=np.where(over == "cluster", p, np.nan),
        p_value=p_value,
        difference=difference,
        trials=np.stack([n, n], axis=1).astype(np.float64),
        ragged=lost,
        alone=np.full(len(pairs), data.one_cluster),
        figures={"shrinks": shrinks, "grows": grows, "extent": extent, "units": units},
    )


def _row(contrast: ArmContrast) -> tuple[float, ...]:
    change = contrast.change
    extent = max(contrast.extent(contrast.control), contrast.extent(contrast.treated))
    effect, low, high = map(contrast.on_sd, (change.mean, *change.interval(contrast.confidence)))
    return (
        effect,
        low,
        high,
        change.p,
        change.mean,
        contrast.lost,
        contrast.shrinks,
        contrast.grows,
        extent,
        change.units,
    )


def _statistics(contrast: ArmContrast | None, n: int, share: float) -> dict[str, JSON]:
    statistics: dict[str, JSON] = {"n": n, "without_outcome": share}
    if contrast is None:
        return statistics
    change = contrast.change
    statistics |= {
        "units": change.units,
        "unit": contrast.unit,
        "t": change.t,
        "df": change.df,
        "rows_lost_to_ragged_units": contrast.lost,
    }
    for name, gap in (
        ("change", change),
        ("control", contrast.control),
        ("treated", contrast.treated),
    ):
        statistics[f"{name}_low"], statistics[f"{name}_high"] = gap.interval(0.95)
        if gap is not change:
            statistics |= {name: gap.mean, f"{name}_p_value": gap.p}
    return statistics


# ---------------------------------------------------------------- the finding


def _against(
    data: ArmTrials, placebo: int, treated: str, alpha: float
) -> tuple[dict[str, JSON], tuple[str, ...]]:
    """Return each arm against the *placebo* arm, pair by pair (Holm over all), and which differ."""
    others = [at for at in range(len(data.arm.labels)) if at != placebo]
    places = list(product(others, data.met))
    contrasts = [data.contrast((at, placebo), *pair) for at, pair in places]
    # NaN, no contrast, stays in the family as 1.
    p_values = np.full(len(places), np.nan)
    for place, contrast in enumerate(contrasts):
        if contrast is not None:
            p_values[place] = contrast.change.p
    corrected = correct(p_values, "holm").tolist()
    tables: dict[str, dict[str, JSON]] = {data.arm.labels[at]: {} for at in others}
    differing: dict[str, list[str]] = {data.arm.labels[at]: [] for at in others}
    for (at, (a, b)), contrast, q in zip(places, contrasts, corrected, strict=True):
        if contrast is None:
            continue
        pair = f"{data.first.labels[a]} / {data.first.labels[b]}"
        low, high = contrast.change.interval(0.95)
        tables[data.arm.labels[at]][pair] = {
            "difference": contrast.change.mean,
            "low": low,
            "high": high,
            "p_value": contrast.change.p,
            "corrected_p_value": q,
        }
        if q < alpha:
            differing[data.arm.labels[at]].append(pair)
    notes = [_differs(arm, treated, where) for arm, where in differing.items()]
    return dict(tables), tuple(notes)


def _differs(arm: str, treated: str, where: Sequence[str]) -> str:
    """Return whether *arm* differs from the placebo arm, and in which pairs."""
    who = arm
    if arm == treated:
        who = f"the treated arm {arm}"
    if where:
        return f"{who} differs from the placebo arm ({', '.join(where)})"
    return f"{who} does not differ from the placebo arm"


# ---------------------------------------------------------------- the sentence


def _sentence(
    conclusion: Conclusion,
    judged: Sequence[JudgedPair],
    data: ArmTrials,
    names: tuple[str, str],
) -> str:
    treated, control = names
    pair = conclusion.decider
    if pair is None:
        return "there are no two groups to compare"
    if "control" not in pair.statistics or (pair.reason is not None and pair.reason.unusable):
        two = f"{pair.group_1} and {pair.group_2}"
        return f"{two} cannot be compared between {treated} and {control}; it takes {pair.needs}"
    gap, sure, turned = _gap(pair, data, names)
    what = "preference"
    if data.second is None:
        what = "difference"
    if conclusion.verdict is Verdict.PASS:
        return f"the {what} shrinks: {gap} ({sure})"
    if conclusion.verdict in ALARMS:
        became = "grows"
        if turned:
            became = "turns round"
        return f"the {what} {became} instead of shrinking: {gap} ({sure})"
    if all(compared.idle_in_control for compared in judged):
        where = ""
        if len(judged) != 1:
            where = f" between any two of {len(data.first.labels)} groups"
        return f"there is no {what} to reduce{where} in {control}: {gap} ({sure})"
    if pair.alarm_only:
        return f"by itself the {what} grows here, although it shrinks as a whole: {gap} ({sure})"
    return _open(pair, judged, what, gap, sure)


def _open(pair: PairResult, judged: Sequence[JudgedPair], what: str, gap: str, sure: str) -> str:
    """Return what is left open about *pair*."""
    needs = would_take(pair)
    if any(compared.became == "smaller" for compared in judged):
        grown = (
            f"it cannot be told that this {what} has not grown by more than half a standard "
            "deviation"
        )
        return f"{gap}; {grown}, although others shrink ({sure}){needs}"
    note = ", which may be chance"
    if pair.notes and pair.notes[0] != IDLE:
        note = f"; {pair.notes[0]}"
    return f"{gap}{note} ({sure}){needs}"


def _gap(pair: PairResult, data: ArmTrials, names: tuple[str, str]) -> tuple[str, str, bool]:
    """The disparity in both arms and its change, from the side that the control arm prefers, and
    how sure; whether it turns round."""
    treated, control = names
    kind = data.reading.values.kind
    s = pair.statistics
    before, after, low, high = (
        float(str(s[name])) for name in ("control", "treated", "change_low", "change_high")
    )
    change = pair.difference or 0.0
    first = pair.group_1
    other = pair.group_2
    if before < 0:
        before, after, change, low, high = -before, -after, -change, -high, -low
        first, other = other, first

    def moved(value: float) -> str:
        if kind in RATES:
            return f"{points(value)} points"
        sign = ""
        if value > 0:
            sign = "+"
        return f"{sign}{amount(value, kind, data.reading.unit)}"

    if data.second is None:
        apart = f"by {moved(before)} in {control} and by {moved(after)} in {treated}"
        gap = f"{first} is ahead of {other} on {data.reading.name} {apart}"
    else:
        rates = (
            f"{50 + 100 * before:.1f} % in {control} and in {50 + 100 * after:.1f} % in {treated}"
        )
        gap = f"{first} is chosen over {other} in {rates}, where 50 % would be even"
    if s["unit"] == "cluster":
        units = data.noun
    elif data.second is None:
        units = "blocks"
    else:
        units = "contexts"
    interval = f"change {moved(change)}, 95 % interval {moved(low)} to {moved(high)}"
    sure = f"{interval}, corrected {p_equals(pair.corrected_p_value)}; {s['units']} {units}"
    return gap, sure, after < 0


_BECAME = {
    "smaller": ("shrinks", "shrink"),
    "idle": ("had nothing to reduce", "had nothing to reduce"),
    "larger": ("grows", "grow"),
    "open": ("is not settled", "are not settled"),
}


def _others(judged: Sequence[JudgedPair], detail: Sequence[JudgedPair], by: str) -> str:
    """Return what became of all the pairs, where there are several."""
    what = by
    if by == "group":
        what = "groups"
    return f"{_all_of(judged, what)}{_all_of(detail, 'groups')}"


def _all_of(judged: Sequence[JudgedPair], what: str) -> str:
    if len(judged) < 2:
        return ""
    counts = Counter(compared.became for compared in judged)
    parts = []
    for became, (singular, plural) in _BECAME.items():
        if counts[became]:
            parts.append(f"{counts[became]} {singular if counts[became] == 1 else plural}")
    return f" Of {len(judged)} pairs of {what}, {', '.join(parts)}."
