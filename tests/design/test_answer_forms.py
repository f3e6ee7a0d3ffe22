"""The form of an answer: its schema and its sentence, who is sent which, and what is read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from pytest_fairness import cli
from pytest_fairness.design.answer_forms import answer_form
from pytest_fairness.design.grid import expand_grid
from pytest_fairness.endpoints.anthropic import AnthropicConfig
from pytest_fairness.endpoints.application import ApplicationConfig
from pytest_fairness.endpoints.openai import OpenAIConfig
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Elicitation
from tests.support.servers import Fault, ModelServer

from ..pytest_layer.conftest import Project, project, shown

__all__ = ["project"]

SUITE = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness_grid(
    template="{name} asks for a loan of 9,000 dollars. Approve or deny?", system="You decide.",
    groups={"gender": ["female", "male"]}, names=(20,), repetitions=1,
    answer={"decision": ["approve", "deny"]})
def test_loans(trials):
    assert_no_disparity(trials, outcome="decision", by="gender")
"""
#: A rate is judged from 50 trials a group on.
ENOUGH = SUITE.replace("repetitions=1", "repetitions=3")
ENTRIES = {
    "openai": "    base_url: {openai}\n",
    "anthropic": "    base_url: {url}\n",
    "ollama": "    base_url: {url}\n",
    "azure": "    base_url: {url}\n    api_version: '2024-10-21'\n",
}
LINE = "End with a line `ANSWER: <one of approve, deny>`"
OBJECT = 'Answer with a JSON object: "thinking"'


def test_the_schema() -> None:
    """There is room to think before the answer, and to decline."""
    form = answer_form({"decision": ["approve", "deny"]})
    assert form is not None
    described: Any = form.response_format["response_format"]
    schema = described["json_schema"]["schema"]
    assert list(schema["properties"]) == ["thinking", "no_answer", "reason", "decision"]
    assert schema["required"] == list(schema["properties"])
    assert schema["additionalProperties"] is False
    assert schema["properties"]["decision"]["anyOf"] == [
        {"type": "string", "enum": ["approve", "deny"]},
        {"type": "null"},
    ]
    levels = answer_form({"level": (1, 3)})
    assert levels is not None
    assert levels.answers == ("1", "2", "3")
    described = levels.response_format["response_format"]
    properties = described["json_schema"]["schema"]["properties"]
    assert properties["level"]["anyOf"][0] == {"type": "integer", "enum": [1, 2, 3]}
    assert answer_form(None) is None


def test_the_sentence() -> None:
    """It stands in its slot, or at the end; asked as users ask, there is none."""
    form = answer_form({"decision": ["approve", "deny"]})
    assert form is not None
    role, request = form.asked_in(("You decide.", "Well?"), Elicitation.LINE)
    assert role == "You decide."
    assert request.startswith(f"Well?\n\n{LINE}; if you decline")
    assert form.asked_in(("{answer} Well?",), Elicitation.FORM)[0].startswith(OBJECT)
    assert form.asked_in(("Well? {answer}",), Elicitation.PLAIN) == ("Well?",)
    assert '"decision", one of "approve", "deny"' in form.sentence(Elicitation.FORM)
    levels = answer_form({"level": (1, 3)})
    assert levels is not None
    assert "ANSWER: <a whole number from 1 to 3>" in levels.sentence(Elicitation.LINE)


@pytest.mark.parametrize(
    "given",
    [
        "yes", {}, {"a": ["x"]}, {"a": ["x", "x"]}, {"a": (3, 1)}, {"a": ["x", 1]}, {"a": 7},
        {"a": "ab"}, {1: ["x", "y"]}, {"a": (0, 5000)}, {"a": ["x", "y"], "b": ["x", "y"]},
        {"no_answer": ["x", "y"]},
    ],
)  # fmt: skip
def test_what_is_no_answer(given: object) -> None:
    with pytest.raises(UsageError, match="answer="):
        answer_form(given)


def test_who_takes_a_schema() -> None:
    """Models do, unless their entry says otherwise; an application where its entry says so."""
    assert OpenAIConfig(name="a", type="openai", model="m").supports_structured_output
    assert AnthropicConfig(name="a", type="anthropic", model="m").supports_structured_output
    old = OpenAIConfig(name="a", type="openai", model="m", supports_structured_output=False)
    assert old.supports_structured_output is False
    application = ApplicationConfig(
        name="a",
        type="http",
        url="http://127.0.0.1:1",
        request={"text": "{prompt}"},
        reply="$.text",
    )
    assert application.supports_structured_output is False


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("LOAN_KEY", "sk-loan-canary-0123456789")
    with ModelServer(simulated_endpoint()) as server:
        yield server


