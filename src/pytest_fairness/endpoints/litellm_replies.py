"""Read what Anthropic and others answered off the bytes themselves.

litellm strips ``<think>`` out of answers and maps finish reasons that it does not know to ``stop``; a record
that is to be evidence takes the provider's own words. Only where the format is unknown does litellm's reading
count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_fairness.endpoints.chat_reply import (
    Parsed,
    chat_completion,
    judge,
    read_chat_completion,
    read_object,
    read_usage,
    text_or_none,
)
from pytest_fairness.model import Status


def read_anthropic(body: bytes, _normalised: Mapping[str, Any] | None) -> Parsed:
    """An answer of the Messages API: the text blocks joined; a stop reason ``refusal`` is a refusal."""
    data = read_object(body)
    if isinstance(data, Parsed):
        return data
    return _anthropic(data)


def _anthropic(data: Mapping[str, Any]) -> Parsed:
    model = text_or_none(data.get("model"))
    usage = read_usage(data.get("usage"), "input_tokens", "output_tokens")
    blocks, reason = data.get("content"), text_or_none(data.get("stop_reason"))
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        return Parsed(status=Status.MALFORMED, model=model, usage=usage, error="content is not a list of blocks")
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    if not all(isinstance(text, str) for text in texts):
        return Parsed(status=Status.MALFORMED, model=model, usage=usage, error="a text block holds no text")
    joined = "".join(text for text in texts if isinstance(text, str))
    status, text, error = judge(joined, None, reason)
    return Parsed(status=status, text=text, finish_reason=reason, model=model, usage=usage, error=error)


def read_openai(body: bytes, _normalised: Mapping[str, Any] | None) -> Parsed:
    """An OpenAI-shaped answer."""
    return read_chat_completion(body)


def read_any(body: bytes, normalised: Mapping[str, Any] | None) -> Parsed:
    """An answer in whichever of the known formats it is, else as litellm understood it."""
    data = read_object(body)
    if isinstance(data, Parsed):
        return data
    if "choices" in data:
        return chat_completion(data)
    if data.get("type") == "message" and "content" in data:
        return _anthropic(data)
    if normalised is None:
        return Parsed(status=Status.MALFORMED, error="litellm could not read the answer")
    return chat_completion(normalised)
