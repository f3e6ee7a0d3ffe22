"""``--fairness-endpoint a,b`` and ``all``: an item of each test for each endpoint."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.cli import main
from tests.conftest import MODES
from tests.support.entries import openai_entry
from tests.support.servers import Fault, ModelServer

from .conftest import GRID, Project, shown

ENDPOINTS = """
endpoints:
  - name: "fair"
    type: "simulated"
    seed: 3
  - name: "planted/2"
    type: "simulated"
    bias: {race_ethnicity: {black: -0.8}}
"""
SMALL = """groups={"race_ethnicity": ["white", "black"]}, names=2, repetitions=1"""
SUITE = (
    GRID
    + f"""
@pytest.mark.fairness_grid(template="Rate {{name}}.", {SMALL}, temperatures=["default", 0.0])
def test_each(cell, endpoint):
    assert cell.reply and endpoint.name in ("fair", "planted/2")

@pytest.mark.fairness_pairs(template="{{name_1}} or {{name_2}}?", candidates="four_groups", names=2, repetitions=1)
def test_pairs(trials, endpoint):
    assert set(trials["endpoint"]) == {{endpoint.name}}

@pytest.mark.fairness
def test_by_hand(endpoint):
    assert endpoint.name in ("fair", "planted/2")

class TestOwn:
    @pytest.fixture
    def endpoint(self):
        return lambda prompt: "7"

    @pytest.mark.fairness_grid(template="Rate {{name}}.", {SMALL})
    def test_own(self, trials):
        assert len(trials) == 4

class TestWrapped:
    @pytest.fixture
    def endpoint(self, endpoint):
        return endpoint

    @pytest.mark.fairness_grid(template="Rate {{name}}.", {SMALL})
    def test_wrapped(self, trials):
        assert trials["endpoint"].nunique() == 1

@pytest.mark.parametrize("endpoint", [lambda prompt: "7"], ids=["by-mark"])
@pytest.mark.fairness_grid(template="Rate {{name}}.", {SMALL})
def test_named_by_the_test(trials):
    assert len(trials) == 4

def test_foreign():
    pass
