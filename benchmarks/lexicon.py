"""Precision and recall of the lexicon on the labelled texts, beside published word lists.

    python benchmarks/lexicon.py [development|held_back] [--lists FOLDER]

A text counts as flagged for a category if any warning of it is; intervals are Wilson's, at 95 %.
FOLDER holds the published lists as CSV, which are not part of this repository:
``gender_decoder_words.csv`` (stem; of lovedaybrooke/gender-decoder, MIT),
``gaucher_2011_appendix_a.csv`` (stem, is_prefix; Gaucher, Friesen & Kay 2011),
``retext_equality_terms.csv`` (file, inconsiderate with alternatives behind "|";
retextjs/retext-equality, MIT), ``joblint_rules.csv`` (trigger_regex; rowanmanning/joblint, MIT),
``gender_bias_letters_terms.csv`` (term; gender-bias/gender-bias, MIT). Each is held against the
category that it claims.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.labelled_texts import HALVES, LabelledText, labelled_texts

from pytest_fairness.scorers.lexicon import CATEGORIES, shipped_lexicon

Flags = Callable[[LabelledText], bool]


def wilson(hits: int, of: int) -> str:
    """``.95 (.80 to .99)``: a share and its 95 % interval (Wilson 1927)."""
    if not of:
        return "–"
    share, z = hits / of, 1.959964
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return f"{share:.2f} ({max(middle - half, 0):.2f} to {min(middle + half, 1):.2f})"


def row(words: str, texts: Iterable[LabelledText], category: str, flags: Flags) -> str:
    pairs = [(flags(one), category in one.expect) for one in texts]
    both, flagged, wanted = (
        pairs.count((True, True)),
        sum(one for one, _ in pairs),
        sum(two for _, two in pairs),
    )
    cells = (
        words,
        category,
        wilson(both, flagged),
        wilson(both, wanted),
        f"{both} of {flagged}",
        f"{both} of {wanted}",
    )
    return f"| {' | '.join(cells)} |"


def published(folder: Path) -> dict[str, tuple[str, re.Pattern[str]]]:
    """Name of a list → the category that it claims, and what it matches."""

    def rows(name: str) -> list[dict[str, str]]:
        with (folder / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def words(found: Iterable[str], *, prefix: bool = False) -> re.Pattern[str]:
        end = "" if prefix else r"\b"
        return re.compile(rf"\b(?:{'|'.join(found)}){end}", re.IGNORECASE)

    retext = rows("retext_equality_terms.csv")

    def of(file: str) -> re.Pattern[str]:
        terms = (
            term
            for one in retext
            if one["file"] == file
            for term in one["inconsiderate"].split("|")
        )
        return words(re.escape(term.strip()) for term in terms if term.strip())

    gaucher = rows("gaucher_2011_appendix_a.csv")
    return {
        "gender-decoder, any stem": (
            "gender", words((re.escape(one["stem"]) for one in rows("gender_decoder_words.csv")), prefix=True),
        ),
        "Gaucher et al. 2011, any word": (
            "gender", words(re.escape(one["stem"]) + (r"\w*" if one["is_prefix"] == "1" else "") for one in gaucher),
        ),
        "retext-equality, gender": ("gender", of("gender")),
        "retext-equality, race": ("race_ethnicity", of("race")),
        "retext-equality, ableist": ("disability", of("ablist")),
        "joblint, all rules": ("gender", words(one["trigger_regex"] for one in rows("joblint_rules.csv"))),
        "gender-bias letters list": (
            "gender", words(re.escape(one["term"]) for one in rows("gender_bias_letters_terms.csv")),
        ),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("half", nargs="?", choices=HALVES, default=HALVES[0])
    parser.add_argument("--lists", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    texts, lexicon = labelled_texts(arguments.half), shipped_lexicon()
    found = {
        one: {w.category for w in lexicon.warnings(one.text, gender=one.gender)} for one in texts
    }
    print(
        "| detector | category | precision | recall | right of flagged | found of wanted "
        "|\n|---|---|---|---|---|---|"
    )
    for category in CATEGORIES:
        print(
            row(
                "this lexicon",
                texts,
                category,
                lambda one, category=category: category in found[one],
            )
        )
    for name, (category, pattern) in (
        published(arguments.lists) if arguments.lists else {}
    ).items():
        print(
            row(
                name,
                texts,
                category,
                lambda one, pattern=pattern: pattern.search(one.text) is not None,
            )
        )
    right = sum(len(found[one] & one.expect) for one in texts)
    flagged, wanted = sum(map(len, found.values())), sum(len(one.expect) for one in texts)
    clean = [one for one in texts if not one.expect]
    print(f"\nall categories: precision {wilson(right, flagged)}, recall {wilson(right, wanted)}")
    print(
        f"{sum(bool(found[one]) for one in clean)} of {len(clean)} texts without any such thing "
        "are flagged"
    )


if __name__ == "__main__":
    main()
