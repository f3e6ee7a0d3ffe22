"""Can the group still be guessed from a text? A classifier that has never seen the name before, and
permutations.

Naive Bayes over which words a text has (Maron 1961; McCallum & Nigam 1998, the Bernoulli model),
learnt on some names and tried on others, so that nothing is remembered of a name. Every name weighs
the same, and the p-value comes from dealing the groups out anew over the names (Ojala & Garriga
2010, JMLR 11:1833-1863).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pytest_fairness.statistics.arrays import Floats, Ints
from pytest_fairness.statistics.clusters import one_sample_t
from pytest_fairness.statistics.proportions import Z_95, wilson

FOLDS = 5
TEXTS_A_NAME = 8
WORDS = 300
_SMOOTHING = 0.5
_TIE = 1e-9


class GuessedLabel(NamedTuple):
    """The accuracy in one group, of so many *names*; NaN of none."""

    accuracy: float
    names: int


@dataclass(frozen=True, slots=True)
class Guessed:
    """``accuracy`` over *names* (each weighing the same) with its 95 % interval; ``chance`` is the
    mean over the permutations, ``p`` how rarely one of them does as well. ``labels`` are the
    groups.
    """

    accuracy: float
    low: float
    high: float
    chance: float
    p: float
    names: int
    labels: tuple[GuessedLabel, ...]


class _Units(NamedTuple):
    """Names (or, where groups share names, a name in a group) with their group; ``row`` is the unit
    of each text.

    ``nested``: each name stands in one group; else the groups are exchangeable only within the
    name.
    """

    row: Ints
    label: Ints
    name: Ints
    labels: int
    nested: bool

    @property
    def order(self) -> Ints:
        places = np.arange(self.label.size)
        if self.nested:
            return places
        return np.lexsort((places, self.name))

    def deal(self, rng: np.random.Generator) -> Ints:
        """The units in an order that is as likely as any if the groups mean nothing."""
        if self.nested:
            return rng.permutation(self.label.size)
        return np.lexsort((rng.random(self.label.size), self.name))


def _units(labels: Ints, names: Ints, least: int) -> _Units | None:
    """None where there is one group, or one of fewer than *least* units."""
    size = int(labels.max(initial=-1)) + 1
    unit, row = np.unique(names * max(size, 1) + labels, return_inverse=True)
    name = unit // max(size, 1)
    label = unit % max(size, 1)
    if size < 2 or np.bincount(label, minlength=size).min() < least:
        return None
    return _Units(row.astype(np.intp), label, name, size, np.unique(name).size == name.size)


def _guessed(
    units: _Units, credit: Floats, dealt: Callable[[Ints], float], permutations: int, seed: int
) -> Guessed:
    """Return how well each unit is guessed, 0 to 1, against *dealt*: the mean where the unit at
    place i has the group (and fold) that belongs to place i."""
    rng = np.random.default_rng(seed)
    size = units.label.size
    others = [dealt(units.deal(rng)) for _ in range(permutations)]
    chance = 1 / units.labels
    if others:
        chance = float(np.mean(others))
    accuracy = float(credit.mean())
    test = one_sample_t(credit)
    low, high = test.interval(0.95)
    if test.error == 0:
        low, high = map(float, wilson(np.array(credit.sum()), np.array(float(size)), Z_95))
    labels = []
    for label in range(units.labels):
        of_label = credit[units.label == label]
        of_names = math.nan
        if of_label.size:
            of_names = float(of_label.mean())
        labels.append(GuessedLabel(of_names, of_label.size))
    return Guessed(
        accuracy=accuracy,
        low=max(0.0, low),
        high=min(1.0, high),
        chance=chance,
        p=(1 + sum(other >= accuracy - _TIE for other in others)) / (1 + len(others)),
        names=int(np.unique(units.name).size),
        labels=tuple(labels),
    )


def guess_by_words(
    texts: Sequence[frozenset[str]],
    labels: Ints,
    names: Ints,
    *,
    permutations: int = 199,
    seed: int = 0,
) -> Guessed | None:
    """Guess *labels* from the words of *texts*, cross-validated over *names* (codes, one a text).

    None where a group has fewer than two names, so that no fold could leave one out. At most
    TEXTS_A_NAME different texts of a name are read, its most frequent, and the WORDS words that
    stand in most names.
    """
    units = _units(labels, names, least=2)
    if units is None:
        return None
    size = units.label.size
    row, weight, features = _read(texts, units.row)
    if not features.size:
        # Nothing to go by: every guess is a draw, and so is every permutation's.
        draw = 1 / units.labels
        return _guessed(units, np.full(size, draw), lambda _: draw, permutations, seed)
    means = np.zeros((size, features.shape[1]))
    np.add.at(means, row, features * weight[:, None])
    # As many of each group in each fold, or all units of a name in one.
    fold = np.unique(units.name, return_inverse=True)[1].astype(np.intp) % FOLDS
    if units.nested:
        folds = min(FOLDS, int(np.bincount(units.label).min()))
        for label in range(units.labels):
            here = units.label == label
            fold[here] = np.arange(here.sum()) % folds
    order = units.order

    def credit(dealt: Ints) -> Floats:
        label = np.empty_like(units.label)
        place = np.empty_like(fold)
        label[dealt], place[dealt] = units.label[order], fold[order]
        credit_rows = np.zeros(size)
        for held in range(int(fold.max()) + 1):
            theta = np.full((units.labels, features.shape[1]), 0.5)
            for group in range(units.labels):
                learnt = (place != held) & (label == group)
                theta[group] = (means[learnt].sum(axis=0) + _SMOOTHING) / (
                    learnt.sum() + 2 * _SMOOTHING
                )
            rows = np.flatnonzero(place[row] == held)
            score = features[rows] @ np.log(theta / (1 - theta)).T + np.log(1 - theta).sum(axis=1)
            best = score >= score.max(axis=1, keepdims=True) - _TIE * (
                1 + np.abs(score).max(initial=0.0)
            )
            # What is tied is guessed at random among those that tie.
            right = best[np.arange(rows.size), label[row[rows]]] / best.sum(axis=1)
            np.add.at(credit_rows, row[rows], right * weight[rows])
        return credit_rows

    return _guessed(
        units, credit(order), lambda dealt: float(credit(dealt).mean()), permutations, seed
    )


def score_guesses(
    guesses: Ints, labels: Ints, names: Ints, *, permutations: int = 199, seed: int = 0
) -> Guessed | None:
    """Return how often somebody's *guesses* (codes as *labels*) are right; None where fewer than
    two names are left.
    """
    units = _units(labels, names, least=1)
    if units is None or units.label.size < 2:
        return None
    shares = np.zeros((units.label.size, max(units.labels, int(guesses.max(initial=0)) + 1)))
    np.add.at(shares, (units.row, guesses), 1.0)
    shares /= shares.sum(axis=1, keepdims=True)
    labels_in_order = units.label[units.order]
    seen = shares[np.arange(units.label.size), units.label]
    return _guessed(
        units, seen, lambda dealt: float(shares[dealt, labels_in_order].mean()), permutations, seed
    )


def _read(texts: Sequence[frozenset[str]], row: Ints) -> tuple[Ints, Floats, Floats]:
    """Each unit's most frequent texts: the unit, weights that add up to 1 a unit, and texts ×
    words, 1 where a text has the word; without words that all texts have, or one name only."""
    units: list[int] = []
    words: list[frozenset[str]] = []
    weights: list[float] = []
    stands: Counter[str] = Counter()
    for unit in np.unique(row).tolist():
        counts = Counter(texts[at] for at in np.flatnonzero(row == unit).tolist())
        often = sorted(counts.items(), key=lambda item: (-item[1], sorted(item[0])))[:TEXTS_A_NAME]
        total = sum(count for _, count in often)
        for text, count in often:
            units.append(unit)
            words.append(text)
            weights.append(count / total)
        stands.update(frozenset().union(*(text for text, _ in often)))
    shared: Counter[str] = Counter()
    for text in words:
        shared.update(text)
    useful = [word for word, count in stands.items() if count > 1 and shared[word] < len(words)]
    useful = sorted(useful, key=lambda word: (-stands[word], word))[:WORDS]
    features = np.array([[word in text for word in useful] for text in words], dtype=np.float64)
    return np.array(units, dtype=np.intp), np.array(weights), features.reshape(len(words), -1)
