"""Agreement of two readers, and guesses held against chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_fairness.statistics.arrays import Floats


def kappa(first: Sequence[str], other: Sequence[str], *, ordered: bool = False) -> float | None:
    """Return Cohen's kappa of two readings of the same texts; None where one label alone was given.

    *ordered*: the labels are whole numbers, and differences weigh by their squares (Cohen 1968,
    Psychological Bulletin 70:213). Raises ValueError for readings of different length.
    """
    labels = sorted({*first, *other})
    if len(labels) < 2:
        return None
    if ordered:
        numbers = list(map(int, labels))
        labels = list(map(str, range(min(numbers), max(numbers) + 1)))
    places = {label: place for place, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)))
    for label, counterpart in zip(first, other, strict=True):
        table[places[label], places[counterpart]] += 1
    return float(_kappa_of(table, ordered=ordered))


def _kappa_of(table: Floats, *, ordered: bool) -> Any:
    """Return kappa of a *table* with a row for each label of the first reader and a column for each
    of the other.
    """
    count = table.sum()
    by_chance = table.sum(0) / count * (table.sum(1) / count)[:, None]
    if ordered:
        places = np.arange(float(len(table)))
        weights = (places[:, None] - places) ** 2 / places[-1] ** 2
        return 1 - (weights * table).sum() / count / (weights * by_chance).sum()
    agree = np.diag(by_chance).sum()
    return (np.diag(table).sum() / count - agree) / (1 - agree)


def above_chance(right: int, guesses: int, chance: float) -> float:
    """Return the exact one-sided p-value of so many *right* of *guesses*, where each is right by
    *chance*.
    """
    from scipy.special import betainc

    if not right:
        return 1.0
    return float(betainc(right, guesses - right + 1, chance))
