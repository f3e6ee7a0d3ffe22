"""``findings.json``: what a run asked and concluded, in one file that every report is made from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import msgspec

from pytest_fairness.analysis import false_alarms
from pytest_fairness.errors import FairnessError
from pytest_fairness.model import JSON, MODEL_DIFFERS, UNPRICED, USAGE_INVALID, Finding, Status, Verdict, to_json
from pytest_fairness.reports.trial_views import TrialView, each_trial
from pytest_fairness.runs.files import write_atomically

NAME = "findings.json"
SCHEMA = 1

#: What may be asked again on request.
_AGAIN = (Status.UNKNOWN, Status.ERROR)
_RUN = ("id", "started", "finished", "command", "seed", "versions", "git_commit", "replay_of", "shard", "notes")


class ItemResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one test ended: pytest's own word, its message, and the places of its findings in ``findings``."""

    nodeid: str
    outcome: str
    message: str = ""
    findings: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunResults:
    """A run's findings with the tests that made them.

    ``run`` describes the run (id, started, finished, command, seed, endpoints, models, simulated, replayed, versions,
    git_commit, parameters, trials, cost, unpriced, charged_at_worst_case, session); ``missing`` names collected tests
    that never finished.
    """

    run: Mapping[str, Any]
    items: tuple[ItemResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[Verdict, int]:
        """Findings by verdict, worst first."""
        counted = Counter(finding.verdict for finding in self.findings)
        return {verdict: counted[verdict] for verdict in sorted(Verdict, key=lambda one: -one.severity)}

    @property
    def simulated(self) -> bool:
        """Whether anything in the run came from a simulated endpoint."""
        return bool(self.run.get("simulated")) or any(finding.simulated for finding in self.findings)

    @property
    def replayed(self) -> bool:
        """Whether anything in the run was replayed from a record."""
        return bool(self.run.get("replayed")) or any(finding.replayed for finding in self.findings)

    @property
    def session(self) -> Mapping[str, Any]:
        """What was adjusted across the session: method, number of findings, ``alpha`` and the ``alarms`` below it."""
        found = self.run.get("session")
        return found if isinstance(found, Mapping) else {}

    @cached_property
    def _makers(self) -> dict[int, ItemResult]:
        return {index: item for item in reversed(self.items) for index in item.findings}

    def nodeid_of(self, index: int) -> str:
        """The test that made the finding at *index*; empty if no test claims it."""
        return self._makers[index].nodeid if index in self._makers else ""

    def outcome_of(self, index: int) -> str:
        """How the test ended that made the finding at *index*, in pytest's word; empty if no test claims it."""
        return self._makers[index].outcome if index in self._makers else ""

    def to_dict(self) -> dict[str, JSON]:
        """``findings.json`` as plain JSON."""
        return {
            "schema": SCHEMA,
            "run": to_json(self.run),
            "items": [msgspec.to_builtins(item) for item in self.items],
            "findings": [
                {**finding.to_dict(), "nodeid": self.nodeid_of(index)} for index, finding in enumerate(self.findings)
            ],
            "missing": list(self.missing),
        }

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """The inverse of :meth:`to_dict`. Raises FairnessError for another schema or shape."""
        if not isinstance(data, dict):
            raise FairnessError("findings are a JSON object with a schema; this is none")
        if data.get("schema") != SCHEMA:
            raise FairnessError(
                f"findings of schema {data.get('schema')!r} cannot be read by this version, which knows schema "
                f"{SCHEMA}: read them with the version that wrote them"
            )
        try:
            return cls(
                run=dict(data["run"]),
                items=msgspec.convert(data["items"], tuple[ItemResult, ...]),
                findings=tuple(
                    Finding.from_dict({key: value for key, value in finding.items() if key != "nodeid"})
                    for finding in data["findings"]
                ),
                missing=msgspec.convert(data.get("missing", ()), tuple[str, ...]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FairnessError(f"findings have another shape than schema {SCHEMA} ({error!r})") from error


def read_results(run_dir: Path) -> RunResults:
    """The results of the run in *run_dir*. Raises FairnessError if there are none or they cannot be read."""
    path = run_dir / NAME
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise FairnessError(f"{run_dir} holds no {NAME}: it is no run's folder, or the run did not finish") from None
    except (OSError, ValueError, RecursionError) as error:
        raise FairnessError(f"{path} cannot be read: {error}") from error
    try:
        return RunResults.from_dict(data)
    except FairnessError as error:
        raise FairnessError(f"{path}: {error}") from error


def write_results(run_dir: Path, manifest: Mapping[str, Any], book: Mapping[str, Any]) -> RunResults:
    """Write ``findings.json`` of a run from its *manifest* and the ledger's *book* (items, findings, missing).

    Trials are counted from the run's own logs. The file is replaced whole: a reader sees the old or the new one.
    """
    results = RunResults.from_dict({**book, "schema": SCHEMA, "run": _run(run_dir, manifest)})
    results = _across(results, results.run["parameters"].get("session_alpha"))
    save_results(results, run_dir)
    return results


def _across(results: RunResults, alpha: Any) -> RunResults:
    """*results* adjusted across the session: each p-value, what the session's alpha makes of it, and how likely a fair
    system would have turned the session red.
    """
    outcomes = [results.outcome_of(at) for at in range(len(results.findings))]
    chances = [one for finding in results.findings if (one := false_alarms.of_finding(finding)) is not None]
    session = {
        "method": "holm",
        "findings": len(results.findings),
        "alpha": alpha,
        "alarms": false_alarms.alarms(results.findings, outcomes, alpha) if isinstance(alpha, float) else [],
        "false_alarm": false_alarms.of_session(chances) if chances else None,
    }
    return replace(results, run={**results.run, "session": session}, findings=false_alarms.adjusted(results.findings))


def save_results(results: RunResults, run_dir: Path) -> Path:
    """Replace ``findings.json`` in *run_dir*. ASCII, so that lone surrogates survive; raises StoreError."""
    path = run_dir / NAME
    text = json.dumps(results.to_dict(), indent=1, allow_nan=False) + "\n"
    write_atomically(path, text.encode("ascii"))
    return path


def _run(run_dir: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    endpoints = [entry for entry in manifest.get("endpoints", []) if isinstance(entry, Mapping)]
    count = _count(run_dir)
    notes = [*(manifest.get("notes") or ()), *_unknown(count.trials), *_answered_by_others(count.others, endpoints)]
    return {
        **{key: manifest.get(key) for key in _RUN},
        **({"notes": notes} if notes else {}),
        "id": manifest.get("id") or run_dir.name,
        "endpoints": [str(entry.get("name", "")) for entry in endpoints],
        "models": _models(count.models, endpoints),
        "simulated": "simulated" in count.sources or any(entry.get("simulated") for entry in endpoints),
        "replayed": "replay" in count.sources,
        "parameters": manifest.get("settings") or manifest.get("parameters") or {},
        "trials": count.trials,
        "cost": count.cost,
        "unpriced": count.unpriced,
        "charged_at_worst_case": count.worst_case,
    }


@dataclass(slots=True)
class _Count:
    """What the logs of a run add up to: trials by status, US dollars, how many trials have no known price and how many
    were charged at their worst case for want of credible token counts, the sources of replies, and trials by endpoint
    and the model that answered: where another one was asked, and of all.
    """

    trials: dict[str, int] = field(default_factory=lambda: {"total": 0, **{status.value: 0 for status in Status}})
    cost: float = 0.0
    unpriced: int = 0
    worst_case: int = 0
    sources: set[str] = field(default_factory=set)
    others: Counter[tuple[str, str]] = field(default_factory=Counter)
    models: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, trial: TrialView, times: int = 1) -> None:
        """Count *trial*; with -1, take it out again."""
        self.trials["total"] += times
        self.trials[trial.status] = self.trials.get(trial.status, 0) + times
        self.cost += times * (trial.cost or 0.0)
        self.unpriced += times * (trial.cost is None or UNPRICED in trial.flags)
        self.worst_case += times * (USAGE_INVALID in trial.flags and (trial.cost or 0.0) > 0)


def _count(run_dir: Path) -> _Count:
    """What the trials of *run_dir* add up to.

    A trial that came to nothing and was asked again has a record of each: the last one counts, whose cost is of both.
    """
    count = _Count()
    nothing: dict[str, list[TrialView]] = {}
    for trial in each_trial(run_dir):
        count.add(trial)
        count.sources.add(trial.source)
        if trial.model:
            count.models[trial.endpoint, trial.model] += 1
        if MODEL_DIFFERS in trial.flags:
            count.others[trial.endpoint, trial.model] += 1
        if trial.status in _AGAIN:
            nothing.setdefault(trial.key, []).append(trial)
    if nothing:
        settled = {trial.key for trial in each_trial(run_dir) if trial.key in nothing and trial.status not in _AGAIN}
        for key, views in nothing.items():
            for trial in views if key in settled else views[:-1]:
                count.add(trial, -1)
    return count


def _models(answered: Counter[tuple[str, str]], endpoints: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each endpoint the model that was asked for, and in how many trials which model said that it answered."""
    wanted = {str(entry.get("name", "")): (entry.get("identity") or {}).get("model") for entry in endpoints}
    found = []
    for name in dict.fromkeys([*wanted, *sorted(name for name, _ in answered)]):
        by = {model: count for (endpoint, model), count in sorted(answered.items()) if endpoint == name}
        if by or wanted.get(name):
            found.append({"endpoint": name, "asked": wanted.get(name), "answered": by})
    return found


def _answered_by_others(others: Counter[tuple[str, str]], endpoints: list[Mapping[str, Any]]) -> list[str]:
    wanted = {entry.get("name"): (entry.get("identity") or {}).get("model") for entry in endpoints}
    return [
        f"endpoint {name!r} was asked for the model {wanted.get(name)!r}, and {model!r} answered {count} of its "
        "trials: what is judged is the model that answered, and the dearer of both prices is charged"
        for (name, model), count in sorted(others.items())
    ]


def _unknown(trials: Mapping[str, int]) -> list[str]:
    unknown = trials[Status.UNKNOWN]
    them = "them" if unknown > 1 else "it"
    note = (
        f"{unknown} of {trials['total']} trials unknown: sent, and nobody knows what came of {them}; charged at the "
        f"worst case, and asked again with --fairness-resume last --fairness-retry-unknown alone"
    )
    return [note] if unknown else []
