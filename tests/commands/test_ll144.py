"""``pytest-fairness ll144``: of a run and of a CSV file, with what it is told and asked."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

from pytest_fairness.cli import main
from tests.support.sessions import run_pytest

SUITE = """
import pytest
from pytest_fairness import assert_four_fifths, assert_no_disparity

@pytest.mark.fairness_grid(
    template="Should we interview {name}, a nurse? Answer yes or no.", names=(10,), repetitions=2,
    groups={"race_ethnicity": ["white", "black"], "gender": ["female", "male"]})
def test_interview(trials):
    assert_four_fifths(trials, "decision", "race_ethnicity")
    assert_no_disparity(trials, "decision", "gender")

@pytest.mark.fairness_grid(
    template="Rate {name}, a nurse, from 1 to 10.", names=(10,), repetitions=2,
    groups={"race_ethnicity": ["white", "black"]})
def test_rating(trials):
    assert_no_disparity(trials, "rating", "race_ethnicity")
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "test_suite.py").write_text(SUITE, encoding="utf-8")
    run_pytest(folder, "-p", "no:cacheprovider", "-q")
    rows = [
        f"{sex},{race},{'yes' if at % 3 else 'no'}"
        for sex in "MF"
        for race in ("w", "b", "")
        for at in range(6)
    ]
    (folder / "decisions.csv").write_text("\n".join(["sex,race,hired", *rows]), encoding="utf-8")
    return folder


def test_of_a_run_and_of_a_file(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which finding's trials are meant is asked where several could be; a score is judged by the
    median; of a file the columns, the favourable decision and the statement are the caller's.
    """
    monkeypatch.chdir(project)

    def told(*arguments: str) -> tuple[int, str]:
        code = main(["ll144", *arguments])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    code, text = told("last")
    assert code == 2
    lines = text.splitlines()[1:]
    assert [line.split(maxsplit=1)[1] for line in lines] == [
        "decision in test_suite.py::test_interview", "rating in test_suite.py::test_rating",
    ]  # fmt: skip
    decisions, ratings = (line.split()[0] for line in lines)
    code, text = told(
        "last", "--finding", decisions, "--html", "x.html", "--markdown", "x.md", "--csv", "x.csv"
    )
    assert (code, "By sex × race/ethnicity" in text, "simulated" in text) == (0, True, True)
    assert "In the calculations: 80 of 80" in text
    assert all(
        (project / f"x.{form}").read_text(encoding="utf-8").count("female × black")
        for form in ("html", "md", "csv")
    )
    code, text = told("last", "--finding", ratings)
    assert (code, "Scoring rate: share above the median of all scores" in text) == (0, True)
    assert "scores equal the median" in text

    stated = (
        "--data",
        "historical",
        "--source",
        "our own, 2025",
        "--distribution-date",
        "2024-07-05",
    )
    code, text = told("decisions.csv", "--outcome", "hired", "--favourable", "yes", *stated)
    assert (code, text.splitlines()[0]) == (
        0,
        "LL144-format tables (historical data, by the statement below)",
    )
    for line in (
        "Source: our own, 2025",
        "Distribution date of the tool: 2024-07-05",
        "12 of an unknown category",
    ):
        assert line in text
    for arguments, why in (
        (("decisions.csv",), "name the column; the columns are sex, race, hired"),
        (("decisions.csv", "--outcome", "hird"), "did you mean 'hired'?"),
        (
            ("decisions.csv", "--outcome", "hired", "--favourable", "yes", "--exclude", "w"),
            "say CATEGORY=WHY",
        ),
        (("nothing.csv", "--outcome", "hired"), "cannot be read as CSV"),
        (("last", "--finding", "f-0"), "unknown finding 'f-0'"),
        (("last", "--outcome", "rating"), "name the finding with --finding"),
        (("last", "--finding", decisions, *stated), "no tool of anybody's"),
    ):
        code, text = told(*arguments)
        assert (code, why in text) == (2, True), text


def test_names_the_decision_and_finds_columns_in_any_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page says which decision is meant and which others count against; ``Race`` is a column
    of the race; the crossed table goes by sex, whatever the order of the rows.
    """
    path = tmp_path / "decisions.csv"
    rows = [
        "White,Male,Offer",
        "White,Female,Withdrawn",
        "Black,Male,Rejected",
        "Black,Female,Offer",
    ]
    path.write_text("\n".join(["Race,Gender,Decision", *rows, rows[0]]), encoding="utf-8")
    page = tmp_path / "page.html"
    arguments = ["--outcome", "Decision", "--favourable", "Offer", "--html", str(page)]
    assert main(["ll144", str(path), *arguments]) == 0
    printed = capsys.readouterr().out
    for text in (printed, html.unescape(page.read_text("utf-8"))):
        assert (
            "share whose Decision is 'Offer'; 'Rejected', 'Withdrawn' count as not selected" in text
        )
    crossed = printed.partition("By sex × race")[2]
    places = [
        crossed.index(f"{sex} × {race}")
        for sex in ("Male", "Female")
        for race in ("White", "Black")
    ]
    assert places == sorted(places)


def test_without_a_column_of_sex_or_race_says_which_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "decisions.csv"
    path.write_text("team,hired\nA,1\nB,0\n", encoding="utf-8")
    assert main(["ll144", str(path), "--outcome", "hired"]) == 2
    message = capsys.readouterr().err
    assert "--sex COLUMN or --race COLUMN" in message
    assert "the columns are team, hired" in message
