"""What is computed for all pairs, strata and names at once is what loops over the rows of one pair
give.

Designs are drawn at random: ragged, paired, partly shared, of unequal numbers of names, names made
of parts that recur, one name a group, rows that stand for themselves.
"""

from __future__ import annotations

import math
import string
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import pandas as pd
import pytest

from pytest_fairness.analysis.preference import analyze_preference
from pytest_fairness.model import OutcomeKind
from pytest_fairness.statistics.arrays import Values, read_design
from pytest_fairness.statistics.compare import measure
from pytest_fairness.statistics.pair_table import PairTable, Strata
from pytest_fairness.statistics.proportions import ClusteredRates, nearly_equal

from . import by_hand as slow
from .by_hand import Row

SHAPES = ("apart", "paired", "partly", "nested", "matched", "one name")
KINDS = (OutcomeKind.NUMERIC, OutcomeKind.ORDINAL, OutcomeKind.BINARY)
DESIGNS = 4
"""Of each kind and shape."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Two groups' rows; ``parts``: names have first and last names, ``own_rows``: every row stands
    for itself.
    """

    rows: list[Row]
    parts: bool
    own_rows: bool

    @property
    def units(self) -> list[Row]:
        """The rows with the units of evidence as their names."""
        if self.own_rows:
            return [replace(r, name=at) for at, r in enumerate(self.rows)]
        return self.rows

    @property
    def recurring(self) -> bool:
        """Whether a part of a name recurs within a group."""
        if not self.parts or self.own_rows:
            return False
        named = {(r.side, r.name): r for r in self.rows}.values()
        return any(
            len({getattr(r, part) for r in named if r.side == side})
            < sum(r.side == side for r in named)
            for side in (0, 1)
            for part in ("first", "last")
        )


def draw(rng: np.random.Generator, kind: OutcomeKind, shape: str) -> Drawn:
    """A design of *shape* with an outcome of *kind*."""
    blocks = int(rng.integers(1, 5))
    names = [int(rng.integers(2, 9)) for _ in range(2)]
    if shape in ("paired", "matched"):
        names[1] = names[0]
    if shape == "matched":
        blocks, names = 1, [names[0] + 4, names[0] + 4]
    if shape == "one name":
        names[int(rng.integers(2))] = 1
    parts = bool(rng.random() < 0.5)
    firsts, lasts = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    shift, ceiling = rng.choice([0.0, 0.7, 3.0]), rng.choice([0.0, 2.0, -2.0])
    gaps = bool(rng.random() < 0.6) and blocks > 1
    rows = []
    for side in (0, 1):
        for n in range(names[side]):
            both = shape in ("paired", "matched") or (shape == "partly" and n % 2 == 0)
            name = f"x{_letters(n)}" if both else f"{'yz'[side]}{_letters(n)}"
            first, last = name, name
            if parts:
                first, last = f"F{_letters(n % firsts)}", f"L{_letters((n // firsts) % lasts)}"
                name = f"{first} {name} {last}"
            level = rng.normal(0, 0.5)
            if (
                shape == "matched"
            ):  # every name in a block of its own, now and then on one side only
                if rng.random() < 0.9:
                    y = level + rng.normal() + shift * side
                    rows.append(
                        Row(
                            _outcome(y, kind, ceiling),
                            side,
                            name,
                            f"t{n // 2 if parts else n}",
                            first,
                            last,
                        )
                    )
                continue
            for block in range(blocks):
                if (shape == "nested" and block != n % blocks) or (gaps and rng.random() < 0.25):
                    continue
                for _ in range(int(rng.integers(1, 4))):
                    y = level + rng.normal() + 0.5 * block + shift * side
                    rows.append(
                        Row(_outcome(y, kind, ceiling), side, name, f"t{block}", first, last)
                    )
    return Drawn(rows, parts, own_rows=bool(rng.random() < 0.2))


def _letters(number: int) -> str:
    """A number as letters: a name with a digit is not split into parts."""
    return string.ascii_lowercase[number]


def _outcome(y: float, kind: OutcomeKind, ceiling: float) -> float:
    if kind is OutcomeKind.ORDINAL:
        return float(min(max(round(y + ceiling), -1), 3))
    if kind is OutcomeKind.BINARY:
        return float(y > ceiling)
    return float(y)


