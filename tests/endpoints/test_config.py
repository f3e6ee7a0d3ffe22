"""endpoints.yaml: the format of the specification, our keys beside it, and everything else refused
by line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness import documents
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

DATA: Any = documents.open_document(Path(__file__).with_name("entries.yaml")).data
SPECIFICATION, OURS = DATA["bases"]["specification"], DATA["bases"]["ours"]


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


@pytest.mark.parametrize("case", DATA["cases"], ids=range(len(DATA["cases"])))
def test_an_entry_that_makes_no_sense_is_refused_with_its_line(
    write: Any, case: dict[str, Any]
) -> None:
    """Before the first call, with the place and the mend, and without repeating what may be a key."""
    base, old = DATA["bases"].get(case.get("base"), ""), case.get("old", "")
    assert old in base
    path = write(case.get("text", base.replace(old, case.get("new", ""), 1) + case.get("add", "")))
    with pytest.raises(UsageError) as caught:
        list(map(create_endpoint, load_endpoints(path).values()))
    message = str(caught.value)
    assert case["why"] in message
    assert "line" not in case or message.startswith(f"{path}:{case['line']}: ")
    for secret in ("sk-123456789012345678", "sk-proj-abcdefgh12345678", "secret@", "key=secret"):
        assert secret not in message


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


def test_direct_endpoints_know_their_price_and_their_identity(write: Any) -> None:
    """The listed price only at the provider's own address; the identity holds model, address and
    parameters.
    """
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
        other = create_endpoint(
            {"name": "gpt-4o", "type": "openai", "model": "gpt-4o", "base_url": url}
        )
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
    assert create_endpoint(entry).price == Price(
        input_per_million=0, output_per_million=0, per_call=1
    )
    assert create_endpoint(OpenAIConfig(name="x", type="openai", model="m")).type == "openai"
    with pytest.raises(UsageError, match="endpoint 'x': unknown key 'modle'; did you mean 'model'"):
        create_endpoint({"name": "x", "type": "openai", "modle": "m"})
    with pytest.raises(UsageError, match="endpoint 'x': via: "):
        create_endpoint({**entry, "via": "proxy"})


def test_without_litellm_or_with_a_compromised_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs it says so when it is made, not on the first question, and imports nothing; the
    rest does not mind.
    """
    needing = (
        {"type": "litellm", "model": "groq/m"},
        {"type": "openai", "model": "m", "via": "litellm"},
    )
    for found, version, error, why in (
        (None, "1", MissingExtra, r"pip install 'pytest-fairness\[llm\]'"),
        (True, "1.82.8", UsageError, "published by an attacker"),
    ):
        monkeypatch.setattr("importlib.util.find_spec", lambda _, found=found: found)
        monkeypatch.setattr("importlib.metadata.version", lambda _, version=version: version)
        for entry in needing:
            with pytest.raises(error, match=why):
                create_endpoint({"name": "x", **entry})
    monkeypatch.undo()
    assert create_endpoint({"name": "x", "type": "anthropic", "model": "m"}).type == "anthropic"


# ---------------------------------------------------------------- parameters and prices


def test_unknown_parameters_are_refused_for_every_type() -> None:
    """By allow-list: also those that litellm would have understood all too well. A pipeline has
    none of its own.
    """
    assert set(ALLOWED) == set(BUILT_IN_TYPES) - {"pipeline"} | {"callable"}
    for name in (
        "temprature",
        "mock_response",
        "callbacks",
        "fallbacks",
        "num_retries",
        "drop_params",
    ):
        for kind in ALLOWED:
            with pytest.raises(UsageError, match=f"'x': unknown parameter '{name}'"):
                ThirdPartyConfig(name="x", type=kind, default_parameters={name: 1})
        ThirdPartyConfig(name="x", type="a-third-party's", default_parameters={name: 1})


def test_values_that_no_model_takes_are_refused() -> None:
    """Ranges and types of the usual parameters."""
    values: dict[str, Any] = {
        "temperature": (-1, True),
        "top_p": (2,),
        "max_tokens": (0, 1.5),
        "seed": ("x",),
    }
    for name, wrong in values.items():
        for value in wrong:
            with pytest.raises(UsageError, match=f"{name} must be a"):
                OpenAIConfig(name="x", type="openai", model="m", default_parameters={name: value})


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
