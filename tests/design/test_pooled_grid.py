"""The grid of a class that several signals convey."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pytest_fairness.design.grid import staged_grid
from pytest_fairness.design.pooled_grid import others_beside, pooled_grid, pooled_pilot
from pytest_fairness.errors import UsageError
from pytest_fairness.pytest_layer.estimate import shapes

WHO = ", who {age},"
AGE: dict[str, Any] = {
    "template": {"post": f"{{name}}{WHO} applies.", "flat": f"Is {{name}}{WHO} a good tenant?"},
    "signals": {
        "stated_age": {"groups": {"age": ["younger", "older"]}, "signal": "stated_age"},
        "generation": {"groups": {"age": ["younger", "older"]}, "signal": "generation_marker"},
    },
    "repetitions": 1,
}
RACE: dict[str, Any] = {
    "template": "Rate {name}.",
    "signals": {
        "name": {"groups": {"race_ethnicity": ["white", "black"]}},
        "label": {"groups": {"race_ethnicity": ["white", "black", "asian"]}, "signal": "label"},
        "given": {
            "groups": {
                "race_ethnicity": {
                    "white": [f"Wilma W{at}" for at in range(25)],
                    "other": [f"Otto O{at}" for at in range(25)],
                }
            },
        },
    },
    "repetitions": 2,
}


def test_a_cell_is_that_of_the_grid_of_its_signal() -> None:
    """Prompts, groups, names and words are those of each signal's own grid, in its order."""
    grid = pooled_grid(**AGE)
    cells = list(grid)
    for label, entry in AGE["signals"].items():
        common = {name: value for name, value in AGE.items() if name != "signals"}
        alone = list(staged_grid(**common, **entry))
        mine = [cell for cell in cells if cell.signal == label]
        assert [cell.prompt for cell in mine] == [cell.prompt for cell in alone]
        assert [(cell.groups, cell.name, cell.attributes) for cell in mine] == [
            (cell.groups, cell.name, cell.attributes) for cell in alone
        ]
        assert {cell.template for cell in mine} == {
            f"{label}-{template}" for template in ("post", "flat")
        }
    assert len({cell.id for cell in cells}) == len(cells) == len(grid) == 2 * 2 * 2 * 80


def test_neutral_names_are_those_of_every_signal_and_telling_ones_stand_alone() -> None:
    names: dict[str, set[str | None]] = {}
    for cell in pooled_grid(**AGE):
        names.setdefault(cell.signal, set()).add(cell.name)
    assert names["stated_age"] == names["generation"]
    of_race: dict[str, set[str | None]] = {}
    for cell in pooled_grid(**RACE):
        of_race.setdefault(cell.signal, set()).add(cell.name)
    assert not of_race["name"] & of_race["label"]
    assert {len(group) for group in of_race.values()} == {160, 80, 50}


def test_a_stage_is_the_first_names_of_each_group_in_every_signal() -> None:
    grid = pooled_grid(**RACE)
    assert grid.stages is not None
    assert grid.stages.size == 80

    def counts(names: int, **fewer: int) -> Counter[tuple[str, str]]:
        settled = {("race_ethnicity", group): most for group, most in fewer.items()}
        cells = [grid[index] for index in grid.stage(names, settled)]
        return Counter((cell.signal, cell.groups["race_ethnicity"]) for cell in cells)

    assert set(counts(10).values()) == {10}
    assert counts(40)["name", "black"] == 40
    assert counts(40)["given", "other"] == 25  # as many as there are
    settled = counts(40, white=10)
    assert {settled[signal, "white"] for signal in RACE["signals"]} == {10}
    assert settled["label", "asian"] == 40


def test_looks_are_those_of_the_grid() -> None:
    def looks(**given: Any) -> Any:
        stages = pooled_grid(**{**RACE, **given}).stages
        assert stages is not None
        return stages.to_dict()

    assert looks() == {"scores": [10, 20, 40], "rates": [10, 20, 40, 80]}
    assert looks(names=(10, 30))["rates"] == [10, 30]
    assert looks(names=20)["scores"] == [20, 40]
    of_own_names = {"given": RACE["signals"]["given"]}  # twenty-five a group
    assert looks(names=(10, 20, 40), signals=of_own_names)["rates"] == [10, 25]


