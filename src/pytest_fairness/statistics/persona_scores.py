"""What a baseline remembers of a run: one mean a persona, its noise, and the categories it stands in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import bdtrc, stdtr

from pytest_fairness.errors import FrameError
from pytest_fairness.model import JSON, Reason, to_json
from pytest_fairness.statistics.arrays import Floats, flags, require_column, row_name
from pytest_fairness.statistics.clusters import DUST, OneSampleT, one_sample_t, t_quantile
from pytest_fairness.statistics.corrections import correct


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaScore:
    """One persona's score: the ``mean`` of ``n`` scored trials, and the ``sd`` between its repetitions.

    ``sd`` is pooled within blocks (so that the difference between two templates is not noise), with ``df``
    degrees of freedom; 0 and 0 where nothing was repeated.
    """

    mean: float
    n: int
    sd: float = 0.0
    df: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSummary:
    """The scores of one run, as approved or as just measured.

    ``personas`` maps each persona that has a score to it; ``categories`` maps a label such as
    ``gender=female`` to the ids of its personas, unscored ones included; ``overall`` is the mean of the
    persona means (0 where there is none). ``repetitions`` is the median number of scored trials a persona
    and block, ``run_sd`` the SD between repetitions of the same cell, pooled, in the score's own unit (None
    where nothing was repeated). ``trials`` = scored + ``refused`` + ``unscored``. ``scale`` says what the scores were
    measured on: ``yes_no``, ``percent`` (0 to 100) or ``other``. ``warnings`` counts the warnings of each severity and
    kind (``critical: age``), where the trials carry any.
    """

    personas: Mapping[str, PersonaScore]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    overall: float = 0.0
    repetitions: int = 1
    run_sd: float | None = None
    trials: int = 0
    refused: int = 0
    unscored: int = 0
    scale: str = ""
    warnings: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, JSON]:
        """The summary as plain JSON; numbers unrounded."""
        data = to_json(self)
        return data if isinstance(data, dict) else {}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`. Raises KeyError, TypeError or ValueError for another shape."""
        personas = {str(key): PersonaScore(**value) for key, value in data["personas"].items()}
        for key, score in personas.items():
            if not math.isfinite(score.mean):
                raise ValueError(f"persona {key!r} has the score {score.mean!r}: a finite number is needed")
        categories = {str(key): tuple(map(str, ids)) for key, ids in data.get("categories", {}).items()}
        return cls(**{**data, "personas": personas, "categories": categories})


def summarise_scores(
    frame: pd.DataFrame,
    score_values: pd.Series[Any] | Sequence[float | None],
    *,
    persona: str | None = None,
    categories: Sequence[str] = (),
    block: str | Sequence[str] | None = None,
    warnings: str | None = None,
) -> ScoreSummary:
    """Summarise one score a trial into one a persona.

    ``score_values`` has one number a row of *frame* (NaN or None: no score). ``persona`` is the column that
    identifies the unit; by default ``persona`` where that column is filled, else ``name``. ``categories``
    are the columns whose values become categories. ``block`` are the columns that, with persona and
    repetition, tell two trials apart; by default ``template`` where the frame has it. Blocks weigh the same
    in a persona's mean.

    ``warnings`` is the column that holds each trial's warnings: a list of texts, of (severity, kind), or of mappings
    with ``severity`` and ``kind`` (or ``category``).

    A row that is ``refused`` or ``undetermined`` (boolean columns, optional) has no score whatever is given.

    Raises FrameError for a missing column, a row without persona, a score that is not a finite number, the
    same (persona, block, repetition) twice, or a persona that stands in two values of one category.
    """
    persona = persona or _persona_column(frame)
    blocks = [block] if isinstance(block, str) else list(block or [])
    if block is None and "template" in frame.columns:
        blocks = ["template"]
    for column in (persona, *blocks, *categories):
        require_column(frame, column, "baseline")
    missing = frame[persona].isna().to_numpy()
    if missing.any():
        where = row_name(frame, int(missing.argmax()))
        raise FrameError(f"column {persona!r}, {where}: the persona is missing; each score needs one")
    scores = _numbers(frame, score_values)
    refused = flags(frame, "refused")
    scores[refused | flags(frame, "undetermined")] = np.nan
    ids = frame[persona].astype(str).to_numpy(dtype=object)
    codes = np.zeros(len(frame), dtype=np.int64)
    if blocks:
        codes = frame.groupby(blocks, dropna=False, sort=False).ngroup().to_numpy().astype(np.int64)
    _refuse_duplicates(frame, ids, codes, [persona, *blocks])
    scored = ~np.isnan(scores)
    personas, counts = _per_persona(ids[scored], codes[scored], scores[scored])
    freedom = sum(score.df for score in personas.values())
    squares = sum(score.df * score.sd**2 for score in personas.values())
    return ScoreSummary(
        personas=personas,
        categories=_categories(frame, ids, categories),
        overall=math.fsum(score.mean for score in personas.values()) / len(personas) if personas else 0.0,
        repetitions=int(np.median(counts)) if len(counts) else 0,
        run_sd=math.sqrt(squares / freedom) if freedom else None,
        trials=len(frame),
        refused=int(refused.sum()),
        unscored=int((~scored & ~refused).sum()),
        scale=scale_of(scores[scored]),
        warnings=_warnings(frame, warnings),
    )


SCALES = ("yes_no", "percent", "other")
_PERCENT = 10.0
"""Scores from 0 to 100 reach beyond this, ratings of 1 to 10 do not."""


