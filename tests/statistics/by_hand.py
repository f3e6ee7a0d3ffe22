"""The statistics of two groups computed the slow and obvious way: loops over rows, and everything
again without a name.

Nothing here is shared with the package, so that an error would have to be made twice to go unseen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import correlation, fmean

from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep

TO_D = math.sqrt(3) / math.pi
Estimate = Callable[[list["Row"]], float]


@dataclass(frozen=True, slots=True)
class Row:
    """One trial of group 0 or 1 (``side``)."""

    y: float
    side: int
    name: Hashable
    block: Hashable = "t"
    first: str = ""
    last: str = ""


def common(rows: Sequence[Row]) -> list[Row]:
    """The rows in blocks that hold both groups."""
    both = {r.block for r in rows if r.side == 0} & {r.block for r in rows if r.side == 1}
    return [r for r in rows if r.block in both]


def of(rows: Iterable[Row], **wanted: object) -> list[Row]:
    return [r for r in rows if all(getattr(r, key) == value for key, value in wanted.items())]


def labels(rows: Iterable[Row], what: str) -> list[Hashable]:
    return sorted({getattr(r, what) for r in rows}, key=str)


def values(rows: Iterable[Row]) -> list[float]:
    return [r.y for r in rows]


def squares(found: Sequence[float]) -> float:
    middle = fmean(found)
    return sum((x - middle) ** 2 for x in found)


def variance_of(found: Sequence[float]) -> float:
    return squares(found) / (len(found) - 1)


def names_on(rows: Sequence[Row], side: int) -> list[Hashable]:
    return labels(of(rows, side=side), "name")


def shared(rows: Sequence[Row]) -> list[Hashable]:
    return [name for name in names_on(rows, 0) if name in set(names_on(rows, 1))]


def paired(rows: Sequence[Row]) -> bool:
    return bool(shared(rows)) and names_on(rows, 0) == names_on(rows, 1)


# ---------------------------------------------------------------- p-values


def aligned(rows: Sequence[Row], *, yes_no: bool) -> list[tuple[Row, float]]:
    """Each row with its score less what its block expects: midranks over N + 1, or y less the
    block's rate.
    """
    found = []
    for r in rows:
        block = values(of(rows, block=r.block))
        if yes_no:
            found.append((r, r.y - fmean(block)))
        else:
            rank = sum(y < r.y for y in block) + (sum(y == r.y for y in block) + 1) / 2
            found.append((r, (rank - (len(block) + 1) / 2) / (len(block) + 1)))
    return found


def row_test(rows: Sequence[Row], *, yes_no: bool) -> tuple[float, float]:
    """z and p of van Elteren (scores) or Cochran, Mantel and Haenszel (yes/no)."""
    rows = common(rows)
    scores = aligned(rows, yes_no=yes_no)
    total = variance = 0.0
    for block in labels(rows, "block"):
        own = [(r, a) for r, a in scores if r.block == block]
        n1 = sum(r.side == 0 for r, _ in own)
        n = len(own)
        total += sum(a for r, a in own if r.side == 0)
        variance += n1 * (n - n1) / (n * (n - 1)) * sum(a * a for _, a in own)
    if variance < 1e-20:
        return 0.0, 1.0
    z = total / math.sqrt(variance)
    return z, 2 * float(stats.norm.sf(abs(z)))


def spread(rows: Sequence[Row], influence: dict[tuple[int, Hashable], float], parts: bool) -> float:
    """The variance of a contrast from what each name adds to it (mean 0 on each side), names of
    parts included.
    """
    sides = [{name: influence[side, name] for name in names_on(rows, side)} for side in (0, 1)]
    if paired(rows):
        sides = [{name: sides[0][name] + sides[1][name] for name in sides[0]}]
    by_name = sum(
        sum(x * x for x in side.values()) / (len(side) * (len(side) - 1)) for side in sides
    )
    total = by_name
    if parts:
        by_part = []
        for part in ("first", "last"):
            found = 0.0
            for number, side in enumerate(sides):
                own = rows if len(sides) == 1 else of(rows, side=number)
                label = {r.name: getattr(r, part) for r in own}
                sums: dict[str, float] = {}
                for name, x in side.items():
                    sums[label[name]] = sums.get(label[name], 0.0) + x
                if len(sums) > 1:
                    found += (
                        len(sums)
                        / (len(sums) - 1)
                        * sum(x * x for x in sums.values())
                        / len(side) ** 2
                    )
                else:
                    found += sum(x * x for x in side.values()) / (len(side) * (len(side) - 1))
            by_part.append(found)
        total = max(by_part[0] + by_part[1] - by_name, *by_part, by_name)
    both = shared(rows)
    if len(sides) == 2 and len(both) >= 2:
        x, y = ([sides[side][name] for name in both] for side in (0, 1))
        if min(max(x) - min(x), max(y) - min(y)) > 1e-9:
            sds = [math.sqrt(sum(i * i for i in side.values()) / (len(side) - 1)) for side in sides]
            total += (
                2
                * len(both)
                * correlation(x, y)
                * sds[0]
                * sds[1]
                / (len(sides[0]) * len(sides[1]))
            )
    return max(total, 0.0)


def effective_parts(rows: Sequence[Row]) -> float:
    """G* of the part and side with the fewest: K²/Σ n_label²; a part that a side shares says
    nothing.
    """
    least = math.inf
    for side in (0, 1):
        names = {r.name: r for r in of(rows, side=side)}
        least = min(least, len(names))
        for part in ("first", "last"):
            held = [getattr(r, part) for r in names.values()]
            if len(set(held)) > 1:
                least = min(
                    least, len(held) ** 2 / sum(held.count(label) ** 2 for label in set(held))
                )
    return least


def degrees(rows: Sequence[Row], means: Sequence[Sequence[float]]) -> float:
    """Of the difference of the means of two sides."""
    k1, k2 = len(means[0]), len(means[1])
    n = len(shared(rows))
    if paired(rows):
        df = float(k1 - 1)
    else:
        errors = [variance_of(side) / len(side) for side in means]
        bottom = sum(error**2 / (len(side) - 1) for error, side in zip(errors, means, strict=True))
        welch = sum(errors) ** 2 / bottom if bottom > 0 else k1 + k2 - 2
        df = float(k1 + k2 - 2)
        if k1 != k2:
            df = welch if min(k1, k2) >= 5 else min(k1, k2) - 1
        if n >= 2:
            df = (n - 1) + (welch - n + 1) / (k1 + k2) * (k1 + k2 - 2 * n)
    return df


def lost_to_blocks(rows: Sequence[Row]) -> float:
    """The inertia of the names' shares of rows in the blocks: 0 where all stand in the same, H − 1
    in one each.
    """
    if paired(rows):
        return 0.0
    shares = [
        {
            block: fmean(r.block == block for r in of(rows, side=side, name=name))
            for block in labels(rows, "block")
        }
        for side in (0, 1)
        for name in names_on(rows, side)
    ]
    found = 0.0
    for block in labels(rows, "block"):
        own = [share[block] for share in shares]
        found += sum((s - fmean(own)) ** 2 for s in own) / sum(own)
    return found


def name_contrast(
    rows: Sequence[Row], *, yes_no: bool, parts: bool = False
) -> tuple[float, float, float]:
    """The difference of the names' means of aligned scores, its variance, and df."""
    rows = common(rows)
    scores = aligned(rows, yes_no=yes_no)
    means = {
        (side, name): fmean(a for r, a in scores if r.side == side and r.name == name)
        for side in (0, 1)
        for name in names_on(rows, side)
    }
    sides = [[means[side, name] for name in names_on(rows, side)] for side in (0, 1)]
    influence = {
        key: (mean - fmean(sides[key[0]])) * (1 if key[0] == 0 else -1)
        for key, mean in means.items()
    }
    whole = len(sides[0]) + len(sides[1]) - 2
    kept = max(whole - lost_to_blocks(rows), 1) / whole
    df = max(degrees(rows, sides) * kept, min(degrees(rows, sides), 1))
    if parts:
        least = effective_parts(rows)
        df = min(df, least - 1 if paired(rows) else 2 * least - 2)
    return fmean(sides[0]) - fmean(sides[1]), spread(rows, influence, parts) / kept, df


