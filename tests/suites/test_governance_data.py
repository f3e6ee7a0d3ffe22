"""DATA: shares against a declared population, coverage, repeated rows, missing values."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.personas import PersonaMatrix
from pytest_fairness.design.signals import Signals
from pytest_fairness.model import Reason, Verdict
from pytest_fairness.suites.governance import representativeness

from ..pytest_layer.conftest import Project

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


def test_a_dataset(project: Project, mode: list[str]) -> None:
    """Men are too many, and the rows about women lack values; each is one finding, with its
    controls.
    """
    (project.path / "applicants.csv").write_text(applicants(300, 700, gaps="F"), encoding="utf-8")
    project.write("")
    (project.path / "governance.yaml").write_text(OPTIONS, encoding="utf-8")
    result = project.run(*SUITE, mode=mode, apart=True)
    result.assert_outcomes(failed=2, passed=5, **({} if mode[-1] == "-n2" else {"deselected": 19}))
    found = {one["test_id"]: one for one in project.findings}
    assert found["DATA-REPR-001"]["verdict"] == "FAIL"
    assert found["DATA-MISS-001"]["verdict"] == "FAIL"
    assert {
        found[name]["verdict"]
        for name in ("DATA-COVER-001", "DATA-NAMES-001", "DATA-INTER-001", "DATA-QUAL-001")
    } == {"PASS"}
    assert found["DATA-REPR-001"]["controls"] == {"A.7.2": "supporting", "A.7.4": "direct"}
    assert found["DATA-REPR-001"]["test_module"] == "iso42001-data"


def test_rows_that_repeat_and_thin_intersections(project: Project) -> None:
    text = applicants(200, 200)
    (project.path / "applicants.csv").write_text(
        "\n".join([text, *text.splitlines()[1:100], "9999,F,oldest,1"]), "utf-8"
    )
    project.write("")
    (project.path / "governance.yaml").write_text(OPTIONS, encoding="utf-8")
    project.run(*SUITE)
    found = {one["test_id"]: one for one in project.findings}
    assert found["DATA-QUAL-001"]["verdict"] == "FLAG"
    assert found["DATA-INTER-001"]["verdict"] == "FLAG"
    assert "oldest" in found["DATA-INTER-001"]["sentence"]


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
