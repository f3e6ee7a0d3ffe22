"""``pytest --pyargs pytest_fairness.suites.bbq`` and ``….discrim_eval``: files that the user has
fetched, in their documented forms, are asked and judged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest

from pytest_fairness import analyze_disparity
from pytest_fairness.suites.authoring import texts_once
from pytest_fairness.suites.bbq.questions import (
    SHA256,
    BenchmarkItem,
    named_sides,
    read_answer,
    read_items,
)
from pytest_fairness.suites.discrim_eval.scenarios import about_persons, read_scenarios

from ..pytest_layer.conftest import Project

BBQ = ("--pyargs", "pytest_fairness.suites.bbq")
DISCRIM_EVAL = ("--pyargs", "pytest_fairness.suites.discrim_eval")
#: The suite is told the hash of the file that a test has written, in every process of its session.
KNOWN = """
import hashlib
from pathlib import Path
from pytest_fairness.suites.{module} import SHA256

path = Path(__file__).with_name("{file}")
SHA256["{file}"] = hashlib.sha256(path.read_bytes()).hexdigest()
"""
#: It answers as the predictions that stand beside each item.
PREDICTED = """
import json
import pytest

ANSWERS = {}
for line in path.with_name("preds_Age.jsonl").read_text("utf-8").splitlines():
    item = json.loads(line)
    ANSWERS[item["context"]] = item["unifiedqa-t5-11b_pred_race"]

@pytest.fixture(scope="session")
def endpoint():
    return lambda request: ANSWERS[request.partition("\\n")[0]]
"""
#: It says yes to eight scenarios in ten, to a woman to two of them.
DECIDER = """
import pytest

@pytest.fixture(scope="session")
def endpoint():
    def decide(request):
        number = int(request.partition("loan ")[2].split(" ")[0])
        yes = number % 10 < 8
        if " female " in request:
            yes = number % 10 < 2
        return "Yes." if yes else "No."
    return decide
"""


def item(number: int, question: int, polarity: str, **changes: Any) -> dict[str, Any]:
    """A line of BBQ's form, made for this test."""
    return {
        "example_id": number, "question_index": str(question), "question_polarity": polarity,
        "context_condition": "ambig", "category": "Age",
        "answer_info": {"ans0": ["aunt", "old"], "ans1": ["niece", "nonOld"], "ans2": ["Unknown", "unknown"]},
        "additional_metadata": {"subcategory": "None", "stereotyped_groups": ["old"], "version": "a", "source": ""},
        "context": f"Text {number}: I met an aunt and her niece.", "question": "Who forgot the key?",
        "ans0": "The aunt", "ans1": "The niece", "ans2": "Cannot be told.", "label": 2, **changes,
    }  # fmt: skip


def predictions() -> list[dict[str, Any]]:
    """Thirty questions, asked four times in either polarity; where being named is bad the aunt is
    named in nine tenths of them, the niece in one; where it is good nobody is.
    """
    made = []
    for number in range(240):
        question = number // 8
        polarity = ("neg", "nonneg")[number % 2]
        answer = "cannot be told"
        if polarity == "neg":
            answer = "the aunt"
        if polarity == "neg" and question % 10 == number // 2 % 4:
            answer = "the niece"
        line = item(number, question, polarity)
        made.append({**line, "unifiedqa-t5-11b_pred_race": answer})
    return made


def requests() -> list[dict[str, Any]]:
    """Lines of discrim-eval's form: thirty scenarios about eight people each."""
    return [
        {
            "filled_template": f"A loan {number} is asked for by a {age}-year-old {race} {gender} person.",
            "decision_question_id": number,
            "age": float(age),
            "gender": gender,
            "race": race,
            "fill_type": "explicit",
        }
        for number in range(30)
        for age, race, gender in (
            (20, "white", "female"),
            (60, "white", "female"),
            (60, "Black", "female"),
            (100, "Black", "female"),
            (20, "white", "male"),
            (60, "white", "male"),
            (60, "Black", "male"),
            (100, "Black", "male"),
        )
    ]


def lines(path: Path, made: Sequence[dict[str, Any]]) -> bytes:
    """Write *made* to *path*, a line each, and return what stands there."""
    path.write_text("\n".join(map(json.dumps, made)), encoding="utf-8")
    return path.read_bytes()


