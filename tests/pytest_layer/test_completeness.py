"""No fairness test gets lost on its way to the controller: hostile text crosses, and what does not is missed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import GRID, Run


@pytest.fixture
def run(run_apart: Run) -> Run:
    """Sessions here end processes, or must not share one with ours."""
    return run_apart


HOSTILE = r"""
import logging, warnings
import pytest

REPLY = "so \ud800 torn, \x1b[2J cleared, \u202e turned"

@pytest.mark.fairness
def test_message():
    assert REPLY == "", REPLY

@pytest.mark.fairness
def test_log_record():
    logging.getLogger("app").error(REPLY)
    print(REPLY.encode("utf-8", "replace").decode())
    assert False

@pytest.mark.fairness
def test_property(record_property):
    import numpy, pathlib
    record_property("reply", REPLY)
    record_property("score", numpy.float64(0.5))
    record_property("where", pathlib.Path("somewhere"))

@pytest.mark.fairness
def test_warning():
    warnings.warn(REPLY)

@pytest.mark.fairness
@pytest.mark.parametrize("reply", [REPLY])
def test_id(reply):
    raise ValueError(reply)

@pytest.mark.fairness
def test_skip():
    pytest.skip(REPLY)

@pytest.mark.fairness
@pytest.mark.xfail(reason=REPLY)
def test_xfail():
    assert REPLY == ""
"""


def test_hostile_text_is_told_escaped(pytester: pytest.Pytester, run: Run) -> None:
    """A lone surrogate in a message, log record, property, warning or reason loses no test, and no control code of a
    reply reaches the terminal or JUnit's file."""
    pytester.makepyfile(HOSTILE)
    result = run("--junitxml=junit.xml", "-o", "junit_family=legacy", "-rA")
    result.assert_outcomes(failed=3, passed=2, skipped=1, xfailed=1, warnings=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    shown = result.stdout.str()
    assert "\\ud800 torn, \\x1b[2J cleared, \\u202e turned" in shown
    assert not {"\x1b", "\u202e", "\ud800"} & set(shown)
    properties = pytester.path.joinpath("junit.xml").read_text(encoding="utf-8")
    assert 'value="so \\ud800 torn' in properties
    assert 'name="score" value="0.5"' in properties
    assert not {"\x1b", "\u202e"} & set(properties)


UNSENDABLE = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if item.name == "test_tone" and call.when == "call":
        report.cannot_cross = object()
    return report
"""


@pytest.mark.parametrize("others", [0, 1])
def test_a_test_that_vanished_fails_the_session(
    pytester: pytest.Pytester, last_run: Callable[[], Path], others: int
) -> None:
    """xdist itself exits 0 where a report could not be sent; with a fairness test in it, the session is red and names
    the test: alone in the session too, when not one report of a fairness test has come."""
    more = "\n".join(f"def test_other_{number}(): pass" for number in range(others))
    pytester.makepyfile(GRID + more)
    pytester.makeconftest(UNSENDABLE)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n2", "-v")
    assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert "never finished: test_a_test_that_vanished_fails_the_session.py::test_tone" in result.stdout.str()
    told = json.loads(last_run().joinpath("findings.json").read_text())
    assert told["missing"] == ["test_a_test_that_vanished_fails_the_session.py::test_tone"]
