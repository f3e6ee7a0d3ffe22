"""A few conversations a group and what became of all, for a reader who wants to see what the figures were read from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_fairness.model import Finding, Status
from pytest_fairness.reports.trials import TrialView, each_trial

EACH = 2
_FIGURE, _ENDING = "figure", "ending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of a group's trials, and at how many of them something was asked more than once.

    ``unanswered`` are those that were asked for and brought no reply to score: errors, empty and malformed replies,
    and what was never sent. ``endings`` counts each way to end that is no whole answer, in the provider's own words.
    """

    trials: int = 0
    answered: int = 0
    refused: int = 0
    unanswered: int = 0
    retried: int = 0
    endings: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """For each group a few of its trials, the answered ones first, then one refused, if any; and the count of all."""

    trials: Mapping[str, Sequence[TrialView]]
    tallies: Mapping[str, Tally]

    def among(self, groups: Sequence[str]) -> Examples:
        """Those of *groups*, in their order."""
        return Examples(
            trials={group: self.trials[group] for group in groups if group in self.trials},
            tallies={group: self.tallies[group] for group in groups if group in self.tallies},
        )


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
    counted: dict[tuple[str, str], dict[str, Counter[tuple[str, str]]]] = {key: {} for key in wanted}
    for trial in each_trial(run_dir) if wanted else ():
        for (protected_class, endpoint), groups in wanted.items():
            if trial.endpoint in ("", *endpoint.split(", ")):
                for group in trial.stands_for(protected_class) & groups:
                    _keep(found[protected_class, endpoint].setdefault(group, []), trial)
                    _count(counted[protected_class, endpoint].setdefault(group, Counter()), trial)
    return {
        key: Examples(
            trials={group: sorted(trials, key=_order) for group, trials in sorted(kept.items())},
            tallies={group: _tally(counted[key][group]) for group in sorted(kept)},
        )
        for key, kept in found.items()
        if counted[key]
    }


def _count(tally: Counter[tuple[str, str]], trial: TrialView) -> None:
    kind = trial.status if trial.status in (Status.ANSWERED, Status.REFUSED) else "unanswered"
    for key in ("trials", kind, *(("retried",) if trial.retried else ())):
        tally[_FIGURE, key] += 1
    if trial.ending:
        tally[_ENDING, trial.ending] += 1


def _tally(counted: Counter[tuple[str, str]]) -> Tally:
    figures = {key: count for (kind, key), count in counted.items() if kind == _FIGURE}
    endings = {key: count for (kind, key), count in counted.most_common() if kind == _ENDING}
    return Tally(**figures, endings=endings)


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
