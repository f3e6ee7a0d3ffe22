"""Who is set against whom: groups of candidates from names, personas or whole résumés, and what each says.

Candidates of the groups that stand at the same place make one tuple, the unit of evidence: candidate 3 of one
group meets candidate 3 of every other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

from pytest_fairness.design.conveyance import Condition
from pytest_fairness.design.name_banks import GENDER, Name, NameBanks
from pytest_fairness.design.personas import Persona
from pytest_fairness.design.pronouns import BY_GENDER
from pytest_fairness.design.resources import layers
from pytest_fairness.design.signals import LABEL, Signals
from pytest_fairness.design.templates import read_template
from pytest_fairness.documents import Plain, load_path
from pytest_fairness.errors import UsageError, did_you_mean, listed

Given: TypeAlias = "str | Name | Persona | Path"
NEITHER = "neither"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One candidate of *group*, before it stands in a list.

    ``groups`` holds its protected classes; ``demographics`` are the words that state them, empty where the name
    alone conveys them. ``text`` is a whole résumé. ``values`` are a persona's attributes, for slots.
    """

    group: str
    groups: Mapping[str, str]
    name: str | None = None
    named: bool = False
    demographics: str = ""
    text: str | None = None
    pronouns: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def conveys(self) -> Mapping[str, str]:
        """The groups that its name or words stand for, the label of the group itself among them."""
        return {**self.groups, "group": self.group}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One group as it was given: its classes, and its own names, personas or résumés, if any."""

    label: str
    classes: Mapping[str, str]
    given: tuple[Given, ...] = ()


def candidate_groups(candidates: object, folder: Path | None = None) -> tuple[Group, ...]:
    """The groups of ``candidates=``: the name of a set in ``personas/candidates.yaml``, or a mapping from groups to

    - their classes, ``{"gender": "male", "race_ethnicity": "white"}``, with ``"names": [...]`` for names of one's own;
    - a list of names, of :class:`Persona`, or of résumés: Paths, or texts of more than one line.

    Raises UsageError for a set that is not known, fewer than two groups, an empty or mixed list, and a value that
    stands twice.
    """
    if isinstance(candidates, str):
        candidates = _shipped(candidates, folder)
    if not isinstance(candidates, Mapping):
        raise UsageError(
            f"candidates is {type(candidates).__name__}: give the name of a set, such as 'four_groups', or a mapping "
            "from groups to names, personas, résumés or classes"
        )
    groups = tuple(_group(str(label), value) for label, value in candidates.items())
    if len(groups) < 2:
        raise UsageError(f"candidates has {len(groups)} groups; a choice needs at least two")
    if any(group.label == NEITHER for group in groups):
        raise UsageError(f"candidates: {NEITHER!r} is what a choice of nobody is called; give the group another name")
    sizes = {group.label: len(group.given) for group in groups if group.given}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{label}: {size}" for label, size in sizes.items())
        raise UsageError(f"candidates: the groups have different numbers of candidates ({told}); give each the same")
    _no_one_twice(groups)
    return groups


def check_sets(folder: Path | None = None) -> None:
    """Raises UsageError for the first set in ``candidates.yaml`` that no experiment could use."""
    for name, body in _sets(folder).items():
        if not isinstance(body, dict) or not isinstance(body.get("source"), str):
            raise UsageError(f"{name}: source is missing: say where the set comes from")
        try:
            candidate_groups(name, folder)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None


def _sets(folder: Path | None) -> dict[str, Plain]:
    sets: dict[str, Plain] = {}
    for path in layers("candidates.yaml", folder):
        document = load_path(path)
        if not isinstance(document, dict):
            raise UsageError(f"{path}: expected a mapping from the names of sets to groups")
        sets |= document
    return sets


def _shipped(name: str, folder: Path | None) -> dict[str, Plain]:
    sets = _sets(folder)
    if name not in sets:
        raise UsageError(f"candidates={name!r}: no such set (there are: {listed(sets)}){did_you_mean(name, sets)}")
    body = sets[name]
    groups = body.get("groups") if isinstance(body, dict) else None
    if not isinstance(groups, dict):
        raise UsageError(f"candidates.yaml: {name}: expected groups, and their source")
    return groups


def _group(label: str, value: object) -> Group:
    where = f"candidates[{label!r}]"
    if isinstance(value, Mapping):
        classes = {str(key): item for key, item in value.items() if key != "names"}
        wrong = next((key for key, item in classes.items() if not isinstance(item, str)), None)
        if wrong is not None or not classes:
            raise UsageError(f"{where}: give classes and their groups, such as {{'gender': 'female'}}, beside 'names'")
        names = value.get("names", ())
        return Group(label=label, classes=classes, given=_given(where, names) if names else ())
    return Group(label=label, classes={}, given=_given(where, value))


def _given(where: str, value: object) -> tuple[Given, ...]:
    items = [value] if isinstance(value, (str, Name, Persona, Path)) else value
    if not isinstance(items, Sequence):
        raise UsageError(f"{where}: give a list of names, personas or résumés, not {type(value).__name__}")
    given = tuple(items)
    if not given:
        raise UsageError(f"{where} is empty; give at least one candidate")
    for item in given:
        if not isinstance(item, (str, Name, Persona, Path)) or not str(item).strip():
            raise UsageError(f"{where}: {item!r} is no name, Persona or Path to a résumé")
    if len({_kind(item) for item in given}) > 1:
        raise UsageError(f"{where} mixes names, personas and résumés; give candidates of one kind")
    return given


def _kind(item: Given) -> str:
    if isinstance(item, Persona):
        return "persona"
    return "résumé" if isinstance(item, Path) or (isinstance(item, str) and "\n" in item.strip()) else "name"


def _no_one_twice(groups: Sequence[Group]) -> None:
    owner: dict[str, str] = {}
    for group in groups:
        for item in group.given:
            text = item.id if isinstance(item, Persona) else str(item)
            if text in owner and _kind(item) == "name":
                raise UsageError(
                    f"candidates: {text[:60]!r} is in {owner[text]!r} and {group.label!r}; a name that stands for two "
                    "groups, or twice for one, signals neither"
                )
            owner[text] = group.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The candidates of every group under one signal condition, in the order of the groups."""

    condition: str
    groups: Mapping[str, tuple[Candidate, ...]]

    @property
    def distinct(self) -> int:
        """How many candidates a group has."""
        return min(len(candidates) for candidates in self.groups.values())

    def tuples(self, count: int) -> Iterator[tuple[int, Mapping[str, Candidate]]]:
        """*count* different tuples of one candidate a group, numbered from 0.

        Candidates at the same place meet first; once all have met, those of later groups move on by one place.
        """
        size = self.distinct
        for number in range(count):
            turn = number // size
            yield (
                number,
                {
                    label: candidates[(number + at * turn) % size]
                    for at, (label, candidates) in enumerate(self.groups.items())
                },
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Casting:
    """Where names and words come from; ``wanted`` is how many names a group at most."""

    banks: NameBanks
    signals: Signals
    wanted: int
    seed: int = 0

    def roster(self, groups: Sequence[Group], condition: Condition) -> Roster:
        """The candidates of all *groups* under *condition*. Raises UsageError where names or words are missing."""
        cast = {group.label: self._candidates(group, at, len(groups), condition) for at, group in enumerate(groups)}
        size = min(map(len, cast.values()))
        settled: dict[str, tuple[Candidate, ...]] = {}
        for group in groups:
            found = cast[group.label][:size]
            # Women and men of one ethnicity share surnames: moved on, so that as few as may be meet a namesake.
            # What somebody lists themselves stays at its place.
            places = range(1 if group.given else size)
            settled[group.label] = min((_moved(found, place) for place in places), key=lambda m: _namesakes(m, settled))
        return Roster(condition=condition.name, groups=settled)

    def _candidates(self, group: Group, at: int, groups: int, condition: Condition) -> tuple[Candidate, ...]:
        words = self._words(group, condition)
        if group.given and _kind(group.given[0]) != "name":
            return tuple(_whole(group, item, words if condition.kind else "") for item in group.given)
        if group.given and condition.by_name:
            names: tuple[Name, ...] = tuple(_name(item) for item in group.given if isinstance(item, (str, Name)))
            named = True
        else:
            names, named = self._names(group, at, groups, condition)
        return tuple(
            Candidate(
                group=group.label,
                groups=dict(group.classes),
                name=name.full,
                named=named,
                demographics=words,
                pronouns=BY_GENDER.get(group.classes.get(GENDER, "")),
            )
            for name in names
        )

    def _words(self, group: Group, condition: Condition) -> str:
        """The words that state the classes: all where the condition asks for words, else those that no name tells."""
        if not group.classes and condition.kind is not None and not self._whole(group):
            raise UsageError(
                f"candidates[{group.label!r}] has names only, so there are no words for signal={condition.name!r}: say "
                "what the group is, {'gender': 'female', 'names': [...]}"
            )
        told = [
            self.signals.phrases(name, value, condition.kind or LABEL)[0]
            for name, value in group.classes.items()
            if condition.kind is not None or (not group.given and name not in self.banks.protected_classes)
        ]
        return ", ".join(phrase[:1].upper() + phrase[1:] for phrase in told)

    @staticmethod
    def _whole(group: Group) -> bool:
        return bool(group.given) and _kind(group.given[0]) != "name"

    def _names(self, group: Group, at: int, groups: int, condition: Condition) -> tuple[tuple[Name, ...], bool]:
        by_name = {name: value for name, value in group.classes.items() if name in self.banks.protected_classes}
        if not condition.by_name or not by_name:
            # The same neutral names for every group, each moved on by a place: no two meet themselves, and what a
            # name does by itself falls on all groups alike.
            neutral = self._most(lambda n: self.banks.neutral(n, seed=self.seed), floor=groups)
            return _moved(neutral, at), False
        base = [name for name in by_name if name != GENDER]
        if len(base) > 1:
            raise UsageError(
                f"candidates[{group.label!r}]: one name cannot signal both {base[0]} and {base[1]}; give names of your "
                "own, or say signal='label'"
            )
        gender = by_name.get(GENDER)
        if not base:
            return self._most(lambda n: self.banks.names(GENDER, by_name[GENDER], n, seed=self.seed)), True
        return self._most(lambda n: self.banks.names(base[0], by_name[base[0]], n, gender=gender, seed=self.seed)), True

    def _most(self, draw: Callable[[int], tuple[Name, ...]], floor: int = 1) -> tuple[Name, ...]:
        """As many names as wanted, or as the bank has."""
        found = draw(floor)  # what is wrong with the group itself is said here
        for n in range(max(self.wanted, floor), floor, -1):
            with contextlib.suppress(UsageError):
                return draw(n)
        return found


def _moved(items: tuple[T, ...], places: int) -> tuple[T, ...]:
    at = places % len(items)
    return items[at:] + items[:at]


def _namesakes(moved: Sequence[Candidate], others: Mapping[str, Sequence[Candidate]]) -> int:
    """How often a candidate stands at the place of another with the same surname."""
    return sum(
        one.name is not None and other.name is not None and one.name.split()[-1] == other.name.split()[-1]
        for found in others.values()
        for one, other in zip(moved, found, strict=True)
    )


def _name(item: str | Name) -> Name:
    if isinstance(item, Name):
        return item
    first, _, last = item.strip().partition(" ")
    return Name(first=first, last=last.strip(), groups={}, source="given in the test")


def _whole(group: Group, item: Given, words: str) -> Candidate:
    """A candidate that brings everything along: a persona, or a résumé."""
    if isinstance(item, Persona):
        values = {name: str(value) for name, value in item.attributes.items() if name != "id"}
        candidate = Candidate(
            group=group.label,
            groups={**item.groups, **group.classes},
            name=item.name,
            named=True,
            pronouns=BY_GENDER[item.gender],
            values=values,
        )
        return replace(candidate, demographics=words)
    text = read_template(item).text if isinstance(item, Path) else str(item)
    return Candidate(group=group.label, groups=dict(group.classes), text=text.strip(), demographics=words)
