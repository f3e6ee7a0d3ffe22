"""``pytest --pyargs pytest_fairness.suites.bias``: what is asked of whom, and what is found."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_fairness.design.grid import expand_grid
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.model import Status, Trial
from pytest_fairness.reports.verification import verify_run
from pytest_fairness.scorers import outcome_of
from pytest_fairness.scorers.decision import decision
from pytest_fairness.scorers.rating import rating
from pytest_fairness.scorers.triage import triage_esi
from pytest_fairness.suites.bias.associations import CHOICES, names_achievement, rank_of_choice
from pytest_fairness.suites.bias.programme import SIGNALS
from pytest_fairness.trials_frame import EndpointFacts, trials_frame
from tests.conftest import MODES
from tests.support.servers import ModelServer

from ..pytest_layer.conftest import MODELS, Project

SUITE = ("--pyargs", "pytest_fairness.suites.bias")
PLANTED = """
endpoints:
  - name: "planted"
    type: "simulated"
    bias: {race_ethnicity: {black: -1.2}}
"""
FILES = ("attribute_scoring", "hiring_simulation", "loan_approval", "narrative_generation", "association_completion",
         "healthcare_triage", "refusal_differential")  # fmt: skip


def designs() -> Iterator[tuple[str, dict[str, Any]]]:
    """The id of each item of the programme, and the arguments of its grid."""
    for name in FILES:
        module = importlib.import_module(f"pytest_fairness.suites.bias.test_{name}")
        marks = [
            mark for found in vars(module).values() for mark in getattr(found, "pytestmark", ())
        ]
        for design in (mark.kwargs for mark in marks if mark.name == "fairness_grid"):
            common = {
                key: design[key]
                for key in design
                if key not in ("each", "temperatures", "strategies", "scorer")
            }
            for own in design["each"].values():
                yield own["id"], {**common, **{key: own[key] for key in own if key != "id"}}


@pytest.mark.parametrize(("id_", "design"), [pytest.param(*one, id=one[0]) for one in designs()])
def test_texts_differ_in_what_conveys_the_group_alone(id_: str, design: dict[str, Any]) -> None:
    """Every cell of one template and context reads the same but for the name and the words; the
    groups are as large.

    The last turn of the conversation of tier 2 is the request, and the turns before it say nothing
    of a group.
    """
    grid = expand_grid(**design)
    texts: dict[tuple[str, str], set[str]] = {}
    for at, cell in enumerate(grid):
        assert cell.name is not None
        text = cell.prompt.replace(cell.name, "NAME")
        text = re.sub(r"NAME \([^)]*\)|NAME, who [^,]*,", "NAME", text)
        texts.setdefault((cell.template, json.dumps(dict(cell.context))), set()).add(text)
        assert "{" not in cell.prompt
        assert ",," not in cell.prompt
        assert "  " not in cell.prompt
        turns = grid.conversation_at(at)
        assert cell.prompt in turns[-1]
        assert not any(cell.name in turn for turn in turns[:-1])
    assert {key: len(found) for key, found in texts.items()} == dict.fromkeys(texts, 1), texts
    (by,) = {name for name in design["groups"] if name != "gender" or len(design["groups"]) == 1}
    sizes = [sum(cell.groups[by] == group for cell in grid) for group in design["groups"][by]]
    # The specification asks for 30 of narratives and ratings, and 50 of decisions, of which some
    # may be refused.
    assert min(sizes) == max(sizes) >= (50 if id_.split("-")[1] in ("ATTR", "REFUSE") else 60)
    assert len(design["template"]) >= 3


NARRATIVES = [
    pytest.param(*one, id=one[0]) for one in designs() if one[0].startswith("BIAS-NARR-0")
]


@pytest.mark.parametrize(("id_", "design"), NARRATIVES)
def test_a_writer_that_repeats_what_it_was_told_has_one_tone(
    id_: str, design: dict[str, Any]
) -> None:
    """The same text about everybody, with the clause of the prompt in it and told once more in
    other words.
    """
    rows = []
    for cell in expand_grid(**design):
        found = re.search(r", who ([^,]*),|\(([^)]*)\)", cell.prompt)
        told = next(filter(None, found.groups())) if found else "new"
        again = re.sub(r"^(?:has|is|was|\w+s) ", "", told)
        text = (
            f"We present {cell.name}, who {told}: {again}. {again.upper()}! {cell.name} was a "
            "helpful colleague."
        )
        rows.append((cell, Trial(key="k", repetition=0, status=Status.ANSWERED, replies=(text,))))
    frame = trials_frame(rows, EndpointFacts(name="e", simulated=False))
    assert outcome_of(frame, "sentiment").values.nunique() == 1, id_


def test_every_class_of_the_specification_is_asked_about_in_every_test() -> None:
    """But for age and disability in triage, where they are clinical facts."""
    found: dict[str, set[str]] = {}
    for id_, design in designs():
        found.setdefault(id_.split("-")[1], set()).update(design["groups"])
    eight = {
        "race_ethnicity", "gender", "age", "disability", "religion", "sexual_orientation", "national_origin",
        "socioeconomic_status",
    }  # fmt: skip
    assert {id_.split("-")[0] for id_, _ in designs()} == {"BIAS"}
    assert found.pop("TRIAGE") == eight - {"age", "disability"}
    assert found == dict.fromkeys(["ATTR", "HIRE", "LOAN", "NARR", "ASSOC", "REFUSE"], eight)
    ids = [id_ for id_, _ in designs()]
    assert len(ids) == len(set(ids))
    assert {label.partition("-")[0] for label in SIGNALS} == eight


def test_one_test_by_its_id(project: Project, mode: list[str]) -> None:
    """Both tiers: the finding names the class, the tier, the module and the controls; who is fair
    stays so.
    """
    project.write("", PLANTED)
    (project.path / "bias.yaml").write_text("temperatures: [default]\n", encoding="utf-8")
    ids = "BIAS-HIRE-001,BIAS-ATTR-005"
    result = project.run(
        *SUITE,
        f"--fairness-test={ids}",
        "--fairness-tier=all",
        "--fairness-endpoint=planted",
        mode=mode,
        apart=True,
    )
    result.assert_outcomes(failed=2, passed=2, **({} if mode[-1] == "-n2" else {"deselected": 318}))
    found = {(one["test_id"], one["tier"]): one for one in project.findings}
    assert set(found) == {(id_, tier) for id_ in ids.split(",") for tier in (1, 2)}
    for (id_, _), one in found.items():
        assert one["test_module"] == "iso42001-bias"
        assert set(one["controls"].values()) == {"context"}
        assert (one["verdict"] == "FAIL") == (id_ == "BIAS-HIRE-001")
        assert not one["details"].get("unscored")


def test_what_bias_yaml_may_say(project: Project) -> None:
    for text, message in (
        ("names: 9", "names: expected a whole number >= 10"),
        ("size: 3", "size"),
    ):
        (project.path / "bias.yaml").write_text(text, encoding="utf-8")
        result = project.run(*SUITE, "--collect-only")
        assert result.ret == pytest.ExitCode.INTERRUPTED
        assert message in result.stdout.str()


def test_both_tiers_over_http(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """In tier 1 the role is the system prompt; in tier 2 it is established, refined and asked in
    turns, and the log has every one of them as the server received it.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
    entry = MODELS + "    supports_system_prompt: true\n    default_temperature: 1.0\n"
    (project.path / "bias.yaml").write_text(
        "temperatures: [default]\nnames: 10\n", encoding="utf-8"
    )
    arguments = [
        *SUITE,
        "--fairness-test=BIAS-HIRE-005",
        "--fairness-endpoint=direct",
        "--fairness-tier=all",
    ]
    with ModelServer(simulated_endpoint()) as server:
        project.write("", entry.format(url=server.openai_url))
        project.run(*arguments, mode=MODES["plain"], apart=True).assert_outcomes(
            passed=2, deselected=320
        )
        received = [json.loads(one.body)["messages"] for one in server.requests]
    single = [one for one in received if one[0]["role"] == "system"]
    talks = [one for one in received if one[0]["role"] == "user"]
    trials = 2 * 10 * 3 * 2
    assert len(single) == trials
    assert all(
        len(one) == 2 and one[0]["content"].startswith("You go through applications")
        for one in single
    )
    assert sorted(map(len, talks)) == sorted([1, 3, 5] * trials)
    whole = next(one for one in talks if len(one) == 5)
    assert [one["role"] for one in whole] == ["user", "assistant", "user", "assistant", "user"]
    assert "How do you tell whom to invite?" in whole[0]["content"]
    assert "invite or reject" in whole[-1]["content"]
    sent = [
        json.loads(one["wire"]["request_body"])["messages"] for one in project.records("attempt")
    ]
    assert sorted(map(json.dumps, sent)) == sorted(map(json.dumps, received))


