"""A few conversations a group and what became of all, for a reader who wants to see what the figures were read from."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_fairness.model import Cell, Finding, Message, Status, Trial
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.sections import Dialogue
from pytest_fairness.runs.reader import trial_lines
from pytest_fairness.runs.records import cell_of, trial_of

_MOST = {Status.ANSWERED: 2, Status.REFUSED: 1}
#: Finish reasons that say no more than that the model had come to its end.
_WHOLE = ("", "stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete")
_SIDE = re.compile(r"group_\d+")


@dataclass(frozen=True, slots=True)
class LoggedTrial:
    """A finished trial as the log has it. A ``pipeline`` asks each of its turns in a conversation of its own."""

    trial: Trial
    cell: Cell
    endpoint: str
    messages: tuple[Message, ...]
    flags: tuple[str, ...]
    pipeline: bool


def each_trial(run_dir: Path) -> Iterator[LoggedTrial]:
    """Every trial of the run. Records of other types, torn or foreign ones are passed over.

    Judging and verifying a run is the store's business; a report shows what can be shown.
    """
    for line in trial_lines(run_dir):
        try:
            record = json.loads(line)
            if record["type"] != "trial":
                continue
            found = LoggedTrial(
                trial=trial_of(record),
                cell=cell_of(record["cell"]),
                endpoint=record["endpoint"]["name"],
                messages=tuple(Message(**message) for message in record["messages"]),
                flags=tuple(record["flags"]),
                pipeline="pipeline" in (record.get("script") or ()),
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            continue
        yield found


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


@dataclass(slots=True)
class Examples:
    """For each group a few of its trials, the answered ones first, then one refused, if any; and the count of all."""

    kept: dict[str, list[LoggedTrial]] = field(default_factory=dict)
    counted: dict[str, Counter[str]] = field(default_factory=dict)
    endings: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, group: str, trial: LoggedTrial) -> None:
        """Count *trial*, and keep it if it is among the first of its kind in the order shown, one a template."""
        status = trial.trial.status
        self.counted.setdefault(group, Counter()).update(
            ["trials", status.value if status in _MOST else "unanswered", *(["retried"] if _retried(trial) else [])]
        )
        if ending := _ending(trial):
            self.endings.setdefault(group, Counter())[ending] += 1
        kept = self.kept.setdefault(group, [])
        same = [other for other in kept if other.trial.status is status]
        if any(other.cell.template == trial.cell.template for other in same):
            return
        if len(same) < _MOST.get(status, 0):
            kept.append(trial)
        elif same and _order(trial) < _order(worst := max(same, key=_order)):
            kept[kept.index(worst)] = trial

    def trials(self, group: str) -> list[LoggedTrial]:
        return sorted(self.kept.get(group, ()), key=_order)

    def tally(self, group: str) -> Tally:
        endings = self.endings.get(group, Counter())
        return Tally(**self.counted[group], endings=dict(endings.most_common()))


def collect_examples(run_dir: Path, findings: Sequence[Finding]) -> dict[tuple[str, str], Examples]:
    """Examples for each (protected class, endpoint) that the *findings* compare, from its logs; by their groups.

    The first trials of each group by template and name, one a template, so that the same prompts stand
    side by side. The log is read once, and no more than what is shown is kept.
    """
    wanted: dict[tuple[str, str], set[str]] = {}
    for finding in findings:
        if finding.protected_class and finding.model_endpoint:
            key = (finding.protected_class, finding.model_endpoint)
            wanted.setdefault(key, set()).update(group.group for group in finding.group_results)
    found: dict[tuple[str, str], Examples] = {}
    for trial in each_trial(run_dir) if wanted else ():
        for (protected_class, endpoint), groups in wanted.items():
            if trial.endpoint in ("", *endpoint.split(", ")):
                for group in groups_of(trial, protected_class) & groups:
                    found.setdefault((protected_class, endpoint), Examples()).add(group, trial)
    return found


def groups_of(trial: LoggedTrial, protected_class: str) -> frozenset[str]:
    """The groups of *protected_class* that the trial is evidence of: its own, or those of all candidates that it lists.

    Listed candidates stand for the group that each competes for, and for each class that their texts convey.
    """
    own = trial.cell.groups.get(protected_class)
    if own is not None:
        return frozenset({own})
    sides = frozenset(str(value) for key, value in trial.cell.attributes.items() if _SIDE.fullmatch(key))
    if not sides or protected_class == "group":
        return sides
    conveyed = (groups.get(protected_class) for groups in trial.cell.signals.values())
    return frozenset(group for group in conveyed if group is not None)


def dialogue(record: LoggedTrial) -> Dialogue:
    """What was asked and answered, step by step, cut to what a reader would read."""
    trial, cell = record.trial, record.cell
    about = [cell.name or cell.persona or "no name", shortened(cell.template, 80), trial.status, cell.arm]
    about += ["simulated"] if trial.source == "simulated" else []
    turns = []
    if record.pipeline:
        for number, (prompt, reply) in enumerate(zip(cell.turns[:-1], trial.replies, strict=False), start=1):
            turns += [(f"step {number}", shortened(prompt, 900)), (f"reply to step {number}", shortened(reply, 900))]
    turns += [(message.role, shortened(message.content, 900)) for message in record.messages]
    turns.append(("reply", shortened(trial.replies[-1], 1500) if trial.replies else "no reply"))
    return Dialogue(about=" · ".join(words for words in about if words), turns=tuple(turns))


def _ending(record: LoggedTrial) -> str:
    """How it ended, if not with a whole answer: its status, and the provider's own word where that says more."""
    reason = "provider_error" if "provider_error" in record.flags else record.trial.finish_reason or ""
    detail = "" if reason.lower() in _WHOLE else f" ({reason})"
    return "" if record.trial.status is Status.ANSWERED and not detail else f"{record.trial.status}{detail}"


def _retried(record: LoggedTrial) -> bool:
    """Whether there were more attempts than requests; the one that was not answered is a request, too."""
    trial, turns = record.trial, max(len(record.cell.turns), 1)
    return trial.attempts > max(min(turns, len(trial.replies) + (trial.status not in _MOST)), 1)


def _order(record: LoggedTrial) -> tuple[bool, str, str, int]:
    trial, cell = record.trial, record.cell
    return (trial.status is not Status.ANSWERED, cell.template, cell.name or cell.persona or "", trial.repetition)
