"""Which words follow a group: a table to look at, never a verdict."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations
from typing import TYPE_CHECKING, Any

from pytest_fairness.errors import FrameError, UsageError

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    "group_1",
    "group_2",
    "word",
    "share_1",
    "share_2",
    "documents_1",
    "documents_2",
    "count_1",
    "count_2",
    "effect",
    "p_value",
    "q_value",
)


def analyze_words(
    frame: pd.DataFrame,
    by: str,
    *,
    text: str = "reply",
    least_documents: int = 5,
    permutations: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Words that stand in the replies to one group more often than in those to another, the surest first.

    A word counts once a reply, and the person's own names are left out. One row a pair of groups and word: the
    ``share`` of each group's replies with the word (0 to 1), the numbers of replies (``documents``) and of uses
    (``count``), ``effect`` as d of the odds ratio (positive: more in ``group_1``), ``p_value`` (chi-square, Fisher
    where few are expected, or by *permutations* of the replies) and ``q_value`` after Benjamini–Hochberg over the
    pair's words. Replies about one name are not independent and nothing here corrects for it: these numbers describe,
    they do not judge. Words in fewer than *least_documents* replies are not tried.

    Raises FrameError for a missing column, UsageError for fewer than two groups.
    """
    import pandas as pd

    from pytest_fairness.scorers.text import STAND_IN, masked, names_of
    from pytest_fairness.statistics.arrays import require_frame
    from pytest_fairness.statistics.words import word_differences

    frame = require_frame(frame)
    for column in (by, text):
        if column not in frame.columns:
            raise FrameError(
                f"the table has no column {column!r}; its columns are {', '.join(map(str, frame.columns))}"
            )
    documents: dict[Any, list[str]] = {}
    for group, reply, names in zip(frame[by].tolist(), frame[text].tolist(), names_of(frame), strict=True):
        if isinstance(reply, str) and group is not None and group == group:  # noqa: PLR0124 - NaN is not itself
            documents.setdefault(group, []).append(masked(reply, names))
    if len(documents) < 2:
        raise UsageError(f"by={by!r}: words are compared between groups, and only {len(documents)} of them has replies")
    rows = [
        {"group_1": first, "group_2": second, **asdict(word)}
        for first, second in combinations(sorted(documents, key=str), 2)
        for word in word_differences(
            documents[first],
            documents[second],
            least_documents=least_documents,
            permutations=permutations,
            seed=seed,
        )
        if word.word != STAND_IN.lower()
    ]
    table = pd.DataFrame(rows, columns=[column for column in _COLUMNS if not column.startswith("share")])
    sizes = {group: len(replies) for group, replies in documents.items()}
    for side in ("1", "2"):
        table[f"share_{side}"] = table[f"documents_{side}"] / table[f"group_{side}"].map(sizes).astype(float)
    return table[list(_COLUMNS)]
