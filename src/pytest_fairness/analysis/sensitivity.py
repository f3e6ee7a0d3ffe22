"""Could this test have failed? Its own data with a planted disparity, and with one that cannot be
there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_fairness.analysis.disparity import analyze_disparity
from pytest_fairness.analysis.equivalence import analyze_equivalence
from pytest_fairness.analysis.error_rates import comparison_of
from pytest_fairness.analysis.explanations import explain
from pytest_fairness.analysis.favourable import read_decisions
from pytest_fairness.analysis.four_fifths import analyze_four_fifths
from pytest_fairness.analysis.preference import analyze_preference
from pytest_fairness.analysis.reading import Reading, as_columns, read
from pytest_fairness.analysis.strata import analyze_strata
from pytest_fairness.model import ALARMS, Finding, OutcomeKind
from pytest_fairness.statistics.arrays import Bools, Floats, Ints, read_design, require_frame
from pytest_fairness.statistics.effects import LOGIT_TO_D
from pytest_fairness.statistics.score_gate import clip
from pytest_fairness.words import percent

if TYPE_CHECKING:
    import pandas as pd

EFFECTS = (0.5, 0.8)
COPIES, SPLITS = 5, 10
LEAST_CAUGHT = 0.5
"""A PASS that catches a planted ``max(EFFECTS)`` less often than this says little."""
MOST_FALSE_ALARMS = 0.10
"""Twice the level at which splits of one group raise the alarm by chance."""
_AT_RANDOM = (OutcomeKind.ORDINAL, OutcomeKind.BINARY, OutcomeKind.REFUSAL, OutcomeKind.CATEGORICAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The sensitivity of a test: the shares of planted disparities that it catches, and of false
    alarms.

    ``caught`` maps each planted effect (d, on one group at a time) to the share of *copies* that
    came out FLAG or FAIL; ``missed`` to the groups on which it was missed at least once.
    ``false_alarms`` is the share of the *splits* of a group's own names into two that did, None
    where no group has four names.
    """

    caught: Mapping[float, float]
    missed: Mapping[float, tuple[str, ...]]
    copies: int
    false_alarms: float | None
    splits: int

    @property
    def sentence(self) -> str:
        """Return what a reader should know beside a PASS."""
        shares = ", ".join(
            f"d = {d:g} in {percent(share, 0)} of copies" for d, share in self.caught.items()
        )
        text = f"With a planted disparity this test raises the alarm for {shares}"
        if self.false_alarms is not None:
            text += f"; for random halves of one group in {percent(self.false_alarms, 0)}"
        return text + "."


def _tally(caught: Sequence[tuple[float, str, bool]], alarms: Sequence[bool] = ()) -> Sensitivity:
    """From each planted effect, the group and whether it was caught; and from whether each split
    alarmed.
    """
    hits: dict[float, list[bool]] = {}
    missed: dict[float, set[str]] = {}
    for effect, label, hit in caught:
        hits.setdefault(effect, []).append(hit)
        missed.setdefault(effect, set())
        if not hit:
            missed[effect].add(label)
    false_alarms = None
    if alarms:
        false_alarms = float(np.mean(alarms))
    return Sensitivity(
        caught={effect: float(np.mean(count)) for effect, count in hits.items()},
        missed={effect: tuple(sorted(labels)) for effect, labels in missed.items()},
        copies=len(next(iter(hits.values()))),
        false_alarms=false_alarms,
        splits=len(alarms),
    )


