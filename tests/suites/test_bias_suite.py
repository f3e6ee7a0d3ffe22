"""``pytest --pyargs pytest_fairness.suites.bias``: what is asked of whom, and what is found."""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from pytest_fairness.design.grid import Grid, expand_grid
from pytest_fairness.design.templates import templates
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.model import Status, Trial
from pytest_fairness.reports import Table
from pytest_fairness.reports.verification import verify_run
from pytest_fairness.scorers import outcome_of
from pytest_fairness.scorers.decision import decision
from pytest_fairness.scorers.rating import rating
from pytest_fairness.scorers.triage import triage_esi
from pytest_fairness.suites.bias.associations import (
    CHOICES,
    detail_of_choice,
    rank_of_choice,
    words_section,
)
from pytest_fairness.suites.bias.narratives import TONE, WORDS
from pytest_fairness.suites.bias.programme import (
    ALPHA,
    AT_INTERVIEWS,
    AT_WORK,
    AT_ZERO,
    SIGNALS,
    UNASKED,
    programme,
)
from pytest_fairness.suites.bias.test_hiring_simulation import STRENGTHS
from pytest_fairness.trials_frame import EndpointFacts, trials_frame
from tests.conftest import MODES
from tests.suites.bias_designs import asked_in_prose, signal_designs
from tests.support.entries import planted
from tests.support.servers import ModelServer
from tests.support.shared_sessions import PastSession, SharedProject, SharedSessions

from ..pytest_layer.conftest import MODELS, Project

SUITE = ("--pyargs", "pytest_fairness.suites.bias")
BIAS = "race_ethnicity: {black: -1.2}"
ONE_LOOK = "temperatures: [default]\nnames: [10]\n"
FILES = ("attribute_scoring", "hiring_simulation", "loan_approval", "narrative_generation", "association_completion",
         "healthcare_triage", "refusal_differential")  # fmt: skip


def modules() -> Iterator[ModuleType]:
    for name in FILES:
        yield importlib.import_module(f"pytest_fairness.suites.bias.test_{name}")


def grids(module: ModuleType) -> Iterator[Mapping[str, Any]]:
    """The arguments of each grid of *module*."""
    for test in vars(module).values():
        for mark in getattr(test, "pytestmark", ()):
            if mark.name == "fairness_grid":
                yield mark.kwargs


def designs() -> Iterator[tuple[str, dict[str, Any]]]:
    """The item and signal of each design of the programme, and the arguments of its grid."""
    for module in modules():
        for grid in grids(module):
            yield from signal_designs(grid)


DESIGNS = dict(designs())


@cache
def grid_of_design(id_: str) -> Grid:
    """The grid of the design called *id_*, at which several tests look, about ten names a group: the
    fewest that a project may ask about.
    """
    return expand_grid(**DESIGNS[id_], names=10)


@pytest.mark.parametrize("id_", DESIGNS)
def test_texts_differ_in_what_conveys_the_group_alone(id_: str) -> None:
    """Every cell of one template and context reads the same but for the name and the words; the
    groups are as large.

    The last turn of the conversation of tier 2 is the request, and the turns before it say nothing
    of a group.
    """
    grid = grid_of_design(id_)
    cells = list(grid)
    texts: dict[tuple[str, str], set[str]] = {}
    for place, cell in enumerate(cells):
        assert cell.name is not None
        prompt = asked_in_prose(grid, cell)
        text = prompt.replace(cell.name, "NAME")
        text = re.sub(r"NAME \([^)]*\)|NAME, who [^,]*,|NAME, who .*?(?=\. )", "NAME", text)
        text = re.sub(r" Social history: [^.]*\.", "", text)
        texts.setdefault((cell.template, json.dumps(dict(cell.context))), set()).add(text)
        assert "{" not in prompt
        assert ",," not in prompt
        assert "  " not in prompt
        turns = grid.conversation_at(place, cell)
        assert cell.prompt in turns[-1]
        assert not any(cell.name in turn for turn in turns[:-1])
    assert {key: len(alike) for key, alike in texts.items()} == dict.fromkeys(texts, 1), texts
    design = DESIGNS[id_]
    (by,) = {name for name in design["groups"] if name != "gender" or len(design["groups"]) == 1}
    usual = expand_grid(**design)
    counts = Counter(unit.groups[by] for unit in usual.units)
    each = len(usual) // len(usual.units)
    sizes = [counts[group] * each for group in design["groups"][by]]
    # The specification asks for 30 of narratives and ratings, and 50 of decisions, of which some
    # may be refused.
    assert min(sizes) == max(sizes) >= (50 if id_.split("-")[1] in ("ATTR", "REFUSE") else 60)
    assert len(grid.templates) >= 3


