"""The pictures that pages are put together from: well formed, in their frame, told in words, not by colour alone."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.model import Verdict
from pytest_fairness.reports.charts import (
    MOST_NAMES,
    WIDTH,
    Bar,
    Bars,
    Chart,
    Forest,
    ForestRow,
    Matrix,
    Panels,
    Point,
    Reference,
    Square,
    draw,
    in_lines,
    scale,
    symmetric,
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
    """The picture's tree, once all of it is known to lie within its frame and to have its words; its description."""
    drawing = draw(chart, "chart")
    assert drawing is not None
    assert not re.search(r"<script|<img|[\x00-\x08\x1b\u202e\u200b]", str(drawing.svg))
    root = ET.fromstring(str(drawing.svg))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert width == WIDTH
    for element in root.iter():
        for name, end in (("x", width), ("x1", width), ("x2", width), ("cx", width), ("y", height), ("y1", height)):
            assert -0.01 <= float(element.get(name, 0)) <= end + 0.01
        if element.tag == f"{SVG}rect":
            assert float(element.attrib["x"]) + float(element.attrib["width"]) <= width + 0.01
    assert root.find(f"{SVG}title") is not None
    return root, root.findtext(f"{SVG}desc") or ""


def words(root: ET.Element, kind: str) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text") if element.get("class") == kind]


def of(root: ET.Element, tag: str, kind: str) -> list[ET.Element]:
    return [element for element in root.iter(f"{SVG}{tag}") if (element.get("class") or "").startswith(kind)]


# ---------------------------------------------------------------- axes


@given(st.lists(FIGURES, max_size=12), st.booleans())
def test_every_value_lies_inside_and_in_order(values, zero):
    """Finite values keep their order, infinite ones stand at the edge; between 2 and 13 round ticks inside."""
    line = scale(values, 100, 600, zero=zero)
    finite = sorted(value for value in values if value is not None and abs(value) != float("inf"))
    places = [line.at(value) for value in finite]
    assert places == sorted(places)
    assert all(100 <= place <= 600 for place in places)
    assert (line.at(float("-inf")), line.at(float("inf"))) == (100, 600)
    ticks = line.ticks()
    assert 2 <= len(ticks) <= 13
    assert all(line.low - 1e-6 * abs(line.low) - 1e-9 <= t <= line.high + 1e-6 * abs(line.high) + 1e-9 for t in ticks)


def test_rates_start_at_zero_and_effects_have_zero_in_the_middle():
    """A rate's picture does not exaggerate; an effect's reaches as far left as right."""
    assert scale([0.4, 0.6], 0, 1, zero=True).low == 0
    line = symmetric([0.2, -0.9, None, float("inf")], 0, 100, least=0.7, most=2.5)
    assert line.at(0) == 50
    assert line.high == pytest.approx(0.972)
    for values, high in (([0.1], 0.7), ([], 0.7), ([9.0], 2.5)):
        assert symmetric(values, 0, 1, least=0.7, most=2.5).high == high


@pytest.mark.parametrize(
    ("value", "rate", "expected"),
    [(0.25, False, "0.25"), (-5.0, False, "−5"), (0.2, True, "20 %"), (1200.0, False, "1,200")],
)
def test_tick_labels_are_short(value, rate, expected):
    """Round numbers, a real minus sign, per cent for rates."""
    assert tick_label(value, rate=rate) == expected


# ---------------------------------------------------------------- forest plots


def test_rows_stand_under_their_heading_with_interval_and_verdict():
    """A shape and a word for each verdict; the interval's ends; the words beside it; a ring for the value before."""
    rows = [
        ForestRow(
            label=verdict, value=at / 10, low=-0.3, high=1.0, verdict=verdict, words=f"{verdict} here", part="first"
        )
        for at, verdict in enumerate(Verdict)
    ]
    before = ForestRow(label="now", value=2.0, before=1.0)
    chart = forest(*rows, before, band=(-0.2, 0.2))
    root, description = drawn(chart)
    assert words(root, "heading") == ["first"]
    assert words(root, "side fail") == ["FAIL here"]
    assert len(of(root, "rect", "dot fail")) == len(of(root, "path", "dot flag")) == 1
    assert len(of(root, "circle", "dot pass")) == len(of(root, "circle", "ring inconclusive")) == 1
    assert len(of(root, "circle", "ring")) == 2
    assert len(of(root, "rect", "band")) == 1
    assert description.startswith("first: PASS PASS here; FLAG FLAG here; ")
    assert description.endswith("; now nothing to show")


