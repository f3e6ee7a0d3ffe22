"""Does one way of running the cells (scrubbed, say) show less disparity than another?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_fairness.analysis.family import Family, Member
from pytest_fairness.analysis.policy import (
    MARGIN,
    MAX_RAGGED,
    TRIVIAL,
    Decision,
    Rule,
    first_match,
    undecided,
    until_significant,
    verdict_by,
)
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import Reading, ScoredRows, check_level, nouns, read, several
from pytest_fairness.analysis.sentences import RATES, amount
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import (
    ALARMS,
    JSON,
    Finding,
    GroupResult,
    OutcomeKind,
    PairResult,
    Reason,
    Verdict,
    deciding_pair,
)
from pytest_fairness.statistics.arrays import (
    Bools,
    Coded,
    Ints,
    Values,
    code,
    cross,
    read_design,
    require_frame,
)
from pytest_fairness.statistics.choices import (
    FIRST,
    NEITHER,
    REFUSED,
    UNSCORED,
    block_columns,
    read_choices,
)
from pytest_fairness.statistics.compare import impute
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.gaps import ArmContrast, contrast_choices, contrast_scores
from pytest_fairness.statistics.pair_table import PairTable
from pytest_fairness.words import effect_size, p_equals, percent, signed

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
    frame = require_frame(frame)
    arms = code(frame, arm, "arm")
    _check_arms(arm, arms.labels, treated, control, placebo)
    blocks = block_columns(frame, block)
    # Every arm repeats the others' cells: a column of this name keeps them from looking like
    # duplicates.
    labelled = frame.assign(arm=frame[arm])
    seats: tuple[str, ...] = (group if classes is not None else by,)
    if outcome is None:
        seats = first, second
        columns = {"first": first, "second": second, "chosen": chosen, "neither": neither}
        trials = partial(choice_trials, columns=columns, cluster=cluster, blocks=blocks)
    elif isinstance(cluster, tuple):
        raise UsageError("cluster=(…, …) is for pairwise choices; an outcome has one cluster a row")
    else:
        reading = read(labelled, outcome, kind, None, scorers)
        if reading.values.kind is OutcomeKind.CATEGORICAL:
            what = f"outcome {reading.name!r} is categorical"
            raise UsageError(f"{what}: a difference between arms needs numbers or yes/no")
        trials = partial(score_trials, reading=reading, by=seats, cluster=cluster, blocks=blocks)
    whole = data = trials(labelled, arms)
    detail: list[JudgedPair] = []
    names = (treated, control)
    at = (arms.labels.index(treated), arms.labels.index(control))
    rule = Rule(alpha=alpha, correction=correction, cluster_noun=whole.noun)
    if classes is not None:
        _check_classes(classes, whole.labels)
        of = [labelled[seat].map(str).map(classes) for seat in seats]
        kept = (of[0] != of[-1]).to_numpy() | (len(of) == 1)
        # Repetitions of several groups are repeated within a class.
        pooled = labelled.drop(columns="repetition", errors="ignore").assign(
            **dict(zip(seats, of, strict=True))
        )
        if outcome is None:
            pooled[chosen] = labelled[chosen].map(lambda label: classes.get(str(label), label))
        data = trials(pooled[kept], Coded(arms.codes[kept], arms.labels))
        apart = [
            (a, b) for a, b in whole.met if classes[whole.labels[a]] != classes[whole.labels[b]]
        ]
        detail = _judge(whole, apart, at, rule, detail=True)
    judged = _judge(data, data.met, at, rule)
    verdict, reason, decider = _conclude(judged, detail)
    details: dict[str, JSON] = {"treated": treated, "control": control, "placebo": placebo}
    details["disparity"] = {
        treated: _disparities((*judged, *detail), "treated"),
        control: _disparities((*judged, *detail), "control"),
    }
    notes: tuple[str, ...] = ()
    if placebo is not None:
        details["against_placebo"], notes = _against(
            data, arms.labels.index(placebo), treated, alpha
        )
    return finding_of(
        frame,
        assertion="arm_reduces_disparity",
        verdict=verdict,
        reason=reason,
        sentence=f"{verdict}: {_sentence(verdict, decider, judged, data, names)}."
        + _others(judged, detail, by),
        by=by,
        groups=[data.group(place, at) for place in range(len(data.labels))],
        decider=decider,
        tested=lambda pair: (
            f"t = {pair.statistics['t']:.4f}",
            f"Δ/SD = {effect_size(pair.effect)}",
        ),
        notes=notes,
        pairs=[compared.pair for compared in (*judged, *detail)],
        outcome=data.reading.name,
        kind=data.reading.values.kind,
        unit=data.reading.unit,
        cluster=" and ".join(cluster) if isinstance(cluster, tuple) else cluster,
        block=" × ".join(blocks) or None,
        family={
            "size": len(judged),
            "method": correction,
            "alpha": alpha,
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


def _check_classes(classes: Mapping[str, str], labels: Sequence[str]) -> None:
    for label in labels:
        if label not in classes:
            raise FrameError(
                f"classes={dict(classes)!r} do not say which class the group {label!r} is of"
            )


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


# ---------------------------------------------------------------- the trials of several arms


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmTrials:
    """A table with several arms; the arrays have one entry a row.

    Of pairwise choices a row is about the groups ``first`` and ``second``, its ``outcome`` is FIRST
    or SECOND, and the disparity is a win rate less one half. Of scores it is about ``first``
    (``second`` is None), its outcome is FIRST where there is a value, and the disparity is a
    difference of means. ``clusters`` are none, one or the names of both candidates, and ``noun`` is
    what they are called; ``reading`` is that of the scores.
    """

    noun: str
    labels: tuple[str, ...]
    arm: Coded
    first: Ints
    second: Ints | None
    outcome: Ints
    clusters: tuple[Ints, ...]
    block: Ints
    reading: Reading

    @property
    def used(self) -> Bools:
        return self.outcome >= 0

    @property
    def met(self) -> list[tuple[int, int]]:
        """The pairs of groups to contrast."""
        if self.second is None:
            return list(combinations(range(len(self.labels)), 2))
        low = np.minimum(self.first, self.second)
        high = np.maximum(self.first, self.second)
        return sorted(set(zip(low.tolist(), high.tolist(), strict=True)))

    @property
    def one_cluster(self) -> bool:
        """Return whether the result is about single names."""
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
        """Rows of each arm about two groups that have an outcome or lack one: both together, or
        each by itself.
        """
        sides = [self.stood(a), self.stood(b)]
        if self.second is not None:
            sides = [sides[0] & sides[1] & (self.outcome != NEITHER)]
        return [(self.arm.codes == arm) & side for arm in arms for side in sides]

    def group(self, at: int, arms: Sequence[int]) -> GroupResult:
        """The trials of one group in several arms."""
        here = np.isin(self.arm.codes, arms) & self.stood(at)
        refused, undetermined, unscored = (
            int(np.sum(here & (self.outcome == status))) for status in (REFUSED, NEITHER, UNSCORED)
        )
        return GroupResult(
            group=self.labels[at],
            n=int(np.sum(here & self.used)),
            clusters=np.unique(self.cluster_of(at)[here & self.used]).size,
            refused=refused,
            undetermined=undetermined,
            unscored=unscored,
        )

    def contrast(
        self, arms: tuple[int, int], a: int, b: int, raised: bool | None = None
    ) -> ArmContrast | None:
        """The first of two *arms* − the second on two groups.

        Trials without an outcome are left out, or set to the extremes: such that the change is
        *raised*, or lowered.
        """
        here = np.logical_or.reduce(self.cells(arms, a, b)) & (
            self.used if raised is None else True
        )
        treated = self.arm.codes == arms[0]
        lost = ~self.used
        names = [self.cluster_of(group)[here] for group in (a, b)]
        if self.second is None:
            values = self.reading.values.values
            for arm in arms if raised is not None else ():
                values = impute(
                    values,
                    self.reading.values.kind,
                    self.first,
                    (a, b),
                    used=self.used,
                    missing=lost & (self.arm.codes == arm),
                    first_high=(arm == arms[0]) == raised,
                    scale=(self.reading.low, self.reading.high),
                )
            return contrast_scores(
                values[here],
                second=self.stood(b)[here],
                treated=treated[here],
                cluster=names[0] if self.clusters else None,
                block=self.block[here],
            )
        won = np.where(lost, treated == raised, (self.first == a) == (self.outcome == FIRST))[here]
        if len(self.clusters) == 2:
            # The name of the first group's candidate before that of the other's, whoever was listed
            # first.
            pairs = cross(names, won.size)
        else:
            pairs = cross([codes[here] for codes in self.clusters], won.size)
        if np.unique(pairs).size > 1:
            both = None
            if len(self.clusters) == 2:
                both = (names[0], names[1])
            return contrast_choices(won, treated[here], pairs, "cluster", both)
        return contrast_choices(won, treated[here], self.block[here], "block")


def choice_trials(
    frame: pd.DataFrame,
    arms: Coded,
    *,
    columns: Mapping[str, str],
    cluster: str | tuple[str, str] | None,
    blocks: tuple[str, ...],
) -> ArmTrials:
    read = read_choices(frame, **columns, cluster=cluster, block=blocks)
    named = len(read.clusters) == 2 or read.cluster_name == "name"
    values = Values(values=(read.outcome == FIRST).astype(np.float64), kind=OutcomeKind.BINARY)
    return ArmTrials(
        noun="name pairs" if named else several(read.cluster_name or "row"),
        labels=read.labels,
        arm=arms,
        first=read.first,
        second=read.second,
        outcome=read.outcome,
        clusters=read.clusters,
        block=read.block,
        reading=Reading(name="chosen", values=values, unit="", lower_is_worse=True),
    )


def score_trials(
    frame: pd.DataFrame,
    arms: Coded,
    *,
    reading: Reading,
    by: Sequence[str],
    cluster: str | None,
    blocks: tuple[str, ...],
) -> ArmTrials:
    crossed = cross([code(frame, column, "block").codes for column in blocks], len(frame))
    name = " × ".join(blocks) or None
    if name is not None and len(blocks) > 1:
        frame = frame.assign(**{name: crossed})
    design = read_design(frame, by, cluster=cluster, block=name)
    states = [ScoredRows.of(design, reading).used, design.refused, design.undetermined]
    return ArmTrials(
        noun=nouns(frame, design)["cluster_noun"],
        labels=design.group.labels,
        arm=arms,
        first=design.group.codes,
        second=None,
        outcome=np.select(states, [FIRST, REFUSED, NEITHER], UNSCORED).astype(np.intp),
        clusters=() if design.cluster_name is None else (design.cluster,),
        block=crossed,
        reading=reading,
    )


# ---------------------------------------------------------------- each pair


class JudgedPair(NamedTuple):
    """A pair with its contrast (None where the arms share too little), and whether by itself,
    without the correction over pairs, it grew beyond chance."""

    pair: PairResult
    contrast: ArmContrast | None
    grown: bool

    @property
    def became(self) -> str:
        """Return what became of the disparity; a key of :data:`_BECAME`."""
        if self.pair.verdict is Verdict.PASS:
            if IDLE in self.pair.notes:
                return "idle"
            return "smaller"
        if self.pair.verdict is Verdict.INCONCLUSIVE:
            return "open"
        return "larger"


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
    contrasts = [data.contrast(arms, a, b) for a, b in pairs]
    cells = np.array([data.cells(arms, a, b) for a, b in pairs])  # pairs × cells × rows
    used = (cells & data.used).sum(axis=2)
    total = cells.sum(axis=2)
    table = _table(data, pairs, contrasts, used.min(axis=1))

    def imputed(at: int, raised: bool, _: bool) -> PairTable | None:
        again = data.contrast(arms, *pairs[at], raised)
        if again is None:
            return None
        return _table(data, [pairs[at]], [again], used[at].min(keepdims=True))

    shares = ((total - used) / np.maximum(total, 1)).max(axis=1).tolist()
    statistics = [
        _statistics(*contrast)
        for contrast in zip(contrasts, table.trials[:, 0].astype(int).tolist(), shares, strict=True)
    ]
    member = Member(
        name=data.reading.name,
        table=table,
        kind=data.reading.values.kind,
        decide=_decide,
        lost=total - used,
        total=total,
        imputed=imputed,
        lower_is_worse=None,
        alarm_only=detail,
        report=lambda _: statistics,
    )
    family = Family([member], rule)
    judged = family.judge()
    grown = (table.beside["grows"] == 1) & (table.p_value < rule.alpha) & (table.size >= TRIVIAL)
    return [
        JudgedPair(
            pair, contrast, bool(more) and not (pair.reason is not None and pair.reason.unusable)
        )
        for pair, contrast, more in zip(family.results(judged), contrasts, grown, strict=True)
    ]


def _table(
    data: ArmTrials,
    pairs: Sequence[tuple[int, int]],
    contrasts: Sequence[ArmContrast | None],
    n: Ints,
) -> PairTable:
    """``beside``: what the policy reads of each contrast; NaN where there is none."""
    rows = [(np.nan,) * 10 if contrast is None else _row(contrast) for contrast in contrasts]
    effect, low, high, p, difference, lost, shrinks, grows, extent, units = np.array(
        rows, dtype=np.float64
    ).T
    over = np.array(
        ["" if contrast is None else contrast.unit for contrast in contrasts], dtype=object
    )
    p_value = np.nan_to_num(p, nan=1.0)
    return PairTable(
        labels=data.labels,
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
        beside={"shrinks": shrinks, "grows": grows, "extent": extent, "units": units},
    )


def _row(contrast: ArmContrast) -> tuple[float, ...]:
    change = contrast.change
    extent = max(contrast.extent(contrast.control), contrast.extent(contrast.treated))
    effect, low, high = (contrast.on_sd(value) for value in (change.mean, *change.interval(0.9)))
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


def _decide(table: PairTable, rule: Rule) -> list[Decision]:
    """See :func:`analyze_arms`."""
    shrinks, grows, extent, units = (
        table.beside[key] for key in ("shrinks", "grows", "extent", "units")
    )
    significant = table.corrected < rule.alpha
    n = table.trials[:, 0]
    alarm = significant & (grows == 1) & (table.size >= TRIVIAL)
    single = "a single name a group: the result is about those, so FAIL is capped at FLAG"

    def few(_table: PairTable, at: int, rule: Rule) -> Decision:
        needs = f"at least {rule.minimum} trials a group and arm (now {n[at]:.0f})"
        if alarm[at]:
            return Decision(Verdict.FLAG, needs=needs)
        return undecided(Reason.N, needs)

    def ragged(table: PairTable, at: int, _rule: Rule) -> Decision:
        needs = (
            f"the same cells in both arms: {percent(table.ragged[at], 0)} of the rows have no "
            "counterpart"
        )
        return undecided(Reason.RAGGED, needs)

    def unsettled(table: PairTable, at: int, rule: Rule) -> Decision:
        small = "the disparity grows beyond chance, but by less than .2 SD"
        note = "the change is beyond chance, but not whether less is left than there was"
        if grows[at]:
            note = small
        noun = "blocks"
        if not np.isnan(table.p_cluster[at]):
            noun = rule.cluster_noun
        ways = until_significant(units[at], table.p_value[at], rule)
        few = [
            f"about {int(way) + 1:,} {noun} if the change stays as it is"
            for way in ways
            if units[at] < way < 1e6
        ]
        return undecided(
            Reason.PRECISION, few[0] if few else None, *([note] if significant[at] else [])
        )

    nothing = undecided(
        Reason.N, "at least two names or blocks that stand in both arms, with both groups"
    )
    return first_match(
        table,
        rule,
        (np.isnan(units), nothing),
        (table.ragged > MAX_RAGGED, ragged),
        (n < rule.minimum, few),
        (significant & (shrinks == 1), Decision(Verdict.PASS)),
        (extent < TRIVIAL, Decision(Verdict.PASS, notes=(IDLE,))),
        (alarm & table.alone, Decision(Verdict.FLAG, notes=(single,))),
        (alarm, Decision(Verdict.FAIL)),
        (True, unsettled),
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
        statistics |= {} if name == "change" else {name: gap.mean, f"{name}_p_value": gap.p}
    return statistics


# ---------------------------------------------------------------- the finding


def _conclude(
    judged: Sequence[JudgedPair], detail: Sequence[JudgedPair]
) -> tuple[Verdict, Reason | None, PairResult | None]:
    """The verdict on the class, and the pair that the sentence is about."""
    pairs = [compared.pair for compared in judged]
    decider = deciding_pair([*pairs, *(compared.pair for compared in detail)])
    if decider is None or decider.verdict in ALARMS:
        return *verdict_by(decider), decider
    unusable = [pair for pair in pairs if pair.reason is not None and pair.reason.unusable]
    smaller = [compared.pair for compared in judged if compared.became == "smaller"]
    # Of several the pair with most to reduce: the one that a reader asks about first.
    if unusable or not smaller:
        decider = max(unusable or pairs, key=_in_control)
        return Verdict.INCONCLUSIVE, decider.reason or Reason.PRECISION, decider
    loose = [
        compared.pair
        for compared in judged
        if compared.became == "open"
        and (compared.contrast is None or compared.contrast.possible_growth >= MARGIN)
    ]
    # A class may shrink as a whole while one pair of its groups grows; the correction over pairs
    # would hide it.
    if loose := loose or [compared.pair for compared in detail if compared.grown]:
        return Verdict.INCONCLUSIVE, Reason.PRECISION, max(loose, key=_in_control)
    return (
        Verdict.PASS,
        None,
        min(smaller, key=lambda pair: (pair.corrected_p_value, -abs(pair.effect))),
    )


def _in_control(pair: PairResult) -> float:
    """The size of the disparity in the control arm; rounded, as the order of rows must not choose
    among equals.
    """
    return round(abs(float(str(pair.statistics.get("control", 0.0)))), 9)


def _against(
    data: ArmTrials, placebo: int, treated: str, alpha: float
) -> tuple[dict[str, JSON], tuple[str, ...]]:
    arms = {at: name for at, name in enumerate(data.arm.labels) if at != placebo}
    met = [(at, a, b, data.contrast((at, placebo), a, b)) for at in arms for a, b in data.met]
    corrected = correct([1.0 if c is None else c.change.p for *_, c in met], "holm").tolist()
    tables: dict[str, JSON] = {}
    notes = []
    for at, name in arms.items():
        table: dict[str, dict[str, JSON]] = {}
        for (which, a, b, contrast), q in zip(met, corrected, strict=True):
            if which == at and contrast is not None:
                low, high = contrast.change.interval(0.95)
                numbers = {
                    "difference": contrast.change.mean,
                    "low": low,
                    "high": high,
                    "p_value": contrast.change.p,
                }
                table[f"{data.labels[a]} / {data.labels[b]}"] = {**numbers, "corrected_p_value": q}
        where = [
            pair
            for pair, numbers in table.items()
            if float(str(numbers["corrected_p_value"])) < alpha
        ]
        what = "does not differ from the placebo arm"
        if where:
            what = f"differs from the placebo arm ({', '.join(where)})"
        notes.append(f"{'the treated arm ' if name == treated else ''}{name} {what}")
        tables[name] = dict(table)
    return tables, tuple(notes)


# ---------------------------------------------------------------- the sentence


def _sentence(
    verdict: Verdict,
    pair: PairResult | None,
    judged: Sequence[JudgedPair],
    data: ArmTrials,
    names: tuple[str, str],
) -> str:
    treated, control = names
    if pair is None:
        return "there are no two groups to compare"
    if "control" not in pair.statistics or (pair.reason is not None and pair.reason.unusable):
        two = f"{pair.group_1} and {pair.group_2}"
        return f"{two} cannot be compared between {treated} and {control}; it takes {pair.needs}"
    gap, sure, turned = _gap(pair, data, names)
    what = "preference"
    if data.second is None:
        what = "difference"
    if verdict is Verdict.PASS:
        return f"the {what} shrinks: {gap} ({sure})"
    if verdict in ALARMS:
        return (
            f"the {what} {'turns round' if turned else 'grows'} instead of shrinking: {gap} "
            f"({sure})"
        )
    if all(
        compared.contrast is not None
        and compared.contrast.extent(compared.contrast.control) < TRIVIAL
        for compared in judged
    ):
        where = ""
        if len(judged) != 1:
            where = f" between any two of {len(data.labels)} groups"
        return f"there is no {what} to reduce{where} in {control}: {gap} ({sure})"
    if pair.alarm_only:
        return f"by itself the {what} grows here, although it shrinks as a whole: {gap} ({sure})"
    needs = ""
    if pair.needs:
        needs = f"; it would take {pair.needs}"
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
    s, (treated, control), kind = pair.statistics, names, data.reading.values.kind
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
            return signed(f"{100 * value:+.1f} points")
        return ("+" if value > 0 else "") + amount(value, kind, data.reading.unit)

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
    text = ""
    for some, what in ((judged, "groups" if by == "group" else by), (detail, "groups")):
        counts = Counter(compared.became for compared in some)
        parts = [
            f"{counts[became]} {words[counts[became] > 1]}"
            for became, words in _BECAME.items()
            if counts[became]
        ]
        if len(some) > 1:
            text += f" Of {len(some)} pairs of {what}, {', '.join(parts)}."
    return text
