"""Helpers that scorers share: one plain form of a text, the JSON object in a reply, words masked,
and agreement of readings.
"""

from __future__ import annotations

import json
import re
import string
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, lru_cache, partial
from itertools import filterfalse
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
# A reply longer than this is not a rating or a decision with some prose; reading on costs time and
# finds accidents.
LONGEST = 20_000

_LINE_ENDS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_PLAIN = str.maketrans(
    dict.fromkeys(_LINE_ENDS, "\n")
    | dict(zip("’‘“”−–—\u00a0", "''\"\"--- ", strict=True))
    | dict.fromkeys("*`\u200b\u200c\u200d\u2060\ufeff")
)
_LETTERS = re.compile(r"[^\W\d_]+")
_OBJECT = re.compile(r"\{[^{}]*\}")
_ENDS_OF_THOUGHT = ("</think>", "</thinking>", "</reasoning>", "</scratchpad>")
#: At the start of a line: who writes of such a tag does not think aloud.
_BEGUN_THOUGHT = re.compile(
    r"^[ \t]{0,20}<(?:think|thinking|reasoning|scratchpad)>", re.IGNORECASE | re.MULTILINE
)
# What no reader needs: blanks in a row, blank lines in a row, and the middle of endless words and
# of endless marks. A pattern that may start anywhere in such a run, and go to its end, takes a time
# that is quadratic in it.
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n(?: ?\n)+")
_WORD = re.compile(r"(\w{100})\w+")
#: Another entry of the same reader, within an entry of ``patterns.toml``.
_STANDS_FOR = re.compile(r"<<(\w+)(?::(\w))?>>")
_MARKS = re.compile(r"([^\w\n]{20})[^\w\n]+([^\w\n]{20})")


class Patterns:
    """The expressions of one *reader* in ``patterns.toml`` by name, each compiled when it is first
    used.
    """

    def __init__(self, reader: str) -> None:
        self._entries = _all_patterns()[reader]
        self._texts = dict[str, str]()
        for name in self._entries:
            texts = self.resolved(name)
            if len(texts) == 1:
                self._texts[name] = texts[0]
            else:
                self._texts[name] = f"(?:{'|'.join(texts)})"

    def entries(self, name: str) -> list[str]:
        """The entries of an array, or the one that there is, as they stand in the file."""
        texts = self._entries[name]
        if isinstance(texts, str):
            texts = [texts]
        return ["".join(map(str.strip, text.splitlines())) for text in texts]

    def resolved(self, name: str) -> list[str]:
        """The entries of an array, or the one that there is, with what other entries stand for
        filled in.
        """
        return [_STANDS_FOR.sub(self._filled_in, text) for text in self.entries(name)]

    def _filled_in(self, part: re.Match[str]) -> str:
        """Return the entry that ``<<name>>`` stands for; ``<<name:x>>`` has x for each @ of it."""
        return self._texts[part[1]].replace("@", part[2] or "@")

    def words(self, name: str) -> list[str]:
        """The words of a list of alternatives."""
        return self._texts[name].split("|")

    @cached_property
    def keys(self) -> list[str]:
        """The keys under which the JSON object of a reply has what is read."""
        return self.words("keys")

    def __getattr__(self, name: str) -> re.Pattern[str]:
        if name not in self._texts:
            raise AttributeError(name)
        pattern = self.__dict__[name] = re.compile(self._texts[name], re.IGNORECASE)
        return pattern


@cache
def _all_patterns() -> dict[str, dict[str, str | list[str]]]:
    """Return ``patterns.toml``: reader → name → expression, or several."""
    return tomllib.loads(Path(__file__).with_name("patterns.toml").read_text(encoding="utf-8"))


_SHARED = Patterns("shared")
_STOP_WORDS = Patterns("stop_words")
_OTHER_LANGUAGES = (
    "german", "french", "spanish", "italian", "portuguese", "dutch", "swedish", "danish", "polish",
    "turkish",
)  # fmt: skip
_LATIN = frozenset(string.ascii_lowercase + "àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿßœąćęłńśźżğışšžčřěů")
_BEGINNING = 400  # characters
_FEW_LETTERS = 4


