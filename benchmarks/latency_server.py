"""A chat server that answers after a fixed time and does nothing else: what a benchmark of clients
needs.

Run: python benchmarks/latency_server.py SECONDS     (prints its port, then serves until it is
killed)

It speaks just enough HTTP/1.1 for chat completions as OpenAI, Azure, Anthropic and Ollama shape
them, with keep-alive, over asyncio's own transports, so that the server's share of the time stays
far below the client's. ``GET /served`` tells how many completions it has given and how many were
under way at most.
"""

from __future__ import annotations

import asyncio
import json
import sys

TEXT = (
    "Thank you for your interest. The candidate brings solid experience, works carefully and with "
    "others, and has "
    "our recommendation for the position."
)
OPENAI = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "gpt-4o-mini",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 20, "completion_tokens": 30, "total_tokens": 50},
}
ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5-20250929",
    "content": [{"type": "text", "text": TEXT}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 20, "output_tokens": 30},
}
OLLAMA = {
    "model": "llama3",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": TEXT},
    "done_reason": "stop",
    "done": True,
    "prompt_eval_count": 20,
    "eval_count": 30,
}


def _response(body: object) -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


_BY_PATH = {b"/v1/messages": _response(ANTHROPIC), b"/api/chat": _response(OLLAMA)}
_OPENAI = _response(OPENAI)


class Chat(asyncio.Protocol):
    """One connection. Requests are answered in the order in which they came."""

    served = 0
    now = 0
    most = 0
    latency = 0.2

    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            at = head.find(b"content-length:")
            length = 0 if at < 0 else int(head[at + 15 :].split(b"\r\n", 1)[0])
            if len(self._buffer) < end + 4 + length:
                if b"expect: 100-continue" in head and self._transport is not None:
                    self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            path = self._buffer.split(b" ", 2)[1].split(b"?", 1)[0]
            self._buffer = self._buffer[end + 4 + length :]
            self._answer(path)

    def _answer(self, path: bytes) -> None:
        if path == b"/served":
            self._write(_response({"served": Chat.served, "most": Chat.most}))
            return
        Chat.now += 1
        Chat.most = max(Chat.most, Chat.now)
        asyncio.get_running_loop().call_later(
            self.latency, self._complete, _BY_PATH.get(path, _OPENAI)
        )

    def _complete(self, response: bytes) -> None:
        Chat.now -= 1
        Chat.served += 1
        self._write(response)

    def _write(self, response: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(response)


async def serve(latency: float) -> None:
    Chat.latency = latency
    server = await asyncio.get_running_loop().create_server(Chat, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
