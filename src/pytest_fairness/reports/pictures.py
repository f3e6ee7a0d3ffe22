"""Inline SVG pictures of a finding. Colours are classes, so that the page's style serves light, dark and
print.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_fairness.model import Finding, GroupResult, OutcomeKind, PairResult, Verdict
from pytest_fairness.reports import figures
from pytest_fairness.reports.axes import Scale, scale, symmetric, tick_label
from pytest_fairness.reports.bars import stacked_picture
from pytest_fairness.reports.columns import clipped
from pytest_fairness.reports.drawing import LABEL, Picture, left_of, mark, picture, whisker
from pytest_fairness.reports.drawing import label as row_label
from pytest_fairness.reports.drawing import line as draw
from pytest_fairness.reports.drawing import tone as tone_of
from pytest_fairness.reports.escaping import html, shortened
from pytest_fairness.reports.forest import Line, Part, Row, forest_picture

ROW = 34
TOP = 30
RIGHT = 610
MOST_ROWS = 40


def group_picture(finding: Finding, identity: str) -> Picture | None:
    """Each group's mean or rate as a dot with its 95 % interval; with the four-fifths line where that is
    the rule.
    """
    groups = [group for group in finding.group_results if group.value is not None][:MOST_ROWS]
    if not groups or finding.assertion == "baseline":
        return None
    rate = figures.is_rate(finding)
    ends = [end for group in groups for end in (group.value, group.low, group.high)]
    line = scale(ends, left_of(group.group for group in groups), RIGHT, zero=rate)
    worse = _worse_off(finding)
    body = [_axis(line, len(groups), rate=rate)]
    caption = "Dots are group values, lines their 95 % intervals" + (
        f" with {figures.plural(finding.cluster)} as the unit of evidence." if finding.cluster else "."
    )
    if finding.assertion in figures.RATIO_ASSERTIONS:
        limit = 0.8 * _reference(finding, groups)
        body.append(_reference_line(line, limit, len(groups), "four fifths"))
        caption += f" Left of the dashed line, a rate is below four fifths of the reference ({limit:.1%})."
    for at, group in enumerate(groups):
        body.append(_group_row(finding, group, line, _middle(at), group.group == worse))
    what = f"share of {finding.outcome}" if rate else f"mean {finding.outcome}"
    label = what + (f" ({finding.unit})" if finding.unit and not rate else "")
    body.append(_axis_label(label, len(groups)))
    told = "; ".join(f"{group.group} {figures.value(group.value, finding)}" for group in groups)
    title = f"{label} by {finding.protected_class or 'group'}"
    return picture(body, _height(len(groups)), identity, title=title, description=told, caption=caption)


def effect_picture(finding: Finding, identity: str) -> Picture | None:
    """Each pair's effect with its 90 % interval, against no effect and the ±.2 and ±.5 of the verdict."""
    pairs = figures.most_telling(finding.pairs, MOST_ROWS)
    if not pairs or finding.assertion in ("baseline", *figures.RATIO_ASSERTIONS):
        return None
    ends = [end for pair in pairs for end in (pair.effect, pair.effect_low, pair.effect_high)]
    several = len({pair.metric for pair in finding.pairs}) > 1
    names = [_pair_name(pair, several) for pair in pairs]
    line = symmetric(ends, left_of(names), RIGHT, least=0.7, most=2.5)
    body = [_band(line, len(pairs)), _axis(line, len(pairs), rate=False)]
    body += [_reference_line(line, limit, len(pairs), f"{limit:+.1f}".replace("-", "−")) for limit in (-0.5, 0.5)]
    body.append(draw(line.at(0), TOP - 6, line.at(0), _bottom(len(pairs)), "zero"))
    body += [_pair_row(pair, name, line, _middle(at)) for at, (pair, name) in enumerate(zip(pairs, names, strict=True))]
    label = (
        "effect d: how far the two distributions lie apart"
        if finding.kind is OutcomeKind.CATEGORICAL
        else "effect d: right of 0 the first group of the pair is higher"
    )
    body.append(_axis_label(label, len(pairs), int(line.at(0))))
    told = "; ".join(f"{p.group_1} – {p.group_2} {figures.effect(p.effect)} {p.verdict}" for p in pairs)
    caption = "Lines are 90 % intervals. Within ±0.2 an effect is trivial; PASS needs its interval within ±0.5."
    if len(pairs) < len(finding.pairs):
        caption += f" The {len(pairs)} most telling of {len(finding.pairs)} pairs; the table has them all."
    title = "Effect of each pair of groups"
    return picture(body, _height(len(pairs)), identity, title=title, description=told, caption=caption)


def block_picture(finding: Finding, identity: str) -> Picture | None:
    """Each pair's effect within each block, with its 90 % interval, under the name of the pair."""
    rows = figures.by_block(finding)[:MOST_ROWS]
    parts: dict[str, list[Row]] = {}
    for row in rows:
        effect = row["effect"]
        parts.setdefault(f"{row['group_1']} – {row['group_2']}", []).append(
            Row(
                label=str(row["block"]),
                value=effect if effect is not None and math.isfinite(effect) else None,
                low=row["effect_low"],
                high=row["effect_high"],
                verdict=Verdict.FLAG if row.get("alarm") else None,
                words=figures.effect(effect),
            )
        )
    return forest_picture(
        [Part(rows=rows, heading=pair) for pair, rows in parts.items()],
        identity,
        title=f"Effect in each {finding.block}",
        axis="effect d: right of 0 the first group of the pair is higher",
        caption="Lines are 90 % intervals; outside ±0.5 an effect by itself may raise the alarm.",
        lines=[Line(value=0, solid=True), Line(value=-0.5, words="−0.5"), Line(value=0.5, words="+0.5")],
        around=0.0,
    )


