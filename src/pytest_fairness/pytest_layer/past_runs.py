"""Previous runs: which one is meant, what has changed since, and the systems that it knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_fairness.context import Settings
    from pytest_fairness.endpoints.registry import RecordedEndpoint
    from pytest_fairness.runs.designs import RecordedDesign
    from pytest_fairness.runs.reader import RunReader
    from pytest_fairness.runs.store import RunStore

#: Settings that decide which trials there are, or how chance falls: a replay takes them from the recording.
RECORDED = ("endpoint", "tier", "seed")


def resumable(root: Path, name: str) -> Path:
    """The run of *root* to resume. Raises UsageError where there is none, or it asked nothing itself."""
    from pytest_fairness.runs.folder import locate_run
    from pytest_fairness.runs.manifest import read_manifest

    def was_live(run: Path) -> bool:
        manifest = read_manifest(run)
        return "settings" in manifest and "replay_of" not in manifest and "merged_from" not in manifest

    run = locate_run(root, name, is_meant=was_live)
    if not was_live(run):
        manifest = read_manifest(run)
        what = "a merged run" if "merged_from" in manifest else "a replay" if "replay_of" in manifest else "no run"
        raise UsageError(f"{run} cannot be resumed: it is {what}; resume the run that asked")
    return run


def replayable(root: Path, here: Path, name: str) -> Path:
    """The run to replay: an id of *root*, ``last`` (that is no replay itself), or a folder, seen from *here*."""
    from pytest_fairness.runs.folder import locate_run
    from pytest_fairness.runs.manifest import read_manifest

    def whole(run: Path) -> bool:
        manifest = read_manifest(run)
        return "settings" in manifest and "replay_of" not in manifest and "shard" not in manifest

    if (here / name / "manifest.json").is_file():
        return (here / name).resolve()
    return locate_run(root, name, is_meant=whole)


def recorded_settings(run: Path) -> dict[str, Any]:
    """Those settings of *run* which a replay takes over."""
    from pytest_fairness.runs.manifest import read_manifest

    recorded = read_manifest(run).get("settings", {})
    # The endpoint is None where the tests' own systems were asked instead of it.
    return {field: recorded[field] for field in RECORDED if recorded.get(field) is not None}


def refuse_changes(settings: Settings, root: Path) -> None:
    """Raise pytest.UsageError naming what differs between the command that made the run and this one, if it would mix.

    What tests ask is compared test by test, when it is asked.
    """
    from pytest_fairness.baselines.approval import git_commit
    from pytest_fairness.runs.manifest import read_manifest, versions

    manifest = read_manifest(settings.run_dir / str(settings.resume))
    before, now = manifest.get("settings", {}), settings.to_dict()
    pairs = [(f"the {field}", before.get(field), now[field]) for field in (*RECORDED, "shard")]
    changed = [f"{what} was {old!r}, is {new!r}" for what, old, new in pairs if old is not None and old != new]
    package = "pytest-fairness"
    old, new = (known.get(package) for known in (manifest.get("versions", {}), versions()))
    if old != new:
        changed.append(f"the version of {package} was {old}, is {new}")
    # Where the system under test is code of this project, a function's own source would not show what it calls.
    if _asks_code(manifest) and manifest.get("git_commit") != (commit := git_commit(root)):
        changed.append(f"the code was at commit {manifest.get('git_commit')}, is at {commit}")
    if changed:
        raise pytest.UsageError(
            f"run {settings.resume} cannot be resumed: {'; '.join(changed)}. Its data are kept. Reissue the command as "
            "it was or start a new run without --fairness-resume"
        )


def _asks_code(manifest: Mapping[str, Any]) -> bool:
    identities = [entry.get("identity", {}) for entry in manifest.get("endpoints", ())]
    steps = [step["endpoint"] for one in identities if one.get("type") == "pipeline" for step in one["steps"]]
    return any(identity.get("type") == "callable" for identity in (*identities, *steps))


def recorded_endpoint(recording: RunReader, name: str) -> RecordedEndpoint:
    """The system called *name* as *recording* knows it. Raises UsageError where there is none, or two of that name."""
    from pytest_fairness.endpoints.registry import RecordedEndpoint

    systems, run = [record["endpoint"] for record in recording.engines.values()], recording.directory.name
    found = [system for system in systems if system["name"] == name]
    if not found:
        known = ", ".join(sorted({system["name"] for system in systems})) or "none"
        raise UsageError(f"run {run} did not ask endpoint {name!r}; it asked: {known}")
    if len(found) > 1:
        raise UsageError(
            f"run {run} asked {len(found)} systems called {name!r}: replay them from the fixture that made them"
        )
    return RecordedEndpoint(found[0])


def note_design(store: RunStore, design: RecordedDesign, *, resumed: bool) -> None:
    """Log what a test asks, once a session and process. Where the run is *resumed* and the test asked otherwise
    before, raise UsageError naming what changed: nothing is asked then, and nothing mixed.
    """
    from pytest_fairness.runs.designs import closest_changes

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
