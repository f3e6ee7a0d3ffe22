"""A finding as a section: its sentence, its groups and pairs as pictures with their tables, and how it was reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pytest_fairness.model import Finding, GroupResult, OutcomeKind, PairResult, Verdict
from pytest_fairness.reports import formatting
from pytest_fairness.reports.charts import Bar, Bars, Chart, Forest, ForestRow, Reference
from pytest_fairness.reports.escaping import shortened
from pytest_fairness.reports.examples import Examples, dialogue
from pytest_fairness.reports.formatting import between, effect, p_value, part_of, percent
from pytest_fairness.reports.sections import Columns, Details, Entry, Facts, Link, Notes, Part, Section, Table, table

MOST_ROWS = 40


def finding_section(
    finding: Finding, number: int, *, nodeid: str, outcome: str, examples: Examples | None, examples_at: int
) -> Section:
    """The card of a finding. *examples* are those of its groups; they stand in the card of number *examples_at*."""
    parts: list[Part] = [shortened(finding.description, 600)] if finding.description else []
    beside = {
        "Justified": formatting.justification_line(finding.justification) if finding.justification else "",
        "Session": formatting.session_line(finding),
        "Sensitivity": formatting.sensitivity_line(finding),
    }
    if any(beside.values()):
        parts.append(Facts(rows=tuple((name, text) for name, text in beside.items() if text)))
    if finding.group_results:
        picture = group_chart(finding) or baseline_chart(finding) or share_chart(finding)
        parts += [*([picture] if picture else []), group_table(finding, most_labels=8)]
    if finding.pairs:
        effects = effect_chart(finding)
        parts += [*([effects] if effects else []), pair_table(finding, finding.pairs, notes=True)]
    parts += _blocks(finding)
    family = formatting.family_line(finding) + (f"; {finding.test_statistic}" if finding.test_statistic else "")
    parts += [*finding.explain().split("\n\n")[1:], f"{family}."]
    if finding.notes:
        parts.append(Section(heading="Notes", parts=(Notes(items=finding.notes),)))
    if examples is not None and number == examples_at:
        parts += _examples(finding, examples)
    elif examples is not None:
        pointer = f"Examples of these groups stand under finding {examples_at}."
        parts.append(Link(words=pointer, to=f"finding-{examples_at}"))
    about = finding.outcome or finding.assertion.replace("_", " ")
    literal = formatting.literal(finding)
    chips = [
        finding.assertion.replace("_", " "),
        finding.model_endpoint or "",
        f"tier {finding.tier}" if finding.tier else "",
        formatting.reason_words(finding.reason) if finding.reason else "",
        f"literal specification: {literal}" if literal else "",
    ]
    return Section(
        id=f"finding-{number}",
        heading=about + (f" by {finding.protected_class}" if finding.protected_class else ""),
        about=f"Finding {number}" + (f" · {nodeid}" if nodeid else ""),
        verdict=finding.verdict,
        sentence=formatting.without_verdict(finding.sentence, finding.verdict),
        chips=tuple(chip for chip in chips if chip),
        marks=tuple(formatting.marks(finding, outcome)),
        parts=tuple(parts),
    )


# ---------------------------------------------------------------- tables


def group_table(finding: Finding, *, most_labels: int) -> Table:
    """What was found in each group."""
    groups = finding.group_results
    columns: list[tuple[str, Callable[[GroupResult], str]]] = [("n", lambda group: str(group.n))]
    if finding.cluster is not None:
        columns.append((formatting.plural(finding.cluster), lambda group: str(group.clusters)))
    labels = formatting.categories(finding)[:most_labels]
    if not labels or any(group.value is not None for group in groups):
        columns.append((formatting.value_title(finding), lambda group: formatting.value(group.value, finding)))
        columns.append(
            ("95 % interval", lambda group: between(group.low, group.high, lambda e: formatting.value(e, finding)))
        )
    columns += [(label, _share(label)) for label in labels]
    columns.append(("refused", formatting.refused))
    if any(group.unscored for group in groups):
        columns.append(("no answer", formatting.no_answer))
    return Table(
        caption="The scores now and as approved" if finding.assertion == "baseline" else "The groups",
        head=(finding.protected_class or "group", *(title for title, _ in columns)),
        rows=tuple((group.group, *(cell(group) for _, cell in columns)) for group in groups),
    )


def _share(label: str) -> Callable[[GroupResult], str]:
    return lambda group: percent(group.shares.get(label))


def pair_table(finding: Finding, pairs: Sequence[PairResult], *, notes: bool = False) -> Table:
    """Each of *pairs* with its figures; what it was compared on, where there are several; its *notes* on request."""
    baseline = finding.assertion == "baseline"
    several = not baseline and len({pair.metric for pair in finding.pairs}) > 1
    columns = formatting.pair_columns(finding)
    rows = []
    for pair in pairs:
        name = (pair.metric,) if baseline else (f"{pair.group_1} – {pair.group_2}",)
        verdict = Entry(verdict=pair.verdict, reason=pair.reason, small=pair.notes if notes else ())
        rows.append((*name, *((pair.metric,) if several else ()), *(cell(pair) for _, cell in columns), verdict))
    first = ("scope",) if baseline else ("pair", "on") if several else ("pair",)
    return Table(
        caption="Approved against now" if baseline else "Each pair of groups",
        head=(*first, *(title for title, _ in columns), "verdict"),
        rows=tuple(rows),
        words=("on",),
    )


def _blocks(finding: Finding) -> list[Part]:
    rows = formatting.by_block(finding)
    if not rows:
        return []
    left_out = finding.details.get("by_block_left_out")
    summary = f"The effect in each {finding.block}"
    if isinstance(left_out, int) and left_out:
        summary += f": the {len(rows)} least likely by chance of {len(rows) + left_out}"
    columns: Columns = {
        finding.block or "block": lambda row: str(row["block"]),
        "pair": lambda row: f"{row['group_1']} – {row['group_2']}",
        "n": lambda row: f"{row['n_1']}, {row['n_2']}",
        "effect d": lambda row: effect(row["effect"]),
        "90 % interval": lambda row: between(row["effect_low"], row["effect_high"], effect),
        "p": lambda row: p_value(row["p_value"]),
        "alarm": lambda row: "yes" if row.get("alarm") else "no",
    }
    caption = f"Each pair of groups in each {finding.block} by itself"
    figures = table(caption, rows, columns, words=("pair", "alarm"))
    return [Details(summary=summary, parts=(block_chart(finding, rows), figures))]


def _examples(finding: Finding, examples: Examples) -> list[Part]:
    groups = [group.group for group in finding.group_results if group.group in examples.counted]
    columns: Columns = {
        finding.protected_class or "group": lambda one: one[0],
        "trials": lambda one: f"{one[1].trials:,}",
        "answered": lambda one: part_of(one[1].answered, one[1].trials),
        "refused": lambda one: part_of(one[1].refused, one[1].trials),
        "without an answer": lambda one: part_of(one[1].unanswered, one[1].trials),
        "asked again": lambda one: part_of(one[1].retried, one[1].trials),
        "not a whole answer": lambda one: ", ".join(f"{shortened(how, 60)}: {n}" for how, n in one[1].endings.items()),
    }
    caption = "What became of the trials in the log, by group; a choice counts for each group that it lists"
    tallies = [(group, examples.tally(group)) for group in groups]
    sections = [Section(heading=group, parts=tuple(map(dialogue, examples.trials(group)))) for group in groups]
    shown = tuple(section for section in sections if section.parts)
    return [
        table(caption, tallies, columns, words=("not a whole answer",)),
        *([Details(summary="Examples: what was asked and answered, by group", parts=shown)] if shown else []),
    ]


# ---------------------------------------------------------------- pictures


def group_chart(finding: Finding) -> Chart | None:
    """Each group's mean or rate with its 95 % interval; with the four-fifths line where that is the rule."""
    groups = [group for group in finding.group_results if group.value is not None][:MOST_ROWS]
    if not groups or finding.assertion == "baseline":
        return None
    rate = formatting.is_rate(finding)
    caption = "Dots are group values, lines their 95 % intervals"
    caption += f" with {formatting.plural(finding.cluster)} as the unit of evidence." if finding.cluster else "."
    lines: tuple[Reference, ...] = ()
    if finding.assertion in formatting.RATIO_ASSERTIONS:
        limit = 0.8 * _reference(finding, groups)
        lines = (Reference(value=limit, words="four fifths"),)
        caption += f" Left of the dashed line, a rate is below four fifths of the reference ({limit:.1%})."
    worse = _worse_off(finding)
    rows = tuple(
        ForestRow(
            label=group.group,
            value=group.value,
            low=group.low,
            high=group.high,
            verdict=finding.verdict if group.group == worse else None,
            words=formatting.value(group.value, finding) + (" worse off" if group.group == worse else ""),
        )
        for group in groups
    )
    unit = f" ({finding.unit})" if finding.unit and not rate else ""
    axis = f"{'share of' if rate else 'mean'} {finding.outcome}{unit}"
    title = f"{axis} by {finding.protected_class or 'group'}"
    return Forest(title=title, axis=axis, rows=rows, lines=lines, rate=rate, caption=caption)


