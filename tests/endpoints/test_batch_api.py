"""The batch APIs: their entries, what is sent (what would be sent alone), and what every line of
results comes to.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.endpoints import (
    AttemptError,
    Evidence,
    Price,
    Request,
    create_endpoint,
    load_endpoints,
)
from pytest_fairness.endpoints.batch_api import (
    BatchApi,
    BatchResult,
    BatchState,
    NotSettledError,
    batches_of,
)
from pytest_fairness.endpoints.config import BatchOptions
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Message, Status
from tests.support.batch_server import BatchServer, Fate

KEY = "sk-canary-0123456789abcdef"
TAG = "0123456789abcdef0123"
PROMPTS = ("Who is Ann?", "Who is Bob? Δ", "Who is Cem?")
EVERY = ["openai", "anthropic", "azure"]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer(polls=1) as running:
        yield running


def config_of(kind: str, server: BatchServer, batch: BatchOptions | None) -> dict[str, Any]:
    return {
        "name": "model",
        "type": kind,
        "model": "m",
        "base_url": server.openai_url if kind == "openai" else server.url,
        "price": Price(input_per_million=4.0, output_per_million=8.0, per_call=0.5),
        "default_parameters": {"temperature": 0.5, "max_tokens": 40},
        "api_key_env": "THE_KEY",
        "batch": batch,
    }


def within(kind: str, server: BatchServer, go: Callable[[BatchApi], Any], **options: Any) -> Any:
    """What *go* returns, given the batch API of an endpoint, within one event loop."""
    endpoint = create_endpoint(config_of(kind, server, BatchOptions(poll_seconds=0.02, **options)))
    api = batches_of(endpoint)
    assert api is not None

    async def main() -> Any:
        try:
            return await go(api)
        finally:
            await endpoint.aclose()

    return asyncio.run(main())


def requests() -> list[Request]:
    system = Message("system", "Be brief.")
    return [Request(messages=(system, Message("user", prompt))) for prompt in PROMPTS]


async def submitted(api: BatchApi, *, tag: str = TAG) -> tuple[BatchState, list[bytes]]:
    bodies = [await api.endpoint.body(request) for request in requests()]
    lines = [api.line(f"{tag}-{n:05d}", body) for n, body in enumerate(bodies)]
    file = await api.upload(lines, tag)
    return await api.submit(lines, tag, file), lines


async def collected(api: BatchApi) -> list[BatchResult]:
    state, _ = await submitted(api)
    while not state.ended:
        state = await api.state(state.id)
    return await api.results(state)


# ------------------------------------------------------------ entries


def test_what_an_entry_may_say(tmp_path: Path) -> None:
    """``true`` is enough, ``false`` is as if it were not there; of a mapping each key is read, the
    others keep their defaults; a type that cannot be asked in batches does not quietly ask one by
    one."""

    def loaded(batch: str, kind: str = "openai") -> Any:
        path = tmp_path / "endpoints.yaml"
        entry = f'name: "large", type: "{kind}", model: "m", base_url: "http://127.0.0.1:1", batch: {batch}'
        path.write_text(f"endpoints: [{{{entry}}}]", encoding="utf-8")
        config: Any = load_endpoints(path)["large"]
        return config.batch

    for kind in EVERY:
        assert (loaded("true", kind), loaded("false", kind)) == (BatchOptions(), None)
    for kind in ("ollama", "litellm", "simulated"):
        with pytest.raises(UsageError, match="unknown key"):
            loaded("true", kind)
    given = "{poll_seconds: 5, max_requests: 500, max_wait_hours: 48.5, price_share: 0.25}"
    whole = BatchOptions(poll_seconds=5, max_requests=500, max_wait_hours=48.5, price_share=0.25)
    assert (loaded(given), loaded("{poll_seconds: 5}")) == (whole, BatchOptions(poll_seconds=5))


# ------------------------------------------------------------ what is sent


@pytest.mark.parametrize("kind", EVERY)
def test_a_batch_is_the_same_system_in_another_way(server: BatchServer, kind: str) -> None:
    """One by one and in a batch the server receives the same bodies, the endpoint's identity is the
    same, answers are read alike, and the key travels in the provider's header and is kept
    nowhere."""
    alone = create_endpoint(config_of(kind, server, None))

    async def one_by_one() -> None:
        for request in requests():
            await alone.ask(request)
        await alone.aclose()

    asyncio.run(one_by_one())
    server.calls.clear()
    results = within(kind, server, collected)
    (batch,) = server.batches.values()
    assert [body for _, body in batch.requests] == [received.json for received in server.requests]
    assert create_endpoint(config_of(kind, server, BatchOptions())).identity() == alone.identity()
    assert batches_of(alone) is None
    assert [result.custom_id for result in results] == [f"{TAG}-{n:05d}" for n in range(3)]
    for result in results:
        assert result.reply is not None
        assert (result.reply.status, result.reply.model) == (Status.ANSWERED, "m")
        assert result.reply.text
        assert result.reply.usage is not None
        assert json.loads(result.line)["custom_id"] == result.custom_id
        assert not result.free
    header = {"openai": "authorization", "anthropic": "x-api-key", "azure": "api-key"}[kind]
    assert all(KEY in headers[header] for _, _, headers, _ in server.calls)
    assert KEY not in repr(results)


@pytest.mark.parametrize("kind", EVERY)
def test_a_call_in_a_batch_costs_its_share(server: BatchServer, kind: str) -> None:
    """Half of every part of the price unless the entry says otherwise; an unknown price stays
    unknown, and a price of the list is halved too."""
    half = create_endpoint(config_of(kind, server, BatchOptions())).price
    assert half == Price(input_per_million=2.0, output_per_million=4.0, per_call=0.25)
    whole = create_endpoint(config_of(kind, server, BatchOptions(price_share=1.0))).price
    assert whole == Price(input_per_million=4.0, output_per_million=8.0, per_call=0.5)
    unknown = {
        **config_of(kind, server, BatchOptions()),
        "price": None,
        "base_url": "http://127.0.0.1:9",
    }
    assert create_endpoint(unknown).price is None
    listed = {"name": "m", "type": "openai", "model": "gpt-4o-mini", "api_key_env": "THE_KEY"}
    single, batched = (
        create_endpoint({**listed, "batch": batch}).price for batch in (None, BatchOptions())
    )
    assert single is not None
    assert batched is not None
    assert batched.output_per_million == single.output_per_million / 2


# ------------------------------------------------------------ what comes back


@pytest.mark.parametrize("kind", EVERY)
def test_a_failed_request_is_free_and_has_its_evidence(server: BatchServer, kind: str) -> None:
    """Requests of a batch fail as they would have failed alone, but for the bill."""
    server.then_batch(Fate(statuses={0: 400, 1: 429, 2: 500}))
    errors = [result.error for result in within(kind, server, collected) if result.free]
    evidences = [error.evidence for error in errors if error is not None]
    assert evidences == [Evidence.REJECTED, Evidence.THROTTLED, Evidence.SERVER]
    assert all(
        f"scripted {status}" in str(error)
        for status, error in zip((400, 429, 500), errors, strict=True)
    )


ODD: list[tuple[Any, str | None, Status | None]] = [
    (b"{", None, None),
    ([1], None, None),
    ({"response": {"status_code": 200, "body": {}}}, None, None),
    ({"custom_id": 7}, None, None),
    ({"custom_id": "x"}, "x", Status.MALFORMED),
    ({"custom_id": "x", "response": "ok", "error": None}, "x", Status.MALFORMED),
    ({"custom_id": "x", "response": {"status_code": "200"}}, "x", Status.MALFORMED),
    ({"custom_id": "x", "response": {"status_code": 200, "body": None}}, "x", Status.MALFORMED),
    (
        {"custom_id": "x", "response": {"status_code": 200, "body": {"choices": 3}}},
        "x",
        Status.MALFORMED,
    ),
    (b'\xff\xfe{"custom_id": "x"}', None, None),
    (b'"' + KEY.encode() + b'"', None, None),
]


def test_odd_lines_are_kept_and_never_guessed_at(server: BatchServer) -> None:
    """A line that cannot be used keeps its bytes, but for a key that a provider echoes; whose it is
    and what it says is not made up. Blank lines are none."""
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line, _, _ in ODD]
    server.then_batch(Fate(rewrite=lambda number, _line: (b"  ", *raw) if number == 0 else None))
    results = within("openai", server, collected)
    assert [result.custom_id for result in results] == [custom_id for _, custom_id, _ in ODD]
    lines = [result.line.encode("utf-8", "surrogateescape") for result in results]
    assert lines == [*raw[:-1], b'"[redacted]"']
    statuses = [None if result.reply is None else result.reply.status for result in results]
    assert statuses == [status for _, _, status in ODD]


def test_what_says_how_a_batch_stands_is_kept_without_the_key(server: BatchServer) -> None:
    """It goes into the log as it is."""

    async def looked_at(api: BatchApi) -> BatchState:
        made, _ = await submitted(api)
        server.batches[made.id].metadata = {"by": KEY}
        return await api.state(made.id)

    state = within("openai", server, looked_at)
    assert '"metadata": {"by": "[redacted]"}' in state.wire.response_body


def test_odd_results_of_anthropic(server: BatchServer) -> None:
    """A result of an unknown kind, or none, is malformed."""
    server.then_batch(
        Fate(
            rewrite=lambda n, line: (
                {**line, "result": {"type": "new"}},
                {**line, "result": 3},
                line,
            )[n]
        )
    )
    statuses = [
        result.reply and result.reply.status for result in within("anthropic", server, collected)
    ]
    assert statuses == [Status.MALFORMED, Status.MALFORMED, Status.ANSWERED]


# ------------------------------------------------------------ a batch whose name was lost


@pytest.mark.parametrize("kind", EVERY)
def test_a_batch_is_found_by_its_tag(server: BatchServer, kind: str) -> None:
    """Among batches of others, and of the same size, the one that bears the tag is found; no other
    is.
    """

    async def lost_and_found(api: BatchApi) -> tuple[Any, Any]:
        for tag in ("other0", TAG, "other1"):
            await submitted(api, tag=tag)
        since = min(batch.created for batch in server.batches.values())
        found = await api.find(TAG, file=None, requests=3, since=since)
        return found, await api.find("nobody", file=None, requests=3, since=since)

    found, nobody = within(kind, server, lost_and_found)
    assert found.id == list(server.batches)[1]
    assert nobody is None


def test_finding_turns_pages_and_stops_at_its_time(
    server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More batches than a page holds are gone through; batches from long before are not."""
    monkeypatch.setattr("pytest_fairness.endpoints.batch_api.PAGE", 2)

    async def many(api: BatchApi) -> tuple[Any, Any, Any]:
        for number in range(5):
            await submitted(api, tag=f"tag{number}")
        first = next(iter(server.batches.values()))
        found = await api.find("tag0", file=None, requests=3, since=first.created)
        by_file = await api.find("?", file=first.file, requests=3, since=first.created)
        first.created -= 20_000
        list(server.batches.values())[1].created -= 10_000
        return (
            found,
            by_file,
            await api.find("tag0", file=None, requests=3, since=first.created + 15_000),
        )

    found, by_file, too_old = within("openai", server, many)
    assert (found.id, by_file.id) == ("batch_0", "batch_0")
    assert too_old is None