"""
)
ONCE = {"test_suite.py::TestOwn::test_own", "test_suite.py::test_named_by_the_test[by-mark]"}


def asked(project: Project) -> Counter[str]:
    """Trials of the newest run by endpoint."""
    return Counter(record["endpoint"]["name"] for record in project.records("trial"))


def judged(project: Project) -> dict[str, tuple[Any, ...]]:
    return {
        one["nodeid"]: (one["model_endpoint"], one["verdict"], one["p_value"])
        for one in project.findings
    }


def test_each_test_is_an_item_for_each_endpoint(project: Project) -> None:
    """Plain, with ``-n0`` and with workers: the same items and findings, each about its own
    endpoint.
    """
    project.write(SUITE, ENDPOINTS)
    found = {}
    for mode, arguments in MODES.items():
        result = project.run("--fairness-endpoint", "fair,planted/2", "-v", mode=arguments)
        assert result.ret == pytest.ExitCode.TESTS_FAILED, result.stdout.str()
        outcomes = {
            item["nodeid"].partition("::")[2]: item["outcome"] for item in project.results["items"]
        }
        found[mode] = outcomes, judged(project), project.results["missing"]
        if mode == "plain":
            text, records = shown(result), asked(project)
    assert found["plain"] == found["n0"] == found["n2"]
    outcomes, findings, missing = found["plain"]
    assert not missing
    assert Counter(name.partition("[")[0] for name in outcomes) == {
        "test_tone": 2,
        "test_each": 16,
        "test_pairs": 2,
        "test_by_hand": 2,
        "TestOwn::test_own": 1,
        "TestWrapped::test_wrapped": 2,
        "test_named_by_the_test": 1,
    }
    assert [name for name, outcome in outcomes.items() if outcome != "passed"] == [
        "test_tone[planted/2]"
    ]
    assert "test_each[fair-t-0-t1-white-meredith_weber]" in outcomes
    assert {name.partition("::")[2]: about[:2] for name, about in findings.items()} == {
        "test_tone[fair]": ("fair", "PASS"),
        "test_tone[planted/2]": ("planted/2", "FAIL"),
    }
    assert records["planted/2"] == records["fair"]
    assert records["<lambda>"] == 4  # of two tests, which ask the same
    assert "endpoints fair, planted/2 and the tests' own, seed 0" in text
    assert (
        "fixture 'endpoint' of test_suite.py replaces --fairness-endpoint fair,planted/2 and is "
        "asked once" in text
    )
    assert "test_named_by_the_test: its parameter 'endpoint' replaces --fairness-endpoint" in text
    assert "fixture 'endpoint' of test_suite.py wraps --fairness-endpoint fair,planted/2" in text
    assert "PASS [fair, simulated" in text


def test_a_single_endpoint_leaves_ids_as_they_are(project: Project) -> None:
    """Of the command line, of the ini file, and of a file with one entry, whatever asks."""
    project.write(
        GRID + "\ndef test_by_hand(endpoint):\n    assert endpoint.name == 'fair'\n", ENDPOINTS
    )
    for arguments in (("--fairness-endpoint=fair",), ("-o", "fairness_endpoint=fair")):
        project.run(*arguments).assert_outcomes(passed=2)
        assert list(judged(project)) == ["test_suite.py::test_tone"]
    (project.path / "endpoints.yaml").write_text(
        ENDPOINTS.partition('  - name: "planted')[0], encoding="utf-8"
    )
    project.run("--fairness-endpoint=all").assert_outcomes(passed=2)
    assert list(judged(project)) == ["test_suite.py::test_tone"]
    assert project.manifest["settings"]["endpoint"] == "fair"


def test_recorded_resumed_and_in_parts(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``all`` in the ini file; a run that ended before its second endpoint goes on; a replay needs
    no file, of all of them or of one; merged shards are judged alike."""
    every = ("-o", "fairness_endpoint=all")
    project.write(GRID, ENDPOINTS)
    project.run(*every, "-k", "not planted").assert_outcomes(passed=1, deselected=1)
    assert asked(project) == {"fair": 160}
    project.run(*every, "--fairness-resume=last").assert_outcomes(passed=1, failed=1)
    assert asked(project) == {"fair": 160, "planted/2": 160}
    assert len(list(project.last.parent.glob("2*"))) == 1
    whole, run = judged(project), project.last.name

    shards = []
    for shard in ("1/2", "2/2"):
        project.run(*every, "--fairness-shard", shard).assert_outcomes(skipped=2)
        assert asked(project) == {"fair": 80, "planted/2": 80}
        shards.append(str(project.last))
    assert main(["merge", *shards, "--into", str(project.last.parent)]) == 0
    capsys.readouterr()
    changed = ENDPOINTS.replace("planted/2", "other")
    (project.path / "endpoints.yaml").write_text(changed, encoding="utf-8")
    result = project.run(*every, "--fairness-resume", run)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the endpoint was 'fair,planted/2', is 'fair,other'*"])

    (project.path / "endpoints.yaml").unlink()
    for arguments in ((), ("--fairness-endpoint=all",)):
        project.run("--fairness-replay=last", *arguments).assert_outcomes(passed=1, failed=1)
        assert judged(project) == whole
    project.run("--fairness-replay", run, "--fairness-endpoint=planted/2").assert_outcomes(failed=1)
    assert (
        judged(project)["test_suite.py::test_tone"] == whole["test_suite.py::test_tone[planted/2]"]
    )


def two_models(
    url: str, *, model: str = "gpt-4o", price: tuple[float, float] | None = (2.5, 10)
) -> str:
    """``endpoints.yaml`` with one that is cheap and one that is dear, of this *model* and *price*."""
    cheap = openai_entry("cheap", url, price=(0.15, 0.6))
    return "endpoints:\n" + cheap + openai_entry("dear", url, model=model, price=price)


