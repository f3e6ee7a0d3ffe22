"""Letters over runs: what reviewers accepted, scores and warnings from run to run, appeals and
complaints.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from pytest_fairness.cli import main
from pytest_fairness.errors import UsageError
from pytest_fairness.reports.letter_trend import complaints_table, read_complaints, read_letters
from pytest_fairness.scorers.letter import letter_score, score_of
from pytest_fairness.scorers.lexicon import shipped_lexicon

from ..pytest_layer.conftest import Project

TODAY = datetime.date(2026, 11, 23)
ENTRY = (
    "- {category: age, term: overqualified, who: J. Smith, why: the post is a traineeship, until: "
    "2027-01-31}\n"
)


def accepted(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "accepted.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_was_accepted_costs_nothing_and_stays_listed(tmp_path: Path) -> None:
    """By term, by phrase, until a day; another lexicon's scores are never taken for these."""
    lexicon, expired = shipped_lexicon().accepting(accepted(tmp_path, ENTRY), TODAY)
    text = "You are overqualified, and not a culture fit."
    warnings = {one.term: one for one in lexicon.warnings(text)}
    assert warnings["overqualified"].accepted == "J. Smith"
    assert not warnings["culture-fit"].accepted
    assert (score_of(warnings.values()), letter_score(text), expired) == (85, 70, [])
    assert lexicon.digest != shipped_lexicon().digest
    phrase = (
        "- {category: cultural_fit, phrase: Culture  fit, who: J, why: quoted, until: 2026-11-23}\n"
    )
    lexicon, _ = shipped_lexicon().accepting(accepted(tmp_path, phrase), TODAY)
    assert [one.term for one in lexicon.warnings(text) if one.accepted] == ["culture-fit"]
    lexicon, expired = shipped_lexicon().accepting(
        accepted(tmp_path, phrase), TODAY + datetime.timedelta(days=1)
    )
    assert lexicon.accepted == ()
    assert len(expired) == 1
    assert expired[0].startswith(
        "accepted.yaml: Culture  fit (cultural_fit), accepted by J, expired on 2026-11-23: "
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            ENTRY.replace("overqualified", "overqualifed"),
            r"accepted.yaml:1: unknown term 'overqualifed'.*did you mean",
        ),
        (ENTRY.replace("category: age", "category: ages"), "unknown category 'ages'"),
        (ENTRY.replace("term: overqualified, ", ""), "term or phrase: say which"),
        (ENTRY.replace("who: J. Smith, ", ""), "missing key `who`"),
        (ENTRY.replace("2027-01-31", "soon"), "until"),
    ],
)
def test_an_entry_that_is_wrong_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        shipped_lexicon().accepting(accepted(tmp_path, text), TODAY)


CSV = """date,kind,citing,letters,outcome
2026-10-03,appeal,age,400,upheld
2026-10-20,complaint,,,
2026-11-02,legal,<b>age</b>,500,
"""


def test_complaints_by_month(tmp_path: Path) -> None:
    path = tmp_path / "complaints.csv"
    path.write_text(CSV, encoding="utf-8")
    shown = complaints_table(read_complaints(path))
    assert shown.rows == (("2026-10", "1", "1", "0", "0.50"), ("2026-11", "0", "0", "1", "0.20"))
    for text, why in (
        ("date,kind\n2026-10-03,praise\n", r"complaints.csv:2: kind: "),
        ("date,kind\nsoon,appeal\n", "csv:2: date"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=why):
            read_complaints(path)


def test_a_session_with_acceptances_and_the_trend_of_two_runs(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run has what the second accepts; the trend has both, and the complaints; hostile
    cells stay inert.
    """
    suite = (
        "--pyargs",
        "pytest_fairness.suites.letters",
        "--fairness-test=letters.clean",
        "--fairness-endpoint=slips",
    )
    entry = "endpoints:\n  - {name: slips, type: simulated, slips: {age: {late_career: 0.9}}}\n"
    (project.path / "endpoints.yaml").write_text(entry, encoding="utf-8")
    (project.path / "letters.yaml").write_text(
        "repetitions: 1\nbaseline: false\n", encoding="utf-8"
    )
    project.run(*suite)
    terms = {
        one["term"]
        for one in json.loads((project.last / "letters.json").read_text("utf-8"))["warnings"]
    }
    lines = [
        ENTRY.replace("overqualified", term).replace("2027-01-31", "2099-12-31")
        for term in sorted(terms)
    ]
    lines.append(ENTRY.replace("2027-01-31", "2020-01-31"))
    accepted(project.path, "".join(lines))
    result = project.run(*suite)
    result.assert_outcomes(passed=1)
    shown = result.stdout.str()
    assert (
        "fairness: accepted.yaml: overqualified (age), accepted by J. Smith, expired on 2020-01-31"
        in shown
    )
    assert "warnings (false-positive rate 100.0%)" in shown
    assert "⚠ WARNINGS (0):" in shown
    found = read_letters(project.last)
    assert found is not None
    assert (found.overall_score, found.false_positive_rate) == (100, 1)
    assert found.warnings_a_hundred == len(found.warnings) > 5
    (project.path / "complaints.csv").write_text(CSV, encoding="utf-8")
    monkeypatch.chdir(project.path)
    assert main(["trend", "--complaints", "complaints.csv", "--html", "trend.html"]) == 0
    shown = capsys.readouterr().out
    assert "Letters by run, the oldest first" in shown
    assert "100.0%" in shown
    assert "Appeals and complaints by month" in shown
    page = (project.path / "trend.html").read_text("utf-8")
    assert 'id="letters"' in page
    assert "&lt;b&gt;age&lt;/b&gt;" in page
