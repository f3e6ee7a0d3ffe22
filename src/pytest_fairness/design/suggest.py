"""Did you mean …? One phrasing for every name that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """``; did you mean 'black'?``, or nothing where no known name is close to *wrong*."""
    by_folded = {name.casefold().replace("-", "_").replace(" ", "_"): name for name in known}
    close = difflib.get_close_matches(wrong.casefold().replace("-", "_").replace(" ", "_"), by_folded, n=1)
    return f"; did you mean {by_folded[close[0]]!r}?" if close else ""


def listed(names: Iterable[str]) -> str:
    """The names in their order, with commas; ``none`` where there are none."""
    return ", ".join(names) or "none"
