"""Agreement of two readers, and guesses held against chance."""

from __future__ import annotations

from collections.abc import Sequence


def kappa(first: Sequence[str], other: Sequence[str], *, ordered: bool = False) -> float | None:
    """Return Cohen's kappa of two readings of the same texts; None where one label alone was given.

    *ordered*: the labels are whole numbers, and differences weigh by their squares (Cohen 1968,
    Psychological Bulletin 70:213). Raises ValueError for readings of different length.
    """
    labels = sorted({*first, *other})
    if len(labels) < 2:
        return None
    weights = None
    if ordered:
        numbers = list(map(int, labels))
        labels = list(map(str, range(min(numbers), max(numbers) + 1)))
        weights = "quadratic"
    from statsmodels.stats.inter_rater import cohens_kappa

    places = {label: place for place, label in enumerate(labels)}
    table = [[0] * len(labels) for _ in labels]
    for label, counterpart in zip(first, other, strict=True):
        table[places[label]][places[counterpart]] += 1
    return float(cohens_kappa(table, wt=weights, return_results=False))


def above_chance(right: int, guesses: int, chance: float) -> float:
    """Return the exact one-sided p-value of so many *right* of *guesses*, where each is right by
    *chance*.
    """
    from scipy.stats import binomtest

    return float(binomtest(right, guesses, chance, alternative="greater").pvalue)
