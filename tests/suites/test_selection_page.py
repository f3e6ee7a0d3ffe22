"""The page of the selection benchmark: complete, inert, accessible, and made from the run's files alone."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_fairness.model import Reason, Verdict
from pytest_fairness.reports.html import render, write_html
from pytest_fairness.suites.selection.metrics import selection_results
from pytest_fairness.suites.selection.page import selection_page
from pytest_fairness.suites.selection.results import SelectionResults

from ..reports.factories import HOSTILE, run_folder
from ..reports.factories import results as findings_of
from ..reports.page_reader import Page
from .choices_of import CLASSES, experiment
from .selection_factory import ARMS, GROUPS, arm, choice_record, scrubber, selection, selection_folder


def _write(folder, results: SelectionResults, log=(), **run) -> str:
    """The page that a run in *folder* ends with."""
    run_folder(folder, findings_of(run=run))
    selection_folder(folder, results, log)
    write_html(folder)
    return (folder / "selection.html").read_bytes().decode("utf-8")


def _page(tmp_path, results: SelectionResults, log=()) -> Page:
    return Page(_write(tmp_path, results, log))


def test_every_picture_has_a_title_a_description_and_its_table(tmp_path):
    """Who cannot see a picture loses nothing: its figures stand in a table with headers after it."""
    page = _page(tmp_path, selection())
    names = [tag for tag, _ in page.elements]
    places = [at for at, name in enumerate(names) if name == "svg"]
    # Matrix and rates of three arms, a class, three contrasts, order, interaction, strengths, outcomes, scrubber.
    assert len(places) == 3 + 3 + 1 + 3 + 1 + 1 + 1 + 1 + 4
    assert "Strengths (log odds) arm and group" in page.text.replace("arm and groupstrength", "arm and group strength")
    for at, following in itertools.pairwise([*places, len(names)]):
        assert names[at + 1 : at + 3] == ["title", "desc"]
        assert "table" in names[at:following]
    identities = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(identities) == len(set(identities))
    targets = [(link["href"] or "").removeprefix("#") for link in page.all("a") if link["href"] != "report.html"]
    assert set(targets) <= set(identities)


def test_the_page_leads_with_who_is_preferred_and_what_the_mitigation_does(tmp_path):
    """Each arm's and each contrast's sentence with its verdict, before anything else."""
    page = _page(tmp_path, selection())
    opening = page.text[: page.text.index("What was asked")]
    for words in (
        "Of two equal candidates white_male is chosen in 70.0 % of raw_naive.",
        "No preference worth minding.",
        "the prompt alone (raw_matched against raw_naive)",
        "scrubbing beyond the prompt (scrubbed against raw_matched)",
        "both together (scrubbed against raw_naive)",
        "PASS",
        "FAIL",
    ):
        assert words in opening
    assert "white_female over black_female" in opening


def test_a_contrast_is_concluded_by_class_where_the_groups_have_classes(tmp_path):
    """Each class has its sentence and its verdict; that between all groups is detail."""
    whole = selection()
    by_race = replace(
        whole.contrasts[-1], by="race_ethnicity", pairs=whole.contrasts[-1].pairs[:1], verdict=Verdict.INCONCLUSIVE,
        reason=Reason.PRECISION, sentence="INCONCLUSIVE: nothing to reduce between races.",
    )  # fmt: skip
    page = _page(tmp_path, replace(whole, contrasts=(*whole.contrasts, by_race)))
    opening = page.text[: page.text.index("What was asked")]
    assert "both together (scrubbed against raw_naive, by race ethnicity)" in opening
    assert "both together (scrubbed against raw_naive)" not in opening
    assert page.text.count("Nothing to reduce between races.") == 2
    assert "the prompt alone (raw_matched against raw_naive)" in opening


def test_the_design_its_names_and_its_cost_are_told(tmp_path):
    """What was asked, of whom, how often, at which price, and what the names allow."""
    text = _page(tmp_path, selection()).text
    for words in (
        "claude-haiku (claude-haiku-4-5-20251001)",
        "white_male (male, white)",
        "6,480 trials, 8,640 requests",
        "$ 3.5000",
        "15 sets of names, which are independent of each other",
        "30 of each configuration, in both orders",
        "the candidates' text scrubbed by the model first",
    ):
        assert words in text
    assert "Cost not known" in _page(tmp_path / "b", selection(cost=None)).text


def test_one_name_a_group_is_told_as_what_it_is(tmp_path):
    """The single-name design claims nothing of groups, and the page says so; the other does not."""
    assert "There is one name a group" in _page(tmp_path / "a", selection(names=1)).text
    assert "There is one name a group" not in _page(tmp_path / "b", selection()).text


def test_simulated_and_replayed_replies_are_loud(tmp_path):
    """A banner each; neither where a model was asked."""
    both = _page(tmp_path / "a", selection(simulated=True, replayed=True)).text
    assert "Simulated endpoint. No model was asked." in both
    assert "Replayed. Replies come from a recorded run" in both
    plain = _page(tmp_path / "b", selection()).text
    assert "Simulated endpoint" not in plain
    assert "Replayed." not in plain


def test_a_page_of_hostile_text_is_inert(tmp_path):
    """Markup, control codes and overrides in every name, sentence, setting and reply come out as letters."""
    results = SelectionResults.from_dict(_hostile(selection().to_dict()))
    log = [_hostile(choice_record("scrubbed"), "record")]
    text = _write(tmp_path, results, log, id=HOSTILE, versions={"pytest-fairness": HOSTILE})
    page = Page(text)  # would raise on a <script> or an <img>
    assert page.text.count("onerror=alert") > 50
    for character in "\x1b\x07\r\u202e\u200b\x00\u2028":
        assert character not in text


def _hostile(value, key=""):
    """Every text of *value* with something hostile behind it, but for the words that only we write."""
    if isinstance(value, dict):
        spoilt = HOSTILE if key == "classes" else ""
        return {name + spoilt: _hostile(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_hostile(one, key) for one in value]
    return value + HOSTILE if isinstance(value, str) and key not in ("verdict", "reason", "status") else value


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(), min_size=1, max_size=60))
def test_any_name_of_a_group_leaves_the_page_well_formed(tmp_path, name):
    """The page parses into our own elements whatever a group or an arm is called."""
    results = selection(("white_male", name), ("raw_naive",))
    changed = replace(results, arms=(arm(name, ("white_male", name)),), scrubbers=(scrubber(("a", name)),))
    Page(render(selection_page(changed, tmp_path / "none.jsonl"), {"id": "r", "versions": {}}))


@pytest.mark.parametrize(
    ("groups", "arms"),
    [(tuple(f"a rather long name of group {n}" for n in range(8)), ARMS), (GROUPS, ("raw_naive",)), ((), ())],
    ids=["eight groups", "one arm", "nothing"],
)
def test_any_size_makes_a_page(tmp_path, groups, arms):
    """Eight groups with long names, an arm alone, and nothing at all."""
    page = _page(tmp_path, selection(groups, arms))
    pairs = len(groups) * (len(groups) - 1) // 2
    assert page.text.count("each pair of groups") == len(arms)
    matrices = [words for words in page.words if words.endswith("each group against each other")]
    assert len(matrices) == (len(arms) if pairs else 0)
    if not arms:
        assert "No arm was asked" in page.text
        assert "Who is chosen over whom" not in page.text


def test_the_examples_show_the_prompt_the_scrubbed_text_and_the_reply(tmp_path):
    """One in each of the first contexts, each request of a pipeline with its system prompt; a refusal if any."""
    log = [
        choice_record("raw_naive", "nurse", "first"),
        choice_record("raw_naive", "nurse", "again in this context"),
        choice_record("raw_naive", "nurse", "I cannot choose", status="refused", choice="refused", chosen=None),
        choice_record("raw_naive", "IT engineer", "second"),
        choice_record("raw_naive", "teacher", "third context"),
        choice_record("scrubbed", "nurse", "Candidate B"),
        choice_record("raw_matched", "nurse", "never came", status="error"),
        choice_record("another_arm", "nurse", "of another benchmark"),
    ]
    text = _page(tmp_path, selection(), log).text
    text = text[text.index("The first choices of each arm") :]
    assert text.index("reply first") < text.index("reply second") < text.index("reply I cannot choose")
    assert "Emily Sullivan / Greg Walsh · nurse, tough and logical · answered · read as chosen: white_female" in text
    assert "answered · read as refused" not in text
    for words in (
        "step 1: system You scrub.",
        "step 1: prompt Scrub this: 1. Emily Sullivan",
        "step 1: reply 1. Candidate A 2. Candidate B",
        "step 2: system You judge.",
        "the scrubbed text in it 1. Candidate A 2. Candidate B",
        "step 2: reply Candidate B",
    ):
        assert words in text
    for words in ("again in this context", "third context", "never came", "of another benchmark"):
        assert words not in text


def test_a_megabyte_reply_does_not_fill_the_page(tmp_path):
    """Examples are cut, and say how much is missing."""
    page = _page(tmp_path, selection(GROUPS, ("raw_naive",)), [choice_record("raw_naive", reply="word " * 300_000)])
    assert "more characters]" in page.text
    assert (tmp_path / "selection.html").stat().st_size < 200_000


def test_what_cannot_be_said_is_told_with_the_runs_own_figures(tmp_path):
    """The widest interval, the stereotyped criteria, the strongest signal, and that one model does both."""
    text = _page(tmp_path, selection()).text
    for words in (
        "reaches 5.0 percentage points to each side",
        "stereotypes on purpose (nurturing and gentle, tough and logical)",
        "Groups are stated in words.",
        "The model that scrubs is the model that judges",
        "What is claimed of a group is claimed from 15 names a group",
    ):
        assert words in text
    other = _page(tmp_path / "b", selection(GROUPS, ("raw_naive",), signals=("name",), criteria=("punctual",))).text
    for words in ("stereotypes on purpose", "Groups are stated in words", "The model that scrubs"):
        assert words not in other


def test_pages_link_to_each_other_and_to_the_findings(tmp_path):
    """Results at a second temperature have a page of their own; no dead link in other runs."""
    plain = write_html(run_folder(tmp_path / "a", findings_of()))
    assert "selection.html" not in plain.read_text(encoding="utf-8")
    selection_folder(tmp_path, selection(endpoint="claude-haiku at 0"), stem="selection-t-0")
    first = _write(tmp_path, selection())
    second, report = ((tmp_path / f"{stem}.html").read_text(encoding="utf-8") for stem in ("selection-t-0", "report"))
    assert 'href="selection-t-0.html"' in first
    assert 'href="report.html"' in first
    assert 'href="selection.html"' in second
    assert '<a href="selection.html">selection benchmark</a>' in report
    assert "claude-haiku at 0" in second
    assert "claude-haiku at 0" not in first


@pytest.mark.parametrize("everything", [True, False], ids=["three arms", "always the first of two groups"])
def test_the_numbers_of_a_table_of_choices_make_a_page(tmp_path, everything):
    """What the metrics give is what the page takes: also where a group always wins, and strengths have no error."""
    if everything:
        arms = {"raw_naive": 1.0, "raw_matched": 0.8, "scrubbed": 0.1}
        frame = experiment(1, strength={"black_female": -0.9}, position=0.4, arms=arms, sets=6, repetitions=6)
    else:
        frame = experiment(1, groups=GROUPS[:2], sets=3, repetitions=3).assign(chosen=GROUPS[0])
    results = selection_results(frame, classes=CLASSES, permutations=19)
    text = _page(tmp_path, results).text
    for arm_result in results.arms:
        for pair in arm_result.pairs:
            assert f"{pair.group_1} – {pair.group_2}" in text
    if everything:
        assert "criteria × group" in text
        assert "role × group" in text
        assert "the evaluator's prompt alone" in text
    else:
        assert "ridge: for orientation" in text
