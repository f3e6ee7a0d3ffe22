"""Add up a run: trials by their status, money, and the models that answered, by endpoint."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from pytest_fairness.model import MODEL_DIFFERS, UNPRICED, USAGE_INVALID, Status
from pytest_fairness.runs.lines import decode_line
from pytest_fairness.runs.reader import record_lines
from pytest_fairness.words import agreeing

_READING = "reading"
_ASKED_AGAIN = (Status.UNKNOWN, Status.ERROR)


class _AskedCell(msgspec.Struct, frozen=True):
    template: str


class _AskedEndpoint(msgspec.Struct, frozen=True):
    name: str


class CountedTrial(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a trial's record that adds up: to decode the rest takes six times as long."""

    type: Literal["trial"]
    key: str
    status: Status
    cell: _AskedCell
    endpoint: _AskedEndpoint
    flags: tuple[str, ...]
    cost: float | None = None
    model: str | None = None
    source: str = "live"


_decode = msgspec.json.Decoder(CountedTrial).decode


def counted_trials(run_dir: Path) -> Iterator[CountedTrial]:
    """Yield every trial of the run as it counts, also where its record is spoilt elsewhere. Records
    of other types, torn or foreign ones are passed over.
    """
    for line in record_lines(run_dir, "trial"):
        with contextlib.suppress(ValueError, RecursionError):
            yield _counted(line)


def _counted(line: bytes | str) -> CountedTrial:
    """Return the trial of *line* as it counts. Raises ValueError or RecursionError."""
    try:
        return _decode(line)
    except msgspec.MsgspecError:  # perhaps half a surrogate, in a text that does not count
        return msgspec.convert(decode_line(line), CountedTrial)


class RunTotals:
    """Sums over the trials of a run; *models* are those that its endpoints were asked for, by the
    endpoints' names.

    A trial that failed and was asked again has a record of each attempt: the last one counts, whose
    cost is of both.
    """

    def __init__(self, models: Mapping[str, str | None]) -> None:
        self.sources: set[str] = set()
        self._models = dict(models)
        self._by_endpoint: dict[str, Counter[str]] = {name: Counter() for name in models}
        self._unsettled: dict[str, Mapping[str, Any]] = {}
        self._answered: Counter[tuple[str, str]] = Counter()
        self._differing: Counter[tuple[str, str]] = Counter()

    def add(self, trial: CountedTrial, *, reading: bool) -> None:
        """Count a *trial*; *reading*: it is a reading turn."""
        endpoint = trial.endpoint.name
        flags = trial.flags
        cost = trial.cost or 0.0
        figures: dict[str, Any] = {
            "total": 1,
            trial.status.value: 1,
            "cost": cost,
            _READING: reading,
            "unpriced": trial.cost is None or UNPRICED in flags,
            "charged_at_worst_case": USAGE_INVALID in flags and cost > 0,
        }
        totals = self._by_endpoint.setdefault(endpoint, Counter())
        totals.subtract(self._unsettled.pop(trial.key, {}))
        totals.update(figures)
        if trial.status in _ASKED_AGAIN:
            self._unsettled[trial.key] = figures
        self.sources.add(trial.source)
        answered = (endpoint, trial.model or "")
        self._answered[answered] += bool(trial.model)
        self._differing[answered] += MODEL_DIFFERS in flags

    @property
    def sums(self) -> Counter[str]:
        """The totals of all endpoints together."""
        sums: Counter[str] = Counter()
        for totals in self._by_endpoint.values():
            sums.update(totals)
        return sums

    def by_status(self) -> dict[str, int]:
        """Return how many trials there are, and how many of each status."""
        sums = self.sums
        return {name: sums[name] for name in ("total", *(status.value for status in Status))}

    def costs(self) -> list[dict[str, Any]]:
        """Return the costs of each endpoint that was asked, in US dollars."""
        costs = []
        for name, totals in self._by_endpoint.items():
            if totals["total"]:
                costs.append({"endpoint": name, "trials": totals["total"], **money(totals)})
        return costs

    def models(self) -> list[dict[str, Any]]:
        """Return which model each endpoint was asked for, and which answered how often."""
        models = []
        for name in dict.fromkeys([*self._models, *sorted(name for name, _ in self._answered)]):
            answered = self._models_of(name)
            if self._models.get(name) or answered:
                models.append(
                    {"endpoint": name, "asked": self._models.get(name), "answered": answered}
                )
        return models

    def _models_of(self, name: str) -> dict[str, int]:
        """Return how often each model answered for endpoint *name*."""
        answered = {}
        for (endpoint, model), count in sorted(self._answered.items()):
            if endpoint == name and count:
                answered[model] = count
        return answered

    def notes(self) -> list[str]:
        """Return what a reader has to know: trials of unknown fate, and models that were not asked
        for.
        """
        notes = []
        sums = self.sums
        unknown = sums[Status.UNKNOWN]
        if unknown:
            notes.append(
                f"{unknown} of {sums['total']} trials unknown: sent, and nobody knows what came of "
                f"{agreeing(unknown, 'it', 'them')}; charged at the worst case, and asked again "
                "with --fairness-resume last --fairness-retry-unknown alone"
            )
        if sums[_READING]:
            notes.append(
                f"{sums[_READING]} of {sums['total']} trials are reading turns, in which a model was "
                "asked what a reply says"
            )
        for (name, model), count in sorted(self._differing.items()):
            if count:
                notes.append(
                    f"endpoint {name!r} was asked for the model {self._models.get(name)!r}, and "
                    f"{model!r} answered {count} of its trials: what is judged is the model that "
                    "answered, and the dearer of both prices is charged"
                )
        return notes


def money(totals: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cost in US dollars, and how many trials it leaves out or guesses."""
    return {
        "cost": float(totals["cost"]),
        "unpriced": int(totals["unpriced"]),
        "charged_at_worst_case": int(totals["charged_at_worst_case"]),
    }
