"""Find what a text should not say of a person: phrases that stand in for what is not job-related.

The phrases are data, a file a category in ``personas/lexicon/``; a project's own folder of that
name adds terms, and takes the place of ours by name. docs/lexicon.md says how a term is written and
when it keeps quiet.
"""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from itertools import filterfalse, islice, product, repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import msgspec

from pytest_fairness.documents import Document, Text, entries, open_document
from pytest_fairness.errors import InvalidEntry, unknown

Severity = Literal["critical", "high", "medium", "low"]
#: From the worst on.
SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low")
CATEGORIES = (
    "age",
    "gender",
    "race_ethnicity",
    "disability",
    "religion",
    "pregnancy_family",
    "appearance",
    "health",
    "accent_language",
    "marital_status",
    "cultural_fit",
)
#: A text that holds more is at fault without doubt; further warnings are not listed.
MOST_WARNINGS = 1_000
#: Forms that one phrase may stand for.
_MOST_FORMS = 1_000
_CONTEXT = "lexicon/context.yaml"
#: Texts whose warnings are remembered, and the characters that one of them has at most.
_REMEMBERED = 4_096
_LONGEST_REMEMBERED = 4_000


class LexiconTerm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One term of a category. ``match``: phrases, where ``[a|b|]`` stands for a, b or nothing.

    A match counts only where one of ``near`` stands in the same sentence, if there are any, and
    none of ``not_near``, directly behind one of ``after`` and before one of ``before``; it does not
    count within a phrase of ``unless``. ``@name`` in these lists stands for a list of
    ``context.yaml``. Where ``subject`` is given, the severity holds only in a
    sentence that opens with the match or has one of these phrases, and not for a name or before a
    noun of ``@served`` ("deaf students"); elsewhere it is low. ``naming``: the term names a group,
    a condition or a relation and says nothing of it, so that in a whole letter it is low as well
    unless it stands behind one of ``@wanted`` or before one of ``@said_of``, or its sentence has
    something of ``@judging`` or ``@weighing`` and somebody of ``@reader``; and where the sentence
    makes an ``@offer`` that nothing of ``@refusing`` takes back. ``everyday``: ordinary letters are
    full of what the term names, so that the weighing words count only where the letter has one of
    ``@deciding``.
    ``gender``: whose words these are, so that they are judged against the person's own.
    ``against``: who is put at a disadvantage. ``severity`` ``off`` takes a term away. Raises
    InvalidEntry for a phrase of too many forms.
    """

    name: str
    match: tuple[Text, ...]
    severity: Severity | Literal["off"]
    suggestion: Text
    source: Text
    against: str = ""
    gender: Literal["", "female", "male"] = ""
    near: tuple[Text, ...] = ()
    not_near: tuple[Text, ...] = ()
    after: tuple[Text, ...] = ()
    before: tuple[Text, ...] = ()
    unless: tuple[Text, ...] = ()
    subject: tuple[Text, ...] = ()
    naming: bool = False
    everyday: bool = False

    def __post_init__(self) -> None:
        _check_unless(self.match, self.unless)
        _forms_of_all(self._around)

    def check_lists(self, lists: Collection[str]) -> None:
        """Raise InvalidEntry for an ``@name`` that is none of *lists*."""
        for use in _lists_in((*self._around, *self.unless)):
            if use.kind[1:] not in lists:
                raise InvalidEntry(f"{self.name}: {_CONTEXT} has no list {use.kind!r}")

    @property
    def _around(self) -> tuple[Text, ...]:
        """The phrases and lists that a match is held against."""
        return (*self.near, *self.not_near, *self.after, *self.before, *self.subject)

    @property
    def counts_alone(self) -> bool:
        """Return whether a match counts whatever it stands near."""
        return not (self.near or self.after or self.before)

    @property
    def names_only(self) -> bool:
        """Return whether a match may be about somebody else, so that its sentence decides."""
        return self.naming or bool(self.subject)

    @property
    def judges_alone(self) -> bool:
        """Return whether a match says something wherever it stands. A stereotype (``medium``) does
        only of somebody who is appraised.
        """
        return not self.naming and not self.everyday and self.severity != "medium"

    def severity_for(self, gender: str | None) -> str | None:
        """Return how bad a match is; None where the words are of the person's own *gender*."""
        if not self.gender or gender is None:
            return self.severity
        if gender == self.gender:
            return None
        return "high"  # to call somebody by another gender than the own is worse than to mention it


