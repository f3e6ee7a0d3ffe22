"""Comparing with what was approved, and approving, rule by rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import syrupy.extensions.base

from pytest_fairness.analysis.baseline import compare_baseline
from pytest_fairness.baselines.approval import AnsweredRun, ApprovalPolicy
from pytest_fairness.baselines.document import BaselineDocument, MeasuredScore
from pytest_fairness.baselines.snapshot_files import baseline_name
from pytest_fairness.errors import (
    ApprovalRefusedError,
    BaselineError,
    MissingBaselineError,
    UsageError,
)
from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.reports.formatting import regressions
from pytest_fairness.statistics.persona_scores import PersonaScore, ScoreSummary

from .conftest import APPROVE, FALLEN, LIVE, SCORE, SCORES, TEST_ID, Desk, summary

REGRESSION_TOO = replace(APPROVE, approve_regression=True)
RISEN = [score + 2 for score in SCORES]
Watch = Callable[[Path], None]


def measured(scores: list[float]) -> MeasuredScore:
    return MeasuredScore(score=SCORE, summary=summary(scores), fingerprints=LIVE)


def body(desk: Desk) -> dict[str, dict[str, object]]:
    return json.loads(desk.file.read_text(encoding="utf-8"))


def test_without_a_baseline_there_is_no_verdict(desk: Desk) -> None:
    """The error gives the very command that approves, an id quoted for the shell, and nothing is
    created. A suite that is installed is found by its name alone, so the command that ran it is
    said.
    """
    with pytest.raises(
        MissingBaselineError,
        match=r"with the same command and\n    -k test_clean --fairness-approve",
    ):
        desk.check(store=desk.store(test_id="installed.py::test_clean"))
    for file in (TEST_ID.partition("::")[0], "t.py"):
        (desk.rootdir / file).parent.mkdir(parents=True, exist_ok=True)
        (desk.rootdir / file).touch()
    with pytest.raises(MissingBaselineError) as caught:
        desk.check()
    assert f"pytest {TEST_ID} --fairness-approve --fairness-justification" in str(caught.value)
    assert f"baselines/{baseline_name(TEST_ID, SCORE)}" in str(caught.value)
    assert isinstance(caught.value, UsageError)
    with pytest.raises(MissingBaselineError, match=r"pytest 't\.py::t\[a b\]' --fairness-approve"):
        desk.check(store=desk.store(test_id="t.py::t[a b]"))
    assert desk.files == []


def test_the_same_scores_pass(desk: Desk, unchanged: Watch) -> None:
    """The finding names the baseline it was compared with, and whose approval that is."""
    desk.approve()
    unchanged(desk.file)
    finding = desk.check()
    assert finding.verdict is Verdict.PASS
    assert finding.details["baseline"]["file"] == f"baselines/{desk.file.name}"
    assert finding.details["baseline"]["written"] is False
    assert finding.details["baseline"]["digest"] == body(desk)["digest"]
    assert finding.details["baseline"]["approval"]["approved_by"] == "Jane Smith"
    assert not any("Since the approval" in note for note in finding.notes)


def test_a_drop_fails_as_the_worked_number_says(desk: Desk, unchanged: Watch) -> None:
    """R13: the mean change is −2.7, one-sided p .001932, corrected within its family."""
    desk.approve()
    unchanged(desk.file)
    finding = desk.check(FALLEN)
    assert finding.verdict is Verdict.FAIL
    overall = finding.pairs[0]
    assert (overall.metric, overall.verdict) == ("overall", Verdict.FAIL)
    assert overall.p_value == pytest.approx(0.001932, abs=5e-7)
    assert "worse than the approved baseline: overall 82.9 → 80.2" in finding.sentence


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"models": ("gpt-5",)}, "the model changed from gpt-4 to gpt-5"),
        ({"template": "t2"}, "the template changed"),
        ({"scorer": "s2"}, "the scorer changed"),
    ],
)
def test_what_changed_since_the_approval_is_named(
    desk: Desk, changes: dict[str, object], reason: str
) -> None:
    """The same scores by other means still pass, and the notes say by which means."""
    desk.approve()
    finding = desk.check(fingerprints=replace(LIVE, **changes))
    assert finding.verdict is Verdict.PASS
    note = finding.notes[-1]
    assert reason in note
    assert note.startswith("Since the approval by Jane Smith at 20")


def test_comparing_needs_neither_approver_nor_justification(desk: Desk) -> None:
    """CI compares, unfinished runs compare; only approving has conditions."""
    desk.approve()
    desk.environ = {"CI": "true"}
    assert desk.check(unfinished=2).verdict is Verdict.PASS


def test_an_error_in_the_comparison_is_not_swallowed(desk: Desk) -> None:
    """syrupy turns every exception into a mismatch; here it comes out as what it was."""
    desk.approve()

    def broken(_approved: object) -> Finding:
        raise ZeroDivisionError("a fault of ours")

    with pytest.raises(ZeroDivisionError, match="a fault of ours"):
        desk.store().check(measured(SCORES), AnsweredRun(simulated=False), broken)


def test_the_first_approval_writes_and_passes(desk: Desk) -> None:
    """What was approved, by whom, why and from which run stands in the file, and the finding says
    it.
    """
    finding = desk.approve(threshold=80.0)
    assert finding.verdict is Verdict.PASS
    assert (finding.test_id, finding.outcome) == (TEST_ID, SCORE)
    assert "there was no baseline before" in finding.sentence
    assert "Approved now by Jane Smith" in finding.notes[-1]
    written = body(desk)
    assert written["approval"]["justification"] == "reviewed 20 letters"
    assert written["approval"]["run_id"] == "2026-02-28-001"
    assert written["approval"]["previous_digest"] is None
    assert written["approval"]["simulated"] is False
    assert written["pass_count"] == 7
    assert written["fingerprints"]["models"] == ["gpt-4"]


def test_scores_that_held_are_approved_and_name_what_they_replace(desk: Desk) -> None:
    """The chain of approvals can be followed by their digests, in git."""
    desk.approve()
    before = body(desk)["digest"]
    finding = desk.approve(RISEN)
    assert finding.verdict is Verdict.PASS
    assert finding.details["baseline"]["written"] is True
    assert finding.details["baseline"]["digest"] == body(desk)["digest"] != before
    assert body(desk)["approval"]["previous_digest"] == before
    assert body(desk)["approval"]["regression"] is False
    assert desk.check(SCORES).verdict is Verdict.FAIL


def test_nothing_new_is_not_written_again(desk: Desk) -> None:
    """The approval that stands keeps its date and reason when a suite is approved around it; the
    same scores of another model are written, which ends the note about it."""
    desk.approve()
    before = desk.file.read_bytes()
    finding = desk.approve(policy=replace(APPROVE, justification="another reason"))
    assert finding.verdict is Verdict.PASS
    assert "Nothing was written" in finding.notes[-1]
    assert desk.file.read_bytes() == before
    upgraded = replace(LIVE, models=("gpt-5",))
    assert "gpt-4 to gpt-5" in desk.approve(fingerprints=upgraded).notes[-2]
    assert "gpt-4" not in str(desk.check(fingerprints=upgraded).notes)


def test_a_regression_is_refused_with_the_option_that_allows_it(
    desk: Desk, unchanged: Watch
) -> None:
    """It stays the failure that it is, with its table, and says how it could be approved."""
    desk.approve()
    unchanged(desk.file)
    finding = desk.approve(FALLEN)
    assert finding.verdict is Verdict.FAIL
    assert "worse than the approved baseline: overall 82.9 → 80.2" in finding.sentence
    assert "Approval refused: this is a regression. Mend" in finding.sentence
    assert "--fairness-approve-regression" in finding.sentence
    assert finding.pairs
    assert finding.details["baseline"]["written"] is False


def test_an_approved_regression_is_a_justified_flag(desk: Desk) -> None:
    """It is written, marked as a regression for ever, and no PASS: a FLAG with its justification."""
    desk.approve()
    finding = desk.approve(
        FALLEN, policy=replace(REGRESSION_TOO, justification="criteria were reworded")
    )
    assert finding.verdict is Verdict.FLAG
    assert finding.sentence.startswith("FLAG: worse than the approved baseline")
    assert finding.sentence.endswith("Approved all the same by Jane Smith.")
    assert finding.justification is not None
    assert finding.justification["reason"] == "criteria were reworded"
    assert finding.justification["approver"] == "Jane Smith"
    assert body(desk)["approval"]["regression"] is True
    assert desk.check(FALLEN).verdict is Verdict.PASS


HALF = summary([*SCORES, *[60.0] * 10])
BETTER = summary([*SCORES, *[95.0] * 10])


@pytest.mark.parametrize(
    ("scores", "options", "why"),
    [
        (summary(SCORES[:9]), {}, r"1 of the 10 .*'p09'.*--fairness-approve-regression"),
        (HALF, {}, r"INCONCLUSIVE and the overall score is worse \(71"),
        (BETTER, {"lower_is_worse": False}, "the overall score is worse"),
        (summary(refused=10), {}, r"refusals rose .*--fairness-approve-regression"),
    ],
    ids=["lost personas", "new ones that are worse", "the direction of the score", "refusals"],
)
def test_what_may_hide_a_regression_needs_permission(
    desk: Desk, unchanged: Watch, scores: ScoreSummary, options: dict[str, Any], why: str
) -> None:
    """A smaller run would approve a weaker yardstick, with nothing fallen; and hard cases that are
    refused now are no improvement."""
    desk.approve(**options)
    unchanged(desk.file)
    with pytest.raises(ApprovalRefusedError, match=why):
        desk.approve(scores, **options)


def test_a_matrix_may_shrink_with_permission_and_grow_without(desk: Desk) -> None:
    """Half of the personas are new: nothing can be compared, so an overall that is no lower goes
    unrefused.
    """
    desk.approve()
    assert desk.approve(summary(SCORES[:9]), policy=REGRESSION_TOO).verdict is Verdict.PASS
    assert len(body(desk)["personas"]) == 9
    desk.approve(policy=REGRESSION_TOO)
    assert desk.approve(BETTER).reason is Reason.OVERLAP
    assert len(body(desk)["personas"]) == 20


@pytest.mark.parametrize("approved", [False, True], ids=["first", "later"])
def test_unscored_replies_are_refused(desk: Desk, approved: bool) -> None:
    """Over 5 % without a score: no yardstick, whatever is allowed."""
    if approved:
        desk.approve()
    before = [path.read_bytes() for path in desk.files]
    with pytest.raises(ApprovalRefusedError, match="2 of 32 trials have no score"):
        desk.approve(summary(unscored=2), policy=REGRESSION_TOO)
    assert [path.read_bytes() for path in desk.files] == before


@pytest.mark.parametrize("reason", [Reason.INCOMPLETE, Reason.MIXED_MODELS])
def test_a_run_that_cannot_be_judged_is_refused(desk: Desk, reason: Reason) -> None:
    """Whatever the comparison found unfit about the run, permission for a regression does not mend
    it.
    """
    desk.approve()
    unfit = Finding(
        assertion="baseline", verdict=Verdict.INCONCLUSIVE, reason=reason, sentence="Not so."
    )
    with pytest.raises(ApprovalRefusedError, match=rf"{reason}.* no yardstick: Not so\."):
        desk.store(REGRESSION_TOO).check(
            measured(RISEN), AnsweredRun(simulated=False), lambda _: unfit
        )


def test_no_score_at_all_is_refused(desk: Desk) -> None:
    """An empty baseline would pass for ever."""
    with pytest.raises(ApprovalRefusedError, match="no persona has a score"):
        desk.approve(summary([]))
    assert desk.files == []


@pytest.mark.parametrize(
    ("policy", "environ", "unfinished", "reason"),
    [
        (ApprovalPolicy(approve=True), {}, 0, "--fairness-justification"),
        (APPROVE, {"CI": "1"}, 0, "--fairness-approve-in-ci"),
        (APPROVE, {}, 1, "never finished"),
    ],
    ids=["why", "ci", "unfinished"],
)
def test_a_refused_approval_writes_nothing(
    desk: Desk, policy: ApprovalPolicy, environ: dict[str, str], unfinished: int, reason: str
) -> None:
    """Neither a first baseline nor a folder for it."""
    desk.environ |= environ
    with pytest.raises(ApprovalRefusedError, match=reason):
        desk.approve(policy=policy, unfinished=unfinished)
    assert desk.files == []
    assert not (desk.rootdir / "baselines").exists()


@pytest.mark.parametrize(("approved", "judged"), [("simulated", "live"), ("live", "simulated")])
def test_simulated_and_live_never_judge_each_other(desk: Desk, approved: str, judged: str) -> None:
    """The file is marked, and the error says what each of the two is."""
    desk.approve(simulated=approved == "simulated")
    assert body(desk)["approval"]["simulated"] is (approved == "simulated")
    assert desk.check(simulated=approved == "simulated").verdict is Verdict.PASS
    with pytest.raises(
        BaselineError, match=f"comes from a {approved} endpoint and this run is {judged}"
    ):
        desk.check(simulated=judged == "simulated")


def test_live_replaces_simulated_without_comparing_and_not_the_other_way(desk: Desk) -> None:
    """Lower live scores are no regression from invented ones; evidence is not overwritten by
    invention, not even with every permission."""
    desk.approve(simulated=True)
    finding = desk.approve(FALLEN, simulated=False)
    assert finding.verdict is Verdict.PASS
    assert "simulated baseline was replaced" in finding.sentence
    assert body(desk)["approval"]["simulated"] is False
    with pytest.raises(ApprovalRefusedError, match=r"this run is simulated.*--fairness-endpoint"):
        desk.approve(RISEN, simulated=True, policy=replace(REGRESSION_TOO, approve_in_ci=True))
    assert body(desk)["approval"]["simulated"] is False


def test_a_replay_says_so(desk: Desk) -> None:
    """Approving recorded replies is possible, and recorded as what it is."""
    assert desk.approve(replayed=True).replayed
    assert body(desk)["approval"]["replayed"] is True


@pytest.mark.parametrize("approve", [False, True], ids=["compare", "approve"])
@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (('"mean": 66.0', '"mean": 50.0'), "changed after it was approved"),
        (('"schema": 2', '"schema": 3'), "schema 3"),
        (("}\n", "}\n>>>>>>> theirs\n"), "merge-conflict"),
        (("}\n", ""), "truncated"),
    ],
    ids=["edited", "schema", "conflict", "truncated"],
)
def test_they_are_neither_used_nor_replaced(
    desk: Desk, unchanged: Watch, approve: bool, edit: tuple[str, str], reason: str
) -> None:
    """An approval does not paper over a broken file: somebody has to look at it and remove it."""
    desk.approve()
    text = desk.file.read_text(encoding="utf-8")
    head, _, tail = text.rpartition(edit[0])
    desk.file.write_text(head + edit[1] + tail, encoding="utf-8")
    unchanged(desk.file)
    with pytest.raises(BaselineError, match=reason):
        desk.check(policy=REGRESSION_TOO if approve else None)


def test_the_copy_of_another_tests_baseline(desk: Desk) -> None:
    """A green file cannot be borrowed."""
    desk.approve()
    desk.file.rename(desk.file.with_name(baseline_name("t.py::other", SCORE)))
    with pytest.raises(BaselineError, match="cannot be copied from test to test"):
        desk.check(store=desk.store(test_id="t.py::other"))


def test_two_scores_and_two_tests_have_a_file_each(desk: Desk) -> None:
    """Ids that syrupy's own naming would make one stay two, and each is judged by its own."""
    for test_id in ("t.py::t[a/b]", "t.py::t[a:b]"):
        desk.approve(store=desk.store(APPROVE, test_id=test_id))
    desk.approve(FALLEN, score="other", store=desk.store(APPROVE, test_id="t.py::t[a:b]"))
    assert len(desk.files) == 3
    assert desk.check(store=desk.store(test_id="t.py::t[a:b]")).verdict is Verdict.PASS
    assert desk.check(FALLEN, store=desk.store(test_id="t.py::t[a/b]")).verdict is Verdict.FAIL