def write(
    project: Project, server: ModelServer, kind: str, more: str = "", suite: str = SUITE
) -> None:
    entry = (
        f"endpoints:\n  - name: direct\n    type: {kind}\n    model: m\n"
        f"{ENTRIES[kind].format(url=server.url, openai=server.openai_url)}"
        f"    api_key_env: LOAN_KEY\n{more}"
    )
    if kind == "ollama":
        entry = entry.replace("    api_key_env: LOAN_KEY\n", "")
    project.write(suite, entry)


def write_two(project: Project, server: ModelServer, suite: str) -> None:
    """A project with two endpoints: ``direct``, the model m, and ``other``, the model n."""
    write(project, server, "openai", suite=suite)
    entries = project.path / "endpoints.yaml"
    (entry,) = entries.read_text("utf-8").split("endpoints:\n")[1:]
    other = entry.replace("direct", "other").replace("model: m", "model: n")
    entries.write_text(f"endpoints:\n{entry}{other}", "utf-8")


def model_of(body: str) -> str:
    return str(json.loads(body)["model"])


def forms_in(body: dict[str, Any]) -> list[Any]:
    """The schema in a request, as each provider calls it."""
    described = [
        body.get("response_format", {}).get("json_schema", {}).get("schema"),
        body.get("format"),
        body.get("output_config", {}).get("format", {}).get("schema"),
    ]
    return [schema for schema in described if schema]


def prompts(server: ModelServer, model: str | None = None) -> list[str]:
    """What was asked, of *model* alone where it is given."""
    requests = server.requests
    if model is not None:
        requests = [request for request in requests if model_of(request.body) == model]
    return [request.prompt for request in requests]


def reading(project: Project) -> dict[str, Any]:
    (finding,) = project.findings
    return finding["details"]["read_by"]


@pytest.mark.parametrize("kind", ENTRIES)
def test_each_kind_is_asked_by_form(project: Project, server: ModelServer, kind: str) -> None:
    write(project, server, kind)
    project.run("--fairness-endpoint=direct")
    bodies = [json.loads(request.body) for request in server.requests]
    assert len(bodies) == 40
    for body in bodies:
        (schema,) = forms_in(body)
        assert list(schema["properties"])[-1] == "decision"
    assert all(OBJECT in prompt for prompt in prompts(server))
    (finding,) = project.findings
    assert any(note.startswith("asked by form") for note in finding["notes"])
    assert finding["n_per_group"] == {"female": 20, "male": 20}
    assert reading(project) == {"form": {"female": 20, "male": 20}}
    assert cli.main(["verify", str(project.last)]) == 0


@pytest.mark.parametrize("kind", ENTRIES)
def test_an_answer_line_where_there_is_no_schema(
    project: Project, server: ModelServer, kind: str
) -> None:
    """By the entry of the endpoint, and in tier 2, which is conversation only."""
    write(project, server, kind, "    supports_structured_output: false\n")
    project.run("--fairness-endpoint=direct", "--fairness-tier=all")
    assert sum(LINE in prompt for prompt in prompts(server)) == 2 * 40
    assert not any(forms_in(json.loads(request.body)) for request in server.requests)
    assert len(project.findings) == 2
    for finding in project.findings:
        assert any(note.startswith("asked by line") for note in finding["notes"])
        assert finding["details"]["read_by"] == {"line": {"female": 20, "male": 20}}
    assert cli.main(["verify", str(project.last)]) == 0


def test_asked_as_users_ask(project: Project, server: ModelServer) -> None:
    suite = SUITE.replace('answer={"decision"', 'answer_form=False, answer={"decision"')
    write(project, server, "openai", suite=suite)
    project.run("--fairness-endpoint=direct")
    assert all(prompt.endswith("Approve or deny?") for prompt in prompts(server))
    assert set(reading(project)) == {"rule"}


REFUSED = Fault(status=400, body={"error": {"message": "response_format is not supported"}})


