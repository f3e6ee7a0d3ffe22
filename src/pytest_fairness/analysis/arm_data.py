"""The trials of several arms: which arm each row is of, and how two arms are contrasted on two groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pytest_fairness.analysis.reading import Reading, cluster_noun, read, scored_rows, several
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import GroupResult, OutcomeKind
from pytest_fairness.statistics.arms import ArmContrast, ArmRows, contrast_arms, contrast_choices
from pytest_fairness.statistics.arrays import Coded, code, read_design
from pytest_fairness.statistics.choices import FIRST, NEITHER, REFUSED, UNSCORED, Choices, cross
from pytest_fairness.statistics.compare import impute

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.statistics.arrays import Bools, Design, Ints

Missing = Literal["left out", "raises the change", "lowers the change"]
"""What becomes of trials without an outcome: the last two set them to the extremes that are furthest apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmData:
    """The groups of a table with several arms, and how to contrast two arms on two groups.

    ``met`` are the pairs of groups to contrast. ``count(arm, a, b)`` gives the fewest scored trials of the two groups
    in an arm, ``missing(arm, a, b)`` the share of their trials there that have no outcome, ``group(at, arms)`` the
    trials of one group in several arms; ``noun`` is what clusters are called, ``choices`` says whether the trials are
    choices between two candidates.
    """

    arms: tuple[str, ...]
    labels: tuple[str, ...]
    met: tuple[tuple[int, int], ...]
    contrast: Callable[[int, int, int, int, Missing], ArmContrast | None]
    count: Callable[[int, int, int], int]
    missing: Callable[[int, int, int], float]
    group: Callable[[int, Sequence[int]], GroupResult]
    outcome: str
    kind: OutcomeKind
    unit: str
    one_cluster: bool
    noun: str
    choices: bool = False


def arms_of_choices(arm: Coded, choices: Choices) -> ArmData:
    """Pairwise choices, those of *arm* (one code a row)."""
    arms = arm.codes
    known = choices.decided
    open_ = ~known & (choices.outcome != NEITHER)
    low, high = np.minimum(choices.first, choices.second), np.maximum(choices.first, choices.second)
    won_low = np.where(choices.outcome == FIRST, choices.first, choices.second) == low
    clusters: Ints | None = None
    sides = choices.clusters
    if choices.clusters:
        if len(sides) == 2:
            swap = choices.first > choices.second
            sides = (np.where(swap, sides[1], sides[0]), np.where(swap, sides[0], sides[1]))
        clusters = cross(sides, arms.size)

    def between(a: int, b: int) -> Bools:
        return np.asarray((low == a) & (high == b))

    def contrast(one: int, other: int, a: int, b: int, missing: Missing) -> ArmContrast | None:
        rows = known if missing == "left out" else known | open_
        here = rows & between(a, b) & ((arms == one) | (arms == other))
        won = np.where(open_, (arms == one) == (missing == "raises the change"), won_low)
        if clusters is not None and np.unique(clusters[here]).size > 1:
            names = (sides[0][here], sides[1][here]) if len(sides) == 2 else None
            return contrast_choices(won[here], arms[here] == one, clusters[here], "cluster", names)
        return contrast_choices(won[here], arms[here] == one, choices.block[here], "block")

    def share(one: int, a: int, b: int) -> float:
        here = between(a, b) & (arms == one) & (known | open_)
        return float(open_[here].mean()) if here.any() else 0.0

    def group(at: int, those: Sequence[int]) -> GroupResult:
        here = np.isin(arms, those) & ((choices.first == at) | (choices.second == at))
        own = np.where(choices.first == at, choices.clusters[0], choices.clusters[-1]) if choices.clusters else low
        stood = own[here & known]
        return GroupResult(
            group=choices.labels[at],
            n=stood.size,
            clusters=np.unique(stood).size if choices.clusters else stood.size,
            refused=int(np.sum(here & (choices.outcome == REFUSED))),
            undetermined=int(np.sum(here & (choices.outcome == NEITHER))),
            unscored=int(np.sum(here & (choices.outcome == UNSCORED))),
        )

    pairs = sorted({(int(a), int(b)) for a, b in zip(low.tolist(), high.tolist(), strict=True)})
    named = len(choices.clusters) == 2 or choices.cluster_name == "name"
    noun = "name pairs" if named else several(choices.cluster_name or "row")
    single = clusters is not None and any(np.unique(clusters[known & between(a, b)]).size < 2 for a, b in pairs)
    return ArmData(
        arms=arm.labels,
        labels=choices.labels,
        met=tuple(pairs),
        contrast=contrast,
        count=lambda one, a, b: int(np.sum(known & between(a, b) & (arms == one))),
        missing=share,
        group=group,
        outcome="chosen",
        kind=OutcomeKind.BINARY,
        unit="",
        one_cluster=single,
        noun=noun,
        choices=True,
    )


