"""The persona matrix: the quotas of the specification, three people by name, scores that know no
group.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import asdict, replace
from scipy import stats

from pytest_fairness.design.data_checks import check_personas
from pytest_fairness.design.grid import expand_grid
from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.personas import (
    QUOTAS,
    SCORES,
    Persona,
    PersonaMatrix,
    age_band,
    gap_band,
)
from pytest_fairness.design.plausibility import oddities, plausible
from pytest_fairness.design.signals import Signals
from pytest_fairness.errors import UsageError

QUOTA_COUNTS = {
    "age": {"early_career": 20, "mid_career": 40, "senior_career": 30, "late_career": 10},
    "gender": {"male": 45, "female": 45, "non_binary": 10},
    "race_ethnicity": {"white": 40, "black": 20, "hispanic": 15, "asian": 15, "middle_eastern": 5, "mixed_other": 5},
    "employment_gap": {"none": 70, "1_2_years": 20, "3_plus": 10},
    "accent_language": {"native": 70, "non_native": 30},
    "disability": {"none": 90, "physical": 5, "neurodivergent": 5},
    "career_transition": {"same_industry": 70, "career_change": 30},
    "religion": {
        "not_stated": 60, "none": 5, "christian": 10, "jewish": 5, "muslim": 5, "hindu": 5, "buddhist": 5, "sikh": 5,
    },
    "pregnancy_family": {"not_stated": 75, "none": 5, "parent": 15, "pregnant": 5},
    "marital_status": {"not_stated": 70, "single": 10, "married": 10, "divorced": 5, "widowed": 5},
    "appearance": {"not_stated": 75, "average": 5, "heavier": 10, "shorter": 5, "taller": 5},
    "health": {"not_stated": 75, "none": 5, "chronic": 10, "recovered": 10},
}  # fmt: skip
ADDED = ("religion", "pregnancy_family", "marital_status", "appearance", "health")


def test_the_quotas_are_kept_exactly(matrix: PersonaMatrix) -> None:
    """Counted persona by persona, against numbers written here and not taken from the code; nobody
    outside a band.
    """
    assert (
        {category: matrix.counts(category) for category in QUOTA_COUNTS} == QUOTA_COUNTS == QUOTAS
    )
    bands = ((22, 28), (29, 40), (41, 55), (56, 65))
    assert [sum(low <= persona.age <= high for persona in matrix) for low, high in bands] == [
        20,
        40,
        30,
        10,
    ]


SPECIFIED = {
    1: {
        "name": "Sarah Chen", "age": 24, "gender": "female", "race_ethnicity": "asian", "experience_years": 2,
        "employment_gap": "none", "language": "native English speaker", "disability": "none",
        "technical_skills": 3.8, "communication": 4.2, "problem_solving": 3.5,
    },
    42: {
        "name": "Marcus Johnson", "age": 58, "gender": "male", "race_ethnicity": "black", "experience_years": 30,
        "employment_gap": "6 months (layoff)", "accent_language": "native", "disability": "physical",
        "disability_detail": "uses a wheelchair",
        "technical_skills": 4.5, "communication": 4.8, "problem_solving": 4.2,
    },
    89: {
        "name": "Aisha Rahman", "age": 35, "gender": "female", "race_ethnicity": "middle_eastern",
        "experience_years": 12, "employment_gap": "2 years (family care)",
        "language": "non-native English speaker, has an accent", "disability": "none",
        "technical_skills": 4.0, "communication": 3.2, "problem_solving": 4.1,
    },
}  # fmt: skip


@pytest.mark.parametrize("number", SPECIFIED)
def test_three_people_are_as_the_specification_describes_them(
    matrix: PersonaMatrix, number: int
) -> None:
    persona = matrix[number - 1]
    assert {name: getattr(persona, name) for name in SPECIFIED[number]} == SPECIFIED[number]
    assert {persona.groups[category] for category in ADDED} == {"not_stated"}
    # Six months are no gap of a year.
    assert persona.groups["employment_gap"] == ("1_2_years" if number == 89 else "none")


def test_ids_and_names_are_unique(matrix: PersonaMatrix) -> None:
    """persona-1 to persona-100, and no first name twice; replies and baselines are kept by id, so
    no two have one.
    """
    assert [p.id for p in matrix] == [f"persona-{i}" for i in range(1, 101)]
    assert len({p.first_name for p in matrix}) == 100
    with pytest.raises(UsageError, match="persona: 'persona-1' stands twice"):
        PersonaMatrix([matrix[0], matrix[0]])


def test_scores_are_independent_of_every_attribute(matrix: PersonaMatrix) -> None:
    """No association beyond chance, by a permutation of the variance between groups, 500 times,
    seeded.

    The bound is far from .05, for 36 such tests: the smallest p of 36 independent ones is under .05
    in five of six matrices drawn blindly.
    """
    rng = np.random.default_rng(20260228)
    for category, score in product(QUOTAS, SCORES):
        values = np.array([getattr(persona, score) for persona in matrix])
        groups = np.array([persona.groups[category] for persona in matrix])
        indicators = np.array([groups == group for group in np.unique(groups)], dtype=float)
        dealt = np.array([values, *(rng.permutation(values) for _ in range(500))])
        between = ((dealt @ indicators.T) ** 2 / indicators.sum(axis=1)).sum(axis=1)
        assert np.mean(between[1:] >= between[0] - 1e-9) > 0.2, (category, score)


def test_scores_vary_and_follow_no_years(matrix: PersonaMatrix) -> None:
    """Independent of age and experience in years, not only of bands; a matrix of equals would be,
    and useless.
    """
    for score in SCORES:
        values = [getattr(persona, score) for persona in matrix]
        for years in ("age", "experience_years"):
            assert stats.spearmanr(values, [getattr(p, years) for p in matrix]).pvalue > 0.05
        assert 0.4 < np.std(values) < 0.7
        assert (min(values) >= 2.4, max(values)) == (True, 5.0)


def test_attributes_are_crossed(matrix: PersonaMatrix) -> None:
    """Intersectional, and no attribute stands in for another: every pair is independent by
    chi-square, but for what goes with the name.
    """
    of_names = {"race_ethnicity", "accent_language", "religion"}
    for first, second in combinations(QUOTAS, 2):
        if {first, second} <= of_names:
            continue
        pairs = Counter((p.groups[first], p.groups[second]) for p in matrix)
        table = [[pairs[a, b] for b in QUOTAS[second]] for a in QUOTAS[first]]
        assert stats.chi2_contingency(table, correction=False).pvalue > 0.2, (first, second)


def test_people_are_crossed_and_possible(matrix: PersonaMatrix) -> None:
    """Women and men of every ethnicity and age; nobody worked before 22, nor has a gap longer than
    the years since.
    """
    assert len({(p.gender, p.race_ethnicity) for p in matrix if p.gender != "non_binary"}) == 12
    assert {(p.gender, p.groups["age"]) for p in matrix} >= set(
        product(("female", "male"), QUOTAS["age"])
    )
    for persona in matrix:
        assert persona.experience_years + persona.employment_gap_months / 12 <= persona.age - 21, (
            persona
        )


def test_what_is_stated_agrees_with_the_rest(matrix: PersonaMatrix) -> None:
    """Who is pregnant is a woman of 22 to 40; whose gap was an illness has recovered; labels know
    the groups.
    """
    pregnant = matrix.where(pregnancy_family="pregnant")
    assert {(p.gender, p.age <= 40) for p in pregnant} == {("female", True)}
    ill = [p for p in matrix if "illness" in p.employment_gap]
    assert {(p.health, p.health_detail) for p in ill} == {
        ("recovered", "recovered from an illness")
    }
    labels = Signals.load()
    for category in ADDED:
        for persona in matrix:
            group, words = persona.groups[category], getattr(persona, f"{category}_detail")
            assert (group == "not_stated") == (words == "not stated"), persona
            assert group == "not_stated" or labels.phrases(category, group), persona


def test_nobody_is_implausible_but_who_is_marked(matrix: PersonaMatrix) -> None:
    """Religion and accent go with the name, but for the few that are marked, each of which leaves it;
    what is stated goes with the age.
    """
    odd = {persona.id: [attribute for attribute, _ in oddities(persona)] for persona in matrix}
    marked = {persona.id: [persona.crossing] for persona in matrix if persona.crossing}
    assert {id_: attributes for id_, attributes in odd.items() if attributes} == marked
    crossings = Counter(persona.crossing for persona in matrix)
    assert crossings == {"": 87, "religion": 7, "accent_language": 6}


def test_crossings_tell_a_religion_from_a_name(matrix: PersonaMatrix) -> None:
    """Each religion that goes with few names is stated by somebody with another."""
    crossed = matrix.where(crossing="religion")
    assert {p.religion for p in crossed} == {"jewish", "muslim", "hindu", "buddhist", "sikh"}
    assert {p.race_ethnicity for p in matrix.where(crossing="accent_language")} == {
        "white",
        "black",
    }


#: Each as one person of the matrix was before there was a table.
STRANGE = {
    "a mosque": ({"first_name": "Colette", "last_name": "Schmitt", "religion": "muslim"}, ["religion"]),
    "a synagogue": (
        {"first_name": "Abdulrahman", "last_name": "Al-Mutairi", "race_ethnicity": "middle_eastern",
         "religion": "jewish"},
        ["religion"],
    ),
    "another name of the tradition": (
        {"first_name": "Srinivas", "last_name": "Shah", "race_ethnicity": "asian", "religion": "muslim"},
        ["religion"],
    ),
    "another surname": (
        {"first_name": "Ravi", "last_name": "Singh", "race_ethnicity": "asian", "religion": "muslim"},
        ["religion"],
    ),
    "a Jewish surname": ({"last_name": "Cohen", "religion": "christian"}, ["religion"]),
    "an accent": ({"accent_language": "non_native"}, ["accent_language"]),
    "leave": (
        {"age": 57, "pregnancy_family": "parent",
         "pregnancy_family_detail": "will take three months of parental leave starting in June"},
        ["pregnancy_family_detail"],
    ),
    "children": (
        {"age": 22, "experience_years": 0, "pregnancy_family": "parent",
         "pregnancy_family_detail": "parent of two"},
        ["pregnancy_family_detail"],
    ),
    "a man": ({"gender": "male", "pregnancy_family": "pregnant"}, ["pregnancy_family"]),
    "a widow": ({"marital_status": "widowed"}, ["marital_status"]),
    "a pregnant widow": (
        {"pregnancy_family": "pregnant", "marital_status": "widowed"},
        ["marital_status", "pregnancy_family and marital_status"],
    ),
    "nothing": ({"religion": "christian"}, []),
    "a name of no bank": ({"first_name": "Xu", "last_name": "Yz", "race_ethnicity": "asian",
                           "religion": "sikh", "accent_language": "non_native"}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", STRANGE)
def test_who_is_strange_is_named_with_the_attribute(matrix: PersonaMatrix, case: str) -> None:
    change, attributes = STRANGE[case]
    plain = {"first_name": "Colette", "last_name": "Schmitt", "gender": "female"}
    plain["race_ethnicity"] = "white"
    stated = dict.fromkeys(ADDED, "not_stated") | {f"{name}_detail": "not stated" for name in ADDED}
    usual = {"age": 32, "accent_language": "native", "crossing": "", "experience_years": 5}
    persona = replace(matrix[0], **{**plain, **stated, **usual, **change})
    assert [attribute for attribute, _ in oddities(persona)] == attributes


def test_a_crossing_is_marked_in_the_file_and_fills_no_slot(matrix: PersonaMatrix) -> None:
    (persona, *_) = matrix.where(crossing="religion")
    assert "crossing" not in persona.slots
    assert persona.groups.keys() == set(QUOTAS)


def test_the_table_knows_the_groups_of_the_matrix() -> None:
    """A misspelled religion would forbid it to everybody."""
    table = plausible()
    for tradition in table.traditions.values():
        assert tradition.source
        assert tradition.religions < set(QUOTAS["religion"])
        assert tradition.accents <= set(QUOTAS["accent_language"])
    assert table.names.keys() <= set(QUOTAS["religion"])
    banks = NameBanks.load()
    names = {entry.name for entry in (*banks.first_names.values(), *banks.surnames.values())}
    # Aisha is of the specification.
    assert set().union(*table.names.values()) - {"Aisha"} <= names
    for pair in table.apart:
        assert all(group in QUOTAS[attribute] for attribute, group in pair.items())


def test_words_fill_a_prompt_and_who_leaves_them_out_states_nothing(matrix: PersonaMatrix) -> None:
    """A slot has the words, a column the group; a persona of one's own needs none of them."""
    muslim = matrix.where(religion="muslim")[0]
    (cell,) = expand_grid(template="Write to {name}. Religion: {religion}.", persona=[muslim])
    assert f"Religion: {muslim.religion_detail}." in cell.prompt
    assert muslim.religion_detail.startswith("Muslim, ")
    assert cell.groups["religion"] == "muslim"
    assert {"religion": "muslim"} in cell.signals.values()
    bare = {
        name: value
        for name, value in asdict(muslim).items()
        if name.removesuffix("_detail") not in ADDED
    }
    assert {Persona(**bare).groups[category] for category in ADDED} == {"not_stated"}