NARRATIVES = [id_ for id_ in DESIGNS if id_.startswith("BIAS-NARR") and "-words/" not in id_]


@pytest.mark.parametrize("id_", NARRATIVES)
def test_a_writer_that_repeats_what_it_was_told_has_one_tone(id_: str) -> None:
    """The same text about everybody, with the clause of the prompt in it and told once more in
    other words.
    """
    rows = []
    for cell in grid_of_design(id_):
        clause = re.search(r", who ([^,]*),|\(([^)]*)\)", cell.prompt)
        told = "new"
        if clause:
            told = next(filter(None, clause.groups()))
        again = re.sub(r"^(?:has|is|was|\w+s) ", "", told)
        text = (
            f"We present {cell.name}, who {told}: {again}. {again.upper()}! {cell.name} was a "
            "helpful colleague."
        )
        rows.append((cell, Trial(key="k", repetition=0, status=Status.ANSWERED, replies=(text,))))
    frame = trials_frame(rows, EndpointFacts(name="e", simulated=False))
    for outcome in (TONE, *WORDS):
        assert outcome_of(frame, outcome).values.nunique() == 1, (id_, outcome.name)


EIGHT = {
    "race_ethnicity", "gender", "age", "disability", "religion", "sexual_orientation", "national_origin",
    "socioeconomic_status",
}  # fmt: skip


def test_every_class_of_the_specification_is_asked_about_in_every_test() -> None:
    """But for age and disability in triage, where they are clinical facts."""
    classes: dict[str, set[str]] = {}
    for id_, design in DESIGNS.items():
        classes.setdefault(id_.split("-")[1], set()).update(design["groups"])
    assert classes.pop("TRIAGE") == EIGHT - {"age", "disability"}
    assert classes == dict.fromkeys(["ATTR", "HIRE", "LOAN", "NARR", "ASSOC", "REFUSE"], EIGHT)


def test_no_id_stands_twice() -> None:
    ids = [
        entry["id"]
        for module in modules()
        for grid in grids(module)
        for entry in grid["each"].values()
    ]
    assert len(ids) == len(set(ids)) == 148
    assert {id_.split("-")[0] for id_ in ids} == {"BIAS"}
    assert {"BIAS-HIRE-gender", "BIAS-HIRE-gender-graded", "BIAS-HIRE-gender-t0"} < set(ids)


def test_a_label_begins_with_the_class_that_it_is_about() -> None:
    assert {label.partition("-")[0] for label in SIGNALS} == EIGHT
    for label, conveyance in SIGNALS.items():
        assert label.partition("-")[0] == next(iter(conveyance.groups))


def grid_of(template: str, **arguments: Any) -> Mapping[str, Any]:
    return programme("BIAS-OWN", {"one": template}, **arguments).mark.kwargs


def test_words_stand_behind_the_name_where_they_go_on_with_a_sentence() -> None:
    each = grid_of("Rate {name}{who} now.")["each"]
    of_age = each["age"]["signals"]["stated_age"]
    assert of_age["template"] == {"one": "Rate {name}, who {age}, now."}
    assert each["gender"]["signals"]["name"]["template"] == {"one": "Rate {name} now."}


@pytest.mark.parametrize(
    ("text", "with_fact", "without"),
    [
        ("Rate {name}{who}. Now.", "Rate {name}, who {age}. Now.", "Rate {name}. Now."),
        (
            "{name} is here. Pain.{history} Now.",
            "{name} is here. Pain. Social history: {age}. Now.",
            "{name} is here. Pain. Now.",
        ),
    ],
)
def test_a_fact_ends_a_sentence_or_stands_in_a_chart(
    text: str, with_fact: str, without: str
) -> None:
    each = grid_of(text)["each"]
    assert each["age"]["signals"]["stated_age"]["template"] == {"one": with_fact}
    assert each["gender"]["signals"]["name"]["template"] == {"one": without}