def cluster_test(
    rows: Sequence[Row], *, yes_no: bool, parts: bool = False
) -> tuple[float, float, float]:
    """t, df and p of the names' means of aligned scores."""
    difference, square, df = name_contrast(rows, yes_no=yes_no, parts=parts)
    if square < 1e-22:
        least = 2**-df if lost_to_blocks(common(rows)) > 1e-9 else 0.0
        return (
            (0.0, df, 1.0)
            if abs(difference) < 1e-11
            else (math.copysign(math.inf, difference), df, least)
        )
    t = difference / math.sqrt(square)
    return t, df, 2 * float(stats.t.sf(abs(t), df))


def delta_test(
    rows: Sequence[Row], df: float, *, parts: bool = False
) -> tuple[float, tuple[float, float]]:
    """p of Cliff's δ over its own jackknifed error, and its 90 % interval as ends of d."""
    rows = common(rows)
    delta, error = cliffs_delta(rows), jackknife(rows, cliffs_delta, parts=parts)
    p = (
        0.0
        if abs(delta) > 1 - 1e-12 or error < 1e-12
        else 2 * float(stats.t.sf(abs(delta) / error, df))
    )
    half = float(stats.t.ppf(0.95, df)) * error if error and df >= 1 else math.inf * bool(error)
    pairs = len(of(rows, side=0)) * len(of(rows, side=1))
    return p, (to_d(delta - half, pairs), to_d(delta + half, pairs))