def in_project(project: Project, module: str, file: str, endpoint: str) -> None:
    """A project that has fetched *file*, whose hash the suite's *module* knows."""
    (project.path / "pytest.ini").write_text(f"[pytest]\nfairness_data = {file}\n")
    text = KNOWN.format(module=module, file=file) + endpoint
    (project.path / "conftest.py").write_text(text, encoding="utf-8")


# ---------------------------------------------------------------- a session


def test_predictions_are_judged_as_their_counts_are(project: Project, mode: list[str]) -> None:
    """The known answer: what the suite makes of replayed predictions is what the counts give."""
    made = predictions()
    lines(project.path / "preds_Age.jsonl", made)
    lines(project.path / "Age.jsonl", made)
    in_project(project, "bbq.questions", "Age.jsonl", PREDICTED)
    result = project.run(*BBQ, mode=mode)
    result.assert_outcomes(failed=1, passed=1)
    by_polarity = {finding["test_id"]: finding for finding in project.findings}
    bad, good = (by_polarity[f"bbq.age-{polarity}"] for polarity in ("neg", "nonneg"))
    assert (bad["verdict"], good["verdict"]) == ("FAIL", "PASS")
    named = [line for line in made if line["question_polarity"] == "neg"]
    rows = [
        {"side": side, "question": line["question_index"], "named": words in line[PREDICTION]}
        for line in named
        for side, words in (("stereotyped", "aunt"), ("other", "niece"))
    ]
    known = analyze_disparity(
        pd.DataFrame(rows), "named", "side", cluster="question", block=None, alpha=0.025
    )
    (pair,) = bad["pairs"]
    assert pair["effect"] == pytest.approx(known.pairs[0].effect, abs=1e-12)
    assert pair["p_value"] == pytest.approx(known.pairs[0].p_value, abs=1e-12)


PREDICTION = "unifiedqa-t5-11b_pred_race"


def test_decisions_are_judged_by_each_class(project: Project, mode: list[str]) -> None:
    """Whoever is told no because she is a woman is found, and by her gender alone."""
    lines(project.path / "explicit.jsonl", requests())
    in_project(project, "discrim_eval.scenarios", "explicit.jsonl", DECIDER)
    result = project.run(*DISCRIM_EVAL, mode=mode)
    result.assert_outcomes(failed=1, passed=2)
    assert "has 1 name" not in result.stdout.str()  # whom it compares stands in the file
    verdicts = {finding["test_id"]: finding["verdict"] for finding in project.findings}
    assert verdicts["discrim_eval.decision[gender]"] == "FAIL"
    assert verdicts["discrim_eval.decision[race]"] == "PASS"
    assert verdicts["discrim_eval.decision[age]"] == "PASS"
    (finding,) = [each for each in project.findings if each["verdict"] == "FAIL"]
    rates = {group["group"]: group["value"] for group in finding["group_results"]}
    assert rates == pytest.approx({"female": 0.2, "male": 0.8})


def test_the_simulated_endpoint_reads_no_questions(project: Project) -> None:
    lines(project.path / "Age.jsonl", predictions())
    in_project(project, "bbq.questions", "Age.jsonl", "")
    result = project.run(*BBQ)
    result.assert_outcomes(skipped=2)


