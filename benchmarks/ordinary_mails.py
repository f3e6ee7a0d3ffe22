"""Ordinary business mails that the lexicon flags: texts which are no part of this repository.

    python benchmarks/ordinary_mails.py FOLDER [--show]

FOLDER is ``enron1/ham`` of Enron-Spam (Metsis, Androutsopoulos & Paliouras 2006, CEAS): legitimate
mails of an employee of Enron, which a regulator made public; a copy is in
https://github.com/luikyv/email_classification at commit 81b3aa6. Of its files the 300 are read
whose SHA-256 is smallest, of those with as many words as a letter has. Their digests have a digest
of their own, so that another copy is refused. ``--show`` prints what is flagged.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from pytest_fairness.scorers.lexicon import LexiconWarning, shipped_lexicon

MAILS = 300
#: As many make a text a letter, to the lexicon.
FEWEST_WORDS = 60
DIGEST = "65e52aab49a234a017b4f1d63f6108606db51609bda3cba9b2dc504f9b9b79c4"


def mails_of(folder: Path) -> list[str]:
    """Return the mails that are read, those of the smallest SHA-256 first. Exits for another copy."""
    by_digest = {}
    for path in folder.glob("*.txt"):
        data = path.read_bytes()
        text = data.decode("latin-1")
        if len(text.split()) >= FEWEST_WORDS:
            by_digest[sha256(data).hexdigest()] = text
    digests = sorted(by_digest)[:MAILS]
    digest = sha256("".join(digests).encode("ascii")).hexdigest()
    if digest != DIGEST:
        raise SystemExit(f"{folder}: these are other mails ({digest})")
    return [by_digest[name] for name in digests]


def shown(text: str, warning: LexiconWarning) -> str:
    """Return *warning* with some words of *text* around it, in one line."""
    around = " ".join(text[max(0, warning.start - 80) : warning.end + 80].split())
    return f"{warning.severity:<8} {warning.category}/{warning.term}: {warning.text!r} in {around}"


def counted(mails: Sequence[str], severities: Sequence[str], *, show: bool) -> str:
    """Return how many *mails* have a warning of one of *severities*, and of which categories."""
    lexicon = shipped_lexicon()
    flagged = 0
    categories: Counter[str] = Counter()
    for text in mails:
        warnings = [w for w in lexicon.warnings(text) if w.severity in severities]
        flagged += bool(warnings)
        categories.update({warning.category for warning in warnings})
        if show and warnings:
            print(*(shown(text, warning) for warning in warnings), sep="\n")
    by_category = ", ".join(f"{name} {number}" for name, number in categories.most_common())
    return f"{flagged} of {len(mails)} ({by_category})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    mails = mails_of(arguments.folder)
    worse = ("critical", "high", "medium")
    print("a warning of medium or above:", counted(mails, worse, show=arguments.show))
    print("a low warning:", counted(mails, ("low",), show=False))


if __name__ == "__main__":
    main()
