"""What the tests about processes conclude of several findings, and what they call them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.suites.governance import past_results
from pytest_fairness.suites.governance.past_results import (
    PAST_RUNS,
    conclude_each,
    named_findings,
    runs_there,
    words_of,
)

from ..pytest_layer.conftest import Project
from .past_project import SUITE, flagged, past_of, past_run, save, scored

PASSED = scored({"a": 1.0})
FAILED = scored({"a": 1.0}, Verdict.FAIL, outcome="failed")
UNUSABLE = scored({"a": 1.0}, Verdict.INCONCLUSIVE, reason=Reason.N, outcome="unusable")
UNSURE = scored({"a": 1.0}, Verdict.INCONCLUSIVE, reason=Reason.PRECISION, outcome="unsure")
EXCUSED = {"reason": "traced", "approver": "Jane Smith"}


class Desk:
    """A running test that notes what it is handed; *excused* is the outcome that is justified."""

    def __init__(self, excused: str = "") -> None:
        self.excused = excused
        self.emitted: list[Finding] = []
        self.concluded: list[Finding] = []

    def justification(self, finding: Finding) -> dict[str, str] | None:
        if finding.outcome == self.excused:
            return EXCUSED
        return None

    def emit(self, finding: Finding) -> None:
        self.emitted.append(finding)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk()
    monkeypatch.setattr(past_results, "current_test", lambda: desk)
    monkeypatch.setattr(past_results, "conclude", desk.concluded.append)
    return desk


@pytest.mark.parametrize(
    ("findings", "last"),
    [
        ([FAILED, PASSED], "failed"),
        ([flagged(), FAILED, UNSURE], "failed"),
        ([UNSURE, UNUSABLE, PASSED], "unusable"),
        ([UNSURE, PASSED], "unsure"),
        ([flagged(outcome="flagged"), UNUSABLE], "flagged"),
    ],
)
def test_the_most_urgent_finding_is_concluded(
    desk: Desk, findings: list[Finding], last: str
) -> None:
    """The others are handed to the test before it, each once."""
    conclude_each(findings)
    assert [finding.outcome for finding in desk.concluded] == [last]
    assert len(desk.emitted) == len(findings) - 1


def test_a_flag_that_is_justified_hides_no_other(desk: Desk) -> None:
    """Nor an INCONCLUSIVE that fails the test."""
    desk.excused = "excused"
    conclude_each([flagged(outcome="flagged"), flagged(outcome="excused")])
    assert [finding.outcome for finding in desk.concluded] == ["flagged"]
    assert [finding.justification for finding in desk.emitted] == [EXCUSED]
    desk.concluded.clear()
    conclude_each([flagged(outcome="excused"), UNUSABLE])
    assert [finding.outcome for finding in desk.concluded] == ["unusable"]


def test_a_justification_that_was_recorded_stays(desk: Desk) -> None:
    recorded = replace(flagged(outcome="excused"), justification={"reason": "first"})
    desk.excused = "excused"
    conclude_each([recorded])
    assert desk.concluded == [recorded]


def test_without_a_finding_nothing_is_concluded(desk: Desk) -> None:
    conclude_each([])
    assert desk.concluded == []


def test_what_judges_the_past_is_not_judged_again() -> None:
    process = scored({"a": 1.0}, test_module="iso42001-oversight")
    run = past_run("2026-05-01", process, PASSED)
    assert [finding.outcome for finding, _, _ in named_findings(run)] == ["rating"]
    past = past_of([past_run("2026-04-01", process), run])
    assert past.judged == (run,)


def test_runs_since_one_and_runs_that_asked() -> None:
    runs = [past_run(f"2026-05-0{day}", PASSED, replayed=day == 3) for day in (1, 2, 3)]
    past = past_of(runs, unreadable=("2026-05-04-001: damaged",))
    assert past.since("2026-05-02-001").runs == tuple(runs[1:])
    assert past.since("2026-05-02-001").unreadable == past.unreadable
    assert past.asked == tuple(runs[:2])


def test_the_words_for_a_finding() -> None:
    finding = scored({"a": 1.0}, model_endpoint="gpt-4o")
    assert words_of(finding, "f-1") == "rating by race_ethnicity, gpt-4o (f-1)"
    bare = SimpleNamespace(outcome="", assertion="canary", protected_class="", model_endpoint=None)
    assert words_of(bare) == "canary"  # type: ignore[arg-type]


# ---------------------------------------------------------------- a project without past runs


def test_one_finding_says_what_is_missing_and_from_when_it_is_judged() -> None:
    finding = runs_there(past_of([]), 8)
    assert (finding.verdict, finding.reason) == (Verdict.INCONCLUSIVE, Reason.N)
    for words in ("0 past runs with findings", "(OVER)", "(THRD)", "(MON)", "after 8 runs"):
        assert words in finding.sentence
    assert "damaged" in runs_there(past_of([], ("2026-01-01-001: damaged",)), 8).sentence


def test_runs_that_are_there_can_be_judged() -> None:
    past = past_of([past_run("2026-01-01", PASSED), past_run("2026-01-02", FAILED)])
    finding = runs_there(past, 12)
    assert finding.verdict is Verdict.PASS
    assert (
        "2 past runs with findings, 2 runs that asked; charts of drift take 12" in finding.sentence
    )


def test_a_run_without_findings_leaves_it_open() -> None:
    """Nothing of it can be overseen; replays ask nobody."""
    assert runs_there(past_of([past_run("2026-01-01")]), 8).reason is Reason.N
    replay = past_run("2026-01-01", PASSED, replayed=True)
    assert runs_there(past_of([replay]), 8).reason is Reason.N


def test_a_new_project_is_red_once(project: Project) -> None:
    """Nine tests are skipped, each with the item that says why; a run later all are judged."""
    processes = (*SUITE, "-k", "past_runs or monitoring or third_party or oversight", "-rs")
    result = project.run(*processes)
    assert result.parseoutcomes().items() >= {"failed": 1, "skipped": 9, "passed": 2}.items()
    assert result.stdout.str().count(PAST_RUNS) >= 9
    named = {finding["test_id"]: finding["verdict"] for finding in project.findings}
    assert named[PAST_RUNS] == "INCONCLUSIVE"
    save(project.path, past_run("2026-01-01", PASSED))
    assert "skipped" not in project.run(*processes).parseoutcomes()
    assert {f["test_id"]: f["verdict"] for f in project.findings}[PAST_RUNS] == "PASS"
