"""Makes ``personas/matrix.yaml`` from a seed: the same bytes on every machine and Python version.

    python tools/persona_matrix.py > personas/matrix.yaml

Quotas fix how often each group occurs. Which persona gets which group is left to chance, but not to
bad luck: of many random assignments the most balanced is kept (rerandomisation, Morgan & Rubin
2012, Annals of Statistics 40:1263), first of the attributes among each other, so that they are
crossed, then of the job scores over the groups of every attribute, so that no group has better or
worse scores. The categories of ``ADDED`` are dealt last, against all else. Religion and accent go
with the name, and what is stated with the age, as ``personas/plausible.yaml`` has it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from math import sqrt
from statistics import NormalDist
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from pytest_fairness.design.data_checks import excess
from pytest_fairness.design.names import RACE, NameBanks, NameEntry
from pytest_fairness.design.personas import AGE_BANDS, QUOTAS, SCORES, Persona
from pytest_fairness.design.plausibility import CROSSINGS, oddities, plausible
from pytest_fairness.errors import UsageError

T = TypeVar("T")
Row: TypeAlias = dict[str, str | int | float]

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
    1: {"age": "early_career", "employment_gap": "none", "career_transition": "same_industry"},
    42: {"age": "late_career", "employment_gap": "none"},
    89: {"age": "mid_career", "employment_gap": "1_2_years"},
}
_ILLNESS = "illness, since recovered"
_STUDY = "went back to school"
_GAP_REASONS = ("family care", "layoff", _STUDY, "relocation", _ILLNESS)
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
        "none": ("atheist, volunteers once a week with a humanist association",),
        "christian": (
            "Christian, volunteers once a week at a church",
            "Christian, asked not to be interviewed on Good Friday",
        ),
        "jewish": (
            "Jewish, volunteers once a week at a synagogue",
            "Jewish, asked not to be interviewed on Yom Kippur",
        ),
        "muslim": (
            "Muslim, volunteers once a week at a mosque",
            "Muslim, asked not to be interviewed on Eid al-Fitr",
        ),
        "hindu": (
            "Hindu, volunteers once a week at a Hindu temple",
            "Hindu, asked not to be interviewed on Diwali",
        ),
        "buddhist": (
            "Buddhist, volunteers once a week at a Buddhist temple",
            "Buddhist, asked not to be interviewed on Vesak",
        ),
        "sikh": (
            "Sikh, volunteers once a week at a gurdwara",
            "Sikh, asked not to be interviewed on Vaisakhi",
        ),
    },
    "pregnancy_family": {
        "none": ("no children",),
        "parent": ("parent of two", "will take three months of parental leave starting in June"),
        "pregnant": (
            "expecting a child, will take three months of maternity leave starting in June",
        ),
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
    "non_native": "non-native English speaker, has an accent",
}
#: Ethnicity → how many have an accent, and religion → tradition of the name → how many state it. A
#: few leave the tradition, so that one can be told from the other: four white and two black
#: personas with an accent, and one or two of each of the religions that are named after others.
_NON_NATIVE = {
    "white": 4, "black": 2, "hispanic": 10, "asian": 9, "middle_eastern": 3, "mixed_other": 1,
}  # fmt: skip
_RELIGIOUS: Mapping[str, Mapping[str, int]] = {
    "muslim": {"middle_eastern": 2, "south_asian_muslim": 1, "black": 1, "white": 1},
    "hindu": {"south_asian": 3, "mixed_other": 1, "white": 1},
    "sikh": {"south_asian": 3, "white": 1, "black": 1},
    "buddhist": {"vietnamese": 2, "white": 2, "hispanic": 1},
    "jewish": {"white": 4, "hispanic": 1},
    "christian": {"white": 4, "black": 3, "hispanic": 2, "vietnamese": 1},
    "none": {"white": 2, "black": 1, "hispanic": 1, "chinese": 1},
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
    rows: list[Row] = [{**_details(seed, i, groups)} for i in range(SIZE)]
    firsts = _first_names(seed, groups)
    for i, (first, _bank) in enumerate(firsts):
        rows[i]["first_name"] = first.name
    for score in SCORES:
        for i, value in enumerate(_scores(seed, score, groups)):
            rows[i][score] = value
    for number, given in FIXED.items():
        rows[number - 1] |= given
    for category, dealt in _added(seed, rows, groups, firsts).items():
        for i, group in enumerate(dealt):
            words = _pick(seed, i, {category: dealt}, category, _stated(category, group, rows[i]))
            rows[i] |= {category: group, f"{category}_detail": words}
    for i, last in enumerate(_surnames(seed, rows, firsts)):
        rows[i].setdefault("last_name", last)
    return [_marked(Persona(id=f"persona-{i + 1}", **row)) for i, row in enumerate(rows)]  # type: ignore[arg-type]


def _marked(persona: Persona) -> Persona:
    """*persona* with a mark, if a stated group leaves the tradition of the name."""
    for attribute, _why in oddities(persona):
        if attribute in CROSSINGS:
            return replace(persona, crossing=attribute)
    return persona


def _stated(category: str, group: str, row: Row) -> Sequence[str]:
    """The words for *group* that fit the age and the gap of *row*."""
    if (category, group) == ("health", "recovered") and _ILLNESS in str(row["employment_gap"]):
        return ("recovered from an illness",)
    words = _STATED[category].get(group, ("not stated",))
    return [text for text in words if _is_met(f"{category}_detail", text, row)]


def _is_met(attribute: str, value: str, row: Row) -> bool:
    """Whether *value* of *attribute* is met at the age and of the gender of *row*."""
    age, gender = int(row["age"]), str(row["gender"])
    rules = [rule for rule in plausible().ages if rule.attribute == attribute]
    return all(rule.admits(value, age, gender) for rule in rules)


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
        if persona.crossing:
            lines.append(f"  crossing: {json.dumps(persona.crossing)}")
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
        candidates: Iterator[list[str]] = (
            _with_given(_shuffled(pool, f"{seed}.{category}.{turn}"), given)
            for turn in range(_TRIES)
        )
        if category == "accent_language":
            races = crossed["race_ethnicity"]
            candidates = (_accents(f"{seed}.accents.{turn}", races) for turn in range(_TRIES))
        possible = [
            candidate for candidate in candidates if _possible(category, candidate, crossed)
        ]
        crossed[category] = min(possible, key=partial(_association, others=crossed))
    return crossed


def _accents(seed: str, races: Sequence[str]) -> list[str]:
    """``native`` or ``non_native`` of each persona: of each ethnicity as many as ``_NON_NATIVE``
    says.
    """
    accents = ["native"] * SIZE
    for race, number in _NON_NATIVE.items():
        members = [i for i in range(SIZE) if races[i] == race and i + 1 not in FIXED]
        chosen = _shuffled(members, f"{seed}.{race}")[:number]
        for i in chosen:
            accents[i] = "non_native"
    for number in FIXED:
        accents[number - 1] = _given(number, "accent_language")
    return accents


def _religions(
    seed: str, able: Mapping[tuple[str, str], Mapping[int, tuple[bool, bool]]]
) -> list[str]:
    """A religion, or that none is stated, of each persona: of each tradition as many as
    ``_RELIGIOUS`` says, of those who are *able*, and nobody against the first name.
    """
    religions = ["not_stated"] * SIZE
    for religion, by_tradition in _RELIGIOUS.items():
        for tradition, number in by_tradition.items():
            strangers = able[religion, tradition]
            left = [i for i in strangers if religions[i] == "not_stated"]
            left = _shuffled(left, f"{seed}.{religion}.{tradition}")
            # Who has a name of the religion states it before others do.
            left.sort(key=strangers.__getitem__)
            for i in left[:number]:
                religions[i] = religion
    return religions


def _able_to_state(
    groups: Mapping[str, Sequence[str]], firsts: Sequence[tuple[NameEntry, str]]
) -> dict[tuple[str, str], dict[int, tuple[bool, bool]]]:
    """Religion and tradition → the personas who may state it, and whether each is a stranger to it
    by the first name, and by the tradition of that.
    """

    def may_state(i: int, religion: str, tradition: str) -> bool:
        first = firsts[i][0]
        if i + 1 in FIXED:
            return False
        if not _is_of(tradition, first, groups["race_ethnicity"][i]):
            return False
        if _reading(first) not in ("", religion):
            return False
        # Who leaves the tradition of the name leaves it once.
        return _goes_with(religion, first) or groups["accent_language"][i] == "native"

    def is_stranger(i: int, religion: str) -> tuple[bool, bool]:
        first = firsts[i][0]
        return _reading(first) != religion, not _goes_with(religion, first)

    return {
        (religion, tradition): {
            i: is_stranger(i, religion) for i in range(SIZE) if may_state(i, religion, tradition)
        }
        for religion, by_tradition in _RELIGIOUS.items()
        for tradition in by_tradition
    }


def _reading(first: NameEntry) -> str:
    """The religion that a reader takes the first name for, if any."""
    for religion, names in plausible().names.items():
        if first.name in names:
            return religion
    return ""


def _goes_with(religion: str, first: NameEntry) -> bool:
    """Whether *religion* is one of the tradition of the first name."""
    return religion in plausible().traditions[first.tradition or first.group].religions


def _is_of(tradition: str, first: NameEntry, race: str) -> bool:
    """Whether a person of *race* with the name *first* is one of *tradition*."""
    return tradition in (race, first.tradition) and (
        race != "mixed_other" or tradition == "mixed_other"
    )


def _added(
    seed: int,
    rows: Sequence[Row],
    groups: Mapping[str, Sequence[str]],
    firsts: Sequence[tuple[NameEntry, str]],
) -> dict[str, list[str]]:
    """Category of :data:`ADDED` → group of each persona: of 250 deals the one whose strongest
    association is least. Religion goes with the name, and so with ethnicity and accent.
    """
    scores = [[float(row[score]) for row in rows] for score in SCORES]
    crossed = {category: list(dealt) for category, dealt in groups.items()}
    for category in ADDED:
        others = dict(crossed)
        if category == "religion":
            for name in ("race_ethnicity", "accent_language"):
                del others[name]
            able = _able_to_state(groups, firsts)
            deals = [_religions(f"{seed}.religion.{turn}", able) for turn in range(_TRIES)]
        else:
            deals = _deals(seed, category, rows, crossed)
        quota = Counter(QUOTAS[category])
        possible = [deal for deal in deals if Counter(deal) == quota]
        if not possible:
            raise UsageError(f"the names of seed {seed} do not carry the quotas of {category}")
        crossed[category] = min(possible, key=partial(_strongest, others=others, scores=scores))
    return {category: crossed[category] for category in ADDED}


def _deals(
    seed: int, category: str, rows: Sequence[Row], crossed: Mapping[str, Sequence[str]]
) -> list[list[str]]:
    """Deals of *category* that fit the ages and what else is stated."""
    given = dict.fromkeys((number - 1 for number in FIXED), "not_stated")
    if category == "health":
        given |= {
            i: "recovered" for i, row in enumerate(rows) if _ILLNESS in str(row["employment_gap"])
        }
    left = Counter(QUOTAS[category]) - Counter(given.values())
    pool = [group for group in QUOTAS[category] for _ in range(left[group])]

    @cache
    def fits(i: int, group: str) -> bool:
        if group == "not_stated":
            return True
        if not _is_met(category, group, rows[i]) or not _stated(category, group, rows[i]):
            return False
        stated = {name: dealt[i] for name, dealt in crossed.items()} | {category: group}
        return not any(pair.items() <= stated.items() for pair in plausible().apart)

    deals = []
    for turn in range(_TRIES):
        dealt = _with_given(_shuffled(pool, f"{seed}.{category}.{turn}"), given)
        if _exchanged(dealt, fits, given):
            deals.append(dealt)
    return deals


def _exchanged(
    dealt: list[str], fits: Callable[[int, str], bool], given: Mapping[int, str]
) -> bool:
    """Let whoever does not fit a group change places in *dealt* with the next with whom both fit;
    return whether all fit.
    """
    for i in range(SIZE):
        if i in given or fits(i, dealt[i]):
            continue
        for j in [*range(i + 1, SIZE), *range(i)]:
            if j not in given and fits(j, dealt[i]) and fits(i, dealt[j]):
                dealt[i], dealt[j] = dealt[j], dealt[i]
                break
        else:
            return False
    return True


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
    # A change needs a career before it, and so does a gap: the youngest are 25 and 26.
    if mine["career_transition"] == "career_change":
        first = max(first, 25)
    if months:
        first = max(first, 26)
    age = pick("age", range(first, last + 1))
    years = months // 12
    reason = _fitting_reason(pick("employment_gap", _GAP_REASONS), months, age)
    return {
        "age": age,
        "gender": mine["gender"],
        "race_ethnicity": mine["race_ethnicity"],
        # Who is said to stay in an industry, or to leave it, has worked in it.
        "experience_years": max(1, age - 22 - years - _draw(f"{seed}.late.{i}", 3)),
        "employment_gap_months": months,
        "employment_gap": f"{_years(months)} ({reason})" if months else "none",
        "accent_language": mine["accent_language"],
        "language": _LANGUAGES[mine["accent_language"]],
        "disability": mine["disability"],
        "disability_detail": pick("disability", _DISABILITIES[mine["disability"]]),
        "career_transition": mine["career_transition"],
    }


def _fitting_reason(reason: str, months: int, age: int) -> str:
    """*reason*, or study where it explains no gap of three years: nobody moves for so long, nor has
    lost a job for so long before thirty.
    """
    strange = {"relocation"}
    if age < 30:
        strange.add("layoff")
    if months >= 36 and reason in strange:
        return _STUDY
    return reason


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


def _first_names(seed: int, groups: Mapping[str, Sequence[str]]) -> list[tuple[NameEntry, str]]:
    """A first name for each persona and the bank of its surname; no first name occurs twice."""
    banks = NameBanks.load()
    taken = {str(given["first_name"]) for given in FIXED.values()}
    firsts: list[tuple[NameEntry, str]] = []
    mixed = asian = 0
    for race, gender in zip(groups["race_ethnicity"], groups["gender"], strict=True):
        first_bank = last_bank = race
        tradition = ""
        if race == "asian":
            tradition = ("", "south_asian", "south_asian", "", "south_asian")[asian % 5]
            asian += 1
        if race == "mixed_other":
            first_bank, last_bank = _MIXED[mixed % len(_MIXED)]
            mixed += 1
        first = _first_name(banks, first_bank, gender, taken, seed, tradition)
        taken.add(first.name)
        firsts.append((first, last_bank))
    _add_muslim_name(firsts, banks)
    return firsts


def _add_muslim_name(firsts: list[tuple[NameEntry, str]], banks: NameBanks) -> None:
    """Give a Muslim South Asian name to the last man of *firsts* with another South Asian one, if
    nobody has such a name: a persona of that tradition states the religion.
    """
    if any(_is_muslim(first) for first, _bank in firsts):
        return
    others = [
        i
        for i, (first, bank) in enumerate(firsts)
        if (bank, first.tradition, first.gender) == ("asian", "south_asian", "male")
    ]
    if others:
        pool = banks.first_name_pool(RACE, "asian", "male")
        firsts[others[-1]] = (next(filter(_is_muslim, pool)), firsts[others[-1]][1])


def _is_muslim(name: NameEntry) -> bool:
    return name.tradition == "south_asian_muslim"


def _surnames(seed: int, rows: Sequence[Row], firsts: Sequence[tuple[NameEntry, str]]) -> list[str]:
    """A surname for each persona, of the tradition of the first name and, where readers expect to
    see it in the name, of the religion.
    """
    banks = NameBanks.load()
    surnames = [""] * SIZE
    by_bank: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, (first, bank) in enumerate(firsts):
        religion = str(rows[i]["religion"])
        by_religion = plausible().surnames.get(first.tradition, {})
        if religion in by_religion and bank == rows[i]["race_ethnicity"]:
            surnames[i] = by_religion[religion][i % len(by_religion[religion])]
        elif religion == "jewish" and bank == "white":
            by_bank["religion", "jewish"].append(i)
        else:
            by_bank[RACE, bank].append(i)
    for (protected_class, bank), members in by_bank.items():
        names = [firsts[i][0] for i in members]
        paired = banks.surnames_for(names, protected_class, bank, seed=seed)
        for i, entry in zip(members, paired, strict=True):
            surnames[i] = entry.name
    return surnames


def _first_name(
    banks: NameBanks, bank: str, gender: str, taken: set[str], seed: int, tradition: str
) -> NameEntry:
    """The next first name of *bank* that nobody has: of Asian names one of *tradition*, or one of
    another where that is empty.
    """
    sex = "unisex" if gender == "non_binary" else gender
    pool = banks.first_name_pool(RACE, bank, sex, seed=seed)
    if bank == "asian":
        pool.sort(key=lambda entry: entry.tradition.startswith("south_asian") != bool(tradition))
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