def prose(body: str) -> Fault | None:
    """The fault of a provider that takes a schema and answers in prose; its line is as asked."""
    prompt = json.loads(body)["messages"][-1]["content"]
    text = "I would say that this one is fine.\nANSWER: approve"
    if OBJECT in prompt:
        text = "I would say that this one is fine."
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Fault(body={"model": "m", "choices": [choice]})


def refuses_schema(body: str) -> Fault | None:
    return REFUSED if "response_format" in json.loads(body) else None


#: Two endpoints without forms, their models, and why each is asked for a line.
WITHOUT_FORMS = {
    "direct": ("m", "refuses the schema"),
    "other": ("n", "takes the schema and answers in prose"),
}


def test_a_provider_without_forms_is_asked_for_a_line(
    project: Project, server: ModelServer, mode: Sequence[str]
) -> None:
    """One trial shows it, whatever processes ask; the run goes on by line and says so; resumed and
    replayed, it asks nothing more.
    """
    server.meet = lambda body: {"m": refuses_schema, "n": prose}[model_of(body)](body)
    again = SUITE[SUITE.index("@pytest") :].replace("test_loans", "test_2")
    write_two(project, server, f"{SUITE}\n{again}")
    result = project.run("--fairness-endpoint=direct,other", mode=mode)
    said = "is asked for an answer line in the place of a JSON schema, for the whole run: it"
    for endpoint, (model, why) in WITHOUT_FORMS.items():
        assert f"endpoint {endpoint!r} {said} {why}" in shown(result)
        by_form = [prompt for prompt in prompts(server, model) if OBJECT in prompt]
        by_line = [prompt for prompt in prompts(server, model) if LINE in prompt]
        assert (len(by_form), len(by_line)) == (1, 40)
        findings = [one for one in project.findings if endpoint in one["model_endpoint"]]
        assert len(findings) == 2
        for finding in findings:
            assert finding["n_per_group"] == {"female": 20, "male": 20}
            assert finding["details"]["read_by"] == {"line": {"female": 20, "male": 20}}
            assert any(why in note for note in finding["notes"])
    assert cli.main(["verify", str(project.last)]) == 0
    asked = len(server.requests)
    for further in ("--fairness-resume=last", "--fairness-replay=last"):
        project.run("--fairness-endpoint=direct,other", further, mode=mode)
        assert len(server.requests) == asked
        assert [set(finding["details"]["read_by"]) for finding in project.findings] == [
            {"line"}
        ] * 4


def test_a_reply_in_prose_later_is_read_by_rules(project: Project, server: ModelServer) -> None:
    """One by one, where the first trial had taken the form; what no way reads is unread."""
    write(project, server, "openai")
    choice = {"message": {"role": "assistant", "content": "Approved."}, "finish_reason": "stop"}
    odd = {"message": {"role": "assistant", "content": "ANSWER: perhaps"}, "finish_reason": "stop"}
    server.then(
        None,
        Fault(body={"model": "m", "choices": [choice]}),
        Fault(body={"model": "m", "choices": [odd]}),
    )
    project.run("--fairness-endpoint=direct", "-o", "fairness_concurrency=1")
    counts = {way: sum(groups.values()) for way, groups in reading(project).items()}
    assert counts == {"form": 38, "rule": 1, "unread": 1}


def test_declining_by_the_form_is_a_refusal(project: Project, server: ModelServer) -> None:
    declined = {"thinking": "No.", "no_answer": True, "reason": "It is unfair.", "decision": None}
    content = {"role": "assistant", "content": json.dumps(declined)}
    choices = [{"message": content, "finish_reason": "stop"}]
    server.then(*[Fault(body={"model": "m", "choices": choices})] * 10)
    write(project, server, "openai")
    project.run("--fairness-endpoint=direct", "-o", "fairness_concurrency=1")
    (finding,) = project.findings
    assert sum(group["refused"] for group in finding["group_results"]) == 10


def test_a_slot_for_the_sentence(project: Project, server: ModelServer) -> None:
    """Without ``answer=`` it is a slot like any other, which nothing fills."""
    suite = ENOUGH.replace("{name} asks", "{answer} {name} asks")
    write(project, server, "openai", suite=suite)
    project.run("--fairness-endpoint=direct").assert_outcomes(passed=1)
    assert all(prompt.startswith(OBJECT) for prompt in prompts(server))
    write(
        project,
        server,
        "openai",
        suite=suite.replace('answer={"decision": ["approve", "deny"]}', ""),
    )
    result = project.run("--fairness-endpoint=direct")
    assert "answer" in shown(result)
    assert result.ret != 0