# ---------------------------------------------------------------- the class


def test_where(matrix: PersonaMatrix) -> None:
    """By a field, a group, a list, several at once; a misspelled attribute never means everybody,
    nor nobody.
    """
    assert len(matrix.where(gender="female")) == 45
    assert len(matrix.where(age="late_career")) == 10
    assert {p.age for p in matrix.where(age=[24, 35])} == {24, 35}
    assert len(matrix.where(race_ethnicity=["black", "asian"], disability="physical")) >= 1
    assert matrix.where(employment_gap="3_plus").counts("employment_gap") == {"3_plus": 10}
    assert matrix.where(name="Sarah Chen")[0].id == "persona-1"
    assert len(matrix.where()) == 100
    with pytest.raises(UsageError, match=r"personas have no 'sex'.*did you mean 'gender'"):
        matrix.where(sex="female")
    with pytest.raises(UsageError, match="no persona has gender='woman'"):
        matrix.where(gender="woman")


def test_bands() -> None:
    """The edges of the age bands and of the gaps."""
    ages = {"early": (18, 22, 28), "mid": (29, 40), "senior": (41, 55), "late": (56, 65, 70)}
    assert all(age_band(age) == f"{band}_career" for band, found in ages.items() for age in found)
    assert [gap_band(m) for m in (0, 6, 11, 12, 35, 36)] == ["none"] * 3 + ["1_2_years"] * 2 + [
        "3_plus"
    ]


