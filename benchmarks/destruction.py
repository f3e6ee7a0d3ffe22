"""Audits made to mislead the verdicts: outliers, heavy tails, ratings at the ceiling, ragged designs, missing answers.

The targets G13–G26 of the calibration, each simulated with a fixed seed through the public ``analyze_…`` functions: a
fair system must not raise the alarm, a biased one must not pass. ``benchmarks/calibration.py`` runs them with its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr, ndtri

from pytest_fairness import (
    Finding,
    Verdict,
    analyze_disparity,
    analyze_four_fifths,
    analyze_preference,
    compare_baseline,
    plan_sample,
)
from pytest_fairness.model import PairResult
from pytest_fairness.statistics.persona_scores import summarise_scores
from pytest_fairness.statistics.power import label_shares

ALARM = (Verdict.FLAG, Verdict.FAIL)
LOGIT = np.pi / np.sqrt(3)
SEED = 20261122
BIASED = 0.4
"""Share of the fair audits' number that is simulated of biased ones."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line: *measured* against *target*; *met* whether it holds."""

    id: str
    what: str
    target: str
    measured: float
    runs: int
    met: bool


def at_most(id_: str, what: str, limit: float, values: list[bool]) -> Row:
    found = share(values)
    return Row(id_, what, f"≤ {limit:g}".replace("0.", "."), found, len(values), found <= limit + noise(limit, values))


def at_least(id_: str, what: str, limit: float, values: list[bool]) -> Row:
    found = share(values)
    return Row(id_, what, f"≥ {limit:g}".replace("0.", "."), found, len(values), found >= limit - noise(limit, values))


def noise(limit: float, values: list[bool]) -> float:
    """Two standard errors of a share that is *limit*."""
    return 2 * float(np.sqrt(limit * (1 - limit) / max(len(values), 1))) + 1e-12


def reported(id_: str, what: str, values: list[bool]) -> Row:
    return Row(id_, what, "reported", share(values), len(values), True)


