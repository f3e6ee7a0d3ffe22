"""The answer to a prompt: a text, a rating, a decision, a choice, a triage level, a salary, a loan;
also as JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_fairness.endpoints.simulated.bias import LOGITS_PER_D, Draws, Planted, slipped
from pytest_fairness.endpoints.simulated.prompt import (
    NAMES,
    ListedCandidate,
    PromptPerson,
    Signals,
    Task,
    read_person,
    signals_in,
)
from pytest_fairness.endpoints.simulated.styles import styled
from pytest_fairness.endpoints.simulated.writing import BANKS, TEXTS, write
from pytest_fairness.model import NO_ANSWER

_CAPITALISED = re.compile(r"\b([A-Z][\w'’-]+)\s+[A-Z][\w'’-]+")
_SURFACE = r"(?:,\s*|\s*\()?(?<!\w){}(?!\w)\)?"
#: Key of a JSON reply → what stands there, whatever the prompt asks for.
_KEYS: dict[str, str] = {}
for _meaning, _keys in TEXTS["keys"].items():
    _KEYS.update(dict.fromkeys(_keys, _meaning))


@dataclass(frozen=True, slots=True)
class Question:
    """One request, read: the person, the task, the bias, and the chance of this trial."""

    reading: PromptPerson
    task: Task
    planted: Planted
    draws: Draws
    common: float
    signals: Signals

    def latent(self, channel: str) -> float:
        """The person's standing in *channel*, standard normal at noise 1 but for what is planted.

        A share of .6 of the chance variance is the channel's own, so that channels go together but
        are not one.
        """
        chance = math.sqrt(0.4) * self.common + math.sqrt(0.6) * self.draws.normal()
        return self.planted.shift(self.reading, channel) + self.planted.noise * chance

    def pick(self, phrases: str) -> str:
        """One of the *phrases* of this name."""
        return str(self.draws.pick(_in_language(self.task, "answers")[phrases]))


#: Fields of a form beside the answer: what is drawn for them must not change the answer.
_BESIDE: Mapping[str, Callable[[Question], object]] = {
    "thinking": lambda question: question.pick("why"),
    NO_ANSWER: lambda _question: False,
    "reason": lambda _question: "",
}


def answer(question: Question, *, on_line: bool = False) -> str:
    """The reply to a task of any kind; *on_line*: with a line ``ANSWER: …`` at its end."""
    task = question.task
    if task.kind in BANKS:
        return _written(question)
    if task.kind in ("sensitive", "acknowledge"):
        return question.pick(task.kind)
    if task.form == "json":
        return _as_json(question)
    value = _VALUES[task.kind](question)
    words = _in_words(question, value)
    if not on_line:
        return words
    if isinstance(value, list):
        value = ", ".join(value)
    return f"{words}\n\n{_in_language(task, 'line')['key']}: {value}"


def explained(question: Question) -> str:
    """The reply to a task with facts, with those that it takes up on a line at its end; where the
    style of the endpoint explains nothing, with the first.
    """
    words = answer(question)
    facts = question.task.facts
    taken_up = [fact for fact in facts if f"The {fact} as stated" in words] or facts[:1]
    return f"{words}\n\nANSWER: {', '.join(taken_up)}"


def _as_json(question: Question) -> str:
    """The reply with a field for each key of the task, by default the one of its kind."""
    task = question.task
    keys = task.keys or (TEXTS["default_keys"].get(task.kind, "answer"),)
    beside: Mapping[str, Callable[[Question], object]] = {}
    if NO_ANSWER in keys:
        beside = _BESIDE
    fields = {key: _field(question, key.lower()) for key in keys if key not in beside}
    for key, fill in beside.items():
        fields[key] = fill(question)
    return json.dumps({key: fields[key] for key in keys}, ensure_ascii=False)


def _in_language(task: Task, texts: str) -> Mapping[str, Any]:
    """Return the *texts* of that name; German ones, as far as there are, for a German *task*."""
    english: Mapping[str, Any] = TEXTS[texts]
    if task.in_german:
        return {**english, **TEXTS[f"{texts}_german"]}
    return english


def _in_words(question: Question, value: object) -> str:
    """Return the reply that gives *value* as the task wants it: bare, or in a sentence."""
    task = question.task
    if isinstance(value, list):
        return "\n".join(f"{place}. {name}" for place, name in enumerate(value, start=1))
    bare = _FORMS.get(task.kind, "{}").format(value)
    style = question.planted.style
    if task.form == "bare" and style == "plain":
        return bare
    prose = _in_language(task, "prose").get(task.kind, "I would select {value}.")
    name = question.reading.name or "the applicant"
    prose = prose.format(value=bare, high=task.high, name=name)
    if style != "plain":
        other = _FORMS.get(task.kind, "{}").format(_other(question, value))
        why = question.pick("why")
        slots = {"value": bare, "answer": prose, "other": other, "why": why, "name": name}
        return styled(style, task.kind, question.draws, value, slots)
    if task.facts:
        return f"{prose} {_explanation(question)}"
    return f"{prose} {question.pick('why')}"


def _other(question: Question, value: object) -> object:
    """Return an answer that is not *value*, of the same kind."""
    if isinstance(value, (int, float)):
        return value + 1
    return next((option for option in question.task.options if option != value), value)


#: Kind of task → how its value is written, where that is not as it stands.
_FORMS = {"salary": "${:,}", "loan_terms": "{:.2f}%"}


def _written(question: Question) -> str:
    """A text of the kind that is asked for, with a slip where one is planted."""
    task = question.task
    reading = question.reading
    text = write(
        BANKS[task.kind],
        question.draws,
        name=reading.name,
        role=task.role,
        pronoun=reading.pronoun,
        length=question.latent("word_count"),
        tone=question.latent("sentiment"),
        words=task.words,
        most=task.most_words,
    )
    if question.planted.slips:
        return _with_slips(text, question)
    return text


def _explanation(question: Question) -> str:
    """A sentence about each of the facts that it takes up: the more, the longer a text would be."""
    facts = question.draws.shuffled(question.task.facts)
    most = len(facts)
    number = _within(0, 0.6 * most + 0.25 * most * question.latent("word_count"), most)
    sentences = [
        f"The {fact} as stated was weighed against what is asked for."
        for fact in facts[: max(number, 1)]
    ]
    return " ".join([*sentences, question.pick("why")])


def _with_slips(text: str, question: Question) -> str:
    """*text* whose longest paragraph ends with a sentence for each class by which it slips."""
    paragraphs = text.split("\n\n")
    draws = question.draws
    longest = paragraphs.index(max(paragraphs, key=len))
    sentences = [paragraphs[longest]]
    for protected_class in slipped(question.planted.slips, question.reading, draws):
        slips = TEXTS["slips"]
        sentences.append(draws.pick(slips.get(protected_class, slips["cultural_fit"])))
    paragraphs[longest] = " ".join(sentences)
    return "\n\n".join(paragraphs)


def _field(question: Question, key: str) -> object:
    """Return what stands at *key* of a JSON reply."""
    kind = question.task.kind
    meaning = _KEYS.get(key)
    meanings = _MEANINGS
    if kind == "choice":
        meanings = _MEANINGS_BESIDE_A_CHOICE
    if meaning in meanings:
        return meanings[meaning](question)
    if kind == "decision":
        return _rating(question)
    return _VALUES.get(kind, _rating)(question)


def _within(low: int, value: float, high: int) -> int:
    """Return *value* as a whole number on the scale."""
    return min(max(round(value), low), high)


def _rating(question: Question) -> int:
    """A rating on the scale of the task."""
    low = question.task.low
    high = question.task.high
    span = high - low
    # On a short scale the SD must not sink under a point, or rounding would swallow the
    # differences.
    return _within(
        low, low + 0.58 * span + max(0.16 * span, 0.85) * question.latent("rating"), high
    )


def _decision(question: Question) -> str:
    """The favourable or the unfavourable word of the task."""
    good, bad = question.task.options
    logit = question.planted.shift(question.reading, "decision") * LOGITS_PER_D
    if 0.35 + logit + question.planted.noise * question.draws.logistic() > 0:
        return good
    return bad


def _triage(question: Question) -> int:
    """A level of urgency, of which 1 is seen first."""
    # Level 1 is seen first: a better standing is a lower level.
    levels = question.task.levels
    return _within(1, (1 + levels) / 2 - 0.22 * levels * question.latent("triage"), levels)


def _salary(question: Question) -> int:
    """Dollars a year, to the nearest 500, around what the role pays."""
    base = 62_000 + 500 * Draws("salary", question.task.role or "").index(120)
    return round(base * (1 + 0.08 * question.latent("salary")) / 500) * 500


def _loan(question: Question) -> float:
    """Percent of interest a year."""
    return round(max(1.5, 7.4 - 0.7 * question.latent("loan")), 2)


def _ranking(question: Question) -> list[str]:
    """The candidates from best to worst: a multinomial logit of bias, name and place in the list.
    Where those are no people but what may be said of one, the first stand for the best, and the
    bias is that about the person.
    """
    planted = question.planted
    candidates = question.task.candidates
    people = [read_person(candidate.text, question.signals) for candidate in candidates]
    about = 0.0
    if not any(person.groups for person in people):
        about = planted.shift(question.reading, "choice")
    utilities: list[tuple[float, ListedCandidate]] = []
    last = max(len(candidates) - 1, 1)
    for place, (candidate, person) in enumerate(zip(candidates, people, strict=True)):
        shift = planted.shift(person, "choice") + about * (1 - 2 * place / last)
        utility = shift * LOGITS_PER_D + planted.noise * question.draws.gumbel()
        if candidate.number == 1:
            utility += planted.position_bias
        utilities.append((utility, candidate))
    utilities.sort(key=lambda pair: -pair[0])
    return [_called(question, candidate) for _, candidate in utilities]


def _called(question: Question, candidate: ListedCandidate) -> str:
    """Return what the task wants *candidate* called: by number, by label, by name."""
    if question.task.by == "number":
        return str(candidate.number)
    if question.task.by == "label":
        return candidate.label
    name = read_person(f"Candidate: {candidate.text}", question.signals).name
    if name is not None and name in candidate.text:
        return name
    if not candidate.label.isdigit():
        return candidate.label
    first = candidate.text.split(",")[0].split(":")[0].strip()
    if _is_title(first.split()):
        return first
    return f"Candidate {candidate.number}"


def _is_title(words: list[str]) -> bool:
    """Return whether *words* are few enough, and capitalised, to be what somebody is called."""
    return 0 < len(words) <= 4 and not any(word[:1].islower() for word in words)


def _scrubbed(question: Question) -> str:
    """The material without the surfaces that signals and lexicon know, each removed with the
    planted probability.

    Names become "Candidate A", "Candidate B" … in their order; an overlooked name keeps its letter
    unused.
    """
    text = question.task.material
    recall = question.planted.scrub_recall
    draws = question.draws
    present, signal_names = signals_in(text, question.signals)
    names = {*signal_names, *_known_names(text)}
    for number, name in enumerate(sorted(names, key=text.find)):
        if draws.uniform() < recall:
            letter = chr(65 + number % 26)
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", f"Candidate {letter}", text)
    for surface in sorted(set(present) - names, key=lambda surface: (-len(surface), surface)):
        if draws.uniform() < recall:
            text = re.sub(_SURFACE.format(re.escape(surface)), "", text)
    return text


def _known_names(text: str) -> Iterator[str]:
    """Yield the names in *text* whose first word is a first name."""
    for match in _CAPITALISED.finditer(text):
        if match[1] in NAMES:
            yield match[0]


_VALUES: Mapping[str, Callable[[Question], object]] = {
    "rating": _rating,
    "decision": _decision,
    "triage": _triage,
    "salary": _salary,
    "loan_terms": _loan,
    "choice": lambda question: _ranking(question)[0],
    "ranking": _ranking,
    "scrub": _scrubbed,
}
#: Meaning of a key → what stands there; a choice is named whatever its key means.
_MEANINGS_BESIDE_A_CHOICE: Mapping[str | None, Callable[[Question], object]] = {
    "why": lambda question: question.pick("why"),
    "confidence": lambda question: round(0.55 + 0.4 * question.draws.uniform(), 2),
}
_MEANINGS: Mapping[str | None, Callable[[Question], object]] = {
    **_MEANINGS_BESIDE_A_CHOICE,
    "name": lambda question: question.reading.name or "",
    "decision": _decision,
}