@pytest.mark.parametrize("dirname", ["baselines", "/root/baselines", "project/baselines"])
def test_a_folder_that_syrupy_cleans_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, dirname: str
) -> None:
    """``--snapshot-dirname baselines --snapshot-update`` would delete every baseline: better an
    error.
    """
    project = desk.rootdir / "project"
    dirname = str(project / "baselines") if dirname.startswith("/") else dirname
    storage = syrupy.extensions.base.SnapshotCollectionStorage
    monkeypatch.setattr(storage, "snapshot_dirname", dirname)
    with pytest.raises(BaselineError, match="--snapshot-dirname"):
        desk.approve(store=desk.store(APPROVE, rootdir=project, root=project / "baselines"))
    assert not project.exists()


# ---------------------------------------------------------------- letters


def letters(
    *, age: dict[str, float] | None = None, terms: dict[str, tuple[str, ...]] | None = None
) -> ScoreSummary:
    """Forty personas with full scores, but for the parts and the warnings given."""
    age, terms = age or {}, terms or {}
    keys = [f"p{at:02}" for at in range(40)]
    personas = {
        key: PersonaScore(
            mean=age.get(key, 100.0),
            n=3,
            parts={"age": age[key]} if key in age else {},
            warnings=terms.get(key, ()),
        )
        for key in keys
    }
    overall = sum(one.mean for one in personas.values()) / len(personas)
    return ScoreSummary(
        personas=personas, overall=overall, scale="percent", parts=("age", "religion")
    )


