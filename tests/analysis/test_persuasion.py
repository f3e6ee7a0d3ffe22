"""The verdict on an outcome with the trials that a strategy persuaded, and without them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pytest_fairness import Verdict, analyze_disparity
from pytest_fairness.model import OutcomeKind

NAMES, TEMPLATES = 20, 6


def trials(persuaded: float, of: str = "female", shift: float = 0.0) -> pd.DataFrame:
    """Ratings of two groups of 20 names by 6 templates; a share of one group *of* them is answered only
    after a strategy, *shift* points lower.
    """

    def rows() -> Iterator[dict[str, Any]]:
        random = np.random.default_rng(3)
        for group in ("female", "male"):
            for name in range(NAMES):
                for template in range(TEMPLATES):
                    declined = group == of and random.random() < persuaded
                    rating = 6 + random.normal() - shift * declined
                    yield {
                        "gender": group,
                        "name": f"{group} {name}",
                        "template": f"t{template}",
                        "rating": float(rating),
                        "refused": False,
                        "status": "answered",
                        "refused_first": declined,
                        "strategy": "authority_framing" if declined else "direct",
                    }

    return pd.DataFrame(rows())


def test_both_verdicts_stand_in_the_finding_and_change_nothing() -> None:
    """All are rated alike in the end; whoever asks once has half of the women refused."""
    frame = trials(0.5)
    finding = analyze_disparity(frame, "rating", "gender")
    persuaded = int(frame["refused_first"].sum())
    facts: Any = finding.details["persuasion"]
    assert facts["trials"] == persuaded
    assert facts["strategies"] == {"authority_framing": persuaded}
    assert facts["with"]["verdict"] == "PASS"
    assert facts["without"]["verdict"] == "FAIL"
    # The verdict is that of first refusals.
    assert finding.verdict is Verdict.FAIL
    raised = {pair.metric for pair in finding.pairs if pair.verdict is Verdict.FAIL}
    assert raised == {"refusal at first"}
    (note,) = (note for note in finding.notes if note.startswith("on rating itself"))
    assert f"with the {persuaded} trials answered only after a strategy PASS (d " in note
    assert "without them FAIL (d " in note


def test_without_them_is_the_analysis_of_a_system_that_was_asked_once() -> None:
    frame = trials(0.3, shift=2)
    finding = analyze_disparity(frame, "rating", "gender")
    once = frame.assign(refused=frame["refused_first"])
    once.loc[once["refused"], "status"] = "refused"
    (pair,) = (
        pair
        for pair in analyze_disparity(once, "rating", "gender").pairs
        if pair.metric == "rating"
    )
    facts: Any = finding.details["persuasion"]
    assert facts["without"]["verdict"] == str(pair.verdict)
    assert facts["without"]["effect"] == pytest.approx(pair.effect)


def test_nothing_is_said_where_nobody_was_persuaded() -> None:
    finding = analyze_disparity(trials(0), "rating", "gender")
    assert "persuasion" not in finding.details
    assert not [note for note in finding.notes if "after a strategy" in note]


def test_refusals_without_persuasion_are_the_first_ones() -> None:
    """Also where the outcome is the refusal itself, and a whole group was persuaded."""
    finding = analyze_disparity(trials(1.0), "refused", "gender")
    assert finding.kind is OutcomeKind.REFUSAL
    facts: Any = finding.details["persuasion"]
    assert facts["without"]["verdict"] == "FAIL"
    everybody = analyze_disparity(trials(1.0), "rating", "gender")
    of_everybody: Any = everybody.details["persuasion"]
    assert of_everybody["without"]["verdict"] in ("INCONCLUSIVE", "FAIL")
