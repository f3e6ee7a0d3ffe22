"""One metric of an assertion: its scored rows laid out, compared, and padded to all groups of the family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from pytest_fairness.model import GroupResult, OutcomeKind
from pytest_fairness.statistics.arrays import Bools, Design, Floats, Ints
from pytest_fairness.statistics.categories import compare_categories
from pytest_fairness.statistics.clusters import NameParts, all_pairs, t_quantile, two_sided_t
from pytest_fairness.statistics.comparison import Comparison, with_labels
from pytest_fairness.statistics.layout import Layout, Pairs, identical_cells, lay_out
from pytest_fairness.statistics.proportions import wilson
from pytest_fairness.statistics.ranks import medians_in_place
from pytest_fairness.statistics.rates import compare_rates
from pytest_fairness.statistics.scores import compare_scores

RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A comparison over the groups that have any scored row.

    ``present`` holds their codes, ``trials`` and ``clusters`` (length G, all groups) what counts as evidence, ``index``
    the position of each pair (of all groups) in the comparison, −1 where a group is empty. ``repeats`` says that
    repetitions are there and every one of every cell agrees; ``copies_dropped`` that repetitions with the same text
    count once, for a group has one cluster only.
    """

    kind: OutcomeKind
    layout: Layout | None
    present: Ints
    comparison: Comparison | None
    index: Ints
    trials: Ints
    clusters: Ints
    repeats: bool
    copies_dropped: bool

    def column(self, values: Floats, missing: float) -> Floats:
        """A column of the comparison for all pairs, *missing* for those with an empty group."""
        if values.shape[0] == self.index.size:
            return values  # no group is empty
        padded = np.full((self.index.size, *values.shape[1:]), missing)
        known = self.index >= 0
        padded[known] = values[self.index[known]]
        return padded

    @property
    def p_values(self) -> Floats:
        """The p-value of every pair; 1 where a group is empty."""
        if self.comparison is None:
            return np.ones(self.index.size)
        return self.column(self.comparison.p_value, 1.0)


