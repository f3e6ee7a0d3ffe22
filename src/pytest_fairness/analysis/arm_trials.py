"""Tables with several arms, or with the cells of two sides: who stands where, and how two arms
differ on two groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from pytest_fairness.analysis.reading import Reading, ScoredRows, nouns, several
from pytest_fairness.model import GroupResult, OutcomeKind
from pytest_fairness.statistics.arrays import Bools, Coded, Ints, Values, code, cross, read_design
from pytest_fairness.statistics.choices import FIRST, NEITHER, REFUSED, UNSCORED, read_choices
from pytest_fairness.statistics.compare import impute
from pytest_fairness.statistics.gaps import ArmContrast, contrast_choices, contrast_scores

if TYPE_CHECKING:
    import pandas as pd


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
    first: Coded
    arm: Coded
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
            return list(combinations(range(len(self.first.labels)), 2))
        low = np.minimum(self.first.codes, self.second)
        high = np.maximum(self.first.codes, self.second)
        return sorted(set(zip(low.tolist(), high.tolist(), strict=True)))

    @property
    def one_cluster(self) -> bool:
        """Return whether the result is about single names."""
        if not self.clusters:
            return False
        if self.second is None:
            rows = list(map(self.stood, range(len(self.first.labels))))
        else:
            rows = [self.stood(a) & self.stood(b) & self.used for a, b in self.met]
        codes = cross(self.clusters, self.first.codes.size)
        return min((np.unique(codes[some]).size for some in rows), default=2) < 2

    def stood(self, group: int) -> Bools:
        here = self.first.codes == group
        if self.second is not None:
            here = here | (self.second == group)
        return np.asarray(here)

    def cluster_of(self, group: int) -> Ints:
        """The cluster of each row as far as it is about *group*."""
        if not self.clusters:
            return np.arange(self.first.codes.size)
        return np.where(self.first.codes == group, self.clusters[0], self.clusters[-1])

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
            group=self.first.labels[at],
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
        here = np.logical_or.reduce(self.cells(arms, a, b))
        if raised is None:
            here &= self.used
        if self.second is None:
            return self._contrast_of_scores(here, arms, a, b, raised)
        treated = self.arm.codes == arms[0]
        won = np.where(
            ~self.used, treated == raised, (self.first.codes == a) == (self.outcome == FIRST)
        )
        won = won[here]
        both = None
        pairs = cross([codes[here] for codes in self.clusters], won.size)
        if len(self.clusters) == 2:
            # The name of the first group's candidate before that of the other's, whoever was listed
            # first.
            both = self.cluster_of(a)[here], self.cluster_of(b)[here]
            pairs = cross(both, won.size)
        if np.unique(pairs).size > 1:
            return contrast_choices(won, treated[here], pairs, "cluster", both)
        return contrast_choices(won, treated[here], self.block[here], "block")

    def _contrast_of_scores(
        self, here: Bools, arms: tuple[int, int], a: int, b: int, raised: bool | None
    ) -> ArmContrast | None:
        """The same of scores, over the rows that are *here*."""
        values = self.reading.values.values
        if raised is not None:
            for arm in arms:
                values = impute(
                    values,
                    self.reading.values.kind,
                    self.first.codes,
                    (a, b),
                    used=self.used,
                    missing=~self.used & (self.arm.codes == arm),
                    first_high=(arm == arms[0]) == raised,
                    scale=self.reading.scale,
                )
        cluster = None
        if self.clusters:
            cluster = self.cluster_of(a)[here]
        return contrast_scores(
            values[here],
            second=self.stood(b)[here],
            treated=(self.arm.codes == arms[0])[here],
            cluster=cluster,
            block=self.block[here],
        )


def choice_trials(
    frame: pd.DataFrame,
    arms: Coded,
    *,
    columns: Mapping[str, str],
    cluster: str | tuple[str, str] | None,
    blocks: tuple[str, ...],
) -> ArmTrials:
    """The pairwise choices of *frame*, whose rows are of *arms*."""
    read = read_choices(frame, **columns, cluster=cluster, block=blocks)
    noun = several(read.cluster_name or "row")
    if len(read.clusters) == 2 or read.cluster_name == "name":
        noun = "name pairs"
    values = Values(values=(read.outcome == FIRST).astype(np.float64), kind=OutcomeKind.BINARY)
    return ArmTrials(
        noun=noun,
        first=Coded(read.first, read.labels),
        arm=arms,
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
    """The scores of *frame*, whose rows are of *arms*, between the groups of *by*."""
    crossed = cross([code(frame, column, "block").codes for column in blocks], len(frame))
    name = " × ".join(blocks) or None
    if name is not None and len(blocks) > 1:
        frame = frame.assign(**{name: crossed})
    design = read_design(frame, by, cluster=cluster, block=name)
    states = [ScoredRows.of(design, reading).used, design.refused, design.undetermined]
    clusters: tuple[Ints, ...] = ()
    if design.cluster_name is not None:
        clusters = (design.cluster,)
    return ArmTrials(
        noun=nouns(frame, design)["cluster_noun"],
        first=design.group,
        arm=arms,
        second=None,
        outcome=np.select(states, [FIRST, REFUSED, NEITHER], UNSCORED).astype(np.intp),
        clusters=clusters,
        block=crossed,
        reading=reading,
    )
