"""F65 of the catalogue in docs/reliability.md: keys that come back in replies, in whatever
spelling, from whomever.
"""

from __future__ import annotations

import html
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_fairness.cli import main
from pytest_fairness.endpoints import callable_endpoint, create_endpoint
from pytest_fairness.endpoints.protocol import Reply, Request
from pytest_fairness.reports import bundle as reports_bundle
from pytest_fairness.reports.verification import is_on_wire
from tests.support.doubles import Scripted
from tests.support.servers import Fault, ModelServer

from .conftest import ROUTES, SUITE, Ask, Project, cells, endpoint_of, message
from .oracles import Case, check

#: A key with what JSON, HTML and addresses like to spell otherwise.
SECRET = "sk-CANARY/9q+tU=aB7/xk"


def every(characters: str, spell: Callable[[str], str]) -> str:
    """SECRET with those *characters* as *spell* gives them."""
    return "".join(spell(letter) if letter in characters else letter for letter in SECRET)


#: How the key stands in the text of a reply.
TEXTS = {
    "as it is": SECRET,
    "upper case": SECRET.upper(),
    "lower case": SECRET.lower(),
    "HTML by number": every("/+=", lambda letter: f"&#{ord(letter)};"),
    "HTML in hex": every("/+=", lambda letter: f"&#x{ord(letter):X};"),
    "HTML in small hex, upper case": every("/+=", lambda letter: f"&#x{ord(letter):x};").upper(),
    "HTML by name": SECRET.replace("/", "&sol;").replace("+", "&plus;").replace("=", "&equals;"),
    "HTML twice": html.escape(every("/+=", lambda letter: f"&#{ord(letter)};")),
    "all of it HTML": "".join(f"&#{ord(letter)};" for letter in SECRET),
    "JSON of PHP": SECRET.replace("/", "\\/"),
    "JSON of .NET": every("/+=", lambda letter: f"\\u{ord(letter):04X}"),
    "address": every("/+=", lambda letter: f"%{ord(letter):02x}"),
}
#: How the bytes of a body may write the characters of its text.
BODIES: dict[str, Callable[[str], str]] = {
    "as Python does": lambda body: body,
    "as PHP does": lambda body: body.replace("/", "\\/"),
    "as .NET does": lambda body: (
        body.replace("+", "\\u002B").replace("&", "\\u0026").replace("=", "\\u003D")
    ),
    "in small hex": lambda body: (
        body.replace("+", "\\u002b").replace("/", "\\u002f").replace("s", "\\u0073")
    ),
}


def said(text: str, spell: Callable[[str], str]) -> Fault:
    """A success in the words of every provider that says *text*, in its model and finish reason
    too.
    """
    body = {
        **message(text, text),
        "model": f"m {text}",
        "content": [{"type": "text", "text": text}],
        "stop_reason": text,
        "message": {"role": "assistant", "content": text},
        "done": True,
        "done_reason": text,
        "letter": {"text": text},
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": 5,
            "input_tokens": 20,
            "output_tokens": 5,
        },
        "prompt_eval_count": 20,
        "eval_count": 5,
    }
    return Fault(body=spell(json.dumps(body)))


def clean(case: Case, output: str = "") -> None:
    """O4 for SECRET, in whatever case."""
    check(replace(case, secrets=(SECRET, SECRET.lower()), output=case.output + output), oracles="4")


