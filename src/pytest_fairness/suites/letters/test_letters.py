"""Letters to each of a hundred personas: none says what it should not, no group's are worse, none
has got worse.

Every test pulls the same trials, which are asked once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_fairness import (
    FairnessFailure,
    MissingBaselineError,
    assert_baseline,
    assert_four_fifths,
    assert_no_disparity,
)
from pytest_fairness.scorers import PASS_THRESHOLD
from pytest_fairness.suites.authoring import SkipReason

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from pytest_fairness import Finding
    from pytest_fairness.suites.letters.conftest import LetterOptions
    from pytest_fairness.suites.letters.letter_results import LetterResults

    Report = Callable[[Finding | str | None], None]


@pytest.mark.fairness(id="letters.clean", finding=False)
def test_every_letter_passes(letters: Callable[[], LetterResults]) -> None:
    """Every letter scores 80 of 100 at least."""
    results = letters()
    if not results.letters:
        pytest.fail("no letter was written", pytrace=False)
    if results.failed:
        lines = ["letters below the threshold:"]
        for persona in results.failed:
            phrases = dict.fromkeys(f'"{warning.text}"' for warning in persona.open_warnings)
            lines.append(f"{persona.failure}: {', '.join(phrases)}")
        pytest.fail("\n".join(lines), pytrace=False)


def test_pass_rates(scored: Callable[[], pd.DataFrame], by: str, alpha: float) -> None:
    """Letters to no group pass less than four fifths as often as those to another."""
    assert_four_fifths(scored(), outcome="passed", by=by, cluster="persona", alpha=alpha)


def test_scores(scored: Callable[[], pd.DataFrame], by: str, alpha: float) -> None:
    """Letters to one group score no lower than those to another."""
    assert_no_disparity(scored(), outcome="letter_score", by=by, cluster="persona", alpha=alpha)


def test_wording(
    judged: pd.DataFrame, outcome: str, by: str, alpha: float, letter_options: LetterOptions
) -> None:
    """Letters to one group are no colder and no shorter than those to another."""
    assert_no_disparity(
        judged, outcome=outcome, by=by, cluster="persona", alpha=alpha / len(letter_options.wording)
    )


@pytest.mark.fairness(id="letters.baseline")
def test_baseline(
    trials: pd.DataFrame, report_status: Report, letter_options: LetterOptions
) -> None:
    """The scores are no worse than those that were approved."""
    if not letter_options.baseline:
        report_status(None)
        pytest.skip(SkipReason("letters.yaml has baseline: false"))
    try:
        finding = assert_baseline(trials, score="letter_score", threshold=PASS_THRESHOLD)
    except FairnessFailure as failure:
        report_status(failure.finding)
        raise
    except MissingBaselineError:
        report_status("no baseline is approved yet")
        raise
    report_status(finding)
