"""Find what a text should not say of a person: phrases that stand in for what is not job-related.

The phrases are data, a file a category in ``personas/lexicon/``; a project's own folder of that
name adds terms, and takes the place of ours by name. docs/lexicon.md says how a term is written and
when it keeps quiet.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from itertools import islice, product
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import msgspec

from pytest_fairness.documents import Text, entries, open_document
from pytest_fairness.errors import InvalidEntry, unknown

Severity = Literal["critical", "high", "medium", "low"]
#: From the worst on.
SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low")
CATEGORIES = (
    "age", "gender", "race_ethnicity", "disability", "religion", "pregnancy_family", "appearance", "health",
    "accent_language", "marital_status", "cultural_fit",
)  # fmt: skip
#: A text that holds more is at fault without doubt; further warnings are not listed.
MOST_WARNINGS = 1_000
#: Forms that one phrase may stand for.
_MOST_FORMS = 1_000
_CONTEXT = "lexicon/context.yaml"


class LexiconTerm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One term of a category. ``match``: phrases, where ``[a|b|]`` stands for a, b or nothing.

    A match counts only where one of ``near`` stands in the same sentence, if there are any, and
    none of ``not_near``; it does not count within a phrase of ``unless``. ``@name`` in these lists
    stands for a list of ``context.yaml``. ``gender``: whose words these are, so that they are
    judged against the person's own. ``against``: who is put at a disadvantage. ``severity`` ``off``
    takes a term away. Raises InvalidEntry for a phrase of too many forms.
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
    unless: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        for phrase in (*self.match, *self.near, *self.not_near, *self.unless):
            if not phrase.startswith("@"):
                forms_of(phrase)
        quiet = {
            form
            for phrase in self.unless
            if not phrase.startswith("@")
            for form in forms_of(phrase)
        }
        for phrase in self.match:
            for form in forms_of(phrase):
                if form in quiet:
                    raise InvalidEntry(
                        f"{form!r} is a phrase of match and of unless, so that it never counts"
                    )


class ContextList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Phrases that several terms name as ``@name``; those of ``quiet`` silence the whole sentence
    they stand in, unless one of ``loud`` stands there too.
    """

    name: str
    match: tuple[Text, ...]
    source: Text


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
        phrase = " ".join(self.phrase.casefold().split())
        return (
            self.category == warning.category
            and self.term in ("", warning.term)
            and phrase in ("", " ".join(warning.text.casefold().split()))
        )


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
        for category, terms_of_category in terms.items():
            for term in terms_of_category.values():
                for phrase in (*term.near, *term.not_near, *term.unless):
                    if phrase.startswith("@") and phrase[1:] not in lexicon.context:
                        raise InvalidEntry(
                            f"lexicon/{category}.yaml: {term.name}: {_CONTEXT} has no list "
                            f"{phrase!r}"
                        )
        return lexicon

    def accepting(self, path: Path, today: datetime.date) -> tuple[Self, list[str]]:
        """This lexicon with the entries of the file *path* that hold *today*, and a line for each
        that has expired.

        Raises UsageError, with file and line, for an entry that is wrong or names a term that there
        is not.
        """
        document = open_document(path)
        accepted = document.convert(tuple[AcceptedWarning, ...])
        for at, entry in enumerate(accepted):
            if entry.category not in self.terms:
                raise document.wrong(
                    unknown("category", entry.category, CATEGORIES), at, "category"
                )
            if entry.term and entry.term not in self.terms[entry.category]:
                raise document.wrong(
                    unknown("term", entry.term, self.terms[entry.category]), at, "term"
                )
            if not entry.term and not entry.phrase.strip():
                raise document.wrong("term or phrase: say which warnings are accepted", at)
        expired = [
            f"{path.name}: {entry.term or entry.phrase} ({entry.category}), accepted by "
            f"{entry.who}, expired on "
            f"{entry.until}: read it again, or take it out"
            for entry in accepted
            if entry.until < today
        ]
        return replace(
            self, accepted=tuple(entry for entry in accepted if entry.until >= today)
        ), expired

    @cached_property
    def digest(self) -> str:
        """16 hex digits."""
        data = msgspec.json.encode(
            [self.terms, self.context, *filter(None, [self.accepted])], order="deterministic"
        )
        return sha256(data).hexdigest()[:16]

    def warnings(self, text: str, *, gender: str | None = None) -> tuple[LexiconWarning, ...]:
        """Return what *text* says that it should not, in the order of the text; at most
        :data:`MOST_WARNINGS`.

        *gender* is that of the person whom the text is about (``female``, ``male``,
        ``non_binary``), None where it is unknown. Of matches that overlap within a category the
        worst stands, then the longest. The time it takes is proportional to the length of *text*.
        """
        read = _ReadText(text)
        first = islice(self._phrases.matches(read, gender), 4 * MOST_WARNINGS)  # some overlap
        ordered = sorted(first, key=lambda warning: (warning.start, -warning.end))
        kept: list[LexiconWarning] = []
        last: dict[str, int] = {}
        for warning in ordered:
            at = last.get(warning.category)
            if at is not None and warning.start < kept[at].end:
                if _rank(warning) < _rank(kept[at]):
                    kept[at] = warning
                continue
            if len(kept) == MOST_WARNINGS:
                break
            last[warning.category] = len(kept)
            kept.append(warning)
        return tuple(
            self._reviewed(warning)
            for warning in sorted(
                kept, key=lambda warning: (warning.start, warning.end, warning.category)
            )
        )

    def _reviewed(self, warning: LexiconWarning) -> LexiconWarning:
        who = next((entry.who for entry in self.accepted if entry.covers(warning)), "")
        if who:
            return replace(warning, accepted=who)
        return warning

    @cached_property
    def _phrases(self) -> _Phrases:
        return _Phrases(self)


