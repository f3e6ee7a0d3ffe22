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
from pytest_fairness.words import percent

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
            *(f"{category} missed" for category in self.missed),
            *(f"{category} found" for category in self.false_alarms),
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
            reading
            for reading in self.readings
            if reading.mutation == mutation
            and (reading.case.vector == CLEAN) == clean
            and vector in ("", reading.case.vector)
            and (not category or category in reading.case.expected)
        ]

    @property
    def vectors(self) -> tuple[str, ...]:
        """In the order of the cases, without the clean ones."""
        return tuple(
            dict.fromkeys(
                reading.case.vector for reading in self.readings if reading.case.vector != CLEAN
            )
        )


def detect(lexicon: Lexicon, cases: Iterable[RedTeamCase], seed: int = 0) -> Detection:
    """Read all *cases* after all mutations by *lexicon*."""
    readings = []
    for case in cases:
        for mutation in MUTATIONS:
            text, expected = mutated(case, mutation, seed)
            categories = {warning.category for warning in lexicon.warnings(text)}
            missed = expected - categories
            extra = categories - expected
            readings.append(
                CaseReading(
                    case=case,
                    mutation=mutation,
                    text=text,
                    missed=tuple(category for category in CATEGORIES if category in missed),
                    false_alarms=tuple(category for category in CATEGORIES if category in extra),
                )
            )
    return Detection(tuple(readings))


def share(readings: Sequence[CaseReading], holds: Callable[[CaseReading], Any]) -> float:
    """The share of *readings* of which something holds, 0 of none."""
    if readings:
        return sum(bool(holds(reading)) for reading in readings) / len(readings)
    return 0.0


def detected(reading: CaseReading) -> bool:
    """Return whether every category that is expected was found."""
    return not reading.missed


def lines_of(readings: Iterable[CaseReading]) -> str:
    """A line each, at most :data:`MOST_LISTED`."""
    listed = [f"  {reading}" for reading in readings]
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
        detections = sum(map(detected, of))
        alarms = sum(bool(reading.false_alarms) for reading in of)
        lines.append(
            f"{name:<22} {len(of):>5}  {detections:>5}  {len(of) - detections:>6}  {alarms:>12}"
        )
    by_mutation: Columns = {"vector": lambda name: name.replace("_", " ") or "all"}
    by_mutation |= {name.replace("_", " "): _found_after(detection, name) for name in MUTATIONS}
    categories: Columns = {
        "category": lambda name: name,
        "cases": lambda name: str(len(detection.of(category=name))),
        "found": lambda name: str(
            sum(name not in reading.missed for reading in detection.of(category=name))
        ),
    }
    mutations: Columns = {
        "mutation": lambda name: name.replace("_", " "),
        "expected flags": lambda name: MUTATIONS[name][0],
        "found": lambda name: f"{percent(share(detection.of(mutation=name), detected), 0)}",
        "clean texts with a false alarm": lambda name: str(
            sum(bool(reading.false_alarms) for reading in detection.of(mutation=name, clean=True))
        ),
    }
    wrong = [
        reading
        for reading in (*detection.of(), *detection.of(clean=True))
        if reading.missed or reading.false_alarms
    ]
    misses: Columns = {
        "case": lambda reading: reading.case.id,
        "missed": lambda reading: ", ".join(reading.missed),
        "false alarm": lambda reading: ", ".join(reading.false_alarms),
        "text": lambda reading: reading.case.text,
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
