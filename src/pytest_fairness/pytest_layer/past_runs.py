"""Runs of before: which one is meant, what has changed since, and the systems that it knows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.errors import UsageError
from pytest_fairness.runs.designs import RecordedDesign, closest_changes

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_fairness.context import Settings
    from pytest_fairness.endpoints.registry import RecordedEndpoint
    from pytest_fairness.runs.replay import Recording
    from pytest_fairness.runs.store import RunStore

#: Settings that decide which trials there are, or how chance falls: a replay takes them from the recording.
RECORDED = ("endpoint", "tier", "seed")
_MUST_HOLD = (*RECORDED, "shard")


def resumable(root: Path, name: str) -> Path:
    """The run of *root* to go on with. Raises UsageError where there is none, or it cannot be gone on with."""
    from pytest_fairness.runs.folder import locate_run
    from pytest_fairness.runs.manifest import read_manifest

    run = locate_run(root, name, is_meant=lambda path: _asked(read_manifest(path)))
    if not _asked(manifest := read_manifest(run)):
        what = "a merged run" if "merged_from" in manifest else "a replay" if "replay_of" in manifest else "no run"
        raise UsageError(f"{run} cannot be resumed: it is {what}; resume the run that asked")
    return run


def _asked(manifest: Mapping[str, Any]) -> bool:
    return "settings" in manifest and "replay_of" not in manifest and "merged_from" not in manifest


def replayable(root: Path, here: Path, name: str) -> Path:
    """The run to replay: an id of *root*, ``last`` (that is no replay itself), or a folder, seen from *here*."""
    from pytest_fairness.runs.folder import locate_run
    from pytest_fairness.runs.manifest import read_manifest

    if (here / name / "manifest.json").is_file():
        return (here / name).resolve()
    return locate_run(root, name, is_meant=lambda path: _whole(read_manifest(path)))


def _whole(manifest: Mapping[str, Any]) -> bool:
    return "settings" in manifest and "replay_of" not in manifest and "shard" not in manifest


def recorded_settings(run: Path, *, except_for: Collection[str] = ()) -> dict[str, Any]:
    """Those settings of *run* which a replay takes over, but for those that are given anew."""
    from pytest_fairness.runs.manifest import read_manifest

    recorded = read_manifest(run).get("settings", {})
    # The endpoint is None where the tests' own systems were asked instead of it.
    return {field: recorded[field] for field in RECORDED if recorded.get(field) is not None and field not in except_for}


def refuse_changes(settings: Settings, root: Path) -> None:
    """Raise pytest.UsageError naming what differs between the command that made the run and this one, if it would
    mix.
    """
    from pytest_fairness.runs.manifest import read_manifest

    run = settings.run_dir / str(settings.resume)
    changed = changes(read_manifest(run), settings, root)
    if changed:
        raise pytest.UsageError(
            f"run {run.name} cannot be resumed: {'; '.join(changed)}. Its data are kept. Reissue the command as it was "
            "or start a new run without --fairness-resume"
        )


def changes(manifest: Mapping[str, Any], settings: Settings, root: Path) -> list[str]:
    """What differs, in a few words each. What tests ask is compared test by test, when it is asked."""
    from pytest_fairness.baselines.approval import git_commit
    from pytest_fairness.runs.manifest import versions as current_versions

    then, now = manifest.get("settings", {}), settings.to_dict()
    changed = [
        f"the {field} was {then[field]!r}, is {now[field]!r}" for field in _MUST_HOLD if _differs(then, now, field)
    ]
    package, versions = "pytest-fairness", manifest.get("versions", {})
    current = current_versions()
    if versions.get(package) != current.get(package):
        changed.append(f"the version of {package} was {versions.get(package)}, is {current.get(package)}")
    if _asks_code(manifest) and manifest.get("git_commit") != (commit := git_commit(root)):
        # The system under test is code of this project; a function's own source would not show what it calls.
        changed.append(f"the code was at commit {manifest.get('git_commit')}, is at {commit}")
    return changed


def _differs(then: Mapping[str, Any], now: Mapping[str, Any], field: str) -> bool:
    return then.get(field) is not None and then[field] != now[field]


def _asks_code(manifest: Mapping[str, Any]) -> bool:
    identities = [entry.get("identity", {}) for entry in manifest.get("endpoints", ())]
    pipelines = [identity for identity in identities if identity.get("type") == "pipeline"]
    steps = [step["endpoint"] for identity in pipelines for step in identity["steps"]]
    return any(identity.get("type") == "callable" for identity in (*identities, *steps))


def recorded_endpoint(recording: Recording, name: str) -> RecordedEndpoint:
    """The system called *name* as *recording* knows it. Raises UsageError where there is none, or two of that name."""
    from pytest_fairness.endpoints.registry import RecordedEndpoint

    systems = recording.systems()
    if not systems.get(name):
        known = ", ".join(sorted(systems)) or "none"
        raise UsageError(f"run {recording.directory.name} did not ask endpoint {name!r}; it asked: {known}")
    if len(systems[name]) > 1:
        raise UsageError(
            f"run {recording.directory.name} asked {len(systems[name])} systems that are called {name!r}: "
            "replay them from the fixture that made them"
        )
    return RecordedEndpoint(systems[name][0])


def note_design(store: RunStore, design: RecordedDesign, *, resumed: bool) -> None:
    """Log what a test asks, once a session and process. Where the run is *resumed* and the test asked otherwise
    before, raise UsageError naming what changed: nothing is asked then, and nothing mixed.
    """
    known = store.designs()
    if resumed:
        changed = closest_changes([one for one in known if one.session != design.session], design)
        if changed:
            raise UsageError(
                f"run {store.directory.name} cannot be resumed for this test: {'; '.join(changed)}. The trials asked "
                "before are kept and not reused. Undo the change, or start a new run without --fairness-resume"
            )
    if not any(one.session == design.session and one.same(design) for one in known):
        store.append(design.to_record())
