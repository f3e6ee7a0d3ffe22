"""Judge what a test asserts: a table once, the trials of a design look by look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_fairness import analysis
from pytest_fairness.errors import (
    BudgetError,
    EndpointError,
    NeverAskedError,
    StoreError,
    UsageError,
)
from pytest_fairness.model import JSON, Finding, OutcomeKind
from pytest_fairness.running_test import Assertion, TestContext, current_test

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.analysis.looks import Look, LookPlan
    from pytest_fairness.reports.judged_tables import JudgedTable
    from pytest_fairness.runs.judgements import Judgement

#: Analyses of yes/no outcomes, whatever their table holds.
_OF_DECISIONS = ("four_fifths",)


class Basis(NamedTuple):
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

    def judged(self) -> JudgedTable:
        """Return the table with what was read of it."""
        from pytest_fairness.reports.judged_tables import JudgedTable

        outcome = self.outcome
        if outcome is None:
            outcome = self.arguments.get("outcome")
        return JudgedTable(self.analysis, self.frame, outcome, self.arguments)


class UnmadeTable(Exception):
    """The table of an assertion cannot be made of more names than a first look has."""


def judged_once(
    name: str, arguments: Mapping[str, Any], look: Look | None = None
) -> tuple[Finding, Basis]:
    """Return the finding of the analysis *name* by *arguments*, at a *look* if there is one, and
    what it was judged from.
    """
    from pytest_fairness.scorers import outcome_of
    from pytest_fairness.statistics.arrays import require_frame

    analyze = analysis.analysis_called(name)
    given = dict(arguments)
    outcome = None
    if current_test() is not None and given.get("outcome") is not None:
        # Read once, for the analysis and for the record.
        frame = require_frame(given["frame"])
        outcome = given["outcome"] = outcome_of(frame, given["outcome"], given["scorers"])
    at_look = {}
    if look is not None:
        at_look = {"_look": look}
    return analyze(**given, **at_look), Basis(name, arguments, given["frame"], outcome, {})


def judged_by_looks(
    assertion: Assertion, test: TestContext, budget: float
) -> tuple[Finding, Basis]:
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
    except UnmadeTable:
        pass
    # The table cannot be made of more names: judged once, as the base design makes it.
    frame = staged.base_table(assertion)
    plan = LookPlan(names=(staged.stages.base,), red=plan.look(2).red, unit=staged.unit)
    return _looked(assertion, test, plan, frame)


def _looked(
    assertion: Assertion, test: TestContext, plan: LookPlan, only: pd.DataFrame | None = None
) -> tuple[Finding, Basis]:
    """Return the finding of *assertion* by *plan*, and what it was judged from: on the stages of
    *test*, or *only* one table.
    """
    from pytest_fairness.analysis.looks import DROPPING, Looking

    looking = Looking(plan, drops_groups=assertion.analysis in DROPPING)
    stopped = ""
    while not looking.ended:
        look = looking.next_look()
        frame = only
        try:
            if frame is None:
                frame = test.staged.table(assertion, look.names, looking.fewer)
        except (BudgetError, EndpointError, StoreError) as error:
            if not looking.made:
                raise
            stopped = _why(error, f"{look.names} {plan.unit}")
            break
        except UsageError as error:
            if not looking.made:
                raise
            if looking.made[-1].names < test.staged.stages.base:
                raise UnmadeTable from error
            stopped = _why(error, f"{look.names} {plan.unit}")
            break
        arguments = {**assertion.arguments, "frame": frame}
        finding, basis = judged_once(assertion.analysis, arguments, look)
        looking.take(look, finding)
        place = len(assertion.before)
        test.log_look(look_record(look, finding, frame, place=place, final=looking.ended))
    finding = looking.conclusion(stopped)
    return finding, basis._replace(arguments=assertion.arguments, looks=plan.to_dict())


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


def look_record(
    look: Look, finding: Finding, frame: pd.DataFrame, *, place: int, final: bool
) -> dict[str, JSON]:
    """Return the log's record of one look: its number and size, a digest of the cells read, p and
    the ends of the interval of each pair, and what was decided.
    """
    import hashlib

    cells = ""
    if "key" in frame.columns:
        keys = "\n".join(sorted(map(str, frame["key"])))
        cells = hashlib.sha256(keys.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    pairs: list[JSON] = []
    for pair in finding.pairs:
        ends: list[JSON] = [pair.effect_low, pair.effect_high]
        groups: list[JSON] = [pair.group_1, pair.group_2]
        pairs.append([pair.metric, *groups, pair.corrected_p_value, *ends, pair.verdict.value])
    return {
        "type": "look",
        "place": place,
        **look.to_dict(),
        "cells": cells,
        "rows": len(frame),
        "pairs": pairs,
        "verdict": finding.verdict.value,
        "decision": "stop" if final else "go on",
    }


def _why(error: Exception, stage: str) -> str:
    """Return what stopped the asking of a later *stage*, in words."""
    if isinstance(error, NeverAskedError):
        return f"stopped before the stage of {stage}: {error}"
    if isinstance(error, BudgetError):
        return f"stopped by the cost cap: {error}"
    if isinstance(error, UsageError):
        return f"stopped, because the table could not be made of more names: {error}"
    return f"stopped: {error}"
