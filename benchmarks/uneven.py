"""Audits whose groups are not alike in what should not matter: spread, rows a name, answers that
never came, tails.

The targets G29–G33 of the calibration, each with a fixed seed through the public ``analyze_…``
functions and ``compare_baseline``. ``python benchmarks/calibration.py --only GOAL …`` runs them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from audits import Design, Row, alarmed, at_least, at_most, judged, passed
from published_tables import made_tables, rows_of

from pytest_fairness import Finding, Verdict, compare_baseline
from pytest_fairness.analysis.baseline import summarise_scores

SEED = 20261129


def rng_of(*seed: int) -> np.random.Generator:
    return np.random.default_rng([SEED, *seed])


def cells_of(rows: dict[str, list[int]], templates: int = 5) -> pd.DataFrame:
    """Two groups whose names have so many rows each, dealt over the templates."""
    cells = [
        (group, f"{group}{name}", at % templates, at // templates)
        for group, counts in rows.items()
        for name, count in enumerate(counts)
        for at in range(count)
    ]
    return pd.DataFrame(cells, columns=["group", "name", "template", "repetition"])


def spread(count: int) -> list[Row]:
    """G29: one group spreads five or ten times as wide as the other; and the strongest differences
    are still found.
    """
    rows = []
    for at, (wide, narrow) in enumerate(((3.0, 0.3), (5.0, 1.0))):
        for place, (first, second) in enumerate(((20, 20), (6, 20), (20, 6), (5, 40))):
            frame = cells_of({"A": [10] * first, "B": [10] * second})
            names, noise = (
                pd.factorize(frame["name"])[0],
                np.where(frame["group"] == "A", wide, narrow),
            )

            def make(rng: np.random.Generator, _: float, names=names, noise=noise) -> np.ndarray:
                return rng.normal(0, 0.2, names.max() + 1)[names] + rng.normal(0, noise)

            what = f"SD {wide:g} against {narrow:g}, {first} and {second} names: fair audit alarms"
            rows.append(
                at_most(
                    "G29", what, 0.067, alarmed(judged(frame, make, count, rng_of(29, at, place)))
                )
            )
    design = Design(groups=2, names=10)
    for d in (2.0, 3.0, 5.0):
        found = judged(
            design.frame(), lambda rng, d: design.latent(rng, d=d), count, rng_of(29, 9, int(d)), d
        )
        rows.append(at_least("G29", f"10 names, d = {d:g}: found", 0.99, alarmed(found)))
    return rows


def holding_zero(found: list[Finding]) -> list[bool]:
    """Of each pair that fails, whether its interval holds 0."""
    fails = [pair for finding in found for pair in finding.pairs if pair.verdict is Verdict.FAIL]
    return [
        bool(pair.effect_low is not None and pair.effect_low <= 0 <= (pair.effect_high or 0.0))
        for pair in fails
    ]


def rows_a_name(count: int) -> list[Row]:
    """G30: a name of 500 rows among nineteen of 10, and numbers of rows after Zipf."""
    zipf = [max(round(200 / place), 1) for place in range(1, 21)]
    plans = {"1 × 500 and 19 × 10 rows": [500] + [10] * 19, "rows after Zipf": zipf}
    rows = []
    for at, (what, counts) in enumerate(plans.items()):
        frame = cells_of({"A": counts, "B": [10] * 20})
        names, own = pd.factorize(frame["name"])[0], (frame["group"] == "A").to_numpy()
        for place, name_sd in enumerate((0.2, 1.0)):

            def make(
                rng: np.random.Generator, d: float, names=names, own=own, name_sd: float = name_sd
            ) -> np.ndarray:
                level = rng.normal(0, name_sd, names.max() + 1)[names]
                return level + rng.normal(size=names.size) - d * own

            fair = judged(frame, make, count, rng_of(30, at, place, 0))
            apart = judged(frame, make, max(count // 2, 20), rng_of(30, at, place, 1), 0.8)
            told = f"{what}, name SD {name_sd:g}"
            rows.append(at_most("G30", f"{told}: fair audit alarms", 0.06, alarmed(fair)))
            if held := holding_zero([*fair, *apart]):
                rows.append(at_most("G30", f"{told}: the interval of a FAIL holds 0", 0.0, held))
    return rows


def unanswered(count: int) -> list[Row]:
    """G31: answers missing at random, half of which a second request brought."""
    design, rows = Design(), []
    for place, kind in enumerate(("numeric", "approvals at .5")):
        for at, (lost, least) in enumerate(((0.03, 0.85), (0.06, 0.70))):

            def make(
                rng: np.random.Generator, _: float, lost: float = lost, place: int = place
            ) -> np.ndarray:
                y = design.approved(rng, 0.5) if place else design.latent(rng)
                return np.where(rng.random(y.shape) < lost / 2, np.nan, y)

            fair = judged(
                design.frame(),
                make,
                count,
                rng_of(31, place, at),
                kind="binary" if place else "numeric",
            )
            what = f"{kind}, {100 * lost:.0f} % unanswered at random, half of them mended"
            rows.append(at_most("G31", f"{what}: fair audit alarms", 0.04, alarmed(fair)))
            rows.append(at_least("G31", f"{what}: fair audit passes", least, passed(fair)))
    return rows


NOISE: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "t₃": lambda rng, size: rng.standard_t(3, size) / np.sqrt(3),
    "Laplace": lambda rng, size: rng.laplace(size=size) / np.sqrt(2),
    "4 % missing": lambda rng, size: rng.normal(size=size),
}


def tails(count: int) -> list[Row]:
    """G32: the baseline gate where nothing has changed, categories in five dimensions."""
    people, times, rows = 100, 3, []
    who = np.arange(people)
    dimensions = {
        "a": np.where(who < 5, 0, 1 + who % 7),
        "b": who % 2,
        "c": who // 2 % 4,
        "d": who // 5 % 5,
        "e": who // 20,
    }
    index = np.repeat(who, times)
    frame = pd.DataFrame({"persona": index, "repetition": np.tile(np.arange(times), people)})
    frame = frame.assign(**{name: codes[index] for name, codes in dimensions.items()})
    for at, (name, noise) in enumerate(NOISE.items()):
        rng, found = rng_of(32, at), []
        for _ in range(count):
            level = rng.normal(80, 6, people)[index]
            scores = [level + 6 * noise(rng, index.size) for _ in range(2)]
            if "missing" in name:
                scores[1][rng.choice(index.size, round(0.04 * index.size), replace=False)] = np.nan
            old, new = (
                summarise_scores(frame, one.tolist(), categories=list(dimensions)) for one in scores
            )
            found.append(compare_baseline(old, new, margin_overall=1.0, margin_category=3.0))
        open_ = [finding.verdict is Verdict.INCONCLUSIVE for finding in found]
        failed = [finding.verdict is Verdict.FAIL for finding in found]
        rows.append(at_most("G32", f"gate, no change, {name}: INCONCLUSIVE", 0.05, open_))
        rows.append(at_most("G32", f"gate, no change, {name}: FAIL", 0.01, failed))
    return rows


def made(count: int) -> list[Row]:
    """G33: four-fifths on tables like those published; ``published_tables.py`` takes those
    themselves.
    """
    return rows_of(made_tables(count, SEED), "four-fifths, made tables")[0]


GOALS: tuple[Callable[[int], list[Row]], ...] = (spread, rows_a_name, unanswered, tails, made)
