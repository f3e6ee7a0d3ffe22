"""Rendered prompts of the letters and of the panel's notes, committed to be read;
``UPDATE_DOCS=1`` writes them anew.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

from pytest_fairness.design.grid import expand_grid
from pytest_fairness.design.personas import PersonaMatrix
from pytest_fairness.suites.letters.conftest import LetterOptions
from pytest_fairness.suites.red_team.panel_cases import REQUESTS, panel_cases, panel_reasons

FOLDER = Path(__file__).with_name("prompts")


@cache
def of_letters() -> list[str]:
    """Each request to a persona of its own, and the full record of 38 others."""
    personas = list(PersonaMatrix.load())
    prompts = []
    plain = LetterOptions().templates(FOLDER)
    stress = LetterOptions(request="full_record").templates(FOLDER)
    assert isinstance(plain, dict)
    assert isinstance(stress, dict)
    requests = [*plain.values(), *list(stress.values()) * 4]
    for request, persona in zip(requests[:50], personas[::2], strict=True):
        (cell,) = expand_grid(template=request, persona=[persona])
        prompts.append(cell.prompt)
    return prompts


@cache
def of_notes() -> list[str]:
    """Every third case of all vectors, with the turns that follow: all forty, plain and subtle."""
    prompts = []
    for vector, notes in REQUESTS.vectors.items():
        for case in panel_cases(panel_reasons(None), vector).values():
            prompts.append("\n\n[then]\n".join([case.request, *notes.turns]))
    return prompts[::3]


#: How many prompts there are of each kind.
NUMBERS = {"letters": 50, "notes": 67}


@pytest.mark.parametrize("name", NUMBERS)
def test_prompts_are_as_they_were_read(name: str) -> None:
    """Whoever changes one reads it again."""
    prompts = {"letters": of_letters, "notes": of_notes}[name]()
    assert len(prompts) == NUMBERS[name]
    text = "\n\n----------\n\n".join(prompts) + "\n"
    path = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_DOCS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize("number", range(sum(NUMBERS.values())))
def test_no_prompt_stumbles(number: int) -> None:
    """No slot is left, no word doubled, no article wrong, no space before a comma."""
    prompt = [*of_letters(), *of_notes()][number]
    assert not re.search(r"[{}]", prompt)
    assert not re.search(r"\b(?!that\b|had\b|Fw\b)(\w+) \1\b", prompt)
    assert not re.search(r" [,.;]|  |\ba [aeio]\w|\ban [^aeiouhAEIOUH\W]", prompt)
