"""Does one way of running the cells (scrubbed, say) show less disparity than another?"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pytest_fairness.analysis.family import settle_missing
from pytest_fairness.analysis.policy import (
    MARGIN,
    MAX_RAGGED,
    MAX_UNSCORED,
    MINIMUM_N,
    TRIVIAL,
    Decision,
    deciding_pair,
    undecided,
    verdict_by,
)
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import Reading, check_level, cluster_noun, read, scored_rows, several
from pytest_fairness.analysis.sentences import amount, effect_words, p_words, percent
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import ALARMS, JSON, Finding, GroupResult, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import Bools, Coded, Ints, Membership, code, read_design, require_frame
from pytest_fairness.statistics.choices import (
    NEITHER,
    REFUSED,
    UNSCORED,
    Choices,
    block_columns,
    cross,
    read_choices,
    recode,
)
from pytest_fairness.statistics.compare import impute
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.gaps import ArmContrast, Gap, contrast_choices, contrast_scores

if TYPE_CHECKING:
    import pandas as pd

Missing = Literal["left out", "raises the change", "lowers the change"]
"""What becomes of trials without an outcome: the last two set them to the extremes that are furthest apart."""
Became = Literal["smaller", "larger", "idle", "open"]
IDLE = "nothing to reduce: in both arms the whole 90 % interval lies inside ±.2 SD"
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
    whole: ArmTrials
    if outcome is None:
        choices = read_choices(
            labelled, first=first, second=second, chosen=chosen, neither=neither, cluster=cluster, block=blocks
        )
        whole = ChoiceTrials.of(arms, choices)
        data: ArmTrials = whole if classes is None else ChoiceTrials.of(*_pooled_choices(arms, choices, classes))
    else:
        if isinstance(cluster, tuple):
            raise UsageError("cluster=(…, …) is for pairwise choices; an outcome has one cluster a row")
        column = by if classes is None else group
        whole = _read_scores(labelled, arms, outcome, column, cluster, blocks, kind, scorers)
        data = whole if classes is None else whole.pooled(classes)
    rule = ArmRule(treated, control, arms.labels.index(treated), arms.labels.index(control), alpha, correction)
    judged = rule.judge(data)
    detail = [] if classes is None else rule.judge(whole, whole.differing(classes), detail=True)
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


# ---------------------------------------------------------------- the trials of several arms


@dataclass(frozen=True, kw_only=True)
class ArmTrials(ABC):
    """The groups of a table with several arms; ``arm``, ``used`` and what is not used have one entry a row.

    ``met`` are the pairs of groups to contrast; ``noun`` is what clusters are called.
    """

    arm: Coded
    labels: tuple[str, ...]
    met: tuple[tuple[int, int], ...]
    used: Bools
    refused: Bools
    undetermined: Bools
    unscored: Bools
    outcome: str
    kind: OutcomeKind
    unit: str
    one_cluster: bool
    noun: str

    @abstractmethod
    def stood(self, group: int) -> Bools:
        """Rows about *group*."""

    @abstractmethod
    def cluster_of(self, group: int) -> Ints:
        """The cluster of each row as far as it is about *group*."""

    @abstractmethod
    def cells(self, arm: int, a: int, b: int) -> list[Bools]:
        """Rows of *arm* about two groups that have an outcome or lack one: both together, or each by itself."""

    @abstractmethod
    def contrast(self, one: int, other: int, a: int, b: int, missing: Missing) -> ArmContrast | None:
        """Arm *one* − arm *other* on two groups."""

    def count(self, arm: int, a: int, b: int) -> int:
        """The fewest scored trials of two groups in an arm."""
        return min(int(np.sum(self.used & cell)) for cell in self.cells(arm, a, b))

    def unanswered(self, arms: Sequence[int], a: int, b: int) -> tuple[Ints, Ints]:
        """The trials of two groups in *arms* that have no outcome, and all of them."""
        cells = [cell for arm in arms for cell in self.cells(arm, a, b)]
        return np.array([np.sum(cell & ~self.used) for cell in cells]), np.array([np.sum(cell) for cell in cells])

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

    def differing(self, classes: Mapping[str, str]) -> list[tuple[int, int]]:
        """Of the pairs of groups those that differ in their class."""
        return [(a, b) for a, b in self.met if classes[self.labels[a]] != classes[self.labels[b]]]


@dataclass(frozen=True, kw_only=True)
class ChoiceTrials(ArmTrials):
    """Pairwise choices: the disparity is a win rate less one half."""

    choices: Choices

    @classmethod
    def of(cls, arm: Coded, choices: Choices) -> ChoiceTrials:
        low, high = np.minimum(choices.first, choices.second), np.maximum(choices.first, choices.second)
        pairs = sorted({(int(a), int(b)) for a, b in zip(low.tolist(), high.tolist(), strict=True)})
        known, clusters = choices.decided, cross(choices.clusters, arm.codes.size)
        counts = [np.unique(clusters[known & choices.between(a, b)]).size for a, b in pairs]
        named = len(choices.clusters) == 2 or choices.cluster_name == "name"
        return cls(
            arm=arm,
            labels=choices.labels,
            met=tuple(pairs),
            used=known,
            refused=choices.outcome == REFUSED,
            undetermined=choices.outcome == NEITHER,
            unscored=choices.outcome == UNSCORED,
            outcome="chosen",
            kind=OutcomeKind.BINARY,
            unit="",
            one_cluster=bool(choices.clusters) and min(counts, default=2) < 2,
            noun="name pairs" if named else several(choices.cluster_name or "row"),
            choices=choices,
        )

    def stood(self, group: int) -> Bools:
        return self.choices.stood(group)

    def cluster_of(self, group: int) -> Ints:
        names = self.choices.clusters
        return np.where(self.choices.first == group, names[0], names[-1]) if names else np.arange(self.used.size)

    def cells(self, arm: int, a: int, b: int) -> list[Bools]:
        return [self.choices.between(a, b) & (self.arm.codes == arm) & ~self.undetermined]

    def contrast(self, one: int, other: int, a: int, b: int, missing: Missing) -> ArmContrast | None:
        arms, choices = self.arm.codes, self.choices
        lost = ~self.used & ~self.undetermined
        rows = self.used if missing == "left out" else self.used | lost
        here = rows & choices.between(a, b) & ((arms == one) | (arms == other))
        won = np.where(lost, (arms == one) == (missing == "raises the change"), choices.winner == a)[here]
        treated = arms[here] == one
        # The name of the first group's candidate before that of the other's, whoever was listed first.
        sides = tuple(self.cluster_of(group)[here] for group in (a, b)) if len(choices.clusters) == 2 else ()
        clusters = sides or tuple(codes[here] for codes in choices.clusters)
        pairs = cross(clusters, treated.size)
        if np.unique(pairs).size > 1:
            return contrast_choices(won, treated, pairs, "cluster", (sides[0], sides[1]) if sides else None)
        return contrast_choices(won, treated, choices.block[here], "block")


@dataclass(frozen=True, kw_only=True)
class ScoreTrials(ArmTrials):
    """Numbers or yes/no: the disparity is a difference of means."""

    design: Membership
    reading: Reading
    block: Ints

    @classmethod
    def of(cls, arm: Coded, design: Membership, reading: Reading, block: Ints) -> ScoreTrials:
        used, groups = scored_rows(design, reading), design.group
        refused = ~used & design.refused
        counts = [np.unique(design.cluster[groups.codes == at]).size for at in range(len(groups.labels))]
        return cls(
            arm=arm,
            labels=groups.labels,
            met=tuple(combinations(range(len(groups.labels)), 2)),
            used=used,
            refused=refused,
            undetermined=~used & design.undetermined & ~refused,
            unscored=~used & ~refused & ~design.undetermined,
            outcome=reading.name,
            kind=reading.values.kind,
            unit=reading.unit,
            one_cluster=design.cluster_name is not None and min(counts) < 2,
            noun=cluster_noun(design),
            design=design,
            reading=reading,
            block=block,
        )

    def pooled(self, classes: Mapping[str, str]) -> ScoreTrials:
        """With the classes of the groups for groups."""
        design = replace(self.design, group=_pooled(self.design.group, classes))
        return ScoreTrials.of(self.arm, design, self.reading, self.block)

    def stood(self, group: int) -> Bools:
        return np.asarray(self.design.group.codes == group)

    def cluster_of(self, group: int) -> Ints:  # noqa: ARG002 - a row is about one group
        return self.design.cluster

    def cells(self, arm: int, a: int, b: int) -> list[Bools]:
        return [(self.arm.codes == arm) & self.stood(at) for at in (a, b)]

    def contrast(self, one: int, other: int, a: int, b: int, missing: Missing) -> ArmContrast | None:
        arms, design, reading = self.arm.codes, self.design, self.reading
        values, rows = reading.values.values, self.used
        if missing != "left out":
            rows = np.ones(rows.size, dtype=np.bool_)
            for at in (one, other):
                values = impute(
                    values,
                    self.kind,
                    design.group.codes,
                    (a, b),
                    used=self.used,
                    missing=~self.used & (arms == at),
                    first_high=(at == one) == (missing == "raises the change"),
                    scale=(reading.low, reading.high),
                )
        here = rows & np.logical_or.reduce([*self.cells(one, a, b), *self.cells(other, a, b)])
        return contrast_scores(
            values[here],
            second=self.stood(b)[here],
            treated=arms[here] == one,
            cluster=None if design.cluster_name is None else design.cluster[here],
            block=self.block[here],
        )


def _read_scores(
    frame: pd.DataFrame,
    arm: Coded,
    outcome: str | Callable[..., Any],
    by: str,
    cluster: str | None,
    blocks: tuple[str, ...],
    kind: str,
    scorers: Mapping[str, Any] | None,
) -> ScoreTrials:
    reading = read(frame, outcome, kind, None, scorers)
    if reading.values.kind is OutcomeKind.CATEGORICAL:
        raise UsageError(f"outcome {reading.name!r} is categorical: a difference between arms needs numbers or yes/no")
    crossed = cross([code(frame, column, "block").codes for column in blocks], len(frame))
    name = " × ".join(blocks) or None
    if name is not None and len(blocks) > 1:
        frame = frame.assign(**{name: crossed})
    return ScoreTrials.of(arm, read_design(frame, (by,), cluster=cluster, block=name), reading, crossed)


def _pooled(groups: Coded, classes: Mapping[str, str]) -> Coded:
    """The *groups* by the class that each is of. Raises FrameError for a group that *classes* lack."""
    lost = next((label for label in groups.labels if label not in classes), None)
    if lost is not None:
        raise FrameError(f"classes={dict(classes)!r} do not say which class the group {lost!r} is of")
    own = [classes[label] for label in groups.labels]
    return recode(groups, own, own)


def _pooled_choices(arm: Coded, choices: Choices, classes: Mapping[str, str]) -> tuple[Coded, Choices]:
    """The arms and the choices between candidates of different *classes*, with these for groups."""
    first, second = (_pooled(Coded(codes, choices.labels), classes) for codes in (choices.first, choices.second))
    apart = np.asarray(first.codes != second.codes)
    kept = replace(choices, labels=first.labels, first=first.codes, second=second.codes).take(apart)
    return Coded(arm.codes[apart], arm.labels), kept


# ---------------------------------------------------------------- each pair


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A pair with what became of its disparity, and whether it can have grown by less than the margin only.

    ``grown``: by itself, without the correction over pairs, it grew beyond chance. ``idle_control``: there was nothing
    to reduce.
    """

    pair: PairResult
    became: Became
    bounded: bool = False
    grown: bool = False
    idle_control: bool = False


