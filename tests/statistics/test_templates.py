"""Each template by itself: what raises the alarm, what leaves a PASS open, and what is no evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pytest_fairness.model import Finding, OutcomeKind, Reason, Verdict
from pytest_fairness.statistics.corrections import correct

from .test_missing import judged, pair_of, table


def moved(frame: pd.DataFrame, by: float, template: str = "t0", group: str = "b") -> pd.DataFrame:
    """*frame* with one group lower in one template."""
    here = (frame["group"] == group) & (frame["template"] == template)
    return frame.assign(score=frame["score"] - by * here)


def own(
    finding: Finding, template: str = "t0", pair: tuple[str, str] = ("a", "b")
) -> dict[str, Any]:
    blocks: Any = finding.details["by_block"]
    return next(
        one for one in blocks if (one["block"], one["group_1"], one["group_2"]) == (template, *pair)
    )


def holm_over_all(finding: Finding) -> float:
    """The corrected p of the first template and pair."""
    blocks: Any = finding.details["by_block"]
    return float(correct([one["p_value"] for one in blocks], "holm")[0])


def test_one_name_in_a_template_is_no_evidence_about_it() -> None:
    """Names nested in templates: ten copies of one name each, three standard deviations apart in
    one of them.
    """
    frame = table(0, 0, names=5, templates=1, repetitions=20)
    frame = frame.assign(template=[f"t{name[1:]}" for name in frame["name"]])
    finding = judged(moved(frame, 3.0))
    assert own(finding)["p_value"] == 1
    assert not own(finding)["alarm"]


@pytest.mark.parametrize(
    ("by", "verdict", "reason"),
    [(0.3, Verdict.PASS, None), (0.48, Verdict.PASS, None), (0.6, Verdict.FLAG, None)],
)
def test_a_template_alarms_below_a_fifth_of_alpha(
    by: float, verdict: Verdict, reason: Reason | None
) -> None:
    """At .48 the template's corrected p is below .05, and not below .01."""
    finding = judged(moved(table(0, 0, seed=2), by))
    assert (pair_of(finding).verdict, pair_of(finding).reason) == (verdict, reason)
    assert own(finding)["alarm"] is (verdict is Verdict.FLAG)
    if by == 0.48:
        assert 0.01 < holm_over_all(finding) < 0.05


def test_a_template_that_only_its_own_pair_doubts_leaves_a_pass_open() -> None:
    """Below .01 among the five templates of the pair, above it among the fifteen of three pairs."""
    finding = judged(moved(table(0, 0, 0, seed=2), 0.58))
    assert holm_over_all(finding) > 0.01
    pair = pair_of(finding)
    assert (pair.verdict, pair.reason) == (Verdict.INCONCLUSIVE, Reason.TEMPLATE)
    assert "'t0'" in str(pair.needs)


def test_a_small_sure_difference_in_a_template_is_no_alarm() -> None:
    """d under .5 there, however sure."""
    finding = judged(moved(table(0, 0, names=100, templates=2, repetitions=5, seed=3), 0.4))
    assert own(finding)["p_value"] < 1e-4
    assert 0.2 < abs(own(finding)["effect"]) < 0.5
    assert not own(finding)["alarm"]
    assert pair_of(finding).verdict is Verdict.PASS


def test_templates_too_small_to_alarm_count_in_the_correction() -> None:
    """Sixty templates with two rows of each group stand beside the one whose own p is .0007: each
    is a test.
    """
    frame = moved(table(0, 0, seed=2), 0.6)
    alone = judged(frame)
    assert own(alone)["alarm"]
    few = pd.DataFrame(
        [
            {"group": g, "name": f"{g}{n}", "template": f"s{t}", "repetition": 0, "score": float(np.sin(7 * t + n)),
             "refused": False}
            for t in range(60) for n in (0, 1) for g in "ab"
        ]
    )  # fmt: skip
    beside = judged(pd.concat([frame, few], ignore_index=True))
    assert own(beside)["p_value"] == pytest.approx(own(alone)["p_value"])
    assert not own(beside)["alarm"]


def test_a_finding_of_the_whole_names_the_template_and_stays() -> None:
    frame = moved(table(0, 0.9, seed=2), -2.5)
    pair = pair_of(judged(frame))
    assert pair.verdict is Verdict.FAIL
    assert any("by itself raises the alarm" in note for note in pair.notes)


def test_one_wild_reply_hides_no_template() -> None:
    """Within a template, too, the larger of the two effects is read."""
    frame = moved(table(0, 0, seed=2), 1.2)
    wild = np.flatnonzero((frame["group"] == "b") & (frame["template"] == "t0"))[3]
    frame.loc[wild, "score"] = 1000.0
    finding = judged(frame)
    assert own(finding)["alarm"]
    assert abs(own(finding)["effect"]) > 0.5


def test_refusals_are_not_judged_template_by_template() -> None:
    """What only raises the alarm does so as a whole: refusals of one group in one template are few."""
    frame = table(0, 0, seed=2)
    here = (frame["group"] == "b") & (frame["template"] == "t0") & (frame["repetition"] == 0)
    finding = judged(frame.assign(refused=here, score=frame["score"].where(~here)))
    assert len(finding.details["by_block"]) == 5  # type: ignore[arg-type]
    assert OutcomeKind.REFUSAL.value in {pair.metric for pair in finding.pairs}
