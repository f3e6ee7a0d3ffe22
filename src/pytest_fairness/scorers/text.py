"""What scorers share: one plain form of a text, the JSON object in a reply, names masked, and agreement of readings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
# A reply longer than this is not a rating or a decision with some prose; reading on costs time and finds accidents.
LONGEST = 20_000

_LINE_ENDS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_PLAIN = str.maketrans(
    dict.fromkeys(_LINE_ENDS, "\n")
    | dict(zip("’‘“”−–—\u00a0", "''\"\"--- ", strict=True))
    | dict.fromkeys("*`\u200b\u200c\u200d\u2060\ufeff")
)
_OBJECT = re.compile(r"\{[^{}]*\}")
# What no reader needs: blanks in a row, blank lines in a row, and the middle of endless words and of endless marks.
# A pattern that may start anywhere in such a run, and go to its end, takes a time that is quadratic in it.
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n(?: ?\n)+")
_WORD = re.compile(r"(\w{100})\w+")
_MARKS = re.compile(r"([^\w\n]{20})[^\w\n]+([^\w\n]{20})")


def plain(text: str, longest: int = LONGEST) -> str:
    """*text* with plain quotes, dashes and line ends, without Markdown emphasis and zero-width characters, cut short at
    *longest*.

    What it gives has no long runs of blanks, of marks or of letters: see :func:`squeezed`.
    """
    if len(text) > longest:
        text = text[:longest].rpartition(" ")[0]  # a number cut in two is another number
    return squeezed(text.replace("\r\n", "\n").translate(_PLAIN)).strip()


def squeezed(text: str) -> str:
    """*text* with one blank for several, one blank line for several, and the middle of endless words left out.

    The patterns of the readers rely on it: with runs of bounded length, and quantifiers that are bounded or consume
    what they match, each takes a time that is proportional to the text.
    """
    text = _LINES.sub("\n\n", _BLANKS.sub(" ", text))
    return _MARKS.sub(r"\1\2", _WORD.sub(r"\1", text))


def json_fields(text: str) -> dict[str, list[Any]] | None:
    """The fields of the JSON object that *text* is or holds, keys in lower case; ``None`` without one.

    Each key has the list of all its values, so that a key given twice is seen. Only a whole object or flat
    objects within prose are read; anything broken, too deep or too large is no object.
    """
    text = text[:LONGEST].strip()
    candidates = [text] if text.startswith("{") and text.endswith("}") else []
    candidates.extend(_OBJECT.findall(text))
    for number, candidate in enumerate(candidates):
        found = _object(candidate)
        if found is None:
            continue
        if number == 0 and candidate == text:
            return found
        # Several objects in one reply: their values stand side by side, for the caller to find them at odds.
        for other in candidates[number + 1 :]:
            for key, values in (_object(other) or {}).items():
                found.setdefault(key, []).extend(values)
        return found
    return None


def _object(text: str) -> dict[str, list[Any]] | None:
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, _Pairs):
        return None
    found: dict[str, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(re.sub(r"[\s_-]+", "_", str(key).strip().lower()), []).append(value)
    return found


class _Pairs(list[tuple[str, Any]]):
    """The pairs of a JSON object, duplicates kept."""


def agreed(values: Iterable[T | None]) -> T | None:
    """What all *values* say; None where they differ, or there are none."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


# Word lists score names as words: VADER gives "Grace" +1.8 and "Mia" −1.2, whoever they are. A comparison by name would
# find exactly that. So a scorer that says so is given the reply with the person's names taken out.
#: In no lexicon, capitalised like a name, and as many words as a part of one.
STAND_IN = "Person"
_NAME_COLUMNS = ("name", "first_name", "last_name")


def names_of(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """For each row, the words of the person's names, from the columns ``name``, ``first_name`` and ``last_name``."""
    columns = [frame[column].tolist() for column in _NAME_COLUMNS if column in frame.columns]
    if not columns:
        return [()] * len(frame)
    return [_words(*(name for name in row if isinstance(name, str))) for row in zip(*columns, strict=True)]


@lru_cache(maxsize=4096)
def _words(*names: str) -> tuple[str, ...]:
    return tuple(sorted({word for name in names for word in re.findall(r"[^\W\d_]+", name)}))


def masked(text: str, words: tuple[str, ...]) -> str:
    """*text* with each of *words* replaced, as a whole word and as it is spelt: "grace" stays, "Grace" goes."""
    return _names_pattern(words).sub(STAND_IN, text) if words else text


@lru_cache(maxsize=4096)
def _names_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(map(re.escape, words)) + r")\b")


def word_count(text: str) -> int:
    """The number of words of *text*, separated by white space."""
    return len(text.split())


def char_count(text: str) -> int:
    """The number of characters (code points) of *text*, white space included."""
    return len(text)
