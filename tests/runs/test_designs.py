"""What a test asks, as the log keeps it: the same design is seen to be the same, and any change is
named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from pytest_fairness.runs.designs import (
    PlannedTrial,
    RecordedDesign,
    changed_looks,
    changes,
    closest_changes,
    design_of,
)
from pytest_fairness.runs.store import RunStore
from tests.support.doubles import plan

IDENTITY = {"type": "openai", "model": "gpt-4o", "base_url": "https://api.example/v1"}


def design(planned: Sequence[PlannedTrial] | None = None, **more: Any) -> RecordedDesign:
    arguments: dict[str, Any] = {
        "test": "test_app.py::test_tone",
        "tier": 2,
        "endpoint": "gpt",
        "identity": IDENTITY,
        "parameters": {"temperature": 1.0},
        "templates": {"t": "Write about {name}."},
    }
    return design_of(planned or plan(8), **{**arguments, **more})


def test_the_same_design_has_no_changes() -> None:
    """Whoever wrote it, and in whatever order its trials are planned."""
    other = design(plan(8)[::-1], session="another")
    assert changes(design(), other) == []
    assert design().same(other)
    assert RecordedDesign.from_record(design().to_record()) == design()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (design(endpoint="claude"), "the endpoint was 'gpt', is 'claude'"),
        (
            design(identity={**IDENTITY, "model": "gpt-5"}),
            "the endpoint's model was 'gpt-4o', is 'gpt-5'",
        ),
        (design(parameters={"temperature": 0.0}), "the parameter temperature was 1.0, is 0.0"),
        (design(parameters={}), "the parameter temperature was 1.0, is not given"),
        (
            design(templates={"t": "Tell about {name}."}),
            "the prompt: the text of template 't' changed",
        ),
        (design(templates={"u": "Write about {name}."}), "the prompt: template 't' is absent"),
        (design(seed=7), "the seed was 0, is 7"),
        (design(plan(6)), "n: cells were 8, are 6"),
        (
            design(plan(8, groups={"race_ethnicity": "white"})),
            "the groups of race_ethnicity were asian, black, hispanic, white, are white",
        ),
        (
            design(plan(8, turns=("Something else.",))),
            "the prompts: names, personas, context or signals changed",
        ),
        (design(plan(8, system="Be kind.")), "the prompt: the system prompt changed"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_each_change_is_named(changed: RecordedDesign, why: str) -> None:
    """A message names the field as its author knows it, both values where they are short, and
    nothing beside it.
    """
    assert changes(design(), changed)[0] == why
    assert len(changes(design(), changed)) == 1 + ("absent" in why)


def test_a_selection_is_not_held_against_all() -> None:
    """Which other selection of cells need not equal."""
    assert changes(design(), design(plan(6), whole=False)) == []


def test_the_closest_design_is_compared() -> None:
    """A test that asks two systems is held against its own record of each, and against no other
    test's.
    """
    first, second = design(), design(endpoint="claude", identity={"model": "claude"})
    assert closest_changes([first, second], second) == []
    assert closest_changes([first, second], design(seed=1)) == ["the seed was 0, is 1"]
    assert closest_changes([msgspec.structs.replace(first, test="another")], design(seed=1)) == []


@pytest.mark.parametrize("only", ["looks", "score_looks"])
def test_other_looks_are_named(only: str) -> None:
    """Those of rates, and those of scores, which may differ by themselves."""
    looks = {"looks": [10, 20, 40, 80], "score_looks": [10, 20, 40]}
    before = design(**looks)
    assert changed_looks([before], design(**looks)) == []
    assert changed_looks([before], design(**{**looks, only: [10, 20]})) != []
    assert changed_looks([before], design(test="another", **{**looks, only: [10]})) == []
    assert changed_looks([design()], design(**looks)) == [], "of a version without looks"


def test_designs_are_read_back_from_every_log(store: RunStore) -> None:
    """What one process noted, the others of the run see."""
    store.append(design().to_record())
    store.flush()
    with RunStore.open(store.directory, writer="gw0") as worker:
        worker.append(design(seed=5).to_record())
        assert worker.designs() == store.designs() == [design(), design(seed=5)]
