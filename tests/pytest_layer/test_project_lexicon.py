"""A project's own lexicon is the one by which its sessions read, in every mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Project

SUITE = """
import pytest
from pytest_fairness.scorers.letter import letter_score

@pytest.fixture
def endpoint():
    return lambda prompt: "You did not care for our beanbag."

@pytest.mark.fairness_grid(
    template="Write to {name}.", groups={"race_ethnicity": ["white", "black"]}, names=1, repetitions=1,
)
def test_letter(cell):
    assert letter_score(cell.reply) == 85
"""
TERM = (
    "beanbag: {match: [beanbag], severity: high, suggestion: Leave it out., source: our handbook}"
)


@pytest.fixture
def lexicon(pytester: pytest.Pytester) -> Path:
    folder = pytester.path / "personas" / "lexicon"
    folder.mkdir(parents=True)
    return folder / "cultural_fit.yaml"


def test_a_session_reads_by_the_projects_lexicon(
    project: Project, lexicon: Path, mode: list[str]
) -> None:
    lexicon.write_text(TERM, encoding="utf-8")
    project.write(SUITE)
    project.run(mode=mode).assert_outcomes(passed=2)


def test_a_wrong_lexicon_is_refused_with_file_and_line(project: Project, lexicon: Path) -> None:
    lexicon.write_text(f"\n{TERM.replace('high', 'awful')}", encoding="utf-8")
    project.write(SUITE)
    result = project.run()
    assert result.ret != 0
    assert "cultural_fit.yaml:2" in result.stdout.str() + result.stderr.str()
