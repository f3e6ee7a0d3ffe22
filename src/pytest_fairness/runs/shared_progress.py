"""One progress line for all workers: each reports how far it is to the run's database, the controller adds them up."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from pytest_fairness.errors import StoreError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.database import Database, Operation, Operator, Read

_EVERY = 0.5


@dataclass(slots=True, kw_only=True)
class Standing:
    """How far the asking has got. ``cost`` is in US dollars, ``note`` about what is waited for.

    In a worker's report ``of`` names the trials it works on, as others may work on the same; ``planned`` and
    ``contributed`` are of these, the other numbers of all that it has asked.
    """

    label: str = ""
    of: str = ""
    planned: int = 0
    contributed: int = 0
    done: int = 0
    refused: int = 0
    failed: int = 0
    cost: float = 0.0
    note: str = ""

    def count(self, trial: Trial) -> None:
        """*trial* has just been asked."""
        self.contributed += 1
        self.done += 1
        self.refused += trial.status is Status.REFUSED
        self.failed += trial.status not in (Status.REFUSED, Status.ANSWERED)
        self.cost += trial.cost or 0.0

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
            minutes, seconds = divmod(int((self.planned - self.done) / rate), 60)
            hours, minutes = divmod(minutes, 60)
            parts.append((f"{hours}:{minutes:02d}" if hours else f"{minutes}") + f":{seconds:02d} left")
        return ", ".join([*parts, self.note] if self.note else parts)


class Report(Operation):
    """Keep how far this writer is, in the place of what it reported before."""

    report: Standing

    def run(self, database: Database) -> None:
        text = msgspec.json.encode(self.report).decode()
        database.connection.execute("INSERT OR REPLACE INTO progress VALUES (?, ?)", (database.writer, text))


class WorkerProgress:
    """Reports to *database* how far its writer is, twice a second at the most."""

    def __init__(self, database: Operator, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._standing = Standing()
        self._reported = clock() - _EVERY

    def begin(self, planned: int, label: str, of: str = "") -> None:
        """*planned* trials of *of* follow."""
        now = self._standing
        now.label, now.of, now.planned, now.contributed = _printable(label), of, planned, 0
        self._send()

    def advance(self, trial: Trial) -> None:
        """*trial* has just been asked."""
        self._standing.count(trial)
        self._send_if_due()

    def note(self, text: str) -> None:
        """Things stand so with what is waited for."""
        self._standing.note = _printable(text)
        self._send_if_due()

    def end(self) -> None:
        """These were all."""
        self._standing.planned = self._standing.contributed
        self._send()

    def _send_if_due(self) -> None:
        if self._clock() - self._reported >= _EVERY:
            self._send()

    def _send(self) -> None:
        self._reported = self._clock()
        try:
            self._database.submit(Report(dataclasses.replace(self._standing)))
        except StoreError:
            return  # reporting is no reason to fail: if the disk is full, the next record says so


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def standing_of_all(database: Operator) -> Standing:
    """How far all workers are that have reported."""
    workers = [msgspec.json.decode(text, type=Standing) for (text,) in database.ask(Read("reports"))]
    labels = ", ".join(dict.fromkeys(worker.label for worker in workers if worker.label))
    whole = Standing(label=f"{labels} ({len(workers)} worker{'s' * (len(workers) != 1)})")
    for worker in workers:
        whole.done += worker.done
        whole.refused += worker.refused
        whole.failed += worker.failed
        whole.cost += worker.cost
    whole.planned = whole.done
    for of in {worker.of for worker in workers}:
        same = [worker for worker in workers if worker.of == of]
        # Workers on the same trials plan all of them, and each asks some.
        whole.planned += max(0, max(worker.planned for worker in same) - sum(worker.contributed for worker in same))
    whole.note = "; ".join(dict.fromkeys(worker.note for worker in workers if worker.note))
    return whole
