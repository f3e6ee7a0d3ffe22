"""The words that follow a group: found where planted, not invented where none is, and never the
names themselves.
"""

from __future__ import annotations

import pandas as pd
import pytest

from pytest_fairness import FairnessError, UsageError, analyze_words
from pytest_fairness.analysis.word_use import word_differences
from pytest_fairness.endpoints import simulated_endpoint

SURNAMES = [f"Q{first}{second}" for first in "abcdefgh" for second in "abcdefgh"]


def letters(planted: bool) -> pd.DataFrame:
    model = simulated_endpoint(seed=4)
    rows = []
    for number in range(60):
        group, name = (("women", f"Anna {SURNAMES[number]}"), ("men", f"Otto {SURNAMES[number]}"))[
            number % 2
        ]
        extra = " She is nurturing." if planted and group == "women" and number % 3 else ""
        text = model.complete(f"Write a short job reference for candidate {number}.")
        rows.append((group, name, f"{name}: {text}{extra}"))
    return pd.DataFrame(rows, columns=["gender", "name", "reply"])


def test_a_planted_word_comes_first() -> None:
    table = analyze_words(letters(planted=True), "gender")
    first = table.iloc[0]
    assert first["word"] in ("nurturing", "she")
    assert (first["group_1"], first["group_2"]) == ("men", "women")
    nurturing = table[table["word"] == "nurturing"].iloc[0]
    assert nurturing["documents_1"] == 0
    assert nurturing["share_2"] == pytest.approx(20 / 30)
    assert nurturing["effect"] < -1
    assert nurturing["p_value"] < nurturing["q_value"] < 0.01


def test_nothing_planted_nothing_sure_and_names_are_no_words() -> None:
    frame = letters(planted=False)
    table = analyze_words(frame, "gender")
    assert len(table) > 20
    assert (table["q_value"] > 0.01).all()
    words = set(analyze_words(frame, "gender", least_documents=1)["word"])
    assert words.isdisjoint({"person", "anna", "otto", *(surname.lower() for surname in SURNAMES)})


def test_a_word_counts_once_a_document() -> None:
    """One talkative reply is one document, however often it repeats itself."""
    bunch = ["great " * 50] + ["fine"] * 29
    great = word_differences(bunch, ["fine"] * 30, least_documents=1).set_index("word").loc["great"]
    assert (great.documents_1, great.count_1) == (1, 50)
    assert great.p_value == pytest.approx(1.0)


def test_nothing_to_compare() -> None:
    """One group, a column that there is not, groups without common words."""
    frame = pd.DataFrame({"g": ["a", "b"], "reply": ["one", "two"]})
    assert analyze_words(frame, "g").empty
    with pytest.raises(UsageError, match="only 1"):
        analyze_words(frame[:1], "g")
    with pytest.raises(FairnessError, match="'class'"):
        analyze_words(frame, "class")
