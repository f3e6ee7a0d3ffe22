"""From a marker to items: what is collected, under which ids, and what a wrong grid is told."""

from __future__ import annotations

import pytest

from .conftest import Run

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


def test_asking_for_cell_makes_one_item_a_cell(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(CELLS)
    run().assert_outcomes(passed=4)


def test_a_grid_too_large_for_an_item_a_cell_is_refused_with_the_mend(pytester: pytest.Pytester) -> None:
    """A million items would take pytest gigabytes before the first of them runs."""
    large = """
        import pytest

        grid = dict(template="{name}, {a} {b}?", groups={"gender": ["female", "male"]}, names=10,
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
        ["*test_every_cell: would make 32,000 items, a cell each (at most 20,000): ask for 'trials', *sample=*"]
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    pytester.makepyfile(
        large.replace("**grid)\n        def test_every_cell", "**grid, sample=40)\n        def test_every_cell")
    )
    result = pytester.runpytest("--collect-only", "-q")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["61 tests collected*"])


def test_ids_are_plain_and_stable(pytester: pytest.Pytester) -> None:
    """Ids hold only ``[a-z0-9_.-]`` and are the same in every run."""
    pytester.makepyfile(CELLS)
    first = pytester.runpytest_subprocess("--collect-only", "-q").outlines[:4]
    assert first == pytester.runpytest_subprocess("--collect-only", "-q").outlines[:4]
    inside = [line.split("[")[1].rstrip("]") for line in first]
    assert len(set(inside)) == 4
    for name in inside:
        assert name.isascii()
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.-")


def test_one_cell_can_be_selected(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(CELLS)
    ids = pytester.runpytest_subprocess("--collect-only", "-q").outlines[:4]
    run(ids[2]).assert_outcomes(passed=1)


def test_the_marker_implies_fairness(pytester: pytest.Pytester, run: Run) -> None:
    """``-m fairness`` selects a grid, and nothing else."""
    pytester.makepyfile(CELLS + "\ndef test_other(): pass\n")
    run("-m", "fairness").assert_outcomes(passed=4)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('template="Hello {nmae}", groups={"race_ethnicity": ["white", "black"]}', "nmae"),
        ('template="Hello {name}", groups={"race_ethnicity": ["white", "blakc"]}', "blakc"),
        ('template="Hello {name}", groups={"race_ethnicity": []}', "race_ethnicity"),
        ('template="Hello {name}", groups={"race_ethnicity": ["white", "black"]}, tone=["kind"]', "tone"),
        (
            'template="Hello {name}", groups={"race_ethnicity": ["white", "black"]}, context={"job": ["nurse"]}',
            "job",
        ),
        ('template="Hello", groups={"race_ethnicity": ["white", "black"]}', "name"),
        ('template="Hello {name.__class__}", groups={"race_ethnicity": ["white", "black"]}', "name.__class__"),
        ('groups={"race_ethnicity": ["white", "black"]}', "template"),
        ('template=["Hi {name}", "Hi {name}"], groups={"race_ethnicity": ["white", "black"]}', "the same text"),
    ],
)
def test_a_wrong_grid_names_the_test_and_the_fault(pytester: pytest.Pytester, arguments: str, told: str) -> None:
    """A collection error, without a traceback into the plugin."""
    pytester.makepyfile(
        test_grid=f"""
        import pytest

        @pytest.mark.fairness_grid({arguments})
        def test_something(trials): pass
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    output = result.stdout.str()
    assert "test_grid.py::test_something" in output
    assert told in output
    assert "During handling" not in output
    assert "pytest_fairness/" not in output


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def test_it(trials): pass", "no @pytest.mark.fairness_grid"),
        (
            "import pytest\n@pytest.mark.fairness_grid(template='Hi {name}', groups={'gender': ['female', 'male']})"
            "\ndef test_it(): pass",
            "neither 'trials'",
        ),
        (
            "import pytest\n@pytest.mark.fairness_grid(template='Hi {name}', groups={'gender': ['female', 'male']})"
            "\ndef test_it(trials, cell): pass",
            "both 'trials' and 'cell'",
        ),
        (
            "import pytest\n@pytest.mark.fairness_grid('Hi {name}', groups={'gender': ['female', 'male']})"
            "\ndef test_it(trials): pass",
            "keyword arguments only",
        ),
    ],
)
def test_a_test_that_does_not_fit_its_marker_is_told_so(pytester: pytest.Pytester, source: str, told: str) -> None:
    pytester.makepyfile(source)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert told in result.stdout.str()
    assert result.ret == pytest.ExitCode.INTERRUPTED


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
def test_each_tier_is_its_own_item(pytester: pytest.Pytester, run: Run, tier: str, passed: int) -> None:
    pytester.makepyfile(TIERS)
    run("--fairness-tier", tier).assert_outcomes(passed=passed)


def test_tier_1_skips_a_grid_without_a_system_prompt(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(CELLS)
    result = run("--fairness-tier", "1", "-rs")
    result.assert_outcomes(skipped=4)
    result.stdout.fnmatch_lines(["*system prompt*"])
