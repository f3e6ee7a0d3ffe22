"""Progress: one line in a terminal, now and then one in a log, and never a control code."""

from __future__ import annotations

import io
from itertools import pairwise

from pytest_fairness.engine.progress import Progress, looks_in_words, standing_of
from pytest_fairness.model import Status, Trial
from pytest_fairness.runs.store import RunStore
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


def look(test: str, number: int, following: str = "", place: int = 0) -> dict[str, object]:
    """The record of a look at three planned ones."""
    decision = "go on" if following else "stop"
    return {
        "test": test, "place": place, "number": number, "of": 3, "decision": decision,
        "next": following,
    }  # fmt: skip


def test_the_line_names_the_look_and_counts_what_is_decided() -> None:
    """The look that is due, of the test that asks or else of the last one; a test is decided when
    all its assertions are. It holds for all that is asked until another is named.
    """
    first = look("a", 1, "20 names a group")
    assert looks_in_words([], 4) == ""
    assert looks_in_words([first], 4) == "look 2 of 3: 20 names a group; 0 of 4 tests decided"
    several = [first, look("b", 1), look("c", 1), look("a", 2, "40 names a group", place=1)]
    two_decided = "look 3 of 3: 40 names a group; 2 of 4 tests decided"
    assert looks_in_words(several, 4) == two_decided
    assert looks_in_words(several, 4, test="b") == "2 of 4 tests decided"
    assert looks_in_words([*several, look("a", 2)], 4, test="d") == "2 of 4 tests decided"
    decided = [*several, look("a", 2), look("a", 3, place=1)]
    assert looks_in_words(decided, 1) == "1 of 1 test decided"
    clock = Clock()
    progress = Progress(io.StringIO(), clock=clock)
    progress.name_look(f"{two_decided}\x1b[2J")
    progress.begin(60, "gpt")
    clock.now += 1
    progress.advance(trial())
    assert progress.line() == f"gpt: 1/60 trials, 1.0/s, 0:59 left, {two_decided}?[2J"
    assert [*progress.each("read", 1, "x")] == ["x"]
    assert "look" not in progress.line()


def test_what_all_workers_look_at_is_read_from_the_run(store: RunStore) -> None:
    """The look that is due, and how many of the session's tests are decided."""
    store.update_manifest(looking=3)
    assert standing_of(store).looks == ""
    for record in (look("a", 1), look("b", 1, "20 names a group")):
        store.append({"type": "look", **record})
    store.flush()
    line = standing_of(store).line(1.0)
    assert line.endswith("look 2 of 3: 20 names a group; 1 of 3 tests decided")


def test_a_log_of_hours_has_few_lines() -> None:
    """Each pause is a tenth of what has passed, and none is over five minutes."""
    text = shown(io.StringIO(), 1.0, 3 * 3600)
    done = [int(line.split("/")[0].removeprefix("gpt: ")) for line in text.splitlines()]
    assert 60 <= len(done) <= 75
    pauses = [after - before for before, after in pairwise(done)]
    assert (min(pauses), max(pauses)) == (15, 300)


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
