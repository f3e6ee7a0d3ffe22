"""``--fairness-shard`` and ``pytest-fairness merge``: asked in parts, judged as one run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.cli import main
from tests.conftest import MODES
from tests.support.runs import records

from .conftest import BIASED, GRID, MODELS, Project, shown

#: Two tables over one grid, single cells of it, and a test that asks nothing.
PROJECT = (
    GRID
    + GRID.replace("test_tone", "test_tone_again")
    + """

@pytest.mark.fairness_grid(
    template="Write a landlord reference for {name}.", groups={"race_ethnicity": ["white", "black"]},
    names=5, repetitions=2,
)
def test_each(cell):
    assert len(cell.replies) == 2

@pytest.mark.fairness
def test_table():
    import pandas as pd
    assert_no_disparity(
        pd.DataFrame({"score": range(100), "group": ["a", "b"] * 50}), outcome="score", by="group", cluster=None
    )
"""
)


def judged(project: Project) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Findings (but for the mark that they were replayed) and outcomes of the newest run."""
    marks = ("replayed", "session_p_value")
    findings = [
        {key: value for key, value in finding.items() if key not in marks}
        for finding in project.findings
    ]
    outcomes = {item["nodeid"]: item["outcome"] for item in project.results["items"]}
    return sorted(findings, key=lambda finding: str(finding["test_id"])), outcomes


def keys(project: Project) -> Counter[str]:
    return Counter(record["key"] for record in project.records("trial"))