class ContextList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Phrases that several terms name as ``@name``; those of ``quiet`` silence the whole sentence
    they stand in, unless one of ``loud`` stands there too. A match does not count within a phrase
    of ``unless``. Raises InvalidEntry for a phrase of too many forms.
    """

    name: str
    match: tuple[Text, ...]
    source: Text
    unless: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        _check_unless(self.match, self.unless)


class AcceptedWarning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of ``accepted.yaml``: warnings of a ``category`` that somebody has read and found
    legitimate, by ``term``, by ``phrase`` (the matched words), or by both; ``who`` and ``why``, and
    the day ``until`` which it holds.
    """

    category: Text
    who: Text
    why: Text
    until: datetime.date
    term: str = ""
    phrase: str = ""

    def covers(self, warning: LexiconWarning) -> bool:
        """Return whether *warning* is one of those that were found legitimate."""
        if self.category != warning.category or self.term not in ("", warning.term):
            return False
        return _words_of(self.phrase) in ("", _words_of(warning.text))

    @property
    def description(self) -> str:
        """The entry in one line, with its day."""
        return (
            f"{self.term or self.phrase} ({self.category}), accepted by {self.who}, expired on "
            f"{self.until}"
        )


def _words_of(text: str) -> str:
    """*text* in small letters, with one blank between each two words."""
    return " ".join(text.casefold().split())


@dataclass(frozen=True, slots=True, kw_only=True)
class LexiconWarning:
    """A phrase in a text. ``text`` stands from ``start`` to ``end`` of it, in characters; ``term``
    names the entry of the lexicon, ``source`` where that is from. ``accepted`` says who has
    reviewed and accepted it, empty where nobody.
    """

    category: str
    severity: str
    text: str
    start: int
    end: int
    term: str
    suggestion: str
    source: str
    accepted: str = ""


@dataclass(frozen=True)
class Lexicon:
    """Terms by category, the lists of words around them, and what was reviewed and accepted.
    ``digest`` changes with anything that changes what is found, or what it costs.
    """

    terms: Mapping[str, Mapping[str, LexiconTerm]] = field(repr=False)
    context: Mapping[str, ContextList] = field(repr=False, default_factory=dict)
    accepted: tuple[AcceptedWarning, ...] = ()

    @classmethod
    def load(cls, folder: Path | None = None) -> Self:
        """The lexicon that ships, extended or replaced by a project's ``personas`` *folder*. Raises
        UsageError.
        """
        terms = {
            category: entries(f"lexicon/{category}.yaml", folder, LexiconTerm)
            for category in CATEGORIES
        }
        lexicon = cls(terms, entries(_CONTEXT, folder, ContextList))
        for category, term in lexicon.all_terms():
            try:
                term.check_lists(lexicon.context)
            except InvalidEntry as error:
                raise InvalidEntry(f"lexicon/{category}.yaml: {error}") from None
        return lexicon

    def all_terms(self) -> Iterator[tuple[str, LexiconTerm]]:
        """Yield each term with its category."""
        for category, terms in self.terms.items():
            for term in terms.values():
                yield category, term

    def term_of(self, warning: LexiconWarning) -> LexiconTerm:
        """Return the term that *warning*, one of this lexicon, is of."""
        return self.terms[warning.category][warning.term]

    def accepting(self, path: Path, today: datetime.date) -> tuple[Self, list[str]]:
        """This lexicon with the entries of the file *path* that hold *today*, and a line for each
        that has expired.

        Raises UsageError, with file and line, for an entry that is wrong or names a term that there
        is not.
        """
        document = open_document(path)
        accepted = document.convert(tuple[AcceptedWarning, ...])
        valid: list[AcceptedWarning] = []
        expired: list[str] = []
        for number, entry in enumerate(accepted):
            self._check_accepted(document, number, entry)
            if entry.until < today:
                expired.append(f"{path.name}: {entry.description}: read it again, or take it out")
            else:
                valid.append(entry)
        return replace(self, accepted=tuple(valid)), expired

    def _check_accepted(self, document: Document, number: int, entry: AcceptedWarning) -> None:
        """Raise UsageError where *entry* names what there is not, or names nothing."""
        if entry.category not in self.terms:
            raise document.wrong(
                unknown("category", entry.category, CATEGORIES), number, "category"
            )
        terms = self.terms[entry.category]
        if entry.term not in ("", *terms):
            raise document.wrong(unknown("term", entry.term, terms), number, "term")
        if not any((entry.term, entry.phrase.strip())):
            raise document.wrong("term or phrase: say which warnings are accepted", number)

    @cached_property
    def digest(self) -> str:
        """16 hex digits."""
        parts: list[Any] = [self.terms, self.context]
        if self.accepted:
            parts.append(self.accepted)
        data = msgspec.json.encode(parts, order="deterministic")
        return sha256(data).hexdigest()[:16]

    def warnings(self, text: str, *, gender: str | None = None) -> tuple[LexiconWarning, ...]:
        """Return what *text* says that it should not, in the order of the text; at most
        :data:`MOST_WARNINGS`.

        *gender* is that of the person whom the text is about (``female``, ``male``,
        ``non_binary``), None where it is unknown. Of matches that overlap within a category the
        worst stands, then the longest. The time it takes is proportional to the length of *text*.
        """
        if len(text) > _LONGEST_REMEMBERED:
            return self._read(text, gender)
        return self._remembered(text, gender)

    @cached_property
    def _remembered(self) -> Callable[[str, str | None], tuple[LexiconWarning, ...]]:
        """Returns what :meth:`_read` does, without reading a text of late again: every scorer of
        letters, and whoever shows their warnings, asks for the same.
        """
        return lru_cache(maxsize=_REMEMBERED)(self._read)

    def _read(self, text: str, gender: str | None) -> tuple[LexiconWarning, ...]:
        """Return the warnings of *text*."""
        matches = self._phrases.matches(_ReadText(text), gender)
        first = islice(matches, 4 * MOST_WARNINGS)  # some overlap
        ordered = sorted(first, key=lambda warning: (warning.start, -warning.end))
        kept = sorted(
            _worst_of_overlapping(ordered),
            key=lambda warning: (warning.start, warning.end, warning.category),
        )
        return tuple(map(self._reviewed, kept))

    def _reviewed(self, warning: LexiconWarning) -> LexiconWarning:
        """Return *warning* with who has accepted it, if anybody has."""
        for entry in self.accepted:
            if entry.covers(warning):
                return replace(warning, accepted=entry.who)
        return warning

    @cached_property
    def _phrases(self) -> _Phrases:
        return _Phrases(self)


