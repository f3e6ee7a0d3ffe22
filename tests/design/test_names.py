"""Names: documented, balanced, in an order that never changes, and never silently fewer than asked
for.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.design.grid import expand_grid
from pytest_fairness.design.names import BLOCKING, SEXES, Name, NameBanks, NameEntry
from pytest_fairness.design.personas import PersonaMatrix
from pytest_fairness.design.plausibility import plausible
from pytest_fairness.errors import UsageError

RACES = ("white", "black", "hispanic", "asian", "middle_eastern")
COLUMNS = "protected_class,group,gender,name,source,flags\n"


def test_twenty_names_a_group_are_ten_women_and_ten_men(banks: NameBanks) -> None:
    """The default design: 20 different people, alternating, each with a surname of the same bank.
    The bank has 20 first names of either sex; of Middle Eastern names the source gives ten and ten.
    The names of seed 0 are pinned by their hash: ids, baselines and paid-for replies hang on it.
    """
    drawn = []
    for race in RACES:
        pools = [banks.first_name_pool("race_ethnicity", race, sex) for sex in ("female", "male")]
        assert min(map(len, pools)) >= (10 if race == "middle_eastern" else 20)
        names = banks.names("race_ethnicity", race)
        assert len({name.full for name in names}) == len({name.first for name in names}) == 20
        assert [name.gender for name in names] == ["female", "male"] * 10
        assert all(name.groups["race_ethnicity"] == race and name.source for name in names)
        assert {name.last for name in names} <= {key[3] for key in banks.surnames if key[1] == race}
        drawn += [name.full for name in names]
    assert drawn[:4] == ["Meredith Weber", "Brett Huber", "Paige Knapp", "Conor Bauer"]
    assert hashlib.sha256("\n".join(drawn).encode()).hexdigest()[:16] == "07a7af3f7aa2944a"


def test_fewer_names_are_the_beginning_of_more(banks: NameBanks) -> None:
    """A pilot of four names is part of the later twenty, so its replies are not paid for twice; a
    seed has its own.
    """
    assert (
        banks.names("race_ethnicity", "black", 4) == banks.names("race_ethnicity", "black", 20)[:4]
    )
    assert banks.names("gender", "male", 10)[:5] == banks.names("gender", "male", 5)
    assert banks.names("race_ethnicity", "white", seed=1) != banks.names("race_ethnicity", "white")


def largest_samples(banks: NameBanks) -> list[tuple[dict[str, str], int]]:
    """Every group that names signal, and groups crossed with gender, each with its largest sample."""
    asked: list[dict[str, str]] = [{}]
    for protected_class in banks.protected_classes:
        for group in banks.groups(protected_class):
            asked.append({protected_class: group})
            if protected_class != "gender":
                asked += [{protected_class: group, "gender": sex} for sex in SEXES]
    return [(groups, banks.largest_sample(groups)) for groups in asked]


def drawn(banks: NameBanks, groups: dict[str, str], n: int, seed: int = 0) -> tuple[Name, ...]:
    if groups:
        return banks.signalling(groups, n, seed=seed)
    return banks.neutral(n, seed=seed)


@pytest.mark.parametrize("seed", [0, 7])
def test_names_are_joined_anew_where_first_names_end(banks: NameBanks, seed: int) -> None:
    """All groups give 80 names, gender 160: no full name twice, no first name more than four times.
    Every look is the beginning of the next, has as many women as men, and gives no first name of a
    sex and ethnicity again before each of them had its turn, as long as it has surnames left.
    """
    for groups, most in largest_samples(banks):
        crossed = len(groups) > 1
        assert most >= {True: 40, False: 80}[crossed], groups
        names = drawn(banks, groups, most, seed)
        assert len({name.full for name in names}) == most
        assert max(Counter(name.first for name in names).values()) <= 4
        for look in (10, 20, 40, 80, 160):
            prefix = drawn(banks, groups, min(look, most), seed)
            assert prefix == names[:look]
            if groups and "gender" not in groups and look <= most:
                assert Counter(name.gender for name in prefix) == dict.fromkeys(SEXES, look // 2)
            uses: dict[tuple[str, ...], Counter[str]] = {}
            for name in prefix:
                cell = tuple(name.groups.values())
                uses.setdefault(cell, Counter())[name.first] += 1
            for cell, counts in uses.items():
                unused = 0
                if max(counts.values()) > 1:
                    unused = len(pool_of(banks, names, cell)) - len(counts)
                assert unused == 0
                for first, number in counts.items():
                    left = surnames_beside(banks, cell, first)
                    assert number >= min(max(counts.values()) - 1, left), (first, look)
        with pytest.raises(UsageError, match=f"{most} (neutral )?names"):
            drawn(banks, groups, most + 1, seed)
    assert banks.largest_sample({"gender": "female"}) >= 160


def pool_of(banks: NameBanks, names: tuple[Name, ...], cell: tuple[str, ...]) -> set[str]:
    """The first names of those of *names* that signal *cell*."""
    return {name.first for name in names if tuple(name.groups.values()) == cell}


def surnames_beside(banks: NameBanks, cell: tuple[str, ...], first: str) -> int:
    """How many surnames of the bank of *cell* are of the tradition of the name *first*."""
    traditions = {entry.tradition for entry in banks.first_names.values() if entry.name == first}
    surnames = [entry for entry in banks.surnames.values() if entry.drawn]
    if traditions == {""}:
        return len(surnames)
    return sum(entry.tradition in traditions and entry.group in cell for entry in surnames)


def religion_of(name: str) -> str:
    """The religion that a reader takes *name* for, by ``plausible.yaml``; empty if none."""
    for religion, names in plausible().names.items():
        if name in names:
            return religion
    return ""


def clashes(first: str, last: str, tradition: str) -> bool:
    """Whether one part of a name is Muslim, and the other of another religion; South Asian names
    that are not Muslim are of another.
    """
    religions = {religion_of(first), religion_of(last)}
    if tradition.startswith("south_asian"):
        return len({religion == "muslim" for religion in religions}) == 2
    return "muslim" in religions and len(religions - {""}) == 2


@pytest.mark.parametrize("locale", [None, "de"])
@pytest.mark.parametrize("seed", [0, 1, 7])
def test_no_drawn_name_is_of_two_religions(locale: str | None, seed: int) -> None:
    """No Srinivas Khan and no Syed Patel, in any shipped bank, nor in the matrix."""
    banks = NameBanks.load(locale=locale)
    traditions = {entry.name: entry.tradition for entry in banks.first_names.values()}
    names = [(p.first_name, p.last_name) for p in PersonaMatrix.load()]
    for groups, most in largest_samples(banks):
        names += [(name.first, name.last) for name in drawn(banks, groups, most, seed)]
    assert [name for name in names if clashes(*name, traditions.get(name[0], ""))] == []


@pytest.mark.parametrize(
    ("first", "last", "clash"),
    [
        ("Srinivas", "Khan", True),
        ("Rajesh", "Khan", True),
        ("Syed", "Patel", True),
        ("Srinivas", "Shah", False),
        ("Rajesh", "Singh", False),
        ("Syed", "Khan", False),
    ],
)
def test_what_clashes_is_known(first: str, last: str, clash: bool) -> None:
    """Names that the bank joined, and names that it may join."""
    assert clashes(first, last, "south_asian") == clash


def test_a_largest_sample_of_different_first_names(banks: NameBanks) -> None:
    """Not *joined*, no first name stands twice: pairs of candidates take that many."""
    for groups, most in largest_samples(banks):
        fewer = banks.largest_sample(groups, joined=False)
        assert 0 < fewer < most
        names = drawn(banks, groups, fewer + 1)
        assert len({name.first for name in names[:fewer]}) == fewer
    with pytest.raises(UsageError, match="cannot signal both"):
        banks.largest_sample({"age": "older", "religion": "jewish"})
    with pytest.raises(UsageError, match="did you mean 'white'"):
        banks.largest_sample({"race_ethnicity": "White"})


def test_a_bank_with_one_surname_gives_each_first_name_once() -> None:
    """A first name is used as often as it has surnames to go with."""
    rows = {"female": "Áile", "male": "Nils"}
    firsts = {
        sex: NameEntry(
            protected_class="race_ethnicity", group="sami", name=name, gender=sex, source="x"
        )
        for sex, name in rows.items()
    }  # type: ignore[arg-type]
    last = NameEntry(protected_class="race_ethnicity", group="sami", name="Sara", source="x")
    small = NameBanks({entry.key: entry for entry in firsts.values()}, {last.key: last})
    assert small.largest_sample({"race_ethnicity": "sami"}) == 2
    assert small.largest_sample({}) == 0
    with pytest.raises(UsageError, match=r"there are 0 neutral names.*add rows of neutral,shared"):
        small.neutral(1)


def test_women_and_men_differ_in_nothing_but_gender(banks: NameBanks) -> None:
    """As many names from each ethnicity; the same surnames, unless a first name's tradition forbids
    it.
    """
    women, men = banks.names("gender", "female"), banks.names("gender", "male")
    for names in (women, men):
        assert Counter(name.groups["race_ethnicity"] for name in names) == dict.fromkeys(RACES, 4)
    pairs = [
        (w, m) for w, m in zip(women, men, strict=True) if w.groups["race_ethnicity"] != "asian"
    ]
    assert [w.last for w, _ in pairs] == [m.last for _, m in pairs]


def test_age_names_share_their_surnames(banks: NameBanks) -> None:
    """Older and younger names differ in the first name only."""
    older, younger = banks.names("age", "older"), banks.names("age", "younger")
    assert [name.last for name in older] == [name.last for name in younger]
    assert {name.first for name in older}.isdisjoint(name.first for name in younger)
    entries = [entry for entry in banks.first_names.values() if entry.protected_class == "age"]
    decades = {
        group: {e.birth_decade for e in entries if e.group == group}
        for group in ("older", "younger")
    }
    assert decades == {"older": {1950, 1960}, "younger": {1990, 2000}}


@pytest.mark.parametrize("n", [4, 20, 40])
def test_parts_of_names_recur_as_rarely_as_the_bank_allows(banks: NameBanks, n: int) -> None:
    """No first name twice while there are others of its sex, and each surname at most ceil(n /
    surnames) times where the group has one tradition.
    """
    drawn = 0
    for protected_class in banks.protected_classes:
        for group in banks.groups(protected_class):
            if group == "asian":
                continue
            races = RACES if protected_class == "gender" else (group,)
            own = {
                entry.name
                for entry in banks.surnames.values()
                if entry.group in races and entry.drawn
            }
            own = own or {
                entry.name
                for entry in banks.surnames.values()
                if entry.group == "shared" and entry.drawn
            }
            try:
                names = banks.names(protected_class, group, n)
            except UsageError:
                continue
            drawn += 1
            pools = [banks.first_name_pool(protected_class, group, sex) for sex in SEXES]
            if protected_class == "gender":
                pools = [banks.first_name_pool("race_ethnicity", race, group) for race in RACES]
            most_first = math.ceil(n / len(pools) / min(map(len, pools)))
            assert max(Counter(name.first for name in names).values()) == most_first, group
            assert max(Counter(name.last for name in names).values()) <= math.ceil(n / len(own)), (
                group
            )
    assert drawn >= 5


@pytest.mark.parametrize("seed", range(3))
def test_names_of_several_traditions(banks: NameBanks, seed: int) -> None:
    """An Indian first name never gets a Chinese surname: such a pair signals something else. The
    default design has no first name and no surname twice all the same, though most Asian men's
    names have four surnames.
    """
    lasts = {key[3]: entry.tradition for key, entry in banks.surnames.items() if key[1] == "asian"}
    firsts = {
        entry.name: entry.tradition
        for entry in banks.first_names.values()
        if entry.group == "asian"
    }
    for gender in (None, "female"):
        names = banks.names("race_ethnicity", "asian", 20, gender=gender, seed=seed)
        assert len({name.first for name in names}) == len({name.last for name in names}) == 20
        assert all(lasts[name.last] == firsts[name.first] for name in names)


@pytest.mark.parametrize("n", [2, 7, 12, 20, 31, 42])
def test_surnames_of_small_traditions_recur_as_late_as_they_can(banks: NameBanks, n: int) -> None:
    """No choice of n / 2 women's and n / 2 men's names needs fewer uses of one surname; above 20,
    by one at most.

    A smaller draw is the beginning of a larger one, so that not every draw can be the best of its
    size.
    """
    stock = Counter(s.tradition for s in banks.surnames.values() if s.group == "asian" and s.drawn)
    firsts = {
        sex: Counter(
            entry.tradition for entry in banks.first_name_pool("race_ethnicity", "asian", sex)
        )
        for sex in ("female", "male")
    }
    names = banks.names("race_ethnicity", "asian", n)

    def possible(uses: int) -> bool:
        """Whether any numbers of names from each tradition come to n with *uses* of each surname,
        by trying all.
        """
        ways = {(0, 0)}
        for tradition, surnames in stock.items():
            women, men = firsts["female"][tradition], firsts["male"][tradition]
            ways = {
                (a + f, b + m)
                for a, b in ways
                for f in range(women + 1)
                for m in range(men + 1)
                if f + m <= uses * surnames and a + f <= (n + 1) // 2 and b + m <= n // 2
            }
        return ((n + 1) // 2, n // 2) in ways

    most = max(Counter(name.last for name in names).values())
    assert most <= next(uses for uses in range(1, n + 1) if possible(uses)) + (n > 20)


def test_neutral_names_signal_nothing(banks: NameBanks) -> None:
    """A first name that a third or more of either sex bear and no other group has, and a surname of
    which no group has three quarters of the bearers; full names, no initials.
    """
    names = banks.neutral(80)
    assert names == banks.neutral(88)[:80]
    assert len({name.full for name in names}) == 80
    assert all(name.groups == {} and name.first.isalpha() and name.source for name in names)
    assert len({name.first for name in names[:20]}) == len({name.last for name in names[:20]}) == 20
    with pytest.raises(UsageError, match="there are 88 neutral names, and 89 are wanted"):
        banks.neutral(89)
    shared = [entry for entry in banks.surnames.values() if entry.group == "shared"]
    assert all(entry.strength is not None and entry.strength < 0.75 for entry in shared)
    pool = banks.first_name_pool("neutral", "shared", "unisex")
    assert all(entry.strength is not None and entry.strength < 2 / 3 for entry in pool)
    assert {entry.name for entry in pool} == {name.first for name in names}
    others = [e for e in banks.first_names.values() if e.protected_class != "neutral"]
    assert {entry.name for entry in pool}.isdisjoint(entry.name for entry in others)
    with pytest.raises(UsageError, match="no names signal 'neutral'"):
        banks.names("neutral", "shared")


def test_a_neutral_first_name_belongs_to_no_group(banks: NameBanks) -> None:
    """At most one in five bearers is Black, Hispanic or Asian: more would signal the group."""
    for entry in banks.first_name_pool("neutral", "shared", "unisex"):
        found = re.findall(r"([\d.]+) (White|Black|Hispanic|Asian)", entry.support)
        assert [group for _, group in found] == ["White", "Black", "Hispanic", "Asian"]
        assert max(float(share) for share, group in found if group != "White") <= 0.2


def test_flagged_names_are_recorded_and_never_drawn(banks: NameBanks) -> None:
    """Leroy, Jay, Neil, Matthew, Emily and Allison: classic audit names that another source
    contradicts.
    """
    flagged = {entry.name for entry in banks.first_names.values() if entry.flags & BLOCKING}
    assert {"Leroy", "Jay", "Neil", "Matthew", "Emily", "Allison"} <= flagged
    for sex in ("female", "male"):
        assert flagged.isdisjoint(
            entry.name for entry in banks.first_name_pool("race_ethnicity", "white", sex)
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("race", "white"), "no names signal 'race'.*did you mean 'race_ethnicity'"),
        (("race_ethnicity", "Black"), "group 'Black'.*did you mean 'black'"),
        (("race_ethnicity", "middle-eastern"), "did you mean 'middle_eastern'"),
        (("gender", "non_binary"), "no names signal the gender group 'non_binary'"),
        (
            ("religion", "muslim"),
            "no names signal the religion group 'muslim' \\(the bank has: jewish, unmarked\\)",
        ),
        (("disability", "physical"), "no names signal 'disability'"),
        (("age", "older", 0), "0 is not a number of names"),
        (
            ("race_ethnicity", "middle_eastern", 81),
            "the name bank race_ethnicity/middle_eastern gives at most 80 names \\(10 female, 10 male "
            "first names, each up to 4 times\\), and 81 are wanted; ask for fewer, or add "
            "names with their source to your own personas/names/first_names.csv",
        ),
        (
            ("gender", "female", 300),
            "gender/female gives at most 204 names \\(107 female first names",
        ),
        (("race_ethnicity", "white", 20, "f"), "gender 'f': names are female, male or unisex"),
        (("gender", "male", 20, "female"), "'male' cannot have the gender 'female'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    banks: NameBanks, arguments: tuple[Any, ...], message: str
) -> None:
    """Never silently fewer, and the message lists what the bank has."""
    protected_class, group, *more = arguments
    options = dict(zip(("n", "gender"), more, strict=False))
    with pytest.raises(UsageError, match=message):
        banks.names(protected_class, group, **options)


def test_names_of_one_gender(banks: NameBanks) -> None:
    """Crossing draws from one cell of the bank; unisex names are asked for by that word."""
    assert {
        name.gender for name in banks.names("race_ethnicity", "hispanic", 20, gender="female")
    } == {"female"}
    assert {name.gender for name in banks.names("race_ethnicity", "white", 5, gender="unisex")} == {
        None
    }


def test_the_mapping_is_what_the_fixture_shows(banks: NameBanks) -> None:
    """name_banks["race_ethnicity"]["black"] is a tuple of names, as many as can be balanced, up to
    20.
    """
    found = dict(banks)
    assert list(found) == ["race_ethnicity", "age", "religion", "gender"]
    assert list(found["race_ethnicity"]) == list(RACES)
    assert {len(names) for groups in found.values() for names in groups.values()} == {20}
    assert str(found["race_ethnicity"]["white"][0]) == "Meredith Weber"
    assert "race" not in banks


def test_a_users_file_extends_the_bank(own: Path) -> None:
    """New groups and names are added, a name with the same key replaces ours."""
    (own / "names" / "first_names.csv").write_text(
        COLUMNS
        + "".join(f"race_ethnicity,white,female,Extra{i},our staff list 2026,\n" for i in range(3))
        + "race_ethnicity,white,female,Emily,our staff list 2026,\n"
        + "race_ethnicity,sami,female,Áile,Statistics Norway 2024,\n"
        + "race_ethnicity,sami,male,Nils,Statistics Norway 2024,\n"
    )
    (own / "names" / "surnames.csv").write_text(
        "protected_class,group,name,source\nrace_ethnicity,sami,Sara,Statistics Norway 2024\n"
    )
    extended, shipped = NameBanks.load(own), NameBanks.load()
    pools = [
        banks.first_name_pool("race_ethnicity", "white", "female") for banks in (extended, shipped)
    ]
    assert len(pools[0]) == len(pools[1]) + 4
    assert [name.full for name in extended.names("race_ethnicity", "sami", 2)] == [
        "Áile Sara",
        "Nils Sara",
    ]


def test_a_users_file_replaces_the_bank(own: Path) -> None:
    """first_names.only.csv: nothing of ours is left."""
    (own / "names" / "first_names.only.csv").write_text(
        COLUMNS + "race_ethnicity,a,female,Ana,x,\nrace_ethnicity,a,male,Bo,x,\n"
    )
    assert NameBanks.load(own).groups("race_ethnicity") == ("a",)
    (own / "names" / "first_names.csv").write_text(COLUMNS)
    with pytest.raises(UsageError, match=r"extends and .* replaces the shipped file; keep one"):
        NameBanks.load(own)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (COLUMNS + "a,b,female,,x,\n", r"first_names.csv:2: the column 'name' is empty"),
        (COLUMNS + "a,b,female,Ana,,\n", r":2: the column 'source' is empty"),
        (
            COLUMNS + "a,b,f,Ana,x,\n",
            r":2: gender: unknown value 'f' \(known: female, male, unisex\)",
        ),
        (COLUMNS + "a,b,male,Bo,x,\na,b,male,Bo,y,\n", r":3: 'Bo' stands already in .*:2"),
        (COLUMNS + "a,b,male,Bo,x,wierd\n", r":2: flags: unknown value 'wierd'.*did you mean"),
        (COLUMNS + "a,b,male,Bo,x\n", r":2: 5 cells under 6 columns"),
        (COLUMNS + 'a,b,male,"Bo,x,\n', "not valid CSV"),
        (COLUMNS + "a,b,male,{Bo},x,\n", "not a name that a text can carry"),
        (COLUMNS + "a,b,male,B\x1bo,x,\n", "not a name that a text can carry"),
        ("group,name\n", "the column 'gender' is missing"),
        (COLUMNS.replace("flags", "flag"), "unknown column 'flag'"),
        ("protected_class,group,gender,name,source,source\n", "the column 'source' stands twice"),
        (
            COLUMNS.replace("flags", "strength") + "a,b,male,Bo,x,1.2\n",
            "strength: expected a number <= 1",
        ),
        (
            COLUMNS.replace("flags", "strength") + "a,b,male,Bo,x,high\n",
            "strength: expected a number, got text",
        ),
        (
            COLUMNS.replace("flags", "bearers") + "a,b,male,Bo,x,1.5\n",
            "bearers: expected a whole number, got text",
        ),
        ("", "is missing"),
    ],
)
def test_faults_in_a_users_file_name_the_line(own: Path, text: str, message: str) -> None:
    """Every fault: which file, which line, what to do."""
    (own / "names" / "first_names.csv").write_text(text)
    with pytest.raises(UsageError, match=message):
        NameBanks.load(own)


def test_files_that_are_no_text(own: Path) -> None:
    """Latin-1 and huge files are refused before they are parsed, and a misspelled folder is not an
    empty one.
    """
    path = own / "names" / "surnames.csv"
    for content, message in (
        ("a,José".encode("latin-1"), "not UTF-8"),
        (b"x" * 5_000_001, "larger than"),
    ):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=message):
            NameBanks.load(own)
    with pytest.raises(UsageError, match="is not a folder"):
        NameBanks.load(own / "person")


def test_a_religion_is_conveyed_by_the_surname(banks: NameBanks) -> None:
    """Both groups have the same first names, so that nothing but the surname differs; no surname is
    of both.
    """
    jewish, unmarked = (banks.names("religion", group, 40) for group in ("jewish", "unmarked"))
    assert {name.first for name in jewish} == {name.first for name in unmarked}
    assert {name.last for name in jewish}.isdisjoint(name.last for name in unmarked)
    assert {"Cohen", "Levy"} <= {name.last for name in jewish}


def test_words_convey_religions_that_names_do_not() -> None:
    """A slot is filled as it was before there were names; and so are phrases beside a name."""
    labelled = expand_grid(
        template="{name} ({religion})", groups={"religion": ["jewish", "muslim"]}, names=2
    )
    assert labelled[0].prompt.endswith(" (Jewish)")
    phrased = expand_grid(
        template="{name}, who {religion}",
        groups={"religion": ["jewish", "muslim"]},
        signal="name+holiday",
        names=2,
    )
    assert phrased[0].prompt.endswith("who has asked for a day off for Yom Kippur")
    with pytest.raises(UsageError, match="conveyed twice"):
        expand_grid(
            template="{name} ({religion})", groups={"religion": ["jewish", "unmarked"]}, names=2
        )
