"""Inline SVG pictures of a finding. Colours are classes, so that the page's style serves light, dark and
print.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pytest_fairness.model import Finding, GroupResult, OutcomeKind, PairResult, Verdict
from pytest_fairness.reports import figures
from pytest_fairness.reports.axes import Scale, scale, symmetric, tick_label
from pytest_fairness.reports.columns import clipped, columns_of
from pytest_fairness.reports.escaping import html, shortened, visible

WIDTH = 800
ROW = 34
TOP = 30
RIGHT = 610
MOST_ROWS = 40
LABEL = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An SVG with the words that stand for it: ``title`` names it, ``description`` tells what it shows."""

    svg: Markup
    title: str
    description: str
    caption: str = ""


def group_picture(finding: Finding, identity: str) -> Picture | None:
    """Each group's mean or rate as a dot with its 95 % interval; with the four-fifths line where that is
    the rule.
    """
    groups = [group for group in finding.group_results if group.value is not None][:MOST_ROWS]
    if not groups or finding.assertion == "baseline":
        return None
    rate = figures.is_rate(finding)
    ends = [end for group in groups for end in (group.value, group.low, group.high)]
    line = scale(ends, _left(group.group for group in groups), RIGHT, zero=rate)
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
    return _picture(body, len(groups), identity, title=title, description=told, caption=caption)


def effect_picture(finding: Finding, identity: str) -> Picture | None:
    """Each pair's effect with its 90 % interval, against no effect and the ±.2 and ±.5 of the verdict."""
    pairs = figures.most_telling(finding.pairs, MOST_ROWS)
    if not pairs or finding.assertion in ("baseline", *figures.RATIO_ASSERTIONS):
        return None
    ends = [end for pair in pairs for end in (pair.effect, pair.effect_low, pair.effect_high)]
    several = len({pair.metric for pair in finding.pairs}) > 1
    names = [_pair_name(pair, several) for pair in pairs]
    line = symmetric(ends, _left(names), RIGHT, least=0.7, most=2.5)
    body = [_band(line, len(pairs)), _axis(line, len(pairs), rate=False)]
    body += [_reference_line(line, limit, len(pairs), f"{limit:+.1f}".replace("-", "−")) for limit in (-0.5, 0.5)]
    body.append(_line(line.at(0), TOP - 6, line.at(0), _bottom(len(pairs)), "zero"))
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
    return _picture(body, len(pairs), identity, title=title, description=told, caption=caption)


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
    left = _left(pair.metric for pair, _, _ in rows)
    line = scale([value for _, approved, now in rows for value in (approved, now)], left, RIGHT)
    body = [_axis(line, len(rows), rate=False)]
    for at, (pair, approved, now) in enumerate(rows):
        y = _middle(at)
        change = f"{figures.value(approved, finding)} → {figures.value(now, finding)}"
        body += [
            _label(pair.metric, y, line),
            _line(line.at(approved), y, line.at(now), y, f"whisker {_tone(pair.verdict)}"),
            f'<circle class="ring" cx="{line.at(approved)}" cy="{y}" r="6"/>',
            _mark(pair.verdict, line.at(now), y),
            _side(change, y, _tone(pair.verdict) if pair.verdict is not Verdict.PASS else ""),
        ]
    label = f"{finding.outcome}{f' ({finding.unit})' if finding.unit else ''}: ring approved, filled now"
    body.append(_axis_label(label, len(rows)))
    told = "; ".join(f"{pair.metric} {approved:.6g} approved, {now:.6g} now" for pair, approved, now in rows)
    title = f"{finding.outcome}: approved and now"
    return _picture(body, len(rows), identity, title=title, description=told)


def share_picture(finding: Finding, identity: str) -> Picture | None:
    """The distribution of a label in each group, as bars of one length."""
    groups = [group for group in finding.group_results if group.shares][:MOST_ROWS]
    labels = figures.categories(finding)
    if not groups or not labels:
        return None
    shown, line = labels[:7], Scale(0.0, 1.0, _left(group.group for group in groups), WIDTH - 20)
    body = [_axis(line, len(groups), rate=True)]
    for at, group in enumerate(groups):
        y, start = _middle(at), 0.0
        body.append(_label(group.group, y, line))
        parts = [(label, group.shares.get(label, 0.0)) for label in shown]
        rest = 1.0 - sum(share for _, share in parts)
        for place, (label, share) in enumerate([*parts, ("other", rest)] if rest > 1e-9 else parts):
            x, end = line.at(start), line.at(start + share)
            width = f"{max(end - x, 0):.2f}"
            told = f"{group.group}: {label} {figures.percent(share)}"
            body.append(
                f'<rect class="share s{place}" x="{x}" y="{y - 11}" width="{width}" height="22">'
                f"<title>{html(told)}</title></rect>"
            )
            fitting = [text for text in (f"{label} {share:.0%}", f"{share:.0%}") if 8 * len(text) < end - x]
            words = fitting[0] if fitting else ""
            body.append(f'<text class="inside" x="{(x + end) / 2:.2f}" y="{y + 4}">{html(words)}</text>')
            start += share
    body.append(_axis_label(f"share of each {finding.outcome}", len(groups)))
    told = "; ".join(
        f"{group.group}: " + ", ".join(f"{label} {figures.percent(group.shares.get(label, 0.0))}" for label in shown)
        for group in groups
    )
    caption = "From left to right: " + ", ".join(shortened(label, 30) for label in shown) + "."
    title = f"{finding.outcome} by {finding.protected_class or 'group'}"
    return _picture(body, len(groups), identity, title=title, description=told, caption=caption)


