"""The phrases that convey a group other than by a name: labels, stated ages, birthplaces, holidays …

One file holds the labels of every class (``personas/labels.yaml``), one file a class its further kinds of
signal (``personas/signals/<class>.yaml``). Every kind has a neutral control of the same form, which names
no group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_fairness.design.resources import layers, shipped_folder
from pytest_fairness.documents import Plain, load_path
from pytest_fairness.errors import UsageError, did_you_mean, listed

LABEL = "label"
CONTROL = "control"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalKind:
    """One way to convey the groups of a class. ``groups`` maps each, and ``control``, to its phrases; ``by_gender`` has
    those that say something only of one gender, by group and gender.
    """

    protected_class: str
    kind: str
    groups: Mapping[str, tuple[str, ...]]
    source: str
    note: str = ""
    by_gender: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Signals:
    """Every kind of signal by protected class and kind."""

    kinds: Mapping[tuple[str, str], SignalKind]

    @classmethod
    def load(cls, folder: Path | None = None) -> Signals:
        """The shipped signals, extended or replaced by the user's *folder*. Raises UsageError."""
        kinds: dict[tuple[str, str], SignalKind] = {}
        for path in layers("labels.yaml", folder):
            for protected_class, body in _mapping(load_path(path), str(path)).items():
                kind = _kind(protected_class, LABEL, body, f"{path}: {protected_class}")
                kinds[protected_class, LABEL] = _merged(kinds.get((protected_class, LABEL)), kind)
        for relative in _signal_files(folder):
            for path in layers(relative, folder):
                if not path.is_file():
                    continue
                for name, body in _mapping(load_path(path), str(path)).items():
                    kind = _kind(path.stem.removesuffix(".only"), name, body, f"{path}: {name}")
                    key = kind.protected_class, name
                    kinds[key] = _merged(kinds.get(key), kind)
        return cls(kinds)

    @property
    def protected_classes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(protected_class for protected_class, _ in self.kinds))

    def kinds_of(self, protected_class: str) -> tuple[str, ...]:
        """The kinds of signal for a class; ``label`` first."""
        return tuple(kind for known, kind in self.kinds if known == protected_class)

    def groups(self, protected_class: str, kind: str = LABEL) -> tuple[str, ...]:
        """The groups, without the control. Raises UsageError for an unknown class or kind."""
        return tuple(group for group in self._kind(protected_class, kind).groups if group != CONTROL)

    def phrases(
        self, protected_class: str, group: str, kind: str = LABEL, gender: str | None = None
    ) -> tuple[str, ...]:
        """The phrases that convey *group*, one or more. Raises UsageError for what is unknown, and where the words
        depend on a *gender* that is not given.
        """
        known = self._kind(protected_class, kind)
        if group not in known.groups:
            elsewhere = [
                other for other in self.kinds_of(protected_class) if group in self.groups(protected_class, other)
            ]
            raise UsageError(
                f"no {kind} is known for the {protected_class} group {group!r} (known: {listed(known.groups)})"
                + (
                    f"; it has words of the kind {listed(elsewhere)}"
                    if elsewhere
                    else did_you_mean(group, known.groups)
                )
            )
        genders = [one for of, one in known.by_gender if of == group]
        if not genders:
            return known.groups[group]
        if gender not in genders:
            raise UsageError(
                f"the words of {kind} for the {protected_class} group {group!r} depend on the gender, which "
                f"{f'is {gender}' if gender else 'is not known'}: cross the two, groups={{'gender': {sorted(genders)}, "
                f"{protected_class!r}: …}}, with signal='name+{kind}'"
            )
        return known.by_gender[group, gender]

    def _kind(self, protected_class: str, kind: str) -> SignalKind:
        if (protected_class, kind) in self.kinds:
            return self.kinds[protected_class, kind]
        if protected_class not in self.protected_classes:
            raise UsageError(
                f"unknown protected class {protected_class!r} (known: {listed(self.protected_classes)})"
                f"{did_you_mean(protected_class, self.protected_classes)}; for a class of your own give "
                "its values, "
                f"groups={{{protected_class!r}: {{'group_a': ['text'], 'group_b': ['text']}}}}"
            )
        known = self.kinds_of(protected_class)
        raise UsageError(
            f"{protected_class} has no signal of the kind {kind!r} (it has: {listed(known)}){did_you_mean(kind, known)}"
        )


def _signal_files(folder: Path | None) -> list[str]:
    found = {path.name for path in (shipped_folder() / "signals").glob("*.yaml")}
    if folder is not None:
        found |= {path.name.replace(".only.yaml", ".yaml") for path in (folder / "signals").glob("*.yaml")}
    return [f"signals/{name}" for name in sorted(found)]


def _merged(ours: SignalKind | None, theirs: SignalKind) -> SignalKind:
    if ours is None:
        return theirs
    return SignalKind(
        protected_class=theirs.protected_class,
        kind=theirs.kind,
        groups={**ours.groups, **theirs.groups},
        source=f"{ours.source}; {theirs.source}",
        note=theirs.note or ours.note,
        by_gender={
            **{key: of for key, of in ours.by_gender.items() if key[0] not in theirs.groups},
            **theirs.by_gender,
        },
    )


def _kind(protected_class: str, kind: str, body: Plain, where: str) -> SignalKind:
    fields = _mapping(body, where)
    unknown = sorted(set(fields) - {"source", "note", CONTROL, "groups"})
    if unknown:
        raise UsageError(f"{where}: unknown key {unknown[0]!r} (known: source, note, control, groups)")
    groups: dict[str, tuple[str, ...]] = {}
    by_gender: dict[tuple[str, str], tuple[str, ...]] = {}
    for group, value in _mapping(fields.get("groups"), f"{where}: groups").items():
        if isinstance(value, dict):
            own = {gender: _phrases(words, f"{where}: {group}: {gender}") for gender, words in value.items()}
            by_gender |= {(group, gender): words for gender, words in own.items()}
            groups[group] = tuple(dict.fromkeys(phrase for words in own.values() for phrase in words))
        else:
            groups[group] = _phrases(value, f"{where}: {group}")
    if CONTROL in fields:
        groups[CONTROL] = _phrases(fields[CONTROL], f"{where}: control")
    return SignalKind(
        protected_class=protected_class,
        kind=kind,
        groups=groups,
        source=_text(fields.get("source"), f"{where}: source"),
        note=_text(fields.get("note", ""), f"{where}: note", empty=True),
        by_gender=by_gender,
    )


def _mapping(value: Plain, where: str) -> Mapping[str, Plain]:
    if not isinstance(value, dict) or not value:
        raise UsageError(f"{where}: expected a mapping with at least one entry")
    return value


def _phrases(value: Plain, where: str) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    phrases = tuple(_text(item, where) for item in items)
    if not phrases or len(set(phrases)) != len(phrases):
        raise UsageError(f"{where}: give one or more different phrases")
    return phrases


def _text(value: Plain, where: str, *, empty: bool = False) -> str:
    if not isinstance(value, str) or not (value.strip() or empty):
        raise UsageError(f"{where}: expected text, found {value!r}; put it in quotes")
    return value
