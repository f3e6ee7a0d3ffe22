"""``--fairness-resume``: the same run goes on; nothing finished is asked again, and nothing different is mixed in."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import GRID, Run


@pytest.fixture
def run(run_apart: Run) -> Run:
    """Sessions here end processes, or must not share one with ours."""
    return run_apart


#: An application that counts what it is asked, dies in the middle if told so, and fails for a while.
PROJECT = """
import os
import pytest

def review(prompt):
    with open("asked.log", "a") as log:
        log.write(prompt + "\\n")
    asked = len(open("asked.log").readlines())
    if asked >= int(os.environ.get("DIE_AT", 1000)):
        os._exit(9)
    if os.environ.get("FAILING") and sum(map(ord, prompt)) % 5 == 0:
        raise RuntimeError("database is locked")
    return f"Review of {prompt}"

@pytest.fixture
def endpoint():
    return review

@pytest.mark.fairness_grid(
    template="Review {name}.", groups={"race_ethnicity": ["white", "black"]}, names=20, repetitions=1,
)
def test_reviews(trials):
    assert len(trials) == 40
    assert (trials["status"] == "answered").all(), trials["status"].value_counts().to_dict()
"""
PLAIN = ("-p", "no:cacheprovider", "-p", "no:xdist", "-o", "fairness_concurrency=2")


def asked(pytester: pytest.Pytester) -> Counter[str]:
    return Counter(pytester.path.joinpath("asked.log").read_text().splitlines())


def test_a_killed_run_goes_on(
    pytester: pytest.Pytester, run: Run, last_run: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies in the middle; reissuing the command with --fairness-resume asks what is missing and nothing
    that is finished. What was under way then is unknown, until --fairness-retry-unknown asks it again; the same run
    is meant all the time, and each group's share of trials asked again is told."""
    pytester.makepyfile(test_app=PROJECT)
    monkeypatch.setenv("DIE_AT", "15")
    assert pytester.runpytest_subprocess(*PLAIN).ret == 9
    monkeypatch.delenv("DIE_AT")
    before = asked(pytester)

    result = run("--fairness-resume=last", "-o", "fairness_concurrency=2")
    result.assert_outcomes(failed=1)
    told = re.search(r"'answered': (\d+), 'unknown': (\d+)", result.stdout.str())
    assert told is not None
    unknown = int(told[2])
    assert int(told[1]) == 40 - unknown
    assert 1 <= unknown <= 2
    between = asked(pytester)
    assert max(between.values()) == 1
    assert sum(between.values()) >= 40 - unknown  # one that was under way may not have reached the application
    assert not before - between

    result = run("--fairness-resume", last_run().name, "--fairness-retry-unknown")
    result.assert_outcomes(passed=1)
    assert len(asked(pytester)) == 40
    assert sum(asked(pytester).values()) == sum(between.values()) + unknown
    told_again = " ".join(result.stdout.str().split())
    assert re.search(
        rf"({unknown}|one) trials? had come to nothing and .* race_ethnicity: black \d/20, white \d/20", told_again
    )

    folders = [path.name for path in pytester.path.joinpath(".fairness", "runs").glob("2*")]
    assert folders == [last_run().name]
    manifest = json.loads((last_run() / "manifest.json").read_text())
    assert len(manifest["resumed"]) == 2
    assert (last_run() / "findings-1.json").is_file()


def test_failed_trials_are_asked_again_on_request(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials that failed and cost nothing stay failed on resuming, unless --fairness-retry-errors says otherwise."""
    pytester.makepyfile(test_app=PROJECT)
    monkeypatch.setenv("FAILING", "1")
    pytester.runpytest_inprocess("-W", "default", *PLAIN).assert_outcomes(failed=1)
    monkeypatch.delenv("FAILING")
    failed = sum(sum(map(ord, prompt)) % 5 == 0 for prompt in asked(pytester))
    assert 0 < failed < 40
    pytester.runpytest_inprocess("-W", "default", *PLAIN, "--fairness-resume=last").assert_outcomes(failed=1)
    assert sum(asked(pytester).values()) == 40
    result = pytester.runpytest_inprocess("-W", "default", *PLAIN, "--fairness-resume=last", "--fairness-retry-errors")
    result.assert_outcomes(passed=1)
    assert sum(asked(pytester).values()) == 40 + failed
    assert f"{failed} trials had come to nothing and were asked again" in " ".join(result.stdout.str().split())


def test_what_changed_is_named_and_not_mixed(pytester: pytest.Pytester, last_run: Callable[[], Path]) -> None:
    """Another prompt, number or seed: the run refuses to go on and names the change; its log stays as it was."""
    pytester.makepyfile(test_model=GRID)
    pytester.runpytest_inprocess("-W", "default", *PLAIN).assert_outcomes(passed=1)
    log = (last_run() / "trials.jsonl").read_bytes()

    result = pytester.runpytest_inprocess("-W", "default", *PLAIN, "--fairness-resume=last", "--fairness-seed", "3")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*cannot be resumed: the seed was 0, is 3. Its data are kept.*"])

    pytester.makepyfile(
        test_model=GRID.replace("a landlord reference", "a longer letter").replace("repetitions=2", "repetitions=3")
    )
    result = pytester.runpytest_inprocess("-W", "default", *PLAIN, "--fairness-resume=last")
    result.assert_outcomes(errors=1)
    told = result.stdout.str()
    assert "n: repetitions were 2, are 3; the prompt: the text of template 't2' changed" in told
    after = (last_run() / "trials.jsonl").read_bytes()
    assert after.startswith(log)
    assert after.count(b'"type":"trial"') == log.count(b'"type":"trial"') == 160

    result = pytester.runpytest_inprocess("-W", "default", *PLAIN, "--fairness-resume", "test_model.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*holds no run 'test_model.py'*"])
