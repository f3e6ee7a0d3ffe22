"""Candidates who are set against each other: groups of candidates from names, personas or whole
résumés, and what each says.

Candidates of the groups that stand at the same place make one tuple, the unit of evidence:
candidate 3 of one group meets candidate 3 of every other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pytest_fairness.design.locales import NOUN
from pytest_fairness.design.names import BY_SURNAME, GENDER, Name
from pytest_fairness.design.personas import Persona
from pytest_fairness.design.signals import LABEL, Condition
from pytest_fairness.design.templates import are_some_texts, pronouns_of, read_template
from pytest_fairness.design.units import Banks, given_values, refuse_shared, refuse_uneven
from pytest_fairness.documents import Text, entries
from pytest_fairness.errors import InvalidEntry, UsageError, did_you_mean
from pytest_fairness.model import CANDIDATES
from pytest_fairness.words import listed

NEITHER = "neither"
QUALIFICATIONS = "qualifications"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One candidate of ``group``, of the classes ``groups``, which its name says (``named``), its
    ``demographics`` or both. ``text`` is a whole résumé, ``values`` are a persona's attributes, for
    slots; ``agreement`` are the forms that agree with the person, and ``noun`` what one of several
    is called, before a letter.
    """

    group: str
    groups: Mapping[str, str]
    name: str | None = None
    named: bool = False
    demographics: str = ""
    text: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    agreement: Mapping[str, str] = field(default_factory=dict)
    noun: str = NOUN

    @property
    def surname(self) -> str | None:
        """The last word of the name; None for nobody named."""
        if self.name is None:
            return None
        return self.name.split()[-1]

    def shares_name_with(self, other: Candidate) -> bool:
        """Return whether both have the same first name, or the same surname."""
        if self.name is None or other.name is None:
            return False
        first, *_, last = self.name.split()
        return other.name.startswith(f"{first} ") or other.surname == last

    def slots(self, position: int, context: Mapping[str, str]) -> dict[str, str]:
        """Return what its numbered slots hold, by their names without the number: ``candidate`` is
        the line of a list, ``Greg Walsh, 2 Years of Experience, Male, White``, or a résumé in full.
        """
        label = f"{self.noun} {chr(65 + position)}"
        name = self.name or label
        first, _, last = name.partition(" ")
        qualifications = ""
        if "experience_years" in self.values:
            qualifications = f"{self.values['experience_years']} years of experience"
        qualifications = context.get(QUALIFICATIONS, qualifications)
        line = ", ".join(filter(None, (name, qualifications, self.demographics)))
        if self.text is not None:
            line = "\n".join(filter(None, (self.demographics, self.text)))
        return {
            **self.values,
            **self.agreement,
            "name": name,
            "first_name": first,
            "last_name": last,
            "demographics": self.demographics,
            "label": label,
            "candidate": line,
            "resume": self.text or "",
            QUALIFICATIONS: qualifications,
        }


def values_of(slate: Sequence[Candidate], context: Mapping[str, str]) -> dict[str, str]:
    """Return what every slot of a template holds for *slate*: numbered slots, the context, and
    ``{candidates}``: numbered lines, or, for résumés, each under its label.
    """
    values: dict[str, str] = {}
    lines: list[str] = []
    full_texts: list[str] = []
    for number, candidate in enumerate(slate, start=1):
        slots = candidate.slots(number - 1, context)
        for slot, text in slots.items():
            values[f"{slot}_{number}"] = text
        lines.append(f"{number}. {slots['candidate']}")
        full_texts.append(f"{slots['label']}:\n{slots['candidate']}")
    listing = "\n".join(lines)
    if any(candidate.text is not None for candidate in slate):
        listing = "\n\n".join(full_texts)
    return {**context, **values, CANDIDATES: listing}


#: What a prompt may call its candidates, the plainest first.
_CALLED = ("name", "label", "first_name", "last_name")


def called_in(text: str, slate: Sequence[Candidate]) -> tuple[str, ...]:
    """Return what *text* calls the candidates of *slate*, in their order: all by one kind of name,
    each by another one; by their numbers where it calls them nothing.
    """
    slots = [candidate.slots(position, {}) for position, candidate in enumerate(slate)]
    for slot in _CALLED:
        names = tuple(of_candidate[slot] for of_candidate in slots)
        if len(set(names)) == len(names) and all(name and name in text for name in names):
            return names
    return tuple(map(str, range(1, len(slots) + 1)))


