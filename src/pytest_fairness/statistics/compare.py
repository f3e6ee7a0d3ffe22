"""Groups compared on one outcome: its scored rows laid out, every pair in one table, and each group
as it was found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import stdtr

from pytest_fairness.model import GroupResult, OutcomeKind
from pytest_fairness.statistics.arrays import Bools, Floats, Ints, Membership, Values, sums
from pytest_fairness.statistics.categories import compare_categories
from pytest_fairness.statistics.clusters import (
    USUAL,
    NameParts,
    Terms,
    compared_pairs,
    reach,
    t_quantile,
    two_sided_t,
)
from pytest_fairness.statistics.layout import Layout, Pairs, Rows
from pytest_fairness.statistics.pair_table import PairTable
from pytest_fairness.statistics.proportions import wilson
from pytest_fairness.statistics.scores import compare_rates, compare_scores

RATES = (OutcomeKind.BINARY, OutcomeKind.REFUSAL)
TAIL = 0.75
"""What is missing at random is imputed at this quantile of the pair, and at its mirror image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """An outcome measured: the table of all pairs of groups, and the rows behind it.

    ``present`` holds the codes of the groups that have any scored row, in the order of the
    ``layout``; ``trials`` counts those rows (G, all groups). ``repeats``: repetitions are there and
    every one of every cell agrees; ``copies_dropped``: repetitions with the same text count once,
    for a group has one cluster only.
    """

    kind: OutcomeKind
    pairs: PairTable
    layout: Layout | None
    present: Ints
    trials: Ints
    repeats: bool = False
    copies_dropped: bool = False


def measure(design: Membership, outcome: Values, used: Bools, terms: Terms = USUAL) -> Metric:
    """Compare the pairs of groups of the design on *outcome* (a value a row) over the rows that are
    *used*, on these *terms*.
    """
    kind = outcome.kind
    labels = design.group.labels
    groups = len(labels)
    pairs = compared_pairs(groups, design.compared)
    blocks = design.blocks
    every = Rows(
        outcome.values,
        design.group.codes,
        design.cluster,
        design.block,
        design.copy,
        design.weight,
        design.bins,
        design.alike,
    )
    rows = every.where(used)
    trials = sums(rows.group, rows.weight, groups).astype(np.intp)
    present = np.flatnonzero(trials)
    table = PairTable(first=pairs.first, second=pairs.second, labels=labels)
    if not present.size:
        return Metric(kind=kind, pairs=table, layout=None, present=present, trials=trials)
    place = np.full(groups, -1, dtype=np.intp)
    place[present] = np.arange(present.size)
    own_rows = design.cluster_name is None
    if own_rows:
        cluster = np.arange(rows.values.size)
    else:
        cluster = rows.cluster
    rows = rows._replace(group=place[rows.group], cluster=cluster)
    layout = Layout(rows, groups=present.size, blocks=blocks, own_rows=own_rows)
    low, high = (
        extreme.reduceat(layout.values, layout.cell_start) for extreme in (np.minimum, np.maximum)
    )
    several = not own_rows and bool(layout.cell_start.size < trials.sum())
    repeats = several and np.array_equal(low, high)
    dropped = False

    compared = design.compared
    if compared is not None:
        compared = compared[np.ix_(present, present)]
    inner = compared_pairs(present.size, compared)
    categories = len(outcome.categories)
    compare = partial(_compare, pairs=inner, kind=kind, categories=categories, terms=terms)
    if inner.first.size:
        table = compare(rows, layout, parts=_recurring_parts(design, layout))
        if bool(table.alone.any()) and not own_rows:
            single = _without_copies(rows, layout, repeats=repeats)
            dropped = single is not rows
            single = single._replace(cluster=np.arange(single.values.size))
            of_rows = Layout(single, groups=present.size, blocks=blocks, own_rows=True)
            table = _about_labels(table, compare(single, of_rows))
        index = np.full((groups, groups), -1, dtype=np.intp)
        index[present[inner.first], present[inner.second]] = np.arange(inner.first.size)
        table = table.spread(pairs, index[pairs.first, pairs.second])
    clusters = np.zeros(groups)
    clusters[present] = layout.clusters
    both = [pairs.first, pairs.second]
    # Where one cluster is all that a group has, repetitions with the same text count once.
    counted = np.where(table.single[:, None], table.rows, trials[both].T)
    return Metric(
        kind=kind,
        pairs=replace(
            table,
            labels=labels,
            own_rows=own_rows,
            only=_only(design, layout, present),
            trials=counted,
            clusters=clusters[both].T,
        ),
        layout=layout,
        present=present,
        trials=trials,
        repeats=repeats,
        copies_dropped=dropped,
    )


