"""The public assertions: each analyses a table, hands the finding to the running test and acts on
its verdict.

The ``analyze_…`` twin of each takes the same arguments, which it documents, and returns the same
finding without raising. All work on any DataFrame, inside a test or not.
"""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pytest_fairness.errors import (
    BaselineError,
    BudgetError,
    EndpointError,
    InconclusiveWarning,
    StoreError,
    UsageError,
)
from pytest_fairness.model import ALARMS, Finding, Verdict
from pytest_fairness.running_test import Assertion, Policy, TestContext, current_test
from pytest_fairness.words import listed

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.reports.judged_tables import JudgedTable
    from pytest_fairness.runs.judgements import Judgement

#: A column, the name of a scorer, or a callable on the reply.
Outcome: TypeAlias = "str | Callable[..., Any]"


class FairnessFailure(AssertionError):
    """An assertion did not hold. ``finding`` is the whole comparison."""

    __module__ = (
        "pytest_fairness"  # the public name, which is what pytest prints before the sentence
    )

    def __init__(self, message: str, finding: Finding) -> None:
        super().__init__(message)
        self.finding = finding


def assert_no_disparity(
    frame: pd.DataFrame,
    outcome: Outcome | Sequence[Outcome],
    by: str | Sequence[str],
    *,
    cluster: str | None = "name",
    block: str | None = "template",
    kind: str = "auto",
    alpha: float = 0.05,
    correction: str = "bonferroni",
    min_raw_diff: float | None = None,
    min_raw_ratio: float | None = None,
    lower_is_worse: bool | None = None,
    favourable: object = None,
    room: bool = False,
    scorers: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Finding:
    """Assert that *outcome* does not depend on the group in column *by*.

    The arguments are those of :func:`pytest_fairness.analyze_disparity`; a test marked
    ``fairness(room=True)`` has
    *room*. Returns the finding; raises FairnessFailure where the assertion does not hold and
    FrameError for a table of the wrong shape. A list of outcomes is one family: each is judged at
    alpha divided by their number and reported by itself; the worst finding is returned, or raised.
    """
    arguments = dict(locals())
    __tracebackhide__ = True
    test = current_test()
    if test is not None and test.room:
        arguments["room"] = True
    if isinstance(outcome, (list, tuple)):
        return _assert_each(arguments)
    return _assert("disparity", arguments)


def assert_four_fifths(
    frame: pd.DataFrame,
    outcome: Outcome,
    by: str | Sequence[str],
    *,
    cluster: str | None = "name",
    block: str | None = "template",
    favourable: object = True,
    reference: str | None = None,
    alpha: float = 0.05,
    correction: str = "bonferroni",
    practical_ratio: float = 0.9,
    bare_ratio: bool = False,
    scorers: Mapping[str, Any] | None = None,
) -> Finding:
    """Assert that no group's favourable rate is below four fifths of the highest (29 CFR
    1607.4(D)).

    The arguments are those of :func:`pytest_fairness.analyze_four_fifths`. Returns and raises as
    :func:`assert_no_disparity`.
    """
    arguments = dict(locals())
    __tracebackhide__ = True
    return _assert("four_fifths", arguments)


def assert_no_preference(
    frame: pd.DataFrame,
    by: str = "group",
    *,
    first: str = "first",
    second: str = "second",
    chosen: str = "chosen",
    neither: str = "neither",
    cluster: str | tuple[str, str] | None = "name",
    block: str | Sequence[str] | None = "template",
    trial: str | None = None,
    rank: str | None = None,
    position: str | None = None,
    alpha: float = 0.05,
    correction: str = "bonferroni",
) -> Finding:
    """Assert that among equal candidates the choice does not follow the group.

    The arguments are those of :func:`pytest_fairness.analyze_preference`. Returns and raises as
    :func:`assert_no_disparity`.
    """
    arguments = dict(locals())
    __tracebackhide__ = True
    return _assert("preference", arguments)


def assert_equivalent(
    frame: pd.DataFrame,
    outcome: Outcome,
    by: str | Sequence[str],
    *,
    margin: float,
    unit: str = "outcome",
    cluster: str | None = "name",
    block: str | None = "template",
    kind: str = "auto",
    alpha: float = 0.05,
    correction: str = "bonferroni",
    lower_is_worse: bool | None = None,
    scorers: Mapping[str, Any] | None = None,
) -> Finding:
    """Assert that every two groups differ by less than *margin* on *outcome*: shown, not merely not
    refuted.

    The arguments are those of :func:`pytest_fairness.analyze_equivalence`. Returns and raises as
    :func:`assert_no_disparity`.
    """
    arguments = dict(locals())
    __tracebackhide__ = True
    return _assert("equivalence", arguments)


def assert_arm_reduces_disparity(
    frame: pd.DataFrame,
    outcome: Outcome | None = None,
    *,
    treated: str,
    control: str,
    by: str = "group",
    classes: Mapping[str, str] | None = None,
    group: str = "group",
    arm: str = "arm",
    placebo: str | None = None,
    cluster: str | tuple[str, str] | None = "name",
    block: str | Sequence[str] | None = "template",
    kind: str = "auto",
    first: str = "first",
    second: str = "second",
    chosen: str = "chosen",
    neither: str = "neither",
    alpha: float = 0.05,
    correction: str = "bonferroni",
    scorers: Mapping[str, Any] | None = None,
) -> Finding:
    """Assert that arm *treated* shows less disparity between the groups of *by* than arm *control*.

    The arguments are those of :func:`pytest_fairness.analyze_arms`. Returns and raises as
    :func:`assert_no_disparity`.
    """
    arguments = dict(locals())
    __tracebackhide__ = True
    return _assert("arm_contrast", arguments)


def assert_baseline(
    frame: pd.DataFrame,
    score: Outcome,
    *,
    persona: str | None = None,
    categories: Sequence[str] | None = None,
    threshold: float | None = None,
    warnings: str | None = None,
    alpha: float = 0.005,
    margin_overall: float | None = None,
    margin_category: float | None = None,
) -> Finding:
    """Assert that *score* has not dropped since its baseline was approved.

    Scores are compared persona by persona: ``persona`` is the column that names them, by default
    ``persona`` or, in a grid without personas, ``name``. ``categories`` are the columns whose
    groups are gated beside the overall score, by default the protected classes of the grid.
    ``threshold`` is the score from which a persona passes, kept with the baseline; passes lost are
    tested too. ``warnings`` is the column that holds each trial's warnings: kinds that the baseline
    lacks are flagged, critical ones fail. ``alpha`` and the margins are those of
    :func:`pytest_fairness.compare_baseline`.

    With ``--fairness-approve`` the scores of this run are written instead, under the rules of
    approval. Returns the finding; raises FairnessFailure for a regression, and BaselineError where
    there is no baseline, or none that can be trusted. Needs a running test: outside pytest use
    :func:`pytest_fairness.compare_baseline`.
    """
    arguments = dict(locals())
    __tracebackhide__ = True
    from pytest_fairness.analysis.baseline import comparison, first_approval, scores_of
    from pytest_fairness.baselines.document import Fingerprints, fingerprint
    from pytest_fairness.runs.judgements import Judgement
    from pytest_fairness.scorers import outcome_of
    from pytest_fairness.trials_frame import UNFINISHED, design_of

    test = current_test()
    if test is None or test.baseline is None:
        raise UsageError(
            "assert_baseline needs a running pytest test; outside one, use compare_baseline"
        )
    if test.rehearsal is not None:
        return test.rehearsal.take("baseline", arguments)
    outcome = outcome_of(frame, score)
    design = design_of(frame)
    summary = scores_of(frame, outcome, arguments)
    try:
        finding: Finding = test.baseline().check(
            outcome.name,
            summary,
            lambda approved: comparison(approved, summary, frame, outcome, arguments),
            fingerprints=Fingerprints(
                endpoint=design.endpoint,
                models=tuple(sorted(filter(None, set(design.models(frame))))),
                identity=fingerprint(design.identity),
                template=fingerprint(design.templates),
                scorer=outcome.scorer.fingerprint if outcome.scorer is not None else "",
                design=fingerprint(design.digest),
            ),
            simulated=bool(frame["simulated"].any()) if "simulated" in frame else False,
            replayed=bool(frame["replayed"].any()) if "replayed" in frame else False,
            unfinished=int(frame["status"].isin(UNFINISHED).sum()) if "status" in frame else 0,
            threshold=threshold,
            lower_is_worse=outcome.lower_is_worse,
        )
    except BaselineError as error:
        # Raised anew here, so that pytest shows the line of the test and not the inside of the
        # store.
        raise type(error)(str(error)) from None
    test.keep(Judgement.of("baseline", arguments, frame, outcome, changed=test.changed(frame)))
    if not finding.pairs:
        finding = first_approval(finding, summary, frame)
    test.found.append(finding)
    return conclude(finding)


def _assert_each(arguments: dict[str, Any]) -> Finding:
    """The worst of the findings on several outcomes, each at its share of the level; all are
    reported before one is raised."""
    __tracebackhide__ = True
    from pytest_fairness.analysis.several_outcomes import levels, shared_by

    outcomes = arguments["outcome"]
    findings = list[Finding]()
    failures = list[FairnessFailure]()
    for outcome, level in levels(outcomes, arguments["alpha"], arguments):
        given = {**arguments, "outcome": outcome, "alpha": level}
        try:
            findings.append(
                _assert("disparity", given, lambda finding: shared_by(finding, outcomes))
            )
        except FairnessFailure as failure:
            failures.append(failure)
    if failures:
        worst = max(failures, key=lambda failure: failure.finding.verdict.severity)
        raise FairnessFailure("\n\n".join(map(str, failures)), worst.finding)
    return max(findings, key=lambda finding: finding.verdict.severity)


def _assert(
    analysis: str,
    arguments: dict[str, Any],
    noted: Callable[[Finding], Finding] = lambda finding: finding,
) -> Finding:
    """The finding of *analysis* by the *arguments* of the assertion, which are its own, after what
    the running test's policy asks for, *noted* and acted upon."""
    __tracebackhide__ = True
    from pytest_fairness.analysis.false_alarms import chance

    test = current_test()
    if test is not None and test.rehearsal is not None:
        return test.rehearsal.take(analysis, arguments)
    try:
        finding, basis = _judged(analysis, arguments)
    except UsageError as error:
        # From here on, so that Python and pytest show the call and not the inside of the analysis.
        raise error.with_traceback(None) from None
    if test is None:
        return conclude(noted(finding), basis)
    alpha = finding.family.get("alpha")
    if test.policy.confirm and finding.verdict in ALARMS:
        assertion = Assertion(analysis=analysis, arguments=arguments, before=tuple(test.found))
        finding, basis = _second_look(finding, basis, assertion, test)
    if test.policy.sensitivity and finding.verdict is Verdict.PASS:
        from pytest_fairness.analysis.sensitivity import sensitivity_of, with_sensitivity

        finding = with_sensitivity(finding, sensitivity_of(analysis, **arguments))
    if isinstance(alpha, float):  # a bare ratio has none, and no bound on its false alarms
        false_alarm = chance(alpha, confirmed=test.policy.confirm and test.confirmable())
        finding = replace(finding, family={**finding.family, "false_alarm": false_alarm})
    test.keep(basis.record(test.changed(basis.frame)))
    finding = noted(finding)
    test.found.append(finding)
    return conclude(finding, basis)


class _Basis(NamedTuple):
    """What a finding was judged from: the *arguments* as the assertion was given them, the table
    and its outcome.
    """

    analysis: str
    arguments: Mapping[str, Any]
    frame: pd.DataFrame
    outcome: Any
    about: Mapping[str, Any]

    def record(self, changed: tuple[str, ...]) -> Judgement:
        """The judgement, with the columns that the test has *changed* in the table."""
        from pytest_fairness.runs.judgements import Judgement

        return Judgement.of(
            self.analysis, self.arguments, self.frame, self.outcome, changed=changed, **self.about
        )

    def judged(self) -> JudgedTable:
        from pytest_fairness.reports.judged_tables import JudgedTable

        if self.outcome is None:
            outcome = self.arguments.get("outcome")
        else:
            outcome = self.outcome
        return JudgedTable(self.analysis, self.frame, outcome, self.arguments)


def _judged(
    analysis: str,
    arguments: Mapping[str, Any],
    changed: Mapping[str, Any] | None = None,
    **about: Any,
) -> tuple[Finding, _Basis]:
    """The finding of *analysis* by *arguments*, some *changed*, and what it was judged from."""
    from pytest_fairness.analysis import analysis_called
    from pytest_fairness.scorers import outcome_of
    from pytest_fairness.statistics.arrays import require_frame

    analyze = analysis_called(analysis)
    given = {**arguments, **(changed or {})}
    outcome = None
    if (
        current_test() is not None and given.get("outcome") is not None
    ):  # read once, for the analysis and for the record
        outcome = given["outcome"] = outcome_of(
            require_frame(given["frame"]), given["outcome"], given["scorers"]
        )
    return analyze(**given), _Basis(analysis, arguments, given["frame"], outcome, about)


def _second_look(
    finding: Finding, basis: _Basis, assertion: Assertion, test: TestContext
) -> tuple[Finding, _Basis]:
    """An alarm that nothing justifies, judged again on this sample and a fresh one together."""
    from pytest_fairness.analysis.confirmation import (
        alarm_of,
        confirmed,
        together,
        unconfirmed,
        unread_groups,
    )

    if finding.verdict is Verdict.FLAG and test.justification(finding) is not None:
        return finding, basis  # it does not fail the test, so there is nothing to pay for
    if test.fresh_sample is None:
        why = (
            "a table is judged as it is; only a test that asks for the trials of a grid can ask "
            "more"
        )
        return unconfirmed(finding, why), basis
    analysis = assertion.analysis
    arguments = assertion.arguments
    frame = arguments["frame"]
    try:
        sample = test.fresh_sample(assertion)
        changed = {**alarm_of(analysis, arguments["alpha"]), "frame": together(frame, sample)}
        both, basis_of_both = _judged(
            analysis, arguments, changed, first=len(frame), about=sample.about
        )
        if unread := unread_groups(finding, both):
            raise UsageError(f"nothing could be read of the second sample for {listed(unread)}")
    except (UsageError, EndpointError, BudgetError, StoreError) as error:
        return unconfirmed(finding, str(error)), basis
    return confirmed(finding, both, sample), basis_of_both


def conclude(finding: Finding, basis: _Basis | None = None) -> Finding:
    """Do with *finding* what its verdict asks for, under the policy of the running test; two
    matched replies of its
    *basis* stand in the message of a FLAG or FAIL.

    PASS returns. FAIL raises. FLAG raises unless a documented justification stands behind it.
    INCONCLUSIVE because the data cannot be used (too few, unscored, ragged, incomplete) raises, or
    under ``--fairness-smoke`` leaves it to the plugin to skip the test; any other INCONCLUSIVE
    warns, and raises under ``--fairness-require-conclusive``.
    """
    __tracebackhide__ = True
    test = current_test()
    if test is not None and test.rehearsal is not None:
        return finding
    if test is not None:
        policy = test.policy
    else:
        policy = Policy()
    if test is not None:
        if finding.verdict is Verdict.FLAG and finding.justification is None:
            finding = replace(finding, justification=test.justification(finding))
        finding = replace(finding, notes=(*finding.notes, *test.notes(finding)))
        test.emit(finding)
    undecided = finding.verdict is Verdict.INCONCLUSIVE
    fails = finding.verdict is Verdict.FAIL or (
        finding.verdict is Verdict.FLAG and finding.justification is None
    )
    if undecided:
        if unusable(finding):
            fails = not policy.smoke
        else:
            fails = policy.require_conclusive
    if fails:
        from pytest_fairness.reports.plain_text import finding_text

        judged = None
        if basis is not None and finding.verdict in ALARMS:
            judged = basis.judged()
        text = finding_text(finding, judged)
        raise FairnessFailure(text + (_FLAGGED if finding.verdict is Verdict.FLAG else ""), finding)
    if undecided and not unusable(finding):
        python_warnings.warn(finding.sentence, InconclusiveWarning, stacklevel=4)
    return finding


def unusable(finding: Finding) -> bool:
    """Return whether an INCONCLUSIVE *finding* is so because its data cannot be used, or there was
    nothing to compare.
    """
    return finding.reason is None or finding.reason.unusable


_FLAGGED = """

A FLAG needs a documented justification. Give one where it will be read:
  @pytest.mark.fairness(justification={"reason": "…", "approver": "…", "date": "2026-01-31", "expiry": "2026-07-31"})
or an entry for this test in justifications.yaml with the same keys."""
