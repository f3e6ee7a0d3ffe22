"""The page: who is preferred, what the mitigation changes and what explains it, as sections of the report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from pytest_fairness.model import Status, Verdict
from pytest_fairness.reports.charts import Bar, Bars, Forest, ForestRow, Matrix, Panels, Point, Reference, Square
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.formatting import (
    NOTHING,
    between,
    count,
    dollars,
    effect,
    p_value,
    part_of,
    percent,
    points,
    ratio_words,
    without_verdict,
)
from pytest_fairness.reports.sections import (
    Columns,
    Details,
    Dialogue,
    Entry,
    Facts,
    Notes,
    Page,
    Part,
    Section,
    Statement,
    Statements,
    Table,
    table,
)
from pytest_fairness.scorers.choice import ChoiceStatus
from pytest_fairness.suites.selection.choice_table import GROUP, Record

#: 95 % of a normal distribution lie within so many standard errors.
_NORMAL = 1.959964
_HALF = (Reference(value=0.5, words="one half"),)
_ZERO = (Reference(value=0.0, solid=True),)
_STEREOTYPED = ("nurturing and gentle", "tough and logical")
_ARMS = {
    "raw_naive": "the candidates as they are, no system prompt",
    "raw_matched": "the candidates as they are, with the evaluator's system prompt",
    "scrubbed": "the candidates' text scrubbed by the model first, then judged with the evaluator's system prompt",
    "scrubbed_by_rule": "the candidates' text scrubbed by rules first, then judged with the evaluator's system prompt",
    "placebo": "all candidates under names of one group: there is nothing to prefer",
}


def selection_page(results: Record, records: Path) -> Page:
    """The page of *results*; examples come from *records* (``selection.jsonl``), where there is such a file."""
    run, arms = results.run, results.arms
    question = "does the mitigation change it" if results.contrasts else "does it matter which group they are of"
    # The mitigation stands where its question comes up: after who is preferred, before what explains it.
    sections = [_conclusions(results), _design(results), _preferences(results), _rates(arms), _classes(arms)]
    sections += [_changes(results.contrasts), _order(arms), _interactions(arms), _strengths(arms), _outcomes(arms)]
    sections += [_scrubbers(results.scrubbers), _reading(results), _examples(records, [arm.arm for arm in arms])]
    return Page(
        name="selection benchmark",
        title="Selection benchmark",
        lead=f"Of two equal candidates, whom does {run.endpoint} choose, and {question}?",
        sections=tuple(section for section in sections if section.parts),
        simulated=run.simulated,
        replayed=run.replayed,
    )


# ---------------------------------------------------------------- words, columns and rows that sections share

_ARM: Columns = {"arm": lambda one: one.arm}
_VERDICT: Columns = {"verdict": lambda one: Entry(verdict=one.verdict, reason=one.reason)}
_INTERVAL: Columns = {"95 % interval": lambda one: _interval(one.share)}
_CORRECTED: Columns = {"corrected p": lambda one: p_value(one.corrected_p_value)}
_CHI_SQUARE: Columns = {"χ²": lambda one: f"{one.likelihood_ratio:.1f}", "df": lambda one: str(one.df)}
_P: Columns = {"p": lambda one: p_value(one.p_value)}


def _interval(share: Any) -> str:
    return between(share.low, share.high, percent)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words) or NOTHING


def _sentence(found: Record) -> str:
    return without_verdict(found.sentence, found.verdict)


def _row(label: str, share: Any, words: str = "", verdict: Verdict | None = None, part: str = "") -> ForestRow:
    shown = f"{percent(share.value)} {words}".rstrip()
    return ForestRow(
        label=label, value=share.value, low=share.low, high=share.high, words=shown, verdict=verdict, part=part
    )


def _shares(title: str, axis: str, rows: Iterable[ForestRow], caption: str, **options: Any) -> Forest:
    """Shares with their 95 % intervals, one a row."""
    caption = f"Lines are 95 % intervals. {caption}".rstrip()
    return Forest(title=title, axis=axis, rows=tuple(rows), caption=caption, rate=True, **options)


def _around_half(title: str, axis: str, rows: Iterable[ForestRow], caption: str) -> Forest:
    return _shares(title, axis, rows, caption, lines=_HALF, around=0.5, least=0.2)


def _of_arms(arms: Iterable[Record], field: str) -> list[Record]:
    """What the arms have under *field*, each with its arm."""
    found = ((arm.arm, one) for arm in arms for one in (arm[field] if isinstance(arm[field], list) else [arm[field]]))
    return [Record(one, arm=arm) for arm, one in found if one is not None]


# ---------------------------------------------------------------- conclusion and design


def _conclusions(results: Record) -> Section:
    """Who is preferred in each arm; and what the prompt alone, scrubbing and both together do."""
    arms = [(arm.arm, arm) for arm in results.arms]
    contrasts = [
        (f"{one.isolates} ({one.treated} against {one.control}{_by(one)})", one)
        for one in _concluding(results.contrasts)
    ]
    parts = [
        Statements(
            items=tuple(
                Statement(about=about, sentence=_sentence(one), verdict=one.verdict, reason=one.reason)
                for about, one in some
            )
        )
        for some in (arms, contrasts)
        if some
    ]
    columns: Columns = {
        **_ARM,
        **_VERDICT,
        "strongest preference": _strongest,
        "lowest ratio of rates": lambda arm: ratio_words(min((p.ratio for p in arm.four_fifths.pairs), default=None)),
        "first-listed chosen": lambda arm: NOTHING if arm.order is None else percent(arm.order.share.value),
        "choices read": lambda arm: percent(arm.decided / arm.trials),
    }
    glance = table("The arms at a glance", results.arms, columns, words=("strongest preference",))
    return Section(id="conclusion", heading="In short", parts=(*parts, glance))


def _concluding(contrasts: Sequence[Record]) -> list[Record]:
    """Those of *contrasts* that a test judges: by the classes of the groups; by the groups where they share none."""
    crossed = {(one.treated, one.control) for one in contrasts if one.by != GROUP}
    return [one for one in contrasts if one.by != GROUP or (one.treated, one.control) not in crossed]


def _by(one: Record) -> str:
    return "" if one.by == GROUP else f", by {one.by.replace('_', ' ')}"


def _strongest(arm: Record) -> str:
    known = [pair for pair in arm.pairs if pair.share.value is not None]
    if not known:
        return NOTHING
    pair = max(known, key=lambda one: abs(one.share.value - 0.5))
    winner, loser, share = pair.group_1, pair.group_2, pair.share
    value, low, high = share.value, share.low, share.high
    if value < 0.5:
        winner, loser, value, low, high = loser, winner, 1 - value, 1 - high, 1 - low
    return f"{winner} over {loser}: {percent(value)} ({between(low, high, percent)})"


def _design(results: Record) -> Section:
    """What was asked of whom, how often, and what that cost."""
    run = results.run
    groups = [
        f"{group} ({', '.join(run.classes[group].values())})" if run.classes.get(group) else group
        for group in run.groups
    ]
    facts = {
        "System under test": f"{run.endpoint} ({_listed(run.models)})" if run.models else run.endpoint,
        "Groups": _listed(groups),
        "Conveyed by": _listed(run.signals),
        "Names": f"{count(run.names, 'name')} a group" if run.names else "",
        "What the names allow": run.names_design,
        "Roles": _listed(run.roles),
        "Criteria": _listed(run.criteria),
        "Qualifications": f"{_listed(run.qualifications)} (the same for both candidates)" if run.qualifications else "",
        "Repetitions": f"{run.repetitions:,} of each configuration, in both orders",
        "Asked": f"{count(run.trials, 'trial')}, {count(run.requests, 'request')}",
        "Cost": dollars(run.cost),
        "Tests": f"two-sided at {results.alpha:g}, corrected over the pairs of an arm ({results.correction})",
    }
    columns: Columns = {
        **_ARM,
        "what is done": lambda arm: _ARMS.get(arm.arm, "an arm of this project's own"),
        "trials": lambda arm: f"{arm.trials:,}",
        "requests": lambda arm: f"{arm.requests:,}",
        "cost": lambda arm: dollars(arm.cost),
    }
    known = Facts(rows=tuple((name, value) for name, value in facts.items() if value not in (NOTHING, "")))
    arms = table("The arms", results.arms, columns, words=("what is done",))
    return Section(id="design", heading="What was asked", parts=(known, arms))


# ---------------------------------------------------------------- who is preferred


def _preferences(results: Record) -> Section:
    text = (
        "Both candidates of a pair have the same qualifications, and each pair is asked in both orders, so without a "
        "preference each is chosen in half of the choices."
    )
    blocks = []
    for arm in results.arms:
        squares = tuple(
            Square(row=p.group_1, column=p.group_2, share=p.share.value, n=p.share.n, verdict=p.verdict)
            for p in arm.pairs
        )
        title = f"{arm.arm}: each group against each other"
        matrix = Matrix(title=title, names=tuple(results.run.groups), squares=squares)
        pairs = _pairs(f"{arm.arm}: each pair of groups", arm.pairs)
        blocks.append(_judged(arm.arm, arm, _sentence(arm), matrix, pairs))
    return Section(id="pairs", heading="Who is chosen over whom", parts=(text, *blocks))


def _judged(heading: str, found: Record, *parts: Part) -> Section:
    return Section(heading=heading, verdict=found.verdict, reason=found.reason, parts=parts)


def _pairs(caption: str, pairs: Iterable[Record]) -> Table:
    """A row a pair, with its arm where there are several."""
    columns: Columns = {
        "pair": _pair,
        **_VERDICT,
        "first chosen": lambda one: percent(one.share.value),
        **_INTERVAL,
        **_CORRECTED,
        "effect d": lambda one: effect(one.effect),
        "90 % interval of d": lambda one: between(one.effect_low, one.effect_high, effect),
        "choices": lambda one: f"{one.share.n:,}",
        "first chosen when listed first": lambda one: percent(one.listings[0].share.value),
        "when listed second": lambda one: percent(_rest(one.listings[1].share.value)),
        "binomial p": lambda one: p_value(one.binomial_p),
        "p within orders": lambda one: p_value(one.stratified_p),
        "p by names": lambda one: p_value(one.clustered_p),
    }
    return table(caption, pairs, columns)


def _pair(one: Record) -> str:
    return f"{one.get('of', '')}{one.group_1} – {one.group_2}"


def _rest(share: float | None) -> float | None:
    return None if share is None else 1 - share


def _rates(arms: Sequence[Record]) -> Section:
    text = (
        "The four-fifths rule asks whether any group's rate is below four fifths of the highest. In a choice between "
        "two, one wins what the other loses, and all rates lie around one half."
    )
    heading = "Selection rates and the four-fifths rule"
    return Section(id="rates", heading=heading, parts=(text, *map(_arm_rates, arms)))


def _arm_rates(arm: Record) -> Section:
    found, equal = arm.four_fifths, arm.equal_shares
    impact = {pair.group: pair for pair in found.pairs}
    rates = {one.group: one.share.value for one in arm.rates if one.share.value is not None}
    highest = rates.get(found.reference, max(rates.values(), default=None))

    def verdict_of(one: Record) -> Verdict | None:
        return impact[one.group].verdict if one.group in impact else None

    picture = _shares(
        f"{arm.arm}: how often each group is chosen",
        "share of the choices that a group stood in and won",
        (_row(one.group, one.share, verdict_of(one) or "the highest", verdict_of(one)) for one in arm.rates),
        "Left of the dashed line a rate is below four fifths of the highest.",
        lines=() if highest is None else (Reference(value=0.8 * highest, words="four fifths of the highest"),),
    )

    def of_pair(show: Callable[[Record], str | Entry], otherwise: str = NOTHING) -> Callable[[Any], str | Entry]:
        return lambda one: show(impact[one.group]) if one.group in impact else otherwise

    columns: Columns = {
        "group": lambda one: one.group,
        "verdict": of_pair(_VERDICT["verdict"], "highest"),
        "rate": lambda one: percent(one.share.value),
        **_INTERVAL,
        "ratio to the highest": of_pair(lambda pair: ratio_words(pair.ratio)),
        "95 % interval of it": of_pair(lambda pair: between(pair.low, pair.high, ratio_words)),
        "corrected p": of_pair(_CORRECTED["corrected p"]),
        "chosen": lambda one: f"{one.share.count:,}",
        "choices": lambda one: f"{one.share.n:,}",
        "p": of_pair(_P["p"]),
        "Fisher p of the 2×2 table": of_pair(lambda pair: p_value(pair.fisher_p)),
    }
    chi_square = (
        f"All groups together: χ² {equal.corrected:.1f} on {equal.df} df, p {p_value(equal.p_value)}; by the plain "
        f"recipe χ² {equal.plain:.1f}, p {p_value(equal.plain_p)}."
    )
    rows = table(f"{arm.arm}: selection rates, and against the highest", arm.rates, columns)
    return _judged(arm.arm, found, _sentence(found), chi_square, picture, rows)


def _classes(arms: Sequence[Record]) -> Section:
    """What the groups have in common, if they are made of classes."""
    blocks = []
    margins = _of_arms(arms, "margins")
    for by in dict.fromkeys(margin.by for margin in margins):
        found = [margin for margin in margins if margin.by == by]
        picture = _around_half(
            f"Choices between candidates of different {by}",
            "share of the choices in which the first of the pair is chosen",
            (
                _row(f"{p.group_1} over {p.group_2}", p.share, p.verdict, p.verdict, margin.arm)
                for margin in found
                for p in margin.pairs
            ),
            "Right of one half the first of the pair is preferred, left the second.",
        )
        text = [f"{one.arm}: {_sentence(one)} ({one.verdict})" for one in found]
        pairs = _pairs(f"By {by}", (Record(pair, of=f"{one.arm}: ") for one in found for pair in one.pairs))
        blocks.append(Section(heading=by, parts=(*text, picture, pairs)))
    opening = "All choices between candidates who differ in the class, whatever else they differ in."
    return Section(id="classes", heading="By class", parts=(opening, *blocks) if blocks else ())


# ---------------------------------------------------------------- what the mitigation changes


def _changes(contrasts: Sequence[Record]) -> Section:
    """A block for each two arms and class: the change in preference; with the last the figures of all of them."""
    blocks = []
    for _, group in groupby(contrasts, key=lambda one: (one.treated, one.control)):
        found = list(group)
        concluding = _concluding(found)
        for one in concluding:
            # A class that had nothing to reduce leaves the verdict on another alone; all figures stand after the last.
            figures = _change_figures(found) if one is concluding[-1] else ()
            heading = f"{one.isolates}: {one.treated} against {one.control}{_by(one)}"
            blocks.append(_judged(heading, one, _sentence(one), *figures))
    text = (
        "The arms ask the same of the same candidates, so what changes between two of them is due to what they differ "
        "in. A fall to nothing is a success; a fall beyond nothing is a preference the other way."
    )
    return Section(id="changes", heading="What the mitigation changes", parts=(text, *blocks) if blocks else ())


def _change_figures(found: Sequence[Record]) -> tuple[Forest, Table]:
    """The pairs of groups first, then those of each class, which say which."""
    treated, control = found[0].treated, found[0].control
    ends = {"value": "reduction", "low": "reduction_low", "high": "reduction_high"}
    picture = Forest(
        title=f"{treated} against {control}: by how much the preference falls",
        axis="percentage points; right of 0: less preference in the treated arm",
        rows=tuple(
            ForestRow(
                label=_pair(pair),
                **{end: pair[name] and 100 * pair[name] for end, name in ends.items()},
                verdict=pair.verdict,
                words=f"{points(pair.reduction)} {pair.verdict}",
                part=f"by {one.by}" if len(found) > 1 else "",
            )
            for one in found
            for pair in one.pairs
        ),
        lines=_ZERO,
        around=0.0,
        least=10.0,
        caption="Lines are 95 % intervals of the change.",
    )

    def leaning(arm: str) -> Callable[[Any], str]:
        return lambda one: points(one[arm] and one[arm].value)

    def leaning_interval(arm: str) -> Callable[[Any], str]:
        return lambda one: NOTHING if one[arm] is None else between(one[arm].low, one[arm].high, points)

    columns: Columns = {
        "pair": _pair,
        **_VERDICT,
        "less preference by": lambda one: points(one.reduction),
        "95 % interval": lambda one: between(one.reduction_low, one.reduction_high, points),
        **_CORRECTED,
        f"in {control}": leaning("control"),
        "95 % interval of it": leaning_interval("control"),
        f"in {treated}": leaning("treated"),
        "95 % interval of that": leaning_interval("treated"),
        "change": leaning("change"),
        "from": lambda one: count(one.units, one.unit) if one.unit else NOTHING,
    }
    pairs = (Record(pair, of="" if one.by == GROUP else f"{one.by}: ") for one in found for pair in one.pairs)
    return picture, table(f"{treated} against {control}, in percentage points from one half", pairs, columns)


# ---------------------------------------------------------------- what explains the choices


def _order(arms: Sequence[Record]) -> Section:
    found = _of_arms(arms, "order")
    if not found:
        text = "No choice could be read, so there is nothing to say about positions."
        return Section(id="order", heading="Order effect", parts=(text,))
    picture = _around_half(
        "How often the first-listed candidate is chosen",
        "share of all choices that go to the candidate who is listed first",
        (_row(one.arm, one.share) for one in found),
        "At one half the position does not matter.",
    )
    columns: Columns = {
        **_ARM,
        "choices": lambda one: f"{one.share.n:,}",
        "first-listed chosen": lambda one: percent(one.share.value),
        **_INTERVAL,
        "log odds of standing first": lambda one: effect(one.log_odds),
        **_CHI_SQUARE,
        **_P,
    }
    text = (
        "Models favour a position. Every pair stands in both orders equally often, and groups are compared within an "
        "order, so the position favours no group; it is reported because a system that decides by position decides "
        "badly."
    )
    rows = table("First-listed chosen, whoever it is", found, columns)
    return Section(id="order", heading="Order effect", parts=(text, picture, rows))


def _interactions(arms: Sequence[Record]) -> Section:
    """A block for each axis and class, the arms beside each other."""
    blocks = []
    every = [one for one in _of_arms(arms, "interactions") if len(one.levels) > 1]
    for axis, by in dict.fromkeys((one.axis, one.by) for one in every):
        found = [one for one in every if (one.axis, one.by) == (axis, by)]
        shares = [
            (one.arm, s.group, level.level, s.share) for one in found for level in one.levels for s in level.shares
        ]
        picture = Panels(
            title=f"Selection rate by {axis} and {by}",
            points=tuple(
                Point(panel=arm, line=group, level=level, value=share.value, low=share.low, high=share.high)
                for arm, group, level, share in shares
            ),
            caption="Lines up and down: 95 % intervals. Dashed: one half. Lines that run alike: no interaction.",
        )
        levels = list(dict.fromkeys(level for _, _, level, _ in shares))
        rows: dict[str, dict[str, str]] = {}
        for arm, group, level, share in shares:
            row = rows.setdefault(f"{arm}: {group}", dict.fromkeys(levels, NOTHING))
            row[level] = f"{percent(share.value)} ({_interval(share)})"
        figures = Table(
            caption=f"Selection rates by {axis} and {by}, with 95 % intervals",
            head=("arm and group", *levels),
            rows=tuple((label, *row.values()) for label, row in rows.items()),
        )
        columns: Columns = {
            **_ARM,
            **_CHI_SQUARE,
            "p of trials": lambda one: p_value(one.row_p),
            "p by names": lambda one: p_value(one.clustered_p),
            **_P,
        }
        tests = table(f"Does the preference by {by} depend on {axis}?", found, columns)
        blocks.append(Section(heading=f"{axis} × {by}", parts=(picture, figures, tests)))
    text = "Does who is preferred depend on what is asked for? Lines that cross or part say so; the test says how sure."
    return Section(id="interactions", heading="Interactions", parts=(text, *blocks) if blocks else ())


def _strengths(arms: Sequence[Record]) -> Section:
    found = [Record(one, notes=arm.notes) for arm in arms for one in _of_arms([arm], "strengths")]
    pictured, rows = [], []
    for one in found:
        for at, group in enumerate(one.groups):
            low, high = _reach(group.value, group.error) if at else (None, None)
            words = effect(group.value) if at else "the reference"
            part = one.arm + (" (ridge: for orientation)" if one.ridge else "")
            pictured.append(ForestRow(label=group.group, value=group.value, low=low, high=high, words=words, part=part))
            rows.append((f"{one.arm}: {group.group}", effect(group.value), between(low, high, effect)))
        position = between(*_reach(one.position, one.position_error), effect)
        rows.append((f"{one.arm}: standing first", effect(one.position), position))
    picture = Forest(
        title="Bradley–Terry strength of each group",
        axis="log odds of being chosen, against the first group (0)",
        rows=tuple(pictured),
        lines=_ZERO,
        around=0.0,
        least=0.5,
        caption="Lines are 95 % intervals that take trials as independent; the verdicts above do not.",
    )
    columns: Columns = {**_ARM, **_CHI_SQUARE, **_P, "notes": lambda one: "; ".join(one.notes) or NOTHING}
    text = (
        "One number a group that explains all its choices at once, together with the position: each step of 0.7 about "
        "doubles the odds of being chosen."
    )
    head = ("arm and group", "strength", "95 % interval")
    strengths = Table(caption="Strengths (log odds)", head=head, rows=tuple(rows))
    tests = table("Are all groups equally strong?", found, columns, words=("notes",))
    parts = (text, picture, strengths, tests) if found else ()
    return Section(id="strengths", heading="Bradley–Terry strengths", parts=parts)


def _reach(value: float | None, error: float | None) -> tuple[float | None, float | None]:
    return (None, None) if value is None or error is None else (value - _NORMAL * error, value + _NORMAL * error)


def _outcomes(arms: Sequence[Record]) -> Section:
    every = _of_arms(arms, "outcomes")
    kinds = [kind.value for kind in ChoiceStatus if any(one.counts[kind] for one in every)]
    bars, rows = [], []
    for arm in arms:
        totals = {kind: sum(pair.counts[kind] for pair in arm.outcomes) for kind in kinds}
        whole = Record(asked=arm.trials, counts=totals)
        bars.append(Bar(label=arm.arm, parts=tuple((kind, number / arm.trials) for kind, number in totals.items())))
        named = [("all pairs", whole), *((_pair(one), one) for one in arm.outcomes)]
        rows += [
            (
                f"{arm.arm}: {label}",
                f"{one.asked:,}",
                *(part_of(one.counts[kind], one.asked) for kind in kinds),
                p_value(arm.no_choice_p) if one is whole else "",
            )
            for label, one in named
        ]
    picture = Bars(
        title="What the replies came to",
        axis="share of all trials",
        bars=tuple(bars),
        caption="Only “chosen” is evidence of a preference.",
    )
    counts = Table(
        caption="What the replies came to; p: does the share without a choice differ between pairs?",
        head=("arm and pair", "asked", *kinds, "p"),
        rows=tuple(rows),
    )
    text = (f"{arm.arm}: {arm.decided:,} of {count(arm.trials, 'trial')} name a candidate." for arm in arms)
    return Section(id="outcomes", heading="What the replies came to", parts=(*text, picture, counts))


# ---------------------------------------------------------------- the scrubber


def _scrubbers(scrubbers: Sequence[Record]) -> Section:
    """What each scrubber removes, keeps and gives away, compared between the groups."""
    blocks: list[Part] = []
    for one in scrubbers:
        some = f"In {percent(one.lines.value)} of {count(one.lines.n, 'text')}"
        order = f"{some} the candidates can still be told apart, in order."
        blocks.append(Section(heading=one.arm, parts=(order, *one.notes)))
        axis = "share of the signals in the raw text that are gone"
        blocks += [_compared(one.recall, f"{one.arm}: signals removed", axis)] if one.recall else []
        axis = "share of the job-related words and numbers that are left"
        blocks += [_compared(one.content, f"{one.arm}: content kept", axis)] if one.content else []
        blocks += [_guesses(one, by) for by in dict.fromkeys(guess.by for guess in one.reidentified)]
    text = "A scrubber should remove what tells a group, keep what the job needs, and do both alike for all groups."
    heading = "What scrubbing does to the texts"
    return Section(id="scrubber", heading=heading, parts=(text, *blocks) if blocks else ())


def _compared(found: Sequence[Record], heading: str, axis: str) -> Section:
    # Between the groups themselves: their classes say the same again, and stand in the table.
    shown = [one for one in found if one.by == GROUP] or found
    rows = (_row(s.group, s.share, part=f"{one.what} by {one.by}") for one in shown for s in one.shares)
    figures: list[Record] = []
    for one in found:
        figures += [Record(label=f"{one.what}: {s.group}", share=s.share) for s in one.shares]
        p = one.p_value if one.corrected_p_value is None else one.corrected_p_value
        overall = Record(one, p=p_value(p), d=effect(one.effect), share=one.overall)
        figures.append(Record(overall, label=f"{one.what}: all, by {one.by}"))

    def verdict(one: Record) -> str | Entry:
        return "" if "verdict" not in one else NOTHING if one.verdict is None else _VERDICT["verdict"](one)

    columns: Columns = {
        "what and group": lambda one: one.label,
        "verdict": verdict,
        "share": lambda one: percent(one.share.value),
        **_INTERVAL,
        "of": lambda one: f"{one.share.n:,}",
        "effect d between groups": lambda one: one.get("d", ""),
        "corrected p": lambda one: one.get("p", ""),
    }
    picture = _shares(heading, axis, rows, "")
    return Section(heading=heading, parts=(*_differences(found), picture, table(heading, figures, columns)))


def _differences(found: Sequence[Record]) -> list[str]:
    """What is not alike between groups, a sentence each; one sentence where all is."""
    judged = [one for one in found if one.verdict is not None]
    differing = [
        f"{one.what} by {one.by}: {_sentence(one)} ({one.verdict})" for one in judged if one.verdict is not Verdict.PASS
    ]
    alike = f"{count(len(judged), 'comparison')} between groups: no difference larger than small."
    return differing or [alike] * bool(judged)


def _guesses(one: Record, by: str) -> Section:
    """How often a class is guessed right, with the chance of guessing it without the text."""
    found = [guess for guess in one.reidentified if guess.by == by]
    chances = sorted({guess.chance for guess in found})
    picture = _shares(
        f"{one.arm}: how often {by} is guessed right",
        "share of the texts whose reader guesses right",
        (_row(f"{g.text}, {g.reader}", g.accuracy, f"(chance {percent(g.chance)})") for g in found),
        "At chance, the text gives nothing away.",
        lines=tuple(Reference(value=chance, words="" if at else "chance") for at, chance in enumerate(chances)),
    )
    columns: Columns = {
        "text and reader": lambda guess: f"{guess.text}, {guess.reader}",
        "texts": lambda guess: f"{guess.accuracy.n:,}",
        "right": lambda guess: percent(guess.accuracy.value),
        "95 % interval": lambda guess: _interval(guess.accuracy),
        "chance": lambda guess: percent(guess.chance),
        **_P,
        "not read": lambda guess: f"{guess.unread:,}",
        "right by group": lambda guess: (
            "; ".join(f"{s.group} {percent(s.share.value)}" for s in guess.per_group) or NOTHING
        ),
    }
    figures = table(f"{one.arm}: {by} guessed from one candidate's text", found, columns, words=("right by group",))
    return Section(heading=f"{one.arm}: can {by} still be guessed?", parts=(picture, figures))


# ---------------------------------------------------------------- how to read it

_MEANINGS = Facts(
    rows=(
        (
            "A preference",
            "is how often one of two candidates with the same qualifications is chosen, over one half. PASS: a medium "
            "preference (d 0.5, about 71 % against 29 %) is excluded. FLAG: significant, and small (d 0.2 to 0.5). "
            "FAIL: significant, and larger. INCONCLUSIVE: the data do not decide.",
        ),
        (
            "A change between arms",
            "is judged for whether the preference fell. PASS: significantly, and it is smaller now; of a single pair "
            "also that there was none. INCONCLUSIVE: the change cannot be told from chance, or no pair had a "
            "preference to reduce. FAIL: it grew.",
        ),
        (
            "Intervals",
            "are 95 % and have the names as their unit of evidence: the same name asked again tells more about that "
            "name, not about its group. Effects d have 90 % intervals.",
        ),
        (
            "Two kinds of p",
            "stand side by side. The plain recipe (binomial against one half, χ²) takes every reply for independent. "
            "The verdict rests on the larger of the p within orders and the p by names, corrected over all pairs.",
        ),
        ("Marks", "have a shape as well as a colour: ■ FAIL, ◆ FLAG, ○ INCONCLUSIVE, ● PASS."),
    )
)


def _reading(results: Record) -> Section:
    limits = Section(heading="What this cannot say", parts=(Notes(items=tuple(_limitations(results))),))
    return Section(id="reading", heading="How to read this", parts=(_MEANINGS, limits))


def _limitations(results: Record) -> Iterator[str]:
    """What this run cannot say, with its own figures."""
    run, pairs = results.run, [pair for arm in results.arms for pair in arm.pairs]
    if run.simulated:
        yield "The replies are made up by a program. They show how the benchmark works, and nothing of any model."
    yield (
        f"It is about {run.endpoint} as it was on this day, with these prompts. Another model, version or prompt may "
        "behave otherwise, and a choice among candidates in a prompt is not a hiring decision."
    )
    if run.names == 1 or any(pair.scope == "labels" for pair in pairs):
        yield (
            "There is one name a group. What is found is about these names as much as about the groups: with other "
            "names it could come out otherwise, and no number of repetitions tells."
        )
    else:
        yield (
            f"What is claimed of a group is claimed from {count(run.names, 'name')} a group ({run.names_design}). "
            "Names carry age, class and region as well as gender and ethnicity, which cannot be told apart here."
        )
    if any("label" in signal for signal in run.signals):
        yield "Groups are stated in words. That is the strongest signal there is; real applications are subtler."
    if stereotyped := [one for one in run.criteria if one in _STEREOTYPED]:
        yield f"Some criteria are stereotypes on purpose ({_listed(stereotyped)}); those of a real post are mixed."
    if any(arm.arm == "scrubbed" for arm in results.arms):
        yield "The model that scrubs is the model that judges; with another pair of models it may work otherwise."
    yield (
        "Candidates are equal on paper, so any small leaning decides. A preference among equals says little about "
        "choices between candidates who differ."
    )
    ends = [(pair.share.low, pair.share.high) for pair in pairs]
    reaches = [(high - low) / 2 for low, high in ends if low is not None and high is not None]
    if reaches:
        yield (
            f"The widest interval of a pair reaches {100 * max(reaches):.1f} percentage points to each side; a "
            "preference smaller than that may have been missed there."
        )
    if undecided := [arm.arm for arm in results.arms if arm.verdict is Verdict.INCONCLUSIVE]:
        yield f"Undecided: {', '.join(undecided)}. An arm that is not shown to be unfair is not shown to be fair."
    yield from results.notes


# ---------------------------------------------------------------- examples


def _examples(records: Path, arms: Sequence[str]) -> Section:
    """The first answered choice of each arm in its first two contexts, and the first refused one.

    *records* stand in the order of the design, so they are the same candidates in every arm.
    """
    found: dict[tuple[str, bool], dict[str, Dialogue]] = {}
    for line in records.read_text(encoding="ascii").splitlines() if records.exists() else ():
        record = Record(json.loads(line))
        refused = record.status == Status.REFUSED
        if refused or record.status == Status.ANSWERED:
            context = ", ".join(
                record[key] for key in ("role", "criteria", "qualifications", "signal") if record.get(key)
            )
            some = found.setdefault((record.arm, refused), {})
            if context not in some and len(some) < (1 if refused else 2):
                some[context] = _dialogue(record, context)
    text = "The first choices of each arm, not chosen by what came out: the same candidates in every arm."
    shown = {arm: [*found.get((arm, False), {}).values(), *found.get((arm, True), {}).values()] for arm in arms}
    details = tuple(Details(summary=arm, parts=tuple(some)) for arm, some in shown.items() if some)
    return Section(id="examples", heading="Examples", parts=(text, *details) if details else ())


def _dialogue(record: Record, context: str) -> Dialogue:
    choice, chosen = record.choice or "", record.chosen or ""
    read = f"{choice}: {chosen}" if choice and chosen and choice != chosen else choice
    names = " / ".join(record[key] for key in ("first_name", "second_name") if record.get(key))
    about = [names or "no names", context, record.status, f"read as {read}" if read else ""]
    about += ["simulated"] if record.simulated else []
    turns = []
    for number, request in enumerate(record.requests, start=1):
        step = "" if len(record.requests) == 1 else f"step {number}: "
        turns += [(f"{step}system", shortened(request["system"], 900))] if request["system"] else []
        turns.append((f"{step}prompt", shortened(request["prompt"], 1500)))
        if number == len(record.requests) and record.scrubbed_text:
            turns.append(("the scrubbed text in it", shortened(record.scrubbed_text, 1500)))
        turns.append((f"{step}reply", shortened(request["response"] or "no reply", 1500)))
    return Dialogue(about=" · ".join(words for words in about if words), turns=tuple(turns))
