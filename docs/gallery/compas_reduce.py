"""Reduces ProPublica's table of COMPAS scores to the counts that ``compas.md`` judges.

    python compas_reduce.py compas-scores-two-years.csv > compas.csv

The file is that of github.com/propublica/compas-analysis at commit bafff5d, which states no
licence: only counts of it stand here. One with another hash is refused.
"""

from __future__ import annotations

import csv
import hashlib
import io
import sys
from collections import Counter
from pathlib import Path

SHA256 = "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"
RACES = ("African-American", "Caucasian")
COLUMNS = ("race", "score", "reoffended", "number_of_rows")


def main(path: Path) -> None:
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise SystemExit(f"{path} is not the file of commit bafff5d: fetch that one")
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in csv.DictReader(io.StringIO(data.decode("utf-8"))):
        if row["race"] in RACES:
            counts[row["race"], row["score_text"].lower(), row["two_year_recid"]] += 1
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for key, number in sorted(counts.items()):
        writer.writerow([*key, number])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
