"""OpenAI's batch API, and Azure's: a file of requests, a batch made of it, two files of results.

Formats: https://platform.openai.com/docs/guides/batch and
https://learn.microsoft.com/azure/ai-services/openai/how-to/batch.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from pytest_fairness.endpoints.batch_http import (
    Answer,
    Asks,
    BatchHttp,
    count,
    id_in,
    multipart,
    result_lines,
    unix_time,
)
from pytest_fairness.endpoints.batch_protocol import Asked, BatchOptions, BatchState, LineError, Result
from pytest_fairness.endpoints.http import message_of
from pytest_fairness.endpoints.protocol import AttemptError, Evidence
from pytest_fairness.endpoints.redaction import safe_url

_ENDED = frozenset(("completed", "failed", "expired", "cancelled"))
#: Azure looks at a file for a while before a batch can be made of it.
_FILE_UNDER_WAY = frozenset(("pending", "running"))
_METADATA = "pytest_fairness_batch"
_PAGE = 100
#: Seconds by which the provider's clock may be behind ours.
_SKEW = 3600.0
#: Codes of errors that say only that too much is waiting already.
_FULL = ("token_limit_exceeded", "rate_limit_exceeded", "too_many_batches")


class OpenAIBatches(BatchHttp):
    """*base_url* has ``/files`` and ``/batches`` under it; *query* is appended to each address; *path* is what each
    line is sent to.
    """

    def __init__(
        self,
        asks: Asks,
        *,
        base_url: str,
        options: BatchOptions,
        api_key_env: str | None,
        path: str = "/v1/chat/completions",
        query: str = "",
        azure: bool = False,
    ) -> None:
        super().__init__(
            asks,
            options=options,
            api_key_env=api_key_env,
            authorise=(lambda key: {"api-key": key}) if azure else (lambda key: {"Authorization": f"Bearer {key}"}),
        )
        self._base_url = base_url.rstrip("/")
        self._path = path
        self._query = query

    def _url(self, path: str, query: str = "") -> str:
        joined = "&".join(part for part in (self._query, query) if part)
        return f"{self._base_url}{path}{'?' if joined else ''}{joined}"

    def encode(self, asked: Sequence[Asked]) -> list[bytes]:
        """A line each: ``{"custom_id", "method", "url", "body"}``, the body as it would be sent alone."""
        head = f'"method": "POST", "url": {json.dumps(self._path)}'.encode("ascii")
        return [
            b'{"custom_id": %b, %b, "body": %b}' % (json.dumps(one.custom_id).encode("ascii"), head, one.body)
            for one in asked
        ]

    async def upload(self, lines: Sequence[bytes], tag: str) -> str:
        """Put the input there, and wait until it can be used."""
        body, kind = multipart({"purpose": "batch"}, f"{tag}.jsonl", b"\n".join(lines) + b"\n")
        answer = await self.call("POST", self._url("/files"), body, kind)
        file = self.text(answer, "id")
        while answer.data.get("status") in _FILE_UNDER_WAY:
            await asyncio.sleep(min(5.0, self.options.poll_seconds))
            answer = await self.call("GET", self._url(f"/files/{_part(file)}"))
        if answer.data.get("status") == "error":
            said = message_of(json.dumps(answer.data.get("status_details") or "the file was refused"))
            raise AttemptError(
                f"endpoint {self._asks.name!r}: the input: {said}", evidence=Evidence.REJECTED, wire=answer.wire
            )
        return file

    async def submit(self, lines: Sequence[bytes], tag: str, file: str | None) -> BatchState:  # noqa: ARG002 - as the protocol has it
        """Make a batch of the file. Its metadata name the tag, by which it is found again."""
        data = {
            "input_file_id": file,
            "endpoint": self._path,
            "completion_window": "24h",
            "metadata": {_METADATA: tag},
        }
        return self._state(await self.call("POST", self._url("/batches"), json.dumps(data).encode("ascii")))

    async def find(self, tag: str, *, file: str | None, requests: int, since: float) -> BatchState | None:  # noqa: ARG002 - as the protocol has it
        """By the metadata, or by the file that it was made of, among the batches since then."""
        after = ""
        while True:
            query = f"limit={_PAGE}" + (f"&after={quote(after, safe='')}" if after else "")
            answer = await self.call("GET", self._url("/batches", query))
            listed = answer.data.get("data")
            if not isinstance(listed, list):
                raise AttemptError(
                    f"endpoint {self._asks.name!r}: the list of batches holds no data", evidence=Evidence.NO_RESPONSE
                )
            batches = [one for one in listed if isinstance(one, dict)]
            for one in batches:
                metadata = one.get("metadata")
                tagged = isinstance(metadata, dict) and metadata.get(_METADATA) == tag
                if tagged or (file is not None and one.get("input_file_id") == file):
                    return self._state(Answer(one, answer.wire))
            created = unix_time(batches[-1].get("created_at")) if batches else None
            last = batches[-1].get("id") if batches else None
            older = created is not None and created < since - _SKEW  # the newest come first
            if older or not answer.data.get("has_more") or not isinstance(last, str) or last == after:
                return None
            after = last

    async def state(self, batch: str) -> BatchState:
        """See :class:`~.batch_protocol.BatchApi`."""
        return self._state(await self.call("GET", self._url(f"/batches/{_part(batch)}")))

    def _state(self, answer: Answer) -> BatchState:
        data = answer.data
        counts, status = data.get("request_counts"), self.text(answer, "status")
        counts = counts if isinstance(counts, dict) else {}
        files = (data.get("output_file_id"), data.get("error_file_id"))
        errors = _errors(data.get("errors")) if status == "failed" else []
        lines = [
            LineError(line=error["line"] - 1, message=message_of(json.dumps(error)))
            for error in errors
            if type(error.get("line")) is int and error["line"] >= 1
        ]
        return BatchState(
            id=self.text(answer, "id"),
            status=status,
            ended=status in _ENDED,
            done=count(counts.get("completed")) + count(counts.get("failed")),
            total=count(counts.get("total")),
            results=tuple(file for file in files if isinstance(file, str) and file),
            failed=_why(errors) if status == "failed" else None,
            full=any(error.get("code") in _FULL for error in errors),
            lines=tuple(lines),
            wire=answer.wire,
        )

    async def results(self, state: BatchState) -> list[Result]:
        """The lines of the output file and of the error file."""
        found: list[Result] = []
        for file in state.results:
            exchange = await self.exchange("GET", self._url(f"/files/{_part(file)}/content"))
            found += (self._result(line, data) for line, data in result_lines(exchange.received.data))
        return found

    def _result(self, line: str, data: dict[str, Any] | None) -> Result:
        custom_id = id_in(data)
        if data is None or custom_id is None:
            return Result(custom_id=None, line=line)
        error, response = data.get("error"), data.get("response")
        if isinstance(response, dict):
            status = response.get("status_code")
            if type(status) is not int:
                return self.malformed(custom_id, line, "holds a response without a status code")
            if 200 <= status < 300:
                return self.answered(custom_id, line, response.get("body"), status)
            return self.failed(custom_id, line, status, response.get("body"))
        if isinstance(error, dict):
            code = error.get("code")
            why = f"{message_of(json.dumps(error))} ({code})"
            flag = code if code in ("batch_expired", "batch_cancelled") else "batch_error"
            return self.never_asked(custom_id, line, why, str(flag))
        return self.malformed(custom_id, line, "holds neither a response nor an error")

    def how_to_cancel(self, batch: str) -> str:
        """See :class:`~.batch_protocol.BatchApi`."""
        return f"POST {safe_url(self._url(f'/batches/{_part(batch)}/cancel'))}"


def _part(name: str) -> str:
    """A name that the provider gave, as one part of an address."""
    return quote(name, safe="")


def _errors(errors: object) -> list[dict[str, Any]]:
    listed = errors.get("data") if isinstance(errors, dict) else None
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _why(errors: Sequence[dict[str, Any]]) -> str:
    if not errors:
        return "the provider does not say why"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return message_of(json.dumps(errors[0])) + more
