"""findings.json: written whole, read back equal, refused where it is not understood."""

from __future__ import annotations

import json

import pytest

from pytest_fairness.errors import FairnessError, StoreError
from pytest_fairness.model import NOT_COMPUTED, Reason, Verdict
from pytest_fairness.reports.audit_sections import counts_section
from pytest_fairness.reports.examples import each_trial
from pytest_fairness.reports.findings_json import NAME, conclude, read_results, save_results
from pytest_fairness.reports.plain_text import summary_lines
from pytest_fairness.runs.totals import counted_trials
from tests.support.findings_schema import conforming

from . import factories
from .factories import HOSTILE


def test_results_come_back_equal(tmp_path):
    """Every finding, item and fact of the run survives the file, infinite effects and lone
    surrogates too; its verdicts are counted, the worst first. Schema 2: run, summary, items with
    the places of their findings, findings with their test.
    """
    hostile = factories.disparity(
        sentence=HOSTILE,
        pairs=(factories.pair(HOSTILE, "b", effect=float("inf"), effect_low=float("-inf")),),
        group_results=(factories.group(HOSTILE),),
    )
    every = factories.of_each_kind(simulated=True)
    written = factories.results(*every, hostile, missing=["a::b"])
    save_results(written, tmp_path)
    assert (tmp_path / NAME).read_bytes().isascii()
    assert read_results(tmp_path) == written
    assert list(written.counts.items()) == [
        (Verdict.FAIL, 4), (Verdict.FLAG, 0), (Verdict.INCONCLUSIVE, 1), (Verdict.PASS, 1),
    ]  # fmt: skip
    data = json.loads((tmp_path / NAME).read_text())
    assert conforming(data)["schema"] == 2
    assert [item["findings"] for item in data["items"]] == [[at] for at in range(6)]
    assert (data["findings"][0]["nodeid"], data["findings"][0]["verdict"]) == (
        factories.disparity().test_id,
        "FAIL",
    )


def test_a_run_is_written_from_its_manifest_its_log_and_the_ledger(tmp_path):
    """Endpoints and versions from the manifest; counts, cost and provenance from the log itself."""
    factories.run_folder(
        tmp_path,
        factories.results(),
        [
            factories.trial(),
            factories.trial("black", status="refused"),
            factories.trial("asian", cost=None, source="simulated"),
            {"type": "attempt", "key": "x", "status": "answered", "about": '"trial"'},
        ],
    )
    manifest = {
        "id": "r1", "seed": 7, "settings": {"tier": "2"}, "git_commit": None,
        "endpoints": [{"name": "gpt-4o", "simulated": False, "identity": {}}],
    }  # fmt: skip
    ledger = {
        "items": [{"nodeid": "t::a", "outcome": "failed", "message": "no", "findings": [0]}],
        "findings": [{**factories.disparity().to_dict(), "nodeid": "t::a"}],
        "missing": ["t::b"],
    }
    save_results(conclude(tmp_path, manifest, ledger), tmp_path)
    read = read_results(tmp_path)
    assert read.run["endpoints"] == ["gpt-4o"]
    assert {key: count for key, count in read.run["trials"].items() if count} == {
        "total": 3, "answered": 2, "refused": 1,
    }  # fmt: skip
    assert read.run["cost"] == pytest.approx(0.002)
    assert read.simulated
    assert read.maker_of(0).nodeid == "t::a"
    assert read.maker_of(1).nodeid == ""
    assert read.missing == ("t::b",)


def test_a_trial_asked_again_counts_once_and_unknown_ones_are_named(tmp_path):
    """Of the records of one trial the last counts, and its cost is of both; what stays unknown is
    named, with the option that asks it again."""
    factories.run_folder(
        tmp_path,
        factories.results(),
        [
            factories.trial(key="a", status="unknown"),
            factories.trial(key="b", status="unknown", cost=0.002),
            factories.trial(key="c", status="error", cost=0.0),
            factories.trial(key="c", status="error", cost=0.0),
            factories.trial(key="b", cost=0.003),
            factories.trial(key="d"),
        ],
    )
    manifest = {"id": "r1", "notes": ["resumed"]}
    nothing = {"items": [], "findings": [], "missing": []}
    save_results(conclude(tmp_path, manifest, nothing), tmp_path)
    run = read_results(tmp_path).run
    counts = {key: count for key, count in run["trials"].items() if count}
    assert counts == {"total": 4, "unknown": 1, "error": 1, "answered": 2}
    assert run["cost"] == pytest.approx(0.005)
    assert run["notes"][0] == "resumed"
    assert run["notes"][1].startswith(
        "1 of 4 trials unknown: sent, and nobody knows what came of it"
    )
    assert "--fairness-retry-unknown" in run["notes"][1]


