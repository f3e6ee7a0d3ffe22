"""A few conversations a group, for a reader who wants to see what the figures were read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from pytest_fairness.model import Finding, Status
from pytest_fairness.reports.trials import TrialView, each_trial

EACH = 2

#: Group → a few of its trials; the answered ones first, then one refused, if there is any.
Examples: TypeAlias = Mapping[str, Sequence[TrialView]]


def collect_examples(run_dir: Path, findings: Sequence[Finding]) -> dict[tuple[str, str], Examples]:
    """Examples for each (protected class, endpoint) that the *findings* compare, from its logs.

    The first trials of each group by template and name, one a template, so that the same prompts stand
    side by side. The log is read once, and no more than what is shown is kept.
    """
    wanted = {
        (finding.protected_class, finding.model_endpoint or ""): {group.group for group in finding.group_results}
        for finding in findings
        if finding.protected_class and finding.model_endpoint
    }
    found: dict[tuple[str, str], dict[str, list[TrialView]]] = {key: {} for key in wanted}
    for trial in each_trial(run_dir) if wanted else ():
        for (protected_class, endpoint), groups in wanted.items():
            group = trial.groups.get(protected_class)
            if group in groups and trial.endpoint in ("", *endpoint.split(", ")):
                _keep(found[protected_class, endpoint].setdefault(group, []), trial)
    return {
        key: {group: sorted(trials, key=_order) for group, trials in sorted(kept.items())}
        for key, kept in found.items()
        if kept
    }


def _keep(kept: list[TrialView], trial: TrialView) -> None:
    """Keep *trial* if it is among the first of its kind in the order shown."""
    same = [other for other in kept if other.status == trial.status]
    most = EACH if trial.status == Status.ANSWERED else 1 if trial.status == Status.REFUSED else 0
    if any(other.template == trial.template for other in same):
        return
    if len(same) < most:
        kept.append(trial)
    elif most and _order(trial) < _order(worst := max(same, key=_order)):
        kept[kept.index(worst)] = trial


def _order(trial: TrialView) -> tuple[bool, str, str, int]:
    return (trial.status != Status.ANSWERED, trial.template, trial.name, trial.repetition)
