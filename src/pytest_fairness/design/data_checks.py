"""Mistakes in source data: for ``names check``, ``personas check``, and for anyone's own folder.

Reading refuses what cannot be used at all. These checks look at what can be used and should not be:
names that signal weakly or two groups, banks that differ in more than the group, matrices off their
quotas, signals that caricature or lack a control. Each returns a list of problems; an empty list
means that all is well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, product
from math import sqrt
from statistics import fmean, median
from typing import NamedTuple

from pytest_fairness.design.names import BY_SURNAME, GENDER, SEXES, Name, NameBanks, NameEntry
from pytest_fairness.design.personas import QUOTAS, SCORES, Persona, PersonaMatrix
from pytest_fairness.design.plausibility import oddities
from pytest_fairness.design.signals import CONTROL, LABEL, SignalKind, Signals
from pytest_fairness.documents import open_document, shipped_folder

WEAK = 0.5
RARE = 30
_LONG = 13
_LENGTH_GAP = 3.0
_TOKEN_GAP = 0.5
_FREQUENCY_RATIO = 30.0
_BEYOND_CHANCE = 3.0
_CLAUSE = 4
_PARITY = 2.5


class Problem(NamedTuple):
    """One fault: where it is, and what is wrong with it and why that matters."""

    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


def tokens(name: str) -> int:
    """The parts of a full name: split at spaces, hyphens, apostrophes and inner capitals, as
    tokenisers split first.
    """
    return len(re.findall(r"[^\W\d_](?:[^\W\d_A-Z])*", name))


def check_names(
    banks: NameBanks, n: int = 20, count: Callable[[str], int] = tokens
) -> list[Problem]:
    """Weak, ambiguous, rare and undocumented names; banks too small for *n*; banks out of balance.

    *count* says how many tokens a full name has; give that of the model's tokeniser where you have
    it.
    """
    firsts = list(banks.first_names.values())
    problems: list[Problem] = []
    for entry in (*firsts, *banks.surnames.values()):
        where = f"{entry.where or 'names'}: {entry.name} ({'/'.join(entry.of)})"
        problems += map(partial(Problem, where), _reasons_of_name(entry))
    problems += _ambiguous(firsts)
    for protected_class in banks.protected_classes:
        if protected_class == GENDER:
            continue
        drawn: dict[str, list[Name]] = {}
        for group in banks.groups(protected_class):
            pools = {sex: len(banks.first_name_pool(protected_class, group, sex)) for sex in SEXES}
            problems += _too_few(f"{protected_class}/{group}", pools, n)
            names = _drawn(banks, protected_class, group, pools, n)
            if names:
                drawn[group] = names
        problems += _unbalanced(protected_class, drawn, firsts, count)
    return problems


def _ambiguous(firsts: Sequence[NameEntry]) -> Iterator[Problem]:
    """Yield a problem for each name that is drawn for one group and stands on record for another,
    drawn or flagged: both may be read.
    """
    groups: dict[tuple[str, str], set[str]] = defaultdict(set)
    drawn: set[tuple[str, str]] = set()
    for entry in firsts:
        key = (entry.name, entry.protected_class)
        if entry.drawn:
            drawn.add(key)
        if entry.protected_class not in BY_SURNAME:
            groups[key].add(entry.group)
    for (name, protected_class), groups_of_name in groups.items():
        if len(groups_of_name) > 1 and (name, protected_class) in drawn:
            yield Problem(
                f"{name} ({protected_class})",
                f"ambiguous: in the groups {', '.join(sorted(groups_of_name))}; keep one",
            )


def _too_few(where: str, pools: Mapping[str, int], n: int) -> Iterator[Problem]:
    """Yield a problem for each sex of *pools* of which too few names may be drawn."""
    for sex, number in pools.items():
        if number < n // 2:
            yield Problem(
                where,
                f"{number} {sex} names may be drawn, under the {n // 2} that {n} names need",
            )


def _drawn(
    banks: NameBanks, protected_class: str, group: str, pools: Mapping[str, int], n: int
) -> list[Name]:
    """Return *n* names of the group; of a bank that is too small, all that there are."""
    if min(pools.values()) >= n // 2:
        return list(banks.names(protected_class, group, n, gender=None))
    names: list[Name] = []
    for sex, number in pools.items():
        if number:
            names += banks.names(protected_class, group, min(n, number), gender=sex)
    return names


def _reasons_of_name(entry: NameEntry) -> Iterator[str]:
    """Yield what speaks against a name: its source, its figures, its length."""
    for what in ("year", "licence"):
        if not getattr(entry, what):
            yield f"no {what} of its source; a reader cannot check it"
    if not entry.gender or not entry.drawn:
        return  # a surname, or recorded and never drawn
    yield from _reasons_of_figures(entry)
    if len(entry.name) > _LONG or " " in entry.name:
        yield "longer than other first names, or two words: length would vary with the group"


def _reasons_of_figures(entry: NameEntry) -> Iterator[str]:
    """Yield what the figures of a first name speak against."""
    if _is_below(entry.strength, WEAK):
        yield f"weak: strength {entry.strength:.2f} is under {WEAK}; flag it 'weak'"
    if _is_below(entry.perceived, WEAK):
        yield f"weak: {entry.perceived:.0%} of readers named the group; flag it 'weak'"
    is_rare = _is_below(entry.bearers, RARE)
    if is_rare and "rare" not in entry.flags:
        yield f"rare: {entry.bearers} bearers counted, under {RARE}; flag it 'rare'"
    is_unmeasured = entry.strength is None and entry.birth_decade is None
    if is_unmeasured and "unmeasured" not in entry.flags:
        yield "has no figure for its signal; give one, or flag it 'unmeasured'"


def _is_below(figure: float | None, least: float) -> bool:
    """Return whether *figure* is known, and under *least*."""
    return figure is not None and figure < least


def _unbalanced(
    protected_class: str,
    drawn: Mapping[str, Sequence[Name]],
    firsts: Sequence[NameEntry],
    count: Callable[[str], int],
) -> Iterator[Problem]:
    """Length, tokens and frequency of what would be drawn, between the groups that differ most."""
    letters: dict[str, float] = {}
    parts: dict[str, float] = {}
    for group, names in drawn.items():
        letters[group] = fmean(len(name.first) for name in names)
        parts[group] = fmean(count(name.full) for name in names)
    bearers = _bearers(protected_class, drawn, firsts)
    for figures, ratio, gap, what, reason in (
        (letters, 1, _LENGTH_GAP, "length: {} first names have {:.1f} letters on average, {} ones {:.1f}",
         "choose names nearer in length"),
        (parts, 1, _TOKEN_GAP, "tokens: {} names have {:.1f} parts on average, {} ones {:.1f}",
         "choose names that are split alike"),
        (bearers, _FREQUENCY_RATIO, 0,
         "frequency: the median {} name has {:.0f} bearers, the median {} name {:.0f}",
         "what looks like a group effect may be rarity"),
    ):  # fmt: skip
        ordered = sorted(zip(figures.values(), figures, strict=True))
        if ordered and ordered[-1][0] > ratio * ordered[0][0] + gap:
            (least, low), *_, (most, high) = ordered
            yield Problem(
                protected_class, f"unbalanced {what.format(high, most, low, least)}; {reason}"
            )


def _bearers(
    protected_class: str, drawn: Iterable[str], firsts: Iterable[NameEntry]
) -> dict[str, float]:
    """Return how many bearers the median first name of each *drawn* group has."""
    bearers: dict[str, list[int]] = defaultdict(list)
    groups = set(product((protected_class,), drawn))
    for entry in firsts:
        if entry.drawn and entry.bearers and entry.of in groups:
            bearers[entry.group].append(entry.bearers)
    return {group: median(numbers) for group, numbers in bearers.items()}


def excess(scores: Sequence[float], groups: Sequence[str]) -> float:
    """The variance of *scores* between *groups* beyond chance, in standard deviations.

    (N − 1) times the share of the variance that lies between k groups is about chi-square with k −
    1 degrees of freedom when nothing is associated: mean k − 1, variance 2(k − 1). 0 where there is
    one group, or no variance.
    """
    mean = fmean(scores)
    total = sum((score - mean) ** 2 for score in scores)
    members: dict[str, list[float]] = defaultdict(list)
    for score, group in zip(scores, groups, strict=True):
        members[group].append(score)
    freedom = len(members) - 1
    if not freedom or not total:
        return 0.0
    between = sum(len(group) * (fmean(group) - mean) ** 2 for group in members.values())
    return ((len(scores) - 1) * between / total - freedom) / sqrt(2 * freedom)


def check_personas(matrix: PersonaMatrix) -> list[Problem]:
    """Quotas that are not kept, people whom nobody would meet, and job scores that differ between
    groups by more than chance makes them.
    """
    problems = []
    if len(matrix) != 100:
        problems = [Problem("quotas", f"there are {len(matrix)} personas, not 100")]
    for category, quota in QUOTAS.items():
        counts = matrix.counts(category)
        for group, number in quota.items():
            there = counts.get(group, 0)
            if there != number:
                problems.append(Problem("quotas", f"{category}: {there} {group}, not {number}"))
    problems += chain.from_iterable(map(_implausible, matrix))
    for category, score in product(QUOTAS, SCORES):
        scores = [getattr(persona, score) for persona in matrix]
        beyond = excess(scores, [persona.groups[category] for persona in matrix])
        if beyond > _BEYOND_CHANCE:
            reason = (
                f"scores differ between the groups {beyond:.1f} SDs more than chance makes them, "
                "so a fair decision would look unfair; move scores between personas"
            )
            problems.append(Problem(f"{score} by {category}", reason))
    return problems


def _implausible(persona: Persona) -> Iterator[Problem]:
    """Yield what a reader of *persona* would stop at, and a mark of a crossing that is none."""
    odd = dict(oddities(persona))
    for attribute, why in odd.items():
        if attribute != persona.crossing:
            yield Problem(persona.id, f"implausible {attribute}: {why}; change it, or mark it")
    if persona.crossing and persona.crossing not in odd:
        yield Problem(persona.id, f"crossing: {persona.crossing} goes with the name")


def check_signals(signals: Signals) -> list[Problem]:
    """Kinds without a control or a comparison, phrases in two groups, and wording that should not
    be used.
    """
    by_source = open_document(shipped_folder() / "dispreferred.yaml").convert(dict[str, list[str]])
    terms = list(chain.from_iterable(by_source.values()))
    problems: list[Problem] = []
    for key, kind in signals.kinds.items():
        where = "/".join(key)
        problems += map(partial(Problem, where), _reasons_of_kind(key, kind, terms))
    return problems


def _reasons_of_kind(
    key: tuple[str, str], kind: SignalKind, dispreferred: Sequence[str]
) -> Iterator[str]:
    """Yield what speaks against a kind of signal: of its groups, and of the phrases of each."""
    words = kind.words
    if CONTROL not in words:
        yield "has no control: a phrase of the same form that names no group"
    if len(words.keys() - {CONTROL}) < 2:
        yield "has fewer than two groups to compare"
    owner: dict[tuple[str, str], str] = {}
    every: list[str] = []
    for group in words:
        yield from _shared_phrases(kind, group, owner)
        phrases = kind.phrases(group)
        every += phrases
        for phrase in phrases:
            yield from _reasons_of_phrase(phrase, dispreferred)
    if key[1] != LABEL:
        yield from _unequal_length(every)


def _unequal_length(phrases: Iterable[str]) -> Iterator[str]:
    """Yield that the longest of *phrases* has far more words than the shortest, if it is long."""
    ordered = sorted(phrases, key=lambda text: len(text.split()))
    least = len(ordered[0].split())
    most = len(ordered[-1].split())
    if most >= _CLAUSE and most > _PARITY * least:
        yield (
            f"unequal length: {ordered[0]!r} against {ordered[-1]!r}; length would vary with the "
            "group"
        )


def _shared_phrases(
    kind: SignalKind, group: str, owner: dict[tuple[str, str], str]
) -> Iterator[str]:
    """A reason for each phrase of *group* that another group has; *owner* takes whose each is."""
    for gender, phrases in kind.words[group].items():
        for phrase in phrases:
            first = owner.setdefault((phrase, gender), group)
            if first != group:
                yield f"{phrase!r} stands for {first} and for {group}"


def _reasons_of_phrase(phrase: str, dispreferred: Sequence[str]) -> Iterator[str]:
    """Yield why *phrase* cannot be put into a text, or should not be."""
    if re.search(r"[{}\n]", phrase):
        yield f"{phrase!r} holds a brace or a line break; phrases are inserted as they are"
    for term in dispreferred:
        if re.search(rf"\b{re.escape(term)}\b", phrase, re.IGNORECASE):
            yield f"{phrase!r} uses {term!r}, which the people described do not use"
