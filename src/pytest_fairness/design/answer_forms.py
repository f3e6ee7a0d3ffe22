"""Forms of an answer: what a test accepts, as a JSON schema for endpoints that take one, and as the
line that a reply ends with for all others.

The sentence that asks for either stands in the prompt, so that prompt and form agree: in the place
of what a test says of the shape of its answer where neither is asked for. A form changes what is
measured: a finding says how its trials were asked. See
``docs/decisions/0220-asking-for-the-form.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pytest_fairness.documents import Text
from pytest_fairness.errors import InvalidEntry, UsageError
from pytest_fairness.model import CANDIDATES, DECLINING, JSON, NO_ANSWER, Elicitation
from pytest_fairness.words import listed

ANSWER_SLOT = "answer"
"""The slot of a template where the sentence stands that asks for the form."""
ANSWER_PLACE = f"{{{ANSWER_SLOT}}}"
"""The slot as it stands there."""
#: The value of the slot until it is known by which way an endpoint is asked.
UNFILLED: Mapping[str, str] = {ANSWER_SLOT: ANSWER_PLACE}
_LONGEST = 1000
_EXAMPLE = (
    "answer={'decision': ['approve', 'deny']}, or a range of whole numbers: answer={'rating': (1, "
    "10)}"
)
_OWN_KEYS = ("thinking", NO_ANSWER, "reason")
_YES_OR_NO = (True, False)
#: What a choice may say in the place of a candidate; of both, only where two are listed.
_BESIDE_CANDIDATES = ("neither", "none", "both", "tie")
_OF_TWO = ("both", "tie")
_CHOICE_EXAMPLE = (
    "answer={'choice': 'candidates'}, or, where nobody may be chosen as well, "
    "answer={'choice': ['candidates', 'neither']}"
)


class AnswerSentences(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sentences of one language that ask for an answer by line and by form, with ``{what}`` and
    ``{key}`` in them; what may be answered, a ``number``, one of ``labels`` or a ``ranking`` of
    them; and what the schema says of ``thinking``, ``declined`` and ``reason``.

    Raises UsageError for a sentence without its place.
    """

    line: Text
    form: Text
    number: Text
    labels: Text
    ranking: Text
    thinking: Text
    declined: Text
    reason: Text

    def __post_init__(self) -> None:
        for name, place in _PLACES_IN:
            if place not in getattr(self, name):
                raise InvalidEntry(f"{name}: write {place} where it belongs")
        if not any(f": {word}`" in self.line.casefold() for word in DECLINING):
            raise InvalidEntry(f"line: readers know to decline by {' or '.join(DECLINING)}")

    @property
    def common_fields(self) -> dict[str, JSON]:
        """Return the fields of a form beside the answer, in this order: who has to answer first
        cannot think, and who cannot decline answers.
        """
        return {
            "thinking": {"type": "string", "description": self.thinking},
            NO_ANSWER: {"type": "boolean", "description": self.declined},
            "reason": {"type": "string", "description": self.reason},
        }


