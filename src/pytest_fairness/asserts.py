"""The public assertions: each analyses a table, hands the finding to the running test and acts on
its verdict.

The ``analyze_…`` twin of each takes the same arguments, which it documents, and returns the same
finding without raising. All work on any DataFrame, inside a test or not.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings as python_warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

from pytest_fairness import analysis
from pytest_fairness.errors import (
    BaselineError,
    BudgetError,
    EndpointError,
    InconclusiveWarning,
    NeverAskedError,
    StageUnfinished,
    StoreError,
    UsageError,
    of_trials,
)
from pytest_fairness.model import ALARMS, JSON, Finding, OutcomeKind, Verdict
from pytest_fairness.running_test import Assertion, Policy, TestContext, current_test

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.analysis.looks import Look, Looking, LookPlan
    from pytest_fairness.baselines.approval import AnsweredRun
    from pytest_fairness.baselines.document import Fingerprints
    from pytest_fairness.reports.judged_tables import JudgedTable
    from pytest_fairness.runs.judgements import Judgement
    from pytest_fairness.scorers.outcome import Outcome

P = ParamSpec("P")
#: What an assertion keeps of the function that declares it; its parameters are the analysis's.
#: Columns that are read off a choice.
_CHOICES = ("chosen", "rank")
_NAMES = ("__module__", "__name__", "__qualname__", "__doc__")


class FairnessFailure(AssertionError):
    """An assertion did not hold. ``finding`` is the whole comparison."""

    # The public name, which is what pytest prints before the sentence.
    __module__ = "pytest_fairness"

    def __init__(self, message: str, finding: Finding) -> None:
        super().__init__(message)
        self.finding = finding


class _DeferredAnalysis:
    """An analysis as its *assertion* shows it, imported when the assertion is called, or when
    somebody asks for its signature: a test module that is collected must not pay for pandas.

    A parameter that begins with an underscore is for the looks, and no assertion takes it.
    """

    def __init__(
        self,
        analysis: Callable[[], Callable[..., Any]],
        assertion: Callable[[dict[str, Any]], Finding],
    ) -> None:
        self._analysis = analysis
        self._assertion = assertion
        functools.update_wrapper(self, assertion)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._analysis()(*arguments, **keywords)

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(self._analysis())
        parameters = signature.parameters.values()
        public = [parameter for parameter in parameters if not parameter.name.startswith("_")]
        # Of an analysis that gives several findings, the assertion returns the worst.
        return signature.replace(parameters=public, return_annotation="Finding")

    def bound(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return every argument of the analysis by its name. Raises TypeError as Python does."""
        __tracebackhide__ = True
        name = self._assertion.__name__
        signature = self.__signature__
        for keyword in keywords:  # a misspelt name before the one that is missing for it
            if keyword not in signature.parameters:
                raise TypeError(f"{name}() got an unexpected keyword argument {keyword!r}")
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        bound.apply_defaults()
        return bound.arguments


def _asserting(
    analysis: Callable[[], Callable[P, Any]],
) -> Callable[[Callable[[dict[str, Any]], Finding]], Callable[P, Finding]]:
    """Give an assertion the parameters of *analysis*: for a type checker by the ParamSpec, for
    ``inspect``, ``help`` and the call by its signature. The decorated function is handed them by
    name.
    """

    def decorate(assertion: Callable[[dict[str, Any]], Finding]) -> Callable[P, Finding]:
        deferred = _DeferredAnalysis(analysis, assertion)

        # What is wrapped is the analysis: inspect reads the signature there.
        @functools.wraps(deferred, assigned=_NAMES, updated=())
        def call(*arguments: P.args, **keywords: P.kwargs) -> Finding:
            __tracebackhide__ = True
            return assertion(deferred.bound(arguments, keywords))

        return call

    return decorate