def scale_of(scores: npt.NDArray[np.float64]) -> str:
    """What *scores* (without NaN) are measured on, by their values; empty without any."""
    if not scores.size:
        return ""
    if bool(np.all((scores == 0) | (scores == 1))):
        return "yes_no"
    return "percent" if scores.min() >= 0 and _PERCENT < scores.max() <= 100 else "other"


def wider_scale(first: str, second: str) -> str:
    """The scale that holds the scores of both: only zeros are no yes/no of a score that was 80 before."""
    known = [scale for scale in (first, second) if scale]
    return max(known, key=SCALES.index, default="other")


def _warnings(frame: pd.DataFrame, column: str | None) -> dict[str, int]:
    if column is None:
        return {}
    found: dict[str, int] = {}
    for position, held in enumerate(require_column(frame, column, "warnings").tolist()):
        if held is None or (isinstance(held, float) and math.isnan(held)):
            continue
        if isinstance(held, (str, bytes)) or not isinstance(held, Sequence):
            raise FrameError(f"column {column!r}, {row_name(frame, position)}: {held!r} is no list of warnings")
        for one in held:
            name = _warning(one)
            found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


def _warning(one: Any) -> str:
    """``severity: kind`` of one warning."""
    if isinstance(one, Mapping):
        one = (one.get("severity", ""), one.get("kind", one.get("category", "")))
    if isinstance(one, str):
        return one
    if isinstance(one, Sequence) and len(one) == 2:
        return ": ".join(str(part) for part in one if part)
    raise FrameError(f"{one!r} is no warning: give a text, (severity, kind), or a mapping with both")


def _persona_column(frame: pd.DataFrame) -> str:
    filled = "persona" in frame.columns and bool(frame["persona"].notna().any())
    return "persona" if filled or "name" not in frame.columns else "name"


def _numbers(frame: pd.DataFrame, score_values: pd.Series[Any] | Sequence[float | None]) -> npt.NDArray[np.float64]:
    if isinstance(score_values, pd.Series) and not score_values.index.equals(frame.index):
        raise FrameError("the scores have another index than the table: give one score a row, in the same order")
    if len(score_values) != len(frame):
        raise FrameError(f"{len(score_values)} scores for {len(frame)} rows: give one score a row")
    numbers = np.empty(len(frame))
    for position, value in enumerate(score_values):
        try:
            numbers[position] = np.nan if value is None or value is pd.NA else float(value)
        except (TypeError, ValueError):
            numbers[position] = np.inf
        if np.isinf(numbers[position]):
            row = frame.index[int(position)]
            raise FrameError(f"row {row!r}: the score is {value!r}; a finite number, or None for no score, is needed")
    return numbers


def _refuse_duplicates(
    frame: pd.DataFrame, ids: npt.NDArray[np.object_], codes: npt.NDArray[np.int64], keys: list[str]
) -> None:
    if "repetition" not in frame.columns:
        return
    table = pd.DataFrame({"persona": ids, "block": codes, "repetition": frame["repetition"].to_numpy()})
    twice = table.duplicated().to_numpy()
    if twice.any():
        where = int(twice.argmax())
        raise FrameError(
            f"{row_name(frame, where)} repeats the ({', '.join(keys)}, repetition) of an earlier row "
            f"(persona {ids[where]!r}): name the column that tells them apart with block=[…]"
        )


def _per_persona(
    ids: npt.NDArray[np.object_], blocks: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]
) -> tuple[dict[str, PersonaScore], npt.NDArray[np.int64]]:
    """The score of each persona, and how many trials each (persona, block) holds."""
    who, names = pd.factorize(ids, sort=True)
    cell, cells = pd.factorize(who * (int(blocks.max(initial=0)) + 1) + blocks)
    sizes = np.bincount(cell)
    means = np.bincount(cell, scores) / sizes
    squares = np.bincount(cell, (scores - means[cell]) ** 2)
    owner = np.asarray(cells) // (int(blocks.max(initial=0)) + 1)
    held, freedom = np.bincount(owner), np.bincount(owner, sizes - 1).astype(int)
    mean, square = np.bincount(owner, means) / held, np.bincount(owner, squares)
    n = np.bincount(owner, sizes).astype(int)
    personas = {
        str(name): PersonaScore(
            mean=float(mean[k]),
            n=int(n[k]),
            sd=math.sqrt(float(square[k]) / int(freedom[k])) if freedom[k] else 0.0,
            df=int(freedom[k]),
        )
        for k, name in enumerate(names)
    }
    return personas, sizes


def _categories(
    frame: pd.DataFrame, ids: npt.NDArray[np.object_], columns: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for column in columns:
        value_of: dict[str, Any] = {}
        values = frame[column]
        for position in np.flatnonzero(values.notna().to_numpy()):
            who, value = str(ids[position]), values.iloc[position]
            if value_of.setdefault(who, value) != value:
                raise FrameError(
                    f"{row_name(frame, int(position))}: persona {who!r} has {column!r} = {value!r} here "
                    f"and {value_of[who]!r} before; a category is fixed for a persona"
                )
        for value in sorted(set(value_of.values()), key=str):
            members = tuple(sorted(who for who, held in value_of.items() if held == value))
            found[f"{column}={value}"] = members
    return found


# ---------------------------------------------------------------- baseline gate

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
    allowed = k * (margin / float(t_quantile(k - 1, 1 - alpha) + t_quantile(k - 1, 0.8))) ** 2
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
