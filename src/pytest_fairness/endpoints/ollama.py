"""Ollama's own chat, directly.

Not through litellm, which asks Ollama about the model up to six times, synchronously in the event loop, and
first at ``localhost:11434`` whatever the address (``docs/decisions/0020-ollama-directly.md``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from pytest_fairness.endpoints.chat_reply import Parsed, judge, read_object, read_usage, text_or_none
from pytest_fairness.endpoints.direct import DirectEndpoint, plain_messages
from pytest_fairness.model import JSON, Message, Status

# Everything but these goes into Ollama's "options".
_OUTSIDE = ("keep_alive",)
_RENAMED = {"max_tokens": "num_predict"}


class OllamaEndpoint(DirectEndpoint):
    """``base_url`` is the address of the server, without ``/api``."""

    type = "ollama"
    path = "/api/chat"

    @property
    def hint(self) -> str:
        if urlsplit(self.base_url).path:
            return "base_url is the address alone, such as http://localhost:11434"
        return f"is the model there? ollama pull {self.model}"

    def payload(self, messages: Sequence[Message], parameters: Mapping[str, JSON]) -> dict[str, JSON]:
        options = {_RENAMED.get(name, name): value for name, value in parameters.items() if name not in _OUTSIDE}
        outside = {name: value for name, value in parameters.items() if name in _OUTSIDE}
        payload: dict[str, JSON] = {"model": self.model, "messages": plain_messages(messages), "stream": False}
        if options:
            payload["options"] = options
        return {**payload, **outside}

    def read(self, body: bytes) -> Parsed:
        data = read_object(body)
        if isinstance(data, Parsed):
            return data
        model, message = text_or_none(data.get("model")), data.get("message")
        usage = read_usage(data, "prompt_eval_count", "eval_count")
        if not isinstance(message, dict):
            return Parsed(status=Status.MALFORMED, model=model, usage=usage, error="the answer holds no message")
        reason = text_or_none(data.get("done_reason"))
        status, text, error = judge(message.get("content"), None, reason)
        return Parsed(status=status, text=text, finish_reason=reason, model=model, usage=usage, error=error)