def test_an_axis_around_a_value_reaches_as_far_to_both_sides():
    """Shares around one half: one half stands in the middle, and the ticks are per cent; other rates start at zero."""
    rows = [ForestRow(label="white_male", value=0.7), ForestRow(label="black_male", value=0.4)]
    root, _ = drawn(forest(*rows, rate=True, around=0.5, least=0.3, lines=(Reference(value=0.5),)))
    (reference,), (axis,) = of(root, "line", "reference"), of(root, "line", "axis")
    middle = (float(axis.attrib["x1"]) + float(axis.attrib["x2"])) / 2
    assert float(reference.attrib["x1"]) == pytest.approx(middle, abs=0.01)
    assert "50 %" in words(root, "tick")
    assert words(drawn(forest(*rows, rate=True))[0], "tick")[0] == "0 %"


def test_a_row_without_a_value_says_so_and_none_at_all_is_no_picture():
    """Nothing is drawn where nothing is known."""
    root, _ = drawn(forest(ForestRow(label="a"), ForestRow(label="b", value=1.0, words="1")))
    assert words(root, "side") == ["nothing to show"]
    assert len(of(root, "circle", "")) == 1
    assert draw(forest(ForestRow(label="a")), "f") is None
    assert draw(forest(), "f") is None


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(NAMES, VALUES, VALUES, VALUES), max_size=8), st.booleans(), st.none() | st.floats(-1, 1))
def test_any_figures_and_names_make_a_well_formed_forest(rows, rate, around):
    """Hostile names, equal, huge and missing figures, intervals the wrong way round."""
    found = (ForestRow(label=n, value=v, low=a, high=b, words=n, part=n) for n, v, a, b in rows)
    chart = forest(*found, rate=rate, around=around, lines=(Reference(value=0.5),))
    if any(value is not None for _, value, _, _ in rows):
        drawn(chart)


# ---------------------------------------------------------------- matrices


def matrix(names, share: float | None = 0.7, verdict: Verdict = Verdict.FAIL) -> Matrix:
    squares = tuple(Square(row=a, column=b, share=share, n=360, verdict=verdict) for a, b in combinations(names, 2))
    return Matrix(title="t", names=tuple(names), squares=squares)


def test_each_square_has_its_number_its_lean_and_its_verdict():
    """The mirrored one is filled in; a shape and a legend tell the verdict without colour; tints stay readable."""
    root, description = drawn(matrix("ab"))
    assert words(root, "number") == ["70 %", "30 %"]
    assert len(of(root, "rect", "more")) == len(of(root, "rect", "less")) == 1
    assert len(of(root, "rect", "dot fail")) == 3  # two squares, and the legend
    assert "FAIL" in words(root, "hint")
    assert description == "a over b 70.0 % of 360, FAIL"
    for share, tint in ((0.5, 0.0), (1.0, 0.4)):
        root, _ = drawn(matrix("ab", share))
        assert {float(e.attrib["fill-opacity"]) for e in root.iter() if e.get("fill-opacity")} == {tint}


def test_many_groups_and_long_names_stay_inside():
    """The first dozen are shown and the caption says so; a cut name is whole where one points at it."""
    names = [f"a_very_long_name_of_a_group_{at}" for at in range(MOST_NAMES + 3)]
    chart = matrix(names, None, Verdict.INCONCLUSIVE)
    root, _ = drawn(chart)
    drawing = draw(chart, "m")
    assert drawing is not None
    assert f"The first {MOST_NAMES} of {MOST_NAMES + 3} groups" in drawing.caption
    assert len(words(root, "label")) == 2 * MOST_NAMES  # broken, so that their ends can be told apart
    assert [element.text for element in root.iter(f"{SVG}title")].count(names[0]) == 2
    assert draw(matrix("a"), "m") is None


