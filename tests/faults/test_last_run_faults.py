"""F68 of the catalogue in docs/reliability.md: runs that are dated later than now, or that somebody
has committed.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.cli import main
from pytest_fairness.errors import UsageError
from pytest_fairness.runs.folder import has_begun
from pytest_fairness.runs.project import chosen_run

from ..pytest_layer.conftest import BIASED, GRID
from .conftest import SUITE, Project, words

#: One test that asks and concludes nothing, one that judges a table and asks nothing.
OTHERS = """
import pandas as pd
import pytest
from pytest_fairness import assert_four_fifths

@pytest.mark.fairness_grid(template="Write of {name}.", groups={"gender": ["female", "male"]}, names=2, repetitions=1)
def test_cells(cell):
    assert cell.reply

def test_table():
    decisions = pd.DataFrame({"hired": [True, False] * 200, "race": ["a", "a", "b", "b"] * 100})
    assert_four_fifths(decisions, outcome="hired", by="race", cluster=None)
"""


def manifest_of(run: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((run / "manifest.json").read_text("utf-8"))
    return manifest


def dated(run: Path, day: str, started: str | None = None) -> Path:
    """A copy of *run* that says that it is of another *day*, and *started* then."""
    copy = run.with_name(f"{day}-001")
    shutil.copytree(run, copy)
    manifest = manifest_of(copy) | {"started": started or f"{day}T10:00:00+00:00", "id": copy.name}
    (copy / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return copy


@pytest.mark.parametrize("mode", [[], ["-n2"]], ids=["plain", "n2"])
def test_f68_a_run_that_sorts_last(
    project: Project, mode: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fair run, whole and chained, made elsewhere: it is not what a replay, a comparison or a
    resumption takes.
    """
    about = {"ledger": [], "price": None, "prompts": (), "secrets": ()}
    biased = (*mode, "--fairness-endpoint=planted")
    endpoints = project.path / "endpoints.yaml"
    project.write(GRID.replace("repetitions=2", "repetitions=1"))
    endpoints.write_text(BIASED.replace("-0.8", "0.0"), encoding="utf-8")
    made = project.run("--fairness-endpoint=planted", **about)
    assert made.code == 0, made.output
    fair = project.folder(made)
    strangers = [
        dated(fair, "2999-01-01"),
        dated(fair, "2025-12-31", "2999-01-01T10:00:00+00:00"),
        dated(fair, "2999-01-02", "2025-12-31T10:00:00+00:00"),
    ]
    shutil.rmtree(fair)
    assert not any(map(has_begun, strangers))

    endpoints.write_text(BIASED, encoding="utf-8")
    known = set(project.path.glob(".fairness/runs/2*"))
    assert project.run(*biased, **about).code == 1
    (run,) = set(project.path.glob(".fairness/runs/2*")) - known
    resumed = project.run(*biased, "--fairness-resume=last", **about)
    assert resumed.code == 1, resumed.output
    assert len(manifest_of(run)["sessions"]) == 2
    automatic = project.run(*biased, "--fairness-resume=auto", **about)
    assert f"the last run of this command, {run.name}, is whole" in words(automatic)
    shutil.rmtree(
        max(path for path in project.path.glob(".fairness/runs/2*") if path not in strangers)
    )
    replayed = project.run(*mode, "--fairness-replay=last", "--fairness-against=last", **about)
    assert replayed.code == 1, replayed.output
    assert f"since {run.name}" in words(replayed)
    monkeypatch.chdir(project.path)
    assert chosen_run("last~1") == run


def test_f68_last_by_what_it_is_for(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For whoever reads findings the newest run that judged; for whoever needs replies the newest
    that asked.
    """
    project.write(SUITE + OTHERS)
    project.path.joinpath("pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    about = {"ledger": [], "price": None, "prompts": (), "secrets": ()}
    runs = Path(project.path, ".fairness", "runs")

    def session(*arguments: str) -> str:
        before = set(runs.glob("2*"))
        case = project.run(*arguments, **about)
        assert case.code == 0, case.output
        return next((path.name for path in set(runs.glob("2*")) - before), "")

    both = session("-k", "tone")
    cells = session("-k", "cells")
    table = session("-k", "table")
    replay = session("-k", "cells", "--fairness-replay=last")
    monkeypatch.chdir(project.path)
    assert [both, cells, table, replay] == sorted((both, cells, table, replay))
    assert chosen_run("last").name == table
    assert chosen_run("last~1").name == both
    assert chosen_run("last", judged=False).name == replay
    with pytest.raises(
        UsageError, match=r"holds only 2 runs that judged something; the newest are: .*-004, .*-003"
    ):
        chosen_run("last~2")
    assert manifest_of(runs / replay)["replay_of"] == cells
    capsys.readouterr()
    for command in (
        ["show"],
        ["show", "last"],
        ["report", "last"],
        ["export", "last"],
        ["verify", "last"],
    ):
        assert main(command) == 0
    assert main(["audit", "last", "--into", "bundle.zip"]) == 0
    shown = capsys.readouterr().out
    assert table in shown
    assert both not in shown
    assert cells not in shown
    assert replay not in shown
    (runs / table / "findings.json").unlink()  # as of a session that was cut off
    assert session("-k", "tone", "--fairness-resume=last") == ""
    assert len(manifest_of(runs / cells)["sessions"]) == 2
