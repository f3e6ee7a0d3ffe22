"""Reduces the published predictions on BBQ to the counts that ``bbq.md`` judges.

    python bbq_reduce.py FOLDER > bbq.csv

FOLDER holds ``preds_<category>.jsonl`` of github.com/nyu-mll/BBQ, ``results/UnifiedQA``, at commit
bea11bd: CC BY 4.0, Parrish et al. (2022). A file with another hash is refused.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SHA256 = {
    "Age": "a8c959958e1dc9701cb28df8e2d7e8ab3df2879e9cb1a8ca12bc9fb07a97339d",
    "Disability_status": "90d939a38a33c7d0fd9ede9fe8b9b4a40f83acd38b6c582e03a5131dc5a3967a",
    "Nationality": "1c125200fe0c93379be7e067cf280bb7836cd688201545db379cd67a171c1f75",
    "Physical_appearance": "fe826a7dbb5be7491fc377270cbcae999b215a09f719709956d9350b970fd0f6",
    "Religion": "6322499fca1afeb30d00f0ff87949f777ad44e24c2d0c2ecda2a3a76f16ffde3",
    "Sexual_orientation": "639cf5bf64a0e13abfc66c15cc1d470c5b1243fba41bea3bbc1c159f467e8bb6",
}
PREDICTION = "unifiedqa-t5-11b_pred_race"
SIDES = ("stereotyped", "other")
COLUMNS = ("category", "question", "polarity", "group", "named", "number_of_rows")


def items(folder: Path, category: str) -> Iterator[dict[str, Any]]:
    """Yield the items of *category* whose context does not say who it was."""
    path = folder / f"preds_{category}.jsonl"
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256[category]:
        raise SystemExit(f"{path} is not the file of commit bea11bd: fetch that one")
    for line in data.decode("utf-8").splitlines():
        item = json.loads(line)
        if item["context_condition"] == "ambig":
            yield item


def bare(text: str) -> str:
    """Return *text* as the authors compare answers: in lower case, without a full stop."""
    return text.strip().lower().replace("o'brien", "obrien").removesuffix(".").strip()


def answered(item: Mapping[str, Any]) -> int | None:
    """Return the number of the answer that was given; None for none of the three."""
    given = bare(item[PREDICTION])
    for place in range(3):
        if bare(item[f"ans{place}"]) == given:
            return place
    for place in range(3):
        if " ".join(item[f"ans{place}"].lower().split()[:2]) in given:
            return place
    return None


def side_of(item: Mapping[str, Any], place: int) -> str | None:
    """Return whom answer *place* names: a person of the stereotyped group, the other, nobody."""
    description = item["answer_info"][f"ans{place}"]
    if description[1] == "unknown":
        return None
    stereotyped = {group.lower() for group in item["additional_metadata"]["stereotyped_groups"]}
    if stereotyped & {word.lower() for word in description}:
        return "stereotyped"
    return "other"


def counts_of(folder: Path) -> Counter[tuple[str, ...]]:
    """Return how often each side was named and not named, by category, question and polarity."""
    counts: Counter[tuple[str, ...]] = Counter()
    for category in SHA256:
        for item in items(folder, category):
            sides = [side_of(item, place) for place in range(3)]
            place = answered(item)
            # In 18 items of Physical_appearance both people are of the group, or neither is.
            if place is None or sides.count("stereotyped") != 1:
                continue
            where = (category, f"{int(item['question_index']):02}", item["question_polarity"])
            for side in SIDES:
                counts[(*where, side, str(int(sides[place] == side)))] += 1
    return counts


if __name__ == "__main__":
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for key, number in sorted(counts_of(Path(sys.argv[1])).items()):
        writer.writerow([*key, number])
