"""What is wrong with source data: for ``names check``, ``personas check``, and for anyone's own folder.

Reading refuses what cannot be used at all. These checks look at what can be used and should not be: names
that signal weakly or two groups, banks that differ in more than the group, matrices off their quotas,
signals that caricature or lack a control. Each returns a list of problems; an empty list means that all is
well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from pytest_fairness.design.association import excess
from pytest_fairness.design.name_banks import GENDER, Name, NameBanks
from pytest_fairness.design.name_entries import NameEntry
from pytest_fairness.design.personas import SCORES, PersonaMatrix
from pytest_fairness.design.quotas import QUOTAS
from pytest_fairness.design.signals import CONTROL, LABEL, SignalKind, Signals

WEAK = 0.5
RARE = 30
_LONG = 13
_LENGTH_GAP = 3.0
_TOKEN_GAP = 0.5
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


def tokens(name: str) -> int:
    """The parts of a full name: split at spaces, hyphens, apostrophes and inner capitals, as tokenisers split first."""
    return len(re.findall(r"[^\W\d_](?:[^\W\d_A-Z])*", name))


def check_names(banks: NameBanks, n: int = 20, count: Callable[[str], int] = tokens) -> list[Problem]:
    """Weak, ambiguous, rare and undocumented names; banks too small for *n*; banks out of balance.

    *count* says how many tokens a full name has; give that of the model's tokeniser where you have it.
    """
    problems = [problem for entry in banks.first_names.values() for problem in _entry_problems(entry)]
    problems += [problem for entry in banks.surnames.values() for problem in _provenance(entry)]
    problems += _in_two_groups(list(banks.first_names.values()))
    for protected_class in banks.protected_classes:
        if protected_class != GENDER:
            problems += _size(banks, protected_class, n)
            problems += _balance(banks, protected_class, n, count)
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
    """Names that are drawn for one group and stand on record for another, drawn or flagged: both may be read."""
    groups: dict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    for entry in entries:
        known = groups[entry.protected_class, entry.name]
        known[entry.group] = known.get(entry.group, False) or entry.drawn
    return [
        Problem(f"{name} ({protected_class})", f"ambiguous: in the groups {', '.join(sorted(found))}; keep one")
        for (protected_class, name), found in groups.items()
        if len(found) > 1 and any(found.values())
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


def _balance(banks: NameBanks, protected_class: str, n: int, count: Callable[[str], int]) -> list[Problem]:
    """Length, tokens and frequency of what would be drawn, between the groups that differ most."""
    drawn = {
        group: names for group in banks.groups(protected_class) if (names := _drawn(banks, protected_class, group, n))
    }
    if len(drawn) < 2:
        return []
    problems = _gap(
        protected_class,
        {group: fmean(len(name.first) for name in names) for group, names in drawn.items()},
        _LENGTH_GAP,
        "unbalanced length: {high} first names have {most:.1f} letters on average, {low} ones {least:.1f}; "
        "choose names nearer in length",
    )
    problems += _gap(
        protected_class,
        {group: fmean(count(name.full) for name in names) for group, names in drawn.items()},
        _TOKEN_GAP,
        "unbalanced tokens: {high} names have {most:.1f} parts on average, {low} ones {least:.1f}; "
        "choose names that are split alike",
    )
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


def _drawn(banks: NameBanks, protected_class: str, group: str, n: int) -> Sequence[Name]:
    """The *n* names that would be drawn for *group*; of a bank that is too small, all that there are."""
    available = banks.available(protected_class, group)
    if all(available.get(sex, 0) >= n // 2 for sex in ("female", "male")):
        return banks.names(protected_class, group, n)
    return [
        name
        for sex in ("female", "male")
        if (few := min(n, available.get(sex, 0)))
        for name in banks.names(protected_class, group, few, gender=sex)
    ]


def _gap(protected_class: str, means: Mapping[str, float], most: float, told: str) -> list[Problem]:
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    if means[high] - means[low] <= most:
        return []
    return [Problem(protected_class, told.format(high=high, low=low, most=means[high], least=means[low]))]


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
    owner: dict[tuple[str, str], str] = {}
    for group, phrases in kind.groups.items():
        genders = {gender: found for (of, gender), found in kind.by_gender.items() if of == group} or {"": phrases}
        for gender, found in genders.items():
            for phrase in found:
                if owner.setdefault((phrase, gender), group) != group:
                    yield Problem(where, f"{phrase!r} stands for {owner[phrase, gender]} and for {group}")
        for phrase in phrases:
            if re.search(r"[{}\n]", phrase):
                yield Problem(where, f"{phrase!r} holds a brace or a line break; phrases are inserted as they are")
            for term in _DISPREFERRED:
                if re.search(rf"\b{re.escape(term)}\b", phrase, re.IGNORECASE):
                    yield Problem(where, f"{phrase!r} uses {term!r}, which the people described do not use")
    sizes = {phrase: len(phrase.split()) for phrases in kind.groups.values() for phrase in phrases}
    if kind.kind != LABEL and max(sizes.values()) >= _CLAUSE and max(sizes.values()) > _PARITY * min(sizes.values()):
        shortest, longest = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
        yield Problem(where, f"unequal length: {shortest!r} against {longest!r}; length would vary with the group")
