"""OVER: FLAGs justified, FAILs mitigated and tested again, approvals by somebody else, expiries
kept.
"""

from __future__ import annotations

import datetime
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.baselines.approval import Approval
from pytest_fairness.baselines.document import BaselineDocument, Fingerprints
from pytest_fairness.baselines.justifications import Justification
from pytest_fairness.baselines.mitigations import Mitigation
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.reports.sections import Section
from pytest_fairness.scorers.lexicon import AcceptedWarning
from pytest_fairness.statistics.persona_scores import PersonaScore, ScoreSummary
from pytest_fairness.suites.governance.oversight import (
    OversightOptions,
    OversightRecord,
    approved,
    justified,
    mitigated,
    oversight_section,
    unexpired,
)
from tests.conftest import MODES

from ..pytest_layer.conftest import BIASED, GRID
from .lives import Life, LivedProject, Sessions, lived
from .past_project import SUITE, flagged, past_of, past_run, scored, with_justification

TODAY = datetime.date(2026, 6, 1)
TEST = "tests/test_names.py::test_tone_does_not_follow_the_name"
PASSED = scored({"white": 5.0, "black": 5.0})
FAILED = scored({"white": 5.0, "black": 3.0}, Verdict.FAIL)


def day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def record(
    *runs: Any, unreadable: tuple[str, ...] = (), options: dict[str, Any] | None = None, **more: Any
) -> OversightRecord:
    """What is judged on the first of June; *more* are the files."""
    root = more.pop("root", Path("/nowhere"))
    return OversightRecord(
        past=past_of(runs, unreadable=unreadable),
        options=OversightOptions(**(options or {})),
        root=root,
        baselines=root / "baselines",
        endpoints=root / "endpoints.yaml",
        today=TODAY,
        **more,
    )


def reasoned(expiry: str = "2026-12-31", **changes: Any) -> Justification:
    given = {
        "reason": "traced",
        "approver": "Jane Smith",
        "date": day("2026-01-31"),
        "expiry": day(expiry),
    }
    return Justification(**{**given, "test": TEST, **changes})


def mitigation(date: str = "2026-05-01", **changes: Any) -> Mitigation:
    return Mitigation(
        **{"test": TEST, "action": "Reword", "owner": "Sam Lee", "date": day(date), **changes}
    )


def judged(finding: Finding) -> tuple[Verdict, Reason | None]:
    assert finding.sentence.startswith(f"{finding.verdict}: ")
    return finding.verdict, finding.reason


# ---------------------------------------------------------------- FLAGs


@pytest.mark.parametrize(
    ("found", "entries", "verdict", "words"),
    [
        (PASSED, (), Verdict.PASS, "has 1 finding and no FLAG"),
        (flagged(), (), Verdict.FAIL, "nobody has justified it"),
        (flagged(), (reasoned(),), Verdict.PASS, "1 FLAG, each justified"),
        (flagged(), (reasoned("2026-05-31"),), Verdict.FAIL, "its justification has expired"),
        (flagged(), (reasoned(outcome="sentiment"),), Verdict.FAIL, "nobody has justified it"),
        (with_justification(flagged(), "2026-06-01"), (), Verdict.PASS, "1 FLAG, each justified"),
        (
            with_justification(flagged(), "2026-05-31"),
            (),
            Verdict.FAIL,
            "its justification has expired",
        ),
        (
            with_justification(flagged(), "2026-05-31"),
            (reasoned(),),
            Verdict.PASS,
            "1 FLAG, each justified",
        ),
    ],
)
def test_a_flag_needs_a_justification_in_force(
    found: Finding, entries: tuple[Justification, ...], verdict: Verdict, words: str
) -> None:
    """Of the file, or of the marker as its run recorded it; today, whatever held when it ran."""
    finding = justified(record(past_run("2026-05-01", found), justifications=entries))
    assert judged(finding) == (verdict, None)
    assert words in finding.sentence


def test_without_a_run_nothing_is_concluded() -> None:
    """It says what to do, and what could not be read."""
    for conclude in (justified, mitigated, unexpired):
        finding = conclude(record(unreadable=("2026-05-01-001: damaged",)))
        assert judged(finding) == (Verdict.INCONCLUSIVE, Reason.N)
        assert "(2026-05-01-001: damaged): run the fairness tests first" in finding.sentence


