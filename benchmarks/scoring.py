"""How long each scorer reads a megabyte that is made to slow it, and ordinary replies beside it.

Run it: ``python benchmarks/scoring.py`` (some minutes). The budget: a second for any megabyte, of the processor's
time, as other work on the machine stalls single tries. Ends with status 1 where a reader takes longer.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.scorers.hostile_texts import OPENINGS, READERS, UNITS, hostile

MEGABYTE = 1_000_000
BUDGET = 1.0
LETTER = (
    "I am happy to recommend Grace Lee for the role of a nurse. In two years she was never late, and her patients were "
    "fond of her. I would rate her work 8/10. We would hire her again, and suggest a salary of $85,000 a year.\n\n"
) * 3


def main() -> int:
    print("reader            letter of 600  worst megabyte  made of")
    slowest = 0.0
    for name, (read, longest) in READERS.items():
        # Also as long as is read of it: a cut may leave another text than the whole.
        texts = {
            (opening + unit, length): hostile(unit, length, opening)
            for unit, opening in itertools.product(UNITS, dict.fromkeys(OPENINGS))
            for length in {MEGABYTE, longest}
        }
        found = {made: _seconds(read, text) for made, text in texts.items()}
        made, worst = max(found.items(), key=lambda item: item[1])
        slowest = max(slowest, worst)
        usual = min(_seconds(read, LETTER) for _ in range(20))
        print(f"{name:<17} {usual * 1e6:>8.0f} µs    {worst * 1e3:>8.0f} ms     {made}", flush=True)
    print(f"slowest: {slowest:.2f} s, of {BUDGET:.0f} s allowed")
    return int(slowest > BUDGET)


def _seconds(read: object, text: str) -> float:
    started = time.thread_time()
    read(text)  # type: ignore[operator]
    return time.thread_time() - started


if __name__ == "__main__":
    sys.exit(main())