@dataclass(frozen=True, slots=True)
class _Tested:
    """Two groups contrasted, the corrected p of the change, the fewest trials of either in either arm, and how many of
    the trials of each have no outcome."""

    a: int
    b: int
    contrast: ArmContrast
    corrected: float
    n: int
    lost: Ints
    total: Ints


@dataclass(frozen=True, slots=True)
class ArmRule:
    """The contrast, fixed beforehand, and how each of its pairs is judged."""

    treated: str
    control: str
    treated_at: int
    control_at: int
    alpha: float
    correction: str

    def judge(
        self, data: ArmTrials, met: Sequence[tuple[int, int]] | None = None, *, detail: bool = False
    ) -> list[JudgedPair]:
        """All pairs of *data* (or those that *met*) as one family; as a *detail* they only raise the alarm."""
        pairs = data.met if met is None else met
        found = [data.contrast(self.treated_at, self.control_at, a, b, "left out") for a, b in pairs]
        corrected = correct([1.0 if c is None else c.change.p for c in found], self.correction).tolist()
        judged = []
        for (a, b), contrast, q in zip(pairs, found, corrected, strict=True):
            n = min(data.count(at, a, b) for at in (self.treated_at, self.control_at))
            lost, total = data.unanswered((self.treated_at, self.control_at), a, b)
            share = float(np.max(lost / np.maximum(total, 1)))
            blank = PairResult(
                group_1=data.labels[a],
                group_2=data.labels[b],
                metric=data.outcome,
                verdict=Verdict.INCONCLUSIVE,
                alarm_only=detail,
                statistics={"n": n, "without_outcome": share},
            )
            if contrast is None:
                judged.append(_not_shared(blank, share))
            else:
                judged.append(self._judged(data, _Tested(a, b, contrast, q, n, lost, total), blank, len(pairs)))
        return judged

    def _judged(self, data: ArmTrials, test: _Tested, blank: PairResult, family: int) -> JudgedPair:
        contrast = test.contrast
        decision, became = self._decide(data, test)
        if test.lost.any() and decision.reason is not Reason.N:
            decision = self._with_missing(data, test, decision, family)
        usable = decision.reason is None or not decision.reason.unusable
        large = abs(contrast.on_sd(contrast.change.mean)) >= TRIVIAL
        return JudgedPair(
            pair=_result(blank, data, test, decision),
            became=became if decision.verdict is not Verdict.INCONCLUSIVE else "open",
            bounded=contrast.possible_growth < MARGIN,
            grown=usable and contrast.change.p < self.alpha and contrast.grows and large,
            idle_control=contrast.extent(contrast.control) < TRIVIAL,
        )

    def _decide(self, data: ArmTrials, test: _Tested) -> tuple[Decision, Became]:
        """First match; see :func:`analyze_arms`."""
        contrast = test.contrast
        if contrast.lost > MAX_RAGGED:
            needs = f"the same cells in both arms: {percent(contrast.lost)} of the rows have no counterpart"
            return undecided(Reason.RAGGED, needs), "open"
        significant = test.corrected < self.alpha
        alarm = significant and contrast.grows and abs(contrast.on_sd(contrast.change.mean)) >= TRIVIAL
        minimum = MINIMUM_N[data.kind]
        if test.n < minimum:
            needs = f"at least {minimum} trials a group and arm (now {test.n})"
            if alarm:
                return Decision(verdict=Verdict.FLAG, needs=needs), "larger"
            return undecided(Reason.N, needs), "open"
        if significant and contrast.shrinks:
            return Decision(verdict=Verdict.PASS), "smaller"
        if max(contrast.extent(contrast.control), contrast.extent(contrast.treated)) < TRIVIAL:
            return Decision(verdict=Verdict.PASS, notes=(IDLE,)), "idle"
        if alarm:
            if data.one_cluster:
                note = "a single name a group: the result is about those, so FAIL is capped at FLAG"
                return Decision(verdict=Verdict.FLAG, notes=(note,)), "larger"
            return Decision(verdict=Verdict.FAIL), "larger"
        notes: tuple[str, ...] = ()
        if significant and contrast.grows:
            notes = ("the disparity grows beyond chance, but by less than .2 SD",)
        elif significant:
            notes = ("the change is beyond chance, but not whether less is left than there was",)
        needed = _needs(test, self.alpha, data.noun)
        return undecided(Reason.PRECISION, needed, *notes), "open"

    def _with_missing(self, data: ArmTrials, test: _Tested, decision: Decision, family: int) -> Decision:
        def imputed(raised: bool) -> tuple[Decision, bool]:
            missing: Missing = "raises the change" if raised else "lowers the change"
            found = data.contrast(self.treated_at, self.control_at, test.a, test.b, missing)
            if found is None:
                return undecided(Reason.UNSCORED, None), False
            p = test.contrast.change.p
            factor = test.corrected / p if p > 0 else float(family)
            return self._decide(data, replace(test, contrast=found, corrected=min(1.0, found.change.p * factor)))[
                0
            ], True

        least = test.contrast.change.mean <= 0
        return settle_missing(decision, test.lost, test.total, "trials", imputed, least=least)


