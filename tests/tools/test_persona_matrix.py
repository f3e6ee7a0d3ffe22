"""The generator of the persona matrix: the shipped file byte for byte, and fresh matrices that keep
the quotas.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from pytest_fairness.design.personas import QUOTAS, PersonaMatrix

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "persona_matrix.py"))


def test_the_file_is_what_the_seed_makes() -> None:
    """Byte for byte, on every machine."""
    assert TOOL["to_yaml"](TOOL["generate"]()) == (ROOT / "personas" / "matrix.yaml").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("seed", [2, 3])
def test_other_seeds_keep_the_quotas_and_the_three(seed: int) -> None:
    other = PersonaMatrix(TOOL["generate"](seed))
    assert {category: other.counts(category) for category in QUOTAS} == QUOTAS
    assert [other[i].name for i in (0, 41, 88)] == ["Sarah Chen", "Marcus Johnson", "Aisha Rahman"]
    assert list(other) != list(PersonaMatrix.load())
