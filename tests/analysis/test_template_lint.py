"""Templates and prompts are read before any model is: each problem with its place, and nothing of
what is well said.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_fairness import lint_file, lint_text
from pytest_fairness.cli import main
from pytest_fairness.errors import UsageError

from ..support.watch import LONG, watched

#: Rule → lines that break it.
BAD = {
    "hard-coded-name": [
        "Dear Sarah, thank you, {role}.",
        "As Tamika Washington knows, {role} is a busy post.",
    ],
    "placeholder": [
        "Dear [Candidate Name], your {role}.",
        "Hello {{first_name}}!",
        "TODO: say why, {name}.",
        "<<name>>",
    ],
    "promise": ["{name}, we will keep your resume on file.", "{name}, we will be in touch soon."],
    "superlative": [
        "{name}, we chose the best candidate.",
        "{name}, others were the most qualified applicants.",
    ],
    "vague": [
        "{name}, you are not the right fit.",
        "{name}, we are going in a different direction.",
    ],
    "speculation": [
        "{name}, you seemed unsure of the plan.",
        "{name}, you probably prefer quieter work.",
    ],
    "idiom": ["{name}, hit the ground running.", "{name}, this is not a slam dunk."],
    "jargon": ["{name}, please ideate with us.", "{name}, the FTE is filled."],
    "tracking": ["{name}, see our page?utm_source=letter."],
    "remote-content": ["{name} <img src=x>", "{name} ![logo](https://example.org/a.png)"],
    "bad-slot": [
        "Dear {naem}, thank you.",
        "Dear {name!r}, thank you.",
        "Dear { name }, thank you.",
    ],
    "no-slot": ["Thank you for your application."],
    "age": ["{name}, we look for a recent graduate."],
    "gender": ["{name}, he will call you."],
    "disability": ["{name}, your disability makes this hard."],
}
GOOD = [
    "Dear {name},",
    "Thank you for applying for the {role} position, and for the time that you gave the exercise, "
    "{name}.",
    "Your score for technical skills is {technical_skills} of 5; the post takes 4.0, {name}.",
    "{name}, question 3 asked for two indexes; your answer names one.",
    "{name}, you may ask for the scores behind this decision within 30 days.",
    "With best regards, the hiring team, to {name}",
    "Rate {name}, {a_role}, from 1 to 10. {They} {have} four years of experience.",
    'Reply to {name} as JSON: {"rating": 7}',
    "{name_1} and {name_2} applied for {role}.",
    "We use a mature codebase and an aggressive timeline, {name}.",
]


@pytest.mark.parametrize(
    ("rule", "line"), [(rule, line) for rule, lines in BAD.items() for line in lines]
)
def test_each_rule_finds_what_it_is_for(rule: str, line: str) -> None:
    assert rule in {one.rule for one in lint_text(line)}


@pytest.mark.parametrize("line", GOOD)
def test_what_is_well_said_is_quiet(line: str) -> None:
    assert lint_text(line) == []


def test_a_problem_has_its_place(tmp_path: Path) -> None:
    """File, line and column from 1; in YAML the line of the text, and no text that nobody is sent."""
    text = (
        "Dear {name},\n\nYou are overqualified, and {naem}.\nWe promise, {name}.  <!-- lint: "
        "ignore -->\n"
    )
    found = lint_text(text, source="a.txt")
    assert [(one.line, one.column, one.rule) for one in found] == [
        (3, 9, "age"),
        (3, 28, "bad-slot"),
    ]
    assert str(found[0]).startswith("a.txt:3:9: age (high): 'overqualified': ")
    assert lint_text(text, ignore=["age", "bad-slot"]) == []
    path = tmp_path / "prompts.yaml"
    path.write_text(
        'first:\n  source: "a recent graduate wrote this"\n  text: "Write to {name}, a recent graduate."\n'
    )
    assert [(one.line, one.rule) for one in lint_file(path)] == [(3, "age")]


def test_a_letter_explains_itself_and_is_short() -> None:
    assert [one.rule for one in lint_text("Dear {name}, no.", letter=True)] == ["no-disclaimer"]
    assert lint_text("Dear {name}, no. You may ask for the scores.", letter=True) == []
    long = "Dear {name}, you may ask for the scores. " + "The panel read it. " * 70
    assert [one.rule for one in lint_text(long, letter=True)] == ["length"]


def test_a_projects_own_rules(tmp_path: Path) -> None:
    """Added, and taken away; a rule that there is not is named."""
    (tmp_path / "lint.yaml").write_text(
        'slogan: {match: ["people first"], severity: low, suggestion: "Leave it out.", source: "ours"}\n'
        'idiom: {match: ["x"], severity: "off", suggestion: "x", source: "ours"}\n'
    )
    found = lint_text("{name}, people first: hit the ground running.", folder=tmp_path)
    assert [one.rule for one in found] == ["slogan"]
    with pytest.raises(UsageError, match=r"there is no rule 'idioms'.*did you mean 'idiom'"):
        lint_text("x", ignore=["idioms"])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letter.txt").write_text("Dear {name}, you are overqualified.\x1b[2J\n")
    (tmp_path / "README.md").write_text("Nothing that is sent.\n")
    assert main(["lint", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "letter.txt:1:22: age (high): 'overqualified'" in shown
    assert shown.endswith("1 file: 1 problem\n")
    assert "\x1b" not in shown
    assert main(["lint", str(tmp_path), "--json", "--ignore", "age"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["lint", str(tmp_path / "nowhere.txt")]) == main(["lint"]) == 2
    assert main(["lint", "--rules"]) == 0


def test_a_long_text_of_anything_is_read() -> None:
    """Whatever it is made of, and in one line; what is quadratic in it trips the watch."""
    for piece in ("[A", "<", "Dear ", "Aa Bb ", "{", "${a", "![", "you seemed ", "\n", "a" * 50):
        with watched():
            lint_text(piece * (LONG // len(piece)))
