"""A finding as a section: its sentence, its groups and pairs as pictures with their tables, and how
it was reached.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_fairness import model, words
from pytest_fairness.analysis.looks import DIFFERENCE, EARLY, EFFECT, LEAST_RATIO, RATIO, looks_of
from pytest_fairness.analysis.sentences import FIRST_ASK, of_one_signal
from pytest_fairness.documents import as_number
from pytest_fairness.errors import FairnessError
from pytest_fairness.reports import formatting
from pytest_fairness.reports.charts import MOST_DOTS, Bars, Chart, Forest, ForestRow, Reference
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.examples import Examples, dialogue
from pytest_fairness.reports.formatting import FOUR_FIFTHS
from pytest_fairness.reports.sections import (
    Columns,
    Details,
    Entry,
    Facts,
    Link,
    Notes,
    Part,
    Section,
    Table,
    facts,
    table,
)
from pytest_fairness.words import (
    effect,
    interval,
    of_confidence,
    p_value,
    part_of,
    percent,
    ratio,
)

if TYPE_CHECKING:
    from pytest_fairness.reports.judged_tables import JudgedTable, Replies

#: Groups and pairs that a failing test shows; the report has all.
MOST_GROUPS, MOST_PAIRS = 24, 12
MOST_ROWS = 40
MOST_OPEN = 8
_LINES = (
    Reference(value=0, solid=True),
    Reference(value=-0.5, words="−0.5"),
    Reference(value=0.5, words="+0.5"),
)
_RATIOS = (
    Reference(value=0.8, words="four fifths"),
    Reference(value=LEAST_RATIO, words="PASS from here"),
)
_READ = "Lines are the intervals that each look reads. "
_RED = "Red is a p below the level beside it. Levels allow for the looks before and after."
_DIRECTION = "effect d: right of 0 the first group of the pair is higher"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardReplies:
    """The replies that a card shows: ``examples`` of its groups, which stand in the card
    ``examples_at``; and those of what it was ``judged`` from, which are found among ``replies`` by
    the keys of their trials.
    """

    examples: Examples | None = None
    examples_at: str = ""
    judged: JudgedTable | None = None
    replies: Replies | None = None


NO_REPLIES = CardReplies()


def finding_section(
    finding: model.Finding,
    identity: str,
    *,
    nodeid: str = "",
    outcome: str = "",
    shown: CardReplies = NO_REPLIES,
) -> Section:
    """The card of the finding that reports call *identity*, with the replies that are *shown*."""
    assertion = finding.assertion.replace("_", " ")
    by = words.led(" by ", finding.protected_class)
    about = f"{identity}{words.led(' · ', nodeid)}"
    parts = [*_requirement_and_terms(finding), *_figures(finding, shown.judged)]
    if shown.judged is not None and shown.replies is not None:
        parts.append(_matched(finding, shown.judged, shown.replies))
    parts += _reached(finding)
    if shown.examples is not None and identity == shown.examples_at:
        parts += _examples(finding, shown.examples)
    elif shown.examples is not None:
        where = f"Examples of these groups stand under finding {shown.examples_at}."
        parts.append(Link(words=where, to=shown.examples_at))
    return Section(
        id=identity,
        heading=(finding.outcome or assertion) + by,
        about=about,
        verdict=finding.verdict,
        sentence=formatting.without_verdict(finding.sentence, finding.verdict),
        chips=tuple(_chips(finding)),
        marks=tuple(formatting.marks(finding, outcome)),
        parts=tuple(part for part in parts if part is not None),
    )


def _chips(finding: model.Finding) -> Iterator[str]:
    yield f"test: {finding.assertion.replace('_', ' ')}"
    if finding.model_endpoint:
        yield finding.model_endpoint
    if finding.tier:
        yield f"tier {finding.tier}"
    if finding.reason:
        yield formatting.reason_words(finding.reason)
    if literal := formatting.literal(finding):
        yield f"{formatting.PLAIN_RECIPE}: {literal}"


def _requirement_and_terms(finding: model.Finding) -> Iterator[Part]:
    """Yield what the test requires, and the terms on which the verdict stands."""
    if finding.description:
        # The name of a test is a claim, which would acquit beside a FAIL.
        yield f"What the test requires: {shortened(finding.description, 600)}"
    terms = facts(
        {
            "Hazard": finding.scenario.get("hazard"),
            "To be reviewed": finding.scenario.get("review_trigger"),
            "Justified": formatting.justification_line(finding),
            "Why not more": "; ".join(formatting.reasons(finding)),
            "Session": formatting.session_line(finding),
            "Sensitivity": formatting.sensitivity_line(finding),
            "Controls": formatting.controls_line(finding),
        }
    )
    if terms.rows:
        yield terms


def _figures(finding: model.Finding, judged: JudgedTable | None) -> Iterator[Part | None]:
    """Yield groups, pairs, blocks and refusals, each as a picture with its table."""
    parts = parts_table(finding)
    if parts is not None:
        yield _short(parts)
    if finding.group_results:
        yield group_chart(finding, judged) or baseline_chart(finding) or share_chart(finding)
        yield _short(group_table(finding, most_labels=8))
    if finding.pairs:
        yield effect_chart(finding)
        yield _short(pair_table(finding, pooled_pairs(finding)))
    of_signals = signals_table(finding)
    if of_signals is not None:
        yield _short(of_signals)
    yield _calibration(finding)
    yield looks_section(finding)
    yield _blocks(finding)
    yield _refusals(finding)
    yield _readers(finding)


def _reached(finding: model.Finding) -> Iterator[Part]:
    """Yield the notes, what would change the verdict, and how it was reached."""
    notes = list(finding.notes)
    for pair in pooled_pairs(finding):
        notes += [f"{pair.group_1} – {pair.group_2}: {note}" for note in pair.notes]
    if notes:
        yield Notes(items=tuple(notes))
    *how, change = finding.explain().split("\n\n")[1:] or [""]
    if change:
        yield change
    family = formatting.family_line(finding)
    if finding.test_statistic:
        family += f"; {finding.test_statistic}"
    yield Details(summary="How this was judged", parts=(*how, f"{family}."))


def finding_digest(finding: model.Finding, judged: JudgedTable | None = None) -> list[Part]:
    """A finding in short, as a failing test shows it: sentence, groups, pairs, two matched replies,
    how it was judged, and notes.
    """
    parts: list[Part] = [finding.sentence, "\n".join(formatting.sources(finding))]
    of_parts = parts_table(finding)
    if of_parts is not None:
        parts.append(_first(of_parts, of_parts.rows[:MOST_GROUPS], len(of_parts.rows), "row"))
    elif finding.group_results:
        groups = group_table(finding, most_labels=5)
        parts.append(_first(groups, groups.rows[:MOST_GROUPS], len(groups.rows), "group"))
    if finding.pairs and of_parts is None:
        every = pooled_pairs(finding)
        pairs = pair_table(finding, formatting.widest_pairs(every, MOST_PAIRS))
        parts.append(_first(pairs, pairs.rows, len(every), "pair"))
    of_signals = signals_table(finding)
    if of_signals is not None:
        parts.append(_first(of_signals, of_signals.rows[:MOST_PAIRS], len(of_signals.rows), "row"))
    if judged is not None:
        parts += _first_matched(finding, judged)
    closing = [
        formatting.family_line(finding),
        *(f"note: {note}" for note in finding.notes),
        words.led(f"{formatting.PLAIN_RECIPE}: ", formatting.literal(finding)),
        words.led("justified: ", formatting.justification_line(finding)),
    ]
    parts.append(Notes(items=tuple(filter(None, closing))))
    return parts


def _first(shown: Table, rows: Sequence[tuple[str | Entry, ...]], total: int, what: str) -> Table:
    """Return *shown* with its first *rows* of so many in *total*, without a caption."""
    more = ""
    if len(rows) < total:
        more = f"… and {words.count(total - len(rows), f'more {what}')}"
    return msgspec.structs.replace(shown, caption="", rows=tuple(rows), more=more)


def _first_matched(finding: model.Finding, judged: JudgedTable) -> list[Part]:
    """The first two replies that the report shows side by side; none where there are none."""
    from pytest_fairness.reports.judged_tables import matched_replies

    matched = matched_replies(judged, finding)
    if matched is None:
        return []
    matches, (first, *_) = matched
    called = first.about[:1].lower() + first.about[1:]
    about = f"Of {words.count(len(matches.contrast), 'matched pair')}: {called}"
    return [msgspec.structs.replace(first, about=about)]


def _short(shown: Table) -> Part:
    """A table that stands open where it has few rows."""
    if len(shown.rows) <= MOST_OPEN:
        return shown
    return Details(summary=f"{shown.caption}: all {len(shown.rows)}", parts=(shown,))


def _refusals(finding: model.Finding) -> Part | None:
    """Return what became of the trials by group, open where that raises an alarm; None where all
    have an outcome.
    """
    picture = refusal_chart(finding)
    if picture is None:
        return None
    named, *_ = picture.bars.values()  # all groups have the same

    def share(name: str) -> Callable[[str], str]:
        return lambda group: percent(picture.bars[group][name])

    columns: Columns = {
        _grouping(finding): str,
        **{name: share(name) for name in named},
    }
    figures = table("What became of the trials, by group", picture.bars, columns)
    name = "Refusals and missing answers"
    others = (pair.verdict for pair in finding.pairs if pair.metric != finding.outcome)
    if finding.reason is model.Reason.DIFFERENTIAL_REFUSAL or set(model.ALARMS) & set(others):
        return Section(heading=name, parts=(picture, figures))
    return Details(summary=name, parts=(picture, figures))


def _readers(finding: model.Finding) -> Part | None:
    """Return what read the replies of each group, and how well by a person's labels; None where
    rules read them all and nobody has labelled any.
    """
    read_by: Any = finding.details.get("read_by") or {}
    labels: Any = finding.details.get("labels") or {}
    if not labels and set(read_by) <= {"rule"}:
        return None
    parts: list[Part] = []
    if read_by:
        parts.append(_read_by_table(read_by))
    for by, of_groups in labels.items():
        parts.append(_labels_table(by, of_groups))
    return Details(summary="Who read the replies", parts=tuple(parts))


def _read_by_table(read_by: Mapping[str, Mapping[str, int]]) -> Table:
    """A row a group: how many of its replies each reader read."""
    groups = dict.fromkeys(group for counts in read_by.values() for group in counts)

    def of_reader(reader: str) -> Callable[[str], str]:
        return lambda group: f"{read_by[reader].get(group, 0):,}"

    columns: Columns = {"group": str, **{reader: of_reader(reader) for reader in read_by}}
    return table("Replies by what read them", list(groups), columns)


def _labels_table(by: str, of_groups: Mapping[str, Mapping[str, Any]]) -> Table:
    """A row a group: how far its readings agree with the labels of persons."""
    columns: Columns = {
        by: str,
        "labels": lambda group: f"{of_groups[group]['labels']:,}",
        "agree": lambda group: f"{of_groups[group]['agree']:,}",
    }
    for share in ("precision", "recall"):
        if any(share in facts for facts in of_groups.values()):
            columns[share] = _share_of(of_groups, share)
    return table("Readings beside a person's labels", list(of_groups), columns)


def _share_of(of_groups: Mapping[str, Mapping[str, Any]], name: str) -> Callable[[str], str]:
    """Return what shows the share *name* of a group, with its interval."""

    def shown(group: str) -> str:
        share = of_groups[group].get(name)
        if share is None:
            return words.NOTHING
        return f"{percent(share['share'])} ({words.percents(share['low'], share['high'])})"

    return shown


def _matched(finding: model.Finding, judged: JudgedTable, replies: Replies) -> Part | None:
    """Replies that differ in the person alone, side by side; on request where nothing is wrong."""
    from pytest_fairness.reports.judged_tables import chosen_how, matched_replies

    matches = matched_replies(judged, finding, replies)
    if matches is None:
        return None
    parts: tuple[Part, ...] = (chosen_how(finding, matches[0]), *matches[1])
    if finding.verdict is model.Verdict.PASS:
        return Details(summary="Matched replies", parts=parts)
    return Section(heading="Matched replies", parts=parts)


# ---------------------------------------------------------------- tables


def group_table(finding: model.Finding, *, most_labels: int) -> Table:
    """Return what was found in each group."""
    groups = finding.group_results
    labels = _categories(finding)[:most_labels]

    def shown(figure: float | None) -> str:
        return formatting.value(figure, finding)

    def share(label: str) -> Callable[[model.GroupResult], str]:
        return lambda group: percent(group.shares.get(label))

    def no_answer(group: model.GroupResult) -> str:
        return part_of(
            group.unscored, group.n + group.refused + group.undetermined + group.unscored
        )

    def refused(group: model.GroupResult) -> str:
        text = str(group.refused)
        if group.refused and group.refusal_rate:
            text = f"{group.refused} ({percent(group.refusal_rate)})"
        first = finding.refusal_rates.get(FIRST_ASK.format(group.group))
        if first is None:
            return text
        return f"{text}, first ask {percent(first)}"

    columns: list[tuple[str, Callable[[model.GroupResult], str]]] = [
        ("n", lambda group: str(group.n))
    ]
    if finding.cluster is not None:
        columns.append((formatting.plural(finding.cluster), lambda group: str(group.clusters)))
    if not labels or any(group.value is not None for group in groups):
        columns.append((_value_title(finding), lambda group: shown(group.value)))
        columns.append(("95 % interval", lambda group: interval(group.low, group.high, shown)))
    columns += [*((label, share(label)) for label in labels), ("refused", refused)]
    if any(group.unscored for group in groups):
        columns += [("no answer", no_answer)]
    caption = "The groups"
    if finding.assertion == "baseline":
        caption = "The scores now and as approved"
    return table(caption, groups, {_grouping(finding): _name_of_group, **dict(columns)})


def _grouping(finding: model.Finding) -> str:
    return finding.protected_class or "group"


def _name_of_group(group: model.GroupResult) -> str:
    return group.group


def _value_title(finding: model.Finding) -> str:
    """Return what the values of groups are called: ``rate``, ``mean``, ``mean, words``."""
    if formatting.is_rate(finding):
        return "rate"
    return f"mean{words.led(', ', finding.unit)}"


def _categories(finding: model.Finding) -> list[str]:
    """The labels of a categorical outcome, most frequent first."""
    totals: Counter[str] = Counter()
    for group in finding.group_results:
        totals.update(dict(group.shares))
    return sorted(totals, key=lambda label: (-totals[label], label))


def parts_table(finding: model.Finding) -> Table | None:
    """Return the parts of a table that is compared in parts, a row each, the most severe first; None
    for one that is compared as a whole.
    """
    parts: Any = finding.details.get("each")
    if not parts:
        return None

    def verdict(row: Mapping[str, Any]) -> Entry:
        reason = None
        if row["reason"]:
            reason = model.Reason(row["reason"])
        return Entry(verdict=model.Verdict(row["verdict"]), reason=reason)

    rows = sorted(
        parts["rows"],
        key=lambda row: (-model.Verdict(row["verdict"]).severity, row["corrected_p_value"]),
    )
    columns: Columns = {
        parts["column"]: lambda row: row["label"],
        "pair": lambda row: f"{row['group_1']} – {row['group_2']}",
        **_ratio_column(rows),
        "effect d": lambda row: effect(row["effect"]),
        "interval": lambda row: interval(row["effect_low"], row["effect_high"], effect),
        "p": lambda row: p_value(row["p_value"]),
        "corrected": lambda row: p_value(row["corrected_p_value"]),
        "verdict": verdict,
    }
    several = len({row["metric"] for row in rows}) > 1
    if several:
        columns["on"] = lambda row: row["metric"]
    return table(f"Each {parts['column']}", rows, columns, words=("pair", "on"))


def _ratio_column(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Return the column of impact ratios, where any of *rows* has one."""
    if not any("impact_ratio" in row for row in rows):
        return {}
    return {"ratio": lambda row: ratio(row.get("impact_ratio"))}


