"""From a marker to items: what is collected, under which ids, and what a wrong grid is shown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable

import pytest

import pytest_fairness
from pytest_fairness.design.grid import GridDesign
from pytest_fairness.design.pairs import PairDesign

from . import test_foreign_sessions
from .conftest import Project

CELLS = """
import pytest

@pytest.mark.fairness_grid(
    template=["Write a short job reference for {name}, a nurse."],
    groups={"race_ethnicity": ["white", "black"]}, names=2, repetitions=2,
)
def test_every_reply(cell):
    assert cell.name in cell.prompt
    assert cell.reply == cell.replies[0]
    assert len(cell.replies) == 2
    assert cell.groups["race_ethnicity"] in ("white", "black")
"""


def test_asking_for_cell_makes_one_item_a_cell(project: Project) -> None:
    """Ids are plain and stable; one can be selected; ``-m fairness`` selects all of them, and
    nothing else.
    """
    project.write(CELLS + "\ndef test_other(): pass\n")
    ids = project.run("--collect-only", "-q").outlines[:4]
    assert ids == project.run("--collect-only", "-q").outlines[:4]
    inside = {line.split("[")[1].rstrip("]") for line in ids}
    assert len(inside) == 4
    assert set("".join(inside)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.-")
    project.run("-m", "fairness").assert_outcomes(passed=4)
    project.run(ids[2]).assert_outcomes(passed=1)


def test_a_grid_too_large_for_an_item_a_cell_is_refused_with_the_mend(
    pytester: pytest.Pytester,
) -> None:
    """A million items would take pytest gigabytes before the first of them runs."""
    large = """
        import pytest

        grid = dict(template="{name}, {a} {b}?", groups={"gender": ["female", "male"]}, names=(10,),
                    a=list(range(40)), b=list(range(40)))

        @pytest.mark.fairness_grid(**grid)
        def test_every_cell(cell): pass

        @pytest.mark.fairness_grid(**grid, sample=20)
        def test_some_cells(cell): pass

        @pytest.mark.fairness_grid(**grid)
        def test_all_at_once(trials): pass
        """
    pytester.makepyfile(large)
    result = pytester.runpytest("--collect-only", "-q")
    result.stdout.fnmatch_lines(
        [
            "*test_every_cell: would make 32,000 items, a cell each (at most 20,000): ask for "
            "'trials', *sample=*"
        ]
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    pytester.makepyfile(
        large.replace(
            "**grid)\n        def test_every_cell",
            "**grid, sample=40)\n        def test_every_cell",
        )
    )
    result = pytester.runpytest("--collect-only", "-q")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["61 tests collected*"])


RACE = "groups={'race_ethnicity': ['white', 'black']}"
TEAM = "template='Rate {name}.', groups={'g': {'a': ['Ana A'], 'b': ['Bea B']}}"
WRONG = {
    f"grid(template='Hello {{nmae}}', {RACE})": "nmae",
    "grid(template='Hello {name}', groups={'race_ethnicity': ['white', 'blakc']})": "blakc",
    "grid(template='Hello {name}', groups={'race_ethnicity': []})": "race_ethnicity",
    f"grid(template='Hello {{name}}', {RACE}, tone=['kind'])": "tone",
    f"grid(template='Hello {{name}}', {RACE}, context={{'job': ['nurse']}})": "job",
    f"grid(template='Hello', {RACE})": "name",
    f"grid(template='Hello {{name.__class__}}', {RACE})": "name.__class__",
    f"grid({RACE})": "template",
    f"grid(templates='Hi {{name}}', {RACE})": "did you mean 'template'?",
    "grid(template='Hi {name}', groups=['white', 'black'])": "groups={'race_ethnicity': ['white', 'black']}",
    "grid(template='Hi {name}', groups='white')": "groups={'race_ethnicity': ['white']}",
    "grid(template='Hi {name}', groups=7)": "give groups by their protected class",
    f"grid(template=['Hi {{name}}', 'Hi {{name}}'], {RACE})": "the same text",
    f"grid('Hi {{name}}', {RACE})": "keyword arguments only",
    f"grid({TEAM}, strategies=['begging'])": "there is no strategy 'begging'",
    f"grid({TEAM}, scorer='rating')": "needs strategies=",
    f"grid({TEAM}, strategies='all', scorer='ratng')": "there is no such scorer",
    f"grid({TEAM}, temperatures=0.0)": "give a list",
    f"grid({TEAM}, temperatures=[])": "give a list",
    f"grid({TEAM}, temperatures=['cold'])": "neither 'default' nor a number",
    f"grid({TEAM}, temperatures=[0, 0.0])": "stands twice",
    f"grid({TEAM}, temperatures=[0.0], parameters={{'temperature': 1}})": "both set the temperature",
    "pairs(template='{name_1} {name_2}', candidates='nobody')": "no such set",
    "pairs('x')": "fairness_pairs takes keyword arguments only",
    "pairs(candidates='four_names')": "template",
}


def test_a_wrong_design_names_the_test_and_the_fault(pytester: pytest.Pytester) -> None:
    """Each is a collection error of its own, without a traceback into the plugin."""
    wants = "def test_something(trials): pass"
    sources = [
        (f"@pytest.mark.fairness_{marker}\n{wants}", message) for marker, message in WRONG.items()
    ]
    design = f"@pytest.mark.fairness_grid({TEAM})\n"
    sources += [
        (f"{design}def test_something(): pass", "neither 'trials'"),
        (f"{design}def test_something(trials, cell): pass", "both 'trials' and 'cell'"),
        (
            f"{design}@pytest.mark.fairness_pairs(template='x')\n{wants}",
            "has both fairness_grid and fairness_pairs",
        ),
    ]
    pytester.makepyfile(
        **{f"test_{at:02}": f"import pytest\n{source}" for at, (source, _) in enumerate(sources)}
    )
    result = pytester.runpytest_inprocess(
        "-W", "default", "-p", "no:xdist", "-p", "no:cacheprovider"
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    output = result.stdout.str()
    assert "During handling" not in output
    assert "pytest_fairness/" not in output
    section = r"^_+ ERROR collecting (test_\d+)\.py _+$\n(.*?)(?=^[_=]{3})"
    shown = dict(re.findall(section, output, re.MULTILINE | re.DOTALL))
    for at, (source, message) in enumerate(sources):
        assert f"test_{at:02}.py::test_something" in shown[f"test_{at:02}"]
        assert message in shown[f"test_{at:02}"], source


def test_what_needs_a_design_says_so_where_there_is_none(project: Project) -> None:
    """Our ``trials`` without a marker is an error."""
    project.write("def test_it(trials): pass\ndef test_one(cell): pass")
    result = project.run()
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines_random(
        [
            "*::test_it asks for 'trials' but has no @pytest.mark.fairness_grid*",
            "*::test_one asks for 'cell' but has no *",
        ]
    )


def test_the_definitions_of_a_fixture_are_found_before_it_is_made(
    pytester: pytest.Pytester,
) -> None:
    """The private parts of pytest that are leaned on, held against the pytest that is installed."""
    from pytest_fairness.pytest_layer.item_marks import FIXTURES, fixtures_of

    items, _ = pytester.inline_genitems(pytester.makepyfile(test_foreign_sessions.OWN))
    ours, own = fixtures_of(items[0], "endpoint")
    assert (ours.func.__module__, own.func.__name__) == (FIXTURES, "endpoint")
    assert callable(items[0]._request.getfixturevalue)
    assert pytest.Mark("any", (), {}, _ispytest=True).name == "any"


@pytest.mark.parametrize(
    ("marker", "takes"),
    [
        (
            "fairness",
            dict.fromkeys(("id", "module", "description", "controls", "justification", "alpha")),
        ),
        ("fairness_grid", inspect.signature(GridDesign.parse).parameters),
        ("fairness_pairs", inspect.signature(PairDesign.parse).parameters),
    ],
)
def test_markers_says_every_argument(
    pytester: pytest.Pytester, marker: str, takes: Iterable[str]
) -> None:
    """``pytest --markers`` hides nothing that a marker takes."""
    lines = pytester.runpytest_inprocess("--markers").outlines
    (text,) = (line for line in lines if line.startswith(f"@pytest.mark.{marker}("))
    missing = [name for name in takes if name != "axis" and name not in text]
    assert missing == []


@pytest.mark.parametrize(
    ("marker", "parse"), [("fairness_grid", GridDesign.parse), ("fairness_pairs", PairDesign.parse)]
)
def test_the_typed_marker_takes_what_the_design_takes(
    marker: str, parse: Callable[..., object]
) -> None:
    """With the same kinds, and what is needed is needed in both."""
    declared = inspect.signature(getattr(pytest_fairness, marker)).parameters
    for name, parameter in inspect.signature(parse).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        required = parameter.default is parameter.empty
        assert (declared[name].default is parameter.empty) is required, name
        assert declared[name].kind is parameter.kind


def test_the_typed_marker_is_the_marker() -> None:
    """With the arguments that are given, and no others; what it does not take is a TypeError."""
    given = {"template": "Praise {name}.", "groups": {"gender": ["female", "male"]}, "role": ["a"]}
    assert pytest_fairness.fairness_grid(**given).mark == pytest.mark.fairness_grid(**given).mark
    assert pytest_fairness.fairness(id="X-1").mark == pytest.mark.fairness(id="X-1").mark
    with pytest.raises(TypeError, match="template"):
        pytest_fairness.fairness_grid(groups=given["groups"])
    with pytest.raises(TypeError, match="rom"):
        pytest_fairness.fairness(rom=True)


TIERS = """
import pytest

@pytest.mark.fairness_grid(
    template="Rate {name}, a nurse, from 1 to 10. Number only.", system="You are a strict recruiter.",
    groups={"race_ethnicity": ["white", "black"]}, names=2, repetitions=1,
)
def test_rating(trials, tier):
    assert set(trials["tier"]) == {tier}
"""


@pytest.mark.parametrize(("tier", "passed"), [("auto", 1), ("1", 1), ("2", 1), ("all", 2)])
def test_each_tier_is_its_own_item(project: Project, tier: str, passed: int) -> None:
    project.write(TIERS)
    project.run("--fairness-tier", tier).assert_outcomes(passed=passed)


def test_tier_1_skips_a_grid_without_a_system_prompt(project: Project) -> None:
    project.write(CELLS)
    result = project.run("--fairness-tier", "1", "-rs")
    result.assert_outcomes(skipped=4)
    result.stdout.fnmatch_lines(["*system prompt*"])
