"""Anthropic, Azure and every other provider, through litellm: it builds the request, we do the rest.

litellm gets our HTTP client, no retries, no fallbacks, no dropped parameters. What became of an attempt is
read off the wire, not off litellm's exceptions, which call a refused connection, a broken body and bad JSON
all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_fairness.endpoints.batch_api import BatchApi, refuse_one_by_one
from pytest_fairness.endpoints.chat_reply import Parsed, read_object
from pytest_fairness.endpoints.config import EndpointConfig
from pytest_fairness.endpoints.exchange import Sender
from pytest_fairness.endpoints.keys import read_key, refuse_rerouting, remember_environment
from pytest_fairness.endpoints.litellm_loading import check_installed, load_litellm, quieten
from pytest_fairness.endpoints.litellm_routes import Route
from pytest_fairness.endpoints.parameters import merged_parameters
from pytest_fairness.endpoints.protocol import AttemptError, CutOff, Evidence, Price, Reply, Request
from pytest_fairness.endpoints.redaction import redact, remember, safe_url
from pytest_fairness.model import JSON, Message, Status

if TYPE_CHECKING:
    from pytest_fairness.endpoints.litellm_clients import Watch

_CONCURRENCY = 16
AZURE_VERSION = "2024-10-21"
_NO_KEY = "none"
#: The discard port: nobody listens there.
_NOWHERE = "http://127.0.0.1:9"
#: litellm's own timeout is for each read and restarts with every byte; the deadline of an attempt is the
#: engine's.
_NO_TIMEOUT = 86_400.0


class LiteLLMEndpoint:
    """One provider's model. Raises MissingExtra if litellm is not installed; imports it on the first question."""

    simulated = False
    announces_leaving = True

    def __init__(self, config: EndpointConfig, route: Route) -> None:
        check_installed(f"endpoint {config.name!r} (type {config.type})")
        self.name = config.name
        self.type = config.type
        self.supports_system_prompt = config.supports_system_prompt
        self.default_parameters: Mapping[str, JSON] = dict(config.default_parameters)
        self.price: Price | None = config.price
        self.batches: BatchApi | None = None
        self._config = config
        self._route = route
        self._model = route.model(config.model or "")
        self._base_url = route.base_url(config.base_url)
        self._api_version = config.api_version or AZURE_VERSION
        self._sender = Sender(concurrency=config.concurrency or _CONCURRENCY)
        self._kind = route.client
        self._client: Any = None
        self._client_key: str | None = None
        self._lock: asyncio.Lock | None = None
        self._litellm: Any = None
        if self._base_url is None:
            refuse_rerouting(self._model.partition("/")[0], self.name)
        # litellm finds keys in the environment by itself; whatever it finds must not be written down.
        remember_environment()

    def identity(self) -> dict[str, JSON]:
        identity: dict[str, JSON] = {
            "type": self.type,
            "via": "litellm",
            "model": self._model,
            "base_url": safe_url(self._base_url) if self._base_url else None,
            "parameters": dict(self.default_parameters),
        }
        if self._route.client == "azure" or self._config.api_version:
            identity["api_version"] = self._api_version
        return identity

    async def ask(self, request: Request) -> Reply:
        refuse_one_by_one(self)
        key = read_key(self._config.api_key_env, self.name)
        parameters = self._parameters(request)
        litellm = await self._load()
        watched, normalised, said = await self._complete(
            litellm, key, request.messages, parameters, leaving=request.leaving
        )
        if not watched.exchanges:
            raise AttemptError(f"endpoint {self.name!r}: nothing was sent: {said}", evidence=Evidence.AUTH)
        exchange = watched.exchanges[0]
        failed = exchange.failure(self.name)
        return failed or self._route.read(exchange.received.data, normalised).reply(exchange.wire())

    def _parameters(self, request: Request) -> dict[str, JSON]:
        """All parameters of *request*. Raises AttemptError where it cannot be sent as it is."""
        parameters = merged_parameters(self, request.parameters)
        if not self._route.empty_messages and not all(m.content.strip() for m in request.messages):
            raise AttemptError(
                f"endpoint {self.name!r}: {self.type} takes no empty message, and litellm would send a text of its "
                "own in its place; nothing was sent",
                evidence=Evidence.REJECTED,
            )
        return parameters

    async def body(self, request: Request) -> bytes:
        """The body that litellm makes of *request*, which is not sent. Raises AttemptError where it makes none."""
        parameters = self._parameters(request)
        litellm = await self._load()
        watched, _, said = await self._complete(litellm, None, request.messages, parameters, rehearsal=True)
        if not watched.exchanges:
            raise AttemptError(f"endpoint {self.name!r}: nothing can be sent: {said}", evidence=Evidence.AUTH)
        return watched.exchanges[0].body

    def read(self, body: bytes) -> Parsed:
        """What the body of a successful response says, where its format is known without litellm."""
        return self._route.read(body, None)

    async def _complete(
        self,
        litellm: Any,
        key: str | None,
        messages: Sequence[Message],
        parameters: Mapping[str, JSON],
        *,
        rehearsal: bool = False,
        leaving: Callable[[], None] | None = None,
    ) -> tuple[Watch, Mapping[str, Any] | None, str]:
        """What was sent, what litellm made of the answer, and what it said if it made nothing of it."""
        from pytest_fairness.endpoints.litellm_clients import Watch, watch

        watched = Watch(usable=self._usable, rehearsal=rehearsal, leaving=leaving)
        token = watch.set(watched)
        try:
            quieten()
            call = self._call(litellm, key, messages, parameters)
            if rehearsal:
                call |= {"api_base": _NOWHERE, "api_key": _NO_KEY}
            response = await litellm.acompletion(**call)
            return watched, response.model_dump(), ""
        except asyncio.CancelledError:
            if not watched.exchanges:
                raise CutOff(evidence=Evidence.NOT_SENT) from None
            # Whatever litellm makes of what was raised within it: how far the request came is known.
            exchange = watched.exchanges[0]
            raise CutOff(evidence=exchange.evidence, wire=exchange.wire()) from None
        except Exception as error:  # noqa: BLE001 - what happened is read off the wire, not off the exception
            return watched, None, redact(f"{type(error).__name__}: {error}")
        finally:
            watch.reset(token)

    def _usable(self, body: bytes) -> bool:
        """Whether there is an answer in *body*, as far as can be told without litellm."""
        if self._route.client == "either":
            return not isinstance(read_object(body), Parsed)
        return self._route.read(body, None).status not in (Status.MALFORMED, Status.ERROR)

    async def prepare(self) -> None:
        """Import litellm, and have it import what it imports at its first call: seconds, both of them."""
        await self._load()

    async def aclose(self) -> None:
        self._client = None
        await self._sender.aclose()
        if self.batches is not None:
            await self.batches.aclose()

    async def _load(self) -> Any:
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if self._litellm is None:
                # In a thread: the import takes seconds, and other attempts have deadlines to keep.
                try:
                    litellm = await asyncio.to_thread(load_litellm)
                except asyncio.CancelledError:
                    raise CutOff(evidence=Evidence.NOT_SENT) from None
                except Exception as error:
                    said = redact(f"{type(error).__name__}: {error}")
                    raise AttemptError(
                        f"endpoint {self.name!r}: litellm is installed and cannot be imported ({said}); install it "
                        "again: pip install --force-reinstall 'pytest-fairness[llm]'",
                        evidence=Evidence.AUTH,
                    ) from error
                await self._rehearse(litellm)
                self._litellm = litellm
        return self._litellm

    async def _rehearse(self, litellm: Any) -> None:
        """A first call that is not sent: the next one need not wait for what litellm imports at its first.

        It also finds out which kind of client litellm takes for a provider: which one it is, is its own secret. For
        some providers it takes none: it then retries and follows redirects on its own, and nothing of it can be logged.
        The rehearsal goes to an address where nobody listens, without a key.
        """
        if self._route.client != "either":
            await self._complete(litellm, None, (Message("user", "-"),), {}, rehearsal=True)
            self._client = None
            return
        said = ""
        for kind in ("http", "openai"):
            self._client, self._kind = None, kind
            watched, _, said = await self._complete(litellm, None, (Message("user", "-"),), {}, rehearsal=True)
            self._client = None
            if watched.exchanges:
                return
        raise AttemptError(
            f"endpoint {self.name!r}: litellm does not send {self._model!r} through the client that it is given, "
            "so that nothing could be logged or kept from being sent twice; use the provider's OpenAI-compatible "
            f"address with type: openai, or write an endpoint type of your own ({said})",
            evidence=Evidence.AUTH,
        )

    def _call(
        self, litellm: Any, key: str | None, messages: Sequence[Message], parameters: Mapping[str, JSON]
    ) -> dict[str, Any]:
        placeholder = self._route.placeholder or self._base_url is not None
        api_key = key or (_NO_KEY if placeholder else None)
        call: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "client": self._client_for(litellm, api_key),
            "max_retries": 0,
            "num_retries": 0,
            "timeout": _NO_TIMEOUT,
            "drop_params": False,
            "stream": False,
            "no-log": True,
            **parameters,
        }
        if self._base_url is not None:
            call["api_base"] = self._base_url
        if api_key is not None:
            call["api_key"] = api_key
        if self._route.client == "azure" or self._config.api_version:
            call["api_version"] = self._api_version
        return call

    def _client_for(self, litellm: Any, api_key: str | None) -> Any:
        from pytest_fairness.endpoints import litellm_clients as clients

        if self._client is None or self._client_key != api_key:
            self._client_key = api_key
            match self._kind:
                case "openai":
                    found_key, base_url = self._found(litellm, api_key)
                    self._client = clients.openai_client(self._sender, api_key=found_key or _NO_KEY, base_url=base_url)
                case "azure":
                    self._client = clients.azure_client(
                        self._sender,
                        api_key=api_key or _NO_KEY,
                        base_url=self._base_url or "",
                        api_version=self._api_version,
                    )
                case _:
                    self._client = clients.http_client(self._sender)
        return self._client

    def _found(self, litellm: Any, api_key: str | None) -> tuple[str | None, str | None]:
        """The key and the address that litellm knows for the provider."""
        _, _, key, base_url = litellm.get_llm_provider(model=self._model, api_base=self._base_url, api_key=api_key)
        remember(key)
        return api_key or key, base_url or self._base_url
