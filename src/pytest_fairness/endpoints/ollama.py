"""Ollama's own chat.

Not through litellm, which asks Ollama about the model up to six times, synchronously in the event
loop, and first at ``localhost:11434`` whatever the address
(``docs/decisions/0020-ollama-directly.md``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pytest_fairness.endpoints.config import ModelConfig
from pytest_fairness.endpoints.openai import ChatEndpoint, Unreadable, read_usage
from pytest_fairness.endpoints.protocol import FREE, Price, plain_messages
from pytest_fairness.model import JSON, Message, Usage


class OllamaConfig(ModelConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of type ``ollama``; ``base_url`` is the address of the server, without ``/api``."""

    default_url: ClassVar[str] = "http://localhost:11434"

    @property
    def known_price(self) -> Price | None:
        """Models that run on one's own machine cost nothing a call."""
        local = urlsplit(self.address).hostname in ("localhost", "127.0.0.1", "::1")
        return self.price or (FREE if local else None)


class OllamaEndpoint(ChatEndpoint):
    """A model that an Ollama server runs."""

    @property
    def url(self) -> str:
        return f"{self.base_url}/api/chat"

    @property
    def hint(self) -> str:
        if urlsplit(self.base_url).path:
            return "base_url is the address alone, such as http://localhost:11434"
        return f"is the model there? ollama pull {self.model}"

    def payload(
        self, messages: Sequence[Message], parameters: Mapping[str, JSON]
    ) -> dict[str, JSON]:
        options = {
            {"max_tokens": "num_predict"}.get(name, name): value
            for name, value in parameters.items()
        }
        outside = {}
        if "keep_alive" in options:
            outside = {"keep_alive": options.pop("keep_alive")}
        if isinstance(form := options.pop("response_format", None), dict):
            described = form.get("json_schema")
            if isinstance(described, dict):
                outside["format"] = described["schema"]
            else:
                outside["format"] = "json"
        payload: dict[str, JSON] = {
            "model": self.model,
            "messages": plain_messages(messages),
            "stream": False,
        }
        return {**payload, **({"options": options} if options else {}), **outside}

    @staticmethod
    def usage(data: Mapping[str, Any]) -> Usage | None:
        return read_usage(data, "prompt_eval_count", "eval_count")

    @staticmethod
    def content(data: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        message = data.get("message")
        if not isinstance(message, dict):
            raise Unreadable("the answer holds no message")
        return message.get("content"), data.get("done_reason"), None
