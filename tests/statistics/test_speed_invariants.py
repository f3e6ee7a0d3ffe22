"""What is computed for all pairs at once is what the slow and obvious way gives for each."""

import inspect
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.reading import read
from pytest_fairness.statistics.arrays import read_design
from pytest_fairness.statistics.clusters import all_pairs, t_quantile
from pytest_fairness.statistics.compare import measure
from pytest_fairness.statistics.layout import lay_out
from pytest_fairness.statistics.ranks import (
    ascending,
    hodges_lehmann,
    kruskal_wallis,
    mann_whitney,
    medians_in_place,
    rank_sums,
    u_statistics,
)

TIED = [1.0, 2.0, 2.0, 3.0]


@st.composite
def layouts(draw, blocks=3):
    """Groups of unequal sizes over blocks, some of which may lack a group; few or many ties."""
    groups = draw(st.integers(2, 4))
    rows = draw(st.integers(groups, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    group = np.concatenate([np.arange(groups), rng.integers(groups, size=rows - groups)])
    values = rng.choice(TIED, size=rows) if draw(st.booleans()) else rng.normal(size=rows)
    block = rng.integers(blocks, size=rows)
    cluster = group * 3 + rng.integers(3, size=rows)
    return lay_out(values, group, cluster, block, groups=groups, blocks=blocks, own_rows=False)


EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True)


def rows(layout, group):
    return layout.values[layout.rows_of(group)]


@EXAMPLES
@given(layouts())
def test_u_and_its_p_value_are_those_of_mannwhitneyu_for_each_pair(layout):
    """One sort for all pairs, ties included."""
    sums = rank_sums(layout, ascending(layout), blocked=False)
    u = u_statistics(sums.below, layout.sizes)
    pairs = all_pairs(layout.groups)
    statistic, p = mann_whitney(u, pairs.first, pairs.second, layout.sizes, sums)
    for at, (i, j) in enumerate(combinations(range(layout.groups), 2)):
        slow = stats.mannwhitneyu(rows(layout, i), rows(layout, j), method="asymptotic")
        assert statistic[at] == pytest.approx(slow.statistic, abs=1e-9)
        if np.unique(np.concatenate([rows(layout, i), rows(layout, j)])).size > 1:
            assert p[at] == pytest.approx(slow.pvalue, rel=1e-9)
        else:
            assert p[at] == 1


@EXAMPLES
@given(layouts())
def test_h_is_that_of_kruskal(layout):
    """From the same sums."""
    sums = rank_sums(layout, ascending(layout), blocked=False)
    h, df = kruskal_wallis(u_statistics(sums.below, layout.sizes), layout.sizes, sums.levels)
    assert df == layout.groups - 1
    if np.unique(layout.values).size > 1:
        slow = stats.kruskal(*(rows(layout, g) for g in range(layout.groups))).statistic
        assert h == pytest.approx(slow, rel=1e-9, abs=1e-9)
    else:
        assert h == 0


@EXAMPLES
@given(layouts())
def test_sums_below_are_counted_row_by_row_within_blocks(layout):
    """Σ over a cell of (rows of the partner below, half of those equal) − half of the partner's rows in the block."""
    sums = rank_sums(layout, ascending(layout), blocked=True)
    stops = np.append(layout.cell_start[1:], layout.values.size)
    for cell, (start, stop) in enumerate(zip(layout.cell_start, stops, strict=True)):
        for g in range(layout.groups):
            here = layout.rows_of(g)
            others = layout.values[here][layout.row_block[here] == layout.cell_block[cell]]
            slow = sum(
                float(np.sum(others < y) + np.sum(others == y) / 2 - others.size / 2) for y in layout.values[start:stop]
            )
            assert sums.below[g, cell] == pytest.approx(slow, abs=1e-9)


@EXAMPLES
@given(layouts())
def test_tie_sums_are_those_of_counting_ties(layout):
    """Σt³ over both groups of a pair in each block."""
    pairs = all_pairs(layout.groups)
    cubes = rank_sums(layout, ascending(layout), blocked=True).tie_cubes(pairs.first, pairs.second, layout.count)
    for at, (i, j) in enumerate(combinations(range(layout.groups), 2)):
        for block in range(layout.blocks):
            both = [layout.values[layout.rows_of(g)][layout.row_block[layout.rows_of(g)] == block] for g in (i, j)]
            _, ties = np.unique(np.concatenate(both), return_counts=True)
            assert cubes[at, block] == pytest.approx(float(np.sum(ties.astype(float) ** 3)), abs=1e-9)


@EXAMPLES
@given(layouts())
def test_the_shift_is_the_median_of_all_differences_within_blocks(layout):
    """Every difference of two rows of a block, enumerated."""
    pairs = all_pairs(layout.groups)
    shift, exact = hodges_lehmann(layout, pairs, ascending(layout))
    assert exact
    for at, (i, j) in enumerate(combinations(range(layout.groups), 2)):
        differences = []
        for block in range(layout.blocks):
            x, y = (layout.values[layout.rows_of(g)][layout.row_block[layout.rows_of(g)] == block] for g in (i, j))
            differences += [float(a - b) for a in x for b in y]
        if differences:
            assert shift[at] == pytest.approx(float(np.median(differences)), rel=1e-12, abs=1e-12)
        else:
            assert np.isnan(shift[at])


@EXAMPLES
@given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 1000))
def test_medians_in_place_are_medians(height, width, seed):
    table = np.random.default_rng(seed).choice([1.0, 2.0, 5.0, 7.5, -3.0], size=(height, width))
    expected = np.median(table, axis=1)
    assert medians_in_place(table.copy()).tolist() == expected.tolist()


