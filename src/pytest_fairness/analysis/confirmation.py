"""A second look: before an alarm stands, an equal sample on other names is drawn and both are
judged together.

Two stages, the second on all the data (Pocock 1977, Biometrika 64:191): every pair is judged again
on both samples, the alarm at half of alpha, a PASS by the interval of both. A fair system has to
look unfair twice, in a sample twice as large, and a true difference is found more often. See
``docs/decisions/0071-confirming-an-alarm.md``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_fairness.analysis.explanations import explain
from pytest_fairness.analysis.false_alarms import CONFIRMED
from pytest_fairness.analysis.sentences import sure
from pytest_fairness.model import ALARMS, JSON, Finding, to_json
from pytest_fairness.running_test import FreshSample
from pytest_fairness.trials_frame import any_text

if TYPE_CHECKING:
    import pandas as pd


def alarm_of(analysis: str, alpha: float) -> dict[str, float]:
    """The arguments of *analysis* under which the second look raises the alarm: a share of *alpha*;
    it passes as before."""
    if analysis == "equivalence":
        return {"_alarm_share": CONFIRMED}
    return {"alpha": alpha * CONFIRMED}


def together(frame: pd.DataFrame, sample: FreshSample) -> pd.DataFrame:
    """Both samples in one table, which carries the design of the first."""
    import pandas as pd

    parts = [frame.astype(object), sample.frame.astype(object)]
    with any_text():
        both: pd.DataFrame = pd.concat(parts, ignore_index=True).infer_objects()
    for column in frame.columns:
        # Text stays text: a column that is empty in one of the two must not change its kind.
        if both[column].dtype != frame[column].dtype:
            try:
                both[column] = both[column].astype(frame[column].dtype)
            except (TypeError, ValueError):
                continue
    both.attrs = dict(frame.attrs)
    return both


def confirmed(first: Finding, both: Finding, sample: FreshSample) -> Finding:
    """*both*, the finding on the two samples together, with what the *first* sample alone raised."""
    stands = both.verdict in ALARMS
    at_first = _at_first(first)
    cleared = (
        f". The first sample alone raised an alarm that {sample.about} did not bear out: "
        f"{at_first}."
    )
    word = "not confirmed"
    if stands:
        word = "confirmed"
    names = (
        *("group_1", "group_2", "metric", "verdict", "p_value", "corrected_p_value"),
        *("effect", "effect_low", "effect_high", "difference"),
    )
    alarms = [pair for pair in first.pairs if pair.verdict in ALARMS]
    details: dict[str, JSON] = {
        "confirmed": stands,
        "sample": sample.about,
        "first": {
            **_summary(first),
            "sentence": first.sentence,
            "pairs": [{name: to_json(getattr(pair, name)) for name in names} for pair in alarms],
        },
        "both": _summary(both),
    }
    changed = replace(
        both,
        sentence=both.sentence.removesuffix(".")
        + (f"; confirmed with {sample.about}." if stands else cleared),
        notes=(
            *both.notes,
            f"{word}: judged on the first sample and {sample.about} together; at first: {at_first}",
        ),
        details={**both.details, "confirmation": details},
    )
    return replace(changed, explanation=explain(changed))


def unread_groups(first: Finding, both: Finding) -> list[str]:
    """The groups of which *both*, the finding on two samples, has read no more than the *first*
    had.
    """
    return [group for group, n in both.n_per_group.items() if n <= first.n_per_group.get(group, 0)]


def unconfirmed(finding: Finding, why: str) -> Finding:
    """*finding* as it is, marked: an alarm is never lost because it could not be looked at again."""
    return replace(
        finding,
        notes=(*finding.notes, f"unconfirmed, so it stands as it is: {why}"),
        details={**finding.details, "confirmation": {"confirmed": None, "why": why}},
    )


def _at_first(first: Finding) -> str:
    """Return what the first sample found, in a clause."""
    worst = [pair for pair in first.pairs if pair.verdict is first.verdict]
    if not worst:
        return first.sentence.rstrip(".")
    pair = min(worst, key=lambda pair: (pair.alarm_only, pair.corrected_p_value))
    worse, other = pair.group_1, pair.group_2
    if pair.worse_off == pair.group_2:
        worse, other = other, worse
    certainty = sure(pair, of=pair.worse_off)
    return f"{first.verdict}, {worse} against {other} on {pair.metric} ({certainty})"


def _summary(finding: Finding) -> dict[str, JSON]:
    alpha = finding.family.get("alpha")
    return {
        "verdict": finding.verdict.value,
        "n_per_group": dict(finding.n_per_group),
        "alpha": alpha,
    }