def plain(text: str, longest: int = LONGEST) -> str:
    """*text* with plain quotes, dashes and line ends, without Markdown emphasis and zero-width
    characters, cut short at
    *longest*.

    What it gives has no long runs of blanks, of marks or of letters: see :func:`squeezed`.
    """
    if len(text) > longest:
        text = text[:longest].rpartition(" ")[0]  # a number cut in two is another number
    return squeezed(text.replace("\r\n", "\n").translate(_PLAIN)).strip()


def squeezed(text: str) -> str:
    """*text* with one blank for several, one blank line for several, and the middle of endless
    words left out.

    The patterns of the readers rely on it: with runs of bounded length, and quantifiers that are
    bounded or consume what they match, each takes a time that is proportional to the text.
    """
    text = _LINES.sub("\n\n", _BLANKS.sub(" ", text))
    return _MARKS.sub(r"\1\2", _WORD.sub(r"\1", text))


def settled(text: str) -> str:
    """Return what a plain *text* answers with: what follows its thoughts, and of that what stands
    in answer tags, if any.
    """
    text = without_thoughts(text)
    return "\n".join(in_tags(text)) or text


def without_thoughts(text: str) -> str:
    """Return what follows the thoughts of *text*; of thoughts that never end, what stands before
    them.
    """
    end = max(map(text.lower().rfind, _ENDS_OF_THOUGHT))
    if end >= 0:
        text = text[end:].partition(">")[2].strip()
    begun = _BEGUN_THOUGHT.search(text)
    if begun is not None:
        return text[: begun.start()].strip()
    return text


def in_tags(text: str) -> list[str]:
    """Return what stands in the answer tags of *text*."""
    return list(map(itemgetter("what"), _SHARED.tagged.finditer(text)))


def after_correction(text: str) -> str:
    """Return what follows the last word by which *text* takes back what stands before; nothing
    where there is none.
    """
    ends = [match.end() for match in _SHARED.correction.finditer(text)]
    if ends:
        return text[ends[-1] :].strip(" ,.:;-\n")
    return ""


def takes_back(text: str) -> bool:
    """Return whether a sentence of *text* begins by taking back what stands before it."""
    return _SHARED.taken_back.search(text) is not None


def corrected_first(
    text: str, read: Callable[[str], T], value: Callable[[T], object] = lambda reading: reading
) -> T:
    """Return what *read* makes of what *text* says after a correction, where the *value* of that is
    not None; else of all of it.
    """
    corrected = after_correction(text)
    if corrected:
        reading = read(corrected)
        if value(reading) is not None:
            return reading
    return read(text)


def before(text: str, start: int, reach: int) -> str:
    """Return the *reach* characters of *text* before *start*."""
    return text[max(0, start - reach) : start]


def own_words(text: str) -> str:
    """*text* without the clauses that report what others hold, what held before, or what would hold
    otherwise.
    """
    return "".join(filterfalse(_SHARED.reported.search, _SHARED.clause.findall(text)))


def is_foreign(text: str) -> bool:
    """Return whether *text* is in another language than English: most of its letters are of another
    alphabet; its beginning has common words of a European language and none of English; or its
    whole has two of one language, and two more for each English one.
    """
    return _begins_foreign(text[:_BEGINNING]) or _goes_on_foreign(text[:LONGEST].lower())


def _begins_foreign(beginning: str) -> bool:
    """Return whether a *beginning* has words that tell another language, and none of English."""
    words = set(_LETTERS.findall(beginning.lower()))
    if words.isdisjoint(_SHARED.words("foreign")):
        return False
    return words.isdisjoint(_SHARED.words("english"))


def _goes_on_foreign(text: str) -> bool:
    """Return whether *text*, in small letters, is in another alphabet, or has the stop words of
    another language.
    """
    words = _LETTERS.findall(text)
    if not text.isascii() and _is_in_another_alphabet("".join(words)):
        return True
    counts = Counter(map(_stop_words().get, words))
    most = max(map(counts.__getitem__, _OTHER_LANGUAGES))
    return most >= 2 * (counts["english"] + 1)


