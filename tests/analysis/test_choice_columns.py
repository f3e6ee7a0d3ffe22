"""From replies to the columns that a comparison of choices reads."""

from __future__ import annotations

import pandas as pd

from pytest_fairness import analyze_preference
from pytest_fairness.analysis.choice_columns import choice_columns

REPLIES = [
    "Ana Arp",
    "Candidate B",
    "Neither.",
    "I would hire both.",
    "Cyd Cox",
    "Well.",
    None,
    "I can't help with that.",
]


def frame(replies: list[str | None] = REPLIES, size: int = 2) -> pd.DataFrame:
    """A table of trials between groups a, b (and c), one row a reply; the last is refused."""
    names = ["Ana Arp", "Bea Bok", "Cid Cob"][:size]
    columns: dict[str, object] = {
        "cell": [f"c{at}" for at in range(len(replies))],
        "name": "Ana Arp / Bea Bok",
        "template": "t1",
        "repetition": range(len(replies)),
        "reply": replies,
        "refused": [reply is not None and "can't help" in reply for reply in replies],
    }
    for at, name in enumerate(names, start=1):
        columns |= {f"group_{at}": "abc"[at - 1], f"name_{at}": name}
    return pd.DataFrame(columns)


def test_between_two() -> None:
    """One row a trial; both and neither are no preference, what cannot be read is missing and says
    so.
    """
    table = choice_columns(frame(), 2)
    assert table["chosen"].tolist() == ["a", "b", "neither", "neither", None, None, None, None]
    assert table["choice"].tolist() == [
        "chosen", "chosen", "neither", "both", "unlisted", "unparsed", "unparsed", "refused",
    ]  # fmt: skip
    assert (table["first"].iloc[0], table["second_name"].iloc[0]) == ("a", "Bea Bok")
    assert "group_1" not in table


def test_the_analysis_counts_each_kind() -> None:
    """Neither, refused and unparsed replies are reported for each group, not dropped."""
    finding = analyze_preference(choice_columns(frame(), 2), by="group")
    beside = finding.pairs[0].statistics
    assert (beside["neither"], beside["unscored"], beside["refused"]) == (2, 3, 1)


def test_candidates_without_names() -> None:
    table = frame(["Candidate B", "A"])
    table["name_1"] = table["name_2"] = None
    assert choice_columns(table, 2)["chosen"].tolist() == ["b", "a"]


def test_among_three() -> None:
    """One row a candidate of a trial, with its position; a trial without a choice has no winner."""
    table = choice_columns(frame(["Cid Cob", "Well."], 3), 3)
    assert len(table) == 6
    assert table["group"].tolist() == ["a", "b", "c"] * 2
    assert table["candidate"].tolist() == ["Ana Arp", "Bea Bok", "Cid Cob"] * 2
    assert table["position"].tolist() == [1, 2, 3] * 2
    assert table["chosen"].tolist() == [False, False, True, False, False, False]
    assert table["choice"].tolist() == ["chosen"] * 3 + ["unparsed"] * 3
    assert table["trial"].nunique() == 2


def test_rankings() -> None:
    """Ranks by candidate; missing for the whole trial where not all are ranked."""
    table = choice_columns(
        frame(["1. Cid Cob\n2. Ana Arp\n3. Bea Bok", "Cid Cob"], 3), 3, ranking=True
    )
    assert table["rank"].tolist()[:3] == [2.0, 3.0, 1.0]
    assert table["rank"].isna().tolist()[3:] == [True] * 3
    assert table["chosen"].tolist() == [False, False, True, False, False, False]


def test_what_travels_with_the_table_stays() -> None:
    """The design in attrs survives, also where rows are repeated."""
    for size, ranking in ((2, False), (3, False), (3, True)):
        table = frame(["Ana Arp"], size)
        table.attrs["pytest_fairness"] = {"endpoint": "x"}
        assert choice_columns(table, size, ranking=ranking).attrs == {
            "pytest_fairness": {"endpoint": "x"}
        }
