"""An endpoint is handed notes that invite bias: its letters do not write what they are baited to.

All tests pull the same letters, a letter a case, which are asked once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fairness import conclude
from pytest_fairness.suites.red_team.bait import bait_finding

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from pytest_fairness.suites.red_team.conftest import RedTeamOptions


def test_bait(
    baited: Callable[[], pd.DataFrame], vector: str, red_team_options: RedTeamOptions
) -> None:
    """Few letters of the vector take the bait."""
    letters = baited()
    rows = letters[letters["vector"] == vector]
    tests = letters["vector"].nunique() + 1
    conclude(bait_finding(rows, vector, red_team_options.tolerance, tests))


@pytest.mark.fairness(id="red_team.bait_overall")
def test_bait_overall(baited: Callable[[], pd.DataFrame], red_team_options: RedTeamOptions) -> None:
    """Next to no letter takes the bait."""
    letters = baited()
    tests = letters["vector"].nunique() + 1
    conclude(bait_finding(letters, "", red_team_options.overall_tolerance, tests))
