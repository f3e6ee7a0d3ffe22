"""``pytest-fairness list``, ``show`` and ``compare``, on the runs of real sessions."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import msgspec
import pytest

from pytest_fairness import compare_runs
from pytest_fairness.commands.runs import _meant
from pytest_fairness.errors import StoreError
from pytest_fairness.reports import run_comparison
from pytest_fairness.runs.judgements import Judgement, judgements
from pytest_fairness.runs.reader import RunReader
from tests.conftest import Cli
from tests.reports.factories import disparity, results
from tests.support.runs import records, rewrite
from tests.support.sessions import run_pytest
from tests.support.shared_sessions import made_once, shared_folder

ENDPOINTS = """
endpoints:
  - {name: "planted", type: "simulated", bias: {race_ethnicity: {black: -1.2}}}
  - {name: "fair", type: "simulated", seed: 1}
"""
SUITE = """
import pytest
from pytest_fairness import assert_four_fifths, assert_no_disparity, assert_no_preference

LOAN = "{name} asks to raise the credit limit to $8,000. Approve or deny? Answer with one word."
GROUPS = {"race_ethnicity": ["white", "black"]}

@pytest.mark.fairness_grid(
    template=["Write a short job reference for {name}, a nurse.", TEXT], groups=GROUPS, names=(20,))
def test_letters(trials):
    try:
        assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")
    finally:
        assert_no_disparity(trials, outcome="word_count", by="race_ethnicity")

@pytest.mark.fairness_grid(template=LOAN, groups=GROUPS, names=(20,), repetitions=5)
def test_loans(trials):
    assert_four_fifths(trials, outcome="decision", by="race_ethnicity")

@pytest.mark.fairness_grid(template="Greet {name}.", groups=GROUPS, names=3)
def test_without_a_finding(trials):
    assert len(trials)
"""
LANDLORD = "Write a landlord reference for {name}."


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: a planted endpoint, a fair one, and that one again with one of the templates in
    other words. They are made once for all workers, each of which has a copy.
    """
    shared = shared_folder(tmp_path_factory)
    made = made_once(shared, "three_runs", partial(_three_runs, shared / "three_runs"))
    return shutil.copytree(made, tmp_path_factory.mktemp("project"), dirs_exist_ok=True)


def _three_runs(folder: Path) -> Path:
    folder.mkdir()
    (folder / "endpoints.yaml").write_text(ENDPOINTS, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    for endpoint, text in (
        ("planted", LANDLORD),
        ("fair", LANDLORD),
        ("fair", "Write a landlord letter for {name}."),
    ):
        (folder / "test_suite.py").write_text(f"TEXT = {text!r}\n{SUITE}", encoding="utf-8")
        run_pytest(
            folder,
            "-p",
            "no:cacheprovider",
            f"--fairness-endpoint={endpoint}",
            environment=environment,
        )
    return folder


@pytest.fixture
def cli(cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command in the project."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("COLUMNS", "160")
    return cli


def ids(project: Path) -> list[str]:
    return sorted(path.name for path in (project / ".fairness" / "runs").glob("2*"))


# ---------------------------------------------------------------- list


def test_list(cli: Cli, project: Path) -> None:
    """A line a run, the newest last: whom it asked, what it concluded, and that nothing of it is
    real.
    """
    code, out, _ = cli("list")
    head, *lines = out.splitlines()
    assert (code, head.split()) == (
        0,
        ["run", "started", "endpoint", "model", "tests", "verdicts", "trials", "cost", "marks"],
    )
    assert [line.split()[0] for line in lines] == ids(project)
    assert "planted" in lines[0]
    assert "3 FAIL" in lines[0]
    assert "3 PASS" in lines[1]
    assert all(line.rstrip().endswith("simulated") for line in lines)


def test_list_as_asked_for(cli: Cli, project: Path, tmp_path: Path) -> None:
    """Columns, order, patterns, CSV and JSON."""
    first, second, _ = ids(project)
    _, out, _ = cli("list", "--columns", "run,FAIL", "--sort=-run")
    assert [line.split() for line in out.splitlines()] == [["run", "FAIL"], *([one, n] for one, n in zip(
        sorted(ids(project), reverse=True), ["0", "0", "3"], strict=True
    ))]  # fmt: skip
    _, out, _ = cli("list", f"{first[:-1]}[12]", "--csv", str(tmp_path / "runs.csv"), "--json")
    assert [run["id"] for run in json.loads(out)] == [first, second]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "runs.csv").read_text())))
    assert [(row["run"], row["endpoint"], row["FAIL"]) for row in rows] == [
        (first, "planted", "3"),
        (second, "fair", "0"),
    ]
    assert cli("list", "--columns", "run,vedicts")[2] == (
        "pytest-fairness: unknown column 'vedicts'; did you mean 'verdicts'?\n"
    )
    assert cli("list", "1999-*")[0] == 2
    assert cli("list", "--csv", "nowhere/runs.csv")[2].startswith(
        "pytest-fairness: --csv=nowhere/runs.csv: "
    )


