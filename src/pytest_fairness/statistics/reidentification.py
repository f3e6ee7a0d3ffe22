"""Can the group still be guessed from a text? A classifier that has never seen the name before, and permutations.

Naive Bayes over which words a text has (Maron 1961; McCallum & Nigam 1998, the Bernoulli model), learnt on some names
and tried on others, so that nothing is remembered of a name. Every name weighs the same, and the p-value comes from
dealing the groups out anew over the names (Ojala & Garriga 2010, JMLR 11:1833-1863).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_fairness.statistics.arrays import Floats, Ints
from pytest_fairness.statistics.clusters import one_sample_t
from pytest_fairness.statistics.proportions import wilson

FOLDS = 5
TEXTS_A_NAME = 8
WORDS = 300
_SMOOTHING = 0.5
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Guessed:
    """``accuracy`` over *names* (each weighing the same) with its 95 % interval; ``chance`` is the mean over the
    permutations, ``p`` how rarely one of them does as well. ``by_label`` is the accuracy in each group, of ``sizes``
    names.
    """

    accuracy: float
    low: float
    high: float
    chance: float
    p: float
    names: int
    by_label: tuple[float, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Units:
    """Names (or, where groups share names, a name in a group), with their group and who may change groups with whom."""

    row: Ints
    label: Ints
    name: Ints
    nested: bool
    labels: int

    @property
    def size(self) -> int:
        return int(self.label.size)

    def deal(self, rng: np.random.Generator) -> Ints:
        """A random order of the units: the unit at place i takes the group (and fold) that belongs to place i."""
        if self.nested:
            return rng.permutation(self.size)
        # Names that stand in several groups: only within the name are the groups exchangeable.
        return np.lexsort((rng.random(self.size), self.name))


def guess_by_words(
    texts: Sequence[frozenset[str]], labels: Ints, names: Ints, *, permutations: int = 199, seed: int = 0
) -> Guessed | None:
    """Guess *labels* from the words of *texts*, cross-validated over *names* (codes, one a text).

    None where a group has fewer than two names, so that no fold could leave one out. At most TEXTS_A_NAME different
    texts of a name are read, its most frequent, and the WORDS words that stand in most names.
    """
    units = _units(labels, names)
    if units is None:
        return None
    row, words, weight = _texts(texts, units)
    features = _features(words, row)
    if not features.shape[1]:  # nothing to go by: every guess is a draw, and so is every permutation's
        credit = np.full(units.size, 1 / units.labels)
        return _guessed(credit, [1 / units.labels] * permutations, units)
    means = np.zeros((units.size, features.shape[1]))
    np.add.at(means, row, features * weight[:, None])
    fold = _folds(units)
    order = np.arange(units.size) if units.nested else np.lexsort((np.arange(units.size), units.name))
    seen = _credit(features, row, weight, means, units, order, order, fold)
    rng = np.random.default_rng(seed)
    dealt = [
        float(_credit(features, row, weight, means, units, units.deal(rng), order, fold).mean())
        for _ in range(permutations)
    ]
    return _guessed(seen, dealt, units)


def score_guesses(
    guesses: Ints, labels: Ints, names: Ints, *, permutations: int = 199, seed: int = 0
) -> Guessed | None:
    """How often somebody's *guesses* (codes as *labels*) are right; None where fewer than two names are left."""
    units = _units(labels, names, least=1)
    if units is None or units.size < 2:
        return None
    shares = np.zeros((units.size, max(units.labels, int(guesses.max(initial=0)) + 1)))
    np.add.at(shares, (units.row, guesses), 1.0)
    shares /= shares.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    order = np.arange(units.size) if units.nested else np.lexsort((np.arange(units.size), units.name))
    dealt = [float(shares[units.deal(rng), units.label[order]].mean()) for _ in range(permutations)]
    return _guessed(shares[np.arange(units.size), units.label], dealt, units)


def _units(labels: Ints, names: Ints, least: int = 2) -> _Units | None:
    size = int(labels.max(initial=-1)) + 1
    if size < 2:
        return None
    unit, row = np.unique(names * size + labels, return_inverse=True)
    name, label = unit // size, unit % size
    nested = np.unique(name).size == name.size
    if np.bincount(label, minlength=size).min() < least:
        return None
    return _Units(row.astype(np.intp), label.astype(np.intp), name.astype(np.intp), nested, size)


