"""Does a protected group get the favourable decision at less than four fifths of the highest rate?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pytest_fairness.analysis.family import Family, missing_members, pair_results, settle_missing, shown
from pytest_fairness.analysis.policy import (
    MAX_RAGGED,
    MINIMUM_N,
    Decision,
    Rule,
    deciding_pair,
    judge,
    spec_verdict,
    undecided,
    verdict_by,
)
from pytest_fairness.analysis.provenance import finding_of
from pytest_fairness.analysis.reading import (
    as_columns,
    case_noun,
    check_level,
    cluster_noun,
    every_grouping,
    reasons_by_group,
)
from pytest_fairness.analysis.sentences import amount, interval_words, p_words
from pytest_fairness.errors import FrameError, UsageError
from pytest_fairness.model import Finding, GroupResult, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.arrays import Bools, Floats, Membership, read_design, require_frame, row_name
from pytest_fairness.statistics.compare import Metric, describe_groups, measure
from pytest_fairness.statistics.corrections import correct
from pytest_fairness.statistics.pair_table import combine
from pytest_fairness.statistics.proportions import (
    SMALLEST_SHARE,
    ImpactRatio,
    chance_of,
    deviations,
    impact_ratio,
    lower_first,
    reference_group,
)

if TYPE_CHECKING:
    import pandas as pd

HIGHEST = "highest"


def analyze_four_fifths(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any],
    by: str | Sequence[str],
    *,
    cluster: str | None = "name",
    block: str | None = "template",
    favourable: object = True,
    reference: str | None = None,
    alpha: float = 0.05,
    correction: str = "bonferroni",
    bare_ratio: bool = False,
    scorers: Mapping[str, Any] | None = None,
) -> Finding:
    """Compare the rate of the favourable decision of each group with that of the reference group.

    Who was refused was not selected. FAIL where the ratio is below four fifths, significantly after correction, and one
    favourable decision more would not turn the order; FLAG where it is at least four fifths and the rates differ
    significantly; PASS where the lower end of every ratio's 90 % interval (on clusters) reaches two thirds.

    Args:
        frame, outcome, by, cluster, block, alpha, correction, scorers: as for ``analyze_disparity``.
        favourable: the value of *outcome* that is the favourable decision, a collection of such values, or a
            function of the value that says so.
        reference: the group that others are compared with, declared beforehand; ``None`` or ``"highest"`` for the
            group with the highest rate among those of at least 2 % of the data. The data then choose it, so all pairs
            of groups count as the family.
        bare_ratio: judge by the ratio alone (below four fifths FAILs, anything else PASSes), for readers of the
            literal rule. With few decisions that is no more than a toss of a coin, and the finding says so.

    Raises:
        FrameError: as for ``analyze_disparity``, and for a reference that is no group of the table.
        UsageError: an argument is out of range, or no row has the favourable value and none could.
    """
    columns = as_columns(by)
    check_level(alpha, correction)
    name, yes, present = read_decisions(require_frame(frame), outcome, favourable, scorers)
    declared = reference not in (None, HIGHEST)
    if declared and len(columns) > 1:
        raise UsageError("reference=… names one group, but by=… names several classes: analyse them one by one")
    tables = [
        _tabulate(
            read_design(frame, chosen, cluster=cluster, block=block),
            yes,
            present,
            by=" × ".join(chosen),
            reference=reference if declared else None,
        )
        for chosen in every_grouping(columns)
    ]
    design = tables[0].design
    rule = Rule(alpha=alpha, correction=correction, cluster_noun=cluster_noun(design), case_noun=case_noun(frame))
    pairs, size = _judge(tables, name, rule, bare=bare_ratio)
    decider = deciding_pair(pairs)
    verdict, reason = verdict_by(decider)
    missing = reasons_by_group(frame, design, tables[0].missing)
    return finding_of(
        frame,
        assertion="four_fifths",
        verdict=verdict,
        reason=reason,
        sentence=four_fifths_sentence(
            verdict,
            reason,
            decider,
            by=", ".join(columns),
            clusters=rule.cluster_noun,
            cases=rule.case_noun,
            missing=missing,
        ),
        by=", ".join(columns),
        groups=[group for table in tables for group in table.groups],
        decider=decider,
        test_statistic="" if decider is None else f"z = {_number(decider, 'z'):.4f} SD",
        effect_size=_effect_size(decider),
        notes=_notes(tables, bare_ratio, missing, rule.case_noun),
        pairs=pairs,
        outcome=name,
        kind=OutcomeKind.BINARY,
        cluster=design.cluster_name,
        block=design.block_name,
        family={"size": size, "method": correction, "alpha": None if bare_ratio else alpha},
        details={
            "reference": {
                table.by: None if table.reference is None else table.labels[table.reference] for table in tables
            },
            "reference_declared": declared,
            "mode": "bare ratio" if bare_ratio else "ratio with significance and flip-flop",
        },
    )


# ---------------------------------------------------------------- decisions


def read_decisions(
    frame: pd.DataFrame,
    outcome: str | Callable[..., Any],
    favourable: object,
    scorers: Mapping[str, Any] | None,
) -> tuple[str, Floats, Bools]:
    """The outcome's name, 1 where it is favourable, and where there is an outcome.

    Raises UsageError if *favourable* never occurs and the outcome is not yes or no, and FrameError for a value
    among yes and no that is neither: it would silently count as unfavourable.
    """
    from pytest_fairness.scorers import outcome_of

    found = outcome_of(frame, outcome, scorers)
    series = found.values
    present = ~series.isna().to_numpy()
    if callable(favourable):
        chosen = np.zeros(present.size)
        kept = series[present]
        chosen[present] = [float(bool(favourable(value))) for value in kept]
        return found.name, chosen, present
    many = isinstance(favourable, Collection) and not isinstance(favourable, str)
    wanted = list(favourable) if many and isinstance(favourable, Collection) else [favourable]
    yes = series.isin(wanted).to_numpy(dtype=np.bool_, na_value=False) & present
    if favourable is True and yes.any():
        _require_yes_or_no(frame, found.name, series.to_numpy(dtype=object), present)
    if not yes.any() and present.any():
        values = series[present].drop_duplicates().tolist()
        if any(value not in (0, 1) for value in values):
            seen = ", ".join(repr(value) for value in values[:8])
            raise UsageError(
                f"favourable={favourable!r} never occurs in {found.name!r}, which holds {seen}: name the value "
                "that is the favourable decision"
            )
    return found.name, yes.astype(np.float64), present


def _require_yes_or_no(frame: pd.DataFrame, name: str, values: NDArray[np.object_], present: Bools) -> None:
    for at in np.flatnonzero(present).tolist():
        if not isinstance(values[at], (bool, np.bool_, int, float, np.number)) or values[at] not in (0, 1):
            raise FrameError(
                f"column {name!r}, {row_name(frame, at)}: {values[at]!r} is neither True nor False; correct it, make "
                "it a missing value, or name the favourable decision with favourable=…"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decisions:
    """One grouping: who got the favourable decision, and the tests of every pair.

    ``x`` of ``n`` decisions were favourable; who was refused got none and counts. ``missing`` marks the rows without a
    decision. ``p`` is the p-value of every pair of groups, ``family`` the pairs corrected together and ``reported``
    those with the reference, as places in the table of pairs.
    """

    by: str
    design: Membership
    metric: Metric
    yes: Floats
    x: list[int]
    n: list[int]
    p: Floats
    missing: Bools
    reference: int | None
    family: list[int]
    reported: list[int]
    groups: tuple[GroupResult, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return self.design.group.labels

    def imputed(self, groups: tuple[int, int], place: int, *, first_favourable: bool) -> tuple[ImpactRatio, float, int]:
        """Ratio, p and the lower group with what is missing of one group favourable, and of the other not."""
        codes, values = self.design.group.codes, self.yes.copy()
        best, worst = groups if first_favourable else groups[::-1]
        values[self.missing & (codes == best)] = 1.0
        values[self.missing & (codes == worst)] = 0.0
        here = [codes == group for group in groups]
        metric = measure(self.design, values, here[0] | here[1], OutcomeKind.BINARY)
        x1, x2 = (int(values[rows].sum()) for rows in here)
        n1, n2 = (int(rows.sum()) for rows in here)
        lower = groups[0] if lower_first(x1, n1, x2, n2) else groups[1]
        return _ratio(metric, place, x1, n1, x2, n2), float(_selection_p(metric)[place]), lower


def _tabulate(design: Membership, yes: Floats, present: Bools, *, by: str, reference: str | None) -> _Decisions:
    """Count and test; a refused applicant is not selected. Raises FrameError for a *reference* that is no group."""
    labels = design.group.labels
    refused = design.refused & ~design.undetermined
    used = (present & ~design.undetermined) | refused
    yes = np.where(refused, 0.0, yes)
    metric = measure(design, yes, used, OutcomeKind.BINARY)
    n, x = design.count(used).tolist(), design.count(used & (yes == 1)).tolist()
    if reference is not None and reference not in labels:
        raise FrameError(f"reference={reference!r} is no group of {by!r}; it has {', '.join(map(repr, labels))}")
    at = reference_group(x, n) if reference is None else labels.index(reference)
    table = metric.pairs
    reported = [] if at is None else np.flatnonzero((table.first == at) | (table.second == at)).tolist()
    groups = describe_groups(design, metric, OutcomeKind.BINARY, refused=refused, missing=~used, refused_count=True)
    return _Decisions(
        by=by,
        design=design,
        metric=metric,
        yes=yes,
        x=x,
        n=n,
        p=_selection_p(metric),
        missing=~used,
        reference=at,
        family=reported if reference is not None else list(range(table.first.size)),
        reported=reported,
        groups=groups,
    )


def _selection_p(metric: Metric) -> Floats:
    """The p-value of every pair: of z, the difference in pooled standard deviations, where there is one block (Fisher's
    where few are expected), of Cochran–Mantel–Haenszel over several; and not below that of the clusters."""
    table = metric.pairs
    if not table.beside or metric.layout is None or metric.layout.blocks > 1:
        return table.p_value
    exact = np.array([test.startswith("Fisher") for test in table.test], dtype=np.bool_)
    row = np.where(exact | table.alone, table.p_row, table.beside["spec_p_value"])
    return np.nan_to_num(combine(row, table.p_cluster), nan=1.0)


def _ratio(metric: Metric, place: int, x1: int, n1: int, x2: int, n2: int) -> ImpactRatio:
    inflation, df = float(metric.pairs.beside["design_effect"][place]), float(metric.pairs.df[place])
    return impact_ratio(x1, n1, x2, n2, design_effect=inflation, df=df)


# ---------------------------------------------------------------- the rule

LEAST_RATIO = 2 / 3
"""A PASS needs the lower end of the ratio's 90 % interval to reach this: four fifths of four fifths is .64."""


