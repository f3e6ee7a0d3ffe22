"""The trials of several arms: which arm and groups each row is of, and how two arms are contrasted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.reading import cluster_noun, read, scored_rows
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.arms import ArmContrast, ArmRows, contrast_arms, contrast_choices
from pytest_fairness.statistics.choices import FIRST, Choices, cross
from pytest_fairness.statistics.frames import code, read_design

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.statistics.frames import Bools, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmData:
    """The trials of all arms: which arm each row is of, the groups, and how to contrast two arms on two
    groups.

    ``count(arm, a, b)`` gives the fewest scored trials of the two groups in an arm, ``noun`` what clusters are called,
    ``choices`` whether the trials are choices between two candidates.
    """

    arm: Ints
    arms: tuple[str, ...]
    labels: tuple[str, ...]
    met: tuple[tuple[int, int], ...]
    contrast: Callable[[int, int, int, int], ArmContrast | None]
    count: Callable[[int, int, int], int]
    outcome: str
    kind: OutcomeKind
    unit: str
    one_cluster: bool
    noun: str
    choices: bool = False


def arms_of_choices(arm: Ints, arms: tuple[str, ...], choices: Choices) -> ArmData:
    done = choices.decided
    low, high = np.minimum(choices.first, choices.second), np.maximum(choices.first, choices.second)
    won_low = np.where(choices.outcome == FIRST, choices.first, choices.second) == low
    clusters: Ints | None = None
    sides = choices.clusters
    if choices.clusters:
        if len(sides) == 2:
            swap = choices.first > choices.second
            sides = (np.where(swap, sides[1], sides[0]), np.where(swap, sides[0], sides[1]))
        clusters = cross(sides, arm.size)

    def rows(a: int, b: int) -> Bools:
        return np.asarray(done & (low == a) & (high == b))

    def contrast(one: int, other: int, a: int, b: int) -> ArmContrast | None:
        here = rows(a, b) & ((arm == one) | (arm == other))
        if clusters is not None and np.unique(clusters[here]).size > 1:
            names = (sides[0][here], sides[1][here]) if len(sides) == 2 else None
            return contrast_choices(won_low[here], arm[here] == one, clusters[here], "cluster", names)
        return contrast_choices(won_low[here], arm[here] == one, choices.block[here], "block")

    pairs = sorted({(int(a), int(b)) for a, b in zip(low.tolist(), high.tolist(), strict=True)})
    single = clusters is not None and any(np.unique(clusters[rows(a, b)]).size < 2 for a, b in pairs)
    return ArmData(
        arm=arm,
        arms=arms,
        labels=choices.labels,
        met=tuple(pairs),
        contrast=contrast,
        count=lambda one, a, b: int(np.sum(rows(a, b) & (arm == one))),
        outcome="chosen",
        kind=OutcomeKind.BINARY,
        unit="",
        one_cluster=single,
        noun="name pairs" if len(choices.clusters) == 2 or choices.cluster_name == "name" else "clusters",
        choices=True,
    )


def arms_of_scores(
    frame: pd.DataFrame,
    arm: Ints,
    arms: tuple[str, ...],
    outcome: str | Callable[..., Any],
    by: str,
    cluster: str | None,
    blocks: tuple[str, ...],
    kind: str,
    scorers: Mapping[str, Any] | None,
) -> ArmData:
    reading = read(frame, outcome, kind, None, scorers)
    if reading.values.kind is OutcomeKind.CATEGORICAL:
        raise UsageError(f"outcome {reading.name!r} is categorical: a difference between arms needs numbers or yes/no")
    crossed = cross([code(frame, column, "block").codes for column in blocks], len(frame))
    name = " × ".join(blocks) or None
    if len(blocks) > 1:
        frame = frame.assign(**{str(name): crossed})
    design = read_design(frame, (by,), cluster=cluster, block=name)
    used = scored_rows(design, reading)
    group, y = design.group.codes, reading.values.values

    def contrast(one: int, other: int, a: int, b: int) -> ArmContrast | None:
        here = used & ((arm == one) | (arm == other)) & ((group == a) | (group == b))
        return contrast_arms(
            ArmRows(
                y=y[here],
                second=group[here] == b,
                treated=arm[here] == one,
                cluster=None if design.cluster_name is None else design.cluster[here],
                block=crossed[here],
            )
        )

    def count(one: int, a: int, b: int) -> int:
        return min(int(np.sum(used & (arm == one) & (group == g))) for g in (a, b))

    labels = design.group.labels
    single = (
        design.cluster_name is not None
        and min(np.unique(design.cluster[group == g]).size for g in range(len(labels))) < 2
    )
    return ArmData(
        arm=arm,
        arms=arms,
        labels=labels,
        met=tuple(combinations(range(len(labels)), 2)),
        contrast=contrast,
        count=count,
        outcome=reading.name,
        kind=reading.values.kind,
        unit=reading.unit,
        one_cluster=single,
        noun=cluster_noun(design),
    )
