"""Length and grammar of the texts of groups and arms, and swaps that changed nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_fairness.design.grid import expand_grid
from pytest_fairness.design.pairs import expand_pairs
from pytest_fairness.design.parity import arm_parity, group_parity
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Cell

TEXTS = {"a": "Ana is an engineer.", "b": "Bob is an engineer."}


def cells(**texts: str) -> list[Cell]:
    return [
        Cell(id=group, template="t", turns=(text,), groups={"g": group})
        for group, text in (texts or TEXTS).items()
    ]


def test_length() -> None:
    found = group_parity(cells(), "g")
    assert [(row.label, row.characters) for row in found.rows] == [("a", 19), ("b", 19)]
    assert (found.gap, found.notes) == (0.0, ())
    found = group_parity(cells(a="Rate Ana.", b="Rate Bob, who also likes chess."), "g")
    assert found.gap == pytest.approx((31 - 9) / 9)
    assert found.notes == (
        "unequal length: the texts of b have 31 characters on average, those of a 9",
    )


def test_paragraphs_read_well() -> None:
    """A blank line is no doubled space."""
    assert group_parity(cells(a="Rate this.\n\nAna", b="Rate this.\n\nBob"), "g").notes == ()
    assert group_parity(cells(a="Rate this.  Ana", b="Rate this.  Bob"), "g").notes


@pytest.mark.parametrize(
    "text",
    [
        "Ana is a engineer.",
        "Ana and they has it.",
        "She have it.",
        "The the nurse.",
        "Ana , a nurse.",
        "Ana ( ) x.",
    ],
)
def test_broken_grammar_is_noted(text: str) -> None:
    """Articles, agreement, doubled words, stray commas and empty brackets, in the group that has
    them.
    """
    found = group_parity(cells(a=text, b="Bob is an engineer at work."), "g")
    assert found.rows[0].slips
    assert not found.rows[1].slips
    assert any(note.startswith("a: ") for note in found.notes)
    # Scores that stand side by side may be alike; words may not.
    assert group_parity(cells(a="Ana 3 3 4.", b="Bob 3 3 4."), "g").notes == ()


def test_a_swap_that_changed_nothing_is_an_error() -> None:
    with pytest.raises(UsageError, match="'a' and 'b' are the same, so the swap changes nothing"):
        group_parity(cells(a="Rate them.", b="Rate them."), "g")
    with pytest.raises(UsageError, match="no cell has this"):
        group_parity(cells(), "gender")


def test_shipped_designs_are_alike() -> None:
    """Names of the banks, and the lines of the selection experiment, are within 5 % of each other
    in length.
    """
    grid = expand_grid(
        template="Write a summary for {name}, a nurse.",
        groups={"race_ethnicity": ["white", "black"]},
    )
    assert group_parity(grid, "race_ethnicity").notes == ()
    pairs = expand_pairs(template="Pick:\n{candidates}", candidates="four_groups", repetitions=20)
    rows = group_parity(pairs, "group").rows
    assert {row.label for row in rows} == {
        "white_male",
        "white_female",
        "black_male",
        "black_female",
    }
    assert max(row.characters for row in rows) < 20


def test_arms() -> None:
    """Each arm's texts; two arms that ask the same with the same system prompt are no comparison."""
    one = cells()
    longer = [replace(cell, arm="x", turns=("Longer by far: " + cell.prompt,)) for cell in one]
    found = arm_parity([*one, *longer])
    assert [row.label for row in found.rows] == ["single", "x"]
    assert found.notes
    assert arm_parity([*one, *(replace(cell, arm="y", system="Be fair.") for cell in one)]).gap == 0
    with pytest.raises(UsageError, match="'single' and 'z' ask the same"):
        arm_parity([*one, *(replace(cell, arm="z") for cell in one)])
