"""A few conversations a group and what became of all, for a reader who wants to see what the
figures were read from.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_fairness.model import Cell, Finding, Message, Status, Trial
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.sections import Dialogue
from pytest_fairness.runs.lines import decode_line
from pytest_fairness.runs.reader import record_lines
from pytest_fairness.runs.records import cell_of, trial_of

_MOST = {Status.ANSWERED: 2, Status.REFUSED: 1}
#: Finish reasons that say no more than that the model had come to its end.
_WHOLE = ("", "stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete")
_SIDE = re.compile(r"group_\d+")


@dataclass(frozen=True, slots=True)
class LoggedTrial:
    """A finished trial as the log has it. A ``pipeline`` asks each of its turns in a conversation
    of its own.
    """

    trial: Trial
    cell: Cell
    endpoint: str
    messages: tuple[Message, ...]
    flags: tuple[str, ...]
    pipeline: bool


def each_trial(run_dir: Path, keys: Sequence[str] | None = None) -> Iterator[LoggedTrial]:
    """Every trial of the run, or those of *keys*. Records of other types, torn or foreign ones are
    passed over.

    Judging and verifying a run is the store's business; a report shows what can be shown.
    """
    for line in record_lines(run_dir, "trial", keys):
        try:
            record = decode_line(line)
            if record["type"] != "trial" or (keys is not None and record["key"] not in keys):
                continue
            logged = LoggedTrial(
                trial=trial_of(record),
                cell=cell_of(record["cell"]),
                endpoint=record["endpoint"]["name"],
                messages=tuple(Message(**message) for message in record["messages"]),
                flags=tuple(record["flags"]),
                pipeline="pipeline" in (record.get("script") or ()),
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            continue
        yield logged


@dataclass(slots=True)
class Examples:
    """Examples of what became of each group's trials: their counts, and the first of each status
    and template, in the order shown.

    ``counted``: how many there are, were answered, refused, left without a reply to score
    (``unanswered``), and asked more than once (``retried``). ``endings``: each way to end that is
    no whole answer, in the provider's own words.
    """

    kept: dict[str, dict[tuple[Status, str], LoggedTrial]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    counted: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    endings: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, group: str, record: LoggedTrial) -> None:
        trial = record.trial
        counted = self.counted[group]
        counted["trials"] += 1
        if trial.status in _MOST:
            counted[trial.status.value] += 1
            self._keep(group, record)
        else:
            counted["unanswered"] += 1
        if _is_retried(record):
            counted["retried"] += 1
        if ending := _ending(record):
            self.endings[group][ending] += 1

    def _keep(self, group: str, record: LoggedTrial) -> None:
        """Keep *record* where it is the first of its status and template so far."""
        kept = self.kept[group]
        place = (record.trial.status, record.cell.template)
        kept[place] = min(kept.get(place, record), record, key=_order)

    def trials(self, group: str) -> list[LoggedTrial]:
        """Those to show: two answered ones and a refused one, each of another template."""
        ordered = sorted(self.kept[group].values(), key=_order)
        shown: list[LoggedTrial] = []
        for status, most in _MOST.items():
            shown += [logged for logged in ordered if logged.trial.status is status][:most]
        return shown


def _is_retried(record: LoggedTrial) -> bool:
    """Return whether a trial had more attempts than requests."""
    trial = record.trial
    requests = len(trial.replies)
    if trial.status not in _MOST:
        requests += 1  # the one that was not answered
    requests = min(max(len(record.cell.turns), 1), requests)
    return trial.attempts > max(requests, 1)


def _ending(record: LoggedTrial) -> str:
    """Return how a trial ended that has no whole answer: ``refused (content_filter)``; empty for
    one that has.
    """
    status = record.trial.status
    reason = record.trial.finish_reason or ""
    if "provider_error" in record.flags:
        reason = "provider_error"
    if reason.lower() not in _WHOLE:
        return f"{status} ({reason})"
    if status is Status.ANSWERED:
        return ""
    return str(status)


def _order(record: LoggedTrial) -> tuple[str, str, int]:
    cell = record.cell
    return cell.template, cell.name or cell.persona or "", record.trial.repetition


def collect_examples(run_dir: Path, findings: Sequence[Finding]) -> dict[tuple[str, str], Examples]:
    """Examples for each (protected class, endpoint) that the *findings* compare, from its logs; by
    their groups.

    The first trials of each group by template and name, one a template, so that the same prompts
    stand side by side. The log is read once, and no more than those are kept.
    """
    wanted = _groups_compared(findings)
    examples: dict[tuple[str, str], Examples] = {}
    if not wanted:
        return examples
    for trial in each_trial(run_dir):
        for key, groups in wanted.items():
            protected_class, endpoint = key
            if trial.endpoint not in ("", *endpoint.split(", ")):
                continue
            for group in groups_of(trial, protected_class) & groups:
                examples.setdefault(key, Examples()).add(group, trial)
    return examples


def _groups_compared(findings: Sequence[Finding]) -> dict[tuple[str, str], set[str]]:
    """Return the groups of each (protected class, endpoint) that the *findings* compare."""
    groups: dict[tuple[str, str], set[str]] = {}
    for finding in findings:
        if finding.protected_class and finding.model_endpoint:
            key = (finding.protected_class, finding.model_endpoint)
            groups.setdefault(key, set()).update(group.group for group in finding.group_results)
    return groups


def groups_of(trial: LoggedTrial, protected_class: str) -> frozenset[str]:
    """The groups of *protected_class* that the trial is evidence of: its own, or those of all
    candidates that it lists.

    Listed candidates stand for the group that each competes for, and for each class that their
    texts convey.
    """
    cell = trial.cell
    if protected_class in cell.groups:
        return frozenset({cell.groups[protected_class]})
    sides = set()
    for key, value in cell.attributes.items():
        if _SIDE.fullmatch(key):
            sides.add(str(value))
    if not sides or protected_class == "group":
        return frozenset(sides)
    conveyed = set()
    for groups in cell.signals.values():
        if protected_class in groups:
            conveyed.add(groups[protected_class])
    return frozenset(conveyed)


def dialogue(record: LoggedTrial) -> Dialogue:
    """Return what was asked and answered, step by step, cut to what a reader would read."""
    trial = record.trial
    cell = record.cell
    about = [
        cell.name or cell.persona or "no name",
        shortened(cell.template, 80),
        trial.status,
        cell.arm,
    ]
    if trial.source == "simulated":
        about += ["simulated"]
    turns = []
    steps = zip(cell.turns[:-1], trial.replies, strict=False)
    if record.pipeline:
        for number, (prompt, reply) in enumerate(steps, 1):
            turns.append((f"step {number}", shortened(prompt, 900)))
            turns.append((f"reply to step {number}", shortened(reply, 900)))
    for message in record.messages:
        turns.append((message.role, shortened(message.content, 900)))
    last = "no reply"
    if trial.replies:
        last = shortened(trial.replies[-1], 1500)
    turns.append(("reply", last))
    return Dialogue(about=" · ".join(filter(None, about)), turns=tuple(turns))
