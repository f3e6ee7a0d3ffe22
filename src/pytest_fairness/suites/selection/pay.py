"""Salaries of the benchmark: the scorer with the declared hours, and what each reply was read as."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pytest_fairness.model import OutcomeKind
from pytest_fairness.scorers import Scorer
from pytest_fairness.scorers.salary import Salary, SalaryStatus, read_salary

if TYPE_CHECKING:
    import pandas as pd


def pay_scorer(hours_per_year: float) -> Scorer:
    """Dollars a year, with pay by the hour taken to the year by *hours_per_year*."""
    return Scorer(
        name="salary",
        score=partial(_amount, hours_per_year),
        kind=OutcomeKind.NUMERIC,
        unit="dollars a year",
    )


def _amount(hours_per_year: float, text: str) -> float | None:
    return read_salary(text, hours_per_year).amount


def with_salaries(trials: pd.DataFrame, hours_per_year: float) -> pd.DataFrame:
    """*trials* with ``salary`` (dollars a year, NaN where none was read) and ``read``, what the reply came to."""
    found = [
        Salary(SalaryStatus.REFUSED)
        if refused
        else read_salary(reply, hours_per_year)
        if isinstance(reply, str)
        else Salary(SalaryStatus.UNPARSED)
        for reply, refused in zip(trials["reply"], trials["refused"], strict=True)
    ]
    amounts = [float("nan") if one.amount is None else one.amount for one in found]
    return trials.assign(salary=amounts, read=[one.status.value for one in found])
