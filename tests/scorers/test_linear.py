"""Every reader takes a time that is proportional to the text, whatever it holds, and is not stopped by a number."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable

import pytest

from pytest_fairness.scorers.choice import ChoiceStatus, read_choice, read_ranking
from pytest_fairness.scorers.decision import decision
from pytest_fairness.scorers.rating import rating
from pytest_fairness.scorers.salary import salary
from pytest_fairness.scorers.sentiment import sentiment
from pytest_fairness.scorers.text import plain, squeezed

from .hostile_texts import OPENINGS, PAIR, READERS, UNITS, hostile

# The thread's own time, which other work on the machine does not lengthen; where its steps are too coarse, the wall's.
CLOCK = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-4 else time.perf_counter
LEAST = 0.0002
"""Seconds: what is shorter is repeated, as the clock's own steps would be half of it."""
SOME = [name for name in READERS if name not in ("choice of four", "rating to 100")]


def seconds(read: Callable[[str], object], text: str, repeats: int) -> float:
    started = CLOCK()
    for _ in range(repeats):
        read(text)
    return CLOCK() - started


def growth(read: Callable[[str], object], short: str, long: str) -> float:
    """How much longer *long* takes than *short*, the best of several tries of each: other work disturbs single ones."""
    repeats = max(1, int(LEAST / max(seconds(read, short, 1), 1e-7)))
    quick = slow = float("inf")
    for _ in range(6):
        quick, slow = min(quick, seconds(read, short, repeats)), min(slow, seconds(read, long, repeats))
        if slow < 8 * quick:
            break
    return slow / quick


@pytest.mark.parametrize("name", SOME)
def test_four_times_the_text_takes_four_times_as_long(name: str) -> None:
    """Under eight times, for everything that patterns trip over. A quadratic reader would take 16 times as long."""
    read, longest = READERS[name]
    length = min(longest // 2, 2_000)
    slow = {}
    for unit, opening in zip(UNITS, itertools.cycle(OPENINGS), strict=False):
        found = growth(read, hostile(unit, length // 4, opening), hostile(unit, length, opening))
        if found >= 8:
            slow[opening + unit] = round(found, 1)
    assert slow == {}


@pytest.mark.parametrize("name", SOME)
def test_a_megabyte_takes_no_more_than_its_share(name: str) -> None:
    """Fifty times the text takes under 250 times as long: it leaves the processor's caches, and 2,500 is quadratic."""
    read, _ = READERS[name]
    slow = {}
    for unit in ("Greg Walsh ", "$1-$2 ", "{", "\n", "ﷺ"):
        short, long = hostile(unit, 20_000), hostile(unit, 1_000_000)
        repeats = max(1, int(LEAST / max(seconds(read, short, 1), 1e-7)))
        for _ in range(3):
            found = seconds(read, long, 1) / (seconds(read, short, repeats) / repeats)
            if found < 250:
                break
        else:
            slow[unit] = round(found)
    assert slow == {}


AROUND = ("{}", "Rating: {}/10", "${}", "Decision: {}", "1. {}", "<answer>{}</answer>")
VALUES = ("{}", "-{}", "{}.5", "1e{}", "[{}]", '{"low": {}, "high": {}}', '"{}"')


@pytest.mark.parametrize("digits", [400, 5_000])
def test_a_number_of_thousands_of_digits_is_not_read(digits: int) -> None:
    """Python converts no more than 4,300 digits, and no float holds 400: such a number is no score, and no error."""
    keys = ("rating", "decision", "salary", "selection", "ranking")
    for form in (*AROUND, *(f'{{"{key}": {value}}}' for key in keys for value in VALUES)):
        text = form.replace("{}", "9" * digits)
        read = (rating(text), decision(text), salary(text), read_ranking(text, PAIR))
        assert read == (None, None, None, None), form
        assert read_choice(text, PAIR).status is not ChoiceStatus.CHOSEN, form
        assert form.startswith("{") or sentiment(text) == 0, form


def test_a_lower_limit_on_digits_changes_nothing() -> None:
    """A project may have Python convert 640 digits only."""
    limit = sys.get_int_max_str_digits()
    try:
        sys.set_int_max_str_digits(640)
        test_a_number_of_thousands_of_digits_is_not_read(700)
    finally:
        sys.set_int_max_str_digits(limit)


def test_what_is_squeezed_is_what_no_reader_needs() -> None:
    """Blanks, blank lines, endless words and rules; numbers stay, and nothing is joined that stood apart."""
    assert plain("  7\t out   of\u00a010 \r\n\r\n\r\n yes ") == "7 out of 10\n\n yes"
    assert squeezed("a \n \n \n b\nc") == "a\n\n b\nc"
    assert squeezed("x" * 500) == "x" * 100
    assert squeezed("-" * 500 + " 7") == "-" * 39 + " 7"
    assert plain("one\u2028two\vthree\rfour") == "one\ntwo\nthree\nfour"
    ordinary = "| Name | Score |\n|------|-------|\n| Greg | 7 |\n\n- supercalifragilisticexpialidocious -- 7/10!!!"
    assert plain(ordinary) == ordinary
