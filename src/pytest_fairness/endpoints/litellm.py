"""Every other provider, through litellm, used as it is meant to be used: one ``acompletion`` an
attempt.

What goes over the wire is litellm's own affair, so the record of an attempt is what litellm was
given and what it returned (``docs/decisions/0021-litellm-for-the-others.md``). Left to itself, its
import fetches a price map from the network, reads a ``.env`` file from above site-packages into the
process and warns; it takes seconds. So it happens in :meth:`LiteLLMEndpoint.prepare`, never before.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import importlib.util
import logging
import os
import threading
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_fairness.documents import Misplaced
from pytest_fairness.endpoints.api_keys import read_key
from pytest_fairness.endpoints.config import ModelConfig, merged_parameters
from pytest_fairness.endpoints.http import (
    encode_json,
    evidence_of,
    make_wire,
    message_of,
    policy_refusal,
    retry_after,
)
from pytest_fairness.endpoints.openai import ChatEndpoint
from pytest_fairness.endpoints.prices import price_table
from pytest_fairness.endpoints.protocol import (
    AttemptError,
    CutOff,
    Evidence,
    Price,
    Reply,
    Request,
    Wire,
    plain_messages,
)
from pytest_fairness.endpoints.redaction import remember_environment, safe_url
from pytest_fairness.errors import MissingExtra, UsageError
from pytest_fairness.model import JSON, Status

# Published by an attacker in March 2026 (BerriAI/litellm#24512): not even to be imported.
_COMPROMISED = ("1.82.7", "1.82.8")
_AT_IMPORT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_OFFLINE_MODE": "true",
}
# They log headers and prompts when somebody sets the root logger to DEBUG, as pytest's log_level
# does.
_TALKATIVE = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpx2")
#: Without a key of ours, litellm would look for one in the environment and send it to any address.
_NO_KEY = "none"
#: litellm's own timeout restarts with every byte; the deadline of an attempt is the engine's.
_NO_TIMEOUT = 86_400.0
#: Raised where there was no connection. Not httpx's ConnectError, as which a connection that is
#: reset comes out too.
_UNCONNECTED = frozenset(
    ("ClientConnectorError", "ConnectionRefusedError", "ConnectTimeout", "gaierror")
)
#: Raised where there was one, also on the first of two requests: upon a lost connection litellm
#: sends a second.
_CONNECTED = frozenset(("ConnectionResetError", "ServerDisconnectedError", "ReadError"))
#: Endings of variables that would send requests to an address that stands neither in the run's
#: identity nor in a file.
_REROUTING = ("API_BASE", "BASE_URL", "API_URL", "API_ENDPOINT")
_loading = threading.Lock()


class LiteLLMConfig(ModelConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of type ``litellm``; ``model`` begins with the provider, as in ``gemini/…``."""

    api_version: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        provider, _, model = self.model.partition("/")
        if not model:
            raise Misplaced(
                f"model must begin with litellm's name of the provider, as in gemini/{provider}",
                "model",
            )
        if provider in ("ollama", "ollama_chat"):
            raise Misplaced(f"for Ollama, use type: ollama and model: {model}", "model")

    @property
    def known_price(self) -> Price | None:
        price = super().known_price
        if price is None and self.base_url is None:
            provider, _, model = self.model.partition("/")
            return price_table().find(provider, model)
        return price