def test_what_does_not_apply_is_left_out() -> None:
    def labels(**given: Any) -> set[str]:
        return {
            f"{name}-{label}"
            for name, entry in grid_of("{name}{who}", **given)["each"].items()
            for label in entry["signals"]
        }

    assert labels() == set(SIGNALS)
    assert labels() - labels(without=["age", *AT_WORK]) == {
        "age-stated_age", "age-generation", "age-graduation_year", *AT_WORK
    }  # fmt: skip
    assert set(AT_INTERVIEWS) < set(AT_WORK)
    assert grid_of("{name}{who}")["each"]["age"]["id"] == "BIAS-OWN-age"
    graded = grid_of("{name}{who}", question="graded")["each"]
    assert graded["age"]["id"] == "BIAS-OWN-age-graded"


def test_what_is_asked_at_zero_is_what_is_judged_above_it() -> None:
    """The same signals, texts and names at temperature 0, without a finding and a promise of room."""
    for module in modules():
        declared = list(grids(module))
        judged = {
            entry["id"]: entry["signals"]
            for grid in declared
            for entry in grid["each"].values()
            if not entry["id"].endswith(AT_ZERO)
        }
        for grid in declared:
            for entry in grid["each"].values():
                if entry["id"].endswith(AT_ZERO):
                    assert entry["signals"] == judged[entry["id"].removesuffix(AT_ZERO)]
                    assert (grid["temperatures"], grid["room"]) == ([0.0], False)


def ids_of(design: Mapping[str, Any]) -> set[str]:
    return {template.id for template in templates(design["template"])}


def test_what_is_not_plausible_is_not_asked() -> None:
    """Each line names a test, texts and signals that there are, says why, and leaves the item with
    texts enough to be judged; what it names is asked of nobody.
    """
    for unasked in UNASKED:
        assert len(unasked.reason.split()) > 5
        labels = [
            label for label in SIGNALS if {label, label.partition("-")[0]} & {*unasked.signals}
        ]
        assert labels, unasked.signals
        for label in labels:
            protected_class, _, signal = label.partition("-")
            left = ids_of(DESIGNS[f"{unasked.test}-{protected_class}/{signal}"])
            assert len(left) >= 4, (unasked.test, label)
            for name in unasked.texts:
                assert not [key for key in left if key == name or key.startswith(f"{name}_")]
                assert any(
                    key == name or key.startswith(f"{name}_")
                    for key in ids_of(DESIGNS[f"{unasked.test}-race_ethnicity/name"])
                )


def test_what_a_design_says_replaces_what_is_usual() -> None:
    usual = grid_of("{name}{who}")
    assert (usual["repetitions"], usual["temperatures"]) == (1, ["default"])
    assert usual["strategies"] == "all"
    assert grid_of("{name}{who}", strategies=None)["strategies"] is None


# ---------------------------------------------------------------- one test by its id


IDS = ("BIAS-HIRE-socioeconomic_status", "BIAS-ATTR-age")


@pytest.fixture(params=["plain", "n2"])
def by_id(request: pytest.FixtureRequest, shared: SharedSessions) -> PastSession:
    """Two items in both tiers, on an endpoint that is unfair to one group."""

    def make(project: SharedProject) -> None:
        project.write(
            endpoints__yaml=planted("socioeconomic_status: {lower: -1.2}"),
            bias__yaml=ONE_LOOK,
        )
        project.run(
            "by id",
            *SUITE,
            f"--fairness-test={','.join(IDS)}",
            "--fairness-tier=all",
            "--fairness-endpoint=planted",
            "-o",
            "fairness_session_tests=4",
            *MODES[request.param],
        )

    return shared.once(f"bias-{request.param}", make)["by id"]


def test_what_was_planted_is_found_and_who_is_fair_stays_so(by_id: PastSession) -> None:
    assert {key: by_id.outcomes[key] for key in ("failed", "passed")} == {"failed": 2, "passed": 2}
    verdicts = {(finding["test_id"], finding["verdict"]) for finding in by_id.findings}
    assert verdicts == {(IDS[0], "FAIL"), (IDS[1], "PASS")}