def evidence(
    rows: Sequence[Row], p_row: float, p_cluster: float, p_delta: float = 0.0, *, yes_no: bool
) -> float:
    """The largest of the p-values; 1 where rows and names point in opposite directions."""
    z, _ = row_test(rows, yes_no=yes_no)
    difference, _, _ = name_contrast(rows, yes_no=yes_no)
    return 1.0 if z * difference < 0 and abs(difference) > 1e-12 else max(p_row, p_cluster, p_delta)


# ---------------------------------------------------------------- effects


def pools_within_blocks(rows: Sequence[Row]) -> bool:
    """Whether groups × blocks hold enough rows to pool an SD within them."""
    rows = common(rows)
    return 10 * (len(rows) - 2 * len(labels(rows, "block"))) >= len(rows) - 2


def pooled(rows: Sequence[Row], *, within: bool) -> tuple[float, int]:
    """The variance within group × block, or within groups, and its df."""
    blocks = [of(rows, block=block) for block in labels(rows, "block")] if within else [list(rows)]
    cells = [values(of(block, side=side)) for side in (0, 1) for block in blocks]
    df = len(rows) - len(cells)
    return sum(squares(cell) for cell in cells) / max(df, 1), df


def hedges_g(rows: Sequence[Row], *, within: bool = True) -> float:
    """J·D/s: D of the names' means of y less the middle of the two groups in the block, s within
    group × block.
    """
    rows = common(rows)
    middle = {
        block: (
            fmean(values(of(rows, block=block, side=0)))
            + fmean(values(of(rows, block=block, side=1)))
        )
        / 2
        for block in labels(rows, "block")
    }
    means = [
        fmean(
            fmean(r.y - middle[r.block] for r in of(rows, side=side, name=name))
            for name in names_on(rows, side)
        )
        for side in (0, 1)
    ]
    variance, df = pooled(rows, within=within)
    difference, sd = means[0] - means[1], math.sqrt(variance)
    if sd < 1e-12 * max(abs(r.y) for r in rows):
        return 0.0 if abs(difference) < 1e-11 else math.copysign(math.inf, difference)
    return (1 - 3 / (4 * max(df, 2) - 1)) * difference / sd


def cliffs_delta(rows: Sequence[Row]) -> float:
    """P(higher) − P(lower) within blocks, weighted by n₁n₂/(N+1)."""
    rows = common(rows)
    top = bottom = 0.0
    for block in labels(rows, "block"):
        one, two = (values(of(rows, block=block, side=side)) for side in (0, 1))
        ahead = sum((x > y) - (x < y) for x in one for y in two)
        top += ahead / (len(one) + len(two) + 1)
        bottom += len(one) * len(two) / (len(one) + len(two) + 1)
    return top / bottom


def d_of_delta(rows: Sequence[Row]) -> float:
    """√2·Φ⁻¹((δ+1)/2), full separation half a pair short of it."""
    rows = common(rows)
    return to_d(cliffs_delta(rows), len(of(rows, side=0)) * len(of(rows, side=1)))


def to_d(delta: float, pairs: int) -> float:
    most = 1 - 1 / max(pairs, 2)
    return math.sqrt(2) * float(stats.norm.ppf((min(max(delta, -most), most) + 1) / 2))


def levels_of(rows: Sequence[Row]) -> list[float]:
    return sorted({r.y for r in common(rows)})


def log_odds(rows: Sequence[Row], levels: Sequence[float]) -> float:
    """Liu and Agresti's cumulative log odds ratio over strata and cuts; pooled with ½ where a sum
    is 0.
    """
    rows = common(rows)
    up = down = 0.0
    for block in labels(rows, "block"):
        one, two = (values(of(rows, block=block, side=side)) for side in (0, 1))
        n = len(one) + len(two)
        for cut in levels[:-1]:
            up += sum(x > cut for x in one) * sum(y <= cut for y in two) / n
            down += sum(x <= cut for x in one) * sum(y > cut for y in two) / n
    if up == 0 or down == 0:
        up = down = 0.0
        one, two = (values(of(rows, side=side)) for side in (0, 1))
        for cut in levels[:-1]:
            above, below = sum(r.y > cut for r in rows), sum(r.y <= cut for r in rows)
            if above and below:
                up += (sum(x > cut for x in one) + 0.5) * (sum(y <= cut for y in two) + 0.5)
                down += (sum(x <= cut for x in one) + 0.5) * (sum(y > cut for y in two) + 0.5)
    return math.log(up / down) if up and down else 0.0


