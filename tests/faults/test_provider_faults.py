"""F1 to F21 of the catalogue in docs/reliability.md: what a provider, a proxy or an application can do to a run."""

from __future__ import annotations

import pytest

from tests.support.servers import Fault

from .conftest import ROUTES, TRIALS, Ask, Project
from .oracles import check


def test_without_a_fault_all_is_quiet(project: Project) -> None:
    """The undisturbed run, on which the oracles hold too: each trial asked once, exit 0."""
    project.write()
    case = project.run("-rA")
    assert case.code == 0, case.output
    assert len(case.ledger) == len(case.of("trial")) == TRIALS
    check(case)


@pytest.mark.parametrize("route", ROUTES)
def test_f01_an_endpoint_that_never_answers(ask: Ask, route: str) -> None:
    """The attempt ends at its deadline; the trial is unknown, charged at its worst case, and not sent again."""
    asked = ask(route, Fault(hang=True), None, count=2, attempt_timeout=0.6, concurrency=1)
    assert sorted(asked.statuses) == ["answered", "unknown"]
    check(asked.case)
    unknown = next(attempt for attempt in asked.case.of("attempt") if attempt["status"] is None)
    assert (unknown["evidence"], unknown["flags"]) == ("no_response", ["deadline"])
    assert unknown["cost"] > 400 * 0.6e-6  # all that max_tokens allows
