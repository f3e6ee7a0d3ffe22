"""Steps: what a text passes through on its way to the reply that is judged. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_fairness.errors import UsageError

#: The slots of a step's prompt: what the step before replied, and what the test asked.
TEXT, PROMPT = "text", "prompt"
_SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A step that a model takes, in a fresh conversation: ``prompt`` with the slot ``{text}`` for what it is given.

    ``endpoint``: who is asked, if not the system under test: an endpoint, a function, or a name of ``endpoints.yaml``;
    it is asked with the parameters of its own entry. In an arm, ``prompt=None`` asks the test's own template, with
    ``{text}`` in the place of the candidates, and ``fallback`` says to do so where the test lacks a slot of *prompt*.
    In a pipeline, ``prompt=None`` hands on the text as it is, and ``{prompt}`` is what the test asked.
    """

    prompt: str | None = None
    system: str | None = None
    fallback: bool = False
    endpoint: Any = None


def check_prompt(prompt: str) -> None:
    """Raise UsageError where *prompt* is none that a step of a pipeline can send."""
    slots = _SLOT.findall(prompt)
    odd = next((slot for slot in slots if slot not in (TEXT, PROMPT)), None)
    if odd is not None:
        raise UsageError(f"nothing fills the slot {{{odd}}} of a step's prompt: there are {{{TEXT}}} and {{{PROMPT}}}")
    if not slots:
        raise UsageError(
            f"a step's prompt holds {{{TEXT}}}, where the text of the step before belongs, or {{{PROMPT}}}"
        )


def filled(prompt: str, values: Mapping[str, str]) -> str:
    """*prompt* with *values* in its slots, in one pass: what is put in is never read for slots."""
    return _SLOT.sub(lambda match: values[match[1]], prompt)
