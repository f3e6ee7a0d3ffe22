"""Show how far an engine, or all workers of a run, are: one line in a terminal, now and then a line
in a CI log; with the look that is asked for.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from pytest_fairness.errors import StoreError
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.database import Read
from pytest_fairness.runs.money import dollars
from pytest_fairness.runs.store import RunStore
from pytest_fairness.words import count

#: Seconds between two states in a terminal, and two lines elsewhere: at least 15, of a long session
#: a tenth of what has passed, so that a log of hours has no hundreds of lines; at most five
#: minutes, since some CI ends a job that is silent for ten.
_IN_TERMINAL, _LEAST, _PART, _MOST = 0.1, 15.0, 0.1, 300.0
#: The decision of a look after which nothing more is asked.
STOP = "stop"


@dataclass(slots=True, kw_only=True)
class Standing:
    """State of the asking, or of other work with another ``unit``; ``before`` were done when it
    began. ``cost`` is in US dollars, ``note`` about what is waited for, ``looks`` which look is
    asked for, and how many tests are decided.
    """

    label: str = ""
    unit: str = " trials"
    planned: int = 0
    done: int = 0
    before: int = 0
    refused: int = 0
    failed: int = 0
    cost: float = 0.0
    note: str = ""
    looks: str = ""

    def line(self, elapsed: float) -> str:
        """Return it in one line, without line end, after *elapsed* seconds."""
        rate = 0.0
        if elapsed > 0:
            rate = (self.done - self.before) / elapsed
        parts = [f"{self.label}: {self.done}/{self.planned}{self.unit}", f"{rate:.1f}/s"]
        if self.cost:
            parts.append(self._cost())
        if self.refused:
            parts.append(f"{self.refused} refused")
        if self.failed:
            parts.append(f"{self.failed} without a reply")
        if rate and self.done < self.planned:
            parts.append(f"{_clock((self.planned - self.done) / rate)} left")
        if self.looks:
            parts.append(self.looks)
        if self.note:
            parts.append(self.note)
        return ", ".join(parts)

    def _cost(self) -> str:
        """Return the cost so far, and what all of it will have cost at this rate."""
        if not self.planned:
            return f"${self.cost:.4f} of about ${self.cost:.4f}"
        if not self.done:
            return f"${self.cost:.4f}"
        return f"${self.cost:.4f} of about ${self.cost * self.planned / self.done:.4f}"


def _clock(duration: float) -> str:
    """Return *duration*, in seconds, as ``3:07`` or ``1:03:07``."""
    minutes, seconds = divmod(int(duration), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{seconds:02d}"
    return f"{minutes}:{seconds:02d}"


class Progress:
    """Writes progress to *stream*: trials done, rate, cost, refusals, time left; in one line that
    rewrites itself where it is a terminal, in a line now and then elsewhere. *clock* is monotonic,
    in seconds.
    """

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._clock = clock
        self._broken = False
        self._looks = ""
        self.begin(0, "")

    def begin(self, planned: int, label: str) -> None:
        """Begin anew: *planned* trials follow; *label* names the endpoint."""
        self._standing = Standing(label=printable(label)[:40], planned=planned, looks=self._looks)
        self._started = self._written = self._clock()
        self._width = 0

    def advance(self, trial: Trial) -> None:
        """Count *trial*, which has just been asked."""
        standing = self._standing
        standing.done += 1
        standing.refused += trial.status is Status.REFUSED
        standing.failed += trial.status not in (Status.REFUSED, Status.ANSWERED)
        standing.cost += trial.cost or 0.0
        self._write_if_due()

    def each(self, label: str, total: int, items: Iterable[Any]) -> Iterator[Any]:
        """Yield *items*, of which there are *total*, and count each when it is done."""
        self.name_look("")
        self.begin(total, label)
        self._standing.unit = ""
        for item in items:
            yield item
            self._standing.done += 1
            self._write_if_due()
        self.end()

    def note(self, text: str) -> None:
        """Show *text* about what is waited for."""
        self._standing.note = printable(text)[:100]
        self._write_if_due()

    def name_look(self, words: str) -> None:
        """Show in *words* which look the trials are for that are asked from now on."""
        self._looks = printable(words)[:100]

    def show(self, standing: Standing) -> None:
        """Show *standing*, counted since the beginning."""
        self._standing = standing
        self._write_if_due()

    def end(self) -> None:
        """Write the last state, if a terminal shows it."""
        if self._terminal and self._width:
            self._write(last=True)

    def line(self) -> str:
        """Return the state in one line, without line end."""
        return self._standing.line(self._clock() - self._started)

    def _write_if_due(self) -> None:
        """Write the state, unless it was written just now or nobody can read it."""
        now = self._clock()
        pause = _IN_TERMINAL
        if not self._terminal:
            pause = min(_MOST, max(_LEAST, _PART * (now - self._started)))
        if not self._broken and now - self._written >= pause:
            self._write(last=False)

    def _write(self, *, last: bool) -> None:
        """Write the state: on a terminal over the line before, elsewhere as a line."""
        self._written = self._clock()
        line = self.line()
        if self._terminal:
            # Padded, for the rest of a longer line before: no control code but the carriage return
            # is needed.
            text = f"\r{line.ljust(self._width)}"
            if last:
                text += "\n"
            self._width = len(line)
        else:
            text = f"{line}\n"
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a closed pipe or stream is no reason to lose paid trials
            self._broken = True


def printable(text: str) -> str:
    """Return *text* without what a terminal would obey."""
    shown = []
    for character in text:
        if character.isprintable():
            shown.append(character)
        else:
            shown.append("?")
    return "".join(shown)


class Watch:
    """Calls *look* every so many seconds, in a thread of its own, until it is stopped."""

    def __init__(self, look: Callable[[], None], every: float) -> None:
        self._look = look
        self._every = every
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, name="pytest-fairness-watch", daemon=True
        )
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(self._every):
            self._look()

    def stop(self) -> None:
        """Look no more. May be called twice."""
        self._ended.set()
        self._thread.join(timeout=5.0)


def standing_of(store: RunStore) -> Standing:
    """Return how far all processes of the run are: what their tests ask, and what came back."""
    planned: dict[tuple[Any, ...], int] = {}
    endpoints: dict[str, None] = {}
    for design in store.designs():
        shared = repr(design.identity), repr(design.parameters), design.prompts, design.part
        planned[shared] = design.trials
        endpoints[design.endpoint] = None
    by_status = dict(store.ask(Read("statuses")))
    done = sum(by_status.values())
    refused = by_status.get(Status.REFUSED, 0)
    return Standing(
        label=printable(", ".join(endpoints))[:60],
        planned=max(done, sum(planned.values())),
        done=done,
        refused=refused,
        failed=done - refused - by_status.get(Status.ANSWERED, 0),
        cost=dollars(store.budget(None).account().settled),
        looks=printable(looks_in_words(store.of_type("look"), tests_that_look(store)))[:100],
    )


def tests_that_look(store: RunStore) -> int:
    """Return how many tests of the session in progress ask for trials."""
    return int(store.manifest().get("looking", 0))


def looks_in_words(looks: Iterable[Mapping[str, Any]], tests: int, test: str = "") -> str:
    """Return which look is asked for and how many of *tests* are decided, by the records of the
    *looks* that were made: ``look 2 of 3: 20 names a group; 2 of 4 tests decided``.

    The next look is that of *test*, or else of the test that looked last. Empty where none is due.
    """
    last: dict[str, dict[int, Mapping[str, Any]]] = {}
    latest: Mapping[str, Any] | None = None
    for look in looks:
        places = last.setdefault(str(look["test"]), {})
        places[int(look["place"])] = look
        if look["test"] == test or not test:
            latest = look
    decided = sum(_is_decided(places.values()) for places in last.values())
    parts = []
    if latest is not None and latest["decision"] != STOP:
        part = f"look {latest['number'] + 1} of {latest['of']}"
        if latest.get("next"):
            part += f": {latest['next']}"
        parts.append(part)
    if tests and last:
        parts.append(f"{min(decided, tests)} of {count(tests, 'test')} decided")
    return "; ".join(parts)


def _is_decided(looks: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether no assertion of a test, of which *looks* are the last, will look again."""
    for look in looks:
        if look["decision"] != STOP:
            return False
    return True


class Watching(Watch):
    """Shows on *progress* how far the processes of the run of *store* are, until it is stopped."""

    def __init__(self, store: RunStore, progress: Progress, *, every: float = 0.5) -> None:
        before = len(store)

        def look() -> None:
            with contextlib.suppress(StoreError):  # the end of the session says why
                standing = standing_of(store)
                standing.before = before
                if standing.done < standing.planned:
                    progress.show(standing)

        super().__init__(look, every)
