"""Every option and ini value, and how they come to the frozen
:class:`~pytest_fairness.context.Settings`.

A person types an option; what a project sets once is in its ini file alone. This module is the only
reader of configuration. Under xdist the controller resolves and the workers receive its answer,
because a worker parses the original command line again and may stand in another folder.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

if TYPE_CHECKING:
    from pytest_fairness.context import Settings

#: Every endpoint of endpoints.yaml.
EVERY = "all"
#: What other tools approve by.
APPROVE_VARIABLE = "FAIRNESS_APPROVE"
_RESOLVED: pytest.StashKey[Settings] = pytest.StashKey()


def _checked(
    read: Callable[[str], Any], check: Callable[[Any], bool], problem: str
) -> Callable[[str], Any]:
    """Return *read* with a check: what fails it raises ValueError with the *problem*."""

    def checked(text: str) -> Any:
        value = read(text)
        if not check(value):
            raise ValueError(problem)
        return value

    return checked


def _one_of(*choices: str) -> Callable[[str], str]:
    return _checked(str, choices.__contains__, f"must be one of {', '.join(choices)}")


def _is_share(text: str) -> bool:
    """Return whether *text* names a shard that there is: ``K/N``, K from 1 to N."""
    match = re.fullmatch("([1-9][0-9]*)/([1-9][0-9]*)", text)
    return match is not None and int(match[1]) <= int(match[2])


def _names(text: str) -> str:
    """Read the names of one endpoint or several. Raises ValueError for one that stands twice."""
    names = list(map(str.strip, text.split(",")))
    if not all(names):
        raise ValueError("must be names with a comma between them")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"names {name!r} twice")
    if EVERY in names and len(names) > 1:
        raise ValueError(f"{EVERY!r} stands for every endpoint of the file: give it alone")
    return ",".join(names)


def _looks(text: str) -> str:
    """Read the looks of a project, or ``all``. Raises ValueError for looks that do not rise."""
    if text == "all":
        return text
    looks = list(map(int, text.replace(",", " ").split()))
    if not looks or looks[0] < 1 or any(map(operator.ge, looks, looks[1:])):
        raise ValueError("must be names a group in rising order, as 10,20,40")
    return ",".join(map(str, looks))


_positive = _checked(int, lambda value: value >= 1, "must be 1 or more")
_dollars = _checked(
    float, lambda value: 0 <= value < float("inf"), "must be a number of US dollars, 0 or more"
)
_level = _checked(float, lambda value: 0 < value < 1, "must be a level between 0 and 1, as .05")
_seconds = _checked(
    float, lambda value: 0 < value < float("inf"), "must be a number of seconds, more than 0"
)
_share = _checked(str, _is_share, "must be K/N, for example 2/5, where K goes from 1 to N")


class Option(NamedTuple):
    """One setting: its field, how its text is read (``bool`` for a switch), its default, where it
    is set, its help.

    *where*: ``both`` on the command line and in the ini file; ``typed`` on the command line alone;
    ``ini`` in the ini file alone; ``approval`` typed, and refused where a file or a variable sets
    it: such a change would approve itself.
    *adds*: typed again, it names more; else what was typed last counts.
    """

    field: str
    read: Callable[[str], Any] | type[bool]
    default: Any
    where: Literal["both", "typed", "ini", "approval"]
    help: str
    adds: bool = False

    @property
    def flag(self) -> str | None:
        """Return the name on the command line; None of an option that the ini file alone sets."""
        if self.where == "ini":
            return None
        return "--fairness-" + self.field.replace("_", "-")

    @property
    def ini(self) -> str | None:
        """Return the name in the ini file; None of an option that the ini file may not set."""
        if self.where in ("both", "ini"):
            return "fairness_" + self.field
        return None

    def given(self, config: pytest.Config) -> tuple[Any, Any]:
        """Return what the command line says, and what the ini file does."""
        typed = None
        if self.flag is not None:
            typed = config.getoption(self.flag)
        if isinstance(typed, list):
            typed = ",".join(typed)
        in_file = None
        if self.where != "typed":
            in_file = config.getini(f"fairness_{self.field}")
        return typed, in_file


#: The name on the command line is that of the field: ``shard`` is ``--fairness-shard``.
OPTIONS = (
    Option(
        "endpoint",
        _names,
        "simulated",
        "both",
        "system under test: a name from endpoints.yaml, or 'simulated'; several with commas "
        "between them, or 'all' of "
        "the file: each test asks each, as an item of its own",
    ),
    Option(
        "tier",
        _one_of("auto", "1", "2", "all"),
        "auto",
        "both",
        "1: with system prompt; 2: conversation only; all: both; auto: 1 where a test has a system "
        "prompt",
    ),
    Option(
        "test",
        str,
        "",
        "typed",
        "run the fairness tests of these ids alone, as reports have them, with commas between "
        "them: BIAS-ATTR-age, "
        "or BIAS-ATTR-* for several; may be repeated",
        adds=True,
    ),
    Option(
        "protected_class",
        str,
        "",
        "typed",
        "run the fairness tests about these protected classes alone: gender,age; may be repeated",
        adds=True,
    ),
    Option("max_cost", _dollars, None, "both", "US dollars that this run may cost at most"),
    Option(
        "deadline",
        _seconds,
        None,
        "both",
        "seconds that this session may ask; what is left then is not run",
    ),
    Option(
        "seed", int, 0, "both", "seed of the order in which trials are asked and of the statistics"
    ),
    Option(
        "smoke", bool, False, "both", "a quick look: too small a sample skips instead of failing"
    ),
    Option(
        "require_conclusive",
        bool,
        False,
        "both",
        "fail on every INCONCLUSIVE, not only on small samples, and on tests that ask for trials "
        "and conclude nothing",
    ),
    Option(
        "resume",
        str,
        None,
        "typed",
        "resume an earlier run, its id or 'last': no finished trial is asked again; 'auto': the "
        "last of the same "
        "command, if it left something to ask; with a shard, a merged run: ask its next stage",
    ),
    Option(
        "retry_unknown",
        bool,
        False,
        "typed",
        "ask again what was sent and never answered, perhaps paid for twice",
    ),
    Option(
        "retry_errors",
        bool,
        False,
        "typed",
        "on resuming, ask again the trials that failed and cost nothing",
    ),
    Option(
        "replay",
        str,
        None,
        "typed",
        "judge a recorded run: its id, 'last' or its folder; nothing is asked",
    ),
    Option(
        "shard",
        _share,
        "",
        "typed",
        "K/N: ask the K-th of N shares of all trials, to be merged and judged later",
    ),
    Option(
        "against",
        str,
        None,
        "typed",
        "compare the findings with those of a run: its id, 'last', its findings.json",
    ),
    Option(
        "markdown",
        Path,
        None,
        "typed",
        "write the report for a pull request, as Markdown, to this file",
    ),
    Option(
        "notify",
        _one_of("off", "slack"),
        "off",
        "both",
        "slack: on a FAIL or a regression, send a message to the webhook in the variable "
        "FAIRNESS_SLACK_WEBHOOK",
    ),
    Option(
        "approve", bool, False, "approval", "write the scores of this run as approved baselines"
    ),
    Option("justification", str, "", "approval", "why the baselines are approved; kept with them"),
    Option(
        "approve_regression",
        bool,
        False,
        "approval",
        "allow --fairness-approve to approve a regression",
    ),
    Option("approve_in_ci", bool, False, "approval", "allow --fairness-approve where CI is set"),
    Option("endpoints_file", Path, "endpoints.yaml", "ini", "where the endpoints are described"),
    Option("run_dir", Path, ".fairness/runs", "ini", "where runs are kept"),
    Option("baseline_dir", Path, "baselines", "ini", "where approved baselines are kept"),
    Option("concurrency", _positive, 16, "ini", "requests in flight at once"),
    Option("attempt_timeout", _seconds, 120.0, "ini", "seconds that one request may take, in all"),
    Option(
        "looks",
        _looks,
        "",
        "both",
        "names a group at which a grid is looked at, as 10,20,40; all: a shard asks every stage",
    ),
    Option(
        "reader",
        str,
        "",
        "ini",
        "the endpoint that reads what rules cannot, and judges: a name from endpoints.yaml, or "
        "'self' for the one under test",
    ),
    Option(
        "sensitivity",
        bool,
        False,
        "ini",
        "try every PASS on copies of its data with a planted disparity",
    ),
    Option(
        "session_alpha",
        _level,
        0.05,
        "ini",
        "the chance at most that alarms of grid tests turn a session of a fair system red",
    ),
    Option(
        "session_tests",
        _positive,
        None,
        "ini",
        "tests that share fairness_session_alpha; by default those collected that ask for trials",
    ),
    Option(
        "retain_years",
        _positive,
        None,
        "ini",
        "years for which runs and their bundles are to be kept, from the day on which a run began",
    ),
    Option(
        "data",
        str,
        "",
        "ini",
        "the file of a benchmark that a suite asks, or the folder of several, as it was fetched",
    ),
    Option(
        "github",
        _one_of("auto", "off"),
        "auto",
        "ini",
        "in a job of GitHub's, annotate tests and add to its summary",
    ),
    Option(
        "progress", _one_of("auto", "off"), "auto", "ini", "show progress while asking: auto or off"
    ),
)


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and ini value; the ini twin of one that approves too, so that it can be
    refused.
    """
    group = parser.getgroup("fairness", "fairness")
    for option in OPTIONS:
        if option.flag is not None:
            group.addoption(option.flag, default=None, help=_help(option), **_form(option))
        if option.where != "typed":
            kind: Literal["bool", "string"] = "string"
            if option.read is bool:
                kind = "bool"
            about = option.help
            if option.ini is None:
                about = f"refused: {option.flag} is read from the command line alone"
            parser.addini(f"fairness_{option.field}", about, type=kind, default=None)