def labels_of(slate: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the labels of the candidates of *slate*: "Candidate A" and so on."""
    return tuple(candidate.slots(at, {})["label"] for at, candidate in enumerate(slate))


def surfaces(slate: Iterable[Candidate], text: str) -> dict[str, Mapping[str, str]]:
    """The strings in *text* that convey a group, each with what it conveys."""
    conveyed: dict[str, Mapping[str, str]] = {}
    for candidate in slate:
        groups = {**candidate.groups, "group": candidate.group}
        name = None
        if candidate.named:
            name = candidate.name
        for surface in (name, candidate.demographics, candidate.text):
            if surface and surface in text:
                conveyed[surface] = groups
    return conveyed


# ---------------------------------------------------------------- the groups of a test


class Group(NamedTuple):
    """One group as it was given: its classes, and its own names, personas or résumés (``kind``), if
    any.
    """

    label: str
    classes: Mapping[str, str]
    given: tuple[Any, ...] = ()
    kind: str | None = None


class CandidateSet(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An entry of ``personas/candidates.yaml``: groups that are set against each other, and where
    they are from.
    """

    name: str
    source: Text
    groups: dict[str, dict[str, str | list[str]] | list[str]]
    note: str = ""

    def __post_init__(self) -> None:
        try:
            candidate_groups(self.groups)
        except UsageError as error:
            raise InvalidEntry(str(error)) from None


def candidate_groups(candidates: object, folder: Path | None = None) -> tuple[Group, ...]:
    """The groups of ``candidates=``: the name of a set in ``personas/candidates.yaml``, or a
    mapping from groups to

    - their classes, ``{"gender": "male", "race_ethnicity": "white"}``, with ``"names": [...]`` for
    names of one's own;
    - a list of names, of :class:`Persona`, or of résumés: Paths, or texts of more than one line.

    Raises UsageError for whatever could not be set against each other.
    """
    if isinstance(candidates, str):
        candidates = _groups_of_set(candidates, folder)
    if not isinstance(candidates, Mapping):
        raise UsageError(
            f"candidates is {type(candidates).__name__}: give the name of a set, such as "
            "'four_groups', or a mapping "
            "from groups to names, personas, résumés or classes"
        )
    groups = tuple(map(_group, map(str, candidates), candidates.values()))
    if len(groups) < 2:
        raise UsageError(f"candidates has {len(groups)} groups; a choice needs at least two")
    if any(group.label == NEITHER for group in groups):
        raise UsageError(
            f"candidates: {NEITHER!r} is what a choice of nobody is called; give the group another "
            "name"
        )
    sizes = {group.label: len(group.given) for group in groups if group.given}
    refuse_uneven("candidates: the groups have different numbers of candidates", sizes)
    refuse_shared(
        "candidates", {group.label: group.given for group in groups if group.kind == "name"}
    )
    return groups


def _groups_of_set(name: str, folder: Path | None) -> Mapping[str, object]:
    """Return the groups of the set *name*, ours or of *folder*. Raises UsageError where there is
    none of that name.
    """
    sets = entries("candidates.yaml", folder, CandidateSet)
    if name not in sets:
        hint = did_you_mean(name, sets)
        raise UsageError(f"candidates={name!r}: no such set (there are: {listed(sets)}){hint}")
    return sets[name].groups


def _group(label: str, value: object) -> Group:
    """Return the group of an entry of ``candidates=``. Raises UsageError."""
    where = f"candidates[{label!r}]"
    classes: dict[str, str] = {}
    if isinstance(value, Mapping):
        classes = {str(key): group for key, group in value.items() if key != "names"}
        if not are_some_texts(classes.values()):
            raise UsageError(
                f"{where}: give classes and their groups, such as {{'gender': 'female'}}, beside "
                "'names'"
            )
        value = value.get("names")
        if not value:
            return Group(label, classes)
    given = given_values(
        where, value, (str, Name, Persona, Path), "name, Persona, or Path to a résumé"
    )
    kinds = set(map(_kind_of, given))
    if len(kinds) > 1:
        raise UsageError(f"{where} mixes names, personas and résumés; give candidates of one kind")
    return Group(label, classes, given, *kinds)


def _kind_of(candidate: object) -> str:
    """Return what a candidate is given as; a text of more than one line is a résumé."""
    if isinstance(candidate, Persona):
        return "persona"
    if isinstance(candidate, Path) or "\n" in str(candidate).strip():
        return "résumé"
    return "name"


# ---------------------------------------------------------------- names and words for them


@dataclass(frozen=True, slots=True, kw_only=True)
class Casting:
    """The source of names and words of candidates; ``wanted`` is how many names a group at most."""

    banks: Banks
    wanted: int
    seed: int

    def roster(
        self, groups: Sequence[Group], condition: Condition
    ) -> dict[str, tuple[Candidate, ...]]:
        """The candidates of all *groups* under *condition*. Raises UsageError where names or words
        are missing.
        """
        cast: dict[str, tuple[Candidate, ...]] = {}
        for at, group in enumerate(groups):
            cast[group.label] = self._candidates(group, at, len(groups), condition)
        size = min(map(len, cast.values()))
        settled: dict[str, tuple[Candidate, ...]] = {}
        for group in groups:
            people = cast[group.label][:size]
            # Women and men of one ethnicity share surnames: moved on, so that as few as may be meet
            # a namesake. What somebody lists themselves stays at its place.
            if not group.given:
                places = [people[at:] + people[:at] for at in range(size)]
                people = min(places, key=partial(_namesakes, tuple(settled.values())))
            settled[group.label] = people
        return settled

    def _candidates(
        self, group: Group, at: int, groups: int, condition: Condition
    ) -> tuple[Candidate, ...]:
        """Return the candidates of *group*, which stands at the place *at* of so many *groups*."""
        words = self._words(group, condition)
        locale = self.banks.locale
        noun = NOUN
        if locale is not None:
            noun = locale.candidate
        anybody = Candidate(
            group=group.label,
            groups=group.classes,
            demographics=words,
            agreement=self.banks.agreement(group.classes.get(GENDER)),
            noun=noun,
        )
        if group.kind in ("persona", "résumé"):
            if condition.kind is None:
                anybody = replace(anybody, demographics="")
            return tuple(_whole_candidate(anybody, given) for given in group.given)
        by_name = {name: group.classes[name] for name in filter(self._by_name, group.classes)}
        named = condition.by_name and bool(group.given or by_name)
        if not named:
            names = self._neutral_names(at, groups)
        elif group.given:
            names = tuple(map(Name.given, group.given))
        else:
            names = self._telling_names(by_name)
        return tuple(replace(anybody, name=name.full, named=named) for name in names)

    def _telling_names(self, classes: Mapping[str, str]) -> tuple[Name, ...]:
        """Return names that convey the groups of *classes*. No first name twice: candidates who
        share one are no evidence of their own.
        """
        banks = self.banks.names
        most = banks.largest_sample(classes, joined=False)
        return banks.signalling(classes, max(1, min(self.wanted, most)), seed=self.seed)

    def _neutral_names(self, at: int, groups: int) -> tuple[Name, ...]:
        """Return the same neutral names for each of so many *groups*, moved on by *at* places: no
        two meet themselves, and what a name does by itself falls on all groups alike.
        """
        banks = self.banks.names
        wanted = max(groups, min(self.wanted, banks.largest_sample({})))
        names = banks.neutral(wanted, seed=self.seed)
        start = at % len(names)
        return names[start:] + names[:start]

    def _by_name(self, protected_class: str) -> bool:
        """Return whether names convey every group of a class: candidates of one choice are told
        apart in one way.
        """
        return (
            protected_class in self.banks.names.protected_classes
            and protected_class not in BY_SURNAME
        )

    def _words(self, group: Group, condition: Condition) -> str:
        """The words that state the classes: all where the condition asks for words, else those that
        no name conveys.
        """
        if condition.kind is not None:
            _refuse_names_alone(group, condition)
        phrases = []
        for name, value in group.classes.items():
            told_by_name = bool(group.given) or self._by_name(name)
            if condition.kind is not None or not told_by_name:
                phrase, *_ = self.banks.signals.phrases(name, value, condition.kind or LABEL)
                phrases.append(phrase[:1].upper() + phrase[1:])
        return ", ".join(phrases)


def _refuse_names_alone(group: Group, condition: Condition) -> None:
    """Raise UsageError for a group that has no words for *condition*, as it is given by names."""
    if not group.classes and group.kind in (None, "name"):
        raise UsageError(
            f"candidates[{group.label!r}] has names only, so there are no words for "
            f"signal={condition.name!r}: say what the group is, {{'gender': 'female', "
            "'names': [...]}"
        )


def _namesakes(settled: Sequence[Sequence[Candidate]], people: Sequence[Candidate]) -> int:
    """Return how many of *people* meet somebody of their surname or their first name in the groups
    *settled* before.
    """
    number = 0
    for others in settled:
        for person, other in zip(people, others, strict=True):
            number += person.name is not None and person.shares_name_with(other)
    return number


def _whole_candidate(anybody: Candidate, given: Any) -> Candidate:
    """Return the candidate that a persona or a résumé is, of the group of *anybody*."""
    classes = anybody.groups
    if isinstance(given, Persona):
        classes = {**given.groups, **anybody.groups}
    candidate = replace(anybody, groups=classes, agreement=pronouns_of(classes.get(GENDER)))
    if isinstance(given, Persona):
        return replace(candidate, name=given.name, named=True, values=given.slots)
    text = given
    if isinstance(given, Path):
        text = read_template(given).text
    return replace(candidate, text=text.strip())
