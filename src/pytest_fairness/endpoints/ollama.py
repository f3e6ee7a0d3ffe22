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

#: Ours → Ollama's names of parameters.
_NAMES = {"max_tokens": "num_predict"}
#: Names of the machine that asks.
_ITSELF = ("localhost", "127.0.0.1", "::1")


class OllamaConfig(ModelConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of type ``ollama``; ``base_url`` is the address of the server, without ``/api``."""

    default_url: ClassVar[str] = "http://localhost:11434"

    @property
    def known_price(self) -> Price | None:
        """Models that run on one's own machine cost nothing a call."""
        price: Price | None = self.price
        if price is None and urlsplit(self.address).hostname in _ITSELF:
            return FREE
        return price


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
        options = {_NAMES.get(name, name): value for name, value in parameters.items()}
        payload: dict[str, JSON] = {
            "model": self.model,
            "messages": plain_messages(messages),
            "stream": False,
        }
        outside: dict[str, JSON] = {}
        if "keep_alive" in options:
            outside["keep_alive"] = options.pop("keep_alive")
        form = options.pop("response_format", None)
        if isinstance(form, dict):
            outside["format"] = _format_of(form)
        if options:
            payload["options"] = options
        return {**payload, **outside}

    @staticmethod
    def usage(data: Mapping[str, Any]) -> Usage | None:
        return read_usage(data, "prompt_eval_count", "eval_count")

    @staticmethod
    def content(data: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """The text, why it ended, and no refusal. Raises Unreadable."""
        message = data.get("message")
        if not isinstance(message, dict):
            raise Unreadable("the answer holds no message")
        return message.get("content"), data.get("done_reason"), None


def _format_of(response_format: Mapping[str, JSON]) -> JSON:
    """Return how Ollama calls the form that an OpenAI-like *response_format* asks for."""
    described = response_format.get("json_schema")
    if isinstance(described, dict):
        return described["schema"]
    return "json"
