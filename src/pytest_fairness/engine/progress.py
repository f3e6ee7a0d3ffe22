"""How far an engine, or all workers of a run, are: one line in a terminal, now and then a line in a CI log."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TextIO, TypeAlias

from pytest_fairness.errors import StoreError
from pytest_fairness.model import Trial
from pytest_fairness.runs.shared_progress import Standing, WorkerProgress
from pytest_fairness.runs.store import RunStore

_EVERY = {True: 0.1, False: 15.0}


class Progress:
    """Writes progress to *stream*: trials done, rate, cost, refusals, time left; in one line that rewrites itself where
    it is a terminal, in a line now and then elsewhere. *clock* is monotonic, in seconds.
    """

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._clock = clock
        self._broken = False
        self.begin(0, "")

    def begin(self, planned: int, label: str, of: str = "") -> None:  # noqa: ARG002 - of one process nobody asks
        """*planned* trials follow; *label* names the endpoint."""
        self._standing = Standing(label=printable(label)[:40], planned=planned)
        self._started = self._written = self._clock()
        self._width = 0

    def advance(self, trial: Trial) -> None:
        """*trial* has just been asked."""
        self._standing.count(trial)
        self._write_if_due()

    def note(self, text: str) -> None:
        """Things stand so with what is waited for."""
        self._standing.note = printable(text)[:100]
        self._write_if_due()

    def show(self, standing: Standing) -> None:
        """Things stand so now, since the beginning."""
        self._standing = replace(standing, label=printable(standing.label)[:60], note=printable(standing.note)[:100])
        self._write_if_due()

    def end(self) -> None:
        """That was all: the last state, if any was shown before or a terminal shows it."""
        if self._terminal and self._width:
            self._write(last=True)

    def line(self) -> str:
        """The state in one line, without line end."""
        return self._standing.line(self._clock() - self._started)

    def _write_if_due(self) -> None:
        if not self._broken and self._clock() - self._written >= _EVERY[self._terminal]:
            self._write(last=False)

    def _write(self, *, last: bool) -> None:
        self._written = self._clock()
        line = self.line()
        if self._terminal:
            # Padded, for the rest of a longer line before: no control code but the carriage return is needed.
            text = f"\r{line.ljust(self._width)}" + ("\n" if last else "")
            self._width = len(line)
        else:
            text = f"{line}\n"
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a closed pipe or stream is no reason to lose paid trials
            self._broken = True


#: What an engine reports to as it goes, from its own thread: here, or to the controller that shows all workers.
ProgressSink: TypeAlias = Progress | WorkerProgress


def printable(text: str) -> str:
    """*text* without what a terminal would obey."""
    return "".join(character if character.isprintable() else "?" for character in text)


class Watch:
    """Calls *look* every so many seconds, in a thread of its own, until it is stopped."""

    def __init__(self, look: Callable[[], None], every: float) -> None:
        self._look, self._every = look, every
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pytest-fairness-watch", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(self._every):
            self._look()

    def stop(self) -> None:
        """Look no more. May be called twice."""
        self._ended.set()
        self._thread.join(timeout=5.0)


class Watching(Watch):
    """Shows on *progress* how far the workers of the run of *store* are, until it is stopped."""

    def __init__(self, store: RunStore, progress: Progress, *, every: float = 0.5) -> None:
        def look() -> None:
            with contextlib.suppress(StoreError):  # the end of the session says why
                standing = store.standing()
                if standing.done < standing.planned:
                    progress.show(standing)

        super().__init__(look, every)
