"""F1 to F21 of the catalogue in docs/reliability.md: what a provider, a proxy or an application can do to a run.

Each fault comes over every route that it can come over, one trial or a few on an engine of one's own; and at least one
of each kind comes to a user's session, the way it would. The seven oracles are asked after every case.
"""

from __future__ import annotations

import asyncio
import dataclasses
import email.utils
import functools
import itertools
import json
import re
import resource
import socket
import struct
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pytest_fairness.endpoints import Request
from pytest_fairness.model import Message
from tests.support.servers import Fault, ModelServer

from .conftest import KEY, LITELLM, PLACE, PRICE, ROUTES, SUITE, TRIALS, Ask, Asked, Project, endpoint_of, need
from .oracles import Called, check, same_statistics

#: All that max_tokens allows a reply, in US dollars: what a trial costs at least where nobody knows what it cost.
WORST = 400 * PRICE.output_per_million / 1e6


#: Every oracle but the first, byte for byte: of what goes through litellm, nobody but litellm has the bytes.
BUT_THE_BYTES = "234567"


@pytest.fixture(autouse=True)
def _litellm_is_awake(request: pytest.FixtureRequest) -> None:
    """Where it takes part: it takes seconds to import and to make a first call, and attempts here have less."""
    route = getattr(getattr(request.node, "callspec", None), "params", {}).get("route", "direct")
    need(route)
    if route == LITELLM:
        _wake()


@functools.cache
def _wake() -> None:
    async def once() -> None:
        with ModelServer() as server:
            endpoint = endpoint_of(LITELLM, server)
            await endpoint.ask(Request(messages=(Message("user", "Hello."),)))
            await endpoint.aclose()

    asyncio.run(once())


def test_without_a_fault_all_is_quiet(project: Project) -> None:
    """The undisturbed run, on which the oracles hold too: each trial asked once, exit 0."""
    project.write()
    case = project.run("-rA")
    assert case.code == 0, case.output
    assert len(case.ledger) == len(case.of("trial")) == TRIALS
    check(case)


# ---------------------------------------------------------------- F1, F2: no answer, and an endless one


def everywhere(ask: Ask, **options: Any) -> dict[str, Asked]:
    """What one trial comes to over each route, asked at the same time, since these faults take theirs."""
    with ThreadPoolExecutor(len(ROUTES)) as pool:
        return dict(zip(ROUTES, pool.map(lambda route: ask(route, **options), ROUTES), strict=True))


def test_f01_an_endpoint_that_never_answers(ask: Ask, server: ModelServer) -> None:
    """The attempt ends at its deadline; the trial is unknown, charged at its worst case, and not sent again."""
    server.always = Fault(hang=True)
    for route, asked in everywhere(ask, attempt_timeout=1.5).items():
        assert asked.statuses == ["unknown"], route
        check(asked.case)
        (attempt,) = asked.case.of("attempt")
        assert (attempt["evidence"], attempt["flags"]) == ("no_response", ["deadline"])
        assert attempt["cost"] > WORST


def test_f01_a_session_ends_on_time_and_red(project: Project) -> None:
    """Nothing answers: the session ends at its deadline, says why, and is red; going on with it gives what an
    undisturbed run gives."""
    project.write()
    project.server.always = Fault(hang=True)
    case = project.run("-o", "fairness_attempt_timeout=1", "--fairness-deadline", "3", deadline=4)
    assert case.code == 1
    assert "no answer within" in case.output
    check(case)
    project.server.always = None
    again = project.run("--fairness-resume=last", "--fairness-retry-unknown", "--fairness-retry-errors")
    assert again.code == 0, again.output
    check(again)
    assert project.server.billed == TRIALS
    undisturbed = project.undisturbed()
    assert again.run is not None
    assert undisturbed.run is not None
    assert again.run != undisturbed.run
    same_statistics(again.run, undisturbed.run)


@pytest.mark.parametrize("where", ["headers", "body"])
def test_f02_one_byte_at_a_time(ask: Ask, server: ModelServer, where: str) -> None:
    """The deadline is for the whole attempt, however often a byte arrives. Bytes of the body that came are kept."""
    server.always = Fault(drip=0.05, drip_headers=where == "headers")
    for route, asked in everywhere(ask, attempt_timeout=2.5).items():
        assert asked.statuses == [{"headers": "unknown", "body": "malformed"}[where]], route
        check(asked.case)
        (attempt,) = asked.case.of("attempt")
        assert attempt["cost"] > WORST
        assert attempt["flags"] == ["deadline"]
        if where == "body":
            assert attempt["wire"]["truncated"]
            assert attempt["wire"]["response_body"]


