"""The page: who is preferred, what the mitigation changes and what explains it, as sections of the
report.

Its words, and the columns of its tables, stand in ``page.toml``.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import Any

from pytest_fairness.model import Status, Verdict, to_json
from pytest_fairness.reports.charts import Bars, Forest, ForestRow, Reference
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.formatting import without_verdict
from pytest_fairness.reports.sections import (
    Details,
    Dialogue,
    Entry,
    Facts,
    Notes,
    Page,
    Part,
    Section,
    Statements,
    Table,
    facts,
    table,
    write_page,
)
from pytest_fairness.runs.files import write_atomically
from pytest_fairness.scorers.choice import ChoiceStatus
from pytest_fairness.suites.selection.choice_table import GROUP, Record
from pytest_fairness.words import (
    NOTHING,
    count,
    effect,
    interval,
    p_value,
    part_of,
    percent,
    points,
    ratio,
)

WORDS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
#: 95 % of a normal distribution lie within so many standard errors.
_NORMAL = 1.959964
_HALF = {
    "lines": (Reference(value=0.5, words="one half"),),
    "rate": True,
    "around": 0.5,
    "least": 0.2,
}
_ZERO = {"lines": (Reference(value=0.0, solid=True),), "around": 0.0}
_STEREOTYPED = ("nurturing and gentle", "tough and logical")


def write_results(results: Record, records: Path) -> None:
    """All numbers and the page, beside *records* (``selection.jsonl``). Raises StoreError."""
    text = json.dumps(to_json(results), ensure_ascii=True, allow_nan=False, indent=1)
    write_atomically(records.with_suffix(".json"), text.encode("ascii"))
    write_page(records.parent, records.stem, selection_page(results, records))


def selection_page(results: Record, records: Path) -> Page:
    """The page of *results*; examples come from *records* (``selection.jsonl``), where there is
    such a file.
    """
    run = results.run
    arms = results.arms
    words = WORDS["page"]
    # The mitigation stands where its question comes up: after who is preferred, before what
    # explains it.
    blocks: dict[str, list[Part]] = {
        "conclusion": _conclusions(results),
        "design": _design(results),
        "pairs": [_matchups(arm, run.groups) for arm in arms],
        "rates": [_rates(arm) for arm in arms],
        "classes": _classes(arms),
        "changes": _changes(results.contrasts),
        "order": _order(arms),
        "interactions": _interactions(arms),
        "strengths": _strengths(arms),
        "outcomes": _outcomes(arms),
        "scrubber": _scrubbers(results.scrubbers),
        "reading": _reading(results),
        "examples": _examples(records, [arm.arm for arm in arms]),
    }
    sections = (
        Section(
            id=name,
            heading=WORDS[name]["heading"],
            parts=(*filter(None, [WORDS[name].get("text")]), *parts),
        )
        for name, parts in blocks.items()
        if parts
    )
    question = words["with_contrasts" if results.contrasts else "without_contrasts"]
    return Page(
        name=words["name"],
        title=words["title"],
        lead=words["lead"].format(endpoint=run.endpoint, question=question),
        sections=tuple(sections),
        simulated=run.simulated,
        replayed=run.replayed,
    )


# ---------------------------------------------------------------- pictures and tables of a section


def _dollars(amount: float | None) -> str:
    if amount is None:
        return "not known"
    return f"$ {amount:,.4f}"


_SHOWN: dict[str, Callable[[Any], str]] = {
    "dollars": _dollars,
    "effect": effect,
    "number": "{:,}".format,
    "p": p_value,
    "percent": percent,
    "points": points,
    "ratio": ratio,
    "statistic": "{:.1f}".format,
    "text": lambda words: words or "",
}


def _field(row: Any, name: str) -> Any:
    if row is None:
        return None
    if name.isdigit():
        return row[int(name)]
    return getattr(row, name)


def _cell(column: str) -> Callable[[Any], str | Entry]:
    """Return what ``page.toml`` says of a column: how it is shown, and the path of the figure, or
    of both ends of an interval; ``verdict`` is a badge with its reason, or words in its place.
    """
    kind, *paths = column.split()
    if kind == "verdict":
        return lambda row: (
            row.verdict
            if type(row.verdict) is str
            else Entry(verdict=row.verdict, reason=row.reason)
        )

    def cell(row: Any) -> str:
        figures = [reduce(_field, path.split("."), row) for path in paths]
        if len(figures) > 1:
            return interval(figures[0], figures[1], _SHOWN[kind])
        return _SHOWN[kind](figures[0])

    return cell


def _table(
    section: str,
    items: Iterable[Any],
    names: Any = None,
    *,
    like: str = "",
    words: Sequence[str] = (),
) -> Table:
    """A row for each of *items*, with the columns of *section*, or those of the section *like*."""
    section_words = WORDS[section]
    columns = {
        title.format(**names or {}): _cell(column)
        for title, column in WORDS[like or section]["columns"].items()
    }
    return table(section_words["table"].format(**names or {}), items, columns, words)


def _forest(section: str, rows: Iterable[ForestRow], names: Any = None, **options: Any) -> Forest:
    """A picture with the words of *section* on it; *names* are those in its title."""
    words = WORDS[section]
    title = words["title"].format(**names or {})
    return Forest(
        title=title, axis=words["axis"], caption=words["caption"], rows=tuple(rows), **options
    )


def _row(label: str, share: Any, words: str = "", **options: Any) -> ForestRow:
    shown = f"{percent(share.value)} {words}".rstrip()
    return ForestRow(
        label=label, value=share.value, low=share.low, high=share.high, words=shown, **options
    )


def _sentence(row: Record) -> str:
    return without_verdict(row.sentence, row.verdict)


def _judged(heading: str, row: Record, *parts: Part, sentence: str = "") -> Section:
    return Section(
        heading=heading, verdict=row.verdict, reason=row.reason, sentence=sentence, parts=parts
    )


def _of_arms(arms: Iterable[Record], field: str) -> list[Record]:
    """Return what the arms have under *field*, each with its arm and what is noted of it."""
    rows = (
        (arm, row)
        for arm in arms
        for row in (arm[field] if isinstance(arm[field], list) else [arm[field]])
    )
    return [
        Record(row, arm=arm.arm, about="; ".join(arm.notes) or NOTHING)
        for arm, row in rows
        if row is not None
    ]


def _paired(pairs: Iterable[Record], of: str = "") -> list[Record]:
    """*pairs* of groups, each named, with *of* what stands before the names."""
    return [Record(pair, pair=f"{of}{pair.group_1} – {pair.group_2}") for pair in pairs]


def _rest(share: float | None) -> float | None:
    if share is None:
        return None
    return 1 - share


# ---------------------------------------------------------------- conclusion and design


def _conclusions(results: Record) -> list[Part]:
    """Return who is preferred in each arm; and what the prompt alone, scrubbing and both together
    do.
    """
    about: list[list[tuple[str, Record]]] = [
        [(arm.arm, arm) for arm in results.arms],
        [
            (
                f"{contrast.isolates} ({contrast.treated} against {contrast.control}{_by(contrast)})",
                contrast,
            )
            for contrast in _concluding(results.contrasts)
        ],
    ]
    statements = [
        Statements(
            items=tuple(
                _judged(heading, section, sentence=_sentence(section)) for heading, section in some
            )
        )
        for some in about
        if some
    ]
    arms = [
        Record(
            arm,
            strongest=_strongest(arm.pairs),
            lowest=min((pair.ratio for pair in arm.four_fifths.pairs), default=None),
            read=arm.decided / arm.trials,
        )
        for arm in results.arms
    ]
    return [*statements, _table("conclusion", arms, words=("strongest preference",))]


def _concluding(contrasts: Sequence[Record]) -> list[Record]:
    """Those of *contrasts* that a test judges: by the classes of the groups; by the groups where
    they share none.
    """
    crossed = {
        (contrast.treated, contrast.control) for contrast in contrasts if contrast.by != GROUP
    }
    return [
        contrast
        for contrast in contrasts
        if contrast.by != GROUP or (contrast.treated, contrast.control) not in crossed
    ]


def _by(row: Record) -> str:
    if row.by == GROUP:
        return ""
    return f", by {row.by.replace('_', ' ')}"


def _strongest(pairs: Sequence[Record]) -> str:
    measured = [pair for pair in pairs if pair.share.value is not None]
    if not measured:
        return NOTHING
    pair = max(measured, key=lambda pair: abs(pair.share.value - 0.5))
    winner = pair.group_1
    loser = pair.group_2
    share = pair.share
    value = share.value
    low = share.low
    high = share.high
    if value < 0.5:
        winner, loser, value, low, high = loser, winner, 1 - value, 1 - high, 1 - low
    return f"{winner} over {loser}: {percent(value)} ({interval(low, high, percent)})"


def _design(results: Record) -> list[Part]:
    """Return what was asked of whom, how often, and what that cost."""
    run = results.run
    classes = {group: ", ".join(run.classes.get(group, {}).values()) for group in run.groups}
    facts_ = {
        "System under test": run.endpoint + (f" ({', '.join(run.models)})" if run.models else ""),
        "Groups": ", ".join(
            group + (f" ({words})" if words else "") for group, words in classes.items()
        ),
        "Conveyed by": ", ".join(run.signals),
        "Names": f"{count(run.names, 'name')} a group" if run.names else "",
        "What the names allow": run.names_design,
        "Roles": ", ".join(run.roles),
        "Criteria": ", ".join(run.criteria),
        "Qualifications": ", ".join(run.qualifications)
        + " (the same for both candidates)" * bool(run.qualifications),
        "Repetitions": f"{run.repetitions:,} of each configuration, in both orders",
        "Asked": f"{count(run.trials, 'trial')}, {count(run.requests, 'request')}",
        "Cost": _dollars(run.cost),
        "Tests": f"two-sided at {results.alpha:g}, corrected over the pairs of an arm ({results.correction})",
    }
    arms = [
        Record(arm, what=WORDS["arms"].get(arm.arm, "an arm of this project's own"))
        for arm in results.arms
    ]
    return [facts(facts_), _table("design", arms, words=("what is done",))]


# ---------------------------------------------------------------- who is preferred


def _matchups(arm: Record, groups: Sequence[str]) -> Section:
    """Every group against every other: a matrix, mirrored, and a table of the pairs."""
    shares = {(pair.group_1, pair.group_2): (pair.share.value, pair) for pair in arm.pairs}
    shares |= {(pair.group_2, pair.group_1): (_rest(pair.share.value), pair) for pair in arm.pairs}

    def square(row: str, column: str) -> str | Entry:
        share, pair = shares.get((row, column), (None, None))
        if share is None or pair is None:
            return Entry(words="" if row == column else NOTHING)
        return Entry(
            words=f"{percent(share, 0)}", verdict=pair.verdict, tint=round(10 * (share - 0.5))
        )

    rows = tuple((row, *(square(row, column) for column in groups)) for row in groups)
    caption = WORDS["pairs"]["matrix"].format(**arm)
    matrix = Table(caption=caption, head=("over …", *groups), rows=rows, kind="heat")
    return _judged(arm.arm, arm, _sentence(arm), matrix, _pairs("pairs", _paired(arm.pairs), arm))


def _pairs(section: str, pairs: Iterable[Record], names: Record) -> Table:
    turned = (Record(pair, when_second=_rest(pair.listings[1].share.value)) for pair in pairs)
    return _table(section, turned, names, like="pairs")


def _rates(arm: Record) -> Section:
    by_four_fifths = arm.four_fifths
    equal = arm.equal_shares
    impact = {pair.group: pair for pair in by_four_fifths.pairs}
    alone = dict.fromkeys(("ratio", "low", "high", "corrected_p_value", "p_value", "fisher_p"))
    groups = [
        Record(rate) | impact.get(rate.group, {"verdict": "highest", **alone}) for rate in arm.rates
    ]
    rates = {rate.group: rate.share.value for rate in arm.rates if rate.share.value is not None}
    highest = rates.get(by_four_fifths.reference, max(rates.values(), default=None))
    lines = (
        ()
        if highest is None
        else (Reference(value=0.8 * highest, words="four fifths of the highest"),)
    )
    rows = (
        _row(rate.group, rate.share, impact[rate.group].verdict, verdict=impact[rate.group].verdict)
        if rate.group in impact
        else _row(rate.group, rate.share, "the highest")
        for rate in arm.rates
    )
    p_values = {"p": p_value(equal.p_value), "plain_p": p_value(equal.plain_p)}
    chi_square = WORDS["rates"]["chi_square"].format(**equal | p_values)
    picture = _forest("rates", rows, arm, rate=True, lines=lines)
    return _judged(
        arm.arm,
        by_four_fifths,
        _sentence(by_four_fifths),
        chi_square,
        picture,
        _table("rates", map(Record, groups), arm),
    )


def _classes(arms: Sequence[Record]) -> list[Part]:
    """Return what the groups have in common, if they are made of classes."""
    blocks: list[Part] = []
    margins = _of_arms(arms, "margins")
    for by in dict.fromkeys(margin.by for margin in margins):
        margins_ = [margin for margin in margins if margin.by == by]
        rows = (
            _row(
                f"{p.group_1} over {p.group_2}",
                p.share,
                p.verdict,
                verdict=p.verdict,
                part=margin.arm,
            )
            for margin in margins_
            for p in margin.pairs
        )
        text = [f"{margin.arm}: {_sentence(margin)} ({margin.verdict})" for margin in margins_]
        pairs = [
            pair for margin in margins_ for pair in _paired(margin.pairs, of=f"{margin.arm}: ")
        ]
        picture = _forest("classes", rows, margins_[0], **_HALF)
        blocks.append(
            Section(heading=by, parts=(*text, picture, _pairs("classes", pairs, margins_[0])))
        )
    return blocks


def _changes(contrasts: Sequence[Record]) -> list[Part]:
    """Return what the mitigation changes: a block for each two arms and class; with the last the
    figures of all of them.
    """
    blocks: list[Part] = []
    for _, group in groupby(contrasts, key=lambda contrast: (contrast.treated, contrast.control)):
        contrasts_ = list(group)
        concluding = _concluding(contrasts_)
        for contrast in concluding:
            # A class that had nothing to reduce leaves the verdict on another alone; all figures
            # stand after the last.
            figures = _change_figures(contrasts_) if contrast is concluding[-1] else ()
            heading = (
                f"{contrast.isolates}: {contrast.treated} against {contrast.control}{_by(contrast)}"
            )
            blocks.append(_judged(heading, contrast, _sentence(contrast), *figures))
    return blocks


def _change_figures(contrasts: Sequence[Record]) -> tuple[Forest, Table]:
    """The pairs of groups first, then those of each class, which say which."""
    ends = {"value": "reduction", "low": "reduction_low", "high": "reduction_high"}
    pairs = [(contrast, pair) for contrast in contrasts for pair in contrast.pairs]
    rows = (
        ForestRow(
            label=f"{pair.group_1} – {pair.group_2}",
            **{end: pair[name] and 100 * pair[name] for end, name in ends.items()},
            verdict=pair.verdict,
            words=f"{points(pair.reduction)} {pair.verdict}",
            part=f"by {contrast.by}" * (len(contrasts) > 1),
        )
        for contrast, pair in pairs
    )
    figures = [
        Record(named, evidence=count(pair.units, pair.unit) if pair.unit else NOTHING)
        for contrast, pair in pairs
        for named in _paired([pair], of="" if contrast.by == GROUP else f"{contrast.by}: ")
    ]
    return _forest("changes", rows, contrasts[0], **_ZERO, least=10.0), _table(
        "changes", figures, contrasts[0]
    )


# ---------------------------------------------------------------- what explains the choices


def _order(arms: Sequence[Record]) -> list[Part]:
    words = WORDS["order"]
    rows = _of_arms(arms, "order")
    if not rows:
        return [words["unread"]]
    picture = _forest("order", (_row(row.arm, row.share) for row in rows), **_HALF)
    return [words["position"], picture, _table("order", rows)]


def _interactions(arms: Sequence[Record]) -> list[Part]:
    """A block for each axis and class, the arms beside each other."""
    blocks: list[Part] = []
    every = [
        interaction for interaction in _of_arms(arms, "interactions") if len(interaction.levels) > 1
    ]
    for axis, by in dict.fromkeys((interaction.axis, interaction.by) for interaction in every):
        interactions = [
            interaction for interaction in every if (interaction.axis, interaction.by) == (axis, by)
        ]
        levels = list(
            dict.fromkeys(
                level.level for interaction in interactions for level in interaction.levels
            )
        )
        shares = [
            (interaction.arm, level.level, share)
            for interaction in interactions
            for level in interaction.levels
            for share in level.shares
        ]
        rows: dict[str, dict[str, str]] = {}
        for arm, level, group in shares:
            range_ = interval(group.share.low, group.share.high, percent)
            row = rows.setdefault(f"{arm}: {group.group}", dict.fromkeys(levels, NOTHING))
            row[level] = f"{percent(group.share.value)} ({range_})"
        pictured = (
            _row(group.group, group.share, part=arm, series=level) for arm, level, group in shares
        )
        figures = Table(
            caption=WORDS["interactions"]["rates"].format(**interactions[0]),
            head=("arm and group", *levels),
            rows=tuple((label, *row.values()) for label, row in rows.items()),
        )
        picture = _forest("interactions", pictured, interactions[0], **_HALF)
        tests = _table("interactions", interactions, interactions[0])
        blocks.append(Section(heading=f"{axis} × {by}", parts=(picture, figures, tests)))
    return blocks


def _strengths(arms: Sequence[Record]) -> list[Part]:
    strengths_ = _of_arms(arms, "strengths")
    pictured = []
    rows = []
    for strength in strengths_:
        for at, group in enumerate(strength.groups):
            low, high = _reach(group.value, group.error) if at else (None, None)
            words = "the reference"
            if at:
                words = effect(group.value)
            part = strength.arm + " (ridge: for orientation)" * strength.ridge
            pictured.append(
                ForestRow(
                    label=group.group, value=group.value, low=low, high=high, words=words, part=part
                )
            )
            rows.append(
                (f"{strength.arm}: {group.group}", effect(group.value), interval(low, high, effect))
            )
        position = interval(*_reach(strength.position, strength.position_error), effect)
        rows.append((f"{strength.arm}: standing first", effect(strength.position), position))
    head = ("arm and group", "strength", "95 % interval")
    strengths = Table(caption=WORDS["strengths"]["strengths"], head=head, rows=tuple(rows))
    picture = _forest("strengths", pictured, **_ZERO, least=0.5)
    if strengths_:
        return [picture, strengths, _table("strengths", strengths_, words=("notes",))]
    return []


def _reach(value: float | None, error: float | None) -> tuple[float | None, float | None]:
    if value is None or error is None:
        return (None, None)
    return (value - _NORMAL * error, value + _NORMAL * error)


def _outcomes(arms: Sequence[Record]) -> list[Part]:
    words = WORDS["outcomes"]
    bars = {}
    rows = []
    kinds = [
        kind.value
        for kind in ChoiceStatus
        if any(outcome.counts[kind] for outcome in _of_arms(arms, "outcomes"))
    ]
    for arm in arms:
        totals = {kind: sum(pair.counts[kind] for pair in arm.outcomes) for kind in kinds}
        whole = Record(
            asked=arm.trials, counts=totals, pair="all pairs", p=p_value(arm.no_choice_p)
        )
        bars[arm.arm] = {kind: number / arm.trials for kind, number in totals.items()}
        for outcome in (whole, *_paired(arm.outcomes)):
            parts = (part_of(outcome.counts[kind], outcome.asked) for kind in kinds)
            rows.append(
                (f"{arm.arm}: {outcome.pair}", f"{outcome.asked:,}", *parts, outcome.get("p", ""))
            )
    return [
        *(
            f"{arm.arm}: {arm.decided:,} of {count(arm.trials, 'trial')} name a candidate."
            for arm in arms
        ),
        Bars(title=words["title"], axis=words["axis"], bars=bars, caption=words["caption"]),
        Table(
            caption=words["table"], head=("arm and pair", "asked", *kinds, "p"), rows=tuple(rows)
        ),
    ]


# ---------------------------------------------------------------- the scrubber


def _scrubbers(scrubbers: Sequence[Record]) -> list[Part]:
    """Return what each scrubber removes, keeps and gives away, compared between the groups."""
    blocks: list[Part] = []
    for scrubber in scrubbers:
        some = f"In {percent(scrubber.lines.value)} of {count(scrubber.lines.n, 'text')}"
        order = f"{some} the candidates can still be told apart, in order."
        blocks.append(Section(heading=scrubber.arm, parts=(order, *scrubber.notes)))
        blocks += [_compared(scrubber, kind) for kind in ("recall", "content") if scrubber[kind]]
        blocks += [
            _guesses(scrubber, by)
            for by in dict.fromkeys(guess.by for guess in scrubber.reidentified)
        ]
    return blocks


def _compared(scrubber: Record, kind: str) -> Section:
    figures = []
    sentences = []
    qualities = scrubber[kind]
    judged = [quality for quality in qualities if quality.verdict is not None]
    for quality in qualities:
        label = f"{quality.what}: "
        figures += [
            Record(label=label + s.group, share=s.share, verdict="", d="", p="")
            for s in quality.shares
        ]
        if quality.corrected_p_value is None:
            p = quality.p_value
        else:
            p = quality.corrected_p_value
        shown = {
            "verdict": quality.verdict or NOTHING,
            "d": effect(quality.effect),
            "p": p_value(p),
        }
        figures.append(
            Record(quality, label=f"{label}all, by {quality.by}", share=quality.overall, **shown)
        )
        if quality in judged and quality.verdict is not Verdict.PASS:
            sentences.append(
                f"{quality.what} by {quality.by}: {_sentence(quality)} ({quality.verdict})"
            )
    if judged and not sentences:
        sentences = [
            f"{count(len(judged), 'comparison')} between groups: no difference larger than small."
        ]
    # Between the groups themselves: their classes say the same again, and stand in the table.
    pictured = [quality for quality in qualities if quality.by == GROUP] or qualities
    rows = (
        _row(s.group, s.share, part=f"{quality.what} by {quality.by}")
        for quality in pictured
        for s in quality.shares
    )
    picture = _forest(kind, rows, scrubber, rate=True)
    table_of_all = _table(kind, figures, scrubber, like="recall")
    return Section(heading=picture.title, parts=(*sentences, picture, table_of_all))


def _guesses(scrubber: Record, by: str) -> Section:
    """Return how often a class is guessed right, with the chance of guessing it without the text."""
    guesses = [
        Record(
            guess,
            arm=scrubber.arm,
            what=f"{guess.text}, {guess.reader}",
            share=guess.accuracy,
            by_group="; ".join(f"{s.group} {percent(s.share.value)}" for s in guess.per_group)
            or NOTHING,
        )
        for guess in scrubber.reidentified
        if guess.by == by
    ]
    chances = enumerate(sorted({guess.chance for guess in guesses}))
    lines = tuple(Reference(value=chance, words="" if at else "chance") for at, chance in chances)
    rows = (_row(guess.what, guess.share, f"(chance {percent(guess.chance)})") for guess in guesses)
    picture = _forest("guesses", rows, guesses[0], rate=True, lines=lines)
    figures = _table("guesses", guesses, guesses[0], words=("right by group",))
    return Section(
        heading=WORDS["guesses"]["heading"].format(**guesses[0]), parts=(picture, figures)
    )


# ---------------------------------------------------------------- how to read it, and examples


def _reading(results: Record) -> list[Part]:
    """Return what the words mean, and what this run cannot say, with its own figures."""
    run = results.run
    pairs = [pair for arm in results.arms for pair in arm.pairs]
    one_name = run.names == 1 or any(pair.scope == "labels" for pair in pairs)
    stereotypes = [criterion for criterion in run.criteria if criterion in _STEREOTYPED]
    ends = [(pair.share.low, pair.share.high) for pair in pairs]
    reaches = [100 * (high - low) / 2 for low, high in ends if low is not None and high is not None]
    undecided = [arm.arm for arm in results.arms if arm.verdict is Verdict.INCONCLUSIVE]
    applies = {
        "simulated": run.simulated,
        "one_name": one_name,
        "names": not one_name,
        "labels": any("label" in signal for signal in run.signals),
        "stereotypes": stereotypes,
        "one_model": any(arm.arm == "scrubbed" for arm in results.arms),
        "precision": reaches,
        "undecided": undecided,
    }
    figures = {
        "endpoint": run.endpoint,
        "names": count(run.names, "name"),
        "names_design": run.names_design,
        "stereotypes": ", ".join(stereotypes),
        "widest": max(reaches, default=0.0),
        "undecided": ", ".join(undecided),
    }
    limits = [
        text.format(**figures)
        for limit, text in WORDS["limits"].items()
        if applies.get(limit, True)
    ]
    cannot = Section(
        heading="What this cannot say", parts=(Notes(items=(*limits, *results.notes)),)
    )
    return [Facts(rows=tuple(WORDS["meanings"].items())), cannot]


def _examples(records: Path, arms: Sequence[str]) -> list[Part]:
    """The first answered choice of each arm in its first two contexts, and the first refused one.

    *records* stand in the order of the design, so they are the same candidates in every arm.
    """
    dialogues: dict[tuple[str, bool], dict[str, Dialogue]] = {}
    for line in records.read_text(encoding="ascii").splitlines() if records.exists() else ():
        record = Record(json.loads(line))
        refused = record.status == Status.REFUSED
        if refused or record.status == Status.ANSWERED:
            axes = ("role", "criteria", "qualifications", "signal")
            context = ", ".join(record[axis] for axis in axes if record.get(axis))
            some = dialogues.setdefault((record.arm, refused), {})
            if context not in some and len(some) < (1 if refused else 2):
                some[context] = _dialogue(record, context)
    shown = {
        arm: [*dialogues.get((arm, False), {}).values(), *dialogues.get((arm, True), {}).values()]
        for arm in arms
    }
    return [Details(summary=arm, parts=tuple(some)) for arm, some in shown.items() if some]


def _dialogue(record: Record, context: str) -> Dialogue:
    choice = record.choice or ""
    chosen = record.chosen or ""
    read = choice
    if choice and chosen and choice != chosen:
        read = f"{choice}: {chosen}"
    names = " / ".join(record[key] for key in ("first_name", "second_name") if record.get(key))
    about = [names or "no names", context, record.status, f"read as {read}" if read else ""]
    if record.simulated:
        about += ["simulated"]
    turns = []
    for number, request in enumerate(record.requests, start=1):
        step = ""
        if len(record.requests) != 1:
            step = f"step {number}: "
        if request["system"]:
            turns += [(f"{step}system", shortened(request["system"], 900))]
        turns.append((f"{step}prompt", shortened(request["prompt"], 1500)))
        if number == len(record.requests) and record.scrubbed_text:
            turns.append(("the scrubbed text in it", shortened(record.scrubbed_text, 1500)))
        turns.append((f"{step}reply", shortened(request["response"] or "no reply", 1500)))
    return Dialogue(about=" · ".join(filter(None, about)), turns=tuple(turns))