def sensitivity(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any],
    by: str | Sequence[str],
    *,
    effects: Sequence[float] = EFFECTS,
    copies: int = COPIES,
    splits: int = SPLITS,
    seed: int = 0,
    cluster: str | None = "name",
    block: str | None = "template",
    kind: str = "auto",
    lower_is_worse: bool | None = None,
    scorers: Mapping[str, Any] | None = None,
    analyze: Callable[..., Finding] = analyze_disparity,
    **options: Any,
) -> Sensitivity:
    """Judge copies of *frame* as ``analyze_disparity`` does, with a disparity planted on each group
    in turn.

    Every effect is planted on every group of every column of *by*, in the direction of harm: once
    for numbers, which simply move, and *copies* times for outcomes that are turned round at random.
    *splits* times the names of each group are split into random halves, which are then compared as
    if they were groups. The other arguments, *options* included, are those of *analyze*, which is
    handed the same table with the outcome as a column, and ``kind`` and ``lower_is_worse`` as they
    were found; nothing is random beyond *seed*.

    Raises FrameError and UsageError as ``analyze_disparity`` does.
    """
    frame = require_frame(frame)
    reading = read(frame, outcome, kind, lower_is_worse, scorers)
    settings = {
        **options,
        "cluster": cluster,
        "block": block,
        "kind": reading.values.kind.value,
        "lower_is_worse": reading.lower_is_worse,
    }
    trial = _Trial(frame, reading, partial(analyze, **settings), np.random.default_rng(seed))
    if reading.values.kind not in _AT_RANDOM:
        copies = 1
    caught: list[tuple[float, str, bool]] = []
    placebo: list[bool] = []
    for column in as_columns(by):
        design = read_design(frame, (column,), cluster=cluster, block=block)
        sd = within_sd(reading.values.values, design.group.codes, design.block)
        for at, label in enumerate(design.group.labels):
            rows = design.group.codes == at
            for d in np.repeat(effects, copies).tolist():
                caught.append((d, label, trial.catches(by, rows, sd=sd, d=d)))
            placebo += trial.splits(column, rows, design.cluster, splits)
    return _tally(caught, placebo)


@dataclass(frozen=True, slots=True)
class _Trial:
    """Copies of *frame* with another outcome, judged by *analyze* as the assertion judges."""

    frame: pd.DataFrame
    reading: Reading
    analyze: Callable[..., Finding]
    rng: np.random.Generator

    def catches(self, by: str | Sequence[str], rows: Bools, *, sd: float, d: float) -> bool:
        """Return whether a disparity of *d* planted on *rows* raises the alarm."""
        values = self.reading.values
        planted = plant(
            values.values,
            values.kind,
            rows,
            sd=sd,
            d=d,
            lower_is_worse=self.reading.lower_is_worse,
            rng=self.rng,
        )
        return self._alarms(self._table(planted), by)

    def splits(self, column: str, rows: Bools, cluster: Ints, times: int) -> list[bool]:
        """Return of each split of the clusters of *rows* into halves whether it raises the alarm."""
        table = self._table(self.reading.values.values)[rows]
        alarms = []
        for _ in range(times):
            first = halves(cluster[rows], self.rng)
            if first is not None:
                split = table.assign(**{column: np.where(first, "half 1", "half 2")})
                alarms.append(self._alarms(split, column))
        return alarms

    def _alarms(self, table: pd.DataFrame, by: str | Sequence[str]) -> bool:
        return self.analyze(table, self.reading.name, by).verdict in ALARMS

    def _table(self, values: Floats) -> pd.DataFrame:
        """The frame with *values* as its outcome column, labels put back where the outcome has
        them.
        """
        categories = self.reading.values.categories
        if not categories:
            return self.frame.assign(**{self.reading.name: values})
        labels = np.full(values.size, None, dtype=object)
        present = ~np.isnan(values)
        labels[present] = np.array(categories, dtype=object)[values[present].astype(np.intp)]
        return self.frame.assign(**{self.reading.name: labels})


# ---------------------------------------------------------------- each assertion on copies of its own data


def sensitivity_of(
    analysis: str, /, frame: pd.DataFrame, *columns: Any, **options: Any
) -> Sensitivity | None:
    """Of the assertion that runs *analysis* on *columns* with *options*; None where no disparity
    can be planted.
    """
    match analysis:
        case "disparity":
            return sensitivity(frame, *columns, **options)
        case "strata" if options.get("analysis") == "four_fifths":
            return _of_four_fifths(frame, *columns, compare=analyze_strata, **options)
        case "strata":
            return sensitivity(frame, *columns, analyze=analyze_strata, **options)
        case "equivalence":
            return sensitivity(frame, *columns, analyze=analyze_equivalence, **options)
        case "four_fifths":
            return _of_four_fifths(frame, *columns, **options)
        case "error_rates":
            return _of_error_rate(frame, *columns, **options)
        # Neither slates nor arms: what would have to be planted is a change of several rows
        # together.
        case "preference" if options.get("trial") is None:
            return _of_choices(frame, *columns, **options)
    return None