def test_the_shape_of_a_class_counts_all_its_signals() -> None:
    """Eighty neutral names, each in two texts of two signals."""
    assert shapes(pooled_grid(**AGE), swapped=True)["age"] == (2, 80, 80 * 4)
    race = shapes(pooled_grid(**RACE), swapped=True)["race_ethnicity"]
    assert race == (4, 25, 25 * 2)  # of the group that one signal alone conveys


def series(who: str) -> dict[str, dict[str, str]]:
    return {"nurse": {key: f"{{name}}{who} has {key} years." for key in ("one", "two", "three")}}


def test_a_pilot_asks_each_text_once_and_chooses_it_in_every_signal() -> None:
    signals = {
        label: {**entry, "template": {**series(WHO), "plain": f"Is {{name}}{WHO} fine?"}}
        for label, entry in AGE["signals"].items()
    }
    arguments = {**AGE, "signals": signals}
    pilot = pooled_pilot(30, **arguments)
    assert [template.id for template in pilot.templates] == [
        "nurse_one",
        "nurse_two",
        "nurse_three",
    ]
    assert len(pilot) == 30
    assert not any(cell.groups for cell in pilot)
    grid = pooled_grid(**arguments)
    assert grid.chosen_texts(["nurse_two"]) == {
        "stated_age-nurse_two",
        "stated_age-plain",
        "generation-nurse_two",
        "generation-plain",
    }
    asked = grid.of_texts(range(len(grid)), grid.chosen_texts(["nurse_two"]))
    assert Counter(grid[index].template for index in asked) == dict.fromkeys(
        grid.chosen_texts(["nurse_two"]), 160
    )
    unlike = {
        **signals,
        "generation": {**signals["generation"], "template": series(f"{WHO} still")},
    }
    with pytest.raises(UsageError, match="two signals ask unlike texts of that name"):
        pooled_pilot(30, **{**arguments, "signals": unlike})


def test_whom_a_strategy_shows_beside_each_person() -> None:
    """Somebody of no group, in the texts of the same signal; nobody where a class has no control."""
    named = {
        "one": [f"Wilma W{at}" for at in range(20)],
        "two": [f"Otto O{at}" for at in range(20)],
    }
    arguments = {
        "template": {
            "post": "{name}, who {disability}, applies.",
            "flat": "{name}, who {disability}?",
        },
        "signals": {
            "given": {"groups": {"disability": named}, "template": "Rate {name}."},
            "condition": {
                "groups": {"disability": ["physical", "sensory"]},
                "signal": "condition",
            },
        },
        "repetitions": 1,
    }
    grid = pooled_grid(**arguments)
    others = others_beside(grid, arguments)
    assert list(others) == ["condition"]
    used = {unit.cluster for unit in grid.units if unit.signal == "condition"}
    for index in (0, len(grid) - 1, len(grid) // 2):
        signal, block = grid.place(index)
        assert signal == grid[index].signal
        if signal in others:
            other = others[signal].cell_at(block)
            assert other.name not in used
            assert grid[index].template == f"{signal}-{other.template}"


def test_the_size_in_words() -> None:
    assert pooled_grid(**AGE).describe().splitlines() == [
        "stated_age: 2 templates × 160 combinations of group and name = 320 cells",
        "generation: 2 templates × 160 combinations of group and name = 320 cells",
        "× 1 repetitions = 640 calls",
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"signals": []}, "signals= is a mapping"),
        ({"signals": {"name": "gender"}}, "signals= is a mapping"),
        ({"groups": {"age": ["younger"]}}, "signals= and groups= do not go together"),
        ({"sample": 100}, "signals= and sample= do not go together"),
        ({"persona": "matrix"}, "signals= and persona= do not go together"),
        ({"signals": {"name": {"signal": "name"}}}, "has no groups"),
        (
            {"signals": {"name": {"groups": {"gender": ["female", "male"]}, "names": 4}}},
            "has 'names', and takes template, groups, signal",
        ),
    ],
)
def test_what_makes_no_sense_says_what_to_do(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        pooled_grid(**{**AGE, **given})
