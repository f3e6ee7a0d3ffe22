"""The looks of a test are fixed before its first call: whoever resumes or replays its run has them."""

from __future__ import annotations

import pytest

from .conftest import GRID, Project, shown

LOOKS = GRID.replace("repetitions=2", "names=(10, 20), repetitions=2")


@pytest.mark.parametrize("option", ["--fairness-resume=last", "--fairness-replay=last"])
def test_other_looks_at_the_same_data_are_refused(project: Project, option: str) -> None:
    """One look with all of the budget, at data that were seen in two: refused by the test, and the
    message has both. The looks as they were are judged.
    """
    project.write(LOOKS)
    first = project.run().ret
    project.write(LOOKS.replace("(10, 20)", "(20,)"))
    result = project.run(option)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "the looks were 10 and 20, are 20" in shown(result)
    project.write(LOOKS)
    assert project.run(option).ret == first


def test_looks_of_the_project_too(project: Project) -> None:
    """A grid without names= looks as the project says."""
    project.write(GRID)
    project.run("-o", "fairness_looks=10,20")
    result = project.run("--fairness-replay=last", "-o", "fairness_looks=20")
    assert "the looks were 10 and 20, are 20" in shown(result)