def _texts(texts: Sequence[frozenset[str]], units: _Units) -> tuple[Ints, list[frozenset[str]], Floats]:
    """Each unit's most frequent texts, with weights that add up to 1 a unit."""
    counts: dict[tuple[int, frozenset[str]], int] = {}
    for unit, text in zip(units.row.tolist(), texts, strict=True):
        counts[unit, text] = counts.get((unit, text), 0) + 1
    by_unit: dict[int, list[tuple[int, frozenset[str]]]] = {}
    for (unit, text), count in counts.items():
        by_unit.setdefault(unit, []).append((count, text))
    row, kept, weight = [], [], []
    for unit, found in by_unit.items():
        found.sort(key=lambda one: (-one[0], sorted(one[1])))
        total = sum(count for count, _ in found[:TEXTS_A_NAME])
        for count, text in found[:TEXTS_A_NAME]:
            row.append(unit)
            kept.append(text)
            weight.append(count / total)
    return np.array(row, dtype=np.intp), kept, np.array(weight)


def _features(words: list[frozenset[str]], row: Ints) -> Floats:
    """Texts × words, 1 where a text has the word; without words that all texts have, or one name only."""
    stands: dict[str, set[int]] = {}
    shared: dict[str, int] = {}
    for unit, text in zip(row.tolist(), words, strict=True):
        for word in text:
            stands.setdefault(word, set()).add(unit)
            shared[word] = shared.get(word, 0) + 1
    useful = [word for word, where in stands.items() if len(where) > 1 and shared[word] < len(words)]
    useful = sorted(useful, key=lambda word: (-len(stands[word]), word))[:WORDS]
    place = {word: at for at, word in enumerate(useful)}
    table = np.zeros((len(words), len(useful)))
    for at, text in enumerate(words):
        for word in text:
            if word in place:
                table[at, place[word]] = 1.0
    return table


def _folds(units: _Units) -> Ints:
    """A fold for each unit: as many of each group in each, or all units of a name in one."""
    if not units.nested:
        return np.asarray(np.unique(units.name, return_inverse=True)[1] % FOLDS, dtype=np.intp)
    folds = min(FOLDS, int(np.bincount(units.label).min()))
    fold = np.zeros(units.size, dtype=np.intp)
    for label in range(units.labels):
        here = np.flatnonzero(units.label == label)
        fold[here] = np.arange(here.size) % folds
    return fold


def _credit(
    features: Floats, row: Ints, weight: Floats, means: Floats, units: _Units, dealt: Ints, order: Ints, fold: Ints
) -> Floats:
    """How well each unit is guessed, 0 to 1, when unit ``dealt[i]`` has the group and the fold of ``order[i]``."""
    label, place = np.empty_like(units.label), np.empty_like(fold)
    label[dealt], place[dealt] = units.label[order], fold[order]
    credit = np.zeros(units.size)
    for held in range(int(fold.max()) + 1):
        theta = np.full((units.labels, features.shape[1]), 0.5)
        for group in range(units.labels):
            learnt = (place != held) & (label == group)
            theta[group] = (means[learnt].sum(axis=0) + _SMOOTHING) / (learnt.sum() + 2 * _SMOOTHING)
        rows = np.flatnonzero(place[row] == held)
        score = features[rows] @ np.log(theta / (1 - theta)).T + np.log(1 - theta).sum(axis=1)
        best = score >= score.max(axis=1, keepdims=True) - _TIE * (1 + np.abs(score).max(initial=0.0))
        # What is tied is guessed at random among those that tie.
        right = best[np.arange(rows.size), label[row[rows]]] / best.sum(axis=1)
        np.add.at(credit, row[rows], right * weight[rows])
    return credit


def _guessed(credit: Floats, dealt: Sequence[float], units: _Units) -> Guessed:
    accuracy = float(credit.mean())
    test = one_sample_t(credit)
    low, high = test.interval(0.95)
    if test.se == 0:
        ends = wilson(np.array([credit.sum()]), np.array([float(credit.size)]), 1.959963984540054)
        low, high = float(ends[0][0]), float(ends[1][0])
    as_good = sum(other >= accuracy - _TIE for other in dealt)
    return Guessed(
        accuracy=accuracy,
        low=max(0.0, low),
        high=min(1.0, high),
        chance=float(np.mean(dealt)) if len(dealt) else 1 / units.labels,
        p=(1 + as_good) / (1 + len(dealt)),
        names=int(np.unique(units.name).size),
        by_label=tuple(
            float(credit[units.label == at].mean()) if np.any(units.label == at) else float("nan")
            for at in range(units.labels)
        ),
        sizes=tuple(np.bincount(units.label, minlength=units.labels).tolist()),
    )
