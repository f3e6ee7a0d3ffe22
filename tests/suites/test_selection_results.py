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


def test_an_arm_by_its_name(results):
    assert results.arm("raw_matched").arm == "raw_matched"
    with pytest.raises(FairnessError, match=r"no arm 'scrubed' \(there are: raw_naive, raw_matched\)"):
        results.arm("scrubed")


def test_infinite_effects_survive(document):
    document["arms"][0]["pairs"][0]["effect_low"] = "-Infinity"
    read = SelectionResults.from_dict(document)
    assert read.arms[0].pairs[0].effect_low == float("-inf")
    assert read.to_dict() == document


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda d: d.update(schema=99), "schema 99 cannot be read by this version"),
        (lambda d: d.pop("schema"), "schema None"),
        (lambda d: d.update(more=1), "unknown key 'more'"),
        (lambda d: d.pop("run"), "the key 'run' is missing"),
        (lambda d: d["run"].pop("groups"), r"run: the key 'groups' is missing"),
        (lambda d: d["run"].update(simulated="yes"), r"run\.simulated: expected true or false, found 'yes'"),
        (lambda d: d["run"].update(trials=1.5), r"run\.trials: expected a whole number, found 1\.5"),
        (lambda d: d["run"].update(trials=True), r"run\.trials: expected a whole number, found True"),
        (lambda d: d["run"].update(endpoint=7), r"run\.endpoint: expected a text, found 7"),
        (lambda d: d["run"].update(classes=[]), r"run\.classes: expected an object"),
        (lambda d: d.update(arms={}), r"arms: expected a list"),
        (lambda d: d["arms"].__setitem__(0, 3), r"arms\[0\]: expected an object, found 3"),
        (lambda d: d["arms"][0]["pairs"][1].update(effect="big"), r"arms\[0\]\.pairs\[1\]\.effect: expected a number"),
        (lambda d: d["arms"][0]["pairs"][1].update(effect=None), r"pairs\[1\]\.effect: expected a number, found None"),
        (lambda d: d["arms"][1].update(verdict="FINE"), r"arms\[1\]\.verdict: expected one of PASS, FLAG"),
        (lambda d: d["arms"][0]["rates"][0]["share"].update(extra=1), r"rates\[0\]\.share: unknown key 'extra'"),
    ],
)
def test_another_shape_is_refused_with_its_place(document, spoil, told):
    """Whoever edits the file, or reads it with another version, is told where it differs."""
    spoil(document)
    with pytest.raises(FairnessError, match=told):
        SelectionResults.from_dict(document)


@pytest.mark.parametrize("data", [None, [], "schema", 3])
def test_what_is_no_object_is_refused(data):
    with pytest.raises(FairnessError, match="a JSON object with a schema"):
        SelectionResults.from_dict(data)