def _rank(warning: LexiconWarning) -> tuple[int, int]:
    return SEVERITIES.index(warning.severity), warning.start - warning.end


@cache
def shipped_lexicon() -> Lexicon:
    """The lexicon as it ships."""
    return Lexicon.load()


# ---------------------------------------------------------------- phrases

_CHOICE = re.compile(r"\[([^\[\]]*)\]")


@lru_cache(maxsize=16_384)
def forms_of(phrase: str) -> tuple[str, ...]:
    """Every text that *phrase* stands for, as tokens with a blank between them. Raises
    InvalidEntry.
    """
    pieces = _CHOICE.split(phrase)
    if any(character in "[]|" for piece in pieces[::2] for character in piece):
        raise InvalidEntry(
            f"{phrase!r} has a bracket without its other, or a | outside brackets: write [a|b]"
        )
    options = [piece.split("|") if number % 2 else [piece] for number, piece in enumerate(pieces)]
    size = 1
    for some in options:
        size *= len(some)
    if size > _MOST_FORMS:
        raise InvalidEntry(
            f"{phrase!r} stands for {size} forms; at most {_MOST_FORMS}: write several phrases"
        )
    forms = dict.fromkeys(" ".join(_tokens("".join(parts))) for parts in product(*options))
    if "" in forms:
        raise InvalidEntry(f"{phrase!r} has no word in one of its forms")
    return tuple(forms)


def _tokens(text: str) -> list[str]:
    return [plain_word(word) for word in _WORD.findall(text.casefold())]


class _Use(NamedTuple):
    """What a phrase is: ``match``, ``near``, ``not_near`` or ``unless`` of a term, or one of the
    list ``@name``.
    """

    kind: str
    category: str = ""
    term: str = ""


_QUIET, _LOUD = _Use("@quiet"), _Use("@loud")