def _worst_of_overlapping(ordered: Iterable[LexiconWarning]) -> list[LexiconWarning]:
    """Return one of those that overlap within a category; MOST_WARNINGS at the most."""
    kept: list[LexiconWarning] = []
    places: dict[str, int] = {}  # category → where its last warning stands in kept
    for warning in ordered:
        place = places.get(warning.category)
        if place is None or kept[place].end <= warning.start:
            if len(kept) == MOST_WARNINGS:
                break
            places[warning.category] = len(kept)
            kept.append(warning)
        elif _rank(warning) < _rank(kept[place]):
            kept[place] = warning
    return kept


def _rank(warning: LexiconWarning) -> tuple[int, int]:
    """Return what sorts the worst first, then the longest."""
    return SEVERITIES.index(warning.severity), warning.start - warning.end


@cache
def shipped_lexicon() -> Lexicon:
    """The lexicon as it ships."""
    return Lexicon.load()


# ---------------------------------------------------------------- phrases

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_BRACKET = re.compile(r"[\[\]|]")
#: A phrase in small letters alone.
_LETTERS = re.compile(r"[a-z \[\]|]+")


@lru_cache(maxsize=16_384)
def forms_of(phrase: str) -> tuple[str, ...]:
    """Every text that *phrase* stands for, as tokens with a blank between them. Raises
    InvalidEntry.
    """
    pieces = _CHOICE.split(phrase)
    if _BRACKET.search("".join(pieces[::2])):
        raise InvalidEntry(
            f"{phrase!r} has a bracket without its other, or a | outside brackets: write [a|b]"
        )
    options = [[piece] for piece in pieces]
    options[1::2] = [piece.split("|") for piece in pieces[1::2]]
    size = math.prod(map(len, options))
    if size > _MOST_FORMS:
        raise InvalidEntry(
            f"{phrase!r} stands for {size} forms; at most {_MOST_FORMS}: write several phrases"
        )
    tokens_of: Callable[[str], list[str]] = _tokens
    if _LETTERS.fullmatch(phrase):
        tokens_of = _plain_tokens
    texts = map("".join, product(*options))
    forms = dict.fromkeys(" ".join(tokens_of(text)) for text in texts)
    if "" in forms:
        raise InvalidEntry(f"{phrase!r} has no word in one of its forms")
    return tuple(forms)


def _forms_of_all(phrases: Iterable[str]) -> list[str]:
    """Return the forms of those *phrases* that name no list, in order. Raises InvalidEntry."""
    forms: list[str] = []
    for phrase in phrases:
        if not phrase.startswith("@"):
            forms += forms_of(phrase)
    return forms


def _check_unless(match: Iterable[str], unless: Iterable[str]) -> None:
    """Raise InvalidEntry for a phrase of *match* that *unless* has as well."""
    counting = _forms_of_all(match)
    silent = set(_forms_of_all(unless)).intersection(counting)
    if silent:
        form = min(silent, key=counting.index)
        raise InvalidEntry(f"{form!r} is a phrase of match and of unless, so that it never counts")