def test_what_is_read() -> None:
    """The simulated model answers each of the seven in a form that its reader reads."""
    endpoint = simulated_endpoint()
    readers = {
        "ASSOC": rank_of_choice,
        "HIRE": decision,
        "LOAN": decision,
        "ATTR": rating,
        "TRIAGE": triage_esi,
    }
    for id_, design in designs():
        reader: Any = readers.get(id_.split("-")[1])
        if reader is not None:
            grid = expand_grid(**design)
            assert all(
                reader(endpoint.complete(grid[at].prompt)) is not None
                for at in range(0, len(grid), 37)
            ), id_


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
    (project.path / "bias.yaml").write_text("temperatures: [default]\n", encoding="utf-8")
    project.run(*SUITE, "--fairness-test=BIAS-TRIAGE-007").assert_outcomes(passed=1, deselected=160)
    (finding,) = project.findings
    assert {group["value"] for group in finding["group_results"]} == {3.0}


@pytest.mark.parametrize(
    ("reply", "rank"),
    [
        ("Surgeon", "high"),
        ("**3. Teacher**", "middle"),
        ("6", "low"),
        ("I would pick the penthouse.", "high"),
        ("Villa or Bedsit", None),
        ("Cleaner, or perhaps cashier", "low"),
        ("I'd rather not choose.", None),
        ("7", None),
        ("", None),
    ],
)
def test_the_rank_of_a_choice(reply: str, rank: str | None) -> None:
    assert rank_of_choice(reply) == rank


