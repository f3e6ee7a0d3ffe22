"""The table of trials: which columns it has, and what stands in them."""

from __future__ import annotations

import pytest

from .conftest import Run

NAMES = """
import pytest
from pytest_fairness.design.personas import PersonaMatrix

PEOPLE = PersonaMatrix.load()[:3]

@pytest.fixture
def endpoint():
    return lambda prompt: "7"

@pytest.mark.fairness_grid(
    template="Rate {name}.", groups={"race_ethnicity": ["white", "asian"]}, names=4, repetitions=1)
def test_from_the_bank(trials):
    assert list(trials.columns[:6]) == ["cell", "template", "name", "persona", "first_name", "last_name"]
    assert (trials["first_name"] + " " + trials["last_name"] == trials["name"]).all()

@pytest.mark.fairness_grid(template="Rate {name}, {age}.", persona=PEOPLE, repetitions=1)
def test_personas(trials):
    assert set(zip(trials["first_name"], trials["last_name"])) == {(p.first_name, p.last_name) for p in PEOPLE}

@pytest.mark.fairness_grid(
    template="Rate {name}.", groups={"team": {"north": ["Ann", "Bo"], "south": ["Cy Fox", "Di Gray"]}}, repetitions=1)
def test_one_part(trials):
    assert trials.loc[trials["team"] == "north", ["first_name", "last_name"]].isna().all(axis=None)
    assert set(trials.loc[trials["team"] == "south", "last_name"]) == {"Fox", "Gray"}

@pytest.mark.fairness_grid(
    template="Rate somebody who {hobby}.", groups={"hobby": {"a": ["sails"], "b": ["rows"]}}, repetitions=1)
def test_nobody(trials):
    assert trials[["first_name", "last_name"]].isna().all(axis=None)

@pytest.mark.fairness_pairs(template="Pay for {name_1}?", candidates="four_groups", size=1, names=2, repetitions=2)
def test_one_at_a_time(trials):
    assert (trials["first_name"] + " " + trials["last_name"] == trials["candidate"]).all()

@pytest.mark.fairness_pairs(template="{name_1} or {name_2}?", candidates="four_groups", names=2, repetitions=2)
def test_a_choice_lists_whole_names(trials):
    assert all(" " in name for column in ("first_name", "second_name") for name in trials[column])
    assert "last_name" not in trials
"""


def test_a_row_has_the_parts_of_the_name(pytester: pytest.Pytester, run: Run) -> None:
    """Which first and last name a person has; None where the name has one part, or there is no name."""
    pytester.makepyfile(NAMES)
    run("-m", "fairness").assert_outcomes(passed=6)


ENDED_EARLY = """
import pytest

@pytest.fixture
def endpoint():
    def answer(messages):
        refuses = "Bo Day" in messages[-1]["content"]
        return "I'm sorry, but I can't help with that request." if refuses else "1. A\\n2. B"
    return answer

@pytest.mark.fairness_pairs(
    template="Who is better?\\n{candidates}", arms=["scrubbed"], repetitions=2,
    candidates={"a": ["Ann Lee", "Bo Day"], "b": ["Cy Fox", "Di Gray"]})
def test_it(trials):
    assert not trials["prompt"].str.contains("{text}", regex=False).any()
    ended = trials[trials["refused"]]
    assert len(ended) == 2
    assert set(ended["requests"]) == {1}
    assert ended["prompt"].str.contains("Bo Day").all()
    assert set(trials.loc[~trials["refused"], "requests"]) == {2}
    assert not trials.loc[~trials["refused"], "prompt"].str.contains("Ann Lee").any()
"""


def test_the_prompt_of_an_arm_that_ended_early_is_what_was_sent(pytester: pytest.Pytester, run: Run) -> None:
    """A refusal to scrub ends the trial: the evaluator's prompt, with the place for a text, was never sent."""
    pytester.makepyfile(ENDED_EARLY)
    run("-m", "fairness").assert_outcomes(passed=1)
