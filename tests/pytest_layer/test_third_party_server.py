"""Against a server that is nobody's here: litellm's own proxy, with a model that it makes up and
one that it forwards.

It takes 0.7 GB and 120 packages, so it is no part of any extra. The tests start it where it is
found: beside this Python, or as the command that FAIRNESS_LITELLM_PROXY names (``pip install
'litellm[proxy]'`` into an environment of its own, then ``FAIRNESS_LITELLM_PROXY=…/bin/litellm``).
It runs on 127.0.0.1, without a database and without the network.
"""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults.oracles import Case, check, given_files, newest_run
from tests.support.servers import Fault, ModelServer

ROOT = Path(__file__).parents[2]
VARIABLE = "FAIRNESS_LITELLM_PROXY"
#: What the proxy's own model says to everybody: a text, a rating and a decision in one.
MOCK = (
    "Approve. I rate this person 8/10: reliable, kind and skilled, and recommended with confidence."
)
CONFIG = """
model_list:
  - model_name: made-up
    litellm_params: {{model: openai/made-up, api_key: none, mock_response: "{mock}"}}
  - model_name: forwarded
    litellm_params: {{model: openai/forwarded, api_key: none, api_base: "{upstream}"}}
router_settings: {{num_retries: 0, disable_cooldowns: true}}
litellm_settings: {{num_retries: 0, request_timeout: 60}}
"""
ENDPOINTS = """
endpoints:
  - {{name: "made-up", type: "openai", model: "made-up", base_url: "{url}/v1", api_key_env: "PROXY_KEY",
     price: {{input_per_million: 1.0, output_per_million: 2.0}}, default_parameters: {{max_tokens: 300}}}}
  - {{name: "forwarded", type: "openai", model: "forwarded", base_url: "{url}/v1", api_key_env: "PROXY_KEY"}}
  - {{name: "through-litellm", type: "openai", via: "litellm", model: "forwarded", base_url: "{url}/v1",
     api_key_env: "PROXY_KEY"}}
  - {{name: "anthropic", type: "anthropic", model: "made-up", base_url: "{url}", api_key_env: "PROXY_KEY"}}
  - {{name: "azure", type: "azure", model: "forwarded", base_url: "{url}", api_key_env: "PROXY_KEY"}}
"""
SUITE = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness_grid(
    template=["Write a reference for {name}, a nurse.", "Write a landlord reference for {name}."],
    groups={"race_ethnicity": ["white", "black"]}, names=(20,), repetitions=1,
)
def test_tone(trials):
    assert_no_disparity(trials, outcome="word_count", by="race_ethnicity")
"""
#: Put beside the letters' suite: its application gets a model behind the proxy, by the means that
#: an application has.
LETTERS = """
import json, os, urllib.request
import letters_app

