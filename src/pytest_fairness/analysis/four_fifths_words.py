"""The four-fifths rule in words: the sentence, and what is said beside the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_fairness.analysis.decision_tables import Table
from pytest_fairness.analysis.sentences import amount, interval_words, p_words
from pytest_fairness.model import JSON, OutcomeKind, PairResult, Reason, Verdict
from pytest_fairness.statistics.four_fifths import (
    SMALLEST_SHARE,
)


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
    told = [
        f"{100 * s[f'rate_{at}']:.1f} % ({s[f'favourable_{at}']:,.0f} of {s[f'n_{at}']:,.0f})" for at in (low, high)
    ]
    rates = (
        f"the favourable rate of {worse} on {decider.metric} is {told[0]}, that of {better} {told[1]}: an impact "
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


def effect_size(decider: PairResult) -> str:
    if "impact_ratio" not in decider.statistics:
        return ""
    ratio, low, high = (
        number(decider.statistics[name]) for name in ("impact_ratio", "impact_ratio_low", "impact_ratio_high")
    )
    return f"impact ratio = {ratio:.3f} (95 % interval {low:.3f} to {high:.3f})"


def number(value: JSON) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def notes(tables: Sequence[Table], bare: bool, missing: Mapping[str, str], cases: str) -> tuple[str, ...]:
    notes = []
    if bare:
        notes.append(
            "judged by the bare ratio: with few decisions it falls below four fifths by chance alone (for four "
            "groups of 100 and a rate of one half, in about 40 % of fair audits)"
        )
    if missing:
        lost = sum(tables[0].unscored)
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


def details(tables: Sequence[Table], declared: bool, bare: bool) -> dict[str, JSON]:
    references: dict[str, JSON] = {
        table.by: None if table.reference is None else table.labels[table.reference] for table in tables
    }
    return {
        "reference": references,
        "reference_declared": declared,
        "mode": "bare ratio" if bare else "ratio with significance and flip-flop",
    }
