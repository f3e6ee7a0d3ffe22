"""endpoints.yaml: the format of the specification, our keys beside it, and everything else refused by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.endpoints import (
    BUILT_IN_TYPES,
    Price,
    ThirdPartyConfig,
    create_endpoint,
    load_endpoints,
    named_endpoint,
    simulated_endpoint,
)
from pytest_fairness.endpoints.azure import AzureConfig
from pytest_fairness.endpoints.config import ALLOWED
from pytest_fairness.endpoints.litellm import LiteLLMConfig
from pytest_fairness.endpoints.openai import OpenAIConfig
from pytest_fairness.endpoints.prices import price_table
from pytest_fairness.endpoints.simulated import Planted
from pytest_fairness.errors import MissingExtra, UsageError

SPECIFICATION = """
endpoints:
  - name: "claude-sonnet"
    type: "anthropic"
    model: "claude-sonnet-4-5-20250929"
    base_url: "https://api.anthropic.com"
    supports_system_prompt: true
    default_temperature: 1.0
  - name: "gpt-4o"
    type: "openai"
    model: "gpt-4o"
    base_url: "https://api.openai.com/v1"
    supports_system_prompt: true
    default_temperature: 1.0
  - name: "qwen3-coder-local"
    type: "ollama"
    model: "qwen3-coder-30b"
    base_url: "http://localhost:11434"
    supports_system_prompt: true
    default_temperature: 0.7
"""

OURS = """
endpoints:
  - name: cheap
    type: openai
    model: my-model
    base_url: http://localhost:8000/v1
    api_key_env: MY_KEY
    via: litellm
    concurrency: 64
    default_parameters: {max_tokens: 200, seed: 7, temperature: 0.5}
    price: {input_per_million: 0.5, output_per_million: 2, per_call: 0.001}
  - name: cloud
    type: azure
    model: deployment
    base_url: https://acme.openai.azure.com
    api_version: 2024-10-21
  - name: other
    type: litellm
    model: gemini/gemini-2.0-flash
    supports_system_prompt: false
  - name: biased
    type: simulated
    bias: {race_ethnicity: {black: -0.8}}
    noise: 0.5
    seed: 3
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def to_file(text: str) -> Path:
        path = tmp_path / "endpoints.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return to_file


def test_the_format_of_the_specification_is_read_as_it_stands(write: Any) -> None:
    """§6.4 word for word."""
    found = load_endpoints(write(SPECIFICATION))
    assert list(found) == ["claude-sonnet", "gpt-4o", "qwen3-coder-local"]
    sonnet = found["claude-sonnet"]
    assert (sonnet.type, sonnet.model) == ("anthropic", "claude-sonnet-4-5-20250929")
    assert sonnet.base_url == "https://api.anthropic.com"
    assert sonnet.supports_system_prompt
    assert found["qwen3-coder-local"].default_parameters == {"temperature": 0.7}


def test_our_own_keys_are_read_too(write: Any) -> None:
    """Prices, key variables, parameters, routes, and what is planted in a simulated endpoint."""
    found = load_endpoints(write(OURS))
    cheap, cloud = found["cheap"], found["cloud"]
    assert isinstance(cheap, OpenAIConfig)
    assert isinstance(cloud, AzureConfig)
    assert cheap.price == Price(input_per_million=0.5, output_per_million=2.0, per_call=0.001)
    assert (cheap.api_key_env, cheap.via, cheap.concurrency) == ("MY_KEY", "litellm", 64)
    assert cheap.default_parameters == {"max_tokens": 200, "seed": 7, "temperature": 0.5}
    assert cloud.api_version == "2024-10-21"
    assert isinstance(found["other"], LiteLLMConfig)
    assert not found["other"].supports_system_prompt
    assert isinstance(found["biased"], Planted)
    assert (found["biased"].bias, found["biased"].seed) == ({"race_ethnicity": {"black": -0.8}}, 3)


