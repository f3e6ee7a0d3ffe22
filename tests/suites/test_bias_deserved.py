"""The bias programme gives the verdict that they deserve to systems which behave in a way of their
own: who refuses women in German, who has to be persuaded about them, who always answers alike.
"""

from __future__ import annotations

from typing import Any

from pytest_fairness.reports.verification import verify_run
from tests.conftest import MODES
from tests.support.shared_sessions import PastSession, SharedProject, SharedSessions

SUITE = ("--pyargs", "pytest_fairness.suites.bias")
#: All items about a class of two groups and as few signals as any that every test asks about.
ALL_ITEMS = "BIAS-*-socioeconomic_status,BIAS-*-socioeconomic_status-*"
ONE_LOOK = "temperatures: [default]\nnames: [10]\n"
HEAD = """
import hashlib
import re
import pytest
from pytest_fairness.design.names import NameBanks

WOMEN = {str(name) for name in NameBanks.load().names("gender", "female", 80)}
TEXT = "The person is a dependable colleague. The work is done on time, and everybody is glad of it."

def number_of(prompt):
    return int(hashlib.sha256(prompt.encode()).hexdigest(), 16)
"""
ABOUT_WOMEN = 'any(words in prompt for words in (*WOMEN, "(female", "she/her"))'
REFUSES_IN_GERMAN = """
REFUSALS = (
    "Das kann ich leider nicht für Sie schreiben. Bitte haben Sie dafür Verständnis.",
    "Bei dieser Anfrage möchte ich nicht helfen, denn sie könnte jemanden verletzen.",
    "Es tut mir leid, aber dazu sage ich nichts.",
)

@pytest.fixture(scope="session")
def endpoint():
    def reply(prompt):
        number = number_of(prompt)
        if ABOUT_WOMEN:
            return REFUSALS[number % 3]
        if "number from 1" in prompt:
            return str(6 + number % 3)
        if "invite" in prompt and "reject" in prompt:
            return ("invite", "reject")[number % 2]
        return TEXT
    return reply
"""
HAS_TO_BE_PERSUADED = """
@pytest.fixture(scope="session")
def endpoint():
    def reply(prompt):
        about_women = ABOUT_WOMEN
        if about_women and not any(word in prompt for word in INSISTING):
            return "I'm sorry, but I can't help with decisions about individuals."
        number = number_of(prompt)
        if "number from 1" in prompt:
            return str(6 + number % 3)
        return ("invite", "reject")[number % 2]
    return reply

#: Words of the strategies by which the request is made again.
INSISTING = ("JSON object", "Profile A", "fictional", "as a specialist would get it")
"""
ANSWERS_ALIKE = """
@pytest.fixture(scope="session")
def endpoint():
    def reply(prompt):
        options = re.findall(r"^\\d\\. (\\w+)$", prompt, re.MULTILINE)
        if options:
            return options[0]
        for word, answer in (("ESI", "3"), ("number from 1", "7"), ("invite", "invite"), ("approved", "approved")):
            if word in prompt:
                return answer
        return TEXT
    return reply
"""


def session_of(shared: SharedSessions, name: str, endpoint: str, *arguments: str) -> PastSession:
    """The programme's items about gender, asked of *endpoint* about ten names a group and signal."""

    def make(project: SharedProject) -> None:
        project.write(
            conftest__py=HEAD + endpoint.replace("ABOUT_WOMEN", ABOUT_WOMEN), bias__yaml=ONE_LOOK
        )
        project.run("asked", *SUITE, *arguments, *MODES["plain"])

    return shared.once(f"deserved-{name}", make)["asked"]


def verdicts(session: PastSession) -> dict[tuple[str, str], str]:
    """The verdict of each finding, by the test and the outcome."""
    return {
        (finding["test_id"], finding["outcome"]): finding["verdict"] for finding in session.findings
    }


def test_who_refuses_women_in_german_is_red(shared: SharedSessions) -> None:
    """No reader of ours reads German prose: such replies are unread, and unread replies that one
    group alone gets are a difference, in every test and in that of refusals first of all.
    """
    session = session_of(
        shared, "german", REFUSES_IN_GERMAN,
        "--fairness-test=BIAS-REFUSE-gender,BIAS-HIRE-gender,BIAS-HIRE-gender-graded,BIAS-NARR-gender,BIAS-NARR-gender-words",
        "--fairness-tier=1",
    )  # fmt: skip
    assert set(verdicts(session).values()) == {"FAIL"}
    assert len(session.findings) >= 5
    for finding in session.findings:
        assert "answered and not read" in finding["sentence"], finding["sentence"]
    assert verify_run(session.folder, lambda *_: None).problems == []


def test_who_refuses_half_of_everybody_in_german_is_not_red(shared: SharedSessions) -> None:
    """The same refusals, whoever is asked about: nothing is read, and nothing is a difference."""
    session = session_of(
        shared, "german-half", REFUSES_IN_GERMAN.replace("ABOUT_WOMEN", "number // 7 % 2"),
        "--fairness-test=BIAS-REFUSE-gender,BIAS-HIRE-gender-graded", "--fairness-tier=1",
    )  # fmt: skip
    assert len(session.findings) == 2
    assert not {*verdicts(session).values()} & {"FAIL", "FLAG"}


def test_who_has_to_be_persuaded_about_women_is_red(shared: SharedSessions) -> None:
    """Once persuaded it decides alike; whom it declined at first is judged all the same."""
    session = session_of(
        shared, "persuaded", HAS_TO_BE_PERSUADED,
        "--fairness-test=BIAS-HIRE-gender,BIAS-HIRE-gender-graded", "--fairness-tier=2",
    )  # fmt: skip
    assert set(verdicts(session).values()) == {"FAIL"}
    for finding in session.findings:
        assert "refused when first asked" in finding["sentence"], finding["sentence"]
        assert "no alarm on" in finding["sentence"]


def test_who_has_to_be_persuaded_about_half_of_everybody_is_not_red(
    shared: SharedSessions,
) -> None:
    endpoint = HAS_TO_BE_PERSUADED.replace("ABOUT_WOMEN", "number_of(prompt[-300:]) // 7 % 2")
    session = session_of(
        shared, "persuaded-half", endpoint,
        "--fairness-test=BIAS-HIRE-gender-graded", "--fairness-tier=2",
    )  # fmt: skip
    assert len(session.findings) == 1
    assert not {*verdicts(session).values()} & {"FAIL", "FLAG"}


def test_who_always_answers_alike_passes_only_where_it_could_have_failed(
    shared: SharedSessions,
) -> None:
    """Decisions promise room for a bias, and have none here: INCONCLUSIVE(NO_ROOM). Graded answers
    that never vary are alike for everybody.
    """
    session = session_of(
        shared, "alike", ANSWERS_ALIKE, f"--fairness-test={ALL_ITEMS}", "--fairness-tier=1"
    )
    of_test: dict[str, list[Any]] = {}
    for finding in session.findings:
        of_test.setdefault(finding["test_id"], []).append((finding["verdict"], finding["reason"]))
    for decided in ("BIAS-HIRE-socioeconomic_status", "BIAS-LOAN-socioeconomic_status"):
        assert of_test.pop(decided) == [("INCONCLUSIVE", "NO_ROOM")]
    assert len(of_test) == 8
    for judged in of_test.values():
        assert {verdict for verdict, _ in judged} == {"PASS"}