#: A FLAG and a FAIL, and a newer run of another comparison.
FORGOTTEN = (
    past_run("2026-05-01", flagged(), replace(FAILED, outcome="sentiment")),
    past_run("2026-05-02", scored({"white": 5.0, "black": 5.0}, outcome="word_count")),
)


def test_an_alarm_is_not_forgotten_by_testing_something_else() -> None:
    """The newest run made another comparison: neither FLAG nor FAIL is settled, until it is tested
    or decided.
    """
    assert judged(justified(record(*FORGOTTEN))) == (Verdict.INCONCLUSIVE, Reason.INCOMPLETE)
    assert judged(mitigated(record(*FORGOTTEN))) == (Verdict.INCONCLUSIVE, Reason.INCOMPLETE)
    assert "of run 2026-05-01-001: not tested again" in justified(record(*FORGOTTEN)).sentence


def test_an_alarm_is_settled_by_a_decision_or_a_test() -> None:
    decided = record(*FORGOTTEN, justifications=(reasoned(),))
    assert justified(decided).verdict is Verdict.PASS
    answered = record(*FORGOTTEN, mitigations=(mitigation(outcome="sentiment"),))
    assert mitigated(answered).verdict is Verdict.PASS
    tested = record(*FORGOTTEN, past_run("2026-05-03", PASSED))
    assert justified(tested).verdict is Verdict.PASS


def test_the_run_that_is_judged_may_be_named() -> None:
    """By id, or ``last`` for the newest whatever it left out."""
    assert justified(record(*FORGOTTEN, options={"run": "last"})).verdict is Verdict.PASS
    assert justified(record(*FORGOTTEN, options={"run": "2026-05-01-001"})).verdict is Verdict.FAIL
    with pytest.raises(UsageError, match="there is no run '2026-05-09-001'"):
        justified(record(*FORGOTTEN, options={"run": "2026-05-09-001"}))


def test_a_newer_run_that_cannot_be_read_is_left_out_too() -> None:
    """An older one was judged by those after it."""
    newer = record(past_run("2026-05-01", PASSED), unreadable=("2026-05-02-001: no findings.json",))
    assert judged(justified(newer)) == (Verdict.INCONCLUSIVE, Reason.INCOMPLETE)
    older = record(past_run("2026-05-03", PASSED), unreadable=("2026-05-02-001: no findings.json",))
    assert judged(justified(older)) == (Verdict.PASS, None)


# ---------------------------------------------------------------- FAILs


@pytest.mark.parametrize(
    ("runs", "entry", "verdict", "words"),
    [
        ((FAILED,), None, Verdict.FAIL, "no entry of mitigations.yaml is about it"),
        ((FAILED,), mitigation(), Verdict.PASS, "none is overdue"),
        ((FAILED,), mitigation("2026-02-01"), Verdict.FAIL, "overdue since 2026-05-02"),
        ((FAILED,), mitigation(due=day("2026-05-31")), Verdict.FAIL, "overdue since 2026-05-31"),
        ((FAILED,), mitigation("2026-02-01", due=day("2026-07-01")), Verdict.PASS, "none is overdue"),
        ((FAILED,), mitigation(done=day("2026-05-20")), Verdict.INCONCLUSIVE, "done 2026-05-20, not tested since"),
        ((FAILED,), mitigation("2026-01-01", done=day("2026-02-20")), Verdict.FAIL, "re-test in run 2026-05-10-001 is"),
        ((FAILED, PASSED), mitigation(done=day("2026-05-10")), Verdict.PASS, "each that is done was tested again"),
        ((FAILED, FAILED), mitigation(done=day("2026-05-10")), Verdict.FAIL, "re-test in run 2026-05-11-001 is FAIL"),
        ((FAILED, replace(PASSED, verdict=Verdict.INCONCLUSIVE)), mitigation(done=day("2026-05-11")), Verdict.FAIL,
         "is INCONCLUSIVE"),
        ((PASSED,), mitigation("2026-01-01"), Verdict.PASS, "1 mitigation none is overdue"),
    ],
)  # fmt: skip
def test_a_fail_is_mitigated_in_time_and_tested_again(
    runs: tuple[Finding, ...], entry: Mitigation | None, verdict: Verdict, words: str
) -> None:
    """By the newest run from the day on which the action was done; what is done and untested is not
    settled.
    """
    past = [past_run(f"2026-05-{10 + at}", finding) for at, finding in enumerate(runs)]
    finding = mitigated(record(*past, mitigations=(entry,) if entry else ()))
    assert finding.verdict is verdict, finding.sentence
    assert words in finding.sentence


