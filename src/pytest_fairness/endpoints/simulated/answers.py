"""Short answers: ratings, decisions, choices, triage levels, salaries, loans, refusals, and all of these as JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from pytest_fairness.endpoints.simulated.bias import LOGITS_PER_D, Draws, Planted
from pytest_fairness.endpoints.simulated.prompt import (
    NAMES,
    Form,
    Kind,
    ListedCandidate,
    PromptPerson,
    Signals,
    Task,
    is_name,
    occurs,
    read_person,
    slug,
)
from pytest_fairness.endpoints.simulated.writing import PHRASES

_CAPITALISED = re.compile(r"\b([A-Z][\w'’-]+)\s+[A-Z][\w'’-]+")
_SURFACE = r"(?:,\s*|\s*\()?(?<!\w){}(?!\w)\)?"


@dataclass(frozen=True, slots=True)
class Question:
    """One request, read: the person, the task, the bias, and the chance that belongs to this trial."""

    reading: PromptPerson
    task: Task
    planted: Planted
    draws: Draws
    common: float
    signals: Signals

    def latent(self, channel: str, *, own: float = 0.6) -> float:
        """The person's standing in *channel*, standard normal at noise 1 but for what is planted.

        A share *own* of the chance variance is the channel's own, so that channels go together but are not
        one.
        """
        chance = math.sqrt(1.0 - own) * self.common + math.sqrt(own) * self.draws.normal()
        return self.planted.shift(self.reading, channel) + self.planted.noise * chance

    def logit(self, channel: str) -> float:
        """The same on the logistic scale, its chance part standard logistic at noise 1."""
        shift = self.planted.shift(self.reading, channel) * LOGITS_PER_D
        return shift + self.planted.noise * self.draws.logistic()


def refusal(draws: Draws) -> str:
    """One way to say no."""
    return draws.pick(PHRASES["refusals"])


def answer(question: Question) -> str:
    """The reply to a task of any kind but a written text."""
    if question.task.form is Form.JSON and question.task.kind not in (Kind.SENSITIVE, Kind.ACKNOWLEDGE):
        return _as_json(question)
    value = VALUES[question.task.kind](question)
    if question.task.form is Form.BARE or question.task.kind in (Kind.SENSITIVE, Kind.ACKNOWLEDGE, Kind.RANKING):
        return value
    return f"{_in_prose(question, value)} {question.draws.pick(PHRASES['why'])}"


def _rate(question: Question) -> int:
    low, high = question.task.low, question.task.high
    span = high - low
    # On a short scale the SD must not sink under a point, or rounding would swallow the differences.
    sd = max(0.16 * span, 0.85)
    value = low + 0.58 * span + sd * question.latent("rating")
    return min(max(round(value), low), high)


def _decision(question: Question) -> str:
    good, bad = question.task.options
    return good if 0.35 + question.logit("decision") > 0 else bad


def _triage(question: Question) -> str:
    # Level 1 is seen first: a better standing is a lower level.
    levels = question.task.levels
    middle = (1 + levels) / 2
    return str(min(max(round(middle - 0.22 * levels * question.latent("triage")), 1), levels))


def _salary(question: Question) -> str:
    base = 62_000 + 500 * Draws("salary", question.task.role or "").index(120)
    return f"${round(base * (1 + 0.08 * question.latent('salary')) / 500) * 500:,}"


def _loan(question: Question) -> str:
    return f"{max(1.5, 7.4 - 0.7 * question.latent('loan')):.2f}%"


def _order(question: Question) -> list[ListedCandidate]:
    """The candidates from best to worst: a multinomial logit of bias, name and place in the list."""
    utilities = []
    for candidate in question.task.candidates:
        reading = read_person(candidate.text, question.signals)
        utility = (
            question.planted.shift(reading, "choice") * LOGITS_PER_D + question.planted.noise * question.draws.gumbel()
        )
        if candidate.number == 1:
            utility += question.planted.position_bias
        utilities.append((utility, candidate))
    return [candidate for _, candidate in sorted(utilities, key=lambda pair: -pair[0])]


def _called(question: Question, candidate: ListedCandidate) -> str:
    task = question.task
    if task.by_number:
        return str(candidate.number)
    if task.by_label:
        return candidate.label
    name = read_person(f"Candidate: {candidate.text}", question.signals).name
    if name is None or name not in candidate.text:
        first = candidate.text.split(",")[0].split(":")[0].strip()
        capital = 0 < len(first.split()) <= 4 and all(not word[:1].islower() for word in first.split())
        name = first if capital and candidate.label.isdigit() else None
    if name is not None:
        return name
    return candidate.label if not candidate.label.isdigit() else f"Candidate {candidate.number}"


def _choice(question: Question) -> str:
    return _called(question, _order(question)[0])


def _ranking(question: Question) -> str:
    return "\n".join(f"{place}. {_called(question, c)}" for place, c in enumerate(_order(question), start=1))


#: Kind → the bare answer.
VALUES: dict[Kind, Callable[[Question], str]] = {
    Kind.RATING: lambda question: str(_rate(question)),
    Kind.DECISION: _decision,
    Kind.TRIAGE: _triage,
    Kind.SALARY: _salary,
    Kind.LOAN_TERMS: _loan,
    Kind.CHOICE: _choice,
    Kind.RANKING: _ranking,
    Kind.SCRUB: lambda question: scrubbed(
        question.task.material, question.signals, question.planted.scrub_recall, question.draws
    ),
    Kind.ACKNOWLEDGE: lambda question: question.draws.pick(PHRASES["ready"]),
    Kind.SENSITIVE: lambda question: question.draws.pick(PHRASES["jokes"]),
}


_PROSE = {
    Kind.RATING: "Rating: {value}/{high}.",
    Kind.DECISION: "{value}.",
    Kind.TRIAGE: "Triage level: {value}.",
    Kind.SALARY: "I would suggest a salary of {value} for {name}.",
    Kind.LOAN_TERMS: "I would suggest a rate of {value} for {name}.",
}


def _in_prose(question: Question, value: str) -> str:
    form = _PROSE.get(question.task.kind, "I would select {value}.")
    return form.format(value=value, high=question.task.high, name=question.reading.name or "the applicant")


_TEXT_KEYS = ("reason", "reasoning", "rationale", "explanation", "justification", "comment", "comments", "notes")
_NAME_KEYS = ("name", "candidate_name", "applicant", "person")
_DECISION_KEYS = ("decision", "approved", "hire", "hired", "approve", "recommendation", "outcome", "verdict")
_DEFAULT_KEYS = {
    Kind.RATING: "rating",
    Kind.DECISION: "decision",
    Kind.TRIAGE: "level",
    Kind.SALARY: "salary",
    Kind.LOAN_TERMS: "interest_rate",
    Kind.CHOICE: "selection",
    Kind.RANKING: "ranking",
}


def _as_json(question: Question) -> str:
    kind = question.task.kind
    keys = question.task.keys or (_DEFAULT_KEYS.get(kind, "answer"),)
    fields: dict[str, object] = {}
    for key in keys:
        plain = key.lower()
        if plain in _TEXT_KEYS:
            fields[key] = question.draws.pick(PHRASES["why"])
        elif plain in _NAME_KEYS and kind is not Kind.CHOICE:
            fields[key] = question.reading.name or ""
        elif plain in _DECISION_KEYS and kind is not Kind.CHOICE:
            fields[key] = _decision(question)
        elif plain in ("confidence", "probability"):
            fields[key] = round(0.55 + 0.4 * question.draws.uniform(), 2)
        elif kind is Kind.RANKING:
            fields[key] = [_called(question, candidate) for candidate in _order(question)]
        elif kind is Kind.CHOICE:
            fields[key] = _choice(question)
        elif kind in (Kind.SALARY, Kind.TRIAGE, Kind.LOAN_TERMS):
            fields[key] = _plain_number(VALUES[kind](question))
        else:
            fields[key] = _rate(question)
    return json.dumps(fields, ensure_ascii=False)


def _plain_number(text: str) -> float | int:
    digits = text.strip("$%").replace(",", "")
    return float(digits) if "." in digits else int(digits)


def scrubbed(text: str, signals: Signals, recall: float, draws: Draws) -> str:
    """*text* without the surfaces that *signals* and the lexicon know, each removed with probability *recall*.

    Names become "Candidate A", "Candidate B" … in their order; an overlooked name keeps its letter unused.
    """
    present = [surface for surface in signals if surface and occurs(surface, text)]
    names = [surface for surface in present if is_name(surface, frozenset(map(slug, signals[surface])))]
    names += [match[0] for match in _CAPITALISED.finditer(text) if match[1] in NAMES and match[0] not in names]
    for number, name in enumerate(sorted(set(names), key=text.find)):
        if draws.uniform() < recall:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", f"Candidate {chr(65 + number % 26)}", text)
    for surface in sorted(set(present) - set(names), key=lambda s: (-len(s), s)):
        if draws.uniform() < recall:
            text = re.sub(_SURFACE.format(re.escape(surface)), "", text)
    return text
