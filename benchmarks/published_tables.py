"""What the four-fifths rule makes of published tables of selections, as in bias audits under New
York's Local Law 144.

Run: python benchmarks/published_tables.py TABLES.csv [--table table] [--group group] [--n n]
[--rate rate]

The file is not part of this project: collections of those audits are licensed for non-commercial
use (CC BY-NC), so the reader names a copy of his own. It has a row a table and category: which
table it belongs to, the category (a sex, or a race/ethnicity), how many applicants that has, and
the rate of those selected, in percent or as a share, from which the count is rebuilt. Categories
without a number or a rate are left out, and tables with fewer than two of them.

Each table is judged by ``analyze_four_fifths`` on its counts. The target (G33): at a ratio of
.9 and above there is no FLAG, unless over .9 of the higher group are selected and the odds ratio
has d of .2 or more; and what is below four fifths ends as it would with every ratio mattering in
practice.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from audits import Row, about

from pytest_fairness import Finding, Verdict, analyze_four_fifths

COLUMNS = ("table", "group", "n", "rate")


def read_tables(path: Path, names: Mapping[str, str]) -> pd.DataFrame:
    """The file as ``table``, ``group``, ``n`` and ``selected``."""
    held = pd.read_csv(path)
    missing = [name for name in names.values() if name not in held.columns]
    if missing:
        raise SystemExit(
            f"{path} has no column {missing[0]!r}; its columns are "
            f"{', '.join(map(str, held.columns))}"
        )
    frame = held[[names[column] for column in COLUMNS]].set_axis(COLUMNS, axis=1)
    for column in ("n", "rate"):
        text = frame[column].astype(str).str.replace("[, %]", "", regex=True)
        frame[column] = pd.to_numeric(text, errors="coerce")
    frame = frame.dropna()
    frame = frame[(frame["n"] >= 1) & (frame["rate"] >= 0)]
    share = frame["rate"] / np.where(frame.groupby("table")["rate"].transform("max") > 1, 100, 1)
    frame = frame.assign(
        n=frame["n"].astype(int), selected=(share.clip(0, 1) * frame["n"]).round().astype(int)
    )
    return frame[frame.groupby("table")["group"].transform("nunique") >= 2]


def judged_table(table: pd.DataFrame, practical_ratio: float = 0.9) -> Finding:
    """The finding about one table: a row of those selected, and a row of the others, per group."""
    rejected = table["n"] - table["selected"]
    numbers = {True: table["selected"], False: rejected}
    frame = pd.concat(
        table[["group"]].assign(selected=selected, number_of_rows=number)
        for selected, number in numbers.items()
    )
    return analyze_four_fifths(
        frame[frame["number_of_rows"] > 0],
        "selected",
        "group",
        cluster=None,
        practical_ratio=practical_ratio,
    )


def trifles(finding: Finding) -> list[bool]:
    """Of each pair with a ratio of .9 or more, whether it is FLAG and no more than a trifle."""
    found = []
    for pair in finding.pairs:
        numbers = {
            name: float(value)
            for name, value in pair.statistics.items()
            if isinstance(value, (int, float))
        }
        if numbers.get("impact_ratio", 0.0) >= 0.9:
            rates = numbers["rate_1"], numbers["rate_2"]
            clear = max(rates) > 0.9 and abs(pair.effect) >= 0.2
            found.append(pair.verdict is Verdict.FLAG and not clear)
    return found


def rows_of(tables: pd.DataFrame, what: str) -> tuple[list[Row], Counter[str]]:
    """The lines of G33 about *tables*, and how many of them have which verdict."""
    flagged, changed, verdicts = [], [], Counter[str]()
    for _, table in tables.groupby("table"):
        finding, strict = judged_table(table), judged_table(table, 1.0)
        verdicts[str(finding.verdict)] += 1
        flagged += trifles(finding)
        for pair, other in zip(finding.pairs, strict.pairs, strict=True):
            if pair.statistics.get("below_four_fifths"):
                changed.append(pair.verdict is not other.verdict)
    counted = {
        "FLAG at a ratio of .9 or more": flagged,
        "another verdict below four fifths": changed,
    }
    rows = [
        about("G33", f"{what}: {name}", "≤", 0.0, values)
        for name, values in counted.items()
        if values
    ]
    return rows, verdicts


def made_tables(count: int, seed: int) -> pd.DataFrame:
    """Tables as such audits have them: two sexes of 60 to 60,000 applicants, rates of 2 to 99 %,
    ratios around 1.
    """
    rng = np.random.default_rng(seed)
    n = np.exp(rng.uniform(np.log(60), np.log(60_000), (count, 2))).astype(int)
    rate = rng.uniform(0.02, 0.99, (count, 1)) * np.exp(rng.normal(0, 0.08, (count, 2)))
    selected = np.rint(n * np.clip(rate, 0, 1)).astype(int)
    columns = {"table": np.repeat(np.arange(count), 2), "group": np.tile(["female", "male"], count)}
    return pd.DataFrame({**columns, "n": n.ravel(), "selected": selected.ravel()})


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", type=Path, help="the CSV file")
    for column in COLUMNS:
        parser.add_argument(
            f"--{column}", default=column, help=f"its column of the {column} (default: %(default)s)"
        )
    chosen = parser.parse_args()
    tables = read_tables(chosen.tables, {column: getattr(chosen, column) for column in COLUMNS})
    found, verdicts = rows_of(tables, "published tables")
    for row in found:
        print(row.line({}))
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    return 0 if all(row.met for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
