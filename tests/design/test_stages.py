"""The stages of a design: names stand in an order, and a stage is a beginning of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pytest_fairness.design.grid import Grid, expand_grid, staged_grid
from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.stages import (
    RATES,
    SCORES,
    Stages,
    base_of,
    declared_looks,
    ladder_of,
    largest,
    reached,
)
from pytest_fairness.errors import UsageError
from pytest_fairness.model import OutcomeKind

TEMPLATE = "Write a reference for {name}."
RACE = {"race_ethnicity": ["white", "black"]}
NUMERIC, BINARY = OutcomeKind.NUMERIC, OutcomeKind.BINARY


def own(*sizes: int) -> dict[str, dict[str, list[str]]]:
    """As many given names a group as *sizes* say."""
    groups = {
        group: [f"{group.upper()}{place:02}" for place in range(1, size + 1)]
        for group, size in zip("abcd", sizes, strict=False)
    }
    return {"team": groups}


def staged(looks: tuple[int, ...] | None = None, **arguments: Any) -> Grid:
    """A grid with its stages."""
    return staged_grid(looks, **{"template": TEMPLATE, "groups": own(80, 80), **arguments})


def stages_of(looks: tuple[int, ...] | None = None, **arguments: Any) -> Stages:
    stages = staged(looks, **arguments).stages
    assert stages is not None
    return stages


@pytest.mark.parametrize(
    ("ladder", "most", "fewest", "looks"),
    [
        (SCORES, 80, 1, (10, 20, 40)),
        (RATES, 80, 1, (10, 20, 40, 80)),
        (RATES, 56, 1, (10, 20, 40, 56)),
        (RATES, 53, 1, (10, 20, 53)),
        (RATES, 44, 1, (10, 20, 44)),
        (SCORES, 26, 1, (10, 26)),
        (SCORES, 27, 1, (10, 20, 27)),
        (SCORES, 20, 1, (10, 20)),
        (SCORES, 19, 1, (19,)),
        (SCORES, 80, 11, (20, 40)),
        (SCORES, 80, 21, (40,)),
        (SCORES, 80, 100, (40,)),
        ((20,), 80, 1, (20,)),
        ((5, 8), 80, 1, (8,)),
    ],
)
def test_looks_reach_as_far_as_the_names(
    ladder: tuple[int, ...], most: int, fewest: int, looks: tuple[int, ...]
) -> None:
    """The last has what there is, none stands within a quarter of it, and one before the minimum is
    joined to the next.
    """
    assert reached(ladder, most, fewest=fewest) == looks


def test_yes_no_outcomes_and_refusals_look_further() -> None:
    assert {kind for kind in OutcomeKind if ladder_of(kind) == RATES} == {
        BINARY,
        OutcomeKind.REFUSAL,
    }
    assert all(ladder_of(kind) in (RATES, SCORES) for kind in OutcomeKind)


@pytest.mark.parametrize(
    ("names", "looks", "base"),
    [
        (None, None, 20),
        (1, (1,), 1),
        (9, (9,), 9),
        (10, (10, 20), 20),
        (20, (20, 40), 20),
        ((20,), (20,), 20),
        ([10, 20, 40], (10, 20, 40), 20),
        ((15, 30), (15, 30), 15),
        ((30, 60), (30, 60), 30),
    ],
)
def test_a_marker_says_the_looks(names: Any, looks: tuple[int, ...] | None, base: int) -> None:
    """A number means itself and twice as many; the base design is the look nearest to 20 below."""
    assert declared_looks(names) == looks
    assert base_of(looks) == base


@pytest.mark.parametrize("names", [(), (20, 10), (10, 10), (0, 10), (1.5, 3), (True, 2), "ten"])
def test_looks_that_make_no_sense_are_refused(names: Any) -> None:
    with pytest.raises(UsageError, match=r"in rising order, as \(10, 20, 40\)"):
        declared_looks(names)


@pytest.mark.parametrize(
    ("arguments", "numbers", "rates", "base"),
    [
        ({}, (10, 20, 40), (10, 20, 40, 80), 20),
        ({"names": 15}, (15, 30), (15, 30), 15),
        ({"names": 50}, (50, 80), (50, 80), 50),
        ({"names": 70}, (70,), (70,), 70),
        ({"names": 5}, (5,), (5,), 5),
        ({"names": (20,)}, (20,), (20,), 20),
        ({"names": (12, 24)}, (12, 24), (12, 24), 12),
        ({"groups": own(30, 60)}, (10, 20, 30), (10, 20, 30), 20),
        ({"groups": own(16, 60)}, (16,), (16,), 16),
        ({"groups": own(30, 60), "names": 20}, (20, 30), (20, 30), 20),
        ({"groups": RACE, "names": (10, 20)}, (10, 20), (10, 20), 20),
    ],
    ids=str,
)
def test_a_grid_has_the_names_of_its_last_look(
    arguments: dict[str, Any], numbers: tuple[int, ...], rates: tuple[int, ...], base: int
) -> None:
    stages = stages_of(**arguments)
    assert (stages.looks(NUMERIC, 1), stages.looks(BINARY, 1)) == (numbers, rates)
    assert (stages.base, stages.size) == (base, rates[-1])
    assert stages.single is (len(rates) == 1)


def test_a_project_says_the_looks_where_the_marker_does_not() -> None:
    assert stages_of((12, 24)).looks(BINARY, 1) == (12, 24)
    assert stages_of((12, 24), names=(20,)).looks(BINARY, 1) == (20,)
    assert stages_of((12, 24), groups=own(20, 20)).looks(BINARY, 1) == (12, 20)


def test_a_look_before_the_minimum_is_joined_to_the_next() -> None:
    stages = stages_of(repetitions=1)
    assert stages.per_name == 1
    assert stages.looks(NUMERIC, 30) == (40,)
    assert stages.looks(BINARY, 50) == (80,)
    assert stages_of(repetitions=1, names=(10, 20, 40)).looks(NUMERIC, 20) == (20, 40)


@pytest.mark.parametrize("groups", [own(80, 80), RACE], ids=["given", "bank"])
def test_a_stage_is_the_design_of_its_names(groups: dict[str, Any]) -> None:
    """Names, templates and repetitions of the base design are those of a grid of 20 names, and a
    smaller stage is a beginning of a larger.
    """
    texts = [TEMPLATE, "Praise {name}."]
    grid = staged(groups=groups, template=texts)
    alone = expand_grid(template=texts, groups=groups, names=20)
    assert grid.repetitions == alone.repetitions
    stage = [grid[index] for index in grid.stage(20, {})]
    assert [cell.id for cell in stage] == [cell.id for cell in alone]
    assert [cell.turns for cell in stage] == [cell.turns for cell in alone]
    first = set(grid.stage(10, {}))
    assert first < set(grid.stage(20, {})) < set(grid.stage(40, {})) <= set(range(len(grid)))
    assert {grid[index].attributes["draw"] for index in first} == set(range(1, 11))
    assert len(first) == 10 * 2 * 2


def test_a_stage_of_the_bank_is_balanced_in_gender(banks: NameBanks) -> None:
    genders = {}
    for group in RACE["race_ethnicity"]:
        for name in banks.names("race_ethnicity", group, 40):
            genders[name.full] = name.gender
    grid = staged(groups=RACE, names=(10, 20, 40))
    for names in (10, 20, 40):
        shown = Counter(genders[grid[index].name] for index in grid.stage(names, {}))
        assert shown == {"female": names, "male": names}


def test_a_group_among_fewer_stays_as_it_was() -> None:
    grid = staged(groups=own(40, 40, 40))
    indices = grid.stage(40, {("team", "b"): 20, ("other", "c"): 1})
    counts = {"a": 0, "b": 0, "c": 0}
    for index in indices:
        counts[grid[index].groups["team"]] += 1
    assert counts == {"a": 40, "b": 20, "c": 40}


def test_samples_and_personas_are_asked_as_a_whole() -> None:
    assert staged(sample=40).stages is None
    assert staged(groups=None, persona="matrix").stages is None


@pytest.mark.parametrize(
    ("names", "why"),
    [((10, 100), "has 80 names, and names=100"), (90, "has 80 names"), (0, "from 1")],
)
def test_what_a_test_lists_is_asked_or_refused(names: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        staged(names=names)


def test_the_largest_that_can_be_drawn_is_found() -> None:
    for reach in range(3, 9):
        tried = []

        def draw(number: int, reach: int = reach, tried: list[int] = tried) -> int:
            tried.append(number)
            if number > reach:
                raise UsageError("too many")
            return number

        assert largest(draw, 3, 8) == reach
        assert len(tried) <= 5
    with pytest.raises(UsageError, match="too many"):
        largest(draw, 9, 12)