def _not_shared(blank: PairResult, share: float) -> JudgedPair:
    """Two groups that share too little between the arms to be contrasted."""
    unread = share > MAX_UNSCORED
    needs = "at least two names or blocks that stand in both arms, with both groups"
    if unread:
        needs = f"an outcome for more trials: {percent(share)} of a group's have none"
    return JudgedPair(replace(blank, reason=Reason.UNSCORED if unread else Reason.N, needs=needs), "open")


def _result(blank: PairResult, data: ArmTrials, test: _Tested, decision: Decision) -> PairResult:
    contrast, change = test.contrast, test.contrast.change
    effect, low, high = (contrast.on_sd(value) for value in (change.mean, *change.interval(0.9)))
    shown = math.isfinite(high - low) and low < effect < high
    return replace(
        blank,
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
            **_ends("change", change),
            "control": contrast.control.mean,
            **_ends("control", contrast.control),
            "control_p_value": contrast.control.p,
            "treated": contrast.treated.mean,
            **_ends("treated", contrast.treated),
            "treated_p_value": contrast.treated.p,
            "rows_lost_to_ragged_units": contrast.lost,
            "without_outcome": blank.statistics["without_outcome"],
        },
        notes=decision.notes,
    )


def _ends(name: str, gap: Gap) -> dict[str, JSON]:
    low, high = gap.interval(0.95)
    return {f"{name}_low": low, f"{name}_high": high}


