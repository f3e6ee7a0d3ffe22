"""The markers as typed functions: ``fairness_grid(template=...)`` is
``@pytest.mark.fairness_grid(template=...)``.

One signature serves the editor, the check of what a marker is given, and ``pytest --markers``.
Every session loads this module: it imports pytest alone.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, ParamSpec

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_fairness.design.arms import Arm
    from pytest_fairness.design.personas import Persona
    from pytest_fairness.design.strategies import Strategy
    from pytest_fairness.scorers import Scorer

P = ParamSpec("P")
#: The declaration of each marker, by its name.
_DECLARED: dict[str, Callable[..., None]] = {}


def _marker(declared: Callable[P, None]) -> Callable[P, pytest.MarkDecorator]:
    """Return the marker that *declared* names, describes and gives the signature of."""
    name = declared.__name__
    _DECLARED[name] = declared

    @functools.wraps(declared)
    def mark(*arguments: P.args, **keywords: P.kwargs) -> pytest.MarkDecorator:
        signature_of(name).bind(*arguments, **keywords)
        marker: pytest.MarkDecorator = getattr(pytest.mark, name)(*arguments, **keywords)
        return marker

    return mark


@_marker
def fairness(
    *,
    id: str | None = None,  # noqa: A002 - what everybody calls it
    module: str | None = None,
    description: str | None = None,
    controls: Sequence[str] | Mapping[str, str] | None = None,
    hazard: str | None = None,
    review_trigger: str | None = None,
    justification: Mapping[str, str] | None = None,
    alpha: float = 0.05,
    room: bool = False,
    finding: bool = True,
) -> None:
    """a fairness test; what it is called in reports, the controls that it is evidence of, the
    harm that it is about and what brings it up for review, the documented reason for a FLAG, the
    level at which it judges, whether its design promises answers that can vary, and False where it
    judges by its own asserts
    """


@_marker
def fairness_grid(
    *,
    template: str
    | Path
    | Iterable[str | Path]
    | Mapping[str, str | Path | Mapping[str, str | Path]],
    groups: Mapping[str, object] | None = None,
    persona: str | Persona | Iterable[Persona] | None = None,
    names: int | Sequence[int] | None = None,
    context: Mapping[str, object] | None = None,
    signal: str | Sequence[str] = "name",
    repetitions: int | None = None,
    system: str | None = None,
    turns: Sequence[str] | None = None,
    answer: Mapping[str, object] | None = None,
    answer_form: bool = True,
    answer_in_prose: str = "",
    locale: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    name_slot: str = "name",
    seed: int = 0,
    sample: int | None = None,
    personas_folder: Path | None = None,
    temperatures: Sequence[float | str] | None = None,
    strategies: str | Sequence[str | Strategy] | None = None,
    scorer: str | Scorer | Callable[[str], object] | None = None,
    pilot: int | None = None,
    each: Mapping[str, Mapping[str, object]] | None = None,
    signals: Mapping[str, Mapping[str, object]] | None = None,
    room: bool = False,
    **slot: object,
) -> None:
    """ask every cell of a demographic grid; implies fairness"""


@_marker
def fairness_pairs(
    *,
    template: str | Path | Iterable[str | Path] | Mapping[str, str | Path],
    candidates: object,
    repetitions: int = 30,
    arms: Arm | Iterable[Arm] | None = None,
    system: str | None = None,
    signal: str | Sequence[str] | None = None,
    qualifications: object = None,
    size: int = 2,
    ranking: bool = False,
    turns: Sequence[str] | None = None,
    answer: Mapping[str, object] | None = None,
    answer_form: bool = True,
    locale: str | None = None,
    names: int | None = None,
    context: Mapping[str, object] | None = None,
    parameters: Mapping[str, Any] | None = None,
    seed: int = 0,
    sample: int | None = None,
    personas_folder: Path | None = None,
    temperatures: Sequence[float | str] | None = None,
    **slot: object,
) -> None:
    """choices between candidates, in every order and arm; implies fairness"""


@functools.cache
def signature_of(name: str) -> inspect.Signature:
    """Return what the marker *name* takes."""
    return inspect.signature(_DECLARED[name])


def descriptions() -> list[str]:
    """Return each marker with its arguments and what it is for, as ``pytest --markers`` shows them."""
    lines = []
    for name, declared in _DECLARED.items():
        parameters = signature_of(name).parameters.values()
        arguments = ", ".join(map(_shown, parameters))
        about = " ".join(str(declared.__doc__).split())
        lines.append(f"{name}({arguments}): {about}")
    return lines


def _shown(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_KEYWORD:
        return f"{parameter.name.upper()}=[...]"
    if parameter.default is parameter.empty:
        return parameter.name
    return f"{parameter.name}={parameter.default!r}"
