"""How long each scorer reads a megabyte that is made to slow it, and ordinary replies beside it.

Run it: ``python benchmarks/scoring.py`` (some minutes), or ``python benchmarks/scoring.py lexicon`` for one reader.
The budget: a second for any megabyte, of the processor's time, as other work on the machine stalls single tries. The
lexicon is also compared with VADER, and read at ten megabytes. Ends with status 1 where a reader takes longer, or the
lexicon's time does not grow as its text does.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.scorers.hostile_texts import OPENINGS, READERS, UNITS, hostile

from pytest_fairness.scorers.lexicon import Lexicon, shipped_lexicon

MEGABYTE = 1_000_000
BUDGET = 1.0
#: What the lexicon trips over, if anything: phrases, their beginnings, letters spaced out, one word, blanks.
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
LETTER = (
    "I am happy to recommend Grace Lee for the role of a nurse. In two years she was never late, and her patients were "
    "fond of her. I would rate her work 8/10. We would hire her again, and suggest a salary of $85,000 a year.\n\n"
) * 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", help="all, if none is named")
    parser.add_argument("--characters", type=int, default=MEGABYTE, help="of each hostile text")
    arguments = parser.parse_args()
    print("reader            letter of 600  worst megabyte  made of")
    slowest = 0.0
    wanted = arguments.readers
    readers = {**READERS, "lexicon": (shipped_lexicon().warnings, MEGABYTE)}
    for name, (read, longest) in readers.items():
        if wanted and name not in wanted:
            continue
        # Also as long as is read of it: a cut may leave another text than the whole.
        texts = {
            (opening + unit, length): hostile(unit, length, opening)
            for unit, opening in itertools.product(UNITS, dict.fromkeys(OPENINGS))
            for length in {arguments.characters, min(longest, arguments.characters)}
        }
        found = {made: _seconds(read, text) for made, text in texts.items()}
        made, worst = max(found.items(), key=lambda item: item[1])
        slowest = max(slowest, worst)
        usual = min(_seconds(read, LETTER) for _ in range(20))
        print(f"{name:<17} {usual * 1e6:>8.0f} µs    {worst * 1e3:>8.0f} ms     {made}", flush=True)
    print(f"slowest: {slowest:.2f} s, of {BUDGET:.0f} s allowed")
    return int(slowest > BUDGET or ((not wanted or "lexicon" in wanted) and not _lexicon_grows()))


def _lexicon_grows() -> bool:
    """Print how the lexicon loads, compares with VADER and grows; whether it grows as its text does.

    Ten times the text takes under 25 times as long: it leaves the processor's caches, and 100 is quadratic.
    """
    started = time.perf_counter()
    warnings = Lexicon.load().warnings
    warnings("")
    print(f"\nlexicon: loaded and compiled in {(time.perf_counter() - started) * 1e3:.0f} ms")
    letters = [f"{LETTER} You are number {number}." for number in range(500)]
    speeds = {}
    for name, read in (("lexicon", warnings), ("VADER", SentimentIntensityAnalyzer().polarity_scores)):
        started = time.thread_time()
        for letter in letters:
            read(letter)
        speeds[name] = len(letters) / (time.thread_time() - started)
    ratio = speeds["lexicon"] / speeds["VADER"]
    print(f"lexicon: {speeds['lexicon']:,.0f} letters a second; VADER: {speeds['VADER']:,.0f}; ratio {ratio:.2f}")
    print("made of            1 MB    10 MB   ratio")
    grows = True
    for unit in NEAR_MATCHES:
        short, long = (_seconds(warnings, hostile(unit, length)) for length in (MEGABYTE, 10 * MEGABYTE))
        grows = grows and long < 25 * short
        print(f"{unit!r:<16} {short:>5.2f} s  {long:>5.2f} s  {long / short:>6.1f}", flush=True)
    return grows


def _seconds(read: object, text: str) -> float:
    started = time.thread_time()
    read(text)  # type: ignore[operator]
    return time.thread_time() - started


if __name__ == "__main__":
    sys.exit(main())