def baseline_picture(finding: Finding, identity: str) -> Picture | None:
    """Each scope's approved score as a ring, the score now as a dot."""
    rows = [
        (pair, approved, now)
        for pair in finding.pairs[:MOST_ROWS]
        if (approved := figures.statistic(pair, "approved")) is not None
        and (now := figures.statistic(pair, "now")) is not None
    ]
    if finding.assertion != "baseline" or not rows:
        return None
    left = left_of(pair.metric for pair, _, _ in rows)
    line = scale([value for _, approved, now in rows for value in (approved, now)], left, RIGHT)
    body = [_axis(line, len(rows), rate=False)]
    for at, (pair, approved, now) in enumerate(rows):
        y = _middle(at)
        change = f"{figures.value(approved, finding)} → {figures.value(now, finding)}"
        body += [
            row_label(pair.metric, y, line.left),
            draw(line.at(approved), y, line.at(now), y, f"whisker {tone_of(pair.verdict)}"),
            f'<circle class="ring" cx="{line.at(approved)}" cy="{y}" r="6"/>',
            mark(pair.verdict, line.at(now), y),
            _side(change, y, tone_of(pair.verdict) if pair.verdict is not Verdict.PASS else ""),
        ]
    label = f"{finding.outcome}{f' ({finding.unit})' if finding.unit else ''}: ring approved, filled now"
    body.append(_axis_label(label, len(rows)))
    told = "; ".join(f"{pair.metric} {approved:.6g} approved, {now:.6g} now" for pair, approved, now in rows)
    title = f"{finding.outcome}: approved and now"
    return picture(body, _height(len(rows)), identity, title=title, description=told)


def share_picture(finding: Finding, identity: str) -> Picture | None:
    """The distribution of a label in each group, as bars of one length."""
    groups = [group for group in finding.group_results if group.shares][:MOST_ROWS]
    labels = figures.categories(finding)
    if not groups or not labels:
        return None
    shown = labels[:7]
    rows = []
    for group in groups:
        parts = [(label, group.shares.get(label, 0.0)) for label in shown]
        rest = 1.0 - sum(share for _, share in parts)
        rows.append((group.group, [*parts, ("other", rest)] if rest > 1e-9 else parts))
    return stacked_picture(
        rows,
        identity,
        title=f"{finding.outcome} by {finding.protected_class or 'group'}",
        axis=f"share of each {finding.outcome}",
    )


# ---------------------------------------------------------------- parts


def _height(rows: int) -> int:
    return _bottom(rows) + 50


def _middle(row: int) -> int:
    return TOP + ROW * row + ROW // 2


def _bottom(rows: int) -> int:
    return TOP + ROW * rows


def _group_row(finding: Finding, group: GroupResult, line: Scale, y: int, worse: bool) -> str:
    tone = tone_of(finding.verdict) if worse and finding.verdict is not Verdict.PASS else "plain"
    parts = [row_label(group.group, y, line.left)]
    if group.low is not None and group.high is not None:
        parts.append(whisker(line, group.low, group.high, y, tone))
    value = group.value if group.value is not None else 0.0
    parts.append(f'<circle class="dot {tone}" cx="{line.at(value)}" cy="{y}" r="6"/>')
    words = figures.value(group.value, finding) + (" worse off" if worse and tone != "plain" else "")
    parts.append(_side(words, y, tone if tone != "plain" else ""))
    return "".join(parts)


def _pair_row(pair: PairResult, name: str, line: Scale, y: int) -> str:
    tone = tone_of(pair.verdict)
    parts = [row_label(name, y, line.left)]
    if pair.effect_low is not None and pair.effect_high is not None:
        parts.append(whisker(line, pair.effect_low, pair.effect_high, y, tone))
    parts.append(mark(pair.verdict, line.at(pair.effect), y))
    parts.append(_side(f"{figures.effect(pair.effect)} {pair.verdict}", y, tone))
    return "".join(parts)


def _axis(line: Scale, rows: int, *, rate: bool) -> str:
    bottom = _bottom(rows)
    parts = []
    for tick in line.ticks():
        x = line.at(tick)
        parts.append(draw(x, TOP - 6, x, bottom, "grid"))
        parts.append(f'<text class="tick" x="{x}" y="{bottom + 18}">{tick_label(tick, rate=rate)}</text>')
    parts.append(draw(line.left, bottom, line.right, bottom, "axis"))
    return "".join(parts)


def _band(line: Scale, rows: int) -> str:
    x, end = line.at(-0.2), line.at(0.2)
    return f'<rect class="band" x="{x}" y="{TOP - 6}" width="{end - x:.2f}" height="{_bottom(rows) - TOP + 6}"/>'


def _reference_line(line: Scale, value: float, rows: int, words: str) -> str:
    x = line.at(value)
    return draw(x, TOP - 6, x, _bottom(rows), "reference") + f'<text class="tick" x="{x}" y="{TOP - 12}">{words}</text>'


def _axis_label(words: str, rows: int, centre: int = 400) -> str:
    return f'<text class="axis-label" x="{centre}" y="{_bottom(rows) + 42}">{html(shortened(words, 80))}</text>'


def _pair_name(pair: PairResult, several: bool) -> str:
    half = (LABEL - 3) // 2
    name = f"{clipped(pair.group_1, half)} – {clipped(pair.group_2, half)}"
    return f"{name} ({pair.metric})" if several else name


def _side(words: str, y: int, tone: str) -> str:
    return f'<text class="side {tone}" x="{RIGHT + 14}" y="{y + 4}">{html(words)}</text>'


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
    rates = [group.value or 0.0 for group in groups]
    declared = [group.value or 0.0 for group in groups if group.group in references]
    return declared[0] if len(declared) == 1 else max(rates)
