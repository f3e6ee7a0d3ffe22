"""Read the body of an OpenAI-shaped chat completion: total on any bytes, and nothing invented.

A body that is no such completion is MALFORMED, one without text EMPTY, one by which the model or the provider
declines REFUSED, one that reports an error ERROR. All of them are complete answers that were paid for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_fairness.endpoints.evidence import message_of
from pytest_fairness.endpoints.protocol import Reply, Wire
from pytest_fairness.model import Status, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A body as it was read; the fields are those of :class:`~pytest_fairness.endpoints.protocol.Reply`."""

    status: Status
    text: str | None = None
    finish_reason: str | None = None
    model: str | None = None
    usage: Usage | None = None
    error: str | None = None

    def reply(self, wire: Wire | None) -> Reply:
        """The same as a Reply, with its *wire*."""
        return Reply(
            text=self.text,
            status=self.status,
            finish_reason=self.finish_reason,
            model=self.model,
            usage=self.usage,
            wire=wire,
            error=self.error,
        )


def read_chat_completion(body: bytes) -> Parsed:
    """What *body*, of a response with a 2xx status, says."""
    data = read_object(body)
    return data if isinstance(data, Parsed) else chat_completion(data)


def read_object(body: bytes) -> dict[str, Any] | Parsed:
    """The JSON object in *body*, or what is to be said of a body that holds none, or an error."""
    data = read_json(body)
    if isinstance(data, Parsed):
        return data
    if not isinstance(data, dict):
        return Parsed(status=Status.MALFORMED, error=f"the body is JSON {_kind(data)}, not an object")
    if data.get("error"):
        said = message_of(json.dumps({"error": data["error"]}))
        return Parsed(status=Status.ERROR, model=text_or_none(data.get("model")), error=f"an error in a 200: {said}")
    return data


def read_json(body: bytes) -> Any:
    """The JSON in *body*, or a Parsed that says why there is none."""
    if not body.strip():
        return Parsed(status=Status.MALFORMED, error="the body of the response is empty")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        start = body[:200].decode("utf-8", "replace")
        return Parsed(status=Status.MALFORMED, error=f"the body is not JSON: {message_of(start)}")


def chat_completion(data: Mapping[str, Any]) -> Parsed:
    """What a chat completion says, read from JSON already."""
    model = text_or_none(data.get("model"))
    usage = read_usage(data.get("usage"), "prompt_tokens", "completion_tokens")
    choices = data.get("choices")
    if not isinstance(choices, list):
        return Parsed(
            status=Status.MALFORMED, model=model, usage=usage, error=f"choices is {_kind(choices)}, not a list"
        )
    if not choices:
        return Parsed(status=Status.EMPTY, model=model, usage=usage, error="choices is empty")
    return _choice(choices[0], model, usage)


def _choice(choice: Any, model: str | None, usage: Usage | None) -> Parsed:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return Parsed(status=Status.MALFORMED, model=model, usage=usage, error="the choice holds no message")
    reason = text_or_none(choice.get("finish_reason"))
    status, text, error = judge(message.get("content"), message.get("refusal"), reason)
    return Parsed(status=status, text=text, finish_reason=reason, model=model, usage=usage, error=error)


#: Finish reasons by which a provider says that it, or its model, declined.
REFUSING = frozenset(("content_filter", "refusal", "safety", "prohibited_content", "guardrail_intervened"))


def judge(content: Any, refusal: Any, reason: str | None) -> tuple[Status, str | None, str | None]:
    """Status, text and error of a message's content, its refusal field and the finish reason."""
    if isinstance(refusal, str) and refusal.strip():
        return Status.REFUSED, refusal, None
    if content is not None and not isinstance(content, str):
        return Status.MALFORMED, None, f"the content is {_kind(content)}, not a text"
    blank = content is None or not content.strip()
    if reason is not None and reason.lower() in REFUSING:
        return Status.REFUSED, None if blank else content, None
    if blank:
        because = f" (finish reason {reason})" if reason else ""
        return Status.EMPTY, None, f"the reply holds no text{because}"
    return Status.ANSWERED, content, None


def read_usage(data: Any, input_key: str, output_key: str) -> Usage | None:
    """Tokens as counted; what is no plausible count becomes ``None``, so that it is charged at its worst case."""
    if not isinstance(data, dict):
        return None
    usage = Usage(input_tokens=token_count(data.get(input_key)), output_tokens=token_count(data.get(output_key)))
    return None if usage.input_tokens is None and usage.output_tokens is None else usage


def token_count(value: Any) -> int | None:
    """*value* if it can be a number of tokens."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        whole = int(value)
    except (ValueError, OverflowError):
        return None
    return whole if whole == value and whole >= 0 else None


def text_or_none(value: Any) -> str | None:
    """*value* if it is a text that says something."""
    return value if isinstance(value, str) and value else None


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "true or false", int: "a number", float: "a number", str: "a string"}
    return names.get(type(value), "a list" if isinstance(value, list) else "an object")
