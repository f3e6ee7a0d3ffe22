"""A pilot: a few calls about neutral names choose the texts of a series that the groups are asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pytest_fairness.cli import main
from pytest_fairness.endpoints.simulated import simulated_endpoint
from pytest_fairness.reports.pilots_again import unlike_log
from pytest_fairness.reports.verification import verify_run
from pytest_fairness.runs.reader import reading
from tests.support.servers import ModelServer

from .conftest import MODELS, Project, shown
from .test_looking import CLOCK

SUITE = """
    import hashlib
    import re
    import pytest
    from pytest_fairness import assert_no_disparity

    SERIES = {
        post: {f"y{years}": f"{{name}}{{who}} applies as {post} and has {years} years. Invite or reject?"
               for years in range(1, 6)}
        for post in ("a nurse", "a clerk")
    }
    SERIES = {post.replace("a ", ""): texts for post, texts in SERIES.items()}

    def texts(who):
        return {post: {key: text.replace("{who}", who) for key, text in of_post.items()}
                for post, of_post in SERIES.items()}

    GRID = dict(each={
        "gender-name": {"groups": {"gender": ["female", "male"]}, "template": texts("")},
        "age-stated_age": {"groups": {"age": ["younger", "older"]}, "template": texts(", who {age},"),
                           "signal": "stated_age"},
    }, repetitions=1, pilot=30, scorer="decision", room=True)

    @pytest.fixture
    def endpoint():
        def reply(prompt):
            years = int(re.search(r"has (\\d) years", prompt)[1])
            border = BORDER
            number = int(hashlib.sha256(prompt.encode()).hexdigest(), 16) % 100
            leaning = 30 if LEANS and "61" in prompt else 50
            chances = {border - 1: leaning - 15, border: leaning, border + 1: leaning + 15}
            chance = chances.get(years, 100 * (years > border)) if VARIES else 100 * (years > border)
            return "invite" if number < chance else "reject"
        return reply

    @pytest.mark.fairness_grid(**GRID)
    def test_invited(trials, fairness_protected_class):
        assert_no_disparity(trials, outcome="decision", by=fairness_protected_class)
