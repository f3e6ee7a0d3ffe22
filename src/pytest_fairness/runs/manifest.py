"""``manifest.json``: what a run was, and how far the records of each of its writers reach; replaced
whole.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pytest_fairness.errors import StoreError
from pytest_fairness.model import JSON, to_json
from pytest_fairness.runs.files import write_atomically

NAME = "manifest.json"
#: Set when a session has come to its end, together with the heads of all logs.
FINISHED = "finished"
#: The merged run of which a shard asks the next stage, by its id.
GOES_ON_FROM = "goes_on_from"
#: The exported records of a run.
LOGS = "trials*.jsonl"
_PACKAGES = (
    "pytest-fairness pytest pytest-xdist numpy pandas scipy statsmodels vaderSentiment aiohttp "
    "litellm"
)


class Anchor(msgspec.Struct, frozen=True):
    """After so many records, the head of a log was this hash."""

    records: int
    head: str


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of the run in *directory*; empty if there is none yet. Raises StoreError if it
    cannot be read.
    """
    manifest, _ = read_manifest_and_text(directory)
    return manifest


def read_manifest_and_text(directory: Path) -> tuple[dict[str, Any], str]:
    """The manifest of the run in *directory*, and its text as it stands in the file, or would if
    there were one. Raises StoreError if it cannot be read.
    """
    path = directory / NAME
    try:
        text = path.read_text(encoding="utf-8")
        manifest = msgspec.convert(json.loads(text), dict[str, Any])
        anchors_of(manifest)
    except FileNotFoundError:
        return {}, encode_manifest({}).decode("ascii")
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(
            f"{path} cannot be read ({error}): restore it from a copy, put what is left into "
            "a new run (pytest-fairness salvage), or start one without it"
        ) from error
    return manifest, text


def years_after(day: datetime.date, years: int) -> datetime.date:
    """The same day so many *years* later; 1 March where that year has no 29 February."""
    try:
        return day.replace(year=day.year + years)
    except ValueError:
        return datetime.date(day.year + years, 3, 1)


def retain_until(manifest: Mapping[str, Any]) -> datetime.date | None:
    """The day until which the run is to be kept, the latest that one of its sessions came to; None
    where the project says none.
    """
    days = []
    for facts in (manifest, *(manifest.get("resumed") or ())):
        years = (facts.get("settings") or {}).get("retain_years")
        if years is not None:
            days.append(years_after(day_of(facts["started"]), years))
    return max(days, default=None)


def day_of(time: str) -> datetime.date:
    """The day of a *time* as a manifest has it."""
    return datetime.date.fromisoformat(time[:10])


def anchors_of(manifest: Mapping[str, Any]) -> dict[str, Anchor]:
    """Return what *manifest* says of each log that was closed, by the name of its file."""
    return msgspec.convert(manifest.get("logs", {}), dict[str, Anchor])


def encode_manifest(manifest: Mapping[str, Any]) -> bytes:
    """*manifest* as it stands in the file. Raises TypeError for what is not JSON."""
    return (json.dumps(to_json(manifest), indent=1, allow_nan=False, sort_keys=True) + "\n").encode(
        "ascii"
    )


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest of the run in *directory*. Raises StoreError; TypeError for what is not
    JSON.
    """
    write_atomically(directory / NAME, encode_manifest(manifest))


def versions() -> dict[str, JSON]:
    """Version of Python, the platform and each package that a result can depend on, if installed."""
    versions_: dict[str, JSON] = {
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
    }
    for package in _PACKAGES.split():
        try:
            versions_[package] = _version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions_


def _version(package: str) -> str:
    """Return the version of *package*, from the head of its metadata alone: `importlib.metadata`
    parses the whole, which holds the package's documentation. Raises PackageNotFoundError.
    """
    distribution = importlib.metadata.distribution(package)
    head = (distribution.read_text("METADATA") or "").partition("\n\n")[0]
    version = re.search(r"^Version: (.+)$", head, re.MULTILINE)
    if version is None:
        return distribution.version
    return version[1].strip()
