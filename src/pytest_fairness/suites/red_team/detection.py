"""Read the cases of the red team by the lexicon: detection, misses and false alarms by vector and
mutation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from pytest_fairness.reports import Columns, Printed, Section, Table, table
from pytest_fairness.scorers import CATEGORIES, Lexicon
from pytest_fairness.suites.red_team.red_team_cases import CLEAN, MUTATIONS, RedTeamCase, mutated
from pytest_fairness.words import percent

#: Misses that a message lists.
MOST_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReading:
    """The reading of a case by the lexicon after a mutation: ``missed`` and ``false_alarms`` are
    categories.
    """

    case: RedTeamCase
    mutation: str
    text: str
    missed: tuple[str, ...]
    false_alarms: tuple[str, ...]

    def __str__(self) -> str:
        missed = [f"{category} missed" for category in self.missed]
        false_alarms = [f"{category} found" for category in self.false_alarms]
        return f"{self.case.id}: {', '.join(missed + false_alarms)}: {self.case.text}"

    @property
    def detected(self) -> bool:
        """Return whether every category that is expected was found."""
        return not self.missed

    @property
    def is_clean(self) -> bool:
        """Return whether the case is a clean one."""
        return self.case.vector == CLEAN

    def is_of(self, vector: str, category: str) -> bool:
        """Return whether the case is of *vector* and expects *category*, those that are given."""
        if vector and self.case.vector != vector:
            return False
        return not category or category in self.case.expected


@dataclass(frozen=True, slots=True)
class Detection:
    """Every reading: of each case, after each mutation."""

    readings: tuple[CaseReading, ...]

    def of(
        self, *, vector: str = "", mutation: str = "none", category: str = ""
    ) -> list[CaseReading]:
        """Return those of biased cases after a *mutation*: of a *vector*, and of those that expect
        a *category*, where they are given.
        """
        after = self.after(mutation, clean=False)
        return [reading for reading in after if reading.is_of(vector, category)]

    def clean(self, mutation: str = "none") -> list[CaseReading]:
        """Return those of clean cases after a *mutation*."""
        return self.after(mutation, clean=True)

    def after(self, mutation: str, *, clean: bool) -> list[CaseReading]:
        """Return the readings after a *mutation*, of clean cases or of the biased ones."""
        readings = []
        for reading in self.readings:
            if reading.mutation == mutation and reading.is_clean == clean:
                readings.append(reading)
        return readings

    @property
    def vectors(self) -> tuple[str, ...]:
        """In the order of the cases, without the clean ones."""
        return tuple(dict.fromkeys(reading.case.vector for reading in self.of()))


def detect(lexicon: Lexicon, cases: Iterable[RedTeamCase], seed: int = 0) -> Detection:
    """Read all *cases* after all mutations by *lexicon*."""
    readings = []
    for case in cases:
        for mutation in MUTATIONS:
            text, expected = mutated(case, mutation, seed)
            categories = {warning.category for warning in lexicon.warnings(text)}
            readings.append(
                CaseReading(
                    case=case,
                    mutation=mutation,
                    text=text,
                    missed=_in_order(expected - categories),
                    false_alarms=_in_order(categories - expected),
                )
            )
    return Detection(tuple(readings))


def _in_order(categories: Collection[str]) -> tuple[str, ...]:
    """Return *categories* in the order of all."""
    return tuple(filter(categories.__contains__, CATEGORIES))


def share_detected(readings: Sequence[CaseReading]) -> float:
    """Return the share of *readings* that found all that they should, 0 of none."""
    if readings:
        return sum(reading.detected for reading in readings) / len(readings)
    return 0.0


def alarms(readings: Iterable[CaseReading]) -> list[CaseReading]:
    """Return those of *readings* that raise a false alarm."""
    return [reading for reading in readings if reading.false_alarms]


def lines_of(readings: Sequence[CaseReading]) -> str:
    """Return a line for each of *readings*, at most :data:`MOST_LISTED`."""
    lines = [f"  {reading}" for reading in readings[:MOST_LISTED]]
    if len(readings) > MOST_LISTED:
        lines.append(f"  … and {len(readings) - MOST_LISTED} more, in the report")
    return "\n".join(lines)


# ---------------------------------------------------------------- as the report shows it


def detection_section(detection: Detection) -> Section:
    """Return the printed table by vector, and tables by mutation and by category."""
    return Section(
        id="red-team",
        heading="Red team: the lexicon",
        parts=(
            Printed(lines=tuple(_lines(detection))),
            _by_mutation(detection),
            _by_vector_and_mutation(detection),
            _by_category(detection),
            _misses(detection),
        ),
    )


def _title(name: str) -> str:
    return name.replace("_", " ")


def _lines(detection: Detection) -> list[str]:
    """Return the printed table: a line a vector, one of all, and one of the clean cases."""
    lines = [
        "Red team: what the lexicon finds",
        "================================",
        f"{'vector':<22} cases  found  missed  false alarms",
    ]
    for name in detection.vectors:
        lines.append(_line(_title(name), detection.of(vector=name)))
    lines.append(_line("all", detection.of()))
    lines.append(_line(CLEAN, detection.clean()))
    return lines


def _line(name: str, readings: Sequence[CaseReading]) -> str:
    cases = len(readings)
    detections = sum(reading.detected for reading in readings)
    missed = cases - detections
    return f"{name:<22} {cases:>5}  {detections:>5}  {missed:>6}  {len(alarms(readings)):>12}"


def _by_mutation(detection: Detection) -> Table:
    columns: Columns = {
        "mutation": _title,
        "expected flags": lambda name: MUTATIONS[name][0],
        "found": lambda name: percent(share_detected(detection.of(mutation=name)), 0),
        "clean texts with a false alarm": lambda name: str(len(alarms(detection.clean(name)))),
    }
    return table("Cases found by mutation", list(MUTATIONS), columns, words=("expected flags",))


def _by_vector_and_mutation(detection: Detection) -> Table:
    columns: Columns = {"vector": lambda name: _title(name) or "all"}
    columns |= {_title(name): _percent_found_after(detection, name) for name in MUTATIONS}
    vectors = [*detection.vectors, ""]
    return table("Share found by vector and mutation, in percent", vectors, columns)


def _percent_found_after(detection: Detection, mutation: str) -> Callable[[str], str]:
    def percent_of(vector: str) -> str:
        share = share_detected(detection.of(vector=vector, mutation=mutation))
        return percent(share, 0).removesuffix(" %")

    return percent_of


def _by_category(detection: Detection) -> Table:
    def detections(category: str) -> str:
        readings = detection.of(category=category)
        return str(sum(category not in reading.missed for reading in readings))

    columns: Columns = {
        "category": str,
        "cases": lambda category: str(len(detection.of(category=category))),
        "found": detections,
    }
    return table("Cases found by category", CATEGORIES, columns)


def _misses(detection: Detection) -> Table:
    readings = [*detection.of(), *detection.clean()]
    wrong = [reading for reading in readings if reading.missed or reading.false_alarms]
    columns: Columns = {
        "case": lambda reading: reading.case.id,
        "missed": lambda reading: ", ".join(reading.missed),
        "false alarm": lambda reading: ", ".join(reading.false_alarms),
        "text": lambda reading: reading.case.text,
    }
    caption = "Misses and false alarms without a mutation"
    return table(caption, wrong, columns, words=("missed", "false alarm", "text"))