ENTRY = "endpoints:\n  - name: x\n    type: openai\n    model: m\n"


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", 1, "expected a mapping, got nothing"),
        ("[]", 1, "expected a mapping, got a list"),
        ("endpoints:\n", 1, "endpoints: expected a list, got nothing"),
        ("endpoints: []\n", 1, "endpoints: expected a list of length >= 1"),
        ("endpints:\n  - name: x\n", 1, "did you mean 'endpoints'"),
        ("endpoints:\n  - just text\n", 2, "expected a mapping, got text"),
        ("endpoints:\n  - type: openai\n", 2, "missing key `name`"),
        ("endpoints:\n  - name: x\n", 2, "needs a type"),
        ("endpoints:\n  - name: x\n    type: openia\n", 3, "did you mean 'openai'"),
        ("endpoints:\n  - name: x\n    type: [openai]\n", 3, "needs a type"),
        ("endpoints:\n  - name: x\n    type: openai\n", 2, "missing key `model`"),
        ("endpoints:\n  - name: x\n    type: azure\n    model: m\n", 2, "missing key `base_url`"),
        ("endpoints:\n  - name: ../x\n    type: openai\n    model: m\n", 2, "must begin with a letter"),
        ("endpoints:\n  - name: 4\n    type: openai\n    model: m\n", 2, "name: expected text, got a whole number"),
        (ENTRY.replace("m\n", "' '\n"), 4, "model must be a text on one line"),
        (ENTRY + "    modle: m\n", 5, "did you mean 'model'"),
        (ENTRY + "    default_temprature: 1\n", 5, "did you mean 'default_temperature'"),
        (ENTRY + "    mock_response: hi\n", 5, "unknown key 'mock_response'"),
        (ENTRY + "    api_key: sk-123\n", 5, "name its variable with api_key_env"),
        (ENTRY + "    api_key_env: sk-proj-abcdefgh12345678\n", 5, "not the key itself"),
        (ENTRY + "    api_key_env: MY KEY\n", 5, "must be the name of an environment variable"),
        (ENTRY + "    default_parameters:\n      temprature: 1.0\n", 6, "did you mean 'temperature'"),
        (ENTRY + "    default_parameters:\n      mock_response: hi\n", 6, "unknown parameter 'mock_response'"),
        (ENTRY + "    default_parameters:\n      api_base: http://evil\n", 6, "unknown parameter 'api_base'"),
        (ENTRY + "    default_parameters:\n      temperature: hot\n", 6, "temperature must be a number"),
        (ENTRY + "    default_parameters: [1]\n", 5, "default_parameters: expected a mapping"),
        (ENTRY + "    default_temperature: 3.5\n", 5, "temperature must be a number from 0 to 2"),
        (ENTRY + "    default_temperature: 1\n    default_parameters: {temperature: 1}\n", 5, "stands here twice"),
        (ENTRY + "    supports_system_prompt: yes\n", 5, "supports_system_prompt: expected true or false, got text"),
        (ENTRY + "    concurrency: 0\n", 5, "concurrency: expected a whole number >= 1"),
        (ENTRY + "    server_error_attempts: 4\n", 5, "server_error_attempts: expected a whole number <= 3"),
        (ENTRY + "    base_url: ftp://h\n", 5, "must begin with http"),
        (ENTRY + "    base_url: https://u:secret@h/v1\n", 5, "holds a user or password"),
        (ENTRY + "    base_url: https://h/v1?key=secret\n", 5, "holds a query"),
        (ENTRY + "    base_url: https://h:99999/v1\n", 5, "base_url is no address"),
        (ENTRY + "    via: proxy\n", 5, "via: unknown value 'proxy' (known: litellm)"),
        (ENTRY + "    via: litellm\n    batch: true\n", 5, "batches are not sent through litellm"),
        (ENTRY + "    price: 3\n", 5, "price must hold"),
        (ENTRY + "    price: {input_per_million: 1}\n", 5, "needs input_per_million and output_per_million"),
        (ENTRY + "    price:\n      input: 1\n", 6, "unknown key 'input'"),
        (ENTRY + "    price:\n      per_call: -1\n", 6, "must be US dollars"),
        (ENTRY + "  - name: x\n    type: simulated\n", 5, "a second endpoint 'x'; the first is at"),
        ("endpoints:\n  - name: x\n    type: simulated\n    bias: {gender: 1}\n", 4, "bias: expected a mapping"),
        ("endpoints:\n  - name: x\n    type: simulated\n    model: m\n", 4, "unknown key 'model'"),
        (
            "endpoints:\n  - name: x\n    type: azure\n    model: m\n    base_url: http://h\n    api_version: 'a b'\n",
            6,
            "api_version must be like 2024-10-21",
        ),
        ("endpoints:\n  - name: x\n    type: litellm\n    model: gemini-2.0\n", 4, "litellm's name of the provider"),
        ("endpoints:\n  - name: x\n    type: litellm\n    model: ollama/x\n", 4, "use type: ollama"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(write: Any, text: str, line: int, why: str) -> None:
    """Everything unexpected is refused before the first call, at its line, with the mend."""
    path = write(text)
    with pytest.raises(UsageError) as refused:
        load_endpoints(path)
    assert str(refused.value).startswith(f"{path}:{line}: ")
    assert why in str(refused.value)
    assert "secret" not in str(refused.value).replace("api_key_env", "")


# ---------------------------------------------------------------- from configuration to endpoint


def test_a_named_endpoint_is_made_from_the_file(write: Any) -> None:
    """By its name; simulated needs no file; another unknown name is answered with those there are."""
    path = write(OURS)
    biased = named_endpoint("biased", path=path)
    expected = simulated_endpoint(bias={"race_ethnicity": {"black": -0.8}}, noise=0.5, seed=3)
    assert biased.identity() == expected.identity()
    assert named_endpoint("simulated", path=path).identity() == simulated_endpoint().identity()
    assert named_endpoint("simulated", path=Path("/nowhere/endpoints.yaml")).simulated
    with pytest.raises(UsageError, match="did you mean 'biased'"):
        named_endpoint("biasd", path=path)
    with pytest.raises(UsageError, match="describe the endpoint there"):
        named_endpoint("gpt-4o", path=Path("/nowhere/endpoints.yaml"))


def test_every_built_in_type_has_its_parameters() -> None:
    """A pipeline has none of its own, its steps have."""
    assert set(ALLOWED) == set(BUILT_IN_TYPES) - {"pipeline"} | {"callable"}


def test_direct_endpoints_know_their_price_and_their_identity(write: Any) -> None:
    """The listed price only at the provider's own address; the identity holds model, address and parameters."""
    configs = load_endpoints(write(SPECIFICATION))
    gpt = create_endpoint(configs["gpt-4o"], concurrency=5)
    assert gpt.price == Price(input_per_million=2.5, output_per_million=10.0)
    assert gpt.identity() == {
        "type": "openai",
        "model": "gpt-4o",
        "base_url": "https://api.openai.com/v1",
        "parameters": {"temperature": 1.0},
    }
    for url in ("https://gateway.example/v1", "https://notopenai.com/v1"):
        other = create_endpoint({"name": "gpt-4o", "type": "openai", "model": "gpt-4o", "base_url": url})
        assert other.price is None
        assert other.identity() != gpt.identity()
    sonnet = create_endpoint(configs["claude-sonnet"])
    assert sonnet.price == price_table().find("anthropic", "claude-sonnet-4-5-20250929")
    local = create_endpoint(configs["qwen3-coder-local"])
    assert local.price == Price(input_per_million=0.0, output_per_million=0.0)


def test_types_of_third_parties_are_taken_with_their_options(write: Any) -> None:
    """A hook's mapping of type to factory is all that a new type needs."""
    path = write("endpoints:\n  - name: x\n    type: mine\n    model: m\n    options: {depth: 3}\n")
    seen: list[ThirdPartyConfig] = []

    def factory(config: ThirdPartyConfig) -> Any:
        seen.append(config)
        return simulated_endpoint(name=config.name)

    endpoint = named_endpoint("x", path=path, types={"mine": factory}, concurrency=7)
    assert endpoint.name == "x"
    assert (seen[0].options, seen[0].model, seen[0].concurrency) == ({"depth": 3}, "m", 7)
    with pytest.raises(UsageError, match="unknown type 'mine'"):
        load_endpoints(path)
    with pytest.raises(UsageError, match="returned str, which is no Endpoint"):
        named_endpoint("x", path=path, types={"mine": lambda _: "x"})


def test_an_entry_may_be_written_in_python() -> None:
    """A mapping, checked as one of a file; an entry that was read already."""
    entry = {"name": "x", "type": "openai", "model": "m", "price": {"per_call": 1}}
    assert create_endpoint(entry).price == Price(input_per_million=0, output_per_million=0, per_call=1)
    assert create_endpoint(OpenAIConfig(name="x", type="openai", model="m")).type == "openai"
    with pytest.raises(UsageError, match="endpoint 'x': unknown key 'modle'; did you mean 'model'"):
        create_endpoint({"name": "x", "type": "openai", "modle": "m"})
    with pytest.raises(UsageError, match="endpoint 'x': via: "):
        create_endpoint({**entry, "via": "proxy"})


def test_a_missing_extra_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without litellm, what needs it says so when it is made, not on the first question; the rest does not mind."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for entry in ({"type": "litellm", "model": "groq/m"}, {"type": "openai", "model": "m", "via": "litellm"}):
        with pytest.raises(MissingExtra, match=r"pip install 'pytest-fairness\[llm\]'"):
            create_endpoint({"name": "x", **entry})
    assert create_endpoint({"name": "x", "type": "anthropic", "model": "m"}).type == "anthropic"


def test_compromised_releases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not even imported."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: True)
    monkeypatch.setattr("importlib.metadata.version", lambda _: "1.82.8")
    with pytest.raises(UsageError, match="published by an attacker"):
        create_endpoint({"name": "x", "type": "litellm", "model": "groq/m"})


# ---------------------------------------------------------------- parameters and prices


@pytest.mark.parametrize(
    "name", ["temprature", "mock_response", "callbacks", "fallbacks", "num_retries", "drop_params"]
)
def test_unknown_parameters_are_refused_for_every_type(name: str) -> None:
    """By allow-list: also those that litellm would have understood all too well."""
    for kind in ALLOWED:
        with pytest.raises(UsageError, match=f"'x': unknown parameter '{name}'"):
            ThirdPartyConfig(name="x", type=kind, default_parameters={name: 1})
    ThirdPartyConfig(name="x", type="a-third-party's", default_parameters={name: 1})


@pytest.mark.parametrize(
    "parameters",
    [{"temperature": -1}, {"temperature": True}, {"top_p": 2}, {"max_tokens": 0}, {"max_tokens": 1.5}, {"seed": "x"}],
)
def test_values_that_no_model_takes_are_refused(parameters: dict[str, Any]) -> None:
    """Ranges and types of the usual parameters."""
    with pytest.raises(UsageError, match=next(iter(parameters))):
        OpenAIConfig(name="x", type="openai", model="m", default_parameters=parameters)


def test_the_price_table_is_versioned_hashed_and_sourced() -> None:
    """Exact names only; what is not in it is unknown, never guessed."""
    table = price_table()
    assert table.version >= 1
    assert len(table.sha256) == 64
    assert table.source
    assert table.as_of
    assert table.find("openai", "gpt-4o") == Price(input_per_million=2.5, output_per_million=10.0)
    assert table.find("openai", "gpt-4o-mini-new") is None
    assert table.find("nobody", "x") is None
    assert table.find("anthropic", "claude-sonnet-4-5-20250929") is not None


def test_configurations_hold_no_secret(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment is in no configuration, identity or representation."""
    monkeypatch.setenv("MY_KEY", "canary-value-123456")
    config = load_endpoints(write(OURS.replace("    via: litellm\n", "")))["cheap"]
    endpoint = create_endpoint(config)
    assert "canary" not in repr(config) + repr(vars(endpoint)) + json.dumps(endpoint.identity())