def measure_share(design: Membership, held: Bools, used: Bools, confidence: float) -> Metric:
    """Compare the pairs of groups of the design on the share of the *used* rows in which something
    is *held*, as refusals are compared; no block by itself.
    """
    outcome = Values(values=held.astype(np.float64), kind=OutcomeKind.REFUSAL)
    return measure(design, outcome, used, Terms(confidence=confidence, by_block=False))


def _compare(
    rows: Rows,
    layout: Layout,
    *,
    pairs: Pairs,
    kind: OutcomeKind,
    categories: int,
    terms: Terms,
    parts: NameParts | None = None,
) -> PairTable:
    """Compare *pairs* of the groups of *layout*, which lays *rows* out."""
    if kind is OutcomeKind.CATEGORICAL:
        return compare_categories(layout, pairs, categories, terms)
    if layout.own_rows and kind in (*RATES, OutcomeKind.ORDINAL):
        # Rows stand for themselves and few values occur: equal rows of a group and block are one
        # cell.
        code = np.unique(rows.values, return_inverse=True)[1]
        rows = rows._replace(cluster=code * layout.blocks + rows.block)
        layout = Layout(rows, groups=layout.groups, blocks=layout.blocks, own_rows=True)
    if kind in RATES:
        return compare_rates(layout, pairs, parts, terms)
    return compare_scores(layout, pairs, kind, parts, terms)


def _without_copies(rows: Rows, layout: Layout, *, repeats: bool) -> Rows:
    """*rows*, in which copies of one text (a model at temperature 0) count once: without clusters
    nothing else sees to them. Where the texts are not known, repetitions count once if every cell
    *repeats* its value exactly.
    """
    if rows.copy is not None:
        return rows.where(~rows.copy)
    if not repeats:
        return rows
    cell_cluster = layout.cluster_label[layout.cell_cluster]
    cell_values = layout.values[layout.cell_start] + layout.reference
    return Rows(cell_values, layout.cell_group, cell_cluster, layout.cell_block, None)


_OF_CLUSTERS = (
    *("units", "alone", "contrary", "ragged", "constant", "one_part"),
    *("part_clusters", "icc", "per_cluster"),
)


def _about_labels(table: PairTable, by_row: PairTable) -> PairTable:
    """*table*, in which pairs where a group has one cluster are as in *by_row*, by the test on rows
    alone.
    """
    unknown = np.full(table.alone.size, np.nan)
    of_names = {"p_delta", "spread_p_value", "spread_1", "spread_2"} & by_row.figures.keys()
    figures = {**by_row.figures, **dict.fromkeys(of_names, unknown)}
    columns = {name: getattr(table, name) for name in _OF_CLUSTERS}
    by_row = replace(by_row, p_cluster=unknown, p_value=by_row.p_row, figures=figures, **columns)
    return table.choose(by_row, table.alone)


