"""The effects of a test at temperature 0, by pair and signal, without a verdict."""

from __future__ import annotations

from itertools import filterfalse
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from pytest_fairness.reports import Section, Table

if TYPE_CHECKING:
    from pytest_fairness import Finding, PairResult

#: Pairs of a test and class that the table has, those farthest apart.
_MOST_PAIRS = 3
_CAPTION = (
    "Effects d at temperature 0, by the base design: over all signals of a class, and of each by "
    "itself. They repeat what is judged above with less noise, and have no verdict."
)
_HEAD = ("test", "class", "outcome", "pair", "d", "d by signal")


def effects_section(item: str, finding: Finding) -> Section:
    """Return the effects of *finding*, of an *item*; those of all items stand in one section of the
    report.
    """
    details: Any = finding.details["signals"]
    by_pair: dict[tuple[str, str], list[Any]] = {}
    for row in details["rows"]:
        by_pair.setdefault((row["group_1"], row["group_2"]), []).append(row)
    pooled = list(filterfalse(attrgetter("alarm_only"), finding.pairs))

    def largest(pair: PairResult) -> float:
        """Return the largest effect of *pair*, over all signals or by one."""
        by_signal = map(itemgetter("effect"), by_pair[pair.group_1, pair.group_2])
        return float(max(map(abs, (pair.effect, *by_signal))))

    pooled.sort(key=largest, reverse=True)
    rows = []
    for pair in pooled[:_MOST_PAIRS]:
        groups = (pair.group_1, pair.group_2)
        by_signal = "; ".join(
            f"{row['signal'].replace('_', ' ')} {row['effect']:+.2f}" for row in by_pair[groups]
        )
        rows.append(
            (
                item,
                finding.protected_class,
                finding.outcome,
                " – ".join(groups),
                f"{pair.effect:+.2f}",
                by_signal,
            )
        )
    more = ""
    if len(pooled) > _MOST_PAIRS:
        more = f"{len(pooled) - _MOST_PAIRS} pairs that are closer"
    table = Table(
        caption=_CAPTION, head=_HEAD, rows=tuple(rows), words=(*_HEAD[:4], _HEAD[5]), more=more
    )
    return Section(id="temperature-0", heading="At temperature 0", parts=(table,))
