"""Values that a float cannot square, numbers in other clothes, odd indexes: judged, or refused by
name.
"""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.errors import FrameError


def frame(values, **columns):
    return pd.DataFrame({"group": ["a", "b"] * (len(values) // 2), "outcome": values, **columns})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.7e308, "over 1e+100"),
        (-1.7e308, "under minus 1e+100"),
        (10**400, "over 1e+100"),
        (-(10**400), "under minus 1e+100"),
        (float("inf"), "cannot be infinite"),
        (Decimal("-Infinity"), "cannot be infinite"),
    ],
)
def test_numbers_whose_squares_overflow_are_refused_by_row(value, message):
    """Nothing can be computed from them: the message names the column and the row, and no warning
    escapes.
    """
    table = frame(pd.Series([1.5, 2.5, value, 3.5], dtype=object))
    with pytest.raises(FrameError, match=r"column 'outcome', row 2") as caught:
        analyze_disparity(table, "outcome", "group", cluster=None)
    assert message in str(caught.value)


def test_the_largest_numbers_that_are_taken_make_a_whole_finding():
    """At the limit itself nothing overflows, within a group or between them."""
    table = frame([1e100, -1e100, 1e100, 1e100, -1e100, 1e100, 0.0, 1.0])
    (pair,) = analyze_disparity(table, "outcome", "group", cluster=None).pairs
    assert np.isfinite(pair.effect)
    assert pair.effect_low <= pair.effect <= pair.effect_high


@pytest.mark.parametrize("kind", ["auto", "numeric"])
def test_decimals_are_numbers(kind):
    """Databases hand scores over as Decimal."""
    plain = frame([1.25, 2.5, 3.75, 0.5, 2.25, 1.0])
    exact = frame([Decimal(str(value)) for value in plain.outcome])
    first = analyze_disparity(plain, "outcome", "group", kind=kind, cluster=None)
    second = analyze_disparity(exact, "outcome", "group", kind=kind, cluster=None)
    assert second.pairs == first.pairs


def test_a_category_of_numbers_is_labels_until_declared_to_be_numbers():
    """pandas stores ratings as categories; the kind says which reading is meant."""
    table = frame([1, 2, 3, 1, 2, 2]).astype({"outcome": "category"})
    plain = frame([1, 2, 3, 1, 2, 2])
    assert analyze_disparity(table, "outcome", "group", cluster=None).kind == "categorical"
    first = analyze_disparity(table, "outcome", "group", kind="ordinal", cluster=None)
    assert (
        first.pairs
        == analyze_disparity(plain, "outcome", "group", kind="ordinal", cluster=None).pairs
    )


def test_rounding_does_not_choose_the_deciding_pair():
    """Two pairs that mirror each other are equally urgent: whatever the order of the rows, the
    first decides.
    """
    values = {
        "a": [1, 1, 1, 0, 1, 0, 0, 1, 1, 1],
        "b": [0, 1, 0, 0, 1, 0, 1, 0, 0, 0],
        "c": [1, 1, 1, 0, 1, 0, 0, 1, 1, 1],
    }
    table = pd.DataFrame(
        [(g, bool(v)) for g, column in values.items() for v in column * 6],
        columns=["group", "outcome"],
    )
    sentences = {
        analyze_disparity(
            table.sample(frac=1, random_state=seed), "outcome", "group", cluster=None
        ).sentence
        for seed in range(4)
    }
    assert len(sentences) == 1
