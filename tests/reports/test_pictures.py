"""The pictures that pages are put together from: well formed, in their frame, told in words, not by colour alone."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.model import Verdict
from pytest_fairness.reports.bars import stacked_picture
from pytest_fairness.reports.columns import columns_of
from pytest_fairness.reports.drawing import WIDTH, Picture, in_lines
from pytest_fairness.reports.forest import Line, Part, Row, forest_picture
from pytest_fairness.reports.interaction import Panel, Point, interaction_picture
from pytest_fairness.reports.matrix import MOST, Square, matrix_picture

from .factories import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"
NAMES = st.text(st.characters(), min_size=1, max_size=60)
VALUES = st.none() | st.floats(-1e6, 1e6)
NAMED = {"white_male": 0.7, "black_male": 0.4}


def drawn(picture: Picture | None) -> ET.Element:
    """The picture's tree, once all of it is known to lie within its frame and to have its words."""
    assert picture is not None
    root = ET.fromstring(str(picture.svg))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert width == WIDTH
    for element in root.iter():
        for name, end in (("x", width), ("x1", width), ("x2", width), ("cx", width), ("y", height), ("y1", height)):
            assert -0.01 <= float(element.get(name, 0)) <= end + 0.01
        if element.tag == f"{SVG}rect":
            assert float(element.attrib["x"]) + float(element.attrib["width"]) <= width + 0.01
    assert root.find(f"{SVG}title") is not None
    assert root.find(f"{SVG}desc") is not None
    return root


def words(root: ET.Element, kind: str) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text") if element.get("class") == kind]


class TestForest:
    def test_rows_stand_under_their_heading_with_interval_and_verdict(self):
        """A shape and a word for the verdict; the interval's ends; the words beside it."""
        row = Row(label="a – b", value=-0.2, low=-0.3, high=-0.1, verdict=Verdict.FAIL, words="−20.0 FAIL")
        other = Row(label="a – c", value=0.1, low=0.0, high=0.2, verdict=Verdict.FLAG, words="+10.0 FLAG")
        picture = forest_picture([Part(heading="first", rows=[row]), Part(rows=[other])], "f", title="t", axis="points")
        root = drawn(picture)
        assert words(root, "heading") == ["first"]
        assert words(root, "side fail") == ["−20.0 FAIL"]
        assert '<rect class="dot fail"' in str(picture.svg)
        assert '<path class="dot flag"' in str(picture.svg)
        assert picture.description == "first: a – b −20.0 FAIL; a – c +10.0 FLAG"

    def test_an_axis_around_a_value_reaches_as_far_to_both_sides(self):
        """Shares around one half: one half stands in the middle, and the ticks are per cent."""
        rows = [Row(label=name, value=value) for name, value in NAMED.items()]
        picture = forest_picture(
            [Part(rows=rows)], "f", title="t", axis="share", rate=True, around=0.5, least=0.3, lines=[Line(value=0.5)]
        )
        root = drawn(picture)
        reference = next(element for element in root.iter(f"{SVG}line") if element.get("class") == "reference")
        axis = next(element for element in root.iter(f"{SVG}line") if element.get("class") == "axis")
        middle = (float(axis.attrib["x1"]) + float(axis.attrib["x2"])) / 2
        assert float(reference.attrib["x1"]) == pytest.approx(middle, abs=0.01)
        assert "50 %" in words(root, "tick")

    def test_rates_start_at_zero(self):
        """A rate's picture does not exaggerate."""
        root = drawn(forest_picture([Part(rows=[Row(label="a", value=0.4)])], "f", title="t", axis="share", rate=True))
        assert words(root, "tick")[0] == "0 %"

    def test_a_row_without_a_value_says_so_and_none_at_all_is_no_picture(self):
        """Nothing is drawn where nothing is known."""
        empty = Row(label="a", value=None)
        picture = forest_picture([Part(rows=[empty, Row(label="b", value=1.0, words="1")])], "f", title="t", axis="x")
        assert words(drawn(picture), "side") == ["nothing to show"]
        assert str(picture.svg).count("<circle") == 1
        assert forest_picture([Part(rows=[empty])], "f", title="t", axis="x") is None
        assert forest_picture([], "f", title="t", axis="x") is None

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(NAMES, VALUES, VALUES, VALUES), max_size=8), st.booleans(), st.none() | st.floats(-1, 1))
    def test_any_figures_and_names_make_a_well_formed_picture(self, rows, rate, around):
        """Hostile names, equal, huge and missing figures, intervals the wrong way round."""
        parts = [Part(heading=n, rows=[Row(label=n, value=v, low=a, high=b, words=n)]) for n, v, a, b in rows]
        picture = forest_picture(parts, "f", title="t", axis="x", rate=rate, around=around, lines=[Line(value=0.5)])
        if picture is not None:
            drawn(picture)