_PLACES_IN = (
    ("line", "{what}"),
    ("form", "{key}"),
    ("form", "{what}"),
    ("number", "{low}"),
    ("number", "{high}"),
    ("labels", "{labels}"),
    ("ranking", "{labels}"),
)
ENGLISH = AnswerSentences(
    line="End with a line `ANSWER: <{what}>`; if you decline to answer, with a line "
    "`ANSWER: no answer`.",
    form='Answer with a JSON object: "thinking", your reasons in one or two sentences; "no_answer", '
    'true only if you decline to answer; "reason", why you decline to answer, else empty; {key}, '
    "{what}, or null if you decline to answer.",
    number="a whole number from {low} to {high}",
    labels="one of {labels}",
    ranking="all of {labels}, from the best to the worst",
    thinking="Your reasons, in one or two sentences.",
    declined="True only if you decline to answer.",
    reason="The reason for declining to answer; else empty.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm:
    """The answers that a test accepts under one *key*: two or more *labels*, or, where these are
    empty, the whole numbers from *low* to *high*. ``meanings`` says of labels that no scorer reads
    whether they are favourable; *ranking*: all labels are wanted, the best first; *sentences* ask for
    it, and *prose* where neither a line nor a form does.
    """

    key: str
    labels: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    meanings: Mapping[str, bool] = field(default_factory=dict)
    ranking: bool = False
    sentences: AnswerSentences = ENGLISH
    prose: str = ""

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
        elif self.ranking:
            answer = {"type": "array", "items": answer}
        properties = self.sentences.common_fields
        properties[self.key] = {"anyOf": [answer, {"type": "null"}]}
        schema: dict[str, JSON] = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        described: dict[str, JSON] = {"name": "answer", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": described}}

    def sentence(self, elicitation: Elicitation) -> str:
        """Return the sentence of that *elicitation*; for Elicitation.PLAIN the *prose*."""
        if elicitation is Elicitation.LINE:
            return self.sentences.line.replace("{what}", self._what(self.labels))
        if elicitation is Elicitation.FORM:
            what = self._what(list(map(_quoted, self.labels)))
            sentence = self.sentences.form.replace("{key}", _quoted(self.key))
            return sentence.replace("{what}", what)
        return self.prose

    def _what(self, labels: Sequence[str]) -> str:
        """Return what may be answered, in words: one of *labels*, or a number where there are
        none.
        """
        if labels:
            words = self.sentences.ranking if self.ranking else self.sentences.labels
            return words.replace("{labels}", ", ".join(labels))
        number = self.sentences.number.replace("{low}", str(self.low))
        return number.replace("{high}", str(self.high))

    def asked_in(self, texts: Sequence[str], elicitation: Elicitation) -> tuple[str, ...]:
        """Return *texts*, the turns of a conversation, with the sentence in the place of its slot,
        or at the end of the last.
        """
        sentence = self.sentence(elicitation)
        if any(ANSWER_PLACE in text for text in texts):
            return tuple(_with_sentence(text, sentence) for text in texts)
        if elicitation is Elicitation.PLAIN:
            return tuple(texts)
        return (*texts[:-1], f"{texts[-1]}\n\n{sentence}")

    def to_dict(self) -> dict[str, JSON]:
        """Return what the table of trials carries of the form."""
        carried: dict[str, JSON] = {"key": self.key, "answers": list(self.answers)}
        if self.meanings:
            carried["meanings"] = dict(self.meanings)
        return carried


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceForm(AnswerForm):
    """The form of a choice among candidates, whom each prompt lists by other names; ``labels`` are
    what may be answered in their place.
    """

    def among(self, candidates: Sequence[str]) -> AnswerForm:
        """Return the form of a prompt that calls its *candidates* so, in the order in which it
        lists them.
        """
        return AnswerForm(
            key=self.key,
            labels=(*candidates, *self.labels),
            ranking=self.ranking,
            sentences=self.sentences,
        )

    def to_dict(self) -> dict[str, JSON]:
        """Return what the table of trials carries of the form."""
        return {"key": self.key, "answers": [CANDIDATES, *self.labels]}


def answer_form(
    given: object, sentences: AnswerSentences = ENGLISH, prose: str = ""
) -> AnswerForm | None:
    """Return the form of *given*, one key with its labels, two or more texts, or with the ends of a
    range of whole numbers; None for None. Labels may say what they mean to a yes or no,
    ``{"einladen": True, "ablehnen": False}``. *prose* asks where neither form nor line does. Raises
    UsageError.
    """
    if given is None:
        return None
    key, accepted = _entry(given, _EXAMPLE)
    values = _values(accepted)
    if _is_range(values):
        low, high = values
        return AnswerForm(key=key, low=low, high=high, sentences=sentences, prose=prose)
    if _are_labels(values):
        meanings = _meanings(key, accepted)
        labels = tuple(values)
        return AnswerForm(
            key=key, labels=labels, meanings=meanings, sentences=sentences, prose=prose
        )
    raise UsageError(
        f"answer={{{key!r}: {accepted!r:.60}}}: give two or more different labels, none of "
        f"them {' or '.join(DECLINING)}: {_EXAMPLE}"
    )


def choice_form(
    given: object, *, size: int, ranking: bool, sentences: AnswerSentences = ENGLISH
) -> ChoiceForm | None:
    """Return the form of *given*, one key with ``candidates`` and what may be answered in the place
    of one, of a choice among *size* or a *ranking* of them; None for None. Raises UsageError.
    """
    if given is None:
        return None
    key, accepted = _entry(given, _CHOICE_EXAMPLE)
    if isinstance(accepted, str):
        accepted = [accepted]
    words = _values(accepted)
    beside = [word for word in words if word != CANDIDATES]
    allowed: tuple[str, ...] = _BESIDE_CANDIDATES
    if ranking:
        allowed = ()
    elif size > len(_OF_TWO):
        allowed = tuple(word for word in _BESIDE_CANDIDATES if word not in _OF_TWO)
    if len(beside) != len(words) - 1 or not set(map(str, beside)) <= {*allowed}:
        also = "nothing else"
        if allowed:
            also = f"any of {listed(allowed)}"
        raise UsageError(
            f"answer={{{key!r}: {accepted!r:.60}}}: candidates are called as the prompt lists them; "
            f"write {CANDIDATES!r}, and beside it {also}: {_CHOICE_EXAMPLE}"
        )
    return ChoiceForm(key=key, labels=tuple(beside), ranking=ranking, sentences=sentences)


def _entry(given: object, example: str) -> tuple[str, object]:
    """Return the one key of *given*, and what may stand there. Raises UsageError, with an
    *example*.
    """
    entries: list[tuple[object, object]] = []
    if isinstance(given, Mapping):
        entries = list(given.items())
    if len(entries) != 1 or not isinstance(entries[0][0], str):
        raise UsageError(f"answer={given!r:.60}: give one key and what may stand there: {example}")
    key, accepted = entries[0][0], entries[0][1]
    if key in _OWN_KEYS:
        raise UsageError(f"answer={{{key!r}: …}}: the form has {key!r} of its own; rename the key")
    return key, accepted


def _values(given: object) -> list[Any]:
    """Return the labels of *given*, or the ends of its range; none where it is neither."""
    if isinstance(given, (Sequence, Mapping)) and not isinstance(given, str):
        return list(given)
    return []


def _meanings(key: str, labels: object) -> Mapping[str, bool]:
    """Return what *labels* say that they mean; nothing where they say nothing. Raises UsageError
    for meanings other than true and false, and where only one of them is there.
    """
    if not isinstance(labels, Mapping):
        return {}
    meanings = list(labels.values())
    if set(map(type, meanings)) != {bool} or len(set(meanings)) < len(_YES_OR_NO):
        raise UsageError(
            f"answer={{{key!r}: {dict(labels)!r:.60}}}: say of each label whether it is "
            "favourable, and have both: {'einladen': True, 'ablehnen': False}"
        )
    return dict(labels)


def _is_range(values: Sequence[Any]) -> bool:
    """Return whether *values* are the ends of a range of whole numbers that is not too long."""
    if len(values) != 2 or set(map(type, values)) != {int}:
        return False
    return 0 < int(values[1] - values[0]) <= _LONGEST


def _are_labels(values: Sequence[Any]) -> bool:
    """Return whether *values* are two or more different texts."""
    texts = {value for value in values if isinstance(value, str)}
    if any(text.casefold() in DECLINING for text in texts):
        return False  # who answers so declines to answer
    return 1 < len(texts) == len(values)


def _quoted(text: str) -> str:
    return f'"{text}"'


def without_sentence(text: str) -> str:
    """Return *text* without the place of the sentence that asks for the form."""
    return _with_sentence(text, "")


def _with_sentence(text: str, sentence: str) -> str:
    """Return *text* with *sentence* in its place."""
    return text.replace(ANSWER_PLACE, sentence).strip()
