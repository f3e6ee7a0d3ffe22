"""The public assertions. Each analyses a table, hands the finding to the running test and acts on its verdict.

The ``analyze_…`` twin of each (in :mod:`pytest_fairness.analysis`) returns the same finding without raising.
All work on any DataFrame, inside a test or not.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pytest_fairness.current import Policy, current_test
from pytest_fairness.errors import FairnessFailure, InconclusiveWarning, UsageError
from pytest_fairness.model import Finding, Reason, Verdict

if TYPE_CHECKING:
    import pandas as pd


def assert_no_disparity(
    frame: pd.DataFrame, outcome: str | Callable[[str], Any], by: str | list[str], **options: Any
) -> Finding:
    """Assert that *outcome* does not depend on the group in column *by*.

    ``outcome`` is a column, the name of a scorer, or a callable on the reply. For the options see
    :func:`pytest_fairness.analyze_disparity`. Returns the finding; raises FairnessFailure where it does not hold
    and FrameError for a table of the wrong shape.
    """
    __tracebackhide__ = True
    from pytest_fairness.analysis.disparity import analyze_disparity

    return conclude(analyze_disparity(frame, outcome, by, **options))


def assert_four_fifths(
    frame: pd.DataFrame, outcome: str | Callable[[str], Any], by: str, **options: Any
) -> Finding:
    """Assert that no group's favourable rate is below four fifths of the highest (29 CFR 1607.4(D)).

    For the options see :func:`pytest_fairness.analyze_four_fifths`. Returns and raises as
    :func:`assert_no_disparity`.
    """
    __tracebackhide__ = True
    from pytest_fairness.analysis.four_fifths import analyze_four_fifths

    return conclude(analyze_four_fifths(frame, outcome, by, **options))


def assert_baseline(
    frame: pd.DataFrame,
    score: str | Callable[[str], Any],
    *,
    persona: str | None = None,
    categories: Sequence[str] | None = None,
    threshold: float | None = None,
    **options: Any,
) -> Finding:
    """Assert that *score* has not dropped since its baseline was approved.

    ``score`` is a column, the name of a scorer, or a callable on the reply. Scores are compared persona by persona:
    ``persona`` is the column that names them, by default ``persona`` or, in a grid without personas, ``name``.
    ``categories`` are the columns whose groups are gated beside the overall score, by default the protected classes
    of the grid. ``threshold`` is the score from which a persona passes, kept with the baseline. For the other
    options (``alpha``, ``margin_overall``, ``margin_category``, …) see :func:`pytest_fairness.compare_baseline`.

    With ``--fairness-approve`` the scores of this run are written instead, under the rules of approval. Returns the
    finding; raises FairnessFailure for a regression, and BaselineError where there is no baseline, or none that can
    be trusted. Needs a running test: outside pytest use :func:`pytest_fairness.compare_baseline`.
    """
    __tracebackhide__ = True
    from pytest_fairness.analysis.baseline import compare_baseline, summarise_scores
    from pytest_fairness.baselines.fingerprints import Fingerprints
    from pytest_fairness.frame import UNFINISHED, design_of
    from pytest_fairness.scorers import outcome_of

    test = current_test()
    if test is None or test.baseline is None:
        raise UsageError("assert_baseline needs a running pytest test; outside one, use compare_baseline")
    outcome = outcome_of(frame, score)
    design = design_of(frame)
    summary = summarise_scores(
        frame,
        outcome.values,
        persona=persona or design.persona_column(frame),
        categories=list(design.protected_classes if categories is None else categories),
    )
    finding: Finding = test.baseline().check(
        outcome.name,
        summary,
        lambda approved: compare_baseline(
            approved,
            summary,
            lower_is_worse=outcome.lower_is_worse,
            outcome=outcome.name,
            unit=outcome.unit or "points",
            frame=frame,
            **options,
        ),
        fingerprints=Fingerprints.of(
            endpoint=design.endpoint,
            models=design.models(frame),
            identity=design.identity,
            template=design.templates,
            scorer=outcome.scorer.fingerprint if outcome.scorer is not None else "",
            design=design.digest,
        ),
        simulated=bool(frame["simulated"].any()) if "simulated" in frame else False,
        replayed=bool(frame["replayed"].any()) if "replayed" in frame else False,
        unfinished=int(frame["status"].isin(UNFINISHED).sum()) if "status" in frame else 0,
        threshold=threshold,
        lower_is_worse=outcome.lower_is_worse,
    )
    return conclude(finding)


def conclude(finding: Finding) -> Finding:
    """Do with *finding* what its verdict asks for, under the policy of the running test.

    PASS returns. FAIL raises. FLAG raises unless a documented justification stands behind it. INCONCLUSIVE(N)
    raises, or under ``--fairness-smoke`` leaves it to the plugin to skip the test; any other INCONCLUSIVE warns,
    and raises under ``--fairness-require-conclusive``.
    """
    __tracebackhide__ = True
    test = current_test()
    policy = test.policy if test is not None else Policy()
    if test is not None:
        if finding.verdict is Verdict.FLAG and finding.justification is None:
            finding = dataclasses.replace(finding, justification=test.justification(finding))
        test.emit(finding)
    if _fails(finding, policy):
        raise FairnessFailure(_message(finding), finding)
    if finding.verdict is Verdict.INCONCLUSIVE and finding.reason is not Reason.N:
        warnings.warn(finding.sentence, InconclusiveWarning, stacklevel=3)
    return finding


def _fails(finding: Finding, policy: Policy) -> bool:
    match finding.verdict:
        case Verdict.PASS:
            return False
        case Verdict.FAIL:
            return True
        case Verdict.FLAG:
            return finding.justification is None
        case Verdict.INCONCLUSIVE:
            if finding.reason is Reason.N:
                return not policy.smoke
            return policy.require_conclusive


def _message(finding: Finding) -> str:
    from pytest_fairness.reports.text import finding_text

    message = finding_text(finding)
    if finding.verdict is Verdict.FLAG:
        message += (
            "\n\nA FLAG needs a documented justification. Give one where it will be read:\n"
            '  @pytest.mark.fairness(justification={"reason": "…", "approver": "…", "date": "2026-01-31", '
            '"expiry": "2026-07-31"})\n'
            "or an entry for this test in justifications.yaml with the same keys."
        )
    return message
