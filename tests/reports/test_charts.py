"""The pictures that pages are put together from: well formed, in their frame, in words, not by
colour alone.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.model import Verdict
from pytest_fairness.reports.charts import (
    COLUMNS,
    MOST_DOTS,
    MOST_SERIES,
    Bars,
    Chart,
    Forest,
    ForestRow,
    OverTime,
    Reference,
    draw,
    in_lines,
    scale,
    standalone,
    tick_label,
)
from pytest_fairness.reports.escaping import columns_of

from .factories import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"
NAMES = st.text(st.characters(), min_size=1, max_size=60) | st.just(HOSTILE)
VALUES = st.none() | st.floats(-1e6, 1e6)
FIGURES = st.floats(-1e9, 1e9) | st.none() | st.sampled_from([float("inf"), float("-inf")])


def forest(*rows: ForestRow, **options) -> Forest:
    return Forest(**{"title": "t", "axis": "x", "rows": rows, **options})


def drawn(chart: Chart) -> tuple[ET.Element, str]:
    """The picture's tree, once all of it is known to lie within its frame and to have its words;
    its description.
    """
    drawing = draw(chart, "chart")
    assert drawing is not None
    assert not re.search(r"<script|<img|[\x00-\x08\x1b\u202e\u200b]", str(drawing))
    root = ET.fromstring(str(drawing))
    height = float(root.attrib["height"])
    for element in root.iter():
        for name in ("x", "x1", "x2", "cx", "y", "y1", "y2", "cy"):
            place = element.get(name, "0")
            assert (
                -0.01
                <= float(place.removesuffix("%"))
                <= (100.01 if place.endswith("%") else height)
            )
        if element.tag == f"{SVG}rect" and element.attrib["width"].endswith("%"):
            assert (
                sum(float(element.attrib[name].removesuffix("%")) for name in ("x", "width"))
                <= 100.01
            )
        if element.tag == f"{SVG}text":
            # The narrowest screen shows all of a text that starts at its edge.
            assert (
                element.find(f"{SVG}title") is not None
                or columns_of("".join(element.itertext())) <= COLUMNS + 4
            )
    assert root.find(f"{SVG}title") is not None
    alone = ET.fromstring(standalone(chart) or "")
    assert alone.findtext(f"{SVG}desc") == root.findtext(f"{SVG}desc")
    return root, root.findtext(f"{SVG}desc") or ""


def words(root: ET.Element, kind: str) -> list[str]:
    return [element.text or "" for element in root.iter() if element.get("class") == kind]


def of(root: ET.Element, tag: str, kind: str) -> list[ET.Element]:
    return [
        element
        for element in root.iter(f"{SVG}{tag}")
        if (element.get("class") or "").startswith(kind)
    ]


@settings(max_examples=40, deadline=None)
@given(st.lists(FIGURES, max_size=12), st.booleans())
def test_every_value_lies_inside_and_in_order(values, zero):
    """Finite values keep their order, infinite ones stand at the edge; between 2 and 13 round ticks
    inside.
    """
    line = scale(values, 100, 600, zero=zero)
    finite = sorted(value for value in values if value is not None and abs(value) != float("inf"))
    places = [line.at(value) for value in finite]
    assert places == sorted(places)
    assert all(100 <= place <= 600 for place in places)
    assert (line.at(float("-inf")), line.at(float("inf"))) == (100, 600)
    ticks = line.ticks()
    assert 2 <= len(ticks) <= 13
    assert all(
        line.low - 1e-6 * abs(line.low) - 1e-9 <= t <= line.high + 1e-6 * abs(line.high) + 1e-9
        for t in ticks
    )


def test_rates_start_at_zero_and_effects_have_zero_in_the_middle():
    """A rate's picture does not exaggerate; an effect's reaches as far left as right; ticks are
    short.
    """
    assert scale([0.4, 0.6], 0, 1, zero=True).low == 0
    line = scale([0.2, -0.9, None, float("inf")], 0, 100, around=0.0, least=0.7, most=2.5)
    assert line.at(0) == 50
    assert line.high == pytest.approx(0.972)
    for values, high in (([0.1], 0.7), ([], 0.7), ([9.0], 2.5)):
        assert scale(values, 0, 1, around=0.0, least=0.7, most=2.5).high == high
    assert [tick_label(0.25), tick_label(-5.0), tick_label(0.2, rate=True), tick_label(1200.0)] == [
        "0.25", "−5", "20 %", "1,200",
    ]  # fmt: skip


def test_rows_stand_under_their_heading_with_interval_and_verdict():
    """A shape and a word for each verdict; the words beside it; a ring for the value before; and
    what has no value.
    """
    rows = [
        ForestRow(
            label=verdict,
            value=at / 10,
            low=-0.3,
            high=1.0,
            verdict=verdict,
            words=f"{verdict} here",
            part="first",
        )
        for at, verdict in enumerate(Verdict)
    ]
    root, description = drawn(
        forest(*rows, ForestRow(label="now", value=2.0, before=1.0), band=(-0.2, 0.2))
    )
    assert words(root, "heading") == ["first"]
    assert words(root, "side fail") == ["FAIL here"]
    assert len(of(root, "path", "dot fail")) == len(of(root, "path", "dot flag")) == 1
    assert len(of(root, "circle", "dot pass")) == len(of(root, "circle", "ring inconclusive")) == 1
    assert len(of(root, "circle", "ring")) == 2
    assert len(of(root, "rect", "band")) == 1
    assert description.startswith("first: PASS PASS here; FLAG FLAG here; ")
    assert description.endswith("; now nothing to show")
    root, _ = drawn(forest(ForestRow(label="a"), ForestRow(label="b", value=1.0, words="1")))
    assert words(root, "side plain") == ["nothing to show", "1"]
    assert len(of(root, "circle", "")) == 1
    assert draw(forest(ForestRow(label="a")), "f") is draw(forest(), "f") is None


def test_an_axis_around_a_value_reaches_as_far_to_both_sides():
    """Shares around one half: one half stands in the middle, and the ticks are per cent; other
    rates start at zero.
    """
    rows = [ForestRow(label="white_male", value=0.7), ForestRow(label="black_male", value=0.4)]
    root, _ = drawn(forest(*rows, rate=True, around=0.5, least=0.3, lines=(Reference(value=0.5),)))
    (reference,), (axis,) = of(root, "line", "reference"), of(root, "line", "axis")
    assert [reference.get("x1"), axis.get("x1"), axis.get("x2")] == ["50%", "4%", "96%"]
    assert "50 %" in words(root, "tick")
    assert words(drawn(forest(*rows, rate=True))[0], "tick")[0] == "0 %"


def test_series_share_a_line_and_differ_by_shape():
    """As many paths as series that can be told apart, each in the legend; no mark where there is no
    value.
    """
    rows = [
        ForestRow(label=label, value=None if label + name == "ba" else 0.5, low=0.4, high=0.6, words="here", part="p",
                  series=name)
        for label in "ab" for name in "abcdefghi"
    ]  # fmt: skip
    root, description = drawn(forest(*rows))
    paths = of(root, "path", "point")
    assert len({path.attrib["d"] for path in paths}) == MOST_SERIES
    assert len(paths) == MOST_SERIES + 2 * MOST_SERIES - 1  # the legend, and two lines
    assert words(root, "hint") == list("abcdefgh")
    assert words(root, "label") == ["a", "b"]
    assert description.startswith("p: a, a here; a, b here; ")


def test_each_name_is_a_dot_above_the_mean_of_its_group():
    """With its name and value for who points at it; of many, as many as can be told apart, with
    both ends.
    """
    dots = tuple((f"name {at}", at / 10) for at in range(100))
    root, _ = drawn(
        forest(
            ForestRow(label="a", value=5.0, dots=dots),
            ForestRow(label="b", value=5.0, dots=dots[:7]),
        )
    )
    names = [dot.findtext(f"{SVG}title") for dot in of(root, "circle", "name")]
    assert len(names) == MOST_DOTS + 7
    assert {"name 0: 0", "name 99: 9.9"} <= set(names)


def test_runs_stand_from_left_to_right_with_who_answered():
    """A mark a run, joined by lines; a dashed line where another model answered; no mark for a run
    without a value.
    """

    def judged(label: str, model: str, value: float, verdict: Verdict) -> ForestRow:
        return ForestRow(
            label=label,
            value=value,
            low=value - 0.1,
            high=value + 0.1,
            verdict=verdict,
            words=f"{value:+.2f} {verdict}",
            part=model,
        )

    rows = [
        judged("r1", "m-1", 0.2, Verdict.PASS),
        ForestRow(label="r2", words="not tested", part="m-1"),
        judged("r3", HOSTILE, 0.6, Verdict.FAIL),
    ]
    root, description = drawn(OverTime(title="t", axis="d", rows=tuple(rows), band=(-0.2, 0.2)))
    assert description == "3 runs: r1: +0.20 PASS; r2: not tested; r3: +0.60 FAIL"
    assert (len(of(root, "line", "course")), len(of(root, "line", "reference"))) == (1, 1)
    assert len(of(root, "circle", "dot pass")) == len(of(root, "path", "dot fail")) == 1
    assert standalone(OverTime(title="t", axis="d", rows=())) is None


def test_a_picture_by_itself_has_its_title_and_its_colours():
    """Light, and dark where the reader prefers it; no variable, which not every program knows."""
    alone = standalone(forest(ForestRow(label=HOSTILE, value=1.0), title=HOSTILE)) or ""
    assert "prefers-color-scheme: dark" in alone
    assert "var(" not in alone
    assert ET.fromstring(alone).attrib["width"] == "680"


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(NAMES, VALUES, VALUES, VALUES, st.just("") | NAMES), max_size=8),
    st.booleans(),
    st.none() | st.floats(-1, 1),
)
def test_any_figures_and_names_make_a_well_formed_forest(rows, rate, around):
    """Hostile names, equal, huge and missing figures, intervals the wrong way round."""
    found = (
        ForestRow(label=n, value=v, low=a, high=b, words=n, part=n, series=s)
        for n, v, a, b, s in rows
    )
    chart = forest(*found, rate=rate, around=around, lines=(Reference(value=0.5),))
    if any(value is not None for _, value, _, _, _ in rows):
        drawn(chart)


def test_parts_are_named_in_the_bar_where_there_is_room_and_by_pointing_always():
    """A thin part has no words in it, but a title."""
    root, description = drawn(
        Bars(title="t", axis="share", bars={"raw": {"chosen": 0.99, "refused": 0.01}})
    )
    assert words(root, "inside") == ["chosen 99%"]
    assert "raw: refused 1.0 %" in [element.text for element in root.iter(f"{SVG}title")]
    assert description == "raw: chosen 99.0 %, refused 1.0 %"
    assert draw(Bars(title="t", axis="share", bars={}), "b") is None


@settings(max_examples=15, deadline=None)
@given(NAMES, st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_any_parts_make_well_formed_bars(name, shares):
    whole = sum(shares) or 1.0
    parts = {f"{name}{at}": one / whole for at, one in enumerate(shares)}
    drawn(Bars(title=name, axis=name, bars={name: parts}))


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(), max_size=80), st.integers(4, 20))
def test_words_in_lines_fit_and_say_when_they_are_cut(words, width):
    """At most three lines, none wider than allowed; broken behind spaces, hyphens and underscores."""
    lines = in_lines(words, width, 3)
    assert len(lines) <= 3
    assert all(columns_of(line) <= width for line in lines)
    assert in_lines("white_female", 9) == ["white_", "female"]
    assert in_lines("a b c d e f g h", 3, 3) == ["a b", "c d", "e …"]
