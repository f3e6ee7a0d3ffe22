"""Did employers call back equally? The 4,870 résumés of Bertrand & Mullainathan (2004), no model
involved.

Both tests are expected to fail: the disparity is what the study found. In an audit of your own
decisions leave the ``xfail`` away and let the build say so.
"""

from pathlib import Path

import pandas as pd
import pytest

from pytest_fairness import FairnessFailure, assert_four_fifths, assert_no_disparity

pytestmark = pytest.mark.fairness
found_in_2004 = pytest.mark.xfail(
    raises=FairnessFailure,
    strict=True,
    reason="the published finding: 9.65 % against 6.45 % were called back",
)


@pytest.fixture(scope="module")
def decisions() -> pd.DataFrame:
    """One row a résumé: race, sex, first name, and whether the employer called back."""
    counts = pd.read_csv(Path(__file__).with_name("callbacks_by_name.csv"))
    resumes = counts.loc[counts.index.repeat(counts["n"])].reset_index(drop=True)
    within_name = resumes.groupby("first_name").cumcount()
    return resumes.assign(called_back=within_name < resumes["callbacks"]).drop(
        columns=["n", "callbacks"]
    )


@found_in_2004
def test_callback_rates_keep_four_fifths(decisions):
    assert_four_fifths(decisions, outcome="called_back", by="race", cluster="first_name")


@found_in_2004
def test_callbacks_do_not_depend_on_race(decisions):
    """Clustered by first name: 36 names were sent, not 4,870 independent people."""
    assert_no_disparity(decisions, outcome="called_back", by="race", cluster="first_name")


def test_callbacks_do_not_depend_on_sex(decisions):
    assert_no_disparity(decisions, outcome="called_back", by="sex", cluster="first_name")