def effect_chart(finding: Finding) -> Chart | None:
    """Each pair's effect with its 90 % interval, against no effect and the ±.2 and ±.5 of the verdict."""
    pairs = formatting.widest_pairs(finding.pairs, MOST_ROWS)
    if not pairs or finding.assertion in ("baseline", *formatting.RATIO_ASSERTIONS):
        return None
    several = len({pair.metric for pair in finding.pairs}) > 1
    caption = "Lines are 90 % intervals. Within ±0.2 an effect is trivial; PASS needs its interval within ±0.5."
    if len(pairs) < len(finding.pairs):
        caption += f" The {len(pairs)} most telling of {len(finding.pairs)} pairs; the table has them all."
    rows = tuple(
        ForestRow(
            label=f"{pair.group_1} – {pair.group_2}" + (f" ({pair.metric})" if several else ""),
            value=pair.effect,
            low=pair.effect_low,
            high=pair.effect_high,
            verdict=pair.verdict,
            words=f"{effect(pair.effect)} {pair.verdict}",
        )
        for pair in pairs
    )
    if finding.kind is OutcomeKind.CATEGORICAL:
        axis = "effect d: how far the two distributions lie apart"
    else:
        axis = "effect d: right of 0 the first group of the pair is higher"
    return _effects("Effect of each pair of groups", axis, rows, caption)


