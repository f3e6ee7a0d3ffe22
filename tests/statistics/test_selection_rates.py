"""Rates of selection: calibrated where nothing is preferred, whatever the position and the names
do.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import chi2

from pytest_fairness.statistics.arrays import Coded, code
from pytest_fairness.statistics.bradley_terry import interaction
from pytest_fairness.statistics.choices import FIRST, SECOND, Choices
from pytest_fairness.statistics.selection_rates import (
    clustered_interaction,
    clustered_mean,
    equal_selection,
    first_listed_rate,
    selection_rates,
    units_of,
)
from pytest_fairness.statistics.win_rates import round_robin

from ..support.choice_tables import choices_of, table

POSITION = 0.6


def design(*, groups=4, sets=12, repetitions=1, pairs=None, levels=3) -> tuple[Choices, Coded]:
    """Every ordered pair at each of three levels, *sets* names a group in *pairs* pairs of names.

    As many pairs as names: each name meets only those of its set. More: names meet again, moved on
    by one, as in ``fairness_pairs(names=...)``.
    """
    rows = [
        (
            f"g{a}",
            f"g{b}",
            *(f"g{g} n{(number + g * (number // sets)) % sets}" for g in (a, b)),
            f"level {level}",
        )
        for a in range(groups)
        for b in range(groups)
        if a != b
        for level in range(levels)
        for _ in range(repetitions)
        for number in range(pairs or sets)
    ]
    frame = pd.DataFrame(rows, columns=["first", "second", "one", "two", "level"]).assign(
        chosen=lambda f: f["first"]
    )
    frame["repetition"] = np.arange(len(frame))
    choices = choices_of(frame, cluster=("one", "two"), block=["level"])
    return choices, code(frame, "level", "level")


def drawn(choices, rng, *, name_sd=0.0, lean=None):
    """*choices* anew: the position counts, and names have strengths of their own."""
    one, two = choices.clusters
    own = (
        rng.normal(0, name_sd, max(one.max(), two.max()) + 1)
        if name_sd
        else np.zeros(max(one.max(), two.max()) + 1)
    )
    eta = POSITION + own[one] - own[two] + (0 if lean is None else lean)
    won = rng.random(one.size) < expit(eta)
    return replace(choices, outcome=np.where(won, FIRST, SECOND))


def test_sets_of_names_are_found():
    """Names that only meet within their set are 12 independent units; names that meet others leave
    none apart.
    """
    apart = units_of(design()[0])
    assert (len(apart.codes), apart.count) == (1, 12)
    mixed = units_of(design(pairs=24)[0])
    assert (len(mixed.codes), mixed.count) == (2, 12)


def test_a_set_of_most_names_is_no_unit():
    """Eighteen pairs of twelve names leave a few names by themselves and chain the others: names
    are the unit then.

    As units such sets rejected 19 % at 5 % where nothing was preferred.
    """
    choices, _ = design(pairs=18)
    found = units_of(choices)
    assert (len(found.codes), found.count) == (2, 12)


@pytest.mark.parametrize(
    ("pairs", "name_sd", "fitted"), [(12, 0.0, 60), (12, 0.6, 30), (18, 0.6, 30)]
)
def test_nothing_preferred_is_rarely_significant(pairs, name_sd, fitted):
    """Type I of the interaction and of equal selection, over many seeds, and the coverage of the
    rates' intervals.
    """
    choices, level = design(pairs=pairs)
    units = units_of(choices)
    rng = np.random.default_rng(1)
    row, cluster, both, held = [], [], [], []
    for seed in range(100):
        found = drawn(choices, rng, name_sd=name_sd)
        if seed < fitted:
            row.append(interaction(found, level).p < 0.05)
            cluster.append(clustered_interaction(found, level, units) < 0.05)
        both.append(equal_selection(found, units, 0, 1).p_value < 0.05)
        held += [rate.low < 0.5 < rate.high for rate in selection_rates(found, units)]
    assert np.mean(row) <= 0.09
    assert np.mean(cluster) <= 0.09
    if fitted == 60:
        assert min(np.mean(cluster), np.mean(row)) >= 0.02
    assert np.mean(both) <= 0.09
    assert np.mean(held) >= 0.92


def test_rows_alone_would_take_names_for_groups():
    """The harness can see a fault: with names that lean strongly, trials as the unit reject far too
    often.
    """
    choices, _ = design(repetitions=2)
    units = units_of(choices)
    rng = np.random.default_rng(2)
    found = [equal_selection(drawn(choices, rng, name_sd=1.0), units, 0, 1) for _ in range(100)]
    assert np.mean([one.p_row < 0.05 for one in found]) > 0.15
    assert np.mean([one.p_cluster < 0.05 for one in found]) <= 0.11


def test_a_planted_interaction_is_found():
    """Group g0 is preferred at one level only: both tests see it, and neither sees one that is
    equal at all levels.
    """
    choices, level = design(sets=15, repetitions=2)
    units = units_of(choices)
    sign = (choices.first == 0).astype(float) - (choices.second == 0)
    rng = np.random.default_rng(3)
    planted = drawn(choices, rng, lean=1.5 * sign * (level.codes == 0))
    even = drawn(choices, rng, lean=1.0 * sign)
    assert interaction(planted, level).p < 1e-6
    assert clustered_interaction(planted, level, units) < 0.01
    assert interaction(even, level).p > 0.01
    assert clustered_interaction(even, level, units) > 0.01


def test_copies_are_no_evidence():
    """Each trial ten times over: the row test is sure of an accident, the names are as unsure as
    before.
    """
    choices, level = design(sets=12)
    rng = np.random.default_rng(4)
    once = drawn(choices, rng)
    copies = np.repeat(np.arange(once.outcome.size), 10)
    many = Choices(
        labels=once.labels, first=once.first[copies], second=once.second[copies], outcome=once.outcome[copies],
        listed=True, clusters=tuple(side[copies] for side in once.clusters), cluster_name=once.cluster_name,
        block=once.block[copies], levels={},
    )  # fmt: skip
    again = Coded(level.codes[copies], level.labels)
    one, ten = (
        clustered_interaction(c, lv, units_of(c)) for c, lv in ((once, level), (many, again))
    )
    assert ten == pytest.approx(one, rel=0.05)
    assert interaction(many, again).p < interaction(once, level).p / 10
    narrow, wide = (selection_rates(c, units_of(c))[0] for c in (many, once))
    assert narrow.high - narrow.low > 0.6 * (wide.high - wide.low)


def test_two_groups():
    """Their rates are each other's complement: z is that of the pair, not √2 of it as in a 2×2, and
    χ² the binomial.
    """
    choices = choices_of(table({("A", "B"): 14, ("B", "A"): 9}, n=20))
    found = equal_selection(choices, units_of(choices), 0, 1)
    assert (found.z, found.p_value) == (
        pytest.approx(1.599233, abs=1e-6),
        pytest.approx(0.109769, abs=1e-6),
    )
    assert found.p_cluster is None
    plain, corrected = round_robin(choices)
    assert corrected.statistic == pytest.approx((25 - 20) ** 2 / 10)
    assert plain.statistic == pytest.approx(2 * corrected.statistic)
    assert corrected.p == pytest.approx(chi2.sf(2.5, 1))


def test_a_position_that_decides_everything_leaves_no_doubt_about_groups():
    """Always the first: every group is selected half of the time, with no spread, and nothing is
    significant.
    """
    choices, _ = design()
    always = replace(choices, outcome=np.full(choices.outcome.size, FIRST))
    units = units_of(always)
    assert first_listed_rate(always, units).value == 1.0
    assert first_listed_rate(always, units).low < 1.0
    assert [rate.value for rate in selection_rates(always, units)] == [0.5] * 4
    assert equal_selection(always, units, 0, 1).p_value == 1.0


def test_without_a_choice_there_is_no_rate():
    choices, level = design()
    none = replace(choices, outcome=np.full(choices.outcome.size, -2))
    units = units_of(none)
    assert [rate.value for rate in selection_rates(none, units)] == [None] * 4
    assert equal_selection(none, units, 0, 1).p_value == 1.0
    assert clustered_interaction(none, level, units) is None


def test_units_not_rows_make_the_interval_of_a_mean():
    """Ten rows of each of five names: the t interval of five means. Where units do not differ,
    Wilson's over them.
    """
    values = np.array([0.2, 0.4, 0.5, 0.6, 0.8])
    rate = clustered_mean(np.repeat(values, 10), np.repeat(list("abcde"), 10).tolist())
    reach = 2.776445105 * np.std(values, ddof=1) / np.sqrt(5)
    assert (rate.n, rate.value) == (50, pytest.approx(0.5))
    assert (rate.low, rate.high) == (pytest.approx(0.5 - reach), pytest.approx(0.5 + reach))
    rate = clustered_mean(np.ones(40), ["a", "b", "c", "d"] * 10)
    assert (rate.low, rate.high) == (
        pytest.approx(1 / (1 + 1.959963984540054**2 / 4)),
        pytest.approx(1.0),
    )
    assert clustered_mean(np.zeros(0), []).value is None