def test_findings_are_counted_by_module_class_tier_and_endpoint():
    """Each finding once in each of the four, under ``none`` where it has no such thing; tests by
    how they ended.
    """
    unusable = factories.categorical(reason=Reason.N, test_module="test_careers", tier=1)
    summary = factories.results(
        factories.disparity(),
        factories.passing(),
        factories.four_fifths(),
        unusable,
        missing=["a::b"],
    ).summary

    def of(fail: int = 0, inconclusive: int = 0, passed: int = 0) -> dict[str, int]:
        return {"FAIL": fail, "FLAG": 0, "INCONCLUSIVE": inconclusive, "PASS": passed}

    assert summary == {
        "findings": 4,
        "verdicts": of(2, 1, 1),
        "inconclusive": {"N": 1},
        "by": {
            "test_module": {"test_careers": of(inconclusive=1), "test_names": of(2, passed=1)},
            "protected_class": {"gender": of(0, 1, 1), "race": of(1), "race_ethnicity": of(1)},
            "tier": {"1": of(inconclusive=1), "2": of(1, passed=1), "none": of(1)},
            "model_endpoint": {"gpt-4o": of(1, 1, 1), "none": of(1)},
        },
        "tests": {"passed": 4},
        "never_finished": 1,
    }


def test_counts_are_shown(tmp_path):
    """A table each in the report, but not for a single finding; a line an endpoint in the terminal,
    where there are several."""
    run = factories.results(
        factories.disparity(),
        factories.passing(),
        factories.passing(model_endpoint=HOSTILE, outcome="another"),
        factories.four_fifths(),
    )
    section = counts_section(run, tmp_path)
    module, protected, tier, endpoint = section.parts
    assert module.rows == (("test_names", "4", "2", "–", "–", "2"),)
    assert protected.head == ("Protected class", "Findings", "FAIL", "FLAG", "INCONCLUSIVE", "PASS")
    assert tier.rows == (("2", "3", "1", "–", "–", "2"), ("none", "1", "1", "–", "–", "–"))
    assert len(endpoint.rows) == 3
    assert counts_section(factories.results(factories.disparity()), tmp_path) is None
    shown = summary_lines(run)
    assert "  gpt-4o: 1 FAIL, 1 PASS" in shown
    assert "\x1b" not in "".join(shown)
    assert "  gpt-4o: 1 FAIL" not in summary_lines(factories.results(factories.disparity()))


def test_findings_of_schema_1_are_read_as_of_schema_2(tmp_path):
    """They have no summary, and nothing where nothing was computed: both are filled in."""
    finding = factories.disparity(test_statistic="", effect_size="")
    data = factories.results(finding).to_dict() | {"schema": 1}
    del data["summary"]
    (tmp_path / NAME).write_text(json.dumps(data))
    read = read_results(tmp_path)
    assert (read.findings[0].test_statistic, read.findings[0].effect_size) == (
        NOT_COMPUTED,
        NOT_COMPUTED,
    )
    assert read.to_dict()["summary"]["findings"] == 1


EMPTY = '{"schema": 1, "run": {}, "items": [], "findings": [{}]}'


def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path):
    """Absent, of a later version, torn, foreign or edited: one kind of error, with the path and the
    mend.
    """
    with pytest.raises(FairnessError, match=r"holds no findings\.json"):
        read_results(tmp_path)
    later = factories.results(factories.disparity()).to_dict() | {"schema": 3}
    (tmp_path / NAME).write_text(json.dumps(later))
    with pytest.raises(
        FairnessError, match=r"findings.json: findings of schema 3 .* the version that wrote them"
    ):
        read_results(tmp_path)
    for text in ("", "{", "[]", "null", '{"schema": 1}', EMPTY, "[" * 99_999):
        (tmp_path / NAME).write_text(text)
        with pytest.raises(FairnessError, match=NAME):
            read_results(tmp_path)


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path):
    """A report is written into the run's folder and nowhere else."""
    target, folder = tmp_path / "outside", tmp_path / "run"
    target.write_text("precious")
    folder.mkdir()
    (folder / NAME).symlink_to(target)
    with pytest.raises(StoreError, match="symbolic link"):
        save_results(factories.results(), folder)
    assert target.read_text() == "precious"


def test_logs_are_read_leniently(tmp_path):
    """Torn lines, foreign records, odd types and newer fields never stop a report."""
    lines = [
        json.dumps(factories.trial()),
        '{"type":"trial","status":',
        '{"type":"trial"}',
        '["trial"]',
        json.dumps(
            factories.trial() | {"cell": 3, "messages": [1, {"role": None}], "replies": "x"}
        ),
        "\x00\xff trial",
        '{"a":' * 99_999 + '"trial"',
    ]
    (tmp_path / "trials-gw0.jsonl").write_text("\n".join(lines), encoding="latin-1")
    (read,) = each_trial(tmp_path)
    assert read.cell.groups == {"race_ethnicity": "white"}
    (counted,) = counted_trials(tmp_path)
    assert (counted.key, counted.cost) == (read.trial.key, read.trial.cost)


def test_a_reply_with_half_a_surrogate_counts(tmp_path):
    """The text does not count, and must not keep its trial from it."""
    lines = [json.dumps(factories.trial() | {"replies": ["\ud800"]}), json.dumps(factories.trial())]
    (tmp_path / "trials-gw0.jsonl").write_text("\n".join(lines), encoding="ascii")
    halved, whole = counted_trials(tmp_path)
    assert halved == whole
