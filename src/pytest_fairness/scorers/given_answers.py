"""Read an answer that was asked for by a form or by a line: the field of a JSON object, or the last
line ``ANSWER: …``.

Nothing is guessed: an answer that is none of those that were asked for is unread, whatever the
prose beside it says. Both are read in any language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_fairness.model import DECLINING, NO_ANSWER
from pytest_fairness.scorers.text import LONGEST, without_thoughts

_BESIDE = frozenset(("thinking", NO_ANSWER, "reason"))
#: Whatever marks an answer: bold, quotes, backticks, brackets, a full stop.
_AROUND = " \t\r*_`\"'“”„«»()[].!"
#: From the key of a line to its sign, with whatever marks the key.
_KEY = r"(?:answer|antwort|respuesta|r[ée]ponse)[ \t\xa0*_`\"']{0,5}[:：=]"
_LINE = re.compile(
    r"^[ \t>*_`#\"'•-]{0,20}" + _KEY + r"(?P<answer>[^\n]{0,300})$",
    re.IGNORECASE | re.MULTILINE,
)
#: A line that says its key twice, and the tokens by which a model ends a reply.
_KEY_AGAIN = re.compile(r"^" + _KEY, re.IGNORECASE)
_END_TOKEN = re.compile(r"<\|[a-z_]{1,20}\|>$")
#: An answer in angle brackets; not the list of what may be answered, repeated.
_ANGLES = re.compile(r"^<((?!.*(?:[,/…]| or |one of))[^<>|]{1,60})>$")
_OUT_OF = re.compile(
    r"^(?P<answer>\d{1,4}) ?(?:/|out of|of|von|sur|de) ?(?P<top>\d{1,4})$", re.IGNORECASE
)
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))
#: Objects that are looked for in one reply: braces in prose are soon more.
_MOST_OBJECTS = 50


class Given(NamedTuple):
    """An answer as it was given: its ``text``, None where it is none of those that were asked for;
    whether it ``declined``; and whether it stood in a ``form``, or on a line.
    """

    text: str | None
    declined: bool
    form: bool


class GivenValue(NamedTuple):
    """The value in a form or on a line, as it stands there; the rest as of :class:`Given`."""

    value: Any
    declined: bool
    form: bool


def given_answer(reply: str, key: str | None, answers: Sequence[str]) -> Given | None:
    """Return the answer in *reply*, of a design that asked for one of *answers* under *key*; None
    where it holds neither form nor line. Without *answers*, whatever stands there is one.
    """
    given = given_value(reply, key)
    if given is None:
        return None
    text = None
    if not given.declined:
        text = _one_of(given.value, answers)
    return Given(text, declined=given.declined, form=given.form)


def given_value(reply: str, key: str | None) -> GivenValue | None:
    """Return what stands under *key*, or on the answer line, of *reply*; None where it holds neither
    form nor line.
    """
    settled = _settled(reply)
    fields = read_form(settled, key)
    if fields is not None:
        declined = fields.get(NO_ANSWER) is True
        return GivenValue(_value(fields, key), declined=declined, form=True)
    line = last_line(settled)
    if line is None:
        return None
    return GivenValue(line, declined=_declines(line), form=False)


def read_form(reply: str, key: str | None) -> Mapping[str, Any] | None:
    """Return the fields of the last JSON object in *reply* that has *key*, or says whether it
    declined beside a field of its own; None without one.
    """
    form = None
    for fields in _objects(_settled(reply)):
        if key in fields or _says_whether(fields):
            form = fields
    return form


def _says_whether(fields: Mapping[str, Any]) -> bool:
    """Return whether *fields* say that the reply declines, or does not, beside an answer."""
    if fields.get(NO_ANSWER) is True:
        return True
    return NO_ANSWER in fields and bool(fields.keys() - _BESIDE)


def last_line(reply: str) -> str | None:
    """Return what stands on the last answer line of *reply*, without what marks it; None without
    one. A line that repeats what was asked for, ``<one of …>``, is none.
    """
    answer = None
    for match in _LINE.finditer(reply[-LONGEST:]):
        text = _END_TOKEN.sub("", match["answer"].strip(_AROUND))
        text = _KEY_AGAIN.sub("", text).strip(_AROUND)
        angles = _ANGLES.match(text)
        if angles:
            text = angles[1].strip(_AROUND)
        if not text.startswith("<"):
            answer = text
    return answer


def answer_line(reply: str) -> str | None:
    """Return what stands on the last line ``ANSWER: …`` of *reply*, after its thoughts and without
    what marks it; None without such a line, or where that declines to answer.
    """
    line = last_line(_settled(reply))
    if not line or _declines(line):
        return None
    return line


def _declines(line: str) -> bool:
    """Return whether an answer *line* says that there is no answer, as a form spells it or not."""
    return line.casefold().replace("_", " ") in DECLINING


def _settled(reply: str) -> str:
    """Return what follows the thoughts of *reply*, with plain line ends."""
    text = reply.replace("\r\n", "\n").replace("\r", "\n").translate(_INVISIBLE)
    return without_thoughts(text)


def _value(fields: Mapping[str, Any], key: str | None) -> Any:
    """Return the answer among *fields*: that of *key*, else the one beside the form's own."""
    if key is not None:
        return fields.get(key)
    names = fields.keys() - _BESIDE
    if len(names) == 1:
        return fields[names.pop()]
    return None


def _one_of(value: Any, answers: Sequence[str]) -> str | None:
    """Return which of *answers* the *value* is, in any case, with or without how far their scale
    goes (``7/10``); None where it is none, or no text or number.
    """
    if type(value) not in (str, int, float):
        return None
    answer = str(value).strip(_AROUND)
    if not answers:
        return answer or None
    out_of = _OUT_OF.match(answer)
    if out_of and _is_top(out_of["top"], answers):
        answer = out_of["answer"]
    by_words = dict(zip(map(str.casefold, answers), answers, strict=True))
    return by_words.get(answer.casefold()) or None


def _is_top(number: str, answers: Collection[str]) -> bool:
    """Return whether *number* is the highest of *answers*, if those are numbers."""
    if not all(map(str.isdecimal, answers)):
        return False
    return int(number) == max(map(int, answers))


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects that stand in *text*, none within another; a key given twice has no
    value.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_fields)
    place = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if place < 0:
            return
        try:
            value, end = decoder.raw_decode(text[: place + LONGEST], place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield value
        place = text.find("{", end)


def _fields(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object, None for a key that stands twice with different values."""
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields and fields[key] != value:
            fields[key] = None
        else:
            fields[key] = value
    return fields
