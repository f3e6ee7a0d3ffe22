"""OpenAI, and every server that speaks its chat completions: vLLM, LM Studio, llama.cpp, gateways and proxies.

https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pytest_fairness.endpoints.chat import ChatEndpoint, Unreadable, kind_of, plain_messages, read_usage
from pytest_fairness.endpoints.config import ProviderConfig
from pytest_fairness.model import JSON, Message, Status, Usage


class OpenAIConfig(ProviderConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of type ``openai``; ``base_url`` ends as the server wants it, most often in ``/v1``."""

    default_url: ClassVar[str] = "https://api.openai.com/v1"
    official_host: ClassVar[str] = "openai.com"
    official_key: ClassVar[str | None] = "OPENAI_API_KEY"


class OpenAIEndpoint(ChatEndpoint):
    """A model that is asked with chat completions."""

    @property
    def url(self) -> str:
        return f"{self.base_url}/chat/completions"

    @property
    def hint(self) -> str:  # type: ignore[override]  # depends on the address
        ends_so = self.base_url.endswith("/v1")
        return "is the model's name right?" if ends_so else "base_url usually ends in /v1; is the model's name right?"

    def payload(self, messages: Sequence[Message], parameters: Mapping[str, JSON]) -> dict[str, JSON]:
        return {"model": self.model, "messages": plain_messages(messages), **parameters}

    @staticmethod
    def usage(data: Mapping[str, Any]) -> Usage | None:
        return read_usage(data.get("usage"), "prompt_tokens", "completion_tokens")

    @staticmethod
    def content(data: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        choices = data.get("choices")
        if not isinstance(choices, list):
            raise Unreadable(f"choices is {kind_of(choices)}, not a list")
        if not choices:
            raise Unreadable("choices is empty", Status.EMPTY)
        message = choices[0].get("message") if isinstance(choices[0], dict) else None
        if not isinstance(message, dict):
            raise Unreadable("the choice holds no message")
        return message.get("content"), choices[0].get("finish_reason"), message.get("refusal")
