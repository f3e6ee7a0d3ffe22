"""What an arm changes against another: the prompt alone, scrubbing beyond it, both together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_fairness.analysis.arms import analyze_arms
from pytest_fairness.model import JSON, PairResult
from pytest_fairness.suites.selection.design import GROUP, margins_of
from pytest_fairness.suites.selection.reading import Classes, blocks, clusters
from pytest_fairness.suites.selection.results import ArmContrast, ContrastPair, Disparity

if TYPE_CHECKING:
    import pandas as pd

Contrast = tuple[str, str, str]
"""The treated arm, the control, and what the difference between them isolates."""
_UNITS = {"cluster": "name pair", "block": "context"}


def contrasts_of(
    frame: pd.DataFrame, wanted: Sequence[Contrast], classes: Classes, *, alpha: float, correction: str
) -> tuple[ArmContrast, ...]:
    """Each contrast, between the groups and by each of their classes, whose verdicts are those of the tests."""
    of_class = {by: {group: known[by] for group, known in classes.items()} for by in margins_of(classes)}
    return tuple(
        _contrast(frame[frame["arm"].isin(contrast[:2])], contrast, by, of_class.get(by), alpha, correction)
        for contrast in wanted
        for by in (GROUP, *of_class)
    )


def _contrast(
    table: pd.DataFrame,
    contrast: Contrast,
    by: str,
    classes: Mapping[str, str] | None,
    alpha: float,
    correction: str,
) -> ArmContrast:
    treated, control, isolates = contrast
    finding = analyze_arms(
        table,
        treated=treated,
        control=control,
        by=by,
        classes=classes,
        cluster=clusters(table),
        block=blocks(table),
        alpha=alpha,
        correction=correction,
    )
    return ArmContrast(
        treated=treated,
        control=control,
        isolates=isolates,
        by=by,
        pairs=tuple(_pair(pair) for pair in finding.pairs if not pair.alarm_only),
        verdict=finding.verdict,
        reason=finding.reason,
        sentence=finding.sentence,
    )


def _pair(pair: PairResult) -> ContrastPair:
    s = pair.statistics
    if "control" not in s:
        return ContrastPair(
            group_1=pair.group_1,
            group_2=pair.group_2,
            corrected_p_value=pair.corrected_p_value,
            units=0,
            unit="",
            verdict=pair.verdict,
            reason=pair.reason,
        )
    change = Disparity(
        value=pair.difference or 0.0, low=_of(s["change_low"]), high=_of(s["change_high"]), p_value=pair.p_value
    )
    control, treated = _disparity(s, "control"), _disparity(s, "treated")
    up = control.value >= 0
    return ContrastPair(
        group_1=pair.group_1,
        group_2=pair.group_2,
        control=control,
        treated=treated,
        change=change,
        reduction=-change.value if up else change.value,
        reduction_low=-change.high if up else change.low,
        reduction_high=-change.low if up else change.high,
        corrected_p_value=pair.corrected_p_value,
        units=int(_of(s["units"])),
        unit=_UNITS[str(s["unit"])],
        verdict=pair.verdict,
        reason=pair.reason,
    )


def _disparity(s: Mapping[str, JSON], arm: str) -> Disparity:
    value, low, high, p = (_of(s[f"{arm}{part}"]) for part in ("", "_low", "_high", "_p_value"))
    return Disparity(value=value, low=low, high=high, p_value=p)


def _of(value: JSON) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