def test_shards_share_what_is_asked_by_form(project: Project, server: ModelServer) -> None:
    """They are dealt out before anybody knows how an endpoint is asked: evenly, and each once."""
    write(project, server, "openai")
    asked = []
    for shard in ("1/2", "2/2"):
        project.run("--fairness-endpoint=direct", f"--fairness-shard={shard}")
        asked.append(len(server.requests) - sum(asked))
    assert asked == [20, 20]
    assert len(set(prompts(server))) == 40


def test_each_of_several_endpoints_is_tried_by_its_form(
    project: Project, server: ModelServer
) -> None:
    """What is asked first of each is a trial of the design: none is asked for nothing, and no slot is
    left in a prompt.
    """
    suite = SUITE.replace("Approve or deny?", "Approve or deny? {answer}")
    write_two(project, server, suite)
    project.run("--fairness-endpoint=direct,other")
    assert len(server.requests) == 2 * 40
    assert not any("{answer}" in prompt for prompt in prompts(server))


# ---------------------------------------------------------------- in prose

IN_PROSE = ENOUGH.replace("Approve or deny?", "Approve or deny? {answer}").replace(
    'answer={"decision"', 'answer_in_prose="Reply with one word.", answer={"decision"'
)


def test_a_form_stands_in_the_place_of_the_prose(project: Project, server: ModelServer) -> None:
    """Two sentences about the shape of one reply would contradict each other."""
    write(project, server, "openai", suite=IN_PROSE)
    project.run("--fairness-endpoint=direct").assert_outcomes(passed=1)
    assert all(f"Approve or deny? {OBJECT}" in prompt for prompt in prompts(server))
    assert not any("one word" in prompt for prompt in prompts(server))


def test_the_prose_is_asked_where_no_form_is(project: Project, server: ModelServer) -> None:
    suite = IN_PROSE.replace("answer_in_prose", "answer_form=False, answer_in_prose")
    write(project, server, "openai", suite=suite)
    project.run("--fairness-endpoint=direct")
    assert all(prompt.endswith("deny? Reply with one word.") for prompt in prompts(server))


def test_strategies_ask_in_prose_but_where_they_have_a_form_of_their_own(
    project: Project, server: ModelServer
) -> None:
    """What is called the answer there is the key of the form."""
    suite = IN_PROSE.replace("answer_in_prose", "strategies='all', answer_in_prose")
    suite = suite.replace("names=(20,), repetitions=3", "names=2, repetitions=1")
    write(project, server, "openai", suite=suite)
    refusal = "I'm sorry, but I can't help with that request."
    choice = {"message": {"role": "assistant", "content": refusal}, "finish_reason": "stop"}
    server.always = Fault(body={"model": "m", "choices": [choice]})
    project.run("--fairness-endpoint=direct", "--fairness-tier=2")
    asked = [prompt for prompt in prompts(server) if "Approve or deny?" in prompt]
    by_key = [prompt for prompt in asked if '{"decision": <your answer>}' in prompt]
    beside_another = [prompt for prompt in asked if "Profile A:" in prompt]
    assert by_key
    assert beside_another
    assert not any("{answer}" in prompt for prompt in asked)
    assert {prompt.count("Reply with one word.") for prompt in by_key} == {0}
    others = [prompt for prompt in asked if prompt not in by_key]
    assert {prompt.count("Reply with one word.") for prompt in others} == {1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": None}, "so it needs answer="),
        ({"template": "{name} asks. Approve or deny?"}, "write {answer} where it belongs"),
        ({"answer_in_prose": ["x"]}, "give a text"),
        ({"answer_in_prose": "Say {answer}."}, "give a text, without {answer}"),
    ],
)
def test_prose_without_a_place(change: dict[str, object], message: str) -> None:
    design = {
        "template": "{name} asks. Approve or deny? {answer}",
        "groups": {"gender": ["female", "male"]},
        "answer": {"decision": ["approve", "deny"]},
        "answer_in_prose": "Reply with one word.",
    }
    with pytest.raises(UsageError, match=re.escape(message)):
        expand_grid(**{**design, **change})
