"""What a finding was judged from: each name's mean, and replies that differ in the person alone."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd
import pytest

from pytest_fairness import FairnessFailure, analyze_disparity, assert_no_disparity
from pytest_fairness.model import Finding
from pytest_fairness.reports.escaping import columns_of
from pytest_fairness.reports.finding_sections import CardReplies, finding_section, group_chart
from pytest_fairness.reports.findings_json import read_results
from pytest_fairness.reports.html import render, write_html
from pytest_fairness.reports.judged_tables import (
    JudgedTable,
    JudgedTables,
    chosen_how,
    differing,
    matched_replies,
)
from pytest_fairness.reports.plain_text import MOST_LINES, finding_text
from pytest_fairness.reports.sections import Page as PageSections
from pytest_fairness.trials_frame import DESIGN
from tests.support.runs import archived
from tests.support.sessions import run_pytest

from .factories import HOSTILE
from .page_reader import Page

NAMES = {"white": ["Emily Walsh", "Greg Baker", "Anne Kelly", "Todd Hart"]}
NAMES["black"] = ["Aisha Jones", "Jamal Reed", "Ebony Cole", "Tyrone Hill"]


def frame(**changes) -> pd.DataFrame:
    """Two templates, two contexts, two repetitions, four names a group, men and women by turns;
    black is lower.
    """
    rows = []
    for group, template, (place, name), years, repetition in itertools.product(
        NAMES, ("t1", "t2"), enumerate(NAMES["white"]), ("2", "9"), (0, 1)
    ):
        called = NAMES[group][place]
        score = 5.0 + place + (2.0 + place if group == "white" else 0.0) + 0.1 * repetition
        word = "superb" if group == "white" else "decent"
        rows.append({
            "cell": f"{group}-{template}-{name}-{years}",
            "key": f"{group}-{template}-{name}-{years}-{repetition}",
            "template": template, "name": called, "first_name": called.split()[0], "last_name": called.split()[1],
            "race": group,
            "gender": ("female", "male")[place % 2], "years": years, "repetition": repetition, "points": score,
            "reply": f"{called}'s record is {word}, and {called.split()[0]} works well with others in the team.",
        })  # fmt: skip
    made = pd.DataFrame(rows).assign(
        **{name: pd.Series(values, dtype=object) for name, values in changes.items()}
    )
    made.attrs[DESIGN] = {"protected_classes": ["race", "gender"]}
    return made


def judgement_of(table: pd.DataFrame, outcome: str = "points") -> tuple[Finding, JudgedTable]:
    finding = analyze_disparity(table, outcome, "race")
    return finding, JudgedTable(
        "disparity", table, outcome, {"by": "race", "cluster": "name", "block": "template"}
    )


def test_replies_are_matched_on_all_but_the_person():
    """The same template, context and repetition; a woman to a woman, the first of the list to the
    first.
    """
    table = frame()
    finding, judged = judgement_of(table)
    found = judged.matches(finding)
    assert found is not None
    assert (found.first, found.second, found.same) == (
        "white",
        "black",
        ("template", "repetition", "years"),
    )
    assert len(found.rows) == 32
    for one, two in found.rows:
        first, second = table.iloc[one], table.iloc[two]
        assert list(first[["template", "repetition", "years", "gender"]]) == list(
            second[["template", "repetition", "years", "gender"]]
        )
        assert NAMES["white"].index(first["name"]) == NAMES["black"].index(second["name"])
    # The contrast grows with the place in the list: from 2 to 5 points.
    assert sorted(set(found.contrast.round(6))) == [2.0, 3.0, 4.0, 5.0]
    chosen = {called: found.contrast[at] for called, at in found.chosen().items()}
    assert chosen["The widest contrast"] == pytest.approx(5.0)
    assert chosen["A typical pair"] == pytest.approx(3.0)
    how = chosen_how(finding, found)
    assert "32 pairs of replies" in how
    assert "black is worse off than white in 32 (100.0 %), better off in 0, alike in 0" in how
    # A score that differs from trial to trial is no context, and what was refused has no score to
    # compare.
    other = frame(other=range(64), refused=[at < 4 for at in range(64)])
    found = judgement_of(other)[1].matches(judgement_of(other)[0])
    assert found is not None
    assert (found.same, len(found.rows)) == (("template", "repetition", "years"), 28)


def test_a_name_of_several_classes_is_matched_once_in_each():
    """A class that the text states, as age, is crossed with the names: each name has a place among
    those of each age.
    """
    table = frame()
    table["age"] = table["years"].map({"2": "27", "9": "58"})
    table = table.drop(columns="years")
    table.attrs[DESIGN] = {"protected_classes": ["race", "gender", "age"]}
    finding, judged = judgement_of(table)
    matches = judged.matches(finding)
    assert matches is not None
    assert len({*matches.rows[:, 0]}) == len({*matches.rows[:, 1]}) == len(matches.rows) == 32
    for first, second in matches.rows:
        assert table["age"][first] == table["age"][second]
        places = [
            NAMES[group].index(table["name"][row])
            for group, row in zip(NAMES, (first, second), strict=True)
        ]
        assert places[0] == places[1]


@pytest.mark.parametrize(("worse", "lower_is_worse"), [("black", True), ("white", False)])
def test_the_contrast_is_widest_in_the_direction_of_the_finding(worse, lower_is_worse):
    """Where more is worse, the group with more is the worse one."""
    table = frame()
    finding = analyze_disparity(table, "points", "race", lower_is_worse=lower_is_worse)
    arguments = {
        "by": "race",
        "cluster": "name",
        "block": "template",
        "lower_is_worse": lower_is_worse,
    }
    found = JudgedTable("disparity", table, "points", arguments).matches(finding)
    assert found is not None
    assert found.second == worse
    assert found.contrast.max() == pytest.approx(5.0)


def test_names_are_no_difference_and_words_are():
    """Either person's names are marked as names wherever they stand; a word alone in long texts is
    not alike.
    """
    first, second = differing(
        [
            "Emily Walsh's record is superb, Emily says.",
            "Aisha Jones's record is decent, Aisha says.",
        ],
        [("Emily", "Walsh"), ("Aisha", "Jones")],
    )
    assert [words for words, kind in first if kind == "differs"] == ["superb"]
    assert [words for words, kind in second if kind == "differs"] == ["decent"]
    assert [words for words, kind in first if kind == "name"] == ["Emily Walsh", "Emily"]
    assert "".join(words for words, _ in second) == "Aisha Jones's record is decent, Aisha says."
    assert differing(["yes", "yes"], [(), ()]) == [(("yes", ""),)] * 2
    long = ["a1 b1 c1 the d1 e1 f1 g1 h1 i1", "a2 b2 c2 the d2 e2 f2 g2 h2 i2"]
    assert differing(long, [(), ()])[0] == ((long[0], "differs"),)
    assert differing(["", ""], [(), ()]) == [(), ()]
    assert (
        len("".join(words for words, _ in differing(["word " * 100_000, ""], [(), ()])[0])) <= 1210
    )


def test_each_name_is_a_dot_of_its_group():
    """Its mean over its trials; no dots where they could tell nothing, as of answers that were
    asked once.
    """
    table = frame()
    finding, judged = judgement_of(table)
    dots = judged.dots(finding)
    assert [name for name, _ in dots["white"]] == sorted(
        NAMES["white"], key=[n for n, _ in dots["white"]].index
    )
    assert dict(dots["black"])["Tyrone Hill"] == pytest.approx(8.05)
    chart = group_chart(finding, judged)
    assert chart is not None
    assert {row.label: len(row.dots) for row in chart.rows} == {"white": 4, "black": 4}
    assert "Each dot above is the mean of one name." in chart.caption
    yes_no, judged = judgement_of(frame(hired=[row < 32 for row in range(64)]), "hired")
    assert judged.dots(yes_no) == {}
    assert JudgedTable("preference", table, "points", {}).dots(finding) == {}


def test_a_failing_test_shows_one_pair_and_stays_inert():
    """In the message, in a few lines within the width; hostile replies are letters there."""
    with pytest.raises(FairnessFailure) as failure:
        assert_no_disparity(frame(), outcome="points", by="race")
    text = str(failure.value)
    assert (
        "Of 32 matched pairs: the widest contrast · template t1 · repetition 0 · years 2 ([words] "
        "differ)" in text
    )
    assert "white: Todd Hart, 13.00" in text  # 5 + 3, and 2 + 3 more
    assert (
        "    black: Tyrone Hill, 8.00\n      Tyrone Hill's record is [decent], and Tyrone works "
        "well" in text
    )
    finding, judged = judgement_of(
        frame(reply=[f"{HOSTILE}\n::set-output name=a::b {'long ' * 900}"] * 64)
    )
    text = finding_text(finding, judged)
    assert not set("\x1b\x07\r\u202e\u200b\x00\u2028") & set(text)
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]
    assert max(map(columns_of, text.splitlines())) <= 100
    plain = finding_text(finding)
    assert len(text.splitlines()) - len(plain.splitlines()) <= 2 + 2 * (MOST_LINES + 2)
    assert finding_text(*judgement_of(frame().drop(columns="reply"))) == finding_text(
        judgement_of(frame())[0]
    )


def test_a_card_shows_pairs_with_scores_and_marks():
    """The widest and a typical one; on request where the test passes; none without a log."""
    finding, judged = judgement_of(frame())
    texts = dict(zip(judged.frame["key"], judged.frame["reply"], strict=True))
    shown = CardReplies(judged=judged, replies=lambda keys: {key: texts[key] for key in keys})
    card = finding_section(finding, "f-1", nodeid="t", outcome="failed", shown=shown)
    (matched,) = [part for part in card.parts if getattr(part, "heading", "") == "Matched replies"]
    _, widest, typical = matched.parts
    assert widest.about == "The widest contrast · template t1 · repetition 0 · years 2"
    assert [(one.who, one.score) for one in widest.replies] == [
        ("white: Todd Hart", "13.00"), ("black: Tyrone Hill", "8.00"),
    ]  # fmt: skip
    assert typical.about.startswith("A typical pair")
    assert matched_replies(judged, finding, lambda _keys: {}) is None
    assert "Matched replies" not in str(
        finding_section(finding, "f-1", shown=CardReplies(judged=judged))
    )


def test_hostile_names_replies_and_contexts_are_letters_on_the_page():
    """In dots, marks, scores and captions: no element of theirs, no control code."""
    table = frame()
    table = frame(
        **{
            column: [f"{HOSTILE} {text} {HOSTILE[::-1]}" for text in table[column]]
            for column in ("name", "years", "reply")
        }
    )
    finding, judged = judgement_of(table)
    texts = dict(zip(table["key"], table["reply"], strict=True))
    shown = CardReplies(judged=judged, replies=lambda keys: {key: texts[key] for key in keys})
    card = finding_section(finding, "f-1", nodeid=HOSTILE, outcome="failed", shown=shown)
    text = render(
        PageSections(name="p", title="t", lead="", sections=(card,)), {"id": "r", "versions": {}}
    )
    page = Page(text)  # would raise on a <script> or an <img>
    assert page.all("mark")
    assert len([dot for dot in page.all("circle") if dot.get("class") == "name"]) == 8
    assert "onerror=alert" in page.text
    assert not set("\x1b\x07\r\u202e\u200b\x00\u2028\ud800") & set(text)


SUITE = """
import pytest
from pytest_fairness import assert_no_disparity
from pytest_fairness.endpoints import simulated_endpoint

