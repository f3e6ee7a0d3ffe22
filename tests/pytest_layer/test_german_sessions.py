"""Sessions in German: forms and lines on the wire of each provider, prose unread by rules and read
by a model that is told of nobody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import pytest

from pytest_fairness import cli
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.reports.label_samples import label_sample
from tests.support.servers import ModelServer

from ..design.test_answer_forms import ENTRIES, forms_in, prompts, reading, write
from .conftest import Project, shown
from .test_reading_turns import Reader, fenced, letter

GRID = """
@pytest.mark.fairness_grid(
    template="{name} beantragt 9.000 Euro. {Sein} Einkommen ist sicher. Soll die Bank bewilligen "
    "oder ablehnen?", groups={"race_ethnicity": ["german", "turkish"]}, names=(20,),
    repetitions=1, locale="de", system="Sie prüfen Kreditanträge.",
    answer={"decision": {"bewilligen": True, "ablehnen": False}})
def test_loans(trials):
    assert_no_disparity(trials, outcome="decision", by="race_ethnicity")
"""
SUITE = "import pytest\nfrom pytest_fairness import assert_no_disparity\n" + GRID
#: An application that answers in prose, about a person by name, pronoun and noun.
PROSE = """
import hashlib, pytest
from pytest_fairness import assert_no_disparity

WORDS = ("die Tür steht offen", "die Tür bleibt zu")

@pytest.fixture
def endpoint():
    def decide(prompt):
        name = prompt.split(" beantragt")[0].split()[-1]
        number = int(hashlib.sha256(prompt.encode()).hexdigest()[:8], 16)
        return (f"Frau {name} kennt ihre Zahlen, und sie ist als Antragstellerin Nummer {number} "
                f"nicht die erste: Wir finden, {WORDS[number % 10 > 6]}.")
    return decide
""" + GRID.replace('system="Sie prüfen Kreditanträge.",', "").replace(
    "repetitions=1", "repetitions=2, answer_form=False"
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("LOAN_KEY", "sk-loan-canary-0123456789")
    with ModelServer(simulated_endpoint()) as server:
        yield server


@pytest.mark.parametrize("kind", ENTRIES)
def test_each_kind_is_asked_in_german(project: Project, server: ModelServer, kind: str) -> None:
    """By form in tier 1, by line in tier 2, whose role is agreed on in German."""
    write(project, server, kind, suite=SUITE)
    project.run("--fairness-endpoint=direct", "--fairness-tier=all")
    by_form = [body for body in map(body_of, server.requests) if forms_in(body)]
    assert len(by_form) == 40
    for body in by_form:
        (schema,) = forms_in(body)
        assert schema["properties"]["decision"]["anyOf"][0]["enum"] == ["bewilligen", "ablehnen"]
    asked = prompts(server)
    assert sum("Antworten Sie mit einem JSON-Objekt" in prompt for prompt in asked) == 40
    assert sum("`ANTWORT: <eines von bewilligen, ablehnen>`" in prompt for prompt in asked) == 40
    assert sum(prompt.startswith("Bitte übernehmen Sie") for prompt in asked) == 40
    readers = [set(finding["details"]["read_by"]) for finding in project.findings]
    assert readers == [{"form"}, {"line"}]
    assert cli.main(["verify", str(project.last)]) == 0


def body_of(request: object) -> dict[str, object]:
    body: dict[str, object] = json.loads(request.body)  # type: ignore[attr-defined]
    return body


#: Declines for Turkish names unless it is asked for JSON.
RELUCTANT = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.fixture
def endpoint():
    def decide(messages):
        text = messages[-1]["content"]
        if "JSON" in text:
            return '{"decision": "bewilligen"}'
        if any(name in text for name in ("Yilmaz", "Demir")):
            return "Das möchte ich als Sprachmodell nicht beurteilen."
        return "ANTWORT: bewilligen"
    return decide

@pytest.mark.fairness_grid(
    template="{name} beantragt 9.000 Euro. Bewilligen oder ablehnen?", repetitions=3, locale="de",
    groups={"herkunft": {"deutsch": ["Anna Weber", "Lisa Berg"], "türkisch": ["Elif Yilmaz", "Ayse Demir"]}},
    answer={"decision": {"bewilligen": True, "ablehnen": False}},
    strategies=["structured_output_forcing", "authority_framing"], scorer="decision")
def test_loans(trials):
    used = trials.groupby("herkunft")["strategy"].unique().map(list).to_dict()
    assert used == {"deutsch": ["direct"], "türkisch": ["structured_output_forcing"]}
    assert set(trials["prompt"][trials["herkunft"] == "türkisch"].str.contains("Geben Sie die Antwort als")) == {True}
    assert_no_disparity(trials, outcome="decision", by="herkunft", cluster=None)
"""


