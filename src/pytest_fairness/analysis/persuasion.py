"""Requests that a system declines at first and answers after a strategy, the verdict with these
trials and without them, and disclaimers about itself before it answers.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.policy import conclude_pairs
from pytest_fairness.model import JSON, Finding, Status
from pytest_fairness.trials_frame import DISCLAIMS, EMPTY_FIRST, REFUSED_FIRST
from pytest_fairness.words import count, effect_size, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd

    from pytest_fairness.statistics.arrays import Membership
    from pytest_fairness.statistics.compare import Metric

_MOST_GROUPS = 6


def first_refusals(frame: pd.DataFrame, design: Membership, confidence: float) -> Metric | None:
    """Refusals of the plain request, whatever a strategy made of them, with intervals of
    *confidence*; None where that is what the refusals are.
    """
    from pytest_fairness.statistics.compare import measure_share

    if REFUSED_FIRST not in frame.columns:
        return None
    answered = frame[REFUSED_FIRST].notna().to_numpy()
    refused = (frame[REFUSED_FIRST] == True).to_numpy(dtype=bool)  # noqa: E712 - None is neither
    if not bool((refused & ~design.refused).any()):
        return None
    return measure_share(design, refused, answered, confidence)


def with_persuasion(
    finding: Finding, frame: pd.DataFrame, analyze: Callable[[pd.DataFrame], Finding]
) -> Finding:
    """Return *finding* with the verdict on its outcome by all of *frame*, and by what *analyze*
    makes of it where the trials that a strategy persuaded are refused, as they were at first. Its
    own verdict stays.
    """
    persuaded = _persuaded(frame)
    if not persuaded.any() or "refused" not in frame.columns:
        return finding
    trials = int(persuaded.sum())
    declined = frame.assign(refused=frame["refused"].astype(bool) | persuaded)
    declined.loc[persuaded, "status"] = Status.REFUSED.value
    by_both = {"with": _on_outcome(finding), "without": _on_outcome(analyze(declined))}
    strategies = Counter(frame.loc[persuaded, "strategy"].dropna().tolist())
    facts: dict[str, JSON] = {
        "trials": trials,
        "strategies": dict(strategies.most_common()),
        **by_both,
    }
    note = (
        f"on {finding.outcome} itself: with the {count(trials, 'trial')} answered only after a "
        f"strategy {_in_words(by_both['with'])}; without them {_in_words(by_both['without'])}"
    )
    return replace(
        finding,
        notes=(*finding.notes, note),
        details={**finding.details, "persuasion": facts},
    )


def _on_outcome(finding: Finding) -> dict[str, JSON]:
    """Return the verdict that the pairs on the outcome of *finding* come to by themselves, and the
    effect that decides it.
    """
    verdict, reason, decider = conclude_pairs(
        pair for pair in finding.pairs if pair.metric == finding.outcome
    )
    facts: dict[str, JSON] = {"verdict": str(verdict), "reason": None, "effect": None}
    if reason is not None:
        facts["reason"] = str(reason)
    if decider is not None and not math.isnan(decider.effect):
        facts["effect"] = decider.effect
    return facts


def _in_words(facts: dict[str, JSON]) -> str:
    """Return ``INCONCLUSIVE (PRECISION; d −0.31)``."""
    beside = []
    if facts["reason"]:
        beside.append(str(facts["reason"]))
    effect = facts["effect"]
    if isinstance(effect, float):
        beside.append(f"d {effect_size(effect)}")
    if beside:
        return f"{facts['verdict']} ({'; '.join(beside)})"
    return str(facts["verdict"])


def _persuaded(frame: pd.DataFrame) -> pd.Series[Any]:
    """Return where *frame* has trials that were declined at first and answered after a strategy."""
    if "status" not in frame.columns:
        return _true(frame, "status")
    return (frame["status"] == Status.ANSWERED.value) & _true(frame, REFUSED_FIRST)


def remarks(frame: pd.DataFrame, columns: Sequence[str]) -> Iterator[str]:
    """Yield what a finding by *columns* notes: how many were answered only after which strategy,
    and how many replies carry a disclaimer, by group.
    """
    if "status" not in frame.columns:
        return
    answered = frame["status"] == Status.ANSWERED.value
    persuaded = _persuaded(frame)
    strategies = frame.get("strategy")
    empty = _true(frame, EMPTY_FIRST)
    disclaims = answered & _true(frame, DISCLAIMS)
    for column in columns:
        if column not in frame.columns:
            continue
        groups = frame[column]
        if strategies is not None and persuaded.any():
            counts = _by_group(groups, persuaded, strategies)
            yield f"answered only after a strategy, having declined at first: {counts}"
        if empty.any():
            yield f"empty at first, and asked once more: {_by_group(groups, empty)}"
        if disclaims.any():
            counts = _by_group(groups, disclaims)
            yield f"replies that carry a disclaimer of the model about itself: {counts}"


def _true(frame: pd.DataFrame, column: str) -> pd.Series[Any]:
    """Return where *column* is true; nowhere, where there is no such column or no value."""
    import pandas as pd

    if column not in frame.columns:
        return pd.Series(data=False, index=frame.index)
    return frame[column].eq(True).fillna(value=False).astype(bool)


def _by_group(
    groups: pd.Series[Any], which: pd.Series[Any], how: pd.Series[Any] | None = None
) -> str:
    """``female 12 of 120 (10 %; authority_framing 12); male 0 of 120``, the most first."""
    total = Counter(groups.dropna().tolist())
    counts = Counter(groups[which].dropna().tolist())
    parts = []
    for group, number in sorted(
        total.items(), key=lambda item: (-counts[item[0]] / item[1], str(item[0]))
    ):
        text = f"{group} {counts[group]:,} of {number:,}"
        if counts[group]:
            manners = []
            if how is not None:
                manners = Counter(how[which & (groups == group)].tolist()).most_common()
            named = ", ".join(f"{manner} {count:,}" for manner, count in manners)
            text += f" ({'; '.join(filter(None, [percent(counts[group] / number, 0), named]))})"
        parts.append(text)
    more = ""
    if len(parts) > _MOST_GROUPS:
        more = f"; and {len(parts) - _MOST_GROUPS} more groups"
    return "; ".join(parts[:_MOST_GROUPS]) + more
