"""F51, F54, F59 and F60 of the catalogue in docs/reliability.md: endpoints whose every answer is
useless, whose bodies are made to be slow, whose package is slow to import, and that are not there
at all.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.endpoints import Endpoint, create_endpoint
from pytest_fairness.endpoints import application as application_type
from pytest_fairness.endpoints.protocol import AttemptError, Evidence
from pytest_fairness.errors import EndpointError, StoreError
from pytest_fairness.model import Status
from pytest_fairness.runs.store import RunStore
from pytest_fairness.trials_frame import refuse_if_nothing_answered
from tests.support.doubles import Scripted
from tests.support.servers import Fault, ModelServer

from .conftest import (
    LITELLM,
    ROUTES,
    SUITE,
    TRIALS,
    Ask,
    Project,
    cells,
    endpoint_of,
    message,
    words,
)
from .oracles import check

# ---------------------------------------------------------------- F51: not one usable answer


CALLS = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
LOGIN = Fault(body="<html><body>Please log in</body></html>", headers={"Content-Type": "text/html"})
_packer = zlib.compressobj(9, zlib.DEFLATED, 31)
BOMB = Fault(
    body=_packer.compress(b"x" * 8_500_000) + _packer.flush(), headers={"Content-Encoding": "gzip"}
)
#: Each with the reason that is quoted.
USELESS = {
    "bomb of gzip": (BOMB, "the body is longer than 8,000,000 bytes"),
    "login page": (
        LOGIN,
        "malformed (the body is not JSON: <html><body>Please log in</body></html>)",
    ),
    "half JSON": (
        Fault(body='{"choices": [{"mess'),
        'malformed (the body is not JSON: {"choices": [{"mess)',
    ),
    "cut body": (Fault(cut=50), "HTTP 200, and the response broke off"),
    "SSE": (
        Fault(body='data: {"choices": []}\n\ndata: [DONE]\n\n'),
        "malformed (the body is not JSON: data: {",
    ),
    "empty body": (Fault(body=b""), "malformed (the body of the response is empty)"),
    "no choices": (Fault(body={"model": "gpt-4o-mini", "choices": []}), "empty (choices is empty)"),
    "tool calls": (
        Fault(body=message(None, "tool_calls", tool_calls=CALLS)),
        "empty (the reply holds no text (finish reason tool_calls))",
    ),
}


def test_f51_without_one_usable_answer_all_is_red(ask: Ask, server: ModelServer) -> None:
    """Whatever an assertion would say, with the first reason; logged and charged as any answer. So
    are bodies that unpack to more than is read."""
    for fault, reason in USELESS.values():
        server.always = fault
        requested = ask("direct", count=3)
        with pytest.raises(EndpointError) as refusal:
            refuse_if_nothing_answered(requested.trials, "direct")
        assert "none of 3 trials has a usable answer" in str(refusal.value)
        assert reason in str(refusal.value)
        asked = 6 if reason.startswith("empty (choices") else 3
        assert len(requested.case.ledger) == asked
        assert len(requested.case.of("trial")) == 3
        # O1: packed as it came, unpacked in the log.
        check(requested.case, oracles="234567" if fault is BOMB else "1234567")


SILENT = (
    SUITE
    + """
@pytest.fixture
def endpoint():
    def write(prompt):
        with open("asked.log", "a") as asked:
            asked.write(prompt + "\\n")
        return ""
    return write
"""
)


def test_f51_an_application_that_says_nothing(project: Project) -> None:
    """Nobody's wire, and the session is red all the same."""
    project.write(SILENT)
    case = project.run(ledger=[], price=None)
    assert case.code == 1
    assert f"none of {TRIALS} trials has a usable answer ({TRIALS} empty)" in words(case)
    asked = (project.path / "asked.log").read_text(encoding="utf-8").splitlines()
    assert len(asked) == 2 * TRIALS  # an empty answer is asked once more
    assert all(attempt["wire"] is None for attempt in case.of("attempt"))


def test_f51_refusals_are_answers(project: Project) -> None:
    """A model that declines everything has answered: the finding says so, not an error."""
    project.write(SUITE.replace('outcome="word_count"', 'outcome="refusal"'))
    project.server.always = Fault(body=message(None, refusal="I cannot help with that."))
    case = project.run()
    assert case.code == 0, case.output
    assert "has a usable answer" not in case.output
    check(case)


