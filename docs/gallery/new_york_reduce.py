"""Judges the published bias audits of New York again, and counts what comes out.

    python new_york_reduce.py audits_full.csv > new_york.csv
    python new_york_reduce.py --published audits_full.csv
    python new_york_reduce.py --tables audits_full.csv > TABLES.csv

The file is ``audits/audits_full.csv`` of github.com/aclu-national/auditing-the-audits-facct-2025 at
commit cef7c27, which is CC BY-NC 4.0 and no part of this project: only our verdicts, counted, stand
here. One with another hash is refused. ``--published`` prints the publication's figures,
``--tables`` what ``benchmarks/published_tables.py`` takes.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from pytest_fairness import Finding, analyze_four_fifths

SHA256 = "69fd290fb0be9523254027e3508722e70501f8501a9a3d92f47f7ffd31bbf85e"
TABLE = ["audit_id", "selection_or_scoring_rate", "protected_char_group"]
#: The auditor that says it pools several uses of a tool to choose whom others are compared with.
POOLING = "DCI Consulting Group"
COLUMNS = ["kind", "pooled", "printed", "counted", "alone", "verdict"]


def audits_of(path: Path) -> pd.DataFrame:
    """Return the rows in *path*, as they are published."""
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        raise SystemExit(f"{path} is not the file of commit cef7c27: fetch that one")
    return pd.read_csv(path)


def tables_of(audits: pd.DataFrame) -> pd.DataFrame:
    """Return the categories of each table with their applicants, rate and printed ratio; tables
    with fewer than two are left out.
    """
    known = ~audits["race_ethnicity"].eq("Missing/Unknown") & ~audits["sex"].eq("Missing/Unknown")
    # Two categories of a sex and a race stand in a table of races.
    misplaced = audits["protected_char_group"].eq("race/ethnicity") & ~audits["sex"].eq("Total")
    people = audits[known & ~misplaced]
    rate = people["result"].fillna(people["result_calc"])
    people = people.assign(
        table=people[TABLE].agg("|".join, axis=1),
        kind=people["protected_char_group"],
        pooled=people["auditor"].eq(POOLING).map({True: "yes", False: "no"}),
        group=(people["sex"] + " " + people["race_ethnicity"]).str.replace("Total", "").str.strip(),
        n=people["number_of_applications"],
        rate=rate,
    )
    people = people[people["n"].ge(1) & people["rate"].between(0, 1)]
    selected = (people["rate"] * people["n"]).round().astype("int64")
    people = people.assign(n=people["n"].astype("int64"), selected=selected)
    return people[people.groupby("table")["group"].transform("nunique") >= 2]


def judged(table: pd.DataFrame, practical_ratio: float) -> Finding:
    """Return the finding about one *table*, from its counts."""
    numbers = {True: table["selected"], False: table["n"] - table["selected"]}
    counts = pd.concat(
        table[["group"]].assign(selected=selected, number_of_rows=number)
        for selected, number in numbers.items()
    )
    return analyze_four_fifths(
        counts[counts["number_of_rows"] > 0],
        "selected",
        "group",
        cluster=None,
        practical_ratio=practical_ratio,
    )


def band(ratio: float) -> str:
    """Return in which part an impact ratio lies."""
    if pd.isna(ratio):
        return "none"
    # A ratio of two counts that is .8 exactly may come out a little lower.
    if round(ratio, 9) < 0.8:
        return "under .8"
    if round(ratio, 9) < 0.9:
        return ".8 to .9"
    return ".9 and more"


def verdicts_of(tables: pd.DataFrame) -> pd.DataFrame:
    """Return how many categories have which verdict against the highest, by the ratio as printed
    and as counted; ``alone`` is the verdict if every ratio mattered.
    """
    rows = []
    for _, table in tables.groupby("table"):
        printed = dict(zip(table["group"], table["impact_ratio"], strict=True))
        where = table.iloc[0]
        pairs = zip(judged(table, 0.9).pairs, judged(table, 1.0).pairs, strict=True)
        for pair, other in pairs:
            ratio = float(str(pair.statistics["impact_ratio"]))
            bands = (band(printed[pair.group_1]), band(ratio))
            verdicts = (str(other.verdict), str(pair.verdict))
            rows.append((where["kind"], where["pooled"], *bands, *verdicts))
    found = pd.DataFrame(rows, columns=COLUMNS)
    return found.groupby(COLUMNS).size().rename("pairs").reset_index()


def published(audits: pd.DataFrame) -> str:
    """Return the shares of section 4.2.2 of the publication, by its own rules."""
    left_out = audits["deploying_entity"].eq("Hackerrank") | (
        audits["tool_vendor"].eq("dover") & audits["selection_or_scoring_rate"].eq("Scoring")
    )
    rows = audits[~left_out]
    counted = ~rows["any_group_ir_is_one"] & rows["impact_ratio"].isna()
    ratio = rows["impact_ratio"].mask(counted, rows["impact_calc"])
    low = ratio.lt(0.8) & rows["number_of_applications"].ne(0)
    marks = rows.assign(ratio=ratio, low=low, above=ratio.gt(1))
    marks["compared"] = rows["comparator_group"].astype(str).eq("True")
    has_ratio = marks.groupby("audit_id")["ratio"].transform("count") > 0
    audit = marks[has_ratio].groupby("audit_id")[["low", "above"]].any()
    table = marks.groupby(TABLE).agg(
        low=("low", "any"), compared=("compared", "any"), ratios=("ratio", "count")
    )
    table = table[table["compared"] & table["ratios"].gt(0)]
    return (
        f"a ratio under four fifths: {audit['low'].sum()} of {len(audit)} audits "
        f"({audit['low'].mean():.0%}), {table['low'].sum()} of {len(table)} tables "
        f"({table['low'].mean():.0%}); a ratio above one: {audit['above'].sum()} of {len(audit)} "
        f"audits ({audit['above'].mean():.0%})\n"
    )


def main(arguments: Sequence[str]) -> None:
    audits = audits_of(Path(arguments[-1]))
    tables = tables_of(audits)
    if "--published" in arguments:
        sys.stdout.write(published(audits))
    elif "--tables" in arguments:
        sys.stdout.write(tables[["table", "group", "n", "rate"]].to_csv(index=False))
    else:
        sys.stdout.write(verdicts_of(tables).to_csv(index=False))


if __name__ == "__main__":
    main(sys.argv[1:])
