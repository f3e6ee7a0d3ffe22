"""A design for each protected class, the labels of a test, and running some of them by id and by
class.
"""

from __future__ import annotations

import json

import pytest

SUITE = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness(module="iso42001-bias", controls={"A.5.5": "direct"})
@pytest.mark.fairness_grid(
    template="Rate {name} from 1 to 10.", names=8, repetitions=1, system="You rate.", temperatures=["default", 0.0],
    each={
        "race_ethnicity": {"id": "BIAS-ATTR-001", "groups": {"race_ethnicity": ["white", "black"]}},
        "gender": {"id": "BIAS-ATTR-002", "groups": {"gender": ["female", "male"]}, "names": 6},
    },
)
def test_rating(trials, fairness_protected_class):
    groups = {"race_ethnicity": {"white", "black"}, "gender": {"female", "male"}}
    assert set(trials[fairness_protected_class]) == groups[fairness_protected_class]
    assert len(trials) == {"race_ethnicity": 16, "gender": 12}[fairness_protected_class]
    assert_no_disparity(trials, outcome="rating", by=fairness_protected_class)

@pytest.mark.fairness(id="OWN-1")
def test_own():
    pass

def test_other():
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_it=SUITE)
    return pytester


def test_an_item_a_class_and_each_by_its_id(suite: pytest.Pytester, mode: list[str]) -> None:
    result = suite.runpytest_subprocess(*mode, "--fairness-tier=all", "--fairness-test=BIAS-ATTR-*")
    result.assert_outcomes(failed=8, **({} if mode[-1] == "-n2" else {"deselected": 2}))
    (run,) = (suite.path / ".fairness" / "runs").glob("20*/findings.json")
    findings = json.loads(run.read_text(encoding="utf-8"))["findings"]
    assert sorted((one["test_id"], one["protected_class"]) for one in findings) == sorted(
        [("BIAS-ATTR-001", "race_ethnicity"), ("BIAS-ATTR-002", "gender")] * 4
    )
    assert {one["test_module"] for one in findings} == {"iso42001-bias"}
    # What a simulated endpoint answers is evidence of no system.
    assert {json.dumps(one["controls"]) for one in findings} == {'{"A.5.5": "context"}'}
    nodeids = {one["nodeid"].partition("[")[2] for one in findings}
    assert "gender-tier2-t-0]" in nodeids
    assert len(nodeids) == 8


