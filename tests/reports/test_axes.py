"""Where values lie on a picture's axis."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness.reports.axes import scale, symmetric, tick_label

FIGURES = st.floats(-1e9, 1e9) | st.none() | st.sampled_from([float("inf"), float("-inf")])


@given(st.lists(FIGURES, max_size=12), st.booleans())
def test_every_value_lies_inside_and_in_order(values, zero):
    """Finite values keep their order, infinite ones stand at the edge, nothing leaves the picture."""
    line = scale(values, 100, 600, zero=zero)
    finite = sorted(value for value in values if value is not None and abs(value) != float("inf"))
    places = [line.at(value) for value in finite]
    assert places == sorted(places)
    assert all(100 <= place <= 600 for place in places)
    assert line.at(float("inf")) == 600
    assert line.at(float("-inf")) == 100


@given(st.lists(FIGURES, min_size=1, max_size=12))
def test_there_are_a_few_round_ticks_inside(values):
    """Between 2 and 13 of them, evenly spaced, each within the scale."""
    line = scale(values, 0, 1)
    ticks = line.ticks()
    assert 2 <= len(ticks) <= 13
    assert all(
        line.low - 1e-6 * abs(line.low) - 1e-9 <= tick <= line.high + 1e-6 * abs(line.high) + 1e-9 for tick in ticks
    )


def test_rates_start_at_zero_and_effects_have_zero_in_the_middle():
    """A rate's picture does not exaggerate; an effect's reaches as far left as right."""
    assert scale([0.4, 0.6], 0, 1, zero=True).low == 0
    line = symmetric([0.2, -0.9, None, float("inf")], 0, 100, least=0.7, most=2.5)
    assert line.at(0) == 50
    assert line.high == pytest.approx(0.972)
    assert symmetric([0.1], 0, 1, least=0.7, most=2.5).high == 0.7
    assert symmetric([], 0, 1, least=0.7, most=2.5).high == 0.7
    assert symmetric([9.0], 0, 1, least=0.7, most=2.5).high == 2.5


@pytest.mark.parametrize(
    ("value", "rate", "expected"),
    [(0.25, False, "0.25"), (-5.0, False, "−5"), (0.2, True, "20 %"), (1200.0, False, "1,200")],
)
def test_tick_labels_are_short(value, rate, expected):
    """Round numbers, a real minus sign, per cent for rates."""
    assert tick_label(value, rate=rate) == expected