def test_f51_one_usable_answer_leaves_the_verdict_to_the_test(
    project: Project, tmp_path: Path
) -> None:
    """Then the table tells what became of the others: ``status``, and in ``error`` why."""
    table = tmp_path / "table.json"
    judge = f'trials[["status", "error"]].to_json({str(table)!r}, orient="values")'
    assertion = SUITE.strip().rpartition("\n")[2]
    project.write(SUITE.replace(assertion, f"    {judge}"))
    project.server.always = LOGIN
    project.server.then(None)
    case = project.run("-o", "fairness_concurrency=1")
    assert case.code == 0, case.output
    rows = json.loads(table.read_text(encoding="utf-8"))
    assert sorted(status for status, _ in rows) == ["answered"] + ["malformed"] * (TRIALS - 1)
    for status, error in rows:
        assert (error is None) == (status == "answered")
    assert {error for _, error in rows if error} == {
        "the body is not JSON: <html><body>Please log in</body></html>"
    }
    check(case)


# ---------------------------------------------------------------- F54: bodies and numbers that are made to be slow

#: Values to which the paths of a letter may lead; for most paths fewer, which take less time.
MOST_VALUES = application_type.MOST_VALUES
PATHS = {
    "$.letter.parts[*].text": MOST_VALUES,
    "$..text": MOST_VALUES // 10,
    "$.letter.parts[?@..text].text": MOST_VALUES // 10,
}


def many_parts(most: int) -> Fault:
    """More values under a wildcard than *most*."""
    return Fault(body={"letter": {"parts": [{"text": "x"}] * (most + 1000)}})


def application(server: ModelServer, reply: Any = "$.letter.parts[*].text") -> Endpoint:
    """An application behind *server*, whose reply stands at *reply*."""
    entry = {"name": "letters", "type": "http", "url": f"{server.url}/letters/write"}
    return create_endpoint({**entry, "request": {"messages": "{messages}"}, "reply": reply})


