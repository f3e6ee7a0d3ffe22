"""``--fairness-resume``: the same run goes on; nothing finished is asked again, and nothing
different is mixed in.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter

import pytest

from tests.conftest import MODES
from tests.support.runs import lines, records
from tests.support.servers import ModelServer

from .conftest import BIASED, GRID, MODELS, Project, shown
from .suites import REVIEWS

#: An application that counts what it is asked, dies in the middle if told so, and fails for a
#: while.
APPLICATION = """
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
"""
PROJECT = (
    APPLICATION
    + REVIEWS
    + '    assert (trials["status"] == "answered").all(), trials["status"].value_counts().to_dict()\n'
)
SLOWLY = ("-o", "fairness_concurrency=2")
RESUME = (*SLOWLY, "--fairness-resume=last")


def calls(project: Project) -> Counter[str]:
    return Counter(project.path.joinpath("asked.log").read_text().splitlines())


@pytest.mark.parametrize("mode", ["plain", "n2"])
def test_a_killed_run_goes_on(project: Project, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """The process dies in the middle; reissuing the command with --fairness-resume asks what is
    missing and nothing that is finished. What was under way then is unknown, until
    --fairness-retry-unknown asks it again; the same run is meant all the time, and each group's
    share of trials asked again is shown."""
    project.write(PROJECT)
    monkeypatch.setenv("DIE_AT", "15")
    assert project.run(*SLOWLY, apart=True).ret == 9
    monkeypatch.delenv("DIE_AT")
    before = calls(project)

    result = project.run(*RESUME, mode=MODES[mode])
    result.assert_outcomes(failed=1)
    statuses = re.search(r"'answered': (\d+), 'unknown': (\d+)", result.stdout.str())
    assert statuses is not None
    unknown = int(statuses[2])
    assert int(statuses[1]) == 40 - unknown
    assert 1 <= unknown <= 2
    between = calls(project)
    assert max(between.values()) == 1
    assert (
        sum(between.values()) >= 40 - unknown
    )  # one that was under way may not have reached the application
    assert not before - between

    result = project.run("--fairness-resume", project.last.name, "--fairness-retry-unknown")
    result.assert_outcomes(passed=1)
    assert len(calls(project)) == 40
    assert sum(calls(project).values()) == sum(between.values()) + unknown
    again = rf"({unknown}|one) trials? had come to nothing and .* race_ethnicity: black \d/20, white \d/20"
    assert re.search(again, shown(result))

    assert [path.name for path in project.last.parent.glob("2*")] == [project.last.name]
    assert len(project.manifest["resumed"]) == 2
    assert (project.last / "findings-1.json").is_file()


def test_failed_trials_are_sent_again_on_request(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials that failed and cost nothing stay failed on resuming, unless --fairness-retry-errors
    says otherwise.
    """
    project.write(PROJECT)
    monkeypatch.setenv("FAILING", "1")
    project.run(*SLOWLY).assert_outcomes(failed=1)
    monkeypatch.delenv("FAILING")
    failed = sum(sum(map(ord, prompt)) % 5 == 0 for prompt in calls(project))
    assert 0 < failed < 40
    project.run(*RESUME).assert_outcomes(failed=1)
    assert sum(calls(project).values()) == 40
    result = project.run(*RESUME, "--fairness-retry-errors")
    result.assert_outcomes(passed=1)
    assert sum(calls(project).values()) == 40 + failed
    assert f"{failed} trials had come to nothing and were asked again" in shown(result)


def test_what_changed_is_named_and_not_mixed(project: Project) -> None:
    """Another prompt, number or seed, no such run: the run refuses to go on and names the change;
    its log stays.
    """
    project.write(GRID)
    project.run().assert_outcomes(passed=1)
    log = lines(project.last)
    for options, why in (
        (
            ("--fairness-resume=last", "--fairness-seed", "3"),
            "*cannot be resumed: the seed was 0, is 3. Its data are*",
        ),
        (("--fairness-resume", "test_suite.py"), "*holds no run 'test_suite.py'*"),
    ):
        result = project.run(*options)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([why])

    project.write(
        GRID.replace("a landlord reference", "a longer letter").replace(
            "repetitions=2", "repetitions=3"
        )
    )
    result = project.run("--fairness-resume=last")
    result.assert_outcomes(errors=1)
    changes = "n: repetitions were 2, are 3; the prompt: the text of template 't2' changed"
    assert changes in result.stdout.str()
    after = lines(project.last)
    assert after[: len(log)] == log
    assert len(records(project.last, "trial")) == 160


def test_the_next_temperature_of_a_test_is_no_change_of_the_first(project: Project) -> None:
    project.write(GRID.replace("repetitions=2", "repetitions=2, temperatures=['default', 0.0]"))
    project.run("-k", "default").assert_outcomes(passed=1, deselected=1)
    assert project.run("--fairness-resume=last", "--fairness-smoke").ret == 0
    assert len(project.results["items"]) == 2


AUTO = (*SLOWLY, "--fairness-resume=auto")


