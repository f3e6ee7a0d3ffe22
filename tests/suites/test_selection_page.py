"""The page of the selection benchmark: complete, inert, in words and in pictures; made from any
table of choices.
"""

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fairness.model import Reason, Verdict
from pytest_fairness.reports.html import render, write_html
from pytest_fairness.reports.sections import write_page
from pytest_fairness.suites.selection.page import selection_page

from ..reports.factories import HOSTILE, run_folder
from ..reports.factories import results as findings_of
from ..reports.page_reader import Page
from .choices_of import CLASSES, GROUPS, clean, experiment, hostile, results_of, scrubbed, tiny

STEPS = [
    {
        "system": "You scrub.",
        "prompt": "Scrub this: 1. Emily Sullivan",
        "response": "1. Candidate A\n2. Candidate B",
    },
    {"system": "You judge.", "prompt": "Choose: 1. Candidate A", "response": "Candidate B"},
]


def choice(arm, role="nurse", reply="Emily Sullivan", **changes):
    """A line of ``selection.jsonl``."""
    return {
        "schema": 1, "arm": arm, "status": "answered", "role": role, "criteria": "tough and logical",
        "first_name": "Emily Sullivan", "second_name": "Greg Walsh", "choice": "chosen", "chosen": "white_female",
        "simulated": False, "scrubbed_text": None, **changes,
        "requests": changes.get("requests", [{"system": None, "prompt": "Choose", "response": reply}]),
    }  # fmt: skip


def write(folder, results, log=(), stem="selection", **run):
    """The page that a run in *folder* ends with."""
    run_folder(folder, findings_of(run=run))
    records = folder / f"{stem}.jsonl"
    records.write_text("".join(json.dumps(one) + "\n" for one in log), encoding="ascii")
    write_page(folder, stem, selection_page(results, records))
    write_html(folder)
    return (folder / f"{stem}.html").read_bytes().decode("utf-8")


@pytest.fixture(scope="module")
def whole():
    """Three arms with a preference, a position effect, an interaction and a scrubber, of two names
    a group.
    """
    three = experiment(
        1, strength={"black_female": -0.9}, position=0.4, arms={"raw_naive": 1.0, "raw_matched": 0.8, "scrubbed": 0.1},
        sets=6, repetitions=6,
    )  # fmt: skip
    found = results_of(three)
    return replace(found, scrubbers=results_of(scrubbed(clean, sets=2)).scrubbers)


@pytest.fixture(scope="module")
def page(tmp_path_factory, whole):
    return Page(write(tmp_path_factory.mktemp("run"), whole))


def test_every_picture_has_a_title_a_description_and_its_table(page):
    """Who cannot see a picture loses nothing: its figures stand in a table with headers after it."""
    names = [tag for tag, _ in page.elements]
    places = [
        at
        for at, (tag, attributes) in enumerate(page.elements)
        if tag == "svg" and "role" in attributes
    ]
    # Rates of three arms, two classes, three contrasts, order, six interactions, strengths,
    # outcomes; signals and content, and three guesses of the scrubber.
    assert len(places) == 3 + 2 + 3 + 1 + 6 + 1 + 1 + 2 + 3
    for at, following in itertools.pairwise([*places, len(names)]):
        assert names[at + 1 : at + 3] == ["title", "desc"]
        assert "table" in names[at:following]
    identities = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(identities) == len(set(identities))
    targets = [
        (link["href"] or "").removeprefix("#")
        for link in page.all("a")
        if link["href"] != "report.html"
    ]
    assert set(targets) <= set(identities)


def test_the_page_leads_with_who_is_preferred_and_what_the_mitigation_does(tmp_path, page, whole):
    """Each arm's and each contrast's sentence with its verdict, before anything else; contrasts by
    class, or between groups where they share none.
    """
    opening = page.text[: page.text.index("What was asked")]
    for words in (
        "is chosen over black_female in",
        "raw_naive",
        "scrubbed",
        "FAIL",
        "over black_female: ",
    ):
        assert words in opening
    for one in whole.contrasts:
        about = f"{one.isolates} ({one.treated} against {one.control}"
        assert (f"{about}, by {one.by.replace('_', ' ')})" in opening) == (one.by != "group")
        assert f"{about})" not in opening
    between = next(one for one in whole.contrasts if one.by == "group")
    undecided = replace(
        between,
        verdict=Verdict.INCONCLUSIVE,
        reason=Reason.PRECISION,
        sentence="Nothing to reduce.",
    )
    text = Page(write(tmp_path, replace(whole, contrasts=(undecided,)))).text
    assert (
        "the evaluator's prompt alone (raw_matched against raw_naive)"
        in text[: text.index("What was asked")]
    )
    assert text.count("Nothing to reduce.") == 2


