"""A run as tables: what was asked, what was read off it and what was concluded, from the run's
folder alone.
"""

from __future__ import annotations

import csv
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from pytest_fairness import open_run
from pytest_fairness.cli import main
from pytest_fairness.errors import FairnessError, MissingExtra, StoreError, UsageError
from pytest_fairness.reports.run_tables import RunTables
from tests.support.runs import archived, exported
from tests.support.sessions import run_pytest

TRIALS = 240
SUITE = """
import pandas as pd
import pytest
from pytest_fairness import assert_four_fifths, assert_no_disparity

@pytest.fixture
def endpoint():
    return lambda prompt: f"@SUM({len(prompt)}) \\ud800\\u202e {prompt}" + " and" * (len(prompt) % 7)

GRID = pytest.mark.fairness_grid(
    template=["Letter for {name}.", "Note on {name}."], groups={"race_ethnicity": ["white", "black"]},
    names=(20,)
)

@GRID
def test_words(trials):
    assert trials["reply"].notna().all()
    assert_no_disparity(trials, outcome="word_count", by="race_ethnicity", min_raw_diff=100)

@GRID
def test_words_again(trials):
    assert_no_disparity(trials[trials.template == "t1"], outcome="word_count", by="race_ethnicity", min_raw_diff=100)

@pytest.mark.parametrize("least", [5, 500])
@GRID
def test_length(trials, least):
    frame = trials.assign(long=trials["reply"].str.len() >= least)
    assert_no_disparity(frame, outcome="long", by="race_ethnicity")

@pytest.mark.fairness
def test_table():
    frame = pd.DataFrame({"hired": [1, 0] * 60, "race": ["a", "a", "b", "b"] * 30, "name": range(120)})
    assert_four_fifths(frame, outcome="hired", by="race", cluster=None)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "test_it.py").write_text(SUITE, encoding="utf-8")
    result = run_pytest(folder, "-p", "no:cacheprovider")
    assert "5 findings" in str(result.stdout), result.stdout
    return folder


@pytest.fixture(scope="module")
def run(project: Path) -> RunTables:
    (folder,) = (project / ".fairness" / "runs").glob("2*")
    return open_run(folder)


def test_a_row_a_trial_with_its_scores(run: RunTables) -> None:
    """Two findings that read the same share a column; two that differ have one each, and none has
    the bare name.
    """
    trials = run.trials
    assert len(trials) == TRIALS
    assert trials["key"].is_unique
    assert trials["word_count"].notna().all()
    assert trials["prompt"].str.startswith(("Letter for", "Note on")).all()
    long = [name for name in trials if name.startswith("long")]
    ids = [
        run.results.ids[at]
        for at, finding in enumerate(run.results.findings)
        if finding.outcome == "long"
    ]
    assert long == [f"long [{one}]" for one in ids]
    assert trials[long[0]].all()
    assert not trials[long[1]].all()
    assert trials["reply"].str.contains("\ud800").all()
    assert "hired" not in trials


def test_a_replay_says_so(run: RunTables, project: Path) -> None:
    where = ("-o", "fairness_run_dir=replays", f"--fairness-replay={run.directory}")
    result = run_pytest(project, "-p", "no:cacheprovider", *where, "-k", "words")
    assert "5 findings" in str(result.stdout), result.stdout
    assert str(result.stdout).count("judged in 2") == 3
    (replay,) = (project / "replays").glob("2*")
    assert open_run(replay).trials["replayed"].all()
    assert not run.trials["replayed"].any()


def test_findings_groups_and_pairs(run: RunTables) -> None:
    findings = run.findings
    assert list(findings.index) == list(run.results.ids)
    assert findings["nodeid"].str.startswith("test_it.py::").all()
    one = findings.index[0]
    assert run.finding(one) == run.finding(0) == run.results.findings[0]
    assert set(run.groups["id"]) == set(run.pairs["id"]) == set(findings.index)
    assert run.groups["value"].dtype == float
    assert (run.pairs["finding_verdict"] == run.pairs["id"].map(findings["verdict"])).all()
    assert run.judged(-1).columns.tolist() == ["race", "name", "hired"]
    assert len(run.judged(one)) == TRIALS
    dots = run.plot(one).svg.count("<circle")
    assert dots > run.finding(one).plot().svg.count("<circle") + 30
    with pytest.raises(UsageError, match="no finding 'f-0'; there are 5"):
        run.finding("f-0")
    assert run.manifest["id"] == run.directory.name


def test_what_a_notebook_shows_of_it(run: RunTables) -> None:
    assert repr(run).startswith(f"<RunTables {run.directory.name}: {TRIALS} trials; 5 findings: ")
    shown = run._repr_html_()
    assert run.results.ids[0] in shown
    assert "<script" not in shown


def test_csv_runs_no_formula(run: RunTables, tmp_path: Path) -> None:
    """F41: an apostrophe in front of what a spreadsheet would run, and numbers as they are."""
    written = run.to_csv(tmp_path / "tables")
    assert [path.name for path in written] == [
        "trials.csv",
        "findings.csv",
        "groups.csv",
        "pairs.csv",
    ]
    for path in written:
        with path.open(newline="", encoding="utf-8") as stream:
            head, *rows = csv.reader(stream)
        assert rows
        assert {len(row) for row in rows} == {len(head)}
        for cell in (cell for row in rows for cell in row):
            if cell[:1] in tuple("=+-@\t\r"):
                float(cell)  # a number, and nothing else
    trials = pd.read_csv(written[0])
    assert trials["reply"].str.startswith("'@SUM(").all()
    assert trials["reply"].str.contains("\\ud800\\u202e", regex=False).all()
    assert trials["word_count"].tolist() == run.trials["word_count"].tolist()
    assert pd.read_csv(written[3])["effect"].tolist() == pytest.approx(run.pairs["effect"].tolist())


def test_a_command_writes_them(
    run: RunTables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--csv", str(tmp_path / "csv"), "--parquet", str(tmp_path / "parquet")]
    assert main(["export", str(run.directory), *places]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{tmp_path / 'csv' / 'trials.csv'}: {TRIALS} rows"
    assert lines[-1] == f"{tmp_path / 'parquet' / 'pairs.parquet'}: 5 rows"
    assert len(lines) == 8


def test_parquet_keeps_texts_and_types(
    run: RunTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = run.to_parquet(tmp_path)
    back = pd.read_parquet(written[0])
    assert list(back) == list(run.trials)
    assert back["word_count"].tolist() == run.trials["word_count"].tolist()
    assert back["refused"].dtype == "boolean"
    assert back["reply"].str.startswith("@SUM(").all()
    assert list(pd.read_parquet(written[1])["id"]) == list(run.results.ids)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pytest-fairness\[parquet\]'"):
        run.to_parquet(tmp_path)


def test_a_changed_record_is_found(run: RunTables, tmp_path: Path) -> None:
    """In an archive, of which the records are all that there is, always; else unless nobody wants
    to know.
    """
    whole, archive = tmp_path / "whole", tmp_path / "archive"
    for folder in (whole, archive):
        shutil.copytree(run.directory, folder)
    exported(whole)
    archived(archive)
    pd.testing.assert_frame_equal(open_run(archive).trials, run.trials)
    for log in (whole / "trials.jsonl", archive / "trials.jsonl"):
        log.write_bytes(log.read_bytes().replace(b'"answered"', b'"refused" ', 1))
        with pytest.raises(StoreError, match="was changed"):
            open_run(log.parent)
    assert len(open_run(whole, check=False).trials) == TRIALS


def test_a_run_that_did_not_finish_has_trials(
    run: RunTables, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And ``last`` is the newest one of the project around."""
    monkeypatch.chdir(project)
    assert open_run().directory.name == run.directory.name
    copy = shutil.copytree(run.directory, tmp_path / "copy")
    (copy / "findings.json").unlink()
    opened = open_run(copy)
    assert len(opened.trials) == TRIALS
    assert "long [test_it.py::test_length[5] 0]" in opened.trials
    assert "no findings" in repr(opened)
    with pytest.raises(FairnessError, match="holds no findings"):
        _ = opened.findings