def measure(
    design: Design, values: Floats, used: Bools, kind: OutcomeKind, *, categories: int = 0, seed: int = 0
) -> Metric:
    """Compare all pairs of groups on *values* (one a row of the design) over the rows that are *used*."""
    groups = len(design.group.labels)
    pairs = all_pairs(groups)
    rows = _Rows.of(design, values, used)
    present = np.flatnonzero(np.bincount(rows.group, minlength=groups) > 0)
    trials, clusters = np.zeros(groups, dtype=np.intp), np.zeros(groups, dtype=np.intp)
    index = np.full(pairs.first.size, -1, dtype=np.intp)
    layout = comparison = None
    repeats = dropped = False
    if present.size:
        rows = rows.among(present, groups)
        layout = rows.lay_out(own_rows=design.cluster_name is None)
        trials[present] = layout.sizes.astype(np.intp)
        clusters[present] = layout.clusters
        repeats = layout.cell_start.size < layout.values.size and bool(np.all(identical_cells(layout)))
    if layout is not None and present.size >= 2:
        inner = all_pairs(present.size)
        parts = _parts(design, layout)
        comparison = _compare(rows, layout, inner, kind, categories, seed, parts)
        if bool(comparison.labels.any()) and not layout.own_rows:
            single = rows.without_copies(layout, repeats=repeats)
            dropped = single is not rows
            by_row = _compare(single, single.lay_out(own_rows=True), inner, kind, categories, seed, None)
            comparison = with_labels(comparison, by_row, comparison.labels)
        table = np.full((groups, groups), -1, dtype=np.intp)
        table[present[inner.first], present[inner.second]] = np.arange(inner.first.size)
        index = table[pairs.first, pairs.second]
    return Metric(
        kind=kind,
        layout=layout,
        present=present,
        comparison=comparison,
        index=index,
        trials=trials,
        clusters=clusters,
        repeats=repeats,
        copies_dropped=dropped,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows that count: one entry each."""

    values: Floats
    group: Ints
    cluster: Ints
    block: Ints
    copy: Bools | None
    groups: int
    blocks: int

    @classmethod
    def of(cls, design: Design, values: Floats, used: Bools) -> _Rows:
        which = slice(None) if bool(np.all(used)) else used
        return cls(
            values=values[which],
            group=design.group.codes[which],
            cluster=design.cluster[which],
            block=design.block[which],
            copy=None if design.copy is None else design.copy[which],
            groups=len(design.group.labels),
            blocks=design.blocks,
        )

    def among(self, present: Ints, groups: int) -> _Rows:
        """The same with the groups that are *present* numbered from 0."""
        if present.size == groups:
            return self
        place = np.full(groups, -1, dtype=np.intp)
        place[present] = np.arange(present.size)
        return _Rows(
            values=self.values,
            group=place[self.group],
            cluster=self.cluster,
            block=self.block,
            copy=self.copy,
            groups=present.size,
            blocks=self.blocks,
        )

    def lay_out(self, *, own_rows: bool) -> Layout:
        """The rows sorted and counted; with *own_rows* each is its own cluster."""
        return lay_out(
            self.values,
            self.group,
            np.arange(self.values.size) if own_rows else self.cluster,
            self.block,
            groups=self.groups,
            blocks=self.blocks,
            own_rows=own_rows,
        )

    def lay_out_alike(self) -> Layout:
        """Equal rows of a group and block as one cell: where rows stand for themselves and few values occur."""
        levels, code = np.unique(self.values, return_inverse=True)
        del levels
        return lay_out(
            self.values,
            self.group,
            code * self.blocks + self.block,
            self.block,
            groups=self.groups,
            blocks=self.blocks,
            own_rows=True,
        )

    def without_copies(self, layout: Layout, *, repeats: bool) -> _Rows:
        """Copies of one text count once (a model at temperature 0): without clusters nothing else sees to that.

        Where the texts are not known, repetitions count once if every cell repeats its value exactly.
        """
        if self.copy is not None:
            kept = ~self.copy
            if bool(np.all(kept)):
                return self
            return _Rows(
                values=self.values[kept],
                group=self.group[kept],
                cluster=self.cluster[kept],
                block=self.block[kept],
                copy=None,
                groups=self.groups,
                blocks=self.blocks,
            )
        if not repeats:
            return self
        return _Rows(
            values=layout.values[layout.cell_start] + layout.reference,
            group=layout.cell_group,
            cluster=layout.cluster_label[layout.cell_cluster],
            block=layout.cell_block,
            copy=None,
            groups=self.groups,
            blocks=self.blocks,
        )


def _compare(
    rows: _Rows,
    layout: Layout,
    pairs: Pairs,
    kind: OutcomeKind,
    categories: int,
    seed: int,
    parts: NameParts | None,
) -> Comparison:
    if kind is OutcomeKind.CATEGORICAL:
        return compare_categories(layout, pairs, categories, seed)
    alike = layout.own_rows and kind in (*RATES, OutcomeKind.ORDINAL)
    if alike:
        layout = rows.lay_out_alike()
    if kind in RATES:
        return compare_rates(layout, pairs, parts, alike=alike)
    return compare_scores(layout, pairs, kind, parts, alike=alike)


def _parts(design: Design, layout: Layout) -> NameParts | None:
    """The parts of the clusters' names, where any of them recurs within a group."""
    if not design.parts:
        return None
    codes = tuple(part.codes[layout.cluster_label] for part in design.parts)
    for own in codes:
        key = layout.cluster_group * (int(own.max()) + 1) + own
        if np.unique(key).size < key.size:
            return NameParts(codes=codes, labels=tuple(len(part.labels) for part in design.parts))
    return None


# ---------------------------------------------------------------- groups

RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)


def describe_groups(
    labels: tuple[str, ...],
    layout: Layout | None,
    present: Ints,
    kind: OutcomeKind,
    categories: tuple[str, ...] = (),
    *,
    refused: Ints,
    undetermined: Ints,
    unscored: Ints,
    has_refusals: bool,
    refused_count: bool = False,
) -> tuple[GroupResult, ...]:
    """One result a label. *present* holds the labels' codes that have scored rows, in the layout's order; the
    counts have one entry a label. *refused_count*: what is refused is among the scored rows."""
    mean = low = high = spread = np.full(present.size, np.nan)
    clusters = [0] * present.size
    if layout is not None:
        mean, low, high, spread = summarise(layout, kind)
        clusters = layout.clusters.tolist()
    place = {int(code): at for at, code in enumerate(present)}
    results = []
    for code, label in enumerate(labels):
        at = place.get(code)
        rows = np.zeros(0)
        if layout is not None and at is not None:
            rows = layout.values[layout.rows_of(at)] + layout.reference
        n, gone, no = rows.size, int(refused[code]), int(unscored[code])
        answered = n - gone if kind is OutcomeKind.REFUSAL else n + no - gone * refused_count
        labelled = kind is OutcomeKind.CATEGORICAL
        scored = at is not None and not labelled
        results.append(
            GroupResult(
                group=label,
                n=n,
                clusters=0 if at is None else clusters[at],
                value=_finite(mean, at, scored),
                low=_finite(low, at, scored),
                high=_finite(high, at, scored),
                sd=_finite(spread, at, scored),
                median=float(medians_in_place(rows[None, :])[0]) if scored and kind not in RATES else None,
                refused=gone,
                undetermined=int(undetermined[code]),
                unscored=no,
                refusal_rate=gone / (gone + answered) if has_refusals and gone + answered else None,
                shares=_shares(rows, categories) if labelled and at is not None else {},
            )
        )
    return tuple(results)