# ---------------------------------------------------------------- F3, F4, F5: the server says no, for now


def test_f03_slow_down_twice_then_go(ask: Ask, server: ModelServer) -> None:
    """Three numbered attempts, at least the wished pause between them, and one of them billed."""
    seen: Counter[str] = Counter()

    def twice(body: str) -> Fault | None:
        seen[body] += 1
        return Fault(status=429, headers={"Retry-After": "0.8"}) if seen[body] < 3 else None

    server.meet = twice
    for route, asked in everywhere(ask).items():
        assert asked.statuses == ["answered"], route
        check(asked.case)
        times = [request.time for request in asked.case.ledger]
        assert len(times) == 3
        assert all(later - earlier >= 0.8 for earlier, later in itertools.pairwise(times))
        assert [record["attempt"] for record in asked.case.of("attempt")] == [1, 2, 3]
        assert sum(request.billed for request in asked.case.ledger) == 1


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "n2"])
def test_f03_a_session_is_told_to_slow_down(project: Project, workers: tuple[str, ...]) -> None:
    """It waits, goes on and passes; each trial is billed once, in one process and in two, as in an undisturbed run."""
    project.write()
    no = Fault(status=429, headers={"Retry-After": "2"})
    project.server.then(no, no)
    case = project.run(*workers)
    assert case.code == 0, case.output
    check(case)
    assert project.server.billed == TRIALS
    assert len(case.ledger) > TRIALS
    refused = [request.time for request in case.ledger if not request.billed]
    assert max(request.time for request in case.ledger) - min(refused) >= 2.0
    undisturbed = project.undisturbed()
    assert case.run is not None
    assert undisturbed.run is not None
    same_statistics(case.run, undisturbed.run)


def _in(seconds: float) -> str:
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


@pytest.mark.parametrize("wish", ["3600", "1e9", "date", "0000000003600"])
def test_f04_nobody_sleeps_for_an_hour(ask: Ask, wish: str) -> None:
    """More than a minute is not waited for: the trial ends as an error that names the wish."""
    header = _in(7200) if wish == "date" else wish
    asked = ask("direct", Fault(status=429, headers={"Retry-After": header}), deadline=60)
    assert asked.statuses == ["error"]
    assert "asks for a pause of" in (asked.trials[0].error or "")
    assert len(asked.case.ledger) == 1
    check(asked.case)


def test_f04_wishes_that_make_no_sense_are_ignored(ask: Ask) -> None:
    """We wait as long as we would have without them, and ask again."""
    wishes = ["-1", "nan", "inf", "soon", "0x10", "Wed, 99 Foo 2026", _in(-3600), "1;2", "１", " "]
    faults = [Fault(status=429, headers={"Retry-After": wish}) for wish in wishes]
    asked = ask("direct", *faults, count=len(wishes), concurrency=len(wishes))
    assert asked.statuses == ["answered"] * len(wishes)
    assert len(asked.case.ledger) == 2 * len(wishes)
    check(asked.case)


def test_f04_a_session_that_is_put_off_is_red(project: Project) -> None:
    """Nobody gets through for an hour: a clear error, exit 1, at once; nothing slept past the deadline either."""
    project.write()
    project.server.always = Fault(status=429, headers={"Retry-After": "3600"})
    case = project.run(deadline=5)
    assert case.code == 1
    assert "asks for a pause of 3600 s; the longest allowed is 60 s" in " ".join(case.output.split())
    check(case)
    project.server.always = Fault(status=503, headers={"Retry-After": "30"})
    case = project.run("--fairness-deadline", "2", deadline=2)
    assert case.code == 1
    assert "the run's deadline" in " ".join(case.output.split())
    check(case)


@pytest.mark.parametrize("status", [500, 502, 504])
@pytest.mark.parametrize("route", ROUTES)
def test_f05_a_server_that_fails(ask: Ask, route: str, status: int) -> None:
    """Perhaps it was billed all the same: one attempt, charged at its worst case."""
    asked = ask(route, Fault(status=status), None)
    assert asked.statuses == ["error"]
    assert len(asked.case.ledger) == 1
    (attempt,) = asked.case.of("attempt")
    assert attempt["cost"] > WORST
    check(asked.case)


def test_f05_a_session_with_a_failing_server_is_red(project: Project) -> None:
    """One attempt a trial, exit 1."""
    project.write()
    project.server.always = Fault(status=502)
    case = project.run()
    assert case.code == 1
    assert len(case.ledger) == TRIALS
    assert "HTTP 502" in case.output
    check(case)


