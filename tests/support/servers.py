"""A real HTTP server on 127.0.0.1 that speaks as OpenAI, Anthropic, Ollama and Azure do, with
faults on demand.

It answers with the simulated endpoint, so that a bias planted there is found again over the wire.
``requests`` is its own log: what arrived, when, and whether it was billed.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

from aiohttp import web

from pytest_fairness.endpoints.protocol import Reply, Request
from pytest_fairness.endpoints.simulated import SimulatedEndpoint, simulated_endpoint
from pytest_fairness.model import Message, Status

OPENAI, ANTHROPIC, OLLAMA, AZURE = "openai", "anthropic", "ollama", "azure"
#: An application of somebody's own: JSON in, JSON out, in no provider's shape.
APPLICATION = "application"
#: The address leads nowhere.
NOWHERE = "nowhere"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens to one request instead of a good answer; without any argument, a good answer.

    ``body``: bytes or text as they are, anything else as JSON; ``None`` is the good body.
    ``delay``: seconds before the first byte. ``reset``: the connection is reset before any byte;
    ``cut``: after this many bytes of the body, of which the header promised all. ``drip``: seconds
    between the bytes of the body, of the status line and the headers too with ``drip_headers``.
    ``hang``: never an answer.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    delay: float = 0.0
    reset: bool = False
    cut: int | None = None
    drip: float | None = None
    drip_headers: bool = False
    hang: bool = False


@dataclass(kw_only=True)
class Received:
    """One request as it arrived; ``billed`` if a success was sent for it, whole or in part.

    ``answer`` is what was sent of the body in return, ``whole`` once that is all of it; ``tokens``
    are those that are billed: as the answer itself counts them where it does so credibly, else as
    the model did.
    """

    flavour: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    time: float
    billed: bool
    answer: bytes = b""
    whole: bool = False
    tokens: tuple[int, int] = (0, 0)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def prompt(self) -> str:
        """The last message."""
        content = self.json["messages"][-1]["content"]
        return content if isinstance(content, str) else "".join(part["text"] for part in content)


class ModelServer:
    """``with ModelServer() as server:`` then ask at ``server.openai_url`` and look at
    ``server.requests``.
    """

    def __init__(
        self,
        endpoint: SimulatedEndpoint | None = None,
        *,
        signals: Mapping[str, Mapping[str, str]] | None = None,
        latency: float = 0.0,
        model: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.endpoint = endpoint or simulated_endpoint()
        self.signals = dict(signals or {})
        self.latency = latency
        self.model = model
        self.requests: list[Received] = []
        #: Met by every request that nothing scripted awaits: this, or what it says of the body.
        self.always: Fault | None = None
        self.meet: Callable[[str], Fault | None] = lambda _: self.always
        self._queue: deque[Fault | None] = deque()
        self._seen: Counter[bytes] = Counter()
        self._host, self.port = host, port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._ended: asyncio.Event | None = None
        self._error: BaseException | None = None

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self.port}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def billed(self) -> int:
        return sum(request.billed for request in self.requests)

    def then(self, *faults: Fault | None) -> None:
        """The next requests meet these, in this order."""
        self._queue.extend(faults)

    def forget(self) -> None:
        """Answer as if nothing had been asked before: each conversation's first repetition comes
        next.
        """
        self._seen.clear()

    # ------------------------------------------------------------ life

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)
        self._thread.start()
        self._started.wait(10)
        if self._error is not None:
            raise self._error
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._ended is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
        if self._thread is not None:
            self._thread.join(10)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for the server
            self._error = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=64 * 2**20)
        self._add_routes(app)
        for path, flavour in _ROUTES.items():
            app.router.add_route("*", path, partial(self._answer, flavour))
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True
        )
        await runner.setup()
        site = web.TCPSite(runner, self._host, self.port, backlog=1024)
        await site.start()
        server = site._server
        assert isinstance(server, asyncio.Server)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._ended.wait()
        await runner.cleanup()

    def _add_routes(self, app: web.Application) -> None:
        """Further addresses, of servers built on this one."""

    # ------------------------------------------------------------ answering

    async def _answer(self, flavour: str, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        fault = self._next(body) or Fault()
        billed = (
            flavour != NOWHERE and 200 <= fault.status < 300 and not (fault.reset or fault.hang)
        )
        received = Received(
            flavour=flavour,
            path=request.path,
            query=request.query_string,
            headers={name.lower(): value for name, value in request.headers.items()},
            body=body,
            time=time.monotonic(),
            billed=billed,
        )
        self.requests.append(received)
        if fault.hang:
            await asyncio.sleep(3600)
        await asyncio.sleep(self.latency + fault.delay)
        if fault.reset:
            return self._reset(request)
        if fault.drip_headers:
            return await self._drip_headers(request, fault.drip or 0.05)
        if flavour == NOWHERE and fault.body is None:
            return web.json_response(
                {"error": {"message": f"no such path: {request.path}"}}, status=404
            )
        data = self._body(flavour, fault, body, request)
        if billed:
            received.tokens = self._billed_tokens(data, body)
        if fault.cut is None and fault.drip is None:
            headers = {"Content-Type": "application/json", **fault.headers}
            received.answer, received.whole = data, True
            return web.Response(status=fault.status, headers=headers, body=data)
        return await self._slowly(fault, data, request, received)

    def _next(self, body: bytes) -> Fault | None:
        return self._queue.popleft() if self._queue else self.meet(body.decode("utf-8", "replace"))

    def _reset(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        connection: socket.socket = transport.get_extra_info("socket")
        # Without lingering, closing sends RST instead of FIN.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
        raise asyncio.CancelledError

    async def _drip_headers(self, request: web.Request, pause: float) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        for byte in (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Filler: " + b"x" * 10_000
        ):
            if transport.is_closing():
                break
            transport.write(bytes([byte]))
            await asyncio.sleep(pause)
        raise asyncio.CancelledError

    async def _slowly(
        self, fault: Fault, data: bytes, request: web.Request, received: Received
    ) -> web.StreamResponse:
        headers = {"Content-Type": "application/json", **fault.headers}
        response = web.StreamResponse(status=fault.status, headers=headers)
        response.content_length = len(data)
        await response.prepare(request)
        sent = data if fault.cut is None else data[: fault.cut]
        if fault.drip is not None:
            for number in range(len(sent)):
                await response.write(sent[number : number + 1])
                received.answer = sent[: number + 1]
                await asyncio.sleep(fault.drip)
        else:
            await response.write(sent)
            received.answer = sent
        if fault.cut is not None:
            await asyncio.sleep(0.05)  # let the bytes leave before the connection goes
            return self._reset(request)
        await response.write_eof()
        received.whole = True
        return response

    def _billed_tokens(self, data: bytes, body: bytes) -> tuple[int, int]:
        """What the provider bills: the counts that it sent where they are counts, else those of the
        model.
        """
        try:
            usage = json.loads(data)
            usage = usage.get("usage", usage)
            counted = [usage[name] for names in _COUNTS for name in names if name in usage]
        except (ValueError, AttributeError, TypeError, RecursionError):
            counted = []
        if len(counted) == 2 and all(
            type(count) is int and 0 < count < 1_000_000 for count in counted
        ):
            return counted[0], counted[1]
        return len(body) // 8, 1

    def _body(self, flavour: str, fault: Fault, body: bytes, request: web.Request) -> bytes:
        if fault.body is not None:
            if isinstance(fault.body, bytes):
                return fault.body
            text = fault.body if isinstance(fault.body, str) else json.dumps(fault.body)
            return text.encode("utf-8", "surrogatepass")
        if not 200 <= fault.status < 300:
            return json.dumps(
                {"error": {"message": f"scripted {fault.status}", "type": "scripted"}}
            ).encode()
        payload = (
            json.loads(body)
            if body
            else {"messages": [{"role": "user", "content": request.query["letter"]}]}
        )
        if flavour == APPLICATION and "messages" not in payload:
            payload["messages"] = [{"role": "user", "content": payload["letter"]["about"]}]
        model = (
            self.model or payload.get("model") or request.match_info.get("deployment", "deployment")
        )
        return json.dumps(_RENDER[flavour](self._reply(payload), model)).encode()

    def _reply(self, payload: dict[str, Any]) -> Reply:
        messages = [Message(m["role"], _text(m["content"])) for m in payload["messages"]]
        if "system" in payload:
            messages.insert(0, Message("system", _text(payload["system"])))
        key = repr(messages).encode()
        # The wire does not carry the repetition: the same conversation asked again is the next one.
        repetition = self._seen[key]
        self._seen[key] += 1
        parameters = {"temperature": payload["temperature"]} if "temperature" in payload else {}
        schema = _schema(payload)
        if schema is not None:
            parameters["response_format"] = {"json_schema": {"schema": schema}}
        return self.endpoint.reply(
            Request(
                messages=tuple(messages),
                parameters=parameters,
                repetition=repetition,
                signals=self.signals,
            )
        )


def _schema(payload: dict[str, Any]) -> Any:
    """The JSON schema that is asked for, as OpenAI, Ollama or Anthropic call it."""
    if "response_format" in payload:
        return payload["response_format"]["json_schema"]["schema"]
    if "output_config" in payload:
        return payload["output_config"]["format"]["schema"]
    return payload.get("format")


_COUNTS = (
    ("prompt_tokens", "input_tokens", "prompt_eval_count"),
    ("completion_tokens", "output_tokens", "eval_count"),
)


def _text(content: Any) -> str:
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )


def _tokens(reply: Reply) -> tuple[int, int]:
    assert reply.usage is not None
    return reply.usage.input_tokens or 0, reply.usage.output_tokens or 0


def openai_body(reply: Reply, model: str) -> dict[str, Any]:
    """A chat completion."""
    refused = reply.status is Status.REFUSED
    sent, got = _tokens(reply)
    words = (
        {"content": None, "refusal": reply.text}
        if refused
        else {"content": reply.text, "refusal": None}
    )
    choice = {
        "index": 0,
        "message": {"role": "assistant", **words},
        "finish_reason": "stop",
        "logprobs": None,
    }
    usage = {"prompt_tokens": sent, "completion_tokens": got, "total_tokens": sent + got}
    about = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model}
    return {**about, "choices": [choice], "usage": usage}


def anthropic_body(reply: Reply, model: str) -> dict[str, Any]:
    """An answer of the Messages API."""
    sent, got = _tokens(reply)
    stop = {
        "stop_reason": "refusal" if reply.status is Status.REFUSED else "end_turn",
        "stop_sequence": None,
    }
    about = {"id": "msg_1", "type": "message", "role": "assistant", "model": model}
    content = [{"type": "text", "text": reply.text}]
    return {
        **about,
        "content": content,
        **stop,
        "usage": {"input_tokens": sent, "output_tokens": got},
    }


def ollama_body(reply: Reply, model: str) -> dict[str, Any]:
    """An answer of Ollama's own chat."""
    sent, got = _tokens(reply)
    about = {
        "model": model,
        "created_at": "2026-01-01T00:00:00Z",
        "done": True,
        "done_reason": "stop",
    }
    message = {"role": "assistant", "content": reply.text}
    return {**about, "message": message, "prompt_eval_count": sent, "eval_count": got}


def application_body(reply: Reply, model: str) -> dict[str, Any]:
    """An answer of somebody's own application: a letter in two parts, and what it cost."""
    sent, got = _tokens(reply)
    text = reply.text or ""
    return {
        "letter": {"parts": [{"text": text[:9]}, {"text": text[9:]}], "text": text},
        "blocked": reply.status is Status.REFUSED,
        "meta": {"model": model, "stop": "done", "in": sent, "out": got, "dollars": 0.002},
    }


_ROUTES = {
    "/v1/chat/completions": OPENAI,
    "/chat/completions": OPENAI,
    "/v1/messages": ANTHROPIC,
    "/api/chat": OLLAMA,
    "/openai/deployments/{deployment}/chat/completions": AZURE,
    "/letters/write": APPLICATION,
    "/{rest:.*}": NOWHERE,
}
_RENDER: dict[str, Callable[[Reply, str], dict[str, Any]]] = {
    OPENAI: openai_body,
    AZURE: openai_body,
    ANTHROPIC: anthropic_body,
    OLLAMA: ollama_body,
    APPLICATION: application_body,
}
