"""Make the :class:`~pytest_fairness.endpoints.protocol.Wire` of an exchange: verbatim, bounded, without secrets."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping

from pytest_fairness.endpoints.protocol import Wire
from pytest_fairness.endpoints.redaction import (
    REQUEST_HEADERS,
    RESPONSE_HEADERS,
    redact_values,
    safe_headers,
    safe_url,
)
from pytest_fairness.model import JSON

#: Bytes of a response that are read and kept. A chat reply is thousands; a megabyte is already an attack or a
#: fault.
MAX_RESPONSE_BYTES = 8_000_000

_ENCODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


def encode_json(payload: JSON | Mapping[str, JSON]) -> bytes:
    """*payload* as the bytes of a JSON body. Text stays readable, unless half a surrogate pair forbids UTF-8."""
    try:
        return json.dumps(payload, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(payload, ensure_ascii=True).encode("ascii")


def make_wire(
    *,
    url: str,
    request_body: bytes,
    request_headers: Mapping[str, str],
    status_code: int | None = None,
    response_headers: Mapping[str, str] | None = None,
    response_body: bytes = b"",
    truncated: bool = False,
) -> Wire:
    """The record of one exchange, as far as it got."""
    return Wire(
        url=safe_url(url),
        request_body=redact_values(request_body.decode("utf-8", "surrogateescape")),
        request_headers=safe_headers(request_headers, REQUEST_HEADERS),
        status_code=status_code,
        response_headers=safe_headers(response_headers or {}, RESPONSE_HEADERS),
        response_body=redact_values(response_body.decode("utf-8", "surrogateescape")),
        truncated=truncated,
    )


class BoundedBody:
    """Takes the chunks of a response, unpacks them if the server packed them unasked, and stops at a limit.

    A few kilobytes of gzip can unpack to gigabytes, so unpacking goes no further than what may be kept.
    """

    def __init__(self, content_encoding: str | None, limit: int = MAX_RESPONSE_BYTES) -> None:
        encoding = (content_encoding or "identity").strip().lower()
        self._unpack = zlib.decompressobj(_ENCODINGS[encoding]) if encoding in _ENCODINGS else None
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self.readable = encoding == "identity" or self._unpack is not None
        self.full = False

    def feed(self, chunk: bytes) -> bool:
        """Take *chunk*; ``False`` once the limit is reached and no more need be read."""
        room = self._limit - self._size
        if self._unpack is not None:
            try:
                chunk = self._unpack.decompress(chunk, room + 1)
            except zlib.error:
                self.readable = False
                self._unpack = None
        if len(chunk) > room:
            chunk, self.full = chunk[:room], True
        self._parts.append(chunk)
        self._size += len(chunk)
        return not self.full

    @property
    def data(self) -> bytes:
        return b"".join(self._parts)