def test_both_tiers_are_judged(by_id: PastSession) -> None:
    judged = {(finding["test_id"], finding["tier"]) for finding in by_id.findings}
    assert judged == {(id_, tier) for id_ in IDS for tier in (1, 2)}


def test_a_finding_names_the_module_and_the_controls(by_id: PastSession) -> None:
    """What a simulated endpoint shows is evidence of none."""
    assert {finding["test_module"] for finding in by_id.findings} == {"iso42001-bias"}
    strengths = [
        strength for finding in by_id.findings for strength in finding["controls"].values()
    ]
    assert set(strengths) == {"context"}
    assert not any(finding["details"].get("unscored") for finding in by_id.findings)


def test_all_items_of_a_file_share_a_level(by_id: PastSession) -> None:
    """Whichever of them run: what each may spend over its looks, where the session leaves it more."""
    items = {}
    for module in modules():
        of_grids = [grid["each"].values() for grid in grids(module)]
        ids = [entry["id"] for entries in of_grids for entry in entries]
        items[module.__name__] = sum(not id_.endswith(AT_ZERO) for id_ in ids)
    levels = {
        finding["test_id"]: finding["details"]["looks"]["red_budget"] for finding in by_id.findings
    }
    suite = "pytest_fairness.suites.bias"
    assert items[f"{suite}.test_hiring_simulation"] == 2 * 8
    assert items[f"{suite}.test_attribute_scoring"] == 8
    assert levels == {IDS[0]: ALPHA / 16, IDS[1]: ALPHA / 8}


# ---------------------------------------------------------------- bias.yaml


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("names: 9", "names: expected a whole number >= 10"),
        ("temperatures: [0]", "temperatures: at 0 nothing is judged"),
        ("size: 3", "size"),
    ],
)
def test_a_wrong_file_is_one_plain_error(project: Project, text: str, message: str) -> None:
    (project.path / "bias.yaml").write_text(text, encoding="utf-8")
    result = project.run(*SUITE, "--collect-only")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert message in result.stdout.str()
    assert "Traceback" not in result.stdout.str()


# ---------------------------------------------------------------- over HTTP


@pytest.fixture
def over_http(shared: SharedSessions) -> PastSession:
    """An item in both tiers, asked of a server, which has kept what it received."""

    def make(project: SharedProject) -> None:
        entry = MODELS + "    supports_system_prompt: true\n    default_temperature: 1.0\n"
        with ModelServer(simulated_endpoint()) as server:
            project.write(
                endpoints__yaml=entry.format(url=server.openai_url),
                bias__yaml=ONE_LOOK,
            )
            project.run(
                "http",
                *SUITE,
                "--fairness-test=BIAS-HIRE-age-graded",
                "--fairness-endpoint=direct",
                "--fairness-tier=all",
                *MODES["plain"],
                OPENAI_API_KEY="sk-canary-0123456789abcdef",
            )
            received = [json.loads(request.body)["messages"] for request in server.requests]
        session = project.sessions["http"]
        (session.folder / "received.json").write_text(json.dumps(received), encoding="utf-8")

    return shared.once("bias-http", make)["http"]


#: Of a graded item about age: three signals, two groups, ten names, six texts.
TRIALS = 3 * 2 * 10 * 6


def test_both_tiers_pass_over_http(over_http: PastSession) -> None:
    assert (over_http.outcomes["passed"], over_http.outcomes["deselected"]) == (2, 154)
    assert not over_http.failed


def test_in_tier_1_the_role_is_the_system_prompt(over_http: PastSession) -> None:
    received = over_http.read("received.json")
    single = [messages for messages in received if messages[0]["role"] == "system"]
    assert len(single) == TRIALS
    assert {len(messages) for messages in single} == {2}
    assert all(
        messages[0]["content"].startswith("You screen job applications") for messages in single
    )


def test_in_tier_2_the_role_is_agreed_on_in_turns(over_http: PastSession) -> None:
    received = over_http.read("received.json")
    talks = [messages for messages in received if messages[0]["role"] == "user"]
    assert sorted(map(len, talks)) == [*[1] * TRIALS, *[3] * TRIALS, *[5] * TRIALS]
    whole = next(messages for messages in talks if len(messages) == 5)
    roles = [message["role"] for message in whole]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert "How do you tell whom to invite?" in whole[0]["content"]
    assert "How strongly would you recommend" in whole[-1]["content"]


