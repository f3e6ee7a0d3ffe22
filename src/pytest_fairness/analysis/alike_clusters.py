"""Clusters alike, counted together: where a million names have a few rows of yes and no each, there
are few ways to have them. The engine that holds the table counts rows by cluster, and clusters by
what they hold; see docs/decisions/0253-clusters-alike.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_fairness.statistics.arrays import ALIKE, DEFAULT_CLUSTER, ROWS

if TYPE_CHECKING:
    import pandas as pd

MANY = 1_000
"""Clusters among the first rows of a table, from which on those alike are counted together."""
_NO_FULL_NAME = re.compile(r"(?s).*[0-9].*|[!-~]+")
_FIRST, _SECOND, _ODD = "rows_of_first", "rows_of_second", "rows_of_neither"
_LOWEST, _HIGHEST = "lowest_", "highest_"


@dataclass(frozen=True, slots=True)
class AlikeClusters:
    """A table of an *outcome* of two *answers*, by groups *by* and *cluster*."""

    outcome: str
    by: tuple[str, ...]
    cluster: str
    answers: tuple[Any, Any]

    @classmethod
    def of(
        cls, first: pd.DataFrame, outcome: str, by: Sequence[str], cluster: str
    ) -> AlikeClusters | None:
        """Return how the clusters of a table are counted, of which these are the *first* rows; None
        where they are few, stand in several groups, have names of two parts, of which some recur,
        or where the outcome is no yes and no, or is missing.
        """
        if len(first.columns) > len({outcome, cluster, *by}):  # as those of refusals
            return None
        clusters = first[[cluster, *by]].drop_duplicates()
        if len(clusters) < MANY or not clusters[cluster].is_unique:
            return None
        if cluster == DEFAULT_CLUSTER and not any(map(_is_no_full_name, clusters[cluster])):
            return None
        answers = first[outcome].drop_duplicates().tolist()
        if len(answers) != 2 or first[outcome].isna().any() or first[outcome].dtype == "category":
            return None
        if not isinstance(answers[0], str) and not set(answers) <= {0, 1}:
            return None
        return cls(outcome, tuple(by), cluster, (answers[0], answers[1]))

    def counted(
        self, nw: Any, frame: Any, as_pandas: Callable[[Any], pd.DataFrame]
    ) -> pd.DataFrame | None:
        """Return the counts of a *frame* of narwhals: a row for each answer of each cluster, those
        alike together, by the name of the first of them; None where a cluster stands in several
        groups, or a group has a single one, or a value is missing or neither of the answers.
        """
        patterns = as_pandas(self._patterns(nw, frame))
        apart = patterns[_ODD].fillna(1) != 0
        for name in self.by:
            apart |= patterns[_LOWEST + name] != patterns[_HIGHEST + name]
        if apart.any():
            return None
        groups = patterns.rename(columns=lambda name: name.removeprefix(_LOWEST))
        if groups.groupby(list(self.by))[ALIKE].sum().min() < 2:
            return None
        return self._rows(groups)

    def _patterns(self, nw: Any, frame: Any) -> Any:
        """Return the ways in which clusters have their rows, and how many have them in each."""
        columns = (self.cluster, *self.by)
        answer = nw.col(self.outcome)
        first, second = ((answer == value).cast(nw.Int64) for value in self.answers)
        rows = frame.select(
            *columns, first.alias(_FIRST), second.alias(_SECOND), nw.lit(1).alias(ROWS)
        )
        # By group, too: fewer rows are then asked for their group than the table has.
        counted = rows.group_by(*columns, drop_null_keys=False).agg(
            nw.col(_FIRST, _SECOND, ROWS).sum()
        )
        odd = nw.col(ROWS) - nw.col(_FIRST) - nw.col(_SECOND)
        for name in columns:
            odd = odd + nw.col(name).is_null().cast(nw.Int64)
        lowest = [_LOWEST + name for name in self.by]
        highest = [_HIGHEST + name for name in self.by]
        clusters = counted.select(
            self.cluster,
            _FIRST,
            _SECOND,
            odd.alias(_ODD),
            nw.col(*self.by).name.prefix(_LOWEST),
            nw.col(*self.by).name.prefix(_HIGHEST),
        )
        clusters = clusters.group_by(self.cluster, drop_null_keys=False).agg(
            nw.col(_FIRST, _SECOND, _ODD).sum(), nw.col(*lowest).min(), nw.col(*highest).max()
        )
        together = clusters.with_columns(nw.lit(1).alias(ALIKE))
        keys = [_FIRST, _SECOND, _ODD, *lowest, *highest]
        return together.group_by(*keys, drop_null_keys=False).agg(
            nw.col(ALIKE).sum(), nw.col(self.cluster).min()
        )

    def _rows(self, groups: pd.DataFrame) -> pd.DataFrame:
        """Return the table of counts of *groups*, of which each row is of clusters alike."""
        import pandas as pd

        parts = []
        for answer, rows in zip(self.answers, (_FIRST, _SECOND), strict=True):
            part = groups[[*self.by, self.cluster]].copy()
            part[self.outcome] = answer
            part[ALIKE] = groups[ALIKE].astype("int64")
            part[ROWS] = groups[rows].astype("int64") * part[ALIKE]
            parts.append(part[part[ROWS] > 0])
        return pd.concat(parts, ignore_index=True)


def _is_no_full_name(name: Any) -> bool:
    """Return whether *name* is surely one word, or holds a digit: a table of such has no names of
    two parts.
    """
    return not isinstance(name, str) or _NO_FULL_NAME.fullmatch(name) is not None
