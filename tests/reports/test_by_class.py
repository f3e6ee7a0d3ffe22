"""The verdicts of a run by protected class and test: on the page, in Markdown, in a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.model import Finding, Reason, Verdict
from pytest_fairness.reports.findings_json import RunResults
from pytest_fairness.reports.heat_maps import (
    class_section,
    verdict_words_by_class,
    verdicts_by_class,
)
from pytest_fairness.reports.html import write_html
from pytest_fairness.reports.markdown import markdown_report
from pytest_fairness.reports.plain_text import WIDTH, summary_lines
from pytest_fairness.reports.sections import Entry

from .factories import disparity, passing, results, run_folder
from .page_reader import Page

TESTS = ("ATTR", "HIRE", "LOAN", "NARR", "ASSOC", "TRIAGE", "REFUSE")
CLASSES = (
    "race_ethnicity", "gender", "age", "disability", "religion", "sexual_orientation", "national_origin",
    "socioeconomic_status",
)  # fmt: skip


def numbered(test: str, number: int, protected_class: str, verdict: Verdict) -> Finding:
    about: dict[str, Any] = {
        "test_id": f"BIAS-{test}-{number:03}",
        "protected_class": protected_class,
    }
    if verdict is Verdict.PASS:
        return passing(**about)
    if verdict is Verdict.INCONCLUSIVE:
        return passing(verdict=verdict, reason=Reason.PRECISION, **about)
    return disparity(verdict=verdict, **about)


def whole_programme(verdict: Verdict) -> RunResults:
    """Two tiers, seven tests, eight classes by three signals each; every finding of one *verdict*."""
    findings = [
        numbered(test, 3 * place + signal, protected_class, verdict)
        for _ in range(2)
        for test in TESTS
        for place, protected_class in enumerate(CLASSES)
        for signal in range(3)
    ]
    items = [
        {"nodeid": f"test_{at}.py::test_{at}", "outcome": "failed", "findings": [at]}
        for at in range(len(findings))
    ]
    return results(*findings, items=items)


def test_a_cell_has_the_worst_verdict_and_the_items_that_have_it() -> None:
    run = results(
        numbered("HIRE", 5, "gender", Verdict.PASS),
        numbered("HIRE", 6, "gender", Verdict.FAIL),
        numbered("HIRE", 8, "age", Verdict.INCONCLUSIVE),
        numbered("LOAN", 5, "gender", Verdict.PASS),
        disparity(),
    )
    table = verdicts_by_class(run)
    assert table is not None
    assert table.head == ("Class", "BIAS-HIRE", "BIAS-LOAN")
    assert table.rows == (
        (
            "age",
            Entry(verdict=Verdict.INCONCLUSIVE, small=("1 of 1 finding", "008"), link=run.ids[2]),
            Entry(words="not tested"),
        ),
        (
            "gender",
            Entry(verdict=Verdict.FAIL, small=("1 of 2 findings", "006"), link=run.ids[1]),
            Entry(verdict=Verdict.PASS, small=("1 of 1 finding",), link=run.ids[3]),
        ),
    )
    assert verdict_words_by_class(run) is None
    words = verdict_words_by_class(results(*run.findings * 6))
    assert words is not None
    assert words.head == ("BIAS-…", "HIRE", "LOAN")
    assert words.rows == (("age", "undecided", "–"), ("gender", "FAIL", "PASS"))


def test_items_that_are_called_by_their_class_are_named_by_their_outcome() -> None:
    """``BIAS-HIRE-gender`` and ``BIAS-HIRE-gender-graded`` are one cell."""

    def called(test: str, protected_class: str, outcome: str, verdict: Verdict) -> Finding:
        about: dict[str, Any] = {
            "test_id": f"BIAS-{test}",
            "protected_class": protected_class,
            "outcome": outcome,
        }
        if verdict is Verdict.PASS:
            return passing(**about)
        return disparity(verdict=verdict, **about)

    run = results(
        called("HIRE-gender", "gender", "decision", Verdict.PASS),
        called("HIRE-gender-graded", "gender", "rating", Verdict.FAIL),
        called("HIRE-sexual_orientation", "sexual_orientation", "decision", Verdict.PASS),
        called("LOAN-gender", "gender", "decision", Verdict.FLAG),
    )
    table = verdicts_by_class(run)
    assert table is not None
    assert table.head == ("Class", "BIAS-HIRE", "BIAS-LOAN")
    ((_, hired, lent), (other, *_)) = table.rows
    assert isinstance(hired, Entry)
    assert isinstance(lent, Entry)
    assert (hired.verdict, hired.small) == (Verdict.FAIL, ("1 of 2 findings", "rating"))
    assert (lent.verdict, lent.small) == (Verdict.FLAG, ("1 of 1 finding", "decision"))
    assert other == "sexual_orientation"
    assert run.item_of(1) == "BIAS-HIRE-gender-graded"


def test_without_numbered_tests_of_several_classes_there_is_none(tmp_path: Path) -> None:
    one_test = (
        numbered("HIRE", 5, "gender", Verdict.PASS),
        numbered("HIRE", 8, "age", Verdict.PASS),
    )
    for findings in ((disparity(), passing()), one_test):
        run = results(*findings)
        assert verdicts_by_class(run) is verdict_words_by_class(run) is None
        assert class_section(run, tmp_path) is None


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_whole_programme_fits_on_few_screens(verdict: Verdict) -> None:
    """Whatever is found; every class has its row, in a terminal's width."""
    run = whole_programme(verdict)
    lines = summary_lines(run)
    assert len(lines) <= 110
    (row,) = (line for line in lines if line.startswith("  socioeconomic_status "))
    word = "undecided" if verdict is Verdict.INCONCLUSIVE else str(verdict)
    assert row.split()[1:] == [word] * len(TESTS)
    assert max(map(len, lines)) <= WIDTH
    assert f"more {verdict}, in the report" in "\n".join(lines)
    text = markdown_report(run)
    assert len(text.splitlines()) <= 200
    assert "| Class | BIAS-ASSOC | BIAS-ATTR |" in text


def test_a_cell_leads_to_the_worst_of_its_findings(tmp_path: Path) -> None:
    """Where that has a card, and where it is one of very many."""
    run = whole_programme(Verdict.INCONCLUSIVE)
    page = Page(write_html(run_folder(tmp_path, run)).read_text("utf-8"))
    assert page.text.index("By protected class and test") < page.text.index("What needs a decision")
    ids = {element["id"] for element in page.all("article") + page.all("tr") if "id" in element}
    links = [element["href"].removeprefix("#") for element in page.all("a")]
    table = verdicts_by_class(run)
    assert table is not None
    of_cells = {cell.link for row in table.rows for cell in row if isinstance(cell, Entry)}
    assert of_cells <= ids & set(links)
