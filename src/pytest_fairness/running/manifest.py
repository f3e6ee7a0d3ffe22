"""``manifest.json``: what a run was, and the heads of its logs, replaced whole at every change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_fairness.errors import StoreError
from pytest_fairness.model import to_json
from pytest_fairness.running.files import write_atomically
from pytest_fairness.running.scan import Anchor

NAME = "manifest.json"


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
    """For each log that was closed: how many records it had, and its head. Raises StoreError."""
    logs = read_manifest(directory).get("logs", {})
    try:
        return {name: Anchor(int(log["records"]), str(log["head"])) for name, log in logs.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{directory / NAME}: its entry of logs cannot be read ({error}): restore it from a copy"
        ) from error


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest of the run in *directory*. Raises StoreError; TypeError for what is not JSON."""
    text = json.dumps(to_json(manifest), indent=1, allow_nan=False, sort_keys=True) + "\n"
    write_atomically(directory / NAME, text.encode("ascii"))
