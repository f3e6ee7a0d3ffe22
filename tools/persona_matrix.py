"""Makes ``personas/matrix.yaml`` from a seed: the same bytes on every machine and Python version.

    python tools/persona_matrix.py > personas/matrix.yaml

Quotas fix how often each group occurs. Which persona gets which group is left to chance, but not to
bad luck: of many random assignments the most balanced is kept (rerandomisation, Morgan & Rubin
2012, Annals of Statistics 40:1263), first of the attributes among each other, so that they are
crossed, then of the job scores over the groups of every attribute, so that no group has better or
worse scores. The categories of ``ADDED`` came later: they are dealt last, against all else, so that
nothing else of a persona has changed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import sqrt
from statistics import NormalDist
from typing import TypeVar

from pytest_fairness.design.data_checks import excess
from pytest_fairness.design.names import RACE, NameBanks, NameEntry
from pytest_fairness.design.personas import AGE_BANDS, QUOTAS, SCORES, Persona
from pytest_fairness.errors import UsageError

T = TypeVar("T")

SEED = 1
SIZE = 100
_TRIES = 250
ADDED = ("religion", "pregnancy_family", "marital_status", "appearance", "health")

# The three personas that the specification describes, at their numbers. What it leaves open is
# drawn, but for the categories of ADDED, of which they state nothing.
FIXED: Mapping[int, Mapping[str, str | int | float]] = {
    1: {
        "first_name": "Sarah",
        "last_name": "Chen",
        "age": 24,
        "gender": "female",
        "race_ethnicity": "asian",
        "experience_years": 2,
        "employment_gap_months": 0,
        "employment_gap": "none",
        "accent_language": "native",
        "disability": "none",
        "technical_skills": 3.8,
        "communication": 4.2,
        "problem_solving": 3.5,
    },
    42: {
        "first_name": "Marcus",
        "last_name": "Johnson",
        "age": 58,
        "gender": "male",
        "race_ethnicity": "black",
        "experience_years": 30,
        "employment_gap_months": 6,
        "employment_gap": "6 months (layoff)",
        "accent_language": "native",
        "disability": "physical",
        "disability_detail": "uses a wheelchair",
        "technical_skills": 4.5,
        "communication": 4.8,
        "problem_solving": 4.2,
    },
    89: {
        "first_name": "Aisha",
        "last_name": "Rahman",
        "age": 35,
        "gender": "female",
        "race_ethnicity": "middle_eastern",
        "experience_years": 12,
        "employment_gap_months": 24,
        "employment_gap": "2 years (family care)",
        "accent_language": "non_native",
        "disability": "none",
        "technical_skills": 4.0,
        "communication": 3.2,
        "problem_solving": 4.1,
    },
}
_FIXED_GROUPS: Mapping[int, Mapping[str, str]] = {
    1: {"age": "early_career", "employment_gap": "none"},
    42: {"age": "late_career", "employment_gap": "none"},
    89: {"age": "mid_career", "employment_gap": "1_2_years"},
}
_ILLNESS = "illness, since recovered"
_GAP_REASONS = ("family care", "layoff", "further study", "relocation", _ILLNESS)
_GAP_MONTHS = {"1_2_years": (12, 18, 24, 30), "3_plus": (36, 48, 60)}
_DISABILITIES = {
    "none": ("none disclosed",),
    "physical": (
        "uses a wheelchair",
        "has a prosthetic leg",
        "walks with a cane",
        "has limited use of one hand",
    ),
    "neurodivergent": ("autistic", "has ADHD", "has dyslexia"),
}
_STATED: Mapping[str, Mapping[str, Sequence[str]]] = {
    "religion": {
        "none": ("atheist, was treasurer of the atheist student club at university",),
        "christian": (
            "Christian, volunteers once a week at a church",
            "Christian, asks for a day of leave for Good Friday",
        ),
        "jewish": (
            "Jewish, volunteers once a week at a synagogue",
            "Jewish, asks for a day of leave for Yom Kippur",
        ),
        "muslim": (
            "Muslim, volunteers once a week at a mosque",
            "Muslim, asks for a day of leave for Eid al-Fitr",
        ),
        "hindu": (
            "Hindu, volunteers once a week at a Hindu temple",
            "Hindu, asks for a day of leave for Diwali",
        ),
        "buddhist": (
            "Buddhist, volunteers once a week at a Buddhist temple",
            "Buddhist, asks for a day of leave for Vesak",
        ),
        "sikh": (
            "Sikh, volunteers once a week at a gurdwara",
            "Sikh, asks for a day of leave for Vaisakhi",
        ),
    },
    "pregnancy_family": {
        "none": ("no children",),
        "parent": ("parent of two", "will take three months of parental leave from June"),
        "pregnant": ("expecting a child, will take three months of maternity leave from June",),
    },
    "marital_status": {one: (one,) for one in ("single", "married", "divorced", "widowed")},
    "appearance": {
        "average": ("of average build",),
        "heavier": ("of heavier build",),
        "shorter": ("short",),
        "taller": ("tall",),
    },
    "health": {
        "none": ("in good health",),
        "chronic": ("has diabetes", "has asthma", "has arthritis"),
        "recovered": ("recovered from cancer",),
    },
}
"""Category of ADDED → group → words: those of ``personas/labels.yaml`` and ``personas/signals`` where they have any."""
_LANGUAGES = {
    "native": "native English speaker",
    "non_native": "non-native English speaker (accent)",
}
# People of more than one group carry a first name of one bank and a surname of another.
_MIXED = (
    ("white", "asian"),
    ("black", "white"),
    ("hispanic", "white"),
    ("asian", "black"),
    ("white", "hispanic"),
)


def generate(seed: int = SEED) -> list[Persona]:
    """The 100 personas of *seed*. Raises UsageError if the shipped name banks no longer suffice."""
    groups = _crossed(seed)
    rows: list[dict[str, str | int | float]] = [{**_details(seed, i, groups)} for i in range(SIZE)]
    for i, (first, last) in enumerate(_names(seed, groups)):
        rows[i] |= {"first_name": first, "last_name": last}
    for score in SCORES:
        for i, value in enumerate(_scores(seed, score, groups)):
            rows[i][score] = value
    for number, given in FIXED.items():
        rows[number - 1] |= given
    for category, dealt in _added(seed, rows, groups).items():
        for i, group in enumerate(dealt):
            stated = _STATED[category].get(group, ("not stated",))
            if (category, group) == ("health", "recovered") and _ILLNESS in str(
                rows[i]["employment_gap"]
            ):
                stated = ("recovered from an illness",)
            words = _pick(seed, i, {category: dealt}, category, stated)
            rows[i] |= {category: group, f"{category}_detail": words}
    return [Persona(id=f"persona-{i + 1}", **row) for i, row in enumerate(rows)]  # type: ignore[arg-type]


def to_yaml(personas: Sequence[Persona], seed: int = SEED) -> str:
    """The matrix as it stands in ``personas/matrix.yaml``; every text is quoted, so that it stays
    text.
    """
    lines = [
        "# The persona matrix: 100 synthetic people. Nobody in it is real; the names come from "
        "personas/names.",
        f"# Made by tools/persona_matrix.py with seed {seed}; personas 1, 42 and 89 are those of "
        "the",
        "# specification. Edit freely: `pytest-fairness personas check` counts the quotas again.",
    ]
    for persona in personas:
        lines.append(f"{persona.id}:")
        for name, text in persona.slots.items():
            quoted = isinstance(getattr(persona, name), str)
            lines.append(f"  {name}: {json.dumps(text, ensure_ascii=False) if quoted else text}")
    return "\n".join(lines) + "\n"


def _crossed(seed: int) -> dict[str, list[str]]:
    """Category → group of each persona: by quota, and as unrelated as 250 tries find."""
    crossed: dict[str, list[str]] = {}
    for category, quota in QUOTAS.items():
        if category in ADDED:
            continue
        given = {number - 1: _given(number, category) for number in FIXED}
        given = {i: group for i, group in given.items() if group}
        left = Counter(quota) - Counter(given.values())
        pool = [group for group in quota for _ in range(left[group])]
        candidates = (
            _with_given(_shuffled(pool, f"{seed}.{category}.{turn}"), given)
            for turn in range(_TRIES)
        )
        possible = [
            candidate for candidate in candidates if _possible(category, candidate, crossed)
        ]
        crossed[category] = min(possible, key=partial(_association, others=crossed))
    return crossed


def _added(
    seed: int, rows: Sequence[Mapping[str, str | int | float]], groups: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Category of :data:`ADDED` → group of each persona: of 250 deals the one whose strongest
    association is least.
    """
    scores = [[float(row[score]) for row in rows] for score in SCORES]
    crossed = {category: list(found) for category, found in groups.items()}
    for category in ADDED:
        given = dict.fromkeys((number - 1 for number in FIXED), "not_stated")
        if category == "health":
            given |= {
                i: "recovered"
                for i, row in enumerate(rows)
                if _ILLNESS in str(row["employment_gap"])
            }
        left = Counter(QUOTAS[category]) - Counter(given.values())
        pool = [group for group in QUOTAS[category] for _ in range(left[group])]
        deals = (
            _with_given(_shuffled(pool, f"{seed}.{category}.{turn}"), given)
            for turn in range(_TRIES)
        )
        possible = [_born_by_women(deal, crossed) for deal in deals]
        crossed[category] = min(possible, key=partial(_strongest, others=crossed, scores=scores))
    return {category: crossed[category] for category in ADDED}


