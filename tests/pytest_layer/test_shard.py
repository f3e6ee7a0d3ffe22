"""``--fairness-shard`` and ``pytest-fairness merge``: asked in parts, judged as one run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.cli import main

from .conftest import BIASED, GRID

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


def judged(folder: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Findings (but for the mark that they were replayed) and outcomes of a run."""
    told = json.loads((folder / "findings.json").read_text())
    marks = ("replayed", "session_p_value")
    findings = [{key: value for key, value in finding.items() if key not in marks} for finding in told["findings"]]
    outcomes = {item["nodeid"]: item["outcome"] for item in told["items"]}
    return sorted(findings, key=lambda finding: str(finding["test_id"])), outcomes


def keys_of(folder: Path) -> Counter[str]:
    lines = [json.loads(line) for log in folder.glob("trials*.jsonl") for line in log.read_text().splitlines()]
    return Counter(record["key"] for record in lines if record["type"] == "trial")


def test_shards_are_judged_as_one_run(
    pytester: pytest.Pytester, last_run: Callable[[], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each shard asks its share, skips what it cannot judge, and says so; merged and replayed, the findings are
    exactly those of an unsharded run, in one process or in workers. No trial is asked by two shards, and their numbers
    differ by one at the most."""
    pytester.makepyfile(test_app=PROJECT)
    pytester.path.joinpath("endpoints.yaml").write_text(BIASED, encoding="utf-8")
    options = ("--fairness-endpoint", "planted", "-o", "fairness_confirm=false")
    pytester.runpytest_inprocess("-W", "default", "-p", "no:cacheprovider", "-p", "no:xdist", *options).assert_outcomes(
        failed=2, passed=11
    )
    whole = last_run()

    shards = []
    for number, workers in ((1, "-n0"), (2, "-n2")):
        result = pytester.runpytest_subprocess(
            "-p", "no:cacheprovider", workers, *options, "--fairness-shard", f"{number}/2"
        )
        result.assert_outcomes(passed=1, skipped=12)
        assert result.ret == pytest.ExitCode.OK
        assert f"shard {number}/2: its trials are asked and nothing is judged" in " ".join(result.stdout.str().split())
        shards.append(last_run())
    first, second = map(keys_of, shards)
    assert first + second == keys_of(whole)
    assert abs(len(first) - len(second)) <= 1

    assert main(["merge", *map(str, shards), "--into", str(pytester.path / ".fairness" / "runs")]) == 0
    merged = last_run()
    printed = capsys.readouterr().out
    assert f"merged 2 shards, {len(first) + len(second)} trials: {merged}" in printed

    # As it is printed: a path that stood alone would be taken for a test's when pytest looks for the root directory.
    command = printed.rpartition("pytest ")[2].split()
    result = pytester.runpytest_inprocess(
        "-W", "default", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "fairness_confirm=false", *command
    )
    result.assert_outcomes(failed=2, passed=11)
    assert judged(last_run()) == judged(whole)
    assert json.loads((last_run() / "findings.json").read_text())["run"]["replay_of"] == merged.name


def test_a_share_that_cannot_be_is_refused(pytester: pytest.Pytester) -> None:
    """Before anything is collected."""
    pytester.makepyfile(test_app=GRID)
    for text in ("3/2", "0/2", "half"):
        result = pytester.runpytest_inprocess(
            "-W", "default", "-p", "no:cacheprovider", "-p", "no:xdist", "--fairness-shard", text
        )
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*--fairness-shard='{text}'*K*N*"])