def _only(design: Membership, layout: Layout, present: Ints) -> tuple[str, ...]:
    """Of each group the name of its one cluster; nothing where that is the label of the group
    itself, and words where it has others, which no partner met."""
    names = [f"one name of {label}" for label in design.group.labels]
    if not design.cluster_labels:
        return ()
    for at in np.flatnonzero(layout.clusters == 1).tolist():
        group = int(present[at])
        name = design.cluster_labels[int(layout.cluster_label[layout.cluster_group == at][0])]
        if name == design.group.labels[group]:
            names[group] = ""
        else:
            names[group] = name
    return tuple(names)


def still_blocks(layout: Layout) -> tuple[int, int]:
    """Return how many of the blocks with several groups have no group in which an outcome differs
    from another, and how many there are."""
    size = layout.groups * layout.blocks
    place = layout.cell_group * layout.blocks + layout.cell_block
    ends = []
    for extreme, start in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        still = np.full(size, start)
        extreme.at(still, place, extreme.reduceat(layout.values, layout.cell_start))
        ends.append(still.reshape(layout.groups, layout.blocks))
    live = (layout.count > 0).sum(axis=0) > 1
    return int((live & np.all(ends[1] <= ends[0], axis=0)).sum()), int(live.sum())


def _recurring_parts(design: Membership, layout: Layout) -> NameParts | None:
    """The parts of the clusters' names, where any of them recurs within a group."""
    codes = tuple(part.codes[layout.cluster_label] for part in design.parts)
    for part_codes in codes:
        key = layout.cluster_group * (int(part_codes.max()) + 1) + part_codes
        if np.unique(key).size < key.size:
            return NameParts(codes=codes, labels=tuple(len(part.labels) for part in design.parts))
    return None


def describe_groups(
    design: Membership,
    metric: Metric,
    kind: OutcomeKind,
    categories: tuple[str, ...] = (),
    *,
    refused: Bools,
    missing: Bools,
    has_refusals: bool | None = None,
    refused_count: bool = False,
) -> tuple[GroupResult, ...]:
    """One result a group. *refused* and *missing* mark rows; *refused_count*: what is refused is
    among the scored rows."""
    layout = metric.layout
    labels = design.group.labels
    summary = np.full((4, len(labels)), np.nan)
    clusters = np.zeros(len(labels), dtype=np.intp)
    rows: dict[int, tuple[Floats, Floats]] = {}
    if layout is not None:
        clusters[metric.present] = layout.clusters
        values = layout.values + layout.reference
        held = zip(
            *(np.split(of, layout.group_start[1:]) for of in (values, layout.alike)), strict=True
        )
        rows = dict(zip(metric.present.tolist(), held, strict=True))
        if kind is not OutcomeKind.CATEGORICAL:
            summary[:, metric.present] = _summarise(layout, kind)
    silent = design.count(refused)
    undetermined = design.count(design.undetermined)
    unscored = design.count(missing & ~design.undetermined)
    refusal_rate: list[float | None] = [None] * len(labels)
    if has_refusals is None:
        has_refusals = design.has_refusals
    if has_refusals:
        usable = metric.trials + unscored + silent
        if kind is OutcomeKind.REFUSAL:
            usable = metric.trials
        if refused_count:
            usable = usable - silent
        for code in np.flatnonzero(usable).tolist():
            refusal_rate[code] = float(silent[code] / usable[code])
    groups = []
    for code, label in enumerate(labels):
        numbers = dict(zip(("value", "low", "high", "sd"), summary[:, code].tolist(), strict=True))
        group = GroupResult(
            group=label,
            n=int(metric.trials[code]),
            clusters=int(clusters[code]),
            refused=int(silent[code]),
            undetermined=int(undetermined[code]),
            unscored=int(unscored[code]),
            refusal_rate=refusal_rate[code],
            **{name: number for name, number in numbers.items() if math.isfinite(number)},
        )
        if code in rows:
            group = _with_spread(group, *rows[code], kind, categories)
        groups.append(group)
    return tuple(groups)