def woolf_floor(rows: Sequence[Row]) -> float:
    """The smallest pooled Woolf variance over the cuts where every cut has a cell under 5; else 0."""
    rows = common(rows)
    one, two = (values(of(rows, side=side)) for side in (0, 1))
    found = []
    for cut in levels_of(rows)[:-1]:
        cells = [sum(x > cut for x in one), sum(x <= cut for x in one)]
        cells += [sum(y > cut for y in two), sum(y <= cut for y in two)]
        if min(cells) >= 5:
            return 0.0
        found.append(sum(1 / (cell + (0.5 if min(cells) == 0 else 0)) for cell in cells))
    return min(found, default=0.0)


def balanced_v(rows: Sequence[Row]) -> float:
    """Cramér's V of a table in which both groups weigh the same; blocks do not matter."""
    total = 0.0
    for label in {r.y for r in rows}:
        p1, p2 = (fmean(r.y == label for r in of(rows, side=side)) for side in (0, 1))
        middle = (p1 + p2) / 2
        total += ((p1 - middle) ** 2 + (p2 - middle) ** 2) / middle
    return math.sqrt(total / 2)


# ---------------------------------------------------------------- the interval


def without(rows: Sequence[Row], name: Hashable, side: int | None) -> list[Row]:
    """The rows that stay when a name leaves one side, or (None) both."""
    return [r for r in rows if r.name != name or (side is not None and r.side != side)]


def jackknife(rows: Sequence[Row], estimate: Estimate, *, parts: bool = False) -> float:
    """The standard error of *estimate*; infinite where it cannot be had without some name."""
    rows = common(rows)
    pair = paired(rows)

    def again(left: list[Row]) -> float:
        left = common(left)
        return estimate(left) if left else math.nan

    left_out = [{name: again(without(rows, name, None if pair else side)) for name in names_on(rows, side)}
                for side in (0, 1)]  # fmt: skip
    if not all(math.isfinite(value) for side in left_out for value in side.values()):
        return math.inf
    influence = {
        (side, name): (len(found) - 1) * (fmean(found.values()) - value)
        for side, found in enumerate(left_out)
        for name, value in found.items()
    }
    if pair:  # both sides hold the same estimates: they count once
        influence |= {(1, name): 0.0 for name in left_out[1]}
    return math.sqrt(spread(rows, influence, parts))


def interval(
    rows: Sequence[Row],
    estimate: Estimate,
    *,
    yes_no: bool,
    least: float = 0.0,
    parts: bool = False,
) -> tuple[float, float]:
    """The 90 % interval θ ± t·SE, with the degrees of freedom of the test on names."""
    value, error = estimate(list(rows)), max(jackknife(rows, estimate, parts=parts), least)
    _, df, _ = cluster_test(rows, yes_no=yes_no, parts=parts)
    reach = float(stats.t.ppf(0.95, df)) * error if df >= 1 else math.inf
    return value - reach, value + reach


# ---------------------------------------------------------------- labels


