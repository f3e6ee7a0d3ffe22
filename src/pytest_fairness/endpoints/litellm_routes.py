"""How each kind of endpoint is addressed through litellm, and how its answers are read. One row a route."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_fairness.endpoints.chat_reply import Parsed
from pytest_fairness.endpoints.litellm_replies import read_anthropic, read_any, read_openai


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """``prefix`` goes before the model, ``client`` is the kind of client that litellm takes for it.

    ``cut`` is an ending of the address that litellm adds itself, ``placeholder`` says that a key has to be
    given even where there is none: without one, litellm would look for one in the environment and send it to
    any address.
    """

    prefix: str
    client: str
    read: Callable[[bytes, Mapping[str, Any] | None], Parsed]
    cut: str = ""
    placeholder: bool = True
    empty_messages: bool = True

    def model(self, model: str) -> str:
        """litellm's name for *model*."""
        return model if not self.prefix or model.startswith(f"{self.prefix}/") else f"{self.prefix}/{model}"

    def base_url(self, base_url: str | None) -> str | None:
        """The address as litellm wants it."""
        if base_url is None:
            return None
        return base_url.rstrip("/").removesuffix(self.cut).rstrip("/")


OPENAI = Route(prefix="openai", client="openai", read=read_openai)
AZURE = Route(prefix="azure", client="azure", read=read_openai)
# litellm appends /v1/messages, and puts a text of its own in the place of an empty message.
ANTHROPIC = Route(prefix="anthropic", client="http", read=read_anthropic, cut="/v1", empty_messages=False)
ANY = Route(prefix="", client="either", read=read_any, placeholder=False)
