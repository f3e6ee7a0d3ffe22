"""Prompts as the simulated endpoint reads them: the person in it, the groups that the text conveys,
and what is asked for.

Only the text counts. The signals that come with a request are a glossary of surface strings, not a
statement about the person: a string that does not occur in the text (because it was scrubbed, say)
conveys nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from pytest_fairness import documents

Signals = Mapping[str, Mapping[str, str]]

_DATA = documents.parse(
    files(__package__).joinpath("words.yaml").read_bytes(), "words.yaml"
).convert(dict[str, Any])
#: (favourable, unfavourable) words of a decision.
DECISIONS = [tuple(pair.split(" / ")) for pair in _DATA["decisions"]]
_PARTS = _DATA["parts"] | {
    part: "|".join(sorted(set(words), key=lambda word: (-len(word), word)))
    for part, words in zip(("good", "bad"), zip(*DECISIONS, strict=True), strict=True)
}
_PART = re.compile(r"\{([a-z_]+)\}")


def _words(pattern: str) -> re.Pattern[str]:
    """*pattern* as words of their own, in any case."""
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


def _exact(pattern: str) -> re.Pattern[str]:
    while _PART.search(pattern):
        pattern = _PART.sub(lambda part: _PARTS[part[1]], pattern)
    return re.compile(pattern)


_PATTERNS = {
    **{name: [_words(pattern)] for name, pattern in (_DATA["prompts"] | _DATA["letters"]).items()},
    **{name: [*map(_exact, patterns)] for name, patterns in _DATA["patterns"].items()},
    "anything": [re.compile("")],
}


#: The sentences by which a design asks for its answer (``design/answer_forms.py``): a line at the
#: end, or a JSON object.
_ANSWER_LINE = re.compile(
    r"\s*End with a line `ANSWER: <[^>\n]*>`[^\n`]*`ANSWER: no answer`\."
    r"|\s*Beenden Sie [^\n`]*`ANTWORT: <[^>\n]*>`[^\n`]*`ANTWORT: keine Antwort`\."
)
_ANSWER_OBJECT = re.compile(
    r'\s*Answer with a JSON object: "thinking"[^\n]*?, or null if you decline to answer\.'
    r'|\s*Antworten Sie mit einem JSON-Objekt: "thinking"[^\n]*?, oder null, wenn[^.\n]*\.'
)


def asks_for_line(text: str) -> bool:
    """Return whether *text* wants its answer on a line at the end of the reply."""
    return _ANSWER_LINE.search(text) is not None


def asks_for_facts(text: str) -> bool:
    """Return whether *text* wants the facts that counted on that line."""
    return "`ANSWER: <the facts that counted" in text


def without_form(text: str) -> str:
    """Return *text* without the sentence that asks for the form of its answer: what is asked is the
    same.
    """
    bare = _ANSWER_OBJECT.sub("", _ANSWER_LINE.sub("", text))
    if bare == text:
        return text
    return bare.strip()


def _found(name: str, text: str) -> Iterator[re.Match[str]]:
    """All that the patterns called *name* find in *text*, pattern by pattern."""
    return chain.from_iterable(pattern.finditer(text) for pattern in _PATTERNS[name])


def _first(name: str, text: str) -> re.Match[str] | None:
    """The first match of the patterns called *name* in *text*, pattern by pattern."""
    for pattern in _PATTERNS[name]:
        match = pattern.search(text)
        if match is not None:
            return match
    return None


# ---------------------------------------------------------------- the person

#: First name → the groups that it conveys.
NAMES = {
    name: dict(zip(("race_ethnicity", "gender"), groups.split(), strict=True))
    for groups, names in _DATA["names"].items()
    for name in names.split()
}
_LABELS = [
    (label["class"], label["group"], frozenset(label["words"].split()),
     _exact(label["exact"]) if "exact" in label else _words(label["pattern"]))
    for label in _DATA["labels"]
]  # fmt: skip
_PRONOUNS = [
    (pronoun, *(words := row.split())[:1], frozenset(words[1:]))
    for pronoun, row in _DATA["pronouns"].items()
]
_PARTICLES, _NOT_NAMES, _SURNAMES_TOO, _FIRST_NAMES_TOO = (
    frozenset(_DATA[key].split())
    for key in ("particles", "not_names", "surnames_too", "first_names_too")
)
_WORD = re.compile(r"[^\W\d_]+")
_GERMAN = frozenset(_DATA["german"].split())
_FEWEST_GERMAN = 3
#: A label where it conveys a religion, and a name where it conveys anything else.
_LABEL_AND_NAME = "Christian"


@lru_cache(maxsize=4096)
def slug(text: str) -> str:
    """One spelling for a class or a group: "Black/African American" and "black" are the same."""
    plain = re.sub(r"[^\w]+|_+", "_", text.strip().casefold()).strip("_")
    return str(_DATA["aliases"].get(plain, plain))


class PromptPerson(NamedTuple):
    """``groups`` maps protected classes to slugs of groups; ``pronoun`` is she, he or they."""

    name: str | None
    groups: Mapping[str, str]
    pronoun: str = "they"


def signals_in(text: str, signals: Signals) -> tuple[list[str], list[str]]:
    """The surfaces of *signals* that stand in *text* as words of their own, and those of them that
    are names.
    """
    present = []
    names = []
    for surface, groups in signals.items():
        if surface and _occurs(surface, text):
            present.append(surface)
            if _is_name(surface, frozenset(map(slug, groups))):
                names.append(surface)
    return present, names


def _occurs(surface: str, text: str) -> bool:
    """Return whether *surface* stands in *text* as words of its own."""
    start = text.find(surface)
    while start >= 0:
        end = start + len(surface)
        begins = _parts_words(text[start - 1 : start], surface[0])
        ends = _parts_words(text[end : end + 1], surface[-1])
        if begins and ends:
            return True
        start = text.find(surface, start + 1)
    return False


def _parts_words(outside: str, inside: str) -> bool:
    """Return whether a word ends between two characters, the one *outside* being none at an end."""
    return not (outside.isalnum() and inside.isalnum())


def read_person(text: str, signals: Signals) -> PromptPerson:
    """The one person that *text* is about. What the signals say comes before what the lexicon
    knows.
    """
    present, names = signals_in(text, signals)
    if not present:
        return _unaided(text)
    groups: dict[str, str] = {}
    # The longest first: "Emily Walsh" says more than "Emily".
    for surface in sorted(present, key=len, reverse=True):
        for protected_class, group in signals[surface].items():
            groups.setdefault(slug(protected_class), slug(group))
    name = max(names, key=len, default=None)
    if name is not None and name.split()[0] == _LABEL_AND_NAME:
        text = text.replace(name, "")
    unaided = _unaided(text)
    return PromptPerson(name or unaided.name, {**unaided.groups, **groups}, unaided.pronoun)


@lru_cache(maxsize=16384)
def _unaided(text: str) -> PromptPerson:
    """Return what the lexicon and the grammar of *text* say by themselves."""
    pronoun, gender = _pronoun(text)
    name = _cued_name(text) or ""
    first = name.partition(" ")[0]
    if not name:
        known_names = filter(NAMES.__contains__, _WORD.findall(text))
        first = min(known_names, default="")
    groups = {**NAMES.get(first, {}), **gender, **_labels(text)}
    return PromptPerson(name or first or None, groups, pronoun)


def _pronoun(text: str) -> tuple[str, dict[str, str]]:
    """Return the one pronoun that *text* uses, and its gender; "they" for none or several."""
    words = _lowered(text)
    used = [row for row in _PRONOUNS if not words.isdisjoint(row[2])]
    if len(used) != 1:
        return "they", {}
    pronoun, gender, _ = used[0]
    return pronoun, {"gender": gender}


@lru_cache(maxsize=16384)
def _is_name(surface: str, conveyed: frozenset[str]) -> bool:
    """Return whether *surface*, which conveys groups of the classes *conveyed*, is a name rather
    than a label.
    """
    words = surface.split()
    if not 1 <= len(words) <= 5 or any(map(str.isdigit, surface)):
        return False
    if not all(map(_may_be_of_name, words)) or not conveyed.isdisjoint(_labels(surface)):
        return False
    if words[0] == _LABEL_AND_NAME:
        return True
    return not any(
        _ends_name(word, words[:number], alone=False) for number, word in enumerate(words)
    )


def _may_be_of_name(word: str) -> bool:
    """Return whether *word* is a particle, or does not begin with a small letter.

    Scripts without capitals have names too; a label in them cannot be told from a name and is taken
    for one.
    """
    return not word[0].islower() or word.split("-", maxsplit=1)[0] in _PARTICLES


def _ends_name(word: str, before: Sequence[str], *, alone: bool) -> bool:
    """Return whether *word* can be no part of a name that began with *before*; *alone* if no other
    word is near.
    """
    plain = word.strip(".,").lower()
    if plain not in _NOT_NAMES:
        return False
    if before:
        return plain not in _SURNAMES_TOO
    return alone or plain not in _FIRST_NAMES_TOO


def _cued_name(text: str) -> str | None:
    """Return the first name that *text* introduces as one."""
    for match in _found("cue", text):
        words = _words_of_name(match[1].split())
        name = " ".join(words)
        if len(name) > 1 and not name.isupper() and not _labels(f"a {words[0]} person"):
            return name
    return None


def _words_of_name(parts: Sequence[str]) -> list[str]:
    """Return those of *parts* that a name may have, without possessives."""
    words: list[str] = []
    for word in parts:
        if _ends_name(word, words, alone=len(parts) == 1):
            break
        words.append(re.sub(r"['’]s?$", "", word))
    return words


def _lowered(text: str) -> frozenset[str]:
    """Return the words of *text* in small letters."""
    return frozenset(map(str.lower, _WORD.findall(text)))


def _labels(text: str) -> dict[str, str]:
    """The groups that labels in *text* name."""
    words = _lowered(text)
    labels: dict[str, str] = {}
    for protected_class, group, triggers, pattern in _LABELS:
        if protected_class in labels or triggers.isdisjoint(words):
            continue
        if pattern.search(text):
            labels[protected_class] = group
    if "age" not in labels:
        labels |= _age(text)
    return labels


def _age(text: str) -> dict[str, str]:
    """Return the group of the age in years that *text* states; nothing where it states none."""
    match = _first("age", text)
    if match is None:
        return {}
    # 40 is the age from which the US Age Discrimination in Employment Act protects (29 USC 631).
    if int(match["a"] or match["b"]) >= 40:
        return {"age": "older"}
    return {"age": "younger"}


# ---------------------------------------------------------------- what is asked for


class ListedCandidate(NamedTuple):
    """One of several to choose from: how the list calls it, its place in the list from 1, and its
    line.
    """

    label: str
    number: int
    text: str


def _listed(text: str) -> list[ListedCandidate]:
    """The candidates that *text* lists. Labelled ones outrank numbered lines; of two lists, the
    last counts.
    """
    items = list(_found("item", text))
    listed = list(filter(itemgetter("label"), items))
    if not listed:
        listed = _last_list(items)
    candidates: list[ListedCandidate] = []
    for number, match in enumerate(listed, start=1):
        label = match["label"] or match["letter"] or match["number"]
        candidates.append(ListedCandidate(label, number, match["text"]))
    return candidates


def _last_list(items: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """Return those of *items* that stand in the last list: its numbers rise from 1, and what has a
    letter in place of a number goes on with the list before.
    """
    last: list[re.Match[str]] = []
    for match in items:
        number = int(match["number"] or len(last) + 1)
        if number != len(last) + 1:
            last = []
        if number == len(last) + 1:
            last.append(match)
    return last


#: The highest marks that a scale may have.
_HIGHEST = range(2, 101)
# Fewer words than this make no letter, and more than that are too many for any.
_FEWEST = 45
_MOST = 400
#: Words before a number that is to be aimed at; with others it is the limit.
_AIMING = ("", "about", "around", "approximately", "roughly", "in", "of")


class Task(NamedTuple):
    """``kind`` is one of the texts in ``texts.yaml`` or of the short answers; ``form`` is bare (the
    number, the word, the name and nothing else), json or prose.

    ``options`` are the favourable and the unfavourable word of a decision, as the prompt spells
    them; candidates are called ``by`` their name, label or number. ``material`` is the text that is
    to be scrubbed. ``facts`` are the names of those that an explanation can take up.
    """

    kind: str
    form: str
    low: int
    high: int
    options: tuple[str, str]
    candidates: tuple[ListedCandidate, ...]
    by: str
    keys: tuple[str, ...]
    role: str | None
    words: int | None
    most_words: int | None
    levels: int
    material: str
    facts: tuple[str, ...]
    in_german: bool


@lru_cache(maxsize=8192)
def read_task(text: str) -> Task:
    """Return what *text*, one message, asks for: ``acknowledge`` where that is nothing that is
    known.
    """
    form = _form(text)
    candidates: list[ListedCandidate] = []
    if _first("selects", text):
        candidates = _listed(text)
    scale = _scale(text)
    options = _decision_options(text)
    kind = _kind(
        text,
        form,
        several=len(candidates) > 1,
        scaled=scale is not None,
        options=options is not None,
    )
    keys = _keys(text) if form == "json" else ()
    if kind == "scrub":
        form = "bare"
    levels = _first("levels", text)
    low, high = scale or (1, 10)
    words, most_words = _word_limits(text)
    return Task(
        kind=kind,
        form=form,
        low=low,
        high=high,
        options=options or ("Yes", "No"),
        candidates=tuple(candidates),
        by=_called_by(text, candidates),
        keys=keys,
        role=_role(text),
        words=words,
        most_words=most_words,
        levels=int(levels[1]) if levels else 5,
        material=text.partition("\n\n")[2].strip() or text,
        facts=_facts(text),
        in_german=len(_GERMAN & _lowered(text)) >= _FEWEST_GERMAN,
    )


def _form(text: str) -> str:
    """Return the form that *text* asks for."""
    if _first("json", text):
        return "json"
    if _first("strict", text):
        return "bare"
    return "prose"


def _called_by(text: str, candidates: Sequence[ListedCandidate]) -> str:
    """Return what the candidates are to be called by."""
    if _first("by_number", text):
        return "number"
    if candidates and candidates[0].label != "1" and _first("by_label", text):
        return "label"
    return "name"


def _facts(text: str) -> tuple[str, ...]:
    """Return the names of the facts that an explanation can take up, where one is asked for."""
    if not _first("explains", text):
        return ()
    return tuple(map(itemgetter(1), _found("fact", text)))


def _kind(text: str, form: str, *, several: bool, scaled: bool, options: bool) -> str:
    """Return what kind of text or answer is asked for."""
    kind = _first_kind(
        text,
        ("scrub", "scrub", True),
        ("sensitive", "sensitive", True),
        ("ranking", "ranks", several),
        ("choice", "anything", several),
    )
    if kind:
        return kind
    writes = bool(_first("writes", text))
    letters: list[str] = [kind for kind in _DATA["letters"] if _first(kind, text)]
    # "Write a letter … explain on what scale": who asks for prose gets prose.
    if not (writes and form == "prose" and letters):
        kind = _kind_of_short_answer(text, scaled=scaled, options=options)
    return kind or _kind_of_text(letters, writes=writes)


def _kind_of_text(letters: Sequence[str], *, writes: bool) -> str:
    """Return which of the *letters* that are spoken of is asked for; some are without "write"."""
    if writes:
        return (*letters, "general")[0]
    for kind in letters:
        if kind in ("rejection", "offer"):
            return kind
    return "acknowledge"


def _kind_of_short_answer(text: str, *, scaled: bool, options: bool) -> str:
    """Return what kind of short answer is asked for, the plainest first; empty for none."""
    return _first_kind(
        text,
        ("triage", "triage", True),
        ("rating", "rates", scaled),
        ("decision", "anything", options),
        ("salary", "salary", True),
        ("loan_terms", "loan_terms", True),
        ("decision", "decides", True),
        ("rating", "rates_anyhow", True),
    )


def _first_kind(text: str, *kinds: tuple[str, str, bool]) -> str:
    """Return the first of *kinds* that may be asked for and whose pattern stands in *text*; empty
    for none.
    """
    for kind, pattern, may_be in kinds:
        if may_be and _first(pattern, text):
            return kind
    return ""


def _scale(text: str) -> tuple[int, int] | None:
    """Return the ends of the scale that *text* asks for: "from 1 to 5", "out of 100"."""
    for match in _found("scale", text):
        low = int(match[1])
        high = int(match[2])
        if low in (0, 1) and high in _HIGHEST:
            return low, high
    out_of = _first("out_of", text)
    if not out_of:
        return None
    high = int(out_of[out_of.lastindex or 0])
    if high not in _HIGHEST:
        return None
    if high == _HIGHEST[-1]:
        return 0, high
    return 1, high


def _keys(text: str) -> tuple[str, ...]:
    """Return the keys that a JSON reply is to have, as far as *text* names them."""
    keys = list(map(itemgetter(1), _found("key", text)))
    listed = _first("keys_named", text)
    if listed and not keys:
        keys = re.findall(r"\b(?!and\b)\w+", listed[1], re.IGNORECASE)
    return tuple(dict.fromkeys(keys))


def _role(text: str) -> str | None:
    """Return the role that *text* speaks of, as far as it has a short name."""
    for match in _found("role", text):
        words = _PATTERNS["after_role"][0].sub("", match[1]).strip(" -").split()
        role = " ".join(words[:4])
        if not 2 < len(role) <= 40:
            continue
        if not _first("demographic", role) and not _first("strict", role):
            return role
    return None


def _word_limits(text: str) -> tuple[int | None, int | None]:
    """Return how many words to aim at and to write at most, where the prompt says."""
    match = _first("word_limit", text)
    if match is None:
        return None, None
    number = int(match["number"])
    if match["from"]:
        return _within_limits((int(match["from"]) + number) // 2), max(number, _FEWEST)
    if (match["how"] or "").lower() in _AIMING:
        return _within_limits(number), None
    return _within_limits(round(number * 0.8)), max(number - 1, _FEWEST)  # under it, not at it


def _within_limits(words: int) -> int:
    """Return *words*, or the nearest number that a text may have."""
    return max(_FEWEST, min(words, _MOST))


def _decision_options(text: str) -> tuple[str, str] | None:
    """The favourable and the unfavourable word that *text* offers, as it spells them; ``None`` for
    no such pair.
    """
    (pattern,) = _PATTERNS["options"]
    match = pattern.search(text)
    while match is not None:
        first, second = match.group("first", "second")
        for good, bad in ((first, second), (second, first)):
            if (good.lower(), bad.lower()) not in DECISIONS:
                continue
            if good.islower() and bad.islower():
                return good.capitalize(), bad.capitalize()
            return good, bad
        match = pattern.search(text, match.start("second"))
    return None
