"""What a test asks, as the log keeps it: the same design is seen to be the same, and any change is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_fairness.runs.designs import RecordedDesign, changes, closest_changes, design_of
from pytest_fairness.runs.store import RunStore
from tests.support.doubles import plan


def design(**more: Any) -> RecordedDesign:
    arguments: dict[str, Any] = {
        "test": "test_app.py::test_tone",
        "tier": 2,
        "endpoint": "gpt",
        "identity": {"type": "openai", "model": "gpt-4o", "base_url": "https://api.example/v1"},
        "parameters": {"temperature": 1.0},
        "templates": {"t": "Write about {name}."},
    }
    return design_of(plan(8), **{**arguments, **more})


def test_the_same_design_has_no_changes() -> None:
    """Whoever wrote it, and in whatever order its trials are planned."""
    other = design_of(
        list(reversed(plan(8))),
        test="test_app.py::test_tone",
        tier=2,
        endpoint="gpt",
        identity=design().identity,
        parameters={"temperature": 1.0},
        templates={"t": "Write about {name}."},
        session="another",
    )
    assert changes(design(), other) == []
    assert design().same(other)
    assert RecordedDesign.from_record(design().to_record()) == design()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"endpoint": "claude"}, "the endpoint was 'gpt', is 'claude'"),
        (
            {"identity": {"type": "openai", "model": "gpt-5", "base_url": "https://api.example/v1"}},
            "the endpoint's model was 'gpt-4o', is 'gpt-5'",
        ),
        ({"parameters": {"temperature": 0.0}}, "the parameter temperature was 1.0, is 0.0"),
        ({"parameters": {}}, "the parameter temperature was 1.0, is not given"),
        ({"templates": {"t": "Tell about {name}."}}, "the prompt: the text of template 't' changed"),
        ({"templates": {"u": "Write about {name}."}}, "the prompt: template 't' is absent"),
        ({"seed": 7}, "the seed was 0, is 7"),
    ],
    ids=["endpoint", "model", "parameter", "parameter left off", "prompt", "template", "seed"],
)
def test_each_field_is_named(change: dict[str, Any], told: str) -> None:
    """A message names the field as its author knows it, and both values where they are short."""
    assert told in changes(design(), design(**change))


def test_cells_are_compared() -> None:
    """Another number of cells, another group, another name: each is told, and a selection is not held against all."""
    base = design()
    common = {"test": base.test, "tier": 2, "endpoint": "gpt", "identity": base.identity}
    common |= {"parameters": base.parameters, "templates": {"t": "Write about {name}."}}
    assert changes(base, design_of(plan(6), **common)) == ["n: cells were 8, are 6"]
    assert changes(base, design_of(plan(6), **common, whole=False)) == []
    (told,) = changes(base, design_of(plan(8, groups={"race_ethnicity": "white"}), **common))
    assert told == "the groups of race_ethnicity were asian, black, hispanic, white, are white"
    (told,) = changes(base, design_of(plan(8, turns=("Something else.",)), **common))
    assert told == "the prompts: names, personas, context or signals changed"
    (told,) = changes(base, design_of(plan(8, system="Be kind."), **common))
    assert told == "the prompt: the system prompt changed"


def test_the_closest_design_is_compared() -> None:
    """A test that asks two systems is held against its own record of each, and against no other test's."""
    first, second = design(), design(endpoint="claude", identity={"model": "claude"})
    assert closest_changes([first, second], design(endpoint="claude", identity={"model": "claude"})) == []
    assert closest_changes([first, second], design(seed=1)) == ["the seed was 0, is 1"]
    assert closest_changes([replace(first, test="another")], design(seed=1)) == []


def test_designs_are_read_back_from_every_log(store: RunStore) -> None:
    """What one process noted, the others of the run see."""
    store.append(design().to_record())
    store.flush()
    with RunStore.open(store.directory, writer="gw0") as worker:
        worker.append(design(seed=5).to_record())
        worker.flush()
        assert sorted(one.seed for one in worker.designs()) == [0, 5]
    assert sorted(one.seed for one in store.designs()) == [0, 5]
