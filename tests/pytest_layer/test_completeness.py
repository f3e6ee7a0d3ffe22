"""No fairness test gets lost on its way to the controller: hostile text crosses, and what does not
is missed.
"""

from __future__ import annotations

import pytest

from tests.conftest import MODES

from .conftest import GRID, Project

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


@pytest.mark.parametrize("mode", MODES)
def test_hostile_text_is_shown_escaped(project: Project, mode: str) -> None:
    """A lone surrogate in a message, log record, property, warning or reason loses no test, and no
    control code of a reply reaches the terminal or JUnit's file."""
    project.write(HOSTILE)
    options = ("--junitxml=junit.xml", "-o", "junit_family=legacy", "-rA")
    result = project.run(*options, mode=MODES[mode], apart=True)
    result.assert_outcomes(failed=3, passed=2, skipped=1, xfailed=1, warnings=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    printed = result.stdout.str()
    assert "\\ud800 torn, \\x1b[2J cleared, \\u202e turned" in printed
    assert not {"\x1b", "\u202e", "\ud800"} & set(printed)
    properties = project.path.joinpath("junit.xml").read_text(encoding="utf-8")
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


def test_a_test_that_vanished_fails_the_session(project: Project) -> None:
    """xdist itself exits 0 where a report could not be sent; with a fairness test in it, the
    session is red and names the test: when not one report of a fairness test has come, too."""
    project.write(GRID, conftest=UNSENDABLE)
    result = project.run("-v", mode=MODES["n2"])
    assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert "never finished: test_suite.py::test_tone" in result.stdout.str()
    assert project.results["missing"] == ["test_suite.py::test_tone"]
