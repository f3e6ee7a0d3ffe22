"""Several outcomes share one level: each is a finding, and the family is no easier to fail than one
outcome.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pytest_fairness import (
    FairnessFailure,
    UsageError,
    Verdict,
    analyze_disparity,
    analyze_outcomes,
    assert_no_disparity,
    fairness_verdict,
)


def table(shift: float, words: float = 0.0, names: int = 20) -> pd.DataFrame:
    """Two groups that differ by *shift* SD in tone and by *words* SD in words."""
    rng = np.random.default_rng(5)
    rows = [
        {"group": group, "name": f"{group}{name}", "template": f"t{text}",
         "tone": rng.normal() + shift * (group == "a"), "words": rng.normal() + words * (group == "a")}
        for group in "ab" for name in range(names) for text in range(5)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_each_outcome_is_judged_at_its_share_of_the_level() -> None:
    findings = analyze_outcomes(table(0.3), ["tone", "words"], "group")
    assert [finding.outcome for finding in findings] == ["tone", "words"]
    assert [finding.family["alpha"] for finding in findings] == [0.025, 0.025]
    for finding in findings:
        alone = analyze_disparity(table(0.3), finding.outcome, "group", alpha=0.025)
        assert (finding.verdict, finding.p_value, finding.pairs) == (
            alone.verdict,
            alone.p_value,
            alone.pairs,
        )
        assert (
            "one of 2 outcomes that share their level as one family: this one is judged at 0.025"
            in finding.notes
        )


def test_what_one_outcome_alone_just_raises_the_family_does_not() -> None:
    """p between .025 and .05: an alarm at the whole level, none at half of it."""
    shift = next(
        shift
        for shift in np.linspace(0, 0.6, 121)
        if 0.03
        < float(analyze_disparity(table(shift), "tone", "group").corrected_p_value or 1)
        < 0.045
    )
    alone = analyze_disparity(table(shift), "tone", "group")
    assert alone.verdict in (Verdict.FLAG, Verdict.FAIL)
    assert analyze_outcomes(table(shift), ["tone", "words"], "group")[0].verdict not in (
        Verdict.FLAG,
        Verdict.FAIL,
    )
    assert analyze_outcomes(table(shift), ["tone"], "group")[0].verdict is alone.verdict


def test_all_outcomes_are_judged_before_one_is_raised() -> None:
    with pytest.raises(FairnessFailure) as caught:
        assert_no_disparity(table(-1.5, -1.5), ["tone", "words"], "group")
    assert "on tone" in str(caught.value)
    assert "on words" in str(caught.value)
    assert caught.value.finding.verdict is Verdict.FAIL
    worst = assert_no_disparity(table(0.0, names=60), ["tone", "words"], "group")
    assert worst.verdict is Verdict.PASS


def test_a_pipeline_gets_a_pair() -> None:
    """``passed, issues``: a sentence for each outcome that does not pass, INCONCLUSIVE among them."""
    assert fairness_verdict(table(0.0, names=60), ["tone", "words"], by="group") == (True, [])
    passed, issues = fairness_verdict(table(0.0, -1.5, names=60), ["tone", "words"], by="group")
    assert (passed, len(issues)) == (False, 1)
    assert issues[0].startswith("FAIL: a is worse off than b on words")
    passed, issues = fairness_verdict(table(0.3, names=10), ["tone"], by="group")
    assert not passed
    assert issues[0].startswith("INCONCLUSIVE: ")


@pytest.mark.parametrize(
    ("outcomes", "arguments", "message"),
    [
        ([], {}, "give a list of one or more outcomes"),
        ("tone", {}, "give a list of one or more outcomes"),
        (["tone", "tone"], {}, "'tone' stands twice"),
        (["tone", "words"], {"min_raw_diff": 0.1}, "min_raw_diff= is about one outcome"),
        (["tone", "words"], {"lower_is_worse": False}, "lower_is_worse= is about one outcome"),
    ],
)
def test_what_cannot_be_shared(outcomes: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        analyze_outcomes(table(0), outcomes, "group", **arguments)