def block_chart(finding: Finding, blocks: Sequence[dict[str, Any]]) -> Chart:
    """Each pair's effect within each block, under the name of the pair."""
    rows = []
    for row in blocks[:MOST_ROWS]:
        found = row["effect"]
        rows.append(
            ForestRow(
                label=str(row["block"]),
                value=found if found is not None and math.isfinite(found) else None,
                low=row["effect_low"],
                high=row["effect_high"],
                verdict=Verdict.FLAG if row.get("alarm") else None,
                words=effect(found),
                part=f"{row['group_1']} – {row['group_2']}",
            )
        )
    return _effects(
        f"Effect in each {finding.block}",
        "effect d: right of 0 the first group of the pair is higher",
        tuple(rows),
        "Lines are 90 % intervals; outside ±0.5 an effect by itself may raise the alarm.",
    )


def _effects(title: str, axis: str, rows: tuple[ForestRow, ...], caption: str) -> Forest:
    lines = (
        Reference(value=0, solid=True), Reference(value=-0.5, words="−0.5"), Reference(value=0.5, words="+0.5"),
    )  # fmt: skip
    return Forest(
        title=title, axis=axis, rows=rows, lines=lines, band=(-0.2, 0.2), around=0.0, least=0.7, most=2.5,
        caption=caption,
    )  # fmt: skip


def baseline_chart(finding: Finding) -> Chart | None:
    """Each scope's approved score as a ring, the score now as a mark."""
    rows = []
    for pair in finding.pairs[:MOST_ROWS] if finding.assertion == "baseline" else ():
        approved, now = formatting.statistic(pair, "approved"), formatting.statistic(pair, "now")
        if approved is not None and now is not None:
            change = f"{formatting.value(approved, finding)} → {formatting.value(now, finding)}"
            rows.append(ForestRow(label=pair.metric, value=now, before=approved, verdict=pair.verdict, words=change))
    unit = f" ({finding.unit})" if finding.unit else ""
    axis = f"{finding.outcome}{unit}: ring approved, filled now"
    title = f"{finding.outcome}: approved and now"
    return Forest(title=title, axis=axis, rows=tuple(rows)) if rows else None


def share_chart(finding: Finding) -> Chart | None:
    """The distribution of a label in each group."""
    groups = [group for group in finding.group_results if group.shares][:MOST_ROWS]
    labels = formatting.categories(finding)[:7]
    bars = []
    for group in groups if labels else ():
        parts = [(label, group.shares.get(label, 0.0)) for label in labels]
        rest = 1.0 - sum(share for _, share in parts)
        bars.append(Bar(label=group.group, parts=(*parts, *([("other", rest)] if rest > 1e-9 else []))))
    title = f"{finding.outcome} by {finding.protected_class or 'group'}"
    return Bars(title=title, axis=f"share of each {finding.outcome}", bars=tuple(bars)) if bars else None


def _worse_off(finding: Finding) -> str | None:
    """The group that the deciding pair finds worse off: the one at the finding's own verdict and lowest p."""
    at_verdict = [pair for pair in finding.pairs if pair.verdict is finding.verdict and pair.worse_off]
    if finding.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE) or not at_verdict:
        return None
    return min(at_verdict, key=lambda pair: (pair.corrected_p_value, -abs(pair.effect))).worse_off


def _reference(finding: Finding, groups: Sequence[GroupResult]) -> float:
    """The rate that the others are measured against: of the reference group, or else the highest."""
    named = finding.details.get("reference")
    references = list(named.values()) if isinstance(named, dict) else [named]
    declared = [group.value or 0.0 for group in groups if group.group in references]
    return declared[0] if len(declared) == 1 else max(group.value or 0.0 for group in groups)