def test_f54_a_wildcard_over_a_huge_body_harms_no_neighbour(
    ask: Ask, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The body counts as malformed, is paid for and logged; what is asked meanwhile is answered
    while it is read.
    """
    append, looked = RunStore.append, application_type.values_at
    answered: list[str] = []
    waited: list[bool] = []

    def appending(store: RunStore, record: dict[str, Any]) -> None:
        append(store, record)
        answered.extend(
            [record["key"]]
            if record["type"] == "attempt" and record["status"] == "answered"
            else []
        )

    def reading(path: str, data: Any) -> list[Any]:
        if len(data["letter"]["parts"]) > 1000:
            until = time.monotonic() + 60
            while len(answered) < 6 and time.monotonic() < until:
                time.sleep(0.01)
            waited.append(len(answered) >= 6)
        return looked(path, data)

    monkeypatch.setattr(RunStore, "append", appending)
    monkeypatch.setattr(application_type, "values_at", reading)
    asked = itertools.count(1)
    # The first is asked by itself; the two after it are huge, whichever they are.
    server.meet = lambda _: huge if next(asked) in (2, 3) else None
    for number, (path, most) in enumerate(PATHS.items()):
        huge = many_parts(most)
        monkeypatch.setattr(application_type, "MOST_VALUES", most)
        given = {
            "endpoint": application(server, path),
            "planned": cells(8, str(number)),
            "case": {"price": None},
        }
        answered.clear()
        asked = itertools.count(1)
        requested = ask("direct", concurrency=8, **given)
        malformed = [trial for trial in requested.trials if trial.status is Status.MALFORMED]
        assert sorted(requested.statuses) == ["answered"] * 6 + ["malformed"] * 2
        assert {trial.error for trial in malformed} == {
            f"its JSON paths lead to more than {most:,} values of the body"
        }
        assert waited == [True, True] * (number + 1)
        check(requested.case)


def test_f54_what_is_read_when_the_deadline_comes_is_logged(
    ask: Ask, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The body has come, and was paid for: its bytes are kept, though nobody waits for what is read
    off it.
    """
    looked = application_type.values_at

    def slowly(path: str, data: Any) -> list[Any]:
        time.sleep(1.5)
        return looked(path, data)

    monkeypatch.setattr(application_type, "values_at", slowly)
    requested = ask(
        "direct", endpoint=application(server), attempt_timeout=0.7, case={"price": None}
    )
    assert requested.statuses == ["malformed"]
    (attempt,) = requested.case.of("attempt")
    assert attempt["flags"] == ["deadline", "unpriced"]
    assert attempt["wire"]["response_body"].encode() == server.requests[0].answer
    check(requested.case)


def test_f54_a_number_of_4000_digits_at_the_place_of_the_text(
    ask: Ask, server: ModelServer
) -> None:
    """Is that text; at the place of a cost or a count it is none."""
    places = {
        "text": "$.text",
        "input_tokens": "$.in",
        "output_tokens": "$.in",
        "cost": "$.in",
        "model": "$.in",
    }
    long = "9" * 4000
    server.always = Fault(body=f'{{"text": {long}, "in": -{long}}}')
    requested = ask("direct", endpoint=application(server, places), case={"price": None})
    assert requested.statuses == ["answered"]
    assert requested.trials[0].reply == long
    assert requested.trials[0].cost is None
    check(requested.case)


SCORED = (
    SUITE.replace("names=(20,)", "names=(2,)")
    .replace(
        'assert_no_disparity(trials, outcome="word_count", by="race_ethnicity")',
        """for outcome in BUILT_IN:
        values = outcome_of(trials, outcome).values
        assert len(values) == len(trials) and not values.isin([float("inf"), float("-inf")]).any(), outcome""",
    )
    .replace(
        "import pytest\n",
        "import pytest\nfrom pytest_fairness.scorers import BUILT_IN, outcome_of\n",
        1,
    )
)


def test_f54_scorers_read_numbers_of_any_length(project: Project) -> None:
    """As no outcome, or as one that is a number; none of them ends the test."""
    four, five = "9" * 4000, "9" * 5000
    project.write(SCORED)
    text = (
        f"{four}. I rate it {five}/10, at ${four} a year, {five} to {four} %, {four}/10, ${five}: "
        "yes."
    )
    project.server.always = Fault(body=message(text))
    case = project.run()
    assert case.code == 0, case.output
    check(case)


# ---------------------------------------------------------------- F59: a package that is slow to import


class Unready(Scripted):
    """Needs *seconds* before it can be asked, or fails to get ready with *error*."""

    def __init__(self, seconds: float = 0.0, error: AttemptError | None = None) -> None:
        super().__init__()
        self.prepared = 0
        self._seconds, self._error = seconds, error

    async def prepare(self) -> None:
        self.prepared += 1
        await asyncio.sleep(self._seconds)
        if self._error is not None:
            raise self._error


def test_f59_the_clock_of_an_attempt_starts_when_the_endpoint_is_ready(ask: Ask) -> None:
    """Once for all that wait for it; but the end of the run does not. What is not asked by then is
    not run, and nothing is logged of it."""
    endpoint = Unready(0.6)
    requested = ask("direct", endpoint=endpoint, count=8, attempt_timeout=0.3)
    assert requested.statuses == ["answered"] * 8
    assert endpoint.prepared == 1
    requested = ask("direct", endpoint=Unready(30.0), count=4, deadline=0.3)
    assert requested.statuses == ["not_run"] * 4
    assert requested.case.of("sent") == requested.case.of("attempt") == []
    assert requested.case.seconds < 10


def test_f59_an_endpoint_that_cannot_be_made_ready_is_not_asked(ask: Ask) -> None:
    """Its error ends the asking; no attempt was made."""
    endpoint = Unready(error=AttemptError("its package is broken", evidence=Evidence.AUTH))
    requested = ask("direct", endpoint=endpoint, count=4)
    assert "its package is broken" in str(requested.error)
    assert requested.case.of("sent") == requested.case.of("attempt") == []
    assert endpoint.requests == []


@pytest.mark.parametrize("mode", [[], ["-n2"]], ids=["plain", "n2"])
def test_f71_the_deadline_passes_during_the_import(project: Project, mode: list[str]) -> None:
    """One message a test, and neither a traceback nor a word of asyncio's. Nothing is
    imported after the pause, which would take seconds more.
    """
    project.write(SUITE, LITELLM)
    project.path.joinpath("conftest.py").write_text(SLOW_IMPORT, encoding="utf-8")
    case = project.run(
        *mode, "--fairness-deadline", "0.7", "-rA", "-o", "log_level=DEBUG", apart=True
    )
    assert case.code == 1
    assert "the run's deadline passed before it was asked" in words(case)
    assert not [
        word for word in ("Traceback", "never retrieved", "CutOff") if word in case.output
    ], case.output
    assert case.ledger == case.of("sent") == []
    check(case)


SLOW_IMPORT = """
import time
from pytest_fairness.endpoints import litellm

def slowly():
    time.sleep(2)

litellm.load_litellm = slowly
"""


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure for which the server asks for no pause is repeated at once."""
    monkeypatch.setattr("pytest_fairness.engine.queue.FIRST_PAUSE", 0.01)


@pytest.mark.usefixtures("short_pauses")
def test_f59_only_what_leaves_is_logged_as_sent(ask: Ask) -> None:
    """Nobody listens: the attempts are logged, and none of them as sent."""
    for route in ROUTES:
        requested = ask(route, endpoint=endpoint_of(route, nobody()), max_attempts=2)
        assert "2 attempts in a row got no connection" in str(requested.error)
        assert [attempt["evidence"] for attempt in requested.case.of("attempt")] == ["not_sent"] * 2
        assert requested.case.of("sent") == []
        check(requested.case)


def test_f59_what_cannot_be_logged_as_sent_does_not_leave(
    ask: Ask, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a connection, and the disk is full: not a byte of the request reaches the other
    side.
    """
    append = RunStore.append

    def full(store: RunStore, record: dict[str, Any]) -> None:
        if record["type"] == "sent":
            raise StoreError("no space left on the device")
        append(store, record)

    monkeypatch.setattr(RunStore, "append", full)
    requested = ask("direct")
    assert "no space left" in str(requested.error)
    assert server.requests == []


# ---------------------------------------------------------------- F60: nobody there


def nobody() -> ModelServer:
    """A server that is not started, at a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return ModelServer(port=taken.getsockname()[1])


@pytest.mark.usefixtures("short_pauses")
def test_f60_a_session_with_a_dead_server_ends_soon(project: Project) -> None:
    """After the three attempts of the first trial, which is asked by itself, with the address and
    what to look at.
    """
    project.server = nobody()
    project.write()
    case = project.run()
    assert case.code == 1
    assert f"{project.server.url} refuses connections: is the server running?" in words(case)
    assert "in a row got no connection, so nothing more is sent to this endpoint" in words(case)
    assert len(case.of("attempt")) == 3
    assert case.of("sent") == []
    check(case)


@pytest.mark.usefixtures("short_pauses")
def test_f60_over_each_route(ask: Ask) -> None:
    """The same, whoever builds the request; what was not asked by then is not logged as anything. A
    host that is not known is named as such."""
    server = nobody()
    for route in ROUTES:
        requested = ask(route, endpoint=endpoint_of(route, server), count=100, concurrency=16)
        assert f"{server.url} refuses connections: is the server running?" in str(requested.error)
        assert (
            len(requested.case.of("attempt")) <= 3 * 19
        )  # sixteen in flight, three reserved ahead
        assert len(requested.case.of("trial")) < 19
        check(requested.case)
    server._host = "no-such-host.invalid"
    requested = ask("direct", endpoint=endpoint_of("direct", server), count=30, concurrency=16)
    assert f"the host of http://no-such-host.invalid:{server.port} is not known" in str(
        requested.error
    )


@pytest.mark.usefixtures("short_pauses")
def test_f60_a_plain_server_that_says_nothing_to_tls(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the connection and waits for a request: nothing was sent, and what to look at is
    said.
    """
    monkeypatch.setattr("pytest_fairness.endpoints.http._CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        address = f"https://127.0.0.1:{silent.getsockname()[1]}"
        system = endpoint_of("direct", nobody(), base_url=f"{address}/v1")
        requested = ask("direct", endpoint=system, count=2, max_attempts=2)
    assert "got no connection" in str(requested.error)
    assert {attempt["evidence"] for attempt in requested.case.of("attempt")} == {"not_sent"}
    assert (
        f"{address} answers no connection within 10 s: is base_url right (http or https?)"
        in str(requested.error)
    )
    check(requested.case)


def test_f60_a_server_that_is_there_again_soon(ask: Ask) -> None:
    """A restart of a second costs nothing, however many are asking meanwhile."""
    server = nobody()
    starting = threading.Timer(0.8, server.__enter__)
    starting.start()
    try:
        requested = ask("direct", endpoint=endpoint_of("direct", server), count=40, concurrency=16)
    finally:
        starting.join()
        server.__exit__()
    assert requested.statuses == ["answered"] * 40
    assert any(attempt["evidence"] == "not_sent" for attempt in requested.case.of("attempt"))


def test_f60_a_base_url_without_v1(project: Project) -> None:
    """A 404 for every request: the address is named, and what is missing."""
    project.write(base_url=f"{project.server.url}/api")
    case = project.run()
    assert case.code == 1
    assert f"HTTP 404 at {project.server.url}/api/chat/completions" in words(case)
    assert "base_url usually ends in /v1" in words(case)
    assert "mend its address" in words(case)
    assert len(case.ledger) <= 2 * 8
    check(case)
