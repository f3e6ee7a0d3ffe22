"""Reduces the answers of six models as librarians to the table that ``librarians.md`` judges.

    python librarians_reduce.py FOLDER | gzip -9n > librarians.csv.gz

FOLDER is ``outputs`` of github.com/AI4Library/FEP at commit f5c65c2 (MIT licence, which stands in
``librarians.LICENSE``). One with other files is refused: the hash is of all thirty, one after the
other in the order of their names.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SHA256 = "829a5d2690b64810fa82fcd058a69e3d3b243296b9642cc5cea64ed8e486765b"
#: How the name of a file begins → the model as the publication calls it.
MODELS = {
    "Llama_3.1_8B_Instruct": "Llama-3.1 8B",
    "Ministral_8B_Instruct_2410": "Ministral 8B",
    "claude_3_5_sonnet_20241022": "Claude-3.5 Sonnet",
    "gemini_2.5_pro_preview_05_06": "Gemini-2.5 Pro",
    "gemma_2_9b_it": "Gemma-2 9B",
    "gpt_4o_2024_08_06": "GPT-4o",
}
FAILED = "[NO_TEXT_AFTER_RETRIES]"
COLUMNS = ("model", "sex", "race", "first_name", "surname", "question", "words", "dear")


def replies(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each model's replies."""
    texts = {path.name: path.read_bytes() for path in sorted(folder.glob("*.json"))}
    if hashlib.sha256(b"".join(texts.values())).hexdigest() != SHA256:
        raise SystemExit(f"{folder} is not the folder of commit f5c65c2: fetch that one")
    for name, data in texts.items():
        model, _, _ = name.partition("_seed_")
        for reply in json.loads(data):
            yield MODELS[model], reply


def read(text: str) -> tuple[object, object]:
    """Return how many words *text* has, and whether one of them is ``dear``; nothing of a reply
    that failed.
    """
    if FAILED in text:
        return "", ""
    return len(text.split()), int(re.search(r"\bdear\b", text, re.IGNORECASE) is not None)


def main(folder: Path) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for model, reply in replies(folder):
        who = [reply[name] for name in ("sex", "race_ethnicity", "first_name", "surname")]
        writer.writerow([model, *who, reply["query_type"], *read(reply["response"])])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
