"""Figures of the selection page as short words, and what the arms are called in plain language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.reports.figures import effect, percent
from pytest_fairness.suites.selection.results import ArmContrast, Disparity, Share

#: 95 % of a normal distribution lie within so many standard errors.
NORMAL = 1.959964

_ARMS: Mapping[str, str] = {
    "raw_naive": "the candidates as they are, no system prompt",
    "raw_matched": "the candidates as they are, with the evaluator's system prompt",
    "scrubbed": "the candidates' text scrubbed by the model first, then judged with the evaluator's system prompt",
    "scrubbed_by_rule": "the candidates' text scrubbed by rules first, then judged with the evaluator's system prompt",
    "placebo": "all candidates under names of one group: there is nothing to prefer",
}


def arm_words(arm: str) -> str:
    """What is done in *arm*; empty for one of the project's own."""
    return _ARMS.get(arm, "")


def concluding(contrasts: Sequence[ArmContrast]) -> tuple[ArmContrast, ...]:
    """Those of *contrasts* that a test judges: by the classes of the groups; by the groups where they share none."""
    crossed = {(one.treated, one.control) for one in contrasts if one.by != "group"}
    return tuple(one for one in contrasts if one.by != "group" or (one.treated, one.control) not in crossed)


def about_class(by: str) -> str:
    """``, by race ethnicity``; empty where the groups themselves are compared."""
    return "" if by == "group" else f", by {by.replace('_', ' ')}"


def share_words(share: Share) -> str:
    """``62.5 %``; a dash where there is nothing."""
    return percent(share.value)


def interval_words(share: Share) -> str:
    return "–" if share.low is None or share.high is None else f"{percent(share.low)} to {percent(share.high)}"


def points(number: float | None) -> str:
    """A difference of shares: ``+12.5``, in percentage points."""
    return "–" if number is None else f"{100 * number:+.1f}".replace("-", "−")


def point_interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{points(low)} to {points(high)}"


def effect_interval(low: float | None, high: float | None) -> str:
    """``−0.20 to +0.61``."""
    return "–" if low is None or high is None else f"{effect(low)} to {effect(high)}"


def disparity_words(found: Disparity | None) -> str:
    return "–" if found is None else points(found.value)


def disparity_interval(found: Disparity | None) -> str:
    return "–" if found is None else point_interval(found.low, found.high)


def count(number: int, noun: str) -> str:
    """``1 trial``, ``6,480 trials``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(words: tuple[str, ...]) -> str:
    return ", ".join(words) or "–"
