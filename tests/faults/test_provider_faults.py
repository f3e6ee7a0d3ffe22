"""F1 to F21 and F59 of the catalogue in docs/reliability.md: what a provider, a proxy or an application can
do to a run.

What a server answers to a trial stands in one table, and is asked over every route that it can come
over; faults that need a scene of their own, and those that come to a user's session, follow it. The
seven oracles are asked after every case.
"""

from __future__ import annotations

import asyncio
import dataclasses
import email.utils
import gc
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_fairness.endpoints import Request
from pytest_fairness.endpoints.litellm import load_litellm
from pytest_fairness.errors import EndpointError
from pytest_fairness.model import Message
from tests.support.servers import Fault, ModelServer

from .conftest import (
    KEY,
    LITELLM,
    PLACE,
    PRICE,
    ROUTES,
    SUITE,
    TRIALS,
    Ask,
    Project,
    endpoint_of,
    everywhere,
    message,
    need,
    route_of,
    same_as_undisturbed,
    words,
)
from .oracles import Called, check, same_statistics

#: All that max_tokens allows a reply, in US dollars: what a trial costs at least where nobody knows
#: what it cost.
WORST = 400 * PRICE.output_per_million / 1e6
#: Every oracle but the first, byte for byte: of what goes through litellm, nobody but litellm has
#: the bytes.
BUT_THE_BYTES = "234567"
#: The routes that speak OpenAI's format.
OPENAI = ("direct", "azure")


# ---------------------------------------------------------------- one answer, over each route


@dataclass(frozen=True)
class Row:
    """What the other side answers (over a route), and what the trial comes to: its status and its
    cost, ``worst`` being all that was set aside; flags of the attempt, the provider's word for the
    end, the text, a part of the error.
    """

    answer: Fault | Callable[[str], Fault]
    status: str
    cost: str | float | None = "worst"
    flags: tuple[str, ...] = ()
    routes: tuple[str, ...] = ROUTES
    reason: str | None = None
    reply: str | None = None
    error: str = ""


def using(route: str, used: Any, model: str = "gpt-4o-mini") -> dict[str, Any]:
    """A good answer in the format of *route* that counts *used*."""
    names = {
        "anthropic": ("input_tokens", "output_tokens"),
        "ollama": ("prompt_eval_count", "eval_count"),
    }.get(route)
    if isinstance(used, dict) and names:
        used = dict(zip(names, used.values(), strict=False))
    if route == "ollama":
        body: dict[str, Any] = {"model": model, "message": {"content": "Yes."}, "done": True}
        return body | (used if isinstance(used, dict) else {})
    if route == "anthropic":
        body = {
            "id": "1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "stop_reason": "end_turn",
        }
        body |= {"content": [{"type": "text", "text": "Yes."}], "usage": used}
    else:
        body = message("Yes.") | {"usage": used, "model": model}
    return {key: value for key, value in body.items() if value is not ...}


def counting(used: Any) -> Callable[[str], Fault]:
    return lambda route: Fault(body=using(route, used))


def answered_by(model: str) -> Fault:
    return Fault(body=using("direct", counts(1000, 1000), model))


def digits(number: int) -> Fault:
    """A good answer over any route, with counts of so many digits."""
    body = {"choices": message("Yes.")["choices"], "content": [{"type": "text", "text": "Yes."}]}
    body |= {"message": {"content": "Yes."}, "prompt_eval_count": 0, "eval_count": 1}
    body |= {
        "usage": {"prompt_tokens": 0, "completion_tokens": 1, "input_tokens": 0, "output_tokens": 1}
    }
    return Fault(body=json.dumps(body).replace(": 0", f": {'9' * number}"))


def counts(tokens_in: Any, tokens_out: Any) -> dict[str, Any]:
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}