@pytest.mark.parametrize("route", [*ROUTES, "application"])
def test_f65_a_reply_that_repeats_the_key(
    ask: Ask, server: ModelServer, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cut out of text, model and finish reason, and out of the bytes with the same result:
    the reply still is what the provider's response says."""
    monkeypatch.setenv("THE_KEY", SECRET)
    if route == "application":
        where = {"text": "$.letter.text", "model": "$.model", "finish_reason": "$.done_reason"}
        given = {
            "name": route,
            "type": "http",
            "url": f"{server.url}/letters/write",
            "reply": where,
        }
        header = {"headers": {"X-Key": {"env": "THE_KEY"}}}
        endpoint = create_endpoint({**given, **header, "request": {"messages": "{messages}"}})
    else:
        endpoint = endpoint_of(route, server)
    faults = [
        said(f"Your key is {text}, Ann.", spell)
        for text in TEXTS.values()
        for spell in BODIES.values()
    ]
    server.then(*faults)
    requested = ask(
        route, endpoint=endpoint, planned=cells(len(faults)), case={"price": None}, concurrency=1
    )
    assert set(requested.statuses) == {"answered"}
    assert [trial.reply for trial in requested.trials] == ["Your key is [redacted], Ann."] * len(
        faults
    )
    for attempt in requested.case.of("attempt"):
        assert attempt["text"] == attempt["finish_reason"] == "Your key is [redacted], Ann."
        assert attempt["model"] == "m Your key is [redacted], Ann."
        assert is_on_wire(attempt["text"], attempt["wire"])
        assert json.loads(attempt["wire"]["response_body"])["letter"]["text"] == attempt["text"]
    clean(requested.case)


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_f65_an_error_that_repeats_the_key(
    ask: Ask, server: ModelServer, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In JSON and as a page, long before and across the place where a long message is cut."""
    monkeypatch.setenv("THE_KEY", SECRET)
    bodies: list[str] = []
    for text in TEXTS.values():
        for before in ("", "x" * 185, "x" * 280, "x" * 1990):
            page = f"<html>{before} {text} is no key</html>"
            message = json.dumps({"error": {"message": page}})
            bodies += [page, *(spell(message) for spell in BODIES.values())]
    if status == 401:  # which ends a run: every spelling with every beginning, and every text
        bodies = bodies[::11]
    printed = ""
    asked = 0
    while bodies[asked:]:
        faults = [Fault(status=status, body=body) for body in bodies[asked:]]
        server.then(*faults)
        plan = cells(len(faults), str(asked))
        requested = ask("direct", planned=plan, case={"price": None}, concurrency=1, max_attempts=1)
        server._queue.clear()
        assert requested.case.of("attempt")
        asked += len(requested.case.ledger)
        printed += requested.case.output
    assert SECRET.lower()[:11] not in printed.lower()
    clean(requested.case, printed)  # the files of all runs are those of one project


def test_f65_a_callable_that_repeats_keys(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the environment when it is asked, also where it put it there itself, and what it
    raises.
    """
    monkeypatch.setenv("SERVICE_TOKEN", SECRET)
    monkeypatch.delenv("LATE_PASSWORD", raising=False)
    late = "correct-Horse/battery+77"

    def write(prompt: str) -> str:
        monkeypatch.setenv("LATE_PASSWORD", late)
        if "candidate 1" in prompt:
            raise RuntimeError(f"no access with {SECRET.upper()} and {late}")
        return f"A letter with {TEXTS['HTML by number']} and {late}."

    requested = ask(
        "direct", endpoint=callable_endpoint(write), planned=cells(3), case={"price": None}
    )
    assert requested.statuses == ["answered", "error", "answered"]
    assert requested.trials[0].reply == "A letter with [redacted] and [redacted]."
    assert "no access with [redacted] and [redacted]" in str(requested.trials[1].error)
    clean(requested.case)
    check(replace(requested.case, secrets=(late,)), oracles="4")


def test_f65_an_endpoint_whose_long_error_ends_within_the_key(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key goes before the error is cut: no half of it is left at the end."""
    monkeypatch.setenv("THE_KEY", SECRET)

    def refuse(_request: Request) -> Reply:
        raise RuntimeError(f"{'x' * 1950} {SECRET}")

    requested = ask("direct", endpoint=Scripted(refuse), case={"price": None}, max_attempts=1)
    (trial,) = requested.trials
    assert "RuntimeError: xxx" in str(trial.error)
    assert SECRET[:6] not in str(trial.error)
    clean(requested.case)


# ---------------------------------------------------------------- whole sessions

ECHO = """
import os

def pytest_addoption(parser):
    parser.addoption("--my-api-key")

import pytest

@pytest.fixture
def endpoint(pytestconfig):
    def write(prompt):
        given = pytestconfig.getoption("--my-api-key")
        said = f"A fine tenant, says {given.lower()}, and {os.environ['SERVICE_TOKEN']} agrees."
        return said + " Yes." * (len(prompt) % 3)
    return write
"""
GIVEN = "plain-Secret-Value/77+"


def everything(project: Project, capsys: pytest.CaptureFixture[str]) -> str:
    """Each export of the last run, made in the project's folder, an unpacked bundle among them;
    what they print.
    """
    exports = ("--markdown", "report.md"), ("--junit", "report.xml"), ("--sarif", "report.sarif")
    capsys.readouterr()
    assert main(["report", "last", *(part for export in exports for part in export)]) == 0
    assert main(["audit", "last", "--into", "bundle.zip"]) == 0
    assert main(["verify", "bundle.zip"]) == 0
    assert main(["verify", "last"]) == 0
    with zipfile.ZipFile(project.path / "bundle.zip") as bundle:
        bundle.extractall(project.path / "unpacked")
    printed = capsys.readouterr()
    return printed.out + printed.err


@pytest.mark.parametrize("mode", [[], ["-n2"]], ids=["plain", "n2"])
def test_f65_a_session_with_a_callable(
    project: Project,
    mode: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A key of the command line and one of the environment: in no file, no export, no bundle; which
    verifies. The page to be signed is drawn where there are no workers.
    """
    if mode:
        monkeypatch.setattr(reports_bundle, "surroundings", lambda: None)
    monkeypatch.setenv("SERVICE_TOKEN", SECRET)
    project.write(SUITE)
    project.path.joinpath("conftest.py").write_text(ECHO, encoding="utf-8")
    project.path.joinpath("pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    given = ("--my-api-key", GIVEN, "-rA", "--showlocals", "test_suite.py")
    case = project.run(*mode, *given, ledger=[], price=None, secrets=(SECRET, GIVEN), prompts=())
    assert case.code == 0, case.output
    assert case.of("trial")[0]["replies"][0].startswith(
        "A fine tenant, says [redacted], and [redacted] agrees."
    )
    monkeypatch.chdir(project.path)
    clean(case, everything(project, capsys))
    check(case, oracles="34567")


def test_f65_a_session_with_a_server(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a run verifies, as a run and as a bundle, and neither has the key."""
    monkeypatch.setattr(reports_bundle, "surroundings", lambda: None)
    monkeypatch.setenv("THE_KEY", SECRET)
    project.write()
    spoken = list(TEXTS.values())
    texts = (
        f"A fine nurse: {spoken[number % len(spoken)]}. Greetings." for number in range(10_000)
    )
    project.server.meet = lambda body: said(next(texts), BODIES["as .NET does"])
    case = project.run(price=None, secrets=(SECRET,), prompts=())
    assert case.code == 0, case.output
    monkeypatch.chdir(project.path)
    clean(case, everything(project, capsys))
