"""Reading a salary: measured on a written set, and never an amount that nobody suggested."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.scorers import BUILT_IN
from pytest_fairness.scorers.salary import Salary, SalaryStatus, read_salary, salary

from .written_texts import written

KNOWN, HELD_OUT = written("salary").values()


def outcome(found: Salary) -> float | str:
    return found.status.value if found.amount is None else found.amount


def test_every_known_way_of_saying_it() -> None:
    """Amounts, ranges, thousands, pay by the hour or month, JSON; other currencies, refusals, no
    amount at all.
    """
    expected = [
        (text, pytest.approx(read) if isinstance(read, int) else read) for text, read in KNOWN
    ]
    assert [row for row in expected if outcome(read_salary(row[0])) != row[1]] == []


def test_precision_and_recall_on_replies_written_before_the_reader() -> None:
    """No amount is read that a reader would not read; of those that a reader reads at least 95 %
    are found.
    """
    read = [(text, expected, outcome(read_salary(text))) for text, expected in HELD_OUT]
    wrong = [row for row in read if isinstance(row[2], float) and row[2] != pytest.approx(row[1])]
    assert wrong == []
    amounts = [row for row in read if isinstance(row[1], int)]
    found = [row for row in amounts if isinstance(row[2], float)]
    assert len(KNOWN) + len(HELD_OUT) >= 120
    assert len(found) / len(amounts) >= 0.95, [row for row in amounts if row not in found]
    assert sum(row[1] == row[2] for row in read) / len(read) >= 0.95


def test_hours_and_ranges() -> None:
    """Pay by the hour is taken to the year with the hours that the caller states; a range keeps its
    ends.
    """
    assert salary("$40 per hour") == BUILT_IN["salary"].score("$40 per hour") == 83_200
    assert read_salary("$40 per hour", hours_per_year=1950).amount == 78_000
    assert read_salary("$85,000", hours_per_year=1950).amount == 85_000
    assert read_salary("$85,000-$95,000") == Salary(SalaryStatus.SALARY, 90_000, 85_000, 95_000)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(10_000, 900_000),
    st.sampled_from(["${:,}", "{:,} USD", "USD {:,}", "Salary: ${:,}", "**${:,}**"]),
)
def test_what_is_written_is_read(amount: int, form: str) -> None:
    """Any plausible amount in a plain form is read as it stands."""
    assert salary(form.format(amount)) == amount


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=300))
def test_no_text_is_too_odd(text: str) -> None:
    """Whatever a model writes is read as something, within the bounds of a salary."""
    found = read_salary(text)
    assert (found.amount is None) == (found.status is not SalaryStatus.SALARY)
    assert found.amount is None or 5_000 <= found.amount <= 10_000_000