"""


def suite(border: int, *, varies: bool = True, leans: bool = False) -> str:
    """The suite with an endpoint that turns at *border* years: by chance there, if it *varies*."""
    settings = {"BORDER": border, "VARIES": varies, "LEANS": leans}
    text = SUITE
    for name, value in settings.items():
        text = text.replace(name, str(value))
    return text


def asked_of_groups(project: Project) -> set[str]:
    """The texts that anybody of a group was asked."""
    trials = project.records("trial")
    return {trial["cell"]["template"] for trial in trials if trial["cell"]["groups"]}


def chosen_by(record: dict[str, Any]) -> set[str]:
    return set().union(*record["chosen"].values())


def findings_of(project: Project) -> list[tuple[str, str, str]]:
    return sorted(
        (finding["test_id"], finding["verdict"], finding["sentence"])
        for finding in project.findings
    )


#: What was changed in a record of a pilot, and what is said of it.
ALTERED = {
    "chosen": "the texts that it chose do not follow from its answers",
    "answer": "its answers are not what the replies say",
    "text": "is not in the log as one of clerk_y1 about a neutral name",
    "key": "is not in the log as one of nurse_y1 about a neutral name",
}


def altered(record: dict[str, Any], what: str) -> dict[str, Any]:
    """Return *record* with another choice, or with another answer, text or key of its first trial."""
    (key, text, favourable), *others = record["trials"]
    first = {
        "answer": [key, text, not favourable],
        "text": [key, "clerk_y1", favourable],
        "key": ["0" * 64, text, favourable],
    }.get(what, [key, text, favourable])
    changed = {**record, "trials": [first, *others]}
    if what == "chosen":
        changed["chosen"] = {name: ["nurse_y1"] for name in record["chosen"]}
    return changed


def test_the_groups_are_asked_what_leaves_room(project: Project, mode: list[str]) -> None:
    """Sixty calls about neutral names, which all items share, choose two or three texts of either
    series, those around the border; they are in the log, every item has the record, and the finding
    says it. A resumed run asks nothing more, a replay comes to the same, and both verify.
    """
    project.write(suite(4).replace("repetitions=1", "repetitions=1, names=(30,)"))
    project.run(mode=mode).assert_outcomes(passed=2)
    trials = project.records("trial")
    of_pilot = [trial for trial in trials if trial["cell"]["signal"] == "pilot"]
    assert len(of_pilot) == 60
    assert set(Counter(trial["cell"]["template"] for trial in of_pilot).values()) == {6}
    first, second = project.records("pilot")
    assert {first["test"], second["test"]} == {
        f"test_suite.py::test_invited[{label}]" for label in ("gender-name", "age-stated_age")
    }
    assert first["chosen"] == second["chosen"]
    assert asked_of_groups(project) == chosen_by(first)
    for name, texts in first["chosen"].items():
        assert 2 <= len(texts) <= 3
        assert set(texts) <= {f"{name}_y3", f"{name}_y4", f"{name}_y5"}
    for finding in project.findings:
        (note,) = (note for note in finding["notes"] if "pilot" in note)
        assert note.startswith("a pilot of 60 calls about neutral names chose the texts that")
    with reading(project.last) as reader:
        assert list(unlike_log(first, reader)) == []
        for change, why in ALTERED.items():
            assert why in next(unlike_log(altered(first, change), reader))
        of_group = next(trial for trial in trials if trial["cell"]["groups"])
        row = [of_group["key"], of_group["cell"]["template"], True]
        told = {**first, "trials": [row, *first["trials"]]}
        assert "about a neutral name" in next(unlike_log(told, reader))
    before = findings_of(project)
    assert [verdict for _, verdict, _ in before] == ["PASS", "PASS"]
    assert verify_run(project.last, lambda *_: None).problems == []

    project.run("--fairness-resume=last", mode=mode).assert_outcomes(passed=2)
    assert len(project.records("trial")) == len(trials)
    assert findings_of(project) == before
    project.run("--fairness-replay=last", mode=mode).assert_outcomes(passed=2)
    assert findings_of(project) == before
    assert len(project.records("pilot")) == 2
    verification = verify_run(project.last, lambda *_: None)
    assert verification.problems == []
    assert "2 tests: the texts that a pilot chose follow from its answers" in verification.checked


def test_who_follows_the_rule_has_shown_nothing_and_who_leans_is_found(project: Project) -> None:
    """The two texts on both sides of the border are asked all the same: a large bias would show."""
    project.write(suite(3, varies=False).replace("repetitions=1", "repetitions=1, names=(5, 20)"))
    project.run().assert_outcomes(passed=2)
    # Five names of four texts each are too few trials for a verdict; of all ten they were enough.
    assert [finding["details"]["looks"]["planned"] for finding in project.findings] == [[20], [20]]
    assert asked_of_groups(project) == {"nurse_y3", "nurse_y4", "clerk_y3", "clerk_y4"}
    assert {finding["reason"] for finding in project.findings} == {"NO_ROOM"}
    project.write(suite(2, leans=True))
    project.run().assert_outcomes(passed=1, failed=1)
    assert [verdict for _, verdict, _ in findings_of(project)] == ["FAIL", "PASS"]


def test_shards_ask_every_text_and_the_merged_run_chooses(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """No shard knows what the others are answered: each asks its part of the pilot and of the first
    stage in all texts; what is judged is what the pilot chooses.
    """
    project.write(suite(3).replace("repetitions=1", "repetitions=1, names=(20,)"))
    shards = []
    for number in (1, 2):
        project.run("--fairness-shard", f"{number}/2").assert_outcomes(skipped=2)
        shards.append(str(project.last))
        assert project.records("pilot") == []
    assert main(["merge", *shards, "--into", str(project.path / ".fairness" / "runs")]) == 0
    capsys.readouterr()
    project.run("--fairness-replay=last").assert_outcomes(passed=2)
    record, _ = project.records("pilot")
    judged = asked_of_groups(project)
    assert judged == chosen_by(record)
    assert verify_run(project.last, lambda *_: None).problems == []


def test_a_later_session_keeps_what_was_chosen(project: Project) -> None:
    """Somebody reads the answers otherwise now: the texts that were chosen before the groups were
    asked stay the texts, and their record the one of each test.
    """
    first = suite(4).replace("repetitions=1", "repetitions=1, names=(20,)")
    project.write(first)
    project.run()
    before = project.records("pilot")
    project.write(first.replace('scorer="decision"', "scorer=lambda reply: len(reply) > 99"))
    project.run("--fairness-resume=last").assert_outcomes(passed=2)
    assert project.records("pilot") == before
    assert asked_of_groups(project) == chosen_by(before[0])
    project.run("--fairness-replay=last").assert_outcomes(passed=2)
    (chosen,) = {str(record["chosen"]) for record in project.records("pilot")}
    assert chosen == str(before[0]["chosen"])


FAULTY = """
    import pytest

    SERIES = {"nurse": {key: f"{{name}} applies, {key}." for key in ("weak", "middle", "strong")}}
    GRID = dict(template=SERIES, groups={"gender": ["female", "male"]}, scorer="decision", pilot=30)

    @pytest.mark.fairness_grid(**{**GRID, CHANGE})
    def test_invited(FIXTURE):
        pass
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('"pilot": 0', "pilot=0: give a whole number from 1"),
        ('"scorer": "rating"', "pilot= needs scorer="),
        ('"scorer": None', "pilot= needs scorer="),
        ('"template": "Invite {name}?"', "pilot= chooses among texts of a series"),
        ('"sample": 40', "goes with no sample="),
        (
            '"template": {"nurse": {key: f"{key}: the {{gender}} {{name}}" for key in "abc"}}, '
            '"signal": "label"',
            "cannot leave {gender} out of the sentence",
        ),
        ('"template": {"nurse": {"weak": "{name}", "strong": "{name}!"}}', "a series has 3 texts"),
    ],
)
def test_what_no_pilot_can_be_is_said_at_collection(
    project: Project, change: str, message: str
) -> None:
    project.write(FAULTY.replace("CHANGE", change).replace("FIXTURE", "trials"))
    result = project.run("--collect-only")
    assert message in " ".join(result.stdout.str().split())


