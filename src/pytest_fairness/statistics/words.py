"""Which words stand in one group's replies more often than in the other's: descriptive, never a gate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from pytest_fairness.statistics import proportions
from pytest_fairness.statistics.arrays import Floats
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.effects import FEW, LOGIT_TO_D

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordDifference:
    """A word, in how many of each group's documents it stands, and what that difference amounts to.

    ``effect`` is d of the odds ratio (positive: more in the first group), ``q_value`` the p-value after
    Benjamini–Hochberg over all words tried. ``count_1``/``count_2`` are uses, repeats included.
    """

    word: str
    documents_1: int
    documents_2: int
    count_1: int
    count_2: int
    effect: float
    p_value: float
    q_value: float


def word_differences(
    first: Sequence[str],
    second: Sequence[str],
    *,
    least_documents: int = 5,
    permutations: int = 0,
    seed: int = 0,
) -> list[WordDifference]:
    """Compare the words of two groups' documents, strongest evidence first.

    A word counts once a document: words come in bunches, so a chi-square over all tokens takes one
    talkative reply for many. ``p_value`` is Pearson's on documents with and without the word, Fisher's
    where an expected count is under 5; or, with *permutations*, the share of random divisions of the
    documents that set them further apart. Words in fewer than *least_documents* documents are not tried.
    Empty where a group has no document.
    """
    if not first or not second:
        return []
    tokens = [[word.lower() for word in _WORD.findall(text)] for text in (*first, *second)]
    presence = Counter(word for document in tokens for word in set(document))
    words = sorted(word for word, documents in presence.items() if documents >= least_documents)
    if not words:
        return []
    place = {word: at for at, word in enumerate(words)}
    table = np.zeros((len(tokens), len(words)))
    uses = np.zeros((2, len(words)), dtype=np.intp)
    for at, document in enumerate(tokens):
        for word in document:
            if word in place:
                table[at, place[word]] = 1.0
                uses[int(at >= len(first)), place[word]] += 1
    n1, n2 = float(len(first)), float(len(second))
    x1, x2 = table[: len(first)].sum(axis=0), table[len(first) :].sum(axis=0)
    p = _permuted(table, len(first), permutations, seed) if permutations else _tested(x1, n1, x2, n2)
    q = correct(p, "fdr_bh")
    zero = (x1 == 0) | (x2 == 0) | (x1 == n1) | (x2 == n2)
    a, b, c, d = (cell + np.where(zero, 0.5, 0.0) for cell in (x1, n1 - x1, x2, n2 - x2))
    effect = np.log(a * d / (b * c)) * LOGIT_TO_D
    found = [
        WordDifference(
            word=word,
            documents_1=int(x1[at]),
            documents_2=int(x2[at]),
            count_1=int(uses[0, at]),
            count_2=int(uses[1, at]),
            effect=float(effect[at]),
            p_value=float(p[at]),
            q_value=float(q[at]),
        )
        for at, word in enumerate(words)
    ]
    return sorted(found, key=lambda item: (item.p_value, -abs(item.effect), item.word))


def _tested(x1: Floats, n1: float, x2: Floats, n2: float) -> Floats:
    size_1, size_2 = np.full(x1.size, n1), np.full(x1.size, n2)
    p = chdtrc(1, proportions.pearson(x1, size_1, x2, size_2))
    few = proportions.smallest_expected(x1, size_1, x2, size_2) < FEW
    p[few] = proportions.fisher_exact(x1[few], size_1[few], x2[few], size_2[few])
    return np.asarray(p)


def _permuted(table: Floats, first: int, permutations: int, seed: int) -> Floats:
    """Two-sided p of the difference in shares of documents, the division seen included."""
    rng = np.random.default_rng(seed)
    documents = table.shape[0]
    total = table.sum(axis=0)
    middle = total * first / documents
    seen = np.abs(table[:first].sum(axis=0) - middle)
    beyond = np.ones(table.shape[1])
    for _ in range(permutations):
        chosen = rng.permutation(documents)[:first]
        beyond += np.abs(table[chosen].sum(axis=0) - middle) >= seen - 1e-9
    return np.asarray(beyond / (permutations + 1))
