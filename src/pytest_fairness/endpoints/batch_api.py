"""The batch APIs of OpenAI, Azure and Anthropic: many requests at once, their results hours later,
at half the price.

A batch API is a way of asking an endpoint, not another endpoint: the requests are those that go out
one by one. Formats: https://platform.openai.com/docs/guides/batch,
https://learn.microsoft.com/azure/ai-services/openai/how-to/batch,
https://docs.anthropic.com/en/docs/build-with-claude/batch-processing.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from pytest_fairness.documents import is_number
from pytest_fairness.endpoints.config import BatchOptions
from pytest_fairness.endpoints.http import (
    HttpExchange,
    Sender,
    evidence_of,
    failure_line,
    message_of,
    policy_refusal,
    token_count,
)
from pytest_fairness.endpoints.openai import ChatEndpoint
from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Reply, Wire
from pytest_fairness.endpoints.redaction import redact_values, safe_url
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Status

#: Bytes of requests in one batch; providers take 100 MB and more.
MAX_BYTES = 90_000_000
#: Bytes of one answer: the results of a whole batch come in one.
_MAX_ANSWER = 1 << 30
#: Batches on one page of a provider's list.
PAGE = 100
#: Our tag stands under this name in a batch's metadata.
_MARK = "pytest_fairness_batch"
#: Seconds by which the provider's clock may be behind ours.
_SKEW = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchState:
    """The state of a batch at the provider, in whose own word its ``status`` is.

    ``failed`` says why it was not begun at all, ``full`` that only too much was waiting there,
    ``faults`` what is wrong with which line of the input (from 0). ``results`` are the addresses of
    its results, once it has ``ended``.
    """

    id: str
    status: str
    ended: bool
    done: int = 0
    total: int = 0
    results: tuple[str, ...] = ()
    failed: str | None = None
    full: bool = False
    faults: Mapping[int, str] = field(default_factory=dict)
    wire: Wire | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """One line of results, with a ``reply`` or an ``error``; nobody knows whose it is without a
    ``custom_id``.

    ``free``: the provider bills nothing for it. ``flag`` names what became of a request that was
    never answered.
    """

    custom_id: str | None
    line: str
    status_code: int | None = None
    reply: Reply | None = None
    error: AttemptError | None = None
    free: bool = False
    flag: str | None = None


class NotSettledError(Exception):
    """Nobody can know yet whether a batch was made: one that may be it is still in progress."""


class BatchApi:
    """The batch API of *endpoint*'s provider. Failures are AttemptErrors, with their evidence.

    Every method is one exchange or a few that may be repeated freely, but for :meth:`submit`, which
    is paid for. The format is OpenAI's, a file of requests, a batch made of it, two files of
    results; a subclass says what differs.
    """

    #: Under the endpoint's address, where batches are made and listed; the key by which a page of
    #: the list begins.
    path: ClassVar[str] = "/batches"
    page_key: ClassVar[str] = "after"
    #: What each line is sent to.
    target: ClassVar[str] = "/v1/chat/completions"

    def __init__(self, endpoint: ChatEndpoint, options: BatchOptions) -> None:
        self.endpoint = endpoint
        self.options = options
        self._sender = Sender(concurrency=4, max_response_bytes=_MAX_ANSWER)

    def line(self, custom_id: str, body: bytes) -> bytes:
        """One request as it stands in what is submitted: its identifier, and the body that is sent
        alone.
        """
        head = json.dumps({"custom_id": custom_id, "method": "POST", "url": self.target})[:-1]
        return b'%b, "body": %b}' % (head.encode("ascii"), body)

    async def upload(self, lines: Sequence[bytes], tag: str) -> str | None:
        """Return where the API wants the input as a file first: put it there, and return the file's
        name. Free.
        """
        body, kind = multipart(f"{tag}.jsonl", b"\n".join(lines) + b"\n")
        data, wire = await self._call("POST", self._url("/files"), body, kind)
        file = self._text(data, "id", wire)
        while data.get("status") in ("pending", "running"):  # Azure looks at a file for a while
            await asyncio.sleep(min(5.0, self.options.poll_seconds))
            data, wire = await self._call("GET", self._url(f"/files/{quote(file, safe='')}"))
        if data.get("status") == "error":
            why = message_of(json.dumps(data.get("status_details") or "the file was refused"))
            raise self._error(f"the input: {why}", Evidence.REJECTED, wire)
        return file

    async def submit(
        self,
        lines: Sequence[bytes],  # noqa: ARG002
        tag: str,
        file: str | None,
    ) -> BatchState:
        """Have the provider begin. This alone is paid for."""
        data = {
            "input_file_id": file,
            "endpoint": self.target,
            "completion_window": "24h",
            "metadata": {_MARK: tag},
        }
        return self._state(
            *await self._call("POST", self._url(self.path), json.dumps(data).encode("ascii"))
        )

    async def find(
        self,
        tag: str,
        *,
        file: str | None,
        requests: int,  # noqa: ARG002
        since: float,
    ) -> BatchState | None:
        """The batch that was submitted under *tag* after *since* (Unix time), None if there is
        none.

        Raises NotSettledError, to be asked again, and AttemptError where the provider cannot tell.
        """
        async for data, wire in self._listed(since):
            ours = file is not None and data.get("input_file_id") == file
            if ours or _mapping(data, "metadata").get(_MARK) == tag:
                return self._state(data, wire)
        return None

    async def state(self, batch: str) -> BatchState:
        """Return how the batch stands."""
        return self._state(*await self._call("GET", self._url(self._path(batch))))

    async def results(self, state: BatchState) -> list[BatchResult]:
        """All results of a batch that has ended; lines verbatim but for secrets."""
        results_ = []
        for url in state.results:
            exchange = await self._exchange("GET", url)
            for data in filter(bytes.strip, exchange.received.split(b"\n")):
                line = redact_values(data.decode("utf-8", "surrogateescape"))
                results_.append(self._result(line, _object(data)))
        return results_

    def how_to_cancel(self, batch: str) -> str:
        """Return what to send in order to cancel it: one line for the user, without a key."""
        return f"POST {safe_url(self._url(self._path(batch) + '/cancel'))}"

    async def aclose(self) -> None:
        await self._sender.aclose()

    def _state(self, data: Mapping[str, Any], wire: Wire) -> BatchState:
        """Return how the batch stands that *data* describes."""
        status = self._text(data, "status", wire)
        counts = _mapping(data, "request_counts")
        done = sum(token_count(counts.get(key)) or 0 for key in ("completed", "failed"))
        errors: list[Mapping[str, Any]] = []
        failed = None
        if status == "failed":
            errors = _errors_of(data)
            failed = _why_failed(errors)
        return BatchState(
            id=self._text(data, "id", wire),
            status=status,
            ended=status in ("completed", "failed", "expired", "cancelled"),
            done=done,
            total=token_count(counts.get("total")) or 0,
            results=self._addresses(data),
            failed=failed,
            full=any(error.get("code") in _FULL for error in errors),
            faults=_faults(errors),
            wire=wire,
        )

    def _addresses(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        """Return where the files of results are."""
        addresses = []
        for key in ("output_file_id", "error_file_id"):
            file = data.get(key)
            if isinstance(file, str) and file:
                addresses.append(self._url(f"/files/{quote(file, safe='')}/content"))
        return tuple(addresses)

    def _outcome(self, data: Mapping[str, Any]) -> tuple[int | str | None, object]:
        """Return what a line of results says: an HTTP status and a body; or a flag and why a
        request was not answered; or None and what is wrong with the line.
        """
        error = data.get("error")
        response = data.get("response")
        if isinstance(response, dict):
            status = response.get("status_code")
            if type(status) is int:
                return status, response.get("body")
            return None, "holds a response without a status code"
        if isinstance(error, dict):
            code = error.get("code")
            flag = "batch_error"
            if code in ("batch_expired", "batch_cancelled"):
                flag = code
            return flag, f"{message_of(json.dumps(error))} ({code})"
        return None, "holds neither a response nor an error"

    def _result(self, line: str, data: Mapping[str, Any]) -> BatchResult:
        """Return what the *line* of results says, whose JSON object is *data*."""
        custom_id = data.get("custom_id")
        if not isinstance(custom_id, str) or not custom_id:
            return BatchResult(custom_id=None, line=line)
        outcome, body = self._outcome(data)
        result = BatchResult(custom_id=custom_id, line=line)
        if outcome is None:
            # It says whose it is and nothing that can be used: paid for, as far as anybody knows.
            why = f"the line of results {body}"
            return replace(result, reply=Reply(text=None, status=Status.MALFORMED, error=why))
        if isinstance(outcome, str):
            # The provider did not come to it, and it is not repeated by itself.
            error = self._error(str(body), Evidence.REJECTED)
            return replace(result, error=error, free=True, flag=outcome)
        result = replace(result, status_code=outcome)
        if 200 <= outcome < 300:
            return replace(result, reply=self.endpoint.read(json.dumps(body).encode()))
        return self._rejected(result, outcome, body)

    def _rejected(self, result: BatchResult, status: int, body: object) -> BatchResult:
        """Return *result* of a request that the provider answered with a *status* of failure."""
        text = body if isinstance(body, str) else json.dumps(body)
        policy = policy_refusal(status, text)
        why = failure_line(status, text)
        if policy is None:
            return replace(result, error=self._error(why, evidence_of(status, text)), free=True)
        reply = Reply(text=None, status=Status.REFUSED, finish_reason=policy, error=why)
        return replace(result, reply=reply, free=True)

    # ------------------------------------------------------------ exchanges

    def _path(self, batch: str) -> str:
        """Return where the batch of this name is looked at."""
        return f"{self.path}/{quote(batch, safe='')}"

    def _url(self, path: str, **query: str | int) -> str:
        url = f"{self.endpoint.base_url}{path}"
        if query:
            return f"{url}?{urlencode(query)}"
        return url

    async def _exchange(
        self, method: str, url: str, body: bytes = b"", content_type: str = "application/json"
    ) -> HttpExchange:
        """One exchange that succeeded. Raises AttemptError for any other."""
        exchange = HttpExchange(
            url, {**self.endpoint.headers(), "Content-Type": content_type}, body
        )
        await self._sender.send(exchange, method=method)
        failed = exchange.failure(self.endpoint.name)
        if failed is not None:
            # A content policy, or a body that was not kept whole: no answer of a model's here.
            raise self._error(str(failed.error), Evidence.REJECTED, failed.wire)
        return exchange

    async def _call(
        self, method: str, url: str, body: bytes = b"", content_type: str = "application/json"
    ) -> tuple[Mapping[str, Any], Wire]:
        """The JSON object that is answered, and the record of the exchange."""
        exchange = await self._exchange(method, url, body, content_type)
        if content_type.startswith("multipart/"):
            # A file that was sent stands in the log already, line by line with its answers.
            exchange = replace(exchange, body=b"")
        wire = exchange.wire()
        data = _object(exchange.received)
        if not data:
            raise self._error(
                f"{safe_url(url)} answered with no JSON object", Evidence.NO_RESPONSE, wire
            )
        return data, wire

    async def _listed(self, since: float) -> AsyncIterator[tuple[Mapping[str, Any], Wire]]:
        """The provider's batches, the newest first, back to *since*, each with the exchange in
        which it came.
        """
        after = ""
        while True:
            data, wire = await self._page(after)
            last: object = after
            for batch in filter(_is_mapping, data["data"]):
                last = batch.get("id")
                created = _unix_time(batch.get("created_at"))
                if created is not None and created < since - _SKEW:
                    return
                yield batch, wire
            if not data.get("has_more") or not isinstance(last, str) or last == after:
                return
            after = last

    async def _page(self, after: str) -> tuple[Mapping[str, Any], Wire]:
        """A page of the provider's list, which begins behind the batch *after*."""
        page = {}
        if after:
            page = {self.page_key: after}
        data, wire = await self._call("GET", self._url(self.path, limit=PAGE, **page))
        if not isinstance(data.get("data"), list):
            raise self._error("the list of batches holds no data", Evidence.NO_RESPONSE, wire)
        return data, wire

    def _text(self, data: Mapping[str, Any], key: str, wire: Wire) -> str:
        """Return the text at *key*. Raises an error of the endpoint, with *wire*, without one."""
        value = data.get(key)
        if not isinstance(value, str) or not value:
            raise self._error(f"the batch API answered without {key!r}", Evidence.NO_RESPONSE, wire)
        return value

    def _error(self, why: str, evidence: Evidence, wire: Wire | None = None) -> AttemptError:
        return AttemptError(f"endpoint {self.endpoint.name!r}: {why}", evidence=evidence, wire=wire)