class _Phrases:
    """The phrases of a lexicon in one automaton (Aho & Corasick 1975), each with what it is used
    for.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        import ahocorasick

        self._lexicon = lexicon
        uses: dict[str, list[_Use]] = {}
        for name, listed in lexicon.context.items():
            _add(uses, _Use(f"@{name}"), listed.match)
        for category, terms in lexicon.terms.items():
            for name, term in terms.items():
                for kind in ("match", "near", "not_near", "unless"):
                    if term.severity != "off":
                        _add(uses, _Use(kind, category, name), getattr(term, kind))
        self._automaton: Any = ahocorasick.Automaton()
        self._spaced: Any = ahocorasick.Automaton()
        for form, used in uses.items():
            self._automaton.add_word(f" {form} ", (len(form) + 2, used))
            letters = form.replace(" ", "")
            matching = [use for use in used if use.kind == "match" and not self._term(use).near]
            if matching and len(letters) >= _FEWEST_SPACED:
                self._spaced.add_word(letters, (len(letters), matching))
        for automaton in (self._automaton, self._spaced):
            automaton.make_automaton()

    def matches(self, read: _ReadText, gender: str | None) -> Iterator[LexiconWarning]:
        """Each match that counts."""
        matches_: list[tuple[int, int, _Use]] = []
        sentences: dict[_Use, set[int]] = {}
        covered: dict[_Use, list[tuple[int, int]]] = {}
        for last, (length, uses) in (
            self._automaton.iter(read.plain) if len(self._automaton) else ()
        ):
            start, end = last - length + 2, last  # without the blanks on both sides
            for use in uses:
                if use.kind == "match":
                    matches_.append((start, end, use))
                elif use.kind == "unless":
                    covered.setdefault(use, []).append((start, end))
                else:
                    sentences.setdefault(use, set()).add(read.sentence_at(start))
        for start, end, use in matches_:
            counts = self._counts(use, read.sentence_at(start), sentences)
            if counts and not _is_covered(covered.get(use._replace(kind="unless"), ()), start, end):
                yield from self._warning(use, gender, read.text, *read.span(start, end))
        yield from self._spaced_out(read, gender)

    def _counts(self, use: _Use, sentence: int, sentences: Mapping[_Use, set[int]]) -> bool:
        """Return whether what else stands in the sentence lets a match count."""

        def beside(kind: str, phrases: Sequence[str]) -> bool:
            lists = (_Use(phrase) for phrase in phrases if phrase.startswith("@"))
            return any(
                sentence in sentences.get(use_, ()) for use_ in (use._replace(kind=kind), *lists)
            )

        term = self._term(use)
        quiet = sentence in sentences.get(_QUIET, ()) and sentence not in sentences.get(_LOUD, ())
        if quiet or (term.near and not beside("near", term.near)):
            return False
        return not (term.not_near and beside("not_near", term.not_near))

    def _spaced_out(self, read: _ReadText, gender: str | None) -> Iterator[LexiconWarning]:
        """Matches in words whose letters are spaced out."""
        for first, end in read.spaced_words():
            word, places = read.joined(first, end)
            for last, (length, uses) in self._spaced.iter(word) if len(self._spaced) else ():
                for use in uses:
                    yield from self._warning(
                        use, gender, read.text, places[last - length + 1], places[last] + 1
                    )

    def _term(self, use: _Use) -> LexiconTerm:
        return self._lexicon.terms[use.category][use.term]

    def _warning(
        self, use: _Use, gender: str | None, text: str, start: int, end: int
    ) -> Iterator[LexiconWarning]:
        term = self._term(use)
        severity = _severity(term, gender)
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


def _add(uses: dict[str, list[_Use]], use: _Use, phrases: Iterable[str]) -> None:
    for phrase in phrases:
        for form in () if phrase.startswith("@") else forms_of(phrase):
            uses.setdefault(form, []).append(use)


def _severity(term: LexiconTerm, gender: str | None) -> str | None:
    """Return how bad a match is; None where the words are the person's own gender's."""
    if not term.gender or gender is None:
        return term.severity
    # To call somebody by another gender than the own is worse than to mention it.
    if gender == term.gender:
        return None
    return "high"


def _is_covered(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Return whether one of *spans*, which are in the order of their ends, holds start to end."""
    at = bisect_right(spans, end - 1, key=lambda span: span[1])
    # Those that end here or later; the phrases are short, so few of them can begin before.
    return any(first <= start and end <= last for first, last in spans[at : at + 8])


# ---------------------------------------------------------------- a text as the automaton reads it

