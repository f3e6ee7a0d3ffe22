"""The baseline gate: has the score of the same personas dropped since it was approved?

Paired by persona, so that what differs between personas is no noise; one-sided, because only a drop is a
regression; a strict level (Holm 1979), and a margin beside it, so that neither luck nor a drop without consequence ends
a build. Two families: the changes as they are (overall, larger categories, passes), and the changes with outliers
clipped (overall, every category), since one wild reply must hide neither a fall of everyone nor that of five.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import bdtrc, stdtr, stdtrit

from pytest_fairness.model import Reason
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.frames import Floats
from pytest_fairness.statistics.one_sample import DUST, OneSampleT, one_sample_t, t_quantile
from pytest_fairness.statistics.score_summary import ScoreSummary

OVERALL = "overall"
PASSES = "passes"
LARGE = 8
"""Personas from which a category is tested as it is; smaller ones are tested on the spread of all categories."""
SMALLEST = 2
CLIP = 4 * 1.4826
"""Changes beyond so many MADs of the median are clipped: four standard deviations, if the changes are normal."""
OWN_LEVEL = 0.05
"""A category is tested on the spread of all only if its own one-sided t is below this."""
SLACK = 1e-9  # what binary fractions may be off by


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeTest:
    """The overall score, one category, or the passes, compared with the baseline over ``n`` personas that both have.

    ``test`` is on new − old as it is (negative: worse), ``clipped`` the mean change with outliers clipped. ``p_raw``
    and ``p_clipped`` are corrected within their families, None where the scope does not belong to that family.
    ``regression``: significant in either family, and worse by the margin; ``slip``: significant, and within it.
    ``outliers`` are the personas whose change was clipped, with that change. ``repetitions_needed`` is the R with which
    a drop of the margin shows in 80 % of runs, None where no number of repetitions would do (more personas would).
    ``lost`` and ``gained`` count the passes.
    """

    label: str
    n: int
    missing: int
    now: float
    approved: float
    margin: float
    test: OneSampleT
    clipped: float
    p_value: float
    p_raw: float | None
    p_clipped: float | None
    regression: bool
    slip: bool
    reason: Reason | None
    outliers: Mapping[str, float] = field(default_factory=dict)
    repetitions_needed: int | None = None
    lost: int = 0
    gained: int = 0

    @property
    def corrected_p(self) -> float | None:
        """The smaller of the corrected p-values; None where nothing was tested."""
        known = [p for p in (self.p_raw, self.p_clipped) if p is not None]
        return min(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """Every scope in the order overall, passes, then categories by label; ``untested`` are those of one persona;
    ``changes`` are new − old of each persona that was clipped."""

    scopes: tuple[ScopeTest, ...]
    overlap: float
    untested: tuple[str, ...]
    changes: Mapping[str, float] = field(default_factory=dict)


def baseline_gate(
    approved: ScoreSummary,
    current: ScoreSummary,
    *,
    alpha: float,
    margin_overall: float,
    margin_category: float,
    minimum_overlap: float = 0.8,
    lower_is_worse: bool = True,
    threshold: float | None = None,
) -> GateResult:
    """Compare *current* with *approved*; each of the two families is corrected at *alpha*/2.

    A scope is the overall score, or a category of either summary; its personas are those of the approved summary's
    category (of the current one's where the category is new). Under *minimum_overlap* (both / either) a scope is not
    tested but INCONCLUSIVE(OVERLAP); with one persona, INCONCLUSIVE(N). *threshold* is the score from which a persona
    passes: with it, passes lost are tested against passes gained by the exact test of McNemar (1947).
    """
    sign = 1.0 if lower_is_worse else -1.0
    data = _Changes.of(approved, current, sign)
    scopes = _scopes(approved, current)
    labels = [label for label, ids in scopes.items() if label == OVERALL or _known(approved, current, ids) >= SMALLEST]
    shared = {label: [key for key in scopes[label] if key in data.place] for label in labels}
    known = {label: _known(approved, current, scopes[label]) for label in labels}
    reasons = {label: _reason(len(shared[label]), known[label], minimum_overlap) for label in labels}
    usable = [label for label in labels if reasons[label] is None]

    raw = {label: data.raw(shared[label]).p for label in usable if label == OVERALL or len(shared[label]) >= LARGE}
    passes = (
        None if threshold is None or reasons[OVERALL] is not None else data.passes(shared[OVERALL], sign * threshold)
    )
    if passes is not None:
        raw[PASSES] = passes.p
    clipped = {label: data.clipped_p(label, shared, scopes) for label in usable}
    p_raw, p_clipped = _holm(raw), _holm({label: p for label, p in clipped.items() if p is not None})
    strict = alpha / 2 / max(len(raw), 1)

    def judge(label: str) -> ScopeTest:
        both = shared[label]
        test, mean = data.raw(both), data.clipped_mean(both)
        margin = margin_overall if label == OVERALL else margin_category
        found = [
            (p, -worsening)
            for p, worsening in ((p_raw.get(label), test.mean), (p_clipped.get(label), mean))
            if p is not None and p < alpha / 2
        ]
        regression = any(drop > margin + SLACK for _, drop in found)
        needed = None
        if reasons[label] is None:
            needed = repetitions_needed(approved, current, both, margin=margin, alpha=strict)
        return ScopeTest(
            label=label,
            n=len(both),
            missing=known[label] - len(both),
            now=_mean(current, both),
            approved=_mean(approved, both),
            margin=margin,
            test=_signed(test, sign),
            clipped=sign * mean,
            p_value=min((p for p in (raw.get(label), clipped.get(label)) if p is not None), default=1.0),
            p_raw=p_raw.get(label),
            p_clipped=p_clipped.get(label),
            regression=regression,
            slip=bool(found) and not regression,
            reason=reasons[label],
            outliers={key: sign * data.outliers[key] for key in both if key in data.outliers},
            repetitions_needed=needed,
        )

    found = [judge(label) for label in labels]
    if passes is not None:
        found.insert(1, _passes(passes, p_raw[PASSES], margin_overall, alpha, shared[OVERALL], known[OVERALL]))
    everyone = known[OVERALL]
    return GateResult(
        scopes=tuple(found),
        overlap=len(shared[OVERALL]) / everyone if everyone else 0.0,
        untested=tuple(label for label in scopes if label not in labels),
        changes={key: sign * change for key, change in data.outliers.items()},
    )


def _holm(p_values: Mapping[str, float]) -> dict[str, float]:
    return dict(zip(p_values, correct(list(p_values.values()), "holm").tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _Passes:
    lost: int
    gained: int
    before: int
    after: int
    p: float


def _passes(
    found: _Passes, corrected: float, margin: float, alpha: float, personas: Sequence[str], known: int
) -> ScopeTest:
    """Passes lost against passes gained; the margin is the overall one of a yes/no score, a share of personas."""
    n = len(personas)
    share = (found.gained - found.lost) / n if n else 0.0
    significant = corrected < alpha / 2
    allowed = margin if margin < 1 else PASS_MARGIN
    regression = significant and -share > allowed + SLACK
    flat = one_sample_t(np.repeat([-1.0, 0.0, 1.0], [found.lost, n - found.lost - found.gained, found.gained]), "less")
    return ScopeTest(
        label=PASSES,
        n=n,
        missing=known - n,
        now=found.after / n if n else 0.0,
        approved=found.before / n if n else 0.0,
        margin=allowed,
        test=flat,
        clipped=share,
        p_value=found.p,
        p_raw=corrected,
        p_clipped=None,
        regression=regression,
        slip=significant and not regression,
        reason=None,
        lost=found.lost,
        gained=found.gained,
    )


PASS_MARGIN = 0.02
"""Passes may fall by so large a share of the personas: the overall margin of a yes/no score."""


@dataclass(frozen=True, slots=True)
class _Changes:
    """New − old of each shared persona, turned so that a fall is negative whichever way harm lies; and clipped."""

    place: dict[str, int]
    new: Floats
    old: Floats
    change: Floats
    kept: Floats
    noise: Floats
    outliers: dict[str, float]

    @classmethod
    def of(cls, approved: ScoreSummary, current: ScoreSummary, sign: float) -> _Changes:
        keys = sorted(set(approved.personas) & set(current.personas))
        new = sign * np.array([current.personas[key].mean for key in keys], dtype=np.float64)
        old = sign * np.array([approved.personas[key].mean for key in keys], dtype=np.float64)
        change = new - old
        kept = clip(change)
        outliers = {key: float(change[at]) for at, key in enumerate(keys) if kept[at] != change[at]}
        noise = np.array([_variance(approved, key) + _variance(current, key) for key in keys])
        return cls({key: at for at, key in enumerate(keys)}, new, old, change, kept, noise, outliers)

    def _at(self, keys: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        return np.array([self.place[key] for key in keys], dtype=np.intp)

    def raw(self, keys: Sequence[str]) -> OneSampleT:
        return one_sample_t(self.change[self._at(keys)], "less")

    def clipped_mean(self, keys: Sequence[str]) -> float:
        return float(self.kept[self._at(keys)].mean()) if keys else 0.0

    def clipped_p(
        self, label: str, shared: Mapping[str, Sequence[str]], scopes: Mapping[str, Sequence[str]]
    ) -> float | None:
        """p of the clipped changes of one scope: overall by t; a category on the spread of all about the means of the
        categories of its dimension, and only where its own t does not speak against it."""
        own = self.kept[self._at(shared[label])]
        test = one_sample_t(own, "less")
        if label == OVERALL:
            return test.p
        if test.p >= OWN_LEVEL:
            return 1.0
        dimension = label.partition("=")[0]
        parts = [
            self.kept[self._at([key for key in ids if key in self.place])]
            for other, ids in scopes.items()
            if other != OVERALL and other.partition("=")[0] == dimension
        ]
        parts = [part for part in parts if part.size]
        df = sum(part.size for part in parts) - len(parts)
        if df < 1:
            return 1.0
        spread = math.sqrt(sum(float(np.sum((part - part.mean()) ** 2)) for part in parts) / df)
        noise = math.sqrt(float(np.mean(self.noise[self._at(shared[label])])))
        sd, mean = max(spread, noise), float(own.mean())
        if sd <= DUST * max(float(np.abs(own).max(initial=0.0)), 1e-300):
            return 0.0 if mean < 0 else 1.0
        return float(stdtr(df, mean * math.sqrt(own.size) / sd))

    def passes(self, keys: Sequence[str], threshold: float) -> _Passes:
        at = self._at(keys)
        before, after = self.old[at] >= threshold - SLACK, self.new[at] >= threshold - SLACK
        lost, gained = int(np.sum(before & ~after)), int(np.sum(~before & after))
        # The binomial test of lost against gained; importing scipy.stats for it would take a second.
        p = float(bdtrc(lost - 1, lost + gained, 0.5)) if lost else 1.0
        return _Passes(lost, gained, int(before.sum()), int(after.sum()), p)


def clip(changes: Floats) -> Floats:
    """*changes* brought to within median ± 4·1.4826·MAD; as they are where the MAD is 0."""
    if not changes.size:
        return changes
    middle = float(np.median(changes))
    reach = CLIP * float(np.median(np.abs(changes - middle)))
    return np.clip(changes, middle - reach, middle + reach) if reach > 0 else changes


def _variance(summary: ScoreSummary, key: str) -> float:
    """Of a persona's mean, by the spread of its own repetitions; 0 where nothing was repeated."""
    score = summary.personas[key]
    return score.sd**2 / score.n if score.df else 0.0


def _signed(test: OneSampleT, sign: float) -> OneSampleT:
    return OneSampleT(test.n, sign * test.mean, test.sd, test.se, sign * test.t, test.df, test.p)


def _reason(both: int, known: int, minimum_overlap: float) -> Reason | None:
    if not both or both < minimum_overlap * known - SLACK:
        return Reason.OVERLAP
    return Reason.N if both < SMALLEST else None


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
