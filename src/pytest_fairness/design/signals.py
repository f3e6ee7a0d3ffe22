"""Signals that convey a group: the conditions of a test, and the phrases (labels, stated ages,
birthplaces, holidays …).

One file holds the labels of every class (``personas/labels.yaml``), one file a class its further
kinds of signal (``personas/signals/<class>.yaml``). Every kind has a neutral control of the same
form, which names no group.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from pytest_fairness.design.locales import is_english
from pytest_fairness.design.templates import are_some_texts
from pytest_fairness.documents import Text, layers, open_document, shipped_folder
from pytest_fairness.errors import InvalidEntry, UsageError, did_you_mean, refuse_twice
from pytest_fairness.words import listed

LABEL = "label"
PRONOUN = "pronoun"
CONTROL = "control"
Phrases: TypeAlias = str | tuple[str, ...]


class SignalKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to convey the groups of a class: the phrases of each group, or of each of its
    genders, and a control.

    Raises UsageError for no groups, and for a phrase that stands twice.
    """

    kind: str
    groups: dict[str, Phrases | dict[str, Phrases]]
    source: Text
    control: Phrases | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a kind without groups, and a group without different phrases."""
        if not self.groups:
            raise InvalidEntry("groups: give at least one")
        for group, by_gender in self.words.items():
            for phrases in by_gender.values():
                different = set(filter(str.strip, phrases))
                if not 0 < len(phrases) == len(different):
                    raise InvalidEntry(f"{group}: give one or more different phrases")

    @property
    def words(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Group (and control) → gender → phrases; the gender is "" where the phrases say the same
        of all.
        """
        given: dict[str, Phrases | dict[str, Phrases]] = dict(self.groups)
        if self.control is not None:
            given[CONTROL] = self.control
        return {group: _by_gender(words) for group, words in given.items()}

    def phrases(self, group: str) -> tuple[str, ...]:
        """All phrases of *group*, whatever the gender."""
        phrases: dict[str, None] = {}
        for phrases_of_gender in self.words[group].values():
            phrases |= dict.fromkeys(phrases_of_gender)
        return tuple(phrases)


def _by_gender(words: Phrases | dict[str, Phrases]) -> dict[str, tuple[str, ...]]:
    """Return the phrases of each gender in *words*, under "" where they say the same of all."""
    given = words
    if not isinstance(given, dict):
        given = {"": given}
    by_gender: dict[str, tuple[str, ...]] = {}
    for gender, phrases in given.items():
        several = phrases
        if isinstance(several, str):
            several = (several,)
        by_gender[gender] = several
    return by_gender


@dataclass(frozen=True, slots=True)
class Signals:
    """Every kind of signal by protected class and kind."""

    kinds: Mapping[tuple[str, str], SignalKind]

    @classmethod
    def load(cls, folder: Path | None = None, locale: str | None = None) -> Signals:
        """The shipped signals, extended or replaced by the user's *folder*; those of a *locale*
        instead of the American ones, all of them or, of a dialect of English, each kind that it has
        words of its own for. Raises UsageError.
        """
        if folder is None:
            return _shipped_signals(locale)
        return _read_signals(folder, locale)

    @property
    def protected_classes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(protected_class for protected_class, _ in self.kinds))

    def kinds_of(self, protected_class: str) -> tuple[str, ...]:
        """The kinds of signal for a class; ``label`` first."""
        return tuple(kind for class_of_kind, kind in self.kinds if class_of_kind == protected_class)

    def groups(self, protected_class: str, kind: str = LABEL) -> tuple[str, ...]:
        """The groups, without the control. Raises UsageError for an unknown class or kind."""
        words = dict(self._kind(protected_class, kind).words)
        words.pop(CONTROL, None)
        return tuple(words)

    def phrases(
        self, protected_class: str, group: str, kind: str = LABEL, gender: str | None = None
    ) -> tuple[str, ...]:
        """The phrases that convey *group*, one or more. Raises UsageError for what is unknown, and
        where the words depend on a *gender* that is not given.
        """
        words = self._kind(protected_class, kind).words
        if group not in words:
            raise UsageError(
                f"no {kind} is known for the {protected_class} group {group!r} (known: "
                f"{listed(words)}){self._meant(protected_class, group, words)}"
            )
        by_gender = words[group]
        key = gender
        if "" in by_gender:
            key = ""
        if key not in by_gender:
            which = "is not known"
            if gender:
                which = f"is {gender}"
            raise UsageError(
                f"the words of {kind} for the {protected_class} group {group!r} depend on the "
                f"gender, which {which}: cross the two, groups={{'gender': "
                f"{sorted(by_gender)}, {protected_class!r}: …}}, with signal='name+{kind}'"
            )
        return by_gender[key]

    def _meant(self, protected_class: str, group: str, groups: Collection[str]) -> str:
        """Return which kinds have words for *group*, else which of *groups* is close to it."""
        others = [
            kind
            for kind in self.kinds_of(protected_class)
            if group in self.groups(protected_class, kind)
        ]
        if others:
            return f"; it has words of the kind {listed(others)}"
        return did_you_mean(group, groups)

    def _kind(self, protected_class: str, kind: str) -> SignalKind:
        """Return the words of a *kind* of signal. Raises UsageError where there are none."""
        kinds = self.kinds_of(protected_class)
        if kind in kinds:
            return self.kinds[protected_class, kind]
        if kinds:
            raise UsageError(
                f"{protected_class} has no signal of the kind {kind!r} (it has: {listed(kinds)})"
                f"{did_you_mean(kind, kinds)}"
            )
        raise UsageError(
            f"unknown protected class {protected_class!r} (known: {listed(self.protected_classes)})"
            f"{did_you_mean(protected_class, self.protected_classes)}; for a class of your own "
            f"give its values, groups={{{protected_class!r}: {{'group_a': ['text'], 'group_b': ['text']}}}}"
        )


