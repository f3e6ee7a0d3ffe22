"""Refusals are an outcome of their own, and the worst rank of every other outcome; never a score of 0."""

from __future__ import annotations

from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.frames import Bools, Floats


def worst_rank(
    values: Floats,
    kind: OutcomeKind,
    *,
    scored: Bools,
    refused: Bools,
    lower_is_worse: bool,
    categories: int = 0,
) -> tuple[Floats, OutcomeKind, int]:
    """*values* with every refused row worse than the worst *scored* one, how to compare them, and the
    categories.

    A score becomes ordinal, for only the rank of a refusal means anything (Lachin 1999); a yes/no outcome
    gets its harmful value; a label gets a category of its own, numbered *categories*.
    """
    filled = values.copy()
    if kind is OutcomeKind.CATEGORICAL:
        filled[refused] = categories
        return filled, kind, categories + 1
    if kind is OutcomeKind.BINARY:
        filled[refused] = 0.0 if lower_is_worse else 1.0
        return filled, kind, categories
    known = values[scored]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    step = max(high - low, abs(low), abs(high), 1.0)
    filled[refused] = low - step if lower_is_worse else high + step
    return filled, OutcomeKind.ORDINAL, categories
