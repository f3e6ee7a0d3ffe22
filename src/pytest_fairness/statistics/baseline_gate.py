"""The baseline gate: has the score of the same personas dropped since it was approved?

Paired by persona, so that what differs between personas is no noise; one-sided, because only a drop is a
regression; Holm over the overall score and every category (Holm 1979) at a strict level, and a margin beside
it, so that neither luck nor a drop that nobody would mind ends a build.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from pytest_fairness.model import Reason
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.one_sample import OneSampleT, one_sample_t, t_quantile
from pytest_fairness.statistics.score_summary import PersonaScore, ScoreSummary, summarise_scores

__all__ = [
    "OVERALL",
    "GateResult",
    "PersonaScore",
    "ScopeTest",
    "ScoreSummary",
    "baseline_gate",
    "repetitions_needed",
    "summarise_scores",
]

OVERALL = "overall"
SLACK = 1e-9  # a drop of exactly the margin counts, however its binary fractions fell


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeTest:
    """The overall score, or one category, compared with its baseline over ``n`` personas that both have.

    ``test`` is on new − old (negative: worse). ``corrected_p`` is None where ``reason`` says why nothing was
    tested. ``repetitions_needed`` is the R with which a drop of the margin shows in 80 % of runs, None where
    no number of repetitions would do (more personas would).
    """

    label: str
    n: int
    missing: int
    now: float
    approved: float
    margin: float
    test: OneSampleT
    corrected_p: float | None
    regression: bool
    reason: Reason | None
    repetitions_needed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """Every scope in the order overall, then categories by label; ``untested`` are those with too few
    personas."""

    scopes: tuple[ScopeTest, ...]
    overlap: float
    untested: tuple[str, ...]


def baseline_gate(
    approved: ScoreSummary,
    current: ScoreSummary,
    *,
    alpha: float,
    margin_overall: float,
    margin_category: float,
    minimum_personas: int = 8,
    minimum_overlap: float = 0.8,
    lower_is_worse: bool = True,
) -> GateResult:
    """Compare *current* with *approved*.

    A scope is the overall score or a category of either summary with at least *minimum_personas*; its
    personas are those of the approved summary's category (of the current one's where the category is new). A
    scope regresses iff its Holm-corrected one-sided p is below *alpha* and it worsened by at least its
    margin. Under *minimum_overlap* (both / either) a scope is not tested but INCONCLUSIVE(OVERLAP); with one
    persona, INCONCLUSIVE(N).
    """
    labels: list[str] = []
    untested: list[str] = []
    members = _scopes(approved, current)
    for label, ids in members.items():
        enough = label == OVERALL or _known(approved, current, ids) >= minimum_personas
        (labels if enough else untested).append(label)
    shared = {
        label: [key for key in members[label] if key in approved.personas and key in current.personas]
        for label in labels
    }
    tests = {
        label: one_sample_t(
            [current.personas[key].mean - approved.personas[key].mean for key in both],
            "less" if lower_is_worse else "greater",
        )
        for label, both in shared.items()
    }
    reasons = {
        label: _reason(len(both), _known(approved, current, members[label]), minimum_overlap)
        for label, both in shared.items()
    }
    tested = [label for label in labels if reasons[label] is None]
    adjusted = correct([tests[label].p for label in tested], "holm")
    corrected = dict(zip(tested, adjusted.tolist(), strict=True))

    def judge(label: str) -> ScopeTest:
        both, test, p = shared[label], tests[label], corrected.get(label)
        margin = margin_overall if label == OVERALL else margin_category
        worsening = -test.mean if lower_is_worse else test.mean
        needed = None
        if reasons[label] is None:
            strict = alpha / len(corrected)
            needed = repetitions_needed(approved, current, both, margin=margin, alpha=strict)
        return ScopeTest(
            label=label,
            n=len(both),
            missing=_known(approved, current, members[label]) - len(both),
            now=_mean(current, both),
            approved=_mean(approved, both),
            margin=margin,
            test=test,
            corrected_p=p,
            regression=p is not None and p < alpha and worsening >= margin - SLACK,
            reason=reasons[label],
            repetitions_needed=needed,
        )

    known = _known(approved, current, members[OVERALL])
    return GateResult(
        scopes=tuple(map(judge, labels)),
        overlap=len(shared[OVERALL]) / known if known else 0.0,
        untested=tuple(untested),
    )


def _reason(both: int, known: int, minimum_overlap: float) -> Reason | None:
    if not both or both < minimum_overlap * known - SLACK:
        return Reason.OVERLAP
    return Reason.N if both < 2 else None


def repetitions_needed(
    approved: ScoreSummary, current: ScoreSummary, personas: list[str], *, margin: float, alpha: float
) -> int | None:
    """The repetitions, in both runs, with which a drop of *margin* is found at *alpha* in 80 % of runs.

    The variance of a persona's change is split into what repetition explains (``run_sd``² over the trials of
    each run) and the rest, which stays: R solves (t₁₋α + t.₈)²·(rest + noise(R))/K = margin², with df = K −
    1. Where nothing was repeated, all of it counts as noise. None where no R does.
    """
    k = len(personas)
    changes = np.array([current.personas[key].mean - approved.personas[key].mean for key in personas])
    if k < 2:
        return None
    allowed = k * (margin / (t_quantile(1 - alpha, k - 1) + float(stdtrit(k - 1, 0.8)))) ** 2
    observed = float(changes.var(ddof=1))
    repeated = max(1, min(approved.repetitions, current.repetitions))
    noise_now = sum(_noise(summary, personas) for summary in (approved, current))
    if math.isnan(noise_now):
        noise_now = observed
    rest = max(0.0, observed - noise_now)
    if allowed <= rest:
        return None
    return max(1, math.ceil(repeated * noise_now / (allowed - rest) - SLACK))


def _noise(summary: ScoreSummary, personas: list[str]) -> float:
    """The variance of a persona's mean that repetition explains: run_sd² over its trials; nan where
    unknown."""
    if summary.run_sd is None:
        return math.nan
    return summary.run_sd**2 * float(np.mean([1 / summary.personas[key].n for key in personas]))


def _scopes(approved: ScoreSummary, current: ScoreSummary) -> dict[str, list[str]]:
    everyone = sorted(set(approved.personas) | set(current.personas))
    scopes = {OVERALL: everyone}
    for label in sorted(set(approved.categories) | set(current.categories)):
        scopes[label] = list(approved.categories.get(label, current.categories.get(label, ())))
    return scopes


def _known(approved: ScoreSummary, current: ScoreSummary, ids: list[str]) -> int:
    return sum(key in approved.personas or key in current.personas for key in ids)


def _mean(summary: ScoreSummary, personas: list[str]) -> float:
    return math.fsum(summary.personas[key].mean for key in personas) / len(personas) if personas else 0.0
