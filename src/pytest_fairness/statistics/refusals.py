"""Trials without a score: refusals as the worst rank, missing outcomes at the extremes, and rows that turn a mean."""

from __future__ import annotations

import numpy as np

from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.frames import Bools, Floats, Ints


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


def impute(
    values: Floats,
    kind: OutcomeKind,
    group: Ints,
    groups: tuple[int, int],
    *,
    used: Bools,
    missing: Bools,
    first_high: bool,
    scale: tuple[float | None, float | None],
) -> Floats:
    """*values* with what is *missing* of two groups at the extremes: of the first at the high end if *first_high*, of
    the second at the other; or the other way round.

    The ends are those of the *scale* where it is known, else of what the two groups have. Labels have no ends: with
    *first_high* the missing ones of each group take the label that it has most in excess of the other, which sets the
    two furthest apart; otherwise the other's, which brings them together.
    """
    filled = values.copy()
    first, second = (missing & (group == one) for one in groups)
    known = [values[used & (group == one)] for one in groups]
    both = np.concatenate(known)
    if kind is OutcomeKind.CATEGORICAL:
        size = int(both.max(initial=0)) + 1
        shares = [np.bincount(own.astype(np.intp), minlength=size) / max(own.size, 1) for own in known]
        excess = int(np.argmax(shares[0] - shares[1])), int(np.argmax(shares[1] - shares[0]))
        filled[first], filled[second] = excess if first_high else excess[::-1]
        return filled
    low = scale[0] if scale[0] is not None else float(both.min(initial=np.inf))
    high = scale[1] if scale[1] is not None else float(both.max(initial=-np.inf))
    if not np.isfinite([low, high]).all():
        low = high = 0.0
    filled[first], filled[second] = (high, low) if first_high else (low, high)
    return filled


def turning_rows(values: Floats, group: Ints, groups: tuple[int, int], used: Bools, most: int = 10) -> list[int]:
    """The rows without which the difference of two means has the sign that most pairs of rows have; none if *most* are
    not enough. The one that moves the difference most leaves first."""
    own = [np.flatnonzero(used & (group == one)) for one in groups]
    if min(side.size for side in own) < most + 2:
        return []
    kept = [values[side] for side in own]
    above = np.searchsorted(np.sort(kept[1]), kept[0], side="left").sum()
    below = (kept[1].size - np.searchsorted(np.sort(kept[1]), kept[0], side="right")).sum()
    wanted = float(np.sign(float(above) - float(below)))
    out: list[int] = []
    for _ in range(most):
        if np.sign(kept[0].mean() - kept[1].mean()) == wanted:
            return out
        # What each row adds to the difference against the wanted sign.
        pull = [
            -wanted * sign * (side - side.mean()) / (side.size - 1) for sign, side in zip((1, -1), kept, strict=True)
        ]
        which = int(np.argmax([side.max() for side in pull]))
        at = int(np.argmax(pull[which]))
        out.append(int(own[which][at]))
        own[which], kept[which] = np.delete(own[which], at), np.delete(kept[which], at)
    return out if np.sign(kept[0].mean() - kept[1].mean()) == wanted else []