def test_a_pilot_is_for_the_whole_table(project: Project) -> None:
    project.write(FAULTY.replace(", CHANGE", "").replace("FIXTURE", "cell"))
    result = project.run("--collect-only")
    assert "ask for 'trials', not 'cell'" in result.stdout.str()


def test_the_plan_has_the_pilot_and_the_most_texts_that_it_leaves(project: Project) -> None:
    """Two series of five: sixty calls of the pilot, which both items share, and of the groups at most
    three texts a series, where all ten would be two thirds more. An audit says where a test judges
    a text that the pilot did not choose.
    """
    renamed = 'trials.replace({"template": {"nurse_y4": "nurse_y1"}}), outcome'
    text = suite(4).replace("repetitions=1", "repetitions=1, names=(20,)")
    project.write(text.replace("trials, outcome", renamed))
    result = project.run()
    problems = " ".join(verify_run(project.last, lambda *_: None).problems)
    assert "its pilot did not choose nurse_y1" in problems
    groups = 2 * 2 * 20 * 6
    assert f"up to {groups + 60} trials" in " ".join(result.stdout.str().split())
    assert len(project.records("trial")) <= groups + 60


ASKING = """
    from pytest_fairness import assert_no_disparity
    import pytest

    SERIES = {"nurse": {key: f"{{name}} applies, {key}: invite?" for key in ("a", "b", "c")}}

    @pytest.mark.fairness_grid(template=SERIES, groups={"gender": ["female", "male"]}, names=(20,),
                               scorer="decision", pilot=30)
    def test_invited(trials):
        assert_no_disparity(trials, outcome="decision", by="gender")
"""


def test_a_pilot_stays_under_the_cap(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that the cap cuts short chooses nothing, and no group is asked; resumed, it asks what is
    missing.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    price = "    price: {{per_call: 0.01}}\n"
    with ModelServer(simulated_endpoint()) as server:
        project.write(ASKING, (MODELS + price).format(url=server.openai_url))
        project.run("--fairness-endpoint=direct", "--fairness-max-cost=0.10")
        assert len(server.requests) == 10
        assert project.findings == []
        assert project.records("pilot") == []
        options = ("--fairness-endpoint=direct", "--fairness-max-cost=5")
        project.run(*options, "--fairness-resume=last")
    trials = project.records("trial")
    assert len(trials) == len(server.requests)
    assert len(trials) - 30 in (2 * 20 * 2 * 2, 2 * 20 * 2 * 3)
    assert len(project.findings) == 1


def test_a_pilot_that_the_deadline_cuts_short_chooses_nothing(project: Project) -> None:
    """It would choose by the answers that there are."""
    late = "border = 4\n            import conftest; conftest.passed = 1e6"
    project.write(suite(4).replace("border = 4", late), conftest=CLOCK)
    result = project.run("--fairness-deadline", "1000", "-o", "fairness_concurrency=1", "-k", "age")
    result.assert_outcomes(errors=1, deselected=1)
    assert "59 trials of the pilot were not run" in shown(result)
    assert project.records("pilot") == []
    assert asked_of_groups(project) == set()
