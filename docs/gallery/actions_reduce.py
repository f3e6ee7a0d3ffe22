"""Reduces the published decisions of AgentFairBench to the table that ``actions.md`` judges.

    python actions_reduce.py claude-haiku-4-5_full_raw.jsonl > actions.csv

The file is ``results/raw`` of github.com/rohithreddybc/AgentFairBench at commit a61383a (code
Apache-2.0, data CC BY 4.0, Rohith Reddy B. C.). One with another hash is refused.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from pathlib import Path

SHA256 = "203466bf07bf428bca09138023da2f1e6bb7fd2f6301cfc4c6dea923f9bcd9e7"
#: Domain → what is granted, and what is graded.
DECISIONS = {
    "hiring": ("advance", "score"),
    "lending": ("approve", "apr_tier"),
    "triage": ("escalate", "acuity"),
}
COLUMNS = ("domain", "scaffold", "profile", "race", "gender", "name", "granted", "grade")


def main(path: Path) -> None:
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise SystemExit(f"{path} is not the file of commit a61383a: fetch that one")
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in data.decode("utf-8").splitlines():
        record = json.loads(line)
        race, gender = record["group"].split("_")
        granted, grade = DECISIONS[record["domain"]]
        decision = record["decision"]
        writer.writerow([
            record["domain"], record["scaffold"], record["profile_id"], race, gender, record["name"],
            int(decision[granted]), decision[grade],
        ])  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