def _with_spread(
    group: GroupResult,
    values: Floats,
    alike: Floats,
    kind: OutcomeKind,
    categories: tuple[str, ...],
) -> GroupResult:
    """*group* with the share of each label of its *values*, each of which stands for several rows
    *alike*, or their median; as it is for rates.
    """
    if kind is OutcomeKind.CATEGORICAL:
        counts = np.bincount(values.astype(np.intp), minlength=len(categories))
        shares = (counts / values.size).tolist()
        return replace(group, shares=dict(zip(categories, shares, strict=True)))
    if kind in RATES:
        return group
    return replace(group, median=_quantile(values, 0.5, alike, between=True))


def _quartiles(values: Floats, rows: Bools, weight: Floats | None) -> tuple[float, float]:
    """Return both quartiles of *values* in some *rows*, which stand for as many as their *weight*."""
    alike = np.ones(values.size)
    if weight is not None:
        alike = weight
    low, high = (_quantile(values[rows], share, alike[rows]) for share in (1 - TAIL, TAIL))
    return low, high


def _quantile(values: Floats, share: float, alike: Floats, *, between: bool = False) -> float:
    """The value that a *share* of the rows do not exceed, of which each of *values* stands for
    several *alike*; where two are next to that share, the middle *between* them, or the lower one.
    """
    order = np.argsort(values)
    reached = np.cumsum(alike[order])
    place = share * reached[-1]
    low = values[order[np.searchsorted(reached, place, side="left")]]
    if not between:
        return float(low)
    high = values[order[min(np.searchsorted(reached, place, side="right"), order.size - 1)]]
    return float((low + high) / 2)


def _summarise(layout: Layout, kind: OutcomeKind) -> tuple[Floats, Floats, Floats, Floats]:
    """Mean, 95 % interval and SD of each group (length G); NaN where there is nothing to tell it
    from.

    Scores: t on cluster means, df K−1, about the mean of the rows; from the rows where there is one
    cluster. Rates: Wilson's interval on n/deff rows with that t (after Korn & Graubard 1998).
    """
    n = layout.sizes
    k = layout.clusters.astype(np.float64)
    mean = layout.rows_by_group(layout.numbers) / n
    residual = layout.numbers - mean[layout.row_group]
    squares = layout.rows_by_group(residual**2) + layout.squares_by_group()
    variance = squares / np.maximum(n - 1, 1.0)
    size = layout.by_cluster(layout.cell_size)
    means = layout.by_cluster(layout.by_cell(layout.numbers)) / size
    alike = layout.cluster_alike
    centre = layout.clusters_by_group(alike * means) / k
    apart = alike * (means - centre[layout.cluster_group]) ** 2
    between = layout.clusters_by_group(apart)
    if layout.own_rows:
        between = between + layout.squares_by_group()
    between = between / np.maximum(k - 1, 1.0)
    square = np.where(k >= 2, between / k, variance / n)
    df = np.where(k >= 2, k - 1, n - 1)
    quantile = t_quantile(df, 0.975)
    value = mean + layout.reference
    sound = df >= 1
    if kind in RATES:
        plain = value * (1 - value) / n
        inflation = np.maximum(
            np.where(plain > 0, square / np.where(plain > 0, plain, 1.0), 1.0), 1.0
        )
        size = n / inflation
        low, high = wilson(value * size, size, np.where(sound, quantile, 2.0))
    else:
        reach = np.where(sound, quantile, 0.0) * np.sqrt(square)
        low = value - reach
        high = value + reach
    low, high = (np.where(sound, end, np.nan) for end in (low, high))
    return value, low, high, np.where(n >= 2, np.sqrt(variance), np.nan)