def _is_in_another_alphabet(letters: str) -> bool:
    """Return whether most of *letters* are not Latin; of a few nothing can be said."""
    latin = sum(map(_LATIN.__contains__, letters))
    return latin < len(letters) / 2 and len(letters) > _FEW_LETTERS


@cache
def _stop_words() -> Mapping[str, str]:
    """Return stop word → the one language that has it."""
    languages: dict[str, str] = {}
    for language in ("english", *_OTHER_LANGUAGES):
        languages |= dict.fromkeys(_STOP_WORDS.words(language), language)
    return languages


def json_fields(text: str) -> dict[str, list[Any]] | None:
    """The fields of the JSON object that *text* is or holds, keys in lower case; ``None`` without
    one.

    Each key has the list of all its values, so that a key given twice is seen. Only a whole object
    or flat objects within prose are read; anything broken, too deep or too large is no object.
    """
    text = text[:LONGEST].strip()
    if text.startswith("{"):
        pairs = _pairs(text)
        if pairs is not None:
            return _fields([pairs])
    # Several objects in one reply: their values stand side by side, for the caller to find them at
    # odds.
    objects = []
    for candidate in _OBJECT.findall(text):
        pairs = _pairs(candidate)
        if pairs is not None:
            objects.append(pairs)
    if not objects:
        return None
    return _fields(objects)


def fields_of(text: str) -> dict[str, list[Any]]:
    """The fields of :func:`json_fields`; none without an object."""
    return json_fields(text) or {}


def field_of(text: str, keys: Iterable[str]) -> list[Any] | None:
    """All values of the first of *keys* in the JSON object of *text*; ``None`` without one."""
    fields = fields_of(text)
    for key in keys:
        if key in fields:
            return fields[key]
    return None


def _pairs(text: str) -> _Pairs | None:
    """Return the pairs of the JSON object that *text* is; None where it is none."""
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    if isinstance(pairs, _Pairs):
        return pairs
    return None


def _fields(objects: Iterable[_Pairs]) -> dict[str, list[Any]]:
    """Return the values of all *objects* by key: "Base salary" and "base_salary" are one."""
    fields: dict[str, list[Any]] = {}
    for pairs in objects:
        for key, value in pairs:
            plain_key = re.sub(r"[\s_-]+", "_", str(key).strip().lower())
            fields.setdefault(plain_key, []).append(value)
    return fields


class _Pairs(list[tuple[str, Any]]):
    """The pairs of a JSON object, duplicates kept."""


def agreed(values: Iterable[T | None]) -> T | None:
    """Return what all *values* say; None where they differ, or there are none."""
    distinct = set(values)
    if len(distinct) == 1:
        return distinct.pop()
    return None


# Word lists score names as words: VADER gives "Grace" +1.8 and "Mia" −1.2, whoever they are. A
# comparison by name would find exactly that. So a scorer that says so is given the reply with the
# person's names taken out.
#: In no lexicon, capitalised like a name, and as many words as a part of one.
STAND_IN = "Person"


def values_of(frame: pd.DataFrame, column: str, missing: Any = None) -> list[Any]:
    """Return the values of *column* of *frame*; *missing* in each row where there is no such."""
    if column in frame.columns:
        values: list[Any] = frame[column].tolist()
        return values
    return [missing] * len(frame)