SSE = 'data: {"choices": []}\n\ndata: [DONE]\n\n'
BAD_UTF8 = b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'
NUMBER = '{"n": ' + "9" * 5000 + "}"
HTML = "<html><body>502</body></html>"
UNREADABLE = [
    "{broken",
    HTML,
    SSE,
    b"",
    b" \n ",
    "null",
    "[]",
    BAD_UTF8,
    "[" * 100_000,
    NUMBER,
    '{"choices": NaN}',
]
#: By the format and what the trial comes to.
WITHOUT_TEXT: dict[tuple[tuple[str, ...], str], list[Any]] = {
    (OPENAI, "empty"): [{"choices": []}, message(None), message("  \n")],
    (OPENAI, "malformed"): [
        *(
            {"choices": None},
            {"id": "1"},
            {"choices": [None]},
            {"choices": [{"finish_reason": "stop"}]},
        ),
        *(message(3), message(["yes"]), message({"text": "yes"})),
    ],
    (("anthropic",), "empty"): [{"content": []}],
    (("anthropic",), "malformed"): [
        {"content": None},
        {"content": [{"type": "text", "text": 3}]},
        {"content": "yes"},
    ],
    (("ollama",), "empty"): [{"message": {"content": ""}}],
    (("ollama",), "malformed"): [{"message": {"content": 3}}, {"message": None}, {}],
}
ENDED = {
    "refusal field": (
        message(None, refusal="I cannot help with that."),
        "refused",
        "stop",
        "I cannot help with that.",
    ),
    "filtered": (message("", "content_filter"), "refused", "content_filter", None),
    "cut short": (message("He is", "length"), "answered", "length", "He is"),
    "unknown": (message("Yes.", "RECITATION_2"), "answered", "RECITATION_2", "Yes."),
    "none": (message("Yes.", None), "answered", None, "Yes."),
}
POLICIES = ("content_policy_violation", "content_filter", "ResponsibleAIPolicyViolation")
NUMBERS = [counts(-5, -9), counts("12", "7"), counts(True, True), counts(20.5, 3), counts(0, 0)]
USED: list[Any] = [..., None, {}, [1, 2], {"prompt_tokens": 20}, *NUMBERS]
SNAPSHOTS = ("gpt-4o-mini-2024-07-18", "GPT-4o-mini", "openai/gpt-4o-mini")
ERRORS: tuple[Any, ...] = (
    {"message": "overloaded", "code": 529},
    "overloaded",
    {"status": "overloaded"},
)

