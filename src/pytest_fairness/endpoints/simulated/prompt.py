"""What a reader takes from a prompt: the person in it and the groups that the text conveys, and what is asked for.

Only the text counts. The signals that come with a request are a glossary of surface strings, not a statement
about the person: a string that does not occur in the text (because it was scrubbed, say) conveys nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files

from msgspec import Struct

from pytest_fairness import documents

Signals = Mapping[str, Mapping[str, str]]


class _Label(Struct, frozen=True, forbid_unknown_fields=True, rename={"protected_class": "class"}):
    protected_class: str
    group: str
    words: str
    pattern: str = ""
    colour: str = ""


class _Words(Struct, frozen=True, forbid_unknown_fields=True):
    """``words.yaml``."""

    names: dict[str, str]
    labels: tuple[_Label, ...]
    not_names: str
    surnames_too: str
    first_names_too: str
    aliases: dict[str, str]
    prompts: dict[str, str]
    letters: dict[str, str]
    decisions: tuple[str, ...]


_DATA = documents.parse(files(__package__).joinpath("words.yaml").read_bytes(), "words.yaml").convert(_Words)
_I = re.IGNORECASE


def _words(pattern: str) -> re.Pattern[str]:
    """*pattern* as words of their own, in any case."""
    return re.compile(rf"\b(?:{pattern})\b", _I)


# ---------------------------------------------------------------- the person

_PEOPLE = (
    r"(?:man|men|woman|women|male|female|person|people|American|candidate|applicant|patient|tenant|employee|borrower"
    r"|worker|student|nurse|engineer|doctor|teacher|manager|customer|client|parent|father|mother|boy|girl|non-binary)"
)


def _colour(word: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?:\b(?:[Aa]n?|is|as|[Rr]ace:?|[Ee]thnicity:?)|[,(/;:|])\s*{word}\b(?!\s+[A-Z])"
        rf"|\b{word}(?:\s|-|,\s)\s*{_PEOPLE}\b"
        rf"|\b{word.lower()}\s+{_PEOPLE}\b"
    )


#: (protected class, group, words one of which must occur, pattern)
_LABELS = tuple(
    (
        label.protected_class,
        label.group,
        frozenset(label.words.split()),
        _colour(label.colour) if label.colour else _words(label.pattern),
    )
    for label in _DATA.labels
)
#: First name → the groups that it conveys.
NAMES = {
    name: {"race_ethnicity": race, "gender": gender}
    for (race, gender), names in ((key.split(), names) for key, names in _DATA.names.items())
    for name in names.split()
}
#: (subject pronoun, gender that it conveys, its forms)
_PRONOUNS = (
    ("she", "female", frozenset(("she", "her", "hers", "herself"))),
    ("he", "male", frozenset(("he", "him", "his", "himself"))),
)
_NOT_NAMES, _SURNAMES_TOO, _FIRST_NAMES_TOO = (
    frozenset(words.split()) for words in (_DATA.not_names, _DATA.surnames_too, _DATA.first_names_too)
)
_NOT_WORD = re.compile(r"[^\w]+|_+")


@lru_cache(maxsize=4096)
def slug(text: str) -> str:
    """One spelling for a class or a group: "Black/African American" and "black" are the same."""
    plain = _NOT_WORD.sub("_", text.strip().casefold()).strip("_")
    return _DATA.aliases.get(plain, plain)


_CAPITAL = r"(?:al-|el-|d['’])?[^\W\d_a-zß-öø-ÿ][\w'’\-]*"
_FULL_NAME = rf"{_CAPITAL}(?:[ \t]+(?:(?:de|da|del|la|van|von|der|al|bin|[A-Z]\.)[ \t]+)*{_CAPITAL}){{0,3}}"
_CUES = (
    re.compile(rf"\b(?i:name|candidate|applicant|patient|tenant|employee|borrower)\s*:\s*({_FULL_NAME})"),
    re.compile(
        r"\b(?i:for|about|of|to|on|describe|rate|score|assess|evaluate|hire|named|called|candidate|applicant|patient"
        r"|tenant|employee|borrower|dear|consider|is|from|that|should|does|did|has|let|give|offer|reject|promote|meet)"
        rf"\s+(?:(?:Mr|Ms|Mrs|Mx|Dr)\.?\s+)?({_FULL_NAME})"
    ),
    re.compile(
        rf"(?:^|[.!?:]\s+|\n\s*(?:[-*]\s+|\d+[.)]\s+)?)({_FULL_NAME})(?=,|\s+(?:is|has|was|applied|applies|works)\b)"
    ),
)
_POSSESSIVE = re.compile(r"['’]s?$")
_AGE = re.compile(
    r"\b(?:(?P<a>\d{2})[- ]years?[- ]olds?|(?:aged?|age:|is)\s*(?P<b>\d{2})(?=\s*(?:[,.;)\n]|years of age|$)))",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
_PARTICLES = frozenset(("de", "da", "del", "la", "van", "von", "der", "al", "el", "bin", "ibn"))
_LABELS_AND_NAMES = ("Christian",)


@dataclass(frozen=True, slots=True)
class PromptPerson:
    """``groups`` maps protected classes to slugs of groups; ``pronoun`` is she, he or they."""

    name: str | None
    groups: Mapping[str, str]
    pronoun: str = "they"


def occurs(surface: str, text: str) -> bool:
    """Whether *surface* stands in *text* as words of its own, so that "he" is not found in "the"."""
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
    """The one person that *text* is about. What the signals say comes before what the lexicon knows."""
    present = [surface for surface in signals if surface and occurs(surface, text)]
    if not present:
        return _unaided(text)
    groups: dict[str, str] = {}
    # The longest first: "Emily Walsh" says more than "Emily".
    for surface in sorted(present, key=len, reverse=True):
        for protected_class, group in signals[surface].items():
            groups.setdefault(slug(protected_class), slug(group))
    names = (surface for surface in present if is_name(surface, frozenset(map(slug, signals[surface]))))
    name = max(names, key=len, default=None)
    if name is not None and name.split()[0] in _LABELS_AND_NAMES:
        text = text.replace(name, "")  # nothing but a name here
    unaided = _unaided(text)
    return PromptPerson(name or unaided.name, {**unaided.groups, **groups}, unaided.pronoun)


@lru_cache(maxsize=16384)
def _unaided(text: str) -> PromptPerson:
    """What the lexicon and the grammar of *text* say by themselves."""
    pronoun, gender = _pronoun(_lowered(text))
    name = _cued_name(text)
    first = name.split()[0] if name else min((word for word in _WORD.findall(text) if word in NAMES), default="")
    groups = {**NAMES.get(first, {}), **({"gender": gender} if gender else {}), **_labels(text)}
    return PromptPerson(name or first or None, groups, pronoun)


@lru_cache(maxsize=16384)
def is_name(surface: str, conveyed: frozenset[str]) -> bool:
    """Whether *surface*, which conveys groups of the classes *conveyed*, is a name rather than a label."""
    words = surface.split()
    if not words or len(words) > 5 or any(character.isdigit() for character in surface):
        return False
    # Scripts without capitals have names too; a label in them cannot be told from a name and is taken for one.
    capital = all(not word[0].islower() or word.split("-")[0] in _PARTICLES for word in words)
    # Christian is a label where it conveys a religion, and a name where it conveys anything else.
    label = not conveyed.isdisjoint(_labels(surface))
    ended = any(_ends_name(word, words[:at], alone=False) for at, word in enumerate(words))
    return capital and not label and (not ended or words[0] in _LABELS_AND_NAMES)


def _ends_name(word: str, before: Sequence[str], *, alone: bool) -> bool:
    """Whether *word* can be no part of a name that began with *before*; *alone* if no other word is near."""
    plain = word.strip(".,").lower()
    if plain not in _NOT_NAMES:
        return False
    return plain not in _SURNAMES_TOO if before else alone or plain not in _FIRST_NAMES_TOO


def _cued_name(text: str) -> str | None:
    for cue in _CUES:
        for match in cue.finditer(text):
            words: list[str] = []
            found = match[1].split()
            for word in found:
                if _ends_name(word, words, alone=len(found) == 1):
                    break
                words.append(_POSSESSIVE.sub("", word))
            name = " ".join(words)
            if len(name) > 1 and not name.isupper() and not _labels(f"a {words[0]} person"):
                return name
    return None


def _lowered(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))


def _labels(text: str) -> dict[str, str]:
    """The groups that labels in *text* name."""
    words = _lowered(text)
    found: dict[str, str] = {}
    for protected_class, group, triggers, pattern in _LABELS:
        if protected_class not in found and not triggers.isdisjoint(words) and pattern.search(text):
            found[protected_class] = group
    if "age" not in found and (match := _AGE.search(text)) is not None:
        # 40 is the age from which the US Age Discrimination in Employment Act protects (29 USC 631).
        found["age"] = "older" if int(match["a"] or match["b"]) >= 40 else "younger"
    return found


def _pronoun(words: frozenset[str]) -> tuple[str, str | None]:
    """The pronoun that the text uses for the person, and the gender that it conveys; mixed pronouns convey none."""
    used = [(pronoun, gender) for pronoun, gender, forms in _PRONOUNS if not forms.isdisjoint(words)]
    return used[0] if len(used) == 1 else ("they", None)


# ---------------------------------------------------------------- a list of candidates

_LABEL = r"(?:Candidate|Applicant|Option|Person|Resume|Résumé|Tenant|Patient)[ \t]+(?:[A-Z]|\d{1,2})\b"
_MARKER = rf"[ \t]*(?:[-*•][ \t]*)?(?:\*\*)?(?:{_LABEL}|\d{{1,2}}[.):]|[A-Z][.):])"
_ITEM = re.compile(
    r"^[ \t]*(?:[-*•][ \t]*)?(?:\*\*)?"
    rf"(?:(?P<label>{_LABEL})(?:\*\*)?[ \t]*[:.)\-–—]*|(?P<number>\d{{1,2}})[.):]|(?P<letter>[A-Z])[.):])[ \t]*"
    # The item's own line, and those below it that are neither blank nor the next item.
    rf"(?P<text>\S[^\n]*(?:\n(?!{_MARKER})(?![ \t]*\n)[^\n]+)*)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class ListedCandidate:
    """One of several to choose from: how the list calls it, its place in the list from 1, and its line."""

    label: str
    number: int
    text: str


def listed(text: str) -> list[ListedCandidate]:
    """The candidates that *text* lists. Labelled ones outrank numbered lines; of two lists, the last counts."""
    found: list[ListedCandidate] = []
    labelled = False
    for match in _ITEM.finditer(text):
        if match["label"]:
            if not labelled:
                found, labelled = [], True
            found.append(ListedCandidate(match["label"], len(found) + 1, match["text"]))
        elif not labelled:
            given = match["number"]
            if given is not None and int(given) != len(found) + 1:
                found = []  # another list begins
                if int(given) != 1:
                    continue
            found.append(ListedCandidate(match["letter"] or given, len(found) + 1, match["text"]))
    return found


# ---------------------------------------------------------------- what is asked for

_PROMPTS = {name: _words(pattern) for name, pattern in _DATA.prompts.items()}
#: Kind of text → its wordings, the more particular first.
_LETTERS = {name: _words(pattern) for name, pattern in _DATA.letters.items()}
# Fewer words than this make no letter, and more than that are too many for any.
_FEWEST, _MOST = 45, 400
_RATES_ANYHOW = re.compile(r"\b[Rr]ate\b|\b[Ss]core (?!sheet)")
_SCALES = (
    re.compile(r"\bscale\b[^.\n\d]{0,40}(\d{1,3})\s*(?:-|–|—|to|through|and)\s*(\d{1,3})\b", _I),
    re.compile(
        r"\b(?:from|between|range)\s+(\d{1,3})\s*(?:\([^)]{0,40}\)\s*)?(?:-|–|—|to|through|and)\s*(\d{1,3})\b", _I
    ),
    re.compile(r"[(\[<](\d{1,3})\s*(?:-|–|—|to)\s*(\d{1,3})\b", _I),
    re.compile(r"\b(0|1)\s*(?:-|–|—|to)\s*(5|7|10|20|100)\b", _I),
)
_OUT_OF = re.compile(r"\bout of (\d{1,3})\b|\b(\d{1,3})-point\b|(?<!\d)/(5|10|100)\b", _I)
_LEVELS = re.compile(
    r"\b(?:level|category|ESI|triage)\b[^.\n]{0,40}?\b1\s*(?:\([^)]*\)\s*)?(?:-|–|to|through)\s*([2-9])\b", _I
)
_JSON = re.compile(r"\bJSON\b")
_KEY = re.compile(r"[\"“'](\w{2,40})[\"”']\s*:")
_KEYS_NAMED = re.compile(
    r"\b(?:keys?|fields?)\s+((?:[\"'`“]?\w+[\"'`”]?(?:\s*,\s*|\s+and\s+|\s*,\s*and\s+)?){1,8})", _I
)
_WORD_LIMIT = re.compile(
    r"\b(?P<how>under|below|at most|up to|no more than|fewer than|less than|maximum(?: of)?|max|about|around"
    r"|approximately|roughly|in|of)?\s*(?:(?P<from>\d{2,4})\s*(?:-|–|to)\s*)?(?P<number>\d{2,4})[- ]words?\b",
    _I,
)

_WORDS_OF_ROLE = r"[A-Za-z][\w/+#&\-]*(?:[ ][\w/+#&\-]+)"
_END_OF_ROLE = r"(?=\s+(?:with|who|at|in|from|for|and|has|was|is|applying)\b|[,.;:\n]|$)"
# Where the role that somebody has or wants stands, the surest first.
_ROLES = (
    re.compile(
        r"\b(?:role|position|job|post|vacancy)\s*(?::|of|as)\s*(?:an?\s+|the\s+|our\s+)?([A-Za-z][\w/+#& \-]{2,60})", _I
    ),
    re.compile(
        rf"\b(?:for|to|in|as)\s+(?:an?|the|our|your|this)\s+({_WORDS_OF_ROLE}{{0,5}}?)"
        r"\s+(?:position|role|job|post|vacancy|opening)\b",
        _I,
    ),
    re.compile(rf"\b(?:an?|our|the)\s+({_WORDS_OF_ROLE}{{0,4}}?)\s+(?:position|role|job|vacancy|opening)\b", _I),
    re.compile(rf",\s*(?:who is\s+)?an?\s+({_WORDS_OF_ROLE}{{0,4}}?){_END_OF_ROLE}", _I),
    re.compile(
        r"\b(?:as|hiring|become|works as|worked as|application for|applying for|applied for)\s+"
        rf"(?:an?\s+|our\s+|the\s+)?([a-z][\w/+#&\-]*(?:[ ][\w/+#&\-]+){{0,4}}?){_END_OF_ROLE}"
    ),
)
_AFTER_ROLE = re.compile(r"\s+(?:with|who|at|in|from|for|and|has|based|requiring|applied|position|role|job)\b.*$", _I)
#: (favourable, unfavourable) words of a decision.
_PAIRS = tuple((good, bad) for good, bad in (pair.split(" / ") for pair in _DATA.decisions))
_FAVOURABLE = frozenset(_PAIRS)
_GOOD = "|".join(sorted({good for good, _ in _PAIRS}, key=len, reverse=True))
_BAD = "|".join(sorted({bad for _, bad in _PAIRS}, key=len, reverse=True))
_QUOTE = r"[\"'“‘*]*"
_UNQUOTE = r"[\"'”’*.]*"
_OPTIONS = re.compile(
    rf"(?<![\w-]){_QUOTE}(?P<first>{_GOOD}|{_BAD}){_UNQUOTE}\s*(?:\bor\b|/|,|\||vs\.?|versus|\band\b)\s*(?:\bor\b\s*)?"
    rf"{_QUOTE}(?P<second>{_GOOD}|{_BAD})(?![\w-])",
    _I,
)


class Kind(StrEnum):
    """The kinds of answer that the simulated endpoint knows to give."""

    REJECTION = "rejection"
    OFFER = "offer"
    LANDLORD = "landlord"
    EMPLOYER = "employer"
    RECOMMENDATION = "recommendation"
    SUMMARY = "summary"
    QUALIFICATIONS = "qualifications"
    GENERAL = "general"
    RATING = "rating"
    DECISION = "decision"
    CHOICE = "choice"
    RANKING = "ranking"
    TRIAGE = "triage"
    SALARY = "salary"
    LOAN_TERMS = "loan_terms"
    SENSITIVE = "sensitive"
    SCRUB = "scrub"
    ACKNOWLEDGE = "acknowledge"


class Form(StrEnum):
    """How the answer is to be given."""

    BARE = "bare"  # the number, the word, the name, and nothing else
    JSON = "json"
    PROSE = "prose"


@dataclass(frozen=True, slots=True)
class Task:
    """``options`` are the favourable and the unfavourable word of a decision, as the prompt spells them.

    ``material`` is the text that is to be scrubbed.
    """

    kind: Kind
    form: Form = Form.PROSE
    low: int = 1
    high: int = 10
    options: tuple[str, str] = ("Yes", "No")
    candidates: tuple[ListedCandidate, ...] = ()
    by_label: bool = False
    by_number: bool = False
    keys: tuple[str, ...] = ()
    role: str | None = None
    words: int | None = None
    most_words: int | None = None
    levels: int = 5
    material: str = ""


@lru_cache(maxsize=8192)
def read_task(text: str) -> Task:
    """What *text*, one message, asks for. ACKNOWLEDGE where it asks for nothing that is known."""
    form = _form(text)
    kind = _kind(text, form)
    if kind in (Kind.CHOICE, Kind.RANKING):
        return _choice(text, kind, form)
    if kind is Kind.SCRUB:
        return Task(kind, form=Form.BARE, material=text.partition("\n\n")[2].strip() or text)
    low, high = _scale(text) or (1, 10)
    options = _decision_options(text) or ("Yes", "No")
    levels = _LEVELS.search(text)
    words, most_words = _word_limits(text)
    return Task(
        kind,
        form=form,
        low=low,
        high=high,
        options=options,
        keys=_keys(text) if form is Form.JSON else (),
        role=_role(text),
        words=words,
        most_words=most_words,
        levels=int(levels[1]) if levels else 5,
    )


def _form(text: str) -> Form:
    if _JSON.search(text):
        return Form.JSON
    return Form.BARE if _says("strict", text) else Form.PROSE


def _kind(text: str, form: Form) -> Kind:
    if _says("scrubs", text):
        return Kind.SCRUB
    if _says("sensitive", text):
        return Kind.SENSITIVE
    if _says("selects", text) and len(listed(text)) > 1:
        return Kind.RANKING if _says("ranks", text) else Kind.CHOICE
    writes = _says("writes", text) and form is Form.PROSE
    # "Write a letter … explain on what scale": who asks for prose gets prose.
    if not writes or not any(pattern.search(text) for pattern in _LETTERS.values()):
        decided = _short_answer(text)
        if decided is not None:
            return decided
    for name, pattern in _LETTERS.items():
        kind = Kind(name)
        if pattern.search(text) and (writes or _says("writes", text) or kind in (Kind.REJECTION, Kind.OFFER)):
            return kind
    return Kind.GENERAL if _says("writes", text) else Kind.ACKNOWLEDGE


def _short_answer(text: str) -> Kind | None:
    if _says("triage", text):
        return Kind.TRIAGE
    if _says("rates", text) and _scale(text) is not None:
        return Kind.RATING
    if _decision_options(text) is not None:
        return Kind.DECISION
    if _says("salary", text):
        return Kind.SALARY
    if _says("loan_terms", text):
        return Kind.LOAN_TERMS
    if _says("decides", text):
        return Kind.DECISION
    return Kind.RATING if _RATES_ANYHOW.search(text) else None


def _scale(text: str) -> tuple[int, int] | None:
    for pattern in _SCALES:
        for match in pattern.finditer(text):
            low, high = int(match[1]), int(match[2])
            if low in (0, 1) and 2 <= high <= 100:
                return low, high
    out_of = _OUT_OF.search(text)
    if out_of is not None:
        high = int(out_of[1] or out_of[2] or out_of[3])
        if 2 <= high <= 100:
            return (0 if high == 100 else 1), high
    return None


def _choice(text: str, kind: Kind, form: Form) -> Task:
    candidates = listed(text)
    by_label = _says("by_label", text) and candidates[0].label != "1"
    return Task(
        kind,
        form=form,
        candidates=tuple(candidates),
        by_label=by_label,
        by_number=_says("by_number", text),
        keys=_keys(text) if form is Form.JSON else (),
        role=_role(text),
    )


def _keys(text: str) -> tuple[str, ...]:
    keys = _KEY.findall(text)
    if not keys:
        named = _KEYS_NAMED.search(text)
        keys = [key for key in re.findall(r"\w+", named[1]) if key.lower() != "and"] if named else []
    return tuple(dict.fromkeys(keys))


def _role(text: str) -> str | None:
    for pattern in _ROLES:
        for match in pattern.finditer(text):
            words = _AFTER_ROLE.sub("", match[1]).strip(" -").split()
            role = " ".join(words[:4])
            if 2 < len(role) <= 40 and not _says("demographic", role) and not _says("strict", role):
                return role
    return None


def _word_limits(text: str) -> tuple[int | None, int | None]:
    """How many words to aim at and to write at most, where the prompt says."""
    match = _WORD_LIMIT.search(text)
    if match is None:
        return None, None
    number = int(match["number"])
    if match["from"]:
        return _bounded((int(match["from"]) + number) // 2), max(number, _FEWEST)
    if (match["how"] or "").lower() in ("", "about", "around", "approximately", "roughly", "in", "of"):
        return _bounded(number), None
    return _bounded(round(number * 0.8)), max(number - 1, _FEWEST)  # under a limit, not at it


def _bounded(words: int) -> int:
    return max(_FEWEST, min(words, _MOST))


def _says(name: str, text: str) -> bool:
    return _PROMPTS[name].search(text) is not None


def _decision_options(text: str) -> tuple[str, str] | None:
    """The favourable and the unfavourable word that *text* offers, as it spells them; ``None`` for no such pair."""
    at = 0
    while (match := _OPTIONS.search(text, at)) is not None:
        first, second = match["first"], match["second"]
        if (first.lower(), second.lower()) in _FAVOURABLE:
            return _spelt(first, second)
        if (second.lower(), first.lower()) in _FAVOURABLE:
            return _spelt(second, first)
        at = match.start("second")
    return None


def _spelt(good: str, bad: str) -> tuple[str, str]:
    return (good.capitalize(), bad.capitalize()) if good.islower() and bad.islower() else (good, bad)