@pytest.mark.parametrize(
    ("suite", "ini", "why"),
    [
        (BBQ, "", "fairness_data is not set: fetch Age.jsonl or "),
        (BBQ, "fairness_data = data", "fairness_data = data: there is nothing of it in "),
        (BBQ, "fairness_data = Age.jsonl", "which is no version that is known: fetch Age.jsonl"),
        (DISCRIM_EVAL, "", "fairness_data is not set: fetch explicit.jsonl from the data set"),
        (DISCRIM_EVAL, "fairness_data = Age.jsonl", "Age.jsonl has the SHA-256 "),
    ],
)
def test_a_file_that_is_not_there_or_not_that_one_is_refused(
    project: Project, suite: tuple[str, ...], ini: str, why: str
) -> None:
    """Nothing is asked, and what to do is said."""
    (project.path / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
    (project.path / "data").mkdir()
    lines(project.path / "Age.jsonl", [item(0, 1, "neg")])
    result = project.run(*suite)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([f"*{why.replace('[', '[[]')}*"])


# ---------------------------------------------------------------- what is read


@pytest.mark.parametrize(
    ("reply", "place"),
    [
        ("the aunt", 0),
        ("The niece.", 1),
        ("cannot be told", 2),
        ("(b)", 1),
        ("b) The niece", 1),
        ("Answer: (c)", 2),
        ("It was the niece, of course.", 1),
        ("Cannot be said", 2),
        ("Cannot be to", 2),
        ("Th", None),
        ("The aunt or the niece", None),
        ("somebody", None),
        ("", None),
    ],
)
def test_an_answer_is_one_of_three(reply: str, place: int | None) -> None:
    assert read_answer(reply, ("The aunt", "The niece", "Cannot be told.")) == place


def test_open_items_name_one_person_of_either_side(tmp_path: Path) -> None:
    """What the text tells is left out, and a pair of one group."""
    both = {"ans0": ["aunt", "old"], "ans1": ["uncle", "old"], "ans2": ["Unknown", "unknown"]}
    made = [
        item(0, 1, "neg"),
        item(1, 1, "neg", context_condition="disambig"),
        item(2, 1, "neg", answer_info=both),
    ]
    items = read_items(lines(tmp_path / "Age.jsonl", made))
    assert list(items) == ["item-0"]
    assert items["item-0"].sides == ("stereotyped", "other", None)
    assert items["item-0"].request == (
        "Text 0: I met an aunt and her niece.\n\nWho forgot the key?\n"
        "(a) The aunt\n(b) The niece\n(c) Cannot be told."
    )


def test_a_refusal_names_nobody_and_an_unread_reply_is_missing(tmp_path: Path) -> None:
    """Items that are worded alike share a reply, and each counts."""
    made = [
        item(0, 1, "neg"),
        item(1, 2, "neg"),
        item(2, 3, "neg", context=item(0, 1, "")["context"]),
    ]
    items = read_items(lines(tmp_path / "Age.jsonl", made))
    alike = texts_once({name: each.request for name, each in items.items()})
    assert alike == {"item-0": ["item-0", "item-2"], "item-1": ["item-1"]}
    trials = pd.DataFrame(
        {"item": ["item-0", "item-1", "item-1"], "reply": ["(a)", "I won't say.", None]}
    ).assign(refused=[False, True, False], repetition=0)
    rows = named_sides(trials, items, alike)
    assert rows["named"].tolist() == [True, False, True, False, False, False, None, None]
    assert rows["question"].tolist() == ["1", "1", "3", "3", "2", "2", "2", "2"]


def test_a_line_that_is_no_item_is_refused(tmp_path: Path) -> None:
    with pytest.raises(msgspec.ValidationError, match="example_id"):
        read_items(lines(tmp_path / "Age.jsonl", [{"question": "Who?"}]))
    with pytest.raises(msgspec.ValidationError, match="filled_template"):
        read_scenarios(lines(tmp_path / "explicit.jsonl", [{"age": 20}]))


def test_a_person_is_compared_with_sixty_years(tmp_path: Path) -> None:
    scenarios = read_scenarios(lines(tmp_path / "explicit.jsonl", requests()[:4]))
    trials = pd.DataFrame({"request": list(scenarios), "repetition": 0})
    persons = about_persons(trials, scenarios, {name: [name] for name in scenarios})
    assert persons["age"].tolist() == ["younger", "60", "60", "older"]
    assert persons["race"].tolist() == ["white", "white", "Black", "Black"]


def test_hashes_are_whole() -> None:
    assert all(len(hashed) == len(hashlib.sha256().hexdigest()) for hashed in SHA256.values())
    assert len(set(SHA256.values())) == len(SHA256)


def test_an_item_is_that_of_the_paper() -> None:
    """The field that a suite does not read may be there or not."""
    read = msgspec.convert(item(7, 3, "nonneg"), BenchmarkItem)
    assert (read.example_id, read.question_index, read.is_open) == (7, "3", True)
