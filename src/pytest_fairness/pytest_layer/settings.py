"""Options and ini values, resolved once into one frozen :class:`Settings`.

The only reader of configuration: everything else is handed a Settings. Under xdist the controller resolves and the
workers receive its answer, because a worker parses the original command line again and may stand elsewhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from pytest_fairness.pytest_layer.options import OPTIONS, Option


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
    confirm: bool = True
    sensitivity: bool = False
    session_alpha: float | None = None
    max_cost: float | None = None
    concurrency: int = 16
    deadline: float | None = None
    attempt_timeout: float = 120.0
    resume: str | None = None
    retry_unknown: bool = False
    retry_errors: bool = False
    replay: Path | None = None
    shard: str = ""
    progress: str = "auto"

    def paths(self) -> dict[str, Path]:
        """Those settings that are paths, by their names."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in found.items() if isinstance(value, Path)}

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, for the workers."""
        return {
            key: str(value) if isinstance(value, Path) else value for key, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        paths = ("endpoints_file", "run_dir", "baseline_dir", "replay")
        values: dict[str, Any] = {
            key: Path(value) if key in paths and value is not None else value for key, value in data.items()
        }
        return cls(**values)


def _value(config: pytest.Config, option: Option) -> Any:
    if option.typed:
        _refuse_untyped(config, option)
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


def _refuse_untyped(config: pytest.Config, option: Option) -> None:
    """Raise :class:`pytest.UsageError` where *option* is set by anything but the command line: a change that sets it
    would approve itself.
    """
    belongs = (
        "it is read from the command line alone, because a file of the project, or a variable, that approves baselines "
        f"lets a change approve itself. Take it out, and type {option.flag} in the session that approves"
    )
    if config.getini(option.ini) is not None:
        where = "the ini file" if config.inipath is None else config.inipath.name
        raise pytest.UsageError(f"{option.ini} is set in {where} (or with -o): {belongs}")
    typed = any(str(argument).partition("=")[0] == option.flag for argument in config.invocation_params.args)
    if config.getoption(option.flag) is not None and not typed:
        raise pytest.UsageError(f"{option.flag} comes from addopts, PYTEST_ADDOPTS or a file of arguments: {belongs}")


def resolve(config: pytest.Config) -> Settings:
    """Settings of this session. Raises :class:`pytest.UsageError` naming the option for a value it cannot read."""
    workerinput: Mapping[str, Any] | None = getattr(config, "workerinput", None)
    if workerinput is not None and "fairness_settings" in workerinput:
        return Settings.from_dict(workerinput["fairness_settings"])
    values = {option.field: _value(config, option) for option in OPTIONS}
    for field in ("endpoints_file", "run_dir", "baseline_dir"):
        # Relative to the root directory, not to wherever the command was typed: a run must be found again.
        values[field] = config.rootpath / values[field]
    if values["resume"] is not None or values["replay"] is not None:
        _name_runs(config, values)
    return Settings(**values)


def _name_runs(config: pytest.Config, values: dict[str, Any]) -> None:
    """Find the run to go on with, or to replay: once, here, so that all processes mean the same one."""
    from pytest_fairness.errors import FairnessError
    from pytest_fairness.pytest_layer import past_runs

    given = [field for field in ("resume", "replay", "shard") if values[field]]
    if "replay" in given and len(given) > 1:
        raise pytest.UsageError(f"--fairness-replay asks nothing, so --fairness-{given[0]} cannot go with it")
    try:
        if values["resume"] is not None:
            values["resume"] = past_runs.resumable(values["run_dir"], values["resume"]).name
        if values["replay"] is not None:
            values["replay"] = past_runs.replayable(values["run_dir"], config.invocation_params.dir, values["replay"])
            said = [field for field in past_runs.RECORDED if config.getoption(f"--fairness-{field}") is not None]
            values |= past_runs.recorded_settings(values["replay"], except_for=said)
    except FairnessError as error:
        raise pytest.UsageError(str(error)) from None
