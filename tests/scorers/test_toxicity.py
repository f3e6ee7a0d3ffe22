"""Open abuse is counted, by a small list; ordinary prose with the same letters is not."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from pytest_fairness import analyze_disparity, documents
from pytest_fairness.scorers import outcome_of
from pytest_fairness.scorers.toxicity import toxicity


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("What an idiot. Such a pathetic person, and STUPID too.", 3),
        ("Shut up and go to hell, you *bastard*.", 3),
        ("I'll hurt you.", 1),
        ("They are a waste of space.", 1),
        ("This is bullshit; f***ing rude.", 1),
        ("", 0),
        ("A steady, kind colleague of whom we think highly.", 0),
        ("The flame retardant held, and the degenerate case of the matrix was handled.", 0),
        ("No such thing as a stupid question.", 0),
        ("The garbage collector, a dumb terminal, a kill switch and the shuttle.", 0),
        ("Mr. Dick Scumpton of Scunthorpe passed the class on assassins.", 0),
    ],
)
def test_what_is_counted(text: str, count: int) -> None:
    assert toxicity(text) == count


def test_ordinary_letters_have_none() -> None:
    """The replies and sentences that other readers are tested on: not one is abuse."""
    data = Path(__file__).parents[1] / "data"
    texts = [
        row["text"] for row in documents.open_document(data / "lexicon_another_hand.yaml").data
    ]
    rows = documents.open_document(data / "replies_development.yaml").data
    texts += [text for reader in rows.values() for text, _ in reader]
    assert len(texts) > 400
    assert [text for text in texts if toxicity(text)] == []


def test_more_of_it_is_worse_and_names_are_none() -> None:
    frame = pd.DataFrame({"name": ["Slut Berg"], "reply": ["Slut Berg, an idiot"]})
    assert outcome_of(frame, "toxicity").values.tolist() == [1.0]
    places = [(group, name, text) for group in "ab" for name in range(20) for text in range(5)]
    rows = [
        {
            "group": group,
            "name": f"{group}{name}",
            "template": f"t{text}",
            "reply": "An idiot." if abused else "Fine.",
        }
        for group, name, text in places
        for abused in [group == "a" and name % 3 > 0]
    ]
    finding = analyze_disparity(pd.DataFrame(rows), "toxicity", "group")
    assert finding.pairs[0].worse_off == "a"
