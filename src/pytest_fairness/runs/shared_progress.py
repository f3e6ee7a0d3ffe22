"""One progress line for all workers: each leaves how far it is in the run's folder, the controller adds them up."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_fairness.errors import StoreError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.files import write_atomically

_EVERY = 0.5
_PATTERN = "progress-*.json"


@dataclass(slots=True)
class Told:
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


class WorkerProgress:
    """Writes how far *writer* is into the folder *state*, twice a second at the most."""

    def __init__(self, state: Path, writer: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = state / f"progress-{writer}.json"
        self._clock = clock
        self._told = Told()
        self._written = clock() - _EVERY

    def begin(self, planned: int, label: str, of: str = "") -> None:
        """*planned* trials of *of* follow."""
        self._told.label, self._told.of, self._told.planned, self._told.asked = label, of, planned, 0
        self._write()

    def advance(self, trial: Trial) -> None:
        """*trial* has just been asked."""
        told = self._told
        told.asked += 1
        told.done += 1
        told.refused += trial.status is Status.REFUSED
        told.failed += trial.status not in (Status.REFUSED, Status.ANSWERED)
        told.cost += trial.cost or 0.0
        if self._clock() - self._written >= _EVERY:
            self._write()

    def note(self, text: str) -> None:
        """Things stand so with what is waited for."""
        self._told.note = text
        if self._clock() - self._written >= _EVERY:
            self._write()

    def end(self) -> None:
        """These were all."""
        self._told.planned = self._told.asked
        self._write()

    def _write(self) -> None:
        self._written = self._clock()
        try:
            self.leave(self._told)
        except StoreError:
            return  # telling is no reason to fail: if the disk is full, the log says so

    def leave(self, told: Told) -> None:
        """Put *told* where the controller finds it. Raises StoreError."""
        write_atomically(self._path, json.dumps(asdict(told)).encode("ascii"))


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


def together(state: Path) -> Standing:
    """How far all workers are whose word lies in the folder *state*."""
    workers = [told for path in sorted(state.glob(_PATTERN)) if (told := _read(path)) is not None]
    labels = list(dict.fromkeys(told.label for told in workers if told.label))
    done = sum(told.done for told in workers)
    left = 0
    for of in {told.of for told in workers}:
        same = [told for told in workers if told.of == of]
        # Workers on the same trials plan all of them, and each asks some.
        left += max(0, max(told.planned for told in same) - sum(told.asked for told in same))
    return Standing(
        label=", ".join(labels) + f" ({len(workers)} worker{'s' * (len(workers) != 1)})",
        planned=done + left,
        done=done,
        refused=sum(told.refused for told in workers),
        failed=sum(told.failed for told in workers),
        cost=sum(told.cost for told in workers),
        note="; ".join(dict.fromkeys(told.note for told in workers if told.note)),
    )


def _read(path: Path) -> Told | None:
    try:
        data: dict[str, Any] = json.loads(path.read_bytes())
        return Told(**data)
    except (OSError, ValueError, TypeError):
        return None


def _clock_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
