"""Reduces the Boston mortgage applications of 1990 to the counts that ``mortgages.md`` judges.

    python mortgages_reduce.py HMDA.csv > mortgages.csv
    python mortgages_reduce.py --published HMDA.csv

The file is ``csv/AER/HMDA.csv`` of github.com/vincentarelbundock/Rdatasets at commit 1dcc2bf, where
no licence of the data could be found: only counts of it stand here. One with another hash is
refused. ``--published`` fits the linear model of Stock and Watson to it, and prints what that says
of race.
"""

from __future__ import annotations

import csv
import hashlib
import io
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

SHA256 = "d142067a4bad8835339f562f57dd2b402e9a5ba7f3b77238d72f0f4efa6fee54"
#: Payments to income, in parts: what lenders call affordable, and what they call the limit.
PAYMENTS = ((0.28, "up to 28 %"), (0.36, "28 to 36 %"), (float("inf"), "over 36 %"))
#: Loan to value: what needs no insurance, what needs it, and more.
LOAN = ((0.8, "up to 80 %"), (0.95, "80 to 95 %"), (float("inf"), "over 95 %"))
COLUMNS = (
    "race",
    "consumer_credit",
    "mortgage_credit",
    "public_record",
    "payments",
    "loan",
    "denied",
    "number_of_rows",
)


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the applications in *path*."""
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise SystemExit(f"{path} is not the file of commit 1dcc2bf: fetch that one")
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"))))


def part_of(value: str, parts: Sequence[tuple[float, str]]) -> str:
    """Return the words of the part in which *value* lies."""
    return next(words for most, words in parts if float(value) <= most)


def counted(rows: Sequence[Mapping[str, str]]) -> Counter[tuple[str, ...]]:
    """Return how many applications of each kind there are."""
    races = {"yes": "Black", "no": "White"}
    return Counter(
        (
            races[row["afam"]],
            row["chist"],
            row["mhist"],
            row["phist"],
            part_of(row["pirat"], PAYMENTS),
            part_of(row["lvrat"], LOAN),
            row["deny"],
        )
        for row in rows
    )


def modelled(rows: Sequence[Mapping[str, str]]) -> float:
    """Return by how much a Black applicant is denied more often, in the linear model of the
    textbook.
    """
    terms = [
        [
            1.0,
            row["afam"] == "yes",
            float(row["pirat"]),
            float(row["hirat"]),
            0.8 <= float(row["lvrat"]) <= 0.95,
            float(row["lvrat"]) > 0.95,
            float(row["chist"]),
            float(row["mhist"]),
            row["phist"] == "yes",
            row["insurance"] == "yes",
            row["selfemp"] == "yes",
        ]
        for row in rows
    ]
    denied = np.array([row["deny"] == "yes" for row in rows], dtype=float)
    coefficients, *_ = np.linalg.lstsq(np.array(terms, dtype=float), denied, rcond=None)
    return float(coefficients[1])


def main(arguments: Sequence[str]) -> None:
    rows = rows_of(Path(arguments[-1]))
    if "--published" in arguments:
        sys.stdout.write(f"{modelled(rows):.3f}\n")
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for key, number in sorted(counted(rows).items()):
        writer.writerow([*key, number])


if __name__ == "__main__":
    main(sys.argv[1:])
