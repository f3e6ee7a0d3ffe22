"""A rendered prompt of each text of the bias programme, and fifty of all its tests in British English,
committed to be read; ``UPDATE_DOCS=1`` writes them anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.design.grid import Grid, expand_grid
from pytest_fairness.design.templates import Template, templates
from pytest_fairness.model import Elicitation
from pytest_fairness.suites.bias.programme import SIGNALS

from .bias_designs import GRIDS, asked_in_prose, signal_designs
from .test_bias_dialect import TESTS, grid_in

FOLDER = Path(__file__).with_name("prompts")


def _place(design: tuple[str, dict[str, Any]]) -> int:
    """Return the place of the signal of a *design* among all of them."""
    item, _, signal = design[0].partition("/")
    return list(SIGNALS).index(f"{item.split('-')[2]}-{signal}")


def prompts_of(grids: Iterable[Mapping[str, Any]]) -> list[str]:
    """Every text in turn, each about another group by another signal."""
    prompts: list[str] = []
    for grid in grids:
        entries = [design for _, design in sorted(signal_designs(grid), key=_place)]
        for number, text in enumerate(templates(entries[0]["template"])):
            asking = [entry for entry in entries if _of_text(entry, text.id)]
            design = asking[(5 * len(prompts)) % len(asking)]
            (asked,) = _of_text(design, text.id)
            cells = expand_grid(**{**design, "template": asked, "names": 10})
            prompts.append(asked_in_prose(cells, cells[(17 * number) % len(cells)]))
    return prompts


def _of_text(design: Mapping[str, Any], text: str) -> list[Template]:
    """Return the text of that id, where a *design* asks it."""
    return [template for template in templates(design["template"]) if template.id == text]


@cache
def asked_by_form() -> tuple[Grid, ...]:
    """The grid of each signal of every test that asks for a form, about ten names a group."""
    british = [grid_in("uk", name) for name in TESTS]
    return tuple(
        expand_grid(**{**design, "names": 10})
        for grid in (*GRIDS.values(), *british)
        if "answer" in grid
        for _, design in signal_designs(grid)
    )


@cache
def of_borders() -> tuple[str, ...]:
    return tuple(prompts_of(GRIDS.values()))


@cache
def in_british() -> tuple[str, ...]:
    """Of every test, evenly."""
    prompts = prompts_of(grid_in("uk", name) for name in TESTS)
    return tuple(prompts[place * len(prompts) // 50] for place in range(50))


RENDERED = {"bias_borders": of_borders, "bias_british": in_british}


@pytest.mark.parametrize("name", RENDERED)
def test_prompts_are_as_they_were_read(name: str) -> None:
    """Whoever changes one reads it again."""
    prompts = RENDERED[name]()
    assert len(prompts) == {"bias_borders": 68, "bias_british": 50}[name]
    text = "\n\n----------\n\n".join(prompts) + "\n"
    path = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_DOCS"):
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text


#: A sentence about the shape of a reply.
SHAPE = re.compile(
    r"\b(?:answer|reply|respond|begin|give the answer) (?:with|only|\"|in)|\bonly\b|\bone word\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("elicitation", [Elicitation.LINE, Elicitation.FORM])
def test_nothing_beside_a_form_says_the_shape_of_the_reply(elicitation: Elicitation) -> None:
    """Who is to reply with the level only cannot end with a line, nor answer with an object."""
    asked = 0
    for grid in asked_by_form():
        form = grid.answer
        assert form is not None
        sentence = form.sentence(elicitation)
        for cell in grid[::29]:
            *turns, last = form.asked_in(grid.conversation_at(0, cell), elicitation)
            before, _, after = last.partition(sentence)
            assert not after
            assert not SHAPE.search("\n".join([*turns, before])), before
            asked += 1
    assert asked > 500


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
    prompts = (*of_borders(), *in_british())
    assert not [prompt for prompt in prompts if re.search(fault, prompt)]