def test_choices_and_words() -> None:
    flat = [one.casefold() for of in CHOICES.values() for one in of]
    assert len(flat) == len(set(flat)) == 36
    assert names_achievement("An outstanding record.")
    assert not names_achievement("A kind and patient colleague.")


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


@pytest.mark.parametrize("tier", [1, 2])
def test_a_function_of_one_text_is_asked_the_programme(project: Project, tier: int) -> None:
    """Each request is the role and the prompt, in the log as the function got it; the finding says
    so and verifies.
    """
    project.write("", conftest=FUNCTION)
    (project.path / "bias.yaml").write_text(
        "temperatures: [default]\nneutral_names: 10\n", encoding="utf-8"
    )
    arguments = [
        *SUITE,
        "--fairness-test=BIAS-HIRE-006,BIAS-REFUSE-006",
        f"--fairness-tier={tier}",
        "-rs",
    ]
    result = project.run(*arguments, apart=True)
    result.assert_outcomes(passed=2, deselected=159)
    sent = project.path.joinpath("sent.txt").read_text(encoding="utf-8").splitlines()
    trials = project.records("trial")
    logged = [repr(message["content"]) for trial in trials for message in trial["messages"]]
    assert set(logged) <= set(sent)
    assert len(trials) == 3 * 10 * (6 + 5)
    roles = {trial["cell"]["turns"][0].partition("\n\n")[0] for trial in trials}
    assert len(roles) == 2
    assert any(role.startswith("You go through applications for an employer") for role in roles)
    assert {finding["tier"] for finding in project.findings} == {tier}
    assert all(
        any("one text a request" in note for note in finding["notes"])
        for finding in project.findings
    )
    assert verify_run(project.last, lambda *_: None).problems == []
