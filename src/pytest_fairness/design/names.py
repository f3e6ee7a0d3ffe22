"""Names that signal a group: the evidence for each, and banks that draw full names in a fixed
order.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import combinations, cycle, product, starmap, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec

from pytest_fairness.documents import layers, rows
from pytest_fairness.errors import InvalidEntry, UsageError, did_you_mean
from pytest_fairness.words import listed

RACE = "race_ethnicity"
GENDER = "gender"
SEXES = ("female", "male")
#: Classes that the surname conveys, beside first names that all groups share, and for some of their
#: groups only.
BY_SURNAME = ("religion",)
_SHARED = ("neutral", "shared")
_NEUTRAL = (*_SHARED, "unisex")
_MOST = 20
#: Times that a first name stands in a sample at most, each with another surname.
_USES = 4
#: What a name may not hold: a template or a page would take it for its own.
_UNFIT = frozenset('{}<>"\\/')
BLOCKING = frozenset({"contradicted", "ambiguous", "weak"})
"""Flags of names that a bank keeps on record and never draws."""

T = TypeVar("T")
Cell: TypeAlias = tuple[str, str, str]
Key: TypeAlias = tuple[str, str, str, str]
Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
Flag: TypeAlias = Literal[
    "contradicted",
    "ambiguous",
    "weak",
    "unmeasured",  # listed by a source that gives no figure
    "rare",  # under 30 bearers counted
    "both_sexes",  # borne by women and men
    "word",  # an English word or title as well
    "religion",  # signals a religion as well
    "one_source",  # supported by one source only
    "other_origin",  # common in other groups, which the source does not count
    "under_half",  # a surname of which the group has less than half of the bearers
]


class NameEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A first name or a surname (of no gender) with its evidence: one row of
    ``personas/names/*.csv``.

    ``strength``: the share of the bearers who belong to the group, or as ``strength_measure`` says;
    ``perceived``: of the people who read the name as the group's. ``tradition`` keeps first names
    and surnames together.
    """

    protected_class: str
    group: str
    name: str
    gender: Literal["female", "male", "unisex", ""] = ""
    tradition: str = ""
    strength: Share | None = None
    strength_measure: str = ""
    perceived: Share | None = None
    bearers: int | None = None
    bearers_measure: str = ""
    birth_decade: int | None = None
    source: str
    year: int | None = None
    licence: str = ""
    support: str = ""
    flags: frozenset[Flag] = frozenset()
    where: str = ""

    def __post_init__(self) -> None:
        """Refuse a name that a template or a page would take for its own."""
        if not self.name.isprintable() or not _UNFIT.isdisjoint(self.name):
            raise InvalidEntry(f"{self.name!r} is not a name that a text can carry")

    @property
    def key(self) -> Key:
        return self.protected_class, self.group, self.gender, self.name

    @property
    def of(self) -> tuple[str, str]:
        return self.protected_class, self.group

    @property
    def drawn(self) -> bool:
        """Return whether a bank may draw this name."""
        return not self.flags & BLOCKING


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A full name and the groups that it signals: of every class that it conveys, gender included
    where it is known; none of a neutral name. ``strength`` is that of the first name.
    """

    first: str
    last: str
    groups: Mapping[str, str] = field(hash=False)
    strength: float | None = None
    source: str = ""

    @classmethod
    def given(cls, name: str | Name) -> Name:
        """A name that stands in a test, which conveys what the test says."""
        if isinstance(name, Name):
            return name
        first, _, last = name.strip().partition(" ")
        return cls(first=first, last=last.strip(), groups={}, source="given in the test")

    @property
    def full(self) -> str:
        return f"{self.first} {self.last}".strip()

    @property
    def gender(self) -> str | None:
        return self.groups.get(GENDER)

    def __str__(self) -> str:
        return self.full


class NameBanks(Mapping[str, Mapping[str, tuple[Name, ...]]]):
    """Names by protected class and group; as a mapping, as many as the bank can balance, at most 20
    a group.

    ``gender`` has no bank of its own: it draws the same number from every group of
    ``race_ethnicity``, so that women and men differ in nothing else that their names say.
    """

    def __init__(
        self, first_names: Mapping[Key, NameEntry], surnames: Mapping[Key, NameEntry]
    ) -> None:
        self.first_names = MappingProxyType(dict(first_names))
        self.surnames = MappingProxyType(dict(surnames))
        self._capacities: dict[Cell, tuple[int, int]] = {}
        self._samples: dict[Hashable, tuple[Name, ...]] = {}

    @classmethod
    def load(cls, folder: Path | None = None, locale: str | None = None) -> NameBanks:
        """The shipped banks, extended or replaced by the user's ``personas`` *folder*; those of a
        *locale*, ``personas/de/names``, instead of the American ones. Raises UsageError.
        """
        if folder is None:
            return _shipped_banks(locale)
        return _read_banks(folder, locale)

    def __getitem__(self, protected_class: str) -> Mapping[str, tuple[Name, ...]]:
        """Return as many names of each group as the bank can balance. Raises KeyError."""
        if protected_class not in self.protected_classes:
            raise KeyError(protected_class)
        names = {}
        for group in self.groups(protected_class):
            cells = self._cells(protected_class, group, None)
            fewest = min(map(len, starmap(self.first_name_pool, cells)))
            names[group] = self.names(protected_class, group, min(_MOST, len(cells) * fewest))
        return names

    def __iter__(self) -> Iterator[str]:
        return iter(self.protected_classes)

    def __len__(self) -> int:
        return len(self.protected_classes)

    @cached_property
    def protected_classes(self) -> tuple[str, ...]:
        """Return what names can signal."""
        classes = dict.fromkeys(entry.protected_class for entry in self.first_names.values())
        classes.pop(_SHARED[0], None)
        return (*classes, GENDER)

    @cached_property
    def _first_names_of(self) -> Mapping[Cell, list[NameEntry]]:
        """Return the first names of each class, group and gender."""
        names: dict[Cell, list[NameEntry]] = defaultdict(list)
        for entry in self.first_names.values():
            names[entry.protected_class, entry.group, entry.gender].append(entry)
        return names

    def groups(self, protected_class: str) -> tuple[str, ...]:
        """The groups of *protected_class*, in the order of the file. Raises UsageError if unknown."""
        if protected_class not in self.protected_classes:
            raise UsageError(
                f"no names signal {protected_class!r} (names signal: "
                f"{listed(self.protected_classes)})"
                f"{did_you_mean(protected_class, self.protected_classes)}"
            )
        if protected_class == GENDER:
            return SEXES
        entries = self.first_names.values()
        return tuple(
            dict.fromkeys(
                entry.group for entry in entries if entry.protected_class == protected_class
            )
        )

    def signalling(self, groups: Mapping[str, str], n: int, *, seed: int = 0) -> tuple[Name, ...]:
        """*n* names that each signal all of *groups*: those of one class, or of one and gender.
        Raises UsageError.
        """
        base, gender = self._parse_groups(groups)
        return self.names(base, groups[base], n, gender=gender, seed=seed)

    def largest_sample(self, groups: Mapping[str, str], *, joined: bool = True) -> int:
        """The largest *n* for which ``signalling(groups, n)`` gives names, or, of no groups,
        ``neutral(n)``; the same for every seed. Without *joined*, the most of them of which no two
        have the same first name. Raises UsageError for what names cannot signal.
        """
        cells = [_NEUTRAL]
        if groups:
            base, gender = self._parse_groups(groups)
            self._check_group(base, groups[base])
            cells = self._cells(base, groups[base], gender)
        return _in_equal_shares([self._capacity(cell, joined=joined) for cell in cells])

    def _cells(self, protected_class: str, group: str, gender: str | None) -> list[Cell]:
        """The cells of which the names of *group* are drawn in turns."""
        if protected_class == GENDER:
            return list(product((RACE,), self.groups(RACE), (group,)))
        return list(product((protected_class,), (group,), _sexes(gender)))

    def _parse_groups(self, groups: Mapping[str, str]) -> tuple[str, str | None]:
        """Return the class that the bank is of, and the gender that is wanted of its names. Raises
        UsageError.
        """
        base, *others = [name for name in groups if name != GENDER] or [GENDER]
        if others:
            raise UsageError(
                f"one name cannot signal both {base} and {others[0]}; give names of your own, or "
                "convey one of them by words: say signal='label', or put "
                f"{{{others[0]}}} into the template, and give its values"
            )
        gender = groups.get(GENDER)
        if gender is not None:
            self._check_group(GENDER, gender)
        return base, gender

    def names(
        self,
        protected_class: str,
        group: str,
        n: int = _MOST,
        *,
        gender: str | None = None,
        seed: int = 0,
    ) -> tuple[Name, ...]:
        """*n* different full names that signal *group*, half women's and half men's unless *gender*
        is given.

        The order depends on the bank and *seed* alone, women and men take turns, and a smaller *n*
        gives the beginning of a larger one. Where the first names of a sex end, they come again in
        the same order, up to four times, each time with another surname; surnames recur as rarely
        as the bank allows. ``gender`` may be ``female``, ``male`` or ``unisex``. Raises UsageError
        for what is unknown, and for more names than :meth:`largest_sample`.
        """
        self._check_group(protected_class, group)
        if n < 1:
            raise UsageError(f"names: {n} is not a number of names; give 1 or more")
        if protected_class == GENDER and gender not in (None, group):
            raise UsageError(f"names of the group {group!r} cannot have the gender {gender!r}")
        if gender not in (None, *SEXES, "unisex"):
            raise UsageError(f"gender {gender!r}: names are female, male or unisex")
        cells = self._cells(protected_class, group, gender)
        most = _in_equal_shares(list(map(self._capacity, cells)))
        if n > most:
            raise UsageError(
                f"the name bank {protected_class}/{group} gives at most {most} names "
                f"({self._stock(cells)}, each up to {_USES} times), and {n} are wanted; ask for "
                "fewer, or add names with their source to your own personas/names/first_names.csv"
            )
        if protected_class == GENDER:
            return self._names_of_all_races(group, n, seed)
        return self._drawn(cells, n, seed)

    def _drawn(self, cells: Sequence[Cell], n: int, seed: int) -> tuple[Name, ...]:
        """*n* names of the *cells* of a group in turns, of first names in rounds of the pool. They
        are kept, as the designs of a session ask for the same ones.
        """
        sample = (*cells, n, seed)
        if sample not in self._samples:
            self._samples[sample] = self._draw(cells, n, seed)
        return self._samples[sample]

    def _draw(self, cells: Sequence[Cell], n: int, seed: int) -> tuple[Name, ...]:
        """Draw *n* names of *cells*: first names spread over their rounds, each with a surname."""
        protected_class, group, _ = cells[0]
        surnames = self._surnames(protected_class, group, seed)
        pools = [self.first_name_pool(*cell, seed=seed) for cell in cells]
        rounds = [_rounds(pool, surnames) for pool in _spread(pools, surnames)]
        firsts = _in_turns(rounds)[:n]
        lasts = self.surnames_for(firsts, protected_class, group, seed=seed)
        return tuple(map(_full_name, firsts, lasts))

    def _capacity(self, cell: Cell, *, joined: bool = True) -> int:
        """The most names of one cell: each first name once, or, *joined*, in each of its uses."""
        if cell not in self._capacities:
            pool = self.first_name_pool(*cell)
            uses = 0
            if pool:
                uses = len(_rounds(pool, self._surnames(*cell[:2], 0)))
            self._capacities[cell] = (len(pool), uses)
        return self._capacities[cell][joined]

    def _stock(self, cells: Iterable[Cell]) -> str:
        """Return how many first names the *cells* have, in words."""
        numbers: Counter[str] = Counter()
        for cell in cells:
            numbers[cell[2]] += len(self.first_name_pool(*cell))
        return f"{listed([f'{number} {sex}' for sex, number in numbers.items()])} first names"

    def _names_of_all_races(self, gender: str, n: int, seed: int) -> tuple[Name, ...]:
        """*n* names of a gender, the same number of each race as far as that goes, in turns."""
        races = self.groups(RACE)
        drawn = []
        for position, race in enumerate(races):
            share = n // len(races)
            if position < n % len(races):
                share += 1
            if share:
                drawn.append(self.names(RACE, race, share, gender=gender, seed=seed))
        return tuple(_in_turns(drawn))

    def neutral(self, n: int = _MOST, *, seed: int = 0) -> tuple[Name, ...]:
        """*n* names of a first name borne by women and men and a surname common in several groups,
        which signal none. Raises UsageError.
        """
        most = self.largest_sample({})
        if most < n:
            raise UsageError(
                f"there are {most} neutral names, and {n} are wanted; ask for fewer, or add rows of "
                f"{','.join(_NEUTRAL)} to your own personas/names/first_names.csv"
            )
        names = self._drawn([_NEUTRAL], n, seed)
        return tuple(replace(name, groups={}) for name in names)

    def first_name_pool(
        self, protected_class: str, group: str, gender: str, *, seed: int = 0
    ) -> list[NameEntry]:
        """Every first name that may be drawn, in the order of *seed*."""
        return _shuffled(self._first_names_of[protected_class, group, gender], seed)

    def surnames_for(
        self, firsts: Sequence[NameEntry], protected_class: str, group: str, *, seed: int = 0
    ) -> list[NameEntry]:
        """A surname for each first name: of its tradition where there are such, the least used
        first, and none that the first name had before.
        """
        surnames = self._surnames(protected_class, group, seed)
        used: Counter[str] = Counter()
        partners: dict[str, set[str]] = defaultdict(set)
        chosen = []
        for first in firsts:
            fitting = _fitting(first, surnames)
            # Each round begins one surname later: where a round has as many names as surnames, two
            # first names would only swap theirs.
            start = len(partners[first.name])
            turned = fitting[start % len(fitting) :] + fitting[: start % len(fitting)]
            last = min(turned, key=partial(_worn, partners[first.name], used))
            partners[first.name].add(last.name)
            used[last.name] += 1
            chosen.append(last)
        return chosen

    def _check_group(self, protected_class: str, group: str) -> None:
        """Raise UsageError for a *group* that no name of the class signals."""
        groups = self.groups(protected_class)
        if group not in groups:
            raise UsageError(
                f"no names signal the {protected_class} group {group!r} (the bank has: "
                f"{listed(groups)}){did_you_mean(group, groups)}"
            )

    def _surnames(self, protected_class: str, group: str, seed: int) -> list[NameEntry]:
        """Return the surnames of the group, else those that all groups share. Raises UsageError."""
        # Names that signal an age carry surnames that all groups share, in one order.
        for wanted in ((protected_class, group), _SHARED):
            entries = (entry for entry in self.surnames.values() if entry.of == wanted)
            surnames = _shuffled(entries, seed)
            if surnames:
                return surnames
        raise UsageError(f"there are no surnames for {protected_class}/{group}")


def _read_banks(folder: Path | None, locale: str | None) -> NameBanks:
    """The first names and surnames of *locale* by key; those of the user's *folder* replace
    ours.
    """
    banks: list[dict[Key, NameEntry]] = []
    names = Path(locale or ".") / "names"
    for relative, needed in (
        (names / "first_names.csv", {"gender"}),
        (names / "surnames.csv", set[str]()),
    ):
        columns = [name for name in NameEntry.__struct_fields__ if name != "where"]
        if not needed:
            columns.remove("gender")
        merged: dict[Key, NameEntry] = {}
        for path in filter(Path.is_file, layers(str(relative), folder)):
            entries: dict[Key, NameEntry] = {}
            for row in rows(path, needed | {"protected_class", "group", "name", "source"}, columns):
                cells: Any = row.data
                cells |= {"flags": cells.get("flags", "").split(), "where": row.where()}
                entry = row.convert(NameEntry, strict=False)
                if entry.key in entries:
                    raise row.wrong(
                        f"{entry.name!r} stands already in {entries[entry.key].where}; keep one"
                    )
                entries[entry.key] = entry
            merged |= entries
        banks.append(merged)
    return NameBanks(*banks)


@cache
def _shipped_banks(locale: str | None) -> NameBanks:
    return _read_banks(None, locale)


def _spread(
    pools: Sequence[Sequence[NameEntry]], surnames: Sequence[NameEntry]
) -> list[list[NameEntry]]:
    """The first names of each sex in an order in which surnames recur as late as they can.

    They are taken in rounds: a round has room for as many of a tradition as it has surnames, and
    ends when the sexes cannot both go on. Within it the order is that of *pools*, but for names
    that would leave the other sex too few.
    """
    left = list(map(list, pools))
    if len(_traditions(left)) < 2:
        return left
    stock = Counter(surname.tradition for surname in surnames)
    room: Counter[str] = Counter()
    spread: list[list[NameEntry]] = [[] for _ in pools]
    while any(left):
        for tradition in _traditions(left):
            room[tradition] += stock[tradition] or len(surnames)
        needed = _round(left, room)
        for sex in _sexes_in_turn(needed):
            needed[sex] -= 1
            spread[sex].append(_take(left, room, needed, sex))
    return spread


def _fitting(first: NameEntry, surnames: Sequence[NameEntry]) -> list[NameEntry]:
    """Return the surnames of the tradition of *first*, or all where it has none."""
    fitting = []
    if first.tradition:
        fitting = [last for last in surnames if last.tradition == first.tradition]
    return fitting or list(surnames)


def _worn(partners: Set[str], used: Mapping[str, int], last: NameEntry) -> tuple[bool, int]:
    """Return whether *last* is among the *partners* of a first name, and how often it is *used*."""
    return last.name in partners, used[last.name]


def _rounds(pool: Sequence[NameEntry], surnames: Sequence[NameEntry]) -> list[NameEntry]:
    """The first names once, then all again for as long as each has a surname left, up to four
    times.
    """
    uses = [min(_USES, len(_fitting(first, surnames))) for first in pool]
    firsts: list[NameEntry] = []
    for turn in range(_USES):
        firsts += [first for first, most in zip(pool, uses, strict=True) if most > turn]
    return firsts


def _sexes(gender: str | None) -> tuple[str, ...]:
    """Return whose names take turns."""
    if gender is None:
        return SEXES
    return (gender,)


def _in_equal_shares(capacities: Sequence[int]) -> int:
    """The most that parts of such *capacities* give in turns, the first part first."""
    fewest = min(capacities)
    return fewest * len(capacities) + capacities.index(fewest)


def _traditions(pools: Iterable[Iterable[NameEntry]]) -> set[str]:
    """Return the traditions of all names in *pools*."""
    traditions: set[str] = set()
    for pool in pools:
        traditions |= {entry.tradition for entry in pool}
    return traditions


def _sexes_in_turn(numbers: Sequence[int]) -> list[int]:
    """Return each sex as often as its number says, in turns as long as others are left."""
    sexes = [[sex] * number for sex, number in enumerate(numbers)]
    return _in_turns(sexes)


def _round(left: Sequence[Sequence[NameEntry]], room: Counter[str]) -> list[int]:
    """The number of names of each sex that a round gives: in turns, until a sex that has names
    *left* finds no *room*.
    """
    needed = [0] * len(left)
    for sex in cycle(range(len(left))):
        if needed[sex] < len(left[sex]):
            needed[sex] += 1
        if not _fits(left, room, needed):
            needed[sex] -= 1
            break
        if needed == list(map(len, left)):
            break
    return needed


def _take(
    left: list[list[NameEntry]], room: Counter[str], needed: Sequence[int], sex: int
) -> NameEntry:
    """The first name of *sex* that has room and leaves enough for those that are *needed*; taken
    out of both.
    """
    for at, entry in enumerate(left[sex]):
        room[entry.tradition] -= 1
        del left[sex][at]
        if room[entry.tradition] >= 0 and _fits(left, room, needed):
            return entry
        room[entry.tradition] += 1
        left[sex].insert(at, entry)
    raise AssertionError("a round gives only as many names as fit")


def _fits(
    left: Sequence[Sequence[NameEntry]], room: Mapping[str, int], needed: Sequence[int]
) -> bool:
    """Return whether *needed* names of each sex can be taken together: Hall's condition (1935) for
    every set of sexes.
    """
    counts = [Counter([entry.tradition for entry in pool]) for pool in left]
    for size in range(1, len(left) + 1):
        for sexes in combinations(zip(counts, needed, strict=True), size):
            counts_of_sexes, needed_of_sexes = zip(*sexes, strict=True)
            if sum(needed_of_sexes) > _places(room, counts_of_sexes):
                return False
    return True


def _places(room: Mapping[str, int], counts: Sequence[Mapping[str, int]]) -> int:
    """Return for how many of the names that *counts* has of each tradition there is *room*."""
    places = 0
    for tradition, free in room.items():
        places += min(free, sum(count[tradition] for count in counts))
    return places


def _full_name(first: NameEntry, last: NameEntry) -> Name:
    """Return the name of *first* and *last*, which signals the group and, if known, the gender of
    the first.
    """
    groups = {first.protected_class: first.group}
    if first.gender in SEXES:
        groups[GENDER] = first.gender
    return Name(
        first=first.name,
        last=last.name,
        groups=groups,
        strength=first.strength,
        source=first.source,
    )


def _shuffled(entries: Iterable[NameEntry], seed: int) -> list[NameEntry]:
    """Those that may be drawn, in an order of names and seed alone: neither Python's nor the file's
    matters.
    """
    drawn = (entry for entry in entries if entry.drawn)
    return sorted(drawn, key=lambda e: hashlib.sha256(f"{seed}\x1f{e.name}".encode()).digest())


def _in_turns(rows: Sequence[Sequence[T]]) -> list[T]:
    """The first of each row, then the second of each, until all rows are used up."""
    items: list[T] = []
    for turn in zip_longest(*rows):
        items += [item for item in turn if item is not None]
    return items