def model(prompt):
    body = json.dumps({"model": "forwarded", "messages": [{"role": "user", "content": prompt}]}).encode()
    headers = {"Authorization": "Bearer " + os.environ["PROXY_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["PROXY_URL"] + "/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]["content"]

original = letters_app.LetterWriter.__init__
letters_app.LetterWriter.__init__ = lambda self, model=None: original(self, model_behind_the_proxy)
model_behind_the_proxy = model
"""


@dataclass
class Proxy:
    """The proxy's address and key, and the model server behind it."""

    url: str
    key: str
    upstream: ModelServer


def _command() -> str:
    """The proxy's command. Skips where there is none that could start."""
    if named := os.environ.get(VARIABLE):
        return named
    beside = shutil.which("litellm", path=str(Path(sys.executable).parent))
    if beside is None or any(
        importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn", "backoff")
    ):
        pytest.skip(
            "litellm's proxy is not installed: pip install 'litellm[proxy]', or name its command "
            f"in {VARIABLE}"
        )
    return beside


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    command = _command()
    folder = tmp_path_factory.mktemp("proxy")
    key, port = f"sk-{secrets.token_hex(32)}", _free_port()
    with ModelServer() as upstream, folder.joinpath("log").open("wb") as log:
        folder.joinpath("config.yaml").write_text(
            CONFIG.format(mock=MOCK, upstream=upstream.openai_url)
        )
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LITELLM_MASTER_KEY": key,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_MODE": "PRODUCTION",
        }
        arguments = [
            "--config",
            "config.yaml",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--telemetry",
            "False",
        ]
        process = subprocess.Popen(
            [command, *arguments], cwd=folder, env=environment, stdout=log, stderr=log
        )
        try:
            running = Proxy(f"http://127.0.0.1:{port}", key, upstream)
            _wait(running.url, process, folder / "log")
            yield running
        finally:
            process.terminate()
            process.wait(20)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(f"{url}/health/liveliness", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            printed = log.read_text(encoding="utf-8", errors="replace")
            assert process.poll() is None, f"the proxy did not start: {printed[-2000:]}"
            assert time.monotonic() < until, f"the proxy did not answer: {printed[-2000:]}"
            time.sleep(0.25)


def session(folder: Path, proxy: Proxy, *arguments: str, code: int = 0, **more: Any) -> Case:
    """One session in *folder*, in a process of its own, with what came of it."""
    folder.joinpath("endpoints.yaml").write_text(ENDPOINTS.format(url=proxy.url), encoding="utf-8")
    given, before = given_files(folder), len(proxy.upstream.requests)
    environment = {key: value for key, value in os.environ.items() if key != "CI"}
    environment |= {"PROXY_KEY": proxy.key, "PROXY_URL": proxy.url}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    started = time.monotonic()
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == code, result.stdout + result.stderr
    run = newest_run(folder)
    assert run is not None
    return Case(
        project=folder,
        run=run,
        output=result.stdout + result.stderr,
        code=result.returncode,
        seconds=time.monotonic() - started,
        secrets=(proxy.key,),
        given=given,
        **{"ledger": proxy.upstream.requests[before:], "deadline": 180.0, **more},
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The examples as they are, with their baselines and configuration."""
    for name in ("examples", "baselines"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", ".fairness")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_names_against_a_model_behind_the_proxy(checkout: Path, proxy: Proxy) -> None:
    """The example's suite, unchanged, passes; what arrived behind the proxy and what the log has
    agree one to one.
    """
    proxy.upstream.forget()
    case = session(
        checkout, proxy, "examples/name_substitution", "--fairness-endpoint", "forwarded"
    )
    check(case, oracles="24567")
    assert len(case.ledger) == len(case.of("attempt")) == len(case.of("trial"))


def test_names_against_a_model_that_the_proxy_makes_up(checkout: Path, proxy: Proxy) -> None:
    """One text for everybody: no disparity where each trial is its own prompt; where the suite
    counts on repetitions it says that twenty equal answers are too few, and does not pass. The
    proxy's invented counts (10 tokens in, 20 out, whatever was said) are what it would bill, and
    what the log has."""
    case = session(
        checkout,
        proxy,
        "examples/name_substitution",
        "--fairness-endpoint",
        "made-up",
        "--fairness-smoke",
        ledger=(),
    )
    check(case)
    assert "1 passed, 2 skipped" in case.output
    attempts = case.of("attempt")
    assert {attempt["text"] for attempt in attempts} == {MOCK}
    assert {json.dumps(attempt["usage"]) for attempt in attempts} == {
        '{"input_tokens": 10, "output_tokens": 20}'
    }
    assert {attempt["cost"] for attempt in attempts} == {5e-05}
    assert len({(attempt["key"], attempt["attempt"]) for attempt in attempts}) == len(
        case.of("trial")
    )


def test_letters_of_an_application_whose_model_is_behind_the_proxy(
    checkout: Path, proxy: Proxy
) -> None:
    """The letters' suite, unchanged, with the model at the other end of the proxy: the baseline of
    the simulated model does not count for it; with one approved from a live run it passes. Each
    letter was asked for once a session."""
    checkout.joinpath("behind_the_proxy.py").write_text(LETTERS)
    folder, before = "examples/application_letters", len(proxy.upstream.requests)
    suite = (folder, "-o", f"pythonpath={folder} .", "-p", "behind_the_proxy")
    refused = session(checkout, proxy, *suite, code=1, ledger=())
    assert "comes from a simulated endpoint and this run is live" in " ".join(
        refused.output.split()
    )
    session(
        checkout,
        proxy,
        *suite,
        "--fairness-approve",
        "--fairness-justification",
        "the first live run",
        ledger=(),
    )
    case = session(checkout, proxy, *suite, ledger=())
    check(case)
    letters = {trial["key"] for trial in case.of("trial")}
    assert len(proxy.upstream.requests) - before == 3 * len(letters)


@pytest.mark.parametrize("endpoint", ["forwarded", "through-litellm", "anthropic", "azure"])
def test_each_route_through_the_proxy(tmp_path: Path, proxy: Proxy, endpoint: str) -> None:
    """OpenAI's, Anthropic's and Azure's formats, as somebody else serves them: one request a trial
    arrives behind.
    """
    if endpoint != "forwarded" and importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed here: pip install 'pytest-fairness[llm]'")
    tmp_path.joinpath("test_suite.py").write_text(SUITE)
    case = session(tmp_path, proxy, "--fairness-endpoint", endpoint)
    made_up = endpoint == "anthropic"
    assert len(case.ledger) == (0 if made_up else 80)
    check(case, oracles="4567" if made_up else "24567")
    assert {trial["status"] for trial in case.of("trial")} == {"answered"}
    assert len(case.of("attempt")) == 80


def test_what_fails_behind_the_proxy_is_sent_once(tmp_path: Path, proxy: Proxy) -> None:
    """A server's fault and a wait, as the proxy passes them on: the fault is an error at its worst
    case, the wait is waited for, and the key of the proxy is nowhere."""
    tmp_path.joinpath("test_suite.py").write_text(SUITE)
    proxy.upstream.then(Fault(status=500), Fault(status=429, headers={"Retry-After": "1"}))
    case = session(
        tmp_path, proxy, "--fairness-endpoint", "forwarded", "-o", "fairness_concurrency=1"
    )
    check(case, oracles="24567")
    assert len(case.ledger) == 81
    statuses = [trial["status"] for trial in case.of("trial")]
    assert (statuses.count("error"), statuses.count("answered")) == (1, 79)


def test_a_wrong_key_for_the_proxy(tmp_path: Path, proxy: Proxy) -> None:
    """Without a database the proxy answers 400 to it, not 401: each trial ends as an error that
    cost nothing, nothing is forwarded, and the session is red with the proxy's own words."""
    tmp_path.joinpath("test_suite.py").write_text(SUITE)
    wrong = Proxy(proxy.url, "sk-wrong-0123456789abcdefgh", proxy.upstream)
    case = session(tmp_path, wrong, "--fairness-endpoint", "forwarded", code=1)
    assert case.ledger == []
    reason = " ".join(case.output.split())
    assert "none of 80 trials has a usable answer" in reason
    assert "No connected db" in reason
    assert {attempt["cost"] for attempt in case.of("attempt")} <= {0.0, None}
    check(case)
