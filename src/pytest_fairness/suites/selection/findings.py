"""Findings of the benchmark beyond preferences: what deserves a second look, each as one finding
with its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pytest_fairness import Finding, OutcomeKind, conclude
from pytest_fairness.analysis.checks import checked
from pytest_fairness.analysis.choice_effects import (
    group_results,
    interaction_finding,
    order_finding,
)
from pytest_fairness.model import to_json
from pytest_fairness.running_test import current_test
from pytest_fairness.suites.selection.results import ScrubberQuality, SelectionResults

if TYPE_CHECKING:
    import pandas as pd


def order_findings(results: SelectionResults, frame: pd.DataFrame) -> Iterator[Finding]:
    """Yield a finding for each arm where the position decides nearly every choice."""
    for arm in results.arms:
        finding = order_finding(arm.order, frame[frame["arm"] == arm.arm], arm.arm)
        if finding is not None:
            yield finding


def interaction_findings(results: SelectionResults, frame: pd.DataFrame) -> Iterator[Finding]:
    """Yield a finding for each arm where the preference between groups depends on the context; the
    arms share the level of one test.
    """
    alpha = results.alpha / len(results.arms)
    for arm in results.arms:
        trials = frame[frame["arm"] == arm.arm]
        finding = interaction_finding(arm.interactions, trials, arm.arm, alpha=alpha)
        if finding is not None:
            yield finding


def scrubber_findings(quality: ScrubberQuality, frame: pd.DataFrame) -> Iterator[Finding]:
    """Between all groups: what is removed of all signals together, and what is left of the content.

    Each kind of signal, and each class of the groups, is in the results: parts of the same whole
    are no further tests.
    """
    for compared in (*quality.recall[:1], *quality.content[:1]):
        if compared.verdict is None:
            continue
        groups = group_results([(share.group, share.share) for share in compared.shares], frame)
        yield checked(
            frame,
            assertion="scrubber_quality",
            verdict=compared.verdict,
            words=compared.sentence.removeprefix(f"{compared.verdict}: ").removesuffix("."),
            reason=compared.reason,
            protected_class=compared.by,
            outcome=compared.what,
            kind=OutcomeKind.BINARY,
            n_per_group={group.group: group.n for group in groups},
            group_results=groups,
            test_statistic=compared.test_statistic,
            effect_size=compared.effect_size,
            p_value=compared.p_value,
            corrected_p_value=compared.corrected_p_value,
            details={"arm": quality.arm, "compared": to_json(compared)},
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