def _of_four_fifths(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any],
    by: str | Sequence[str],
    *,
    favourable: object = True,
    reference: str | None = None,
    scorers: Mapping[str, Any] | None = None,
    compare: Callable[..., Finding] = analyze_four_fifths,
    **options: Any,
) -> Sensitivity:
    """Favourable decisions are taken away at random, from a table that *compare* judges."""
    labels = options.get("labels")
    decisions = read_decisions(frame, outcome, favourable, scorers, labels)

    def analyze(
        table: pd.DataFrame, column: str, by: str | Sequence[str], **settings: Any
    ) -> Finding:
        for name in ("kind", "lower_is_worse"):
            settings.pop(name, None)
        # Halves of one group have other labels than the declared reference.
        if isinstance(by, str) and reference in set(table[by]):
            settings["reference"] = reference
        return compare(table, column, by, **settings)

    decided = frame.assign(**{decisions.name: np.where(decisions.present, decisions.yes, np.nan)})
    if labels is not None:
        decided[labels] = decisions.readers.labels
    return sensitivity(
        decided, decisions.name, by, kind="binary", lower_is_worse=True, analyze=analyze, **options
    )


def _of_error_rate(
    frame: pd.DataFrame,
    *columns: Any,
    copies: int = COPIES,
    splits: int = SPLITS,
    **options: Any,
) -> Sensitivity:
    """Turn round at random what a rate counts, on the rows that it is about."""
    rate = comparison_of(frame, *columns, **options)
    tried: dict[str, Any] = {"copies": copies, "splits": splits, "analyze": rate.analyze}
    return sensitivity(rate.rows, rate.outcome, rate.by, **tried, **rate.given)


def _of_choices(
    frame: pd.DataFrame,
    by: str,
    *,
    first: str = "first",
    second: str = "second",
    chosen: str = "chosen",
    copies: int = COPIES,
    **options: Any,
) -> Sensitivity:
    """Each group loses some of the choices that it won. No placebo: two candidates of one group
    never meet.
    """
    first_side, two = (frame[column].map(str).to_numpy(dtype=object) for column in (first, second))
    was = frame[chosen].map(str, na_action="ignore").to_numpy(dtype=object)
    rng = np.random.default_rng(0)
    caught = []
    for label in sorted({*first_side, *two}):
        stood = (first_side == label) | (two == label)
        other = np.where(first_side == label, two, first_side)
        decided = stood & ((was == label) | (was == other))
        won = np.where(decided, (was == label).astype(np.float64), np.nan)
        for d in np.repeat(EFFECTS, copies).tolist():
            wins = plant(won, OutcomeKind.BINARY, stood, sd=1.0, d=d, lower_is_worse=True, rng=rng)
            table = frame.assign(
                **{chosen: np.where(decided, np.where(wins == 1, label, other), was)}
            )
            finding = analyze_preference(
                table, by, first=first, second=second, chosen=chosen, **options
            )
            caught.append((d, label, finding.verdict in ALARMS))
    return _tally(caught)


def with_sensitivity(finding: Finding, measured: Sensitivity | None) -> Finding:
    """*finding* with what was *measured* in ``details["sensitivity"]`` and as notes; the verdict
    stays as it is.
    """
    if measured is None:
        return replace(
            finding,
            notes=(*finding.notes, "sensitivity not tried: no disparity can be planted here"),
        )
    largest = max(measured.caught)
    could_fail = measured.caught[largest] >= LEAST_CAUGHT
    notes = [*finding.notes, measured.sentence]
    if not could_fail:
        notes.append(
            f"this test could not have failed: a planted disparity of d = {largest:g} was caught "
            "in "
            f"{percent(measured.caught[largest], 0)} of copies of its data; it needs more names, or an "
            "outcome that moves"
        )
    if measured.false_alarms is not None and measured.false_alarms > MOST_FALSE_ALARMS:
        notes.append(
            "the placebo raises the alarm: random halves of one and the same group differ in "
            f"{percent(measured.false_alarms, 0)} of splits, so an alarm of this test says little"
        )
    tried = {
        **asdict(measured),
        "caught": {f"{d:g}": share for d, share in measured.caught.items()},
        "missed": {f"{d:g}": list(groups) for d, groups in measured.missed.items()},
        "could_fail": could_fail,
    }
    changed = replace(
        finding, notes=tuple(notes), details={**finding.details, "sensitivity": tried}
    )
    return replace(changed, explanation=explain(changed))