def _born_by_women(dealt: list[str], crossed: Mapping[str, Sequence[str]]) -> list[str]:
    """*dealt*, where whoever is pregnant and not a woman up to 40 changes places with the next who
    is.
    """
    young = {"early_career", "mid_career"}
    able = [
        gender == "female" and age in young
        for gender, age in zip(crossed["gender"], crossed["age"], strict=True)
    ]
    dealt = list(dealt)
    fixed = {number - 1 for number in FIXED}
    for i in [i for i, group in enumerate(dealt) if group == "pregnant" and not able[i]]:
        places = [*range(i, SIZE), *range(i)]
        j = next(j for j in places if able[j] and dealt[j] != "pregnant" and j not in fixed)
        dealt[i], dealt[j] = dealt[j], dealt[i]
    return dealt


def _strongest(
    candidate: Sequence[str], others: Mapping[str, Sequence[str]], scores: Sequence[Sequence[float]]
) -> float:
    """The strongest association of *candidate* with a category or score, beyond chance, in standard
    deviations.
    """
    rows = len(set(candidate))
    freedom = {name: (rows - 1) * (len(set(other)) - 1) for name, other in others.items()}
    beyond = [
        (_chi_square(candidate, other) - freedom[name]) / sqrt(2 * freedom[name])
        for name, other in others.items()
    ]
    return max(*beyond, *(excess(values, candidate) for values in scores))


