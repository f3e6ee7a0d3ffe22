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

HOOK = "pytest_fairness_notify"
#: Seconds that one notifier may take; after them it goes on by itself, if it does, and nobody waits
#: for it.
LIMIT = 20.0
_LONGEST = 200


def notify(config: pytest.Config, facts: Mapping[str, Any]) -> list[str]:
    """Call every implementation of the hook with *facts*, each by itself; a line for each that
    failed or took too long.

    Whatever one raises, it changes neither a verdict nor the exit status, nor keeps another from
    being called.
    """
    plugins = [
        implementation.plugin for implementation in getattr(config.hook, HOOK).get_hookimpls()
    ]
    return [trouble for plugin in plugins if (trouble := _call(config, plugin, plugins, facts))]


def _call(
    config: pytest.Config, plugin: object, plugins: list[object], facts: Mapping[str, Any]
) -> str:
    manager = config.pluginmanager
    raised = list[BaseException]()
    call = manager.subset_hook_caller(HOOK, [other for other in plugins if other is not plugin])

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
    name = recorded_text(str(manager.get_name(plugin)), config.rootpath)
    why = shortened(recorded_text(why, config.rootpath), _LONGEST)
    return (
        why
        and f"fairness: the notifier of {_short(line(name))} failed, which changes nothing else: {line(why)}"
    )


def _short(name: str) -> str:
    if name.endswith("conftest.py"):
        return Path(name).name
    return name