ROWS = {
    **{f"f05 HTTP {status}": Row(Fault(status=status), "error") for status in (500, 502, 504)},
    **{
        f"f07 cut after {cut}": Row(Fault(cut=cut), "malformed", error="broke off")
        for cut in (1, 120)
    },
    **{
        f"f08 {number}": Row(Fault(body=body), "malformed")
        for number, body in enumerate(UNREADABLE)
    },
    "f08 byte order mark": Row(
        Fault(body="\ufeff" + json.dumps(message("Yes."))),
        "answered",
        None,
        (),
        OPENAI,
        "stop",
        "Yes.",
    ),
    **{
        f"f09 {routes[0]} {status} {number}": Row(Fault(body=body), status, None, routes=routes)
        for (routes, status), bodies in WITHOUT_TEXT.items()
        for number, body in enumerate(bodies)
    },
    **{
        f"f10 {what}": Row(Fault(body=body), status, None, (), OPENAI, reason, reply)
        for what, (body, status, reason, reply) in ENDED.items()
    },
    **{
        f"f10 {code}": Row(
            Fault(status=400, body={"error": {"code": code, "message": "filtered"}}),
            "refused",
            reason=code,
        )
        for code in POLICIES
    },
    **{
        f"f11 {used}": Row(counting(used), "answered", flags=("usage_invalid",), reply="Yes.")
        for used in USED
    },
    **{
        f"f12 {model}": Row(
            answered_by(model),
            "answered",
            1000 * (0.15 + 0.6) / 1e6,
            (),
            ("direct",),
            "stop",
            "Yes.",
        )
        for model in SNAPSHOTS
    },
    **{
        f"f16 {error!r}": Row(
            Fault(body={"error": error}), "error", flags=("provider_error",), error="overloaded"
        )
        for error in ERRORS
    },
    "f54 counts of 5000 digits": Row(digits(5000), "malformed", flags=("usage_invalid",)),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_f05_f07_f08_f09_f10_f11_f12_f16_f54_what_a_server_answers(
    ask: Ask, server: ModelServer, row: Row
) -> None:
    """Asked once, whatever comes, but for an empty answer, which is asked once more: logged byte for
    byte, each class by its name, never an answer where there is none; charged in full where nobody
    knows what it cost."""
    server.meet = lambda body: (
        row.answer if isinstance(row.answer, Fault) else row.answer(route_of(body))
    )
    for route, outcome in everywhere(ask, row.routes, max_cost=1.0).items():
        assert outcome.statuses == [row.status], route
        attempts = outcome.case.of("attempt")
        asked = 2 if row.status == "empty" else 1
        assert len(outcome.case.ledger) == len(attempts) == asked
        assert [record["attempt"] for record in attempts] == [1, 2][:asked]
        (trial,), attempt = outcome.trials, attempts[-1]
        assert trial.reply == row.reply
        assert row.reason in (None, trial.finish_reason)
        assert row.error in (trial.error or "")
        assert (
            set(row.flags) <= set(attempt["flags"])
            if row.flags
            else "usage_absurd" not in attempt["flags"]
        )
        if row.cost == "worst":
            assert attempt["cost"] > WORST
        elif row.cost is not None:
            assert (attempt["cost"], attempt["flags"]) == (pytest.approx(row.cost), [])
        check(outcome.case)


ENDS = {
    **{
        f"f11 {count}": (
            counting(counts(count, count)),
            "counts more tokens for one call than any model can take",
        )
        for count in (10**12, 1e12, 10**30)
    },
    "f54 counts of 4000 digits": (lambda _: digits(4000), "counts more tokens for one call"),
    **{
        f"f13 HTTP {status}": (
            lambda _, status=status: Fault(
                status=status,
                body={"error": {"message": f"Incorrect API key provided: {KEY}", "type": "auth"}},
            ),
            "mend its address, key, quota",
        )
        for status in (401, 403)
    },
}


@pytest.mark.parametrize(("answer", "error"), ENDS.values(), ids=ENDS)
def test_f11_f13_f54_what_ends_the_run(
    ask: Ask, server: ModelServer, answer: Callable[[str], Fault], error: str
) -> None:
    """Nothing more is sent to that server; what was answered is kept and charged at its worst case;
    a key that is echoed is cut out of everything."""
    server.meet = lambda body: answer(route_of(body))
    for outcome in everywhere(ask, count=4, concurrency=1, max_cost=1.0).values():
        assert error in str(outcome.error)
        assert len(outcome.case.ledger) == 1
        (attempt,) = outcome.case.of("attempt")
        if attempt["status"] == "answered":
            assert {"usage_absurd", "usage_invalid"} <= set(attempt["flags"])
            assert WORST < attempt["cost"] < 2 * WORST
            assert len(outcome.case.of("trial")) == 1
        check(outcome.case)


WHERE = {
    "direct": "is the model's name right?",
    "ollama": "is the model there? ollama pull gpt-4o-mini",
}
WHERE |= {"azure": "is base_url right, and the name of the deployment?"}
WHERE |= {"anthropic": "is base_url right, and the name of the model?"}


def test_f14_f60_redirects_and_unknown_addresses(ask: Ask, server: ModelServer) -> None:
    """A redirect is not followed, on the same host or another: neither key nor prompt goes anywhere
    else. A 404 names the address, and what to look at by the kind of endpoint."""
    with ModelServer() as other:
        for target in ("/v1/elsewhere", f"{other.url}/v1/chat/completions"):
            server.always = Fault(status=307, headers={"Location": target})
            for outcome in everywhere(ask, count=2, concurrency=1).values():
                assert "a redirect, which is not followed" in str(outcome.error)
                assert len(outcome.case.ledger) == 1
                check(outcome.case)
        assert other.requests == []
    server.always = Fault(status=404)
    for route, outcome in everywhere(ask).items():
        address = outcome.case.of("attempt")[0]["wire"]["url"]
        assert f" at {address}: scripted 404; {WHERE[route]}" in str(outcome.error)


# ---------------------------------------------------------------- F1, F2: no answer, and an endless one


SLOW = {
    "f01 no byte": (Fault(hang=True), "unknown"),
    "f02 headers": (Fault(drip=0.05, drip_headers=True), "unknown"),
    "f02 body": (Fault(drip=0.05), "malformed"),
}


@pytest.mark.parametrize("what", SLOW)
def test_f01_f02_no_answer_or_one_byte_at_a_time(ask: Ask, server: ModelServer, what: str) -> None:
    """The attempt ends at its deadline, however often a byte arrives; the trial is charged at its
    worst case, and not sent again. Bytes of the body that came are kept."""
    server.always, status = SLOW[what]
    for route, outcome in everywhere(ask, attempt_timeout=0.7).items():
        assert outcome.statuses == [status], route
        (attempt,) = outcome.case.of("attempt")
        assert (attempt["cost"] > WORST, attempt["flags"]) == (True, ["deadline"])
        if status == "malformed":
            assert attempt["wire"]["truncated"]
            assert attempt["wire"]["response_body"]
        check(outcome.case)


def test_f01_a_session_ends_on_time_and_red(project: Project) -> None:
    """Nothing answers: the session ends at its deadline, says why, and is red; going on with it
    gives what an undisturbed run gives."""
    project.write()
    project.server.always = Fault(hang=True)
    case = project.run("-o", "fairness_attempt_timeout=0.5", "--fairness-deadline", "2", deadline=3)
    assert case.code == 1
    assert "no answer within" in case.output
    check(case)
    project.server.always = None
    again = project.run(
        "--fairness-resume=last", "--fairness-retry-unknown", "--fairness-retry-errors"
    )
    assert again.code == 0, again.output
    check(again)
    assert project.server.billed == TRIALS
    same_as_undisturbed(project, again)


# ---------------------------------------------------------------- F3, F4, F5: the server says no, for now


def test_f03_slow_down_twice_then_go(ask: Ask, server: ModelServer) -> None:
    """Three numbered attempts, at least the wished pause between them, and one of them billed."""
    seen: Counter[str] = Counter()

    def twice(body: str) -> Fault | None:
        seen[body] += 1
        return Fault(status=429, headers={"Retry-After": "0.3"}) if seen[body] < 3 else None

    server.meet = twice
    for route, outcome in everywhere(ask).items():
        assert outcome.statuses == ["answered"], route
        check(outcome.case)
        times = [request.time for request in outcome.case.ledger]
        assert len(times) == 3
        assert all(after - before >= 0.3 for before, after in itertools.pairwise(times))
        assert [record["attempt"] for record in outcome.case.of("attempt")] == [1, 2, 3]
        assert sum(request.billed for request in outcome.case.ledger) == 1


def test_f03_a_session_slows_down(project: Project) -> None:
    """It waits, goes on and passes; each trial is billed once, as in an undisturbed run, on which
    all oracles hold.
    """
    project.write()
    no = Fault(status=429, headers={"Retry-After": "0.5"})
    project.server.then(no, no)
    case = project.run()
    assert case.code == 0, case.output
    check(case)
    assert project.server.billed == TRIALS
    assert len(case.ledger) > TRIALS
    refused = [request.time for request in case.ledger if not request.billed]
    assert max(request.time for request in case.ledger) - min(refused) >= 0.5
    same_as_undisturbed(project, case)


def _in(seconds: float) -> str:
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


@pytest.mark.parametrize("wish", ["3600", "1e9", "date", "0000000003600"])
def test_f04_nobody_sleeps_for_an_hour(ask: Ask, wish: str) -> None:
    """More than a minute is not waited for: the trial ends as an error that names the wish."""
    header = _in(7200) if wish == "date" else wish
    outcome = ask("direct", Fault(status=429, headers={"Retry-After": header}), deadline=60)
    assert outcome.statuses == ["error"]
    assert "asks for a pause of" in (outcome.trials[0].error or "")
    assert len(outcome.case.ledger) == 1
    check(outcome.case)


def test_f04_wishes_that_make_no_sense_are_ignored(ask: Ask) -> None:
    """We wait as long as we would have without them, and ask again."""
    wishes = ["-1", "nan", "inf", "soon", "Wed, 99 Foo 2026", _in(-3600), "１"]
    faults = [Fault(status=429, headers={"Retry-After": wish}) for wish in wishes]
    # The first trial is asked by itself.
    outcome = ask("direct", None, *faults, count=1 + len(wishes), concurrency=len(wishes))
    assert outcome.statuses == ["answered"] * (1 + len(wishes))
    assert len(outcome.case.ledger) == 1 + 2 * len(wishes)
    check(outcome.case)


def test_f04_a_session_that_is_put_off_is_red(project: Project) -> None:
    """Nobody gets through for an hour: a clear error, exit 1, at once; nothing slept past the
    deadline either.
    """
    project.write()
    project.server.always = Fault(status=429, headers={"Retry-After": "3600"})
    case = project.run(deadline=5)
    assert case.code == 1
    assert "asks for a pause of 3600 s; the longest allowed is 60 s" in words(case)
    check(case)
    project.server.always = Fault(status=503, headers={"Retry-After": "30"})
    case = project.run("--fairness-deadline", "2", deadline=2)
    assert case.code == 1
    assert "the run's deadline" in words(case)
    check(case)


# ---------------------------------------------------------------- F6: the connection goes


def test_f06_the_connection_is_reset(ask: Ask, server: ModelServer) -> None:
    """After the request was read: on a connection that had served before, too. Not sent again."""
    server.meet = lambda body: Fault(reset=True) if "candidate 1" in body else None
    for outcome in everywhere(ask, count=3, concurrency=1).values():
        assert outcome.statuses == ["answered", "unknown", "answered"]
        assert len(outcome.case.ledger) == 3
        check(outcome.case)


@pytest.fixture
def slammed() -> Iterator[ModelServer]:
    """A server that resets every connection before it has read a byte; its ``requests`` are what
    was connected.
    """
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


def test_f06_the_connection_is_reset_at_once(ask: Ask, slammed: ModelServer) -> None:
    """Nobody can know what was read before: connected once, not sent again, charged in full."""
    for number, route in enumerate(ROUTES, 1):
        outcome = ask(route, endpoint=endpoint_of(route, slammed))
        assert outcome.statuses == ["unknown"]
        assert len(slammed.requests) == number
        assert outcome.case.of("attempt")[0]["cost"] > WORST
        check(outcome.case)


# ---------------------------------------------------------------- F10, F12: in a session


def test_f10_ways_to_end_are_counted_by_group_in_the_report(project: Project) -> None:
    """One group is filtered and cut short: the report has each of its ways to end, with the
    provider's word, beside the other group's; a replay of the log says the same."""
    project.write()
    from pytest_fairness.design.grid import expand_grid

    grid = expand_grid(template="{name}", groups={"race_ethnicity": ["white", "black"]})
    filtered, short = [
        cell.name or "" for cell in grid if cell.groups["race_ethnicity"] == "black"
    ][:2]
    project.server.meet = lambda body: (
        Fault(body=message("", "content_filter")) if filtered in body
        else Fault(body=message("He is", "length")) if short in body else None
    )  # fmt: skip
    case = project.run("-rA")
    check(case)
    page = case.run.joinpath("report.html").read_text(encoding="utf-8")
    assert re.search(r'<th scope="row"[^>]*>black</th>.*refused \(content_filter\): 2', page)
    assert re.search(r'<th scope="row"[^>]*>black</th>.*answered \(length\): 2', page)
    figures = r'\s*<td[^>]*class="figure">40</td>\s*<td[^>]*class="figure">40 \(100.0.%\)</td>'
    assert re.search(rf'<th scope="row"[^>]*>white</th>{figures}', page)
    replay = project.run("--fairness-replay", "last", ledger=[])
    assert len(project.server.requests) == TRIALS
    same_statistics(replay.run, case.run)


def test_f12_another_model_answers(ask: Ask) -> None:
    """Both names are in the log, the trial is flagged, and the dearer of both prices counts, from
    then on.
    """
    outcome = ask(
        "direct", answered_by("gpt-4"), answered_by("gpt-4o-mini"), count=2, concurrency=1
    )
    attempts = outcome.case.of("attempt")
    assert [attempt["flags"] for attempt in attempts] == [["model_differs"], []]
    assert [attempt["model"] for attempt in attempts] == ["gpt-4", "gpt-4o-mini"]
    assert "gpt-4o-mini" in outcome.case.of("engine")[0]["endpoint"]["identity"]["model"]
    assert [attempt["cost"] for attempt in attempts] == [pytest.approx(0.09), pytest.approx(0.09)]
    check(outcome.case, oracles="12457")


def test_f12_a_session_in_which_models_are_mixed(project: Project) -> None:
    """No PASS over answers of two models: inconclusive, with its reason; both names are shown, in
    the terminal too.
    """
    project.write()
    project.server.then(answered_by("gpt-4"))
    case = project.run("-rA", "--fairness-require-conclusive")
    assert case.code == 1
    assert "INCONCLUSIVE: 2 model versions answered: gpt-4, gpt-4o-mini" in words(case)
    assert (
        "'direct' was asked for the model 'gpt-4o-mini', and 'gpt-4' answered 1 of its trials"
        in words(case)
    )
    (finding,) = json.loads(case.run.joinpath("findings.json").read_text())["findings"]
    assert (finding["verdict"], finding["reason"]) == ("INCONCLUSIVE", "MIXED_MODELS")
    check(case)
    replay = project.run("--fairness-replay", "last", ledger=[])
    same_statistics(replay.run, case.run)
    assert "'direct' was asked for the model 'gpt-4o-mini', and 'gpt-4' answered 1" in words(replay)


# ---------------------------------------------------------------- F13, F15: keys; much too much


def test_f13_a_session_with_a_refused_key(project: Project) -> None:
    """Red, redacted on the terminal, in JUnit's file, in the log and the report, after a single
    request.
    """
    project.write()
    project.server.always = Fault(
        status=401, body={"error": {"message": f"Incorrect API key provided: {KEY}"}}
    )
    case = project.run("-rA", "-vv", "--showlocals", "-o", "log_level=DEBUG")
    assert case.code == 1
    assert "[redacted]" in case.output
    assert len(case.ledger) == 1
    check(case)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_f13_what_is_wrong_with_an_endpoint_is_found_by_one_request(ask: Ask, status: int) -> None:
    """A wrong key, one that may not, a model that there is not: the first trial is asked by itself."""
    error = {
        "error": {"message": "The model `gpt-4o-mni` does not exist", "code": "model_not_found"}
    }
    outcome = ask("direct", *[Fault(status=status, body=error)] * 20, count=20, concurrency=8)
    assert isinstance(outcome.error, EndpointError)
    assert len(outcome.case.ledger) == 1


def _grown() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_f15_ten_megabytes_and_a_bomb_of_gzip(ask: Ask, server: ModelServer) -> None:
    """What fits into 8 MB is kept, the record says that it was cut, and it counts as malformed and
    paid. Two hundred megabytes in a small packet are unpacked no further; memory stays bounded."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(b"x" * 1_000_000) for _ in range(200)) + packer.flush()
    for fault, oracles in (
        (Fault(body="x" * 10_000_000), "1234567"),
        (
            Fault(body=bomb, headers={"Content-Encoding": "gzip"}),
            BUT_THE_BYTES,
        ),  # what came was packed
    ):
        server.always = fault
        gc.collect()  # what other tests left is none of this one's
        before = _grown()
        for outcome in everywhere(ask, ("direct", "anthropic")).values():
            assert outcome.statuses == ["malformed"]
            (attempt,) = outcome.case.of("attempt")
            assert attempt["wire"]["truncated"]
            assert len(attempt["wire"]["response_body"]) == 8_000_000
            assert attempt["cost"] > WORST
            check(outcome.case, oracles=oracles)
        assert oracles != BUT_THE_BYTES or _grown() - before < 100


# ---------------------------------------------------------------- F17, F18: the cap


def test_f17_an_unknown_price_under_a_cap(project: Project) -> None:
    """Refused before the first request; the error says where to write the price. Without a cap it
    is asked.
    """
    project.write(price=None)
    case = project.run("--fairness-max-cost", "5")
    assert case.code == 4
    assert case.ledger == []
    assert "has no known price" in case.output
    assert "price: {input_per_million" in words(case)
    check(case)
    assert project.run(price=None).code == 0


def test_f18_the_cap_is_reached_with_many_under_way(project: Project) -> None:
    """What is reserved stops the sending: never more is spent than the cap. The session is red,
    says what to do, and goes on under a higher cap to what an undisturbed run finds, each trial
    billed once."""
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
    same_as_undisturbed(project, again)


# ---------------------------------------------------------------- F19, F20: what was done before, and what is around


async def _first_call() -> None:
    """It takes seconds to import and to make one, and attempts here have less."""
    with ModelServer() as server:
        endpoint = endpoint_of(LITELLM, server)
        await endpoint.ask(Request(messages=(Message("user", "Hello."),)))
        await endpoint.aclose()


FAILING = Fault(hang=True), Fault(status=500), Fault(status=429, body="insufficient_quota")


def test_f19_f59_what_goes_through_litellm(
    ask: Ask, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It repeats nothing by itself that failed or hangs; outcome, charge and secrecy are those of
    every route. No trial is lost to a first import that takes longer than an attempt, and each
    request is logged as sent once, as it arrived. One process imports it for both.
    """
    need(LITELLM)
    asyncio.run(_first_call())
    for fault in FAILING:
        server.always = fault
        outcome = ask(LITELLM, count=2, concurrency=1, attempt_timeout=2.0)
        attempts = outcome.case.of("attempt")
        assert len(outcome.case.ledger) == len(attempts) <= 2
        charged = fault.status != 429
        assert all(attempt["cost"] > WORST for attempt in attempts) == charged, fault
        check(outcome.case, oracles=BUT_THE_BYTES)

    def load() -> Any:
        time.sleep(2.5)
        return load_litellm()

    server.always = None
    monkeypatch.setattr("pytest_fairness.endpoints.litellm.load_litellm", load)
    requested = ask(LITELLM, count=4, attempt_timeout=2.0)
    assert requested.statuses == ["answered"] * 4
    assert (
        len(requested.case.of("sent"))
        == len(requested.case.of("attempt"))
        == len(requested.case.ledger)
        == 4
    )
    check(requested.case, oracles=BUT_THE_BYTES)


SURROUNDED = """
import os, pytest

@pytest.mark.fairness_grid(
    template="Write of {name}.", groups={"race_ethnicity": ["white", "black"]}, names=2, repetitions=3)
def test_nothing_was_loaded(trials):
    assert set(trials["status"]) == {"answered"}
    assert "STRAY" not in os.environ
"""


@pytest.mark.parametrize("route", ["direct", LITELLM])
def test_f20_stray_settings(project: Project, monkeypatch: pytest.MonkeyPatch, route: str) -> None:
    """A ``.env`` in the project and the variables by which SDKs and proxies are rerouted change
    nothing: what is asked is the address in endpoints.yaml, which is part of the run's identity."""
    project.write(SURROUNDED, route)
    with ModelServer() as stray:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            if route == "direct":  # a proxy between litellm and its providers is theirs to use
                monkeypatch.setenv(name, stray.url)
        bases = (
            "OPENAI_BASE_URL OPENAI_API_BASE ANTHROPIC_BASE_URL ANTHROPIC_API_BASE AZURE_API_BASE"
        )
        for name in bases.split():
            monkeypatch.setenv(name, stray.openai_url)
        project.path.joinpath(".env").write_text(
            f"STRAY=1\nOPENAI_API_BASE={stray.openai_url}\nTHE_KEY=sk-other-one-123\n"
        )
        case = project.run(apart=route == LITELLM)  # whose import reads such a file
        assert case.code == 0, case.output
        assert stray.requests == []
    assert len(case.ledger) == 12
    assert KEY in json.dumps(dict(case.ledger[0].headers))
    identity = case.of("engine")[0]["endpoint"]["identity"]
    assert identity["base_url"].startswith(project.server.url)
    check(case, oracles="1234567" if route == "direct" else BUT_THE_BYTES)


def test_f20_a_provider_whose_address_only_litellm_knows(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a ``base_url`` the environment could reroute it unseen: refused, and the variable
    named.
    """
    project.write(
        SUITE, "litellm", type="litellm", model="gemini/gemini-2.0-flash", base_url=None, via=None
    )
    monkeypatch.setenv("GEMINI_API_BASE", project.server.url)
    case = project.run()
    assert case.code == 4
    assert case.ledger == []
    assert "the environment variable GEMINI_API_BASE is set" in words(case)
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
    if turn == 5:
        time.sleep(60)
    return "A fine tenant." + " Very." * (turn % 3)

PLACE = "{PLACE[:4]}" + "{PLACE[4:]}."

@pytest.fixture
def endpoint():
    return write

@pytest.mark.fairness_grid(
    template=["Write a landlord reference for {{name}} of " + PLACE, "Write of {{name}}, a nurse in " + PLACE],
    groups={{"race_ethnicity": ["white", "black"]}}, names=(20,), repetitions=1,
)
def test_tone(trials):
    assert len(trials) == {TRIALS}
    assert set(trials["status"]) == {{"answered", "error", "malformed", "empty", "unknown"}}
"""


def test_f21_an_application_that_misbehaves_and_hangs(project: Project) -> None:
    """It raises, exits, returns no text, prints megabytes, changes what it was given: each is an
    outcome of its own class. A call that hangs ends at its deadline, unknown; the run goes on, and
    the process ends without it."""
    project.write(APPLICATION)
    case = project.run(
        "-o", "fairness_attempt_timeout=0.5", ledger=[], price=None, apart=True, deadline=15
    )
    assert case.code == 0, case.output
    errors = {record["status"]: set() for record in case.of("trial")}
    for record in case.of("trial"):
        errors[record["status"]].add(record["error"])
    assert {
        "write raised RuntimeError: the database is locked",
        "write raised SystemExit: 3",
    } <= errors["error"]
    assert any("no answer within 0.5 s" in error for error in errors["unknown"])
    ledger = project.path / "asked.log"
    called = [Called(prompt=line) for line in ledger.read_text().splitlines()]
    check(dataclasses.replace(case, ledger=called, given=case.given | {ledger}))
