"""Every option and its ini twin: name, how its text is read, default, help. The one list of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

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


def _level(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise ValueError("must be a level between 0 and 1, as .05")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError("must be a number of seconds, more than 0")
    return value


def _shard(text: str) -> str:
    part, _, whole = text.partition("/")
    if not (part.isascii() and whole.isascii() and part.isdigit() and whole.isdigit()):
        raise ValueError("must be K/N, for example 2/5")
    if not 1 <= int(part) <= int(whole):
        raise ValueError("K of K/N goes from 1 to N")
    return f"{int(part)}/{int(whole)}"


def _one_of(*choices: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return check


class Option:
    """One setting: its field, how its text is read (``bool`` for a switch), what ``--help`` says, its default.

    *alone* is what the bare option stands for, where its value may be left off. *typed*: it is read from the command
    line alone, as what a project's files or the environment say in its place would be a change that approves itself.

    A plain class: this module loads in every session, and a dataclass takes a millisecond to make.
    """

    def __init__(
        self,
        field: str,
        read: Callable[[str], Any] | type[bool],
        text: str,
        default: Any = None,
        *,
        alone: str | None = None,
        typed: bool = False,
    ) -> None:
        self.field, self.read, self.help, self.default, self.alone = field, read, text, default, alone
        self.typed = typed

    @property
    def flag(self) -> str:
        """What is typed: a switch that is on by default is turned off."""
        return "--fairness-" + ("no-" if self.default is True else "") + self.field.replace("_", "-")

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
    Option("approve", bool, "write the scores of this run as approved baselines", False, typed=True),
    Option("justification", str, "why the baselines are approved; kept with them", "", typed=True),
    Option("approve_regression", bool, "allow --fairness-approve to approve a regression", False, typed=True),
    Option("approve_in_ci", bool, "allow --fairness-approve where CI is set", False, typed=True),
    Option("run_dir", Path, "where runs are kept", ".fairness/runs"),
    Option("baseline_dir", Path, "where approved baselines are kept", "baselines"),
    Option("seed", _seed, "seed of the order in which trials are asked and of the statistics; logged with the run", 0),
    Option("smoke", bool, "a quick look: too small a sample skips instead of failing", False),
    Option("require_conclusive", bool, "fail on every INCONCLUSIVE, not only on small samples", False),
    Option(
        "confirm", bool, "do not look at a FLAG or FAIL again, on this sample and one on other names together", True
    ),
    Option("sensitivity", bool, "try every PASS on copies of its data with a planted disparity", False),
    Option("session_alpha", _level, "fail the session on any finding below this level after Holm over all findings"),
    Option("max_cost", _dollars, "US dollars that this run may cost at most"),
    Option("concurrency", _positive, "requests in flight at once", 16),
    Option("deadline", _seconds, "seconds that this session may go on asking; what is not asked by then is not run"),
    Option("attempt_timeout", _seconds, "seconds that one request may take, in all", 120.0),
    Option(
        "resume",
        str,
        "go on with an earlier run: nothing finished is asked again; its id, or 'last', which is also meant by the "
        "option alone",
        alone="last",
    ),
    Option("retry_unknown", bool, "ask again what was sent and never answered: it may be paid for twice", False),
    Option("retry_errors", bool, "on resuming, ask again the trials that failed and cost nothing", False),
    Option("replay", str, "judge a recorded run: its id, 'last' or its folder; nothing is asked"),
    Option("shard", _shard, "K/N: ask the K-th of N shares of all trials, to be merged and judged later", ""),
    Option("progress", _one_of(*PROGRESS), "show progress while asking: auto or off", "auto"),
)


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and its ini twin; that of an option that is typed alone too, so that it can be refused."""
    group = parser.getgroup("fairness", "fairness")
    for option in OPTIONS:
        text = option.help if option.typed else f"{option.help} (ini: {option.ini})"
        if option.read is bool:
            action = "store_false" if option.default is True else "store_true"
            group.addoption(option.flag, action=action, default=None, help=text)
        else:
            bare: dict[str, Any] = {} if option.alone is None else {"nargs": "?", "const": option.alone}
            group.addoption(option.flag, default=None, metavar=option.field.upper(), help=text, **bare)
        kind: Literal["bool", "string"] = "bool" if option.read is bool else "string"
        refused = f"refused: {option.flag} is read from the command line alone"
        parser.addini(option.ini, refused if option.typed else option.help, type=kind, default=None)


def any_given(config: pytest.Config) -> bool:
    """Whether the command line or the ini file sets any of them: only then is there something to refuse early."""
    return any(config.getoption(o.flag) is not None or config.getini(o.ini) is not None for o in OPTIONS)