class TestMatrix:
    def test_each_square_has_its_number_its_lean_and_its_verdict(self):
        """The mirrored one is filled in; a shape and a legend tell the verdict without colour."""
        square = Square(share=0.7, n=360, verdict=Verdict.FAIL)
        picture = matrix_picture(["a", "b"], {("a", "b"): square}, "m", title="t")
        root = drawn(picture)
        assert words(root, "number") == ["70 %", "30 %"]
        assert [e.get("class") for e in root.iter(f"{SVG}rect") if e.get("class") in ("more", "less")] == [
            "more",
            "less",
        ]
        assert str(picture.svg).count('<rect class="dot fail"') == 3  # two squares, and the legend
        assert "FAIL" in words(root, "hint")
        assert picture.description == "a over b 70.0 % of 360, FAIL"

    def test_one_half_has_no_tint_and_all_has_no_more_than_can_be_read_on(self):
        """The tint grows with the lean, and stays light enough for the number on it."""
        found = {
            ("a", "b"): Square(share=0.5, n=1, verdict=Verdict.PASS),
            ("a", "c"): Square(share=1.0, n=1, verdict=Verdict.PASS),
        }
        root = drawn(matrix_picture(["a", "b", "c"], found, "m", title="t"))
        tints = [float(e.attrib["fill-opacity"]) for e in root.iter(f"{SVG}rect") if e.get("fill-opacity")]
        assert min(tints) == 0
        assert max(tints) == 0.4

    def test_many_groups_and_long_names_stay_inside(self):
        """The first dozen are shown and the caption says so; a cut name is whole where one points at it."""
        names = [f"a_very_long_name_of_a_group_{at}" for at in range(MOST + 3)]
        found = {pair: Square(share=None, n=0, verdict=Verdict.INCONCLUSIVE) for pair in combinations(names, 2)}
        picture = matrix_picture(names, found, "m", title="t")
        root = drawn(picture)
        assert f"The first {MOST} of {MOST + 3} groups" in picture.caption
        assert len(words(root, "label")) == 2 * MOST  # broken, so that their ends can be told apart
        titles = [element.text for element in root.iter(f"{SVG}title")]
        assert titles.count(names[0]) == 2

    def test_without_pairs_there_is_no_picture(self):
        assert matrix_picture([], {}, "m", title="t") is None
        assert matrix_picture(["a"], {}, "m", title="t") is None

    @settings(max_examples=30, deadline=None)
    @given(st.lists(NAMES, min_size=2, max_size=9, unique=True), st.none() | st.floats(0, 1))
    def test_any_names_make_a_well_formed_picture(self, names, share):
        found = {pair: Square(share=share, n=9, verdict=Verdict.FLAG) for pair in combinations(names, 2)}
        drawn(matrix_picture(names, found, "m", title=names[0]))