@_asserting(lambda: analysis.analyze_disparity)
def assert_no_disparity(arguments: dict[str, Any]) -> Finding:
    """Assert that *outcome* does not depend on the group in column *by*.

    The arguments are those of :func:`pytest_fairness.analyze_disparity`; a test marked
    ``fairness(room=True)`` has *room*. Returns the finding; raises FairnessFailure where the
    assertion does not hold and FrameError for a table of the wrong shape. A list of outcomes is one
    family: each is judged at alpha divided by their number and reported by itself; the worst
    finding is returned, or raised. So are the plain figure and that *within* strata, each at half of
    alpha.
    """
    __tracebackhide__ = True
    test = current_test()
    if test is not None and test.room:
        arguments["room"] = True
    if isinstance(arguments["outcome"], (list, tuple)):
        return _assert_each(arguments)
    return _assert_within("disparity", arguments)


@_asserting(lambda: analysis.analyze_four_fifths)
def assert_four_fifths(arguments: dict[str, Any]) -> Finding:
    """Assert that no group's favourable rate is below four fifths of the highest (29 CFR
    1607.4(D)).

    The arguments are those of :func:`pytest_fairness.analyze_four_fifths`. Returns and raises as
    :func:`assert_no_disparity`.
    """
    __tracebackhide__ = True
    return _assert_within("four_fifths", arguments)


@_asserting(lambda: analysis.analyze_error_rates)
def assert_equal_error_rates(arguments: dict[str, Any]) -> Finding:
    """Assert that a decision errs as often about each group of column *by*, and can be trusted as
    far, where the column *truth* says what was right; and that its *score* means the same.

    The arguments are those of :func:`pytest_fairness.analyze_error_rates`. Every rate is reported
    by itself, all as one family; the worst finding is returned, or raised with the messages of all
    that do not hold. Where the groups differ in what is true, some of them have to differ, and the
    findings say which: who means to assert one of them filters the table, and asserts that alone.
    Raises as :func:`assert_no_disparity`.
    """
    __tracebackhide__ = True
    return _assert_rates(arguments)


@_asserting(lambda: analysis.analyze_preference)
def assert_no_preference(arguments: dict[str, Any]) -> Finding:
    """Assert that among equal candidates the choice does not follow the group.

    The arguments are those of :func:`pytest_fairness.analyze_preference`. Returns and raises as
    :func:`assert_no_disparity`.
    """
    __tracebackhide__ = True
    return _assert("preference", arguments)


@_asserting(lambda: analysis.analyze_equivalence)
def assert_equivalent(arguments: dict[str, Any]) -> Finding:
    """Assert that every two groups differ by less than *margin* on *outcome*: shown, not merely not
    refuted.

    The arguments are those of :func:`pytest_fairness.analyze_equivalence`. Returns and raises as
    :func:`assert_no_disparity`.
    """
    __tracebackhide__ = True
    return _assert_within("equivalence", arguments)


@_asserting(lambda: analysis.analyze_arms)
def assert_arm_reduces_disparity(arguments: dict[str, Any]) -> Finding:
    """Assert that arm *treated* shows less disparity between the groups of *by* than arm *control*.

    The arguments are those of :func:`pytest_fairness.analyze_arms`. Returns and raises as
    :func:`assert_no_disparity`.
    """
    __tracebackhide__ = True
    return _assert("arm_contrast", arguments)


