"""DATA: shares against a declared population, coverage, repeated rows, missing values."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.personas import PersonaMatrix
from pytest_fairness.design.signals import Signals
from pytest_fairness.model import Reason, Verdict
from pytest_fairness.suites.governance import representativeness
from tests.conftest import MODES

from ..pytest_layer.conftest import Project
from .lives import Life, LivedProject, Sessions, lived

SUITE = ("--pyargs", "pytest_fairness.suites.governance", "--fairness-test=DATA-*")
DECLARED = {"female": 0.5, "male": 0.5}
OPTIONS = """
data:
  dataset: applicants.csv
  columns: {gender: sex}
  groups: {gender: {F: female, M: male}}
  population:
    gender: {female: 0.5, male: 0.5}
"""


def applicants(females: int, males: int, *, gaps: Sequence[str] = ()) -> str:
    people = [
        *[("F", number) for number in range(females)],
        *[("M", number) for number in range(males)],
    ]
    rows = []
    for place, (sex, number) in enumerate(people):
        score = "" if sex in gaps and number % 3 == 0 else str(number)
        rows.append(f"{place},{sex},{'younger' if number % 2 else 'older'},{score}")
    random.Random(0).shuffle(rows)
    return "\n".join(["id,sex,age,score", *rows])


@pytest.mark.parametrize(
    ("female", "male", "verdict"),
    [
        (500, 500, Verdict.PASS),
        (300, 700, Verdict.FAIL),
        (445, 555, Verdict.FLAG),
        (20, 25, Verdict.INCONCLUSIVE),
    ],
)
def test_shares_against_a_declared_population(female: int, male: int, verdict: Verdict) -> None:
    found = representativeness.representative(
        {"female": female, "male": male}, DECLARED, "x.csv", "gender", 0.8
    )
    assert found.verdict is verdict
    assert found.sentence.startswith(verdict)
    assert found.reason is (Reason.PRECISION if verdict is Verdict.INCONCLUSIVE else None)
    assert found.n_per_group == {"female": female, "male": male}
    nobody = representativeness.representative({}, DECLARED, "x.csv", "gender", 0.8)
    assert (nobody.verdict, nobody.reason) == (Verdict.INCONCLUSIVE, Reason.N)


def test_samples_of_the_declared_population_are_seldom_called_unlike_it() -> None:
    """Four groups, one of five per cent: of 1,000 samples of 400 people at most 5 % are FLAG or
    FAIL.
    """
    declared = {"a": 0.6, "b": 0.25, "c": 0.1, "d": 0.05}
    drawn = np.random.default_rng(1).multinomial(400, list(declared.values()), size=1000)
    verdicts = [
        representativeness.representative(
            dict(zip(declared, map(int, row), strict=True)), declared, "x", "class", 0.8
        ).verdict
        for row in drawn
    ]
    assert sum(one in (Verdict.FLAG, Verdict.FAIL) for one in verdicts) <= 50


def test_what_ships_covers_the_programme() -> None:
    matrix, banks, signals = PersonaMatrix.load(), NameBanks.load(), Signals.load()
    covered = representativeness.classes_covered(matrix, banks, signals)
    assert covered.verdict is Verdict.PASS
    assert any("pairs of groups without a persona" in note for note in covered.notes)
    less = Signals(
        {key: kind for key, kind in signals.kinds.items() if key[0] != "national_origin"}
    )
    lacking = representativeness.classes_covered(matrix, banks, less)
    assert (lacking.verdict, "national_origin" in lacking.sentence) == (Verdict.FLAG, True)
    assert representativeness.name_banks_suffice(banks).verdict is Verdict.PASS
    entries = {
        key: one for key, one in banks.first_names.items() if one.group != "black" or one.name < "F"
    }
    fewer = representativeness.name_banks_suffice(NameBanks(entries, banks.surnames))
    assert fewer.verdict in (Verdict.FLAG, Verdict.FAIL)
    assert "black" in fewer.sentence


def test_the_matrix_against_a_population() -> None:
    matrix = PersonaMatrix.load()
    like = representativeness.matrix_shares(
        matrix, "gender", {"female": 0.45, "male": 0.45, "non_binary": 0.1}, 0.8
    )
    assert like.verdict is Verdict.PASS
    found = representativeness.matrix_shares(matrix, "gender", {"female": 0.99, "male": 0.01}, 0.8)
    assert found.verdict is Verdict.FLAG
    assert "female" in found.sentence


@lived
def applying_life(project: LivedProject) -> Sessions:
    """A dataset with too many men, whose rows about women lack values; then one with rows that
    repeat and an age of which there is one row.
    """
    project.write()
    (project.path / "governance.yaml").write_text(OPTIONS, "utf-8")
    file = project.path / "applicants.csv"
    file.write_text(applicants(300, 700, gaps="F"), "utf-8")
    yield "men", project.run(*SUITE)
    yield "n2", project.run(*SUITE, mode=MODES["n2"])
    text = applicants(200, 200)
    file.write_text("\n".join([text, *text.splitlines()[1:100], "9999,F,oldest,1"]), "utf-8")
    yield "repeated", project.run(*SUITE)
    rows = [line.split(",") for line in applicants(200, 200).splitlines()]
    file.write_text("\n".join(f"{number},{sex},{score}" for number, sex, _, score in rows), "utf-8")
    yield "one class", project.run(*SUITE, "-rs")


def test_a_dataset_is_red_for_whom_it_leaves_out(applying_life: Life) -> None:
    """Each is one finding, with its controls."""
    men = applying_life["men"]
    assert men.counts("failed", "passed", "deselected") == (2, 5, 20)
    findings = men.by_id
    assert findings["DATA-REPR-001"]["verdict"] == "FAIL"
    assert findings["DATA-MISS-001"]["verdict"] == "FAIL"
    counted = ("DATA-COVER-001", "DATA-NAMES-001", "DATA-INTER-001", "DATA-QUAL-001")
    assert {findings[name]["verdict"] for name in counted} == {"PASS"}
    assert findings["DATA-REPR-001"]["controls"] == {"A.7.2": "supporting", "A.7.4": "direct"}
    assert findings["DATA-REPR-001"]["test_module"] == "iso42001-data"


def test_two_workers_conclude_the_same(applying_life: Life) -> None:
    workers = applying_life["n2"]
    assert workers.counts("failed", "passed") == (2, 5)
    assert workers.verdicts == applying_life["men"].verdicts


def test_rows_that_repeat_are_flagged(applying_life: Life) -> None:
    finding = applying_life["repeated"].by_id["DATA-QUAL-001"]
    assert finding["verdict"] == "FLAG"
    assert "99 of 500 rows repeat another (19.8 %), over 1.0 %" in finding["sentence"]


def test_a_thin_intersection_is_flagged(applying_life: Life) -> None:
    finding = applying_life["repeated"].by_id["DATA-INTER-001"]
    assert finding["verdict"] == "FLAG"
    assert "oldest" in finding["sentence"]


@pytest.mark.parametrize(
    ("repeats", "verdict"), [(0, Verdict.PASS), (1, Verdict.PASS), (2, Verdict.FLAG)]
)
def test_as_many_rows_may_repeat_as_is_declared(repeats: int, verdict: Verdict) -> None:
    """Of a hundred rows one may, at a share of .01; a column that is not of the file is not read."""
    values = [*range(100 - repeats), *[0] * repeats]
    frame = pd.DataFrame({"id": values, "group": range(100)})
    finding = representativeness.few_duplicates(frame, ["id"], 0.01)
    assert finding.verdict is verdict
    assert f"{repeats} of 100 rows repeat another" in finding.sentence


@pytest.mark.parametrize(
    ("least", "verdict", "words"),
    [
        (2, Verdict.PASS, "has 2 rows or more"),
        (
            3,
            Verdict.FLAG,
            "2 combinations of groups have fewer than 3 rows, such as female and old",
        ),
    ],
)
def test_intersections_of_groups(least: int, verdict: Verdict, words: str) -> None:
    rows = [("female", "old"), ("female", "young"), ("male", "young")] * 3
    rows += [("male", "old")] * 2 + [(None, "young")]
    frame = pd.DataFrame(rows, columns=["gender", "age"])
    if least == 3:
        frame = frame.drop(index=0)
    finding = representativeness.intersections_covered(frame, least)
    assert finding.verdict is verdict, finding.sentence
    assert words in finding.sentence


def test_one_class_has_no_intersections(applying_life: Life) -> None:
    """There is nothing to count: the test is skipped, and says why; the others judge."""
    one = applying_life["one class"]
    assert one.counts("passed", "skipped") == (6, 1)
    assert "DATA-INTER-001" not in one.by_id
    assert "the dataset tells the groups of gender alone: there is no combination" in one.output


def test_a_dataset_that_tells_no_groups_is_flagged() -> None:
    frame = pd.DataFrame({"gender": ["female"], "age": ["old"]})
    finding = representativeness.intersections_covered(frame, 1)
    assert finding.verdict is Verdict.FLAG
    assert "of no protected class" in finding.sentence
    assert "age" in finding.notes[0]


@pytest.mark.parametrize(
    ("names", "verdict", "words"),
    [
        (20, Verdict.PASS, "has 20 names or more"),
        (19, Verdict.FLAG, "black (19): fewer names than the 20 that a grid asks for"),
        (10, Verdict.FLAG, "black (10)"),
        (9, Verdict.FAIL, "black (9): fewer names than 10, with which nothing can be said"),
    ],
)
def test_names_of_a_group(names: int, verdict: Verdict, words: str) -> None:
    banks = {"race_ethnicity": {"white": ["x"] * 30, "black": ["x"] * names}}
    finding = representativeness.name_banks_suffice(banks)  # type: ignore[arg-type]
    assert finding.verdict is verdict
    assert words in finding.sentence


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "data: {population: {gender: {female: 0.5}}}",
            "the shares of gender are of two or more groups and sum to 1",
        ),
        ("data: {population: {gender: {female: 0.5, male: 0.2}}}", "sum to 1"),
        ("data: {datasett: x.csv}", "datasett"),
        (OPTIONS.replace("applicants.csv", "absent.csv"), "'absent.csv' cannot be read"),
        (OPTIONS.replace("{gender: sex}", "{gender: sexx}"), "did you mean 'sex'"),
        (OPTIONS.replace("F: female, ", ""), "gender has F in applicants.csv"),
    ],
)
def test_what_is_wrong_is_said(project: Project, options: str, message: str) -> None:
    (project.path / "applicants.csv").write_text(applicants(20, 20), encoding="utf-8")
    project.write("")
    (project.path / "governance.yaml").write_text(options, encoding="utf-8")
    result = project.run(*SUITE)
    assert result.ret != 0
    assert message in " ".join(result.stdout.str().split())
