"""Findings of the benchmark beyond preferences: what deserves a second look, each as one finding
with its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.checks import checked
from pytest_fairness.asserts import conclude
from pytest_fairness.model import Finding, GroupResult, OutcomeKind, PairResult, Verdict, to_json
from pytest_fairness.running_test import current_test
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.selection_rates import Rate
from pytest_fairness.suites.selection.choice_table import Record
from pytest_fairness.suites.selection.scrubber import JUDGED
from pytest_fairness.words import p_equals, percent

if TYPE_CHECKING:
    import pandas as pd

#: From this share of choices on, for the first or for the second, the position leaves little to see
#: a preference by.
DECIDED_BY_POSITION = 0.9
ALPHA = 0.05
#: Shares of one group that differ by less between two levels are trivial, however sure.
SPREAD = 0.05


def order_findings(results: Record, frame: pd.DataFrame) -> Iterator[Finding]:
    """A FLAG for each arm where the position decides nearly every choice: an order effect by itself
    is no bias.

    Every pair meets in both orders, so the position favours no group; it can only hide a
    preference.
    """
    for arm in results.arms:
        first = None
        if arm.order is not None:
            first = arm.order.share.value
        if first is None or max(first, 1 - first) < DECIDED_BY_POSITION:
            continue
        rows = frame[frame["arm"] == arm.arm]
        share = arm.order.share
        place = "second"
        if first > 0.5:
            place = "first"
        yield checked(
            rows,
            assertion="order_effect",
            verdict=Verdict.FLAG,
            words=(
                f"in arm {arm.arm} the candidate listed {place} is chosen in "
                f"{percent(max(first, 1 - first))} of {share.n} trials, whoever it is, so that "
                "little is left to see a preference by"
            ),
            outcome="chosen",
            kind=OutcomeKind.BINARY,
            **_groups([("listed first", share)], rows),
            test_statistic=_ratio_words(arm.order),
            effect_size=f"log odds of standing first = {arm.order.log_odds:.2f}",
            p_value=arm.order.p_value,
            corrected_p_value=arm.order.p_value,
            details={"order_effect": to_json(arm.order)},
        )


def interaction_findings(results: Record, frame: pd.DataFrame) -> Iterator[Finding]:
    """A FLAG for each arm where the preference between groups depends on the context.

    A family an arm: every axis, between all groups and by each of their classes (Holm). A pass on
    the whole is then not the last word: preferences that turn round between two criteria even out.
    """
    for arm in results.arms:
        tested = [
            interaction for interaction in arm.interactions if interaction.p_value is not None
        ]
        corrected = []
        if tested:
            corrected = correct([interaction.p_value for interaction in tested], "holm").tolist()
        judged = [
            (interaction, q, *_widest(interaction))
            for interaction, q in zip(tested, corrected, strict=True)
            if q < ALPHA
        ]
        flagged = [flag for flag in judged if flag[4][0] - flag[3][0] >= SPREAD]
        if not flagged:
            continue
        pairs = [
            PairResult(
                group_1=f"{group}, {low[1]}",
                group_2=f"{group}, {high[1]}",
                metric=f"chosen by {interaction.axis}",
                verdict=Verdict.FLAG,
                p_value=interaction.p_value,
                corrected_p_value=q,
                difference=low[0] - high[0],
                test="likelihood ratio of the interaction, and F on clusters",
                statistics={
                    name: interaction[name] for name in ("likelihood_ratio", "df", "clustered_p")
                },
            )
            for interaction, q, group, low, high in flagged
        ]
        interaction, q, group, low, high = min(flagged, key=lambda both: both[1])
        rows = frame[frame["arm"] == arm.arm]
        shares = [
            (f"{share.group}, {level.level}", share.share)
            for level in interaction.levels
            for share in level.shares
        ]
        yield checked(
            rows,
            assertion="interaction",
            verdict=Verdict.FLAG,
            words=(
                f"in arm {arm.arm} who is chosen depends on {interaction.axis}: {group} is chosen "
                f"in {percent(low[0])} of its trials for {low[1]!r} and in {percent(high[0])} "
                f"for {high[1]!r} "
                f"({100 * (high[0] - low[0]):.1f} points, corrected {p_equals(q)})"
            ),
            protected_class=interaction.by,
            outcome="chosen",
            kind=OutcomeKind.BINARY,
            **_groups(shares, rows),
            test_statistic=_ratio_words(interaction),
            effect_size=f"widest difference of shares = {high[0] - low[0]:.3f} ({group})",
            p_value=interaction.p_value,
            corrected_p_value=q,
            pairs=tuple(pairs),
            family={"size": len(tested), "method": "holm", "alpha": ALPHA, "metrics": ["chosen"]},
            details={"interactions": to_json(arm.interactions)},
        )


def _groups(shares: Iterable[tuple[str, Rate]], rows: pd.DataFrame) -> dict[str, Any]:
    """The fields of a finding about its groups: each a share of the choices in *rows*, with their
    pairs of names.
    """
    names = int(rows["name"].nunique())
    groups = [
        GroupResult(
            group=group, n=rate.n, clusters=names, value=rate.value, low=rate.low, high=rate.high
        )
        for group, rate in shares
    ]
    return {
        "n_per_group": {group.group: group.n for group in groups},
        "group_results": tuple(groups),
    }


def _ratio_words(tested: Record) -> str:
    return f"likelihood ratio = {tested.likelihood_ratio:.4f}, df = {tested.df}"


def _widest(interaction: Record) -> tuple[str, tuple[float, str], tuple[float, str]]:
    """The group whose share varies most between levels, with its lowest and highest share, each
    with its level.
    """
    by_group: dict[str, list[tuple[float, str]]] = {}
    for level in interaction.levels:
        for group_share in level.shares:
            if group_share.share.value is not None:
                by_group.setdefault(group_share.group, []).append(
                    (group_share.share.value, level.level)
                )
    ends = ((group, min(shares), max(shares)) for group, shares in by_group.items())
    return max(ends, key=lambda end: end[2][0] - end[1][0])


def scrubber_findings(quality: Record, frame: pd.DataFrame) -> Iterator[Finding]:
    """Between all groups: what is removed of all signals together, and what is left of the content.

    Each kind of signal, and each class of the groups, is in the results: parts of the same whole
    are no further tests.
    """
    for quality_ in (*quality.recall[:1], *quality.content[:1]):
        if quality_.verdict is not None:
            judged = {name: quality_[name] for name in (*JUDGED, "sentence")}
            words = str(judged.pop("sentence")).removeprefix(f"{quality_.verdict}: ")
            yield checked(
                frame,
                assertion="scrubber_quality",
                words=words.removesuffix("."),
                protected_class=quality_.by,
                outcome=quality_.what,
                kind=OutcomeKind.BINARY,
                **_groups([(share.group, share.share) for share in quality_.shares], frame),
                details={"arm": quality.arm, "compared": to_json(quality_)},
                **judged,
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