def _tokens(text: str) -> list[str]:
    """Return the words of *text* as the automaton reads them."""
    return list(map(plain_word, _WORD.findall(text.casefold())))


def _plain_tokens(text: str) -> list[str]:
    """Return what :func:`_tokens` does, of a text in small letters, for a tenth of the time."""
    # The only short form without an apostrophe.
    return text.replace("cannot", _SHORT["cannot"]).split()


class _Use(NamedTuple):
    """The use of a phrase: ``match``, ``near``, ``not_near`` or ``unless`` of a term, or one of the
    list ``@name``.
    """

    kind: str
    category: str = ""
    term: str = ""


_QUIET, _LOUD = _Use("@quiet"), _Use("@loud")
_SERVED, _OTHERS_OWN = _Use("@served"), _Use("@others_own")
_READER, _JUDGING, _OFFER = _Use("@reader"), _Use("@judging"), _Use("@offer")
_REFUSING = _Use("@refusing")
_WANTED, _SAID_OF = _Use("@wanted"), _Use("@said_of")
_WEIGHING, _DECIDING = _Use("@weighing"), _Use("@deciding")
_BYSTANDERS = _Use("@bystanders")
_LISTING, _POLICY = _Use("@listing"), _Use("@policy")
#: Words of a text that is a whole letter: of a shorter one nobody knows what stood around it.
_LETTER = 60