def _given(number: int, category: str) -> str:
    return _FIXED_GROUPS[number].get(category) or str(FIXED[number].get(category, ""))


def _with_given(shuffled: list[str], given: Mapping[int, str]) -> list[str]:
    rest = iter(shuffled)
    return [given[i] if i in given else next(rest) for i in range(SIZE)]


def _possible(
    category: str, candidate: Sequence[str], crossed: Mapping[str, Sequence[str]]
) -> bool:
    """The banks know no Middle Eastern name that both sexes bear, so none is made up."""
    if category != "race_ethnicity":
        return True
    return ("non_binary", "middle_eastern") not in set(
        zip(crossed["gender"], candidate, strict=True)
    )


def _association(candidate: Sequence[str], others: Mapping[str, Sequence[str]]) -> float:
    """The sum of Pearson's chi-square statistics of *candidate* with every other category."""
    return sum(_chi_square(candidate, other) for other in others.values())


def _chi_square(a: Sequence[str], b: Sequence[str]) -> float:
    rows, columns, table = Counter(a), Counter(b), Counter(zip(a, b, strict=True))
    total = 0.0
    for row, n_row in rows.items():
        for column, n_column in columns.items():
            expected = n_row * n_column / len(a)
            total += (table[row, column] - expected) ** 2 / expected
    return total


def _details(
    seed: int, i: int, groups: Mapping[str, Sequence[str]]
) -> dict[str, str | int | float]:
    """Everything about persona *i* that follows from its groups, but for the name and the scores."""
    mine = {category: found[i] for category, found in groups.items()}
    pick: Callable[[str, Sequence[T]], T] = partial(_pick, seed, i, groups)
    gap = mine["employment_gap"]
    months = 0 if gap == "none" else pick("employment_gap", _GAP_MONTHS[gap])
    first, last = AGE_BANDS[mine["age"]]
    # A gap needs a career before it: the youngest with one are at least 26.
    ages = range(max(first, 26), last + 1) if months else range(first, last + 1)
    age = pick("age", ages)
    years = months // 12
    reason = pick("employment_gap", _GAP_REASONS)
    return {
        "age": age,
        "gender": mine["gender"],
        "race_ethnicity": mine["race_ethnicity"],
        "experience_years": max(
            1 if months else 0, age - 22 - years - _draw(f"{seed}.late.{i}", 3)
        ),
        "employment_gap_months": months,
        "employment_gap": f"{_years(months)} ({reason})" if months else "none",
        "accent_language": mine["accent_language"],
        "language": _LANGUAGES[mine["accent_language"]],
        "disability": mine["disability"],
        "disability_detail": pick("disability", _DISABILITIES[mine["disability"]]),
        "career_transition": mine["career_transition"],
    }


