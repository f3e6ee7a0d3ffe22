"""Anthropic's Messages API.

https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from msgspec.structs import force_setattr

from pytest_fairness.endpoints.config import ProviderConfig
from pytest_fairness.endpoints.http import token_count
from pytest_fairness.endpoints.openai import ChatEndpoint, Unreadable, read_usage
from pytest_fairness.endpoints.protocol import plain_messages
from pytest_fairness.model import JSON, Message, Usage

#: The API wants a limit; this is what every model of theirs can write, and far more than our
#: prompts ask for.
_MAX_TOKENS = 4096
#: Input that was read from, or written to, the provider's cache, and is not among ``input_tokens``.
_CACHED = ("cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicConfig(ProviderConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of type ``anthropic``; ``base_url`` with or without ``/v1``."""

    default_url: ClassVar[str] = "https://api.anthropic.com"
    official_host: ClassVar[str] = "anthropic.com"
    official_key: ClassVar[str | None] = "ANTHROPIC_API_KEY"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.default_parameters.keys() & {"max_tokens", "thinking"}:
            # Among the parameters, and so in content keys and in the log.
            force_setattr(
                self, "default_parameters", {**self.default_parameters, "max_tokens": _MAX_TOKENS}
            )

    @property
    def address(self) -> str:
        return super().address.removesuffix("/v1").rstrip("/")


class AnthropicEndpoint(ChatEndpoint):
    """A Claude model."""

    hint = "is base_url right, and the name of the model?"
    key_header = ("x-api-key", "")

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self._headers["anthropic-version"] = "2023-06-01"

    @property
    def url(self) -> str:
        return f"{self.base_url}/v1/messages"

    def payload(
        self, messages: Sequence[Message], parameters: Mapping[str, JSON]
    ) -> dict[str, JSON]:
        """The body of a request: Anthropic has fields of its own for the system prompt and for what
        ends a reply, and no default for its length.
        """
        sent = dict(parameters)
        stop = sent.pop("stop", None)
        if isinstance(stop, list):
            sent["stop_sequences"] = stop
        elif stop is not None:
            sent["stop_sequences"] = [stop]
        form = sent.pop("response_format", None)
        if isinstance(form, dict):
            sent["output_config"] = {"format": _format_of(form)}
        sent.setdefault("max_tokens", _MAX_TOKENS + _tokens_of_thinking(sent))
        instructions: list[str] = []
        turns: list[Message] = []
        for message in messages:
            if message.role == "system":
                instructions.append(message.content)
            else:
                turns.append(message)
        system = "\n\n".join(instructions)
        if system:
            sent["system"] = system
        return {"model": self.model, "messages": plain_messages(turns), **sent}

    @staticmethod
    def usage(data: Mapping[str, Any]) -> Usage | None:
        """The tokens of a reply, with those read from a cache or written to it among the input."""
        usage = read_usage(data.get("usage"), "input_tokens", "output_tokens")
        if usage is None or usage.input_tokens is None:
            return usage
        tokens = usage.input_tokens
        for key in _CACHED:
            tokens += token_count(data["usage"].get(key)) or 0
        return replace(usage, input_tokens=tokens)

    @staticmethod
    def content(data: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """The text of all blocks, why it ended, and no refusal. Raises Unreadable."""
        blocks = data.get("content")
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise Unreadable("content is not a list of blocks")
        return "".join(map(_text_of, blocks)), data.get("stop_reason"), None


def _format_of(response_format: Mapping[str, JSON]) -> JSON:
    """Return how Anthropic calls the form that an OpenAI-like *response_format* asks for.

    https://platform.claude.com/docs/en/build-with-claude/structured-outputs
    """
    described = response_format.get("json_schema")
    if isinstance(described, dict):
        return {"type": "json_schema", "schema": described["schema"]}
    return dict(response_format)


def _text_of(block: Mapping[str, Any]) -> str:
    """Return the text of a *block*, nothing for another kind. Raises Unreadable."""
    if block.get("type") != "text":
        return ""
    text = block.get("text")
    if not isinstance(text, str):
        raise Unreadable("a text block holds no text")
    return text


def _tokens_of_thinking(parameters: Mapping[str, JSON]) -> int:
    """Return how many tokens a model may think, which its limit counts too; 0 without a budget."""
    thinking = parameters.get("thinking")
    if not isinstance(thinking, dict):
        return 0
    return token_count(thinking.get("budget_tokens")) or 0