class LiteLLMEndpoint(ChatEndpoint):
    """One provider's model; an entry of another type comes here with ``via: litellm``.

    Raises MissingExtra if litellm is not installed, UsageError where the environment would change
    the address.
    """

    announces_leaving = False

    def __init__(self, config: ModelConfig) -> None:
        if importlib.util.find_spec("litellm") is None:
            raise MissingExtra(f"endpoint {config.name!r} (type {config.type})", "llm")
        installed = importlib.metadata.version("litellm")
        if installed in _COMPROMISED:
            raise UsageError(
                f"litellm {installed} was published by an attacker and may have stolen keys "
                "already: remove it, change the keys that it could read, and install another "
                "version"
            )
        super().__init__(config)
        if config.type != "litellm" and not self.model.startswith(f"{config.type}/"):
            self.model = f"{config.type}/{self.model}"
        self._version: str | None = getattr(config, "api_version", None)
        self._litellm: Any = None
        if not self.base_url:
            self._refuse_rerouting()
        # litellm finds keys in the environment by itself; whatever it finds must not be written
        # down.
        remember_environment()

    def _refuse_rerouting(self) -> None:
        """Raise UsageError where the environment has an address in place of the provider's own."""
        provider = self.model.partition("/")[0].upper().replace("-", "_")
        for ending in _REROUTING:
            variable = f"{provider}_{ending}"
            if os.environ.get(variable, "").strip():
                raise UsageError(
                    f"endpoint {self.name!r}: the environment variable {variable} is set, and "
                    "would send its requests to another address than the provider's own: write "
                    "that address as base_url, or unset the variable"
                )

    def identity(self) -> dict[str, JSON]:
        version: dict[str, JSON] = {}
        if self._version:
            version = {"api_version": self._version}
        return {
            **super().identity(),
            "via": "litellm",
            "base_url": safe_url(self.base_url) or None,
            **version,
        }

    async def prepare(self) -> None:
        """Import litellm in a thread, for it takes seconds. Raises AttemptError where it, or the
        provider, is wrong.
        """
        if self._litellm is not None:
            return
        try:
            litellm = await asyncio.to_thread(load_litellm)
        except asyncio.CancelledError:
            raise CutOff(evidence=Evidence.NOT_SENT) from None
        except Exception as error:
            why = (
                f"litellm is installed and cannot be imported ({type(error).__name__}: {error}); "
                "install it again: "
            )
            raise self._error(
                f"{why}pip install --force-reinstall 'pytest-fairness[llm]'", Evidence.AUTH
            ) from error
        try:
            litellm.get_llm_provider(model=self.model, api_base=self.base_url or None)
        except Exception as error:
            raise self._error(f"nothing can be sent: {error}", Evidence.AUTH) from error
        self._litellm = litellm

    async def ask(self, request: Request) -> Reply:
        key = read_key(self._key_variable, self.name)
        given: dict[str, JSON] = {
            "model": self.model,
            "messages": plain_messages(request.messages),
            **merged_parameters(self, request.parameters),
        }
        await self.prepare()
        # Where a suite makes warnings errors, those from within litellm must not end a call.
        # Filters, not catch_warnings: that changes those of the whole process, and puts back the
        # wrong ones when two calls overlap.
        warnings.filterwarnings("ignore", module=r"(?:litellm|openai|pydantic|httpx2?)(?:\.|$)")
        try:
            response = await self._litellm.acompletion(
                **given,
                **self._address(key),
                max_retries=0,
                num_retries=0,
                timeout=_NO_TIMEOUT,
                drop_params=False,
                stream=False,
                **{"no-log": True},
            )
        except Exception as error:  # noqa: BLE001 - each is classified, or counts as sent without an answer
            return self._failure(error, given)
        reply = ChatEndpoint.interpret(_with_refusals(response.model_dump()))
        usage = reply.usage
        # Where the provider counted nothing, litellm writes zeros: such an answer is charged at its
        # worst case.
        if usage is not None and not usage.input_tokens and not usage.output_tokens:
            usage = None
        wire = self._wire(given, response.model_dump_json().encode(), response)
        return replace(reply, usage=usage, wire=wire)

    def _address(self, key: str | None) -> dict[str, str]:
        """Return where litellm is to ask, with which *key*, in which version of the API."""
        address = {}
        if self.base_url:
            address = {"api_base": self.base_url, "api_key": key or _NO_KEY}
        elif key:
            address = {"api_key": key}
        if self._version is not None:
            address["api_version"] = self._version
        return address

    async def aclose(self) -> None:
        close = getattr(self._litellm, "close_litellm_async_clients", None)
        if close is not None:
            await close()

    def _failure(self, error: Exception, given: Mapping[str, JSON]) -> Reply:
        """Return what *error* is as an answer. Raises AttemptError where it is none, with the
        evidence as far as it goes.
        """
        kinds, detail = _chain(error)
        code = getattr(error, "status_code", None)
        status = None
        if isinstance(code, int) and code >= 300 and "APIConnectionError" not in kinds:
            status = code
        text = f"{type(error).__name__}: {error}"
        wire = self._wire(given, b"", error, status=status)
        policy = _policy(kinds, status, detail)
        if policy is not None:
            return Reply(
                text=None,
                status=Status.REFUSED,
                finish_reason=policy,
                wire=wire,
                error=message_of(text),
            )
        if "UnsupportedParamsError" in kinds:
            raise self._error(f"nothing was sent: {error}", Evidence.AUTH)
        evidence = _evidence(kinds, status, detail)
        raise self._error(text, evidence, wire=wire, retry_after=retry_after(_headers(error)))

    def _error(self, what: str, evidence: Evidence, **more: Any) -> AttemptError:
        return AttemptError(
            f"endpoint {self.name!r}: {message_of(what)}", evidence=evidence, **more
        )

    def _wire(
        self, given: Mapping[str, JSON], returned: bytes, outcome: Any, status: int | None = None
    ) -> Wire:
        """Return what litellm was given and what it returned, in the place of what went over the
        wire.
        """
        url = self.base_url or f"litellm:{self.model}"
        headers = _headers(outcome)
        return make_wire(url, encode_json(given), {}, status, headers, returned)


