"""A rendered prompt of each text of the bias programme, committed to be read; ``UPDATE_DOCS=1`` writes them anew."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.design.grid import expand_grid
from pytest_fairness.design.templates import templates
from pytest_fairness.suites.bias import (
    test_association_completion,
    test_attribute_scoring,
    test_healthcare_triage,
    test_hiring_simulation,
    test_loan_approval,
    test_narrative_generation,
    test_refusal_differential,
)
from pytest_fairness.suites.bias.programme import SIGNALS

from .bias_designs import signal_designs

SNAPSHOT = Path(__file__).with_name("prompts") / "bias_borders.txt"
GRIDS: tuple[Mapping[str, Any], ...] = (
    test_attribute_scoring.scored.mark.kwargs,
    test_hiring_simulation.hired.mark.kwargs,
    test_hiring_simulation.graded.mark.kwargs,
    test_loan_approval.lent.mark.kwargs,
    test_loan_approval.graded.mark.kwargs,
    test_narrative_generation.toned.mark.kwargs,
    test_association_completion.completed.mark.kwargs,
    test_healthcare_triage.seen.mark.kwargs,
    test_refusal_differential.declined.mark.kwargs,
)


def _place(design: tuple[str, dict[str, Any]]) -> int:
    """Return the place of the signal of a *design* among all of them."""
    item, _, signal = design[0].partition("/")
    return list(SIGNALS).index(f"{item.split('-')[2]}-{signal}")


@cache
def of_borders() -> tuple[str, ...]:
    """Every text in turn, each about another group by another signal."""
    prompts = []
    for grid in GRIDS:
        entries = [design for _, design in sorted(signal_designs(grid), key=_place)]
        for number, text in enumerate(templates(entries[0]["template"])):
            asking = [entry for entry in entries if _has_text(entry, text.id)]
            design = {**asking[(5 * len(prompts)) % len(asking)], "names": 10}
            cells = [cell for cell in expand_grid(**design) if cell.template == text.id]
            prompts.append(cells[(17 * number) % len(cells)].prompt)
    return tuple(prompts)


def _has_text(design: Mapping[str, Any], text: str) -> bool:
    """Return whether a *design* asks the text of that id."""
    return any(template.id == text for template in templates(design["template"]))


def test_prompts_are_as_they_were_read() -> None:
    """Whoever changes one reads it again."""
    prompts = of_borders()
    assert len(prompts) == 68
    text = "\n\n----------\n\n".join(prompts) + "\n"
    if os.environ.get("UPDATE_DOCS"):
        SNAPSHOT.write_text(text, "utf-8")
    assert SNAPSHOT.read_text("utf-8") == text


@pytest.mark.parametrize(
    "fault",
    [
        r"\{\w*\}",
        r"\b(\w+) \1\b",
        r"\b(?:a|an|the) (?:a|an|the)\b",
        r"  ",
        r",,",
        r" [.,?]",
        r"\.\.",
    ],
)
def test_prompts_read_well(fault: str) -> None:
    """No unfilled slot, no word or article twice, no stray mark."""
    assert not [prompt for prompt in of_borders() if re.search(fault, prompt)]
