"""What a reader has to know of a run that is not one session's, asked from beginning to end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def notes_on(run: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Sentences for the terminal and the report: whether this is a replay, a shard, or was gone on with, and how."""
    notes = []
    if manifest.get("replay_of"):
        notes.append(f"replayed from run {manifest['replay_of']}: nothing was asked; costs are those of the recording")
        if manifest.get("replay_of_finished") is False:
            notes.append("the recorded run never came to its end: nothing shows whether the end of its log is there")
    if manifest.get("shard"):
        notes.append(
            f"shard {manifest['shard']}: its trials are asked and nothing is judged; put the shards together with "
            "pytest-fairness merge, and judge the merged run with --fairness-replay"
        )
    if salvaged := manifest.get("salvaged_from"):
        notes.append(_salvaged(salvaged))
    resumed = manifest.get("resumed") or []
    if resumed:
        times = "once" if len(resumed) == 1 else f"{len(resumed)} times"
        notes.append(f"gone on with, {times}: not all of it was asked in one session")
    if any(_retried(session) for session in resumed):
        notes += _asked_again(run)
    return notes


def _salvaged(salvaged: Mapping[str, Any]) -> str:
    lost = [str(one) for one in salvaged.get("lost") or ()]
    told = f"lost: {'; '.join(lost[:3])}" if lost else "nothing was lost"
    more = f"; and {len(lost) - 3} more places, in manifest.json" if len(lost) > 3 else ""
    return f"salvaged from the damaged run {salvaged.get('run')}; {told}{more}"


def _retried(session: Mapping[str, Any]) -> bool:
    settings = session.get("settings", {})
    return bool(settings.get("retry_unknown") or settings.get("retry_errors"))


def _asked_again(run: Path) -> list[str]:
    """How many trials were asked again, in each group: to replace failures alone shifts the sample that is left."""
    from pytest_fairness.engine.conversation import AGAIN
    from pytest_fairness.runs.reader import RunReader

    trials, again = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    total = 0
    for record in RunReader.open(run).records():
        repeated = any(flag.startswith(AGAIN) for flag in record.flags)
        total += repeated
        for place in record.cell.groups.items():
            trials[place] += 1
            again[place] += repeated
    if not total:
        return []
    shares: dict[str, list[str]] = {}
    for (protected, group), count in sorted(trials.items()):
        shares.setdefault(protected, []).append(f"{group} {again[protected, group]}/{count}")
    told = "; ".join(f"{protected}: {', '.join(groups)}" for protected, groups in shares.items())
    which = f"{total} trials had come to nothing and were" if total > 1 else "one trial had come to nothing and was"
    return [f"{which} asked again ({told})"]