def test_the_design_its_names_and_its_cost_are_shown(tmp_path, page, whole):
    """What was asked, of whom, how often, at which price, and what the names allow; and what it
    cannot say.
    """
    for words in (
        "planted (m1)", "white_male (white, male)", "1,296 trials, 1,296 requests", "$ 1.2960",
        "6 sets of names, which are independent of each other", "6 of each configuration, in both orders",
        "the candidates' text scrubbed by the model first", "percentage points to each side",
        "stereotypes on purpose (nurturing and gentle, tough and logical)", "Groups are stated in words.",
        "The model that scrubs is the model that judges", "What is claimed of a group is claimed from 6 names a group",
        "Simulated endpoint. No model was asked.", "criteria × group", "role × gender",
        *(f"{pair.group_1} – {pair.group_2}" for pair in whole.arms[0].preference.pairs),
    ):  # fmt: skip
        assert words in page.text
    assert "Replayed." not in page.text
    run = replace(
        whole.run,
        cost=None,
        names=1,
        signals=("name",),
        criteria=("punctual",),
        simulated=False,
        replayed=True,
    )
    other = Page(write(tmp_path / "b", replace(whole, run=run, arms=whole.arms[:1]))).text
    for words in (
        "Cost not known",
        "There is one name a group",
        "Replayed. Replies come from a recorded run",
    ):
        assert words in other
        assert words not in page.text
    for words in (
        "stereotypes on purpose",
        "Groups are stated in words",
        "The model that scrubs",
        "Simulated endpoint",
    ):
        assert words not in other


def test_a_page_of_hostile_text_is_inert(tmp_path, whole):
    """Markup, control codes and overrides in every name, sentence, setting and reply come out as
    letters.
    """
    log = [hostile(choice("scrubbed"), HOSTILE, "record")]
    text = write(
        tmp_path, hostile(whole, HOSTILE), log, id=HOSTILE, versions={"pytest-fairness": HOSTILE}
    )
    page = Page(text)  # would raise on a <script> or an <img>
    assert page.text.count("onerror=alert") > 50
    for character in "\x1b\x07\r\u202e\u200b\x00\u2028":
        assert character not in text


@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.text(st.characters(), min_size=1, max_size=60))
def test_any_name_of_a_group_leaves_the_page_well_formed(tmp_path, whole, name):
    """The page parses into our own elements whatever a group or an arm is called."""
    changed = hostile(replace(whole, arms=whole.arms[:1], contrasts=()), name)
    Page(render(selection_page(changed, tmp_path / "none.jsonl"), {"id": "r", "versions": {}}))


@pytest.mark.parametrize(
    "groups", [[f"a rather long name of group {n}" for n in range(8)], GROUPS[:2]], ids=len
)
def test_any_number_of_groups_makes_a_page(tmp_path, groups):
    """Eight groups with long names; two of which one always wins, so that strengths have no error."""
    frame = tiny(groups=tuple(groups))
    frame = frame if len(groups) > 2 else frame.assign(chosen=groups[0])
    classes = {group: CLASSES.get(group, {}) for group in groups}
    text = Page(write(tmp_path, results_of(frame, classes))).text
    assert text.count("each pair of groups") == 1
    assert text.count("each group against each other") == 1
    assert ("ridge: for orientation" in text) == (len(groups) == 2)


def test_the_examples_show_the_prompt_the_scrubbed_text_and_the_reply(tmp_path, whole):
    """One in each of the first contexts, each request of a pipeline with its system prompt; a
    refusal if any.
    """
    log = [
        choice("raw_naive", "nurse", "first"),
        choice("raw_naive", "nurse", "again in this context"),
        choice(
            "raw_naive", "nurse", "I cannot choose", status="refused", choice="refused", chosen=None
        ),
        choice("raw_naive", "IT engineer", "second"),
        choice("raw_naive", "teacher", "third context"),
        choice("scrubbed", requests=STEPS, scrubbed_text=STEPS[0]["response"]),
        choice("raw_matched", "nurse", "never came", status="error"),
        choice("another_arm", "nurse", "of another benchmark"),
        choice("raw_matched", reply="word " * 300_000),
    ]
    text = Page(write(tmp_path, whole, log)).text
    text = text[text.index("The first choices of each arm") :]
    assert (
        text.index("reply first") < text.index("reply second") < text.index("reply I cannot choose")
    )
    assert (
        "Emily Sullivan / Greg Walsh · nurse, tough and logical · answered · read as chosen: "
        "white_female" in text
    )
    assert "answered · read as refused" not in text
    for words in (
        "step 1: system You scrub.", "step 1: prompt Scrub this: 1. Emily Sullivan",
        "step 1: reply 1. Candidate A 2. Candidate B", "step 2: system You judge.",
        "the scrubbed text in it 1. Candidate A 2. Candidate B", "step 2: reply Candidate B", "more characters]",
    ):  # fmt: skip
        assert words in text
    for words in ("again in this context", "third context", "never came", "of another benchmark"):
        assert words not in text
    assert (tmp_path / "selection.html").stat().st_size < 400_000


def test_pages_link_to_each_other_and_to_the_findings(tmp_path, whole):
    """Results at a second temperature have a page of their own; no dead link in other runs."""
    plain = write_html(run_folder(tmp_path / "a", findings_of()))
    assert "selection.html" not in plain.read_text(encoding="utf-8")
    run = replace(whole.run, endpoint="planted at 0")
    write(tmp_path, replace(whole, run=run), stem="selection-t-0")
    first = write(tmp_path, whole)
    second, report = (
        (tmp_path / f"{stem}.html").read_text(encoding="utf-8")
        for stem in ("selection-t-0", "report")
    )
    assert 'href="selection-t-0.html"' in first
    assert 'href="report.html"' in first
    assert 'href="selection.html"' in second
    assert '<a href="selection.html">selection benchmark</a>' in report
    assert "planted at 0" in second
    assert "planted at 0" not in first
