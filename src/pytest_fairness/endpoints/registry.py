"""The endpoints that there are: types, the entries of ``endpoints.yaml``, and what else can be
asked.

A type is what its entry may say, a struct, and a function from such an entry to an Endpoint; a new
one is one module and one row. Rows of third parties come from the hook
``pytest_fairness_endpoint_types``: a mapping from the type's name to a function that takes a
:class:`~pytest_fairness.endpoints.config.ThirdPartyConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from pytest_fairness import documents
from pytest_fairness.endpoints.anthropic import AnthropicConfig, AnthropicEndpoint
from pytest_fairness.endpoints.application import ApplicationConfig, ApplicationEndpoint
from pytest_fairness.endpoints.azure import AzureConfig, AzureEndpoint
from pytest_fairness.endpoints.batch_api import AnthropicBatches, AzureBatches, BatchApi
from pytest_fairness.endpoints.config import (
    BatchOptions,
    EndpointConfig,
    ModelConfig,
    ProviderConfig,
    ThirdPartyConfig,
)
from pytest_fairness.endpoints.function import callable_endpoint
from pytest_fairness.endpoints.litellm import LiteLLMConfig, LiteLLMEndpoint
from pytest_fairness.endpoints.ollama import OllamaConfig, OllamaEndpoint
from pytest_fairness.endpoints.openai import ChatEndpoint, OpenAIConfig
from pytest_fairness.endpoints.pipeline import PipelineConfig, PipelineEndpoint
from pytest_fairness.endpoints.protocol import (
    AttemptError,
    Endpoint,
    Evidence,
    Limits,
    Price,
    Reply,
    Request,
)
from pytest_fairness.endpoints.simulated import Planted, SimulatedEndpoint
from pytest_fairness.errors import UsageError, unknown
from pytest_fairness.model import JSON

Factory: TypeAlias = Callable[[Any], Endpoint]

SIMULATED = "simulated"
MAX_BYTES = 1_000_000
#: Types that a file cannot hold, and why.
_NOT_IN_A_FILE = {
    "callable": (
        "a file must not say which code runs; name the function in Python: let the fixture "
        '`endpoint` return it, or callable_endpoint("my_app.letters:write")'
    ),
    "replay": (
        "a recorded run is replayed with --fairness-replay RUN; its systems are those that it asked"
    ),
}


def _directly(
    kind: Callable[[Any], ChatEndpoint], batches: Callable[..., BatchApi] = BatchApi
) -> Factory:
    """The factory of a provider that is spoken to directly, one by one or in *batches*, or ``via:
    litellm``.
    """

    def make(config: ModelConfig) -> Endpoint:
        """Return the endpoint of *config*, by way of litellm or with batches where it says so."""
        if isinstance(config, ProviderConfig) and config.via == "litellm":
            return LiteLLMEndpoint(config)
        endpoint = kind(config)
        if isinstance(config, ProviderConfig) and isinstance(config.batch, BatchOptions):
            endpoint.batches = batches(endpoint, config.batch)
        return endpoint

    return make


#: Type → what its entry may say, and what makes an endpoint of it.
_TYPES: Mapping[str, tuple[type[EndpointConfig], Factory]] = {
    SIMULATED: (Planted, SimulatedEndpoint),
    "openai": (OpenAIConfig, _directly(ChatEndpoint)),
    "anthropic": (AnthropicConfig, _directly(AnthropicEndpoint, AnthropicBatches)),
    "ollama": (OllamaConfig, _directly(OllamaEndpoint)),
    "azure": (AzureConfig, _directly(AzureEndpoint, AzureBatches)),
    "litellm": (LiteLLMConfig, LiteLLMEndpoint),
    "http": (ApplicationConfig, ApplicationEndpoint),
    "pipeline": (PipelineConfig, lambda config: PipelineEndpoint(config.steps, name=config.name)),
}
#: The types of endpoints that are services over the network: nothing of a test's runs in them.
PROVIDERS = ("openai", "azure", "anthropic", "ollama", "litellm", "http")
BUILT_IN_TYPES: Mapping[str, Factory] = {name: factory for name, (_, factory) in _TYPES.items()}


# ---------------------------------------------------------------- endpoints.yaml


class _EndpointsFile(Struct, forbid_unknown_fields=True):
    endpoints: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=1000)]


def load_endpoints(path: Path, *, types: Iterable[str] = ()) -> dict[str, EndpointConfig]:
    """The entries of *path* by name; *types* are those of third parties, beside the built-in ones.

    Raises UsageError, beginning with ``path:line``, for whatever is no entry.
    """
    document = documents.open_document(path, max_bytes=MAX_BYTES)
    third = frozenset(types)
    entries: dict[str, EndpointConfig] = {}
    for number in range(len(document.convert(_EndpointsFile).endpoints)):
        config = _entry(document, third, "endpoints", number)
        if config.name in entries:
            first = document.where("endpoints", [*entries].index(config.name))
            why = f"a second endpoint {config.name!r}; the first is at {first}"
            raise document.wrong(why, "endpoints", number)
        entries[config.name] = config
    for number, (name, config) in enumerate(entries.items()):
        if isinstance(config, PipelineConfig):
            entries[name] = _linked(document, number, config, entries)
    return entries


def _linked(
    document: documents.Document,
    number: int,
    config: PipelineConfig,
    entries: Mapping[str, EndpointConfig],
) -> PipelineConfig:
    """The pipeline *config*, entry *number*, with the entries that its steps name. Raises
    UsageError.
    """
    steps = []
    for at, step in enumerate(config.steps):
        named = None
        if isinstance(step.endpoint, str):
            named = entries.get(step.endpoint)
        why = ""
        if named is None:
            why = unknown("endpoint", str(step.endpoint), [*entries])
        elif isinstance(named, PipelineConfig):
            why = f"{step.endpoint!r} is a pipeline itself: write its steps here"
        if why:
            raise document.wrong(
                f"endpoint {config.name!r}, step {at + 1}: {why}", "endpoints", number, "steps", at
            )
        steps.append(replace(step, endpoint=named))
    if not steps:
        return config
    return replace(config, steps=tuple(steps))


def every_name(path: Path) -> list[str]:
    """The names of all entries of *path*, which is read no further. Raises UsageError."""
    endpoints = documents.open_document(path, max_bytes=MAX_BYTES).convert(_EndpointsFile).endpoints
    names = [name for entry in endpoints if isinstance(name := entry.get("name"), str)]
    if "all" in names:
        raise UsageError(
            f"{path}: an endpoint is called 'all', which stands for every one of them: rename it"
        )
    return names


def _entry(
    document: documents.Document, types: frozenset[str], *place: str | int
) -> EndpointConfig:
    """Return the entry that stands at *place*, checked. Raises UsageError."""
    entry: Any = document.data
    for step in place:
        entry = entry[step]
    kind = entry.get("type")
    types_ = {*_TYPES, *types}
    if not isinstance(kind, str):
        raise document.wrong("an endpoint needs a type", *place, "type")
    if kind not in types_:
        if kind in _NOT_IN_A_FILE:
            why = f"type {kind}: {_NOT_IN_A_FILE[kind]}"
        else:
            why = unknown("type", kind, types_)
        raise document.wrong(why, *place, "type")
    for key in ("api_key", "key", "token", "password", "secret"):
        if key in entry:
            why = f"{key}: a key must not stand in a file; name its variable with api_key_env"
            raise document.wrong(why, *place, key)
    # Whoever replaces a built-in type makes another endpoint of the same entry.
    struct: type[EndpointConfig] = ThirdPartyConfig
    if kind in _TYPES:
        struct = _TYPES[kind][0]
    return document.convert(struct, *place)


# ---------------------------------------------------------------- endpoints


def create_endpoint(
    entry: EndpointConfig | Mapping[str, Any],
    *,
    types: Mapping[str, Factory] | None = None,
    concurrency: int | None = None,
) -> Endpoint:
    """The endpoint that *entry* describes, as read from a file or written in Python. *types* come
    before the built-in ones.

    Raises UsageError for a type that nobody provides, or a factory that returns something else.
    """
    if not isinstance(entry, EndpointConfig):
        name = entry.get("name", "")
        entry = _entry(
            documents.Document(f"endpoint {name!r}", dict(entry)), frozenset(types or ())
        )
    config = entry
    if concurrency is not None and getattr(config, "concurrency", concurrency) is None:
        config = replace(config, concurrency=concurrency)
    if isinstance(config, PipelineConfig):
        steps = []
        for step in config.steps:
            system = create_endpoint(step.endpoint, types=types, concurrency=concurrency)
            steps.append(replace(step, endpoint=system))
        config = replace(config, steps=tuple(steps))
    factories = {**BUILT_IN_TYPES, **(types or {})}
    endpoint = factories[config.type](config)
    if not isinstance(endpoint, Endpoint):
        raise UsageError(
            f"endpoint type {config.type!r}: its factory returned {type(endpoint).__name__}, which "
            "is no Endpoint"
        )
    if entry.limits != Limits():
        _limit(endpoint, entry)
    return endpoint


def _limit(endpoint: Endpoint, entry: EndpointConfig) -> None:
    """Give *endpoint* the limits of its *entry*. Raises UsageError where it cannot hold any."""
    try:
        endpoint.limits = entry.limits  # type: ignore[attr-defined]  # one that it may have
    except AttributeError:
        why = (
            f"type {entry.type!r} cannot hold limits per minute: its class needs an attribute "
            "called limits"
        )
        raise UsageError(f"endpoint {entry.name!r}: {why}") from None


def named_endpoint(
    name: str,
    *,
    path: Path,
    types: Mapping[str, Factory] | None = None,
    concurrency: int | None = None,
) -> Endpoint:
    """The endpoint called *name* in the file *path*; ``simulated`` is there without a file.

    Raises UsageError if there is no such endpoint, naming those that there are.
    """
    configs = {}
    if path.exists():
        configs = load_endpoints(path, types=types or ())
    if name in configs:
        return create_endpoint(configs[name], types=types, concurrency=concurrency)
    if name == SIMULATED:
        return SimulatedEndpoint()
    if not path.exists():
        raise UsageError(f"endpoint {name!r}: there is no {path}; describe the endpoint there")
    raise UsageError(f"{path}: {unknown('endpoint', name, {*configs, SIMULATED})}")


def as_endpoint(system: Any) -> Endpoint:
    """*system*, an endpoint already or any callable, as an endpoint. Raises UsageError."""
    if isinstance(system, Endpoint) and not isinstance(system, type):
        return system
    if callable(system):
        return callable_endpoint(system)
    why = "give an endpoint, or a function that takes a text and returns the reply"
    raise UsageError(f"the endpoint is {type(system).__name__}: {why}")


class RecordedEndpoint:
    """A system as a recorded run knows it: the ``endpoint`` of its record. It can be looked up, and
    never asked.

    Name, identity and parameters are those of the recording, so that content keys come out the
    same. Raises UsageError for a record of another shape.
    """

    type = "replay"

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        try:
            self.name = str(recorded["name"])
            self.simulated = bool(recorded["simulated"])
            self.supports_system_prompt = bool(recorded.get("supports_system_prompt", True))
            self.supports_conversation = bool(recorded.get("supports_conversation", True))
            self.supports_structured_output = bool(recorded.get("supports_structured_output"))
            self.default_parameters: Mapping[str, JSON] = dict(recorded["default_parameters"])
            self._identity: dict[str, JSON] = dict(recorded["identity"])
            price = recorded.get("price")
            if price is None:
                self.price = None
            else:
                self.price = Price(**price)
        except (KeyError, TypeError, ValueError) as error:
            why = (
                f"the recorded endpoint cannot be read ({error!r}): replay with the version that "
                "wrote it"
            )
            raise UsageError(why) from error

    def identity(self) -> dict[str, JSON]:
        return dict(self._identity)

    async def ask(self, request: Request) -> Reply:  # noqa: ARG002 - as the protocol has it
        """Raises AttemptError: a recorded run holds what it holds."""
        raise AttemptError(
            f"endpoint {self.name!r} is a recorded run: it cannot be asked",
            evidence=Evidence.NOT_SENT,
        )

    async def aclose(self) -> None:
        """Nothing is held open."""
