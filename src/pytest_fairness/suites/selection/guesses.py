"""Reading guesses of the candidates' groups: "1. female, Black" and its kin, one candidate a line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from pytest_fairness.design.signals import LABEL
from pytest_fairness.suites.selection.texts import _signals

_SAID = {
    "female": ("woman", "women", "f"),
    "male": ("man", "men", "m"),
    "black": ("african american", "african-american"),
    "white": ("caucasian", "european american"),
    "hispanic": ("latino", "latina", "latinx"),
    "asian": ("asian american",),
}
_START = re.compile(
    r"(?:^|[\n;]|(?<=[.,)])[ \t])[ \t*#>\-\"']*"
    r"(?:(?P<number>\d{1,2})[.):][ \t]*|(?:candidate|applicant)[ \t]+(?P<letter>[A-Z]|\d{1,2})\b)",
    re.IGNORECASE,
)


def read_guesses(
    reply: str, classes: Mapping[str, Sequence[str]], candidates: int = 2
) -> tuple[dict[str, str | None], ...]:
    """For each candidate, in order, the value guessed of each class in *classes* (class → its values).

    None where nothing, or more than one value, is said of a class, and for all where the reply does not go through
    the candidates in order: what cannot be told is no guess.
    """
    nothing: dict[str, str | None] = dict.fromkeys(classes)
    starts: dict[int, re.Match[str]] = {}
    for match in _START.finditer(reply):
        said = match["number"] or match["letter"]
        number = int(said) if said.isdigit() else ord(said.upper()) - 64
        if 1 <= number <= candidates:
            starts.setdefault(number, match)
    if sorted(starts) != list(range(1, candidates + 1)):
        return tuple(dict(nothing) for _ in range(candidates))
    places = [starts[number] for number in sorted(starts)]
    if any(one.start() > other.start() for one, other in pairwise(places)):
        return tuple(dict(nothing) for _ in range(candidates))
    ends = [*(match.start() for match in places[1:]), len(reply)]
    found = []
    for match, end in zip(places, ends, strict=True):
        text = reply[match.end() : end]
        found.append({name: _value(text, name, tuple(values)) for name, values in classes.items()})
    return tuple(found)


def _value(text: str, name: str, values: tuple[str, ...]) -> str | None:
    said = {value for pattern, value in _patterns(name, values) if pattern.search(text)}
    return said.pop() if len(said) == 1 else None


@lru_cache(maxsize=256)
def _patterns(name: str, values: tuple[str, ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    signals = _signals()
    known = signals.groups(name) if name in signals.protected_classes else ()
    found = []
    for value in values:
        forms = [value, value.replace("_", " "), value.replace("_", "-"), *_SAID.get(value, ())]
        forms += signals.phrases(name, value, LABEL) if value in known else ()
        any_of = "|".join(map(re.escape, dict.fromkeys(forms)))
        found.append((re.compile(rf"(?<![\w-])(?:{any_of})(?![\w-])", re.IGNORECASE), value))
    return tuple(found)
