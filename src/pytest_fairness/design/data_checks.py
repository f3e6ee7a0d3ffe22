"""What is wrong with source data: for ``names check``, ``personas check``, and for anyone's own folder.

Reading refuses what cannot be used at all. These checks look at what can be used and should not be: names
that signal weakly or two groups, banks that differ in more than the group, matrices off their quotas,
signals that caricature or lack a control. Each returns a list of problems; an empty list means that all is
well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from pytest_fairness.design.association import excess
from pytest_fairness.design.name_banks import GENDER, NameBanks
from pytest_fairness.design.name_entries import NameEntry
from pytest_fairness.design.personas import SCORES, PersonaMatrix
from pytest_fairness.design.quotas import QUOTAS
from pytest_fairness.design.signals import CONTROL, LABEL, SignalKind, Signals

WEAK = 0.5
RARE = 30
_LONG = 13
_LENGTH_GAP = 3.0
_FREQUENCY_RATIO = 30.0
_BEYOND_CHANCE = 3.0
_CLAUSE = 4
_PARITY = 2.5

# Terms that HolisticBias v1.1 (Smith et al. 2022) marks as dispreferred by the people they describe.
_DISPREFERRED = frozenset(
    {"handicapped", "crippled", "retarded", "wheelchair-bound", "differently abled", "dumb", "mute", "lame"}
    | {
        "hearing-impaired",
        "speech-impaired",
        "barren",
        "slow",
        "elderly person",
        "suffers from",
        "confined to",
    }
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault: where it is, and what is wrong with it and why that matters."""

    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


def check_names(banks: NameBanks, n: int = 20) -> list[Problem]:
    """Weak, ambiguous, rare and undocumented names; banks too small for *n*; banks out of balance."""
    problems = [problem for entry in banks.first_names.values() for problem in _entry_problems(entry)]
    problems += [problem for entry in banks.surnames.values() for problem in _provenance(entry)]
    problems += _in_two_groups([entry for entry in banks.first_names.values() if entry.drawn])
    for protected_class in banks.protected_classes:
        if protected_class != GENDER:
            problems += _size(banks, protected_class, n) or _balance(banks, protected_class, n)
    return problems


def _label(entry: NameEntry) -> str:
    return f"{entry.where or 'names'}: {entry.name} ({entry.protected_class}/{entry.group})"


def _provenance(entry: NameEntry) -> Iterator[Problem]:
    for what in ("year", "licence"):
        if not getattr(entry, what):
            yield Problem(_label(entry), f"no {what} of its source; a reader cannot check it")


def _entry_problems(entry: NameEntry) -> Iterator[Problem]:
    yield from _provenance(entry)
    if not entry.drawn:
        return
    if entry.strength is not None and entry.strength < WEAK:
        yield Problem(_label(entry), f"weak: strength {entry.strength:.2f} is under {WEAK}; flag it 'weak'")
    if entry.perceived is not None and entry.perceived < WEAK:
        yield Problem(_label(entry), f"weak: {entry.perceived:.0%} of readers named the group; flag it 'weak'")
    if entry.bearers is not None and entry.bearers < RARE and "rare" not in entry.flags:
        yield Problem(_label(entry), f"rare: {entry.bearers} bearers counted, under {RARE}; flag it 'rare'")
    if entry.strength is None and entry.birth_decade is None and "unmeasured" not in entry.flags:
        yield Problem(_label(entry), "has no figure for its signal; give one, or flag it 'unmeasured'")
    if len(entry.name) > _LONG or " " in entry.name:
        yield Problem(_label(entry), "longer than other first names, or two words: length would vary with the group")


def _in_two_groups(entries: Sequence[NameEntry]) -> list[Problem]:
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    for entry in entries:
        groups[entry.protected_class, entry.name].add(entry.group)
    return [
        Problem(f"{name} ({protected_class})", f"ambiguous: in the groups {', '.join(sorted(found))}; keep one")
        for (protected_class, name), found in groups.items()
        if len(found) > 1
    ]


