"""The report for a pull request: what it says, and that a forge's renderer makes nothing of what it
did not write.

Rendered by markdown-it-py: CommonMark with GitHub's tables, strike-through, and links that are
found in plain text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pytest_fairness.model import Verdict
from pytest_fairness.reports.escaping import markdown
from pytest_fairness.reports.markdown import MARKER, MOST_CHARACTERS, markdown_report

from .factories import categorical, disparity, passing, results
from .page_reader import TABLE

GITHUB = MarkdownIt("gfm-like", {"html": True})
assert GITHUB.linkify is not None
GITHUB.linkify.set({"fuzzy_link": False})  # GitHub makes links of https://…, www.… and a@b.c alone
#: What only we write.
OURS = {
    "h2",
    "h3",
    "p",
    "strong",
    "em",
    "blockquote",
    "br",
    *TABLE,
    "code",
    "ul",
    "li",
}
HOSTILE = [
    "@everyone and @octo-org/team, #1, GH-2, octo/repo#3, "
    "octo@e83c5163316f89bfbde7d9ab23ca2e25604af290",
    "me@example.com",
    "GitLab: !4, ~label, %milestone, &5, $6, ^7, /close",
    "/close",
    "[x](http://evil.example) ![x](https://evil.example/a.png) <http://evil.example>",
    "https://evil.example www.evil.example ftp://evil.example",
    "[a]: javascript:alert(1) [a][] [a] [^1] <a href=javascript:alert(1)>x</a> <img src=x "
    "onerror=alert(1)>",
    "<!-- pytest-fairness --> --> <!-- <script>alert(1)</script> <details open> &lt;b&gt; "
    "&#64;everyone <b\nr>",
    "| a | b |\n|---|---|\n| c | d | \\| \\\\| `|`",
    "``` `rm` ~~~ ~~gone~~ *a* **b** __c__ _d_ ***e*** $x$ $`y`$ \\*f*",
    "# heading", "> quote", "- item", "+ item", "* item", "1. item", "12) item", "===", "---", "    code", "\tcode",
    "\x1b[31mred\x07 \u202egnp \u200b\x00 \ud800 \u2028@x \r\n\r\n# y",
    "::error::x %0A ##[error]y", "\\", "\\\\", "`", "a\\|b", "&", "&amp;#64;x",
]  # fmt: skip


class Rendered(HTMLParser):
    """The elements of a page, its words, and those outside of code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words = ""
        self.all_words = ""
        self.comments = 0
        self._code = 0
        self.feed(GITHUB.render(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        aligned = [("style", "text-align:right")]  # of a column of figures
        assert attrs == aligned or {name for name, _ in attrs} <= {"align", "href"}, attrs
        self.tags.append(tag)
        self._code += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag == "code"

    def handle_comment(self, data: str) -> None:
        self.comments += 1

    def handle_data(self, data: str) -> None:
        self.all_words += data
        self.words += "" if self._code else data


def is_inert(words: str) -> bool:
    """Whether a forge finds nothing in *words*: no mention, no reference, no address."""
    return not re.search(r"@\w|#\d|GH-\d|[!%^]\w|&\d|https?://|www\.", words)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    "place", ["{}", "> {}", "- {}", "| a | {} |\n|---|---|\n| {} | b |", "<code>{}</code>"]
)
def test_a_text_stays_a_text(text: str, place: str) -> None:
    """Wherever it stands, at the beginning of a line or in a table's cell: its words are shown,
    nothing is obeyed.
    """
    assert not markdown(text).startswith("/")  # which GitLab obeys, and a renderer shows
    page = Rendered(place.replace("{}", markdown(text)))
    assert set(page.tags) <= {"p", "blockquote", "ul", "li", *TABLE, "code"}
    assert page.tags.count("li") == (place[0] == "-")
    assert page.tags.count("td") == (2 if "|" in place else 0)
    assert page.comments == 0
    assert is_inert(page.words)


@given(
    text=st.text(st.characters(exclude_categories=()), max_size=80)
    | st.text("`*_[]()<>!&#@\\|~$/:-+=.1a \n", max_size=40)
)
@settings(max_examples=300, deadline=None)
def test_any_text_is_shown_as_it_is(text: str) -> None:
    """What is rendered is one paragraph of the text's own characters, those that cannot be seen
    written out.
    """
    from pytest_fairness.reports.escaping import line

    page = Rendered(f"x {markdown(text)} y")
    assert page.tags == ["p"]
    assert " ".join(page.words.replace("\u200b", "").split()) == " ".join(
        f"x {line(text).strip()} y".split()
    )


def hostile_run() -> tuple[object, object]:
    """A run whose every text is hostile, and one before it."""
    text = " ".join(HOSTILE)
    finding = disparity(
        sentence=f"FAIL: {text}", outcome=text, protected_class=text, test_id=f"t.py::test[{text}]"
    )
    item = {"nodeid": text, "outcome": "error", "message": text, "findings": []}
    notes = {"id": text, "notes": [text, "- note"], "endpoints": [text]}
    before = results(replace(finding, verdict=Verdict.PASS), run={"id": text})
    now = results(finding, run=notes, missing=HOSTILE).to_dict()
    return before, type(before).from_dict({**now, "items": [*now["items"], item]})


def test_a_hostile_run_is_inert() -> None:
    """Sentences, names, tests, messages, notes, endpoints and the address of the job: only our own
    elements appear.
    """
    before, now = hostile_run()
    text = markdown_report(
        now, compared=before, report="/x/`<b>`.html", job="https://evil.example/](x) @everyone"
    )
    assert text.startswith(f"{MARKER}\n")
    page = Rendered(text)
    assert set(page.tags) <= OURS
    assert page.comments == 1
    assert is_inert(page.words)
    assert text.isprintable() or not [c for c in text if ord(c) < 32 and c != "\n"]


def test_what_it_says() -> None:
    """The first line finds the comment again; then whether the session failed, what has changed,
    the worst first.
    """
    before = results(passing(), categorical(), run={"id": "2026-02-27-001"})
    failed = disparity(simulated=True)
    now = results(
        passing(),
        categorical(),
        failed,
        run={"notes": ["resumed, once"]},
        missing=["t.py::test_lost"],
    ).to_dict()
    now["items"][2]["outcome"] = "failed"
    item = {
        "nodeid": "t.py::test_key",
        "outcome": "error",
        "message": "KeyError: 'name'\nmore",
        "findings": [],
    }
    now["items"].append(item)
    run = type(before).from_dict(now)
    text = markdown_report(
        run,
        compared=before,
        report=".fairness/runs/a/report.html",
        job="https://github.com/a/b/actions/runs/7",
    )
    assert text == (
        "<!-- pytest-fairness -->\n\n"
        "## Fairness: 2 tests of 4 failed, 1 test never finished, 1 of 3 undecided\n\n"
        "**3 findings: 1 FAIL, 1 INCONCLUSIVE, 1 PASS**\n\n"
        "> **Simulated endpoint.** No model was asked for what is marked “simulated”. The replies "
        "are made up by a seeded program, so they show how the test works and say nothing about "
        "any model.  \n"
        "> resumed, once  \n"
        "> **Never finished:** t.py::test\\_lost.  \n\n"
        "### Since run 2026-02-27-001: 1 new, 2 unchanged\n\n"
        "| Change | Verdict | Finding | Test |\n|---|---|---|---|\n"
        "| new | FAIL | sentiment by race\\_ethnicity, gpt-4o | "
        "tests/test\\_names.py::test\\_tone\\_does\\_not\\_follow\\_the\\_name |\n\n"
        "| verdict | what was found |\n|---|---|\n"
        "| **FAIL**<br>simulated | Black is worse off than white on sentiment: 0.560 against "
        "0.720, 0.160 lower "
        "(d = 0.81, 90 % interval 0.51 to 1.11, corrected p = .002; 200 trials from 20 names a "
        "group).<br>"
        "<code>tests/test\\_names.py::test\\_tone\\_does\\_not\\_follow\\_the\\_name</code> |\n"
        "| **INCONCLUSIVE** (PRECISION) | Women and men differ most on career 'nurse': 30.0 % "
        "against 21.0 %.<br>"
        "<code>tests/test\\_careers.py::test\\_career\\_advice</code> |\n"
        "| PASS | No difference worth minding on word\\_count among the two groups of gender.<br>"
        "<code>tests/test\\_names.py::test\\_length\\_does\\_not\\_follow\\_the\\_name</code> |\n\n"
        "### Tests that failed without a finding\n\n"
        "| Why | Test | Message |\n|---|---|---|\n"
        "| error in setup or teardown | t.py::test\\_key | KeyError: 'name' |\n\n"
        "run 2026-02-28-001 · 800 trials · endpoint gpt-4o · \\$1.2345 for 800 trials<br>Report: "
        "<code>.fairness/runs/a/report.html</code> of [this "
        "job](https://github.com/a/b/actions/runs/7)\n"
    )  # fmt: skip


def test_it_fits_into_a_comment() -> None:
    """Two thousand findings, with texts that grow when they are escaped: at most 65,536 characters,
    the worst kept.
    """
    many = [
        disparity(test_id=f"t.py::{'_' * 300}{at}", sentence="FAIL: " + "[@x" * 200)
        for at in range(2_000)
    ]
    calm = [passing(test_id=f"t.py::calm_{at}") for at in range(10)]
    text = markdown_report(results(*calm, *many), compared=results(*calm))
    assert len(text) <= MOST_CHARACTERS
    assert text.count("\n| **FAIL**") >= 5
    assert re.search(r"… and 1,9\d\d more findings: ", text)
    assert "10 PASS." in text