def test_the_log_has_every_turn_as_the_server_received_it(over_http: PastSession) -> None:
    attempts = over_http.records("attempt")
    sent = [json.loads(attempt["wire"]["request_body"])["messages"] for attempt in attempts]
    received = over_http.read("received.json")
    assert sorted(map(json.dumps, sent)) == sorted(map(json.dumps, received))


# ---------------------------------------------------------------- reading


READERS = {
    "ASSOC": rank_of_choice,
    "HIRE": decision,
    "LOAN": decision,
    "ATTR": rating,
    "TRIAGE": triage_esi,
}


#: As models write short answers.
STYLES = ("terse", "modern", "thinking", "json", "hedged")


@pytest.mark.parametrize("test", READERS)
def test_the_simulated_model_answers_in_a_form_that_is_read(test: str) -> None:
    """However a model writes: the reply in each style is read as the same answer, whose value is the
    whole reply of the plain style.
    """
    plain = simulated_endpoint()
    styled = [simulated_endpoint(style=style) for style in STYLES]
    texts: set[str] = set()
    asked: set[str] = set()
    for id_ in DESIGNS:
        if id_.split("-")[1] == test:
            reader: Any = READERS[test]
            if "-graded/" in id_:
                reader = rating
            grid = grid_of_design(id_)
            texts.update(template.id for template in grid.templates)
            for place in range(0, len(grid), 61):
                asked.add(grid[place].template)
                prompt = asked_in_prose(grid, grid[place])
                answer = reader(plain.complete(prompt))
                assert answer is not None, id_
                for endpoint in styled:
                    reply = endpoint.complete(prompt)
                    assert reader(reply) == answer, (id_, reply)
    assert asked == texts


def test_triage_is_read_by_the_names_of_the_index_that_is_asked_for(project: Project) -> None:
    """A system that answers "Urgent" is at the third level of the index, not at the second of a
    doctor's practice.
    """
    project.write(
        "",
        conftest="""
        import pytest

        @pytest.fixture
        def endpoint():
            return lambda messages: "Urgent"
        """,
    )
    (project.path / "bias.yaml").write_text(ONE_LOOK, "utf-8")
    project.run(*SUITE, "--fairness-test=BIAS-TRIAGE-gender").assert_outcomes(
        passed=1, deselected=77
    )
    (finding,) = project.findings
    assert {group["value"] for group in finding["group_results"]} == {3.0}


@pytest.mark.parametrize(
    ("reply", "rank"),
    [
        ("Surgeon", "high"),
        ("**3. Teacher**", "middle"),
        ("6", "low"),
        ("I would pick the penthouse.", "high"),
        ("Mansion or Studio", None),
        ("**Teacher**\n\nA teacher fits best; a surgeon would say too much.", "middle"),
        ("I'd go with Teacher rather than Surgeon.", "middle"),
        ("<think>Surgeon? Judge?</think>Cashier", "low"),
        ('{"answer": 5}', "low"),
        ('{"answer": "Mansion", "reason": "A trailer would be unusual."}', "high"),
        ("Option 3", "middle"),
        ("Cleaner, or perhaps cashier", None),
        ("I'd rather not choose.", None),
        ("7", None),
        ("", None),
    ],
)
def test_the_rank_of_a_choice(reply: str, rank: str | None) -> None:
    assert rank_of_choice(reply) == rank


def test_no_choice_stands_twice_and_each_has_its_rank() -> None:
    choices = [choice for choices in CHOICES.values() for choice in choices]
    assert len(choices) == len({choice.casefold() for choice in choices}) == 36
    for listed in CHOICES.values():
        ranks = [rank_of_choice(choice) for choice in listed]
        assert ranks == ["high", "high", "middle", "middle", "low", "low"]


# ---------------------------------------------------------------- words in the report


def words_of(*rows: tuple[str, float, float]) -> pd.DataFrame:
    """What ``analyze_words`` gives: words with their effect and q-value, between two groups."""
    return pd.DataFrame(
        [(word, "women", "men", effect, q_value) for word, effect, q_value in rows],
        columns=["word", "group_1", "group_2", "effect", "q_value"],
    )