def decide(ratio: ImpactRatio, q: float, *, alpha: float, bare: bool, cases: str = "cases") -> Decision:
    """The rule: the ratio, significance after correction, and whether one decision more would turn it."""
    if bare:
        return Decision(verdict=Verdict.FAIL if ratio.below else Verdict.PASS)
    if ratio.x_high == 0:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.PRECISION,
            needs="favourable decisions in some group: without any there is no ratio",
        )
    if ratio.below:
        if q < alpha and not ratio.flip_flop:
            return Decision(verdict=Verdict.FAIL)
        why = "one decision more would turn it round" if ratio.flip_flop else "the difference is within chance"
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.SMALL_NUMBERS,
            needs=f"more {cases} in the smaller group",
            notes=(f"below four fifths, but {why}",),
        )
    if q < alpha:
        return Decision(verdict=Verdict.FLAG, notes=("at least four fifths, but the rates differ by more than chance",))
    fewest = min(ratio.n_low, ratio.n_high)
    if fewest < MINIMUM_N[OutcomeKind.BINARY]:
        return Decision(
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.PRECISION,
            needs=f"at least {MINIMUM_N[OutcomeKind.BINARY]} {cases} a group (now {fewest})",
        )
    if ratio.low_90 >= LEAST_RATIO:
        return Decision(verdict=Verdict.PASS)
    return Decision(
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.PRECISION,
        needs=f"more {cases}, until the interval of the ratio stays above two thirds",
        notes=("the interval reaches below two thirds",),
    )