def worst_rank(outcome: Values, *, scored: Bools, refused: Bools, lower_is_worse: bool) -> Values:
    """*outcome* with every refused row worse than the worst *scored* one.

    A score becomes ordinal, for only the rank of a refusal means anything (Lachin 1999); a yes/no
    outcome gets its harmful value; a label gets a category of its own, the last.
    """
    filled = outcome.values.copy()
    if outcome.kind is OutcomeKind.CATEGORICAL:
        filled[refused] = len(outcome.categories)
        return replace(outcome, values=filled, categories=(*outcome.categories, "refused"))
    if outcome.kind is OutcomeKind.BINARY:
        filled[refused] = float(not lower_is_worse)
        return replace(outcome, values=filled)
    scores = outcome.values[scored]
    low = 0.0
    high = 0.0
    if scores.size:
        low = float(scores.min())
        high = float(scores.max())
    step = max(high - low, abs(low), abs(high), 1.0)
    if lower_is_worse:
        filled[refused] = low - step
    else:
        filled[refused] = high + step
    return replace(outcome, values=filled, kind=OutcomeKind.ORDINAL)


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
    at_random: Ints | None = None,
    weight: Floats | None = None,
) -> Floats:
    """*values* with what is *missing* of two groups at the extremes: of the first at the high end
    if *first_high*, of the second at the other; or the other way round.

    The ends are those of the *scale* where it is known, else of what the two groups have;
    *at_random*, where nothing says that what is missing is different, the quartiles of the two
    groups. A missing yes or no has odds of yes three times as high or as low as those of the pair:
    as many in the order of *at_random*, a code a row, are yes; where a row stands for several, by
    its *weight*, it has the share of them that are. Labels have no ends: with
    *first_high* the missing ones of each group take the label that it has most in excess of the
    other, which sets the two furthest apart; otherwise the other's, which brings them together.
    """
    filled = values.copy()
    first, second = (missing & (group == group_) for group_ in groups)
    values_of_groups = [values[used & (group == group_)] for group_ in groups]
    both = np.concatenate(values_of_groups)
    if at_random is not None and both.size and kind in RATES:
        if weight is None:
            weight = np.ones(values.size)
        rows_of_pair = used & np.isin(group, groups)
        rate = float(np.average(values[rows_of_pair], weights=weight[rows_of_pair]))
        for which, up in ((first, first_high), (second, not first_high)):
            rows = np.flatnonzero(which)
            rows = rows[np.argsort(at_random[rows], kind="stable")]
            filled[rows] = _thinned(weight[rows], _at_odds(rate, up=up), up=up)
        return filled
    if kind is OutcomeKind.CATEGORICAL:
        low, high = _labels_in_excess(*values_of_groups)
    elif at_random is not None and both.size:
        rows_of_pair = used & np.isin(group, groups)
        low, high = _quartiles(values, rows_of_pair, weight)
    else:
        low, high = _ends(both, scale)
    if first_high:
        filled[first] = high
        filled[second] = low
    else:
        filled[first] = low
        filled[second] = high
    return filled


def _at_odds(rate: float, *, up: bool) -> float:
    """*rate* with odds three times as high (*up*), or as low."""
    odds = (1 - TAIL) / TAIL
    if up:
        odds = TAIL / (1 - TAIL)
    return rate * odds / (1 - rate + rate * odds)


def _labels_in_excess(first: Floats, second: Floats) -> tuple[float, float]:
    """The label of which the *second* group has most more than the *first*, and the other way."""
    size = int(max(first.max(initial=0), second.max(initial=0))) + 1
    shares = [
        np.bincount(labels.astype(np.intp), minlength=size) / max(labels.size, 1)
        for labels in (first, second)
    ]
    excess = shares[0] - shares[1]
    return float(np.argmax(-excess)), float(np.argmax(excess))


def _ends(values: Floats, scale: tuple[float | None, float | None]) -> tuple[float, float]:
    """The ends of the *scale*, those of *values* where it has none; 0 where there is neither."""
    low, high = scale
    if low is None:
        low = float(values.min(initial=np.inf))
    if high is None:
        high = float(values.max(initial=-np.inf))
    if math.isfinite(low) and math.isfinite(high):
        return low, high
    return 0.0, 0.0