def table_of(words: pd.DataFrame) -> Table:
    section = words_section("test_x[age]", "gender", words)
    assert (section.id, section.heading) == ("words", "Words by protected class")
    (table,) = section.parts
    assert isinstance(table, Table)
    return table


def test_sure_words_say_whose_texts_have_them_more_often() -> None:
    table = table_of(words_of(("kind", 0.4, 0.001), ("able", -0.25, 0.04), ("the", 0.1, 0.05)))
    assert table.head == ("test", "class", "word", "more in", "than in", "d", "q")
    assert table.rows == (
        ("test_x[age]", "gender", "kind", "women", "men", "0.40", "0.001"),
        ("test_x[age]", "gender", "able", "men", "women", "0.25", "0.040"),
    )
    assert table.caption.startswith("Words that one group's texts have surely more often")


def test_at_most_twelve_words_are_listed() -> None:
    table = table_of(words_of(*((f"w{number}", 0.3, 0.01) for number in range(20))))
    assert [row[2] for row in table.rows] == [f"w{number}" for number in range(12)]


def test_no_sure_word_is_said_with_how_many_were_tried() -> None:
    table = table_of(words_of(("kind", 0.4, 0.2), ("able", 0.1, 0.9)))
    assert table.rows == (("test_x[age]", "gender", "none of 2", "", "", "", ""),)


def test_words_stand_in_one_section_of_the_report(project: Project) -> None:
    """In a file of its own for each item, which workers can write beside each other."""
    project.write("", planted(BIAS))
    (project.path / "bias.yaml").write_text(ONE_LOOK, "utf-8")
    result = project.run(*SUITE, "--fairness-test=BIAS-NARR-age-words", "--fairness-tier=1")
    result.assert_outcomes(passed=1, deselected=77)
    (path,) = project.last.glob("words-*.sections.json")
    assert path.name.startswith("words-test_agency_")
    assert project.page.count("Words by protected class</h2>") == 1
    assert "test_agency[age-" in path.read_text("utf-8")


# ---------------------------------------------------------------- at temperature 0


def test_temperature_0_is_a_table_without_a_verdict(project: Project) -> None:
    """Twenty names a group and signal, asked once; the effect of each signal stands beside that of
    the class, and the level of the session is that of the tests that judge.
    """
    project.write("", planted("age: {older: -1.2}"))
    chosen = ("--fairness-test=BIAS-ATTR-age-t0", "--fairness-endpoint=planted")
    project.run(*SUITE, *chosen).assert_outcomes(passed=1, deselected=147)
    assert project.findings == []
    trials = project.records("trial")
    assert len(trials) == 3 * 2 * 20 * 5
    designs_asked = project.records("design")
    assert {design["parameters"]["temperature"] for design in designs_asked} == {0.0}
    assert project.manifest["looks"]["tests"] == 78
    (path,) = project.last.glob("effects-*.sections.json")
    (section,) = json.loads(path.read_text("utf-8"))
    (table,) = section["parts"]
    (row,) = table["rows"]
    assert row[1:4] == ["age", "rating", "older – younger"]
    assert float(row[4]) < -0.5
    assert [words.rpartition(" ")[0] for words in row[5].split("; ")] == [
        "generation",
        "graduation year",
        "stated age",
    ]
    assert "At temperature 0</h2>" in project.page


def test_other_temperatures_alone_leave_the_table_out(project: Project) -> None:
    (project.path / "bias.yaml").write_text("temperatures: [default, 0.5]\nnames: [10]\n", "utf-8")
    result = project.run(*SUITE, "--collect-only", "-q")
    assert "t-0.5" in result.stdout.str()
    assert "at_zero" not in result.stdout.str()


# ---------------------------------------------------------------- a function of one text


FUNCTION = """
import hashlib
import pytest

@pytest.fixture(scope="session")
def endpoint():
    def reply(prompt):
        with open("sent.txt", "a", encoding="utf-8") as file:
            file.write(repr(prompt) + "\\n")
        number = int(hashlib.sha256(prompt.encode()).hexdigest(), 16)
        return ("Invite", "Reject")[number % 2] + ", by what is written."
    return reply
"""


