"""What a test accepts as an answer: the schema, and who is sent it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_fairness.design.structured_answers import structured_answer
from pytest_fairness.endpoints.config import Misplaced
from pytest_fairness.endpoints.openai import OpenAIConfig
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.errors import UsageError
from tests.support.servers import ModelServer

from ..pytest_layer.conftest import MODELS, Project, project

__all__ = ["project"]

SUITE = """
import pytest

@pytest.mark.fairness_grid(
    template="Rate {name} from 1 to 10.", groups={"gender": ["female", "male"]}, names=2, repetitions=1,
    system="You rate.", answer={"rating": (1, 10)})
def test_rating(trials, tier):
    assert trials["reply"].notna().all()
"""


def schema(found: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = found["response_format"]["json_schema"]["schema"]
    assert described["additionalProperties"] is False
    (key,) = described["required"]
    return {key: described["properties"][key]}


def test_schemas() -> None:
    labels = {"decision": {"type": "string", "enum": ["approve", "deny"]}}
    assert schema(structured_answer({"decision": ["approve", "deny"]})) == labels
    assert schema(structured_answer({"level": (1, 3)})) == {
        "level": {"type": "integer", "enum": [1, 2, 3]}
    }
    assert structured_answer(None) == {}


@pytest.mark.parametrize(
    "given", ["yes", {}, {"a": ["x"]}, {"a": ["x", "x"]}, {"a": (3, 1)}, {"a": ["x", 1]}, {"a": 7}, {"a": "ab"},
              {1: ["x", "y"]}, {"a": (0, 5000)}, {"a": ["x", "y"], "b": ["x", "y"]}],
)  # fmt: skip
def test_what_is_no_answer(given: object) -> None:
    with pytest.raises(UsageError, match="answer="):
        structured_answer(given)


def test_an_endpoint_that_takes_none_says_so() -> None:
    from pytest_fairness.endpoints.anthropic import AnthropicConfig

    assert OpenAIConfig(
        name="a", type="openai", model="m", supports_structured_output=True
    ).supports_structured_output
    with pytest.raises(Misplaced, match="response_format"):
        AnthropicConfig(name="a", type="anthropic", model="m", supports_structured_output=True)


@pytest.mark.parametrize("kind", ["openai", "ollama"])
@pytest.mark.parametrize("takes", [True, False])
def test_who_is_sent_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, kind: str, takes: bool
) -> None:
    """Tier 1 of an endpoint that takes it; neither tier 2 nor another endpoint. A replay asks
    nothing and finds all.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
    with ModelServer(simulated_endpoint()) as server:
        url = server.openai_url if kind == "openai" else server.url
        key = (
            MODELS
            if kind == "openai"
            else MODELS.replace('    api_key_env: "OPENAI_API_KEY"\n', "")
        )
        entry = key.replace('"openai"', f'"{kind}"').format(url=url)
        project.write(SUITE, entry + f"    supports_structured_output: {str(takes).lower()}\n")
        project.run("--fairness-endpoint=direct", "--fairness-tier=all").assert_outcomes(passed=2)
        bodies = [json.loads(one.body) for one in server.requests]
        structured = [body for body in bodies if "response_format" in body or "format" in body]
        assert len(structured) == (4 if takes else 0)
        assert all(body["messages"][0]["role"] == "system" for body in structured)
        if takes and kind == "ollama":
            assert structured[0]["format"]["properties"]["rating"]["enum"][-1] == 10
        asked = len(server.requests)
        replay = project.run(
            f"--fairness-replay={project.last}", "--fairness-tier=all", "--fairness-endpoint=direct"
        )
        replay.assert_outcomes(passed=2)
        assert len(server.requests) == asked