def _headers(outcome: Any) -> dict[str, str]:
    """The headers that litellm kept of a response, or of the response that an exception came from."""
    response = getattr(outcome, "response", None)
    kept = (
        getattr(outcome, "_response_headers", None)
        or getattr(outcome, "litellm_response_headers", None)
        or getattr(response, "headers", None)
        or {}
    )
    return {
        str(name).removeprefix("llm_provider-"): str(value) for name, value in dict(kept).items()
    }


def _with_refusals(data: dict[str, Any]) -> dict[str, Any]:
    """*data* with the text of a refusal where providers have it, from where litellm puts it."""
    for choice in data.get("choices") or ():
        message = choice.get("message") or {}
        fields = message.get("provider_specific_fields") or {}
        message.setdefault("refusal", fields.get("refusal"))
    return data


def _policy(kinds: set[str], status: int | None, detail: str) -> str | None:
    """Return the word by which a content policy refused the request; None where none did."""
    policy = None
    if status is not None:
        policy = policy_refusal(status, detail)
    if policy is None and "ContentPolicyViolationError" in kinds:
        return "content_policy_violation"
    return policy


def _evidence(kinds: set[str], status: int | None, detail: str) -> Evidence:
    """Return what errors of these *kinds* are evidence of."""
    if kinds & _UNCONNECTED and not kinds & _CONNECTED:
        return Evidence.NOT_SENT
    if status is None:
        return Evidence.NO_RESPONSE
    return evidence_of(status, detail)


def _chain(error: BaseException) -> tuple[set[str], str]:
    """The classes of *error* and of all that it came from, and what they say."""
    stack: list[BaseException | None] = [error]
    seen: dict[int, BaseException] = {}
    while stack:
        cause = stack.pop()
        if cause is not None and id(cause) not in seen:
            seen[id(cause)] = cause
            stack += (cause.__cause__, cause.__context__)
    kinds: set[str] = set()
    texts = []
    for cause in seen.values():
        kinds.update(kind.__name__ for kind in type(cause).__mro__)
        texts.append(f"{cause} {getattr(cause, 'body', '')} {getattr(cause, 'code', '')}")
    return kinds, " ".join(texts)


def load_litellm() -> Any:
    """The module, imported once; blocking, for some seconds the first time."""
    with _loading, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        added = [name for name in _AT_IMPORT if name not in os.environ]
        os.environ.update({name: _AT_IMPORT[name] for name in added})
        try:
            litellm = importlib.import_module("litellm")
        finally:
            for name in added:
                os.environ.pop(name, None)
        # Otherwise every error prints an invitation to give feedback to standard output.
        litellm.suppress_debug_info = True  # type: ignore[attr-defined]
        for name in _TALKATIVE:
            logger = logging.getLogger(name)
            if logger.level == logging.NOTSET or name == "LiteLLM":
                logger.setLevel(logging.ERROR)
        return litellm