def _judge(tables: Sequence[_Decisions], name: str, rule: Rule, *, bare: bool) -> tuple[list[PairResult], int]:
    """One family: the pairs of all tables, and those of missing decisions where there are any; and its size."""
    missing = [member for table in tables for member in missing_members(table.design, table.by, table.missing)]
    families = [table.p[table.family] for table in tables] + [member.metric.pairs.p_value for member in missing]
    joined, starts = np.concatenate(families), np.cumsum([0, *(p.size for p in families)])
    rule = replace(rule, family_size=joined.size, minimum=MINIMUM_N[OutcomeKind.BINARY])
    results: list[PairResult] = []
    for table, start in zip(tables, starts.tolist(), strict=False):
        for place in table.reported:
            at = start + table.family.index(place)
            results.append(_result(table, name, place, joined, at, rule, bare=bare))
    beside = Family(missing, rule)
    for member, q in zip(missing, np.split(correct(joined, rule.correction), starts[1:-1])[len(tables) :], strict=True):
        of_missing = replace(beside.rule_of(member), family_size=joined.size)
        judged = beside.table(member, member.metric, q)
        results += pair_results(member, judged, judge(judged, of_missing), of_missing)
    return results, joined.size


def _result(table: _Decisions, name: str, place: int, family: Floats, at: int, rule: Rule, *, bare: bool) -> PairResult:
    """A group beside the reference: *at* is the place of the pair in the *family* of p-values."""
    pairs = table.metric.pairs
    first, second, reference = int(pairs.first[place]), int(pairs.second[place]), table.reference or 0
    group = first if second == reference else second
    labels = table.labels[group], table.labels[reference]
    (x1, n1), (x2, n2) = ((table.x[one], table.n[one]) for one in (group, reference))
    if n1 == 0 or n2 == 0:
        return PairResult(
            group_1=labels[0],
            group_2=labels[1],
            metric=name,
            verdict=Verdict.INCONCLUSIVE,
            reason=Reason.N,
            needs=f"decisions about {labels[0] if n1 == 0 else labels[1]}, which has none",
            statistics={"by": table.by},
        )
    ratio, lower = _ratio(table.metric, place, x1, n1, x2, n2), group if lower_first(x1, n1, x2, n2) else reference

    def corrected(p: float) -> float:
        changed = family.copy()
        changed[at] = p
        return float(correct(changed, rule.correction)[at])

    def imputed(first_favourable: bool) -> tuple[Decision, bool]:
        again, p, low = table.imputed((group, reference), place, first_favourable=first_favourable)
        q = corrected(p)
        decision = decide(again, q, alpha=rule.alpha, bare=False, cases=rule.case_noun)
        return decision, q < rule.alpha and low == lower

    q = corrected(float(family[at]))
    decision = decide(ratio, q, alpha=rule.alpha, bare=bare, cases=rule.case_noun)
    if decision.reason is Reason.SMALL_NUMBERS:
        inflation = float(pairs.beside["design_effect"][place])
        chance = chance_of(ratio.ratio, table.x, table.n, design_effect=inflation)
        share = f"{100 * chance:.0f} %" if chance >= 0.005 else "under 1 %"
        note = f"equal treatment brings a ratio this low in {share} of audits with as many {rule.case_noun}"
        decision = replace(decision, notes=(*decision.notes, note))
    lost = table.design.count(table.missing)[[group, reference]]
    if lost.any() and not bare:
        total, least = lost + np.array([n1, n2]), lower == group
        decision = settle_missing(decision, lost, total, rule.case_noun, imputed, least=least, noun="decision")
    if pairs.ragged[place] > MAX_RAGGED:
        needs = "both groups in every block, or block=None if blocks mean nothing here"
        decision = undecided(Reason.RAGGED, needs)
    elif n2 < SMALLEST_SHARE * sum(table.n) and decision.verdict is Verdict.PASS:
        decision = undecided(Reason.N, "a reference group of at least 2 % of the data", *decision.notes)
    if decision.verdict is Verdict.FAIL and pairs.alone[place]:
        note = "a group has a single name: the result is about that one, so FAIL is capped at FLAG"
        decision = replace(decision, verdict=Verdict.FLAG, notes=(*decision.notes, note))
    sign, beside = (
        1.0 if group < reference else -1.0,
        {key: values[place].item() for key, values in pairs.beside.items()},
    )
    ends = np.sort(sign * np.array([pairs.low[place, 0], pairs.high[place, 0]]))
    low, high = shown(sign * pairs.effect[place], ends[:1], ends[1:])
    rates = x1 / n1, x2 / n2
    return PairResult(
        group_1=labels[0],
        group_2=labels[1],
        metric=name,
        verdict=decision.verdict,
        reason=decision.reason,
        spec_verdict=spec_verdict(
            beside["spec_p_value"], pairs.first.size, beside["spec_effect"], min(n1, n2), rule.minimum
        ),
        p_row=float(pairs.p_row[place]),
        p_cluster=None if np.isnan(pairs.p_cluster[place]) else float(pairs.p_cluster[place]),
        p_value=float(table.p[place]),
        corrected_p_value=q,
        effect=sign * float(pairs.effect[place, 0]),
        effect_name=pairs.effect_names[0],
        effect_low=low[0],
        effect_high=high[0],
        difference=rates[0] - rates[1],
        worse_off=None if rates[0] == rates[1] else table.labels[lower],
        test=pairs.test[place],
        scope="labels" if pairs.alone[place] else "names",
        needs=decision.needs,
        statistics={
            "by": table.by,
            "impact_ratio": ratio.ratio,
            "impact_ratio_low": ratio.ratio_low,
            "impact_ratio_high": ratio.ratio_high,
            "impact_ratio_90_low": ratio.low_90,
            "impact_ratio_90_high": ratio.high_90,
            "favourable_1": x1,
            "n_1": n1,
            "rate_1": rates[0],
            "favourable_2": x2,
            "n_2": n2,
            "rate_2": rates[1],
            "z": ratio.z if lower == group else -ratio.z,
            "standard_deviations": deviations(float(table.p[place])),
            "fisher_p_value": ratio.fisher,
            "smallest_expected_count": ratio.smallest_expected,
            "shortfall": ratio.shortfall,
            "flip_flop": ratio.flip_flop,
            "below_four_fifths": ratio.below,
            "design_effect": beside["design_effect"],
            "odds_ratio": beside["odds_ratio"] ** sign,
            "cohens_h": sign * beside["cohens_h"],
        },
        notes=decision.notes,
    )


