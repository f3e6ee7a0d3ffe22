"""What the lexicon finds in the cases of the red team: detection, misses and false alarms by vector
and mutation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_fairness.reports.sections import Columns, Printed, Section, table
from pytest_fairness.scorers.lexicon import CATEGORIES, Lexicon
from pytest_fairness.suites.red_team.red_team_cases import CLEAN, MUTATIONS, RedTeamCase, mutated

#: Misses that a message lists.
MOST_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReading:
    """What the lexicon found in a case after a mutation: ``missed`` and ``false_alarms`` are
    categories.
    """

    case: RedTeamCase
    mutation: str
    text: str
    missed: tuple[str, ...]
    false_alarms: tuple[str, ...]

    def __str__(self) -> str:
        wrong = [
            *(f"{one} missed" for one in self.missed),
            *(f"{one} found" for one in self.false_alarms),
        ]
        return f"{self.case.id}: {', '.join(wrong)}: {self.case.text}"


@dataclass(frozen=True, slots=True)
class Detection:
    """Every reading: of each case, after each mutation."""

    readings: tuple[CaseReading, ...]

    def of(
        self, *, vector: str = "", mutation: str = "none", category: str = "", clean: bool = False
    ) -> list[CaseReading]:
        """Those of a vector (all but the clean ones, if not given) after a mutation, which expect a
        category.
        """
        return [
            one
            for one in self.readings
            if one.mutation == mutation
            and (one.case.vector == CLEAN) == clean
            and vector in ("", one.case.vector)
            and (not category or category in one.case.expected)
        ]

    @property
    def vectors(self) -> tuple[str, ...]:
        """In the order of the cases, without the clean ones."""
        return tuple(
            dict.fromkeys(one.case.vector for one in self.readings if one.case.vector != CLEAN)
        )


def detect(lexicon: Lexicon, cases: Iterable[RedTeamCase], seed: int = 0) -> Detection:
    """Read all *cases* after all mutations by *lexicon*."""
    readings = []
    for case in cases:
        for mutation in MUTATIONS:
            text, expected = mutated(case, mutation, seed)
            found = {warning.category for warning in lexicon.warnings(text)}
            missed, extra = expected - found, found - expected
            readings.append(
                CaseReading(
                    case=case,
                    mutation=mutation,
                    text=text,
                    missed=tuple(one for one in CATEGORIES if one in missed),
                    false_alarms=tuple(one for one in CATEGORIES if one in extra),
                )
            )
    return Detection(tuple(readings))


def share(readings: Sequence[CaseReading], holds: Callable[[CaseReading], Any]) -> float:
    """The share of *readings* of which something holds, 0 of none."""
    if readings:
        return sum(bool(holds(one)) for one in readings) / len(readings)
    return 0.0


def detected(reading: CaseReading) -> bool:
    """Whether every category that is expected was found."""
    return not reading.missed


def lines_of(readings: Iterable[CaseReading]) -> str:
    """A line each, at most :data:`MOST_LISTED`."""
    listed = [f"  {one}" for one in readings]
    more = []
    if len(listed) > MOST_LISTED:
        more = [f"  … and {len(listed) - MOST_LISTED} more, in the report"]
    return "\n".join([*listed[:MOST_LISTED], *more])


# ---------------------------------------------------------------- as the report shows it


def detection_section(detection: Detection) -> Section:
    """The printed table by vector, and tables by mutation and by category."""
    groups = [(name.replace("_", " "), detection.of(vector=name)) for name in detection.vectors]
    rows = [*groups, ("all", detection.of()), (CLEAN, detection.of(clean=True))]
    lines = ["Red team: what the lexicon finds", "================================",
             f"{'vector':<22} cases  found  missed  false alarms"]  # fmt: skip
    for name, of in rows:
        found = sum(map(detected, of))
        alarms = sum(bool(one.false_alarms) for one in of)
        lines.append(f"{name:<22} {len(of):>5}  {found:>5}  {len(of) - found:>6}  {alarms:>12}")
    by_mutation: Columns = {"vector": lambda one: one.replace("_", " ") or "all"}
    by_mutation |= {name.replace("_", " "): _found_after(detection, name) for name in MUTATIONS}
    categories: Columns = {
        "category": lambda one: one,
        "cases": lambda one: str(len(detection.of(category=one))),
        "found": lambda one: str(
            sum(one not in found.missed for found in detection.of(category=one))
        ),
    }
    mutations: Columns = {
        "mutation": lambda one: one.replace("_", " "),
        "expected flags": lambda one: MUTATIONS[one][0],
        "found": lambda one: f"{100 * share(detection.of(mutation=one), detected):.0f} %",
        "clean texts with a false alarm": lambda one: str(
            sum(bool(found.false_alarms) for found in detection.of(mutation=one, clean=True))
        ),
    }
    wrong = [
        one
        for one in (*detection.of(), *detection.of(clean=True))
        if one.missed or one.false_alarms
    ]
    misses: Columns = {
        "case": lambda one: one.case.id,
        "missed": lambda one: ", ".join(one.missed),
        "false alarm": lambda one: ", ".join(one.false_alarms),
        "text": lambda one: one.case.text,
    }
    return Section(
        id="red-team",
        heading="Red team: the lexicon",
        parts=(
            Printed(lines=tuple(lines)),
            table("Cases found by mutation", list(MUTATIONS), mutations, words=("expected flags",)),
            table(
                "Share found by vector and mutation, in percent",
                [*detection.vectors, ""],
                by_mutation,
            ),
            table("Cases found by category", CATEGORIES, categories),
            table(
                "Misses and false alarms without a mutation",
                wrong,
                misses,
                words=("missed", "false alarm", "text"),
            ),
        ),
    )


def _found_after(detection: Detection, mutation: str) -> Callable[[str], str]:
    return lambda vector: (
        f"{100 * share(detection.of(vector=vector, mutation=mutation), detected):.0f}"
    )