def chosen(result: pytest.RunResult) -> str:
    (line,) = (
        line for line in result.stdout.lines if line.startswith("fairness: --fairness-resume=auto ")
    )
    return line.removeprefix("fairness: --fairness-resume=auto ")


def test_auto_resumes_what_was_killed_and_nothing_that_is_whole(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain after workers and the other way round, in one command but for what says how far it
    goes.
    """
    project.write(PROJECT)
    monkeypatch.setenv("DIE_AT", "15")
    result = project.run(*AUTO, apart=True)
    assert (result.ret, chosen(result)) == (
        9,
        "starts a new run: there is no earlier run of this command",
    )
    monkeypatch.delenv("DIE_AT")
    first = project.last.name
    project.run(*SLOWLY, "-k", "nothing")
    project.run(*SLOWLY, "-k", "reviews").assert_outcomes(passed=1)  # newer, and of another command
    project.run(*SLOWLY, "-k", "reviews", "--fairness-replay=last").assert_outcomes(passed=1)

    result = project.run(
        *AUTO, "--fairness-retry-unknown", "--fairness-max-cost=9", mode=MODES["n2"]
    )
    result.assert_outcomes(passed=1)
    assert chosen(result) == f"resumes run {first}: it never came to its end"
    manifest = json.loads((project.last.parent / first / "manifest.json").read_text())
    assert manifest["resumed"][0]["settings"]["resume"] == first

    result = project.run(*AUTO, mode=MODES["n2"])
    assert chosen(result) == f"starts a new run: the last run of this command, {first}, is whole"
    assert project.last.name > first
    assert project.manifest["settings"]["resume"] is None
    result = project.run(*AUTO, "-v")
    assert (
        chosen(result)
        == f"starts a new run: the last run of this command, {first[:-3]}004, is whole"
    )


def test_auto_goes_on_after_a_deadline(project: Project) -> None:
    slow = BIASED.replace('"planted"', '"slow"') + "    latency: 0.3\n"
    project.write(GRID, slow)
    command = (*AUTO, "--fairness-endpoint=slow")
    assert project.run(*command, "--fairness-deadline=.4").ret == 1
    first = project.last.name
    (project.path / "endpoints.yaml").write_text(
        slow.replace("latency: 0.3", "latency: 0.0"), encoding="utf-8"
    )
    result = project.run(*command, "--fairness-retry-unknown")
    assert chosen(result) == f"resumes run {first}: it had no time to ask everything"
    assert "unasked" not in project.manifest


def test_auto_goes_on_under_a_higher_cap_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    price = (
        "    price: {{input_per_million: 1, output_per_million: 1}}\n    default_parameters: "
        "{{max_tokens: 100}}\n"
    )
    with ModelServer() as server:
        project.write(
            GRID.replace("names=(20,), repetitions=2", "names=4, repetitions=1"),
            (MODELS + price).format(url=server.openai_url),
        )
        command = (*AUTO, "--fairness-endpoint=direct", "--fairness-smoke")
        for _ in range(2):
            project.run(*command, "--fairness-max-cost=.0005").assert_outcomes(errors=1)
        second = project.last.name
        result = project.run(*command, "--fairness-max-cost=.0005")
        ended = "reached its cost cap, which is no higher now"
        assert (
            chosen(result) == f"starts a new run: the last run of this command, {second}, {ended}"
        )
        third, asked = project.last.name, len(server.requests)
        result = project.run(*command, "--fairness-max-cost=1")
        result.assert_outcomes(skipped=1)
        assert (
            chosen(result)
            == f"resumes run {third}: it reached its cost cap of $0.0005, which is higher now"
        )
        assert 0 < len(server.requests) - asked < 16


@pytest.mark.parametrize("mode", ["plain", "n2"])
def test_auto_starts_anew_after_a_change_and_stops_at_damage(
    project: Project, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    project.write(PROJECT)
    monkeypatch.setenv("DIE_AT", "15")
    assert project.run(*AUTO, apart=True).ret == 9
    monkeypatch.delenv("DIE_AT")
    first, kept = project.last, project.path / "kept"
    shutil.copytree(first, kept)

    project.write(PROJECT.replace("Review {name}", "Rate {name}"))
    result = project.run(*AUTO, mode=MODES[mode])
    result.assert_outcomes(passed=1)
    ended = (
        f"starts a new run: the last run of this command, {first.name}, never came to its end, and "
    )
    assert chosen(result) == f"{ended}what test_suite.py::test_reviews asks has changed"
    assert project.last != first
    shutil.rmtree(project.last)
    result = project.run(*AUTO, "-o", "fairness_seed=3", mode=MODES[mode])
    assert chosen(result) == "starts a new run: there is no earlier run of this command"
    shutil.rmtree(project.last)

    project.write(PROJECT)
    (first / "manifest.json").write_text("{", encoding="utf-8")
    asked = calls(project)
    result = project.run(*AUTO, mode=MODES[mode])
    assert result.ret != 0
    assert "manifest.json cannot be read" in f"{result.stdout}{result.stderr}"
    assert calls(project) == asked
