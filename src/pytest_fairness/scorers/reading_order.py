"""The order in which rules read a closed answer off a reply, the same for every reader.

Of the reply only the settled answer is read: its thoughts are off, and what stands before a change
of mind is read where nothing behind it can be. Of that the plainest way of answering counts: an
answer tag, a JSON object, all of the text, a label, words in bold, the last line, the first; prose
is what is left. The first way that says anything decides; where it says two things, the reply says
neither. See ``docs/decisions/0235-one-order-of-rules.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pytest_fairness.scorers.text import (
    after_correction,
    agreed,
    in_tags,
    is_foreign,
    plain,
    takes_back,
    without_thoughts,
)

T = TypeVar("T")
#: Stands for the two stars of bold type in a plain text, which has none.
_STARS = "\ue000"
_BOLD = re.compile(rf"{_STARS}([^{_STARS}\n]{{1,80}}){_STARS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedReader(Generic[T]):
    """A reader of one kind of answer.

    ``fields`` gives the values of a JSON object that may hold it, None without such an object, and
    ``value`` reads one of them; ``bare`` reads a text that is nothing but an answer, ``labelled``
    all that stands behind labels and other marks (None for what is no answer), ``prose`` sentences;
    ``corrected`` gives what follows a change of mind, empty without one.
    """

    fields: Callable[[str], Sequence[Any] | None]
    value: Callable[[Any], T | None]
    bare: Callable[[str], T | None]
    labelled: Callable[[str], Sequence[T | None]]
    prose: Callable[[str], T | None]
    corrected: Callable[[str], str] = after_correction

    def read(self, reply: str) -> T | None:
        """Return the answer in *reply*; None where there is none, or are several."""
        reply = without_thoughts(reply)
        text = plain(reply.replace("**", _STARS))
        tagged = in_tags(text.replace(_STARS, ""))
        if tagged:
            return agreed(map(self._in_tag, tagged))
        values = self.fields(reply)
        if values is not None:
            return agreed(map(self.value, values))
        answer = self.bare(text.replace(_STARS, ""))
        if answer is not None or is_foreign(text):
            return answer
        return self._after_correction(text)

    def _in_tag(self, text: str) -> T | None:
        """Return the answer that stands in a tag, by itself or in a sentence."""
        answer = self.bare(text)
        if answer is None:
            return self.prose(text)
        return answer

    def _after_correction(self, text: str) -> T | None:
        """Return the answer in what follows a change of mind in *text*, else in all of it; none
        where a sentence takes back what stands before it, and what follows cannot be read.
        """
        corrected = self.corrected(text)
        answer = None
        if corrected:
            answer = self._settled(corrected)
            if answer is None and takes_back(text):
                return None
        if answer is None:
            return self._settled(text)
        return answer

    def _settled(self, text: str) -> T | None:
        """Return what the plainest way of answering says in *text*, which has neither tags nor
        JSON.
        """
        for answers in self._in_order(text):
            if answers:
                return agreed(answers)
        return self.prose(text.replace(_STARS, ""))

    def _in_order(self, text: str) -> Iterator[Sequence[T | None]]:
        """Yield the answers that each way of marking one off finds in *text*."""
        unmarked = text.replace(_STARS, "")
        lines = list(filter(str.strip, unmarked.splitlines()))
        yield self._bare_each([unmarked])
        yield self.labelled(unmarked)
        bold = self._bare_each(_BOLD.findall(text))
        if len(set(bold)) == 1:  # words in bold that differ are headings
            yield bold
        if len(lines) > 1:  # a single one is all of the text
            yield self._bare_each(lines[-1:])
            yield self._bare_each(lines[:1])

    def _bare_each(self, texts: Iterable[str]) -> list[T]:
        """Return the answers that *texts* are by themselves."""
        answers = []
        for text in texts:
            answer = self.bare(text.strip())
            if answer is not None:
                answers.append(answer)
        return answers
