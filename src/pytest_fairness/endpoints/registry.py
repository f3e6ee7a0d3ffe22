"""From a configuration to an endpoint: type → factory. A new type is one adapter and one row.

Rows of third parties come from the hook ``pytest_fairness_endpoint_types``: a mapping from the type's name to
a function that takes an :class:`~pytest_fairness.endpoints.config.EndpointConfig` and returns an Endpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from pytest_fairness.endpoints.batch_api import AnthropicBatches, AzureBatches, BatchApi, OpenAIBatches
from pytest_fairness.endpoints.callable_endpoint import callable_endpoint
from pytest_fairness.endpoints.config import EndpointConfig, load_endpoints
from pytest_fairness.endpoints.parameters import unknown
from pytest_fairness.endpoints.prices import price_table
from pytest_fairness.endpoints.protocol import Endpoint, Limits, Price
from pytest_fairness.endpoints.simulated import SimulatedEndpoint, planted
from pytest_fairness.errors import UsageError

if TYPE_CHECKING:
    from pytest_fairness.endpoints.litellm_endpoint import LiteLLMEndpoint
    from pytest_fairness.endpoints.openai_compatible import OpenAICompatibleEndpoint

Factory: TypeAlias = Callable[[EndpointConfig], Endpoint]

SIMULATED = "simulated"
_CONCURRENCY = 16
_OPENAI_URL = "https://api.openai.com/v1"
#: What every model of theirs can write, and far more than our prompts ask for.
_ANTHROPIC_MAX_TOKENS = 4096
_ANTHROPIC_URL = "https://api.anthropic.com"
_OLLAMA_URL = "http://localhost:11434"


def simulated_type(config: EndpointConfig) -> Endpoint:
    """A simulated endpoint, with what is planted in it."""
    return SimulatedEndpoint(planted(config.options), name=config.name, default_parameters=config.default_parameters)


def openai_type(config: EndpointConfig) -> Endpoint:
    """OpenAI or any server that speaks its format, directly; through litellm if the entry says ``via: litellm``."""
    base_url = config.base_url or _OPENAI_URL
    official = _host_ends(base_url, "openai.com")
    config = replace(
        config,
        base_url=base_url,
        api_key_env=config.api_key_env or ("OPENAI_API_KEY" if official else None),
        price=config.price or _listed(config, "openai", official=official),
    )
    if config.via == "litellm":
        from pytest_fairness.endpoints.litellm_endpoint import LiteLLMEndpoint
        from pytest_fairness.endpoints.litellm_routes import OPENAI

        return _batched(LiteLLMEndpoint(config, OPENAI), config, OpenAIBatches, base_url)
    from pytest_fairness.endpoints.openai_compatible import OpenAICompatibleEndpoint

    return _batched(OpenAICompatibleEndpoint(**_direct(config)), config, OpenAIBatches, base_url)


def _batched(
    endpoint: OpenAICompatibleEndpoint | LiteLLMEndpoint,
    config: EndpointConfig,
    api: type[BatchApi],
    base_url: str,
    query: str = "",
) -> Endpoint:
    """*endpoint*, asked through *api* and at the price of batches where its entry says so."""
    if config.batch is not None:
        endpoint.batches = api(
            endpoint, base_url=base_url, options=config.batch, api_key_env=config.api_key_env, query=query
        )
        endpoint.price = config.batch.price(endpoint.price)
    return endpoint


def ollama_type(config: EndpointConfig) -> Endpoint:
    """Ollama's own chat, directly; models that run on one's own machine cost nothing a call."""
    from pytest_fairness.endpoints.ollama import OllamaEndpoint

    base_url = config.base_url or _OLLAMA_URL
    free = Price(input_per_million=0.0, output_per_million=0.0)
    local = urlsplit(base_url).hostname in ("localhost", "127.0.0.1", "::1")
    return OllamaEndpoint(
        **_direct(replace(config, base_url=base_url, price=config.price or (free if local else None)))
    )


def anthropic_type(config: EndpointConfig) -> Endpoint:
    """Anthropic's Messages API, through litellm."""
    from pytest_fairness.endpoints.litellm_endpoint import LiteLLMEndpoint
    from pytest_fairness.endpoints.litellm_routes import ANTHROPIC

    base_url = config.base_url or _ANTHROPIC_URL
    official = _host_ends(base_url, "anthropic.com")
    parameters = dict(config.default_parameters)
    if not parameters.keys() & {"max_tokens", "thinking", "reasoning_effort"}:
        # The API wants a number. litellm would choose one, another with each of its versions, and not tell.
        parameters["max_tokens"] = _ANTHROPIC_MAX_TOKENS
    config = replace(
        config,
        base_url=base_url,
        default_parameters=parameters,
        api_key_env=config.api_key_env or ("ANTHROPIC_API_KEY" if official else None),
        price=config.price or _listed(config, "anthropic", official=official),
    )
    endpoint = LiteLLMEndpoint(config, ANTHROPIC)
    return _batched(endpoint, config, AnthropicBatches, base_url.rstrip("/").removesuffix("/v1"))


def azure_type(config: EndpointConfig) -> Endpoint:
    """A deployment on Azure, through litellm; ``model`` is the deployment's name, so its price has to be given."""
    from pytest_fairness.endpoints.litellm_endpoint import AZURE_VERSION, LiteLLMEndpoint
    from pytest_fairness.endpoints.litellm_routes import AZURE

    config = replace(config, api_key_env=config.api_key_env or "AZURE_API_KEY")
    endpoint = LiteLLMEndpoint(config, AZURE)
    base_url = f"{(config.base_url or '').rstrip('/')}/openai"
    return _batched(endpoint, config, AzureBatches, base_url, f"api-version={config.api_version or AZURE_VERSION}")


