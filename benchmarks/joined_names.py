"""Names joined anew from first and last names that recur: how often a fair system alarms and passes.

Run: python benchmarks/joined_names.py [--audits 1000]

First names differ by half a trial's SD, and last names do, in every group alike. Names are drawn as
banks draw them, 20, 40 and 80 a group, each asked in five templates and two repetitions, and judged
by ``analyze_disparity``. Beside the alarms stands what full names alone, without their parts, would
have said.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from audits import ALARM, rate

from pytest_fairness import NameBanks, Verdict, analyze_disparity
from pytest_fairness.design.names import GENDER, RACE, SEXES, Name, NameEntry

SEED = 20261203
SIZES = (20, 40, 80)
PART_SD = 0.5
PARTS = ["first_name", "last_name"]
LIMIT = 0.055
"""A tenth over the level; a share of so many audits may lie two standard errors above."""


def names_of(banks: NameBanks, signalled: Mapping[str, str], size: int) -> tuple[Name, ...]:
    """The names of a group."""
    if signalled:
        return banks.signalling(signalled, size)
    return banks.neutral(size)


def bank_of(firsts: int, lasts: int) -> NameBanks:
    """A bank of two groups that have so many first and last names each."""
    first_names, surnames = {}, {}
    for group in "AB":
        for number in range(firsts):
            entry = NameEntry(
                protected_class=RACE,
                group=group,
                name=f"{group}f{number}",
                gender=SEXES[number % 2],
                source="simulated",
            )
            first_names[entry.key] = entry
        for number in range(lasts):
            entry = NameEntry(
                protected_class=RACE, group=group, name=f"{group}l{number}", source="simulated"
            )
            surnames[entry.key] = entry
    return NameBanks(first_names, surnames)


def designs() -> dict[str, tuple[NameBanks, list[dict[str, str]]]]:
    """What is compared: a bank, and what the names of each group signal, nothing for neutral ones."""
    shipped = NameBanks.load()

    def of(protected_class: str, *groups: str) -> list[dict[str, str]]:
        return [{protected_class: group} for group in groups]

    return {
        "40 first names, 40 surnames": (bank_of(40, 40), of(RACE, "A", "B")),
        "20 first names, 20 surnames": (bank_of(20, 20), of(RACE, "A", "B")),
        "white, black": (shipped, of(RACE, "white", "black")),
        "white, asian": (shipped, of(RACE, "white", "asian")),
        "white, middle_eastern": (shipped, of(RACE, "white", "middle_eastern")),
        "female, male": (shipped, of(GENDER, "female", "male")),
        "neutral, the same in both groups": (shipped, [{}, {}]),
        "white, black, hispanic, asian": (
            shipped,
            of(RACE, "white", "black", "hispanic", "asian"),
        ),
    }


class Audit:
    """One design: *size* names of each group in five templates and two repetitions."""

    def __init__(self, banks: NameBanks, groups: Sequence[Mapping[str, str]], size: int) -> None:
        rows = []
        for number, signalled in enumerate(groups):
            for person in names_of(banks, signalled, size):
                for template, repetition in product(range(5), range(2)):
                    rows.append(
                        (number, person.full, person.first, person.last, template, repetition)
                    )
        columns = ["group", "name", "first_name", "last_name", "template", "repetition"]
        self.frame = pd.DataFrame(rows, columns=columns).astype({"group": str})
        # A part that stands in two groups has one effect on both.
        self.parts = [pd.factorize(self.frame[column])[0] for column in PARTS]

    def draw(self, rng: np.random.Generator) -> pd.DataFrame:
        """The table of a fair system."""
        outcome = rng.normal(size=len(self.frame)) + 0.2 * self.frame["template"]
        for part in self.parts:
            outcome += rng.normal(0, PART_SD, part.max() + 1)[part]
        return self.frame.assign(y=outcome)


def shares(audit: Audit, count: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """The shares of audits that alarm and that pass, and of every fourth of them, that full names
    alone alarm.
    """
    verdicts, alone = [], []
    for number in range(count):
        frame = audit.draw(rng)
        verdicts.append(verdict_of(frame))
        if number % 4 == 0:
            alone.append(verdict_of(frame.drop(columns=PARTS)))
    alarms, greens = np.isin(verdicts, ALARM), np.isin(verdicts, [Verdict.PASS])
    return float(alarms.mean()), float(greens.mean()), float(np.isin(alone, ALARM).mean())


def verdict_of(frame: pd.DataFrame) -> Verdict:
    return analyze_disparity(frame, "y", "group", kind="numeric").verdict


def measured(
    count: int, wanted: Collection[str] | None = None, sizes: Sequence[int] = SIZES
) -> Iterator[tuple[str, int, float, float, float]]:
    """A line for each design and number of names."""
    for place, (what, (banks, groups)) in enumerate(designs().items()):
        if wanted is not None and what not in wanted:
            continue
        for size in sizes:
            audit = Audit(banks, groups, size)
            rng = np.random.default_rng([SEED, place, size])
            yield what, size, *shares(audit, count, rng)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--audits", type=int, default=1000, help="simulated audits a line")
    parser.add_argument("--only", nargs="*", metavar="NAMES", help=f"of {', '.join(designs())}")
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, help="names a group")
    options = parser.parse_args(arguments)
    print("| names of | names a group | alarms | PASS | alarms by full names alone |")
    print("|---|---|---|---|---|")
    worst = 0.0
    for what, size, alarms, greens, alone in measured(options.audits, options.only, options.sizes):
        worst = max(worst, alarms)
        print(f"| {what} | {size} | {rate(alarms)} | {rate(greens)} | {rate(alone)} |", flush=True)
    noise = 2 * np.sqrt(LIMIT * (1 - LIMIT) / options.audits)
    return int(worst > LIMIT + noise)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
