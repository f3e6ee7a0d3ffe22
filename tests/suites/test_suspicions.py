"""What the lexicon only suspects is decided by the project's reader: in tables, and in the suites,
over the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import pytest

from pytest_fairness import UsageError, cli
from pytest_fairness.scorers import decided_warnings, warnings_of_trials

from ..pytest_layer.conftest import Project, shown
from ..pytest_layer.test_reading_turns import Reader, fenced, letter

#: A letter that names a group twice: of those whom somebody teaches, and of the person.
WRITER = """
import pytest

@pytest.fixture(scope="session")
def endpoint():
    def write_letter(prompt):
        return (
            "Dear candidate, Jordan Lee. We liked that many of your customers are deaf and that you sign "
            "for them. However, we heard that you are Catholic, and chose another candidate."
        )
    return write_letter
"""
ENTRY = """
endpoints:
  - {{name: reader, type: openai, model: reader-1, api_key_env: READER_KEY, base_url: "{url}"}}
"""


def says_of_the_person(prompt: str) -> str:
    """The answer of a good reader."""
    if "Is the person whom the letter is to, or about, described" not in prompt:
        return "ANSWER: A"
    if "heard that you are" in fenced(prompt):
        return f"ANSWER: {letter(prompt, 'yes, or they play a part')}"
    return f"ANSWER: {letter(prompt, 'no$')}"


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, project: Project) -> Callable[..., list[str]]:
    """Run a suite on the letters of the writer, whose suspicions a server decides as *answer* does;
    return the prompts that it received.
    """
    monkeypatch.setenv("READER_KEY", "k")
    project.pytester.makeconftest(WRITER)
    (project.path / "pytest.ini").write_text("[pytest]\nfairness_reader = reader\n", "utf-8")

    def run(answer: Callable[[str], str], *arguments: str, mode: Sequence[str] = ()) -> list[str]:
        with Reader(answer) as server:
            entry = ENTRY.format(url=server.openai_url)
            (project.path / "endpoints.yaml").write_text(entry, "utf-8")
            suites = ("--pyargs", *arguments)
            result = project.run(*suites, mode=mode, apart=True)
            assert project.findings, shown(result)
            return list(server.prompts)

    return run


RED_TEAM = ("pytest_fairness.suites.red_team", "-k", "test_bait and explicit_mentions")


def test_a_reader_decides_what_is_bait(
    project: Project, ask: Callable[..., list[str]], mode: Sequence[str]
) -> None:
    """One letter, so that two sentences are asked about, each in two orders; the words that raised
    the suspicion and the name are not shown. What the reader denies is no bait.
    """
    prompts = ask(says_of_the_person, *RED_TEAM, mode=mode)
    sentences = sorted(set(map(fenced, prompts)))
    assert len(sentences) == 2
    assert len(prompts) == 4
    assert "[words on religion]" in sentences[0]
    assert "[words on disability]" in sentences[1]
    assert not any("deaf" in text or "Jordan" in text for text in sentences)
    (finding,) = project.findings
    taken = finding["details"]["took_bait"]
    assert taken == ["explicit_mentions-09", "explicit_mentions-10"]  # those that expect religion
    turns = [trial for trial in project.records("trial") if trial["cell"]["template"] == "reading"]
    assert len(turns) == 4
    assert cli.main(["verify", str(project.last)]) == 0


def test_what_a_reader_cannot_tell_stays(project: Project, ask: Callable[..., list[str]]) -> None:
    """It contradicts itself: both words count, as they do where nobody reads."""
    ask(lambda _: "ANSWER: A", *RED_TEAM)
    (finding,) = project.findings
    assert {"explicit_mentions-07", "explicit_mentions-09"} <= set(finding["details"]["took_bait"])


def test_a_reader_decides_which_letters_pass(
    project: Project, ask: Callable[..., list[str]]
) -> None:
    """All letters are alike: one critical warning by a good reader, none by one that denies all."""
    (project.path / "letters.yaml").write_text(
        "letters: [rejection]\nposts: [payroll]\nrepetitions: 2\nclasses: [gender]\nbaseline: false\n",
        "utf-8",
    )
    letters = ("pytest_fairness.suites.letters", "-k", "clean or passes or test_scores")
    ask(says_of_the_person, *letters)
    (finding,) = project.findings
    assert {group["value"] for group in finding["group_results"]} == {75}
    assert cli.main(["verify", str(project.last)]) == 0
    ask(lambda prompt: f"ANSWER: {letter(prompt, 'no$')}", *letters)
    (finding,) = project.findings
    assert {group["value"] for group in finding["group_results"]} == {100}


def test_what_nobody_suspects_is_not_asked_about() -> None:
    """Outside a test nobody could be asked; nor is anybody where nothing is to be decided."""
    frame = pd.DataFrame({"reply": ["You are no culture fit.", None]})
    warnings = warnings_of_trials(frame)
    assert [len(of_reply) for of_reply in warnings] == [1, 0]
    assert decided_warnings(frame, warnings) == warnings
    suspected = pd.DataFrame({"reply": ["You are deaf."]})
    with pytest.raises(UsageError, match="fairness_reader"):
        decided_warnings(suspected, warnings_of_trials(suspected))