def test_the_days_are_those_of_the_options() -> None:
    past = past_run("2026-05-10", FAILED)
    late = record(past, mitigations=(mitigation(),), options={"overdue_days": 30})
    assert "overdue since 2026-05-31" in mitigated(late).sentence
    untested = record(
        past, mitigations=(mitigation(done=day("2026-05-20")),), options={"overdue_days": 5}
    )
    assert mitigated(untested).verdict is Verdict.FAIL


# ---------------------------------------------------------------- expiries


RUN = past_run("2026-05-10", PASSED)


def test_without_an_excuse_nothing_can_expire() -> None:
    finding = unexpired(record(RUN))
    assert judged(finding) == (Verdict.PASS, None)
    assert "nothing is justified or accepted" in finding.sentence


def test_the_file_alone_is_judged_without_a_run() -> None:
    assert judged(unexpired(record(justifications=(reasoned(),)))) == (Verdict.PASS, None)


def test_an_excuse_after_its_end_fails() -> None:
    """The day of the end itself still counts."""
    expired = unexpired(record(RUN, justifications=(reasoned("2026-05-31"), reasoned())))
    assert judged(expired) == (Verdict.FAIL, None)
    assert (
        "1 of 2 justifications and accepted warnings that expired, or have no end"
        in expired.sentence
    )
    assert unexpired(record(RUN, justifications=(reasoned("2026-06-01"),))).verdict is Verdict.PASS


def test_an_end_that_is_too_far_away_is_none() -> None:
    endless = unexpired(record(RUN, justifications=(reasoned("2028-12-31"),)))
    assert judged(endless) == (Verdict.FLAG, None)
    assert "over 731 days after 2026-01-31, which is no end" in endless.sentence
    within = record(RUN, justifications=(reasoned("2026-12-31"),), options={"longest_days": 30})
    assert unexpired(within).verdict is Verdict.FLAG


def test_what_ends_soon_is_noted() -> None:
    soon = unexpired(record(RUN, justifications=(reasoned("2026-06-20"), reasoned())))
    assert soon.verdict is Verdict.PASS
    assert soon.sentence.endswith("has expired; 1 expire within 30 days.")
    assert soon.notes == (
        f"justification of {TEST} (Jane Smith) expires on 2026-06-20, in 19 days",
    )


def test_markers_and_accepted_warnings_expire_too() -> None:
    """A marker as its run recorded it; one that stands in the file as well counts once."""
    marker = past_run("2026-05-10", with_justification(flagged(), "2026-05-31"))
    assert f"marker of {TEST} (Jane Smith): expired" in unexpired(record(marker)).sentence
    both = unexpired(record(marker, justifications=(reasoned("2026-05-31"),)))
    assert both.sentence.startswith("FAIL: 1 of 1 justifications")
    warning = AcceptedWarning(
        category="age", term="overqualified", who="J", why="w", until=day("2026-05-01")
    )
    accepted = unexpired(record(RUN, accepted=(warning,)))
    assert "accepted warning overqualified (J): expired on 2026-05-01" in accepted.sentence


def test_what_was_followed_up_is_shown_the_worst_first() -> None:
    finding = unexpired(record(RUN, justifications=(reasoned(), reasoned("2026-05-31"))))
    assert [row["verdict"] for row in finding.details["followed_up"]] == ["PASS", "FAIL"]  # type: ignore[index, union-attr, call-overload]
    section = oversight_section(finding)
    assert [entry.verdict for entry in verdicts_of(section)] == [Verdict.FAIL, Verdict.PASS]
    nothing = oversight_section(unexpired(record(RUN)))
    assert nothing.parts == ()


def verdicts_of(section: Section) -> list[Any]:
    """The last column of the table in *section*."""
    (shown,) = section.parts
    return [row[-1] for row in shown.rows]  # type: ignore[union-attr]


# ---------------------------------------------------------------- approvals