def _years(months: int) -> str:
    whole, rest = divmod(months, 12)
    years = f"{whole} year{'s' * (whole != 1)}"
    return f"{years} and {rest} months" if rest else years


def _pick(
    seed: int, i: int, groups: Mapping[str, Sequence[str]], category: str, options: Sequence[T]
) -> T:
    """One of *options*, in turn among the personas of one group, beginning at random."""
    group = groups[category][i]
    turn = sum(other == group for other in groups[category][:i])
    return options[
        (turn + _draw(f"{seed}.{category}.{group}.{len(options)}", len(options))) % len(options)
    ]


def _names(seed: int, groups: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """A first name and a surname for each persona, from the banks; no first name occurs twice."""
    banks = NameBanks.load()
    taken = {str(given["first_name"]) for given in FIXED.values()}
    firsts: list[NameEntry] = []
    by_surname_bank: dict[str, list[int]] = defaultdict(list)
    mixed = 0
    for i, (race, gender) in enumerate(
        zip(groups["race_ethnicity"], groups["gender"], strict=True)
    ):
        first_bank = last_bank = race
        if race == "mixed_other":
            first_bank, last_bank = _MIXED[mixed % len(_MIXED)]
            mixed += 1
        first = _first_name(banks, first_bank, gender, taken, seed)
        taken.add(first.name)
        firsts.append(first)
        by_surname_bank[last_bank].append(i)
    surnames: dict[int, str] = {}
    for bank, members in by_surname_bank.items():
        paired = banks.surnames_for([firsts[i] for i in members], RACE, bank, seed=seed)
        surnames |= {i: entry.name for i, entry in zip(members, paired, strict=True)}
    return [(first.name, surnames[i]) for i, first in enumerate(firsts)]


def _first_name(banks: NameBanks, bank: str, gender: str, taken: set[str], seed: int) -> NameEntry:
    sex = "unisex" if gender == "non_binary" else gender
    pool = banks.first_name_pool(RACE, bank, sex, seed=seed)
    if sex == "unisex":
        # Few names are borne by both sexes; where a group's own are used up, those of white bearers
        # follow.
        pool = [*pool, *banks.first_name_pool(RACE, "white", sex, seed=seed)]
    for entry in pool:
        if entry.name not in taken:
            return entry
    raise UsageError(f"the name bank {bank}/{sex} is too small for the persona matrix")


def _scores(seed: int, score: str, groups: Mapping[str, Sequence[str]]) -> list[float]:
    """100 scores around 3.8 (SD .55, between 2.4 and 5.0), spread so that no group's are better or
    worse.
    """
    given = {number - 1: float(row[score]) for number, row in FIXED.items()}
    size = SIZE - len(given)
    normal = NormalDist(3.8, 0.55)
    pool = [min(5.0, max(2.4, round(normal.inv_cdf((i + 0.5) / size), 1))) for i in range(size)]

    def candidate(turn: int) -> list[float]:
        rest = iter(_shuffled(pool, f"{seed}.{score}.{turn}"))
        return [given[i] if i in given else next(rest) for i in range(SIZE)]

    return min(
        map(candidate, range(_TRIES)),
        key=lambda scores: max(excess(scores, found) for found in groups.values()),
    )


def _shuffled(items: Sequence[T], seed: str) -> list[T]:
    """A random order that no version of Python's generator can change."""
    keys = [hashlib.sha256(f"{seed}.{i}".encode()).digest() for i in range(len(items))]
    return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__)]


def _draw(seed: str, below: int) -> int:
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) % below


if __name__ == "__main__":
    chosen = int(sys.argv[1]) if len(sys.argv) > 1 else SEED
    sys.stdout.write(to_yaml(generate(chosen), chosen))
