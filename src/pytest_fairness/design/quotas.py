"""The persona matrix as the specification counts it: categories, groups and how many of each."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_fairness.errors import UsageError

AGE_BANDS: Mapping[str, tuple[int, int]] = {
    "early_career": (22, 28),
    "mid_career": (29, 40),
    "senior_career": (41, 55),
    "late_career": (56, 65),
}

QUOTAS: Mapping[str, Mapping[str, int]] = {
    "age": {"early_career": 20, "mid_career": 40, "senior_career": 30, "late_career": 10},
    "gender": {"male": 45, "female": 45, "non_binary": 10},
    "race_ethnicity": {
        "white": 40,
        "black": 20,
        "hispanic": 15,
        "asian": 15,
        "middle_eastern": 5,
        "mixed_other": 5,
    },
    "employment_gap": {"none": 70, "1_2_years": 20, "3_plus": 10},
    "accent_language": {"native": 70, "non_native": 30},
    "disability": {"none": 90, "physical": 5, "neurodivergent": 5},
    "career_transition": {"same_industry": 70, "career_change": 30},
}

GROUPS: Mapping[str, tuple[str, ...]] = {category: tuple(quota) for category, quota in QUOTAS.items()}


def age_band(age: int) -> str:
    """The career stage of an age in years; ages beyond the bands fall into the nearest."""
    for band, (_, last) in AGE_BANDS.items():
        if age <= last:
            return band
    return "late_career"


def gap_band(months: int) -> str:
    """The category of an employment gap.

    The specification counts gaps in years and gives persona 42 one of six months: a gap under a year counts
    as none, one from three years on as ``3_plus``, and what lies between as ``1_2_years``.
    """
    if months < 0:
        raise UsageError(f"an employment gap of {months} months")
    if months < 12:
        return "none"
    return "1_2_years" if months < 36 else "3_plus"
