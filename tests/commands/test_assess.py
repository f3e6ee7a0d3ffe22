"""``pytest-fairness assess``: the verdict of the assertions on a file of decisions."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from pytest_fairness import analyze_disparity, analyze_four_fifths
from pytest_fairness.cli import main
from tests.support.sessions import findings_of_test

RATES = {"white": 0.5, "black": 0.3}
FAIR = {"white": 0.5, "black": 0.5}


def decisions(rates: Mapping[str, float], rows: int = 400) -> pd.DataFrame:
    """So many rows a group, with the favourable decision at its rate, exactly."""
    chance = random.Random(1)
    table = []
    for race, rate in rates.items():
        for number in range(rows):
            hired = number < rate * rows
            table.append([hired, race, chance.choice("fm"), chance.gauss(5, 1), f"{race}{number}"])
    return pd.DataFrame(table, columns=["hired", "race", "gender", "score", "person"])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    decisions(RATES).to_csv("decisions.csv", index=False)
    return tmp_path / "decisions.csv"


def assess(*options: str) -> int:
    return main(["assess", "decisions.csv", *options])


def findings(capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assess(*options, "--json")
    return json.loads(capsys.readouterr().out)


def test_each_class_is_a_family_of_its_own(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The findings are those of the analysis, and an alarm is exit code 1."""
    assert assess("--outcome", "hired", "--by", "race", "--by", "gender") == 1
    shown = capsys.readouterr().out
    frame = pd.read_csv(file)
    expected = [
        analyze_disparity(frame, "hired", by, cluster=None, block=None) for by in ("race", "gender")
    ]
    assert [finding.verdict.value for finding in expected] == ["FLAG", "PASS"]
    for finding in expected:
        assert " ".join(finding.sentence.split()) in " ".join(shown.split())
    given = findings(capsys, "--outcome", "hired", "--by", "race", "--by", "gender")
    assert [finding["sentence"] for finding in given] == [each.sentence for each in expected]


def test_who_is_fair_is_exit_code_0(file: Path) -> None:
    decisions(FAIR).to_csv(file, index=False)
    assert assess("--outcome", "hired", "--by", "race", "--require-conclusive") == 0
    decisions(FAIR, rows=20).to_csv(file, index=False)
    assert assess("--outcome", "hired", "--by", "race") == 0
    assert assess("--outcome", "hired", "--by", "race", "--require-conclusive") == 1


def test_crossed_four_fifths_and_scores(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.read_csv(file)
    (crossed,) = findings(capsys, "--outcome", "hired", "--by", "race, gender")
    assert crossed["protected_class"] == "race, gender"
    (ratio,) = findings(capsys, "--outcome", "hired", "--by", "race", "--four-fifths")
    expected = analyze_four_fifths(frame, "hired", "race", cluster=None, block=None)
    assert (ratio["verdict"], ratio["sentence"]) == ("FAIL", expected.sentence)
    (score,) = findings(capsys, "--outcome", "score", "--by", "race", "--cluster", "person")
    assert (score["kind"], score["verdict"]) == ("numeric", "PASS")


def test_the_page_holds_no_cell_as_it_stands(file: Path) -> None:
    """A group may be called anything."""
    evil = "<script>alert(1)</script>\x1b[2J"
    frame = decisions(RATES)
    frame["race"] = frame["race"].replace("black", evil)
    frame.to_csv(file, index=False)
    assert assess("--outcome", "hired", "--by", "race", "--html", "page.html") == 1
    page = Path("page.html").read_text("utf-8")
    assert "<script>" not in page
    assert "\x1b" not in page
    assert "Assessment of decisions.csv" in page


def test_the_terminal_obeys_no_cell(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = decisions(RATES)
    frame["race"] = frame["race"].replace("black", "b\x1b[2Jlack")
    frame.to_csv(file, index=False)
    assess("--outcome", "hired", "--by", "race")
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("options", [(), ("--four-fifths", "--favourable", "True")])
def test_as_a_test_it_says_the_same(
    file: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    given = findings(
        capsys, "--outcome", "hired", "--by", "race", "--by", "race,gender", *options,
        "--as-test", "test_hired.py",
    )  # fmt: skip
    judged = findings_of_test(file.parent, "test_hired.py")
    verdicts = [(finding["protected_class"], finding["verdict"]) for finding in judged]
    assert verdicts == [(finding["protected_class"], finding["verdict"]) for finding in given]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--outcome", "hird", "--by", "race"], "no column 'hird'; did you mean 'hired'?"),
        (["--outcome", "hired", "--by", "raze"], "--by: decisions.csv has no column 'raze'"),
        (["--outcome", "hired", "--by", "race", "--cluster", "who"], "--cluster: decisions.csv"),
        (["--outcome", "hired", "--by", "race", "--favourable", "maybe"], "there are False, True"),
        (["--outcome", "hired", "--by", "race", "--alpha", "2"], "alpha=2.0"),
    ],
)
def test_what_cannot_be_judged_is_said(
    file: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert assess(*options) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_is_none(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content, message in (("", "cannot be read"), ("hired,race\n", "has no rows")):
        file.write_text(content)
        assert assess("--outcome", "hired", "--by", "race") == 2
        assert message in capsys.readouterr().err
    file.unlink()
    assert assess("--outcome", "hired", "--by", "race") == 2
    frame = decisions(RATES)
    frame["score"] = frame["score"].astype(object)
    frame.loc[7, "score"] = "seven"
    frame.to_csv(file, index=False)
    capsys.readouterr()
    assert assess("--outcome", "score", "--by", "race", "--kind", "numeric") == 2
    assert "decisions.csv, line 9: column 'score': 'seven' is not" in capsys.readouterr().err


def test_parquet_is_judged_alike(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="pip install 'pytest-fairness[parquet]'")
    (by_csv,) = findings(capsys, "--outcome", "hired", "--by", "race")
    pd.read_csv(file).to_parquet("decisions.parquet")
    assert (
        main(["assess", "decisions.parquet", "--outcome", "hired", "--by", "race", "--json"]) == 1
    )
    (by_parquet,) = json.loads(capsys.readouterr().out)
    assert by_parquet["sentence"] == by_csv["sentence"]
