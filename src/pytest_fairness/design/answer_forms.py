"""Forms of an answer: what a test accepts, as a JSON schema for endpoints that take one, and as the
line that a reply ends with for all others.

The sentence that asks for either stands in the prompt, so that prompt and form agree. A form
changes what is measured: a finding says how its trials were asked. See
``docs/decisions/0220-asking-for-the-form.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_fairness.errors import UsageError
from pytest_fairness.model import JSON, Elicitation

ANSWER_SLOT = "answer"
"""The slot of a template where the sentence stands that asks for the form."""
_PLACE = f"{{{ANSWER_SLOT}}}"
#: The value of the slot until it is known by which way an endpoint is asked.
UNFILLED: Mapping[str, str] = {ANSWER_SLOT: _PLACE}
_LONGEST = 1000
_EXAMPLE = (
    "answer={'decision': ['approve', 'deny']}, or a range of whole numbers: answer={'rating': (1, "
    "10)}"
)
_OWN_KEYS = ("thinking", "declined", "reason")
#: In this order: who has to answer first cannot think, and who cannot decline answers.
_BESIDE: Mapping[str, JSON] = {
    "thinking": {"type": "string", "description": "Your reasons, in one or two sentences."},
    "declined": {"type": "boolean", "description": "True only if you decline to answer."},
    "reason": {"type": "string", "description": "The reason for declining; else empty."},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm:
    """The answers that a test accepts under one *key*: two or more *labels*, or, where these are
    empty, the whole numbers from *low* to *high*.
    """

    key: str
    labels: tuple[str, ...] = ()
    low: int = 0
    high: int = 0

    @property
    def answers(self) -> tuple[str, ...]:
        """Return every answer, as a text."""
        return self.labels or tuple(map(str, range(self.low, self.high + 1)))

    @property
    def response_format(self) -> dict[str, JSON]:
        """Return the parameter ``response_format`` by which the form is asked for."""
        answer: dict[str, JSON] = {"type": "string", "enum": list(self.labels)}
        if not self.labels:
            # One by one: not every provider takes a minimum and a maximum.
            answer = {"type": "integer", "enum": list(range(self.low, self.high + 1))}
        properties: dict[str, JSON] = {**_BESIDE, self.key: {"anyOf": [answer, {"type": "null"}]}}
        schema: dict[str, JSON] = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        described: dict[str, JSON] = {"name": "answer", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": described}}

    def sentence(self, elicitation: Elicitation) -> str:
        """Return the sentence of that *elicitation*; empty for Elicitation.PLAIN."""
        if elicitation is Elicitation.LINE:
            what = f"a whole number from {self.low} to {self.high}"
            if self.labels:
                what = f"one of {', '.join(self.labels)}"
            return (
                f"End with a line `ANSWER: <{what}>`; if you decline to answer, with a line "
                "`ANSWER: declined`."
            )
        if elicitation is Elicitation.FORM:
            what = f"a whole number from {self.low} to {self.high}"
            if self.labels:
                what = f"one of {', '.join(map(_quoted, self.labels))}"
            return (
                'Answer with a JSON object: "thinking", your reasons in one or two sentences; '
                '"declined", true only if you decline to answer; "reason", why you decline, else '
                f"empty; {_quoted(self.key)}, {what}, or null if you decline."
            )
        return ""

    def asked_in(self, texts: Sequence[str], elicitation: Elicitation) -> tuple[str, ...]:
        """Return *texts*, the turns of a conversation, with the sentence in the place of its slot,
        or at the end of the last.
        """
        sentence = self.sentence(elicitation)
        if any(_PLACE in text for text in texts):
            return tuple(text.replace(_PLACE, sentence).strip() for text in texts)
        if not sentence:
            return tuple(texts)
        return (*texts[:-1], f"{texts[-1]}\n\n{sentence}")

    def to_dict(self) -> dict[str, JSON]:
        """Return what the table of trials carries of the form."""
        return {"key": self.key, "answers": list(self.answers)}


def answer_form(given: object) -> AnswerForm | None:
    """Return the form of *given*, one key with its labels, two or more texts, or with the ends of a
    range of whole numbers; None for None. Raises UsageError.
    """
    if given is None:
        return None
    entries: list[tuple[object, object]] = []
    if isinstance(given, Mapping):
        entries = list(given.items())
    if len(entries) != 1 or not isinstance(entries[0][0], str):
        raise UsageError(f"answer={given!r:.60}: give one key and what may stand there: {_EXAMPLE}")
    key, accepted = entries[0][0], entries[0][1]
    if key in _OWN_KEYS:
        raise UsageError(f"answer={{{key!r}: …}}: the form has {key!r} of its own; rename the key")
    values: list[Any] = []
    if isinstance(accepted, Sequence) and not isinstance(accepted, str):
        values = list(accepted)
    if _is_range(values):
        return AnswerForm(key=key, low=values[0], high=values[1])
    if _are_labels(values):
        return AnswerForm(key=key, labels=tuple(values))
    raise UsageError(
        f"answer={{{key!r}: {accepted!r:.60}}}: give two or more different labels: {_EXAMPLE}"
    )


def _is_range(values: Sequence[Any]) -> bool:
    """Return whether *values* are the ends of a range of whole numbers that is not too long."""
    if len(values) != 2 or set(map(type, values)) != {int}:
        return False
    return 0 < int(values[1] - values[0]) <= _LONGEST


def _are_labels(values: Sequence[Any]) -> bool:
    """Return whether *values* are two or more different texts."""
    texts = {value for value in values if isinstance(value, str)}
    return 1 < len(texts) == len(values)


def _quoted(text: str) -> str:
    return f'"{text}"'