def arms_of_scores(
    frame: pd.DataFrame,
    arm: Coded,
    outcome: str | Callable[..., Any],
    by: str,
    cluster: str | None,
    blocks: tuple[str, ...],
    kind: str,
    scorers: Mapping[str, Any] | None,
    classes: Mapping[str, str] | None,
) -> tuple[ArmData, ArmData]:
    """The groups of column *by* on an *outcome* of numbers or yes/no; and, with *classes*, those of the groups."""
    reading = read(frame, outcome, kind, None, scorers)
    if reading.values.kind is OutcomeKind.CATEGORICAL:
        raise UsageError(f"outcome {reading.name!r} is categorical: a difference between arms needs numbers or yes/no")
    crossed = cross([code(frame, column, "block").codes for column in blocks], len(frame))
    name = " × ".join(blocks) or None
    if len(blocks) > 1:
        frame = frame.assign(**{str(name): crossed})
    design = read_design(frame, (by,), cluster=cluster, block=name)
    of_groups = _scores(design, reading, arm, crossed)
    if classes is None:
        return of_groups, of_groups
    return of_groups, _scores(replace(design, group=pooled(design.group, classes)), reading, arm, crossed)


def _scores(design: Design, reading: Reading, arm: Coded, block: Ints) -> ArmData:
    used, labels = scored_rows(design, reading), design.group.labels
    codes, y, arms = design.group.codes, reading.values.values, arm.codes

    def of(one: int, at: int) -> Bools:
        return np.asarray((arms == one) & (codes == at))

    def contrast(one: int, other: int, a: int, b: int, missing: Missing) -> ArmContrast | None:
        values, rows = y, used
        if missing != "left out":
            rows = np.ones(used.size, dtype=np.bool_)
            for at in (one, other):
                values = impute(
                    values, reading.values.kind, codes, (a, b), used=used, missing=~used & (arms == at),
                    first_high=(at == one) == (missing == "raises the change"), scale=(reading.low, reading.high),
                )  # fmt: skip
        here = rows & (of(one, a) | of(one, b) | of(other, a) | of(other, b))
        return contrast_arms(
            ArmRows(
                y=values[here],
                second=codes[here] == b,
                treated=arms[here] == one,
                cluster=None if design.cluster_name is None else design.cluster[here],
                block=block[here],
            )
        )

    def group(at: int, those: Sequence[int]) -> GroupResult:
        here = np.isin(arms, those) & (codes == at)
        refused = here & ~used & design.refused
        return GroupResult(
            group=labels[at],
            n=int(np.sum(here & used)),
            clusters=np.unique(design.cluster[here & used]).size,
            refused=int(np.sum(refused)),
            undetermined=int(np.sum(here & ~used & design.undetermined & ~refused)),
            unscored=int(np.sum(here & ~used & ~refused & ~design.undetermined)),
        )

    clusters = [np.unique(design.cluster[codes == at]).size for at in range(len(labels))]
    return ArmData(
        arms=arm.labels,
        labels=labels,
        met=tuple(combinations(range(len(labels)), 2)),
        contrast=contrast,
        count=lambda one, a, b: min(int(np.sum(used & of(one, at))) for at in (a, b)),
        missing=lambda one, a, b: max(
            float(np.mean(~used[of(one, at)])) if of(one, at).any() else 0.0 for at in (a, b)
        ),
        group=group,
        outcome=reading.name,
        kind=reading.values.kind,
        unit=reading.unit,
        one_cluster=design.cluster_name is not None and min(clusters) < 2,
        noun=cluster_noun(design),
    )


def pooled(groups: Coded, classes: Mapping[str, str]) -> Coded:
    """The *groups* by the class that each is of. Raises FrameError for a group that *classes* lack."""
    lost = next((label for label in groups.labels if label not in classes), None)
    if lost is not None:
        raise FrameError(f"classes={dict(classes)!r} do not say which class the group {lost!r} is of")
    labels = tuple(sorted({classes[label] for label in groups.labels}))
    place = np.array([labels.index(classes[label]) for label in groups.labels], dtype=np.intp)
    return Coded(codes=np.asarray(place[groups.codes], dtype=np.intp), labels=labels)


def pooled_choices(arm: Coded, choices: Choices, classes: Mapping[str, str]) -> tuple[Coded, Choices]:
    """The choices between candidates of different *classes*, with these for groups, and the arms of those rows."""
    first, second = (pooled(Coded(codes, choices.labels), classes) for codes in (choices.first, choices.second))
    apart = np.asarray(first.codes != second.codes)
    kept = replace(choices, labels=first.labels, first=first.codes, second=second.codes).take(apart)
    return Coded(arm.codes[apart], arm.labels), kept
