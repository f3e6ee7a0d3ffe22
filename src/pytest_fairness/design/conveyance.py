"""How a group reaches the text: by the name, by words, by pronouns; and with which names and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pytest_fairness.design.name_banks import GENDER, Name, NameBanks
from pytest_fairness.design.signals import CONTROL, LABEL, Signals
from pytest_fairness.design.slugs import slug
from pytest_fairness.errors import UsageError, did_you_mean, listed

PRONOUN = "pronoun"
Value: TypeAlias = "str | Name"


@dataclass(frozen=True, slots=True)
class GroupAxis:
    """A protected class with its groups; ``values`` holds the user's own names or phrases, if given."""

    name: str
    groups: tuple[str, ...]
    values: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)


def group_axes(groups: Mapping[str, object]) -> tuple[GroupAxis, ...]:
    """The axes of ``groups={class: [group, …]}`` or ``{class: {group: [value, …]}}``.

    Raises UsageError for an empty class or group, a group or value that stands twice (a name in two groups
    signals neither), and anything that is not text or a :class:`Name`.
    """
    if not groups:
        raise UsageError("groups is empty; give at least one protected class, such as {'gender': ['female', 'male']}")
    return tuple(_group_axis(name, value) for name, value in groups.items())


def _group_axis(name: str, value: object) -> GroupAxis:
    if not isinstance(name, str) or not name.isidentifier():
        raise UsageError(f"groups: {name!r} is no name for a protected class; use letters, digits and _")
    if isinstance(value, Mapping):
        values = {str(group): _values(f"groups[{name!r}][{group!r}]", items) for group, items in value.items()}
        owner: dict[str, str] = {}
        for group, items in values.items():
            for item in map(str, items):
                if item in owner:
                    raise UsageError(
                        f"groups[{name!r}]: {item!r} is in the groups {owner[item]!r} and {group!r}; "
                        "a value that stands for two groups signals neither"
                    )
                owner[item] = group
        axis = GroupAxis(name, tuple(values), values)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        if not all(isinstance(group, str) and group for group in value):
            raise UsageError(f"groups[{name!r}]: groups are names such as 'black'; found {list(value)!r}")
        axis = GroupAxis(name, tuple(value))
    else:
        raise UsageError(
            f"groups[{name!r}]: give a list of groups, or a mapping from groups to names, not {type(value).__name__}"
        )
    if not axis.groups:
        raise UsageError(f"groups[{name!r}] has no groups; name at least two to compare")
    twice = next((group for group in axis.groups if axis.groups.count(group) > 1), None)
    if twice is not None:
        raise UsageError(f"groups[{name!r}]: the group {twice!r} stands twice; keep one")
    return axis


def _values(where: str, items: object) -> tuple[Value, ...]:
    listed_items = [items] if isinstance(items, (str, Name)) else items
    if isinstance(listed_items, (set, frozenset)) or not isinstance(listed_items, Sequence):
        raise UsageError(f"{where}: give a list of names or phrases, not {type(items).__name__}")
    values = tuple(listed_items)
    if not values:
        raise UsageError(f"{where} is empty; give at least one name or phrase, or leave the group out")
    for value in values:
        if not isinstance(value, (str, Name)) or not str(value).strip():
            raise UsageError(f"{where}: {value!r} is no name or phrase")
    texts = [str(value) for value in values]
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        raise UsageError(f"{where}: {twice!r} stands twice; keep one")
    return values


@dataclass(frozen=True, slots=True)
class Condition:
    """A signal condition: by name, by words of one kind (``label``, ``graduation_year`` …), or both."""

    name: str
    by_name: bool
    kind: str | None

    @property
    def slug(self) -> str:
        return slug(self.name)

    @property
    def pronouns(self) -> bool:
        return self.kind == PRONOUN