@pytest.mark.parametrize("status", [500, 502, 504])
@pytest.mark.parametrize("comes_back", [True, False])
def test_f05_a_server_that_fails_may_be_paid_again_on_request(ask: Ask, status: int, comes_back: bool) -> None:
    """``server_error_attempts`` of the endpoint: so many numbered attempts, each charged at its worst case."""
    second = None if comes_back else Fault(status=status)
    asked = ask("direct", Fault(status=status), second, count=1, more={"server_error_attempts": 2}, max_cost=1.0)
    assert asked.statuses == ["answered" if comes_back else "error"]
    assert len(asked.case.ledger) == 2
    failed = [attempt["cost"] for attempt in asked.case.of("attempt") if attempt["status"] is None]
    assert len(failed) == (1 if comes_back else 2)
    assert min(failed) > WORST
    check(asked.case)


# ---------------------------------------------------------------- F6, F7: the connection goes


@pytest.mark.parametrize("route", ROUTES)
def test_f06_the_connection_is_reset(ask: Ask, route: str) -> None:
    """After the request was read: on a connection that had served before, too. Not sent again."""
    asked = ask(route, None, Fault(reset=True), None, count=3, concurrency=1)
    assert sorted(asked.statuses) == ["answered", "answered", "unknown"]
    assert len(asked.case.ledger) == 3
    check(asked.case)


@pytest.fixture
def slammed() -> Iterator[ModelServer]:
    """A server that resets every connection before it has read a byte; its ``requests`` are what was connected."""
    server = ModelServer()
    listening = socket.create_server(("127.0.0.1", 0))
    server.port = listening.getsockname()[1]
    connected: list[socket.socket] = []

    def slam() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connected.append(connection)
            time.sleep(0.1)  # at once, it would not have been connected, and nothing sent
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

    server.requests = connected  # type: ignore[assignment]
    thread = threading.Thread(target=slam, daemon=True)
    thread.start()
    yield server
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join(5)


@pytest.mark.parametrize("route", ROUTES)
def test_f06_the_connection_is_reset_at_once(ask: Ask, slammed: ModelServer, route: str) -> None:
    """Nobody can know what was read before: connected once, not sent again, charged in full."""
    asked = ask(route, endpoint=endpoint_of(route, slammed))
    assert asked.statuses == ["unknown"]
    assert len(slammed.requests) == 1
    assert asked.case.of("attempt")[0]["cost"] > WORST
    check(asked.case)


@pytest.mark.parametrize("cut", [1, 120])
@pytest.mark.parametrize("route", ROUTES)
def test_f07_a_body_that_breaks_off(ask: Ask, route: str, cut: int) -> None:
    """It was paid for: what came is in the log, it is charged in full, and nothing is sent again."""
    asked = ask(route, Fault(cut=cut), None)
    assert asked.statuses == ["malformed"]
    assert len(asked.case.ledger) == 1
    (attempt,) = asked.case.of("attempt")
    assert attempt["evidence"] == "partial"
    assert len(attempt["wire"]["response_body"]) == cut
    assert attempt["wire"]["truncated"]
    assert attempt["cost"] > WORST
    check(asked.case)


# ---------------------------------------------------------------- F8, F9: a success that is none