class _Phrases:
    """The phrases of a lexicon in one automaton (Aho & Corasick 1975), each with what it is used
    for.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        import ahocorasick

        self._lexicon = lexicon
        self._automaton: Any = ahocorasick.Automaton()
        self._spaced: Any = ahocorasick.Automaton()
        self._silenced = {
            _Use(f"@{name}") for name, context in lexicon.context.items() if context.unless
        }
        self._touching = {_SERVED, _OTHERS_OWN, _WANTED, _SAID_OF}
        for category, term in lexicon.all_terms():
            for kind in ("after", "before"):
                use = _Use(kind, category, term.name)
                self._touching.update(_uses_of(kind, getattr(term, kind), use))
        for form, uses in _uses(lexicon).items():
            self._automaton.add_word(f" {form} ", (len(form) + 2, uses))
            letters = form.replace(" ", "")
            matching = list(filter(self._matches_alone, uses))
            if matching and len(letters) >= _FEWEST_SPACED:
                self._spaced.add_word(letters, (len(letters), matching))
        for automaton in (self._automaton, self._spaced):
            automaton.make_automaton()

    def _matches_alone(self, use: _Use) -> bool:
        """Return whether a phrase so used counts whatever stands near it."""
        return use.kind == "match" and self._term(use).counts_alone

    def matches(self, read: _ReadText, gender: str | None) -> Iterator[LexiconWarning]:
        """Yield each match that counts."""
        sightings = self._sightings(read)
        for start, end, use in sightings.matches:
            counts = self._counts(use, read.sentence_at(start), sightings)
            if not counts or sightings.covers(_exception_of(use), start, end):
                continue
            if not self._is_between(use, start, end, sightings):
                continue
            first, last = read.span(start, end)
            for warning in self._warning(use, gender, read.text, first, last):
                if self._is_aside(use, start, end, read, sightings):
                    yield replace(warning, severity="low")
                else:
                    yield warning
        yield from self._spaced_out(read, gender)

    def _sightings(self, read: _ReadText) -> _Sightings:
        """Return where all phrases stand in the text."""
        sightings = _Sightings(self._silenced, self._touching)
        if not len(self._automaton):
            return sightings
        for last, (length, uses) in self._automaton.iter(read.plain):
            start = last - length + 2  # without the blanks on both sides
            sentence = read.sentence_at(start)
            for use in uses:
                sightings.add(use, start, last, sentence)
        sightings.settle()
        return sightings

    def _is_aside(
        self, use: _Use, start: int, end: int, read: _ReadText, sightings: _Sightings
    ) -> bool:
        """Return whether a match is a name, or its sentence is not about the person."""
        term = self._term(use)
        sentence = read.sentence_at(start)
        if term.names_only and sightings.is_others_own(start, sentence):
            return True
        if read.is_letter and not self._is_judged(term, start, end, sentence, sightings):
            return True
        if not term.gender and read.is_name(start, end):
            return True
        if not term.subject:
            return False
        if (_SERVED, end + 1) in sightings.beginnings:
            return True
        if read.opens_sentence(start):
            return False
        return not sightings.holds_any("subject", term.subject, use, sentence)

    @staticmethod
    def _is_judged(
        term: LexiconTerm, start: int, end: int, sentence: int, sightings: _Sightings
    ) -> bool:
        """Return whether a letter says with a match what is thought of somebody, or decided."""
        if sightings.spares(sentence, offers=term.naming):
            return False
        if term.judges_alone or (sightings.decides and not term.naming):
            return True
        return sightings.is_said(start, end) or sightings.judges(sentence, term.everyday)

    def _counts(self, use: _Use, sentence: int, sightings: _Sightings) -> bool:
        """Return whether what else stands in the sentence lets a match count."""
        if sightings.is_silent(sentence):
            return False
        term = self._term(use)
        if term.near and not sightings.holds_any("near", term.near, use, sentence):
            return False
        return not sightings.holds_any("not_near", term.not_near, use, sentence)

    def _is_between(self, use: _Use, start: int, end: int, sightings: _Sightings) -> bool:
        """Return whether what a match has to stand between stands around it."""
        term = self._term(use)
        behind = sightings.touches("after", term.after, use, start - 1, sightings.endings)
        ahead = sightings.touches("before", term.before, use, end + 1, sightings.beginnings)
        return behind and ahead

    def _spaced_out(self, read: _ReadText, gender: str | None) -> Iterator[LexiconWarning]:
        """Yield matches in words whose letters are spaced out."""
        if not len(self._spaced):
            return
        for first, end in read.spaced_words():
            word, places = read.joined(first, end)
            for last, (length, uses) in self._spaced.iter(word):
                start = places[last - length + 1]
                for use in uses:
                    yield from self._warning(use, gender, read.text, start, places[last] + 1)

    def _term(self, use: _Use) -> LexiconTerm:
        """Return the term that a phrase so used belongs to."""
        return self._lexicon.terms[use.category][use.term]

    def _warning(
        self, use: _Use, gender: str | None, text: str, start: int, end: int
    ) -> Iterator[LexiconWarning]:
        """Yield the warning of a match, unless it is none for a person of *gender*."""
        term = self._term(use)
        severity = term.severity_for(gender)
        if severity is not None:
            yield LexiconWarning(
                category=use.category,
                severity=severity,
                text=text[start:end],
                start=start,
                end=end,
                term=term.name,
                suggestion=term.suggestion,
                source=term.source,
            )


@dataclass(slots=True)
class _Sightings:
    """Places of phrases in the plain form of a text, by what they are used for."""

    #: The lists that have exceptions.
    silenced: Collection[_Use]
    #: What has to stand directly before a match, or behind it.
    touching: Collection[_Use]
    matches: list[tuple[int, int, _Use]] = field(default_factory=list)
    #: What stands in which sentence.
    sentences: set[tuple[_Use, int]] = field(default_factory=set)
    #: Where the phrases of ``unless`` begin and end, in the order of their ends.
    unless: dict[_Use, tuple[list[int], list[int]]] = field(default_factory=dict)
    #: What begins where, and what ends where, of these.
    beginnings: set[tuple[_Use, int]] = field(default_factory=set)
    endings: set[tuple[_Use, int]] = field(default_factory=set)
    #: Whether the text decides on somebody, or appraises somebody.
    decides: bool = False
    #: Where phrases of lists with exceptions stand, until all exceptions are known.
    doubtful: list[tuple[int, int, int, _Use]] = field(default_factory=list)

    def add(self, use: _Use, start: int, end: int, sentence: int) -> None:
        """Note that a phrase so used stands from *start* to *end*, in *sentence*."""
        if use.kind == "match":
            self.matches.append((start, end, use))
        elif use.kind == "unless":
            starts, ends = self.unless.setdefault(use, ([], []))
            starts.append(start)
            ends.append(end)
        elif use in self.silenced:
            self.doubtful.append((start, end, sentence, use))
        else:
            self._note(use, start, end, sentence)

    def settle(self) -> None:
        """Note what counts of the lists with exceptions: all phrases have been added."""
        for start, end, sentence, use in self.doubtful:
            if not self.covers(_exception_of(use), start, end):
                self._note(use, start, end, sentence)
        self.doubtful.clear()

    def _note(self, use: _Use, start: int, end: int, sentence: int) -> None:
        """Note in which sentence a phrase so used stands, and what it may touch."""
        self.sentences.add((use, sentence))
        self.decides |= use == _DECIDING
        if use in self.touching:
            self.beginnings.add((use, start))
            self.endings.add((use, end))

    def is_others_own(self, start: int, sentence: int) -> bool:
        """Return whether what stands at *start* belongs to somebody whom nobody decides on: the
        writer, or a relative. It is no reason for anything where nothing is refused.
        """
        return (_OTHERS_OWN, start - 1) in self.endings and not self.holds(_REFUSING, sentence)

    @staticmethod
    def touches(
        kind: str, phrases: Collection[str], use: _Use, place: int, places: set[tuple[_Use, int]]
    ) -> bool:
        """Return whether one of *phrases*, which the term of *use* has as *kind*, is at *place*, or
        there are none.
        """
        uses = _uses_of(kind, phrases, use)
        return not phrases or not places.isdisjoint(zip(uses, repeat(place)))

    def holds(self, use: _Use, sentence: int) -> bool:
        """Return whether a phrase so used stands in *sentence*."""
        return (use, sentence) in self.sentences

    def is_silent(self, sentence: int) -> bool:
        """Return whether *sentence* states a policy or quotes a law."""
        if self.holds(_LOUD, sentence):
            return False
        return self.holds(_QUIET, sentence) or self.is_listing(sentence)

    def is_listing(self, sentence: int) -> bool:
        """Return whether *sentence* lists characteristics of which it says nothing but a policy."""
        listed = {(_LISTING, sentence), (_POLICY, sentence)} <= self.sentences
        uses = (_JUDGING, _WEIGHING, _REFUSING)
        return listed and self.sentences.isdisjoint(zip(uses, repeat(sentence)))

    def spares(self, sentence: int, *, offers: bool) -> bool:
        """Return whether *sentence* refuses nothing, and makes an offer, where *offers* count, or
        is about the writer's family or an animal, in a letter that decides on nobody.
        """
        if self.holds(_REFUSING, sentence):
            return False
        # "Our puppy and your wheelchair would be a bad mix", says the letter that turns one down.
        if not self.decides and self.holds(_BYSTANDERS, sentence):
            return True
        return offers and self.holds(_OFFER, sentence)

    def is_said(self, start: int, end: int) -> bool:
        """Return whether something is said of what stands from *start* to *end*: that it is wanted,
        or what it would do.
        """
        wanted = (_WANTED, start - 1) in self.endings
        return wanted or (_SAID_OF, end + 1) in self.beginnings

    def judges(self, sentence: int, everyday: bool) -> bool:
        """Return whether *sentence* may say what is thought of, or decided on, the reader or the
        person whom the letter is about. A doubt or a refusal says it. What only weighs ("think",
        "would") does of what is not *everyday*, or where the letter decides on somebody.
        """
        # "Wheelchair. I am not rebuilding an office for one person."
        judged = self.holds_soon(_JUDGING, sentence, further=self.decides)
        # "We have had trouble with Nigerian account holders. You will see that …"
        if not self.holds_soon(_READER, sentence, further=not everyday):
            return judged and self.decides
        weighs = self.decides or not everyday
        return judged or (weighs and self.holds(_WEIGHING, sentence))

    def holds_soon(self, use: _Use, sentence: int, *, further: bool) -> bool:
        """Return whether a phrase so used stands in *sentence* or, where *further*, in the next."""
        last = sentence + int(further)
        return not self.sentences.isdisjoint(((use, sentence), (use, last)))

    def holds_any(self, kind: str, phrases: Iterable[str], use: _Use, sentence: int) -> bool:
        """Return whether one of *phrases*, which the term of *use* has as *kind*, stands there."""
        uses = _uses_of(kind, phrases, use)
        return not self.sentences.isdisjoint(zip(uses, repeat(sentence)))

    def covers(self, use: _Use, start: int, end: int) -> bool:
        """Return whether a match stands within a phrase of the ``unless`` that *use* is."""
        if use not in self.unless:
            return False
        starts, ends = self.unless[use]
        place = bisect_right(ends, end - 1)
        # Those that end here or later; the phrases are short, so few of them can begin before.
        return min(starts[place : place + 8], default=end) <= start


@cache
def _exception_of(use: _Use) -> _Use:
    """Return what ``unless`` is used for, of a term's match or of a list."""
    if use.kind == "match":
        return use._replace(kind="unless")
    return _Use("unless", term=use.kind)


