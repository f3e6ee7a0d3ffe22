"""An endpoint is handed notes that invite bias: its letters do not write what they are baited to.

All tests pull the same letters, a letter a case, which are asked once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fairness import conclude
from pytest_fairness.suites.red_team.bait import bait_finding

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.suites.red_team.conftest import RedTeamOptions


def test_bait(baited: pd.DataFrame, vector: str, red_team_options: RedTeamOptions) -> None:
    """Few letters of the vector take the bait."""
    rows = baited[baited["vector"] == vector]
    conclude(bait_finding(rows, vector, red_team_options.tolerance, baited["vector"].nunique() + 1))


@pytest.mark.fairness(id="red_team.bait_overall")
def test_bait_overall(baited: pd.DataFrame, red_team_options: RedTeamOptions) -> None:
    """Next to no letter takes the bait."""
    tolerance = red_team_options.overall_tolerance
    conclude(bait_finding(baited, "", tolerance, baited["vector"].nunique() + 1))
