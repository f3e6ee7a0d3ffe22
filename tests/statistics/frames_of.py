"""Tables for the tests of the statistics, written as their counts or values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd


def scores(**groups: Sequence[float]) -> pd.DataFrame:
    """One row a value, nothing else known of it."""
    return pd.DataFrame(
        [(group, value) for group, values in groups.items() for value in values],
        columns=["group", "outcome"],
    )


def decisions(**counts: tuple[int, int]) -> pd.DataFrame:
    """``x`` favourable of ``n`` decisions a group."""
    return pd.DataFrame(
        [(group, at < x) for group, (x, n) in counts.items() for at in range(n)],
        columns=["group", "outcome"],
    )


def strata(*tables: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """One block a table; each table two rows (groups a and b) of yes and no."""
    return pd.DataFrame(
        [
            (group, f"t{block}", answer)
            for block, table in enumerate(tables)
            for group, (yes, no) in zip("ab", table, strict=True)
            for answer in [True] * yes + [False] * no
        ],
        columns=["group", "template", "outcome"],
    )


def names(values: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> pd.DataFrame:
    """group → name → one list of repetitions a template."""
    return pd.DataFrame(
        [
            (group, name, f"t{template}", repetition, value)
            for group, people in values.items()
            for name, templates in people.items()
            for template, repetitions in enumerate(templates)
            for repetition, value in enumerate(repetitions)
        ],
        columns=["group", "name", "template", "repetition", "outcome"],
    )