def test_a_category_of_warnings_is_a_scope_of_its_own() -> None:
    """What was taken off for age alone is compared, in the raw family; a category without warnings
    costs nothing.
    """
    finding = compare_baseline(letters(), letters(age={f"p{at:02}": 85.0 for at in range(25)}))
    scopes = {pair.metric: pair for pair in finding.pairs}
    assert set(scopes) == {"overall", "age warnings"}
    assert scopes["age warnings"].verdict is Verdict.FAIL
    assert scopes["age warnings"].statistics["now"] == pytest.approx(100 - 15 * 25 / 40)
    assert regressions(finding)[-1] == "Age warnings: 90.62 (baseline: 100.0) ↓ 9.38 points"


def test_new_patterns_are_approved_with_permission_alone(desk: Desk) -> None:
    """Scores that hold are not enough: a term that the approved letters have nowhere is looked at
    first.
    """
    held = {"p00": ("low: seasoned",)}
    desk.approve(letters(terms=held))
    assert desk.approve(letters(terms={"p03": ("low: seasoned",)})).verdict is Verdict.PASS
    with pytest.raises(
        ApprovalRefusedError, match=r"1 warnings of kinds .* \(high: overqualified\)"
    ):
        desk.approve(letters(terms=held | {"p01": ("high: overqualified",)}))
    allowed = ApprovalPolicy(approve=True, justification="reviewed", approve_regression=True)
    desk.approve(letters(terms=held | {"p01": ("high: overqualified",)}), policy=allowed)
    document = BaselineDocument.from_bytes(desk.file.read_bytes(), where="b.json")
    assert (document.version, document.approval and document.approval.regression) == (
        "v1.2.0",
        True,
    )
    assert document.counts() == {"pass": None, "warning": None, "failure": None}
    entries = (desk.rootdir / "baselines" / "CHANGELOG.md").read_text("utf-8")
    assert "## Baseline Update: v1.1.0 → v1.2.0" in entries
    assert "- New warnings: high: overqualified" in entries
    assert entries.count("> reviewed") == 3
