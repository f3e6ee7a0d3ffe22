"""Names are read past: what somebody is called must not count as what is said of them.

Word lists score names as words: VADER gives "Grace" +1.8 and "Mia" −1.2, whoever they are. A comparison by name would
find exactly that. So a scorer that says so is given the reply with the person's names taken out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("name", "first_name", "last_name")
#: In no lexicon, capitalised like a name, and as many words as a part of one.
STAND_IN = "Person"


def names_of(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """For each row, the words of the person's names, from the columns ``name``, ``first_name`` and ``last_name``."""
    columns = [frame[column].tolist() for column in _COLUMNS if column in frame.columns]
    if not columns:
        return [()] * len(frame)
    return [_words(*(name for name in row if isinstance(name, str))) for row in zip(*columns, strict=True)]


@lru_cache(maxsize=4096)
def _words(*names: str) -> tuple[str, ...]:
    return tuple(sorted({word for name in names for word in re.findall(r"[^\W\d_]+", name)}))


def masked(text: str, words: tuple[str, ...]) -> str:
    """*text* with each of *words* replaced, as a whole word and as it is spelt: "grace" stays, "Grace" goes."""
    return _pattern(words).sub(STAND_IN, text) if words else text


@lru_cache(maxsize=4096)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(map(re.escape, words)) + r")\b")