def _size(banks: NameBanks, protected_class: str, n: int) -> list[Problem]:
    problems = []
    for group in banks.groups(protected_class):
        counts = banks.available(protected_class, group)
        problems += [
            Problem(
                f"{protected_class}/{group}",
                f"{counts.get(sex, 0)} {sex} names may be drawn, under the {n // 2} that {n} names need",
            )
            for sex in ("female", "male")
            if counts.get(sex, 0) < n // 2
        ]
    return problems


def _balance(banks: NameBanks, protected_class: str, n: int) -> list[Problem]:
    """Length and frequency of what would be drawn, between the groups that differ most."""
    drawn = {group: banks.names(protected_class, group, n) for group in banks.groups(protected_class)}
    lengths = {group: fmean(len(name.first) for name in names) for group, names in drawn.items()}
    problems = _gap(protected_class, lengths)
    frequencies = {}
    for group in drawn:
        entries = (e for e in banks.first_names.values() if (e.protected_class, e.group) == (protected_class, group))
        counted = [e.bearers for e in entries if e.drawn and e.bearers]
        if counted:
            frequencies[group] = median(counted)
    if frequencies:
        low, high = (
            min(frequencies, key=frequencies.__getitem__),
            max(frequencies, key=frequencies.__getitem__),
        )
        if frequencies[high] > _FREQUENCY_RATIO * frequencies[low]:
            problems.append(
                Problem(
                    protected_class,
                    f"unbalanced frequency: the median {high} name has {frequencies[high]:.0f} bearers, "
                    "the median "
                    f"{low} name {frequencies[low]:.0f}; what looks like a group effect may be rarity",
                )
            )
    return problems


def _gap(protected_class: str, lengths: dict[str, float]) -> list[Problem]:
    low, high = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
    if lengths[high] - lengths[low] <= _LENGTH_GAP:
        return []
    return [
        Problem(
            protected_class,
            f"unbalanced length: {high} first names have {lengths[high]:.1f} letters on average, {low} ones "
            f"{lengths[low]:.1f}; choose names nearer in length",
        )
    ]


def check_personas(matrix: PersonaMatrix) -> list[Problem]:
    """Quotas that are not kept, and job scores that differ between groups by more than chance makes them."""
    problems = [Problem("quotas", problem) for problem in matrix.quota_problems()]
    for category in QUOTAS:
        groups = [persona.groups[category] for persona in matrix]
        for score in SCORES:
            beyond = excess([getattr(persona, score) for persona in matrix], groups)
            if beyond > _BEYOND_CHANCE:
                problems.append(
                    Problem(
                        f"{score} by {category}",
                        f"scores differ between the groups {beyond:.1f} SDs more than chance makes them, "
                        "so a fair "
                        "decision would look unfair; move scores between personas",
                    )
                )
    return problems


def check_signals(signals: Signals) -> list[Problem]:
    """Kinds without a control or a comparison, phrases in two groups, and wording that should not be used."""
    return [problem for kind in signals.kinds.values() for problem in _kind_problems(kind)]


def _kind_problems(kind: SignalKind) -> Iterator[Problem]:
    where = f"{kind.protected_class}/{kind.kind}"
    if CONTROL not in kind.groups:
        yield Problem(where, "has no control: a phrase of the same form that names no group")
    if len(kind.groups.keys() - {CONTROL}) < 2:
        yield Problem(where, "has fewer than two groups to compare")
    owner: dict[str, str] = {}
    for group, phrases in kind.groups.items():
        for phrase in phrases:
            if owner.setdefault(phrase, group) != group:
                yield Problem(where, f"{phrase!r} stands for {owner[phrase]} and for {group}")
            if re.search(r"[{}\n]", phrase):
                yield Problem(where, f"{phrase!r} holds a brace or a line break; phrases are inserted as they are")
            for term in _DISPREFERRED:
                if re.search(rf"\b{re.escape(term)}\b", phrase, re.IGNORECASE):
                    yield Problem(where, f"{phrase!r} uses {term!r}, which the people described do not use")
    sizes = {phrase: len(phrase.split()) for phrases in kind.groups.values() for phrase in phrases}
    if kind.kind != LABEL and max(sizes.values()) >= _CLAUSE and max(sizes.values()) > _PARITY * min(sizes.values()):
        shortest, longest = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
        yield Problem(where, f"unequal length: {shortest!r} against {longest!r}; length would vary with the group")
