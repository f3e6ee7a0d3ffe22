"""Where a finding comes from: the running test, and what the table's own columns say of the system under test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.explanations import explain
from pytest_fairness.analysis.policy import worst_spec
from pytest_fairness.model import Finding, GroupResult, PairResult, Reason, Status, Verdict
from pytest_fairness.running_test import current_test

if TYPE_CHECKING:
    import pandas as pd


def stamp(finding: Finding, frame: pd.DataFrame) -> Finding:
    """*finding* with test_id, test_module, description, tier, model_endpoint, simulated, replayed and explanation.

    One trial of a simulated endpoint, or replayed, makes the whole finding so: it must never pass for live
    evidence. A PASS over trials that were never run, or over answers of several model versions, is no PASS: it becomes
    INCONCLUSIVE(INCOMPLETE) or INCONCLUSIVE(MIXED_MODELS).
    """
    test = current_test()
    endpoints = _distinct(frame, "endpoint")
    models = _distinct(frame, "model")
    notes = list(finding.notes)
    if len(endpoints) > 1:
        notes.append(f"the table mixes {len(endpoints)} endpoints: {', '.join(endpoints)}")
    if len(models) > 1:
        notes.append(f"more than one model version answered: {', '.join(models)}")
    notes += _cut_short(frame)
    tiers = _distinct(frame, "tier")
    unfit = Reason.INCOMPLETE if _not_run(frame) else Reason.MIXED_MODELS if len(models) > 1 else None
    if unfit is not None and finding.verdict is Verdict.PASS:
        because = {
            Reason.INCOMPLETE: f"{_not_run(frame)} planned trials were never run",
            Reason.MIXED_MODELS: f"{len(models)} model versions answered: {', '.join(models)}",
        }[unfit]
        passed = finding.sentence.removeprefix("PASS: ")
        finding = replace(
            finding,
            verdict=Verdict.INCONCLUSIVE,
            reason=unfit,
            sentence=f"INCONCLUSIVE: {because}, so this is no PASS yet ({passed.rstrip('.')}).",
        )
    stamped = replace(
        finding,
        test_id=test.test_id if test is not None else finding.test_id,
        test_module=test.test_module if test is not None else finding.test_module,
        description=test.description if test is not None else finding.description,
        tier=int(tiers[0]) if len(tiers) == 1 and tiers[0] in ("1", "2") else finding.tier,
        model_endpoint=", ".join(endpoints) if endpoints else finding.model_endpoint,
        simulated=finding.simulated or _any(frame, "simulated"),
        replayed=finding.replayed or _any(frame, "replayed"),
        notes=tuple(notes),
    )
    return replace(stamped, explanation=explain(stamped))


def _cut_short(frame: pd.DataFrame) -> list[str]:
    """A note on replies that ended at the limit on their length: what is missing of them was never judged."""
    if "cut_short" not in frame.columns:
        return []
    cut = int((frame["cut_short"] == True).sum())  # noqa: E712 - a missing value is not cut
    if not cut:
        return []
    return [
        f"{cut:,} of {len(frame):,} replies were cut short at the limit on their length: raise max_tokens in "
        "endpoints.yaml, or ask for less"
    ]


def _not_run(frame: pd.DataFrame) -> int:
    return int((frame["status"] == Status.NOT_RUN).sum()) if "status" in frame.columns else 0


def _distinct(frame: pd.DataFrame, column: str) -> list[str]:
    if column not in frame.columns:
        return []
    values = sorted({str(value) for value in frame[column].dropna().unique()})
    return [value.removesuffix(".0") for value in values] if column == "tier" else values


def _any(frame: pd.DataFrame, column: str) -> bool:
    if column not in frame.columns:
        return False
    values = frame[column]
    return bool((values.to_numpy(dtype=object)[~values.isna().to_numpy()] == True).any())  # noqa: E712


def finding_of(
    frame: pd.DataFrame,
    *,
    decider: PairResult | None,
    by: str,
    pairs: Sequence[PairResult],
    groups: Sequence[GroupResult],
    **fields: Any,
) -> Finding:
    """The stamped finding about *frame*. Its p-values are those of *decider*, the pair that the sentence is about; the
    other *fields* are those of :class:`Finding`."""
    finding = Finding(
        **fields,
        spec_verdict=worst_spec(pair.spec_verdict for pair in pairs),
        protected_class=by,
        n_per_group={group.group: group.n for group in groups},
        group_results=tuple(groups),
        p_value=None if decider is None else decider.p_value,
        corrected_p_value=None if decider is None else decider.corrected_p_value,
        refusal_rates={group.group: group.refusal_rate for group in groups if group.refusal_rate is not None},
        pairs=tuple(pairs),
    )
    return stamp(finding, frame)
