"""Several outcomes of one table as one family: each is compared at its share of the level, a
finding of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.errors import UsageError, refuse_twice
from pytest_fairness.model import Finding, Verdict

if TYPE_CHECKING:
    import pandas as pd

#: Arguments that say something of one outcome, and so cannot be said of several.
_OF_ONE = ("kind", "min_raw_diff", "min_raw_ratio", "lower_is_worse", "favourable")


def analyze_outcomes(
    frame: pd.DataFrame,
    outcomes: Sequence[str | Callable[..., Any]],
    by: str | Sequence[str],
    *,
    alpha: float = 0.05,
    **arguments: Any,
) -> tuple[Finding, ...]:
    """Compare each of *outcomes* between all pairs of groups of *by*, all of them as one family at
    *alpha*.

    Each is judged at alpha divided by their number (Bonferroni), and within that as by
    :func:`pytest_fairness.analyze_disparity`, whose *arguments* they share. Raises what that
    raises, and UsageError for no outcomes, one that stands twice, and an argument that is about one
    of them.
    """
    return tuple(
        shared_by(analyze_disparity(frame, outcome, by, alpha=level, **arguments), outcomes)
        for outcome, level in levels(outcomes, alpha, arguments)
    )


def fairness_verdict(
    frame: pd.DataFrame,
    outcomes: Sequence[str | Callable[..., Any]],
    by: str | Sequence[str],
    **arguments: Any,
) -> tuple[bool, list[str]]:
    """Return whether every one of *outcomes* passes, and a sentence for each that does not:
    ``passed, issues``.

    For a pipeline of one's own, where nothing is to be raised. INCONCLUSIVE is no pass: it is among
    the issues, as the first word of its sentence. The arguments are those of
    :func:`analyze_outcomes`.
    """
    findings = analyze_outcomes(frame, outcomes, by, **arguments)
    issues = [finding.sentence for finding in findings if finding.verdict is not Verdict.PASS]
    return not issues, issues


def levels(
    outcomes: Sequence[str | Callable[..., Any]], alpha: float, arguments: Any
) -> list[tuple[str | Callable[..., Any], float]]:
    """Each outcome with the level at which it is judged. Raises UsageError."""
    if isinstance(outcomes, str) or not outcomes:
        raise UsageError(
            f"outcome={outcomes!r}: give a list of one or more outcomes, or one outcome by itself"
        )
    refuse_twice("outcome: the same outcome", list(map(str, outcomes)))
    given = [name for name in _OF_ONE if arguments.get(name) not in (None, "auto")]
    if given and len(outcomes) > 1:
        raise UsageError(
            f"{given[0]}= is about one outcome, and outcome= names {len(outcomes)}: assert that "
            "one by itself, at its "
            f"share of the level (alpha={alpha / len(outcomes):g})"
        )
    return [(outcome, alpha / len(outcomes)) for outcome in outcomes]


def shared_by(finding: Finding, outcomes: Sequence[str | Callable[..., Any]]) -> Finding:
    """*finding* with a note on the family of outcomes that it is one of."""
    if len(outcomes) == 1:
        return finding
    level = finding.family.get("alpha")
    note = (
        f"one of {len(outcomes)} outcomes that share their level as one family: this one is judged "
        f"at {level:g}"
    )
    return replace(finding, notes=(*finding.notes, note))
