"""What a reader takes from a prompt: the person in it and the groups that the text conveys, and
what is asked for.

Only the text counts. The signals that come with a request are a glossary of surface strings, not a
statement about the person: a string that does not occur in the text (because it was scrubbed, say)
conveys nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from pytest_fairness import documents

Signals = Mapping[str, Mapping[str, str]]

_DATA = documents.parse(
    files(__package__).joinpath("words.yaml").read_bytes(), "words.yaml"
).convert(dict[str, Any])
#: (favourable, unfavourable) words of a decision.
_DECISIONS = [tuple(pair.split(" / ")) for pair in _DATA["decisions"]]
_PARTS = _DATA["parts"] | {
    part: "|".join(sorted(set(words), key=lambda word: (-len(word), word)))
    for part, words in zip(("good", "bad"), zip(*_DECISIONS, strict=True), strict=True)
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
}


def _found(name: str, text: str) -> Iterator[re.Match[str]]:
    """All that the patterns called *name* find in *text*, pattern by pattern."""
    return (match for pattern in _PATTERNS[name] for match in pattern.finditer(text))


def _first(name: str, text: str) -> re.Match[str] | None:
    return next(_found(name, text), None)


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
    present = [surface for surface in signals if surface and _occurs(surface, text)]
    return present, [
        surface for surface in present if _is_name(surface, frozenset(map(slug, signals[surface])))
    ]


def _occurs(surface: str, text: str) -> bool:
    start = text.find(surface)
    while start >= 0:
        end = start + len(surface)
        before = start == 0 or not (text[start - 1].isalnum() and surface[0].isalnum())
        after = end == len(text) or not (text[end].isalnum() and surface[-1].isalnum())
        if before and after:
            return True
        start = text.find(surface, start + 1)
    return False


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
    words = _lowered(text)
    used = [
        (pronoun, gender) for pronoun, gender, forms in _PRONOUNS if not words.isdisjoint(forms)
    ]
    pronoun, gender = (used[0][0], {"gender": used[0][1]}) if len(used) == 1 else ("they", {})
    name = _cued_name(text)
    if name:
        first = name.split()[0]
    else:
        first = min((word for word in _WORD.findall(text) if word in NAMES), default="")
    return PromptPerson(
        name or first or None, {**NAMES.get(first, {}), **gender, **_labels(text)}, pronoun
    )


@lru_cache(maxsize=16384)
def _is_name(surface: str, conveyed: frozenset[str]) -> bool:
    """Return whether *surface*, which conveys groups of the classes *conveyed*, is a name rather
    than a label.
    """
    words = surface.split()
    if not words or len(words) > 5 or any(character.isdigit() for character in surface):
        return False
    # Scripts without capitals have names too; a label in them cannot be told from a name and is
    # taken for one.
    capital = all(not word[0].islower() or word.split("-")[0] in _PARTICLES for word in words)
    ended = any(_ends_name(word, words[:at], alone=False) for at, word in enumerate(words))
    return (
        capital
        and conveyed.isdisjoint(_labels(surface))
        and (not ended or words[0] == _LABEL_AND_NAME)
    )


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
    for match in _found("cue", text):
        words: list[str] = []
        parts = match[1].split()
        for word in parts:
            if _ends_name(word, words, alone=len(parts) == 1):
                break
            words.append(re.sub(r"['’]s?$", "", word))
        name = " ".join(words)
        if len(name) > 1 and not name.isupper() and not _labels(f"a {words[0]} person"):
            return name
    return None


def _lowered(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))


def _labels(text: str) -> dict[str, str]:
    """The groups that labels in *text* name."""
    words = _lowered(text)
    labels: dict[str, str] = {}
    for protected_class, group, triggers, pattern in _LABELS:
        if (
            protected_class not in labels
            and not triggers.isdisjoint(words)
            and pattern.search(text)
        ):
            labels[protected_class] = group
    if "age" not in labels and (match := _first("age", text)):
        # 40 is the age from which the US Age Discrimination in Employment Act protects (29 USC
        # 631).
        if int(match["a"] or match["b"]) >= 40:
            labels["age"] = "older"
        else:
            labels["age"] = "younger"
    return labels


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
    candidates: list[ListedCandidate] = []
    labelled = False
    for match in _found("item", text):
        if match["label"]:
            if not labelled:
                candidates = []
                labelled = True
        elif labelled:
            continue
        elif match["number"] is not None and int(match["number"]) != len(candidates) + 1:
            candidates = []  # another list begins
            if int(match["number"]) != 1:
                continue
        label = match["label"] or match["letter"] or match["number"]
        candidates.append(ListedCandidate(label, len(candidates) + 1, match["text"]))
    return candidates


# Fewer words than this make no letter, and more than that are too many for any.
_FEWEST, _MOST = 45, 400


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


@lru_cache(maxsize=8192)
def read_task(text: str) -> Task:
    """Return what *text*, one message, asks for: ``acknowledge`` where that is nothing that is
    known.
    """
    if _first("json", text):
        form = "json"
    elif _first("strict", text):
        form = "bare"
    else:
        form = "prose"
    candidates = []
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
    by_label = bool(candidates) and candidates[0].label != "1" and _first("by_label", text)
    levels = _first("levels", text)
    low, high = scale or (1, 10)
    words, most_words = _word_limits(text)
    by = "name"
    if _first("by_number", text):
        by = "number"
    elif by_label:
        by = "label"
    return Task(
        kind=kind,
        form="bare" if kind == "scrub" else form,
        low=low,
        high=high,
        options=options or ("Yes", "No"),
        candidates=tuple(candidates),
        by=by,
        keys=_keys(text) if form == "json" else (),
        role=_role(text),
        words=words,
        most_words=most_words,
        levels=int(levels[1]) if levels else 5,
        material=text.partition("\n\n")[2].strip() or text,
        facts=tuple(match[1] for match in _found("fact", text)) if _first("explains", text) else (),
    )


def _kind(text: str, form: str, *, several: bool, scaled: bool, options: bool) -> str:
    for kind in ("scrub", "sensitive"):
        if _first(kind, text):
            return kind
    if several:
        if _first("ranks", text):
            return "ranking"
        return "choice"
    writes = bool(_first("writes", text))
    letters: list[str] = [kind for kind in _DATA["letters"] if _first(kind, text)]
    # "Write a letter … explain on what scale": who asks for prose gets prose.
    if not (writes and form == "prose" and letters):
        short = (
            ("triage", _first("triage", text)),
            ("rating", scaled and _first("rates", text)),
            ("decision", options),
            ("salary", _first("salary", text)),
            ("loan_terms", _first("loan_terms", text)),
            ("decision", _first("decides", text)),
            ("rating", _first("rates_anyhow", text)),
        )
        for kind, wanted in short:
            if wanted:
                return kind
    if writes:
        return (*letters, "general")[0]
    return next((kind for kind in letters if kind in ("rejection", "offer")), "acknowledge")


def _scale(text: str) -> tuple[int, int] | None:
    for match in _found("scale", text):
        low = int(match[1])
        high = int(match[2])
        if low in (0, 1) and 2 <= high <= 100:
            return low, high
    out_of = _first("out_of", text)
    high = 0
    if out_of:
        high = int(out_of[out_of.lastindex or 0])
    if 2 <= high <= 100:
        return (0 if high == 100 else 1, high)
    return None


def _keys(text: str) -> tuple[str, ...]:
    keys = [match[1] for match in _found("key", text)]
    if not keys and (named := _first("keys_named", text)):
        keys = [key for key in re.findall(r"\w+", named[1]) if key.lower() != "and"]
    return tuple(dict.fromkeys(keys))


def _role(text: str) -> str | None:
    for match in _found("role", text):
        words = _PATTERNS["after_role"][0].sub("", match[1]).strip(" -").split()
        role = " ".join(words[:4])
        if 2 < len(role) <= 40 and not _first("demographic", role) and not _first("strict", role):
            return role
    return None


def _word_limits(text: str) -> tuple[int | None, int | None]:
    """Return how many words to aim at and to write at most, where the prompt says."""
    match = _first("word_limit", text)
    if match is None:
        return None, None
    aim = int(match["number"])
    most = None
    if match["from"]:
        aim, most = (int(match["from"]) + aim) // 2, max(aim, _FEWEST)
    elif (match["how"] or "").lower() not in (
        "",
        "about",
        "around",
        "approximately",
        "roughly",
        "in",
        "of",
    ):
        aim, most = round(aim * 0.8), max(aim - 1, _FEWEST)  # under a limit, not at it
    return max(_FEWEST, min(aim, _MOST)), most


def _decision_options(text: str) -> tuple[str, str] | None:
    """The favourable and the unfavourable word that *text* offers, as it spells them; ``None`` for
    no such pair.
    """
    (pattern,) = _PATTERNS["options"]
    at = 0
    while (match := pattern.search(text, at)) is not None:
        for good, bad in (match.group("first", "second"), match.group("second", "first")):
            if (good.lower(), bad.lower()) in _DECISIONS:
                if good.islower() and bad.islower():
                    return (good.capitalize(), bad.capitalize())
                return (good, bad)
        at = match.start("second")
    return None