@pytest.fixture(params=[1, 2])
def of_one_text(request: pytest.FixtureRequest, shared: SharedSessions) -> PastSession:
    """Two items asked of a function, in one tier; what it was sent is in the run's folder."""
    tier = request.param

    def make(project: SharedProject) -> None:
        project.write(conftest__py=FUNCTION, bias__yaml=ONE_LOOK)
        project.run(
            "function",
            *SUITE,
            "--fairness-test=BIAS-HIRE-age,BIAS-REFUSE-age",
            f"--fairness-tier={tier}",
            *MODES["plain"],
        )
        folder = project.sessions["function"].folder
        (project.path / "sent.txt").rename(folder.with_name(f"sent-{tier}.txt"))

    return shared.once(f"bias-function-{tier}", make)["function"]


def sent(session: PastSession) -> list[str]:
    """The texts that the function was sent."""
    (path,) = session.folder.parent.glob("sent-*.txt")
    return path.read_text(encoding="utf-8").splitlines()


PILOT = 3 * 5 * 6  # posts, strengths, neutral names


def test_each_text_is_in_the_log_as_the_function_got_it(of_one_text: PastSession) -> None:
    trials = of_one_text.records("trial")
    (pilot,) = of_one_text.records("pilot")
    chosen = sum(map(len, pilot["chosen"].values()))
    assert len(trials) == PILOT + 3 * 2 * 10 * (chosen + 6)
    logged = {repr(message["content"]) for trial in trials for message in trial["messages"]}
    assert logged <= set(sent(of_one_text))


def test_each_text_is_the_role_and_the_request(of_one_text: PastSession) -> None:
    trials = of_one_text.records("trial")
    roles = {trial["cell"]["turns"][0].partition("\n\n")[0] for trial in trials}
    assert len(roles) == 2
    assert any(role.startswith("You screen job applications for an employer") for role in roles)


def test_the_finding_says_that_one_text_was_asked(of_one_text: PastSession) -> None:
    assert of_one_text.outcomes["passed"] == len(of_one_text.findings) == 2
    for finding in of_one_text.findings:
        assert any("one text a request" in note for note in finding["notes"])


def test_what_a_function_was_asked_verifies(of_one_text: PastSession) -> None:
    assert verify_run(of_one_text.folder, lambda *_: None).problems == []


# ---------------------------------------------------------------- room to show a bias

AT_A_BORDER = """
import hashlib
import re
import pytest
from pytest_fairness.design.names import NameBanks

WOMEN = {str(name) for name in NameBanks.load().names("gender", "female", 80)}
BORDER, VARIES, LEANS = SETTINGS
#: What is said of each strength in either test, and the words of either decision.
SAID = (("one year of", "two years of", "two and a half", "three years of experience, one", "four years of"),
        ("$2,300", "$2,900", "$3,400", "$4,000", "$6,000"))
ANSWERS = (("reject", "invite"), ("denied", "approved"))

@pytest.fixture(scope="session")
def endpoint():
    def reply(prompt):
        test = "loan" in prompt
        (strength,) = (place for place, words in enumerate(SAID[test]) if words in prompt)
        request = prompt.partition("End with a line")[0].rstrip()  # without what asks for a line
        number = int(hashlib.sha256(request.encode()).hexdigest(), 16)
        leans = LEANS and any(words in prompt for words in (*WOMEN, "(female", "she/her"))
        if "number from 1" in prompt:
            return str(3 + strength + number % 2 - leans)
        if VARIES and abs(strength - BORDER) <= 1:
            return ANSWERS[test][number % 100 < (20 if leans else 50)]
        return ANSWERS[test][strength >= BORDER]
    return reply
"""


def session_about(
    shared: SharedSessions, name: str, system: str, names: list[int], *chosen: str
) -> PastSession:
    """The session called *name*: the *chosen* items of tier 1 ask a *system* of the project's own
    about so many *names* a group.
    """

    def make(project: SharedProject) -> None:
        project.write(conftest__py=system, bias__yaml=f"temperatures: [default]\nnames: {names}\n")
        project.run("own", *SUITE, *chosen, "--fairness-tier=1", *MODES["plain"])

    return shared.once(name, make)["own"]


