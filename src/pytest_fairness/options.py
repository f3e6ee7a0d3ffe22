"""Every option and its ini twin: name, how its text is read, default, help. The one list of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TIERS = ("auto", "1", "2", "all")
PROGRESS = ("auto", "off")


def _seed(text: str) -> int:
    return int(text)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError("must be 1 or more")
    return value


def _dollars(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError("must be a number of US dollars, 0 or more")
    return value


def _one_of(*choices: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return check


class Option:
    """One setting: its field, how its text is read (``bool`` for a switch), what ``--help`` says, its default.

    A plain class: this module loads in every session, and a dataclass takes a millisecond to make.
    """

    def __init__(
        self, field: str, read: Callable[[str], Any] | type[bool], text: str, default: Any = None
    ) -> None:
        self.field, self.read, self.help, self.default = field, read, text, default

    @property
    def flag(self) -> str:
        return "--fairness-" + self.field.replace("_", "-")

    @property
    def ini(self) -> str:
        return "fairness_" + self.field


OPTIONS = (
    Option("endpoint", str, "system under test: a name from endpoints.yaml, or 'simulated'", "simulated"),
    Option("endpoints_file", Path, "where the endpoints are described", "endpoints.yaml"),
    Option(
        "tier",
        _one_of(*TIERS),
        "1: with system prompt; 2: conversation only; all: both; auto: 1 where a test has a system prompt",
        "auto",
    ),
    Option("approve", bool, "write the scores of this run as approved baselines", False),
    Option("justification", str, "why the baselines are approved; kept with them", ""),
    Option("approve_regression", bool, "allow --fairness-approve to approve a regression", False),
    Option("approve_in_ci", bool, "allow --fairness-approve where CI is set", False),
    Option("run_dir", Path, "where runs are kept", ".fairness/runs"),
    Option("baseline_dir", Path, "where approved baselines are kept", "baselines"),
    Option("seed", _seed, "seed of every random choice; logged with the run", 0),
    Option("smoke", bool, "a quick look: too small a sample skips instead of failing", False),
    Option("require_conclusive", bool, "fail on every INCONCLUSIVE, not only on small samples", False),
    Option("max_cost", _dollars, "US dollars that this run may cost at most"),
    Option("concurrency", _positive, "requests in flight at once", 16),
    Option("progress", _one_of(*PROGRESS), "show progress while asking: auto or off", "auto"),
)


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and its ini twin."""
    group = parser.getgroup("fairness", "fairness")
    for option in OPTIONS:
        text = f"{option.help} (ini: {option.ini})"
        if option.read is bool:
            group.addoption(option.flag, action="store_true", default=None, help=text)
        else:
            group.addoption(option.flag, default=None, metavar=option.field.upper(), help=text)
        parser.addini(option.ini, option.help, type="bool" if option.read is bool else "string", default=None)
