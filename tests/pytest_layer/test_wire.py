"""Over the wire: what the server saw and what the log says agree one to one, and workers add no request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import MODES

from pytest_fairness.endpoints.simulated import simulated_endpoint
from tests.support.servers import ModelServer

from .conftest import GRID, Run

KEY = "sk-canary-0123456789abcdef"
ENDPOINTS = """
endpoints:
  - name: "direct"
    type: "openai"
    model: "gpt-4o-mini"
    base_url: "{url}"
    api_key_env: "OPENAI_API_KEY"
    supports_system_prompt: true
    default_temperature: 1.0
  - name: "through-litellm"
    type: "openai"
    via: "litellm"
    model: "gpt-4o-mini"
    base_url: "{url}"
    api_key_env: "OPENAI_API_KEY"
    supports_system_prompt: true
    default_temperature: 1.0
"""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def logged(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = [
        json.loads(line)
        for log in sorted(folder.glob("trials*.jsonl"))
        for line in log.read_text(encoding="utf-8").splitlines()
    ]
    return [record for record in lines if record["type"] == kind]


def prompts(bodies: Counter[str]) -> Counter[str]:
    return Counter({json.dumps(json.loads(body)["messages"]): count for body, count in bodies.items()})


@pytest.mark.parametrize(
    ("endpoint", "mode"),
    [("direct", MODES["plain"]), ("direct", MODES["n2"]), ("through-litellm", MODES["plain"])],
    ids=["direct-plain", "direct-n2", "through-litellm"],
)
def test_the_suite_over_http(
    pytester: pytest.Pytester,
    run_apart: Run,
    server: ModelServer,
    last_run: Callable[[], Path],
    monkeypatch: pytest.MonkeyPatch,
    endpoint: str,
) -> None:
    """The same suite against a server: every request it received is in the log, verbatim and once, and no other."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    pytester.makepyfile(GRID + GRID.replace("test_tone", "test_tone_again"))
    pytester.path.joinpath("endpoints.yaml").write_text(ENDPOINTS.format(url=server.openai_url), encoding="utf-8")
    result = run_apart("--fairness-endpoint", endpoint)
    result.assert_outcomes(passed=2)

    folder = last_run()
    assert len(server.requests) == 160  # 2 templates × 2 groups × 20 names × 2 repetitions, for both tests
    assert len(logged(folder, "trial")) == 160
    attempts = logged(folder, "attempt")
    sent = Counter(attempt["wire"]["request_body"] for attempt in attempts)
    received = Counter(request.body.decode("utf-8") for request in server.requests)
    if endpoint == "direct":
        assert sent == received
    else:  # what litellm was given; how it leaves this process is its own affair
        assert prompts(sent) == prompts(received)
    for path in pytester.path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), f"the key reached {path}"
    assert KEY not in result.stdout.str() + result.stderr.str()


def test_a_bias_behind_the_wire_is_found(pytester: pytest.Pytester, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server plants the bias and sees nothing but the prompt; the finding names the group it was planted on."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    pytester.makepyfile(GRID)
    with ModelServer(simulated_endpoint(bias={"race_ethnicity": {"black": -1.0}}), signals=_signals()) as server:
        pytester.path.joinpath("endpoints.yaml").write_text(ENDPOINTS.format(url=server.openai_url), encoding="utf-8")
        result = run("--fairness-endpoint", "direct")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*FAIL: black is worse off than white*"])


def _signals() -> dict[str, dict[str, str]]:
    """What a model knows of names: those of the grid, each with its group."""
    from pytest_fairness.design.grid import expand_grid

    grid = expand_grid(template="Write a landlord reference for {name}.", groups={"race_ethnicity": ["white", "black"]})
    return {text: dict(groups) for cell in grid for text, groups in cell.signals.items()}
