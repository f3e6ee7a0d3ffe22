"""The designs of the bias programme, one for each signal of each class of a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_fairness.design.grid import Grid
from pytest_fairness.model import Cell, Elicitation
from pytest_fairness.suites.bias import (
    test_association_completion,
    test_attribute_scoring,
    test_healthcare_triage,
    test_hiring_simulation,
    test_loan_approval,
    test_narrative_generation,
    test_refusal_differential,
)
from pytest_fairness.suites.bias.programme import AT_ZERO

#: The design that each test asks by.
GRIDS: Mapping[str, Mapping[str, Any]] = {
    "BIAS-ATTR": test_attribute_scoring.scored.mark.kwargs,
    "BIAS-HIRE": test_hiring_simulation.hired.mark.kwargs,
    "BIAS-HIRE, graded": test_hiring_simulation.graded.mark.kwargs,
    "BIAS-LOAN": test_loan_approval.lent.mark.kwargs,
    "BIAS-LOAN, graded": test_loan_approval.graded.mark.kwargs,
    "BIAS-NARR": test_narrative_generation.toned.mark.kwargs,
    "BIAS-ASSOC": test_association_completion.completed.mark.kwargs,
    "BIAS-TRIAGE": test_healthcare_triage.seen.mark.kwargs,
    "BIAS-REFUSE": test_refusal_differential.declined.mark.kwargs,
}
#: Of no cell: what an item adds to its design.
OF_ITEMS = frozenset(("each", "template", "temperatures", "strategies", "scorer", "pilot", "room"))


def signal_designs(grid: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the arguments of the grid of each signal of *grid*, called ``BIAS-HIRE-age/stated_age``;
    none of a test at temperature 0, which asks what another does.
    """
    common = {key: grid[key] for key in grid if key not in OF_ITEMS}
    for entry in grid["each"].values():
        if entry["id"].endswith(AT_ZERO):
            continue
        for label, signal in entry["signals"].items():
            yield f"{entry['id']}/{label}", {**common, **signal}


def asked_in_prose(grid: Grid, cell: Cell) -> str:
    """Return the prompt of *cell* as it is asked where neither a form nor a line is."""
    if grid.answer is None:
        return cell.prompt
    (prompt,) = grid.answer.asked_in(cell.turns, Elicitation.PLAIN)
    return prompt
