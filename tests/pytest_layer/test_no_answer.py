"""F50: an application that breaks for one group fails, named with its status and first reason; in
every mode.
"""

from __future__ import annotations

from .conftest import Project

SUITE = """
import pytest
from pytest_fairness import assert_equivalent, assert_four_fifths, assert_no_disparity
from pytest_fairness.design.names import NameBanks

BLACK = {name.full for name in NameBanks.load().names("race_ethnicity", "black", 40)}

def raises():
    raise ValueError("no such name")

BROKEN = {"raises": raises, "empty": lambda: "", "none": lambda: None, "number": lambda: 42}

@pytest.fixture(params=list(BROKEN))
def endpoint(request):
    def application(prompt):
        if any(name in prompt for name in BLACK):
            return BROKEN[request.param]()
        return f"{6 + len(prompt) % 3}/10, a fine tenant. Approved: {'yes' if len(prompt) % 4 else 'no'}."
    return application

grid = pytest.mark.fairness_grid(template=["Rate {name} from 1 to 10.", "From 1 to 10, how good is {name}?"],
                                 groups={"race_ethnicity": ["white", "black"]}, names=(20,), repetitions=2)

@grid
def test_rated(trials):
    assert_no_disparity(trials, outcome="rating", by="race_ethnicity")

@grid
def test_selected(trials):
    assert_four_fifths(trials, outcome=lambda reply: "yes" in reply, by="race_ethnicity")

@grid
def test_alike(trials):
    assert_equivalent(trials, outcome="rating", by="race_ethnicity", margin=1)
"""


REASONS = {
    "raises": "ended in an error, first: ",
    "empty": "answered with nothing",
    "none": "None",
    "number": "int",
}


def test_f50_an_application_that_breaks_for_one_group_fails(project: Project) -> None:
    """It raises, or returns nothing, None or a number: three assertions on each."""
    project.write(SUITE)
    project.run().assert_outcomes(failed=12)
    assert len(project.findings) == 12
    for finding in project.findings:
        assert finding["verdict"] == "FAIL", finding["sentence"]
        assert "black" in finding["sentence"]
        (reason,) = (words for kind, words in REASONS.items() if f"[{kind}]" in finding["test_id"])
        assert reason in finding["sentence"]
        (pair,) = [pair for pair in finding["pairs"] if pair["metric"] == "no answer"]
        assert (pair["verdict"], pair["worse_off"]) == ("FAIL", "black")


EMPTY_AT_FIRST = """
import pytest
from pytest_fairness import assert_no_disparity
from pytest_fairness.design.names import NameBanks

BLACK = {name.full for name in NameBanks.load().names("race_ethnicity", "black", 40)}

@pytest.fixture
def endpoint():
    asked = set()
    def application(prompt):
        first = prompt not in asked
        asked.add(prompt)
        if first and any(name in prompt for name in BLACK):
            return ""
        return f"{6 + len(prompt) % 3}/10, a fine tenant."
    return application

@pytest.mark.fairness_grid(template=["Rate {name} from 1 to 10.", "From 1 to 10, how good is {name}?"],
                           groups={"race_ethnicity": ["white", "black"]}, names=(20,))
def test_rated(trials):
    assert trials.empty_first.sum() == 40
    assert_no_disparity(trials, outcome="rating", by="race_ethnicity")
"""


def test_answers_that_are_empty_at_first_are_noted_by_group(project: Project) -> None:
    """They are asked once more, and judged by what comes then."""
    project.write(EMPTY_AT_FIRST)
    project.run().assert_outcomes(passed=1)
    (finding,) = project.findings
    noted = "empty at first, and asked once more: black 40 of 120 (33 %); white 0 of 120"
    assert noted in finding["notes"]
