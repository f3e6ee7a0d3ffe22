"""Options, ini values and their defaults, resolved once into one frozen :class:`Settings`.

The only reader of configuration: everything else is handed a Settings. Under xdist the controller resolves and the
workers receive its answer, because a worker parses the original command line again and may stand elsewhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import pytest

TIERS = ("auto", "1", "2", "all")
PROGRESS = ("auto", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What this session was told, whoever told it: command line first, then the ini file, then the default."""

    endpoint: str = "simulated"
    endpoints_file: Path
    tier: str = "auto"
    approve: bool = False
    justification: str = ""
    approve_regression: bool = False
    approve_in_ci: bool = False
    run_dir: Path
    baseline_dir: Path
    seed: int = 0
    smoke: bool = False
    require_conclusive: bool = False
    max_cost: float | None = None
    concurrency: int = 16
    progress: str = "auto"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, for the manifest and for the workers."""
        return {
            key: str(value) if isinstance(value, Path) else value
            for key, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        paths = ("endpoints_file", "run_dir", "baseline_dir")
        return cls(**{key: Path(value) if key in paths else value for key, value in data.items()})


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


@dataclass(frozen=True, slots=True)
class _Option:
    """One setting: its field, how its text is read (``bool`` for a switch), and what ``--help`` says."""

    field: str
    read: Callable[[str], Any] | type[bool]
    help: str
    default: Any = None
    ini_type: Literal["string", "bool"] = "string"

    @property
    def flag(self) -> str:
        return "--fairness-" + self.field.replace("_", "-")

    @property
    def ini(self) -> str:
        return "fairness_" + self.field


_OPTIONS = (
    _Option("endpoint", str, "system under test: a name from endpoints.yaml, or 'simulated'", "simulated"),
    _Option("endpoints_file", Path, "where the endpoints are described", "endpoints.yaml"),
    _Option(
        "tier",
        _one_of(*TIERS),
        "1: with system prompt; 2: conversation only; all: both; auto: 1 where a test has a system prompt",
        "auto",
    ),
    _Option("approve", bool, "write the scores of this run as approved baselines", False, "bool"),
    _Option("justification", str, "why the baselines are approved; kept with them", ""),
    _Option("approve_regression", bool, "allow --fairness-approve to approve a regression", False, "bool"),
    _Option("approve_in_ci", bool, "allow --fairness-approve where CI is set", False, "bool"),
    _Option("run_dir", Path, "where runs are kept", ".fairness/runs"),
    _Option("baseline_dir", Path, "where approved baselines are kept", "baselines"),
    _Option("seed", _seed, "seed of every random choice; logged with the run", 0),
    _Option("smoke", bool, "a quick look: too small a sample skips instead of failing", False, "bool"),
    _Option("require_conclusive", bool, "fail on every INCONCLUSIVE, not only on small samples", False, "bool"),
    _Option("max_cost", _dollars, "US dollars that this run may cost at most"),
    _Option("concurrency", _positive, "requests in flight at once", 16),
    _Option("progress", _one_of(*PROGRESS), "show progress while asking: auto or off", "auto"),
)


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and its ini twin."""
    group = parser.getgroup("fairness", "fairness")
    for option in _OPTIONS:
        text = f"{option.help} (ini: {option.ini})"
        if option.read is bool:
            group.addoption(option.flag, action="store_true", default=None, help=text)
        else:
            group.addoption(option.flag, default=None, metavar=option.field.upper(), help=text)
        parser.addini(option.ini, option.help, type=option.ini_type, default=None)


def _value(config: pytest.Config, option: _Option) -> Any:
    given, origin = config.getoption(option.flag), option.flag
    if given is None:
        given, origin = config.getini(option.ini), option.ini
    if given is None or given == "":
        return option.default
    if option.read is bool:
        return bool(given)
    try:
        return option.read(str(given))
    except ValueError as error:
        raise pytest.UsageError(f"{origin}={given!r}: {error}") from None


def resolve(config: pytest.Config) -> Settings:
    """Settings of this session. Raises :class:`pytest.UsageError` naming the option for a value it cannot read."""
    workerinput: Mapping[str, Any] | None = getattr(config, "workerinput", None)
    if workerinput is not None and "fairness_settings" in workerinput:
        return Settings.from_dict(workerinput["fairness_settings"])
    values = {option.field: _value(config, option) for option in _OPTIONS}
    for field in ("endpoints_file", "run_dir", "baseline_dir"):
        # Relative to the root directory, not to wherever the command was typed: a run must be found again.
        values[field] = config.rootpath / values[field]
    return Settings(**values)