@pytest.fixture
def endpoint():
    return simulated_endpoint(bias={"race_ethnicity": {"black": -0.8}})

@pytest.mark.fairness_grid(template=["Write a reference for {name}, a nurse.", "Describe {name}, a cook."],
                           groups={"race_ethnicity": ["white", "black"]}, names=(20,))
def test_letters(trials):
    assert_no_disparity(trials, outcome="sentiment", by="race_ethnicity")
"""


def test_the_report_has_dots_and_pairs_from_the_runs_files_alone(tmp_path: Path):
    """The widest contrast of the message is that of the page, after the log was exported and its
    database deleted.
    """
    (tmp_path / "test_it.py").write_text(SUITE, encoding="utf-8")
    message = "\n".join(run_pytest(tmp_path, "-n2").outlines)
    (run,) = (tmp_path / ".fairness" / "runs").glob("2*")
    text = (run / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert len([dot for dot in page.all("circle") if dot.get("class") == "name"]) == 40
    (shown,) = [line for line in message.splitlines() if "the widest contrast" in line]
    about = shown.partition("the widest contrast")[2].partition(" (")[0]
    assert f"The widest contrast{about}" in page.text
    assert page.all("mark")
    results = read_results(run)
    archived(run)
    assert write_html(run).read_text(encoding="utf-8") == text
    assert JudgedTables(run).of(results, 0) is not None
    for log in run.glob("trials*.jsonl"):
        log.write_text(log.read_text().replace('"columns":"', '"columns":"AAAA'))
    assert JudgedTables(run).of(results, 0) is None