def _calibration(finding: model.Finding) -> Part | None:
    """Return who was observed and expected at each score, a row a group and bin; None of a finding
    that is about no score.
    """
    calibration: Any = finding.details.get("calibration")
    if not calibration:
        return None
    score = calibration["score"]
    columns: Columns = {
        "group": lambda row: row["group"],
        score: lambda row: row["bin"],
        "n": lambda row: f"{row['n']:,}",
        "observed": lambda row: percent(row["observed"]),
        "95 % interval": lambda row: words.percents(row["low"], row["high"]),
        "expected by all": lambda row: percent(row["expected"]),
    }
    if "score" in calibration["rows"][0]:
        columns["mean score"] = lambda row: f"{row['score']:.3g}"
    caption = f"Observed and expected at each {score}"
    return _short(table(caption, calibration["rows"], columns, words=("group", score)))


def pooled_pairs(finding: model.Finding) -> Sequence[model.PairResult]:
    """Return the pairs of *finding* without those that stand for one signal of several."""
    return [pair for pair in finding.pairs if not of_one_signal(pair, finding.protected_class)]


def signals_table(finding: model.Finding) -> Table | None:
    """Return each pair where each signal conveys it, alarms and the largest effects first; None for
    a class that is judged without its signals.
    """
    signals: Any = finding.details.get("signals")
    if not signals:
        return None
    rows = sorted(signals["rows"], key=lambda row: (not row["alarm"], -abs(row["effect"])))
    columns: Columns = {
        signals["column"]: lambda row: row["signal"].replace("_", " "),
        "pair": lambda row: f"{row['group_1']} – {row['group_2']}",
        "effect d": lambda row: effect(row["effect"]),
        "interval": lambda row: interval(row["effect_low"], row["effect_high"], effect),
        "p": lambda row: p_value(row["p_value"]),
        "corrected": lambda row: p_value(row["corrected_p_value"]),
        "alarm": lambda row: row["alarm"] or words.NOTHING,
    }
    caption = "Each signal by itself, which can raise the alarm and never has to pass"
    return table(caption, rows, columns, words=("pair",))


