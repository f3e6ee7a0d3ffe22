"""``--fairness-resume=auto``: the last run of the same command, if it left something to ask; else a
new run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_fairness.context import RunContext
from pytest_fairness.pytest_layer.collection import Key
from pytest_fairness.pytest_layer.command_line import parsed
from pytest_fairness.pytest_layer.past_runs import changes_since
from pytest_fairness.pytest_layer.plans import Planned
from pytest_fairness.runs.database import is_being_written
from pytest_fairness.runs.folder import has_begun, reserve_run, run_folders
from pytest_fairness.runs.manifest import FINISHED, read_manifest
from pytest_fairness.words import dollars

#: Options with which a command is the same: what is resumed and how far it goes, by how many, and
#: what is shown of it.
_FREE = re.compile(
    "-[vqsx]+|-[rnpW]|--("
    "fairness-(resume|retry-unknown|retry-errors|max-cost|deadline|markdown|against)|maxfail|numprocesses|maxprocesses"
    "|dist|max-worker-restart|verbose|quiet|verbosity|capture|color|tb|durations|html|self-contained-html|junit-?xml"
    "|log-level)"
)
#: Cells of a design whose texts are compared; one that differs elsewhere is an error of its test,
#: which names it.
_COMPARED = 64


def chosen(
    context: RunContext, tests: Sequence[str], grids: Mapping[Key, Planned]
) -> tuple[RunContext, str]:
    """*context* with the run to resume in its settings, or none; and which it is, and why, on one
    line, which is empty where another process of this session has chosen.

    *tests* are those that the session is going to run. The first process that has chosen reserves
    the folder for all. Raises FairnessError where what may be resumed is damaged.
    """
    settings = context.settings
    what = asked(tests, grids)
    chosen_tests: list[str] = []

    def choose() -> str | None:
        run, why = _last(context, what)
        chosen_tests.append(why)
        if run is None:
            return None
        return run.name

    folder = reserve_run(settings.run_dir, context.token, adopt=choose)
    sessions = read_manifest(folder).get("sessions", [])
    resumed = bool(sessions) and sessions[0] != context.session
    does = "starts a new run"
    resume = None
    if resumed:
        does = f"resumes run {folder.name}"
        resume = folder.name
    settings = replace(settings, resume=resume)
    return replace(context, settings=settings), "".join(
        f"fairness: --fairness-resume=auto {does}: {why}" for why in chosen_tests
    )


def asked(tests: Sequence[str], grids: Mapping[Key, Planned]) -> dict[str, str]:
    """A digest of the designs of each test function in *grids* that *tests* belong to; of texts, a
    sample.
    """
    digests = {}
    functions = {_function_of(test) for test in tests}
    for key, planned in grids.items():
        test = "::".join(key)
        if _function_of(test) in functions:
            digests[test] = _digest_of(planned)
    return digests


def _function_of(test: str) -> str:
    """Return the node id of the function of *test*, without its parameters."""
    return test.partition("[")[0]


def _digest_of(planned: Planned) -> str:
    """A digest of the size and the parameters of a design, and of a sample of its texts."""
    grid = planned.grid
    step = max(1, len(grid) // _COMPARED)
    cells = list(map(planned.cell, range(0, len(grid), step)))
    parameters = sorted(grid.parameters.items())
    about = (len(grid), grid.repetitions, parameters, planned.temperatures)
    texts = [(cell.id, cell.system, cell.turns) for cell in cells]
    content = repr((about, texts)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()[:16]


def _other_questions(before: Mapping[str, str], what: Mapping[str, str]) -> str:
    """Return which tests asked something else *before* than *what* they ask now."""
    tests = [test for test in {**before, **what} if before.get(test) != what.get(test)]
    if not tests:
        return "it was cut off before it asked"
    more = ""
    if len(tests) > 1:
        more = f" and {len(tests) - 1} more"
    return f"what {tests[0]}{more} asks has changed"


def _last(context: RunContext, what: Mapping[str, str]) -> tuple[Path | None, str]:
    """The run to resume and why; or None, and why not. *what* the tests ask."""
    mine = _essence(context.command)
    for run in filter(has_begun, reversed(run_folders(context.settings.run_dir))):
        manifest = read_manifest(run)
        if _is_run_of(mine, manifest):
            return _resumable(run, manifest, context, what)
    return None, "there is no earlier run of this command"


def _resumable(
    run: Path, manifest: Mapping[str, Any], context: RunContext, what: Mapping[str, str]
) -> tuple[Path | None, str]:
    """The *run* of this command, if it can be resumed, and why; else None, and why not."""
    last = f"the last run of this command, {run.name},"
    left = _left(run, manifest, context)
    if not left:
        ended = "is whole"
        if "cost" in (manifest.get("unasked") or ()):
            ended = "reached its cost cap, which is no higher now"
        return None, f"{last} {ended}"
    changed = changes_since(run, context.settings, context.root)
    if manifest.get("asked") != what:
        changed.append(_other_questions(manifest.get("asked") or {}, what))
    if is_being_written(run):
        changed.append("another process is writing it")
    if changed:
        return None, f"{last} {left}, and {'; '.join(changed)}"
    return run, f"it {left}"


def _is_run_of(essence: Sequence[tuple[str, str]], manifest: Mapping[str, Any]) -> bool:
    """Return whether the run of *manifest* was begun or resumed by a command of that *essence*."""
    if "settings" not in manifest or manifest.keys() & {"replay_of", "merged_from"}:
        return False
    sessions = _sessions_of(manifest)
    return any(_essence(session.get("command", ())) == essence for session in sessions)


def _sessions_of(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what *manifest* says of each session of its run, the first one first."""
    return [manifest, *(manifest.get("resumed") or ())]


def _left(run: Path, manifest: Mapping[str, Any], context: RunContext) -> str:
    """Return what the *run* left to be asked, in a few words; empty if nothing."""
    from pytest_fairness.reports.findings_json import read_results

    if FINISHED not in manifest:
        return "never came to its end"
    results = read_results(run)
    settings = context.settings
    trials = results.run["trials"]
    unasked = manifest.get("unasked") or ()
    cap = _sessions_of(manifest)[-1]["settings"].get("max_cost")
    if results.missing:
        return f"left {len(results.missing)} of its tests unfinished"
    if "time" in unasked:
        return "had no time to ask everything"
    if "endpoint" in unasked:
        return "had an endpoint that could not be asked"
    if "cost" in unasked and cap is not None and _is_higher(settings.max_cost, cap):
        return f"reached its cost cap of {dollars(cap)}, which is higher now"
    for again, status in ((settings.retry_unknown, "unknown"), (settings.retry_errors, "error")):
        if again and trials.get(status):
            return f"has {trials[status]} trials to be asked again"
    return ""


def _is_higher(cap: float | None, before: float) -> bool:
    """Return whether *cap* leaves more room than *before*; None is no cap."""
    return cap is None or cap > before


def _essence(command: Sequence[str]) -> list[tuple[str, str]]:
    """Return what of *command* decides which tests it runs and how they are judged."""
    return [(name, value) for name, _, value in parsed(command[1:]) if not _FREE.fullmatch(name)]
