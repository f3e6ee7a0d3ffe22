"""Which trials a shard asks: dealt out group by group, so that all shards are alike, and the same on every machine.

A trial is dealt by what it asks and nothing else (not by the test that wants it first, nor by the system, which may
have another address elsewhere): tests that share a trial share it in its shard, and no two shards pay for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from pytest_fairness.errors import UsageError
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.keys import content_key


def shard_key(planned: PlannedTrial) -> str:
    """What *planned* asks, whomever it asks: SHA-256 in hex."""
    return content_key({}, planned.parameters, planned.cell, planned.repetition)


class Deal:
    """All trials of a session dealt out to *whole* shards, of which this is number *part* (from 1).

    The shards differ by one trial at the most, over all and in each arm and group. Raises UsageError for a part that
    there is not.
    """

    def __init__(self, planned: Iterable[PlannedTrial], part: int, whole: int) -> None:
        if not 1 <= part <= whole:
            raise UsageError(f"there is no shard {part} of {whole}")
        strata: dict[str, str] = {}
        for one in planned:
            strata.setdefault(shard_key(one), repr((one.cell.arm or "", sorted(one.cell.groups.items()))))
        ordered = sorted(strata, key=lambda key: (strata[key], key))
        self.part, self.whole = part, whole
        self._shard = {key: place % whole + 1 for place, key in enumerate(ordered)}

    def mine(self, planned: PlannedTrial) -> bool:
        """Whether this shard asks *planned*. A trial that was not dealt falls to a shard by its key alone."""
        key = shard_key(planned)
        return self._shard.get(key, int(key[:8], 16) % self.whole + 1) == self.part

    def __len__(self) -> int:
        """How many trials this shard asks."""
        return sum(shard == self.part for shard in self._shard.values())
