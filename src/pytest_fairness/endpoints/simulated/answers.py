"""The answer to a prompt: a text, a rating, a decision, a choice, a triage level, a salary, a loan;
also as JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
from pytest_fairness.endpoints.simulated.writing import BANKS, TEXTS, write

_CAPITALISED = re.compile(r"\b([A-Z][\w'’-]+)\s+[A-Z][\w'’-]+")
_SURFACE = r"(?:,\s*|\s*\()?(?<!\w){}(?!\w)\)?"
#: Key of a JSON reply → what stands there, whatever the prompt asks for.
_KEYS = {key: meaning for meaning, keys in TEXTS["keys"].items() for key in keys}


@dataclass(frozen=True, slots=True)
class Question:
    """One request, read: the person, the task, the bias, and the chance that belongs to this trial."""

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
        return str(self.draws.pick(TEXTS["answers"][phrases]))


def answer(question: Question) -> str:
    """The reply to a task of any kind."""
    task = question.task
    reading = question.reading
    if task.kind in BANKS:
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
    if task.kind in ("sensitive", "acknowledge"):
        return question.pick(task.kind)
    if task.form == "json":
        keys = task.keys or (TEXTS["default_keys"].get(task.kind, "answer"),)
        return json.dumps({key: _field(question, key.lower()) for key in keys}, ensure_ascii=False)
    value = _VALUES[task.kind](question)
    if isinstance(value, list):
        return "\n".join(f"{place}. {name}" for place, name in enumerate(value, start=1))
    bare = {"salary": "${:,}", "loan_terms": "{:.2f}%"}.get(task.kind, "{}").format(value)
    if task.form == "bare":
        return bare
    prose = TEXTS["prose"].get(task.kind, "I would select {value}.")
    prose = prose.format(value=bare, high=task.high, name=reading.name or "the applicant")
    return f"{prose} {_explanation(question) if task.facts else question.pick('why')}"


def _explanation(question: Question) -> str:
    """A sentence about each of the facts that it takes up: the more, the longer a text would be."""
    facts = question.draws.shuffled(question.task.facts)
    number = _within(
        0, 0.6 * len(facts) + 0.25 * len(facts) * question.latent("word_count"), len(facts)
    )
    sentences = [
        f"The {fact} as stated was weighed against what is asked for."
        for fact in facts[: max(number, 1)]
    ]
    return " ".join([*sentences, question.pick("why")])


def _with_slips(text: str, question: Question) -> str:
    """*text* with a sentence at the end of its longest paragraph for each class by which it slips."""
    paragraphs = text.split("\n\n")
    draws = question.draws
    longest = max(range(len(paragraphs)), key=lambda at: len(paragraphs[at]))
    classes = slipped(question.planted.slips, question.reading, draws)
    said = [
        draws.pick(TEXTS["slips"].get(protected, TEXTS["slips"]["cultural_fit"]))
        for protected in classes
    ]
    paragraphs[longest] = " ".join([paragraphs[longest], *said])
    return "\n\n".join(paragraphs)


def _field(question: Question, key: str) -> object:
    """Return what stands at *key* of a JSON reply."""
    kind = question.task.kind
    meaning = _KEYS.get(key)
    if meaning == "why":
        return question.pick("why")
    if meaning == "confidence":
        return round(0.55 + 0.4 * question.draws.uniform(), 2)
    if meaning == "name" and kind != "choice":
        return question.reading.name or ""
    if meaning == "decision" and kind != "choice":
        return _decision(question)
    return (_rating if kind == "decision" else _VALUES.get(kind, _rating))(question)


def _within(low: int, value: float, high: int) -> int:
    return min(max(round(value), low), high)


def _rating(question: Question) -> int:
    low = question.task.low
    high = question.task.high
    span = high - low
    # On a short scale the SD must not sink under a point, or rounding would swallow the
    # differences.
    return _within(
        low, low + 0.58 * span + max(0.16 * span, 0.85) * question.latent("rating"), high
    )


def _decision(question: Question) -> str:
    good, bad = question.task.options
    logit = question.planted.shift(question.reading, "decision") * LOGITS_PER_D
    if 0.35 + logit + question.planted.noise * question.draws.logistic() > 0:
        return good
    return bad


def _triage(question: Question) -> int:
    # Level 1 is seen first: a better standing is a lower level.
    levels = question.task.levels
    return _within(1, (1 + levels) / 2 - 0.22 * levels * question.latent("triage"), levels)


def _salary(question: Question) -> int:
    base = 62_000 + 500 * Draws("salary", question.task.role or "").index(120)
    return round(base * (1 + 0.08 * question.latent("salary")) / 500) * 500


def _loan(question: Question) -> float:
    return round(max(1.5, 7.4 - 0.7 * question.latent("loan")), 2)


def _ranking(question: Question) -> list[str]:
    """The candidates from best to worst: a multinomial logit of bias, name and place in the list.
    Where those are no people but what may be said of one, the first stand for the best, and the
    bias is that about the person.
    """
    planted = question.planted
    candidates = question.task.candidates
    utilities = []
    people = [read_person(candidate.text, question.signals) for candidate in candidates]
    about = 0.0
    if not any(person.groups for person in people):
        about = planted.shift(question.reading, "choice")
    for place, (candidate, person) in enumerate(zip(candidates, people, strict=True)):
        shift = planted.shift(person, "choice") + about * (
            1 - 2 * place / max(len(candidates) - 1, 1)
        )
        utility = shift * LOGITS_PER_D + planted.noise * question.draws.gumbel()
        utilities.append((utility + planted.position_bias * (candidate.number == 1), candidate))
    return [
        _called(question, candidate)
        for _, candidate in sorted(utilities, key=lambda pair: -pair[0])
    ]


def _called(question: Question, candidate: ListedCandidate) -> str:
    if question.task.by == "number":
        return str(candidate.number)
    if question.task.by == "label":
        return candidate.label
    name = read_person(f"Candidate: {candidate.text}", question.signals).name
    if name is not None and name in candidate.text:
        return name
    first = candidate.text.split(",")[0].split(":")[0].strip()
    if not candidate.label.isdigit():
        return candidate.label
    capital = 0 < len(first.split()) <= 4 and all(not word[:1].islower() for word in first.split())
    if capital:
        return first
    return f"Candidate {candidate.number}"


def _scrubbed(question: Question) -> str:
    """The material without the surfaces that signals and lexicon know, each removed with the
    planted probability.

    Names become "Candidate A", "Candidate B" … in their order; an overlooked name keeps its letter
    unused.
    """
    text = question.task.material
    recall = question.planted.scrub_recall
    draws = question.draws
    present, names = signals_in(text, question.signals)
    names += [
        match[0]
        for match in _CAPITALISED.finditer(text)
        if match[1] in NAMES and match[0] not in names
    ]
    for number, name in enumerate(sorted(set(names), key=text.find)):
        if draws.uniform() < recall:
            text = re.sub(
                rf"(?<!\w){re.escape(name)}(?!\w)", f"Candidate {chr(65 + number % 26)}", text
            )
    for surface in sorted(set(present) - set(names), key=lambda s: (-len(s), s)):
        if draws.uniform() < recall:
            text = re.sub(_SURFACE.format(re.escape(surface)), "", text)
    return text


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
