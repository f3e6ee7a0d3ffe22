"""How often the baseline gate errs on letters: scores that are mostly 100, by deductions of 25, 15,
5 and 2.

    python benchmarks/letter_gate.py [--runs 1000]

A hundred personas of the shipped matrix with their groups; of each, R letters in the approved run
and in the current one. In a run without change, each letter has warnings at a given rate, in
categories and severities at random. Printed: the share of runs that the gate calls FAIL or FLAG
without any change, and in which it finds a change that was planted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pytest_fairness.analysis.baseline import compare_baseline
from pytest_fairness.design.personas import PersonaMatrix
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.scorers.letter import DEDUCTIONS, PASS_THRESHOLD
from pytest_fairness.scorers.lexicon import CATEGORIES
from pytest_fairness.statistics.persona_scores import PersonaScore, ScoreSummary

MATRIX = PersonaMatrix.load()
IDS = [persona.id for persona in MATRIX]
GROUPS = {
    f"{name}={group}": tuple(one.id for one in MATRIX if one.groups.get(name) == group)
    for name in MATRIX[0].groups
    for group in dict.fromkeys(one.groups[name] for one in MATRIX)
}
POINTS = np.array(list(DEDUCTIONS.values()), dtype=float)
#: Of warnings at random: few are critical.
SEVERITY = np.array([0.02, 0.28, 0.45, 0.25])
#: Adds deductions of the current run: personas × letters × categories.
Plant = Callable[[np.ndarray, np.random.Generator], None]


def summary(
    rng: np.random.Generator, repetitions: int, rate: float, plant: Plant | None
) -> ScoreSummary:
    """One run: *rate* warnings a letter at random, and what *plant* adds."""
    shape = (len(IDS), repetitions, len(CATEGORIES))
    counts = rng.poisson(rate / len(CATEGORIES), shape)
    taken = np.zeros(shape)
    for _ in range(int(counts.max(initial=0))):
        taken += (counts > 0) * rng.choice(POINTS, size=shape, p=SEVERITY)
        counts = np.maximum(counts - 1, 0)
    if plant is not None:
        plant(taken, rng)
    parts = np.maximum(100 - taken, 0).mean(axis=1)
    letters = np.maximum(100 - taken.sum(axis=2), 0)
    means, df = letters.mean(axis=1), repetitions - 1
    spread = letters.std(axis=1, ddof=1) if df else np.zeros(len(IDS))
    personas = {
        key: PersonaScore(
            mean=float(means[at]), n=repetitions, sd=float(spread[at]), df=df,
            parts={name: float(value) for name, value in zip(CATEGORIES, parts[at], strict=True) if value < 100},
        )
        for at, key in enumerate(IDS)
    }  # fmt: skip
    return ScoreSummary(
        personas=personas, categories=GROUPS, overall=float(means.mean()), repetitions=repetitions,
        run_sd=float(np.sqrt((spread**2).mean())) if df else None, trials=letters.size, scale="percent",
        parts=CATEGORIES,
    )  # fmt: skip


def slips(label: str | None, category: str, points: float, share: float) -> Plant:
    """*points* off for *category* in a *share* of the letters to the group *label*, of all where it
    is None.
    """
    rows = np.array([label is None or key in GROUPS[label] for key in IDS])

    def plant(taken: np.ndarray, rng: np.random.Generator) -> None:
        hit = rng.random(taken.shape[:2]) < share
        taken[..., CATEGORIES.index(category)] += points * hit * rows[:, None]

    return plant


@dataclass(frozen=True)
class Planted:
    """What is planted, and the scope that has to find it."""

    words: str
    plant: Plant | None
    scope: str = ""


FIVE = "race_ethnicity=middle_eastern"
PLANTED = (
    Planted("nothing", None),
    Planted(
        "overall −5: 15 points off a third of all letters", slips(None, "age", 15, 1 / 3), "overall"
    ),
    Planted(
        "one category of warnings −5 in all letters", slips(None, "age", 15, 1 / 3), "age warnings"
    ),
    Planted("a group of ten −10", slips("age=late_career", "age", 15, 2 / 3), "age=late_career"),
    Planted("a group of five −10", slips(FIVE, "race_ethnicity", 15, 2 / 3), FIVE),
    Planted("a group of five −20", slips(FIVE, "race_ethnicity", 25, 0.8), FIVE),
    Planted("a group of five −40", slips(FIVE, "race_ethnicity", 40, 1.0), FIVE),
    Planted(
        "fifteen of a hundred no longer pass",
        slips("race_ethnicity=hispanic", "religion", 25, 1.0),
        "passes",
    ),
)


def compared(
    rng: np.random.Generator, repetitions: int, rate: float, plant: Plant | None
) -> Finding:
    approved = summary(rng, repetitions, rate, None)
    return compare_baseline(
        approved,
        summary(rng, repetitions, rate, plant),
        threshold=PASS_THRESHOLD,
        low=0.0,
        high=100.0,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    runs, started = parser.parse_args().runs, time.perf_counter()
    print("| letters a persona | warnings a letter | planted | FAIL | FLAG | found in its scope |")
    print("|---|---|---|---|---|---|")
    for repetitions in (1, 3, 5):
        for rate in (0.03, 0.3):
            for planted in PLANTED:
                rng = np.random.default_rng([repetitions, round(100 * rate), 1])
                of = runs if planted.plant is None else max(runs // 5, 1)
                found = [compared(rng, repetitions, rate, planted.plant) for _ in range(of)]
                verdicts = (Verdict.FAIL, Verdict.FLAG)
                failed, flagged = (
                    sum(one.verdict is verdict for one in found) / of for verdict in verdicts
                )
                pairs = (
                    [pair.metric for pair in one.pairs if pair.verdict is Verdict.FAIL]
                    for one in found
                )
                named = sum(planted.scope in own for own in pairs)
                own = "–" if not planted.scope else f"{named / of:.3f}"
                row = (repetitions, rate, planted.words, f"{failed:.3f}", f"{flagged:.3f}", own)
                print("|", " | ".join(map(str, row)), "|", flush=True)
    print(
        f"\n{runs} runs without a change, {runs // 5} with one; "
        f"{time.perf_counter() - started:.0f} s"
    )


if __name__ == "__main__":
    main()