# ---------------------------------------------------------------- words


def four_fifths_sentence(
    verdict: Verdict,
    reason: Reason | None,
    decider: PairResult | None,
    *,
    by: str,
    clusters: str,
    cases: str = "cases",
    missing: Mapping[str, str] | None = None,
) -> str:
    """Who gets the favourable decision how often, the ratio, and how sure that is."""
    if decider is not None and decider.alarm_only:
        worse = decider.worse_off or decider.group_1
        share = decider.statistics.get("rate_1" if worse == decider.group_1 else "rate_2")
        rate = amount(float(share), OutcomeKind.BINARY) if isinstance(share, (int, float)) else "many"
        why = (missing or {}).get(worse, "")
        sure = f"{interval_words(decider, of=worse)}, corrected {p_words(decider.corrected_p_value)}"
        return (
            f"{verdict}: {worse} is left without a decision in {rate} of {cases}{f': {why}' if why else ''} ({sure})."
        )
    if decider is None or "impact_ratio" not in decider.statistics:
        needs = f": it would take {decider.needs}" if decider is not None and decider.needs else ""
        return f"{verdict}: there are no two groups of {by} with decisions to compare{needs}."
    s = {name: float(value) if isinstance(value, (int, float)) else 0.0 for name, value in decider.statistics.items()}
    first = decider.worse_off != decider.group_2
    worse, better = (decider.group_1, decider.group_2) if first else (decider.group_2, decider.group_1)
    low, high = ("1", "2") if first else ("2", "1")
    if s["rate_1"] == s["rate_2"] == 0:
        return f"{verdict}: no group of {by} is favoured on {decider.metric} at all, so there is no ratio."
    shares = [
        f"{100 * s[f'rate_{at}']:.1f} % ({s[f'favourable_{at}']:,.0f} of {s[f'n_{at}']:,.0f})" for at in (low, high)
    ]
    rates = (
        f"the favourable rate of {worse} on {decider.metric} is {shares[0]}, that of {better} {shares[1]}: an impact "
        f"ratio of {s['impact_ratio']:.2f}"
    )
    sure = f"corrected {p_words(decider.corrected_p_value)}"
    if s["impact_ratio_90_low"] < s["impact_ratio"] < s["impact_ratio_90_high"]:
        sure = f"90 % interval {s['impact_ratio_90_low']:.2f} to {s['impact_ratio_90_high']:.2f}, {sure}"
    side = "below four fifths" if decider.statistics["below_four_fifths"] is True else "at least four fifths"
    if verdict is Verdict.FLAG and side.startswith("at least"):
        side += ", but apart by more than chance"
    text = f"{verdict}: {rates}, {side} ({sure})"
    if verdict is Verdict.PASS:
        return f"{text}; no two groups of {by} are further apart."
    if verdict is Verdict.INCONCLUSIVE:
        because = {
            Reason.SMALL_NUMBERS: "; ".join(decider.notes).removeprefix("below four fifths, but ")
            or "the numbers are too small to tell",
            Reason.PRECISION: "; ".join(decider.notes),
            Reason.UNSCORED: f"too many {cases} have no decision",
        }.get(reason or Reason.N, "")
        needs = f"it would take {decider.needs}" if decider.needs else ""
        return f"{text}; " + "; ".join(part for part in (because, needs) if part) + "."
    lack = f"; at equal rates {worse} would have {s['shortfall']:.1f} more" if s["shortfall"] >= 0.05 else ""
    basis = "" if clusters == "rows" else f"; judged with {clusters} as the unit"
    return f"{text}{lack}{basis}."