def _statistic(pair: model.PairResult, name: str) -> float | None:
    return as_number(pair.statistics.get(name))


def pair_table(finding: model.Finding, pairs: Sequence[model.PairResult]) -> Table:
    """Each of *pairs* with its figures; what it was compared on, where there are several."""

    def score(name: str) -> Callable[[model.PairResult], str]:
        return lambda pair: formatting.value(_statistic(pair, name), finding)

    def verdict(pair: model.PairResult) -> Entry:
        return Entry(verdict=pair.verdict, reason=pair.reason)

    caption = "Each pair of groups"
    columns: Columns = {"pair": lambda pair: f"{pair.group_1} – {pair.group_2}"}
    if len({pair.metric for pair in finding.pairs}) > 1:
        columns["on"] = lambda pair: pair.metric
    if finding.assertion == "baseline":
        caption = "Approved against now"
        columns = {
            "scope": lambda pair: pair.metric,
            "approved": score("approved"),
            "now": score("now"),
            "change": lambda pair: effect(pair.difference),
            "margin": score("margin"),
        }
    elif finding.assertion == FOUR_FIFTHS:
        low = "impact_ratio_low"
        high = "impact_ratio_high"
        columns |= {
            "ratio": lambda pair: ratio(_statistic(pair, "impact_ratio")),
            "95 % interval": lambda pair: interval(
                _statistic(pair, low), _statistic(pair, high), ratio
            ),
        }
    else:
        levels = [pair.confidence for pair in finding.pairs]
        columns |= {
            "effect d": lambda pair: effect(pair.effect),
            of_confidence(levels): lambda pair: formatting.interval_at(
                interval(pair.effect_low, pair.effect_high, effect), pair.confidence, levels
            ),
        }
    columns |= {
        "p": lambda pair: p_value(pair.p_value),
        "corrected": lambda pair: p_value(pair.corrected_p_value),
    }
    return table(caption, pairs, columns | {"verdict": verdict}, words=("on",))


