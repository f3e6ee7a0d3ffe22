"""Which batch API an endpoint is asked through, where its entry says ``batch:``. One function a provider."""

from __future__ import annotations

from typing import Protocol

from pytest_fairness.endpoints.batch_anthropic import AnthropicBatches
from pytest_fairness.endpoints.batch_http import Asks
from pytest_fairness.endpoints.batch_openai import OpenAIBatches
from pytest_fairness.endpoints.batch_protocol import BatchApi, BatchOptions
from pytest_fairness.endpoints.chat_reply import Parsed
from pytest_fairness.endpoints.config import EndpointConfig
from pytest_fairness.endpoints.protocol import Price, Request


class Batched(Protocol):
    """An endpoint that says what it would send, and reads what is answered, without asking."""

    name: str
    price: Price | None
    batches: BatchApi | None

    async def body(self, request: Request) -> bytes: ...

    def read(self, body: bytes) -> Parsed: ...


def ask_openai_in_batches(endpoint: Batched, config: EndpointConfig, options: BatchOptions) -> None:
    """*config* with its address; lines go to ``/v1/chat/completions``, whatever the address."""
    api = OpenAIBatches(
        _asks(endpoint), base_url=config.base_url or "", options=options, api_key_env=config.api_key_env
    )
    _put(endpoint, api, options)


def ask_azure_in_batches(endpoint: Batched, config: EndpointConfig, options: BatchOptions, api_version: str) -> None:
    """*config* with the address of the resource; the deployment must be one for batches."""
    api = OpenAIBatches(
        _asks(endpoint),
        base_url=f"{(config.base_url or '').rstrip('/')}/openai",
        options=options,
        api_key_env=config.api_key_env,
        path="/chat/completions",
        query=f"api-version={api_version}",
        azure=True,
    )
    _put(endpoint, api, options)


def ask_anthropic_in_batches(endpoint: Batched, config: EndpointConfig, options: BatchOptions) -> None:
    """*config* with its address, with or without ``/v1``."""
    base_url = (config.base_url or "").rstrip("/").removesuffix("/v1")
    api = AnthropicBatches(_asks(endpoint), base_url=base_url, options=options, api_key_env=config.api_key_env)
    _put(endpoint, api, options)


def _asks(endpoint: Batched) -> Asks:
    return Asks(name=endpoint.name, body=endpoint.body, read=endpoint.read)


def _put(endpoint: Batched, api: BatchApi, options: BatchOptions) -> None:
    endpoint.batches = api
    endpoint.price = options.price(endpoint.price)
