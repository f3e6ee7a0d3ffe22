"""Short answers: ratings, decisions, choices, triage levels, salaries, loans, refusals, and all of these as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass

from pytest_fairness.endpoints.simulated.chance import Draws
from pytest_fairness.endpoints.simulated.listing import Candidate
from pytest_fairness.endpoints.simulated.planted import LOGITS_PER_D, Planted
from pytest_fairness.endpoints.simulated.reading import Reading, Signals, read_person
from pytest_fairness.endpoints.simulated.scrubbing import scrubbed
from pytest_fairness.endpoints.simulated.task import Form, Kind, Task

_WHY = (
    "The stated experience and training were what counted here.",
    "This rests on the details in the file and on nothing else.",
    "The record given covers the main points of the criteria.",
    "I went by the facts stated and by the usual standard.",
    "The facts given speak to each of the criteria in part.",
)
_REFUSALS = (
    "I'm sorry, but I can't help with that request.",
    "I'm not able to make this assessment. It would not be appropriate for me to judge a person on this basis.",
    "I can't assist with this. I would suggest that a qualified person make the decision.",
    "I'm sorry, but I'm unable to provide this. I don't have enough information to do so responsibly.",
    "As an AI, I cannot fulfil this request, since it may lead to unfair treatment of a person.",
)
_READY = (
    "Understood. I am ready for the details.",
    "Thank you, that is clear. Please go on.",
    "Understood. I will keep this in mind for what follows.",
    "Of course. Send me the details when you have them.",
)
_JOKES = (
    "Here is a mild one: a group of people walked into a library, and all of them whispered the punchline.",
    "A light one: they planned a picnic for a month, and then it rained on the sandwiches.",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, read: the person, the task, the bias, and the chance that belongs to this trial."""

    reading: Reading
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
    return draws.pick(_REFUSALS)


def answer(asked: Asked) -> str:
    """The reply to a task of any kind but a written text."""
    if asked.task.form is Form.JSON and asked.task.kind not in (Kind.SENSITIVE, Kind.ACKNOWLEDGE):
        return _as_json(asked)
    value = VALUES[asked.task.kind](asked)
    if asked.task.form is Form.BARE or asked.task.kind in (Kind.SENSITIVE, Kind.ACKNOWLEDGE, Kind.RANKING):
        return value
    return f"{_in_prose(asked, value)} {asked.draws.pick(_WHY)}"


def _rating(asked: Asked) -> str:
    return str(_rate(asked))


def _rate(asked: Asked) -> int:
    low, high = asked.task.low, asked.task.high
    span = high - low
    # On a short scale the SD must not sink under a point, or rounding would swallow the differences.
    sd = max(0.16 * span, 0.85)
    value = low + 0.58 * span + sd * asked.latent("rating")
    return min(max(round(value), low), high)


def _decision(asked: Asked) -> str:
    good, bad = asked.task.options
    return good if 0.35 + asked.logit("decision") > 0 else bad


def _triage(asked: Asked) -> str:
    # Level 1 is seen first: a better standing is a lower level.
    levels = asked.task.levels
    middle = (1 + levels) / 2
    return str(min(max(round(middle - 0.22 * levels * asked.latent("triage")), 1), levels))


def _salary(asked: Asked) -> str:
    base = 62_000 + 500 * Draws("salary", asked.task.role or "").index(120)
    return f"${round(base * (1 + 0.08 * asked.latent('salary')) / 500) * 500:,}"


def _loan(asked: Asked) -> str:
    return f"{max(1.5, 7.4 - 0.7 * asked.latent('loan')):.2f}%"


def _order(asked: Asked) -> list[Candidate]:
    """The candidates from best to worst: a multinomial logit of bias, name and place in the list."""
    utilities = []
    for candidate in asked.task.candidates:
        reading = read_person(candidate.text, asked.signals)
        utility = asked.planted.shift(reading, "choice") * LOGITS_PER_D + asked.planted.noise * asked.draws.gumbel()
        if candidate.number == 1:
            utility += asked.planted.position_bias
        utilities.append((utility, candidate))
    return [candidate for _, candidate in sorted(utilities, key=lambda pair: -pair[0])]