def conditions(signal: object) -> tuple[Condition, ...]:
    """``name``, ``label``, ``name+label``, ``pronoun``, a kind of signal, or a list of those."""
    items = [signal] if isinstance(signal, str) else signal
    if not isinstance(items, Sequence) or not items or not all(isinstance(item, str) for item in items):
        raise UsageError("signal: give 'name', 'label', 'name+label', or a list of them")
    made = []
    for item in items:
        parts = [part.strip() for part in item.split("+")]
        kinds = [part for part in parts if part != "name"]
        if not all(parts) or len(kinds) > 1 or len(parts) > 2 or len(set(parts)) != len(parts):
            raise UsageError(f"signal {item!r}: give 'name', one kind such as 'label', or both as 'name+label'")
        made.append(Condition(item, "name" in parts, kinds[0] if kinds else None))
    if len({condition.name for condition in made}) != len(made):
        raise UsageError("signal: a condition stands twice; keep one")
    return tuple(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where names and words come from, and how many names. ``slots`` are all that the templates have, ``after_who``
    those that go on with a sentence: "who {religion}".
    """

    banks: NameBanks
    signals: Signals
    slots: frozenset[str]
    after_who: frozenset[str] = frozenset()
    name_slot: str
    names: int | None
    seed: int

    @property
    def _has_name_slot(self) -> bool:
        return bool(self.slots & {self.name_slot, "first_name", "last_name"})

    def named(self, axis: GroupAxis, condition: Condition) -> bool:
        """Whether the name conveys this class."""
        if axis.values:
            return condition.by_name and axis.name not in self.slots
        return condition.by_name and axis.name in self.banks.protected_classes

    def phrases(
        self, axis: GroupAxis, groups: Mapping[str, str], condition: Condition, axes: Sequence[GroupAxis] = ()
    ) -> tuple[str, ...]:
        """The words that convey the axis's own of *groups*; none where the name, or the pronoun, does it alone.

        Of several *axes* the name conveys those that have no words of the condition's kind.
        """
        group = groups[axis.name]
        if axis.values:
            return () if self.named(axis, condition) else tuple(map(str, axis.values[group]))
        named, has_slot = self.named(axis, condition), axis.name in self.slots
        if condition.kind is None and named:
            if has_slot:
                raise UsageError(
                    f"{axis.name} is conveyed twice: by the name, and by the slot {{{axis.name}}}; "
                    "if both are meant say signal='name+label', for the words alone say signal='label'"
                )
            return ()
        if condition.kind == PRONOUN:
            if axis.name == GENDER:
                return ()
            kind = LABEL
        else:
            kind = condition.kind or LABEL
        if condition.kind is None and not has_slot:
            raise UsageError(
                f"no name signals {axis.name!r} (names signal: {listed(self.banks.protected_classes)})"
                f"{did_you_mean(axis.name, self.banks.protected_classes)}; put {{{axis.name}}} where the "
                "words "
                "belong in the template, say signal='label', or give names of your own"
            )
        with_words = [other.name for other in axes if kind in self.signals.kinds_of(other.name)]
        if named and with_words and axis.name not in with_words:
            return ()
        phrases = self.signals.phrases(axis.name, group, kind, groups.get(GENDER))
        if kind == LABEL and axis.name in self.after_who:
            raise UsageError(
                f"the label of {axis.name} names the group ({phrases[0]!r}), so it does not go on after 'who': write "
                f"({{{axis.name}}}), or take a kind of signal that does, as docs/grids.md lists them"
            )
        return phrases

    def people(self, groups: Mapping[str, str], axes: Sequence[GroupAxis], condition: Condition) -> tuple[Name, ...]:
        """The names for one combination of groups; none where no template has a place for a name."""
        named = [axis for axis in axes if self.named(axis, condition)]
        own = [axis for axis in named if axis.values]
        if own:
            return self._own(own, named, groups)
        # In a control group nothing is conveyed, so its names are the neutral ones.
        control = any(groups[axis.name] == CONTROL for axis in named)
        classes = [] if control else [axis.name for axis in named]
        wanted = 20 if self.names is None else self.names
        if not classes:
            return self.banks.neutral(wanted, seed=self.seed) if self._has_name_slot else ()
        base = [name for name in classes if name != GENDER]
        if len(base) > 1:
            raise UsageError(
                f"one name cannot signal both {base[0]} and {base[1]}; convey one of them by words: put "
                f"{{{base[1]}}} into the template, and give its values"
            )
        if not base:
            return self.banks.names(GENDER, groups[GENDER], wanted, seed=self.seed)
        gender = groups[GENDER] if GENDER in classes else None
        if gender is not None and gender not in ("female", "male"):
            self.banks.names(GENDER, gender, wanted)  # refuses, and lists the groups that names do signal
        return self.banks.names(base[0], groups[base[0]], wanted, gender=gender, seed=self.seed)

    def _own(self, own: list[GroupAxis], named: list[GroupAxis], groups: Mapping[str, str]) -> tuple[Name, ...]:
        if len(named) > 1:
            other = next(axis.name for axis in named if axis is not own[0])
            raise UsageError(
                f"names of your own signal {own[0].name}, so they cannot be drawn for {other} as well; "
                "give names for "
                f"the crossed groups, or convey {other} by words: put {{{other}}} into the template"
            )
        axis = own[0]
        values = axis.values[groups[axis.name]]
        if self.names is not None and len(values) < self.names:
            raise UsageError(
                f"groups[{axis.name!r}][{groups[axis.name]!r}] has {len(values)} names, and names={self.names}"
            )
        return tuple(_as_name(value, {axis.name: groups[axis.name]}) for value in values[: self.names])


def _as_name(value: Value, groups: Mapping[str, str]) -> Name:
    if isinstance(value, Name):
        return Name(first=value.first, last=value.last, groups={**value.groups, **groups},
                    strength=value.strength, source=value.source)  # fmt: skip
    first, _, last = value.strip().partition(" ")
    return Name(first=first, last=last.strip(), groups=groups, source="given in the test")
