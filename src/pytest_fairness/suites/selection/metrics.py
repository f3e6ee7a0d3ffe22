"""All numbers of the selection benchmark from its table of trials: each arm, the arms against each
other, the scrubber.

They are assembled from the package's own analyses, and stand beside the plain recipe's (binomial,
χ²), so that both can be read: a verdict comes from the tests within orders, with the names as the
unit. The results are what ``selection.json`` holds: shares lie between 0 and 1, intervals are 95 %
and have the names as their unit, effects are on the d scale with a 90 % interval, costs are in US
dollars.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from pytest_fairness.analysis.arm_contrast import analyze_arms
from pytest_fairness.analysis.four_fifths import decide, four_fifths_sentence
from pytest_fairness.analysis.policy import MAX_UNSCORED, Decision, assertion_verdict
from pytest_fairness.analysis.preference import Compared, compare_all, judge, preference_sentence
from pytest_fairness.errors import FrameError
from pytest_fairness.model import PairResult, Reason, Verdict, deciding_pair
from pytest_fairness.scorers.choice import ChoiceStatus
from pytest_fairness.statistics import choices as outcome_codes
from pytest_fairness.statistics.arrays import code
from pytest_fairness.statistics.bradley_terry import (
    LikelihoodRatio,
    Strengths,
    bradley_terry,
    interaction,
)
from pytest_fairness.statistics.choices import Choices
from pytest_fairness.statistics.clusters import t_quantile
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.proportions import (
    ImpactRatio,
    deviations,
    impact_ratio,
    reference_group,
)
from pytest_fairness.statistics.selection_rates import (
    Rate,
    Units,
    clustered_interaction,
    equal_selection,
    first_listed_rate,
    selection_rates,
    units_of,
)
from pytest_fairness.statistics.win_rates import no_choice_by_pair, round_robin
from pytest_fairness.suites.selection.choice_table import (
    AXES,
    GROUP,
    Classes,
    Record,
    by_class,
    choices_of,
    context_columns,
    crossed_classes,
    units_column,
)
from pytest_fairness.suites.selection.configuration import GUESSING
from pytest_fairness.suites.selection.design import PlannedContrast, planned_contrasts
from pytest_fairness.suites.selection.scrubber import scrubber_qualities

SCHEMA = 1
ALPHA, CORRECTION = 0.05, "bonferroni"
_UNITS = {"cluster": "name pair", "block": "context"}
_ONE_NAME = "one name a group: what is found is about these names as much as about the groups"


def selection_results(
    trials: pd.DataFrame, classes: Classes, *, permutations: int = 199, seed: int = 0
) -> Record:
    """Everything that the benchmark's page shows, and ``selection.json`` holds.

    *trials* has one row a trial, as ``@pytest.mark.fairness_pairs`` gives them. *classes* are the
    protected classes of each group, ``{"white_male": {"gender": "male", …}}``, or nothing where
    they are not known; classes that are crossed are compared too. *permutations* and *seed* are
    those of the re-identification tests.

    Raises FrameError for a table of the wrong shape.
    """
    choosing = trials[~trials["arm"].astype(str).str.startswith(GUESSING)]
    if choosing.empty:
        raise FrameError(f"column 'arm': all arms are called {GUESSING}…, which ask for no choice")
    arms = tuple(map(str, dict.fromkeys(choosing["arm"])))
    classes = {group: classes[group] for group in _groups(trials) if group in classes}
    bys = (GROUP, *crossed_classes(classes))
    return Record(
        schema=SCHEMA,
        run=_facts(trials, choosing, classes),
        arms=[_arm(choosing[choosing["arm"] == arm], arm, classes) for arm in arms],
        contrasts=[
            _contrast(choosing[choosing["arm"].isin(contrast[:2])], contrast, by, classes)
            for contrast in planned_contrasts(arms)
            for by in bys
        ],
        scrubbers=scrubber_qualities(trials, classes, permutations=permutations, seed=seed),
        notes=[],
        alpha=ALPHA,
        correction=CORRECTION,
    )


# ---------------------------------------------------------------- what was asked of whom


def _facts(frame: pd.DataFrame, choosing: pd.DataFrame, classes: Classes) -> Record:
    """The facts of the whole *frame*; *choosing* are the rows of arms that choose: names are read
    from those.

    ``names_design`` says what the names allow to be claimed, ``names`` how many names a group had
    at least.
    """
    units = units_of(choices_of(choosing[choosing["arm"] == choosing["arm"].iloc[0]]))
    seats = [
        choosing[[seat, f"{seat}_name"]].set_axis([GROUP, "name"], axis=1)
        for seat in ("first", "second")
    ]
    names = int(pd.concat(seats).groupby(GROUP)["name"].nunique().min())
    names_design = f"{names} names a group, each of which meets several others"
    if units.count < 2:
        names_design = _ONE_NAME
    elif len(units.codes) == 1:
        names_design = f"{units.count} sets of names, which are independent of each other"

    def values(column: str) -> list[str]:
        if column in frame.columns:
            return list(map(str, frame[column].dropna().unique()))
        return []

    configuration = [
        name
        for name in ("arm", "first", "second", "template", "signal")
        if name in choosing.columns
    ]
    return Record(
        endpoint=", ".join(values("endpoint")),
        models=values("model"),
        **{
            flag: bool(frame[flag].fillna(False).astype(bool).any())
            for flag in ("simulated", "replayed")
        },
        groups=_groups(frame),
        classes=classes,
        criteria=values("criteria"),
        roles=values("role"),
        qualifications=values("qualifications"),
        arms=values("arm"),
        signals=values("signal"),
        names_design=names_design,
        names=names,
        repetitions=int(choosing.groupby(configuration, dropna=False).size().max()),
        **_totals(frame),
    )


def _totals(frame: pd.DataFrame) -> dict[str, Any]:
    """The trials, the requests of all their steps, and the cost: None where that of any trial is
    not known, as a part of the sum would pass for the whole."""
    if "requests" in frame.columns:
        requests = frame["requests"].fillna(1).sum()
    else:
        requests = len(frame)
    cost = None
    if not frame["cost"].isna().any():
        cost = float(frame["cost"].astype(float).sum())
    return {"trials": len(frame), "requests": int(requests), "cost": cost}


def _groups(frame: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys([*frame["first"], *frame["second"]]))


# ---------------------------------------------------------------- an arm


def _arm(frame: pd.DataFrame, arm: str, classes: Classes) -> Record:
    """Everything about one arm; ``order`` and ``strengths`` are None where not one choice could be
    read.

    ``order`` is how often the first-listed is chosen, whoever it is, and the likelihood ratio of
    leaving the position out. ``equal_shares`` is the χ² of equal shares over all groups: ``plain``
    as the recipe has it, ``corrected`` times (G−1)/G, which holds its level.
    """
    choices = choices_of(frame)
    units = units_of(choices)
    strengths = bradley_terry(choices)
    plain, robin = round_robin(choices)
    tables = {GROUP: frame} | {by: by_class(frame, by, classes) for by in crossed_classes(classes)}
    reads = {
        by: choices if by == GROUP else choices_of(table)
        for by, table in tables.items()
        if len(table)
    }
    ridge = "a group always or never won, or not all met: strengths are a ridge fit, without p"
    axes = [axis for axis in AXES if axis in frame.columns and frame[axis].nunique() > 1]
    order = None
    if strengths is not None and strengths.order is not None:
        position = {"log_odds": strengths.position, "error": strengths.position_error}
        order = Record(
            share=first_listed_rate(choices, units), **position, **_ratio(strengths.order)
        )
    return Record(
        arm=arm,
        **_totals(frame),
        decided=int(choices.decided.sum()),
        **_preferred(choices, units, GROUP),
        margins=[
            Record(by=by, **_preferred(read, units_of(read), by))
            for by, read in reads.items()
            if by != GROUP
        ],
        order=order,
        interactions=[
            _interaction(reads[by], tables[by], axis, by) for axis in axes for by in reads
        ],
        equal_shares=Record(
            plain=plain.statistic,
            plain_p=plain.p,
            corrected=robin.statistic,
            df=robin.df,
            p_value=robin.p,
        ),
        four_fifths=four_fifths_of(choices, units),
        strengths=_strengths(strengths),
        outcomes=_outcomes(frame),
        no_choice_p=no_choice_by_pair(choices).p,
        notes=[ridge] * (strengths is not None and not strengths.proper)
        + [_ONE_NAME] * (units.count < 2),
    )


def _preferred(choices: Choices, units: Units, by: str) -> dict[str, Any]:
    """Rates, judged pairs and the verdict of one family: every two groups of *by*."""
    compared = compare_all(choices)
    pairs = judge(compared, alpha=ALPHA, correction=CORRECTION, noun="names")
    verdict, reason = assertion_verdict(pairs)
    return {
        "rates": _shares(choices, units),
        "pairs": [
            _matchup(comparison, pair, choices, units)
            for comparison, pair in zip(compared, pairs, strict=True)
        ],
        "verdict": verdict,
        "reason": reason,
        "sentence": preference_sentence(
            verdict, reason, deciding_pair(pairs), by=by, pairs=len(pairs), noun="names"
        ),
    }


def _shares(choices: Choices, units: Units) -> list[Record]:
    rates = selection_rates(choices, units)
    return [
        Record(group=label, share=rate) for label, rate in zip(choices.labels, rates, strict=True)
    ]


def _matchup(compared: Compared, pair: PairResult, choices: Choices, units: Units) -> Record:
    """Two groups against each other.

    ``share`` is how often *group_1* was chosen, both orders weighing the same; ``listings`` each
    order by itself. ``binomial_p`` is the plain recipe's, ``stratified_p`` that within orders,
    ``clustered_p`` that with the names as the unit (None with one name a group); ``p_value`` is the
    larger of the last two, ``corrected_p_value`` that over all pairs of the arm. ``effect`` is
    positive where *group_1* is preferred; ``scope`` is ``labels`` where a group has one name only.
    """
    p = compared.preference
    a = compared.a
    b = compared.b
    reach = 1.0
    if np.isfinite(p.error):
        reach = float(t_quantile(p.df, 0.975)) * p.error
    listings = []
    for first, second in ((a, b), (b, a)):
        here = (choices.first == choices.labels.index(first)) & (
            choices.second == choices.labels.index(second)
        )
        share = first_listed_rate(choices.take(here), units.take(here))
        listings.append(Record(first=first, second=second, share=share))
    return Record(
        group_1=a,
        group_2=b,
        share=Rate.within(p.n, p.wins, p.rate, reach, p.n) if p.n else Rate(0, p.wins),
        listings=listings,
        binomial_p=p.binomial_p,
        stratified_p=p.p_row,
        clustered_p=p.p_cluster,
        effect=p.effect.value,
        effect_low=p.effect.low,
        effect_high=p.effect.high,
        within_order=(p.within or p.effect).value,
        name_pairs=min(p.clusters),
        **_of(pair, "p_value", "corrected_p_value", "scope", "verdict", "reason", "needs"),
    )


def _of(row: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _ratio(ratio: LikelihoodRatio) -> dict[str, Any]:
    return {"likelihood_ratio": ratio.statistic, "df": ratio.df, "p_value": ratio.p}


def _interaction(choices: Choices, frame: pd.DataFrame, axis: str, by: str) -> Record:
    """Does the preference between the groups of *by* depend on *axis*?

    ``likelihood_ratio`` (χ² with *df*, ``row_p``) takes trials as independent; ``clustered_p`` has
    the names as its unit, and is the ``p_value`` where there are enough of them. None where a group
    always or never won at some level.
    """
    level = code(frame, axis, "axis")
    units = units_of(choices)
    levels = [
        Record(
            level=label,
            shares=_shares(choices.take(level.codes == at), units.take(level.codes == at)),
        )
        for at, label in enumerate(level.labels)
    ]
    statistic = 0.0
    df = 0
    row_p = None
    clustered = None
    if choices.decided.any():
        ratio = interaction(choices, level)
        statistic = ratio.statistic
        df = ratio.df
        row_p = ratio.p
        clustered = clustered_interaction(choices, level, units)
    return Record(
        axis=axis,
        by=by,
        levels=levels,
        likelihood_ratio=statistic,
        df=df,
        row_p=row_p,
        clustered_p=clustered,
        p_value=row_p if row_p is None or clustered is None else clustered,
    )


def _strengths(fitted: Strengths | None) -> Record | None:
    """Bradley–Terry: log odds of each group against the first of them (itself 0) and of standing
    first. ``ridge``: no maximum, so for orientation only, without errors."""
    if fitted is None:
        return None
    errors = fitted.error or {}
    return Record(
        groups=[
            Record(group=group, value=value, error=errors.get(group))
            for group, value in fitted.strength.items()
        ],
        **_of(fitted, "position", "position_error"),
        **_ratio(fitted.groups),
        ridge=not fitted.proper,
    )


def _outcomes(frame: pd.DataFrame) -> list[Record]:
    """Return what the replies to each pair of groups came to, whatever their order."""
    pair = np.sort(frame[["first", "second"]].astype(str).to_numpy(), axis=1)
    kinds = frame["choice"].where(frame["choice"].notna(), ChoiceStatus.UNPARSED.value).astype(str)
    table = pd.crosstab([pair[:, 0], pair[:, 1]], kinds.to_numpy()).reindex(
        columns=list(ChoiceStatus), fill_value=0
    )
    return [
        Record(
            group_1=first,
            group_2=other,
            asked=sum(counts),
            counts=dict(zip(table.columns, counts, strict=True)),
        )
        for (first, other), counts in zip(table.index, table.to_numpy().tolist(), strict=True)
    ]


# ---------------------------------------------------------------- the four-fifths rule


def four_fifths_of(choices: Choices, units: Units) -> Record:
    """Every group against the one selected most often; the data choose that, so all pairs are the
    family.

    Counts and ratio, ``z`` and ``fisher_p`` are those of the rule, whose 2×2 table counts every
    choice twice; the ``p_value`` beside them knows that one group's win is another's loss. With one
    name a group a FAIL is capped at FLAG.
    """
    wins, shown = (array.astype(int).tolist() for array in choices.wins())
    reference = reference_group(wins, shown)
    every = list(combinations(range(len(choices.labels)), 2))
    differences = [equal_selection(choices, units, a, b) for a, b in every]
    corrected = correct([difference.p_value for difference in differences], CORRECTION).tolist()
    pairs = []
    records = []
    for places, difference, q in zip(every, differences, corrected, strict=True):
        if reference not in places:
            continue
        group = places[places[0] == reference]
        (x1, n1), (x2, n2) = counts = (
            (wins[group], shown[group]),
            (wins[reference], shown[reference]),
        )
        if not n1:
            continue
        # How much more the rates spread than independent trials would: what turns the trials' p
        # into that of the names.
        wide = abs(difference.z)
        narrow = deviations(difference.p_value)
        inflation = 1.0
        if narrow > 0:
            inflation = max(1.0, (wide / narrow) ** 2)
        ratio = impact_ratio(x1, n1, x2, n2, design_effect=inflation)
        decision = _decision(choices, units, ratio, group, q)
        rates = (x1 / n1, x2 / n2)
        labels = choices.labels[group], choices.labels[reference]
        figures = {
            "impact_ratio": ratio.ratio,
            "shortfall": ratio.shortfall,
            "below_four_fifths": ratio.below,
        }
        figures |= {"impact_ratio_90_low": ratio.low_90, "impact_ratio_90_high": ratio.high_90}
        for side, (x, n) in enumerate(counts, start=1):
            figures |= {f"favourable_{side}": x, f"n_{side}": n, f"rate_{side}": x / n}
        pair = PairResult(
            group_1=labels[0],
            group_2=labels[1],
            metric="selection",
            difference=rates[0] - rates[1],
            worse_off=labels[rates[0] > rates[1]],
            statistics=figures,
            p_value=difference.p_value,
            corrected_p_value=q,
            **_of(decision, "verdict", "reason", "needs", "notes"),
        )
        pairs.append(pair)
        records.append(
            Record(
                group=labels[0],
                reference=labels[1],
                ratio=ratio.ratio,
                low=ratio.ratio_low,
                high=ratio.ratio_high,
                z=ratio.z if (ratio.x_low, ratio.n_low) == counts[0] else -ratio.z,
                fisher_p=ratio.fisher,
                **_of(ratio, "shortfall", "flip_flop", "below"),
                **_of(pair, "p_value", "corrected_p_value", "verdict", "reason"),
            )
        )
    if not pairs:
        nobody = PairResult(
            group_1="",
            group_2="",
            metric="selection",
            verdict=Verdict.INCONCLUSIVE,
            needs="choices",
        )
        pairs = [replace(nobody, reason=Reason.N)]
    verdict, reason = assertion_verdict(pairs)
    sentence = four_fifths_sentence(
        verdict, reason, deciding_pair(pairs), by=GROUP, clusters="names"
    )
    classes = None
    if reference is not None:
        classes = choices.labels[reference]
    return Record(
        reference=classes, pairs=records, verdict=verdict, reason=reason, sentence=sentence
    )


def _decision(choices: Choices, units: Units, ratio: ImpactRatio, group: int, q: float) -> Decision:
    outcomes = choices.outcome[choices.stood(group)]
    unread = float(((outcomes < 0) & (outcomes != outcome_codes.NEITHER)).mean())
    if unread > MAX_UNSCORED:
        needs = (
            f"read more replies: {unread:.0%} of a group's trials have no choice, at most 5 % may"
        )
        return Decision(verdict=Verdict.INCONCLUSIVE, reason=Reason.UNSCORED, needs=needs)
    decision = decide(ratio, q, alpha=ALPHA)
    if decision.verdict is Verdict.FAIL and units.count < 2:
        note = "a single name a group: the result is about those, so FAIL is capped at FLAG"
        return replace(decision, verdict=Verdict.FLAG, notes=(*decision.notes, note))
    return decision


# ---------------------------------------------------------------- between arms


def _contrast(table: pd.DataFrame, planned: PlannedContrast, by: str, classes: Classes) -> Record:
    """Return what an arm changes against another: the prompt alone, scrubbing beyond it, both
    together.
    """
    finding = analyze_arms(
        table,
        treated=planned.treated,
        control=planned.control,
        by=by,
        classes=None if by == GROUP else {group: values[by] for group, values in classes.items()},
        cluster=units_column(table),
        block=context_columns(table),
        alpha=ALPHA,
        correction=CORRECTION,
    )
    return Record(
        **planned._asdict(),
        by=by,
        pairs=[_change(pair) for pair in finding.pairs if not pair.alarm_only],
        **_of(finding, "verdict", "reason", "sentence"),
    )


def _change(pair: PairResult) -> Record:
    """Two groups in two arms. The leaning is the win rate − ½, from −.5 to .5; ``change`` is
    treated − control; None where nothing is shared. ``reduction`` is by how much |leaning| fell,
    positive where the treated arm is fairer; its interval is that of the change, turned so that the
    control's preference points up."""
    s: dict[str, Any] = dict(pair.statistics)
    ends = ("control", "treated", "change", "reduction", "reduction_low", "reduction_high")
    leanings: dict[str, Any] = dict.fromkeys(ends)
    if "control" in s:
        s |= {"change": pair.difference, "change_p_value": pair.p_value}
        leanings = {
            arm: Record(
                value=s[arm], **{end: s[f"{arm}_{end}"] for end in ("low", "high", "p_value")}
            )
            for arm in ("control", "treated", "change")
        }
        sign = 1
        if s["control"] >= 0:
            sign = -1
        low, high = sorted((sign * s["change_low"], sign * s["change_high"]))
        leanings |= {"reduction": sign * s["change"], "reduction_low": low, "reduction_high": high}
    return Record(
        group_1=pair.group_1,
        group_2=pair.group_2,
        **leanings,
        units=int(s.get("units", 0)),
        unit=_UNITS.get(s.get("unit", ""), ""),
        **_of(pair, "corrected_p_value", "verdict", "reason"),
    )
