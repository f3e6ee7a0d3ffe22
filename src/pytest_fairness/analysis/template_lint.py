"""Mistakes of a template or a prompt, found before any model is asked: names, pronouns, promises,
idioms, slots, length.

Phrases are data (``personas/lint.yaml`` and the lexicon); what takes more than a phrase is a rule
of this module.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from pytest_fairness.design.names import NameBanks
from pytest_fairness.design.personas import Persona
from pytest_fairness.design.templates import Template
from pytest_fairness.documents import Place, Plain, entries, open_document, read_text
from pytest_fairness.errors import UsageError, did_you_mean
from pytest_fairness.scorers.letter import current_lexicon
from pytest_fairness.scorers.lexicon import CATEGORIES, Lexicon, LexiconTerm

#: Words of a letter that nobody reads to its end.
LONGEST_LETTER = 250
#: What a line holds that is as it is meant.
IGNORE = "lint: ignore"
#: Texts of YAML that are shorter are labels.
FEWEST_WORDS = 4
#: Keys of YAML whose texts are about the entry, and are sent to nobody.
_NO_PROMPTS = frozenset(
    ("source", "note", "description", "use_when", "suggestion", "match", "unless")
)
#: Rules of this module, with what each looks for; those of ``lint.yaml`` and the categories of the
#: lexicon come on top.
RULES: Mapping[str, str] = {
    "hard-coded-name": "a person's name where a slot belongs",
    "no-slot": "no slot at all, so that every letter is the same",
    "bad-slot": "braces that are no slot, or one that is nearly a known slot",
    "placeholder": "a placeholder that nothing fills",
    "remote-content": "an image, a script or a style that loads when the letter is opened",
    "length": f"over {LONGEST_LETTER} words",
    "no-disclaimer": "a letter without a word on how to have the decision explained (with --letter)",
}
_DEAR = re.compile(r"\b(?:Dear|Hello|Hi)[ ]+(?:(?:Mr|Mrs|Ms|Miss|Mx|Dr)\.?[ ]+)?([A-Z][\w'’-]+)")
_TWO_NAMES = re.compile(r"(?<![\w{])([A-Z][a-z'’-]+)(?=[ ]+([A-Z][a-z'’-]+)(?!\w))")
_NOBODY = frozenset(
    (
        "Candidate",
        "Applicant",
        "Sir",
        "Madam",
        "Team",
        "Hiring",
        "Colleague",
        "All",
        "Everyone",
        "There",
    )
)
_REMOTE = re.compile(
    r"<(?:img|script|iframe|link|object|embed)\b|!\[[^\]\n]{0,200}\]\(\s{0,9}https?:"
    r"|url\(\s{0,9}['\"]?https?:",
    re.IGNORECASE,
)
#: Placeholders of people and of other template languages.
_UNFILLED = re.compile(
    r"\[(?:[A-Z][A-Z _]{2,30}|(?:candidate|applicant|company|first|last|your) name)\]"
    r"|<<\w{1,40}>>|<[A-Z][A-Z_ ]{2,30}>"
    r"|\$\{\w{1,40}\}|\{\{[^{}\n]{1,60}\}\}|\{%|%\(\w{1,40}\)s",
    re.IGNORECASE,
)
_EXPLAINS = re.compile(
    r"\b(?:you (?:may|can) (?:ask|request|write|contact)|right to|on request|data protection"
    r"|article 22|explanation of|scores behind|appeal|complain|equal opportunity"
    r"|questions? about (?:this|the|our) decision)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, order=True)
class LintProblem:
    """One problem of a text. ``line`` and ``column`` count from 1; ``source`` is the file, empty
    for a mere text.
    """

    source: str
    line: int
    column: int
    rule: str
    severity: str
    text: str
    suggestion: str

    def __str__(self) -> str:
        shown = " ".join(self.text.split())
        if self.source:
            place = f"{self.source}:{self.line}:{self.column}"
        else:
            place = f"{self.line}:{self.column}"
        return f"{place}: {self.rule} ({self.severity}): {shown!r}: {self.suggestion}"


def lint_text(
    text: str,
    *,
    source: str = "",
    letter: bool = False,
    ignore: Collection[str] = (),
    folder: Path | None = None,
    first_line: int = 1,
) -> list[LintProblem]:
    """Return what *text*, a template or a prompt, gets wrong, in its order.

    *letter*: it is a whole letter, which has to say how to have the decision explained, and may not
    be long. *ignore* are rules, or categories of the lexicon, that do not count; a line that holds
    ``lint: ignore`` does not either.
    *folder*: a project's ``personas`` folder. Raises UsageError for a rule that there is not.
    """
    rules = rules_of(folder)
    for name in ignore:
        if name not in rules:
            raise UsageError(
                f"there is no rule {name!r} ({', '.join(rules)}){did_you_mean(name, rules)}"
            )
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    kept = [IGNORE not in line for line in text.split("\n")]
    problems = []
    for rule, severity, start, end, suggestion in _found(text, letter=letter, folder=folder):
        at = bisect_right(starts, start) - 1
        if rule not in ignore and kept[at]:
            shown = text[start:end]
            column = start - starts[at] + 1
            problems.append(
                LintProblem(source, at + first_line, column, rule, severity, shown, suggestion)
            )
    return sorted(problems)


def lint_file(
    path: Path, *, letter: bool = False, ignore: Collection[str] = (), folder: Path | None = None
) -> list[LintProblem]:
    """Return what the file *path* gets wrong: the whole text, or of YAML each text in it that is a
    prompt, which is one of several words. Raises UsageError for a file that cannot be read.
    """
    if path.suffix not in (".yaml", ".yml"):
        return lint_text(
            read_text(path), source=str(path), letter=letter, ignore=ignore, folder=folder
        )
    document = open_document(path)
    problems = list[LintProblem]()
    for place, text in _prompts(document.data):
        line = document.lines.get(place, 1)
        problems += lint_text(
            text,
            source=str(path),
            letter=letter,
            ignore={*ignore, "no-slot"},
            folder=folder,
            first_line=line,
        )
    return sorted(problems)


def rules_of(folder: Path | None = None) -> dict[str, str]:
    """Every rule, with what it looks for."""
    rules = {
        name: f"as {term.match[0]!r}" for name, term in _practice(folder).terms["practice"].items()
    }
    return {**RULES, **rules, **dict.fromkeys(CATEGORIES, "terms of the lexicon")}


_Found: TypeAlias = "Iterator[tuple[str, str, int, int, str]]"


def _found(text: str, *, letter: bool, folder: Path | None) -> _Found:
    """Rule, severity, start, end and suggestion of each problem."""
    for warning in _practice(folder).warnings(text):
        yield warning.term, warning.severity, warning.start, warning.end, warning.suggestion
    if folder is not None and (folder / "lexicon").is_dir():
        lexicon = _project_lexicon(folder)
    else:
        lexicon = current_lexicon()
    for warning in lexicon.warnings(text):
        yield warning.category, warning.severity, warning.start, warning.end, warning.suggestion
    for start, end in _names(text, folder):
        yield (
            "hard-coded-name",
            "high",
            start,
            end,
            "Use the slot {name}, or {first_name} and {last_name}.",
        )
    for match in _UNFILLED.finditer(text):
        yield (
            "placeholder",
            "high",
            *match.span(),
            "Make it a slot: a plain name in braces, as {name}.",
        )
    for match in _REMOTE.finditer(text):
        yield (
            "remote-content",
            "high",
            *match.span(),
            "Leave out what loads when the letter is opened.",
        )
    yield from _slots(text)
    words = text.split()
    if letter and len(words) > LONGEST_LETTER:
        start = text.find(words[0])
        yield (
            "length",
            "low",
            start,
            start + len(words[0]),
            f"{len(words)} words: say it in {LONGEST_LETTER}.",
        )
    if letter and not _EXPLAINS.search(text):
        yield (
            "no-disclaimer",
            "medium",
            0,
            0,
            "Say how to have the decision explained, and by which right.",
        )


def _slots(text: str) -> _Found:
    try:
        template = Template("text", text)
    except UsageError as error:
        yield "bad-slot", "high", 0, 0, str(error).partition(": ")[2] or str(error)
        return
    if not template.slots:
        yield "no-slot", "low", 0, 0, "What differs from person to person is a slot: {name}."
    for slot in template.slots:
        plain = re.sub(r"_\d+\Z", "", slot)  # {name_1}, {name_2}: of several people
        if plain not in _known_slots() and (near := did_you_mean(plain, _known_slots())):
            start = text.find(f"{{{slot}}}")
            yield "bad-slot", "medium", start, start + len(slot) + 2, f"This is no known slot{near}"


@cache
def _known_slots() -> frozenset[str]:
    pronouns = (
        "they",
        "them",
        "their",
        "theirs",
        "themself",
        "are",
        "were",
        "have",
        "do",
        "s",
        "es",
    )
    slots = {
        *Persona.__struct_fields__,
        *pronouns,
        *map(str.capitalize, pronouns),
        "name",
        "role",
        "label",
        "criteria",
    }
    return frozenset(slots | {f"{article}_{slot}" for article in "aA" for slot in slots})


def _names(text: str, folder: Path | None) -> Iterator[tuple[int, int]]:
    """Names of people: whoever is greeted, and a first name with a surname of the banks."""
    first, last = _bank_names(folder)
    for match in _DEAR.finditer(text):
        if match[1] not in _NOBODY:
            yield match.span(1)
    for match in _TWO_NAMES.finditer(text):
        if match[1] in first and match[2] in last:
            yield match.start(), match.end(2)


@cache
def _bank_names(folder: Path | None) -> tuple[frozenset[str], frozenset[str]]:
    banks = NameBanks.load(folder)
    firsts = banks.first_names.values()
    lasts = banks.surnames.values()
    return frozenset(first.name for first in firsts), frozenset(last.name for last in lasts)


@cache
def _project_lexicon(folder: Path) -> Lexicon:
    return Lexicon.load(folder)


@cache
def _practice(folder: Path | None) -> Lexicon:
    context = Lexicon.load(folder).context
    return Lexicon({"practice": entries("lint.yaml", folder, LexiconTerm)}, context)


def _prompts(data: Plain, *place: str | int) -> Iterator[tuple[Place, str]]:
    """The texts of several words in *data*, each with its place."""
    if isinstance(data, dict):
        for key, value in data.items():
            if key not in _NO_PROMPTS:
                yield from _prompts(value, *place, key)
    elif isinstance(data, list):
        for at, value in enumerate(data):
            yield from _prompts(value, *place, at)
    elif isinstance(data, str) and len(data.split()) >= FEWEST_WORDS:
        yield place, data