# ---------------------------------------------------------------- planting


def plant(
    values: Floats,
    kind: OutcomeKind,
    rows: Bools,
    *,
    sd: float,
    d: float,
    lower_is_worse: bool,
    rng: np.random.Generator,
) -> Floats:
    """*values* with those in *rows* worse by *d*, in the direction of harm; the others as they are.

    Numbers move by d·*sd*. Ordinal levels move by as much in the mean, rounded at random to whole
    levels within the observed range. Yes/no outcomes, and the most frequent label of a categorical
    one, have as many turned round at random as change the log odds by d·π/√3. NaN stays NaN.
    """
    planted = values.copy()
    here = rows & ~np.isnan(values)
    if not here.any():
        return planted
    if kind in (OutcomeKind.BINARY, OutcomeKind.REFUSAL):
        moved = _turn(values[here], d, down=lower_is_worse, rng=rng)
    elif kind is OutcomeKind.CATEGORICAL:
        moved = _relabel(values, here, d, rng)
    else:
        harm = 1.0
        if lower_is_worse:
            harm = -1.0
        moved = values[here] + harm * d * sd
        if kind is OutcomeKind.ORDINAL:
            moved = np.clip(
                np.floor(moved + rng.random(moved.size)), np.nanmin(values), np.nanmax(values)
            )
    planted[here] = moved
    return planted


def _turn(y: Floats, d: float, *, down: bool, rng: np.random.Generator) -> Floats:
    """As many 1 into 0 (*down*) or 0 into 1 as move the log odds; the other way where there are
    none left.
    """
    n = y.size
    ones = float(y.sum())
    if down:
        down = ones > 0
    else:
        down = ones == n
    rate = (ones + 0.5) / (n + 1)
    logit = math.log(rate / (1 - rate))
    if down:
        target = 1 / (1 + math.exp(d / LOGIT_TO_D - logit))
        share = 1 - target / (ones / n)
    else:
        target = 1 / (1 + math.exp(-d / LOGIT_TO_D - logit))
        share = 1 - (1 - target) / (1 - ones / n)
    flip = (y == float(down)) & (rng.random(n) < share)
    return np.where(flip, 1 - y, y)


def _relabel(values: Floats, here: Bools, d: float, rng: np.random.Generator) -> Floats:
    """Move rows of the most frequent label to the other labels, in their proportions."""
    labels, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    members = values[here]
    if labels.size < 2:
        return members
    mode = labels[int(np.argmax(counts))]
    kept = _turn((members == mode).astype(np.float64), d, down=True, rng=rng) == 1
    others = labels != mode
    drawn = rng.choice(labels[others], size=members.size, p=counts[others] / counts[others].sum())
    return np.where(kept, mode, np.where(members == mode, drawn, members))


def within_sd(values: Floats, group: Ints, block: Ints) -> float:
    """SD within group × block, or within groups where every such cell holds one row; 0 without
    variation.

    Values far from all others of their cell are clipped: one of them would make every planted d so
    large that any test catches it, and a PASS that hangs on that reply would look sound.
    """
    present = ~np.isnan(values)
    y = values[present]
    group = group[present]
    block = block[present]
    for key in (group * (int(block.max(initial=0)) + 1) + block, group):
        _, at = np.unique(key, return_inverse=True)
        counts = np.bincount(at)
        df = y.size - counts.size
        if df * 10 >= y.size - 2 and df > 0:
            cells = np.split(y[np.argsort(at)], np.cumsum(counts)[:-1])
            middle = np.array(list(map(np.median, cells)))
            rest = clip(y - middle[at])
            means = np.bincount(at, rest) / counts
            return math.sqrt(float(np.sum((rest - means[at]) ** 2)) / df)
    return 0.0


def halves(cluster: Ints, rng: np.random.Generator) -> Bools | None:
    """Return which rows fall into the first half of a random split of the clusters; None with fewer
    than four of them.
    """
    labels, at = np.unique(cluster, return_inverse=True)
    if labels.size < 4:
        return None
    first = np.zeros(labels.size, dtype=np.bool_)
    first[rng.permutation(labels.size)[: labels.size // 2]] = True
    return first[at]
