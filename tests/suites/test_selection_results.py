"""The results of the benchmark as a document: written, read back strictly, refused where they are something else."""

import copy
import json

import pytest

from pytest_fairness.errors import FairnessError
from pytest_fairness.suites.selection.metrics import selection_results
from pytest_fairness.suites.selection.results import SCHEMA, SelectionResults

from .choices_of import experiment

TWO_ARMS = {"raw_naive": 1.0, "raw_matched": 0.5}


@pytest.fixture(scope="module")
def results():
    frame = experiment(3, strength={"white_male": 0.8}, position=0.5, arms=TWO_ARMS, repetitions=6, sets=6)
    return selection_results(frame)


@pytest.fixture
def document(results):
    return copy.deepcopy(results.to_dict())


def test_it_survives_the_journey_through_json(results):
    """Strict JSON, no NaN, and equal to what was written."""
    text = json.dumps(results.to_dict(), allow_nan=False)
    assert SelectionResults.from_dict(json.loads(text)) == results
    assert json.loads(text)["schema"] == SCHEMA


def test_infinite_effects_survive(document):
    document["arms"][0]["pairs"][0]["effect_low"] = "-Infinity"
    read = SelectionResults.from_dict(document)
    assert read.arms[0].pairs[0].effect_low == float("-inf")
    assert read.to_dict() == document


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda d: d.update(schema=99), "schema 99 cannot be read by this version"),
        (lambda d: d.pop("schema"), "schema None"),
        (lambda d: d.update(more=1), "unknown field `more`"),
        (lambda d: d["run"].pop("groups"), r"missing required field `groups` - at `\$\.run`"),
        (lambda d: d["run"].update(trials=1.5), r"Expected `int`, got `float` - at `\$\.run\.trials`"),
        (lambda d: d.update(arms={}), r"Expected `array`, got `object` - at `\$\.arms`"),
        (lambda d: d["arms"][0]["pairs"][1].update(effect="big"), r"at `\$\.arms\[0\]\.pairs\[1\]\.effect`"),
        (lambda d: d["arms"][1].update(verdict="FINE"), r"at `\$\.arms\[1\]\.verdict`"),
    ],
)
def test_another_shape_is_refused_with_its_place(document, spoil, message):
    """Whoever edits the file, or reads it with another version, learns where it differs."""
    spoil(document)
    with pytest.raises(FairnessError, match=message):
        SelectionResults.from_dict(document)


@pytest.mark.parametrize("data", [None, [], "schema", 3])
def test_what_is_no_object_is_refused(data):
    with pytest.raises(FairnessError, match="schema 'of no kind' cannot be read"):
        SelectionResults.from_dict(data)