def chi_square(table: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Pearson's statistic of a table without empty columns, and how many columns that has."""
    return float(stats.chi2_contingency(table, correction=False).statistic), len(table[0])


def counts(rows: Sequence[Row]) -> list[list[float]]:
    return [[float(sum(r.y == label for r in of(rows, side=side))) for label in sorted({r.y for r in rows})]
            for side in (0, 1)]  # fmt: skip


def categorical_design_effect(rows: Sequence[Row]) -> float:
    """max(1, mean over labels of (1−p)·var/(p(1−p)/n)·C/(C−1)), var that of names' proportions over
    K.
    """
    held = sorted({r.y for r in rows})
    n = 2 / sum(1 / len(of(rows, side=side)) for side in (0, 1))
    terms = []
    for label in held:
        p = fmean(r.y == label for r in rows)
        spreads = []
        for side in (0, 1):
            shares = [
                fmean(r.y == label for r in of(rows, side=side, name=name))
                for name in names_on(rows, side)
            ]
            spreads.append(variance_of(shares) / len(shares))
        terms.append((1 - p) * fmean(spreads) / (p * (1 - p) / n))
    return max(1.0, fmean(terms) * len(held) / (len(held) - 1))


def categorical_test(rows: Sequence[Row]) -> tuple[float, float, float]:
    """Chi-square, its p, and p of the F on the names."""
    statistic, columns = chi_square(counts(rows))
    df = columns - 1
    freedom = df * (len(names_on(rows, 0)) + len(names_on(rows, 1)) - 2)
    f = statistic / (categorical_design_effect(rows) * df)
    return statistic, float(stats.chi2.sf(statistic, df)), float(stats.f.sf(f, df, freedom))


# ---------------------------------------------------------------- rates


def two_rates(
    p1: float, n1: float, p2: float, n2: float, z: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Newcombe's interval of the difference of two rates, and Katz's of their ratio."""
    of_rates, alpha = (p1 * n1, n1, p2 * n2, n2), 2 * float(stats.norm.sf(z))
    return (
        confint_proportions_2indep(*of_rates, method="newcomb", compare="diff", alpha=alpha),
        confint_proportions_2indep(*of_rates, method="log", compare="ratio", alpha=alpha),
    )


def design_effect(rows: Sequence[Row]) -> float:
    """The squared error of the names' difference over that of independent rows, at least 1."""
    rows = common(rows)
    variance, _ = pooled(rows, within=pools_within_blocks(rows))
    plain = variance * sum(1 / len(of(rows, side=side)) for side in (0, 1))
    return max(1.0, name_contrast(rows, yes_no=True)[1] / plain) if plain > 0 else 1.0


def nearly_equal(rows: Sequence[Row]) -> bool:
    """Both 90 % intervals, of the difference and of the ratio of the rates of yes, inside ±5 points
    and (.8, 1.25).
    """
    rows = common(rows)
    deff = design_effect(rows)
    _, df, _ = cluster_test(rows, yes_no=True)
    if df < 1:
        return False
    z = float(stats.t.ppf(0.95, df))
    (p1, n1), (p2, n2) = (
        (fmean(values(own)), len(own) / deff) for own in (of(rows, side=0), of(rows, side=1))
    )
    if p1 == 0 or p2 == 0:
        return False
    (low, high), (least, most) = two_rates(p1, n1, p2, n2, z)
    return bool(max(abs(low), abs(high)) < 0.05 and least > 0.8 and most < 1.25)


# ---------------------------------------------------------------- choices


@dataclass(frozen=True, slots=True)
class Choice:
    """One trial between A and B: who was listed first, and who won."""

    a_first: bool
    a_won: bool
    pair: Hashable


def preference(trials: Sequence[Choice]) -> dict[str, float]:
    """One block: z, both p-values, the win rate and the effect within order, with the interval of
    the latter.
    """
    ahead, behind = [t for t in trials if t.a_first], [t for t in trials if not t.a_first]
    f1, f2 = fmean(t.a_won for t in ahead), fmean(not t.a_won for t in behind)
    q = fmean(t.a_won == t.a_first for t in trials)
    weight = len(ahead) * len(behind) / len(trials)
    z = weight * (f1 - f2) / math.sqrt(weight * q * (1 - q))
    middle = (f1 + f2) / 2
    pairs = sorted({t.pair for t in trials}, key=str)
    means = [
        fmean(t.a_won - (middle if t.a_first else 1 - middle) for t in trials if t.pair == p)
        for p in pairs
    ]
    error = math.sqrt(variance_of(means) / len(means))
    df = len(pairs) - 1
    t = fmean(means) / error
    plain = math.sqrt(f1 * (1 - f1) / len(ahead) + f2 * (1 - f2) / len(behind)) / 2
    a, b = sum(t.a_won for t in ahead), sum(not t.a_won for t in ahead)
    c, d = sum(not t.a_won for t in behind), sum(t.a_won for t in behind)
    within = math.log(a * d / (b * c)) / 2 * TO_D
    woolf = sum(1 / cell for cell in (a, b, c, d))
    quantile = float(stats.t.ppf(0.95, df))
    deff = max(1.0, (error / plain) ** 2)
    rate = 0.5 + (f1 - f2) / 2
    return {
        "z": z,
        "p_row": 2 * float(stats.norm.sf(abs(z))),
        "p_cluster": 2 * float(stats.t.sf(abs(t), df)),
        "rate": rate,
        "effect": math.log(rate / (1 - rate)) * TO_D,
        "reach": quantile * max(error, plain) / (rate * (1 - rate)) * TO_D,
        "within": within,
        "within_reach": quantile * math.sqrt(woolf * deff) / 2 * TO_D,
    }
