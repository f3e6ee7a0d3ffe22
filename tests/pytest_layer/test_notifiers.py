"""Notifiers: called once, after the reports; what they do wrong is shown in one line and changes
nothing else.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pytest_fairness.pytest_layer import notifiers
from pytest_fairness.reports import slack
from tests.conftest import MODES
from tests.reports.factories import four_fifths, results

from .conftest import BIASED, GRID, Project

CONFTEST = """
import time

def pytest_fairness_notify(config, results, changes, report):
    with open("notified.log", "a") as log:
        log.write(f"{report.exists()} {results.counts['FAIL']} {changes} {hasattr(config, 'workerinput')}\\n")

class Raises:
    def pytest_fairness_notify(self, results):
        raise KeyboardInterrupt("sk-0123456789abcdef at \\x1b[31m https://me:secret@example.org/hook?token=12345678")

class Hangs:
    def pytest_fairness_notify(self):
        time.sleep(30)

def pytest_configure(config):
    config.pluginmanager.register(Raises(), "raises")
    config.pluginmanager.register(Hangs(), "hangs")
"""
PLANTED = ("--fairness-endpoint=planted",)
SECRET = "/services/T0123/B0123/correcthorsebattery"


class Slack:
    """A receiver of webhooks: what it got, and how it answers."""

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, object]]] = []
        self.status, self.delay = 200, 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.received.append((self.path, json.loads(body)))
                time.sleep(outer.delay)
                self.send_response(outer.status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}{SECRET}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slack]:
    running = Slack()
    monkeypatch.setenv("FAIRNESS_SLACK_WEBHOOK", running.url)
    yield running
    running.server.shutdown()
    running.server.server_close()


def test_what_a_notifier_does_wrong_changes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that raises, whatever it raises, and one that hangs: each is a line without secrets, and
    the third is called all the same; a session that passes stays green."""
    monkeypatch.setattr(notifiers, "LIMIT", 0.3)
    project.write(GRID)
    project.pytester.makeconftest(CONFTEST)
    result = project.run()
    assert result.ret == 0, result.stdout.str()
    log = (project.path / "notified.log").read_text().splitlines()
    assert log == ["True 0 None False"]
    lines = [line for line in result.stdout.lines if "the notifier of" in line]
    failed = "failed, which changes nothing else:"
    assert sorted(lines) == [
        f"fairness: the notifier of hangs {failed} it took more than 0.3 s",
        f"fairness: the notifier of raises {failed} [redacted] at \\x1b[31m "
        "https://example.org/hook",
    ]
    assert project.run("--collect-only", "-q").ret == 0
    assert project.run("-k", "nothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert len((project.path / "notified.log").read_text().splitlines()) == 1


def test_workers_notify_nobody(project: Project) -> None:
    """The controller does, once; also where it compares."""
    project.write(GRID, BIASED)
    project.pytester.makeconftest(CONFTEST.partition("class Raises")[0])
    project.run(mode=MODES["n0"]).assert_outcomes(passed=1)
    project.run(*PLANTED, "--fairness-against=last", mode=MODES["n2"]).assert_outcomes(failed=1)
    first, second = (project.path / "notified.log").read_text().splitlines()
    assert first == "True 0 None False"
    assert second.startswith("True 1 (FindingChange(change=<Change.NEW")
    assert second.endswith(" False")


@pytest.mark.parametrize("mode", ["plain", "n2"])
def test_slack_is_sent_a_fail_and_nothing_else(
    project: Project, receiver: Slack, mode: str
) -> None:
    """Off by default; silent on a PASS; by option or ini file; the address is in no file and no
    output.
    """
    project.write(GRID, BIASED)
    assert project.run(*PLANTED).ret == 1
    assert project.run("--fairness-notify=slack").ret == 0
    assert not receiver.received
    result = project.run(*PLANTED, "-o", "fairness_notify=slack", mode=MODES[mode])
    assert result.ret == 1
    ((path, body),) = receiver.received
    assert path == SECRET
    assert body["text"] == "Fairness: 1 FAIL (simulated)"
    text = json.dumps(body["blocks"], ensure_ascii=False)
    assert "*FAIL* [planted, simulated]: Black is worse off than white on sentiment" in text
    assert f"run {project.last.name} · 160 trials · endpoint planted" in text
    for file in project.path.rglob("*"):
        assert file.is_dir() or b"correcthorsebattery" not in file.read_bytes()
    assert "correcthorsebattery" not in f"{result.stdout}{result.stderr}"


def test_slack_in_trouble_is_one_line(project: Project, receiver: Slack) -> None:
    project.write(GRID, BIASED)
    receiver.status = 500
    result = project.run(*PLANTED, "--fairness-notify=slack")
    assert result.ret == 1
    (found,) = (line for line in result.stdout.lines if "the notifier of" in line)
    assert found == (
        "fairness: the notifier of fairness failed, which changes nothing else: Slack answered "
        "with status 500"
    )


def test_nothing_goes_where_it_should_not(receiver: Slack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A redirect that is not followed, no answer, nobody there, no address, or one that is none."""
    monkeypatch.setattr(slack, "_SECONDS", 0.3)

    def post(address: str) -> str:
        with pytest.raises(slack.NotSentError) as caught:
            slack.post(results(four_fifths()), None, {"FAIRNESS_SLACK_WEBHOOK": address})
        assert caught.value.__context__ is None
        return str(caught.value)

    receiver.status = 307
    assert post(receiver.url) == "Slack answered with status 307"
    receiver.status, receiver.delay = 200, 1.0
    assert post(receiver.url) == "Slack gave no answer within 0.3 s"
    assert {path for path, _ in receiver.received} == {SECRET}
    no_address = "FAIRNESS_SLACK_WEBHOOK is no https address, so nothing was sent to Slack"
    for address, why in (
        (f"http://127.0.0.1:9{SECRET}", "Slack cannot be reached"),
        (f"http://example.org{SECRET}", no_address),
        (f"file://{SECRET}", no_address),
        (f"https://[{SECRET}", no_address),
        (f"https://exa mple.org{SECRET}", "Slack cannot be reached (InvalidURL)"),
        (f"https://example.org:x{SECRET}", "Slack cannot be reached (InvalidURL)"),
        (" ", "FAIRNESS_SLACK_WEBHOOK is not set, so nothing was sent to Slack"),
    ):
        assert post(address) == why, address
