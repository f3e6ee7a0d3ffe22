"""Previous runs: which one is meant, and what has changed since."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import UsageError
from pytest_fairness.runs.folder import locate_run, run_folders
from pytest_fairness.runs.manifest import GOES_ON_FROM, read_manifest, versions
from pytest_fairness.runs.manifest import NAME as MANIFEST
from pytest_fairness.runs.project import has_asked

if TYPE_CHECKING:
    from pytest_fairness.context import Settings

#: Settings that decide which trials there are, or how chance falls: a replay takes them from the
#: recording.
RECORDED = ("endpoint", "tier", "seed")
_PACKAGE = "pytest-fairness"
#: What ``last`` is the newest of.
ASKED = "that asked something itself"


def resumable(root: Path, name: str) -> Path:
    """The run of *root* to resume. Raises UsageError where there is none, or it asked nothing
    itself.
    """
    run = locate_run(root, name, is_meant=_asked_alone, which=ASKED)
    if _only(run, "replay_of", "merged_from"):
        return run
    what = "no run"
    manifest = read_manifest(run)
    if "merged_from" in manifest:
        what = "a merged run"
    elif "replay_of" in manifest:
        what = "a replay"
    raise UsageError(f"{run} cannot be resumed: it is {what}; resume the run that asked")


def next_stage(root: Path, here: Path, name: str, shard: str) -> dict[str, Any]:
    """Return the settings of a *shard* of the next stage of a merged run, an id of *root* or a
    folder, seen from *here*: that run, and which to resume, where the shard has begun that stage
    before; empty where *name* is no merged run.
    """
    folders = [folder for folder in (here / name, root / name) if (folder / MANIFEST).is_file()]
    if not folders or "merged_from" not in read_manifest(folders[0]):
        return {}
    merged = folders[0].resolve()
    begun = None
    for run in run_folders(root):
        manifest = read_manifest(run)
        if (manifest.get(GOES_ON_FROM), manifest.get("shard")) == (merged.name, shard):
            begun = run.name
    return {"merged": merged, "resume": begun}


def replayable(root: Path, here: Path, name: str) -> Path:
    """The run to replay: an id of *root*, ``last`` (that asked itself), or a folder, seen from
    *here*.
    """
    if (here / name / "manifest.json").is_file():
        return (here / name).resolve()
    return locate_run(root, name, is_meant=_has_replies, which=ASKED)


def _asked_alone(run: Path) -> bool:
    """Return whether *run* asked something itself, or was left to ask it."""
    # One that was left without an answer is resumed, too: a batch may be under way.
    left = bool(read_manifest(run).get("unasked"))
    return _only(run, "replay_of", "merged_from") and (left or has_asked(run))


def _has_replies(run: Path) -> bool:
    """Return whether *run* holds replies that a replay can judge."""
    return _only(run, "replay_of", "shard") and (has_asked(run) or not _only(run, "merged_from"))


def _only(run: Path, *others: str) -> bool:
    """Return whether *run* is one, and none that *others* mark."""
    manifest = read_manifest(run)
    return "settings" in manifest and not manifest.keys() & set(others)


def recorded_settings(run: Path) -> dict[str, Any]:
    """Those settings of *run* which a replay takes over."""
    recorded = read_manifest(run).get("settings", {})
    # The endpoint is None where the tests' own systems were asked instead of it.
    return {field: recorded[field] for field in RECORDED if recorded.get(field) is not None}


def changes_since(run: Path, settings: Settings, root: Path) -> list[str]:
    """Return what differs between the command that made *run* and this one, if it would mix; each
    in a few words.

    What tests ask is compared test by test, when it is asked.
    """
    from pytest_fairness.baselines.approval import git_commit

    manifest = read_manifest(run)
    before = manifest.get("settings", {})
    now = settings.to_dict()
    changed = []
    fields = [*RECORDED, "shard"]
    if settings.merged == run:  # it is of all shards
        fields = [*RECORDED]
    for field in fields:
        was = before.get(field)
        if was is not None and was != now[field]:
            changed.append(f"the {field} was {was!r}, is {now[field]!r}")
    old = manifest.get("versions", {}).get(_PACKAGE)
    new = versions().get(_PACKAGE)
    if old != new:
        changed.append(f"the version of {_PACKAGE} was {old}, is {new}")
    # Where the system under test is code of this project, a function's own source would not show
    # what it calls.
    if _asks_code(manifest):
        commit = git_commit(root)
        if manifest.get("git_commit") != commit:
            changed.append(f"the code was at commit {manifest.get('git_commit')}, is at {commit}")
    return changed


def _asks_code(manifest: Mapping[str, Any]) -> bool:
    """Return whether the run of *manifest* asked a function, or a pipeline with one."""
    for entry in manifest.get("endpoints", ()):
        identity = entry.get("identity", {})
        systems = [identity]
        if identity.get("type") == "pipeline":
            systems += [step["endpoint"] for step in identity["steps"]]
        if any(system.get("type") == "callable" for system in systems):
            return True
    return False


def refuse_changes(settings: Settings, root: Path) -> None:
    """Raise UsageError naming what differs between the command that made the run to resume, or that
    was merged, and this one.
    """
    if settings.merged is not None:
        if changed := changes_since(settings.merged, settings, root):
            raise UsageError(
                f"no next stage of {settings.merged} can be asked: {'; '.join(changed)}. Reissue "
                "the command of its shards, with --fairness-resume"
            )
        if read_manifest(settings.merged).get("looks") is None:
            raise UsageError(f"{settings.merged} has no looks, so there is no next stage of it")
    if settings.resume is None:
        return
    if changed := changes_since(settings.run_dir / str(settings.resume), settings, root):
        raise UsageError(
            f"run {settings.resume} cannot be resumed: {'; '.join(changed)}. Its data are kept. "
            "Reissue the command as "
            "it was or start a new run without --fairness-resume"
        )
