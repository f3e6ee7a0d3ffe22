"""The published schema of findings.json: it is what is written, of every kind of run, and it
refuses what is wrong.
"""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from pytest_fairness.model import Finding, GroupResult, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.reports.findings_json import BREAKDOWN
from tests.support.findings_schema import conforming, published, validator
from tests.support.sessions import run_pytest

from .factories import disparity, results

#: The fields that the test specification asks for.
SPECIFIED = (
    "test_id test_module description tier protected_class model_endpoint n_per_group group_results "
    "test_statistic "
    "p_value corrected_p_value effect_size verdict refusal_rates notes"
)

EVERY = """
import pandas as pd, pytest
from pytest_fairness import (
    assert_arm_reduces_disparity, assert_baseline, assert_equivalent, assert_four_fifths, assert_no_disparity,
    assert_no_preference,
)

grid = pytest.mark.fairness_grid(
    template="Rate {name}, a nurse, from 1 to 10.", groups={"race_ethnicity": ["white", "black"]},
    names=(10, 30), repetitions=2)
pairs = pytest.mark.fairness_pairs(
    template="Who is better? Give the name.\\n\\n{candidates}", candidates="four_groups", names=2,
    repetitions=1, arms=["raw_naive", "raw_matched"])

@grid
def test_differences(trials):
    "Does a rating follow the name?"
    assert_no_disparity(trials, "rating", "race_ethnicity")
    assert_equivalent(trials, "rating", "race_ethnicity", margin=2)

@grid
def test_baseline(trials):
    assert_baseline(trials, "rating")

@pairs
def test_preference(trials):
    assert_no_preference(trials[trials["arm"] == "raw_naive"])

@pairs
def test_arms(trials):
    assert_arm_reduces_disparity(trials, treated="raw_matched", control="raw_naive")

def decisions(*values):
    return pd.DataFrame({"g": ["a", "b"] * 100, "y": [*values] * (200 // len(values))})

@pytest.mark.fairness
@pytest.mark.parametrize("values", [(True, False), (None, None), (True, None)], ids=["apart", "none", "one"])
def test_decisions(values):
    assert_four_fifths(decisions(*values), "y", "g", cluster=None)

@pytest.mark.fairness
def test_unread():
    assert_no_disparity(decisions(None, None), "y", "g", cluster=None, kind="numeric")

@pytest.mark.fairness
def test_skipped():
    pytest.skip("not today")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A project whose tests make every comparison, with trials and without, decided and not."""
    path = tmp_path_factory.mktemp("project")
    (path / "test_every.py").write_text(EVERY, encoding="utf-8")
    return path


def test_what_sessions_write_is_as_the_schema_says(folder):
    """Every assertion: a first baseline and one that held, simulated and replayed, without any
    data, cut short. Test statistic and effect size are always said, if only that they were not
    computed and why.
    """
    approve = ("--fairness-approve", "--fairness-justification", "the first one, reviewed")
    written = []
    for arguments in (
        approve,
        ("--fairness-replay", "last"),
        ("-x", "-k", "differences or unread or skipped"),
    ):
        run_pytest(folder, "-p", "no:cacheprovider", "-q", *arguments)
        path = max((folder / ".fairness" / "runs").glob("2*")) / "findings.json"
        written.append(conforming(json.loads(path.read_bytes())))
    first, replayed, cut = written
    assert {one["assertion"] for one in first["findings"]} == {
        "no_disparity", "equivalent", "baseline", "no_preference", "arm_reduces_disparity", "four_fifths",
    }  # fmt: skip
    assert (first["run"]["simulated"], replayed["run"]["replayed"]) == (True, True)
    assert cut["missing"]
    said = {
        one["nodeid"].partition("::")[2]: (one["test_statistic"], one["effect_size"])
        for one in first["findings"]
    }
    nothing = "not computed: nothing was compared"
    assert said["test_baseline"] == said["test_decisions[none]"] == (nothing, nothing)
    (empty,) = (one for one in first["findings"] if one["nodeid"].endswith("[none]"))
    assert empty["spec_verdict"] is None
    assert set(said["test_unread"]) == {"not computed: a and b cannot be compared on y"}
    assert said["test_decisions[one]"][1].startswith("d from odds ratio = ")
    (again,) = (one for one in replayed["findings"] if one["assertion"] == "baseline")
    assert again["test_statistic"].startswith("t = ")
    (approved,) = (one for one in first["findings"] if one["assertion"] == "baseline")
    described = {
        name: approved[name]
        for name in ("test_module", "tier", "model_endpoint", "n_per_group", "simulated")
    }
    assert described == {
        "test_module": "test_every", "tier": 2, "model_endpoint": "simulated", "n_per_group": {"now": 40},
        "simulated": True,
    }  # fmt: skip


def test_the_schema_names_the_fields_of_the_nouns():
    """Those of a finding, a group and a pair, with the model's words for verdicts, reasons and
    kinds.
    """
    parts = published()["$defs"]
    nouns = {
        "finding": (Finding, {"id", "nodeid"}),
        "group": (GroupResult, set()),
        "pair": (PairResult, set()),
    }
    for part, (noun, others) in nouns.items():
        assert set(parts[part]["required"]) == {field.name for field in fields(noun)} | others
        assert set(parts[part]["properties"]) == set(parts[part]["required"])
    assert set(parts["verdict"]["enum"]) == set(Verdict)
    assert set(parts["reason"]["enum"]) == set(Reason)
    assert set(parts["finding"]["properties"]["kind"]["enum"]) == {*OutcomeKind, None}
    assert set(parts["summary"]["properties"]["by"]["required"]) == set(BREAKDOWN)
    assert set(SPECIFIED.split()) <= set(parts["finding"]["required"])


#: What no file may say: its place, the value, and the words by which it is refused.
WRONG = [
    (("schema",), 1, "2 was expected"),
    (("findings", 0, "verdict"), "OK", "is not one of"),
    (("findings", 0, "reason"), "N", "is not of type 'null'"),
    (("findings", 0, "test_statistic"), "", "should be non-empty"),
    (("findings", 0, "effect_size"), None, "is not of type 'string'"),
    (("findings", 0, "p_value"), 1.5, "is greater than the maximum"),
    (("findings", 0, "tier"), 3, "is not one of"),
    (("findings", 0, "n_per_group"), {"white": "many"}, "is not of type 'integer'"),
    (("findings", 0, "group_results", 0, "value"), "Infinite", "is not valid under any"),
    (("findings", 0, "id"), "1", "does not match"),
    (("items", 0, "outcome"), "green", "is not one of"),
    (("summary", "by", "tier"), {"2": {"PASS": 1}}, "is a required property"),
    (("run", "cost"), None, "is not valid under any"),
]


def test_the_schema_refuses_what_is_wrong():
    """A wrong value, and that nothing stands there at all."""
    for place, value, why in WRONG:
        data = json.loads(json.dumps(results(disparity()).to_dict()))
        inside = data
        for step in place[:-1]:
            inside = inside[step]
        inside[place[-1]] = value
        assert [error.message for error in validator().iter_errors(data) if why in error.message], (
            place
        )
        del inside[place[-1]]
        missing = {error.message for error in validator().iter_errors(data)}
        assert missing == {f"{place[-1]!r} is a required property"}, place