class GitProject:
    """A project in git with a baseline of one test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tests").mkdir()
        (root / "baselines").mkdir()
        self.git("init", "-q")

    def git(self, *arguments: str, who: str = "Ann") -> str:
        name = (
            "-c",
            f"user.name={who}",
            "-c",
            f"user.email={who.lower()}@example.org",
            "-c",
            "commit.gpgsign=false",
        )
        done = subprocess.run(
            ["git", *name, *arguments], cwd=self.root, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, who: str, *, message: str = "change") -> str:
        self.git("add", "-A")
        self.git("commit", "-qm", message, who=who)
        return self.git("rev-parse", "HEAD")

    def change(self, who: str, text: str = "a") -> str:
        (self.root / "tests" / "test_letters.py").write_text(text, "utf-8")
        return self.commit(who)

    def approve(
        self, by: str, commit: str | None, source: str = "git", *, dirty: bool = False
    ) -> None:
        approval = Approval(
            approved_by=by, approved_by_source=source, approved_at="2026-05-01T09:00:00Z", justification="reviewed",
            git_commit=commit, dirty=dirty, tool_version="0.1.0", run_id="2026-05-01-001", simulated=False,
        )  # fmt: skip
        document = BaselineDocument(
            test_id="tests/test_letters.py::test_scores", score="letter_score",
            summary=ScoreSummary(personas={"p1": PersonaScore(mean=90.0, n=5)}, overall=90.0),
            fingerprints=Fingerprints(endpoint="gpt"), approval=approval,
        )  # fmt: skip
        (self.root / "baselines" / "letters.json").write_text(document.to_text(), "utf-8")

    def finding(self, **options: Any) -> Finding:
        return approved(record(past_run("2026-05-10", PASSED), root=self.root, options=options))


@pytest.fixture
def repository(tmp_path: Path) -> GitProject:
    return GitProject(tmp_path)


def test_somebody_else_approves(repository: GitProject) -> None:
    """Ann writes, Ben approves under his own name; Ann cannot approve her own change, nor can a
    co-author.
    """
    repository.approve("Ben <ben@example.org>", repository.change("Ann"))
    repository.commit("Ben")
    assert judged(repository.finding()) == (Verdict.PASS, None)
    repository.approve("Ann <other@example.org>", repository.change("Ann", "b"))
    repository.commit("Ben")
    assert "Ann <other@example.org> approved a change of their own" in repository.finding().sentence
    repository.approve("Ben <ben@example.org>", repository.change("ben", "c"))
    repository.commit("Ann")
    assert repository.finding().verdict is Verdict.FAIL
    (repository.root / "tests" / "test_letters.py").write_text("d", "utf-8")
    both = repository.commit("Ann", message="d\n\nCo-authored-by: Ben <ben@example.org>")
    repository.approve("Ben <ben@example.org>", both)
    repository.commit("Ben")
    assert repository.finding().verdict is Verdict.FAIL


def test_every_author_since_the_approval_before_counts(repository: GitProject) -> None:
    """Cara changes, then Ann; Cara approves: a part is her own. Of what nobody changed, the last
    author counts.
    """
    repository.approve("Ben <ben@example.org>", repository.change("Ann"))
    repository.commit("Ben")
    repository.change("Cara", "b")
    repository.approve("Cara <cara@example.org>", repository.change("Ann", "c"))
    repository.commit("Cara")
    assert repository.finding().verdict is Verdict.FAIL
    (repository.root / "justifications.yaml").write_text("[]", "utf-8")
    repository.approve("Cara <cara@example.org>", repository.commit("Cara"))
    repository.commit("Cara")
    assert (
        repository.finding().verdict is Verdict.PASS
    )  # a justification is no change of what is measured
    assert repository.finding(change=["justifications.yaml"]).verdict is Verdict.FAIL


def test_a_change_that_is_committed_with_its_baseline(repository: GitProject) -> None:
    """The approval was given before the commit: the author of that commit is the author of the
    change.
    """
    for number, (author, verdict) in enumerate([("Ann", Verdict.PASS), ("Ben", Verdict.FAIL)]):
        head = repository.change("Cara", f"c{number}")
        (repository.root / "tests" / "test_letters.py").write_text(f"d{number}", "utf-8")
        repository.approve("Ben <ben@example.org>", head, dirty=True)
        repository.commit(author)
        assert repository.finding().verdict is verdict


def test_what_nothing_shows_is_not_passed(repository: GitProject) -> None:
    """Names that only a variable or a login gives, what was never committed, what git does not
    know.
    """
    head = repository.change("Ann")
    repository.approve("Ben <ben@example.org>", head)
    assert "git knows no commit of it" in repository.finding().sentence
    repository.approve("Ben", head, "FAIRNESS_APPROVER")
    repository.commit("Ann")
    finding = repository.finding()
    assert judged(finding) == (Verdict.INCONCLUSIVE, Reason.UNRECORDED)
    assert (
        "the variable FAIRNESS_APPROVER alone says that Ben approved the change of ann"
        in finding.sentence
    )
    repository.git("commit", "-q", "--amend", "-m", "Approve\n\nReviewed-by: Ben <ben@example.org>")
    assert repository.finding().verdict is Verdict.PASS
    for by, commit, source, dirty in (
        ("bjones", head, "login", False),
        ("Ben <ben@example.org>", None, "git", False),
        ("Ben <ben@example.org>", "0" * 40, "git", False),
        ("Ben <ben@example.org>", head, "git", True),
    ):
        repository.approve(by, commit, source, dirty=dirty)
        repository.commit("Ben")
        assert judged(repository.finding()) == (Verdict.INCONCLUSIVE, Reason.UNRECORDED), (
            by,
            source,
        )
    assert any("everybody can set their own" in note for note in repository.finding().notes)


def test_a_baseline_that_was_edited_is_approved_by_nobody(repository: GitProject) -> None:
    assert judged(repository.finding()) == (Verdict.INCONCLUSIVE, Reason.UNRECORDED)
    repository.approve("Ben <ben@example.org>", repository.change("Ann"))
    path = repository.root / "baselines" / "letters.json"
    path.write_text(path.read_text("utf-8").replace("90.0", "95.0"), "utf-8")
    repository.commit("Ben")
    assert "letters.json: cannot be read: " in repository.finding().sentence


# ---------------------------------------------------------------- as a session


SESSION = (*SUITE, "-k", "oversight and not baselines")


@lived
def mending_life(project: LivedProject) -> Sessions:
    """Nothing was run; a real run fails; a mitigation is entered; an option is misspelt."""
    project.write(GRID, BIASED)
    yield "nothing", project.run(*SESSION)
    project.run("--fairness-endpoint", "planted").assert_outcomes(failed=1)
    yield "failed", project.run(*SESSION)
    entry = "test: 'test_suite.py::test_tone', action: Reword, owner: Sam"
    (project.path / "mitigations.yaml").write_text(
        f"- {{{entry}, date: 2026-01-01, due: 2099-01-01}}\n", "utf-8"
    )
    yield "mitigated", project.run(*SESSION)
    yield "n2", project.run(*SESSION, mode=MODES["n2"])
    (project.path / "governance.yaml").write_text("oversight: {overdue: 3}\n", "utf-8")
    yield "misspelt", project.run(*SESSION)


def test_before_any_run_all_are_skipped_and_the_session_is_not_green(mending_life: Life) -> None:
    mending_life["nothing"].assert_nothing_judged(skipped=3)


def test_a_fail_that_nobody_answers_is_red(mending_life: Life) -> None:
    failed = mending_life["failed"]
    assert failed.counts("failed", "passed") == (1, 2)
    assert failed.verdicts["OVER-MITI-001"] == "FAIL"
    assert "no entry of mitigations.yaml is about it" in failed.output


def test_a_mitigation_turns_it_green(mending_life: Life) -> None:
    """What judges is not judged again; what is judged was simulated, and so is this."""
    mitigated_ = mending_life["mitigated"]
    assert mitigated_.counts("failed", "passed") == (0, 3)
    finding = mitigated_.by_id["OVER-MITI-001"]
    assert finding["test_module"] == "iso42001-oversight"
    assert finding["controls"] == {"A.9.2": "context", "A.9.3": "context"}
    assert finding["simulated"]
    assert "open until 2099-01-01" in mitigated_.page


def test_two_workers_conclude_the_same(mending_life: Life) -> None:
    workers = mending_life["n2"]
    assert workers.counts("failed", "passed") == (0, 3)
    assert workers.verdicts == mending_life["mitigated"].verdicts


def test_a_misspelt_option_is_refused(mending_life: Life) -> None:
    assert "unknown key 'overdue'" in mending_life["misspelt"].output