def _blocks(finding: model.Finding) -> Part | None:
    """Each pair of groups within each block; None where there are no blocks. The picture stands
    open where the blocks disagree on a pair.
    """
    rows = _block_rows(finding)
    picture = block_chart(finding)
    if picture is None:
        return None
    left_out = finding.details.get("by_block_left_out")
    summary = f"The effect in each {finding.block}"
    if isinstance(left_out, int) and left_out:
        summary += f": the {len(rows)} least likely by chance of {len(rows) + left_out}"
    columns: Columns = {
        finding.block or "block": lambda row: str(row["block"]),
        "pair": _pair_of,
        "n": lambda row: f"{row['n_1']}, {row['n_2']}",
        "effect d": lambda row: effect(row["effect"]),
        _interval_of_blocks(finding): lambda row: interval(
            row["effect_low"], row["effect_high"], effect
        ),
        "p": lambda row: p_value(row["p_value"]),
        "alarm": lambda row: words.yes_or_no(row.get("alarm")),
    }
    figures = table(
        f"Each pair of groups in each {finding.block} by itself",
        rows,
        columns,
        words=("pair", "alarm"),
    )
    if not _disagreeing(rows):
        return Details(summary=summary, parts=(picture, figures))
    heading = f"The effect is not the same in every {finding.block}"
    return Section(heading=heading, parts=(picture, Details(summary=summary, parts=(figures,))))