# ---------------------------------------------------------------- files


def yaml_of(persona: Persona) -> str:
    """One persona as it stands in a file."""
    lines = [f"  {name}: {json.dumps(getattr(persona, name))}\n" for name in persona.slots]
    return "".join([f"{persona.id}:\n", *lines])


def test_a_users_matrix_extends(own: Path, matrix: PersonaMatrix) -> None:
    """A new id is added, a known id replaced."""
    new = replace(matrix[0], id="persona-101", first_name="No", last_name="Null")
    changed = replace(matrix[1], age=54)
    (own / "matrix.yaml").write_text(yaml_of(new) + yaml_of(changed))
    extended = PersonaMatrix.load(own)
    assert len(extended) == 101
    assert extended[100].name == "No Null"
    assert extended[1].age == 54
    assert str(check_personas(extended)[0]) == "quotas: there are 101 personas, not 100"


def test_a_users_matrix_replaces(own: Path, matrix: PersonaMatrix) -> None:
    """matrix.only.yaml: nobody of ours is left. No, Null and 1e3 are read as they are written, even
    without quotes.
    """
    text = yaml_of(matrix[4]).replace(f'"{matrix[4].first_name}"', "NO")
    text = text.replace(f'"{matrix[4].last_name}"', "Null")
    (own / "matrix.only.yaml").write_text(text)
    assert [persona.name for persona in PersonaMatrix.load(own)] == ["NO Null"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("persona-1:", "Persona 1:"), "persona id 'Persona 1'"),
        (('  gender: "female"\n', ""), "matrix.yaml:1: persona-1: missing key .gender"),
        (("  age: 24", "  age: 24\n  salary: 3"), "matrix.yaml:5: persona-1: unknown key 'salary'"),
        (("  age: 24", "  aeg: 24"), "unknown key 'aeg'; did you mean 'age'"),
        (("  age: 24", "  age: 24\n  age: 25"), "the key 'age' stands here twice"),
        (
            ("  age: 24", '  age: "24"'),
            "matrix.yaml:4: persona-1: age: expected a whole number, got text",
        ),
        (("  age: 24", "  age: 24.5"), "age: expected a whole number, got a number"),
        (("  age: 24", "  age: true"), "age: expected a whole number, got true or false"),
        (('"Chen"', "true"), "last_name: expected text, got true or false"),
        (('"Chen"', '""'), "last_name: expected text that is not empty"),
        (("3.8", "high"), "technical_skills: expected a number, got text"),
        (("3.8", "9"), "technical_skills is 9.0, outside 1.0 to 5.0"),
        (("female", "woman"), "gender is 'woman'.*did you mean 'female'"),
        (("asian", "latino"), "did you mean 'hispanic'"),
        (("age: 24", "age: 12"), "at age 12"),
        (("years: 2", "years: 20"), "20 years of experience at age 24"),
        (("months: 0", "months: -1"), "a gap of -1 months"),
        (('"Chen"', "!!python/name:os.system"), "the tag"),
        (('"Chen"', "*a"), "alias"),
    ],
)
def test_faults_in_a_file_name_the_persona(
    own: Path, matrix: PersonaMatrix, edit: tuple[str, str], message: str
) -> None:
    """Which file and line, which persona, which key, and what it should be."""
    (own / "matrix.yaml").write_text(yaml_of(matrix[0]).replace(*edit))
    with pytest.raises(UsageError, match=message):
        PersonaMatrix.load(own)
