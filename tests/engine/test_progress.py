"""Progress: one line in a terminal, now and then one in a log, and never a control code."""

from __future__ import annotations

import io

from pytest_fairness.engine.progress import Progress
from pytest_fairness.model import Status, Trial
from tests.support.doubles import Scripted, plan
from tests.support.runs import EngineMaker


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def trial(status: Status = Status.ANSWERED, cost: float | None = None) -> Trial:
    return Trial(key="k", repetition=0, status=status, cost=cost)


def shown(stream: io.StringIO, every: float, count: int, label: str = "gpt") -> str:
    clock = Clock()
    progress = Progress(stream, clock=clock)
    progress.begin(count, label)
    for _ in range(count):
        clock.now += every
        progress.advance(trial())
    progress.end()
    return stream.getvalue()


def test_a_terminal_sees_one_line_that_rewrites_itself() -> None:
    """Carriage returns, no line end but the last; the last state stays. Nobody needs the progress
    of a tenth of a second."""
    assert shown(Terminal(), 0.001, 50) == ""
    text = shown(Terminal(), 0.5, 10)
    assert text.count("\n") == 1
    assert text.count("\r") == 11
    assert text.split("\r")[-2:] == [
        "gpt: 10/10 trials, 2.0/s          ",
        "gpt: 10/10 trials, 2.0/s\n",
    ]


def test_a_log_gets_a_line_every_fifteen_seconds() -> None:
    """In CI a line at a time, without carriage returns: 60 seconds make four."""
    text = shown(io.StringIO(), 1.0, 60)
    assert "\r" not in text
    assert text.splitlines() == [
        "gpt: 15/60 trials, 1.0/s, 0:45 left",
        "gpt: 30/60 trials, 1.0/s, 0:30 left",
        "gpt: 45/60 trials, 1.0/s, 0:15 left",
        "gpt: 60/60 trials, 1.0/s",
    ]


def test_the_line_shows_cost_refusals_failures_and_time_left() -> None:
    """Cost so far and about how much it will be, and what did not come to a reply."""
    clock = Clock()
    progress = Progress(io.StringIO(), clock=clock)
    progress.begin(8000, "gpt")
    clock.now += 2
    for status in (Status.ANSWERED, Status.REFUSED, Status.UNKNOWN, Status.ANSWERED):
        progress.advance(trial(status, cost=0.25))
    expected = (
        "gpt: 4/8000 trials, 2.0/s, $1.0000 of about $2000.0000, 1 refused, 1 without a reply, "
        "1:06:38 left"
    )
    assert progress.line() == expected


def test_a_hostile_label_cannot_move_the_cursor() -> None:
    """Names come from configuration, and what stands in the line of a batch from a server: escape
    sequences, line ends and bidi marks are shown as question marks."""
    text = shown(io.StringIO(), 15.0, 1, label="\x1b[2Jevil\r\n\u202e")
    assert text == "?[2Jevil???: 1/1 trials, 0.1/s\n"
    progress = Progress(io.StringIO(), clock=Clock())
    progress.note("batch \x1b[2J")
    assert progress.line().endswith(", batch ?[2J")


def test_a_closed_stream_does_not_stop_the_asking(engine_for: EngineMaker) -> None:
    """Paid trials are worth more than their progress."""
    stream = io.StringIO()
    clock = Clock()
    progress = Progress(stream, clock=clock)
    stream.close()
    clock.now += 100
    assert len(engine_for(Scripted(), progress=progress).run(plan(4))) == 4
    clock.now += 100
    progress.advance(trial())
