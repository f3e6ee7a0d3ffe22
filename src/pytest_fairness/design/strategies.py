"""Strategies: ways to ask again, without a system prompt, where a reply was refused or cannot be
used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pytest_fairness.design.answer_forms import without_sentence
from pytest_fairness.design.locales import is_english
from pytest_fairness.design.slugs import is_slug
from pytest_fairness.design.templates import are_some_texts
from pytest_fairness.documents import Text, chosen, entries
from pytest_fairness.errors import InvalidEntry, UsageError

DIRECT = "direct"
#: Names that no strategy may have.
_RESERVED = (DIRECT, "none")
_REQUEST, _KEY, _OTHER = "{request}", "{key}", "{other}"


_SLOTS = re.compile("|".join(map(re.escape, (_REQUEST, _KEY, _OTHER))))


class Strategy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to ask: ``turns`` of one conversation, with ``{request}`` where the test's prompt
    belongs.

    ``{other}`` is the same prompt about somebody else, of whom no group is said; where a test has
    no such person, ``alone`` are the turns. ``objections``: a regular expression. Where it is
    found, in any case, in what the plain request was answered with, the strategy is tried before
    those that answer no objection. ``own_role``: its turns establish a role themselves, so that of
    the test does not come before them.

    Raises UsageError for a name that is no slug, for turns in which ``{request}`` does not stand
    exactly once, and for ``objections`` that are no regular expression.
    """

    name: str
    turns: tuple[Text, ...]
    alone: tuple[Text, ...] = ()
    description: str = ""
    use_when: str = ""
    objections: str = ""
    own_role: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse a strategy that could not be asked, with the reason."""
        why = self._fault()
        try:
            re.compile(self.objections)
        except re.error as error:
            why = f"objections is no regular expression: {error}"
        if why is not None:
            raise InvalidEntry(f"strategy {self.name!r}: {why}")

    def _fault(self) -> str | None:
        """Return what is wrong with the name or the turns; None where nothing is."""
        if not is_slug(self.name) or self.name in _RESERVED:
            return "use the characters a-z 0-9 _ . -, and neither 'direct' nor 'none'"
        if not are_some_texts(self.turns) or not all(map(str.strip, self.turns)):
            return "turns is a list of one or more texts"
        return self._fault_of_slots()

    def _fault_of_slots(self) -> str | None:
        """Return what is wrong with the slots in the turns; None where nothing is."""
        alone = "\n".join(self.alone)
        requests = {"\n".join(self.turns).count(_REQUEST)}
        if self.alone:
            requests.add(alone.count(_REQUEST))
        if requests != {1}:
            return f"{_REQUEST} stands exactly once, where the test's prompt belongs"
        lacks_turns = self.compares and not self.alone
        if lacks_turns or _OTHER in alone:
            return (
                f"{_OTHER} goes with `alone`, the turns for a test that has nobody else, without "
                f"{_OTHER}"
            )
        return None

    @property
    def has_own_form(self) -> bool:
        """Return whether its turns say what form the answer has, by its key."""
        return _KEY in "\n".join((*self.turns, *self.alone))

    @property
    def compares(self) -> bool:
        """Return whether the person asked about is shown beside another one."""
        return _OTHER in "\n".join(self.turns)

    def fill(self, request: str, key: str, other: str | None = None) -> tuple[str, ...]:
        """The turns for one prompt, and for the same prompt about somebody *other*, if there is
        one. What the two hold is never read for slots; a form of its own stands for that which the
        prompt asks for.
        """
        if self.has_own_form:
            request = without_sentence(request)
        if self.compares and other is None:
            turns = self.alone
        else:
            turns = self.turns
        # One answer is asked for, and none about the other person.
        filled = {_REQUEST: request, _KEY: key, _OTHER: without_sentence(other or "")}
        return tuple(_SLOTS.sub(lambda slot: filled[slot[0]], turn) for turn in turns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Strategies in the order in which they are tried. ``scorer`` says whether a reply can be used,
    beside refusals.
    """

    strategies: tuple[Strategy, ...]
    scorer: Any = None

    @property
    def key(self) -> str:
        """Return what the wanted answer is called in a structured reply."""
        if isinstance(self.scorer, str):
            return self.scorer
        return "answer"


def load_strategies(folder: Path | None = None, locale: str | None = None) -> dict[str, Strategy]:
    """The shipped strategies by name, in English or of a *locale*, extended or replaced by the
    user's ``personas`` *folder*. Raises UsageError.
    """
    if is_english(locale, folder):
        locale = None
    return entries("strategies.yaml", folder, Strategy, locale=locale)


def ladder_of(
    strategies: object,
    scorer: object = None,
    folder: Path | None = None,
    locale: str | None = None,
) -> Ladder | None:
    """The ladder of ``strategies=``: ``"all"``, a list of names and :class:`Strategy`, or None for
    no escalation.

    Raises UsageError for an unknown name, a strategy that stands twice, and a *scorer* without
    strategies.
    """
    if strategies is None and scorer is not None:
        raise UsageError(
            "scorer= says which replies escalate, so it needs strategies=, for example "
            "strategies='all'"
        )
    if strategies is None:
        return None
    if scorer is None and not is_english(locale, folder):
        raise UsageError(
            f"locale={locale!r}: no rule tells a refusal in it, so strategies= need scorer=, which "
            "says which replies are answers"
        )
    strategies_ = load_strategies(folder, locale)
    given = strategies
    if strategies == "all":
        given = list(strategies_)
    return Ladder(strategies=chosen("strategies", given, strategies_, Strategy), scorer=scorer)
