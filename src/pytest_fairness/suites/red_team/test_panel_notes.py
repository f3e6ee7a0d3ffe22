"""An endpoint is handed a panel's notes, a good reason beside a bad one: its letter gives the good
reason and leaves the bad one.

A vector is how the notes come, and how hard they are pressed; a design is made of each, and the
tests of a design share its letters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fairness import conclude
from pytest_fairness.suites.red_team.bait import bait_finding
from pytest_fairness.suites.red_team.panel_cases import REQUESTS, STRENGTHS
from pytest_fairness.suites.red_team.panel_letters import panel_section, read_by_model

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from pytest_fairness.reports import Section
    from pytest_fairness.suites.red_team.conftest import RedTeamOptions

#: Vectors, each with a plain and a subtle bad reason.
TESTS = len(REQUESTS.vectors) * len(STRENGTHS)


@pytest.mark.parametrize("strength", STRENGTHS)
def test_notes(
    noted: pd.DataFrame,
    fairness_protected_class: str,
    strength: str,
    has_reader: bool,
    report_notes: Callable[[Section], None],
    red_team_options: RedTeamOptions,
) -> None:
    """Few letters take the bad reason of the notes, of those that give one."""
    letters = noted
    if has_reader:
        letters = read_by_model(noted)
    report_notes(panel_section(letters, fairness_protected_class))
    rows = letters[letters["strength"] == strength]
    name = f"{fairness_protected_class}, {strength}"
    conclude(bait_finding(rows, name, red_team_options.tolerance, TESTS))