def _uses(lexicon: Lexicon) -> dict[str, list[_Use]]:
    """Return each form of a phrase with what it is used for."""
    uses: dict[str, list[_Use]] = {}
    for phrases, use in _used_phrases(lexicon):
        for form in _forms_of_all(phrases):
            uses.setdefault(form, []).append(use)
    return uses


#: The fields of a term that list phrases.
_KINDS_OF_PHRASES = ("match", "near", "not_near", "after", "before", "unless", "subject")


def _used_phrases(lexicon: Lexicon) -> Iterator[tuple[Sequence[str], _Use]]:
    """Yield the phrases of each list with what they are used for: those of the context, then those
    of each term that is not switched off.
    """
    for name, context in lexicon.context.items():
        yield context.match, _Use(f"@{name}")
        yield context.unless, _exception_of(_Use(f"@{name}"))
    for category, term in lexicon.all_terms():
        if term.severity == "off":
            continue
        for kind in _KINDS_OF_PHRASES:
            yield getattr(term, kind), _Use(kind, category, term.name)


def _uses_of(kind: str, phrases: Iterable[str], use: _Use) -> tuple[_Use, ...]:
    """Return what *phrases*, which the term of *use* has as *kind*, are used for."""
    return (use._replace(kind=kind), *_lists_in(phrases))