def share(values: list[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")


def fewer(count: int) -> int:
    return max(int(count * BIASED), 20)


def rng_of(*seed: int) -> np.random.Generator:
    return np.random.default_rng([SEED, *seed])


# ---------------------------------------------------------------- designs


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Groups A, B, …, each of so many names in every template and repetition; names differ by *name_sd*."""

    groups: int = 4
    names: int = 20
    templates: int = 5
    repetitions: int = 2
    name_sd: float = 0.2

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.groups, self.names, self.templates, self.repetitions

    @property
    def unit(self) -> float:
        """One d in units of the noise: the SD within group and template."""
        return float(np.sqrt(1 + self.name_sd**2))

    def frame(self) -> pd.DataFrame:
        group, name, template, repetition = (axis.ravel() for axis in np.indices(self.shape))
        letters = np.array(list("ABCDEFGH"))
        return pd.DataFrame(
            {
                "group": letters[group],
                "name": [f"{letters[g]}{n}" for g, n in zip(group, name, strict=True)],
                "template": template,
                "repetition": repetition,
            }
        )

    def latent(self, rng: np.random.Generator, noise: np.ndarray | None = None) -> np.ndarray:
        names = rng.normal(0, self.name_sd, (self.groups, self.names, 1, 1))
        templates = 0.2 * np.arange(self.templates)[None, None, :, None]
        return names + templates + (rng.normal(size=self.shape) if noise is None else noise)


def findings(
    design: Design, make: Callable[[np.random.Generator], np.ndarray], count: int, *seed: int, **options: object
) -> Iterator[Finding]:
    """Judged audits of what *make* gives for each row."""
    rng, frame = rng_of(*seed), design.frame()
    for _ in range(count):
        frame["y"] = np.asarray(make(rng)).ravel()
        yield analyze_disparity(frame, "y", "group", **options)


def alarmed(found: Iterator[Finding] | list[Finding]) -> list[bool]:
    return [finding.verdict in ALARM for finding in found]


def own_pairs(finding: Finding, metric: str = "y") -> list[PairResult]:
    """The pairs of group A, which is the biased one, on the outcome."""
    return [pair for pair in finding.pairs if pair.group_1 == "A" and pair.metric == metric]


def green(found: list[Finding]) -> list[bool]:
    """Whether a pair with the biased group passes."""
    return [pair.verdict is Verdict.PASS for finding in found for pair in own_pairs(finding)]


# ---------------------------------------------------------------- G13, G14: outliers and heavy tails


def outliers(count: int) -> list[Row]:
    """One reply 12 or 100 standard deviations out, in the group that is worse off."""
    design, rows = Design(), []
    for size in (12, 100):

        def make(rng: np.random.Generator, size: int = size, d: float = 0.0) -> np.ndarray:
            y = design.latent(rng)
            y[0] -= d * design.unit
            y[0].ravel()[rng.integers(y[0].size)] += size  # ravel of a contiguous part is a view
            return y

        fair = list(findings(design, make, count, 13, size, kind="numeric"))
        biased = list(findings(design, lambda rng, m=make: m(rng, d=0.5), fewer(count), 13, size, 1, kind="numeric"))
        named = [p.worse_off == "A" for f in biased for p in own_pairs(f) if p.verdict in ALARM]
        what = f"one reply {size} SD out"
        rows += [
            at_most("G13", f"{what}: fair audit alarms", 0.06, alarmed(fair)),
            at_most("G13", f"{what}: d = .5 passes, a pair", 0.06, green(biased)),
            at_least("G13", f"{what}: the right group is named", 0.99, named),
        ]
    return rows


@cache
def tail_shift(kind: str, d: float) -> float:
    """The shift that makes δ that of two normal groups *d* apart, names included."""
    rng = np.random.default_rng(7)
    one, other = (_noise(kind, rng, (400_000,)) + rng.normal(0, 0.2, 400_000) for _ in range(2))
    wanted = 2 * float(__import__("scipy.special", fromlist=["ndtr"]).ndtr(d / np.sqrt(2))) - 1
    low, high = 0.0, 5.0
    ordered = np.sort(other)
    for _ in range(40):
        middle = (low + high) / 2
        delta = 2 * float(np.mean(np.searchsorted(ordered, one + middle))) / ordered.size - 1
        low, high = (middle, high) if delta < wanted else (low, middle)
    return (low + high) / 2


def _noise(kind: str, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "lognormal":
        return rng.lognormal(0, 1, shape)
    return rng.standard_t(int(kind[1:]), shape)


def heavy_tails(count: int) -> list[Row]:
    design, rows = Design(), []
    for at, (kind, limit) in enumerate((("t3", 0.06), ("lognormal", 0.06), ("t2", 0.12))):
        shift = tail_shift(kind, 0.5)

        def make(rng: np.random.Generator, shift: float = 0.0, kind: str = kind) -> np.ndarray:
            y = design.latent(rng, _noise(kind, rng, design.shape))
            y[0] -= shift
            return y

        fair = list(findings(design, make, count, 14, at, kind="numeric"))
        biased = list(findings(design, lambda rng, m=make, s=shift: m(rng, s), fewer(count), 14, at, 1, kind="numeric"))
        held = [
            _number(p, "d_from_cliffs_delta_low") < -0.5 < _number(p, "d_from_cliffs_delta_high")
            for f in biased
            for p in own_pairs(f)
            if "d_from_cliffs_delta_low" in p.statistics
        ]
        rows += [
            at_most("G14", f"noise {kind}: fair audit alarms", 0.06, alarmed(fair)),
            at_most("G14", f"noise {kind}: d of δ = .5 passes, a pair", limit, green(biased)),
        ]
        if held:
            rows.append(at_least("G14", f"noise {kind}: 90 % interval of d of δ covers", 0.88, held))
    return rows


def _number(pair: PairResult, name: str) -> float:
    value = pair.statistics.get(name)
    return float(value) if isinstance(value, (int, float)) else float("nan")


# ---------------------------------------------------------------- G15: ratings at the ceiling


def ceiling(count: int) -> list[Row]:
    rows = []
    for at, top in enumerate((0.90, 0.97)):
        for repetitions in (2, 8):
            design = Design(repetitions=repetitions)
            below = (1 - top) * np.array([0.1, 0.2, 0.3, 0.4])
            cuts = logit(np.cumsum(below))

            def make(
                rng: np.random.Generator, d: float = 0.0, design: Design = design, cuts: np.ndarray = cuts
            ) -> np.ndarray:
                names = rng.normal(0, design.name_sd * LOGIT, (design.groups, design.names, 1, 1))
                level = rng.logistic(size=design.shape) + names
                level[0] -= d * LOGIT
                return 1 + np.sum(level[..., None] > cuts, axis=-1)

            what = f"ratings, {100 * top:.0f} % fives, {design.names * design.templates * repetitions} a group"
            fair = list(findings(design, make, count, 15, at, repetitions, kind="ordinal"))
            if repetitions == 8:
                if at == 0:
                    passed = [f.verdict is Verdict.PASS for f in fair]
                    rows.append(at_least("G15", f"{what}: fair audit passes", 0.85, passed))
                continue
            frame, rng = design.frame(), rng_of(15, at, 99)
            greens, apart = [], []
            for _ in range(fewer(count)):
                frame["y"] = make(rng, d=0.5).ravel()
                frame["five"] = frame["y"] == 5
                rating = analyze_disparity(frame, "y", "group", kind="ordinal")
                yes_no = analyze_disparity(frame, "five", "group")
                greens += green([rating])
                apart += [
                    {p.verdict, q.verdict} == {Verdict.PASS, Verdict.FAIL}
                    for p, q in zip(rating.pairs, yes_no.pairs, strict=True)
                ]
            rows += [
                at_most("G15", f"{what}: fair audit alarms", 0.06, alarmed(fair)),
                at_most("G15", f"{what}: d = .5 passes, a pair", 0.06, greens),
                at_most("G15", f"{what}: rating and yes/no of the same replies PASS against FAIL", 0.0, apart),
            ]
    return rows


# ---------------------------------------------------------------- G16: ragged and paired


def unequal(count: int) -> list[Row]:
    """2, 3 or 5 names against 20."""
    rows = []
    for few in (2, 3, 5):
        group, name, template, repetition = [], [], [], []
        for letter, names in (("A", few), ("B", 20)):
            for n, t, r in np.ndindex(names, 5, 2 if names == 20 else 20 // few):
                group.append(letter), name.append(f"{letter}{n}"), template.append(t), repetition.append(r)
        frame = pd.DataFrame({"group": group, "name": name, "template": template, "repetition": repetition})
        codes, first = pd.factorize(frame["name"])[0], (frame["group"] == "A").to_numpy()

        def run(runs: int, d: float, seed: int, few: int = few, frame=frame, codes=codes, first=first) -> list[Finding]:
            rng, found = rng_of(16, few, seed), []
            for _ in range(runs):
                y = rng.normal(0, 0.2, codes.max() + 1)[codes] + rng.normal(size=codes.size)
                frame["y"] = y - d * np.sqrt(1.04) * first
                found.append(analyze_disparity(frame, "y", "group", kind="numeric"))
            return found

        biased = run(fewer(count), 0.5, 1)
        rows += [
            at_most("G16", f"{few} names against 20: fair audit alarms", 0.06, alarmed(run(count, 0.0, 0))),
            at_most("G16", f"{few} names against 20: d = .5 passes", 0.06, green(biased)),
        ]
    return rows


def paired(count: int) -> list[Row]:
    """The same personas in both groups, differing among themselves by 1.5 SD."""
    rows = []
    for people in (6, 20):
        side, person, template, repetition = (
            axis.ravel() for axis in np.indices((2, people, 5, 4 if people == 6 else 2))
        )
        frame = pd.DataFrame(
            {
                "group": np.array(["A", "B"])[side],
                "name": np.char.add("p", person.astype(str)),
                "template": template,
                "repetition": repetition,
            }
        )

        def run(runs: int, d: float, seed: int, people=people, frame=frame, side=side, person=person) -> list[Finding]:
            rng, found = rng_of(16, 100 + people, seed), []
            for _ in range(runs):
                personas, own = rng.normal(0, 1.5, people), rng.normal(0, 0.2, (2, people))
                y = personas[person] + own[side, person] + rng.normal(size=side.size)
                frame["y"] = y - d * np.sqrt(1 + 1.5**2) * (side == 0)
                found.append(analyze_disparity(frame, "y", "group", kind="numeric"))
            return found

        fair, biased = run(count, 0.0, 0), run(fewer(count), 0.5, 1)
        low, high = ("hedges_g_low", "hedges_g_high") if "hedges_g_low" in fair[0].pairs[0].statistics else ("", "")
        held = [
            (_number(p, low) < -0.5 < _number(p, high)) if low else (p.effect_low or 0) < -0.5 < (p.effect_high or 0)
            for f in biased
            for p in own_pairs(f)
        ]
        what = f"{people} paired personas of SD 1.5"
        rows += [
            at_most("G16", f"{what}: fair audit alarms", 0.06, alarmed(fair)),
            at_most("G16", f"{what}: d = .5 passes", 0.06, green(biased)),
            at_least("G16", f"{what}: 90 % interval of g covers", 0.87, held),
        ]
    return rows


# ---------------------------------------------------------------- G17: names made of parts


def parts(count: int) -> list[Row]:
    rows = []
    for at, (what, firsts, lasts) in enumerate(
        (
            ("first × last 4 × 5", 4, 5),
            ("first × last 10 × 2", 10, 2),
            ("own bank, 20 names", 20, 0),
            ("own bank, 40", 40, 0),
        )
    ):
        labels = _combined(firsts, lasts) if lasts else _bank(firsts)
        frame, first, last = _parts_frame(labels)

        def run(runs: int, d: float, seed: int, frame=frame, first=first, last=last, at=at) -> list[Finding]:
            rng, found = rng_of(17, at, seed), []
            codes = pd.factorize(frame["name"])[0]
            own = (frame["group"] == "A").to_numpy()
            for _ in range(runs):
                y = rng.normal(size=codes.size) + rng.normal(0, 0.1, codes.max() + 1)[codes]
                for part in (first, last):
                    y = y + rng.normal(0, 0.2, part.max() + 1)[part]
                frame["y"] = y - d * np.sqrt(1 + 2 * 0.04 + 0.01) * own
                found.append(analyze_disparity(frame, "y", "group", kind="numeric"))
            return found

        rows += [
            at_most("G17", f"{what}: fair audit alarms", 0.06, alarmed(run(count, 0.0, 0))),
            at_most("G17", f"{what}: d = .5 passes, a pair", 0.07, green(run(fewer(count), 0.5, 1))),
        ]
    return rows


def _combined(firsts: int, lasts: int) -> dict[str, list[tuple[str, str]]]:
    return {
        letter: [
            (f"{letter}f{a}x".translate(_WORDS), f"{letter}l{b}y".translate(_WORDS))
            for a in range(firsts)
            for b in range(lasts)
        ]
        for letter in "ABCD"
    }


_WORDS = str.maketrans("0123456789", "abcdefghij")


def _bank(count: int) -> dict[str, list[tuple[str, str]]]:
    from pytest_fairness.design.names import NameBanks

    banks = NameBanks.load(None)
    found = {}
    for letter, group in zip("ABCD", ("white", "black", "hispanic", "asian"), strict=True):
        names = banks.names("race_ethnicity", group, count, seed=0)
        found[letter] = [(name.first, name.last) for name in names]
    return found


def _parts_frame(labels: dict[str, list[tuple[str, str]]]) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rows = [
        (letter, f"{first} {last}", first, last, template, repetition)
        for letter, names in labels.items()
        for first, last in names
        for template in range(5)
        for repetition in range(2)
    ]
    frame = pd.DataFrame(rows, columns=["group", "name", "first_name", "last_name", "template", "repetition"])
    first, last = (pd.factorize(frame["group"] + frame[column])[0] for column in ("first_name", "last_name"))
    return frame, first, last


# ---------------------------------------------------------------- G18: one template


def one_template(count: int) -> list[Row]:
    design = Design()

    def make(rng: np.random.Generator, shifts: tuple[float, ...] = (0, 0, 0, 0, 0)) -> np.ndarray:
        y = design.latent(rng)
        y[0] -= np.array(shifts)[None, :, None] * design.unit
        return y

    fair = list(findings(design, make, count, 18, kind="numeric"))
    rows = [at_most("G18", "5 templates: fair audit alarms", 0.06, alarmed(fair))]
    for at, (what, shifts, limit) in enumerate(
        (
            ("d = .8 in one of five templates", (0, 0, 0.8, 0, 0), 0.25),
            ("d = 1.2 in one of five templates", (0, 0, 1.2, 0, 0), 0.02),
            ("+.8 in one template, −.8 in another", (0, 0.8, 0, -0.8, 0), 0.06),
        )
    ):
        biased = list(findings(design, lambda rng, s=shifts: make(rng, s), fewer(count), 18, at, 1, kind="numeric"))
        passed = [finding.verdict is Verdict.PASS for finding in biased]
        rows.append(at_most("G18", f"{what}: audit passes", limit, passed))
        if at == 1:
            named = [
                "template '2'" in " ".join(n for p in f.pairs for n in p.notes) for f in biased if f.verdict in ALARM
            ]
            rows.append(at_least("G18", f"{what}: the template is named", 0.95, named))
    return rows


# ---------------------------------------------------------------- G19: missing replies


def missing(count: int) -> list[Row]:
    design = Design()
    rows = []

    def make(rng: np.random.Generator, d: float, lost: float, lowest: bool) -> np.ndarray:
        y = design.latent(rng)
        y[0] -= d * design.unit
        out = np.zeros(y.shape, dtype=bool)
        size = y[0].size
        for group in range(4):
            chosen = rng.choice(size, round(lost * size), replace=False)
            if lowest and group == 0:
                chosen = np.argsort(y[0].ravel())[: round(lost * size)]
            out[group].ravel()[chosen] = True
        return np.where(out, np.nan, y)

    for at, lost in enumerate((0.03, 0.06, 0.20)):
        for lowest in (False, True):
            how = "the lowest of one group, others at random" if lowest else "at random"
            seed = 19, 10 * at + lowest
            fair = list(findings(design, lambda r, z=lost, w=lowest: make(r, 0.0, z, w), count, *seed, kind="numeric"))
            half = list(
                findings(design, lambda r, z=lost, w=lowest: make(r, 0.5, z, w), fewer(count), *seed, 1, kind="numeric")
            )
            what = f"{100 * lost:.0f} % unscored, {how}"
            rows += [
                at_most("G19", f"{what}: fair audit alarms", 0.04, alarmed(fair)),
                at_most("G19", f"{what}: d = .5 passes, a pair", 0.06, green(half)),
            ]
            if lost == 0.06:
                large = findings(
                    design, lambda r, z=lost, w=lowest: make(r, 0.8, z, w), fewer(count), *seed, 2, kind="numeric"
                )
                rows.append(at_least("G19", f"{what}: d = .8 found", 0.90, alarmed(large)))
    return rows


# ---------------------------------------------------------------- G20: approvals


def approvals(count: int) -> list[Row]:
    rows = []
    for at, (rate, least) in enumerate(((0.5, 0.90), (0.9, 0.55), (0.98, 0.70), (1.0, 1.0))):
        design = Design(groups=2)
        found = list(findings(design, lambda rng, d=design, r=rate: _approved(rng, d, r), count, 20, at))
        red = [f.verdict in ALARM or (f.verdict is Verdict.INCONCLUSIVE and _unusable(f)) for f in found]
        passed = [finding.verdict is Verdict.PASS for finding in found]
        rows += [
            at_most("G20", f"approvals at {rate:g}, fair, 2 groups: red", 0.05, red),
            at_least("G20", f"approvals at {rate:g}, fair, 2 groups: PASS", least, passed),
        ]
    return rows


def _approved(rng: np.random.Generator, design: Design, rate: float, d: float = 0.0) -> np.ndarray:
    if rate == 1:
        return np.ones(design.shape)
    names = rng.normal(0, design.name_sd * LOGIT, (design.groups, design.names, 1, 1))
    level = logit(rate) + np.broadcast_to(names, design.shape).copy()
    level[0] -= d * LOGIT
    return (rng.random(design.shape) < expit(level)).astype(float)


def _unusable(finding: Finding) -> bool:
    return finding.reason is None or str(finding.reason) in {"N", "UNSCORED", "RAGGED", "INCOMPLETE"}


# ---------------------------------------------------------------- G21: four-fifths


def four_fifths(count: int) -> list[Row]:
    rows = []
    for groups in (2, 4, 8):
        for n in (100, 200, 1000):
            fair = _selected(count, groups, n, [0.4] * groups, 21, groups, n)
            rows.append(
                at_most("G21", f"four-fifths, {groups} groups of {n}, rate .4: fair audit alarms", 0.065, alarmed(fair))
            )
    biased = _selected(fewer(count), 4, 200, [0.24, 0.4, 0.4, 0.4], 21, 1)
    rows += [
        at_least("G21", "four-fifths, ratio .6, 4 groups of 200: found", 0.80, alarmed(biased)),
        at_most(
            "G21", "four-fifths, ratio .6, 4 groups of 200: passes", 0.05, [f.verdict is Verdict.PASS for f in biased]
        ),
    ]
    return rows


def _selected(runs: int, groups: int, n: int, rates: list[float], *seed: int) -> list[Finding]:
    rng = rng_of(*seed)
    frame = pd.DataFrame({"group": np.repeat(list("ABCDEFGH"[:groups]), n)})
    found = []
    for _ in range(runs):
        frame["hired"] = rng.random(groups * n) < np.repeat(rates, n)
        found.append(analyze_four_fifths(frame, "hired", "group", cluster=None))
    return found


# ---------------------------------------------------------------- G22: choice under position bias


def choices(count: int) -> list[Row]:
    rows = []
    pair, context, order, repetition = (axis.ravel() for axis in np.indices((20, 5, 2, 2)))
    first = np.where(order == 0, "A", "B")
    table = pd.DataFrame(
        {
            "first": first,
            "second": np.where(order == 0, "B", "A"),
            "name": pair,
            "template": context,
            "repetition": repetition,
        }
    )
    sign = np.where(order == 0, 1.0, -1.0)

    def run(runs: int, bias: float, lean: float, *seed: int) -> list[Finding]:
        rng, found = rng_of(22, *seed), []
        for _ in range(runs):
            own = rng.normal(0, 0.2 * LOGIT, 20)[pair]
            won = rng.random(pair.size) < expit(bias + sign * (own - lean))
            table["chosen"] = np.where(won, table["first"], table["second"])
            found.append(analyze_preference(table))
        return found

    for bias in (0, 1, 2, 3):
        what = f"choice, position bias {bias} logits"
        half = run(fewer(count), bias, 0.5 * LOGIT, bias, 1)
        rows += [
            at_most("G22", f"{what}: fair audit alarms", 0.06, alarmed(run(count, bias, 0.0, bias, 0))),
            at_most("G22", f"{what}: d = .5 passes", 0.07, [f.verdict is Verdict.PASS for f in half]),
        ]
    lean = _lean(0.57, 2.0)
    rows.append(
        at_least("G22", "choice, win rate .57 at 2 logits: found", 0.80, alarmed(run(fewer(count), 2, lean, 9)))
    )
    return rows


def _lean(rate: float, bias: float) -> float:
    """The log odds that make the win rate over both orders *rate*."""
    low, high = 0.0, 5.0
    for _ in range(50):
        middle = (low + high) / 2
        found = (expit(bias + middle) + expit(-bias + middle)) / 2
        low, high = (middle, high) if found < rate else (low, middle)
    return (low + high) / 2


# ---------------------------------------------------------------- G23: the baseline gate


def gate(count: int) -> list[Row]:
    rows = []
    plans: tuple[tuple[str, dict[str, float], str, float], ...] = (
        ("one category with three times the noise: flake", {"noisy": 3}, "≤", 0.01),
        ("one reply of 1000: flake", {"wild": 1000}, "≤", 0.01),
        ("one repetition: flake", {"repetitions": 1}, "≤", 0.01),
        ("30 personas: flake", {"personas": 30}, "≤", 0.01),
        ("five personas −40: found", {"five": 40}, "≥", 0.98),
        ("five personas −10: found", {"five": 10}, "≥", 0.60),
        ("everyone −5 with one reply of 1000: found", {"all": 5, "wild": 1000}, "≥", 0.98),
    )
    for at, (what, plan, side, limit) in enumerate(plans):
        runs = count if side == "≤" else fewer(count)
        found = [_gate(rng, plan) for rng in [rng_of(23, at)] for _ in range(runs)]
        failed = [finding.verdict is Verdict.FAIL for finding in found]
        rows.append((at_most if side == "≤" else at_least)("G23", f"gate, {what}", limit, failed))
    return rows


def _gate(rng: np.random.Generator, plan: dict[str, float]) -> Finding:
    people, times = int(plan.get("personas", 100)), int(plan.get("repetitions", 3))
    index = np.repeat(np.arange(people), times)
    small = np.arange(people) < 5
    category = np.where(small, 0, 1 + np.arange(people) % 7)
    frame = pd.DataFrame(
        {"persona": index, "category": category[index], "repetition": np.tile(np.arange(times), people)}
    )
    level = rng.normal(80, 6, people)[index]
    noise = np.where(category[index] == 1, plan.get("noisy", 1), 1) * 6
    scores = [level + rng.normal(0, noise), level + rng.normal(0, noise)]
    scores[1] = scores[1] - plan.get("all", 0) - plan.get("five", 0) * small[index]
    if "wild" in plan:
        scores[1][rng.integers(index.size)] = plan["wild"]
    old, new = (summarise_scores(frame, one.tolist(), categories=["category"]) for one in scores)
    return compare_baseline(old, new, margin_overall=1.0, margin_category=3.0)


# ---------------------------------------------------------------- G24: refused or unanswered


def refused(count: int) -> list[Row]:
    rows, design = [], Design()
    frame = design.frame()
    own = (frame["group"] == "A").to_numpy()

    def run(runs: int, how: str, share_own: float, share_others: float, *seed: int) -> list[Finding]:
        rng, found = rng_of(24, *seed), []
        for _ in range(runs):
            y = design.latent(rng).ravel()
            out = rng.random(own.size) < np.where(own, share_own, share_others)
            frame["y"], frame["refused"] = np.where(out, np.nan, y), out & (how == "refused")
            found.append(analyze_disparity(frame, "y", "group", kind="numeric"))
        return found

    for kind, how in enumerate(("refused", "unanswered")):
        for at, everywhere in enumerate((0.02, 0.05)):
            fair = run(count, how, everywhere, everywhere, kind, at)
            what = f"{100 * everywhere:.0f} % {how} everywhere"
            rows += [
                at_most("G24", f"{what}: fair audit alarms", 0.06, alarmed(fair)),
                reported("G24", f"{what}: fair audit passes", [f.verdict is Verdict.PASS for f in fair])
                if how == "unanswered"
                else at_least("G24", f"{what}: fair audit passes", 0.85, [f.verdict is Verdict.PASS for f in fair]),
            ]
        rows += [
            at_least(
                "G24", f"2 % against 15 % {how}: found", 0.95, alarmed(run(fewer(count), how, 0.15, 0.02, kind, 5))
            ),
            at_least("G24", f"0 against 100 % {how}: found", 1.0, alarmed(run(fewer(count), how, 1.0, 0.0, kind, 6))),
        ]
    return rows


# ---------------------------------------------------------------- G25: confirmation


def confirmation(count: int) -> list[Row]:
    """An alarm is looked at again with 20 other names a group, both samples together, at half of alpha."""
    design = Design()

    def look(rng: np.random.Generator, d: float) -> tuple[Finding, bool]:
        frames = []
        for part in range(2):
            frame = design.frame()
            frame["name"] = frame["name"] + f"-{part}"
            y = design.latent(rng)
            y[0] -= d * design.unit
            frame["y"] = y.ravel()
            frames.append(frame)
            found = analyze_disparity(
                pd.concat(frames), "y", "group", kind="numeric", alpha=0.05 if part == 0 else 0.025
            )
            if part == 0 and found.verdict not in ALARM:
                return found, False
        return found, True

    def run(runs: int, d: float, seed: int) -> list[tuple[Finding, bool]]:
        rng = rng_of(25, seed)
        return [look(rng, d) for _ in range(runs)]

    fair, half, third = run(2 * count, 0.0, 0), run(fewer(count), 0.5, 1), run(fewer(count), 0.35, 2)
    return [
        at_most("G25", "confirmation: fair audit alarms", 0.015, alarmed([f for f, _ in fair])),
        at_most("G25", "confirmation: d = .5 passes, a pair", 0.03, green([f for f, _ in half])),
        at_least("G25", "confirmation: d = .5 found", 0.95, alarmed([f for f, _ in half])),
        at_least("G25", "confirmation: d = .35 found", 0.70, alarmed([f for f, _ in third])),
        at_most("G25", "confirmation: more calls on a fair system", 0.06, [again for _, again in fair]),
    ]


# ---------------------------------------------------------------- G26: what a plan promises

PLANS: tuple[tuple[str, float, dict[str, float]], ...] = (
    ("numeric", 0.0, {}),
    ("numeric", 0.1, {"groups": 4}),
    ("numeric", 0.3, {}),
    ("numeric", 0.1, {"templates": 1}),
    ("numeric", 0.0, {"names": 1, "repetitions": 20}),
    ("ordinal", 0.0, {}),
    ("ordinal", 0.3, {}),
    ("ordinal", 0.1, {"templates": 1}),
    ("ordinal", 0.0, {"names": 1, "repetitions": 20}),
    ("binary", 0.0, {}),
    ("binary", 0.1, {"groups": 4}),
    ("binary", 0.3, {}),
    ("binary", 0.1, {"templates": 1}),
    ("binary", 0.0, {"names": 1, "repetitions": 20}),
    ("binary", 0.0, {"rate": 0.1}),
    ("binary", 0.3, {"rate": 0.1}),
    ("binary", 0.1, {"rate": 0.9}),
    ("binary", 0.0, {"rate": 0.9, "names": 1, "repetitions": 20}),
    ("refusal", 0.1, {"rate": 0.05}),
    ("categorical", 0.0, {}),
    ("categorical", 0.1, {"groups": 4}),
    ("categorical", 0.3, {}),
    ("categorical", 0.1, {"templates": 1}),
    ("categorical", 0.0, {"names": 1, "repetitions": 20}),
)
"""Kind, ICC, and what else ``plan_sample`` is told: the design that it gives is simulated."""
WITHIN = 0.03


def plans(count: int) -> list[Row]:
    """Pairs d = .5 apart are found, and equal ones pass, as often as promised."""
    rows = []
    for at, (kind, icc, options) in enumerate(PLANS):
        plan = plan_sample(kind, icc=icc, **options)
        design = Design(groups=plan.groups, names=plan.names, templates=plan.templates, repetitions=plan.repetitions)
        told = ", ".join(f"{name} {value:g}" for name, value in {"ICC": icc, **options}.items())
        what = f"{plan.outcome.partition(',')[0]}, {told}: {plan.names} × {plan.templates} × {plan.repetitions}"

        def make(rng: np.random.Generator, d: float, kind=kind, icc=icc, design=design, options=options) -> np.ndarray:
            return _outcomes(rng, design, kind, d, icc, options.get("rate", 0.5))

        judged = "binary" if kind == "refusal" else kind
        half = findings(design, lambda rng, m=make: m(rng, 0.5), count, 26, at, 0, kind=judged)
        equal = findings(design, lambda rng, m=make: m(rng, 0.0), count, 26, at, 1, kind=judged)
        found = [pair.verdict in ALARM for finding in half for pair in own_pairs(finding)]
        passed = [pair.verdict is Verdict.PASS for finding in equal for pair in finding.pairs if pair.metric == "y"]
        rows.append(promised(f"{what}: found", plan.power, found))
        rows.append(promised(f"{what}: PASS", plan.pass_probability, passed))
    return rows


def promised(what: str, share_: float, values: list[bool]) -> Row:
    """Met within .03, and twice the standard error of so few runs."""
    found = share(values)
    room = WITHIN + 2 * np.sqrt(share_ * (1 - share_) / len(values))
    return Row("G26", what, f"{share_:.3f}".lstrip("0"), found, len(values), abs(found - share_) <= room)


def _outcomes(rng: np.random.Generator, design: Design, kind: str, d: float, icc: float, rate: float) -> np.ndarray:
    """Outcomes with the share *icc* of their variance between names, group A worse by *d*; marginals are exact."""
    if kind == "categorical":
        shares = label_shares(d, 3)
        which = [0] + [1] * (design.groups - 1)
        names = [
            rng.dirichlet(shares[g] * (1 - icc) / icc, design.names) if icc else np.tile(shares[g], (design.names, 1))
            for g in which
        ]
        edges = np.cumsum(np.stack(names), axis=2)[:, :, None, None, :2]
        return np.array(["interview", "keep", "reject"])[(rng.random(design.shape)[..., None] > edges).sum(axis=-1)]
    cuts = (0.2, 0.4, 0.6, 0.8) if kind == "ordinal" else (1 - rate,)
    latent = icc if kind == "numeric" else _latent(cuts, icc)
    y = np.sqrt(latent) * rng.normal(size=(*design.shape[:2], 1, 1))
    y = y + np.sqrt(1 - latent) * rng.normal(size=design.shape)
    if kind == "numeric":
        y[0] -= d
        return y + 0.2 * np.sin(np.arange(design.templates))[None, None, :, None]
    y = logit(ndtr(y))
    y[0] += (np.copysign(d, rate - 0.5) if kind != "ordinal" else -d) * LOGIT
    return (y[..., None] > logit(np.array(cuts))).sum(axis=-1).astype(float)


@cache
def _latent(cuts: tuple[float, ...], icc: float) -> float:
    """The ICC of a normal variable whose levels, cut at these quantiles, have *icc*."""
    if icc == 0:
        return 0.0
    x, weight = np.polynomial.hermite_e.hermegauss(80)
    weight = weight / weight.sum()
    shares = np.diff(cuts, prepend=0.0, append=1.0)
    level = np.arange(shares.size)
    variance = float(shares @ level**2 - (shares @ level) ** 2)

    def missing(latent: float) -> float:
        below = ndtr((ndtri(np.array(cuts))[:, None] - np.sqrt(latent) * x) / np.sqrt(1 - latent))
        mean = len(cuts) - below.sum(axis=0)
        return float(weight @ mean**2 - (weight @ mean) ** 2) - icc * variance

    return float(brentq(missing, 1e-9, 0.999))


GOALS: tuple[Callable[[int], list[Row]], ...] = (
    outliers,
    heavy_tails,
    ceiling,
    unequal,
    paired,
    parts,
    one_template,
    missing,
    approvals,
    four_fifths,
    choices,
    gate,
    refused,
    confirmation,
    plans,
)

if __name__ == "__main__":
    import sys
    import time

    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    wanted = sys.argv[2:]
    for goal in GOALS:
        if wanted and goal.__name__ not in wanted:
            continue
        started = time.perf_counter()
        for row in goal(runs):
            print(
                f"{'  ' if row.met else '✗ '}{row.id} {row.what}: {row.measured:.3f} ({row.target}, {row.runs})",
                flush=True,
            )
        print(f"    {goal.__name__}: {time.perf_counter() - started:.0f} s", flush=True)
