"""How far the asking has got: one line that rewrites itself in a terminal, now and then a line in a CI
log."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TextIO

from pytest_fairness.model import Status, Trial

Mode = Literal["auto", "terminal", "log", "off"]
_EVERY = {"terminal": 0.1, "log": 15.0}


class ProgressSink(Protocol):
    """What the engine tells as it goes, from its own thread."""

    def begin(self, planned: int, label: str, of: str = "") -> None:
        """*planned* trials of the endpoint *label* follow; *of* is the same wherever the same trials are asked."""

    def advance(self, trial: Trial) -> None:
        """*trial* has just been asked."""

    def note(self, text: str) -> None:
        """Things stand so with what is waited for, as of batches at a provider."""

    def end(self) -> None:
        """These were all."""


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


class Progress:
    """Writes progress to *stream*: trials done, rate, cost, refusals, time left.

    Mode ``auto`` is ``terminal`` on a terminal and ``log`` elsewhere; ``off`` writes nothing. *clock* is
    monotonic, in seconds.
    """

    def __init__(self, stream: TextIO, mode: Mode = "auto", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._mode = ("terminal" if stream.isatty() else "log") if mode == "auto" else mode
        self._clock = clock
        self.begin(0, "")

    def begin(self, planned: int, label: str, of: str = "") -> None:  # noqa: ARG002 - of one process nobody asks
        """*planned* trials follow; *label* names the endpoint."""
        self._standing = Standing(label=_printable(label)[:40], planned=planned)
        self._started = self._written = self._clock()
        self._width = 0

    def advance(self, trial: Trial) -> None:
        """*trial* has just been asked."""
        now = self._standing
        self._standing = replace(
            now,
            done=now.done + 1,
            refused=now.refused + (trial.status is Status.REFUSED),
            failed=now.failed + (trial.status not in (Status.REFUSED, Status.ANSWERED)),
            cost=now.cost + (trial.cost or 0.0),
        )
        self._write_if_due()

    def note(self, text: str) -> None:
        """Things stand so with what is waited for."""
        self._standing = replace(self._standing, note=_printable(text)[:100])
        self._write_if_due()

    def show(self, standing: Standing) -> None:
        """Things stand so now, since the beginning."""
        self._standing = replace(standing, label=_printable(standing.label)[:60], note=_printable(standing.note)[:100])
        self._write_if_due()

    def end(self) -> None:
        """That was all: the last state, if any was shown before or a terminal shows it."""
        if self._mode == "terminal" and self._width:
            self._write(last=True)

    def line(self) -> str:
        """The state in one line, without line end."""
        return self._standing.line(self._clock() - self._started)

    def _write_if_due(self) -> None:
        if self._mode != "off" and self._clock() - self._written >= _EVERY[self._mode]:
            self._write(last=False)

    def _write(self, *, last: bool) -> None:
        self._written = self._clock()
        line = self.line()
        if self._mode == "terminal":
            # Padded, for the rest of a longer line before: no control code but the carriage return is needed.
            text = f"\r{line.ljust(self._width)}" + ("\n" if last else "")
            self._width = len(line)
        else:
            text = f"{line}\n"
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a closed pipe or stream is no reason to lose paid trials
            self._mode = "off"


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def _clock_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