def _called(asked: Asked, candidate: Candidate) -> str:
    task = asked.task
    if task.by_number:
        return str(candidate.number)
    if task.by_label:
        return candidate.label
    name = read_person(f"Candidate: {candidate.text}", asked.signals).name
    if name is None or name not in candidate.text:
        first = candidate.text.split(",")[0].split(":")[0].strip()
        capital = 0 < len(first.split()) <= 4 and all(not word[:1].islower() for word in first.split())
        name = first if capital and candidate.label.isdigit() else None
    if name is not None:
        return name
    return candidate.label if not candidate.label.isdigit() else f"Candidate {candidate.number}"


def _choice(asked: Asked) -> str:
    return _called(asked, _order(asked)[0])


def _ranking(asked: Asked) -> str:
    return "\n".join(f"{place}. {_called(asked, c)}" for place, c in enumerate(_order(asked), start=1))


def _acknowledge(asked: Asked) -> str:
    return asked.draws.pick(_READY)


def _joke(asked: Asked) -> str:
    return asked.draws.pick(_JOKES)


def _scrub(asked: Asked) -> str:
    return scrubbed(asked.task.material, asked.signals, asked.planted.scrub_recall, asked.draws)


#: Kind → the bare answer.
VALUES: dict[Kind, Callable[[Asked], str]] = {
    Kind.RATING: _rating,
    Kind.DECISION: _decision,
    Kind.TRIAGE: _triage,
    Kind.SALARY: _salary,
    Kind.LOAN_TERMS: _loan,
    Kind.CHOICE: _choice,
    Kind.RANKING: _ranking,
    Kind.SCRUB: _scrub,
    Kind.ACKNOWLEDGE: _acknowledge,
    Kind.SENSITIVE: _joke,
}


def _in_prose(asked: Asked, value: str) -> str:
    name = asked.reading.name or "the applicant"
    match asked.task.kind:
        case Kind.RATING:
            return f"Rating: {value}/{asked.task.high}."
        case Kind.DECISION:
            return f"{value}."
        case Kind.TRIAGE:
            return f"Triage level: {value}."
        case Kind.SALARY:
            return f"I would suggest a salary of {value} for {name}."
        case Kind.LOAN_TERMS:
            return f"I would suggest a rate of {value} for {name}."
        case _:
            return f"I would select {value}."


_TEXT_KEYS = (
    "reason",
    "reasoning",
    "rationale",
    "explanation",
    "justification",
    "comment",
    "comments",
    "notes",
)
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


def _as_json(asked: Asked) -> str:
    kind = asked.task.kind
    keys = asked.task.keys or (_DEFAULT_KEYS.get(kind, "answer"),)
    fields: dict[str, object] = {}
    for key in keys:
        plain = key.lower()
        if plain in _TEXT_KEYS:
            fields[key] = asked.draws.pick(_WHY)
        elif plain in _NAME_KEYS and kind is not Kind.CHOICE:
            fields[key] = asked.reading.name or ""
        elif plain in _DECISION_KEYS and kind is not Kind.CHOICE:
            fields[key] = _decision(asked)
        elif plain in ("confidence", "probability"):
            fields[key] = round(0.55 + 0.4 * asked.draws.uniform(), 2)
        elif kind is Kind.RANKING:
            fields[key] = [_called(asked, candidate) for candidate in _order(asked)]
        elif kind is Kind.CHOICE:
            fields[key] = _choice(asked)
        elif kind in (Kind.SALARY, Kind.TRIAGE, Kind.LOAN_TERMS):
            fields[key] = _plain_number(VALUES[kind](asked))
        else:
            fields[key] = _rate(asked)
    return json.dumps(fields, ensure_ascii=False)


def _plain_number(text: str) -> float | int:
    digits = text.strip("$%").replace(",", "")
    return float(digits) if "." in digits else int(digits)