def message(content: Any, reason: Any = "stop", **more: Any) -> dict[str, Any]:
    """A chat completion with *content*."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **more}, "finish_reason": reason}
    usage = {"prompt_tokens": 20, "completion_tokens": 5}
    return {"id": "1", "object": "chat.completion", "model": "gpt-4o-mini", "choices": [choice], "usage": usage}


UNREADABLE = {
    "json": "{broken",
    "html": "<html><body>502</body></html>",
    "sse": 'data: {"choices": []}\n\ndata: [DONE]\n\n',
    "empty": b"",
    "blank": b" \n ",
    "null": "null",
    "list": "[]",
    "utf8": b'{"choices": [{"message": {"content": "\xff\xfe"}}]}',
    "deep": "[" * 100_000,
    "number": '{"n": ' + "9" * 5000 + "}",
    "nan": '{"choices": NaN}',
}


@pytest.mark.parametrize("body", UNREADABLE)
@pytest.mark.parametrize("route", ROUTES)
def test_f08_a_success_that_cannot_be_read(ask: Ask, route: str, body: str) -> None:
    """Logged byte for byte, malformed, charged in full, not asked again, and no crash."""
    asked = ask(route, Fault(body=UNREADABLE[body]), None)
    assert asked.statuses == ["malformed"]
    assert len(asked.case.ledger) == 1
    assert asked.case.of("attempt")[0]["cost"] > WORST
    check(asked.case)


@pytest.mark.parametrize("route", ["direct", "azure"])
def test_f08_a_byte_order_mark_is_read_over(ask: Ask, route: str) -> None:
    """The answer behind it is an answer; the mark is in the log."""
    asked = ask(route, Fault(body="\ufeff" + json.dumps(message("Yes."))))
    assert [trial.reply for trial in asked.trials] == ["Yes."]
    check(asked.case)


UNUSABLE = {
    "no choices": ({"choices": []}, "empty"),
    "null choices": ({"choices": None}, "malformed"),
    "missing choices": ({"id": "1"}, "malformed"),
    "choices of nothing": ({"choices": [None]}, "malformed"),
    "null": (message(None), "empty"),
    "blank": (message("  \n"), "empty"),
    "number": (message(3), "malformed"),
    "list": (message(["yes"]), "malformed"),
    "object": (message({"text": "yes"}), "malformed"),
    "no message": ({"choices": [{"finish_reason": "stop"}]}, "malformed"),
}


@pytest.mark.parametrize("body", UNUSABLE)
@pytest.mark.parametrize("route", ["direct", "azure"])
def test_f09_an_answer_without_a_text(ask: Ask, route: str, body: str) -> None:
    """Empty or malformed, each by its name; never counted as an answer."""
    data, status = UNUSABLE[body]
    asked = ask(route, Fault(body=data), None)
    assert asked.statuses == [status]
    assert asked.trials[0].reply is None
    assert len(asked.case.ledger) == 1
    check(asked.case)


@pytest.mark.parametrize(
    ("route", "data", "status"),
    [
        ("anthropic", {"content": []}, "empty"),
        ("anthropic", {"content": None}, "malformed"),
        ("anthropic", {"content": [{"type": "text", "text": 3}]}, "malformed"),
        ("anthropic", {"content": "yes"}, "malformed"),
        ("ollama", {"message": {"content": ""}}, "empty"),
        ("ollama", {"message": {"content": 3}}, "malformed"),
        ("ollama", {"message": None}, "malformed"),
        ("ollama", {}, "malformed"),
    ],
)
def test_f09_in_the_formats_of_others(ask: Ask, route: str, data: Any, status: str) -> None:
    """The same for the Messages API and for Ollama."""
    asked = ask(route, Fault(body=data), None)
    assert asked.statuses == [status]
    check(asked.case)


# ---------------------------------------------------------------- F10: refusals and other ways to end

ENDED = {
    "refusal field": (message(None, refusal="I cannot help with that."), "refused", "stop"),
    "filtered": (message("", "content_filter"), "refused", "content_filter"),
    "cut short": (message("He is", "length"), "answered", "length"),
    "unknown": (message("Yes.", "RECITATION_2"), "answered", "RECITATION_2"),
    "none": (message("Yes.", None), "answered", None),
}


@pytest.mark.parametrize("how", ENDED)
@pytest.mark.parametrize("route", ["direct", "azure"])
def test_f10_each_way_to_end_has_its_class(ask: Ask, route: str, how: str) -> None:
    """And the provider's own word for it is kept, as it was given."""
    data, status, reason = ENDED[how]
    asked = ask(route, Fault(body=data), None)
    assert asked.statuses == [status]
    assert asked.trials[0].finish_reason == reason
    assert len(asked.case.ledger) == 1
    check(asked.case)


@pytest.mark.parametrize("code", ["content_policy_violation", "content_filter", "ResponsibleAIPolicyViolation"])
@pytest.mark.parametrize("route", ROUTES)
def test_f10_a_policy_that_refuses_with_a_400(ask: Ask, route: str, code: str) -> None:
    """An answer of the system under test: refused, not an error, and free."""
    asked = ask(route, Fault(status=400, body={"error": {"code": code, "message": "filtered"}}), None)
    assert asked.statuses == ["refused"]
    assert asked.trials[0].finish_reason == code
    check(asked.case)


