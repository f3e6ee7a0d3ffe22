"""Planted disparities are caught by a test that can see, and missed by one that cannot."""

import numpy as np
import pandas as pd
import pytest

from pytest_fairness.analysis.sensitivity import sensitivity
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.sensitivity import halves, plant, within_sd


def frame(rng, names=20, groups=("A", "B", "C"), name_sd=0.2, templates=5, repetitions=2):
    """The default design without any disparity: numbers, levels, decisions, labels and refusals."""
    index = [
        (g, f"{g}{n}", t, r) for g in groups for n in range(names) for t in range(templates) for r in range(repetitions)
    ]
    table = pd.DataFrame(index, columns=["group", "name", "template", "repetition"])
    level = dict(zip(table["name"].unique(), rng.normal(0, name_sd, len(groups) * names), strict=True))
    latent = table["name"].map(level) + rng.normal(0, 1, len(table))
    return table.assign(
        score=latent * 10 + 60,
        stars=np.clip(np.round(latent + 3), 1, 5).astype(int),
        hired=latent > 0.2,
        tone=np.select([latent < -0.5, latent < 0.7], ["cold", "plain"], "warm"),
        refused=False,
        constant=80.0,
    )


@pytest.mark.parametrize(
    ("outcome", "at_half", "at_most"),
    [("score", 0.6, 1.0), ("stars", 0.5, 1.0), ("hired", 0.3, 0.95), ("tone", 0.1, 0.6)],
)
def test_a_good_test_catches_most(outcome, at_half, at_most):
    """With 20 names a group a disparity of .8 is caught (almost) always, one of .5 often."""
    found = sensitivity(frame(np.random.default_rng(3)), outcome, "group", splits=2, copies=3)
    assert found.caught[0.8] >= at_most
    assert found.caught[0.5] >= at_half
    assert set(found.missed[0.8]) <= {"A", "B", "C"}


def test_a_test_that_cannot_fail_is_seen():
    """An outcome that never varies, or a sample far too small, catches nothing."""
    table = frame(np.random.default_rng(4))
    assert sensitivity(table, "constant", "group").caught == {0.5: 0.0, 0.8: 0.0}
    small = sensitivity(frame(np.random.default_rng(5), names=2, templates=2), "score", "group")
    assert max(small.caught.values()) <= 0.5
    assert small.missed[0.5] != ()
    assert small.false_alarms is None


def test_halves_of_a_group_do_not_alarm():
    """Random halves of one group's names differ by nothing but chance."""
    found = sensitivity(frame(np.random.default_rng(6), name_sd=0.4), "score", "group", splits=15)
    assert found.splits == 45
    assert found.false_alarms <= 0.15
    assert "random halves" in found.sentence


def test_the_same_seed_gives_the_same_answer():
    """Nothing is random beyond the seed, and the data are not touched."""
    table = frame(np.random.default_rng(7))
    before = table.copy()
    first = sensitivity(table, "hired", "group", seed=5, splits=2, copies=2)
    assert first == sensitivity(table, "hired", "group", seed=5, splits=2, copies=2)
    pd.testing.assert_frame_equal(table, before)
    assert first.to_dict()["caught"].keys() == {"0.5", "0.8"}


def test_several_protected_classes():
    """Each class has its groups planted in turn; the family is that of the assertion itself."""
    table = frame(np.random.default_rng(8), groups=("A", "B"))
    table["gender"] = np.where(table["name"].str[1:].astype(int) % 2, "f", "m")
    found = sensitivity(table, "score", ["group", "gender"], splits=0)
    assert found.copies == 4
    assert found.caught[0.8] == 1


def test_refusals_and_a_callable_outcome():
    """The outcome may be refusals, or computed from the reply."""
    rng = np.random.default_rng(9)
    table = frame(rng, groups=("A", "B"))
    table["refused"] = rng.random(len(table)) < 0.3
    table["reply"] = ["x" * int(n) for n in rng.integers(20, 60, len(table))]
    assert sensitivity(table, "refused", "group", splits=0, copies=2).caught[0.8] >= 0.5
    assert sensitivity(table.assign(refused=False), len, "group", splits=0).caught[0.8] >= 0.5


@pytest.mark.parametrize("options", [{"effects": ()}, {"effects": (0,)}, {"copies": 0}, {"splits": -1}], ids=range(4))
def test_options_out_of_range(options):
    """An empty or negative plan is refused."""
    with pytest.raises(UsageError):
        sensitivity(frame(np.random.default_rng(1), names=2), "score", "group", **options)


