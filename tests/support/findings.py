"""Findings compared, figure by figure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any


def figures(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every figure and text of a finding, by its place."""
    children: Any = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, (list, tuple)):
        children = enumerate(value)
    else:
        yield place, value
    for name, child in children:
        yield from figures(child, f"{place}/{name}")


def unlike(first: Any, second: Any) -> list[tuple[str, Any, Any]]:
    """The places where two findings differ by more than rounding."""
    jsons = [finding.to_dict() for finding in (first, second)]
    if jsons[0] == jsons[1]:
        return []
    ones, others = (dict(figures(json)) for json in jsons)
    assert ones.keys() == others.keys()
    different = []
    for place, value in ones.items():
        other = others[place]
        same = value == other
        if isinstance(value, float) and isinstance(other, float):
            same = math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-9)
        if not same:
            different.append((place, value, other))
    return different
