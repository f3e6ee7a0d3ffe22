"""F69: the bundle of each suite, asked of a model over the wire, is made and verifies: nothing in
it is simulated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pytest_fairness.reports.bundle import verify, write_bundle
from tests.support.servers import ModelServer
from tests.support.sessions import run_pytest

KEY = "sk-test-0123456789abcdef"
MODEL = """
endpoints:
  - name: direct
    type: openai
    model: gpt-4o-mini
    base_url: "{url}"
    api_key_env: OPENAI_API_KEY
    supports_system_prompt: true
    default_temperature: 1.0
    price: {{input_per_million: 1, output_per_million: 1}}
    default_parameters: {{max_tokens: 200}}
"""
#: Of each suite as little as makes findings, of its own analyses too; and what it is configured
#: with.
SUITES: Mapping[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "selection": (
        ("-k", "not test_arms or scrubbed-vs-raw_matched-gender"),
        {"selection.yaml": "names: 2\nrepetitions: 2\nroles: [nurse]\ncriteria: [kind]\n"},
    ),
    "letters": (
        ("--fairness-approve", "--fairness-justification", "the first one"),
        {"letters.yaml": "repetitions: 2\nclasses: [gender]\nwording: [word_count]\n"},
    ),
    "red_team": (("-k", "test_bait and (euphemisms or proxies) or test_category and gender"), {}),
    "bias": (("--fairness-test=BIAS-NARR-gender", "--fairness-tier=1", "-k", "default"), {}),
    "governance": (
        ("-k", "test_third_party or test_there_are or gender and (explained or as_long)"),
        {},
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.mark.parametrize("suite", SUITES)
def test_f69_the_bundle_of_a_suite_verifies(
    suite: str, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each finding is derived again, controls that its test declares included, or a suite's own and
    said to be so.
    """
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    arguments, files = SUITES[suite]
    for name, text in {**files, "endpoints.yaml": MODEL.format(url=server.openai_url)}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    asked = (
        "--pyargs",
        f"pytest_fairness.suites.{suite}",
        "--fairness-endpoint=direct",
        *arguments,
    )
    result = run_pytest(tmp_path, "-p", "no:cacheprovider", "-p", "no:xdist", *asked)
    (run,) = (tmp_path / ".fairness" / "runs").glob("2*")
    results = json.loads((run / "findings.json").read_bytes())
    assert results["findings"], result.stdout.str()
    assert not results["run"]["simulated"]
    verified = verify(write_bundle(run, tmp_path / "evidence.zip"))
    assert verified.problems == []
    assert len(verified.derived) == len(results["findings"])
