"""Could this test have failed? Its own data with a planted disparity, and with one that cannot be there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.reading import Reading, as_columns, read
from pytest_fairness.analysis.sentences import percent
from pytest_fairness.errors import UsageError
from pytest_fairness.model import ALARMS, JSON, Finding, OutcomeKind
from pytest_fairness.statistics.arrays import Design, read_design, require_frame
from pytest_fairness.statistics.sensitivity import halves, plant, within_sd

if TYPE_CHECKING:
    import pandas as pd

_AT_RANDOM = (OutcomeKind.ORDINAL, OutcomeKind.BINARY, OutcomeKind.REFUSAL, OutcomeKind.CATEGORICAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What a test makes of planted disparities and of none.

    ``caught`` maps each planted effect (d, on one group at a time) to the share of *copies* that came out
    FLAG or FAIL; ``missed`` to the groups on which it was missed at least once. ``false_alarms`` is the
    share of the *splits* of a group's own names into two that did, None where no group has four names.
    """

    caught: Mapping[float, float]
    missed: Mapping[float, tuple[str, ...]]
    copies: int
    false_alarms: float | None
    splits: int

    @property
    def sentence(self) -> str:
        """What a reader should know beside a PASS."""
        told = ", ".join(f"d = {d:g} in {percent(share)} of copies" for d, share in self.caught.items())
        text = f"With a planted disparity this test raises the alarm for {told}"
        if self.false_alarms is not None:
            text += f"; for random halves of one group in {percent(self.false_alarms)}"
        return text + "."

    def to_dict(self) -> dict[str, JSON]:
        """For ``details["sensitivity"]`` of a finding."""
        return {
            "caught": {f"{d:g}": share for d, share in self.caught.items()},
            "missed": {f"{d:g}": list(groups) for d, groups in self.missed.items()},
            "copies": self.copies,
            "false_alarms": self.false_alarms,
            "splits": self.splits,
        }


def sensitivity(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any],
    by: str | Sequence[str],
    *,
    effects: Sequence[float] = (0.5, 0.8),
    copies: int = 5,
    splits: int = 10,
    seed: int = 0,
    cluster: str | None = "name",
    block: str | None = "template",
    kind: str = "auto",
    lower_is_worse: bool | None = None,
    scorers: Mapping[str, Any] | None = None,
    analyze: Callable[..., Finding] = analyze_disparity,
    **options: Any,
) -> Sensitivity:
    """Judge copies of *frame* as ``analyze_disparity`` does, with a disparity planted on each group in turn.

    Every effect is planted on every group of every column of *by*, in the direction of harm: once for
    numbers, which simply move, and *copies* times for outcomes that are turned round at random. *splits*
    times the names of each group are split into random halves, which are then compared as if they were
    groups. The other arguments, *options* included, are those of *analyze*, which is handed the same table with
    the outcome as a column, and ``kind`` and ``lower_is_worse`` as they were found; nothing is random beyond *seed*.

    Raises FrameError and UsageError as ``analyze_disparity`` does.
    """
    if copies < 1 or splits < 0 or not effects or not all(d > 0 for d in effects):
        raise UsageError("effects are above 0, copies at least 1, splits at least 0")
    columns = as_columns(by)
    frame = require_frame(frame)
    reading = read(frame, outcome, kind, lower_is_worse, scorers)
    found = reading.values.kind
    settings = {
        **options, "cluster": cluster, "block": block, "kind": found.value, "lower_is_worse": reading.lower_is_worse,
    }  # fmt: skip
    rng = np.random.default_rng(seed)
    times = copies if found in _AT_RANDOM else 1
    caught: dict[float, list[bool]] = {d: [] for d in effects}
    missed: dict[float, set[str]] = {d: set() for d in effects}
    alarms: list[bool] = []
    for column in columns:
        design = read_design(frame, (column,), cluster=cluster, block=block)
        sd = within_sd(reading.values.values, design.group.codes, design.block)
        for at, label in enumerate(design.group.labels):
            for d in effects:
                for _ in range(times):
                    planted = plant(
                        reading.values.values, found, design.group.codes == at,
                        sd=sd, d=d, lower_is_worse=reading.lower_is_worse, rng=rng,
                    )  # fmt: skip
                    seen = _alarm(analyze, _with(frame, reading, planted), reading.name, by, settings)
                    caught[d].append(seen)
                    if not seen:
                        missed[d].add(label)
            alarms += _split(analyze, frame, reading, design, at, column, splits, rng, settings)
    return Sensitivity(
        caught={d: float(np.mean(seen)) for d, seen in caught.items()},
        missed={d: tuple(sorted(groups)) for d, groups in missed.items()},
        copies=len(next(iter(caught.values()))),
        false_alarms=float(np.mean(alarms)) if alarms else None,
        splits=len(alarms),
    )


def _with(frame: pd.DataFrame, reading: Reading, values: np.ndarray[Any, np.dtype[np.float64]]) -> pd.DataFrame:
    """The frame with *values* as its outcome column, labels put back where the outcome is categorical."""
    categories = reading.values.categories
    if not categories:
        return frame.assign(**{reading.name: values})
    labels = [None if np.isnan(value) else categories[int(value)] for value in values]
    return frame.assign(**{reading.name: np.array(labels, dtype=object)})


def _alarm(
    analyze: Callable[..., Finding],
    frame: pd.DataFrame,
    outcome: str,
    by: str | Sequence[str],
    settings: Mapping[str, Any],
) -> bool:
    return analyze(frame, outcome, by, **settings).verdict in ALARMS


def _split(
    analyze: Callable[..., Finding],
    frame: pd.DataFrame,
    reading: Reading,
    design: Design,
    group: int,
    column: str,
    splits: int,
    rng: np.random.Generator,
    settings: Mapping[str, Any],
) -> list[bool]:
    rows = design.group.codes == group
    own = _with(frame, reading, reading.values.values)[rows]
    alarms = []
    for _ in range(splits):
        first = halves(design.cluster[rows], rng)
        if first is None:
            return []
        alarms.append(
            _alarm(analyze, own.assign(**{column: np.where(first, "half 1", "half 2")}), reading.name, column, settings)
        )
    return alarms
