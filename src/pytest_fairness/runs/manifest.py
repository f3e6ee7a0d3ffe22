"""``manifest.json``: what a run was, and the heads of its logs, replaced whole at every change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_fairness.errors import StoreError
from pytest_fairness.model import to_json
from pytest_fairness.runs.files import write_atomically
from pytest_fairness.runs.scan import Anchor

NAME = "manifest.json"
#: Set when a session has come to its end, together with the heads of all logs.
FINISHED = "finished"
#: The logs of a run.
LOGS = "trials*.jsonl"


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of the run in *directory*; empty if there is none yet. Raises StoreError if it cannot be
    read."""
    path = directory / NAME
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} cannot be read ({error}): restore it from a copy, or start a new run") from error
    if not isinstance(manifest, dict):
        raise StoreError(f"{path} is not a JSON object: restore it from a copy, or start a new run")
    return manifest


def anchors_of(directory: Path) -> dict[str, Anchor]:
    """For each log that was closed: how many records it had, and its head.

    Raises StoreError where they cannot be read, and where the run came to its end and a log has none.
    """
    # The logs first: a session that goes on with the run takes back its end before it begins a log.
    there = sorted(path.name for path in directory.glob(LOGS))
    manifest = read_manifest(directory)
    try:
        logs = manifest.get("logs", {})
        anchors = {name: Anchor(int(log["records"]), str(log["head"])) for name, log in logs.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{directory / NAME}: its entry of logs cannot be read ({error}): restore it from a copy"
        ) from error
    missing = [name for name in there if name not in anchors] if FINISHED in manifest else []
    if missing:
        raise StoreError(
            f"{directory / NAME} is damaged: the run came to its end, and the head of {missing[0]} is not there, so "
            "that nothing shows whether that log was changed; restore it from a copy"
        )
    return anchors


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest of the run in *directory*. Raises StoreError; TypeError for what is not JSON."""
    text = json.dumps(to_json(manifest), indent=1, allow_nan=False, sort_keys=True) + "\n"
    write_atomically(directory / NAME, text.encode("ascii"))
