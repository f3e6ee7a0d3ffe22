"""A few conversations a group and what became of all, for a reader who wants to see what the figures were read from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_fairness.model import Finding, Status
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.sections import Dialogue
from pytest_fairness.reports.trial_views import TrialView, each_trial

_MOST = {Status.ANSWERED: 2, Status.REFUSED: 1}


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
    wanted: dict[tuple[str, str], set[str]] = {}
    for finding in findings:
        if finding.protected_class and finding.model_endpoint:
            key = (finding.protected_class, finding.model_endpoint)
            wanted.setdefault(key, set()).update(group.group for group in finding.group_results)
    kept: dict[tuple[str, str], dict[str, list[TrialView]]] = {key: {} for key in wanted}
    counted: dict[tuple[str, str], dict[str, Counter[str]]] = {key: {} for key in wanted}
    endings: dict[tuple[str, str, str], Counter[str]] = {}
    for trial in each_trial(run_dir) if wanted else ():
        for (protected_class, endpoint), groups in wanted.items():
            if trial.endpoint in ("", *endpoint.split(", ")):
                for group in trial.stands_for(protected_class) & groups:
                    _keep(kept[protected_class, endpoint].setdefault(group, []), trial)
                    counted[protected_class, endpoint].setdefault(group, Counter()).update(_kinds(trial))
                    if trial.ending:
                        endings.setdefault((protected_class, endpoint, group), Counter())[trial.ending] += 1
    return {
        key: Examples(
            trials={group: sorted(trials, key=_order) for group, trials in sorted(kept[key].items())},
            tallies={
                group: Tally(**count, endings=dict(endings.get((*key, group), Counter()).most_common()))
                for group, count in sorted(counts.items())
            },
        )
        for key, counts in counted.items()
        if counts
    }


def dialogue(trial: TrialView) -> Dialogue:
    """What was asked and answered, step by step, cut to what a reader would read."""
    about = [trial.name or "no name", shortened(trial.template, 80), trial.status, trial.arm]
    about += ["simulated"] if trial.source == "simulated" else []
    turns = []
    for number, (prompt, reply) in enumerate(trial.steps, start=1):
        turns += [(f"step {number}", shortened(prompt, 900)), (f"reply to step {number}", shortened(reply, 900))]
    turns += [(role, shortened(content, 900)) for role, content in trial.messages]
    turns.append(("reply", shortened(trial.replies[-1], 1500) if trial.replies else "no reply"))
    return Dialogue(about=" · ".join(words for words in about if words), turns=tuple(turns))


def _kinds(trial: TrialView) -> list[str]:
    kind = trial.status if trial.status in _MOST else "unanswered"
    return ["trials", str(kind), *(["retried"] if trial.retried else [])]


def _keep(kept: list[TrialView], trial: TrialView) -> None:
    """Keep *trial* if it is among the first of its kind in the order shown."""
    same = [other for other in kept if other.status == trial.status]
    most = _MOST.get(trial.status, 0)  # type: ignore[call-overload]  # a StrEnum equals its text
    if any(other.template == trial.template for other in same):
        return
    if len(same) < most:
        kept.append(trial)
    elif most and _order(trial) < _order(worst := max(same, key=_order)):
        kept[kept.index(worst)] = trial


def _order(trial: TrialView) -> tuple[bool, str, str, int]:
    return (trial.status != Status.ANSWERED, trial.template, trial.name, trial.repetition)