def names_of(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """For each row, the words of the person's names, from the columns ``name``, ``first_name`` and
    ``last_name``.
    """
    columns = map(partial(values_of, frame), ("name", "first_name", "last_name"))
    return [_words(*_texts(row)) for row in zip(*columns, strict=True)]


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield those of *values* that are text."""
    for value in values:
        if isinstance(value, str):
            yield value


@lru_cache(maxsize=4096)
def _words(*names: str) -> tuple[str, ...]:
    """Return the words of *names*, each once, in order."""
    return tuple(sorted(set(_LETTERS.findall(" ".join(names)))))


def masked(text: str, words: tuple[str, ...]) -> str:
    """*text* with each of *words* replaced, as a whole word and as it is spelt: "grace" stays,
    "Grace" goes.
    """
    if words:
        return _names_pattern(words).sub(STAND_IN, text)
    return text


def unmasked(
    text: str, words: tuple[str, ...], spans: Iterable[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return where *spans*, places in ``masked(text, words)``, stand in *text* itself."""
    if not words:
        return list(spans)
    ends = list[int]()
    shifts = [0]
    for match in _names_pattern(words).finditer(text):
        shifts.append(shifts[-1] + len(match[0]) - len(STAND_IN))
        ends.append(match.end() - shifts[-1])

    def in_text(place: int) -> int:
        return place + shifts[bisect_right(ends, place)]

    return [(in_text(start), in_text(end)) for start, end in spans]


@lru_cache(maxsize=4096)
def _names_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of *words*, each as a whole word."""
    return re.compile(r"\b(?:" + "|".join(map(re.escape, words)) + r")\b")


#: The column with the words by which a row's prompt conveys its group, beside the name: "has
#: depression; Black".
SIGNAL_WORDS = "signal_words"
_NONE_OF = re.compile(rf"(?i:\bno)\s+(?={STAND_IN}\b)")
# The longest first; what is left of a word without them has four letters or more.
_ENDING = re.compile(
    r"(?<=.{4})(?:iness|iest|ness|ment|ing|ion|ive|ies|ied|ier|ed|es|ic|ly|s|y|e)\Z", re.DOTALL
)
_LONGEST_WORD = 40
#: Words that a mask remembers, most of which come again.
_MOST_WORDS = 50_000


class SignalMask:
    """Takes the words of *phrases* out of a text: each word but for those of grammar, in any case
    and inflection.

    The same words are taken out of the replies to every group, whoever's they are: a word that is
    left out of one group's texts alone would itself be a difference.
    """

    def __init__(self, phrases: frozenset[str]) -> None:
        words = set(_LETTERS.findall(" ".join(phrases).lower()))
        self._stems = set(map(_stem, words - _grammar()))
        self._signals: dict[str, bool] = {}

    def __call__(self, text: str) -> str:
        """*text* with a stand-in for each of the words, and for a "no" before one."""
        if not self._stems:
            return text
        return _NONE_OF.sub("", _LETTERS.sub(self._stand_in, text))

    def _stand_in(self, match: re.Match[str]) -> str:
        """Return what a word is replaced by: itself, where no phrase has it."""
        word = match[0]
        if len(word) > _LONGEST_WORD:
            return word
        if self._is_signal(word):
            return STAND_IN
        return word

    def _is_signal(self, word: str) -> bool:
        """Return whether *word* is one of the phrases', remembered for the next time."""
        if word not in self._signals:
            if len(self._signals) >= _MOST_WORDS:
                self._signals.clear()
            lower = word.lower()
            self._signals[word] = lower not in _grammar() and _stem(lower) in self._stems
        return self._signals[word]


@lru_cache(maxsize=64)
def signal_mask(phrases: frozenset[str]) -> SignalMask:
    """The mask of *phrases*, made once."""
    return SignalMask(phrases)


def signals_of(frame: pd.DataFrame) -> frozenset[str]:
    """All words by which the prompts of *frame* convey a group, beside names; none where nothing
    says so.
    """
    return frozenset(_texts(values_of(frame, SIGNAL_WORDS)))


@cache
def _grammar() -> frozenset[str]:
    """Return the words of grammar, which convey nothing."""
    return frozenset(_SHARED.words("grammar"))


def _stem(word: str) -> str:
    """Return what *word*, in lower case, has in common with its inflections: "injur" of injury,
    injuries and injured.
    """
    return _without_ending(_without_ending(word))  # "accommodations": of a plural, too


def _without_ending(word: str) -> str:
    """Return *word* without the longest of its endings that leaves enough of it."""
    if word.endswith("ss"):
        return word
    return _ENDING.sub("", word)


def word_count(text: str) -> int:
    """The number of words of *text*, separated by white space."""
    return len(text.split())


def char_count(text: str) -> int:
    """The number of characters (code points) of *text*, white space included."""
    return len(text)