def test_one_test_one_class(suite: pytest.Pytester) -> None:
    def run(*arguments: str) -> pytest.RunResult:
        return suite.runpytest_inprocess("--collect-only", "-q", *arguments)

    run("--fairness-protected-class=gender").stdout.fnmatch_lines(
        ["test_it.py::test_rating?gender-t-default?", "*2/6 tests*"]
    )
    run("--fairness-test=OWN-1").stdout.fnmatch_lines(["test_it.py::test_own", "*1/6 tests*"])
    both = run("--fairness-test=BIAS-ATTR-002", "--fairness-test", "OWN-1")
    both.stdout.fnmatch_lines(
        ["test_it.py::test_rating?gender-t-default?", "test_it.py::test_own", "*3/6 tests*"]
    )
    classes = run("--fairness-protected-class=gender", "--fairness-protected-class=race_ethnicity")
    classes.stdout.fnmatch_lines(["*4/6 tests*"])
    for arguments, message in (
        (
            ["--fairness-test=BIAS-ATTR-009"],
            "*--fairness-test: no test collected here has 'BIAS-ATTR-009'; there are: *OWN-1*",
        ),
        (
            ["--fairness-test=OWN-1", "--fairness-protected-class=age"],
            "*--fairness-protected-class: no test*'age'*",
        ),
    ):
        result = run(*arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([message])


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        (
            "@pytest.mark.fairness_grid(template='Rate {name}', each={'gender': {}})",
            "*has no groups of 'gender'*",
        ),
        (
            "@pytest.mark.fairness_grid(template='Rate {name}', each=['gender'])",
            "*each= is a mapping*",
        ),
        (
            "@pytest.mark.fairness_grid(template='Rate {name}', each={"
            "'gender': {'groups': {'gender': ['female', 'male']}}, "
            "'age': {'groups': {'age': ['older', 'younger']}, 'system': 'You rate.'}})",
            "*all designs of a test have a system prompt or none*",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    pytester: pytest.Pytester, marks: str, message: str
) -> None:
    pytester.makepyfile(f"import pytest\n{marks}\ndef test_it(trials):\n    pass\n")
    result = pytester.runpytest_inprocess()
    assert result.ret != 0
    result.stdout.fnmatch_lines([message])


@pytest.mark.parametrize(
    ("controls", "message"),
    [
        ("{'A.5.9': 'direct'}", "*'A.5.9'*none of*"),
        ("{'A.5.4': 'strong'}", "*'strong': direct, supporting, context*"),
    ],
)
def test_unknown_controls_are_refused(
    pytester: pytest.Pytester, controls: str, message: str
) -> None:
    pytester.makepyfile(
        f"import pytest\n@pytest.mark.fairness(controls={controls})\ndef test_it():\n    pass\n"
    )
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


@pytest.mark.parametrize("alpha", ["", "alpha=0.05"])
def test_the_tests_of_a_suite_share_the_level_of_the_session(
    suite: pytest.Pytester, alpha: str
) -> None:
    """Whatever level is declared: alarms turn a session of a fair system red with a chance of at
    most 5 %, so that nothing is announced.
    """
    suite.makepyfile(
        test_it=SUITE.replace(
            'module="iso42001-bias"', f'module="iso42001-bias", {alpha}'.rstrip(", ")
        )
    )
    result = suite.runpytest_inprocess("--fairness-test=BIAS-ATTR-*")
    assert "findings" in result.stdout.str()
    assert "red with a chance" not in result.stdout.str()


def test_a_level_that_is_none(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=SUITE.replace('module="iso42001-bias"', "alpha=5"))
    suite.runpytest_inprocess().stderr.fnmatch_lines(["*alpha=5 is no level*"])


TWO = """
import pytest

@pytest.mark.fairness(id="HIRE-1")
@pytest.mark.fairness_grid(
    template="Rate {name}.", groups={"gender": ["female", "male"]}, names=3, repetitions=1
)
def test_first(trials):
    assert len(trials) == 6

@pytest.mark.fairness(id="HIRE-2")
@pytest.mark.fairness_grid(
    template="Rate TEXT.", groups={"gender": ["female", "male"]}, names=3, repetitions=1
)
def test_second(trials):
    assert len(trials) == 6
"""
RENAMED = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items[1].add_marker(pytest.mark.fairness(id="HIRE-3"), append=False)
"""


def test_a_design_that_is_left_out_is_not_drawn(pytester: pytest.Pytester, mode: list[str]) -> None:
    """A test that is not named needs no design that makes sense; one that is named does."""
    pytester.makepyfile(test_it=TWO.replace("TEXT", "somebody"))
    pytester.runpytest_subprocess(*mode, "--fairness-test=HIRE-1").assert_outcomes(
        passed=1, **({} if mode[-1] == "-n2" else {"deselected": 1})
    )
    for arguments in ([], ["--fairness-test=HIRE-*"], ["--fairness-test=HIRE-2"]):
        refused = pytester.runpytest_subprocess(*mode, *arguments)
        assert "test_it.py::test_second: template 't1' has no slot for the name" in str(
            refused.stdout
        )
        assert refused.parseoutcomes().keys() == {"errors"}


def test_a_test_that_a_hook_gives_its_id_is_drawn(
    pytester: pytest.Pytester, mode: list[str]
) -> None:
    """Its markers say that it is left out, when its items are made."""
    pytester.makepyfile(test_it=TWO.replace("TEXT", "{name}"), conftest=RENAMED)
    result = pytester.runpytest_subprocess(*mode, "--fairness-test=HIRE-3", "-v")
    result.stdout.fnmatch_lines(
        ["*test_second*PASSED*" if mode[-1] != "-n2" else "*PASSED*second*"]
    )
