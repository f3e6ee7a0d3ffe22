"""Does one way of running the cells (scrubbed, say) show less disparity than another?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_fairness.analysis.family import Family, Member, pair_results
from pytest_fairness.analysis.policy import (
    MARGIN,
    MAX_RAGGED,
    TRIVIAL,
    Decision,
    Rule,
    deciding_pair,
    undecided,
    until_significant,
    verdict_by,
)
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import Reading, ScoredRows, check_level, nouns, read, several
from pytest_fairness.analysis.sentences import RATES, amount, effect_words, p_words, percent, signed
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import ALARMS, JSON, Finding, GroupResult, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import Bools, Coded, Floats, Ints, code, cross, read_design, require_frame
from pytest_fairness.statistics.choices import (
    FIRST,
    NEITHER,
    REFUSED,
    UNSCORED,
    block_columns,
    read_choices,
    recode,
)
from pytest_fairness.statistics.compare import impute
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.gaps import ArmContrast, contrast_choices, contrast_scores
from pytest_fairness.statistics.pair_table import PairTable

if TYPE_CHECKING:
    import pandas as pd

IDLE = "nothing to reduce: in both arms the whole 90 % interval lies inside ±.2 SD"


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
    check_level(alpha, correction)
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
        columns = {"first": first, "second": second, "chosen": chosen, "neither": neither}
        whole = _choices(labelled, arms, columns, cluster, blocks)
    elif isinstance(cluster, tuple):
        raise UsageError("cluster=(…, …) is for pairwise choices; an outcome has one cluster a row")
    else:
        reading = read(labelled, outcome, kind, None, scorers)
        if reading.values.kind is OutcomeKind.CATEGORICAL:
            raise UsageError(
                f"outcome {reading.name!r} is categorical: a difference between arms needs numbers or yes/no"
            )
        whole = _scores(labelled, arms, reading, by if classes is None else group, cluster, blocks)
    data = whole if classes is None else whole.pooled(classes)
    names = treated, control
    at = arms.labels.index(treated), arms.labels.index(control)
    rule = Rule(alpha=alpha, correction=correction, cluster_noun=data.noun)
    judged = _judge(data, data.met, at, rule)
    detail = []
    if classes is not None:
        apart = [(a, b) for a, b in whole.met if classes[whole.labels[a]] != classes[whole.labels[b]]]
        detail = _judge(whole, apart, at, rule, detail=True)
    verdict, reason, decider = _conclude(judged, detail)
    details: dict[str, JSON] = {"treated": treated, "control": control, "placebo": placebo}
    details["disparity"] = {
        name: _disparities([*judged, *detail], key) for name, key in zip(names, ("treated", "control"), strict=True)
    }
    notes: tuple[str, ...] = ()
    if placebo is not None:
        details["against_placebo"], notes = _against(data, arms.labels.index(placebo), treated, alpha)
    return finding_of(
        frame,
        assertion="arm_reduces_disparity",
        verdict=verdict,
        reason=reason,
        sentence=_sentence(verdict, decider, judged, data, names) + _others(judged, detail, by),
        by=by,
        groups=[data.group(place, at) for place in range(len(data.labels))],
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


# ---------------------------------------------------------------- the trials of several arms


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmTrials:
    """A table with several arms; the arrays have one entry a row.

    Of pairwise choices a row is about the groups ``first`` and ``second``, its value is 1 where the first was chosen,
    and the disparity is a win rate less one half. Of scores it is about ``first`` (``second`` is None), and the
    disparity is a difference of means. ``clusters`` are none, one or the names of both candidates, and ``noun`` is what
    they are called; ``scale`` are the ends of the scores.
    """

    outcome: str
    kind: OutcomeKind
    unit: str
    noun: str
    scale: tuple[float | None, float | None]
    labels: tuple[str, ...]
    arm: Coded
    first: Ints
    second: Ints | None
    clusters: tuple[Ints, ...]
    block: Ints
    values: Floats
    used: Bools
    refused: Bools
    undetermined: Bools
    unscored: Bools

    @property
    def met(self) -> list[tuple[int, int]]:
        """The pairs of groups to contrast."""
        if self.second is None:
            return list(combinations(range(len(self.labels)), 2))
        low, high = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        return sorted(set(zip(low.tolist(), high.tolist(), strict=True)))

    @property
    def one_cluster(self) -> bool:
        """Whether the result is about single names."""
        if not self.clusters:
            return False
        if self.second is None:
            rows = [self.stood(group) for group in range(len(self.labels))]
        else:
            rows = [self.stood(a) & self.stood(b) & self.used for a, b in self.met]
        codes = cross(self.clusters, self.first.size)
        return min((np.unique(codes[some]).size for some in rows), default=2) < 2

    def stood(self, group: int) -> Bools:
        here = self.first == group
        return np.asarray(here if self.second is None else here | (self.second == group))

    def cluster_of(self, group: int) -> Ints:
        """The cluster of each row as far as it is about *group*."""
        if not self.clusters:
            return np.arange(self.first.size)
        return np.where(self.first == group, self.clusters[0], self.clusters[-1])

    def cells(self, arms: Sequence[int], a: int, b: int) -> list[Bools]:
        """Rows of each arm about two groups that have an outcome or lack one: both together, or each by itself."""
        sides = [self.stood(a), self.stood(b)]
        if self.second is not None:
            sides = [sides[0] & sides[1] & ~self.undetermined]
        return [(self.arm.codes == arm) & side for arm in arms for side in sides]

    def group(self, at: int, arms: Sequence[int]) -> GroupResult:
        """The trials of one group in several arms."""
        here = np.isin(self.arm.codes, arms) & self.stood(at)
        return GroupResult(
            group=self.labels[at],
            n=int(np.sum(here & self.used)),
            clusters=np.unique(self.cluster_of(at)[here & self.used]).size,
            refused=int(np.sum(here & self.refused)),
            undetermined=int(np.sum(here & self.undetermined)),
            unscored=int(np.sum(here & self.unscored)),
        )

    def pooled(self, classes: Mapping[str, str]) -> ArmTrials:
        """With the *classes* of the groups for groups; choices are those between different ones.

        Raises FrameError for a group that *classes* lack.
        """
        lost = next((label for label in self.labels if label not in classes), None)
        if lost is not None:
            raise FrameError(f"classes={dict(classes)!r} do not say which class the group {lost!r} is of")
        own = [classes[label] for label in self.labels]
        first = recode(Coded(self.first, self.labels), own, own)
        pooled = replace(self, first=first.codes, labels=first.labels)
        if self.second is None:
            return pooled
        second = recode(Coded(self.second, self.labels), own, own).codes
        kept = first.codes != second
        rows = ("first", "block", "values", "used", "refused", "undetermined", "unscored")
        return replace(
            pooled,
            second=second[kept],
            arm=Coded(self.arm.codes[kept], self.arm.labels),
            clusters=tuple(codes[kept] for codes in self.clusters),
            **{name: getattr(pooled, name)[kept] for name in rows},
        )

    def contrast(self, arms: tuple[int, int], a: int, b: int, raised: bool | None = None) -> ArmContrast | None:
        """The first of two *arms* − the second on two groups.

        Trials without an outcome are left out, or set to the extremes: such that the change is *raised*, or lowered.
        """
        here = np.logical_or.reduce(self.cells(arms, a, b)) & (self.used if raised is None else True)
        treated, lost = self.arm.codes == arms[0], ~self.used
        names = [self.cluster_of(group)[here] for group in (a, b)]
        if self.second is None:
            values = self.values
            for arm in arms if raised is not None else ():
                values = impute(
                    values,
                    self.kind,
                    self.first,
                    (a, b),
                    used=self.used,
                    missing=lost & (self.arm.codes == arm),
                    first_high=(arm == arms[0]) == raised,
                    scale=self.scale,
                )
            return contrast_scores(
                values[here],
                second=self.stood(b)[here],
                treated=treated[here],
                cluster=names[0] if self.clusters else None,
                block=self.block[here],
            )
        won = np.where(lost, treated == raised, (self.first == a) == (self.values == 1))[here]
        if len(self.clusters) == 2:
            # The name of the first group's candidate before that of the other's, whoever was listed first.
            pairs = cross(names, won.size)
        else:
            pairs = cross([codes[here] for codes in self.clusters], won.size)
        if np.unique(pairs).size > 1:
            both = (names[0], names[1]) if len(self.clusters) == 2 else None
            return contrast_choices(won, treated[here], pairs, "cluster", both)
        return contrast_choices(won, treated[here], self.block[here], "block")


def _choices(
    frame: pd.DataFrame,
    arms: Coded,
    columns: Mapping[str, str],
    cluster: str | tuple[str, str] | None,
    blocks: tuple[str, ...],
) -> ArmTrials:
    read = read_choices(frame, **columns, cluster=cluster, block=blocks)
    named = len(read.clusters) == 2 or read.cluster_name == "name"
    return ArmTrials(
        outcome="chosen",
        kind=OutcomeKind.BINARY,
        unit="",
        noun="name pairs" if named else several(read.cluster_name or "row"),
        scale=(None, None),
        labels=read.labels,
        arm=arms,
        first=read.first,
        second=read.second,
        clusters=read.clusters,
        block=read.block,
        values=(read.outcome == FIRST).astype(np.float64),
        used=read.decided,
        refused=read.outcome == REFUSED,
        undetermined=read.outcome == NEITHER,
        unscored=read.outcome == UNSCORED,
    )


def _scores(
    frame: pd.DataFrame, arms: Coded, reading: Reading, by: str, cluster: str | None, blocks: tuple[str, ...]
) -> ArmTrials:
    crossed = cross([code(frame, column, "block").codes for column in blocks], len(frame))
    name = " × ".join(blocks) or None
    if len(blocks) > 1:
        frame = frame.assign(**{str(name): crossed})
    design = read_design(frame, (by,), cluster=cluster, block=name)
    used = ScoredRows.of(design, reading).used
    refused = ~used & design.refused
    return ArmTrials(
        outcome=reading.name,
        kind=reading.values.kind,
        unit=reading.unit,
        noun=nouns(frame, design)["cluster_noun"],
        scale=(reading.low, reading.high),
        labels=design.group.labels,
        arm=arms,
        first=design.group.codes,
        second=None,
        clusters=() if design.cluster_name is None else (design.cluster,),
        block=crossed,
        values=reading.values.values,
        used=used,
        refused=refused,
        undetermined=~used & design.undetermined & ~refused,
        unscored=~used & ~refused & ~design.undetermined,
    )


# ---------------------------------------------------------------- each pair


class JudgedPair(NamedTuple):
    """A pair with its contrast (None where the arms share too little), and whether by itself, without the correction
    over pairs, it grew beyond chance."""

    pair: PairResult
    contrast: ArmContrast | None
    grown: bool

    @property
    def became(self) -> str:
        """What became of the disparity; a key of :data:`_BECAME`."""
        if self.pair.verdict is Verdict.PASS:
            return "idle" if IDLE in self.pair.notes else "smaller"
        return "open" if self.pair.verdict is Verdict.INCONCLUSIVE else "larger"


def _judge(
    data: ArmTrials, pairs: Sequence[tuple[int, int]], arms: tuple[int, int], rule: Rule, *, detail: bool = False
) -> list[JudgedPair]:
    """*pairs* of groups as one family; as a *detail* they only raise the alarm."""
    if not pairs:
        return []
    found = [data.contrast(arms, a, b) for a, b in pairs]
    cells = [data.cells(arms, a, b) for a, b in pairs]
    n = [min(int(np.sum(data.used & cell)) for cell in some) for some in cells]
    lost, total = (
        np.array([[np.sum(cell & rows) for cell in some] for some in cells]) for rows in (~data.used, data.used | True)
    )
    table = _table(data, pairs, found, n)

    def imputed(at: int, raised: bool) -> PairTable | None:
        again = data.contrast(arms, *pairs[at], raised)
        return None if again is None else _table(data, pairs, [*found[:at], again, *found[at + 1 :]], n)

    member = Member(
        name=data.outcome,
        table=table,
        kind=data.kind,
        decide=_decide,
        lost=lost,
        total=total,
        imputed=imputed,
        lower_is_worse=None,
        alarm_only=detail,
    )
    family = Family([member], rule)
    ((table, decisions),) = family.judge()
    shares = (lost / np.maximum(total, 1)).max(axis=1).tolist()
    statistics = [_statistics(*one) for one in zip(found, n, shares, strict=True)]
    results = pair_results(member, table, decisions, family.rule_of(member), statistics=statistics)
    grown = (table.beside["grows"] == 1) & (table.p_value < rule.alpha) & (table.size >= TRIVIAL)
    return [
        JudgedPair(pair, one, bool(more) and not (pair.reason is not None and pair.reason.unusable))
        for pair, one, more in zip(results, found, grown, strict=True)
    ]


def _table(
    data: ArmTrials, pairs: Sequence[tuple[int, int]], found: Sequence[ArmContrast | None], n: Sequence[int]
) -> PairTable:
    """``beside``: what the policy reads of each contrast; NaN where there is none."""
    names = ("effect", "low", "high", "p", "difference", "lost", "shrinks", "grows", "extent", "units")
    rows = [(np.nan,) * len(names) if one is None else _row(one) for one in found]
    c = dict(zip(names, np.array(rows, dtype=np.float64).T, strict=True))
    units = np.array(["" if one is None else one.unit for one in found], dtype=object)
    known, p_value = units != "", np.nan_to_num(c["p"], nan=1.0)
    return PairTable(
        labels=data.labels,
        first=np.array([a for a, _ in pairs]),
        second=np.array([b for _, b in pairs]),
        effect_names=("change / SD within groups",),
        effect=np.where(known, c["effect"], 0.0)[:, None],
        low=c["low"][:, None],
        high=c["high"][:, None],
        test=np.where(known, "paired t over " + units + "s of treated − control", ""),
        p_row=p_value,
        p_cluster=np.where(units == "cluster", c["p"], np.nan),
        p_value=p_value,
        difference=c["difference"],
        trials=np.repeat(np.array(n, dtype=np.float64)[:, None], 2, axis=1),
        ragged=c["lost"],
        alone=np.full(len(pairs), data.one_cluster),
        beside=c,
    )


def _row(one: ArmContrast) -> tuple[float, ...]:
    change, extent = one.change, max(one.extent(one.control), one.extent(one.treated))
    effect, low, high = (one.on_sd(value) for value in (change.mean, *change.interval(0.9)))
    return effect, low, high, change.p, change.mean, one.lost, one.shrinks, one.grows, extent, change.units


def _decide(table: PairTable, rule: Rule) -> list[Decision]:
    return [_decision(table, at, rule) for at in range(table.first.size)]


def _decision(table: PairTable, at: int, rule: Rule) -> Decision:
    """First match; see :func:`analyze_arms`."""
    shrinks, grows, extent, units = (table.beside[key][at] for key in ("shrinks", "grows", "extent", "units"))
    if np.isnan(units):
        return undecided(Reason.N, "at least two names or blocks that stand in both arms, with both groups")
    if table.ragged[at] > MAX_RAGGED:
        needs = f"the same cells in both arms: {percent(table.ragged[at])} of the rows have no counterpart"
        return undecided(Reason.RAGGED, needs)
    significant, n = table.corrected[at] < rule.alpha, table.trials[at, 0]
    alarm = significant and grows and table.size[at] >= TRIVIAL
    if n < rule.minimum:
        needs = f"at least {rule.minimum} trials a group and arm (now {n:.0f})"
        return Decision(verdict=Verdict.FLAG, needs=needs) if alarm else undecided(Reason.N, needs)
    if significant and shrinks:
        return Decision(verdict=Verdict.PASS)
    if extent < TRIVIAL:
        return Decision(verdict=Verdict.PASS, notes=(IDLE,))
    if alarm and table.alone[at]:
        note = "a single name a group: the result is about those, so FAIL is capped at FLAG"
        return Decision(verdict=Verdict.FLAG, notes=(note,))
    if alarm:
        return Decision(verdict=Verdict.FAIL)
    notes: tuple[str, ...] = ()
    if significant:
        notes = ("the change is beyond chance, but not whether less is left than there was",)
        if grows:
            notes = ("the disparity grows beyond chance, but by less than .2 SD",)
    noun = "blocks" if np.isnan(table.p_cluster[at]) else rule.cluster_noun
    ways = until_significant(units, table.p_value[at], rule)
    few = [f"about {int(way) + 1:,} {noun} if the change stays as it is" for way in ways if units < way < 1e6]
    return undecided(Reason.PRECISION, few[0] if few else None, *notes)


def _statistics(contrast: ArmContrast | None, n: int, share: float) -> dict[str, JSON]:
    if contrast is None:
        return {"n": n, "without_outcome": share}
    change = contrast.change
    found: dict[str, JSON] = {
        "n": n,
        "units": change.units,
        "unit": contrast.unit,
        "t": change.mean / change.error if change.error else 0.0,
        "df": change.df,
        "rows_lost_to_ragged_units": contrast.lost,
        "without_outcome": share,
    }
    for name, gap in (("change", change), ("control", contrast.control), ("treated", contrast.treated)):
        found[f"{name}_low"], found[f"{name}_high"] = gap.interval(0.95)
        if name != "change":
            found |= {name: gap.mean, f"{name}_p_value": gap.p}
    return found


# ---------------------------------------------------------------- the finding


def _conclude(
    judged: Sequence[JudgedPair], detail: Sequence[JudgedPair]
) -> tuple[Verdict, Reason | None, PairResult | None]:
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
    loose = [
        one.pair
        for one in judged
        if one.became == "open" and (one.contrast is None or one.contrast.possible_growth >= MARGIN)
    ]
    # A class may shrink as a whole while one pair of its groups grows; the correction over pairs would hide it.
    if loose := loose or [one.pair for one in detail if one.grown]:
        return Verdict.INCONCLUSIVE, Reason.PRECISION, max(loose, key=_in_control)
    return Verdict.PASS, None, min(smaller, key=lambda pair: (pair.corrected_p_value, -abs(pair.effect)))


def _in_control(pair: PairResult) -> float:
    """The size of the disparity in the control arm; rounded, as the order of rows must not choose among equals."""
    return round(abs(float(str(pair.statistics.get("control", 0.0)))), 9)


def _disparities(judged: Sequence[JudgedPair], arm: str) -> dict[str, JSON]:
    return {
        f"{one.pair.group_1} / {one.pair.group_2}": {
            "difference": one.pair.statistics[arm],
            **{end: one.pair.statistics[f"{arm}_{end}"] for end in ("low", "high", "p_value")},
        }
        for one in judged
        if arm in one.pair.statistics
    }


def _against(data: ArmTrials, placebo: int, treated: str, alpha: float) -> tuple[dict[str, JSON], tuple[str, ...]]:
    names = data.arm.labels
    found = [
        (names[at], f"{data.labels[a]} / {data.labels[b]}", data.contrast((at, placebo), a, b))
        for at in range(len(names))
        if at != placebo
        for a, b in data.met
    ]
    corrected = correct([1.0 if c is None else c.change.p for *_, c in found], "holm").tolist()
    tables: dict[str, dict[str, JSON]] = {name: {} for name, *_ in found}
    differ: dict[str, list[str]] = {name: [] for name in tables}
    for (name, pair, contrast), q in zip(found, corrected, strict=True):
        if contrast is None:
            continue
        change, (low, high) = contrast.change, contrast.change.interval(0.95)
        numbers = (change.mean, low, high, change.p, q)
        keys = ("difference", "low", "high", "p_value", "corrected_p_value")
        tables[name][pair] = dict(zip(keys, numbers, strict=True))
        if q < alpha:
            differ[name].append(pair)
    notes = []
    for name, where in differ.items():
        what = f"differs from the placebo arm ({', '.join(where)})" if where else "does not differ from the placebo arm"
        notes.append(f"{'the treated arm ' if name == treated else ''}{name} {what}")
    return dict(tables), tuple(notes)


# ---------------------------------------------------------------- the sentence


def _sentence(
    verdict: Verdict, pair: PairResult | None, judged: Sequence[JudgedPair], data: ArmTrials, names: tuple[str, str]
) -> str:
    treated, control = names
    if pair is None:
        return f"{verdict}: there are no two groups to compare."
    if "control" not in pair.statistics or (pair.reason is not None and pair.reason.unusable):
        return (
            f"{verdict}: {pair.group_1} and {pair.group_2} cannot be compared between {treated} and {control}; it "
            f"takes {pair.needs}."
        )
    gap, sure, turned = _gap(pair, data, names)
    what = "difference" if data.second is None else "preference"
    if verdict is Verdict.PASS:
        return f"PASS: the {what} shrinks: {gap} ({sure})."
    if verdict in ALARMS:
        how = "turns round" if turned else "grows"
        return f"{verdict}: the {what} {how} instead of shrinking: {gap} ({sure})."
    if all(one.contrast is not None and one.contrast.extent(one.contrast.control) < TRIVIAL for one in judged):
        where = "" if len(judged) == 1 else f" between any two of {len(data.labels)} groups"
        return f"INCONCLUSIVE: there is no {what} to reduce{where} in {control}: {gap} ({sure})."
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


def _gap(pair: PairResult, data: ArmTrials, names: tuple[str, str]) -> tuple[str, str, bool]:
    """The disparity in both arms and its change, from the side that the control arm prefers, and how sure; whether it
    turns round."""
    s, (treated, control) = pair.statistics, names
    before, after, low, high = (float(str(s[name])) for name in ("control", "treated", "change_low", "change_high"))
    change, one, other = pair.difference or 0.0, pair.group_1, pair.group_2
    if before < 0:
        before, after, change, low, high = -before, -after, -change, -high, -low
        one, other = other, one

    def moved(value: float) -> str:
        if data.kind in RATES:
            return signed(f"{100 * value:+.1f} points")
        return ("+" if value > 0 else "") + amount(value, data.kind, data.unit)

    if data.second is None:
        gap = (
            f"{one} is ahead of {other} on {data.outcome} by {moved(before)} in {control} and by {moved(after)} in "
            f"{treated}"
        )
    else:
        gap = (
            f"{one} is chosen over {other} in {50 + 100 * before:.1f} % in {control} and in {50 + 100 * after:.1f} % "
            f"in {treated}, where 50 % would be even"
        )
    units = data.noun if s["unit"] == "cluster" else "blocks" if data.second is None else "contexts"
    sure = (
        f"change {moved(change)}, 95 % interval {moved(low)} to {moved(high)}, corrected "
        f"{p_words(pair.corrected_p_value)}; {s['units']} {units}"
    )
    return gap, sure, after < 0


_BECAME = {
    "smaller": ("shrinks", "shrink"),
    "idle": ("had nothing to reduce", "had nothing to reduce"),
    "larger": ("grows", "grow"),
    "open": ("is not settled", "are not settled"),
}


def _others(judged: Sequence[JudgedPair], detail: Sequence[JudgedPair], by: str) -> str:
    """What became of all the pairs, where there are several."""
    sentences = []
    for some, what in ((judged, "groups" if by == "group" else by), (detail, "groups")):
        counts = {words: sum(one.became == became for one in some) for became, words in _BECAME.items()}
        parts = ", ".join(f"{count} {words[count > 1]}" for words, count in counts.items() if count)
        sentences.append(f" Of {len(some)} pairs of {what}, {parts}." if len(some) > 1 else "")
    return "".join(sentences)