@settings(max_examples=30, deadline=None)
@given(st.lists(NAMES, min_size=2, max_size=9, unique=True), st.none() | st.floats(0, 1))
def test_any_names_make_a_well_formed_matrix(names, share):
    drawn(matrix(names, share, Verdict.FLAG))


# ---------------------------------------------------------------- panels


def panels(groups=("a", "b"), levels=("nurturing and gentle", "tough"), titles=("raw",)) -> Panels:
    points = (
        Point(panel=title, line=group, level=level, value=0.5 + at / 10, low=0.4, high=0.7)
        for title in titles
        for level in levels
        for at, group in enumerate(groups)
    )
    return Panels(title="t", points=tuple(points))


def test_lines_differ_by_shape_and_named():
    """As many different paths as groups, each in the legend; the levels under the axis, broken where they must."""
    root, description = drawn(panels("abcdefgh"))
    assert len({e.attrib["d"] for e in root.iter(f"{SVG}path")}) == 8
    assert words(root, "hint") == list("abcdefgh")
    assert " ".join(words(root, "tick")) == "nurturing and gentle tough"
    assert description.startswith("raw: a nurturing and gentle 50.0 %; b nurturing and gentle 60.0 %; ")


def test_panels_share_one_scale_and_stand_three_in_a_row():
    """The same share is as high in every panel; a fourth begins a second row."""
    root, _ = drawn(panels(titles="wxyz"))
    halves = [float(e.attrib["y1"]) for e in of(root, "line", "reference")]
    assert len(halves) == 4
    assert len(set(halves[:3])) == 1
    assert halves[3] > halves[0]


def test_a_missing_point_breaks_no_line_and_none_at_all_is_no_picture():
    """What is known on both sides is joined; the rest is not drawn."""

    def of_values(*values: float | None) -> Panels:
        points = (Point(panel="p", line="a", level=f"{at}", value=value) for at, value in enumerate(values))
        return Panels(title="t", points=tuple(points))

    root, _ = drawn(of_values(0.2, None, 0.6))
    assert len(of(root, "path", "point")) == 3  # two, and the legend
    assert draw(of_values(None), "i") is None
    assert draw(of_values(), "i") is None


@settings(max_examples=30, deadline=None)
@given(
    st.lists(NAMES, min_size=1, max_size=10, unique=True),
    st.lists(NAMES, min_size=1, max_size=10),
    st.lists(NAMES, min_size=1, max_size=5, unique=True),
)
def test_any_names_make_well_formed_panels(groups, levels, titles):
    """More groups and levels than can be told apart are left to the table."""
    drawn(panels(groups, levels, titles))


# ---------------------------------------------------------------- bars


def test_parts_are_named_in_the_bar_where_there_is_room_and_by_pointing_always():
    """A thin part has no words in it, but a title."""
    bar = Bar(label="raw", parts=(("chosen", 0.99), ("refused", 0.01)))
    root, description = drawn(Bars(title="t", axis="share", bars=(bar,)))
    assert words(root, "inside") == ["chosen 99%"]
    assert "raw: refused 1.0 %" in [element.text for element in root.iter(f"{SVG}title")]
    assert description == "raw: chosen 99.0 %, refused 1.0 %"
    assert draw(Bars(title="t", axis="share", bars=()), "b") is None


@settings(max_examples=30, deadline=None)
@given(NAMES, st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_any_parts_make_well_formed_bars(name, shares):
    whole = sum(shares) or 1.0
    bar = Bar(label=name, parts=tuple((name, one / whole) for one in shares))
    drawn(Bars(title=name, axis=name, bars=(bar,)))


# ---------------------------------------------------------------- words


@settings(deadline=None)
@given(st.text(st.characters(), max_size=80), st.integers(4, 20))
def test_words_in_lines_fit_and_say_when_they_are_cut(words, width):
    """At most three lines, none wider than allowed."""
    lines = in_lines(words, width)
    assert len(lines) <= 3
    assert all(columns_of(line) <= width for line in lines)


def test_words_break_behind_spaces_hyphens_and_underscores():
    assert in_lines("white_female", 9) == ["white_", "female"]
    assert in_lines("technically proficient", 11) == ["technically", "proficient"]
    assert in_lines("a b c d e f g h", 3) == ["a b", "c d", "e …"]