def _help(option: Option) -> str:
    """Return the help of *option*, with the name of its ini value."""
    if option.ini is None:
        return option.help
    return f"{option.help} (ini: {option.ini})"


def _form(option: Option) -> dict[str, Any]:
    """Return how argparse takes *option*."""
    # Named, or pytest would look for another option of that name among all there are, at the start
    # of every session.
    form: dict[str, Any] = {"dest": f"fairness_{option.field}"}
    if option.read is bool:
        return {**form, "action": "store_true"}
    form["metavar"] = option.field.upper()
    if option.adds:
        form["action"] = "append"
    return form


def refuse_unreadable(config: pytest.Config) -> None:
    """Raise :class:`pytest.UsageError` where a value is given that cannot be read."""
    if any(option.given(config) != (None, None) for option in OPTIONS):
        settings_of(config)


def settings_of(config: pytest.Config) -> Settings:
    """Settings of this session, read once. Raises :class:`pytest.UsageError` naming the option that
    has no sense.
    """
    if _RESOLVED not in config.stash:
        from pytest_fairness.context import Settings

        received = getattr(config, "workerinput", {}).get("fairness_settings")
        if received is None:
            config.stash[_RESOLVED] = _resolved(config)
        else:
            config.stash[_RESOLVED] = Settings.from_dict(received)
    return config.stash[_RESOLVED]


