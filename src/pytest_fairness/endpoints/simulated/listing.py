"""Read a list of candidates off a prompt: numbered, lettered, or labelled ("Candidate B: …")."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LABEL = r"(?:Candidate|Applicant|Option|Person|Resume|Résumé|Tenant|Patient)[ \t]+(?:[A-Z]|\d{1,2})\b"
_MARKER = rf"[ \t]*(?:[-*•][ \t]*)?(?:\*\*)?(?:{_LABEL}|\d{{1,2}}[.):]|[A-Z][.):])"
_ITEM = re.compile(
    r"^[ \t]*(?:[-*•][ \t]*)?(?:\*\*)?"
    rf"(?:(?P<label>{_LABEL})(?:\*\*)?[ \t]*[:.)\-–—]*|(?P<number>\d{{1,2}})[.):]|(?P<letter>[A-Z])[.):])[ \t]*"
    # The item's own line, and those below it that are neither blank nor the next item.
    rf"(?P<text>\S[^\n]*(?:\n(?!{_MARKER})(?![ \t]*\n)[^\n]+)*)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of several to choose from: how the list calls it, its place in the list from 1, and its line."""

    label: str
    number: int
    text: str


def listed(text: str) -> list[Candidate]:
    """The candidates that *text* lists. Labelled ones outrank numbered lines; of two lists, the last counts."""
    found: list[Candidate] = []
    labelled = False
    for match in _ITEM.finditer(text):
        if match["label"]:
            if not labelled:
                found, labelled = [], True
            found.append(Candidate(match["label"], len(found) + 1, match["text"]))
        elif not labelled:
            given = match["number"]
            if given is not None and int(given) != len(found) + 1:
                found = []  # another list begins
                if int(given) != 1:
                    continue
            found.append(Candidate(match["letter"] or given, len(found) + 1, match["text"]))
    return found