def test_f10_ways_to_end_are_counted_by_group_in_the_report(project: Project) -> None:
    """One group is filtered and cut short: the report has each of its ways to end, with the provider's word, beside the
    other group's; a replay of the log says the same."""
    project.write()
    from pytest_fairness.design.grid import expand_grid

    grid = expand_grid(template="{name}", groups={"race_ethnicity": ["white", "black"]})
    filtered, short = [cell.name or "" for cell in grid if cell.groups["race_ethnicity"] == "black"][:2]
    project.server.meet = lambda body: (
        Fault(body=message("", "content_filter")) if filtered in body
        else Fault(body=message("He is", "length")) if short in body else None
    )  # fmt: skip
    case = project.run("-rA")
    check(case)
    assert case.run is not None
    page = case.run.joinpath("report.html").read_text(encoding="utf-8")
    assert re.search(r'<th scope="row"[^>]*>black</th>.*refused \(content_filter\): 2', page)
    assert re.search(r'<th scope="row"[^>]*>black</th>.*answered \(length\): 2', page)
    assert re.search(
        r'<th scope="row"[^>]*>white</th>\s*<td class="figure">40</td>\s*<td class="figure">40 \(100.0.%\)</td>', page
    )
    replay = project.run("--fairness-replay", "last", ledger=[])
    assert replay.run is not None
    assert len(project.server.requests) == TRIALS
    same_statistics(replay.run, case.run)


# ---------------------------------------------------------------- F11: what it says it used

USED: dict[str, Any] = {
    "missing": ...,
    "null": None,
    "empty": {},
    "negative": {"prompt_tokens": -5, "completion_tokens": -9},
    "string": {"prompt_tokens": "12", "completion_tokens": "7"},
    "list": [1, 2],
    "true": {"prompt_tokens": True, "completion_tokens": True},
    "half": {"prompt_tokens": 20.5, "completion_tokens": 3},
    "nothing": {"prompt_tokens": 0, "completion_tokens": 0},
    "one": {"prompt_tokens": 20},
}


def using(route: str, used: Any) -> dict[str, Any]:
    """A good answer in the format of *route* that counts *used*."""
    names = {"anthropic": ("input_tokens", "output_tokens"), "ollama": ("prompt_eval_count", "eval_count")}.get(route)
    if isinstance(used, dict) and names:
        used = dict(zip(names, used.values(), strict=False))
    if route == "ollama":
        body: dict[str, Any] = {"model": "gpt-4o-mini", "message": {"content": "Yes."}, "done": True}
        return body | (used if isinstance(used, dict) else {})
    if route == "anthropic":
        body = {"id": "1", "type": "message", "role": "assistant", "model": "gpt-4o-mini", "stop_reason": "end_turn"}
        body |= {"content": [{"type": "text", "text": "Yes."}], "usage": used}
    else:
        body = message("Yes.") | {"usage": used}
    return {key: value for key, value in body.items() if value is not ...}


@pytest.mark.parametrize("used", USED)
@pytest.mark.parametrize("route", ROUTES)
def test_f11_a_count_that_cannot_be_believed(ask: Ask, route: str, used: str) -> None:
    """The answer counts; it is charged at what was set aside for it, and flagged: never less than nothing, nor free."""
    asked = ask(route, Fault(body=using(route, USED[used])), max_cost=1.0)
    assert asked.statuses == ["answered"]
    (attempt,) = asked.case.of("attempt")
    assert "usage_invalid" in attempt["flags"]
    assert attempt["cost"] > WORST
    check(asked.case)


@pytest.mark.parametrize("count", [10**12, 1e12, 10**30], ids=str)
@pytest.mark.parametrize("route", ROUTES)
def test_f11_a_count_beyond_reason_ends_the_run(ask: Ask, route: str, count: float) -> None:
    """Nothing overflows, the answer is kept and charged at its worst case, and nothing more is sent to that server."""
    body = using(route, {"prompt_tokens": count, "completion_tokens": count})
    asked = ask(route, None, Fault(body=body), count=6, concurrency=1, max_cost=1.0)
    assert asked.error is not None
    assert "counts more tokens for one call than any model can take" in str(asked.error)
    assert len(asked.case.ledger) == 2
    assert len(asked.case.of("trial")) == 2
    last = asked.case.of("attempt")[-1]
    assert {"usage_absurd", "usage_invalid"} <= set(last["flags"])
    assert WORST < last["cost"] < 2 * WORST
    check(asked.case)


# ---------------------------------------------------------------- F12: who answered


def answered_by(model: str, route: str = "direct") -> dict[str, Any]:
    return using(route, {"prompt_tokens": 1000, "completion_tokens": 1000}) | {"model": model}


def test_f12_another_model_answers(ask: Ask) -> None:
    """Both names are in the log, the trial is flagged, and the dearer of both prices counts, from then on."""
    asked = ask(
        "direct", Fault(body=answered_by("gpt-4")), Fault(body=answered_by("gpt-4o-mini")), count=2, concurrency=1
    )
    attempts = asked.case.of("attempt")
    assert [attempt["flags"] for attempt in attempts] == [["model_differs"], []]
    assert [attempt["model"] for attempt in attempts] == ["gpt-4", "gpt-4o-mini"]
    assert "gpt-4o-mini" in asked.case.of("engine")[0]["endpoint"]["identity"]["model"]
    assert [attempt["cost"] for attempt in attempts] == [pytest.approx(0.09), pytest.approx(0.09)]
    check(asked.case, oracles="12457")


