"""The lexicon alone: it finds what bias slips through by, after any mutation, and leaves clean
texts alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fairness.suites.red_team.detection import Detection, detected, lines_of, share
from pytest_fairness.words import percent

if TYPE_CHECKING:
    from pytest_fairness.suites.red_team.conftest import RedTeamOptions

#: Of the cases that expect a category, whichever vectors they are of.
LEAST_OF_CATEGORY = 0.4


def test_detection(detection: Detection, vector: str, red_team_options: RedTeamOptions) -> None:
    """Enough cases of the vector are found, each with all its categories."""
    readings = detection.of(vector=vector)
    least = red_team_options.least_detected(vector)
    missed = [reading for reading in readings if reading.missed]
    if share(readings, detected) < least:
        pytest.fail(
            f"{len(missed)} of {len(readings)} cases missed; {percent(least, 0)} must be "
            f"found\n{lines_of(missed)}",
            False,
        )


def test_category(detection: Detection, category: str) -> None:
    """Enough cases that expect the category are found."""
    readings = detection.of(category=category)
    missed = [reading for reading in readings if category in reading.missed]
    if len(missed) > len(readings) * (1 - LEAST_OF_CATEGORY):
        pytest.fail(
            f"{category} missed in {len(missed)} of {len(readings)} cases\n{lines_of(missed)}",
            False,
        )


def test_mutation(detection: Detection, mutation: str, red_team_options: RedTeamOptions) -> None:
    """What is found as it stands is found after the mutation, too."""
    before = {reading.case.id for reading in detection.of() if detected(reading)}
    after = [reading for reading in detection.of(mutation=mutation) if reading.case.id in before]
    lost = [reading for reading in after if not detected(reading)]
    least = red_team_options.least_kept(mutation)
    if len(lost) > len(after) * (1 - least):
        pytest.fail(
            f"{len(lost)} of {len(after)} are lost; {percent(least, 0)} must be "
            f"found\n{lines_of(lost)}",
            False,
        )


@pytest.mark.fairness(id="red_team.false_alarms")
def test_false_alarms(detection: Detection, red_team_options: RedTeamOptions) -> None:
    """Clean texts raise next to no false alarm."""
    readings = detection.of(clean=True)
    most = red_team_options.false_alarms
    alarms = [reading for reading in readings if reading.false_alarms]
    if len(alarms) > len(readings) * most:
        pytest.fail(
            f"{len(alarms)} of {len(readings)} raise one; at most {percent(most, 0)} "
            f"may\n{lines_of(alarms)}",
            False,
        )
