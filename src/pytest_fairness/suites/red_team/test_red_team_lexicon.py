"""The lexicon alone: it finds what bias slips through by, after any mutation, and leaves clean
texts alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fairness.suites.red_team.detection import (
    CaseReading,
    Detection,
    alarms,
    lines_of,
    share_detected,
)
from pytest_fairness.words import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_fairness.suites.red_team.conftest import RedTeamOptions

#: Of the cases that expect a category, whichever vectors they are of.
LEAST_OF_CATEGORY = 0.4


def _fail(why: str, readings: Sequence[CaseReading]) -> None:
    pytest.fail(f"{why}\n{lines_of(readings)}", pytrace=False)


def test_detection(detection: Detection, vector: str, red_team_options: RedTeamOptions) -> None:
    """Enough cases of the vector are found, each with all its categories."""
    readings = detection.of(vector=vector)
    least = red_team_options.least_detected(vector)
    if share_detected(readings) < least:
        missed = [reading for reading in readings if reading.missed]
        _fail(
            f"{len(missed)} of {len(readings)} cases missed; {percent(least, 0)} must be found",
            missed,
        )


def test_category(detection: Detection, category: str) -> None:
    """Enough cases that expect the category are found."""
    readings = detection.of(category=category)
    missed = [reading for reading in readings if category in reading.missed]
    if len(missed) > len(readings) * (1 - LEAST_OF_CATEGORY):
        _fail(f"{category} missed in {len(missed)} of {len(readings)} cases", missed)


def test_mutation(detection: Detection, mutation: str, red_team_options: RedTeamOptions) -> None:
    """What is found as it stands is found after the mutation, too."""
    before = {reading.case.id for reading in detection.of() if reading.detected}
    kept = 0
    lost = []
    for reading in detection.of(mutation=mutation):
        if reading.case.id not in before:
            continue
        if reading.detected:
            kept += 1
        else:
            lost.append(reading)
    least = red_team_options.least_kept(mutation)
    readings = kept + len(lost)
    if kept < least * readings:
        _fail(f"{len(lost)} of {readings} are lost; {percent(least, 0)} must be found", lost)


@pytest.mark.fairness(id="red_team.false_alarms")
def test_false_alarms(detection: Detection, red_team_options: RedTeamOptions) -> None:
    """Clean texts raise next to no false alarm."""
    readings = detection.clean()
    false = alarms(readings)
    most = red_team_options.false_alarms
    if len(false) > len(readings) * most:
        _fail(f"{len(false)} of {len(readings)} raise one; at most {percent(most, 0)} may", false)