def litellm_type(config: EndpointConfig) -> Endpoint:
    """Any other provider that litellm knows; ``model`` begins with the provider, as in ``gemini/…``."""
    from pytest_fairness.endpoints.litellm_endpoint import LiteLLMEndpoint
    from pytest_fairness.endpoints.litellm_routes import ANY

    provider, _, model = (config.model or "").partition("/")
    if not model:
        raise UsageError(
            f"{config.source}: endpoint {config.name!r}: model must begin with litellm's name of the provider, "
            f"as in gemini/{provider or 'NAME'}"
        )
    if provider in ("ollama", "ollama_chat"):
        raise UsageError(f"{config.source}: endpoint {config.name!r}: for Ollama, use type: ollama and model: {model}")
    price = config.price or (price_table().find(provider, model) if config.base_url is None else None)
    return LiteLLMEndpoint(replace(config, price=price), ANY)


def http_type(config: EndpointConfig) -> Endpoint:
    """Any application that takes JSON and answers with JSON."""
    from pytest_fairness.endpoints.http_endpoint import HttpEndpoint

    return HttpEndpoint(config)


def pipeline_type(config: EndpointConfig) -> Endpoint:
    """Steps that hand a text on; :func:`create_endpoint` has made the endpoints that they name."""
    from pytest_fairness.endpoints.pipeline import PipelineEndpoint, PipelineStep

    steps = [PipelineStep(step.of, step.prompt, step.system) for step in config.steps]
    return PipelineEndpoint(steps, name=config.name)


#: Type → factory, of the types that come with the package.
BUILT_IN_TYPES: Mapping[str, Factory] = {
    SIMULATED: simulated_type,
    "openai": openai_type,
    "anthropic": anthropic_type,
    "ollama": ollama_type,
    "azure": azure_type,
    "litellm": litellm_type,
    "http": http_type,
    "pipeline": pipeline_type,
}


def create_endpoint(
    config: EndpointConfig, *, types: Mapping[str, Factory] | None = None, concurrency: int | None = None
) -> Endpoint:
    """The endpoint that *config* describes. *types* come before the built-in ones.

    Raises UsageError for a type that nobody provides, or a factory that returns something else.
    """
    factories = {**BUILT_IN_TYPES, **(types or {})}
    if config.type not in factories:
        raise UsageError(f"{config.source}: {unknown('type', config.type, factories)}")
    if config.concurrency is None and concurrency is not None:
        config = replace(config, concurrency=concurrency)
    made = (replace(step, of=create_endpoint(step.of, types=types, concurrency=concurrency)) for step in config.steps)
    config = replace(config, steps=tuple(made))
    endpoint = factories[config.type](config)
    if not isinstance(endpoint, Endpoint):
        raise UsageError(
            f"endpoint type {config.type!r}: its factory returned {type(endpoint).__name__}, which is no Endpoint"
        )
    if config.limits != Limits():
        try:
            endpoint.limits = config.limits  # type: ignore[attr-defined]  # one that an endpoint may have
        except AttributeError:
            raise UsageError(
                f"{config.source}: endpoint type {config.type!r} cannot hold limits per minute: its class needs an "
                "attribute called limits"
            ) from None
    return endpoint


def named_endpoint(
    name: str, *, path: Path, types: Mapping[str, Factory] | None = None, concurrency: int | None = None
) -> Endpoint:
    """The endpoint called *name* in the file *path*; ``simulated`` is there without a file.

    Raises UsageError if there is no such endpoint, naming those that there are.
    """
    configs = load_endpoints(path, types=types or ()) if path.exists() else {}
    if name in configs:
        return create_endpoint(configs[name], types=types, concurrency=concurrency)
    if name == SIMULATED:
        return SimulatedEndpoint()
    if not path.exists():
        raise UsageError(f"endpoint {name!r}: there is no {path}; describe the endpoint there")
    raise UsageError(f"{path}: {unknown('endpoint', name, {*configs, SIMULATED})}")


def as_endpoint(system: Any) -> Endpoint:
    """*system* as an endpoint: one already, or any callable. Raises UsageError for anything else."""
    if isinstance(system, Endpoint) and not isinstance(system, type):
        return system
    if callable(system):
        return callable_endpoint(system)
    raise UsageError(
        f"the endpoint is {type(system).__name__}: give an endpoint, or a function that takes a text and returns "
        "the reply"
    )


def _direct(config: EndpointConfig) -> dict[str, Any]:
    """What every direct endpoint is made from."""
    return {
        "name": config.name,
        "model": config.model or "",
        "base_url": config.base_url,
        "api_key_env": config.api_key_env,
        "supports_system_prompt": config.supports_system_prompt,
        "default_parameters": config.default_parameters,
        "price": config.price,
        "concurrency": config.concurrency or _CONCURRENCY,
    }


def _host_ends(url: str, domain: str) -> bool:
    """Whether *url* is at *domain*: only there do its keys and its price list apply without being named."""
    host = urlsplit(url).hostname or ""
    return host == domain or host.endswith(f".{domain}")


def _listed(config: EndpointConfig, provider: str, *, official: bool) -> Price | None:
    return price_table().find(provider, config.model or "") if official else None
