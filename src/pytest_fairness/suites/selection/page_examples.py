"""A few trials of each arm as they stand in the log: what was asked, what a scrubber made of it, what was replied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_fairness.model import Status
from pytest_fairness.reports.trials import TrialView, each_trial

EACH = 2


def examples_of(run_dir: Path, arms: Sequence[str]) -> dict[str, list[TrialView]]:
    """The first *EACH* answered choices of each arm, and the first refused one, by context, names and repetition.

    They are the same candidates in every arm. The log is read once, and no more than what is shown is kept.
    """
    kept: dict[tuple[str, str], list[TrialView]] = {}
    for trial in each_trial(run_dir):
        most = EACH if trial.status == Status.ANSWERED else 1 if trial.status == Status.REFUSED else 0
        # A salary is asked for one candidate at a time, and lists no two.
        if most and trial.arm in arms and len(trial.listed.get("group", ())) > 1:
            mine = kept.setdefault((trial.arm, trial.status), [])
            mine.append(trial)
            mine.sort(key=_order)
            del mine[most:]
    return {
        arm: [trial for status in (Status.ANSWERED, Status.REFUSED) for trial in kept.get((arm, status), [])]
        for arm in arms
        if any((arm, status) in kept for status in (Status.ANSWERED, Status.REFUSED))
    }


def _order(trial: TrialView) -> tuple[str, str, int, str]:
    return trial.template, trial.name, trial.repetition, trial.key
