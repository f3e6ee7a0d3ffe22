"""What a system says before it answers: requests that it declines at first, and disclaimers about
itself.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_fairness.model import OutcomeKind, Status
from pytest_fairness.trials_frame import DISCLAIMS, EMPTY_FIRST, REFUSED_FIRST
from pytest_fairness.words import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from pytest_fairness.statistics.arrays import Membership
    from pytest_fairness.statistics.compare import Metric

_MOST_GROUPS = 6


def first_refusals(frame: pd.DataFrame, design: Membership) -> Metric | None:
    """Refusals of the plain request, whatever a strategy made of them; None where that is what the
    refusals are.
    """
    from pytest_fairness.statistics.compare import measure

    if REFUSED_FIRST not in frame.columns:
        return None
    answered = frame[REFUSED_FIRST].notna().to_numpy()
    refused = (frame[REFUSED_FIRST] == True).to_numpy(dtype=bool)  # noqa: E712 - None is neither
    if not bool((refused & ~design.refused).any()):
        return None
    return measure(design, refused.astype(float), answered, OutcomeKind.REFUSAL)


def remarks(frame: pd.DataFrame, columns: Sequence[str]) -> Iterator[str]:
    """Yield what a finding by *columns* notes: how many were answered only after which strategy,
    and how many replies carry a disclaimer, by group.
    """
    by = [column for column in columns if column in frame.columns]
    answered = None
    if "status" in frame.columns:
        answered = frame["status"] == Status.ANSWERED.value
    if not by or answered is None:
        return
    for column in by:
        groups = frame[column]
        if REFUSED_FIRST in frame.columns and "strategy" in frame.columns:
            persuaded = answered & (frame[REFUSED_FIRST] == True)  # noqa: E712
            if bool(persuaded.any()):
                counts = _by_group(groups, persuaded, frame["strategy"])
                yield f"answered only after a strategy, having declined at first: {counts}"
        if EMPTY_FIRST in frame.columns:
            empty = frame[EMPTY_FIRST] == True  # noqa: E712
            if bool(empty.any()):
                yield f"empty at first, and asked once more: {_by_group(groups, empty)}"
        if DISCLAIMS in frame.columns:
            disclaims = answered & (frame[DISCLAIMS] == True)  # noqa: E712
            if bool(disclaims.any()):
                yield (
                    "replies that carry a disclaimer of the model about itself: "
                    f"{_by_group(groups, disclaims)}"
                )


def _by_group(
    groups: pd.Series[Any], which: pd.Series[Any], how: pd.Series[Any] | None = None
) -> str:
    """``female 12 of 120 (10 %; authority_framing 12); male 0 of 120``, the most first."""
    total = Counter(groups.dropna().tolist())
    counts = Counter(groups[which].dropna().tolist())
    parts = []
    for group, number in sorted(
        total.items(), key=lambda item: (-counts[item[0]] / item[1], str(item[0]))
    ):
        text = f"{group} {counts[group]:,} of {number:,}"
        if counts[group]:
            ways = []
            if how is not None:
                ways = Counter(how[which & (groups == group)].tolist()).most_common()
            named = ", ".join(f"{way} {count:,}" for way, count in ways)
            text += f" ({'; '.join(filter(None, [percent(counts[group] / number, 0), named]))})"
        parts.append(text)
    more = ""
    if len(parts) > _MOST_GROUPS:
        more = f"; and {len(parts) - _MOST_GROUPS} more groups"
    return "; ".join(parts[:_MOST_GROUPS]) + more
