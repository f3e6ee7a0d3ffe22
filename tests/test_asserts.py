"""The public assertions: the arguments of their analyses, every one of them handed on."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pandas as pd
import pytest

import pytest_fairness
from pytest_fairness.model import Finding

TWINS = {
    "assert_no_disparity": "analyze_disparity",
    "assert_four_fifths": "analyze_four_fifths",
    "assert_no_preference": "analyze_preference",
    "assert_equivalent": "analyze_equivalence",
    "assert_arm_reduces_disparity": "analyze_arms",
}
#: What the second look alone asks for.
INTERNAL = {"alarm_share"}


def parameters(name: str) -> dict[str, tuple[Any, Any]]:
    """Kind and default of each parameter of a public function."""
    found = inspect.signature(getattr(pytest_fairness, name)).parameters
    return {key: (one.kind, one.default) for key, one in found.items() if key not in INTERNAL}


@pytest.mark.parametrize(("assertion", "analysis"), TWINS.items(), ids=TWINS)
def test_an_assertion_has_the_signature_of_its_analysis(assertion: str, analysis: str) -> None:
    assert parameters(assertion) == parameters(analysis)
    assert not any(
        kind is inspect.Parameter.VAR_KEYWORD for kind, _ in parameters(assertion).values()
    )


@pytest.mark.parametrize(("assertion", "analysis"), TWINS.items(), ids=TWINS)
def test_every_argument_reaches_the_analysis(
    assertion: str, analysis: str, monkeypatch: pytest.MonkeyPatch, passing: Finding
) -> None:
    function = getattr(pytest_fairness, analysis)
    received: dict[str, Any] = {}

    def record(*args: Any, **kwargs: Any) -> Finding:
        received.update(inspect.signature(function).bind(*args, **kwargs).arguments)
        return passing

    monkeypatch.setattr(import_module(function.__module__), analysis, record)
    given: dict[str, Any] = {name: object() for name in parameters(assertion)}
    given["frame"] = pd.DataFrame({"score": [1.0, 2.0]})
    given |= {"outcome": "score", "scorers": None} if "outcome" in given else {}
    getattr(pytest_fairness, assertion)(**given)
    assert received.keys() == given.keys()
    assert all(received[name] is given[name] for name in given if name != "outcome")
    if "outcome" in given:  # read once, before the analysis
        assert received["outcome"].values.tolist() == [1.0, 2.0]


def test_the_baseline_takes_what_its_comparison_does() -> None:
    """What the scorer and the table say (the scale, the unit) is not asked for twice."""
    comparison, ours = parameters("compare_baseline"), parameters("assert_baseline")
    shared = {"alpha", "margin_overall", "margin_category", "threshold"}
    assert {name: ours[name] for name in shared} == {name: comparison[name] for name in shared}


@pytest.fixture(scope="module")
def passing() -> Finding:
    frame = pd.DataFrame({"hired": [True] * 200, "race": ["a", "b"] * 100})
    return pytest_fairness.analyze_four_fifths(frame, "hired", "race", cluster=None)


def test_a_finding_is_neither_true_nor_false(passing: Finding) -> None:
    """``assert analyze_disparity(…)`` would always hold. What says which finding there is stays
    possible.
    """
    with pytest.raises(TypeError, match=r"this one is PASS: compare finding\.verdict"):
        assert passing
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(passing)
    assert passing is not None
    assert [passing] == [passing]