def test_each_quantile_of_t_is_found_once_and_put_where_it_belongs():
    """Degrees of freedom that repeat, in any order, and those under one."""
    df = np.array([38.0, 2.5, 38.0, 0.5, 2.5, 7.0])
    expected = [stats.t.ppf(0.975, value) if value >= 1 else np.inf for value in df]
    assert t_quantile(df, 0.975) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dtype", ["object", "str", "category", "string"])
def test_labels_are_coded_alike_whatever_holds_them(dtype):
    """Python strings are factorised without pandas' detour, and come out the same."""
    table = pd.DataFrame({"group": ["b", "a", "b", "c"], "name": ["x", "y", "x", "z"]}).astype(dtype)
    design = read_design(table, ["group"], block=None)
    assert design.group.labels == ("a", "b", "c")
    assert design.group.codes.tolist() == [1, 0, 1, 2]
    assert design.cluster.tolist() == [0, 1, 0, 2]


def test_a_family_of_many_pairs_equals_each_pair_by_itself():
    """All that is reported of a pair, p-values of the family apart, whether 28 pairs stand beside it or none."""
    rng = np.random.default_rng(11)
    table = pd.DataFrame(
        [(f"g{g}", f"g{g}n{n}", f"t{t}", r) for g in range(8) for n in range(6) for t in range(3) for r in range(2)],
        columns=["group", "name", "template", "repetition"],
    )
    table["outcome"] = np.round(rng.normal(size=len(table)), 1)
    for pair in analyze_disparity(table, "outcome", "group", kind="numeric").pairs[::5]:
        both = table[table.group.isin([pair.group_1, pair.group_2])]
        (alone,) = analyze_disparity(both, "outcome", "group", kind="numeric").pairs
        assert alone.statistics.keys() == pair.statistics.keys()
        for name, value in pair.statistics.items():
            expected = value if isinstance(value, str) else pytest.approx(value, rel=1e-9, abs=1e-12)
            assert alone.statistics[name] == expected, name


def calls_of(groups, kind, parts):
    """How many functions of the statistics run while all pairs of so many groups are measured."""
    rng = np.random.default_rng(12)
    table = pd.DataFrame(
        [(f"g{g}", f"g{g}n{n}", f"t{t}", r, f"F{n // 2}" if parts else f"F{g}-{n}", f"L{g}-{n}")
         for g in range(groups) for n in range(6) for t in range(3) for r in range(2)],
        columns=["group", "name", "template", "repetition", "first_name", "last_name"],
    )  # fmt: skip
    table["outcome"] = {
        "numeric": rng.normal(size=len(table)),
        "ordinal": rng.integers(1, 6, len(table)),
        "binary": rng.random(len(table)) < 0.4,
    }[kind]
    reading = read(table, "outcome", kind, None, None)
    design = read_design(table, ["group"])
    home = str(Path(sys.modules[measure.__module__].__file__).parent)
    count = 0

    def seen(frame, event, _):
        nonlocal count
        # Each item of a generator is a call, too: names of tests and the like, one a pair.
        generator = frame.f_code.co_flags & inspect.CO_GENERATOR
        count += event == "call" and not generator and frame.f_code.co_filename.startswith(home)

    everyone = np.ones(len(table), dtype=bool)
    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        metric = measure(design, reading.values.values, everyone, reading.values.kind)
    finally:
        sys.setprofile(before)
    assert metric.pairs.p_value.size == groups * (groups - 1) // 2
    return count


@pytest.mark.parametrize("parts", [False, True], ids=["names", "parts"])
@pytest.mark.parametrize("kind", ["numeric", "ordinal", "binary"])
def test_no_step_is_taken_pair_by_pair(kind, parts):
    """6, 45 and 120 pairs: the calls grow as the 4, 10 and 16 groups do, and not with their pairs."""
    few, some, many = (calls_of(groups, kind, parts) for groups in (4, 10, 16))
    assert abs((many - some) - (some - few)) <= 6
