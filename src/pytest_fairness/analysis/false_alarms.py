"""How likely a system that treats everybody alike turns a test, or a whole session, red.

A bound from normal theory, checked by simulation (``docs/calibration.md``): the family of an assertion at alpha, its
templates by themselves at a fifth of alpha. An alarm that is looked at again has to be raised by the first sample and,
at half of alpha, by both together, whose statistics correlate by √½ (Pocock 1977, Biometrika 64:191). Standard library
only.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import prod, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

from pytest_fairness.analysis.policy import ALPHA, CONFIRMED, TEMPLATE_ALPHA

if TYPE_CHECKING:
    from pytest_fairness.model import Finding

_STEP = 0.01
_FAR = 6.0


@cache
def chance(alpha: float = ALPHA, *, confirmed: bool = False) -> float:
    """That an assertion at *alpha* raises the alarm about a fair system, at most; *confirmed*: and it stands.

    The bound is that of a family of one test, for larger ones are less likely to alarm twice.
    """
    levels = (alpha, TEMPLATE_ALPHA * alpha)
    # The second term: another test than the first sample's.
    return sum(_twice(level) + CONFIRMED * level**2 for level in levels) if confirmed else sum(levels)


def _twice(alpha: float) -> float:
    """That a test is significant in the first sample at *alpha*, and in both samples at its share."""
    normal = NormalDist()
    first, both = (normal.inv_cdf(1 - share * alpha / 2) for share in (1, CONFIRMED))
    # Given the statistic of both, that of the first is normal around it over √2, with variance one half.
    places = (both + _STEP * (at + 0.5) for at in range(int(_FAR / _STEP)))
    return 2 * sum(normal.pdf(z) * normal.cdf((z / sqrt(2) - first) * sqrt(2)) * _STEP for z in places)


def of_session(chances: Iterable[float]) -> float:
    """That at least one of several assertions raises the alarm about a fair system."""
    return 1 - prod(1 - one for one in chances)


def of_finding(finding: Finding) -> float | None:
    """What holds for the assertion of *finding*; None where nothing is known, as of a bare ratio."""
    told = finding.family.get("alpha" if finding.assertion == "baseline" else "false_alarm")
    return float(told) if isinstance(told, (int, float)) and not isinstance(told, bool) else None


def words(share: float) -> str:
    """``14 %``, ``1.3 %``."""
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.1f} %"
