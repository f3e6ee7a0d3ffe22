"""All numbers of the selection benchmark from its table of trials: each arm, the arms against each
other, the scrubber.

They are assembled from the package's own analyses, and stand beside the plain recipe's (binomial,
χ²), so that both can be read: a verdict comes from the tests within orders, with the names as the
unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pandas as pd

from pytest_fairness import FrameError, PairResult, analyze_arms
from pytest_fairness.analysis.choice_effects import (
    ContextInteraction,
    context_interaction,
    group_shares,
    order_effect,
)
from pytest_fairness.analysis.policy import conclude_pairs
from pytest_fairness.analysis.preference import Compared, compare_all, judge, preference_sentence
from pytest_fairness.analysis.selection_ratios import selection_ratios
from pytest_fairness.scorers.choice import ChoiceStatus
from pytest_fairness.statistics.arrays import code
from pytest_fairness.statistics.bradley_terry import Strengths, bradley_terry
from pytest_fairness.statistics.choices import Choices
from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.selection_rates import Rate, Units, first_listed_rate, units_of
from pytest_fairness.statistics.win_rates import Preference, no_choice_by_pair, round_robin
from pytest_fairness.suites.selection.choice_table import (
    AXES,
    GROUP,
    Classes,
    by_class,
    choices_of,
    context_columns,
    crossed_classes,
    units_column,
)
from pytest_fairness.suites.selection.configuration import GUESSING
from pytest_fairness.suites.selection.design import PlannedContrast, planned_contrasts
from pytest_fairness.suites.selection.results import (
    ArmResults,
    ContrastResults,
    EqualShares,
    FittedStrengths,
    GroupPreference,
    GroupStrength,
    Leaning,
    ListedShare,
    PairOutcomes,
    PairPreference,
    PreferenceChange,
    RunFacts,
    SelectionResults,
)
from pytest_fairness.suites.selection.scrubber import scrubber_qualities

SCHEMA = 1
ALPHA = 0.05
CORRECTION = "bonferroni"
_UNITS = {"cluster": "name pair", "block": "context"}
_ONE_NAME = "one name a group: what is found is about these names as much as about the groups"
_RIDGE = "a group always or never won, or not all met: strengths are a ridge fit, without p"


def selection_results(
    trials: pd.DataFrame,
    classes: Classes,
    *,
    alpha: float = ALPHA,
    permutations: int = 199,
    seed: int = 0,
) -> SelectionResults:
    """Everything that the benchmark's page shows, and ``selection.json`` holds.

    *trials* has one row a trial, as ``@pytest.mark.fairness_pairs`` gives them. *classes* are the
    protected classes of each group, ``{"white_male": {"gender": "male", …}}``, or nothing where
    they are not known; classes that are crossed are compared too. *alpha* is the level of every
    family of pairs, *permutations* and *seed* are those of the re-identification tests.

    Raises FrameError for a table of the wrong shape.
    """
    choosing = trials[~trials["arm"].astype(str).str.startswith(GUESSING)]
    if choosing.empty:
        raise FrameError(f"column 'arm': all arms are called {GUESSING}…, which ask for no choice")
    arms = list(map(str, dict.fromkeys(choosing["arm"])))
    described = {group: classes[group] for group in _groups(trials) if group in classes}
    return SelectionResults(
        schema=SCHEMA,
        alpha=alpha,
        correction=CORRECTION,
        run=_facts(trials, choosing, described),
        arms=tuple(_arm(choosing[choosing["arm"] == arm], arm, described, alpha) for arm in arms),
        contrasts=tuple(_contrasts(choosing, arms, described, alpha)),
        scrubbers=scrubber_qualities(trials, described, permutations=permutations, seed=seed),
    )


# ---------------------------------------------------------------- what was asked of whom


def _facts(frame: pd.DataFrame, choosing: pd.DataFrame, classes: Classes) -> RunFacts:
    """Return the facts of the whole *frame*; names are read from the rows of the arms that are
    *choosing*.
    """
    units = units_of(choices_of(choosing[choosing["arm"] == choosing["arm"].iloc[0]]))
    names = _fewest_names(choosing)
    configuration = [
        name
        for name in ("arm", "first", "second", "template", "signal")
        if name in choosing.columns
    ]
    return RunFacts(
        endpoint=", ".join(_values(frame, "endpoint")),
        models=_values(frame, "model"),
        simulated=_any(frame, "simulated"),
        replayed=_any(frame, "replayed"),
        groups=_groups(frame),
        classes=classes,
        criteria=_values(frame, "criteria"),
        roles=_values(frame, "role"),
        qualifications=_values(frame, "qualifications"),
        arms=_values(frame, "arm"),
        signals=_values(frame, "signal"),
        names=names,
        names_design=_names_design(names, units),
        repetitions=int(choosing.groupby(configuration, dropna=False).size().max()),
        trials=len(frame),
        requests=_requests(frame),
        cost=_cost(frame),
    )


def _groups(frame: pd.DataFrame) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*frame["first"], *frame["second"]]))


def _fewest_names(choosing: pd.DataFrame) -> int:
    """Return how many names a group has at least."""
    seats = [
        choosing[[seat, f"{seat}_name"]].set_axis([GROUP, "name"], axis=1)
        for seat in ("first", "second")
    ]
    return int(pd.concat(seats).groupby(GROUP)["name"].nunique().min())


def _names_design(names: int, units: Units) -> str:
    """Return what the names allow to be claimed."""
    if units.count < 2:
        return _ONE_NAME
    if len(units.codes) == 1:
        return f"{units.count} sets of names, which are independent of each other"
    return f"{names} names a group, each of which meets several others"


def _values(frame: pd.DataFrame, column: str) -> tuple[str, ...]:
    """Return the values of a *column*, in the order in which they come; none without the column."""
    if column not in frame.columns:
        return ()
    return tuple(map(str, frame[column].dropna().unique()))


def _any(frame: pd.DataFrame, column: str) -> bool:
    return bool(frame[column].fillna(False).astype(bool).any())


def _requests(frame: pd.DataFrame) -> int:
    """Return the requests of all steps of all trials."""
    if "requests" not in frame.columns:
        return len(frame)
    return int(frame["requests"].fillna(1).sum())


def _cost(frame: pd.DataFrame) -> float | None:
    """Return what all trials cost; None where that of any is not known."""
    if frame["cost"].isna().any():
        return None
    return float(frame["cost"].astype(float).sum())


# ---------------------------------------------------------------- an arm


@dataclass(frozen=True)
class _ChoicesBy:
    """The choices between the groups of class *by*, and the rows that they are read from."""

    by: str
    rows: pd.DataFrame
    choices: Choices
    units: Units

    @classmethod
    def of(cls, rows: pd.DataFrame, by: str) -> _ChoicesBy:
        choices = choices_of(rows)
        return cls(by, rows, choices, units_of(choices))


def _arm(frame: pd.DataFrame, arm: str, classes: Classes, alpha: float) -> ArmResults:
    """Return everything about one *arm*, whose trials are *frame*, judged at *alpha*."""
    between = _ChoicesBy.of(frame, GROUP)
    by_classes = list(_by_classes(frame, classes))
    choices = between.choices
    strengths = bradley_terry(choices)
    return ArmResults(
        arm=arm,
        trials=len(frame),
        requests=_requests(frame),
        cost=_cost(frame),
        decided=int(choices.decided.sum()),
        preference=_preference(between, alpha),
        margins=tuple(_preference(margin, alpha) for margin in by_classes),
        order=order_effect(choices, between.units, strengths),
        interactions=tuple(_interactions(frame, [between, *by_classes])),
        equal_shares=_equal_shares(choices),
        four_fifths=selection_ratios(
            choices, between.units, by=GROUP, alpha=alpha, correction=CORRECTION
        ),
        strengths=_fitted(strengths),
        outcomes=tuple(_outcomes(frame)),
        no_choice_p=no_choice_by_pair(choices).p,
        notes=tuple(_notes(strengths, between.units)),
    )


def _by_classes(frame: pd.DataFrame, classes: Classes) -> Iterator[_ChoicesBy]:
    """Yield the choices of *frame* by each class that is crossed with another."""
    for by in crossed_classes(classes):
        rows = by_class(frame, by, classes)
        if len(rows):
            yield _ChoicesBy.of(rows, by)


def _preference(between: _ChoicesBy, alpha: float) -> GroupPreference:
    """Return the rates, the judged pairs and the verdict of one family: every two groups, at
    *alpha*.
    """
    choices = between.choices
    compared = compare_all(choices)
    pairs = judge(compared, alpha=alpha, correction=CORRECTION, noun="names")
    conclusion = conclude_pairs(pairs)
    sentence = preference_sentence(conclusion, by=between.by, pairs=len(pairs), noun="names")
    return GroupPreference(
        by=between.by,
        rates=group_shares(choices, between.units),
        pairs=tuple(
            _pair(comparison, pair, between)
            for comparison, pair in zip(compared, pairs, strict=True)
        ),
        verdict=conclusion.verdict,
        reason=conclusion.reason,
        sentence=sentence,
    )


def _pair(compared: Compared, pair: PairResult, between: _ChoicesBy) -> PairPreference:
    preference = compared.preference
    within = preference.within or preference.effect
    return PairPreference(
        group_1=compared.a,
        group_2=compared.b,
        share=_share(preference),
        listings=(
            _listed(between, compared.a, compared.b),
            _listed(between, compared.b, compared.a),
        ),
        binomial_p=preference.binomial_p,
        stratified_p=preference.p_row,
        clustered_p=preference.p_cluster,
        effect=preference.effect.value,
        effect_low=preference.effect.low,
        effect_high=preference.effect.high,
        within_order=within.value,
        name_pairs=min(preference.clusters),
        p_value=pair.p_value,
        corrected_p_value=pair.corrected_p_value,
        scope=pair.scope,
        verdict=pair.verdict,
        reason=pair.reason,
        needs=pair.needs,
    )


def _share(preference: Preference) -> Rate:
    """Return how often the first of two groups was chosen, with its interval."""
    if not preference.n:
        return Rate(0, preference.wins)
    reach = 1.0
    if np.isfinite(preference.error):
        reach = float(t_quantile(preference.df, 0.975)) * preference.error
    return Rate.within(preference.n, preference.wins, preference.rate, reach, preference.n)


def _listed(between: _ChoicesBy, first: str, second: str) -> ListedShare:
    choices = between.choices
    here = choices.first == choices.labels.index(first)
    here &= choices.second == choices.labels.index(second)
    share = first_listed_rate(choices.take(here), between.units.take(here))
    return ListedShare(first=first, second=second, share=share)


def _interactions(
    frame: pd.DataFrame, tables: Sequence[_ChoicesBy]
) -> Iterator[ContextInteraction]:
    """Yield the interaction of each axis of the context that varies with the groups of each of the
    *tables*.
    """
    for axis in AXES:
        if axis not in frame.columns or frame[axis].nunique() < 2:
            continue
        for table in tables:
            level = code(table.rows, axis, "axis")
            yield context_interaction(table.choices, table.units, level, axis=axis, by=table.by)


def _equal_shares(choices: Choices) -> EqualShares:
    plain, corrected = round_robin(choices)
    return EqualShares(
        plain=plain.statistic,
        plain_p=plain.p,
        corrected=corrected.statistic,
        df=corrected.df,
        p_value=corrected.p,
    )


def _fitted(strengths: Strengths | None) -> FittedStrengths | None:
    if strengths is None:
        return None
    errors = strengths.error or {}
    return FittedStrengths(
        groups=tuple(
            GroupStrength(group=group, value=value, error=errors.get(group))
            for group, value in strengths.strength.items()
        ),
        position=strengths.position,
        position_error=strengths.position_error,
        likelihood_ratio=strengths.groups.statistic,
        df=strengths.groups.df,
        p_value=strengths.groups.p,
        ridge=not strengths.proper,
    )


def _outcomes(frame: pd.DataFrame) -> Iterator[PairOutcomes]:
    """Yield what the replies to each pair of groups came to, whatever their order."""
    pair = np.sort(frame[["first", "second"]].astype(str).to_numpy(), axis=1)
    kinds = frame["choice"].where(frame["choice"].notna(), ChoiceStatus.UNPARSED.value).astype(str)
    table = pd.crosstab([pair[:, 0], pair[:, 1]], kinds.to_numpy()).reindex(
        columns=list(ChoiceStatus), fill_value=0
    )
    for (group, other), counts in zip(table.index, table.to_numpy().tolist(), strict=True):
        yield PairOutcomes(
            group_1=group,
            group_2=other,
            trials=sum(counts),
            counts=dict(zip(table.columns, counts, strict=True)),
        )


def _notes(strengths: Strengths | None, units: Units) -> Iterator[str]:
    if strengths is not None and not strengths.proper:
        yield _RIDGE
    if units.count < 2:
        yield _ONE_NAME


# ---------------------------------------------------------------- between arms


def _contrasts(
    frame: pd.DataFrame, arms: Sequence[str], classes: Classes, alpha: float
) -> Iterator[ContrastResults]:
    """Yield what each arm changes against another, between the groups and by each of their classes:
    the prompt alone, scrubbing beyond it, both together.
    """
    for planned in planned_contrasts(arms):
        table = frame[frame["arm"].isin([planned.treated, planned.control])]
        yield _contrast(table, planned, alpha)
        for by in crossed_classes(classes):
            yield _contrast(table, planned.by_class(by, classes), alpha)


def _contrast(table: pd.DataFrame, planned: PlannedContrast, alpha: float) -> ContrastResults:
    finding = analyze_arms(
        table,
        treated=planned.treated,
        control=planned.control,
        by=planned.by,
        classes=planned.classes,
        cluster=units_column(table),
        block=context_columns(table),
        alpha=alpha,
        correction=CORRECTION,
    )
    return ContrastResults(
        treated=planned.treated,
        control=planned.control,
        isolates=planned.isolates,
        by=planned.by,
        pairs=tuple(_change(pair) for pair in finding.pairs if not pair.alarm_only),
        verdict=finding.verdict,
        reason=finding.reason,
        sentence=finding.sentence,
    )


def _change(pair: PairResult) -> PreferenceChange:
    change = PreferenceChange(
        group_1=pair.group_1,
        group_2=pair.group_2,
        corrected_p_value=pair.corrected_p_value,
        verdict=pair.verdict,
        reason=pair.reason,
    )
    if "control" not in pair.statistics:
        return change
    control = _leaning(pair, "control")
    difference = Leaning(
        value=pair.difference or 0.0,
        low=_figure(pair, "change_low"),
        high=_figure(pair, "change_high"),
        p_value=pair.p_value,
    )
    reduction, low, high = _reduction(control, difference)
    return replace(
        change,
        control=control,
        treated=_leaning(pair, "treated"),
        change=difference,
        reduction=reduction,
        reduction_low=low,
        reduction_high=high,
        units=int(_figure(pair, "units")),
        unit=_UNITS.get(str(pair.statistics["unit"]), ""),
    )


def _figure(pair: PairResult, name: str) -> float:
    return cast("float", pair.statistics[name])


def _leaning(pair: PairResult, arm: str) -> Leaning:
    return Leaning(
        value=_figure(pair, arm),
        low=_figure(pair, f"{arm}_low"),
        high=_figure(pair, f"{arm}_high"),
        p_value=_figure(pair, f"{arm}_p_value"),
    )


def _reduction(control: Leaning, change: Leaning) -> tuple[float, float, float]:
    """Return the *change* with its interval, turned so that the preference of the *control* points
    up.
    """
    if control.value >= 0:
        return -change.value, -change.high, -change.low
    return change.value, change.low, change.high
