"""What a prompt asks for: the kind of answer, its form, its scale or its options. Read off the text alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from pytest_fairness.endpoints.simulated import wording
from pytest_fairness.endpoints.simulated.listing import Candidate, listed
from pytest_fairness.endpoints.simulated.scrubbing import material

# Fewer words than this make no letter, and more than that are too many for any.
_FEWEST, _MOST = 45, 400


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
    candidates: tuple[Candidate, ...] = ()
    by_label: bool = False
    by_number: bool = False
    keys: tuple[str, ...] = ()
    role: str | None = None
    words: int | None = None
    most_words: int | None = None
    levels: int = 5
    material: str = ""


def _any(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


@lru_cache(maxsize=8192)
def read_task(text: str) -> Task:
    """What *text*, one message, asks for. ACKNOWLEDGE where it asks for nothing that is known."""
    form = _form(text)
    kind = _kind(text, form)
    if kind in (Kind.CHOICE, Kind.RANKING):
        return _choice(text, kind, form)
    if kind is Kind.SCRUB:
        return Task(kind, form=Form.BARE, material=material(text))
    low, high = _scale(text) or (1, 10)
    options = wording.decision_options(text) or ("Yes", "No")
    levels = wording.LEVELS.search(text)
    words, most_words = _words(text)
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
    if wording.JSON.search(text):
        return Form.JSON
    return Form.BARE if wording.STRICT.search(text) else Form.PROSE


def _kind(text: str, form: Form) -> Kind:
    if wording.SCRUBS.search(text):
        return Kind.SCRUB
    if wording.SENSITIVE.search(text):
        return Kind.SENSITIVE
    if wording.SELECTS.search(text) and len(listed(text)) > 1:
        return Kind.RANKING if wording.RANKS.search(text) else Kind.CHOICE
    writes = wording.WRITES.search(text) is not None and form is Form.PROSE
    # "Write a letter … explain on what scale": who asks for prose gets prose.
    if not writes or not any(pattern.search(text) for _, pattern in wording.LETTERS):
        decided = _short_answer(text)
        if decided is not None:
            return decided
    for name, pattern in wording.LETTERS:
        kind = Kind(name)
        if pattern.search(text) and (writes or wording.WRITES.search(text) or kind in (Kind.REJECTION, Kind.OFFER)):
            return kind
    return Kind.GENERAL if wording.WRITES.search(text) else Kind.ACKNOWLEDGE


def _short_answer(text: str) -> Kind | None:
    if wording.TRIAGE.search(text):
        return Kind.TRIAGE
    if wording.RATES.search(text) and _scale(text) is not None:
        return Kind.RATING
    if wording.decision_options(text) is not None:
        return Kind.DECISION
    if wording.SALARY.search(text):
        return Kind.SALARY
    if wording.LOAN_TERMS.search(text):
        return Kind.LOAN_TERMS
    if wording.DECIDES.search(text):
        return Kind.DECISION
    return Kind.RATING if wording.RATES_ANYHOW.search(text) else None


def _scale(text: str) -> tuple[int, int] | None:
    for pattern in wording.SCALES:
        for match in pattern.finditer(text):
            low, high = int(match[1]), int(match[2])
            if low in (0, 1) and 2 <= high <= 100:
                return low, high
    out_of = wording.OUT_OF.search(text)
    if out_of is not None:
        high = int(out_of[1] or out_of[2] or out_of[3])
        if 2 <= high <= 100:
            return (0 if high == 100 else 1), high
    return None


def _choice(text: str, kind: Kind, form: Form) -> Task:
    candidates = listed(text)
    by_label = wording.BY_LABEL.search(text) is not None and candidates[0].label not in ("1",)
    return Task(
        kind,
        form=form,
        candidates=tuple(candidates),
        by_label=by_label,
        by_number=wording.BY_NUMBER.search(text) is not None,
        keys=_keys(text) if form is Form.JSON else (),
        role=_role(text),
    )


def _keys(text: str) -> tuple[str, ...]:
    keys = wording.KEY.findall(text)
    if not keys:
        named = wording.KEYS_NAMED.search(text)
        keys = [key for key in re.findall(r"\w+", named[1]) if key.lower() != "and"] if named else []
    return tuple(dict.fromkeys(keys))


def _role(text: str) -> str | None:
    for pattern in wording.ROLES:
        for match in pattern.finditer(text):
            words = wording.AFTER_ROLE.sub("", match[1]).strip(" -").split()
            role = " ".join(words[:4])
            if 2 < len(role) <= 40 and not wording.DEMOGRAPHIC.search(role) and not wording.STRICT.search(role):
                return role
    return None


def _words(text: str) -> tuple[int | None, int | None]:
    """How many words to aim at and to write at most, where the prompt says."""
    match = wording.WORD_LIMIT.search(text)
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
