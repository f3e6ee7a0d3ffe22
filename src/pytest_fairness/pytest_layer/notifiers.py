"""Sends the findings of a finished session on, through the hook ``pytest_fairness_notify``."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.endpoints.redaction import remember_environment
from pytest_fairness.pytest_layer.command_line import recorded_text
from pytest_fairness.reports.escaping import line, shortened
from pytest_fairness.reports.findings_json import read_results
from pytest_fairness.reports.outputs import compared_runs

HOOK = "pytest_fairness_notify"
#: Seconds that one notifier may take; after them it goes on by itself, if it does, and nobody waits
#: for it.
LIMIT = 20.0
_LONGEST = 200


def notify(config: pytest.Config, outputs: Mapping[str, Path], against: Path | None) -> list[str]:
    """Call every implementation of the hook with the results of the run whose *outputs* are written
    and what has changed *against* another, each by itself; return a line for each that failed or
    took too long.

    Whatever one raises, it changes neither a verdict nor the exit status, nor keeps another from
    being called.
    """
    run = outputs["report"].parent
    changes = None
    if against is not None:
        changes = compared_runs(run, against)
    facts = {"results": read_results(run), "changes": changes, "report": outputs["report"]}
    plugins = [
        implementation.plugin for implementation in getattr(config.hook, HOOK).get_hookimpls()
    ]
    lines = []
    for plugin in plugins:
        why = _trouble(config, plugin, plugins, facts)
        if why:
            name = str(config.pluginmanager.get_name(plugin))
            name = _short(line(recorded_text(name, config.rootpath)))
            lines.append(
                f"fairness: the notifier of {name} failed, which changes nothing else: {line(why)}"
            )
    return lines


def _trouble(
    config: pytest.Config, plugin: object, plugins: list[object], facts: Mapping[str, Any]
) -> str:
    """Call what *plugin* implements; return why it failed, empty where it did not."""
    raised = list[BaseException]()
    others = [other for other in plugins if other is not plugin]
    call = config.pluginmanager.subset_hook_caller(HOOK, others)

    def run() -> None:
        try:
            call(config=config, **facts)
        except BaseException as error:  # noqa: BLE001 - also whoever exits
            raised.append(error)

    # A thread of its own: nothing else can be left behind while it hangs.
    thread = threading.Thread(target=run, name=HOOK, daemon=True)
    thread.start()
    thread.join(LIMIT)
    why = ""
    if thread.is_alive():
        why = f"it took more than {LIMIT:g} s"
    if raised:
        remember_environment()
        why = str(raised[0]) or type(raised[0]).__name__
    return shortened(recorded_text(why, config.rootpath), _LONGEST)


def _short(name: str) -> str:
    """Return *name*, of a conftest.py its file name alone."""
    if name.endswith("conftest.py"):
        return Path(name).name
    return name
