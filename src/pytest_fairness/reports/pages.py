"""The environment that every page is rendered in: all values escaped, and what cannot be seen spelt out."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pytest_fairness.reports import figures
from pytest_fairness.reports.escaping import shortened, visible

_REPORTS = "pytest_fairness.reports"


@cache
def environment(package: str = _REPORTS) -> Environment:
    """Templates of *package*, and behind them those of the reports (the style, the macros)."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, _REPORTS))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_spelt_out,
    )
    made.globals.update(figures=figures)
    made.filters.update(shortened=shortened, tight=_tight)
    return made


def _tight(words: str) -> str:
    """A figure and its per-cent sign stay on one line."""
    return words.replace(" %", "\u00a0%")


def _spelt_out(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