def test_what_is_announced_and_capped(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each endpoint's requests and cost, and what they come to together; one without a price stops
    a cap.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    small = f"""
import pytest

@pytest.mark.fairness_grid(template="Rate {{name}}.", {SMALL})
def test_rated(trials):
    assert len(trials) == 4
"""
    with ModelServer() as server:
        project.write(small, two_models(server.openai_url))
        result = project.run("--fairness-endpoint=all", "--fairness-max-cost=1", "-v")
        result.assert_outcomes(passed=2)
        assert Counter(request.json["model"] for request in server.requests) == {
            "gpt-4o-mini": 4,
            "gpt-4o": 4,
        }
        text = shown(result)
        assert "fairness: 2 tests, up to 8 trials, endpoints cheap, dear, seed 0" in text
        assert "fairness: cheap: about 4 requests, about $" in text
        assert "fairness: dear: about 4 requests, about $" in text
        assert "fairness: together about $" in text
        assert "(cap $1.00)" in text
        assert {entry["name"] for entry in project.manifest["endpoints"]} == {"cheap", "dear"}

        project.write(small, two_models(server.openai_url, model="made-up", price=None))
        result = project.run("--fairness-endpoint=cheap,dear", "--fairness-max-cost=1")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*endpoint 'dear' has no known price*"])
        assert len(server.requests) == 8


def test_each_is_asked_once_before_any_is_asked_more(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one refuses the key: one request to each, and not one test of the other is paid."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    suite = f"""
import pytest

@pytest.mark.fairness_grid(template="Rate {{name}}.", {SMALL})
def test_rated(trials):
    assert len(trials) == 4

@pytest.mark.fairness_grid(template="Greet {{name}}.", {SMALL})
def test_greeted(cell):
    assert cell.reply
"""
    with ModelServer() as server:
        project.write(suite, two_models(server.openai_url))
        server.then(None, Fault(status=401))
        result = project.run("--fairness-endpoint=all")
        result.assert_outcomes(errors=10)
        assert [request.json["model"] for request in server.requests] == ["gpt-4o-mini", "gpt-4o"]
        assert "or leave 'dear' out of --fairness-endpoint" in shown(result)
        project.run("--fairness-endpoint=all", "--fairness-resume=last").assert_outcomes(passed=10)
        assert Counter(request.json["model"] for request in server.requests) == {
            "gpt-4o-mini": 8,
            "gpt-4o": 9,
        }


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("fair,", "must be names with a comma between them"),
        ("fair, fair", "names 'fair' twice"),
        ("all,fair", "'all' stands for every endpoint of the file: give it alone"),
        ("fair,plantd", "unknown endpoint 'plantd'; did you mean 'planted/2'?"),
        ("fair,twin", "endpoints 'fair' and 'twin' are the same system: name one of them"),
    ],
)
def test_what_cannot_be_asked(project: Project, value: str, why: str) -> None:
    twin = '  - name: "twin"\n    type: "simulated"\n    seed: 3\n'
    project.write(GRID, ENDPOINTS + twin)
    result = project.run("--fairness-endpoint", value)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{why}*"])
    assert not (project.path / ".fairness").exists() or not project.records("sent", "trial")


def test_workers_ask_no_system_twice(project: Project) -> None:
    twin = '  - name: "twin"\n    type: "simulated"\n    seed: 3\n'
    project.write(GRID, ENDPOINTS + twin)
    result = project.run("--fairness-endpoint=fair,twin", mode=MODES["n2"])
    result.assert_outcomes(passed=1, errors=1)
    assert (
        "endpoints 'fair' and 'twin' are the same system: name one of them" in result.stdout.str()
    )


def test_a_test_that_does_not_say_which(project: Project) -> None:
    """A file of which all cannot mean every one; a fixture that is looked up while the test runs."""
    project.write(GRID, ENDPOINTS.replace("fair", "all"))
    result = project.run("--fairness-endpoint=all")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*an endpoint is called 'all', which stands for every one of them: rename it"]
    )

    project.write("def test_late(request):\n    request.getfixturevalue('endpoint')\n", ENDPOINTS)
    result = project.run("--fairness-endpoint=fair,planted/2")
    result.assert_outcomes(failed=1)
    assert (
        "2 endpoints are to be asked (fair, planted/2), and this test does not say which"
        in result.stdout.str()
    )
