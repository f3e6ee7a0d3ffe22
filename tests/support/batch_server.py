"""A model server that also takes batches, as OpenAI, Azure and Anthropic do, with a ledger of what
it bills.

A batch goes on by being looked at: after ``polls`` looks it has ended, unless ``hold`` is set. What
is to become of the next batches is said with :meth:`BatchServer.then_batch`. ``ledger`` holds every
request that was answered, and so is billed, ``calls`` every request that arrived.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from aiohttp import web

from tests.support.servers import ANTHROPIC, OPENAI, ModelServer, anthropic_body, openai_body

#: A line of results, as an object, to what is written in its place: an object, bytes, several of
#: them, or nothing.
Rewrite = Callable[[int, dict[str, Any]], Any]


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What becomes of one batch. Without any argument, it is completed.

    ``status``: completed, failed, expired or cancelled (Anthropic: completed, expired, canceled).
    ``code`` and ``lines`` (from 1) say why it failed. Half of its requests are answered before it
    expires or is cancelled. ``refuse``: this HTTP status in the place of making it; ``reset``: it
    is made, and the connection is reset before that is said. ``rewrite`` changes the lines of its
    results; ``statuses``: the place of a request to the HTTP status with which it fails.
    """

    status: str = "completed"
    code: str = "invalid_json_line"
    lines: tuple[int, ...] = ()
    refuse: int | None = None
    reset: bool = False
    rewrite: Rewrite | None = None
    statuses: dict[int, int] = field(default_factory=dict)