def arguments_of(config: pytest.Config) -> dict[str, Any]:
    """The arguments of the command line, ``all`` of them, and those that name ``tests``; the
    ``root`` of the project, and the ``folder`` that the command was typed in.
    """
    tests = []
    if config.args_source is config.ArgsSource.ARGS:
        tests = config.args
    return {
        "all": list(map(str, config.invocation_params.args)),
        "tests": list(map(str, tests)),
        "root": str(config.rootpath),
        "folder": str(config.invocation_params.dir),
    }


def _output_path(config: pytest.Config, path: Path) -> Path:
    """*path* from where the command was typed. Raises UsageError for a link, before asking begins."""
    path = config.invocation_params.dir / path
    if path.is_symlink():
        why = "is a symbolic link, which is not followed"
        raise pytest.UsageError(f"--fairness-markdown: {path} {why}")
    return path


def _resolved(config: pytest.Config) -> Settings:
    """Return the settings by command line and ini file, with the runs that they name. Raises
    :class:`pytest.UsageError`.
    """
    from pytest_fairness.context import Settings

    values = {option.field: _value(config, option) for option in OPTIONS}
    _refuse_standing_approval(approves=values["approve"])
    for field in ("endpoints_file", "run_dir", "baseline_dir"):
        # Relative to the root directory, not to wherever the command was typed: a run must be found
        # again.
        values[field] = config.rootpath / values[field]
    if values["markdown"] is not None:  # as pytest's own outputs
        values["markdown"] = _output_path(config, values["markdown"])
    named = (values["resume"], values["replay"], values["against"])
    if named == (None, None, None) and values["endpoint"] != EVERY:
        return Settings(**values)

    from pytest_fairness.errors import FairnessError

    if values["replay"] is not None:
        for other in ("resume", "shard"):
            if values[other]:
                raise pytest.UsageError(
                    f"--fairness-replay asks nothing, so --fairness-{other} cannot go with it"
                )
    # Once, here, so that all processes mean the same run.
    try:
        return _with_past_runs(config, values)
    except FairnessError as error:
        raise pytest.UsageError(str(error)) from None