def summarise(layout: Layout, kind: OutcomeKind) -> tuple[Floats, Floats, Floats, Floats]:
    """Mean, 95 % interval and SD of each group (length G); NaN where there is nothing to tell it from.

    Scores: t on cluster means, df K−1, centred on the mean of the rows; from the rows where there is one
    cluster. Rates: Wilson's interval on n/deff rows with that t (after Korn & Graubard 1998).
    """
    n, k = layout.sizes, layout.clusters.astype(np.float64)
    mean = np.add.reduceat(layout.values, layout.group_start) / n
    residual = layout.values - np.repeat(mean, n.astype(np.intp))
    variance = np.add.reduceat(residual**2, layout.group_start) / np.maximum(n - 1, 1.0)
    means = layout.by_cluster(layout.by_cell(layout.values)) / layout.by_cluster(layout.cell_size)
    centre = layout.clusters_by_group(means) / k
    between = layout.clusters_by_group((means - centre[layout.cluster_group]) ** 2) / np.maximum(k - 1, 1.0)
    square = np.where(k >= 2, between / k, variance / n)
    df = np.where(k >= 2, k - 1, n - 1)
    quantile = t_quantile(df, 0.975)
    value = mean + layout.reference
    known = df >= 1
    if kind in RATES:
        plain = value * (1 - value) / n
        inflation = np.maximum(np.where(plain > 0, square / np.where(plain > 0, plain, 1.0), 1.0), 1.0)
        size = n / inflation
        low, high = wilson(value * size, size, np.where(known, quantile, 2.0))
    else:
        reach = np.where(known, quantile, 0.0) * np.sqrt(square)
        low, high = value - reach, value + reach
    gone = np.where(known, 0.0, np.nan)
    return value, low + gone, high + gone, np.sqrt(variance) + np.where(n >= 2, 0.0, np.nan)


def _finite(values: Floats, at: int | None, scored: bool) -> float | None:
    return float(values[at]) if scored and at is not None and np.isfinite(values[at]) else None


def _shares(rows: Floats, categories: tuple[str, ...]) -> dict[str, float]:
    counts = np.bincount(rows.astype(np.intp), minlength=len(categories))
    return {name: float(count) / rows.size for name, count in zip(categories, counts.tolist(), strict=True)}


# ---------------------------------------------------------------- refusals


def worst_rank(
    values: Floats,
    kind: OutcomeKind,
    *,
    scored: Bools,
    refused: Bools,
    lower_is_worse: bool,
    categories: int = 0,
) -> tuple[Floats, OutcomeKind, int]:
    """*values* with every refused row worse than the worst *scored* one, how to compare them, and the
    categories.

    A score becomes ordinal, for only the rank of a refusal means anything (Lachin 1999); a yes/no outcome
    gets its harmful value; a label gets a category of its own, numbered *categories*.
    """
    filled = values.copy()
    if kind is OutcomeKind.CATEGORICAL:
        filled[refused] = categories
        return filled, kind, categories + 1
    if kind is OutcomeKind.BINARY:
        filled[refused] = 0.0 if lower_is_worse else 1.0
        return filled, kind, categories
    known = values[scored]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    step = max(high - low, abs(low), abs(high), 1.0)
    filled[refused] = low - step if lower_is_worse else high + step
    return filled, OutcomeKind.ORDINAL, categories


