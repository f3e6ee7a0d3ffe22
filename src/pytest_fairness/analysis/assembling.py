"""From judged pairs to the finding: what every comparison fills in the same way, said once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_fairness.analysis.provenance import stamp
from pytest_fairness.analysis.verdicts import worst_spec
from pytest_fairness.model import JSON, Finding, GroupResult, OutcomeKind, PairResult, Reason, Verdict

if TYPE_CHECKING:
    import pandas as pd


def finding_of(
    frame: pd.DataFrame,
    *,
    assertion: str,
    verdict: Verdict,
    reason: Reason | None,
    decider: PairResult | None,
    sentence: str,
    by: str,
    pairs: Sequence[PairResult],
    groups: tuple[GroupResult, ...],
    test_statistic: str,
    effect_size: str,
    outcome: str,
    kind: OutcomeKind,
    cluster: str | None,
    block: str | None,
    family: Mapping[str, JSON],
    details: Mapping[str, JSON],
    notes: tuple[str, ...] = (),
    unit: str = "",
) -> Finding:
    """The stamped finding about *frame*. Its p-values are those of *decider*, the pair that the sentence is about."""
    finding = Finding(
        assertion=assertion,
        verdict=verdict,
        reason=reason,
        spec_verdict=worst_spec(pair.spec_verdict for pair in pairs),
        sentence=sentence,
        protected_class=by,
        n_per_group={group.group: group.n for group in groups},
        group_results=groups,
        test_statistic=test_statistic,
        p_value=None if decider is None else decider.p_value,
        corrected_p_value=None if decider is None else decider.corrected_p_value,
        effect_size=effect_size,
        refusal_rates={g.group: g.refusal_rate for g in groups if g.refusal_rate is not None},
        notes=notes,
        pairs=tuple(pairs),
        outcome=outcome,
        kind=kind,
        unit=unit,
        cluster=cluster,
        block=block,
        family=family,
        details=details,
    )
    return stamp(finding, frame)