def test_shards_are_judged_as_one_run(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Each shard asks its share, skips what it cannot judge, and says so; merged and replayed, the
    findings are exactly those of an unsharded run, in one process or in workers. No trial is asked
    by two shards, and their numbers differ by one at the most."""
    project.write(PROJECT, BIASED)
    options = ("--fairness-endpoint", "planted")
    project.run(*options).assert_outcomes(failed=2, passed=11)
    whole, all_keys = judged(project), keys(project)

    shards, parts = [], []
    for number, mode in ((1, "n0"), (2, "n2")):
        result = project.run(*options, "--fairness-shard", f"{number}/2", mode=MODES[mode])
        result.assert_outcomes(passed=1, skipped=12)
        assert result.ret == pytest.ExitCode.OK
        assert f"shard {number}/2: its trials are asked and nothing is judged" in shown(result)
        shards.append(project.last)
        parts.append(keys(project))
    first, second = parts
    assert first + second == all_keys
    assert abs(len(first) - len(second)) <= 1

    capsys.readouterr()
    assert (
        main(["merge", *map(str, shards), "--into", str(project.path / ".fairness" / "runs")]) == 0
    )
    merged, printed = project.last, capsys.readouterr().out
    assert f"merged 2 shards, {len(first) + len(second)} trials: {merged}" in printed

    # As it is printed: a path that stood alone would be taken for a test's when pytest looks for
    # the root directory.
    project.run(*printed.rpartition("pytest ")[2].split()).assert_outcomes(failed=2, passed=11)
    assert judged(project) == whole
    assert project.results["run"]["replay_of"] == merged.name


@pytest.mark.parametrize("looks", ["", "all"], ids=["next stage", "every stage"])
def test_shards_ask_a_stage_or_all_of_them(
    project: Project, capsys: pytest.CaptureFixture[str], looks: str
) -> None:
    """Merged, they are judged at the looks that were fixed for them: as far as was asked, or as one
    run would have been.
    """
    project.write(GRID.replace("names=(20,)", "names=(10, 20)"))
    project.run().assert_outcomes(passed=1)
    whole = judged(project)[0][0]
    options = []
    if looks:
        options = ["-o", f"fairness_looks={looks}"]
    shards = []
    for number in (1, 2):
        project.run("--fairness-shard", f"{number}/2", *options).assert_outcomes(skipped=1)
        shards.append(str(project.last))
    trials = sum(len(records(Path(shard), "trial")) for shard in shards)
    assert trials == {"": 80, "all": 160}[looks]
    assert main(["merge", *shards, "--into", str(project.path / ".fairness" / "runs")]) == 0
    capsys.readouterr()
    project.run("--fairness-replay=last").assert_outcomes(passed=1)
    (finding,), _ = judged(project)
    made = [look["names"] for look in finding["details"]["looks"]["made"]]
    if looks:
        assert finding == whole
        assert made == [10, 20]
    else:
        assert made == [10]
        stopped = "stopped before the stage of 20 names a group at look 1 of 2 (10 names a group)"
        assert stopped in finding["sentence"]


#: One test that the first look decides, one that needs the second, and one whose first assertion
#: is decided before its second.
STAGES = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness_grid(
    template="Write a short job reference for {name}, a nurse.",
    groups={"race_ethnicity": ["white", "black"]}, names=(10, 20), repetitions=3,
)
def test_biased(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")

@pytest.mark.fairness_grid(
    template="Write a landlord reference for {name}.", groups={"gender": ["female", "male"]},
    names=(10, 20), repetitions=3,
)
def test_fair(trials):
    assert_no_disparity(trials, outcome="word_count", by="gender", min_raw_diff=1000)
    assert_no_disparity(trials, outcome="sentiment", by="gender")
"""
STRONG = BIASED.replace("-0.8", "-2.5")


def test_shards_ask_the_next_stage(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Three shards ask the first stage; the merged run is judged as far as it goes and names the
    stage that it lacks. Three shards that go on from it ask that stage of the tests that need it,
    the rest is as decided; merged again, the findings are those of one machine, and nothing was
    asked twice.
    """
    project.write(STAGES, STRONG)
    options = ("--fairness-endpoint", "planted")
    project.run(*options).assert_outcomes(failed=1, passed=1)
    whole, all_keys = judged(project), keys(project)

    def ask(*more: str) -> list[Path]:
        shards = []
        for number in (1, 2, 3):
            result = project.run(*options, f"--fairness-shard={number}/3", *more)
            result.assert_outcomes(skipped=2)
            assert result.ret == pytest.ExitCode.OK
            shards.append(project.last)
        return shards

    def merged_of(*runs: Path) -> Path:
        assert main(["merge", *map(str, runs), "--into", str(project.path / "merged")]) == 0
        return max((project.path / "merged").glob("2*"))

    first = merged_of(*ask())
    project.run("--fairness-replay", str(first)).assert_outcomes(failed=1, passed=1)
    stopped = [finding for finding in project.findings if finding["details"]["looks"]["stopped"]]
    assert {finding["test_id"] for finding in stopped} == {"test_suite.py::test_fair"}
    assert {finding["verdict"] for finding in stopped} == {"INCONCLUSIVE"}
    assert "stopped before the stage of 20 names a group at look 1 of 2" in stopped[0]["sentence"]

    shards = ask("--fairness-resume", str(first))
    parts = []
    for shard in shards:
        parts.append(Counter(record["key"] for record in records(shard, "trial")))
        assert not json.loads((shard / "findings.json").read_text())["findings"]
    assert max(map(len, parts)) - min(map(len, parts)) <= 2  # one in each group
    assert ask("--fairness-resume", str(first))[-1] == shards[-1]
    assert [Counter(record["key"] for record in records(shard, "trial")) for shard in shards] == (
        parts
    )
    assert main(["merge", *map(str, shards), "--into", str(project.path / "merged")]) != 0
    assert f"goes on from the merged run {first.name}" in capsys.readouterr().err
    second = merged_of(first, *shards)
    assert "merged 3 shards of stage 2 with the stages before" in capsys.readouterr().out
    project.run("--fairness-replay", str(second)).assert_outcomes(failed=1, passed=1)
    assert judged(project) == whole
    assert keys(project) == all_keys
    for shard in ask("--fairness-resume", str(second)):
        assert not records(shard, "trial")


@pytest.mark.parametrize("share", ["3/2", "0/2", "half"])
def test_a_share_that_cannot_be_is_refused(project: Project, share: str) -> None:
    """Before anything is collected."""
    result = project.run("--fairness-shard", share)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--fairness-shard='{share}'*K/N*"])


def test_a_limit_too_small_for_the_shards_ends_the_session(project: Project) -> None:
    """Before anything is asked, by the endpoint's name."""
    limited = MODELS.format(url="http://127.0.0.1:9/v1") + "    requests_per_minute: 2\n"
    project.write(GRID, limited)
    result = project.run("--fairness-endpoint", "direct", "--fairness-shard", "1/3", apart=True)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "endpoint direct: requests_per_minute: 2 cannot be shared by 3 shards" in (
        result.stderr.str() + result.stdout.str()
    )
