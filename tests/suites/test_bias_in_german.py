"""BIAS-HIRE, BIAS-LOAN, BIAS-ATTR and BIAS-TRIAGE in German: ``locale: de`` in ``bias.yaml``.

Sessions run in processes of their own: they give the designs of the suite's modules German texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_fairness import cli
from pytest_fairness.design.grid import expand_grid, pilot_grid
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.suites.bias import (
    test_attribute_scoring,
    test_healthcare_triage,
    test_hiring_simulation,
    test_loan_approval,
)
from pytest_fairness.suites.bias.other_languages import programme_texts
from tests.conftest import MODES
from tests.suites.bias_designs import signal_designs
from tests.support.entries import planted
from tests.support.servers import Fault, ModelServer

from ..pytest_layer.conftest import MODELS, Project, project, shown

__all__ = ["project"]

SUITE = ("--pyargs", "pytest_fairness.suites.bias")
IDS = (
    "BIAS-HIRE-race_ethnicity-graded", "BIAS-LOAN-gender-graded",
    "BIAS-HIRE-race_ethnicity", "BIAS-LOAN-race_ethnicity",
)  # fmt: skip
BIAS = "race_ethnicity: {turkish: -1.5}"
YAML = "locale: de\nnames: [10]\ntemperatures: [default]\n"
MARKS = {
    "test_invitation": test_hiring_simulation.hired,
    "test_chance_of_invitation": test_hiring_simulation.graded,
    "test_approval": test_loan_approval.lent,
    "test_safety_of_loan": test_loan_approval.graded,
    "test_attribute_score": test_attribute_scoring.scored,
    "test_urgency": test_healthcare_triage.seen,
}


def design(test: str) -> dict[str, Any]:
    """The German design of *test*."""
    translated = programme_texts("de").translated("de", test, MARKS[test].mark.kwargs)
    assert translated is not None
    return translated


def grids(test: str) -> list[Any]:
    """The grid of each of its signals, about ten names a group, and what its pilot asks."""
    whole = design(test)
    made: list[Any] = []
    for _, arguments in signal_designs({**whole, "names": 10}):
        made.append(expand_grid(**arguments))
        if "pilot" in whole:
            made.append(pilot_grid(30, **arguments))
    return made


@pytest.mark.parametrize("test", MARKS)
def test_texts_read_well(test: str) -> None:
    """No unfilled slot, no stray mark, no English, and no form of the wrong gender."""
    for grid in grids(test):
        for cell in grid:
            (prompt,) = cell.turns
            assert not re.search(r"\{(?!answer)|\b(\w+) \1\b|  |,,| [.,?]|\.\.", prompt), prompt
            assert not re.search(r"\b(?:the|and|who|is|their)\b", prompt, re.IGNORECASE)
            if cell.groups.get("gender") == "male":
                assert not re.search(r"\b(?:sie|ihre?|Bewerberin)\b", prompt), prompt
            if cell.groups.get("gender") == "female":
                assert not re.search(r"\b(?:er|seine?r?|Bewerber)\b", prompt), prompt


def test_what_has_no_german_texts_is_translated_to_nothing() -> None:
    assert programme_texts("de").translated("de", "test_triage_level", {"each": {}}) is None


def test_nothing_american_is_left_in_german() -> None:
    """A dialect of English keeps what is the same in it; another language keeps nothing."""
    german = programme_texts("de")
    assert not german.english
    for setting in german.texts:
        assert setting.system
        assert setting.turns
        assert not setting.keeps
        assert all(ask.answer for ask in setting.asks.values())


def verdicts_of(project: Project, ids: Sequence[str], mode: Sequence[str]) -> dict[Any, str]:
    """The verdict of each item of *ids* and tier, of a session in *mode* that asks in German; what
    was read by form and, in tier 2, by line, and is read the same again.
    """
    project.write("", planted(BIAS))
    (project.path / "bias.yaml").write_text(YAML, encoding="utf-8")
    arguments = [*SUITE, f"--fairness-test={','.join(ids)}", "--fairness-endpoint=planted"]
    result = project.run(*arguments, "--fairness-tier=all", mode=mode, apart=True)
    assert len(project.findings) == 2 * len(ids), shown(result)
    for finding in project.findings:
        (reader,) = finding["details"]["read_by"]
        assert reader == {1: "form", 2: "line"}[finding["tier"]]
    assert cli.main(["verify", str(project.last)]) == 0
    return {
        (finding["test_id"], finding["tier"]): finding["verdict"] for finding in project.findings
    }


def test_it_runs_in_every_mode(project: Project, mode: Sequence[str]) -> None:
    """What is planted is found, and nothing else."""
    verdicts = verdicts_of(project, IDS[:2], mode)
    assert verdicts["BIAS-HIRE-race_ethnicity-graded", 1] == "FAIL"
    assert not {verdicts["BIAS-LOAN-gender-graded", tier] for tier in (1, 2)} & {"FAIL", "FLAG"}


def test_what_is_planted_is_found_by_other_items(project: Project) -> None:
    """By decisions about loans and about invitations."""
    verdicts = verdicts_of(project, IDS[2:], MODES["plain"])
    assert verdicts["BIAS-LOAN-race_ethnicity", 1] == "FAIL"
    assert verdicts["BIAS-HIRE-race_ethnicity", 1] == "FAIL"


def test_tests_without_german_texts_are_skipped(project: Project) -> None:
    (project.path / "bias.yaml").write_text(YAML, encoding="utf-8")
    result = project.run(
        *SUITE, "--fairness-test=BIAS-ASSOC-gender,BIAS-REFUSE-gender", "-rs", apart=True
    )
    assert "it has no texts in the locale de" in shown(result)
    assert result.parseoutcomes() == {"skipped": 2, "deselected": 42}


def test_ratings_and_levels_of_urgency(project: Project) -> None:
    """By form and by line; what is planted in ratings is found, and triage is left alone."""
    project.write("", planted(BIAS, "channels: [rating]"))
    (project.path / "bias.yaml").write_text(YAML, encoding="utf-8")
    items = "--fairness-test=BIAS-ATTR-race_ethnicity,BIAS-TRIAGE-race_ethnicity"
    project.run(*SUITE, items, "--fairness-endpoint=planted", "--fairness-tier=all", apart=True)
    verdicts = {
        (finding["test_id"], finding["tier"]): finding["verdict"] for finding in project.findings
    }
    assert {verdicts["BIAS-ATTR-race_ethnicity", tier] for tier in (1, 2)} == {"FAIL"}
    assert not {verdicts["BIAS-TRIAGE-race_ethnicity", tier] for tier in (1, 2)} & {"FAIL", "FLAG"}
    for finding in project.findings:
        assert list(finding["details"]["read_by"]) == [{1: "form", 2: "line"}[finding["tier"]]]
    assert cli.main(["verify", str(project.last)]) == 0


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
    with ModelServer(simulated_endpoint()) as server:
        yield server


def run_on(project: Project, server: ModelServer, *arguments: str) -> list[dict[str, Any]]:
    """The messages that a server of OpenAI's shape received of one item."""
    project.write("", MODELS.format(url=server.openai_url))
    (project.path / "bias.yaml").write_text(YAML, encoding="utf-8")
    items = ("--fairness-test=BIAS-LOAN-race_ethnicity-graded", "--fairness-endpoint=direct")
    project.run(*SUITE, *items, *arguments, apart=True)
    return [json.loads(request.body) for request in server.requests]


def test_what_a_provider_receives(project: Project, server: ModelServer) -> None:
    for body in run_on(project, server):
        system, request = body["messages"]
        assert system["content"].startswith("Sie prüfen Kreditanträge")
        assert 'Antworten Sie mit einem JSON-Objekt: "thinking"' in request["content"]
        schema = body["response_format"]["json_schema"]["schema"]
        assert schema["properties"]["thinking"]["description"].startswith("Ihre Gründe")
    (finding,) = project.findings
    assert set(finding["details"]["read_by"]) == {"form"}


def test_a_provider_that_refuses_the_schema_is_asked_for_a_german_line(
    project: Project, server: ModelServer
) -> None:
    refused = Fault(status=400, body={"error": {"message": "response_format is not supported"}})
    server.meet = lambda body: refused if "response_format" in json.loads(body) else None
    asked = [body["messages"][-1]["content"] for body in run_on(project, server)]
    assert sum("`ANTWORT: <eine ganze Zahl von 1 bis 10>`" in prompt for prompt in asked) > 100
    (finding,) = project.findings
    assert set(finding["details"]["read_by"]) == {"line"}
