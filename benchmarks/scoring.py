"""How long each scorer reads a megabyte that is made to slow it, how that grows, and ordinary
replies beside it.

Run it: ``python benchmarks/scoring.py`` (some minutes), or ``python benchmarks/scoring.py lexicon``
for one reader. The budget: a second for any megabyte, of the processor's time, as other work on the
machine stalls single tries; and four times the text in less than eight times the time, where a
quadratic reader takes 16 times as long. The lexicon is also compared with VADER, and read at ten
megabytes. Ends with status 1 where a reader takes longer, or its time does not grow as its text
does.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.scorers.hostile_texts import ENDS, OPENINGS, READERS, UNITS, hostile

from pytest_fairness.scorers.lexicon import Lexicon

MEGABYTE = 1_000_000
BUDGET = 1.0
#: Of a text, four times the other, as all readers read it whole; and what a time that is read off
#: the clock's steps is.
SHORT, LONG = 5_000, 20_000
MOST_GROWTH, LEAST = 8.0, 0.002
#: What the lexicon trips over, if anything: phrases, their beginnings, letters spaced out, one
#: word, blanks.
NEAR_MATCHES = (
    "digital nativ ",
    "digital native ",
    "you are too ",
    "c u l t u r e ",
    "a.b-",
    "a",
    " ",
    "a\u0301",
    "he ",
)
#: Each unit after each opening, and before each end.
MADE = [
    *(
        (unit, opening, ENDS[0])
        for unit, opening in itertools.product(UNITS, dict.fromkeys(OPENINGS))
    ),
    *((unit, "", end) for unit, end in itertools.product(UNITS, ENDS[1:])),
]
LETTER = (
    "I am happy to recommend Grace Lee for the role of a nurse. In two years she was never late, "
    "and her patients were "
    "fond of her. I would rate her work 8/10. We would hire her again, and suggest a salary of "
    "$85,000 a year.\n\n"
) * 3


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("readers", nargs="*", help="all, if none is named")
    parser.add_argument("--characters", type=int, default=MEGABYTE, help="of each hostile text")
    arguments = parser.parse_args()
    print("reader            letter of 600  worst megabyte   growth  made of")
    slowest = steepest = 0.0
    wanted = arguments.readers
    for name, (read, longest) in READERS.items():
        if wanted and name not in wanted:
            continue
        # Also as long as is read of it: a cut may leave another text than the whole.
        texts = {
            (opening + unit, end, length): hostile(unit, length, opening, end)
            for unit, opening, end in MADE
            for length in {arguments.characters, min(longest, arguments.characters)}
        }
        found = {made: _seconds(read, text) for made, text in texts.items()}
        made, worst = max(found.items(), key=lambda item: item[1])
        slowest = max(slowest, worst)
        growths = {
            (opening + unit, end): _growth(read, unit, opening, end) for unit, opening, end in MADE
        }
        steepest_unit, growth = max(growths.items(), key=lambda item: item[1])
        steepest = max(steepest, growth)
        usual = min(_seconds(read, LETTER) for _ in range(20))
        figures = f"{usual * 1e6:>8.0f} µs    {worst * 1e3:>8.0f} ms     {growth:>6.1f} "
        print(f"{name:<17} {figures} {made}, {steepest_unit}", flush=True)
    print(
        f"slowest: {slowest:.2f} s, of {BUDGET:.0f} s allowed; steepest: {steepest:.1f}, of "
        f"{MOST_GROWTH:.0f}"
    )
    if slowest > BUDGET or steepest >= MOST_GROWTH:
        return 1
    return int((not wanted or "lexicon" in wanted) and not _lexicon_grows())


def _growth(read: object, unit: str, opening: str, end: str) -> float:
    """How much longer the long text takes than the short one: the least of several tries, which
    other work lengthens; 1 where even the long one takes no time that can be told.
    """
    short, long = (hostile(unit, length, opening, end) for length in (SHORT, LONG))
    quick = slow = float("inf")
    for _ in range(8):
        quick, slow = min(quick, _seconds(read, short)), min(slow, _seconds(read, long))
        if slow < LEAST or slow < MOST_GROWTH * quick:
            break
    return 1.0 if slow < LEAST else slow / quick


def _lexicon_grows() -> bool:
    """Print how the lexicon loads, compares with VADER and grows; whether it grows as its text
    does.

    Ten times the text takes under 25 times as long: it leaves the processor's caches, and 100 is
    quadratic.
    """
    started = time.perf_counter()
    warnings = Lexicon.load().warnings
    warnings("")
    print(f"\nlexicon: loaded and compiled in {(time.perf_counter() - started) * 1e3:.0f} ms")
    letters = [f"{LETTER} You are number {number}." for number in range(500)]
    speeds = {}
    for name, read in (
        ("lexicon", warnings),
        ("VADER", SentimentIntensityAnalyzer().polarity_scores),
    ):
        started = time.thread_time()
        for letter in letters:
            read(letter)
        speeds[name] = len(letters) / (time.thread_time() - started)
    ratio = speeds["lexicon"] / speeds["VADER"]
    print(
        f"lexicon: {speeds['lexicon']:,.0f} letters a second; VADER: {speeds['VADER']:,.0f}; ratio "
        f"{ratio:.2f}"
    )
    print("made of            1 MB    10 MB   ratio")
    grows = True
    for unit in NEAR_MATCHES:
        short, long = (
            _seconds(warnings, hostile(unit, length)) for length in (MEGABYTE, 10 * MEGABYTE)
        )
        grows = grows and long < 25 * short
        print(f"{unit!r:<16} {short:>5.2f} s  {long:>5.2f} s  {long / short:>6.1f}", flush=True)
    return grows


def _seconds(read: object, text: str) -> float:
    started = time.thread_time()
    read(text)  # type: ignore[operator]
    return time.thread_time() - started


if __name__ == "__main__":
    sys.exit(main())
