"""Anthropic's Message Batches API: all requests in one body, one file of results.

Format: https://docs.anthropic.com/en/docs/build-with-claude/batch-processing. Requests that errored, expired or were
canceled are not billed (same page). A batch bears no mark of ours, so one whose identifier was lost is recognised by
the identifiers of its requests.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from pytest_fairness.endpoints.batch_http import Answer, Asks, BatchHttp, count, id_in, result_lines, unix_time
from pytest_fairness.endpoints.batch_protocol import Asked, BatchOptions, BatchState, NotSettledError, Result
from pytest_fairness.endpoints.http import message_of
from pytest_fairness.endpoints.protocol import AttemptError, Evidence
from pytest_fairness.endpoints.redaction import safe_url

_VERSION = "2023-06-01"
_PAGE = 100
_SKEW = 3600.0
_COUNTED = ("processing", "succeeded", "errored", "canceled", "expired")
#: What an error in a result would have been as a response of its own
#: (https://docs.anthropic.com/en/api/errors).
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicBatches(BatchHttp):
    """*base_url* has ``/v1/messages/batches`` under it."""

    def __init__(self, asks: Asks, *, base_url: str, options: BatchOptions, api_key_env: str | None) -> None:
        super().__init__(
            asks,
            options=options,
            api_key_env=api_key_env,
            authorise=lambda key: {"x-api-key": key},
            headers={"anthropic-version": _VERSION},
        )
        self._url = f"{base_url.rstrip('/')}/v1/messages/batches"

    def encode(self, asked: Sequence[Asked]) -> list[bytes]:
        """One each: ``{"custom_id", "params"}``, the parameters as they would be sent alone."""
        return [
            b'{"custom_id": %b, "params": %b}' % (json.dumps(one.custom_id).encode("ascii"), one.body) for one in asked
        ]

    async def upload(self, lines: Sequence[bytes], tag: str) -> None:
        """Nothing: the requests go out with the batch."""

    async def submit(self, lines: Sequence[bytes], tag: str, file: str | None) -> BatchState:  # noqa: ARG002 - as the protocol has it
        """Make the batch."""
        body = b'{"requests": [%b]}' % b", ".join(lines)
        return self._state(await self.call("POST", self._url, body))

    async def find(self, tag: str, *, file: str | None, requests: int, since: float) -> BatchState | None:  # noqa: ARG002 - as the protocol has it
        """Among the batches since then with as many requests, the one whose results bear the tag."""
        after, unsettled = "", False
        while True:
            query = f"?limit={_PAGE}" + (f"&after_id={quote(after, safe='')}" if after else "")
            answer = await self.call("GET", self._url + query)
            listed = answer.data.get("data")
            if not isinstance(listed, list):
                raise AttemptError(
                    f"endpoint {self._asks.name!r}: the list of batches holds no data", evidence=Evidence.NO_RESPONSE
                )
            oldest = since
            for one in (one for one in listed if isinstance(one, dict)):
                created = unix_time(one.get("created_at"))
                oldest = since if created is None else created
                if oldest < since - _SKEW or _total(one) != requests:
                    continue
                state = self._state(Answer(one, answer.wire))
                if not state.ended:
                    unsettled = True
                elif await self._bears(tag, state):
                    return state
            last = answer.data.get("last_id")
            if oldest < since - _SKEW or not answer.data.get("has_more") or not isinstance(last, str) or last == after:
                break
            after = last
        if unsettled:
            raise NotSettledError
        return None

    async def _bears(self, tag: str, state: BatchState) -> bool:
        return any((result.custom_id or "").startswith(tag) for result in await self.results(state))

    async def state(self, batch: str) -> BatchState:
        """See :class:`~.batch_protocol.BatchApi`."""
        return self._state(await self.call("GET", self._one(batch)))

    def _state(self, answer: Answer) -> BatchState:
        status, total = self.text(answer, "processing_status"), _total(answer.data)
        counts = answer.data.get("request_counts")
        processing = count(counts.get("processing")) if isinstance(counts, dict) else 0
        batch, ended = self.text(answer, "id"), status == "ended"
        return BatchState(
            id=batch,
            status=status,
            ended=ended,
            done=total - processing,
            total=total,
            # Not the address that is given in the answer: a key goes nowhere but to base_url.
            results=(f"{self._one(batch)}/results",) if ended else (),
            wire=answer.wire,
        )

    async def results(self, state: BatchState) -> list[Result]:
        """The lines of the results."""
        found: list[Result] = []
        for url in state.results:
            exchange = await self.exchange("GET", url)
            found += (self._result(line, data) for line, data in result_lines(exchange.received.data))
        return found

    def _result(self, line: str, data: dict[str, Any] | None) -> Result:
        custom_id = id_in(data)
        if data is None or custom_id is None:
            return Result(custom_id=None, line=line)
        result = data.get("result")
        kind = result.get("type") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(kind, str):
            return self.malformed(custom_id, line, "holds no result")
        if kind == "succeeded":
            return self.answered(custom_id, line, result.get("message"))
        if kind == "errored":
            return self.failed(custom_id, line, _status_of(result.get("error")), result.get("error"))
        if kind in ("expired", "canceled"):
            came = "it expired" if kind == "expired" else "the batch was canceled"
            return self.never_asked(custom_id, line, f"not asked: {came}", f"batch_{kind}")
        return self.malformed(custom_id, line, f"is of an unknown type: {message_of(json.dumps(kind))}")

    def _one(self, batch: str) -> str:
        return f"{self._url}/{quote(batch, safe='')}"

    def how_to_cancel(self, batch: str) -> str:
        """See :class:`~.batch_protocol.BatchApi`."""
        return f"POST {safe_url(f'{self._one(batch)}/cancel')}"


def _total(data: dict[str, Any]) -> int:
    counts = data.get("request_counts")
    return sum(count(counts.get(name)) for name in _COUNTED) if isinstance(counts, dict) else 0


def _status_of(error: object) -> int:
    """Errors come as ``{"type": "error", "error": {"type": …}}``, in some versions without the outer object."""
    inner = error.get("error") if isinstance(error, dict) else None
    kinds = [one.get("type") for one in (inner, error) if isinstance(one, dict)]
    return next((_STATUS[kind] for kind in kinds if kind in _STATUS), 500)