def _needs(test: _Tested, alpha: float, noun: str) -> str | None:
    p = test.contrast.change.p
    if not 1e-15 < p < 1:
        return None
    normal = NormalDist()
    share = alpha * p / max(test.corrected, p)
    ratio = normal.inv_cdf(1 - share / 2) / normal.inv_cdf(1 - p / 2)
    units = test.contrast.change.units * ratio**2
    what = noun if test.contrast.unit == "cluster" else "blocks"
    return f"about {int(units) + 1:,} {what} if the change stays as it is" if ratio > 1 and units < 1e6 else None


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
    loose = [one.pair for one in judged if one.became == "open" and not one.bounded]
    # A class may shrink as a whole while one pair of its groups grows; the correction over pairs would hide it.
    if loose := loose or [one.pair for one in detail if one.grown]:
        return Verdict.INCONCLUSIVE, Reason.PRECISION, max(loose, key=_in_control)
    return Verdict.PASS, None, min(smaller, key=lambda pair: (pair.corrected_p_value, -abs(pair.effect)))


def _in_control(pair: PairResult) -> float:
    """The size of the disparity in the control arm; rounded, as the order of rows must not choose among equals."""
    return round(abs(float(str(pair.statistics.get("control", 0.0)))), 9)


def _disparities(judged: Sequence[JudgedPair], arm: str, rule: ArmRule) -> dict[str, JSON]:
    which = "treated" if arm == rule.treated else "control"
    return {
        f"{one.pair.group_1} / {one.pair.group_2}": {
            "difference": one.pair.statistics[which],
            **{end: one.pair.statistics[f"{which}_{end}"] for end in ("low", "high", "p_value")},
        }
        for one in judged
        if which in one.pair.statistics
    }