def impute(
    values: Floats,
    kind: OutcomeKind,
    group: Ints,
    groups: tuple[int, int],
    *,
    used: Bools,
    missing: Bools,
    first_high: bool,
    scale: tuple[float | None, float | None],
) -> Floats:
    """*values* with what is *missing* of two groups at the extremes: of the first at the high end if *first_high*, of
    the second at the other; or the other way round.

    The ends are those of the *scale* where it is known, else of what the two groups have. Labels have no ends: with
    *first_high* the missing ones of each group take the label that it has most in excess of the other, which sets the
    two furthest apart; otherwise the other's, which brings them together.
    """
    filled = values.copy()
    first, second = (missing & (group == one) for one in groups)
    known = [values[used & (group == one)] for one in groups]
    both = np.concatenate(known)
    if kind is OutcomeKind.CATEGORICAL:
        size = int(both.max(initial=0)) + 1
        shares = [np.bincount(own.astype(np.intp), minlength=size) / max(own.size, 1) for own in known]
        excess = int(np.argmax(shares[0] - shares[1])), int(np.argmax(shares[1] - shares[0]))
        filled[first], filled[second] = excess if first_high else excess[::-1]
        return filled
    low = scale[0] if scale[0] is not None else float(both.min(initial=np.inf))
    high = scale[1] if scale[1] is not None else float(both.max(initial=-np.inf))
    if not np.isfinite([low, high]).all():
        low = high = 0.0
    filled[first], filled[second] = (high, low) if first_high else (low, high)
    return filled


def turning_rows(values: Floats, group: Ints, groups: tuple[int, int], used: Bools, most: int = 10) -> list[int]:
    """The rows without which the difference of two means has the sign that most pairs of rows have; none if *most* are
    not enough. The one that moves the difference most leaves first."""
    own = [np.flatnonzero(used & (group == one)) for one in groups]
    if min(side.size for side in own) < most + 2:
        return []
    kept = [values[side] for side in own]
    above = np.searchsorted(np.sort(kept[1]), kept[0], side="left").sum()
    below = (kept[1].size - np.searchsorted(np.sort(kept[1]), kept[0], side="right")).sum()
    wanted = float(np.sign(float(above) - float(below)))
    out: list[int] = []
    for _ in range(most):
        if np.sign(kept[0].mean() - kept[1].mean()) == wanted:
            return out
        # What each row adds to the difference against the wanted sign.
        pull = [
            -wanted * sign * (side - side.mean()) / (side.size - 1) for sign, side in zip((1, -1), kept, strict=True)
        ]
        which = int(np.argmax([side.max() for side in pull]))
        at = int(np.argmax(pull[which]))
        out.append(int(own[which][at]))
        own[which], kept[which] = np.delete(own[which], at), np.delete(kept[which], at)
    return out if np.sign(kept[0].mean() - kept[1].mean()) == wanted else []


# ---------------------------------------------------------------- equivalence


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """Arrays of length P, one entry a pair; ``error``, ``low``, ``high`` and ``margin`` in the outcome's own unit.

    ``p_tost`` is the larger of the two one-sided p-values, ``p_difference`` that of the two-sided test of no
    difference. ``low`` and ``high`` are the 1 − 2α interval that lies inside the margin iff ``p_tost`` < α. Errors are
    infinite where there is nothing to tell them from.
    """

    error: Floats
    df: Floats
    low: Floats
    high: Floats
    margin: Floats
    p_lower: Floats
    p_upper: Floats
    p_tost: Floats
    p_difference: Floats


def two_one_sided(comparison: Comparison, margin: float, *, on_d: bool, alpha: float) -> Equivalence:
    """Test every pair against ±*margin*, given in the outcome's unit or (*on_d*) in standard deviations.

    Zero variance: p is 0 inside the margin and 1 outside it.
    """
    difference, df = comparison.difference, np.maximum(comparison.difference_df, 1e-9)
    apart = comparison.rows.min(axis=1) == 0
    error = np.where(apart | np.isnan(comparison.error), np.inf, comparison.error)
    unit = comparison.beside["standardiser_sd"]
    # A difference of g standard deviations is g·s/J in the outcome's own unit.
    unit = unit / (1 - 3 / np.maximum(4 * comparison.beside["standardiser_df"] - 1, 4.0))
    bound = margin * unit if on_d else np.full(difference.size, float(margin))
    p_lower, p_upper = _one_sided(difference + bound, error, df), _one_sided(bound - difference, error, df)
    reach = np.where(error > 0, t_quantile(comparison.difference_df, 1 - alpha) * np.where(error > 0, error, 1.0), 0.0)
    return Equivalence(
        error=error,
        df=df,
        low=difference - reach,
        high=difference + reach,
        margin=bound,
        p_lower=p_lower,
        p_upper=p_upper,
        p_tost=np.maximum(p_lower, p_upper),
        p_difference=np.where(apart, 1.0, two_sided_t(difference, error, df)),
    )


def _one_sided(distance: Floats, error: Floats, df: Floats) -> Floats:
    """P(T > distance/error): small where the estimate lies well inside the bound."""
    zero = error == 0
    t = distance / np.where(zero, 1.0, error)
    return np.where(zero, np.where(distance > 0, 0.0, 1.0), stdtr(df, -t))