def _refuse_standing_approval(*, approves: bool) -> None:
    """Raise UsageError where the environment says to approve, and this session does not."""
    from pytest_fairness.baselines.approval import FALSE

    meant = os.environ.get(APPROVE_VARIABLE, "").strip()
    if meant.lower() not in FALSE and not approves:
        raise pytest.UsageError(
            f"{APPROVE_VARIABLE}={meant!r} is set and approves nothing: a variable outlives the "
            "decision that it was set for. Unset it, and type --fairness-approve "
            '--fairness-justification "what changed, and what was reviewed" in the session that '
            "approves"
        )


def _with_past_runs(config: pytest.Config, values: dict[str, Any]) -> Settings:
    """The settings of *values*, with the runs that they name, and what these say. Raises
    FairnessError.
    """
    from pytest_fairness.context import AUTO, Settings
    from pytest_fairness.endpoints.registry import every_name
    from pytest_fairness.pytest_layer import past_runs
    from pytest_fairness.reports.outputs import earlier_results

    run_dir = values["run_dir"]
    typed_in = config.invocation_params.dir
    # Which run `auto` is depends on what the tests ask, and is chosen when they are collected.
    if values["shard"] and values["resume"] is not None:
        values |= past_runs.next_stage(run_dir, typed_in, values["resume"], values["shard"])
    resumes = values["resume"] not in (None, AUTO)
    resumed = None
    if resumes:
        values["resume"] = past_runs.resumable(run_dir, values["resume"]).name
        resumed = run_dir / values["resume"]
    if values["against"] is not None:
        values["against"] = earlier_results(run_dir, typed_in, values["against"], but=resumed)
    if values["replay"] is not None:
        values["replay"] = past_runs.replayable(run_dir, typed_in, values["replay"])
        values |= _as_recorded(config, values)
    if values["endpoint"] == EVERY:
        values["endpoint"] = ",".join(every_name(values["endpoints_file"]))
    settings = Settings(**values)
    if resumes or settings.merged is not None:
        past_runs.refuse_changes(settings, config.rootpath)
    return settings


def _as_recorded(config: pytest.Config, values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that a replay takes from its recording: those that nobody has typed, and
    every endpoint of the recording where that is what was typed.
    """
    from pytest_fairness.pytest_layer import past_runs

    recorded = past_runs.recorded_settings(values["replay"])
    for field in list(recorded):
        typed = config.getoption(f"--fairness-{field}") is not None
        every = field == "endpoint" and values["endpoint"] == EVERY
        if typed and not every:
            del recorded[field]
    return recorded


def _value(config: pytest.Config, option: Option) -> Any:
    """Return the value of *option*: typed, else of the ini file, else its default. Raises
    :class:`pytest.UsageError` for what cannot be read.
    """
    typed, in_file = option.given(config)
    if option.where == "approval":
        _refuse_unless_typed(config, option)
    given = typed
    origin = option.flag
    if typed is None:
        given = in_file
        origin = option.ini
    if given is None or given == "":
        return option.default
    if option.read is bool:
        return bool(given)
    try:
        return option.read(str(given))
    except ValueError as error:
        raise pytest.UsageError(f"{origin}={given!r}: {error}") from None


def _refuse_unless_typed(config: pytest.Config, option: Option) -> None:
    """Raise UsageError where an *option* that approves is given by anything but the command line."""
    typed, in_file = option.given(config)
    belongs = (
        "it is read from the command line alone, because a file of the project, or a variable, "
        f"that approves baselines lets a change approve itself. Take it out, and type {option.flag} "
        "in the session that approves"
    )
    if in_file is not None:
        where = "the ini file"
        if config.inipath is not None:
            where = config.inipath.name
        raise pytest.UsageError(
            f"fairness_{option.field} is set in {where} (or with -o): {belongs}"
        )
    words = [str(argument).partition("=")[0] for argument in config.invocation_params.args]
    if typed is not None and option.flag not in words:
        raise pytest.UsageError(
            f"{option.flag} comes from addopts, PYTEST_ADDOPTS or a file of arguments: {belongs}"
        )
