"""The order of asking: every group all through the run, at random, and the same again for the same seed."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.engine.queue import interleaved


def _longest_run(values: list[str]) -> int:
    return max((len(list(group)) for _, group in itertools.groupby(values)), default=0)


@given(st.integers(2, 6), st.integers(1, 40), st.integers(0, 2**32))
def test_groups_of_equal_size_alternate(groups: int, size: int, seed: int) -> None:
    """No group is asked more than twice running, although the plan lists them one after the other."""
    strata = [group for group in "abcdef"[:groups] for _ in range(size)]
    asked = [strata[index] for index in interleaved(strata, seed)]
    assert _longest_run(asked) <= 2


@given(st.lists(st.sampled_from("abcd"), max_size=300), st.integers(0, 2**32))
def test_every_group_has_had_its_share_at_every_point(strata: list[str], seed: int) -> None:
    """However unequal the groups are, any beginning of the order holds each in proportion, give or take a
    few."""
    order = interleaved(strata, seed)
    assert sorted(order) == list(range(len(strata)))
    sizes, so_far = Counter(strata), Counter[str]()
    for position, index in enumerate(order, 1):
        so_far[strata[index]] += 1
        for group, size in sizes.items():
            share = size / len(strata)
            assert abs(so_far[group] - position * share) <= 1 + share * len(sizes)


def test_the_seed_decides_the_order() -> None:
    """The same seed gives the same order, another seed another."""
    strata = list("abcd") * 25
    assert interleaved(strata, 7) == interleaved(strata, 7)
    assert interleaved(strata, 7) != interleaved(strata, 8)


def test_within_a_group_the_order_is_random() -> None:
    """A template that comes first in the plan does not come first in the run."""
    order = interleaved(["a"] * 200, 3)
    assert order != sorted(order)
    assert 60 < sum(order[:100]) / 100 < 140
