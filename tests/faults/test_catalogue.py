"""docs/reliability.md and the tests tell of the same faults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
TESTS = "\n".join(
    path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("test_*.py")
)


@pytest.mark.parametrize(
    "number", [int(number) for number in re.findall(r"^\| F(\d+) \|", PAGE, re.MULTILINE)]
)
def test_each_fault_of_the_page_has_its_test(number: int) -> None:
    """A row is a promise; a test of that number, perhaps of several, keeps it."""
    assert re.search(rf"def test_(?:f\d\d_)*f{number:02d}_", TESTS)


def test_every_number_has_its_row_in_order_and_once() -> None:
    """So that each is found where it is looked for. F1 to F49 are there without a gap."""
    numbers = [int(number) for number in re.findall(r"^\| F(\d+) \|", PAGE, re.MULTILINE)]
    assert numbers[:49] == list(range(1, 50))
    assert numbers == sorted(set(numbers))


def test_each_oracle_of_the_page_is_asked() -> None:
    """The seven questions are those of ``oracles.check``, under the same numbers."""
    oracles = Path(__file__).with_name("oracles.py").read_text(encoding="utf-8")
    assert re.findall(r"^\| (O\d) \|", PAGE, re.MULTILINE) == [
        f"O{number}" for number in range(1, 8)
    ]
    assert all(f'"""O{number}' in oracles for number in range(1, 8))