def assert_baseline(
    frame: pd.DataFrame,
    score: str | Callable[..., Any],
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

    Of a grid that is asked in stages it reads the base design, whatever the looks of the test come
    to. With ``--fairness-approve`` the scores of this run are written instead, under the rules of
    approval. Returns the finding; raises FairnessFailure for a regression, and BaselineError where
    there is no baseline, or none that can be trusted. Needs a running test: outside pytest use
    :func:`pytest_fairness.compare_baseline`.
    """
    __tracebackhide__ = True
    arguments: dict[str, Any] = {
        "frame": frame,
        "score": score,
        "persona": persona,
        "categories": categories,
        "threshold": threshold,
        "warnings": warnings,
        "alpha": alpha,
        "margin_overall": margin_overall,
        "margin_category": margin_category,
    }
    from pytest_fairness.analysis.baseline import comparison, first_approval, scores_of
    from pytest_fairness.baselines.document import MeasuredScore
    from pytest_fairness.runs.judgements import Judgement
    from pytest_fairness.scorers import outcome_of

    test = current_test()
    if test is None or test.baseline is None:
        raise UsageError(
            "assert_baseline needs a running pytest test; outside one, use compare_baseline"
        )
    if test.rehearsal is not None:
        return test.rehearsal.take("baseline", arguments)
    if test.staged is not None:
        assertion = Assertion(analysis="baseline", arguments=arguments, before=tuple(test.findings))
        frame = arguments["frame"] = test.staged.of_base(assertion)
    outcome = outcome_of(frame, score)
    summary = scores_of(frame, outcome, arguments)
    measured = MeasuredScore(
        score=outcome.name,
        summary=summary,
        fingerprints=_fingerprints(frame, outcome),
        threshold=threshold,
        lower_is_worse=outcome.lower_is_worse,
    )
    try:
        finding: Finding = test.baseline().check(
            measured,
            _answered(frame),
            lambda approved: comparison(approved, summary, frame, outcome, arguments),
        )
    except BaselineError as error:
        # Raised anew here, so that pytest shows the line of the test and not the inside of the
        # store.
        raise type(error)(str(error)) from None
    test.keep(Judgement.of("baseline", arguments, frame, outcome, changed=test.changed(frame)))
    if not finding.pairs:
        finding = first_approval(finding, summary, frame)
    test.findings.append(finding)
    return conclude(finding)


def _fingerprints(frame: pd.DataFrame, outcome: Outcome) -> Fingerprints:
    """Return what a baseline keeps of the origin of its scores: what was asked and who answered,
    and what read the replies.
    """
    from pytest_fairness.baselines.document import BY_MODEL, Fingerprints, fingerprint
    from pytest_fairness.scorers.outcome import fingerprint_of
    from pytest_fairness.trials_frame import design_of

    design = design_of(frame)
    scorer = fingerprint_of(outcome)
    if outcome.reader:
        scorer = f"{BY_MODEL}{fingerprint([scorer, outcome.reader['identity']])}"
    return Fingerprints(
        endpoint=design.endpoint,
        models=tuple(sorted(filter(None, set(design.models(frame))))),
        identity=fingerprint(design.identity),
        template=fingerprint(design.templates),
        scorer=scorer,
        design=fingerprint(design.digest),
    )


def _answered(frame: pd.DataFrame) -> AnsweredRun:
    """Return whether the answers of *frame* are real and whole."""
    from pytest_fairness.baselines.approval import AnsweredRun
    from pytest_fairness.trials_frame import UNFINISHED

    unfinished = 0
    if "status" in frame:
        unfinished = int(frame["status"].isin(UNFINISHED).sum())
    return AnsweredRun(
        simulated="simulated" in frame and bool(frame["simulated"].any()),
        replayed="replayed" in frame and bool(frame["replayed"].any()),
        unfinished=unfinished,
    )


def _assert_each(arguments: dict[str, Any]) -> Finding:
    """Return the worst of the findings on several outcomes, each judged at its share of the level;
    all are reported before one is raised.
    """
    __tracebackhide__ = True
    from pytest_fairness.analysis.several_outcomes import levels, shared_by

    outcomes = arguments["outcome"]
    if arguments["within"] is not None:
        raise UsageError("within= compares one outcome twice: assert each outcome by itself")
    every = levels(outcomes, arguments["alpha"], arguments)
    place = _place()
    return _worst(
        functools.partial(
            _assert,
            "disparity",
            {**arguments, "outcome": outcome, "alpha": level},
            lambda finding: shared_by(finding, outcomes),
            place=place,
            share=1 / len(every),
        )
        for outcome, level in every
    )


def _assert_within(name: str, arguments: dict[str, Any]) -> Finding:
    """Return the finding of the analysis *name*; where it is also made *within* strata, the worse
    of the finding on the table as it is and that within strata, each judged at half of the level: both
    are reported before one is raised.
    """
    __tracebackhide__ = True
    from pytest_fairness.analysis.parts import BINS
    from pytest_fairness.analysis.strata import in_one_family, table_of_strata
    from pytest_fairness.statistics.arrays import column_names

    test = current_test()
    within = arguments["within"]
    if within is None:
        return _assert(name, arguments)
    if test is not None and test.staged is not None:
        raise UsageError(of_trials("within", within))
    columns = column_names(within)
    names = ("frame", "outcome", "by", "cluster", "block", "each")
    table, outcome, by, cluster, block, each = map(arguments.__getitem__, names)
    try:
        frame = table_of_strata(table, outcome, by, columns, cluster, block, each)
        given = {**arguments, "frame": frame, "alpha": arguments["alpha"] / 2}
        plain, basis = _judged_once(name, {**given, "within": None, "bins": BINS})
        of_strata = {**given, "analysis": name}
        stratified, basis_of_strata = _judged_once("strata", of_strata)
    except UsageError as error:
        raise error.with_traceback(None) from None
    findings = in_one_family(plain, stratified, columns)
    concluded = zip(findings, (basis, basis_of_strata), strict=True)
    return _worst(functools.partial(_concluded, *judged) for judged in concluded)


def _assert_rates(arguments: dict[str, Any]) -> Finding:
    """Return the worst of the findings on error rates, each judged at its share of the level; all
    are reported before one is raised.
    """
    __tracebackhide__ = True
    from pytest_fairness.analysis.error_rates import findings_by_rate, table_of_truth
    from pytest_fairness.scorers import outcome_of

    test = current_test()
    if test is not None and test.staged is not None:
        raise UsageError(of_trials("truth", arguments["truth"]))
    try:
        outcome = arguments.pop("outcome")
        frame = table_of_truth(arguments.pop("frame"), outcome, **arguments)
        read = outcome_of(frame, outcome)
        findings = findings_by_rate(frame, read, **arguments)
    except UsageError as error:
        raise error.with_traceback(None) from None
    concluded = []
    for rate, finding in findings:
        given = {**arguments, "outcome": read.name, **rate}
        concluded.append((finding, _Basis("error_rates", given, frame, read, {})))
    return _worst(functools.partial(_concluded, *judged) for judged in concluded)


def _worst(assertions: Iterable[Callable[[], Finding]]) -> Finding:
    """Return the worst finding of several *assertions*, once all are made. Raises FairnessFailure
    with the messages of all that do not hold.
    """
    __tracebackhide__ = True
    findings = list[Finding]()
    failures = list[FairnessFailure]()
    for assertion in assertions:
        try:
            findings.append(assertion())
        except FairnessFailure as failure:
            failures.append(failure)
    if failures:
        worst = max(failures, key=lambda failure: failure.finding.verdict.severity)
        raise FairnessFailure("\n\n".join(map(str, failures)), worst.finding)
    return max(findings, key=lambda finding: finding.verdict.severity)


def _place() -> int:
    """Return the place of the next assertion among those of the running test, from 0."""
    test = current_test()
    if test is None:
        return 0
    return len(test.findings)


def _assert(
    name: str,
    arguments: dict[str, Any],
    noted: Callable[[Finding], Finding] = lambda finding: finding,
    *,
    place: int | None = None,
    share: float = 1.0,
) -> Finding:
    """Return the finding of the analysis *name* by the *arguments* of the assertion, *noted* and
    acted upon; of a test that asks for trials, look by look.

    The assertion may spend a *share* of what the one in *place* may on red about a fair system.
    """
    __tracebackhide__ = True
    test = current_test()
    if test is not None and test.rehearsal is not None:
        return test.rehearsal.take(name, arguments)
    if place is None:
        place = _place()
    try:
        if test is None or test.staged is None:
            finding, basis = _judged_once(name, arguments)
        else:
            assertion = Assertion(analysis=name, arguments=arguments, before=tuple(test.findings))
            budget = share * test.red(place, arguments["alpha"] / share)
            finding, basis = _judged_by_looks(assertion, test, budget)
    except UsageError as error:
        # From here on, so that Python and pytest show the call and not the inside of the analysis.
        raise error.with_traceback(None) from None
    return _concluded(finding, basis, noted)


def _concluded(
    finding: Finding,
    basis: _Basis,
    noted: Callable[[Finding], Finding] = lambda finding: finding,
) -> Finding:
    """Return *finding*, recorded with its *basis* in the running test, *noted* and acted upon."""
    __tracebackhide__ = True
    test = current_test()
    finding = _with_reader(finding, basis)
    if test is not None:
        finding = _under_policy(finding, basis, test)
        test.keep(basis.record(test.changed(basis.frame)))
    finding = noted(finding)
    if test is not None:
        test.findings.append(finding)
    return conclude(finding, basis)


def _with_reader(finding: Finding, basis: _Basis) -> Finding:
    """Return *finding* with what read its replies, and what is known of the model that read some."""
    outcome = basis.outcome
    if outcome is None or outcome.name in _CHOICES:
        return _with_reader_of_choices(finding, basis)
    if outcome.read_by is None:
        return finding
    from pytest_fairness.analysis.readers import (
        CORRECTED,
        person_notes,
        read_by_group,
        reader_notes,
    )

    details = dict(finding.details)
    details["read_by"] = read_by_group(outcome.read_by, basis.frame, basis.arguments.get("by"))
    notes = finding.notes
    if outcome.persons:
        details["persons"] = dict(outcome.persons)
        notes = (*notes, *person_notes(outcome.persons, corrects=basis.analysis in CORRECTED))
    if outcome.reader:
        details["reader"] = dict(outcome.reader)
        notes = (*notes, *reader_notes(outcome.reader))
    return replace(finding, notes=notes, details=details)


def _with_reader_of_choices(finding: Finding, basis: _Basis) -> Finding:
    """Return *finding* with what read its choices, where their form was asked for."""
    from pytest_fairness.analysis.readers import choices_read_by_group

    read_by = choices_read_by_group(basis.frame, basis.arguments.get("by"))
    if read_by is None:
        return finding
    return replace(finding, details={**finding.details, "read_by": read_by})


def _under_policy(finding: Finding, basis: _Basis, test: TestContext) -> Finding:
    """Return *finding* with its sensitivity, as far as the policy of *test* asks for it, and with
    the chance of a false alarm.
    """
    from pytest_fairness.analysis.false_alarms import chance

    if test.policy.sensitivity and finding.verdict is Verdict.PASS:
        from pytest_fairness.analysis.counts import as_rows
        from pytest_fairness.analysis.sensitivity import sensitivity_of, with_sensitivity

        given = {**basis.arguments, "frame": as_rows(basis.frame)}
        if basis.looks and "alpha" in given:
            given["alpha"] = min(given["alpha"], basis.looks["red"])
        finding = with_sensitivity(finding, sensitivity_of(basis.analysis, **given))
    alpha = finding.family.get("alpha")
    # A bare ratio has none, and no bound on its false alarms; looks say their own.
    if isinstance(alpha, float) and "false_alarm" not in finding.family:
        finding = replace(finding, family={**finding.family, "false_alarm": chance(alpha)})
    return finding


# ---------------------------------------------------------------- judging: once, or look by look

#: Analyses of yes/no outcomes, whatever their table holds.
_OF_DECISIONS = ("four_fifths",)
#: Analyses that judge a table of counts.
_OF_COUNTS = ("disparity", "strata", "four_fifths")


class _Basis(NamedTuple):
    """The call that a finding was judged from: the *arguments* as the assertion was given them, the
    table and its outcome; ``looks``: of a finding that looks, what was fixed beforehand.
    """

    analysis: str
    arguments: Mapping[str, Any]
    frame: pd.DataFrame
    outcome: Any
    looks: Mapping[str, JSON]

    def record(self, changed: tuple[str, ...]) -> Judgement:
        """Return the judgement, with the columns that the test has *changed* in the table."""
        from pytest_fairness.runs.judgements import Judgement

        return Judgement.of(
            self.analysis,
            self.arguments,
            self.frame,
            self.outcome,
            changed=changed,
            looks=dict(self.looks),
        )

    def says_the_same(self, rows: pd.DataFrame, later: _Basis) -> bool:
        """Return whether *rows* of the table of a *later* look are this table, with the same
        outcome.
        """
        columns = [name for name in self.frame.columns if name in rows.columns]
        if not _equal(self.frame[columns], rows[columns]):
            return False
        if self.outcome is None:
            return True
        return _equal(self.outcome.values, later.outcome.values.loc[rows.index])

    def judged(self) -> JudgedTable:
        """Return the table with what was read of it."""
        from pytest_fairness.reports.judged_tables import JudgedTable

        outcome = self.outcome
        if outcome is None:
            outcome = self.arguments.get("outcome")
        return JudgedTable(self.analysis, self.frame, outcome, self.arguments)


def _equal(values: Any, others: Any) -> bool:
    """Return whether two tables, or columns, hold the same, whatever their rows are called."""
    return bool(values.reset_index(drop=True).equals(others.reset_index(drop=True)))


class _UnmadeTable(Exception):
    """The table of an assertion cannot be made of more names than a first look has."""


def _judged_once(
    name: str, arguments: Mapping[str, Any], look: Look | None = None
) -> tuple[Finding, _Basis]:
    """Return the finding of the analysis *name* by *arguments*, at a *look* if there is one, and
    what it was judged from.
    """
    from pytest_fairness.analysis.counts import as_rows, countable
    from pytest_fairness.analysis.unreadable_rows import naming_rows
    from pytest_fairness.scorers import outcome_of
    from pytest_fairness.statistics.arrays import require_frame

    analyze = analysis.analysis_called(name)
    given = dict(arguments)
    if name in _OF_COUNTS and given.get("analysis") != "equivalence":
        table, outcome, by, cluster, block = (
            given[name] for name in ("frame", "outcome", "by", "cluster", "block")
        )
        within = (given.get("each"),)
        alike = name != "strata" and given.get("kind") != "categorical"
        given["frame"] = countable(table, outcome, by, cluster, block, within=within, alike=alike)
    else:
        given["frame"] = as_rows(given["frame"])
    outcome = None
    if current_test() is not None and given.get("outcome") is not None:
        # Read once, for the analysis and for the record.
        frame = require_frame(given["frame"])
        outcome = given["outcome"] = outcome_of(frame, given["outcome"], given["scorers"])
    at_look = {}
    if look is not None:
        at_look = {"_look": look}
    with naming_rows(arguments["frame"], arguments.get("outcome")):
        finding = analyze(**given, **at_look)
    return finding, _Basis(name, arguments, given["frame"], outcome, {})


def _judged_by_looks(
    assertion: Assertion, test: TestContext, budget: float
) -> tuple[Finding, _Basis]:
    """Return the finding of *assertion* on the trials of *test*, look by look until it is decided,
    and what it was judged from.

    *budget* is what the assertion may spend on red about a fair system. Raises what the first stage
    raises; what stops a later one leaves the verdict of the look before.
    """
    from pytest_fairness.analysis.looks import LookPlan

    staged = test.staged
    names = (staged.stages.base,)
    if not assertion.arguments.get("bare_ratio"):
        kind, fewest_trials = _kind_of(assertion)
        names = staged.looks(assertion, kind, fewest_trials)
    plan = LookPlan(names=names, red=budget, unit=staged.unit)
    try:
        return _looked(assertion, test, plan)
    except _UnmadeTable:
        pass
    # The table cannot be made of more names: judged once, as the base design makes it.
    frame = staged.base_table(assertion)
    plan = LookPlan(names=(staged.stages.base,), red=plan.look(2).red, unit=staged.unit)
    return _looked(assertion, test, plan, frame)


class _Stop(Exception):
    """Ends the looks, saying why the next cannot be made: the look before is the last."""


def _looked(
    assertion: Assertion, test: TestContext, plan: LookPlan, only: pd.DataFrame | None = None
) -> tuple[Finding, _Basis]:
    """Return the finding of *assertion* by *plan*, and what it was judged from: on the stages of
    *test*, or *only* one table.
    """
    from pytest_fairness.analysis.looks import DROPPING, Looking, cost_of, look_record, trials_in

    looking = Looking(plan, drops_groups=assertion.analysis in DROPPING)
    stopped = ""
    bases: list[_Basis] = []
    fewer: list[dict[tuple[str, str], int]] = []
    while not looking.ended:
        look = looking.next_look()
        fewer.append(dict(looking.fewer))
        try:
            finding, basis = _judged_at(look, looking, assertion, test, only)
        except _Stop as stop:
            stopped = str(stop)
            break
        looking.take(look, finding, trials_in(basis.frame))
        place = len(assertion.before)
        record = look_record(look, finding, basis.frame, place=place, following=looking.following)
        test.log_look(record)
        bases.append(basis)
    _log_other_tables(looking, bases, fewer, assertion, test)
    finding = looking.conclusion(stopped, cost_of(basis.frame))
    return finding, basis._replace(arguments=assertion.arguments, looks=plan.to_dict())


def _log_other_tables(
    looking: Looking,
    bases: Sequence[_Basis],
    fewer: Sequence[Mapping[tuple[str, str], int]],
    assertion: Assertion,
    test: TestContext,
) -> None:
    """Log the table of each look whose rows say something else in the table of the last: a column
    that a test makes of the whole table, as a rank, does.
    """
    from pytest_fairness.analysis.looks import TABLE_OF_A_LOOK, rows_at

    last = bases[-1]
    place = len(assertion.before)
    for look, basis, groups in zip(looking.made[:-1], bases, fewer, strict=False):
        if not basis.says_the_same(rows_at(look, last.frame, groups), last):
            table = basis.record(()).columns
            test.log_look(
                {
                    "type": TABLE_OF_A_LOOK,
                    "place": place,
                    "number": look.number,
                    "rows": len(basis.frame),
                    "table": table,
                }
            )


def _judged_at(
    look: Look,
    looking: Looking,
    assertion: Assertion,
    test: TestContext,
    only: pd.DataFrame | None,
) -> tuple[Finding, _Basis]:
    """Return what *look* comes to, and what it was judged from. Raises _Stop where the stage cannot
    be asked, or its replies not be read, after a look was made.
    """
    try:
        frame = only
        if frame is None:
            frame = _table_at(look, looking, assertion, test)
        return _judged_once(assertion.analysis, {**assertion.arguments, "frame": frame}, look)
    except (BudgetError, EndpointError, StoreError) as error:
        if not looking.made:
            raise
        raise _Stop(_why(error, f"{look.names} {looking.plan.unit}")) from error


def _table_at(
    look: Look, looking: Looking, assertion: Assertion, test: TestContext
) -> pd.DataFrame:
    """Return the table of *assertion* at *look*. Raises _UnmadeTable where it cannot be made and the
    look before is smaller than the base design.
    """
    try:
        table: pd.DataFrame = test.staged.table(assertion, look.names, looking.fewer)
    except UsageError as error:
        if not looking.made:
            raise
        if looking.made[-1].names < test.staged.stages.base:
            raise _UnmadeTable from error
        raise _Stop(_why(error, f"{look.names} {looking.plan.unit}")) from error
    return table


def _kind_of(assertion: Assertion) -> tuple[OutcomeKind, int]:
    """Return the kind of the outcome of *assertion*, as its table has it, and the fewest trials a
    group that its verdict needs.
    """
    from pytest_fairness.analysis.policy import MINIMUM_N
    from pytest_fairness.analysis.reading import read

    arguments = assertion.arguments
    kind = OutcomeKind.BINARY
    if assertion.analysis not in _OF_DECISIONS and arguments.get("outcome") is not None:
        reading = read(
            arguments["frame"],
            arguments["outcome"],
            arguments.get("kind", "auto"),
            arguments.get("lower_is_worse"),
            arguments.get("scorers"),
            arguments.get("favourable"),
        )
        kind = reading.values.kind
    return kind, MINIMUM_N[kind]


def _why(error: Exception, stage: str) -> str:
    """Return what stopped the asking of a later *stage*, in words."""
    stops = {
        NeverAskedError: f" before the stage of {stage}",
        BudgetError: " by the cost cap",
        StageUnfinished: " by the deadline",
        UsageError: ", because the table could not be made of more names",
    }
    for kind, why in stops.items():
        if isinstance(error, kind):
            return f"stopped{why}: {error}"
    return f"stopped: {error}"


# ---------------------------------------------------------------- what a verdict does to the test


def conclude(finding: Finding, basis: _Basis | None = None) -> Finding:
    """Do with *finding* what its verdict asks for, under the policy of the running test; two
    matched replies of its *basis* stand in the message of a FLAG or FAIL.

    PASS returns. FAIL raises. FLAG raises unless a documented justification stands behind it.
    INCONCLUSIVE because the data cannot be used (too few, unscored, ragged, incomplete) raises, or
    under ``--fairness-smoke`` leaves it to the plugin to skip the test; any other INCONCLUSIVE
    warns, and raises under ``--fairness-require-conclusive``.
    """
    __tracebackhide__ = True
    test = current_test()
    policy = Policy()
    if test is not None:
        if test.rehearsal is not None:
            return finding
        policy = test.policy
        if finding.verdict is Verdict.FLAG and finding.justification is None:
            finding = replace(finding, justification=test.justification(finding))
        finding = replace(finding, notes=(*finding.notes, *test.notes(finding)))
        test.emit(finding)
    if _fails(finding, policy):
        raise FairnessFailure(_message(finding, basis), finding)
    if finding.verdict is Verdict.INCONCLUSIVE and not unusable(finding):
        python_warnings.warn(finding.sentence, InconclusiveWarning, stacklevel=_level_of_caller())
    return finding


def _fails(finding: Finding, policy: Policy) -> bool:
    """Return whether *finding* fails its test under *policy*."""
    if finding.verdict is Verdict.FAIL:
        return True
    if finding.verdict is Verdict.FLAG:
        return finding.justification is None
    if finding.verdict is Verdict.PASS:
        return False
    if unusable(finding):
        return not policy.smoke
    return policy.require_conclusive


def _message(finding: Finding, basis: _Basis | None) -> str:
    """Return the sentence and the table of *finding*, and how a FLAG is justified."""
    from pytest_fairness.reports.plain_text import finding_text

    judged = None
    if basis is not None and finding.verdict in ALARMS:
        judged = basis.judged()
    text = finding_text(finding, judged)
    if finding.verdict is Verdict.FLAG:
        text += _FLAGGED
    return text


def _level_of_caller() -> int:
    """Return how many frames above :func:`conclude` the line stands that called an assertion of
    this module, as ``stacklevel`` counts.
    """
    frame = sys._getframe(1)
    level = 1
    while frame.f_back is not None and frame.f_globals is globals():
        frame = frame.f_back
        level += 1
    return level


def unusable(finding: Finding) -> bool:
    """Return whether an INCONCLUSIVE *finding* is so because its data cannot be used, or there was
    nothing to compare.
    """
    return finding.reason is None or finding.reason.unusable


_FLAGGED = """

A FLAG needs a documented justification. Give one where it will be read:
  @pytest.mark.fairness(justification={"reason": "…", "approver": "…", "date": "2026-01-31", "expiry": "2026-07-31"})
or an entry for this test in justifications.yaml with the same keys."""