def _against(data: ArmTrials, placebo: int, treated: str, alpha: float) -> tuple[dict[str, JSON], tuple[str, ...]]:
    others = [at for at in range(len(data.arm.labels)) if at != placebo]
    found = [(at, a, b, data.contrast(at, placebo, a, b, "left out")) for at in others for a, b in data.met]
    corrected = correct([1.0 if c is None else c.change.p for *_, c in found], "holm").tolist()
    tables: dict[str, dict[str, JSON]] = {}
    differ: dict[str, list[str]] = {data.arm.labels[at]: [] for at in others}
    for (at, a, b, contrast), q in zip(found, corrected, strict=True):
        name, pair = data.arm.labels[at], f"{data.labels[a]} / {data.labels[b]}"
        table = tables.setdefault(name, {})
        if contrast is not None:
            change, (low, high) = contrast.change, contrast.change.interval(0.95)
            table[pair] = {
                "difference": change.mean, "low": low, "high": high, "p_value": change.p, "corrected_p_value": q,
            }  # fmt: skip
            if q < alpha:
                differ[name].append(pair)
    notes = []
    for name, where in differ.items():
        what = f"differs from the placebo arm ({', '.join(where)})" if where else "does not differ from the placebo arm"
        notes.append(f"{'the treated arm ' if name == treated else ''}{name} {what}")
    return dict(tables), tuple(notes)


