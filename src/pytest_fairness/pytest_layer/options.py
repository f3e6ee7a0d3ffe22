"""Every option and ini value, and how they come to the frozen :class:`~pytest_fairness.context.Settings`.

A person types an option; what a project sets once is in its ini file alone. This module is the only reader of
configuration. Under xdist the controller resolves and the workers receive its answer, because a worker parses the
original command line again and may stand in another folder.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from pytest_fairness.context import Settings

#: Under this a worker receives the settings of its controller.
SETTINGS = "fairness_settings"


def _number(read: Callable[[str], Any], check: Callable[[Any], bool], problem: str) -> Callable[[str], Any]:
    def number(text: str) -> Any:
        value = read(text)
        if not check(value):
            raise ValueError(problem)
        return value

    return number


def _one_of(*choices: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return check


def _shard(text: str) -> str:
    part, _, whole = text.partition("/")
    if not (part.isascii() and whole.isascii() and part.isdigit() and whole.isdigit()):
        raise ValueError("must be K/N, for example 2/5")
    if not 1 <= int(part) <= int(whole):
        raise ValueError("K of K/N goes from 1 to N")
    return f"{int(part)}/{int(whole)}"


_positive = _number(int, lambda value: value >= 1, "must be 1 or more")
_dollars = _number(float, lambda value: 0 <= value < float("inf"), "must be a number of US dollars, 0 or more")
_level = _number(float, lambda value: 0 < value < 1, "must be a level between 0 and 1, as .05")
_seconds = _number(float, lambda value: 0 < value < float("inf"), "must be a number of seconds, more than 0")


class Option:
    """One setting: its field, how its text is read (``bool`` for a switch), what ``--help`` says, its default.

    *where* it is set: ``both`` on the command line and in the ini file, ``typed`` on the command line alone, ``ini``
    in the ini file alone. An option that *approves* is refused wherever a file or a variable sets it: a change that
    sets it would approve itself.

    A plain class: this module loads in every session, and a dataclass takes a millisecond to make.
    """

    def __init__(
        self,
        field: str,
        read: Callable[[str], Any] | type[bool],
        text: str,
        default: Any = None,
        *,
        where: Literal["both", "typed", "ini"] = "both",
        approves: bool = False,
    ) -> None:
        self.field, self.read, self.help, self.default = field, read, text, default
        self.where, self.approves = where, approves

    @property
    def flag(self) -> str | None:
        return None if self.where == "ini" else "--fairness-" + self.field.replace("_", "-")

    @property
    def ini(self) -> str | None:
        return None if self.where == "typed" else "fairness_" + self.field


OPTIONS = (
    Option("endpoint", str, "system under test: a name from endpoints.yaml, or 'simulated'", "simulated"),
    Option(
        "tier",
        _one_of("auto", "1", "2", "all"),
        "1: with system prompt; 2: conversation only; all: both; auto: 1 where a test has a system prompt",
        "auto",
    ),
    Option("max_cost", _dollars, "US dollars that this run may cost at most"),
    Option("deadline", _seconds, "seconds that this session may go on asking; what is not asked by then is not run"),
    Option("seed", int, "seed of the order in which trials are asked and of the statistics; logged with the run", 0),
    Option("smoke", bool, "a quick look: too small a sample skips instead of failing", False),
    Option("require_conclusive", bool, "fail on every INCONCLUSIVE, not only on small samples", False),
    Option(
        "resume",
        str,
        "resume an earlier run, its id or 'last': nothing finished is asked again",
        where="typed",
    ),
    Option(
        "retry_unknown",
        bool,
        "ask again what was sent and never answered: it may be paid for twice",
        False,
        where="typed",
    ),
    Option(
        "retry_errors", bool, "on resuming, ask again the trials that failed and cost nothing", False, where="typed"
    ),
    Option("replay", str, "judge a recorded run: its id, 'last' or its folder; nothing is asked", where="typed"),
    Option(
        "shard", _shard, "K/N: ask the K-th of N shares of all trials, to be merged and judged later", "", where="typed"
    ),
    Option("approve", bool, "write the scores of this run as approved baselines", False, where="typed", approves=True),
    Option("justification", str, "why the baselines are approved; kept with them", "", where="typed", approves=True),
    Option(
        "approve_regression",
        bool,
        "allow --fairness-approve to approve a regression",
        False,
        where="typed",
        approves=True,
    ),
    Option(
        "approve_in_ci",
        bool,
        "allow --fairness-approve where CI is set",
        False,
        where="typed",
        approves=True,
    ),
    Option("endpoints_file", Path, "where the endpoints are described", "endpoints.yaml", where="ini"),
    Option("run_dir", Path, "where runs are kept", ".fairness/runs", where="ini"),
    Option("baseline_dir", Path, "where approved baselines are kept", "baselines", where="ini"),
    Option("concurrency", _positive, "requests in flight at once", 16, where="ini"),
    Option("attempt_timeout", _seconds, "seconds that one request may take, in all", 120.0, where="ini"),
    Option(
        "confirm",
        bool,
        "look at a FLAG or FAIL again, on this sample and one on other names together",
        True,
        where="ini",
    ),
    Option("sensitivity", bool, "try every PASS on copies of its data with a planted disparity", False, where="ini"),
    Option(
        "session_alpha",
        _level,
        "fail the session on any finding below this level after Holm over all findings",
        where="ini",
    ),
    Option("progress", _one_of("auto", "off"), "show progress while asking: auto or off", "auto", where="ini"),
)
_PATHS = ("endpoints_file", "run_dir", "baseline_dir")


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and ini value; the ini twin of one that approves too, so that it can be refused."""
    group = parser.getgroup("fairness", "fairness")
    for option in OPTIONS:
        if option.flag is not None:
            text = option.help if option.ini is None else f"{option.help} (ini: {option.ini})"
            form = {"action": "store_true"} if option.read is bool else {"metavar": option.field.upper()}
            group.addoption(option.flag, default=None, help=text, **form)
        kind: Literal["bool", "string"] = "bool" if option.read is bool else "string"
        if option.ini is not None:
            parser.addini(option.ini, option.help, type=kind, default=None)
        elif option.approves:
            refused = f"refused: {option.flag} is read from the command line alone"
            parser.addini(f"fairness_{option.field}", refused, type=kind, default=None)