def test_f12_a_session_in_which_models_are_mixed(project: Project) -> None:
    """No PASS over answers of two models: inconclusive, with its reason; both names are told, in the terminal too."""
    project.write()
    project.server.then(Fault(body=answered_by("gpt-4")))
    case = project.run("-rA", "--fairness-require-conclusive")
    assert case.code == 1
    told = " ".join(case.output.split())
    assert "INCONCLUSIVE: 2 model versions answered: gpt-4, gpt-4o-mini" in told
    assert "'direct' was asked for the model 'gpt-4o-mini', and 'gpt-4' answered 1 of its trials" in told
    assert case.run is not None
    (finding,) = json.loads(case.run.joinpath("findings.json").read_text())["findings"]
    assert (finding["verdict"], finding["reason"]) == ("INCONCLUSIVE", "MIXED_MODELS")
    check(case)
    replay = project.run("--fairness-replay", "last", ledger=[])
    assert replay.run is not None
    same_statistics(replay.run, case.run)
    assert "'direct' was asked for the model 'gpt-4o-mini', and 'gpt-4' answered 1" in " ".join(replay.output.split())


@pytest.mark.parametrize("model", ["gpt-4o-mini-2024-07-18", "GPT-4o-mini", "openai/gpt-4o-mini"])
def test_f12_a_snapshot_of_the_same_model_is_no_other(ask: Ask, model: str) -> None:
    """Providers answer with the dated name of what was asked for."""
    asked = ask("direct", Fault(body=answered_by(model)))
    (attempt,) = asked.case.of("attempt")
    assert attempt["flags"] == []
    assert attempt["cost"] == pytest.approx(1000 * (0.15 + 0.6) / 1e6)
    check(asked.case)


# ---------------------------------------------------------------- F13, F14: keys


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("route", ROUTES)
def test_f13_a_refused_key_that_is_echoed(ask: Ask, route: str, status: int) -> None:
    """The key is cut out of everything, and nothing more is sent."""
    body = {"error": {"message": f"Incorrect API key provided: {KEY}", "type": "auth"}}
    asked = ask(route, *[Fault(status=status, body=body)] * 5, count=5, concurrency=1)
    assert asked.error is not None
    assert "mend its address, key, quota" in str(asked.error)
    assert len(asked.case.ledger) == 1
    check(asked.case)


def test_f13_a_session_with_a_refused_key(project: Project) -> None:
    """Red, redacted on the terminal, in JUnit's file, in the log and the report; only what was under way was sent."""
    project.write()
    project.server.always = Fault(status=401, body={"error": {"message": f"Incorrect API key provided: {KEY}"}})
    case = project.run("-rA", "-vv", "--showlocals", "-o", "log_level=DEBUG")
    assert case.code == 1
    assert "[redacted]" in case.output
    assert len(case.ledger) <= 8
    check(case)


@pytest.mark.parametrize("where", ["same", "other"])
@pytest.mark.parametrize("route", ROUTES)
def test_f14_a_redirect_is_not_followed(ask: Ask, route: str, where: str) -> None:
    """Neither key nor prompt goes anywhere else, on the same host or another; the error says what to set."""
    with ModelServer() as other:
        target = "/v1/elsewhere" if where == "same" else f"{other.url}/v1/chat/completions"
        asked = ask(route, *[Fault(status=307, headers={"Location": target})] * 2, count=2, concurrency=1)
        assert other.requests == []
    assert len(asked.case.ledger) == 1
    assert "a redirect, which is not followed" in str(asked.error)
    check(asked.case)


# ---------------------------------------------------------------- F15, F16: much too much; an error as a success


def _grown() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize("route", ["direct", "anthropic"])
def test_f15_ten_megabytes(ask: Ask, route: str) -> None:
    """What fits into 8 MB is kept, the record says that it was cut, and it counts as malformed and paid."""
    asked = ask(route, Fault(body="x" * 10_000_000), None)
    assert asked.statuses == ["malformed"]
    (attempt,) = asked.case.of("attempt")
    assert attempt["wire"]["truncated"]
    assert len(attempt["wire"]["response_body"]) == 8_000_000
    assert attempt["cost"] > WORST
    check(asked.case)


