"""F51, F54, F59 and F60 of the catalogue in docs/reliability.md: endpoints whose every answer is useless, whose bodies
are made to be slow, whose package is slow to import, and that are not there at all.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import Fault

from .conftest import SUITE, TRIALS, Project
from .oracles import Called, check

# ---------------------------------------------------------------- F51: not one usable answer


def message(**fields: Any) -> dict[str, Any]:
    """A chat completion whose message has *fields*."""
    reason = "tool_calls" if "tool_calls" in fields else "stop"
    choice = {"index": 0, "message": {"role": "assistant", **fields}, "finish_reason": reason}
    usage = {"prompt_tokens": 20, "completion_tokens": 5}
    return {"model": "gpt-4o-mini", "choices": [choice], "usage": usage}


def bomb() -> bytes:
    """Forty megabytes in a small packet."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(b"x" * 40_000_000) + packer.flush()


CALLS = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
LOGIN = Fault(body="<html><body>Please log in</body></html>", headers={"Content-Type": "text/html"})
#: Each with the reason that is quoted.
USELESS = {
    "login page": (LOGIN, "malformed (the body is not JSON: <html><body>Please log in</body></html>)"),
    "half JSON": (Fault(body='{"choices": [{"mess'), 'malformed (the body is not JSON: {"choices": [{"mess)'),
    "cut body": (Fault(cut=50), "HTTP 200, and the response broke off"),
    "SSE": (Fault(body='data: {"choices": []}\n\ndata: [DONE]\n\n'), "malformed (the body is not JSON: data: {"),
    "empty body": (Fault(body=b""), "malformed (the body of the response is empty)"),
    "no choices": (Fault(body={"model": "gpt-4o-mini", "choices": []}), "empty (choices is empty)"),
    "tool calls": (
        Fault(body=message(content=None, tool_calls=CALLS)),
        "empty (the reply holds no text (finish reason tool_calls))",
    ),
}


@pytest.mark.parametrize("how", USELESS)
def test_f51_a_session_without_one_usable_answer_is_red(project: Project, how: str) -> None:
    """Whatever its assertions would say: red, with the first reason; logged and charged as any answer."""
    project.write()
    project.server.always, reason = USELESS[how]
    case = project.run()
    assert case.code == 1
    output = " ".join(case.output.split())
    assert f"none of {TRIALS} trials has a usable answer" in output
    assert reason in output
    assert len(case.ledger) == len(case.of("trial")) == TRIALS
    check(case)


def test_f51_nothing_but_bombs_of_gzip(project: Project) -> None:
    """The same for bodies that unpack to more than is read."""
    project.write(SUITE.replace("repetitions=1", "repetitions=1, names=3"))
    project.server.always = Fault(body=bomb(), headers={"Content-Encoding": "gzip"})
    case = project.run()
    assert case.code == 1
    assert "the body is longer than 8,000,000 bytes" in " ".join(case.output.split())
    check(case, oracles="234567")  # O1: what came was packed; the log has it unpacked


def test_f51_the_same_in_every_mode(project: Project, mode: list[str]) -> None:
    """With workers, too."""
    project.write(SUITE.replace("repetitions=1", "repetitions=1, names=3"))
    project.server.always = LOGIN
    case = project.run(*mode)
    assert case.code == 1
    assert "none of 12 trials has a usable answer (12 malformed)" in " ".join(case.output.split())
    check(case)


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


def test_f51_an_application_that_says_nothing(project: Project, mode: list[str]) -> None:
    """Nobody's wire, and red all the same."""
    project.write(SILENT)
    asked = project.path / "asked.log"
    case = project.run(*mode, ledger=[], price=None)
    assert case.code == 1
    assert f"none of {TRIALS} trials has a usable answer ({TRIALS} empty)" in " ".join(case.output.split())
    ledger = [Called(prompt=line) for line in asked.read_text(encoding="utf-8").splitlines()]
    assert len(ledger) == TRIALS
    assert all(attempt["wire"] is None for attempt in case.of("attempt"))


REFUSALS = SUITE.replace('outcome="word_count"', 'outcome="refusal"')


def test_f51_refusals_are_answers(project: Project) -> None:
    """A model that declines everything has answered: the finding says so, not an error."""
    project.write(REFUSALS)
    project.server.always = Fault(body=message(content=None, refusal="I cannot help with that."))
    case = project.run()
    assert case.code == 0, case.output
    assert "has a usable answer" not in case.output
    check(case)


def test_f51_one_usable_answer_leaves_the_verdict_to_the_test(project: Project, tmp_path: Path) -> None:
    """Then the table tells what became of the others: ``status``, and in ``error`` why."""
    table = tmp_path / "table.json"
    judge = f'trials[["status", "error"]].to_json({str(table)!r}, orient="values")'
    assertion = SUITE.strip().rpartition("\n")[2]
    project.write(SUITE.replace(assertion, f"    {judge}"))
    project.server.always = LOGIN
    project.server.then(None)
    case = project.run("--fairness-concurrency", "1")
    assert case.code == 0, case.output
    rows = json.loads(table.read_text(encoding="utf-8"))
    assert sorted(status for status, _ in rows) == ["answered"] + ["malformed"] * (TRIALS - 1)
    for status, error in rows:
        assert (error is None) == (status == "answered")
    assert {error for _, error in rows if error} == {"the body is not JSON: <html><body>Please log in</body></html>"}
    check(case)
