"""How far a score differs between groups beyond what chance makes it, without any statistics library."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import sqrt
from statistics import fmean


def excess(scores: Sequence[float], groups: Sequence[str]) -> float:
    """The variance of *scores* between *groups* beyond chance, in standard deviations.

    (N − 1) times the share of the variance that lies between k groups is about chi-square with k − 1
    degrees of freedom when nothing is associated: mean k − 1, variance 2(k − 1). 0 where there is one
    group, or no variance.
    """
    mean = fmean(scores)
    total = sum((score - mean) ** 2 for score in scores)
    members: dict[str, list[float]] = defaultdict(list)
    for score, group in zip(scores, groups, strict=True):
        members[group].append(score)
    freedom = len(members) - 1
    if not freedom or not total:
        return 0.0
    between = sum(len(own) * (fmean(own) - mean) ** 2 for own in members.values())
    return ((len(scores) - 1) * between / total - freedom) / sqrt(2 * freedom)
