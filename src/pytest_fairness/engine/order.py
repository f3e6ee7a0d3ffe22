"""The order of asking: random, and spread so that every group is asked all through the run.

A provider's load, limits and model versions change over hours. Asked group by group, such a change would look
like a difference between the groups; asked in this order it falls on all of them alike.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence


def interleaved(strata: Sequence[Hashable], seed: int) -> list[int]:
    """A random permutation of ``range(len(strata))`` in which the strata alternate, the same for the same
    seed.

    Item *i* of the *n* in a stratum, shuffled, is put at (i + u) / n with u uniform in [0, 1): at every point
    of the order each stratum has had its share, give or take one. With strata of equal size none is asked
    more than twice running.
    """
    generator = random.Random(seed)
    members: dict[Hashable, list[int]] = {}
    for index, stratum in enumerate(strata):
        members.setdefault(stratum, []).append(index)
    placed: list[tuple[float, int]] = []
    for indices in members.values():
        generator.shuffle(indices)
        size = len(indices)
        placed += [((rank + generator.random()) / size, index) for rank, index in enumerate(indices)]
    placed.sort()
    return [index for _, index in placed]