class AzureBatches(BatchApi):
    """The deployment must be one for batches."""

    endpoint: Any
    target = "/chat/completions"

    def _url(self, path: str, **query: str | int) -> str:
        return super()._url(f"/openai{path}", **{"api-version": self.endpoint.api_version}, **query)


class AnthropicBatches(BatchApi):
    """All requests in one body, one file of results. Requests that errored, expired or were
    canceled are not billed.

    A batch bears no mark of ours, so one whose name was lost is recognised by the identifiers of
    its requests.
    """

    path = "/v1/messages/batches"
    page_key = "after_id"
    #: The HTTP status of each error as a response of its own
    #: (https://docs.anthropic.com/en/api/errors).
    statuses: ClassVar[Mapping[str, int]] = {
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

    def line(self, custom_id: str, body: bytes) -> bytes:
        return b'{"custom_id": %b, "params": %b}' % (json.dumps(custom_id).encode("ascii"), body)

    async def upload(self, lines: Sequence[bytes], tag: str) -> str | None:  # noqa: ARG002
        return None

    async def submit(
        self,
        lines: Sequence[bytes],
        tag: str,  # noqa: ARG002
        file: str | None,  # noqa: ARG002
    ) -> BatchState:
        body = b'{"requests": [%b]}' % b", ".join(lines)
        return self._state(*await self._call("POST", self._url(self.path), body))

    async def find(
        self,
        tag: str,
        *,
        file: str | None,  # noqa: ARG002
        requests: int,
        since: float,
    ) -> BatchState | None:
        unsettled = False
        async for data, wire in self._listed(since):
            state = self._state(data, wire)
            if state.total != requests:
                continue
            if not state.ended:
                unsettled = True
            elif any(
                (result.custom_id or "").startswith(tag) for result in await self.results(state)
            ):
                return state
        if unsettled:
            raise NotSettledError
        return None

    def _state(self, data: Mapping[str, Any], wire: Wire) -> BatchState:
        batch = self._text(data, "id", wire)
        status = self._text(data, "processing_status", wire)
        counts = {
            key: token_count(value) or 0 for key, value in _mapping(data, "request_counts").items()
        }
        total = sum(
            counts.get(key, 0)
            for key in ("processing", "succeeded", "errored", "canceled", "expired")
        )
        return BatchState(
            id=batch,
            status=status,
            ended=status == "ended",
            done=total - counts.get("processing", 0),
            total=total,
            # Not the address that is given in the answer: a key goes nowhere but to base_url.
            results=(self._url(self._path(batch) + "/results"),) if status == "ended" else (),
            wire=wire,
        )

    def _outcome(self, data: Mapping[str, Any]) -> tuple[int | str | None, object]:
        result = _mapping(data, "result")
        kind = result.get("type")
        if kind == "succeeded":
            return 200, result.get("message")
        if kind == "errored":
            # {"type": "error", "error": {"type": …}}, in some versions without the outer object.
            error = _mapping(result, "error")
            kinds = (str(_mapping(error, "error").get("type")), str(error.get("type")))
            status = next(filter(None, map(self.statuses.get, kinds)), 500)
            return status, result.get("error")
        if kind in ("expired", "canceled"):
            return f"batch_{kind}", f"not answered: the provider says {kind}"
        return None, f"has the type {message_of(json.dumps(kind))}, which is not known"


def batches_of(endpoint: object) -> BatchApi | None:
    """The ``batches`` of *endpoint*, which it may have. Raises UsageError for something that is no
    BatchApi.
    """
    batches = getattr(endpoint, "batches", None)
    if isinstance(batches, BatchApi | None):
        return batches
    raise UsageError(f"the endpoint's batches are {type(batches).__name__}, which is no BatchApi")


def multipart(filename: str, content: bytes) -> tuple[bytes, str]:
    """A form that hands in *content* as the input of a batch, and its content type."""
    boundary = hashlib.sha256(content).hexdigest()  # which no content holds
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    return (
        head.encode() + content + f"\r\n--{boundary}--\r\n".encode(),
        f"multipart/form-data; boundary={boundary}",
    )


def _unix_time(value: object) -> float | None:
    """A moment as providers write it, in Unix time: seconds, or ISO 8601."""
    if is_number(value):
        return float(value)
    with contextlib.suppress(ValueError, OverflowError):
        if isinstance(value, str):
            return datetime.datetime.fromisoformat(value).timestamp()
        return None
    return None


def _object(data: bytes) -> Mapping[str, Any]:
    """The JSON object that *data* is; an empty one for anything else."""
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(data)
        if isinstance(value, dict):
            return value
        return {}
    return {}


#: Codes by which only too much was waiting there.
_FULL = ("token_limit_exceeded", "rate_limit_exceeded", "too_many_batches")


def _is_mapping(value: object) -> bool:
    """Return whether *value* is a JSON object."""
    return isinstance(value, dict)


def _errors_of(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the errors by which a batch failed."""
    listed = _mapping(data, "errors").get("data")
    if not isinstance(listed, list):
        return []
    return list(filter(_is_mapping, listed))


def _why_failed(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return the first of *errors* in words, and how many more there are."""
    if not errors:
        return "the provider does not say why"
    why = message_of(json.dumps(errors[0]))
    if len(errors) == 1:
        return why
    return f"{why} (and {len(errors) - 1} more)"


def _faults(errors: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return what is wrong with which line of the input, from 0, by its first error."""
    faults: dict[int, str] = {}
    for error in reversed(errors):
        line = error.get("line")
        if type(line) is int and line >= 1:
            faults[line - 1] = message_of(json.dumps(error))
    return faults


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the JSON object at *key* of *data*, an empty one where there is none."""
    value = data.get(key)
    if isinstance(value, dict):
        return value
    return {}
