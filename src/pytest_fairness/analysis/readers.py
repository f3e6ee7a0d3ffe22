"""Readers of the replies behind a finding: how many were read by form, line, rule or model in each
group; and of a model, how far it agrees with itself, with the rules, with a second one, and whether
it could tell whom a masked reply is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pytest_fairness.model import JSON
from pytest_fairness.words import count, p_value, percent

if TYPE_CHECKING:
    import pandas as pd

LEAK_LEVEL = 0.05
"""A reader that tells the group more often than chance does at this level is not blinded."""


def read_by_group(
    read_by: pd.Series[Any], frame: pd.DataFrame, by: str | list[str] | tuple[str, ...] | None
) -> dict[str, JSON]:
    """Return how many replies of each group of *by* were read by what: reader → group → number."""
    columns = [by] if isinstance(by, str) else list(by or ())
    groups = ["all"] * len(frame)
    if columns:
        values = zip(*(frame[column].tolist() for column in columns), strict=True)
        groups = [" × ".join(map(str, row)) for row in values]
    counts: dict[str, Counter[str]] = {}
    for reader, group in zip(read_by.tolist(), groups, strict=True):
        if reader is not None:
            counts.setdefault(str(reader), Counter())[group] += 1
    return {reader: dict(sorted(counts[reader].items())) for reader in sorted(counts)}


def reader_notes(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader of the finding has to know of the model that read, by its *facts*."""
    endpoint = facts["endpoint"]
    replies = count(facts["replies"], "reply", "replies")
    yield f"{replies} read by {endpoint}{_orders(facts['orders'])}"
    unread = sum(facts["unread"].values())
    if unread:
        reasons = ", ".join(f"{reason}: {number}" for reason, number in facts["unread"].items())
        yield f"{count(unread, 'reply', 'replies')} left unread by {endpoint} ({reasons})"
    for other, agreement in (("the rules", facts["rules"]), _second(facts)):
        if agreement["both"]:
            yield (
                f"{endpoint} and {other} agree on {agreement['agree']} of {agreement['both']} "
                "replies that both read"
            )
    for leak in facts["leaks"]:
        if leak["p_value"] < LEAK_LEVEL:
            yield (
                f"{endpoint} tells {leak['by']} from the masked reply in {leak['right']} of "
                f"{leak['asked']} ({percent(leak['right'] / leak['asked'])}, by chance "
                f"{percent(leak['chance'])}, {p_value(leak['p_value'])}): it is not blinded"
            )


def _second(facts: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a second reader, and how far it agrees; nothing where there is none."""
    second = facts.get("second")
    if second is None:
        return "", {"both": 0}
    return second["endpoint"], second


def _orders(orders: Mapping[str, Any]) -> str:
    """Return how far the reader's two orders of the options agree, in words."""
    if not orders["both"]:
        return ""
    text = f", its two orders alike in {orders['agree']} of {orders['both']}"
    if orders["kappa"] is None:
        return text
    return f"{text} (kappa {orders['kappa']:.2f})"