def _files_of_signals(folder: Path | None, root: str) -> list[str]:
    """Return the files of kinds of signals beneath *root*, ours and those of *folder*, as both name
    them.
    """
    folders = [shipped_folder()]
    if folder is not None:
        folders.append(folder)
    files: set[str] = set()
    for each in folders:
        for path in (each / root / "signals").glob("*.yaml"):
            files.add(f"{root}signals/{path.name.replace('.only', '')}")
    return sorted(files)


def _read_signals(folder: Path | None, locale: str | None) -> Signals:
    """The signals of our files, with those of *folder* laid over them; of a *locale* only its own,
    and what is American English in both of a dialect.
    """
    kinds: dict[tuple[str, str], SignalKind] = {}
    root = ""
    american: Mapping[tuple[str, str], SignalKind] = {}
    if locale is not None and is_english(locale, folder):
        american = _read_signals(folder, None).kinds
    if locale is not None:
        root = f"{locale}/"
    labels = f"{root}labels.yaml"
    for relative in (labels, *_files_of_signals(folder, root)):
        for path in filter(Path.is_file, layers(relative, folder)):
            for name, kind in open_document(path).entries(SignalKind, "kind").items():
                key = (name, LABEL)
                if relative != labels:
                    key = (path.stem.removesuffix(".only"), name)
                kinds[key] = _laid_over(kinds.get(key), kind)
    return Signals({**american, **kinds})


def _laid_over(ours: SignalKind | None, theirs: SignalKind) -> SignalKind:
    """Return *ours* with what *theirs* adds or says otherwise."""
    if ours is None:
        return theirs
    control = theirs.control
    if control is None:
        control = ours.control
    return msgspec.structs.replace(
        ours,
        groups={**ours.groups, **theirs.groups},
        control=control,
        source=f"{ours.source}; {theirs.source}",
        note=theirs.note or ours.note,
    )


@cache
def _shipped_signals(locale: str | None) -> Signals:
    return _read_signals(None, locale)


@dataclass(frozen=True, slots=True)
class Condition:
    """A signal condition: by name, by words of one kind (``label``, ``graduation_year`` …), or
    both.
    """

    name: str
    by_name: bool
    kind: str | None

    @property
    def words(self) -> str:
        """The kind of words for a class that nothing else conveys: labels, unless the condition
        asks for another kind.
        """
        if self.kind is None or self.kind == PRONOUN:
            return LABEL
        return self.kind


def conditions(signal: object) -> tuple[Condition, ...]:
    """``name``, ``label``, ``name+label``, ``pronoun``, a kind of signal, or a list of those."""
    items: Sequence[Any] = ()
    if isinstance(signal, str):
        items = [signal]
    elif isinstance(signal, Sequence):
        items = signal
    if not are_some_texts(items):
        raise UsageError("signal: give 'name', 'label', 'name+label', or a list of them")
    refuse_twice("signal: the condition", items)
    return tuple(map(_condition, items))


def _condition(text: str) -> Condition:
    """Return the condition that *text* names. Raises UsageError."""
    parts = list(map(str.strip, text.split("+")))
    kinds = set(parts) - {"name"}
    faults = ("" in parts, len(kinds) > 1, len(parts) > len({*parts}))
    if any(faults):
        raise UsageError(
            f"signal {text!r}: give 'name', one kind such as 'label', or both as 'name+label'"
        )
    return Condition(text, by_name="name" in parts, kind=next(iter(kinds), None))