def _thinned(weight: Floats, rate: float, *, up: bool) -> Floats:
    """The share of ones in rows that stand for as many as their *weight*: in all as many as *rate*
    makes, rounded *up* or down, and spread evenly.
    """
    ends = np.append(0.0, np.cumsum(weight))
    total = ends[-1]
    if up:
        ones = math.ceil(total * rate - 1e-9)
    else:
        ones = math.floor(total * rate + 1e-9)
    steps = np.floor(ends * ones / max(total, 1) + 1e-9)
    share: Floats = np.diff(steps) / np.maximum(weight, 1)
    return share


def turning_rows(
    values: Floats, group: Ints, groups: tuple[int, int], used: Bools, most: int = 10
) -> list[int]:
    """The rows without which the difference of two means has the sign that most pairs of rows have;
    none if *most* are not enough. The one that moves the difference most leaves first."""
    rows_of_groups = [np.flatnonzero(used & (group == group_)) for group_ in groups]
    if min(side.size for side in rows_of_groups) < most + 2:
        return []
    kept = [values[side] for side in rows_of_groups]
    above = np.searchsorted(np.sort(kept[1]), kept[0], side="left").sum()
    below = (kept[1].size - np.searchsorted(np.sort(kept[1]), kept[0], side="right")).sum()
    wanted = float(np.sign(float(above) - float(below)))
    out: list[int] = []
    while np.sign(kept[0].mean() - kept[1].mean()) != wanted:
        if len(out) == most:
            return []
        # What each row adds to the difference against the wanted sign.
        pull = [
            -wanted * sign * (side - side.mean()) / (side.size - 1)
            for sign, side in zip((1, -1), kept, strict=True)
        ]
        which = int(np.argmax([side.max() for side in pull]))
        at = int(np.argmax(pull[which]))
        out.append(int(rows_of_groups[which][at]))
        rows_of_groups[which], kept[which] = (
            np.delete(rows_of_groups[which], at),
            np.delete(kept[which], at),
        )
    return out


def two_one_sided(table: PairTable, margin: float, *, on_d: bool, alpha: float) -> PairTable:
    """Test every pair against ±*margin*, given in the outcome's unit or (*on_d*) in standard
    deviations, by two one-sided tests on cluster means (Schuirmann 1987).

    ``p_value`` is the larger of the two, the interval the one that lies inside the margin iff it is
    below *alpha*; ``figures`` holds the margin, both one-sided p and that of no difference. Without
    variance p is 0 inside the margin and 1 outside it; errors are infinite where there is nothing
    to tell them from.
    """
    difference = table.difference
    df = np.maximum(table.difference_df, 1e-9)
    apart = table.rows.min(axis=1) == 0
    error = np.where(apart | np.isnan(table.error), np.inf, table.error)
    bound = np.full(difference.size, float(margin))
    if on_d and "standardiser_sd" in table.figures:
        # A difference of g standard deviations is g·s/J in the outcome's own unit.
        unit = table.figures["standardiser_sd"]
        bound = margin * (
            unit / (1 - 3 / np.maximum(4 * table.figures["standardiser_df"] - 1, 4.0))
        )
    p_lower, p_upper = (
        np.where(error == 0, distance <= 0, stdtr(df, -distance / np.where(error == 0, 1.0, error)))
        for distance in (difference + bound, bound - difference)
    )
    p_tost = np.maximum(p_lower, p_upper)
    half = reach(error, table.difference_df, 1 - 2 * alpha)
    return replace(
        table,
        p_row=p_tost,
        p_cluster=np.where(table.single, np.nan, p_tost),
        p_value=p_tost,
        corrected=p_tost,
        error=error,
        df=df,
        difference_low=difference - half,
        difference_high=difference + half,
        figures={
            "margin": bound,
            "p_lower": p_lower,
            "p_upper": p_upper,
            "difference_p_value": np.where(apart, 1.0, two_sided_t(difference, error, df)),
        },
    )