def compare(drawn: Drawn, kind: OutcomeKind, categories: int = 0) -> PairTable:
    frame = pd.DataFrame(
        {
            "group": ["AB"[r.side] for r in drawn.rows],
            "name": [str(r.name) for r in drawn.rows],
            "template": [str(r.block) for r in drawn.rows],
        }
    )
    design = read_design(frame, ("group",), cluster=None if drawn.own_rows else "name")
    y = np.array([r.y for r in drawn.rows])
    outcome = Values(values=y, kind=kind, categories=tuple(map(str, range(categories))))
    return measure(design, outcome, np.ones(y.size, dtype=np.bool_)).pairs


def fewest_names(rows: list[Row]) -> int:
    return min(len(slow.names_on(slow.common(rows), side)) for side in (0, 1))


def usable(drawn: Drawn) -> bool:
    """Both groups stand in some block, and something varies."""
    rows = slow.common(drawn.units)
    return bool(rows) and any(
        len({r.y for r in drawn.rows if r.side == side}) > 1 for side in (0, 1)
    )


def without_copies(rows: list[Row]) -> list[Row]:
    """One row a cell where every cell repeats itself exactly; then each row a unit of its own."""
    cells: dict[tuple[object, ...], set[float]] = {}
    for r in rows:
        cells.setdefault((r.side, r.name, r.block), set()).add(r.y)
    if max(map(len, cells.values())) == 1:
        rows = list({(r.side, r.name, r.block): r for r in rows}.values())
    return [replace(r, name=at) for at, r in enumerate(rows)]


def same(ours: float, theirs: float, what: str) -> None:
    if math.isinf(theirs) or math.isinf(ours):
        assert ours == theirs, what
    else:
        assert ours == pytest.approx(theirs, rel=1e-7, abs=1e-8), what


def check_interval(found: PairTable, at: int, value: float, ends: tuple[float, float]) -> None:
    if not math.isfinite(value):
        return
    what, effect = found.effect_names[at], found.effect[0, at]
    same(float(effect), value, f"{what}: value")
    same(float(found.high[0, at] - effect), ends[1] - value, f"{what}: upper end")
    same(float(effect - found.low[0, at]), value - ends[0], f"{what}: lower end")


def check(drawn: Drawn, kind: OutcomeKind) -> None:
    rows = drawn.units
    yes_no = kind is OutcomeKind.BINARY
    found = compare(drawn, kind)
    same(float(found.ragged[0]), 1 - len(slow.common(rows)) / len(rows), "share of rows lost")
    parts = drawn.recurring
    alone = fewest_names(rows) < 2
    if alone:
        rows, parts = rows if drawn.own_rows else without_copies(rows), False
    z, p_row = slow.row_test(rows, yes_no=yes_no)
    same(float(found.figures["z"][0]), z, "z")
    if not found.test[0].startswith("Fisher"):
        same(float(found.p_row[0]), p_row, "p of the rows")
    if fewest_names(rows) < 2:
        assert found.p_value[0] == found.p_row[0]
        return
    t, df, p_cluster = slow.cluster_test(rows, yes_no=yes_no, parts=parts)
    p_delta, of_delta = (0.0, (0.0, 0.0)) if yes_no else slow.delta_test(rows, df, parts=parts)
    if alone:
        assert math.isnan(found.p_cluster[0])
        assert found.p_value[0] == found.p_row[0]
    else:
        same(float(found.df[0]), df, "degrees of freedom")
        same(float(found.p_cluster[0]), p_cluster, "p of the names")
        same(float(found.figures["t"][0]), t, "t")
        if not yes_no:
            same(float(found.figures["p_delta"][0]), p_delta, "p of δ")
        p = slow.evidence(rows, float(found.p_row[0]), p_cluster, p_delta, yes_no=yes_no)
        same(float(found.p_value[0]), p, "p of the pair")
        if parts:
            same(
                float(found.part_clusters[0]),
                slow.effective_parts(slow.common(rows)),
                "effective parts",
            )
    if kind is OutcomeKind.NUMERIC:
        within = slow.pools_within_blocks(rows)

        def g(own: list[Row]) -> float:
            return slow.hedges_g(own, within=within)

        estimates = ((g, 0.0), (slow.d_of_delta, 0.0))
        same(float(found.figures["cliffs_delta"][0]), slow.cliffs_delta(rows), "δ")
    else:
        levels = slow.levels_of(rows)
        floor = math.sqrt(slow.woolf_floor(rows)) * slow.TO_D
        estimates = ((lambda own: slow.log_odds(own, levels) * slow.TO_D, floor),)
    assert len(found.effect_names) == len(estimates)
    for at, (estimate, least) in enumerate(estimates):
        low, high = slow.interval(rows, estimate, yes_no=yes_no, least=least, parts=parts)
        value = estimate(rows)
        if (
            estimate is slow.d_of_delta
            and low <= 0 <= high
            and max(p_row, p_cluster, p_delta) < 0.1
        ):
            low, high = (
                (max(low, of_delta[0]), high) if value > 0 else (low, min(high, of_delta[1]))
            )
        check_interval(found, at, value, (low, high))
    if yes_no and not math.isnan(found.p_cluster[0]) and not parts:
        same(float(found.figures["design_effect"][0]), slow.design_effect(rows), "design effect")
        p = [found.figures["rate_1"], found.figures["rate_2"]]
        n = found.rows.T
        rates = ClusteredRates(p[0], n[0], p[1], n[1], found.figures["design_effect"], found.df)
        near, _ = nearly_equal(rates)
        assert bool(near[0]) is slow.nearly_equal(rows)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_any_design_is_judged_as_by_hand(kind: OutcomeKind, shape: str) -> None:
    """p-values, degrees of freedom, effects and jackknifed intervals of a pair."""
    rng = np.random.default_rng([KINDS.index(kind), SHAPES.index(shape)])
    done = 0
    while done < DESIGNS:
        drawn = draw(rng, kind, shape)
        if usable(drawn):
            check(drawn, kind)
            done += 1