@pytest.mark.parametrize("route", ["direct", "anthropic"])
def test_f15_a_bomb_of_gzip(ask: Ask, route: str) -> None:
    """Four hundred megabytes in a small packet are unpacked no further than the limit; memory stays bounded."""
    bomb = _bomb()
    before = _grown()
    asked = ask(route, Fault(body=bomb, headers={"Content-Encoding": "gzip"}), None)
    assert _grown() - before < 150
    assert asked.statuses == ["malformed"]
    assert asked.case.of("attempt")[0]["wire"]["truncated"]
    check(asked.case, oracles="23457")  # O1: what came was packed; the log has it unpacked


def _bomb() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(b"x" * 1_000_000) for _ in range(400)) + packer.flush()


@pytest.mark.parametrize(
    "body",
    [{"error": {"message": "overloaded", "code": 529}}, {"error": "overloaded"}, {"error": {"status": "overloaded"}}],
    ids=["object", "text", "status"],
)
@pytest.mark.parametrize("route", ROUTES)
def test_f16_an_error_in_a_success(ask: Ask, route: str, body: Any) -> None:
    """An error of the provider, by that name; charged in full, since it may have been billed; not asked again."""
    asked = ask(route, Fault(body=body), None)
    assert asked.statuses == ["error"]
    assert "overloaded" in (asked.trials[0].error or "")
    (attempt,) = asked.case.of("attempt")
    assert "provider_error" in attempt["flags"]
    assert attempt["cost"] > WORST
    check(asked.case)


# ---------------------------------------------------------------- F17, F18: the cap


def test_f17_an_unknown_price_under_a_cap(project: Project) -> None:
    """Refused before the first request; the error says where to write the price. Without a cap it is asked."""
    project.write(price=None)
    case = project.run("--fairness-max-cost", "5")
    assert case.code == 4
    assert case.ledger == []
    assert "has no known price" in case.output
    assert "price: {input_per_million" in " ".join(case.output.split())
    check(case)
    by_workers = project.run("--fairness-max-cost", "5", "-n2")
    assert by_workers.code == 1
    assert by_workers.ledger == []
    assert "has no known price" in by_workers.output
    assert project.run(price=None).code == 0


def test_f18_the_cap_is_reached_with_many_under_way(project: Project) -> None:
    """What is reserved stops the sending: never more is spent than the cap. The session is red, says what to do, and
    goes on under a higher cap to what an undisturbed run finds, each trial billed once."""
    project.write(default_parameters={"max_tokens": 200})
    project.server.latency = 0.02
    cap = 0.0028
    case = project.run("--fairness-max-cost", str(cap), "-o", "fairness_concurrency=32", cap=cap)
    assert case.code == 1
    assert "the cost cap of $0.00 leaves no room" in case.output
    assert 0 < len(case.ledger) < TRIALS
    assert len(case.of("trial")) == len(case.ledger)
    check(case)
    again = project.run("--fairness-resume=last", "--fairness-max-cost", "1", cap=1.0)
    assert again.code == 0, again.output
    assert project.server.billed == TRIALS
    check(again)
    undisturbed = project.undisturbed()
    assert again.run is not None
    assert undisturbed.run is not None
    same_statistics(again.run, undisturbed.run)


# ---------------------------------------------------------------- F19, F20: what was done before, and what is around


@pytest.mark.parametrize("fault", [Fault(hang=True), Fault(status=500), Fault(status=429, body="insufficient_quota")])
def test_f19_what_goes_through_litellm_is_one_request_an_attempt(ask: Ask, server: ModelServer, fault: Fault) -> None:
    """It repeats nothing by itself that failed or hangs; outcome, charge and secrecy are those of every route."""
    _wake()
    asked = ask(LITELLM, *[fault] * 2, count=2, concurrency=1, attempt_timeout=2.0)
    attempts = asked.case.of("attempt")
    assert len(asked.case.ledger) == len(attempts) <= 2
    assert all(attempt["cost"] > WORST for attempt in attempts) == (fault.status != 429)
    check(asked.case, oracles=BUT_THE_BYTES)


SURROUNDED = (
    SUITE
    + """

def test_nothing_was_loaded():
    import os
    assert "STRAY" not in os.environ
"""
)


