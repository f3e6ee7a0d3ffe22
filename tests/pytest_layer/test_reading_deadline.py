"""The session's deadline is for reading replies, too: a scorer that takes too long ends in a clear
error.

The project's clock goes on by itself, so that no test waits for a deadline or is late for one.
"""

from __future__ import annotations

import pytest

from .conftest import Project, shown

CLOCK = """
import time
import types
import pytest

passed = 0.0

@pytest.fixture
def clock(monkeypatch):
    late = types.SimpleNamespace(monotonic=lambda: time.monotonic() + passed)
    monkeypatch.setattr("pytest_fairness.context.time", late)
    monkeypatch.setattr("pytest_fairness.running_test.time", late)

def take(seconds):
    global passed
    passed += seconds
"""

SLOW = """
import pytest
from conftest import take
from pytest_fairness import assert_no_disparity

@pytest.fixture
def endpoint():
    return lambda prompt: prompt

read = []

def slow(reply):
    take(100)
    read.append(reply)
    return len(reply)

@pytest.mark.fairness_grid(template="Rate {name}.", groups={"race_ethnicity": ["white", "black"]}, repetitions=2)
def test_slow(trials, clock):
    assert trials["status"].eq("answered").all()
    try:
        assert_no_disparity(trials, outcome=slow, by="race_ethnicity")
    finally:
        assert 2 < len(read) < 10
"""

CHOICES = """
import pytest
from conftest import take

@pytest.fixture
def slowly(clock, monkeypatch):
    import pytest_fairness.scorers.choice as choice
    fields = choice.fields_of
    monkeypatch.setattr(choice, "fields_of", lambda text: take(100) or fields(text))

@pytest.fixture
def endpoint(slowly):
    return lambda prompt: "1"


@pytest.mark.fairness_pairs(template="{name_1} or {name_2}?", candidates="four_groups", names=2, repetitions=2)
def test_choices(trials):
    raise RuntimeError("it was never read")
"""


@pytest.mark.parametrize(
    ("suite", "reader"), [(SLOW, "the scorer 'slow'"), (CHOICES, "the reader of choices")]
)
def test_f53_reading_stops_at_the_deadline(project: Project, suite: str, reader: str) -> None:
    """Hours of reading are cut off at the deadline of the session; the test is red and says why."""
    project.write(suite, conftest=CLOCK)
    result = project.run("-m", "fairness", "--fairness-deadline", "600")
    counts, text = result.parseoutcomes(), shown(result)
    assert counts.get("failed", 0) + counts.get("errors", 0) == 1, text
    assert counts.get("passed", 0) == 0
    assert f"the run's deadline passed before {reader} had read every reply" in text
    assert "never read" not in text


JUST = """
import time
import pytest
from conftest import take
from pytest_fairness import analyze_disparity
from pytest_fairness.errors import EndpointError
from pytest_fairness.pytest_layer.current_session import session_of

@pytest.fixture
def endpoint():
    return lambda prompt: prompt

@pytest.mark.fairness_grid(template="Rate {name}.", groups={"race_ethnicity": ["white", "black"]}, repetitions=2)
def test_it(trials, clock, request):
    session = session_of(request.config)
    take(session.context.started + 600 - time.monotonic() + 1)
    assert analyze_disparity(trials, "word_count", "race_ethnicity").n_per_group == {"white": 40, "black": 40}
    take(10)
    with pytest.raises(EndpointError, match="the run's deadline passed before the scorer 'char_count'"):
        analyze_disparity(trials, "char_count", "race_ethnicity")
    assert analyze_disparity(trials.assign(n=range(80)), "n", "race_ethnicity").n_per_group["white"] == 40
"""


def test_what_was_sent_by_the_deadline_is_still_read_for_a_moment(project: Project) -> None:
    """A deadline that passed while asking leaves a table, which is read within seconds; a column
    needs no reading.
    """
    project.write(JUST, conftest=CLOCK)
    project.run("-m", "fairness", "--fairness-deadline", "600").assert_outcomes(passed=1)


def test_without_a_deadline_reading_takes_its_time(project: Project) -> None:
    project.write(
        SLOW.replace("assert 2 < len(read) < 10", "assert len(read) == 80"), conftest=CLOCK
    )
    assert "the run's deadline" not in shown(project.run("-m", "fairness"))