def any_given(config: pytest.Config) -> bool:
    """Whether the command line or the ini file sets any of them: only then is there something to refuse early."""
    return any(_given(config, option) != (None, None) for option in OPTIONS)


def _given(config: pytest.Config, option: Option) -> tuple[Any, Any]:
    """What the command line says, and what the ini file does."""
    typed = None if option.flag is None else config.getoption(option.flag)
    ini = option.ini or (f"fairness_{option.field}" if option.approves else None)
    return typed, None if ini is None else config.getini(ini)


def resolve(config: pytest.Config) -> Settings:
    """Settings of this session. Raises :class:`pytest.UsageError` naming the option for a value it cannot read."""
    from pytest_fairness.context import Settings

    received = getattr(config, "workerinput", {}).get(SETTINGS)
    if received is not None:
        return Settings.from_dict(received)
    values = {option.field: _value(config, option) for option in OPTIONS}
    for field in _PATHS:
        # Relative to the root directory, not to wherever the command was typed: a run must be found again.
        values[field] = config.rootpath / values[field]
    if values["resume"] is not None or values["replay"] is not None:
        _name_runs(config, values)
    return Settings(**values)


def _value(config: pytest.Config, option: Option) -> Any:
    if option.approves:
        _refuse_untyped(config, option)
    typed, given = _given(config, option)
    origin = option.ini if typed is None else option.flag
    given = given if typed is None else typed
    if given is None or given == "":
        return option.default
    if option.read is bool:
        return bool(given)
    try:
        return option.read(str(given))
    except ValueError as error:
        raise pytest.UsageError(f"{origin}={given!r}: {error}") from None


def _refuse_untyped(config: pytest.Config, option: Option) -> None:
    belongs = (
        "it is read from the command line alone, because a file of the project, or a variable, that approves baselines "
        f"lets a change approve itself. Take it out, and type {option.flag} in the session that approves"
    )
    given, in_file = _given(config, option)
    if in_file is not None:
        where = "the ini file" if config.inipath is None else config.inipath.name
        raise pytest.UsageError(f"fairness_{option.field} is set in {where} (or with -o): {belongs}")
    typed = any(str(argument).partition("=")[0] == option.flag for argument in config.invocation_params.args)
    if given is not None and not typed:
        raise pytest.UsageError(f"{option.flag} comes from addopts, PYTEST_ADDOPTS or a file of arguments: {belongs}")


def _name_runs(config: pytest.Config, values: dict[str, Any]) -> None:
    """Find the run to resume, or to replay: once, here, so that all processes mean the same one."""
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
            typed = [field for field in past_runs.RECORDED if config.getoption(f"--fairness-{field}") is not None]
            values |= past_runs.recorded_settings(values["replay"], except_for=typed)
    except FairnessError as error:
        raise pytest.UsageError(str(error)) from None