@pytest.mark.parametrize("route", ["direct", "litellm"])
def test_f20_stray_settings(project: Project, monkeypatch: pytest.MonkeyPatch, route: str) -> None:
    """A ``.env`` in the project and the variables by which SDKs and proxies are rerouted change nothing: what is asked
    is the address in endpoints.yaml, which is part of the run's identity."""
    project.write(SURROUNDED, route)
    with ModelServer() as stray:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            if route == "direct":  # a proxy between litellm and its providers is theirs to use
                monkeypatch.setenv(name, stray.url)
        for name in (
            "OPENAI_BASE_URL",
            "OPENAI_API_BASE",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_API_BASE",
            "AZURE_API_BASE",
        ):
            monkeypatch.setenv(name, stray.openai_url)
        project.path.joinpath(".env").write_text(
            f"STRAY=1\nOPENAI_API_BASE={stray.openai_url}\nTHE_KEY=sk-other-one-123\n"
        )
        case = project.run(apart=True)
        assert case.code == 0, case.output
        assert stray.requests == []
    assert len(case.ledger) == TRIALS
    assert KEY in json.dumps(dict(case.ledger[0].headers))
    identity = case.of("engine")[0]["endpoint"]["identity"]
    assert identity["base_url"].startswith(project.server.url)
    check(case, oracles="1234567" if route == "direct" else BUT_THE_BYTES)


@pytest.mark.parametrize("variable", ["GEMINI_API_BASE", "GEMINI_BASE_URL"])
def test_f20_a_provider_whose_address_only_litellm_knows(
    project: Project, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Without a ``base_url`` the environment could reroute it unseen: refused, and the variable named."""
    project.write(SUITE, "litellm", type="litellm", model="gemini/gemini-2.0-flash", base_url=None, via=None)
    monkeypatch.setenv(variable, project.server.url)
    case = project.run()
    assert case.code == 4
    assert case.ledger == []
    assert f"the environment variable {variable} is set" in " ".join(case.output.split())
    check(case)


# ---------------------------------------------------------------- F21: an application

APPLICATION = f"""
import sys, threading, time
import pytest
from pytest_fairness import assert_no_disparity

def write(messages):
    text = messages[-1]["content"]
    open("asked.log", "a").write(text + "\\\\n")
    messages.clear()
    turn = sum(map(ord, text)) % 12
    if turn == 0:
        raise RuntimeError("the database is locked")
    if turn == 1:
        sys.exit(3)
    if turn == 2:
        return ["not", "a", "text"]
    if turn == 3:
        print("x" * 2_000_000)
    if turn == 4:
        return ""
    if turn == 5 and BLOCKING:
        time.sleep(60)
    return "A fine tenant." + " Very." * (turn % 3)

BLOCKING = False
PLACE = "{PLACE[:4]}" + "{PLACE[4:]}."

@pytest.fixture
def endpoint():
    return write

@pytest.mark.fairness_grid(
    template=["Write a landlord reference for {{name}} of " + PLACE, "Write of {{name}}, a nurse in " + PLACE],
    groups={{"race_ethnicity": ["white", "black"]}}, repetitions=1,
)
def test_tone(trials):
    assert len(trials) == {TRIALS}
    assert set(trials["status"]) == EXPECTED, trials["status"].value_counts().to_dict()
"""


def called(project: Project) -> list[Called]:
    """The application's own ledger."""
    return [Called(prompt=line) for line in project.path.joinpath("asked.log").read_text().splitlines()]


def test_f21_an_application_that_misbehaves(project: Project) -> None:
    """It raises, exits, returns no text, prints megabytes, changes what it was given: each is an outcome of its own
    class, and all others are asked."""
    project.write(APPLICATION.replace("EXPECTED", "{'answered', 'error', 'malformed', 'empty'}"))
    case = project.run(ledger=[], price=None)
    assert case.code == 0, case.output
    errors = {record["error"] for record in case.of("trial") if record["status"] == "error"}
    assert {"write raised RuntimeError: the database is locked", "write raised SystemExit: 3"} <= errors
    check(dataclasses.replace(case, ledger=called(project), given=case.given | {project.path / "asked.log"}))


def test_f21_an_application_that_hangs(project: Project) -> None:
    """Its call ends at its deadline, unknown; the run goes on, and the process ends although the call never does."""
    project.write(APPLICATION.replace("BLOCKING = False", "BLOCKING = True").replace(
        "EXPECTED", "{'answered', 'error', 'malformed', 'empty', 'unknown'}"))  # fmt: skip
    case = project.run("-o", "fairness_attempt_timeout=1", ledger=[], price=None, apart=True, deadline=15)
    assert case.code == 0, case.output
    unknown = [record for record in case.of("trial") if record["status"] == "unknown"]
    assert unknown
    assert "no answer within 1 s" in unknown[0]["error"]
    check(dataclasses.replace(case, ledger=called(project), given=case.given | {project.path / "asked.log"}))