@pytest.mark.parametrize("shape", ["apart", "paired", "nested"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_template_alone_is_judged_as_by_hand(kind: OutcomeKind, shape: str) -> None:
    """p and effects within a template; a name that stands alone on its side there is no evidence."""
    rng = np.random.default_rng([7, KINDS.index(kind), SHAPES.index(shape)])
    done = seen = 0
    while done < DESIGNS // 2 and seen < 20 * DESIGNS:
        seen += 1
        drawn = draw(rng, kind, shape)
        strata = compare(drawn, kind).strata if usable(drawn) else None
        if strata is None or fewest_names(drawn.units) < 2:
            continue
        done += 1
        blocks = slow.labels(drawn.rows, "block")
        for at, block in enumerate(strata.block.tolist()):
            check_block(
                slow.of(drawn.units, block=blocks[block]), kind, strata, at, parts=drawn.recurring
            )


def check_block(
    rows: list[Row], kind: OutcomeKind, strata: Strata, at: int, *, parts: bool
) -> None:
    yes_no = kind is OutcomeKind.BINARY
    sides = [slow.values(slow.of(rows, side=side)) for side in (0, 1)]
    assert strata.rows[at].tolist() == [len(side) for side in sides]
    assert strata.means[at].tolist() == pytest.approx([fmean(side) for side in sides])
    if fewest_names(rows) < 2:
        assert strata.p_value[at] == 1
        return
    _, p_row = slow.row_test(rows, yes_no=yes_no)
    _, _, p_cluster = slow.cluster_test(rows, yes_no=yes_no, parts=parts)
    same(
        float(strata.p_value[at]),
        slow.evidence(rows, p_row, p_cluster, yes_no=yes_no),
        "p within the block",
    )
    if kind is OutcomeKind.NUMERIC:
        values = [slow.hedges_g(rows), slow.d_of_delta(rows)]
    else:
        values = [slow.log_odds(rows, slow.levels_of(rows)) * slow.TO_D]
    for effect, value in zip(strata.effect[at].tolist(), values, strict=True):
        same(effect, value, "effect within the block")


@pytest.mark.parametrize("seed", range(4))
def test_labels_are_compared_as_by_hand(seed: int) -> None:
    """Chi-square, the design-corrected F and the balanced V of three or four labels."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 5))
    rows = []
    for side in (0, 1):
        for n in range(int(rng.integers(3, 9))):
            lean = rng.dirichlet(np.full(count, 3.0))
            drawn = rng.choice(count, size=int(rng.integers(8, 14)), p=lean)
            rows += [Row(float(label), side, f"{side}{n}") for label in drawn]
    found = compare(Drawn(rows, parts=False, own_rows=False), OutcomeKind.CATEGORICAL, count)
    chi2, p_row, p_cluster = slow.categorical_test(rows)
    v = slow.balanced_v(rows)
    same(float(found.value_of_test[0]), chi2, "chi-square")
    same(
        float(found.figures["design_effect"][0]),
        slow.categorical_design_effect(rows),
        "design effect",
    )
    same(float(found.p_cluster[0]), p_cluster, "p of the names")
    same(float(found.figures["cramers_v_balanced"][0]), v, "V")
    same(float(found.effect[0, 0]), 2 * v / math.sqrt(1 - v * v), "d of V")
    if found.figures["smallest_expected_count"][0] >= 5:
        same(float(found.p_row[0]), p_row, "p of the rows")
        assert found.p_value[0] == max(found.p_row[0], found.p_cluster[0])


def test_rare_labels_are_tested_by_permuting_rows() -> None:
    """Tables with the same margins that are as far from equal are as frequent as when labels are
    dealt out again.
    """
    held = [(0, 0)] * 9 + [(0, 1)] * 2 + [(1, 0)] * 4 + [(1, 2)] * 5
    rows = [Row(float(y), side, at) for at, (side, y) in enumerate(held)]
    found = compare(Drawn(rows, parts=False, own_rows=True), OutcomeKind.CATEGORICAL, 3)
    rng, labels = np.random.default_rng(1), np.array([r.y for r in rows])
    chi2, _ = slow.chi_square(slow.counts(rows))
    dealt = []
    for _ in range(500):
        rng.shuffle(labels)
        again = [replace(r, y=float(y)) for r, y in zip(rows, labels, strict=True)]
        dealt.append(slow.chi_square(slow.counts(again))[0] >= chi2 * (1 - 1e-9))
    assert found.test[0].startswith("Fisher by permutation")
    assert found.p_row[0] == pytest.approx(fmean(dealt), abs=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_a_preference_is_judged_as_by_hand(seed: int) -> None:
    """z, the t over name pairs, both effects and their intervals, in one block with both orders."""
    rng = np.random.default_rng(seed)
    position, lean = rng.choice([0.0, 1.0, 2.0]), rng.choice([0.0, 0.8])
    trials = []
    for pair in range(int(rng.integers(4, 12))):
        own = lean + rng.normal(0, 0.5)
        for a_first in (True, False):
            for _ in range(int(rng.integers(4, 9))):
                first_won = rng.random() < 1 / (
                    1 + math.exp(-position - (own if a_first else -own))
                )
                trials.append(slow.Choice(a_first, bool(first_won) is a_first, f"pair {pair}"))
    frame = pd.DataFrame(
        {
            "first": ["A" if t.a_first else "B" for t in trials],
            "second": ["B" if t.a_first else "A" for t in trials],
            "chosen": ["A" if t.a_won else "B" for t in trials],
            "name": [t.pair for t in trials],
        }
    )
    (found,) = analyze_preference(frame).pairs
    by_hand, s = slow.preference(trials), found.statistics
    for name, value in (
        ("z", by_hand["z"]),
        ("win_rate_1", by_hand["rate"]),
        ("d_from_win_rate", by_hand["effect"]),
        ("d_from_win_rate_low", by_hand["effect"] - by_hand["reach"]),
        ("d_within_order", by_hand["within"]),
        ("d_within_order_high", by_hand["within"] + by_hand["within_reach"]),
    ):
        same(float(str(s[name])), value, name)
    same(found.p_row, by_hand["p_row"], "p of the rows")
    assert found.p_cluster is not None
    same(found.p_cluster, by_hand["p_cluster"], "p of the name pairs")
    assert found.p_value == max(found.p_row, found.p_cluster)
    larger = max((float(str(s["d_from_win_rate"])), float(str(s["d_within_order"]))), key=abs)
    assert found.effect == pytest.approx(
        larger, rel=1e-11
    )  # a pair rounds to twelve digits, its statistics do not
