"""Simulated audits whose truth is known: how they are drawn and judged, and the lines of the table
of calibration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from pytest_fairness import Finding, Verdict, analyze_disparity
from pytest_fairness.model import PairResult

ALARM = (Verdict.FLAG, Verdict.FAIL)
LOGIT = np.pi / np.sqrt(3)
"""Log odds to one d."""
BIASED = 0.4
"""Share of the fair audits' number that is simulated of biased ones."""

Make = Callable[[np.random.Generator, float], np.ndarray]
"""Draws the outcome of each row, with the biased group worse by d."""


# ---------------------------------------------------------------- designs


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Groups A, B, …, each of so many names in every template and repetition.

    Names differ by *name_sd*, each template from the next by .2, and *copies* repeats each reply
    (temperature 0).
    """

    groups: int = 4
    names: int = 20
    templates: int = 5
    repetitions: int = 2
    name_sd: float = 0.2
    copies: int = 1

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.groups, self.names, self.templates, self.repetitions

    @property
    def n(self) -> int:
        """Rows a group."""
        return self.names * self.templates * self.repetitions * self.copies

    @property
    def unit(self) -> float:
        """One d in units of the noise: the SD within group and template."""
        return float(np.sqrt(1 + self.name_sd**2))

    def frame(self, sample: str = "") -> pd.DataFrame:
        """The table without its outcome; the names of another *sample* are others."""
        shape = (*self.shape[:3], self.repetitions * self.copies)
        group, name, template, repetition = (axis.ravel() for axis in np.indices(shape))
        letters = np.array(list("ABCDEFGH"))[group]
        names = [f"{letter}{n}{sample}" for letter, n in zip(letters, name, strict=True)]
        if self.names == 1:
            names = (
                letters.tolist()
            )  # a design without names: the label is what the result is about
        return pd.DataFrame(
            {"group": letters, "name": names, "template": template, "repetition": repetition}
        )

    def latent(
        self, rng: np.random.Generator, noise: np.ndarray | None = None, d: float = 0.0
    ) -> np.ndarray:
        """Normal scores, those of group A lower by *d*."""
        names = rng.normal(0, self.name_sd, (self.groups, self.names, 1, 1))
        templates = 0.2 * np.arange(self.templates)[None, None, :, None]
        y = names + templates + (rng.normal(size=self.shape) if noise is None else noise)
        y[0] -= d * self.unit
        return np.repeat(y, self.copies, axis=3)

    def approved(self, rng: np.random.Generator, rate: float, d: float = 0.0) -> np.ndarray:
        """Yes or no at *rate*, the log odds of group A lower by d·π/√3."""
        if rate == 1:
            return np.ones(self.shape)
        names = rng.normal(0, self.name_sd * LOGIT, (self.groups, self.names, 1, 1))
        level = logit(rate) + np.broadcast_to(names, self.shape).copy()
        level[0] -= d * LOGIT
        return (rng.random(self.shape) < expit(level)).astype(float)


def judged(
    frame: pd.DataFrame,
    make: Make,
    runs: int,
    rng: np.random.Generator,
    d: float = 0.0,
    analyze: Callable[..., Finding] = analyze_disparity,
    **options: object,
) -> list[Finding]:
    """So many audits of *frame* with the outcome that *make* draws anew for each."""
    found = []
    for _ in range(runs):
        frame["y"] = np.asarray(make(rng, d)).ravel()
        found.append(analyze(frame, "y", "group", **options))
    return found


def confirmed_audit(
    rng: np.random.Generator,
    design: Design,
    make: Make,
    d: float,
    *,
    again: bool = True,
    **options: object,
) -> tuple[Finding, bool]:
    """An audit whose alarm is judged *again* with as many other names, both samples together, and
    whether it was.
    """
    frames: list[pd.DataFrame] = []
    for part, alpha in enumerate((0.05, 0.025)):
        frames.append(design.frame(f"-{part}").assign(y=make(rng, d).ravel()))
        found = analyze_disparity(pd.concat(frames), "y", "group", alpha=alpha, **options)
        if found.verdict not in ALARM or not again:
            return found, part == 1
    return found, True


# ---------------------------------------------------------------- what is counted


def alarmed(found: Sequence[Finding]) -> list[bool]:
    return [finding.verdict in ALARM for finding in found]


def passed(found: Sequence[Finding]) -> list[bool]:
    return [finding.verdict is Verdict.PASS for finding in found]


def own_pairs(found: Sequence[Finding]) -> list[PairResult]:
    """The pairs of group A, which is the biased one, on the outcome."""
    return [
        pair
        for one in found
        for pair in one.pairs
        if pair.group_1 == "A" and pair.metric in ("y", "chosen")
    ]


def green(found: Sequence[Finding]) -> list[bool]:
    """Whether a pair with the biased group passes."""
    return [pair.verdict is Verdict.PASS for pair in own_pairs(found)]


def number(pair: PairResult, name: str) -> float:
    value = pair.statistics.get(name)
    return float(value) if isinstance(value, (int, float)) else math.nan


def share(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if values else math.nan


def fewer(count: int) -> int:
    """How many biased audits go with *count* fair ones."""
    return max(int(count * BIASED), 20)


# ---------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class Row:
    """One line: *measured* against *target*. *plain* is what the plain recipe gives on the same
    data, None where it has no such number; *met* whether the target holds."""

    id: str
    what: str
    target: str
    measured: float
    runs: int
    met: bool
    plain: float | None = None

    @property
    def key(self) -> str:
        return f"{self.id} {self.what}"

    def line(self, first: dict[str, float]) -> str:
        return (
            f"| {self.id} | {self.what} | {self.target} | {rate(first.get(self.key))} | "
            f"{'' if self.met else '**missed** '}{rate(self.measured)} | {rate(self.plain)} | "
            f"{self.runs:,} |"
        )


def rate(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.3f}".removeprefix("0") if value < 1 else "1.000"


def exactly(
    id_: str, what: str, side: str, limit: float, measured: float, runs: int, plain: float | None
) -> Row:
    """A target that the measured share itself has to meet."""
    met = measured <= limit if side == "≤" else measured >= limit
    target = f"{limit:.2f}".removeprefix("0")
    return Row(id_, what, f"{side} {target}", measured, runs, met, plain)


def about(id_: str, what: str, side: str, limit: float, values: Sequence[bool]) -> Row:
    """A target that may be missed by two standard errors of so many runs."""
    found, noise = (
        share(values),
        2 * float(np.sqrt(limit * (1 - limit) / max(len(values), 1))) + 1e-12,
    )
    met = found <= limit + noise if side == "≤" else found >= limit - noise
    return Row(id_, what, f"{side} {limit:g}".replace("0.", "."), found, len(values), met)


def at_most(id_: str, what: str, limit: float, values: Sequence[bool]) -> Row:
    return about(id_, what, "≤", limit, values)


def at_least(id_: str, what: str, limit: float, values: Sequence[bool]) -> Row:
    return about(id_, what, "≥", limit, values)