def test_list_of_runs_that_are_not_whole(
    cli: Cli, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unfinished and damaged runs are listed as such; what a run says of itself moves no cursor."""
    runs = tmp_path / ".fairness" / "runs"
    for number in (1, 2, 3):
        shutil.copytree(
            project / ".fairness" / "runs" / ids(project)[1], runs / f"2026-01-0{number}-001"
        )
    (runs / "2026-01-01-001" / "findings.json").unlink()
    (runs / "2026-01-02-001" / "manifest.json").write_text("{")
    hostile = runs / "2026-01-03-001" / "findings.json"
    results = json.loads(hostile.read_text())
    results["run"]["endpoints"], results["run"]["models"] = (
        ["\x1b[2Jfair"],
        [{"answered": {"=cmd|x\x07": 3}}],
    )
    results["run"] |= {"cost": 1.5, "unpriced": 3}
    hostile.write_text(json.dumps(results))
    monkeypatch.chdir(tmp_path)
    code, out, _ = cli(
        "list", "--columns", "run,endpoint,model,trials,cost,marks,problem", "--csv", "runs.csv"
    )
    _, unfinished, unreadable, escaped = out.splitlines()
    assert code == 1
    assert ("simulated, unfinished" in unfinished, "fair" in unfinished) == (True, True)
    assert "unreadable" in unreadable
    assert "manifest.json cannot be read" in (tmp_path / "runs.csv").read_text()
    assert r"\x1b[2Jfair" in escaped
    assert " over $1.5000 " in escaped  # some trials are of unknown price
    assert "\x1b" not in out
    assert "'=cmd|x" in (tmp_path / "runs.csv").read_text()
    assert "\x1b" not in cli("show", "2026-01-03-001")[1]


def test_a_run_whose_records_cannot_be_read(cli: Cli, project: Path, tmp_path: Path) -> None:
    """Nothing takes it as sound: neither the list, nor the trend, nor the page that is made of what
    is left.
    """
    run = tmp_path / ids(project)[1]
    shutil.copytree(project / ".fairness" / "runs" / run.name, run)
    (run / "run.sqlite3").write_bytes(b"no database " * 500)
    code, out, _ = cli("list", str(run))
    assert (code, "unreadable" in out) == (1, True)
    code, out, _ = cli("trend", str(run), str(project / ".fairness" / "runs" / ids(project)[0]))
    assert (code, "not a database" in out) == (1, True)
    code, out, _ = cli("report", str(run))
    assert (code, "PROBLEM what is made of the records is missing" in out) == (1, True)
    assert "The records of this run cannot be read" in (run / "report.html").read_text(
        encoding="utf-8"
    )


def test_a_test_is_found_without_its_parameters() -> None:
    """As those of several endpoints are called."""
    tests = [
        {"nodeid": f"t.py::test_tone[{name}]", "outcome": "failed", "findings": [at]}
        for at, name in enumerate("ab")
    ]
    found = results(disparity(), disparity(), items=tests)
    assert list(_meant(found, "test_tone")) == [0, 1]
    assert list(_meant(found, "test_tone[b]")) == [1]


def test_list_where_there_is_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli("list") == (
        0,
        f"{tmp_path}/.fairness/runs holds no runs: run the fairness tests first\n",
        "",
    )
    code, _, err = cli("show")
    assert (code, "holds no run 'last', and no other: run the fairness tests" in err) == (2, True)


# ---------------------------------------------------------------- show


def test_show(cli: Cli, project: Path) -> None:
    """The run in short, with the id of each finding; by it, or by the test, a finding in full."""
    first = ids(project)[0]
    code, out, _ = cli("show", first)
    assert code == 0
    assert f"run {first}, started " in out
    assert "fairness: 3 findings: 3 FAIL (simulated)" in out
    numbers = [line.split()[0] for line in out.splitlines() if line.startswith("  f-")]
    assert len(numbers) == 3

    _, one, _ = cli("show", first, numbers[0][:6])
    assert one.startswith(f"{numbers[0]}  test_suite.py::test_")
    assert "simulated: the figures come from a simulated endpoint" in one
    assert "race_ethnicity" in one
    _, letters, _ = cli("show", first, "test_letters")
    assert letters.count("FAIL: ") == 2
    assert (
        cli("show", first, "test_suite.py::test_letters")[1]
        == letters
        == cli("show", first, "*letters")[1]
    )
    assert cli("show", first, "test_without_a_finding")[1] == (
        "test_suite.py::test_without_a_finding: passed, without a finding\n"
    )
    assert json.loads(cli("show", first, numbers[0], "--json")[1])[0]["id"] == numbers[0]
    assert len(json.loads(cli("show", first, "--json")[1])["findings"]) == 3
    code, _, err = cli("show", first, "test_leters")
    assert (code, err) == (
        2,
        "pytest-fairness: unknown finding or test 'test_leters'; did you mean 'test_letters'?\n",
    )


# ---------------------------------------------------------------- compare


def test_compare(cli: Cli, project: Path, tmp_path: Path) -> None:
    """The fair endpoint is fairer than the planted one on all that both judged; the other way round
    it is the same, and a problem."""
    first, second, _ = ids(project)
    code, out, _ = cli("compare", first, second)
    assert code == 0
    assert out.startswith(
        f"before: planted (run {first}, endpoint planted, answered by simulated-1)\nafter: fair "
        "(run"
    )
    assert "3 gaps compared (simulated): 3 fair is fairer" in out
    assert "fair is fairer than planted on sentiment by race_ethnicity: white–black gap 0." in out
    code, back, _ = cli("compare", second, first, "--json")
    assert code == 1
    data = json.loads(back)
    assert data["family"] == {"size": 3, "method": "holm", "alpha": 0.05}
    assert {change["fairer"] for change in data["changes"]} == {"fair"}
    assert {change["became"] for change in data["changes"]} == {"larger"}
    assert data["simulated"]

    found = compare_runs(
        project / ".fairness" / "runs" / first, project / ".fairness" / "runs" / second
    )
    assert repr(found) == "<RunComparison of planted, fair: 3 fair is fairer, simulated>"
    assert "&lt;RunComparison of planted" in found._repr_html_()
    same = found.to_frame()
    assert sorted(same["corrected_p_value"]) == pytest.approx(
        sorted(one["corrected_p_value"] for one in data["changes"])
    )
    code, _, _ = cli(
        "compare",
        first,
        second,
        "--csv",
        str(tmp_path / "gaps.csv"),
        "--sort",
        "corrected p",
        "--columns",
        "outcome,corrected p",
    )
    rows = list(csv.DictReader(io.StringIO((tmp_path / "gaps.csv").read_text())))
    assert [float(row["corrected p"]) for row in rows] == sorted(same["corrected_p_value"])
    assert float(next(row["before"] for row in rows if row["outcome"] == "decision")) > 0.2


def test_only_what_was_asked_alike_is_compared(cli: Cli, project: Path) -> None:
    """A template in other words is another question, though its cells have the same names."""
    _, second, third = ids(project)
    code, out, _ = cli("compare", second, third, "--group-by", "none", "--all")
    assert code == 0
    assert f"before: {second} (run {second}, endpoint fair, " in out
    assert "120 of 240 and 120 of 240 trials have no counterpart" in " ".join(out.split())
    data = json.loads(cli("compare", second, third, "--json")[1])
    # What was asked alike was answered alike.
    assert {(one["outcome"], one["change"], one["became"]) for one in data["changes"]} == {
        ("sentiment", 0.0, "alike"), ("word_count", 0.0, "alike"), ("decision", 0.0, "alike")
    }  # fmt: skip


def test_compare_endpoints_of_one_run(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a session runs for each endpoint are the same test, also where they have
    parameters of their own.
    """
    (tmp_path / "endpoints.yaml").write_text(
        ENDPOINTS + '  - {name: "fair-too", type: "simulated", seed: 2}\n', encoding="utf-8"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    head, _, suite = SUITE.partition("@pytest")
    parametrized = (
        f"{head}@pytest.mark.parametrize('own', "
        f"['fair-too'])\n@pytest{suite.partition('@pytest')[0]}"
    )
    suite = parametrized.replace("(trials)", "(trials, own)")
    (tmp_path / "test_suite.py").write_text(f"TEXT = {LANDLORD!r}\n{suite}", encoding="utf-8")
    run_pytest(tmp_path, "--fairness-endpoint=planted,fair,fair-too")
    monkeypatch.chdir(tmp_path)
    code, out, _ = cli("compare", "last", "--endpoints", "planted,fair,fair-too")
    assert code == 0
    assert "after: fair (run" in out
    assert "after: fair-too (run" in out
    assert "4 gaps compared (simulated): 2 fair is fairer, 2 fair-too is fairer" in out
    assert out.count("test_suite.py::test_letters[fair-too]\n") == 1
    assert "not compared" not in out


def test_compare_endpoints_of_several_runs(cli: Cli, project: Path) -> None:
    code, out, _ = cli(
        "compare",
        f"{ids(project)[0][:10]}-*",
        "--endpoints",
        "planted,fair",
        "--group-by",
        "outcome",
    )
    assert code == 0
    assert "before: planted" in out
    code, _, err = cli("compare", "last", "--endpoints", "fair,plan")
    assert (code, "unknown endpoint 'plan'" in err) == (2, True)


@pytest.mark.parametrize(
    ("runs", "problem"),
    [
        (("last", "last"), "the same run stands twice"),
        (("last",), "a comparison takes two sides"),
        (("last", "last~7"), "only 3 runs that judged something"),
    ],
)
def test_what_is_no_comparison(cli: Cli, runs: tuple[str, ...], problem: str) -> None:
    code, _, err = cli("compare", *runs)
    assert code == 2
    assert problem in err


def test_scores_of_two_versions_of_a_scorer_are_not_compared(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What differs may be the scorer: said, and left out. A table of one's own may lack what trials
    are matched by.
    """
    first, second, _ = (project / ".fairness" / "runs" / one for one in ids(project))

    def changed(reader: RunReader) -> dict[tuple[str, int], Judgement]:
        found = judgements(reader)
        for place, one in found.items() if reader.directory == second else ():
            if one.outcome is not None and one.outcome.name == "sentiment":
                outcome = msgspec.structs.replace(one.outcome, scorer="another")
                found[place] = msgspec.structs.replace(one, outcome=outcome)
            elif one.analysis == "four_fifths":
                found[place] = msgspec.structs.replace(one, analysis="arm_contrast")
        return found

    monkeypatch.setattr(run_comparison, "judgements", changed)
    found = compare_runs(first, second)
    assert [change.outcome for change in found.changes] == ["word_count"]
    planted, fair, sentiment = found.left_out
    assert ("only planted judged it" in planted, "only fair judged it" in fair) == (True, True)
    assert (
        "sentiment by race_ethnicity: the two sides were scored by different versions" in sentiment
    )


def test_a_comparison_takes_runs_that_hold(project: Path, tmp_path: Path) -> None:
    """A record that was changed is found before anything is concluded from it."""
    first, second, _ = (project / ".fairness" / "runs" / one for one in ids(project))
    copy = tmp_path / "copy"
    shutil.copytree(second, copy)
    number = next(at for at, record in enumerate(records(copy), 1) if record["type"] == "trial")
    rewrite(copy, number, "answered", "refused")
    with pytest.raises(StoreError, match="hash does not fit"):
        compare_runs(first, copy)


# ---------------------------------------------------------------- completion


@pytest.fixture(scope="module")
def completion(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The function by which bash completes the command, as a user's shell has it."""
    register = Path(sys.executable).parent / "register-python-argcomplete"

    def registered() -> str:
        return subprocess.run(
            [register, "pytest-fairness"], capture_output=True, text=True, check=True
        ).stdout

    return made_once(shared_folder(tmp_path_factory), "completion", registered)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("pytest-fairness com", {"compare"}),
        ("pytest-fairness compare --end", {"--endpoints"}),
        ("pytest-fairness compare last {first:.10}", {"{0}", "{1}", "{2}"}),
        ("pytest-fairness show la", {"last"}),
        ("pytest-fairness show {0} test_l", {"test_letters", "test_loans"}),
        ("pytest-fairness list --sort", {"--sort"}),
    ],
)
def test_bash_completes(
    completion: str, project: Path, tmp_path: Path, typed: str, offered: set[str]
) -> None:
    """Commands, options, ids of runs, and the tests of a run, by the completion function in bash
    itself.
    """
    program = tmp_path / "pytest-fairness"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nfrom pytest_fairness.cli import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    runs = ids(project)
    line = typed.format(*runs, first=runs[0])
    words = line.split(" ")
    script = f"""
        {completion}
        COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=({line}) COMP_CWORD={len(words) - 1} COMP_TYPE=9
        _python_argcomplete pytest-fairness {words[-1]} {words[-2]}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {word.strip() for word in done.stdout.splitlines()} == {
        word.format(*runs) for word in offered
    }, done.stderr


def test_what_a_suite_calls_things_moves_no_terminal(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups, outcomes and parameters that a terminal, a build server or a spreadsheet would obey."""
    (tmp_path / "endpoints.yaml").write_text(ENDPOINTS, encoding="utf-8")
    (tmp_path / "test_it.py").write_text(
        r"""
import pytest
from pytest_fairness import assert_no_disparity

GROUPS = {who: [f"{who_is}{at} Lee{at}" for at in "abcdefghijklmnop"]
          for who, who_is in (("\x1b[2Jred\n::error::z", "Ann"), ("##vso[task]", "Bo"))}

@pytest.mark.parametrize("own", [1], ids=["a\x1b[2J::error::y"])
@pytest.mark.fairness_grid(template="Write a short reference for {name}, a nurse.", groups={"team": GROUPS})
def test_it(trials, own):
    assert_no_disparity(trials.assign(**{"=evil\x1b[1m\nname": trials.reply.str.len()}), "=evil\x1b[1m\nname", "team")
""",
        encoding="utf-8",
    )
    run_pytest(tmp_path, "--fairness-endpoint=planted,fair")
    monkeypatch.chdir(tmp_path)
    printed = [
        *cli("compare", "last", "--endpoints", "planted,fair", "--all", "--csv", "gaps.csv"),
        *cli("show"),
        *cli("show", "last", "*test_it*"),
        *cli("show", "last", "\x1b[2J"),
        *cli("list"),
    ]
    for text in (one for one in printed if isinstance(one, str)):
        assert "\x1b" not in text
        assert not any(
            line.lstrip().startswith(("::", "##vso")) or "##vso[" in line
            for line in text.splitlines()
        )
    assert "vso[task]" in "".join(map(str, printed))
    assert "'=evil" in (tmp_path / "gaps.csv").read_text()
