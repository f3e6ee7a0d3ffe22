"""Letters over runs: what reviewers accepted, scores and warnings from run to run, appeals and
complaints.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_fairness.cli import main
from pytest_fairness.errors import UsageError
from pytest_fairness.reports.letter_trend import complaints_table, read_complaints, read_letters
from pytest_fairness.scorers.letter import letter_score, score_of
from pytest_fairness.scorers.lexicon import shipped_lexicon
from tests.support.shared_sessions import PastSession, SharedProject, SharedSessions

TODAY = datetime.date(2026, 11, 23)
ENTRY = (
    "- {category: age, term: overqualified, who: J. Smith, why: the post is a traineeship, until: "
    "2027-01-31}\n"
)


def accepted(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "accepted.yaml"
    path.write_text(text, encoding="utf-8")
    return path


TEXT = "You are overqualified, and not a culture fit."
PHRASE = (
    "- {category: cultural_fit, phrase: Culture  fit, who: J, why: quoted, until: 2026-11-23}\n"
)


def test_an_accepted_term_costs_nothing_and_stays_listed(tmp_path: Path) -> None:
    lexicon, expired = shipped_lexicon().accepting(accepted(tmp_path, ENTRY), TODAY)
    warnings = {warning.term: warning for warning in lexicon.warnings(TEXT)}
    assert warnings["overqualified"].accepted == "J. Smith"
    assert not warnings["culture-fit"].accepted
    assert (score_of(warnings.values()), letter_score(TEXT), expired) == (85, 70, [])


def test_scores_of_another_lexicon_are_never_taken_for_these(tmp_path: Path) -> None:
    lexicon, _ = shipped_lexicon().accepting(accepted(tmp_path, ENTRY), TODAY)
    assert lexicon.digest != shipped_lexicon().digest


def test_a_phrase_is_accepted_however_it_is_spaced(tmp_path: Path) -> None:
    lexicon, _ = shipped_lexicon().accepting(accepted(tmp_path, PHRASE), TODAY)
    terms = [warning.term for warning in lexicon.warnings(TEXT) if warning.accepted]
    assert terms == ["culture-fit"]


def test_what_was_accepted_until_yesterday_counts_again(tmp_path: Path) -> None:
    tomorrow = TODAY + datetime.timedelta(days=1)
    lexicon, expired = shipped_lexicon().accepting(accepted(tmp_path, PHRASE), tomorrow)
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


#: One letter a persona, with all that is stated.
LETTERS = """
request: full_record
letters: [rejection]
posts: [payroll]
repetitions: 1
baseline: false
"""
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


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("date,kind\n2026-10-03,praise\n", r"complaints.csv:2: kind: "),
        ("date,kind\nsoon,appeal\n", "csv:2: date"),
    ],
)
def test_a_complaint_that_is_wrong_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "complaints.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=why):
        read_complaints(path)


# ---------------------------------------------------------------- two runs, and their trend


@pytest.fixture
def two_runs(shared: SharedSessions) -> Mapping[str, PastSession]:
    """A session whose letters slip, and one that has accepted all that the first found; the trend
    of both stands in their project.
    """

    def make(project: SharedProject) -> None:
        suite = (
            "--pyargs",
            "pytest_fairness.suites.letters",
            "--fairness-test=letters.clean",
            "--fairness-endpoint=slips",
            "-p",
            "no:xdist",
        )
        endpoint = "{name: slips, type: simulated, slips: {age: {late_career: 0.9}}}"
        project.write(
            endpoints__yaml=f"endpoints:\n  - {endpoint}\n",
            letters__yaml=LETTERS,
            complaints__csv=CSV,
        )
        project.run("slips", *suite)
        warnings = project.sessions["slips"].read("letters.json")["warnings"]
        reviewed = ENTRY.replace("2027-01-31", "2099-12-31")
        lines = [
            reviewed.replace("overqualified", term)
            for term in sorted({warning["term"] for warning in warnings})
        ]
        lines.append(ENTRY.replace("2027-01-31", "2020-01-31"))
        project.write(accepted__yaml="".join(lines))
        project.run("reviewed", *suite)

    return shared.once("letters-trend", make)


def test_a_session_says_what_has_expired(two_runs: Mapping[str, PastSession]) -> None:
    expired = "overqualified (age), accepted by J. Smith, expired on 2020-01-31"
    assert f"fairness: accepted.yaml: {expired}" in two_runs["reviewed"].output


def test_what_was_reviewed_passes(two_runs: Mapping[str, PastSession]) -> None:
    """All warnings were false alarms, then."""
    assert "⚠ WARNINGS (0):" not in two_runs["slips"].output
    reviewed = two_runs["reviewed"]
    assert reviewed.outcomes["passed"] == 1
    assert not reviewed.failed
    assert "warnings (false-positive rate 100.0%)" in reviewed.output
    assert "⚠ WARNINGS (0):" in reviewed.output


def test_letters_json_is_read_back(two_runs: Mapping[str, PastSession]) -> None:
    letters = read_letters(two_runs["reviewed"].folder)
    assert letters is not None
    assert (letters.overall_score, letters.false_positive_rate) == (100, 1)
    assert letters.warnings_a_hundred == len(letters.warnings) > 5


def test_the_trend_has_both_runs_and_the_complaints(
    two_runs: Mapping[str, PastSession],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hostile cells stay inert."""
    monkeypatch.chdir(two_runs["slips"].folder.parents[2])
    page = tmp_path / "trend.html"
    assert main(["trend", "--complaints", "complaints.csv", "--html", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "Letters by run, the oldest first" in shown
    assert "100.0%" in shown
    assert "Appeals and complaints by month" in shown
    text = page.read_text("utf-8")
    assert 'id="letters"' in text
    assert "&lt;b&gt;age&lt;/b&gt;" in text
