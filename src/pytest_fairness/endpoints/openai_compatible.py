"""OpenAI, and every server that speaks its chat completions: vLLM, LM Studio, llama.cpp, gateways and proxies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.endpoints.chat_reply import Parsed, read_chat_completion
from pytest_fairness.endpoints.direct import DirectEndpoint, plain_messages
from pytest_fairness.model import JSON, Message


class OpenAICompatibleEndpoint(DirectEndpoint):
    """``base_url`` ends as the server wants it, most often in ``/v1``."""

    type = "openai"
    path = "/chat/completions"

    @property
    def hint(self) -> str:
        ends_so = self.base_url.endswith("/v1")
        return "is the model's name right?" if ends_so else "base_url usually ends in /v1; is the model's name right?"

    def payload(self, messages: Sequence[Message], parameters: Mapping[str, JSON]) -> dict[str, JSON]:
        return {"model": self.model, "messages": plain_messages(messages), **parameters}

    def read(self, body: bytes) -> Parsed:
        return read_chat_completion(body)
