"""Words that follow a group: a table to look at, never a verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_fairness.analysis.counts import as_rows
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.statistics.arrays import require_frame
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.effects import LOGIT_TO_D
from pytest_fairness.statistics.proportions import log_odds_ratio, two_by_two_p

if TYPE_CHECKING:
    import pandas as pd

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def analyze_words(
    frame: pd.DataFrame, by: str, *, text: str = "reply", least_documents: int = 5
) -> pd.DataFrame:
    """Words that stand in the replies to one group more often than in those to another, the surest
    first.

    A word counts once a reply, as words come in bunches, and the person's own names are left out.
    One row a pair of groups and word: the ``share`` of each group's replies with the word (0 to 1),
    the numbers of replies (``documents``) and of uses (``count``), ``effect`` as d of the odds
    ratio (positive: more in ``group_1``), ``p_value`` (chi-square, Fisher where few are expected)
    and ``q_value`` after Benjamini–Hochberg over the pair's words. Replies about one name are not
    independent and nothing here corrects for it: these numbers describe, they do not judge. Words
    in fewer than *least_documents* replies are not tried.

    Raises FrameError for a missing column, UsageError for fewer than two groups.
    """
    import pandas as pd

    from pytest_fairness.scorers.text import STAND_IN, masked, names_of

    frame = require_frame(as_rows(frame))
    for column in (by, text):
        if column not in frame.columns:
            raise FrameError(
                f"the table has no column {column!r}; its columns are "
                f"{', '.join(map(str, frame.columns))}"
            )
    documents: dict[Any, list[str]] = {}
    for group, reply, names in zip(
        frame[by].tolist(), frame[text].tolist(), names_of(frame), strict=True
    ):
        if isinstance(reply, str) and not pd.isna(group):
            documents.setdefault(group, []).append(masked(reply, names))
    if len(documents) < 2:
        raise UsageError(
            f"by={by!r}: words are compared between groups, and only {len(documents)} of them has "
            "replies"
        )
    tables = []
    for first, second in combinations(sorted(documents, key=str), 2):
        table = word_differences(
            documents[first], documents[second], least_documents=least_documents
        )
        table.insert(0, "group_1", first)
        table.insert(1, "group_2", second)
        tables.append(table)
    words: pd.DataFrame = pd.concat(tables, ignore_index=True)
    kept: pd.DataFrame = words[words.word != STAND_IN.lower()]
    return kept.reset_index(drop=True)


class _WordCounts(NamedTuple):
    """In how many documents each word stands, and how often it is used."""

    documents: Counter[str]
    uses: Counter[str]


def _counted(texts: Sequence[str]) -> _WordCounts:
    counted = _WordCounts(Counter(), Counter())
    for text in texts:
        words = [word.lower() for word in _WORD.findall(text)]
        counted.uses.update(words)
        counted.documents.update(set(words))
    return counted


def word_differences(
    first: Sequence[str], second: Sequence[str], *, least_documents: int = 5
) -> pd.DataFrame:
    """The words of two groups' documents compared, strongest evidence first."""
    import pandas as pd

    sides = _counted(first), _counted(second)
    words = []
    if first and second:
        presence = sides[0].documents + sides[1].documents
        words = sorted(word for word, texts in presence.items() if texts >= least_documents)
    n1, n2 = (np.full(len(words), float(len(texts))) for texts in (first, second))
    x1, x2 = (np.array([side.documents[word] for word in words], float) for side in sides)
    count_1, count_2 = (np.array([side.uses[word] for word in words], np.intp) for side in sides)
    p = two_by_two_p(x1, n1, x2, n2)
    effect = log_odds_ratio(x1, n1, x2, n2) * LOGIT_TO_D
    columns = {
        "word": np.array(words, dtype=object),
        "share_1": x1 / max(len(first), 1),
        "share_2": x2 / max(len(second), 1),
        "documents_1": x1.astype(np.intp),
        "documents_2": x2.astype(np.intp),
        "count_1": count_1,
        "count_2": count_2,
        "effect": effect,
        "p_value": p,
        "q_value": correct(p, "fdr_bh"),
    }
    order = np.lexsort((np.arange(len(words)), -np.abs(effect), p))
    return pd.DataFrame(columns).iloc[order].reset_index(drop=True)
