"""What a notebook shows of a finding: short, whole, inert, and in colours that do not reach beyond
it.
"""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pytest_fairness.errors import UsageError
from pytest_fairness.model import Finding, Reason, Verdict
from tests.reports import factories
from tests.reports.factories import HOSTILE
from tests.reports.page_reader import TABLE, Page

BARE = Finding(assertion="x", verdict=Verdict.PASS, sentence="Nothing.")
ALL = [*factories.of_each_kind(), BARE]
EVIL = factories.disparity(
    sentence=HOSTILE, protected_class=HOSTILE, outcome=HOSTILE, unit=HOSTILE, notes=(HOSTILE,), effect_size=HOSTILE,
    description=HOSTILE, model_endpoint=HOSTILE, cluster=HOSTILE, test_id=HOSTILE, assertion=HOSTILE,
    pairs=(factories.pair(HOSTILE, "b", notes=(HOSTILE,), metric=HOSTILE),),
    group_results=(factories.group(HOSTILE), factories.group("b")),
)  # fmt: skip
_IMAGE = re.compile(
    r'<img src="data:image/svg\+xml;base64,([\w+/=]+)" alt="([^"<>]+)" style="[^"<>]*">'
)


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (
            factories.disparity(),
            "<Finding FAIL: 'sentiment' by 'race_ethnicity', d = +0.81, n = 800>",
        ),
        (
            factories.passing(
                verdict=Verdict.INCONCLUSIVE,
                reason=Reason.PRECISION,
                effect_size="d = −0.06, 90 % interval",
            ),
            "<Finding INCONCLUSIVE (PRECISION): 'word_count' by 'gender', d = −0.06, n = 800>",
        ),
        (BARE, "<Finding PASS: 'x', not computed>"),
    ],
)
def test_a_finding_is_short_in_a_list(finding: Finding, words: str) -> None:
    assert repr(finding) == words


@pytest.mark.parametrize("finding", [*ALL, EVIL], ids=lambda finding: finding.outcome[:9] or "bare")
def test_the_card_is_inert_and_leaks_no_style(finding: Finding) -> None:
    """No script, no handler, no style sheet, nothing loaded; the picture is an image that is well
    formed XML.
    """
    shown = finding._repr_html_()
    pictures = _IMAGE.findall(shown)
    page = Page(_IMAGE.sub("", shown))
    assert {tag for tag, _ in page.elements} <= {"div", "p", "span", *TABLE}
    assert {name for _, attributes in page.elements for name in attributes} <= {"style"}
    assert finding.verdict in page.text
    assert len(pictures) == bool(finding.group_results)
    for data, _ in pictures:
        svg = base64.b64decode(data).decode()
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
        assert tags <= {
            "svg",
            "title",
            "desc",
            "style",
            "rect",
            "text",
            "line",
            "circle",
            "path",
            "g",
            "tspan",
        }
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u200b\u202e\u2028\ud800]", shown + repr(finding))


def test_the_card_says_what_was_simulated_and_replayed() -> None:
    simulated, replayed = factories.disparity(simulated=True), factories.disparity(replayed=True)
    assert "simulated endpoint: no model was asked" in simulated._repr_html_()
    assert "replayed: no model was asked now" in replayed._repr_html_()


def test_the_page_is_the_card_of_the_report() -> None:
    page = Page(factories.disparity(simulated=True).to_html())
    assert "No model was asked" in page.text
    assert "Each pair of groups" in page.text
    explained = factories.disparity(explanation="A.\n\nHow this was judged. B.")
    assert "How this was judged" in explained.to_html()
    assert "of run" not in page.text
    assert page.all("script") == []


def test_groups_and_pairs_are_tables() -> None:
    groups, pairs = factories.categorical().to_frame(), factories.four_fifths().to_frame("pairs")
    assert groups.loc[1, ["group", "n", "share_nurse"]].tolist() == ["men", 200, 0.21]
    assert groups["value"].isna().all()
    assert groups["value"].dtype == float
    assert "shares" not in groups
    assert pairs.loc[0, ["group_1", "group_2", "verdict", "impact_ratio"]].tolist() == [
        "white",
        "black",
        "FAIL",
        0.668,
    ]
    assert type(pairs.loc[0, "verdict"]) is str
    empty = BARE.to_frame("pairs")
    assert len(empty) == 0
    assert list(empty)[:2] == ["group_1", "group_2"]
    with pytest.raises(UsageError, match="'groups' and 'pairs', no 'cells'"):
        factories.disparity().to_frame("cells")


def test_pictures_are_files(tmp_path: Path) -> None:
    """Of the groups if nothing is said, else of what there is."""
    finding = factories.disparity()
    assert finding.plot().svg == finding.plot("groups").svg != finding.plot("pairs").svg
    assert factories.baseline().plot().svg == factories.baseline().plot("pairs").svg
    # In its own colours, light and dark, from the style sheet of the report.
    light, _, dark = finding.plot().svg.partition("@media (prefers-color-scheme: dark)")
    assert ".picture .dot.fail { fill: #b3261e; }" in light.replace(", .picture .arrow.fail", "")
    assert "fill: #ff8a80" in dark
    path = finding.plot("pairs").save(tmp_path / "effects.svg")
    assert path.read_text(encoding="utf-8") == finding.plot("pairs")._repr_svg_()
    with pytest.raises(UsageError, match="nothing to draw of the pairs"):
        factories.four_fifths().plot("pairs")


def test_whoever_imports_a_public_name_has_all_of_it() -> None:
    """Also a script that never names the reports; and the picture of a finding costs nobody else an
    import.
    """
    code = """
import sys
from pytest_fairness import Finding, Verdict
assert "pytest_fairness.reports.notebook" not in sys.modules and "pandas" not in sys.modules
print(Finding(assertion="x", verdict=Verdict.PASS, sentence="PASS: none.")._repr_html_())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "</span> none.</p>" in done.stdout