# ---------------------------------------------------------------- the sentence


def _sentence(
    verdict: Verdict, pair: PairResult | None, judged: Sequence[JudgedPair], data: ArmTrials, rule: ArmRule
) -> str:
    if pair is None:
        return f"{verdict}: there are no two groups to compare."
    if "control" not in pair.statistics or (pair.reason is not None and pair.reason.unusable):
        return (
            f"{verdict}: {pair.group_1} and {pair.group_2} cannot be compared between {rule.treated} and "
            f"{rule.control}; it takes {pair.needs}."
        )
    gap, sure, turned = _gap(pair, data, rule)
    what = "preference" if isinstance(data, ChoiceTrials) else "difference"
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


def _gap(pair: PairResult, data: ArmTrials, rule: ArmRule) -> tuple[str, str, bool]:
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

    choices = isinstance(data, ChoiceTrials)
    if choices:
        gap = (
            f"{names[0]} is chosen over {names[1]} in {50 + 100 * before:.1f} % in {rule.control} and in "
            f"{50 + 100 * after:.1f} % in {rule.treated}, where 50 % would be even"
        )
    else:
        gap = (
            f"{names[0]} is ahead of {names[1]} on {data.outcome} by {signed(before)} in {rule.control} and by "
            f"{signed(after)} in {rule.treated}"
        )
    units = data.noun if s["unit"] == "cluster" else "contexts" if choices else f"{s['unit']}s"
    sure = (
        f"change {signed(change)}, 95 % interval {signed(low)} to {signed(high)}, corrected "
        f"{p_words(pair.corrected_p_value)}; {s['units']} {units}"
    )
    return gap, sure, after < 0


_BECAME: Mapping[Became, tuple[str, str]] = {
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