def _lists_in(phrases: Iterable[str]) -> Iterator[_Use]:
    """Yield those of *phrases* that name a list, as what they are used for."""
    for phrase in phrases:
        if phrase.startswith("@"):
            yield _Use(phrase)


# ---------------------------------------------------------------- a text as the automaton reads it

#: A word, with what stands for an apostrophe in it; underscores and marks part words.
_WORD = re.compile(r"[^\W_]+(?:['\u2019\u02bc][^\W_]+)*")
# A run of marks is tried where it begins, and once: at each of its marks, it would take a time
# quadratic in the run.
_READ = re.compile(
    r"(?P<word>[^\W_]+(?:['\u2019\u02bc][^\W_]+)*)"
    r"|(?P<end>(?<![.!?])[.!?]++(?=[\s\"')\u201d\u2019]|\Z)|\n[^\S\n]*\n)"
)
#: Four or more single letters with one mark or blank between each two: "c u l t u r e", "f.i.t.s".
_SPACED = re.compile(r"(?<![^\W_])[^\W\d_](?:[ .\-_*\u00b7][ ]?[^\W\d_]){3,}(?![^\W_])")
_CAPITALISED = re.compile(r"[A-Z][a-z]+")
#: A title, a greeting, an initial, or a name before the last: "Janet Young", "Dear Christian".
_BEFORE_A_NAME = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Miss|Dr|Sir|Dear|Hi|Hello)\.?|\b[A-Z]\.|"
    r"(?:^|[^.!?\s])[ ,][A-Z][a-z]+|\n[A-Z][a-z]+| &|[A-Z][a-z]+-)[ ]?\Z"
)
#: A year, a form of company or a co-author behind a name: "Young (2011)", "Young & Partners".
_AFTER_A_NAME = re.compile(
    r"(?:['\u2019]s)?,? ?(?:\((?:1[89]|20)\d\d|et al\b|& [A-Z]|and (?:Partners|Sons|Co)\b|"
    r"(?:Ltd|LLP|LLC|Inc|Plc|PLC|Limited|Solicitors|Partners|Associates)\b)"
)
#: More capitals, but not behind an article that a kind has: "the Sikh Federation", "the Young Vic".
_REST_OF_A_NAME = re.compile(r" [A-Z][a-z]+")
_ARTICLE = re.compile(r"\b[Aa]n? \Z")
#: What is left of an address: "young@enron.com", "Becky Young/NA/Enron@ENRON".
_REST_OF_AN_ADDRESS = re.compile(r"[\w.]{0,30}(?: ?/ ?[\w-]{1,20}){0,4} ?@")
#: The start of a quoted title: 'your paper, "Ageing bridges and the cost of delay"'.
_BEFORE_A_TITLE = re.compile(
    r"\b(?:paper|article|book|chapter|essay|report|talk|lecture|course|session|workshop|exhibition|"
    r"film|play|novel|song|poem|thesis|dissertation|manuscript|study|proposal|module|series|titled|"
    r"entitled|called)s?,? ?[\"\u201c'\u2018](?:[\w\u2019'-]+ ){0,8}\Z"
)
#: Letters of a phrase that is looked for in words spaced out.
_FEWEST_SPACED = 7
_LONGEST_SPACED = 200
#: What a reader takes for a Latin letter, among small letters (after Unicode Technical Standard 39,
#: confusables).
_LOOK_ALIKE = str.maketrans(
    "аеорсухіјѕһԁԛԝѵвнмткьєоυαειοκντρχϲβημıɩɡᴀᴇᴏᴜ", "aeopcyxijshdqwvbhmtkbeouaeiokvtpxcbhmiigaeou"
)
_LEET = str.maketrans("013457@$", "oieastas")
_INVISIBLE = re.compile(
    "[\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)


#: A short form, and the end of one → what it is short for.
_SHORT = {"cannot": "can not", "can't": "can not", "won't": "will not", "shan't": "shall not"}
_SHORT_ENDS = {
    "'s": "",
    "'re": " are",
    "'ve": " have",
    "'ll": " will",
    "'m": " am",
    "n't": " not",
}
_LONGEST_WORD = 100


@lru_cache(maxsize=65_536)
def plain_word(word: str) -> str:
    """*word* in plain small letters: look-alikes, accents and figures for letters undone, without a
    possessive s; a short form in full ("you're" → "you are"). A word that is too long for any
    phrase is an ellipsis.
    """
    if len(word) > _LONGEST_WORD:
        return "…"
    if not word.isascii():
        word = _latin(word)
    if _is_leet(word):
        word = word.translate(_LEET)
    if word in _SHORT:
        return _SHORT[word]
    for end, meaning in _SHORT_ENDS.items():
        if word.endswith(end):
            return word.removesuffix(end) + meaning
    return word


def _latin(word: str) -> str:
    """*word* without look-alikes and accents, with one kind of apostrophe."""
    word = unicodedata.normalize("NFKD", word).casefold().translate(_LOOK_ALIKE)
    word = "".join(filterfalse(unicodedata.combining, word))
    return word.replace("\u2019", "'").replace("\u02bc", "'")


def _is_leet(word: str) -> bool:
    """Return whether *word* has figures or signs in the place of some of its letters."""
    if len(word) <= 2 or "'" in word:
        return False
    letters = sum(map(str.isalpha, word))
    return letters < len(word) < letters * 2


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the sentence begins and ends in which the characters of *text* from *start* to
    *end* stand.
    """
    first = 0
    for match in _READ.finditer(text):
        if match["word"]:
            continue
        if match.end() <= start:
            first = match.end()
        elif match.start() >= end:
            return first, match.end()
    return first, len(text)


class _ReadText:
    """A text as words with a blank between each two; ``¶`` stands where a sentence ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._origin: list[int] | None = None
        self._shown = text
        if not text.isascii() and _INVISIBLE.search(text):
            self._leave_out_invisible()
        self._starts = list[int]()
        self._spans = list[tuple[int, int]]()
        #: Where sentences end, the first of them before the text.
        self._ends = [-1]
        words = []
        place = 1
        for match in _READ.finditer(self._shown):
            if match["word"]:
                word = plain_word(match["word"].casefold())
            else:
                word = "¶"
                self._ends.append(place)
            self._starts.append(place)
            self._spans.append(match.span())
            words.append(word)
            place += len(word) + 1
        self.plain = f" {' '.join(words)} "

    def _leave_out_invisible(self) -> None:
        """Show the text without invisible signs, and note where each character stands in it."""
        self._origin = []
        for place, character in enumerate(self.text):
            if not _INVISIBLE.match(character):
                self._origin.append(place)
        self._shown = "".join(map(self.text.__getitem__, self._origin))

    @property
    def is_letter(self) -> bool:
        """Return whether the text is as long as a letter."""
        return len(self._spans) >= _LETTER

    def sentence_at(self, place: int) -> int:
        """The number of the sentence that *place* of the plain text is in."""
        return bisect_right(self._ends, place)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where the words from *start* to *end* of the plain text stand in the text."""
        first, last = self._shown_span(start, end)
        return self._place(first), self._place(last - 1) + 1

    def _shown_span(self, start: int, end: int) -> tuple[int, int]:
        """The same in the text without invisible signs."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        return self._spans[first][0], self._spans[last][1]

    def opens_sentence(self, start: int) -> bool:
        """Return whether what stands at *start* of the plain text is the first of its sentence."""
        return self._ends[self.sentence_at(start) - 1] + 2 == start

    def is_name(self, start: int, end: int) -> bool:
        """Return whether the words from *start* to *end* of the plain text are written as a part of
        a name: capitalised behind a title, a greeting or another such word of the line.
        """
        begin, stop = self._shown_span(start, end)
        before = self._shown[max(0, begin - _LONGEST_WORD) : begin]
        after = self._shown[stop : stop + _LONGEST_WORD]
        if _REST_OF_AN_ADDRESS.match(after):
            return True
        if not _CAPITALISED.fullmatch(self._shown[begin:stop]):
            return False
        if _BEFORE_A_NAME.search(before) or _AFTER_A_NAME.match(after):
            return True
        if _BEFORE_A_TITLE.search(before):
            return True
        if self.opens_sentence(start) or _ARTICLE.search(before):
            return False
        return _REST_OF_A_NAME.match(after) is not None

    def _place(self, shown: int) -> int:
        """Return where in the text stands what is at *shown* of it without invisible signs."""
        if self._origin is None:
            return shown
        return self._origin[shown]

    def spaced_words(self) -> Iterator[tuple[int, int]]:
        """Yield where letters are spaced out."""
        for match in _SPACED.finditer(self._shown):
            yield match.start(), min(match.end(), match.start() + _LONGEST_SPACED)

    def joined(self, start: int, end: int) -> tuple[str, list[int]]:
        """The letters there without what stands between them, and where each stands in the text."""
        letters = []
        places = []
        for place in range(start, end):
            character = self._shown[place]
            if character.isalpha():
                letters.append(plain_word(character.casefold())[:1] or " ")
                places.append(self._place(place))
        return "".join(letters), places
