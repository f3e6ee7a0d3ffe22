"""The public assertions: the arguments of their analyses, every one of them handed on."""

from __future__ import annotations

import contextvars
import functools
import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
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
#: The assertion whose analysis gives several findings, of which it returns the worst.
ALL_TWINS = {**TWINS, "assert_equal_error_rates": "analyze_error_rates"}


def parameters(name: str) -> dict[str, inspect.Parameter]:
    """The parameters of a public function, without those of the second look, which begin with an
    underscore.
    """
    signature = inspect.signature(getattr(pytest_fairness, name))
    return {
        name: parameter
        for name, parameter in signature.parameters.items()
        if not name.startswith("_")
    }


def outside_the_session(assertion: Callable[..., Finding], *args: Any, **kwargs: Any) -> Finding:
    """Call *assertion* as outside pytest: its finding is none of this session's."""
    return contextvars.Context().run(lambda: assertion(*args, **kwargs))


@pytest.mark.parametrize(("assertion", "analysis"), ALL_TWINS.items(), ids=ALL_TWINS)
def test_an_assertion_has_the_signature_of_its_analysis(assertion: str, analysis: str) -> None:
    assert list(parameters(assertion).items()) == list(parameters(analysis).items())
    signature = inspect.signature(getattr(pytest_fairness, assertion))
    assert signature.return_annotation == "Finding"
    assert not any(name.startswith("_") for name in signature.parameters)
    if assertion in TWINS:
        analyze = getattr(pytest_fairness, analysis)
        assert inspect.signature(analyze).return_annotation in ("Finding", "model.Finding")


@pytest.mark.parametrize("assertion", ALL_TWINS)
def test_an_assertion_is_a_function_that_help_describes(assertion: str) -> None:
    function = getattr(pytest_fairness, assertion)
    assert inspect.isfunction(function)
    text = pydoc.plain(pydoc.render_doc(function))
    assert re.search(rf"{assertion}\(frame: '(?:pd.DataFrame|Any)', ", text)
    assert "    Assert that " in text
    assert f"def {assertion}(" in inspect.getsource(function)


def test_importing_an_assertion_imports_neither_numpy_nor_pandas() -> None:
    names = ", ".join([*ALL_TWINS, "assert_baseline"])
    program = (
        f"import sys; from pytest_fairness import {names}; "
        "print(sorted({'numpy', 'pandas', 'scipy'} & sys.modules.keys())); "
        f"import inspect; inspect.signature(assert_no_disparity); print('pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:2] == ["[]", "True"]


@pytest.mark.parametrize(
    ("call", "message"),
    {
        "missing": ("assert_no_disparity(0)", "missing a required argument: 'outcome'"),
        "misspelt": ("assert_no_disparity(0, outcom='a')", "got an unexpected keyword argument 'outcom'"),
        "keyword": ("assert_equivalent(0, 'a', 'b')", "missing a required argument: 'margin'"),
        "too many": ("assert_no_disparity(0, 'a', 'b', 'c')", "too many positional arguments"),
        "twice": ("assert_no_preference(0, 'a', by='b')", "multiple values for argument 'by'"),
        "internal": (
            "assert_equivalent(0, 'a', 'b', margin=1, _alarm_share=0)",
            "got an unexpected keyword argument '_alarm_share'",
        ),
    }.values(),
)  # fmt: skip
def test_a_wrong_call_is_a_type_error_of_the_assertion(call: str, message: str) -> None:
    name = call.partition("(")[0]
    with pytest.raises(TypeError, match=re.escape(f"{name}() {message}")):
        eval(call, vars(pytest_fairness) | {name: getattr(pytest_fairness, name)})


WRONG_CALL: tuple[type[Exception], dict[str, Any]] = (TypeError, {"outcom": "hired"})
UNKNOWN_OUTCOME = (pytest_fairness.UsageError, {"outcome": "hird", "by": "race"})
FAILING = (pytest_fairness.FairnessFailure, {"outcome": "hired", "by": "race", "cluster": None})


@pytest.mark.parametrize(
    ("error", "arguments"),
    [WRONG_CALL, UNKNOWN_OUTCOME, FAILING],
    ids=["wrong call", "unknown outcome", "failing"],
)
def test_pytest_shows_the_line_of_the_test_and_no_frame_of_the_assertion(
    error: type[Exception], arguments: dict[str, Any]
) -> None:
    frame = pd.DataFrame({"hired": [True] * 200 + [False] * 200, "race": ["a"] * 200 + ["b"] * 200})
    with pytest.raises(error) as caught:
        outside_the_session(pytest_fairness.assert_four_fifths, frame, **arguments)
    shown = caught.traceback.filter(caught)
    assert {entry.path for entry in shown} == {Path(__file__)}
    assert len(caught.traceback) > 1


def test_an_undecided_finding_warns_at_the_line_of_the_test() -> None:
    scores = np.random.default_rng(1).normal(size=80)
    frame = pd.DataFrame({"score": scores, "race": ["a", "b"] * 40})
    judge = functools.partial(
        outside_the_session,
        pytest_fairness.assert_no_disparity,
        by="race",
        frame=frame,
        cluster=None,
        block=None,
    )
    for outcome in ("score", ["score"]):
        with pytest.warns(pytest_fairness.InconclusiveWarning) as warnings:
            judge(outcome=outcome)
        assert [warning.filename for warning in warnings] == [__file__]


@pytest.mark.parametrize(("assertion", "analysis"), TWINS.items(), ids=TWINS)
def test_every_argument_reaches_the_analysis(
    assertion: str, analysis: str, monkeypatch: pytest.MonkeyPatch, passing: Finding
) -> None:
    function = getattr(pytest_fairness, analysis)
    received: dict[str, Any] = {}

    @functools.wraps(function)
    def record(*args: Any, **kwargs: Any) -> Finding:
        received.update(inspect.signature(function).bind(*args, **kwargs).arguments)
        return passing

    monkeypatch.setattr(import_module(function.__module__), analysis, record)
    given: dict[str, Any] = {name: object() for name in parameters(assertion)}
    given |= {"within": None} if "within" in given else {}  # with strata there are two analyses
    given["frame"] = pd.DataFrame({"score": [1.0, 2.0]})
    given |= {"outcome": "score", "scorers": None} if "outcome" in given else {}
    getattr(pytest_fairness, assertion)(**given)
    assert received.keys() == given.keys()
    assert all(received[name] is given[name] for name in given if name != "outcome")
    if "outcome" in given:  # read once, before the analysis
        assert received["outcome"].values.tolist() == [1.0, 2.0]


def test_several_outcomes_are_for_the_assertion(passing: Finding) -> None:
    frame = pd.DataFrame({"score": [1.0, 2.0], "race": ["a", "b"]})
    with pytest.raises(pytest_fairness.UsageError, match="analyze_outcomes compares several"):
        pytest_fairness.analyze_disparity(frame, ["score"], "race")


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
