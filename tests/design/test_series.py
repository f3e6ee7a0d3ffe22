"""Which texts of a series the groups are asked, by the answers about neutral names."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pytest_fairness.design.grid import expand_grid, pilot_grid
from pytest_fairness.design.series import (
    Answers,
    border_of,
    chosen_texts,
    counted,
    most_asked,
    series_of,
    texts_with_room,
)
from pytest_fairness.design.templates import Template, templates
from pytest_fairness.errors import UsageError


def of_six(*favourable: int) -> list[Answers]:
    return [Answers(number, 6) for number in favourable]


@pytest.mark.parametrize(
    ("favourable", "places"),
    [
        ((0, 0, 0, 6, 6), (2, 3)),  # a rule: both sides of its border
        ((0, 6, 6, 6, 6), (0, 1)),
        ((0, 0, 0, 0, 0), (3, 4)),  # nobody is invited: the strongest
        ((6, 6, 6, 6, 6), (0, 1)),
        ((0, 0, 3, 6, 6), (1, 2)),  # room in one: the other is next to the border
        ((0, 1, 3, 6, 6), (1, 2)),
        ((0, 0, 3, 5, 6), (2, 3)),
        ((0, 2, 3, 4, 6), (1, 2, 3)),
        ((2, 3, 3, 3, 4), (1, 2, 3)),  # room in all: the most even, then those in the middle
        ((3, 2, 4, 3, 3), (0, 3, 4)),
        ((6, 4, 3, 1, 0), (1, 2)),  # the other way round
    ],
)
def test_those_next_to_the_border_are_asked(
    favourable: tuple[int, ...], places: tuple[int, ...]
) -> None:
    assert texts_with_room(of_six(*favourable)) == places


def test_two_or_three_are_asked_whatever_is_answered() -> None:
    """And every text that leaves room, where there are no more than three."""
    for favourable in itertools.product(range(0, 7, 2), repeat=5):
        answers = of_six(*favourable)
        places = texts_with_room(answers)
        leaving_room = {place for place, of_text in enumerate(answers) if of_text.leaves_room}
        assert 2 <= len(places) <= 3
        assert list(places) == sorted(set(places))
        if len(leaving_room) <= 3:
            assert leaving_room <= set(places)
        else:
            assert set(places) <= leaving_room


def test_room_is_between_twenty_and_eighty_per_cent() -> None:
    shares = {1: False, 2: True, 5: True, 8: True, 9: False}
    for favourable, leaves_room in shares.items():
        assert Answers(favourable, 10).leaves_room == leaves_room
    assert not Answers(0, 0).leaves_room


def test_a_text_that_nobody_could_read_comes_last() -> None:
    answers = of_six(0, 0, 0, 6, 6)
    answers[2] = Answers(0, 0)
    assert answers[2].share is None
    assert texts_with_room(answers) == (1, 3)
    assert texts_with_room([Answers(0, 0)] * 5) == (1, 2)


def test_the_border_is_where_no_turns_to_yes() -> None:
    assert border_of(of_six(0, 0, 6, 6, 6)) == 2.5
    assert border_of(of_six(0, 0, 3, 6, 6)) == 3.0
    assert border_of(of_six(0, 0, 0, 0, 0)) == 5.5


def test_answers_are_counted_by_text() -> None:
    rows = [("a", True), ("a", None), ("b", None), ("a", False)]
    answers = counted(rows)
    assert answers == {"a": Answers(1, 2), "b": Answers(0, 0)}
    series = {"s": ["a", "b", "never asked"]}
    assert chosen_texts(series, answers) == {"s": ["a", "b"]}


SERIES: dict[str, Any] = {
    "nurse": {str(years): f"{{name}}, who {{age}}, has {years} years." for years in range(1, 6)},
    "plain": "Invite {name}, who {age}, or not?",
}
GROUPS = {"groups": {"age": ["younger", "older"]}, "signal": "stated_age", "names": 10}


def test_a_series_is_a_template_for_each_strength() -> None:
    made = templates(SERIES)
    assert [template.id for template in made] == [*(f"nurse_{n}" for n in range(1, 6)), "plain"]
    assert series_of(made) == {"nurse": tuple(f"nurse_{n}" for n in range(1, 6))}
    kept = [template.id for template in most_asked(made)]
    assert kept == ["nurse_2", "nurse_3", "nurse_4", "plain"]
    assert len(expand_grid(template=SERIES, **GROUPS)) == 2 * 10 * 6


def test_a_pilot_is_about_neutral_names_and_no_group() -> None:
    """Six names for each of five texts are thirty calls; the clause of the signal is left out, and a
    template of no series is not piloted.
    """
    grid = pilot_grid(30, template=SERIES, **GROUPS)
    assert len(grid) == 30
    assert {(*cell.groups, cell.signal) for cell in grid} == {("pilot",)}
    assert len({cell.name for cell in grid}) == 6
    assert all("-pilot-" in cell.id for cell in grid)  # no cell of the design is called so
    assert all(cell.prompt == f"{cell.name} has {cell.template[-1]} years." for cell in grid)
    by_name = {"groups": {"gender": ["female", "male"]}}
    bare = {
        "nurse": {key: text.replace(", who {age},", "") for key, text in SERIES["nurse"].items()}
    }
    other = pilot_grid(30, template=bare, **by_name)
    assert [cell.prompt for cell in other] == [cell.prompt for cell in grid]


def test_contexts_share_the_calls() -> None:
    context = {"context": {"day": ["Monday", "Tuesday"]}}
    series = {"a": {key: f"{{name}}, who {{age}}, asks on {{day}}, {key}." for key in "xyz"}}
    assert len(pilot_grid(30, template=series, **GROUPS, **context)) == 30


def test_a_series_of_two_texts_is_none() -> None:
    with pytest.raises(UsageError, match="a series has 3 texts or more"):
        templates({"nurse": {"weak": "{name}", "strong": "{name}!"}})
    assert Template("a", "b").series == ""
