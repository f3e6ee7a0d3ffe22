"""Findings of the benchmark beyond preferences: what deserves a second look, each as one finding with its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pytest_fairness.analysis.provenance import stamp
from pytest_fairness.analysis.sentences import p_words
from pytest_fairness.asserts import conclude
from pytest_fairness.context import current_test
from pytest_fairness.model import Finding, OutcomeKind, PairResult, Verdict, to_json
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.suites.selection.results import (
    ArmResult,
    GroupsCompared,
    Interaction,
    ScrubberQuality,
    SelectionResults,
)

if TYPE_CHECKING:
    import pandas as pd

#: From this share of choices on, for the first or for the second, the position leaves little to see a preference by.
DECIDED_BY_POSITION = 0.9
ALPHA = 0.05
#: Shares of one group that differ by less between two levels are not worth minding, however sure.
SPREAD = 0.05


def order_findings(results: SelectionResults, frame: pd.DataFrame) -> Iterator[Finding]:
    """See :func:`order_finding`, for every arm."""
    made = (order_finding(result, frame[frame["arm"] == result.arm]) for result in results.arms)
    return (finding for finding in made if finding is not None)


def order_finding(result: ArmResult, frame: pd.DataFrame) -> Finding | None:
    """A FLAG where the position decides nearly every choice; None otherwise: an order effect by itself is no bias.

    Every pair meets in both orders, so the position favours no group; it can only hide a preference.
    """
    order = result.order
    if order is None or order.share.value is None:
        return None
    first = order.share.value
    if 1 - DECIDED_BY_POSITION < first < DECIDED_BY_POSITION:
        return None
    where = "first" if first > 0.5 else "second"
    share = max(first, 1 - first)
    return stamp(
        Finding(
            assertion="order_effect",
            verdict=Verdict.FLAG,
            sentence=(
                f"FLAG: in arm {result.arm} the candidate listed {where} is chosen in {100 * share:.1f} % of "
                f"{order.share.n} trials, whoever it is, so that little is left to see a preference by."
            ),
            outcome="chosen",
            kind=OutcomeKind.BINARY,
            p_value=order.p_value,
            corrected_p_value=order.p_value,
            details={"order_effect": to_json(order)},
        ),
        frame,
    )


def interaction_findings(results: SelectionResults, frame: pd.DataFrame) -> Iterator[Finding]:
    """See :func:`interaction_finding`, for every arm."""
    made = (interaction_finding(result, frame[frame["arm"] == result.arm]) for result in results.arms)
    return (finding for finding in made if finding is not None)


def interaction_finding(result: ArmResult, frame: pd.DataFrame) -> Finding | None:
    """A FLAG where the preference between groups depends on the context; None where no sign of it was found.

    One family: every axis, between all groups and by each of their classes (Holm). A pass on the whole is then not the
    last word: preferences that turn round between two criteria even out.
    """
    tested = [one for one in result.interactions if one.p_value is not None]
    corrected = correct([float(one.p_value or 0.0) for one in tested], "holm").tolist() if tested else []
    flagged = [(one, q) for one, q in zip(tested, corrected, strict=True) if q < ALPHA and _widest(one)[1] >= SPREAD]
    if not flagged:
        return None
    worst, q = min(flagged, key=lambda pair: pair[1])
    group, spread, low, high = _widest(worst)
    return stamp(
        Finding(
            assertion="interaction",
            verdict=Verdict.FLAG,
            sentence=(
                f"FLAG: in arm {result.arm} who is chosen depends on {worst.axis}: {group} is chosen in "
                f"{low[1]:.1f} % of its trials for {low[0]!r} and in {high[1]:.1f} % for {high[0]!r} "
                f"({100 * spread:.1f} points, corrected {p_words(q)})."
            ),
            protected_class=worst.by,
            outcome="chosen",
            kind=OutcomeKind.BINARY,
            p_value=worst.p_value,
            corrected_p_value=q,
            pairs=tuple(_pair(one, value) for one, value in flagged),
            family={"size": len(tested), "method": "holm", "alpha": ALPHA, "metrics": ["chosen"]},
            details={"interactions": to_json(result.interactions)},
        ),
        frame,
    )


def _widest(found: Interaction) -> tuple[str, float, tuple[str, float], tuple[str, float]]:
    """The group whose share varies most between levels: by how much, and its lowest and highest level in per cent."""
    by_group: dict[str, list[tuple[str, float]]] = {}
    for level in found.levels:
        for one in level.shares:
            if one.share.value is not None:
                by_group.setdefault(one.group, []).append((level.level, 100 * one.share.value))
    group, shares = max(by_group.items(), key=lambda item: _range(item[1]))
    low, high = (end(shares, key=lambda pair: pair[1]) for end in (min, max))
    return group, _range(shares) / 100, low, high


def _range(shares: list[tuple[str, float]]) -> float:
    values = [share for _, share in shares]
    return max(values) - min(values)


def _pair(found: Interaction, corrected: float) -> PairResult:
    group, spread, low, high = _widest(found)
    return PairResult(
        group_1=f"{group}, {low[0]}",
        group_2=f"{group}, {high[0]}",
        metric=f"chosen by {found.axis}",
        verdict=Verdict.FLAG,
        p_value=float(found.p_value or 0.0),
        corrected_p_value=corrected,
        difference=-spread,
        test="likelihood ratio of the interaction, and F on clusters",
        statistics={"likelihood_ratio": found.likelihood_ratio, "df": found.df, "clustered_p": found.clustered_p},
    )


def scrubber_findings(quality: ScrubberQuality, frame: pd.DataFrame) -> Iterator[Finding]:
    """Between all groups: what is removed of all signals together, and what is left of the content.

    Each kind of signal, and each class of the groups, is in the results: parts of the same whole are no further tests.
    """
    for found in (*quality.recall[:1], *quality.content[:1]):
        if found.verdict is not None:
            yield stamp(_of_shares(quality.arm, found), frame)


def _of_shares(arm: str, found: GroupsCompared) -> Finding:
    verdict = found.verdict or Verdict.INCONCLUSIVE
    return Finding(
        assertion="scrubber_quality",
        verdict=verdict,
        reason=found.reason,
        sentence=found.sentence or f"{verdict}: {found.what} by {found.by} in arm {arm}.",
        protected_class=found.by,
        outcome=found.what,
        kind=OutcomeKind.BINARY,
        n_per_group={one.group: one.share.n for one in found.shares},
        p_value=found.p_value,
        corrected_p_value=found.corrected_p_value,
        details={"arm": arm, "compared": to_json(found)},
    )


def conclude_worst(findings: Iterable[Finding]) -> None:
    """Hand all *findings* to the running test, and do what the worst of them asks for."""
    ordered = sorted(findings, key=lambda finding: finding.verdict.severity)
    test = current_test()
    for finding in ordered[:-1]:
        if test is not None:
            test.emit(finding)
    if ordered:
        conclude(ordered[-1])
