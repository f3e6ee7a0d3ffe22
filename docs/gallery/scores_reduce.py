"""Reduces published scores of résumés to the table that ``scores.md`` judges.

    python scores_reduce.py FOLDER | gzip -9n > scores.csv.gz

FOLDER is ``results`` of github.com/jderbysh/AIHiringBias at commit d4c3499 (MIT licence, which
stands in ``scores.LICENSE``). A file with another hash is refused.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pandas as pd

#: Model → the file of its scores, and its hash.
FILES = {
    "gpt-3.5-turbo": (
        "3.5_turbo_evaluation_results.csv",
        "41cd16c7182ccc89267ea63242ae12bc594e4503747c1b107dbe888d067c9ac0",
    ),
    "gpt-5.1": (
        "5.1_evaluation_results2.csv",
        "41db75b4d50421c352634cd10da45211c0868b5494f8991c73141d998458df69",
    ),
}
PARTS = ["Experience", "Skills", "Achievements", "Resume"]
COLUMNS = ["model", "name", "gender", "race", "job", "resume", "repetition", "total"]


def scores_of(path: Path, sha256: str) -> pd.DataFrame:
    """Return the scores in *path*, a row a reply."""
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        raise SystemExit(f"{path} is not the file of commit d4c3499: fetch that one")
    scores = pd.read_csv(path)
    scores["total"] = scores[PARTS].sum(axis=1)
    scores["job"] = scores["job_file"].str.removeprefix("job").str.removesuffix(".txt")
    scores["resume"] = scores["resume_file"].str.removeprefix("resume").str.removesuffix(".txt")
    scores["repetition"] = scores.groupby(["name", "job", "resume"]).cumcount()
    return scores


def main(folder: Path) -> None:
    tables = []
    for model, (file, sha256) in FILES.items():
        tables.append(scores_of(folder / file, sha256).assign(model=model)[COLUMNS])
    sys.stdout.write(pd.concat(tables).to_csv(index=False))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