#: A word, with what stands for an apostrophe in it; underscores and marks part words.
_WORD = re.compile(r"[^\W_]+(?:['\u2019\u02bc][^\W_]+)*")
# A run of marks is tried where it begins, and once: at each of its marks, it would take a time
# quadratic in the run.
_READ = re.compile(
    r"(?P<word>[^\W_]+(?:['\u2019\u02bc][^\W_]+)*)|(?P<end>(?<![.!?])[.!?]++(?=[\s\"')\u201d\u2019]|\Z)|\n[^\S\n]*\n)"
)
#: Four or more single letters with one mark or blank between each two: "c u l t u r e", "f.i.t.s".
_SPACED = re.compile(r"(?<![^\W_])[^\W\d_](?:[ .\-_*\u00b7][ ]?[^\W\d_]){3,}(?![^\W_])")
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
    "[\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)


#: What follows an apostrophe → what it is short for.
_SHORT = {"s": "", "re": " are", "ve": " have", "ll": " will", "m": " am", "t": " not"}
_LONGEST_WORD = 100
_STEMS = {"can": "can", "won": "will", "shan": "shall"}


@lru_cache(maxsize=65_536)
def plain_word(word: str) -> str:
    """*word* in plain small letters: look-alikes, accents and figures for letters undone, without a
    possessive s; a short form in full ("you're" → "you are"). A word that is too long for any
    phrase is an ellipsis.
    """
    if len(word) > _LONGEST_WORD:
        return "…"
    if not word.isascii():
        word = unicodedata.normalize("NFKD", word).casefold().translate(_LOOK_ALIKE)
        word = (
            "".join(character for character in word if not unicodedata.combining(character))
            .replace("\u2019", "'")
            .replace("\u02bc", "'")
        )
    letters = sum(map(str.isalpha, word))
    if letters < len(word) and letters * 2 > len(word) > 2 and "'" not in word:
        word = word.translate(_LEET)
    if word == "cannot":
        return "can not"
    stem, apostrophe, short = word.rpartition("'")
    if not apostrophe or short not in _SHORT:
        return word
    if short != "t":
        return f"{stem}{_SHORT[short]}"
    if stem.endswith("n"):
        return f"{_STEMS.get(stem, stem.removesuffix('n'))} not"
    return word


class _ReadText:
    """A text as words with a blank between each two; ``¶`` stands where a sentence ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._origin: list[int] | None = None
        shown = text
        if not text.isascii() and _INVISIBLE.search(text):
            kept = [at for at, character in enumerate(text) if not _INVISIBLE.match(character)]
            shown = "".join(text[at] for at in kept)
            self._origin = kept
        self._shown = shown
        words = []
        self._starts = list[int]()
        self._spans = list[tuple[int, int]]()
        self._ends = list[int]()
        place = 1
        for match in _READ.finditer(shown):
            word = "¶"
            if match["word"]:
                word = plain_word(match["word"].casefold())
            if word == "¶":
                self._ends.append(place)
            self._starts.append(place)
            self._spans.append(match.span())
            words.append(word)
            place += len(word) + 1
        self.plain = f" {' '.join(words)} "

    def sentence_at(self, place: int) -> int:
        """The number of the sentence that *place* of the plain text is in."""
        return bisect_right(self._ends, place)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where the words from *start* to *end* of the plain text stand in the text."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        return self._place(self._spans[first][0]), self._place(self._spans[last][1] - 1) + 1

    def _place(self, shown: int) -> int:
        if self._origin is None:
            return shown
        return self._origin[shown]

    def spaced_words(self) -> Iterator[tuple[int, int]]:
        """Yield where letters are spaced out."""
        for match in _SPACED.finditer(self._shown):
            yield match.start(), min(match.end(), match.start() + _LONGEST_SPACED)

    def joined(self, start: int, end: int) -> tuple[str, list[int]]:
        """The letters there without what stands between them, and where each stands in the text."""
        places = [at for at in range(start, end) if self._shown[at].isalpha()]
        return "".join(plain_word(self._shown[at].casefold())[:1] or " " for at in places), [
            *map(self._place, places)
        ]
