"""What a suite hands in stands in every report of the run, and cannot act in any."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_fairness.errors import FairnessError
from pytest_fairness.model import Verdict
from pytest_fairness.reports.html import write_html
from pytest_fairness.reports.outputs import markdown_text
from pytest_fairness.reports.plain_text import summary_lines
from pytest_fairness.reports.sections import (
    Printed,
    Section,
    Table,
    printed_lines,
    read_sections,
    table,
    write_sections,
)

from .factories import HOSTILE, disparity, results, run_folder
from .page_reader import Page

BLOCK = Printed(
    lines=("Letters", "=======", "  2 of 3 <b>pass</b>", HOSTILE, "::set-output name=x::y", "```")
)


def test_sections_stand_after_the_findings_table_and_before_the_cards(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, results(disparity()), [])
    rows = table(
        "Categories",
        [("age", "98.0")],
        {"category": lambda one: one[0], "score": lambda one: one[1]},
    )
    write_sections(
        folder,
        "letters",
        Section(id="letters", heading="Letters", parts=(BLOCK, rows)),
        Section(id="last", heading="The last", sentence="One sentence.", verdict=Verdict.PASS),
    )
    text = write_html(folder).read_text("utf-8")
    Page(text)  # well-formed, inert
    places = [text.index(f'id="{one}"') for one in ("findings", "letters", "last")]
    assert places == sorted(places)
    assert "  2 of 3 &lt;b&gt;pass&lt;/b&gt;\n" in text
    assert "<script" not in text


def test_what_is_printed_stands_in_the_terminal_and_in_markdown(tmp_path: Path) -> None:
    """Its blanks are kept. What a build server, a terminal or Markdown would obey is taken apart."""
    found = results(disparity())
    folder = run_folder(tmp_path, found, [])
    write_sections(folder, "letters", Section(id="letters", heading="Letters", parts=(BLOCK,)))
    printed = printed_lines(read_sections(folder))
    lines = summary_lines(found, "report.html", printed)
    assert lines[lines.index("Letters") + 2] == "  2 of 3 <b>pass</b>"
    assert not [one for one in lines if one.startswith("::") or "\x1b" in one]
    text = markdown_text(folder, against=None, root=tmp_path, environment={})
    assert "\n    Letters\n    =======\n      2 of 3 <b>pass</b>\n" in text
    assert "\n    ```\n" in text


@pytest.mark.parametrize("content", ["{", "{}", '[{"id": 1}]', "[" * 100_000])
def test_a_file_that_is_none_is_an_error_with_its_name(tmp_path: Path, content: str) -> None:
    (tmp_path / "letters.sections.json").write_text(content, encoding="utf-8")
    with pytest.raises(FairnessError, match=r"letters\.sections\.json cannot be read"):
        read_sections(tmp_path)


def test_sections_of_one_id_are_one(tmp_path: Path) -> None:
    """Each item writes a file of its own; rows under the same head stand below each other."""

    def of_words(item: str, *others: str) -> Section:
        words = Table(caption="Words", head=("test", "word"), rows=((item, "kind"),))
        return Section(id="words", heading="Words", parts=(words, *others))

    write_sections(tmp_path, "words-a", of_words("a"))
    write_sections(tmp_path, "words-b", of_words("b", "read"), Section(heading="No id"))
    write_sections(tmp_path, "words-c", of_words("c"), Section(heading="No id"))
    whole, *others = read_sections(tmp_path)
    assert [section.heading for section in others] == ["No id", "No id"]
    first, between, last = whole.parts
    assert isinstance(first, Table)
    assert (first.rows, between) == ((("a", "kind"), ("b", "kind")), "read")
    assert isinstance(last, Table)
    assert last.rows == (("c", "kind"),)