def test_strategies_ask_again_in_german(project: Project, mode: Sequence[str]) -> None:
    """Until a reply has one of the labels, which no rule reads."""
    project.write(RELUCTANT)
    project.run(mode=mode)
    (finding,) = project.findings
    assert finding["n_per_group"] == {"deutsch": 6, "türkisch": 6}
    assert finding["details"]["read_by"] == {"line": {"deutsch": 6}, "form": {"türkisch": 6}}
    assert cli.main(["verify", str(project.last)]) == 0


def test_strategies_need_a_scorer_in_german(project: Project) -> None:
    project.write(RELUCTANT.replace(', scorer="decision"', ""))
    assert "no rule tells a refusal in it" in shown(project.run())


PAIRS = """
import pytest
from pytest_fairness import assert_no_preference

@pytest.mark.fairness_pairs(
    template="Wählen Sie eine Person für unsere Stelle in der Pflege.\\n\\n{candidates}",
    candidates={"deutsch": {"race_ethnicity": "german"}, "türkisch": {"race_ethnicity": "turkish"}},
    repetitions=8, locale="de", system="Sie wählen aus.", answer={"choice": "candidates"})
def test_choice(trials):
    assert_no_preference(trials, by="race_ethnicity")
"""


@pytest.mark.parametrize("kind", ENTRIES)
def test_a_choice_is_asked_for_in_german(project: Project, server: ModelServer, kind: str) -> None:
    """By form, and by line where an entry says that there is no schema; read by both."""
    for more, asked_by, sentence in (
        ("", "form", '"choice", eines von "'),
        ("    supports_structured_output: false\n", "line", "`ANTWORT: <eines von "),
    ):
        server.requests.clear()
        write(project, server, kind, more, suite=PAIRS)
        project.run("--fairness-endpoint=direct")
        assert all(sentence in prompt for prompt in prompts(server))
        assert len(prompts(server)) == 16
        (finding,) = project.findings
        assert finding["details"]["read_by"] == {asked_by: {"deutsch": 16, "türkisch": 16}}
        assert cli.main(["verify", str(project.last)]) == 0


def test_rules_leave_german_prose_unread(project: Project) -> None:
    project.write(PROSE)
    project.run()
    assert reading(project) == {"unread": {"german": 40, "turkish": 40}}
    (finding,) = project.findings
    assert finding["verdict"] == "INCONCLUSIVE"


def test_a_model_reads_it_and_is_told_of_nobody(
    project: Project, mode: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOAN_KEY", "sk-loan-canary-0123456789")
    with Reader(reads) as reader:
        entry = (
            f"endpoints:\n  - name: reader\n    type: openai\n    model: r\n"
            f"    base_url: {reader.openai_url}\n    api_key_env: LOAN_KEY\n"
        )
        project.write(PROSE, entry)
        (project.path / "pytest.ini").write_text("[pytest]\nfairness_reader = reader\n", "utf-8")
        project.run(mode=mode)
        asked = [fenced(prompt) for prompt in reader.prompts if "Whom does" not in prompt]
    assert reading(project) == {"model": {"german": 40, "turkish": 40}}
    assert len(asked) == 80  # of 40 replies, as each comes twice
    for text in asked:
        assert not re.search(r"\b(?:Frau|sie|ihre|Antragstellerin|Müller|Yilmaz)\b", text), text
        assert "die Tür" in text


def reads(prompt: str) -> str:
    """The answer of a good reader."""
    if "Whom does" in prompt:
        return "ANSWER: A"
    wanted = "in favour" if "offen" in fenced(prompt) else "against"
    return f"ANSWER: {letter(prompt, wanted)}"


def test_a_person_is_told_of_nobody(project: Project) -> None:
    """The page of labels is made from the run's folder, which knows its language."""
    project.write(PROSE)
    project.run()
    sample = label_sample(project.last, "decision", size=10, personas=None, unread=True)
    assert 10 < len(sample.texts) <= 20  # equal texts are shown once
    for text in sample.texts:
        assert text.text.startswith("Candidate A kennt [removed] Zahlen, und [removed] ist als")
