"""How far the asking has got: one line that rewrites itself in a terminal, now and then a line in a CI
log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, Protocol, TextIO

from pytest_fairness.model import Status, Trial

Mode = Literal["auto", "terminal", "log", "off"]
_EVERY = {"terminal": 0.1, "log": 15.0}


class ProgressSink(Protocol):
    """What the engine tells as it goes, from its own thread."""

    def begin(self, planned: int, label: str) -> None: ...

    def advance(self, trial: Trial) -> None: ...

    def end(self) -> None: ...


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

    def begin(self, planned: int, label: str) -> None:
        """*planned* trials follow; *label* names the endpoint."""
        self._label = "".join(character if character.isprintable() else "?" for character in label)[:40]
        self._planned, self._done, self._failed, self._refused, self._cost = planned, 0, 0, 0, 0.0
        self._started = self._written = self._clock()
        self._width = 0

    def advance(self, trial: Trial) -> None:
        """*trial* has just been asked."""
        self._done += 1
        self._refused += trial.status is Status.REFUSED
        self._failed += trial.status not in (Status.REFUSED, Status.ANSWERED)
        self._cost += trial.cost or 0.0
        if self._mode != "off" and self._clock() - self._written >= _EVERY[self._mode]:
            self._write(last=False)

    def end(self) -> None:
        """That was all: the last state, if any was shown before or a terminal shows it."""
        if self._mode == "terminal" and self._width:
            self._write(last=True)

    def line(self) -> str:
        """The state in one line, without line end."""
        elapsed = self._clock() - self._started
        rate = self._done / elapsed if elapsed > 0 else 0.0
        share = self._done / self._planned if self._planned else 1.0
        parts = [f"{self._label}: {self._done}/{self._planned} trials", f"{rate:.1f}/s"]
        if self._cost:
            parts.append(f"${self._cost:.4f} of about ${self._cost / share:.4f}" if share else f"${self._cost:.4f}")
        if self._refused:
            parts.append(f"{self._refused} refused")
        if self._failed:
            parts.append(f"{self._failed} without a reply")
        if rate and self._done < self._planned:
            parts.append(f"{_clock_time((self._planned - self._done) / rate)} left")
        return ", ".join(parts)

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


def _clock_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
