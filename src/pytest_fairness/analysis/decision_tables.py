"""Tables of decisions: how often each group got the favourable one, and the tests of every pair."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.analysis.reading import count_by_group
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import GroupResult, OutcomeKind
from pytest_fairness.statistics.clusters import all_pairs
from pytest_fairness.statistics.comparison import combine
from pytest_fairness.statistics.four_fifths import reference_group
from pytest_fairness.statistics.frames import Bools, Design, Floats, row_name
from pytest_fairness.statistics.groups import describe_groups
from pytest_fairness.statistics.metrics import Metric, measure

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One grouping: who got the favourable decision, and the tests of every pair.

    ``x`` of ``n`` decisions were favourable; who was refused got none and counts. ``unscored`` counts those without a
    decision, ``missing`` marks their rows. ``p`` is the p-value of every pair of groups, ``family`` the pairs corrected
    together and ``reported`` those with the reference, as places in the list of all pairs.
    """

    by: str
    design: Design
    metric: Metric
    labels: tuple[str, ...]
    x: list[int]
    n: list[int]
    p: Floats
    unscored: list[int]
    missing: Bools
    reference: int | None
    family: list[int]
    reported: list[int]
    groups: tuple[GroupResult, ...]

    def unscored_share(self, group: int) -> float:
        total = self.n[group] + self.unscored[group]
        return self.unscored[group] / total if total else 0.0


def read_decisions(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any],
    favourable: object,
    scorers: Mapping[str, Any] | None,
) -> tuple[str, Floats, Bools]:
    """The outcome's name, 1 where it is favourable, and where there is an outcome.

    Raises UsageError if *favourable* never occurs and the outcome is not yes or no, and FrameError for a value
    among yes and no that is neither: it would silently count as unfavourable.
    """
    from pytest_fairness.scorers import outcome_of

    found = outcome_of(frame, outcome, scorers)
    series = found.values
    present = ~series.isna().to_numpy()
    if callable(favourable):
        chosen = np.zeros(present.size)
        kept = series[present]
        chosen[present] = [float(bool(favourable(value))) for value in kept]
        return found.name, chosen, present
    many = isinstance(favourable, Collection) and not isinstance(favourable, str)
    wanted = list(favourable) if many and isinstance(favourable, Collection) else [favourable]
    yes = series.isin(wanted).to_numpy(dtype=np.bool_, na_value=False) & present
    if favourable is True and yes.any():
        _require_yes_or_no(frame, found.name, series.to_numpy(dtype=object), present)
    if not yes.any() and present.any():
        values = series[present].drop_duplicates().tolist()
        if any(value not in (0, 1) for value in values):
            seen = ", ".join(repr(value) for value in values[:8])
            raise UsageError(
                f"favourable={favourable!r} never occurs in {found.name!r}, which holds {seen}: name the value "
                "that is the favourable decision"
            )
    return found.name, yes.astype(np.float64), present


def _require_yes_or_no(frame: pd.DataFrame, name: str, values: NDArray[np.object_], present: Bools) -> None:
    for at in np.flatnonzero(present).tolist():
        if not isinstance(values[at], (bool, np.bool_, int, float, np.number)) or values[at] not in (0, 1):
            raise FrameError(
                f"column {name!r}, {row_name(frame, at)}: {values[at]!r} is neither True nor False; mend it, make it a "
                "missing value, or name the favourable decision with favourable=…"
            )


def tabulate(design: Design, yes: Floats, present: Bools, *, by: str, reference: str | None) -> Table:
    """Count and test; a refused applicant is not selected. Raises FrameError for a *reference* that is no group."""
    labels = design.group.labels
    refused = design.refused & ~design.undetermined
    used = (present & ~design.undetermined) | refused
    yes = np.where(refused, 0.0, yes)
    metric = measure(design, yes, used, OutcomeKind.BINARY)
    n = count_by_group(design, used).tolist()
    x = count_by_group(design, used & (yes == 1)).tolist()
    undetermined = count_by_group(design, design.undetermined)
    unscored = count_by_group(design, ~used)
    if reference is None:
        at = reference_group(x, n)
    elif reference in labels:
        at = labels.index(reference)
    else:
        raise FrameError(f"reference={reference!r} is no group of {by!r}; it has {', '.join(map(repr, labels))}")
    pairs = all_pairs(len(labels))
    both = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    reported = [place for place, pair in enumerate(both) if at is not None and at in pair]
    return Table(
        by=by,
        design=design,
        metric=metric,
        labels=labels,
        x=x,
        n=n,
        p=selection_p(metric),
        unscored=unscored.tolist(),
        missing=~used,
        reference=at,
        family=reported if reference is not None else list(range(len(both))),
        reported=reported,
        groups=describe_groups(
            labels,
            metric.layout,
            metric.present,
            OutcomeKind.BINARY,
            refused=count_by_group(design, refused),
            undetermined=undetermined,
            unscored=unscored - undetermined,
            has_refusals=design.has_refusals,
            refused_count=True,
        ),
    )


def selection_p(metric: Metric) -> Floats:
    """The p-value of every pair: of z, the difference in pooled standard deviations, where there is one block (Fisher's
    where few are expected), of Cochran–Mantel–Haenszel over several; and not below that of the clusters."""
    comparison = metric.comparison
    if comparison is None or metric.layout is None or metric.layout.blocks > 1:
        return metric.p_values
    exact = np.array([test.startswith("Fisher") for test in comparison.test], dtype=np.bool_)
    row = np.where(exact | comparison.labels, comparison.p_row, comparison.beside["spec_p_value"])
    return metric.column(combine(row, comparison.p_cluster), 1.0)