def test_whether_a_batch_in_progress_is_ours_is_not_settled(server: BatchServer) -> None:
    """Anthropic shows the identifiers of requests only when a batch has ended: until then nobody
    can tell.
    """
    server.hold = True

    async def ask(api: BatchApi) -> None:
        await submitted(api)
        with pytest.raises(NotSettledError):
            await api.find(TAG, file=None, requests=3, since=0.0)
        assert (
            await api.find(TAG, file=None, requests=4, since=0.0) is None
        )  # of another size: not ours
        server.hold = False
        found = await api.find(TAG, file=None, requests=3, since=0.0)
        assert found is not None

    within("anthropic", server, ask)


# ------------------------------------------------------------ failing


def test_a_file_that_is_looked_at_is_waited_for(server: BatchServer) -> None:
    """Azure checks the input before a batch can be made of it; one that it refuses makes none."""
    server.checking = 3
    within("openai", server, submitted)
    assert server.called("GET", "/files/file-in-0") == 3
    assert len(server.batches) == 1

    async def ask(api: BatchApi) -> None:
        with pytest.raises(AttemptError, match=r"the input: .*line 1 is bad") as caught:
            await submitted(api)
        assert caught.value.evidence is Evidence.REJECTED

    server.verdict = "error"
    within("openai", server, ask)
    assert len(server.batches) == 1


def test_why_a_batch_was_not_begun(server: BatchServer) -> None:
    """The provider's reasons, the lines at fault from 0, and whether there was only too much
    waiting.
    """
    server.then_batch(
        Fate(status="failed", lines=(2,)), Fate(status="failed", code="token_limit_exceeded")
    )

    async def ask(api: BatchApi) -> list[BatchState]:
        return [await api.state((await submitted(api))[0].id) for _ in range(2)]

    wrong, full = within("openai", server, ask)
    assert (wrong.ended, wrong.full, list(wrong.faults)) == (True, False, [1])
    assert "scripted" in str(wrong.failed)
    assert (full.ended, full.full, full.faults) == (True, True, {})


def test_an_endpoint_with_something_else_for_batches_is_refused() -> None:
    class Odd:
        batches = "yes"

    with pytest.raises(UsageError, match="are str, which is no BatchApi"):
        batches_of(Odd())
