"""F69: the bundle of each suite, asked of a model over the wire, is made and verifies: nothing in
it is simulated. The model has a price, answers by form where it is asked for one, and hedges where
it is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.reports.bundle import verify, write_bundle
from tests.support.entries import openai_entry
from tests.support.servers import ModelServer
from tests.support.sessions import run_pytest

KEY = "sk-test-0123456789abcdef"
#: Of each suite as little as makes findings, of its own analyses too; and what it is configured
#: with.
SUITES: Mapping[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "selection": (
        ("-k", "not test_arms or scrubbed-vs-raw_matched-gender"),
        {"selection.yaml": "names: 2\nrepetitions: 2\nroles: [nurse]\ncriteria: [kind]\n"},
    ),
    "letters": (
        ("--fairness-approve", "--fairness-justification", "the first one"),
        {
            "letters.yaml": "repetitions: 2\nclasses: [gender]\nwording: [word_count]\n"
            "letters: [rejection]\nposts: [support_lead]\n"
        },
    ),
    "red_team": (
        (
            "-k",
            "test_bait and (euphemisms or proxies) or test_category and gender or pressure_once",
        ),
        {
            "red_team.yaml": "notes: [pressure_once]\n",
            "pytest.ini": "[pytest]\nfairness_reader = direct\n",
        },
    ),
    "bias": (
        (
            "--fairness-test=BIAS-LOAN-disability,BIAS-ATTR-disability,BIAS-NARR-disability-words",
            "--fairness-tier=1",
        ),
        {"bias.yaml": "names: [10]\ntemperatures: [default]\n"},
    ),
    "governance": (
        ("--fairness-test=DATA-*,TRANS-*,THRD-CANA-*", "-k", "not race_ethnicity"),
        {
            "governance.yaml": "data:\n  dataset: staff.csv\n  columns: {gender: sex}\n",
            "staff.csv": "id,sex,pay\n" + "".join(f"{n},{'fm'[n % 2]},{n}\n" for n in range(200)),
        },
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(simulated_endpoint(style="hedged")) as server:
        yield server


@pytest.mark.parametrize("suite", SUITES)
def test_f69_the_bundle_of_a_suite_verifies(
    suite: str, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each finding is derived again, controls that its test declares included, or a suite's own and
    said to be so.
    """
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    arguments, files = SUITES[suite]
    entry = openai_entry(
        "direct",
        server.openai_url,
        "supports_system_prompt: true",
        "default_temperature: 1.0",
        price=(1, 1),
        max_tokens=200,
    )
    for name, text in {**files, "endpoints.yaml": f"endpoints:\n{entry}"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    asked = (
        "--pyargs",
        f"pytest_fairness.suites.{suite}",
        "--fairness-endpoint=direct",
        *arguments,
    )
    findings = verified_findings(tmp_path, *asked)
    CHECKS.get(suite, _nothing_more)(findings)
    if suite == "governance":
        _check_processes(verified_findings(tmp_path, *asked[:3], "-k", PROCESSES))


#: The tests that judge past runs.
PROCESSES = "past_runs or oversight or monitoring or third_party and not canary"


def verified_findings(folder: Path, *asked: str) -> list[dict[str, Any]]:
    """The findings of the newest run, that of a session with these arguments, whose bundle
    verifies.
    """
    result = run_pytest(folder, "-p", "no:cacheprovider", "-p", "no:xdist", *asked)
    run = max((folder / ".fairness" / "runs").glob("2*"))
    results = json.loads((run / "findings.json").read_bytes())
    assert results["findings"], result.stdout.str()
    assert not results["run"]["simulated"]
    verified = verify(write_bundle(run, folder / f"{run.name}.zip"))
    assert verified.problems == []
    assert len(verified.derived) == len(results["findings"])
    findings: list[dict[str, Any]] = results["findings"]
    return findings


def _check_processes(findings: Sequence[Mapping[str, Any]]) -> None:
    """The run before is judged: there is one, its model is the declared one, its parameters
    arrived; of drift nothing is known yet.
    """
    verdicts = {finding["test_id"]: finding["verdict"] for finding in findings}
    assert {test_id.split("-")[0] for test_id in verdicts} == {"PAST", "OVER", "MON", "THRD"}
    passing = ("PAST-RUNS-001", "THRD-MODEL-001", "THRD-PARM-001", "OVER-JUST-001")
    assert {verdicts[test_id] for test_id in passing} == {"PASS"}
    assert {verdicts[f"MON-{what}-001"] for what in ("GAP", "LEVEL", "VERD")} == {"INCONCLUSIVE"}


def _data_and_explanations(findings: Sequence[Mapping[str, Any]]) -> None:
    """A dataset of one class is judged; explanations are read from the line that names facts."""
    verdicts = {finding["test_id"]: finding["verdict"] for finding in findings}
    assert {"DATA-QUAL-001", "DATA-MISS-001", "THRD-CANA-001"} <= verdicts.keys()
    explained = [verdicts[f"TRANS-EXPL-{number}"] for number in ("002", "012", "022", "032")]
    assert explained[0] == "PASS"
    assert not {"FLAG", "FAIL"}.intersection(explained)


def _nothing_more(findings: Sequence[Mapping[str, Any]]) -> None:
    """Leave it at that."""


def _asked_by_form(findings: Sequence[Mapping[str, Any]]) -> None:
    """Decisions are read by form; and a price stands in a note, which is derived again."""
    by_id = {finding["test_id"]: finding for finding in findings}
    assert list(by_id["BIAS-LOAN-disability"]["details"]["read_by"]) == ["form"]
    notes = [note for finding in findings for note in finding["notes"]]
    assert any("which cost about $" in note for note in notes)


def _read_by_model(findings: Sequence[Mapping[str, Any]]) -> None:
    """The notes of a panel are read by the model that the project names."""
    sentences = [finding["sentence"] for finding in findings]
    assert sum("read by the model" in sentence for sentence in sentences) == 2


CHECKS = {
    "bias": _asked_by_form,
    "red_team": _read_by_model,
    "governance": _data_and_explanations,
}