class TestInteraction:
    def panel(self, groups=("a", "b"), levels=("nurturing and gentle", "tough")):
        lines = [(group, [Point(0.5 + at / 10, 0.4, 0.7) for _ in levels]) for at, group in enumerate(groups)]
        return Panel(title="raw", levels=levels, lines=lines)

    def test_lines_are_told_apart_by_shape_and_named(self):
        """As many different paths as groups, each in the legend; the levels under the axis, broken where they must."""
        picture = interaction_picture([self.panel(tuple("abcdefgh"))], "i", title="t")
        root = drawn(picture)
        assert len({e.attrib["d"] for e in root.iter(f"{SVG}path")}) == 8
        assert words(root, "hint") == list("abcdefgh")
        assert " ".join(words(root, "tick")) == "nurturing and gentle tough"
        assert "raw: a nurturing and gentle 50.0 %, tough 50.0 %; b" in picture.description

    def test_panels_share_one_scale_and_stand_three_in_a_row(self):
        """The same share is as high in every panel; a fourth begins a second row."""
        picture = interaction_picture([self.panel()] * 4, "i", title="t")
        root = drawn(picture)
        halves = [float(e.attrib["y1"]) for e in root.iter(f"{SVG}line") if e.get("class") == "reference"]
        assert len(halves) == 4
        assert len(set(halves[:3])) == 1
        assert halves[3] > halves[0]

    def test_a_missing_point_breaks_no_line_and_none_at_all_is_no_picture(self):
        """What is known on both sides is joined; the rest is not drawn."""
        lines = [("a", [Point(0.2), Point(None), Point(0.6)])]
        picture = interaction_picture([Panel(title="p", levels=("x", "y", "z"), lines=lines)], "i", title="t")
        assert str(picture.svg).count('<path class="point') == 3  # two, and the legend
        assert (
            interaction_picture([Panel(title="p", levels=("x",), lines=[("a", [Point(None)])])], "i", title="t") is None
        )
        assert interaction_picture([], "i", title="t") is None

    @settings(max_examples=30, deadline=None)
    @given(
        st.lists(NAMES, min_size=1, max_size=10, unique=True),
        st.lists(NAMES, min_size=1, max_size=10),
        st.integers(1, 5),
    )
    def test_any_names_make_a_well_formed_picture(self, groups, levels, panels):
        """More groups and levels than can be told apart are left to the table."""
        drawn(interaction_picture([self.panel(tuple(groups), tuple(levels))] * panels, "i", title=groups[0]))


class TestBars:
    def test_parts_are_told_in_the_bar_where_there_is_room_and_by_pointing_always(self):
        """A thin part has no words in it, but a title."""
        picture = stacked_picture([("raw", [("chosen", 0.99), ("refused", 0.01)])], "b", title="t", axis="share")
        root = drawn(picture)
        assert words(root, "inside") == ["chosen 99%"]
        titles = [element.text for element in root.iter(f"{SVG}title")]
        assert "raw: refused 1.0 %" in titles
        assert picture.description == "raw: chosen 99.0 %, refused 1.0 %"

    @settings(max_examples=30, deadline=None)
    @given(NAMES, st.lists(st.floats(0, 1), max_size=12))
    def test_any_parts_make_a_well_formed_picture(self, name, shares):
        whole = sum(shares) or 1.0
        drawn(stacked_picture([(name, [(name, one / whole) for one in shares])], "b", title=name, axis=name))


@settings(deadline=None)
@given(st.text(st.characters(), max_size=80), st.integers(4, 20))
def test_words_in_lines_fit_and_say_when_they_are_cut(words, width):
    """At most three lines, none wider than allowed."""
    lines = in_lines(words, width)
    assert len(lines) <= 3
    assert all(columns_of(line) <= width for line in lines)


def test_words_break_behind_spaces_hyphens_and_underscores():
    assert list(in_lines("white_female", 9)) == ["white_", "female"]
    assert list(in_lines("technically proficient", 11)) == ["technically", "proficient"]
    assert list(in_lines("a b c d e f g h", 3)) == ["a b", "c d", "e …"]


def test_hostile_words_are_letters_in_every_picture():
    """A name with markup and control codes ends no element, in any of the pictures."""
    panel = Panel(title=HOSTILE, levels=[HOSTILE], lines=[(HOSTILE, [Point(0.5)])])
    square = {(HOSTILE, "b"): Square(share=0.5, n=1, verdict=Verdict.PASS)}
    for picture in (
        forest_picture([Part(heading=HOSTILE, rows=[Row(label=HOSTILE, value=1.0)])], "f", title=HOSTILE, axis=HOSTILE),
        matrix_picture([HOSTILE, "b"], square, "m", title=HOSTILE),
        interaction_picture([panel], "i", title=HOSTILE),
        stacked_picture([(HOSTILE, [(HOSTILE, 1.0)])], "b", title=HOSTILE, axis=HOSTILE),
    ):
        drawn(picture)
        assert not re.search(r"<script|<img|[\x00-\x08\x1b\u202e\u200b]", str(picture.svg))
