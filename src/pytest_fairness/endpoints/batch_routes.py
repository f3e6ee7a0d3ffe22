"""Which batch API an endpoint is asked through, where its entry says ``batch:``."""

from __future__ import annotations

from pytest_fairness.endpoints.anthropic import AnthropicConfig
from pytest_fairness.endpoints.azure import AzureConfig
from pytest_fairness.endpoints.batch_anthropic import AnthropicBatches
from pytest_fairness.endpoints.batch_http import Asks
from pytest_fairness.endpoints.batch_openai import OpenAIBatches
from pytest_fairness.endpoints.batch_protocol import BatchApi, BatchOptions
from pytest_fairness.endpoints.chat import ChatEndpoint
from pytest_fairness.endpoints.config import ModelConfig


def ask_in_batches(endpoint: ChatEndpoint, config: ModelConfig, options: BatchOptions) -> None:
    """Give *endpoint* the batch API of its provider, and the price of a call in a batch."""
    asks = Asks(name=endpoint.name, body=endpoint.body, read=endpoint.read)
    key = config.key_variable
    api: BatchApi
    if isinstance(config, AnthropicConfig):
        api = AnthropicBatches(asks, base_url=config.address, options=options, api_key_env=key)
    elif isinstance(config, AzureConfig):
        api = OpenAIBatches(
            asks,
            base_url=f"{config.address}/openai",
            options=options,
            api_key_env=key,
            path="/chat/completions",
            query=f"api-version={config.api_version}",
            azure=True,
        )
    else:
        # Lines go to /v1/chat/completions, whatever the address.
        api = OpenAIBatches(asks, base_url=config.address, options=options, api_key_env=key)
    endpoint.batches = api
    endpoint.price = options.price(endpoint.price)
