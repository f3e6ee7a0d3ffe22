"""The public assertions. Each analyses a table, hands the finding to the running test and acts on its verdict.

The ``analyze_…`` twin of each (in :mod:`pytest_fairness.analysis`) returns the same finding without raising.
All work on any DataFrame, inside a test or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pytest_fairness.analysis.conclusion import conclude, examine
from pytest_fairness.analysis.verdicts import ALPHA
from pytest_fairness.context import current_test
from pytest_fairness.errors import UsageError
from pytest_fairness.model import Finding

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
    from pytest_fairness.analysis import trying
    from pytest_fairness.analysis.disparity import analyze_disparity

    finding = examine(
        frame,
        lambda table, share: analyze_disparity(table, outcome, by, **_at(options, share)),
        sensitivity=lambda: trying.disparity(frame, outcome, by, options),
    )
    return conclude(finding)


def assert_four_fifths(
    frame: pd.DataFrame, outcome: str | Callable[[str], Any], by: str | list[str], **options: Any
) -> Finding:
    """Assert that no group's favourable rate is below four fifths of the highest (29 CFR 1607.4(D)).

    For the options see :func:`pytest_fairness.analyze_four_fifths`. Returns and raises as
    :func:`assert_no_disparity`.
    """
    __tracebackhide__ = True
    from pytest_fairness.analysis import trying
    from pytest_fairness.analysis.four_fifths import analyze_four_fifths

    finding = examine(
        frame,
        lambda table, share: analyze_four_fifths(table, outcome, by, **_at(options, share)),
        sensitivity=lambda: trying.four_fifths(frame, outcome, by, options),
    )
    return conclude(finding)


def assert_no_preference(frame: pd.DataFrame, by: str = "group", **options: Any) -> Finding:
    """Assert that among equal candidates the choice does not follow the group.

    The frame holds pairwise choices (columns ``first``, ``second``, ``chosen``), or with ``trial=…`` choices among
    several or rankings. For the options see :func:`pytest_fairness.analyze_preference`. Returns and raises as
    :func:`assert_no_disparity`.
    """
    __tracebackhide__ = True
    from pytest_fairness.analysis import trying
    from pytest_fairness.analysis.preference import analyze_preference

    finding = examine(
        frame,
        lambda table, share: analyze_preference(table, by, **_at(options, share)),
        sensitivity=lambda: trying.preference(frame, by, options),
    )
    return conclude(finding)


def assert_equivalent(
    frame: pd.DataFrame,
    outcome: str | Callable[[str], Any],
    by: str | list[str],
    *,
    margin: float,
    unit: str = "outcome",
    **options: Any,
) -> Finding:
    """Assert that every two groups differ by less than *margin* on *outcome*: shown, not merely not refuted.

    ``margin`` is in the outcome's own unit, or with ``unit="d"`` in standard deviations. For the other options see
    :func:`pytest_fairness.analyze_equivalence`. Returns and raises as :func:`assert_no_disparity`.
    """
    __tracebackhide__ = True
    from pytest_fairness.analysis import trying
    from pytest_fairness.analysis.equivalence import analyze_equivalence

    settings = {**options, "margin": margin, "unit": unit}
    finding = examine(
        frame,
        lambda table, share: analyze_equivalence(table, outcome, by, **settings, alarm_share=share),
        sensitivity=lambda: trying.equivalence(frame, outcome, by, settings),
    )
    return conclude(finding)


def assert_arm_reduces_disparity(
    frame: pd.DataFrame,
    outcome: str | Callable[[str], Any] | None = None,
    *,
    treated: str,
    control: str,
    by: str = "group",
    **options: Any,
) -> Finding:
    """Assert that arm *treated* shows less disparity between the groups of *by* than arm *control*.

    With an *outcome* the disparity is a difference of means or rates; without one the frame holds pairwise choices.
    For the options (``arm``, ``placebo``, …) see :func:`pytest_fairness.analyze_arms`. Returns and raises as
    :func:`assert_no_disparity`.
    """
    __tracebackhide__ = True
    from pytest_fairness.analysis.arms import analyze_arms

    settings = {**options, "treated": treated, "control": control, "by": by}
    finding = examine(
        frame,
        lambda table, share: analyze_arms(table, outcome, **_at(settings, share)),
        sensitivity=lambda: None,
    )
    return conclude(finding)


def _at(options: dict[str, Any], share: float) -> dict[str, Any]:
    """*options* with the alarm raised at a *share* of its level."""
    return options if share == 1 else {**options, "alpha": options.get("alpha", ALPHA) * share}


def assert_baseline(
    frame: pd.DataFrame,
    score: str | Callable[[str], Any],
    *,
    persona: str | None = None,
    categories: Sequence[str] | None = None,
    threshold: float | None = None,
    warnings: str | None = None,
    **options: Any,
) -> Finding:
    """Assert that *score* has not dropped since its baseline was approved.

    ``score`` is a column, the name of a scorer, or a callable on the reply. Scores are compared persona by persona:
    ``persona`` is the column that names them, by default ``persona`` or, in a grid without personas, ``name``.
    ``categories`` are the columns whose groups are gated beside the overall score, by default the protected classes of
    the grid. ``threshold`` is the score from which a persona passes, kept with the baseline; passes lost are tested
    too. ``warnings`` is the column that holds each trial's warnings: kinds that the baseline lacks are flagged,
    critical ones fail. For the other options (``alpha``, ``margin_overall``, ``margin_category``, …) see
    :func:`pytest_fairness.compare_baseline`.

    With ``--fairness-approve`` the scores of this run are written instead, under the rules of approval. Returns the
    finding; raises FairnessFailure for a regression, and BaselineError where there is no baseline, or none that can
    be trusted. Needs a running test: outside pytest use :func:`pytest_fairness.compare_baseline`.
    """
    __tracebackhide__ = True
    from pytest_fairness.analysis.baseline import compare_baseline, summarise_scores
    from pytest_fairness.baselines.errors import BaselineError
    from pytest_fairness.baselines.fingerprints import Fingerprints
    from pytest_fairness.scorers import outcome_of
    from pytest_fairness.trials_frame import UNFINISHED, design_of

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
        warnings=warnings,
    )
    try:
        finding: Finding = test.baseline().check(
            outcome.name,
            summary,
            lambda approved: compare_baseline(
                approved,
                summary,
                threshold=threshold,
                low=outcome.low,
                high=outcome.high,
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
    except BaselineError as error:
        # Raised anew here, so that pytest shows the line of the test and not the inside of the store.
        raise type(error)(str(error)) from None
    return conclude(finding)