def _interval_of_blocks(finding: model.Finding) -> str:
    """Return what the interval of an effect within a block is called: its level is the finding's."""
    return of_confidence(pair.confidence for pair in finding.pairs)


def _block_rows(finding: model.Finding) -> list[dict[str, Any]]:
    blocks: Any = finding.details.get("by_block")
    numbers = ("p_value", "effect", "effect_low", "effect_high")
    rows = []
    for block in blocks or ():
        row = dict(block)
        for key in numbers:
            row[key] = model.number(row.get(key))
        rows.append(row)
    return rows


def _pair_of(row: Mapping[str, Any]) -> str:
    return f"{row['group_1']} – {row['group_2']}"


def _disagreeing(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """The pairs of which the intervals in two blocks have nothing in common."""
    ends: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        low, high = row["effect_low"], row["effect_high"]
        if low is not None and high is not None:
            lows, highs = ends.setdefault(_pair_of(row), ([], []))
            lows.append(low)
            highs.append(high)
    return {pair for pair, (lows, highs) in ends.items() if max(lows) > min(highs)}


def _examples(finding: model.Finding, examples: Examples) -> list[Part]:
    groups = [group.group for group in finding.group_results if group.group in examples.counted]

    def part(kind: str) -> Callable[[str], str]:
        return lambda group: part_of(
            examples.counted[group][kind], examples.counted[group]["trials"]
        )

    def endings(group: str) -> str:
        return ", ".join(
            f"{shortened(how, 60)}: {n}" for how, n in examples.endings[group].most_common()
        )

    columns: Columns = {
        _grouping(finding): str,
        "trials": lambda group: f"{examples.counted[group]['trials']:,}",
        "answered": part("answered"),
        "refused": part("refused"),
        "without an answer": part("unanswered"),
        "asked again": part("retried"),
        "not a whole answer": endings,
    }
    caption = (
        "What became of the trials of all tests that asked this endpoint about these groups; "
        "a choice counts for each group that it lists"
    )
    shown = []
    for group in groups:
        dialogues = tuple(map(dialogue, examples.trials(group)))
        if dialogues:
            shown.append(Section(heading=group, parts=dialogues))
    counted = table(caption, groups, columns, words=("not a whole answer",))
    if not shown:
        return [counted]
    summary = "Examples: what was asked and answered, by group"
    return [counted, Details(summary=summary, parts=tuple(shown))]


# ---------------------------------------------------------------- looks


def looks_section(finding: model.Finding) -> Section | None:
    """Return the way of the deciding pair over the looks, as a picture with its table, and what the
    looks took; None where a single one was planned.
    """
    looks = looks_of(finding)
    if looks is None or len(looks["planned"]) < 2:
        return None
    chart = looks_chart(finding)
    parts: list[Part] = []
    if chart is not None:
        parts.append(chart)
    parts += [_looks_table(looks), _looks_facts(looks)]
    return Section(heading="The looks", parts=tuple(parts))


def looks_chart(finding: model.Finding) -> Forest | None:
    """The deciding pair at each look, with the interval that the look reads, against what a PASS
    needs; None where there is no such pair.
    """
    looks = looks_of(finding)
    if looks is None or not looks["way"]:
        return None
    last: Mapping[str, Any] = looks["way"][-1]
    pair = f"{last['group_1']} – {last['group_2']}"
    chart = Forest(
        title=f"{pair} at each look",
        axis=f"{last['measure']}, {pair}",
        rows=tuple(_row_of_look(looks, look, step) for look, step in _steps(looks) if step),
        caption=_READ + _RED,
    )
    if last["measure"] == RATIO:
        needs = "PASS needs one that begins at two thirds or above. "
        return msgspec.structs.replace(chart, lines=_RATIOS, caption=_READ + needs + _RED)
    if finding.assertion == "arm_reduces_disparity":
        return msgspec.structs.replace(chart, lines=_LINES[:1], around=0.0, least=0.7, most=2.5)
    chart = msgspec.structs.replace(
        chart, caption=f"{_READ}PASS needs the whole of one inside the dashed lines. {_RED}"
    )
    if last["measure"] == DIFFERENCE:
        margin = _margin(finding)
        lines = (
            Reference(value=0, solid=True),
            Reference(value=-margin, words=f"−{margin:g}"),
            Reference(value=margin, words=f"+{margin:g}"),
        )
        return msgspec.structs.replace(
            chart, lines=lines, around=0.0, least=1.3 * margin, most=6 * margin
        )
    return _effects(chart.title, chart.axis, chart.rows, chart.caption)


def _row_of_look(
    looks: Mapping[str, Any], look: Mapping[str, Any], step: Mapping[str, Any]
) -> ForestRow:
    red = f"p {p_value(step['corrected_p_value'])} (red below {_level(look['red'])})"
    return ForestRow(
        label=f"look {look['number']}: {look['names']} {looks['unit']}",
        value=_drawable(step["effect"]),
        low=_drawable(step["low"]),
        high=_drawable(step["high"]),
        verdict=model.Verdict(step["verdict"]),
        words=f"{_value_of_step(step)}, {red}",
    )


#: A look that was made, with the figures of the deciding pair there.
_Step = tuple[Mapping[str, Any], Mapping[str, Any] | None]


def _steps(looks: Mapping[str, Any]) -> Iterator[_Step]:
    """Yield each look that was made, with the step of the deciding pair there, if it has one."""
    steps = {step["names"]: step for step in looks["way"]}
    for look in looks["made"]:
        yield look, steps.get(look["names"])


def _shown_as(step: Mapping[str, Any]) -> Callable[[float], str]:
    """Return what writes the figures of *step*."""
    shows: dict[str, Callable[[float], str]] = {
        RATIO: ratio,
        DIFFERENCE: lambda value: words.signed(f"{value:+.3g}"),
    }
    return shows.get(step["measure"], effect)


def _drawable(value: object) -> float | None:
    """Return *value* as it can stand in a picture; None where it is infinite or not there."""
    shown = model.number(value)
    if shown is None or not math.isfinite(shown):
        return None
    return shown


def _margin(finding: model.Finding) -> float:
    """Return the margin of an equivalence, in the outcome's own unit."""
    margins = (_statistic(pair, "margin") for pair in finding.pairs)
    return max(filter(None, margins), default=1.0)


def _level(level: float) -> str:
    """``.0054``, ``.000097``: with the figures that tell small levels apart."""
    return f"{Decimal(f'{level:.2g}'):f}".removeprefix("0")


def _looks_table(looks: Mapping[str, Any]) -> Table:
    """A row a look that was made: the deciding pair there, beside the levels of the look."""
    measure = EFFECT
    caption = "The looks, and their levels"
    if looks["way"]:
        last = looks["way"][-1]
        measure = str(last["measure"])
        pair = f"{last['group_1']} – {last['group_2']}"
        caption = f"{pair} at each look, beside the levels of the look"

    def of_pair(show: Callable[[Mapping[str, Any]], str | Entry]) -> Callable[[_Step], str | Entry]:
        def shown(row: _Step) -> str | Entry:
            step = row[1]
            if step is None:
                return words.NOTHING
            return show(step)

        return shown

    columns: Columns = {
        "look": lambda row: f"{row[0]['number']} of {row[0]['of']}",
        str(looks["unit"]).partition(" ")[0]: lambda row: str(row[0]["names"]),
        measure: of_pair(_value_of_step),
        "interval": of_pair(_interval_of_step),
        "at": lambda row: words.confidence(1 - 2 * row[0]["green"]),
        "corrected p": of_pair(lambda step: p_value(step["corrected_p_value"])),
        "red below": lambda row: _level(row[0]["red"]),
        "verdict": of_pair(lambda step: Entry(verdict=model.Verdict(step["verdict"]))),
    }
    return table(caption, list(_steps(looks)), columns)


def _value_of_step(step: Mapping[str, Any]) -> str:
    value = model.number(step["effect"])
    if value is None:
        return words.NOTHING
    return _shown_as(step)(value)


def _interval_of_step(step: Mapping[str, Any]) -> str:
    return interval(model.number(step["low"]), model.number(step["high"]), _shown_as(step))


def _looks_facts(looks: Mapping[str, Any]) -> Facts:
    """Return what the looks took, what they may spend, and how near to red the finding came."""
    made: list[dict[str, Any]] = looks["made"]
    planned: list[int] = looks["planned"]
    trials = made[-1].get("trials")
    first = made[0].get("trials")
    calls = ""
    if trials and first:
        # Nobody is left out of the first look, so that it shows what the last one would take.
        most = max(trials, round(first * planned[-1] / made[0]["names"]))
        calls = f"{trials:,} of at most {most:,}"
    smallest = looks["smallest_budget"]
    needed = ""
    if smallest is not None:
        needed = _level(smallest)
    early = ""
    if looks["stopped_early"]:
        early = EARLY.partition(": ")[2]
    return facts(
        {
            "Looks planned": f"{words.listed(map(str, planned))} {looks['unit']}",
            "Looks made": f"{len(made)} of {len(planned)}",
            "Trials": calls,
            "Chance of red for a fair system, at most": _level(looks["red_budget"]),
            "Chance of green for a pair at the margin, at most": _level(looks["green_budget"]),
            "Smallest chance at which it would have been red": needed,
            "Stopped early": early,
            "Not asked to the end": looks["stopped"],
        }
    )


# ---------------------------------------------------------------- pictures


def group_chart(finding: model.Finding, judged: JudgedTable | None = None) -> Forest | None:
    """Each group's mean or rate with its 95 % interval, and above it, where there is *judged*, that
    of each name; with the four-fifths line where that is the rule.
    """
    groups = [group for group in finding.group_results if group.value is not None][:MOST_ROWS]
    if not groups or finding.assertion == "baseline":
        return None
    dots = _dots(finding, judged)
    caption = _group_caption(finding, dots)
    lines: tuple[Reference, ...] = ()
    if finding.assertion == FOUR_FIFTHS:
        limit = _four_fifths_limit(finding, groups)
        lines = (Reference(value=limit, words="four fifths"),)
        caption += (
            f" Left of the dashed line, a rate is below four fifths of the reference ({limit:.1%})."
        )
    worse = _worse_off(finding)
    rows = []
    for group in groups:
        words = formatting.value(group.value, finding)
        verdict = None
        if group.group == worse:
            words += " worse off"
            verdict = finding.verdict
        row = ForestRow(
            label=group.group,
            value=group.value,
            low=group.low,
            high=group.high,
            verdict=verdict,
            words=words,
            dots=dots.get(group.group, ()),
        )
        rows.append(row)
    axis = _group_axis(finding)
    return Forest(
        title=f"{axis} by {_grouping(finding)}",
        axis=axis,
        rows=tuple(rows),
        lines=lines,
        rate=formatting.is_rate(finding),
        caption=caption,
    )


def _dots(
    finding: model.Finding, judged: JudgedTable | None
) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return the value of each name, by the group; none where nothing is there to read them from."""
    if judged is not None:
        with suppress(FairnessError, KeyError, TypeError, ValueError):
            return judged.dots(finding)
    return {}


def _group_caption(finding: model.Finding, dots: Mapping[str, Sequence[tuple[str, float]]]) -> str:
    """Return what the marks, the lines and the *dots* of a picture of groups are."""
    caption = "Marks are group values, lines their 95 % intervals"
    if finding.cluster:
        caption += f" with {formatting.plural(finding.cluster)} as the unit of evidence"
    if not dots:
        return f"{caption}."
    of_rows = "mean"
    if formatting.is_rate(finding):
        of_rows = "rate"
    about = f"Each dot above is the {of_rows} of one {finding.cluster or 'row'}"
    most = max(map(len, dots.values()))
    if most > MOST_DOTS:
        about += f" ({MOST_DOTS} of {most:,} shown)"
    return f"{caption}. {about}."


def _four_fifths_limit(finding: model.Finding, groups: Sequence[model.GroupResult]) -> float:
    """Return four fifths of the rate of the reference group, or else of the highest."""
    named: Any = finding.details.get("reference")
    references = [named]
    if isinstance(named, dict):
        references = list(named.values())
    rates = [(group.group, group.value or 0.0) for group in groups]
    declared = [rate for group, rate in rates if group in references]
    if len(declared) == 1:
        return 0.8 * declared[0]
    return 0.8 * max(rate for _, rate in rates)


def _worse_off(finding: model.Finding) -> str | None:
    """Return the group that the deciding pair says is worse off: of the pairs at the finding's own
    verdict the one with the lowest p.
    """
    if finding.verdict in (model.Verdict.PASS, model.Verdict.INCONCLUSIVE):
        return None
    pairs = [pair for pair in finding.pairs if pair.verdict is finding.verdict and pair.worse_off]
    if not pairs:
        return None
    deciding = min(pairs, key=lambda pair: (pair.corrected_p_value, -abs(pair.effect)))
    return deciding.worse_off


def _group_axis(finding: model.Finding) -> str:
    if formatting.is_rate(finding):
        return f"share of {finding.outcome}"
    return words.bracketed(f"mean {finding.outcome}", finding.unit)


def effect_chart(finding: model.Finding) -> Forest | None:
    """Each pair's effect with its interval, against no effect and the ±.2 and ±.5 of the verdict."""
    every = pooled_pairs(finding)
    pairs = formatting.widest_pairs(every, MOST_ROWS)
    if not pairs or finding.assertion in ("baseline", FOUR_FIFTHS):
        return None
    several = len({pair.metric for pair in every}) > 1
    intervals = of_confidence((pair.confidence for pair in every), "intervals")
    caption = (
        f"Lines are {intervals}. Within ±0.2 an effect is trivial; PASS needs its interval "
        "within ±0.5."
    )
    if len(pairs) < len(every):
        caption += f" The {len(pairs)} most telling of {len(every)} pairs; the table has them all."
    rows = []
    for pair in pairs:
        label = f"{pair.group_1} – {pair.group_2}"
        if several:
            label += f" ({pair.metric})"
        row = ForestRow(
            label=label,
            value=pair.effect,
            low=pair.effect_low,
            high=pair.effect_high,
            verdict=pair.verdict,
            words=f"{effect(pair.effect)} {pair.verdict}",
        )
        rows.append(row)
    axis = _DIRECTION
    if finding.kind is model.OutcomeKind.CATEGORICAL:
        axis = "effect d: how far the two distributions lie apart"
    return _effects("Effect of each pair of groups", axis, tuple(rows), caption)


def block_chart(finding: model.Finding) -> Forest | None:
    """Each pair's effect within each block; of the pairs alone on which the blocks disagree, where
    there are such. None where there are no blocks.
    """
    blocks = _block_rows(finding)
    disagreeing = _disagreeing(blocks)
    rows = []
    for row in blocks:
        if disagreeing and _pair_of(row) not in disagreeing:
            continue
        verdict = None
        if row.get("alarm"):
            verdict = model.Verdict.FLAG
        drawn = ForestRow(
            label=str(row["block"]),
            value=_drawable(row["effect"]),
            low=row["effect_low"],
            high=row["effect_high"],
            verdict=verdict,
            words=effect(row["effect"]),
            part=_pair_of(row),
        )
        rows.append(drawn)
    about = (
        f"Lines are {_interval_of_blocks(finding)}s; outside ±0.5 an effect by itself may raise "
        "the alarm."
    )
    if rows:
        return _effects(
            f"Effect in each {finding.block}", _DIRECTION, tuple(rows[:MOST_ROWS]), about
        )
    return None


def _effects(title: str, axis: str, rows: tuple[ForestRow, ...], caption: str) -> Forest:
    return Forest(
        title=title, axis=axis, rows=rows, lines=_LINES, band=(-0.2, 0.2), around=0.0, least=0.7, most=2.5,
        caption=caption,
    )  # fmt: skip


def baseline_chart(finding: model.Finding) -> Chart | None:
    """Each scope's approved score as a ring, the score now as a mark."""
    rows = []
    for pair, approved, now in formatting.scopes(finding):
        change = f"{formatting.value(approved, finding)} → {formatting.value(now, finding)}"
        row = ForestRow(
            label=pair.metric, value=now, before=approved, verdict=pair.verdict, words=change
        )
        rows.append(row)
    axis = f"{words.bracketed(finding.outcome, finding.unit)}: ring approved, filled now"
    if rows:
        return Forest(
            title=f"{finding.outcome}: approved and now", axis=axis, rows=tuple(rows[:MOST_ROWS])
        )
    return None


_ENDINGS = ("scored", "refused", "no answer")


def refusal_chart(finding: model.Finding) -> Bars | None:
    """Return what share of each group's trials was refused, or came to no answer, beside an
    outcome; None without such.
    """
    bars = {}
    for group in finding.group_results[:MOST_ROWS]:
        numbers = (group.n, group.refused, group.undetermined + group.unscored)
        total = max(sum(numbers), 1)
        bars[group.group] = {
            name: number / total for name, number in zip(_ENDINGS, numbers, strict=True)
        }
    kept = [name for name in _ENDINGS if any(parts[name] for parts in bars.values())]
    if (
        finding.kind is model.OutcomeKind.REFUSAL
        or finding.assertion == "baseline"
        or not set(kept) - {"scored"}
    ):
        return None
    shown = {group: {name: parts[name] for name in kept} for group, parts in bars.items()}
    title = f"What became of the trials, by {_grouping(finding)}"
    return Bars(title=title, axis="share of the trials of each group", bars=shown)


def share_chart(finding: model.Finding) -> Chart | None:
    """The distribution of a label in each group."""
    bars = {}
    labels = _categories(finding)[:7]
    groups = [group for group in finding.group_results if group.shares]
    for group in groups[:MOST_ROWS]:
        parts = {label: group.shares.get(label, 0.0) for label in labels}
        rest = 1.0 - sum(parts.values())
        if rest > 1e-9:
            parts["other"] = parts.get("other", 0.0) + rest
        bars[group.group] = parts
    title = f"{finding.outcome} by {_grouping(finding)}"
    if bars:
        return Bars(title=title, axis=f"share of each {finding.outcome}", bars=bars)
    return None
