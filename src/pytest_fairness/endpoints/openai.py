"""OpenAI, and every server that speaks its chat completions: vLLM, LM Studio, llama.cpp, gateways and proxies.

https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from typing import ClassVar

from pytest_fairness.endpoints.chat import ChatEndpoint
from pytest_fairness.endpoints.config import ProviderConfig


class OpenAIConfig(ProviderConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of type ``openai``; ``base_url`` ends as the server wants it, most often in ``/v1``."""

    default_url: ClassVar[str] = "https://api.openai.com/v1"
    official_host: ClassVar[str] = "openai.com"
    official_key: ClassVar[str | None] = "OPENAI_API_KEY"


class OpenAIEndpoint(ChatEndpoint):
    """A model that is asked with chat completions."""

    @property
    def hint(self) -> str:
        ends_so = self.base_url.endswith("/v1")
        return "is the model's name right?" if ends_so else "base_url usually ends in /v1; is the model's name right?"
