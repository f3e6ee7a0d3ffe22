"""What authors of endpoints, scorers and suites are given for their own tests."""

from __future__ import annotations

import pytest

from pytest_fairness import Verdict, analyze_disparity, analyze_four_fifths, analyze_preference
from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Request
from pytest_fairness.testing import (
    ScriptedEndpoint,
    ask,
    check_baseline_life_cycle,
    choices_frame,
    decisions_frame,
    scores_frame,
)

LETTERS = """
import json, pathlib
import pandas as pd, pytest
from pytest_fairness import assert_baseline

@pytest.mark.fairness
def test_letters():
    low = json.loads(pathlib.Path("score.json").read_text())
    rows = [(f"p{person}", low + person % 5 + repetition) for person in range(20) for repetition in range(3)]
    assert_baseline(pd.DataFrame(rows, columns=["persona", "letters"]), score="letters")
"""


def test_a_scripted_endpoint_answers_by_its_script() -> None:
    endpoint = ScriptedEndpoint(
        lambda request: "7" if "Ann" in request.messages[-1].content else "3", seed=5
    )
    assert ask(endpoint, "Rate Ann.").text == "7"
    assert ask(endpoint, "Rate Ann.", "7", "And Bo?", repetition=2).text == "3"
    assert [(len(request.messages), request.repetition) for request in endpoint.requests] == [
        (1, 0),
        (3, 2),
    ]
    assert endpoint.closed
    assert endpoint.default_parameters == {"seed": 5}

    def overloaded(_request: Request) -> str:
        raise AttemptError("overloaded", evidence=Evidence.THROTTLED)

    with pytest.raises(AttemptError, match="overloaded"):
        ask(ScriptedEndpoint(overloaded))


def test_frames_have_the_disparity_they_are_made_with() -> None:
    assert (
        analyze_disparity(scores_frame({"a": 0, "b": 0}), "score", "group").verdict is Verdict.PASS
    )
    found = analyze_disparity(scores_frame({"a": 0, "b": -1}), "score", "group")
    assert (found.verdict, found.pairs[0].worse_off) == (Verdict.FAIL, "b")
    decisions = decisions_frame({"a": 100, "b": 20})
    assert analyze_four_fifths(decisions, "hired", "group", cluster=None).verdict is Verdict.FAIL
    assert (
        analyze_preference(choices_frame(140), cluster=None, block=None).pairs[0].worse_off == "b"
    )


def test_the_life_of_a_baseline(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    score = pytester.path / "score.json"
    score.write_text("80")
    pytester.makepyfile(LETTERS)
    check_baseline_life_cycle(pytester, lambda: score.write_text("60"), monkeypatch=monkeypatch)


def test_a_baseline_that_nothing_makes_fall_is_found_out(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.path.joinpath("score.json").write_text("80")
    pytester.makepyfile(LETTERS)
    with pytest.raises(AssertionError):
        check_baseline_life_cycle(pytester, lambda: None, monkeypatch=monkeypatch)