#: The place of the border among five strengths, whether answers vary around it, and whether women
#: are declined more there; how many names a group are asked about; and the verdicts.
AT_BORDERS = {
    "follows the rule": ((3, False, False), [10], ("INCONCLUSIVE", "PASS")),
    "fair at the border": ((1, True, False), [10, 20], ("PASS", "PASS")),
    "leans at the border": ((3, True, True), [10], ("FAIL", "FAIL")),
}


@pytest.mark.parametrize("name", AT_BORDERS)
def test_the_files_are_those_of_the_border(shared: SharedSessions, name: str) -> None:
    """Of five files those are asked where a system can lean. One that follows the stated rule answers
    all of them alike: INCONCLUSIVE(NO_ROOM), and no PASS; the graded question has room all the
    same. A fair one passes wherever its border is, and one that leans there fails in both.
    """
    settings, names, (decided, graded) = AT_BORDERS[name]

    session = session_about(
        shared,
        f"bias-{name.replace(' ', '-')}",
        AT_A_BORDER.replace("SETTINGS", str(settings)),
        names,
        "--fairness-test=BIAS-*-gender,BIAS-*-gender-graded",
        "-k",
        "hiring or loan",
    )
    verdicts = {finding["test_id"]: finding["verdict"] for finding in session.findings}
    assert verdicts == {
        "BIAS-HIRE-gender": decided, "BIAS-LOAN-gender": decided,
        "BIAS-HIRE-gender-graded": graded, "BIAS-LOAN-gender-graded": graded,
    }  # fmt: skip
    reasons = {finding["reason"] for finding in session.findings}
    assert ("NO_ROOM" in reasons) == (decided == "INCONCLUSIVE")
    border = settings[0]
    strengths = list(STRENGTHS)
    near = set(strengths[max(0, border - 1) : border + 2])
    for record in session.records("pilot"):
        for post, texts in record["chosen"].items():
            assert {text.removeprefix(f"{post}_") for text in texts} <= near
    assert verify_run(session.folder, lambda *_: None).problems == []


STEREOTYPER = """
import hashlib
import re
import pytest
from pytest_fairness.design.names import NameBanks

WOMEN = {str(name) for name in NameBanks.load().names("gender", "female", 80)}
CODED = PAIRS

@pytest.fixture(scope="session")
def endpoint():
    def reply(prompt):
        options = re.findall(r"^\\d\\. (\\w+)$", prompt, re.MULTILINE)
        number = int(hashlib.sha256(prompt.encode()).hexdigest(), 16)
        rank = number % 3
        of_rank = options[2 * rank : 2 * rank + 2]
        if CODED:
            women = any(words in prompt for words in (*WOMEN, "(female", "she/her"))
            return of_rank[0 if women else 1]
        return of_rank[number // 3 % 2]
    return reply
"""


@pytest.mark.parametrize(
    ("coded", "names"), [(True, [10]), (False, [10, 20])], ids=["a stereotyper", "chance"]
)
def test_a_stereotyper_of_equal_rank_is_found(
    shared: SharedSessions, coded: bool, names: list[int]
) -> None:
    """Women are given Teacher and men Electrician, which stand as high as each other: what is chosen
    is judged, not its rank alone. Who chooses by chance passes.
    """
    system = STEREOTYPER.replace("PAIRS", str(coded))
    session = session_about(
        shared, f"bias-stereotyper-{coded}", system, names, "--fairness-test=BIAS-ASSOC-gender"
    )
    (finding,) = session.findings
    if coded:
        assert (finding["verdict"], finding["outcome"]) == ("FAIL", "detail_of_choice")
    else:
        assert (finding["verdict"], finding["outcome"]) == ("PASS", "rank_of_choice")


def test_the_detail_is_read_by_its_word_or_its_number() -> None:
    for reply, detail in {
        "Teacher": "Teacher",
        "**3. Teacher**": "Teacher",
        "4": "Electrician",
        "I would say Cashier.": "Cashier",
        "Option 2 (Judge)": "Judge",
        "I'd go with Teacher rather than Surgeon.": "Teacher",
        '{"answer": 6}': "Cleaner",
        "Teacher or Cashier": None,
        "None of these": None,
    }.items():
        assert detail_of_choice(reply, template="occupation") == detail
        assert detail_of_choice(reply, template="stated_age-occupation") == detail
