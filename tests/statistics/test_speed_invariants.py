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
from pytest_fairness.statistics.layout import Layout, Rows
from pytest_fairness.statistics.ranks import (
    hodges_lehmann,
    kruskal_wallis,
    mann_whitney,
    rank_sums,
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
    rows = Rows(values, group, cluster, block, None)
    return Layout(rows, groups=groups, blocks=blocks, own_rows=False)


EXAMPLES = settings(max_examples=15, deadline=None, derandomize=True)


def rows(layout, group, block=None):
    here = layout.row_group == group
    return layout.values[here if block is None else here & (layout.row_block == block)]


@EXAMPLES
@given(layouts())
def test_one_sort_gives_the_ranks_of_all_pairs(layout):
    """U with its p, H, the sums of rows below, the ties and the shift: those of scipy, or of
    counting row by row.
    """
    order, pairs, n = np.argsort(layout.values), all_pairs(layout.groups), layout.sizes
    unblocked, blocked = (rank_sums(layout, order, blocked=within) for within in (False, True))
    u = unblocked.below + n[:, None] * n / 2
    statistic, p = mann_whitney(u, pairs.first, pairs.second, n, unblocked)
    h, df = kruskal_wallis(u, n, unblocked.levels)
    everyone = [rows(layout, g) for g in range(layout.groups)]
    assert df == layout.groups - 1
    slow = stats.kruskal(*everyone).statistic if np.unique(layout.values).size > 1 else 0
    assert h == pytest.approx(slow, rel=1e-9, abs=1e-9)

    stops = np.append(layout.cell_start[1:], layout.values.size)
    for cell, (start, stop) in enumerate(zip(layout.cell_start, stops, strict=True)):
        for g in range(layout.groups):
            others = rows(layout, g, layout.cell_block[cell])
            slow = sum(
                np.sum(others < y) + np.sum(others == y) / 2 - others.size / 2
                for y in layout.values[start:stop]
            )
            assert blocked.below[g, cell] == pytest.approx(float(slow), abs=1e-9)

    cubes = blocked.tie_cubes(pairs.first, pairs.second, layout.count)
    shift, exact = hodges_lehmann(layout, pairs, order)
    assert exact
    for at, (i, j) in enumerate(combinations(range(layout.groups), 2)):
        slow = stats.mannwhitneyu(everyone[i], everyone[j], method="asymptotic")
        assert statistic[at] == pytest.approx(slow.statistic, abs=1e-9)
        varies = np.unique(np.concatenate([everyone[i], everyone[j]])).size > 1
        assert p[at] == (pytest.approx(slow.pvalue, rel=1e-9) if varies else 1)
        differences = []
        for block in range(layout.blocks):
            x, y = rows(layout, i, block), rows(layout, j, block)
            differences.append(np.subtract.outer(x, y).ravel())
            _, ties = np.unique(np.concatenate([x, y]), return_counts=True)
            assert cubes[at, block] == pytest.approx(
                float(np.sum(ties.astype(float) ** 3)), abs=1e-9
            )
        known = np.concatenate(differences)
        expected = float(np.median(known)) if known.size else np.nan
        assert shift[at] == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


def test_each_quantile_of_t_is_found_once_and_put_where_it_belongs():
    """Degrees of freedom that repeat, in any order, and those under one."""
    df = np.array([38.0, 2.5, 38.0, 0.5, 2.5, 7.0])
    expected = [stats.t.ppf(0.975, value) if value >= 1 else np.inf for value in df]
    assert t_quantile(df, 0.975) == pytest.approx(expected, rel=1e-12)


def test_a_family_of_many_pairs_equals_each_pair_by_itself():
    """All that is reported of a pair, p-values of the family apart, whether 28 pairs stand beside
    it or none.
    """
    rng = np.random.default_rng(11)
    table = pd.DataFrame(
        [
            (f"g{g}", f"g{g}n{n}", f"t{t}", r)
            for g in range(8)
            for n in range(6)
            for t in range(3)
            for r in range(2)
        ],
        columns=["group", "name", "template", "repetition"],
    )
    table["outcome"] = np.round(rng.normal(size=len(table)), 1)
    for pair in analyze_disparity(table, "outcome", "group", kind="numeric").pairs[::5]:
        both = table[table.group.isin([pair.group_1, pair.group_2])]
        (alone,) = analyze_disparity(both, "outcome", "group", kind="numeric").pairs
        assert alone.statistics.keys() == pair.statistics.keys()
        for name, value in pair.statistics.items():
            expected = (
                value if isinstance(value, str) else pytest.approx(value, rel=1e-9, abs=1e-12)
            )
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
        metric = measure(design, reading.values, everyone)
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