# ---------------------------------------------------------------- parts


def _picture(
    body: Sequence[str], rows: int, identity: str, *, title: str, description: str, caption: str = ""
) -> Picture:
    """The parts of *body* as one SVG. Everything in them that was not made here is escaped already."""
    height = _bottom(rows) + 50
    svg = (
        f'<svg class="picture" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-labelledby="{identity}-title {identity}-desc" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{identity}-title">{html(title)}</title>'
        f'<desc id="{identity}-desc">{html(description)}</desc>{"".join(body)}</svg>'
    )
    return Picture(svg=Markup(svg), title=title, description=description, caption=caption)  # noqa: S704 - escaped above


def _middle(row: int) -> int:
    return TOP + ROW * row + ROW // 2


def _bottom(rows: int) -> int:
    return TOP + ROW * rows


def _group_row(finding: Finding, group: GroupResult, line: Scale, y: int, worse: bool) -> str:
    tone = _tone(finding.verdict) if worse and finding.verdict is not Verdict.PASS else "plain"
    parts = [_label(group.group, y, line)]
    if group.low is not None and group.high is not None:
        parts.append(_whisker(line, group.low, group.high, y, tone))
    value = group.value if group.value is not None else 0.0
    parts.append(f'<circle class="dot {tone}" cx="{line.at(value)}" cy="{y}" r="6"/>')
    words = figures.value(group.value, finding) + (" worse off" if worse and tone != "plain" else "")
    parts.append(_side(words, y, tone if tone != "plain" else ""))
    return "".join(parts)


def _pair_row(pair: PairResult, name: str, line: Scale, y: int) -> str:
    tone = _tone(pair.verdict)
    parts = [_label(name, y, line)]
    if pair.effect_low is not None and pair.effect_high is not None:
        parts.append(_whisker(line, pair.effect_low, pair.effect_high, y, tone))
    parts.append(_mark(pair.verdict, line.at(pair.effect), y))
    parts.append(_side(f"{figures.effect(pair.effect)} {pair.verdict}", y, tone))
    return "".join(parts)


def _whisker(line: Scale, low: float, high: float, y: int, tone: str) -> str:
    """The interval, ended by a bar, or by an arrow where it goes on outside the picture."""
    parts = [_line(line.at(low), y, line.at(high), y, f"whisker {tone}")]
    for end, sign in ((low, -1), (high, 1)):
        x = line.at(end)
        if line.holds(end) and math.isfinite(end):
            parts.append(_line(x, y - 5, x, y + 5, f"whisker {tone}"))
        else:
            parts.append(f'<path class="arrow {tone}" d="M{x} {y - 5}l{sign * 8} 5l{-sign * 8} 5z"/>')
    return "".join(parts)


def _mark(verdict: Verdict, x: float, y: int) -> str:
    """A shape a verdict, so that no verdict is told by its colour alone."""
    tone = _tone(verdict)
    match verdict:
        case Verdict.FAIL:
            return f'<rect class="dot {tone}" x="{x - 6}" y="{y - 6}" width="12" height="12"/>'
        case Verdict.FLAG:
            return f'<path class="dot {tone}" d="M{x} {y - 8}l8 8l-8 8l-8 -8z"/>'
        case Verdict.INCONCLUSIVE:
            return f'<circle class="ring {tone}" cx="{x}" cy="{y}" r="6"/>'
        case Verdict.PASS:
            return f'<circle class="dot {tone}" cx="{x}" cy="{y}" r="6"/>'


def _axis(line: Scale, rows: int, *, rate: bool) -> str:
    bottom = _bottom(rows)
    parts = []
    for tick in line.ticks():
        x = line.at(tick)
        parts.append(_line(x, TOP - 6, x, bottom, "grid"))
        parts.append(f'<text class="tick" x="{x}" y="{bottom + 18}">{tick_label(tick, rate=rate)}</text>')
    parts.append(_line(line.left, bottom, line.right, bottom, "axis"))
    return "".join(parts)


def _band(line: Scale, rows: int) -> str:
    x, end = line.at(-0.2), line.at(0.2)
    return f'<rect class="band" x="{x}" y="{TOP - 6}" width="{end - x:.2f}" height="{_bottom(rows) - TOP + 6}"/>'


def _reference_line(line: Scale, value: float, rows: int, words: str) -> str:
    x = line.at(value)
    return (
        _line(x, TOP - 6, x, _bottom(rows), "reference") + f'<text class="tick" x="{x}" y="{TOP - 12}">{words}</text>'
    )


def _axis_label(words: str, rows: int, centre: int = 400) -> str:
    return f'<text class="axis-label" x="{centre}" y="{_bottom(rows) + 42}">{html(shortened(words, 80))}</text>'


def _left(labels: Iterable[str]) -> float:
    """Where the axis starts, so that the labels, cut if they must be, stand before it."""
    return 30 + 7.5 * min(max(map(columns_of, labels), default=0), LABEL)


def _pair_name(pair: PairResult, several: bool) -> str:
    half = (LABEL - 3) // 2
    name = f"{clipped(pair.group_1, half)} – {clipped(pair.group_2, half)}"
    return f"{name} ({pair.metric})" if several else name


def _label(words: str, y: int, line: Scale) -> str:
    shown = html(clipped(visible(words), LABEL))
    return f'<text class="label" x="{line.left - 14}" y="{y + 4}">{shown}<title>{html(words)}</title></text>'


def _side(words: str, y: int, tone: str) -> str:
    return f'<text class="side {tone}" x="{RIGHT + 14}" y="{y + 4}">{html(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _tone(verdict: Verdict) -> str:
    return verdict.value.lower()


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