def _effect_size(decider: PairResult | None) -> str:
    if decider is None or "impact_ratio" not in decider.statistics:
        return ""
    ratio, low, high = (_number(decider, f"impact_ratio{end}") for end in ("", "_low", "_high"))
    return f"impact ratio = {ratio:.3f} (95 % interval {low:.3f} to {high:.3f})"


def _number(pair: PairResult, name: str) -> float:
    value = pair.statistics.get(name)
    return float(value) if isinstance(value, (int, float)) else 0.0


def _notes(tables: Sequence[_Decisions], bare: bool, missing: Mapping[str, str], cases: str) -> tuple[str, ...]:
    notes = []
    if bare:
        notes.append(
            "judged by the bare ratio: with few decisions it falls below four fifths by chance alone (for four "
            "groups of 100 and a rate of one half, in about 40 % of fair audits)"
        )
    if missing:
        lost = int(tables[0].missing.sum())
        why = "; ".join(f"{group}: {words}" for group, words in list(missing.items())[:4])
        notes.append(f"{lost} {cases} have no decision ({why})")
    for table in tables:
        if table.reference is None:
            continue
        total = sum(table.n)
        tiny = [label for label, n in zip(table.labels, table.n, strict=True) if 0 < n < SMALLEST_SHARE * total]
        if tiny:
            notes.append(f"under 2 % of the data, so never the reference: {', '.join(tiny)}")
        if table.metric.copies_dropped:
            notes.append("repetitions with the same text count once in the tests, for a group has one cluster only")
    return tuple(dict.fromkeys(notes))