@dataclass(kw_only=True)
class Batch:
    """One batch at the server; ``requests`` are identifiers with bodies."""

    id: str
    flavour: str
    fate: Fate
    requests: list[tuple[str, dict[str, Any]]]
    metadata: dict[str, str] | None = None
    file: str = ""
    path: str = ""
    created: float = field(default_factory=time.time)
    looks: int = 0
    ended: bool = False
    cancelled: bool = False
    lines: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class BatchServer(ModelServer):
    """``polls``: after so many looks a batch has ended. ``hold``: it does not end. ``lists``:
    batches can be listed. ``failing``: so many of the next looks fail. ``checking``: a file is
    looked at for so many looks before it can be used, and then ``verdict`` is said of it.
    """

    def __init__(self, *arguments: Any, polls: int = 2, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.polls = polls
        self.hold = False
        self.lists = True
        self.failing = 0
        self.checking = 0
        self.verdict = "processed"
        self.calls: list[tuple[str, str, dict[str, str], bytes]] = []
        self.ledger: list[tuple[str, str, dict[str, Any]]] = []
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, bytes] = {}
        self._fates: deque[Fate] = deque()

    def then_batch(self, *fates: Fate) -> None:
        """The next batches meet these, in this order."""
        self._fates.extend(fates)

    @property
    def answered(self) -> Counter[str]:
        """How often each conversation was answered and billed in batches, by its messages as JSON."""
        return Counter(json.dumps(body["messages"]) for _, _, body in self.ledger)

    def called(self, method: str, ending: str) -> int:
        """How often an address with this *ending* was asked."""
        return sum(one == method and path.endswith(ending) for one, path, _, _ in self.calls)

    def _add_routes(self, app: web.Application) -> None:
        def add(method: str, path: str, handler: Callable[[web.Request, bytes], Any]) -> None:
            async def handle(request: web.Request) -> web.StreamResponse:
                body = await request.read()
                headers = {name.lower(): value for name, value in request.headers.items()}
                self.calls.append((method, request.path, headers, body))
                await asyncio.sleep(self.latency)
                answer: web.StreamResponse = handler(request, body)
                return answer

            app.router.add_route(method, path, handle)

        for root in ("/v1", "/openai"):
            add("POST", f"{root}/files", self._put_file)
            add("GET", f"{root}/files/{{id}}/content", self._file_content)
            add("GET", f"{root}/files/{{id}}", self._file)
            add("POST", f"{root}/batches", self._make)
            add("GET", f"{root}/batches", partial(self._listed, OPENAI, "after"))
            add("POST", f"{root}/batches/{{id}}/cancel", self._cancel)
            add("GET", f"{root}/batches/{{id}}", self._one)
        root = "/v1/messages/batches"
        add("POST", root, self._make_anthropic)
        add("GET", root, partial(self._listed, ANTHROPIC, "after_id"))
        add("GET", f"{root}/{{id}}/results", self._results)
        add("POST", f"{root}/{{id}}/cancel", self._cancel)
        add("GET", f"{root}/{{id}}", self._one)

    def _put_file(self, request: web.Request, body: bytes) -> web.Response:
        boundary = request.headers["Content-Type"].partition("boundary=")[2].encode()
        parts = [part.partition(b"\r\n\r\n") for part in body.split(b"--" + boundary)]
        content = next(data for head, _, data in parts if b'name="file"' in head)
        purpose = next(data for head, _, data in parts if b'name="purpose"' in head)
        assert purpose == b"batch\r\n"
        name = f"file-in-{len(self.files)}"
        self.files[name] = content.removesuffix(b"\r\n")
        return self._shown_file(name)

    def _file(self, request: web.Request, _body: bytes) -> web.Response:
        self.checking -= 1
        return self._shown_file(request.match_info["id"])

    def _shown_file(self, name: str) -> web.Response:
        status = "pending" if self.checking > 0 else self.verdict
        facts = {
            "object": "file",
            "purpose": "batch",
            "status_details": None if status != "error" else "line 1 is bad",
        }
        return web.json_response({"id": name, "status": status, **facts})

    def _file_content(self, request: web.Request, _body: bytes) -> web.Response:
        name = request.match_info["id"]
        return web.Response(body=self.files[name]) if name in self.files else _missing(name)

    def _make(self, request: web.Request, body: bytes) -> web.StreamResponse:
        payload = json.loads(body)
        assert payload["completion_window"] == "24h"
        file, path = payload["input_file_id"], payload["endpoint"]
        lines = [json.loads(line) for line in self.files[file].splitlines()]
        assert all(line["method"] == "POST" and line["url"] == path for line in lines)
        requests = [(line["custom_id"], line["body"]) for line in lines]
        return self._begin(
            request, OPENAI, requests, metadata=payload.get("metadata"), file=file, path=path
        )

    def _begin(
        self,
        request: web.Request,
        flavour: str,
        requests: list[tuple[str, dict[str, Any]]],
        **facts: Any,
    ) -> web.StreamResponse:
        fate = self._fates.popleft() if self._fates else Fate()
        if fate.refuse is not None:
            return web.json_response(
                {"error": {"message": f"scripted {fate.refuse}"}}, status=fate.refuse
            )
        assert len({custom_id for custom_id, _ in requests}) == len(requests)
        prefix = "batch_" if flavour == OPENAI else "msgbatch_"
        batch = Batch(
            id=f"{prefix}{len(self.batches)}",
            flavour=flavour,
            fate=fate,
            requests=requests,
            **facts,
        )
        self.batches[batch.id] = batch
        if fate.reset:
            return self._reset(request)
        return web.json_response(self._shown(batch))

    def _one(self, request: web.Request, _body: bytes) -> web.Response:
        batch = self.batches.get(request.match_info["id"])
        if self.failing > 0:
            self.failing -= 1
            return web.json_response({"error": {"message": "scripted look"}}, status=500)
        if batch is None:
            return _missing(request.match_info["id"])
        self._look_at(batch)
        return web.json_response(self._shown(batch))

    def _listed(self, flavour: str, after: str, request: web.Request, _body: bytes) -> web.Response:
        """A page of the list of batches, after the one that stands under *after* in the query."""
        if not self.lists:
            return web.json_response({"error": {"message": "no such path"}}, status=404)
        every = [one for one in reversed(self.batches.values()) if one.flavour == flavour]
        start = next(
            (number + 1 for number, one in enumerate(every) if one.id == request.query.get(after)),
            0,
        )
        end = start + int(request.query.get("limit", "20"))
        if flavour == ANTHROPIC:  # a look at the list is a look at the batches
            for batch in every[start:end]:
                self._look_at(batch)
        data = [self._shown(one) for one in every[start:end]]
        return web.json_response({"object": "list", "data": data, "has_more": len(every) > end})

    def _look_at(self, batch: Batch) -> None:
        batch.looks += 1
        if not batch.ended and not self.hold and batch.looks >= self.polls:
            self._finish_batch(batch)

    def _cancel(self, request: web.Request, _body: bytes) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        batch.cancelled = True
        self._finish_batch(batch)
        return web.json_response(self._shown(batch))

    def _shown(self, batch: Batch) -> dict[str, Any]:
        if batch.flavour == ANTHROPIC:
            return self._shown_anthropic(batch)
        under_way = "validating" if batch.looks == 0 else "in_progress"
        ended = "cancelled" if batch.cancelled else batch.fate.status
        failed = batch.ended and ended == "failed"
        errors = [
            {
                "code": batch.fate.code,
                "message": f"scripted: {batch.fate.code}",
                "line": line,
                "param": None,
            }
            for line in batch.fate.lines or (None,)
        ]
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": batch.path,
            "errors": {"object": "list", "data": errors} if failed else None,
            "input_file_id": batch.file,
            "completion_window": "24h",
            "status": ended if batch.ended else under_way,
            "output_file_id": f"{batch.id}-out" if batch.lines else None,
            "error_file_id": f"{batch.id}-err" if batch.errors else None,
            "created_at": int(batch.created),
            "request_counts": {
                "total": 0 if batch.looks == 0 else len(batch.requests),
                "completed": batch.counts["succeeded"],
                "failed": batch.counts["errored"] + batch.counts["expired"],
            },
            "metadata": batch.metadata,
        }

    def _make_anthropic(self, request: web.Request, body: bytes) -> web.StreamResponse:
        assert request.headers["anthropic-version"] == "2023-06-01"
        requests = [(one["custom_id"], one["params"]) for one in json.loads(body)["requests"]]
        return self._begin(request, ANTHROPIC, requests)

    def _shown_anthropic(self, batch: Batch) -> dict[str, Any]:
        counts = {
            name: batch.counts[name] for name in ("succeeded", "errored", "canceled", "expired")
        }
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if batch.ended else "in_progress",
            "request_counts": {"processing": 0 if batch.ended else len(batch.requests), **counts},
            "created_at": datetime.fromtimestamp(batch.created, UTC)
            .isoformat()
            .replace("+00:00", "Z"),
            "results_url": f"http://elsewhere.invalid/{batch.id}/results" if batch.ended else None,
        }

    def _results(self, request: web.Request, _body: bytes) -> web.Response:
        batch = self.batches.get(request.match_info["id"])
        if batch is None or not batch.ended:
            return _missing(request.match_info["id"])
        return web.Response(body=b"\n".join([*batch.lines, *batch.errors]) + b"\n")

    def _finish_batch(self, batch: Batch) -> None:
        batch.ended = True
        if batch.fate.status == "failed" and not batch.cancelled:
            return
        whole = batch.fate.status == "completed" and not batch.cancelled
        answered = len(batch.requests) if whole else len(batch.requests) // 2
        for number, (custom_id, body) in enumerate(batch.requests):
            line, good = self._line(batch, number, custom_id, body, answered=number < answered)
            made = line if batch.fate.rewrite is None else batch.fate.rewrite(number, line)
            for one in made if isinstance(made, (list, tuple)) else (made,):
                if one is not None:
                    data = one if isinstance(one, bytes) else json.dumps(one).encode()
                    (batch.lines if good else batch.errors).append(data)
        if batch.flavour == OPENAI:
            for ending, lines in (("out", batch.lines), ("err", batch.errors)):
                self.files[f"{batch.id}-{ending}"] = b"\n".join(lines) + b"\n"

    def _line(
        self, batch: Batch, number: int, custom_id: str, body: dict[str, Any], *, answered: bool
    ) -> tuple[dict[str, Any], bool]:
        """The line of results of one request, and whether it succeeded."""
        status = batch.fate.statuses.get(number)
        if not answered:
            word = (
                "canceled"
                if batch.cancelled or batch.fate.status in ("cancelled", "canceled")
                else "expired"
            )
            batch.counts[word] += 1
            if batch.flavour == ANTHROPIC:
                return {"custom_id": custom_id, "result": {"type": word}}, False
            code = "batch_expired" if word == "expired" else "batch_cancelled"
            error = {"code": code, "message": f"This request was not executed: {code}."}
            return {
                "id": f"req_{number}",
                "custom_id": custom_id,
                "response": None,
                "error": error,
            }, False
        if status is not None:
            batch.counts["errored"] += 1
            kind = {400: "invalid_request_error", 429: "rate_limit_error", 500: "api_error"}[status]
            error = {"type": kind, "message": f"scripted {status}"}
            if batch.flavour == ANTHROPIC:
                result = {"type": "errored", "error": {"type": "error", "error": error}}
                return {"custom_id": custom_id, "result": result}, False
            response = {"status_code": status, "request_id": f"r{number}", "body": {"error": error}}
            return {
                "id": f"req_{number}",
                "custom_id": custom_id,
                "response": response,
                "error": None,
            }, False
        batch.counts["succeeded"] += 1
        self.ledger.append((batch.id, custom_id, body))
        render = anthropic_body if batch.flavour == ANTHROPIC else openai_body
        answer = render(self._reply(body), self.model or body["model"])
        if batch.flavour == ANTHROPIC:
            return {
                "custom_id": custom_id,
                "result": {"type": "succeeded", "message": answer},
            }, True
        response = {"status_code": 200, "request_id": f"r{number}", "body": answer}
        return {
            "id": f"req_{number}",
            "custom_id": custom_id,
            "response": response,
            "error": None,
        }, True


def _missing(name: str) -> web.Response:
    return web.json_response({"error": {"message": f"no such thing: {name}"}}, status=404)
