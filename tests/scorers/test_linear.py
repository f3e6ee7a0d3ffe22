"""Every reader takes a time that is proportional to the text, whatever it holds, and is not stopped
by a number.
"""

from __future__ import annotations

import itertools
import sys
from functools import partial

import pytest

from pytest_fairness.scorers.choice import ChoiceStatus, read_choice, read_ranking
from pytest_fairness.scorers.decision import decision
from pytest_fairness.scorers.lexicon import _ReadText
from pytest_fairness.scorers.rating import rating
from pytest_fairness.scorers.salary import salary
from pytest_fairness.scorers.sentiment import sentiment
from pytest_fairness.scorers.text import plain, squeezed

from ..support.watch import LONG, read_in_time
from .hostile_texts import ENDS, OPENINGS, PAIR, READERS, UNITS, hostile

SOME = [name for name in READERS if name not in ("choice of four", "rating to 100")]
#: Units that the lexicon reads in some tenths of a second a megabyte.
MARKS = (".", "!", "? ", "!?", "...", "a.", "\n", "1.")


@pytest.mark.parametrize("name", SOME)
def test_f53_f66_a_long_text_of_anything_is_read(name: str) -> None:
    """Of every unit that patterns trip over, before a blank and before a letter. A quadratic reader
    trips the watch; how it grows is measured in benchmarks/scoring.py."""
    read, reads = READERS[name]
    length = min(LONG, reads)
    for unit, opening, end in zip(
        UNITS, itertools.cycle(OPENINGS), itertools.cycle(ENDS), strict=False
    ):
        read_in_time(read, partial(hostile, unit, opening=opening, end=end), length)
    for unit, end in itertools.product(MARKS, ENDS):
        read_in_time(read, partial(hostile, unit, end=end), LONG)


def test_f66_a_run_of_marks_ends_a_sentence_as_one_mark_does() -> None:
    """Where a blank or a quotation mark follows, or nothing; not before a letter, and not within
    the run.
    """
    for marks in (".", "!", "?", "...", "!?!", "." * 100):
        for follows, ends in (
            (" ", True),
            ('" ', True),
            (")", True),
            ("", False),
            ("x ", False),
            (", ", False),
        ):
            read = _ReadText(f"One{marks}{follows}two").plain
            assert read.count("¶") == int(ends), (marks, follows)
    assert _ReadText("One!!!").plain == " one ¶ "


AROUND = ("{}", "Rating: {}/10", "${}", "Decision: {}", "1. {}", "<answer>{}</answer>")
VALUES = ("{}", "-{}", "{}.5", "1e{}", "[{}]", '{"low": {}, "high": {}}', '"{}"')


@pytest.mark.parametrize("digits", [400, 5_000])
def test_a_number_of_thousands_of_digits_is_not_read(digits: int) -> None:
    """Python converts no more than 4,300 digits, and no float holds 400: such a number is no score,
    and no error.
    """
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
    """Blanks, blank lines, endless words and rules; numbers stay, and nothing is joined that stood
    apart.
    """
    assert plain("  7\t out   of\u00a010 \r\n\r\n\r\n yes ") == "7 out of 10\n\n yes"
    assert squeezed("a \n \n \n b\nc") == "a\n\n b\nc"
    assert squeezed("x" * 500) == "x" * 100
    assert squeezed("-" * 500 + " 7") == "-" * 39 + " 7"
    assert plain("one\u2028two\vthree\rfour") == "one\ntwo\nthree\nfour"
    ordinary = (
        "| Name | Score |\n|------|-------|\n| Greg | 7 |\n\n- supercalifragilisticexpialidocious "
        "-- 7/10!!!"
    )
    assert plain(ordinary) == ordinary
