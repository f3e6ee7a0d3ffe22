"""Did you mean …? One phrasing for every name that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# What people call the classes and groups that have another name here.
_ALSO_CALLED = {
    "race": "race_ethnicity",
    "ethnicity": "race_ethnicity",
    "sex": "gender",
    "african_american": "black",
    "caucasian": "white",
    "latino": "hispanic",
    "latina": "hispanic",
    "latinx": "hispanic",
    "arab": "middle_eastern",
    "women": "female",
    "woman": "female",
    "men": "male",
    "man": "male",
    "nonbinary": "non_binary",
    "old": "older",
    "young": "younger",
    "nationality": "national_origin",
    "class": "socioeconomic_status",
}


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """``; did you mean 'black'?``, or nothing where no known name is close to *wrong*."""
    by_folded = {_folded(name): name for name in known}
    folded = _folded(wrong)
    close = [folded] if folded in by_folded else [_ALSO_CALLED.get(folded, "")]
    if close[0] not in by_folded:
        close = difflib.get_close_matches(folded, by_folded, n=1)
    return f"; did you mean {by_folded[close[0]]!r}?" if close else ""


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")


def listed(names: Iterable[str]) -> str:
    """The names in their order, with commas; ``none`` where there are none."""
    return ", ".join(names) or "none"