@pytest.mark.parametrize("down", [True, False])
@pytest.mark.parametrize("d", [0.5, 0.8])
def test_planted_numbers_and_rates_have_the_size_they_say(d, down):
    """d within-group SDs of a number; log odds of d·π/√3 for a decision; in the direction of harm."""
    rng = np.random.default_rng(10)
    rows = np.repeat([True, False], 20_000)
    y = rng.normal(5, 2, rows.size)
    moved = plant(y, OutcomeKind.NUMERIC, rows, sd=2.0, d=d, lower_is_worse=down, rng=rng)
    assert moved[rows] - y[rows] == pytest.approx(-2 * d if down else 2 * d)
    assert np.array_equal(moved[~rows], y[~rows])
    yes = (rng.random(rows.size) < 0.4).astype(float)
    turned = plant(yes, OutcomeKind.BINARY, rows, sd=0, d=d, lower_is_worse=down, rng=rng)
    p, q = turned[rows].mean(), yes[rows].mean()
    change = np.log(p / (1 - p)) - np.log(q / (1 - q))
    assert change == pytest.approx((-d if down else d) * np.pi / np.sqrt(3), abs=0.08)


def test_planted_levels_stay_levels():
    """Ordinal levels remain whole and within range; their mean moves as far as the range lets it."""
    rng = np.random.default_rng(11)
    y = rng.integers(3, 9, 20_000).astype(float)
    rows = np.ones(y.size, dtype=bool)
    moved = plant(y, OutcomeKind.ORDINAL, rows, sd=1.0, d=0.5, lower_is_worse=True, rng=rng)
    assert set(np.unique(moved)) <= set(np.unique(y))
    assert y.mean() - moved.mean() == pytest.approx(0.5 * 5 / 6, abs=0.03)


def test_plants_at_the_edge():
    """All yes, all no, one label, missing values: nothing raises, missing stays missing."""
    rng = np.random.default_rng(12)
    rows = np.ones(100, dtype=bool)
    for value in (0.0, 1.0):
        for down in (True, False):
            turned = plant(np.full(100, value), OutcomeKind.BINARY, rows, sd=0, d=0.8, lower_is_worse=down, rng=rng)
            assert set(np.unique(turned)) <= {0.0, 1.0}
    same = plant(np.zeros(100), OutcomeKind.CATEGORICAL, rows, sd=0, d=0.8, lower_is_worse=True, rng=rng)
    assert np.array_equal(same, np.zeros(100))
    gone = np.full(100, np.nan)
    assert np.isnan(plant(gone, OutcomeKind.NUMERIC, rows, sd=1, d=1, lower_is_worse=True, rng=rng)).all()


def test_within_sd():
    """The SD pooled within group and template; within groups where every such cell is a single row."""
    rng = np.random.default_rng(13)
    group, block = np.repeat([0, 1], 500), np.tile(np.arange(5), 200)
    y = rng.normal(0, 2, 1000) + 10 * group + 7 * block
    assert within_sd(y, group, block) == pytest.approx(2, rel=0.1)
    single = np.arange(1000)
    assert within_sd(y - 7 * block, group, single) == pytest.approx(2, rel=0.1)
    assert within_sd(np.ones(4), np.array([0, 0, 1, 1]), np.zeros(4, dtype=int)) == 0


def test_one_wild_reply_does_not_make_planted_disparities_huge():
    """The SD that a planted d is measured in is that of the bulk; where most are equal, of all."""
    rng = np.random.default_rng(14)
    group, block = np.repeat([0, 1], 100), np.tile(np.arange(5), 40)
    y = rng.normal(0, 2, 200)
    wild = np.where(np.arange(200) == 7, 1000.0, y)
    assert within_sd(wild, group, block) == pytest.approx(within_sd(y, group, block), rel=0.05)
    rare = np.where(np.arange(200) % 10 == 0, 1.0, 0.0)
    assert within_sd(rare, group, np.zeros(200, dtype=int)) == pytest.approx(0.3, rel=0.02)


def test_halves():
    """Clusters are split, not rows; with three clusters there is nothing to split."""
    cluster = np.repeat(np.arange(9), 4)
    first = halves(cluster, np.random.default_rng(1))
    assert all(len(set(first[cluster == c])) == 1 for c in range(9))
    assert first.sum() == 16
    assert halves(np.repeat([0, 1, 2], 5), np.random.default_rng(1)) is None
