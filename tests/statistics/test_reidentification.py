"""Guessing groups from words: nothing is found where there is nothing, and what is there is found."""

import numpy as np
import pytest

from pytest_fairness.statistics.reidentification import TEXTS_A_NAME, guess_by_words, score_guesses

NAMES, TEXTS = 20, 2


def corpus(rng, *, tell=0.0, groups=2, words=12):
    """*groups* × NAMES names with TEXTS texts each; with probability *tell* a text holds its
    group's word.
    """
    labels = np.repeat(np.arange(groups), NAMES * TEXTS)
    names = np.repeat(np.arange(groups * NAMES), TEXTS)
    texts = []
    for label in labels:
        text = {f"w{at}" for at in np.flatnonzero(rng.random(words) < 0.4)}
        texts.append(frozenset(text | ({f"tell{label}"} if rng.random() < tell else set())))
    return texts, labels, names


def test_the_permutation_p_holds_its_level():
    """Random texts, over 60 seeds: p ≤ .05 in 2 to 9 of a hundred, and the accuracy is that of
    chance.
    """
    rng = np.random.default_rng(0)
    found = [
        guess_by_words(*corpus(rng, words=8), permutations=19, seed=seed) for seed in range(60)
    ]
    assert 0.02 <= np.mean([one.p <= 0.05 for one in found]) <= 0.09
    assert np.mean([one.accuracy for one in found]) == pytest.approx(0.5, abs=0.02)
    assert np.mean([one.chance for one in found]) == pytest.approx(0.5, abs=0.02)


def test_names_that_write_alike_are_no_group():
    """Every name has words of its own in all its texts: with rows dealt out instead of names this
    would be found.
    """
    rng = np.random.default_rng(1)
    hits = []
    for seed in range(15):
        _, labels, names = corpus(rng)
        own = [
            frozenset(f"w{at}" for at in np.flatnonzero(rng.random(10) < 0.5))
            for _ in range(2 * NAMES)
        ]
        hits.append(
            guess_by_words(
                [own[name] for name in names], labels, names, permutations=39, seed=seed
            ).p
            <= 0.05
        )
    assert np.mean(hits) <= 0.13


def test_more_tell_tale_words_more_right_guesses():
    rng = np.random.default_rng(2)
    some, most, every = (
        guess_by_words(*corpus(rng, tell=tell), permutations=39) for tell in (0.3, 0.7, 1.0)
    )
    assert 0.5 < some.accuracy < most.accuracy < every.accuracy == 1.0
    assert most.p == every.p == 1 / 40
    assert most.low < most.accuracy < most.high


def test_four_groups_and_who_of_them_is_found():
    """Only one group has a word of its own: it is found, the others are mistaken for each other."""
    rng = np.random.default_rng(4)
    texts, labels, names = corpus(rng, groups=4, words=0)
    marked = [
        text | {"tell"} if label == 0 else text for text, label in zip(texts, labels, strict=True)
    ]
    found = guess_by_words(marked, labels, names, permutations=39)
    accuracies = [label.accuracy for label in found.labels]
    assert accuracies == [1.0, pytest.approx(1 / 3), pytest.approx(1 / 3), pytest.approx(1 / 3)]
    assert [label.names for label in found.labels] == [NAMES] * 4
    assert found.names == 4 * NAMES


def test_no_words_no_guess():
    """The same text for all: every guess is a draw."""
    found = guess_by_words([frozenset({"nurse"})] * 40, np.repeat([0, 1], 20), np.arange(40))
    assert (found.accuracy, found.chance, found.p) == (0.5, 0.5, 1.0)


def test_names_in_several_groups():
    """The same twelve names in both groups, told by a word: found; dealt out within names, and at
    chance without it.
    """
    names = np.tile(np.arange(12), 2)
    labels = np.repeat([0, 1], 12)
    words = [
        frozenset({f"own{name}", *({"tell"} if label else set())})
        for name, label in zip(names, labels, strict=True)
    ]
    found = guess_by_words(words, labels, names, permutations=39)
    assert found.accuracy == 1.0
    assert found.p == 1 / 40
    without = guess_by_words([text - {"tell"} for text in words], labels, names, permutations=39)
    assert without.accuracy == pytest.approx(0.5)
    assert without.p > 0.5


@pytest.mark.parametrize(
    ("labels", "names"),
    [([0] * 6, range(6)), ([0, 0, 0, 1], [0, 1, 2, 3]), ([], [])],
)
def test_too_few_to_leave_one_out(labels, names):
    """One group, or a group of one name: None, not a number that means nothing."""
    codes = np.array(labels, dtype=np.intp), np.array(list(names), dtype=np.intp)
    assert guess_by_words([frozenset({"a"})] * len(labels), *codes) is None


def test_only_the_most_frequent_texts_of_a_name_are_read():
    """A name with a hundred different texts is read as far as TEXTS_A_NAME; the rare one with the
    tell is not.
    """
    often = [frozenset({f"t{at % TEXTS_A_NAME}"}) for at in range(100)]
    texts = [*often, frozenset({"tell"})] * 4 + often * 4
    names = np.concatenate([np.repeat(np.arange(4), 101), np.repeat(np.arange(4, 8), 100)])
    labels = np.concatenate([np.zeros(404, dtype=np.intp), np.ones(400, dtype=np.intp)])
    assert guess_by_words(texts, labels, names, permutations=19).accuracy == pytest.approx(0.5)


def test_somebodys_guesses_right_and_wrong():
    labels, names = np.repeat([0, 1], 30), np.repeat(np.arange(20), 3)
    found = score_guesses(np.where(np.arange(60) % 3 == 0, 1 - labels, labels), labels, names)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.p < 0.05
    assert [label.accuracy for label in found.labels] == [pytest.approx(2 / 3)] * 2


@pytest.mark.parametrize(
    ("guess", "accuracy"), [(0, 0.5), (2, 0.0)], ids=["always the same", "a group that is none"]
)
def test_a_guess_that_shows_nothing(guess, accuracy):
    """Whoever says "female" of everybody is right half of the time; a group that there is not is
    wrong.
    """
    found = score_guesses(np.full(40, guess), np.repeat([0, 1], 20), np.arange(40))
    assert (found.accuracy, found.p) == (accuracy, 1.0)
    assert score_guesses(*np.zeros((3, 3), dtype=np.intp)) is None
