"""One progress line for all workers: each reports how far it is to the run's database, the controller adds them up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from pytest_fairness.errors import StoreError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.database import Database, Operation, Operator

_EVERY = 0.5


class WorkerReport(msgspec.Struct):
    """How far one worker is. ``of`` names the trials it works on, as others may work on the same; ``planned`` and
    ``asked`` are of these, the other numbers of all that it has asked.
    """

    label: str = ""
    of: str = ""
    planned: int = 0
    asked: int = 0
    done: int = 0
    refused: int = 0
    failed: int = 0
    cost: float = 0.0
    note: str = ""


class Report(Operation):
    """Keep how far this writer is, in the place of what it reported before."""

    report: WorkerReport

    def run(self, database: Database) -> None:
        text = msgspec.json.encode(self.report).decode()
        database.connection.execute("INSERT OR REPLACE INTO progress VALUES (?, ?)", (database.writer, text))


class ReadReports(Operation):
    """What each worker reported last, as JSON."""

    writes = False

    def run(self, database: Database) -> list[str]:
        return [text for (text,) in database.connection.execute("SELECT report FROM progress ORDER BY writer")]


class WorkerProgress:
    """Reports how far the writer of *store* is, twice a second at the most."""

    def __init__(self, store: Operator, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._report = WorkerReport()
        self._reported = clock() - _EVERY

    def begin(self, planned: int, label: str, of: str = "") -> None:
        """*planned* trials of *of* follow."""
        report = self._report
        report.label, report.of, report.planned, report.asked = _printable(label), of, planned, 0
        self._send()

    def advance(self, trial: Trial) -> None:
        """*trial* has just been asked."""
        report = self._report
        report.asked += 1
        report.done += 1
        report.refused += trial.status is Status.REFUSED
        report.failed += trial.status not in (Status.REFUSED, Status.ANSWERED)
        report.cost += trial.cost or 0.0
        if self._clock() - self._reported >= _EVERY:
            self._send()

    def note(self, text: str) -> None:
        """Things stand so with what is waited for."""
        self._report.note = _printable(text)
        if self._clock() - self._reported >= _EVERY:
            self._send()

    def end(self) -> None:
        """These were all."""
        self._report.planned = self._report.asked
        self._send()

    def _send(self) -> None:
        self._reported = self._clock()
        try:
            self._store.submit(Report(msgspec.structs.replace(self._report)))
        except StoreError:
            return  # reporting is no reason to fail: if the disk is full, the next record says so


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far the asking has got. ``cost`` is in US dollars, ``note`` about what is waited for."""

    label: str = ""
    planned: int = 0
    done: int = 0
    refused: int = 0
    failed: int = 0
    cost: float = 0.0
    note: str = ""

    def line(self, elapsed: float) -> str:
        """In one line, without line end, after *elapsed* seconds."""
        rate = self.done / elapsed if elapsed > 0 else 0.0
        share = self.done / self.planned if self.planned else 1.0
        parts = [f"{self.label}: {self.done}/{self.planned} trials", f"{rate:.1f}/s"]
        if self.cost:
            parts.append(f"${self.cost:.4f} of about ${self.cost / share:.4f}" if share else f"${self.cost:.4f}")
        if self.refused:
            parts.append(f"{self.refused} refused")
        if self.failed:
            parts.append(f"{self.failed} without a reply")
        if rate and self.done < self.planned:
            parts.append(f"{_clock_time((self.planned - self.done) / rate)} left")
        if self.note:
            parts.append(self.note)
        return ", ".join(parts)


def together(store: Operator) -> Standing:
    """How far all workers are that have reported."""
    texts = store.ask(ReadReports())
    workers = [msgspec.json.decode(text, type=WorkerReport) for text in texts]
    labels = list(dict.fromkeys(worker.label for worker in workers if worker.label))
    done = sum(worker.done for worker in workers)
    left = 0
    for of in {worker.of for worker in workers}:
        same = [worker for worker in workers if worker.of == of]
        # Workers on the same trials plan all of them, and each asks some.
        left += max(0, max(worker.planned for worker in same) - sum(worker.asked for worker in same))
    return Standing(
        label=", ".join(labels) + f" ({len(workers)} worker{'s' * (len(workers) != 1)})",
        planned=done + left,
        done=done,
        refused=sum(worker.refused for worker in workers),
        failed=sum(worker.failed for worker in workers),
        cost=sum(worker.cost for worker in workers),
        note="; ".join(dict.fromkeys(worker.note for worker in workers if worker.note)),
    )


def _clock_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
